"""Clocks: an automaton whose registers all hold times of events, and the zones of clock valuations that its runs reach.

Comes in: an automaton with guards. Goes out: its moves with their clock conditions and resets, and `Zone`s to explore them. Name in paper: a clock z
is a register that holds the time of its last reset; a timed CEA (timed-cel, section 4) is an automaton whose registers are all clocks.

Time is an integer number of steps of the time column, and never falls; several events may have one time. So clock conditions are unions of closed
intervals of integers, and a zone (a set of valuations that bounds on clocks and on differences of two clocks describe) has integer bounds. A zone
is a union of clock regions, and there are fewer of them.

Here an empty register passes what it is asked, in the paper it fails. So a zone says which clocks are set. Where every clock is set before it is
asked, as in all automata of `construct`, there is no difference.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import operator
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from cepheid.automata.alphabet import Guard, Scope
from cepheid.automata.predicates import can_hold
from cepheid.automata.registers import Before, Elapsed, Now, Register, Store, values
from cepheid.automata.transform import trim
from cepheid.automata.transition import Transition, order
from cepheid.errors import NotSupportedError
from cepheid.logical.plan import Time
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cepheid.automata.alphabet import Alphabet
    from cepheid.automata.automaton import Automaton
    from cepheid.automata.transition import Mark
    from cepheid.logical.plan import Interval

Ages = tuple[tuple[int, int | None], ...]
"""A set of ages: disjoint closed intervals, ascending; None: no upper end."""

ANY_AGE: Ages = ((0, None),)
UNBOUNDED = 1 << 62
"""A bound that is none."""


class ClockTest(NamedTuple):
    """What a transition asks of a clock: whether its age lies in the interval, or that it does not."""

    clock: int
    interval: Interval
    wanted: bool = True

    @property
    def condition(self) -> Condition:
        """The same as a clock condition."""
        lower, upper = max(self.interval.lower, 0), self.interval.upper
        ages: Ages = () if upper is not None and upper < lower else ((lower, upper),)
        return Condition({self.clock: ages}) if self.wanted else Condition({self.clock: without(ages)}, frozenset({self.clock}))


@record(slots=False)
class Condition:
    """A clock condition: the ages that pass, for each clock that it asks. needs: the clocks that fail where they are empty."""

    ages: Mapping[int, Ages] = field(default_factory=dict)
    needs: frozenset[int] = frozenset()

    def __and__(self, other: Condition) -> Condition:
        ages = dict(self.ages)
        for clock, own in other.ages.items():
            ages[clock] = common(ages.get(clock, ANY_AGE), own)
        return Condition(ages, self.needs | other.needs)

    def is_satisfiable(self, empty: frozenset[int] = frozenset()) -> bool:
        """Whether some valuation satisfies it; empty: the clocks that may be empty. Clocks are asked one by one, so they are decided one by one."""
        return all(ages or (clock in empty and clock not in self.needs) for clock, ages in self.ages.items())


@record(slots=False)
class ClockMove:
    """A transition of an automaton with clocks.

    mark: as in `Transition`. event: (requires, forbids) over the bits that the event alone decides. resets: clocks.
    """

    source: int
    target: int
    event: tuple[int, int] = (0, 0)
    tests: frozenset[ClockTest] = frozenset()
    mark: Mark | None = None
    resets: frozenset[int] = frozenset()

    @property
    def output(self) -> Mark:
        """The mark, empty where the event is not marked: the paper does not tell these two apart."""
        return self.mark or frozenset()

    @cached_property
    def condition(self) -> Condition:
        """What it asks of clocks."""
        return functools.reduce(operator.and_, (test.condition for test in self.tests), Condition())


def clock_moves(automaton: Automaton) -> tuple[ClockMove, ...]:
    """The moves of an automaton, in the order of its transitions.

    Raises NotSupportedError for an automaton that is no timed CEA: one with a register that is no clock, a tracker, or a flag.
    """
    alphabet = automaton.alphabet
    automaton.refuse_parts("an automaton with clocks")
    if alphabet.trackers or alphabet.flags:
        what = "a tracker" if alphabet.trackers else f"the flag `{alphabet.flags[0].name}`"
        raise _no_clock_automaton(f"{what} depends on more than one event and the time since others")
    asked = {guard: _asked(guard, alphabet) for guard in alphabet.guards}
    events = alphabet.mask(Scope.EVENT)
    return tuple(
        ClockMove(
            move.source,
            move.target,
            (move.requires & events, move.forbids & events),
            frozenset(
                ClockTest(*asked[guard], wanted)
                for guard in alphabet.guards
                for wanted, bits in ((True, move.requires), (False, move.forbids))
                if bits & guard.mask
            ),
            move.mark,
            frozenset(_reset(store, alphabet) for store in move.writes),
        )
        for move in automaton.transitions
    )


def _no_clock_automaton(why: str) -> NotSupportedError:
    return NotSupportedError(
        f"the automaton is no timed complex event automaton: {why}",
        help="the theory of clocks is about gaps and time windows; leave out conditions between events, windows of events and nested strategies",
    )


def _asked(guard: Guard, alphabet: Alphabet) -> tuple[int, Interval]:
    match guard.test:
        case Elapsed(before=Before(register=clock), now=Time(), interval=interval):
            return clock, interval
    raise _no_clock_automaton(f"the guard `{alphabet.says(guard)}` compares more than the time since an event")


def _reset(store: Store, alphabet: Alphabet) -> int:
    if not (isinstance(store.term, Now) and isinstance(store.term.value, Time)):
        raise _no_clock_automaton(f"the register `{alphabet.names[store.register]}` keeps more than the time of one event")
    return store.register


def assembled(automaton: Automaton, moves: Iterable[ClockMove], clocks: Sequence[str]) -> Automaton:
    """An automaton with other moves and clocks, trimmed; clocks: their names. The states and predicates are the same."""
    moves = list(moves)
    parts = [*(guard.test for guard in automaton.alphabet.guards), *(store.term for move in automaton.transitions for store in move.writes)]
    time = next((value for part in parts for value in values(part)), None)
    plain = dataclasses.replace(automaton.alphabet, guards=())
    tests = sorted({(test.clock, test.interval) for each in moves for test in each.tests}, key=repr)
    bits = {test: 1 << plain.width + number for number, test in enumerate(tests)}
    guards, resets = [], []
    if time is not None:
        guards = [Guard(plain.width + number, Elapsed(Before(clock), time, interval)) for number, (clock, interval) in enumerate(tests)]
        resets = [Store(clock, Now(time)) for clock in range(len(clocks))]

    def masks(each: ClockMove) -> tuple[int, int]:
        found = list(each.event)
        for test in each.tests:
            found[not test.wanted] |= bits[test.clock, test.interval]
        return found[0], found[1]

    made = []
    for each in moves:
        requires, forbids = masks(each)
        made.append(Transition(each.source, each.target, requires, each.mark, forbids, frozenset(resets[clock] for clock in each.resets)))
    alphabet = dataclasses.replace(plain, guards=tuple(guards), registers=tuple(map(Register, clocks)))
    return trim(dataclasses.replace(automaton, transitions=order(made), alphabet=alphabet))


def common(left: Ages, right: Ages) -> Ages:
    """The ages in both sets."""
    found = []
    for (low, high), (other_low, other_high) in itertools.product(left, right):
        lower, upper = max(low, other_low), min((each for each in (high, other_high) if each is not None), default=None)
        if upper is None or lower <= upper:
            found.append((lower, upper))
    return tuple(sorted(found, key=lambda each: each[0]))


def without(ages: Ages) -> Ages:
    """The ages that are not in a set of at most one interval."""
    if not ages:
        return ANY_AGE
    ((lower, upper),) = ages
    below: Ages = ((0, lower - 1),) if lower else ()
    return below if upper is None else (*below, (upper + 1, None))


def together(first: tuple[int, int], second: tuple[int, int], alphabet: Alphabet) -> bool:
    """Whether one event may have what both (requires, forbids) ask for.

    Types exclude each other, and so do comparisons with constants (`predicates.can_hold`). Other conditions are taken as independent.
    """
    requires, forbids = first[0] | second[0], first[1] | second[1]
    types = requires & alphabet.types
    if requires & forbids or types & (types - 1):
        return False
    asked = ((predicate.condition, 1 << bit) for bit, predicate in enumerate(alphabet.predicates))
    return can_hold((condition, bool(requires & bit)) for condition, bit in asked if (requires | forbids) & bit)


def always_set(moves: Sequence[ClockMove], automaton: Automaton) -> list[frozenset[int]]:
    """For each state the clocks that every way from the initial state to it resets; O(transitions x clocks x states) at worst."""
    every = frozenset(range(len(automaton.alphabet.registers)))
    found = [every] * automaton.states
    found[automaton.initial] = frozenset()
    while True:
        before = list(found)
        for each in moves:
            found[each.target] &= found[each.source] | each.resets
        if found == before:
            return found


# ---------------------------------------------------------------------------------------------------------------------------- zones


@record
class Zone:
    """A set of clock valuations, right after an event: which clocks are set, and bounds on their differences.

    bounds: row i, column j: the greatest value of (clock i - clock j), where clock 0 is always 0 and the others are `clocks` in order; as tight as
    they can be, so that equal sets are equal (a difference bound matrix).
    """

    clocks: tuple[int, ...] = ()
    bounds: tuple[tuple[int, ...], ...] = ((0,),)

    def after(self, condition: Condition, resets: frozenset[int], greatest: Mapping[int, int]) -> Iterator[Zone]:
        """Where the valuations lead that satisfy a condition some time later, at an event that resets clocks.

        greatest: of each clock that is kept, the greatest age that anything asks; ages above it are one.
        """
        if any(clock in condition.needs and clock not in self.clocks for clock in condition.ages):
            return
        asked = [(1 + place, condition.ages[clock]) for place, clock in enumerate(self.clocks) if clock in condition.ages]
        for choice in itertools.product(*(ages for _, ages in asked)):
            bounds = [list(row) for row in self.bounds]
            for row in bounds[1:]:
                row[0] = UNBOUNDED
            for (place, _), (lower, upper) in zip(asked, choice, strict=True):
                bounds[place][0] = UNBOUNDED if upper is None else upper
                bounds[0][place] = min(bounds[0][place], -lower)
            if _tightened(bounds):
                yield self._reset(bounds, resets & greatest.keys(), greatest)

    def _reset(self, bounds: list[list[int]], resets: frozenset[int], greatest: Mapping[int, int]) -> Zone:
        clocks = tuple(sorted(resets.union(self.clocks)))
        where = [0, *(0 if clock in resets else 1 + self.clocks.index(clock) for clock in clocks)]
        limits = [0, *(greatest[clock] for clock in clocks)]
        found = [[bounds[i][j] for j in where] for i in where]
        for i, row in enumerate(found):
            for j, bound in enumerate(row):
                if i != j and bound > limits[i]:
                    row[j] = UNBOUNDED
                elif bound < -limits[j]:
                    row[j] = -limits[j] - 1
        _tightened(found)
        return Zone(clocks, tuple(map(tuple, found)))


def _tightened(bounds: list[list[int]]) -> bool:
    """Whether the bounds hold for some valuation; they become the tightest ones (shortest paths). O(clocks^3)."""
    places = range(len(bounds))
    for middle, i in itertools.product(places, places):
        first = bounds[i][middle]
        if first < UNBOUNDED:
            row, through = bounds[i], bounds[middle]
            for j in places:
                if through[j] < UNBOUNDED and first + through[j] < row[j]:
                    row[j] = first + through[j]
    return all(bounds[place][place] >= 0 for place in places)


def greatest_ages(moves: Iterable[ClockMove]) -> dict[int, int]:
    """For each clock that some move asks, the greatest age that tells a difference."""
    found: dict[int, int] = {}
    for each in moves:
        for clock, ages in each.condition.ages.items():
            ends = [end for interval in ages for end in interval if end is not None]
            found[clock] = functools.reduce(max, ends, found.get(clock, 0))
    return found
