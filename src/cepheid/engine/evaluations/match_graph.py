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

    def idle(self, epoch: int, oldest: int | None) -> Array:
        """For each row whether no match can go on (bool). epoch: see `consumed`. oldest: the least time that one may start at, or None."""
        record = self.records
        idle: Array = (record[:, self.column["lists"]] == 0) | self.consumed(record, epoch)
        if oldest is not None:
            head, tail = record[:, self.column["starts_head"]], record[:, self.column["starts_tail"]]
            place = record[:, self.column["starts_offset"]] + ((tail - 1) & record[:, self.column["starts_mask"]])
            latest = self.starts.arrays[1][np.where(tail > head, place, 0)]
            idle |= (tail > head) & (latest < oldest)
        return idle

    def consumed(self, records: Array, epoch: int) -> Array:
        """For each row of `records` whether a trigger elsewhere has consumed all that is open in it: bool. epoch: of the last such trigger."""
        stale: Array = records[:, self.column["epoch"]] != epoch
        return stale

    def empty(self, rows: Array) -> None:
        """Drop the open matches of these rows and take back their slabs; positions go on."""
        record, column = self.records, self.column
        for pool, kind in ((self.cells, "cells"), (self.starts, "starts")):
            owners = rows[record[rows, column[f"{kind}_mask"]] >= 0]
            pool.release(record[owners, column[f"{kind}_offset"]], record[owners, column[f"{kind}_mask"]] + 1)
        owners = rows[record[rows, column["packed_size"]] > 0]
        self.packed.release(record[owners, column["packed_offset"]], record[owners, column["packed_size"]])
        kept = np.array([column["position"], column["base"], column["last_time"]])
        values = record[rows][:, kept]
        record[rows] = self.blank
        record[rows[:, None], kept] = values

    def packed_macros(self) -> Array:
        """Places in the packed lists that hold the macro states of stored partitions (int64)."""
        stored = self.records[self.records[:, self.column["lists"]] > 0]
        return ragged(stored[:, self.column["packed_offset"]], stored[:, self.column["lists"]])[1]
