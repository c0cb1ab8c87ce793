"""The places of the states and edges of a drawing: a small layered layout, left to right.

Comes in: how large each state and each edge's label is. Goes out: points. The method is the usual one of layered drawing (Sugiyama, Tagawa, Toda,
"Methods for visual understanding of hierarchical system structures", 1981): back edges are turned, states get the layer of their longest way from the
start, every edge passes each column between its ends through a slot of its own, slots are ordered by the barycentre of their neighbours and moved
close to it. States are in even columns, and labels are slots of odd columns; edges are horizontal within a column and bend between columns. So
labels, states and edges cannot overlap, except for edges that cross between columns. What is too wide goes on below (`bands`).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cepheid.records import record
from cepheid.viz.bands import ASIDE, GUTTER, LANE, bands, gutter, side

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

COLUMN_GAP = 26.0
"""Space between two columns, in which edges bend."""

SLOT_GAP = 14.0
"""Vertical space between two slots of a column."""

SWEEPS = 24
"""How often slots are ordered, and how often they are moved: each sweep goes once forward and once back."""

MOST_STEPS = 40_000
"""Slots times sweeps: large drawings get fewer sweeps, at least two."""

STRAIGHT = 8.0
"""How much more it counts that a long edge is straight than that a state stands amid its neighbours."""


@record
class Size:
    """What a slot takes: width, and height above and below the line that edges meet."""

    width: float
    above: float
    below: float


@record
class Edge:
    """An edge between two different states, and the size of its label."""

    source: int
    target: int
    label: Size


@record
class Bend:
    """A stretch that an edge passes horizontally: from (left, y) to (right, y), in a band by number."""

    left: float
    right: float
    y: float
    band: int = 0


@record
class Carry:
    """How an edge goes from one band to the next: down at x = `right`, back at y = `gutter`, down at x = `left`."""

    right: float
    gutter: float
    left: float


@record(slots=False)
class Placed:
    """The layout.

    width, height: of everything; the least x and y are 0. states: the middle of each state. columns: the column of each state, as a stretch through
    its middle. routes: for each edge the stretches from its left state to its right state. labels: the index in the route of its label's stretch.
    turned: the edges that run from right to left. carries: by edge and the band that it leaves.
    """

    width: float
    height: float
    states: tuple[tuple[float, float], ...]
    columns: tuple[Bend, ...]
    routes: tuple[tuple[Bend, ...], ...]
    labels: tuple[int, ...]
    turned: frozenset[int]
    carries: Mapping[tuple[int, int], Carry] = field(default_factory=dict)


@dataclass
class Slot:
    """A place in a column: a state, or where an edge passes."""

    column: int
    size: Size
    left: list[tuple[int, float]] = field(default_factory=list)
    right: list[tuple[int, float]] = field(default_factory=list)
    y: float = 0.0


def place(states: Sequence[Size], edges: Sequence[Edge], *, start: int = 0, limit: float = math.inf) -> Placed:
    """The layout of states (by number) and edges; `start` stands in the first column. limit: the width from which on it goes on below.

    Edges from a state to itself have no place here: their space is part of the state's size. Time O(S log S) per sweep, S slots: states
    plus, for each edge, two per layer that it spans.
    """
    turned = back_edges(len(states), edges, start)
    ends = [(edge.target, edge.source) if index in turned else (edge.source, edge.target) for index, edge in enumerate(edges)]
    layer = layers(len(states), ends)
    slots = [Slot(2 * layer[state], size) for state, size in enumerate(states)]
    chains = [_chain(slots, source, target, edge.label) for edge, (source, target) in zip(edges, ends, strict=True)]
    columns = _ordered(slots)
    _move(slots, columns)
    ways = [[source, *chain, target] for (source, target), (chain, _) in zip(ends, chains, strict=True)]
    return _Geometry(slots, columns, ways, limit).placed(len(states), tuple(label for _, label in chains), turned)


def back_edges(states: int, edges: Sequence[Edge], start: int) -> frozenset[int]:
    """The edges that close a cycle on a depth-first walk from `start` (then from every state not reached): without them there is none."""
    outgoing: list[list[int]] = [[] for _ in range(states)]
    for index, edge in enumerate(edges):
        outgoing[edge.source].append(index)
    turned: set[int] = set()
    entered, left = [False] * states, [False] * states
    for root in (start, *range(states)):
        if entered[root]:
            continue
        entered[root] = True
        walk = [(root, iter(outgoing[root]))]
        while walk:
            state, rest = walk[-1]
            following = next(rest, None)
            if following is None:
                left[state] = True
                walk.pop()
                continue
            target = edges[following].target
            if not entered[target]:
                entered[target] = True
                walk.append((target, iter(outgoing[target])))
            elif not left[target]:
                turned.add(following)
    return frozenset(turned)


def layers(states: int, ends: Iterable[tuple[int, int]]) -> list[int]:
    """For each state the length of the longest way to it; `ends` has no cycle."""
    following: list[list[int]] = [[] for _ in range(states)]
    waiting = [0] * states
    for source, target in ends:
        following[source].append(target)
        waiting[target] += 1
    layer = [0] * states
    todo = [state for state in range(states) if not waiting[state]]
    while todo:
        state = todo.pop()
        for target in following[state]:
            layer[target] = max(layer[target], layer[state] + 1)
            waiting[target] -= 1
            if not waiting[target]:
                todo.append(target)
    return layer


def _chain(slots: list[Slot], source: int, target: int, label: Size) -> tuple[list[int], int]:
    """New slots for an edge from `source` to `target`, one in each column between them; its numbers, and which of them is the label's."""
    first, last = slots[source].column, slots[target].column
    # In the middle, but always in a column of labels.
    middle = (first + last) // 2 | 1
    chain: list[int] = []
    for column in range(first + 1, last):
        chain.append(len(slots))
        slots.append(Slot(column, label if column == middle else Size(0.0, 0.0, 0.0)))
    for before, after in zip([source, *chain], [*chain, target], strict=True):
        inner = before != source and after != target
        weight = STRAIGHT if inner else 1.0
        slots[before].right.append((after, weight))
        slots[after].left.append((before, weight))
    return chain, middle - first - 1


