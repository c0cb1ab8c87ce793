"""The state of a match graph as sections: what is alive, and nothing else.

`dump` and `load` turn the partitions of a `MatchGraph` into named sections and back: macro states as sets of automaton states (the tables are rebuilt
lazily), live lists, the FIFO of starts, and the live cells with dense ids.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from cepheid.engine.input.order import earlier
from cepheid.engine.memory.checks import ascending, demand, inside, numbers, owners, rows_of
from cepheid.engine.memory.container import macro_bytes, macro_states
from cepheid.engine.memory.pools import NUMBER_LIMIT, Pool, first_from, ragged

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cepheid.engine.evaluations.graph.match_graph import MatchGraph
    from cepheid.engine.memory.pools import Array
    from cepheid.engine.memory.stored import Stored

POSITION_LIMIT = 1 << 31
"""Positions relative to a partition's base are below it: the kernel has 32 bits for them."""

SLOT_COLUMNS = ("slot", "base", "position", "last_time", "starts", "lists", "cells")


# ---------------------------------------------------------------------------------------------------- graph -> sections


def dump(graph: MatchGraph, epoch: int) -> dict[str, Any]:
    """The live state of all partitions as named sections; the graph is unchanged. epoch: see `MatchGraph.consumed`.

    Linear in the rings of the partitions that have open matches. Sections: slots (int64, one row of `SLOT_COLUMNS` per partition that
    has seen an event); starts_position, starts_time; list_macro, list_max, list_length, list_entries; macros; cells (int32, columns); labels.
    """
    column, record = graph.column, graph.records
    used = np.flatnonzero((record[:, column["position"]] > 0) | (record[:, column["base"]] > 0))
    record, slots = record[used], used - 1
    consumed = graph.consumed(record, epoch)
    for name, value in (("lists", 0), ("head", record[:, column["next"]]), ("starts_head", record[:, column["starts_tail"]])):
        record[:, column[name]] = np.where(consumed, value, record[:, column[name]])
    starts_owner, starts_position, starts_time = _live_starts(graph, record)
    lows = _lows(graph, record, starts_owner, starts_position)
    cells, labels, cell_owner, dense = _live_cells(graph, record, lows)
    lists = _live_lists(graph, record, lows, dense)
    table = np.stack(
        [
            slots,
            record[:, column["base"]] + lows,
            record[:, column["position"]] - lows,
            record[:, column["last_time"]],
            np.bincount(starts_owner, minlength=len(slots)),
            np.bincount(lists["owner"], minlength=len(slots)),
            np.bincount(cell_owner, minlength=len(slots)),
        ],
        axis=1,
    )
    macros, numbers = np.unique(lists["macro"], return_inverse=True)
    width, masks = macro_bytes([graph.table.macros[int(q)] for q in macros])
    return {
        "slots": table.astype("<i8"),
        "starts_position": (starts_position - lows[starts_owner]).astype("<i4"),
        "starts_time": starts_time.astype("<i8"),
        "list_macro": numbers.astype("<i4"),
        "list_max": lists["max"].astype("<i4"),
        "list_length": lists["length"].astype("<i4"),
        "list_entries": lists["entries"].astype("<i4"),
        "macros": struct.pack("<I", width) + masks,
        "cells": np.ascontiguousarray(cells.T, "<i4"),
        "labels": labels.astype("<u2"),
    }


def needed_cells(graph: MatchGraph, epoch: int) -> int:
    """Places for the cells of all partitions that are not before the least start that an open match may have, in slabs of at least the least size.

    O(partitions x log cells).
    """
    column = graph.column
    record = graph.records[graph.records[:, column["cells_mask"]] >= 0]
    offset, mask, head, following = (record[:, column[name]] for name in ("cells_offset", "cells_mask", "head", "next"))
    made = graph.cells.arrays[0][::4]

    def position(cell: Array) -> Array:
        found = made[offset + (cell & mask)].astype(np.int64)
        return np.asarray(np.where(found < 0, ~found, found))

    first = first_from(position, head, following, _lows(graph, record, *_first_starts(graph, record)))
    live = (following - first)[~graph.consumed(record, epoch)]
    return int(np.maximum(live[live > 0], graph.cells.least).sum())


