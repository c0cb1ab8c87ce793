"""Expressions over columns: one implementation per operator of the plan, total and two-valued.

Comes in: a typed expression of the plan and a source of columns. Goes out: a `Column` (flat NumPy values with a validity mask) or, for text
and decimals, an Arrow array. No operator raises, whatever the rows hold: overflow and division by zero are NULL, NaN is NULL, comparisons
with NULL are false, text compares by its UTF-8 bytes (language.md, Values). Which rows make which letter is `predicates`' business.
"""

from __future__ import annotations

import datetime as dt
import decimal
import functools
import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.logical import calendar, time_zones
from cepheid.logical.plan import HALVES, Apply, Field, Index, Literal, Time
from cepheid.records import record
from cepheid.schema import NANOSECONDS, is_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cepheid.logical.plan import Expression

Mask: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
FEW_OPTIONS = 8
"""Up to so many literals, IN is a chain of comparisons; above, a search in a sorted array."""

DECIMALS = decimal.Context(prec=160, rounding=decimal.ROUND_HALF_UP, Emin=-999999, Emax=999999)
"""Wide enough that sums and products of two decimal128 are exact; quotients, of up to 76 digits before the point and 38 behind it, are rounded
half up to the scale that binding fixed."""

DOUBLE_DIGITS = 15
"""Digits of a decimal that is the quotient of two doubles, both exact: the digits, and a power of ten."""


@record
class Column:
    """Values of a fixed-width type: bool, integers (also for dates, timestamps and durations), floating point.

    values: shape (n,), or () for a constant. valid: bool of the same shape, or None where nothing is NULL. Floating point needs no mask:
    its NULL is NaN.
    """

    values: np.ndarray[Any, Any]
    valid: Mask | None = None

    def truth(self) -> Mask:
        """A bool column as a condition: NULL counts as false."""
        return self.values if self.valid is None else self.values & self.valid

    def null(self) -> Mask:
        """Where the column is NULL."""
        if self.values.dtype.kind == "f":
            return cast("Mask", np.isnan(self.values))
        if self.valid is None:
            return np.zeros(self.values.shape, np.bool_)
        return ~self.valid


Value: TypeAlias = Any
"""A `Column`, or an Arrow array or scalar of type utf8 or decimal128."""


class Columns(Protocol):
    """Where `evaluate` finds the leaves of an expression, and what somebody has computed before."""

    def field(self, field: Field) -> Value:
        """The values of an attribute, read as its canonical type."""

    def time(self, time: Time) -> Value:
        """The event times."""

    def known(self, expression: Expression) -> Value | None:
        """The value of a whole expression, if it has been computed."""


def evaluate(expression: Expression, columns: Columns) -> Value:
    """The values of an expression, one per row (or a single constant, shape ()).

    Raises KeyError for an operator that is not in `OPERATIONS`, and nothing for any data. Linear in rows times nodes.
    """
    known = columns.known(expression)
    if known is not None:
        return known
    if isinstance(expression, Apply):
        arguments = [evaluate(argument, columns) for argument in expression.arguments]
        with np.errstate(all="ignore"):
            return OPERATIONS[expression.operator](arguments, expression)
    if isinstance(expression, Literal):
        return literal(expression.value, expression.type)
    if isinstance(expression, Field):
        return columns.field(expression)
    if isinstance(expression, Time):
        return columns.time(expression)
    assert isinstance(expression, Index), expression
    msg = "positions are not known where predicates are evaluated"
    raise TypeError(msg)


def prepared(expression: Expression, known: Mapping[Expression, int]) -> Callable[[Sequence[Value]], Value]:
    """What `evaluate` does, for an expression over columns that come in this order. PERF: for a few rows, to look at it again costs most."""
    place = known.get(expression)
    if place is not None:
        return lambda columns: columns[place]
    if isinstance(expression, Literal):
        constant = literal(expression.value, expression.type)
        return lambda _: constant
    assert isinstance(expression, Apply)
    operation, parts = OPERATIONS[expression.operator], [prepared(argument, known) for argument in expression.arguments]
    return lambda columns: operation([part(columns) for part in parts], expression)


