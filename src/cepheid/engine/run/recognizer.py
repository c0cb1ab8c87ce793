"""Recognition as events come: push batches, get the matches that end in them.

Comes in: a `Compiled` query, then batches of events. Goes out: `Matches` per batch. The state is the kernel's (pooled over all partitions) and
the marked events that a match may still show; it never grows with the number of partial matches.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pyarrow as pa

from cepheid.engine.input.order import NEVER, ReorderBuffer
from cepheid.engine.input.partitions import Partitions
from cepheid.engine.input.read import check_order, check_order_columns, in_order, table_of, time_number, times_of, without_views
from cepheid.engine.letters.values import plain
from cepheid.engine.memory import container
from cepheid.engine.memory.process import named_memory
from cepheid.engine.run.allowance import CALL_HELP, Allowance
from cepheid.engine.run.one_at_a_time import OneAtATime
from cepheid.engine.run.query_state import QueryState
from cepheid.errors import (
    CepheidError,
    InputError,
    LimitError,
    NotSupportedError,
    QuerySyntaxError,
    SchemaError,
    SnapshotError,
    nearest,
    quoted,
)
from cepheid.language.syntax import Consumption
from cepheid.logical.times import MAX_STEPS
from cepheid.logical.types import canonical, family
from cepheid.schema import NANOSECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cepheid.engine.input.named_types import NamedTypes
    from cepheid.engine.memory.stored import Stored
    from cepheid.engine.output.matches import Matches
    from cepheid.engine.plan.compiled import Compiled
    from cepheid.engine.run.query_state import Found

Array = np.ndarray[Any, Any]

IDLE_CHECK = 64
"""Pushes between two looks for partitions whose memory can be given back."""

EVENTS_PER_LOOK = 16
"""Keys and kept events that are looked at for one new event, where windows are of events."""


class Recognizer:
    """The run state of one query over one stream.

    lateness: how late an event may come, in steps of the time column or as a timedelta or a text such as "10s"; None: events must come in the
    order of their times. order: with a lateness, the columns that decide between events of equal time, before the order of arrival. null_keys:
    "drop" (counted in `null_keys`) or "group". variant: of the kernel. sample, max_bytes: as for `Query.run`, of each call. interleaved: see
    `QueryState`. types: is shown what is read. Update and memory per event as `Query.explain` says; a partition that was met costs a few hundred
    bytes for ever (its positions go on).

    One thread at a time: what reads or changes the state raises InUseError while another call does, and changes nothing. `late`, `latest`,
    `null_keys` and `memory_usage` may be looked at at any time.
    """

    def __init__(
        self,
        compiled: Compiled,
        *,
        lateness: object = None,
        order: Sequence[str] = (),
        null_keys: str = "drop",
        variant: str | None = None,
        sample: int | None = None,
        interleaved: bool = False,
        max_bytes: int | None = None,
        types: NamedTypes | None = None,
    ) -> None:
        self.compiled = compiled
        self._options: dict[str, Any] = {"variant": variant, "sample": sample, "interleaved": interleaved}
        self._max_bytes = max_bytes
        self._types = types
        self.schema = pa.schema(list(compiled.schema.attributes.items()))
        # Then events with the schema need no look at their columns, see `_cast`.
        self._as_they_are = not any(map(pa.types.is_dictionary, self.schema.types))
        self._group_nulls = null_keys == "group"
        self._lateness = None if lateness is None else steps_of(lateness, compiled)
        self._ties = tuple(order)
        self._use = OneAtATime("this recognizer")
        if order and lateness is None:
            raise InputError(
                "order= decides between events that wait, and without lateness= none does",
                help="lateness=0 holds the events of the newest time",
            )
        check_order_columns(self._ties, self.schema.names)
        in_order(pa.table({name: pa.nulls(2, self.schema.field(name).type) for name in self._ties}), np.zeros(2, np.int64), self._ties)
        for field in self.schema:
            if pa.types.is_union(field.type):
                fact = f"`{field.name}` is a {field.type.mode} union, which Arrow cannot put together from batches"
                raise NotSupportedError(fact, help="leave the column out, or q.run(..) over the whole table")
        self._start()

    def _start(self) -> None:
        compiled = self.compiled
        grouped = compiled.written if self._group_nulls else ()
        self._partitions = Partitions(compiled.keys, self.schema, grouped=grouped)
        # Positions are those in the partitions of PARTITION BY, or of the whole stream, also where equalities partition these further.
        self._written = Partitions(compiled.written, self.schema, grouped=grouped) if compiled.derived else self._partitions
        self._state = QueryState(compiled, self._partitions, **self._options)
        self._readers = [alphabet.reader() for alphabet in compiled.alphabets]
        self._order = None if self._lateness is None else ReorderBuffer(self.schema, self._lateness, ties=self._ties)
        self._ended_by: str | None = None  # what ended a call in the middle: the state is then incomplete
        self._latest = NEVER
        self._events = 0
        self._pushes = self._looked = 0

    def __reduce__(self) -> NoReturn:
        # A shallow copy would share the state, a deep one a lock.
        help_ = "snapshot() gives its state as bytes, query.recognizer(schema, snapshot=..) a recognizer that goes on from there"
        raise SnapshotError("a recognizer cannot be copied or pickled", help=help_)

    @property
    def null_keys(self) -> int:
        """Events dropped for a NULL in PARTITION BY; one with a NULL in what equalities compare is none of them, it only matches nothing."""
        return self._written.null_keys

    @property
    def latest(self) -> int | None:
        """The greatest time so far of the events that were read and of `advance_time`, in steps of the time column; None before the first."""
        return None if self._latest == NEVER else self._latest

    # ------------------------------------------------------------------------------------------------------------------- running

    @named_memory()
    def push(self, events: object) -> Matches:
        """The matches that end in these events, in the order of the events that end them; with NOT FOLLOWED BY those that they decide.

        events: whatever `Query.run` takes for one stream, with the columns of the recognizer's schema. A batch that raises SchemaError or
        InputError (NULL times; without lateness also times that descend) changes nothing. Whatever else ends it early (a LimitError, Ctrl-C)
        leaves half a state: then every method but `restore` raises SnapshotError.
        """
        with self.reading(events) as found:
            return found.all(self._allowance())

    def advance_time(self, time: object) -> Matches:
        """Say that no event before `time` will come: gives the matches among the events that this releases, and those that it decides.

        time: a datetime, date or int as the time column has them. Later events before `time` are late, or (without lateness) an error.
        """
        return self.advance(time_number(time, self.compiled.schema))

    @named_memory()
    def advance(self, now: int) -> Matches:
        """As `advance_time`, in steps of the time column."""
        with self.passing(now) as found:
            return found.all(self._allowance())

    @named_memory()
    def flush(self) -> Matches:
        """Read the events that are held back for lateness, and give the matches that are decided by them; an absence needs time to pass."""
        with self._use.alone(), self._changing():
            return self.compiled.layout.nothing if self._order is None else self._found(*self._order.flush()).all(self._allowance())

    def _allowance(self) -> Allowance:
        """What the matches of one call may take."""
        return Allowance(self._max_bytes, help=CALL_HELP)

    @contextlib.contextmanager
    def reading(self, events: object) -> Iterator[Found]:
        """What `push` gives, to be made inside."""
        table = self._conform(events)
        times = self._times(table)
        with self._use.alone():
            if self._order is None and self.compiled.schema.time_column is not None:
                check_order(
                    times,
                    table[self.compiled.schema.time_column],
                    after=None if self._latest == NEVER else self._latest,
                    how="q.recognizer(.., lateness=..) accepts late events, and q.run(.., sort=True) sorts them all",
                )
            with self._changing():
                ready = (table, times) if self._order is None else self._order.push(table, times)
                yield self._found(*ready)

    @contextlib.contextmanager
    def passing(self, now: int) -> Iterator[Found]:
        """What `advance_time` gives, to be made inside; now: in steps of the time column."""
        with self._use.alone(), self._changing():
            events, times = self._order.advance(now) if self._order is not None else (self.schema.empty_table(), np.zeros(0, np.int64))
            self._latest = max(self._latest, now)
            yield self._found(events, times).then(self._expire)

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """What is done inside changes the state as a whole, or the state says from then on that it is of no use."""
        self._check_intact()
        self._ended_by = "an interruption"
        try:
            yield
        except Exception as error:
            self._ended_by = f"{type(error).__name__}: {error.fact if isinstance(error, CepheidError) else error}"
            raise
        self._ended_by = None

    def _check_intact(self) -> None:
        if self._ended_by is not None:
            raise SnapshotError(
                f"a call of this recognizer ended in the middle of its events, and its state is incomplete. What ended it: {self._ended_by}",
                help="`restore` its last snapshot, or start again with a new one",
            )

    @named_memory()
    def undecided(self) -> Matches:
        """The matches that wait for the time of a NOT FOLLOWED BY to pass, none of which is vetoed so far. O(state); nothing changes.

        What an event before them or `advance_time` decides, `push` gives; events that are held back for lateness are not seen here.
        """
        with self.waiting() as found:
            return found.all(Allowance(self._max_bytes))

    @contextlib.contextmanager
    def waiting(self) -> Iterator[Found]:
        """What `undecided` gives, to be made inside."""
        with self._use.alone():
            self._check_intact()
            yield self._state.undecided()

    @property
    def late(self) -> pa.Table:
        """The events that came too late, in the order of arrival."""
        return self.schema.empty_table() if self._order is None else self._order.late

    def memory_usage(self) -> int:
        """Bytes of the run state: the kernel's arrays, the marked events, the keys, and the events that are held back."""
        held = 0 if self._order is None else self._order.nbytes
        written = 0 if self._written is self._partitions else self._written.nbytes
        return self._state.nbytes + self._partitions.nbytes + written + held

    def _conform(self, events: object) -> pa.Table:
        """The events with exactly the columns of the schema."""
        if isinstance(events, pa.RecordBatch | pa.Table) and self._as_they_are and events.schema == self.schema:
            return events if isinstance(events, pa.Table) else pa.Table.from_batches([events], self.schema)
        if isinstance(events, Mapping):
            raise InputError(
                "a recognizer reads its streams as one, and this is a dict of them",
                help=f"push one table in the order of times, with the stream's name in the column `{self.compiled.schema.type_column}`",
            )
        if isinstance(events, list) and not events:
            return self.schema.empty_table()
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
        return pa.Table.from_arrays(columns, schema=self.schema) if columns else table.select([])

    def _times(self, table: pa.Table) -> Array:
        time = self.compiled.schema.time_column
        return np.zeros(table.num_rows, np.int64) if time is None else times_of(table, time)

    def _found(self, events: pa.Table, times: Array) -> Found:
        """The matches that events in order decide."""
        if not events.num_rows:
            return self._state.advance(self._now)
        arrived = self._partitions.arrive(events, interleaved=self._state.interleaved)
        shown = self._written.arrive(events).positions if self.compiled.derived else None
        letters, *negated = (reader.read(events) for reader in self._readers)
        if self._types is not None:
            self._types.see(events, (letters, *negated))
        self._latest = max(self._latest, int(times[-1]))
        found = self._state.feed(letters, times, events, arrived, first=self._events, shown=shown, negated=negated, now=self._now)
        self._events += events.num_rows
        return found.then(self._tidy)

    def _tidy(self) -> None:
        """Give back, now and then, what no match needs any more."""
        self._pushes += 1
        if self._pushes % IDLE_CHECK == 0:
            self._expire()
        self._state.compact(self._latest)

    @property
    def _now(self) -> int:
        """The least time that an event may still have."""
        return self._latest if self._order is None else self._order.watermark

    def _expire(self) -> None:
        """Give back what no match needs any more."""
        if self._latest == NEVER:
            return
        compiled = self.compiled
        if compiled.window is None and not compiled.absences:
            # Not time but events make something superfluous, and there have to be some for what a look costs.
            endless = compiled.count_window is None and compiled.consume is Consumption.NONE
            if endless or EVENTS_PER_LOOK * (self._events - self._looked) < self._partitions.slots + len(self._state.payload):
                return
            self._looked = self._events
        self._state.expire(self._latest)
        self._state.compact(self._latest, at_once=True)

    # ---------------------------------------------------------------------------------------------------------------- snapshots

    @named_memory()
    def snapshot(self) -> bytes:
        """The state as bytes: a header with magic, format version and fingerprint, then flat buffers. O(live state).

        Raises SnapshotError after an interrupted `push`.
        """
        with self._use.alone():
            self._check_intact()
            if self._latest != NEVER:
                self._state.compact(self._latest, at_once=True)
            return self._packed()

    def _packed(self) -> bytes:
        numbers = {"latest": self._latest, "events": self._events, "null_keys": self._written.null_keys, "lateness": self._lateness}
        if self._order is not None:
            numbers["watermark"] = self._order.watermark
        keys, seen = self._partitions.dump()
        evaluation, payload = self._state.dump()
        sections = {
            **evaluation,
            "recognizer": json.dumps(numbers).encode(),
            "seen": seen.astype("<i8"),
            "keys": container.table_bytes(keys),
            "payload": container.table_bytes(payload),
        }
        if self._has_both_keys:
            keys, seen = self._written.dump()
            sections |= {"written": container.table_bytes(keys), "written_seen": seen.astype("<i8")}
        if self._order is not None:
            sections |= {"pending": container.table_bytes(self._order.pending), "late": container.table_bytes(self._order.late)}
        return container.pack(sections, fingerprint=self._fingerprint())

    @named_memory()
    def restore(self, data: bytes) -> Recognizer:
        """Go on from a snapshot, in place of the present state; returns the recognizer itself.

        Raises SnapshotError for bytes of another query, schema, lateness or format version, and for damaged bytes; then nothing changes.
        """
        sections = container.unpack(data, fingerprint=self._fingerprint())
        nulls = "group" if self._group_nulls else "drop"
        options: dict[str, Any] = {**self._options, "max_bytes": self._max_bytes}
        fresh = Recognizer(self.compiled, lateness=self._lateness, order=self._ties, null_keys=nulls, **options)
        with container.reading():
            fresh._load(sections)
        with self._use.alone():
            self.__dict__ |= {name: value for name, value in fresh.__dict__.items() if name != "_use"}
        return self

    def _load(self, sections: dict[str, Any]) -> None:
        """Take over the sections of a snapshot; raises whatever nonsense in them raises."""
        numbers = container.numbers_of(sections["recognizer"])
        self._latest = container.time_in(numbers, "latest")
        self._events, null_keys = (container.number_in(numbers, name) for name in ("events", "null_keys"))
        stored = self._load_keys(self._partitions, sections["keys"], sections["seen"])
        if self._has_both_keys:
            self._load_keys(self._written, sections["written"], sections["written_seen"])
        elif self.compiled.derived:
            self._written.seen[:] = self._events
        if self.compiled.written:
            self._written.null_keys = null_keys
        self._state.load(sections, container.table_of(sections["payload"]), stored, latest=self._latest)
        if self._order is not None:
            self._order.watermark = container.time_in(numbers, "watermark")
            self._order.pending, self._order.late = (container.table_of(sections[name]) for name in ("pending", "late"))
            if not all(table.schema.equals(self.schema) for table in (self._order.pending, self._order.late)):
                raise ValueError("its held events do not fit")
            self._order.times = self._times(self._order.pending)
            self._order.check(self._latest)

    def _load_keys(self, partitions: Partitions, keys: bytes, numbers: bytes) -> Stored:
        seen = np.frombuffer(numbers, "<i8").reshape(2, -1).astype(np.int64)
        stored = partitions.load(container.table_of(keys), seen)
        if sum(seen[1].tolist()) > self._events:
            raise ValueError("its sections do not fit together")
        return stored

    @property
    def _has_both_keys(self) -> bool:
        """Whether positions are counted by other keys than those that partition the state."""
        return bool(self.compiled.written and self.compiled.derived)

    def _fingerprint(self) -> bytes:
        options = struct.pack("<?q", self._group_nulls, -1 if self._lateness is None else self._lateness)
        return self.compiled.fingerprint + options + "".join(f"{len(name)} {name}" for name in self._ties).encode()


