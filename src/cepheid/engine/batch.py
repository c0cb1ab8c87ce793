"""One query over one whole table: letters, partitions, one pass of the kernel, matches in the order of their last events.

Comes in: a `Compiled` query and a table with its schema. Goes out: `Matches` whose events are the rows of that table, without a copy.
"""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.engine.absence import Ends, longest, undecided, vetoed
from cepheid.engine.inputs import check_order, check_order_columns, in_order, times_of
from cepheid.engine.keys import group, key_codes, key_table
from cepheid.engine.matches import Matches
from cepheid.engine.measures import measured
from cepheid.engine.order import NEVER
from cepheid.engine.running import collect
from cepheid.language.syntax import Consumption

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cepheid.engine.keys import Groups
    from cepheid.engine.planner import Compiled
    from cepheid.engine.running import Chunk, Running
    from cepheid.schema import EventSchema

Array = np.ndarray[Any, Any]

STEP = 1 << 22
"""Events per call of the kernel: progress is reported in between."""


END = "end"
"""`until` of a table that nothing will follow."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """Where the events of the partitions stand.

    places: in the stream, partition by partition, None: the stream is one partition. rows: the same, in the table; None: as they are. cuts: where
    each partition starts in both.
    """

    places: Array | None
    rows: Array | None
    cuts: Array

    def grouped(self, segments: Array, positions: Array, lengths: Array | None = None) -> Array:
        """Where events stand, partition by partition: their positions, and the partition of each, or of so many of them."""
        if self.places is None:
            return positions
        starts = self.cuts[segments]
        return (starts if lengths is None else np.repeat(starts, lengths)) + positions

    def rows_of(self, grouped: Array) -> Array:
        """The rows of the table where these stand."""
        return grouped if self.rows is None else self.rows[grouped]

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
    progress: Callable[[int, int], None] | None = None,
) -> Matches:
    """The matches of a query over a table.

    events: has the schema that the query was compiled for. sort: put unsorted events in order (stably) instead of an error. order: columns that
    decide between events of equal time, before the row order. null_keys: "drop" or "group". until: up to which time the table is complete, None
    for its greatest time, "end" where nothing will follow: what must not follow a match is known until then. sample: of each trigger at most so
    many matches, spread over all of them. progress: called with (rows done, rows).
    Raises InputError for NULL or unsorted times, SchemaError for unknown `order` columns. Linear in rows and output, but for sorting.
    """
    times, stream = ordered(compiled.schema, events, sort=sort, order=order)
    null_count = 0
    where = _Rows(None, stream, np.zeros(1, np.int64))
    groups: Groups | None = None
    if compiled.keys:
        codes, count = key_codes(events, compiled.keys, null_keys="drop" if compiled.derived else null_keys)
        groups = group(codes if stream is None else codes[stream], count)
        null_count = 0 if compiled.derived else groups.null_keys
        where = _Rows(groups.order, groups.order if stream is None else stream[groups.order], groups.cuts)
    letters = compiled.predicates.letters(events)
    chunks: list[Chunk] = []
    evaluation = compiled.evaluation(variant=variant, sample=sample)
    if groups is not None and compiled.consume is Consumption.ANY:
        feed_interleaved(evaluation, letters, times, stream, groups, chunks, progress=progress)
    else:
        feed(evaluation, letters, times, where.rows, where.cuts, chunks, progress=progress)
    found = collect(chunks)
    if not compiled.absences:
        return _matches(compiled, events, found, where, null_keys=null_count)
    given, waiting = decided(compiled, events, times, found, where, until=until, variant=variant)
    open_matches = _matches(compiled, events, found.take(waiting), where)
    return dataclasses.replace(_matches(compiled, events, found.take(given), where, null_keys=null_count), waiting=open_matches)


def decided(
    compiled: Compiled, events: pa.Table, times: Array, found: Chunk, where: _Rows, *, until: int | str | None, variant: str | None
) -> tuple[Array, Array]:
    """Numbers of the matches of the pattern that nothing forbidden follows, and of those that it may still follow after `until`."""
    first = found.triggers
    triggers = where.ends(found, found.ends, times).take(first)
    veto = np.zeros(len(triggers), np.bool_)
    for absence, alphabet in zip(compiled.absences, compiled.alphabets[1:], strict=True):
        chunks: list[Chunk] = []
        feed(absence.evaluation(variant=variant), alphabet.letters(events), times, where.rows, where.cuts, chunks)
        negated = collect(chunks)
        veto |= vetoed(triggers, where.ends(negated, negated.starts, times), absence.duration)
    if until is None:
        until = int(times.max(initial=NEVER))
    late = np.zeros(len(triggers), np.bool_) if isinstance(until, str) else undecided(triggers.times, until, longest(compiled.absences))
    counts = np.diff(first, append=len(found))
    return np.flatnonzero(np.repeat(~veto & ~late, counts)), np.flatnonzero(np.repeat(~veto & late, counts))


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


def feed(
    evaluation: Running,
    letters: Array,
    times: Array,
    rows: Array | None,
    cuts: Array,
    chunks: list[Chunk],
    *,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Feed partitions that lie one after the other, a step at a time; segments in `chunks` number the partitions.

    rows: where the letter and time of each event stand, None: in their order. cuts: where each partition starts.
    """
    total = len(letters) if rows is None else len(rows)
    for start in range(0, total, STEP):
        stop = min(start + STEP, total)
        piece = slice(start, stop) if rows is None else rows[start:stop]
        first = int(np.searchsorted(cuts, start, "right")) - 1
        inside = cuts[first : int(np.searchsorted(cuts, stop, "left"))] - start
        continued = bool(inside[0] < 0)
        inside[0] = 0

        def sink(chunk: Chunk, first: int = first) -> None:
            chunk.segments[:] += first
            chunks.append(chunk)

        evaluation.feed(letters[piece], times[piece], cuts=inside, continued=continued, sink=sink)
        if progress is not None:
            progress(stop, total)


