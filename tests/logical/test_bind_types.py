"""Types of conditions: casts, constants rounded to a column's steps, constant folding, parameters, durations."""

from __future__ import annotations

import datetime as dt
import itertools
import operator
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.errors import BindError
from cepheid.language import parse
from cepheid.logical import calendar, folding, functions, types
from cepheid.logical.bind import bind
from cepheid.logical.plan import OPERATORS, Apply, Field, Interval, Literal, Time, is_local
from cepheid.logical.plan import transform as transform_expression
from cepheid.schema import EventSchema
from cepheid.testing import evaluate

INT64, DOUBLE, BOOL, TEXT, DATE = pa.int64(), pa.float64(), pa.bool_(), pa.utf8(), pa.date32()
US, MS, SECOND = pa.timestamp("us"), pa.timestamp("ms"), pa.timestamp("s")
UTC = pa.timestamp("us", "UTC")
COLUMNS = {
    "type": pa.dictionary(pa.int32(), pa.utf8()),
    "ts": US,
    "i": pa.int32(),
    "k": pa.int64(),
    "d": pa.float32(),
    "p": pa.decimal128(10, 2),
    "q": pa.decimal128(20, 4),
    "s": pa.large_utf8(),
    "b": pa.bool_(),
    "day": DATE,
    "day64": pa.date64(),
    "sec": SECOND,
    "ms": MS,
    "utc": pa.timestamp("us", "Europe/Berlin"),
    "u64": pa.uint64(),
    "dur": pa.duration("s"),
    "durms": pa.duration("ms"),
    "n": pa.null(),
    "st": pa.struct([("city", TEXT), ("pos", pa.struct([("x", pa.float64())]))]),
    "l": pa.list_(TEXT),
    "cat": pa.dictionary(pa.int8(), pa.int16()),
}
SCHEMA = EventSchema(COLUMNS, type_column="type", time_column="ts")


def bound(text, schema=SCHEMA, **args):
    query = f"SELECT * FROM S WHERE A AS x ; B AS y FILTER {text}"
    return bind(parse(query), schema, args=args, text=query)


def condition(text, **args):
    (found,) = bound(text, **args).pattern.conditions
    return found


def field(path, kind=None, variable="x"):
    source = COLUMNS[path]
    return Field(variable, (path,), types.canonical(source) if kind is None else kind, source)


def cast(expression, kind):
    return Apply("cast", (expression,), kind)


def compare(name, left, right):
    return Apply(name, (left, right), BOOL)


# ---------------------------------------------------------------------------------------------------------------- canonical types


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (pa.int8(), INT64),
        (pa.uint32(), INT64),
        (pa.uint64(), pa.decimal128(20, 0)),
        (pa.float16(), DOUBLE),
        (pa.decimal256(30, 3), pa.decimal128(30, 3)),
        (pa.decimal256(50, 3), None),
        (pa.string_view(), TEXT),
        (pa.dictionary(pa.int8(), pa.large_utf8()), TEXT),
        (pa.dictionary(pa.int8(), pa.int16()), INT64),
        (pa.date64(), DATE),
        (pa.timestamp("ns", "America/New_York"), pa.timestamp("ns", "UTC")),
        (pa.duration("ns"), pa.duration("ns")),
        (pa.null(), pa.null()),
        (pa.time64("us"), None),
        (pa.binary(), None),
        (pa.list_(INT64), None),
    ],
)
def test_canonical(kind, expected):
    assert types.canonical(kind) == expected


# --------------------------------------------------------------------------------------------------------------------- promotion

