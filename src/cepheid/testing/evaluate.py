"""Conditions and values in plain Python: each operator of `cepheid.logical.plan.OPERATORS`, once, as it is defined.

Comes in: a typed expression, the events and one position for each of its variables. Goes out: a Python value, None for NULL. A condition is
two-valued: a comparison is true or false, false on NULL, and a bool that is NULL counts as false wherever a condition is needed.

Values: bool, int (int64), float (double, never NaN: NaN is NULL), Decimal (decimal128), str (utf8), datetime.date (date32), and int for timestamps
and durations (steps of the type's unit). Attributes may also hold Arrow's values for these (datetime, timedelta): `attribute_value` converts them.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import operator
import re
import zoneinfo
from collections.abc import Callable, Mapping
from dataclasses import field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from cepheid.logical.plan import Apply, Expression, Field, Index, Lag, Literal, Time
from cepheid.logical.types import type_of
from cepheid.records import record
from cepheid.schema import NANOSECONDS

if TYPE_CHECKING:
    from collections.abc import Sequence


INT64_MINIMUM = -(2**63)
INT64_MAXIMUM = 2**63 - 1

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
EPOCH_DAY = EPOCH.date()

EXACT = decimal.Context(prec=160, rounding=decimal.ROUND_HALF_UP, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[])
"""Wide enough for the exact product of two decimal128 values; a result is rounded once, half up, to its type's scale."""


@record
class Event:
    """One event: its type, its time in steps of the time column (None without one), and its attributes.

    begins: of an event that a match makes, the event where the match begins; None for any other.
    """

    type: str
    time: int | None = None
    attributes: Mapping[str, object] = field(default_factory=dict)
    begins: Event | None = field(default=None, compare=False, repr=False)


Choice = Mapping[tuple[str, bool], int]
"""One position for each (variable, whether it is meant in the previous iteration)."""


def holds(condition: Expression, events: Sequence[Event], choice: Choice) -> bool:
    """Whether a condition is true, with one position for each variable; NULL counts as false. events: all of the partition."""
    return evaluate(condition, events, choice) is True


def evaluate(expression: Expression, events: Sequence[Event], choice: Choice) -> Any:
    """The value of a typed expression, None for NULL."""
    match expression:
        case Literal(value=value):
            return _canonical(value, expression.type)
        case Lag(variable=variable, previous=previous, steps=steps):
            position = choice[variable, previous] - steps
            return None if position < 0 else attribute_value(events[position].attributes, expression)
        case Field(variable=variable, previous=previous):
            return attribute_value(events[choice[variable, previous]].attributes, expression)
        case Time(variable=variable, previous=previous):
            return time_value(events[choice[variable, previous]].time, expression.type)
        case Index(variable=variable, previous=previous):
            return choice[variable, previous]
        case Apply(operator="coalesce"):
            values = (evaluate(argument, events, choice) for argument in expression.arguments)
            return next((value for value in values if value is not None), None)
        case Apply(operator="case", arguments=(*pairs, last)):
            for holds, value in zip(pairs[::2], pairs[1::2], strict=True):
                if evaluate(holds, events, choice) is True:
                    return evaluate(value, events, choice)
            return evaluate(last, events, choice)
        case Apply():
            arguments = [evaluate(argument, events, choice) for argument in expression.arguments]
            return apply(expression, arguments)
    raise TypeError(expression)


def apply(expression: Apply, arguments: list[Any]) -> Any:
    """The operator of `expression` on values: those of `CONDITIONS` see NULL, every other operator gives NULL (or false) for a NULL."""
    if expression.operator in CONDITIONS:
        return CONDITIONS[expression.operator](*arguments)
    if expression.operator in COMPARISONS:
        return compare(expression.operator, *arguments)
    if None in arguments:
        return None
    return VALUES[expression.operator](expression, *arguments)


# ------------------------------------------------------------------------------------------------------------- leaves: what is stored


