"""Constants of a query as typed literals: numbers, dates, timestamps, durations and the values of parameters.

Comes in: the text of a literal, or a Python value. Goes out: a `plan.Literal` of a canonical type. Times and durations get the coarsest unit that
holds them exactly, so they never force a column into a finer one. Raises `Mismatch` for anything that is not a value.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.language.limits import MAX_LIST
from cepheid.language.values import nanoseconds
from cepheid.logical.folding import INT64_MAX, INT64_MIN
from cepheid.logical.plan import Literal
from cepheid.logical.types import BOOL, DATE, DECIMAL_DIGITS, DOUBLE, EPOCH, INT64, NULL, TEXT, Mismatch
from cepheid.schema import NANOSECONDS

if TYPE_CHECKING:
    from cepheid.errors import Span
    from cepheid.language.syntax import Duration

SHOWN_DIGITS = 40
"""Longest number that a message repeats, in characters."""


def number(text: str, span: Span, *, negative: bool = False) -> Literal:
    """A number as written: an integer without point and exponent, decimal with a point, double with an exponent."""
    shown = text if len(text) <= SHOWN_DIGITS else text[:SHOWN_DIGITS] + ".."
    sign = "-" if negative else ""
    if "e" in text.lower():
        double = float(sign + text)
        if math.isinf(double):
            raise Mismatch(f"the number {sign}{shown} is too large for a double")
        return Literal(double, DOUBLE, span=span)
    exact = Decimal(sign + text)
    return decimal(exact, span) if "." in text else integer(exact, span)


def integer(value: int | Decimal, span: Span) -> Literal:
    """An integer: int64, and beyond it a decimal without digits behind the point."""
    return Literal(int(value), INT64, span=span) if INT64_MIN <= value <= INT64_MAX else decimal(Decimal(value), span)


def decimal(value: Decimal, span: Span) -> Literal:
    """A decimal with as many digits before and behind the point as are written."""
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 1)
    if precision > DECIMAL_DIGITS:
        fact = f"an integer or decimal has at most {DECIMAL_DIGITS} digits, this one has {precision}"
        raise Mismatch(fact, "make it a double: written with an exponent (1.5e40), as a parameter a float")
    return Literal(value, pa.decimal128(precision, scale), span=span)


_TIMESTAMP = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?(?:\s*(Z|[+-]\d{2}(?::?\d{2})?))?)?", re.ASCII
)


def date(text: str, span: Span) -> Literal:
    """`DATE 'yyyy-mm-dd'`, date32."""
    try:
        return Literal(dt.datetime.strptime(text.strip(), "%Y-%m-%d").date(), DATE, span=span)  # noqa: DTZ007 - a date has no zone
    except ValueError:
        raise Mismatch(f"'{text}' is not a date", "write it as in DATE '2013-01-31'") from None


def timestamp(text: str, span: Span) -> Literal:
    """`TIMESTAMP 'yyyy-mm-dd hh:mm:ss.fffffffff+hh:mm'`: with an offset an instant (UTC), without one a timestamp without zone."""
    found = _TIMESTAMP.fullmatch(text.strip())
    help_ = "write it as in TIMESTAMP '2013-01-31 12:00:00', with an offset for an instant: '2013-01-31 12:00:00+01:00'"
    if found is None:
        raise Mismatch(f"'{text}' is not a timestamp", help_)
    day, hour, minute, second, fraction, offset = found.groups()
    try:
        clock = dt.time(int(hour or 0), int(minute or 0), int(second or 0))
        days = (dt.date.fromisoformat(day) - EPOCH).days
        shift = _offset_seconds(offset)
    except ValueError:
        raise Mismatch(f"'{text}' is not a timestamp", help_) from None
    seconds = days * 86_400 + clock.hour * 3600 + clock.minute * 60 + clock.second - shift
    return instant(seconds * NANOSECONDS["s"] + int((fraction or "").ljust(9, "0")), span, zone=None if offset is None else "UTC")


def _offset_seconds(offset: str | None) -> int:
    if offset is None or offset == "Z":
        return 0
    minutes = int(offset[-2:]) if len(offset) > 3 else 0
    if int(offset[1:3]) > 18 or minutes > 59:
        raise ValueError
    return (-1 if offset[0] == "-" else 1) * (int(offset[1:3]) * 3600 + minutes * 60)


def instant(nanoseconds: int, span: Span, *, zone: str | None) -> Literal:
    """A timestamp in the coarsest unit that holds it."""
    unit, length = _coarsest(nanoseconds)
    return Literal(nanoseconds // length, pa.timestamp(unit, zone), span=span)


def _coarsest(nanoseconds: int) -> tuple[str, int]:
    return next((unit, length) for unit, length in NANOSECONDS.items() if nanoseconds % length == 0)


def duration(node: Duration, span: Span) -> Literal:
    """A duration as a value, in the coarsest unit that holds it."""
    assert node.unit is not None
    nanoseconds = Fraction(node.value) * node.unit.value
    if nanoseconds.denominator != 1:
        raise Mismatch("a duration value cannot be finer than a nanosecond", "round it")
    return _duration(int(nanoseconds), span)


def _duration(nanoseconds: int, span: Span) -> Literal:
    unit, length = _coarsest(nanoseconds)
    steps = nanoseconds // length
    if not INT64_MIN <= steps <= INT64_MAX:
        raise Mismatch("the duration is longer than 64 bits can hold")
    return Literal(steps, pa.duration(unit), span=span)


def parameter(name: str, value: object, span: Span) -> Literal:
    """The value of a parameter: bool, int, float, Decimal, str, datetime, date, timedelta or None; NumPy and Arrow scalars as these."""
    value = plain(value)
    for kinds, make in _PARAMETERS:
        if isinstance(value, kinds):
            literal: Literal = make(name, value, span)
            return dataclasses.replace(literal, parameter=name)
    raise Mismatch(
        f"parameter `:{name}` has a value of type {type(value).__name__}",
        "a parameter is a bool, int, float, Decimal, str, datetime, date, timedelta or None",
    )


def plain(value: Any) -> object:
    """The Python value of an Arrow or NumPy scalar, None for "not a time"; raises Mismatch for a time that no Python value holds exactly."""
    if isinstance(value, dt.datetime | np.timedelta64 | np.datetime64) and value != value:  # noqa: PLR0124 - so NaT shows, of pandas too
        return None
    if isinstance(value, np.timedelta64 | np.datetime64):
        value = _numpy_time(value)
    if isinstance(value, pa.Scalar):
        try:
            return value.as_py()
        except (ValueError, OverflowError):
            # Its own text would raise the same.
            fact = f"a value of the type {value.type} is not a value of Python: it is outside the years 1 to 9999"
            raise Mismatch(fact, "give it in microseconds") from None
    return value.item() if type(value).__module__ == "numpy" and getattr(value, "ndim", 1) == 0 else value


def _numpy_time(value: np.timedelta64 | np.datetime64) -> object:
    """A time of NumPy's as Arrow has it, or (of whole days) as Python; raises Mismatch for units that neither has."""
    unit = np.datetime_data(value)[0]
    try:
        if isinstance(value, np.datetime64) and unit in "YMWD":
            found = value.astype("datetime64[D]").item()
            return found if isinstance(found, dt.date) else pa.scalar(int(found), pa.date32())
        coarse = {"W": "s", "D": "s", "h": "s", "m": "s"}
        return pa.scalar(value.astype(f"{type(value).__name__}[{coarse[unit]}]") if unit in coarse else value)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise Mismatch(f"{value!r} has the unit `{unit}`, which is not supported", "give it in microseconds") from None


