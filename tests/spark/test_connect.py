"""The same through Spark Connect: only the public DataFrame interface is used. Run alone: pytest -m connect."""

from __future__ import annotations

import datetime as dt
import os
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import cepheid
from cepheid.spark import merge, translated, versions
from cepheid.spark.observation import figures

pytestmark = pytest.mark.connect
streams = pytest.mark.skipif(versions.arrow_udf is None, reason="Spark Connect 4.0 has no stateful operator for Python")


def stream(size):
    source = random.Random(4)
    return pa.table(
        {
            "ts": pa.array(source.sample(range(4 * size), size), pa.int64()),
            "type": pa.array([source.choice("ABCD") for _ in range(size)]),
            "k": pa.array([source.choice([1, 2, None]) for _ in range(size)], pa.int32()),
            "v": pa.array([source.choice([0.5, 2.5, float("nan"), None]) for _ in range(size)]),
        }
    )


def rows(table):
    return sorted(map(repr, table.to_pylist()))


def test_the_answer_of_run(connect):
    table = stream(1500)
    query = cepheid.query("SELECT * WHERE (A AS x ; B+ AS y ; C AS z) FILTER x[v >= :least] PARTITION BY k WITHIN 40", args={"least": 1})
    expected = query.run(table, sort=True)
    recognition = query.on()
    found = connect.createDataFrame(table).repartition(3).transform(recognition).toArrow()
    assert rows(found) == rows(expected.to_arrow(events=True))
    assert len(expected) > 10
    assert recognition.counts()["null_keys"] > 0


def test_a_column_as_type_positions_and_merged_streams(connect):
    table = stream(200)
    query = cepheid.query("SELECT * WHERE low AS x : high AS y PARTITION BY k")
    kind = F.when(F.col("v") > 1, "high").otherwise("low")
    found = connect.createDataFrame(table).transform(query.on(type=kind, positions=True))
    assert found.columns == ["k", "start_time", "end_time", "start_position", "end_position", "x", "y"]
    rows = found.collect()
    assert (
        [(row.end_position, row.y[0]["$index"]) for row in rows] == [(row.start_position + 1, row.start_position + 1) for row in rows] != []
    )
    merged = merge(a=connect.createDataFrame(table).drop("type"), b=connect.createDataFrame(table).drop("type"))
    pairs = cepheid.query("SELECT ANY * FROM b, a WHERE b : a PARTITION BY k WITHIN 0")
    assert merged.transform(pairs.on()).count() == len(table.filter(table["k"].is_valid()))


def test_errors_of_tasks_are_ours(connect):
    table = pa.table({"ts": [1, 1], "type": ["A", "B"]})
    with pytest.raises(cepheid.InputError, match="two events have the same time 1"), translated():
        connect.createDataFrame(table).transform(cepheid.query("SELECT * WHERE A ; B").on()).collect()


@streams
def test_a_stream(connect, tmp_path):
    table = stream(300).sort_by("ts")
    times = pa.array(table["ts"].to_numpy() * 1_000_000 + 1_700_000_000_000_000, pa.timestamp("us", "UTC"))
    table = table.set_column(0, "ts", times)
    query = cepheid.query("SELECT * WHERE A AS x ; B AS y PARTITION BY k WITHIN 40 seconds")
    (tmp_path / "in").mkdir()
    late = {"type": "Z", "k": 1, "v": None}
    moves = [late | {"ts": table["ts"][-1].as_py() + dt.timedelta(days=day)} for day in (1, 2)]
    for number, part in enumerate([table, *(pa.Table.from_pylist([row], schema=table.schema) for row in moves)]):
        pq.write_table(part, tmp_path / "in" / f"{number}.parquet")
        os.utime(tmp_path / "in" / f"{number}.parquet", (1_700_000_000 + number,) * 2)
    frame = (
        connect.readStream.schema("ts timestamp, type string, k int, v double")
        .option("maxFilesPerTrigger", 1)
        .parquet(str(tmp_path / "in"))
    )
    writer = frame.transform(query.on(lateness="1 second")).writeStream.format("parquet").option("path", str(tmp_path / "out"))
    writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start().awaitTermination()
    found = connect.read.parquet(str(tmp_path / "out")).drop("decided_time").toArrow()
    expected = query.run(table).to_arrow(events=True)
    assert rows(found.select(expected.column_names).cast(expected.schema)) == rows(expected)
    assert len(expected) > 10


@streams
def test_a_stream_goes_on_after_a_time_outside_the_bounds(connect, tmp_path):
    query = cepheid.query("SELECT * WHERE A AS x ; B AS y WITHIN 40 seconds")
    start = 1_700_000_000_000_000
    times = [start, start * 1000, start + 1_000_000, start + 90_000_000]
    table = pa.table({"ts": pa.array(times).cast(pa.timestamp("us", "UTC")), "type": ["A", "Z", "B", "Z"]})
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "0.parquet")
    frame = connect.readStream.schema("ts timestamp, type string").parquet(str(tmp_path / "in"))

    def run(**options):
        writer = (
            frame.transform(query.on(lateness="1 second", **options)).writeStream.format("parquet").option("path", str(tmp_path / "out"))
        )
        stream = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        with translated():
            stream.awaitTermination()
        return [figures(batch) for batch in stream.recentProgress]

    with pytest.raises(cepheid.InputError, match=r"an event of type=Z has the time \+55840-11-08 .* in `ts`, which is outside"):
        run()
    found = run(bad_time="drop", max_ahead="1 hour")
    assert [(batch["bad_times"], batch["ahead"]) for batch in found if batch and batch["events"]] == [(1, 0)]
    assert connect.read.parquet(str(tmp_path / "out")).count() == 1
