"""Where timed-cel is wrong as it is printed, each with what shows it; docs/theory/timed.md says what was meant."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from clock_cases import CASES, SEED, A, B, clock_automaton, occurrence, query, random_stream

from cepheid.automata import determinize
from cepheid.errors import NotSupportedError
from cepheid.logical.plan import Event, Interval, Iterate
from cepheid.testing import reference, runs
from cepheid.theory import determinize_timed, has_synchronous_resets, is_deterministic
from cepheid.theory.zones import Zone, clock_moves, greatest_ages

if TYPE_CHECKING:
    from clock_cases import Move


def test_proposition_4_3_an_iteration_of_single_events_forgets_the_gap() -> None:
    """The loop of q_new asks whether 0 is in the interval, not whether the gap is: `A+[<= 1]` takes events 5 apart, if two others are close."""
    begins: list[Move] = [(0, 1, A, (), "A", ()), (0, 2, A, (), "A", [0]), (2, 2, 0, (), None, ()), (2, 1, A, [(0, 0, 1)], "A", ())]
    printed = clock_automaton([*begins, (2, 2, A, (), "A", [0])], [1])
    meant = clock_automaton([*begins, (2, 2, A, [(0, 0, 1)], "A", [0])], [1])
    stream = [occurrence("A", 0), occurrence("A", 5), occurrence("A", 6)]
    expected = set(reference.matches(query(Iterate(Event("A"), gap=Interval(0, 1))), stream))
    assert runs.matches(meant, stream) == expected
    assert {match.support for match in runs.matches(printed, stream) - expected} == {(0, 1, 2)}


def test_lemma_a_4_the_second_automaton_has_no_runs_where_the_first_event_resets() -> None:
    """The first two lines of its transitions, as printed, have those with and without a reset exchanged."""
    moves: list[Move] = [(0, 1, A, (), "x", [0]), (1, 2, B, [(0, 0, 1)], "y", ())]

    def odd(first: bool) -> list[Move]:
        """The transitions of phase 1 (states 0 to 2) and phase 2 (states 3 to 5); first: the reset for which the printed first line asks."""
        found: list[Move] = []
        for source, target, event, tests, mark, resets in moves:
            if bool(resets) is first:
                found.append((source, target + 3, event, (), mark, [0]))
            if resets:
                found.append((source + 3, target, event, tests, mark, ()))
            else:
                found += [(source, target, event, (), mark, ()), (source + 3, target + 3, event, tests, mark, ())]
        return found

    stream = [occurrence("A", 0), occurrence("B", 1), occurrence("B", 2)]
    expected = runs.matches(clock_automaton(moves, [2]), stream)
    assert len(expected) == 1
    assert runs.matches(clock_automaton(odd(first=True), [2, 5]), stream) == expected
    assert runs.matches(clock_automaton(odd(first=False), [2, 5]), stream) == set()


def test_theorem_5_3_resets_may_differ_where_no_run_comes() -> None:
    """The proof says that they "must be the same for every transition". Two states share a set, but their moves have no time in common."""
    moves: list[Move] = [
        (0, 1, A, (), "x", [0, 1]),
        (1, 2, A, (), "x", [0]),
        (1, 3, A, (), "x", [0]),
        (2, 4, B, (), "y", [0]),
        (3, 4, B, [(0, 2, None), (1, 0, 1)], "y", [1]),
    ]
    automaton = clock_automaton(moves, [4])
    assert has_synchronous_resets(automaton)
    with pytest.raises(NotSupportedError, match="store differently in `z0`, `z1`"):
        determinize(automaton)
    found = determinize_timed(automaton)
    assert is_deterministic(found)
    rng = random.Random(f"{SEED} errata")
    for stream in (random_stream(rng, most=7) for _ in range(CASES)):
        assert runs.matches(found, stream) == runs.matches(automaton, stream)


def test_theorem_5_4_a_run_begins_with_empty_clocks_and_not_with_zeros() -> None:
    """From zeros, a move counts that no run takes: the search finds different resets where there are none."""
    automaton = clock_automaton([(0, 1, A, (), "x", [0]), (0, 1, A, [(0, 1, 1, False)], "x", ()), (1, 2, B, [(0, 0, 1)], "y", ())], [2])
    (asking,) = (each for each in clock_moves(automaton) if each.tests and not each.source)
    greatest = greatest_ages(clock_moves(automaton))
    assert list(Zone((0,), ((0, 0), (0, 0))).after(asking.condition, asking.resets, greatest))
    assert not list(Zone().after(asking.condition, asking.resets, greatest))
    assert has_synchronous_resets(automaton)


def test_theorem_5_4_the_search_has_to_reset_clocks_on_its_way() -> None:
    """The printed step goes on with the clocks as they were before the resets: then nothing is at most 1 after it was at least 2."""
    moves: list[Move] = [
        (0, 1, A, (), "x", [0]),
        (1, 2, A, [(0, 2, None)], "x", [0]),
        (2, 3, B, [(0, 0, 1)], "y", [0]),
        (2, 3, B, [(0, 0, 1)], "y", ()),
    ]
    assert not has_synchronous_resets(clock_automaton(moves, [3]))
    moves[1] = (1, 2, A, [(0, 2, None)], "x", ())
    assert has_synchronous_resets(clock_automaton(moves, [3]))
