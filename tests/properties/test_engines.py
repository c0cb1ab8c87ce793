"""The main test: random queries on random streams mean the same on every path of evaluation.

reference = uncompiled = compiled = compiled with bounds checks = cut into random batches = snapshot and restore at random points. (Spark:
tests/spark/test_batch_random.py.) CEPHEID_CASES cases per path (200 by default), from CEPHEID_SEED (random by default; every failure prints it).
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import random
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

import cepheid
from cepheid.errors import LimitError
from cepheid.schema import schema_of
from cepheid.testing import generators, reference

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from cepheid.engine.matches import Matches
    from cepheid.query import Query

CASES = int(os.environ.get("CEPHEID_CASES", "200"))
SEED = int(os.environ.get("CEPHEID_SEED", random.SystemRandom().randrange(1 << 32)))

Row = tuple[tuple[Any, ...], int, int, tuple[tuple[str, tuple[int, ...]], ...]]
"""A match as a value: key, start, end, mapping without empty variables."""


@dataclass(frozen=True)
class Case:
    """A query, its events, and for each trigger (key and end) the matches that may be given and how many."""

    number: int
    text: str
    query: Query
    events: pa.Table
    expected: dict[tuple[tuple[Any, ...], int], tuple[frozenset[Row], int]]

    def __str__(self) -> str:
        return f"CEPHEID_SEED={SEED} case {self.number}\n{self.text}\n{self.events.to_pylist()}"


@cache
def cases() -> list[Case]:
    """CASES cases; every other one has timestamps instead of a numeric time."""
    found: list[Case] = []
    for number in itertools.count():
        if len(found) == CASES:
            break
        rng = random.Random(f"{SEED}/{number}")
        timed = number % 2 == 1
        text = generators.random_query(rng, fragment=dataclasses.replace(generators.ENGINE, unit="s" if timed else ""))
        rows = generators.random_stream(rng, most=12 if number % 3 else 7)
        events = generators.table(rows, timed=timed)
        query = cepheid.query(text)
        try:
            expected = by_definition(query, events)
        except LimitError:  # too many matches for the definition: as the generator says, take the next
            continue
        found.append(Case(number, text, query, events, expected))
    return found


def by_definition(query: Query, events: pa.Table) -> dict[tuple[tuple[Any, ...], int], tuple[frozenset[Row], int]]:
    plan = query.bound(schema_of(events.schema))
    times = events["ts"].cast("int64").to_pylist()
    given = [reference.Event(row["type"], time, row) for row, time in zip(events.to_pylist(), times, strict=True)]
    return {
        (partition.key, group.end): (
            frozenset((partition.key, m.start, m.end, tuple((v, p) for v, p in m.mapping if p)) for m in group.candidates),
            group.choose,
        )
        for partition in reference.run(plan, given, max_matches=3_000).partitions
        for group in partition.groups
    }


def rows_of(matches: Matches) -> list[Row]:
    return [(tuple(m.keys.values()), m.start, m.end, tuple(sorted((v, p) for v, p in m.variables.items() if p))) for m in matches]


def check(case: Case, found: list[Row]) -> None:
    assert len(found) == len(set(found)), f"duplicates\n{case}"
    by_trigger: dict[tuple[tuple[Any, ...], int], set[Row]] = {}
    for row in found:
        by_trigger.setdefault((row[0], row[2]), set()).add(row)
    for trigger, (candidates, choose) in case.expected.items():
        chosen = by_trigger.pop(trigger, set())
        assert chosen <= candidates, f"not matches at {trigger}: {chosen - candidates}\n{case}"
        assert len(chosen) == choose, f"{len(chosen)} of {choose} at {trigger}; missing {candidates - chosen}\n{case}"
    assert not by_trigger, f"triggers that are none: {by_trigger}\n{case}"


def pieces(rng: random.Random, table: pa.Table) -> Iterator[pa.Table]:
    cuts = sorted(rng.randint(0, len(table)) for _ in range(rng.randint(0, 4)))
    for begin, end in zip([0, *cuts], [*cuts, len(table)], strict=True):
        yield table.slice(begin, end - begin)


@pytest.mark.parametrize("engine", ["python", "compiled", "checked", "reference"])
def test_engines(engine: str) -> None:
    matched = 0
    for case in cases():
        found = rows_of(case.query.run(case.events, engine=engine))
        check(case, found)
        matched += bool(found)
    # More than half of them on average; the number of matches itself varies too much to be held to anything.
    assert matched >= CASES // 4


@pytest.mark.parametrize("engine", ["python", "compiled", "checked"])
def test_however_the_input_is_cut(engine: str) -> None:
    """The same matches in the same order, also those that ANY and LIMIT choose."""
    for case in cases():
        rng = random.Random(case.number)
        recognizer = case.query.recognizer(case.events.schema, engine=engine)
        found = [row for piece in pieces(rng, case.events) for row in rows_of(recognizer.push(piece))]
        found += rows_of(recognizer.flush())
        assert found == rows_of(case.query.run(case.events)), str(case)


@pytest.mark.parametrize("engine", ["python", "compiled", "checked"])
def test_snapshot_and_restore(engine: str) -> None:
    for case in cases():
        rng = random.Random(-case.number)
        found: list[Row] = []
        snapshot = None
        for piece in pieces(rng, case.events):
            recognizer = case.query.recognizer(case.events.schema, engine=engine, snapshot=snapshot)
            found += rows_of(recognizer.push(piece))
            snapshot = recognizer.snapshot()
        assert found == rows_of(case.query.run(case.events)), str(case)


def test_the_events_shown_are_those_at_the_positions() -> None:
    """`m[x]` and `to_arrow(events=True)` show the rows of the input, whether it came whole or in pieces."""
    for case in cases()[: CASES // 4]:
        whole = case.query.run(case.events)
        recognizer = case.query.recognizer(case.events.schema)
        cut = [match for piece in pieces(random.Random(case.number), case.events) for match in recognizer.push(piece)]
        shown = whole.to_arrow(events=True).to_pylist()
        rows = case.events.to_pylist()
        for match, other, line in zip(whole, cut, shown, strict=True):
            mine = [row for row in rows if all(same(row[name], value) for name, value in match.keys.items())] if match.keys else rows
            for variable, positions in match.variables.items():
                assert same(match[variable], [mine[position] for position in positions]), str(case)
                assert same(other[variable], match[variable]), str(case)
                assert same(line[variable], match[variable]), str(case)


def same(first: object, second: object) -> bool:
    """Equality in which NaN equals itself."""
    return repr(first) == repr(second)
