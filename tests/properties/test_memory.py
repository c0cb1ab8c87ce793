"""Memory is that of the live state: after many events a recognizer holds about what one holds that a snapshot of it has restored.

Random queries of every kind with a window, and some by name for every method of evaluation, over streams that are dense for a while and sparse
after it. Both recognizers read the end of the stream, so that what they remember of the query (transitions, letters) is the same.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import itertools
import random
import weakref
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.engine.evaluations import base as running
from cepheid.engine.evaluations.graph.match import Evaluation
from cepheid.engine.evaluations.guards.guarded_methods import CARRIED, UNMARKED
from cepheid.engine.input import payload
from cepheid.engine.plan.methods import METHODS
from cepheid.engine.run import member
from cepheid.errors import LimitError
from cepheid.schema import schema_of
from cepheid.testing import generators
from cepheid.testing.generators import ABSENT, COMPARING, ENGINE, NESTED, RESTRICTING, TYPES, WAITING

if TYPE_CHECKING:
    from cepheid.engine.run.recognizer import Recognizer

FRAGMENTS = {
    "any pattern": ENGINE,
    "any pattern, a strategy": dataclasses.replace(ENGINE, strategies=("NXT", "LAST", "MAX")),
    "RESTRICTED": RESTRICTING,
    "NXT, LAST, MAX": WAITING,
    "nested strategies": NESTED,
    "absence": ABSENT,
    "COUNT(*)": dataclasses.replace(ENGINE, count=1.0),
    "comparisons": dataclasses.replace(COMPARING, strategies=("", "ALL", "ANY", "STRICT", "NXT", "LAST")),
}

NAMED = (
    "A ; B ; C {}",
    "A+ ; B ; C {}",
    "A{{12}} {}",
    "A{{4}} ; B {} PARTITION BY k",
    "A : B+ ; C {}",
    "A AS x ; B AS y FILTER y.v >= x.v {}",
)
"""Patterns for every strategy; what one event adds to the store of `A{{12}}` under MAX is hundreds of entries."""

ITERATED = (
    "A AS x ; B+ AS y ;[<= 5] C AS z FILTER z.v = x.v {}",
    "(A AS t FILTER t.v != prev(t).v)+ {} PARTITION BY k",
    "A ; NOT (B ;[<= 5] C) ; B {} PARTITION BY k",
    "(A ALL B) UNLESS (C ; C) {}",
)
"""Comparisons in iterations, and negation: for every strategy but MAX, which compares all matches of an event, up to a limit."""

SELECTS = ("*", "ANY *", "RESTRICTED *", "STRICT *", "NXT *", "LAST *", "MAX *", "COUNT(*)")

WINDOWS = ("WITHIN 40", "WITHIN 40 EVENTS", "WITHIN 40 WITHIN 50 EVENTS")

PUSH = 40
"""Events of a push: few, so that no buffer of matches becomes large."""

MANY = 1 << 18
"""Bytes of the matches of a call that are compared."""

FACTOR, SMALL = 3, 1 << 16
"""What a recognizer may hold: so many times what the restored one holds, and so many bytes."""


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is given back from a few kilobytes on, and soon, so that short streams show what long ones do."""
    monkeypatch.setattr(member, "IDLE_CHECK", 4)
    monkeypatch.setattr(running, "SHRINK_FROM", 1 << 13)
    monkeypatch.setattr(payload, "LEAST_COMPACTION", 1 << 6)


def stream(rng: random.Random, count: int, *, dense: int) -> pa.Table:
    """Events of the columns of random streams: the first `dense` of them many at a time, the others few and mostly of no type that a query names."""
    draw = np.random.default_rng(rng.randrange(1 << 32))
    early = np.arange(count) < dense
    steps = np.where(early, draw.random(count) < 0.1, draw.integers(0, 4, count))
    kinds = np.where(early | (draw.random(count) < 0.3), draw.integers(0, len(TYPES), count), len(TYPES))
    columns = {
        "type": np.array([*TYPES, "X"])[kinds],
        "ts": np.cumsum(steps),
        "k": draw.integers(1, 4, count),
        "v": draw.integers(0, 4, count),
        "w": draw.integers(1, 7, count) / 2,
        "s": np.array(["a", "ab", "b", ""])[draw.integers(0, 4, count)],
        "b": draw.random(count) < 0.5,
    }
    return pa.table([pa.array(column) for column in columns.values()], names=list(columns)).cast(generators.SCHEMA)


def push(run: Recognizer, events: pa.Table) -> None:
    for start in range(0, len(events), PUSH):
        run.push(events.slice(start, PUSH))


def check(query: cepheid.Query, events: pa.Table, seed: int, *, short: bool = False) -> None:
    """The memory after all events against that of a restored recognizer, and snapshots of the second half against those of the first.

    short: the events are too few for the restored one to have met the states of the query that the other has; then snapshots alone are compared.
    """
    run, shorter = query.recognizer(events.schema), len(events) * 9 // 10
    sizes = []
    for start in range(0, shorter, 2 * PUSH):
        push(run, events.slice(start, min(2 * PUSH, shorter - start)))
        sizes.append(len(run.snapshot()))
    again = query.recognizer(events.schema).restore(run.snapshot())
    for one in (run, again):
        push(one, events.slice(shorter))
    where = f"CEPHEID_SEED={seed} {query.text}"
    assert short or run.memory_usage() <= FACTOR * again.memory_usage() + SMALL, where
    assert len(run.snapshot()) <= FACTOR * len(again.snapshot()) + SMALL, where
    half = len(sizes) // 2
    assert max(sizes[half:]) <= FACTOR * max(sizes[:half]) + SMALL, where


