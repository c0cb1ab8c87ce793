"""Lagged attributes: for `lag(x.a, n)` a column with the attribute a of the event n positions before each one in its partition.

Comes in: events, and where the events of each partition stand. Goes out: the same events with a column for each `Lag` of a query, NULL where there is
no such event. Predicates and guards read these columns as all others, so this is done before anything else reads the events. Whoever has all events
of a partition knows their rows (`rows_before`); a stream keeps the last events of each partition (`Lags`), and whoever reads one partition after the
other those of the open one (`SortedLags`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.engine.input.payload import Payload, decoded
from cepheid.engine.letters.values import no_events
from cepheid.engine.memory import container

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cepheid.engine.input.partitions import Arrived
    from cepheid.engine.memory.pools import Array
    from cepheid.engine.memory.stored import Stored
    from cepheid.logical.plan import Lag


def attributes_of(lags: Sequence[Lag]) -> tuple[str, ...]:
    """The attributes that are lagged, each once."""
    return tuple(dict.fromkeys(lag.attribute for lag in lags))


def depth_of(lags: Sequence[Lag]) -> int:
    """How many events back they look; 0 without any."""
    return max((lag.steps for lag in lags), default=0)


def with_lags(events: pa.Table, lags: Sequence[Lag], earlier: pa.Table, rows: Callable[[int], Array]) -> pa.Table:
    """The events with their lagged columns.

    earlier: has the lagged attributes. rows: given n, for each event the row in `earlier` of the event n positions before it (int64; -1: there is
    none). Linear.
    """
    known: dict[int, pa.Array] = {}
    for steps in dict.fromkeys(lag.steps for lag in lags):
        found = rows(steps)
        known[steps] = pa.array(found, mask=found < 0)
    # No query reads an attribute of such a name, but the events may have it.
    columns = dict(zip(events.column_names, events.columns, strict=True))
    return pa.table(columns | {lag.path[0]: earlier[lag.attribute].take(known[lag.steps]) for lag in lags})


def rows_before(steps: int, order: Array | None, cuts: Array, count: int) -> Array:
    """For each of so many rows that of the event some positions before it in its partition (int64; -1: there is none).

    order: the rows, those of one partition together and in the order of the stream (None: as they are; rows that it lacks are in no partition). cuts:
    where each partition starts in it. Linear.
    """
    places = np.arange(count if order is None else len(order))
    before = places - steps
    before[before < np.repeat(cuts, np.diff(cuts, append=len(places)))] = -1
    if order is None:
        return before
    found: Array = np.full(count, -1, np.int64)
    found[order] = np.where(before < 0, -1, order[before])
    return found


def lagged_table(events: pa.Table, lags: Sequence[Lag], order: Array | None, cuts: Array) -> pa.Table:
    """A whole table with its lagged columns; order, cuts: as for `rows_before`."""
    earlier = decoded(events.select(list(attributes_of(lags))))
    return with_lags(events, lags, earlier, lambda steps: rows_before(steps, order, cuts, events.num_rows))


class SortedLags:
    """The last events of the open partition, where events come partition by partition, in batches. schema: of the events."""

    def __init__(self, lags: Sequence[Lag], schema: pa.Schema) -> None:
        self._lags = tuple(lags)
        self._open = _nothing_of(lags, schema)

    def read(self, events: pa.Table, cuts: Array, *, continued: bool) -> pa.Table:
        """A batch with its lagged columns.

        cuts: where its partitions start. continued: whether the first one goes on from the batch before. Linear.
        """
        own = decoded(events.select(self._open.schema.names)).cast(self._open.schema)
        before = len(self._open) if continued else 0
        table = pa.concat_tables([self._open.slice(0, before), own])
        starts = np.concatenate([np.zeros(1, np.int64), cuts[1:] + before])
        read = with_lags(events, self._lags, table, lambda steps: rows_before(steps, None, starts, len(table))[before:])
        first = max(int(starts[-1]), len(table) - depth_of(self._lags))
        self._open = table.take(pa.array(np.arange(first, len(table))))
        return read


def _nothing_of(lags: Sequence[Lag], schema: pa.Schema) -> pa.Table:
    """No events, with the lagged attributes as they are kept."""
    return decoded(no_events(pa.schema([schema.field(name) for name in attributes_of(lags)])))


class Lags:
    """The last events of each partition of a stream, with the attributes that are lagged.

    lags: of one query, or of all those that share the partitions. schema: given, that of the events; then that of what is kept.
    Without lags it keeps nothing. It holds n events of each partition for ever, n = the most that a lag looks back.
    """

    def __init__(self, lags: Sequence[Lag], schema: pa.Schema) -> None:
        self.lags = tuple(lags)
        self.depth = depth_of(lags)
        self.schema = _nothing_of(lags, schema).schema
        self._kept = Payload(self.schema)

    def read(self, events: pa.Table, arrived: Arrived, seen: Array) -> pa.Table:
        """A batch with its lagged columns; keeps what later batches look back at.

        arrived: of the batch. seen: events of each slot so far, those of the batch among them. O(rows), and amortized O(log events kept) for each
        event that is kept.
        """
        if not self.lags:
            return events
        own = decoded(events.select(self.schema.names)).cast(self.schema)
        arrived = arrived.together
        order = np.arange(arrived.rows) if arrived.order is None else arrived.order
        lengths = arrived.lengths
        places = np.arange(len(order)) - np.repeat(arrived.cuts, lengths)
        positions = np.arange(len(order)) + np.repeat(arrived.before, lengths)
        slots = np.repeat(arrived.slots.astype(np.int64), lengths)
        # Only the first events of each partition look at events of earlier batches.
        outside = np.flatnonzero(places < self.depth)
        kept = self._kept
        found = {steps: outside[(places[outside] < steps) & (positions[outside] >= steps)] for steps in {lag.steps for lag in self.lags}}
        asked = np.concatenate([np.stack([slots[each], positions[each] - steps]) for steps, each in found.items()], axis=1)
        past = self._at(asked[0], asked[1])
        stops = dict(zip(found, np.cumsum([len(each) for each in found.values()]), strict=True))

        def before(steps: int) -> Array:
            wanted = rows_before(steps, arrived.order, arrived.cuts, arrived.rows)
            wanted[wanted >= 0] += len(past)
            each = found[steps]
            wanted[order[each]] = np.arange(stops[steps] - len(each), stops[steps])
            return wanted

        read = with_lags(events, self.lags, pa.concat_tables([past, own]), before)
        last = np.flatnonzero(places >= np.repeat(lengths - self.depth, lengths))
        nothing = np.zeros(len(last), np.int64)
        kept.append(own.take(pa.array(order[last])), slots[last], positions[last], nothing, nothing)
        self._compact(seen, at_once=False)
        return read

    def _at(self, slots: Array, positions: Array) -> pa.Table:
        """The kept events at some positions."""
        if not len(slots):
            return no_events(self.schema)
        table, rows = self._kept.shown(self._kept.find(slots, np.ones_like(slots), positions))
        return pa.table([table.column(name).take(pa.array(rows)) for name in self.schema.names], schema=self.schema)

    def _compact(self, seen: Array, *, at_once: bool) -> None:
        self._kept.compact(seen, window=None, count_window=self.depth + 1, now=0, at_once=at_once)

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept."""
        return self._kept.nbytes if self.lags else 0

    # ---------------------------------------------------------------------------------------------------------------- snapshots

    def dump(self, seen: Array) -> dict[str, Any]:
        """The kept events as sections, none without lags; seen: events of each slot so far."""
        if not self.lags:
            return {}
        self._compact(seen, at_once=True)
        kept = self._kept
        return {"lag_places": np.stack([kept.slots, kept.positions]).astype("<i8"), "lag_events": kept.events}

    def load(self, sections: Mapping[str, Any], stored: Stored) -> None:
        """Go on, fresh, from what `dump` gave, over partitions that are loaded; raises KeyError or ValueError where that does not fit."""
        if not self.lags:
            return
        named, positions = np.frombuffer(sections["lag_places"], "<i8").reshape(2, -1).astype(np.int64)
        events = container.table_of(sections["lag_events"])
        slots = stored.those(named, positions)
        counts = np.minimum(stored.seen, self.depth)
        if sum(counts.tolist()) != len(slots):
            raise ValueError("its lagged events are not the last ones")
        order = np.lexsort([positions, slots])
        owners = np.repeat(np.arange(len(counts)), counts)
        last = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - stored.seen, counts)
        right = np.array_equal(slots[order], stored.slots[owners]) and np.array_equal(positions[order], last)
        if not right or len(events) != len(slots) or not events.schema.equals(self.schema):
            raise ValueError("its lagged events do not fit together")
        events = pa.Table.from_arrays(events.columns, schema=self.schema)
        nothing = np.zeros(len(slots), np.int64)
        self._kept.append(events, slots, positions, nothing, nothing)
