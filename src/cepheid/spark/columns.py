"""Expressions of the plan as Spark columns: the same letters as the engine's Arrow printer, by the same definitions.

Comes in: typed expressions (`logical.plan`) about one event. Goes out: `Column`s that Catalyst evaluates before the shuffle. They are total
whatever the row, the session's ANSI mode, its time zone and the columns' collations (language.md, Values), which Spark by itself is not:

- arithmetic is `try_*`; NaN is NULL, as is a double that overflows, on the way in and out;
- timestamps and durations are computed with as integers (steps of their unit): Spark subtracts and adds them by the session's calendar;
- text with a collation is compared as UTF8_BINARY; LIKE's backslash is escaped away; lower and upper are translations of ASCII letters;
- a comparison with NULL is NULL while only truth is asked for (so that sources still understand it), and becomes false below NOT.
"""

from __future__ import annotations

import datetime as dt
import functools
import math
import operator
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the name that everybody gives this module
from pyspark.sql import types as spark_types

from cepheid.logical import calendar, time_zones
from cepheid.logical.plan import Apply, Expression, Field, Literal, Time
from cepheid.schema import NANOSECONDS
from cepheid.spark.tasks.bounds import MICROSECONDS_PER_DAY
from cepheid.spark.versions import arrow_column, try_cast, try_mod

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import Column

UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
LOWER = UPPER.lower()
WHOLE_DOUBLES = 2.0**52
"""From here on every double is a whole number; below, Spark's floor and ceil, which give integers of 64 bits, are exact."""

MAX_DECIMAL_DIGITS = 38
EXACT_DOUBLE_DIGITS = 15
"""Decimals of so many digits become doubles in one rounding; Spark rounds longer ones twice."""

EPOCH_TEXT = "1970-01-01 00:00:00"
EPOCH_DAY = dt.date(1970, 1, 1)


class ColumnPrinter:
    """Prints expressions as columns of one DataFrame.

    fields: the DataFrame's schema. names: for each attribute of the query its column there (default: its own name); time: the attribute of
    event time. `condition` is the method for filters and letters, `truth` for a bool that is never NULL, `value` for anything else.
    """

    def __init__(self, fields: spark_types.StructType, *, names: Mapping[str, str] | None = None, time: str | None = None) -> None:
        self._types = {field.name: field.dataType for field in fields.fields}
        self._names = names
        self._time = time

    def condition(self, expression: Expression) -> Column:
        """A boolean column that is true exactly where the expression is; elsewhere false or NULL."""
        if isinstance(expression, Apply) and expression.operator in CONDITIONS:
            return CONDITIONS[expression.operator](self, expression)
        return self.value(expression)

    def truth(self, expression: Expression) -> Column:
        """A boolean column, true or false, never NULL."""
        return F.coalesce(self.condition(expression), F.lit(False))

    def value(self, expression: Expression) -> Column:
        """The value of an expression, NULL or of its type: int64 as long, timestamps and durations as long (steps of their unit)."""
        if isinstance(expression, Literal):
            return _literal(expression)
        if isinstance(expression, Field | Time):
            return self._field(expression)
        assert isinstance(expression, Apply), expression
        if expression.operator in CONDITIONS:
            return self.truth(expression)
        return VALUES[expression.operator](self, expression)

    def values(self, node: Apply) -> list[Column]:
        """The values of all arguments."""
        return [self.value(argument) for argument in node.arguments]

    def native(self, expression: Expression) -> Column:
        """A leaf as the source has it, without what would hide it from a data source's own filters (NaN stays NaN)."""
        if isinstance(expression, Literal):
            return _native_literal(expression)
        column, kind = self.stored(expression)
        return column.cast("double") if isinstance(kind, spark_types.FloatType) else column

    def stored(self, expression: Expression) -> tuple[Column, spark_types.DataType]:
        """The input column (or the field inside it) of a leaf, text as UTF8_BINARY, and its type in Spark."""
        assert isinstance(expression, Field | Time), expression
        path = expression.path if isinstance(expression, Field) else (self._time or "",)
        name = self._names[path[0]] if self._names is not None else path[0]
        column, kind = column_named(name), self._types[name]
        for step in path[1:]:
            kind = cast("spark_types.StructType", kind)[step].dataType
            column = column.getField(step)
        return binary_text(column, kind), kind

    def _field(self, expression: Expression) -> Column:
        column, kind = self.stored(expression)
        target = expression.type  # type: ignore[attr-defined]
        if pa.types.is_integer(target):
            return column.cast("long")
        if pa.types.is_floating(target):
            return no_nan(column.cast("double"))
        if pa.types.is_decimal(target):
            return try_cast(column, kind, decimal_type(target))
        if is_steps(target):
            return _scaled(_microseconds(column, kind), "us", target.unit)
        return column


