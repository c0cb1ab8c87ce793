"""`lag(x.a, n)` on Spark: what its letters are made of travels, and the tasks and buckets that read a key know the events before."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal

import pyarrow as pa
import pytest
from test_stream import BASE, Feed

import cepheid
from cepheid.errors import InputError, SnapshotError
from cepheid.spark import register

SCHEMA = pa.schema(
    [
        ("k", pa.int32()),
        ("ts", pa.timestamp("us", "UTC")),
        ("type", pa.string()),
        ("v", pa.int64()),
        ("d", pa.float64()),
        ("e", pa.decimal128(10, 2)),
        ("t", pa.string()),
        ("p", pa.struct([("city", pa.string())])),
    ]
)
DDL = "k int, ts timestamp, type string, v long, d double, e decimal(10,2), t string, p struct<city: string>"

RISING = (
    "SELECT * WHERE A AS x ; B AS y FILTER x.v >= lag(x.v, 2) AND (y.v < lag(y.v) OR lag(y.t) IS NULL) PARTITION BY k WITHIN 20 seconds"
)
QUERIES = {
    "keys": RISING,
    "every type": (
        "SELECT * WHERE A AS x FILTER NOT x.d = lag(x.d) AND x.e >= lag(x.e, 3) AND (lag(x.t) LIKE 'a%' OR lag(x.p.city) = x.p.city)"
        " AND x.ts - lag(x.ts) < 20s AND lag(x.type) IN ('A', 'B') PARTITION BY k"
    ),
    "no keys": "SELECT * WHERE A AS x ; B AS y FILTER x.v > lag(x.v) AND lag(y.k) = y.k WITHIN 20 seconds",
    "strategy": f"{RISING.replace('*', 'NXT *', 1)}",
    "events": "SELECT LAST * WHERE A AS x ; B AS y FILTER x.v > lag(x.v) PARTITION BY k WITHIN 5 EVENTS",
    "guards": "SELECT * WHERE A AS x ; B AS y FILTER y.v >= lag(x.v) AND y.t = lag(x.t) PARTITION BY k WITHIN 30 seconds",
    "absence": (
        "SELECT * WHERE A AS x FILTER x.v > lag(x.v) NOT FOLLOWED BY (B AS y FILTER y.v < lag(y.v)) FOR 5 seconds PARTITION BY k WITHIN 1 minute"
    ),
}


def events(seed, count=300):
    """Events in their order, and an order of arrival in which none is late."""
    chance = random.Random(seed)
    rows = [
        {
            "k": chance.choice((None, 0, 1, 2, 3)),
            "ts": BASE + dt.timedelta(seconds=second),
            "type": chance.choice("AABC"),
            "v": chance.choice((None, *range(5))),
            "d": chance.choice((None, 0.0, -0.0, float("nan"), 1.5)),
            "e": chance.choice((Decimal("-1.50"), Decimal("2.25"), Decimal(0))),
            "t": chance.choice((None, "a", "ab", "aé", "b")),
            "p": chance.choice((None, {"city": "X"}, {"city": "X"}, {"city": None})),
        }
        for second in range(count)
    ]
    arrival = sorted(range(count), key=lambda row: row + chance.random() * 5)
    table = pa.Table.from_pylist(rows, SCHEMA)
    return table, table.take(pa.array(arrival))


def shown(rows):
    return sorted(
        (
            -1 if row.get("k") is None else row["k"],
            *((name, *(event["ts"].timestamp() for event in row[name])) for name in ("x", "y") if row.get(name)),
        )
        for row in rows
    )


def expected(text, table, **options):
    found = shown(cepheid.query(text).run(table, **options).to_arrow(events=True).to_pylist())
    assert len(found) > 3
    return found


class Typed(Feed):
    """A feed of events of SCHEMA."""

    def close(self):
        self.put_table(pa.Table.from_pylist([{"ts": BASE + dt.timedelta(seconds=1_000_000), "type": "Z"}], SCHEMA))

    def stream(self):
        return self.spark.readStream.schema(DDL).option("maxFilesPerTrigger", 1).parquet(str(self.folder / "in"))


@pytest.fixture
def feed(spark, tmp_path):
    return Typed(spark, tmp_path)


def frame_of(spark, folder, table):
    feed = Typed(spark, folder)
    feed.put_table(table)
    return spark.read.schema(DDL).parquet(str(folder / "in"))


# --------------------------------------------------------------------------------------------------------------------------- batch


@pytest.mark.parametrize("name", QUERIES)
def test_a_table_has_the_matches_of_run(spark, tmp_path, name, seed):
    table, arrival = events(seed)
    query = cepheid.query(QUERIES[name])
    found = frame_of(spark, tmp_path, arrival).transform(query.on(until="end"))
    assert shown(row.asDict(recursive=True) for row in found.collect()) == expected(query.text, table, until="end")


def test_queries_with_and_without_lag_share_a_shuffle(spark, tmp_path, seed):
    table, arrival = events(seed)
    queries = [RISING, "SELECT * WHERE A AS x ; B AS y FILTER x.v > y.v PARTITION BY k WITHIN 9 seconds", QUERIES["guards"]]
    found = frame_of(spark, tmp_path, arrival).transform(cepheid.spark.on([cepheid.query(text) for text in queries]))
    rows = [row.asDict(recursive=True) for row in found.collect()]
    for number, text in enumerate(queries, 1):
        assert shown(row for row in rows if row["query"] == f"q{number}") == expected(text, table)


def test_null_is_a_key_where_it_is_asked_for(spark, tmp_path, seed):
    table, arrival = events(seed)
    found = frame_of(spark, tmp_path, arrival).transform(cepheid.query(RISING).on(null_keys="group"))
    assert shown(row.asDict(recursive=True) for row in found.collect()) == expected(RISING, table, null_keys="group")


def test_the_plan_says_what_lag_costs(spark, tmp_path, seed):
    frame = frame_of(spark, tmp_path, events(seed)[1])
    plan = cepheid.query(RISING).on().explain(frame)
    assert "none (lag looks at every event)" in plan
    assert "behind the shuffle: lag looks at the events before" in plan
    assert "and of each partition the last 2 events, for ever (lag)" in plan
    whole = cepheid.query(QUERIES["no keys"]).on().explain(frame)
    assert "one task reads all events: the query has no PARTITION BY, and lag looks at events before a slice" in whole


# -------------------------------------------------------------------------------------------------------------------------- stream


# Random events with a restart: test_positions_on_spark, where queries with lag and with positions share a stream.


def test_a_key_that_was_idle_for_long_has_events_before(feed):
    query = cepheid.query("SELECT * WHERE A AS x FILTER x.v > lag(x.v) PARTITION BY k WITHIN 5 seconds")

    def event(second, value):
        return {"k": 1, "ts": BASE + dt.timedelta(seconds=second), "type": "A", "v": value}

    for seconds in ((0, 10), (1_000, 5_000)):
        feed.put_table(pa.Table.from_pylist([event(second, second) for second in seconds], SCHEMA))
    # The micro-batch without data after them leaves the key idle, and so does the restart.
    feed.run(feed.stream().transform(query.on(lateness="6 seconds")))
    feed.put_table(pa.Table.from_pylist([event(100_000, 100_000)], SCHEMA))
    feed.close()
    feed.run(feed.stream().transform(query.on(lateness="6 seconds")))
    assert [moment - BASE.timestamp() for _, (_, moment) in shown(feed.rows())] == [10, 1_000, 5_000, 100_000]


def test_a_stream_that_continues_in_the_middle_is_refused(feed):
    with pytest.raises(InputError, match=r"since= needs .* this one has lag, which looks at the events before"):
        feed.stream().transform(cepheid.query(RISING).on(lateness="6 seconds", since=BASE))


def test_a_checkpoint_of_another_lag_is_refused(feed, seed):
    feed.put_table(events(seed)[1])
    feed.run(feed.stream().transform(cepheid.query(RISING).on(lateness="6 seconds")))
    feed.put_table(events(seed)[1])
    with pytest.raises(SnapshotError, match="the checkpoint was made by another query"):
        feed.run(feed.stream().transform(cepheid.query(RISING.replace("lag(x.v, 2)", "lag(x.v, 3)")).on(lateness="6 seconds")))


# ----------------------------------------------------------------------------------------------------------------------------- SQL


@pytest.mark.parametrize("name", ["keys", "absence"])
def test_a_table_function_has_the_matches_of_run(spark, tmp_path, name, seed):
    table, arrival = events(seed)
    frame_of(spark, tmp_path, arrival).createOrReplaceTempView("lagged")
    register(spark, "rising", QUERIES[name], schema="lagged", until="end")
    found = spark.sql("SELECT * FROM rising(TABLE(lagged) PARTITION BY k ORDER BY ts)").collect()
    assert shown(row.asDict(recursive=True) for row in found) == expected(QUERIES[name], table, until="end")
