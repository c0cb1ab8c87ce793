"""PARTITION BY on columns: which rows have the same key, and in which order to read them.

Comes in: the key columns of a batch. Goes out: one small number per row for its key, and rows grouped by key. No Python per row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.letters.values import plain, raw, validity
from cepheid.errors import SchemaError
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cepheid.engine.memory.pools import Array

MILLISECONDS_OF_DAY = 86_400_000

SLICE = 1 << 16
"""Rows that are sorted at a time: what is made in between stays in the cache."""

DIGIT = 12
"""Bits of codes that such a slice is sorted by at once: it counts all values that they may have."""


@record(slots=False)
class Groups:
    """Rows grouped by key, in their order within each key.

    order: int32 or int64, the rows that belong to a partition, key by key. cuts: int64, places in `order` where each partition starts. null_keys:
    rows that belong to none, for a NULL in their key.
    """

    order: Array
    cuts: Array
    null_keys: int

    def positions(self, rows: int) -> Array:
        """The position of each of so many rows among those of its key (int64); -1: it has none."""
        positions: Array = np.full(rows, -1, np.int64)
        positions[self.order] = np.arange(len(self.order)) - np.repeat(self.cuts, np.diff(self.cuts, append=len(self.order)))
        return positions

    def interleaved(self) -> tuple[Array, Array, Array]:
        """The same rows in stream order: (rows, places in them where segments of one partition start, each segment's partition); O(n log n)."""
        partition = np.repeat(np.arange(len(self.cuts)), np.diff(self.cuts, append=len(self.order)))
        sorting = np.argsort(self.order)
        partition = partition[sorting]
        cuts = np.flatnonzero(np.diff(partition, prepend=-1))
        return self.order[sorting].astype(np.int64, copy=False), cuts, partition[cuts]


def group(codes: Array, count: int) -> Groups:
    """Rows grouped by the numbers of their keys, -1 for none (see `key_codes`); linear: radix passes."""
    rows: Array | None = None
    dropped = 0
    if codes.size and int(codes.min()) < 0:
        rows = np.flatnonzero(codes >= 0)
        dropped = len(codes) - len(rows)
        codes = codes[rows]
    order = stable_order(codes, count)
    cuts: list[Array] = [np.zeros(0, np.int64)]
    before = -1
    for start in range(0, len(order), SLICE):
        part = np.take(codes, order[start : start + SLICE])
        changes = np.append(part[0] != before, part[1:] != part[:-1])
        cuts.append(start + np.flatnonzero(changes))
        before = int(part[-1])
    return Groups(order if rows is None else rows[order], np.concatenate(cuts), dropped)


def stable_order(codes: Array, count: int) -> Array:
    """The stable sorting permutation of codes in [0, count), int64 or in 32 bits: a radix pass per 16 bits, or for many codes per DIGIT bits."""
    if len(codes) <= SLICE:
        order: Array = np.argsort((codes & 0xFFFF).astype(np.uint16), kind="stable")
        for shift in (16, 32, 48):
            if count >> shift:
                order = order[np.argsort((codes[order] >> shift & 0xFFFF).astype(np.uint16), kind="stable")]
        return order
    bits = max(1, (count - 1).bit_length())
    width = -(-bits // -(-bits // DIGIT))
    rows: Array | None = None
    for shift in range(0, bits, width):
        rows = _by_digit(codes, rows, shift, width)
    assert rows is not None
    return rows


def _by_digit(codes: Array, order: Array | None, shift: int, width: int) -> Array:
    """Rows (int64, or int32 where that suffices) in a stable order by some bits of their codes; order: the one before, None: as they are."""
    # PERF: faster than to sort them at once, and a fifth of the memory.
    slices = [slice(start, min(start + SLICE, len(codes))) for start in range(0, len(codes), SLICE)]
    digits = np.empty(len(codes), np.uint8 if width <= 8 else np.uint16)
    counts: Array = np.zeros((len(slices), 1 << width), np.int64)
    for part, own in zip(slices, counts, strict=True):
        digits[part] = (codes[part] if order is None else np.take(codes, order[part])) >> shift & (1 << width) - 1
        own[:] = np.bincount(digits[part], minlength=1 << width)
    total = counts.sum(axis=0)
    following = np.cumsum(total) - total
    found = np.empty(len(codes), np.int32 if len(codes) <= 1 << 31 else np.int64)
    for part, own in zip(slices, counts, strict=True):
        places = np.repeat(following - (np.cumsum(own) - own), own) + np.arange(part.stop - part.start)
        sorting = np.argsort(digits[part], kind="stable")
        found[places] = sorting + part.start if order is None else np.take(order[part], sorting)
        following += own
    return found


def key_codes(events: pa.Table | pa.RecordBatch, names: Sequence[str], *, grouped: Sequence[str] = ()) -> tuple[Array, int]:
    """A number in [0, count) for each row's key, equal for equal keys, -1 where the row has none; and count.

    grouped: the attributes in which NULL is a value like any other; a row with a NULL in another one has no key. NaN is NULL, -0.0 is 0.0. Raises
    SchemaError for a nested attribute. Linear.
    """
    codes: Array = np.zeros(events.num_rows, np.int32)
    missing: Array | None = None
    count = 1
    for name in names:
        encoded, size = _encode(normalized(events.column(name)), name)
        if encoded.size and int(encoded.min()) < 0:
            null = encoded < 0
            if name in grouped:
                encoded = np.where(null, size, encoded)
                size += 1
            else:
                missing = null if missing is None else missing | null
                encoded = np.where(null, 0, encoded)
        if count * size >= 1 << 31:
            distinct, codes = np.unique(codes, return_inverse=True)
            count = len(distinct)
        codes = encoded if count == 1 else codes.astype(np.int64, copy=False) * size + encoded
        count *= size
    if len(names) > 1 and count > 1 << 20:
        distinct, codes = np.unique(codes, return_inverse=True)
        count = len(distinct)
    return (codes if missing is None else np.where(missing, -1, codes)), max(count, 1)


def normalized(column: Any) -> pa.Array:
    """A key column as one plain array of values that are equal where the language's are: NaN is NULL, -0.0 is 0.0, a date64 its day."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks else pa.nulls(0, column.type)
    if pa.types.is_dictionary(array.type) and not (pa.types.is_floating(array.type.value_type) or pa.types.is_null(array.type.value_type)):
        return array
    array = plain(array)
    if pa.types.is_floating(array.type):
        values, valid = raw(array), validity(array)
        null = np.isnan(values) if valid is None else ~valid | np.isnan(values)
        return pa.array(values + values.dtype.type(0), array.type, mask=null)
    if pa.types.is_date64(array.type):
        values, valid = raw(array), validity(array)
        return pa.array(values - values % MILLISECONDS_OF_DAY, mask=None if valid is None else ~valid).view(array.type)
    return array


def key_table(events: pa.Table, names: Sequence[str]) -> pa.Table:
    """The key columns of rows as they are shown and kept: `normalized`, one chunk each."""
    return pa.table([normalized(events[name]) for name in names], names=list(names))


def _encode(array: pa.Array, name: str) -> tuple[Array, int]:
    """Codes (int32 or int64, -1 for NULL) of an array's values, and how many there are."""
    if not pa.types.is_dictionary(array.type):
        if pa.types.is_decimal(array.type) and array.type.bit_width < 128:
            array = array.cast(pa.decimal128(array.type.precision, array.type.scale))  # Arrow encodes no narrow ones
        try:
            array = array.dictionary_encode()
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            fact = f"`{name}` is {array.type}, and a PARTITION BY attribute holds one value"
            raise SchemaError(fact, help="partition by one of its fields") from None
    elif pc.count_distinct(array.dictionary, mode="all").as_py() != len(array.dictionary) or array.dictionary.null_count:
        array = plain(array).dictionary_encode()
    codes, valid = raw(array.indices), validity(array.indices)
    codes = codes.astype(np.int64 if codes.itemsize > 4 or codes.dtype == np.uint32 else np.int32, copy=False)
    return (codes if valid is None else np.where(valid, codes, codes.dtype.type(-1))), len(array.dictionary)
