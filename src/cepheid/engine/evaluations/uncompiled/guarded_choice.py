"""COUNT(*), NXT and LAST over the cells that a trigger reaches, by dynamic programming instead of enumeration.

`Fold` gives each cell a value that is made of those of the cells it goes on from: how many matches end in it, or the best support among these. Cells
are taken in the order of their positions, so that no recursion is as deep as a match is long. Over a ring a tree of sums answers what a stretch
asks in O(log n). MAX is another construction over the same cells, `guarded_maximal`.
"""

from __future__ import annotations

import bisect
import functools
import itertools
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from cepheid.engine.evaluations.uncompiled.guarded_graph import Cell, Node, Ring, Stretch, by_key
from cepheid.language.syntax import Strategy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cepheid.engine.evaluations.uncompiled.guarded_graph import Steps

T = TypeVar("T")


class Fold(ABC, Generic[T]):
    """Values of the cells that a trigger reaches. low: the least start that counts.

    O(cells and heap nodes that are reached), and O(log n) for each stretch; a stretch with a test costs its length. Of a ring all entries between two
    that are reached count as reached.
    """

    def __init__(self, root: Node, low: int, steps: Steps) -> None:
        self._low = low
        self._steps = steps
        self._sums: dict[int, _Sums[T]] = {}
        self._below: dict[int, T] = {}
        self.of: dict[int, T] = {}
        cells = self._reached(root)
        # What a cell goes on from is at an earlier position; it may be a copy that was made later.
        for cell in sorted(cells, key=lambda cell: (cell.position, cell.key[1])):
            child = self.child(cell)
            self.of[id(cell)] = self.extended(cell, None if child is None else self.of_node(child))
        self.total = self.of_node(root)

    def child(self, cell: Cell) -> Node | None:
        """What a cell goes on from, as far as it counts here."""
        return cell.child

    @property
    @abstractmethod
    def nothing(self) -> T:
        """The value of no cells."""

    @abstractmethod
    def extended(self, cell: Cell, below: T | None) -> T:
        """The value of a cell, given that of what it goes on from; below: None where it begins."""

    @abstractmethod
    def added(self, one: T, other: T) -> T:
        """The value of two sets of cells together."""

    def united(self, values: Sequence[T]) -> T:
        """The value of several sets of cells together."""
        return functools.reduce(self.added, values, self.nothing)

    def _reached(self, root: Node) -> list[Cell]:
        found: dict[int, Cell] = {}
        seen: set[int] = set()
        todo: list[Node | None] = [root]
        while todo:
            node = todo.pop()
            if node is None or node.key[0] < self._low or id(node) in seen:
                continue
            seen.add(id(node))
            todo += (node.left, node.right)
            if isinstance(node.what, Cell):
                if id(node.what) not in found:
                    found[id(node.what)] = node.what
                    todo.append(self.child(node.what))
            else:
                ring = node.what.ring
                sums = self._sums.get(id(ring))
                if sums is None:
                    sums = self._sums[id(ring)] = _Sums(ring, self._low)
                todo += sums.reach(node.what.oldest, node.what.newest)
        return list(found.values())

    def of_node(self, root: Node) -> T:
        """The value of a heap, whose cells have theirs."""
        todo = [root]
        while todo:
            node = todo[-1]
            if id(node) in self._below:
                todo.pop()
                continue
            if node.key[0] < self._low:
                self._below[id(node)] = self.nothing
                continue
            missing = [each for each in (node.left, node.right) if each is not None and id(each) not in self._below]
            if missing:
                todo += missing
                continue
            self._steps.index += 1
            value = self.of[id(node.what)] if isinstance(node.what, Cell) else self._stretched(node.what)
            for each in (node.left, node.right):
                if each is not None:
                    value = self.added(value, self._below[id(each)])
            self._below[id(node)] = value
        return self._below[id(root)]

    def _stretched(self, stretch: Stretch) -> T:
        sums = self._sums[id(stretch.ring)]
        while sums.filled <= stretch.newest:
            sums.put(self.of_node(stretch.ring.entries[sums.filled]), self)
        if not stretch.operator:
            return sums.between(stretch.oldest, stretch.newest, self)
        places = itertools.takewhile(lambda place: place >= sums.first, stretch.entries(self._steps))
        return self.united([sums.values[place - sums.first] for place in places])


class _Sums(Generic[T]):
    """The values of the live entries of a ring from the oldest that is reached, and of blocks of 2^k of them, filled from that one on."""

    def __init__(self, ring: Ring, low: int) -> None:
        self._ring = ring
        self._live = bisect.bisect_left(ring.entries, low, key=lambda entry: entry.key[0])
        self.first = self._reached = len(ring.entries)
        self._levels: list[list[T]] = [[]]

    def reach(self, oldest: int, newest: int) -> list[Node]:
        """The live entries from one to another that have not been reached before, and what is between them and those that have."""
        entries, oldest = self._ring.entries, max(oldest, self._live)
        if self.first == len(entries):
            self.first = self._reached = oldest
        found = entries[oldest : self.first] + entries[self._reached : newest + 1]
        self.first, self._reached = min(self.first, oldest), max(self._reached, newest + 1)
        return found

    @property
    def filled(self) -> int:
        """The entry whose value is put next."""
        return self.first + len(self.values)

    @property
    def values(self) -> list[T]:
        """The value of each entry, from the first live one on."""
        return self._levels[0]

    def put(self, value: T, fold: Fold[T]) -> None:
        """The value of the next entry. O(1) amortized."""
        level = 0
        while True:
            if level == len(self._levels):
                self._levels.append([])
            blocks = self._levels[level]
            blocks.append(value)
            if len(blocks) % 2:
                return
            value, level = fold.added(blocks[-2], blocks[-1]), level + 1

    def between(self, oldest: int, newest: int, fold: Fold[T]) -> T:
        """The value of these entries together. O(log n)."""
        place, stop = max(oldest - self.first, 0), newest + 1 - self.first
        value = fold.nothing
        while place < stop:
            level = 0
            while not place >> level & 1 and place + (2 << level) <= stop:
                level += 1
            value = fold.added(value, self._levels[level][place >> level])
            place += 1 << level
        return value