def column_named(name: str) -> Column:
    """The column of exactly this name: dots and backticks in it are part of the name."""
    return F.col("`" + name.replace("`", "``") + "`")


def binary_text(column: Column, kind: spark_types.DataType) -> Column:
    """A text column without its collation; any other column as it is."""
    return column if is_binary_text(kind) else F.collate(column, BINARY)


def is_binary_text(kind: spark_types.DataType) -> bool:
    """Whether values of a type are no text, or text that Spark compares by its bytes."""
    return not isinstance(kind, spark_types.StringType) or getattr(kind, "collation", BINARY) == BINARY


BINARY = "UTF8_BINARY"


def no_nan(column: Column) -> Column:
    """A double with NULL for NaN."""
    return F.when(~F.isnan(column), column)


def decimal_type(kind: pa.DataType) -> spark_types.DecimalType:
    """Spark's type for a decimal128."""
    return spark_types.DecimalType(kind.precision, kind.scale)


def is_steps(kind: pa.DataType) -> bool:
    """Whether values of this type are computed with as integers: steps of a unit."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_duration(kind))


# --------------------------------------------------------------------------------------------------------------------------- leaves


def _literal(node: Literal) -> Column:
    value, kind = node.value, node.type
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return F.lit(None).cast(_spark_type(kind))
    if pa.types.is_decimal(kind):
        return F.lit(format(Decimal(str(value)), "f")).cast(decimal_type(kind))
    if pa.types.is_integer(kind) or is_steps(kind):
        return F.lit(value).cast("long")
    if pa.types.is_date32(kind):
        return F.date_from_unix_date(F.lit((cast("dt.date", value) - EPOCH_DAY).days))
    return F.lit(float(cast("float", value))) if pa.types.is_floating(kind) else F.lit(value)


def _spark_type(kind: pa.DataType) -> spark_types.DataType:
    """The type of a value column: what `ColumnPrinter.value` gives for an expression of this Arrow type."""
    if pa.types.is_decimal(kind):
        return decimal_type(kind)
    if pa.types.is_boolean(kind) or pa.types.is_null(kind):
        return spark_types.BooleanType()
    if pa.types.is_floating(kind):
        return spark_types.DoubleType()
    if pa.types.is_date32(kind):
        return spark_types.DateType()
    return spark_types.LongType() if pa.types.is_integer(kind) or is_steps(kind) else spark_types.StringType()


def _native_literal(node: Literal) -> Column:
    """A literal of Spark's own type, for comparisons with a stored column."""
    if not pa.types.is_timestamp(node.type):
        return _literal(node)
    microseconds = cast("int", node.value)
    if node.type.tz is not None:
        return F.timestamp_micros(F.lit(microseconds).cast("long"))
    moment = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=microseconds)  # noqa: DTZ001 - a time without zone
    return F.lit(moment.isoformat(sep=" ")).cast("timestamp_ntz")


def _is_null_literal(expression: Expression) -> bool:
    return isinstance(expression, Literal) and expression.value is None


def _is_native(expression: Expression) -> bool:
    """Whether a leaf may be compared as the source has it."""
    if isinstance(expression, Literal):
        kind = expression.type
        if not is_steps(kind):
            return True
        in_calendar = abs(cast("int", expression.value)) < CALENDAR_MICROSECONDS
        return bool(pa.types.is_timestamp(kind) and kind.unit == "us" and in_calendar)
    if not isinstance(expression, Field | Time):
        return False
    return not is_steps(expression.type) or bool(pa.types.is_timestamp(expression.type) and expression.type.unit == "us")


CALENDAR_MICROSECONDS = 60_000_000_000_000_000
"""About 1,900 years around 1970: literals farther away are compared as numbers, because Python's calendar ends at year 1."""


def _microseconds(column: Column, kind: spark_types.DataType) -> Column:
    """A timestamp as microseconds since 1970, a day-time interval as microseconds; by no one's calendar or zone."""
    if isinstance(kind, spark_types.TimestampType):
        return F.unix_micros(column)
    if isinstance(kind, spark_types.TimestampNTZType):
        column = column - F.lit(EPOCH_TEXT).cast("timestamp_ntz")
    return (column.cast("interval second").cast("decimal(20,6)") * F.lit(1_000_000)).cast("long")


