"""Text to syntax tree.

The tables of grammar.lark are read once, when the first text is parsed (tables.py). A tree is built while the text is read, in
one pass and without recursion (driver.py). Mistakes become a `QuerySyntaxError` in words (diagnose.py) or a `LimitError`.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, cast

from cepheid.errors import CepheidError, LimitError, QuerySyntaxError, Span
from cepheid.language import limits
from cepheid.language.actions import Actions, time_model
from cepheid.language.diagnose import check_characters, syntax_error
from cepheid.language.driver import Driver, UnexpectedError
from cepheid.language.tables import stored

if TYPE_CHECKING:
    import os

    from cepheid.language.driver import Symbol
    from cepheid.language.syntax import Duration, EventCount, Expression, Interval, Node, Parameter, Pattern, Query, Target

LONGEST_FILE = 4 * limits.MAX_TEXT + 3
"""Bytes of the longest file that can be a query: four for each character, and a byte order mark."""


def parse(text: str) -> Query:
    """Parse a query.

    Args:
        text: one query of the language, with its EVENT definitions before it.

    Returns:
        The syntax tree; the spans are code points of `text`.

    Raises:
        QuerySyntaxError: the text is not a query; says where, and what was expected.
        LimitError: the text or its tree exceeds a limit of `cepheid.language.limits`.

    Takes time linear in the length of the text.
    """
    return cast("Query", _parse(text, "query_start"))


def parse_pattern(text: str) -> Pattern:
    """Parse a pattern alone, what stands behind WHERE; otherwise as `parse`."""
    return cast("Pattern", _parse(text, "pattern_start"))


def parse_condition(text: str) -> Expression:
    """Parse a condition or a value alone, what stands behind FILTER; otherwise as `parse`."""
    return cast("Expression", _parse(text, "condition_start"))


def parse_window(text: str) -> Interval | EventCount:
    """Parse what stands behind WITHIN; otherwise as `parse`."""
    return cast("Interval | EventCount", _parse(text, "window_start"))


def parse_target(text: str) -> Target:
    """Parse one target of SELECT; otherwise as `parse`."""
    return cast("Target", _parse(text, "target_start"))


def parse_duration(text: str) -> Duration | Parameter:
    """Parse a duration alone, what stands behind FOR; otherwise as `parse`."""
    return cast("Duration | Parameter", _parse(text, "duration_start"))


def read_query(path: str | os.PathLike[str]) -> str:
    """The text of a query file: UTF-8, with or without a byte order mark.

    Raises:
        QuerySyntaxError: the bytes are not UTF-8; names the first wrong one.
        LimitError: the file is longer than a query may be.
        OSError: the file cannot be read.
    """
    with Path(path).open("rb") as file:
        content = file.read(LONGEST_FILE + 1)
    if len(content) > LONGEST_FILE:
        raise LimitError(
            f"{path} has more than {LONGEST_FILE:,} bytes; a query text has at most {limits.MAX_TEXT:,} characters (MAX_TEXT)",
            help="is it the file of the query? Put values into parameters (`:name`), and long lists into the data",
        )
    try:
        text = content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise QuerySyntaxError(
            f"{path} is not UTF-8: byte 0x{content[error.start]:02x} at offset {error.start}",
            help="save the file as UTF-8",
        ) from None
    if len(text) > limits.MAX_TEXT:
        raise limits.text_limit(len(text))
    return text.replace("\r\n", "\n")


def _parse(text: str, start: str) -> Node:
    if len(text) > limits.MAX_TEXT:
        raise limits.text_limit(len(text))
    try:
        check_characters(text)
        tree: Node = _driver().parse(text, start, Watch().see)
        limits.check_size(tree)
    except CepheidError as error:
        raise error.located(text) from None
    except UnexpectedError as error:
        raise syntax_error(text, error) from None
    return tree


@functools.cache
def _driver() -> Driver:
    return Driver(stored(), Actions())


class Watch:
    """Counts symbols and open brackets while the text is read, before the parser has to remember them.

    It also looks at the name of a time model, which would else be looked at when the clause ends: what is wrong behind it is said after that.
    """

    def __init__(self) -> None:
        self._before = ""
        self._count = 0
        self._depth = 0
        self._prefixes = 0

    def see(self, symbol: Symbol) -> None:
        """Count a symbol; raises LimitError past a limit, QuerySyntaxError for an unknown time model."""
        self._prefixes = self._prefixes + 1 if symbol.type in {"NOT", "MINUS"} else 0
        if symbol in {"(", "[", "{"}:
            self._depth += 1
        elif symbol[0] in ")]}":
            self._depth -= 1
        if self._depth + self._prefixes > limits.MAX_NESTING:
            raise limits.nesting_limit(Span(symbol.start_pos, symbol.end_pos))
        if self._count >= limits.MAX_SYMBOLS:
            raise limits.symbol_limit(Span(symbol.start_pos, symbol.end_pos))
        if self._before == "MODEL" and symbol.type == "NAME":
            time_model(symbol)
        self._before = symbol.type
        self._count += 1
