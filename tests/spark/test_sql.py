"""Table functions of SQL: the same rows as `q.on` on random queries and data, and every wrong call an error that says how to call."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import random
import time

import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from sql_cases import VALUES

import cepheid
from cepheid.spark import register, translated

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
MIDDLE = START + dt.timedelta(seconds=200)


def stream(size, seed=5):
    source = random.Random(seed)
    return pa.table(
        {
            "id": pa.array(range(size), pa.int64()),
            "ts": pa.array(
                [START + dt.timedelta(seconds=source.randrange(size // 2)) for _ in range(size)],
                pa.timestamp("us", "UTC"),
            ),
            "type": [source.choice("ABCD") for _ in range(size)],
            "k": pa.array([source.choice([1, 2, 3, None]) for _ in range(size)], pa.int32()),
            "b": [source.choice(["x", "y"]) for _ in range(size)],
            "v": pa.array([source.choice([0.5, 2.5, float("nan"), None]) for _ in range(size)]),
        }
    )


@pytest.fixture(scope="module")
def events(spark):
    frame = spark.createDataFrame(stream(1500)).repartition(3)
    frame.createOrReplaceTempView("events")
    register(spark)
    return frame


def rows(frame):
    return sorted(map(repr, frame.collect()))


CALLS = {
    "SELECT * WHERE (A AS x ; B+ AS y ; C AS z) FILTER x[v >= 1] PARTITION BY k WITHIN 10 seconds": ("k", {}),
    "SELECT ANY * WHERE A AS one ; B AS two PARTITION BY k, b WITHIN 30 seconds": ("k, b", {"positions": True, "match_id": "id"}),
    "SELECT a.v AS v, duration() AS took WHERE A AS a ; B AS z PARTITION BY k WITHIN 9 seconds": ("k", {}),
    "SELECT COUNT(*) WHERE A ; B ; C PARTITION BY k WITHIN 40 seconds": ("k", {}),
    "SELECT MAX * WHERE A AS a ; D+ AS d WITHIN 10 seconds": ("", {"columns": ["id"]}),
    "SELECT * WHERE A AS a ; C AS c FILTER a.k = c.k WITHIN 5 seconds": ("k", {"columns": ["id", "v"]}),
    "SELECT * WHERE A AS a : B AS z PARTITION BY v CONSUME BY PARTITION": ("v", {"columns": ["id", "v"]}),
    "SELECT * WHERE (A AS a ; B AS z) NOT FOLLOWED BY C FOR 2 seconds PARTITION BY k WITHIN 3 seconds": ("k", {"until": "end"}),
    "SELECT * WHERE A AS a NOT FOLLOWED BY B FOR 2 seconds": ("", {"until": MIDDLE, "columns": ["id"]}),
    "SELECT NXT * WHERE A AS a ; B AS z PARTITION BY k WITHIN 4 seconds": ("k", {"until": MIDDLE}),
}
"""Queries, what a call's PARTITION BY says, and options."""


def clause(keys):
    return f"PARTITION BY ({keys})" if keys else "WITH SINGLE PARTITION"


@pytest.mark.parametrize("text", CALLS)
def test_a_registered_query_gives_the_rows_of_on(spark, events, text):
    keys, options = CALLS[text]
    query = cepheid.query(text)
    register(spark, "found", query, schema="events", order="id", **options)
    expected = events.transform(query.on(order="id", **options))
    result = spark.sql(f"SELECT * FROM found(TABLE(events) {clause(keys)} ORDER BY (ts, id NULLS LAST))")
    assert result.schema == expected.schema
    assert rows(result) == rows(expected)
    assert expected.count() > 3


def test_any_query_in_the_call(spark, events):
    for text, (keys, options) in list(CALLS.items())[1:4]:
        query = cepheid.query(text)
        expected = events.transform(query.on(order="id", **options))
        said = "".join(f", {name} => {json.dumps(value)}" for name, value in options.items())
        result = spark.sql(
            f"SELECT * FROM cepheid_match(events => TABLE(events) {clause(keys)} ORDER BY (ts, id), query => '{text}', order => 'id'{said})"
        )
        assert result.schema == expected.schema
        assert rows(result) == rows(expected)


