"""Two patterns over the same events: AND runs both with equal marks, ALL runs both and unites what they mark."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from cepheid.automata.fragment import Fragment, all_pending
from cepheid.automata.transition import HIDDEN, Transition
from cepheid.errors import LimitError

if TYPE_CHECKING:
    from cepheid.automata.alphabet import Alphabet
    from cepheid.automata.fragment import States
    from cepheid.automata.transition import Mark


def product(states: States, left: Fragment, right: Fragment, *, apart: bool = False) -> Fragment:
    """Both runs at once, with equal marks (timed-cel, section 4).

    Hidden marks inside are gone, so equal marks mean equal complex events. apart: one of them may begin first, with events that are hidden.
    """
    outgoing: dict[int, list[Transition]] = {}
    for move in right.moves:
        outgoing.setdefault(move.source, []).append(move)
    left_outgoing: dict[int, list[Transition]] = {}
    for move in left.moves:
        left_outgoing.setdefault(move.source, []).append(move)
    start = (left.initial, right.initial)
    if apart:
        left_outgoing.setdefault(left.initial, []).append(Transition(left.initial, left.initial))
        outgoing.setdefault(right.initial, []).append(Transition(right.initial, right.initial))
    numbers = {start: states.state()}
    todo, moves = [start], []
    while todo:
        pair = todo.pop()
        for a in left_outgoing.get(pair[0], ()):
            for b in outgoing.get(pair[1], ()):
                # A hidden event with a place in a part is still marked, for the other side too.
                hidden = not a.mark and not b.mark and (apart or a.parts or b.parts)
                target = (a.target, b.target)
                if (a.mark != b.mark and not hidden) or target == start:
                    continue
                if target not in numbers:
                    numbers[target] = states.state()
                    todo.append(target)
                mark = b.mark if a.mark is None else a.mark
                both = a.requires | b.requires, mark, a.forbids | b.forbids, a.writes | b.writes, a.parts | b.parts
                moves.append(Transition(numbers[pair], numbers[target], *both))
    finals = frozenset(number for (a, b), number in numbers.items() if a in left.finals and b in right.finals)
    # A pair that is final on one side alone is a dead end: finals have no way out.
    return Fragment(numbers[start], finals, tuple(moves), all_pending((left, right)))


def staying(body: Fragment) -> Fragment:
    """With its hidden events marked for good: they may say where a match begins."""
    return body.changed(
        lambda move: dataclasses.replace(move, parts=move.parts | {HIDDEN}) if move.mark is not None and not move.mark else move
    )


def leaving(body: Fragment) -> Fragment:
    """With its hidden events as PROJECT leaves them: they do not say where a match begins."""
    return body.changed(lambda move: dataclasses.replace(move, parts=move.parts - {HIDDEN}) if HIDDEN in move.parts else move)


def hide_fragment(body: Fragment) -> Fragment:
    """Hidden marks inside become no marks; the first and the last event keep theirs (see `transform.hide`)."""
    return body.changed(
        lambda move: (
            dataclasses.replace(move, mark=None)
            if move.mark is not None and not move.mark and not move.parts and move.source != body.initial and move.target not in body.finals
            else move
        )
    )


MAX_MOVES = 50_000
"""Moves that ALL may make before trimming."""


def shuffle(states: States, left: Fragment, right: Fragment, alphabet: Alphabet, *, ends_last: bool = False) -> Fragment:
    """Both runs over the same events, whichever begins or ends first; an event may be in both (event-algebra, definition 2.6, its `+`).

    While one runs, the other has not begun yet, or is done, or runs too. ends_last: only where the right one ends after the left one has. At most
    (l + 1) * (r + 1) states. Raises LimitError past `MAX_MOVES`.
    """
    sides = [idle(left), idle(right)]
    start = (left.initial, right.initial)
    numbers = {start: states.state()}
    todo, moves = [start], []
    while todo:
        pair = todo.pop()
        for a in sides[0].get(pair[0], ()):
            for b in sides[1].get(pair[1], ()):
                target, masks = (a.target, b.target), alphabet.both(a, b)
                if target == start or masks is None:
                    continue  # one of them begins the match
                if ends_last and b.target == DONE and pair[0] != DONE:
                    continue
                if target not in numbers:
                    numbers[target] = states.state()
                    todo.append(target)
                both = masks[0], joint(a.mark, b.mark), masks[1], a.writes | b.writes, a.parts | b.parts
                moves.append(Transition(numbers[pair], numbers[target], *both))
        if len(moves) > MAX_MOVES:
            raise LimitError(
                f"{'THEN under TIME MODEL POINT' if ends_last else 'ALL'} needs more than {MAX_MOVES} moves of the automaton here (MAX_MOVES)",
                help="take fewer operands, or shorter ones: the moves of each are multiplied by those of the others",
            )
    # Where both are done no event is read.
    done = numbers.get((DONE, DONE))
    moves = [move for move in moves if move.source != done]
    finals = frozenset() if done is None else frozenset({done})
    return Fragment(numbers[start], finals, tuple(moves), all_pending((left, right)))


DONE = -1
"""The state of a side of ALL whose match is complete."""


def idle(body: Fragment) -> dict[int, list[Transition]]:
    """The moves of each state, where any event may pass before the match begins and when it is done; all finals are `DONE`."""
    found = {body.initial: [Transition(body.initial, body.initial)], DONE: [Transition(DONE, DONE)]}
    for move in body.moves:
        found.setdefault(move.source, []).append(dataclasses.replace(move, target=DONE) if move.target in body.finals else move)
    return found


def joint(left: Mark | None, right: Mark | None) -> Mark | None:
    """The mark of an event that both runs read."""
    return right if left is None else left if right is None else left | right
