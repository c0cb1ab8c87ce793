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

import itertools
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.engine.evaluations.absences.absence import decided_at
from cepheid.engine.input.order import NEVER, ReorderBuffer
from cepheid.engine.letters.values import one_chunk
from cepheid.engine.memory import container
from cepheid.engine.memory.process import CHOOSE, process_memory
from cepheid.engine.output.identity import Repeats
from cepheid.engine.run.allowance import Allowance
from cepheid.engine.run.parts import Form
from cepheid.errors import InputError, LimitError, SnapshotError
from cepheid.spark.tasks import shared
from cepheid.spark.tasks.bounds import LAST_TIME, YEARS
from cepheid.spark.tasks.layers import LAYERED, LayeredState
from cepheid.spark.tasks.packing import blobs, steps
from cepheid.spark.tasks.pages import Pages, whole
from cepheid.spark.tasks.renewal import handed_over
from cepheid.spark.tasks.rows import piece_rows
from cepheid.spark.tasks.states import QueryStates
from cepheid.spark.tasks.worker import TIME, aligned

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cepheid.engine.memory.pools import Array
    from cepheid.engine.run.query_state import DecidedMatches
    from cepheid.spark.tasks.store import Store
    from cepheid.spark.tasks.unit import Unit

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
    f"if one event has too many matches, {CHOOSE}; this is another query and needs a new checkpoint",
)


