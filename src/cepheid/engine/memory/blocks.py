"""Blocks with rings: the state of each partition in one contiguous run of int64.

A block is some plain words, a directory with four words per ring, and the rings' data. A ring is a queue of entries that are numbered for
ever: entry k is at ``data + (k & mask) * width``. The kernel reads and writes blocks where they are; switching partitions is switching an offset.
Where a ring is full it returns, and `grow` moves the block to a larger place; a kernel may do the same itself, as `cepheid.kernel.last` does.
Offsets inside a block are relative to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cepheid.engine.memory.checks import ascending, demand, inside, numbers, owners, rows_of
from cepheid.engine.memory.pools import NUMBER_LIMIT, first_from, power_of_two, ragged
from cepheid.engine.memory.store import BlockStore, size_class
from cepheid.errors import LimitError
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cepheid.engine.memory.pools import Array
    from cepheid.engine.memory.stored import Stored

BLOCK_LIMIT = 1 << 28
"""Most words (8 bytes each) of one partition's block."""

RING_PLACES = 4
"""Entries that fit in a ring of a new block."""

DIRECTORY = ("head", "tail", "data", "mask")
"""What the directory says of each ring: number of its first entry, of its next one, where its data starts in the block, places - 1."""

HEAD, TAIL, DATA, MASK = range(4)


@record(slots=False)
class Ring:
    """A queue of entries of `width` words; dated: word 0 is a position, ascending, and entries before the oldest open start are dead.

    times: so many times the places of other rings has it in a new block. beside: words per place that stand behind the entries and are of none of
    them; nothing copies or stores them.
    """

    width: int
    dated: bool = True
    times: int = 1
    beside: int = 0


@record(slots=False)
class BlockLayout:
    """What a block of a new partition holds: the values of its plain words, then empty rings.

    words: int64, the first is the position of the partition's next event. kept: how many of the first words outlive `Blocks.empty`.
    """

    words: tuple[int, ...]
    rings: tuple[Ring, ...]
    kept: int = 1

    @property
    def directory(self) -> int:
        """Where the directory starts."""
        return len(self.words)

    @property
    def data(self) -> int:
        """Where the rings' data start."""
        return len(self.words) + len(DIRECTORY) * len(self.rings)

    def ring(self, number: int) -> int:
        """Where the directory's words of a ring start."""
        return len(self.words) + len(DIRECTORY) * number


