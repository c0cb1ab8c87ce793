"""Matches that may begin before the event that is read first, for a match has made one of their events: what the constructions store and ask for it.

Where an event begins is a value of it (`plan.Begin`). All events of a match begin where it begins or later. So where any of them may be the one that
says where it begins (`everywhere`, under ALL), a lower bound may be asked of each, and the least of them is where the match begins.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from cepheid.automata.registers import Before, Compares, Elapsed, Gathered, Now, Store
from cepheid.logical import plan

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cepheid.automata.fragment import Fragment
    from cepheid.automata.guards import Guards
    from cepheid.automata.registers import Test
    from cepheid.automata.transition import Transition


def behind(ended: int, *, adjacent: bool) -> Test:
    """Whether a pattern begins behind the one before it, wherever it is read; ended: the register with the place where that one ends."""
    place = plan.Begin.of("place")
    return Elapsed(Before(ended), place, plan.Interval(1, 1)) if adjacent else Compares(Before(ended), "<", place)


def asking(guards: Guards, body: Fragment, tests: Iterable[Test], *, everywhere: bool) -> Fragment:
    """A fragment with guards on where its matches begin."""
    if not everywhere:
        return guards.asking_first(body, tests)
    tests = tuple(tests)
    return body.changed(lambda move: move if move.mark is None else guards.asking(move, tests))


def asking_last(
    guards: Guards, body: Fragment, stored: tuple[int, str], tests: tuple[Test, ...], own: tuple[Test, ...], *, everywhere: bool
) -> Fragment:
    """A fragment whose last event asks about where the match begins.

    stored: the register that keeps it, and the kind of the `plan.Begin`. tests: about the register. own: the same about the last event itself, for it
    may be the one that says it.
    """
    register, begin = stored[0], plan.Begin.of(stored[1])

    def changed(move: Transition) -> Transition:
        first = move.source == body.initial
        if move.target in body.finals:
            asked = () if first else tests
            return guards.asking(move, (*asked, *own) if first or everywhere else asked)
        if first:
            return dataclasses.replace(move, writes=move.writes | {Store(register, Now(begin))})
        if everywhere and move.mark is not None:
            return dataclasses.replace(move, writes=move.writes | {Store(register, Gathered("min", Before(register), begin))})
        return move

    return body.changed(changed)
