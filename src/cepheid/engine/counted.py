"""COUNT(*) of what a strategy chooses: the chosen matches of each trigger, counted as they come.

NXT and LAST choose few, so there is nothing to save; where MAX keeps many this is as slow as giving them. Everything else is counted without
enumeration, by `cepheid.engine.counting`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cepheid.engine.running import Around, Chunk

if TYPE_CHECKING:
    from collections.abc import Callable

Array = np.ndarray[Any, Any]


class Counted(Around):
    """An evaluation that gives the number of its matches per trigger instead of them; the same interface, chunks as of `Counting`."""

    def feed(
        self,
        letters: Array,
        times: Array,
        *,
        sink: Callable[[Chunk], None] | None = None,
        cuts: Array | None = None,
        slots: Array | None = None,
        continued: bool = False,
    ) -> None:
        """Read a batch, as `Evaluation.feed`."""
        found: list[tuple[Array, Array, Array]] = []
        self.evaluation.feed(letters, times, sink=lambda chunk: found.append(_triggers(chunk)), cuts=cuts, slots=slots, continued=continued)
        if sink is not None and found:
            ends, segments, counts = (np.concatenate(part) for part in zip(*found, strict=True))
            # The matches of one trigger may have come in several chunks.
            first = _first(ends, segments)
            limbs = np.zeros((len(first), 2), np.uint64)
            limbs[:, 0] = np.add.reduceat(counts, first)
            offsets = np.arange(len(first) + 1, dtype=np.int64)
            sink(Chunk(offsets, ends[first], np.zeros(len(first), np.uint16), segments[first], limbs))


def _first(ends: Array, segments: Array) -> Array:
    """Where a trigger begins, among matches in the order of their triggers."""
    return np.flatnonzero(np.concatenate([[True], (ends[1:] != ends[:-1]) | (segments[1:] != segments[:-1])]))


def _triggers(chunk: Chunk) -> tuple[Array, Array, Array]:
    """(end, segment, number of matches) of the triggers of a chunk that is not empty."""
    ends = chunk.positions[chunk.offsets[1:] - 1]
    first = _first(ends, chunk.segments)
    return ends[first], chunk.segments[first], np.diff(first, append=len(chunk)).astype(np.uint64)