# ------------------------------------------------------------------------------------------------------------------ reading Arrow


def in_arrow(kind: pa.DataType) -> bool:
    """Whether values of this type stay Arrow arrays: text and decimals."""
    return bool(is_text(kind) or pa.types.is_decimal(kind))


def bits(buffer: pa.Buffer, offset: int, length: int) -> Mask:
    """`length` bits of an Arrow bitmap from bit `offset` on, as bools."""
    first = offset >> 3
    data = np.frombuffer(buffer, np.uint8, count=((offset + length + 7) >> 3) - first, offset=first)
    unpacked = np.unpackbits(data, bitorder="little")
    return unpacked[offset & 7 : (offset & 7) + length].view(np.bool_)


def validity(array: pa.Array) -> Mask | None:
    """Which values are not NULL, or None where none is."""
    if array.null_count == 0:
        return None
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.bool_)
    buffer = array.buffers()[0]
    return None if buffer is None else bits(buffer, array.offset, len(array))


def decimal_halves(values: pa.Array | pa.ChunkedArray) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The lower and the upper 64 bits of each of some decimals, as int64; of NULL anything."""
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    halves = np.frombuffer(array.buffers()[1] or b"", np.int64)[2 * array.offset : 2 * (array.offset + len(array))].reshape(-1, 2)
    return halves[:, 0], halves[:, 1]


def plain(array: pa.Array) -> pa.Array:
    """The array without dictionary, run-end or extension wrapping, and text as `string` or `large_string`."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    return array