def _first_starts(graph: MatchGraph, record: Array) -> tuple[Array, Array]:
    """(owner, relative position) of the oldest start of each partition that a match may still begin with."""
    column = graph.column
    record, owner = record[(timed := record[:, column["starts_mask"]] >= 0)], np.flatnonzero(timed)
    offset, mask, head, tail = (record[:, column[f"starts_{name}"]] for name in ("offset", "mask", "head", "tail"))
    positions, times = graph.starts.arrays
    if graph.window is not None:
        oldest = earlier(record[:, column["last_time"]], graph.window)
        head = first_from(lambda start: times[offset + (start & mask)], head, tail, oldest)
    if graph.count_window is not None:
        oldest = record[:, column["position"]] - graph.count_window + 1
        head = first_from(lambda start: positions[offset + (start & mask)], head, tail, oldest)
    open_ = head < tail
    return owner[open_], positions[(offset + (head & mask))[open_]].astype(np.int64)


def _live_starts(graph: MatchGraph, record: Array) -> tuple[Array, Array, Array]:
    """(owner, relative position, time) of the starts that a match may still begin with, as of each partition's last event."""
    column = graph.column
    head = record[:, column["starts_head"]]
    owner, number = ragged(head, record[:, column["starts_tail"]] - head)
    place = record[owner, column["starts_offset"]] + (number & record[owner, column["starts_mask"]])
    position, time = graph.starts.arrays[0][place].astype(np.int64), graph.starts.arrays[1][place]
    kept = np.ones(len(owner), bool)
    if graph.window is not None:
        kept = time >= earlier(record[owner, column["last_time"]], graph.window)
    if graph.count_window is not None:
        kept &= position > record[owner, column["position"]] - graph.count_window
    return owner[kept], position[kept], time[kept]


def _lows(graph: MatchGraph, record: Array, starts_owner: Array, starts_position: Array) -> Array:
    """Per partition, the least relative position that an open match starts at (or its next position)."""
    position: Array = record[:, graph.column["position"]]
    if graph.window is None:
        if graph.count_window is None:
            return np.zeros_like(position)
        return np.asarray(np.maximum(0, position - graph.count_window + 1))
    lows = position.copy()
    first = np.flatnonzero(np.diff(starts_owner, prepend=-1))
    lows[starts_owner[first]] = starts_position[first]
    return lows


def _live_cells(graph: MatchGraph, record: Array, lows: Array) -> tuple[Array, Array, Array, Array]:
    """(cells with relative positions and dense ids, labels, owner, dense id by place in the pool)."""
    column = graph.column
    pool, pool_labels = graph.cells.arrays[0].reshape(-1, 4), graph.cells.arrays[1]
    seen = np.zeros(len(pool), np.uint8)
    largest = int(record[:, column["cells_mask"]].max(initial=0)) + 1
    arrays = (
        np.ascontiguousarray(record).reshape(-1),
        lows,
        graph.cells.arrays[0],
        graph.packed.arrays[0],
        np.zeros(largest, np.int32),
        seen,
    )
    graph.kernel.reach(*arrays if graph.kernel.COMPILED else (array.data for array in arrays))
    head = record[:, column["head"]]
    owner, number = ragged(head, record[:, column["next"]] - head)
    place = record[owner, column["cells_offset"]] + (number & record[owner, column["cells_mask"]])
    kept = seen[place] == 1
    owner, place = owner[kept], place[kept]
    counts = np.bincount(owner, minlength=len(record))
    dense = np.zeros(len(pool), np.int32)
    dense[place] = np.arange(len(place)) - (np.cumsum(counts) - counts)[owner] + 1
    cells = pool[place].astype(np.int64)
    low = lows[owner]
    for side in (1, 2):
        cells[:, side] = _dense_link(graph, record, (owner, cells[:, side], low), dense)
    cells[:, 0] += np.where(cells[:, 0] < 0, low, -low)
    cells[:, 3] -= low
    return cells, pool_labels[place], owner, dense


def _dense_link(graph: MatchGraph, record: Array, links: tuple[Array, Array, Array], dense: Array) -> Array:
    """Dense ids of links (owner, id, low); 0 where there is none or it is expired."""
    owner, cell, low = links
    column = graph.column
    place = record[owner, column["cells_offset"]] + (cell & record[owner, column["cells_mask"]])
    place = np.where(cell >= record[owner, column["head"]], place, 0)
    alive = (cell >= record[owner, column["head"]]) & (graph.cells.arrays[0].reshape(-1, 4)[place, 3] >= low)
    return np.where(alive, dense[place], 0)