def stream_max_bytes() -> int:
    """The bytes that the matches of one visit of a bucket may take where nobody says: executors run several workers, and copy what these give."""
    return min(OUTPUT_BYTES, process_memory() // OUTPUT_SHARE)


@dataclass(slots=True)
class Visit:
    """What one visit of a bucket gives.

    rows: blobs of rows, each with the time (microseconds) at which the first of them is decided; late events, where they are asked for, are
    rows too. counts: see `visits.COUNTS`. deadline: the least watermark (milliseconds) at which the bucket has to be looked at again, None: never.
    """

    rows: list[tuple[int, bytes]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    deadline: int | None = None


def form_of(unit: Unit) -> Form | None:
    """How the state of the queries of a unit is cut by keys; None where it is not. It takes milliseconds, once for all buckets."""
    if unit.ruled or unit.page_keys == 0 or whole(unit.compiled) is not None:
        return None
    part = QueryStates(unit, range(len(unit.compiled)))
    lags = part.lags
    return Form(part.partitions.schema, part.states, shared.groups(part.states), lags.schema if lags.lags else None)


class Bucket:
    """The run state of all queries of a `Unit` over the keys of one bucket.

    store, form: of the pages that its keys may be in, and how they are cut (`form_of`); None: there are none.
    """

    def __init__(self, unit: Unit, store: Store | None = None, form: Form | None = None) -> None:
        self.unit = unit
        self.store, self.form = store, form
        self.tasks, self.compiled, self.views = unit.unpacked, unit.compiled, unit.views
        self.schema, self.output = unit.travelling, unit.row
        self.order = ReorderBuffer(self.schema, None, ties=unit.ties)
        self.max_bytes = unit.max_bytes or stream_max_bytes()
        self.parts = self._made()
        self.pages = self._pages()
        self.events = 0
        self.latest = NEVER
        self.timers: list[int] = []
        self.empty = True  # nothing is left to remember

    def _made(self) -> list[Any]:
        """The run states, fresh: those of plain queries together, and one of each with definitions."""
        unit = self.unit
        plain = [number for number, compiled in enumerate(self.compiled) if not compiled.layers]
        layered = [number for number, compiled in enumerate(self.compiled) if compiled.layers]
        together = [QueryStates(unit, plain)] if plain else []
        return [*together, *(LayeredState(unit, number, max_bytes=self.max_bytes) for number in layered)]

    def _pages(self) -> Pages | None:
        """The pages that the keys may be in; None where they cannot."""
        part, form = self.parts[0], self.form
        if self.store is None or form is None or not isinstance(part, QueryStates):
            return None
        return Pages(part, form, self.store, forced=self.unit.page_keys)

    # ------------------------------------------------------------------------------------------------------------------- running

    def step(self, tables: Sequence[pa.Table], watermark: int, *, before: int = NEVER, after: int = NEVER) -> Visit:
        """Take events, and decide what the watermark (milliseconds) allows; raises InputError past LAST_TIME.

        before, after: the least time that a later event might have before these events came, and with them (microseconds), where the partitions of
        the source say more than the watermark. O(events log events), and the kernels' time.
        """
        now = watermark * MICROS + 1
        if now > LAST_TIME:
            raise InputError(
                f"the watermark is after {YEARS}: an event with such a time in `{self.tasks[0].time_name}` moved it, and q.on never saw that event",
                help=(
                    f"a watermark never goes back: start with a new checkpointLocation; {handed_over(self.compiled)}",
                    "and give lateness= instead of withWatermark, or leave such events out before withWatermark",
                ),
            )
        self.order.watermark = max(self.order.watermark, now, before)  # what comes now, and is before it, is late
        self._hold(tables)
        late = self.order.take_late()
        known = max(self._known(now), after, self.order.watermark)
        matches = 0

        def dated() -> Iterator[tuple[pa.Table, Array]]:
            nonlocal matches
            for rows, times in self._decided(known, Allowance(self.max_bytes, counts=False, help=OUTPUT_HELP)):
                matches += len(times)
                yield self._dated(rows, times), times

        def others() -> Iterator[tuple[pa.Table, Array]]:
            yield from self._late(late, now)
            yield from self._refused(now)

        step = Visit(_within_limit(blobs(itertools.chain(dated(), others()))))
        self.expire(known)
        step.counts = {
            "events": sum(table.num_rows for table in tables),
            "late": late.num_rows,
            "matches": matches,
            "waiting": len(self.order),
            "keys": self.keys,
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
        if self.unit.lateness is None or not len(self.order):
            return now
        # As Spark computes it: in whole milliseconds.
        return max(now, (self.order.greatest // MICROS - self.unit.lateness) * MICROS + 1)

    def _decided(self, now: int, allowance: Allowance | None = None) -> Iterator[tuple[pa.Table, Array]]:
        events, times = self.order.advance(now)
        first, before = self.events, self.latest
        self.events += events.num_rows
        self.latest = max(self.latest, int(times.max(initial=NEVER)))
        if self.pages is not None:
            self._turn_to(self.pages, events, first=first, before=before, start=int(times[0]) if len(times) else now, now=now)
        if not len(times):
            return self._rows(((part, part.advance(now)) for part in self.parts), allowance)
        return self._rows(((part, part.read(events, times, first=first, now=now)) for part in self.parts), allowance)

    def _turn_to(self, pages: Pages, events: pa.Table, *, first: int, before: int, start: int, now: int) -> None:
        """Have the state of the keys of some events."""
        if not pages.on:
            pages.visited(events)
            return
        pages.write(latest=before)
        if pages.stale:
            self.parts = [pages.renewed()]
        pages.fetch(events, before=before, latest=self.latest, events_before=first, start=start, now=now)

    def undecided(self) -> Iterator[pa.Table]:
        """The rows of the matches that wait for their time of absence to pass, and that nothing vetoes so far. O(state); nothing changes."""
        return (rows for rows, _ in self._rows((part, part.undecided()) for part in self.parts))

    def _rows(
        self, parts: Iterable[tuple[Any, Sequence[DecidedMatches]]], allowance: Allowance | None = None
    ) -> Iterator[tuple[pa.Table, Array]]:
        """The rows of each query's matches as they are made, and when they are decided; raises LimitError past the allowance."""
        for number, own_found in ((number, own) for part, found in parts for number, own in zip(part.numbers, found, strict=True)):
            name = None if self.unit.queries is None else self.unit.queries[number]
            repeats = Repeats()  # equal rows are decided together
            for matches in own_found.pieces(allowance):
                for own in self.views[number].pieces(matches, repeats):
                    if allowance is not None:
                        allowance.used += own.nbytes
                    rows = own if name is None else own.add_column(0, "query", pa.repeat(name, own.num_rows))
                    compiled = self.compiled[number]
                    decided = decided_at(compiled.absences, steps(own["start_time"]), steps(own["end_time"]))
                    yield aligned(rows, self.output), decided + compiled.settled

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

    def _refused(self, now: int) -> Iterable[tuple[pa.Table, Array]]:  # noqa: ARG002 - of a `RuleBucket`
        """Rows that say what else did not come in."""
        return ()

    # ---------------------------------------------------------------------------------------------------------------- giving back

    def expire(self, now: int) -> None:
        """Forget the keys in which nothing can go on in any query, and the events that no match can show."""
        for part in self.parts:
            part.expire(now)
        others = 0 if self.pages is None else self.pages.keys
        self.empty = all(part.empty for part in self.parts) and not others and not len(self.order)

    def _deadline(self) -> int | None:
        """The least watermark (milliseconds) at which something is decided, or (if nothing waits) at which every key is idle."""
        waiting = [self.order.least] if len(self.order) else []
        waiting += [deadline for part in self.parts for deadline in part.deadlines]
        if self.pages is not None and self.pages.due.least is not None:
            waiting.append(self.pages.due.least)
        if waiting:
            return -(-min(waiting) // MICROS)
        horizon = self.horizon if all(part.forgets for part in self.parts) else None
        return None if horizon is None or not self.keys else -(-(self.latest + horizon) // MICROS) + 1

    @property
    def keys(self) -> int:
        """How many keys have a state."""
        return max(part.keys for part in self.parts) if self.pages is None else self.pages.all_keys

    @property
    def horizon(self) -> int | None:
        """How long after its time an event can matter to some query; None: for ever."""
        horizons = [part.horizon for part in self.parts]
        return None if None in horizons else max(horizon or 0 for horizon in horizons)

    # ---------------------------------------------------------------------------------------------------------------- state as bytes

    def dump(self) -> bytes:
        """The state, without what stands in pages, which are written; raises LimitError past STATE_LIMIT. O(live state), or the pages read."""
        numbers: dict[str, Any] = {
            "events": self.events,
            "latest": self.latest,
            "watermark": self.order.watermark,
            "timers": self.timers,
            "buckets": self.unit.buckets,
        }
        states: dict[str, Any] = {}
        pages = self.pages
        if pages is not None and pages.on:
            pages.write(latest=self.latest)
        else:
            for part in self.parts:
                states |= part.dump(latest=self.latest)
        if pages is not None and (pages.on or pages.turn(states, latest=self.latest, now=self.order.watermark)):
            numbers["pages"], states = pages.dump()
        elif pages is not None:
            numbers["regret"] = pages.regret
        sections = {"bucket": json.dumps(numbers).encode(), "pending": container.table_bytes(self.order.pending), **states}
        data = container.pack(sections, fingerprint=self.unit.fingerprint, compress=True)
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
            self.order.watermark = container.time_in(numbers, "watermark")
            pending = self._conformed(container.table_of(sections["pending"]))
            if pending[TIME].null_count:
                raise ValueError("waiting events have no time")
            self.order.load(pending, steps(pending[TIME]), latest=self.latest)
            if "pages" in numbers:
                self._load_pages(numbers["pages"], sections)
            elif self.pages is not None:
                self.pages.regret = container.number_in({"regret": 0} | numbers, "regret")
            for part in self.parts:
                part.check(pending)
                if "pages" in numbers:
                    continue
                own = {name: content for name, content in sections.items() if name.startswith(LAYERED) == isinstance(part, LayeredState)}
                part.load(own, latest=self.latest, events=self.events)
        self._check_buckets(buckets)
        return self

    def _load_pages(self, numbers: Any, sections: dict[str, Any]) -> None:
        if self.pages is None or not isinstance(numbers, dict):
            raise ValueError("it has pages where there cannot be any")
        self.pages.load(numbers, sections)

    def clear(self) -> None:
        """Forget the pages, of a bucket in which nothing is left to remember."""
        if self.pages is not None and self.pages.on:
            self.pages.clear()

    @property
    def size(self) -> int:
        """Bytes of its pages, and of when these are to be looked at."""
        return self.pages.size + self.pages.due.size if self.pages is not None and self.pages.on else 0

    def _conformed(self, events: pa.Table) -> pa.Table:
        """Events that waited, with the columns that travel now: what is new among these only late events show, which they will not be."""
        had = set(events.column_names)
        columns = [
            events[name].cast(kind) if name in had else pa.nulls(len(events), kind)
            for name, kind in zip(self.schema.names, self.schema.types, strict=True)
        ]
        return pa.Table.from_arrays(columns, schema=self.schema)

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
        return container.unpack(data, fingerprint=self.unit.fingerprint, **refused(self.unit))

    def _check_buckets(self, stored: int) -> None:
        """Keys would look for their state in other buckets than those that have it."""
        if stored != self.unit.buckets:
            raise SnapshotError(
                f"the checkpoint spreads the keys over {stored} buckets, and the query now over {self.unit.buckets}",
                help=(
                    f"give q.on(.., buckets={stored}); without buckets= the number follows spark.sql.shuffle.partitions",
                    f"or start with a new checkpointLocation: {handed_over(self.compiled)}",
                ),
            )


def refused(unit: Unit) -> dict[str, Any]:
    """What is said of bytes that a stream of a unit does not take: the arguments of `container.unpack`."""
    again = f"start it with a new checkpointLocation: {handed_over(unit.compiled)}"

    def other(*_: object) -> SnapshotError:
        return SnapshotError(
            "the checkpoint was made by another query, or over columns of other types, or with another order=",
            help=(again, "or go back to the queries that wrote it, with their names, arguments and order"),
        )

    return {"other": other, "again": again}


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
