"""Power-of-two slabs inside pooled arrays: the memory of many partitions in a few arrays that a kernel can index.

A slab is `size` consecutive places from an offset on, in each of the pool's parallel arrays. Slabs of the smallest size are given out by the
kernel itself, from a stack of offsets that is filled here; everything larger is rare and handled here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

Array = np.ndarray[Any, Any]

MOST_SLABS_AT_ONCE = 4096
"""How many smallest slabs are made in one go, at most: the number doubles from 1, so one partition alone pays for one."""


def power_of_two(least: int) -> int:
    """The smallest power of two that is at least `least` (and 1)."""
    return 1 << max(0, least - 1).bit_length()


class Pool:
    """Parallel arrays cut into slabs of power-of-two sizes.

    least: the smallest slab. columns: (dtype, items per place) of each array. Allocation is O(1) amortized; a released slab waits for the next
    request of its size.
    """

    def __init__(self, least: int, columns: Sequence[tuple[type[np.generic], int]]) -> None:
        self.least = least
        self.widths = [width for _, width in columns]
        self.arrays: list[Array] = [np.zeros(least * width, dtype) for dtype, width in columns]
        self.top = 0
        self._free: dict[int, list[int]] = {}
        self._at_once = 1

    @property
    def capacity(self) -> int:
        """How many places the arrays have."""
        return int(self.arrays[0].size) // self.widths[0]

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(int(array.nbytes) for array in self.arrays)

    def allocate(self, size: int) -> int:
        """The offset of a slab of `size` places (a power of two)."""
        waiting = self._free.get(size)
        if waiting:
            return waiting.pop()
        return self._take(size)

    def allocate_smallest(self) -> Array:
        """Offsets of some fresh smallest slabs, twice as many each time."""
        count = self._at_once
        self._at_once = min(2 * count, MOST_SLABS_AT_ONCE)
        offset = self._take(count * self.least)
        return offset + self.least * np.arange(count, dtype=np.int64)

    def release(self, offset: int, size: int) -> None:
        """Take back a slab that is larger than the smallest size."""
        self._free.setdefault(size, []).append(offset)

    def enlarge(self, offset: int, size: int, wanted: int) -> int:
        """The offset of a slab of `wanted` places in exchange for the one at `offset`; the content is not moved.

        The last slab of the pool grows where it is: a single partition leaves no holes behind.
        """
        if size and offset + size == self.top:
            self._take(wanted - size)
            return offset
        return self.allocate(wanted)

    def _take(self, places: int) -> int:
        offset = self.top
        self.top += places
        if self.top > self.capacity:
            capacity = power_of_two(self.top)
            for number, (array, width) in enumerate(zip(self.arrays, self.widths, strict=True)):
                larger = np.zeros(capacity * width, array.dtype)
                larger[: array.size] = array
                self.arrays[number] = larger
        return offset


def ragged(starts: Array, counts: Array) -> tuple[Array, Array]:
    """(owner, index): for each range k, the indices starts[k] .. starts[k] + counts[k] - 1, and k for each of them (int64)."""
    owner = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    before = np.cumsum(counts) - counts
    index = np.arange(len(owner), dtype=np.int64) - before[owner] + starts[owner]
    return owner, index
