"""What a push costs follows its events, and not the keys that the recognizer knows: counted in bytes of the memory that it takes, if only for a moment.

A step that walks all keys makes an array of them: with numpy, of which `tracemalloc` knows, or with Arrow, which counts all that it takes.
"""

from __future__ import annotations

import tracemalloc

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.engine.evaluations import base as running
from cepheid.engine.evaluations.absences.absence import Absence
from cepheid.engine.plan.compiled import Compiled
from cepheid.engine.run import member, members
from cepheid.engine.run.query_state import QueryState

FEW, MANY = 100, 100_000

WALK = MANY
"""Bytes: what a walk of all keys takes at least."""

WARM, EVENTS = 70, 20
"""Events that are pushed before, so that the first look for idle keys has been, and of each kind of pushes."""

KEYED = "PARTITION BY k WITHIN 1000000"

QUERIES = {
    "a window": f"SELECT * WHERE A ; B ; C {KEYED}",
    "a window of events": "SELECT * WHERE A ; B ; C PARTITION BY k WITHIN 9 EVENTS",
    "CONSUME BY": f"SELECT * WHERE A ; B {KEYED} CONSUME BY PARTITION",
    "HAVING and CONSUME BY": f"SELECT MAX sum(t.v) AS d WHERE A+ AS t {KEYED} HAVING d > 900 CONSUME BY PARTITION",
    "NXT": f"SELECT NXT * WHERE A ; B ; C {KEYED}",
    "LAST": f"SELECT LAST * WHERE A ; B ; C {KEYED}",
    "MAX": f"SELECT MAX * WHERE A ; B ; C {KEYED}",
    "end by end": f"SELECT LAST * WHERE A : B ; C {KEYED}",
    "RESTRICTED": f"SELECT RESTRICTED * WHERE A ; B ; C {KEYED}",
    "COUNT(*)": f"SELECT COUNT(*) WHERE A ; B ; C {KEYED}",
    "guards": f"SELECT * WHERE A AS a ; B AS b FILTER b.v > a.v {KEYED}",
    "guards in Python": f"SELECT * WHERE A AS a ; B AS b ; C AS c FILTER c.v > a.v + b.v {KEYED}",
    "an equality": "SELECT * WHERE A AS a ; B AS b FILTER b.k = a.k WITHIN 1000000",
    "lag": f"SELECT * WHERE A AS a ; B AS b FILTER b.v > lag(b.v) {KEYED}",
    "negation": f"SELECT * WHERE A ; NOT (D ; D) ; C {KEYED}",
    "NOT FOLLOWED BY": f"SELECT * WHERE A ; B NOT FOLLOWED BY C FOR 100 {KEYED}",
    "FROM START": f"SELECT * WHERE A ; B NOT FOLLOWED BY C FOR 100 FROM START {KEYED}",
    "THEN": f"SELECT * WHERE A THEN B THEN C {KEYED}",
    "a definition": f"EVENT P(v) AS (SELECT last(B.v) AS v WHERE A ; B {KEYED}) SELECT * WHERE P ; C {KEYED}",
}


def events(count: int, *, keys: int, start: int, fresh: bool = False) -> pa.Table:
    rng = np.random.default_rng(start)
    columns = {
        "type": pa.array(list("ABCD")).take(pa.array(rng.integers(0, 4, count))),
        "ts": start + np.arange(count),
        "v": rng.integers(0, 1_000, count),
        "k": start + np.arange(count) if fresh else rng.integers(0, keys, count),
    }
    return pa.table(columns)


def pushes(keys: int) -> tuple[list[pa.Table], dict[str, list]]:
    """What fills a recognizer, and then pushes of every kind."""
    warm = events(WARM, keys=keys, start=keys)
    fill = [events(keys, keys=keys, start=0, fresh=True), *(warm.slice(place, 1) for place in range(WARM))]
    later = [events(EVENTS, keys=keys, start=keys + WARM + EVENTS * part, fresh=part == 3) for part in range(4)]
    kinds = {
        "dicts": later[0].to_pylist(),
        "batches of one": later[1].to_batches(max_chunksize=1),
        "batches": later[2].to_batches(max_chunksize=5),
        "new keys": later[3].to_batches(max_chunksize=1),
    }
    return fill, kinds


