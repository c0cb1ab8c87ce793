"""What every Spark that Cepheid runs on must do: one query of each method of evaluation, in batches, in streams that stop and go on, in SQL.

Small, so that `make test-spark-versions` runs it with each of them. It uses nothing that Spark 3.5 has not, but for what it says has to be refused.
"""

from __future__ import annotations

import datetime as dt
import os
import random
import re
import sys
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyspark
import pytest
from killed import BASE, DDL, DISORDER, KEYS, LATENESS, QUERIES, table_of
from pyspark.sql import functions as F

import cepheid
from cepheid.errors import NotSupportedError, SetupError
from cepheid.spark import on, slices, translated, versions
from cepheid.spark.translation import cepheid_error

COUNT = 120
FILES = 4
"""Events, and the files that a stream reads them from."""

BEFORE_4_1 = versions.arrow_udf is None
PATIENCE = 2
"""How often a stream may have to be started again."""

since_4 = pytest.mark.skipif(not versions.STREAMS, reason="Spark 3.5 has batches alone")


@pytest.fixture(scope="module")
def events():
    chance = random.Random(35)
    rows = [(chance.randrange(KEYS), second, chance.choice("ABC"), second) for second in range(COUNT)]
    return rows, sorted(rows, key=lambda row: row[1] + chance.random() * DISORDER)


@pytest.fixture(scope="module")
def expected(events):
    """The matches of each query, by the embedded engine."""
    found = {name: cepheid.query(text).run(table_of(events[0]), until="end").to_arrow(events=True) for name, text in QUERIES.items()}
    assert all(map(len, found.values()))
    return found


def frame_of(session, table, folder):
    pq.write_table(table, folder / "events.parquet")
    return session.read.parquet(str(folder / "events.parquet"))


def table_from(frame, folder):
    """The rows of a DataFrame, through a file."""
    frame.sparkSession.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    with translated():
        frame.write.mode("overwrite").parquet(str(folder / "rows"))
    return pq.read_table(folder / "rows")


def rows(table):
    return sorted(map(repr, table.to_pylist()))


def check_all(found, expected):
    """Every query has the matches that the embedded engine has."""
    assert set(found["query"].to_pylist()) == set(expected)
    for name, wanted in expected.items():
        own = found.filter(pc.equal(found["query"], name)).select(wanted.column_names)
        assert rows(own.cast(wanted.schema)) == rows(wanted), name


def batch(session, folder, events, expected):
    """All queries over one table."""
    frame = frame_of(session, table_of(events[1]), folder)
    check_all(table_from(frame.transform(on(QUERIES, order="v", until="end")), folder), expected)


def alone(session, folder, events, expected):
    """Queries by themselves: with keys; without, over slices of time; over positions; and their counts and warnings."""
    table = table_of(events[1])
    frame = frame_of(session, table, folder)
    for text in (
        "SELECT * WHERE A AS x ; B AS y PARTITION BY k WITHIN 10 seconds",
        "SELECT * WHERE A AS x ; B AS y FILTER x[v % 3 = 1] WITHIN 5 seconds",
        "SELECT * WHERE A AS x ; B AS y PARTITION BY k WITHIN 4 EVENTS",
        "SELECT * WHERE A AS x ; B AS y FILTER x[lag(v, 1) > 7] PARTITION BY k WITHIN 10 seconds",
    ):
        query = cepheid.query(text)
        wanted = query.run(table_of(events[0])).to_arrow(events=True)
        recognition = query.on(order="v")
        found = table_from(frame.transform(recognition), folder)
        assert rows(found.select(wanted.column_names).cast(wanted.schema)) == rows(wanted) != [], text
    query = cepheid.query("SELECT * WHERE A AS x ; B AS y PARTITION BY k WITHIN 4 seconds")
    wanted = query.run(table_of(events[0])).to_arrow(events=True)
    recognition = query.on(order="v", hot_keys=True, buckets=8)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(slices, "LEAST_EVENTS", 3)
        patched.setattr(slices, "SAMPLED", 1.0)
        assert "a key with many events in several" in recognition.explain(frame)
        found = table_from(frame.transform(recognition), folder)
    assert rows(found.select(wanted.column_names).cast(wanted.schema)) == rows(wanted) != []
    nulls = frame.union(frame.limit(1).withColumn("k", F.lit(None).cast("int")))
    recognition = on("SELECT * WHERE A AS x ; B AS y ; D PARTITION BY k WITHIN 10 seconds", order="v")
    assert not len(table_from(nulls.transform(recognition), folder))
    assert recognition.counts() == {"null_keys": 1}
    assert recognition.warnings(frame) == ("no event has the type `D`",)