def _live_lists(graph: MatchGraph, record: Array, lows: Array, dense: Array) -> dict[str, Array]:
    """The live lists of all partitions, without their expired entries: owner, macro, max, length per list, and the entries."""
    column, packed = graph.column, graph.packed.arrays[0]
    offset, count = record[:, column["packed_offset"]], record[:, column["lists"]]
    owner, place = ragged(offset, count)
    largest = packed[place + count[owner]].astype(np.int64)
    length = packed[place + 2 * count[owner]].astype(np.int64)
    totals = np.bincount(owner, length, minlength=len(record)).astype(np.int64)
    _, entry_place = ragged(offset + 3 * count, totals)
    of_list = np.repeat(np.arange(len(owner)), length)
    entries = _dense_link(graph, record, (owner[of_list], packed[entry_place].astype(np.int64), lows[owner[of_list]]), dense)
    live = largest >= lows[owner]
    kept = (entries > 0) & live[of_list]
    length = np.bincount(of_list[kept], minlength=len(owner))
    return {
        "owner": owner[live],
        "macro": packed[place][live],
        "max": (largest - lows[owner])[live],
        "length": length[live],
        "entries": entries[kept],
    }


# ---------------------------------------------------------------------------------------------------- sections -> graph


def load(graph: MatchGraph, sections: Mapping[str, Any], stored: Stored | None = None) -> tuple[int, int]:
    """Bring a fresh graph, of the same program and bounds, into the state of `dump`; returns the most lists of a partition, and entries of a list.

    stored: the partitions that it is to be of. Raises ValueError or KeyError if the sections do not fit together. Linear in the sections.
    """
    parts = {name: numbers(sections, name, kind) for name, kind in _KINDS.items()}
    slots = parts["slots"].reshape(-1, len(SLOT_COLUMNS)).T
    cells = parts["cells"].reshape(4, -1).T
    macros = macro_states(sections["macros"][4:], *struct.unpack_from("<I", sections["macros"]), states=graph.table.program.states)
    _check(graph, parts, slots, cells, macros)
    rows = rows_of(slots[0], slots[1] + slots[2], stored)
    if len(rows):
        _restore(graph, parts, (rows, *slots[1:]), cells, macros)
    return int(slots[5].max(initial=0)), int(parts["list_length"].max(initial=1))


_KINDS = {
    "slots": "<i8",
    "starts_position": "<i4",
    "starts_time": "<i8",
    "list_macro": "<i4",
    "list_max": "<i4",
    "list_length": "<i4",
    "list_entries": "<i4",
    "cells": "<i4",
    "labels": "<u2",
}


def _check(graph: MatchGraph, parts: Mapping[str, Array], slots: Array, cells: Array, macros: list[int]) -> None:
    """ValueError unless every index of the sections stays inside, and all that the kernel follows comes to an end: it does not look."""
    slot, base, position, _, starts, lists, counts = slots
    of_start = owners(starts, parts["starts_position"], parts["starts_time"])
    of_list = owners(lists, parts["list_macro"], parts["list_max"], parts["list_length"])
    of_entry = owners(parts["list_length"], parts["list_entries"])
    of_cell = owners(counts, cells, parts["labels"])
    demand(
        inside(position, 0, POSITION_LIMIT),
        inside(base, -position, NUMBER_LIMIT),
        slot[1:] > slot[:-1],
        parts["list_length"] >= 1,
        parts["labels"] < graph.table.program.labels,
        parts["list_macro"] >= 0,
        int(parts["list_macro"].max(initial=-1)) + 1 == len(macros),
        graph.window is not None or not len(of_start),
        ascending(parts["starts_position"], of_start, strictly=True),
        inside(parts["starts_position"], 0, position[of_start]),
    )
    _check_cells(graph, cells, of_cell, counts, position)
    _check_lists(parts, of_list, of_entry, cells, counts)


