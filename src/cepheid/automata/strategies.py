"""Selection strategies as automata: NXT, LAST and MAX of an automaton, as an automaton again (foundations-cel, Theorem 4).

Comes in: an automaton. Goes out: an automaton with only the matches that the strategy keeps. A strategy compares the supports (the visibly marked
positions) of all matches that end together. So the run of a candidate C is combined with a RELATION: two sets of states,

* `even`: what rivals reach that do not beat C as far as they have got (their supports so far are equal; LAST: or C has the last difference);
* `ahead`: what rivals reach that beat C if both go on alike: NXT: the first difference is an event that the rival has (that settles it);
  LAST: the last difference so far is; MAX: the rival has all that C has, and more.

A rival that can no longer win is forgotten. `RULES` says how an event moves the sets; C is kept if and only if no final state is ahead at its end. A
rival may begin before C or after it. After: the initial state waits among the rivals. Before: until C begins, it has marked nothing, and the relation
depends on the stream alone. Then a TRACKER follows the relation from the first event on (`automaton.Tracker`). Its state before each event is part of
the event's letter, and the first move of C reads it there. So still only marking transitions leave the initial state, and every other construction
can treat the result like any automaton.

Relations are kept small. A rival is forgotten in two cases. Either another rival is at least as good: it can complete whatever the first one can,
with the same support, and is no less ahead. Or the rival is harmless to this candidate: whenever it beats C, so does a companion, a rival that every
candidate in this state has, such as the one that has marked the same as C until now. A candidate that a rival ahead can follow is lost. The result is
at most exponential in the automaton (Theorem 4), and mostly as small as a hand-written one; the limits have names.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import defaultdict
from typing import TYPE_CHECKING

from cepheid.automata.alphabet import Tracker
from cepheid.automata.automaton import Automaton
from cepheid.automata.registers import Before, Elapsed, Now, Store
from cepheid.automata.transform import cubes, hide, members, trim, united, without_twins
from cepheid.automata.transition import Mark, Transition, order
from cepheid.errors import LimitError
from cepheid.language.syntax import Strategy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from cepheid.automata.alphabet import Flag

MAX_RELATIONS = 5_000
"""States that the automaton of a strategy may have: a state of the run with a relation to its rivals."""

MAX_TRACKER_STATES = 1_024
"""States of one tracker: ten bits of a letter."""

MAX_CUBES = 50_000
"""Transitions that the automaton of a strategy may have before those with the same ends are united."""

SIMULATION_STATES = 64
"""Past so many states rivals are not compared: the simulation is quadratic in them."""

HARMLESS_CUBES = 20_000
"""Letters that are looked at to find out which rivals are harmless; past it all are kept."""

Relation = tuple[int, int]
"""even and ahead, as bit masks over states; disjoint."""

Cube = tuple[int, int]
"""requires and forbids of a transition."""

Edges = dict[tuple[Mark | None, int], list[Cube]]
"""The ways out of a state: mark and target, and for which letters."""

VISIBLE: Mark = frozenset({""})


def _unmarked(even: Relation, ahead: Relation) -> Relation:
    """C does not take the event: rivals that do get ahead, whatever the strategy."""
    return even[1], even[0] | ahead[0] | ahead[1]


def _next(even: Relation, ahead: Relation) -> Relation:
    return even[0], ahead[0] | ahead[1]


def _last(even: Relation, ahead: Relation) -> Relation:
    return even[0] | even[1] | ahead[1], ahead[0]


def _maximal(even: Relation, ahead: Relation) -> Relation:
    return even[0], ahead[0]


RULES: dict[Strategy, Callable[[Relation, Relation], Relation]] = {Strategy.NXT: _next, Strategy.LAST: _last, Strategy.MAX: _maximal}
"""The new relation where C takes an event, from (states that `even` reaches by taking it, by not taking it) and the same for `ahead`."""


def select(automaton: Automaton, strategy: Strategy, *, last: Flag | None = None) -> Automaton:
    """The automaton whose matches are those of `automaton` that NXT, LAST or MAX keeps.

    The result has the alphabet of `automaton`, and at most one tracker more. last: a flag that the events must have that end a match, so that
    the matches of one end alone come out. The marks stay, but that hidden ones inside become none. Raises LimitError past MAX_RELATIONS,
    MAX_TRACKER_STATES and MAX_CUBES.
    """
    automaton.alphabet.refuse_guards(f"the strategy {strategy.value}")
    automaton.refuse_parts(f"the strategy {strategy.value}")
    if automaton.alphabet.is_long:
        automaton = without_twins(automaton)  # each of hundreds of alternatives has states of its own
    return _Construction(hide(automaton), strategy).automaton(0 if last is None else last.mask)


class _Construction:
    """The states of one strategy's automaton while they are found: 0 is initial, 1 final, the others are runs with their relations."""

    def __init__(self, automaton: Automaton, strategy: Strategy) -> None:
        self.source = automaton
        self.rivals = _Rivals(automaton, strategy)
        self.bit = automaton.alphabet.width  # the first that is free
        self.types = automaton.alphabet.types
        self.relations: dict[Relation, int] = {}  # of the tracker
        self.tracker_edges: list[Edges] = []
        self.first: list[Edges] = []  # the ways out of the initial state, by the state of the tracker
        self.pairs: dict[tuple[int, Relation], int] = {}
        self.edges: dict[int, Edges] = {}
        self.cubes = 0

    def automaton(self, last: int) -> Automaton:
        self._track()
        self._follow()
        self._merge_pairs()
        tracked = self._merge_tracked()
        alphabet = self.source.alphabet
        if max(tracked) > 0:
            alphabet = dataclasses.replace(alphabet, trackers=(*alphabet.trackers, self._tracker(tracked)))
        moves = [*self._beginning(tracked), *self._moves(self.edges)]
        moves = [dataclasses.replace(move, requires=move.requires | last) if move.target == FINAL else move for move in moves]
        found = Automaton(len(self.pairs) + 2, INITIAL, frozenset({FINAL}), order(moves), alphabet)
        return trim(found)

    # ------------------------------------------------------------------------------------------------------------------- exploration

    def _track(self) -> None:
        """The relations before C begins, and the ways to begin from each."""
        rivals, source = self.rivals, self.source
        todo = [self._relation((1 << source.initial, 0))]
        beginning = source.outgoing[source.initial]
        for relation, _ in todo:
            moves = [*rivals.moves(relation), *beginning]
            following: Edges = defaultdict(list)
            starting: Edges = defaultdict(list)
            for cube in self._cubes(moves):
                after = rivals.step(relation, cube[0], taken=False)
                kept = rivals.kept(source.initial, after)
                if kept not in self.relations:
                    todo.append(self._relation(kept))
                following[None, self.relations[kept]].append(cube)
                self._leave(starting, beginning, relation, cube)
            self.tracker_edges.append(self._united(following))
            self.first.append(self._united(starting))

    def _relation(self, relation: Relation) -> tuple[Relation, int]:
        if len(self.relations) == MAX_TRACKER_STATES:
            raise self._limit("a tracker of more than", MAX_TRACKER_STATES, "states (MAX_TRACKER_STATES)")
        return relation, self.relations.setdefault(relation, len(self.relations))

    def _follow(self) -> None:
        """The runs of candidates with their relations, from those in which they have begun."""
        done = 0
        while done < len(self.pairs):
            for (state, relation), number in list(self.pairs.items())[done:]:
                done += 1
                leaving: Edges = defaultdict(list)
                own = self.source.outgoing[state]
                for cube in self._cubes([*self.rivals.moves(relation), *own]):
                    self._leave(leaving, own, relation, cube)
                self.edges[number] = self._united(leaving)

    def _leave(self, edges: Edges, moves: Iterable[Transition], relation: Relation, cube: Cube) -> None:
        """The ways of a candidate with these moves on the letters of a cube."""
        reached = self.rivals.reached(relation, cube[0])
        for move in moves:
            if not move.enabled(cube[0]):
                continue
            after = self.rivals.after(reached, taken=bool(move.mark))
            if move.target in self.source.finals:
                if not after[1] & self.rivals.finals:
                    edges[move.mark, FINAL].append(cube)
            elif not self.rivals.beaten(move.target, after):
                edges[move.mark, self._pair(move.target, self.rivals.kept(move.target, after))].append(cube)

    def _pair(self, state: int, relation: Relation) -> int:
        number = self.pairs.setdefault((state, relation), len(self.pairs) + 2)
        if len(self.pairs) > MAX_RELATIONS:
            raise self._limit("an automaton of more than", MAX_RELATIONS, "states (MAX_RELATIONS)")
        return number

    def _cubes(self, moves: Iterable[Transition]) -> Iterator[Cube]:
        for cube in cubes(list(dict.fromkeys(moves)), self.source.alphabet):
            self.cubes += 1
            if self.cubes > MAX_CUBES:
                raise self._limit("an automaton of more than", MAX_CUBES, "transitions (MAX_CUBES)")
            yield cube

    def _limit(self, what: str, limit: int, unit: str) -> LimitError:
        return LimitError(
            f"the strategy {self.rivals.strategy.value} needs {what} {limit} {unit} here",
            help="apply it to a shorter pattern: fewer alternatives and iterations, fewer conditions that overlap",
        )

    def _united(self, edges: Edges) -> Edges:
        return {way: list(united(found, self.types)) for way, found in edges.items()}

    # ----------------------------------------------------------------------------------------------------------------------- merging

    def _merge_pairs(self) -> None:
        """States with the same ways out become one (bisimulation)."""
        classes = _classes(dict.fromkeys(self.edges, 2) | {INITIAL: INITIAL, FINAL: FINAL}, self.edges, self.types)
        kept: dict[int, int] = {}
        for number in sorted(self.edges):
            kept.setdefault(classes[number], number)
        representative = {number: kept[classes[number]] for number in self.edges} | {FINAL: FINAL}
        self.edges = {
            number: self._mapped(edges, representative) for number, edges in self.edges.items() if representative[number] == number
        }
        self.first = [self._mapped(edges, representative) for edges in self.first]

    def _mapped(self, edges: Edges, numbers: Mapping[int, int]) -> Edges:
        found: Edges = defaultdict(list)
        for (mark, target), each in edges.items():
            found[mark, numbers[target]] += each
        return self._united(found)

    def _merge_tracked(self) -> list[int]:
        """For each relation of the tracker its class: relations from which the same can begin, now and later, are one."""
        seen: dict[object, int] = {}
        classes = {n: seen.setdefault(_signature(edges, {}, self.types), len(seen)) for n, edges in enumerate(self.first)}
        classes = _classes(classes, dict(enumerate(self.tracker_edges)), self.types)
        numbers: dict[int, int] = {}
        return [numbers.setdefault(classes[n], len(numbers)) for n in range(len(self.first))]

    # ------------------------------------------------------------------------------------------------------------------------ result

    def _tracker(self, classes: list[int]) -> Tracker:
        moves = []
        for number in range(max(classes) + 1):
            edges = self._mapped(self.tracker_edges[classes.index(number)], dict(enumerate(classes)))
            moves += [
                Transition(number, target, c[0], None, c[1]) for (_, target), found in edges.items() for c in found if target != number
            ]
        return Tracker(self.bit, max(classes) + 1, order(moves))

    def _beginning(self, classes: list[int]) -> list[Transition]:
        """The first moves: each reads the state of the tracker off the letter."""
        tracker = Tracker(self.bit, max(classes) + 1, ())
        edges: Edges = defaultdict(list)
        for number in range(tracker.states):
            code = number << self.bit
            for way, found in self.first[classes.index(number)].items():
                edges[way] += [(requires | code, forbids | tracker.mask & ~code) for requires, forbids in found]
        return self._moves({INITIAL: self._united(edges)})

    def _moves(self, edges: Mapping[int, Edges]) -> list[Transition]:
        return [
            Transition(source, target, requires, mark, forbids)
            for source, ways in edges.items()
            for (mark, target), found in ways.items()
            for requires, forbids in found
        ]


