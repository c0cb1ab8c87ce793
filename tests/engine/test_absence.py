"""NOT FOLLOWED BY on the automaton engine: random queries however their events come, deadlines, what is undecided, and what is kept."""

from __future__ import annotations

import datetime as dt
from functools import cache

import pyarrow as pa
import pytest

from cepheid.testing.differential import WAYS, Case, answers, check, draw, finished, rows_of
from cepheid.testing.generators import ABSENT

VARIANTS = ("compiled", "python", "checked")


@cache
def drawn(count: int, seed: int) -> list[Case]:
    return draw(ABSENT, count=count, seed=seed)


# ------------------------------------------------------------------------------------------------------------------- random queries


@pytest.mark.parametrize("way", WAYS)
def test_however_the_events_come(way: str, cases: int, seed: int) -> None:
    given = open_ = 0
    for case in drawn(cases, seed):
        whole = case.query.run(case.events)
        found = WAYS[way](case, VARIANTS[case.number % len(VARIANTS)])
        check(case, found)
        assert found == rows_of(whole), str(case)
        check(case, rows_of(whole.undecided), case.undecided)
        given += bool(found)
        open_ += bool(whole.undecided)
    assert given > cases / 20
    assert open_ > cases / 20


def test_given_as_soon_as_decided_and_never_before(cases: int, seed: int) -> None:
    """After each event, with a snapshot now and then: what has come so far is complete up to the time before its last."""
    for case in drawn(cases, seed):
        recognizer = case.query.recognizer(case.events.schema)
        found = []
        times = case.events["ts"].cast("int64").to_pylist()
        for row, time in enumerate(times):
            found += rows_of(recognizer.push(case.events.slice(row, 1)))
            expected, waiting = answers(case.query, case.events.slice(0, row + 1), until=time - 1)
            if recognizer.compiled.absences:
                check(case, found, expected)
                check(case, rows_of(recognizer.undecided()), waiting)
            if row % 3 == 0:
                recognizer.restore(recognizer.snapshot())
        assert found + finished(recognizer) == rows_of(case.query.run(case.events)), str(case)


def test_until_any_time(cases: int, seed: int) -> None:
    """`until=T` is the answer of the events up to T, complete up to T; "end" that of a stream that has ended. A reader gives the same."""
    for case in drawn(cases, seed):
        times = case.events["ts"].cast("int64").to_pylist()
        rng = case.random("until")
        for until in ("end", rng.randint(min(times, default=0) - 1, max(times, default=0) + 5)):
            moment = until if until == "end" or case.events.schema.field("ts").type == pa.int64() else _moment(until)
            read = case.events if until == "end" else case.events.slice(0, sum(time <= until for time in times))
            expected, waiting = answers(case.query, read, until=until)
            for events in (case.events, case.events.to_reader(max_chunksize=3)):
                matches = case.query.run(events, until=moment)
                check(case, rows_of(matches), expected)
                check(case, rows_of(matches.undecided), waiting)


def _moment(microseconds: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(microseconds=microseconds)
