"""The alphabet of automata: each bit of a letter means one thing and has one scope, whatever the construction."""

from __future__ import annotations

import random

import pytest
from pattern_cases import CASES, CHOOSING, SCHEMA, SEED, random_pattern

from cepheid.automata import Alphabet, Flag, Program, Scope, Tracker, Transition, end_program, program_of
from cepheid.automata.alphabet import Predicate
from cepheid.automata.supports import labelling
from cepheid.automata.waiting import obstacle
from cepheid.language.syntax import Strategy
from cepheid.logical.plan import Event, Link, Select, Sequence


def check(program: Program) -> None:
    alphabet = program.automaton.alphabet
    masks = [alphabet.mask(scope) for scope in Scope]
    assert sum(masks) == (1 << alphabet.width) - 1, "each bit has one scope, and there is none without"
    asked = 0
    for move in program.automaton.transitions:
        asked |= move.requires | move.forbids
    assert not asked >> alphabet.width, "no transition asks for a bit that means nothing"
    for place, tracker in enumerate(alphabet.trackers):
        earlier = alphabet.mask(Scope.EVENT) | sum(other.mask for other in alphabet.trackers[:place]) | alphabet.mask(Scope.SUPPORT)
        assert all(not (move.requires | move.forbids) & ~earlier for move in tracker.moves), "a tracker reads what is there before it"


def test_every_bit_means_one_thing() -> None:
    rng = random.Random(f"{SEED} alphabet")
    trackers = flags = 0
    for _ in range(CASES):
        pattern = random_pattern(rng, rng.choice((1, 2)))
        whole = program_of(pattern, SCHEMA, variables=None, strategy=Strategy.ALL)
        programs = [whole, end_program(whole, variables=None, strategy=rng.choice(CHOOSING)).chosen]
        if obstacle(whole.automaton) is None:
            programs.append(labelling(whole, whole.label_sets[0]))
        for program in programs:
            check(program)
            trackers += bool(program.trackers)
            flags += len(program.automaton.alphabet.flags)
    assert flags >= CASES
    assert trackers


def test_nested_strategies_have_trackers_behind_each_other() -> None:
    inner = Select(Strategy.NXT, Sequence((Event("A"), Event("B")), (Link(";"),)))
    pattern = Sequence((inner, Select(Strategy.LAST, Sequence((Event("A"), Event("C")), (Link(";"),)))), (Link(";"),))
    program = program_of(pattern, SCHEMA, variables=None, strategy=Strategy.ALL)
    check(program)
    assert [tracker.bit for tracker in program.trackers] == sorted(tracker.bit for tracker in program.trackers)


@pytest.mark.parametrize(
    ("move", "texts"),
    [
        (Transition(0, 1, 0b1), []),
        (Transition(0, 1, 0b0101), ["tracker 1 = 2"]),
        (Transition(0, 1, 0b1000, None, 0b0110), ["tracker 1 = 0", "last event"]),
        (Transition(0, 1, 0, None, 0b1000), ["not last event"]),
    ],
)
def test_what_is_asked_beyond_the_event(move: Transition, texts: list[str]) -> None:
    alphabet = Alphabet((Predicate(type="A"),), (Tracker(1, 3, ()),), (Flag(3, "last event"),))
    assert alphabet.width == 4
    assert list(alphabet.beyond_the_event(move)) == texts
