"""`q.on`: the same answer as `q.run` whatever the keys, the names, the options and the partitioning."""

from __future__ import annotations

import datetime as dt
import functools
import inspect
import random
import re
import threading
import time as clock
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from kinds_of_times import NUMBERS, TEXTS, VALUES
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema

import cepheid
from cepheid.errors import InputError, NotSupportedError, SchemaError, SetupError
from cepheid.spark import recognition as recognition_module
from cepheid.spark.recognition import on
from cepheid.spark.translation import cepheid_error, translated

CHAIN = "SELECT * WHERE (A AS x ; B+ AS y ; C AS z) FILTER x[v >= 1] PARTITION BY k WITHIN 40"


def frame_of(spark, table):
    return spark.createDataFrame(table, from_arrow_schema(table.schema, prefer_timestamp_ntz=True))


def stream(size, *, seed=7, keys=(1, 2, 3, None)):
    """Events with times that are all different, so that every partitioning has one answer."""
    source = random.Random(seed)
    return pa.table(
        {
            "ts": pa.array(sorted(source.sample(range(4 * size), size)), pa.int64()),
            "type": pa.array([source.choice("ABCD") for _ in range(size)]),
            "k": pa.array([source.choice(keys) for _ in range(size)], pa.int32()),
            "v": pa.array([source.choice([0.5, 1.0, 2.5, float("nan"), None]) for _ in range(size)]),
        }
    )


def rows(table):
    """The rows of a table of matches, in an order of their own; NaN compares as its name."""
    return sorted(map(repr, table.to_pylist()))


def test_any_partitioning_gives_the_answer_of_run(spark):
    table = stream(3000)
    query = cepheid.query(CHAIN)
    expected = query.run(table)
    assert len(expected) > 50
    shuffled = frame_of(spark, table).repartition(5, F.rand(1))
    recognition = query.on(buckets=3)
    matches = shuffled.transform(recognition)
    found = matches.toArrow()
    assert rows(found) == rows(expected.to_arrow(events=True))
    assert found.column_names == expected.to_arrow(events=True).column_names
    # Events of any type are counted, as they are embedded.
    assert 0 < recognition.counts()["null_keys"] == expected.null_keys


def test_what_is_doubtful_in_the_types_is_said_as_embedded(spark):
    """A job of its own counts the types, for events of other types need not be read."""
    events = pa.table(
        {
            "ts": pa.array(range(8), pa.int64()),
            "type": ["Signup", "SIGNUP", "Signup ", "signup", "signup", "Buy", "Buy", None],
            "k": pa.array([1, 1, 1, 1, 1, None, None, 1], pa.int32()),
        }
    )
    queries = {"first": "SELECT * WHERE Signup ; Buy PARTITION BY k", "second": "SELECT * WHERE Signup ; Refundd PARTITION BY k"}
    expected = [f"{name}: {line}" for name, text in queries.items() for line in cepheid.query(text).run(events).warnings]
    assert list(on(queries).warnings(frame_of(spark, events))) == expected
    assert len(expected) == 8
    assert on("SELECT * WHERE Signup ; Buy PARTITION BY k", null_keys="group").warnings(frame_of(spark, events.slice(5))) == (
        "no event has the type `Signup`",
    )


def test_one_task_without_keys_and_a_window_across_batches(spark):
    table = stream(2500, seed=8)
    query = cepheid.query("SELECT ANY * WHERE A AS x ; B AS y ; C AS z FILTER x[v = 2.5] WITHIN 400")
    plan = query.on(buckets=1).explain(frame_of(spark, table))
    assert "one task reads all events: the query has no PARTITION BY, and the shuffle has one task" in plan
    assert plan.startswith("meaning     A match is an A called x where v is 2.5, later a B called y, later a C called z. ")
    assert "x, y, z: arrays of events of " in plan
    found = frame_of(spark, table).transform(query.on(buckets=1)).toArrow()
    assert rows(found) == rows(query.run(table).to_arrow(events=True))


