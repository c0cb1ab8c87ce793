"""The query of a command: its text from a file, the standard input or the command line, and the values of its parameters."""

from __future__ import annotations

import datetime as dt
import re
import sys
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import cepheid
from cepheid.engine.input.files.streams import is_file
from cepheid.errors import CepheidError, InputError, QuerySyntaxError
from cepheid.language import parse_condition, syntax, to_text
from cepheid.language.diagnose import open_brackets
from cepheid.logical import constants
from cepheid.logical.parameters import lists
from cepheid.logical.types import Mismatch
from cepheid.query import text_in

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

STANDARD_INPUT = "-"


def load(source: str, *, expression: bool, parameters: Iterable[str]) -> cepheid.Query:
    """The query of a command.

    source: a file's name, "-" for the standard input, or with `expression` the text itself. parameters: as `parameter` reads them; those that stand
    for the list of an IN are lists.
    Raises InputError for a file that cannot be read and a parameter that is given twice, and the errors of the language.
    """
    text = source if expression else text_of(source)
    try:
        listed = frozenset(lists(cepheid.query(text).tree))
    except QuerySyntaxError as error:
        if not expression and is_file(source):
            error.help = (f"{source} looks like a file of events: the query comes first, then the events", *error.help)
        raise
    args: dict[str, object] = {}
    for given in parameters:
        name, value = parameter(given, listed=listed)
        if name in args:
            commas = f"write a list with commas: --param {name}=1,2,3" if name in listed else "give each parameter one value"
            raise InputError(f"--param {name} is given twice", help=commas)
        args[name] = value
    return cepheid.query(text, args=args)


def text_of(source: str) -> str:
    """The text of a query file, or of the standard input."""
    if source == STANDARD_INPUT:
        try:
            return sys.stdin.buffer.read().decode("utf-8").removeprefix("\ufeff")
        except UnicodeDecodeError as error:
            raise InputError(f"the query on the standard input is not UTF-8 at byte {error.start}", help="send it as UTF-8") from None
    try:
        return text_in(Path(source))
    except InputError:
        if not looks_like_query(source):
            raise
        raise InputError("the first argument is the name of a file, and this looks like a query", help="add -e to give its text") from None


def looks_like_query(source: str) -> bool:
    """Whether an argument is the text of a query rather than a file's name."""
    first, _, rest = source.strip().partition(" ")
    return first.upper() in ("SELECT", "EVENT") and bool(rest)


def parameter(given: str, *, listed: Container[str] = ()) -> tuple[str, object]:
    """`limit=40` as a name and a typed value.

    The value is what the language makes of it: a number, TRUE, FALSE, NULL, DATE '..', TIMESTAMP '..', a duration such as 5s, a text in
    single quotes; everything else is text as it stands. listed: the parameters whose values are lists of these, with commas between them, and
    in parentheses or not. Raises InputError without a name.
    """
    name, equals, text = given.partition("=")
    name = name.strip().removeprefix(":")
    if not equals or not name:
        raise no_value(given)
    if name in listed:
        return name, [_value(given, part) for part in _parts(text.strip())]
    return name, _value(given, text)


def no_value(given: str) -> InputError:
    """The error for a --param that has no name, or no value."""
    name = given if "=" not in given and given.isidentifier() else "limit"
    return InputError(f"--param {given} is not a name and a value", help=f"write --param {name}=40")


def _parts(text: str) -> list[str]:
    """The values of a list, as they are written."""
    if text.startswith("(") and text.endswith(")") and open_brackets(text, len(text) - 1) == [0]:
        text = text[1:-1].strip()
    return [part.strip() for part in _PART.findall(f",{text}")] if text else []


_PART = re.compile(r",(\s*'(?:[^']|'')*+'\s*(?=,|\Z)|[^,]*+)")
"""A comma and the value behind it; in a text in single quotes a comma separates nothing."""


def _value(given: str, text: str) -> object:
    """The value that is written in the text of a --param."""
    try:
        value = python_value(parse_condition(text))
    except QuerySyntaxError:
        return text
    except OverflowError:
        raise InputError(f"--param {given} is longer than a duration can be", help=f"the longest is {dt.timedelta.max.days}d") from None
    except Mismatch as error:
        raise InputError(f"--param {given} has no value: {error.fact}", help=error.help) from None
    except ValueError as error:
        reason = error.fact if isinstance(error, CepheidError) else error
        raise InputError(f"--param {given} has no value: {reason}", help="if it is a text, write it in single quotes") from None
    return text if value is Ellipsis else value


def python_value(node: syntax.Expression) -> object:
    """The Python value of a literal of the language; Ellipsis for every other expression. Raises Mismatch for a time that is none."""
    match node:
        case syntax.Number(text=text):
            return float(text) if "e" in text.lower() else Decimal(text) if "." in text else int(text)
        case syntax.Negative(operand=syntax.Number() as operand):
            return -python_value(operand)  # type: ignore[operator]  # a number
        case syntax.Text(value=value) | syntax.Constant(value=value):
            return value
        case syntax.Instant(kind="DATE", value=value):
            constants.date(value, node.span)
            return dt.date.fromisoformat(value.strip())
        case syntax.Instant(value=value):
            if constants.timestamp(value, node.span).type.unit == "ns":
                raise ValueError(f"{to_text(node)} is finer than microseconds")
            return dt.datetime.fromisoformat(value.strip())
        case syntax.DurationValue(duration=syntax.Duration(value=value, unit=unit)) if unit is not None:
            microseconds = value * unit.value / 1_000
            if microseconds % 1:
                raise ValueError(f"{to_text(node)} is not a whole number of microseconds")
            return dt.timedelta(microseconds=int(microseconds))
    return Ellipsis