INITIAL, FINAL = 0, 1


class _Rivals:
    """The other matches: the automaton with its marks reduced to visible or not, and an initial state that waits."""

    def __init__(self, automaton: Automaton, strategy: Strategy) -> None:
        moves = {dataclasses.replace(move, mark=VISIBLE if move.mark else None) for move in automaton.transitions}
        moves.add(Transition(automaton.initial, automaton.initial))
        self.graph = dataclasses.replace(automaton, transitions=order(moves))
        self.strategy = strategy
        self._rule = RULES[strategy]
        self.finals = sum(1 << state for state in automaton.finals)
        self.better = simulation(self.graph)
        self.outdone = _outdone(self.better)
        self._reached: dict[tuple[int, int], Relation] = {}
        self._kept: dict[tuple[int, Relation], Relation] = {}
        self._types = automaton.alphabet.types
        self._waiting = sum(1 << move.source for move in self.graph.transitions if move.waits)
        self._awake: dict[int, int] = defaultdict(int)  # by the type of an event, 0 for any: the states that it may move
        for move in self.graph.transitions:
            if not move.waits:
                self._awake[move.requires & self._types] |= 1 << move.source
        self._effort = 0
        self.companions = self._all_companions()
        self.harmless = self._all_harmless()

    def moves(self, relation: Relation) -> list[Transition]:
        """All moves of the rivals."""
        return [move for state in members(relation[0] | relation[1]) for move in self.graph.outgoing[state]]

    def step(self, relation: Relation, letter: int, *, taken: bool) -> Relation:
        """The relation after an event, with final states; taken: whether C marks the event visibly."""
        return self.after(self.reached(relation, letter), taken=taken)

    def reached(self, relation: Relation, letter: int) -> tuple[Relation, Relation]:
        """What the rivals reach that are even, and those that are ahead."""
        return self._reach(relation[0], letter), self._reach(relation[1], letter)

    def after(self, reached: tuple[Relation, Relation], *, taken: bool) -> Relation:
        """The relation after an event with which the rivals have reached this."""
        even, ahead = (self._rule if taken else _unmarked)(*reached)
        return even & ~ahead, ahead

    def _reach(self, states: int, letter: int) -> Relation:
        """The states reached by visible marks, and without."""
        if not states:
            return 0, 0
        # PERF: most states only wait, and are not looked at one by one.
        marked, unmarked = 0, states & self._waiting & ~(self._awake[letter & self._types] | self._awake[0])
        for state in members(states & ~unmarked):
            found = self._reached.get((state, letter))
            if found is None:
                targets = [0, 0]
                for move in self.graph.outgoing[state]:
                    if move.enabled(letter):
                        targets[move.mark is None] |= 1 << move.target
                found = self._reached[state, letter] = targets[0], targets[1]
            marked |= found[0]
            unmarked |= found[1]
        return marked, unmarked

    def kept(self, state: int, relation: Relation) -> Relation:
        """The relation of a candidate in `state` without rivals that have ended, that are harmless to it, or that others outdo."""
        found = self._kept.get((state, relation))
        if found is None:
            even_harmless, ahead_harmless = self.harmless[state]
            even = (relation[0] & ~self.finals & ~even_harmless) | self.companions[state]
            ahead = self._essential(relation[1] & ~self.finals & ~ahead_harmless)
            even = self._essential(_without(even, self.better, ahead))
            found = self._kept[state, relation] = even, ahead
        return found

    def _essential(self, states: int) -> int:
        return _without(states, self.outdone, states)

    def beaten(self, state: int, relation: Relation) -> bool:
        """Whether a rival that is ahead can follow wherever a candidate in this state goes."""
        return bool(self.better[state] & relation[1] & ~self.finals)

    # ------------------------------------------------------------------------------------------------------------------- who is harmless

    def _cubes(self, states: int) -> Iterator[Cube]:
        """Letters that decide the moves of all these states, as long as there are not too many of them."""
        for cube in cubes(self.moves((states, 0)), self.graph.alphabet):
            self._effort += 1
            if self._effort > HARMLESS_CUBES:
                raise _TooLongError
            yield cube

    def _all_companions(self) -> list[int]:
        """For each state of a candidate the states that some rival is in whenever a candidate is in it, even or ahead; itself among them."""
        inner = (1 << self.graph.states) - 1 & ~self.finals
        companions = [inner] * self.graph.states
        companions[self.graph.initial] = 1 << self.graph.initial
        todo = set(members(inner))
        try:
            while todo:
                state = todo.pop()
                for letter, _ in self._cubes(companions[state]):
                    for target, _, alike in self._ways(state, letter, companions[state]):
                        fewer = companions[target] & (alike[0] | alike[1])
                        if fewer != companions[target]:
                            companions[target] = fewer
                            todo.add(target)
        except _TooLongError:
            return [1 << state for state in range(self.graph.states)]
        return companions

    def _ways(self, state: int, letter: int, companions: int) -> Iterator[tuple[int, bool, Relation]]:
        """Where a candidate may go that does not end it and that its companions do not beat; whether that takes the event; where these are then."""
        for move in self.graph.outgoing[state]:
            if move.enabled(letter) and not self.finals >> move.target & 1:
                taken = move.mark is not None
                alike = self.step((companions, 0), letter, taken=taken)
                if not self.beaten(move.target, alike):
                    yield move.target, taken, alike

    def _all_harmless(self) -> list[Relation]:
        """For each state of a candidate the rivals' states that are harmless to it, if they are even, and if they are ahead (as bit masks).

        The greatest set with: wherever candidate and rival go with an event, the rival is harmless again, or a companion gets to a state that
        outdoes it. Where it takes too long to find there are none.
        """
        count = self.graph.states
        inner = [state for state in range(count) if not self.finals >> state & 1]
        wanted: dict[tuple[int, int, int], set[tuple[int, Relation]]] = {}
        try:
            for state in inner:
                for rival, ahead in itertools.product(inner, (EVEN, AHEAD)):
                    companion = rival == state if ahead else self.companions[state] >> rival & 1
                    found = None if companion else self._demands(state, rival, ahead)
                    if found is not None:
                        wanted[state, rival, ahead] = found
        except _TooLongError:
            return [(0, 0)] * count
        gone: list[tuple[int, int, int]] = []
        wanted_by: dict[tuple[int, int, int], list[tuple[int, int, int]]] = defaultdict(list)
        for one, found in wanted.items():
            for to, relation in found:
                for ahead, rivals in enumerate(relation):
                    for rival in members(rivals):
                        wanted_by[to, rival, ahead].append(one)
                        if (to, rival, ahead) not in wanted:
                            gone.append(one)
        while gone:
            one = gone.pop()
            if wanted.pop(one, None) is not None:
                gone += wanted_by[one]
        harmless = [[0, 0] for _ in range(count)]
        for state, rival, ahead in wanted:
            harmless[state][ahead] |= 1 << rival
        return [(even, ahead) for even, ahead in harmless]

    def _demands(self, state: int, rival: int, ahead: int) -> set[tuple[int, Relation]] | None:
        """What must be harmless so that this rival is: (state of the candidate, relation) pairs; None: it is not, in any case."""
        companions = self.companions[state]
        start = (0, 1 << rival) if ahead else (1 << rival, 0)
        wanted: set[tuple[int, Relation]] = set()
        for letter, _ in self._cubes(companions | 1 << rival):
            if self._ends_ahead(state, letter, start):
                return None
            for target, taken, alike in self._ways(state, letter, companions):
                after = self.step(start, letter, taken=taken)
                even = self._not_outdone(after[0], alike[0] | alike[1]) & ~self.companions[target]
                above = self._not_outdone(after[1], alike[1])
                if above >> target & 1:
                    return None
                if even | above:
                    wanted.add((target, (even, above)))
        return wanted

    def _ends_ahead(self, state: int, letter: int, start: Relation) -> bool:
        """Whether a rival beats, and no companion does, a candidate that ends with an event."""
        for move in self.graph.outgoing[state]:
            if move.enabled(letter) and self.finals >> move.target & 1:
                taken = move.mark is not None
                alike = self.step((self.companions[state], 0), letter, taken=taken)
                if self.step(start, letter, taken=taken)[1] & self.finals and not alike[1] & self.finals:
                    return True
        return False

    def _not_outdone(self, states: int, others: int) -> int:
        """The states, but final ones, that none of the others outdoes."""
        return _without(states & ~self.finals, self.better, others)


