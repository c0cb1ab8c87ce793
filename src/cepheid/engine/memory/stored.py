"""The partitions of a snapshot, as those know them whose state it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cepheid.records import record

if TYPE_CHECKING:
    from cepheid.engine.memory.pools import Array

SPARSE = 8
"""Slots of a snapshot are looked up in a table where they are at most so many times the keys."""


@record
class Stored:
    """The partitions of a snapshot, for the sections that speak of them: what these may name, and where the partitions stand.

    A stream with keys that come and go has gaps between its slots, and a snapshot may name any: what is loaded has slots without gaps.
    named: int64, ascending: the slots as the snapshot has them. slots: those that they are now, ascending as well. seen: the events of each so far.
    """

    named: Array
    slots: Array
    seen: Array

    def rows(self, named: Array) -> Array:
        """The places here of slots as the snapshot has them; raises ValueError for one without a key."""
        count = len(self.named)
        if len(named) == count and (named == self.named).all():
            return np.arange(count)
        if not count or int(self.named[-1]) >= SPARSE * count:
            rows = np.searchsorted(self.named, named)
        else:  # PERF: most of the slots have a key, and a table takes a fifth of the time of a search
            places: Array = np.zeros(int(self.named[-1]) + 1, np.int64)
            places[self.named] = np.arange(count)
            rows = places[np.clip(named, 0, self.named[-1])]
        known: Array = np.append(self.named, -1)[rows] == named
        if not (known & (named >= 0)).all():
            raise ValueError("a section names a partition that has no key")
        return rows

    def every(self, named: Array, positions: Array) -> Array:
        """What slots are now that must be all that have seen events, ascending, given the position of each one's next event."""
        rows = self.rows(named)
        if len(rows) != np.count_nonzero(self.seen) or not (rows[1:] > rows[:-1]).all():
            raise ValueError("a section lacks partitions")
        if (self.seen[rows] != positions).any():
            raise ValueError("its sections have different numbers of events")
        return self.slots[rows]

    def those(self, named: Array, positions: Array) -> Array:
        """What the slots of some events are now, given their positions."""
        rows = self.rows(named)
        if (positions < 0).any() or (positions >= self.seen[rows]).any():
            raise ValueError("a section has events after the last one of their partition")
        return self.slots[rows]
