"""The partitions of a stream: which rows of a batch belong to which partition, and the slot in which each partition keeps its state.

Comes in: batches of events. Goes out: their rows by partition, and slots that every evaluation over the same keys can share. Columnar; the one
Python object per key is its entry in a dict.
"""

from __future__ import annotations

import bisect
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.engine.input.keys import group, key_codes, key_table
from cepheid.engine.input.payload import MANY_TABLES, decoded, merged, picked
from cepheid.engine.letters.values import no_events
from cepheid.engine.memory.pools import NUMBER_LIMIT
from cepheid.engine.memory.stored import Stored
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cepheid.engine.input.keys import Groups
    from cepheid.engine.memory.pools import Array

DEAD_KEYS = 4096
"""Forgotten keys that stay in the table before it is made anew."""


@record
class Arrived:
    """The rows of a batch by partition.

    order: the rows, those of one partition together and in the order of the batch (None: as they are). cuts: int64, where the rows of each segment
    start in `order`. slots: int32 per segment. before: int64 per segment; the row at place i of `order`, in segment s, is at position
    i + before[s] of its partition. rows: of the whole batch.
    """

    order: Array | None
    cuts: Array
    slots: Array
    before: Array
    rows: int

    @classmethod
    def of(cls, groups: Groups, slots: Array, seen: Array, *, rows: int, interleaved: bool) -> Arrived:
        """The rows of a batch whose groups are the partitions in these slots; seen: per slot, events before the batch."""
        order, cuts = groups.order.astype(np.int64, copy=False), groups.cuts
        if not interleaved:
            return cls(order, cuts, slots, seen[slots] - cuts, rows)
        order, cuts, partitions = groups.interleaved()
        slots = slots[partitions]
        lengths = np.diff(cuts, append=len(order))
        return cls(order, cuts, slots, seen[slots] + events_before(slots, lengths) - cuts, rows)

    def rows_of(self, segments: Array, positions: Array) -> Array:
        """The rows of the batch at some positions, given the segments that they are in (int64)."""
        places = positions - self.before[segments]
        return places if self.order is None else self.order[places]

    @property
    def together(self) -> Arrived:
        """The same rows with one segment for each slot; itself where that is so. O(rows log rows)."""
        if len(np.unique(self.slots)) == len(self.slots):
            return self
        lengths = self.lengths
        slots, positions = np.repeat(self.slots, lengths), np.arange(int(lengths.sum())) + np.repeat(self.before, lengths)
        moved = np.argsort(slots, kind="stable")
        cuts = np.flatnonzero(np.diff(slots[moved], prepend=-1))
        order = moved if self.order is None else self.order[moved]
        return Arrived(order, cuts, slots[moved[cuts]], positions[moved[cuts]] - cuts, self.rows)

    @property
    def lengths(self) -> Array:
        """Rows of each segment."""
        return np.diff(self.cuts, append=self.rows if self.order is None else len(self.order))

    @property
    def positions(self) -> Array:
        """The position of each row of the batch in its partition (int64; -1: it has none)."""
        places: Array = np.arange(self.rows if self.order is None else len(self.order)) + np.repeat(self.before, self.lengths)
        if self.order is None:
            return places
        positions: Array = np.full(self.rows, -1, np.int64)
        positions[self.order] = places
        return positions


