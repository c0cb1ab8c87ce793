"""MAX inside a window as a finite machine: which matches strictly contain which, and how long each domination lasts.

Source: Algorithm 7 of foundations-cel (appendix D.3), whose set U ("states of runs that have marked strictly more") remembers here, per
state, HOW LONG the domination lasts. A match C is beaten by a strict superset D with the same end, but only while start(D) is allowed, by
the window or by consumption. D starts no later than C, so of all dominating runs in one state only the greatest start matters. A MACRO
STATE is a pair (T, dominated): T = waiting states reached with exactly these marks, dominated = {waiting state: level of the greatest start
of a strict superset in it}. The starts that a level can stand for are few, and fixed when C starts at s:

* TOP: the superset starts at s too. It lives as long as C, so its states are struck from T for good (the paper's T minus U);
* a LABEL v: the superset started earlier, was in waiting state v just before s, and marked s as well. Its greatest start is M_v(s), the
  greatest start of any partial match in v before s: one number per waiting state and start, kept beside the start (its threshold).

Which level is higher is the order of the numbers M_v(s): the order is part of the CONFIGURATION (labels in ascending order, macro states
with levels as indices into them), the numbers are not. Starts with the same configuration make the same moves for ever and form one group.
At a trigger a macro state accepts when T ends a match; its level is the highest one of a dominating end. TOP: never. None: every live start
of the group. A label v: the starts s with M_v(s) < oldest. M_v never decreases along the stream, so these starts are a prefix of the
group's live starts, and no start is visited in vain. Likewise a label that has expired for the newest start of a group has expired for all:
it is dropped, always from the low end of the order, and groups merge again.

The order in which the numbers M_v stand just before an event is a finite machine as well (an ORDER: per waiting state a rank, 0 if no live
partial match is in it), so all that the kernel reads are flat tables, filled in when it asks. Macro states are at most (labels + 2) ^
states per configuration, exponential in the query alone, as in the paper. Everything here depends on the automaton only: no position, no
time, and the content of a configuration, not its number, decides the order of its macro states, so that what LIMIT takes does not depend on
what other partitions did.

So the worst case of a query is known before it runs: `explore` walks through all configurations that any stream leads to. The planner takes
MAX by groups of starts where they are few, and chooses per end where they are too many (`cepheid.engine.evaluations.graph.per_end`).
"""

from __future__ import annotations

import functools
import itertools
import operator
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from cepheid.automata.alphabet import Alphabet
from cepheid.automata.transform import members
from cepheid.engine.memory.pools import power_of_two
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cepheid.automata.alphabet import Predicate
    from cepheid.automata.waiting import WaitingAutomaton
    from cepheid.engine.memory.pools import Array

Macro = tuple[int, tuple[tuple[int, int], ...]]  # T as a mask over waiting states, and (waiting state, level) ascending
Configuration = tuple[tuple[int, ...], tuple[Macro, ...]]  # labels by ascending number, macro states in ascending order
Order = tuple[int, ...]  # rank of each waiting state's number, 0 where it is not live

TOP = 1 << 30
"""The level of a superset with the same start: above all labels."""

EXPLORED_LETTERS, EXPLORED_STEPS, EXPLORED_NUMBERS = 1 << 10, 1 << 18, 1 << 15
"""What `explore` gives up at: letters that differ for the automaton, moves of one state by one letter (under a second in all), and numbers of all
groups (a quarter of a megabyte for each partition). A chain of eight types has 9 letters, 117,000 steps and 15,000 numbers."""

TABLE_ENTRIES = 1 << 22
"""Bound of the tables, in places of 4 bytes: past it all is forgotten but what is live; see `DominationTable.renumber`."""

NONE, UNKNOWN = -1, -2


