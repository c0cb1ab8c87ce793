"""One query over one whole table: letters, partitions, one pass of the kernel, matches in the order of their last events.

Comes in: a `Compiled` query and a table with its schema. Goes out: `Matches` whose events are the rows of that table, without a copy.
"""

from __future__ import annotations

import dataclasses
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from cepheid.engine.evaluations.absences.absence import Ends, longest, undecided, vetoed_events, vetoed_matches
from cepheid.engine.evaluations.base import collect
from cepheid.engine.evaluations.counts.chosen_count import counted
from cepheid.engine.evaluations.events import Events
from cepheid.engine.input.event_times import check_order, check_order_columns, in_order, times_of
from cepheid.engine.input.keys import group, key_codes, key_table
from cepheid.engine.input.lags import lagged_table
from cepheid.engine.input.named_types import NamedTypes
from cepheid.engine.input.order import NEVER
from cepheid.engine.input.partitions import Arrived
from cepheid.engine.letters.encoded import Texts
from cepheid.engine.output.marks import Even, Ragged
from cepheid.engine.output.matches import Matches
from cepheid.engine.output.measures import measured
from cepheid.engine.run.allowance import Allowance
from cepheid.engine.run.beginnings import PLACE, begun
from cepheid.engine.run.having import Having
from cepheid.engine.run.together import SPARSE, EvenChunk, PartitionPlaces, chunk_of, even_in_stream_order, ragged_in_stream_order
from cepheid.language.syntax import Consumption
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cepheid.engine.evaluations.base import AnyEvaluation, Chunk
    from cepheid.engine.evaluations.progress import Progress
    from cepheid.engine.input.keys import Groups
    from cepheid.engine.memory.pools import Array
    from cepheid.engine.plan.compiled import Compiled
    from cepheid.engine.run.equal_times import TiedRows
    from cepheid.schema import EventSchema

STEP = 1 << 22
"""Events per call of the kernel: progress is reported in between."""

GATHERED = 1 << 17
"""The same where events are gathered for it: they stay in the cache, and the memory of one step serves the next one."""


FIRST = 1 << 4
"""Events of the first step where progress is reported: how slow the query is, is not known yet."""

SECONDS = 0.3
"""What such a step should take: then progress is said about as often, however slow the query is; inside a step `Progress.beat` says it."""


def _steps(total: int, most: int, *, told: bool, begin: Array | None = None) -> Iterator[tuple[int, int]]:
    """Where the steps of a run start and stop: at most so many events each; told: progress is, so that slow ones get shorter.

    begin: where a step may begin, ascending, None: anywhere; a step goes on to the next such place.
    """
    start, step = 0, min(most, FIRST) if told else most
    while start < total:
        stop, began = min(start + step, total), monotonic()
        if begin is not None:
            stop = next(iter(begin[np.searchsorted(begin, stop) :][:1].tolist()), total)
        yield start, stop
        if told:
            step = max(1, min(most, 2 * step, int(step * SECONDS / max(monotonic() - began, SECONDS / 2))))
        start = stop


@record
class _Rows:
    """Where the events of the partitions stand.

    places: in the stream, partition by partition, None: the stream is one partition. rows: the same, in the table; None: as they are. cuts: where
    each partition starts in both. written: the position of each place in its partition of PARTITION BY, where equalities partition that further.
    """

    places: Array | None
    rows: Array | None
    cuts: Array
    written: Array | None = None

    def grouped(self, segments: Array, positions: Array, lengths: Array | None = None) -> Array:
        """Where events stand, partition by partition: their positions, and the partition of each, or of so many of them."""
        if self.places is None:
            return positions
        starts = self.cuts[segments]
        return (starts if lengths is None else np.repeat(starts, lengths)) + positions

    def standing(self, total: int) -> PartitionPlaces:
        """The same for matches that are put in the order of the stream; total: rows of the table."""
        assert self.places is not None
        assert self.rows is not None
        return PartitionPlaces(self.rows, self.cuts, self.places, total)

    def rows_of(self, grouped: Array) -> Array:
        """The rows of the table where these stand (int64)."""
        return grouped if self.rows is None else self.rows[grouped].astype(np.int64, copy=False)

    def ends(self, found: Chunk, positions: Array, times: Array) -> Ends:
        """The events that end some matches, with other positions than theirs."""
        return Ends(found.segments, positions, times[self.rows_of(self.grouped(found.segments, found.ends))])