EVEN, AHEAD = 0, 1


def _without(states: int, others_of: list[int], others: int) -> int:
    """The states without those that have one of the others among their own."""
    # PERF: without a generator, and the members of large sets are few in all.
    rest = states
    while rest:
        low = rest & -rest
        if others_of[low.bit_length() - 1] & others:
            states ^= low
        rest ^= low
    return states


class _TooLongError(Exception):
    """Finding out who is harmless takes too long."""


def simulation(automaton: Automaton) -> list[int]:
    """For each state the states (a bit mask) that can complete whatever it can complete, with equal marks; itself among them.

    Name in paper: the greatest simulation. Past SIMULATION_STATES a state has only itself.
    """
    everything = (1 << automaton.states) - 1
    if automaton.states > SIMULATION_STATES:
        return [1 << state for state in range(automaton.states)]
    finals = sum(1 << state for state in automaton.finals)
    better = [finals if finals >> state & 1 else everything for state in range(automaton.states)]
    changed = True
    while changed:
        changed = False
        # PERF: most moves lead to higher numbers, and what is known of their targets is used at once.
        for state in reversed(range(automaton.states)):
            for other in members(better[state] & ~(1 << state)):
                if not all(
                    any(_answers(answer, move, better) for answer in automaton.outgoing[other]) for move in automaton.outgoing[state]
                ):
                    better[state] &= ~(1 << other)
                    changed = True
    return better


