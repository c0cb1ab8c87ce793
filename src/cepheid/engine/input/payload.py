"""The marked events that a match may still show.

Comes in: rows of batches, or single events as Python has them, with their slots and positions. Goes out: rows for (slot, position). All columnar, but
for the last single events, of which some at a time become columns.
"""

from __future__ import annotations

import bisect
import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from cepheid.engine.letters.values import no_events, plain
from cepheid.engine.memory.pools import Array, power_of_two, ragged
from cepheid.engine.output.gather import Picked
from cepheid.errors import SnapshotError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LOW = (1 << 32) - 1
"""The bits of a position by which it is looked for."""

MANY_TABLES = 64
"""Tables after which those that are short beside their successors are put together."""

MANY_SINGLE = 64
"""Single events after which they become columns."""

VALUE_BYTES = 64
"""What a value of a single event is counted at, until it is in a column."""

FEW_ROWS = 16
"""Events up to which each is looked up, and shown, by itself."""

FEW_PIECES = 1 << 10
"""Rows up to which pieces of a table are put together before some rows are taken from them."""

FEW_PLACES = 1 << 10
"""Places that a table of positions may have beyond the number of those that are looked for."""

MANY_UNSORTED = 64
"""Kept events after which they are sorted where few positions are looked for."""

MANY_KEPT = 8
"""Kept events per position that is looked for, up to which they are sorted in one piece, and shown as one table."""

