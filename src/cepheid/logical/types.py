"""Canonical types of values, and the one rule of promotion: binding inserts every cast, printers never promote.

Comes in: Arrow types of columns, and typed expressions. Goes out: canonical types, casts, arithmetic and comparisons whose two sides have one
type. A comparison of a column with a constant never casts the column where both are exact: the constant is rounded to the column's steps and
the operator kept right (`x.seconds < 1.5` is `x.seconds < 2`), so comparisons stay cheap and can be pushed to the source.

What does not fit together raises `Mismatch`, which the expression binder turns into a BindError with a place.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from cepheid.logical import folding
from cepheid.logical.plan import Apply, Expression, Field, Literal
from cepheid.schema import NANOSECONDS, is_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

BOOL, INT64, DOUBLE, TEXT, DATE, NULL = pa.bool_(), pa.int64(), pa.float64(), pa.utf8(), pa.date32(), pa.null()
EPOCH = dt.date(1970, 1, 1)
DAY = 86_400 * NANOSECONDS["s"]
DECIMAL_DIGITS = 38
"""Most digits of a decimal (decimal128)."""
INT64_DIGITS = 19
DIVISION_SCALE = 6
"""Least number of digits behind the point of a quotient of decimals."""


class Mismatch(Exception):  # noqa: N818 - carries a fact to where the place is known
    """Types that do not fit together: the fact and the help of the BindError to be."""

    def __init__(self, fact: str, *help: str) -> None:  # noqa: A002 - the word that the message prints
        super().__init__(fact)
        self.fact = fact
        self.help = help


# ---------------------------------------------------------------------------------------------------------------- canonical types


def canonical(kind: pa.DataType) -> pa.DataType | None:
    """The canonical type that values of an Arrow type are read as; None for types without comparisons (nested, binary, time of day).

    uint64 is read as decimal128(20, 0), the narrowest type that holds it; a decimal of whole tens as one of ones; date64 as date32; any time zone
    as UTC (the same instants).
    """
    if pa.types.is_dictionary(kind):
        return canonical(kind.value_type)
    if is_text(kind):
        return TEXT
    if kind == pa.uint64():
        return pa.decimal128(20, 0)
    if pa.types.is_timestamp(kind):
        return pa.timestamp(kind.unit, None if kind.tz is None else "UTC")
    if pa.types.is_decimal(kind):
        digits = kind.precision - min(kind.scale, 0)
        return pa.decimal128(digits, max(kind.scale, 0)) if digits <= DECIMAL_DIGITS else None
    return next((result for test, result in _CANONICAL if test(kind)), None) or (kind if pa.types.is_duration(kind) else None)


_CANONICAL: tuple[tuple[Callable[[pa.DataType], bool], pa.DataType], ...] = (
    (pa.types.is_boolean, BOOL),
    (pa.types.is_integer, INT64),
    (pa.types.is_floating, DOUBLE),
    (pa.types.is_date, DATE),
    (pa.types.is_null, NULL),
)


def time_value_type(kind: pa.DataType) -> pa.DataType:
    """The type of `x.$time` for a time column of type `kind`: int64 for integers, timestamp[ms] for date64, else canonical."""
    return pa.timestamp("ms") if pa.types.is_date64(kind) else cast("pa.DataType", canonical(kind))


WORD_DIGITS = 18
"""Digits that a decimal of one word may have."""


def is_two_words(expression: Expression) -> bool:
    """Whether a value is a decimal that may have more digits than one word of 64 bits holds."""
    kind = type_of(expression)
    return bool(pa.types.is_decimal(kind) and kind.precision > WORD_DIGITS)


def is_number(kind: pa.DataType) -> bool:
    """Whether a type is that of canonical numbers."""
    return bool(kind in (INT64, DOUBLE) or _is_decimal(kind))


def _is_decimal(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal128(kind) and kind.scale >= 0)


def is_instant(kind: pa.DataType) -> bool:
    """Whether a canonical type is a date or a timestamp."""
    return bool(kind == DATE or pa.types.is_timestamp(kind))


def is_exact(kind: pa.DataType) -> bool:
    """Whether values of a canonical type are integers of some step: everything that is ordered but text and double."""
    return bool(kind == INT64 or _is_decimal(kind) or is_instant(kind) or pa.types.is_duration(kind))


def family(kind: pa.DataType) -> str:
    """What a canonical type is called where types of different families meet."""
    if is_number(kind):
        return "number"
    if pa.types.is_timestamp(kind):
        return "timestamp without zone" if kind.tz is None else "timestamp with zone"
    if pa.types.is_duration(kind):
        return "duration"
    # Users' extension types have no hash.
    return "nested" if isinstance(kind, pa.BaseExtensionType) else _FAMILIES.get(kind, "nested")


_FAMILIES: Mapping[pa.DataType, str] = MappingProxyType({BOOL: "boolean", TEXT: "text", DATE: "date", NULL: "NULL"})


def step(kind: pa.DataType) -> Fraction:
    """The distance of neighbouring values of an exact type: 1 for int64, 10^-scale for decimals, nanoseconds for times and durations."""
    if pa.types.is_decimal(kind):
        return Fraction(1, 10**kind.scale)
    if kind == DATE:
        return Fraction(DAY)
    return Fraction(1) if kind == INT64 else Fraction(NANOSECONDS[kind.unit])


# -------------------------------------------------------------------------------------------------------------------------- casts


def as_fraction(literal: Literal) -> Fraction:
    """The exact value of a literal of an exact type (times and durations in nanoseconds)."""
    value = literal.value
    if isinstance(value, dt.date):
        return Fraction((value - EPOCH).days * DAY)
    if isinstance(value, Decimal):
        return Fraction(value)
    assert isinstance(value, int)
    return value * step(literal.type)


def of_steps(steps: int, kind: pa.DataType) -> object:
    """The Python value of an exact canonical type that is `steps` steps from 0; None where the type does not reach."""
    if pa.types.is_decimal(kind):
        return Decimal(steps).scaleb(-kind.scale, folding.EXACT) if abs(steps) < 10**kind.precision else None
    if kind == DATE:
        ordinal = steps + EPOCH.toordinal()
        return dt.date.fromordinal(ordinal) if 1 <= ordinal <= dt.date.max.toordinal() else None
    return steps if folding.INT64_MIN <= steps <= folding.INT64_MAX else None


def convert(expression: Expression, kind: pa.DataType) -> Expression:
    """The expression with type `kind`, by one of the promotions of the language; literals at once, NULL as any type."""
    if expression.type == kind:  # type: ignore[attr-defined]  # every expression class has a type; the base leaves its place to them
        return expression
    if isinstance(expression, Literal):
        return _convert_literal(expression, kind)
    if isinstance(expression, Field) and expression.type == NULL:
        return dataclasses.replace(expression, type=kind)
    return Apply("cast", (expression,), kind, span=expression.span)


def _convert_literal(literal: Literal, kind: pa.DataType) -> Literal:
    if not literal.known:
        return Literal(literal.value, kind, span=literal.span)
    if kind == DOUBLE:
        return Literal(folding.finite(float(cast("int", literal.value))), kind, span=literal.span)
    return Literal(of_steps(math.floor(as_fraction(literal) / step(kind)), kind), kind, span=literal.span)


def type_of(expression: Expression) -> pa.DataType:
    """The canonical type of an expression."""
    return cast("Literal", expression).type


# ---------------------------------------------------------------------------------------------------------------------- promotion


def common_type(expressions: Sequence[Expression]) -> pa.DataType | None:
    """The type that values of all the expressions are promoted to, or None where there is none; NULL takes any type.

    Numbers: double if one is, else decimal if one is, else int64. Dates and timestamps without zone: the finest unit. Nothing else mixes, and nested
    types have no comparisons.
    """
    if any(family(type_of(expression)) == "nested" for expression in expressions):
        return None
    kinds = {type_of(expression) for expression in expressions} - {NULL}
    if len(kinds) <= 1:
        return kinds.pop() if kinds else NULL
    if all(map(is_number, kinds)):
        if DOUBLE in kinds:
            return DOUBLE
        digits = [decimal_digits(expression) for expression in expressions if type_of(expression) != NULL]
        return bounded_decimal(max(whole for whole, _ in digits), max(scale for _, scale in digits))
    if all(map(pa.types.is_duration, kinds)):
        return pa.duration(finest(kinds))
    if all(map(is_instant, kinds)):
        zones = {None if kind == DATE else kind.tz for kind in kinds}
        return pa.timestamp(finest(kinds), zones.pop()) if len(zones) == 1 else None
    return None


def finest(kinds: set[pa.DataType]) -> str:
    """The finest time unit among dates, timestamps and durations (a date counts in seconds)."""
    units = {"s" if kind == DATE else kind.unit for kind in kinds}
    return min(units, key=lambda unit: NANOSECONDS[unit])


def decimal_digits(expression: Expression) -> tuple[int, int]:
    """Digits before and behind the point of a number that is read as a decimal; an integer literal has as many as are written."""
    kind = type_of(expression)
    if pa.types.is_decimal(kind):
        return kind.precision - kind.scale, kind.scale
    if isinstance(expression, Literal) and isinstance(expression.value, int):
        return len(str(abs(expression.value))), 0
    return INT64_DIGITS, 0


def bounded_decimal(whole: int, scale: int) -> pa.DataType:
    """A decimal type with `scale` digits behind the point and `whole` before it, as far as 38 digits allow (more is overflow: NULL)."""
    if scale > DECIMAL_DIGITS:
        raise Mismatch(f"the result has {scale} digits behind the point, decimals have at most {DECIMAL_DIGITS} digits", _CAST_TO_DOUBLE)
    return pa.decimal128(max(1, min(DECIMAL_DIGITS, whole + scale)), scale)


_CAST_TO_DOUBLE = "make one operand a double: write the number with an exponent, or cast the column in the input"


def unify(expressions: Sequence[Expression], kind: pa.DataType) -> tuple[Expression, ...]:
    """All expressions with one type."""
    return tuple(convert(expression, kind) for expression in expressions)


# --------------------------------------------------------------------------------------------------------------------- arithmetic


def arithmetic(operator: str, left: Expression, right: Expression) -> Expression:
    """`left operator right` with its casts. Raises Mismatch."""
    kinds = type_of(left), type_of(right)
    if all(kind == NULL or is_number(kind) for kind in kinds):
        return _number_arithmetic(operator, left, right)
    left, right = (_instant(side) for side in (left, right))
    if pa.types.is_duration(type_of(left)) and is_instant(type_of(right)) and operator == "+":
        left, right = right, left
    shape = operator, _time_kind(type_of(left)), _time_kind(type_of(right))
    if shape not in _TIME_ARITHMETIC:
        written = f"`{operator}` of {describe(kinds[0])} and {describe(kinds[1])}"
        raise Mismatch(
            f"{written} has no meaning",
            "concat(x.a, x.b) joins texts"
            if operator == "+" and set(kinds) == {TEXT}
            else "numbers: + - * / %; times: time - time, time + duration, time - duration, duration + duration",
        )
    return _time_arithmetic(operator, left, right)


_TIME_ARITHMETIC = frozenset(
    {("-", "instant", "instant"), ("+", "instant", "duration"), ("-", "instant", "duration"), ("+", "duration", "duration")}
    | {("-", "duration", "duration")}
)


def _time_kind(kind: pa.DataType) -> str:
    return "instant" if is_instant(kind) else "duration" if pa.types.is_duration(kind) else "other"


def _instant(side: Expression) -> Expression:
    """A date as the timestamp of its first moment: times are computed with as timestamps."""
    return convert(side, pa.timestamp("s")) if type_of(side) == DATE else side


def _time_arithmetic(operator: str, left: Expression, right: Expression) -> Expression:
    kinds = type_of(left), type_of(right)
    unit = finest(set(kinds))
    both_instants = all(map(is_instant, kinds))
    if both_instants and (kinds[0].tz is None) != (kinds[1].tz is None):
        raise Mismatch(f"a {family(kinds[0])} and a {family(kinds[1])} cannot be subtracted", "give both a time zone, or neither")
    operands = tuple(convert(side, _with_unit(type_of(side), unit)) for side in (left, right))
    kind = pa.duration(unit) if both_instants else type_of(operands[0])
    return Apply(operator, operands, kind)


def _with_unit(kind: pa.DataType, unit: str) -> pa.DataType:
    return pa.duration(unit) if pa.types.is_duration(kind) else pa.timestamp(unit, kind.tz)


def _number_arithmetic(operator: str, left: Expression, right: Expression) -> Expression:
    sides = left, right
    kinds = {type_of(side) for side in sides} - {NULL} or {INT64}
    decimals = [pa.types.is_decimal(kind) for kind in kinds]
    if DOUBLE in kinds or (operator == "/" and not all(decimals)):
        return Apply(operator, unify(sides, DOUBLE), DOUBLE)
    if not any(decimals):
        return Apply(operator, unify(sides, INT64), INT64)
    (whole, scale), (other_whole, other_scale) = map(decimal_digits, sides)
    if operator in "*/":
        kind = (
            bounded_decimal(whole + other_whole, scale + other_scale)
            if operator == "*"
            else bounded_decimal(whole + other_scale, max(DIVISION_SCALE, scale, other_scale))
        )
        return Apply(operator, tuple(convert(side, bounded_decimal(*decimal_digits(side))) for side in sides), kind)
    kind = bounded_decimal(max(whole, other_whole) + (operator != "%"), max(scale, other_scale))
    return Apply(operator, unify(sides, kind), kind)


# -------------------------------------------------------------------------------------------------------------------- comparisons

FLIPPED: Mapping[str, str] = MappingProxyType({"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="})
"""The operator that says the same with its sides exchanged; its keys are all comparisons."""

NEGATED: Mapping[str, str] = MappingProxyType({"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"})
"""The operator that holds where a comparison fails, where no side is NULL."""


def compare(operator: str, left: Expression, right: Expression) -> Expression:
    """`left operator right` with its casts, of type bool. Raises Mismatch.

    A constant beside an exact value is rounded to the value's steps instead of casting the value: no type need hold both.
    """
    if isinstance(left, Literal) and not isinstance(right, Literal):
        return compare(FLIPPED[operator], right, left)
    kind = common_type((left, right))
    if kind is None:
        raise mismatch(left, right)
    if kind == NULL:
        kind = INT64
    if kind == BOOL and operator not in {"=", "!="}:
        raise Mismatch(f"booleans have no order: `{operator}` cannot compare them", "compare with = or !=")
    if is_exact(kind) and is_exact(type_of(left)) and isinstance(right, Literal) and right.known:
        if not isinstance(left, Literal):
            return _compare_exact(operator, left, right)
        if left.known:
            return Literal(folding.COMPARISONS[operator](as_fraction(left), as_fraction(right)), BOOL)
    return Apply(operator, unify((left, right), kind), BOOL)


_ROUNDED: Mapping[str, Callable[[Fraction], int]] = MappingProxyType({"<": math.ceil, "<=": math.floor, ">": math.floor, ">=": math.ceil})


def _compare_exact(operator: str, value: Expression, constant: Literal) -> Expression:
    kind = type_of(value)
    position = as_fraction(constant) / step(kind)
    if operator in _ROUNDED:
        steps = _ROUNDED[operator](position)
    elif position.denominator == 1:
        steps = int(position)
    else:
        return never(value) if operator == "=" else always(value)
    rounded = of_steps(steps, kind)
    if rounded is None:
        holds = operator == "!=" if operator in {"=", "!="} else (operator in {"<", "<="}) == (position > 0)
        return always(value) if holds else never(value)
    return Apply(operator, (value, Literal(rounded, kind, span=constant.span)), BOOL)


def never(value: Expression) -> Expression:
    """False for every value, but still a condition on its variable (which holds where the variable is empty)."""
    return Apply("=", (value, Literal(None, type_of(value))), BOOL)


def always(value: Expression) -> Expression:
    """True for every value that is not NULL."""
    return Apply("not", (Apply("is_null", (value,), BOOL),), BOOL)


# ----------------------------------------------------------------------------------------------------------------------- messages


def describe(kind: pa.DataType) -> str:
    """A type as messages name it."""
    return "NULL" if kind == NULL else str(kind)


def mismatch(left: Expression, right: Expression) -> Mismatch:
    """What to say when two values cannot be compared."""
    kinds = type_of(left), type_of(right)
    return Mismatch(f"{describe(kinds[0])} cannot be compared with {describe(kinds[1])}", _comparison_help(left, right))


def _comparison_help(left: Expression, right: Expression) -> str:
    constant, other = (left, right) if isinstance(left, Literal) else (right, left)
    families = family(type_of(constant)), family(type_of(other))
    if isinstance(constant, Literal):
        if constant.parameter and families[1] in GIVEN:
            return f"give `:{constant.parameter}` as {GIVEN[families[1]]}"
        if families == ("text", "number") and not _reads_as_number(str(constant.value)):
            return "write a number"
        found = _CONSTANT_HELP.get(families)
        if found is not None:
            return found.format(value=constant.value)
    if "nested" in families:
        return _other_type_help(next(kind for kind in (type_of(left), type_of(right)) if family(kind) == "nested"))
    return _FAMILY_HELP.get(frozenset(families), "there is no implicit cast: cast one of the columns in the input")


def _other_type_help(kind: pa.DataType) -> str:
    """What to do about a type that has no comparison."""
    if pa.types.is_struct(kind):
        return "compare a field inside it (x.path.to.field), or use IS NULL"
    kinds = ((pa.types.is_decimal, "decimals of at most 38 digits"), (pa.types.is_time, "integers"))
    instead = next((text for fits, text in kinds if fits(kind)), "numbers or text")
    return f"add a column of {instead} to the input, and compare that; this one can only be tested with IS NULL"


def _reads_as_number(text: str) -> bool:
    return text.replace(".", "", 1).isdecimal()


GIVEN: Mapping[str, str] = MappingProxyType(
    {
        "number": "a number",
        "text": "a str ('..')",
        "boolean": "a bool (TRUE or FALSE)",
        "date": "a date (DATE '2013-01-31')",
        "timestamp without zone": "a datetime without tzinfo (TIMESTAMP '2013-01-31 12:00:00')",
        "timestamp with zone": "a datetime with a tzinfo (TIMESTAMP '2013-01-31 12:00:00Z')",
        "duration": "a timedelta (5s)",
    }
)
"""By family what gives such a value, in Python and (in parentheses) where the language's literals are written: SQL, the command line."""

