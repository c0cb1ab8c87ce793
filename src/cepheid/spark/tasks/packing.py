"""What a stream's events travel in: on the way to their state one row per bucket and task, on the way out one row per visit.

Comes in: the prepared batches of a task (`pack`), and the blobs of matches (`unpack`). Goes out: blobs of events, and arrays of matches. Row by row
between Spark and Python costs more than recognition does; blobs cost next to nothing. Imports no Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.letters.values import one_chunk, plain, raw
from cepheid.engine.memory.container import table_bytes
from cepheid.spark.tasks.bounds import LAST_TIME
from cepheid.spark.tasks.partition_times import Told
from cepheid.spark.tasks.rows import BYTES_PER_PIECE, ROWS_PER_PIECE
from cepheid.spark.tasks.visits import BLOB, BUCKET, LISTENS, MOMENT_READ, SAYS, SEAL, SOURCE, TOLD
from cepheid.spark.tasks.worker import TIME

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cepheid.engine.memory.pools import Array

PACK_ROWS, PACK_BYTES = 1 << 18, 1 << 26
"""Events that a task collects before it hands its blobs on, and their bytes: what it holds in memory."""


def pack(batches: Iterator[pa.RecordBatch], *, told_buckets: int = 0) -> Iterator[pa.RecordBatch]:
    """The function that mapInArrow calls: one row per bucket, with its events of these batches, and first of all one for SEAL. Linear.

    told_buckets: how many buckets are told of the source's partitions, at the end; 0: these do not count. Else events have the columns `SOURCE` and
    `MOMENT_READ`, and those without a bucket only say how far their partition is.
    """
    told = Told() if told_buckets else None
    held: list[pa.RecordBatch] = []
    rows, size, sealed = 0, 0, False
    for batch in batches:
        if not batch.num_rows:
            continue
        if not sealed:
            yield _rows([SEAL], blobs=[b""])
            sealed = True
        own = batch if told is None else _seen(told, batch)
        if not own.num_rows:
            continue
        held.append(own)
        rows, size = rows + own.num_rows, size + own.nbytes
        if rows >= PACK_ROWS or size >= PACK_BYTES:
            yield _packed(held)
            held, rows, size = [], 0, 0
    if held:
        yield _packed(held)
    if told is not None and told.row:
        yield _rows(range(told_buckets), told=told.row)


def pack_rules(batches: Iterator[pa.RecordBatch], *, buckets: int) -> Iterator[pa.RecordBatch]:
    """The function that mapInArrow calls for rows of rules: all of them for each of so many buckets, in pieces of some PACK_BYTES."""
    for batch in batches:
        if batch.num_rows:
            rows = table_bytes(pa.Table.from_batches([batch]))
            yield _rows([0], blobs=[rows], told=SAYS)
            most = max(1, PACK_BYTES // len(rows))
            for first in range(1, buckets, most):
                listening = range(first, min(first + most, buckets))
                yield _rows(listening, blobs=[rows] * len(listening), told=LISTENS)


def _seen(told: Told, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The events of a batch that go to a bucket, when their partitions have been seen."""
    told.see(batch[SOURCE], batch[TIME], batch[MOMENT_READ])
    return batch.drop_columns([SOURCE, MOMENT_READ]).filter(pc.is_valid(batch[BUCKET]))


def _packed(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    events = pa.Table.from_batches(batches).combine_chunks()
    buckets = raw(events[BUCKET].chunk(0))
    events = events.drop_columns([BUCKET])
    order = np.argsort(buckets, kind="stable")
    found, starts = np.unique(buckets[order], return_index=True)
    if len(found) > 1:
        events = events.take(pa.array(order))
    stops = [*starts[1:].tolist(), len(buckets)]
    return _rows(found, blobs=[table_bytes(events.slice(start, stop - start)) for start, stop in zip(starts.tolist(), stops, strict=True)])


def _rows(buckets: Sequence[int] | Array, *, blobs: list[bytes] | None = None, told: bytes | None = None) -> pa.RecordBatch:
    """Packed rows, one for each bucket: with a blob of its own, and with what all are told."""
    count = len(buckets)
    contents = pa.nulls(count, pa.binary()) if blobs is None else pa.array(blobs, pa.binary())
    tidings = pa.nulls(count, pa.binary()) if told is None else pa.repeat(pa.scalar(told, pa.binary()), count)
    return pa.record_batch([pa.array(buckets, pa.int32()), contents, tidings], names=[BUCKET, BLOB, TOLD])


def blobs(pieces: Iterable[tuple[pa.Table, Array]]) -> Iterator[tuple[int, bytes]]:
    """Rows of one schema, in pieces with their times (int64), as blobs with the least time of each; small pieces share one."""
    held: list[pa.Table] = []
    rows, size, first = 0, 0, LAST_TIME
    for table, times in pieces:
        if not len(times):
            continue
        held.append(table)
        rows, size, first = rows + table.num_rows, size + table.nbytes, min(first, int(times.min()))
        if rows >= ROWS_PER_PIECE or size >= BYTES_PER_PIECE:
            yield first, _blob(held)
            held, rows, size, first = [], 0, 0, LAST_TIME
    if held:
        yield first, _blob(held)


def _blob(tables: list[pa.Table]) -> bytes:
    return bytes(pa.concat_tables(tables).combine_chunks().to_batches()[0].serialize().to_pybytes())


def unpack(schema: pa.Schema, blobs: pa.Array) -> pa.Array:
    """The matches of each blob: an array of lists of structs with these columns."""
    batches = [pa.ipc.read_record_batch(blob.as_buffer(), schema) for blob in blobs]
    offsets = np.concatenate([np.zeros(1, np.int32), np.cumsum([batch.num_rows for batch in batches], dtype=np.int32)])
    table = pa.Table.from_batches(batches, schema=schema).combine_chunks()
    columns = [one_chunk(column) for column in table.columns]
    structs = pa.StructArray.from_arrays(columns, fields=list(schema)) if columns else pa.nulls(int(offsets[-1]), pa.struct([]))
    return pa.ListArray.from_arrays(pa.array(offsets), structs)


def steps(column: pa.ChunkedArray) -> Array:
    """Times in steps of their column (int64): timestamps as Spark gives them in microseconds, dates in days, integers as they are."""
    times: Array = raw(plain(one_chunk(column))).astype(np.int64, copy=False)
    return times
