"""Recognition as events come: push batches, get the matches that end in them.

Comes in: a `Compiled` query, then batches of events. Goes out: `Matches` per batch. The state is the kernel's (pooled over all partitions) and
the marked events that a match may still show; it never grows with the number of partial matches.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.engine import state
from cepheid.engine.inputs import check_order, table_of, time_number, times_of, without_views
from cepheid.engine.keys import group, key_codes
from cepheid.engine.matches import Matches
from cepheid.engine.measures import measured
from cepheid.engine.order import NEVER, ReorderBuffer
from cepheid.engine.payload import KeyIndex, Payload, decoded
from cepheid.engine.running import collect
from cepheid.errors import InputError, LimitError, SchemaError, SnapshotError, nearest, quoted
from cepheid.language.syntax import Consumption
from cepheid.logical.times import MAX_STEPS
from cepheid.schema import NANOSECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cepheid.engine.planner import Compiled
    from cepheid.engine.running import Chunk

Array = np.ndarray[Any, Any]

IDLE_CHECK = 64
"""Pushes between two looks for partitions whose memory can be given back."""


class Recognizer:
    """The run state of one query over one stream.

    lateness: how late an event may come, in steps of the time column or as a timedelta or a text such as "10s"; None: events must come in the
    order of their times. null_keys: "drop" (counted in `null_keys`) or "group". variant: of the kernel. Update and memory per event as
    `Query.explain` says; a partition that was met costs a few hundred bytes for ever (its positions go on).
    """

    def __init__(self, compiled: Compiled, *, lateness: object = None, null_keys: str = "drop", variant: str | None = None) -> None:
        self.compiled = compiled
        self.variant = variant
        self.schema = pa.schema(list(compiled.schema.attributes.items()))
        self._group_nulls = null_keys == "group"
        self._lateness = None if lateness is None else steps_of(lateness, compiled)
        self._start()

    def _start(self) -> None:
        compiled = self.compiled
        self._evaluation = compiled.evaluation(variant=self.variant)
        self._keys = KeyIndex(compiled.keys, compiled.layout.events) if compiled.keys else KeyIndex((), self.schema)
        self._payload = Payload(compiled.layout.events)
        self._order = None if self._lateness is None else ReorderBuffer(self.schema, self._lateness)
        self._intact = True
        self._latest = NEVER
        # Places in the stream up to which events are used up: of all of them, or for each slot. A snapshot has none of it, for the next trigger
        # says it again.
        self._consumed: Array | int | None = {Consumption.NONE: None, Consumption.ANY: -1}.get(compiled.consume, np.zeros(0, np.int64))
        self._events = 0
        self._pushes = 0
        self.null_keys = 0

    # ------------------------------------------------------------------------------------------------------------------- running

    def push(self, events: object) -> Matches:
        """The matches that end in these events, in the order of the events that end them.

        events: whatever `Query.run` takes for one stream, with the columns of the recognizer's schema. A batch that raises SchemaError or
        InputError (NULL times; without lateness also times that descend) changes nothing. Whatever else ends it early (a LimitError, Ctrl-C)
        leaves half a state: then every method but `restore` raises SnapshotError.
        """
        table = self._conform(events)
        times = self._times(table)
        if self._order is not None:
            with self._changing():
                return self._feed(*self._order.push(table, times))
        if self.compiled.schema.time_column is not None:
            after = None if self._latest == NEVER else self._latest
            check_order(
                times,
                table[self.compiled.schema.time_column],
                after=after,
                how="q.recognizer(.., lateness=..) accepts late events, and q.run(.., sort=True) sorts them all",
            )
        with self._changing():
            return self._feed(table, times)

    def advance_time(self, time: object) -> Matches:
        """Say that no event before `time` will come: gives the matches among the events that this releases.

        time: a datetime, date or int as the time column has them. Later events before `time` are late, or (without lateness) an error.
        """
        now = time_number(time, self.compiled.schema)
        with self._changing():
            matches = self._feed(*self._order.advance(now)) if self._order is not None else self._nothing()
            self._latest = max(self._latest, now)
            self._expire()
        return matches

    def flush(self) -> Matches:
        """Read the events that are held back for lateness, and give their matches."""
        with self._changing():
            return self._nothing() if self._order is None else self._feed(*self._order.flush())

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """What is done inside changes the state as a whole, or the state says from then on that it is of no use."""
        self._check_intact()
        self._intact = False
        yield
        self._intact = True

    def _check_intact(self) -> None:
        if not self._intact:
            raise SnapshotError(
                "this recognizer was interrupted while it read events, and its state is incomplete",
                help="`restore` its last snapshot, or start again with a new one",
            )

    @property
    def late(self) -> pa.Table:
        """The events that came too late, in the order of arrival."""
        return self.schema.empty_table() if self._order is None else self._order.late

    def memory_usage(self) -> int:
        """Bytes of the run state: the kernel's arrays, the marked events, the keys, and the events that are held back."""
        held = 0 if self._order is None else self._order.nbytes
        return self._evaluation.memory_usage() + self._payload.nbytes + self._keys.nbytes + held

    def _nothing(self) -> Matches:
        return Matches.none(self.compiled.layout)

    def _conform(self, events: object) -> pa.Table:
        """The events with exactly the columns of the schema."""
        table = without_views(table_of(events))
        if isinstance(table, pa.RecordBatchReader):
            table = table.read_all()
        columns = []
        for field in self.schema:
            if field.name not in table.column_names:
                near = nearest(field.name, table.column_names)
                raise SchemaError(
                    f"the batch has no column `{field.name}`",
                    help=([f"did you mean `{near}`?"] if near else []) + [f"the batch has {quoted(table.column_names)}"],
                )
            columns.append(_cast(table[field.name], field))
        return pa.Table.from_arrays(columns, schema=self.schema)

    def _times(self, table: pa.Table) -> Array:
        time = self.compiled.schema.time_column
        return np.zeros(table.num_rows, np.int64) if time is None else times_of(table, time)

    def _feed(self, events: pa.Table, times: Array) -> Matches:
        if not events.num_rows:
            return self._nothing()
        compiled, keys = self.compiled, self._keys
        letters = compiled.predicates.letters(events)
        order, cuts, slots = self._partitions(events)
        lengths = np.diff(cuts, append=len(letters) if order is None else len(order))
        chunks: list[Chunk] = []
        grouped = slice(None) if order is None else order
        self._evaluation.feed(letters[grouped], times[grouped], cuts=cuts, slots=slots, sink=chunks.append)
        marked = np.flatnonzero(self._evaluation.marked)
        rows = marked if order is None else order[marked]
        segments = np.searchsorted(cuts, marked, "right") - 1
        before = keys.seen[slots] + _earlier(slots, lengths) - cuts
        shown = [events[name] for name in compiled.layout.events.names]
        kept = decoded(pa.table(shown, names=compiled.layout.events.names).take(pa.array(rows)))
        self._payload.append(kept, slots[segments], marked + before[segments], rows + self._events, times[rows])
        matches = measured(compiled.plan, self._matches(collect(chunks), slots, before, order))
        np.add.at(keys.seen, slots, lengths)
        self._events += events.num_rows
        self._latest = max(self._latest, int(times[-1]))
        self._pushes += 1
        if self._pushes % IDLE_CHECK == 0:
            self._expire()
        self._compact()
        return matches

    def _partitions(self, events: pa.Table) -> tuple[Array | None, Array, Array]:
        """The rows by partition (None: as they are), where each partition starts in them, and its slot."""
        compiled = self.compiled
        if not compiled.keys:
            return None, np.zeros(1, np.int64), np.zeros(1, np.int32)
        codes, count = key_codes(events, compiled.keys, null_keys="group" if self._group_nulls and not compiled.derived else "drop")
        groups = group(codes, count)
        if not compiled.derived:
            self.null_keys += groups.null_keys
        distinct = events.select(list(compiled.keys)).take(pa.array(groups.order[groups.cuts]))
        slots = self._keys.slots(distinct)
        if compiled.consume is Consumption.ANY:
            order, cuts, partitions = groups.interleaved()
            return order, cuts, slots[partitions]
        return groups.order, groups.cuts, slots

    def _matches(self, found: Chunk, slots: Array, before: Array, order: Array | None) -> Matches:
        offsets, positions, labels, segments = found.offsets, found.positions, found.labels, found.segments
        layout, payload = self.compiled.layout, self._payload
        if not len(segments):
            return self._nothing()
        mark_slots = np.repeat(slots[segments], np.diff(offsets))
        rows = payload.find(mark_slots, positions)
        triggers = payload.places[rows[offsets[1:] - 1]]
        if isinstance(self._consumed, int):
            self._consumed = int(triggers.max())
        elif self._consumed is not None:
            np.maximum.at(self._fitted(self._consumed), slots[segments], triggers)
        shown = payload.places[rows] if self.compiled.derived else positions
        partitions = keys = None
        if layout.keys:
            used, partitions = np.unique(slots[segments], return_inverse=True)
            keys = self._keys.table.select(list(layout.keys)).take(pa.array(used))
        matches = Matches(layout, offsets, shown, labels, rows, payload.events, partitions, keys, counts=found.counts)
        if order is None or len(slots) == 1:
            return matches
        ends = order[positions[offsets[1:] - 1] - before[segments]]
        return matches.take(np.argsort(ends, kind="stable"))

    def _expire(self) -> None:
        """Give back the memory of partitions in which nothing is open any more."""
        compiled = self.compiled
        if compiled.window is None or self._latest == NEVER:
            return
        evaluation = self._evaluation
        evaluation.expire(self._latest)
        if evaluation.wasteful:
            # Pools only grow: after a burst of keys the state moves into fresh ones of the size that it has now.
            self._evaluation = compiled.evaluation(variant=self.variant)
            self._evaluation.load(evaluation.dump())
        self._compact(at_once=True)

    def _compact(self, *, at_once: bool = False) -> None:
        compiled, seen, consumed = self.compiled, self._keys.seen, self._consumed
        self._payload.compact(
            seen,
            window=compiled.window,
            count_window=compiled.count_window,
            now=self._latest,
            consumed=self._fitted(consumed) if isinstance(consumed, np.ndarray) else consumed,
            at_once=at_once,
        )

    def _fitted(self, consumed: Array) -> Array:
        """What each slot has consumed, with room for the slots that there are."""
        missing = len(self._keys.seen) - len(consumed)
        if missing > 0:
            self._consumed = consumed = np.append(consumed, np.full(missing, -1, np.int64))
        return consumed

    # ---------------------------------------------------------------------------------------------------------------- snapshots

    def snapshot(self) -> bytes:
        """The state as bytes: a header with magic, format version and fingerprint, then flat buffers. O(live state).

        Raises SnapshotError after an interrupted `push`.
        """
        self._check_intact()
        payload, keys = self._payload, self._keys
        numbers = {"latest": self._latest, "events": self._events, "null_keys": self.null_keys, "lateness": self._lateness}
        if self._order is not None:
            numbers["watermark"] = self._order.watermark
        sections = {
            **self._evaluation.dump(),
            "recognizer": json.dumps(numbers).encode(),
            "seen": keys.seen.astype("<i8").tobytes(),
            "keys": _ipc(keys.table),
            "payload": _ipc(payload.events),
            "payload_places": _numbers(payload.slots, payload.positions, payload.places, payload.times),
        }
        if self._order is not None:
            sections |= {"pending": _ipc(self._order.pending), "late": _ipc(self._order.late)}
        return state.pack(sections, fingerprint=self._fingerprint())

    def restore(self, data: bytes) -> Recognizer:
        """Go on from a snapshot, in place of the present state; returns the recognizer itself.

        Raises SnapshotError for bytes of another query, schema, lateness or format version, and for damaged bytes; then nothing changes.
        """
        sections = state.unpack(data, fingerprint=self._fingerprint())
        try:
            evaluation = self.compiled.evaluation(variant=self.variant)
            evaluation.load(sections)
            numbers = json.loads(sections["recognizer"])
            latest, events, null_keys = (int(numbers[name]) for name in ("latest", "events", "null_keys"))
            columns = np.frombuffer(sections["payload_places"], "<i8").reshape(4, -1).astype(np.int64)
            tables: dict[str, pa.Table] = {
                name: _table(sections[name]) for name in ("keys", "payload", "pending", "late") if name in sections
            }
            seen = np.frombuffer(sections["seen"], "<i8").astype(np.int64)
            self._check_snapshot(tables, columns[0], seen, events)
        except (LookupError, ValueError, TypeError, OverflowError, MemoryError, struct.error, OSError, pa.ArrowException) as error:
            raise SnapshotError(f"the snapshot is damaged: {error}", help="use another snapshot, or start again without it") from None
        self._start()
        self._evaluation = evaluation
        self._latest, self._events, self.null_keys = latest, events, null_keys
        if self.compiled.keys:
            self._keys.load(tables["keys"], seen)
        else:
            self._keys.seen = seen
        self._payload.append(tables["payload"], columns[0].astype(np.int32), columns[1], columns[2], columns[3])
        if self._order is not None:
            self._order.watermark = numbers["watermark"]
            self._order.pending, self._order.late = tables["pending"], tables["late"]
            self._order.times = self._times(tables["pending"])
        return self

    def _check_snapshot(self, tables: dict[str, pa.Table], slots: Array, seen: Array, events: int) -> None:
        """ValueError unless the sections fit together; the checksum tells accidents, this what was made by hand."""
        used = len(tables["keys"]) if self.compiled.keys else 1
        right = (
            len(seen) >= used
            and bool((seen >= 0).all())
            and sum(seen.tolist()) <= events
            and len(tables["payload"]) == len(slots)
            and bool(((slots >= 0) & (slots < used)).all())
            and all(tables[name].schema.equals(self.schema) for name in ("pending", "late") if name in tables)
            and (tables["payload"].schema.names, tables["payload"].schema.types)
            == (self._payload.events.schema.names, self._payload.events.schema.types)
        )
        if not right:
            raise ValueError("its sections do not fit together")

    def _fingerprint(self) -> bytes:
        options = struct.pack("<?q", self._group_nulls, -1 if self._lateness is None else self._lateness)
        return self.compiled.fingerprint + options


