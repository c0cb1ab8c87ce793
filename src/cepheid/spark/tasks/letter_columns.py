"""Letters as the columns in which they travel. Imports no Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from cepheid.engine.letters.values import raw

if TYPE_CHECKING:
    from cepheid.engine.memory.pools import Array


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
