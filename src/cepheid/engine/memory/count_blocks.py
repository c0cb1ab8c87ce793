"""Blocks of the counting kernel: the state of each partition as one run of int64, all of them in one array that the kernel works in.

Unlike those of `cepheid.engine.memory.blocks`, all blocks change their layout together, when numbers become wider or macro states more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cepheid.engine.memory.pools import power_of_two, ragged
from cepheid.errors import LimitError

Array = np.ndarray[Any, Any]

COUNT_WORDS = 1 << 28
"""Most words (8 bytes each) of one partition's block."""

POSITION, LOW, EPOCH, MIDDLE, LIVE, PLAIN, HEAD, TAIL, MASK, WORDS = range(10)
"""The words of a block's header as the kernel has them, and their number."""

KEPT = 3
"""The first words outlive a block."""

ENTRY = 4
"""Words of an entry before its row: position, time, letter code, what was alive before it."""

WINDOW_HELP = "bound the matches by a window: `WITHIN 1 hour` or `WITHIN 1000 EVENTS`, or by CONSUME BY"


@dataclass(frozen=True, slots=True)
class Shape:
    """How large the parts of a block are. width: numbers of a row. rows: rows of the matrix. size: limbs of a number."""

    width: int
    rows: int
    size: int

    @property
    def row(self) -> int:
        """Words of a row."""
        return self.width * self.size

    @property
    def matrix(self) -> int:
        """Where the matrix starts in a block."""
        return WORDS + self.width

    @property
    def ring(self) -> int:
        """Where the entries start in a block."""
        return self.matrix + self.rows * self.row

    @property
    def entry(self) -> int:
        """Words of an entry."""
        return ENTRY + self.row

    def words(self, places: int) -> int:
        """Words of a block whose ring has so many places; LimitError past COUNT_WORDS."""
        words = self.ring + places * self.entry
        if words > COUNT_WORDS:
            raise LimitError(
                f"the numbers of one partition need {words} words of 8 bytes, and the limit is {COUNT_WORDS} (COUNT_WORDS)",
                help=WINDOW_HELP,
            )
        return words


