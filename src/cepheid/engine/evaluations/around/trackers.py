"""Trackers beside an evaluation: what nested strategies know of the stream before their matches begin, as bits of the letters.

Comes in: letters of the predicates. Goes out: the same letters with the states of the program's trackers before each event, for the
evaluation behind. All trackers of a program run as one deterministic automaton (a state is a tuple of theirs), determinized as the stream asks for
it; a partition costs one number. They see the whole stream: windows, consumption and limits are the evaluation's alone.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from cepheid.engine.evaluations.base import Around, KernelLoop
from cepheid.engine.evaluations.events import Events
from cepheid.engine.letters.codes import LetterCodes
from cepheid.engine.memory.checks import demand, fitting, inside, numbers
from cepheid.engine.memory.pools import power_of_two
from cepheid.engine.memory.store import Store
from cepheid.errors import LimitError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cepheid.automata.alphabet import Alphabet, Tracker
    from cepheid.automata.program import Program
    from cepheid.engine.evaluations.base import AnyEvaluation, Chunk
    from cepheid.engine.memory.pools import Array
    from cepheid.engine.memory.stored import Stored

TABLE_ENTRIES = 1 << 22
"""Bound of the transition table, in (state, letter) pairs of 4 bytes; past it only the states that partitions are in are kept."""

STATE_LIMIT = 1 << 24
"""Different states that the partitions of one evaluation may be in at one time."""

UNKNOWN = -1

SECTION = "tracker_states"
"""Of a snapshot."""


class Trackers(KernelLoop, Store):
    """The run state of trackers over any number of partitions.

    trackers: in the order in which they read each other's bits. alphabet: of the letters that go out. bits: width of the letters that come in.
    variant: of the kernel. O(1) per event. records: int32, the number of each row's state.
    """

    records: Array

    def __init__(
        self, trackers: Sequence[Tracker], alphabet: Alphabet, *, bits: int, variant: str | None = None, entries: int = TABLE_ENTRIES
    ) -> None:
        self.trackers = tuple(trackers)
        self.alphabet = alphabet
        self.entries = entries
        KernelLoop.__init__(self, "track", variant)
        Store.__init__(self, records=np.zeros((), np.int32))
        self.mends |= {"letter": "_learn", "transition": "_fill"}
        self.codes = LetterCodes(bits)
        self._out: Array = np.zeros(0, np.uint64)
        self._forget(states=4, codes=4)
        self._number((0,) * len(self.trackers))

    def _forget(self, *, states: int, codes: int) -> None:
        self.states: list[tuple[int, ...]] = []
        self._numbers: dict[tuple[int, ...], int] = {}
        self._bits: Array = np.zeros(states, np.uint64)
        self._table: Array = np.full((states, codes), UNKNOWN, np.int32)

    @property
    def ahead(self) -> bool:
        """Whether they run backward, through the events of one time."""
        return self.trackers[0].ahead

    def read(self, events: Events) -> Array:
        """The letters of a batch with the bits of the trackers before each event: uint64.

        Raises LimitError past STATE_LIMIT. Linear.
        """
        rows = events.records(workplace=-1)
        self.open(rows)
        letters = np.ascontiguousarray(events.letters, np.uint64)
        self._out = np.empty(len(letters), np.uint64)
        self._set("state", 0)
        given = list(self._read(letters, self.codes.begin(letters), events.cuts, rows, continued=events.continued))
        assert not given, "trackers give letters alone"
        return self._out

    def _arrays(self) -> tuple[Array, ...]:
        self._set("codes", self._table.shape[1])
        self._set("letter_mask", self.codes.letter_mask)
        return (self._vector, *self._batch, self.codes.lut, self._table.reshape(-1), self._bits, self.records, self._out)

    def _index(self) -> int:
        """Place in `lut` of the letter being read."""
        return int(self._batch[1][self._get("row")]) & self.codes.letter_mask

    def _learn(self) -> None:
        code = self.codes.learn(self._index())
        if code >= self._table.shape[1]:
            self._resize(len(self._bits), 2 * self._table.shape[1])

    def _fill(self) -> None:
        """Make the transition known that the kernel asks for."""
        state, code = self._get("state"), int(self.codes.lut[self._index()])
        mask = self.alphabet.mask_of(self.codes.letters[code] | int(self._bits[state]))
        after = tuple(tracker.successor(own, mask) for tracker, own in zip(self.trackers, self.states[state], strict=True))
        if (
            after not in self._numbers
            and len(self.states) == len(self._bits)
            and not self._resize(2 * len(self._bits), self._table.shape[1])
        ):
            return
        self._table[state, code] = self._number(after)

    def _number(self, state: tuple[int, ...]) -> int:
        """The number of a state, a new one if need be (there must be room)."""
        number = self._numbers.setdefault(state, len(self.states))
        if number == len(self.states):
            self.states.append(state)
            self._bits[number] = sum(own << self.alphabet.place(tracker.bit) for tracker, own in zip(self.trackers, state, strict=True))
        return number

    def _resize(self, states: int, codes: int) -> bool:
        """Make room; False where that would pass the bound: then all is forgotten but the states in use, and the kernel has to ask again."""
        if states * codes > self.entries:
            self._renumber()
            return False
        self._reserve(states, codes)
        return True

    def _reserve(self, states: int, codes: int) -> None:
        larger: Array = np.full((states, codes), UNKNOWN, np.int32)
        larger[: self._table.shape[0], : self._table.shape[1]] = self._table
        self._table = larger
        self._bits = np.concatenate([self._bits, np.zeros(states - len(self._bits), np.uint64)])

    def _renumber(self) -> None:
        used, places = np.unique(np.append(self.records, np.int32(self._get("state"))), return_inverse=True)
        kept = [self.states[number] for number in used.tolist()]
        if len(kept) > STATE_LIMIT:
            raise LimitError(
                f"the nested strategies of all partitions are in {len(kept)} different states, and the limit is {STATE_LIMIT} (STATE_LIMIT)",
                help="apply the strategies to shorter patterns, or spread the keys over several recognizers",
            )
        self.codes.forget()
        self._forget(states=power_of_two(2 * len(kept) + 2), codes=4)
        self.entries = max(self.entries, 16 * self._table.size)
        self._number((0,) * len(self.trackers))
        numbers = np.array([self._number(state) for state in kept], np.int32)[places]
        self.records = numbers[:-1].copy()
        self._set("state", int(numbers[-1]))

    # ------------------------------------------------------------------------------------------------------------- partitions

    def untouched(self, slots: Array) -> Array:
        """For each slot whether its trackers are as at the beginning (bool)."""
        first = self._numbers.get((0,) * len(self.trackers), 0)
        untouched: Array = self.records[slots + 1] == first
        return untouched

    @property
    def reserved(self) -> int:
        """Bytes of the tables."""
        return int(self._table.nbytes + self._bits.nbytes + self.codes.nbytes)

    def dump(self) -> dict[str, bytes]:
        """The states of all partitions as a named section (int32, a row of one number per tracker for each record)."""
        states = np.array([self.states[number] for number in self.records.tolist()], "<i4").reshape(len(self.records), len(self.trackers))
        return {SECTION: states.tobytes()}

    def load(self, sections: Mapping[str, bytes], stored: Stored | None = None, *, name: str = SECTION) -> None:
        """Go on, fresh, from what `dump` gave, under this name; raises SnapshotError where that does not fit."""
        with fitting(f"its section `{name}` does not fit"):
            states = numbers(sections, name, "<i4", width=len(self.trackers))
            demand(len(states) > 0, inside(states, 0, np.array([tracker.states for tracker in self.trackers])))
        distinct, places = np.unique(states, axis=0, return_inverse=True)
        if len(distinct) >= len(self._bits):
            self._reserve(power_of_two(len(distinct) + 1), self._table.shape[1])
        found = np.array([self._number(tuple(state)) for state in distinct.tolist()], np.int32)
        self.records = found[places.reshape(-1)]
        if stored is not None:
            # Partitions behind the last record have not begun.
            begun = stored.named < len(self.records) - 1
            records: Array = np.zeros(1 + int(stored.slots.max(initial=-1)) + 1, np.int32)
            records[stored.slots[begun] + 1] = self.records[stored.named[begun] + 1]
            self.records = records


def backward(events: Events) -> tuple[Array, Array]:
    """The rows of a batch from the last event of each partition to its first, and where each partition starts among them (int64)."""
    lengths = np.diff(events.cuts, append=len(events))
    # What is not kept ends with its segment.
    partitions = np.where(events.slots >= 0, events.slots.astype(np.int64), -1 - np.arange(len(events.cuts)))
    each = np.repeat(partitions, lengths)
    order = np.argsort(each, kind="stable")[::-1]
    return order, np.flatnonzero(np.concatenate([np.ones(min(1, len(order)), np.bool_), each[order][1:] != each[order][:-1]]))


class Tracked(Around):
    """An evaluation whose letters get the bits of the program's trackers first; the same interface.

    evaluation: of `program`, without state. Costs O(1) per event beside it, and one number per partition. Where a tracker runs ahead, the events of a
    time come in one batch; it runs through the batch backward, and keeps nothing.
    """

    def __init__(self, evaluation: AnyEvaluation, program: Program, *, variant: str | None = None, entries: int = TABLE_ENTRIES) -> None:
        super().__init__(evaluation)
        self.program = program
        alphabet = program.automaton.alphabet
        bits = alphabet.event_bits
        self.passes: list[Trackers] = []
        for _, together in itertools.groupby(program.trackers, key=lambda tracker: tracker.ahead):
            trackers = tuple(together)
            self.passes.append(Trackers(trackers, alphabet, bits=bits, variant=variant, entries=entries))
            bits += sum(tracker.width for tracker in trackers)
        self.kept = [each for each in self.passes if not each.ahead]

    def chunks(self, events: Events) -> Iterator[Chunk]:
        """Read a batch, as `Evaluation.chunks`; letters: of the predicates alone."""
        for each in self.passes:
            events = events.with_letters(self._ahead(each, events) if each.ahead else each.read(events))
        yield from self.evaluation.chunks(events.with_letters(events.letters.astype(np.uint32)) if self.program.bits <= 32 else events)

    @staticmethod
    def _ahead(trackers: Trackers, events: Events) -> Array:
        """The letters with the bits of trackers that run ahead."""
        order, cuts = backward(events)
        letters: Array = np.empty(len(events), np.uint64)
        if len(order):
            letters[order] = trackers.read(Events(events.letters[order], events.times[order], cuts))
        return letters

    def release(self, slots: Array) -> None:
        """Forget the partitions in these slots."""
        for each in self.kept:
            each.release(np.asarray(slots, np.int64) + 1)
        super().release(slots)

    def expire(self, time: int) -> Array:
        """Free what no match can go on with; returns the idle slots: those in which the trackers have nothing to remember either."""
        idle = super().expire(time)
        for each in self.kept:
            each.open(idle + 1)
            idle = idle[each.untouched(idle)]
        return idle

    def ensure_slots(self, count: int) -> None:
        """Make slots 0 .. count - 1 exist."""
        for each in self.kept:
            each.ensure(count + 1)
        super().ensure_slots(count)

    def memory_usage(self) -> int:
        """Bytes of the run state."""
        return sum(each.nbytes for each in self.passes) + super().memory_usage()

    def dump(self) -> dict[str, bytes]:
        """The live state as named sections, those of the trackers behind others that run ahead with their number."""
        tracked = {f"{name}{number or ''}": own for number, each in enumerate(self.kept) for name, own in each.dump().items()}
        return {**super().dump(), **tracked}

    def load(self, sections: Mapping[str, bytes], stored: Stored | None = None) -> None:
        """Go on, fresh, from what `dump` gave; raises SnapshotError where that does not fit."""
        for number, each in enumerate(self.kept):
            each.load(sections, stored, name=f"{SECTION}{number or ''}")
        super().load(sections, stored)
