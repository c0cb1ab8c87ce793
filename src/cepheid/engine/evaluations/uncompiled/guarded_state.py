"""The state of partitions with guards: what is kept while they are open, and as sections of a snapshot.

A snapshot has the positions, the starts that may still begin a match, the entries of each macro state, and the match graph below them as a list of
things to make, each of which names only what was made before it: a forged one can be no circle. Indexes are not stored: they are made again when they
are asked.
"""

from __future__ import annotations

import gc
import json
import sys
from bisect import bisect_left, insort
from collections import deque
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from cepheid.automata.regions import Macro
from cepheid.engine.evaluations.uncompiled.guarded_graph import PASSES, Cell, Node, Ring, Steps, Stretch, Tree
from cepheid.engine.evaluations.uncompiled.guarded_indexes import Bank
from cepheid.engine.evaluations.uncompiled.guarded_values import Contents, restored, stored
from cepheid.engine.memory.checks import ascending, demand, inside, numbers, owners, rows_of
from cepheid.engine.memory.pools import NUMBER_LIMIT
from cepheid.engine.memory.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cepheid.automata.regions import Configuration, Regions
    from cepheid.engine.evaluations.uncompiled.guarded_values import Value
    from cepheid.engine.memory.stored import Stored

Array = np.ndarray[Any, Any]
T = TypeVar("T", Cell, Node, Ring)

SLOT_COLUMNS = ("slot", "position", "low", "starts", "entries")
ENTRY_COLUMNS = ("macro", "node")

CELL, NODE, OVER, RING, APPEND = range(5)
"""What the graph section makes: a cell (serial, position, label, child, times); a node of a cell (cell, left, right), or over a stretch (ring,
newest, oldest, left, right, operator, value); a ring (whether it has a tree); the next entry of a ring (ring, node, value). -1: nothing."""

WIDTH = 8
"""Numbers of a line of the graph section: what it makes, then what that needs."""

OPERATORS = tuple(PASSES)


class Partition:
    """What is kept of one partition while a match is open.

    position: of its next event. low: the least start that counts. starts: (position, time) of events that began a match. banks: by macro state, those
    with entries. serial: of the next cell. epoch: how many triggers of any partition had consumed when it was read last. cells: those of events that
    may still count, the oldest first; none without a window.
    """

    __slots__ = ("_order", "banks", "cells", "epoch", "low", "position", "serial", "starts")

    def __init__(self, position: int, epoch: int) -> None:
        self.position = self.low = position
        self.starts: deque[tuple[int, int]] = deque()
        self.cells: deque[Cell] = deque()
        self.banks: dict[Macro, Bank] = {}
        self._order: list[Macro] = []
        self.serial = 0
        self.epoch = epoch

    def bank(self, macro: Macro, steps: Steps) -> Bank:
        """The entries of a macro state."""
        found = self.banks.get(macro)
        if found is None:
            found = self.banks[macro] = Bank(macro, steps)
            insort(self._order, macro, key=_by_configurations)
        return found

    def live(self, time: int) -> list[Bank]:
        """The banks with an entry that counts and may go on at a time, in an order that depends on the automaton alone."""
        for macro in [macro for macro, bank in self.banks.items() if bank.greatest < self.low or bank.until < time]:
            self.drop(macro)
        return [self.banks[macro] for macro in self._order]

    def drop(self, macro: Macro) -> None:
        """Forget the entries of a macro state."""
        del self.banks[macro]
        self._order.remove(macro)

    def rise(self, low: int) -> None:
        """Raise the least start that counts.

        Cells of events before it let go of what they go on from: else each would keep all before it, to the beginning of the stream.
        """
        self.low = low
        while self.cells and self.cells[0].position < low:
            self.cells.popleft().child = None

    def close(self) -> None:
        """Forget all that is open: only later starts count. A trigger that is being given keeps what it needs."""
        self.low = self.position
        self.starts.clear()
        self.cells.clear()
        self.banks.clear()
        self._order.clear()