class Domination:
    """The machine itself: configurations and orders, and where they go on a letter.

    Waiting states are numbered from 0 here: state k of the machine is state k + 1 of the automaton.
    """

    def __init__(self, automaton: WaitingAutomaton) -> None:
        self.automaton = automaton
        self.waiting_count = automaton.waiting
        # better[w]: the other waiting states that can do whatever w can.
        self._better = [
            sum(1 << (other - 1) for other in automaton.better[state] if other != state) for state in range(1, automaton.waiting + 1)
        ]
        self.entered: Callable[[int], tuple[tuple[int, bool], ...]] = lru_cache(maxsize=1 << 12)(self._entered)
        self.follow: Callable[[Macro, int], tuple[Macro, Macro, bool, int]] = lru_cache(maxsize=1 << 16)(self._follow)

    def _entered(self, letter: int) -> tuple[tuple[int, bool], ...]:
        """(waiting states entered, as a mask; does a match end?) by marking an event, from waiting state k at [k], from the initial state at [-1]."""
        automaton, found = self.automaton, []
        for source in [*range(1, automaton.waiting + 1), 0]:
            targets = automaton.entered(source, letter)
            found.append((sum(1 << (target - 1) for target in targets if target != automaton.final), automaton.final in targets))
        return tuple(found)

    def _normal(self, states: int, levels: dict[int, int]) -> Macro:
        """Normal form of a macro state: nothing that another state makes superfluous, T without what TOP strikes."""
        better = self._better
        kept = {s: level for s, level in levels.items() if not any(levels.get(other, NONE) >= level for other in members(better[s]))}
        top = sum(1 << state for state, level in kept.items() if level == TOP)
        states = sum(1 << state for state in members(states) if not (better[state] | 1 << state) & top)
        states = sum(1 << state for state in members(states) if not better[state] & states)
        return states, tuple(sorted(kept.items()))

    def _follow(self, macro: Macro, letter: int) -> tuple[Macro, Macro, bool, int]:
        """(macro state after marking the event, after not marking it, does a match end, level that beats it or NONE); T may be empty."""
        entered = self.entered(letter)
        states, dominated = macro
        taken: dict[int, int] = {}
        skipped: dict[int, int] = {}
        beaten, accepts, after = NONE, False, 0
        for state, level in dominated:
            targets, ends = entered[state]
            _raise(taken, targets, level)  # both mark the event
            if ends:
                beaten = max(beaten, level)
            _raise(skipped, 1 << state | targets, level)  # neither marks it, or only the superset does
        for state in members(states):
            targets, ends = entered[state]
            _raise(skipped, targets, TOP)  # a new superset with the same start
            after |= targets
            accepts |= ends
        return self._normal(after, taken), self._normal(states, skipped), accepts and beaten != TOP, beaten

    def configuration(self, labels: tuple[int, ...], macros: Iterable[Macro]) -> Configuration:
        """A configuration without the labels that no macro state uses, macro states sorted."""
        macros = set(macros)
        used = sorted({level for _, dominated in macros for _, level in dominated if level != TOP})
        renumbered = {level: index for index, level in enumerate(used)} | {TOP: TOP}
        moved = ((states, tuple((state, renumbered[level]) for state, level in dominated)) for states, dominated in macros)
        return tuple(labels[level] for level in used), tuple(sorted(moved))

    def expired(self, configuration: Configuration, gone: int) -> tuple[Configuration, list[list[int]]]:
        """The configuration without its `gone` lowest labels, and for each of its macro states the places it comes from."""
        labels, macros = configuration
        sources: dict[Macro, list[int]] = {}
        for place, (states, dominated) in enumerate(macros):
            kept = tuple((state, level if level == TOP else level - gone) for state, level in dominated if level >= gone)
            sources.setdefault((states, kept), []).append(place)
        return self.arranged(labels[gone:], sources)

    def arranged(self, labels: tuple[int, ...], sources: dict[Macro, list[int]]) -> tuple[Configuration, list[list[int]]]:
        """A configuration of these macro states, and their sources in its order."""
        # Renumbering levels is monotone, so sorting before it and after it is the same.
        return self.configuration(labels, sources), [sources[macro] for macro in sorted(sources)]

    def begin(self, order: Order, letter: int) -> tuple[Configuration, bool]:
        """The configuration of a match that starts at the event, and whether it also ends there unbeaten."""
        entered = self.entered(letter)
        targets, accepts = entered[-1]
        labels = tuple(order.index(rank) for rank in range(1, max(order, default=0) + 1))
        dominated: dict[int, int] = {}
        for state, rank in enumerate(order):
            if rank:
                _raise(dominated, entered[state][0], rank - 1)
                accepts &= not entered[state][1]
        macro = self._normal(targets, dominated)
        return self.configuration(labels, [macro] if macro[0] else []), accepts

    def reorder(self, order: Order, letter: int) -> Order:
        """The order of the numbers after the event."""
        entered = self.entered(letter)
        ranks = list(order)
        for state, rank in enumerate(order):
            if rank:
                for target in members(entered[state][0]):
                    ranks[target] = max(ranks[target], rank)
        for target in members(entered[-1][0]):
            ranks[target] = self.waiting_count + 1
        dense = {rank: place for place, rank in enumerate(sorted({0, *ranks}))}
        return tuple(dense[rank] for rank in ranks)

    def without_lowest(self, order: Order) -> Order:
        """The order after its lowest number has expired."""
        return tuple(max(0, rank - 1) for rank in order)

    def sources(self, configuration: Configuration, letter: int) -> tuple[dict[Macro, list[int]], list[tuple[int, bool, int]]]:
        """What a letter makes of a configuration.

        Returns the macro states after it, each with the places it comes from (places of the configuration; behind them, cells), and the cells:
        (place extended, whether a match ends there, level that beats it or NONE).
        """
        found: dict[Macro, list[int]] = {}
        cells: list[tuple[int, bool, int]] = []
        macros = configuration[1]
        for place, macro in enumerate(macros):
            taken, skipped, accepts, level = self.follow(macro, letter)
            if accepts or taken[0]:
                if taken[0]:
                    found.setdefault(taken, []).append(len(macros) + len(cells))
                cells.append((place, accepts, level))
            if skipped[0]:
                found.setdefault(skipped, []).append(place)
        return found, cells


