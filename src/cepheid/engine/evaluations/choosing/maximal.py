"""MAX inside a window: the supports that no other match with the same end strictly contains.

A superset beats a match only while its own start is inside the window, so `MAX` and the window cannot be taken one after the other (`SELECT
MAX .. A+ ; B WITHIN 3 EVENTS` on A A A B is {1, 2, 3}, not nothing). Which supports are maximal follows from configurations
(`cepheid.engine.evaluations.choosing.domination`) and numbers per start; starts with one configuration are one group, whose runs are stored once
(`cepheid.kernel.maximal`). Here are the state of the partitions, the tables on demand, and the snapshot.

Update O(live groups x macro states) per event, and merges of O(macro states x log window) amortized per start. Output O(log window)
amortized per position. Live groups and macro states are bounded by the query alone, exponentially in the worst case:
`domination.explore` says by how much, and the planner chooses per end where it is too much. Memory is bounded by the marked events of the
window; without a window every start lives for ever, and memory grows with the marked events.
Source: Algorithm 7 of foundations-cel (appendix D.3); the window and the groups are Cepheid's own.

When to use this: MAX in a window, where partial matches can only wait. End by end (`per_end`) it takes 3 times as long where triggers come often, and
as long where they are rare.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cepheid.automata.supports import shown_variables
from cepheid.automata.waiting import WaitingAutomaton
from cepheid.engine.evaluations.base import ALL
from cepheid.engine.evaluations.block_run import HEADER, KEPT, POSITION
from cepheid.engine.evaluations.choosing.domination import TABLE_ENTRIES, TOP, DominationTable, explore
from cepheid.engine.evaluations.choosing.supports import SupportEvaluation, SupportMethod, SupportSizes, waiting
from cepheid.engine.evaluations.method import Guarantee
from cepheid.engine.memory.blocks import HEAD, TAIL, BlockLayout, Ring
from cepheid.engine.memory.checks import ascending, demand, fitting, inside, numbers, owners
from cepheid.engine.memory.container import damaged
from cepheid.engine.memory.pools import power_of_two, ragged
from cepheid.language.syntax import Strategy
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Unpack

    from cepheid.automata.program import Program
    from cepheid.engine.evaluations.base import Bounds, Chunk
    from cepheid.engine.evaluations.choosing.domination import Configuration, Macro
    from cepheid.engine.evaluations.events import Events
    from cepheid.engine.evaluations.method import Task, Terms
    from cepheid.engine.memory.pools import Array
    from cepheid.engine.memory.stored import Stored

ORDER, GROUP_COUNT, NUMBERS = range(len(HEADER), len(HEADER) + 3)
"""Words of a block after the header: the order of the numbers, how many groups; from NUMBERS on, the numbers."""

ROWS, NODES, GROUPS = range(3)
"""The rings of a block; ring 0 holds the live starts with their thresholds (see `kernel.maximal`)."""

FIRST_NODE = 2
"""Where an entry of ROWS has the first node made at its event; nodes before that of the oldest live start are dead."""

CELL, MOST_BIT = -2, 62
"""Tags of a node: a cell; between them two lists or one start (-1), and the exponents of bits."""

LABELLED_AT_ONCE = 1 << 8
"""Supports chosen before their matches are counted, where LIMIT is given and different supports can be one match."""

STARTS_STACK = 130
"""Height of the kernel's stack of sets of starts: two per bit of a position, and the set itself."""


@record
class MaximalSizes(SupportSizes):
    """First sizes of the growing arrays; entries: bound of the tables."""

    entries: int = TABLE_ENTRIES


