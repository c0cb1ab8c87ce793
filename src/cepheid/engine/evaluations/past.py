"""Values of earlier places of partitions: where an event began, how far something had come.

Comes in: batch by batch, values of some places of some partitions. Goes out: for any place the last value at it or before it. Nothing is forgotten
but partitions that are over, so it grows with the values that it gets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cepheid.errors import LimitError

if TYPE_CHECKING:
    from cepheid.engine.memory.pools import Array

PLACE_BITS = 40
"""Bits of a place; the others are the number of its partition among those that have values."""

MOST_PARTITIONS = 1 << 62 - PLACE_BITS
"""Partitions that may have values."""


class Past:
    """Values by partition and place (int64 all). A partition is any number, from 0 on."""

    def __init__(self) -> None:
        self._lines: Array = np.zeros((0, 3), np.int64)
        self._known: Array = np.zeros(0, np.int64)
        self._keys: Array = np.zeros(0, np.int64)
        self._sorted = True

    def add(self, partitions: Array, places: Array, values: Array) -> None:
        """Keep some values."""
        self._lines = np.concatenate([self._lines, np.column_stack([partitions, places, values])])
        self._sorted = False

    def rename(self, before: int, after: int) -> None:
        """A partition gets another number, which no other one has."""
        self.forget(np.array([after]))
        self._lines[self._lines[:, 0] == before, 0] = after
        self._sorted = False

    def forget(self, partitions: Array) -> None:
        """Forget some partitions."""
        self._lines = self._lines[~np.isin(self._lines[:, 0], partitions)]
        self._sorted = False

    def last(self, partitions: Array, places: Array) -> tuple[Array, Array]:
        """The last place that has a value, up to some places of some partitions, and the value; -1 and -1 without one. O(log n) each."""
        if not self._sorted:
            self._sort()
        number = np.searchsorted(self._known, partitions)
        found = np.append(self._known, -1)[number] == partitions
        at = np.searchsorted(self._keys, (number << PLACE_BITS) + places, "right") - 1
        found &= at >= 0
        lines = self._lines[np.where(found, at, 0)] if len(self._lines) else np.full((len(at), 3), -1, np.int64)
        found &= lines[:, 0] == partitions
        return np.where(found, lines[:, 1], -1), np.where(found, lines[:, 2], -1)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return int(self._lines.nbytes + self._known.nbytes + self._keys.nbytes)

    def _sort(self) -> None:
        self._lines = self._lines[np.lexsort((self._lines[:, 1], self._lines[:, 0]))]
        self._known, numbers = np.unique(self._lines[:, 0], return_inverse=True)
        if len(self._known) > MOST_PARTITIONS:
            raise LimitError(f"{len(self._known):,} partitions have a past, and the limit is {MOST_PARTITIONS:,} (MOST_PARTITIONS)")
        self._keys = (numbers.astype(np.int64) << PLACE_BITS) + self._lines[:, 1]
        self._sorted = True