@pytest.mark.parametrize("right", ["A ; B ; C", "A ;[<= 6] B ; C"])
@pytest.mark.parametrize("model", ["ACTIVE_OFFICE", "COMPLETE_HISTORY"])
def test_a_time_across_batches(spark, model, right):
    """Spark cuts every 700 events; those of a time are read together."""
    # Few of a time: the model may answer with many matches for each, and the cuts at 700 and 1,400 fall inside one.
    table = stream(1600, seed=9).append_column("row", pa.array(range(1600)))
    table = table.set_column(0, "ts", pa.array([row // 13 for row in range(1600)]))
    query = cepheid.query(f"SELECT * WHERE (D FILTER D.v > 2) THEN ({right}) WITHIN 12 TIME MODEL {model}")
    found = frame_of(spark, table).transform(query.on(order="row")).toArrow()
    assert rows(found) == rows(query.run(table, order="row").to_arrow(events=True))
    assert len(found) > 100


@pytest.mark.parametrize("where", ["A AS x FILTER x.type = 'A'", "A AS x ; B AS y FILTER 'A' = x.type AND y.type = 'B' AND y.v > 1"])
def test_a_condition_that_is_a_test_of_the_type(spark, where):
    """Two predicates of a letter are then one and the same expression."""
    table = stream(300)
    query = cepheid.query(f"SELECT * WHERE {where} PARTITION BY k WITHIN 400")
    expected = rows(query.run(table).to_arrow(events=True))
    assert len(expected) > 20
    assert rows(frame_of(spark, table).transform(query.on()).toArrow()) == expected
    both = frame_of(spark, table).transform(cepheid.spark.on({"one": query, "two": cepheid.query(CHAIN)})).where("query = 'one'")
    assert both.count() == len(expected)


TYPES = " OR ".join(["A", "B", *(f"T{number}" for number in range(68))])


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT * WHERE ({TYPES}) AS x ; C AS y FILTER x.v > 1 AND y[v >= 1] PARTITION BY k WITHIN 40",
        f"SELECT * WHERE ({TYPES}) AS x : C AS y WITHIN 40",
        f"SELECT * WHERE C AS x NOT FOLLOWED BY ({TYPES}) FOR 4 PARTITION BY k",
        f"SELECT LAST * WHERE ({TYPES})+ AS x ; C AS y PARTITION BY k WITHIN 40",
    ],
)
def test_more_types_than_a_letter_has_bits(spark, text):
    table = stream(400)
    query = cepheid.query(text)
    expected = rows(query.run(table).to_arrow(events=True))
    assert len(expected) > 5
    assert rows(frame_of(spark, table).transform(query.on()).toArrow()) == expected
    if "PARTITION" in text:
        several = cepheid.spark.on({"one": query, "two": cepheid.query(CHAIN)})
        assert frame_of(spark, table).transform(several).where("query = 'one'").count() == len(expected)


def test_neighbours_and_positions_keep_every_event(spark):
    table = stream(800, seed=9, keys=(1, 2))
    query = cepheid.query("SELECT * WHERE A AS x : B AS y ; C AS z PARTITION BY k WITHIN 60")
    recognition = query.on(positions=True)
    assert "none (positions=True counts every event)" in recognition.explain(frame_of(spark, table))
    found = frame_of(spark, table).transform(recognition).toArrow()
    assert found.column_names == ["k", "start_time", "end_time", "start_position", "end_position", "x", "y", "z"]
    seen = {
        (row["k"], row["start_position"], row["end_position"], *(tuple(event["$index"] for event in row[name]) for name in "xyz"))
        for row in found.to_pylist()
    }
    assert seen == {(m.keys["k"], m.start, m.end, *(m.variables[name] for name in "xyz")) for m in query.run(table)}
    assert found.num_rows == len(seen)


@pytest.mark.parametrize("null_keys", ["drop", "group"])
def test_equalities_within_partitions(spark, null_keys):
    """What PARTITION BY says of NULL it says of its own attributes; in the others NULL and NaN match nothing, and both zeros are one."""
    table = stream(900, seed=11, keys=(1, 2, None))
    choices = random.Random(12)
    table = table.set_column(3, "v", pa.array([choices.choice([0.0, -0.0, 1.5, float("nan"), None]) for _ in range(len(table))]))
    table = table.filter(pc.is_in(table["type"], value_set=pa.array(["A", "B"])))
    query = cepheid.query("SELECT * WHERE A AS x ; B AS y FILTER x.v = y.v PARTITION BY k WITHIN 200")
    recognition = query.on(null_keys=null_keys)
    assert "one key in one task: PARTITION BY k, v (from equalities)" in recognition.explain(frame_of(spark, table))
    found = frame_of(spark, table).transform(recognition)
    expected = query.run(table, null_keys=null_keys)
    assert found.columns == ["k", "start_time", "end_time", "x", "y"]
    assert rows(found.toArrow()) == rows(expected.to_arrow(events=True))
    assert len(expected) > 50
    assert recognition.counts().get("null_keys", 0) == expected.null_keys


KEYS = {
    "flag": (pa.bool_(), [True, False]),
    "byte": (pa.int8(), [-1, 1]),
    "real": (pa.float64(), [0.0, -0.0, float("nan"), 1.5]),
    "single": (pa.float32(), [0.0, -0.0, float("nan"), 0.1]),
    "money": (pa.decimal128(38, 2), [Decimal("1.10"), Decimal("-1.10")]),
    "name": (pa.string(), ["", "a", "A", "é", "a "]),
    "day": (pa.date32(), [dt.date(2024, 3, 10), dt.date(1, 1, 1)]),
    "at": (pa.timestamp("us", "UTC"), [dt.datetime(2024, 3, 10, 7, tzinfo=dt.UTC), dt.datetime(2024, 3, 10, 8, tzinfo=dt.UTC)]),
}


@pytest.mark.parametrize("null_keys", ["drop", "group"])
def test_keys_of_all_types(spark, null_keys):
    """All key types together, then as many jobs as there are ways to treat NULL: two."""
    source = random.Random(3)
    size = 1500
    columns = {name: pa.array([source.choice([*values, None]) for _ in range(size)], kind) for name, (kind, values) in KEYS.items()}
    events = pa.table({"ts": pa.array(range(size), pa.int64()), "type": pa.array([source.choice("AB") for _ in range(size)]), **columns})
    # One stream per key type, told apart by another key.
    tables = [events.append_column("which", pa.array([index] * size, pa.int32())) for index in range(len(KEYS))]
    queries = [cepheid.query(f"SELECT ANY * WHERE A AS x ; B AS y PARTITION BY {name}, which WITHIN 300") for name in KEYS]
    whole = None
    for query, table in zip(queries, tables, strict=True):
        found = frame_of(spark, table).transform(query.on(null_keys=null_keys, columns=["ts"]))
        keyed = found.select(F.struct(found.columns[0]).cast("string").alias("key"), "which", "start_time", "end_time", "x", "y")
        whole = keyed if whole is None else whole.union(keyed)
    answer = whole.toArrow()
    for index, (query, table) in enumerate(zip(queries, tables, strict=True)):
        part = answer.filter(pc.equal(answer["which"], index))
        expected = query.run(table, null_keys=null_keys).to_arrow(events=True)
        pairs = sorted((row["x"][0]["ts"], row["y"][0]["ts"]) for row in part.to_pylist())
        assert pairs == sorted((row["x"][0]["ts"], row["y"][0]["ts"]) for row in expected.to_pylist()), list(KEYS)[index]
        assert len(part) == len(expected) > 100


@pytest.mark.skipif(not hasattr(F, "collate"), reason="Spark 3.5 has no collations")
def test_collated_keys_and_types_compare_by_bytes(spark):
    table = pa.table({"ts": [1, 2, 3, 4], "type": ["A", "a", "B", "B"], "k": ["x", "X", "X", "x"]})
    frame = frame_of(spark, table).withColumns({name: F.collate(name, "UNICODE_CI") for name in ("type", "k")})
    query = cepheid.query("SELECT * WHERE A ; B PARTITION BY k")
    found = frame.transform(query.on()).collect()
    assert [(row.k, row.start_time, row.end_time) for row in found] == [("x", 1, 4)]


def test_strange_names_and_a_column_as_type(spark):
    table = pa.table(
        {"t.s": [1, 2, 3], "K`": [1, 1, 1], "k`": [1, 2, 1], "a b.c": [0, 1, 1], "v": [{"in.side": 1}, {"in.side": 2}, {"in.side": 1}]}
    )
    frame = frame_of(spark, table)
    query = cepheid.query("SELECT * WHERE up AS x ; down AS y FILTER x[v.`in.side` = 1] PARTITION BY `k```")
    kind = F.when(F.col("`a b.c`") == 0, "up").otherwise("down")
    found = frame.transform(query.on(type=kind, time="t.s")).toArrow()
    assert found.column_names == ["k`", "start_time", "end_time", "x", "y"]
    assert found.to_pylist()[0]["y"] == [{"t.s": 3, "K`": 1, "k`": 1, "a b.c": 1, "v": {"in.side": 1}}]


def test_times_of_every_type_and_no_matches(spark):
    query = cepheid.query("SELECT * WHERE A AS x ; B AS y FILTER x[ts IS NOT NULL] WITHIN 1 day")
    moments = [dt.datetime.fromisoformat(text) for text in ("2024-03-10 01:00", "2024-03-11 00:00")]
    for kind, times in {
        pa.timestamp("us"): moments,
        pa.timestamp("us", "UTC"): [moment.replace(tzinfo=dt.UTC) for moment in moments],
        pa.date32(): [moment.date() for moment in moments],
    }.items():
        table = pa.table({"ts": pa.array(times, kind), "type": ["A", "B"]})
        (row,) = frame_of(spark, table).transform(query.on()).toArrow().to_pylist()
        assert [row["start_time"], row["end_time"]] == times
    none = frame_of(spark, table).where("type = 'C'").transform(query.on())
    assert none.toArrow().num_rows == 0
    assert none.schema["x"].dataType == T.ArrayType(
        T.StructType([T.StructField("ts", T.DateType()), T.StructField("type", T.StringType())])
    )


def test_the_kinds_of_times_that_are_taken_embedded(spark):
    """But for texts: their error says how to cast them, and cast so they are taken."""
    query = cepheid.query("SELECT * WHERE A ; B")
    kinds = {name: pa.array(times, None if name in TEXTS else kind) for name, (times, kind) in (TEXTS | NUMBERS | VALUES).items()}
    frame = frame_of(spark, pa.table({"type": ["A", "B"], **kinds}))
    for name in TEXTS:
        with pytest.raises(SchemaError, match=re.escape(f"in Spark F.to_timestamp('{name}')")):
            frame.transform(query.on(time=name))
        frame = frame.withColumn(name, F.to_timestamp(name))
    found = [frame.transform(query.on(time=name)).select(F.lit(name)) for name in kinds]
    assert sorted(name for (name,) in functools.reduce(DataFrame.unionAll, found).collect()) == sorted(kinds)


def test_parameters_and_fewer_columns(spark):
    table = stream(400, seed=5, keys=(1,))
    query = cepheid.query("SELECT x, z WHERE A AS x ; C AS z FILTER x[v >= :least] PARTITION BY k WITHIN 30", args={"least": 2})
    found = frame_of(spark, table).transform(query.on(columns="v")).toArrow()
    expected = query.run(table).to_arrow(events=True).to_pylist()
    assert rows(found) == sorted(repr({**row, **{name: [{"v": event["v"]} for event in row[name]] for name in "xz"}}) for row in expected)
    assert found.num_rows > 20


# ------------------------------------------------------------------------------------------------------------------------ bad input


def test_ties_are_an_error_with_the_way_out(spark):
    table = pa.table({"ts": [1, 2, 2, 3], "type": ["A", "B", "B", "C"], "k": [1, 1, 1, 1], "n": [1, 2, 3, 4], "m": [1, 2, 2, 4]})
    query = cepheid.query("SELECT * WHERE A ; B ; C PARTITION BY k")
    with pytest.raises(cepheid.InputError) as caught, translated():
        frame_of(spark, table).transform(query.on(order="m")).collect()
    assert str(caught.value) == (
        "error: two events of k=1 have the same time 2 and the same `m`, and nothing says which comes first\n"
        "help: name the columns that decide: q.on(.., order=[..])\n"
        'help: or say that any order will do: q.on(.., order="any")'
    )
    ordered = frame_of(spark, table).transform(query.on(order=["m", "n"]))
    assert rows(ordered.toArrow()) == rows(query.run(table).to_arrow(events=True))
    assert frame_of(spark, table).transform(query.on(order="any")).count() == 2


@pytest.mark.skipif(not hasattr(F, "collate"), reason="Spark 3.5 has no collations")
def test_order_columns_compare_as_in_run(spark):
    names = ["b", "A", None, "a"]
    table = pa.table({"ts": [2, 2, 2, 2], "type": ["B", "A", "C", "B"], "k": [7, 7, 7, 7], "n": names, "r": [2.5, -1.0, None, 0.5]})
    query = cepheid.query("SELECT * WHERE A AS x ; B AS y ; C AS z FILTER x.k = y.k AND z.k = y.k")
    frame = frame_of(spark, table).withColumn("n", F.collate("n", "UNICODE_CI"))
    for order in ("n", "r"):
        found = frame.transform(query.on(order=order, columns="n")).toArrow()
        expected = [[row[name][0]["n"] for name in "xyz"] for row in query.run(table, order=order).to_arrow(events=True).to_pylist()]
        assert [[row[name][0]["n"] for name in "xyz"] for row in found.to_pylist()] == expected == [["A", "b", None], ["A", "a", None]]
        # The key comes from equalities: it is no output column.
        assert found.column_names == ["start_time", "end_time", "x", "y", "z"]


def test_null_times_are_an_error_or_dropped(spark):
    table = pa.table({"ts": pa.array([1, None, 3], pa.int64()), "type": ["A", "X", "B"], "k": ["a", "b", "a"]})
    query = cepheid.query("SELECT * WHERE A ; B PARTITION BY k")
    with pytest.raises(cepheid.InputError) as caught, translated():
        frame_of(spark, table).transform(query.on()).collect()
    assert str(caught.value) == (
        "error: an event of k='b' has no time: `ts` is NULL\nhelp: leave these events out before, or say q.on(.., null_time=\"drop\")"
    )
    recognition = query.on(null_time="drop")
    assert frame_of(spark, table.set_column(1, "type", pa.array(["A", "A", "B"]))).transform(recognition).count() == 1
    assert recognition.counts()["null_times"] == 1


@pytest.mark.parametrize("columns", [["card"], []])
def test_dropped_events_are_counted_where_none_is_left(spark, columns):
    """Spark loses what it observed where it finds nothing to shuffle."""
    frame = spark.range(100).selectExpr("if(id % 2 = 0, 'A', 'B') type", "id ts", "if(id < 0, 'x', NULL) card")
    recognition = cepheid.query("SELECT * WHERE A ; B PARTITION BY card WITHIN 9").on(columns=columns or None)
    assert frame.transform(recognition).collect() == []
    assert recognition.counts() == {"null_keys": 100}
    assert frame.where("id < 0").transform(recognition).collect() == []
    assert recognition.counts() == {"null_keys": 0}


SIMPLE = pa.table({"ts": [1, 2], "type": ["A", "B"], "K": [1, 1], "many": [[1], [2]], "$index": [0, 0]})

BAD = {
    "time": ({"time": "tz"}, "A ; B", cepheid.SchemaError, "the input has no time column `tz`"),
    "no-time": ({}, "A ; B", cepheid.SchemaError, "the input has no time column `ts`"),
    "order": ({"order": "kk"}, "A ; B", cepheid.SchemaError, "the input has no column `kk`, which order= names"),
    "columns": ({"columns": ["typ"]}, "A ; B", cepheid.SchemaError, "the input has no column `typ`, which columns= names"),
    "key-case": ({}, "A AS k ; B PARTITION BY K", cepheid.SchemaError, "two columns named `K` and `k`, which are the same to Spark"),
    "key-list": ({}, "A ; B PARTITION BY many", cepheid.CepheidError, "many"),
    "attribute": ({}, "A AS x ; B FILTER x[y = 1]", cepheid.BindError, "`y`"),
    "derived": ({"positions": True}, "A AS x ; B AS y FILTER x.K = y.K", cepheid.NotSupportedError, "write PARTITION BY K"),
    "both-keys": (
        {"positions": True},
        "A AS x ; B AS y FILTER x.K = y.K PARTITION BY type",
        cepheid.NotSupportedError,
        "write PARTITION BY type, K",
    ),
    "late": (
        {"late": True},
        "A ; B",
        cepheid.InputError,
        "late=True gives the late events of a stream, and this DataFrame is not a stream",
    ),
    "order-list": ({"order": ["K", "many"]}, "A ; B", cepheid.SchemaError, "cannot be ordered by `many`: array<bigint>"),
    "index": ({"positions": True}, "A AS x ; B", cepheid.SchemaError, "two attributes named `$index`"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_found_before_any_job(spark, name):
    options, pattern, kind, words = BAD[name]
    frame = frame_of(spark, SIMPLE)
    if name == "no-time":
        frame = frame.withColumnRenamed("ts", "when")
    with pytest.raises(kind) as caught:
        frame.transform(cepheid.query(pattern if "SELECT" in pattern else f"SELECT * WHERE {pattern}").on(**options))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"null_keys": "keep"},
        {"null_time": "dropp"},
        {"columns": []},
        {"type": 5},
        *({"buckets": given} for given in (0, "3", 1.5, True, 1 << 31)),
    ],
)
def test_options_are_checked_when_on_is_called(options):
    (name,) = options
    with pytest.raises(cepheid.InputError, match=f"{name}="):
        cepheid.query("SELECT * WHERE A ; B").on(**options)


