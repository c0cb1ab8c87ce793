"""Spark columns, Arrow compute and the reference give the same truth: random expressions over nasty rows, ANSI on and off, two time zones."""

from __future__ import annotations

import datetime as dt
import math
import random
from decimal import Context, Decimal

import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from cepheid.automata.alphabet import Alphabet, Predicate
from cepheid.engine.letters.predicates import Predicates
from cepheid.logical import calendar
from cepheid.logical.plan import OPERATORS, Apply, Field, Literal, walk
from cepheid.schema import EventSchema
from cepheid.spark.columns import CONDITIONS, VALUES, ColumnPrinter, arrow_type
from cepheid.testing.evaluate import Event, holds

ROWS = 160
EXPRESSIONS = 60
LONGEST = 40_000
"""Characters of a random expression in Spark. A few have many more, and Spark takes most of the time for them."""

BOOL, INT, DOUBLE, TEXT, DATE = pa.bool_(), pa.int64(), pa.float64(), pa.string(), pa.date32()
ZONED, LOCAL, SPAN = pa.timestamp("us", tz="UTC"), pa.timestamp("us"), pa.duration("us")
SMALL, WIDE, WIDEST = pa.decimal128(9, 2), pa.decimal128(18, 4), pa.decimal128(38, 18)
DECIMALS = (SMALL, WIDE, WIDEST)
INT64 = (-(2**63), 2**63 - 1)

# Around both changes of clocks in New York, the first and the last moments, before 1970.
MOMENTS = [
    dt.datetime.fromisoformat(text)
    for text in (
        "2024-03-10 01:59:59.999999",
        "2024-03-10 02:30",
        "2024-03-10 03:30",
        "2024-11-03 01:30",
        "2024-11-03 05:30",
        "2024-11-03 06:30",
        "1969-12-31 23:59:59.000001",
        "1850-05-05",
        "9999-12-31 12:00",
    )
]
TEXTS = [
    "",
    "a",
    "A",
    "ab",
    "aB%",
    "a_c",
    "a\\c",
    "\\",
    "%",
    "_",
    "é",
    "É",
    "straße",
    "STRASSE",
    "İ",
    "i",
    "日本",
    "\U0001f600x",
    "\ufffdz",
    "a\nb",
    "a ",
]
LENGTHS = [0, 1, -1, 3_600_000_000, 86_400_000_000, -86_399_999_999, 40_000_000_000_000]
DAYS = [dt.date(2024, 3, 10), dt.date(1970, 1, 1), dt.date(1969, 12, 31), dt.date(1, 1, 1), dt.date(9999, 12, 31)]
STORED = {
    "flag": (BOOL, [True, False]),
    "byte": (pa.int8(), [-128, -1, 0, 1, 127]),
    "count": (pa.int32(), [-(2**31), -7, 0, 3, 2**31 - 1]),
    "long": (INT, [*INT64, INT64[0] + 1, 2**53 + 1, -(2**53) - 1, -3, -1, 0, 1, 2, 7]),
    "single": (pa.float32(), [0.1, -0.0, float("nan"), float("inf"), 3.4e38]),
    "real": (DOUBLE, [0.0, -0.0, 0.5, -0.5, 1.5, 2.0**53, 1e308, -1e308, 5e-324, float("nan"), float("inf"), float("-inf"), 2.0**63, -2.5]),
    "price": (SMALL, [Decimal("0.00"), Decimal("-9999999.99"), Decimal("9999999.99"), Decimal("0.05"), Decimal("1.10"), Decimal("-2.50")]),
    "total": (
        WIDE,
        [Decimal("99999999999999.9999"), Decimal("-0.0001"), Decimal("1.1000"), Decimal("90071992547409.9300"), Decimal("0.0000")],
    ),
    "huge": (WIDEST, [Decimal(10**38 - 1).scaleb(-18, Context(prec=40)), Decimal("1e-18"), Decimal(-3), Decimal(0), Decimal("0.5")]),
    "name": (TEXT, TEXTS),
    "label": (TEXT, TEXTS),
    "day": (DATE, DAYS),
    "at": (ZONED, [moment.replace(tzinfo=dt.UTC) for moment in MOMENTS]),
    "until": (ZONED, [moment.replace(tzinfo=dt.UTC) for moment in MOMENTS]),
    "wall": (LOCAL, MOMENTS),
    "took": (SPAN, [dt.timedelta(microseconds=length) for length in LENGTHS]),
    "in.side`": (pa.struct([("x y", INT), ("n", TEXT)]), [{"x y": 1, "n": "a"}, {"x y": None, "n": "É"}]),
}
CANONICAL = {pa.int8(): INT, pa.int32(): INT, pa.float32(): DOUBLE}