def _outdone(better: list[int]) -> list[int]:
    """For each state the others beside which it is superfluous; of two that can do the same the smaller number stays."""
    return [
        sum(1 << other for other in members(mask & ~(1 << state)) if other < state or not better[other] >> state & 1)
        for state, mask in enumerate(better)
    ]


def _answers(answer: Transition, move: Transition, better: list[int]) -> bool:
    weaker = not answer.requires & ~move.requires and not answer.forbids & ~move.forbids
    return weaker and answer.mark == move.mark and bool(better[move.target] >> answer.target & 1)


def _signature(edges: Edges, classes: Mapping[int, int], types: int) -> frozenset[object]:
    """The ways out of a state up to the classes of their targets."""
    found: Edges = defaultdict(list)
    for (mark, target), each in edges.items():
        found[mark, classes.get(target, target)] += each
    return frozenset((way, united(each, types)) for way, each in found.items())


def _classes(classes: Mapping[int, int], edges: Mapping[int, Edges], types: int) -> dict[int, int]:
    """The coarsest refinement found in which states of one class have the same ways out.

    Moore's algorithm; after its first round only states are looked at that lead to one whose class has changed.
    """
    current = dict(classes)
    sources: dict[int, set[int]] = defaultdict(set)
    for number, ways in edges.items():
        for _, target in ways:
            sources[target].add(number)
    groups: dict[int, list[int]] = defaultdict(list)
    for number, group in current.items():
        groups[group].append(number)
    following = max(groups) + 1
    signatures: dict[int, frozenset[object]] = {}
    todo = set(edges)
    while todo:
        signatures |= {number: _signature(edges[number], current, types) for number in todo}
        moved: list[int] = []
        for group in {current[number] for number in todo}:
            parts: dict[object, list[int]] = defaultdict(list)
            for number in groups[group]:
                parts[signatures.get(number)].append(number)
            # The largest part stays the class, the others become new ones.
            groups[group], *others = sorted(parts.values(), key=len, reverse=True)
            for part in others:
                groups[following] = part
                current |= dict.fromkeys(part, following)
                following += 1
                moved += part
        todo = set().union(*(sources[number] for number in moved))
    return current


