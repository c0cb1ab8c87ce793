"""Python values as literals of the language."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

from cepheid.errors import BindError, LimitError
from cepheid.language import syntax
from cepheid.language.limits import MAX_DIGITS
from cepheid.language.syntax import Unit
from cepheid.language.words import check_text


def expression_of(value: object) -> syntax.Expression:
    """The literal of a Python value; an expression is itself.

    Args:
        value: None, bool, int, float, Decimal, str, date, datetime (with or without zone) or timedelta. A float is a
            double, a Decimal a decimal with its own scale, an int an integer.

    Raises:
        BindError: the value has no literal: an infinite or undefined number, or another type.
        LimitError: a number with more than `MAX_DIGITS` digits.
    """
    match value:
        case syntax.Expression():
            return value
        case None | bool():
            return syntax.Constant(value)
        case int() | float() | Decimal():
            return _number(value)
        case str():
            return syntax.Text(check_text(value))
        case dt.datetime():
            return syntax.Instant("TIMESTAMP", value.isoformat(sep=" "))
        case dt.date():
            return syntax.Instant("DATE", value.isoformat())
        case dt.timedelta():
            literal = syntax.DurationValue(duration_of(abs(value)))
            return syntax.Negative(literal) if value < dt.timedelta() else literal
        case _:
            raise BindError(
                f"a value of type {type(value).__name__} has no literal",
                help="use None, bool, int, float, Decimal, str, date, datetime or timedelta",
            )


def duration_of(value: dt.timedelta) -> syntax.Duration:
    """The duration of a timedelta, exactly, in the largest unit that it is a whole number of, or in microseconds."""
    length = nanoseconds(value)
    if length == 0:
        return syntax.Duration(Decimal(0), Unit.S)
    whole = [unit for unit in Unit if length % unit.value == 0]
    if not whole:
        return syntax.Duration(Decimal(length).scaleb(-3), Unit.US)
    unit = max(whole, key=lambda unit: unit.value)
    return syntax.Duration(Decimal(length // unit.value), unit)


def nanoseconds(value: dt.timedelta) -> int:
    """The length of a timedelta, exactly; that of pandas counts nanoseconds."""
    return value // dt.timedelta(microseconds=1) * Unit.US.value + int(getattr(value, "nanoseconds", 0))


def _number(value: float | Decimal) -> syntax.Expression:
    if not (isinstance(value, int) or math.isfinite(value)):
        raise BindError(
            f"the number {value} has no literal", help="NaN is NULL: use None; no number is beyond infinity: leave the comparison out"
        )
    text = _integer_text(value) if isinstance(value, int) else _double_text(value) if isinstance(value, float) else _decimal_text(value)
    if sum(map(str.isdigit, text)) > MAX_DIGITS:
        raise _too_long()
    number = syntax.Number(text)
    return syntax.Negative(number) if math.copysign(1, value) < 0 else number


def _integer_text(value: int) -> str:
    if abs(value) >= 10**MAX_DIGITS:
        # Not left to the count of digits: Python refuses to print integers of thousands of them.
        raise _too_long()
    return str(abs(value))


def _double_text(value: float) -> str:
    text = repr(float(abs(value)))
    return text if "e" in text else f"{text}e0"


def _decimal_text(value: Decimal) -> str:
    if value.adjusted() >= MAX_DIGITS or value.adjusted() < -MAX_DIGITS:
        raise _too_long()
    # copy_abs, as abs() rounds to the precision of the context.
    text = f"{value.copy_abs():f}"
    return text if "." in text else f"{text}.0"


def _too_long() -> LimitError:
    return LimitError(f"a number has more than {MAX_DIGITS} digits (MAX_DIGITS)", help="round it, or give a float")
