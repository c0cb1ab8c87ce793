"""Matches that may begin before the event that is read first, for a match has made one of their events: what the constructions store and ask for it.

Where an event begins is a value of it (`plan.Begin`). All events of a match begin where it begins or later. So where any of them may be the one that
says where it begins (`everywhere`, under ALL), a lower bound may be asked of each, what holds the earlier an event begins of any one, and the least
of them is where the match begins.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING

from cepheid.automata.fragment import Fragment
from cepheid.automata.products import product, staying
from cepheid.automata.registers import Before, Compares, Elapsed, Gathered, Now, Store
from cepheid.logical import plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cepheid.automata.fragment import States
    from cepheid.automata.guards import Guards
    from cepheid.automata.registers import Test
    from cepheid.automata.transition import Transition


def behind(ended: int, *, adjacent: bool) -> Test:
    """Whether a pattern begins behind the one before it, wherever it is read; ended: the register with the place where that one ends."""
    place = plan.Begin.of("place")
    return Elapsed(Before(ended), place, plan.Interval(1, 1)) if adjacent else Compares(Before(ended), "<", place)


def asking(states: States, guards: Guards, body: Fragment, tests: tuple[Test, ...], *, everywhere: bool) -> Fragment:
    """A fragment with guards on where its matches begin: behind something, and how far. Where everywhere, at most twice the states."""
    if not everywhere:
        return guards.asking_first(body, tests)
    each = tuple(_lower(test) for test in tests if not isinstance(test, Compares) or not isinstance(test.now, plan.Derived))
    body = body.changed(lambda move: move if move.mark is None else guards.asking(move, each))
    one = tuple(test for test in tests if test not in each)
    return _asking_one(states, guards, body, one) if one else body


def _lower(test: Test) -> Test:
    return dataclasses.replace(test, interval=plan.Interval(test.interval.lower, None)) if isinstance(test, Elapsed) else test


def _asking_one(states: States, guards: Guards, body: Fragment, tests: tuple[Test, ...]) -> Fragment:
    """A fragment of whose events one passes these tests: upper bounds, or that nothing has ended before. If any does, the first one to begin does."""
    return _telling_one(states, body, before=_same, one=lambda move: guards.asking(move, tests), behind=_same)


def _same(move: Transition) -> Transition:
    return move


def _telling_one(states: States, body: Fragment, *, before: Change, one: Change, behind: Change) -> Fragment:
    """A fragment of whose marked events one is told apart: what becomes of its moves, and of those before and behind it. Twice the states."""
    passed = {state: states.state() for state in sorted(body.finals.union(*((move.source, move.target) for move in body.moves)))}
    moves = [before(move) for move in body.moves if move.target not in body.finals]
    for move in body.moves:
        later = dataclasses.replace(move, target=passed[move.target])
        if move.source != body.initial:
            moves.append(dataclasses.replace(behind(later), source=passed[move.source]))
        if move.mark is not None:
            moves.append(one(later))
    return Fragment(body.initial, frozenset(passed[state] for state in body.finals), tuple(moves), body.pending)


def alike(states: States, guards: Guards, sides: tuple[Fragment, Fragment], name: str, *, everywhere: tuple[bool, bool]) -> Fragment:
    """The matches that both sides have, each wherever it begins; name: of the registers that say so. everywhere: of each side."""
    place = plan.Begin.of("place")
    registers = guards.register(name), guards.register(name)
    left, right = (
        _saying(states, guards, body, register, everywhere=anywhere)
        for body, register, anywhere in zip(sides, registers, everywhere, strict=True)
    )
    both = product(states, left, right, apart=True)

    def compared(move: Transition) -> Transition:
        says = [Store(register, Now(place)) in move.writes for register in registers]
        if move.source == both.initial:
            # What an iteration before has left is not asked.
            empty = {Store(register, None) for register, said in zip(registers, says, strict=True) if not said}
            return dataclasses.replace(move, writes=move.writes | empty)
        return guards.asking(move, (Compares(Before(registers[says[0]]), "=", place),)) if sum(says) == 1 else move

    found = both.changed(compared)
    return staying(found) if any(everywhere) else found


def _saying(states: States, guards: Guards, body: Fragment, register: int, *, everywhere: bool) -> Fragment:
    """A fragment with where it begins in a register, from the event on that says so: the first one of those that begin at the least place."""
    place = plan.Begin.of("place")

    def told(move: Transition) -> Transition:
        return dataclasses.replace(move, writes=move.writes | {Store(register, Now(place))})

    if not everywhere:
        return body.begun(told)
    least = guards.register(f"least {guards.registers[register]} so far")

    def before(move: Transition) -> Transition:
        if move.mark is None:
            return move
        first = move.source == body.initial
        return dataclasses.replace(
            move, writes=move.writes | {Store(least, Now(place) if first else Gathered("min", Before(least), place))}
        )

    def one(move: Transition) -> Transition:
        return told(move if move.source == body.initial else guards.asking(move, (Compares(Before(least), ">", place),)))

    def behind(move: Transition) -> Transition:
        return move if move.mark is None else guards.asking(move, (Compares(Before(register), "<=", place),))

    return _telling_one(states, body, before=before, one=one, behind=behind)


Change = Callable[["Transition"], "Transition"]
"""What becomes of a move."""

Way = tuple[tuple["Test", ...], tuple["Test", ...]]
"""What a last event asks about the register that keeps where the match begins; and the same about itself, for it may be the one that says it."""


def asking_last(guards: Guards, body: Fragment, stored: tuple[int, str], ways: Sequence[Way], *, everywhere: bool) -> Fragment:
    """A fragment whose last event asks about where the match begins.

    stored: the register that keeps it, and the kind of the `plan.Begin`. ways: one of these holds; the last one says all that a single event asks.
    """
    register, begin = stored[0], plan.Begin.of(stored[1])

    def changed(move: Transition) -> Iterator[Transition]:
        first = move.source == body.initial
        if move.target in body.finals:
            for tests, own in ways[-1:] if first else ways:
                yield guards.asking(move, own if first else (*tests, *own) if everywhere else tests)
        elif first:
            yield dataclasses.replace(move, writes=move.writes | {Store(register, Now(begin))})
        elif everywhere and move.mark is not None:
            yield dataclasses.replace(move, writes=move.writes | {Store(register, Gathered("min", Before(register), begin))})
        else:
            yield move

    return dataclasses.replace(body, moves=tuple(after for move in body.moves for after in changed(move)))