@record
class Explored:
    """How much any stream can ask for: configurations (so groups of a partition), and macro states in the largest of them."""

    configurations: int
    macros: int


def explore(automaton: WaitingAutomaton, predicates: Sequence[Predicate]) -> Explored | None:
    """The configurations that streams over these predicates lead to; None where they are too many (see EXPLORED_STEPS).

    An event has one type; its conditions are taken to hold in every combination. Time and memory bounded by the limits.
    """
    alphabet = Alphabet(tuple(predicates))
    return _explored(automaton, alphabet.types, long=alphabet.is_long)


@lru_cache(maxsize=1 << 8)
def _explored(automaton: WaitingAutomaton, types: int, *, long: bool) -> Explored | None:
    machine = Domination(automaton)
    letters = _letters(machine, types, long=long)
    if letters is None:
        return None
    steps = numbers = 0
    orders: dict[Order, None] = {(0,) * machine.waiting_count: None}
    configurations: dict[Configuration, None] = {}
    fresh: list[Configuration] = []

    def reached(configuration: Configuration) -> None:
        nonlocal numbers
        if configuration[1] and configuration not in configurations:
            configurations[configuration] = None
            fresh.append(configuration)
            numbers += 3 + len(configuration[1])

    todo = list(orders)
    while (todo or fresh) and steps <= EXPLORED_STEPS and numbers <= EXPLORED_NUMBERS:
        if todo:
            order = todo.pop()
            after = {machine.reorder(order, letter) for letter in letters} | {machine.without_lowest(order)}
            todo += after - orders.keys()
            orders |= dict.fromkeys(after)
            for letter in letters:
                reached(machine.begin(order, letter)[0])
            steps += len(letters) * (1 + machine.waiting_count)
        else:
            labels, macros = configuration = fresh.pop()
            for letter in letters:
                reached(machine.arranged(labels, machine.sources(configuration, letter)[0])[0])
            for gone in range(1, len(labels) + 1):
                reached(machine.expired(configuration, gone)[0])
            steps += len(macros) * (len(letters) + len(labels))
    if todo or fresh:
        return None
    return Explored(len(configurations), max((len(macros) for _, macros in configurations), default=0))


