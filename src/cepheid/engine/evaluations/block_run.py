"""Evaluations whose kernels keep each partition in a block (`cepheid.engine.memory.blocks`): windows, partitions and snapshots, as they share them.

Comes in: what `base` asks of an evaluation. A subclass says what a block holds, keeps the tables of its kernel, and mends what is its own.

What a kernel of this kind keeps to:

* its vector S has the FIELDS named in `SHARED_FIELDS`;
* a block begins with the words of HEADER, and the entries of its ring 0 begin with (position, time) of the events that may start a match,
  where there is a time window: that turns the window into `oldest`, the least start still inside;
* an event is read to its end or not at all: every exit leaves S[row] at an event that has changed nothing yet (or in an enumeration that S
  itself describes).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

import numpy as np

from cepheid.engine.evaluations.base import ALL, BufferedRun
from cepheid.engine.memory.blocks import Blocks, Ring
from cepheid.engine.memory.checks import demand, inside

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Unpack

    from cepheid.engine.evaluations.base import Bounds
    from cepheid.engine.memory.blocks import BlockLayout
    from cepheid.engine.memory.pools import Array
    from cepheid.engine.memory.stored import Stored

HEADER = (0, 0, 0, 0, -1, 0)
"""First words of a new block."""

POSITION, LOW, EPOCH, LAST_TIME, NEWEST_START, NEWEST_TIME = range(6)
"""Position of the partition's next event; least start that consumption allows; epoch when it was last read; time of its last event; position
and time of the last event that may start a match."""

KEPT = 4
"""Words of the header that outlive `expire`."""

STARTS = Ring(2)
"""Ring 0 of every block: (position, time) of the events that may start a match; empty without a time window."""

SHARED_FIELDS = (
    "row",  # next row of the batch
    "segment",  # index of the segment being read, -1 before the first
    "segment_end",  # row where it ends
    "window",  # ! time window
    "timed",  # ! 1 with a time window
    "count_window",  # ! position window, 0 none
    "consume",  # ! see evaluation.CONSUME
    "limit",  # ! matches per trigger, 0 = count the triggers only
    "continued",  # ! 1: the first segment goes on with row 0
    "letter_mask",  # !
    "epoch",  # triggers so far that consumed all partitions
    "argument",  # of the exit code
    "buffered_matches",  # supports in the output
    "buffered_positions",
    "triggers",  # events that ended a match
    "skipped",  # events passed by the skip loop
    "budget",  # ! what may be done before the kernel returns
)
"""Fields of a kernel's vector that are set or read here; "!" marks what the kernel never writes."""


class Room(TypedDict):
    """First and greatest sizes of the output, see `BufferedRun`."""

    lists: int
    marks: int
    most_lists: int
    most_marks: int


class BlockRun(BufferedRun):
    """A run whose kernel reads and writes blocks. Memory is bounded by the marked events of the window, without a window by all marked events.

    lists, marks, most_lists, most_marks: as for `BufferedRun`. places: entries of a new ring.
    """

    workplace: ClassVar[int] = 0

    def __init__(self, name: str, bounds: Bounds, *, places: int, **room: Unpack[Room]) -> None:
        super().__init__(name, bounds, **room)
        self.store: Blocks = Blocks(self._layout(), places=places)
        self.mends |= {"ring": "_mend_ring", "limit": "_mend_ring", "pool": "_mend_pool"}
        self._set("limit", ALL if self.limit is None else self.limit)

    @abstractmethod
    def _layout(self) -> BlockLayout:
        """What a block holds: words that begin with HEADER, rings that begin with STARTS, kept=KEPT."""

    @abstractmethod
    def _check(self, words: Array, entries: list[Array]) -> None:
        """Raise ValueError where the plain words of blocks and the entries of their rings, from a snapshot, are no state of this evaluation."""

    def restart(self, slots: Array) -> None:
        """Forget the partitions in these slots, which are read again at once: their blocks stay."""
        self.store.restart(np.asarray(slots, np.int64) + 1)

    def _idle(self, time: int) -> Array:
        idle, oldest = self.store.offsets < 0, self._since(time)
        held = self.store.held_rows
        words = self.store.plain(held)
        idle[held] = words[:, NEWEST_START] < self._lows(words)
        if oldest is not None:
            idle[held] |= words[:, NEWEST_TIME] < oldest
        return idle

    def _needed(self) -> int:
        rows = self.store.held_rows
        return self.store.needed(rows, self._oldest(rows, self.store.plain(rows)))

    def dump(self) -> dict[str, bytes]:
        """The live state of all partitions as named sections, little-endian; the evaluation is unchanged. Linear in the blocks."""
        rows = self.store.used
        words = self.store.plain(rows)
        return {"counters": self._count().tobytes(), **self.store.dump(rows, words, self._oldest(rows, words))}

    def _restore(self, sections: Mapping[str, Any], stored: Stored | None) -> None:
        self.store.load(sections, check=self._check_state, stored=stored)

    def _entries(self, sections: Mapping[str, Any]) -> list[Array]:
        """The entries of each ring in what `dump` gave, of all rows: int64, (n, width)."""
        rings = self.store.layout.rings
        counts = np.diff(np.frombuffer(sections["rings"], "<i8").reshape(-1, len(rings), 2)).sum(axis=(0, 2))
        widths = np.array([ring.width for ring in rings], np.int64)
        split = np.split(np.frombuffer(sections["entries"], "<i8"), np.cumsum(counts * widths)[:-1])
        return [part.reshape(-1, ring.width) for part, ring in zip(split, rings, strict=True)]

    def _check_state(self, words: Array, entries: list[Array]) -> None:
        position, low, newest, epoch = words[:, POSITION], words[:, LOW], words[:, NEWEST_START], words[:, EPOCH]
        demand(inside(low, 0, position + 1), inside(newest, -1, np.maximum(position, 1)), inside(epoch, 0, self._get("epoch") + 1))
        self._check(words, entries)

    def _lows(self, words: Array) -> Array:
        """Per block, given its plain words, the least start that consumption and the position window allow a later match."""
        low: Array = np.where(words[:, EPOCH] == self._get("epoch"), words[:, LOW], words[:, POSITION])
        if self.count_window is not None:
            low = np.maximum(low, words[:, POSITION] + 1 - self.count_window)
        return low

    def _oldest(self, rows: Array, words: Array) -> Array:
        """Per row, the least start that a match which ends after the partition's last event may have, as far as is known by then."""
        oldest = self._lows(words)
        held = np.flatnonzero(self.store.offsets[rows] >= 0)
        if self.window is None:
            return oldest
        owner, places = self.store.places(rows[held], 0)
        # Unsigned: the difference of two int64 times cannot overflow.
        age = words[held, LAST_TIME][owner].view(np.uint64) - self.store.words[places + 1].view(np.uint64)
        recent = (age <= np.uint64(self.window)) & (self.store.words[places] >= oldest[held[owner]])
        first_inside = words[held, POSITION].copy()
        np.minimum.at(first_inside, owner[recent], self.store.words[places[recent]])
        oldest[held] = np.maximum(oldest[held], first_inside)
        return oldest

    def _mend_ring(self) -> None:
        """Ring `argument` of the partition being read is full."""
        self.store.grow(self._row(), self._get("argument"))

    def _mend_pool(self) -> None:
        """The kernel gives out a block of `argument` words, for which there is no room."""
        self.store.reserve(self._get("argument"))

    def _row(self) -> int:
        """The row of the partition being read."""
        return int(self._batch[3][self._get("segment")])
