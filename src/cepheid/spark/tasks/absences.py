"""Matches that a stream's state makes of a batch: those decided later than they end, and those over events that matches have made.

Comes in: sorted events of a task, for queries with NOT FOLLOWED BY or EVENT definitions. Goes out: the rows that are decided when the table ends, and
where a stream would go on. The events go through the state of a stream's bucket (`buckets`), in the order of their times over all keys of the task,
so that time passes for every key; what is complete is said by `until`. Imports no Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cepheid.spark.tasks.buckets import Bucket
from cepheid.spark.tasks.packing import steps
from cepheid.spark.tasks.unit import Unit
from cepheid.spark.tasks.worker import Incoming, with_letter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

UNTIL = "$until"
"""The column that has the greatest time of the table, where no other time is given."""

EXPIRED_AFTER = 8
"""Reads between two looks for keys that are idle."""

GATHERED = 1 << 16
"""Events that are read at once, and those of one of Spark's batches more."""

UNDECIDED = "undecided"
"""The column of the output that says that a match may still be vetoed, where such ones are asked for."""

FOREVER, LAST_END = 2**62, 2**63 - 2
"""A time after every timestamp, from which every duration can be taken; and the last one that has another behind it."""


def run_absences(unit: Mapping[str, Any], until: int | None, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The function that mapInArrow calls: the matches of one partition's events that are decided by `until`.

    until: in steps of the time column, FOREVER where nothing will follow; None: it is in the column UNTIL. Events are sorted by time, key and
    tie-breakers. Raises as `worker.run_task`.
    """
    bucket: Bucket | None = None
    for number, table in enumerate(_gathered(batches)):
        if bucket is None:
            bucket = Bucket(Unit(**unit))
            incoming = Incoming(bucket.tasks[0], bucket.tasks[0].keys)
            until = int(steps(table[UNTIL].slice(0, 1))[0]) if until is None else until
        for batch in table.to_batches():
            times, _ = incoming.read(batch)
        now = int(times[-1])
        for rows, _ in bucket.read([table.select(bucket.schema.names)], now):
            yield from told(rows, undecided=False)
        if number % EXPIRED_AFTER == 0:
            bucket.expire(now)
    if bucket is not None and until is not None:
        # Integers may count on behind FOREVER.
        end = (
            until
            if until != FOREVER
            else min(max(until, now + max(compiled.delay + compiled.settled for compiled in bucket.compiled)), LAST_END)
        )
        for rows, _ in bucket.read([], end + 1):
            yield from told(rows, undecided=False)
        for rows in bucket.undecided() if UNDECIDED in bucket.output.names else ():
            yield from told(rows, undecided=True)


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The events of some batches together, none of it without events. PERF: Spark's batches are small for what is done for each."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held += [with_letter(batch)] if batch.num_rows else []
        if sum(each.num_rows for each in held) >= GATHERED:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def told(rows: pa.Table, *, undecided: bool) -> list[pa.RecordBatch]:
    """Rows that say whether they are decided, where the output has that column."""
    place = rows.schema.get_field_index(UNDECIDED)
    if place >= 0:
        rows = rows.set_column(place, rows.schema.field(place), pa.repeat(undecided, rows.num_rows))
    batches: list[pa.RecordBatch] = rows.to_batches()
    return batches
