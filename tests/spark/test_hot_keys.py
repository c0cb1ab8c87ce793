"""Slices of the time of a key: the matches of `q.run`, whichever keys are cut, and wherever."""

from __future__ import annotations

import dataclasses
import random

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from enough import Enough
from pyspark.sql import functions as F
from test_slices import FRAGMENTS as UNKEYED
from test_slices import frame_of, joined, random_case, random_cuts
from test_worker import cut, prepared, rows, task_of

import cepheid
from cepheid.spark import hot_keys, slices, translated
from cepheid.spark.batch import Plan
from cepheid.spark.tasks import worker
from cepheid.spark.versions import marks

FRAGMENTS = {name: dataclasses.replace(fragment, partition=1.0) for name, fragment in UNKEYED.items()}


def cut_by_keys(source, whole, compiled):
    """Sorted events, the times of some keys cut anywhere; and how many keys have cuts."""
    names = [f"k{number}" for number in range(len(compiled.keys))]
    parts, several = [], 0
    for key in whole.select(names).group_by(names).aggregate([]).to_pylist():
        own = whole
        for name, value in key.items():
            own = own.filter(pc.equal(own[name], pa.scalar(value, own[name].type)))
        cuts = random_cuts(source, own[worker.TIME].to_pylist(), compiled.window) if source.random() < 0.5 else np.zeros(0, np.int64)
        parts.append(joined(own.combine_chunks(), slices.slice_table(cuts, compiled.window, pa.int64())))
        several += len(cuts) > 0
    if not parts:
        return None, 0
    order = [*names, worker.SLICE, worker.TIME, "row"]
    return pa.concat_tables(parts).sort_by([(name, "ascending") for name in order]).combine_chunks(), several