def feed_interleaved(
    evaluation: Running,
    letters: Array,
    times: Array,
    stream: Array | None,
    groups: Groups,
    chunks: list[Chunk],
    *,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Feed partitions in stream order, a step at a time, each in a slot of its own; segments in `chunks` number the partitions."""
    order, cuts, slots = groups.interleaved()
    rows = order if stream is None else stream[order]
    steps = np.unique(np.searchsorted(cuts, [*range(0, len(rows), STEP), len(rows)]))
    for first, last in itertools.pairwise(steps.tolist()):
        start, stop = int(cuts[first]), int(cuts[last]) if last < len(cuts) else len(rows)
        mine = slots[first:last]

        def sink(chunk: Chunk, mine: Array = mine) -> None:
            chunks.append(dataclasses.replace(chunk, segments=mine[chunk.segments]))

        piece = rows[start:stop]
        evaluation.feed(letters[piece], times[piece], cuts=cuts[first:last] - start, slots=mine.astype(np.int32), sink=sink)
        if progress is not None:
            progress(stop, len(rows))


def _matches(compiled: Compiled, events: pa.Table, found: Chunk, where: _Rows, *, null_keys: int = 0) -> Matches:
    """Kernel output as matches: positions become rows of the table, partitions interleave in the order of the stream."""
    places, segments = where.places, found.segments
    grouped = where.grouped(segments, found.positions, np.diff(found.offsets))
    table = events.select(compiled.layout.events.names)
    keys = partitions = None
    if names := list(compiled.layout.keys):
        assert where.rows is not None
        keys = key_table(table.select(names).take(pa.array(where.rows[where.cuts] if len(where.rows) else where.rows)), names)
        partitions = segments.astype(np.int64)
    shown = places[grouped] if compiled.derived and places is not None else found.positions
    marks = (shown, found.labels, where.rows_of(grouped))
    matches = Matches(compiled.layout, found.offsets, *marks, table, partitions, keys, null_keys=null_keys, counts=found.counts)
    if places is not None and len(where.cuts) > 1:
        matches = matches.take(np.argsort(places[grouped[found.offsets[1:] - 1]], kind="stable"))
    return measured(compiled.plan, matches)
