"""What all evaluations share: the interface that batch, recognizer and Spark's tasks drive, the matches that come out, the loop around a kernel.

An evaluation is the run state of one program over any number of partitions; `methods` says which there are. `Around` is one around another.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypedDict

import numpy as np

from cepheid.engine.evaluations.events import Events
from cepheid.engine.evaluations.progress import beat
from cepheid.engine.input.order import NEVER
from cepheid.engine.memory.checks import demand, fitting, inside, numbers
from cepheid.engine.memory.pools import NUMBER_LIMIT, offsets_of, ragged
from cepheid.engine.output.exact_counts import joined
from cepheid.kernel import bound, kernel
from cepheid.language.syntax import Consumption
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from cepheid.engine.memory.store import Store
    from cepheid.engine.memory.stored import Stored

Array = np.ndarray[Any, Any]

ALL = 1 << 62
"""Matches per trigger when no limit is given."""

CONSUME = {Consumption.NONE: 0, Consumption.PARTITION: 1, Consumption.ANY: 2}
"""Consumption as the kernels have it in their vector."""

BUDGET = 1 << 22
"""What a kernel may do before it returns to Python, where Ctrl-C is answered: steps of some nanoseconds each, a few 10 ms in all."""

SHRINK_FROM = 1 << 20
"""Bytes of an evaluation's store below which its memory is kept for later."""

SHRINK_RATIO = 4
"""Memory is given back once more than this many times what the live state needs is reserved."""


@record
class Chunk:
    """Consecutive matches; the arrays belong to the receiver and are never written again.

    offsets: int64, n + 1; match k is positions[offsets[k]:offsets[k + 1]]. positions: int64, 0-based positions in the partition, ascending
    per match. labels: uint16, parallel to positions. segments: int32, n: which segment of the call the match ended in. counts (COUNT(*) only):
    uint64, (n, limbs), least limb first, limbs >= 2: each is the number of matches of a trigger, whose one mark is its event.
    """

    offsets: Array
    positions: Array
    labels: Array
    segments: Array
    counts: Array | None = None

    def __len__(self) -> int:
        return len(self.segments)

    @property
    def starts(self) -> Array:
        """Positions of the first events (int64, n)."""
        return self.positions[self.offsets[:-1]]

    @property
    def ends(self) -> Array:
        """Positions of the last events (int64, n)."""
        ends: Array = self.positions[self.offsets[1:] - 1]
        return ends

    @property
    def triggers(self) -> Array:
        """The first match of each trigger (int64), for matches in the order of their triggers."""
        changes = (np.diff(self.segments) != 0) | (np.diff(self.ends) != 0)
        return np.flatnonzero(np.concatenate([np.ones(min(1, len(self)), np.bool_), changes]))

    def take(self, numbers: Array) -> Chunk:
        """The matches with these numbers, in this order."""
        lengths = np.diff(self.offsets)[numbers]
        _, marks = ragged(self.offsets[:-1][numbers], lengths)
        counts = None if self.counts is None else self.counts[numbers]
        return Chunk(offsets_of(lengths), self.positions[marks], self.labels[marks], self.segments[numbers], counts)


def is_wasteful(reserved: int, needed: Callable[[], int]) -> bool:
    """Whether so many reserved bytes are too many for a state that needs so many in a fresh evaluation; `needed` is asked only where it matters."""
    return reserved > SHRINK_FROM and reserved > SHRINK_RATIO * needed()


def collect(chunks: Sequence[Chunk]) -> Chunk:
    """The chunks of an evaluation as one; a single one is passed on without a copy."""
    if len(chunks) == 1:
        return chunks[0]
    offsets = np.concatenate([np.zeros(1, np.int64), *(np.diff(chunk.offsets) for chunk in chunks)]).cumsum()
    empty = {"positions": np.int64, "labels": np.uint16, "segments": np.int32}
    fields = {name: np.concatenate([np.zeros(0, kind), *(getattr(chunk, name) for chunk in chunks)]) for name, kind in empty.items()}
    counts = [chunk.counts for chunk in chunks if chunk.counts is not None]
    return Chunk(offsets, **fields, counts=joined(counts) if counts else None)