LEAST_ROOM = 16
"""Events that there is room for at the beginning."""

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
    """The marked events: their columns, and four numbers of each, in the order of arrival.

    schema: of the columns. slots. positions: in the partition. places: in the whole stream; with derived keys, as they are shown: in the partition of
    those that are written. times. To append is amortized O(new events).
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._tables: list[pa.Table] = []
        self._single: list[tuple[Any, ...]] = []  # events behind those of the tables
        # What is inside a list or struct is its owner's, who may change it.
        self._most_single = 0 if any(map(pa.types.is_nested, schema.types)) else MANY_SINGLE
        self._events: pa.Table | None = None  # all of them, where they have been asked for
        self._numbers: Array = np.zeros((4, LEAST_ROOM), np.int64)
        self._count = 0
        self._sorted_count = 0  # events in `_sorted`
        self._sorted: list[_Sorted] = []  # each of the events behind those of the one before, and more than twice as long as the next
        self._after_compaction = LEAST_COMPACTION

    def __len__(self) -> int:
        """How many events are kept."""
        return self._count

    @property
    def slots(self) -> Array:
        """int64."""
        return self._numbers[0, : self._count]

    @property
    def positions(self) -> Array:
        """int64, in the partition."""
        return self._numbers[1, : self._count]

    @property
    def places(self) -> Array:
        """int64, as they are shown."""
        return self._numbers[2, : self._count]

    @property
    def times(self) -> Array:
        """int64."""
        return self._numbers[3, : self._count]

    @property
    def events(self) -> pa.Table:
        """The columns."""
        if self._events is None:
            self._make_columns()
            self._events = pa.concat_tables(self._tables) if self._tables else no_events(self.schema)
        return self._events

    def shown(self, rows: Array) -> tuple[pa.Table | Picked, Array]:
        """The events of some rows, and where in them each of the rows is: these alone, or all that are kept where they are not much more.

        PERF: what is taken from all of them costs as much as all of them, for their pieces are put together first.
        """
        if not self.schema.names or (len(rows) > FEW_ROWS and MANY_KEPT * len(rows) >= self._count):
            return self.events, rows
        if len(rows) > FEW_ROWS:
            self._make_columns()
            chosen, places = np.unique(rows, return_inverse=True)
            return picked(self._tables, chosen), places
        found = rows.tolist()
        distinct = sorted(set(found))
        place = {row: number for number, row in enumerate(distinct)}
        number, start = len(self._tables), self._count - len(self._single)
        single = [self._single[row - start] for row in distinct if row >= start]
        pieces: list[tuple[pa.Table, int]] = []
        for row in distinct[len(distinct) - len(single) - 1 :: -1] if len(single) < len(distinct) else ():
            while row < start:
                number -= 1
                start -= len(self._tables[number])
            pieces.append((self._tables[number], row - start))
        return Picked(self.schema, pieces[::-1], single), np.array([place[row] for row in found], np.int64)

    def append(self, events: pa.Table | tuple[Any, ...], slots: Array, positions: Array, places: Array, times: Array) -> None:
        """Keep some more events; events: their columns, or the values of a single one."""
        stop = self._count + len(slots)
        if not len(slots):
            return
        self._events = None
        if isinstance(events, tuple):
            self._single.append(events)
            if len(self._single) > self._most_single:
                self._make_columns()
        else:
            self._make_columns()
            self._add(events)
        if stop > self._numbers.shape[1]:
            numbers: Array = np.zeros((4, power_of_two(stop)), np.int64)
            numbers[:, : self._count] = self._numbers[:, : self._count]
            self._numbers = numbers
        for line, values in zip(self._numbers, (slots, positions, places, times), strict=True):
            line[self._count : stop] = values
        self._count = stop

    def _make_columns(self) -> None:
        """Put the single events into columns."""
        if self._single:
            columns = [pa.array(values, field.type) for values, field in zip(zip(*self._single, strict=True), self.schema, strict=True)]
            self._single = []
            self._add(pa.Table.from_arrays(columns, schema=self.schema))

    def _add(self, events: pa.Table) -> None:
        self._tables.append(events)
        if len(self._tables) > MANY_TABLES:
            self._tables = merged(self._tables)

    def find(self, slots: Array, lengths: Array, positions: Array) -> Array:
        """The rows (int64) of events that are kept, for the positions of matches, each in one slot and with so many positions.

        O(positions x log(events kept)^2), or where there are many O(events kept + positions); new events are sorted in amortized O(log events kept)
        each. Raises SnapshotError where they are not kept, as in a state that somebody has changed; but what is found then may be another event.
        """
        try:
            return self._found(slots, lengths, positions)
        except IndexError:
            raise SnapshotError(
                "the snapshot that this state comes from is damaged: it lacks events of its matches",
                help="use another snapshot, or start again without it",
            ) from None

    def has(self, slots: Array, positions: Array) -> Array:
        """Whether events in some slots at some positions are kept (bool); new events are sorted, as for `find`."""
        self._sort(together=False)
        wanted = _joined(slots, positions)
        found: Array = np.zeros(len(wanted), np.bool_)
        for keys, _ in self._sorted:
            found |= keys[np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)] == wanted
        return found

    def _found(self, slots: Array, lengths: Array, positions: Array) -> Array:
        if len(positions) <= FEW_ROWS:
            owners = itertools.chain.from_iterable(map(itertools.repeat, slots.tolist(), lengths.tolist()))
            wanted = [slot << 32 | position & LOW for slot, position in zip(owners, positions.tolist(), strict=True)]
            return np.array(self._looked_up(wanted), np.int64)
        self._sort(together=MANY_KEPT * len(positions) >= self._count)
        if len(self._sorted) > 1:
            return self._searched(_joined(np.repeat(slots, lengths), positions))
        keys, order = self._sorted[0] if self._sorted else (np.zeros(0, np.int64), np.zeros(0, np.int64))
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

    def _sort(self, *, together: bool) -> None:
        """Sort what has come since; together: in one piece with all others."""
        parts = self._sorted
        if self._sorted_count < self._count:
            keys = self._keys_since
            order = np.argsort(keys, kind="stable")
            parts.append(_Sorted(keys[order], order + self._sorted_count))
            self._sorted_count = self._count
        while len(parts) > 1 and (together or len(parts[-2].rows) <= 2 * len(parts[-1].rows)):
            last, before = parts.pop(), parts.pop()
            keys = np.concatenate([before.keys, last.keys])
            order = np.argsort(keys, kind="stable")
            parts.append(_Sorted(keys[order], np.concatenate([before.rows, last.rows])[order]))

    @property
    def _keys_since(self) -> Array:
        """`_joined` of the events that have come since the last were sorted."""
        return _joined(self.slots[self._sorted_count :], self.positions[self._sorted_count :])

    def _looked_up(self, wanted: list[int]) -> list[int]:
        """As `_searched`, of few keys. PERF: the newest events, which most matches of a stream show, need not be sorted."""
        if self._count - self._sorted_count > MANY_UNSORTED:
            self._sort(together=False)
        found = dict(zip(self._keys_since.tolist(), range(self._sorted_count, self._count), strict=True))
        for key in wanted:
            for keys, rows in reversed(self._sorted) if key not in found else ():
                place = bisect.bisect_right(keys.data, key) - 1
                if place >= 0 and keys[place] == key:
                    found[key] = int(rows[place])
                    break
        try:
            return [found[key] for key in wanted]
        except KeyError:
            raise IndexError("an event is not kept") from None

    def _searched(self, wanted: Array) -> Array:
        """The rows of these keys, of sorted events; of two events with one key the later one is meant. Raises IndexError where one is not there."""
        found: Array = np.full(len(wanted), -1, np.int64)
        for keys, rows in reversed(self._sorted):
            place = np.maximum(np.searchsorted(keys, wanted, "right") - 1, 0)
            found = np.where((found < 0) & (keys[place] == wanted), rows[place], found)
        if (found < 0).any():
            raise IndexError("an event is not kept")
        return found

    def compact(
        self,
        seen: Array,
        *,
        window: int | None,
        count_window: int | None,
        now: int,
        consumed: Array | int | None = None,
        at_once: bool = False,
        pinned: tuple[Array, Array, Array] | None = None,
        held: Callable[[], tuple[Array, Array] | None] = lambda: None,
        begins: Callable[[Array], Array] | None = None,
    ) -> None:
        """Drop events that no later match can show, once more than half are such: amortized O(1) per event. at_once: each of them, O(n).

        seen: events of each slot so far, as positions count them. now: the least time that a later event can have. consumed: the place in the
        stream up to which events are used up, for each slot or for all; None: none ever are. pinned: what stays all the same, as `find` takes it.
        held: gives slot and position of all others that matter, None: the bounds say it. begins: gives for some rows those where their events begin,
        which stay with them.
        """
        if not at_once and self._count < 2 * self._after_compaction:
            return
        known = held()
        if window is None and count_window is None and consumed is None and known is None:
            return
        alive = np.ones(self._count, np.bool_)
        if window is not None:
            alive &= self.times >= now - window
        if count_window is not None:
            alive &= self.positions > seen[self.slots] - count_window
        if consumed is not None:
            alive &= self.places > (consumed if isinstance(consumed, int) else consumed[self.slots])
        if known is not None:
            alive &= np.isin(_joined(self.slots, self.positions), _joined(*known))
        if pinned is not None:
            alive[self.find(*pinned)] = True
        if begins is not None:
            alive[begins(np.flatnonzero(alive))] = True
        count = int(np.count_nonzero(alive))
        if 2 * count < len(alive) or (at_once and count < len(alive)):
            self.keep(alive)
        self._after_compaction = max(LEAST_COMPACTION, count)

    def keep(self, alive: Array) -> None:
        """Drop all others."""
        rows = np.flatnonzero(alive)
        self._tables, self._events = [self.events.take(pa.array(rows)).combine_chunks()], None
        self._sorted_count = 0
        numbers: Array = np.zeros((4, max(LEAST_ROOM, power_of_two(len(rows)))), np.int64)
        numbers[:, : len(rows)] = self._numbers[:, rows]
        self._numbers, self._count, self._sorted = numbers, len(rows), []

    @property
    def nbytes(self) -> int:
        """Bytes of all that is kept."""
        single = VALUE_BYTES * len(self._single) * len(self.schema)
        tables = sum(int(table.nbytes) for table in self._tables)
        return single + tables + int(self._numbers.nbytes) + sum(int(part.keys.nbytes + part.rows.nbytes) for part in self._sorted)


def merged(tables: list[pa.Table]) -> list[pa.Table]:
    """The same rows in fewer tables: each has more than twice as many as all behind it, or is the last. Amortized O(log rows) per row."""
    first = len(tables) - 1
    rows = len(tables[first])
    while first and len(tables[first - 1]) <= 2 * rows:
        first -= 1
        rows += len(tables[first])
    return [*tables[:first], pa.concat_tables(tables[first:]).combine_chunks()]


def picked(tables: Sequence[pa.Table], rows: Array) -> pa.Table:
    """Some rows of tables that follow each other (int64), in this order. O(rows), and what short tables have; not what long ones have."""
    pieces: list[list[pa.Table]] = []
    for table in tables:
        if pieces and max(len(table), len(pieces[-1][0])) <= FEW_PIECES:
            pieces[-1].append(table)
        else:
            pieces.append([table])
    starts = np.cumsum([0, *(sum(map(len, piece)) for piece in pieces[:-1])])
    owner = np.searchsorted(starts, rows, "right") - 1
    used = np.unique(owner).tolist() or [0]
    found = [pa.concat_tables(pieces[piece]).take(pa.array(rows[owner == piece] - starts[piece])) for piece in used]
    return found[0] if len(found) == 1 else pa.concat_tables(found).take(pa.array(np.argsort(np.argsort(owner, kind="stable"))))


class _Sorted(NamedTuple):
    """Some kept events by slot and position: `_joined` of each, ascending, and their rows."""

    keys: Array
    rows: Array


def _joined(slots: Array, positions: Array) -> Array:
    """One number for slot and position: kept events of one partition lie less than 2**32 positions apart."""
    joined: Array = slots.astype(np.int64, copy=False) << 32 | (positions & LOW)
    return joined
