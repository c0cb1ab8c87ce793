"""Rules as data over a DataFrame: the rows of the embedded ones."""

from __future__ import annotations

import datetime as dt
import json
import os
import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_stream import Feed

import cepheid
from cepheid.errors import BindError, InputError, LimitError, SchemaError
from cepheid.spark import on_rules, versions

UTC = dt.UTC
BEGIN = dt.datetime(2026, 3, 1, tzinfo=UTC)
PAIRS = "SELECT * WHERE A AS a ; B AS b FILTER a[v > :least] PARTITION BY k WITHIN 20 seconds"


def at(seconds: float) -> dt.datetime:
    return BEGIN + dt.timedelta(seconds=seconds)


def table(seed: int, count: int = 300) -> pa.Table:
    rng = random.Random(seed)
    return pa.table(
        {
            "type": [rng.choice("ABC") for _ in range(count)],
            "ts": pa.array([at(place) for place in range(count)], pa.timestamp("us", "UTC")),
            "k": [rng.choice(["x", "y", "z", None]) for _ in range(count)],
            "v": [rng.randrange(10) for _ in range(count)],
            "j": [rng.randrange(3) for _ in range(count)],
        }
    )


ROWS: list[dict[str, Any]] = [
    {"name": "pairs", "query": PAIRS, "args": {"least": 3}},
    {"name": "pairs", "query": PAIRS, "args": {"least": 7}, "from": at(100)},
    {"name": "pairs", "from": at(250), "deleted": True, "ends": "stop"},
    *(
        {"name": f"limit {least}", "query": PAIRS, "args": {"least": least}, "from": at(20 * least), "until": at(20 * least + 90)}
        for least in range(10)
    ),
    {"name": "silent", "query": "SELECT * WHERE A AS a NOT FOLLOWED BY B FOR 9 seconds PARTITION BY k", "from": at(50)},
    {"name": "longest", "query": "SELECT MAX max(a.v) AS top, count(a) AS n WHERE A+ AS a ; B PARTITION BY k, j WITHIN 30 seconds"},
    {"name": "counts", "query": "SELECT COUNT(*) WHERE A ; B PARTITION BY k WITHIN 9 seconds", "until": at(200)},
    {"name": "compared", "query": "SELECT NXT * WHERE A AS a ; B AS b FILTER b.v > a.v PARTITION BY k WITHIN 30 seconds", "from": at(3.5)},
    {"name": "no key", "query": "SELECT * WHERE A", "from": at(10)},
    {"name": "wrong", "query": "SELECT * WHERE A AS a FILTER a[w > 1] PARTITION BY k"},
]


def rows_of(found: pa.Table) -> list[str]:
    return sorted(str([each[name] for name in found.column_names]) for each in found.to_pylist())


@pytest.mark.parametrize("until", [None, "end", at(230)])
@pytest.mark.parametrize("null_keys", ["drop", "group"])
def test_a_batch_has_the_rows_of_the_embedded_engine(spark, until, null_keys):
    events = table(1)
    frame = spark.createDataFrame(events).repartition(3)
    found = frame.transform(on_rules(ROWS, keys="k", until=until, null_keys=null_keys)).toArrow()
    refused = found.filter(found["error"].is_valid()).to_pylist()
    own = cepheid.rules([row for row in ROWS if row["name"] != "no key"]).run(events, until=until, null_keys=null_keys)
    assert sorted(each["rule"] for each in refused) == ["no key", "wrong"]
    assert {each["rule"]: each["error"].splitlines()[0] for each in refused}[
        "no key"
    ] == "error: the query is not partitioned by `k`: it has none"
    assert [each.name for each in own.refused] == ["wrong"]
    expected = own.to_arrow(keys=["k"])
    matches = found.filter(found["error"].is_null()).drop_columns(["error"])
    assert matches.num_rows > 100
    assert {*matches["rule"].to_pylist()} >= {"pairs", "silent", "longest", "counts", "compared", "limit 4"}
    assert rows_of(matches) == rows_of(expected)