X_I, X_D, X_P = field("i"), field("d"), field("p")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x.i = 3", compare("=", X_I, Literal(3, INT64))),
        ("3 < x.i", compare(">", X_I, Literal(3, INT64))),
        ("x.d > 40", compare(">", X_D, Literal(40.0, DOUBLE))),
        ("x.d > 0.5", compare(">", X_D, Literal(0.5, DOUBLE))),
        ("x.i > x.d", compare(">", cast(X_I, DOUBLE), X_D)),
        ("x.i > 2.5", compare(">", X_I, Literal(2, INT64))),
        ("x.i > 2.5e0", compare(">", cast(X_I, DOUBLE), Literal(2.5, DOUBLE))),
        ("x.p > x.i", compare(">", cast(X_P, pa.decimal128(21, 2)), cast(X_I, pa.decimal128(21, 2)))),
        ("x.p = x.q", compare("=", cast(X_P, pa.decimal128(20, 4)), field("q"))),
        ("x.p < x.d", compare("<", cast(X_P, DOUBLE), X_D)),
        ("x.p < 1.005", compare("<", X_P, Literal(Decimal("1.01"), pa.decimal128(10, 2)))),
        ("x.u64 = 7", compare("=", field("u64"), Literal(Decimal(7), pa.decimal128(20, 0)))),
        ("x.u64 = 18446744073709551615", compare("=", field("u64"), Literal(Decimal(2**64 - 1), pa.decimal128(20, 0)))),
        (f"x.k < {10**30}", Apply("not", (Apply("is_null", (field("k"),), BOOL),), BOOL)),
        (f"x.k > {10**30}", compare("=", field("k"), Literal(None, INT64))),
        (f"x.d < {10**30}", compare("<", X_D, Literal(1e30, DOUBLE))),
        ("x.day < x.sec", compare("<", cast(field("day"), SECOND), field("sec"))),
        ("x.sec = x.ts", compare("=", cast(field("sec"), US), field("ts"))),
        ("x.day64 = DATE '2013-01-31'", compare("=", field("day64"), Literal(dt.date(2013, 1, 31), DATE))),
        ("x.sec > DATE '1970-01-02'", compare(">", field("sec"), Literal(86_400, SECOND))),
        ("x.utc >= TIMESTAMP '1970-01-01 02:00:00.5+01:00'", compare(">=", field("utc"), Literal(3_600_500_000, UTC))),
        ("x.ts = TIMESTAMP '1970-01-01T00:00'", compare("=", field("ts"), Literal(0, US))),
        ("x.dur = x.durms", compare("=", cast(field("dur"), pa.duration("ms")), field("durms"))),
        ("x.n = 3", compare("=", Field("x", ("n",), INT64, pa.null()), Literal(3, INT64))),
        ("x.st.pos.x < 1", compare("<", Field("x", ("st", "pos", "x"), DOUBLE, pa.float64()), Literal(1.0, DOUBLE))),
        ("x[st.city = 'a']", compare("=", Field("x", ("st", "city"), TEXT, TEXT), Literal("a", TEXT))),
        ("x.cat = 1", compare("=", field("cat"), Literal(1, INT64))),
        ("x.b", field("b")),
        ("x.b = TRUE", compare("=", field("b"), Literal(True, BOOL))),
        ("x.l IS NULL", Apply("is_null", (Field("x", ("l",), COLUMNS["l"], COLUMNS["l"]),), BOOL)),
        ("x.i IS NOT NULL", Apply("not", (Apply("is_null", (X_I,), BOOL),), BOOL)),
        ("x.s NOT LIKE 'a%'", Apply("not", (Apply("like", (field("s"), Literal("a%", TEXT)), BOOL),), BOOL)),
        ("ABS(x.i) = 1", compare("=", Apply("abs", (X_I,), INT64), Literal(1, INT64))),
        (
            "coalesce(x.i, x.d, NULL) = 1",
            compare("=", Apply("coalesce", (cast(X_I, DOUBLE), X_D, Literal(None, DOUBLE)), DOUBLE), Literal(1.0, DOUBLE)),
        ),
        ("length(x.s) = 1", compare("=", Apply("length", (field("s"),), INT64), Literal(1, INT64))),
        ("upper(x.s) = lower('A')", compare("=", Apply("upper", (field("s"),), TEXT), Literal("a", TEXT))),
    ],
)
def test_comparison(text, expected):
    assert condition(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x.i + x.k", Apply("+", (X_I, field("k")), INT64)),
        ("x.i * 0.5", Apply("*", (cast(X_I, pa.decimal128(19, 0)), Literal(Decimal("0.5"), pa.decimal128(1, 1))), pa.decimal128(20, 1))),
        ("x.i / 2", Apply("/", (cast(X_I, DOUBLE), Literal(2.0, DOUBLE)), DOUBLE)),
        ("x.p / x.i", Apply("/", (cast(X_P, DOUBLE), cast(X_I, DOUBLE)), DOUBLE)),
        ("x.p / x.p", Apply("/", (X_P, X_P), pa.decimal128(16, 6))),
        ("x.p * x.q", Apply("*", (X_P, field("q")), pa.decimal128(30, 6))),
        ("x.p + x.q", Apply("+", (cast(X_P, pa.decimal128(21, 4)), cast(field("q"), pa.decimal128(21, 4))), pa.decimal128(21, 4))),
        ("x.p % 3", Apply("%", (X_P, Literal(Decimal("3.00"), pa.decimal128(10, 2))), pa.decimal128(10, 2))),
        ("x.d - x.p", Apply("-", (X_D, cast(X_P, DOUBLE)), DOUBLE)),
        ("x.i + NULL", Apply("+", (X_I, Literal(None, INT64)), INT64)),
        ("-x.d", Apply("negate", (X_D,), DOUBLE)),
        ("-x.dur", Apply("negate", (field("dur"),), pa.duration("s"))),
        ("y.$time - x.$time", Apply("-", (Time("y", US), Time("x", US)), pa.duration("us"))),
        ("x.ts - x.sec", Apply("-", (field("ts"), cast(field("sec"), US)), pa.duration("us"))),
        ("x.day - x.day", Apply("-", (cast(field("day"), SECOND), cast(field("day"), SECOND)), pa.duration("s"))),
        ("x.sec + 5m", Apply("+", (field("sec"), Literal(300, pa.duration("s"))), SECOND)),
        ("5m + x.sec", Apply("+", (field("sec"), Literal(300, pa.duration("s"))), SECOND)),
        ("x.sec - 0.5s", Apply("-", (cast(field("sec"), MS), Literal(500, pa.duration("ms"))), MS)),
        ("x.dur + 1d", Apply("+", (field("dur"), Literal(86_400, pa.duration("s"))), pa.duration("s"))),
        ("x.utc + x.dur", Apply("+", (field("utc"), cast(field("dur"), pa.duration("us"))), UTC)),
    ],
)
def test_arithmetic(text, expected):
    found = condition(f"{text} IS NULL")
    assert found == Apply("is_null", (expected,), BOOL)