@pytest.fixture(scope="module")
def streams() -> dict[int, tuple[list[pa.Table], dict[str, list]]]:
    return {keys: pushes(keys) for keys in (FEW, MANY)}


def taken(recognizer, stream) -> dict[str, int]:
    """For each kind of push how many bytes all of them take: numpy's of each at its peak, and Arrow's.

    But for the one that takes most: it may double an array, for all the pushes that come after it.
    """
    fill, kinds = stream
    for part in fill:
        recognizer.push(part)
    pool, found = pa.default_memory_pool(), {}
    tracemalloc.start()
    try:
        for kind, parts in kinds.items():
            each = []
            for part in parts:
                held, taken_before = tracemalloc.get_traced_memory()[0], pool.total_bytes_allocated()
                tracemalloc.reset_peak()
                recognizer.push(part)
                each.append(tracemalloc.get_traced_memory()[1] - held + pool.total_bytes_allocated() - taken_before)
            found[kind] = sum(each) - max(each)
    finally:
        tracemalloc.stop()
    return found


def compared(make, streams) -> None:
    few, many = (taken(make(), streams[keys]) for keys in (FEW, MANY))
    assert {kind: (few[kind], many[kind]) for kind in few if many[kind] > 1.3 * few[kind] + WALK} == {}


@pytest.mark.parametrize("name", QUERIES)
def test_a_push_costs_what_its_events_cost(name, streams) -> None:
    query, schema = cepheid.query(QUERIES[name]), streams[FEW][0][0].schema
    compared(lambda: query.recognizer(schema), streams)


def test_events_that_wait_for_late_ones(streams) -> None:
    query, schema = cepheid.query(QUERIES["a window"]), streams[FEW][0][0].schema
    compared(lambda: query.recognizer(schema, lateness=50), streams)


def test_several_queries(streams) -> None:
    several = cepheid.queries({name: QUERIES[name] for name in ("CONSUME BY", "lag")})
    compared(lambda: several.recognizer(streams[FEW][0][0].schema), streams)


@pytest.mark.parametrize("several", [False, True])
def test_looks_for_idle_keys_cost_what_events_cost(monkeypatch: pytest.MonkeyPatch, streams, several: bool) -> None:
    """However many pushes the events come in."""
    walked, expire = [], QueryState.expire

    def counted(self, now):
        walked.append(self.partitions.slots)
        return expire(self, now)

    monkeypatch.setattr(member, "IDLE_CHECK", 1)
    monkeypatch.setattr(members, "IDLE_CHECK", 1)
    monkeypatch.setattr(QueryState, "expire", counted)
    query, schema = cepheid.query(QUERIES["a window"]), streams[FEW][0][0].schema
    for keys in (FEW, MANY):
        recognizer = (cepheid.queries({"one": query.text, "two": QUERIES["CONSUME BY"]}) if several else query).recognizer(schema)
        (first, *fill), kinds = streams[keys]
        recognizer.push(first)
        walked.clear()
        later = [*fill, *kinds["batches of one"]]
        for part in later:
            recognizer.push(part)
        assert sum(walked) <= (1 + several) * (member.LOOKED_AT * len(later) + keys)


@pytest.mark.parametrize("name", QUERIES)
def test_memory_that_is_taken_again_at_once_is_not_given_back(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """What a look finds empty the next events take: to move the whole state into a smaller one, at each look, costs many times what a look costs."""
    keys, size, pushes = 20_000, 500, 40
    made: list[object] = []
    for kind in (Compiled, Absence):

        def counted(self, *, evaluation=kind.evaluation, **options):
            made.append(self)
            return evaluation(self, **options)

        monkeypatch.setattr(kind, "evaluation", counted)
    monkeypatch.setattr(member, "IDLE_CHECK", 4)
    monkeypatch.setattr(running, "SHRINK_FROM", 1 << 13)
    fill = events(keys, keys=keys, start=0, fresh=True)
    recognizer = cepheid.query(QUERIES[name].replace("1000000", "100")).recognizer(fill.schema)
    recognizer.push(fill)
    made.clear()
    for place in range(pushes):
        recognizer.push(events(size, keys=keys, start=keys + size * place))
    assert len(made) <= 1, "a state of all keys is moved at most once, after the first push, which is larger"