PRICES = [Decimal("0.01"), Decimal("99999999999999.99"), Decimal("-1.50"), Decimal("2.25"), None]
TEXTS = ["ab", "aB%", "é", "", None]
NUMBERS = [0.5, -0.0, float("nan"), 1e308, None]
CONDITIONS = (
    "x[price * price > 5]",
    "x[price / 3 < 1 AND price % 2 = 0.25]",
    "x[-price >= 1.5]",
    "x[floor(price) = 2 OR ceil(price) = 1]",
    "x[price + 99999999999999.99 > 0]",
    "x[v % 3 = 1 AND v * 9223372036854775807 IS NULL]",
    "x[number + number > 1e308 OR number / 0 IS NULL]",
    "x[name LIKE 'a%' AND upper(name) = 'AB']",
    "x[length(name) < 2 AND lower(name) != 'ab']",
    "x[hour(ts) = 0 AND minute(ts) < 2 AND day_of_week(ts) = 4]",
    "x[ts >= TIMESTAMP '2026-01-01 00:00:30Z']",
    "x[day = DATE '2026-01-02' AND year(day) = 2026]",
)
"""Conditions whose columns differ between versions, or may."""


def values(session, folder, events, expected):
    """Conditions on decimals, numbers, texts and times, in and out of ANSI mode, with values of every such type in the matches."""
    table = table_of(events[0])
    count = range(len(table))
    columns = {
        "price": pa.array([PRICES[row % 5] for row in count], pa.decimal128(16, 2)),
        "number": pa.array([NUMBERS[row // 2 % 5] for row in count]),
        "name": pa.array([TEXTS[row // 3 % 5] for row in count]),
        "day": pa.array([dt.date(2026, 1, 1 + row % 3) for row in count]),
    }
    for name, column in columns.items():
        table = table.append_column(name, column)
    frame = frame_of(session, table, folder)
    queries = {text: f"SELECT * WHERE A AS x ; B AS y FILTER {text} PARTITION BY k WITHIN 10 seconds" for text in CONDITIONS}
    wanted = {name: cepheid.query(text).run(table).to_arrow(events=True) for name, text in queries.items()}
    assert all(map(len, wanted.values())), [name for name, found in wanted.items() if not len(found)]
    before = session.conf.get("spark.sql.ansi.enabled")
    for ansi in ("true", "false"):
        session.conf.set("spark.sql.ansi.enabled", ansi)
        try:
            check_all(table_from(frame.transform(on(queries, order="v")), folder), wanted)
        finally:
            session.conf.set("spark.sql.ansi.enabled", before)


def errors(session, folder, events, expected):
    """What a task finds wrong is our error."""
    table = pa.concat_tables([table_of(events[0][:3])] * 2)
    with pytest.raises(cepheid.InputError, match="have the same time"):
        table_from(frame_of(session, table, folder).transform(on("SELECT * WHERE A ; B ; C PARTITION BY k WITHIN 5 seconds")), folder)
    wrong = frame_of(session, table, folder).withColumn("ts", F.lit(None).cast("timestamp"))
    with pytest.raises(cepheid.InputError, match="NULL"):
        table_from(wrong.transform(on("SELECT * WHERE A ; B PARTITION BY k WITHIN 5 seconds", order="v")), folder)


def collected(session, folder, events, expected):
    """A small DataFrame is a table to `run`."""
    text = QUERIES["pairs"]
    frame = frame_of(session, table_of(events[1]), folder)
    assert rows(cepheid.query(text).run(frame, sort=True).to_arrow(events=True)) == rows(expected["pairs"])


def stream(session, folder, events, expected):
    """A stream of all queries that ends and goes on from its checkpoint."""
    arrival, size = events[1], COUNT // FILES
    ends = [[(None, 1_000_000, "Z", -1)], [(None, 1_000_001, "Z", -2)]]
    parts = [*(arrival[start : start + size] for start in range(0, COUNT, size)), *ends]
    (folder / "in").mkdir()

    def put(number):
        path = folder / "in" / f"{number}.parquet"
        pq.write_table(table_of(parts[number]), path)
        os.utime(path, (1_700_000_000 + number,) * 2)

    def run():
        frame = session.readStream.schema(DDL).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
        matches = frame.transform(on(QUERIES, lateness=LATENESS, order="v", buckets=3))
        writer = matches.writeStream.format("parquet").option("path", str(folder / "out"))
        writer = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
        for left in range(PATIENCE, -1, -1):
            try:
                with translated():
                    writer.start().awaitTermination()
            except SetupError:  # a worker did not start in time, on a busy machine: the stream goes on from its checkpoint
                if not left:
                    raise
            else:
                return

    half = FILES // 2
    for number in range(half):
        put(number)
    run()
    for number in range(half, len(parts)):
        put(number)
    run()
    found = table_from(session.read.parquet(str(folder / "out")), folder)
    check_all(found, expected)
    assert all(time > BASE for time in found["decided_time"].to_pylist())


def function(session, folder, events, expected):
    """A query as a function in SQL, and any query by its text."""
    from cepheid.spark import register

    frame = frame_of(session, table_of(events[1]), folder)
    frame.createOrReplaceTempView("events")
    register(session, "pairs", QUERIES["pairs"], schema=frame, order="v")
    register(session)
    call = "TABLE(events) PARTITION BY k ORDER BY (ts, v)"
    for text in (
        f"SELECT * FROM pairs({call})",
        f"SELECT * FROM cepheid_match(events => {call}, query => '{QUERIES['pairs']}', `order` => 'v')",
    ):
        found = table_from(session.sql(text), folder)
        wanted = expected["pairs"]
        assert rows(found.select(wanted.column_names).cast(wanted.schema)) == rows(wanted)


def source(session, folder, events, expected):
    """A source in Python gives all it has to the trigger availableNow, and what is then decided comes out."""
    from cepheid.spark import replay

    session.conf.set("spark.sql.streaming.triggerAvailableNowWrapper.enabled", "false")  # Spark's own default
    query = cepheid.query(QUERIES["pairs"])
    played = replay(session, table_of(events[0]), disorder="5 seconds", close="1 day")
    writer = played.transform(query.on(lateness="5 seconds", order="v")).writeStream.format("parquet")
    writer = writer.option("path", str(folder / "out")).option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    found, wanted = table_from(session.read.parquet(str(folder / "out")), folder), expected["pairs"]
    assert rows(found.select(wanted.column_names).cast(wanted.schema)) == rows(wanted)


BATCHES = (batch, alone, values, errors, collected)
STREAMS = (stream, function, source)


@pytest.mark.parametrize("check", BATCHES, ids=lambda check: check.__name__)
def test_batches(spark, tmp_path, events, expected, check):
    check(spark, tmp_path, events, expected)


@since_4
@pytest.mark.parametrize("check", STREAMS, ids=lambda check: check.__name__)
def test_streams_and_functions(spark, tmp_path, events, expected, check):
    check(spark, tmp_path, events, expected)


@since_4
@pytest.mark.connect
@pytest.mark.parametrize("check", [*BATCHES, *STREAMS], ids=lambda check: check.__name__)
def test_through_connect(connect, tmp_path, events, expected, check):
    if BEFORE_4_1 and check in (stream, source):
        with pytest.raises(NotSupportedError, match=r"a query over a stream of Spark Connect needs Spark 4\.1 or later"):
            check(connect, tmp_path, events, expected)
    else:
        check(connect, tmp_path, events, expected)


@pytest.mark.skipif(versions.STREAMS, reason="of Spark 3.5")
def test_what_3_5_has_not(spark, tmp_path):
    query = cepheid.query(QUERIES["pairs"])
    (tmp_path / "in").mkdir()
    frame = spark.readStream.schema(DDL).parquet(str(tmp_path / "in"))
    with pytest.raises(NotSupportedError, match=r"a query over a stream needs Spark 4\.0 or later, and this is Spark 3\.5"):
        frame.transform(query.on(lateness="1 minute"))
    for name in ("kafka_source", "register", "replay"):
        with pytest.raises(NotSupportedError, match=rf"cepheid\.spark\.{name} needs Spark 4\.0 or later"):
            getattr(cepheid.spark, name)


def test_an_older_spark_is_refused_on_import():
    for version in ("3.5.0", "3.5.9.dev0", "4.0.0+platform", "15.4.0", "nightly"):
        versions.check_version(version)
    for version in ("3.4.4", "2.4.8"):
        with pytest.raises(SetupError) as caught:
            versions.check_version(version)
        assert str(caught.value).splitlines() == [
            f"error: Cepheid needs Spark 3.5 or later, and this is Spark {version}",
            "help: Spark 4.0 or later has everything",
            "help: Spark 3.5 has batch DataFrames, and no streams and no functions in SQL",
        ]


@since_4
def test_a_protobuf_that_is_too_old_for_this_spark_is_an_error(monkeypatch):
    """Spark's generated code asks for that which generated it, or a newer one."""
    runtime = pytest.importorskip("google.protobuf.runtime_version")
    versions.check_protobuf()
    monkeypatch.delitem(sys.modules, versions.STATE_MESSAGES)
    monkeypatch.setattr(runtime, "MAJOR", 4)
    monkeypatch.setattr("google.protobuf.__version__", "4.25.0")
    with pytest.raises(SetupError) as caught:
        versions.check_protobuf()
    fact, help_ = str(caught.value).splitlines()
    assert fact == f"error: Spark {pyspark.__version__}'s stateful operators do not work with protobuf 4.25.0"
    assert re.fullmatch(r"help: on the driver and all workers: pip install --upgrade 'protobuf>=\d+\.\d+\.\d+'", help_)
    ours = cepheid_error(caught.value.__cause__)
    assert str(ours).startswith("error: a Python worker has a protobuf that is too old for this Spark\nhelp: ")


def test_numbers_go_to_the_tasks_that_spark_sends_them_to(spark):
    """Where Spark has no `repartitionById`: by its hash, computed here."""
    for row in spark.range(-5, 40).select(F.col("id").cast("int").alias("number")).withColumn("hash", F.hash("number")).collect():
        assert versions._hash(row.number) == row.hash
    marks = versions.marks(7)
    assert [versions._hash(mark) % 7 for mark in marks] == list(range(7))


def test_a_checkpoint_of_4_0_is_refused_in_our_words():
    """Spark's own error, on 4.3."""
    said = (
        "[STREAM_FAILED] Query terminated with exception: [STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA] Streaming stateful operator name"
        " does not match with the operator in state metadata. Stateful operators in the metadata: [(OperatorId: 0 -> OperatorName:"
        " transformWithStateInPandasExec)]; Stateful operators in current batch: [(OperatorId: 0 -> OperatorName: transformWithStateInPySparkExec)]."
    )
    with pytest.raises(cepheid.SnapshotError, match=r"the checkpoint is of Spark 4\.0"), translated():
        raise ValueError(said)
