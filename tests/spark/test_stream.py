"""Queries over Spark streams: the same matches as over the table, whatever the order of arrival, the cuts and the restarts."""

from __future__ import annotations

import dataclasses
import datetime as dt
import os
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import cepheid
from cepheid.errors import CepheidError, InputError, LimitError, SchemaError, SetupError, SnapshotError
from cepheid.spark import merge, on, split, translated
from cepheid.spark.stream import PROVIDER
from cepheid.testing import generators
from cepheid.testing.differential import fits, matches_up_to
from cepheid.testing.generators import ABSENT, random_query, random_stream

SCHEMA = pa.schema([("k", pa.int32()), ("ts", pa.timestamp("us", "UTC")), ("type", pa.string()), ("v", pa.int64())])
DDL = "k int, ts timestamp, type string, v long"
BASE = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
PAIRS = cepheid.query("SELECT * WHERE A AS x ; B AS y PARTITION BY k WITHIN 10 seconds")

KEYED = "PARTITION BY k"

RUN = "EVENT Run(n) AS (SELECT count(a) AS n WHERE A : A AS a : A PARTITION BY k WITHIN 15 seconds)"


def table_of(rows):
    """Events from (key, second, type, number)."""
    keys, seconds, types, numbers = zip(*rows, strict=True) if rows else ((), (), (), ())
    times = [None if second is None else BASE + dt.timedelta(seconds=second) for second in seconds]
    return pa.table([keys, times, types, numbers], schema=SCHEMA)


class Feed:
    """A folder of files, one per micro-batch, and a checkpoint."""

    def __init__(self, spark, folder):
        self.spark, self.folder, self.count = spark, folder, 0
        (folder / "in").mkdir()

    def put(self, rows):
        """One more micro-batch."""
        self.put_table(table_of(rows))

    def put_table(self, table):
        """One more micro-batch, as a table."""
        path = self.folder / "in" / f"{self.count:05}.parquet"
        pq.write_table(table, path)
        os.utime(path, (1_700_000_000 + self.count,) * 2)
        self.count += 1

    def close(self):
        """An event that moves the watermark over everything: Spark decides it in a micro-batch without data after it."""
        self.put([(None, 1_000_000, "Z", -1)])

    def stream(self):
        return self.spark.readStream.schema(DDL).option("maxFilesPerTrigger", 1).parquet(str(self.folder / "in"))

    def run(self, frame, name="out"):
        """Read what is there, from the checkpoint on; the progress of the micro-batches."""
        writer = frame.writeStream.format("parquet").option("path", str(self.folder / name))
        query = writer.option("checkpointLocation", str(self.folder / f"checkpoint-{name}")).trigger(availableNow=True).start()
        with translated():
            query.awaitTermination()
        return query.recentProgress

    def restarted(self, arrival, recognition, name="out"):
        """Read half of a table, stop, and go on from the checkpoint with the rest and the end; the progress of the second run."""
        half = len(arrival) // 2
        self.put_table(arrival.slice(0, half))
        self.run(self.stream().transform(recognition), name)
        self.put_table(arrival.slice(half))
        self.close()
        return self.run(self.stream().transform(recognition), name)

    def rows(self, name="out", *, schema=None):
        reader = self.spark.read if schema is None else self.spark.read.schema(schema)
        return [row.asDict(recursive=True) for row in reader.parquet(str(self.folder / name)).collect()]


@pytest.fixture
def feed(spark, tmp_path):
    return Feed(spark, tmp_path)


def disordered(seed, *, keys=5, count=300, lateness=5):
    """Events in their order, and in an order of arrival in which none is late."""
    chance = random.Random(seed)
    events = [(chance.randrange(keys), second, chance.choice("ABC"), second) for second in range(count)]
    return events, sorted(events, key=lambda event: event[1] + chance.random() * lateness)


def shown(rows):
    return sorted((row["k"], *(tuple(event["v"] for event in row[name]) for name in ("x", "y"))) for row in rows)