def _scaled(column: Column, source: str, target: str) -> Column:
    factor = NANOSECONDS[source] // NANOSECONDS[target]
    return column if factor == 1 else F.try_multiply(column, F.lit(factor).cast("long"))


# ----------------------------------------------------------------------------------------------------------------------- conditions


def _compare(compare: Callable[[Column, Column], Column], name: str) -> Callable[[ColumnPrinter, Apply], Column]:
    def condition(printer: ColumnPrinter, node: Apply) -> Column:
        left, right = node.arguments
        if _is_null_literal(left) or _is_null_literal(right):
            return F.lit(False)
        if not (_is_native(left) and _is_native(right)):
            return compare(printer.value(left), printer.value(right))
        first, second = printer.native(left), printer.native(right)
        result = compare(first, second)
        for side, other, column, harmless in ((left, right, first, NAN_ON_LEFT), (right, left, second, NAN_ON_RIGHT)):
            if isinstance(side, Field) and pa.types.is_floating(side.type) and not (isinstance(other, Literal) and name in harmless):
                result = result & ~F.isnan(column)
        return result

    return condition


NAN_ON_LEFT = frozenset({"=", "<", "<="})
NAN_ON_RIGHT = frozenset({"=", ">", ">="})
"""Comparisons with a literal that are false for NaN on that side anyway: to Spark, NaN equals itself and is greater than all numbers."""


def balanced(join: Callable[[Column, Column], Column], parts: Sequence[Column]) -> Column:
    """The columns joined pairwise, then the pairs: Spark goes down into an expression as deep as it is, and its stack ends after some hundreds."""
    rest = list(parts)
    while len(rest) > 1:
        pairs = [join(rest[place], rest[place + 1]) for place in range(0, len(rest) - 1, 2)]
        rest = [*pairs, *rest[2 * len(pairs) :]]
    return rest[0]


def _and(printer: ColumnPrinter, node: Apply) -> Column:
    return balanced(operator.and_, [printer.condition(each) for each in node.arguments])


def _or(printer: ColumnPrinter, node: Apply) -> Column:
    return balanced(operator.or_, [printer.condition(each) for each in node.arguments])


def _not(printer: ColumnPrinter, node: Apply) -> Column:
    return ~printer.truth(node.arguments[0])


def _in(printer: ColumnPrinter, node: Apply) -> Column:
    value, options = node.arguments[0], [option for option in node.arguments[1:] if not _is_null_literal(option)]
    if not options or _is_null_literal(value):
        return F.lit(False)
    if pa.types.is_floating(value.type):  # type: ignore[attr-defined]
        # A long list becomes a hash set in Spark, to which 0.0 and -0.0 are two values.
        return balanced(operator.or_, [_EQUAL(printer, Apply("=", (value, option), node.type)) for option in options])
    if all(map(_is_native, (value, *options))):
        return printer.native(value).isin([printer.native(option) for option in options])
    return printer.value(value).isin([printer.value(option) for option in options])


def _like(printer: ColumnPrinter, node: Apply) -> Column:
    pattern = cast("Literal", node.arguments[1]).value
    if pattern is None:
        return F.lit(False)
    return printer.value(node.arguments[0]).like(str(pattern).replace("\\", "\\\\"))


def _is_null(printer: ColumnPrinter, node: Apply) -> Column:
    argument = node.arguments[0]
    if isinstance(argument, Field) and is_steps(argument.type) and _is_native(argument):
        return printer.native(argument).isNull()
    return printer.value(argument).isNull()


_EQUAL = _compare(operator.eq, "=")

CONDITIONS: Mapping[str, Callable[[ColumnPrinter, Apply], Column]] = MappingProxyType(
    {
        "and": _and,
        "or": _or,
        "not": _not,
        "=": _EQUAL,
        "!=": _compare(operator.ne, "!="),
        "<": _compare(operator.lt, "<"),
        "<=": _compare(operator.le, "<="),
        ">": _compare(operator.gt, ">"),
        ">=": _compare(operator.ge, ">="),
        "in": _in,
        "like": _like,
        "is_null": _is_null,
    }
)
"""Operators that give a condition: a column that is true where it holds, false or NULL elsewhere."""


# --------------------------------------------------------------------------------------------------------------------------- values


