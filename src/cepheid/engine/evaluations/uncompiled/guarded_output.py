"""What a trigger gives: paths of the match graph as the matches that SELECT shows, each once; those that NXT, LAST or MAX choose; chunks of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cepheid.automata.transition import HIDDEN
from cepheid.engine.evaluations.base import Chunk
from cepheid.engine.evaluations.graph.match import CHUNK_MATCHES, CHUNK_POSITIONS
from cepheid.engine.evaluations.spread import spread
from cepheid.engine.evaluations.uncompiled.guarded_choice import Best, Count
from cepheid.engine.evaluations.uncompiled.guarded_graph import cells, paths
from cepheid.engine.evaluations.uncompiled.guarded_maximal import Maximal
from cepheid.engine.output.exact_counts import from_integers
from cepheid.errors import LimitError
from cepheid.language.syntax import Strategy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cepheid.automata.program import ChoiceProgram, Program
    from cepheid.engine.evaluations.uncompiled.guarded_graph import Cell, Node, Steps

Array = np.ndarray[Any, Any]

DISTINCT_LIMIT = 1 << 20
"""Matches of one trigger that are kept to tell them apart, where one may be found in several ways."""

Found = tuple[tuple[int, ...], tuple[int, ...]]
"""A match: its positions, ascending, and their labels. With COUNT(*), the event of a trigger."""


class Shown:
    """The matches of a program as SELECT shows them."""

    def __init__(self, program: Program) -> None:
        self._program = program
        labels = zip(program.shown, program.automaton.labels, strict=True)
        self._stays = [bool(program.label_sets[shown]) or HIDDEN in parts for shown, (_, parts) in labels]

    def match(self, path: list[Cell]) -> Found:
        """What a match shows of its cells, the last event first; events inside that it hides are not in it."""
        kept = [cell for place, cell in enumerate(reversed(path)) if place in {0, len(path) - 1} or self._stays[cell.label]]
        return tuple(cell.position for cell in kept), tuple(self._program.shown[cell.label] for cell in kept)


class Distinct:
    """Matches of one trigger that have been given, where one may be found in several ways."""

    def __init__(self) -> None:
        self._seen: set[Found] = set()

    def __len__(self) -> int:
        return len(self._seen)

    def add(self, match: Found) -> bool:
        """Whether a match was not given before; raises LimitError past DISTINCT_LIMIT."""
        if match in self._seen:
            return False
        if len(self._seen) == DISTINCT_LIMIT:
            raise LimitError(
                f"an event completes more than {DISTINCT_LIMIT} matches, each of which may be found in several ways (DISTINCT_LIMIT)",
                help="choose by LIMIT, NXT or LAST, or bound matches by a smaller window",
            )
        self._seen.add(match)
        return True


def chosen_paths(program: ChoiceProgram, root: Node, low: int, steps: Steps) -> Iterator[list[Cell]]:
    """The matches in a heap that the strategy chooses, as `paths` gives them. O(r log n), r = cells that it reaches; MAX: as `Maximal`."""
    shown = [bool(mark) for mark, _ in program.automaton.labels]
    if program.strategy is Strategy.MAX:
        return paths(Maximal(root, low, steps, shown=shown).after)
    return paths(Best(root, low, steps, strategy=program.strategy, shown=shown).after)


class Output:
    """Matches, or counts of them, that are put together as a chunk."""

    def __init__(self, *, counts: bool) -> None:
        self._counting = counts
        self._start()

    def _start(self) -> None:
        self._counts: list[int] = []
        self._offsets = [0]
        self._positions: list[int] = []
        self._labels: list[int] = []
        self.segments: list[int] = []

    @property
    def is_full(self) -> bool:
        """Whether it is to be taken before another match is added."""
        return len(self.segments) >= CHUNK_MATCHES or len(self._positions) >= CHUNK_POSITIONS

    def add(self, match: Found, segment: int, count: int) -> None:
        """Add a match of a segment; count: kept with COUNT(*) alone."""
        positions, labels = match
        self._positions += positions
        self._labels += labels
        self._offsets.append(len(self._positions))
        self.segments.append(segment)
        if self._counting:
            self._counts.append(count)

    def taken(self) -> Chunk:
        """What has been added, as a chunk."""
        found = Chunk(
            np.array(self._offsets, np.int64),
            np.array(self._positions, np.int64),
            np.array(self._labels, np.uint16),
            np.array(self.segments, np.int32),
            from_integers(self._counts) if self._counting else None,
        )
        self._start()
        return found


def sampled(root: Node, low: int, steps: Steps, *, sample: int, position: int) -> Iterator[list[Cell]]:
    """Matches that end in the cells of a heap, as `walk` gives them: those that `spread` says, or all if they are not more than the sample.

    O(cells and heap nodes that are reached) to count, as `Fold`; then those are walked that are given, and what stands beside them is passed.
    """
    counts = Count(root, low, steps)
    places = spread(counts.total, sample, position) if counts.total > sample else iter(range(counts.total))
    here = next(places)
    left = here  # matches that are passed before the next one is given

    def after(path: list[Cell]) -> Iterator[Cell]:
        nonlocal left
        for cell in cells(path[-1].child if path else root, low, steps):
            count = counts.of[id(cell)]
            if count <= left:
                left -= count
            else:
                yield cell

    for path in paths(after):
        yield path
        following = next(places, None)
        if following is None:
            return
        here, left = following, following - here - 1
