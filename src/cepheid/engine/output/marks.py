"""The marks of matches: of each match its events, as positions in their partition and rows of a table, with the number of the label of each.

Comes in: what an evaluation gave. Goes out: columns of positions and rows for `Matches` and its measures. There are two shapes. `Ragged` is any
matches, one after the other. `Even` is matches that all have the same labels, as those of a pattern without iteration and OR do: no offsets, no
labels, and the rows by their place in the match, in 32 bits where they fit; what reads one place of all matches reads it in one go.
"""

from __future__ import annotations

import bisect
import itertools
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from cepheid.engine.memory.pools import Array

SLICE_MARKS = 1 << 17
"""Marks that are worked on at once: what is made of them in between stays in the cache."""

FEW = 1 << 10
"""Matches up to which slices do not pay."""

NARROW = 1 << 31
"""Numbers below it fit 32 bits."""


def narrow(bound: int) -> type[np.signedinteger[Any]]:
    """The integers for numbers below a bound."""
    return np.int32 if bound <= NARROW else np.int64


def width_of(offsets: Array, labels: Array) -> int | None:
    """How many marks each match has, where all have the same labels in the same order; None where they do not, or there is no match."""
    count = len(offsets) - 1
    if not count or len(labels) % count:
        return None
    width = len(labels) // count
    if count == 1:
        return width
    # PERF: each with the one a match before it, which numpy compares twenty times faster than with the few of the first match.
    same = (labels[width:] == labels[:-width]).all() and (offsets == np.arange(0, len(labels) + 1, width)).all()
    return width if same else None