def test_any_query_takes_parameters_and_options(spark, events):
    query = cepheid.query("SELECT * WHERE A AS a ; B AS b FILTER a[v > :least] PARTITION BY k WITHIN 3 seconds", args={"least": 1.5})
    expected = events.transform(query.on(order=["id"], null_keys="group", columns=["id", "k"]))
    result = spark.sql(
        f"SELECT * FROM cepheid_match(TABLE(events) PARTITION BY k ORDER BY (ts, id), '{query.text}', args => named_struct('least', 1.5D),"
        " order => array('id'), null_keys => 'group', columns => array('id', 'k'), time => 'ts', type => 'type')"
    )
    assert rows(result) == rows(expected)
    assert any("k=None" in row for row in rows(result))


PARAMETRISED = (
    "SELECT * WHERE A AS a ; B{:n,:m} AS b FILTER a[v IN :vs] AND b.v NOT IN :none PARTITION BY k WITHIN :w LIMIT :most",
    {"n": 1, "m": 2, "vs": [0.5, 2.5], "none": [decimal.Decimal("7.5"), None], "w": dt.timedelta(seconds=3), "most": 4},
)


def test_parameters_stand_wherever_a_constant_does(spark, events):
    text, args = PARAMETRISED
    constant = (
        "SELECT * WHERE A AS a ; B{1,2} AS b FILTER a[v IN (0.5e0, 2.5e0)] AND b.v NOT IN (7.5, NULL) PARTITION BY k WITHIN 3s LIMIT 4"
    )
    expected = rows(events.transform(cepheid.query(constant).on(order=["id"])))
    query = cepheid.query(text, args=args)
    assert rows(events.transform(query.on(order=["id"]))) == expected
    register(spark, "parametrised", query, schema=events, order=["id"])
    assert rows(spark.sql("SELECT * FROM parametrised(TABLE(events) PARTITION BY k ORDER BY (ts, id))")) == expected
    for window in ("INTERVAL '3' SECOND", "'3 seconds'"):
        given = f"named_struct('n', 1, 'm', 2Y, 'vs', array(0.5D, 2.5D), 'none', array(7.5, NULL), 'w', {window}, 'most', 4L)"
        call = f"cepheid_match(TABLE(events) PARTITION BY k ORDER BY (ts, id), '{text}', args => {given}, order => 'id')"
        assert rows(spark.sql(f"SELECT * FROM {call}")) == expected
    assert expected


@pytest.mark.parametrize(("until", "said"), [("end", "'end'"), (MIDDLE, "TIMESTAMP '2026-01-01 01:03:20+01:00'")])
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_any_query_is_told_up_to_when_the_events_are_complete(spark, events, until, said, zone):
    query = cepheid.query("SELECT * WHERE A AS a NOT FOLLOWED BY B FOR 5 seconds PARTITION BY k")
    expected = rows(events.transform(query.on(order="id", until=until)))
    call = "cepheid_match(TABLE(events) PARTITION BY k ORDER BY (ts, id), '{}', order => 'id', until => {})"
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        assert rows(spark.sql(f"SELECT * FROM {call.format(query.text, said)}")) == expected != []
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_every_type_goes_through_single_rows(spark, events):
    frame = spark.createDataFrame(VALUES).withColumn("local", F.col("local").cast("timestamp_ntz"))
    frame.createOrReplaceTempView("things")
    query = cepheid.query("SELECT * WHERE A AS a ; B AS b")
    result = spark.sql("SELECT * FROM cepheid_match(TABLE(things) WITH SINGLE PARTITION ORDER BY (ts), 'SELECT * WHERE A AS a ; B AS b')")
    register(spark, "pairs", query, schema=VALUES.schema)
    batches = spark.sql("SELECT * FROM pairs(TABLE(things) WITH SINGLE PARTITION ORDER BY ts)")
    expected = frame.transform(query.on())
    assert result.schema == batches.schema == expected.schema
    assert rows(result) == rows(batches) == rows(expected) != []


