"""A query over events that arrive: lines of JSON in, each match as a line of JSON when it is decided.

Comes in: bytes, see `arriving`. Goes out: matches on the standard output, notes on the standard error. What is there to read is one batch, so a fast
pipe costs little per event, and a slow one waits for nothing.
"""

from __future__ import annotations

import datetime as dt
import json
import time as clock
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np
import pyarrow as pa

from cepheid.cli import lined
from cepheid.cli.arriving import WholeLines
from cepheid.cli.failures import complain
from cepheid.cli.results import row_value, rows_of, time_text
from cepheid.cli.run import dropped, waiting
from cepheid.engine.input.event_times import times_of
from cepheid.engine.input.named_types import NamedTypes
from cepheid.engine.input.order import NEVER, ReorderBuffer, check_ties
from cepheid.engine.memory.process import named_memory
from cepheid.engine.output.matches import python_value
from cepheid.engine.run.equal_times import EqualTimes
from cepheid.engine.run.intake import nanoseconds_of, steps_of
from cepheid.engine.run.recognizer import Recognizer
from cepheid.errors import CepheidError, InputError, SchemaError, counted, did_you_mean
from cepheid.logical.describe import duration_text
from cepheid.schema import DEFAULT_TIME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import cepheid
    from cepheid.cli.arriving import Arriving
    from cepheid.cli.settings import Watching
    from cepheid.engine.memory.pools import Array
    from cepheid.engine.run.intake import Decided
    from cepheid.schema import EventSchema

TICK = 0.2
"""Seconds without a line after which time moves by the clock, and between two such moves."""

OTHER_FILES = "cepheid run QUERY FILE reads CSV and Parquet files; watch reads JSON lines alone"
"""What helps where already the first line begins like no object."""

AT_THE_END = "the events ended before; cepheid run QUERY FILE --until end takes it that nothing follows"
"""What decides the matches that wait when the lines end."""


def watch(query: cepheid.Query, arriving: Arriving, settings: Watching, schema: pa.Schema | None, out: TextIO) -> None:
    """Print the matches in what arrives, until it ends. schema: of a file of such events, or None.

    Raises the errors of binding and evaluation, and InputError for a line that is no event, once the matches before it are printed.
    """
    Watcher(settings, lambda first: Run.of(query, first, settings, schema, out)).watch(arriving)


class Watcher:
    """A query at its lines. begun: makes the run, of the first line that is an event; it raises InputError for a wrong one."""

    def __init__(self, settings: Watching, begun: Callable[[lined.Line], Run]) -> None:
        if settings.lateness is not None and not settings.lateness.isdecimal():
            nanoseconds_of(settings.lateness, option="--lateness")
        if settings.clock and settings.lateness is None:
            raise InputError("--clock needs --lateness", help="say how long after its time an event may arrive: --lateness 5s")
        if settings.order and settings.lateness is None:
            raise InputError(
                "--order needs --lateness: without it no event waits for others of its time",
                help="--lateness 0s makes only the events of the newest time wait (--lateness 0 where times are numbers)",
            )
        self._settings = settings
        self._begun = begun
        self._lines = WholeLines()
        self._run: Run | None = None
        self._bad = 0
        self._passed = clock.monotonic()

    def watch(self, arriving: Arriving) -> None:
        """Read what arrives, until it ends."""
        with self.reported():
            while (data := arriving.read(self._patience)) is not None:
                self.take(data)
            self.end()

    @property
    def _patience(self) -> float | None:
        """Seconds to wait for a line."""
        return TICK if self._settings.clock else None

    def take(self, data: bytes) -> None:
        """Read some more bytes, or none for a while. By the clock time moves, also where lines come that are no events."""
        if data:
            self._read(self._lines.feed(data))
        if self._settings.clock and self._run is not None and clock.monotonic() - self._passed >= (TICK if data else 0):
            self._run.pass_time()
            self._passed = clock.monotonic()

    def end(self) -> None:
        """Nothing follows: read the last line, and the events that wait."""
        self._read(self._lines.end())
        if self._run is not None:
            self._run.flush()

    def _read(self, contents: list[bytes]) -> None:
        """Read lines: the events before the first bad one are read before it is raised."""
        good: list[lined.Line] = []
        try:
            for content in contents:
                self._lines.number += 1
                try:
                    line = lined.line_of(self._lines.number, content)
                except InputError as error:
                    other = self._lines.number == 1 and not content.lstrip().startswith(b"{")
                    error.help = (*error.help, OTHER_FILES if other else lined.SKIP)
                    self._refuse(error)
                else:
                    good += [] if line is None else [line]
        finally:
            self._events(good)

    def _events(self, lines: list[lined.Line]) -> None:
        while self._run is None and lines:
            try:
                self._run = self._begun(lines[0])
            except InputError as error:
                self._refuse(error)
                lines = lines[1:]
        if self._run is None:
            return
        attributes = self._run.attributes
        try:
            table = attributes.table(lines)
            whole = not (attributes.untimed and any(DEFAULT_TIME in line.event for line in lines))
            whole = whole and (attributes.time is None or not table[attributes.time].null_count)
        except lined.UNFIT:
            whole = False
        if whole:
            self._run.read(table, lines)
            return
        good: list[lined.Line] = []
        try:
            for line in lines:
                try:
                    attributes.check(line)
                except InputError as error:
                    self._refuse(error)
                else:
                    good.append(line)
        finally:
            if good:
                self._run.read(attributes.table(good), good)

    def _refuse(self, error: InputError) -> None:
        """A bad line: an error, or counted."""
        if not self._settings.skip_bad_lines:
            raise error
        self._bad += 1
        if self._bad == 1:
            complain(f"note: a line is left out, as all bad ones from here on: {error.fact}")

    @contextmanager
    def reported(self) -> Iterator[None]:
        """What is done inside ends with a report."""
        started = clock.monotonic()
        complete = False
        try:
            yield
            complete = True
        except (KeyboardInterrupt, CepheidError):
            self._report(started, complete=False)
            raise
        if complete:
            self._report(started, complete=True)

    def _report(self, started: float, *, complete: bool) -> None:
        notes = [] if self._run is None else self._run.notes(complete=complete)
        if self._bad:
            notes.append(f"{counted(self._bad, 'bad line')} left out")
        for note in notes:
            complain(f"note: {note}")
        matches, events = (0, 0) if self._run is None else (self._run.matches, self._run.events)
        complain(f"{counted(matches, 'match', 'matches')} in {counted(events, 'event')} ({clock.monotonic() - started:.1f} s)")


