"""What may be next inside the pattern under ACTIVE_OFFICE and COMPLETE_HISTORY, by the kernel of guards: a run of the right side of THEN by itself.

Comes in: what `GuardedRun` reads, the events of a time together. Goes out: fronts, see `cepheid.kernel._guards_next`: in the place of positions stand
the first ones of their times. Of each partition and time they come in the order in which they begin.
"""

from __future__ import annotations

import itertools
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from cepheid.engine.evaluations.base import Chunk, by_trigger
from cepheid.engine.evaluations.guards.guarded_run import NEXT, GuardedRun
from cepheid.engine.memory.pools import offsets_of
from cepheid.logical.plan import Derived

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cepheid.automata.program import NextProgram
    from cepheid.engine.evaluations.events import Events
    from cepheid.engine.evaluations.guards.guarded_run import GuardSizes
    from cepheid.engine.memory.pools import Array


class NextRun(GuardedRun):
    """The run state of what may be next; the interface is that of `Evaluation`.

    Update: as `GuardedRun`. Per trigger, r cells that it reaches which begin behind what has ended before: O(r log r); COMPLETE_HISTORY: O(r) for
    each time of each front. Each start is given at one time alone.
    """

    _counting = NEXT

    def __init__(self, program: NextProgram, *, sizes: GuardSizes | None = None, **bounds: Any) -> None:
        super().__init__(program, sizes=sizes, **bounds)
        self._labels = np.arange(2, dtype=np.uint16)  # they say something else, see `give_next`
        self.histories = program.histories
        self._set("histories", program.histories)
        self._set("apart", program.histories or program.everywhere)
        self._set("floor", self.tables.columns[program.ended])
        self._set("says", self._get("begins"))

    def _is_shown_twice(self) -> bool:
        return False


def firsts_of(events: Events) -> Array:
    """Of each event the place of the first one of its time in its partition; the events of a time are in one batch (int64). Linear."""
    assert events.values is not None
    places = events.values.words[:, events.values.layout.places[Derived("place")].start].view(np.int64)
    rows = by_partition(events)
    if rows is not None:
        owners = np.repeat(events.slots, np.diff(events.cuts, append=len(events)))[rows]
        new = np.concatenate([np.ones(min(1, len(rows)), np.bool_), (np.diff(owners) != 0) | (np.diff(events.times[rows]) != 0)])
    else:
        new = np.diff(events.times, prepend=0) != 0
        new[events.cuts[events.cuts < len(events)]] = True
        rows = np.arange(len(events))
    found: Array = np.empty(len(events), np.int64)
    found[rows] = places[rows[np.maximum.accumulate(np.where(new, np.arange(len(events)), 0))]]
    return found


def by_partition(events: Events) -> Array | None:
    """The rows of a batch by partition, in their order; None where each partition has one segment, as mostly."""
    kept = events.slots[events.slots >= 0]
    if len(kept) == len(events.slots) and len(kept) > 1 and len(np.unique(kept)) < len(kept):
        rows: Array = np.argsort(np.repeat(events.slots, np.diff(events.cuts, append=len(events))), kind="stable")
        return rows
    return None


def by_time(run: NextRun, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """The fronts of chunks, each once: by segment, time, and where they begin."""
    return (_joined(chunk, histories=run.histories) for chunk in by_trigger(chunks))


def _joined(chunk: Chunk, *, histories: bool) -> Chunk:
    if not chunk.labels.any():
        return chunk  # each time has one event that ends matches, its first one
    if not histories:
        found = np.unique(np.column_stack([chunk.segments, chunk.ends, chunk.starts]), axis=0)
        return _chunk(found[:, 0], np.full(len(found), 2), found[:, [2, 1]].reshape(-1))
    times = [tuple(own.tolist()) for own in np.split(chunk.positions, chunk.offsets[1:-1])]
    kept: list[tuple[int, tuple[int, ...]]] = []
    keys = zip(chunk.segments.tolist(), chunk.ends.tolist(), strict=True)
    for (segment, _), group in itertools.groupby(zip(keys, times, strict=True), key=itemgetter(0)):
        kept += [(segment, own) for own in foremost([own for _, own in group])]
    lengths = np.array([len(own) for _, own in kept], np.int64)
    return _chunk(np.array([segment for segment, _ in kept]), lengths, np.array([time for _, own in kept for time in own], np.int64))


def _chunk(segments: Array, lengths: Array, positions: Array) -> Chunk:
    return Chunk(offsets_of(lengths), positions, np.zeros(len(positions), np.uint16), segments.astype(np.int32))


def foremost(histories: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Of histories that end at one time those that are next after something, by where they begin. O(n log n) comparisons."""
    found: list[tuple[int, ...]] = []
    for times in sorted(histories, key=lambda each: (-each[0], each[::-1])):
        if not found or (times[0] < found[-1][0] and times[::-1] < found[-1][::-1]):
            found.append(times)
    return found[::-1]
