"""The match graph of automata with guards: cells, persistent heaps of them, stretches of rings, and the walk over its matches.

A `Cell` is a marked event at the end of some partial matches. What it goes on from is a `Node`, the top of a persistent leftist heap by greatest
start; a node holds a cell, or a `Stretch`: a range of the entries of a `Ring`, perhaps only those whose value passes a test. Rings only grow, and
nothing else is ever changed, so that cells and heaps are shared. A node whose key is before the least start that counts has nothing live below it:
the walk stops there.

All walks go by falling keys (greatest start, serial number of the cell), which are all different in a partition. So the order of matches, and what a
LIMIT chooses, depend on the stream alone, not on how heaps came about.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Key = tuple[int, int]
"""Greatest start of the matches below, and the serial number of the cell that has it."""

PASSES: dict[str, Callable[[Any, Any, Any], bool]] = {
    "<": lambda least, _, value: least < value,
    "<=": lambda least, _, value: least <= value,
    ">": lambda _, greatest, value: greatest > value,
    ">=": lambda _, greatest, value: greatest >= value,
    "!=": lambda least, greatest, value: least != value or greatest != value,
}
"""Whether some key from `least` to `greatest`, both of which are there, compares so with a value."""


class Steps:
    """What an evaluation has done, for tests of its growth. index: operations on indexes; melds: steps of uniting heaps."""

    __slots__ = ("index", "melds")

    def __init__(self) -> None:
        self.index = 0
        self.melds = 0


Times = tuple[int, int, int]
"""What a cell knows of its event beside its position."""


class Cell:
    """A marked event at the end of partial matches (name in paper: output node).

    child: what they go on from, None where the match begins. times: of the event, and where it begins; and what
    `Automaton.begins` says of it, 0 where that is not asked.
    """

    __slots__ = ("child", "key", "label", "position", "times")

    def __init__(self, serial: int, position: int, label: int, child: Node | None, times: Times) -> None:
        self.key: Key = (position if child is None else child.key[0], serial)
        self.position = position
        self.label = label
        self.child = child
        self.times = times


class Node:
    """A leftist heap (name in paper: union node): its greatest key, what has it, and the other heaps below. rank: length of the right spine."""

    __slots__ = ("key", "left", "rank", "right", "what")

    def __init__(self, key: Key, what: Cell | Stretch, left: Node | None = None, right: Node | None = None) -> None:
        self.key = key
        self.what = what
        self.left = left
        self.right = right
        self.rank: int = 1 + (right.rank if right is not None else 0)


class Ring:
    """Entries by ascending keys, the newest last; each is a heap. tree: of the values by which the entries are asked, if there is a test."""

    __slots__ = ("entries", "tree")

    def __init__(self, tree: Tree | None = None) -> None:
        self.entries: list[Node] = []
        self.tree = tree


class Stretch:
    """Entries newest, newest - 1 .. oldest of a ring; operator: only those whose value in the tree compares so with `value`.

    The newest one passes.
    """

    __slots__ = ("newest", "oldest", "operator", "ring", "value")

    def __init__(self, ring: Ring, newest: int, oldest: int, *, operator: str = "", value: object = None) -> None:
        self.ring = ring
        self.newest = newest
        self.oldest = oldest
        self.operator = operator
        self.value = value

    @property
    def node(self) -> Node:
        """A heap of it alone."""
        return Node(self.ring.entries[self.newest].key, self)

    def entries(self, steps: Steps) -> Iterator[int]:
        """The numbers of its entries, newest first; O(log n) from one to the next where there is a test, else O(1)."""
        tree = self.ring.tree
        if tree is None or not self.operator:
            yield from range(self.newest, self.oldest - 1, -1)
            return
        place = self.newest
        while place >= self.oldest:
            yield place
            place = tree.newest(place - 1, self.operator, self.value, steps)


class Tree:
    """The least and the greatest value of each complete block of 2^k entries of a ring."""

    __slots__ = ("levels",)

    def __init__(self) -> None:
        self.levels: list[list[tuple[Any, Any]]] = [[]]

    def append(self, value: Any) -> None:
        """The value of the next entry. O(1) amortized."""
        block, level = (value, value), 0
        while True:
            if level == len(self.levels):
                self.levels.append([])
            blocks = self.levels[level]
            blocks.append(block)
            if len(blocks) % 2:
                return
            (least, greatest), (more, most) = blocks[-2:]
            block, level = (min(least, more), max(greatest, most)), level + 1

    def newest(self, place: int, operator: str, value: Any, steps: Steps) -> int:
        """The last entry up to `place` whose value compares so with `value`, -1 if there is none. O(log n)."""
        passes = PASSES[operator]
        while place >= 0:
            level, end = 0, place + 1
            # The largest complete block that ends here and has none is left out as a whole.
            while not passes(*self.levels[level][(end >> level) - 1], value):
                steps.index += 1
                if (end >> level) % 2 or level + 1 == len(self.levels):
                    place -= 1 << level
                    break
                level += 1
            else:
                while level:
                    level -= 1
                    steps.index += 1
                    if not passes(*self.levels[level][(place + 1 >> level) - 1], value):
                        place -= 1 << level
                return place
        return -1


def meld(one: Node | None, other: Node | None, steps: Steps) -> Node | None:
    """The union of two heaps, which stay as they are. O(log n)."""
    if one is None:
        return other
    if other is None:
        return one
    steps.melds += 1
    if one.key < other.key:
        one, other = other, one
    left, right = one.left, meld(one.right, other, steps)
    if left is None or (right is not None and left.rank < right.rank):
        left, right = right, left
    return Node(one.key, one.what, left, right)


def united(nodes: Iterable[Node], steps: Steps) -> Node | None:
    """The union of heaps."""
    found: Node | None = None
    for node in nodes:
        found = meld(found, node, steps)
    return found


def cells(node: Node | None, low: int, steps: Steps) -> Iterator[Cell]:
    """The cells of a heap whose greatest start is not before `low`, by falling keys. O(log of those that are waiting) each."""
    # Keys of cells are different. What stands for a cell, a stretch or an entry, has its key.
    waiting: list[tuple[int, int, int, Node | tuple[Stretch, Iterator[int]]]] = []
    tie = 0

    def add(part: Node | tuple[Stretch, Iterator[int]], key: Key) -> None:
        nonlocal tie
        if key[0] >= low:
            tie += 1
            heapq.heappush(waiting, (-key[0], -key[1], tie, part))

    if node is not None:
        add(node, node.key)
    while waiting:
        *_, part = heapq.heappop(waiting)
        if isinstance(part, Node):
            what = part.what
            for below in (part.left, part.right):
                if below is not None:
                    add(below, below.key)
            if isinstance(what, Cell):
                yield what
                continue
            part = (what, what.entries(steps))
        stretch, walk = part
        place = next(walk, None)
        if place is not None:
            entry = stretch.ring.entries[place]
            add(entry, entry.key)
            # What follows has a lesser key than this entry: it waits under the entry's own.
            add(part, entry.key)


def walk(node: Node | None, low: int, steps: Steps) -> Iterator[list[Cell]]:
    """The matches that end in the cells of a heap, as `paths` gives them.

    Every cell that is visited is part of a match; a stretch with a test adds O(log n) integer operations for each.
    """
    return paths(lambda path: cells(path[-1].child if path else node, low, steps))


def paths(after: Callable[[list[Cell]], Iterator[Cell]]) -> Iterator[list[Cell]]:
    """Matches, for each its cells, the last event first. The list is reused, and must not be kept.

    after: the cells that may go on a path, for matches that have been chosen; those of the empty path end matches.
    """
    path: list[Cell] = []
    levels = [after(path)]
    while levels:
        cell = next(levels[-1], None)
        del path[len(levels) - 1 :]
        if cell is None:
            levels.pop()
            continue
        path.append(cell)
        if cell.child is None:
            yield path
        else:
            levels.append(after(path))


def by_key(cell: Cell) -> Key:
    """The order of cells, see above."""
    return cell.key
