"""THEN under ACTIVE_OFFICE and COMPLETE_HISTORY looks at all events of a time: how these are read together, wherever the events are cut."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import cepheid
from cepheid.automata import succession
from cepheid.engine.evaluations.guards.guarded_parts_run import PartChoiceRun, PartNextRun, PartsRun
from cepheid.errors import InputError
from cepheid.testing import events

MODELS = ("ACTIVE_OFFICE", "COMPLETE_HISTORY")

STARTS_LATER = pa.Table.from_pylist(events("G0 C1 C2 P3(n=1) P3(n=2) P4(n=3)"))
"""Two carts, paid at one time: whoever pays first, the first cart is next under ACTIVE_OFFICE."""


@pytest.fixture(autouse=True, params=["letters", "match graph"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What chooses: states of the automaton; or an evaluation in the match graph, as beside comparisons of events."""
    if request.param == "match graph":
        monkeypatch.setattr(succession, "MAX_BESIDE", -1)
    return str(request.param)


def query(model: str, where: str = "G THEN (C ; P)") -> cepheid.Query:
    return cepheid.query(f"SELECT * WHERE {where} TIME MODEL {model}")


def found(matches: cepheid.Matches) -> list[tuple[int, ...]]:
    return sorted(tuple(sorted(position for own in match.variables.values() for position in own)) for match in matches)


@pytest.mark.parametrize("model", MODELS)
def test_a_match_is_given_once_time_has_moved_on(model: str) -> None:
    recognizer = query(model).recognizer(STARTS_LATER.schema)
    assert not recognizer.push(STARTS_LATER.slice(0, 4))
    assert not recognizer.push(STARTS_LATER.slice(4, 1))
    assert recognizer.latest == 3
    assert found(recognizer.push(STARTS_LATER.slice(5))) == [(0, 1, 3), (0, 1, 4)]
    assert recognizer.latest == 4


@pytest.mark.parametrize("model", MODELS)
def test_the_end_gives_what_the_last_time_decides(model: str) -> None:
    part = STARTS_LATER.slice(0, 5)
    whole = found(query(model).run(part))
    assert whole == [(0, 1, 3), (0, 1, 4)]
    for until in (None, 3, "end"):
        assert [row for batch in query(model).batches(part, until=until) for row in found(batch)] == whole
        assert found(query(model).run(part.to_reader(max_chunksize=1), until=until)) == whole
    for last in ("flush", "advance_time"):
        recognizer = query(model).recognizer(part.schema)
        assert not recognizer.push(part)
        assert found(recognizer.flush() if last == "flush" else recognizer.advance_time(4)) == whole
        assert not recognizer.flush()


def test_an_event_of_a_time_that_was_flushed_is_an_error_or_late() -> None:
    recognizer = query("ACTIVE_OFFICE").recognizer(STARTS_LATER.schema)
    recognizer.push(STARTS_LATER.slice(0, 4))
    assert found(recognizer.flush()) == [(0, 1, 3)]
    assert recognizer.latest == 3
    for again in (recognizer, query("ACTIVE_OFFICE").recognizer(STARTS_LATER.schema, snapshot=recognizer.snapshot())):
        with pytest.raises(InputError, match=r"time 3 comes after flush\(\)"):
            again.push(STARTS_LATER.slice(4, 1))
        assert not again.push(STARTS_LATER.slice(5))
    late = query("ACTIVE_OFFICE").recognizer(STARTS_LATER.schema, lateness=1)
    late.push(STARTS_LATER.slice(0, 4))
    late.flush()
    late.push(STARTS_LATER.slice(4))
    assert late.late["n"].to_pylist() == [2]


def test_time_does_not_move_past_what_was_flushed() -> None:
    recognizer = query("ACTIVE_OFFICE", "G THEN (C ; P) NOT FOLLOWED BY G FOR 1").recognizer(STARTS_LATER.schema)
    recognizer.push(pa.Table.from_pylist(events("G0 C1 P3(n=1) C4(n=2)")))
    assert not recognizer.flush()
    assert found(recognizer.undecided()) == [(0, 1, 2)]
    assert found(recognizer.advance_time(5)) == [(0, 1, 2)]


def test_events_out_of_order_stay_an_error() -> None:
    recognizer = query("ACTIVE_OFFICE").recognizer(STARTS_LATER.schema)
    recognizer.push(STARTS_LATER.slice(3, 1))
    with pytest.raises(InputError, match="not in the order of their times"):
        recognizer.push(STARTS_LATER.slice(0, 1))


@pytest.mark.parametrize("model", MODELS)
def test_a_snapshot_has_the_events_of_the_last_time(model: str) -> None:
    first = query(model).recognizer(STARTS_LATER.schema)
    first.push(STARTS_LATER.slice(0, 4))
    second = query(model).recognizer(STARTS_LATER.schema, snapshot=first.snapshot())
    assert second.latest == 3
    assert found(second.push(STARTS_LATER.slice(4))) == [(0, 1, 3), (0, 1, 4)]


def test_several_queries_wait_together() -> None:
    queries = cepheid.queries({"first": query("ACTIVE_OFFICE"), "pairs": cepheid.query("SELECT * WHERE G ; P")})
    recognizer = queries.recognizer(STARTS_LATER.schema)
    given = [recognizer.push(STARTS_LATER.slice(row, 1)) for row in range(len(STARTS_LATER))]
    assert [(found(each["first"]), len(each["pairs"])) for each in given] == [([], 0)] * 5 + [([(0, 1, 3), (0, 1, 4)], 2)]
    assert len(recognizer.flush()["pairs"]) == 1


