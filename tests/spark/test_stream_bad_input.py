"""What a stream may be given that is wrong: each has an outcome with a name, and nothing is lost without being counted."""

from __future__ import annotations

import dataclasses

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F
from test_stateful import START, TIMED, events_of, heat, next_events, seconds, unit_of
from test_stream import PAIRS, Feed, shown

import cepheid
from cepheid.errors import SnapshotError
from cepheid.spark.tasks.buckets import Bucket
from cepheid.spark.tasks.packing import unpack
from cepheid.spark.tasks.worker import TIME

FAR = 10_000_000
"""Seconds ahead: some months."""
ABSENT = cepheid.query("SELECT * WHERE A AS x NOT FOLLOWED BY B FOR 5 seconds PARTITION BY k")


def bucket_of(text, *, query=None, late=False):
    """A fresh bucket for events such as these, and these as they travel."""
    query = query or heat()
    unit, events, output = unit_of([query], events_of(text))
    if late:
        columns = (*((name, name) for name in TIMED.names if name != "k"), ("k", "k0"))
        output = output.append(pa.field("late", pa.struct([TIMED.field(name) for name, _ in columns])))
        unit = dataclasses.replace(unit, late=columns, output=output.serialize().to_pybytes())
    return Bucket(unit), events


def rows_of(step, bucket):
    return [row for _, blob in step.rows for row in unpack(bucket.output, pa.array([blob], pa.binary())).to_pylist()[0]]