def by_trigger(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """The same matches, with all of a trigger in one chunk: the last trigger of a chunk waits for the next one."""
    held: list[Chunk] = []
    for chunk in filter(len, chunks):
        held.append(chunk)
        if len(chunk.triggers) > 1 or (held[0].segments[-1], held[0].ends[-1]) != (chunk.segments[-1], chunk.ends[-1]):
            together = collect(held)
            stop = int(together.triggers[-1])
            held = [together.take(np.arange(stop, len(together)))]
            yield together.take(np.arange(stop))
    if held:
        yield collect(held)


class HasBytes(Protocol):
    """What says how much memory it takes."""

    @property
    def nbytes(self) -> int:
        """Bytes of all its arrays."""


class AnyEvaluation(Protocol):
    """What batch, recognizer and workers ask of an evaluation; see `cepheid.engine.evaluations.graph.match.Evaluation`."""

    @property
    def marked(self) -> Array:
        """uint8 per row of the last batch: 1 where the event may appear in a match."""

    @property
    def reached(self) -> int:
        """How many rows of the last batch the matches given so far may show; the last of them may still become marked."""

    @property
    def passed(self) -> int:
        """How many rows of the batch that is being read have been read to their end, as far as that is known."""

    def chunks(self, events: Events) -> Iterator[Chunk]:
        """Read a batch, and give the matches that end in it as they are made."""

    def release(self, slots: Array) -> None:
        """Forget the partitions in these slots."""

    def restart(self, slots: Array) -> None:
        """Forget the partitions in these slots, which are read again at once: what takes long to get may stay."""

    def expire(self, time: int) -> Array:
        """Free what no match can go on with; returns the idle slots."""

    def ensure_slots(self, count: int) -> None:
        """Make slots 0 .. count - 1 exist."""

    def memory_usage(self) -> int:
        """Bytes of the run state."""

    def dump(self) -> Mapping[str, Any]:
        """The live state as named sections: bytes, or arrays of integers."""

    def load(self, sections: Mapping[str, Any], stored: Stored | None = None) -> None:
        """Go on, fresh, from what `dump` gave; stored: the partitions of a snapshot that it came in, None: the slots stay as they are."""

    def letters_in(self, sections: Mapping[str, Any]) -> Array:
        """The letters of events that what `dump` gave speaks of, in any order (int64)."""

    def texts_in(self, sections: Mapping[str, Any]) -> Array:
        """The numbers of texts (`letters.encoded.Texts`) that what `dump` gave speaks of, in any order (int64)."""

    @property
    def wasteful(self) -> bool:
        """Whether a fresh instance with the same state would need much less memory."""

    def held(self) -> tuple[Array, Array] | None:
        """(slot, position) of each event that a later match may show, in any order; None: what bounds the matches says it (int64)."""

    def trigger_matches(self) -> float | None:
        """How many matches the trigger has that is being enumerated; None where nothing tells. Nothing can be read afterwards."""

    @property
    def triggers(self) -> int:
        """Events that ended at least one match."""

    @property
    def matches(self) -> int:
        """Matches given."""

    @property
    def skipped(self) -> int:
        """Events passed without a step."""


class Feeding(ABC):
    """An evaluation that gives its matches in chunks, as they are made."""

    @abstractmethod
    def chunks(self, events: Events) -> Iterator[Chunk]:
        """Read a batch, see `cepheid.engine.evaluations.graph.match.Evaluation.chunks`."""

    @property
    def passed(self) -> int:
        """How many rows of the batch that is being read have been read to their end, as far as that is known: none."""
        return 0

    def texts_in(self, sections: Mapping[str, Any]) -> Array:  # noqa: ARG002 - an evaluation with guards looks at them
        """The numbers of texts that what `dump` gave speaks of: none without guards."""
        return np.zeros(0, np.int64)

    def held(self) -> tuple[Array, Array] | None:
        """(slot, position) of each event that a later match may show: what bounds the matches says it."""
        return None

    def feed(self, letters: Array, times: Array, *, sink: Callable[[Chunk], None] | None = None, **segments: Any) -> None:
        """Read `Events(letters, times, **segments)` to their end; `sink` gets each of the `chunks`."""
        for chunk in self.chunks(Events(letters, times, **segments)):
            if sink is not None:
                sink(chunk)


class Around(Feeding):
    """An evaluation around another one: everything but `chunks` is the inner one's."""

    def __init__(self, evaluation: AnyEvaluation) -> None:
        self.evaluation = evaluation

    @property
    def marked(self) -> Array:
        """uint8 per row of the last batch: 1 where the event may appear in a match."""
        return self.evaluation.marked

    def held(self) -> tuple[Array, Array] | None:
        """(slot, position) of each event that a later match may show, None: what bounds the matches says it."""
        return self.evaluation.held()

    @property
    def reached(self) -> int:
        """How many rows of the last batch the matches given so far may show."""
        return self.evaluation.reached

    @property
    def passed(self) -> int:
        """How many rows of the batch that is being read have been read to their end."""
        return self.evaluation.passed

    def release(self, slots: Array) -> None:
        """Forget the partitions in these slots."""
        self.evaluation.release(slots)

    def restart(self, slots: Array) -> None:
        """Forget the partitions in these slots, which are read again at once."""
        self.evaluation.restart(slots)

    def expire(self, time: int) -> Array:
        """Free what no match can go on with; returns the idle slots."""
        return self.evaluation.expire(time)

    def ensure_slots(self, count: int) -> None:
        """Make slots 0 .. count - 1 exist."""
        self.evaluation.ensure_slots(count)

    def memory_usage(self) -> int:
        """Bytes of the run state."""
        return self.evaluation.memory_usage()

    def dump(self) -> Mapping[str, Any]:
        """The live state as named sections: bytes, or arrays of integers."""
        return self.evaluation.dump()

    def load(self, sections: Mapping[str, Any], stored: Stored | None = None) -> None:
        """Go on, fresh, from what `dump` gave; raises SnapshotError where that does not fit."""
        self.evaluation.load(sections, stored)

    def letters_in(self, sections: Mapping[str, Any]) -> Array:
        """The letters of events that what `dump` gave speaks of, in any order (int64)."""
        return self.evaluation.letters_in(sections)

    def texts_in(self, sections: Mapping[str, Any]) -> Array:
        """The numbers of texts that what `dump` gave speaks of, in any order (int64)."""
        return self.evaluation.texts_in(sections)

    @property
    def wasteful(self) -> bool:
        """Whether a fresh instance with the same state would need much less memory."""
        return self.evaluation.wasteful

    def trigger_matches(self) -> float | None:
        """How many matches the trigger has that is being enumerated; None where nothing tells."""
        return self.evaluation.trigger_matches()

    @property
    def triggers(self) -> int:
        """Events that ended at least one match."""
        return self.evaluation.triggers

    @property
    def matches(self) -> int:
        """Matches given."""
        return self.evaluation.matches

    @property
    def skipped(self) -> int:
        """Events passed without a step."""
        return self.evaluation.skipped


class KernelLoop(ABC):
    """The loop around a kernel: it is called until it has read the batch, and what it returns for is done in between, by a function per exit.

    name, variant: of the kernel. Its numbers stand in a vector, by name; `mends` names a method for each of its EXITS, which may give chunks that
    are ready. (Names: bound methods would refer back to the evaluation, and its arrays would stay until the garbage collector comes.)
    """

    def __init__(self, name: str, variant: str | None) -> None:
        self.kernel = kernel(name, variant)
        self._bound = bound(self.kernel)
        self.field = {field: place for place, field in enumerate(self.kernel.FIELDS)}
        self.mends: dict[str, str] = {}
        self._vector: Array = np.zeros(len(self.field), np.int64)
        self._batch: tuple[Array, ...] = ()

    def _get(self, name: str) -> int:
        return int(self._vector[self.field[name]])

    def _set(self, name: str, value: int) -> None:
        self._vector[self.field[name]] = value

    @abstractmethod
    def _arrays(self) -> tuple[Array, ...]:
        """The kernel's arguments; they are collected for each call, for arrays are replaced when they grow."""

    def _call(self) -> str:
        """Call the kernel; the name of its exit."""
        name: str = self.kernel.EXITS[self._bound(self._arrays())]
        return name

    def _read(self, *batch: Array, continued: bool) -> Iterator[Chunk]:
        """Let the kernel read a batch to its end: the arrays that it is (letters, times, cuts, rows by segment), with what it goes on with."""
        self._batch = batch
        for name, value in (("row", 0), ("segment", -1), ("segment_end", 0), ("continued", continued)):
            self._set(name, value)
        while (name := self._call()) != "done":
            beat()
            mend: Callable[[], Iterable[Chunk] | None] = getattr(self, self.mends[name])
            yield from mend() or ()


class Bounds(TypedDict, total=False):
    """What bounds the matches of an evaluation, and what runs it: every evaluation takes these by name.

    window: greatest time(end) - time(start) of a match, in units of the time column, None without a bound. count_window: greatest
    end - start + 1 in events. consume: after a trigger only later starts count, in its partition or (ANY: the partitions are then fed in
    stream order) in all. limit: matches per ending event, None for all, 0 to count the ending events only. variant: see `cepheid.kernel.VARIANTS`.
    """

    window: int | None
    count_window: int | None
    consume: Consumption
    limit: int | None
    variant: str | None


class Keeping(Feeding):
    """An evaluation of matches within bounds, that keeps the state of its partitions in a store, each in the row after its slot.

    events: how many it has read.
    """

    store: Store

    def __init__(self, bounds: Bounds) -> None:
        self.window = bounds.get("window")
        self.count_window = bounds.get("count_window")
        self.consume = bounds.get("consume", Consumption.NONE)
        self.limit = bounds.get("limit")
        self.variant = bounds.get("variant")
        self.marked: Array = np.zeros(0, np.uint8)
        self.events = 0

    @property
    def slots(self) -> int:
        """How many slots there are."""
        return len(self.store) - 1

    def ensure_slots(self, count: int) -> None:
        """Make slots 0 .. count - 1 exist."""
        self.store.ensure(count + 1)

    def release(self, slots: Array) -> None:
        """Forget the partitions in these slots: positions start again at 0, and their memory waits for others. O(slots)."""
        self.store.release(np.asarray(slots, np.int64) + 1)

    def restart(self, slots: Array) -> None:
        """Forget the partitions in these slots, which are read again at once: positions start again at 0. O(slots)."""
        self.release(slots)

    def memory_usage(self) -> int:
        """Bytes of all arrays of the run state: what it has reserved, also where partitions left room."""
        return self.store.nbytes + int(self.marked.nbytes) + sum(int(part.nbytes) for part in self._parts())

    @abstractmethod
    def _parts(self) -> Iterable[Array | HasBytes]:
        """What takes memory beside the store."""


class KernelEvaluation(Keeping, KernelLoop):
    """An evaluation by the kernel of this name, with the bounds of the matches in its vector.

    workplace: what the kernel takes for the row of a partition that is not kept. counters: what a snapshot counts, in its order: numbers of the
    vector, or attributes.
    """

    workplace: ClassVar[int] = -1
    counters: ClassVar[tuple[str, ...]]

    def __init__(self, name: str, bounds: Bounds) -> None:
        Keeping.__init__(self, bounds)
        KernelLoop.__init__(self, name, self.variant)
        self.mends["pause"] = "_go_on"
        self._reading = False
        for field, value in (("window", self.window), ("timed", self.window is not None), ("count_window", self.count_window)):
            if field in self.field:
                self._set(field, value or 0)
        self._set("consume", CONSUME[self.consume])
        self._set("budget", BUDGET)

    def chunks(self, events: Events) -> Iterator[Chunk]:
        """Read a batch, and give the matches that end in it as they are made, in the order of the events that end them.

        The batch is read only as far as chunks are asked for; they are to be read to the end before another call. O(n) and the output, plus
        O(live state) per segment.
        """
        yield from self._run(events, events.records(workplace=self.workplace))
        self.events += len(events)

    def _run(self, events: Events, rows: Array, *more: Array) -> Iterator[Chunk]:
        """What a batch gives; rows: of its segments. more: what the kernel of this name reads beside."""
        self.store.open(np.maximum(rows, 0))
        self.marked = np.zeros(len(events), np.uint8)
        letters = self._begin(events)
        vetoed = np.zeros(0, np.uint8) if events.vetoed is None else events.vetoed.view(np.uint8)
        self._set("row", 0)
        self._reading = True
        try:
            yield from self._read(letters, events.times, events.cuts, rows, vetoed, *more, continued=events.continued)
            yield from self._taken()
        finally:
            self._reading = False

    def expire(self, time: int) -> Array:
        """Free the memory of partitions in which no match can go on at `time` or later; returns all slots that now hold no open match (int64).

        Positions go on where they were. Vectorized, O(slots).
        """
        rows = np.flatnonzero(self._idle(time))
        rows = rows[rows > 0]
        self.store.empty(rows)
        if is_wasteful(self.store.reserved, lambda: self.store.taken):
            self.store.squeeze()
        return rows - 1

    @abstractmethod
    def _idle(self, time: int) -> Array:
        """For each row whether no match can go on at `time` or later: bool."""

    def _since(self, time: int) -> int | None:
        """The least time that a match which ends at `time` may start at, None without a time window."""
        return None if self.window is None else max(time - self.window, NEVER)

    @property
    def wasteful(self) -> bool:
        """Whether the store's memory is mostly unused: `dump` and `load` into a fresh evaluation gives it back."""
        return is_wasteful(self.store.reserved, self._needed)

    @abstractmethod
    def _needed(self) -> int:
        """The bytes of `Store.reserved` that the live state would take in a fresh evaluation."""

    @abstractmethod
    def _begin(self, events: Events) -> Array:
        """Make ready for a batch; its letters as the kernel reads them."""

    @abstractmethod
    def _taken(self) -> Iterable[Chunk]:
        """What is buffered, ready to be given."""

    @property
    def reached(self) -> int:
        """How many rows of the last batch the matches given so far may show; the last of them may still become marked."""
        return min(self._get("row") + 1, len(self.marked))

    @property
    def passed(self) -> int:
        """How many rows of the batch that is being read have been read to their end."""
        return self._get("row") if self._reading else 0

    def letters_in(self, sections: Mapping[str, Any]) -> Array:  # noqa: ARG002 - others have some
        """The letters of events that what `dump` gave speaks of, in any order: none."""
        return np.zeros(0, np.int64)

    def _go_on(self) -> None:
        """The kernel has returned only so that whoever waits can break in: Python looks at signals between two calls."""

    def _count(self) -> Array:
        """The counters of a snapshot."""
        return np.array([self._get(name) if name in self.field else getattr(self, name) for name in self.counters], "<i8")

    def load(self, sections: Mapping[str, Any], stored: Stored | None = None) -> None:
        """Go on, in a fresh evaluation of the same program and bounds, from what `dump` gave; raises SnapshotError where that does not fit.

        stored: the partitions of the snapshot, which the sections must have; None: the slots stay as they are.
        """
        with fitting():
            counters = numbers(sections, "counters")
            demand(inside(counters, 0, NUMBER_LIMIT))
            for name, value in zip(self.counters, counters.tolist(), strict=True):
                if name in self.field:
                    self._set(name, value)
                else:
                    setattr(self, name, value)
            self._restore(sections, stored)

    @abstractmethod
    def _restore(self, sections: Mapping[str, Any], stored: Stored | None) -> None:
        """Go on from the sections beside the counters; raises ValueError or KeyError where they do not fit."""

    def trigger_matches(self) -> float | None:
        """How many matches the trigger has that is being enumerated: unknown where they are not in a match graph."""
        return None

    @property
    def triggers(self) -> int:
        """Events that ended at least one match."""
        return self._get("triggers")

    @property
    def skipped(self) -> int:
        """Events that changed nothing and were passed without a step."""
        return self._get("skipped")


class BufferedRun(KernelEvaluation):
    """A run whose kernel writes lists of events, matches or supports, into buffers that grow to what the stream gives.

    kind: the type of what stands beside each position. lists, marks: first room, for so many lists and so many positions in all of them.
    most_lists, most_marks: room at most, but for one list that is longer by itself.
    """

    kind: ClassVar[type[np.generic]]

    def __init__(self, name: str, bounds: Bounds, *, lists: int, marks: int, most_lists: int, most_marks: int) -> None:
        super().__init__(name, bounds)
        self.mends["output"] = "_mend_output"
        self._most = most_lists, most_marks
        self._make_buffers(lists, marks)

    def read_on(self, events: Events) -> None:
        """Go on with events without giving the matches that end in them."""
        limit = self._get("limit")
        self._set("limit", 0)
        for _ in self.chunks(events):
            pass
        self._set("limit", limit)

    def _make_buffers(self, lists: int, marks: int) -> None:
        """Of offsets, positions, what stands beside them, and segments."""
        self._bound = bound(self.kernel)  # which lets go of those that were given away
        offsets: Array = np.zeros(lists + 1, np.int64)
        self._buffers: tuple[Array, ...] = (offsets, np.empty(marks, np.int64), np.empty(marks, self.kind), np.empty(lists, np.int32))

    def _buffered(self) -> tuple[Array, ...] | None:
        """What is buffered, if there is anything: the buffers themselves when they are full enough, else copies."""
        lists, marks = self._get("buffered_matches"), self._get("buffered_positions")
        if not lists:
            return None
        self._set("buffered_matches", 0)
        self._set("buffered_positions", 0)
        room, marks_room = len(self._buffers[3]), len(self._buffers[1])
        found = tuple(buffer[:count] for buffer, count in zip(self._buffers, (lists + 1, marks, marks, lists), strict=True))
        if 2 * lists <= room and 2 * marks <= marks_room:
            return tuple(part.copy() for part in found)
        most_lists, most_marks = self._most
        wanted = 2 * marks_room  # for few long lists no room for more of them
        if 2 * lists > room:
            room = min(2 * room, most_lists)
            wanted = room * marks * 21 // (lists * 20) + 1  # as long as these lists and 5 % more
        self._make_buffers(room, min(wanted, max(marks_room, most_marks)))
        return found

    def _mend_output(self) -> Iterable[Chunk]:
        """The buffers are full; where not even one list fits, make room for a longer one."""
        if not self._get("buffered_matches"):
            self._make_buffers(len(self._buffers[3]), 2 * len(self._buffers[1]))
        return self._taken()
