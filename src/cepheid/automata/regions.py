"""Determinization of automata with registers: macro states of configurations over slots, and the regions in which groups move together.

Comes in: an automaton, hidden. Goes out: for each macro state and letter the `Region`s of the marked moves, and those of the unmarked ones. Not done
here: values. A `CONFIGURATION` is a state and, for each register that holds something, the number of a slot; a macro state is the set of all
configurations that share one output, and a group is a macro state with values of its slots (design: docs/decisions/0004-guards.md).

Slots are numbered by value: what was written from the same value of the same event, or made from the same slots, is one slot. They are sorted by the
age of their scope: of two slots that one register may hold, the one with the lesser number began to be filled earlier, or by the same event.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

from cepheid.automata.alphabet import Scope
from cepheid.automata.liveness import GuardedMove, live_registers
from cepheid.automata.registers import (
    Before,
    Compares,
    Elapsed,
    Gathered,
    Joined,
    Now,
    reads,
    substituted,
    terms,
    test_after,
)
from cepheid.automata.transition import by_label
from cepheid.errors import LimitError
from cepheid.logical.canonical import canonical_text
from cepheid.logical.plan import Derived, Index, Time
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from cepheid.automata.alphabet import Alphabet, Guard
    from cepheid.automata.automaton import Automaton
    from cepheid.automata.registers import Term, Test
    from cepheid.automata.transition import Label, Transition

MACRO_LIMIT = 1 << 14
"""Macro states that one evaluation may make."""

SLOT_LIMIT = 64
"""Values that a partial match may keep, over all configurations of its macro state."""

STEP_LIMIT = 1 << 16
"""(macro state, letter) pairs whose regions are remembered; past it all are forgotten and computed again when they come."""

SHARED_LIMIT = 4
"""Configurations of one state that share a macro state. Where there are more, the register is no function of the output: each configuration goes its
own way, and matches are told apart where they end. Tests make it 1."""

SHARED_TEST_LIMIT = 6
"""Tests that configurations which share a macro state may wait for together: each region has an answer to all that an event asks, and up to 2^n are
made at once. Where there are more, each configuration goes its own way, as above."""

SIMPLER_HELP = (
    "make the pattern more deterministic: shorter counted repetitions, fewer overlapping alternatives, fewer conditions between events"
)

Configuration = tuple[int, tuple[tuple[int, int], ...]]
"""A state, and (register, slot) for each register that holds something, ascending."""

Literal = tuple["Test", bool]
"""A test over slots (its `Before` are slots), and whether it holds."""


Lifetime = tuple[tuple[tuple[int, int], ...], ...]
"""For each way to go on the (slot, greatest time since then) that it asks, all of them; none: it may be gone for ever."""


class Macro:
    """A macro state: its configurations, sorted. number: in the order in which an evaluation meets them; slots: how many.

    lifetime: how long a group can go on.
    """

    __slots__ = ("configurations", "lifetime", "number", "slots", "steps")

    def __init__(self, configurations: tuple[Configuration, ...], number: int, lifetime: Lifetime) -> None:
        self.configurations = configurations
        self.lifetime = lifetime
        self.number = number
        self.slots = 1 + max((slot for _, held in configurations for _, slot in held), default=-1)
        self.steps: dict[int, Step] = {}

    def __repr__(self) -> str:
        return f"<macro state {self.configurations}>"


@record(eq=False)
class Region:
    """What some groups of a macro state do together.

    label: the number of the mark with its places in parts, None without a mark. literals: what the groups of the region satisfy. made: terms over the
    slots of the macro state that are kept. targets: (macro state, for each of its slots the index into `made`); several where matches are told apart
    at the end.
    final: whether a match ends here.
    """

    label: int | None
    literals: tuple[Literal, ...]
    made: tuple[Term, ...]
    targets: tuple[tuple[Macro, tuple[int, ...]], ...]
    final: bool


@record(eq=False)
class Step:
    """What the groups of a macro state do at a letter. unmarked: None where all of them stay as they are."""

    marked: tuple[Region, ...]
    unmarked: tuple[Region, ...] | None


@record
class _Way:
    """A move of one configuration: what it asks, and what is held afterwards."""

    literals: frozenset[Literal]
    state: int
    held: tuple[tuple[int, Term], ...]


def asked(move: Transition, alphabet: Alphabet, before: Callable[[int], Term | None]) -> frozenset[Literal] | None:
    """What a transition asks of the event where each register holds what `before` says (None: nothing); None where that cannot hold."""
    literals = set()
    for guard in alphabet.guards:
        if (move.requires | move.forbids) & guard.mask:
            test, wanted = test_after(guard.test, before), bool(move.requires & guard.mask)
            if test is not None:
                literals.add((test, wanted))
            elif not wanted:
                return None
    if any((test, not wanted) in literals for test, wanted in literals):
        return None
    return frozenset(literals)


class Regions:
    """The determinization of one automaton, on demand.

    ambiguous: whether some output is in several groups, so that a match may be given more than once. Raises LimitError past MACRO_LIMIT and
    SLOT_LIMIT. shared: configurations of one state that may share a macro state, SHARED_LIMIT where it is not given; 0: none share one, of whatever
    states, and each move has its own regions, so that there are as many as moves, and not one for each combination of them.
    """

    def __init__(self, automaton: Automaton, shared: int | None = None) -> None:
        self.automaton = automaton
        self.shared = SHARED_LIMIT if shared is None else shared
        self.ambiguous = not self.shared
        self.macros: dict[tuple[Configuration, ...], Macro] = {}
        self._labels: dict[Label, int] = {label: number for number, label in enumerate(automaton.labels)}
        self._run = automaton.alphabet.mask(Scope.RUN)
        self.live = live_registers(GuardedMove.of(move, automaton.alphabet) for move in automaton.transitions)
        self._better = _orders(automaton, self.live)
        self._texts: dict[object, str] = {}
        self._steps = 0

    @cached_property
    def initial(self) -> Macro:
        """The macro state in which nothing has begun."""
        return self.macro(((self.automaton.initial, ()),))

    def macro(self, configurations: tuple[Configuration, ...]) -> Macro:
        """The macro state of sorted configurations."""
        found = self.macros.get(configurations)
        if found is None:
            if len(self.macros) == MACRO_LIMIT:
                raise LimitError(
                    f"the conditions between events need more than {MACRO_LIMIT} macro states (MACRO_LIMIT)", help=SIMPLER_HELP
                )
            found = self.macros[configurations] = Macro(configurations, len(self.macros), self._lifetime(configurations))
            if found.slots > SLOT_LIMIT:
                raise LimitError(
                    f"a partial match would keep {found.slots} values for the conditions between events, and the limit is {SLOT_LIMIT} (SLOT_LIMIT)",
                    help=SIMPLER_HELP,
                )
        return found

    def _lifetime(self, configurations: tuple[Configuration, ...]) -> Lifetime:
        found = set()
        for state, held in configurations:
            slots = dict(held)
            for move in self.automaton.outgoing[state]:
                if not move.stays:
                    asked = (guard.test for guard in self.automaton.alphabet.guards if move.requires & guard.mask)
                    found.add(tuple(sorted(bound for test in asked if (bound := _upper(test, slots)) is not None)))
        return tuple(sorted(found))

    @cached_property
    def _several(self) -> frozenset[int]:
        """The registers that may hold several values."""
        return self._written(lambda term: isinstance(term, Joined) or (isinstance(term, Gathered) and term.how == "set"))

    @cached_property
    def _plural(self) -> frozenset[int]:
        """These, and those that may hold a time that is NULL for there were different ones."""
        return self._several | self._written(lambda term: isinstance(term, Gathered) and isinstance(term.value, Time | Index))

    def _written(self, asked: Callable[[Term], bool]) -> frozenset[int]:
        """The registers that may hold what is made of a term that is asked for."""
        stores = [store for move in self.automaton.transitions for store in move.writes]
        found = {store.register for store in stores if any(map(asked, terms(store.term)))}
        while more := {store.register for store in stores if reads(store.term) & found} - found:
            found |= more
        return frozenset(found)

    def several(self, macro: Macro) -> frozenset[int]:
        """The slots of a macro state that may hold several values."""
        return frozenset(slot for _, held in macro.configurations for register, slot in held if register in self._several)

    def plural(self, macro: Macro) -> frozenset[int]:
        """The slots of a macro state that no index has an order for: these, and times that may be NULL."""
        return frozenset(slot for _, held in macro.configurations for register, slot in held if register in self._plural)

    def step(self, macro: Macro, mask: int) -> Step:
        """What the groups of a macro state do at an event with this mask, whatever it says of guards.

        Memoized; else exponential in the tests that its moves wait for.
        """
        mask &= ~self._run
        found = macro.steps.get(mask)
        if found is None:
            if self._steps == STEP_LIMIT:
                for other in self.macros.values():
                    other.steps.clear()
                self._steps = 0
            self._steps += 1
            found = macro.steps[mask] = self._step(macro, mask)
        return found

    def _step(self, macro: Macro, mask: int) -> Step:
        ways: dict[Label | None, list[_Way]] = {}
        for state, held in macro.configurations:
            slots = dict(held)
            for move in self.automaton.outgoing[state]:
                if move.requires & ~self._run & ~mask or move.forbids & ~self._run & mask:
                    continue
                way = self._way(move, slots)
                if way is not None:
                    ways.setdefault(move.label, []).append(way)
        marked: list[Region] = []
        for label in sorted((label for label in ways if label is not None), key=by_label):
            marked += self._split(self._labels[label], ways[label], ())
        unmarked = tuple(self._split(None, ways.get(None, []), ()))
        return Step(tuple(marked), None if _stays(macro, unmarked) else unmarked)

    def _way(self, move: Transition, slots: Mapping[int, int]) -> _Way | None:
        """What a move does in a configuration; None where what it asks is decided, and does not hold."""

        def before(register: int) -> Term | None:
            return Before(slots[register]) if register in slots else None

        literals = asked(move, self.automaton.alphabet, before)
        if literals is None:
            return None
        stored = {store.register: substituted(store.term, before) for store in move.writes}
        held = []
        for register in sorted(self.live[move.target]):
            term = stored[register] if register in stored else before(register)
            if term is not None:
                held.append((register, term))
        return _Way(literals, move.target, tuple(held))

    def _split(self, label: int | None, ways: Sequence[_Way], literals: tuple[Literal, ...]) -> Iterator[Region]:
        """The regions of some ways, split on one test after another, as long as a way waits for one; of each way where nothing is shared."""
        if not self.shared:
            for way in dict.fromkeys(ways):
                yield self._region(label, tuple(sorted(way.literals, key=lambda literal: self._text(literal[0]))), [way])
            return
        if not ways:
            return
        open_ = [way for way in ways if way.literals]
        if not open_:
            yield self._region(label, literals, ways)
            return
        test = min((test for way in open_ for test, _ in way.literals), key=self._text)
        for truth in (True, False):
            rest = [_Way(way.literals - {(test, truth)}, way.state, way.held) for way in ways if (test, not truth) not in way.literals]
            yield from self._split(label, rest, (*literals, (test, truth)))

    def _region(self, label: int | None, literals: tuple[Literal, ...], ways: Sequence[_Way]) -> Region:
        final = any(way.state in self.automaton.finals for way in ways)
        reached = {(way.state, way.held) for way in ways if self.automaton.outgoing[way.state]}
        made = tuple(sorted({term for _, held in reached for _, term in held}, key=lambda term: (_age(term), self._text(term))))
        number = {term: place for place, term in enumerate(made)}
        configurations = self._undominated(
            sorted((state, tuple((register, number[term]) for register, term in held)) for state, held in reached)
        )
        targets = [configurations] if configurations else []
        if self._is_large(configurations):
            targets = [[configuration] for configuration in configurations]
            self.ambiguous = True
        built = tuple(self._target(target) for target in targets)
        kept = sorted({place for _, places in built for place in places})
        where = {place: index for index, place in enumerate(kept)}
        moved = tuple((macro, tuple(where[place] for place in places)) for macro, places in built)
        return Region(label, literals, tuple(made[place] for place in kept), moved, final)

    def _is_large(self, configurations: Sequence[Configuration]) -> bool:
        """Whether configurations are too many, or wait for too much, to share a macro state."""
        if any(sum(other == state for other, _ in configurations) > self.shared for state, _ in configurations):
            return True
        waits = {test for state, held in configurations for test in self._waits(state, held)}
        return len(configurations) > 1 and len(waits) > SHARED_TEST_LIMIT

    def _waits(self, state: int, held: Sequence[tuple[int, int]]) -> Iterator[Test]:
        """The tests that a configuration waits for."""
        slots = dict(held)
        for guard in self._guards_of[state]:
            test = test_after(guard.test, lambda register: Before(slots[register]) if register in slots else None)
            if test is not None:
                yield test

    @cached_property
    def _guards_of(self) -> list[list[Guard]]:
        """The guards that the moves of each state ask."""
        asked = [0] * self.automaton.states
        for move in self.automaton.transitions:
            asked[move.source] |= move.requires | move.forbids
        return [[guard for guard in self.automaton.alphabet.guards if mask & guard.mask] for mask in asked]

    def _target(self, configurations: Sequence[Configuration]) -> tuple[Macro, tuple[int, ...]]:
        """The macro state of configurations over terms, with slots without gaps, and the term of each slot."""
        places = sorted({place for _, held in configurations for _, place in held})
        slot = {place: index for index, place in enumerate(places)}
        found = self.macro(
            tuple(sorted((state, tuple((register, slot[place]) for register, place in held)) for state, held in configurations))
        )
        return found, tuple(places)

    def _undominated(self, configurations: list[Configuration]) -> list[Configuration]:
        """Without the configurations that another one of the same state can replace: it can go on wherever that can, to the same outputs."""
        kept = list(configurations)
        for worse in configurations:
            if any(other[0] == worse[0] and other != worse and self._replaces(dict(other[1]), dict(worse[1])) for other in kept):
                kept.remove(worse)
        return kept

    def _replaces(self, better: Mapping[int, int], worse: Mapping[int, int]) -> bool:
        for register in better.keys() | worse.keys():
            one, other = better.get(register), worse.get(register)
            if one == other:
                continue
            direction = self._better.get(register)
            if direction is None or other is None:
                return False
            if one is not None and (one < other if direction == NEWER else one > other):
                return False
        return True

    def _text(self, part: Term | Test) -> str:
        found = self._texts.get(part)
        if found is None:
            found = self._texts[part] = canonical_text(part)
        return found


def _age(term: Term) -> float:
    """When a term's scope began: the slot that it goes on from, infinite for what begins with this event."""
    match term:
        case Before(register=slot):
            return slot
        case Gathered(before=before) | Joined(before=before) if before is not None:
            return _age(before)
    return math.inf