def _earlier(slots: Array, lengths: Array) -> Array:
    """For each segment, the events in earlier segments of its slot; O(n log n)."""
    order = np.argsort(slots, kind="stable")
    before = np.cumsum(lengths[order]) - lengths[order]
    first = np.flatnonzero(np.diff(slots[order], prepend=-1))
    earlier = np.empty_like(before)
    earlier[order] = before - np.repeat(before[first], np.diff(first, append=len(slots)))
    return earlier


def _cast(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    if column.type == field.type:
        return column
    try:
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        raise SchemaError(f"`{field.name}` is {column.type} in the batch and {field.type} in the schema", help="cast it") from None


def _numbers(*columns: Array) -> bytes:
    return np.stack([column.astype("<i8") for column in columns]).tobytes()


def _ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue().to_pybytes())


def _table(data: bytes) -> pa.Table:
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()


def steps_of(lateness: object, compiled: Compiled) -> int:
    """A lateness in steps of the time column: a number of steps, a timedelta, or a text such as "10s".

    Raises InputError for negative or unreadable ones, and where the column has no unit for a duration.
    """
    schema = compiled.schema
    if schema.time_column is None:
        raise InputError("lateness needs a time column, and the events have none", help="name it with time=")
    if isinstance(lateness, int) and not isinstance(lateness, bool):
        steps = lateness
    else:
        nanoseconds = _nanoseconds(lateness)
        if schema.unit is None:
            raise InputError(f"lateness={lateness!r} has a unit, and the time column `{schema.time_column}` has none", help="give a number")
        steps = -(-nanoseconds // schema.unit)
    if steps > MAX_STEPS:
        raise LimitError(
            f"lateness={lateness!r} is {steps} steps of the time column; the limit is {MAX_STEPS} (MAX_STEPS)", help="give less"
        )
    if steps < 0:
        raise InputError(f"lateness={lateness!r} is negative", help="give a duration of zero or more")
    return steps


def _nanoseconds(lateness: object) -> int:
    if isinstance(lateness, dt.timedelta):
        return (lateness // dt.timedelta(microseconds=1)) * NANOSECONDS["us"]
    if isinstance(lateness, str):
        from cepheid.language.parser import parse_window
        from cepheid.language.syntax import Interval

        window = parse_window(lateness)
        if isinstance(window, Interval) and window.upper is not None and window.upper.unit is not None and window.lower is None:
            return int(window.upper.value * window.upper.unit.value)
    raise InputError(f"lateness={lateness!r} is not a duration", help='write it like "10s", as a timedelta, or in steps of the time column')
