"""The marked events that a match may still show.

Comes in: rows of batches, with their slots and positions. Goes out: rows for (slot, position). All columnar.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.engine.pools import ragged
from cepheid.engine.values import plain
from cepheid.errors import SnapshotError

Array = np.ndarray[Any, Any]

MANY_CHUNKS = 64
"""Chunks after which a growing table is put together."""

FEW_PLACES = 1 << 10
"""Places that a table of positions may have beyond the number of those that are looked for."""

LEAST_COMPACTION = 4096
"""Events that a payload holds before it looks for dead ones."""


def decoded(table: pa.Table) -> pa.Table:
    """The table without dictionaries: chunks of several batches then go together."""
    columns = [
        pa.chunked_array([plain(chunk) for chunk in column.chunks], column.type.value_type)
        if pa.types.is_dictionary(column.type)
        else column
        for column in table.columns
    ]
    return pa.table(columns, names=table.column_names)


class Payload:
    """The marked events: their columns, slots and positions, in the order of arrival.

    events: the rows. slots: int32. positions: int64, in the partition. places: int64, in the whole stream; with derived keys, as they are shown: in
    the partition of those that are written. times: int64.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.events = schema.empty_table()
        self.slots: Array = np.zeros(0, np.int32)
        self.positions: Array = np.zeros(0, np.int64)
        self.places: Array = np.zeros(0, np.int64)
        self.times: Array = np.zeros(0, np.int64)
        self._index: tuple[Array, Array] | None = None
        self._after_compaction = LEAST_COMPACTION

    def append(self, events: pa.Table, slots: Array, positions: Array, places: Array, times: Array) -> None:
        """Keep some more events."""
        if not len(slots):
            return
        self.events = pa.concat_tables([self.events, events])
        if self.events.num_columns and self.events[0].num_chunks > MANY_CHUNKS:
            self.events = self.events.combine_chunks()
        self.slots = np.concatenate([self.slots, slots])
        self.positions = np.concatenate([self.positions, positions])
        self.places = np.concatenate([self.places, places])
        self.times = np.concatenate([self.times, times])
        self._index = None

    def find(self, slots: Array, lengths: Array, positions: Array) -> Array:
        """The rows (int64) of events that are kept, for the positions of matches, each in one slot and with so many positions.

        O(events kept + positions); where positions lie far apart, with a logarithm. Raises SnapshotError where they are not kept, as in a state
        that somebody has changed; but what is found then may be another event.
        """
        try:
            return self._found(slots, lengths, positions)
        except IndexError:
            raise SnapshotError(
                "the snapshot that this state comes from is damaged: it lacks events of its matches",
                help="use another snapshot, or start again without it",
            ) from None

    def _found(self, slots: Array, lengths: Array, positions: Array) -> Array:
        if self._index is None:
            keys = _joined(self.slots, self.positions)
            order = np.argsort(keys, kind="stable")
            self._index = keys[order], order
        keys, order = self._index
        used, which = np.unique(slots.astype(np.int64), return_inverse=True)
        first, stop = np.searchsorted(keys, used << 32), np.searchsorted(keys, used + 1 << 32)
        base = self.positions[order[first]]
        spans = self.positions[order[stop - 1]] - base + 1
        if (spans < stop - first).any() or int(spans.sum()) > len(positions) + FEW_PLACES:
            # Of two events 2**32 positions apart the later one is meant: the other is dead.
            found: Array = order[np.searchsorted(keys, _joined(np.repeat(slots, lengths), positions), "right") - 1]
            return found
        # PERF: one trigger can have millions of matches over few events; a table takes a twentieth of the time of a search.
        shifts = np.cumsum(spans) - spans - base
        owner, place = ragged(first, stop - first)
        kept = order[place]
        table: Array = np.zeros(int(spans.sum()), np.int64)
        table[self.positions[kept] + shifts[owner]] = kept
        rows: Array = table[positions + (shifts[0] if len(used) == 1 else np.repeat(shifts[which], lengths))]
        return rows

    def compact(
        self,
        seen: Array,
        *,
        window: int | None,
        count_window: int | None,
        now: int,
        consumed: Array | int | None = None,
        at_once: bool = False,
    ) -> None:
        """Drop events that no later match can show, once more than half are such: amortized O(1) per event. at_once: each of them, O(n).

        seen: events of each slot so far, as positions count them. now: the least time that a later event can have. consumed: the place in the
        stream up to which events are used up, for each slot or for all; None: none ever are.
        """
        if (not at_once and len(self.slots) < 2 * self._after_compaction) or (window is None and count_window is None and consumed is None):
            return
        alive = np.ones(len(self.slots), np.bool_)
        if window is not None:
            alive &= self.times >= now - window
        if count_window is not None:
            alive &= self.positions > seen[self.slots] - count_window
        if consumed is not None:
            alive &= self.places > (consumed if isinstance(consumed, int) else consumed[self.slots])
        count = int(np.count_nonzero(alive))
        if 2 * count < len(alive) or (at_once and count < len(alive)):
            self.keep(alive)
        self._after_compaction = max(LEAST_COMPACTION, count)

    def keep(self, alive: Array) -> None:
        """Drop all others."""
        rows = np.flatnonzero(alive)
        self.events = self.events.take(pa.array(rows)).combine_chunks()
        self.slots, self.positions = self.slots[rows], self.positions[rows]
        self.places, self.times = self.places[rows], self.times[rows]
        self._index = None

    @property
    def nbytes(self) -> int:
        """Bytes of all that is kept."""
        own = (self.slots, self.positions, self.places, self.times)
        return int(self.events.nbytes) + sum(int(array.nbytes) for array in own)


def _joined(slots: Array, positions: Array) -> Array:
    """One number for slot and position: kept events of one partition lie less than 2**32 positions apart."""
    return slots.astype(np.int64) << 32 | (positions & 0xFFFFFFFF)