def _finite_result(result: Column, *operands: Column) -> Column:
    """A double without NaN, and NULL where it is infinite though no operand is: that is overflow."""
    overflow = functools.reduce(operator.and_, (F.abs(operand) < INFINITY for operand in operands), F.abs(result) == INFINITY)
    return F.when(~F.isnan(result) & ~overflow, result)


INFINITY = float("inf")


def _arithmetic(
    on_doubles: Callable[[Column, Column], Column], on_exact: Callable[[Column, Column], Column]
) -> Callable[[ColumnPrinter, Apply], Column]:
    def value(printer: ColumnPrinter, node: Apply) -> Column:
        left, right = printer.values(node)
        if pa.types.is_floating(node.type):
            return _finite_result(on_doubles(left, right), left, right)
        if not pa.types.is_decimal(node.type):
            return on_exact(*(_apart(column, argument) for column, argument in zip((left, right), node.arguments, strict=True)))
        if not _is_exact(node):
            return _in_python(node, left, right)
        return try_cast(on_exact(left, right), _exact_type(node), decimal_type(node.type))

    return value


def _apart(column: Column, argument: Expression) -> Column:
    """An operand as Spark's optimizer must take it: it reorders nested sums and products of integers, and with them where they overflow.

    That is a fault of its rule ReorderAssociativeOperator, which looks through try_add and try_multiply, but not through a difference.
    """
    return F.try_subtract(column, F.lit(0).cast("long")) if isinstance(argument, Apply) else column


def _is_exact(node: Apply) -> bool:
    """Whether Spark computes a decimal result with all its digits, so that it is rounded once, to the node's type."""
    left, right = (cast("Apply", argument).type for argument in node.arguments)
    scale = max(left.scale, right.scale)
    digits = {
        "+": max(left.precision - left.scale, right.precision - right.scale) + scale + 1,
        "-": max(left.precision - left.scale, right.precision - right.scale) + scale + 1,
        "*": left.precision + right.precision + 1,
        "%": max(left.precision - left.scale + right.scale + 1, left.precision - left.scale + scale),
    }
    return bool(digits.get(node.operator, NEVER) <= MAX_DECIMAL_DIGITS)


def _exact_type(node: Apply) -> spark_types.DecimalType:
    """The type in Spark of such a result."""
    left, right = (cast("Apply", argument).type for argument in node.arguments)
    scale = max(left.scale, right.scale)
    integers = left.precision - left.scale, right.precision - right.scale
    digits = {"*": left.precision + right.precision + 1, "%": min(integers) + scale}
    return spark_types.DecimalType(
        digits.get(node.operator, max(integers) + scale + 1), left.scale + right.scale if node.operator == "*" else scale
    )


NEVER = MAX_DECIMAL_DIGITS + 1
"""Digits of a quotient: Spark rounds it to a scale of its own first."""


def _in_python(node: Apply, left: Column, right: Column) -> Column:
    """Decimal arithmetic by the engine's own operator, for types whose exact result Spark cannot hold; some microseconds per row."""
    name, precision, scale = node.operator, node.type.precision, node.type.scale

    def exact_decimals(first: pa.Array, second: pa.Array) -> pa.Array:
        # Only plain values in the closure: it travels to the workers.
        from cepheid.engine.letters.values import OPERATIONS

        return OPERATIONS[name]([first, second], Apply(name, (), pa.decimal128(precision, scale)))

    first, second = (cast("Apply", argument).type for argument in node.arguments)
    return arrow_column(exact_decimals, decimal_type(node.type), (left, first), (right, second))


def _negate(printer: ColumnPrinter, node: Apply) -> Column:
    return _negated(printer.value(node.arguments[0]), node.type)


def _abs(printer: ColumnPrinter, node: Apply) -> Column:
    column = printer.value(node.arguments[0])
    if pa.types.is_floating(node.type):
        return F.abs(column)
    return F.when(column >= 0, column).otherwise(_negated(column, node.type))


def _negated(column: Column, kind: pa.DataType) -> Column:
    if pa.types.is_decimal(kind):
        zero = Literal(Decimal(0), kind)
        exact = kind.precision <= NEGATED_DIGITS
        return -column if exact else _in_python(Apply("-", (zero, zero), kind), _literal(zero), column)
    return -column if pa.types.is_floating(kind) else F.try_subtract(F.lit(0).cast("long"), column)


NEGATED_DIGITS = 34
"""To so many digits Spark rounds a decimal when it negates it, or takes its absolute value."""


