"""Slices of time in place of keys: the matches of `q.run`, wherever time is cut."""

from __future__ import annotations

import dataclasses
import random

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from enough import Enough
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from test_worker import cut, rows
from value_columns import columns_of, names_of

import cepheid
from cepheid.engine.letters.codes import having
from cepheid.spark import slices, translated
from cepheid.spark.batch import Plan
from cepheid.spark.tasks import worker
from cepheid.testing.differential import fits, matches_up_to
from cepheid.testing.fragments import fragments
from cepheid.testing.generators import COMPARING, SCHEMA, random_query, random_stream, table

MOST_MATCHES = 2000
"""Of a random case: one in some thousands has millions, and here each becomes a text."""


TIMED = {"partition": 0.0, "windows": ("time", "both"), "consume": 0.0, "absence": 0.0}
"""No keys, a time window over the whole, and sometimes one of events."""

FRAGMENTS = fragments(
    # No window of time, or the order of a partition.
    *("absence", "absence from the start", "lag", "lag and guards", "positions", "strategies around positions", "definitions"),
    "RESTRICTED",  # which of several matches it takes may depend on where a slice begins
    **TIMED,
) | {
    "windows of events": dataclasses.replace(
        COMPARING,
        **TIMED,
        operators=(("named", 2), ("sequence", 4), ("within", 4), ("gap", 1), ("iterate", 2), ("either", 1)),
        spans=True,
        items=2,
        depth=2,
        strategies=("", "ALL", "STRICT", "NXT", "LAST", "MAX"),
        many=False,
        limit=0.0,
    ),
}


def task_of(query, schema, *, ties=("row",)):
    compiled = query.compiled(query.schema(schema))
    return compiled, {
        "text": query.text,
        "args": tuple(query.args.items()),
        "schema": worker.pack_schema(compiled.schema),
        "fingerprint": compiled.program.fingerprint,
        "keys": (),
        "key_names": (),
        "payload": tuple((name, name) for name in schema.names),
        "shown": tuple(schema.names),
        "ties": ties,
        "tie_names": ties or (),
        "index": False,
        "time_name": "ts",
        "sliced": True,
        "values": names_of(compiled),
        "reads": tuple((name, name) for name in compiled.read_in_order),
    }


def prepared(compiled, events, source):
    """What would be cut: letters and times; half the time only what can change anything."""
    letters = compiled.predicates.letters(events)
    whole = events.append_column(worker.TIME, events["ts"]).append_column(worker.LETTER, pa.array(letters.astype(np.int32)))
    for name, column in columns_of(compiled, events).items():
        whole = whole.append_column(name, column)
    if compiled.droppable and not compiled.positional and source.random() < 0.5:
        masks = [(mask, 0) for mask in compiled.program.relevant_masks]
        whole = whole.filter(pa.array(having(letters, compiled.program.automaton.alphabet, masks)))
    return whole


def joined(whole, slice_table):
    """The join of `slices.sliced`, and its sort."""
    parts = []
    for number, start, opens, last in zip(*(column.to_pylist() for column in slice_table.columns), strict=True):
        time = whole[worker.TIME]
        part = whole.filter(pc.and_(pc.greater_equal(time, opens), pc.less_equal(time, last)))
        part = part.append_column(worker.SLICE, pa.array([number] * len(part), pa.int32()))
        parts.append(part.append_column(worker.OWN, pc.greater_equal(part[worker.TIME], start)))
    return pa.concat_tables(parts).combine_chunks()


def random_cuts(source, times, window):
    """Any times as cuts, or those that `cuts_of` chooses."""
    different = sorted(set(times))
    if source.random() < 0.5 or not different:
        return np.array(sorted(source.sample(different, min(len(different), source.randint(0, 6)))), np.int64)
    points = np.quantile(times, np.arange(8) / 8, method="lower").astype(np.int64)
    return slices.cuts_of(points, len(times), window, least=1)


def random_case(seed, name, *, fragments=FRAGMENTS, task_of=task_of, keyed=False):
    source = random.Random(f"{seed} {name}")
    while True:
        query = cepheid.query(random_query(source, fragment=fragments[name]))
        if not fits(query, SCHEMA):
            continue
        events = table(random_stream(source, most=14 if "chosen" in name else 40))
        events = events.append_column("row", pa.array(range(len(events)), pa.int64()))
        compiled, task = task_of(query, events.schema)
        if fragments[name].spans and not compiled.positional:
            continue
        if bool(compiled.keys) != keyed or slices.refusal(compiled, positions=False, tasks=2) is not None:
            continue
        expected = matches_up_to(MOST_MATCHES, query, events)
        if expected is not None:
            return source, query, events, compiled, task, expected