def one_chunk(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array."""
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)


def no_events(schema: pa.Schema) -> pa.Table:
    """A table of a schema without rows; Arrow's own `empty_table` has none with unions, or with extension types inside others."""
    return pa.table([pa.nulls(0, kind) for kind in schema.types], schema=schema)


WIDTHS: Mapping[int, type[np.generic]] = MappingProxyType({8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64})
UNSIGNED: Mapping[int, type[np.generic]] = MappingProxyType({8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64})
FLOATS: Mapping[int, type[np.generic]] = MappingProxyType({16: np.float16, 32: np.float32, 64: np.float64})


def raw(array: pa.Array) -> np.ndarray[Any, Any]:
    """The values of a plain fixed-width array without a copy (a bool array is unpacked); what stands under NULL is arbitrary."""
    kind = array.type
    if pa.types.is_null(kind):
        return np.zeros(len(array), np.int64)
    data = array.buffers()[1]
    if data is None:
        return np.zeros(0, np.int64)
    if pa.types.is_boolean(kind):
        return bits(data, array.offset, len(array))
    table = UNSIGNED if pa.types.is_unsigned_integer(kind) else FLOATS if pa.types.is_floating(kind) else WIDTHS
    dtype = np.dtype(table[kind.bit_width])
    return np.frombuffer(data, dtype, count=len(array), offset=array.offset * dtype.itemsize)


def _flat(kind: pa.DataType) -> bool:
    """Whether `raw` can read values of this type."""
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    return bool(number or (pa.types.is_temporal(kind) and not pa.types.is_interval(kind)))


def read(array: pa.Array, canonical: pa.DataType) -> Value:
    """An input column as values of its canonical type: integers of any width, floats with NaN as NULL, dates as days, text, decimals.

    Of anything else (binaries, containers) only IS NULL can be asked; its values are not read.
    """
    array = plain(array)
    if in_arrow(canonical):
        return array if array.type == canonical or is_text(array.type) else array.cast(canonical)
    if not _flat(array.type):  # also type null: bool goes together with every type of the other operand but double, whose NULL is NaN
        if pa.types.is_floating(canonical):
            return Column(np.full(len(array), np.nan))
        return Column(np.zeros(len(array), np.bool_), np.asarray(array.is_valid()))
    values, valid = raw(array), validity(array)
    if pa.types.is_floating(canonical):
        if values.dtype.kind != "f":
            values = values.astype(np.float64)
        return Column(values if valid is None else np.where(valid, values, np.nan))
    if values.dtype == np.uint64:
        fits = values <= np.uint64(INT64_MAX)
        return Column(values.astype(np.int64), fits if valid is None else fits & valid)
    if pa.types.is_date64(array.type) and pa.types.is_date(canonical):
        values = values // 86_400_000
    return Column(values, valid)


def literal(value: object, kind: pa.DataType) -> Value:
    """A constant of a canonical type."""
    if in_arrow(kind):
        return pa.scalar(value, kind)
    if value is None:
        floating = pa.types.is_floating(kind)
        # A bool that were an integer would give integers beside other bools, in coalesce.
        return Column(np.array(np.nan)) if floating else Column(np.array(False if pa.types.is_boolean(kind) else 0), np.array(False))
    value = plain_constant(value)
    return Column(np.array(value, np.bool_ if pa.types.is_boolean(kind) else np.float64 if pa.types.is_floating(kind) else np.int64))


def plain_constant(value: object) -> Any:
    """A constant as values of events are: dates are days."""
    return value.toordinal() - EPOCH_DAY if isinstance(value, dt.date) else value


def _from_arrow(result: Any) -> Column:
    """An Arrow bool or integer result as a Column: NULL bools become false, for they come from comparisons."""
    if isinstance(result, pa.Scalar):
        value = result.as_py() or False if pa.types.is_boolean(result.type) else result.as_py()
        return cast("Column", literal(value, result.type))
    if isinstance(result, pa.ChunkedArray):
        result = result.combine_chunks()
    if pa.types.is_boolean(result.type):
        values = raw(result)
        valid = validity(result)
        return Column(values if valid is None else values & valid)
    return Column(raw(result), validity(result))


# --------------------------------------------------------------------------------------------------------------------- operations


def both(left: Mask | None, right: Mask | None) -> Mask | None:
    """Valid where both are."""
    if left is None:
        return right
    return left if right is None else left & right


def _all_valid(arguments: Sequence[Column]) -> Mask | None:
    return functools.reduce(both, (argument.valid for argument in arguments), None)


def _narrow(values: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An integer constant in the narrower type of the column it is compared with, where it fits: no widening copy of the column."""
    if values.ndim == 0 and values.dtype.kind in "iu" and other.dtype.kind in "iu" and other.dtype != values.dtype:
        limits = np.iinfo(other.dtype)
        if limits.min <= int(values) <= limits.max:
            return values.astype(other.dtype)
    return values


def _compare(name: str) -> Callable[[list[Value], Apply], Column]:
    ufunc: Any = {"=": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}[name]
    arrow = {"=": "equal", "!=": "not_equal", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"}[name]

    def compare(arguments: list[Value], _: Apply) -> Column:
        left, right = arguments
        if not isinstance(left, Column):
            return _from_arrow(pc.call_function(arrow, _same_text(left, right)))
        first, second = _narrow(left.values, right.values), _narrow(right.values, left.values)
        result = ufunc(first, second)
        if name == "!=" and "f" in (first.dtype.kind, second.dtype.kind):
            result = result & (first == first) & (second == second)  # noqa: PLR0124 - NaN is NULL
        valid = both(left.valid, right.valid)
        return Column(result if valid is None else result & valid)

    return compare


def _same_text(*arguments: Value) -> list[Value]:
    """Text arguments in one Arrow type (string or large_string); decimals already have one."""
    kinds = {argument.type for argument in arguments}
    if len(kinds) <= 1 or not all(is_text(kind) for kind in kinds):
        return list(arguments)
    return [argument.cast(pa.large_string()) for argument in arguments]


def _and(arguments: list[Value], _: Apply) -> Column:
    return Column(functools.reduce(np.logical_and, (argument.truth() for argument in arguments)))


def _or(arguments: list[Value], _: Apply) -> Column:
    return Column(functools.reduce(np.logical_or, (argument.truth() for argument in arguments)))


def _not(arguments: list[Value], _: Apply) -> Column:
    return Column(~arguments[0].truth())


def _in(arguments: list[Value], node: Apply) -> Column:
    value, options = arguments[0], arguments[1:]
    if not isinstance(value, Column):
        known = [option for option in options if option.is_valid]
        if isinstance(value, pa.Scalar):
            return Column(np.array(value.is_valid and any(value.as_py() == option.as_py() for option in known)))
        wanted = pa.array([option.as_py() for option in known], value.type)
        return _from_arrow(pc.is_in(value, value_set=wanted, skip_nulls=True))
    if len(options) <= FEW_OPTIONS:
        equal = _compare("=")
        return Column(functools.reduce(np.logical_or, (equal([value, option], node).values for option in options)))
    wanted_values = np.array([option.values for option in options if not option.null()])
    found = np.isin(value.values, wanted_values)
    return Column(found if value.valid is None else found & value.valid)


def like_expression(pattern: str) -> str:
    """A LIKE pattern as an anchored regular expression: % is any text, _ any one code point, nothing else is special."""
    parts = re.split(r"([%_])", pattern)
    translated = ("(?:.*)" if part == "%" else "." if part == "_" else _RE2_SPECIAL.sub(r"\\\g<0>", part) for part in parts)
    return r"(?s)\A(?:" + "".join(translated) + r")\z"


_RE2_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$]")


def _like(arguments: list[Value], _: Apply) -> Column:
    value, pattern = arguments[0], arguments[1].as_py()
    if pattern is None:
        return Column(np.array(False))
    inner = pattern.strip("%")
    if "%" not in inner and "_" not in inner and inner:
        before, after = pattern.startswith("%"), pattern.endswith("%")
        function = {(False, False): "equal", (False, True): "starts_with", (True, False): "ends_with", (True, True): "match_substring"}
        if not (before or after):
            return _from_arrow(pc.call_function("equal", _same_text(value, pa.scalar(inner, pa.string()))))
        return _from_arrow(pc.call_function(function[before, after], [value], pc.MatchSubstringOptions(inner)))
    return _from_arrow(pc.match_substring_regex(value, like_expression(pattern)))


def _is_null(arguments: list[Value], _: Apply) -> Column:
    value = arguments[0]
    if isinstance(value, Column):
        return Column(value.null())
    return _from_arrow(pc.is_null(value))


def _coalesce(arguments: list[Value], node: Apply) -> Value:
    if not isinstance(arguments[0], Column):
        return pc.coalesce(*_same_text(*arguments))
    result = arguments[-1]
    for value in reversed(arguments[:-1]):
        null = value.null()
        valid = None if pa.types.is_floating(node.type) else ~null | ~result.null()
        result = Column(np.where(null, result.values, value.values), valid)
    return result


def _length(arguments: list[Value], _: Apply) -> Column:
    return _from_arrow(pc.utf8_length(arguments[0]))


def _text_function(name: str) -> Callable[[list[Value], Apply], Value]:
    return lambda arguments, _: pc.call_function(name, arguments)


# --------------------------------------------------------------------------------------------------------------------- arithmetic


def _wide(value: Column) -> np.ndarray[Any, Any]:
    return value.values.astype(np.float64 if value.values.dtype.kind == "f" else np.int64, copy=False)


def _double(values: np.ndarray[Any, Any], *, finite: Sequence[np.ndarray[Any, Any]]) -> Column:
    """A floating result: infinite where every operand was finite is overflow, hence NULL."""
    overflow = np.isinf(values)
    if overflow.any():
        for operand in finite:
            overflow = overflow & np.isfinite(operand)
        values = np.where(overflow, np.nan, values)
    return Column(values)


def _integer(values: np.ndarray[Any, Any], fits: Mask, valid: Mask | None) -> Column:
    valid = valid if fits.all() else both(fits, valid)
    # A constant operand says of all rows at once that they are NULL: NULL itself, or a division by zero.
    return Column(values, valid if valid is None or valid.shape == values.shape else np.broadcast_to(valid, values.shape))


def _add(left: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], Mask]:
    total = left + right
    return total, ((left ^ total) & (right ^ total)) >= 0


def _subtract(left: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], Mask]:
    total = left - right
    return total, ((left ^ right) & (left ^ total)) >= 0


def _multiply(left: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], Mask]:
    total = left * right
    divisor = np.where(left == 0, 1, left)
    wrong = (left != 0) & ((total // divisor != right) | ((left == -1) & (right == INT64_MIN)))
    return total, ~wrong


def _remainder(left: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], Mask]:
    return np.fmod(left, np.where(right == 0, 1, right)), right != 0


INTEGERS: Mapping[str, Callable[..., tuple[np.ndarray[Any, Any], Mask]]] = MappingProxyType(
    {"+": _add, "-": _subtract, "*": _multiply, "%": _remainder}
)
DOUBLES: Mapping[str, Any] = MappingProxyType({"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "%": np.fmod})


ARROW: Mapping[str, Any] = MappingProxyType({"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked})
"""Arrow's functions of decimals that neither round nor overflow: a result that may not fit in 38 digits is an error."""


def _arithmetic(name: str) -> Callable[[list[Value], Apply], Value]:
    def apply(arguments: list[Value], node: Apply) -> Value:
        if not isinstance(arguments[0], Column):
            return _exact(name, arguments, node.type)
        left, right = _wide(arguments[0]), _wide(arguments[1])
        if pa.types.is_floating(node.type):
            if name in "/%":
                right = np.where(right == 0, np.nan, right)
            return _double(DOUBLES[name](left, right), finite=(left, right))
        values, fits = INTEGERS[name](left, right)
        return _integer(values, fits, _all_valid(arguments))

    return apply


def _exact(name: str, arguments: list[Value], kind: pa.DataType) -> Value:
    """Decimal arithmetic: exact, then rounded half up to the type's scale; one Python Decimal at a time (microseconds) where Arrow is not exact."""
    for made in (pa.decimal128, pa.decimal256) if name in ARROW else ():
        try:
            return _fitted(ARROW[name](*(each.cast(made(each.type.precision, each.type.scale)) for each in arguments)), kind)
        except pa.ArrowInvalid:
            pass  # Such decimals may have too few digits for some result.
    operation = {
        "+": DECIMALS.add, "-": DECIMALS.subtract, "*": DECIMALS.multiply, "/": DECIMALS.divide, "%": DECIMALS.remainder
    }[name]  # fmt: skip

    def one(left: decimal.Decimal | None, right: decimal.Decimal | None) -> decimal.Decimal | None:
        if left is None or right is None or (name in "/%" and right == 0):
            return None
        return to_scale(operation(left, right), kind)

    return _map(one, arguments, kind)


def to_scale(value: decimal.Decimal, kind: pa.DataType) -> decimal.Decimal | None:
    """`value` with the scale of a decimal type, rounded half up; None where it has too many digits."""
    rounded = DECIMALS.quantize(value, decimal.Decimal(1).scaleb(-kind.scale))
    return rounded if len(rounded.as_tuple().digits) <= kind.precision else None


def _map(function: Callable[..., Any], arguments: list[Value], kind: pa.DataType) -> Value:
    """`function` on each row of Arrow values; constants are repeated."""
    lengths = [len(argument) for argument in arguments if isinstance(argument, pa.Array | pa.ChunkedArray)]
    if not lengths:
        return pa.scalar(function(*(argument.as_py() for argument in arguments)), kind)
    lists = [
        argument.to_pylist() if isinstance(argument, pa.Array | pa.ChunkedArray) else [argument.as_py()] * lengths[0]
        for argument in arguments
    ]
    return pa.array([function(*row) for row in zip(*lists, strict=True)], kind)


def _negate(arguments: list[Value], node: Apply) -> Value:
    value = arguments[0]
    if not isinstance(value, Column):
        return pc.negate(value).cast(node.type)
    values = _wide(value)
    if values.dtype.kind == "f":
        return Column(-values)
    return _integer(-values, values != INT64_MIN, value.valid)


def _abs(arguments: list[Value], node: Apply) -> Value:
    value = arguments[0]
    if not isinstance(value, Column):
        return pc.abs(value).cast(node.type)
    values = _wide(value)
    if values.dtype.kind == "f":
        return Column(np.abs(values))
    return _integer(np.abs(values), values != INT64_MIN, value.valid)


def _rounding(name: str, ufunc: Any) -> Callable[[list[Value], Apply], Value]:
    mode = {"floor": decimal.ROUND_FLOOR, "ceil": decimal.ROUND_CEILING}[name]

    def apply(arguments: list[Value], node: Apply) -> Value:
        value = arguments[0]
        if isinstance(value, Column):
            return Column(ufunc(value.values)) if value.values.dtype.kind == "f" else value
        whole = decimal.Decimal(1)
        return _map(
            lambda number: None if number is None else to_scale(number.quantize(whole, mode, DECIMALS), node.type), [value], node.type
        )

    return apply


# -------------------------------------------------------------------------------------------------------------------------- casts


def _cast(arguments: list[Value], node: Apply) -> Value:
    value, target = arguments[0], node.type
    source = cast("Apply", node.arguments[0]).type
    if source == target:
        return value
    if pa.types.is_decimal(source) and not pa.types.is_decimal(target):
        return _double_of_decimal(value)
    if not isinstance(value, Column):
        return _rescaled(value, target)
    if pa.types.is_floating(target):
        values = value.values.astype(np.float64)
        return Column(values if value.valid is None else np.where(value.valid, values, np.nan))
    if pa.types.is_decimal(target):
        return _decimal_of_integer(value, target)
    scale = np.array(_steps(source) // _steps(target))
    values, fits = _multiply(_wide(value), scale)
    return _integer(values, fits, value.valid)


def _steps(kind: pa.DataType) -> int:
    """Nanoseconds in one step of a date, timestamp or duration."""
    return 86_400 * NANOSECONDS["s"] if pa.types.is_date(kind) else NANOSECONDS[kind.unit]


def _rescaled(value: Value, target: pa.DataType) -> Value:
    """Decimals in another decimal type: rounded half up, NULL where they do not fit."""
    source = value.type
    if target.scale >= source.scale:
        return _fitted(value, target)
    return _map(lambda number: None if number is None else to_scale(number, target), [value], target)


def _fitted(value: Value, target: pa.DataType) -> Value:
    """Decimals in a type with as many digits behind the point, or more: NULL where they have too many before it."""
    whole = _whole_digits(target)
    if _whole_digits(value.type) > whole:
        # Else Arrow refuses all where one value does not fit, or lets it wrap around.
        fits = pc.less(pc.abs(value), pa.scalar(decimal.Decimal(10) ** whole, value.type))
        value = pc.if_else(fits, value, pa.scalar(None, value.type))
    return value.cast(target)


def _whole_digits(kind: pa.DataType) -> int:
    """Digits of a decimal type before the point."""
    return int(kind.precision - kind.scale)


def _double_of_decimal(value: Value) -> Column:
    if isinstance(value, pa.Scalar):
        return Column(np.array(float(value.as_py()) if value.is_valid else np.nan))
    if max(value.type.precision, value.type.scale) <= DOUBLE_DIGITS:
        lower, upper = decimal_halves(value)
        if (upper == lower >> 63).all():
            return Column(np.where(value.is_valid(), lower / 10.0**value.type.scale, np.nan))
    return Column(np.array([np.nan if number is None else float(number) for number in value.to_pylist()], np.float64))


def _decimal_of_integer(value: Column, target: pa.DataType) -> Value:
    numbers, valid = np.atleast_1d(_wide(value)), np.atleast_1d(~value.null())
    limit = 10 ** _whole_digits(target)
    if limit <= INT64_MAX:
        valid = valid & (numbers > -limit) & (numbers < limit)
    array = pa.array(numbers, pa.int64(), mask=~valid).cast(pa.decimal128(38, 0)).cast(target)
    return array if value.values.ndim else array[0]


def _case(arguments: list[Value], node: Apply) -> Value:
    *pairs, result = arguments
    for holds, value in reversed(list(zip(pairs[::2], pairs[1::2], strict=True))):
        true = holds.truth()
        if in_arrow(node.type):
            condition = pa.scalar(bool(true)) if true.ndim == 0 else pa.array(true)
            result = pc.if_else(condition, *_same_text(value, result))
            continue
        valid = None if pa.types.is_floating(node.type) else np.where(true, ~value.null(), ~result.null())
        result = Column(np.where(true, value.values, result.values), valid)
    return result


def _concat(arguments: list[Value], _: Apply) -> Value:
    texts = _same_text(*arguments)
    return pc.binary_join_element_wise(*texts, pa.scalar("", texts[0].type))


def _part(name: str) -> Callable[[list[Value], Apply], Column]:
    def of(arguments: list[Value], node: Apply) -> Column:
        kind = cast("Apply", node.arguments[0]).type
        value = arguments[0]
        return Column(calendar.part(name, value.values.astype(np.int64), calendar.steps_per_day(kind)), value.valid)

    return of


def _local_time(arguments: list[Value], node: Apply) -> Column:
    """The days of all values are looked up once each."""
    value, zone = arguments[0], arguments[1].as_py()
    steps, per_second = value.values.astype(np.int64), calendar.steps_per_second(node.type)
    seconds = steps // per_second
    days, places = np.unique(seconds // calendar.DAY, return_inverse=True)
    found = np.array([time_zones.offsets_of_day(zone, day) for day in days.tolist()], np.int64).reshape(-1, 3)
    before, change, after = (found[:, column][places].reshape(steps.shape) for column in range(3))
    offsets = np.where(seconds % calendar.DAY < change, before, after)
    shown, fits = _add(steps, offsets * per_second)
    return _integer(shown, fits, value.valid)


def of_halves(upper: Column, lower: Column, kind: pa.DataType) -> pa.Array:
    """Decimals of these halves."""
    words = np.stack(np.broadcast_arrays(lower.values, upper.values), axis=-1).astype(np.int64)
    return pa.Array.from_buffers(kind, len(words), [pa.array(~lower.null()).buffers()[1], pa.py_buffer(words)])


def _half(number: int) -> Callable[[list[Value], Apply], Column]:
    def of(arguments: list[Value], _: Apply) -> Column:
        (value,) = arguments
        if isinstance(value, pa.Scalar):
            return Column(decimal_halves(pa.array([value.as_py()], value.type))[number][0], np.array(value.is_valid))
        value = value.combine_chunks() if isinstance(value, pa.ChunkedArray) else value
        return Column(decimal_halves(value)[number], validity(value))

    return of


OPERATIONS: Mapping[str, Callable[[list[Value], Apply], Value]] = MappingProxyType(
    {
        "and": _and,
        "or": _or,
        "not": _not,
        **{name: _compare(name) for name in ("=", "!=", "<", "<=", ">", ">=")},
        "in": _in,
        "like": _like,
        "is_null": _is_null,
        "cast": _cast,
        **{name: _arithmetic(name) for name in ("+", "-", "*", "/", "%")},
        "negate": _negate,
        "abs": _abs,
        "floor": _rounding("floor", np.floor),
        "ceil": _rounding("ceil", np.ceil),
        "case": _case,
        "coalesce": _coalesce,
        "length": _length,
        "lower": _text_function("ascii_lower"),
        "upper": _text_function("ascii_upper"),
        "concat": _concat,
        "local_time": _local_time,
        **{name: _part(name) for name in calendar.PARTS},
        **{name: _half(1 - number) for number, name in enumerate(HALVES)},
    }
)
"""One function per key of `plan.OPERATORS`, and of HALVES: from the values of the arguments, and the node for its type."""