def steps(moment: dt.datetime) -> int:
    return (moment - dt.datetime.fromisoformat("1970-01-01")) // dt.timedelta(microseconds=1)


def constants(kind: pa.DataType) -> list[object]:
    if kind in (ZONED, LOCAL):
        return [*map(steps, MOMENTS[:-1]), 0, -(2**62)]
    if kind == SPAN:
        return LENGTHS
    stored = [values for stored_kind, values in STORED.values() if CANONICAL.get(stored_kind, stored_kind) == kind]
    return [value for values in stored for value in values if not (isinstance(value, float) and math.isnan(value))]


class Maker:
    """Random typed expressions, each as binding would make them."""

    def __init__(self, random_: random.Random) -> None:
        self.random = random_

    def leaf(self, kind: pa.DataType):
        fields = [Field("x", (name,), kind, stored) for name, (stored, _) in STORED.items() if CANONICAL.get(stored, stored) == kind]
        if kind == INT:
            fields.append(Field("x", ("in.side`", "x y"), INT, INT))
        if not fields or self.random.random() < 0.35:
            return Literal(None if self.random.random() < 0.08 else self.random.choice(constants(kind)), kind)
        return self.random.choice(fields)

    def value(self, kind: pa.DataType, depth: int):
        if depth <= 0 or self.random.random() < 0.3:
            return self.leaf(kind)
        return self.operation(self.random.choice(self.choices(kind)), kind, depth - 1)

    def choices(self, kind: pa.DataType) -> list[str]:
        return ["case", *self.own_choices(kind)]

    def own_choices(self, kind: pa.DataType) -> list[str]:
        if kind == BOOL:
            return ["coalesce", *CONDITIONS]
        if kind == TEXT:
            return ["coalesce", "concat", "lower", "upper"]
        if kind == DOUBLE:
            return ["+", "-", "*", "/", "%", "negate", "abs", "floor", "ceil", "coalesce", "cast", "cast"]
        if kind == INT:
            return ["+", "-", "*", "%", "negate", "abs", "floor", "coalesce", "length", *calendar.PARTS]
        if kind in DECIMALS:
            return ["negate", "abs", "floor", "coalesce", "ceil", "+", "-", "*", "/", "%", "cast"]
        if kind in (ZONED, LOCAL):
            return ["+", "-", "coalesce", *(["cast"] if kind == LOCAL else [])]
        return ["+", "-", "span", "span", "coalesce"] if kind == SPAN else ["coalesce"]

    def operation(self, name: str, kind: pa.DataType, depth: int):
        def of(*kinds: pa.DataType):
            return Apply(name, tuple(self.value(each, depth) for each in kinds), kind)

        any_kind = self.random.choice([BOOL, INT, INT, DOUBLE, DOUBLE, SMALL, WIDE, WIDEST, TEXT, TEXT, DATE, ZONED, LOCAL, SPAN])
        if name == "span":
            moment = self.random.choice([ZONED, LOCAL])
            return Apply("-", (self.value(moment, depth), self.value(moment, depth)), SPAN)
        if name in ("and", "or"):
            return of(*[BOOL] * self.random.randint(2, 3))
        if name == "not":
            return of(BOOL)
        if name in ("=", "!=", "<", "<=", ">", ">="):
            return of(any_kind, any_kind)
        if name == "is_null":
            return of(any_kind)
        if name == "in":
            size = self.random.choice([1, 2, 3, 14])
            options = tuple(Literal(self.random.choice([*constants(any_kind), None]), any_kind) for _ in range(size))
            return Apply("in", (self.value(any_kind, depth), *options), BOOL)
        if name == "like":
            pattern = "".join(
                self.random.choice(["%", "_", "a", "\\", "c", "é", ".", "S", "\n", "[", ""]) for _ in range(self.random.randint(0, 4))
            )
            return Apply("like", (self.value(TEXT, depth), Literal(pattern, TEXT)), BOOL)
        if name in ("length", "lower", "upper"):
            return of(TEXT)
        if name == "cast":
            source = {DOUBLE: [INT, *DECIMALS], SMALL: [INT], WIDE: [SMALL, INT], WIDEST: [INT, SMALL, WIDE], LOCAL: [DATE]}[kind]
            return of(self.random.choice(source))
        if name == "case":
            return of(*[BOOL, kind] * self.random.randint(1, 2), kind)
        if name == "concat":
            return of(*[TEXT] * self.random.randint(1, 3))
        if name in calendar.PARTS:
            if self.random.random() < 0.4:
                zone = Literal(self.random.choice(["Europe/Berlin", "America/St_Johns", "Asia/Kolkata", "-03:30"]), TEXT)
                return Apply(name, (Apply("local_time", (self.value(ZONED, depth), zone), LOCAL),), INT)
            return of(self.random.choice([ZONED, LOCAL, *[DATE] * (name in calendar.DATES)]))
        if name == "coalesce":
            return of(*[kind] * self.random.randint(1, 3))
        if name in ("negate", "abs", "floor", "ceil"):
            return of(kind)
        if kind in (ZONED, LOCAL):
            return of(kind, SPAN)
        return of(kind, kind)