def _by_configurations(macro: Macro) -> tuple[Configuration, ...]:
    return macro.configurations


class Partitions(Store):
    """The partitions by row. positions: of the next event of those that are not open."""

    positions: Array

    def __init__(self) -> None:
        super().__init__(positions=np.array(0, np.int64))
        self.opened: dict[int, Partition] = {}

    def of(self, row: int, epoch: int) -> Partition:
        """The partition of a row, made ready for an event."""
        found = self.opened.get(row)
        if found is None:
            found = self.opened[row] = Partition(int(self.positions[row]), epoch)
        return found

    def empty(self, rows: Array) -> None:
        """Forget what is open; positions go on."""
        for row in rows.tolist():
            found = self.opened.pop(row, None)
            if found is not None:
                self.positions[row] = found.position

    @property
    def reserved(self) -> int:
        """The bytes of what is open, each Python object once, also of what no match needs any more. O(objects)."""
        found, todo = 0, list[object](self.opened.values())
        seen = set(map(id, todo))
        while todo:
            each = todo.pop()
            found += sys.getsizeof(each)
            for other in gc.get_referents(each):
                if id(other) not in seen and not isinstance(other, Macro | Steps | type):
                    seen.add(id(other))
                    todo.append(other)
        return found


# ------------------------------------------------------------------------------------------------------------------- to sections


class _Graph:
    """The live match graph of one partition, as lines that make it. first: the number of the first line."""

    def __init__(self, partition: Partition, *, first: int = 0) -> None:
        self.lines: list[tuple[int, ...]] = []
        self.values: list[object] = []
        self._low = partition.low
        self._first = first
        self._numbers: dict[int, int] = {}
        self._kept: dict[int, int] = {}  # the first live entry of a ring
        self._appended: dict[int, int] = {}
        self.entries = [
            (macro, values, self.number(node))
            for macro, bank in partition.banks.items()
            for values, node in bank.entries
            if node.key[0] >= partition.low
        ]

    def _line(self, part: object, *line: int) -> None:
        self._numbers[id(part)] = self._first + len(self.lines)
        self.lines.append(line + (0,) * (WIDTH - len(line)))

    def number(self, root: Node) -> int:
        """The number of the line that makes a live node; with all that it needs before it."""
        todo: list[Node | Cell] = [root]
        while todo:
            part = todo[-1]
            if id(part) in self._numbers:
                todo.pop()
                continue
            missing = self._missing(part)
            if missing is not None:
                todo.append(missing)
            elif isinstance(part, Cell):
                self._line(part, CELL, part.key[1], part.position, part.label, self._ref(part.child), *part.times)
            elif isinstance(part.what, Cell):
                self._line(part, NODE, self._numbers[id(part.what)], self._ref(part.left), self._ref(part.right))
            else:
                self._stretch(part, part.what)
        return self._numbers[id(root)]

    def _missing(self, part: Node | Cell) -> Node | Cell | None:
        """Something that a part needs and that is not made; rings are filled as far as they can be."""
        needed: list[Node | Cell | None] = [part.child] if isinstance(part, Cell) else [part.left, part.right]
        if isinstance(part, Node) and isinstance(part.what, Cell):
            needed.append(part.what)
        for each in needed:
            if each is not None and each.key[0] >= self._low and id(each) not in self._numbers:
                return each
        if isinstance(part, Node) and isinstance(part.what, Stretch):
            return self._fill(part.what)
        return None

    def _fill(self, stretch: Stretch) -> Node | None:
        ring, tree = stretch.ring, stretch.ring.tree
        if id(ring) not in self._kept:
            self._kept[id(ring)] = self._appended[id(ring)] = bisect_left(ring.entries, self._low, key=lambda entry: entry.key[0])
            self._line(ring, RING, int(tree is not None))
        while (place := self._appended[id(ring)]) <= stretch.newest:
            entry = ring.entries[place]
            if id(entry) not in self._numbers:
                return entry
            self._appended[id(ring)] = place + 1
            self.lines.append(
                (APPEND, self._numbers[id(ring)], self._numbers[id(entry)], self._value(None if tree is None else tree.levels[0][place][0]))
                + (0,) * 4
            )
        return None

    def _stretch(self, node: Node, stretch: Stretch) -> None:
        less = self._kept[id(stretch.ring)]
        operator = OPERATORS.index(stretch.operator) if stretch.operator else -1
        ends = (stretch.newest - less, max(stretch.oldest - less, 0))
        below = (self._ref(node.left), self._ref(node.right))
        self._line(node, OVER, self._numbers[id(stretch.ring)], *ends, *below, operator, self._value(stretch.value))

    def _value(self, value: Value) -> int:
        if value is None:
            return -1
        self.values.append(stored(value))
        return len(self.values) - 1

    def _ref(self, part: Node | None) -> int:
        return self._numbers[id(part)] if part is not None and part.key[0] >= self._low else -1