@pytest.mark.parametrize("text", ["x.i = 1", "x[i = 1 AND d < 2 OR NOT b]", "x.s IN ('a', 'b')", "x.i BETWEEN 1 AND x.k"])
def test_local(text):
    assert all(map(is_local, bound(text).pattern.conditions))


def test_top_level_conjuncts_are_filters_of_their_own():
    found = bound("x[i = 1 AND (d = 2 AND b)] AND (x.i = y.i AND NOT (x.b AND y.b)) AND 1 = 1 AND (x.b OR y.b)").pattern.conditions
    assert [condition.span for condition in found] == sorted((condition.span for condition in found), key=lambda span: span.start)
    assert [getattr(condition, "operator", "field") for condition in found] == ["=", "=", "field", "=", "not", "or"]


@pytest.mark.parametrize("text", ["TRUE", f"{10**38 - 1} > 0.5", f"NOT 0.5 = {10**37}", f"0.5 BETWEEN 0 AND {10**37}"])
def test_conditions_that_are_true_vanish(text):
    assert type(bound(f"{text} AND 1 = 1 AND :on", on=True).pattern).__name__ == "Sequence"


# ------------------------------------------------------------------------------------------------ constants in a column's own steps

COMPARISONS = {"=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def value_of(expression, value):
    """What the reference makes of a condition over one field, when that has a value."""
    literal = transform_expression(expression, lambda node: Literal(value, node.type) if isinstance(node, Field) else node)
    return evaluate.evaluate(literal, (), {})


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize(
    ("kind", "constants", "values"),
    [
        (
            INT64,
            [Decimal("2.5"), Decimal("-2.5"), Decimal("3.0"), Decimal("1e30"), Decimal("-1e30"), 3],
            [-3, -2, 2, 3, 2**63 - 1, -(2**63), None],
        ),
        (
            pa.decimal128(3, 1),
            [Decimal("0.25"), Decimal("0.2"), Decimal("99.95"), Decimal(-1000), 1],
            [Decimal("0.2"), Decimal("0.3"), Decimal("99.9"), None],
        ),
    ],
)
def test_rounded_constants_mean_the_same(name, kind, constants, values):
    column = Field("x", ("v",), kind, kind)
    for constant, value in itertools.product(constants, values):
        literal = Literal(constant, INT64) if isinstance(constant, int) else Literal(constant, pa.decimal128(38, 4))
        for found in (types.compare(name, column, literal), types.compare(types.FLIPPED[name], literal, column)):
            expected = value is not None and COMPARISONS[name](Fraction(value), Fraction(constant))
            assert value_of(found, value) is expected, (name, constant, value)
            assert not any(node.operator == "cast" for node in (found, *found.arguments) if isinstance(node, Apply))


@pytest.mark.parametrize("name", COMPARISONS)
def test_rounded_times_mean_the_same(name):
    for unit, kind in itertools.product(("s", "ms"), (pa.timestamp, pa.duration)):
        column = Field("x", ("v",), kind(unit), kind(unit))
        for nanoseconds, steps in itertools.product((0, 1, 999_999, 1_000_000, 1_500_000_000, -1, -1_500_000_000), (-2, -1, 0, 1, 2)):
            found = types.compare(name, column, Literal(nanoseconds, kind("ns")))
            length = 10**9 if unit == "s" else 10**6
            assert value_of(found, steps) is COMPARISONS[name](steps * length, nanoseconds)


@pytest.mark.parametrize("name", COMPARISONS)
def test_dates_with_timestamps_mean_the_same(name):
    column = Field("x", ("v",), DATE, DATE)
    for seconds, days in itertools.product((0, 1, 86_399, 86_400, -1), (-1, 0, 1, 2)):
        found = types.compare(name, column, Literal(seconds, SECOND))
        assert value_of(found, dt.date(1970, 1, 1) + dt.timedelta(days=days)) is COMPARISONS[name](days * 86_400, seconds)


@pytest.mark.parametrize(
    ("text", "matching"),
    [
        ("x.i IN (1, 2.5, 3, NULL)", {1, 3}),
        ("x.i IN (1)", {1}),
        ("x.i IN (2.5)", set()),
        ("x.i IN (NULL)", set()),
        ("x.i IN (1, 2e0)", {1, 2}),
        ("x.i IN (1, 1.0, 1)", {1}),
        ("x.i NOT IN (1, 2)", {0, 3, None}),
        ("x.i BETWEEN 0.5 AND 2.5", {1, 2}),
        ("x.i NOT BETWEEN 1 AND 2", {0, 3, None}),
        ("x.i BETWEEN 2 AND 1", set()),
        ("x.i IN (x.k, 1)", {1}),
        ("x.i != 1", {0, 2, 3}),
        ("NOT x.i = 1", {0, 2, 3, None}),
        ("x.i = NULL", set()),
        ("NOT x.i = NULL", {0, 1, 2, 3, None}),
    ],
)
def test_lists_and_ranges(text, matching):
    found = condition(text)

    def holds(value):
        literal = transform_expression(
            found, lambda node: Literal(value if node.path == ("i",) else None, node.type) if isinstance(node, Field) else node
        )
        return evaluate.evaluate(literal, (), {})

    assert {value for value in (0, 1, 2, 3, None) if holds(value)} == matching


# ------------------------------------------------------------------------------------------------------------------------ folding

SAMPLES = {
    BOOL: [True, False, None],
    INT64: [0, 1, -1, 7, -7, 3, 2**63 - 1, -(2**63), None],
    DOUBLE: [0.0, 1.5, -1.5, 1e308, -1e308, float("inf"), None],
    pa.decimal128(6, 2): [Decimal("0.00"), Decimal("1.25"), Decimal("-1.25"), Decimal("9999.99"), None],
    pa.decimal128(38, 0): [Decimal(10**38 - 1), Decimal(1 - 10**38), Decimal(2**64), Decimal(1), None],
    TEXT: ["", "aB%", "Äß", None],
    DATE: [dt.date(2013, 1, 31), dt.date(1960, 1, 1), None],
    SECOND: [0, 2**62, None],
    pa.duration("s"): [5, -5, None],
}


ZONES = ["Europe/Berlin", "America/St_Johns", "Asia/Kolkata", "Australia/Lord_Howe", "UTC", "-03:30"]
"""With summer time, of half an hour too, with half hours, and of one offset."""

ZONE_SECONDS = [1_774_745_999, 1_774_746_000, 2_224_540_800, -800_000_000, -3_000_000_000, 0, None]
"""A second before summer time begins in Berlin and this one, a summer after 2037, one before 1970, and one before there were zones."""


def signatures(name, kind):
    """How an operator takes samples of a type: the samples of its last argument (None: it has only one) and the type of its value."""
    number, text, samples = types.is_number(kind), kind == TEXT, SAMPLES[kind]
    if name in {"and", "or"}:
        return kind == BOOL, samples, BOOL
    if name in COMPARISONS:
        return kind != BOOL or name in {"=", "!="}, samples, BOOL
    if name in {"+", "-", "*", "/", "%"}:
        return number and not (name == "/" and kind == INT64), samples, kind
    if name in calendar.PARTS:
        return pa.types.is_timestamp(kind) or (kind == DATE and name in calendar.DATES), None, INT64
    if name in {"length", "lower", "upper"}:
        return text, None, INT64 if name == "length" else kind
    table = {
        "in": (True, samples, BOOL),
        "like": (text, ["%", "a_%", "_ß", "", "a.*"], BOOL),
        "coalesce": (True, samples, kind),
        "concat": (text, samples, kind),
        "case": (False, None, kind),
        "is_null": (True, None, BOOL),
        "not": (kind == BOOL, None, BOOL),
        "negate": (number or pa.types.is_duration(kind), None, kind),
        "cast": (False, None, kind),
        "local_time": (False, None, kind),
    }
    return table.get(name, (number, None, kind))


def applications():
    """Every operator on samples of the types that it takes."""
    for name, kind in itertools.product(OPERATORS, SAMPLES):
        takes, others, result = signatures(name, kind)
        pairs = () if not takes else itertools.product(SAMPLES[kind]) if others is None else itertools.product(SAMPLES[kind], others)
        yield from (Apply(name, tuple(Literal(value, kind) for value in pair), result) for pair in pairs)
    casts = [(INT64, DOUBLE), (INT64, pa.decimal128(38, 2)), (pa.decimal128(6, 2), pa.decimal128(8, 3)), (pa.decimal128(6, 2), DOUBLE)]
    casts += [(DATE, MS), (SECOND, US), (pa.duration("s"), pa.duration("us"))]
    for kind, samples in SAMPLES.items():
        for value, holds in itertools.product(samples, [True, False, None]):
            pairs = (Literal(holds, BOOL), Literal(value, kind)), (Literal(not holds, BOOL), Literal(samples[0], kind))
            yield Apply("case", (*pairs[0], *pairs[1], Literal(None, kind)), kind)
    for zone, unit in itertools.product(ZONES, ("s", "ns")):
        for seconds in ZONE_SECONDS:
            given = (None if seconds is None else seconds * (1 if unit == "s" else 10**9), pa.timestamp(unit, "UTC"))
            yield Apply("local_time", (Literal(*given), Literal(zone, TEXT)), pa.timestamp(unit))
    for source, target in casts:
        yield from (Apply("cast", (Literal(value, source),), target) for value in SAMPLES[source])


def test_folding_agrees_with_the_reference():
    seen = set()
    for expression in applications():
        found = folding.fold(expression)
        assert isinstance(found, Literal), expression
        assert found.type == expression.type
        expected = evaluate.evaluate(expression, (), {})
        assert found.value == expected, expression
        assert type(found.value) is type(expected) or expected is None, expression
        seen.add(expression.operator)
    assert seen == set(OPERATORS) == set(folding.FOLDED)


def test_functions_are_operators():
    assert set(functions.FUNCTIONS) <= set(OPERATORS)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("7 % -3", 1),
        ("-7 % 3", -1),
        ("1 / 4", 0.25),
        ("1.0 / 3.0", Decimal("0.333333")),
        ("1 / 0", None),
        ("9223372036854775807 + 1", None),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775808", Decimal(2**63)),
        (f"-{9 * 10**37}", Decimal(-9 * 10**37)),
        (f"-({10**38 - 1})", Decimal(1 - 10**38)),
        (f"abs(-{10**38 - 1})", Decimal(10**38 - 1)),
        (f"coalesce(NULL, {2**64 - 1}) + 1", Decimal(2**64)),
        ("-2.50", Decimal("-2.50")),
        ("1e3", 1000.0),
        ("0007", 7),
        ("abs(-3)", 3),
        ("floor(2.5)", Decimal(2)),
        ("coalesce(NULL, 2)", 2),
        ("length('Äß')", 2),
        ("DATE '2013-01-31'", dt.date(2013, 1, 31)),
        ("TIMESTAMP '1970-01-01 00:00:01.5'", 1500),
        ("TIMESTAMP '1970-01-01 00:00:00-01:30'", 5400),
        ("DATE '1970-01-02' - DATE '1970-01-01'", 86_400),
        ("TIMESTAMP '1970-01-01' + 0.5ms", 500),
        ("5m - 1s", 299),
    ],
)
def test_constant_measures(text, value):
    query = f"SELECT {text} AS c FROM S WHERE A"
    (measure,) = bind(parse(query), SCHEMA, text=query).measures
    assert isinstance(measure.expression, Literal)
    assert measure.expression.value == value


