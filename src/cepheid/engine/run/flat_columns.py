"""Columns of a table as numbers and bytes, without the description that Arrow puts before each batch: for tables of a few rows.

Comes in: tables of one schema. Goes out: of columns of numbers, times and truth values a column of int64, of texts one of their lengths, and their
bytes; of each of these the rows that are NULL. Columns of other types stay what they are (`others`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.letters.values import one_chunk
from cepheid.engine.memory.checks import demand, inside

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cepheid.engine.memory.pools import Array


class FlatColumns:
    """The columns of a schema. flat: the fields that become numbers, those of texts last. texts: how many these are. others: all other fields."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        texts = [field for field in schema if _is_text(field.type)]
        self.flat = [*(field for field in schema if _is_number(field.type)), *texts]
        self.texts = len(texts)
        self.others = pa.schema([field for field in schema if not (_is_number(field.type) or _is_text(field.type))])

    def numbers(self, table: pa.Table) -> tuple[Array, ...]:
        """A column of int64 for each of `flat`: the values, or the lengths of texts; 0 for NULL."""
        split = len(self.flat) - self.texts
        values = [_values(one_chunk(table[field.name])) for field in self.flat[:split]]
        lengths = [pc.fill_null(pc.binary_length(one_chunk(table[field.name])), 0).to_numpy() for field in self.flat[split:]]
        return (*values, *(length.astype(np.int64) for length in lengths))

    def nulls(self, table: pa.Table) -> tuple[Array, ...]:
        """The rows that are NULL in each of `flat` (int64)."""
        return tuple(_null_rows(table[field.name]) for field in self.flat)

    def bytes_of(self, table: pa.Table) -> list[tuple[Array, memoryview]]:
        """For each column of texts where each of its rows starts, with the end of the last, in its bytes."""
        found = []
        for field in self.flat[len(self.flat) - self.texts :]:
            column = one_chunk(table[field.name]).cast(pa.large_binary())
            _, offsets, data = column.buffers()
            starts = (
                np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1] if len(column) else np.zeros(1, np.int64)
            )
            found.append((starts, memoryview(b"" if data is None else data)))
        return found

    def table(self, numbers: Sequence[Array], nulls: Sequence[Array], texts: Sequence[bytes], others: pa.Table | None) -> pa.Table:
        """The inverse; raises ValueError and what Arrow raises where these fit no table."""
        columns: dict[str, pa.Array | pa.ChunkedArray] = (
            {} if others is None else dict(zip(others.column_names, others.columns, strict=True))
        )
        for place, (field, words, empty) in enumerate(zip(self.flat, numbers, nulls, strict=True)):
            at = place - (len(self.flat) - self.texts)
            column = _array(words, field.type) if at < 0 else _texts(words, texts[at], field.type)
            if len(empty):
                valid = np.ones(len(words), np.bool_)
                valid[empty] = False
                column = pc.if_else(pa.array(valid), column, pa.scalar(None, field.type))
            columns[field.name] = column
        found = pa.Table.from_arrays([columns[name] for name in self.schema.names], schema=self.schema)
        found.validate(full=True)
        return found


def _is_number(kind: pa.DataType) -> bool:
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_float32(kind) or pa.types.is_float64(kind):
        return True
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_time(kind) or pa.types.is_duration(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _values(column: pa.Array) -> Array:
    """The values of a column of numbers in int64."""
    kind = column.type
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        column = column.view(pa.int64() if kind.bit_width == 64 else pa.int32())
    values: Array = column.fill_null(0).to_numpy(zero_copy_only=False)
    if values.dtype.kind == "f":
        values = values.view(f"i{values.itemsize}")
    return values.astype(np.int64)


def _array(words: Array, kind: pa.DataType) -> pa.Array:
    """The inverse."""
    if pa.types.is_boolean(kind):
        return pa.array(words != 0)
    return pa.array(words.astype(f"i{kind.bit_width // 8}")).view(kind)


def _texts(lengths: Array, data: bytes, kind: pa.DataType) -> pa.Array:
    demand(inside(lengths, 0, len(data) + 1), int(lengths.sum()) == len(data))
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return pa.Array.from_buffers(pa.large_binary(), len(lengths), [None, pa.py_buffer(offsets), pa.py_buffer(data)]).cast(kind)


def _null_rows(column: pa.ChunkedArray) -> Array:
    rows: Array = np.flatnonzero(np.asarray(one_chunk(column).is_null())) if column.null_count else np.zeros(0, np.int64)
    return rows