def pairs(rows):
    """The seconds of start and end."""
    return [tuple(int(row[name].timestamp()) - START // 1_000_000 for name in ("start_time", "end_time")) for row in rows]


# ------------------------------------------------------------------------------------------------------------------------ watermarks


@pytest.mark.parametrize("restarts", [False, True])
def test_a_watermark_that_never_advances(restarts):
    """An idle source among several holds it: events wait, the counts say so, and all of them count once it goes on."""
    bucket, _ = bucket_of("A1")
    waiting = 0
    for second in range(1, 100, 2):
        step = bucket.step([next_events(bucket, f"B{second + 1} A{second}")], 0)
        waiting += 2
        assert step.rows == []
        assert step.counts == {"events": 2, "late": 0, "matches": 0, "waiting": waiting, "keys": 0}
        assert step.deadline == seconds(1)
        assert not bucket.empty
        if restarts:
            bucket = Bucket(bucket.unit).load(bucket.dump())
    step = bucket.step([], seconds(200))
    assert step.counts["waiting"] == step.counts["late"] == 0
    text = " ".join(f"A{second} B{second + 1}" for second in range(1, 100, 2))
    assert len(rows_of(step, bucket)) == step.counts["matches"] == len(heat().run(events_of(text)))


def test_a_watermark_that_never_advances_holds_absences_back():
    bucket, events = bucket_of("A1 A2", query=ABSENT)
    assert bucket.step([events], 0).rows == []
    step = bucket.step([], seconds(3))
    assert (step.rows, step.counts["waiting"], step.deadline) == ([], 0, seconds(6))
    for _ in range(3):
        assert bucket.step([], seconds(3)).rows == []
    assert len(rows_of(bucket.step([], seconds(8)), bucket)) == 2


# ------------------------------------------------------------------------------------------------------------------------ the future


def test_an_event_of_the_future_makes_the_rest_late():
    """Its time moves the watermark: what comes after it is late, counted and given back; what came before it is decided."""
    bucket, events = bucket_of(f"A1 B2 A3 A{FAR}", late=True)
    assert bucket.step([events], 0).rows == []
    step = bucket.step([next_events(bucket, f"B4 A5 B{FAR + 1}")], seconds(FAR - 6))
    matches, late = ([row for row in rows_of(step, bucket) if (row["late"] is not None) == wanted] for wanted in (False, True))
    assert pairs(matches) == [(1, 2)]
    assert (step.counts["events"], step.counts["late"], step.counts["waiting"]) == (3, 2, 2)
    assert [(row["late"]["type"], row["late"]["row"]) for row in late] == [("B", 0), ("A", 1)]
    bucket = Bucket(bucket.unit).load(bucket.dump())
    assert pairs(rows_of(bucket.step([], seconds(FAR + 9)), bucket)) == [(FAR, FAR + 1)]


def test_events_before_the_first_watermark_are_late():
    """Spark's first watermark is 1970: what is before it is counted as late, as after any other."""
    bucket, events = bucket_of("A1 B2", late=True)
    times = pa.array([-5, 0], pa.timestamp("us", "UTC"))
    for name in (TIME, "ts"):
        events = events.set_column(events.column_names.index(name), name, times)
    step = bucket.step([events], 0)
    assert (step.counts["late"], step.counts["waiting"]) == (2, 0)
    assert [row["late"]["type"] for row in rows_of(step, bucket)] == ["A", "B"]


# ------------------------------------------------------------------------------------------------------------------------ keys


def test_null_keys_are_a_key_where_they_are_grouped():
    bucket, events = bucket_of("A1 B2 A3")
    nulls = pa.nulls(len(events), events["k0"].type)
    grouped = events.set_column(events.column_names.index("k0"), "k0", nulls)
    step = bucket.step([grouped, next_events(bucket, "A4", key=7)], 0)
    bucket = Bucket(bucket.unit).load(bucket.dump())
    step = bucket.step([], seconds(5))
    (row,) = rows_of(step, bucket)
    assert (row["k"], pairs([row])) == (None, [(1, 2)])
    assert step.counts["keys"] == 2
    step = bucket.step([next_events(bucket, "B9", key=7)], seconds(20))
    assert (step.counts["late"], step.counts["keys"]) == (1, 0)


# ------------------------------------------------------------------------------------------------------------------------ schemas


@pytest.mark.parametrize(("change", "refused"), [("type", True), ("gone", True), ("more", False), ("order", False)])
def test_another_schema_of_what_is_kept_is_refused(change, refused):
    """Other columns that travel, and their order, change nothing."""
    bucket, events = bucket_of("A1 B2")
    bucket.step([events], 0)
    data = bucket.dump()
    schema = bucket.schema
    place = schema.get_field_index("v")
    changed = {
        "type": schema.set(place, pa.field("v", pa.float64())),
        "gone": schema.remove(place),
        "more": schema.append(pa.field("more", pa.int64())),
        "order": pa.schema([*(field for field in schema if field.name != "v"), schema.field("v")]),
    }[change]
    payload = tuple(names for names in bucket.tasks[0].payload if names[1] in changed.names)
    tasks = tuple({**task, "payload": payload} for task in bucket.unit.tasks)
    other = dataclasses.replace(bucket.unit, schema=changed.serialize().to_pybytes(), tasks=tasks)
    if refused:
        with pytest.raises(SnapshotError, match="the checkpoint was made by another query"):
            Bucket(other).load(data)
    else:
        assert pairs(rows_of(Bucket(other).load(data).step([], seconds(3)), bucket)) == [(1, 2)]
    metadata = schema.with_metadata({"written by": "another version"})
    same = Bucket(dataclasses.replace(bucket.unit, schema=metadata.serialize().to_pybytes())).load(data)
    assert pairs(rows_of(same.step([], seconds(3)), same)) == [(1, 2)]


@pytest.mark.parametrize(
    ("clauses", "way_out"),
    [
        ("WITHIN 9 seconds", "until= and since= hand over without a gap"),
        ("WITHIN 9 seconds CONSUME BY PARTITION", "since= cannot hand over a query that has CONSUME BY"),
        ("WITHIN 9 EVENTS", "since= cannot hand over a query that has no time in WITHIN"),
    ],
)
def test_the_way_to_a_new_checkpoint_is_one_that_the_query_has(clauses, way_out):
    """`since=` is refused for some queries (docs/streaming.md), so it is no help for these."""
    bucket, events = bucket_of("A1 B2")
    bucket.step([events], 0)
    other, _ = bucket_of("A1 B2", query=cepheid.query(f"SELECT * WHERE A AS x ; B AS y PARTITION BY k {clauses}"))
    with pytest.raises(SnapshotError, match=way_out):
        other.load(bucket.dump())


# ------------------------------------------------------------------------------------------------------------------------ through Spark


@pytest.fixture
def feed(spark, tmp_path):
    return Feed(spark, tmp_path)


def test_a_changed_column_on_an_old_checkpoint_fails_before_any_output(feed):
    feed.put([(1, 1, "A", 1), (1, 2, "B", 2)])
    feed.run(feed.stream().transform(PAIRS.on(lateness="6 seconds")))
    feed.close()
    changed = feed.stream().withColumn("v", F.col("v").cast("double"))
    with pytest.raises(SnapshotError, match="the checkpoint was made by another query"):
        feed.run(changed.transform(PAIRS.on(lateness="6 seconds")))
    assert feed.rows() == []
    right = feed.stream().transform(PAIRS.on(lateness="6 seconds"))
    feed.run(right)
    # The changed stream may have left a file without rows, in its schema.
    assert shown(feed.rows(schema=right.schema)) == [(1, (1,), (2,))]


def test_a_null_key_and_an_event_of_the_future(feed):
    """NULL is a key where that is asked for; an event that is in no match moves the watermark all the same."""
    feed.put([(None, 1, "A", 1), (None, 2, "B", 2), (1, 100_000, "Z", 0)])
    feed.put([(None, 3, "B", 3), (None, 100_001, "A", 4), (None, 100_002, "B", 5)])
    feed.close()
    progress = feed.run(feed.stream().transform(PAIRS.on(lateness="6 seconds", null_keys="group")))
    assert shown(feed.rows()) == [(None, (1,), (2,)), (None, (4,), (5,))]
    late = [each["observedMetrics"]["cepheid"]["late"] for each in progress if "cepheid" in each["observedMetrics"]]
    assert sum(filter(None, late)) == 1


def test_an_error_of_the_source_is_not_taken_for_one_that_cepheid_could_have_raised(feed):
    """Spark's message ends with the plan, which has the texts of the checks of times."""
    feed.put([(1, 0, "A", 1), (1, 1, "B", 2)])
    broken = feed.stream().withColumn("v", F.expr("if(v > 1, raise_error('a broken source'), v)"))
    with pytest.raises(StreamingQueryException, match="a broken source") as caught:
        feed.run(broken.transform(PAIRS.on(lateness="1 second")))
    assert "cepheid.errors.InputError: error: " in str(caught.value), "else the plan is no danger, and this tests nothing"