def _letters(machine: Domination, types: int, *, long: bool) -> list[int] | None:
    """One letter for each way in which a letter can differ from others for the automaton; None if there may be more than EXPLORED_LETTERS.

    long: the alphabet has hundreds of conditions, which are looked at one by one. Others keep the method that their stored states name.
    """
    moves = [move for moves in machine.automaton.moves for move in moves]
    chosen: dict[tuple[tuple[int, bool], ...], int] = {}
    for kind in [0, *(1 << bit for bit in members(types))]:
        asked = [((move.requires & ~types), move.forbids & ~types) for move in moves if move.requires & types in {0, kind}]
        bits = list(members(functools.reduce(operator.or_, (requires | forbids for requires, forbids in asked), 0)))
        if 1 << len(bits) > EXPLORED_LETTERS:
            if not long or any(forbids or requires & requires - 1 for requires, forbids in asked):
                return None
            # Each condition by itself makes some moves possible: what two letters do alike they do alike with one condition more.
            alike = {machine.entered(kind): kind}
            for bit in bits:
                for letter in list(alike.values()):
                    alike.setdefault(machine.entered(letter | 1 << bit), letter | 1 << bit)
                if len(alike) > EXPLORED_LETTERS:
                    return None
            for entered, letter in alike.items():
                chosen.setdefault(entered, letter)
            continue
        for subset in itertools.product((0, 1), repeat=len(bits)):
            letter = kind | sum(value << bit for bit, value in zip(bits, subset, strict=True))
            chosen.setdefault(machine.entered(letter), letter)
    return list(chosen.values()) if len(chosen) <= EXPLORED_LETTERS else None


def _raise(levels: dict[int, int], states: int, level: int) -> None:
    for state in members(states):
        levels[state] = max(levels.get(state, NONE), level)


