"""A table as a stream: every row exactly once, in an order that depends on table, disorder and seed alone, however the stream is cut."""

from __future__ import annotations

import datetime as dt
import json
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cepheid.errors import InputError, NotSupportedError, SchemaError
from cepheid.spark import replay, translated
from cepheid.spark.sources import pages as paging
from cepheid.spark.sources import replay as replays
from cepheid.spark.sources.replay import (
    Prepared,
    ReplayReader,
    arranged,
    arrival,
    in_spark_types,
    microseconds,
    pieces,
    runs,
    spark_schema,
    write,
)

SECOND = 1_000_000
paged = pytest.mark.skipif(not paging.PAGES, reason="Spark 4.1 does not tell a Python source where a micro-batch starts")


def events(number: int, *, seed: int = 0, seconds: int = 100) -> pa.Table:
    """Rows with ties of time, NULL attributes and nested ones, sorted by time."""
    rng = np.random.default_rng(seed)
    times = np.sort(rng.integers(0, seconds, number)) * SECOND
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "id": pa.array(range(number), pa.int64()),
            "name": pa.array([None if index % 5 == 0 else f"n{index}" for index in range(number)], pa.string()),
            "pair": pa.array([{"x": index, "y": None} for index in range(number)], pa.struct([("x", pa.int64()), ("y", pa.float64())])),
        }
    )


# -------------------------------------------------------------------------------------------------------------- without Spark


def test_arrivals_are_never_as_late_as_the_disorder(cases, seed):
    rng = random.Random(seed)
    for _ in range(cases):
        times = np.array([rng.randrange(-50, 200) for _ in range(rng.randrange(60))], np.int64)
        disorder = rng.choice([0, 1, 2, 7, 50, 1000])
        order, arrivals = arrival(times, disorder=disorder, seed=rng.randrange(5))
        assert sorted(order) == list(range(len(times)))
        assert list(arrivals) == sorted(arrivals)
        assert all(0 <= late < max(disorder, 1) for late in arrivals - times[order])
        newest = np.maximum.accumulate(times[order]) if len(times) else times
        assert all(newest - times[order] < max(disorder, 1))


def test_delays_are_the_same_for_ever():
    order, arrivals = arrival(np.zeros(5, np.int64), disorder=1000, seed=7)
    assert list(zip(order.tolist(), arrivals.tolist(), strict=True)) == DELAYS
    assert arrival(np.arange(5), disorder=0, seed=7)[0].tolist() == [0, 1, 2, 3, 4]
    assert (
        arrival(np.zeros(50, np.int64), disorder=1000, seed=8)[0].tolist()
        != arrival(np.zeros(50, np.int64), disorder=1000, seed=7)[0].tolist()
    )


DELAYS = [(0, 43), (3, 314), (1, 325), (2, 786), (4, 901)]
"""What a checkpoint of any time relies on; never to be changed."""


def test_disorder_brings_disorder():
    times = np.arange(1000) * SECOND
    order, _ = arrival(times, disorder=60 * SECOND, seed=1)
    assert np.count_nonzero(np.diff(order) < 0) > 300


def test_ranges_are_cut_without_gap_or_overlap(cases, seed):
    rng = random.Random(seed)
    for _ in range(cases):
        first = rng.randrange(20_000)
        last = first + rng.choice([0, 1, 2, 5, 4096, 9000])
        cut = runs(first, last, rng.randrange(1, 6))
        assert [row for begin, end in cut for row in range(begin, end)] == list(range(first, last))
        assert all(begin < end for begin, end in cut)
        lengths = [end - begin for begin, end in cut]
        assert max(lengths, default=0) - min(lengths, default=0) <= 1
        covered = [block * replays.BLOCK_ROWS + row for block, begin, end in pieces(first, last) for row in range(begin, end)]
        assert covered == list(range(first, last))


def reader(prepared: Prepared, *, rows: int = 10, tasks: int = 2, speed: float | None = None) -> ReplayReader:
    return ReplayReader(prepared, rows_per_batch=rows, tasks=tasks, speed=speed)