def test_the_session_s_time_zone_changes_nothing(spark, events):
    query = "SELECT * WHERE A AS a : B AS b PARTITION BY k WITHIN 5 seconds"
    expected = rows(events.transform(cepheid.query(query).on(order="id")))
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        register(spark, "found", query, schema=events, order="id")
        for call in ("found(TABLE(events) PARTITION BY k ORDER BY (ts, id))", MATCHED.format(query)):
            assert rows(spark.sql(f"SELECT * FROM {call}")) == expected != []
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


MATCHED = "cepheid_match(TABLE(events) PARTITION BY k ORDER BY (ts, id), '{}', order => 'id')"


def test_dataframes_and_schemas_of_all_kinds(spark, events):
    query = "SELECT * WHERE A AS a : B AS b PARTITION BY k"
    expected = rows(events.transform(cepheid.query(query).on(order="id")))
    for schema in (events, "events", events.schema, stream(10).schema):
        found = register(spark, "found", query, schema=schema, order="id")
        assert rows(found(events.asTable().partitionBy("k").orderBy("ts", "id"))) == expected
    # The rows of the call may have more columns, in another order.
    wider = "SELECT 1 AS more, v, b, k, type, ts, id FROM events"
    assert rows(spark.sql(f"SELECT * FROM found(TABLE({wider}) PARTITION BY k ORDER BY (ts, id))")) == expected


@pytest.mark.parametrize(
    ("call", "kind", "fact"),
    [
        ("TABLE(events)", cepheid.InputError, "whole partitions in order, and this call does not name them|events of k="),
        ("TABLE(events) WITH SINGLE PARTITION ORDER BY (ts, id)", cepheid.InputError, "one partition of the call has events of k="),
        ("TABLE(events) PARTITION BY k", cepheid.InputError, "not in the order of"),
        ("TABLE(events) PARTITION BY k ORDER BY ts DESC", cepheid.InputError, "not in the order of `ts`"),
        ("TABLE(events) PARTITION BY k ORDER BY (ts, id DESC)", cepheid.InputError, "not in the order of `ts`, `id`"),
        ("TABLE(SELECT ts, type, k, id, b FROM events) PARTITION BY k ORDER BY (ts, id)", cepheid.SchemaError, "reads one column `v`"),
    ],
)
def test_wrong_calls(spark, events, call, kind, fact):
    register(spark, "fire", "SELECT * WHERE A AS a ; B AS b PARTITION BY k WITHIN 3 seconds", schema=events, order="id")
    with pytest.raises(kind, match=fact), translated():
        spark.sql(f"SELECT * FROM fire({call})").collect()


def test_a_table_in_pieces_is_no_partition(spark, events):
    spark.range(0, 40, 1, 4).selectExpr("id AS ts", "'A' AS type").createOrReplaceTempView("pieces")
    register(spark, "runs", "SELECT * WHERE A AS a : A AS b : A AS c", schema="pieces")
    assert spark.sql("SELECT * FROM runs(TABLE(pieces) WITH SINGLE PARTITION ORDER BY ts)").count() == 38
    for function, more in (("runs", ""), ("cepheid_match", ", 'SELECT * WHERE A AS a : A AS b : A AS c'")):
        with pytest.raises(cepheid.InputError, match="each task got a part of the table"), translated():
            spark.sql(f"SELECT * FROM {function}(TABLE(pieces){more})").collect()


