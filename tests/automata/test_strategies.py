"""NXT, LAST and MAX as automata, against the reference: random patterns with strategies at random places, and what the automata look like."""

from __future__ import annotations

import os
import random

import pyarrow as pa
import pytest

from cepheid.automata import Automaton, program_of, strategy_program
from cepheid.errors import LimitError
from cepheid.language.syntax import Strategy
from cepheid.logical.plan import And, Event, Iterate, Link, Named, Or, Pattern, Project, QueryPlan, Select, Sequence
from cepheid.schema import EventSchema
from cepheid.testing import reference

SCHEMA = EventSchema({"type": pa.string()}, type_column="type")
CASES = int(os.environ.get("CEPHEID_CASES", "200"))
SEED = int(os.environ.get("CEPHEID_SEED", str(random.SystemRandom().randrange(1 << 32))))
CHOOSING = (Strategy.NXT, Strategy.LAST, Strategy.MAX)

Found = tuple[int, int, tuple[tuple[str, tuple[int, ...]], ...]]
Marks = tuple[tuple[int, frozenset[str]], ...]


def random_pattern(rng: random.Random, depth: int, strategies: float = 0.4) -> Pattern:
    if rng.random() < strategies and depth > 0:
        return Select(
            rng.choice([*CHOOSING, *CHOOSING, Strategy.STRICT]), random_pattern(rng, depth - (rng.random() < 0.7), strategies / 2)
        )
    if depth == 0 or rng.random() < 0.15:
        event: Pattern = Event(rng.choice(["A", "B", "C", None]))
        return Named(event, rng.choice("xy")) if rng.random() < 0.4 else event
    parts = [random_pattern(rng, depth - 1, strategies) for _ in range(3)]
    links = (Link(rng.choice(";;:")), Link(rng.choice(";;:")))
    shown = frozenset(rng.sample(["A", "B", "x", "y"], rng.randint(0, 2)))
    return rng.choice(
        [
            Sequence(tuple(parts), links),
            Sequence(tuple(parts[:2]), links[:1]),
            Or(tuple(parts[:2])),
            Iterate(parts[0], adjacent=rng.random() < 0.3),
            And((parts[0], Or(tuple(parts[:2])))),
            Project(shown, parts[0]),
            Named(parts[0], rng.choice("xyz")),
        ]
    )


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


def random_variables(rng: random.Random) -> tuple[str, ...]:
    return tuple(rng.sample(["A", "B", "C", "ANY", "x", "y", "z"], rng.randint(0, 7)))


def random_types(rng: random.Random) -> str:
    return "".join(rng.choice("ABC") for _ in range(rng.randint(0, 7)))


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