def is_last(automaton: Automaton) -> bool:
    """Whether MAX is LAST: one of the matches that end at an event has all events of the others."""
    return all(move.mark for move in automaton.transitions) or unites(automaton)


def unites(automaton: Automaton) -> bool:
    """Whether two matches that end at one event are, together, one: chains of events with a longest gap, such as sessions (Proposition 9)."""
    guards, inner = automaton.alphabet.guards, {move.target for move in automaton.transitions} - automaton.finals
    if len(guards) != 1 or len(inner) != 1 or automaton.initial in inner or automaton.alphabet.flags or automaton.parts:
        return False
    (guard,), (state,) = guards, inner
    test = guard.test
    if not isinstance(test, Elapsed) or not isinstance(test.before, Before) or test.interval.lower > 0:
        return False
    kept = frozenset({Store(test.before.register, Now(test.now))})
    letters: dict[bool, set[tuple[int, int]]] = {False: set(), True: set()}  # of the moves to the inner state, by whether they ask
    for move in automaton.transitions:
        if move.waits and move.source == state:
            continue
        asks = bool(move.requires & guard.mask)
        if not move.mark or move.source != (state if asks else automaton.initial) or move.forbids & guard.mask:
            return False
        if move.target == state:
            if move.writes != kept:
                return False
            letters[asks].add((move.requires & ~guard.mask, move.forbids))
    return letters[False] <= letters[True]
