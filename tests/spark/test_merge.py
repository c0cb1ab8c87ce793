"""Several streams as one DataFrame: the same matches as `q.run({name: table, ..})`, ties in the order of FROM."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

import cepheid
from cepheid.spark import merge
from cepheid.spark.source import arrow_schema

WEATHER = pa.table({"ts": pa.array([1, 5, 5, 9], pa.int64()), "gust": [50.0, 10.0, 60.0, float("nan")], "at": ["X", "X", "Y", "X"]})
FLIGHTS = pa.table({"ts": pa.array([1, 2, 5, 9], pa.int64()), "at": ["X", "Y", "Y", "X"], "delay": pa.array([5, None, 7, 9], pa.int32())})
TYPED = pa.table({"ts": pa.array([0, 6], pa.int64()), "type": ["open", "close"], "at": ["X", "X"], "delay": pa.array([1, 2], pa.int64())})


def frames(spark, **tables):
    return {name: spark.createDataFrame(table) for name, table in tables.items()}


def rows(table):
    return sorted(map(repr, table.to_pylist()))


QUERIES = [
    "SELECT * FROM weather, flights WHERE weather AS w ; flights+ AS f FILTER w[gust > 40] PARTITION BY at WITHIN 10",
    "SELECT * FROM flights, weather WHERE weather AS w ; flights+ AS f FILTER w[gust > 40] PARTITION BY at WITHIN 10",
    "SELECT * FROM flights WHERE flights AS f : flights AS g",
]


@pytest.mark.parametrize("text", QUERIES)
def test_merged_streams_answer_as_run_does(spark, text):
    query = cepheid.query(text)
    merged = merge(**frames(spark, flights=FLIGHTS, weather=WEATHER))
    found = merged.transform(query.on()).toArrow()
    expected = query.run({name: {"flights": FLIGHTS, "weather": WEATHER}[name] for name in query.tree.streams}).to_arrow(events=True)
    assert len(expected) >= 1
    columns = expected.schema.field(expected.schema.names[-1]).type.value_type.names
    shown = [
        {
            name: [{key: event[key] for key in columns} for event in value] if isinstance(value, list) else value
            for name, value in row.items()
        }
        for row in found.to_pylist()
    ]
    assert sorted(map(repr, shown)) == rows(expected)


def test_a_stream_with_types_of_its_own(spark):
    merged = merge(**frames(spark, weather=WEATHER, desk=TYPED))
    query = cepheid.query("SELECT * FROM weather, desk WHERE open AS o ; weather AS w ; close AS c PARTITION BY at WITHIN 10")
    expected = query.run({"weather": WEATHER, "desk": TYPED}).to_arrow(events=True)
    found = merged.transform(query.on()).toArrow()
    assert rows(found) == rows(expected)
    assert len(found) == 2
    by_name = cepheid.query("SELECT * FROM weather, desk WHERE desk AS o ; weather AS w FILTER o[type = 'open'] PARTITION BY at WITHIN 10")
    expected = by_name.run({"weather": WEATHER, "desk": TYPED}).to_arrow(events=True)
    found = merged.transform(by_name.on()).toArrow()
    assert len(found) == 3
    assert rows(found) == rows(expected)


def test_types_are_promoted_and_conflicts_named(spark):
    merged = merge(**frames(spark, flights=FLIGHTS, desk=TYPED))
    assert arrow_schema(merged.schema).field("delay").type == pa.int64()
    assert merged.columns == ["ts", "at", "delay", "type", "$stream"]
    text = FLIGHTS.set_column(2, "delay", pa.array(["a", "b", "c", "d"]))
    with pytest.raises(cepheid.SchemaError) as caught:
        merge(**frames(spark, flights=text, desk=TYPED))
    assert str(caught.value) == (
        "error: `delay` is string in the stream `flights` and int64 in `desk`\nhelp: cast one of them, or rename it"
    )


SHAPED = {
    "decimal and wider decimal": (pa.array([Decimal("1.25")], pa.decimal128(10, 2)), pa.array([Decimal("1.2567")], pa.decimal128(12, 4))),
    "integer and decimal": (pa.array([-(1 << 63)]), pa.array([Decimal("5.5")], pa.decimal128(3, 1))),
    "float and decimal": (pa.array([0.5], pa.float32()), pa.array([Decimal("123456.78")], pa.decimal128(10, 2))),
    "integer and double": (pa.array([1 << 53]), pa.array([0.5])),
    "text and bytes": (pa.array(["\u00e9"]), pa.array([b"\xff"])),
    "nothing and text": (pa.nulls(1), pa.array(["x"])),
    "structs of other fields": (pa.array([{"a": 1, "b": "x"}]), pa.array([{"b": "y", "c": 2.5, "a": 1 << 40}])),
    "structs of other order": (
        pa.array([{"a": "1", "b": "x"}]),
        pa.array([("y", "2")], pa.struct([("b", pa.string()), ("a", pa.string())])),
    ),
    "NULL as a struct": (pa.array([None], pa.struct([("a", pa.int32())])), pa.array([{"b": "y"}])),
    "lists of structs": (pa.array([[{"a": 1}, None]]), pa.array([[{"c": True}]])),
    "maps to other numbers": (
        pa.array([[("k", 1), ("l", None)]], pa.map_(pa.string(), pa.int8())),
        pa.array([[("k", 1 << 40)]], pa.map_(pa.string(), pa.int64())),
    ),
    "maps to structs": (
        pa.array([[("k", {"a": 1})]], pa.map_(pa.string(), pa.struct([("a", pa.int64())]))),
        pa.array([[("k", {"b": 2})]], pa.map_(pa.string(), pa.struct([("b", pa.int64())]))),
    ),
}


def test_values_of_other_types_are_the_same_as_embedded(spark):
    columns = {f"v{place}": pair for place, pair in enumerate(SHAPED.values())}
    streams = {name: pa.table({"ts": [side], **{v: pair[side] for v, pair in columns.items()}}) for side, name in enumerate("ab")}
    query = cepheid.query("SELECT * FROM a, b WHERE a AS x ; b AS y")
    expected = query.run(streams).to_arrow(events=True)
    found = merge(**frames(spark, **streams)).transform(query.on()).toArrow()
    assert len(found) == 1
    for side in "xy":
        assert found.column(side).to_pylist()[0] == expected.column(side).to_pylist()[0] != []
        kinds = [str(table.schema.field(side).type.value_type).replace("element:", "item:") for table in (found, expected)]
        assert kinds[0] == kinds[1]


def test_integers_that_are_no_doubles_are_an_error(spark):
    """Embedded, too."""
    streams = {"a": pa.table({"ts": [1], "v": [(1 << 53) + 1]}), "b": pa.table({"ts": [2], "v": [0.5]})}
    query = cepheid.query("SELECT * FROM a, b WHERE a ; b")
    with pytest.raises(cepheid.SchemaError, match="9007199254740993"):
        query.run(streams)
    with pytest.raises(Exception, match="a stream to merge has the integer 9007199254740993, which double cannot hold"):
        merge(**frames(spark, **streams)).transform(query.on(columns=["v"])).collect()


def test_ties_go_by_from_and_then_by_order(spark):
    """Embedded, too."""
    streams = {"a": pa.table({"ts": [1, 1], "row": [3, 2]}), "b": pa.table({"ts": [1], "row": [1]})}
    query = cepheid.query("SELECT * FROM a, b WHERE a AS x : a AS y : b AS z")
    expected = query.run(streams, order="row").to_arrow(events=True)
    assert [(row["x"][0]["row"], row["y"][0]["row"], row["z"][0]["row"]) for row in expected.to_pylist()] == [(2, 3, 1)]
    assert query.run(streams, order="row", engine="reference").to_arrow(events=True).equals(expected)
    found = merge(**frames(spark, **streams)).transform(query.on(order="row")).toArrow()
    assert [(row["x"][0]["row"], row["y"][0]["row"], row["z"][0]["row"]) for row in found.to_pylist()] == [(2, 3, 1)]
    with pytest.raises(cepheid.SchemaError, match="the input has no column `rows` to order by"):
        query.run(streams, order="rows")


def test_columns_that_are_one_to_spark_or_taken(spark):
    plain = pa.table({"ts": [1], "v": [1]})
    for name, other in (("V", pa.int64()), ("TS", pa.int64()), ("Type", pa.string())):
        table = pa.table({"ts": [2], name: pa.nulls(1, other)})
        with pytest.raises(
            cepheid.SchemaError, match=f"and `{name}`, which are the same to Spark|`{name}` and `type`, which are the same to Spark"
        ):
            merge(**frames(spark, a=plain, b=table))
    with pytest.raises(cepheid.SchemaError, match=r"the stream `b` has a column `\$rank`"):
        merge(**frames(spark, a=plain, b=pa.table({"ts": [2], "$rank": [1]})))
    with pytest.raises(cepheid.SchemaError, match="`type` of the stream `b` is int64, and other streams get their name in it"):
        merge(**frames(spark, a=plain, b=pa.table({"ts": [2], "type": [1]})))


def test_what_does_not_merge(spark):
    streams = frames(spark, weather=WEATHER, flights=FLIGHTS)
    with pytest.raises(cepheid.InputError, match="there are no streams to merge"):
        merge()
    with pytest.raises(cepheid.SchemaError, match="the stream `weather` has no time column `tz`"):
        merge(**streams, time="tz")
    timed = pa.table({"tags": [1], "at": pa.array([1], pa.timestamp("us", "UTC"))})
    with pytest.raises(cepheid.SchemaError, match="the stream `depart` has no time column `ts`") as caught:
        merge(**frames(spark, depart=timed, arrive=timed))
    assert caught.value.help == (
        "streams are merged by event time: name its column with time='at', a timestamp in all of them",
        "`depart` has `tags`, `at`",
    )
    with pytest.raises(cepheid.SchemaError, match="the stream `all` is merged already"):
        merge(all=merge(**streams))
    with pytest.raises(cepheid.SchemaError, match="reads the stream `wether`"):
        merge(**streams).transform(cepheid.query("SELECT * FROM wether, flights WHERE wether ; flights").on())
    with pytest.raises(cepheid.BindError, match="gust"):
        merge(**streams).transform(cepheid.query("SELECT * FROM weather, flights WHERE flights AS f ; weather FILTER f[gust > 1]").on())
