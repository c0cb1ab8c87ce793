"""Times that no event can have, and times in the future: found before they move a stream's watermark, and before they decide anything in a table."""

from __future__ import annotations

import datetime as dt
import json

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from test_stream import BASE, PAIRS, SCHEMA, Feed, shown
from test_stream_bad_input import bucket_of

import cepheid
from cepheid.errors import InputError, LimitError, NotSupportedError
from cepheid.spark import merge, on, translated
from cepheid.spark.operator import EPOCH
from cepheid.spark.tasks.bounds import FIRST_TIME, LAST_TIME, MICROSECONDS_PER_DAY, bounds, outside, time_text
from cepheid.spark.tasks.buckets import Bucket
from cepheid.spark.tasks.worker import TIME, reporting
from cepheid.spark.translation import cepheid_error

YEAR_50000 = 1_515_698_524_800_000_000
"""Milliseconds taken for seconds, in microseconds."""

START = int(BASE.timestamp()) * 1_000_000


MICROSECONDS = pa.timestamp("us", "UTC")


def table_at(rows, kind=MICROSECONDS):
    """Events from (key, time in steps of its column, type, number)."""
    keys, times, types, numbers = zip(*rows, strict=True)
    stored = pa.array(times, pa.int32() if kind == pa.date32() else pa.int64())
    return pa.table([keys, stored.cast(kind), types, numbers], schema=SCHEMA.set(1, pa.field("ts", kind)))


# ------------------------------------------------------------------------------------------------------------------------ the bounds


def test_the_bounds_are_the_years_of_python():
    for steps, moment in ((FIRST_TIME, dt.datetime.min), (LAST_TIME, dt.datetime.max)):  # noqa: DTZ901 - of which there is no more
        assert EPOCH + dt.timedelta(microseconds=steps) == moment.replace(tzinfo=dt.UTC)
    days = tuple((day - dt.date(1970, 1, 1)).days for day in (dt.date.min, dt.date.max))
    assert bounds(pa.date32()) == days
    assert bounds(pa.timestamp("us")) == bounds(pa.timestamp("us", "UTC")) == (FIRST_TIME, LAST_TIME)
    assert bounds(pa.int64()) is None


@pytest.mark.parametrize("kind", [pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.date32()])
def test_what_is_outside(kind):
    first, last = bounds(kind)
    times = np.array([first - 1, first, 0, last, last + 1])
    assert outside(times, kind).tolist() == [True, False, False, False, True]
    assert outside(times[1:4], kind) is None
    assert outside(times[:0], kind) is None
    assert outside(np.array([-(1 << 63), (1 << 63) - 1]), pa.int64()) is None