def dump(partitions: Partitions, open_: Callable[[Partition], bool]) -> dict[str, Any]:
    """The partitions that have seen an event, as named sections; open_: whether a match of one can go on. Linear in the live state."""
    slots: list[tuple[int, ...]] = []
    starts: list[tuple[int, int]] = []
    entries: list[tuple[int, int]] = []
    lines: list[list[int]] = []
    values: list[object] = []
    keys: list[object] = []
    macros: dict[Macro, int] = {}
    for row in range(len(partitions)):
        partition = partitions.opened.get(row)
        position = int(partitions.positions[row]) if partition is None else partition.position
        if not position:
            continue
        if partition is None or not open_(partition):
            slots.append((row - 1, position, position, 0, 0))
            continue
        graph = _Graph(partition, first=len(lines))
        for line in graph.lines:
            place = {OVER: 7, APPEND: 3}.get(line[0])
            shifted = list(line)
            if place is not None and shifted[place] >= 0:
                shifted[place] += len(values)
            lines.append(shifted)
        values += graph.values
        live = [start for start in partition.starts if start[0] >= partition.low]
        slots.append((row - 1, position, partition.low, len(live), len(graph.entries)))
        starts += live
        for macro, slot_values, node in graph.entries:
            entries.append((macros.setdefault(macro, len(macros)), node))
            keys.append([stored(value) for value in slot_values])
    return {
        "guarded_slots": _table(slots, len(SLOT_COLUMNS)),
        "guarded_starts": _table(starts, 2),
        "guarded_entries": _table(entries, len(ENTRY_COLUMNS)),
        "guarded_graph": _table(lines, WIDTH),
        "guarded_values": json.dumps({"graph": values, "slots": keys, "macros": [macro.configurations for macro in macros]}).encode(),
    }


def _table(rows: list[Any], width: int) -> Array:
    return np.array(rows, "<i8").reshape(len(rows), width)


# ------------------------------------------------------------------------------------------------------------------- from sections


