"""The state of one bucket of a stream: events that wait for the watermark, and the run state of each query over the bucket's keys.

Comes in: blobs of events and a watermark. Goes out: matches with the time they are decided at, counts, and the state as bytes. The engine is that
of the embedded `Recognizer`: a `ReorderBuffer`, `Partitions`, and a `QueryState` per query. Imports no Spark.

Watermarks are Spark's: when the watermark is W, no event at or before W counts any more, so that all up to W is known and decided. Where the
lateness is known, a bucket need not wait for that: the events that it has got will move the watermark of the next micro-batch, at least to the
greatest of their times minus the lateness, so that all up to there is known now. Only the events of one lateness wait, not those of a whole
micro-batch, and matches come out one micro-batch earlier.

What came too late is counted, and given back when asked; what waits is in no match yet. Whatever order the events came in, the answer is the
same, but for events of one key that agree in time and tie-breakers.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.engine.evaluations.absence import decided_at
from cepheid.engine.input.lags import Lags
from cepheid.engine.input.order import NEVER, ReorderBuffer
from cepheid.engine.input.partitions import Partitions
from cepheid.engine.letters.values import one_chunk
from cepheid.engine.letters.words import are_letters
from cepheid.engine.memory import container
from cepheid.engine.memory.process import CHOOSE, process_memory
from cepheid.engine.run.allowance import Allowance
from cepheid.engine.run.query_state import QueryState
from cepheid.errors import InputError, LimitError, SnapshotError
from cepheid.logical.canonical import canonical_text
from cepheid.spark.tasks import shared
from cepheid.spark.tasks.bounds import LAST_TIME, YEARS
from cepheid.spark.tasks.packing import blobs, steps
from cepheid.spark.tasks.rows import piece_rows
from cepheid.spark.tasks.worker import TIME, Task, aligned, compiled_here, own_letters

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cepheid.engine.input.partitions import Arrived
    from cepheid.engine.memory.pools import Array
    from cepheid.engine.plan.compiled import Compiled
    from cepheid.engine.run.query_state import Found
    from cepheid.spark.tasks.rows import View

MICROS = 1000
"""Microseconds of a millisecond: Spark's watermark counts these, its timestamps those."""

DECIDED = "decided_time"
"""The column of a stream's output that has the time at which a match is decided, in microseconds."""

STATE_LIMIT = 1 << 30
"""Most bytes of a bucket's state: Spark keeps it as one value, and cannot hold 2**31 bytes in one."""

OUTPUT_LIMIT = 1 << 30
"""Most bytes of the matches that one visit of a bucket gives: Spark takes all of them in one Arrow array."""

OUTPUT_BYTES, OUTPUT_SHARE = 1 << 28, 16
"""The bytes that they may take where nobody says (max_bytes): so many, and at most one in so many of what a worker's process may use."""


OUTPUT_HELP = (
    "allow more with q.on(.., max_bytes=..), if the executors have the memory: the stream continues from the same checkpoint",
    "if many events have matches, read fewer events per micro-batch: set maxFilesPerTrigger or maxOffsetsPerTrigger of the source",
    f"if one event has too many matches, {CHOOSE}; this is another query and needs a new checkpoint: until= and since= hand over without a gap",
)


