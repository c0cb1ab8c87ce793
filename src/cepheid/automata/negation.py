"""Negation without guards: in which events a pattern has no match, as a deterministic automaton that runs beside a partial match.

`p ; NOT n ; q` waits between p and q in the states of the complement of n, and `p UNLESS q` runs with the complement of q from its first event to
its last. The complement has one state for each set of states that partial matches of the negated pattern can be in (foundations-cel, Proposition 1,
without marks), and no move where one of them is complete. So a single event that must not come clears what waits for it, at no more than the cost of
its transition; and nothing of the negated pattern's matches is stored (event-algebra, Figure 2, stores their greatest start).
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from typing import TYPE_CHECKING

from cepheid.automata.fragment import Fragment
from cepheid.automata.transform import cubes, members, united
from cepheid.automata.transition import Transition

if TYPE_CHECKING:
    from cepheid.automata.alphabet import Alphabet
    from cepheid.automata.automaton import Automaton
    from cepheid.automata.fragment import States

MAX_COMPLEMENT = 2_000
"""Moves of the complement of one negated pattern, each for one cube of letters; past it a guard asks for the pattern."""

MAX_BESIDE = 20_000
"""Moves of a pattern with a complement beside it; past it a guard asks."""

Complement = tuple[tuple[Transition, ...], ...]
"""The moves of each state, unmarked and exclusive: an event that none of them reads completes a match. State 0: nothing has come."""


Ways = dict[tuple[int, bool], tuple[tuple[int, int], ...]]
"""The ways out of a set of states: its next one, by number, and whether a match is complete; and for which letters, as (requires, forbids)."""


def subsets(automaton: Automaton, *, goes_on: bool) -> list[Ways] | None:
    """For each set of states in which partial matches can be, wherever they began, the ways out; None past `MAX_COMPLEMENT`.

    automaton: without guards and parts. goes_on: whether sets go on behind a match; else they begin anew there, for nobody asks. Set 0: nothing has
    come. At most exponential in the automaton's states.
    """
    automaton.alphabet.refuse_guards("negation")
    automaton.refuse_parts("negation")
    initial, finals = 1 << automaton.initial, sum(1 << state for state in automaton.finals)
    numbers = {0: 0}
    todo, found, size = [0], [], 0
    for begun in todo:
        moves = [move for state in members(begun | initial) for move in automaton.outgoing[state]]
        edges: dict[tuple[int, bool], list[tuple[int, int]]] = defaultdict(list)
        for cube in cubes(moves, automaton.alphabet):
            size += 1
            if size > MAX_COMPLEMENT:
                return None
            after = 0
            for move in moves:
                if move.enabled(cube[0]):
                    after |= 1 << move.target
            ends = bool(after & finals)
            edges[after & ~finals if goes_on or not ends else 0, ends].append(cube)
        for after, _ in edges:
            if after not in numbers:
                numbers[after] = len(numbers)
                todo.append(after)
        found.append({(numbers[after], ends): united(each, automaton.alphabet.types) for (after, ends), each in edges.items()})
    return found


def complement(automaton: Automaton, *, ends: bool = False) -> Complement | None:
    """The events, one after the other from state 0 on, in which the automaton has no match, wherever one may begin; None past `MAX_COMPLEMENT`.

    automaton: without guards and parts. ends: whether there are moves for the events that complete a match too, to a state behind all others.
    """
    found = subsets(automaton, goes_on=False)
    if found is None:
        return None
    return tuple(
        tuple(
            Transition(source, len(found) if ended else after, requires, None, forbids)
            for (after, ended), ways in each.items()
            if ends or not ended
            for requires, forbids in ways
        )
        for source, each in enumerate(found)
    )


def waiting(states: States, first: int, unwanted: Complement) -> tuple[list[int], list[Transition]]:
    """The states in which one waits while a negated pattern has no match, `first` the first of them; and the moves between them."""
    numbers = [first, *(states.state() for _ in unwanted[1:])]
    moves = (dataclasses.replace(move, source=numbers[move.source], target=numbers[move.target]) for each in unwanted for move in each)
    return numbers, list(moves)


def unless(states: States, body: Fragment, unwanted: Complement, alphabet: Alphabet) -> Fragment | None:
    """The matches of a fragment in whose events a negated pattern has no match; None past `MAX_BESIDE`."""
    outgoing: dict[int, list[Transition]] = defaultdict(list)
    for move in body.moves:
        outgoing[move.source].append(move)
    start = (body.initial, 0)
    numbers = {start: states.state()}
    todo = [start]
    moves: list[Transition] = []
    while todo:
        pair = todo.pop()
        if len(moves) > MAX_BESIDE:
            return None
        for move in outgoing[pair[0]]:
            for beside in unwanted[pair[1]]:
                masks = alphabet.both(move, beside)
                if masks is None:
                    continue
                target = (move.target, beside.target)
                if target not in numbers:
                    numbers[target] = states.state()
                    todo.append(target)
                moves.append(dataclasses.replace(move, source=numbers[pair], target=numbers[target], requires=masks[0], forbids=masks[1]))
    finals = frozenset(number for (state, _), number in numbers.items() if state in body.finals)
    return Fragment(numbers[start], finals, tuple(moves), body.pending)