class Count(Fold[int]):
    """How many matches end in each cell."""

    @property
    def nothing(self) -> int:
        """None."""
        return 0

    def extended(self, cell: Cell, below: int | None) -> int:
        """As many as it goes on from."""
        del cell
        return 1 if below is None else below

    def added(self, one: int, other: int) -> int:
        """Their sum."""
        return one + other


# ------------------------------------------------------------------------------------------------------------------- supports


class Supports:
    """Supports as nodes of a tree: the one before, and the last position; equal supports are one node. 0 is the empty one."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, int], int] = {}
        self.before = [0]
        self._last = [-1]
        self._length = [0]
        self._jump = [0]  # an ancestor further up, so that any ancestor is O(log n) steps away

    def extended(self, before: int, position: int) -> int:
        """A support with one more position."""
        found = self._numbers.get((before, position))
        if found is None:
            found = self._numbers[before, position] = len(self.before)
            jump = self._jump[before]
            length, above = self._length, self._jump[jump]
            self._jump.append(above if length[before] - length[jump] == length[jump] - length[above] else before)
            self.before.append(before)
            self._last.append(position)
            self._length.append(length[before] + 1)
        return found

    def positions(self, support: int) -> tuple[int, ...]:
        """The positions of a support, the last one first."""
        found = []
        while support:
            found.append(self._last[support])
            support = self.before[support]
        return tuple(found)

    def earlier(self, one: int, other: int) -> bool:
        """Whether the first position in which they differ is in the one (NXT). O(log of their length)."""
        if self._length[one] > self._length[other]:
            return not self.earlier(other, one)
        short, long = one, other
        while self._length[long] > self._length[short]:
            jump = self._jump[long]
            long = jump if self._length[jump] >= self._length[short] else self.before[long]
        if short == long:
            return False  # the other one goes on
        while self.before[short] != self.before[long]:
            if self._jump[short] != self._jump[long]:
                short, long = self._jump[short], self._jump[long]
            else:
                short, long = self.before[short], self.before[long]
        return self._last[short] < self._last[long]

    def later(self, one: int, other: int) -> bool:
        """Whether the last position in which they differ is in the one (LAST). O(their length), but O(1) where they end in different ones."""
        while one != other:
            if self._last[one] != self._last[other]:
                return self._last[one] > self._last[other]
            one, other = self.before[one], self.before[other]
        return False


Rope: TypeAlias = "Cell | tuple[Rope, ...]"
"""Some cells, put together in O(1); one may be there more than once."""


class Best(Fold[tuple[int, Rope]]):
    """The best support of NXT or LAST among the matches that end in each cell, as a number of `Supports`, -1 without any; and the cells that have it.

    shown: for each label whether a support has its events.
    """

    def __init__(self, root: Node, low: int, steps: Steps, *, strategy: Strategy, shown: Sequence[bool]) -> None:
        self._supports = Supports()
        self._wins = self._supports.earlier if strategy is Strategy.NXT else self._supports.later
        self._shown = shown
        self._next: dict[int, Rope] = {}
        super().__init__(root, low, steps)

    @property
    def nothing(self) -> tuple[int, Rope]:
        """No support."""
        return -1, ()

    def extended(self, cell: Cell, below: tuple[int, Rope] | None) -> tuple[int, Rope]:
        """The best below, with the cell's event."""
        before = 0
        if below is not None:
            before, self._next[id(cell)] = below
        return self._supports.extended(before, cell.position) if self._shown[cell.label] else before, cell

    def added(self, one: tuple[int, Rope], other: tuple[int, Rope]) -> tuple[int, Rope]:
        """The better one."""
        if one[0] < 0 or other[0] < 0:
            return max(one, other, key=_number)
        if one[0] == other[0]:
            return one[0], (one[1], other[1])
        return one if self._wins(one[0], other[0]) else other

    @property
    def support(self) -> tuple[int, ...]:
        """The best support of all, the last position first."""
        return self._supports.positions(self.total[0])

    def after(self, path: list[Cell]) -> Iterator[Cell]:
        """The cells with which a path goes on to matches with the best support, as for `paths`."""
        return iter(_cells(self._next[id(path[-1])] if path else self.total[1]))


def _number(best: tuple[int, Rope]) -> int:
    return best[0]


def _cells(rope: Rope) -> list[Cell]:
    """The cells of a rope, each once, by falling keys."""
    found: dict[int, Cell] = {}
    seen: set[int] = set()
    todo = [rope]
    while todo:
        part = todo.pop()
        if isinstance(part, Cell):
            found[id(part)] = part
        elif id(part) not in seen:
            seen.add(id(part))
            todo += part
    return sorted(found.values(), key=by_key, reverse=True)
