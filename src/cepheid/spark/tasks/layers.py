"""A query with EVENT definitions in a task: whole partitions, some at a time, as the embedded engine runs them.

Comes in: the sorted events of some partitions. Goes out: the rows of their matches. All that a match is made of lies in one partition of the query,
for its keys are keys of each definition. Imports no Spark.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.engine.output.measures import measured
from cepheid.engine.run import layers
from cepheid.spark.tasks.absences import UNTIL
from cepheid.spark.tasks.packing import steps
from cepheid.spark.tasks.rows import View, stored_measures
from cepheid.spark.tasks.worker import Incoming, Task, compiled_here

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cepheid.engine.plan.compiled import Compiled

GATHERED = 1 << 20
"""Events that are gathered before whole partitions of them are read; a partition with more is read as a whole."""


def run_layers(
    task: Mapping[str, Any], null_keys: str, complete: int | str | None, output: bytes, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The matches of a task's events, as mapInArrow hands them out.

    complete: up to which time the events are complete, None: the column `UNTIL` says it, where there are absences. output: serialized Arrow schema
    of a row. Raises as `worker.run_task`, and LimitError for matches of some partitions that memory cannot hold.
    """
    own = Task(**task)
    incoming = Incoming(own, own.keys)
    schema = pa.ipc.read_schema(pa.py_buffer(output))
    held: list[pa.RecordBatch] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        _, changed = incoming.read(batch)
        last = int(np.flatnonzero(changed)[-1]) if changed.any() else -1
        if last >= 0 and sum(each.num_rows for each in held) + last >= GATHERED:
            yield from _matches(own, null_keys, complete, [*held, batch.slice(0, last)], schema)
            held = [batch.slice(last)]
        else:
            held.append(batch)
    if held:
        yield from _matches(own, null_keys, complete, held, schema)


def _matches(
    task: Task, null_keys: str, complete: int | str | None, batches: Sequence[pa.RecordBatch], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The matches in whole partitions."""
    compiled = compiled_here(dataclasses.asdict(task))
    travelled = pa.Table.from_batches([batch for batch in batches if batch.num_rows])
    if complete is None and UNTIL in travelled.column_names:
        complete = int(steps(travelled[UNTIL].slice(0, 1))[0])
    # Sorted by key, then by time: the stream is sorted by time alone.
    found = layers.run(compiled, task.read(travelled), null_keys=null_keys, until=complete, sort=True)
    view = _view(compiled, found.events.schema, task)
    shown = dataclasses.replace(found, layout=view.layout, measures=None)
    for rows in view.pieces(measured(view.measures, shown)):
        yield from rows.select(schema.names).cast(schema).to_batches()


def _view(compiled: Compiled, events: pa.Schema, task: Task) -> View:
    fields, measures = stored_measures(compiled)
    layout = dataclasses.replace(compiled.layout, events=events, measures=fields)
    return View(layout, measures, task.shown, index=False)
