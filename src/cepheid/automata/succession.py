"""THEN: the next match after another one, as an automaton that runs beside what waits (what-is-next, equation (4)).

A match of q from x to e is next after one of p that ends at a, if a is before x, and no match r of q that starts after a comes first. First comes, by
the time model: CAYUGA: what ends before e; SNOOPIB and ODE: what ends before x. So between a and e, or between a and x, no match of q may end: a
negation (`negation`), which begins behind p. Where the matches of q are single events, all models say the same.

Before and after go by times, not by positions. One bit of each letter says whether time has moved on since the event before in the partition
(`predicates.moved_on`). What waits behind p reads nothing before that bit. Where a match of q has ended, it goes on until the bit comes again.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from typing import TYPE_CHECKING

from cepheid.automata.fragment import Fragment
from cepheid.automata.negation import MAX_BESIDE, complement
from cepheid.automata.transition import Transition
from cepheid.language.syntax import TimeModel

if TYPE_CHECKING:
    from cepheid.automata.alphabet import Alphabet
    from cepheid.automata.automaton import Automaton
    from cepheid.automata.fragment import States

THROUGH = {TimeModel.CAYUGA: True, TimeModel.SNOOPIB: False, TimeModel.ODE: False}
"""The models that are automata, and whether another match may not end before this one ends (True), or before it starts."""


NOBODY = -1
"""The state of a complement that is not asked any more."""


def following(states: States, body: Fragment, automaton: Automaton, alphabet: Alphabet, moved: int, *, through: bool) -> Fragment | None:
    """The matches of a fragment that are next, from the event on at which time has moved on behind p.

    body, automaton: q, as a fragment and as an automaton, without guards and parts. moved: the bit that says that time has moved on. through: see
    `THROUGH`. None where the complement of q is too large, and past `MAX_BESIDE`: then a guard asks.
    """
    unwanted = complement(automaton, ends=True)
    if unwanted is None:
        return None
    ended = len(unwanted)
    beside = dict(enumerate([*unwanted, (Transition(ended, ended, forbids=moved),)]))
    outgoing: dict[int, list[Transition]] = defaultdict(list)
    for move in body.moves:
        outgoing[move.source].append(move)
    waits = body.initial
    start = (states.state(), waits, 0)
    numbers: dict[tuple[int, int], int] = {}
    moves: list[Transition] = []
    todo = [start]
    outgoing[waits].append(Transition(waits, waits))
    while todo:
        number, state, asked = todo.pop()
        later = moved if number == start[0] else 0
        for move in outgoing[state]:
            # A match that begins at this event is not after what ends with it.
            free = asked == NOBODY or (not through and move.target != waits)
            stay = (Transition(asked, NOBODY, forbids=moved if asked == ended else 0),) if free else beside[asked]
            for each in stay:
                masks = alphabet.both(dataclasses.replace(move, requires=move.requires | later), each)
                if masks is None:
                    continue
                target = (move.target, each.target)
                if target not in numbers:
                    numbers[target] = states.state()
                    todo.append((numbers[target], *target))
                moves.append(dataclasses.replace(move, source=number, target=numbers[target], requires=masks[0], forbids=masks[1]))
        if len(moves) > MAX_BESIDE:
            return None
    finals = frozenset(number for (state, _), number in numbers.items() if state in body.finals)
    return Fragment(start[0], finals, tuple(moves), body.pending)


def apart(states: States, body: Fragment, moved: int) -> Fragment:
    """The matches of a fragment, from the first event of the time at which they begin to the first of a time after that at which they end.

    Their starts and ends compare by place as times do. They mark nothing that shows. moved: as for `following`.
    """
    initial, begun, ended, final = (states.state() for _ in range(4))
    moves = [
        Transition(initial, begun, moved, frozenset()),
        Transition(begun, begun, forbids=moved),
        Transition(ended, ended, forbids=moved),
        Transition(ended, final, moved, frozenset()),
    ]
    first = [dataclasses.replace(move, source=initial, requires=move.requires | moved) for move in body.first]
    first += [dataclasses.replace(move, source=begun, forbids=move.forbids | moved) for move in body.first]
    whole = dataclasses.replace(body, moves=(*(move for move in body.moves if move.source != body.initial), *first))
    return Fragment(initial, frozenset({final}), (*moves, *whole.moves, *whole.ending_in(ended)), body.pending)
