"""`NOT FOLLOWED BY n FOR d FROM START`: each match has a deadline of its own, so matches wait, in the order of their deadlines."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from enough import Enough

import cepheid
from cepheid.engine.evaluations.counts import listed
from cepheid.engine.run.recognizer import Recognizer
from cepheid.errors import BindError, LimitError, NotSupportedError
from cepheid.language import syntax
from cepheid.testing import events, generators
from cepheid.testing.differential import answers, check, draws, rows_of, ways_of

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMA = pa.schema([("type", pa.string()), ("ts", pa.int64())])


def found(pattern: str, stream: str, **options: object) -> list[tuple[int, int]]:
    return [(match.start, match.end) for match in cepheid.query(f"SELECT * WHERE {pattern}").run(events(stream), **options)]


def test_random_queries_give_their_matches_on_all_ways(cases: int, seed: int) -> None:
    """In any order: a match that begins earlier is decided earlier, wherever it ends."""
    drawn = Enough(cases, draws(generators.STARTING, seed=seed), waited=5, matched=5, undecided=2)
    for case in drawn:
        whole = rows_of(case.query.run(case.events))
        check(case, whole)
        for way, of in ways_of(case).items():
            assert sorted(map(repr, of(case, None))) == sorted(map(repr, whole)), f"{way}\n{case}"
        open_ = rows_of(case.query.run(case.events).undecided)
        check(case, open_, case.undecided)
        drawn.seen["waited"] += case.query.compiled(case.query.schema(case.events.schema)).waits
        drawn.seen["matched"] += bool(whole)
        drawn.seen["undecided"] += bool(open_)


def test_matches_come_as_soon_as_they_are_decided(cases: int, seed: int) -> None:
    """After each event those that the definition gives until the time before it, and the others are listed as undecided."""
    fragment = dataclasses.replace(generators.STARTING, consume=0.0, absence=0.9, from_start=1.0)
    drawn = Enough(cases // 2, draws(fragment, seed=seed), early=3)
    for case in drawn:
        if case.number % 2:  # times are numbers in every other case
            continue
        recognizer = case.query.recognizer(case.events.schema)
        given: list[object] = []
        for place in range(case.events.num_rows):
            given += rows_of(recognizer.push(case.events.slice(place, 1)))
            if place % 3 == 2:
                recognizer.restore(recognizer.snapshot())
            seen = case.events.slice(0, place + 1)
            wanted, open_ = answers(case.query, seen, until=seen["ts"][-1].as_py() - 1)
            if not case.query.compiled(case.query.schema(seen.schema)).absences:
                break
            assert set(given) == {row for answer in wanted.values() for row in answer.candidates}, f"{place}\n{case}"
            assert set(rows_of(recognizer.undecided())) == {row for answer in open_.values() for row in answer.candidates}, (
                f"{place}\n{case}"
            )
            drawn.seen["early"] += bool(given) and bool(open_)


def without_absences(pattern: syntax.Pattern) -> syntax.Pattern:
    """The pattern whose matches wait; all that can stand around an absence decides about each match alone."""
    while isinstance(pattern, syntax.Absence):
        pattern = pattern.pattern
    if isinstance(pattern, syntax.Filter | syntax.Within):
        return dataclasses.replace(pattern, pattern=without_absences(pattern.pattern))
    return pattern


def test_a_sample_is_that_of_the_pattern_and_what_follows_leaves_some_of_it_out(cases: int, seed: int) -> None:
    """The same one on all ways, whatever is decided first; each push gives its matches in the order of the events that end them."""
    fragment = dataclasses.replace(generators.STARTING, strategies=("", "ALL"), count=0.0, absence=0.9, from_start=0.8)
    drawn = Enough(cases, draws(fragment, seed=seed, longest=18), chosen=5, left_out=5, reordered=1)
    for case in drawn:
        query, table, sample = case.query, case.events, case.random("sample").choice((1, 1, 2, 3))
        compiled_query = query.compiled(query.schema(table.schema))
        if not (compiled_query.waits and compiled_query.method.samples) or compiled_query.judges:
            continue
        alone = cepheid.query(dataclasses.replace(query.tree, pattern=without_absences(query.tree.pattern)), args=query.args)
        chosen, every = rows_of(alone.run(table, sample=sample)), rows_of(query.run(table))
        left = [row for row in chosen if row in every]
        whole = rows_of(query.run(table, sample=sample))
        assert sorted(map(repr, whole)) == sorted(map(repr, left)), f"sample={sample}\n{case}"
        pushed = [rows_of(piece) for piece in pieces(query, table, sample)]
        cut = table.to_reader(max_chunksize=1)
        for rows in (
            [row for piece in pushed for row in piece],
            rows_of(query.run(cut, sample=sample)),
            [row for piece in query.batches(table, sample=sample) for row in rows_of(piece)],
        ):
            assert sorted(map(repr, rows)) == sorted(map(repr, whole)), f"sample={sample}\n{case}"
            drawn.seen["reordered"] += rows != whole
        if not query.tree.partition_by:  # positions of one key say the order
            for piece in (whole, *pushed):
                assert [row.end for row in piece] == sorted(row.end for row in piece), f"{case}"
        drawn.seen["chosen"] += len(chosen) < len(rows_of(alone.run(table)))
        drawn.seen["left_out"] += len(left) < len(chosen)


def pieces(query: cepheid.Query, table: pa.Table, sample: int) -> Iterator[cepheid.Matches]:
    """What each event decides, pushed one by one, and what the time after the last one does."""
    recognizer = Recognizer(query.compiled(query.schema(table.schema)), sample=sample)
    for place in range(table.num_rows):
        yield recognizer.push(table.slice(place, 1))
    if recognizer.latest is not None:
        yield recognizer.advance(recognizer.latest + 1)


def test_the_deadline_counts_from_the_first_event() -> None:
    pattern = "A ; B NOT FOLLOWED BY C FOR 5 FROM START"
    assert found(pattern, "A1 B3 C6") == []
    assert found(pattern, "A1 B3 C7") == [(0, 1)]
    assert found(pattern.replace("5", "[< 5]"), "A1 B3 C6") == [(0, 1)]
    assert found(pattern.replace(" FROM START", ""), "A1 B3 C7 C9") == []
    assert found(pattern, "A1 B9 C9") == [(0, 1)], "what ends after its deadline is decided when it ends"
    assert found(pattern, "A1 A4 B5 C7 D20") == [(0, 2)], "each match for itself"


def test_events_that_a_waiting_match_shows_are_kept() -> None:
    """Whatever a window of events or CONSUME BY says of others."""
    for clause in ("WITHIN 3 EVENTS", "CONSUME BY ANY"):
        query = cepheid.query(f"SELECT * WHERE A AS x ; B NOT FOLLOWED BY C FOR 90 FROM START {clause}")
        stream = events(" ".join(f"{'AB'[time % 2]}{time}" for time in range(60)) + " D200")
        table = pa.Table.from_pylist(stream, schema=SCHEMA)
        recognizer = query.recognizer(SCHEMA)
        given = []
        for place in range(len(table)):
            given += [match["x"] for match in recognizer.push(table.slice(place, 1))]
            recognizer.restore(recognizer.snapshot())
        assert given == [match["x"] for match in query.run(table)]
        assert len(given) > 20


def test_the_matches_of_an_event_are_counted_together() -> None:
    """Once the last match that could end there is decided; some of them are vetoed by then."""
    query = cepheid.query("SELECT COUNT(*) WHERE A ; B NOT FOLLOWED BY C FOR 5 FROM START")

    def counts(matches: cepheid.Matches) -> list[tuple[int, int]]:
        return [(match.end, match.measures["count"]) for match in matches]

    for engine in ("compiled", "python", "reference"):
        assert counts(query.run(events("A1 A2 B3 C6 D9"), engine=engine)) == []
        assert counts(query.run(events("A1 A2 B3 C7 D9"), engine=engine)) == [(2, 1)]
        waits = query.run(events("A1 A2 B3 C7"), engine=engine)
        assert (counts(waits), counts(waits.undecided)) == ([], [(2, 1)]), "A2 is decided, and more A before B3 could be decided later"
    recognizer = query.recognizer(SCHEMA)
    stream = pa.Table.from_pylist(events("A1 A2 B3 B4 C7 D8 D9 D10"), schema=SCHEMA)
    given = [counts(recognizer.push(stream.slice(place, 1))) for place in range(len(stream))]
    assert given == [[], [], [], [], [], [], [(2, 1)], [(3, 1)]]


def test_more_than_can_be_counted_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listed, "MAX_LISTED", 100)
    query = cepheid.query("SELECT COUNT(*) WHERE A+ ; B NOT FOLLOWED BY C FOR 5 FROM START")
    with pytest.raises(LimitError, match="MAX_LISTED"):
        query.run(events(" ".join(f"A{time}" for time in range(10)) + " B10"))
    with pytest.raises(NotSupportedError, match=r"COUNT\(\*\) counts them"):
        query.run(events("A1 B4"), sample=2)
    assert [match.measures["count"] for match in query.run(events("A1 A2 A3 B4"), until="end")] == [7]


@pytest.mark.parametrize(
    ("length", "fact"),
    [("[>= 5]", "takes no lower bound"), ("[1, 5]", "takes no lower bound"), ("[< 0]", "the interval is empty")],
)
def test_only_upper_bounds(length: str, fact: str) -> None:
    with pytest.raises(BindError, match=fact):
        found(f"A NOT FOLLOWED BY B FOR {length}", "A1")