class CountBlocks:
    """The blocks of an evaluation's partitions, by row; row 0 is the workplace of partitions that are not kept.

    words: int64, the array that holds them. offsets: int64, where each row's block starts, -1 without one; both are replaced when they grow.
    places: entries that a new ring has room for (a power of two, or 0 for good).
    """

    def __init__(self, shape: Shape, *, places: int) -> None:
        self.shape = shape
        self._places = places
        self.words: Array = np.zeros(0, np.int64)
        self.offsets: Array = np.zeros(0, np.int64)
        self._ring_places: Array = np.zeros(0, np.int64)
        self._kept: Array = np.zeros((0, KEPT), np.int64)
        self._top = 0
        self.ensure(1)
        self.open(np.zeros(1, np.int64))

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self.offsets)

    # ------------------------------------------------------------------------------------------------ rows

    def ensure(self, count: int) -> None:
        """Make rows 0 .. count - 1 exist; amortized O(1) per row."""
        rows = len(self.offsets)
        if count > rows:
            more = max(count, 2 * rows) - rows
            self.offsets = np.concatenate([self.offsets, np.full(more, -1, np.int64)])
            self._ring_places = np.concatenate([self._ring_places, np.zeros(more, np.int64)])
            self._kept = np.concatenate([self._kept, np.zeros((more, KEPT), np.int64)])

    def open(self, rows: Array) -> None:
        """Give these rows a block if they have none: nothing is open but the initial macro state, and the matrix is the identity."""
        rows = np.unique(rows[self.offsets[rows] < 0])
        if not len(rows):
            return
        size = self.shape.words(self._places)
        first = self._allocate(size * len(rows))
        self.offsets[rows] = first + size * np.arange(len(rows))
        self._ring_places[rows] = self._places
        blocks = self.words[first : first + size * len(rows)].reshape(len(rows), size)
        blocks[:, : self.shape.ring] = 0
        blocks[:, :KEPT] = self._kept[rows]
        blocks[:, LIVE] = blocks[:, PLAIN] = 1
        blocks[:, MASK] = self._places - 1

    def keep(self, rows: Array, words: Array) -> None:
        """Take back the blocks of these rows, which go on from these words: int64, (n, KEPT)."""
        self.empty(rows)
        self._kept[rows] = words

    def empty(self, rows: Array) -> None:
        """Take back the blocks of these rows but for the kept words, from which they go on."""
        rows = rows[self.offsets[rows] >= 0]
        self._kept[rows] = self.words[self.offsets[rows][:, None] + np.arange(KEPT)]
        self.offsets[rows] = -1
        self._ring_places[rows] = 0

    def release(self, rows: Array) -> None:
        """Take back the blocks of these rows, which start again."""
        self.empty(np.unique(rows))
        self._kept[rows] = 0

    # ------------------------------------------------------------------------------------------------ reading and writing

    def header(self, rows: Array) -> Array:
        """The headers of these rows: int64, (rows, WORDS); without a block the kept words, and what a new one has."""
        words: Array = np.zeros((len(rows), WORDS), np.int64)
        words[:, LIVE] = words[:, PLAIN] = 1
        words[:, :KEPT] = self._kept[rows]
        held = np.flatnonzero(self.offsets[rows] >= 0)
        words[held] = self.words[self.offsets[rows[held]][:, None] + np.arange(WORDS)]
        return words

    def set_words(self, rows: Array, word: int, values: Array | int) -> None:
        """Write a word of the headers of these rows, which have blocks."""
        self.words[self.offsets[rows] + word] = values

    def matrices(self, rows: Array) -> Array:
        """Places in `words` of the matrices of these rows, which have blocks: int64, (n, matrix rows, width, size)."""
        shape = self.shape
        inside = np.arange(shape.rows * shape.row).reshape(shape.rows, shape.width, shape.size)
        places: Array = self.offsets[rows][:, None, None, None] + shape.matrix + inside
        return places

    def entries(self, rows: Array) -> tuple[Array, Array]:
        """(index into rows, place in `words`) of the stored events of these rows, oldest first."""
        held = np.flatnonzero(self.offsets[rows] >= 0)
        header = self.header(rows[held])
        owner, number = ragged(header[:, HEAD], header[:, TAIL] - header[:, HEAD])
        places = self.offsets[rows[held]][owner] + self.shape.ring + (number & header[owner, MASK]) * self.shape.entry
        return held[owner], places

    @property
    def used(self) -> Array:
        """The rows whose partition has seen an event (int64)."""
        return np.flatnonzero(self.header(np.arange(len(self)))[:, POSITION])

    @property
    def open_rows(self) -> Array:
        """The rows that have a block (int64)."""
        return np.flatnonzero(self.offsets >= 0)

    # ------------------------------------------------------------------------------------------------ memory

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return int(self.words.nbytes + self.offsets.nbytes + self._ring_places.nbytes + self._kept.nbytes)

    @property
    def held(self) -> int:
        """Words that rows hold."""
        rows = self.open_rows
        return int(self._ring_places[rows].sum()) * self.shape.entry + len(rows) * self.shape.ring

    @property
    def needed(self) -> int:
        """Bytes that blocks would have whose rings are as large as what is in them."""
        rows = self.open_rows
        header = self.header(rows)
        counts = np.maximum(header[:, TAIL] - header[:, HEAD], min(1, self._places))
        return 8 * (int(counts.sum()) * self.shape.entry + len(rows) * self.shape.ring)

    def _allocate(self, words: int) -> int:
        """Where so many fresh words start; blocks that were left are squeezed out when they are half of all."""
        if self._top + words > len(self.words):
            if 2 * self.held <= self._top:
                self.reshape(self.shape)
            if self._top + words > len(self.words):
                larger: Array = np.zeros(power_of_two(self._top + words), np.int64)
                larger[: self._top] = self.words[: self._top]
                self.words = larger
        self._top += words
        return self._top - words

    def grow(self, row: int) -> None:
        """Double the ring of a row; linear in its block. Raises LimitError past COUNT_WORDS."""
        shape, places = self.shape, int(self._ring_places[row])
        size = shape.words(2 * places)
        first = self._allocate(size)
        old, new = int(self.offsets[row]), self.words[first : first + size]
        new[: shape.ring] = self.words[old : old + shape.ring]
        head, tail = int(new[HEAD]), int(new[TAIL])
        numbers = np.arange(head, tail)
        entries = self.words[old + shape.ring : old + shape.words(places)].reshape(places, shape.entry)
        new[shape.ring :].reshape(2 * places, shape.entry)[numbers & (2 * places - 1)] = entries[numbers & (places - 1)]
        new[MASK] = 2 * places - 1
        self.offsets[row] = first
        self._ring_places[row] = 2 * places

    def reshape(self, shape: Shape) -> None:
        """Move all blocks into fresh ones of another shape, no part of which is smaller; linear in them. Raises LimitError past COUNT_WORDS."""
        old, rows = self.shape, self.open_rows
        sizes = {places: shape.words(places) for places in np.unique(self._ring_places[rows]).tolist()}
        count = {places: int((self._ring_places[rows] == places).sum()) for places in sizes}
        words: Array = np.zeros(power_of_two(sum(sizes[places] * count[places] for places in sizes)), np.int64)
        first = 0
        for places, size in sizes.items():
            mine = rows[self._ring_places[rows] == places]
            before = self.words[self.offsets[mine][:, None] + np.arange(old.words(places))]
            after = words[first : first + size * len(mine)].reshape(len(mine), size)
            after[:, : WORDS + old.width] = before[:, : WORDS + old.width]
            matrix = after[:, shape.matrix : shape.ring].reshape(len(mine), shape.rows, shape.width, shape.size)
            _fill(matrix, before[:, old.matrix : old.ring].reshape(len(mine), old.rows, old.width, old.size))
            entries = after[:, shape.ring :].reshape(len(mine), places, shape.entry)
            entries_before = before[:, old.ring :].reshape(len(mine), places, old.entry)
            entries[:, :, :ENTRY] = entries_before[:, :, :ENTRY]
            numbers = entries[:, :, ENTRY:].reshape(len(mine), places, shape.width, shape.size)
            _fill(numbers, entries_before[:, :, ENTRY:].reshape(len(mine), places, old.width, old.size))
            entries[:, :, ENTRY:] = numbers.reshape(len(mine), places, shape.row)
            self.offsets[mine] = first + size * np.arange(len(mine))
            first += size * len(mine)
        self.words, self.shape, self._top = words, shape, first

    def exceed(self, most: int) -> bool:
        """Whether the top limb of some number, also of those that are no longer in use, is greater than this."""
        rows = self.open_rows
        _, entries = self.entries(rows)
        matrices = self.words[self.matrices(rows)[..., -1]]
        row_tops = self.words[entries[:, None] + ENTRY + self.shape.size * np.arange(1, self.shape.width + 1) - 1]
        return bool((matrices.view(np.uint64) > most).any() or (row_tops.view(np.uint64) > most).any())


def _fill(target: Array, source: Array) -> None:
    """Write an array into the first places of a larger one of as many dimensions."""
    target[tuple(map(slice, source.shape))] = source
