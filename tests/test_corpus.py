"""The corpus of `bench_corpus.py`: every query compiles, and has the matches of the definition."""

from __future__ import annotations

import functools
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import cepheid
from cepheid.language.syntax import Strategy
from cepheid.testing import reference
from cepheid.testing.differential import answers

if TYPE_CHECKING:
    import pyarrow as pa

    from cepheid.query import Query

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"

with pytest.MonkeyPatch.context() as patched:
    patched.syspath_prepend(str(BENCHMARKS))
    import bench_corpus

ENTRIES = {entry.name: entry for entry in bench_corpus.entries()}

FEW, MORE = (60, 6), (300, 60)
"""Events and keys: up to twelve events of a key, of which the definition looks at each choice."""

STREAMS = {
    "a key for all, by equalities": [FEW],
    "a key behind a first event": [FEW],
    "a key of another column in each step": [FEW],
    "cliff: a key carried over a middle event": [FEW],
    "at most one alert in five seconds": [(40, 10)],
    "at most one alert in five seconds, one key": [(40, 10)],
}
"""Of queries for which the definition would have to look at too many matches otherwise."""

MOST = 3_000
"""Matches of a part of a query that the definition looks at: more take seconds."""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "run", functools.partial(reference.run, max_matches=MOST))


@pytest.mark.parametrize("name", ENTRIES)
def test_the_matches_are_those_of_the_definition(name: str) -> None:
    query = cepheid.query(ENTRIES[name].query)
    for events, keys in STREAMS.get(name, [FEW, MORE]):
        table = bench_corpus.stream(events, ENTRIES[name].types, keys=keys)
        found = query.run(table)
        check(query, table, found)
        assert bench_corpus.pushes(query, table) == len(found)


def check(query: Query, table: pa.Table, found: Any) -> None:
    """All matches with their measures; where the language leaves the choice open, how many there are of each trigger, and that each is one."""
    plan = query.bound(query.schema(table.schema))
    if plan.limit is None and plan.strategy not in {Strategy.ANY, Strategy.RESTRICTED}:
        assert rows(found) == rows(query.run(table, engine="reference"))
        return
    expected, _ = answers(query, table)
    candidates = {(*row.key, row.start, row.end) for answer in expected.values() for row in answer.candidates}
    assert {(*match.keys.values(), match.start, match.end) for match in found} <= candidates
    triggers = Counter((tuple(match.keys.values()), match.end) for match in found)
    assert triggers == {trigger: answer.choose for trigger, answer in expected.items()}


def rows(matches: Any) -> Counter[str]:
    return Counter(str((match.keys, match.start, match.end, match.measures or match.variables)) for match in matches)


def test_each_question_has_several_spellings() -> None:
    assert len(ENTRIES) >= 120
    spellings = Counter(entry.same for entry in ENTRIES.values() if entry.same is not None)
    assert all(times > 1 for times in spellings.values()), spellings
