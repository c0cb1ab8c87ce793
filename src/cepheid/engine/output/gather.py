"""Values of events as columns of matches: numbers and times go by number, in slices, into memory that is made once; the rest is Arrow's.

Comes in: a column, and the rows that matches show of it, slice by slice. Goes out: an Arrow array of one value per row.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.engine.letters.values import raw

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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


def times_from(steps: Array, kind: pa.DataType) -> pa.Array:
    """Times in steps of their type as an array of it: what `engine.input.read.times_of` gives, back."""
    return array_from(steps.astype(f"i{kind.bit_width // 8}"), kind)


class Picked:
    """Some of the events that a stream keeps, of which a column is made when it is asked for; immutable.

    pieces: tables, with the number of one row of each. single: the values of the events behind these, as Python has them.
    """

    def __init__(self, schema: pa.Schema, pieces: Sequence[tuple[pa.Table, int]], single: Sequence[tuple[Any, ...]]) -> None:
        self.schema = schema
        self._pieces = pieces
        self._single = single

    @property
    def num_rows(self) -> int:
        """How many events there are."""
        return len(self._pieces) + len(self._single)

    def select(self, names: Sequence[str]) -> Picked:
        """The same with some of the columns."""
        numbers = [self.schema.get_field_index(name) for name in names]
        single = [tuple(values[number] for number in numbers) for values in self._single]
        return Picked(
            pa.schema([self.schema.field(name) for name in names]), [(table.select(names), row) for table, row in self._pieces], single
        )

    def column(self, name: str) -> pa.ChunkedArray:
        """A column, in one piece."""
        return pa.chunked_array([self.values(name, range(self.num_rows))])

    def values(self, name: str, rows: Sequence[int]) -> pa.Array:
        """The values of some of the events, in memory of their own."""
        number, first = self.schema.get_field_index(name), len(self._pieces)
        kind = self.schema.field(number).type
        if all(row >= first for row in rows):
            return pa.array([self._single[row - first][number] for row in rows], kind)
        cells = []
        for row in rows:
            if row < first:
                table, place = self._pieces[row]
                cells += table.column(number).slice(place, 1).chunks
            else:
                cells.append(pa.array([self._single[row - first][number]], kind))
        return pa.concat_arrays(cells)

    @cached_property
    def table(self) -> pa.Table:
        """All columns."""
        return pa.Table.from_arrays([self.column(name) for name in self.schema.names], schema=self.schema)