def _upper(test: Test, slots: Mapping[int, int]) -> tuple[int, int] | None:
    """The slot whose time a test asks, and the greatest time since then for which it holds; None for another test."""
    match test:
        case Elapsed(before=Before(register=register), now=Time(), interval=interval) if register in slots and interval.upper is not None:
            return slots[register], interval.upper
    return None


def _stays(macro: Macro, unmarked: tuple[Region, ...]) -> bool:
    """Whether the unmarked moves change no group."""
    if len(unmarked) != 1 or unmarked[0].literals or len(unmarked[0].targets) != 1:
        return False
    (region,) = unmarked
    ((target, places),) = region.targets
    return target is macro and all(region.made[place] == Before(slot) for slot, place in enumerate(places))


# ------------------------------------------------------------------------------------------------------------------ dominance

NEWER, OLDER = "newer", "older"
"""Which of two slots that a register may hold is at least as good, whatever follows; an empty register is at least as good as any."""

EASIER = {"max": ("<", "<="), "min": (">", ">="), "same": ("=",)}
"""Comparisons `gathered op now` that hold for a set of values if they hold for a larger one."""


def _orders(automaton: Automaton, live: Mapping[int, frozenset[int]]) -> dict[int, str]:
    """For registers whose contents are comparable, which of them is better.

    Only what can be proven of the automaton alone. A register must be read by required guards and by its own stores, so that an empty one is best.
    Then either it keeps the time or the position of one event, and all its bounds are upper ones (newer) or all lower ones (older); or it keeps its
    place, after which no negated pattern may have begun (newer); or it gathers the events that some variable marks since its scope began, and its
    guards ask FOR ALL of them: of two scopes with one output the later one has a subset.
    """
    found = {}
    for register in range(len(automaton.alphabet.registers)):
        tests = _direct_tests(automaton, register)
        if tests is None:
            continue
        elapsed = [test for test in tests if isinstance(test, Elapsed)]
        compared = [test for test in tests if isinstance(test, Compares)]
        if len(elapsed) == len(tests) and _is_clock(automaton, register, elapsed):
            if all(test.interval.lower <= 0 for test in elapsed):
                found[register] = NEWER
            elif all(test.interval.upper is None for test in elapsed):
                found[register] = OLDER
        elif len(compared) == len(tests) and (_is_place(automaton, register, compared) or _is_nested(automaton, register, compared, live)):
            found[register] = NEWER
    return found