@pytest.mark.parametrize(
    ("arguments", "kind", "fact"),
    [
        ("'SELECT * WHERE A ;; B'", cepheid.QuerySyntaxError, "expected a pattern"),
        ("'SELECT * WHERE A AS a FILTER a[w > 3]'", cepheid.BindError, "unknown attribute `w`"),
        ("'SELECT * WHERE A ; B WITHIN :w', args => named_struct('w', TRUE)", cepheid.BindError, "`:w` is True, which is not a duration"),
        ("'SELECT * WHERE A ; B WITHIN :w', args => named_struct('w', 5)", cepheid.BindError, "a duration without a unit"),
        ("'SELECT * WHERE A ; B WITHIN :w'", cepheid.BindError, "no value for parameter `:w`"),
        ("'SELECT * WHERE A LIMIT :n', args => named_struct('n', 2.0)", cepheid.BindError, "`:n` is 2.0, which is not a whole number"),
        ("'SELECT * WHERE A FILTER A.v IN :ks', args => named_struct('ks', 1)", cepheid.BindError, "`:ks` is 1, but a list is needed here"),
        ("'SELECT * WHERE A AS a', ordr => 'id'", cepheid.InputError, "cepheid_match has no argument `ordr`"),
        ("'SELECT * WHERE A AS a', order => 'idd'", cepheid.SchemaError, "no column `idd`, which order= names"),
        ("'SELECT * WHERE A AS a', null_keys => 'x'", cepheid.InputError, "null_keys='x' is not known"),
        ("'SELECT * WHERE A NOT FOLLOWED BY B FOR 5 s', until => NULL", cepheid.InputError, "NOT FOLLOWED BY needs to know"),
        ("'SELECT * WHERE A NOT FOLLOWED BY B FOR 5 s', until => 5", cepheid.InputError, "5 is not a time of the column `ts`"),
        ("query => concat('a', rand())", cepheid.InputError, "query is not a constant"),
        ("3", cepheid.InputError, "query is a int"),
    ],
)
def test_errors_of_a_query_show_when_the_call_is_analysed(spark, events, arguments, kind, fact):
    with pytest.raises(kind, match=fact) as error, translated():
        spark.sql(f"SELECT * FROM cepheid_match(TABLE(events) PARTITION BY k ORDER BY (ts), {arguments})")
    assert fact in str(error.value.__cause__)
    if kind in (cepheid.QuerySyntaxError, cepheid.BindError):
        assert "^" in str(error.value)
        assert "^" in str(error.value.__cause__)


def test_errors_of_registration(spark, events):
    query = "SELECT * WHERE A AS a ; B AS b PARTITION BY k"
    with pytest.raises(cepheid.InputError, match="there is no query to register as 'fire'"):
        register(spark, "fire")
    with pytest.raises(cepheid.InputError, match="schema= cannot be a NoneType"):
        register(spark, "fire", query)
    with pytest.raises(cepheid.QuerySyntaxError):
        register(spark, "fire", "SELECT", schema="events")
    with pytest.raises(cepheid.BindError, match="unknown attribute `w`"):
        register(spark, "fire", "SELECT * WHERE A AS a FILTER a[w > 3]", schema="events")
    with pytest.raises(cepheid.SchemaError, match="no time column `tts`"):
        register(spark, "fire", query, schema="events", time="tts")
    with pytest.raises(cepheid.SchemaError, match="`ts` is timestamp\\[ns\\], which no column of Spark can hold"):
        register(spark, "fire", query, schema=pa.schema({"ts": pa.timestamp("ns"), "type": pa.string(), "k": pa.int32()}))
    with pytest.raises(cepheid.InputError, match="events is not a table"), translated():
        spark.sql("SELECT * FROM cepheid_match(1, 'SELECT * WHERE A')")


def test_streams_are_refused(spark, events):
    streaming = spark.readStream.format("rate").option("numPartitions", 1).load()
    streaming = streaming.selectExpr("timestamp AS ts", "'A' AS type", "cast(value AS int) AS k", "value AS id")
    streaming.createOrReplaceTempView("flow")
    query = "SELECT * WHERE A AS a ; A AS b PARTITION BY k"
    with pytest.raises(cepheid.NotSupportedError, match="this one is streaming"):
        register(spark, "fire", query, schema=streaming)
    register(spark, "fire", query, schema=streaming.schema)
    for call in ("fire(TABLE(flow) PARTITION BY k ORDER BY ts)", f"cepheid_match(TABLE(flow) PARTITION BY k ORDER BY (ts), '{query}')"):
        with pytest.raises(cepheid.NotSupportedError, match="a table function reads batch tables") as error, translated():
            start(spark.sql(f"SELECT * FROM {call}"))
        assert "q.on" in error.value.help[0]
    register(spark, "single", "SELECT * WHERE A AS a ; A AS b", schema=streaming.schema)
    for clauses in ("", " WITH SINGLE PARTITION"):
        with pytest.raises(cepheid.NotSupportedError, match="each micro-batch alone"), translated():
            start(spark.sql(f"SELECT * FROM single(TABLE(flow){clauses})"))


