"""Where matches begin whose events begin earlier than they stand: a hidden mark there.

Comes in: chunks of matches, and where each event of the stream begins. Goes out: the same matches, each with its begin for its first mark; of those
that then are one, for the event that begins them is hidden, the first. All in columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cepheid.engine.evaluations.base import Chunk
from cepheid.engine.memory.pools import offsets_of
from cepheid.engine.run.having import distinct
from cepheid.logical.plan import BEGIN, Begin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cepheid.engine.memory.pools import Array

PLACE, TIME = (Begin.of(kind).path[0] for kind in ("place", "time"))
"""Columns that say where an event begins: its position in the partition, and its time."""

ROW, NUMBER = f"{BEGIN}row", f"{BEGIN}number"
"""The same for the stream as a whole: its row there, and its number among the events that came in."""


def begun(chunks: Iterator[Chunk], labels: Sequence[frozenset[str]], begins: Callable[[Chunk], Array]) -> Iterator[Chunk]:
    """The matches in some chunks, each from where it begins.

    labels: of the layout, one of them empty. begins: for each mark of a chunk the position where its event begins.
    """
    hidden = list(labels).index(frozenset())
    found = (_from_begin(chunk, begins(chunk), hidden) for chunk in chunks if len(chunk))
    # Events that are hidden may differ where nothing that is shown does.
    shown = np.array([number if label else -1 for number, label in enumerate(labels)], np.int64)
    return (chunk for chunk in distinct(found, shown) if len(chunk))


def _from_begin(chunk: Chunk, begins: Array, hidden: int) -> Chunk:
    """All events of a match begin where it begins or later. Those inside that are hidden have said so, and go."""
    starts = np.minimum.reduceat(begins, chunk.offsets[:-1])
    earlier = starts < chunk.starts
    ends = np.zeros(len(chunk.positions), np.bool_)
    ends[chunk.offsets[:-1]] = ends[chunk.offsets[1:] - 1] = True
    kept = ends | (chunk.labels != hidden)
    lengths = np.add.reduceat(kept, chunk.offsets[:-1], dtype=np.int64) + earlier
    offsets = offsets_of(lengths)
    own = np.ones(int(offsets[-1]), np.bool_)
    own[offsets[:-1][earlier]] = False
    positions, labels = np.empty(len(own), chunk.positions.dtype), np.full(len(own), hidden, chunk.labels.dtype)
    positions[own], labels[own] = chunk.positions[kept], chunk.labels[kept]
    positions[~own] = starts[earlier]
    return Chunk(offsets, positions, labels, chunk.segments)