@dataclass
class Run:
    """The recognizer of a query, and what goes in and comes out of it. types, ties: what looks at the events for warnings; None: nothing does."""

    attributes: lined.Attributes
    source: EventSchema
    recognizer: Any
    order: ReorderBuffer | None
    out: TextIO
    types: NamedTypes | None = None
    ties: EqualTimes | None = None
    events: int = 0
    matches: int = 0
    late: int = 0
    latest: int = NEVER
    unseen: set[str] = field(default_factory=set)
    seen: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, query: cepheid.Query, first: lined.Line, settings: Watching, schema: pa.Schema | None, out: TextIO) -> Run:
        """For events like the first; raises the errors of binding."""
        attributes = lined.attributes_of(query, first, schema, settings)
        source = query.schema(attributes.schema, type=attributes.type, time=attributes.time)
        compiled = query.compiled(source)
        types = NamedTypes(compiled.plan, compiled.programs, group_nulls=settings.null_keys == "group")
        # Interleaved: matches come in the order of the events that end them, however many one batch has.
        ties = None if settings.order else EqualTimes(compiled)
        recognizer = Recognizer(compiled, null_keys=settings.null_keys, interleaved=True, types=types, ties=ties)
        order = ordering(attributes, source, settings)
        return cls(attributes, source, recognizer, order, out, types=types, ties=ties, unseen=set(attributes.kinds))

    def read(self, table: pa.Table, lines: list[lined.Line]) -> None:
        """Read events. Without lateness, raises InputError for the first that is earlier than the one before it, once those before are read."""
        if self.unseen:
            for line in lines:
                self.seen |= line.event.keys()
            self.unseen -= self.seen
        if self.attributes.time is None:
            self._push(table)
            self.events += table.num_rows
            return
        times = times_of(table, self.attributes.time)
        if self.order is None:
            good = self._ordered(times)
            self.events += good
            self._push(table.slice(0, good))
            self.latest = max(self.latest, int(times[:good].max(initial=self.latest)))
            if good < len(times):
                raise self._unordered(table, lines, good)
            return
        self.events += table.num_rows
        ready, _ = self.order.push(table, times)
        self._count_late(self.order.take_late())
        self._push(ready)
        self._pass(self.order.watermark)

    def _ordered(self, times: Array) -> int:
        """How many events, from the first on, are in order."""
        wrong = np.flatnonzero(times < np.concatenate([[self.latest], times[:-1]]))
        return int(wrong[0]) if len(wrong) else len(times)

    def _unordered(self, table: pa.Table, lines: list[lined.Line], row: int) -> InputError:
        column = table[self.attributes.time]
        before = pa.array([self.latest], pa.int64()).cast(column.type)[0]
        way = (
            "--lateness 10 takes events that come up to 10 later"
            if self.source.unit is None
            else "--lateness 10s takes events that come up to 10 seconds late"
        )
        return InputError(
            f"line {lines[row].number}: the event is from {shown(column[row])}, and one before it from {shown(before)}",
            help=way,
        )

    def _count_late(self, late: pa.Table) -> None:
        if late.num_rows and not self.late:
            time = shown(late[self.attributes.time][0])
            complain(f"note: an event from {time} came too late and is left out, as all such events from here on")
        self.late += late.num_rows

    def pass_time(self) -> None:
        """Time goes on by the clock: what is older than the lateness is no longer expected."""
        assert self.order is not None
        kind = self.source.time_type
        now = pa.array([dt.datetime.now(dt.UTC)], pa.timestamp("us", "UTC")).cast(kind, safe=False)[0].value - self.order.lateness
        if now > self.order.watermark:
            ready, _ = self.order.advance(now)
            self._push(ready)
            self._pass(now)

    def flush(self) -> None:
        """No event follows: read those that wait. Time is that of the last event, as in a run over a file."""
        if self.order is not None:
            ready, _ = self.order.flush()
            self._push(ready)
        latest = self.recognizer.latest
        if latest is not None:
            self._pass(latest + 1)

    def _push(self, events: pa.Table) -> None:
        if events.num_rows:
            with named_memory(), self.recognizer.reading(events) as found:
                self._print(found)

    def _pass(self, now: int) -> None:
        if now > NEVER:
            with named_memory(), self.recognizer.passing(now) as found:
                self._print(found)

    def _print(self, found: Decided[Any]) -> None:
        for piece in found.pieces():
            for row in self._rows(piece):
                self.matches += 1
                self.out.write(text_of(row) + "\n")
            self.out.flush()

    def _rows(self, found: Any) -> Iterator[dict[str, Any]]:
        """Each match as it is printed."""
        yield from rows_of(found.to_arrow(events=True))

    def notes(self, *, complete: bool) -> list[str]:
        """What the user must know of in the end; complete: the end has been reached."""
        unseen = sorted(self.unseen) if self.events else []
        told = [": ".join([f"no event has the attribute `{name}`", *did_you_mean(name, self.seen)]) for name in unseen]
        told += self._dropped()
        told += () if self.ties is None else self.ties.warnings
        if self.late:
            told.append(f"{counted(self.late, 'event')} came too late and {'is' if self.late == 1 else 'are'} left out{self._enough()}")
        if not complete:
            held = 0 if self.order is None else len(self.order)
            return [
                *told,
                *([f"{counted(held, 'event')} waited for late ones and {'is' if held == 1 else 'are'} not read"] if held else []),
            ]
        return [*told, *waiting(self._undecided(), way_out=AT_THE_END), *(() if self.types is None else self.types.warnings)]

    def _dropped(self) -> list[str]:
        """The notes on events without a key."""
        return dropped(self.recognizer.null_keys)

    def _enough(self) -> str:
        """The lateness that would have taken all events so far."""
        assert self.order is not None
        assert self.order.lateness is not None
        steps = self.order.lateness + self.order.missed
        length = str(steps) if self.source.unit is None else duration_text(steps * self.source.unit)
        return f": --lateness {length} would have taken all"

    def _undecided(self) -> int:
        """How many matches wait."""
        with self.recognizer.waiting() as found:
            return sum(map(len, found.pieces()))


