"""Values of events as columns of matches: numbers and times go by number, in slices, into memory that is made once; the rest is Arrow's.

Comes in: a column, and the rows that matches show of it, slice by slice. Goes out: an Arrow array of one value per row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from cepheid.engine.letters.values import raw

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cepheid.engine.memory.pools import Array


def numbers_of(array: pa.Array) -> Array | None:
    """The values of an array that are all numbers or times of a fixed width, none of them NULL or NaN, without a copy; None: they are others."""
    kind = array.type
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if not (number or (pa.types.is_temporal(kind) and not pa.types.is_interval(kind))) or array.null_count:
        return None
    values = raw(array)
    return None if values.dtype.kind == "f" and np.isnan(values).any() else values


def gather(values: Array, slices: Iterable[Array], count: int, kind: pa.DataType) -> pa.Array:
    """The values of some rows as an array of a type of their width; slices: the rows, count of them."""
    # PERF: numpy asks for huge pages, where Arrow's take pays for each small one; "clip" writes without a copy, and no row is out of range.
    found = np.empty(count, values.dtype)
    stop = 0
    for rows in slices:
        start, stop = stop, stop + len(rows)
        np.take(values, rows, out=found[start:stop], mode="clip")
    return array_from(found, kind)


def array_from(values: Array, kind: pa.DataType) -> pa.Array:
    """Values without NULL as an array of a type of their width, without a copy."""
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])
