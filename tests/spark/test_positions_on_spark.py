"""`$index` and windows of events inside a pattern, on Spark: nothing is left out before positions are counted, behind the shuffle."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from test_lag_on_spark import QUERIES as LAGGED
from test_lag_on_spark import SCHEMA, Typed, events, expected, frame_of, shown
from test_stream import BASE

import cepheid
from cepheid.errors import BindError, InputError, LimitError
from cepheid.logical.times import MAX_STEPS
from cepheid.spark import register

NEAR = "SELECT * WHERE A AS x ; B AS y FILTER y.$index - x.$index <= 3 AND x.$index % 2 = 0 PARTITION BY k WITHIN 20 seconds"
WINDOW = "SELECT * WHERE ((A AS x ; B AS y) WITHIN 3 EVENTS) ; C AS z PARTITION BY k WITHIN 30 seconds"
QUERIES = {
    "keys": NEAR,
    "window inside": WINDOW,
    "no keys": "SELECT * WHERE A AS x ; B AS y FILTER y.$index - x.$index = 2 AND y.$index > 100 WITHIN 20 seconds",
    "every type": (
        "SELECT * WHERE A AS x ; B AS y FILTER x.$index + x.v < y.$index - y.v AND y.ts - x.ts < 30s AND NOT x.e > y.e"
        " AND (x.p.city = y.p.city OR x.t <= y.t) PARTITION BY k WITHIN 40 seconds"
    ),
    "strategy": NEAR.replace("*", "NXT *", 1),
    "windows inside and outside": "SELECT MAX * WHERE ((A+ AS x) WITHIN 3 EVENTS) ; B AS y PARTITION BY k WITHIN 8 EVENTS",
    "lag": "SELECT * WHERE A AS x ; B AS y FILTER x.v > lag(x.v) AND y.$index < x.$index + 4 PARTITION BY k WITHIN 30 seconds",
    "absence": (
        "SELECT * WHERE (A AS x ; B AS y FILTER y.$index % 5 > x.$index % 2) NOT FOLLOWED BY ((A ; C) WITHIN 3 EVENTS) FOR 9 seconds"
        " PARTITION BY k WITHIN 40 seconds"
    ),
}


@pytest.fixture
def feed(spark, tmp_path):
    return Typed(spark, tmp_path)


def event(second, *, kind="A", key=1):
    return {"k": key, "ts": None if second is None else BASE + dt.timedelta(seconds=second), "type": kind}


def table_of(*rows):
    return pa.Table.from_pylist(rows, SCHEMA)


def seconds(rows):
    return [moment - BASE.timestamp() for _, (_, moment) in shown(rows)]


# --------------------------------------------------------------------------------------------------------------------------- batch


@pytest.mark.parametrize("name", QUERIES)
def test_a_table_has_the_matches_of_run(spark, tmp_path, name, seed):
    table, arrival = events(seed)
    query = cepheid.query(QUERIES[name])
    found = frame_of(spark, tmp_path, arrival).transform(query.on(until="end"))
    assert shown(row.asDict(recursive=True) for row in found.collect()) == expected(query.text, table, until="end")


def test_queries_with_and_without_positions_share_a_shuffle(spark, tmp_path, seed):
    table, arrival = events(seed)
    plain = "SELECT * WHERE A AS x ; B AS y FILTER x.v > y.v PARTITION BY k WITHIN 9 seconds"
    queries = [NEAR, plain, QUERIES["lag"], QUERIES["every type"]]
    found = frame_of(spark, tmp_path, arrival).transform(cepheid.spark.on([cepheid.query(text) for text in queries]))
    rows = [row.asDict(recursive=True) for row in found.collect()]
    for number, text in enumerate(queries, 1):
        assert shown(row for row in rows if row["query"] == f"q{number}") == expected(text, table)


def test_numbers_past_every_position(spark, tmp_path, seed):
    table, arrival = events(seed)
    queries = [
        f"SELECT * WHERE ((A AS x : B AS y) WITHIN {MAX_STEPS} EVENTS) ; C PARTITION BY k WITHIN 9 seconds",
        f"SELECT * WHERE A AS x : B AS y FILTER x.$index + {10**30} > y.$index AND x.$index - {10**30} < y.$index PARTITION BY k",
        f"SELECT * WHERE A AS x : B AS y FILTER x.$index * {2**63 - 1} = y.$index - 1 OR x.$index = {2**63 - 1} PARTITION BY k",
    ]
    found = frame_of(spark, tmp_path, arrival).transform(cepheid.spark.on([cepheid.query(text) for text in queries]))
    rows = [row.asDict(recursive=True) for row in found.collect()]
    for number, text in enumerate(queries, 1):
        wanted = shown(cepheid.query(text).run(table).to_arrow(events=True).to_pylist())
        assert shown(row for row in rows if row["query"] == f"q{number}") == wanted
        assert wanted or number == 3


@pytest.mark.parametrize(("count", "kind"), [(0, BindError), (-1, BindError), (MAX_STEPS + 1, LimitError), (2**64, LimitError)])
def test_a_window_of_no_events_or_too_many_is_found_before_any_job(spark, tmp_path, count, kind):
    query = cepheid.query("SELECT * WHERE ((A ; B) WITHIN :n EVENTS) ; C", args={"n": count})
    with pytest.raises(kind):
        frame_of(spark, tmp_path, table_of(event(0))).transform(query.on())


def test_null_is_a_key_where_it_is_asked_for(spark, tmp_path, seed):
    table, arrival = events(seed)
    found = frame_of(spark, tmp_path, arrival).transform(cepheid.query(NEAR).on(null_keys="group"))
    assert shown(row.asDict(recursive=True) for row in found.collect()) == expected(NEAR, table, null_keys="group")


def test_events_that_are_left_out_for_their_time_have_no_position(spark, tmp_path):
    rows = [event(0), event(None), event(1, kind="Z"), event(2, key=2), event(3), event(9)]
    found = frame_of(spark, tmp_path, table_of(*rows)).transform(
        cepheid.query("SELECT * WHERE A AS x FILTER x.$index >= 2 PARTITION BY k").on(
            null_time="drop", until=BASE + dt.timedelta(seconds=5)
        )
    )
    assert seconds(row.asDict(recursive=True) for row in found.collect()) == [3]


def test_the_streams_of_from_have_positions_together(spark):
    def stream(*times):
        return pa.table({"ts": pa.array(times, pa.int64()), "n": times})

    streams = {"a": stream(1, 4, 6), "b": stream(2, 4, 7), "c": stream(3, 5)}
    query = cepheid.query("SELECT x.n AS first, y.n AS second FROM b, a WHERE a AS x ; b AS y FILTER y.$index - x.$index = 1")
    wanted = query.run(streams).to_arrow().select(["first", "second"]).to_pylist()
    assert wanted == [{"first": 1, "second": 2}, {"first": 6, "second": 7}]
    merged = cepheid.spark.merge(**{name: spark.createDataFrame(table) for name, table in streams.items()})
    assert merged.transform(query.on()).toArrow().select(["first", "second"]).to_pylist() == wanted


def test_the_plan_says_what_positions_cost(spark, tmp_path, seed):
    frame = frame_of(spark, tmp_path, events(seed)[1])
    plan = cepheid.query(NEAR).on().explain(frame)
    assert "none ($index counts every event)" in plan
    assert "as columns of Spark; positions are counted behind the shuffle" in plan
    assert "none (a window inside the pattern counts every event)" in cepheid.query(WINDOW).on().explain(frame)
    whole = cepheid.query(QUERIES["no keys"]).on().explain(frame)
    assert "one task reads all events: the query has no PARTITION BY, and $index looks at events before a slice" in whole


# -------------------------------------------------------------------------------------------------------------------------- stream


SHARED = {f"lag: {name}": text for name, text in LAGGED.items()} | {
    name: QUERIES[name] for name in ("keys", "no keys", "window inside", "lag", "absence")
}


@pytest.mark.parametrize("keys", [True, False])
def test_a_shared_stream_with_a_restart_has_the_matches_of_run(feed, keys, seed):
    """Queries with lag beside those with positions; what has no keys shares a stream of its own."""
    table, arrival = events(seed)
    texts = {name: text for name, text in SHARED.items() if ("PARTITION" in text) == keys}
    feed.restarted(arrival, cepheid.spark.on(texts, lateness="6 seconds"))
    rows = feed.rows()
    for name, text in texts.items():
        assert shown(row for row in rows if row["query"] == name) == expected(text, table, until="end"), name


def test_a_key_that_was_idle_for_long_counts_on(feed):
    query = cepheid.query("SELECT * WHERE A AS x FILTER x.$index > 1 PARTITION BY k WITHIN 5 seconds")
    for batch in ((0, 10), (1_000, 5_000)):
        feed.put_table(table_of(*map(event, batch)))
    # The micro-batch without data after them leaves the key idle, and so does the restart.
    feed.run(feed.stream().transform(query.on(lateness="6 seconds")))
    feed.put_table(table_of(event(100_000)))
    feed.close()
    feed.run(feed.stream().transform(query.on(lateness="6 seconds")))
    assert seconds(feed.rows()) == [1_000, 5_000, 100_000]


def test_late_events_have_no_position(feed):
    query = cepheid.query("SELECT * WHERE A AS x FILTER x.$index >= 2 PARTITION BY k")
    for batch in ((0, 100), (50, 200)):
        feed.put_table(table_of(*map(event, batch)))
    progress = feed.run(feed.stream().transform(query.on(lateness="6 seconds")))
    assert sum(each.observedMetrics["cepheid"].late for each in progress) == 1
    feed.put_table(table_of(*map(event, (150, 300))))
    feed.close()
    progress = feed.run(feed.stream().transform(query.on(lateness="6 seconds")))
    assert sum(each.observedMetrics["cepheid"].late for each in progress) == 1
    assert seconds(feed.rows()) == [200, 300]


def test_a_stream_that_continues_in_the_middle_has_no_index(feed):
    with pytest.raises(InputError, match=r"since= needs .* this one has \$index, which looks at the events before"):
        feed.stream().transform(cepheid.query(NEAR).on(lateness="6 seconds", since=BASE))


def test_a_stream_that_continues_in_the_middle_has_windows_of_events(feed, seed):
    table, arrival = events(seed)
    since, window = BASE + dt.timedelta(seconds=150), dt.timedelta(seconds=30)
    feed.put_table(arrival.filter(pc.greater_equal(arrival["ts"], pa.scalar(since - window, SCHEMA.field("ts").type))))
    feed.close()
    query = cepheid.query(WINDOW)
    feed.run(feed.stream().transform(query.on(lateness="6 seconds", since=since)))
    whole = query.run(table).to_arrow(events=True).to_pylist()
    later = [row for row in whole if row["end_time"] > since]
    assert 3 < len(later) < len(whole)
    assert shown(feed.rows()) == shown(later)


def test_the_plan_of_a_stream_says_what_stays(feed):
    plan = cepheid.query(NEAR).on(lateness="6 seconds").explain(feed.stream())
    assert "for each key the number of events stays for ever ($index)" in plan


# ----------------------------------------------------------------------------------------------------------------------------- SQL


@pytest.mark.parametrize("name", ["keys", "window inside", "absence"])
def test_a_table_function_has_the_matches_of_run(spark, tmp_path, name, seed):
    table, arrival = events(seed)
    frame_of(spark, tmp_path, arrival).createOrReplaceTempView("placed")
    register(spark, "near", QUERIES[name], schema="placed", until="end")
    found = spark.sql("SELECT * FROM near(TABLE(placed) PARTITION BY k ORDER BY ts)").collect()
    assert shown(row.asDict(recursive=True) for row in found) == expected(QUERIES[name], table, until="end")