def load(
    partitions: Partitions,
    sections: Mapping[str, Any],
    stored_: Stored | None,
    regions: Regions,
    steps: Steps,
    *,
    epoch: int,
    bounded: bool,
) -> None:
    """Fill fresh partitions from what `dump` gave; raises ValueError or LookupError where it does not fit."""
    slots = numbers(sections, "guarded_slots", width=len(SLOT_COLUMNS))
    starts = numbers(sections, "guarded_starts", width=2)
    entries = numbers(sections, "guarded_entries", width=len(ENTRY_COLUMNS))
    lines = numbers(sections, "guarded_graph", width=WIDTH)
    texts = _texts(bytes(sections["guarded_values"]))
    _, position, low, start_counts, entry_counts = slots.T
    demand(inside(low, 0, position + 1), position > 0, len(texts["slots"]) == len(entries))
    rows = rows_of(slots[:, 0], position, stored_)
    start_owner = owners(start_counts, starts[:, 0])
    entry_owner = owners(entry_counts, entries[:, 0])
    demand(
        ascending(starts[:, 0], start_owner, strictly=True),
        ascending(starts[:, 1], start_owner),
        inside(starts[:, 0], low[start_owner], position[start_owner]),
    )
    macros = [_macro(configurations, regions) for configurations in texts["macros"]]
    made, latest = _made(lines, [restored(value) for value in texts["graph"]], labels=len(regions.automaton.labels))
    contents = Contents(regions.automaton)
    partitions.ensure(int(rows.max(initial=0)) + 1)
    partitions.positions[rows] = position
    opened: dict[int, Partition] = {}
    serial = 1 + int(lines[lines[:, 0] == CELL, 1].max(initial=0))  # every cell that is made has a lesser number than those to come
    for number in np.flatnonzero(start_counts + entry_counts).tolist():
        partition = opened[number] = partitions.of(int(rows[number]), epoch)
        partition.low = int(low[number])
        partition.serial = serial
    for owner, start in zip(start_owner.tolist(), starts.tolist(), strict=True):
        opened[owner].starts.append((start[0], start[1]))
    nodes: dict[int, list[Node]] = {owner: [] for owner in opened}
    for owner, (macro, node), values in zip(entry_owner.tolist(), entries.tolist(), texts["slots"], strict=True):
        part, found = made[node], macros[macro]
        demand(macro >= 0, node >= 0, isinstance(part, Node), len(values) == found.slots)
        assert isinstance(part, Node)
        demand(part.key[0] >= int(low[owner]), latest[node] < int(position[owner]))
        held = tuple(restored(value) for value in values)
        demand(all(contents.may_hold(register, held[slot]) for _, slots in found.configurations for register, slot in slots))
        opened[owner].bank(found, steps).insert(held, part, int(low[owner]))
        nodes[owner].append(part)
    for owner, found_nodes in nodes.items() if bounded else ():
        opened[owner].cells.extend(sorted(_cells(found_nodes), key=_by_position))


def _cells(nodes: list[Node]) -> list[Cell]:
    """The cells that nodes reach, each once. Linear in the nodes that they reach."""
    todo, seen, found = list(nodes), set(map(id, nodes)), []
    while todo:
        node = todo.pop()
        below = [node.left, node.right]
        if isinstance(node.what, Stretch):
            below += node.what.ring.entries[node.what.oldest : node.what.newest + 1]
        elif id(node.what) not in seen:
            seen.add(id(node.what))
            found.append(node.what)
            below.append(node.what.child)
        for each in below:
            if each is not None and id(each) not in seen:
                seen.add(id(each))
                todo.append(each)
    return found


def _by_position(cell: Cell) -> int:
    return cell.position


def _texts(section: bytes) -> Any:
    try:
        return json.loads(section)
    except RecursionError as error:
        raise ValueError("values of a snapshot") from error


def _macro(configurations: list[Any], regions: Regions) -> Macro:
    """A macro state of a snapshot, whose states and registers the automaton must have, with slots without gaps."""
    found = tuple((int(state), tuple((int(register), int(slot)) for register, slot in held)) for state, held in configurations)
    automaton, used = regions.automaton, {slot for _, held in found for _, slot in held}
    demand(
        len(found) > 0,
        found == tuple(sorted(set(found))),
        all(0 <= state < automaton.states and automaton.outgoing[state] for state, _ in found),
        all(register in regions.live[state] for state, held in found for register, _ in held),
        all(len({register for register, _ in held}) == len(held) for _, held in found),
        used == set(range(len(used))),
    )
    return regions.macro(found)