# --------------------------------------------------------------------------------------------------------------------------- order


def _sweeps(slots: Sequence[Slot]) -> int:
    return min(SWEEPS, max(2, MOST_STEPS // len(slots)))


def _ordered(slots: list[Slot]) -> list[list[int]]:
    """The columns, each from top to bottom, with few crossings: the best of the orders by barycentres."""
    columns: list[list[int]] = [[] for _ in range(1 + max(slot.column for slot in slots))]
    for number, slot in enumerate(slots):
        columns[slot.column].append(number)
    best, fewest = [list(column) for column in columns], crossings(slots, columns)
    for sweep in range(2 * _sweeps(slots)):
        forward = sweep % 2 == 0
        for index in range(1, len(columns)) if forward else range(len(columns) - 2, -1, -1):
            rank = {number: place for place, number in enumerate(columns[index - 1 if forward else index + 1])}
            columns[index] = _by_barycentre(slots, columns[index], rank, forward=forward)
        count = crossings(slots, columns)
        if count < fewest:
            best, fewest = [list(column) for column in columns], count
    return best


def _by_barycentre(slots: list[Slot], column: list[int], rank: Mapping[int, int], *, forward: bool) -> list[int]:
    def key(place: int) -> float:
        slot = slots[column[place]]
        near = [rank[number] for number, _ in (slot.left if forward else slot.right)]
        return sum(near) / len(near) if near else place

    return [column[place] for place in sorted(range(len(column)), key=key)]


def crossings(slots: Sequence[Slot], columns: Sequence[Sequence[int]]) -> int:
    """How many pairs of edges between neighbouring columns cross."""
    total = 0
    for column, after in itertools.pairwise(columns):
        rank = {number: place for place, number in enumerate(after)}
        ends = [rank[number] for slot in column for number in sorted((n for n, _ in slots[slot].right), key=rank.__getitem__)]
        total += _inversions(ends)
    return total


def _inversions(ranks: list[int]) -> int:
    """Pairs in the wrong order, by merging: O(n log n)."""
    if len(ranks) < 2:
        return 0
    middle = len(ranks) // 2
    left, right = ranks[:middle], ranks[middle:]
    total = _inversions(left) + _inversions(right)
    left.sort()
    right.sort()
    taken = 0
    for rank in right:
        while taken < len(left) and left[taken] <= rank:
            taken += 1
        total += len(left) - taken
    return total


# ----------------------------------------------------------------------------------------------------------------------- positions


def _move(slots: list[Slot], columns: Sequence[Sequence[int]]) -> None:
    """Give every slot its y: close to the barycentre of its neighbours, in its order, `SLOT_GAP` apart."""
    for column in columns:
        _settle(slots, column, [0.0] * len(column), [1.0] * len(column))
    for sweep in range(2 * _sweeps(slots)):
        for column in columns if sweep % 2 == 0 else reversed(columns):
            wanted, weights = [], []
            for number in column:
                near = slots[number].left + slots[number].right
                weight = sum(each for _, each in near)
                wanted.append(sum(slots[other].y * each for other, each in near) / weight if near else slots[number].y)
                weights.append(weight or 1.0)
            _settle(slots, column, wanted, weights)


def _settle(slots: list[Slot], column: Sequence[int], wanted: Sequence[float], weights: Sequence[float]) -> None:
    """The y nearest to those wanted (least squares) that keep order and distance: pool adjacent violators; linear."""
    shifts, shift = [], 0.0
    for place, number in enumerate(column):
        if place:
            shift += slots[column[place - 1]].size.below + SLOT_GAP + slots[number].size.above
        shifts.append(shift)
    blocks: list[tuple[float, float, int]] = []
    for value, distance, weight in zip(wanted, shifts, weights, strict=True):
        block = (value - distance, weight, 1)
        while blocks and blocks[-1][0] > block[0]:
            mean, heavy, count = blocks.pop()
            both = heavy + block[1]
            block = ((mean * heavy + block[0] * block[1]) / both, both, count + block[2])
        blocks.append(block)
    levels = [mean for mean, _, count in blocks for _ in range(count)]
    for number, level, distance in zip(column, levels, shifts, strict=True):
        slots[number].y = level + distance


class _Geometry:
    """The coordinates of slots whose y are known; ways: for each edge its slots, with those of its states at the ends."""

    def __init__(self, slots: list[Slot], columns: Sequence[Sequence[int]], ways: Sequence[list[int]], limit: float) -> None:
        self.slots = slots
        self.ways = ways
        sides, left = list[tuple[float, float]](), 0.0
        for column in columns:
            width = max(slots[number].size.width for number in column)
            sides.append((left, left + width))
            left += width + COLUMN_GAP
        crossing = [sum(len(slots[number].right) for number in column) for column in columns]
        self.bands = bands(sides, crossing, limit)
        self.band_of = [number for number, band in enumerate(self.bands) for _ in range(band.first, band.stop)]
        self.sides, self.down, self.bottoms, self.width, self.height = sides, list[float](), list[float](), 0.0, 0.0
        for number, band in enumerate(self.bands):
            self._set(number, [slots[each] for column in columns[band.first : band.stop] for each in column])

    def _set(self, number: int, inside: Sequence[Slot]) -> None:
        """Put the slots of a band below the bands before it."""
        band = self.bands[number]
        top = min(slot.y - slot.size.above for slot in inside)
        bottom = max(slot.y + slot.size.below for slot in inside)
        shift = side(band.entering) - self.sides[band.first][0]
        for column in range(band.first, band.stop):
            self.sides[column] = (self.sides[column][0] + shift, self.sides[column][1] + shift)
        self.height += gutter(band.entering) if number else 0.0
        self.down.append(self.height - top)
        self.height += bottom - top
        self.bottoms.append(self.height)
        self.width = max(self.width, self.sides[band.stop - 1][1] + side(band.leaving))

    def stretch(self, number: int) -> Bend:
        """A slot as what passes it."""
        slot = self.slots[number]
        band = self.band_of[slot.column]
        return Bend(*self.sides[slot.column], slot.y + self.down[band], band)

    def carries(self) -> dict[tuple[int, int], Carry]:
        """How edges go from band to band: above on the right is outermost there, lowest in the gutter, and innermost on the left."""
        found = {}
        for number, (band, after) in enumerate(itertools.pairwise(self.bands)):
            crossing = [
                (edge, self.stretch(pair[0]), self.stretch(pair[1]))
                for edge, way in enumerate(self.ways)
                for pair in itertools.pairwise(way)
                if self.slots[pair[0]].column == band.stop - 1 and self.slots[pair[1]].column == after.first
            ]
            leaving = sorted(crossing, key=lambda each: (each[1].y, each[2].y))
            entering = [each[0] for each in sorted(crossing, key=lambda each: (each[2].y, each[1].y))]
            right, left = self.sides[band.stop - 1][1], self.sides[after.first][0]
            top = self.bottoms[number] + GUTTER
            for rank, (edge, *_) in enumerate(leaving):
                inner = len(leaving) - 1 - rank
                found[edge, number] = Carry(right + ASIDE + LANE * inner, top + LANE * inner, left - ASIDE - LANE * entering.index(edge))
        return found

    def placed(self, states: int, labels: tuple[int, ...], turned: frozenset[int]) -> Placed:
        """The whole layout."""
        columns = tuple(map(self.stretch, range(states)))
        return Placed(
            self.width,
            self.height,
            tuple(((each.left + each.right) / 2, each.y) for each in columns),
            columns,
            tuple(tuple(map(self.stretch, way[1:-1])) for way in self.ways),
            labels,
            turned,
            self.carries(),
        )