class Blocks(BlockStore):
    """The blocks of an evaluation's partitions. widths: int64, per ring. places: entries that a new ring has room for."""

    def __init__(self, layout: BlockLayout, *, places: int = RING_PLACES) -> None:
        super().__init__(layout.words, kept=layout.kept)
        self.layout = layout
        self.widths: Array = np.array([ring.width for ring in layout.rings], np.int64)
        self._spans: Array = self.widths + [ring.beside for ring in layout.rings]
        self._places: Array = np.array([power_of_two(places * ring.times) for ring in layout.rings], np.int64)
        self.template = self._new(self._places)
        self.template[: layout.directory] = layout.words
        self._lost: Array = np.arange(layout.directory) >= layout.kept  # the words that rows without a block do not have
        self.open(np.zeros(1, np.int64))

    def _new(self, capacities: Array) -> Array:
        """A block with empty rings of these capacities (powers of two), its plain words 0."""
        layout = self.layout
        data = layout.data + np.cumsum(capacities * self._spans) - capacities * self._spans
        block: Array = np.zeros(size_class(layout.data + int((capacities * self._spans).sum()))[1], np.int64)
        directory = block[layout.directory : layout.data].reshape(-1, len(DIRECTORY))
        directory[:, DATA] = data
        directory[:, MASK] = capacities - 1
        return block

    def grow(self, row: int, ring: int, *, places: int = 0) -> None:
        """At least double a ring of a row's block (to hold `places` entries), and the other rings that are more than half full.

        Raises LimitError past BLOCK_LIMIT. Linear in the block.
        """
        offset, size, layout = int(self.offsets[row]), int(self.sizes[row]), self.layout
        old = self.words[offset : offset + size]
        before = self.directory(row)
        capacities = before[:, MASK] + 1
        wanted = np.where(2 * (before[:, TAIL] - before[:, HEAD]) > capacities, 2 * capacities, capacities)
        wanted[ring] = max(2 * int(capacities[ring]), power_of_two(places))
        total = layout.data + int((wanted * self._spans).sum())
        if total > BLOCK_LIMIT:
            raise LimitError(
                f"the open matches of one partition need {total} words of 8 bytes, and the limit is {BLOCK_LIMIT} (BLOCK_LIMIT)",
                help="bound them by a window: `WITHIN 1 hour` or `WITHIN 1000 EVENTS`",
            )
        block = self._new(wanted)
        block[: layout.directory] = old[: layout.directory]
        after = block[layout.directory : layout.data].reshape(-1, len(DIRECTORY))
        after[:, [HEAD, TAIL]] = before[:, [HEAD, TAIL]]
        for number in np.flatnonzero(before[:, TAIL] > before[:, HEAD]).tolist():
            _copy_ring(old, before[number], block, after[number], int(self.widths[number]))
        self._replace(row, block)

    def restart(self, rows: Array) -> None:
        """Empty the blocks of these rows, which start again. O(rows): the rings stay as large as they are."""
        rows = np.unique(rows)
        self.kept[rows] = self._blank["kept"]
        first = self.offsets[rows[self.offsets[rows] >= 0]]
        self.words[first[:, None] + self._first_words] = self.layout.words
        for number in range(len(self.layout.rings)):
            for word in (HEAD, TAIL):
                self.words[first + self.layout.ring(number) + word] = 0

    # ------------------------------------------------------------------------------------------------ reading

    def lines(self, rows: Array, ring: int) -> Array:
        """What the directories of these rows, which have blocks, say of a ring: int64, one line per row (see DIRECTORY), a copy."""
        lines: Array = self.words[(self.offsets[rows] + self.layout.ring(ring))[:, None] + np.arange(len(DIRECTORY))]
        return lines

    def places(self, rows: Array, ring: int) -> tuple[Array, Array]:
        """(index into rows, place in `words`) of the entries of a ring of these rows, which have blocks, oldest first."""
        head, tail, data, mask = self.lines(rows, ring).T
        owner, index = ragged(head, tail - head)
        return owner, (self.offsets[rows] + data)[owner] + (index & mask[owner]) * self.layout.rings[ring].width

    def directory(self, row: int) -> Array:
        """The directory of a row's block: int64, one line per ring (see DIRECTORY), a copy."""
        first = int(self.offsets[row])
        lines: Array = self.words[first + self.layout.directory : first + self.layout.data].reshape(-1, len(DIRECTORY)).copy()
        return lines

    def entries(self, row: int, ring: int) -> Array:
        """The entries of a ring, oldest first: int64, (entries, width), a copy."""
        _, places = self.places(np.array([row]), ring)
        found: Array = self.words[places[:, None] + np.arange(self.layout.rings[ring].width)]
        return found

    # ------------------------------------------------------------------------------------------------ state

    def needed(self, rows: Array, oldest: Array) -> int:
        """Bytes that the blocks of these rows would have after `dump` and `load`. O(rows x rings x log entries)."""
        held = np.flatnonzero(self.offsets[rows] >= 0)
        rows, oldest = rows[held], oldest[held]
        counts: Array = np.zeros((len(rows), len(self.layout.rings)), np.int64)
        for number, ring in enumerate(self.layout.rings):
            head, tail, data, mask = self.lines(rows, number).T
            if ring.dated:
                head = first_from(_position(self.words, self.offsets[rows] + data, mask, ring.width), head, tail, oldest)
            counts[:, number] = tail - head
        counts = counts[counts.any(axis=1)]
        return 8 * (len(counts) * self.layout.data + int((self._capacities(counts) * self._spans).sum()))

    def dump(self, rows: Array, words: Array, oldest: Array) -> dict[str, bytes]:
        """These rows as named sections, little-endian int64: rows, words (their plain words), rings (head and tail of each), and the entries.

        oldest: per row the least position that an entry of a dated ring still matters at. Of rows whose rings have nothing left the kept words
        alone are given. Linear in what lives.
        """
        count = len(self.layout.rings)
        rings: Array = np.zeros((len(rows), count, 2), np.int64)
        held = np.flatnonzero(self.offsets[rows] >= 0)
        entries = []
        for number, ring in enumerate(self.layout.rings):
            lines = self.lines(rows[held], number)
            owner, places = self.places(rows[held], number)
            if ring.dated:
                live = self.words[places] >= oldest[held[owner]]
                lines[:, HEAD] = lines[:, TAIL] - np.bincount(owner[live], minlength=len(held))
                places = places[live]
            rings[held, number] = lines[:, [HEAD, TAIL]]
            entries.append(self.words[places[:, None] + np.arange(ring.width)].ravel())
        nothing = (rings[:, :, 0] == rings[:, :, 1]).all(axis=1)
        words = np.where(nothing[:, None] & self._lost, np.array(self.layout.words, np.int64), words)
        rings[nothing] = 0
        parts = {"rows": rows, "words": words, "rings": rings, "entries": np.concatenate([np.zeros(0, np.int64), *entries])}
        return {name: part.astype("<i8").tobytes() for name, part in parts.items()}

    def load(
        self,
        sections: Mapping[str, bytes],
        *,
        check: Callable[[Array, list[Array]], None] | None = None,
        stored: Stored | None = None,
    ) -> None:
        """The rows of `dump`, into blocks without any; raises ValueError or KeyError if the sections do not fit together.

        Rows with nothing in their rings get no block before `open`.
        check: given the plain words of the rows and the entries of each ring, may raise ValueError as well. stored: the partitions of the
        snapshot, which must be those of the rows (a row is a slot + 1); None: the rows stay as they are.
        """
        layout = self.layout
        rows, entries = numbers(sections, "rows"), numbers(sections, "entries")
        words = numbers(sections, "words").reshape(len(rows), layout.directory)
        rings = numbers(sections, "rings").reshape(len(rows), len(layout.rings), 2)
        counts = rings[:, :, 1] - rings[:, :, 0]
        demand(inside(rings, 0, NUMBER_LIMIT), inside(counts, 0, len(entries) + 1))
        totals = counts.sum(axis=0) * self.widths
        demand(totals.sum() == len(entries))
        split = np.split(entries, np.cumsum(totals)[:-1]) if layout.rings else []
        parts = [part.reshape(-1, ring.width) for part, ring in zip(split, layout.rings, strict=True)]
        for number, ring in enumerate(layout.rings):
            owner = owners(counts[:, number], parts[number])
            if ring.dated:
                dates = parts[number][:, 0]
                demand(ascending(dates, owner), inside(dates, 0, words[owner, 0]))
        if check is not None:
            check(words, parts)
        rows = rows_of(rows - 1, words[:, 0], stored)
        self.ensure(int(rows.max(initial=-1)) + 1)
        self._restore(rows, words, rings, parts)

    def _capacities(self, counts: Array) -> Array:
        """Places of restored rings, given their entries."""
        # PERF: half the places of a new ring are left for what comes, or most rings would grow at their next entry.
        capacities: Array = np.int64(1) << np.ceil(np.log2(np.maximum(counts + self._places // 2, self._places))).astype(np.int64)
        return capacities

    def _restore(self, rows: Array, words: Array, rings: Array, parts: Sequence[Array]) -> None:
        self.keep(rows, words[:, : self.layout.kept])
        counts = rings[:, :, 1] - rings[:, :, 0]
        held = counts.any(axis=1)
        rows, words, rings, counts = rows[held], words[held], rings[held], counts[held]
        layout = self.layout
        capacities = self._capacities(counts)
        spans = capacities * self._spans
        data = layout.data + np.cumsum(spans, axis=1) - spans
        totals, place = np.unique(layout.data + spans.sum(axis=1), return_inverse=True)
        sizes = np.array([size_class(total)[1] for total in totals.tolist()], np.int64)[place]
        for size in np.unique(sizes).tolist():
            self._give(rows[sizes == size], size)
        offsets = self.offsets[rows]
        self.words[offsets[:, None] + np.arange(layout.directory)] = words
        for number, ring in enumerate(layout.rings):
            first = offsets + layout.ring(number)
            line = np.stack([*rings[:, number].T, data[:, number], capacities[:, number] - 1], axis=1)
            self.words[first[:, None] + np.arange(len(DIRECTORY))] = line
            owner, index = ragged(rings[:, number, 0], counts[:, number])
            places = offsets[owner] + data[owner, number] + (index & capacities[owner, number] - 1) * ring.width
            self.words[places[:, None] + np.arange(ring.width)] = parts[number]


def _position(words: Array, data: Array, mask: Array, width: int) -> Callable[[Array], Array]:
    """The positions of one entry of each ring, given their numbers."""
    return lambda number: words[data + (number & mask) * width]


def _copy_ring(old: Array, before: Array, new: Array, after: Array, width: int) -> None:
    """The entries of a ring in stretches that wrap in neither block: at most three, and nothing is allocated."""
    number, tail = int(before[HEAD]), int(before[TAIL])
    while number < tail:
        source, target = number & int(before[MASK]), number & int(after[MASK])
        count = min(tail - number, int(before[MASK]) + 1 - source, int(after[MASK]) + 1 - target)
        begin, end = int(before[DATA]) + source * width, int(after[DATA]) + target * width
        new[end : end + count * width] = old[begin : begin + count * width]
        number += count
