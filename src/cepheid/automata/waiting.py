"""The waiting automaton: what NXT, LAST and MAX read of an automaton whose partial matches can wait for any time.

Comes in: an automaton whose only unmarked transitions are waiting loops, with one on every state between the first and the last mark (`;`, `+`, OR,
AND and nesting make no others). Goes out: its marking moves without their marks, because strategies compare supports, not labels; states that then do
the same are merged. Not done here: anything with `:`, gaps, negation or hidden events, where a partial match can end because it waits.

So a partial match stays in a waiting state, and an event that is not marked changes nothing for it.
"""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cepheid.automata.transform import members
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cepheid.automata.automaton import Automaton

SIMULATION_STATES = 256
"""Automata with more waiting states are taken as they are: the simulation that merges states is quadratic in them."""


@dataclass(frozen=True, slots=True, order=True)
class WaitingMove:
    """One way to mark an event: the letter has all bits of `requires` and none of `forbids`; final: the match ends in `target`."""

    requires: int
    forbids: int
    target: int
    final: bool

    def enabled(self, letter: int) -> bool:
        """Whether an event with this letter may take the move."""
        return letter & self.requires == self.requires and not letter & self.forbids


@record(slots=False)
class WaitingAutomaton:
    """Marking moves between an initial state, waiting states and one final state.

    States are numbered: 0 is initial, 1 .. waiting wait, waiting + 1 is final. moves: per source (0 .. waiting) its moves, sorted, none of
    which another one of the same source makes superfluous. better: per source the sources that can complete whatever it can complete,
    itself among them (name in paper: the greatest simulation); no two states are better than each other.
    """

    waiting: int
    moves: tuple[tuple[WaitingMove, ...], ...]
    better: tuple[frozenset[int], ...]

    @property
    def final(self) -> int:
        """The final state."""
        return self.waiting + 1

    @classmethod
    def of(cls, automaton: Automaton) -> WaitingAutomaton | None:
        """The waiting automaton of an automaton, None where it is not of this fragment.

        O(states^2 x moves) per round of the simulation, at most one round per state; past SIMULATION_STATES nothing is merged.
        """
        if obstacle(automaton) is not None:
            return None
        moves: dict[int, set[WaitingMove]] = {automaton.initial: set()}
        for t in automaton.transitions:
            if t.mark is not None and not t.requires & t.forbids:
                final = t.target in automaton.finals
                moves.setdefault(t.source, set()).add(WaitingMove(t.requires, t.forbids, -1 if final else t.target, final))
        better = _simulation(moves)
        twin = {state: min(other for other in better[state] if state in better[other]) for state in moves}
        merged = {state: _strongest(moves[state], better, twin) for state in set(twin.values())}
        return _numbered(twin[automaton.initial], merged, better)

    def entered(self, source: int, letter: int) -> tuple[int, ...]:
        """The states that marking an event with this letter leads to from `source`, ascending."""
        return tuple(sorted({move.target for move in self.moves[source] if move.enabled(letter)}))

    def essential(self, states: Iterable[int]) -> frozenset[int]:
        """The states (final or waiting) without those that another one of them makes superfluous: the same completions."""
        chosen = frozenset(states)
        return frozenset(
            state for state in chosen if state == self.final or not any(other != state and other in chosen for other in self.better[state])
        )


def obstacle(automaton: Automaton) -> str | None:
    """What keeps an automaton from being a waiting automaton, as a reason for users; None: nothing."""
    if automaton.compares:
        return "what a partial match can do depends on what it has stored"
    if not automaton.waiting:
        return "a partial match cannot wait for any event: some operator (`:`, `:+`, STRICT) asks what comes next"
    if any(t.mark is None and not t.waits for t in automaton.transitions):
        return "a partial match changes by events that it does not mark"
    if any(t.mark is not None and not t.mark for t in automaton.transitions):
        return "a match begins or ends with an event that PROJECT hides"
    return None


def _simulation(moves: Mapping[int, Iterable[WaitingMove]]) -> dict[int, set[int]]:
    """For each source the sources that can answer each of its moves by one that needs no more and leads to one at least as good.

    Sets of states are bit masks here; a state's place in them is its place in `moves`.
    """
    if len(moves) > SIMULATION_STATES:
        return {state: {state} for state in moves}
    place = {state: index for index, state in enumerate(moves)}
    final = 1 << len(place)
    asked = dict.fromkeys((move.requires, move.forbids) for own in moves.values() for move in own)
    answering = {key: [other for other in asked if not (other[0] & ~key[0] or other[1] & ~key[1])] for key in asked}
    targets: list[dict[tuple[int, int], int]] = [{} for _ in place]
    for state, own in moves.items():
        for move in own:
            found = targets[place[state]]
            key = (move.requires, move.forbids)
            found[key] = found.get(key, 0) | (final if move.final else 1 << place[move.target])
    better = [1 if not index else final - 2 for index in range(len(place))]

    def answers(state: int, other: int) -> bool:
        for key, entered in targets[state].items():
            reached = functools.reduce(operator.or_, (targets[other].get(answer, 0) for answer in answering[key]), 0)
            if not all(reached & (final if 1 << target == final else better[target]) for target in members(entered)):
                return False
        return True

    changed = True
    while changed:
        changed = False
        # Matches go mostly from lower to higher states: so what a state asks of its targets is known before.
        for state in reversed(range(len(place))):
            lost = sum(1 << other for other in members(better[state]) if other != state and not answers(state, other))
            better[state] &= ~lost
            changed = changed or bool(lost)
    states = list(place)
    return {states[index]: {states[other] for other in members(mask)} for index, mask in enumerate(better)}


def _answers(answer: WaitingMove, move: WaitingMove, better: Mapping[int, set[int]]) -> bool:
    if answer.requires & ~move.requires or answer.forbids & ~move.forbids or answer.final != move.final:
        return False
    return answer.final or answer.target in better[move.target]


def _strongest(moves: Iterable[WaitingMove], better: Mapping[int, set[int]], twin: Mapping[int, int]) -> list[WaitingMove]:
    """The moves, to merged targets, that no other of them answers: dropping the others leaves every completion."""
    mapped = {WaitingMove(m.requires, m.forbids, m.target if m.final else twin[m.target], m.final) for m in moves}
    return [move for move in mapped if not any(other != move and _answers(other, move, better) for other in mapped)]


def _numbered(initial: int, moves: Mapping[int, Sequence[WaitingMove]], better: Mapping[int, set[int]]) -> WaitingAutomaton:
    """The part that is reached from the initial state, states numbered by the order in which they are reached."""
    number = {initial: 0}
    todo = [initial]
    for state in todo:  # grows while it is read
        for move in sorted(moves[state]):
            if not move.final and move.target not in number:
                number[move.target] = len(number)
                todo.append(move.target)
    final = len(number)
    return WaitingAutomaton(
        len(number) - 1,
        tuple(
            tuple(sorted(WaitingMove(m.requires, m.forbids, final if m.final else number[m.target], m.final) for m in moves[state]))
            for state in number
        ),
        tuple(frozenset(number[other] for other in better[state] if other in number) for state in number),
    )
