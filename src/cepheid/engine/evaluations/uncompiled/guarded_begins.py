"""Of the matches that end at an event the one that begins last, where any of its events may say where a match begins.

Comes in: events, each with the place where it begins (`Automaton.begins`). Goes out: of each event that ends a match where the one begins that begins
last: no match is listed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cepheid.engine.evaluations.uncompiled.guarded import Guarded
from cepheid.engine.evaluations.uncompiled.guarded_choice import Fold

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cepheid.engine.evaluations.uncompiled.guarded_graph import Cell, Node, Steps
    from cepheid.engine.evaluations.uncompiled.guarded_output import Found
    from cepheid.engine.evaluations.uncompiled.guarded_state import Partition


class LastBegin(Fold[int]):
    """Where the match begins that ends in each cell and begins last; -1 without any.

    says: by label, whether its event may say where a match begins.
    """

    def __init__(self, root: Node, low: int, steps: Steps, says: Sequence[bool]) -> None:
        self._says = says
        super().__init__(root, low, steps)

    @property
    def nothing(self) -> int:
        """No match."""
        return -1

    def extended(self, cell: Cell, below: int | None) -> int:
        """At the cell's event, if that begins earlier than the others do."""
        if below is None:
            return cell.times[2]
        return min(cell.times[2], below) if self._says[cell.label] else below

    def added(self, one: int, other: int) -> int:
        """The later one."""
        return max(one, other)


class GuardedBegins(Guarded):
    """The run state of a program in which any event of a match may say where it begins; the interface is that of `Guarded`.

    A trigger gives one match: from where the last one begins. O(cells and heap nodes that it reaches), whatever the limit. What cannot begin after
    that is given up, for only a match that begins later matters from then on.
    """

    _last = -1

    @property
    def _bounded(self) -> bool:
        return True

    def _triggered(self, partition: Partition, root: Node | None) -> Node | None:
        found = super()._triggered(partition, root)
        if found is not None:
            says = [bool(mark) for mark, _ in self.program.automaton.labels]
            self._last = LastBegin(found, partition.low, self.steps, says).total
            # A match begins where its first event stands, or before.
            partition.rise(max(partition.low, self._last + 1))
        return found

    def _given(self, root: Node, position: int) -> Iterator[tuple[Found, int]]:
        """Where the match begins that begins last, and the event that ends it; the labels say nothing."""
        del root
        yield ((self._last, position), (0, 0)), 1
