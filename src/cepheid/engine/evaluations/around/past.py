"""Values of earlier places of partitions: where an event began, how far something had come.

Comes in: batch by batch, values of some places of some partitions, with the times there. Goes out: for any place the last value at it or before it.
Who asks says which times nobody asks for any more; what is older is forgotten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cepheid.engine.memory.checks import demand, inside
from cepheid.engine.memory.pools import NUMBER_LIMIT
from cepheid.errors import LimitError

if TYPE_CHECKING:
    from cepheid.engine.memory.pools import Array
    from cepheid.engine.memory.stored import Stored

PLACE_BITS = 40
"""Bits of a place; the others are the number of its partition among those that have values."""

MOST_PARTITIONS = 1 << 62 - PLACE_BITS
"""Partitions that may have values."""


class Past:
    """Values by partition and place (int64 all). A partition is any number, from 0 on."""

    def __init__(self) -> None:
        self._lines: Array = np.zeros((0, 4), np.int64)  # partition, place, value, time
        self._known: Array = np.zeros(0, np.int64)
        self._keys: Array = np.zeros(0, np.int64)
        self._sorted = True

    def add(self, partitions: Array, places: Array, values: Array, times: Array) -> None:
        """Keep some values."""
        if len(partitions):
            self._lines = np.concatenate([self._lines, np.column_stack([partitions, places, values, times])])
            self._sorted = False

    def rename(self, before: int, after: int) -> None:
        """A partition gets another number, which no other one has."""
        self.forget(np.array([after]))
        self._lines[self._lines[:, 0] == before, 0] = after
        self._sorted = False

    def forget(self, partitions: Array) -> None:
        """Forget some partitions."""
        self._keep(~np.isin(self._lines[:, 0], partitions))

    def expire(self, time: int) -> None:
        """Forget what was before a time, but for the last value there of each partition: what is asked for later places may still have it."""
        if not (self._lines[:, 3] < time).any():
            return
        self._order()
        owners, old = self._lines[:, 0], self._lines[:, 3] < time
        forgotten = np.zeros(len(old), np.bool_)
        forgotten[:-1] = (owners[1:] == owners[:-1]) & old[1:]
        self._keep(~forgotten)

    def last(self, partitions: Array, places: Array) -> tuple[Array, Array]:
        """For each (partition, place): the last place at or before it that has a value, and that value; -1 and -1 if there is none. O(log n) each."""
        self._order()
        number = np.searchsorted(self._known, partitions)
        found = np.append(self._known, -1)[number] == partitions
        at = np.searchsorted(self._keys, (number << PLACE_BITS) + places, "right") - 1
        found &= at >= 0
        lines = self._lines[np.where(found, at, 0)] if len(self._lines) else np.full((len(at), 4), -1, np.int64)
        found &= lines[:, 0] == partitions
        return np.where(found, lines[:, 1], -1), np.where(found, lines[:, 2], -1)

    def at(self, partitions: Array, places: Array) -> Array:
        """The values at just these places, themselves where there is none."""
        place, value = self.last(partitions, places)
        return np.where(place == places, value, places)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return int(self._lines.nbytes + self._known.nbytes + self._keys.nbytes)

    def dump(self) -> Array:
        """All of it, as lines: partition, place, value, time."""
        self._order()
        return self._lines.astype("<i8")

    def load(self, lines: Array, stored: Stored | None, *, first: int = 0) -> None:
        """Go on, fresh, from what `dump` gave; first: the number of the partition in slot 0. Raises ValueError where it does not fit."""
        owners, places = lines[:, 0] - first, lines[:, 1]
        demand(inside(places, 0, NUMBER_LIMIT), inside(lines[:, 2], -1, places + 1), inside(owners, 0, MOST_PARTITIONS))
        slots = owners if stored is None else stored.those(owners, places)
        self.add(slots + first, places, lines[:, 2], lines[:, 3])

    def _keep(self, lines: Array) -> None:
        if not lines.all():
            self._lines = self._lines[lines]
            self._sorted = False

    def _order(self) -> None:
        if self._sorted:
            return
        self._lines = self._lines[np.lexsort((self._lines[:, 1], self._lines[:, 0]))]
        self._known, numbers = np.unique(self._lines[:, 0], return_inverse=True)
        if len(self._known) > MOST_PARTITIONS:
            raise LimitError(f"{len(self._known):,} partitions have a past, and the limit is {MOST_PARTITIONS:,} (MOST_PARTITIONS)")
        self._keys = (numbers.astype(np.int64) << PLACE_BITS) + self._lines[:, 1]
        self._sorted = True
