"""One query over one whole table: letters, partitions, one pass of the kernel, matches in the order of their last events.

Comes in: a `Compiled` query and a table with its schema. Goes out: `Matches` whose events are the rows of that table, without a copy.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.inputs import check_order, times_of
from cepheid.engine.keys import group, key_codes, key_table, normalized
from cepheid.engine.matches import Matches
from cepheid.engine.measures import measured
from cepheid.engine.running import collect
from cepheid.engine.values import plain
from cepheid.errors import SchemaError, quoted
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


def run(
    compiled: Compiled,
    events: pa.Table,
    *,
    sort: bool = False,
    order: Sequence[str] = (),
    null_keys: str = "drop",
    sample: int | None = None,
    variant: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Matches:
    """The matches of a query over a table.

    events: has the schema that the query was compiled for. sort: put unsorted events in order (stably) instead of an error. order: columns that
    decide between events of equal time, before the row order. null_keys: "drop" or "group". sample: of each trigger at most so many
    matches, spread over all of them. progress: called with (rows done, rows).
    Raises InputError for NULL or unsorted times, SchemaError for unknown `order` columns. Linear in rows and output, but for sorting.
    """
    times, stream = ordered(compiled.schema, events, sort=sort, order=order)
    letters = compiled.predicates.letters(events)
    null_count = 0
    cuts = np.zeros(1, np.int64)
    places: Array | None = None
    groups: Groups | None = None
    if compiled.keys:
        codes, count = key_codes(events, compiled.keys, null_keys="drop" if compiled.derived else null_keys)
        groups = group(codes if stream is None else codes[stream], count)
        places, cuts, null_count = groups.order, groups.cuts, groups.null_keys
    rows = stream if places is None else places if stream is None else stream[places]
    chunks: list[Chunk] = []
    evaluation = compiled.evaluation(variant=variant, sample=sample)
    if groups is not None and compiled.consume is Consumption.ANY:
        feed_interleaved(evaluation, letters, times, stream, groups, chunks, progress=progress)
    else:
        feed(evaluation, letters, times, rows, cuts, chunks, progress=progress)
    matches = _matches(compiled, events, collect(chunks), (places, rows, cuts), null_keys=0 if compiled.derived else null_count)
    return measured(compiled.plan, matches)


def ordered(schema: EventSchema, events: pa.Table, *, sort: bool, order: Sequence[str]) -> tuple[Array, Array | None]:
    """The event times (int64, zeros without a time column), and the rows in stream order (None: as they are).

    Raises InputError for NULL times and, unless `sort`, for times that descend.
    """
    unknown = [name for name in order if name not in events.column_names]
    if unknown:
        raise SchemaError(f"the input has no column {quoted(unknown)} to order by", help=f"the input has {quoted(events.column_names)}")
    time = schema.time_column
    if time is None:
        return np.zeros(events.num_rows, np.int64), None
    times = times_of(events, time)
    if not sort:
        check_order(times, events[time])
        if not order:
            return times, None
    if order:
        columns = [normalized(events[name]) for name in order]
        keys = pa.table([times, *map(plain, columns)], [f"{index}" for index in range(len(order) + 1)])
        try:
            stream = pc.sort_indices(keys, [(name, "ascending") for name in keys.column_names]).to_numpy().astype(np.int64)
        except (pa.ArrowTypeError, pa.ArrowNotImplementedError):
            kinds = ", ".join(f"`{name}` ({events.schema.field(name).type})" for name in order)
            raise SchemaError(f"events of equal time cannot be ordered by {kinds}", help="order by numbers, text or times") from None
    else:
        stream = np.argsort(times, kind="stable")
    return times, stream


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


def _matches(
    compiled: Compiled,
    events: pa.Table,
    found: Chunk,
    where: tuple[Array | None, Array | None, Array],
    *,
    null_keys: int,
) -> Matches:
    """Kernel output as matches: positions become rows of the table, partitions interleave in the order of the stream."""
    offsets, positions, labels, segments = found.offsets, found.positions, found.labels, found.segments
    places, rows, cuts = where
    table = events.select(compiled.layout.events.names)
    if places is None:
        marked = positions if rows is None else rows[positions]
        return Matches(compiled.layout, offsets, positions, labels, marked, table, null_keys=null_keys, counts=found.counts)
    assert rows is not None
    grouped = np.repeat(cuts[segments], np.diff(offsets)) + positions
    shown = places[grouped] if compiled.derived else positions
    keys = partitions = None
    if names := list(compiled.layout.keys):
        keys = key_table(table.select(names).take(pa.array(rows[cuts] if len(rows) else rows)), names)
        partitions = segments.astype(np.int64)
    marks = (shown, labels, rows[grouped])
    matches = Matches(compiled.layout, offsets, *marks, table, partitions, keys, null_keys=null_keys, counts=found.counts)
    ends = places[grouped[offsets[1:] - 1]]
    return matches if len(cuts) <= 1 else matches.take(np.argsort(ends, kind="stable"))
