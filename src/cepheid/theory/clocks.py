"""Theorems of timed-cel as transformations of automata with clocks: determinize, do with two clocks, drop what no run has the time for.

Comes in: an automaton whose registers are clocks, from `construct` or written by hand. Goes out: another one with the same matches. `classes` says in
which class an automaton is, `formulas` goes back to a pattern. Not done here: evaluation, which determinizes lazily and any automaton (`regions`).
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from cepheid.automata.transform import determinize, hide, reached, trim, united
from cepheid.automata.transition import order
from cepheid.errors import LimitError, NotSupportedError
from cepheid.theory.classes import AT_MOST, check_zones, has_synchronous_resets, is_deterministic, monotonic_in
from cepheid.theory.zones import Zone, assembled, clock_moves, greatest_ages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cepheid.automata.automaton import Automaton
    from cepheid.automata.transition import Transition
    from cepheid.theory.zones import ClockMove

DETERMINIZED = 8
"""Most states, and most predicates with guards, of an automaton that `one_clock` determinizes to find out its class."""

START, LAST_MARK = "time of the first event", "time of the last marked event"
"""The names of the clocks that `two_clocks` leaves; name in paper: z_N and z_X."""


def determinize_timed(automaton: Automaton) -> Automaton:
    """A deterministic automaton with the same matches and clocks (timed-cel, Theorem 5.3).

    Its states are sets of states, and its transitions decide every predicate and guard that matters there. An unmarked event and one that is marked
    with no variable have the same output, as in the paper, so an inner event with an empty mark has none afterwards. Raises NotSupportedError
    for an automaton without synchronous resets, LimitError past `transform.MAX_DETERMINISTIC_STATES`, and as `has_synchronous_resets`.
    At most 2^states states, and 2^(predicates + guards) transitions for each of them and each mark.
    """
    marked = (dataclasses.replace(move, mark=move.mark or frozenset()) for move in automaton.transitions)
    whole = dataclasses.replace(automaton, transitions=order(marked))
    return hide(_united(determinize(whole, synchronous=has_synchronous_resets(whole))))


def _united(automaton: Automaton) -> Automaton:
    """With fewer transitions: those that differ in what they ask alone ask no more than they need."""
    asked: dict[Transition, list[tuple[int, int]]] = {}
    for move in automaton.transitions:
        asked.setdefault(dataclasses.replace(move, requires=0, forbids=0), []).append((move.requires, move.forbids))
    types = automaton.alphabet.types
    moves = (
        dataclasses.replace(move, requires=requires, forbids=forbids)
        for move, cubes in asked.items()
        for requires, forbids in united(cubes, types)
    )
    return dataclasses.replace(automaton, transitions=order(moves))


def trim_timed(automaton: Automaton) -> Automaton:
    """Only the transitions that some accepting run takes, by the times that its clocks may have; trimmed.

    `trim` does the same by the transitions alone. Explores states with zones: exponential in the clocks and in the digits of their bounds, at worst.
    Raises LimitError past `classes.ZONE_LIMIT`, and NotSupportedError for an automaton that is no timed complex event automaton.
    """
    moves = clock_moves(automaton)
    outgoing: list[list[int]] = [[] for _ in range(automaton.states)]
    for number, each in enumerate(moves):
        outgoing[each.source].append(number)
    greatest = greatest_ages(moves)
    first = (automaton.initial, Zone())
    numbers, todo = {first: 0}, [first]
    steps: list[tuple[int, int, int]] = []
    while todo:
        state, zone = node = todo.pop()
        for number in outgoing[state]:
            each = moves[number]
            for after in zone.after(each.condition, each.resets, greatest):
                target = each.target, after
                if target not in numbers:
                    check_zones(len(numbers))
                    numbers[target] = len(numbers)
                    todo.append(target)
                steps.append((numbers[node], numbers[target], number))
    accepting = [number for (state, _), number in numbers.items() if state in automaton.finals]
    alive = reached(accepting, [(target, source) for source, target, _ in steps])
    taken = {automaton.transitions[number] for _, target, number in steps if target in alive}
    return trim(dataclasses.replace(automaton, transitions=order(taken)))


def two_clocks(automaton: Automaton) -> Automaton:
    """The same matches with at most two clocks and synchronous resets (timed-cel, Theorem 5.5).

    One clock is reset by the first event, the other one by each event that is marked with a variable. So resets depend on the output alone. Any
    windowed pattern (`classes.is_windowed`) has such an automaton. Raises NotSupportedError where a clock is asked that is neither, as behind a
    window inside a sequence or a gap after an event that PROJECT hides. O(transitions x states x clocks) at worst.
    """
    moves = clock_moves(automaton)
    known = _known(moves, automaton)
    asked = {(each.source, test.clock) for each in moves for test in each.tests}
    for state, clock in sorted(asked):
        if not any(clock in holds[state] for holds in known.values()):
            raise NotSupportedError(
                f"two clocks are not enough: `{automaton.alphabet.names[clock]}` is asked where it need not be the {START}, nor the {LAST_MARK}",
                help="ask only for gaps between neighbouring marked events and for windows over the whole pattern",
            )
    # One of them will do where it is what all guards ask.
    alone = [name for name, holds in known.items() if all(clock in holds[state] for state, clock in asked)]
    names = [] if not asked else alone[:1] or [START, LAST_MARK]
    changed = []
    for each in moves:
        clocks = {clock: next(names.index(name) for name in names if clock in known[name][each.source]) for clock, *_ in each.tests}
        resets = {START} if each.source == automaton.initial else set()
        resets |= {LAST_MARK} if each.output else set()
        changed.append(
            dataclasses.replace(
                each,
                tests=frozenset(test._replace(clock=clocks[test.clock]) for test in each.tests),
                resets=frozenset(names.index(name) for name in resets.intersection(names)),
            )
        )
    return assembled(automaton, changed, names)


def one_clock(automaton: Automaton, *, window: bool = False) -> Automaton | None:
    """An automaton with the same matches that is deterministic and monotonic and has one clock at most, where one is found (timed-cel, Theorem 6.1).

    window: whether matches are bounded besides, by an upper bound on the time of the whole match that is not in the automaton. Tries the automaton as
    it is, with fewer clocks (`two_clocks`), and determinized, this up to DETERMINIZED. None says that none of these is in the class.
    """
    try:
        if not window and len(automaton.alphabet.registers) <= 1 and is_deterministic(automaton) and monotonic_in(automaton):
            return automaton
        found = two_clocks(automaton)
        if len(found.alphabet.registers) > 1 or (window and LAST_MARK in found.alphabet.names):
            return None
        if not is_deterministic(found):
            if max(found.states, found.alphabet.width) > DETERMINIZED:
                return None
            found = trim_timed(determinize_timed(found))
    except (NotSupportedError, LimitError):
        return None
    directions = monotonic_in(found)
    return found if (AT_MOST in directions if window else directions) else None


def _known(moves: Sequence[ClockMove], automaton: Automaton) -> dict[str, list[frozenset[int]]]:
    """For each state the clocks that certainly hold the time of the run's first event, and those that hold the time of its last marked one."""
    # Where a run can come back to the initial state, a move from there need not be its first.
    begins = all(each.target != automaton.initial for each in moves)

    def after(name: str, before: frozenset[int], each: ClockMove) -> frozenset[int]:
        if each.output if name == LAST_MARK else begins and each.source == automaton.initial:
            return each.resets
        return before - each.resets

    found = {}
    for name in (START, LAST_MARK):
        holds = [frozenset(range(len(automaton.alphabet.registers)))] * automaton.states
        holds[automaton.initial] = frozenset()
        changed = True
        while changed:
            changed = False
            for each in moves:
                met = holds[each.target] & after(name, holds[each.source], each)
                changed |= met != holds[each.target]
                holds[each.target] = met
        found[name] = holds
    return found