def attribute_value(attributes: Mapping[str, object], field: Field) -> Any:
    """The canonical value of an attribute (or a field inside it); a missing one is NULL."""
    value: object = attributes
    for name in field.origin:
        value = value.get(name) if isinstance(value, Mapping) else None
    if value is None:
        return None
    if pa.types.is_timestamp(field.source) or pa.types.is_duration(field.source):
        steps = value if isinstance(value, int) else steps_of(value, field.source.unit)
        return _int64(steps * (NANOSECONDS[field.source.unit] // NANOSECONDS[field.type.unit]))
    return _canonical(value, field.type)


def steps_of(value: object, unit: str) -> int:
    """A datetime (without zone: read as UTC) or timedelta as a whole number of steps, exactly; a finer rest is cut off towards the past."""
    if isinstance(value, dt.datetime):
        value = (value if value.tzinfo else value.replace(tzinfo=dt.UTC)) - EPOCH
    assert isinstance(value, dt.timedelta), value
    # pandas' Timedelta carries nanoseconds besides the microseconds of its base class.
    nanoseconds = (value // dt.timedelta(microseconds=1)) * 1000 + int(getattr(value, "nanoseconds", 0)) % 1000
    return nanoseconds // NANOSECONDS[unit]


def time_value(time: int | None, kind: pa.DataType) -> Any:
    """An event's time as a value of the time column's type: a date for date columns, else the number of steps."""
    if time is not None and pa.types.is_date32(kind):
        return EPOCH_DAY + dt.timedelta(days=time)
    return time


def _canonical(value: Any, kind: pa.DataType) -> Any:
    """A stored value or a literal in its canonical form; NaN, and integers that int64 does not hold, are NULL."""
    if value is None:
        return None
    if pa.types.is_floating(kind):
        number = float(value)
        return None if math.isnan(number) else number
    if pa.types.is_int64(kind):
        return _int64(int(value))
    if pa.types.is_decimal(kind):
        return Decimal(value)
    if pa.types.is_date32(kind) and isinstance(value, dt.datetime):
        return value.date()
    return value


# ------------------------------------------------------------------------------------------------------- conditions and comparisons


def compare(operator: str, left: Any, right: Any) -> bool:
    """A comparison of two values; false on NULL."""
    return left is not None and right is not None and COMPARISONS[operator](comparable(left), comparable(right))


def comparable(value: Any) -> Any:
    """A key with the order of the language: strings by their UTF-8 bytes."""
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value


def like(text: str, pattern: str) -> bool:
    """LIKE: `%` is any text, `_` any one code point, nothing escapes."""
    expression = "".join({"%": ".*", "_": "."}.get(character, re.escape(character)) for character in pattern)
    return re.fullmatch(expression, text, re.DOTALL) is not None


CONDITIONS: dict[str, Callable[..., bool]] = {
    "and": lambda *arguments: all(argument is True for argument in arguments),
    "or": lambda *arguments: any(argument is True for argument in arguments),
    "not": lambda argument: argument is not True,
    "is_null": lambda argument: argument is None,
    "in": lambda value, *options: value is not None and any(value == option for option in options if option is not None),
    "like": lambda text, pattern: text is not None and pattern is not None and like(text, pattern),
}
"""Operators that give true or false whatever their arguments, NULL too."""

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


# ------------------------------------------------------------------------------------------------------------- values and arithmetic


def _int64(value: int) -> int | None:
    return value if INT64_MINIMUM <= value <= INT64_MAXIMUM else None


def fit(value: Any, kind: pa.DataType, *operands: Any) -> Any:
    """A result in the range of its type, NULL where it overflows (double: where finite operands give no finite number)."""
    if pa.types.is_floating(kind):
        overflow = math.isinf(value) and all(math.isfinite(operand) for operand in operands)
        return None if math.isnan(value) or overflow else value
    if pa.types.is_decimal(kind):
        rounded = value.quantize(Decimal(1).scaleb(-kind.scale), context=EXACT) if value.is_finite() else value
        return rounded if rounded.is_finite() and rounded.copy_abs() < Decimal(10) ** (kind.precision - kind.scale) else None
    return _int64(value)


def _arithmetic(on_numbers: Callable[[Any, Any], Any], on_decimals: Callable[[Decimal, Decimal], Decimal]) -> Callable[..., Any]:
    def compute(expression: Apply, left: Any, right: Any) -> Any:
        result = on_decimals(left, right) if isinstance(left, Decimal) else on_numbers(left, right)
        return fit(result, expression.type, left, right)

    return compute


def _magnitude(value: Any) -> Any:
    """The absolute value; abs() and - of a Decimal would round it to the digits of Python's ambient context."""
    return value.copy_abs() if isinstance(value, Decimal) else abs(value)


def _divide(expression: Apply, left: Any, right: Any) -> Any:
    if right == 0:
        return None
    return fit(EXACT.divide(left, right) if isinstance(left, Decimal) else left / right, expression.type, left, right)


def _remainder(expression: Apply, left: Any, right: Any) -> Any:
    if right == 0:
        return None
    if isinstance(left, Decimal):
        return fit(EXACT.remainder(left, right), expression.type)
    if isinstance(left, float):
        return None if math.isinf(left) else fit(math.fmod(left, right), expression.type, left, right)
    return fit(int(math.copysign(1, left)) * (abs(left) % abs(right)), expression.type)


def _round(expression: Apply, value: Any, towards: Callable[[Any], int]) -> Any:
    if isinstance(value, float):
        return value if math.isinf(value) else float(towards(value))
    return fit(Decimal(towards(value)), expression.type) if isinstance(value, Decimal) else value


def _cast(expression: Apply, value: Any) -> Any:
    source, target = type_of(expression.arguments[0]), expression.type
    if pa.types.is_floating(target):
        return float(value)
    if pa.types.is_decimal(target):
        return fit(Decimal(value), target)
    if pa.types.is_date32(source):
        return _int64((value - EPOCH_DAY).days * 86_400 * (NANOSECONDS["s"] // NANOSECONDS[target.unit]))
    if pa.types.is_timestamp(target) or pa.types.is_duration(target):
        return _int64(value * (NANOSECONDS[source.unit] // NANOSECONDS[target.unit]))
    return value


def _ascii(first: str, last: str, shift: int) -> dict[int, int]:
    return {code: code + shift for code in range(ord(first), ord(last) + 1)}


TO_LOWER = _ascii("A", "Z", 32)
TO_UPPER = _ascii("a", "z", -32)


def _date(value: Any, kind: pa.DataType) -> tuple[dt.date, int]:
    """A day, and how many years later it is: Python's years end with 9999, and every 400 the calendar is the same."""
    days = (value - EPOCH_DAY).days if isinstance(value, dt.date) else value // (86_400 * (NANOSECONDS["s"] // NANOSECONDS[kind.unit]))
    cycles = days // 146_097
    return EPOCH_DAY + dt.timedelta(days=days - 146_097 * cycles), 400 * cycles


def _date_part(of: Callable[[dt.date, int], int]) -> Callable[[Apply, Any], int]:
    return lambda expression, value: of(*_date(value, cast("Apply", expression.arguments[0]).type))


def _time_part(unit: int, most: int) -> Callable[[Apply, Any], int]:
    def of(expression: Apply, value: int) -> int:
        kind = cast("Apply", expression.arguments[0]).type
        return value * NANOSECONDS[kind.unit] // (unit * NANOSECONDS["s"]) % most

    return of


def _local_time(expression: Apply, value: int, zone: str) -> int | None:
    per_second = NANOSECONDS["s"] // NANOSECONDS[expression.type.unit]
    day = value // (86_400 * per_second)
    like = min(max(day, -146_097), day % 146_097 + 146_097)  # no clocks are known before, and later every 400 years are the same
    instant = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(days=like, seconds=value // per_second % 86_400)
    known = dt.timezone(dt.datetime.strptime(zone, "%z").utcoffset() or dt.timedelta()) if zone[0] in "+-" else zoneinfo.ZoneInfo(zone)
    local = instant.astimezone(known).replace(tzinfo=dt.UTC)
    return _int64(value + (local - instant) // dt.timedelta(seconds=1) * per_second)


def _units(expression: Apply, value: Decimal) -> int:
    return int(value.scaleb(expression.arguments[0].type.scale, EXACT))  # type: ignore[attr-defined]  # what has halves has a type


VALUES: dict[str, Callable[..., Any]] = {
    "+": _arithmetic(operator.add, EXACT.add),
    "-": _arithmetic(operator.sub, EXACT.subtract),
    "*": _arithmetic(operator.mul, EXACT.multiply),
    "/": _divide,
    "%": _remainder,
    "negate": lambda expression, value: fit(value.copy_negate() if isinstance(value, Decimal) else -value, expression.type, value),
    "abs": lambda expression, value: fit(_magnitude(value), expression.type, value),
    "floor": lambda expression, value: _round(expression, value, math.floor),
    "ceil": lambda expression, value: _round(expression, value, math.ceil),
    "length": lambda _, text: len(text),
    "lower": lambda _, text: text.translate(TO_LOWER),
    "upper": lambda _, text: text.translate(TO_UPPER),
    "concat": lambda _, *texts: "".join(texts),
    "year": _date_part(lambda date, years: date.year + years),
    "month": _date_part(lambda date, _: date.month),
    "day": _date_part(lambda date, _: date.day),
    "day_of_week": _date_part(lambda date, _: date.isoweekday()),
    "hour": _time_part(3_600, 24),
    "minute": _time_part(60, 60),
    "second": _time_part(1, 60),
    "local_time": _local_time,
    "cast": _cast,
    "upper_half": lambda expression, value: _units(expression, value) >> 64,
    "lower_half": lambda expression, value: (_units(expression, value) + 2**63) % 2**64 - 2**63,
}
"""Operators that give NULL for a NULL argument: (the Apply node, values) -> value."""
