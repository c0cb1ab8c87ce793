"""`Counting`: COUNT(*) of all matches, the exact number per trigger, without enumerating them. `chosen_count` has COUNT(*) under NXT, LAST and MAX.

Comes in: letters, as for `evaluations.graph.match.Evaluation`, which has the same interface. Goes out: per trigger one mark, at the event
that ends the matches, and their number as limbs of 64 bits. The kernel's docstring (`cepheid.kernel.counting`) has the method: a sliding product of
transition counts over two stacks. Here are its blocks, its tables, and the widths of rows and numbers, which grow with the stream.

When to use this: COUNT(*) of patterns that compare nothing. What it costs does not depend on how many matches there are; counting in the match graph
of guards (`guarded_run`) takes 10 to 60 times as long where events have many matches, and no longer where they have few (STRICT).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cepheid.engine.evaluations.base import Chunk, KernelEvaluation
from cepheid.engine.evaluations.events import Events
from cepheid.engine.evaluations.graph.match import CHUNK_MATCHES, FIRST_CHUNK
from cepheid.engine.evaluations.method import AutomatonMethod, Guarantee
from cepheid.engine.evaluations.transitions import HIGH, TABLE_ENTRIES, HasSuccessors, TransitionTable
from cepheid.engine.memory.checks import ascending, demand, inside, numbers, owners, rows_of
from cepheid.engine.memory.container import macro_bytes, macro_states
from cepheid.engine.memory.count_blocks import (
    EPOCH,
    HEAD,
    LIVE,
    LOW,
    MASK,
    PLAIN,
    POSITION,
    TAIL,
    WINDOW_HELP,
    WORDS,
    CountBlocks,
    CountShape,
)
from cepheid.engine.memory.pools import power_of_two
from cepheid.errors import LimitError
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Unpack

    from cepheid.engine.evaluations.base import Bounds, HasBytes
    from cepheid.engine.evaluations.method import Terms
    from cepheid.engine.memory.pools import Array
    from cepheid.engine.memory.stored import Stored

COUNT_LIMBS = 1 << 10
"""Greatest width of the numbers of an evaluation, in limbs of 64 bits: 19,700 decimal digits, 8 kB in each count of the output."""

COUNT_STATES = 1 << 10
"""Most macro states that the rows of an evaluation have room for."""

COLLECT_FROM = 64
"""Macro states from which on those that are no longer alive are looked for before the rows grow."""

CHUNK_LIMBS = 1 << 20
"""Most limbs in one chunk of counts (8 bytes each), where a count is not wider."""

SLOT_COLUMNS = ("slot", "position", "low", "stored")
"""Per partition in a snapshot; stored: its events (under a window), or its rows (0 or 1)."""


@record
class CountSizes:
    """First sizes of what grows (powers of two); tests make them tiny. places: of a ring. width: of a row. limbs: of a number."""

    places: int = 4
    width: int = 4
    limbs: int = 1
    chunk: int = FIRST_CHUNK
    most_chunk: int = CHUNK_MATCHES
    table: int = TABLE_ENTRIES
    collect: int = COLLECT_FROM


def wider(size: int) -> int:
    """How many limbs numbers get that need more than `size`; raises LimitError past COUNT_LIMBS."""
    if 2 * size > COUNT_LIMBS:
        raise LimitError(
            f"a number of matches needs more than {size} limbs of 64 bits, and the limit is {COUNT_LIMBS} (COUNT_LIMBS)", help=WINDOW_HELP
        )
    return 2 * size


class Counting(KernelEvaluation):
    """The run state of COUNT(*) for one program over any number of partitions; the interface is that of `Evaluation`.

    limit is not looked at: a trigger has one count. Chunks have one mark per trigger (positions: the end; labels: 0), and `counts`.
    With m live macro states and numbers of K limbs: update O(m^2 K) amortized, per trigger O(m^2 K + m K^2); memory O(stored events of the
    window x m K), without a window O(m K), where K grows with the stream. Raises LimitError past COUNT_LIMBS, COUNT_STATES or COUNT_WORDS.
    """

    counters: ClassVar[tuple[str, ...]] = ("events", "triggers", "skipped", "epoch")

    def __init__(self, program: HasSuccessors, *, sizes: CountSizes | None = None, **bounds: Unpack[Bounds]) -> None:
        super().__init__("counting", bounds)
        self.sizes = sizes or CountSizes()
        self.program = program
        self._letters: Array = np.zeros(0, np.uint64)
        self._collected = -1
        self._start(self.sizes.limbs)
        self._outputs(self.sizes.chunk)
        self.mends |= {
            "letter": "_mend_letter",
            "transition": "_mend_transition",
            "output": "_taken",
            "room": "_mend_room",
            "wide": "_mend_wide",
        }
        self._set("letter_mask", self.table.letter_mask)

    @property
    def bounded(self) -> bool:
        """Whether there is a window, and events are stored until they leave it."""
        return self.window is not None or self.count_window is not None

    def _start(self, size: int) -> None:
        """No partition, no transition."""
        self.table = TransitionTable(self.program, entries=self.sizes.table)
        width = self.sizes.width
        self._fanout = power_of_two(self.table.fanout + 1)
        self._collect_at = self.sizes.collect
        self.store: CountBlocks = CountBlocks(
            CountShape(width, width if self.bounded else 1, size), places=self.sizes.places if self.bounded else 0
        )
        self._work()

    @property
    def shape(self) -> CountShape:
        """How wide rows and numbers are by now."""
        return self.store.shape

    # ------------------------------------------------------------------------------------------------ what users of it see

    def _begin(self, events: Events) -> Array:
        self._letters = events.letters
        self._collected = -1
        self._set("record", -1)
        return self.table.begin(events.letters)

    def chunks(self, events: Events) -> Iterator[Chunk]:
        """Read a batch, as `Evaluation.chunks`: the counts of its triggers."""
        yield from self._run(events, events.records(workplace=self.workplace), np.zeros(0, np.int64))
        self.events += len(events)

    def _idle(self, time: int) -> Array:
        store, oldest = self.store, self._since(time)
        idle, held = store.offsets < 0, store.held_rows
        header = store.plain(held)
        done = header[:, EPOCH] != self._get("epoch")
        done |= header[:, HEAD] == header[:, TAIL] if self.bounded else header[:, PLAIN] == 1
        if oldest is not None:
            newest = store.offsets[held] + store.shape.ring + ((header[:, TAIL] - 1) & header[:, MASK]) * store.shape.entry
            done |= store.words[newest + 1] < oldest
        idle[held] = done
        return idle

    def _parts(self) -> Iterable[Array | HasBytes]:
        return (self._vector, self._scratch, self._out_positions, self._out_segments, self._out_counts, self.table)

    def _needed(self) -> int:
        return self.store.needed

    @property
    def matches(self) -> int:
        """Rows given: one per trigger."""
        return self._get("triggers")

    # ------------------------------------------------------------------------------------------------ state

    def dump(self) -> dict[str, bytes]:
        """The live state of all partitions as named sections, little-endian; the evaluation is unchanged. Linear in the stored events.

        Sections: counters; slots (int64, SLOT_COLUMNS per partition that has seen an event); under a window the stored events (positions,
        times, letters), from which `load` computes the numbers anew; without one macros, and counts (uint64, rows x macros x limbs).
        """
        rows = self.store.used
        header = self.store.plain(rows)
        position = header[:, POSITION]
        fresh = header[:, EPOCH] == self._get("epoch")
        low = np.where(fresh, header[:, LOW], position)
        stored, sections = (
            self._dump_events(rows, position, low) if self.bounded else self._dump_rows(rows, fresh & (header[:, PLAIN] == 0))
        )
        return {
            "counters": self._count().tobytes(),
            "slots": np.stack([rows - 1, position, low, stored], axis=1).astype("<i8").tobytes(),
            **sections,
        }

    def _dump_events(self, rows: Array, position: Array, low: Array) -> tuple[Array, dict[str, bytes]]:
        words = self.store.words
        owner, places = self.store.entries(rows)
        oldest = low if self.count_window is None else np.maximum(low, position + 1 - self.count_window)
        kept = words[places] >= oldest[owner]
        places, owner = places[kept], owner[kept]
        letters = np.array(self.table.letters, np.uint64)
        return np.bincount(owner, minlength=len(rows)), {
            "positions": words[places].astype("<i8").tobytes(),
            "times": words[places + 1].astype("<i8").tobytes(),
            "letters": letters[words[places + 2]].astype("<u8").tobytes(),
        }

    def _dump_rows(self, rows: Array, has: Array) -> tuple[Array, dict[str, bytes]]:
        found = self.store.words[self.store.matrices(rows[has])[:, 0, : len(self.table.macros)]].view(np.uint64)
        used = np.flatnonzero(found.any(axis=(0, 2)))
        width, masks = macro_bytes([self.table.macros[macro] for macro in used.tolist()])
        return has.astype(np.int64), {
            "macros": struct.pack("<II", width, self.shape.size) + masks,
            "counts": found[:, used].astype("<u8").tobytes(),
        }

    def _restore(self, sections: Mapping[str, Any], stored: Stored | None) -> None:
        """As in the base; costs what reading the stored events did."""
        slots = numbers(sections, "slots", width=len(SLOT_COLUMNS))
        _, position, low, counts = slots.T
        demand(inside(low, 0, position + 1), counts >= 0)
        rows = rows_of(slots[:, 0], position, stored)
        skipped = self._get("skipped")
        self.store.ensure(int(rows.max(initial=0)) + 1)
        self.store.keep(rows, np.column_stack([position, low, np.full(len(rows), self._get("epoch"))]))
        # The others have nothing open: they need no block before their next event.
        held = counts > 0
        rows, counts, position = rows[held], counts[held], position[held]
        self.store.open(rows)
        if self.bounded:
            self._restore_events(rows, counts, position, sections)
        else:
            self._restore_rows(rows, counts, sections)
        # Replaying the events of a partition moves its position, and may skip some.
        self.store.set_words(rows, POSITION, position)
        self._set("skipped", skipped)

    def letters_in(self, sections: Mapping[str, Any]) -> Array:
        """The letters of events that what `dump` gave speaks of, in any order: under a window those of the stored events (int64)."""
        return np.frombuffer(sections["letters"], "<i8").astype(np.int64) if self.bounded else np.zeros(0, np.int64)

    def _restore_events(self, rows: Array, counts: Array, position: Array, sections: Mapping[str, Any]) -> None:
        positions, times = numbers(sections, "positions"), numbers(sections, "times")
        letters = numbers(sections, "letters", "<u8")
        owner = owners(counts, positions, times, letters)
        demand(
            ascending(positions, owner, strictly=True),
            ascending(times, owner),
            inside(positions, 0, position[owner]),
            letters >> np.uint64(self.program.bits) == 0,
        )
        self._set("replay", 1)
        self.table.entries = 1 << 62  # no state is given up for a bound of the table
        given = list(self._run(Events(letters, times, np.cumsum(counts) - counts), rows.astype(np.int32), positions))
        assert not given, "what is replayed has been counted before"
        self.table.entries = max(self.sizes.table, self.table.macro_count * self.table.codes)
        self._set("replay", 0)

    def _restore_rows(self, rows: Array, counts: Array, sections: Mapping[str, Any]) -> None:
        width, size = struct.unpack_from("<II", sections["macros"])
        demand(0 < size <= COUNT_LIMBS, counts == 1)
        macros = macro_states(sections["macros"][8:], width, states=self.program.states)
        found = numbers(sections, "counts", "<u8").reshape(len(rows), len(macros), size).view(np.int64)
        size = 1 + int(np.flatnonzero(found.any(axis=(0, 1))).max(initial=0))  # what the numbers need
        found = found[:, :, :size]
        columns = self.table.adopt(macros)
        demand(len(set(columns.tolist())) == len(macros))
        self._shape_up(max(size, self.shape.size))
        self._outputs(len(self._out_segments))
        store = self.store
        row: Array = np.zeros((len(rows), self.shape.width, self.shape.size), np.int64)
        row[:, columns, :size] = found
        store.words[store.matrices(rows)[:, 0]] = row
        alive = found.any(axis=2)
        bits = np.where(alive, np.int64(1) << np.minimum(columns, HIGH).astype(np.int64), 0)
        store.set_words(rows, LIVE, np.bitwise_or.reduce(bits, axis=1) | 1)
        store.set_words(rows, PLAIN, 0)
        owner, column = np.nonzero(alive & (columns >= HIGH))
        store.words[store.offsets[rows[owner]] + WORDS + columns[column]] = 1
        self._set("too_wide", store.exceed(self._most))

    # ------------------------------------------------------------------------------------------------ the kernel's arrays

    def _work(self) -> None:
        """What the kernel needs beside the blocks, and the headroom of its numbers: one step adds up at most width * fanout of them."""
        shape = self.shape
        self._scratch: Array = np.zeros(shape.width * (shape.row + 1) + shape.size, np.uint64)
        self._most = (1 << 64 - (shape.width * self._fanout).bit_length()) - 1

    def _arrays(self) -> tuple[Array, ...]:
        table, store, shape = self.table, self.store, self.shape
        values = {"codes": table.codes, "macros": len(table.macros), "width": shape.width, "rows": shape.rows, "size": shape.size}
        for name, value in {**values, "most": self._most}.items():
            self._set(name, value)
        return (
            self._vector,
            *self._batch,
            table.lut,
            table.marked_of,
            table.unmarked_of,
            table.known,
            table.stirs,
            table.moves,
            store.offsets,
            store.words,
            store.words.view(np.uint64),
            self._scratch,
            self._out_positions,
            self._out_segments,
            self._out_counts,
            self.marked,
        )

    # ------------------------------------------------------------------------------------------------ output

    def _outputs(self, triggers: int) -> None:
        triggers = max(1, min(triggers, CHUNK_LIMBS // (2 * self.shape.size)))
        self._out_positions: Array = np.empty(triggers, np.int64)
        self._out_segments: Array = np.empty(triggers, np.int32)
        self._out_counts: Array = np.empty(triggers * 2 * self.shape.size, np.uint64)

    def _taken(self) -> list[Chunk]:
        """The buffered counts, if there are any, as one chunk without limbs that are 0 in all of them; a buffer that was full becomes larger."""
        count = self._get("buffered")
        self._set("buffered", 0)
        if not count:
            return []
        limbs = 2 * self.shape.size
        counts = self._out_counts[: count * limbs].reshape(count, limbs)
        used = max(2, 1 + int(np.flatnonzero(counts.any(axis=0))[-1]))
        positions, segments = self._out_positions[:count].copy(), self._out_segments[:count].copy()
        labels: Array = np.zeros(count, np.uint16)
        chunk = Chunk(np.arange(count + 1, dtype=np.int64), positions, labels, segments, counts[:, :used].copy())
        if count == len(self._out_segments):
            self._outputs(min(2 * count, self.sizes.most_chunk))
        return [chunk]

    # ------------------------------------------------------------------------------------------------ transitions

    def _mend_letter(self) -> list[Chunk]:
        index = int(self._batch[0][self._get("row")]) & self.table.letter_mask
        return [] if self.table.learn(index) else self._make_room()

    def _mend_transition(self) -> list[Chunk]:
        if not self.table.fill(self._get("argument"), self._live()):
            return self._make_room()
        if len(self.table.macros) > self._collect_at and self._collected != self._get("row") and not self._get("replay"):
            return self._collect()
        self._shape_up(self.shape.size)
        return []

    def _live(self) -> list[int]:
        """The macro states that are alive in the partition being read."""
        offset = int(self.store.offsets[self._get("record")])
        bits = int(self.store.words[offset + LIVE])
        live = [macro for macro in range(HIGH) if bits >> macro & 1]
        if bits >> HIGH:
            alive = offset + WORDS
            live += (HIGH + np.flatnonzero(self.store.words[alive + HIGH : alive + self.shape.width])).tolist()
        return live

    def _make_room(self) -> list[Chunk]:
        """The table is full: forget what is not alive; where that has just been done, the bound gives way."""
        if self._collected != self._get("row"):
            return self._collect()
        self.table.entries *= 2
        return []

    def _collect(self) -> list[Chunk]:
        """Forget all transitions, and the macro states that are no longer alive: start again from what a snapshot would hold. What was buffered."""
        found = self._taken()
        saved = ("row", "segment", "segment_end", "record", "continued", "triggers", "skipped", "epoch")
        values = {name: self._get(name) for name in saved}
        letters, batch, marked, sections = self._letters, self._batch, self.marked, self.dump()
        slots = self.slots
        self._start(self.shape.size)
        self._outputs(self.sizes.chunk)
        self.ensure_slots(slots)
        self._restore(sections, None)
        self._letters, self._batch, self.marked = letters, (self.table.begin(letters), *batch[1:]), marked
        self.store.open(np.maximum(batch[3], 0))
        for name, value in values.items():
            self._set(name, value)
        self._collected = values["row"]
        self._collect_at = min(max(self.sizes.collect, 2 * len(self.table.macros)), COUNT_STATES)
        return found

    # ------------------------------------------------------------------------------------------------ widths

    def _mend_room(self) -> None:
        self.store.grow(self._get("record"))

    def _mend_wide(self) -> list[Chunk]:
        """Some number could overflow in the next step: all of them become twice as wide."""
        found = self._taken()
        self._shape_up(wider(self.shape.size))
        self._outputs(len(self._out_segments))
        return found

    def _shape_up(self, size: int) -> None:
        """Room for the macro states and labels that the table has, and numbers of so many limbs."""
        width = self.shape.width
        if len(self.table.macros) > width:
            width = power_of_two(len(self.table.macros))
        if width > COUNT_STATES:
            raise LimitError(
                f"counting needs {len(self.table.macros)} macro states, and the limit is {COUNT_STATES} (COUNT_STATES)",
                help="make the pattern more deterministic: shorter counted repetitions, fewer overlapping alternatives, a smaller window",
            )
        fanout = power_of_two(self.table.fanout + 1)
        shape = CountShape(width, width if self.bounded else 1, size)
        if shape == self.shape and fanout == self._fanout:
            return
        if shape != self.shape:
            self.store.reshape(shape)
        self._fanout = fanout
        self._work()
        self._set("too_wide", self.store.exceed(self._most))


class CountMethod(AutomatonMethod):
    """The sliding product: COUNT(*), but for a strategy that a window or consumption bounds."""

    name = "count"
    evaluation = Counting
    counts = True

    def guarantee(self, terms: Terms) -> Guarantee:
        """As in `cepheid.kernel.counting`."""
        return Guarantee(
            evaluation="sliding product of transition counts over the automaton, determinized lazily; exact; nothing is enumerated",
            update="O(m^2) additions per event, amortized; numbers are as long as the counts need",
            state=terms.state("marked events x m"),
            delay="O(m^2) per trigger, whatever the number of matches",
        )