class Maximal(SupportEvaluation):
    """The run state of SELECT MAX over any number of partitions; see `SupportEvaluation`.

    The automaton must be of the waiting fragment (`WaitingAutomaton.of`), else NotSupportedError.
    """

    kernel_name: ClassVar[str] = "maximal"

    def __init__(self, program: Program, *, sizes: MaximalSizes | None = None, **bounds: Unpack[Bounds]) -> None:
        self.automaton = waiting(program)
        sizes, limit = sizes or MaximalSizes(), bounds.get("limit")
        self._counted = not limit or not _hides_inside(program)
        if not self._counted:
            most = max(LABELLED_AT_ONCE, 2 * (limit or 0))
            sizes = replace(sizes, supports=min(sizes.supports, most), most_supports=min(sizes.most_supports, most))
        self.table = DominationTable(self.automaton, entries=sizes.entries)
        self._renumbered_at = -1  # row of the batch at which the tables were last renumbered
        self._group_of: Array = np.full(self.table.room, -1, np.int32)
        self._scratch: Array = np.zeros(sizes.scratch, np.int64)
        self._values: Array = np.zeros(0, np.int64)
        self._work: Array = np.zeros(1 + 8 * 64, np.int64)
        self._ends: Array = np.zeros(max(6, sizes.scratch), np.int64)
        self._starts_stack: Array = np.zeros(STARTS_STACK, np.int64)
        self._stack: Array = np.zeros(max(4, sizes.scratch), np.int64)
        self._path: tuple[Array, Array] = (np.zeros(max(2, sizes.scratch), np.int64), np.zeros(max(2, sizes.scratch), np.int64))
        super().__init__(program, sizes=sizes, **bounds)
        self.mends |= {
            "order": "_mend_order",
            "order_expiry": "_mend_order_expiry",
            "program": "_mend_program",
            "expiry": "_mend_expiry",
            "nodes": "_mend_nodes",
            "rows": "_mend_rows",
            "groups": "_mend_groups",
            "scratch": "_mend_scratch",
            "stack": "_mend_stack",
            "damaged": "_damaged",
        }
        self._set("states", self.automaton.waiting)
        if not self._counted:
            self._set("limit", ALL)
        self._fit()

    @property
    def supports(self) -> int:
        """Supports chosen so far."""
        return self._get("supports")

    @property
    def most_groups(self) -> int:
        """The most groups that a partition has had."""
        return self._get("most_groups")

    # ------------------------------------------------------------------------------------------------ for the base

    def _begin(self, events: Events) -> Array:
        self._renumbered_at = -1
        return super()._begin(events)

    def _layout(self) -> BlockLayout:
        waiting = self.automaton.waiting
        # An event makes up to some nodes, and a group takes some entries.
        rings = (Ring(3 + waiting), Ring(4, dated=False, times=2), Ring(1, dated=False, times=2))
        return BlockLayout((*HEADER, 0, 0, *[-1] * waiting), rings, kept=KEPT)

    def _tables(self) -> tuple[Array, ...]:
        scratch = (self._group_of, self._scratch, self._values, self._work, self._ends, self._starts_stack, self._stack, *self._path)
        return (*self.table.arrays, *scratch)

    def _learned(self, code: int, letter: int) -> None:
        self.table.learn(code, letter)
        self._fit()

    def _forgotten(self) -> None:
        self.table.forget_letters()

    def _taken(self) -> Iterator[Chunk]:
        yield from super()._taken()
        begun = self._get("enumerating") and self._get("given")  # then the last support handed over is of this trigger
        if begun and not self._counted and self.labelling.given >= (self.limit or 0):
            # The trigger has given its matches: no end, start or list is left to read.
            for name in ("ends", "end", "starts", "stack"):
                self._set(name, 0)
            self._set("enumerating", 1)

    # ------------------------------------------------------------------------------------------------ what the kernel lacks

    def _fit(self) -> None:
        """Room for what the tables have grown by."""
        table = self.table
        if table.room != len(self._group_of):
            self._group_of = np.full(table.room, -1, np.int32)
        half = max(2 * table.most_macros, table.most_moves, 2)
        if 2 * half > len(self._values):
            self._values = np.zeros(power_of_two(4 * half), np.int64)
        self._set("half", len(self._values) // 2)
        self._set("codes", table.codes)

    def _mend_order(self) -> None:
        if not self._renumbered():
            self.table.fill_order(self._get("argument"), self._get("detail"))
        self._fit()

    def _mend_order_expiry(self) -> None:
        self.table.fill_order_expiry(self._get("argument"))

    def _mend_program(self) -> None:
        if not self._renumbered():
            self.table.fill(self._get("argument"), self._get("detail"))
        self._fit()

    def _mend_expiry(self) -> None:
        if not self._renumbered():
            self.table.fill_expiry(self._get("argument"), self._get("detail"))
        self._fit()

    def _renumbered(self) -> bool:
        """Whether the tables were full, and now hold what is live alone, under new numbers; at most once per event.

        It also forgets what was filled in for the event being read, which the kernel needs all at once. So where the tables are full again at
        the same event, the bound gives way; else that event would never be read.
        """
        if not self.table.full:
            return False
        if self._renumbered_at == self._get("row"):
            self.table.entries *= 2
            return False
        self._renumbered_at = self._get("row")
        rows = self.store.held_rows
        orders = self.store.offsets[rows] + ORDER
        places = np.array([place for row in rows.tolist() for place in self._group_places(row)], np.int64)
        words = self.store.words
        configurations, reordered = self.table.renumber(words[places], words[orders])
        words[places] = configurations[words[places]]
        words[orders] = reordered[words[orders]]
        return True

    def _group_places(self, row: int) -> Iterator[int]:
        """Where the configurations of a row's groups stand in the blocks' words."""
        offset = int(self.store.offsets[row])
        place = offset + int(self.store.words[offset + self.store.layout.ring(GROUPS) + 2])
        for _ in range(int(self.store.words[offset + GROUP_COUNT])):
            yield place
            place += 3 + int(self.table.shapes[4 * self.store.words[place]])

    def _mend_nodes(self) -> None:
        self.store.grow(self._row(), NODES)

    def _mend_rows(self) -> None:
        self.store.grow(self._row(), ROWS)

    def _mend_groups(self) -> None:
        self.store.grow(self._row(), GROUPS, places=self._get("argument"))

    def _mend_scratch(self) -> None:
        wanted = self._get("argument")
        self._scratch = np.zeros(power_of_two(2 * wanted), np.int64)
        self._ends = np.zeros(power_of_two(2 * wanted), np.int64)

    def _mend_stack(self) -> None:
        self._stack = np.concatenate([self._stack, np.zeros_like(self._stack)])
        positions, letters = (np.concatenate([part, np.zeros_like(part)]) for part in self._path)
        self._path = positions, letters

    def _damaged(self) -> None:
        raise damaged("its groups of starts overlap")

    # ------------------------------------------------------------------------------------------------ state

    def dump(self) -> dict[str, bytes]:
        """As in `SupportEvaluation`, with the configurations and orders that the blocks speak of by number."""
        self._free_nodes()
        orders = np.array(self.table.orders, "<i8").tobytes()
        return {**super().dump(), "configurations": _written(self.table.configurations), "orders": orders}

    def _free_nodes(self) -> None:
        """Free what was made before the oldest live start of each partition, as the kernel does at its next event."""
        store, rows = self.store, self.store.held_rows
        oldest = self._oldest(rows, store.plain(rows))
        owner, places = store.places(rows, ROWS)
        live = store.words[places] >= oldest[owner]
        nodes = store.offsets[rows] + store.layout.ring(NODES)
        first = store.words[nodes + TAIL]
        np.minimum.at(first, owner[live], store.words[places[live] + FIRST_NODE])
        store.words[nodes + HEAD] = first

    def _restore(self, sections: Mapping[str, Any], stored: Stored | None) -> None:
        waiting = self.automaton.waiting
        with fitting("its configurations do not fit together"):
            for configuration in _read(numbers(sections, "configurations").tolist(), waiting):
                self.table.configuration(configuration)
            orders = numbers(sections, "orders", width=waiting) if waiting else np.zeros((1, 0), np.int64)
            for order in orders.tolist():
                self.table.order(_dense(order))
        self._fit()
        self._loading = numbers(sections, "rings").reshape(-1, 3, 2)
        super()._restore(sections, stored)

    def _letters(self, entries: list[Array]) -> Array:
        nodes = entries[NODES]
        letters: Array = nodes[nodes[:, 1] == CELL, 3]
        return letters

    def _check(self, words: Array, entries: list[Array]) -> None:
        rings, position = self._loading, words[:, POSITION]
        counts = rings[:, :, 1] - rings[:, :, 0]
        of_row, of_node = (owners(counts[:, ring], entries[ring]) for ring in (ROWS, NODES))
        starts, first_node = entries[ROWS], entries[ROWS][:, FIRST_NODE]
        demand(
            words[:, GROUP_COUNT] >= 0,
            ascending(first_node, of_row),
            inside(starts[:, FIRST_NODE + 1 :], -1, np.maximum(starts[:, :1], 1)),
            inside(words[:, ORDER], 0, len(self.table.orders)),
            inside(words[:, NUMBERS:], -1, np.maximum(position, 1)[:, None]),
            rings[:, GROUPS, 0] == 0,
            inside(first_node, rings[of_row, NODES, 0], rings[of_row, NODES, 1] + 1),
        )
        self._check_nodes(entries[NODES], of_node, rings[:, NODES], position)
        block, roots = self._check_groups(entries[GROUPS][:, 0], words[:, GROUP_COUNT], rings)
        oldest = position.copy()
        oldest[of_row[::-1]] = starts[::-1, 0]
        _check_sets(block, roots, rings[:, NODES], entries[NODES], oldest)

    def _check_nodes(self, nodes: Array, owner: Array, rings: Array, position: Array) -> None:
        """ValueError unless every link leads to an earlier node: then whatever the kernel follows comes to an end."""
        counts = rings[:, 1] - rings[:, 0]
        number = np.arange(len(nodes)) - (np.cumsum(counts) - counts)[owner] + rings[owner, 0]
        last = np.where(nodes[:, 1] == CELL, 1 << self.program.bits, number)
        demand(
            number > 0,
            inside(nodes[:, 0], 0, position[owner]),
            inside(nodes[:, 1], CELL, MOST_BIT + 1),
            inside(nodes[:, 2], 0, number),
            inside(nodes[:, 3], 0, last),
        )

    def _check_groups(self, words: Array, counts: Array, rings: Array) -> tuple[Array, Array]:
        """ValueError unless each block's words are as many groups of different known configurations as it counts, whose nodes and rows exist.

        Returns the block and the set of starts of each live one. Vectorized: the first group of all blocks, then the second, ..
        """
        sets = [(np.zeros(0, np.int64), np.zeros(0, np.int64))]
        ends = np.cumsum(rings[:, GROUPS, 1])
        place, met = ends - rings[:, GROUPS, 1], np.zeros(0, np.int64)
        known, block = len(self.table.configurations), np.flatnonzero(counts > 0)
        while len(block):
            demand(place[block] + 3 <= ends[block])
            configuration, first, newest = (words[place[block] + number] for number in range(3))
            demand(inside(configuration, 0, known), inside(newest, 0, rings[block, ROWS, 1]))
            met = np.concatenate([met, block * known + configuration])
            runs = self.table.shapes[4 * configuration].astype(np.int64)
            after = place[block] + 3 + runs
            demand(after <= ends[block])
            owner, index = ragged(place[block] + 3, runs)
            links, of = np.concatenate([first, words[index]]), np.concatenate([np.arange(len(block)), owner])
            nodes = rings[block, NODES]
            live = (newest >= rings[block, ROWS, 0])[of]
            demand(inside(links, nodes[of, 0], nodes[of, 1])[live])
            begun = live[: len(block)]
            sets.append((block[begun], first[begun]))
            place[block] = after
            counts = counts - 1
            block = block[counts[block] > 0]
        demand(place == ends, len(np.unique(met)) == len(met))
        owners, roots = (np.concatenate(part) for part in zip(*sets, strict=True))
        return owners, roots


def _check_sets(owner: Array, links: Array, rings: Array, nodes: Array, oldest: Array) -> None:
    """ValueError unless these nodes, of the blocks `owner`, are tries of starts: then merging them visits each start once.

    oldest: of each block, the oldest live start: what is older is never followed. Vectorized: the roots, then what is below them, ..; a fork's
    bit is less than that above it, so there are at most MOST_BIT steps.
    """
    counts = rings[:, 1] - rings[:, 0]
    first = np.cumsum(counts) - counts - rings[:, 0]
    above: Array = np.full(len(links), MOST_BIT + 1, np.int64)
    while len(links):
        found = nodes[first[owner] + links]
        bit = found[:, 1]
        demand(inside(bit, -1, above), found[:, 0] >= oldest[owner])
        fork = bit >= 0
        owner, found, bit = owner[fork], found[fork], bit[fork]
        low, high = found[:, 2], found[:, 3]
        demand(high >= rings[owner, 0])
        newest = nodes[first[owner] + high, 0]
        newest_low = nodes[first[owner] + np.maximum(low, rings[owner, 0]), 0]
        kept = (low >= rings[owner, 0]) & (newest_low >= oldest[owner])
        apart = (newest ^ newest_low) >> bit == 1
        demand(newest == found[:, 0], newest >> bit & 1 == 1, apart | ~kept)
        owner, above, links = np.append(owner, owner[kept]), np.append(bit, bit[kept]), np.append(high, low[kept])


def _hides_inside(program: Program) -> bool:
    """Whether SELECT's projection can hide an event between the first and the last: then different supports can be one match."""
    automaton, shown = program.automaton, shown_variables(program.label_sets)
    inner = (t for t in automaton.transitions if t.source != automaton.initial and t.target not in automaton.finals)
    return any(t.mark is not None and not t.mark & shown for t in inner)


def _dense(order: list[int]) -> tuple[int, ...]:
    ranks = {0, *order}
    demand(ranks == set(range(len(ranks))))
    return tuple(order)


def _written(configurations: list[Configuration]) -> bytes:
    """Configurations in the order of their numbers as int64: labels, then macro states, each list after its length."""
    flat: list[int] = []
    for labels, macros in configurations:
        flat += [len(labels), *labels, len(macros)]
        for states, dominated in macros:
            members = [state for state in range(states.bit_length()) if states >> state & 1]
            flat += [len(members), *members, len(dominated), *(number for pair in dominated for number in pair)]
    return np.array(flat, "<i8").tobytes()


def _read(flat: list[int], waiting: int) -> Iterator[Configuration]:
    """The configurations of `_written`; raises ValueError or IndexError where it is none."""
    place = 0

    def several(count: int, least: int, most: int) -> list[int]:
        nonlocal place
        found = flat[place : place + count]
        place += count
        demand(count >= 0, len(found) == count, all(least <= number <= most for number in found))
        return found

    while place < len(flat):
        labels = several(several(1, 0, waiting)[0], 0, waiting - 1)
        macros: list[Macro] = []
        for _ in range(several(1, 1, len(flat))[0]):
            states = sum(1 << state for state in set(several(several(1, 1, waiting)[0], 0, waiting - 1)))
            pairs = several(2 * several(1, 0, waiting)[0], 0, TOP)
            dominated = tuple(zip(pairs[::2], pairs[1::2], strict=True))
            demand(all(state < waiting and (level == TOP or level < len(labels)) for state, level in dominated))
            macros.append((states, dominated))
        yield tuple(labels), tuple(macros)


class MaximalMethod(SupportMethod):
    """MAX by groups of starts, where any stream leads to few."""

    name = "maximal"
    evaluation = Maximal
    strategy = Strategy.MAX

    def fits(self, task: Task) -> str | None:
        """A partial match must be able to wait, and the groups must be few."""
        if task.waiting is not None and explore(task.waiting, task.whole.predicates) is None:
            return "partial matches can contain each other in more ways than are walked through beforehand (EXPLORED_STEPS)"
        return task.obstacle

    def guarantee(self, terms: Terms) -> Guarantee:
        """As in the head of this file, with the most groups and macro states that any stream leads to."""
        automaton = WaitingAutomaton.of(terms.program.automaton)
        found = None if automaton is None else explore(automaton, terms.program.predicates)
        assert found is not None, "MAX by groups of starts is chosen only where these are few"
        groups = f"groups{' of a partition' if terms.partitioned else ''}: at most {found.configurations}, m: at most {found.macros}"
        return Guarantee(
            evaluation="MAX by groups of starts with the same supersets; each group's partial matches once; then their labellings",
            update=f"O(groups x m) per event and amortized O(m x log of the window) per start; {groups}",
            state=terms.state("marked events (once per group)"),
            delay="amortized O(log of the window) per event of a match",
        )