def test_texts_are_queries():
    text = "SELECT * WHERE A"
    query = cepheid.query(text)
    assert (on(text).queries, on(text).names) == ((query,), None)
    for several, names in (
        ([text, query], ("q1", "q2")),
        ({"a": text, "b": query}, ("a", "b")),
        (cepheid.queries({"a": text, "b": text}), ("a", "b")),
    ):
        assert (on(several).queries, on(several).names) == ((query, query), names)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ([], cepheid.InputError, "there is no query"),
        ({}, cepheid.InputError, "there is no query"),
        ({"bad": "SELECT * WHERE"}, cepheid.QuerySyntaxError, "in the query `bad`: "),
        (["SELECT * WHERE A", 5], cepheid.InputError, "in the query `q2`: a query cannot be a int"),
        (5, cepheid.InputError, "a query cannot be a int"),
    ],
)
def test_what_is_no_query(given, error, message):
    with pytest.raises(error, match=message):
        on(given)


def test_the_end_is_after_every_time(spark):
    """Also after integers that are no timestamps."""
    query = cepheid.query("SELECT * WHERE A AS x NOT FOLLOWED BY B FOR 2")
    for time in (-(2**63), 0, 2**62 + 10, 2**63 - 10):
        table = pa.table({"ts": [time], "type": ["A"]})
        found = frame_of(spark, table).transform(query.on(until="end")).toArrow()
        assert found["end_time"].to_pylist() == [match.end_time for match in query.run(table, until="end")] == [time]


