"""The match graphs of all partitions, as the match kernel keeps them: records, and slabs of cells, starts and packed lists.

What reads events is `match`; what makes bytes of the graphs, and back, is `match_state`.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cepheid.engine.evaluations.base import KernelRun
from cepheid.engine.evaluations.transitions import Successors, TransitionTable
from cepheid.engine.memory.pools import POOL_NUMBERS, Pool, ragged

if TYPE_CHECKING:
    from cepheid.engine.evaluations.base import Bounds

Array = np.ndarray[Any, Any]


class MatchGraph(KernelRun):
    """The match graphs of one program over any number of partitions.

    entries: bound of the transition table. cells, starts, packed: first places of these pools (powers of two). records: int64, a row per slot
    after row 0, the workplace of partitions that are not kept; `column` says what stands where.
    """

    counters: ClassVar[tuple[str, ...]] = ("events", "triggers", "matches", "skipped", "unions")

    def __init__(self, program: Successors, bounds: Bounds, *, entries: int, cells: int, starts: int, packed: int) -> None:
        super().__init__("match", bounds)
        self.program = program
        self.column = {name: place for place, name in enumerate(self.kernel.RECORD)}
        self.table = TransitionTable(program, entries=entries)
        self._pools: Array = np.zeros((3, POOL_NUMBERS), np.int64)
        self.cells = Pool(self._pools[0], cells, ((np.int32, 4), (np.uint16, 1)))
        self.starts = Pool(self._pools[1], starts, ((np.int32, 1), (np.int64, 1)))
        self.packed = Pool(self._pools[2], packed, ((np.int32, 1),))
        self.records: Array = np.zeros((0, len(self.column)), np.int64)
        self.ensure_slots(0)

    @property
    def matches(self) -> int:
        """Matches given."""
        return self._get("matches")

    @property
    def unions(self) -> int:
        """Pure union cells made (name in paper: union nodes)."""
        return self._get("unions")

    @property
    def slots(self) -> int:
        """How many slots there are."""
        return len(self.records) - 1

    def ensure_slots(self, count: int) -> None:
        """Make slots 0 .. count - 1 exist."""
        if count + 1 > len(self.records):
            rows = np.tile(self._blank(), (max(count + 1, 2 * len(self.records)), 1))
            rows[: len(self.records)] = self.records
            self.records = rows

    def _blank(self) -> Array:
        row = np.zeros(len(self.column), np.int64)
        for name, value in (("head", 1), ("next", 1), ("cells_mask", -1), ("starts_mask", -1)):
            row[self.column[name]] = value
        return row

    def release(self, slots: Array) -> None:
        """Forget the partitions in these slots: positions start again at 0, and their memory waits for others. O(slots)."""
        rows = np.unique(np.asarray(slots, np.int64)) + 1
        self._empty(rows)
        self.records[rows] = self._blank()

    def expire(self, time: int) -> Array:
        """Free the memory of partitions in which no match can go on at `time` or later; returns all slots that now hold no open match (int64).

        Positions go on where they were. Vectorized, O(slots).
        """
        record = self.records
        lists = record[:, self.column["lists"]]
        idle = (lists == 0) | self.consumed(record)
        if self.window is not None:
            head, tail = record[:, self.column["starts_head"]], record[:, self.column["starts_tail"]]
            place = record[:, self.column["starts_offset"]] + ((tail - 1) & record[:, self.column["starts_mask"]])
            latest = self.starts.arrays[1][np.where(tail > head, place, 0)]
            idle |= (tail > head) & (latest < time - self.window)
        rows = np.flatnonzero(idle)
        rows = rows[rows > 0]
        self._empty(rows)
        return rows - 1

    def consumed(self, records: Array) -> Array:
        """For each row of `records`, whether a trigger elsewhere has consumed all that is open in it: bool."""
        stale: Array = records[:, self.column["epoch"]] != self._get("epoch")
        return stale

    def _empty(self, rows: Array) -> None:
        """Drop the open matches of stored partitions and take back their slabs."""
        record, column = self.records, self.column
        for pool, kind in ((self.cells, "cells"), (self.starts, "starts")):
            owners = rows[record[rows, column[f"{kind}_mask"]] >= 0]
            pool.release(record[owners, column[f"{kind}_offset"]], record[owners, column[f"{kind}_mask"]] + 1)
        owners = rows[record[rows, column["packed_size"]] > 0]
        self.packed.release(record[owners, column["packed_offset"]], record[owners, column["packed_size"]])
        kept = np.array([column["position"], column["base"], column["last_time"]])
        values = record[rows][:, kept]
        record[rows] = self._blank()
        record[rows[:, None], kept] = values

    def packed_macros(self) -> Array:
        """Places in the packed lists that hold the macro states of stored partitions (int64)."""
        stored = self.records[self.records[:, self.column["lists"]] > 0]
        return ragged(stored[:, self.column["packed_offset"]], stored[:, self.column["lists"]])[1]

    # ------------------------------------------------------------------------------------------------ restoring

    @abstractmethod
    def adopt_macros(self, macros: list[int]) -> Array:
        """Numbers of these macro states (bit masks over automaton states) in the table (int32)."""

    @abstractmethod
    def fit_lists(self, lists: int, length: int) -> None:
        """Make room for partitions with so many live lists of so many entries."""
