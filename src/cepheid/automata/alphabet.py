"""The alphabet of an automaton: what the bits of a letter mean, and what each depends on.

A letter is all that an automaton sees of an event. Each of its bits has a scope, which decides where the bit is set:

* EVENT, a `Predicate`: the event alone says it, and so does its type or a local condition. Set from the columns, on Spark before the shuffle.
* PARTITION, a `Tracker`: what the events before it in the partition say, whatever a match makes of them. Set where events are read by partition.
* SUPPORT, a `Flag`: the event's place among those that are read together, the events of one window or of one support. Set where they are read.
* RUN, a `Guard`: the event and what this partial match has stored in `Register`s. No letter has it: the evaluation asks, for each partial match.

An automaton uses masks: predicates come first, one bit each, however many there are; then trackers, flags and guards, which say which bits they have.
A letter is a mask without the guards in one machine word: first what the event itself says, then the trackers and flags.

What the event says is its SPELLING: an event has one type at most, so the types are one number in it, 0 for another type; then a bit for each
condition. Where a spelling fits into the letter, the letter begins with it. Where it does not, for there are hundreds of conditions, it begins with
a NUMBER instead (`number_bits`), and a table says which spelling it stands for. Spellings travel to an evaluation, in as many words as they need;
it numbers those that it meets (`engine.letters.numbers`), and its own copy of the alphabet (`numbering`) reads the numbers. So no kernel knows of
it, and all tables are as large as the number of different spellings that came, not as their width. Nothing outside the evaluation sees a number,
and a stored state brings its table with it.

Code that reads only letters cannot evaluate a guard: it calls `Alphabet.refuse_guards`, and nothing else refuses guards.
"""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import field
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING

from cepheid.automata.registers import Register, Test, by_register, reads, term_text, test_text
from cepheid.errors import REFERENCE_HELP, NotSupportedError
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cepheid.automata.transition import Transition
    from cepheid.logical.plan import Expression


LETTER_BITS = 62
"""Most bits of a letter, a machine word; two more are left for the flags of supports."""

SPELLED_BITS = LETTER_BITS
"""Letters of so many bits begin with the event's spelling; wider ones with a number. Tests make it tiny."""

WORD_BITS = 64
"""Bits of one word of a spelling. Tests make it tiny."""

MOST_NUMBER_BITS, LEAST_NUMBER_BITS = 32, 20
"""Bits of a number: as many as the trackers and flags leave of the letter, but so many at most, and so many at least."""


PLACES = {"begins": "begins", "shown": "is in", "ends": "ends", "precedes": "ends what is before", "hidden": "is hidden in"}
"""The places of an event in a part (`transition.Parts`), as text."""


class Scope(Enum):
    """What a bit of a letter depends on."""

    EVENT = "event"
    PARTITION = "partition"
    SUPPORT = "support"
    RUN = "run"


@record
class Predicate:
    """One bit of a mask: a condition about the event alone. type: the event type that it tests, None where it is no type test."""

    condition: Expression
    type: str | None = None


@record(slots=False)
class Tracker:
    """A deterministic automaton over letters that runs from a partition's first event on; its state BEFORE an event is part of the event's letter.

    bit: the first of `width` bits of a letter that hold the number of its state, binary. states: how many; 0 is the first. moves: those that
    change its state, unmarked, at most one of them for a state and a letter; without one it stays. They may read the bits of earlier trackers.
    ahead: it runs backward instead, from the last event of a time on, and knows the events of that time that come after an event. Its moves lead
    to state 0 where time has moved on.
    """

    bit: int
    states: int
    moves: tuple[Transition, ...]
    ahead: bool = False

    @property
    def width(self) -> int:
        """How many bits of a letter it has."""
        return (self.states - 1).bit_length()

    @property
    def mask(self) -> int:
        """Its bits of a letter."""
        return ((1 << self.width) - 1) << self.bit

    @cached_property
    def outgoing(self) -> tuple[tuple[Transition, ...], ...]:
        """The moves of each state."""
        return tuple(tuple(move for move in self.moves if move.source == state) for state in range(self.states))

    def successor(self, state: int, mask: int) -> int:
        """The state after an event with this mask."""
        return next((move.target for move in self.outgoing[state] if move.enabled(mask)), state)

    def possible(self, requires: int, forbids: int) -> bool:
        """Whether some state's number has the required bits and none of the forbidden ones."""
        return not requires & forbids & self.mask and (requires & self.mask) >> self.bit < self.states

    def states_of(self, requires: int, forbids: int) -> list[int]:
        """The states whose numbers have the required bits and none of the forbidden ones."""
        return [
            state for state in range(self.states) if not requires & self.mask & ~(state << self.bit) and not forbids & state << self.bit
        ]


@record
class Flag:
    """One bit of a letter that says which place the event has among those that are read together; name: of the place, as in `last event`."""

    bit: int
    name: str

    @property
    def mask(self) -> int:
        """Its bit of a letter."""
        return 1 << self.bit


