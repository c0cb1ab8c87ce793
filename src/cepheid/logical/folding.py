"""Operators on constants: the values that binding computes once.

Comes in: an `Apply` whose arguments are all literals. Goes out: a `Literal` of its type. One function per key of `plan.OPERATORS`, on Python
values: bool, int (also times and durations, in steps of the type), float (never NaN), Decimal, str, date; None is NULL.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import operator
import re
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from cepheid.logical import calendar, time_zones
from cepheid.logical.plan import Apply, Expression, Literal, Open
from cepheid.schema import NANOSECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
EXACT = decimal.Context(prec=160, rounding=decimal.ROUND_HALF_UP, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[])
"""Wide enough for the exact product of two decimal128; a result is then rounded once, half up, to the scale of its type."""
ASCII_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
ASCII_UPPER = str.maketrans("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")


def fold(expression: Expression) -> Expression:
    """The expression itself, or its value where it is an operator on literals alone (aggregates stay). Linear in its arguments."""
    if not isinstance(expression, Apply) or expression.operator not in FOLDED:
        return expression
    if not all(isinstance(argument, Literal) and not isinstance(argument.value, Open) for argument in expression.arguments):
        return expression
    values = [argument.value for argument in expression.arguments if isinstance(argument, Literal)]
    return Literal(FOLDED[expression.operator](expression, *values), expression.type, span=expression.span)


def finite(value: float) -> float | None:
    """A double as the language sees it: NaN is NULL."""
    return None if math.isnan(value) else value


def fit(value: Any, kind: pa.DataType) -> Any:
    """A result in its type: NULL where it does not fit; decimals rounded half up to the type's scale."""
    if pa.types.is_decimal(kind):
        rounded = value.quantize(Decimal(1).scaleb(-kind.scale), context=EXACT)
        return rounded if rounded.is_finite() and rounded.copy_abs() < Decimal(10) ** (kind.precision - kind.scale) else None
    if pa.types.is_floating(kind):
        return finite(value)
    return value if INT64_MIN <= value <= INT64_MAX else None


def _strict(function: Callable[..., Any]) -> Callable[..., Any]:
    """NULL in, NULL out; the result fitted to the type."""

    def folded(expression: Apply, *values: Any) -> Any:
        if any(value is None for value in values):
            return None
        result = function(*values)
        return None if result is None else fit(result, expression.type)

    return folded


def _predicate(function: Callable[..., bool]) -> Callable[..., bool]:
    """False on NULL."""

    def folded(_: Apply, *values: Any) -> bool:
        return all(value is not None for value in values) and function(*values)

    return folded


def like(value: str, pattern: str) -> bool:
    """Whether a text matches a LIKE pattern: % is any text, _ any one code point, nothing else is special."""
    parts = (".*" if part == "%" else "." if part == "_" else re.escape(part) for part in re.split("([%_])", pattern))
    return re.fullmatch("".join(parts), value, re.DOTALL) is not None


def _quotient(left: Any, right: Any) -> Any:
    if right == 0:
        return None
    if isinstance(left, Decimal):
        return EXACT.divide(left, right)
    return _overflow(left / right, left, right)


def _remainder(left: Any, right: Any) -> Any:
    if right == 0:
        return None
    if isinstance(left, Decimal):
        return EXACT.remainder(left, right)
    if isinstance(left, int):
        return int(math.copysign(1, left)) * (abs(left) % abs(right))
    return math.fmod(left, right) if math.isfinite(left) else None


def _magnitude(value: Any) -> Any:
    """The absolute value; abs() and - round a Decimal to the digits of Python's ambient context."""
    return value.copy_abs() if isinstance(value, Decimal) else abs(value)


def _overflow(result: Any, *sources: Any) -> Any:
    """NULL for an infinite double that comes from finite ones."""
    if isinstance(result, float) and math.isinf(result) and all(map(math.isfinite, sources)):
        return None
    return result


def _arithmetic(on_numbers: Callable[[Any, Any], Any], on_decimals: Callable[[Decimal, Decimal], Decimal]) -> Callable[..., Any]:
    def compute(left: Any, right: Any) -> Any:
        return on_decimals(left, right) if isinstance(left, Decimal) else _overflow(on_numbers(left, right), left, right)

    return _strict(compute)


def _rounded(towards: Callable[[Any], int]) -> Callable[..., Any]:
    def compute(value: Any) -> Any:
        if isinstance(value, float):
            return float(towards(value)) if math.isfinite(value) else value
        return Decimal(towards(value)) if isinstance(value, Decimal) else value

    return _strict(compute)


def _cast(expression: Apply, value: Any) -> Any:
    if value is None:
        return None
    target = expression.type
    if pa.types.is_floating(target):
        return finite(float(value))
    if pa.types.is_decimal(target):
        return fit(Decimal(value), target)
    nanoseconds = NANOSECONDS[target.unit]
    if isinstance(value, dt.date):
        return fit((value.toordinal() - dt.date(1970, 1, 1).toordinal()) * (86_400 * NANOSECONDS["s"] // nanoseconds), target)
    source = cast("Apply", expression.arguments[0]).type
    return fit(value * NANOSECONDS[source.unit] // nanoseconds, target)


def _part(name: str) -> Callable[[Apply, Any], int | None]:
    def of(node: Apply, value: Any) -> int | None:
        if value is None:
            return None
        kind = cast("Apply", node.arguments[0]).type
        steps = value.toordinal() - dt.date(1970, 1, 1).toordinal() if isinstance(value, dt.date) else value
        found: int = calendar.part(name, steps, calendar.steps_per_day(kind))
        return found

    return of


def _local_time(node: Apply, value: int | None, zone: str) -> int | None:
    return None if value is None else fit(time_zones.local(zone, value, calendar.steps_per_second(node.type)), node.type)


COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = MappingProxyType(
    {"=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
)
"""The comparisons of values that are not NULL."""

FOLDED: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "and": lambda _, *values: all(values),
        "or": lambda _, *values: any(values),
        "not": lambda _, value: not value,
        **{name: _predicate(function) for name, function in COMPARISONS.items()},
        "in": lambda _, value, *options: value is not None and value in options,
        "like": _predicate(like),
        "is_null": lambda _, value: value is None,
        "cast": _cast,
        "+": _arithmetic(operator.add, EXACT.add),
        "-": _arithmetic(operator.sub, EXACT.subtract),
        "*": _arithmetic(operator.mul, EXACT.multiply),
        "/": _strict(_quotient),
        "%": _strict(_remainder),
        "negate": _strict(lambda value: value.copy_negate() if isinstance(value, Decimal) else -value),
        "abs": _strict(_magnitude),
        "floor": _rounded(math.floor),
        "ceil": _rounded(math.ceil),
        "case": lambda _, *values: next((value for holds, value in zip(values[:-1:2], values[1::2], strict=True) if holds), values[-1]),
        "coalesce": lambda _, *values: next((value for value in values if value is not None), None),
        "length": _strict(len),
        "lower": lambda _, value: None if value is None else value.translate(ASCII_LOWER),
        "upper": lambda _, value: None if value is None else value.translate(ASCII_UPPER),
        "concat": lambda _, *values: None if None in values else "".join(values),
        "local_time": _local_time,
        **{name: _part(name) for name in calendar.PARTS},
    }
)
"""Name in `plan.OPERATORS` -> function of the Apply and the values."""
