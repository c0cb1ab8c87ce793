"""One run of a program over letters: the state of all its partitions, and the driver of the match kernel.

The kernel (`cepheid.kernel.match`) is one loop over flat arrays that returns whenever something rare has to be done. This module does it
(one method per exit code), calls again, and hands the matches over in chunks of plain numpy arrays that Arrow wraps without a copy.

When to use this: all matches, ANY, LIMIT, STRICT, and the strategies without a window, of patterns that compare no events. It is the fastest of
those that list: the kernel of guards (`guarded_run`), which answers the same without registers, takes 1.3 to 1.9 times as long
(benchmarks/record/methods.json, as all figures in these heads).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cepheid.engine.evaluations.base import ALL, BufferedRun, Chunk, is_wasteful
from cepheid.engine.evaluations.graph import match_state
from cepheid.engine.evaluations.graph.match_graph import MatchGraph
from cepheid.engine.evaluations.method import AutomatonMethod, Guarantee
from cepheid.engine.evaluations.transitions import TABLE_ENTRIES, HasSuccessors, TransitionTable
from cepheid.engine.memory.pools import power_of_two
from cepheid.errors import LimitError
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Unpack

    from cepheid.engine.evaluations.base import Bounds, HasBytes
    from cepheid.engine.evaluations.events import Events
    from cepheid.engine.evaluations.method import Terms
    from cepheid.engine.memory.pools import Array
    from cepheid.engine.memory.stored import Stored

SPAN_LIMIT = 1 << 30
"""Greatest distance, in events of a partition, between an event and the start of a match that is still open."""

CELL_LIMIT = 1 << 28
"""Greatest number of cells (18 bytes each) of one partition's match graph."""

LIST_LIMIT = 1 << 29
"""Greatest number of places (4 bytes each) for the lists of the macro states that live at one time in one partition."""

CHUNK_MATCHES = 1 << 18
"""Most matches per chunk. PERF: positions then take over 4 MB, from where on numpy asks for huge pages; 0.15 s instead of 0.6 s for 1 GB."""

CHUNK_POSITIONS = 1 << 22
"""Positions that a chunk of matches has at most, but for one match that has more by itself."""

COUNT_MATCHES = 4
"""The kernel's `enumerating` where it counts the matches of a trigger first."""

FIRST_CHUNK = 1 << 10  # matches; the buffers grow to CHUNK_MATCHES in an evaluation that needs it


@record
class Sizes:
    """First sizes of the growing arrays (powers of two); tests make them tiny."""

    cells: int = 16
    starts: int = 4
    packed: int = 16
    lists: int = 16
    entries: int = 16
    stack: int = 256
    path: int = 64
    chunk: int = FIRST_CHUNK
    most_chunk: int = CHUNK_MATCHES
    chunk_positions: int = 8 * FIRST_CHUNK
    table: int = TABLE_ENTRIES


