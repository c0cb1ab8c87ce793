"""The layered layout by itself."""

from __future__ import annotations

import itertools
import random

import pytest

from cepheid.viz.layout import SLOT_GAP, Edge, Size, back_edges, crossings, layers, place
from cepheid.viz.layout import Slot as LayoutSlot

LABEL = Size(30, 12, 3)


def edges_of(pairs: list[tuple[int, int]]) -> list[Edge]:
    return [Edge(source, target, LABEL) for source, target in pairs]


@pytest.mark.parametrize(
    ("states", "pairs", "turned"),
    [
        (3, [(0, 1), (1, 2)], set()),
        (3, [(0, 1), (1, 2), (2, 0)], {2}),
        (3, [(0, 1), (1, 2), (2, 1), (0, 2)], {2}),
        (2, [(1, 0)], set()),
    ],
)
def test_back_edges(states: int, pairs: list[tuple[int, int]], turned: set[int]) -> None:
    assert back_edges(states, edges_of(pairs), 0) == turned


def test_layers_are_longest_ways() -> None:
    assert layers(5, [(0, 1), (1, 2), (0, 2), (2, 3)]) == [0, 1, 2, 3, 0]


def test_crossings_are_counted() -> None:
    slots = [LayoutSlot(0, LABEL) for _ in range(2)] + [LayoutSlot(1, LABEL) for _ in range(2)]
    slots[0].right.append((3, 1.0))
    slots[1].right.append((2, 1.0))
    assert crossings(slots, [[0, 1], [2, 3]]) == 1
    assert crossings(slots, [[0, 1], [3, 2]]) == 0


def test_a_chain_is_a_straight_line() -> None:
    placed = place([Size(40, 20, 20)] * 5, edges_of([(state, state + 1) for state in range(4)]))
    assert len({round(y, 6) for _, y in placed.states}) == 1
    assert [x for x, _ in placed.states] == sorted(x for x, _ in placed.states)


@pytest.mark.parametrize("seed", range(30))
def test_slots_of_a_column_keep_their_distance(seed: int) -> None:
    chance = random.Random(seed)
    states = chance.randint(1, 12)
    sizes = [Size(40, chance.choice([20, 60]), chance.choice([20, 40])) for _ in range(states)]
    pairs = [(chance.randrange(states), chance.randrange(states)) for _ in range(chance.randint(0, 20))]
    edges = edges_of([(source, target) for source, target in pairs if source != target])
    placed = place(sizes, edges)
    taken = [
        (placed.columns[state].left, y - size.above, y + size.below)
        for state, ((_, y), size) in enumerate(zip(placed.states, sizes, strict=True))
    ]
    for number, route in enumerate(placed.routes):
        for index, bend in enumerate(route):
            label = placed.labels[number] == index
            taken.append((bend.left, bend.y - (LABEL.above if label else 0), bend.y + (LABEL.below if label else 0)))
    for left in {column for column, _, _ in taken}:
        rows = sorted((top, bottom) for column, top, bottom in taken if column == left)
        assert all(above[1] + SLOT_GAP <= below[0] + 1e-6 for above, below in itertools.pairwise(rows))