_CONSTANT_HELP: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("text", "number"): "write the number without quotes: {value}",
        ("number", "text"): "write the text in quotes: '{value}', or cast the column to numbers in the input",
        ("boolean", "text"): "write the text in quotes",
        ("text", "boolean"): "write TRUE or FALSE without quotes",
        ("number", "boolean"): "write TRUE or FALSE, or the attribute alone",
        ("text", "date"): "write DATE '{value}'",
        ("text", "timestamp without zone"): "write TIMESTAMP '{value}'",
        ("text", "timestamp with zone"): "write TIMESTAMP '{value}' with its offset, as in TIMESTAMP '2013-01-31 12:00:00Z'",
        ("number", "date"): "write DATE '2013-01-31'",
        ("number", "timestamp without zone"): "write TIMESTAMP '2013-01-31 12:00:00'",
        ("number", "timestamp with zone"): "write TIMESTAMP '2013-01-31 12:00:00Z'",
        ("number", "duration"): "write the unit, as in {value}s",
        ("duration", "number"): "write a bare number, in the unit of the column",
        ("timestamp without zone", "timestamp with zone"): "write the offset, as in TIMESTAMP '2013-01-31 12:00:00Z'",
        ("timestamp with zone", "timestamp without zone"): "write the timestamp without an offset: the column has no zone",
        ("date", "timestamp with zone"): "write a TIMESTAMP with its offset, as in TIMESTAMP '2013-01-31 00:00:00Z'",
        ("timestamp with zone", "date"): "write DATE, or a TIMESTAMP without an offset",
    }
)
"""By the families of the constant and of what it meets."""

_FAMILY_HELP: Mapping[frozenset[str], str] = MappingProxyType(
    {
        frozenset({"timestamp without zone", "timestamp with zone"}): "give both columns a time zone, or neither: cast one in the input",
        frozenset({"timestamp without zone", "duration"}): "a duration compares with a difference of times: y.$time - x.$time",
        frozenset({"timestamp with zone", "duration"}): "a duration compares with a difference of times: y.$time - x.$time",
    }
)
