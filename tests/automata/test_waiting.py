"""The waiting automaton has the supports of its automaton, and says where there is none."""

from __future__ import annotations

import itertools
import os
import random

import pyarrow as pa
import pytest
from enough import Enough

from cepheid.automata import Alphabet, Automaton, Predicate
from cepheid.automata import waiting as module
from cepheid.automata.construct import construct
from cepheid.automata.transform import trim
from cepheid.automata.transition import Transition, order
from cepheid.automata.waiting import WaitingAutomaton
from cepheid.logical.plan import And, Event, Iterate, Link, Named, Or, Sequence
from cepheid.schema import EventSchema

SCHEMA = EventSchema({"type": pa.string()}, type_column="type")
CASES = int(os.environ.get("CEPHEID_CASES", "200"))
SEED = int(os.environ.get("CEPHEID_SEED", str(random.SystemRandom().randrange(1 << 32))))


def random_pattern(rng, depth):
    if depth == 0 or rng.random() < 0.15:
        event = Event(rng.choice(["A", "B", "C", None]))
        return Named(event, rng.choice("xy")) if rng.random() < 0.5 else event
    parts = [random_pattern(rng, depth - 1) for _ in range(3)]
    return rng.choice(
        [
            Sequence(tuple(parts), (Link(";"), Link(";"))),
            Sequence(tuple(parts[:2]), (Link(";"),)),
            Or(tuple(parts[:2])),
            Iterate(parts[0]),
            And(tuple(parts[:2])),
        ]
    )


def supports_of(automaton, letters):
    """end -> the marked positions of every run of the automaton."""
    open_runs, found = {(automaton.initial, ())}, set()
    for position, letter in enumerate(letters):
        after = {(automaton.initial, ())}
        for state, support in open_runs:
            for move in automaton.outgoing[state]:
                if move.enabled(letter):
                    after.add((move.target, support if move.mark is None else (*support, position)))
        open_runs = after
        found |= {support for state, support in after if state in automaton.finals and support[-1] == position}
    return found


def supports_of_waiting(waiting, letters):
    open_runs, found = {(0, ())}, set()
    for position, letter in enumerate(letters):
        entered = {(target, (*support, position)) for state, support in open_runs for target in waiting.entered(state, letter)}
        found |= {support for state, support in entered if state == waiting.final}
        open_runs |= {(state, support) for state, support in entered if state != waiting.final}
    return found


def test_random_patterns():
    rng = random.Random(SEED)
    drawn = Enough(CASES, merged=1)
    for number in drawn:
        automaton = trim(construct(random_pattern(rng, 3), SCHEMA))
        letters = [rng.randrange(1 << len(automaton.predicates)) for _ in range(rng.randint(0, 7))]
        waiting = WaitingAutomaton.of(automaton)
        if waiting is None:  # AND of different types: there is no match at all
            assert not automaton.finals, (SEED, number)
            continue
        where = (SEED, number, automaton, letters)
        assert supports_of_waiting(waiting, letters) == supports_of(automaton, letters), where
        assert all(move.final == (move.target == waiting.final) for moves in waiting.moves for move in moves), where
        assert all(state in waiting.better[state] for state in range(waiting.waiting + 1)), where
        for one, other in itertools.combinations(range(waiting.waiting + 1), 2):
            assert not (one in waiting.better[other] and other in waiting.better[one]), where
        drawn.seen["merged"] += waiting.waiting < automaton.states - 1 - len(automaton.finals)


def test_better_states_complete_all_that_the_others_do():
    rng = random.Random(SEED)
    for number in range(CASES):
        waiting = WaitingAutomaton.of(trim(construct(random_pattern(rng, 3), SCHEMA)))
        if waiting is None:
            continue
        letters = [rng.randrange(16) for _ in range(6)]
        completions = [completions_of(waiting, state, letters) for state in range(waiting.waiting + 1)]
        for state, others in enumerate(waiting.better):
            assert all(completions[state] <= completions[other] for other in others), (SEED, number)
        states = frozenset(rng.sample(range(1, waiting.waiting + 2), rng.randint(0, waiting.waiting)))
        kept = waiting.essential(states)
        assert kept <= states
        every = [*completions, {()}]
        assert set().union(*(every[s] for s in kept)) == set().union(*(every[s] for s in states)), (SEED, number)


def completions_of(waiting, state, letters):
    """The sets of positions that lead from a state to the final one."""
    open_runs, found = {(state, ())}, set()
    for position, letter in enumerate(letters):
        entered = {(target, (*marks, position)) for source, marks in open_runs for target in waiting.entered(source, letter)}
        found |= {marks for target, marks in entered if target == waiting.final}
        open_runs |= {run for run in entered if run[0] != waiting.final}
    return found


def automaton_of(*transitions, states, finals):
    return Automaton(states, 0, frozenset(finals), order(transitions), Alphabet((Predicate(None, "A"), Predicate(None, "B"))))


A = frozenset({"A"})


def test_what_differs_in_marks_alone_is_one():
    x = frozenset({"A", "x"})
    moves = [Transition(0, 1, 1, A), Transition(0, 2, 1, x), Transition(1, 3, 2, A), Transition(2, 3, 2, x), Transition(2, 3, 3, x)]
    loops = [Transition(1, 1), Transition(2, 2)]
    waiting = WaitingAutomaton.of(automaton_of(*moves, *loops, states=4, finals={3}))
    assert waiting is not None
    assert waiting.waiting == 1
    assert [[(m.requires, m.target, m.final) for m in moves] for moves in waiting.moves] == [[(1, 1, False)], [(2, 2, True)]]


@pytest.mark.parametrize(
    ("name", "transitions"),
    [
        ("a state that does not wait", [Transition(0, 1, 1, A), Transition(1, 2, 2, A)]),
        ("a loop that needs something", [Transition(0, 1, 1, A), Transition(1, 1, 2), Transition(1, 2, 2, A)]),
        ("a loop that forbids something", [Transition(0, 1, 1, A), Transition(1, 1, 0, None, 2), Transition(1, 2, 2, A)]),
        ("a hidden event", [Transition(0, 1, 1, frozenset()), Transition(1, 1), Transition(1, 2, 2, A)]),
        ("an unmarked move", [Transition(0, 1, 1, A), Transition(1, 1), Transition(1, 2, 2, A), Transition(1, 1, 2)]),
    ],
)
def test_outside_the_fragment_there_is_none(name, transitions):
    assert WaitingAutomaton.of(automaton_of(*transitions, states=3, finals={2})) is None, name


def test_large_automata_are_taken_as_they_are(monkeypatch):
    monkeypatch.setattr(module, "SIMULATION_STATES", 2)
    moves = [Transition(0, 1, 1, A), Transition(0, 2, 1, A), Transition(1, 3, 2, A), Transition(2, 3, 2, A)]
    waiting = WaitingAutomaton.of(automaton_of(*moves, Transition(1, 1), Transition(2, 2), states=4, finals={3}))
    assert waiting is not None
    assert waiting.waiting == 2