def _check_cells(graph: MatchGraph, cells: Array, owner: Array, counts: Array, following: Array) -> None:
    """ValueError unless the cells of each partition are in the order of the stream, and their links lead to others that live as long, never round.

    A cell lives until its position is no longer inside, and is followed as long as its max start is.
    """
    first = (np.cumsum(counts) - counts)[owner]
    made, child, rest, most = cells.T
    union = made < 0
    made = np.where(union, ~made, made)
    number = np.arange(len(cells)) - first + 1
    demand(
        inside(most, 0, made + 1),
        made < following[owner],
        ascending(made, owner),
        inside(child, union, number),
        inside(rest, 0, counts[owner] + 1),
    )
    has_child, has_rest = np.flatnonzero(child), np.flatnonzero(rest)
    below, beside = (first + child - 1)[has_child], (first + rest - 1)[has_rest]
    demand(most[below] >= most[has_child], most[beside] <= most[has_rest])
    if (rest < number).all():
        return
    links: Array = np.full((len(cells), 2), -1, np.int32)
    links[has_child, 0], links[has_rest, 1] = below, beside
    arrays = (links.reshape(-1), np.zeros(len(cells), np.int32), np.zeros(len(cells), np.int32))
    demand(bool(graph.kernel.acyclic(*arrays if graph.kernel.COMPILED else (array.data for array in arrays))))


def _check_lists(parts: Mapping[str, Array], owner: Array, of_list: Array, cells: Array, counts: Array) -> None:
    """ValueError unless each partition's lists have descending max starts, and each list's first entry has it, the others no greater ones."""
    entries, most = parts["list_entries"], parts["list_max"]
    demand(inside(entries, 1, counts[owner[of_list]] + 1))
    largest = cells[(np.cumsum(counts) - counts)[owner[of_list]] + entries - 1, 3]
    begins = np.diff(of_list, prepend=-1) != 0
    demand(largest[begins] == most, ascending(-largest.astype(np.int64), of_list), ascending(-most.astype(np.int64), owner))


def _slabs(pool: Pool, counts: Array) -> tuple[Array, Array]:
    """(offset, size) of a slab for each count > 0; size 0 where the count is 0."""
    exponents = np.ceil(np.log2(np.maximum(counts, 1))).astype(np.int64)
    sizes = np.where(counts > 0, np.maximum(pool.least, np.int64(1) << exponents), 0)
    return pool.take(sizes), sizes


def _restore(graph: MatchGraph, parts: Mapping[str, Array], slots: tuple[Array, ...], cells: Array, macros: list[int]) -> None:
    column = graph.column
    rows, base, position, last_time, starts, lists, cell_counts = slots
    graph.open(rows)
    list_owner = np.repeat(np.arange(len(rows)), lists)
    entry_counts = np.bincount(list_owner, parts["list_length"], minlength=len(rows)).astype(np.int64)
    # Ids start at 1, and one place is for the cell that is made next.
    cell_offset, cell_size = _slabs(graph.cells, np.where(cell_counts > 0, cell_counts + 1, 0))
    start_offset, start_size = _slabs(graph.starts, starts)
    packed_offset, packed_size = _slabs(graph.packed, 3 * lists + entry_counts)
    values = {
        "next": cell_counts + 1,
        "cells_offset": cell_offset,
        "cells_mask": cell_size - 1,
        "starts_tail": starts,
        "starts_offset": start_offset,
        "starts_mask": start_size - 1,
        "packed_offset": packed_offset,
        "packed_size": packed_size,
        "lists": lists,
        "base": base,
        "position": position,
        "last_time": last_time,
    }
    for name, value in values.items():
        graph.records[rows, column[name]] = value
    _, place = ragged(cell_offset + 1, cell_counts)
    graph.cells.arrays[0].reshape(-1, 4)[place] = cells
    graph.cells.arrays[1][place] = parts["labels"]
    _, place = ragged(start_offset, starts)
    graph.starts.arrays[0][place], graph.starts.arrays[1][place] = parts["starts_position"], parts["starts_time"]
    known = graph.table.adopt(macros)
    packed = graph.packed.arrays[0]
    owner, place = ragged(packed_offset, lists)
    packed[place] = known[parts["list_macro"]]
    packed[place + lists[owner]] = parts["list_max"]
    packed[place + 2 * lists[owner]] = parts["list_length"]
    _, place = ragged(packed_offset + 3 * lists, entry_counts)
    packed[place] = parts["list_entries"]