def test_union_of_all_pages_is_the_table(tmp_path, monkeypatch, cases, seed):
    """Whatever the page sizes, the number of tasks and the restarts."""
    rng = random.Random(seed)
    monkeypatch.setattr(replays, "BLOCK_ROWS", 16)
    for case in range(max(cases // 10, 1)):
        table = events(rng.choice([0, 1, 15, 16, 17, 100]), seed=case)
        rows, arrivals = arranged(table, "ts", disorder=rng.choice([None, 5 * SECOND]), seed=case, close=rng.choice([None, 60 * SECOND]))
        prepared = write(rows, arrivals, str(tmp_path))
        source = reader(prepared)
        offset, read = source.initialOffset(), []
        while offset != source.newest():
            source = reader(prepared, rows=rng.randrange(1, 40), tasks=rng.randrange(1, 4)) if rng.random() < 0.3 else source
            end = source.page(offset, source.newest())
            assert 0 < end["row"] - offset["row"] <= source.rows_per_batch
            parts = source.partitions(offset, end)
            assert len(parts) <= source.tasks
            for _ in range(rng.choice([1, 1, 2])):  # a batch that runs again has the same rows
                batches = [batch for part in parts for batch in source.read(part)]
            read += batches
            offset = end
        assert source.page(offset, source.newest()) == offset
        assert source.partitions(offset, offset) == []
        assert pa.Table.from_batches(read, rows.schema).equals(rows)
        assert sorted(row["id"] for row in rows.to_pylist() if row["id"] is not None) == list(range(len(table)))


def test_a_table_of_any_usual_size_comes_in_few_micro_batches():
    """Each micro-batch costs seconds: a million rows in a hundred of them took minutes."""
    assert {rows: replays.default_rows(rows) for rows in (0, 100_000, 100_001, 10**6, 10**7)} == {
        0: 10_000,
        100_000: 10_000,
        100_001: 10_001,
        10**6: 100_000,
        10**7: 200_000,
    }


def test_the_same_content_is_the_same_file(tmp_path):
    """Across processes, as a restart needs it; and any other content is another file."""
    code = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_replay import SECOND, arranged, events, write
print(write(*arranged(events(500), "ts", disorder=9 * SECOND, seed=3, close=None), sys.argv[1]).fingerprint)
"""
    found = subprocess.run([sys.executable, "-c", code, str(tmp_path / "one")], capture_output=True, text=True, check=True).stdout.strip()
    assert write(*arranged(events(500), "ts", disorder=9 * SECOND, seed=3, close=None), str(tmp_path / "two")).fingerprint == found
    others = [
        arranged(events(500), "ts", disorder=9 * SECOND, seed=4, close=None),
        arranged(events(500), "ts", disorder=8 * SECOND, seed=3, close=None),
        arranged(events(500), "ts", disorder=9 * SECOND, seed=3, close=1),
        arranged(events(500, seed=1), "ts", disorder=9 * SECOND, seed=3, close=None),
    ]
    assert found not in {write(*other, str(tmp_path / "two")).fingerprint for other in others}


def test_a_speed_follows_the_clock(tmp_path, monkeypatch):
    table = pa.table({"ts": pa.array([0, 10, 20, 30, 40], pa.timestamp("s")).cast(pa.timestamp("us"))})
    prepared = write(*arranged(table, "ts", disorder=None, seed=0, close=None), str(tmp_path))
    now = [100.0]
    monkeypatch.setattr(replays.clock, "monotonic", lambda: now[0])
    source = reader(prepared, rows=2, speed=10.0)
    rows = []
    offset = source.initialOffset()
    for seconds in (0, 0.5, 0.5, 0, 5, 0, 0):
        now[0] += seconds
        offset = source.page(offset, source.newest())
        rows.append(offset["row"])
    assert rows == [1, 1, 2, 2, 4, 5, 5]
    now[0] += 1000
    again = reader(prepared, rows=2, speed=10.0)  # a restart goes on where it was, at the same speed
    assert again.page(source._offset(2), source.newest())["row"] == 3
    now[0] += 1
    assert again.page(source._offset(3), source.newest())["row"] == 4


def test_close_adds_a_row_that_moves_the_watermark_on():
    rows, arrivals = arranged(events(20), "ts", disorder=SECOND, seed=0, close=3600 * SECOND)
    last = rows.slice(20).to_pylist()
    greatest = max(row["ts"] for row in rows.slice(0, 20).to_pylist())
    assert last == [{"ts": greatest + dt.timedelta(hours=1), "id": None, "name": None, "pair": None}]
    assert len(arrivals) == 21
    assert list(arrivals) == sorted(arrivals)
    assert len(arranged(events(0), "ts", disorder=None, seed=0, close=1)[0]) == 0


def test_types_are_sparks():
    table = pa.table(
        {
            "d": pa.array(["x", None]).dictionary_encode(),
            "l": pa.array([["x"], None], pa.large_list(pa.large_string())),
            "v": pa.array(["x", None], pa.string_view()),
            "t": pa.array([1_000, None], pa.timestamp("ns", "Europe/Vienna")),
            "n": pa.array([1, None], pa.timestamp("ms")),
            "u": pa.array([255, None], pa.uint8()),
            "w": pa.array([2**64 - 1, None], pa.uint64()),
            "s": pa.array([{"a": 1}, None], pa.struct([("a", pa.uint32())])),
            "m": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.uint16())),
        }
    )
    plain = in_spark_types(table)
    assert plain.to_pylist()[0] == {
        **table.to_pylist()[0],
        "t": dt.datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=dt.UTC),
        "n": table["n"][0].as_py(),
    }
    shown = spark_schema(plain.schema).simpleString()
    assert shown == (
        "struct<d:string,l:array<string>,v:string,t:timestamp,n:timestamp_ntz,u:smallint,w:decimal(20,0),s:struct<a:bigint>,m:map<string,int>>"
    )


@pytest.mark.parametrize(
    ("table", "fact"),
    [
        (pa.table({"t": pa.array([1], pa.timestamp("us"))}), "the table has no time column `ts`"),
        (pa.table({"ts": [1]}), "the time column `ts` is int64, not a timestamp"),
        (pa.table({"ts": pa.array([1, None], pa.timestamp("us"))}), "`ts` is NULL in 1 rows, which therefore never arrive"),
        (pa.table({"ts": pa.array([1], pa.timestamp("ns"))}), "the column `ts` is timestamp[ns], which Spark holds as timestamp[us]"),
        (pa.table({"ts": pa.array([1], pa.timestamp("us")), "a": pa.array([1], pa.time32("s"))}), "the column `a` is time32[s]"),
        (pa.table([pa.array([1], pa.timestamp("us")), [1], [2]], names=["ts", "a", "a"]), "the table has more than one column named `a`"),
    ],
)
def test_tables_that_cannot_be_replayed(table, fact):
    with pytest.raises((SchemaError, InputError)) as caught:
        replay(None, table)
    assert fact in str(caught.value)


@pytest.mark.parametrize(
    ("options", "fact"),
    [
        ({"disorder": "tomorrow"}, "disorder='tomorrow'"),
        ({"disorder": "0 s"}, "disorder='0 s' is not a duration above zero"),
        ({"close": dt.timedelta(seconds=-1)}, "close="),
        ({"partitions": 0}, "partitions=0 is not a number of tasks"),
        pytest.param({"speed": 0}, "speed=0 is not a number", marks=paged),
        pytest.param({"speed": float("nan")}, "speed=nan is not a number", marks=paged),
        pytest.param({"rows_per_batch": 0}, "rows_per_batch=0 is not a number of rows", marks=paged),
    ],
)
def test_options_that_make_no_sense(options, fact):
    with pytest.raises(InputError) as caught:
        replay(None, events(3), **options)
    assert fact in str(caught.value)


def test_durations():
    assert microseconds("disorder", "10 minutes") == microseconds("disorder", dt.timedelta(minutes=10)) == 600 * SECOND
    assert microseconds("disorder", None) is None


def test_a_spark_that_cannot_limit_says_so(monkeypatch):
    monkeypatch.setattr(paging, "PAGES", False)
    for options in ({"speed": 1.0}, {"rows_per_batch": 10}):
        with pytest.raises(NotSupportedError) as caught:
            replay(None, events(3), **options)
        assert "Spark 4.2" in str(caught.value)


def test_another_replays_offset_is_refused(tmp_path):
    one, two = (write(*arranged(events(9), "ts", disorder=SECOND, seed=seed, close=None), str(tmp_path)) for seed in (1, 2))
    with pytest.raises(InputError) as caught:
        reader(two).partitions(reader(one).initialOffset(), reader(two).newest())
    assert "the checkpoint is of a replay of other data" in str(caught.value)


def test_a_file_that_is_gone_is_named(tmp_path):
    with pytest.raises(InputError) as caught:
        list(reader(Prepared(str(tmp_path / "gone"), 1, "")).read(replays.ReplayRows(0, 1)))
    assert "folder=" in str(caught.value)


# -------------------------------------------------------------------------------------------------------------- on Spark


def run(stream, out, **trigger):
    """Run a stream to files until it ends, or until it has read everything there is."""
    query = stream.writeStream.format("parquet").option("path", str(out / "rows")).option("checkpointLocation", str(out / "checkpoint"))
    query = query.trigger(**(trigger or {"availableNow": True})).start()
    with translated():
        query.awaitTermination(60)
    assert not query.isActive
    return [progress for progress in query.recentProgress if progress["numInputRows"]]


def written(out) -> list[dict]:
    return rows_of(pq.read_table(out / "rows").cast(events(0).schema))


def rows_of(table: pa.Table) -> list[dict]:
    return sorted(table.to_pylist(), key=repr)


def test_a_table_is_read_once(spark, tmp_path):
    table = events(1000)
    options = {"rows_per_batch": 300} if paging.PAGES else {}
    stream = replay(spark, table, disorder="10 seconds", **options)
    assert stream.isStreaming
    progress = run(stream, tmp_path)
    assert [each["numInputRows"] for each in progress] == ([300, 300, 300, 100] if paging.PAGES else [1000])
    assert written(tmp_path) == rows_of(table)
    assert run(replay(spark, table, disorder="10 seconds", **options), tmp_path) == []
    assert written(tmp_path) == rows_of(table)


def test_from_a_dataframe_and_from_a_file(spark, tmp_path):
    table = events(50)
    pq.write_table(table, tmp_path / "events.parquet")
    for given in (str(tmp_path / "events.parquet"), spark.read.parquet(str(tmp_path / "events.parquet"))):
        out = tmp_path / type(given).__name__
        run(replay(spark, given, folder=tmp_path / "prepared", seed=2, close="1 h"), out)
        assert [row for row in written(out) if row["id"] is not None] == rows_of(table)
        assert len(written(out)) == 51


@paged
def test_a_restart_goes_on_with_the_next_row(spark, tmp_path):
    """A batch that fails is run again with the same rows, and each row comes once."""
    table = events(500)
    seen: dict[int, list[list[int]]] = {}

    def options():
        return replay(spark, table, disorder="20 seconds", seed=5, rows_per_batch=120)

    def failing(frame, batch):
        seen.setdefault(batch, []).append(sorted(row.id for row in frame.select("id").collect()))
        if len(seen) == 3 and len(seen[2]) == 1:
            raise RuntimeError("once")

    for attempt in range(2):
        query = options().writeStream.foreachBatch(failing).option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
        if attempt == 0:
            with pytest.raises(Exception, match="once"):
                query.awaitTermination(60)
        else:
            query.awaitTermination(60)
    assert [len(each) for each in seen.values()] == [1, 1, 2, 1, 1]
    assert seen[2][0] == seen[2][1]
    assert sorted(row for runs in seen.values() for row in runs[0]) == list(range(500))


def test_a_checkpoint_of_other_data_is_an_error(spark, tmp_path):
    run(replay(spark, events(50), seed=1, disorder="10 s"), tmp_path)
    with pytest.raises(InputError, match="the checkpoint is of a replay of other data"):
        run(replay(spark, events(50), seed=2, disorder="10 s"), tmp_path)


@paged
def test_speed_on_spark(spark, tmp_path):
    """Ten seconds of event time in about one second; the stream goes on until it is stopped."""
    table = pa.table({"ts": pa.array(range(10), pa.timestamp("s", "UTC")), "id": pa.array(range(10))})
    stream = replay(spark, table, speed=10)
    query = stream.writeStream.format("memory").queryName("speedy").option("checkpointLocation", str(tmp_path)).start()
    deadline = time.monotonic() + 60
    while spark.table("speedy").count() < 10 and time.monotonic() < deadline:
        time.sleep(0.1)
    sources = json.loads(query.lastProgress.json)["sources"]
    query.stop()
    assert spark.table("speedy").count() == 10
    assert sources[0]["latestOffset"]["row"] == 10
    assert len([each for each in query.recentProgress if each["numInputRows"]]) > 1


def test_watermarks_take_no_event_for_late(spark, tmp_path):
    """lateness = disorder is enough, in the smallest batches: Spark's own stateful operator drops nothing."""
    table = events(300, seconds=1000)
    options = {"rows_per_batch": 70} if paging.PAGES else {}
    stream = replay(spark, table, disorder="30 seconds", close="1 h", **options).withWatermark("ts", "30 seconds")
    run(stream.groupBy("ts").count(), tmp_path)
    assert sum(pq.read_table(tmp_path / "rows")["count"].to_pylist()) == 300


@pytest.mark.connect
def test_on_connect(connect, tmp_path):
    """From an Arrow table and from a DataFrame of the session."""
    table = events(100)
    run(replay(connect, table, disorder="10 seconds"), tmp_path / "arrow")
    assert written(tmp_path / "arrow") == rows_of(table)
    frame = connect.createDataFrame(table)
    run(replay(connect, frame, disorder="10 seconds"), tmp_path / "frame")
    assert written(tmp_path / "frame") == rows_of(table)
    run(replay(connect, table, disorder="10 seconds", seed=1), tmp_path / "other")
    with pytest.raises(InputError, match="the checkpoint is of a replay of other data"):
        run(replay(connect, table, disorder="10 seconds", seed=2), tmp_path / "other")