def run(
    compiled: Compiled,
    events: pa.Table,
    *,
    sort: bool = False,
    order: Sequence[str] = (),
    null_keys: str = "drop",
    until: int | str | None = None,
    sample: int | None = None,
    variant: str | None = None,
    progress: Progress | None = None,
    max_bytes: int | None = None,
    ties: TiedRows | None = None,
) -> Matches:
    """The matches of a query over a table.

    events: has the schema that the query was compiled for. sort: put unsorted events in order (stably) instead of an error. order: columns that
    decide between events of equal time, before the row order. null_keys: "drop" or "group". until: up to which time the table is complete, None
    for its greatest time, "end" where nothing will follow: what must not follow a match is known until then. sample: of each trigger at most so
    many matches, spread over all of them. progress: is told how far it is. max_bytes: what the matches may take, see `Allowance`. ties: is
    shown the rows. Raises InputError for NULL or unsorted times, SchemaError for unknown `order` columns, LimitError
    past max_bytes. Linear in rows and output, but for sorting.
    """
    times, stream = ordered(compiled.schema, events, sort=sort, order=order)
    groups, where, null_count = _partitioned(compiled, events, stream, null_keys=null_keys)
    texts = Texts()
    read_events = lagged_table(events, compiled.lags, where.rows, where.cuts) if compiled.lags else events
    readers = compiled.readers(texts)
    read, *negated = (
        Events(letters, times, values=values)
        for letters, values in (
            reader.apart(read_events, positions=lambda: _positions_of_rows(compiled, events, where)) for reader in readers
        )
    )
    types = NamedTypes(compiled.plan, compiled.programs, derived=True, group_nulls=null_keys == "group")
    all_letters = [each.letters for each in (read, *negated)]
    types.see(events, all_letters, readers)
    if ties is not None:
        ties.see(compiled, events, times, all_letters, where.rows, where.cuts)
    warnings = (*types.warnings, *(() if ties is None else ties.warnings))
    followers = _followers(compiled, negated, events, times, where, variant=variant, texts=texts)
    vetoed = _vetoed_rows(compiled, followers, times, where) if followers else None
    having = _Judging(compiled, events, where) if compiled.judges else None
    judge = None if having is None else having.left
    evaluation = compiled.evaluation(variant=variant, sample=sample, texts=texts, judge=judge)
    heeded = vetoed if compiled.heeds_vetoes else None
    read = dataclasses.replace(read, vetoed=heeded, worth=None if having is None else having.heed(evaluation, read.letters))
    if groups is not None and compiled.consume is Consumption.ANY:
        chunks = interleaved_chunks(evaluation, read, stream, groups, progress=progress, together=compiled.looks_ahead)
    else:
        before, together = None if having is None else having.read, compiled.looks_ahead
        chunks = grouped_chunks(evaluation, read, where.rows, where.cuts, progress=progress, before=before, together=together)
    maker: AnyEvaluation | None = None if compiled.counts_later else evaluation
    if compiled.earlier:
        places = _begins(events)
        labels = compiled.layout.labels
        chunks = begun(
            chunks, labels, lambda chunk: places[where.rows_of(where.grouped(chunk.segments, chunk.positions, np.diff(chunk.offsets)))]
        )
    if having is not None:
        chunks, maker = having.judged(chunks), None
    if vetoed is not None and heeded is None:
        chunks = (chunk.take(np.flatnonzero(~vetoed[where.rows_of(where.grouped(chunk.segments, chunk.ends))])) for chunk in chunks)
    found = Allowance(max_bytes).collect(chunks, maker, named=lambda chunk: _matches(compiled, events, chunk, where)[0])
    if vetoed is None:
        del (
            read,
            all_letters,
            chunks,
            evaluation,
            maker,
            times,
        )  # PERF: the matches get their memory, for new memory costs more than what is done to it
        return dataclasses.replace(_matches(compiled, events, found, where), null_keys=null_count, warnings=warnings)
    found = chunk_of(found)
    given, waiting = _decided(compiled, followers, times, found, where, until=until)
    if compiled.counts_later:
        given, waiting = counted(given), counted(waiting)
    open_matches = _matches(compiled, events, waiting, where)
    matches = _matches(compiled, events, given, where)
    return dataclasses.replace(matches, null_keys=null_count, waiting=open_matches, warnings=warnings)