def test_events_show_their_keys_as_they_are(spark):
    """A key is 0.0 and NULL where an event has -0.0 and NaN."""
    table = pa.table({"ts": [1, 2, 3, 4], "type": list("ABAB"), "k": [0.0, -0.0, float("nan"), None]})
    query = cepheid.query("SELECT * WHERE A AS x ; B AS y PARTITION BY k")
    found = frame_of(spark, table).transform(query.on(null_keys="group")).toArrow()
    assert rows(found) == rows(query.run(table, null_keys="group").to_arrow(events=True))
    assert "-0.0" in str(rows(found))


def test_columns_without_values(spark):
    """Of Spark's type void: a key that is always NULL, and no event type; a lateness, which a stream needs, changes nothing."""
    frame = frame_of(spark, pa.table({"ts": [1, 2, 3, 4], "type": list("ABAB")}))
    query = cepheid.query("SELECT * WHERE A ; B PARTITION BY k")
    keyed = frame.withColumn("k", F.lit(None))
    assert keyed.transform(query.on()).count() == 0
    assert keyed.transform(query.on(null_keys="group", lateness="1 second")).count() == 3
    untyped = frame.withColumn("type", F.lit(None))
    assert untyped.transform(cepheid.query("SELECT * WHERE A ; B").on()).count() == 0
    assert untyped.transform(cepheid.query("SELECT * WHERE ANY : ANY").on()).count() == 3