class DominationTable:
    """The machine as flat tables, as far as the stream has asked for it.

    shapes: per configuration (stride 4) macro states, labels, place of the first label in `programs`, place of the first expiry in
    `expiries`.
    program_of: configuration * codes + code -> place in `programs`, UNKNOWN. expiries: shape's place + labels gone -> place in `programs`,
    UNKNOWN.
    A program is [new configuration or NONE, 1 if nothing changes, cells, accepting cells, macro states after; the place of the run that
    each cell extends; (cell, label that beats it or NONE) of each accepting cell; for each macro state after: number of sources, and the
    sources: a place of a run, or runs + a cell].
    Orders: start_of, next_of: order * codes + code -> 2 * (configuration or NONE + 1) + (1 if the event alone is a match), and the order
    after it; order_after: order after its lowest number has expired; order_lowest: a waiting state with the lowest live number, NONE.
    Letters: moves_of (stride 3): 1 if the letter starts a match, place of its first move in `moves`, their number; moves: (source, target)
    waiting states, source NONE for the initial state. stirs: 1 if the letter fires anything.
    """

    def __init__(self, automaton: WaitingAutomaton, *, entries: int = TABLE_ENTRIES) -> None:
        self.machine = Domination(automaton)
        self.entries = entries
        self.flushes = 0
        self.codes = 4
        self._forget()
        self.forget_letters()

    def forget_letters(self) -> None:
        """Start again without any letter."""
        self.letters: list[int] = []
        self.moves_of: Array = np.zeros(3 * self.codes, np.int32)
        self.moves: Array = np.zeros(16, np.int32)
        self.stirs: Array = np.zeros(self.codes, np.uint8)
        self.most_moves = 0
        self._move_count = 0
        for table in (self.program_of, self.start_of, self.next_of):
            table[:] = UNKNOWN

    def _forget(self) -> None:
        """Start again without configurations and orders."""
        self.configurations: list[Configuration] = []
        self.orders: list[Order] = []
        self._configuration_ids: dict[Configuration, int] = {}
        self._order_ids: dict[Order, int] = {}
        self.shapes: Array = np.zeros(4 * 4, np.int32)
        self.program_of: Array = np.full(4 * self.codes, UNKNOWN, np.int32)
        self.programs: Array = np.zeros(64, np.int32)
        self.expiries: Array = np.full(16, UNKNOWN, np.int32)
        self.start_of: Array = np.full(4 * self.codes, UNKNOWN, np.int32)
        self.next_of: Array = np.full(4 * self.codes, UNKNOWN, np.int32)
        self.order_after: Array = np.full(4, UNKNOWN, np.int32)
        self.order_lowest: Array = np.full(4, NONE, np.int32)
        self.most_macros = 1
        self._program_length = 0
        self._expiry_count = 0
        self.order((0,) * self.machine.waiting_count)

    @property
    def full(self) -> bool:
        """Whether `renumber` is due."""
        return self._program_length + len(self.program_of) + len(self.next_of) > self.entries

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The tables in the order of the kernel's arguments."""
        letters = (self.stirs, self.moves_of, self.moves)
        orders = (self.start_of, self.next_of, self.order_after, self.order_lowest)
        return (*letters, self.shapes, self.program_of, self.programs, self.expiries, *orders)

    @property
    def room(self) -> int:
        """Configurations that the tables have room for."""
        return len(self.shapes) // 4

    # ------------------------------------------------------------------------------------------------ numbers

    def configuration(self, configuration: Configuration) -> int:
        """The number of a configuration, a new one if need be; NONE if it has no macro state."""
        if not configuration[1]:
            return NONE
        number = self._configuration_ids.get(configuration)
        if number is None:
            number = self._configuration_ids[configuration] = len(self.configurations)
            self.configurations.append(configuration)
            labels, macros = configuration
            self.most_macros = max(self.most_macros, len(macros))
            if 4 * (number + 1) > len(self.shapes):
                self.shapes = _longer(self.shapes, 0)
                self.program_of = _longer(self.program_of, UNKNOWN)
            place = self._write(labels)
            first, self._expiry_count = self._expiry_count, self._expiry_count + len(labels) + 1
            while self._expiry_count > len(self.expiries):
                self.expiries = _longer(self.expiries, UNKNOWN)
            self.shapes[4 * number : 4 * number + 4] = len(macros), len(labels), place, first
        return number

    def order(self, order: Order) -> int:
        """The number of an order, a new one if need be."""
        number = self._order_ids.get(order)
        if number is None:
            number = self._order_ids[order] = len(self.orders)
            self.orders.append(order)
            if number == len(self.order_after):
                self.order_after, self.order_lowest = _longer(self.order_after, UNKNOWN), _longer(self.order_lowest, NONE)
                self.start_of, self.next_of = _longer(self.start_of, UNKNOWN), _longer(self.next_of, UNKNOWN)
            self.order_lowest[number] = order.index(1) if any(order) else NONE
        return number

    # ------------------------------------------------------------------------------------------------ entries

    def learn(self, code: int, letter: int) -> None:
        """A letter met for the first time; codes come in the order of their numbers."""
        self.letters.append(letter)
        if code == self.codes:
            self._widen()
        entered = self.machine.entered(letter)
        moves = [(source, target) for source, (states, _) in enumerate(entered[:-1]) for target in members(states) if source != target]
        moves += [(NONE, target) for target in members(entered[-1][0])]
        self.most_moves = max(self.most_moves, len(moves))
        first = self._move_count
        self._move_count += 2 * len(moves)
        while self._move_count > len(self.moves):
            self.moves = _longer(self.moves, 0)
        self.moves[first : self._move_count] = np.array(moves, np.int32).ravel()
        starts = bool(entered[-1][0]) or entered[-1][1]
        self.moves_of[3 * code : 3 * code + 3] = starts, first, len(moves)
        self.stirs[code] = any(states or ends for states, ends in entered)

    def _widen(self) -> None:
        """Room for twice the codes."""
        for name in ("program_of", "start_of", "next_of"):
            old: Array = getattr(self, name).reshape(-1, self.codes)
            setattr(self, name, np.concatenate([old, np.full_like(old, UNKNOWN)], axis=1).ravel())
        self.moves_of, self.stirs = _longer(self.moves_of, 0), _longer(self.stirs, 0)
        self.codes *= 2

    def fill(self, configuration: int, code: int) -> None:
        """Make the program of a configuration on a letter known."""
        labels = self.configurations[configuration][0]
        sources, cells = self.machine.sources(self.configurations[configuration], self.letters[code])
        accepting: list[int] = []
        for cell, (_, accepts, level) in enumerate(cells):
            if accepts:
                accepting += cell, NONE if level == NONE else labels[level]
        following, ordered = self.machine.arranged(labels, sources)
        place = self._program(configuration, following, [place for place, _, _ in cells], accepting, ordered)
        self.program_of[configuration * self.codes + code] = place

    def fill_expiry(self, configuration: int, gone: int) -> None:
        """Make the program known that drops a configuration's `gone` lowest labels."""
        following, ordered = self.machine.expired(self.configurations[configuration], gone)
        place = self._program(configuration, following, [], [], ordered)
        self.expiries[int(self.shapes[4 * configuration + 3]) + gone] = place

    def fill_order(self, order: int, code: int) -> None:
        """Make known where an order goes on a letter, and what starts there."""
        letter, ranks = self.letters[code], self.orders[order]
        configuration, accepts = self.machine.begin(ranks, letter)
        started = 2 * (self.configuration(configuration) + 1) + accepts
        following = self.order(self.machine.reorder(ranks, letter))
        self.start_of[order * self.codes + code] = started
        self.next_of[order * self.codes + code] = following

    def fill_order_expiry(self, order: int) -> None:
        """Make known where an order goes when its lowest number expires."""
        following = self.order(self.machine.without_lowest(self.orders[order]))
        self.order_after[order] = following

    def _program(
        self, configuration: int, following: Configuration, cells: list[int], accepting: list[int], sources: list[list[int]]
    ) -> int:
        number = self.configuration(following)
        unchanged = number == configuration and not cells and sources == [[place] for place in range(len(sources))]
        flat = [number, unchanged, len(cells), len(accepting) // 2, len(sources), *cells, *accepting]
        for places in sources:
            flat += [len(places), *places]
        return self._write(flat)

    def _write(self, numbers: Iterable[int]) -> int:
        numbers = np.array(tuple(numbers), np.int32)
        place = self._program_length
        self._program_length += len(numbers)
        if self._program_length > len(self.programs):
            self.programs = np.concatenate([self.programs, np.zeros(power_of_two(self._program_length), np.int32)])
        self.programs[place : self._program_length] = numbers
        return place

    # ------------------------------------------------------------------------------------------------ bound

    def renumber(self, configurations: Array, orders: Array) -> tuple[Array, Array]:
        """Forget all but these configurations and orders; returns the new number of each old one (int64, NONE for the forgotten).

        If they alone need more than the bound, the bound gives way. So it does where one event needs more: the caller renumbers at most once
        per event, and then doubles `entries`. A stream is never stopped by the bound.
        """
        kept, kept_orders = self.configurations, self.orders
        self._forget()
        self.flushes += 1
        renumbered, reordered = np.full(len(kept), NONE, np.int64), np.full(len(kept_orders), NONE, np.int64)
        for number in np.unique(configurations).tolist():
            renumbered[number] = self.configuration(kept[number])
        for number in np.unique(orders).tolist():
            reordered[number] = self.order(kept_orders[number])
        self.entries = max(self.entries, 4 * (self._program_length + len(self.program_of) + len(self.next_of)))
        return renumbered, reordered


def _longer(array: Array, filler: int) -> Array:
    return np.concatenate([array, np.full_like(array, filler)])
