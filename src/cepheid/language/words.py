"""The words of the language as tables: units, strategies, keywords, reserved names, and how a name is written.

The parser, the printer, the highlighter and the error messages all read these tables.
"""

from __future__ import annotations

import re

from cepheid.errors import BindError
from cepheid.language.syntax import Strategy, Unit

UNITS: dict[str, Unit] = {
    **dict.fromkeys(("us", "microsecond", "microseconds"), Unit.US),
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), Unit.MS),
    **dict.fromkeys(("s", "second", "seconds"), Unit.S),
    **dict.fromkeys(("m", "min", "minute", "minutes"), Unit.M),
    **dict.fromkeys(("h", "hour", "hours"), Unit.H),
    **dict.fromkeys(("d", "day", "days"), Unit.D),
    **dict.fromkeys(("w", "week", "weeks"), Unit.W),
}
"""Every spelling of a unit, in lower case; the first of each unit is the one that is printed."""

UNIT_SYMBOLS: dict[Unit, str] = {unit: next(word for word in UNITS if UNITS[word] is unit) for unit in Unit}

STRATEGIES: dict[str, Strategy] = {**{strategy.value: strategy for strategy in Strategy}, "NEXT": Strategy.NXT}
"""Every spelling of a selection strategy, in upper case."""

KEYWORDS: tuple[str, ...] = (
    *("ALL", "AND", "ANY", "AS", "BETWEEN", "BY", "CASE", "CONSUME", "DATE", "DISTINCT", "ELSE", "END", "EVENT", "EVENTS"),
    *("FALSE", "FILTER", "FOLLOWED", "FOR", "FROM", "HAVING", "IN", "IS", "LAST", "LIKE", "LIMIT", "MAX", "MODEL", "NEXT"),
    *("NONE", "NOT", "NULL", "NXT", "OR", "PARTITION", "PROJECT", "RESTRICTED", "SELECT", "START", "STRICT", "THEN", "TIME"),
    *("TIMESTAMP", "TRUE", "UNLESS", "WHEN", "WHERE", "WITHIN"),
)
"""Every keyword. They are keywords only where the grammar can use them, and names elsewhere."""

COMPARISONS: dict[str, str] = {
    "=": "=",
    "==": "=",
    "!=": "!=",
    "<>": "!=",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}
"""Every spelling of a comparison, with the one that the tree holds."""

FORBIDDEN = re.compile("[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff]")
"""Characters that no query holds: control characters other than white space, and halves of surrogate pairs."""

_PLAIN = re.compile(r"[^\W\d]\w*")


def _reserved(*words: str) -> re.Pattern[str]:
    # IGNORECASE, not upper(): it has to agree with the lexer about letters like the long s.
    return re.compile("|".join(words), re.IGNORECASE)


RESERVED_AS_TYPE = _reserved("ANY", "NOT", "PROJECT")
"""Names that need backticks as an event type."""

RESERVED_IN_EXPRESSIONS = _reserved("NOT", "TRUE", "FALSE", "NULL", "CASE", "DISTINCT")
"""Names that need backticks as the first word of an expression."""

RESERVED_AS_TARGET = _reserved("NOT", "TRUE", "FALSE", "NULL", "CASE", "DISTINCT", *STRATEGIES)
"""Names that need backticks in the targets of SELECT."""

RESERVED_IN_PROJECT = _reserved("NONE")
"""Names that need backticks behind PROJECT."""


def is_plain(name: str) -> bool:
    """Whether `name` is a plain word: a letter or underscore, then letters, digits and underscores."""
    return _PLAIN.fullmatch(name) is not None


def write_name(name: str, *, reserved: re.Pattern[str] | None = None) -> str:
    """`name` as it is written in a query: in backticks if it is no plain word, or one of the `reserved`."""
    if is_plain(name) and (reserved is None or reserved.fullmatch(name) is None):
        return name
    return "`" + name.replace("`", "``") + "`"


def check_text(text: str) -> str:
    """`text`, if a query can hold it.

    Raises:
        BindError: it has a character of `FORBIDDEN`.
    """
    found = FORBIDDEN.search(text)
    if found is not None:
        raise BindError(f"a query cannot contain the character U+{ord(found[0]):04X}", help="give the text as a parameter, `:name`")
    return text


def check_name(name: str) -> str:
    """`name`, if a query can hold it.

    Raises:
        BindError: it is empty or has a character of `FORBIDDEN`.
    """
    if not name:
        raise BindError("a name is empty", help="give every type, variable, attribute and parameter a name")
    return check_text(name)
