"""The match graphs of all partitions, as the match kernel keeps them: records, and slabs of cells, starts and packed lists.

What reads events is `match`; what makes bytes of the graphs, and back, is `match_state`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cepheid.engine.memory.pools import POOL_NUMBERS, Pool, ragged
from cepheid.engine.memory.store import Store

if TYPE_CHECKING:
    from cepheid.engine.evaluations.base import Bounds
    from cepheid.engine.evaluations.transitions import TransitionTable
    from cepheid.engine.memory.pools import Array


class MatchGraph(Store):
    """The match graphs of one program, within bounds.

    kernel: of matches. table: of the macro states that the lists speak of. cells, starts, packed: first places of these pools (powers of two).
    records: int64, `column` says what stands where.
    """

    records: Array

    def __init__(self, kernel: Any, table: TransitionTable, bounds: Bounds, *, cells: int, starts: int, packed: int) -> None:
        self.kernel = kernel
        self.table = table
        self.window = bounds.get("window")
        self.count_window = bounds.get("count_window")
        self.column = {name: place for place, name in enumerate(kernel.RECORD)}
        self.blank: Array = np.zeros(len(self.column), np.int64)
        for name, value in (("head", 1), ("next", 1), ("cells_mask", -1), ("starts_mask", -1)):
            self.blank[self.column[name]] = value
        super().__init__(records=self.blank)
        self.pools: Array = np.zeros((3, POOL_NUMBERS), np.int64)
        self.cells = Pool(self.pools[0], cells, ((np.int32, 4), (np.uint16, 1)))
        self.starts = Pool(self.pools[1], starts, ((np.int32, 1), (np.int64, 1)))
        self.packed = Pool(self.pools[2], packed, ((np.int32, 1),))

    @property
    def reserved(self) -> int:
        """Bytes of the pools."""
        return self.cells.nbytes + self.starts.nbytes + self.packed.nbytes

    @property
    def taken(self) -> int:
        """Bytes of the slabs that rows hold."""
        return sum(pool.place_bytes * int(self._held(kind)[2].sum()) for kind, pool in self._pools)

    @property
    def _pools(self) -> tuple[tuple[str, Pool], ...]:
        return ("cells", self.cells), ("starts", self.starts), ("packed", self.packed)

    def _held(self, kind: str, rows: Array | None = None) -> tuple[Array, Array, Array]:
        """Of these rows (None: of all) those that hold a slab of a kind, where it starts, and its places."""
        records, column = self.records, self.column
        name, one_less = ("packed_size", 0) if kind == "packed" else (f"{kind}_mask", 1)
        sizes = one_less + (records[:, column[name]] if rows is None else records[rows, column[name]])
        found = np.flatnonzero(sizes)
        sizes, found = sizes[found], found if rows is None else rows[found]
        return found, records[found, column[f"{kind}_offset"]], sizes

    def squeeze(self) -> None:
        """Move the slabs that rows hold together, and give back the memory behind them. O(rows), and what they hold."""
        for kind, pool in self._pools:
            rows, offsets, sizes = self._held(kind)
            self.records[rows, self.column[f"{kind}_offset"]] = pool.squeeze(offsets, sizes)

    def idle(self, epoch: int, oldest: int | None) -> Array:
        """For each row whether no match can go on (bool). epoch: see `consumed`. oldest: the least time that one may start at, or None."""
        record = self.records
        idle: Array = (record[:, self.column["lists"]] == 0) | self.consumed(record, epoch)
        if oldest is not None:
            rows = np.flatnonzero(~idle)  # PERF: of few rows; a column of all records takes as long as to read all of them
            head, tail, offset, mask = (record[rows, self.column[f"starts_{name}"]] for name in ("head", "tail", "offset", "mask"))
            latest = self.starts.arrays[1][np.where(tail > head, offset + ((tail - 1) & mask), 0)]
            idle[rows] = (tail > head) & (latest < oldest)
        return idle

    def consumed(self, records: Array, epoch: int) -> Array:
        """For each row of `records` whether a trigger elsewhere has consumed all that is open in it: bool. epoch: of the last such trigger."""
        stale: Array = records[:, self.column["epoch"]] != epoch
        return stale

    def empty(self, rows: Array) -> None:
        """Drop the open matches of these rows and take back their slabs; positions go on."""
        record, column = self.records, self.column
        holding: Array = np.zeros(len(record), np.bool_)
        for kind, pool in self._pools:
            owners, offsets, sizes = self._held(kind, rows)
            pool.release(offsets, sizes)
            holding[owners] = True
        rows = rows[holding[rows]]  # PERF: the others are as they are left here
        kept = np.array([column["position"], column["base"], column["last_time"]])
        values = record[rows][:, kept]
        record[rows] = self.blank
        record[rows[:, None], kept] = values

    def packed_macros(self) -> Array:
        """Places in the packed lists that hold the macro states of stored partitions (int64)."""
        stored = self.records[self.records[:, self.column["lists"]] > 0]
        return ragged(stored[:, self.column["packed_offset"]], stored[:, self.column["lists"]])[1]