def test_a_type_that_arrow_cannot_show_and_twice_one_name(spark):
    query = cepheid.query("SELECT * WHERE A ; B")
    with pytest.raises(cepheid.SchemaError, match="`m` is interval month, which Spark cannot pass to Python"):
        spark.sql("SELECT 1 AS ts, 'A' AS type, INTERVAL '1' MONTH AS m").transform(query.on())
    with pytest.raises(cepheid.SchemaError, match="more than one column named `ts`"):
        spark.sql("SELECT 1 AS ts, 'A' AS type, 2 AS ts").transform(query.on())


def test_other_errors_pass_untranslated():
    with pytest.raises(ZeroDivisionError), translated():
        raise ZeroDivisionError
    assert cepheid_error(ValueError("cepheid.errors.Nothing: error: x")) is None
    twice = cepheid_error(ValueError("[DUPLICATED_METRICS_NAME] The metric name is not unique: cepheid.dropped."))
    assert isinstance(twice, NotSupportedError)
    assert "give both queries to one" in twice.help[0]
    for name in ("pyarrow", "cepheid"):
        missing = cepheid_error(ValueError(f"ModuleNotFoundError: No module named '{name}'"))
        assert isinstance(missing, SetupError)
        assert "PYSPARK_PYTHON" in missing.help[0]