@pytest.mark.parametrize("name", FRAGMENTS)
def test_random_queries_whose_keys_are_cut_anywhere(name, cases, seed):
    enough = Enough(cases // 6, matched=5, several=5)
    for number in enough:
        source, query, events, compiled, task, expected = random_case(
            seed * 10_000 + number, name, fragments=FRAGMENTS, task_of=task_of, keyed=True
        )
        whole, several = cut_by_keys(source, prepared(compiled, events), compiled)
        schema = expected.to_arrow(events=True).schema
        found = [] if whole is None else list(worker.run_task(task | {"sliced": True}, iter(cut(whole, source))))
        case = (query.text, events.to_pylist())
        assert rows([pa.Table.from_batches(found, schema=schema)]) == rows([expected.to_arrow(events=True)]), case
        enough.seen["matched"] += len(expected) > 0
        enough.seen["several"] += several > 0


# -------------------------------------------------------------------------------------------------------------------- where to cut


def test_quantiles_of_a_histogram():
    times, weights = np.array([0, 10, 20, 30]), np.array([1.0, 1.0, 5.0, 1.0])
    assert hot_keys.quantiles(times, weights, 8).tolist() == [0, 10, 20, 20, 20, 20, 20, 30]
    assert hot_keys.quantiles(times, weights, 3).tolist() == [0, 20, 20]
    assert hot_keys.quantiles(times[:1], weights[:1], 4).tolist() == [0, 0, 0, 0]


def aggregate(counts):
    """What Spark gives of keys with these numbers of events, at the times 0, 1, ..: the last row is about all."""
    made = [(key, 0, count) for key, count in counts.items()] + [(None, 1, sum(counts.values()))]
    kind = pa.list_(pa.struct({"x": pa.int64(), "y": pa.float64()}))
    histograms = pa.array([[{"x": time, "y": 1.0} for time in range(count)] for *_, count in made], kind)
    keys, levels, sizes = (list(side) for side in zip(*made, strict=True))
    named = {"k0": keys, hot_keys.LEVEL: levels, hot_keys.COUNT: sizes, hot_keys.HISTOGRAM: histograms}
    return pa.table(named).to_batches()


def cut_of(counts, *, window=1, tasks=4, least=1):
    found = list(hot_keys.cut(["k0"], window, tasks, least, iter(aggregate(counts))))
    return pa.Table.from_batches(found).to_pylist() if found else []


def test_slices_follow_the_share_of_a_key():
    cold = {f"u{number}": 10 for number in range(60)}
    made = cut_of({"hot": 900, "warm": 300, **cold})
    per_key = {key: sum(row["k0"] == key for row in made) for key in ("hot", "warm", *cold)}
    # 16 slices for all events: 8 for a half; a sixth of the events is 0.67 of a task's.
    assert per_key == {"hot": 8, "warm": 3, **dict.fromkeys(cold, 0)}
    assert [row["$slice"] for row in made] == [*range(8), *range(3)]
    starts = [row["$start"] for row in made if row["k0"] == "hot"]
    assert np.diff(starts[1:]).min() > 90
    # In turn to the tasks, by what Spark's hash makes of it.
    assert [row["$mark"] for row in made] == [marks(4)[number % 4] for number in range(11)]


def test_what_is_not_cut():
    assert cut_of({f"u{number}": 10 for number in range(100)}) == []
    assert cut_of({"a": 100, "b": 100}, window=99) == []  # each slice would read all
    assert cut_of({"a": 100, "b": 100}, least=99) == []
    assert list(hot_keys.cut(["k0"], 1, 4, 1, iter(()))) == []
    assert cut_of({None: 100, "b": 1})[0]["k0"] is None  # NULL is a key where null_keys="group"


# ------------------------------------------------------------------------------------------------------------------------ in Spark


@pytest.fixture
def small(monkeypatch):
    """Slices of 40 events, cut by all of them."""
    monkeypatch.setattr(slices, "LEAST_EVENTS", 40)
    monkeypatch.setattr(slices, "SAMPLED", 1.0)


KEYS = {
    "string": (pa.string(), ["hot", *(f"u{number}" for number in range(40))]),
    "double": (pa.float64(), [-0.0, *(number + 0.5 for number in range(40))]),
    "timestamp": (pa.timestamp("us", "UTC"), [7, *range(1000, 1040)]),
    "decimal": (pa.decimal128(20, 2), [*range(41)]),
}


def events_of(kind, values, *, count=4000, seed=3):
    """Half of the events have the first key."""
    source = random.Random(seed)
    keys = [values[0] if source.random() < 0.5 else source.choice(values[1:]) for _ in range(count)]
    return pa.table(
        {
            "ts": pa.array(sorted(source.sample(range(4 * count), count)), pa.int64()),
            "type": pa.array([source.choice("ABCD") for _ in range(count)], pa.string()),
            "user": pa.array(keys, pa.int64()).cast(kind) if pa.types.is_timestamp(kind) else pa.array(keys, kind),
            "site": pa.array([source.choice([1, 1, 1, 2, None]) for _ in range(count)], pa.int32()),
            "v": pa.array([source.choice([0.5, 1.0, 2.5]) for _ in range(count)], pa.float64()),
        }
    )


QUERY = "SELECT * WHERE A AS x ; B+ AS y ; C AS z FILTER x[v = 2.5] PARTITION BY user WITHIN 60"


def slices_of(query, frame, **options):
    """Of each key how many slices it has, and in how many tasks it is; and how often an event is read again."""
    plan = Plan.of(query, query.on(hot_keys=True, **options).options, frame)
    prepared, _ = plan.prepared()
    found = plan.distributed(prepared).withColumn("task", F.spark_partition_id())
    each = found.groupBy("k0").agg(F.count_distinct("`$slice`").alias("slices"), F.count_distinct("task").alias("tasks")).collect()
    again = found.agg(F.count_if(~F.col("`$own`")), F.count("*")).first()
    return {row.k0: (row.slices, row.tasks) for row in each}, again[0] / max(again[1], 1)


@pytest.mark.parametrize("name", KEYS)
def test_keys_of_all_types(spark, small, name):
    kind, values = KEYS[name]
    events = events_of(kind, values)
    query = cepheid.query(QUERY)
    frame = frame_of(spark, events).repartition(3, F.rand(1))
    found = frame.transform(query.on(hot_keys=True, buckets=4)).toArrow()
    expected = query.run(events).to_arrow(events=True)
    assert rows([found]) == rows([expected.cast(found.schema) if kind == pa.decimal128(20, 2) else expected])
    assert found.column_names == expected.column_names
    assert len(expected) > 100
    per_key, again = slices_of(query, frame, buckets=4)
    hot = max(per_key, key=lambda key: per_key[key][0])
    assert per_key.pop(hot) == (8, 4)
    assert set(per_key.values()) == {(1, 1)}
    assert len(per_key) == 40
    assert 0 < again < 0.2


def test_several_keys_null_keys_ties_and_strategies(spark, small):
    events = events_of(pa.string(), ["hot", *"abcdefgh"]).append_column("row", pa.array(range(4000), pa.int64()))
    equal_times = events.set_column(0, "ts", pa.array([time // 8 for time in events["ts"].to_pylist()], pa.int64()))
    frame = frame_of(spark, equal_times).repartition(3, F.rand(1))
    for text, null_keys, order in (
        (QUERY.replace("user", "user, site").replace("60", "20"), "group", "row"),
        (QUERY.replace("user", "site").replace("60", "6"), "drop", "row"),
        ("SELECT MAX * WHERE A AS x ; B+ AS y ; C AS z PARTITION BY user WITHIN 9", "drop", "row"),
        ("SELECT COUNT(*) WHERE A ; B+ ; C PARTITION BY user WITHIN 9", "drop", "row"),
        ("SELECT x.v AS v, count(y) AS n WHERE A AS x ; B+ AS y ; C AS z PARTITION BY user WITHIN 5 HAVING count(y) > 1", "drop", "any"),
        ("SELECT * WHERE A AS x ; B AS y FILTER x.user = y.user WITHIN 9", "drop", "any"),
    ):
        query = cepheid.query(text)
        recognition = query.on(hot_keys=True, order=order, null_keys=null_keys, buckets=3)
        # Spark's order of equal times is one that the events could have come in: that of rows decides no match of these.
        expected = query.run(equal_times, null_keys=null_keys, order="row").to_arrow(events=True)
        found = frame.transform(recognition).toArrow()
        assert len(expected) > 50, text
        if order == "any":
            assert rows([found]) == rows([frame.transform(query.on(order=order, null_keys=null_keys)).toArrow()]), text
        else:
            assert rows([found]) == rows([expected]), text
        assert "a key with many events in several, by slices of time" in recognition.explain(frame)


def test_several_queries_share_the_slices_of_the_longest_window(spark, small):
    events = events_of(pa.string(), ["hot", *"abcdefgh"])
    queries = {"short": QUERY.replace("60", "40"), "long": "SELECT * WHERE A AS x ; D AS y ; C AS z PARTITION BY user WITHIN 60"}
    found = frame_of(spark, events).transform(cepheid.spark.on(queries, hot_keys=True, buckets=4)).toArrow()
    for name, text in queries.items():
        expected = cepheid.query(text).run(events).to_arrow(events=True)
        own = found.filter(pc.equal(found["query"], name)).select(expected.column_names)
        assert rows([own]) == rows([expected])
        assert len(expected) > 100


def test_spark_decides_how_many_tasks_there_are(spark, small):
    events = events_of(*KEYS["string"])
    query = cepheid.query(QUERY)
    found = frame_of(spark, events).transform(query.on(hot_keys=True))
    assert rows([found.toArrow()]) == rows([query.run(events).to_arrow(events=True)])


@pytest.mark.parametrize("count", [0, 1, 300])
def test_few_events_have_no_hot_key(spark, count):
    events = events_of(pa.string(), ["hot", *"abc"], count=max(count, 8)).slice(0, count)
    query = cepheid.query(QUERY)
    frame = frame_of(spark, events)
    found = frame.transform(query.on(hot_keys=True, buckets=4)).toArrow()
    assert rows([found]) == rows([query.run(events).to_arrow(events=True)])
    assert set(slices_of(query, frame, buckets=4)[0].values()) <= {(1, 1)}


def test_null_times_are_found(spark, small):
    events = events_of(*KEYS["string"])
    events = events.set_column(0, "ts", pc.if_else(pa.array([number % 100 > 0 for number in range(4000)]), events["ts"], None))
    frame, query = frame_of(spark, events), cepheid.query(QUERY)
    with pytest.raises(cepheid.InputError, match=r"an event of user='.+' has no time: `ts` is NULL"), translated():
        frame.transform(query.on(hot_keys=True, buckets=4)).collect()
    recognition = query.on(hot_keys=True, null_time="drop", buckets=4)
    assert rows([frame.transform(recognition).toArrow()]) == rows([query.run(events.filter(events["ts"].is_valid())).to_arrow(events=True)])
    assert recognition.counts() == {"null_keys": 0, "null_times": 40}


REFUSED = {
    "SELECT * WHERE A ; B PARTITION BY user": "without a time in WITHIN a match may begin anywhere",
    "SELECT * WHERE A ; B PARTITION BY user WITHIN 5 CONSUME BY PARTITION": "CONSUME BY depends on every earlier match",
    "SELECT * WHERE A ; B WITHIN 5": "the query has no PARTITION BY",
    "SELECT * WHERE A ; B NOT FOLLOWED BY C FOR 3 PARTITION BY user WITHIN 5": "NOT FOLLOWED BY looks at events after a match",
}


@pytest.mark.parametrize("text", REFUSED)
def test_a_query_whose_keys_cannot_be_cut_is_an_error(spark, text):
    frame = frame_of(spark, events_of(pa.string(), ["hot", "a"], count=9))
    with pytest.raises(cepheid.NotSupportedError, match=REFUSED[text]):
        frame.transform(cepheid.query(text).on(hot_keys=True, buckets=2))
    # One task reads all in any case.
    assert frame.transform(cepheid.query(text).on(hot_keys=True, buckets=1)).columns


def test_what_hot_keys_are_not_for(spark):
    with pytest.raises(cepheid.InputError, match="undecided=True looks at the end of all"):
        cepheid.query(QUERY).on(hot_keys=True, undecided=True)
    stream = spark.readStream.format("rate").load().selectExpr("timestamp AS ts", "'A' AS type", "value AS user", "1.0D AS v")
    with pytest.raises(cepheid.InputError, match="hot_keys=True is for tables"):
        stream.transform(cepheid.query(QUERY.replace("60", "60 seconds")).on(hot_keys=True, lateness="1 minute"))


@pytest.mark.connect
def test_hot_keys_through_connect(connect, small):
    events = events_of(*KEYS["string"])
    query = cepheid.query(QUERY)
    found = connect.createDataFrame(events).transform(query.on(hot_keys=True, buckets=4)).toArrow()
    assert rows([found]) == rows([query.run(events).to_arrow(events=True)])
