"""Every method that can do a query gives its matches, not only the one that the planner takes: all cases, and random ones of every class."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from enough import Enough

import cepheid
from cepheid.testing import cases as toml
from cepheid.testing.cases import GivenMatch
from cepheid.testing.differential import check, draws, rows_of, ways_of
from cepheid.testing.fragments import FRAGMENTS
from cepheid.testing.methods import alternatives, anew

if TYPE_CHECKING:
    from cepheid.engine.output.matches import Match
    from cepheid.testing.differential import Row

OTHERS = {"match graph", "per end", "guarded", "guarded choice", "guarded count"}
"""Ways that are tried beside the planner's: what it asks before these it takes whenever it can."""

FILES = sorted((Path(__file__).parents[1] / "cases").glob("*.toml"))


def test_the_cases() -> None:
    """All files together, so that it can be counted how often each way is tried."""
    tried: Counter[str] = Counter()
    for case in [case for path in FILES for case in toml.load(path) if not case.skip]:
        query = cepheid.query(case.query, args=case.args)
        options = {} if case.until is None else {"until": case.until}
        taken = triggers(rows_of(query.run(case.table, **options)))
        for way in alternatives(query, query.schema(case.table.schema)):
            with way():
                found = anew(query).run(case.table, **options)
                where = f"{case.name} by {way}"
                if case.counts is not None:
                    assert [[match.end, match.measures["count"]] for match in found] == case.counts, where
                elif case.rows is not None:
                    assert sorted(map(str, case.rows)) == sorted(str(list(match.measures.values())) for match in found), where
                else:
                    answer: dict[toml.Key, list[GivenMatch]] = defaultdict(list)
                    for match in found:
                        answer[tuple(match.keys.values())].append(given(match))
                    assert case.fault(answer) is None, where
                assert case.undecided_fault(map(given, found.undecided)) is None, where
                assert triggers(rows_of(found)) == taken, where
            tried[str(way)] += 1
    assert {way for way, times in tried.items() if times >= 5} >= OTHERS


def given(match: Match) -> GivenMatch:
    """A match, as cases compare it."""
    return GivenMatch(match.start, match.end, match.variables)


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_random_queries(fragment: str, cases: int, seed: int) -> None:
    """However the events come, with snapshots and restores: by the definition, and the events that end matches in the same order."""
    drawn = Enough(cases // 12, draws(FRAGMENTS[fragment], seed=seed), tried=3)
    for case in drawn:
        taken = triggers(rows_of(case.query.run(case.events)))
        for way in alternatives(case.query, case.query.schema(case.events)):
            other = dataclasses.replace(case, query=anew(case.query))
            with way():
                for name, come in ways_of(other).items():
                    found = come(other, None)
                    check(other, found)
                    if name == "whole":
                        assert triggers(found) == taken, f"by {way}\n{case}"
            drawn.seen["tried"] += 1


def triggers(rows: list[Row]) -> list[tuple[object, int]]:
    """What ends each match: the order of these is promised, that of the matches of one event is not."""
    return [(row.key, row.end) for row in rows]