class Evaluation(BufferedRun):
    """The run state of one program over any number of partitions.

    sample: of an ending event with more matches only so many, spread evenly over them. Update O(live macro states) per event, output-linear
    delay (foundations-cel, section 6), with a sample O(window) per trigger; memory is bounded by the marked events of the window, without a
    window by all marked events. A chunk has at most CHUNK_MATCHES matches and CHUNK_POSITIONS marks, or one longer match. Reading raises
    LimitError past SPAN_LIMIT, CELL_LIMIT or LIST_LIMIT.
    """

    kind: ClassVar[type[np.generic]] = np.uint16
    counters: ClassVar[tuple[str, ...]] = ("events", "triggers", "matches", "skipped", "unions")

    def __init__(
        self,
        program: HasSuccessors,
        *,
        sample: int | None = None,
        sizes: Sizes | None = None,
        **bounds: Unpack[Bounds],
    ) -> None:
        sizes = sizes or Sizes()
        room = {"lists": sizes.chunk, "marks": sizes.chunk_positions, "most_lists": sizes.most_chunk, "most_marks": CHUNK_POSITIONS}
        super().__init__("match", bounds, **room)
        self.program = program
        self.table = TransitionTable(program, entries=sizes.table)
        self.store: MatchGraph = MatchGraph(self.kernel, self.table, bounds, cells=sizes.cells, starts=sizes.starts, packed=sizes.packed)
        self.sample = sample
        self._stack: Array = np.zeros(sizes.stack, np.int32)
        self._paths(sizes.path)
        self._list_arrays(sizes.lists, sizes.entries)
        self._list_of: Array = np.full(self.table.macro_count, -1, np.int32)
        self._weights: Array = np.zeros(1, np.float64)
        self._stamps: Array = np.zeros(0, np.int64)
        self._set_up()
        self.mends |= {
            "letter": "_mend_letter",
            "transition": "_mend_transition",
            "cells": "_mend_cells",
            "starts": "_mend_starts",
            "stack": "_mend_stack",
            "lists": "_mend_lists",
            "packed": "_mend_packed",
            "rebase": "_mend_rebase",
        }

    def _set_up(self) -> None:
        self._set("count_window", 0 if self.count_window is None else min(self.count_window, SPAN_LIMIT + 1))
        self._set("limit", ALL if self.limit is None else self.limit)
        self._set("sample", self.sample or 0)
        self._set("letter_mask", self.table.letter_mask)

    # ------------------------------------------------------------------------------------------------ what users of it see

    def _begin(self, events: Events) -> Array:
        self._set("record", -1)
        return self.table.begin(events.letters)

    @property
    def matches(self) -> int:
        """Matches given."""
        return self._get("matches")

    @property
    def unions(self) -> int:
        """Pure union cells made (name in paper: union nodes)."""
        return self._get("unions")

    def _idle(self, time: int) -> Array:
        return self.store.idle(self._get("epoch"), self._since(time))

    def dump(self) -> dict[str, Any]:
        """The live state of all partitions as named sections, see `match_state.dump`."""
        return {"counters": self._count(), **match_state.dump(self.store, self._get("epoch"))}

    def _restore(self, sections: Mapping[str, Any], stored: Stored | None) -> None:
        lists, length = match_state.load(self.store, sections, stored)
        self._fit_tables()
        self._grow_lists(max(power_of_two(lists), self._get("list_count")), max(power_of_two(length), self._get("list_length")))

    @property
    def wasteful(self) -> bool:
        """Whether the cells' memory is mostly unused: `dump` and `load` into a fresh evaluation gives it back."""
        return is_wasteful(self.store.cells.nbytes, self._needed)

    def _needed(self) -> int:
        cells = self.store.cells
        return cells.nbytes // cells.places * match_state.needed_cells(self.store, self._get("epoch"))

    def _parts(self) -> Iterable[Array | HasBytes]:
        work = (self._weights, self._stamps, self._stack, self._path, self._path_labels, self._list_of, *self._lists)
        return (self._vector, self.table, *work, *self._buffers)

    # ------------------------------------------------------------------------------------------------ the kernel's arrays

    def _paths(self, length: int) -> None:
        self._path: Array = np.zeros(length, np.int32)
        self._path_labels: Array = np.zeros(length, np.uint16)

    def _list_arrays(self, count: int, length: int) -> None:
        """Two halves (before, after an event) of `count` lists with `length` entries: macros, lengths, max starts, entries; tails, outputs."""
        halves: list[Array] = [np.zeros(2 * count, np.int32) for _ in range(3)]
        self._lists: tuple[Array, ...] = (
            *halves,
            np.zeros(2 * count * length, np.int32),
            np.zeros(count, np.int32),
            np.zeros(count, np.int32),
        )
        self._set("list_count", count)
        self._set("list_length", length)

    def _arrays(self) -> tuple[Array, ...]:
        table = self.table
        self._set("codes", table.codes)
        self._set("fanout", table.fanout)
        if self.sample is not None and len(self._stamps) != self.store.cells.places:
            self._weights, self._stamps = np.zeros(self.store.cells.places + 1, np.float64), np.zeros(self.store.cells.places, np.int64)
        return (
            self._vector,
            *self._batch,
            table.lut,
            table.marked_of,
            table.unmarked_of,
            table.known,
            table.stirs,
            table.moves,
            self.store.records.reshape(-1),
            *self.store.cells.arrays,
            *self.store.starts.arrays,
            *self.store.packed.arrays,
            self.store.pools.reshape(-1),
            *self._lists[:5],
            self._list_of,
            self._lists[5],
            self._stack,
            self._path,
            self._path_labels,
            *self._buffers,
            self.marked,
            self._weights,
            self._stamps,
        )

    # ------------------------------------------------------------------------------------------------ output

    def _taken(self) -> list[Chunk]:
        found = self._buffered()
        return [] if found is None else [Chunk(*found)]

    def trigger_matches(self) -> float | None:
        """How many matches the trigger has that is being enumerated, counted in the match graph: a double, inf past 1e308; None where there is none.

        Nothing can be read afterwards. O(cells of the window).
        """
        if not self._get("enumerating"):
            return None
        # The kernel counts before it chooses a sample; it goes on to enumerate, and returns with full buffers.
        self.sample = ALL
        self._set_up()
        for name, value in (("enumerating", COUNT_MATCHES), ("buffered_matches", 0), ("buffered_positions", 0)):
            self._set(name, value)
        self._stamps = np.zeros(0, np.int64)
        while self._call() == "stack":
            self._mend_stack()
        found = float(self._weights[-1])
        return found if self.limit is None else min(found, self.limit)

    # ------------------------------------------------------------------------------------------------ transitions

    def _live(self) -> Array:
        """The macro states of the partition being read."""
        start = self._get("parity") * self._get("list_count")
        return self._lists[0][start : start + self._get("lists")]

    def _mend_letter(self) -> None:
        index = int(self._batch[0][self._get("row")]) & self.table.letter_mask
        if not self.table.learn(index):
            self._renumber()

    def _mend_transition(self) -> None:
        if not self.table.fill(self._get("argument"), self._live().tolist()):
            self._renumber()
            return
        self._fit_tables()

    def _fit_tables(self) -> None:
        """Room for what the transition table has grown by."""
        if self.table.macro_count != len(self._list_of):
            self._list_of = np.full(self.table.macro_count, -1, np.int32)
        if self._get("list_count") < 2 * self.table.fanout + 1:
            self._grow_lists(power_of_two(4 * self.table.fanout), self._get("list_length"))

    def _renumber(self) -> None:
        """The table is full: keep the live macro states of all partitions, under new numbers."""
        live, places, packed = self._live(), self.store.packed_macros(), self.store.packed.arrays[0]
        renumbered = self.table.renumber(np.concatenate([live, packed[places]]))
        live[:] = renumbered[live]
        packed[places] = renumbered[packed[places]]
        self._fit_tables()
        bits = 1
        for q in live.tolist():
            bits |= 1 << min(q, 62)
        self._set("live", bits)

    # ------------------------------------------------------------------------------------------------ growth

    def _mend_cells(self) -> None:
        """The kernel wants a ring of this size, and the pool is full."""
        wanted = self._get("argument")
        if wanted > CELL_LIMIT:
            raise LimitError(
                f"the open matches of one partition need {wanted} cells, and the limit is {CELL_LIMIT}",
                help="bound them by a window: `WITHIN 1 hour` or `WITHIN 1000 EVENTS`",
            )
        self.store.cells.reserve(wanted)

    def _mend_starts(self) -> None:
        self.store.starts.reserve(self._get("argument"))

    def _mend_packed(self) -> None:
        self.store.packed.reserve(self._get("argument"))

    def _mend_stack(self) -> None:
        self._stack = np.concatenate([self._stack, np.zeros_like(self._stack)])
        path, labels = self._path, self._path_labels
        self._paths(2 * len(path))
        self._path[: len(path)], self._path_labels[: len(path)] = path, labels

    def _mend_lists(self) -> None:
        lists, fanout = self._get("lists"), self.table.fanout
        count = power_of_two(2 * (fanout + lists * (fanout + 1)))
        length = power_of_two(2 * (self._get("longest") + lists + 1))
        self._grow_lists(max(count, self._get("list_count")), max(length, self._get("list_length")))

    def _grow_lists(self, count: int, length: int) -> None:
        if 2 * count * length > LIST_LIMIT:
            raise LimitError(
                f"one partition has {self._get('lists')} macro states at one time, and their lists need {2 * count * length} places;"
                f" the limit is {LIST_LIMIT} (LIST_LIMIT)",
                help="make the pattern more deterministic: shorter counted repetitions, fewer overlapping alternatives, a smaller window",
            )
        old, old_count, old_length = self._lists, self._get("list_count"), self._get("list_length")
        self._list_arrays(count, length)
        for new, previous in zip(self._lists[:3], old[:3], strict=True):
            new.reshape(2, count)[:, :old_count] = previous.reshape(2, old_count)
        self._lists[3].reshape(2, count, length)[:, :old_count, :old_length] = old[3].reshape(2, old_count, old_length)

    # ------------------------------------------------------------------------------------------------ numbers that would overflow

    def _mend_rebase(self) -> None:
        """Make ids and relative positions of the partition being read small again."""
        low = self._least_open()
        position = self._get("shift") + self._get("row")
        if position - low > SPAN_LIMIT:
            raise LimitError(
                f"a match has been open for {position - low} events of its partition, and the limit is {SPAN_LIMIT}",
                help="bound matches by a window: `WITHIN 1 hour` or `WITHIN 1000 EVENTS`",
            )
        mask = self._get("cells_mask")
        drop = max(0, (self._get("head") - 1) & ~mask) if mask >= 0 else 0
        offset = self._get("cells_offset")
        cells = self.store.cells.arrays[0].reshape(-1, 4)
        place = offset + (np.arange(self._get("head"), self._get("next"), dtype=np.int64) & mask)
        moved = cells[place]
        moved[:, 0] += np.where(moved[:, 0] < 0, low, -low).astype(np.int32)
        moved[:, 1:3] = np.maximum(moved[:, 1:3] - drop, 0)
        moved[:, 3] -= low
        cells[place] = moved
        self._rebase_lists(low, drop)
        for name, less in (("head", drop), ("next", drop), ("shift", low), ("base", -low)):
            self._set(name, self._get(name) - less)

    def _rebase_lists(self, low: int, drop: int) -> None:
        start, count = self._get("parity") * self._get("list_count"), self._get("lists")
        self._lists[2][start : start + count] -= low
        entries = self._lists[3].reshape(-1, self._get("list_length"))[start : start + count]
        entries[:] = np.maximum(entries - drop, 0)
        ids = np.arange(self._get("starts_head"), self._get("starts_tail"), dtype=np.int64)
        self.store.starts.arrays[0][self._get("starts_offset") + (ids & self._get("starts_mask"))] -= low

    def _least_open(self) -> int:
        """Least relative position that an open match starts at; frees what is older and drops expired starts."""
        position = low = self._get("shift") + self._get("row")
        if self.window is not None:
            mask, offset = self._get("starts_mask"), self._get("starts_offset")
            places = offset + (np.arange(self._get("starts_head"), self._get("starts_tail"), dtype=np.int64) & mask)
            now = int(self._batch[1][self._get("row")])
            inside = self.store.starts.arrays[1][places] >= now - self.window
            if self.count_window is not None:
                inside &= self.store.starts.arrays[0][places] > position - self.count_window
            expired = int(np.count_nonzero(~inside))
            self._set("starts_head", self._get("starts_head") + expired)
            if expired < len(places):
                low = int(self.store.starts.arrays[0][places[expired]])
        elif self.count_window is not None:
            low = max(0, position - self.count_window + 1)
        mask, head, following = self._get("cells_mask"), self._get("head"), self._get("next")
        place = self._get("cells_offset") + (np.arange(head, following, dtype=np.int64) & mask)
        made = self.store.cells.arrays[0].reshape(-1, 4)[place, 0]
        made = np.where(made < 0, ~made, made)
        if self.window is None and self.count_window is None:
            return int(made[0]) if len(made) else position
        self._set("head", head + int(np.count_nonzero(made < low)))
        return low


class MatchGraphMethod(AutomatonMethod):
    """The match graph: every task that gives matches, but for a strategy that a window or consumption bounds."""

    name = "match graph"
    evaluation = Evaluation
    samples = True

    def guarantee(self, terms: Terms) -> Guarantee:
        """Theorem 1 of foundations-cel."""
        return Guarantee(
            evaluation="match graph over the automaton, determinized lazily; one pass",
            update="O(m) per event, m = live macro states of the event's partition",
            state=terms.state("marked events"),
            delay="output-linear: the time per match depends on its length alone",
        )