@pytest.mark.parametrize("name", FRAGMENTS)
def test_random_queries_cut_anywhere(name, cases, seed):
    enough = Enough(cases // 3, matched=5, several=5)
    for number in enough:
        source, query, events, compiled, task, expected = random_case(seed * 10_000 + number, name)
        cuts = random_cuts(source, events["ts"].to_pylist(), compiled.window)
        sliced = joined(prepared(compiled, events, source), slices.slice_table(cuts, compiled.window, pa.int64()))
        found = pa.Table.from_batches(list(worker.run_task(task, iter(cut(sliced, source)))), schema=expected.to_arrow(events=True).schema)
        case = (query.text, cuts.tolist(), events.to_pylist())
        assert rows([found]) == rows([expected.to_arrow(events=True)]), case
        enough.seen["matched"] += len(expected) > 0
        enough.seen["several"] += len(cuts) > 0


@pytest.mark.parametrize(
    ("times", "window"),
    [([5], 3), ([5] * 9, 3), ([5] * 9, 0), ([1, 2, 3, 4], 0), ([-3, -3, 0, 0, 0, 9], 100), (list(range(40)), 1), ([0, 1000, 1001], 2)],
)
def test_few_times_and_windows_of_zero_length(times, window):
    query = cepheid.query(f"SELECT * WHERE A AS x ; A AS y WITHIN {window}")
    events = pa.table({"ts": times, "type": ["A"] * len(times), "row": range(len(times))})
    compiled, task = task_of(query, events.schema)
    expected = rows([query.run(events).to_arrow(events=True)])
    every_time = np.array(sorted(set(times)), np.int64)
    for cuts in (every_time[:0], every_time, every_time[1::2], every_time + 1):
        sliced = joined(prepared(compiled, events, random.Random(1)), slices.slice_table(cuts, window, pa.int64()))
        assert rows(worker.run_task(task, iter(cut(sliced, random.Random(2))))) == expected


def test_ties_are_told_by_the_slice_that_owns_them():
    query = cepheid.query("SELECT * WHERE A ; B WITHIN 10")
    events = pa.table({"ts": [1, 4, 4, 12, 13], "type": ["A", "A", "B", "A", "B"], "row": range(5)})
    compiled, task = task_of(query, events.schema, ties=())
    sliced = joined(prepared(compiled, events, random.Random(0)), slices.slice_table(np.array([3, 9]), 10, pa.int64()))
    numbers = sliced[worker.SLICE].to_pylist()
    assert numbers == [0, 1, 1, 1, 2, 2, 2, 2, 2]
    found = {}
    for number in range(3):
        part = sliced.filter(pc.equal(sliced[worker.SLICE], number)).combine_chunks().to_batches()
        try:
            found[number] = sum(batch.num_rows for batch in worker.run_task(task, iter(part)))
        except cepheid.InputError as error:
            found[number] = error.fact
    assert found == {0: 0, 1: "two events have the same time 4, and nothing says which comes first", 2: 2}


# -------------------------------------------------------------------------------------------------------------------- where to cut


def test_no_slice_is_small_and_no_overlap_large(cases, seed):
    for number in range(cases):
        source = random.Random(seed * 10_000 + number)
        size = source.choice([1, 2, 8, 100, 400])
        points = np.sort(np.array([source.randint(-50, 50) ** source.choice([1, 3]) for _ in range(size)], np.int64))
        count, window, least = source.choice([1, size, 1000 * size]), source.choice([0, 1, 10, 5000]), source.choice([1, 7, 500])
        cuts = slices.cuts_of(points, count, window, least=least)
        assert (np.diff(cuts) > 0).all()
        assert set(cuts.tolist()) <= set(points[points > points[0]].tolist())
        starts = [*np.searchsorted(points, cuts).tolist(), size]
        assert not len(cuts) or starts[0] * count >= least * size
        for index, place in enumerate(cuts.tolist()):
            own = starts[index + 1] - starts[index]
            assert own * count >= least * size
            overlap = int(np.count_nonzero((points >= place - window) & (points < place)))
            assert own >= slices.EVENTS_PER_OVERLAP * overlap


def test_even_times_are_cut_evenly():
    points = np.arange(16) * 1000
    assert slices.cuts_of(points, 16_000_000, 10).tolist() == points[1:].tolist()
    assert slices.cuts_of(points, 16_000_000, 1500).tolist() == points[1:-1:2].tolist()[:7]
    assert slices.cuts_of(points, 16 * slices.LEAST_EVENTS // 4, 10).tolist() == [4000, 8000, 12000]
    assert slices.cuts_of(points, slices.LEAST_EVENTS, 10).tolist() == []
    # A window as long as the table: the last slice would read everything.
    assert slices.cuts_of(points, 16_000_000, 10**9).tolist() == []
    assert slices.cuts_of(points, 16_000_000, 3000).tolist() == [1000, 3000, 9000]
    extremes = np.array([-(2**63), -5, 2**63 - 1])
    assert slices.cuts_of(extremes, 10**9, 2**62, least=1).tolist() == [-5, 2**63 - 1]


@pytest.mark.parametrize(
    "kind",
    [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.date32(), pa.timestamp("us"), pa.timestamp("us", "America/New_York")],
    ids=str,
)
def test_the_table_of_slices_has_the_type_of_time(kind):
    made = slices.slice_table(np.array([-3, 90]), 7, kind)
    assert made.schema == pa.schema({"$slice": pa.int32(), "$start": kind, "$opens": kind, "$closes": kind})
    width = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}[kind.bit_width]
    lowest, highest = np.iinfo(width).min, np.iinfo(width).max
    numbers = [np.frombuffer(column.chunk(0).buffers()[1], width)[:3].tolist() for column in made.columns[1:]]
    assert numbers == [[lowest, -3, 90], [lowest, -10, 83], [-4, 89, highest]]
    assert slices.slice_table(np.array([lowest + 1]), 7, kind)["$opens"].null_count == 0


def test_the_number_of_slices_follows_the_tasks():
    assert [slices.slice_count(tasks) for tasks in (2, 64, 200, 1000)] == [8, 256, 512, 512]


REFUSED = {
    "SELECT * WHERE A ; B": "without a time in WITHIN a match may begin anywhere",
    "SELECT * WHERE A ; B WITHIN 5 EVENTS": "without a time in WITHIN a match may begin anywhere",
    "SELECT * WHERE A ; B WITHIN 5 WITHIN 5 EVENTS": None,
    "SELECT * WHERE A ; B WITHIN 5 CONSUME BY ANY": "CONSUME BY depends on every earlier match",
    "SELECT * WHERE NXT(A ; B) ; C WITHIN 5": "a nested strategy compares matches of the whole stream",
    "SELECT NXT * WHERE A+ ; B WITHIN 5 LIMIT 2": "which matches LIMIT, ANY and RESTRICTED take may depend on where a slice begins",
    "SELECT RESTRICTED * WHERE A ; B WITHIN 5": "which matches LIMIT, ANY and RESTRICTED take may depend on where a slice begins",
    "SELECT NXT * WHERE A+ ; B WITHIN 5": None,
    "SELECT * WHERE A : B WITHIN 5": None,
    "SELECT * WHERE A AS x ; B AS y FILTER x.$index + 2 < y.$index WITHIN 5": "$index looks at events before a slice",
    "SELECT * WHERE ((A ; B) WITHIN 3 EVENTS) ; C WITHIN 5": None,
    "SELECT COUNT(*) WHERE A ; B WITHIN 5": None,
    "SELECT STRICT * WHERE A+ ; B WITHIN 5": None,
    "SELECT * WHERE (A ; B NOT FOLLOWED BY C FOR 3) WITHIN 5": "NOT FOLLOWED BY looks at events after a match",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_one_task_has_to_read(text):
    compiled = cepheid.query(text).compiled(cepheid.query(text).schema(table([]).schema))
    assert slices.refusal(compiled, positions=False, tasks=2) == REFUSED[text]
    if REFUSED[text] is None:
        assert slices.refusal(compiled, positions=True, tasks=2) == "positions=True counts every event"
        assert slices.refusal(compiled, positions=False, tasks=1) == "the shuffle has one task"


# ------------------------------------------------------------------------------------------------------------------------ in Spark


@pytest.fixture
def small(monkeypatch):
    """Slices of 40 events, cut by all of them."""
    monkeypatch.setattr(slices, "LEAST_EVENTS", 40)
    monkeypatch.setattr(slices, "SAMPLED", 1.0)


def frame_of(spark, events):
    """Times of Arrow without a zone are TIMESTAMP_NTZ."""
    return spark.createDataFrame(events, from_arrow_schema(events.schema, prefer_timestamp_ntz=True))


def events_at(times, *, seed=3):
    source = random.Random(seed)
    return pa.table(
        {
            "ts": times,
            "type": pa.array([source.choice("ABCD") for _ in times], pa.string()),
            "v": pa.array([source.choice([0.5, 1.0, 2.5, float("nan"), None]) for _ in times], pa.float64()),
        }
    )


def slices_of(query, frame, **options):
    """How many slices the events of a frame are in, how many events these are, and how often one is read again."""
    plan = Plan.of(query, query.on(**options).options, frame)
    prepared, _ = plan.prepared()
    row = plan.distributed(prepared).agg(F.count_distinct("`$slice`"), F.count_if("`$own`"), F.count_if(~F.col("`$own`"))).collect()[0]
    return tuple(row)


SECOND = 1_000_000
TIMES = {
    "bigint": lambda numbers: pa.array(numbers, pa.int64()),
    "smallint": lambda numbers: pa.array([number - 9000 for number in numbers], pa.int16()),
    "date": lambda numbers: pa.array(numbers, pa.int32()).cast(pa.date32()),
    "timestamp_ntz": lambda numbers: pa.array([number * SECOND for number in numbers], pa.timestamp("us")),
    "timestamp": lambda numbers: pa.array([(number - 9000) * SECOND for number in numbers], pa.timestamp("us", "UTC")),
}


@pytest.mark.parametrize("kind", TIMES)
def test_times_of_all_types(spark, small, kind):
    events = events_at(TIMES[kind](sorted(random.Random(5).sample(range(12_000), 3000))))
    unit = {"date": " days", "timestamp": " seconds", "timestamp_ntz": " seconds"}.get(kind, "")
    query = cepheid.query(f"SELECT * WHERE A AS x ; B+ AS y ; C AS z FILTER x[v = 2.5] WITHIN 30{unit}")
    shuffled = frame_of(spark, events).repartition(3, F.rand(1))
    assert f"{frame_of(spark, events).dtypes[0][1]}" == kind
    found = shuffled.transform(query.on(buckets=4)).toArrow()
    expected = query.run(events).to_arrow(events=True)
    assert rows([found]) == rows([expected])
    assert found.column_names == expected.column_names
    assert len(expected) > 100
    if kind == "timestamp":
        count, once, again = slices_of(query, shuffled, buckets=4)
        assert count == 16
        assert 0 < again < once / 10


def test_many_tasks_are_put_together(spark, small):
    """Spark's own number of tasks for a shuffle, 200, is far too many for some thousand events."""
    events = events_at(pa.array(range(3000), pa.int64()))
    query = cepheid.query("SELECT * WHERE A AS x ; B+ AS y ; C AS z FILTER x[v = 2.5] WITHIN 9")
    settings = {"spark.sql.shuffle.partitions": "200", "spark.sql.adaptive.enabled": "true"}
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        found = frame_of(spark, events).transform(query.on())
        tasks = found.select(F.spark_partition_id()).distinct().count()
        assert rows([found.toArrow()]) == rows([query.run(events).to_arrow(events=True)])
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
    assert tasks <= 4


def test_descending_times_strategies_and_measures(spark, small):
    times = [number // 2 for number in range(4000)]
    events = events_at(pa.array(times, pa.int64())).append_column("row", pa.array(range(4000), pa.int64()))
    descending = frame_of(spark, events.take(pa.array(range(3999, -1, -1))))
    for text in (
        "SELECT MAX x, z WHERE A AS x ; B+ AS y ; C AS z FILTER x[v = 2.5] WITHIN 12",
        "SELECT x.v + z.row AS number, duration() AS took WHERE A AS x : B AS y ; C AS z WITHIN 9",
        "SELECT COUNT(*) WHERE A ; B+ ; C WITHIN 40",
    ):
        query = cepheid.query(text)
        recognition = query.on(order="row", buckets=3)
        plan = recognition.explain(descending)
        assert "up to 12 slices of time in 3 tasks" in plan
        expected = query.run(events, order="row").to_arrow(events=True)
        assert rows([descending.transform(recognition).toArrow()]) == rows([expected])
        assert len(expected) > 100


def test_any_order_is_the_same_one_in_all_slices(spark, small):
    events = events_at(pa.array([number // 50 for number in range(3000)], pa.int64()))
    events = events.append_column("row", pa.array(range(3000), pa.int64()))
    query = cepheid.query("SELECT NXT x, y, z WHERE A AS x ; B AS y ; C AS z ; D AS u FILTER u[v = 2.5] WITHIN 2")
    found = frame_of(spark, events).transform(query.on(order="any", buckets=4)).toArrow()
    assert rows([found]) == rows([query.run(events).to_arrow(events=True)])


def test_null_times_are_an_error_or_dropped_and_counted(spark, small):
    times = [number if number % 100 else None for number in range(2000)]
    events = events_at(pa.array(times, pa.int64()))
    frame = frame_of(spark, events)
    query = cepheid.query("SELECT * WHERE A AS x ; B AS y ; C AS z WITHIN 6")
    with pytest.raises(cepheid.InputError, match="an event has no time: `ts` is NULL"), translated():
        frame.transform(query.on(buckets=4)).collect()
    recognition = query.on(null_time="drop", buckets=4)
    found = frame.transform(recognition).toArrow()
    known = events.filter(events["ts"].is_valid())
    assert rows([found]) == rows([query.run(known).to_arrow(events=True)])
    assert recognition.counts() == {"null_times": events["ts"].null_count} != {"null_times": 0}


def test_ties_that_nothing_orders_are_one_error(spark, small):
    events = events_at(pa.array([*range(1000), 999], pa.int64()))
    query = cepheid.query("SELECT * WHERE ANY AS x ; B AS y WITHIN 6")
    with pytest.raises(cepheid.InputError, match="two events have the same time 999, and nothing says which comes first"), translated():
        frame_of(spark, events).transform(query.on(buckets=4)).collect()


@pytest.mark.parametrize("times", [[], [7], [7] * 300, [*range(300)]], ids=["none", "one", "all at once", "few"])
def test_few_events_are_one_slice(spark, times):
    events = events_at(pa.array(times, pa.int64())).append_column("row", pa.array(range(len(times)), pa.int64()))
    query = cepheid.query("SELECT NXT * WHERE A AS x ; B AS y WITHIN 3")
    frame = frame_of(spark, events)
    assert rows([frame.transform(query.on(order="row")).toArrow()]) == rows([query.run(events, order="row").to_arrow(events=True)])
    assert slices_of(query, frame, order="row")[0] == min(len(times), 1)


def test_nothing_runs_before_the_result_is_asked_for(spark):
    events = events_at(pa.array(range(50), pa.int64()))
    query = cepheid.query("SELECT * WHERE A AS x ; B AS y WITHIN 3")
    frame = frame_of(spark, events).withColumn("ts", F.when(F.col("ts") < 40, F.col("ts")).otherwise(F.raise_error("read").cast("long")))
    recognition = query.on()
    matches = frame.transform(recognition)
    assert "by a separate pass over the events that are not left out, when the result is computed" in recognition.explain(frame)
    with pytest.raises(Exception, match="read"):
        matches.count()


def test_explain_says_why_one_task_reads_all(spark):
    frame = frame_of(spark, events_at(pa.array([1], pa.timestamp("us"))))
    for text, why in (
        ("SELECT * WHERE A ; B", "without a time in WITHIN a match may begin anywhere"),
        ("SELECT * WHERE A ; B WITHIN 5 seconds CONSUME BY PARTITION", "CONSUME BY depends on every earlier match"),
    ):
        assert f"one task reads all events: the query has no PARTITION BY, and {why}" in cepheid.query(text).on().explain(frame)


def test_a_session_that_does_not_say_how_many_tasks(spark):
    frame = frame_of(spark, events_at(pa.array([1], pa.int64())))
    query = cepheid.query("SELECT * WHERE A ; B WITHIN 5")
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "7")
    try:
        assert "up to 28 slices of time in 7 tasks" in query.on().explain(frame)
        spark.conf.unset("spark.sql.shuffle.partitions")
        assert "slices of time in" in query.on().explain(frame)
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)


@pytest.mark.connect
def test_slices_through_connect(connect, small):
    events = events_at(pa.array(sorted(random.Random(5).sample(range(12_000), 3000)), pa.int64()))
    query = cepheid.query("SELECT * WHERE A AS x ; B+ AS y ; C AS z FILTER x[v = 2.5] WITHIN 30")
    found = connect.createDataFrame(events).transform(query.on(buckets=4)).toArrow()
    assert rows([found]) == rows([query.run(events).to_arrow(events=True)])
    assert slices_of(query, connect.createDataFrame(events), buckets=4)[0] == 16
