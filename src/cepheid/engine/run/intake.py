"""What comes in piece by piece, whatever reads it: batches with the columns of the schema, in order, and a state that is whole or says so.

Comes in: batches of events as users have them. Goes out: tables in the order of their times, to `_found`, which the recognizer of one query and that
of several have. Late events wait in a `ReorderBuffer`; and where a query looks ahead, all events of a time wait for a later one.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Protocol, Self, TypeVar

import numpy as np
import pyarrow as pa

from cepheid.engine.input.event_times import check_order, time_number, times_of
from cepheid.engine.input.order import NEVER, ReorderBuffer, check_ties
from cepheid.engine.input.read import events_of
from cepheid.engine.letters.values import no_events, plain
from cepheid.engine.memory import container
from cepheid.engine.memory.process import named_memory
from cepheid.engine.output.matches import python_value
from cepheid.engine.run.allowance import CALL_HELP, Allowance
from cepheid.engine.run.identity import Identity
from cepheid.engine.run.one_at_a_time import OneAtATime
from cepheid.errors import (
    CepheidError,
    InputError,
    LimitError,
    QuerySyntaxError,
    SchemaError,
    SnapshotError,
    counted,
    nearest,
    quoted,
)
from cepheid.logical.times import MAX_STEPS
from cepheid.logical.types import canonical, family
from cepheid.schema import NANOSECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cepheid.schema import EventSchema

Array = np.ndarray[Any, Any]
Answer_co = TypeVar("Answer_co", covariant=True)
"""What a call gives: the matches of one query, or of several by name."""


class Decided(Protocol[Answer_co]):
    """What a call decides, not made yet; see `Found`."""

    def then(self, what: Callable[[], None]) -> Decided[Answer_co]:
        """The same; `what` is done once all has been made."""

    def all(self, allowance: Allowance) -> Answer_co:
        """All of it."""

    def pieces(self) -> Iterator[Answer_co]:
        """The same in pieces of bounded size."""


class Intake(ABC, Generic[Answer_co]):
    """A recognizer but for its queries: takes batches, keeps order, and knows whether its state is whole.

    events: the schema of what comes. lateness, order, null_keys, max_bytes: see `Recognizer`. ahead: whether a query looks ahead.
    """

    def __init__(
        self,
        events: EventSchema,
        *,
        lateness: object,
        order: Sequence[str],
        null_keys: str,
        max_bytes: int | None,
        ahead: bool,
        options: dict[str, Any],
    ) -> None:
        self._source = events
        self._options = options
        self._max_bytes = max_bytes
        self.schema = pa.schema(list(events.attributes.items()))
        # Then events with the schema need no look at their columns, see `_cast`.
        self._as_they_are = not any(map(pa.types.is_dictionary, self.schema.types))
        self._group_nulls = null_keys == "group"
        self._lateness = None if lateness is None else steps_of(lateness, events)
        self._ties = tuple(order)
        self._use = OneAtATime("this recognizer")
        if order and lateness is None:
            raise InputError(
                "order= sorts events that wait for late ones, and without lateness= no event waits",
                help="lateness=0 makes only the events of the newest time wait",
            )
        check_ties(self.schema, self._ties)
        self._ahead = ahead
        waits = ahead or self._lateness is not None
        self._order = ReorderBuffer(self.schema, self._lateness or 0, ties=self._ties) if waits else None
        self._ended_by: str | None = None  # what ended a call in the middle: the state is then incomplete
        self._latest = NEVER
        self._events = 0

    def __reduce__(self) -> NoReturn:
        # A shallow copy would share the state, a deep one a lock.
        help_ = "take its state with snapshot(), and make a recognizer that continues from it: query.recognizer(schema, snapshot=..)"
        raise SnapshotError("a recognizer cannot be copied or pickled", help=help_)

    @property
    def latest(self) -> int | None:
        """The greatest time so far, of events that were read and of `advance_time`: int, in steps of the time column; None before the first."""
        latest = self._latest if self._lateness is not None else self._reached
        return None if latest == NEVER else latest

    @property
    def _reached(self) -> int:
        """The same, of events that wait too; NEVER before the first."""
        return self._latest if self._order is None else max(self._latest, self._order.greatest)

    # ------------------------------------------------------------------------------------------------------------------- running

    @named_memory()
    def push(self, events: object) -> Answer_co:
        """Read events, and give the matches that end in them, in the order of the events that end them.

        With NOT FOLLOWED BY it gives the matches that the events decide.

        events: whatever `Query.run` takes for one stream, with the columns of the recognizer's schema; or one event, as a dict of its attributes or
        as a tuple of their values in the order of the schema.

        Raises SchemaError for missing columns or other types, and InputError for NULL times and, without lateness, for times that are not in order:
        then nothing changes. Raises LimitError for more matches than max_bytes allows. A call that ends early for another reason than SchemaError or
        InputError (LimitError, Ctrl-C) leaves an incomplete state: then every method except `restore` raises SnapshotError.
        """
        with self.reading(events) as found:
            return found.all(self._allowance())

    def advance_time(self, time: object) -> Answer_co:
        """Say that no event before `time` will come, and give the matches that this decides.

        time: a datetime, date or int, as the time column has them. Events before `time` that come after this call are late; without lateness they
        are an error. Raises InputError for a time of another type.
        """
        return self.advance(time_number(time, self._source))

    @named_memory()
    def advance(self, now: int) -> Answer_co:
        """The same as `advance_time`, with the time as a number of steps of the time column."""
        with self.passing(now) as found:
            return found.all(self._allowance())

    @named_memory()
    def flush(self) -> Answer_co:
        """Read the events that wait because of the lateness, and give the matches that they decide.

        Time does not move past the last event, so matches that wait for a NOT FOLLOWED BY after it stay undecided. With THEN under ACTIVE_OFFICE or
        COMPLETE_HISTORY the events of the last time wait too; once they have been read, further ones of that time are late.
        """
        with self.ending() as found:
            return found.all(self._allowance())

    @contextlib.contextmanager
    def ending(self) -> Iterator[Decided[Answer_co]]:
        """What `flush` gives, to be made inside."""
        with self._use.alone(), self._changing():
            ready = self._nothing
            if self._order is not None:
                last = self._order.greatest
                ready = self._order.advance(last + 1) if self._ahead and last != NEVER else self._order.flush()
            yield self._found(*ready)

    def _allowance(self) -> Allowance:
        """What the matches of one call may take."""
        return Allowance(self._max_bytes, help=CALL_HELP)

    @contextlib.contextmanager
    def reading(self, events: object) -> Iterator[Decided[Answer_co]]:
        """What `push` gives, to be made inside."""
        table = self._conform(events)
        times = self._times(table)
        with self._use.alone():
            self._check_intact()
            if self._lateness is None and self._source.time_column is not None:
                check_order(
                    times,
                    table[self._source.time_column],
                    after=self.latest,
                    how="q.recognizer(.., lateness=..) accepts late events, and q.run(.., sort=True) sorts them all",
                )
                self._check_open(times)
            with self._changing():
                ready = (table, times) if self._order is None else self._order.push(table, times)
                yield self._found(*ready)

    def _check_open(self, times: Array) -> None:
        """Raise InputError for events of a time that is known to be over."""
        if self._order is not None and len(times) and int(times[0]) < self._order.watermark:
            time = python_value(pa.array(times[:1]).cast(self.schema.field(self._source.time_column).type)[0])
            raise InputError(
                f"an event of the time {time} comes after flush() has read the events of that time",
                help="THEN under ACTIVE_OFFICE or COMPLETE_HISTORY needs all events of a time together: flush() once no more of them come",
            )

    @contextlib.contextmanager
    def passing(self, now: int, more: tuple[pa.Table, Array] | None = None) -> Iterator[Decided[Answer_co]]:
        """What `advance_time` gives, to be made inside; now: in steps of the time column.

        more: further events with the columns of the schema, and their times, which are read before, where events wait for later ones.
        """
        with self._use.alone(), self._changing():
            if more is not None and self._order is not None:
                self._order.hold(*more)
            events, times = self._nothing if self._order is None else self._order.advance(now)
            self._latest = max(self._latest, now)
            yield self._found(events, times).then(self._expire)

    @named_memory()
    def undecided(self) -> Answer_co:
        """The matches that wait for the time of a NOT FOLLOWED BY to pass, and are not vetoed so far; nothing changes.

        Later calls of `push` and `advance_time` decide them. Events that wait because of the lateness are not read for this. O(state).
        """
        with self.waiting() as found:
            return found.all(Allowance(self._max_bytes))

    @contextlib.contextmanager
    def waiting(self) -> Iterator[Decided[Answer_co]]:
        """What `undecided` gives, to be made inside."""
        with self._use.alone():
            with self._changing():
                self._settle()
            yield self._undecided()

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
                f"an earlier call of this recognizer stopped in the middle of its events, so its state is incomplete. The cause: {self._ended_by}",
                help="`restore` its last snapshot, or start again with a new one",
            )

    @property
    def late(self) -> pa.Table:
        """The events that came too late, in the order of arrival: a pyarrow.Table with the recognizer's schema."""
        return no_events(self.schema) if self._order is None else self._order.late

    @property
    def enough_lateness(self) -> int | None:
        """The least lateness, in steps of the time column, that takes all events so far in the order in which they came: at least the own one.

        None without a lateness. No lateness takes an event before the time of an earlier `advance_time`, or before those that `flush` has read.
        """
        if self._lateness is None or self._order is None:
            return None
        return max(self._lateness, self._order.behind)

    def memory_usage(self) -> int:
        """How many bytes the run state takes: arrays of the kernel, marked events, keys, and the events that wait because of the lateness."""
        return self._nbytes + (0 if self._order is None else self._order.nbytes)

    @property
    def passed(self) -> int:
        """How many of the events that are being read have been read to their end, as far as that is known."""
        return 0

    def _conform(self, events: object) -> pa.Table:
        """The events with exactly the columns of the schema."""
        if isinstance(events, pa.RecordBatch | pa.Table) and self._as_they_are and events.schema == self.schema:
            return events if isinstance(events, pa.Table) else pa.Table.from_batches([events], self.schema)
        if isinstance(events, tuple) and not is_rows(events):
            if len(events) != len(self.schema):
                fact = f"the tuple has {counted(len(events), 'value')}, and the schema has {counted(len(self.schema), 'attribute')}"
                raise InputError(fact, help=f"give a value for each of {quoted(self.schema.names)}, in this order")
            events = dict(zip(self.schema.names, events, strict=True))
        if isinstance(events, dict) and any(name in events for name in self.schema.names):
            events = [events]
        if isinstance(events, Mapping):
            column = self._source.type_column
            raise InputError(
                "a recognizer reads one stream, and this is a dict of streams",
                help="push one table that is sorted by time" + (f", with the event types in the column `{column}`" if column else ""),
            )
        if isinstance(events, list | tuple) and not events:
            return no_events(self.schema)
        table = events_of(events, time=self._source.time_column)
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
        time = self._source.time_column
        return np.zeros(table.num_rows, np.int64) if time is None else times_of(table, time)

    @property
    def _nothing(self) -> tuple[pa.Table, Array]:
        return no_events(self.schema), np.zeros(0, np.int64)

    @property
    def _now(self) -> int:
        """The least time that an event may still have."""
        if self._order is None:
            return self._latest
        # Where a query looks ahead, `flush` takes a time as over, and time does not move on by that.
        return min(self._order.watermark, self._reached) if self._ahead else self._order.watermark

    def _settle(self) -> None:
        """Read what has been taken and waits to be read, if anything does."""

    # ---------------------------------------------------------------------------------------------------------------- of the queries

    @abstractmethod
    def _found(self, events: pa.Table, times: Array) -> Decided[Answer_co]:
        """What events in order decide; none: what the time that has passed decides."""

    @abstractmethod
    def _undecided(self) -> Decided[Answer_co]:
        """The matches that wait; nothing changes."""

    @abstractmethod
    def _expire(self) -> None:
        """Give back what no match needs any more."""

    @property
    @abstractmethod
    def _nbytes(self) -> int:
        """Bytes of the run state of the queries."""

    @abstractmethod
    def _fresh(self) -> Self:
        """Another one, as it was made."""

    @abstractmethod
    def _dump(self) -> tuple[dict[str, int], dict[str, Any]]:
        """Numbers and sections of the queries' state."""

    @abstractmethod
    def _load(self, numbers: dict[str, Any], sections: dict[str, Any]) -> None:
        """Go on, fresh, from what `_dump` gave; raises whatever nonsense in it raises."""

    @property
    @abstractmethod
    def _meaning(self) -> bytes:
        """Differs where state of the one cannot be read by the other."""

    # ---------------------------------------------------------------------------------------------------------------- snapshots

    @named_memory()
    def snapshot(self) -> bytes:
        """The state as bytes, for `restore` or `Query.recognizer(.., snapshot=..)`: a header with format version and fingerprint, then flat buffers.

        Raises SnapshotError if an earlier call was interrupted. O(live state).
        """
        with self._use.alone():
            with self._changing():
                self._settle()
            return self._packed()

    def _packed(self) -> bytes:
        return container.pack(self.dump(), fingerprint=self._fingerprint())

    def dump(self) -> dict[str, Any]:
        """The live state as the sections of a snapshot. O(live state)."""
        own, sections = self._dump()
        numbers = {"latest": self._latest, "events": self._events, **own, "lateness": self._lateness}
        if self._order is not None:
            numbers |= {"watermark": self._order.watermark, "newest": self._order.newest, "behind": self._order.behind}
            sections |= {"pending": container.table_bytes(self._order.pending), "late": container.table_bytes(self._order.late)}
        return sections | {"recognizer": json.dumps(numbers).encode(), "schema": self._identity.schema}

    @named_memory()
    def restore(self, data: bytes) -> Self:
        """Replace the state by that of a snapshot; returns the recognizer itself.

        Raises SnapshotError for damaged bytes, and for a snapshot of another query, schema, lateness or format version; then nothing changes.
        O(state).
        """
        fresh = self._fresh().continued(data)
        with self._use.alone():
            self.__dict__ |= {name: value for name, value in fresh.__dict__.items() if name != "_use"}
        return self

    def continued(self, data: bytes) -> Self:
        """Go on, fresh, from a snapshot; returns the recognizer itself, which is of no use where this raises, as `restore` does. O(state)."""
        sections = container.unpack(data, fingerprint=self._fingerprint(), other=self._identity.other)
        with container.reading():
            self.load(sections)
        return self

    def load(self, sections: dict[str, Any]) -> None:
        """Go on, fresh, from the sections of a snapshot; raises whatever nonsense in them raises."""
        numbers = container.numbers_of(sections["recognizer"])
        self._latest = container.time_in(numbers, "latest")
        self._events = container.number_in(numbers, "events")
        self._load(numbers, sections)
        if self._order is None:
            return
        self._order.watermark = container.time_in(numbers, "watermark")
        if "newest" in numbers:  # older snapshots have none, and begin to look anew
            self._order.newest = container.time_in(numbers, "newest")
            self._order.behind = container.number_in(numbers, "behind", most=(1 << 64) - 1)
        pending, self._order.late = (container.table_of(sections[name]) for name in ("pending", "late"))
        if not all(table.schema.equals(self.schema) for table in (pending, self._order.late)):
            raise ValueError("its held events do not fit the schema")
        self._order.load(pending, self._times(pending), latest=self._latest)

    def _fingerprint(self) -> bytes:
        return self._identity.fingerprint

    @property
    def _identity(self) -> Identity:
        attributes = {field.name: str(field.type) for field in self.schema}
        return Identity(self._meaning, attributes, self._group_nulls, self._lateness, self._ties, self._source.unit)