def test_the_matches_of_the_table(feed, seed):
    """Disorder, cuts, restarts; below it two more stateful operators, which need the watermark."""
    events, arrival = disordered(seed)
    expected = PAIRS.run(table_of(events)).to_arrow(events=True).to_pylist()

    def matches():
        found = feed.stream().transform(PAIRS.on(lateness="6 seconds"))
        assert found.columns == ["k", "start_time", "end_time", "decided_time", "x", "y"]
        return found.dropDuplicatesWithinWatermark(["k", "start_time", "end_time"])

    # Three micro-batches with events, the first or the first two before the restart.
    before = random.Random(seed).choice([1, 2])
    for number in range(3):
        feed.put(arrival[100 * number : 100 * (number + 1)])
        if number + 1 == before:
            feed.run(matches())
    feed.close()
    progress = feed.run(matches())
    rows = feed.rows()
    assert shown(rows) == shown(expected)
    assert all(row["decided_time"] == row["end_time"] for row in rows)
    assert progress[-1]["stateOperators"][0]["numRowsTotal"] <= 1, "keys that are idle hold no state"


def test_a_condition_that_is_a_test_of_the_type(feed, seed):
    """Two predicates of a letter are then one and the same expression."""
    events, arrival = disordered(seed, count=100)
    query = cepheid.query("SELECT * WHERE A AS x ; B AS y FILTER x.type = 'A' PARTITION BY k WITHIN 10 seconds")
    feed.put(arrival)
    feed.close()
    feed.run(feed.stream().transform(query.on(lateness="6 seconds")))
    assert shown(feed.rows()) == shown(query.run(table_of(events)).to_arrow(events=True).to_pylist()) != []


def test_equalities_within_partitions(feed, seed):
    """The state of a bucket has the keys of both; a NULL in what an equality compares is no NULL key."""
    events, arrival = disordered(seed, keys=2, count=200)
    events, arrival = (
        [(k, second, kind, number % 3 if number % 5 else None) for k, second, kind, number in rows] for rows in (events, arrival)
    )
    query = cepheid.query("SELECT * WHERE A AS x ; B AS y FILTER x.v = y.v PARTITION BY k WITHIN 10 seconds")
    feed.restarted(table_of(arrival), query.on(lateness="6 seconds"))
    expected = query.run(table_of(events)).to_arrow(events=True).to_pylist()

    def shown(rows):
        times = ("start_time", "end_time")
        return sorted((row["k"], *(row[name].replace(tzinfo=None) for name in times), row["x"][0]["v"]) for row in rows)

    assert shown(feed.rows()) == shown(expected)
    assert len(expected) > 10


def test_window_counts_below(feed, seed):
    """`decided_time` is an event time with a watermark: windows over it close."""
    events, arrival = disordered(seed, count=100)
    feed.put(arrival)
    feed.close()
    frame = feed.stream().transform(PAIRS.on(lateness="6 seconds"))
    counts = frame.groupBy(F.window("decided_time", "20 seconds")).count().select("window.start", "count")
    feed.run(counts)
    expected = {}
    for row in PAIRS.run(table_of(events)).to_arrow(events=True).to_pylist():
        start = int((row["end_time"] - BASE).total_seconds()) // 20 * 20
        expected[start] = expected.get(start, 0) + 1
    found = {int((row["start"].replace(tzinfo=dt.UTC) - BASE).total_seconds()): row["count"] for row in feed.rows()}
    assert found == expected