def ordering(attributes: lined.Attributes, source: EventSchema, settings: Watching) -> ReorderBuffer | None:
    """Where events wait for late ones; None without a lateness. Raises InputError and SchemaError for options that do not go with these times."""
    if settings.clock and (source.unit is None or getattr(source.time_type, "tz", None) is None):
        raise SchemaError(
            f"--clock needs times with an offset, and `{source.time_column}` is {source.time_type}",
            help="the clock is compared with them: write 2026-01-31T12:00:00Z, or with +01:00",
        )
    if settings.lateness is None:
        return None
    lateness: Any = int(settings.lateness) if settings.lateness.isdecimal() else settings.lateness
    if isinstance(lateness, int) and lateness and source.unit is not None:
        raise InputError(
            f"--lateness {lateness} has no unit, and the times of `{source.time_column}` are no numbers",
            help=f"write it with one: --lateness {lateness}s",
        )
    check_ties(attributes.schema, settings.order)
    return ReorderBuffer(attributes.schema, steps_of(lateness, source, option="--lateness"), ties=settings.order)


def shown(time: pa.Scalar) -> str:
    """A time in a message."""
    value = python_value(time)
    return time_text(value) if isinstance(value, dt.datetime) else str(value)


def text_of(row: dict[str, Any]) -> str:
    """A match as JSON: its events as the lines that they came in."""
    return "{" + ", ".join(f"{json.dumps(name, ensure_ascii=False)}: {_value(value)}" for name, value in row.items()) + "}"


def _value(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(event, dict) and lined.LINE in event for event in value):
        return "[" + ", ".join(map(_event, value)) + "]"
    return json.dumps(row_value(value), ensure_ascii=False, allow_nan=False)


def _event(event: dict[str, Any]) -> str:
    """An event as it came; one that a definition has made, as its attributes."""
    line = event[lined.LINE]
    own = {name: row_value(value) for name, value in event.items() if name != lined.LINE and value is not None}
    return json.dumps(own, ensure_ascii=False, allow_nan=False) if line is None else str(line)
