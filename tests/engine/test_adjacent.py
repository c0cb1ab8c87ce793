"""Where `:` alone bounds a match, events are forgotten as in a window: the same matches, a state that does not grow, and older state is read."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from enough import Enough

import cepheid
from cepheid.engine.plan import planner
from cepheid.testing.differential import Case, check, draws, finished, pieces, rows_of, ways_of
from cepheid.testing.generators import COMPARING, NESTED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cepheid.testing.differential import Row

OPERATORS = (("atom", 1), ("named", 2), ("chain", 10), ("either", 2), ("both", 1), ("optional", 1), ("filter", 4))

FRAGMENTS = {
    "local conditions": dataclasses.replace(NESTED, operators=OPERATORS, windows=("",), absence=0.15),
    "strategies inside": dataclasses.replace(NESTED, operators=(*OPERATORS, ("select", 3)), windows=("",)),
    "comparisons": dataclasses.replace(COMPARING, operators=OPERATORS, windows=("",), count=0.0),
}


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_the_same_matches_and_older_state_is_read(fragment: str, cases: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Older: written where nothing was forgotten, by a version without this bound."""
    drawn = Enough(cases // 2, draws(FRAGMENTS[fragment], seed=seed, longest=30), bounded=5, matched=2)
    for case in drawn:
        found = None
        for way, of in ways_of(case).items():
            rows = of(case, None)
            if found is None:
                check(case, found := rows)
            assert rows == found, f"{way}\n{case}"
        compiled = compiled_of(case.query, case.events)
        if not compiled.from_adjacency:
            continue
        drawn.seen["bounded"] += 1
        drawn.seen["matched"] += bool(found)
        with monkeypatch.context() as patched:
            patched.setattr(planner, "widest", lambda _: None)
            older = cepheid.query(case.query.text)
            before = compiled_of(older, case.events)
            assert (before.count_window, before.fingerprint, before.method) == (None, compiled.fingerprint, compiled.method), str(case)
        for order in ((older, case.query), (case.query, older)):
            assert sorted(in_turns(case, order)) == sorted(found), str(case)


def compiled_of(query: cepheid.Query, events: pa.Table) -> planner.Compiled:
    return query.compiled(query.schema(events.schema))


def in_turns(case: Case, queries: Sequence[cepheid.Query]) -> list[Row]:
    """The matches of recognizers of the two queries, each of which goes on from the other's snapshot."""
    first, second = (query.recognizer(case.events.schema) for query in queries)
    found: list[Row] = []
    for piece in pieces(case.random("in turns"), case.events):
        found += rows_of(first.push(piece))
        first, second = second.restore(first.snapshot()), first
    return found + finished(first)


@pytest.mark.parametrize("keys", ["", " PARTITION BY k"])
@pytest.mark.parametrize(
    "pattern",
    ["A AS x : B AS y", "A AS x : A AS y FILTER y.v > x.v", "ANY AS x : A AS y", "(A : B OR A : A : A):{2}", "NXT(A AS x : B AS y)"],
)
@pytest.mark.parametrize("select", ["*", "LAST *"])
def test_events_are_forgotten(select: str, pattern: str, keys: str, seed: int) -> None:
    query = cepheid.query(f"SELECT {select} WHERE {pattern}{keys}")
    rng = np.random.default_rng(seed)
    sizes, held = [], []
    recognizer = query.recognizer(pa.schema([("type", pa.string()), ("ts", pa.int64()), ("k", pa.int64()), ("v", pa.int64())]))
    for number in range(60):
        columns = {
            "type": rng.choice(["A", "A", "B"], 1_000),
            "ts": np.arange(1_000) + 1_000 * number,
            "k": rng.integers(0, 5, 1_000),
            "v": rng.integers(0, 100, 1_000),
        }
        assert len(recognizer.push(pa.table(columns)))
        sizes.append(len(recognizer.snapshot()))
        held.append(recognizer.memory_usage())
    assert max(sizes) < 8_000
    assert max(held[30:]) < 1.5 * max(held[:30])


def test_a_window_that_is_written_counts() -> None:
    """And where other events may come between two, there is no bound."""
    events = pa.table({"type": ["A"], "ts": [0], "k": [0], "v": [0]})
    wanted = {
        "A : B": (2, True),
        "A : B WITHIN 9 EVENTS": (9, False),
        "A : B WITHIN 5": (None, False),
        "A ; B": (None, False),
        "A:{3,}": (None, False),
        "A": (None, False),
    }
    found = {where: compiled_of(cepheid.query(f"SELECT * WHERE {where}"), events) for where in wanted}
    assert {where: (compiled.count_window, compiled.from_adjacency) for where, compiled in found.items()} == wanted
    assert compiled_of(cepheid.query("SELECT COUNT(*) WHERE A : B"), events).count_window is None
    assert "window      2 events (from `:` alone)" in str(cepheid.query("SELECT * WHERE A : B").explain())
