"""Streams whose source has partitions: what is late, and what is known, go by each partition, however unevenly they are read."""

from __future__ import annotations

import dataclasses
import itertools
import re

import numpy as np
import pyarrow as pa
import pytest
from enough import Enough
from operated import Operated
from test_stateful import FRAGMENTS, buckets_of, expected, random_case, shown, timed, unit_of
from test_stream import Feed, table_of

import cepheid
from cepheid.errors import InputError, NotSupportedError, SchemaError, SnapshotError
from cepheid.spark.observation import figures, line
from cepheid.spark.tasks.packing import unpack
from cepheid.spark.tasks.partition_times import PartitionTimes, Told
from cepheid.spark.tasks.visits import BLOB, BUCKET, MOMENT_READ, SOURCE

LATENESS, IDLE, STEP = 3_000, 25_000, 10_000
"""Milliseconds: how late an event may be in its partition, when a partition is idle, and from one micro-batch to the next."""

BUCKETS = 3


def told(moment, **times):
    """What a task tells, in seconds."""
    seen = Told()
    partitions = pa.array([int(name[1:]) for name in times], pa.int64())
    values = pa.array([None if time is None else time * 1_000_000 for time in times.values()], pa.timestamp("us", "UTC"))
    seen.see(partitions, values, pa.array([moment * 1_000_000] * len(times), pa.timestamp("us", "UTC")))
    return seen.row


def known(times):
    """What is known, in seconds."""
    return (times.known - 1) // 1_000_000


def test_the_slowest_partition_says_what_is_known():
    times = PartitionTimes(10_000, 60_000)
    times.take([told(0, p1=100), told(0, p2=500), told(0, p1=90)])
    assert known(times) == 90
    times.take([told(1, p2=900)])
    assert known(times) == 90
    times.take([told(2, p1=300)])
    assert known(times) == 290
    assert times.counts == {"known": 290_000_001, "partitions": 2, "apart": 600_000_000}


def test_a_silent_partition_is_waited_for_until_the_time_out():
    times = PartitionTimes(10_000, 60_000)
    times.take([told(0, p1=100, p2=500)])
    for moment in (10, 40, 69):
        times.take([told(moment, p2=moment + 500)])
        assert known(times) == 90
    times.take([told(70, p2=600)])
    assert known(times) == 590
    times.take([told(71, p1=101)])
    assert known(times) == 590, "what is known never goes back"
    times.take([told(72, p1=700, p2=601)])
    assert known(times) == 591


def test_one_long_micro_batch_is_no_silence():
    times = PartitionTimes(0, 60_000)
    times.take([told(0, p1=100, p2=500)])
    times.take([told(1000, p2=600)])
    assert known(times) == 100
    times.take([told(2000, p1=700, p2=600)])
    assert known(times) == 600


def test_a_stop_and_a_night_are_no_silence():
    times = PartitionTimes(30_000, 60_000)
    times.take([told(0, p1=100, p2=500)])
    times.take([told(10, p2=510)])
    times.take([told(7210, p2=8000)])
    assert known(times) == 70
    times.take([told(7220, p1=150, p2=8010)])
    assert known(times) == 120
    assert not times.silent


def test_events_without_a_time_tell_nothing():
    assert told(0, p1=None) == b""
    times = PartitionTimes(0, 0)
    times.take([told(0, p1=None, p2=3)])
    assert times.greatest.keys() == {2}


def test_times_go_through_bytes():
    times = PartitionTimes(10_000, 60_000)
    times.take([told(0, p1=100, p2=-500)])
    times.take([told(5, p2=600)])
    times.deadline, times.fresh = 7, False
    again = PartitionTimes(10_000, 60_000)
    again.load(times.dump(fingerprint=b"x"), fingerprint=b"x")
    assert again == times
    with pytest.raises(SnapshotError):
        again.load(times.dump(fingerprint=b"x"), fingerprint=b"y")


