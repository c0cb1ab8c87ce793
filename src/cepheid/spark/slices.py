"""A query without keys over many tasks: time is cut into slices, and each slice is read like a key.

Comes in: a DataFrame of prepared events, a window over the whole pattern. Goes out: the events with the number of their slice. A slice gives
the matches that END in it. These begin at most the window earlier, so it also receives the events back to its start minus the window, its
overlap. Cuts are on time: events of one time are in one slice. Where the cuts are decides how long tasks take and never what comes out.
They are quantiles of the data, by an aggregate over a sample that runs with the result, and are broadcast to a join on the events' times.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the name that everybody gives this module
from pyspark.sql import types as spark_types

from cepheid.engine.letters.values import plain, raw
from cepheid.language.syntax import Consumption
from cepheid.spark.columns import column_named
from cepheid.spark.tasks.worker import OWN, SLICE, TIME
from cepheid.spark.versions import dealt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from cepheid.engine.memory.pools import Array
    from cepheid.engine.plan.compiled import Compiled

SLICES_PER_TASK = 4
"""Slices for each task of the shuffle: busy times are then spread over the tasks."""

MOST_SLICES = 512
"""Each event is compared with each slice, which takes some nanoseconds."""

FEW_TASKS = 16
"""Up to so many tasks, slices are dealt to them in turn, and an empty one does no harm; more are Spark's to fill and to put together."""

LEAST_EVENTS = 20_000
"""Events that a slice has at least, its overlap not counted."""

EVENTS_PER_OVERLAP = 2
"""A slice has at least so many times the events of its overlap: what is read twice is bounded, whatever the window."""

MOST_READ = 0.75
"""Slices are not made where one of them would read more than this share of all events, as with a window as long as the table."""

SAMPLED = 0.02
"""The share of events that the quantiles are made of, by chance: 400 of the LEAST_EVENTS."""

RANKS_PER_SLICE = 20
"""How exact the quantiles are: one in so many of a slice's events may be on the other side of its cut."""

START, OPENS, CLOSES = "$start", "$opens", "$closes"
"""Columns of the table of slices: where a slice starts, where its overlap starts, and its last time."""


def refusal(compiled: Compiled, *, positions: bool, tasks: int) -> str | None:
    """Why one task has to read all events of a query without keys; None where slices of time give the same matches."""
    if tasks == 1:
        return "the shuffle has one task"
    if compiled.absences:
        return "NOT FOLLOWED BY looks at events after a match"
    if compiled.looks_back is not None:
        return f"{compiled.looks_back} looks at events before a slice"
    if compiled.window is None:
        return "without a time in WITHIN a match may begin anywhere"
    if compiled.consume is not Consumption.NONE:
        return "CONSUME BY depends on every earlier match"
    if compiled.program.trackers or compiled.program.automaton.all_parts:
        return "a nested strategy compares matches of the whole stream"
    if compiled.limit is not None:
        return "which matches LIMIT, ANY and RESTRICTED take may depend on where a slice begins"
    return "positions=True counts every event" if positions else None


def slice_count(tasks: int) -> int:
    """How many slices there are at most for so many tasks."""
    return min(SLICES_PER_TASK * tasks, MOST_SLICES)


# --------------------------------------------------------------------------------------------------------------------- where to cut