def test_least_history() -> None:
    """By hand, from the last time on: [3, 4] has no event at 2, which [2, 4] has; [1, 2, 4] has one at 1 that [2, 4] lacks."""
    stream = pa.Table.from_pylist(events("G0 A1 A2 A3 B4"))
    assert found(query("COMPLETE_HISTORY", "G THEN (A ; B)").run(stream)) == [(0, 1, 4)]
    assert found(query("COMPLETE_HISTORY", "G THEN (A+ ; B)").run(stream)) == [(0, 1, 4)]
    assert found(query("COMPLETE_HISTORY", "G THEN (A ; A ; B)").run(stream)) == [(0, 1, 2, 4)]
    # What begins and ends at the last time is less than all others, wherever it begins there.
    stream = pa.Table.from_pylist(events("G0 A1 B2 C3 C3 A3 B3 C3"))
    assert found(query("COMPLETE_HISTORY", "G THEN (PROJECT A, C (A ; B ; C))").run(stream)) == [(0, 5, 7)]
    assert found(query("COMPLETE_HISTORY", "G THEN (A ; B ; C)").run(stream)) == [(0, 5, 6, 7)]
    # Equal histories are all next; a shorter one, the end of another, is less.
    stream = pa.Table.from_pylist(events("G0 A1 A1 B2"))
    assert found(query("COMPLETE_HISTORY", "G THEN (A ; B)").run(stream)) == [(0, 1, 3), (0, 2, 3)]
    assert found(query("COMPLETE_HISTORY", "G THEN (B OR (A ; B))").run(stream)) == [(0, 3)]


@pytest.mark.parametrize("model", MODELS)
def test_times_that_two_matches_share(model: str) -> None:
    """[1, 5, 9] is less than [3, 5, 9], though its part before C, [1, 5], is greater than [3]: the event C has the time 5, too."""
    stream = pa.Table.from_pylist(events("G0 B1 G2 A3 B5 C5 D9"))
    assert found(query(model, "G THEN ((B ; B OR A) ; C ; D)").run(stream)) == [(0, 1, 4, 5, 6), (2, 3, 5, 6)]


@pytest.mark.parametrize("model", MODELS)
def test_what_is_next_depends_on_where_the_left_side_ends(model: str) -> None:
    """Behind each G another B is the first one; all of them end at 9."""
    stream = pa.Table.from_pylist(events("G0 B1 G1 B2 G3 B4 B4 G5 C9 C9"))
    expected = [(0, 1), (2, 3), (4, 5), (4, 6)]
    assert found(query(model, "G THEN (B ; C)").run(stream)) == sorted((*pair, c) for pair in expected for c in (8, 9))


def test_which_way_it_is(way: str) -> None:
    compiled = query("ACTIVE_OFFICE").compiled(query("ACTIVE_OFFICE").schema(STARTS_LATER.schema))
    assert [part.text for part in compiled.program.automaton.parts] == (["C ; P"] if way == "match graph" else [])


PAIRS = "EVENT P(n) AS (SELECT count(a) AS n WHERE A AS a ; B WITHIN 4)"


def test_a_strategy_around_what_a_match_made() -> None:
    """The part in which MAX chooses lacked the times at which events begin."""
    text = f"{PAIRS} SELECT * WHERE MAX(B AS x THEN (P AS p ; C AS c)) WITHIN 3 TIME MODEL ACTIVE_OFFICE"
    assert found(cepheid.query(text).run(events("B0 A1 B2 C2"))) == [(0, 3, 4)]


def test_events_of_other_keys_between_those_of_a_time() -> None:
    """What had been read ahead was forgotten with the next event of another key."""
    where = "G AS x THEN (A AS y OR (A AS z ;[<= 3] A AS w)) PARTITION BY k CONSUME BY ANY"
    assert found(query("ACTIVE_OFFICE", where).run(events("G3(k=0) C4(k=0) G4(k=1) A4(k=0)"))) == [(0, 2)]


@pytest.mark.parametrize("model", MODELS)
def test_what_is_kept_ends_with_the_window(monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    """Made events are never the first of their time, and only the first event of a time let others expire."""
    runs: list[PartChoiceRun | PartNextRun] = []
    made = PartsRun._run_of

    def kept(self: PartsRun, number: int) -> PartChoiceRun | PartNextRun:
        runs.append(run := made(self, number))
        return run

    monkeypatch.setattr(PartsRun, "_run_of", kept)
    chance = random.Random(5)
    rows = pa.table({"type": chance.choices("ABCD", k=600), "ts": [number // 3 for number in range(600)]})
    recognizer = cepheid.query(f"{PAIRS} SELECT * WHERE C THEN (P AS p ; P AS q) WITHIN 8 TIME MODEL {model}").recognizer(rows.schema)
    recognizer.push(rows)
    (cells,) = [len(run.store.places(run.store.held_rows, 1)[1]) for run in runs]
    assert 0 < cells < 60


@pytest.mark.parametrize("model", MODELS)
def test_nothing_is_next_behind_what_has_ended(model: str) -> None:
    """B1 begins before C3 ends a match, and so does the match that C4 would end."""
    assert found(query(model, "G THEN (B ; C)").run(events("G0 B1 B2 C3 C4"))) == [(0, 1, 3)]
