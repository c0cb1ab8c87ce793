"""Examples 4.1, 4.2 and 5.1 of timed-cel: the automata of the paper, written by hand, and those of its formulas have the same matches.

Name in paper: a clock z is a register that holds the time of its reset; `z <= 5` is a guard. The filter of temperatures is >= 40, as the paper's
answers need it.
"""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from enough import Enough
from pattern_cases import CASES, SEED

import cepheid
from cepheid.automata import Automaton, Transition, construct, hide
from cepheid.automata.alphabet import Alphabet, Guard
from cepheid.automata.predicates import of_condition
from cepheid.automata.regions import Regions
from cepheid.automata.registers import Before, Elapsed, Now, Register, Store
from cepheid.automata.transform import project
from cepheid.automata.transition import order
from cepheid.logical.plan import Apply, Field, Interval, Literal, Time
from cepheid.schema import EventSchema
from cepheid.testing import events, reference, runs
from cepheid.testing.harness import events_of
from cepheid.theory import is_deterministic

if TYPE_CHECKING:
    from cepheid.automata.regions import Macro
    from cepheid.logical.plan import QueryPlan

SCHEMA = EventSchema({"type": pa.string(), "ts": pa.int64(), "temp": pa.int64(), "hum": pa.int64()}, type_column="type", time_column="ts")
NOW = Time("", pa.int64())
HOT, DRY = 1, 2
X, Y = frozenset({"x"}), frozenset({"y"})


def attribute(name: str) -> Field:
    return Field("", (name,), pa.int64(), pa.int64())


def automaton(moves: list[Transition], *clocks: tuple[int, int]) -> Automaton:
    """With a guard for each (clock, its upper bound)."""
    asked = ((">=", "temp", 40), ("<", "hum", 25))
    predicates = tuple(of_condition(Apply(op, (attribute(name), Literal(n, pa.int64())), pa.bool_()), SCHEMA) for op, name, n in asked)
    guards = tuple(Guard(2 + number, Elapsed(Before(clock), NOW, Interval(0, bound))) for number, (clock, bound) in enumerate(clocks))
    registers = tuple(Register(f"z{number}") for number in range(1 + max(clock for clock, _ in clocks)))
    states = 1 + max(move.target for move in moves)
    return Automaton(states, 0, frozenset({states - 1}), order(moves), Alphabet(predicates, guards=guards, registers=registers))


def reset(clock: int) -> frozenset[Store]:
    return frozenset({Store(clock, Now(NOW))})


T1 = automaton(
    [
        Transition(0, 1, HOT, X, writes=reset(0)),
        Transition(1, 1),
        Transition(1, 2, HOT | 4),
        Transition(2, 2),
        Transition(2, 3, DRY | 8, Y),
    ],
    (0, 1000),
    (0, 5000),
)
"""Example 4.1: one clock."""

T2 = automaton(
    [
        Transition(0, 1, HOT, X, writes=reset(0)),
        Transition(1, 1),
        Transition(1, 2, HOT, X, writes=reset(1)),
        Transition(2, 2),
        Transition(2, 3, DRY | 4, Y),
        Transition(3, 3),
        Transition(3, 4, DRY | 8, Y),
    ],
    (0, 5000),
    (1, 5000),
)
"""Example 4.2: two windows that overlap."""

PHI_1 = "SELECT x, y WHERE PROJECT x, y ((T AS x ;[<= 1000] T ; H AS y) FILTER T[temp >= 40] AND H[hum < 25] WITHIN 5000)"
"""Example 3.1."""

PHI_3 = (
    "SELECT x, y WHERE PROJECT x, y ("
    "(((T AS x ; T AS x ; H AS y) WITHIN 5000) ; H AS y) AND (T AS x ; ((T AS x ; H AS y ; H AS y) WITHIN 5000))"
    " FILTER x[temp >= 40] AND y[hum < 25])"
)
"""The formula of example 4.2: a conjunction of nested windows."""

STREAMS = (
    "H1200(hum=25) T1330(temp=45) H2500(hum=20) H3700(hum=25) T4500(temp=40) T5300(temp=42) T5900(temp=25) H6100(hum=70) H7200(hum=18)",
    "T0(temp=41) T1000(temp=42) H2000(hum=20) H4000(hum=10) H5500(hum=10) H7000(hum=10)",
)
"""The stream of figure 1, and one with pairs."""


def plan_of(text: str) -> QueryPlan:
    return cepheid.query(text).bound(SCHEMA)


def random_park(rng: random.Random) -> str:
    found, time = [], 0
    for _ in range(rng.randint(2, 9)):
        time += rng.choice((300, 1000, 2500))
        kind = f"T{time}(temp={rng.choice((39, 40, 45))})" if rng.random() < 0.5 else f"H{time}(hum={rng.choice((20, 24, 25))})"
        found.append(kind)
    return " ".join(found)


@pytest.mark.parametrize(("by_hand", "formula"), [(T1, PHI_1), (T2, PHI_3)])
def test_the_automaton_of_the_paper_defines_the_query_of_its_formula(by_hand: Automaton, formula: str) -> None:
    rng, plan = random.Random(f"{SEED} {formula}"), plan_of(formula)
    built = hide(project(construct(plan.pattern, SCHEMA), plan.variables))
    drawn = Enough(CASES, itertools.chain(STREAMS, (random_park(rng) for _ in itertools.count())), matched=3)
    for text in drawn:
        given = events_of(events(text), SCHEMA)
        expected = set(reference.matches(plan, given))
        assert runs.matches(by_hand, given) == expected, text
        assert runs.matches(built, given) == expected, text
        drawn.seen["matched"] += bool(expected)


def test_examples_on_the_streams_of_the_paper() -> None:
    park, pairs = (events_of(events(text), SCHEMA) for text in STREAMS)
    assert {(match.start, match.end) for match in runs.matches(T1, park)} == {(4, 8)}
    assert {match.support for match in runs.matches(T2, pairs)} == {(0, 1, 2, 3), (0, 1, 2, 4), (0, 1, 3, 4)}


def test_example_5_1_the_second_automaton_is_deterministic_and_the_first_is_not() -> None:
    assert is_deterministic(T2)
    assert not is_deterministic(T1)
    assert {move.source for move in T1.transitions if move.mark is None and not move.stays} == {1}


def test_example_5_2_the_first_automaton_can_be_determinized_with_one_clock() -> None:
    regions = Regions(T1)
    seen: set[Macro] = {regions.initial}
    todo = [regions.initial]
    while todo:
        macro = todo.pop()
        for mask in range(4):
            step = regions.step(macro, mask)
            targets = {target for region in (*step.marked, *(step.unmarked or ())) for target, _ in region.targets}
            todo += targets - seen
            seen |= targets
    assert {tuple(state for state, _ in macro.configurations) for macro in seen} == {(0,), (1,), (1, 2)}
    assert max(macro.slots for macro in seen) == 1
    assert not regions.ambiguous