def cuts_of(points: Array, count: int, window: int, *, least: int = LEAST_EVENTS) -> Array:
    """The times (int64, ascending) at which a slice ends and the next one starts; none where slices would not pay.

    points: times, n quantiles at equal distances that begin with the least time. count: how many events these are of. window, least: in
    steps of time; events of a slice. A cut is a point; no slice is empty, or has less than `least` events (as far as the points tell) or less than
    EVENTS_PER_OVERLAP times those of its overlap; none reads more than MOST_READ of all. O(n log n).
    """
    size = len(points)
    first = np.searchsorted(points, points)  # of equal points the first: that many parts lie before the time
    opening = [max(int(point) - window, int(points[0])) for point in points.tolist()]
    overlap = first - np.searchsorted(points, np.array(opening, np.int64))
    needed = np.maximum(EVENTS_PER_OVERLAP * overlap, -(-least * size // max(count, 1)))
    cuts: list[int] = []
    start = 0
    for place in np.unique(first)[1:].tolist():
        if place - start >= needed[start] and size - place >= needed[place]:
            cuts.append(place)
            start = place
    starts = np.array([0, *cuts], np.int64)
    most = int(np.max(np.diff(starts, append=size) + overlap[starts]))
    return points[cuts if most <= MOST_READ * size else []].astype(np.int64)


def slice_table(cuts: Array, window: int, kind: pa.DataType) -> pa.Table:
    """The slices between cuts: SLICE (int32), and START, OPENS and CLOSES as times of type `kind`; the first is open below, the last above."""
    bits = kind.bit_width
    lowest, highest = -(1 << bits - 1), (1 << bits - 1) - 1
    starts = [lowest, *cuts.tolist()]
    opens = [max(start - window, lowest) for start in starts]
    lasts = [*(start - 1 for start in starts[1:]), highest]
    stored = pa.int64() if bits == 64 else pa.int32() if bits == 32 else kind
    times = [pa.array(values, pa.int64()).cast(stored).cast(kind) for values in (starts, opens, lasts)]
    return pa.table([pa.array(range(len(starts)), pa.int32()), *times], [SLICE, START, OPENS, CLOSES])


QUANTILES, COUNT = "$quantiles", "$count"


def cut(window: int, least: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The function that mapInArrow calls with the one row of the aggregate (QUANTILES, COUNT): gives the `slice_table`."""
    for batch in batches:
        quantiles = batch.column(QUANTILES)
        for row in range(batch.num_rows):
            # NULL: there are no events.
            points = quantiles.slice(row, 1).flatten()
            times = raw(plain(points)).astype(np.int64)
            cuts = cuts_of(times, batch.column(COUNT)[row].as_py(), window, least=least) if len(times) else times
            yield from slice_table(cuts, window, points.type).to_batches()


# -------------------------------------------------------------------------------------------------------------------------- in Spark


def slices(times: DataFrame, window: int, tasks: int) -> DataFrame:
    """The table of slices, lazily, by one pass over `times`, which has the one column TIME."""
    count = slice_count(tasks)
    places = [number / count for number in range(count)]
    kind = times.schema[TIME].dataType
    time = column_named(TIME)
    sample = times.sample(fraction=SAMPLED, seed=0) if SAMPLED < 1 else times
    row = sample.agg(F.percentile_approx(time, places, RANKS_PER_SLICE * count).alias(QUANTILES), F.count(time).alias(COUNT))
    columns = [(SLICE, spark_types.IntegerType()), (START, kind), (OPENS, kind), (CLOSES, kind)]
    fields = [spark_types.StructField(name, field) for name, field in columns]
    return row.mapInArrow(functools.partial(cut, window, math.ceil(LEAST_EVENTS * SAMPLED)), spark_types.StructType(fields))


def sliced(events: DataFrame, table: DataFrame, tasks: int, *, exactly: bool) -> DataFrame:
    """The events, each once for every slice that it is in or in whose overlap it is, a slice in one task; adds SLICE and OWN.

    events: with the column TIME; those without a time go to the first slice, where the task finds them. table: of `slices`. exactly: there are
    to be so many tasks, else Spark may put small ones together.
    """
    time = column_named(TIME)
    inside = time.between(column_named(OPENS), column_named(CLOSES))
    if events.schema[TIME].nullable:
        inside = inside | (time.isNull() & (column_named(SLICE) == 0))
    joined = events.join(F.broadcast(table), inside).select(
        *map(column_named, events.columns), column_named(SLICE), (time >= column_named(START)).alias(OWN)
    )
    number = column_named(SLICE)
    return dealt(joined, tasks, number) if exactly or tasks <= FEW_TASKS else joined.repartition(number)