def _cast(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """A column of a batch in the type of the schema: of the same values, or all NULL."""
    if column.type == field.type:
        if pa.types.is_dictionary(column.type) and any(chunk.dictionary.null_count for chunk in column.chunks):
            # Arrow puts no dictionaries together that have NULL among their values.
            return pa.chunked_array([plain(chunk).dictionary_encode() for chunk in column.chunks]).cast(column.type)
        return column
    families = [family(canonical(kind) or kind) for kind in (column.type, field.type)]
    with contextlib.suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        if families[0] in (families[1], "NULL"):
            return column.cast(field.type)
    raise SchemaError(f"`{field.name}` is {column.type} in the batch and {field.type} in the schema", help="cast it")


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
        nanoseconds = nanoseconds_of(lateness)
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


def nanoseconds_of(given: object, *, option: str = "lateness") -> int:
    """A timedelta or a text such as "10s" in nanoseconds; raises InputError, which names the option, for what is no duration."""
    if isinstance(given, dt.timedelta):
        return (given // dt.timedelta(microseconds=1)) * NANOSECONDS["us"]
    if isinstance(given, str):
        from cepheid.language.parser import parse_duration
        from cepheid.language.syntax import Duration

        with contextlib.suppress(QuerySyntaxError):
            duration = parse_duration(given)
            if isinstance(duration, Duration) and duration.unit is not None:
                return int(duration.value * duration.unit.value)
    raise InputError(f"{option}={given!r} is not a duration", help='write it like "10 minutes" or "10s", or as a timedelta')
