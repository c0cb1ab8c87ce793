"""Where matched events come from: their rows in the input as it was given, before it was sorted, merged or cut.

Comes in: what reading the input has changed. Goes out: the number of each event, and of several streams which one it is of. An event's number is its
row; of several streams they are counted on, one stream after the other. An event that a match has made has none: -1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cepheid.engine.memory.pools import Array

ROW = "\0input row"
"""The column that carries the numbers of events where these are read piece by piece."""

NOWHERE = -1
"""The number of an event that was not in the input."""


@record(slots=False, eq=False)
class Streams:
    """The streams of an input. names: of each. starts: int64, the number of the first event of each."""

    names: tuple[str, ...]
    starts: Array

    @classmethod
    def of(cls, lengths: Mapping[str, int]) -> Streams:
        """lengths: how many events each stream has."""
        counts = np.array(list(lengths.values()), np.int64)
        return cls(tuple(lengths), np.cumsum(counts) - counts)

    def split(self, numbers: Array) -> tuple[Array, Array]:
        """For each number the stream (int32) and the row in it (int64); -1 and -1 for what is nowhere."""
        # An empty stream starts where the next one does, which has the event.
        which = np.searchsorted(self.starts, numbers, "right") - 1
        rows = np.where(numbers == NOWHERE, NOWHERE, numbers - self.starts[which])
        return which.astype(np.int32), rows


@record(slots=False, eq=False)
class Origin:
    """Where the events of some `Matches` come from.

    numbers: int64, the number of each row of the events; None: it is the row. streams: of the input; None: it was no dict of streams.
    """

    numbers: Array | pa.ChunkedArray | None = None
    streams: Streams | None = None

    def numbers_of(self, rows: Array) -> Array:
        """The numbers (int64) of some rows of the events."""
        if self.numbers is None:
            return rows.astype(np.int64, copy=False)
        if isinstance(self.numbers, pa.ChunkedArray):
            found: Any = self.numbers.take(pa.array(rows)).fill_null(NOWHERE)
            return np.asarray(found.to_numpy())
        return np.asarray(self.numbers[rows])

    @property
    def item(self) -> pa.DataType:
        """The type of a row number as a value: int64, or of several streams a struct with the name of the stream."""
        return pa.int64() if self.streams is None else pa.struct([pa.field("stream", pa.string()), pa.field("row", pa.int64())])

    def values(self, numbers: Array) -> pa.Array:
        """Numbers as values of `item`; NULL for what is nowhere."""
        missing = numbers == NOWHERE
        if self.streams is None:
            return pa.array(numbers, pa.int64(), mask=missing if missing.any() else None)
        which, rows = self.streams.split(numbers)
        names = pa.array(self.streams.names, pa.string()).take(pa.array(np.maximum(which, 0)))
        return pa.StructArray.from_arrays(
            [names, pa.array(rows)], fields=list(self.item), mask=pa.array(missing) if missing.any() else None
        )
