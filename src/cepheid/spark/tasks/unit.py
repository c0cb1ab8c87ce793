"""What the tasks of several queries over one source have to know: it travels in a closure.

Comes in: plain values, from the driver. Goes out: the queries, compiled, how they show their matches, and the fingerprint of their states. Imports no
Spark.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cepheid.logical.canonical import canonical_text
from cepheid.records import record
from cepheid.spark.tasks.worker import Task, compiled_here

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cepheid.engine.plan.compiled import Compiled
    from cepheid.spark.tasks.rows import View


FORCED: int | None = None
"""For tests: keys of a page in streams that are planned from now on, whatever they cost; 0: there are no pages."""


@record(slots=False)
class Unit:
    """What the stateful part of a stream has to know, in plain values: it travels in a closure. What follows from them is computed where it is used.

    tasks: one per query (see `worker.Task`); all have the same keys and columns. letters: per task the columns its letters come from, and for each of
    its predicates the number of the bit in them (64 per column). ties: columns that order events of equal time. queries: their names, None for a
    single one. late: whether late events are given back; they have the columns of `columns`. output: serialized Arrow schema of a row. schema:
    serialized Arrow schema of what travels. buckets: over how many the keys are spread. lateness: milliseconds that an event may come later than a
    younger one; None: the watermark alone says what is known. partitions: the lateness and the time-out (milliseconds) of the source's partitions,
    and when the stream was started, where what is known follows these; None: it does not. max_bytes: of the rows that a visit of a bucket may give,
    None: `stream_max_bytes`. null_keys: whether NULL is a key of a definition, and of a rule: "drop" or "group". page_keys: as `FORCED`. ruled:
    whether there are rules in place of the query, which only says how events travel.
    """

    tasks: tuple[Mapping[str, Any], ...]
    letters: tuple[tuple[tuple[str, ...], tuple[tuple[int, ...], ...] | None], ...]
    ties: tuple[str, ...]
    queries: tuple[str, ...] | None
    late: tuple[tuple[str, str], ...] | None
    output: bytes
    schema: bytes
    buckets: int = 1
    lateness: int | None = None
    partitions: tuple[int, int, int] | None = None
    max_bytes: int | None = None
    null_keys: str = "drop"
    page_keys: int | None = None
    ruled: bool = False

    @cached_property
    def unpacked(self) -> tuple[Task, ...]:
        """The tasks."""
        return tuple(Task(**task) for task in self.tasks)

    @cached_property
    def compiled(self) -> tuple[Compiled, ...]:
        """The query of each task."""
        return tuple(compiled_here(task) for task in self.tasks)

    @cached_property
    def travelling(self) -> pa.Schema:
        """What travels."""
        return pa.ipc.read_schema(pa.py_buffer(self.schema))

    @cached_property
    def row(self) -> pa.Schema:
        """A row of the output."""
        return pa.ipc.read_schema(pa.py_buffer(self.output))

    @cached_property
    def views(self) -> tuple[View, ...]:
        """How each query shows its matches."""
        return tuple(task.view(compiled, self.travelling) for task, compiled in zip(self.unpacked, self.compiled, strict=True))

    @cached_property
    def fingerprint(self) -> bytes:
        """Of what a state means: each query with its bounds, what it keeps of the events, names and order of queries, and the letters' bits.

        The output is no part of it, nor how much of it there may be, nor whether late events are given back, nor the lateness, nor columns that
        nothing keeps: these may change between restarts.
        """
        kept = {*self.ties, *(column for task in self.unpacked for column in (*task.keys, *(own for _, own in task.payload)))}
        kept |= {column for task in self.unpacked for own in task.values for column in own}
        kept |= {column for task in self.unpacked for _, column in task.reads}
        types = [(field.name, field.type) for field in self.travelling if field.name in kept]
        digest = hashlib.sha256(canonical_text(tuple(sorted(types))).encode())
        for compiled, task in zip(self.compiled, self.unpacked, strict=True):
            digest.update(compiled.meaning)
            more = tuple(filter(None, (task.values, task.reads, self.null_keys if compiled.layers or self.ruled else "")))
            digest.update(canonical_text((task.keys, task.key_names, task.payload, task.index, *more)).encode())
        digest.update(canonical_text((self.queries, self.letters, self.ties, *(("rules",) if self.ruled else ()))).encode())
        return digest.digest()
