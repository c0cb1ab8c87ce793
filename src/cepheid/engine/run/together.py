"""All chunks of an answer as one: those whose matches all have the same labels as `EvenChunk`, which takes a third of the memory.

Comes in: chunks, as an evaluation makes them. Goes out: their matches by place, each chunk turned over while it is in the cache and then let go;
and for matches in partitions their rows in the order of the stream. Where matches differ the chunks are put together as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cepheid.engine.evaluations.base import Chunk, collect
from cepheid.engine.output.marks import SLICE_MARKS, Even, narrow, width_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cepheid.engine.memory.pools import Array


class Room:
    """Memory for blocks of about the same size, for several of them at a time. PERF: numpy asks for huge pages for large arrays alone."""

    def __init__(self) -> None:
        self._free: Array = np.empty((0, 0), np.int32)

    def take(self, width: int, count: int, kind: type[np.signedinteger[Any]]) -> Array:
        """An array of shape (width, count)."""
        if self._free.shape[1] < count or self._free.shape[0] != width or self._free.dtype != kind:
            self._free = np.empty((width, 4 * count), kind)
        taken, self._free = self._free[:, :count], self._free[:, count:]
        return taken


@dataclass(frozen=True, slots=True)
class EvenChunk:
    """Consecutive matches that all have the same labels.

    alike: uint16, the label numbers of each. blocks: their positions, some matches each: integers, (len(alike), matches). segments, lengths: per
    block the segments that its matches ended in (int32), and how many each. room: for blocks.
    """

    alike: Array
    room: Room
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
    even = EvenChunk(first.labels[:width].copy(), Room())
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


@dataclass(frozen=True, slots=True)
class Places:
    """Where the events of partitions stand, partition by partition.

    rows: int64, in the table. cuts: int64, where each partition starts. places: int64, in the stream. shown: the position that matches show.
    """

    rows: Array
    cuts: Array
    places: Array
    shown: Array


def in_stream_order(found: EvenChunk, places: Places, total: int) -> tuple[Even, Array]:
    """The marks of matches in partitions in the order of the events that end them, and the partition of each (int32); `found` is used up.

    total: rows of the table. PERF: a trigger's matches follow each other, so that triggers are sorted and not matches.
    """
    kind = narrow(total)
    rows_of, starts_of = places.rows.astype(kind), places.cuts.astype(kind)
    step = max(1, SLICE_MARKS // len(found.alike))
    # Rows of some matches; of each trigger in them its first match, its place in the stream, its partition.
    slices: list[Array] = []
    firsts: list[Array] = []
    ends: list[Array] = []
    partitions: list[Array] = []
    stop = 0
    for block, segments, lengths in zip(found.blocks, found.segments, found.lengths, strict=True):
        rows, owners = block.astype(kind, copy=False), np.repeat(segments, lengths)
        for start in range(0, len(owners), step):
            part, owner = rows[:, start : start + step], owners[start : start + step]
            part += starts_of[owner]
            first = _changes(part[-1])
            slices.append(part)
            firsts.append(stop + first)
            ends.append(places.places[part[-1, first]])
            partitions.append(owner[first])
            part[:] = np.take(rows_of, part)
            stop += len(owner)
    found.blocks.clear()
    order = np.argsort(np.concatenate(ends), kind="stable")
    lengths = np.diff(np.concatenate(firsts), append=stop)
    moved = np.empty(len(order), np.int64)
    moved[order] = np.cumsum(lengths[order]) - lengths[order]
    moved -= np.concatenate(firsts)
    sorted_rows = np.empty((len(found.alike), stop), kind)
    start = trigger = 0
    for part, first in zip(slices, firsts, strict=True):
        triggers = slice(trigger, trigger + len(first))
        targets = np.repeat(moved[triggers], lengths[triggers]) + np.arange(start, start + part.shape[1])
        for column, values in zip(sorted_rows, part, strict=True):
            column[targets] = values
        start, trigger = start + part.shape[1], triggers.stop
    position_of = np.zeros(total, kind)
    position_of[places.rows] = places.shown
    marks = Even(found.alike, (sorted_rows,), None, position_of)
    return marks, np.repeat(np.concatenate(partitions)[order], lengths[order])
