"""`ChosenCount`: COUNT(*) under NXT, LAST or MAX. The chosen matches of each trigger are enumerated, and counted as they come.

NXT and LAST choose few, so there is nothing to save; where MAX keeps many, this is as slow as giving them. All other queries are counted without
enumeration, by `cepheid.engine.evaluations.counts.counting`.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from cepheid.engine.evaluations.base import Around, Chunk, collect
from cepheid.engine.evaluations.counts.listed import bounded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cepheid.engine.evaluations.events import Events


class ChosenCount(Around):
    """An evaluation that gives the number of its matches per trigger instead of them; the same interface, chunks as of `Counting`."""

    def chunks(self, events: Events) -> Iterator[Chunk]:
        """Read a batch, as `Evaluation.chunks`; one chunk at most. Raises LimitError past MAX_LISTED."""
        found = [counted(chunk) for chunk in bounded(self.evaluation.chunks(events))]
        if found:
            # The matches of one trigger may have come in several chunks.
            triggers = collect(found)
            first = triggers.triggers
            once, counts = triggers.take(first), triggers.counts
            assert counts is not None
            yield dataclasses.replace(once, counts=np.add.reduceat(counts, first))


def counted(chunk: Chunk) -> Chunk:
    """One match of one mark for each trigger of a chunk: its event, and the number of its matches."""
    first = chunk.triggers
    limbs = np.zeros((len(first), 2), np.uint64)
    limbs[:, 0] = np.diff(first, append=len(chunk))
    offsets = np.arange(len(first) + 1, dtype=np.int64)
    return Chunk(offsets, chunk.ends[first], np.zeros(len(first), np.uint16), chunk.segments[first], limbs)