@pytest.mark.parametrize("group", FRAGMENTS)
def test_random_queries(group: str, cases: int, seed: int) -> None:
    fragment = dataclasses.replace(FRAGMENTS[group], windows=("time", "events", "both"), limit=0.0)
    for number in range(max(5, cases // 10)):
        rng = random.Random(f"{seed} memory {group} {number}")
        query = limited(generators.random_query(rng, fragment=fragment))
        with contextlib.suppress(LimitError):  # a tracker of too many states: counted in test_nested.py
            promised = query.compiled(schema_of(generators.SCHEMA)).guarantee.update
            # Groups of values that are kept may be many at every event, and each is asked.
            short = CARRIED in promised or UNMARKED in promised
            count, dense = (160, 50) if short else (1_600, 500)
            check(query, stream(rng, count, dense=rng.choice([0, dense])), seed, short=short)


def limited(text: str) -> cepheid.Query:
    """A query with one match per trigger: how many there are is not what is measured."""
    return cepheid.query(text if "COUNT(*)" in text else f"{text} LIMIT 1")


@pytest.mark.parametrize("group", FRAGMENTS)
def test_what_is_given_back_is_not_missed(monkeypatch: pytest.MonkeyPatch, group: str, cases: int, seed: int) -> None:
    """The matches of pushes, between which all is moved together that can be, are those of all events at once."""
    monkeypatch.setattr(member, "IDLE_CHECK", 1)
    monkeypatch.setattr(member, "LOOKED_AT", 1 << 20)
    monkeypatch.setattr(running, "SHRINK_FROM", 0)
    monkeypatch.setattr(running, "SHRINK_RATIO", 1)
    compared, count = 0, max(5, cases // 10)
    for number in range(count):
        rng = random.Random(f"{seed} given back {group} {number}")
        query = cepheid.query(
            generators.random_query(rng, fragment=dataclasses.replace(FRAGMENTS[group], windows=("time", "events"), limit=0.0))
        )
        events = stream(rng, 120, dense=60)
        recognizer = query.recognizer(events.schema, max_bytes=MANY)
        with contextlib.suppress(LimitError):  # of dense events as many matches as they have subsets, or a tracker of too many states
            found = [match for start in range(0, 120, 8) for match in recognizer.push(events.slice(start, 8))]
            found += list(recognizer.undecided())
            whole = query.run(events, max_bytes=MANY)
            wanted = [*whole, *whole.undecided]
            assert sorted(map(str, found)) == sorted(map(str, wanted)), f"CEPHEID_SEED={seed} {query.text}"
            compared += 1
    assert 4 * compared >= count, f"CEPHEID_SEED={seed}: {compared} of {count}"


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize(
    ("select", "pattern"), [(select, pattern) for select in SELECTS for pattern in (*NAMED, *(() if "MAX" in select else ITERATED))]
)
def test_named_queries(select: str, pattern: str, window: str, seed: int) -> None:
    rng = random.Random(f"{seed} {select} {pattern} {window}")
    query = limited(f"SELECT {select} WHERE {pattern.format(window)}")
    check(query, stream(rng, 2_400, dense=800 * (WINDOWS.index(window) % 2)), seed)


def test_every_method_is_measured() -> None:
    schema = schema_of(generators.SCHEMA)
    queries = (limited(f"SELECT {select} WHERE {pattern.format(WINDOWS[0])}") for select in SELECTS for pattern in NAMED)
    assert {query.compiled(schema).method for query in queries} == set(METHODS)


def test_memory_that_gives_nothing_back_is_not_moved_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fresh state is as large, whatever it is taken for."""
    monkeypatch.setattr(Evaluation, "wasteful", True)
    monkeypatch.setattr(member, "IDLE_CHECK", 1)
    keys = 4_000
    events = pa.table({"type": ["B"] * keys + ["X"] * 40, "ts": range(keys + 40), "k": [*range(keys), *range(40)]})
    recognizer = cepheid.query("SELECT * WHERE B ; C PARTITION BY k WITHIN 100000").recognizer(events.schema)
    for start, stop in ((0, keys - 1_000), (keys - 1_000, keys)):  # which leaves room for more
        recognizer.push(events.slice(start, stop - start))
    evaluations = []
    for place in range(40):
        recognizer.push(events.slice(keys + place, 1))
        evaluations.append(recognizer._member.state.evaluation)
    assert sum(one is not other for one, other in itertools.pairwise(evaluations)) <= 1


@pytest.mark.parametrize("select", SELECTS)
@pytest.mark.parametrize("pattern", [*NAMED, "A ; NOT (B ;[<= 5] C) ; C {}"])
def test_an_evaluation_is_gone_once_nobody_has_it(select: str, pattern: str) -> None:
    """Without the garbage collector, which comes late where a process has many objects: its arrays may be large."""
    query = cepheid.query(f"SELECT {select} WHERE {pattern.format('WITHIN 9')}")
    table = stream(random.Random(1), 60, dense=60)
    gc.disable()
    try:
        evaluation = query.compiled(query.schema(table)).evaluation()
        parts = [evaluation, getattr(evaluation, "evaluation", evaluation)]
        gone = [weakref.ref(part) for part in parts]
        del evaluation, parts
        assert [ref() for ref in gone] == [None, None]
    finally:
        gc.enable()
