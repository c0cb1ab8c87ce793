"""Gaps, windows inside patterns and conditions between events as automata with registers and guards, against the definition."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest

import cepheid
from cepheid.automata import Automaton, construct, hide, trim
from cepheid.automata.transform import project
from cepheid.errors import LimitError
from cepheid.logical.rewrite import rewrite
from cepheid.testing import generators, reference, runs
from cepheid.testing.harness import events_of

if TYPE_CHECKING:
    from cepheid.logical.plan import QueryPlan
    from cepheid.testing.denotation import Match
    from cepheid.testing.evaluate import Event

CASES = int(os.environ.get("CEPHEID_CASES", "200"))
SEED = int(os.environ.get("CEPHEID_SEED", "7"))
MAX_MATCHES = 2_000
"""Most matches of a case's sub-patterns; one that has more is passed over, for the runs of an automaton are many more."""


def shown(matches: set[Match], variables: tuple[str, ...]) -> set[Match]:
    return {type(match)(match.start, match.end, tuple(each for each in match.mapping if each[0] in variables)) for match in matches}


def by_runs(automaton: Automaton, plan: QueryPlan, events: list[Event]) -> set[Match]:
    return runs.matches(hide(project(automaton, plan.variables)), events)


@pytest.mark.parametrize("fragment", ["TIMED", "CORRELATED", "GUARDED"])
def test_random_patterns(fragment: str) -> None:
    rng = random.Random(f"{SEED} {fragment}")
    asked, found, cases = 0, 0, 0
    while cases < CASES:
        text = generators.random_query(rng, fragment=getattr(generators, fragment))
        rows = generators.random_stream(rng, most=7)
        query = cepheid.query(text)
        schema = query.schema(generators.SCHEMA, type="type", time="ts")
        plan, events = query.bound(schema), events_of(rows, schema)
        try:
            expected = set(reference.matches(plan, events, max_matches=MAX_MATCHES))
        except LimitError:
            continue
        automaton = construct(plan.pattern, schema)
        assert by_runs(automaton, plan, events) == expected, (text, rows)
        rewritten = rewrite(plan)
        if not rewritten.derived_keys:
            assert by_runs(construct(rewritten.pattern, schema), plan, events) == expected, ("rewritten", text, rows)
        whole = runs.matches(hide(automaton), events)
        assert shown(whole, plan.variables) == expected, ("without SELECT's projection", text, rows)
        assert runs.matches(trim(automaton), events) == runs.matches(automaton, events), ("trimmed", text, rows)
        cases += 1
        asked += bool(automaton.alphabet.guards)
        found += bool(expected) and bool(automaton.alphabet.guards)
    assert asked > CASES / 3
    assert found > CASES / 20
