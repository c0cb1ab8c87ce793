"""Identities of matches on Spark: those of the embedded engine, in batch and in streams, after restarts, and none twice."""

from __future__ import annotations

import itertools
import random

import pytest
from test_stream import Feed, table_of

import cepheid
from cepheid.errors import InputError, SchemaError
from cepheid.spark import on
from cepheid.testing import assert_same

WITHIN = "WITHIN 4 seconds"
KEYED = f"PARTITION BY k {WITHIN}"
QUERIES = {
    "events": f"SELECT * WHERE A+ AS x ; B AS y {KEYED}",
    "one variable": f"SELECT y WHERE A AS x ; B AS y {KEYED}",
    "equalities": f"SELECT count(x) AS n WHERE A AS x ; B AS y FILTER x.k = y.k {WITHIN}",
    "measures": f"SELECT count(x) AS n, avg(x.v) AS mean, duration() AS d WHERE A+ AS x ; B AS y {KEYED}",
    "counts": f"SELECT COUNT(*) WHERE A AS x ; B AS y FILTER x.k = y.k {WITHIN}",
    "absence": f"SELECT * WHERE A AS x ; B AS y NOT FOLLOWED BY C FOR 2 seconds {KEYED}",
    "slices": f"SELECT MAX * WHERE A+ AS x ; B AS y FILTER x.v < y.v {WITHIN}",
    "definition": f"EVENT P(n) AS (SELECT x.v AS n WHERE A AS x ; B {KEYED}) SELECT * WHERE P AS p ; C AS c {KEYED}",
}


def events_of(seed, count=60):
    """Some of equal times, told apart by `v`."""
    chance = random.Random(seed)
    return table_of([(chance.randrange(3), chance.randrange(count), chance.choice("AABC"), number) for number in range(count)])


@pytest.mark.parametrize("name", QUERIES)
def test_embedded_batch_and_stream(spark, name, seed):
    assert_same(QUERIES[name], events_of(seed), order="v", match_id="match_id", spark=spark, seed=seed)


def twins(seed, count=40):
    """Events of which many are equal in all columns, and others never in key and time; and their order of arrival."""
    chance = random.Random(seed)
    once = [(key, second, chance.choice("AAB"), 0) for second in range(count) for key in range(2)]
    rows = sorted(chance.choices(once, k=2 * len(once)), key=lambda row: row[1])
    return rows, sorted(rows, key=lambda row: row[1] + chance.random() * 3)


KEYED_ALL, EQUALITIES = ("events", "one variable", "measures"), ("equalities", "counts")


@pytest.mark.parametrize("names", [KEYED_ALL, EQUALITIES], ids=["keys", "equalities"])
def test_equal_events_and_restarts(spark, tmp_path, names, seed):
    """Several queries over a stream in disorder, cut anywhere, stopped, and read again from the beginning by another stream."""
    rows, arrival = twins(seed)
    chance = random.Random(seed)
    queries = {name: QUERIES[name] for name in names}
    expected = {}
    for name, found in cepheid.queries(queries).run(table_of(rows)).items():
        expected[name] = sorted(found.to_arrow(match_id="match_id")["match_id"].to_pylist())
        assert len(set(expected[name])) == len(expected[name]) == len(found)
    assert len(set(itertools.chain(*expected.values()))) == sum(map(len, expected.values())) > 30
    feed = Feed(spark, tmp_path)

    def matches(name):
        return feed.run(feed.stream().transform(on(queries, lateness="4 seconds", match_id="match_id")), name)

    cuts = sorted({0, len(arrival), *(chance.randrange(len(arrival)) for _ in range(3))})
    for start, stop in itertools.pairwise(cuts):
        feed.put(arrival[start:stop])
        if chance.random() < 0.5:
            matches("out")
    feed.close()
    for name in ("out", "again"):
        matches(name)
        found = {name: [] for name in queries}
        for row in feed.rows(name):
            found[row["query"]].append(row["match_id"])
        assert {name: sorted(own) for name, own in found.items()} == expected


def test_in_pieces(spark, monkeypatch, seed):
    """A batch whose rows leave in pieces, some of which end in the midst of equal rows."""
    monkeypatch.setattr("cepheid.spark.tasks.rows.ROWS_PER_PIECE", 3)
    rows, _ = twins(seed)
    query = cepheid.query(QUERIES["events"])
    frame = spark.createDataFrame(table_of(rows)).transform(query.on(order="any", match_id="match_id"))
    found = frame.toArrow()["match_id"].to_pylist()
    expected = query.run(table_of(rows)).to_arrow(match_id="match_id")["match_id"].to_pylist()
    assert sorted(found) == sorted(expected)


def test_what_else_the_output_has(spark, seed):
    """Positions are no part of an identity; the attributes that are shown are one."""
    query, events = cepheid.query(QUERIES["events"]), events_of(seed)
    expected = sorted(query.run(events, sort=True, order="v").to_arrow(match_id="match_id")["match_id"].to_pylist())
    frame = spark.createDataFrame(events)
    placed = frame.transform(query.on(order="v", positions=True, match_id="match_id"))
    assert placed.columns == ["match_id", "k", "start_time", "end_time", "start_position", "end_position", "x", "y"]
    assert sorted(placed.toArrow()["match_id"].to_pylist()) == expected
    few = frame.transform(query.on(order="v", columns=["v", "ts", "k", "type"], match_id="match_id"))
    assert sorted(few.toArrow()["match_id"].to_pylist()) == expected
    fewer = frame.transform(query.on(order="v", columns="v", match_id="match_id"))
    assert not set(fewer.toArrow()["match_id"].to_pylist()) & set(expected)


def test_it_may_be_asked_for_later(spark, tmp_path, seed):
    """A checkpoint goes on where the events that are kept are the same."""
    rows, arrival = twins(seed)
    query = cepheid.query(QUERIES["events"])
    feed = Feed(spark, tmp_path)
    feed.put(arrival[:40])
    feed.run(feed.stream().transform(query.on(lateness="4 seconds")))
    feed.put(arrival[40:])
    feed.close()
    feed.run(feed.stream().transform(query.on(lateness="4 seconds", match_id="match_id")))
    rows_ = spark.read.option("mergeSchema", "true").parquet(str(tmp_path / "out"))
    found = {row.match_id for row in rows_.where("match_id IS NOT NULL").collect()}
    assert found
    assert found < set(query.run(table_of(rows)).to_arrow(match_id="match_id")["match_id"].to_pylist())


def test_names(spark):
    frame = spark.createDataFrame(table_of([(1, 1, "A", 1)]))
    query = cepheid.query(QUERIES["events"])
    for wrong in ("", 7):
        with pytest.raises(InputError, match="no name of a column"):
            query.on(match_id=wrong)
    for taken in ("k", "X", "end_time"):
        with pytest.raises(SchemaError, match="two columns named"):
            frame.transform(query.on(match_id=taken))
    with pytest.raises(SchemaError, match="two columns named"):
        frame.transform(on({"a": query}, match_id="query"))
    assert frame.transform(on({"a": query}, match_id="id")).columns[:3] == ["query", "id", "k"]
