"""From a failed parse to a message: what was expected in words, what was found instead, and what to do.

The parser says which terminals it could have taken. `PHRASES` turns them into words, and hints.py adds what the user
may have meant. Both are tables.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cepheid.errors import QuerySyntaxError, Span
from cepheid.language.driver import END
from cepheid.language.words import FORBIDDEN
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cepheid.language.driver import UnexpectedError
    from cepheid.language.hints import Failure

    Phrases = tuple[tuple[str, str, str], ...]
    """What terminals are called: (phrase, terminals that must all be possible, terminals that it speaks of besides), each said once, in order."""

    Unclosed = tuple[tuple[str, re.Pattern[str], str, str], ...]
    """What begins and does not end: its sign, its whole form, the fact and the way out."""

VALUE = "NAME QUOTED NUMBER STRING DURATION TRUE FALSE NULL DATED PARAMETER MINUS LPAR NOT CALL CASE DISTINCT"
REPETITION = "PLUS QMARK ADJACENT_BRACE ADJACENT_PLUS BRACE"

PHRASES: Phrases = (
    ("a pattern", "PROJECT SELECTOR TYPE", "QUOTED ANY LPAR NOT"),
    ("`*`, a strategy, a variable or a measure", "STRICT STAR CALL", f"ALL ANY NXT LAST MAX RESTRICTED {VALUE}"),
    ("`*`, a variable or a measure", "STAR CALL NAME", VALUE),
    ("a value", "CALL NAME NUMBER", VALUE),
    ("a duration", "DURATION NUMBER", "MINUS PARAMETER"),
    ("a pattern operator (`;`, `:`, OR, `+`, ..)", "SEMICOLON THEN", f"COLON ALL_INFIX AND OR {REPETITION}"),
    ("`;`", "SEMICOLON", ""),
    ("a repetition (`+`, `?`, `{n}`)", "PLUS QMARK", REPETITION),
    ("a comparison, IN, BETWEEN, LIKE, IS", "COMPARE IS", "IN BETWEEN LIKE NOT"),
    ("a comparison", "COMPARE", ""),
    ("an arithmetic sign", "MINUS PLUS STAR", "SLASH PERCENT"),
    ("an arithmetic sign", "MINUS PLUS", ""),
    ("a name, `$time` or `$index`", "NAME SYSTEM", "QUOTED"),
    ("a name", "NAME", "QUOTED"),
    ("a whole number", "NUMBER", "PARAMETER"),
    ("a text in single quotes", "STRING", ""),
    ("WHEN, ELSE or END", "WHEN ELSE", "END"),
    ("WHEN", "WHEN", ""),
    ("THEN", "THEN", ""),
    ("END", "END", ""),
    ("AND", "AND", ""),
    ("OR", "OR", ""),
    ("NONE, PARTITION or ANY", "CONSUME_NONE", "CONSUME_PARTITION CONSUME_ANY"),
    ("a clause (FILTER, WITHIN, UNLESS, ..)", "FILTER UNLESS", "NOT_FOLLOWED_BY WITHIN"),
    ("WITHIN", "WITHIN", ""),
    ("an option (PARTITION BY, LIMIT, ..)", "PARTITION HAVING", "CONSUME TIME LIMIT"),
    ("HAVING, CONSUME BY, TIME MODEL, LIMIT", "HAVING CONSUME", "TIME LIMIT"),
    ("CONSUME BY, TIME MODEL, LIMIT", "CONSUME TIME", "LIMIT"),
    ("TIME MODEL, LIMIT", "TIME LIMIT", ""),
    ("a list in parentheses or as a parameter (`:name`)", "LPAR PARAMETER", ""),
    ("`(`", "LPAR", ""),
    ("`)`", "RPAR", ""),
    ("`[`", "LSQB", ""),
    ("`]`", "RSQB", ""),
    ("`}`", "RBRACE", ""),
    ("`.`", "DOT", ""),
    ("`,`", "COMMA", ""),
    ("`*`", "STAR", ""),
    *((word, word, "") for word in ("EVENT", "SELECT", "FROM", "WHERE", "AS", "BY", "MODEL", "FOR", "EVENTS")),
    *((word, word, "") for word in ("IN", "BETWEEN", "LIKE", "IS", "NULL", "NOT", "NONE", "LIMIT", "THEN", "ANY", "START")),
    ("the end of the query", END, ""),
)

LONGEST_FOUND = 40
"""Characters of a wrong word that a message shows."""

FOUND = re.compile(r"[^\W\d]\w*|[0-9][\w.]*|'(?:[^']|'')*+'|`(?:[^`]|``)++`|<=|>=|<>|!=|==|&&|\|\||->|=>|\.{2,}|\$\w*|.", re.DOTALL)
"""A word or sign as a reader sees it."""

UNCLOSED: Unclosed = (
    ("'", re.compile(r"'(?:[^']|'')*+'"), "a text is not closed", "end it with `'`; a quote inside a text is written twice: 'it''s'"),
    (
        "`",
        re.compile(r"`(?:[^`]|``)++`"),
        "a name in backticks is empty or not closed",
        "names in backticks end with a backtick, and one inside is doubled",
    ),
    (
        "/*",
        re.compile(r"/\*.*?\*/", re.DOTALL),
        "a comment is not closed",
        "end it with `*/`, or start it with `--` to end it with the line",
    ),
)
"""What begins and does not end: its sign, its whole form, the fact and the way out."""

BRACKETS = {")": "(", "]": "[", "}": "{"}

BEHIND_BRACKETS = {"FROM", "WHERE", "PARTITION", "HAVING", "CONSUME", "TIME", "LIMIT"}
"""Words that a query has only outside of brackets: a bracket that is open there was forgotten."""

WITH_BRACKETS = re.compile(r"'(?:[^']|'')*+'|`(?:[^`]|``)++`|--[^\n]*+|/\*.*?\*/|[()\[\]{}]", re.DOTALL)


def _hints_of_queries(failure: Failure) -> tuple[str, ...]:
    from cepheid.language.hints import hint  # a hundred regular expressions, for which no right query waits

    return hint(failure)


@record
class Wording:
    """How the mistakes in one kind of text are said. whole: the text. shortest: the help for an empty one. hints: what the user may have meant."""

    whole: str
    shortest: str
    phrases: Phrases
    unclosed: Unclosed
    hints: Callable[[Failure], tuple[str, ...]]


QUERY = Wording("the query", "the shortest query is SELECT * WHERE A ; B", PHRASES, UNCLOSED, _hints_of_queries)


def check_characters(text: str) -> None:
    """Refuse control characters and lone surrogates anywhere in the text.

    Raises:
        QuerySyntaxError: names the first of them.
    """
    found = FORBIDDEN.search(text)
    if found is not None:
        raise QuerySyntaxError(
            f"a query cannot contain the character U+{ord(found[0]):04X}",
            help="remove it; inside a text value, give the text as a parameter, `:name`",
            span=Span(*found.span()),
        )


def syntax_error(text: str, error: UnexpectedError, wording: Wording = QUERY) -> QuerySyntaxError:
    """The error of Cepheid for an error of the parser: fact, place and help."""
    end = len(text.rstrip())
    place = error.position
    if place >= end:
        return _at_the_end(text, end, error.accepted, wording)
    for sign, form, fact, way_out in wording.unclosed:
        if text.startswith(sign, place) and form.match(text, place) is None:
            return QuerySyntaxError(fact, help=way_out, text=text, span=Span(place, place + len(sign)))
    found = FOUND.match(text, place)
    word = found[0] if found is not None else text[place]
    shown = word if len(word) <= LONGEST_FOUND else f"{word[:LONGEST_FOUND]}..."
    fact = f"expected {expected(error.accepted, wording.phrases)}, found `{shown}`"
    return QuerySyntaxError(fact, help=_help(text, place, word, error.accepted, wording), text=text, span=Span(place, place + len(word)))


def expected(accepted: Iterable[str], phrases: Phrases = PHRASES) -> str:
    """The terminals in words: `` `;`, THEN or the end of the query``."""
    left = set(accepted)
    said: list[str] = []
    for phrase, needed, besides in phrases:
        if left.issuperset(needed.split()):
            left.difference_update(needed.split(), besides.split())
            said.append(phrase)
    if len(said) <= 1:
        return "".join(said)
    return f"{', '.join(said[:-1])} or {said[-1]}"


def _at_the_end(text: str, end: int, accepted: frozenset[str], wording: Wording) -> QuerySyntaxError:
    if end == 0:
        return QuerySyntaxError(f"{wording.whole} is empty", help=wording.shortest, text=text, span=Span(0, 0))
    fact = f"expected {expected(accepted, wording.phrases)}, found the end of {wording.whole}"
    return QuerySyntaxError(fact, help=_help(text, end, "", accepted, wording), text=text, span=Span(end, end + 1))


def _help(text: str, place: int, word: str, accepted: frozenset[str], wording: Wording) -> tuple[str, ...]:
    from cepheid.language.hints import Failure

    failure = Failure(text, place, word, accepted)
    return (*wording.hints(failure), *_bracket_help(failure))


def _bracket_help(failure: Failure) -> tuple[str, ...]:
    """Where the bracket was opened that is missing its end, or that a wrong one closes."""
    opened = open_brackets(failure.text, failure.position)
    if failure.word in BRACKETS and (not opened or failure.text[opened[-1]] != BRACKETS[failure.word]):
        if not opened:
            return (f"no `{BRACKETS[failure.word]}` is open here",)
        return (f"the bracket that is open here is the {_place(failure.text, opened[-1])}",)
    if opened and (not failure.word or failure.word.upper() in BEHIND_BRACKETS):
        return (f"not closed: the {_place(failure.text, opened[-1])}",)
    return ()


def _place(text: str, position: int) -> str:
    line = text.count("\n", 0, position) + 1
    column = position - (text.rfind("\n", 0, position) + 1) + 1
    return f"`{text[position]}` in line {line}, column {column}"


def open_brackets(text: str, end: int) -> list[int]:
    """The positions of the brackets that are open before `end`, outermost first. Linear in `end`."""
    opened: list[int] = []
    for found in WITH_BRACKETS.finditer(text, 0, end):
        if found[0] in BRACKETS.values():
            opened.append(found.start())
        elif found[0] in BRACKETS and opened:
            opened.pop()
    return opened
