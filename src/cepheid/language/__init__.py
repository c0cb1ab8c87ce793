"""Text to syntax tree and back.

    text --parse--> syntax.Query --to_text--> text
    event("T").as_("x").followed_by("H AS y").select() --> the same syntax.Query

The input is the text of a query (language.md is the reference of the language, grammar.lark its grammar on one page) or
a chain of builder calls. The output is a frozen tree whose nodes know their place in the text.
`parse(to_text(tree)) == tree` for every tree that can be written. This package knows no event types, attributes and
their types. The next layer, `cepheid.logical`, decides whether names exist, which variable a condition is about, and
whether a query can run. A text that is not a query raises `QuerySyntaxError`, a text above a limit (limits.py)
`LimitError`.
"""

from __future__ import annotations

from cepheid.language.builder import (
    ExpressionBuilder,
    PatternBuilder,
    any_event,
    attr,
    call,
    case,
    definition,
    event,
    index_of,
    lag,
    literal,
    local,
    param,
    previous,
    time_of,
    word,
)
from cepheid.language.parser import parse, parse_condition, parse_pattern, parse_target, parse_window, read_query
from cepheid.language.printer import to_text

__all__ = [
    "ExpressionBuilder",
    "PatternBuilder",
    "any_event",
    "attr",
    "call",
    "case",
    "definition",
    "event",
    "index_of",
    "lag",
    "literal",
    "local",
    "param",
    "parse",
    "parse_condition",
    "parse_pattern",
    "parse_target",
    "parse_window",
    "previous",
    "read_query",
    "time_of",
    "to_text",
    "word",
]
