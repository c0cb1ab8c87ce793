"""Cubes of hundreds of conditions, and states from which the same can follow: the same automaton, made smaller."""

from __future__ import annotations

import contextlib
import itertools
import random
from typing import TYPE_CHECKING

from enough import Enough
from pattern_cases import CASES, SCHEMA, SEED, random_pattern

from cepheid.automata import Program, Transition, program_of
from cepheid.automata import alphabet as alphabets
from cepheid.automata.transform import cubes, determinize, successors, without_twins
from cepheid.errors import LimitError
from cepheid.language.syntax import Strategy

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest


def effects(moves: list[Transition], mask: int) -> set[object]:
    """What an event with this mask makes possible."""
    return {(move.source, move.target, move.mark, move.writes) for move in moves if move.enabled(mask)}


def programs_of(name: str) -> Iterator[Program]:
    """Without end."""
    rng = random.Random(f"{SEED} {name}")
    while True:
        with contextlib.suppress(LimitError):  # of a strategy inside the pattern
            yield program_of(random_pattern(rng, 2), SCHEMA, variables=None, strategy=Strategy.ALL)


def test_each_letter_is_in_one_cube_that_decides_its_effects(monkeypatch: pytest.MonkeyPatch) -> None:
    programs = list(itertools.islice(programs_of("cubes"), CASES))
    usual = [[list(cubes(moves, program.automaton.alphabet)) for moves in program.automaton.outgoing] for program in programs]
    monkeypatch.setattr(alphabets, "SPELLED_BITS", 0)
    for program, before in zip(programs, usual, strict=True):
        alphabet = program.automaton.alphabet
        masks = [mask for mask in range(1 << min(alphabet.width, 8)) if (mask & alphabet.types).bit_count() <= 1]
        for moves, many in zip(program.automaton.outgoing, before, strict=True):
            found = list(cubes(moves, alphabet))
            assert len(found) <= len(many)
            for mask in masks:
                if not all(tracker.possible(mask, ~mask) for tracker in alphabet.trackers):
                    continue
                (cube,) = [cube for cube in found if mask & cube[0] == cube[0] and not mask & cube[1]]
                assert effects(list(moves), mask) == effects(list(moves), cube[0])


def test_alternatives_of_one_effect_are_not_all_subsets() -> None:
    moves = [Transition(0, 1, 1 << bit, frozenset({"x"})) for bit in range(200)]
    alphabet = alphabets.Alphabet(tuple(alphabets.Predicate(bit) for bit in range(200)))
    assert len(list(cubes(moves, alphabet))) == 201


def test_without_twins_reads_the_same() -> None:
    """Determinized, both go the same way on every stream of some letters."""
    drawn = Enough(CASES, programs_of("twins"), fewer=1)
    for program in drawn:
        one, other = program.automaton, without_twins(program.automaton)
        drawn.seen["fewer"] += other.states < one.states
        assert other.states <= one.states
        rng = random.Random(len(one.transitions))
        for _ in range(20):
            pairs = {(1 << one.initial, 1 << other.initial)}
            for _ in range(6):
                mask = rng.getrandbits(one.alphabet.width) & ~one.alphabet.types | rng.choice([0, *(1 << b for b in range(2))])
                following = set()
                for first, second in pairs:
                    steps = successors(one, first, mask), successors(other, second, mask)
                    assert [mark for mark, _ in steps[0].marked] == [mark for mark, _ in steps[1].marked]
                    assert bool(steps[0].unmarked) == bool(steps[1].unmarked)
                    targets = [*zip((to for _, to in steps[0].marked), (to for _, to in steps[1].marked), strict=True)]
                    following |= {*targets, (steps[0].unmarked, steps[1].unmarked)}
                pairs = following
                finals = [sum(1 << state for state in automaton.finals) for automaton in (one, other)]
                assert all(bool(first & finals[0]) == bool(second & finals[1]) for first, second in pairs)
        assert bool(determinize(other).transitions) == bool(one.transitions)  # a pattern may contradict itself
