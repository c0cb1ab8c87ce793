"""The constructions against the reference: the same complex events for random patterns on random streams."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from enough import Enough

from cepheid.automata import Automaton, program_of
from cepheid.language.syntax import Strategy
from cepheid.logical import plan
from cepheid.logical.plan import All, And, Event, Iterate, Link, Named, Or, Project, QueryPlan, Select, Sequence, Unless
from cepheid.schema import EventSchema
from cepheid.testing import reference

if TYPE_CHECKING:
    from cepheid.logical.plan import Pattern

SCHEMA = EventSchema({"type": pa.string()}, type_column="type")
CASES = int(os.environ.get("CEPHEID_CASES", "200"))
SEED = int(os.environ.get("CEPHEID_SEED", "7"))

Found = tuple[int, int, tuple[tuple[str, tuple[int, ...]], ...]]


def random_pattern(rng: random.Random, depth: int) -> Pattern:
    if depth == 0 or rng.random() < 0.15:
        event: Pattern = Event(rng.choice(["A", "B", "C", None]))
        return Named(event, rng.choice("xy")) if rng.random() < 0.4 else event
    parts = [random_pattern(rng, depth - 1) for _ in range(3)]
    links = (Link(rng.choice(";;:")), Link(rng.choice(";;:")))
    unwanted = random_pattern(rng, 1)
    shown = frozenset(rng.sample(["A", "B", "x", "y"], rng.randint(0, 2)))
    return rng.choice(
        [
            Sequence(tuple(parts), links),
            Sequence(tuple(parts[:2]), links[:1]),
            Or(tuple(parts[:2])),
            Iterate(parts[0], adjacent=rng.random() < 0.3),
            Iterate(parts[0], rng.random() < 0.3, None, *rng.choice([(1, 2), (2, 2), (2, None), (1, 3), (1, 1)])),
            with_options(parts, links, rng),
            And(tuple(parts[:2])),
            All(tuple(parts[:2])),
            Unless(parts[0], unwanted),
            Sequence(tuple(parts[:2]), (Link(";", without=unwanted),)),
            Project(shown, parts[0]),
            Named(parts[0], rng.choice("xyz")),
            Select(Strategy.STRICT, parts[0]),
        ]
    )


def with_options(parts: list[Pattern], links: tuple[Link, Link], rng: random.Random) -> Pattern:
    """A sequence of five, of which up to four are optional."""
    items = [*parts, Event("A"), parts[0]]
    there = rng.randrange(len(items))
    free = [plan.Optional(item) if place != there and rng.random() < 0.7 else item for place, item in enumerate(items)]
    return Sequence(tuple(free), (*links, Link(rng.choice(";;:")), Link(rng.choice(";:"))))


def by_running(automaton: Automaton, types: str) -> list[Found]:
    """The complex event of every accepting run of the I/O-determinization, which has one run for each."""
    found: list[Found] = []
    alive: dict[tuple[tuple[int, frozenset[str]], ...], set[int]] = {}
    for position, name in enumerate(types):
        letter = sum(1 << i for i, p in enumerate(automaton.predicates) if p.type == name)
        grown: dict[tuple[tuple[int, frozenset[str]], ...], set[int]] = {}
        for marks, states in [*alive.items(), ((), {automaton.initial})]:
            for state in states:
                for move in automaton.outgoing[state]:
                    if move.enabled(letter):
                        after = marks if move.mark is None else (*marks, (position, move.mark))
                        grown.setdefault(after, set()).add(move.target)
        alive = grown
        found += [complex_event(marks, position) for marks, states in alive.items() if states & automaton.finals]
    return found


def complex_event(marks: tuple[tuple[int, frozenset[str]], ...], end: int) -> Found:
    variables = sorted({variable for _, mark in marks for variable in mark})
    mapping = tuple((variable, tuple(p for p, mark in marks if variable in mark)) for variable in variables)
    return marks[0][0], end, mapping


@pytest.mark.parametrize("strategy", [Strategy.ALL, Strategy.STRICT])
def test_random_patterns(strategy: Strategy) -> None:
    rng = random.Random(SEED)
    drawn = Enough(CASES, matched=5)
    for _ in drawn:
        pattern = random_pattern(rng, 3)
        types = "".join(rng.choice("ABC") for _ in range(rng.randint(0, 7)))
        variables = tuple(rng.sample(["A", "B", "C", "ANY", "x", "y", "z"], rng.randint(0, 7)))
        query = QueryPlan(pattern, SCHEMA, variables, strategy=strategy)
        expected = {
            (m.start, m.end, tuple((v, p) for v, p in m.mapping if p))
            for m in reference.matches(query, [reference.Event(t, None, {"type": t}) for t in types])
        }
        program = program_of(pattern, SCHEMA, variables=variables, strategy=strategy)
        found = by_running(program.automaton, types)
        assert set(found) == expected, (SEED, pattern, types, variables)
        assert len(found) == len(expected), (SEED, pattern, types, variables)
        drawn.seen["matched"] += bool(expected)


def test_fragment_has_every_construction() -> None:
    """The generator above draws every node class that has a construction."""
    rng = random.Random(1)
    drawn: set[type] = set()

    def walk(pattern: Pattern) -> None:
        drawn.add(type(pattern))
        for child in pattern.children():
            walk(child)

    for _ in range(300):
        walk(random_pattern(rng, 3))
    from cepheid.automata.construct import CONSTRUCTIONS

    # Conditions and windows are tested through whole queries.
    assert drawn == set(CONSTRUCTIONS) - {plan.Filter, plan.Within, plan.WithinEvents}