class Partitions:
    """Slots of keys, given in the order of first appearance; those of forgotten keys are given again.

    keys: the attributes that partition; without any there is one slot, 0. schema: has the keys. grouped: those in which NULL is a value; rows with a
    NULL in another one are left out, and counted in `null_keys`. seen: int64 per slot, events so far.
    """

    def __init__(self, keys: Sequence[str], schema: pa.Schema, *, grouped: Sequence[str] = ()) -> None:
        self.keys = tuple(keys)
        self.seen: Array = np.zeros(0 if keys else 1, np.int64)
        self.null_keys = 0
        self._grouped = tuple(grouped)
        self._slots: dict[tuple[Any, ...], int] = {}
        self._know([decoded(no_events(pa.schema([schema.field(name) for name in keys])))])
        self._row_of: Array = np.zeros(0, np.int64)  # row of each slot in `_known`; -1: it is free, or not given yet
        self._given = 0 if keys else 1
        self._free: list[int] = []

    def __len__(self) -> int:
        """Keys that have a slot; 1 without keys."""
        return len(self._slots) if self.keys else 1

    @property
    def slots(self) -> int:
        """Slots given so far, free ones among them."""
        return self._given

    def arrive(self, events: pa.Table, *, interleaved: bool = False) -> Arrived:
        """The rows of a batch by partition; counts them in `seen`.

        interleaved: segments in the order of the stream, as many per partition as it takes, instead of one. O(rows), and O(1) Python per key.
        """
        if not self.keys:
            return self.arrive_in(None, events.num_rows)
        codes, count = key_codes(events, self.keys, grouped=self._grouped)
        groups = group(codes, count)
        self.null_keys += groups.null_keys
        distinct = events.select(list(self.keys)).take(pa.array(groups.order[groups.cuts]))
        arrived = Arrived.of(groups, self._slots_of(distinct), self.seen, rows=events.num_rows, interleaved=interleaved)
        np.add.at(self.seen, arrived.slots, arrived.lengths)
        return arrived

    def slot_of(self, key: tuple[Any, ...]) -> int | None:
        """The slot of a key of whole numbers and texts, None where it has none yet."""
        return self._slots.get(key)

    def arrive_in(self, slots: Array | None, rows: int, *, interleaved: bool = False) -> Arrived:
        """The rows of a batch whose slots (int32) are known, None: without keys; counts them in `seen`. O(rows)."""
        if slots is None or len(slots) == 1:
            slots = np.zeros(1, np.int32) if slots is None else slots
            arrived = Arrived(None, np.zeros(1, np.int64), slots, self.seen[slots], rows)
            self.seen[slots[0]] += rows
            return arrived
        groups = group(slots, self.slots)
        arrived = Arrived.of(groups, slots[groups.order[groups.cuts]], self.seen, rows=rows, interleaved=interleaved)
        np.add.at(self.seen, arrived.slots, arrived.lengths)
        return arrived

    def table(self, slots: Array) -> pa.Table:
        """The keys in these slots, one row each."""
        rows = self._row_of[slots]
        if len(rows) == 1:  # PERF: half the time
            piece = bisect.bisect_right(self._starts, int(rows[0])) - 1
            one = self._known[piece].slice(int(rows[0]) - self._starts[piece], 1)
            # A copy, that does not keep all keys in memory.
            return pa.Table.from_arrays([pa.concat_arrays(column.chunks) for column in one.columns], schema=one.schema)
        return picked(self._known, rows)

    def forget(self, slots: Array) -> None:
        """Free these slots: their keys start again, at position 0, when they come again. For partitions with keys."""
        for row, slot in zip(_exact_rows(self.table(slots)), slots.tolist(), strict=True):
            del self._slots[row]
            self._free.append(slot)
        self.seen[slots], self._row_of[slots] = 0, -1
        if self._known_rows > 2 * len(self._slots) + DEAD_KEYS:
            live = self.live
            self._know([self.table(live).combine_chunks()])
            self._row_of[live] = np.arange(len(live))

    def retain(self, keys: pa.Table) -> None:
        """Forget all keys but these, each of which has a slot."""
        self.forget(np.setdiff1d(self.live, self._slots_of(keys.select(list(self.keys)))))

    @property
    def schema(self) -> pa.Schema:
        """Of the keys, as they are kept."""
        return self._known[0].schema

    @property
    def live(self) -> Array:
        """The slots in use (int64), ascending."""
        return np.flatnonzero(self._row_of >= 0) if self.keys else np.zeros(1, np.int64)

    def _slots_of(self, distinct: pa.Table) -> Array:
        """The slots (int32) of distinct keys, one per row; new keys get new slots."""
        distinct = decoded(key_table(distinct, self.keys))
        rows = _exact_rows(distinct)
        known = self._slots
        slots: Array = np.array([known.get(row, -1) for row in rows], np.int32)
        fresh = np.flatnonzero(slots < 0)
        if len(fresh):
            reused = [self._free.pop() for _ in range(min(len(fresh), len(self._free)))]
            slots[fresh] = [*reused, *range(self.slots, self.slots + len(fresh) - len(reused))]
            known.update(zip(map(rows.__getitem__, fresh.tolist()), slots[fresh].tolist(), strict=True))
            self._fit(int(slots.max()) + 1)
            self._row_of[slots[fresh]] = self._known_rows + np.arange(len(fresh))
            known_tables = [*self._known, distinct.take(pa.array(fresh))]
            self._know(merged(known_tables) if len(known_tables) > MANY_TABLES else known_tables)
        return slots

    def _know(self, tables: list[pa.Table]) -> None:
        """The keys are in these tables of one chunk each; amortized O(log keys) per new key, and O(1) per batch."""
        self._known = tables
        *self._starts, self._known_rows = itertools.accumulate(map(len, tables), initial=0)

    def _fit(self, count: int) -> None:
        """Room for so many slots; amortized O(1) per slot."""
        self._given = max(self._given, count)
        if count > len(self._row_of):
            self._row_of = np.append(self._row_of, np.full(max(count, 2 * len(self._row_of)) - len(self._row_of), -1, np.int64))
        if count > len(self.seen):
            self.seen = np.concatenate([self.seen, np.zeros(max(count, 2 * len(self.seen)) - len(self.seen), np.int64)])

    # ---------------------------------------------------------------------------------------------------------------- snapshots

    def dump(self) -> tuple[pa.Table, Array]:
        """The keys in use, and int64 (2, n): the slot of each, and its events so far."""
        slots = self.live
        return self.table(slots) if self.keys else self._known[0], np.stack([slots, self.seen[slots]])

    def load(self, table: pa.Table, numbers: Array) -> Stored:
        """Go on, fresh, from what `dump` gave, with slots without gaps; raises ValueError where that does not fit together."""
        named, seen = numbers
        known = self.schema
        right = len(table) == (len(named) if self.keys else 0) and (table.schema.names, table.schema.types) == (known.names, known.types)
        right = right and bool((numbers >= 0).all()) and bool((np.diff(named) > 0).all()) and (bool(self.keys) or named.tolist() == [0])
        if not right or sum(seen.tolist()) >= NUMBER_LIMIT:
            raise ValueError("the keys do not fit together")
        slots = np.arange(len(named))
        self.seen = seen.copy()
        if self.keys:
            self._know([pa.Table.from_arrays(table.columns, schema=known).combine_chunks()])
            self._row_of, self._given = slots.copy(), len(slots)
            self._slots = dict(zip(_exact_rows(self._known[0]), slots.tolist(), strict=True))
            if len(self._slots) != len(slots):
                raise ValueError("two keys of a snapshot are the same")
        return Stored(named, slots, self.seen)

    @property
    def stored(self) -> Stored:
        """The partitions as a snapshot of now would have them."""
        return Stored(self.live, self.live, self.seen[self.live])

    @property
    def nbytes(self) -> int:
        """Bytes of the keys, with the dict's entries counted at 150 each."""
        return int(sum(table.nbytes for table in self._known) + self.seen.nbytes + self._row_of.nbytes + 150 * len(self._slots))


def _exact_rows(keys: pa.Table) -> list[tuple[Any, ...]]:
    """Rows of keys as Python values that are equal where the keys are: times as steps, for datetime confuses the two hours of a clock change."""
    columns = [
        column.cast(pa.int64() if column.type.bit_width == 64 else pa.int32()) if pa.types.is_temporal(column.type) else column
        for column in keys.columns
    ]
    return list(zip(*map(_values, columns), strict=True))


def _values(column: pa.ChunkedArray) -> list[Any]:
    # PERF: Arrow makes a scalar for each of its values, numpy does not.
    integers = pa.types.is_integer(column.type) and not column.null_count
    values: list[Any] = column.to_numpy().tolist() if integers else column.to_pylist()
    return values


def events_before(slots: Array, lengths: Array) -> Array:
    """For each segment, given by its slot and its number of events, the events in earlier segments of its slot (int64); O(n log n)."""
    order = np.argsort(slots, kind="stable")
    before = np.cumsum(lengths[order]) - lengths[order]
    first = np.flatnonzero(np.diff(slots[order], prepend=-1))
    earlier = np.empty_like(before)
    earlier[order] = before - np.repeat(before[first], np.diff(first, append=len(slots)))
    return earlier
