"""From a Delta table to Delta tables: the sink, foreachBatch with txnAppId, MERGE by the identity of a match; micro-batches that come again."""

from __future__ import annotations

import datetime as dt
import random

import pytest

pytest.importorskip("pyspark")

import cepheid
from cepheid.spark import on, translated

NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
QUERIES = {
    "pairs": "SELECT x.id AS first, y.id AS second WHERE A AS x ; B AS y PARTITION BY k WITHIN 10 seconds",
    "alone": "SELECT x.id AS first, x.id AS second WHERE A AS x NOT FOLLOWED BY B FOR 5 seconds PARTITION BY k",
}
DDL = "ts timestamp, k int, type string, id long"
PARTS = 5
SHOWN = ["query", "k", "first", "second"]


@pytest.fixture
def events(seed):
    """One a second, of four keys; the last ones of each part come in the next."""
    chance = random.Random(seed)
    made = [
        {"ts": NOON + dt.timedelta(seconds=second), "k": chance.randrange(4), "type": chance.choice("ABC"), "id": second}
        for second in range(200)
    ]
    return made, sorted(made, key=lambda event: event["id"] + chance.random() * 5)


@pytest.fixture
def expected(events):
    """The matches of both queries, but for those that the last events may still decide."""
    made, _ = events
    end = made[-1]["ts"] - dt.timedelta(seconds=20)
    found = []
    for name, text in QUERIES.items():
        rows = cepheid.query(text).run(made).to_arrow().to_pylist()
        found += [(name, row["k"], row["first"], row["second"]) for row in rows if row["end_time"] <= end]
    assert len(found) > 50
    return sorted(found), end


@pytest.fixture
def source(spark, tmp_path, events):
    """A Delta table that has grown in parts."""
    place, (_, come) = str(tmp_path / "events"), events
    for part in range(PARTS):
        rows = come[len(come) * part // PARTS : len(come) * (part + 1) // PARTS]
        spark.createDataFrame(rows, DDL).coalesce(1).write.format("delta").mode("append").save(place)
    return place


def matches(spark, source):
    """A stream of the matches of both queries, a part of the table in a micro-batch."""
    read = spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(source)
    return read.transform(on(QUERIES, lateness="10 seconds", match_id="match_id", buckets=2))


def run(writer, checkpoint):
    """To the end of what is there."""
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    with translated():
        query.awaitTermination()


def rows_of(spark, place, end):
    found = spark.read.format("delta").load(str(place))
    return sorted(tuple(row) for row in found.where(found.end_time <= end).select(*SHOWN).collect())


def forget(checkpoint, *, last=1):
    """As if the driver had been killed behind the writing of its last micro-batches."""
    commits = sorted((path for path in (checkpoint / "commits").iterdir() if path.name.isdigit()), key=lambda path: int(path.name))
    for path in commits[-last:]:
        path.unlink()
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    return len(commits)


def test_the_sink_has_each_match_once(spark, source, tmp_path, expected):
    """The sink knows which micro-batches it has; a checkpoint that has forgotten its last commit writes none again."""
    rows, end = expected
    place, checkpoint = tmp_path / "matches", tmp_path / "checkpoint"
    writer = matches(spark, source).writeStream.format("delta").option("path", str(place))
    run(writer, checkpoint)
    assert rows_of(spark, place, end) == rows
    assert forget(checkpoint) >= PARTS
    run(writer, checkpoint)
    assert rows_of(spark, place, end) == rows


@pytest.mark.parametrize("told", [True, False], ids=["txnAppId", "nothing said"])
def test_two_tables_by_foreach_batch(spark, source, tmp_path, expected, told):
    """A writer that fails between its two tables: with txnAppId and txnVersion the first one has nothing twice, without them it has."""
    rows, end = expected
    checkpoint, failed = tmp_path / "checkpoint", []

    def write(batch, number):
        batch.persist()
        for name in QUERIES:
            own = batch.where(batch.query == name)
            writer = own.write.format("delta").mode("append")
            if told:
                writer = writer.option("txnAppId", f"matches of {name}").option("txnVersion", number)
            writer.save(str(tmp_path / name))
            if not failed and not own.isEmpty():
                failed.append(number)
                raise RuntimeError("the writer fails between two tables")
        batch.unpersist()

    writer = matches(spark, source).writeStream.foreachBatch(write)
    with pytest.raises(Exception, match="the writer fails between two tables"):
        run(writer, checkpoint)
    run(writer, checkpoint)
    assert failed
    found = sorted(row for name in QUERIES for row in rows_of(spark, tmp_path / name, end))
    assert sorted(set(found)) == rows
    assert (found == rows) == told


def test_merge_by_the_identity_of_a_match(spark, source, tmp_path, expected):
    """However often a micro-batch comes again: a match that is there is not inserted."""
    rows, end = expected
    place, checkpoint, counts = tmp_path / "matches", tmp_path / "checkpoint", []

    def write(batch, number):
        if not counts:
            batch.limit(0).write.format("delta").save(str(place))
        counts.append(number)
        batch.createOrReplaceTempView("found")
        batch.sparkSession.sql(
            f"MERGE INTO delta.`{place}` AS known USING found ON known.match_id = found.match_id WHEN NOT MATCHED THEN INSERT *"
        )

    writer = matches(spark, source).writeStream.foreachBatch(write)
    run(writer, checkpoint)
    forget(checkpoint)
    run(writer, checkpoint)
    assert len(counts) > len(set(counts)), "a micro-batch came again"
    assert rows_of(spark, place, end) == rows