def _direct_tests(automaton: Automaton, register: int) -> list[Test] | None:
    """The tests that read a register, None where it is read by a forbidden guard, inside a term, or for another register."""
    forbidden = 0
    for move in automaton.transitions:
        forbidden |= move.forbids
        if any(register in reads(store.term) and store.register != register for store in move.writes):
            return None
    asking: list[Guard] = [guard for guard in automaton.alphabet.guards if register in guard.reads]
    for guard in asking:
        if guard.mask & forbidden or not isinstance(guard.test, Compares | Elapsed) or guard.test.before != Before(register):
            return None
    return [guard.test for guard in asking]


def _is_clock(automaton: Automaton, register: int, tests: Sequence[Elapsed]) -> bool:
    """Whether a register holds only the time, or only the position, of the event that wrote it, and is compared with the same."""
    kinds: set[type] = {type(test.now) for test in tests}
    for move in automaton.transitions:
        for store in move.writes:
            if store.register == register and store.term is not None:
                kinds.add(type(store.term.value) if isinstance(store.term, Now) else type(store.term))
    return kinds in ({Time}, {Index})


def _is_place(automaton: Automaton, register: int, tests: Sequence[Compares]) -> bool:
    """Whether a register holds only the place of the event that wrote it, and it is asked whether a negated pattern has come since then."""
    terms_ = {
        store.term for move in automaton.transitions for store in move.writes if store.register == register and store.term is not None
    }
    return terms_ == {Now(Derived("place"))} and all(isinstance(test.now, Derived) for test in tests)