def kept(value: Any) -> object:
    """The value of a parameter as a query keeps it: scalars as Python has them; collections and arrays copied to lists, a set in a fixed order.

    What is no value of Python's stays as it is, for binding to say so with its place; so does a range that is too long for a list.
    """
    if isinstance(value, set | frozenset):
        value = sorted(value, key=lambda item: (type(item).__name__, repr(item)))
    array = isinstance(value, pa.Array | pa.ChunkedArray) or (getattr(value, "ndim", 0) == 1 and hasattr(value, "dtype"))
    if array or isinstance(value, list | tuple) or (isinstance(value, range) and len(value) <= MAX_LIST):
        return [kept(item) for item in value]
    try:
        return plain(value)
    except Mismatch:
        return value


def _floating(_: str, value: float, span: Span) -> Literal:
    return Literal(None if math.isnan(value) else float(value), DOUBLE, span=span)


def _exact(name: str, value: Decimal, span: Span) -> Literal:
    if value.is_nan():
        return Literal(None, pa.decimal128(1, 0), span=span)
    if value.is_infinite():
        raise Mismatch(f"the value of parameter `:{name}` is an infinite decimal", "give it as a float")
    return decimal(value, span)


def _text(name: str, value: str, span: Span) -> Literal:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Mismatch(f"the value of parameter `:{name}` is not valid Unicode text", "decode it as UTF-8 first") from None
    return Literal(str(value), TEXT, span=span)


def _datetime(_: str, value: dt.datetime, span: Span) -> Literal:
    offset = value.utcoffset()
    steps = nanoseconds(value.replace(tzinfo=None) - dt.datetime(1970, 1, 1))  # noqa: DTZ001 - both sides without zone
    if offset is not None:
        steps -= nanoseconds(offset)  # astimezone() cannot leave the years 1 to 9999
    return instant(steps, span, zone=None if offset is None else "UTC")


_PARAMETERS: tuple[tuple[type | tuple[type, ...], Any], ...] = (
    (type(None), lambda _, __, span: Literal(None, NULL, span=span)),
    (bool, lambda _, value, span: Literal(value, BOOL, span=span)),
    (int, lambda _, value, span: integer(value, span)),
    (float, _floating),
    (Decimal, _exact),
    (str, _text),
    (dt.datetime, _datetime),
    (dt.date, lambda _, value, span: Literal(value, DATE, span=span)),
    (dt.timedelta, lambda _, value, span: _duration(nanoseconds(value), span)),
)
"""In this order: a bool is an int, a datetime is a date."""
