"""Automaton to automaton: trim, hide, I/O-determinize."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cepheid.automata.automaton import Automaton, Mark, Transition, order
from cepheid.errors import LimitError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_DETERMINISTIC_STATES = 5_000
"""Macro states that an eager determinization may make; evaluation determinizes lazily and has no such bound."""


def trim(automaton: Automaton) -> Automaton:
    """Only the states that lie on a way from the initial to a final state, renumbered from 0 = initial; linear."""
    forward = _closure({automaton.initial}, ((t.source, t.target) for t in automaton.transitions))
    backward = _closure(automaton.finals, ((t.target, t.source) for t in automaton.transitions))
    keep = (forward & backward) | {automaton.initial}
    ordered = sorted(keep, key=lambda state: (state != automaton.initial, state in automaton.finals, state))
    number = {state: index for index, state in enumerate(ordered)}
    moves = (
        dataclasses.replace(t, source=number[t.source], target=number[t.target])
        for t in automaton.transitions
        if t.source in keep and t.target in keep
    )
    return Automaton(len(ordered), 0, frozenset(number[s] for s in automaton.finals & keep), order(moves), automaton.predicates)


def _closure(start: Iterable[int], edges: Iterable[tuple[int, int]]) -> set[int]:
    following: dict[int, list[int]] = {}
    for source, target in edges:
        following.setdefault(source, []).append(target)
    seen = set(start)
    todo = list(seen)
    while todo:
        for target in following.get(todo.pop(), ()):
            if target not in seen:
                seen.add(target)
                todo.append(target)
    return seen


def project(automaton: Automaton, variables: Iterable[str]) -> Automaton:
    """Every mark restricted to `variables` (PROJECT on the whole automaton); events shown in none of them keep an empty mark."""
    shown = frozenset(variables)
    moves = (t if t.mark is None else dataclasses.replace(t, mark=t.mark & shown) for t in automaton.transitions)
    return dataclasses.replace(automaton, transitions=order(moves))


def hide(automaton: Automaton) -> Automaton:
    """Empty marks inside a match become no marks; the first and the last event keep theirs, for they are its interval.

    After it, a run's marks and its complex event (interval and mapping) determine each other, so determinization leaves no duplicates.
    """
    moves = (
        dataclasses.replace(t, mark=None)
        if t.mark is not None and not t.mark and t.source != automaton.initial and t.target not in automaton.finals
        else t
        for t in automaton.transitions
    )
    return trim(dataclasses.replace(automaton, transitions=order(moves)))


# ----------------------------------------------------------------------------------------------------------------- determinization


@dataclass(frozen=True)
class Successors:
    """Where a macro state goes on one letter: at most one macro state per mark, and one without a mark (0: nowhere)."""

    marked: tuple[tuple[Mark, int], ...]
    unmarked: int


def successors(automaton: Automaton, macro: int, letter: int) -> Successors:
    """One step of the subset construction with respect to marks (foundations-cel, Proposition 1).

    macro: a set of states as a bit mask. O(transitions that leave the macro state).
    """
    marked: dict[Mark, int] = {}
    unmarked = 0
    for state in members(macro):
        for move in automaton.outgoing[state]:
            if not move.enabled(letter):
                continue
            if move.mark is None:
                unmarked |= 1 << move.target
            else:
                marked[move.mark] = marked.get(move.mark, 0) | 1 << move.target
    return Successors(tuple(sorted(marked.items(), key=lambda item: sorted(item[0]))), unmarked)


def members(macro: int) -> Iterator[int]:
    """The states of a macro state, ascending."""
    while macro:
        low = macro & -macro
        yield low.bit_length() - 1
        macro ^= low


def determinize(automaton: Automaton) -> Automaton:
    """An I/O-deterministic automaton with the same complex events: two transitions of one state exclude each other or differ in their mark.

    Exponential in the worst case (Proposition 1); raises LimitError past `MAX_DETERMINISTIC_STATES`. Evaluation uses `successors` lazily;
    this is for people who look at the automaton, and for proofs by test. A macro state that holds a final state is final, and may go on.
    """
    numbers = {1 << automaton.initial: 0}
    todo = [1 << automaton.initial]
    moves = []
    finals = sum(1 << state for state in automaton.finals)

    def number(macro: int) -> int:
        if macro not in numbers:
            if len(numbers) == MAX_DETERMINISTIC_STATES:
                raise LimitError(
                    f"determinizing needs more than {MAX_DETERMINISTIC_STATES} states (MAX_DETERMINISTIC_STATES)",
                    help="evaluation determinizes lazily and does not need this",
                )
            numbers[macro] = len(numbers)
            todo.append(macro)
        return numbers[macro]

    while todo:
        macro = todo.pop()
        for requires, forbids in _cubes(automaton, macro):
            step = successors(automaton, macro, requires)
            moves += [Transition(numbers[macro], number(target), requires, mark, forbids) for mark, target in step.marked]
            if step.unmarked:
                moves.append(Transition(numbers[macro], number(step.unmarked), requires, None, forbids))
    accepting = frozenset(n for macro, n in numbers.items() if macro & finals)
    return trim(Automaton(len(numbers), 0, accepting, order(moves), automaton.predicates))


def _cubes(automaton: Automaton, macro: int) -> Iterator[tuple[int, int]]:
    """Exclusive and exhaustive (requires, forbids) masks that decide every transition of a macro state.

    An event has one type, so a cube that requires a type forbids every other type.
    """
    types = [1 << index for index, predicate in enumerate(automaton.predicates) if predicate.type is not None]
    needed = 0
    for state in members(macro):
        for move in automaton.outgoing[state]:
            needed |= move.requires | move.forbids
    bits = sorted((1 << index for index in members(needed)), key=lambda bit: (bit not in types, bit))
    todo: list[tuple[int, int, int]] = [(0, 0, 0)]
    while todo:
        depth, requires, forbids = todo.pop()
        if depth == len(bits) or not _open(automaton, macro, requires, forbids):
            yield requires, forbids
            continue
        bit = bits[depth]
        if bit & (requires | forbids):
            todo.append((depth + 1, requires, forbids))
            continue
        todo.append((depth + 1, requires, forbids | bit))
        others = sum(other for other in types if other != bit) if bit in types else 0
        todo.append((depth + 1, requires | bit, forbids | others))


def _open(automaton: Automaton, macro: int, requires: int, forbids: int) -> bool:
    """Whether some transition of the macro state is neither enabled for all nor disabled for all letters of the cube."""
    for state in members(macro):
        for move in automaton.outgoing[state]:
            excluded = move.requires & forbids or move.forbids & requires
            if not excluded and (move.requires & ~requires or move.forbids & ~forbids):
                return True
    return False