def _is_nested(automaton: Automaton, register: int, tests: Sequence[Compares], live: Mapping[int, frozenset[int]]) -> bool:
    """Whether a register gathers all that one variable marks since its scope began, for guards that are easier over less."""
    stored = [
        (move, {store.register: store.term for store in move.writes}) for move in automaton.transitions if register in live[move.target]
    ]
    gathered = [term for _, own in stored for term in terms(own.get(register)) if isinstance(term, Gathered)]
    filling = [own[register] for _, own in stored if isinstance(own.get(register), Now | Gathered)]
    if any(isinstance(own.get(register), Before) for _, own in stored):
        return False
    if any(term.before not in (None, Before(register)) for term in gathered):
        return False
    if len({term.value for term in filling if isinstance(term, Now | Gathered)}) > 1 or len({term.how for term in gathered}) > 1:
        return False
    for how in {term.how for term in gathered}:
        if how != "set" and any(test.operator not in EASIER[how] for test in tests):
            return False
    # The variable: an event that it marks is gathered, or begins a scope; no other event is.
    variables = {variable for move in automaton.transitions for variable in move.mark or ()}
    return any(
        all(
            (register in own and not (own[register] is not None and variable not in (move.mark or ())))
            or (register not in own and variable not in (move.mark or ()))
            for move, own in stored
        )
        for variable in variables
    )