class Reading:
    """Partitions that are read unevenly: which rows each micro-batch has, and what is late, by a definition of its own."""

    def __init__(self, chance, table, partitions):
        self.times = table["ts"].cast(pa.int64()).to_numpy() // 1000
        self.partition = np.array([chance.randrange(partitions) for _ in self.times], np.int64)
        arrival = self.times + np.array([chance.uniform(0, LATENESS - 1) for _ in self.times]) if len(self.times) else self.times
        self.queues = [[row for row in np.argsort(arrival, kind="stable") if self.partition[row] == part] for part in range(partitions)]
        self.chance = chance

    def batches(self):
        """The rows of each micro-batch; the first has some of each partition, for no source lets one starve."""
        first = True
        while any(self.queues):
            rows = []
            for queue in self.queues:
                count = max(first, self.chance.choice([0, 0, 1, 2, 5]))
                rows += queue[:count]
                del queue[:count]
            first = False
            if rows:
                yield sorted(rows, key=lambda _: self.chance.random())

    def late(self, batches, watermarks):
        """The rows that are late: behind what was known when their micro-batch began."""
        seen, known, late = [], -(1 << 62), set()
        for number, (rows, watermark) in enumerate(zip(batches, watermarks, strict=True)):
            known = max(known, watermark)
            late |= {row for row in rows if self.times[row] <= known}
            seen += [(number, self.partition[row], self.times[row]) for row in rows]
            # Silent in so many micro-batches that the time-out has passed: since the first of them.
            most = -(-IDLE // STEP)
            waited = {part for when, part, _ in seen if when >= number - most}
            # One that was given up begins anew.
            known = max(known, min(self._greatest(seen, part, most) for part in waited) - LATENESS)
        return late

    @staticmethod
    def _greatest(seen, part, most):
        own = sorted({when for when, each, _ in seen if each == part})
        begin = own[0]
        for before, after in itertools.pairwise(own):
            if after - before > most + 1:
                begin = after
        return max(time for when, each, time in seen if each == part and when >= begin)


def partitioned(unit, events, output, reading, *, apart, page_keys):
    """The rows of a stream over partitions, and the rows of the table that are late."""
    unit = dataclasses.replace(unit, partitions=(LATENESS, IDLE, 1), page_keys=page_keys)
    number = pa.array(buckets_of(events, BUCKETS))
    events = events.append_column(BUCKET, number).append_column(SOURCE, pa.array(reading.partition))
    stream, batches, watermarks, found, watermark, late = Operated(unit, told_buckets=BUCKETS), list(reading.batches()), [], [], 0, 0
    for moment, rows in enumerate(batches):
        batch = events.take(pa.array(rows, pa.int64()))
        moments = pa.array([moment * STEP * 1000] * len(rows), pa.timestamp("us", "UTC"))
        found += stream.batch(batch.append_column(MOMENT_READ, moments), watermark, tasks=reading.chance.choice([1, 2]))
        watermarks.append(watermark)
        watermark = max([watermark, *(reading.times[rows] - LATENESS - apart).tolist()])
    found += stream.batch(events.slice(0, 0), 4_000_000_000_000)
    blobs = [row[BLOB] for row in found if row[BLOB] is not None]
    shown_rows = [match for blob in blobs for match in unpack(output, pa.array([blob], pa.binary())).to_pylist()[0]]
    late = sum(row["late"] or 0 for row in found)
    for match in shown_rows:
        match.pop("decided_time")
    return shown_rows, late, reading.late(batches, watermarks)


@pytest.mark.parametrize("page_keys", [0, 2], ids=["whole", "pages"])
@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_a_backlog_read_unevenly_loses_nothing(fragment, page_keys, cases, seed):
    enough = Enough(cases // 20, matched=1)
    for number in enough:
        query, table, chance = random_case(f"{seed}/partitions/{fragment}/{number}", FRAGMENTS[fragment])
        unit, events, output = unit_of([query], table)
        if len(events) < len(table):
            continue  # a NULL key
        apart = chance.choice([1 << 40, 1 << 40, 0, 5_000])
        reading = Reading(chance, table, chance.randint(1, 4))
        rows, late, should = partitioned(unit, events, output, reading, apart=apart, page_keys=page_keys)
        assert late == len(should), (seed, number, query.text, table.to_pylist())
        staying = table.take(pa.array([row for row in range(len(table)) if row not in should], pa.int64()))
        assert sorted(map(shown, rows)) == sorted(map(shown, expected(query, staying))), (seed, number, query.text, table.to_pylist())
        enough.seen["matched"] += bool(rows)


def test_a_bucket_without_events_reads_and_writes_the_times_alone():
    query = cepheid.query("SELECT * WHERE A ; B PARTITION BY k WITHIN 1 hour")
    table = timed([{"k": key, "type": "A", "ts": 1000 + key} for key in range(20)] + [{"k": 0, "type": "C", "ts": 1100}])
    unit, events, _ = unit_of([query], table)
    unit = dataclasses.replace(unit, partitions=(LATENESS, IDLE, 1))
    events = events.append_column(BUCKET, pa.array(buckets_of(events, BUCKETS))).append_column(
        SOURCE, pa.array([1] * len(events), pa.int64())
    )
    events = events.append_column(MOMENT_READ, pa.array([0] * len(events), pa.timestamp("us", "UTC")))
    stream = Operated(unit, told_buckets=BUCKETS)
    stream.batch(events.slice(0, 20), 0)
    stream.batch(events.slice(20), 0)
    stream.handle.written.clear()
    last = events.slice(20)
    last = last.set_column(last.column_names.index(BUCKET), BUCKET, pa.array([None], pa.int32()))
    assert stream.batch(last, 0) == []
    assert sorted(stream.handle.written) == [(bucket, "times") for bucket in range(BUCKETS)]


@pytest.mark.parametrize("before", [None, (LATENESS, IDLE, 1)], ids=["off", "on"])
def test_a_stream_that_starts_again_looks_at_each_bucket(before):
    """What waits there may be due, though what is known of the bucket says nothing, or something of long ago."""
    query = cepheid.query("SELECT * WHERE A ; B PARTITION BY k WITHIN 1 hour")
    rows = [("A", 1_000), ("B", 1_001), ("Z", 2_000)]
    table = timed([{"k": 0, "type": kind, "ts": moment} for kind, moment in rows])
    unit, events, _ = unit_of([query], table)
    events = events.append_column(BUCKET, pa.array([0, 0, None], pa.int32())).append_column(SOURCE, pa.array([1] * 3, pa.int64()))
    events = events.append_column(MOMENT_READ, pa.array([0] * 3, pa.timestamp("us", "UTC")))
    stream = Operated(dataclasses.replace(unit, partitions=before), told_buckets=BUCKETS)
    plain = events.slice(0, 2)
    if before is None:
        stream.told_buckets = 0
        plain = plain.drop_columns([SOURCE, MOMENT_READ])
    assert not any(row[BLOB] for row in stream.batch(plain, 0))
    if before is not None:  # off for a while
        stream.unit, stream.told_buckets = unit, 0
        stream.batch(plain.drop_columns([SOURCE, MOMENT_READ]).slice(0, 0), 0)
    stream.unit, stream.told_buckets = dataclasses.replace(unit, partitions=(LATENESS, IDLE, 2)), BUCKETS
    assert sum(row["matches"] or 0 for row in stream.batch(events.slice(2), 0)) == 1


# -------------------------------------------------------------------------------------------------------------------- on Spark itself


PAIRS = cepheid.query("SELECT * WHERE A AS x ; B AS y PARTITION BY k WITHIN 10 seconds")


class Partitioned(Feed):
    """Files in which each partition is somewhere else: the column `v` says which one."""

    def __init__(self, spark, folder):
        super().__init__(spark, folder)
        self.rows = []

    def part(self, *moments):
        """A file with a pair of events of each partition, from these seconds on."""
        rows = [
            (10 * part + moment % 7, moment + step, kind, part)
            for part, moment in enumerate(moments)
            for step, kind in ((0, "A"), (3, "B"))
        ]
        self.rows += rows
        self.put([*rows, (99, moments[0], "Z", 0)])


def late_of(progress):
    return sum(each["late"] for each in map(figures, progress) if each is not None)


def test_an_uneven_backlog_on_spark(spark, tmp_path):
    feed, batches = Partitioned(spark, tmp_path), [(0, 0, 0), (5_000, 100, 3), (9_000, 200, 50), (9_100, 4_000, 60)]
    by_partition = PAIRS.on(lateness="30 seconds", partition="v", order="v")
    for moments in batches[:2]:
        feed.part(*moments)
    first = feed.run(feed.stream().transform(by_partition))
    for moments in batches[2:]:
        feed.part(*moments)
    second = feed.run(feed.stream().transform(by_partition))
    feed.close()
    last = feed.run(feed.stream().transform(by_partition))
    assert late_of([*first, *second, *last]) == 0
    found = spark.read.parquet(str(tmp_path / "out"))
    assert found.count() == len(PAIRS.run(table_of(sorted(feed.rows, key=lambda row: row[1])))) == 12
    told = [each for each in map(figures, [*first, *second]) if each["known"] is not None]
    assert [(each["partitions"], each["apart"].total_seconds()) for each in told] == [(3, 0), (3, 4997), (3, 8950), (3, 9040)]
    assert told[-1]["known"].timestamp() - told[0]["known"].timestamp() == 60
    assert "3 partitions up to 2.51 h apart" in line(told[-1])
    # One watermark for all of them loses what the fastest leaves behind.
    assert late_of(feed.run(feed.stream().transform(PAIRS.on(lateness="30 seconds", order="v")), "one")) == 8


def test_a_silent_partition_on_spark(spark, tmp_path):
    """By the clock of the driver, which each micro-batch has once: the third in a row without its events is the first that does not wait for it."""
    feed = Partitioned(spark, tmp_path)
    feed.part(0, 0)
    for number in (1, 2, 3):
        feed.part(1_000 * number)
    progress = feed.run(feed.stream().transform(PAIRS.on(lateness="30 seconds", partition="v", idle="1 millisecond")))
    told = [each for each in map(figures, progress) if each["events"]]
    assert [each["partitions"] for each in told] == [2, 2, 2, 1]
    assert [(each["known"] - told[0]["known"]).total_seconds() for each in told] == [0, 0, 0, 3_000]


def test_partitions_can_begin_to_count_later(spark, tmp_path):
    """A checkpoint of before has no times: these begin with the next micro-batch."""
    feed = Partitioned(spark, tmp_path)
    feed.part(0, 0)
    feed.run(feed.stream().withWatermark("ts", "1 day").transform(PAIRS.on()))
    feed.part(5_000, 100)
    feed.part(9_000, 200)
    progress = feed.run(feed.stream().withWatermark("ts", "1 day").transform(PAIRS.on(lateness="30 seconds", partition=["v"])))
    assert late_of(progress) == 0
    feed.part(9_100, 300)
    feed.close()
    assert late_of(feed.run(feed.stream().withWatermark("ts", "1 day").transform(PAIRS.on()))) == 0
    assert spark.read.parquet(str(tmp_path / "out")).count() == 8


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"partition": "shard"}, SchemaError, "the input has no column `shard`, which partition= names"),
        ({"partition": "v", "idle": 60}, NotSupportedError, "idle=60 has no unit"),
        ({"partition": "v", "apart": "-1 s"}, InputError, "apart="),
        ({"partition": "v", "apart": "soon"}, InputError, "apart="),
    ],
)
def test_wrong_options_of_partitions(spark, options, error, text):
    events = spark.readStream.format("rate").load().selectExpr("cast(value as int) as k", "timestamp as ts", "'A' as type", "value as v")
    with pytest.raises(error, match=re.escape(text)):
        events.transform(PAIRS.on(lateness="30 seconds", **options))


def test_what_partitions_do_not_go_with(spark):
    events = spark.readStream.format("rate").load().selectExpr("cast(value as int) as k", "timestamp as ts", "'A' as type", "value as v")
    for options in ({}, {"lateness": "1 minute"}, {"lateness": "2 minutes"}, {"lateness": "10 seconds", "apart": "1 hour"}):
        with pytest.raises(InputError, match="partition= needs a lateness= that is less than the watermark that `ts` has, 60000 ms"):
            events.withWatermark("ts", "1 minute").transform(PAIRS.on(partition="v", **options))
    with pytest.raises(SchemaError, match="partition='m' is map<int,int>, which has no hash"):
        events.selectExpr("*", "map(1, 2) AS m").transform(PAIRS.on(lateness="10 seconds", partition="m", columns=["v"]))
    text = PAIRS.on(lateness="10 seconds", partition="v").explain(events.withWatermark("ts", "1 minute"))
    assert "behind its partition (`v`) by 10000 ms" in text