def test_rules_may_be_a_dataframe(spark):
    events = table(2)
    rows = [
        {"name": "pairs", "query": PAIRS, "args": '{"least": 3}', "from": None},
        {"name": "pairs", "query": PAIRS, "args": '{"least": 7}', "from": at(100)},
    ]
    kinds = pa.schema([("name", pa.string()), ("query", pa.string()), ("args", pa.string()), ("from", pa.timestamp("us", "UTC"))])
    rules = spark.createDataFrame(pa.Table.from_pylist(rows, kinds))
    found = spark.createDataFrame(events).transform(on_rules(rules, keys=["k"])).toArrow()
    assert rows_of(found.drop_columns(["error"])) == rows_of(cepheid.rules(rows).run(events).to_arrow(keys=["k"]))


def test_what_cannot_be(spark):
    frame = spark.createDataFrame(table(3))
    with pytest.raises(InputError, match="takes a DataFrame"):
        on_rules(ROWS)(table(3))
    with pytest.raises(SchemaError, match="`key`"):
        frame.transform(on_rules(ROWS, keys="key"))
    for name in ("rule", "Rule", "ERROR"):
        with pytest.raises(InputError, match=f"two columns `{name}`"):
            frame.withColumnRenamed("k", name).transform(on_rules([], keys=name))
    stream = spark.readStream.format("rate").load().selectExpr("timestamp AS ts", "'A' AS type", "value AS k")
    with pytest.raises(InputError, match="the rules are a stream"):
        frame.transform(on_rules(stream, keys="k"))
    with pytest.raises(InputError, match="no column `name`"):
        stream.transform(on_rules(stream, keys="k", lateness="1s"))
    with pytest.raises(InputError, match=r"`untill`(.|\n)*did you mean `until`"):
        stream.transform(on_rules(stream.selectExpr("'r' AS name", "ts AS untill"), keys="k", lateness="1s"))
    with pytest.raises(InputError, match="two columns `Decided_Time`"):
        stream.withColumnRenamed("k", "Decided_Time").transform(on_rules([], keys="Decided_Time", lateness="1s"))
    with pytest.raises(InputError, match="until="):
        stream.transform(on_rules(ROWS, keys="k", lateness="1s", until="end"))
    for events in (frame, stream):
        nested = events.selectExpr("type", "ts", "named_struct('id', k) AS place")
        with pytest.raises(BindError, match="`place`") as caught:
            nested.transform(on_rules(ROWS, keys="place", lateness="1s" if events.isStreaming else None))
        assert "SELECT" not in str(caught.value), "a query that nobody wrote"
        assert "keys= names the attributes" in str(caught.value)
    refused = on_rules(ROWS, keys="k").refused(frame)
    assert [each.name for each in refused] == ["no key", "wrong"]
    assert frame.transform(on_rules([], keys="k")).count() == 0


EVENTS_DDL = "type string, ts timestamp, k string, v long, j long"
RULES_DDL = "name string, query string, args string, `from` timestamp, until timestamp, deleted boolean, ends string"
KINDS = pa.schema(
    [
        *((name, pa.string()) for name in ("name", "query", "args", "ends")),
        *((name, pa.timestamp("us", "UTC")) for name in ("from", "until")),
        ("deleted", pa.bool_()),
    ]
)
LATENESS = 6