def test_an_error_that_only_the_plan_of_a_job_shows_is_not_its_error():
    plan = "Project [raise_error(USER_RAISED_EXCEPTION, map(errorMessage, CASE WHEN isnull(c1#5) THEN cepheid.errors.InputError: error: no time END))]"
    assert cepheid_error(ValueError(f"[FAILED_READ_FILE] Encountered error while reading file\n{plan}")) is None
    raised = cepheid_error(ValueError(f"[USER_RAISED_EXCEPTION] cepheid.errors.SchemaError: error: two columns SQLSTATE: P0001\n{plan}"))
    assert isinstance(raised, cepheid.SchemaError)
    assert raised.fact == "two columns"


def test_on_is_the_function_behind_query_on():
    query = cepheid.query("SELECT * WHERE A ; B")
    options = dict(list(inspect.signature(on).parameters.items())[1:])
    assert dict(inspect.signature(query.on).parameters) == options
    assert on(query, order=("a", "any")).options == query.on(order=("a", "any")).options
    assert on(query, order=("a", "any")).options.any_order


def test_a_query_reads_the_schema_of_a_dataframe(spark):
    table = stream(20, seed=3)
    frame = frame_of(spark, table)
    query = cepheid.query("SELECT * WHERE A AS x ; B AS y WITHIN 60")
    produced = frame.transform(query.on()).schema.names
    assert query.output_schema(frame, events=True).names == query.output_schema(frame.schema, events=True).names == produced
    assert str(query.explain(schema=frame)) == str(query.explain(schema=frame.schema))


