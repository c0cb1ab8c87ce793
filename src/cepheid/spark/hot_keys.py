"""Keys with many events over many tasks: their time is cut into slices, as that of a query without keys is (`slices`).

Comes in: a DataFrame of prepared events, their keys, a window over the whole pattern. Goes out: the events with the number of their slice; a key with
few events has one, all of time. Which keys have many, and where these are cut, a sample says, by an aggregate that runs with the result and is
broadcast to a join on the keys. It decides how long tasks take and never what comes out. Slices of one key are dealt to the tasks in turn.
"""

from __future__ import annotations

import functools
import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the name that everybody gives this module
from pyspark.sql import types as spark_types

from cepheid.engine.letters.values import one_chunk, plain, raw
from cepheid.spark import slices
from cepheid.spark.columns import column_named
from cepheid.spark.tasks.worker import OWN, SLICE, TIME
from cepheid.spark.versions import marks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame

    from cepheid.engine.memory.pools import Array

SHARE = 0.5
"""A key is hot from this share of a task's events on, if all tasks had as many."""

BINS_PER_SLICE = 4
"""How exact the cuts are: the time of a key is known in so many parts for each slice."""

LEVEL, COUNT, HISTOGRAM, MARK, HOT = "$level", "$count", "$histogram", "$mark", "$hot "
"""Columns of the aggregate: which keys a row is about, how many events of the sample these have, and when; and of the table of slices: what Spark's
hash sends to the task of a slice, and what the names of the keys begin with."""


def quantiles(times: Array, weights: Array, count: int) -> Array:
    """So many times at equal distances, the least first, of a histogram: ascending times (int64), and how many events are about each."""
    reached = np.cumsum(weights)
    found: Array = times[np.searchsorted(reached, np.arange(count) * (reached[-1] / count), side="right")]
    return found


def cut(keys: Sequence[str], window: int, tasks: int, least: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The function that mapInArrow calls with all rows of the aggregate: gives `slices.slice_table` of each hot key, with the key and MARK.

    window: in steps of time. least: events of the sample that a slice has at least.
    """
    rows = list(batches)
    table = pa.Table.from_batches(rows) if rows else None
    if table is None or not table.num_rows:
        return
    level, counts = table[LEVEL].to_numpy(), table[COUNT].to_numpy()
    every, most, given = counts.max(), slices.slice_count(tasks), 0  # the row about all keys has all events
    hot = np.flatnonzero((level == 0) & (counts * tasks >= SHARE * every))
    to = np.array(marks(tasks), np.int32)
    for row in hot[np.argsort(-counts[hot], kind="stable")].tolist():
        histogram = one_chunk(table[HISTOGRAM].slice(row, 1)).flatten()
        times, weights = plain(histogram.field("x")), histogram.field("y").to_numpy()
        count = int(counts[row])
        several = min(math.ceil(most * count / every), count // least)  # as many as there are points for: then all are equal
        points = quantiles(raw(times).astype(np.int64), weights, BINS_PER_SLICE * several)
        cuts = slices.cuts_of(points, count, window, least=count // several)
        if not len(cuts):
            continue
        made = slices.slice_table(cuts, window, times.type)
        own = table.select(list(keys)).take(pa.array(np.full(made.num_rows, row)))
        dealt = pa.array(to[(given + np.arange(made.num_rows)) % tasks])
        given += made.num_rows
        yield from pa.table([*own.columns, *made.columns, dealt], names=[*keys, *made.column_names, MARK]).combine_chunks().to_batches()


def hot_slices(events: DataFrame, keys: Sequence[str], window: int, tasks: int) -> DataFrame:
    """The table of the slices of hot keys, lazily, by one pass over `events`, which has the keys and TIME."""
    time, least = column_named(TIME), math.ceil(slices.LEAST_EVENTS * slices.SAMPLED)
    sample = events.sample(fraction=slices.SAMPLED, seed=0) if slices.SAMPLED < 1 else events
    counted = sample.rollup(*map(column_named, keys)).agg(
        F.grouping_id().alias(LEVEL),
        F.count(time).alias(COUNT),
        F.histogram_numeric(time, F.lit(BINS_PER_SLICE * slices.slice_count(tasks))).alias(HISTOGRAM),
    )
    # What has not enough events for two slices is not hot. NULL time: of no slice.
    some = counted.where(column_named(LEVEL).isin(0, (1 << len(keys)) - 1) & (column_named(COUNT) >= 2 * least)).repartition(1)
    kind = events.schema[TIME].dataType
    columns = [(name, events.schema[name].dataType) for name in keys]
    columns += [(SLICE, spark_types.IntegerType()), (slices.START, kind), (slices.OPENS, kind), (slices.CLOSES, kind)]
    fields = [spark_types.StructField(name, field) for name, field in (*columns, (MARK, spark_types.IntegerType()))]
    return some.mapInArrow(functools.partial(cut, tuple(keys), window, tasks, least), spark_types.StructType(fields))


def spread(events: DataFrame, table: DataFrame, keys: Sequence[str], tasks: int | None) -> DataFrame:
    """The events, those of a hot key once for every slice that they are in or in whose overlap they are; adds SLICE and OWN.

    Other keys, and events without a time, are in the slice 0, each key in one task. events: with the keys and TIME. table: of `hot_slices`. tasks:
    None: Spark decides how many there are.
    """
    time = column_named(TIME)
    hot = table.select(*(column_named(name).alias(f"{HOT}{name}" if name in keys else name) for name in table.columns))
    same = [column_named(name).eqNullSafe(column_named(f"{HOT}{name}")) for name in keys]
    inside = time.between(column_named(slices.OPENS), column_named(slices.CLOSES))
    joined = events.join(F.broadcast(hot), functools.reduce(operator.and_, [*same, inside]), "left").select(
        *map(column_named, events.columns),
        F.coalesce(column_named(SLICE), F.lit(0)).alias(SLICE),
        F.coalesce(time >= column_named(slices.START), F.lit(True)).alias(OWN),
        F.coalesce(column_named(MARK), F.hash(*map(column_named, keys))).alias(MARK),
    )
    numbers: list[Any] = [] if tasks is None else [tasks]
    return joined.repartition(*numbers, column_named(MARK)).drop(MARK)
