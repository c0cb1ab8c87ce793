"""All chunks of an answer as one: those whose matches all have the same labels as `EvenChunk`, which takes a third of the memory.

Comes in: chunks, as an evaluation makes them. Goes out: their matches by place, each chunk turned over while it is in the cache and then let go;
and for matches in partitions their rows in the order of the stream. Where matches differ the chunks are put together as they are.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from cepheid.engine.evaluations.base import Chunk, collect
from cepheid.engine.output.marks import SLICE_MARKS, Even, Ragged, narrow, width_of
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from cepheid.engine.memory.pools import Array


class BlockRoom:
    """Memory for blocks of about the same size, for several of them at a time. PERF: numpy asks for huge pages for large arrays alone."""

    def __init__(self) -> None:
        self._free: Array = np.empty((0, 0), np.int32)

    def take(self, width: int, count: int, kind: type[np.signedinteger[Any]]) -> Array:
        """An array of shape (width, count)."""
        if self._free.shape[1] < count or self._free.shape[0] != width or self._free.dtype != kind:
            self._free = np.empty((width, 4 * count), kind)
        taken, self._free = self._free[:, :count], self._free[:, count:]
        return taken


@record
class EvenChunk:
    """Consecutive matches that all have the same labels.

    alike: uint16, the label numbers of each. blocks: their positions, some matches each: integers, (len(alike), matches). segments, lengths: per
    block the segments that its matches ended in (int32), and how many each. room: for blocks.
    """

    alike: Array
    room: BlockRoom
    blocks: list[Array] = field(default_factory=list)
    segments: list[Array] = field(default_factory=list)
    lengths: list[Array] = field(default_factory=list)

    def __len__(self) -> int:
        return sum(block.shape[1] for block in self.blocks)

    @property
    def marks(self) -> int:
        """How many there are."""
        return len(self) * len(self.alike)

    def chunk(self) -> Chunk:
        """The same as `Chunk`."""
        width = len(self.alike)
        positions = np.empty((len(self), width), np.int64)
        stop = 0
        for block in self.blocks:
            start, stop = stop, stop + block.shape[1]
            positions[start:stop] = block.T
        offsets = np.arange(0, len(self) * width + 1, width)
        segments = np.repeat(np.concatenate(self.segments), np.concatenate(self.lengths))
        return Chunk(offsets, positions.reshape(-1), np.tile(self.alike, len(self)), segments)

    def add(self, chunk: Chunk) -> bool:
        """Take the matches of one more chunk, if they are such too."""
        width = width_of(chunk.offsets, chunk.labels) if chunk.counts is None else None
        if width != len(self.alike) or (chunk.labels[:width] != self.alike).any():
            return False
        self.blocks.append(self._turned(chunk.positions.reshape(-1, width)))
        starts = _changes(chunk.segments)
        self.segments.append(chunk.segments[starts])
        self.lengths.append(np.diff(starts, append=len(chunk)))
        return True

    def _turned(self, positions: Array) -> Array:
        """Positions by place; positions: (matches, marks of each)."""
        count, width = positions.shape
        turned = self.room.take(width, count, narrow(int(positions[:, -1].max()) + 1))
        step = max(1, SLICE_MARKS // width)
        for start in range(0, count, step):
            turned[:, start : start + step] = positions[start : start + step].T
        return turned


def _changes(values: Array) -> Array:
    """Where values differ from the one before; the first one does."""
    changed = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=changed[1:])
    return np.flatnonzero(changed)


def together(chunks: Iterable[Chunk]) -> Chunk | EvenChunk:
    """All chunks as one; a single one is passed on as it is."""
    stream = iter(chunks)
    first, second = next(stream, None), next(stream, None)
    if first is None or second is None:
        return collect([] if first is None else [first])
    width = width_of(first.offsets, first.labels) or 0
    even = EvenChunk(first.labels[:width].copy(), BlockRoom())
    rest: list[Chunk] = []
    for chunk in _after(first, second, stream):
        if rest or not even.add(chunk):
            rest.append(chunk)
    if not rest:
        return even
    return collect([even.chunk(), *rest] if even.blocks else rest)


def chunk_of(found: Chunk | EvenChunk) -> Chunk:
    """The matches as `Chunk`."""
    return found.chunk() if isinstance(found, EvenChunk) else found


def _after(first: Chunk, second: Chunk, stream: Iterator[Chunk]) -> Iterator[Chunk]:
    yield first
    yield second
    yield from stream


@record
class PartitionPlaces:
    """Where the events of partitions stand, partition by partition.

    rows: in the table. cuts: int64, where each partition starts. places: in the stream. total: rows of the table.
    """

    rows: Array
    cuts: Array
    places: Array
    total: int

    def of(self, segments: Array, positions: Array) -> Array:
        """Where events stand partition by partition; segments: the partition of each, or of the matches in each column of positions."""
        grouped: Array = np.take(self.cuts, segments)
        return grouped + positions

    def positions(self, start: int, stop: int) -> Array:
        """The positions in their partitions of the events that stand from one number to another."""
        first, last = np.searchsorted(self.cuts, start, "right") - 1, np.searchsorted(self.cuts, stop)
        starts = self.cuts[first:last]
        own: Array = np.arange(start, stop) - np.repeat(starts, np.diff(np.maximum(starts, start), append=stop))
        return own


SPARSE = 16
"""Where less than one event in so many ends a match, matches are sorted; else each looks up its place, which takes a number per event."""


def _moved(ends: Array, total: int) -> Array:
    """Where each match goes, in the order of the places of the events that end them: integers, in the memory of `ends`.

    ends: below `total`; those of a trigger follow each other, and so they stay. O(matches + total), but for few matches, which are sorted.
    """
    if SPARSE * len(ends) < total:
        order = np.argsort(ends, kind="stable")
        ends[order] = np.arange(len(ends))
        return ends
    following = np.zeros(total + 1, ends.dtype)  # the place of the next match that each event ends
    slices = [ends[start : start + SLICE_MARKS] for start in range(0, len(ends), SLICE_MARKS)]
    for part in slices:
        first = _changes(part)
        following[part[first] + 1] += np.diff(first, append=len(part)).astype(ends.dtype)
    np.cumsum(following, out=following)
    for part in slices:
        first = _changes(part)
        triggers, lengths = part[first], np.diff(first, append=len(part))
        part[:] = np.repeat(following[triggers] - first, lengths) + np.arange(len(part))
        following[triggers] += lengths.astype(ends.dtype)
    return ends


def even_in_stream_order(found: EvenChunk, places: PartitionPlaces, shown: Callable[[Array], Array] | None) -> tuple[Even, Array]:
    """The marks of matches in partitions in the order of the events that end them, and the partition of each (int32); `found` is used up.

    shown: gives the positions that matches show of events, given where they stand partition by partition; None: those in their partitions. PERF:
    what is not kept is made in slices. To touch memory for the first time costs more than all that is done to it here.
    """
    kind = narrow(max(places.total, len(found)) + 1)
    step = max(1, SLICE_MARKS // len(found.alike))
    ends = np.empty(len(found), kind)
    slices: list[tuple[Array, Array]] = []
    stop = 0
    for block, segments, lengths in zip(found.blocks, found.segments, found.lengths, strict=True):
        rows, owners = block.astype(kind, copy=False), np.repeat(segments, lengths)
        for start in range(0, len(owners), step):
            part, owner = rows[:, start : start + step], owners[start : start + step]
            grouped = places.of(owner, part)
            part[:] = np.take(places.rows, grouped)
            ends[stop : stop + len(owner)] = part[-1] if places.places is places.rows else np.take(places.places, grouped[-1])
            stop += len(owner)
            slices.append((part, owner))
    found.blocks.clear()
    moved = _moved(ends, places.total)
    sorted_rows = np.empty((len(found.alike), len(moved)), kind)
    partitions = np.empty(len(moved), np.int32)
    stop = 0
    for part, owner in slices:
        start, stop = stop, stop + len(owner)
        targets = moved[start:stop].astype(np.intp)
        partitions[targets] = owner
        for column, values in zip(sorted_rows, part, strict=True):
            column[targets] = values
    position_of = np.zeros(places.total, kind)
    for start in range(0, len(places.rows), SLICE_MARKS):
        stop = min(start + SLICE_MARKS, len(places.rows))
        positions = places.positions(start, stop) if shown is None else shown(np.arange(start, stop))
        position_of[places.rows[start:stop]] = positions
    return Even(found.alike, (sorted_rows,), None, position_of), partitions


def ragged_in_stream_order(
    found: Chunk, places: PartitionPlaces, shown: Callable[[Array], Array] | None
) -> tuple[Ragged, Array, Array | None]:
    """The same of any matches: their marks, the partition of each, and its number of COUNT(*)."""
    kind = narrow(max(places.total, len(found)) + 1)
    step = max(1, SLICE_MARKS * len(found) // max(1, len(found.positions)))
    slices = [slice(start, min(start + step, len(found))) for start in range(0, len(found), step)]
    ends = np.empty(len(found), kind)
    for part in slices:
        last = found.positions[found.offsets[part.start + 1 : part.stop + 1] - 1]
        ends[part] = np.take(places.places, places.of(found.segments[part], last))
    moved = _moved(ends, places.total)
    offsets = np.zeros(len(found) + 1, np.int64)
    offsets[1:][moved] = np.diff(found.offsets)
    np.cumsum(offsets, out=offsets)
    positions, labels, rows = np.empty_like(found.positions), np.empty_like(found.labels), np.empty_like(found.positions)
    partitions = np.empty(len(found), np.int32)
    for part in slices:
        targets, segments, before = moved[part], found.segments[part], found.offsets[part.start : part.stop + 1]
        partitions[targets] = segments
        lengths = np.diff(before)
        marks = slice(int(before[0]), int(before[-1]))
        to = np.repeat(offsets[targets] - before[:-1], lengths) + np.arange(marks.start, marks.stop)
        grouped = places.of(np.repeat(segments, lengths), found.positions[marks])
        positions[to] = found.positions[marks] if shown is None else shown(grouped)
        labels[to] = found.labels[marks]
        rows[to] = np.take(places.rows, grouped)
    counts = None if found.counts is None else np.empty_like(found.counts)
    if counts is not None and found.counts is not None:
        counts[moved] = found.counts
    return Ragged(offsets, positions, labels, rows), partitions, counts
