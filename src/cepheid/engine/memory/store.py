"""The state of partitions by row, and blocks of it: what all stores share, whatever they keep of a partition.

A row is a slot + 1; row 0 is the workplace of partitions that are not kept. A block is a contiguous run of int64, and all of them lie in one array
that a kernel works in: switching partitions is switching an offset.
"""

from __future__ import annotations

import contextlib

import numpy as np

from cepheid.engine.memory.pools import Array, ragged
from cepheid.engine.memory.process import reserves_freely

CLASSES = 128
"""Sizes of blocks: 4, 5, 6, 7, 8, 10, 12, 14, 16, 20 .. words, four to each doubling."""

TOP = CLASSES
"""The place of `BlockStore.pool` behind the free chains."""

SQUEEZE_RATIO = 2
"""Blocks are moved together where so many times what they hold has been given out, and there is no room for another one."""

RESERVED = (1 << 20, 1 << 25, 1 << 28)
"""Words of the array of blocks between which it does not grow by doubling: it is this large at once, where that costs nothing."""

SPARE = 8
"""Where there is no memory for an array of twice the size, the new one has this part more than is needed."""

MANY_ROWS, SPARE_ROWS = 1 << 12, 4
"""Rows from which they do not grow by doubling, and which part of them more there is then: most rows of many keys hold nothing but their line."""


