"""Selection strategies as automata: NXT, LAST and MAX of an automaton, as an automaton again (foundations-cel, Theorem 4).

Comes in: an automaton. Goes out: one whose matches are those that the strategy keeps of it. A strategy compares the supports (the visibly
marked positions) of all matches that end together. So beside the run of a candidate C goes a RELATION: two sets of states,

* `even`: what rivals reach that do not beat C as far as they have got (their supports so far are equal; LAST: or C has the last difference);
* `ahead`: what rivals reach that beat C if both go on alike: NXT: the first difference is an event that the rival has (that settles it);
  LAST: the last difference so far is; MAX: the rival has all that C has, and more.

A rival that is beaten for good is forgotten. `RULES` says how an event moves the sets; C is kept iff no final state is ahead at its end. A rival
may begin before C or after it. After: the initial state waits among the rivals. Before: until C begins it has marked nothing, and the relation
depends on the stream alone. It is then followed by a TRACKER from the first event on (`automaton.Tracker`), whose state before each event is part
of the event's letter; the first move of C reads it there. So still nothing but marks leaves the initial state, and every other construction
takes the result for any automaton.

Relations are kept small by simulation: a rival that another one outdoes (who can complete whatever it can, with the same support, and is no less
ahead) is forgotten, and so is a candidate that a rival ahead can follow: it is lost. At most exponential in the automaton (Theorem 4); the
limits have names.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from typing import TYPE_CHECKING

from cepheid.automata.automaton import Automaton, Mark, Tracker, Transition, order
from cepheid.automata.transform import cubes, hide, members, trim, type_bits, united
from cepheid.errors import LimitError
from cepheid.language.syntax import Strategy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from cepheid.errors import Span

MAX_RELATIONS = 5_000
"""States that the automaton of a strategy may have: a state of the run with a relation to its rivals."""

MAX_TRACKER_STATES = 1_024
"""States of one tracker: ten bits of a letter."""

MAX_CUBES = 200_000
"""Transitions that the automaton of a strategy may have before those with the same ends are united."""

SIMULATION_STATES = 64
"""Past so many states rivals are not compared: the simulation is quadratic in them."""

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


def select(automaton: Automaton, strategy: Strategy, *, bit: int, last: int = 0, span: Span | None = None) -> Automaton:
    """The automaton whose matches are those of `automaton` that NXT, LAST or MAX keeps.

    bit: the first letter bit that no predicate and no tracker has; the result's trackers are those of `automaton` and at most one behind them.
    last: letter bits that the events must have that end a match (0: none), so that the matches of one end alone come out. The marks stay, but
    that hidden ones inside become none. Raises LimitError past MAX_RELATIONS, MAX_TRACKER_STATES and MAX_CUBES, with `span`.
    """
    return _Construction(hide(automaton), strategy, bit, span).automaton(last)


class _Construction:
    """The states of one strategy's automaton while they are found: 0 is initial, 1 final, the others are runs with their relations."""

    def __init__(self, automaton: Automaton, strategy: Strategy, bit: int, span: Span | None) -> None:
        self.source = automaton
        self.rivals = _Rivals(automaton, strategy)
        self.bit = bit
        self.span = span
        self.types = type_bits(automaton)
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
        trackers = self.source.trackers
        if max(tracked) > 0:
            trackers = (*trackers, self._tracker(tracked))
        moves = [*self._beginning(tracked), *self._moves(self.edges)]
        moves = [dataclasses.replace(move, requires=move.requires | last) if move.target == FINAL else move for move in moves]
        found = Automaton(len(self.pairs) + 2, INITIAL, frozenset({FINAL}), order(moves), self.source.predicates, trackers)
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
                if rivals.kept(after) not in self.relations:
                    todo.append(self._relation(rivals.kept(after)))
                following[None, self.relations[rivals.kept(after)]].append(cube)
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
        for move in moves:
            if not move.enabled(cube[0]):
                continue
            after = self.rivals.step(relation, cube[0], taken=bool(move.mark))
            if move.target in self.source.finals:
                if not after[1] & self.rivals.finals:
                    edges[move.mark, FINAL].append(cube)
            elif not self.rivals.beaten(move.target, after):
                edges[move.mark, self._pair(move.target, self.rivals.kept(after))].append(cube)

    def _pair(self, state: int, relation: Relation) -> int:
        number = self.pairs.setdefault((state, relation), len(self.pairs) + 2)
        if len(self.pairs) > MAX_RELATIONS:
            raise self._limit("an automaton of more than", MAX_RELATIONS, "states (MAX_RELATIONS)")
        return number

    def _cubes(self, moves: Iterable[Transition]) -> Iterator[Cube]:
        for cube in cubes(list(dict.fromkeys(moves)), self.source):
            self.cubes += 1
            if self.cubes > MAX_CUBES:
                raise self._limit("an automaton of more than", MAX_CUBES, "transitions (MAX_CUBES)")
            yield cube

    def _limit(self, what: str, limit: int, unit: str) -> LimitError:
        return LimitError(
            f"the strategy {self.rivals.strategy.value} needs {what} {limit} {unit} here",
            span=self.span,
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
        self.finals = sum(1 << state for state in automaton.finals)
        self.better = simulation(self.graph)
        self._reached: dict[tuple[int, int], Relation] = {}

    def moves(self, relation: Relation) -> list[Transition]:
        """All moves of the rivals."""
        return [move for state in members(relation[0] | relation[1]) for move in self.graph.outgoing[state]]

    def step(self, relation: Relation, letter: int, *, taken: bool) -> Relation:
        """The relation after an event, with final states; taken: whether C marks the event visibly."""
        rule = RULES[self.strategy] if taken else _unmarked
        even, ahead = rule(self._reach(relation[0], letter), self._reach(relation[1], letter))
        return even & ~ahead, ahead

    def _reach(self, states: int, letter: int) -> Relation:
        """The states reached by visible marks, and without."""
        marked = unmarked = 0
        for state in members(states):
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

    def kept(self, relation: Relation) -> Relation:
        """The relation without rivals that have ended or that others outdo."""
        even, ahead = relation[0] & ~self.finals, relation[1] & ~self.finals
        ahead = self._essential(ahead)
        even = self._essential(sum(1 << state for state in members(even) if not self.better[state] & ahead))
        return even, ahead

    def _essential(self, states: int) -> int:
        return sum(1 << state for state in members(states) if not any(self._outdoes(other, state) for other in members(states)))

    def _outdoes(self, other: int, state: int) -> bool:
        """Whether `state` is superfluous beside `other`; of two that can do the same the smaller number stays."""
        return other != state and bool(self.better[state] >> other & 1) and (other < state or not self.better[other] >> state & 1)

    def beaten(self, state: int, relation: Relation) -> bool:
        """Whether a rival that is ahead can follow wherever a candidate in this state goes."""
        return bool(self.better[state] & relation[1] & ~self.finals)


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
        for state in range(automaton.states):
            for other in members(better[state] & ~(1 << state)):
                if not all(
                    any(_answers(answer, move, better) for answer in automaton.outgoing[other]) for move in automaton.outgoing[state]
                ):
                    better[state] &= ~(1 << other)
                    changed = True
    return better


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
    """The coarsest refinement found in which states of one class have the same ways out (Moore's algorithm)."""
    current = dict(classes)
    while True:
        seen: dict[object, int] = {}
        finer = {
            number: seen.setdefault((group, _signature(edges[number], current, types) if number in edges else None), len(seen))
            for number, group in current.items()
        }
        if len(set(finer.values())) == len(set(current.values())):
            return finer
        current = finer