def tabled(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([row | {"args": json.dumps(row.get("args", {}))} for row in rows], KINDS)


class Both(Feed):
    """A folder of events, one of rules, and a checkpoint."""

    def __init__(self, spark, folder):
        super().__init__(spark, folder)
        (folder / "rules").mkdir()
        self.told = 0

    def tell(self, rows):
        """Rules for one more micro-batch."""
        path = self.folder / "rules" / f"{self.told:05}.parquet"
        pq.write_table(tabled(rows), path)
        os.utime(path, (1_700_000_000 + self.told,) * 2)
        self.told += 1

    def stream(self):
        return self.spark.readStream.schema(EVENTS_DDL).option("maxFilesPerTrigger", 1).parquet(str(self.folder / "in"))

    def rules(self):
        return self.spark.readStream.schema(RULES_DDL).option("maxFilesPerTrigger", 1).parquet(str(self.folder / "rules"))

    def over(self):
        """An event that moves the watermark over everything."""
        self.put_table(pa.table({"type": ["Z"], "ts": pa.array([at(100_000)], pa.timestamp("us", "UTC")), "k": ["z"], "v": [0], "j": [0]}))

    def found(self):
        found = self.spark.read.parquet(str(self.folder / "out")).toArrow()
        matches = found.filter(found["error"].is_null()).drop_columns(["error", "decided_time"])
        refused = found.filter(found["error"].is_valid()).select(["rule", "error"]).to_pylist()
        return rows_of(matches), sorted((each["rule"], each["error"].splitlines()[0]) for each in refused)


@pytest.fixture
def both(spark, tmp_path):
    return Both(spark, tmp_path)


def arrivals(seed: int) -> tuple[pa.Table, pa.Table]:
    """Events, and the same in an order of arrival in which none is late."""
    events, rng = table(seed), random.Random(seed)
    order = sorted(range(len(events)), key=lambda place: place + rng.random() * (LATENESS - 1))
    return events, events.take(pa.array(order))


def test_rules_that_come_as_a_stream(both, seed):
    """Disorder, a restart in the middle; rules that come in time, one that is late, two that contradict each other, wrong ones."""
    events, arrival = arrivals(seed)
    late = {"name": "late", "query": PAIRS, "args": {"least": 1}, "from": at(30)}
    twice = [{"name": "twice", "query": PAIRS, "args": {"least": least}, "from": at(160)} for least in (1, 2)]
    told = [[row for row in ROWS if row.get("from", BEGIN) < at(150)], [row for row in ROWS if row.get("from", BEGIN) >= at(150)]]
    told[1] += [late, *twice]
    recognition = lambda: on_rules(both.rules(), keys="k", lateness=f"{LATENESS} seconds", buckets=3)  # noqa: E731
    for half in range(2):
        both.put_table(arrival.slice(150 * half, 75))
        both.tell(told[half])
        both.put_table(arrival.slice(150 * half + 75, 75))
        if half == 1:
            both.over()
        progress = both.run(both.stream().transform(recognition()))
    found, refused = both.found()
    acting = [row for row in ROWS if row["name"] != "no key"]
    expected = rows_of(cepheid.rules(acting).run(events, until=at(50_000)).to_arrow(keys=["k"]))
    assert found == expected
    assert len(found) > 100
    assert [name for name, _ in refused] == ["late", "no key", "twice", "twice", "wrong"]
    assert "it came after its time" in refused[0][1]
    assert "two rows say different things" in refused[2][1]
    assert progress[-1]["observedMetrics"]["cepheid"]["late"] == 0


def test_rules_of_the_driver_over_a_stream(both, seed):
    """A list of rows; after a restart there are more of them, of which one comes too late."""
    events, arrival = arrivals(seed)
    first, late = ROWS[:4], {"name": "late", "query": PAIRS, "args": {"least": 1}, "from": at(30)}
    more = [row for row in ROWS[4:] if row.get("from", BEGIN) >= at(160)]
    both.put_table(arrival.slice(0, 150))
    both.run(both.stream().transform(on_rules(cepheid.rules(first), keys="k", lateness=f"{LATENESS} seconds", buckets=3)))
    both.put_table(arrival.slice(150))
    both.over()
    rules = both.spark.createDataFrame(tabled([late, *more, *first]))
    both.run(both.stream().transform(on_rules(rules, keys="k", lateness=f"{LATENESS} seconds", buckets=3)))
    found, refused = both.found()
    assert found == rows_of(cepheid.rules([*first, *more]).run(events, until=at(50_000)).to_arrow(keys=["k"]))
    assert [name for name, _ in refused] == ["late"]


def rows_at(*rows):
    """Events of a type, a second and a key."""
    kinds, seconds, keys = zip(*rows, strict=True)
    times = pa.array(list(map(at, seconds)), pa.timestamp("us", "UTC"))
    return pa.table({"type": kinds, "ts": times, "k": keys, "v": [9] * len(rows), "j": [0] * len(rows)})


def test_a_second_watermark_holds_all_buckets_back(both):
    """Spark's watermark is the least of both: a bucket whose events are ahead of it takes what all others take."""
    keys = "abcdef"
    events = [
        rows_at(("A", 10, "a"), ("C", 100, "a")),
        rows_at(*(("A", 96, key) for key in keys)),
        rows_at(*(("B", 98, key) for key in keys)),
    ]
    rules = [{"name": name, "query": PAIRS, "args": {"least": 3}, "from": at(since)} for name, since in (("first", 0), ("new", 50))]
    both.tell(rules[:1])
    both.put_table(events[0])
    both.tell(rules[1:])
    for table in events[1:]:
        both.put_table(table)
    both.over()
    both.tell([{"name": "last", "query": PAIRS, "args": {"least": 3}, "from": at(200_000)}])
    both.tell([{"name": "last", "query": PAIRS, "args": {"least": 3}, "from": at(200_001)}])
    both.over()
    recognition = on_rules(both.rules().withWatermark("from", "1 hour"), keys="k", lateness=f"{LATENESS} seconds", buckets=4)
    progress = both.run(both.stream().transform(recognition))
    assert progress[2]["eventTime"]["watermark"] == "2026-02-28T23:00:50.000Z", "the watermark of the rules is not the least"
    found, refused = both.found()
    assert not refused
    assert found == rows_of(cepheid.rules(rules).run(pa.concat_tables(events), sort=True, until=at(50_000)).to_arrow(keys=["k"]))
    assert sum("'new'" in row for row in found) == len(keys)


def test_rules_of_a_micro_batch_that_failed_can_be_replaced(both):
    """It ends without them; those of now come in the next one, and are late or not as any others."""
    good, bad = ({"name": name, "query": PAIRS, "args": {"least": 3}} for name in ("good", "bad"))
    recognition = lambda *rows, **options: on_rules(list(rows), lateness="1 second", **options)  # noqa: E731
    both.put_table(rows_at(("A", 0, "a"), ("B", 1, "a")))
    both.run(both.stream().transform(recognition(good)))
    table = rows_at(("A", 100, "a"), ("B", 101, "a"), ("Z", 102, "a"))
    both.put_table(table.set_column(1, "ts", pa.array([at(100), at(101), None], pa.timestamp("us", "UTC"))))
    with pytest.raises(InputError, match="null_time"):
        both.run(both.stream().transform(recognition(good, bad | {"from": at(90)})))
    both.put_table(rows_at(("A", 200, "a"), ("B", 201, "a")))
    both.over()
    later, late = good | {"name": "later", "from": at(150)}, good | {"name": "late", "from": at(50)}
    both.run(both.stream().transform(recognition(good, later, late, null_time="drop")))
    found, refused = both.found()
    assert [name for name, _ in refused] == ["late"]
    assert sorted(row.split("'")[1] for row in found) == ["good", "good", "good", "later"]


def test_a_limit_names_the_rule(both):
    every = {"name": "every", "query": "SELECT * WHERE ANY AS a ; ANY AS b ; ANY AS c"}
    both.put_table(rows_at(*(("A", second, "a") for second in range(60))))
    with pytest.raises(LimitError, match="in the query `every`"):
        both.run(both.stream().transform(on_rules([every, {"name": "good", "query": PAIRS}], lateness="0 seconds", max_bytes=200_000)))


@pytest.mark.connect
def test_rules_through_connect(connect, tmp_path):
    """Over a batch; and over a stream those of the driver, and those that are a stream."""
    rules = [row for row in ROWS if row["name"] not in {"no key", "wrong"}]
    events = table(5)
    expected = rows_of(cepheid.rules(rules).run(events, until=at(50_000)).to_arrow(keys=["k"]))
    found = connect.createDataFrame(events).transform(on_rules(rules, keys="k", until=at(50_000))).toArrow()
    assert rows_of(found.drop_columns(["error"])) == expected
    if versions.arrow_udf is None:  # Spark Connect 4.0 has no stateful operator for Python
        return
    for name in ("driver", "stream"):
        (tmp_path / name).mkdir()
        both = Both(connect, tmp_path / name)
        both.put_table(events)
        both.over()
        both.tell(rules)
        given = rules if name == "driver" else both.rules()
        both.run(both.stream().transform(on_rules(given, keys="k", lateness=f"{LATENESS} seconds", buckets=2)))
        assert both.found() == (expected, [])
