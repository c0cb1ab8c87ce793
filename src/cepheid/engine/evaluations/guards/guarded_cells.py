"""The cells of the kernel of guards as columns, and what is asked of those of a snapshot: the kernel follows their links, and does not look.

Whatever a forged state says, links lead to cells that are there, and never round: they fall by (position, start, number). Where there are parts, by
the position at which a cell was made, for copies are of earlier events; those that were made at one event by their numbers alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cepheid.automata.program import NextProgram
from cepheid.engine.evaluations.guards.guarded_tables import CELL, FORM_BITS, LABELS, MACRO_BITS, MACROS_MASK, NODE, TIMED_STAMPS, UNMARKED
from cepheid.engine.memory.checks import demand, inside

if TYPE_CHECKING:
    from cepheid.engine.evaluations.guards.guarded_tables import GuardTables

Array = np.ndarray[Any, Any]

HEIGHT_BITS, HEIGHT_MASK, HEIGHTS = 1, 63, 60
"""Where the form of a node has the height of its tree, in bits; and how many heights there are."""


class _Links:
    """The cells of all partitions, and where their links lead."""

    def __init__(self, cells: Array, owner: Array, head: Array, tail: Array, tables: GuardTables) -> None:
        self.cells = cells
        self._events = self.column("position")
        self._starts = self.column("start")
        self._own = np.ones(len(cells), np.int64)
        if tables.program.automaton.parts or tables.timely:
            own = cells[:, tables.first_node - 3] if isinstance(tables.program, NextProgram) else self._events
            self._events = cells[:, tables.first_node - 2]
            self._own = (own == self._events).astype(np.int64)
            self._starts = self._starts * self._own
        first = np.cumsum(tail - head) - (tail - head)
        self._head, self._tail = head[owner], tail[owner]
        self._place = first[owner] - self._head  # what a number needs to be an index
        self.number = np.arange(len(cells)) - self._place

    def column(self, name: str) -> Array:
        """A word of each cell."""
        found: Array = self.cells[:, CELL.index(name)]
        return found

    def followed(self, link: Array) -> tuple[Array, Array]:
        """(cells, cells): those whose link leads to a cell that is not freed, and where it leads; by index.

        Raises ValueError for a link past the newest cell, or to one that is not less.
        """
        demand(inside(link, -1, self._tail))
        here = np.flatnonzero(link >= self._head)
        there = link[here] + self._place[here]
        falls: Array = self.number[there] < self.number[here]
        for column in (self._starts, self._own, self._events):
            falls = (column[there] < column[here]) | ((column[there] == column[here]) & falls)
        demand(falls)
        return here, there


def check(cells: Array, owner: Array, rings: Array, newest: Array, tables: GuardTables) -> None:
    """Raise ValueError unless the cells of each partition, oldest first, are such that the kernel stays inside and comes to an end.

    cells: int64, (n, width). owner: of each its partition. rings: of each partition (number of its first cell, of the next one). newest: int64,
    (partitions, macro states x indexes), the newest entry of each.
    """
    head, tail = rings.T
    links = _Links(cells, owner, head, tail, tables)
    position, kind = links.column("position"), links.column("kind")
    macro, form = (kind >> MACRO_BITS & MACROS_MASK) - 1, kind >> FORM_BITS
    if tables.earlier:
        demand(inside(cells[:, tables.first_node - TIMED_STAMPS - 1], 0, position + 1))
    demand(
        inside(links.column("start"), 0, position + 1),
        inside(np.where(kind & LABELS == UNMARKED, 0, kind & LABELS), 0, len(tables.program.automaton.labels)),
        inside(macro, -1, len(tables.macros)),
        inside(links.column("child"), -1, links.number),
        inside(form, 0, len(tables.forms)),
    )
    passing = kind & LABELS == UNMARKED
    demand(tables.passes | ~passing, (macro >= 0) | ~passing, (links.column("child") >= 0) | ~passing)
    index = np.array([place for place, _ in tables.forms])[form]
    here, there = links.followed(np.where(macro >= 0, links.column("rest"), -1))
    # Copies in a chain may be of several events, and come from several macro states, for they are in none.
    demand((position[here] == position[there]) & (macro[here] == macro[there]) | bool(tables.program.automaton.parts))
    demand(inside(newest, -1, tail[:, None]))
    lists = newest.reshape(len(tail), len(tables.macros), tables.most_shapes)
    listings: list[Array] = []
    for place in range(tables.most_shapes):
        first = tables.first_node + tables.node_width * place
        listed = _check_nodes(links, macro >= 0, first)
        listings.append(listed)
        outer = tables.outer[:, place]
        for other in np.unique(outer[outer >= 0]).tolist():
            grouped = (macro >= 0) & (outer[macro] == other)
            demand(listings[other][grouped] == listed[grouped])
            here, there = links.followed(np.where(grouped & listed, cells[:, first + tables.node_width - 2], -1))
            demand(listed[there], macro[here] == macro[there])
        here, there = links.followed(np.where(index == place, links.column("child"), -1))
        # Where what is next is found, positions are those of times. What copies go on from is no list.
        demand(listed[there], (position[there] < position[here]) | (tables.timely & (position[there] == position[here])))
        partition, number = np.nonzero(lists[:, :, place] >= head[:, None])
        there = (np.cumsum(tail - head) - tail)[partition] + lists[partition, number, place]
        demand(listed[there], macro[there] == number)


def _check_nodes(links: _Links, entered: Array, first: int) -> Array:
    """The same for the nodes of one index, whose words begin at `first`; entered: which cells are in macro states.

    Which are in a list: bool.
    """
    previous, jump, best, form = (links.cells[:, first + NODE.index(name)] for name in ("previous", "jump", "best", "form"))
    listed = entered & (form >= 0)
    height = np.where(listed, form >> HEIGHT_BITS & HEIGHT_MASK, -1)
    demand(inside(best[listed], -1, links.number[listed] + 1))
    demand(height < HEIGHTS, np.int64(1) << np.maximum(height, 0) <= links.number + 1)
    jump = np.where(listed, jump, -1)
    over, beyond = links.followed(jump)
    # Trees grow along a list, but for the first two: there are few.
    demand(height[beyond] >= height[over])
    after = np.full(len(height), HEIGHTS)
    after[over] = height[beyond]
    demand((after[over] > height[over]) | (after[beyond] > height[beyond]))
    here, there = links.followed(np.where(listed, previous, -1))
    demand(listed[there], listed[beyond], (jump == previous) | (height > 0) | ~listed)
    # A tree has two of the next height below, as far as they are not freed.
    tall = height[here] > 0
    demand(height[there[tall]] == height[here[tall]] - 1)
    right = np.full(len(height), -1)
    right[over] = beyond
    both = right[there[tall]] >= 0
    demand(height[right[there[tall]][both]] == height[here[tall][both]] - 1, jump[right[there[tall]][both]] == jump[here[tall][both]])
    return listed