def rows(random_: random.Random) -> pa.Table:
    def pick(values):
        return [None if random_.random() < 0.15 else random_.choice(values) for _ in range(ROWS)]

    columns = {name: pa.array(pick(values), kind) for name, (kind, values) in STORED.items()}
    columns["label"] = columns["name"]
    return pa.table({**columns, "row": pa.array(range(ROWS), INT)})


@pytest.fixture(scope="module")
def table(seed):
    return rows(random.Random(seed))


def field(name: str):
    stored = STORED[name][0]
    return Field("x", (name,), CANONICAL.get(stored, stored), stored)


def nested(operator: str, left, middle, right):
    """Overflows on the way to a result that fits: NULL, unless somebody reorders it."""
    return Apply(operator, (Apply(operator, (left, middle), INT), right), INT)


NAMED = Apply("length", (Apply("coalesce", (field("name"), Literal("a", TEXT)), TEXT),), INT)
FOUND = [
    Apply(">", (Apply("+", (NAMED, Literal(None, INT)), INT), field("long")), BOOL),
    Apply("<=", (Apply("%", (NAMED, Literal(0, INT)), INT), field("long")), BOOL),
    Apply(">=", (field("long"), nested("+", field("long"), Literal(-1, INT), Literal(1, INT))), BOOL),
    Apply("=", (nested("*", field("long"), field("long"), Apply("-", (field("count"), field("count")), INT)), Literal(0, INT)), BOOL),
    Apply("=", (Apply("negate", (Apply("abs", (field("huge"),), WIDEST),), WIDEST), field("huge")), BOOL),
    Apply("<", (field("at"), Literal(None, ZONED)), BOOL),
    Apply("not", (Apply("in", (Literal(None, LOCAL), Literal(0, LOCAL)), BOOL),), BOOL),
]
"""What random expressions have found, for ever."""

CALENDAR = [Apply(">", (Apply(name, (field("at"),), INT), Literal(5, INT)), BOOL) for name in calendar.PARTS]
"""Each part of a time: they are too many for chance to use all."""