def _rounding(function: Callable[[Column], Column]) -> Callable[[ColumnPrinter, Apply], Column]:
    def value(printer: ColumnPrinter, node: Apply) -> Column:
        (column,) = printer.values(node)
        if pa.types.is_decimal(node.type):
            kind = decimal_type(cast("Apply", node.arguments[0]).type)
            whole = spark_types.DecimalType(min(kind.precision - kind.scale + 1, MAX_DECIMAL_DIGITS), 0)
            return try_cast(function(column), whole, decimal_type(node.type))
        if pa.types.is_floating(node.type):
            return F.when(F.abs(column) < WHOLE_DOUBLES, function(column).cast("double")).otherwise(column)
        return column

    return value


def _cast(printer: ColumnPrinter, node: Apply) -> Column:
    argument, target = node.arguments[0], node.type
    source = cast("Apply", argument).type
    column = printer.value(argument)
    if source == target:
        return column
    if pa.types.is_decimal(target):
        return try_cast(column, _spark_type(source), decimal_type(target))
    if pa.types.is_floating(target):
        exact = not pa.types.is_decimal(source) or source.precision <= EXACT_DOUBLE_DIGITS
        return column.cast("double") if exact else column.cast("string").cast("double")
    if pa.types.is_date32(source):
        days = F.unix_date(column).cast("long")
        return F.try_multiply(days, F.lit(MICROSECONDS_PER_DAY * 1_000 // NANOSECONDS[target.unit]).cast("long"))
    return _scaled(column, source.unit, target.unit) if is_steps(target) else column


def _case(printer: ColumnPrinter, node: Apply) -> Column:
    *pairs, last = node.arguments
    result = printer.value(last)
    for holds, value in reversed(list(zip(pairs[::2], pairs[1::2], strict=True))):
        result = F.when(printer.condition(holds), printer.value(value)).otherwise(result)
    return result


def _part(name: str) -> Callable[[ColumnPrinter, Apply], Column]:
    """Parts of dates as `calendar.part` has them. Those of a day are Spark's: a date has no zone, while a time has that of the session.

    Years come in cycles, so the day has the same place in the cycle that begins in 1970: a date of Spark counts its days in 32 bits.
    """

    def value(printer: ColumnPrinter, node: Apply) -> Column:
        kind = cast("Apply", node.arguments[0]).type
        column, per_day = printer.value(node.arguments[0]), calendar.steps_per_day(kind)
        steps = F.unix_date(column).cast("long") if pa.types.is_date32(kind) else column
        if name in calendar.TIMES_OF_DAY:
            seconds, most = calendar.TIMES_OF_DAY[name]
            return _modulo(_divided(_modulo(steps, per_day), per_day // calendar.DAY * seconds), most)
        days = _divided(steps, per_day)
        if name == "day_of_week":
            return _modulo(days + 3, 7) + 1
        date = F.date_from_unix_date(_modulo(days, calendar.CYCLE).cast("int"))
        found = DATE_PARTS[name](date).cast("long")
        return found + _divided(days, calendar.CYCLE) * 400 if name == "year" else found

    return value


def _local_time(printer: ColumnPrinter, node: Apply) -> Column:
    """What clocks show, by Java's rules: `from_utc_timestamp` has no part of the session's zone. Far years as in `time_zones`."""
    steps, zone = printer.values(node)
    per_second = calendar.steps_per_second(node.type)
    seconds = _divided(steps, per_second)
    cycle = calendar.CYCLE * calendar.DAY
    near = (
        F.when(seconds < time_zones.EARLIEST * calendar.DAY, F.lit(time_zones.EARLIEST * calendar.DAY).cast("long"))
        .when(seconds >= time_zones.LATEST * calendar.DAY, _modulo(seconds, cycle) + cycle)
        .otherwise(seconds)
    )
    shown = F.from_utc_timestamp(F.timestamp_seconds(near), zone)
    return F.try_add(steps, (F.unix_seconds(shown) - near) * per_second)


DATE_PARTS: Mapping[str, Callable[[Column], Column]] = MappingProxyType({"year": F.year, "month": F.month, "day": F.day})
"""Spark's own parts of a date, which are those of the proleptic Gregorian calendar."""


def _modulo(column: Column, number: int) -> Column:
    """The remainder of a long that is 0 or more."""
    return F.pmod(column, F.lit(number).cast("long"))


def _divided(column: Column, number: int) -> Column:
    """The quotient of a long, rounded down; `div` rounds towards 0."""
    whole = F.lit(number).cast("long")
    return F.call_function("div", column, whole) - (try_mod(column, whole) < 0).cast("long")


VALUES: Mapping[str, Callable[[ColumnPrinter, Apply], Column]] = MappingProxyType(
    {
        "+": _arithmetic(operator.add, F.try_add),
        "-": _arithmetic(operator.sub, F.try_subtract),
        "*": _arithmetic(operator.mul, F.try_multiply),
        "/": _arithmetic(F.try_divide, F.try_divide),
        "%": _arithmetic(try_mod, try_mod),
        "negate": _negate,
        "abs": _abs,
        "floor": _rounding(F.floor),
        "ceil": _rounding(F.ceil),
        "case": _case,
        "coalesce": lambda printer, node: F.coalesce(*printer.values(node)),
        "length": lambda printer, node: F.char_length(printer.value(node.arguments[0])).cast("long"),
        "lower": lambda printer, node: F.translate(printer.value(node.arguments[0]), UPPER, LOWER),
        "upper": lambda printer, node: F.translate(printer.value(node.arguments[0]), LOWER, UPPER),
        "concat": lambda printer, node: F.concat(*printer.values(node)),
        "local_time": _local_time,
        **{name: _part(name) for name in calendar.PARTS},
        "cast": _cast,
    }
)
"""Operators that give a value. Together with `CONDITIONS` these are the keys of `plan.OPERATORS`."""

SPARK_TYPES: Mapping[type[spark_types.DataType], Any] = MappingProxyType(
    {
        spark_types.BooleanType: pa.bool_(),
        spark_types.ByteType: pa.int8(),
        spark_types.ShortType: pa.int16(),
        spark_types.IntegerType: pa.int32(),
        spark_types.LongType: pa.int64(),
        spark_types.FloatType: pa.float32(),
        spark_types.DoubleType: pa.float64(),
        spark_types.StringType: pa.string(),
        spark_types.CharType: pa.string(),
        spark_types.VarcharType: pa.string(),
        spark_types.BinaryType: pa.binary(),
        spark_types.DateType: pa.date32(),
        spark_types.TimestampType: pa.timestamp("us", tz="UTC"),
        spark_types.TimestampNTZType: pa.timestamp("us"),
        spark_types.DayTimeIntervalType: pa.duration("us"),
        spark_types.NullType: pa.null(),
    }
)
"""The Arrow type of each of Spark's simple types, as mapInArrow shows it (but for the zone of timestamps, which is the session's there)."""


def arrow_type(kind: spark_types.DataType) -> pa.DataType | None:
    """The Arrow type of a type of Spark, or None where Spark shows Arrow no such values (year-month intervals, variants, ...)."""
    simple = SPARK_TYPES.get(type(kind))
    if simple is not None:
        return simple
    if isinstance(kind, spark_types.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, spark_types.ArrayType):
        inner = arrow_type(kind.elementType)
        return None if inner is None else pa.list_(inner)
    if isinstance(kind, spark_types.MapType):
        key, value = arrow_type(kind.keyType), arrow_type(kind.valueType)
        return None if key is None or value is None else pa.map_(key, value)
    if isinstance(kind, spark_types.StructType):
        fields = [(field.name, arrow_type(field.dataType)) for field in kind.fields]
        return None if any(inner is None for _, inner in fields) else pa.struct(fields)
    return None


def nullable(kind: spark_types.DataType) -> spark_types.DataType:
    """The type with NULL allowed everywhere inside: Arrow's, as it comes back from Python, say nothing else."""
    if isinstance(kind, spark_types.ArrayType):
        return spark_types.ArrayType(nullable(kind.elementType))
    if isinstance(kind, spark_types.MapType):
        return spark_types.MapType(nullable(kind.keyType), nullable(kind.valueType))
    if isinstance(kind, spark_types.StructType):
        return spark_types.StructType([spark_types.StructField(field.name, nullable(field.dataType)) for field in kind.fields])
    return kind


def spark_type(kind: pa.DataType) -> spark_types.DataType:
    """The type of Spark whose values Arrow holds in this one, text without a collation: the inverse of `arrow_type`."""
    if pa.types.is_decimal(kind):
        return decimal_type(kind)
    if pa.types.is_map(kind):
        return spark_types.MapType(spark_type(kind.key_type), spark_type(kind.item_type))
    if pa.types.is_list(kind):
        return spark_types.ArrayType(spark_type(kind.value_type))
    if pa.types.is_struct(kind):
        return spark_types.StructType([spark_types.StructField(field.name, spark_type(field.type)) for field in kind])
    return next(known() for known, arrow in SPARK_TYPES.items() if arrow == kind)