# --------------------------------------------------------------------------------------------------------------------- parameters


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, Literal(True, BOOL)),
        (3, Literal(3, INT64)),
        (2**63, Literal(Decimal(2**63), pa.decimal128(19, 0))),
        (-(10**38) + 1, Literal(Decimal(1 - 10**38), pa.decimal128(38, 0))),
        (np.uint64(2**64 - 1), Literal(Decimal(2**64 - 1), pa.decimal128(20, 0))),
        (2.5, Literal(2.5, DOUBLE)),
        (float("nan"), Literal(None, DOUBLE)),
        (Decimal("2.50"), Literal(Decimal("2.50"), pa.decimal128(3, 2))),
        (Decimal("1E+3"), Literal(Decimal(1000), pa.decimal128(4, 0))),
        ("a'b", Literal("a'b", TEXT)),
        (dt.date(2013, 1, 31), Literal(dt.date(2013, 1, 31), DATE)),
        (dt.datetime(1970, 1, 1, 0, 0, 1), Literal(1, SECOND)),  # noqa: DTZ001 - a time without zone
        (dt.datetime(1970, 1, 1, 1, 0, 0, 5, tzinfo=dt.timezone(dt.timedelta(hours=1))), Literal(5, UTC)),
        (dt.timedelta(milliseconds=1500), Literal(1500, pa.duration("ms"))),
        (np.int32(3), Literal(3, INT64)),
        (np.float32(0.5), Literal(0.5, DOUBLE)),
        (np.str_("a"), Literal("a", TEXT)),
        (pa.scalar(3, pa.int8()), Literal(3, INT64)),
    ],
)
def test_parameters(value, expected):
    query = "SELECT :v AS c FROM S WHERE A"
    (measure,) = bind(parse(query), SCHEMA, args={"v": value}, text=query).measures
    assert measure.expression == expected