@pytest.fixture(scope="module")
def expressions(spark, table, seed):
    maker, printer = Maker(random.Random(seed + 1)), ColumnPrinter(collated(spark, table).schema)

    def drawn(name):
        while True:
            made = maker.operation(name, BOOL, 3)
            if len(str(printer.truth(made))) <= LONGEST:
                return made

    made = CALENDAR + [drawn(name) for name in CONDITIONS for _ in range(EXPRESSIONS // len(CONDITIONS))]
    made += [drawn(">=") for _ in range(EXPRESSIONS // 3)]
    for _ in range(EXPRESSIONS):
        if used(made) == set(OPERATORS):
            break
        made.append(drawn(">="))
    return FOUND + made


def used(expressions):
    return {node.operator for expression in expressions for node in walk(expression) if isinstance(node, Apply)}


@pytest.fixture(scope="module")
def expected(table, expressions):
    events = [Event("T", None, row) for row in table.to_pylist()]
    return [[holds(expression, events, {("x", False): position}) for position in range(ROWS)] for expression in expressions]


def frame_of(spark, table):
    """A DataFrame in which times without zone stay so."""
    return spark.createDataFrame(table, from_arrow_schema(table.schema, prefer_timestamp_ntz=True))


def collated(spark, table):
    """With a collation for the labels, where Spark has them."""
    label = F.collate(F.col("name"), "UNICODE_CI") if hasattr(F, "collate") else F.col("name")
    return frame_of(spark, table.drop_columns(["label"])).withColumn("label", label)


def in_spark(spark, table, expressions):
    frame = collated(spark, table)
    printer = ColumnPrinter(frame.schema)
    bits = [F.when(printer.condition(each), 1).otherwise(0).cast("byte").alias(f"c{i}") for i, each in enumerate(expressions)]
    truths = [printer.truth(each).alias(f"t{i}") for i, each in enumerate(expressions)]
    return frame.select("row", *bits, *truths).toArrow().sort_by("row")


def test_every_operator_has_a_printer_and_is_drawn(expressions):
    assert {*CONDITIONS, *VALUES} == set(OPERATORS)
    assert used(expressions) == set(OPERATORS)


SESSIONS = [
    {"spark.sql.ansi.enabled": "true", "spark.sql.session.timeZone": "America/New_York", "spark.sql.codegen.factoryMode": "CODEGEN_ONLY"},
    {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "Asia/Kolkata", "spark.sql.codegen.factoryMode": "NO_CODEGEN"},
]
"""The plan is so wide that compiling it takes longer than everything else: once by expression, once interpreted."""


@pytest.mark.parametrize("settings", SESSIONS, ids=["ansi", "not-ansi"])
def test_spark_columns_agree_with_the_reference(spark, table, expressions, expected, settings):
    before = {key: spark.conf.get(key) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        found = in_spark(spark, table, expressions)
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)
    for number, (expression, truth) in enumerate(zip(expressions, expected, strict=True)):
        assert [bool(bit) for bit in found[f"c{number}"].to_pylist()] == truth, (number, expression)
        assert found[f"t{number}"].to_pylist() == truth, (number, expression)


def test_parts_of_any_date_and_time_are_those_of_utc(spark, seed, request):
    """Also beyond the years that Python and Spark's texts have; expressions of a few hundred characters, for Spark plans what it has to print."""
    rng = random.Random(seed)
    times = [*INT64, 0, -1, *(rng.randrange(-(2 ** rng.randint(40, 63)), 2 ** rng.randint(40, 63)) for _ in range(2_000))]
    days = [
        -(2**31),
        2**31 - 1,
        0,
        -1,
        *(rng.randrange(-(2 ** rng.randint(8, 31)), 2 ** rng.randint(8, 31)) for _ in range(len(times) - 4)),
    ]
    frame = spark.createDataFrame(pa.table({"time": times, "days": pa.array(days, pa.int32())}))
    frame = frame.select("time", "days", F.timestamp_micros("time").alias("at"), F.date_from_unix_date("days").alias("day"))
    printer = ColumnPrinter(frame.schema)
    columns = {
        (field_, part): printer.value(Apply(part, (Field("x", (field_,), kind, kind),), INT))
        for field_, kind, parts in (("at", ZONED, calendar.PARTS), ("day", DATE, calendar.DATES))
        for part in parts
    }
    assert max(len(str(column)) for column in columns.values()) < 1_000
    request.addfinalizer(lambda: spark.conf.set("spark.sql.session.timeZone", "UTC"))
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    found = frame.select("time", "days", *(column.alias(" ".join(name)) for name, column in columns.items())).toArrow()
    for field_, part in columns:
        steps_ = found["time" if field_ == "at" else "days"].to_pylist()
        per_day = calendar.steps_per_day(ZONED if field_ == "at" else DATE)
        assert found[f"{field_} {part}"].to_pylist() == [calendar.part(part, value, per_day) for value in steps_], (field_, part)


def test_arrow_compute_agrees_with_the_reference(table, expressions, expected):
    schema = EventSchema({name: table.schema.field(name).type for name in table.column_names})
    for number, (expression, truth) in enumerate(zip(expressions, expected, strict=True)):
        letters = Predicates(Alphabet((Predicate(expression),)), schema).letters(table)
        assert [bool(letter) for letter in letters] == truth, (number, expression)


def test_arrow_types_are_those_that_spark_shows(spark, table):
    schema = frame_of(spark, table).schema
    assert [arrow_type(field.dataType) for field in schema.fields] == list(table.schema.types)
    assert arrow_type(spark.sql("SELECT INTERVAL '1' MONTH AS m").schema["m"].dataType) is None
