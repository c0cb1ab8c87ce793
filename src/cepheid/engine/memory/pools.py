"""Power-of-two slabs inside pooled arrays: the memory of many partitions in a few arrays that a kernel can index.

A slab is `size` consecutive places from an offset on, in each of the pool's parallel arrays. The kernel gives slabs to partitions, and larger
ones when they grow; here the arrays grow, and partitions that have nothing open give their slabs back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cepheid.errors import LimitError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Array = np.ndarray[Any, Any]
"""Any array of numbers; which ones, the documentation of each says."""

CLASSES = 32
"""Sizes of slabs: least << 0 .. least << 31."""

PLACE_LIMIT = 1 << 31
"""Greatest number of places in a pool: offsets of free slabs are kept in 32 bits."""

NUMBER_LIMIT = 1 << 62
"""Positions and numbers of entries in a snapshot are below it, so that they can be counted on."""

TOP, CAPACITY, LEAST = CLASSES, CLASSES + 1, CLASSES + 2
POOL_NUMBERS = CLASSES + 3


def power_of_two(least: int) -> int:
    """The smallest power of two that is at least `least` (and 1)."""
    return 1 << max(0, least - 1).bit_length()


class Pool:
    """Parallel arrays cut into slabs of power-of-two sizes, by the kernel and by us.

    numbers: POOL_NUMBERS int64, shared with the kernel (its POOL): the first free slab of each size, the first place never used, the places
    there are, the smallest slab. A free slab holds the offset of the next free one of its size in its first place: giving out and taking back
    are O(1), and need no memory. columns: (dtype, items per place) of each array; the first is int32.
    """

    def __init__(self, numbers: Array, least: int, columns: Sequence[tuple[type[np.generic], int]]) -> None:
        self.numbers = numbers
        self.widths = [width for _, width in columns]
        self.arrays: list[Array] = [np.zeros(least * width, dtype) for dtype, width in columns]
        numbers[:CLASSES] = -1
        numbers[TOP], numbers[CAPACITY], numbers[LEAST] = 0, least, least

    @property
    def least(self) -> int:
        """The smallest slab."""
        return int(self.numbers[LEAST])

    @property
    def places(self) -> int:
        """Places of the arrays, given out or not."""
        return int(self.numbers[CAPACITY])

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(int(array.nbytes) for array in self.arrays)

    @property
    def place_bytes(self) -> int:
        """Bytes of a place."""
        return sum(array.itemsize * width for array, width in zip(self.arrays, self.widths, strict=True))

    def reserve(self, places: int) -> None:
        """Make room for so many places behind those in use; doubles the arrays.

        Raises LimitError past PLACE_LIMIT.
        """
        top, capacity = int(self.numbers[TOP]), int(self.numbers[CAPACITY])
        if top + places <= capacity:
            return
        capacity = power_of_two(top + places)
        if capacity > PLACE_LIMIT:
            raise LimitError(
                f"the open matches of all partitions need {capacity} places, and the limit is {PLACE_LIMIT} (PLACE_LIMIT)",
                help=("bound them by a window: `WITHIN 1 hour` or `WITHIN 1000 EVENTS`", "or spread the keys over several recognizers"),
            )
        for number, (array, width) in enumerate(zip(self.arrays, self.widths, strict=True)):
            larger = np.zeros(capacity * width, array.dtype)
            larger[: array.size] = array
            self.arrays[number] = larger
        self.numbers[CAPACITY] = capacity

    def take(self, sizes: Array) -> Array:
        """Offsets of fresh slabs of these sizes (powers of two, or 0); O(n)."""
        total = int(sizes.sum())
        self.reserve(total)
        offsets: Array = int(self.numbers[TOP]) + np.cumsum(sizes) - sizes
        self.numbers[TOP] += total
        return offsets

    def release(self, offsets: Array, sizes: Array) -> None:
        """Take back slabs; O(n)."""
        first, width = self.arrays[0], self.widths[0]
        for size in np.unique(sizes).tolist():
            chain = offsets[sizes == size]
            size_class = (size // self.least).bit_length() - 1
            first[chain * width] = np.append(chain[1:], self.numbers[size_class])
            self.numbers[size_class] = chain[0]

    def squeeze(self, offsets: Array, sizes: Array) -> Array:
        """Move these slabs, all that are given out, together, and give back the memory behind them; returns where they are now. O(their places)."""
        total = int(sizes.sum())
        places = ragged(offsets, sizes)[1]
        capacity = power_of_two(max(total, self.least))
        for number, (array, width) in enumerate(zip(self.arrays, self.widths, strict=True)):
            smaller = np.zeros(capacity * width, array.dtype)
            smaller[: total * width].reshape(-1, width)[:] = array.reshape(-1, width)[places]
            self.arrays[number] = smaller
        self.numbers[:CLASSES] = -1
        self.numbers[TOP], self.numbers[CAPACITY] = total, capacity
        moved: Array = np.cumsum(sizes) - sizes
        return moved


def offsets_of(lengths: Array) -> Array:
    """Where each of some consecutive ranges starts, and behind them the end of the last (int64, n + 1)."""
    offsets: Array = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return offsets


def ragged(starts: Array, counts: Array) -> tuple[Array, Array]:
    """(owner, index): for each range k, the indices starts[k] .. starts[k] + counts[k] - 1, and k for each of them (int64)."""
    owner = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    before = np.cumsum(counts) - counts
    index = np.arange(len(owner), dtype=np.int64) - before[owner] + starts[owner]
    return owner, index


def first_from(value_of: Callable[[Array], Array], heads: Array, tails: Array, bounds: Array) -> Array:
    """Per ring, the first of its entries heads .. tails - 1, whose values ascend, with at least the value of its bound; else the tail (int64).

    value_of: the values of one entry of each ring, given their numbers. O(rings x log entries), vectorized.
    """
    low, high = heads.copy(), tails.copy()
    while (low < high).any():
        middle = (low + high) // 2
        less = (low < high) & (value_of(middle) < bounds)
        low, high = np.where(less, middle + 1, low), np.where(less, high, middle)
    return low