class _Making:
    """What the lines of a graph make, by number. latest: of each the last position of an event in it."""

    def __init__(self, values: list[Value], *, labels: int) -> None:
        self.made: list[Cell | Node | Ring | None] = []
        self.latest: list[int] = []
        self._until: dict[int, list[int]] = {}  # of a ring, the last position up to each entry
        self._values = values
        self._labels = labels

    def make(self, kind: int, line: list[int]) -> None:
        """One more line; raises ValueError or LookupError where it cannot be."""
        if kind == CELL:
            self._cell(*line)
        elif kind == NODE:
            cell = self._earlier(line[0], Cell)
            self._node(cell.key, cell, line[1:3], self.latest[line[0]])
        elif kind == OVER:
            self._over(line)
        elif kind == RING:
            self._until[len(self.made)] = []
            self._put(Ring(Tree() if line[0] else None), -1)
        else:
            demand(kind == APPEND)
            self._append(*line[:3])

    def _cell(self, serial: int, position: int, label: int, child: int, *times: int) -> None:
        time, begins, place = times
        demand(inside(np.array([serial, position]), 0, NUMBER_LIMIT), 0 <= label < self._labels, 0 <= place <= position)
        demand(child == -1 or self.latest[child] < position)
        self._put(Cell(serial, position, label, None if child == -1 else self._earlier(child, Node), (time, begins, place)), position)

    def _node(self, key: tuple[int, int], what: Cell | Stretch, below: list[int], latest: int) -> None:
        left, right = (None if number == -1 else self._earlier(number, Node) for number in below)
        demand(all(each is None or each.key <= key for each in (left, right)))
        # What was dead below is gone: the shorter spine may be the left one now.
        if right is not None and (left is None or left.rank < right.rank):
            left, right = right, left
        self._put(Node(key, what, left, right), max([latest, *(self.latest[number] for number in below if number >= 0)]))

    def _over(self, line: list[int]) -> None:
        number, newest, oldest, left, right, operator, value = line
        ring = self._earlier(number, Ring)
        demand(0 <= oldest <= newest < len(ring.entries), -1 <= operator < len(OPERATORS))
        tested = operator >= 0
        if tested:
            demand(ring.tree is not None)
            assert ring.tree is not None
            demand(type(self._value(value)) is type(ring.tree.levels[0][0][0]))
        stretch = Stretch(ring, newest, oldest, operator=OPERATORS[operator] if tested else "", value=self._value(value))
        self._node(ring.entries[newest].key, stretch, [left, right], self._until[number][newest])

    def _append(self, number: int, node: int, value: int) -> None:
        ring, entry, until = self._earlier(number, Ring), self._earlier(node, Node), self._until[number]
        demand(not ring.entries or ring.entries[-1].key < entry.key)
        if ring.tree is not None:
            new = self._value(value)
            demand(new is not None, not ring.entries or type(new) is type(ring.tree.levels[0][0][0]))
            ring.tree.append(new)
        ring.entries.append(entry)
        until.append(max(until[-1] if until else -1, self.latest[node]))
        self._put(None, -1)

    def _put(self, part: Cell | Node | Ring | None, latest: int) -> None:
        self.made.append(part)
        self.latest.append(latest)

    def _earlier(self, number: int, kind: type[T]) -> T:
        found = self.made[_place(number, len(self.made))]
        if not isinstance(found, kind):
            raise ValueError("the graph of a snapshot")  # noqa: TRY004 - what a snapshot says is a value
        return found

    def _value(self, number: int) -> Value:
        return None if number == -1 else self._values[_place(number, len(self._values))]


def _made(lines: Array, values: list[Value], *, labels: int) -> tuple[list[Cell | Node | Ring | None], list[int]]:
    """What the lines make, and of each the last position of an event in it; raises ValueError or LookupError for a line that cannot be."""
    making = _Making(values, labels=labels)
    for kind, *line in lines.tolist():
        making.make(kind, line)
    return making.made, making.latest


def _place(number: int, count: int) -> int:
    demand(0 <= number < count)
    return number