def is_rows(events: tuple[Any, ...]) -> bool:
    """Whether a tuple is several events, as dicts, and not the values of one."""
    return all(isinstance(value, dict) for value in events)


def _cast(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """A column of a batch in the type of the schema: of the same values, or all NULL."""
    if column.type == field.type:
        if pa.types.is_dictionary(column.type) and any(chunk.dictionary.null_count for chunk in column.chunks):
            # Arrow puts no dictionaries together that have NULL among their values.
            return pa.chunked_array([plain(chunk).dictionary_encode() for chunk in column.chunks]).cast(column.type)
        return column
    values = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    families = ["number" if pa.types.is_decimal(kind) else family(canonical(kind) or kind) for kind in (column.type, values)]
    with contextlib.suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        if families[0] in (families[1], "NULL"):
            # Arrow casts to dictionaries of texts alone.
            return (column if values == field.type else column.cast(values).dictionary_encode()).cast(field.type)
    raise SchemaError(f"`{field.name}` is {column.type} in the batch and {field.type} in the schema", help="cast the column of the batch")


def steps_of(lateness: object, schema: EventSchema, *, option: str = "lateness") -> int:
    """A lateness in steps of the time column: a number of steps, a timedelta, or a text such as "10s".

    Raises InputError, which names the option, for negative or unreadable ones, and where the column has no unit for a duration.
    """
    if schema.time_column is None:
        raise InputError("lateness needs a time column, and the events have none", help="name it with time=")
    said = _said(option, lateness)
    if isinstance(lateness, int) and not isinstance(lateness, bool):
        steps = lateness
    else:
        nanoseconds = nanoseconds_of(lateness, option=option)
        if schema.unit is None:
            raise InputError(f"{said} has a unit, and the time column `{schema.time_column}` has none", help="give a number of steps")
        steps = -(-nanoseconds // schema.unit)
    if steps > MAX_STEPS:
        raise LimitError(
            f"{said} is {steps} steps of the time column; the limit is {MAX_STEPS} (MAX_STEPS)", help="give a shorter lateness"
        )
    if steps < 0:
        raise InputError(f"{said} is negative", help="give a duration of zero or more")
    return steps


def _said(option: str, given: object) -> str:
    """An option with its value, as it is written in Python or on the command line."""
    return f"{option} {given}" if option.startswith("--") else f"{option}={given!r}"


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
    timedelta = "" if option.startswith("--") else ", or as a timedelta"
    raise InputError(f"{_said(option, given)} is not a duration", help=f'write it like "10 minutes" or "10s"{timedelta}')