@record
class Guard:
    """One bit of a mask that compares the event with registers, as they were before the event. test: the comparison; equal tests are one guard."""

    bit: int
    test: Test

    @property
    def mask(self) -> int:
        """Its bit of a mask."""
        return 1 << self.bit

    @property
    def reads(self) -> frozenset[int]:
        """The numbers of the registers that it reads."""
        return reads(self.test)


@record
class Asked:
    """What a transition asks of letters: `mask` selects `value`, no bit of `forbids` is there, and the number of the type is none of `others`."""

    mask: int
    value: int
    forbids: int = 0
    others: tuple[int, ...] = ()


@record
class Word:
    """One word of a spelling: some predicates, and what each adds to the word where it holds."""

    predicates: tuple[Predicate, ...]
    values: tuple[int, ...]

    @property
    def event_bits(self) -> int:
        """How many bits the word has."""
        return max(self.values, default=0).bit_length()


@record(slots=False)
class Alphabet:
    """What the bits of the letters of one automaton mean.

    predicates: bit i of a mask is predicates[i]. trackers: in the order in which they read each other's bits. flags, guards: the rest. All bits are
    different, and there are none between them that mean nothing. registers: what guards read, by number. number_bits: of the number of a spelling,
    with which letters begin; 0: they begin with the spelling. numbering: the spelling of each number, where an evaluation reads its letters.
    """

    predicates: tuple[Predicate, ...] = ()
    trackers: tuple[Tracker, ...] = ()
    flags: tuple[Flag, ...] = ()
    guards: tuple[Guard, ...] = ()
    registers: tuple[Register, ...] = ()
    number_bits: int = 0
    numbering: Mapping[int, int] | None = field(default=None, compare=False, repr=False)

    @property
    def width(self) -> int:
        """How many bits a mask has; the first one that is free."""
        return len(self.predicates) + self.rest + len(self.guards)

    @property
    def bits(self) -> int:
        """How many bits a letter has."""
        return self.event_bits + self.rest

    @property
    def event_bits(self) -> int:
        """How many bits of a letter say what the event itself says, the first ones: its spelling, or the number of it."""
        return self.number_bits or self.spelling_bits

    @cached_property
    def spelling_bits(self) -> int:
        """How many bits a spelling has."""
        return max(self.values, default=0).bit_length()

    @property
    def rest(self) -> int:
        """How many bits of a letter the trackers and flags have, the last ones."""
        return sum(tracker.width for tracker in self.trackers) + len(self.flags)

    @property
    def is_long(self) -> bool:
        """Whether a spelling alone has no room in a letter."""
        return self.spelling_bits > SPELLED_BITS

    def fitted(self) -> Alphabet:
        """The same, with letters that begin with a number where the spelling is too long for them, or for so many trackers and flags."""
        if not self.is_long and self.spelling_bits + self.rest <= SPELLED_BITS:
            return self
        return dataclasses.replace(self, number_bits=max(min(MOST_NUMBER_BITS, LETTER_BITS - self.rest), LEAST_NUMBER_BITS))

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """The words of a spelling; a type's number may have a part in several."""
        found = []
        for shift in range(0, max(self.spelling_bits, 1), WORD_BITS):
            parts = [value >> shift & (1 << WORD_BITS) - 1 for value in self.values]
            predicates = tuple(predicate for predicate, part in zip(self.predicates, parts, strict=True) if part)
            found.append(Word(predicates, tuple(part for part in parts if part)))
        return tuple(found)

    @cached_property
    def values(self) -> tuple[int, ...]:
        """What each predicate adds to the spellings of the events that satisfy it: their sum is the spelling."""
        types = itertools.count(1)
        conditions = itertools.count(self.type_field.bit_length())
        return tuple(next(types) if predicate.type is not None else 1 << next(conditions) for predicate in self.predicates)

    def place(self, bit: int) -> int:
        """Where a letter has a bit of the mask that a tracker or a flag has."""
        return bit - len(self.predicates) + self.event_bits

    def mask_of(self, letter: int) -> int:
        """The mask that a letter stands for. O(predicates)."""
        spelling = letter
        if self.number_bits:
            assert self.numbering is not None, "only an evaluation knows what its numbers stand for"
            spelling = self.numbering[letter & (1 << self.number_bits) - 1]
        number = spelling & self.type_field
        mask = letter >> self.event_bits << len(self.predicates)
        for bit, (predicate, value) in enumerate(zip(self.predicates, self.values, strict=True)):
            if number == value if predicate.type is not None else spelling & value:
                mask |= 1 << bit
        return mask

    @cached_property
    def type_field(self) -> int:
        """The bits of a letter that hold the number of the event's type, the first ones."""
        return (1 << self.types.bit_count().bit_length()) - 1

    def asked(self, requires: int, forbids: int) -> Asked | None:
        """What the letters have whose masks have all bits of the one and none of the other; None where no letter has that.

        Where letters begin with a number: what their spellings have in whole words, and behind these the trackers and flags (`rest_at`).
        """
        if (requires | forbids) & self.mask(Scope.RUN):
            self.refuse_guards("a test of letters")
        required, forbidden = requires & self.types, forbids & self.types & ~requires
        if requires & forbids or required & (required - 1):
            return None
        bits, without = self._beyond_types(requires), self._beyond_types(forbids)
        if required:
            return Asked(bits | self.type_field, bits | self.values[required.bit_length() - 1], without)
        return Asked(bits, bits, without, tuple(value for bit, value in enumerate(self.values) if forbidden >> bit & 1))

    def possible(self, requires: int, forbids: int) -> bool:
        """Whether an event may have all bits of the one and none of the other, whatever its guards say; an event has one type at most."""
        required = requires & self.types
        return not (requires & forbids or required & (required - 1))

    def both(self, one: Transition, other: Transition) -> tuple[int, int] | None:
        """The (requires, forbids) masks of the events that two moves may both take; None where no event may."""
        requires, forbids = one.requires | other.requires, one.forbids | other.forbids
        if not self.possible(requires, forbids):
            return None
        # A required type says that there is no other one.
        return requires, forbids & ~self.types if requires & self.types else forbids

    def _beyond_types(self, mask: int) -> int:
        """The bits of a letter for those of a mask that are no types."""
        conditions = mask & ~self.types & self.mask(Scope.EVENT)
        here = sum(value for bit, value in enumerate(self.values) if conditions >> bit & 1)
        return here | mask >> len(self.predicates) << self.rest_at

    @property
    def rest_at(self) -> int:
        """Where the trackers and flags begin behind a spelling: in a letter without numbers, and in what `asked` says."""
        return len(self.words) * WORD_BITS if self.number_bits else self.event_bits

    def read_with(self, tests: Sequence[tuple[int, int]]) -> tuple[int, ...]:
        """By the number of the event's type, the bits of its spelling by which some tests (requires, forbids) differ; the others say nothing then."""
        kept = []
        for kind in [0, *(1 << bit for bit, predicate in enumerate(self.predicates) if predicate.type is not None)]:
            asked = 0
            for requires, forbids in tests:
                if requires & self.types in {0, kind}:
                    asked |= requires | forbids
            kept.append(self.type_field | self._beyond_types(asked & self.mask(Scope.EVENT)))
        return tuple(kept)

    @cached_property
    def types(self) -> int:
        """The bits that test the event's type: an event has one of them at most."""
        return sum(1 << bit for bit, predicate in enumerate(self.predicates) if predicate.type is not None)

    def mask(self, scope: Scope) -> int:
        """The bits of a scope."""
        match scope:
            case Scope.EVENT:
                return (1 << len(self.predicates)) - 1
            case Scope.PARTITION:
                return sum(tracker.mask for tracker in self.trackers)
            case Scope.SUPPORT:
                return sum(flag.mask for flag in self.flags)
            case Scope.RUN:
                return sum(guard.mask for guard in self.guards)

    def refuse_guards(self, reader: str) -> None:
        """Raise NotSupportedError if there are guards: for what goes by letters alone; reader: its name, for the message."""
        if self.guards:
            raise NotSupportedError(
                f"{reader} cannot ask what a partial match has stored: {self.says(self.guards[0])}", help=REFERENCE_HELP
            )

    def beyond_the_event(self, move: Transition) -> Iterator[str]:
        """What a transition asks that no predicate says, as texts: `tracker 1 = 3`, `last event`, `not (ts - (time of x) <= 5)`."""
        for number, tracker in enumerate(self.trackers, 1):
            states = tracker.states_of(move.requires, move.forbids)
            if len(states) < tracker.states:
                yield f"tracker {number} = {' or '.join(map(str, states)) or 'none'}"
        for mask, text in [
            *((flag.mask, flag.name) for flag in self.flags),
            *((guard.mask, f"({self.says(guard)})") for guard in self.guards),
        ]:
            if (move.requires | move.forbids) & mask:
                yield text if move.requires & mask else f"not {text}"

    def says(self, guard: Guard) -> str:
        """What a guard asks, as text: `v = (v of x)`."""
        return test_text(guard.test, self.names)

    def written(self, move: Transition) -> str:
        """What a transition writes, and its places in parts, as text: `, v of x := v, begins part 1`; empty where there is nothing."""
        written = [f"{self.names[store.register]} := {term_text(store.term, self.names)}" for store in sorted(move.writes, key=by_register)]
        parts = ("may say where the match begins" if part < 0 else f"{PLACES[place]} part {part + 1}" for part, place in sorted(move.parts))
        return "".join(f", {text}" for text in [*written, *parts])

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the registers."""
        return tuple(register.name for register in self.registers)