def start(frame):
    running = frame.writeStream.format("memory").queryName(f"q{time.time_ns()}").start()
    try:
        running.awaitTermination(60)
    finally:
        running.stop()


def test_micro_batches_are_tables(spark, events, tmp_path):
    events.write.parquet(str(tmp_path / "in"))
    query = "SELECT * WHERE A AS a : B AS b PARTITION BY k"
    register(spark, "pairs", query, schema=events, order="id")
    seen = []

    def each(frame, _number):
        frame.createOrReplaceTempView("micro")
        found = frame.sparkSession.sql("SELECT * FROM pairs(TABLE(micro) PARTITION BY k ORDER BY (ts, id))")
        seen.extend(rows(found))

    streaming = spark.readStream.schema(events.schema).parquet(str(tmp_path / "in"))
    running = streaming.writeStream.foreachBatch(each).trigger(availableNow=True).start()
    running.awaitTermination(120)
    assert sorted(seen) == rows(events.transform(cepheid.query(query).on(order="id"))) != []


def test_many_partitions_and_a_limit(spark):
    frame = spark.range(30_000).selectExpr("cast(id % 7000 AS int) AS k", "id AS ts", "CASE WHEN id % 3 = 0 THEN 'A' ELSE 'B' END AS type")
    frame.createOrReplaceTempView("many")
    query = cepheid.query("SELECT * WHERE A AS a ; B AS b PARTITION BY k")
    register(spark, "found", query, schema="many")
    call = "SELECT * FROM found(TABLE(many) PARTITION BY k ORDER BY ts)"
    expected = frame.transform(query.on())
    assert rows(spark.sql(call)) == rows(expected)
    assert spark.sql(f"{call} LIMIT 5").count() == 5
    assert spark.sql(f"SELECT /*+ COALESCE(1) */ * FROM ({call})").count() == expected.count()


# ----------------------------------------------------------------------------------------------------------------------- Connect


@pytest.mark.connect
def test_both_functions_through_connect(connect):
    frame = connect.createDataFrame(stream(900))
    frame.createOrReplaceTempView("events")
    query = cepheid.query("SELECT * WHERE A AS a ; B AS b PARTITION BY k WITHIN 9 seconds")
    expected = rows(frame.transform(query.on(order="id")))
    function = register(connect, "fire", query, schema="events", order="id")
    register(connect)
    call = "PARTITION BY k ORDER BY (ts, id)"
    assert rows(connect.sql(f"SELECT * FROM fire(TABLE(events) {call})")) == expected != []
    assert rows(connect.sql(f"SELECT * FROM cepheid_match(TABLE(events) {call}, '{query.text}', order => 'id')")) == expected
    assert rows(function(frame.asTable().partitionBy("k").orderBy(F.col("ts"), F.col("id")))) == expected


@pytest.mark.connect
def test_errors_through_connect(connect):
    frame = connect.createDataFrame(stream(90))
    frame.createOrReplaceTempView("events")
    register(connect, "fire", "SELECT * WHERE A AS a ; B AS b PARTITION BY k", schema=frame, order="id")
    register(connect)
    with pytest.raises(cepheid.InputError, match="not in the order of `ts`"), translated():
        connect.sql("SELECT * FROM fire(TABLE(events) PARTITION BY k ORDER BY ts DESC)").collect()
    with pytest.raises(cepheid.BindError, match="unknown attribute `w`"), translated():
        connect.sql(
            "SELECT * FROM cepheid_match(TABLE(events) PARTITION BY k ORDER BY (ts), 'SELECT * WHERE A AS a FILTER a[w > 3]')"
        ).collect()