def test_events_that_are_no_frame_of_spark_name_the_way():
    recognition = cepheid.query("SELECT * WHERE A").on()
    for events, what in ((pd.DataFrame({"type": ["A"], "ts": [1]}), "pandas DataFrame"), (pa.table({"type": ["A"]}), "pyarrow Table")):
        with pytest.raises(cepheid.InputError, match=f"a Spark query takes a Spark DataFrame, not a {what}") as error:
            recognition(events)
        assert error.value.help[0].startswith("q.run(..) takes other events")


def test_nobody_waits_for_a_result_that_never_runs(spark, monkeypatch):
    """Spark's own call would wait without end; while a job runs it may be the one."""
    monkeypatch.setattr(recognition_module, "PATIENCE", 0.3)
    frame = spark.createDataFrame([("A", 1, None), ("A", 2, 1)], "type string, ts long, k long")
    recognition = cepheid.query("SELECT * WHERE A PARTITION BY k").on()
    first = frame.transform(recognition)
    assert first.count() == 1
    assert recognition.counts()["null_keys"] == 1
    frame.transform(recognition)
    with pytest.raises(InputError, match="which no action has run"):
        recognition.counts()
    late = frame.transform(recognition)
    running = threading.Thread(target=lambda: (clock.sleep(0.1), late.count()))
    running.start()
    assert recognition.counts()["null_keys"] == 1
    running.join()


def test_two_columns_of_one_name_by_match_id(spark):
    frame = spark.createDataFrame([("A", 1)], "type string, ts long")
    with pytest.raises(SchemaError, match="another one to match_id="):
        frame.transform(cepheid.query("SELECT count(A) AS a WHERE A").on(match_id="a"))


def test_what_a_stream_counts_its_listener_says(spark, tmp_path):
    recognition = cepheid.query("SELECT * WHERE A ; B WITHIN 1 minute").on(lateness="1 second")
    assert recognition.counts() == {}, "nothing was read"
    spark.readStream.schema("type string, ts timestamp").parquet(str(tmp_path)).transform(recognition)
    with pytest.raises(InputError, match=r"the DataFrame is streaming\nhelp: a cepheid\.spark\.Listener"):
        recognition.counts()
