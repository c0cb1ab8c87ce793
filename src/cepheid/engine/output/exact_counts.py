"""The values of COUNT(*), exact beyond 64 bits: as limbs, as Python integers, and as Arrow columns. Nothing is counted here.

A column of counts is uint64, (n, limbs), least limb first, with at least two limbs. In Arrow it is two columns: `count`, decimal128(38, 0), NULL
where the number has more than 38 digits, and `count_overflow`, bool, which says where. On Spark they are decimal(38,0) and boolean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cepheid.engine.memory.pools import Array

COUNT_DIGITS = 38
"""Most decimal digits of a value of the column `count`."""

COUNT_FIELDS = (pa.field("count", pa.decimal128(COUNT_DIGITS, 0)), pa.field("count_overflow", pa.bool_()))
"""The columns of a query with COUNT(*)."""

LIMB_BITS = 64


def no_counts() -> Array:
    """A column without counts."""
    return np.zeros((0, 2), np.uint64)


def from_integers(values: Sequence[int], *, limbs: int = 2) -> Array:
    """Python integers, none negative, as a column of counts, with at least so many limbs."""
    limbs = max(limbs, max((-(-value.bit_length() // LIMB_BITS) for value in values), default=0))
    data = b"".join(value.to_bytes(8 * limbs, "little") for value in values)
    return np.frombuffer(data, "<u8").astype(np.uint64).reshape(len(values), limbs)


def to_integer(count: Array) -> int:
    """One count, given its limbs, as a Python integer."""
    return int.from_bytes(count.astype("<u8").tobytes(), "little")


def joined(parts: Sequence[Array]) -> Array:
    """Columns of counts, one after the other, as wide as the widest; one column is passed on without a copy."""
    if len(parts) == 1:
        return parts[0]
    limbs = max((part.shape[1] for part in parts), default=2)
    return np.concatenate([np.zeros((0, limbs), np.uint64), *(np.pad(part, ((0, 0), (0, limbs - part.shape[1]))) for part in parts)])


def columns(counts: Array) -> tuple[pa.Array, pa.Array]:
    """The Arrow columns of COUNT_FIELDS. Vectorized: two limbs are a decimal128."""
    most_high, most_low = (np.uint64(limb) for limb in divmod(10**COUNT_DIGITS, 1 << LIMB_BITS))
    low, high = counts[:, 0], counts[:, 1]
    overflow = counts[:, 2:].any(axis=1) | (high > most_high) | ((high == most_high) & (low >= most_low))
    pairs = np.ascontiguousarray(np.where(overflow[:, None], np.uint64(0), counts[:, :2]), "<u8")
    valid = pa.py_buffer(np.packbits(~overflow, bitorder="little")) if overflow.any() else None
    values = pa.Array.from_buffers(COUNT_FIELDS[0].type, len(counts), [valid, pa.py_buffer(pairs)])
    return values, pa.array(overflow)
