"""THEN: the next match after another one, as an automaton that runs beside what waits (what-is-next, equation (4)).

A match of q from x to e is next after one of p that ends at a, if a is before x, and no match r of q that starts after a comes first. First comes, by
the time model: CAYUGA: what ends before e; SNOOPIB and ODE: what ends before x. So between a and e, or between a and x, no match of q may end: a
negation (`negation`), which begins behind p. Where the matches of q are single events, all models say the same.

POINT: a match of q may begin anywhere, also before p does, and it is next if it ends at the first time behind a at which some match of q ends. So q
runs beside p, as in ALL, and a tracker knows what runs q has had since the partition began (`pointed`).

ACTIVE_OFFICE and COMPLETE_HISTORY take of what CAYUGA takes what starts first, or what has the least history. So matches of q that run at the same
time are compared (`first`): with each state that others can be in, beside a match, goes whether they would come before it, should both end at one
time. Another one may still end at this time, at a later event. A tracker that runs backward through the events of one time knows that (`remaining`).

Before and after go by times, not by positions. One bit of each letter says whether time has moved on since the event before in the partition
(`predicates.moved_on`). What waits behind p reads nothing before that bit. Where a match of q has ended, it goes on until the bit comes again.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import operator
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from cepheid.automata.alphabet import Tracker
from cepheid.automata.fragment import Fragment, all_pending
from cepheid.automata.negation import MAX_BESIDE, MAX_COMPLEMENT, Ways, complement, subsets
from cepheid.automata.products import DONE, idle, joint
from cepheid.automata.strategies import MAX_TRACKER_STATES
from cepheid.automata.transform import cubes, united
from cepheid.automata.transition import Transition, order
from cepheid.language.syntax import TimeModel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cepheid.automata.alphabet import Alphabet
    from cepheid.automata.automaton import Automaton
    from cepheid.automata.fragment import States

THROUGH = {TimeModel.CAYUGA: True, TimeModel.SNOOPIB: False, TimeModel.ODE: False}
"""The models of which a complement knows what is next, and whether another match may not end before this one ends (True), or before it starts."""

HISTORIES = {TimeModel.ACTIVE_OFFICE: False, TimeModel.COMPLETE_HISTORY: True}
"""The models that compare matches which end at one time, and whether by their histories (True), or by their starts."""


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


class Ahead(NamedTuple):
    """What tells which matches of q the other events of this time end: a tracker that runs backward, and for each of its states a set of states of q.

    From a state of q in the set, the events of this time that come after an event end a match.
    """

    tracker: Tracker
    ending: tuple[int, ...]

    def none_of(self, states: int, types: int) -> tuple[tuple[int, int], ...]:
        """The letters of events after which no match ends at this time from any of these states, as (requires, forbids)."""
        bit, mask = self.tracker.bit, self.tracker.mask
        free = ((number << bit, mask & ~(number << bit)) for number, ending in enumerate(self.ending) if not ending & states)
        return united(free, types)


def remaining(automaton: Automaton, moved: int) -> Ahead | None:
    """The tracker of what still ends at this time. It comes behind those of the automaton's alphabet.

    automaton: q, without guards and parts. moved: as for `following`. None past `MAX_COMPLEMENT` and `MAX_TRACKER_STATES`: then an evaluation
    chooses (`Part`). At most exponential in the states of q.
    """
    numbers, todo = {0: 0}, [0]
    moves: list[Transition] = []
    waiting = Transition(automaton.initial, automaton.initial)  # a match may begin at any event
    same_time = [
        dataclasses.replace(move, forbids=move.forbids | moved) for move in (*automaton.transitions, waiting) if not move.requires & moved
    ]
    for source, ending in enumerate(todo):
        before = [move for move in same_time if move.target in automaton.finals or ending >> move.target & 1]
        edges: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for cube in cubes(before, automaton.alphabet):
            edges[functools.reduce(operator.or_, (1 << move.source for move in before if move.enabled(cube[0])), 0)].append(cube)
        for target, found in edges.items():
            if target not in numbers:
                numbers[target] = len(numbers)
                todo.append(target)
            if numbers[target] != source:
                ways = united(found, automaton.alphabet.types)
                moves += [Transition(source, numbers[target], requires, None, forbids) for requires, forbids in ways]
        if len(todo) > MAX_TRACKER_STATES or len(moves) > MAX_COMPLEMENT:
            return None
    return Ahead(Tracker(automaton.alphabet.width, len(todo), order(moves), ahead=True), tuple(todo))


class Rank(NamedTuple):
    """How others in one state stand to a match, the foremost of them. first: they come before it, should both end at the time that is read now.

    apart: none of their events has that time. Under COMPLETE_HISTORY the last time that one of two has and the other has not decides between them.
    """

    first: bool
    apart: bool


Ranks = tuple[tuple[int, Rank], ...]
"""Of each state that others are in, ascending."""


Way = tuple[tuple[int, int], Ranks, bool]
"""The letters of some events as (requires, forbids), where others are behind them, and whether one has ended."""


class Beside(NamedTuple):
    """A state of `first`. state, others: of the match, and of the others. read: it has an event of this time. ended: another one has ended now."""

    state: int
    others: Ranks
    read: bool
    ended: bool


class _First:
    """The construction of `first`: what a state leads to."""

    def __init__(self, body: Fragment, automaton: Automaton, *, histories: bool) -> None:
        self.waits, self.automaton, self.histories = body.initial, automaton, histories
        others = ((automaton.initial, Rank(first=False, apart=True)),) if histories else ()
        self.start = Beside(body.initial, others, read=False, ended=False)
        self._ways: dict[Ranks, list[Way]] = {}

    def moved_on(self, now: Beside) -> Beside | None:
        """The state at the first event of a later time; None where another one ended before."""
        if now.ended:
            return None
        ranks = ((state, Rank(self._is_first(now, rank), apart=True)) for state, rank in now.others)
        return Beside(now.state, tuple(ranks), read=False, ended=False)

    def _is_first(self, now: Beside, rank: Rank) -> bool:
        """Whether others come before the match, once all events of a time have been read."""
        if self.histories:
            return now.read if now.read == rank.apart else rank.first
        return rank.first or now.state == self.waits

    def is_beaten(self, now: Beside) -> bool:
        """Whether another one that comes first, and will, is where the match is: whatever ends the match ends that one too."""
        rank = dict(now.others).get(now.state)
        return now.state != self.waits and rank is not None and rank.first and (not self.histories or rank.apart or now.read)

    def ways(self, others: Ranks) -> list[Way]:
        """What events do to others, but those with which one ends that comes before the match."""
        if others not in self._ways:
            self._ways[others] = list(self._made(others))
        return self._ways[others]

    def _made(self, others: Ranks) -> Iterator[Way]:
        ranks = dict(others)
        ranks.setdefault(self.automaton.initial, Rank(first=False, apart=True))
        moves = [move for state in ranks for move in self.automaton.outgoing[state]]
        for cube in cubes(moves, self.automaton.alphabet):
            after = {self.automaton.initial: ranks[self.automaton.initial]} if self.histories else {}
            ended = beaten = False
            for move in moves:
                if not move.enabled(cube[0]):
                    continue
                rank = ranks[move.source]
                if move.target in self.automaton.finals:
                    ended, beaten = True, beaten or rank.first
                    continue
                found = rank._replace(apart=rank.apart and not self.counts(move, self.automaton.initial))
                after[move.target] = max(found, after.get(move.target, found))
            if not beaten:
                yield cube, tuple(sorted(after.items())), ended

    def counts(self, move: Transition, initial: int) -> bool:
        """Whether the time of an event is in the history of a match that reads it so; initial: of the automaton."""
        return self.histories and move.mark is not None and (bool(move.mark) or move.source == initial)


def first(
    states: States, body: Fragment, automaton: Automaton, ahead: Ahead, alphabet: Alphabet, moved: int, *, histories: bool
) -> Fragment | None:
    """The matches of a fragment that are next under ACTIVE_OFFICE and COMPLETE_HISTORY, from the event on at which time has moved on behind p.

    body, automaton, moved: as for `following`. ahead: of q; the alphabet has its tracker. histories: whether histories are compared, else starts.
    At most exponential in the states of q; None past `MAX_BESIDE`.
    """
    outgoing: dict[int, list[Transition]] = defaultdict(list)
    for move in body.moves:
        outgoing[move.source].append(move)
    outgoing[body.initial].append(Transition(body.initial, body.initial))
    built = _First(body, automaton, histories=histories)
    initial, final = states.state(), states.state()
    numbers: dict[Beside, int] = {}
    moves: list[Transition] = []
    todo: list[tuple[int, Beside, bool]] = [(initial, built.start, True)]
    while todo:
        number, before, later = todo.pop()
        for now, test in ((built.moved_on(before), Transition(0, 0, moved)), (None if later else before, Transition(0, 0, forbids=moved))):
            if now is None:
                continue
            for cube, others, ended in built.ways(now.others):
                for move in outgoing[now.state]:
                    masks = alphabet.both(move, Transition(0, 0, cube[0], None, cube[1]))
                    masks = None if masks is None else alphabet.both(test, Transition(0, 0, masks[0], None, masks[1]))
                    if masks is None:
                        continue
                    read = dataclasses.replace(move, source=number, requires=masks[0], forbids=masks[1])
                    if move.target in body.finals:
                        wanted = sum(1 << state for state, rank in others if rank.first)
                        tests = ahead.none_of(wanted, alphabet.types) if wanted else ((0, 0),)
                        moves += [
                            dataclasses.replace(read, target=final, requires=read.requires | requires, forbids=read.forbids | forbids)
                            for requires, forbids in tests
                        ]
                        continue
                    target = Beside(move.target, others, now.read or built.counts(move, body.initial), now.ended or ended)
                    if built.is_beaten(target):
                        continue
                    if target not in numbers:
                        numbers[target] = states.state()
                        todo.append((numbers[target], target, False))
                    moves.append(dataclasses.replace(read, target=numbers[target]))
        if len(moves) > MAX_BESIDE:
            return None
    return Fragment(initial, frozenset({final}), tuple(moves), body.pending)


class Completing(NamedTuple):
    """What tells at which events some match of q ends: a tracker, and tests of letters with its bits; ends: of such events, others: of all others."""

    tracker: Tracker
    ends: tuple[Transition, ...]
    others: tuple[Transition, ...]


def completing(automaton: Automaton) -> Completing | None:
    """What tells at which events a match ends, wherever in the partition it began. The tracker comes behind those of the automaton's alphabet.

    automaton: q, without guards and parts. None past `MAX_COMPLEMENT` and `MAX_TRACKER_STATES`: then a guard asks.
    """
    sets = subsets(automaton, goes_on=True)
    found = [] if sets is None else _merged(sets, automaton.alphabet.types)
    if not 0 < len(found) <= MAX_TRACKER_STATES:
        return None
    tracker = Tracker(automaton.alphabet.width, len(found), ())
    moves: list[Transition] = []
    told: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
    for source, ways in enumerate(found):
        code = source << tracker.bit
        for (after, ends), letters in ways.items():
            moves += [Transition(source, after, requires, None, forbids) for requires, forbids in letters if after != source]
            told[ends] += [(requires | code, forbids | tracker.mask & ~code) for requires, forbids in letters]
    types = automaton.alphabet.types
    tests = (tuple(Transition(0, 0, requires, None, forbids) for requires, forbids in united(told[ends], types)) for ends in (True, False))
    return Completing(Tracker(tracker.bit, tracker.states, order(moves)), *tests)


def _merged(found: list[Ways], types: int) -> list[Ways]:
    """Those behind which the same events end matches as one (Moore); set 0 stays the first."""
    classes, count = [0] * len(found), 1
    while True:
        numbers: dict[tuple[int, frozenset[tuple[object, object]]], int] = {}
        together: list[Ways] = []
        after = []
        for own, ways in zip(classes, found, strict=True):
            cubes: dict[tuple[int, bool], list[tuple[int, int]]] = defaultdict(list)
            for (target, ends), each in ways.items():
                cubes[classes[target], ends] += each
            mapped = {way: united(each, types) for way, each in cubes.items()}
            signature = own, frozenset(mapped.items())
            if signature not in numbers:
                numbers[signature] = len(numbers)
                together.append(mapped)
            after.append(numbers[signature])
        if len(numbers) == count:
            return together
        classes, count = after, len(numbers)


RUNS, SAME_TIME, LATER, AT_ENDS = range(4)
"""Under POINT: p has not ended; it has, at this time; no match of q has ended at a later time; the first have, at this time."""


def pointed(states: States, before: Fragment, body: Fragment, told: Completing, alphabet: Alphabet, moved: int) -> Fragment | None:
    """The matches of p (before) with those of q (body) that are next under POINT: both run over the same events, whichever begins first.

    told: of q; the alphabet has its tracker. moved: as for `following`. At most 4 (p + 1) (q + 1) states. None past `MAX_BESIDE`: then guards ask.
    """
    now, later, whenever = Transition(0, 0, forbids=moved), Transition(0, 0, moved), Transition(0, 0)
    # By phase, and whether this match of q ends: the next phase, and what the event must say.
    ways: dict[tuple[int, bool], list[tuple[int, Transition]]] = {
        (RUNS, False): [(RUNS, whenever)],
        (SAME_TIME, False): [(SAME_TIME, now)],
        (SAME_TIME, True): [(DONE, later)],
        (LATER, False): [*((AT_ENDS, test) for test in told.ends), *((LATER, test) for test in told.others)],
        (LATER, True): [(DONE, whenever)],
        (AT_ENDS, False): [(AT_ENDS, now)],
        (AT_ENDS, True): [(DONE, now)],
    }
    for phase, test in ways[LATER, False]:
        masks = alphabet.both(later, test)
        if masks is not None:
            ways[SAME_TIME, False].append((phase, Transition(0, 0, masks[0], None, masks[1])))
    left, right = idle(before), idle(body)
    start = (before.initial, body.initial, RUNS)
    numbers, final = {start: states.state()}, states.state()
    todo, moves = [start], []
    while todo:
        source = todo.pop()
        for a, b in itertools.product(left.get(source[0], ()), right.get(source[1], ())):
            masks = alphabet.both(a, b)
            if masks is None:
                continue
            both = Transition(0, 0, masks[0], joint(a.mark, b.mark), masks[1])
            for way, test in ways.get((source[2], b.target == DONE), ()):
                phase = SAME_TIME if way == RUNS and a.target == DONE else way
                target = (a.target, b.target, phase)
                found = alphabet.both(both, test)
                if target == start or found is None:
                    continue  # one of them begins the match
                if phase != DONE and target not in numbers:
                    numbers[target] = states.state()
                    todo.append(target)
                to = final if phase == DONE else numbers[target]
                moves.append(dataclasses.replace(both, source=numbers[source], target=to, requires=found[0], forbids=found[1]))
        if len(moves) > MAX_BESIDE:
            return None
    return Fragment(numbers[start], frozenset({final}), tuple(moves), all_pending((before, body)))


def apart(states: States, body: Fragment, moved: int, *, earlier: bool) -> Fragment:
    """The matches of a fragment, from the first event of the time at which they begin to the first of a time after that at which they end.

    Their starts and ends compare by place as times do. They mark nothing that shows. moved: as for `following`. earlier: they may begin before the
    event that is read first; then they begin with it here, and who runs them knows the first event of that time (`Negated.timed`).
    """
    ended, final = states.state(), states.state()
    moves = [Transition(ended, ended, forbids=moved), Transition(ended, final, moved, frozenset())]
    if earlier:
        return Fragment(body.initial, frozenset({final}), (*moves, *body.moves, *body.ending_in(ended)), body.pending)
    initial, begun = states.state(), states.state()
    moves += [Transition(initial, begun, moved, frozenset()), Transition(begun, begun, forbids=moved)]
    first = [dataclasses.replace(move, source=initial, requires=move.requires | moved) for move in body.first]
    first += [dataclasses.replace(move, source=begun, forbids=move.forbids | moved) for move in body.first]
    whole = dataclasses.replace(body, moves=(*(move for move in body.moves if move.source != body.initial), *first))
    return Fragment(initial, frozenset({final}), (*moves, *whole.moves, *whole.ending_in(ended)), body.pending)