def test_late_events_are_counted_and_given_back(feed):
    feed.put([(1, 100, "A", 1), (1, 101, "B", 2), (None, 200, "Z", 0)])
    feed.put([(1, 150, "A", 3), (1, 199, "A", 4), (1, 206, "B", 5)])
    feed.close()
    given = {"matches": [], "late": []}

    def collect(batch, _number):
        batch.persist()
        for name, frame in zip(given, split(batch), strict=True):
            given[name] += [row.asDict(recursive=True) for row in frame.collect()]
        batch.unpersist()

    frame = feed.stream().transform(PAIRS.on(lateness="6 seconds", late=True))
    writer = frame.writeStream.foreachBatch(collect).option("checkpointLocation", str(feed.folder / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    assert shown(given["matches"]) == [(1, (1,), (2,)), (1, (4,), (5,))]
    assert [row["v"] for row in given["late"]] == [3]
    late = [progress["observedMetrics"]["cepheid"]["late"] for progress in query.recentProgress if "cepheid" in progress["observedMetrics"]]
    assert sum(filter(None, late)) == 1


def test_several_queries_share_one_stream(feed, seed):
    queries = {
        "pairs": PAIRS,
        "count": cepheid.query("SELECT count(x) AS n WHERE A+ AS x ; C PARTITION BY k WITHIN 5 seconds"),
        "next": cepheid.query("SELECT NXT * WHERE B AS y ; C AS z PARTITION BY k WITHIN 20 seconds"),
        "made": cepheid.query(f"{RUN} SELECT r.n AS runs, end_time() WHERE Run AS r ; C PARTITION BY k WITHIN 12 seconds"),
        "made and shown": cepheid.query(f"{RUN} SELECT * WHERE B AS b ; Run AS run PARTITION BY k WITHIN 20 seconds"),
    }
    events, arrival = disordered(seed, count=120)
    feed.put(arrival)
    feed.close()
    progress = feed.run(feed.stream().transform(on(queries, lateness="6 seconds")))
    assert progress[0]["observedMetrics"]["cepheid"]["matches"] > 0, "what a micro-batch makes known comes out of it"
    rows = feed.rows()
    batch = feed.spark.createDataFrame(table_of(events)).transform(on(queries)).collect()
    for name, query in queries.items():
        expected = query.run(table_of(events)).to_arrow(events=True).to_pylist()
        for found in (rows, [row.asDict(recursive=True) for row in batch]):
            mine = [row for row in found if row["query"] == name]
            assert sorted(map(own_values, mine)) == sorted(map(own_values, expected)), name


def test_matches_as_events_on_a_stream(feed, seed):
    """Definitions in two layers, one of which waits for what must not follow: decided when it is known, and forgotten when it is over."""
    lonely = "EVENT Lonely(v) AS (SELECT a.v AS v WHERE A AS a NOT FOLLOWED BY C FOR 3 seconds PARTITION BY k)"
    pair = "EVENT Pair(v, w) AS (SELECT x.v AS v, y.v AS w WHERE Lonely AS x ; Lonely AS y PARTITION BY k WITHIN 20 seconds)"
    query = cepheid.query(f"{lonely} {pair} SELECT p.v AS v, p.w AS w, b.v AS b WHERE Pair AS p ; B AS b PARTITION BY k WITHIN 40 seconds")
    events, arrival = disordered(seed, count=160)
    expected = query.run(table_of(events), until="end").to_arrow().to_pylist()
    feed.put(arrival[:80])
    feed.run(feed.stream().transform(query.on(lateness="6 seconds")))
    feed.put(arrival[80:])
    feed.close()
    progress = feed.run(feed.stream().transform(query.on(lateness="6 seconds", late=True)))
    rows = feed.rows()
    assert len(rows) == len(expected) > 0
    assert sorted((row["v"], row["w"], row["b"]) for row in rows) == sorted((row["v"], row["w"], row["b"]) for row in expected)
    assert all(row["decided_time"] - row["end_time"] == dt.timedelta(seconds=3) for row in rows)
    assert progress[-1]["stateOperators"][0]["numRowsTotal"] <= 1, "keys that are idle hold no state"


def own_values(row):
    """A row without the columns that are not its query's own."""
    values = {name: [event["v"] for event in value] if isinstance(value, list) else value for name, value in row.items()}
    left = {name: value for name, value in values.items() if value is not None and name not in {"query", "decided_time"}}
    return repr(sorted((name, value.replace(tzinfo=None) if isinstance(value, dt.datetime) else value) for name, value in left.items()))


def test_what_has_to_be_there_before_it_starts(feed):
    stream = feed.stream()
    with pytest.raises(InputError, match="how late an event may come"):
        stream.transform(PAIRS.on())
    with pytest.raises(InputError, match=r"differs from the watermark that .* has: 5000 ms"):
        stream.withWatermark("ts", "5 seconds").transform(PAIRS.on(lateness="6 seconds"))
    stream.withWatermark("ts", "5 seconds").transform(PAIRS.on(lateness="5 seconds"))
    seconds, plain = "F.timestamp_seconds('ts') if it counts seconds", "F.col('ts').cast('timestamp')"
    for kind, cast in (("timestamp_ntz", plain), ("date", plain), ("bigint", seconds)):
        with pytest.raises(SchemaError, match=f"event time is a timestamp, and `ts` is {kind}") as caught:
            stream.withColumn("ts", F.col("ts").cast(kind)).transform(cepheid.query("SELECT * WHERE A ; B").on(lateness="5 seconds"))
        assert f"with {cast}" in caught.value.help[0]
    with pytest.raises(SchemaError, match="the time column `ts` is string, which cannot be event time") as caught:
        stream.withColumn("ts", F.col("ts").cast("string")).transform(PAIRS.on(lateness="5 seconds"))
    assert "in Spark F.to_timestamp('ts')" in caught.value.help[1]
    with pytest.raises(LimitError, match="longer than Spark's longest interval"):
        stream.transform(PAIRS.on(lateness=dt.timedelta(days=106_751_992)))
    feed.spark.conf.set(PROVIDER, "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider")
    try:
        with pytest.raises(SetupError, match="RocksDB"):
            stream.transform(PAIRS.on(lateness="5 seconds"))
    finally:
        feed.spark.conf.set(PROVIDER, "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")


def test_names_that_a_stream_needs(feed):
    """The columns that say when a match was decided, of which query it is, and what came too late."""
    stream = feed.stream()
    decided = cepheid.query("SELECT * WHERE A AS x ; B AS y PARTITION BY decided_time WITHIN 5 seconds")
    with pytest.raises(CepheidError, match="two columns named `decided_time`"):
        stream.withColumnRenamed("k", "decided_time").transform(decided.on(lateness="5 seconds"))
    late = cepheid.query("SELECT late WHERE A AS late ; B WITHIN 5 seconds")
    stream.transform(late.on(lateness="5 seconds"))
    with pytest.raises(SchemaError, match="two columns named `late`"):
        stream.transform(late.on(lateness="5 seconds", late=True))
    with pytest.raises(SchemaError, match="two columns named `late`"):
        stream.transform(cepheid.query("SELECT LATE WHERE A AS LATE ; B WITHIN 5 seconds").on(lateness="5 seconds", late=True))
    named = cepheid.query("SELECT * WHERE A AS x ; B AS y PARTITION BY query WITHIN 5 seconds")
    with pytest.raises(SchemaError, match="two columns named `query`"):
        stream.withColumnRenamed("k", "query").transform(on([named, named], lateness="5 seconds"))


def test_late_events_have_all_columns_whatever_is_shown(feed):
    feed.put([(None, 200, "Z", 0)])
    feed.put([(1, 150, "A", 3), (1, 201, "A", 4), (1, 206, "B", 5)])
    feed.close()
    counted = cepheid.query("SELECT count(x) AS n WHERE A AS x ; B PARTITION BY k WITHIN 10 seconds")
    feed.run(feed.stream().transform(counted.on(lateness="6 seconds", late=True)))
    rows = [row for row in feed.rows() if row["late"] is not None]
    assert [(row["late"]["k"], row["late"]["type"], row["late"]["v"]) for row in rows] == [(1, "A", 3)]
    assert [(row["k"], row["n"]) for row in feed.rows() if row["late"] is None] == [(1, 1)]


def test_what_may_change_between_restarts(feed):
    """Late events that are asked for from then on (of a type that is nowhere NULL), the lateness, and a column that nothing keeps."""
    measured = cepheid.query("SELECT x.v AS first, y.v AS second WHERE A AS x ; B AS y PARTITION BY k WITHIN 10 seconds")
    plans = {"shown": (PAIRS, {"columns": ["v"]}), "measured": (measured, {})}
    feed.put([(1, 100, "A", 1), (1, 102, "B", 2)])
    for name, (query, options) in plans.items():
        feed.run(feed.stream().transform(query.on(lateness="6 seconds", **options)), name)
    feed.put([(1, 101, "B", 3), (1, 2, "A", 4)])
    feed.close()
    for name, (query, options) in plans.items():
        wider = feed.stream().withColumn("more", F.struct(F.col("v").alias("v"), F.lit(1).alias("one")))
        found = wider.transform(query.on(lateness="5 seconds", late=True, **options))
        feed.run(found, name)
        rows = feed.rows(name, schema=found.schema)
        assert [row["late"]["more"] for row in rows if row["late"]] == [{"v": 4, "one": 1}]
        pairs = [
            (row["x"][0]["v"], row["y"][0]["v"]) if name == "shown" else (row["first"], row["second"]) for row in rows if not row["late"]
        ]
        assert sorted(pairs) == [(1, 2), (1, 3)]
        feed.run(feed.stream().transform(query.on(lateness="6 seconds", **options)), name)


def test_more_matches_than_fit(feed):
    """The stream fails with a name, its worker lives on, and the same checkpoint goes on where more is allowed."""
    subsets = cepheid.query("SELECT * WHERE A AS x+ ; B AS y PARTITION BY k WITHIN 1 minute")
    feed.put([(1, second, "A", second) for second in range(1, 13)] + [(1, 13, "B", 13), (2, 1, "A", 1), (2, 2, "B", 2)])
    feed.close()
    few = {"lateness": "1 second", "columns": ["v"]}
    for _ in range(2):
        with pytest.raises(LimitError, match=r"more than 20,000 bytes \(max_bytes\).* k = 1, which completes 4,095 matches") as caught:
            feed.run(feed.stream().transform(subsets.on(max_bytes=20_000, **few)))
        assert "the stream continues from the same checkpoint" in str(caught.value)
    assert feed.spark.range(10).count() == 10
    feed.run(feed.stream().transform(subsets.on(max_bytes=1 << 26, **few)))
    assert len({tuple(event["v"] for event in row["x"]) for row in feed.rows() if row["k"] == 1}) == 4095
    assert len(feed.rows()) == 4096
    with pytest.raises(InputError, match="max_bytes= is for the matches of a stream's micro-batch"):
        feed.spark.createDataFrame([], DDL).transform(subsets.on(max_bytes=1))
    with pytest.raises(InputError, match=r"max_bytes=2,147,483,648 is more than Spark takes from one bucket"):
        subsets.on(max_bytes=1 << 31)
    with pytest.raises(InputError, match="max_bytes='1 GB' is not a number of bytes"):
        subsets.on(max_bytes="1 GB")


def test_events_without_a_key_move_the_watermark(feed):
    """Also where the key comes from an equality, and such events can be in no match."""
    feed.put([(1, 100, "A", 1), (1, 105, "B", 2)])
    feed.put([(None, 10_000, "A", 0)])
    feed.put([(None, 10_001, "Z", 0)])
    query = cepheid.query("SELECT * WHERE A AS x ; B AS y FILTER x.k = y.k WITHIN 10 seconds")
    for name, stream, options in (
        ("ours", feed.stream(), {"lateness": "6 s"}),
        ("own", feed.stream().withWatermark("ts", "6 seconds"), {}),
    ):
        feed.run(stream.transform(query.on(**options)), name)
        assert [row["x"][0]["v"] for row in feed.rows(name)] == [1]


def test_another_query_on_an_old_checkpoint_fails_before_any_output(feed):
    feed.put([(1, 1, "A", 1), (1, 2, "B", 2)])
    feed.run(feed.stream().transform(PAIRS.on(lateness="6 seconds")))
    # Other keys, so that no bucket with an old state has events.
    feed.put([(key, 30 + second, kind, 3) for key in range(2, 6) for second, kind in enumerate("AB")])
    feed.close()
    other = cepheid.query("SELECT * WHERE A AS x ; B AS y PARTITION BY k WITHIN 11 seconds")
    with pytest.raises(SnapshotError, match="another query"):
        feed.run(feed.stream().transform(other.on(lateness="6 seconds")))
    with pytest.raises(SnapshotError, match="the checkpoint spreads the keys over 8 buckets, and the query now over 5"):
        feed.run(feed.stream().transform(PAIRS.on(lateness="6 seconds", buckets=5)))
    assert feed.rows() == []
    feed.run(feed.stream().transform(PAIRS.on(lateness="6 seconds")))
    assert shown(feed.rows()) == [(1, (1,), (2,)), *((key, (3,), (3,)) for key in range(2, 6))]


def test_events_without_a_time_or_a_key(feed):
    feed.put([(1, 1, "A", 1), (1, None, "B", 2), (None, 2, "B", 3), (1, 3, "B", 4)])
    feed.close()
    with pytest.raises(InputError, match=r"an event of type=B, k=1 has no time: `ts` is NULL"):
        feed.run(feed.stream().transform(PAIRS.on(lateness="6 seconds")), "refused")
    progress = feed.run(feed.stream().transform(PAIRS.on(lateness="6 seconds", null_time="drop")))
    assert shown(feed.rows()) == [(1, (1,), (4,))]
    dropped = [each["observedMetrics"]["cepheid.dropped"] for each in progress if "cepheid.dropped" in each["observedMetrics"]]
    assert sum(row["null_keys"] for row in dropped) == 2  # also the one of another type that closes the feed
    assert sum(row["null_times"] for row in dropped) == 1


def test_the_plan_as_text(feed):
    text = PAIRS.on(lateness="6 seconds").explain(feed.stream())
    assert "buckets of k: their keys in pages of a few (some 300 bytes written for each event), or whole" in text
    assert "\nSeparately for each k, a match is an A" in text
    assert "then the order of arrival: a restart may read events of one key and time in another order" in text
    assert "6000 ms" in text
    assert "O(m) per event" in text


def test_what_explain_says_of_absences_and_several_sources(feed):
    absent = cepheid.query("SELECT * WHERE A AS x NOT FOLLOWED BY B FOR 15 seconds PARTITION BY k")
    text = absent.on(lateness="6 seconds").explain(feed.stream())
    assert "buckets of k: their keys in pages of a few (some 300 bytes written for each event), or whole" in text
    assert "has passed its end (with NOT FOLLOWED BY: the deadline), or an event of the bucket is 6000 ms younger; that time is" in text
    assert "the watermark (greatest time of the micro-batches before - 6000 ms)" in text
    first, second = (feed.stream().withWatermark("ts", delay) for delay in ("5 seconds", "1 minute"))
    text = PAIRS.on().explain(merge(one=first, two=second))
    assert "the watermark (the slowest source's) are counted" in text
    assert "has passed its end; that time is" in text
    with pytest.raises(InputError, match="`two` has no watermark, and other streams to merge have one"):
        merge(one=first, two=feed.stream())
    merge(one=feed.stream(), two=feed.stream())


UNPAID = cepheid.query("SELECT * WHERE A AS x NOT FOLLOWED BY B FOR 5 seconds WITHIN 1 second PARTITION BY k")


def test_absence_over_a_table(spark, seed):
    """What must not follow is decided when the table ends, or at `until`, or when nothing will follow."""
    events, _ = disordered(seed, count=200)
    frame = spark.createDataFrame(table_of(events).take(pa.array(random.Random(seed).sample(range(200), 200))))
    last = BASE + dt.timedelta(seconds=120)
    for until in (None, last, "end"):
        expected = UNPAID.run(table_of(events), until=until).to_arrow(events=True).to_pylist()
        with translated():
            found = frame.transform(UNPAID.on(until=until)).collect()
        assert numbers(found) == numbers(expected)
        assert found


def test_what_the_end_of_a_table_leaves_open(spark, seed):
    """The youngest are listed as undecided, as embedded: those that something may still follow."""
    events, _ = disordered(seed, count=200)
    events[119] = (99, 119, "A", 119)
    frame = spark.createDataFrame(table_of(events))
    last = BASE + dt.timedelta(seconds=120)
    for queries in (UNPAID, [UNPAID, PAIRS]):
        found = frame.transform(on(queries, until=last, undecided=True)).collect()
        whole = UNPAID.run(table_of(events), until=last)
        mine = [row for row in found if row.asDict().get("query", "q1") == "q1"]
        assert numbers([row for row in mine if not row.undecided]) == numbers(whole.to_arrow(events=True).to_pylist())
        assert numbers([row for row in mine if row.undecided]) == numbers(whole.undecided.to_arrow(events=True).to_pylist())
        assert any(row.undecided and row.k == 99 for row in mine)
    assert len(found) > len(mine)


def numbers(rows):
    """The numbers of the events in x, of each match."""
    return sorted(tuple(event["v"] for event in row["x"]) for row in rows)


def test_absence_on_a_stream(feed, seed):
    """A match is given once the watermark has passed the time in which nothing may follow, with that as its event time."""
    events, arrival = disordered(seed, count=120)
    expected = UNPAID.run(table_of(events), until="end").to_arrow(events=True).to_pylist()
    feed.restarted(table_of(arrival), UNPAID.on(lateness="6 seconds"))
    rows = feed.rows()
    assert numbers(rows) == numbers(expected)
    assert all(row["decided_time"] - row["end_time"] == dt.timedelta(seconds=5) for row in rows)


def test_absence_of_many_keys_in_pages(feed, seed, monkeypatch):
    """Pages are read when their time has passed, as a queue of their deadlines says: more of them wait than stand in the state of a bucket."""
    monkeypatch.setattr("cepheid.spark.tasks.unit.FORCED", 1)
    chance = random.Random(seed)
    events = [(number // 2, number // 160, chance.choice("AAB"), number) for number in range(1600)]
    arrival = sorted(events, key=lambda event: event[1] + chance.random() * 4)
    expected = UNPAID.run(table_of(events), until="end").to_arrow(events=True).to_pylist()
    feed.restarted(table_of(arrival), UNPAID.on(lateness="5 seconds", buckets=2, order="v"))
    assert numbers(feed.rows()) == numbers(expected)
    assert len(expected) > 400


def test_a_table_hands_over_to_a_stream(feed, seed):
    """What is decided until T in a table and since T on a stream, fed from T minus the window on, is what one table gives."""
    events, _ = disordered(seed, count=120)
    # On either side of it there is something to find, whatever is drawn.
    events[:2], events[-3:] = [(99, 0, "A", 0), (99, 1, "B", 1)], [(99, 117, "B", 117), (99, 118, "A", 118), (99, 119, "B", 119)]
    events[2:4] = [(98, 2, "A", 2), (98, 3, "C", 3)]
    events[-4] = (98, 116, "A", 116)
    for first in (4, 112):
        events[first : first + 3] = [(97, first + number, kind, first + number) for number, kind in enumerate("ABB")]
    second = random.Random(seed).randrange(30, 90)
    moment = BASE + dt.timedelta(seconds=second)
    # The windows of its two layers and the duration are 10 seconds together.
    quiet = f"EVENT Pair(n) AS (SELECT x.v AS n WHERE A AS x ; B WITHIN 4 seconds {KEYED}) SELECT x WHERE Pair AS p ; B AS x"
    quiet = cepheid.query(f"{quiet} NOT FOLLOWED BY C FOR 1 second WITHIN 5 seconds {KEYED}")
    queries = {"pairs": PAIRS, "absence": UNPAID, "made": quiet}
    table = feed.spark.createDataFrame(table_of(events)).transform(on(queries, until=moment, columns=["v"])).collect()
    feed.put([event for event in events if event[1] >= second - 10])
    feed.close()
    feed.run(feed.stream().transform(on(queries, lateness="6 seconds", since=moment, columns=["v"])))
    rows = feed.rows()
    for name, query in queries.items():
        whole = query.run(table_of(events), until="end").to_arrow(events=True).to_pylist()
        before, after = ([row for row in found if row["query"] == name] for found in (table, rows))
        assert numbers([*before, *after]) == numbers(whole)
        assert before
        assert after


def test_hand_over_where_it_cannot_be(feed):
    for clause, reason in (
        ("PARTITION BY k", "has no time in WITHIN"),
        ("PARTITION BY k WITHIN 9 seconds CONSUME BY PARTITION", "has CONSUME BY"),
    ):
        query = cepheid.query(f"SELECT * WHERE A AS x ; B AS y {clause}")
        made = cepheid.query(f"EVENT P(n) AS (SELECT x.v AS n WHERE A AS x ; B {clause}) SELECT * WHERE P WITHIN 9 seconds {KEYED}")
        with pytest.raises(InputError, match=f"since= needs .* this one has the definition of `P`, which {reason}"):
            feed.stream().transform(made.on(lateness="6 seconds", since=BASE))
        with pytest.raises(InputError, match=f"since= needs .* this one {reason}"):
            feed.stream().transform(query.on(lateness="6 seconds", since=BASE))
    with pytest.raises(InputError, match="until= says where a DataFrame ends"):
        feed.stream().transform(PAIRS.on(lateness="6 seconds", until=BASE))
    with pytest.raises(InputError, match="undecided=True lists"):
        feed.stream().transform(PAIRS.on(lateness="6 seconds", undecided=True))
    with pytest.raises(InputError, match="since= says where a stream continues"):
        feed.spark.createDataFrame(table_of([(1, 1, "A", 1)])).transform(PAIRS.on(since=BASE))


MANY = dataclasses.replace(
    ABSENT, partition=0.0, consume=0.2, unit="s", strategies=("", "ALL", "NXT", "LAST", "MAX", "STRICT"), absence=0.3
)


def random_queries(seed, table, count):
    """Random queries over one table, none with too many matches."""
    chance, found = random.Random(seed), {}
    while len(found) < count:
        query = cepheid.query(random_query(chance, fragment=MANY))
        if not fits(query, table.schema) or query.compiled(query.schema(table)).keys:
            continue
        if matches_up_to(500, query, table, order="row", until="end") is not None:
            found[f"q{len(found)}"] = query
    return found


@pytest.mark.slow
def test_random_queries_share_one_stream(spark, tmp_path, seed):
    """A dozen random queries over one stream in disorder, with restarts: each gives what it gives over the table."""
    source = random.Random(seed)
    table = generators.table(max((random_stream(source, most=40) for _ in range(9)), key=len), timed=True)
    # Spark's first watermark is 1970.
    times = pa.array(table["ts"].cast("int64").to_numpy() + int(BASE.timestamp()) * 1_000_000).cast(table["ts"].type)
    table = table.set_column(1, "ts", times).append_column("row", pa.array(range(len(table)), pa.int64()))
    queries = random_queries(seed, table, 12)
    chance = random.Random(seed)
    times = table["ts"].cast("int64").to_numpy()
    order = sorted(range(len(table)), key=lambda row: (times[row] + chance.uniform(0, 4e6), row))
    feed = Feed(spark, tmp_path)
    for start in range(0, len(order), 15):
        feed.put_table(table.take(pa.array(order[start : start + 15])))
    # What moves the watermark over all of it may match too; the last of it is read and not decided.
    first = table.slice(0, 1).to_pylist()[0] | {"type": "X", "row": -1}
    ends = [first | {"ts": first["ts"] + dt.timedelta(days=day)} for day in (1, 2)]
    whole = pa.concat_tables([table, pa.Table.from_pylist(ends, schema=table.schema)])
    schema = spark.createDataFrame(table).schema

    def matches():
        stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
        return stream.transform(on(queries, lateness="5 seconds", order="row"))

    feed.run(matches())
    for row in range(len(table), len(whole)):
        feed.put_table(whole.slice(row, 1))
    feed.run(matches())
    rows = feed.rows()
    for name, query in queries.items():
        expected = query.run(whole, order="row", until=ends[1]["ts"] - dt.timedelta(seconds=5)).to_arrow(events=True).to_pylist()
        mine = [row for row in rows if row["query"] == name]
        assert sorted(map(by_rows, mine)) == sorted(map(by_rows, expected)), (seed, query.text)
    assert rows


def by_rows(row):
    """A row as a value: the numbers of its events."""
    return repr(sorted((name, [event["row"] for event in value]) for name, value in row.items() if isinstance(value, list)))


def test_times_in_another_zone(feed):
    """The session's time zone is how times are shown, and nothing else."""
    feed.spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        feed.put([(1, 1, "A", 1), (1, 4, "B", 2), (1, 20, "A", 3)])
        feed.close()
        feed.run(feed.stream().transform(PAIRS.on(lateness="6 seconds")))
        table = feed.spark.read.parquet(str(feed.folder / "out"))
        times = table.select(*(F.unix_micros(name).alias(name) for name in ("start_time", "end_time", "decided_time"))).collect()
        seen = table.select(F.unix_micros(F.col("x")[0]["ts"]).alias("x")).collect()
    finally:
        feed.spark.conf.set("spark.sql.session.timeZone", "UTC")
    start = int(BASE.timestamp()) * 1_000_000
    assert [tuple(row) for row in times] == [(start + 1_000_000, start + 4_000_000, start + 4_000_000)]
    assert seen[0].x == start + 1_000_000
