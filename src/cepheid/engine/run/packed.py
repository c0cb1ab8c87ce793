"""Columns of integers of many short tables in few bytes: of each column its least number, and what each is above it, in as many bytes as that needs.

Comes in: the numbers of some parts, each a few groups of columns of one length (int64). Goes out: bytes of each part, and back. Most columns of a
part have one number (times of one event, positions 0), and take two bytes or a few. All parts are packed by the same few operations on arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cepheid.engine.memory.checks import demand, inside
from cepheid.engine.memory.pools import ragged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cepheid.engine.memory.pools import Array

WORD = 8
"""Bytes of a number at most."""


def packed(counts: Array, words: Array, widths: Array) -> list[bytes]:
    """The bytes of each part. Linear.

    counts: int64 (parts, groups), the rows of each group. words: int64, the columns of all groups of a part one after the other, part by part.
    widths: int64, the columns of each group.
    """
    least = counts.min(axis=1, initial=0)
    some = _lengths(counts, widths)
    mins: Array = np.zeros(some.size, np.int64)
    most: Array = np.zeros(some.size, np.int64)
    if len(words):
        lengths = some.ravel()
        full = np.flatnonzero(lengths)
        starts = (np.cumsum(lengths) - lengths)[full]
        mins[full], most[full] = np.minimum.reduceat(words, starts), np.maximum.reduceat(words, starts)
        words = words - np.repeat(mins, lengths)  # differences that int64 does not hold wrap around, and back when they are read
    bases = np.column_stack([least, mins.reshape(some.shape)])
    bases = (bases << 1 ^ bases >> 63).view(np.uint64)  # small where the number is near to 0
    spans = np.column_stack([counts.max(axis=1, initial=0) - least, (most - mins).reshape(some.shape)]).view(np.uint64)
    base, above = _sizes(bases), _sizes(spans)
    parts = [
        (base << 4 | above, np.full(len(counts), base.shape[1])),
        (_narrowed(bases.ravel(), base.ravel()), base.sum(axis=1)),
        (_narrowed((counts - least[:, None]).ravel(), np.repeat(above[:, 0], counts.shape[1])), above[:, 0] * counts.shape[1]),
        (_narrowed(words, np.repeat(above[:, 1:].ravel(), some.ravel())), (above[:, 1:] * some).sum(axis=1)),
    ]
    pieces = []
    for data, sizes in parts:
        whole, stops = data.astype(np.uint8).tobytes(), np.cumsum(sizes).tolist()
        pieces.append([whole[start:stop] for start, stop in zip([0, *stops], stops, strict=False)])
    return [b"".join(each) for each in zip(*pieces, strict=True)]


def unpacked(bodies: Sequence[bytes], widths: Array, most: Array) -> tuple[Array, Array, list[int]]:
    """The inverse: counts, words, and how many bytes of each part that was.

    most: the numbers that each part may have at most: a column of one number takes no bytes for its rows. Raises ValueError for what is no part.
    """
    data = np.frombuffer(b"".join(bodies), np.uint8)
    sizes: Array = np.array([len(body) for body in bodies], np.int64)
    stop = np.cumsum(sizes)
    begin = at = stop - sizes
    columns = 1 + int(widths.sum())
    demand(at + columns <= stop)
    head = data[at[:, None] + np.arange(columns)].astype(np.int64)
    base, above = head >> 4, head & 15
    demand(base <= WORD, above <= WORD)
    at = at + columns

    def taken(size: Array, each: Array) -> Array:
        nonlocal at
        demand(at + size <= stop)
        found = _widened(data[ragged(at, size)[1]], each)
        at = at + size
        return found

    bases = taken(base.sum(axis=1), base.ravel())
    bases = ((bases >> np.uint64(1)).view(np.int64) ^ -(bases & np.uint64(1)).view(np.int64)).reshape(base.shape)
    groups = len(widths)
    counts = taken(above[:, 0] * groups, np.repeat(above[:, 0], groups)).view(np.int64).reshape(-1, groups) + bases[:, :1]
    demand(inside(counts, 0, most[:, None] + 1))
    lengths = _lengths(counts, widths)
    demand(lengths.sum(axis=1) <= most)
    words = taken((above[:, 1:] * lengths).sum(axis=1), np.repeat(above[:, 1:].ravel(), lengths.ravel())).view(np.int64)
    return counts, words + np.repeat(bases[:, 1:].ravel(), lengths.ravel()), (at - begin).tolist()


def _lengths(counts: Array, widths: Array) -> Array:
    """The rows of each column."""
    return np.repeat(counts, widths, axis=1)


def _sizes(numbers: Array) -> Array:
    """How many bytes each of some numbers needs (int64), 0 for 0."""
    found: Array = np.zeros(numbers.shape, np.int64)
    for place in range(WORD):
        found += numbers >> np.uint64(8 * place) != 0
    return found


def _narrowed(numbers: Array, sizes: Array) -> Array:
    """So many bytes of each number, the least first."""
    return np.ascontiguousarray(numbers).view(np.uint8).reshape(-1, WORD)[np.arange(WORD) < sizes[:, None]]


def _widened(data: Array, sizes: Array) -> Array:
    """The inverse (uint64)."""
    found: Array = np.zeros((len(sizes), WORD), np.uint8)
    found[np.arange(WORD) < sizes[:, None]] = data
    return found.reshape(-1).view("<u8")
