"""Rows: which rows of the input the events of matches are, on every path that knows the input. Each event carries its own row as an attribute."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from enough import Enough

import cepheid
from cepheid.errors import InputError, LimitError
from cepheid.testing.generators import random_query, random_stream, table

QUERIES = {
    "sequence": "SELECT * WHERE A AS x ; B AS y WITHIN 6",
    "keys": "SELECT * WHERE A+ AS x ; B AS y WITHIN 6 PARTITION BY k",
    "derived keys": "SELECT * WHERE A AS x ; B AS y FILTER x.k = y.k WITHIN 6",
    "guards": "SELECT * WHERE A AS x ; B AS y FILTER x.v < y.v WITHIN 6",
    "absence": "SELECT * WHERE A AS x ; B AS y NOT FOLLOWED BY A FOR 2 WITHIN 6",
    "absence from start": "SELECT * WHERE A AS x ; B AS y NOT FOLLOWED BY (A ; B ; C) FOR 9 FROM START WITHIN 6",
    "consumption": "SELECT * WHERE A AS x ; B AS y WITHIN 6 PARTITION BY k CONSUME BY ANY",
    "strategy": "SELECT MAX * WHERE A+ AS x ; B AS y WITHIN 6",
    "count": "SELECT COUNT(*) WHERE A AS x ; B AS y WITHIN 6 PARTITION BY k",
    "having": "SELECT x, y WHERE A+ AS x ; B AS y WITHIN 6 HAVING count(x) >= 2",
    "lag": "SELECT * WHERE A AS x ; B AS y FILTER x.v > lag(x.v) WITHIN 6",
    "events of matches": "EVENT P(k) AS (SELECT x.k AS k WHERE A AS x ; B WITHIN 6) SELECT * WHERE P AS p ; A AS x WITHIN 9",
}


def drawn(seed, *, count=60):
    """A shuffled stream, with doubled times, whose attribute `row` is its row."""
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "type": rng.choice(["A", "B", "C"], count),
            "ts": rng.integers(0, count, count),
            "k": pa.array(rng.integers(0, 3, count), mask=rng.random(count) < 0.1),
            "v": rng.integers(0, 5, count),
            "row": np.arange(count),
        }
    )


def in_order(events):
    """The events in the order of their times, with rows of their own."""
    events = events.take(pa.array(np.argsort(events["ts"].to_numpy(), kind="stable")))
    return events.set_column(4, "row", pa.array(np.arange(events.num_rows)))


def check(matches):
    """The rows of each variable are those that its events say; returns how many there were."""
    shown, events = matches.to_arrow(rows=True), matches.to_arrow(events=True)
    shown.validate(full=True)
    for name in matches.layout.variables:
        assert shown[name].to_pylist() == [[event["row"] for event in own] for own in events[name].to_pylist()]
    for number, match in enumerate(matches[:3]):
        assert match.rows == {name: tuple(event["row"] for event in match[name]) for name in match.variables}
        assert match.rows == {name: tuple(shown[name][number].as_py()) for name in match.variables}
    return matches.marks.size


def check_all(matches):
    """The same, with what waits for absences."""
    return check(matches) + check(matches.undecided)


@pytest.mark.parametrize("name", QUERIES)
def test_rows_on_every_path(name, seed):
    query, mixed = cepheid.query(QUERIES[name]), drawn(seed)
    events = in_order(mixed)
    found = 0
    for until in (None, 25, "end"):
        found += check_all(query.run(events, until=until))
        found += check_all(query.run(mixed, sort=True, until=until))
        found += check_all(query.run(mixed, sort=True, order="v", until=until))
        found += check_all(query.run(events, until=until, null_keys="group"))
        found += check_all(query.run(events.to_reader(7), until=until))
        found += check_all(query.run(mixed.to_reader(7), sort=True, until=until))
        for given, options in ((events, {}), (events.to_reader(7), {}), (mixed, {"sort": True})):
            batches = query.batches(given, until=until, **options)
            found += sum(map(check, batches)) + check(batches.undecided)
    assert found or name == "count"


@pytest.mark.parametrize("name", set(QUERIES) - {"events of matches", "strategy"})
def test_rows_by_the_definition(name, seed):
    query, mixed = cepheid.query(QUERIES[name]), drawn(seed, count=14)
    check_all(query.run(mixed, sort=True, order=["v"], engine="reference"))
    check_all(query.run(mixed, sort=True, until=9, engine="reference"))
    found = query.run(in_order(mixed), engine="reference")
    assert sorted(map(str, (match.rows for match in found))) == sorted(str(match.rows) for match in query.run(in_order(mixed)))


def test_rows_of_random_queries(seed, cases):
    some = Enough(cases, found=20)
    for number in some:
        rng = random.Random(f"{seed}/{number}/rows")
        query, events = cepheid.query(random_query(rng)), table(random_stream(rng))
        events = events.append_column("row", pa.array(range(events.num_rows), pa.int64()))
        try:
            whole = query.run(events)
        except LimitError:
            continue
        some.seen["found"] += check_all(whole)
        pieces = query.batches(events.to_reader(rng.randint(1, 5)))
        assert sorted(str(match.rows) for piece in pieces for match in piece) == sorted(str(match.rows) for match in whole)


def test_rows_of_several_queries(seed):
    """Of a family, of a query that reads some events alone, and of queries that are evaluated alone."""
    rules = {**QUERIES, **{f"above {limit}": f"SELECT * WHERE A AS x ; B AS y FILTER x[v > {limit}] WITHIN 6" for limit in range(4)}}
    mixed = drawn(seed)
    for events, options in ((mixed, {"sort": True}), (in_order(mixed).to_reader(9), {}), (in_order(mixed), {"until": 30})):
        found = cepheid.queries(rules).run(events, **options)
        assert sum(check_all(matches) for matches in found.values()) > 10
    streams = {name: owned(drawn(seed + number), name) for number, name in enumerate(["one", "two"])}
    found = cepheid.queries({"a": QUERIES["keys"], "b": QUERIES["absence"]}).run(streams, sort=True)
    assert sum(check_streams(matches) for matches in found.values())


def owned(events, name):
    """Events of a stream that say its name."""
    return events.append_column("own", pa.array([name] * events.num_rows, pa.string()))


def check_streams(matches):
    """As `check`, of {stream name: events} whose events say their stream."""
    shown = matches.to_arrow(rows=True)
    shown.validate(full=True)
    assert matches.streams.to_pylist() == [event["own"] for event in events_of(matches)]
    assert matches.rows.tolist() == [event["row"] for event in events_of(matches)]
    for number, match in enumerate(matches):
        for name in match.variables:
            own = [{"stream": event["own"], "row": event["row"]} for event in match[name]]
            assert shown[name][number].as_py() == own
            assert [{"stream": stream, "row": row} for stream, row in zip(match.streams[name], match.rows[name], strict=True)] == own
    return len(matches)


def events_of(matches):
    """The event of each mark."""
    return matches.events.take(pa.array(matches.marks.rows)).to_pylist()


def test_rows_of_streams(seed):
    counts = {"empty": 0, "one": 40, "two": 40, "none": 0}
    streams = {name: owned(drawn(seed + number, count=counts[name]), name) for number, name in enumerate(counts)}
    query = cepheid.query("SELECT * WHERE A AS x ; B AS y NOT FOLLOWED BY C FOR 1 WITHIN 6 PARTITION BY k")
    found = 0
    for options in ({}, {"order": "v"}, {"until": 20}):
        matches = query.run(streams, sort=True, **options)
        found += check_streams(matches) + check_streams(matches.undecided)
        found += sum(map(check_streams, query.batches(streams, sort=True, **options)))
    assert found
    assert check_streams(query.run({name: in_order(events) for name, events in streams.items()}))
    few = {name: events.slice(0, 6) for name, events in streams.items()}
    check_streams(query.run(few, sort=True, engine="reference"))
    assert query.run({"one": streams["one"]}, sort=True).streams is not None


def test_events_that_matches_make_have_no_row(seed):
    query = cepheid.query("EVENT P(k) AS (SELECT x.k AS k WHERE A AS x ; B WITHIN 6) SELECT * WHERE P AS p ; A AS x WITHIN 9")
    events = in_order(drawn(seed))
    for matches in (query.run(events), query.run(events.to_reader(5)), next(query.batches(events))):
        assert {match.rows["p"] for match in matches} == {(None,)}
        assert matches.to_arrow(rows=True)["p"].to_pylist() == [[None]] * len(matches)
        assert set(matches.rows.tolist()) >= {-1}
    streams = query.run({"S": events}).to_arrow(rows=True)
    assert streams["p"].to_pylist() == [[None]] * len(streams)
    with pytest.raises(InputError, match="the rows of these events in the input are not known"):
        _ = query.run(events.slice(0, 9), engine="reference").rows


def test_rows_of_slices_and_counts():
    query, events = cepheid.query("SELECT * WHERE A AS x ; B AS y"), {"type": list("ABAB"), "ts": [4, 3, 2, 1]}
    matches = query.run(events, sort=True)
    assert [match.rows for match in matches] == [{"x": (2,), "y": (1,)}]
    assert [match.rows for match in matches[::-1]] == [match.rows for match in matches][::-1]
    assert matches[1:].to_arrow(rows=True).schema == matches.to_arrow(rows=True).schema
    assert matches[5:].to_arrow(rows=True).num_rows == 0
    assert matches.to_arrow(rows=True).schema == pa.schema(
        [("start_time", pa.int64()), ("end_time", pa.int64()), ("x", pa.large_list(pa.int64())), ("y", pa.large_list(pa.int64()))]
    )
    counted = cepheid.query("SELECT COUNT(*) WHERE A AS x ; B AS y").run(events, sort=True)
    assert counted.rows.tolist() == [1]
    assert counted.to_arrow(rows=True).column_names == ["start_time", "end_time", "count", "count_overflow"]
    measured = cepheid.query("SELECT y.ts AS at WHERE A AS x ; B AS y").run(events, sort=True)
    assert measured.rows[measured.offsets[:-1]].tolist() == [2]
    assert measured.to_arrow(rows=True).to_pylist() == [{"start_time": 2, "end_time": 3, "at": 3}]


def test_what_knows_no_rows_says_so():
    query, events = cepheid.query("SELECT * WHERE A AS x ; B AS y"), pa.table({"type": ["A", "B"], "ts": [1, 2]})
    recognizer = query.recognizer(events.schema)
    matches = recognizer.push(events)
    for look in (lambda: matches.rows, lambda: matches.streams, lambda: matches[0].rows, lambda: matches.to_arrow(rows=True)):
        with pytest.raises(InputError, match="the rows of these events in the input are not known") as error:
            look()
        assert "a column with a number of your own" in error.value.help[-1]
    with pytest.raises(InputError, match="to_arrow gives the events, or their rows"):
        query.run(events).to_arrow(events=True, rows=True)


def test_a_reader_that_is_sorted_is_read_to_its_end():
    events = pa.table({"type": ["C", "A", "B"], "ts": [9, 1, 2]})
    matches = cepheid.query("SELECT * WHERE A AS x ; B AS y").run(events.to_reader(2), sort=True, until=5)
    assert [match.rows for match in matches] == [{"x": (1,), "y": (2,)}]
