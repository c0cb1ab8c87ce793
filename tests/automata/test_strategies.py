"""NXT, LAST and MAX as automata, against the reference: random patterns with strategies at random places, and what the automata look like."""

from __future__ import annotations

import random

import pytest
from pattern_cases import CASES, CHOOSING, SCHEMA, SEED, random_pattern, random_types, random_variables

from cepheid.automata import Automaton, program_of, strategy_program
from cepheid.errors import LimitError
from cepheid.language.syntax import Strategy
from cepheid.logical.plan import Pattern, QueryPlan
from cepheid.testing import reference

Found = tuple[int, int, tuple[tuple[str, tuple[int, ...]], ...]]
Marks = tuple[tuple[int, frozenset[str]], ...]


def letters_of(automaton: Automaton, types: str) -> list[int]:
    """The letters of a stream with the states of the trackers before each event."""
    states = [0] * len(automaton.trackers)
    letters = []
    for name in types:
        letter = sum(1 << i for i, p in enumerate(automaton.predicates) if p.type == name)
        for tracker, state in zip(automaton.trackers, states, strict=True):
            letter |= state << tracker.bit
        states = [tracker.successor(state, letter) for tracker, state in zip(automaton.trackers, states, strict=True)]
        letters.append(letter)
    return letters


def by_running(automaton: Automaton, letters: list[int]) -> list[Found]:
    """The complex event of every accepting run of the I/O-determinization, which has one run for each."""
    found: list[Found] = []
    alive: dict[Marks, set[int]] = {}
    for position, letter in enumerate(letters):
        grown: dict[Marks, set[int]] = {}
        for marks, states in [*alive.items(), ((), {automaton.initial})]:
            for state in states:
                for move in automaton.outgoing[state]:
                    if move.enabled(letter):
                        after = marks if move.mark is None else (*marks, (position, move.mark))
                        grown.setdefault(after, set()).add(move.target)
        alive = grown
        found += [complex_event(marks, position) for marks, states in alive.items() if states & automaton.finals]
    return found


def complex_event(marks: Marks, end: int) -> Found:
    variables = sorted({variable for _, mark in marks for variable in mark})
    mapping = tuple((variable, tuple(p for p, mark in marks if variable in mark)) for variable in variables)
    return marks[0][0], end, mapping


def by_definition(pattern: Pattern, types: str, variables: tuple[str, ...], strategy: Strategy = Strategy.ALL) -> set[Found]:
    query = QueryPlan(pattern, SCHEMA, variables, strategy=strategy)
    events = [reference.Event(name, None, {"type": name}) for name in types]
    return {(m.start, m.end, tuple((v, p) for v, p in m.mapping if p)) for m in reference.matches(query, events, max_matches=20_000)}


def test_strategies_nested_anywhere() -> None:
    print(f"CEPHEID_SEED={SEED}")  # noqa: T201 - to run a failure again
    rng = random.Random(SEED)
    matched = limited = tracked = 0
    for _ in range(CASES):
        pattern = random_pattern(rng, 3)
        variables = random_variables(rng)
        try:
            program = program_of(pattern, SCHEMA, variables=variables, strategy=Strategy.ALL)
        except LimitError:
            limited += 1
            continue
        tracked += bool(program.trackers)
        for _ in range(3):
            types = random_types(rng)
            expected = by_definition(pattern, types, variables)
            found = by_running(program.automaton, letters_of(program.automaton, types))
            assert set(found) == expected, (SEED, pattern, types, variables)
            assert len(found) == len(expected), (SEED, pattern, types, variables)
            matched += bool(expected)
    assert limited <= CASES // 20
    assert tracked >= CASES // 10
    assert matched >= CASES // 4


@pytest.mark.parametrize("strategy", CHOOSING)
def test_strategies_of_a_whole_pattern(strategy: Strategy) -> None:
    rng = random.Random(f"{SEED}/{strategy}")
    for _ in range(CASES // 2):
        pattern, variables, types = random_pattern(rng, 3, 0.05), random_variables(rng), random_types(rng)
        try:
            program = strategy_program(pattern, SCHEMA, variables=variables, strategy=strategy)
        except LimitError:
            continue
        found = by_running(program.automaton, letters_of(program.automaton, types))
        expected = by_definition(pattern, types, variables, strategy)
        assert sorted(found) == sorted(expected), (SEED, pattern, types, variables)
