"""What a stream's events travel in: on the way to their state one row per bucket and task, on the way out one row per visit.

Comes in: the prepared batches of a task (`pack`), and the blobs of matches (`unpack`). Goes out: blobs of events, and arrays of matches. Row by row
between Spark and Python costs more than recognition does; blobs cost next to nothing. Imports no Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from cepheid.engine.letters.values import one_chunk, plain, raw
from cepheid.engine.memory.container import table_bytes
from cepheid.spark.tasks.bounds import LAST_TIME
from cepheid.spark.tasks.rows import BYTES_PER_PIECE, ROWS_PER_PIECE
from cepheid.spark.tasks.visits import BLOB, BUCKET, SEAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cepheid.engine.memory.pools import Array

PACK_ROWS, PACK_BYTES = 1 << 18, 1 << 26
"""Events that a task collects before it hands its blobs on, and their bytes: what it holds in memory."""


def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The function that mapInArrow calls: one row per bucket, with its events of these batches, and first of all one for SEAL. Linear."""
    held: list[pa.RecordBatch] = []
    rows, size, sealed = 0, 0, False
    for batch in batches:
        if not batch.num_rows:
            continue
        if not sealed:
            yield pa.record_batch([pa.array([SEAL], pa.int32()), pa.array([b""], pa.binary())], names=[BUCKET, BLOB])
            sealed = True
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= PACK_ROWS or size >= PACK_BYTES:
            yield _packed(held)
            held, rows, size = [], 0, 0
    if held:
        yield _packed(held)


def _packed(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    events = pa.Table.from_batches(batches).combine_chunks()
    buckets = raw(events[BUCKET].chunk(0))
    events = events.drop_columns([BUCKET])
    order = np.argsort(buckets, kind="stable")
    found, starts = np.unique(buckets[order], return_index=True)
    if len(found) > 1:
        events = events.take(pa.array(order))
    stops = [*starts[1:].tolist(), len(buckets)]
    blobs = [table_bytes(events.slice(start, stop - start)) for start, stop in zip(starts.tolist(), stops, strict=True)]
    return pa.record_batch([pa.array(found, pa.int32()), pa.array(blobs, pa.binary())], names=[BUCKET, BLOB])


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


def letters_column(letters: Array) -> pa.Array:
    """Letters as a column; spellings of several words (uint64, a row each) as binary of equal lengths."""
    if letters.ndim == 1:
        return pa.array(letters)
    words = np.ascontiguousarray(letters)
    return pa.Array.from_buffers(pa.binary(words.itemsize * words.shape[1]), len(words), [None, pa.py_buffer(words)])


def letters_of(column: pa.Array) -> Array:
    """The letters or spellings of a column without NULL: unsigned integers."""
    if pa.types.is_fixed_size_binary(column.type):
        words = column.type.byte_width // 8
        spellings: Array = np.frombuffer(column.buffers()[1], np.uint64).reshape(-1, words)[column.offset : column.offset + len(column)]
        return spellings
    letters = raw(column)
    return letters.view(f"u{letters.itemsize}")