class _Judging:
    """HAVING over a whole table, and what follows it."""

    def __init__(self, compiled: Compiled, events: pa.Table, where: _Rows) -> None:
        self._compiled = compiled
        self._where = where
        self._table = events.select(compiled.layout.events.names)
        self._having = Having(compiled, compiled.layout.time)
        self._first = 0

    def heed(self, evaluation: AnyEvaluation, letters: Array) -> Array | None:
        """What the events are worth, where the evaluation has to know."""
        return self._having.heed(evaluation, letters, self._table.column)

    def read(self, first: int) -> None:
        """The number of the first segment that is read next."""
        self._first = first

    def left(self, chunks: Iterator[Chunk], segments: Array) -> Iterator[Chunk]:
        """Of the matches in what is being read those that meet the condition of HAVING: the judge of `Consuming`."""
        return self._having.left(chunks, segments, self._shown_here)

    def judged(self, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        """What is given of the matches."""
        return self._having.judged(chunks, self._shown, self._spans)

    def _shown_here(self, chunk: Chunk) -> Matches:
        return self._shown(dataclasses.replace(chunk, segments=chunk.segments + self._first))

    def _shown(self, chunk: Chunk) -> Matches:
        where = self._where
        rows = where.rows_of(where.grouped(chunk.segments, chunk.positions, np.diff(chunk.offsets)))
        return Matches(self._compiled.layout, Ragged(chunk.offsets, chunk.positions, chunk.labels, rows), self._table)

    def _spans(self, chunk: Chunk) -> tuple[Array, Array, Array]:
        where = self._where
        if self._compiled.consume is Consumption.PARTITION or where.places is None:
            return chunk.segments.astype(np.int64), chunk.starts, chunk.ends
        starts, ends = (where.places[where.grouped(chunk.segments, positions)].astype(np.int64) for positions in (chunk.starts, chunk.ends))
        return np.zeros_like(starts), starts, ends


def _partitioned(compiled: Compiled, events: pa.Table, stream: Array | None, *, null_keys: str) -> tuple[Groups | None, _Rows, int]:
    """The places of the stream by key, where the events stand, and how many have no key of PARTITION BY; stream: rows in its order."""
    if not compiled.keys:
        return None, _Rows(None, stream, np.zeros(1, np.int64)), 0

    def grouped(keys: Sequence[str]) -> Groups:
        codes, count = key_codes(events, keys, grouped=compiled.written if null_keys == "group" else ())
        return group(codes if stream is None else codes[stream], count)

    groups = grouped(compiled.keys)
    written = grouped(compiled.written) if compiled.written and compiled.derived else groups
    positions = None if written is groups else written.positions(events.num_rows)
    where = _Rows(groups.order, groups.order if stream is None else stream[groups.order], groups.cuts, positions)
    return groups, where, written.null_keys if compiled.written else 0


def _begins(events: pa.Table) -> Array:
    """For each row of a table the position where its event begins."""
    begins: Array = events[PLACE].to_numpy()
    return begins


def _followers(
    compiled: Compiled, negated: Sequence[Events], events: pa.Table, times: Array, where: _Rows, *, variant: str | None, texts: Texts
) -> list[Ends]:
    """For each absence what ends matches of the pattern that is forbidden. negated: the events as it reads them; texts: of their values."""
    found = []
    for absence, read in zip(compiled.absences, negated, strict=True):
        # One interval per event that ends some.
        run = absence.evaluation(variant=variant, texts=texts)
        ended = collect(list(grouped_chunks(run, read, where.rows, where.cuts)))
        starts = ended.starts
        if absence.earlier:
            starts = _begins(events)[where.rows_of(where.grouped(ended.segments, starts))]
        found.append(where.ends(ended, starts, times))
    return found


def _vetoed_rows(compiled: Compiled, followers: Sequence[Ends], times: Array, where: _Rows) -> Array:
    """For each row of the table whether what is forbidden follows it: bool."""
    read = Arrived(where.rows, where.cuts, np.arange(len(where.cuts)), -where.cuts, len(times))
    return vetoed_events(read, times, followers, compiled.absences)


def _decided(
    compiled: Compiled, followers: Sequence[Ends], times: Array, found: Chunk, where: _Rows, *, until: int | str | None
) -> tuple[Chunk, Chunk]:
    """The matches that nothing forbidden follows, and those that it may still follow after `until`; found: those not vetoed by their ends."""
    if until is None:
        until = int(times.max(initial=NEVER))
    if compiled.waits:
        ends, starts = where.ends(found, found.ends, times), times[where.rows_of(where.grouped(found.segments, found.starts))]
        kept = np.flatnonzero(~vetoed_matches(ends, starts, followers, compiled.absences))
        found, ends, starts = found.take(kept), ends.take(kept), starts[kept]
        late = np.zeros(len(found), np.bool_)
        if not isinstance(until, str):
            for absence in compiled.absences:
                since = starts if absence.from_start and not compiled.counts_later else ends.times
                late |= undecided(since, until, absence.duration)
    elif isinstance(until, str):
        late = np.zeros(0, np.bool_)
    else:
        first = found.triggers
        rows = where.rows_of(where.grouped(found.segments[first], found.ends[first]))
        late = np.repeat(undecided(times[rows], until, longest(compiled.absences)), np.diff(first, append=len(found)))
    if not late.any():  # PERF: nearly all matches are decided
        return found, found.take(np.zeros(0, np.int64))
    return found.take(np.flatnonzero(~late)), found.take(np.flatnonzero(late))


def ordered(schema: EventSchema, events: pa.Table, *, sort: bool, order: Sequence[str]) -> tuple[Array, Array | None]:
    """The event times (int64, zeros without a time column), and the rows in stream order (None: as they are).

    Raises InputError for NULL times and, unless `sort`, for times that descend.
    """
    check_order_columns(order, events.column_names)
    time = schema.time_column
    if time is None:
        return np.zeros(events.num_rows, np.int64), None
    times = times_of(events, time)
    if not sort:
        check_order(times, events[time])
        if not order:
            return times, None
    return times, in_order(events, times, order)


def grouped_chunks(
    evaluation: AnyEvaluation,
    events: Events,
    rows: Array | None,
    cuts: Array,
    *,
    progress: Progress | None = None,
    before: Callable[[int], None] | None = None,
    together: bool = False,
) -> Iterator[Chunk]:
    """The matches in partitions that lie one after the other, read a step at a time; segments number the partitions.

    rows: where the letter and time of each event stand, None: in their order. cuts: where each partition starts. before: is told the first segment of
    each step. together: whether the events of a time have to be read in one step.
    """
    total = len(events) if rows is None else len(rows)
    begin = _changes(events.times if rows is None else events.times[rows]) if together else None
    if progress is not None:
        progress.begin(total)
    for start, stop in _steps(total, STEP if rows is None else min(STEP, GATHERED), told=progress is not None, begin=begin):
        piece = slice(start, stop) if rows is None else rows[start:stop].astype(np.intp, copy=False)
        first = int(np.searchsorted(cuts, start, "right")) - 1
        inside = cuts[first : int(np.searchsorted(cuts, stop, "left"))] - start
        continued = bool(inside[0] < 0)
        inside[0] = 0
        if before is not None:
            before(first)
        if progress is not None:
            progress.within(stop - start, lambda: evaluation.passed)
        for chunk in evaluation.chunks(events.of(piece, cuts=inside, continued=continued)):
            chunk.segments[:] += first
            yield chunk
        if progress is not None:
            progress(stop)


def _changes(times: Array) -> Array:
    """The places whose time is not that of the one before."""
    return np.flatnonzero(np.diff(times)) + 1


def interleaved_chunks(
    evaluation: AnyEvaluation,
    events: Events,
    stream: Array | None,
    groups: Groups,
    *,
    progress: Progress | None = None,
    together: bool = False,
) -> Iterator[Chunk]:
    """The matches in partitions that are read in stream order, a step at a time, each in a slot of its own; segments number the partitions.

    together: whether the events of a time have to be read in one step.
    """
    order, cuts, slots = groups.interleaved()
    rows = order if stream is None else stream[order]
    if progress is not None:
        progress.begin(len(rows))
    begin = np.intersect1d(cuts, _changes(events.times[rows])) if together else cuts  # a segment is read as a whole
    for start, stop in _steps(len(rows), STEP, told=progress is not None, begin=begin):
        first, last = np.searchsorted(cuts, [start, stop]).tolist()
        mine = slots[first:last]
        piece = rows[start:stop]
        if progress is not None:
            progress.within(stop - start, lambda: evaluation.passed)
        for chunk in evaluation.chunks(events.of(piece, cuts=cuts[first:last] - start, slots=mine)):
            yield dataclasses.replace(chunk, segments=mine[chunk.segments])
        if progress is not None:
            progress(stop)


def _matches(compiled: Compiled, events: pa.Table, found: Chunk | EvenChunk, where: _Rows) -> Matches:
    """Kernel output as matches: positions become rows of the table, partitions interleave in the order of the stream."""
    table = events.select(compiled.layout.events.names)
    keys = None
    if names := list(compiled.layout.keys):
        assert where.rows is not None
        keys = key_table(table.select(names).take(pa.array(where.rows[where.cuts] if len(where.rows) else where.rows)), names)
    if isinstance(found, EvenChunk) and where.rows is None:
        matches = Matches(compiled.layout, Even(found.alike, tuple(found.blocks)), table)
    elif isinstance(found, EvenChunk) and where.places is not None and SPARSE * found.marks >= len(where.places):
        marks, partitions = even_in_stream_order(found, where.standing(table.num_rows), _shown(compiled, where))
        matches = Matches(compiled.layout, marks, table, None if keys is None else partitions, keys)
    else:
        matches = _ragged_matches(compiled, chunk_of(found), where, table, keys)
    return measured(compiled.plan.measures, matches)


def _shown(compiled: Compiled, where: _Rows) -> Callable[[Array], Array] | None:
    """Gives the positions that matches show of events, given where they stand partition by partition; None: those in their partitions."""
    places, written = where.places, where.written
    if not compiled.derived or places is None:
        return None
    return (lambda grouped: places[grouped]) if written is None else (lambda grouped: written[places[grouped]])


def _positions_of_rows(compiled: Compiled, events: pa.Table, where: _Rows) -> Array:
    """The position that matches show of each row of the table; -1 of those that are in no partition."""
    positions: Array = np.full(events.num_rows, -1, np.int64)
    shown, count = _shown(compiled, where), events.num_rows if where.places is None else len(where.places)
    if shown is not None:
        own = shown(np.arange(count))
    else:
        own = np.arange(count) if where.places is None else where.standing(events.num_rows).positions(0, count)
    positions[slice(None) if where.rows is None else where.rows] = own
    return positions


def _ragged_matches(compiled: Compiled, found: Chunk, where: _Rows, table: pa.Table, keys: pa.Table | None) -> Matches:
    """The matches of any chunk, without measures."""
    shown = _shown(compiled, where)
    if where.places is not None and len(where.cuts) > 1:
        marks, partitions, counts = ragged_in_stream_order(found, where.standing(table.num_rows), shown)
        return Matches(compiled.layout, marks, table, None if keys is None else partitions, keys, counts=counts)
    grouped = where.grouped(found.segments, found.positions, np.diff(found.offsets))
    marks = Ragged(found.offsets, found.positions if shown is None else shown(grouped), found.labels, where.rows_of(grouped))
    return Matches(compiled.layout, marks, table, None if keys is None else found.segments, keys, counts=found.counts)