def stream_max_bytes() -> int:
    """The bytes that the matches of one visit of a bucket may take where nobody says: executors run several workers, and copy what these give."""
    return min(OUTPUT_BYTES, process_memory() // OUTPUT_SHARE)


@dataclass(frozen=True)
class Unit:
    """What the stateful part of a stream has to know, in plain values: it travels in a closure. What follows from them is computed where it is used.

    tasks: one per query (see `worker.Task`); all have the same keys and columns. letters: per task the columns its letters come from, and for
    each of its predicates the number of the bit in them (64 per column). ties: columns that order events of equal time. queries: their names,
    None for a single one. late: whether late events are given back; they have the columns of `columns`. output: serialized Arrow schema of a row.
    schema: serialized Arrow schema of what travels. buckets: over how many the keys are spread. lateness: milliseconds that an event may come
    later than a younger one; None: the watermark alone says what is known. max_bytes: of the rows that a visit of a bucket may give, None:
    `stream_max_bytes`.
    """

    tasks: tuple[Mapping[str, Any], ...]
    letters: tuple[tuple[tuple[str, ...], tuple[tuple[int, ...], ...] | None], ...]
    ties: tuple[str, ...]
    queries: tuple[str, ...] | None
    late: tuple[tuple[str, str], ...] | None
    output: bytes
    schema: bytes
    buckets: int = 1
    lateness: int | None = None
    max_bytes: int | None = None

    @cached_property
    def unpacked(self) -> tuple[Task, ...]:
        """The tasks."""
        return tuple(Task(**task) for task in self.tasks)

    @cached_property
    def compiled(self) -> tuple[Compiled, ...]:
        """The query of each task."""
        return tuple(compiled_here(task) for task in self.tasks)

    @cached_property
    def travelling(self) -> pa.Schema:
        """What travels."""
        return pa.ipc.read_schema(pa.py_buffer(self.schema))

    @cached_property
    def row(self) -> pa.Schema:
        """A row of the output."""
        return pa.ipc.read_schema(pa.py_buffer(self.output))

    @cached_property
    def views(self) -> tuple[View, ...]:
        """How each query shows its matches."""
        return tuple(task.view(compiled, self.travelling) for task, compiled in zip(self.unpacked, self.compiled, strict=True))

    @cached_property
    def fingerprint(self) -> bytes:
        """Of what a state means: each query with its bounds, what it keeps of the events, names and order of queries, and the letters' bits.

        The output is no part of it, nor how much of it there may be, nor whether late events are given back, nor the lateness, nor columns that
        nothing keeps: these may change between restarts.
        """
        kept = {*self.ties, *(column for task in self.unpacked for column in (*task.keys, *(own for _, own in task.payload)))}
        kept |= {column for task in self.unpacked for own in task.values for column in own}
        kept |= {column for task in self.unpacked for _, column in task.reads}
        types = [(field.name, field.type) for field in self.travelling if field.name in kept]
        digest = hashlib.sha256(canonical_text(tuple(sorted(types))).encode())
        for compiled, task in zip(self.compiled, self.unpacked, strict=True):
            digest.update(compiled.meaning)
            more = tuple(filter(None, (task.values, task.reads)))
            digest.update(canonical_text((task.keys, task.key_names, task.payload, task.index, *more)).encode())
        digest.update(canonical_text((self.queries, self.letters, self.ties)).encode())
        return digest.digest()


@dataclass(slots=True)
class Step:
    """What one visit of a bucket gives.

    rows: blobs of rows, each with the time (microseconds) at which the first of them is decided; late events, where they are asked for, are
    rows too. counts: see `COUNTS`. deadline: the least watermark (milliseconds) at which the bucket has to be looked at again, None: never.
    """

    rows: list[tuple[int, bytes]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    deadline: int | None = None


COUNTS = ("events", "late", "matches", "waiting", "keys", "state_bytes")
"""What a visit counts: events that came, of these too late; matches given; then what is there after it: events that wait for the watermark, keys
with state, bytes of the state."""


class Bucket:
    """The run state of all queries of a `Unit` over the keys of one bucket."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.tasks, self.compiled, self.views = unit.unpacked, unit.compiled, unit.views
        self.schema, self.output = unit.travelling, unit.row
        first = self.tasks[0]
        self.forgets = not any(task.index or compiled.looks_back for task, compiled in zip(self.tasks, self.compiled, strict=True))
        self.order = ReorderBuffer(self.schema, None, ties=unit.ties)
        keys = pa.schema([self.schema.field(column).with_name(name) for name, column in zip(first.key_names, first.keys, strict=True)])
        # NULL keys that are to be dropped are dropped before they come here.
        self.partitions = Partitions(first.key_names, keys, grouped=first.key_names)
        self.states = [
            QueryState(compiled, self.partitions, layout=view.layout, measures=view.measures)
            for compiled, view in zip(self.compiled, self.views, strict=True)
        ]
        self.readers = [compiled.readers(state.texts) for compiled, state in zip(self.compiled, self.states, strict=True)]
        reads = {name: self.schema.field(column).type for task in self.tasks for name, column in task.reads}
        lags = {lag.path[0]: lag for compiled in self.compiled for lag in compiled.lags}
        self.lags = Lags(tuple(lags.values()), pa.schema(list(reads.items())))
        self.events = 0
        self.latest = NEVER
        self.timers: list[int] = []
        self.empty = True  # nothing is left to remember

    # ------------------------------------------------------------------------------------------------------------------- running

    def step(self, tables: Sequence[pa.Table], watermark: int) -> Step:
        """Take events, and decide what the watermark (milliseconds) allows; raises InputError past LAST_TIME.

        O(events log events), and the kernels' time.
        """
        now = watermark * MICROS + 1
        if now > LAST_TIME:
            raise InputError(
                f"the watermark is after {YEARS}: an event with such a time in `{self.tasks[0].time_name}` moved it, and q.on never saw that event",
                help=(
                    "a watermark never goes back: start with a new checkpointLocation; until= and since= hand over without a gap (docs/streaming.md)",
                    "and give lateness= instead of withWatermark, or leave such events out before withWatermark",
                ),
            )
        self.order.watermark = max(self.order.watermark, now)  # what comes now, and is before it, is late
        self._hold(tables)
        late = self.order.take_late()
        known = self._known(now)
        matches = 0

        def dated() -> Iterator[tuple[pa.Table, Array]]:
            nonlocal matches
            for rows, times in self._decided(known, Allowance(self.unit.max_bytes or stream_max_bytes(), counts=False, help=OUTPUT_HELP)):
                matches += len(times)
                yield self._dated(rows, times), times

        step = Step(_within_limit(blobs(itertools.chain(dated(), self._late(late, now)))))
        self.expire(known)
        step.counts = {
            "events": sum(table.num_rows for table in tables),
            "late": late.num_rows,
            "matches": matches,
            "waiting": len(self.order.times),
            "keys": len(self.partitions),
        }
        step.deadline = self._deadline()
        return step

    def read(self, tables: Sequence[pa.Table], now: int) -> Iterator[tuple[pa.Table, Array]]:
        """Take events, in any order; the rows of the matches that are decided if no event before `now` comes any more, and when each was.

        now, times (int64): in steps of the time column. The rows come in pieces of bounded size, query by query.
        """
        self._hold(tables)
        return self._decided(now)

    def _hold(self, tables: Sequence[pa.Table]) -> None:
        for table in tables:
            self.order.hold(table.cast(self.schema), steps(table[TIME]))

    def _known(self, now: int) -> int:
        """The least time that a later event may have: `now`, or what the events that wait say, in steps of the time column."""
        if self.unit.lateness is None or not len(self.order.times):
            return now
        # As Spark computes it: in whole milliseconds.
        return max(now, (int(self.order.times.max()) // MICROS - self.unit.lateness) * MICROS + 1)

    def _decided(self, now: int, allowance: Allowance | None = None) -> Iterator[tuple[pa.Table, Array]]:
        events, times = self.order.advance(now)
        found = self._recognize(events, times, now) if len(times) else [state.advance(now) for state in self.states]
        return self._rows(found, allowance)

    def undecided(self) -> Iterator[pa.Table]:
        """The rows of the matches that wait for their time of absence to pass, and that nothing vetoes so far. O(state); nothing changes."""
        return (rows for rows, _ in self._rows([query_state.undecided() for query_state in self.states]))

    def _recognize(self, events: pa.Table, times: Array, now: int) -> list[Found]:
        """The matches of each query that events in order decide, not made yet."""
        named = dict(zip(self.tasks[0].key_names, self.tasks[0].keys, strict=True))
        keys = pa.table([events[column] for column in named.values()], names=list(named)) if named else events
        arrived = self.partitions.arrive(keys)
        read = self._read(events, arrived)
        found = []
        for number, (task, query_state) in enumerate(zip(self.tasks, self.states, strict=True)):
            shown = [events[column] for _, column in task.payload]
            if task.index:
                shown.append(pa.chunked_array([pa.array(arrived.positions)]))
            table = pa.Table.from_arrays(shown, schema=query_state.layout.events)
            letters, *negated = self._said(events, read, arrived, number)
            found.append(query_state.feed(letters, times, table, arrived, first=self.events, negated=negated, now=now))
        self.events += events.num_rows
        self.latest = max(self.latest, int(times[-1]))
        return found

    def _letters(self, events: pa.Table, number: int) -> list[Array]:
        """The letters of a query's programs: its predicates' bits among those of all queries."""
        columns, places = self.unit.letters[number]
        return own_letters([one_chunk(events[column]) for column in columns], places, self.compiled[number].alphabets)

    def _said(self, events: pa.Table, read: pa.Table, arrived: Arrived, number: int) -> list[Array]:
        """What events say to a query's programs: their letters, and the values that guards read; read: `_read`."""
        compiled, readers = self.compiled[number], self.readers[number]
        if compiled.lags:
            return [reader.read(read, positions=lambda: arrived.positions) for reader in readers]
        letters = self._letters(events, number)
        if compiled.positional:
            return [
                reader.read(read, positions=lambda: arrived.positions, letters=own) for reader, own in zip(readers, letters, strict=True)
            ]
        values = self.tasks[number].values
        if not values:
            return letters
        columns = [[one_chunk(events[name]) for name in own] for own in values]
        return [reader.of_columns(own, column) for reader, own, column in zip(readers, letters, columns, strict=True)]

    def _read(self, events: pa.Table, arrived: Arrived) -> pa.Table:
        """The attributes of which queries make letters and values here, with the lagged columns."""
        columns = dict(pair for task in self.tasks for pair in task.reads)
        table = events.select(list(columns.values())).rename_columns(list(columns))
        return self.lags.read(table, arrived, self.partitions.seen)

    def _rows(self, found: Sequence[Found], allowance: Allowance | None = None) -> Iterator[tuple[pa.Table, Array]]:
        """The rows of each query's matches as they are made, and when they are decided; raises LimitError past the allowance."""
        for number, own_found in enumerate(found):
            name = None if self.unit.queries is None else self.unit.queries[number]
            for matches in own_found.pieces(allowance):
                for own in self.views[number].pieces(matches):
                    if allowance is not None:
                        allowance.used += own.nbytes
                    rows = own if name is None else own.add_column(0, "query", pa.repeat(name, own.num_rows))
                    yield (
                        aligned(rows, self.output),
                        decided_at(self.compiled[number].absences, steps(own["start_time"]), steps(own["end_time"])),
                    )

    def _dated(self, rows: pa.Table, times: Array) -> pa.Table:
        """The rows with the times at which they are decided, in microseconds."""
        place = self.output.get_field_index(DECIDED)
        return rows.set_column(place, self.output.field(place), pa.array(times).cast(self.output.field(place).type))

    def _late(self, late: pa.Table, now: int) -> list[tuple[pa.Table, Array]]:
        """Late events as rows, if they are asked for, with the time at which they were found late."""
        if self.unit.late is None or not late.num_rows:
            return []
        names = dict(self.unit.late)
        kind = self.output.field("late").type
        structs = pa.StructArray.from_arrays([one_chunk(late[names[field.name]]) for field in kind], fields=list(kind))
        rows = aligned(pa.table([structs], names=["late"]), self.output)
        times = np.full(late.num_rows, now)
        dated, most = self._dated(rows, times), piece_rows(late.num_rows, late.nbytes)
        return [(dated.slice(start, most), times[start : start + most]) for start in range(0, late.num_rows, most)]

    # ---------------------------------------------------------------------------------------------------------------- giving back

    def expire(self, now: int) -> None:
        """Forget the keys in which nothing can go on in any query, and the events that no match can show."""
        finished = np.zeros(self.partitions.slots, np.int64)
        finished[self.partitions.live] = 1
        for query_state in self.states:
            slots = query_state.expire(now)
            finished[slots[slots < len(finished)]] += 1
            query_state.compact(now, at_once=True)
        idle = np.flatnonzero(finished > len(self.states))
        self.empty = self.forgets and len(idle) == len(self.partitions) and not len(self.order.times)
        if self.forgets and self.partitions.keys and len(idle):
            for query_state in self.states:
                query_state.release(idle)
            self.partitions.forget(idle)

    def _deadline(self) -> int | None:
        """The least watermark (milliseconds) at which something is decided, or (if nothing waits) at which every key is idle."""
        waiting = [int(self.order.times.min())] if len(self.order.times) else []
        waiting += [state.deadline for state in self.states if state.deadline is not None]
        if waiting:
            return -(-min(waiting) // MICROS)
        horizons = [compiled.horizon for compiled in self.compiled]
        if not len(self.partitions) or None in horizons:
            return None
        return -(-(self.latest + max(horizon or 0 for horizon in horizons)) // MICROS) + 1

    # ---------------------------------------------------------------------------------------------------------------- state as bytes

    def dump(self) -> bytes:
        """The state; raises LimitError past STATE_LIMIT. O(live state)."""
        keys, seen = self.partitions.dump()
        numbers = {"events": self.events, "latest": self.latest, "watermark": self.order.watermark, "timers": self.timers}
        numbers["buckets"] = self.unit.buckets
        sections = {
            "bucket": json.dumps(numbers).encode(),
            "keys": container.table_bytes(keys),
            "seen": seen.astype("<i8"),
            "pending": container.table_bytes(self.order.pending),
        }
        sections |= self.lags.dump(self.partitions.seen)
        data = container.pack(sections | shared.dump(self.states), fingerprint=self.unit.fingerprint, compress=True)
        if len(data) > STATE_LIMIT:
            raise LimitError(
                f"the state of one bucket has {len(data)} bytes, and the limit is {STATE_LIMIT} (STATE_LIMIT)",
                help=(
                    "spread the keys over more buckets: q.on(.., buckets=..), in a new checkpoint",
                    "or make the window or the lateness smaller: then less is kept",
                ),
            )
        return data

    def load(self, data: bytes) -> Bucket:
        """Go on, fresh, from what `dump` gave; raises SnapshotError for the state of other queries, schemas or formats, and damaged bytes."""
        sections = self._sections(data)
        with container.reading():
            numbers = container.numbers_of(sections["bucket"])
            buckets = container.number_in({"buckets": self.unit.buckets} | numbers, "buckets")
            self.events, self.latest = container.number_in(numbers, "events"), container.time_in(numbers, "latest")
            self.timers = [container.time_in({"timers": timer}, "timers") for timer in numbers["timers"]]
            seen = np.frombuffer(sections["seen"], "<i8").reshape(2, -1).astype(np.int64)
            stored = self.partitions.load(container.table_of(sections["keys"]), seen)
            self.order.watermark = container.time_in(numbers, "watermark")
            self.order.pending = self._conformed(container.table_of(sections["pending"]))
            self.order.times = steps(self.order.pending[TIME])
            self.order.check(self.latest)
            self._check_pending()
            shared.load(self.states, sections, stored, latest=self.latest)
            self.lags.load(sections, stored)
        self._check_buckets(buckets)
        return self

    def _conformed(self, events: pa.Table) -> pa.Table:
        """Events that waited, with the columns that travel now: what is new among these only late events show, which they will not be."""
        had = set(events.column_names)
        columns = [
            events[name].cast(kind) if name in had else pa.nulls(len(events), kind)
            for name, kind in zip(self.schema.names, self.schema.types, strict=True)
        ]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def _check_pending(self) -> None:
        """Raise ValueError for events that wait without a time, or with a letter that no query has."""
        columns = {column for own, _ in self.unit.letters for column in own}
        if any(self.order.pending[column].null_count for column in (TIME, *columns)):
            raise ValueError("waiting events have no time or no letter")
        for number, compiled in enumerate(self.compiled):
            if compiled.lags:
                continue
            programs = zip(self._letters(self.order.pending, number), compiled.programs, strict=True)
            if not all(are_letters(letters.astype(np.uint64), program.automaton.alphabet) for letters, program in programs):
                raise ValueError("waiting events have letters of another query")

    def seal(self) -> bytes:
        """What the states of all buckets are of, as bytes."""
        return container.pack({"bucket": json.dumps({"buckets": self.unit.buckets}).encode()}, fingerprint=self.unit.fingerprint)

    def check_seal(self, data: bytes) -> None:
        """Raise SnapshotError where `seal` was of other queries, schemas, formats, or another number of buckets."""
        sections = self._sections(data)
        with container.reading():
            buckets = container.number_in(container.numbers_of(sections["bucket"]), "buckets")
        self._check_buckets(buckets)

    def _sections(self, data: bytes) -> dict[str, Any]:
        other = SnapshotError(
            "the checkpoint was made by another query, or over columns of other types, or with another order=",
            help=(
                "start it with a new checkpointLocation: until= and since= hand over without a gap (docs/streaming.md)",
                "or go back to the queries that wrote it, with their names, arguments and order",
            ),
        )
        return container.unpack(data, fingerprint=self.unit.fingerprint, other=other)

    def _check_buckets(self, stored: int) -> None:
        """Keys would look for their state in other buckets than those that have it."""
        if stored != self.unit.buckets:
            raise SnapshotError(
                f"the checkpoint spreads the keys over {stored} buckets, and the query now over {self.unit.buckets}",
                help=(
                    f"give q.on(.., buckets={stored}); without buckets= the number follows spark.sql.shuffle.partitions",
                    "or start with a new checkpoint",
                ),
            )


def _within_limit(found: Iterator[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """The blobs of a visit; raises LimitError past OUTPUT_LIMIT."""
    kept, size = [], 0
    for moment, blob in found:
        kept.append((moment, blob))
        size += len(blob)
        if size > OUTPUT_LIMIT:
            raise LimitError(
                f"the matches of one bucket in one micro-batch take more than {OUTPUT_LIMIT} bytes (OUTPUT_LIMIT)",
                help=(
                    "read fewer events per micro-batch: set maxFilesPerTrigger or maxOffsetsPerTrigger of the source",
                    "or show less of each match: q.on(.., columns=[..]), a strategy such as SELECT NXT, LIMIT, or COUNT(*)",
                ),
            )
    return kept
