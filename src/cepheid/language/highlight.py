"""A Pygments lexer for the language, found by Pygments as `ceql` (an entry point of the package).

Pygments is an optional dependency: only importing this module needs it. In the grammar, it depends on the context
whether a word is a keyword. A lexer sees only the words around it: after `.` or AS a word is a name, elsewhere a word
that can be a keyword is shown as one.
"""

from __future__ import annotations

import re
from typing import ClassVar

from pygments.lexer import RegexLexer, bygroups, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text

from cepheid.language.words import KEYWORDS, UNITS

CONSTANTS = ("TRUE", "FALSE", "NULL")
UNIT = "|".join(sorted(UNITS, key=len, reverse=True))
WORD = r"[^\W\d]\w*"
QUOTED = r"`(?:[^`]|``)++`"


class CeqlLexer(RegexLexer):  # type: ignore[misc] # Pygments has no types
    """Marks the words of a query for display."""

    name = "CEQL"
    url = ""
    aliases: ClassVar[list[str]] = ["ceql"]
    filenames: ClassVar[list[str]] = ["*.ceql"]
    mimetypes: ClassVar[list[str]] = ["text/x-ceql"]
    flags = re.IGNORECASE | re.DOTALL
    tokens: ClassVar[dict[str, list[object]]] = {
        "root": [
            (r"\s+", Text.Whitespace),
            (r"--[^\n]*", Comment.Single),
            (r"/\*.*?\*/", Comment.Multiline),
            (r"'(?:[^']|'')*+'", String.Single),
            (r"\$(?:time|index)\b", Name.Builtin.Pseudo),
            (rf"(\.)(\s*)({WORD}|{QUOTED})", bygroups(Punctuation, Text.Whitespace, Name.Attribute)),
            (rf"(AS)(\s+)({WORD}|{QUOTED})", bygroups(Keyword, Text.Whitespace, Name.Variable)),
            (rf":(?:{WORD}|{QUOTED})", Name.Variable.Global),
            (rf"([0-9]+(?:\.[0-9]+)?)(\s*)({UNIT})\b", bygroups(Number, Text.Whitespace, Keyword.Type)),
            (r"[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?", Number),
            (words(CONSTANTS, suffix=r"\b"), Keyword.Constant),
            (words(KEYWORDS, suffix=r"\b"), Keyword),
            (rf"{WORD}(?=\s*\()", Name.Function),
            (rf"{WORD}|{QUOTED}", Name),
            (r"<=|>=|<>|!=|==|[=<>+\-*/%?:;]", Operator),
            (r"[()\[\]{},.]", Punctuation),
        ]
    }