@record(slots=False, eq=False)
class Ragged:
    """The marks of matches of any shape, one match after the other: the first mark of each is its start, and the last one its end.

    offsets: int64, n + 1; match i has the marks ``offsets[i]:offsets[i + 1]``. positions: int64, per mark the position in the partition. labels:
    uint16, per mark its label number. rows: int64, per mark the row of the events.
    """

    offsets: Array
    positions: Array
    labels: Array
    rows: Array

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def even(self) -> Even | None:
        """The same as `Even`, without a copy; None where the matches differ."""
        width = width_of(self.offsets, self.labels)
        if width is None:
            return None
        return Even(self.labels[:width], (self.rows.reshape(-1, width).T,), (self.positions.reshape(-1, width).T,))

    def match(self, index: int) -> tuple[Array, Array, Array]:
        """The positions, labels and rows of one match."""
        marks = slice(int(self.offsets[index]), int(self.offsets[index + 1]))
        return self.positions[marks], self.labels[marks], self.rows[marks]

    def sliced(self, start: int, stop: int) -> Ragged:
        """The matches from one number to another."""
        first, last = int(self.offsets[start]), int(self.offsets[stop])
        marks = slice(first, last)
        return Ragged(self.offsets[start : stop + 1] - first, self.positions[marks], self.labels[marks], self.rows[marks])

    def take(self, numbers: Array) -> Ragged:
        """The matches with these numbers, in this order."""
        even = self.even
        if even is not None and len(numbers) <= len(self):
            width = len(even.alike)
            positions, rows = (np.take(values.reshape(-1, width), numbers, axis=0).reshape(-1) for values in (self.positions, self.rows))
            return Ragged(np.arange(0, len(rows) + 1, width), positions, self.labels[: len(rows)], rows)
        lengths = np.diff(self.offsets)[numbers]
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        marks = np.repeat(self.offsets[:-1][numbers] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return Ragged(offsets, self.positions[marks], self.labels[marks], self.rows[marks])

    @property
    def starts(self) -> Array:
        """The mark that is each match's first."""
        return self.offsets[:-1]

    @property
    def ends(self) -> Array:
        """The mark that is each match's last."""
        return self.offsets[1:] - 1

    @property
    def start_rows(self) -> Array:
        """The row of each match's first event."""
        return self.rows[self.starts]

    @property
    def end_rows(self) -> Array:
        """The row of each match's last event."""
        return self.rows[self.ends]

    @property
    def size(self) -> int:
        """How many marks there are."""
        return len(self.rows)

    @property
    def row_range(self) -> tuple[int, int]:
        """The least and the greatest row."""
        return int(self.rows.min()), int(self.rows.max())

    def with_rows(self, change: Callable[[Array], Array]) -> Ragged:
        """The same with other rows."""
        return Ragged(self.offsets, self.positions, self.labels, change(self.rows))

    def chosen(self, visible: Array, values: Array) -> tuple[Array, Array]:
        """Of the marks that some labels have (visible: bool per label number) the offsets and these values, which are per mark."""
        chosen = visible[self.labels]
        if chosen.all():
            return self.offsets, values
        before = np.zeros(len(chosen) + 1, np.int64)
        np.cumsum(chosen, dtype=np.int64, out=before[1:])
        return before[self.offsets], values[chosen]


@record(slots=False, eq=False)
class Even:
    """The marks of matches that all have the same labels.

    alike: uint16, the label numbers of every match. row_blocks: the rows, in blocks of consecutive matches: integers, (len(alike), matches).
    position_blocks: the positions, in the same way; None: they are the rows, or what `position_of` has for each row.
    """

    alike: Array
    row_blocks: tuple[Array, ...]
    position_blocks: tuple[Array, ...] | None = None
    position_of: Array | None = None

    def __len__(self) -> int:
        return int(self.row_blocks[0].shape[1]) if len(self.row_blocks) == 1 else self._starts[-1]

    @cached_property
    def _starts(self) -> list[int]:
        """The number of the first match of each block, and that of all."""
        return [0, *itertools.accumulate(block.shape[1] for block in self.row_blocks)]

    @property
    def even(self) -> Even:
        """These marks."""
        return self

    # ---------------------------------------------------------------------------------------------------------------- by place

    def slices(self) -> Iterator[tuple[int, int, Array, Array]]:
        """Ranges of matches, of bounded size, with their rows, and their positions before `position_of`: (len(alike), matches)."""
        step = max(1, SLICE_MARKS // len(self.alike))
        shown = self.row_blocks if self.position_blocks is None else self.position_blocks
        for first, rows, positions in zip(self._starts, self.row_blocks, shown, strict=False):
            for start in range(0, rows.shape[1], step):
                part = slice(start, min(start + step, rows.shape[1]))
                yield first + part.start, first + part.stop, rows[:, part], positions[:, part]

    def places(self, visible: Array) -> list[int]:
        """The places in a match that some labels have (visible: bool per label number)."""
        places: list[int] = visible[self.alike].nonzero()[0].tolist()
        return places

    def positions_at(self, places: list[int]) -> Array:
        """The positions (int64) at some places of each match, match by match."""
        if self.position_blocks is not None and len(self.position_blocks) == 1 and len(self) <= FEW and self.position_of is None:
            few: Array = self.position_blocks[0][_of(places)].T.astype(np.int64, "C").reshape(-1)
            return few
        found = np.empty((len(self), len(places)), np.int64)
        for start, stop, _, positions in self.slices():
            values = positions[_of(places)]
            found[start:stop] = (values if self.position_of is None else np.take(self.position_of, values)).T
        return found.reshape(-1)

    def rows_at(self, places: list[int]) -> Array:
        """The rows at some places of each match, match by match."""
        found = np.empty((len(self), len(places)), np.result_type(*self.row_blocks))
        for start, stop, rows, _ in self.slices():
            found[start:stop] = rows[_of(places)].T
        return found.reshape(-1)

    # ---------------------------------------------------------------------------------------------------------------- as `Ragged`

    @cached_property
    def offsets(self) -> Array:
        """As in `Ragged`."""
        return np.arange(0, len(self) * len(self.alike) + 1, len(self.alike))

    @cached_property
    def positions(self) -> Array:
        """As in `Ragged`."""
        return self.positions_at(list(range(len(self.alike))))

    @cached_property
    def labels(self) -> Array:
        """As in `Ragged`."""
        return np.tile(self.alike, len(self))

    @cached_property
    def rows(self) -> Array:
        """As in `Ragged`."""
        return self.rows_at(list(range(len(self.alike)))).astype(np.int64, copy=False)

    @property
    def start_rows(self) -> Array:
        """The row of each match's first event."""
        return self.rows_at([0])

    @property
    def end_rows(self) -> Array:
        """The row of each match's last event."""
        return self.rows_at([len(self.alike) - 1])

    def match(self, index: int) -> tuple[Array, Array, Array]:
        """The positions, labels and rows of one match."""
        one = self.sliced(index, index + 1)
        return one.positions, self.alike, one.rows

    def sliced(self, start: int, stop: int) -> Even:
        """The matches from one number to another."""
        positions = None if self.position_blocks is None else self._cut(self.position_blocks, start, stop)
        return Even(self.alike, self._cut(self.row_blocks, start, stop), positions, self.position_of)

    def _cut(self, blocks: tuple[Array, ...], start: int, stop: int) -> tuple[Array, ...]:
        first = max(0, bisect.bisect_right(self._starts, start) - 1)
        inside = itertools.takewhile(lambda block: block[0] < stop, zip(self._starts[first:], blocks[first:], strict=False))
        cut = tuple(block[:, max(0, start - begin) : stop - begin] for begin, block in inside)
        return cut or (np.zeros((len(self.alike), 0), np.int32),)

    @property
    def size(self) -> int:
        """How many marks there are."""
        return len(self) * len(self.alike)

    @property
    def row_range(self) -> tuple[int, int]:
        """The least and the greatest row."""
        return min(int(block.min()) for block in self.row_blocks), max(int(block.max()) for block in self.row_blocks)

    def with_rows(self, change: Callable[[Array], Array]) -> Even:
        """The same with other rows."""
        positions = self.row_blocks if self.position_blocks is None else self.position_blocks
        return Even(self.alike, tuple(map(change, self.row_blocks)), positions, self.position_of)

    def take(self, numbers: Array) -> Even:
        """The matches with these numbers, in this order."""

        def taken(blocks: tuple[Array, ...]) -> tuple[Array, ...]:
            return (np.take(blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1), numbers, axis=1),)

        positions = None if self.position_blocks is None else taken(self.position_blocks)
        return Even(self.alike, taken(self.row_blocks), positions, self.position_of)


def _of(places: list[int]) -> Any:
    """An index for these places, which ascend: a range where they are one, which needs no copy."""
    whole = bool(places) and places[-1] - places[0] == len(places) - 1
    return slice(places[0], places[0] + len(places)) if whole else places


Marks = Ragged | Even
"""The marks of some matches."""


class MarkColumns:
    """Columns of positions and rows of some marks: what several columns show is made once for all of them."""

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._shape = marks if marks.even is None else marks.even
        self._known: dict[tuple[int, ...], Array] = {}
        self._regular: dict[int, Array] = {}

    @property
    def start_positions(self) -> Array:
        """The position of each match's first event (int64)."""
        shape = self._shape
        return shape.positions[shape.starts] if isinstance(shape, Ragged) else self._positions(shape, [0])

    @property
    def end_positions(self) -> Array:
        """The position of each match's last event (int64)."""
        shape = self._shape
        return shape.positions[shape.ends] if isinstance(shape, Ragged) else self._positions(shape, [len(shape.alike) - 1])

    @property
    def start_rows(self) -> Iterable[Array]:
        """The row of each match's first event, in slices."""
        shape = self._shape
        return [shape.start_rows] if isinstance(shape, Ragged) else (rows[0] for _, _, rows, _ in shape.slices())

    @property
    def end_rows(self) -> Iterable[Array]:
        """The row of each match's last event, in slices."""
        shape = self._shape
        return [shape.end_rows] if isinstance(shape, Ragged) else (rows[-1] for _, _, rows, _ in shape.slices())

    def positions_of(self, visible: Array) -> tuple[Array, Array]:
        """The offsets and positions (int64) of the marks that some labels have (visible: bool per label number)."""
        shape = self._shape
        if isinstance(shape, Ragged):
            return shape.chosen(visible, shape.positions)
        places = shape.places(visible)
        if len(places) == len(shape.alike) and isinstance(self._marks, Ragged):
            return self._marks.offsets, self._marks.positions
        return self._offsets(len(places)), self._positions(shape, places)

    def rows_of(self, visible: Array) -> tuple[Array, Array]:
        """The same with rows."""
        shape = self._shape
        if isinstance(shape, Ragged):
            return shape.chosen(visible, shape.rows)
        places = shape.places(visible)
        return self._offsets(len(places)), shape.rows_at(places)

    def _positions(self, even: Even, places: list[int]) -> Array:
        known = self._known.get(tuple(places))
        if known is None:
            known = self._known[tuple(places)] = even.positions_at(places)
        return known

    def _offsets(self, width: int) -> Array:
        known = self._regular.get(width)
        if known is None:
            count = len(self._marks)
            known = self._regular[width] = np.arange(0, count * width + 1, width) if width else np.zeros(count + 1, np.int64)
        return known
