"""Measures on Spark: the values and types of `q.run`, and only what they read travels."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema

import cepheid
from cepheid.errors import InputError, LimitError, SchemaError
from cepheid.spark.batch import Plan
from cepheid.spark.recognition import on
from cepheid.testing.measures import fault, random_case, rows_of


def frame_of(spark, table):
    return spark.createDataFrame(table, from_arrow_schema(table.schema, prefer_timestamp_ntz=True))


def in_microseconds(table):
    """A table as Spark stores it: times and durations in microseconds."""
    fields = []
    for field in table.schema:
        kind = field.type
        if pa.types.is_timestamp(kind):
            kind = pa.timestamp("us", kind.tz and "UTC")
        elif pa.types.is_duration(kind):
            kind = pa.duration("us")
        elif pa.types.is_date64(kind):
            kind = pa.date32()
        fields.append(field.with_type(kind))
    return table.cast(pa.schema(fields), safe=False)


def small_case(seed, number):
    """A random case that Spark and the definition can both answer, and not at length."""
    for attempt in range(100):
        case = random_case(f"{seed}/{number}/{attempt}", time=("timestamp", "int64", "date")[number % 3], spark=True)
        matches = case.query.run(case.events, order="row")
        if not 0 < len(matches) <= 2_000:
            continue
        try:
            assert fault(case, matches) is None
        except LimitError:
            continue
        return case, matches
    raise AssertionError(number)


@pytest.mark.slow
def test_random_measures_are_those_of_run(spark, cases, seed):
    for number in range(max(cases // 15, 4)):
        case, matches = small_case(seed, number)
        found = frame_of(spark, case.events).repartition(2).transform(case.query.on(order="row")).toArrow()
        expected = in_microseconds(matches.to_arrow(events=True))
        assert found.column_names == expected.column_names
        times_apart = found.cast(pa.schema([field.with_type(expected.schema.field(field.name).type) for field in found.schema]))
        told = f"CEPHEID_SEED={seed} case {number}: {case.query.text}\n{case.events.to_pylist()}"
        assert sorted(rows_of(times_apart), key=repr) == sorted(rows_of(expected), key=repr), told


TYPES = {
    "count(y)": T.LongType(),
    "first(y.tiny)": T.LongType(),
    "sum(y.half)": T.DoubleType(),
    "avg(y.price)": T.DoubleType(),
    "sum(y.price)": T.DecimalType(38, 2),
    "max(y.price)": T.DecimalType(10, 2),
    "min(y.s)": T.StringType(),
    "first(y.b)": T.BooleanType(),
    "first(y.raw)": T.BinaryType(),
    "first(y.tags)": T.ArrayType(T.StringType()),
    "first(y.place)": T.StructType([T.StructField("name", T.StringType()), T.StructField("when", T.TimestampType())]),
    "first(y.scores)": T.MapType(T.StringType(), T.LongType()),
    "first(y.place.name)": T.StringType(),
    "first(y.place.when)": T.TimestampType(),
    "first(y.day)": T.DateType(),
    "first(y.day) - first(x.day)": T.DayTimeIntervalType(),
    "first(y.local)": T.TimestampNTZType(),
    "max(y.$time)": T.TimestampType(),
    "end_time()": T.TimestampType(),
    "duration()": T.DayTimeIntervalType(),
    "first(y.took)": T.DayTimeIntervalType(),
    "first(y.day) + 5s": T.TimestampNTZType(),
    "1 + 1": T.LongType(),
}


def one_match(spark):
    instant = dt.datetime(2024, 3, 31, 1, 30, tzinfo=dt.UTC)
    row = {
        "tiny": 7, "half": 0.5, "price": Decimal("1.25"), "s": "\u00e9", "b": True, "raw": b"\xff", "tags": ["a", None],
        "place": {"name": "x", "when": instant}, "scores": {"u": 1}, "day": dt.date(2024, 3, 31), "local": instant.replace(tzinfo=None),
        "took": dt.timedelta(hours=1),
    }  # fmt: skip
    kinds = {
        "type": pa.string(), "ts": pa.timestamp("us", "UTC"), "tiny": pa.int8(), "half": pa.float32(), "price": pa.decimal128(10, 2),
        "s": pa.string(), "b": pa.bool_(), "raw": pa.binary(), "tags": pa.list_(pa.string()),
        "place": pa.struct([("name", pa.string()), ("when", pa.timestamp("us", "UTC"))]), "scores": pa.map_(pa.string(), pa.int64()),
        "day": pa.date32(), "local": pa.timestamp("us"), "took": pa.duration("us"),
    }  # fmt: skip
    rows = [{**row, "type": "A", "ts": instant, "day": dt.date(2024, 3, 30)}, {**row, "type": "B", "ts": instant + dt.timedelta(hours=1)}]
    table = pa.Table.from_pylist(rows, schema=pa.schema(list(kinds.items())))
    return table, frame_of(spark, table)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_types_and_values(spark, zone):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        table, frame = one_match(spark)
        query = cepheid.query(f"SELECT {', '.join(f'{text} AS m{n}' for n, text in enumerate(TYPES))} WHERE A AS x ; B AS y")
        matches = frame.transform(query.on())
        assert [(field.name, field.dataType) for field in matches.schema][2:] == [(f"m{n}", kind) for n, kind in enumerate(TYPES.values())]
        found = matches.toArrow()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    expected = in_microseconds(query.run(table).to_arrow(events=True))
    assert found.cast(expected.schema).equals(expected)


def test_only_what_measures_read_travels(spark):
    _, frame = one_match(spark)
    query = cepheid.query("SELECT sum(y.price) AS total, first(y.place.name) AS name WHERE A AS x ; B AS y PARTITION BY s")
    plan = Plan.of(query, on(query).options, frame)
    assert set(plan.needed()) == {"price", "place", "s", "ts"}
    read = {plan.source.names[name] for name in ("price", "place")}
    assert set(plan.prepared()[0].columns) == {"k0", "$time", "$letter"} | read
    assert [field.name for field in plan.output()] == ["s", "start_time", "end_time", "total", "name"]
    assert plan.describe().splitlines()[-1].endswith("start_time timestamp, end_time timestamp, total decimal(38,2), name string")
    assert [tuple(row)[3:] for row in frame.transform(query.on()).collect()] == [(Decimal("1.25"), "x")]


TRAVELLING = {
    "what is compared is shown": ("SELECT * WHERE A AS x ; B AS y FILTER y.price > x.price PARTITION BY s", set()),
    "time alone": ("SELECT count(x) AS n WHERE ANY AS x ; ANY AS y FILTER y.$time - x.$time > 2 s PARTITION BY s", set()),
    "compared, not shown": ("SELECT count(x) AS n WHERE ANY AS x ; ANY AS y FILTER y.price > x.price PARTITION BY s", {"$value"}),
    "computed": ("SELECT * WHERE ANY AS x ; ANY AS y FILTER y.price > x.price + 1 PARTITION BY s", {"$value"}),
}


@pytest.mark.parametrize("name", TRAVELLING)
def test_nothing_travels_twice(spark, name):
    """The time is there as time; values that guards read are those that are shown; a letter that is always 0 is made again."""
    text, more = TRAVELLING[name]
    table, frame = one_match(spark)
    query = cepheid.query(text)
    plan = Plan.of(query, on(query).options, frame)
    shown = {plan.source.names[each] for each in plan.shown if each not in {"s", "ts"}}
    letter = {"$letter"} if "A AS" in text else set()
    found = {column.split(" ")[0] for column in plan.prepared()[0].columns}
    assert found == {"k0", "$time"} | letter | shown | more
    matches = frame.transform(query.on(order="any")).toArrow()
    expected = in_microseconds(query.run(table).to_arrow(events=True))
    assert matches.cast(expected.schema).equals(expected)


def test_the_times_of_a_result_and_positions(spark):
    _, frame = one_match(spark)
    query = cepheid.query("SELECT start_time(), count(y) AS n, end_time() WHERE A AS x ; B AS y PARTITION BY s")
    matches = frame.transform(query.on(positions=True))
    assert matches.columns == ["s", "start_time", "end_time", "start_position", "end_position", "n"]
    assert [(row.start_position, row.end_position, row.n) for row in matches.collect()] == [(0, 1, 1)]


def test_options_and_names_that_cannot_be(spark):
    _, frame = one_match(spark)
    query = cepheid.query("SELECT count(y) AS n WHERE A AS x ; B AS y")
    with pytest.raises(InputError, match="columns= names the attributes of shown events, and this query shows measures"):
        frame.transform(query.on(columns=["s"]))
    with pytest.raises(SchemaError, match="two columns named `n` and `N`"):
        frame.transform(cepheid.query("SELECT count(y) AS n, first(y.s) AS N WHERE A AS x ; B AS y").on())