class Store:
    """The state of an evaluation's partitions, in arrays with a line per row.

    blank: the line of a row that has seen nothing, by the name of its array. The arrays are attributes, and are replaced when they grow: a kernel's
    arguments must be collected anew.
    """

    def __init__(self, **blank: Array) -> None:
        self._blank = blank
        for name, line in blank.items():
            setattr(self, name, line[None].copy())

    def __len__(self) -> int:
        """How many rows there are."""
        return len(getattr(self, next(iter(self._blank))))

    def ensure(self, count: int) -> None:
        """Make rows 0 .. count - 1 exist; amortized O(1) per row."""
        rows = len(self)
        if count > rows:
            more = max(count, 2 * rows if rows < MANY_ROWS else rows + rows // SPARE_ROWS) - rows
            for name, line in self._blank.items():
                setattr(self, name, np.concatenate([getattr(self, name), np.repeat(line[None], more, axis=0)]))

    def open(self, rows: Array) -> None:
        """Make these rows ready for events."""
        if len(rows):
            self.ensure(int(rows.max()) + 1)

    def empty(self, rows: Array) -> None:
        """Free the memory of these rows (no row twice). Each keeps what it needs to continue: its line, where a store does not say more."""

    def release(self, rows: Array) -> None:
        """Take back the memory of these rows, which start again."""
        rows = np.unique(rows)
        self.empty(rows)
        for name, line in self._blank.items():
            getattr(self, name)[rows] = line

    @property
    def reserved(self) -> int:
        """Bytes of what partitions are given room in, given or not."""
        return 0

    @property
    def taken(self) -> int:
        """Bytes of what partitions have of that."""
        return 0

    def squeeze(self) -> None:
        """Give back what is reserved and not taken. O(rows), and what they hold."""

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return self.reserved + sum(int(getattr(self, name).nbytes) for name in self._blank)


def size_class(words: int) -> tuple[int, int]:
    """(number, size) of the smallest class of blocks with room for so many words."""
    exponent = max(0, (words - 1).bit_length() - 3)
    parts = max(4, -(-words >> exponent))
    return 4 * exponent + parts - 4, parts << exponent


class BlockStore(Store):
    """Blocks of partitions. header: the first words of a new one, of which the first is the position of the partition's next event.

    kept: how many of the first words outlive `empty`; for rows without a block they are in an array of this name.
    words: int64, the array that holds the blocks. offsets: int64, where each row's block starts, -1 without one. sizes: int64, its words.
    template: a new block. pool: int64, per class of sizes where the first free block is (it holds where the next one is), -1 at the end; then the
    first word never used. A kernel may give out and take back blocks itself.
    """

    offsets: Array
    sizes: Array
    kept: Array
    template: Array

    def __init__(self, header: tuple[int, ...], *, kept: int) -> None:
        self._header: Array = np.array(header, np.int64)
        super().__init__(offsets=np.array(-1, np.int64), sizes=np.array(0, np.int64), kept=self._header[:kept])
        self._first_words = np.arange(len(header))
        self._kept_words = np.arange(kept)
        self.words: Array = np.zeros(0, np.int64)
        self.pool: Array = np.full(CLASSES + 1, -1, np.int64)
        self.pool[TOP] = 0

    # ------------------------------------------------------------------------------------------------ rows

    def open(self, rows: Array) -> None:
        """Give these rows a block if they have none; O(rows), and the words of new blocks."""
        super().open(rows)
        rows = rows[self.offsets[rows] < 0]
        if len(rows):
            rows = np.sort(rows)
            rows = rows[np.diff(rows, prepend=-1) != 0]  # PERF: numpy's unique hashes, and takes five times as long on numbers in a row
            size = len(self.template)
            offsets = self._give(rows, size)
            if (np.diff(offsets) == size).all():  # PERF: one after the other, as fresh ones are: a third of the time
                self.words[offsets[0] : offsets[-1] + size].reshape(-1, size)[:] = self.template
            else:
                self.words[offsets[:, None] + np.arange(size)] = self.template
            self.words[offsets[:, None] + self._kept_words] = self.kept[rows]

    def empty(self, rows: Array) -> None:
        """Take back the memory of these rows, which are different, but for the kept words, from which they go on."""
        rows = rows[self.offsets[rows] >= 0]
        self.kept[rows] = self.words[self.offsets[rows][:, None] + self._kept_words]
        for size in np.unique(self.sizes[rows]).tolist():
            self._free(size, self.offsets[rows[self.sizes[rows] == size]])
        self.offsets[rows] = -1
        self.sizes[rows] = 0

    def keep(self, rows: Array, words: Array) -> None:
        """Take back the memory of these rows, which go on from these kept words: int64, (n, kept)."""
        self.empty(rows)
        self.kept[rows] = words

    @property
    def held_rows(self) -> Array:
        """The rows that have a block (int64)."""
        return np.flatnonzero(self.offsets >= 0)

    @property
    def used(self) -> Array:
        """The rows whose partition has seen an event (int64)."""
        seen = self.kept[:, 0] != 0
        rows = self.held_rows
        seen[rows] = self.word(rows, 0) != 0
        return np.flatnonzero(seen)

    def word(self, rows: Array, number: int) -> Array:
        """A word of these rows, which have blocks: int64."""
        values: Array = self.words[self.offsets[rows] + number]
        return values

    def plain(self, rows: Array) -> Array:
        """The first words of these rows, as a block would have them: int64, (rows, words of the header)."""
        words: Array = np.repeat(self._header[None], len(rows), axis=0)
        words[:, self._kept_words] = self.kept[rows]
        held = np.flatnonzero(self.offsets[rows] >= 0)
        words[held] = self.words[self.offsets[rows[held]][:, None] + self._first_words]
        return words

    # ------------------------------------------------------------------------------------------------ memory

    @property
    def reserved(self) -> int:
        """Bytes of the array of blocks, as far as blocks have been given out: behind that nothing was written, and the machine gives no memory."""
        return 8 * int(self.pool[TOP])

    @property
    def held(self) -> int:
        """Words that rows hold."""
        return int(self.sizes.sum())

    @property
    def taken(self) -> int:
        """Bytes of the blocks of rows."""
        return 8 * self.held

    def squeeze(self) -> None:
        """Move the blocks together, and give back the memory behind them. O(rows), and the blocks."""
        self._squeeze(0)

    def reserve(self, words: int) -> bool:
        """Make room for so many words behind those in use; returns whether blocks have moved, and none is free any more. Amortized linear."""
        top = int(self.pool[TOP])
        if top + words <= len(self.words):
            return False
        if SQUEEZE_RATIO * self.held <= top:
            self._squeeze(words)
            return True
        larger = self._larger(top + words)
        larger[:top] = self.words[:top]
        self.words = larger
        return False

    def _larger(self, words: int) -> Array:
        """A larger array of at least so many words, 0."""
        sizes = [max(words, 2 * len(self.words)), words + words // SPARE]
        # PERF: memory that is not written yet costs nothing. To copy what there is into new memory is what costs, up to 400 ns per event.
        if sizes[0] > RESERVED[0] and reserves_freely():
            sizes[:0] = [size for size in RESERVED if size >= sizes[0]][:1]
        for size in sizes:
            with contextlib.suppress(MemoryError):
                return np.zeros(size, np.int64)
        return np.zeros(words, np.int64)

    def _squeeze(self, words: int) -> None:
        """Move the blocks together, and make room for so many words behind them."""
        rows = self.held_rows
        sizes = self.sizes[rows]
        held = int(sizes.sum())
        squeezed: Array = np.zeros(held + words, np.int64)
        squeezed[:held] = self.words[ragged(self.offsets[rows], sizes)[1]]
        self.words = squeezed
        self.offsets[rows] = np.cumsum(sizes) - sizes
        self.pool[:] = -1
        self.pool[TOP] = held

    def _give(self, rows: Array, size: int) -> Array:
        """Give these rows, which have none, blocks of `size` words (the size of a class), and return where they start: freed ones first."""
        number, _ = size_class(size)
        reused: list[int] = []
        free = int(self.pool[number])
        while free >= 0 and len(reused) < len(rows):
            reused.append(free)
            free = int(self.words[free])
        fresh = len(rows) - len(reused)
        if self.reserve(fresh * size):
            return self._give(rows, size)
        self.pool[number] = free
        first = int(self.pool[TOP])
        self.pool[TOP] += fresh * size
        offsets: Array = np.concatenate([np.array(reused, np.int64), first + size * np.arange(fresh, dtype=np.int64)])
        self.offsets[rows], self.sizes[rows] = offsets, size
        return offsets

    def _free(self, size: int, offsets: Array) -> None:
        """Take back blocks of one size."""
        number, _ = size_class(size)
        self.words[offsets] = np.append(offsets[1:], self.pool[number])
        self.pool[number] = offsets[0]

    def _replace(self, row: int, block: Array) -> None:
        """Put a block, of the size of a class, in the place of a row's."""
        size = int(self.sizes[row])
        if len(block) != size:
            self._free(size, self.offsets[row : row + 1].copy())
            self.offsets[row], self.sizes[row] = -1, 0
            self._give(np.array([row]), len(block))
        first = int(self.offsets[row])
        self.words[first : first + len(block)] = block