@pytest.mark.parametrize("value", [10**38, Decimal("inf"), "\ud800", [1], object(), b"a", Decimal("1e40"), dt.time(1)])
def test_values_that_are_no_parameters(value):
    with pytest.raises(BindError, match=r":v|decimal"):
        condition("x.i = :v", v=value)


# ---------------------------------------------------------------------------------------------------------------------- durations


def window(text, time):
    query = f"SELECT * FROM S WHERE A ; B WITHIN {text}"
    schema = EventSchema({"type": TEXT, "ts": time}, type_column="type", time_column="ts")
    return bind(parse(query), schema, text=query).pattern.interval


@pytest.mark.parametrize(
    ("text", "time", "expected"),
    [
        ("5s", US, Interval(0, 5_000_000)),
        ("[< 0.5ms]", US, Interval(0, 499)),
        ("[<= 0.5ms]", US, Interval(0, 500)),
        ("[> 0.5us, < 2us]", pa.timestamp("ns"), Interval(501, 1999)),
        ("1.5s", SECOND, Interval(0, 1)),
        ("[>= 1.5s]", SECOND, Interval(2, None)),
        ("[> 1.5s, < 3.5s]", SECOND, Interval(2, 3)),
        ("[< 3s]", SECOND, Interval(0, 2)),
        ("[> 1s]", SECOND, Interval(2, None)),
        ("[= 2s]", MS, Interval(2000, 2000)),
        ("[1s, 3s]", MS, Interval(1000, 3000)),
        ("0s", MS, Interval(0, 0)),
        ("36h", DATE, Interval(0, 1)),
        ("2w", DATE, Interval(0, 14)),
        ("1d", pa.date64(), Interval(0, 86_400_000)),
        ("5", INT64, Interval(0, 5)),
        ("[> 2.5, < 7]", pa.int32(), Interval(3, 6)),
        ("0.1s", UTC, Interval(0, 100_000)),
    ],
)
def test_windows_in_steps(text, time, expected):
    assert window(text, time) == expected


def test_time_values_of_every_time_column():
    for time, kind in ((pa.int16(), INT64), (DATE, DATE), (pa.date64(), MS), (pa.timestamp("ns", "Asia/Tokyo"), pa.timestamp("ns", "UTC"))):
        schema = EventSchema({"type": TEXT, "ts": time}, type_column="type", time_column="ts")
        found = bound("x.$time < y.$time", schema).pattern.conditions
        assert found == (compare("<", Time("x", kind), Time("y", kind)),)


@pytest.mark.parametrize("options", ["2, 1, 3", "3, 2, 1, 1", "1.0, 2, 3"])
def test_the_order_of_the_options_of_in_does_not_matter(options: str) -> None:
    """One condition has one bit, and state of the one query can be read by the other."""
    schema = EventSchema({"type": pa.string(), "i": pa.int64()}, type_column="type")
    queries = [
        cepheid.query(f"SELECT * WHERE A AS x ; B AS y FILTER x[i IN (1, 2, 3)] AND y[i IN ({each})]") for each in ("1, 2, 3", options)
    ]
    programs = [query.compiled(schema).program for query in queries]
    assert programs[0].predicates == programs[1].predicates
    assert programs[0].fingerprint == programs[1].fingerprint
