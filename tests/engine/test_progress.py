"""Progress is said while one event, or one step, takes long by itself; where nobody asks nothing is done for it."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pyarrow as pa
import pytest
from slowness import FACTOR
from test_interruption import LONG, PYTHON

import cepheid
from cepheid.engine.evaluations import base, progress

SAID = 0.6 * FACTOR
"""Seconds of computing within which it is said, beside those between two calls."""

LISTENS = 0.4
"""Seconds of computing after which nobody listens any more."""


def pairs(count: int) -> pa.Table:
    """A and B at random, then a C."""
    rng = np.random.default_rng(count)
    types = [*np.array(["A", "B"])[rng.integers(0, 2, count)].tolist(), "C"]
    return pa.table({"type": types, "ts": range(count + 1), "k": rng.integers(0, 50, count + 1), "v": rng.integers(0, 1_000, count + 1)})


HARD = {
    "MAX over comparisons": ("SELECT MAX * WHERE (A AS a ; B AS b FILTER b.k > a.k)+ ; C", pairs(400)),
    "used up": ("SELECT * WHERE A+ ; B CONSUME BY PARTITION", pa.table({"type": ["A"] * 60 + ["B"], "ts": range(61)})),
}
"""What takes long at one event."""

SETS = {
    "NXT over sets of values": (
        "SELECT NXT * WHERE (A AS a ; B AS b)+ ; C AS c FILTER c.k > a.k - b.k AND b.v <= a.v + 100 WITHIN 16 EVENTS",
        pairs(100_000),
    ),
}
"""What takes long at each of many events."""

ALL = LONG | PYTHON | SETS | HARD


class HeardEnough(Exception):
    """Nobody listens any more."""


def said(work) -> list[tuple[float, int, int]]:
    """When progress was said, in seconds of computing, and what; the work is then given up."""
    calls = []
    start = time.process_time()

    def told(done: int, rows: int) -> None:
        calls.append((time.process_time() - start, done, rows))
        if calls[-1][0] > LISTENS:
            raise HeardEnough

    try:
        work(told)
    except HeardEnough:
        return calls
    return [*calls, (time.process_time() - start, -1, -1)]


def longest(calls: list[tuple[float, int, int]]) -> float:
    """The longest time in which nothing was said."""
    return max(after - before for before, after in itertools.pairwise([0.0, *(seconds for seconds, _, _ in calls)]))


def ways(query: cepheid.Query, events: pa.Table):
    yield "run", lambda told: query.run(events, max_bytes=1 << 60, progress=told)
    yield "reader", lambda told: query.run(events.to_reader(max_chunksize=1 << 16), max_bytes=1 << 60, progress=told)
    yield "batches", lambda told: [len(part) for part in query.batches(events, progress=told)]


@pytest.mark.parametrize("name", ALL)
def test_progress_is_said_however_long_an_event_takes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "EVERY", 0.05)
    text, events = ALL[name]
    query = cepheid.query(text)
    query.run(events.slice(0, 10))
    for way, work in ways(query, events):
        calls = said(work)
        # On a busy machine computing itself is slower at times; what is late by itself is late each time.
        for _ in range(2):
            calls = calls if longest(calls) < SAID else said(work)
        assert longest(calls) < SAID, f"{way}: {longest(calls):.2f} s"
        done = [done for _, done, _ in calls if done >= 0]
        assert done == sorted(done), way
        if name in HARD:
            assert len(set(done)) < len(done), "one event takes long"


SLOW = "SELECT * WHERE A+ ; B LIMIT 200000"
EVENTS = pa.table({"type": ["A"] * 20 + ["B", "X"], "ts": range(22)})


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel comes back all the time, and all that is known is said."""
    monkeypatch.setattr(base, "BUDGET", 0)
    monkeypatch.setattr(progress, "EVERY", 0.0)


def told_by(work) -> list[tuple[int, int]]:
    calls: list[tuple[int, int]] = []
    work(lambda *told: calls.append(told))
    return calls


@pytest.mark.usefixtures("often")
def test_it_is_said_which_event_takes_long() -> None:
    query = cepheid.query(SLOW)
    for rows, work in (
        (22, lambda told: query.run(EVENTS, progress=told)),
        (0, lambda told: query.run(EVENTS.to_reader(), progress=told)),
        (22, lambda told: list(query.batches(EVENTS, progress=told))),
        (22, lambda told: cepheid.queries({"one": query}).run(EVENTS, progress=told)),
    ):
        calls = told_by(work)
        assert calls[-1] == (22, rows)
        assert {in_all for _, in_all in calls} == {rows}
        assert calls == sorted(calls)
    assert calls.count((0, 22)) > 20, "several queries do not say it of each event"
    for work in (lambda told: query.run(EVENTS, progress=told), lambda told: list(query.batches(EVENTS, progress=told))):
        assert told_by(work).count((20, 22)) > 5


def test_calls_are_not_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that moves on by a tenth of a second each time that a kernel comes back."""
    clock = [0.0]
    monkeypatch.setattr(progress, "monotonic", lambda: clock[0])
    monkeypatch.setattr(base, "BUDGET", 0)
    call = base.KernelLoop._call

    def later(self) -> str:
        clock[0] += 0.1
        return call(self)

    monkeypatch.setattr(base.KernelLoop, "_call", later)
    calls: list[float] = []
    cepheid.query(SLOW).run(EVENTS, progress=lambda *_: calls.append(clock[0]))
    between = [after - before for before, after in itertools.pairwise(calls)]
    assert len(calls) > 10
    assert min(between[:-1]) > 0.29
    assert max(between) < 0.5


@pytest.mark.usefixtures("often")
def test_nobody_hears_of_another_run() -> None:
    """Not of one inside the function, and not of one between two batches."""
    query, other = cepheid.query(SLOW), cepheid.query("SELECT * WHERE A+ ; A")
    calls: list[tuple[int, int]] = []
    own: list[int] = []

    def told(*said: int) -> None:
        calls.append(said)
        if len(calls) < 5:
            before = len(calls)
            other.run(EVENTS.slice(0, 6))
            assert len(calls) == before
            other.run(EVENTS.slice(0, 6), progress=lambda done, _: own.append(done))
            assert len(calls) == before

    query.run(EVENTS, progress=told)
    assert own[-1] == 6
    calls.clear()
    for _ in query.batches(EVENTS, progress=lambda *said: calls.append(said)):
        before = len(calls)
        other.run(EVENTS)
        assert len(calls) == before
    assert len(calls) > 20


@pytest.mark.usefixtures("often")
def test_the_function_can_end_the_run() -> None:
    query = cepheid.query(SLOW)

    def told(done: int, _rows: int) -> None:
        if done == 20:
            raise HeardEnough

    for work in (lambda: query.run(EVENTS, progress=told), lambda: list(query.batches(EVENTS, progress=told))):
        with pytest.raises(HeardEnough):
            work()
    assert len(query.run(EVENTS)) == 200_000


def test_matches_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "EVERY", 0.0)
    for text, events in ALL.values():
        query, few = cepheid.query(text), events.slice(max(0, events.num_rows - 12), 12)
        assert list(query.run(few, progress=lambda *_: None)) == list(query.run(few))


def test_nothing_is_done_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked() -> float:
        raise AssertionError

    monkeypatch.setattr(progress, "monotonic", asked)
    monkeypatch.setattr(base, "BUDGET", 0)
    query = cepheid.query(SLOW)
    assert len(query.run(EVENTS)) == sum(map(len, query.batches(EVENTS))) == 200_000