def test_times_of_any_year_as_text():
    assert time_text(YEAR_50000, pa.timestamp("us", "UTC")) == "50000-07-29 00:00:00"
    assert time_text(1, pa.timestamp("us")) == "1970-01-01 00:00:00.000001"
    assert time_text(FIRST_TIME - 1, pa.timestamp("us")) == "0000-12-31 23:59:59.999999"
    assert time_text(LAST_TIME // MICROSECONDS_PER_DAY + 1, pa.date32()) == "10000-01-01"


def test_the_last_time_of_all_does_not_end_a_stream():
    """Where nothing may be late it is the watermark: what it decides has a time, and what is late then too."""
    bucket, events = bucket_of("A1 B2", late=True)
    watermark = LAST_TIME // 1000
    times = pa.array([watermark * 1000 - 1, watermark * 1000], events["ts"].type)
    for name in (TIME, "ts"):
        events = events.set_column(events.column_names.index(name), name, times)
    assert bucket.step([events], 0).counts["waiting"] == 2
    bucket = Bucket(bucket.unit).load(bucket.dump())
    step = bucket.step([events], watermark)
    assert (step.counts["matches"], step.counts["late"]) == (1, 2)
    assert {EPOCH + dt.timedelta(microseconds=moment) for moment, _ in step.rows} == {EPOCH + dt.timedelta(milliseconds=watermark)}


def test_a_watermark_that_no_time_can_move_on_is_an_error():
    """Of the DataFrame's own, whose event a filter took away before q.on: the checkpoint is lost, and the error says so."""
    bucket, events = bucket_of("A1 B2")
    bucket.step([events], LAST_TIME // 1000)
    with pytest.raises(
        InputError, match=r"the watermark is after the years 1 to 9999: .* `ts` moved it, and q.on never saw that event"
    ) as caught:
        bucket.step([], LAST_TIME // 1000 + 1)
    assert "new checkpointLocation" in caught.value.help[0]
    assert "lateness= instead of withWatermark" in caught.value.help[1]


# ------------------------------------------------------------------------------------------------------------------------ tables

KINDS = {"timestamp": pa.timestamp("us", "UTC"), "timestamp_ntz": pa.timestamp("us"), "date": pa.date32()}
FOLLOWED = cepheid.query("SELECT * WHERE A AS x ; B AS y PARTITION BY k")


def numbers(frame):
    """The numbers of the events of each match."""
    return sorted(tuple(row) for row in frame.select("x.v", "y.v").toDF("x", "y").select(F.col("x")[0], F.col("y")[0]).collect())


@pytest.mark.parametrize("number", range(len(KINDS)), ids=KINDS)
def test_times_outside_the_bounds_are_an_error_or_dropped(spark, number):
    """Of any type, with a key or without; the first and the last time are times."""
    kind = [*KINDS.values()][number]
    first, last = bounds(kind)
    right = [(1, first, "A", 1), (1, 0, "B", 2), (1, last, "B", 3)]
    wrong = [(1, last + 1, "Z", 4), (None, first - 1, "B", 5), (1, last + 1, "B", 6), (1, first - 1, "A", 7)]
    shown = r"an event of k=(1|None) has the time -?\d+-\d\d-\d\d.* in `ts`, which is outside the years 1 to 9999"
    with pytest.raises(InputError, match=shown) as caught, translated():
        spark.createDataFrame(table_at([*right, wrong[number]], kind)).transform(FOLLOWED.on()).collect()
    assert 'q.on(.., bad_time="drop")' in caught.value.help[1]
    recognition = FOLLOWED.on(bad_time="drop")
    assert numbers(spark.createDataFrame(table_at([*right, *wrong], kind)).transform(recognition)) == [(1, 2), (1, 3)]
    assert recognition.counts() == {"null_keys": 1, "bad_times": 4}, "of any type"


def test_integers_are_times_whatever_they_are(spark):
    first, last = -(1 << 63), (1 << 63) - 1
    frame = spark.createDataFrame(table_at([(1, first, "A", 1), (1, last, "B", 2)], pa.int64()))
    recognition = FOLLOWED.on(bad_time="drop")
    assert numbers(frame.transform(recognition)) == [(1, 2)]
    assert "bad_times" not in recognition.counts()


def test_a_time_outside_the_bounds_decides_nothing(spark):
    """The greatest time says up to when a table is complete: a wrong one, of a type that no query uses, would decide every absence."""
    alone = cepheid.query("SELECT x.v AS v WHERE A AS x NOT FOLLOWED BY B FOR 5 seconds PARTITION BY k")
    rows = [(1, START, "A", 1), (1, START + 2_000_000, "A", 2), (1, START + 6_000_000, "C", 3), (1, YEAR_50000, "Z", 4)]
    frame = spark.createDataFrame(table_at(rows))
    for queries in (alone, [alone, PAIRS]):
        assert [row.v for row in frame.transform(on(queries, bad_time="drop")).collect()] == [1]
        with pytest.raises(InputError, match="which is outside the years 1 to 9999"), translated():
            frame.transform(on(queries)).collect()


def test_slices_of_time_without_times_outside_the_bounds(spark):
    query = cepheid.query("SELECT x.v AS first, y.v AS second WHERE A AS x ; B AS y WITHIN 10 seconds")
    rows = [(1, START, "A", 1), (1, START + 1_000_000, "B", 2), (1, YEAR_50000, "B", 3)]
    frame = spark.createDataFrame(table_at(rows))
    recognition = query.on(bad_time="drop", buckets=4)
    assert [tuple(row)[2:] for row in frame.transform(recognition).collect()] == [(1, 2)]
    assert recognition.counts() == {"bad_times": 1}
    with pytest.raises(InputError, match="an event has the time 50000-"), translated():
        frame.transform(query.on(buckets=4)).collect()


def test_a_table_has_no_clock(spark):
    with pytest.raises(
        InputError, match=r"max_ahead= compares events with the clock when they come in on a stream, and this DataFrame is not a stream"
    ):
        spark.createDataFrame(table_at([(1, START, "A", 1)])).transform(PAIRS.on(max_ahead="1 day"))


# ------------------------------------------------------------------------------------------------------------------------ streams


@pytest.fixture
def feed(spark, tmp_path):
    return Feed(spark, tmp_path)


def left_out(progress):
    """What was left out for its time, over all micro-batches."""
    rows = [each["observedMetrics"]["cepheid.left_out"].asDict() for each in progress]
    return {name: sum(row[name] for row in rows) for name in rows[0] if name != "furthest"}


def test_a_stream_goes_on_after_an_event_outside_the_bounds(feed):
    """Of a type that no query uses, and without a key: it fails its micro-batch, and the same checkpoint goes on where such events are dropped."""
    feed.put([(1, 1, "A", 1), (1, 2, "B", 2), (1, 3, "A", 3)])
    feed.put_table(table_at([(1, START + 4_000_000, "B", 4), (None, YEAR_50000, "Z\n", 5), (1, FIRST_TIME - 1, "A", 6)]))
    feed.put([(1, 5, "B", 7), (None, 1_000_000, "Z", 8)])
    for stream, options, way_out in (
        (
            feed.stream().withWatermark("ts", "6 seconds"),
            {},
            'before withWatermark, or q.on(.., bad_time="drop") and lateness= in its place',
        ),
        (feed.stream(), {"lateness": "6 seconds"}, 'q.on(.., bad_time="drop"); the checkpoint goes on'),
    ):
        with pytest.raises(InputError) as caught:
            feed.run(stream.transform(PAIRS.on(**options)))
        assert (
            caught.value.fact
            == "an event of type=Z , k=NULL has the time +50000-07-29 00:00:00 in `ts`, which is outside the years 1 to 9999"
        )
        assert way_out in caught.value.help[1]
    progress = feed.run(feed.stream().transform(PAIRS.on(lateness="6 seconds", bad_time="drop")))
    assert left_out(progress) == {"bad_times": 2}
    assert shown(feed.rows()) == [(1, (1,), (2,)), (1, (1,), (4,)), (1, (1,), (7,)), (1, (3,), (4,)), (1, (3,), (7,))]


def test_an_event_that_a_join_leaves_out_is_no_error(feed):
    """Spark may compute what stands above a join below it."""
    feed.put_table(table_at([(1, START, "A", 1), (7, YEAR_50000, "A", 2), (1, START + 1_000_000, "B", 3)]))
    feed.put([(1, 1_000_000, "Z", 0)])
    known = feed.spark.createDataFrame([(1,), (2,)], "k int")
    feed.run(feed.stream().join(known, "k").transform(PAIRS.on(lateness="6 seconds")))
    assert shown(feed.rows()) == [(1, (1,), (3,))]


def test_events_of_the_future_are_left_out_and_counted(feed):
    """What is left out makes nothing late, whatever its type; merged streams are one."""
    clock = int(dt.datetime.now(dt.UTC).timestamp()) * 1_000_000
    near, far = clock + 1_800_000_000, clock + 7_200_000_000
    feed.put_table(table_at([(1, START, "A", 1), (1, far, "A", 2), (None, YEAR_50000, "Z", 3)]))
    feed.put_table(table_at([(1, START + 1_000_000, "B", 4), (1, near, "B", 5)]))
    merged = merge(one=feed.stream(), two=feed.stream().where("v < 0"))
    with pytest.raises(InputError, match=r"type=Z, k=NULL has the time \+50000"):
        feed.run(merged.transform(PAIRS.on(lateness="6 seconds", max_ahead="1 hour")))
    progress = feed.run(merged.transform(PAIRS.on(lateness="6 seconds", max_ahead="1 hour", bad_time="drop")))
    assert left_out(progress) == {"ahead": 1, "bad_times": 1}
    furthest = [each["observedMetrics"]["cepheid.left_out"]["furthest"] for each in progress]
    assert furthest[0] == far
    assert all(each["observedMetrics"]["cepheid"]["late"] in (0, None) for each in progress)
    assert shown(feed.rows()) == [(1, (1,), (4,))]


def test_a_micro_batch_that_is_repeated_leaves_out_the_same(feed):
    """It goes by the clock of its first attempt, which the checkpoint has: a repeated one must not read what the first one left out."""
    clock = int(dt.datetime.now(dt.UTC).timestamp()) * 1_000_000
    feed.put([(1, 1, "A", 1), (1, 2, "B", 2)])
    feed.put_table(table_at([(1, clock - 3_600_000_000, "B", 3)]))
    checkpoint = feed.folder / "checkpoint"

    def run(write):
        frame = feed.stream().transform(PAIRS.on(lateness="6 seconds", max_ahead="1 minute"))
        writer = frame.writeStream.foreachBatch(write).option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        query = writer.start()
        query.awaitTermination()
        return query.recentProgress

    def failing(batch, number):
        batch.collect()
        if number:
            raise ZeroDivisionError

    with pytest.raises(Exception, match="ZeroDivisionError"):
        run(failing)
    # As if the second micro-batch had been begun a day before.
    path = checkpoint / "offsets" / "1"
    version, metadata, *rest = path.read_text(encoding="utf-8").split("\n")
    changed = json.loads(metadata)
    changed["batchTimestampMs"] -= 86_400_000
    path.write_text("\n".join([version, json.dumps(changed), *rest]), encoding="utf-8")
    (checkpoint / "offsets" / ".1.crc").unlink()
    assert left_out(run(lambda batch, _: batch.collect())) == {"ahead": 1}


def test_what_can_only_be_left_out_before_the_watermark(feed):
    marked = feed.stream().withWatermark("ts", "6 seconds")
    for options, words in (({"bad_time": "drop"}, "bad_time='drop'"), ({"max_ahead": "1 day"}, "max_ahead='1 day'")):
        with pytest.raises(
            InputError, match=rf"{words} leaves events out before they move the watermark, and `ts` has a watermark already"
        ):
            marked.transform(PAIRS.on(**options))
    with pytest.raises(InputError, match="max_ahead='soon' is not a duration"):
        feed.stream().transform(PAIRS.on(lateness="6 seconds", max_ahead="soon"))
    with pytest.raises(InputError, match=r"max_ahead=.* is negative"):
        feed.stream().transform(PAIRS.on(lateness="6 seconds", max_ahead=dt.timedelta(days=-1)))
    with pytest.raises(NotSupportedError, match="max_ahead=60 has no unit"):
        feed.stream().transform(PAIRS.on(lateness="6 seconds", max_ahead=60))
    with pytest.raises(LimitError, match=r"max_ahead=.* is longer than"):
        feed.stream().transform(PAIRS.on(lateness="6 seconds", max_ahead=dt.timedelta.max))
    text = PAIRS.on(lateness="6 seconds", max_ahead="1 day", null_time="drop").explain(feed.stream())
    assert "times    NULL: left out; outside the years 1 to 9999: an error; more than 1 day after the clock: left out" in text


# ------------------------------------------------------------------------------------------------------------------- what crosses Spark


def test_an_error_of_a_task_is_its_last_row():
    """Spark raises it with its message in front; what is no error of ours passes."""
    output = pa.schema([("k", pa.int64()), ("x", pa.list_(pa.struct([("v", pa.int64())])))])
    rows = pa.record_batch([pa.array([1]), pa.array([[{"v": 2}]], output.field("x").type)], schema=output)

    def failing(batches):
        yield from batches
        raise InputError("a fact", help="a way out")

    found = [*reporting(failing, output.serialize().to_pybytes(), "x$", iter([rows]))]
    assert [batch.schema.names for batch in found] == [["k", "x", "x$"]] * 2
    assert found[0].to_pylist() == [{"k": 1, "x": [{"v": 2}], "x$": None}]
    assert found[0].schema == found[1].schema
    (last,) = found[1].to_pylist()
    error = cepheid_error(ValueError(last["x$"]))
    assert (type(error), error.fact, error.help) == (InputError, "a fact", ("a way out",))
    with pytest.raises(ZeroDivisionError):
        list(reporting(lambda _: 1 // 0, output.serialize().to_pybytes(), "x$", iter([rows])))


def test_the_message_of_a_task_stands_first(spark):
    """Whatever the columns of the output are called."""
    frame = spark.createDataFrame([(1, 1, "A", 1), (1, 1, "B", 2)], "ts int, `k$` int, type string, v int")
    query = cepheid.query("SELECT * WHERE A AS x ; B AS y PARTITION BY `k$`")
    absent = cepheid.query("SELECT * WHERE ANY AS x NOT FOLLOWED BY C FOR 1 PARTITION BY `k$`")
    for queries in (query, [query, query], absent):
        with pytest.raises(Exception, match=r"^\[USER_RAISED_EXCEPTION\] .*error: two events of k\$=1 have the same time 1") as caught:
            frame.transform(on(queries, until="end")).count()
        assert "Traceback" not in str(caught.value)
        assert "order=[..]" in str(caught.value)
    found = frame.transform(on([query, absent], until="end", order="v"))
    assert found.columns == ["query", "k$", "start_time", "end_time", "x", "y"]
    assert [(row.query, row["k$"]) for row in found.orderBy("query").collect()] == [("q1", 1), ("q2", 1), ("q2", 1)]
