"""`CountBlocks`: the memory of `Counting`. The state of each partition is one run of int64, all of them in one array that the kernel works in.

Unlike those of `cepheid.engine.memory.blocks`, all blocks change their layout together, when numbers become wider or macro states more.
"""

from __future__ import annotations

import numpy as np

from cepheid.engine.memory.pools import Array, ragged
from cepheid.engine.memory.store import TOP, BlockStore, size_class
from cepheid.errors import LimitError
from cepheid.records import record

COUNT_WORDS = 1 << 28
"""Most words (8 bytes each) of one partition's block."""

POSITION, LOW, EPOCH, MIDDLE, LIVE, PLAIN, HEAD, TAIL, MASK, WORDS = range(10)
"""The words of a block's header as the kernel has them, and their number."""

KEPT = 3
"""Words of the header that outlive a block."""

ENTRY = 4
"""Words of an entry before its row: position, time, letter code, what was alive before it."""

WINDOW_HELP = "bound the matches by a window: `WITHIN 1 hour` or `WITHIN 1000 EVENTS`, or by CONSUME BY"


@record
class CountShape:
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


class CountBlocks(BlockStore):
    """The blocks of an evaluation's partitions. places: entries that a new ring has room for (a power of two, or 0 for good)."""

    def __init__(self, shape: CountShape, *, places: int) -> None:
        super().__init__(
            (0, 0, 0, 0, 1, 1, 0, 0, places - 1), kept=KEPT
        )  # nothing is alive but the initial macro state, the matrix the identity
        self._places = places
        self._take(shape)
        self.open(np.zeros(1, np.int64))

    def _take(self, shape: CountShape) -> None:
        """New blocks have this shape."""
        self.shape = shape
        self.template: Array = np.zeros(size_class(shape.words(self._places))[1], np.int64)
        self.template[:WORDS] = self._header

    # ------------------------------------------------------------------------------------------------ reading and writing

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
        header = self.plain(rows[held])
        owner, number = ragged(header[:, HEAD], header[:, TAIL] - header[:, HEAD])
        places = self.offsets[rows[held]][owner] + self.shape.ring + (number & header[owner, MASK]) * self.shape.entry
        return held[owner], places

    # ------------------------------------------------------------------------------------------------ memory

    @property
    def needed(self) -> int:
        """Bytes that blocks would have whose rings are as large as what is in them."""
        header = self.plain(self.held_rows)
        counts = np.maximum(header[:, TAIL] - header[:, HEAD], min(1, self._places))
        return 8 * (int(counts.sum()) * self.shape.entry + len(header) * self.shape.ring)

    def grow(self, row: int) -> None:
        """Double the ring of a row; linear in its block. Raises LimitError past COUNT_WORDS."""
        shape, first = self.shape, int(self.offsets[row])
        head, tail, mask = self.words[first + HEAD : first + MASK + 1].tolist()
        places = 2 * (mask + 1)
        block: Array = np.zeros(size_class(shape.words(places))[1], np.int64)
        block[: shape.ring] = self.words[first : first + shape.ring]
        block[MASK] = places - 1
        numbers = np.arange(head, tail)
        entries = self.words[first + shape.ring : first + shape.words(mask + 1)].reshape(-1, shape.entry)
        block[shape.ring : shape.words(places)].reshape(-1, shape.entry)[numbers & places - 1] = entries[numbers & mask]
        self._replace(row, block)

    def reshape(self, shape: CountShape) -> None:
        """Move all blocks into fresh ones of another shape, no part of which is smaller; linear in them. Raises LimitError past COUNT_WORDS."""
        old, rows = self.shape, self.held_rows
        capacities = self.word(rows, MASK) + 1
        sizes = {places: shape.words(places) for places in np.unique(capacities).tolist()}
        words, offsets = self.words, self.offsets[rows]
        self._take(shape)
        self.words, self.offsets[rows], self.sizes[rows] = np.zeros(0, np.int64), -1, 0
        self.pool[:] = -1
        self.pool[TOP] = 0
        for places, size in sizes.items():
            mine = capacities == places
            before = words[offsets[mine][:, None] + np.arange(old.words(places))]
            after: Array = np.zeros((len(before), size), np.int64)
            after[:, : WORDS + old.width] = before[:, : WORDS + old.width]
            matrix = after[:, shape.matrix : shape.ring].reshape(-1, shape.rows, shape.width, shape.size)
            _fill(matrix, before[:, old.matrix : old.ring].reshape(-1, old.rows, old.width, old.size))
            entries = after[:, shape.ring :].reshape(len(before), places, shape.entry)
            entries_before = before[:, old.ring :].reshape(len(before), places, old.entry)
            entries[:, :, :ENTRY] = entries_before[:, :, :ENTRY]
            numbers = entries[:, :, ENTRY:].reshape(len(before), places, shape.width, shape.size)
            _fill(numbers, entries_before[:, :, ENTRY:].reshape(len(before), places, old.width, old.size))
            entries[:, :, ENTRY:] = numbers.reshape(len(before), places, shape.row)
            self._give(rows[mine], size_class(size)[1])
            self.words[self.offsets[rows[mine]][:, None] + np.arange(size)] = after

    def exceed(self, most: int) -> bool:
        """Whether the top limb of some number, also of those that are no longer in use, is greater than this."""
        rows = self.held_rows
        _, entries = self.entries(rows)
        matrices = self.words[self.matrices(rows)[..., -1]]
        row_tops = self.words[entries[:, None] + ENTRY + self.shape.size * np.arange(1, self.shape.width + 1) - 1]
        return bool((matrices.view(np.uint64) > most).any() or (row_tops.view(np.uint64) > most).any())


def _fill(target: Array, source: Array) -> None:
    """Write an array into the first places of a larger one of as many dimensions."""
    target[tuple(map(slice, source.shape))] = source
