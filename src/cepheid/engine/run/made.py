"""The stream with the events that matches make: where they stand, where they begin, what they have (docs/decisions/0011-events.md).

Comes in: events, then the matches of one EVENT definition after the other. Goes out: the events with one more for each match, behind the event that
completes it, and behind what that event has completed by definitions before. All is done in columns.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.input.keys import normalized
from cepheid.engine.memory.pools import offsets_of
from cepheid.engine.output.matches import plain_type
from cepheid.engine.run.beginnings import NUMBER, ROW
from cepheid.logical.plan import Begin
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cepheid.engine.memory.pools import Array
    from cepheid.engine.output.matches import Matches
    from cepheid.logical.plan import EventDefinition
    from cepheid.schema import EventSchema


@record(slots=False)
class Completed:
    """The matches of a definition over a stream.

    ends: for each the row of the stream that completes it. numbers: of the event that comes in with which it begins. begun: the time of that. All are
    int64.
    """

    matches: Matches
    ends: Array
    numbers: Array
    begun: Array

    def take(self, chosen: Array) -> Completed:
        """Some of them."""
        return Completed(self.matches.take(chosen), self.ends[chosen], self.numbers[chosen], self.begun[chosen])


PIECE_MARKS = 1 << 22
"""Marks of matches that are put in order at once: each takes some 100 bytes meanwhile."""

COLUMNS = ("times", "numbers", "begun", "depth")
"""The numbers of the events of a `MadeStream`."""


@record(slots=False)
class MadeStream:
    """Events in the order of the stream; what comes in is numbered.

    times: of each. numbers: of the event that comes in with which each begins: its own, or that with which its match begins. begun: the time of that.
    depth: 0 for what comes in, else one more than that of the event that completes it. All are int64.
    """

    events: pa.Table
    times: Array
    numbers: Array
    begun: Array
    depth: Array

    def __len__(self) -> int:
        return len(self.times)

    @classmethod
    def of(cls, events: pa.Table, times: Array, *, first: int = 0) -> Self:
        """What comes in; first: the number of the first event."""
        count = events.num_rows
        return cls(events, times, np.arange(first, first + count), times, np.zeros(count, np.int64))

    @classmethod
    def joined(cls, parts: Sequence[MadeStream]) -> MadeStream:
        """Several, one behind the other; at least one."""
        filled = [part for part in parts if len(part)] or parts[:1]
        if len(filled) == 1:
            return filled[0]
        columns = (np.concatenate([getattr(part, name) for part in filled]) for name in COLUMNS)
        return cls(pa.concat_tables([part.events for part in filled]), *columns)

    @property
    def nbytes(self) -> int:
        """Bytes of the events and the numbers."""
        return int(self.events.nbytes) + sum(int(getattr(self, name).nbytes) for name in COLUMNS)

    def cut(self, count: int) -> tuple[MadeStream, MadeStream]:
        """The first so many, and the others."""
        return self._slice(slice(count)), self._slice(slice(count, None))

    def _slice(self, rows: slice) -> MadeStream:
        count = len(self.times[rows])
        return MadeStream(self.events.slice(rows.start or 0, count), *(getattr(self, name)[rows] for name in COLUMNS))

    def as_read(self, places: Array, begun_places: Array, begun_rows: Array | None = None) -> pa.Table:
        """The events with columns that say where each begins (`plan.Begin`).

        places: the position of each in its partition. begun_places: where it begins there. begun_rows: where it begins in the stream; given where
        events are kept, with their numbers.
        """
        values = {"place": begun_places, "time": self.begun, "length": places - begun_places, "age": self.times - self.begun}
        columns = {Begin.of(kind).path[0]: column for kind, column in values.items()}
        if begun_rows is not None:
            columns |= {ROW: begun_rows, NUMBER: self.numbers}
        events = self.events
        for name, column in columns.items():
            events = events.append_column(name, pa.array(column, pa.int64()))
        return events

    def with_events(self, definition: EventDefinition, found: Completed, schema: EventSchema) -> tuple[MadeStream, Array]:
        """The stream with an event for each match of a definition, and the rows of this stream in it, -1 for new ones.

        schema: of all these events; those of this stream are `conformed`.
        """
        found = found.take(_in_order(found))
        depth, behind = self.depth[found.ends] + 1, self._behind(found.ends)
        # What is completed deeper stands first: all of it is below the event that the other one is completed by.
        sorting = np.lexsort((-depth, behind))
        found, depth, behind = found.take(sorting), depth[sorting], behind[sorting]
        old, new = np.arange(len(self)), behind + np.arange(len(behind))
        old += np.searchsorted(behind, old, "right")
        rows = np.empty(len(old) + len(new), np.int64)
        rows[old], rows[new] = np.arange(len(old)), len(old) + np.arange(len(new))
        own = ((self.times, self.times[found.ends]), (self.numbers, found.numbers), (self.begun, found.begun), (self.depth, depth))
        stream = MadeStream(
            self._columns(definition, found, schema).take(pa.array(rows)), *(np.concatenate(columns)[rows] for columns in own)
        )
        return stream, np.where(rows < len(old), rows, -1)

    def _behind(self, ends: Array) -> Array:
        """For each of some rows the first row behind it and all that it completes, and what that completes."""
        behind = np.full(len(ends), len(self.depth))
        for level in np.unique(self.depth[ends]).tolist():
            own = self.depth[ends] == level
            others = np.append(np.flatnonzero(self.depth <= level), len(self.depth))
            behind[own] = others[np.searchsorted(others, ends[own], "right")]
        return behind

    def conformed(self, definition: EventDefinition, schema: EventSchema) -> MadeStream:
        """The events with the columns of a schema, which has those of a definition too, and in its types, but for dictionaries."""
        columns = {}
        for name, kind in schema.attributes.items():
            plain = plain_type(kind)
            if name not in self.events.column_names:
                typed = name == schema.type_column
                columns[name] = (
                    pa.repeat(pa.scalar(definition.plan.schema.stream, plain), len(self)) if typed else pa.nulls(len(self), plain)
                )
                continue
            own = self.events[name]
            columns[name] = own if own.type == plain or pa.types.is_dictionary(own.type) else own.cast(plain)
        return dataclasses.replace(self, events=pa.table(columns))

    def _columns(self, definition: EventDefinition, found: Completed, schema: EventSchema) -> pa.Table:
        """The events, which have all columns, and behind them those of the matches."""
        made, ends = found.matches.measures, pa.array(found.ends)
        assert made is not None
        measures = dict(zip(definition.attributes, made.columns, strict=True))
        columns = {}
        for name, kind in schema.attributes.items():
            plain, old = plain_type(kind), self.events[name]
            if name in measures:
                new = measures[name]
            elif name == schema.type_column:
                new = pa.repeat(pa.scalar(definition.name, plain), len(ends))
            elif name == schema.time_column:
                new = old.take(ends)
            elif name in definition.keys:
                new = normalized(old).take(ends)
            else:
                new = pa.nulls(len(ends), old.type)
            columns[name] = _joined(old, new, plain)
        return pa.table(columns)


def _joined(old: Any, new: Any, plain: pa.DataType) -> pa.ChunkedArray:
    kind = old.type if old.type == new.type else plain
    chunks = [chunk.cast(kind) for column in (old, new) for chunk in (column.chunks if isinstance(column, pa.ChunkedArray) else [column])]
    return pa.chunked_array(chunks, kind)


def _in_order(found: Completed) -> Array:
    """Numbers of the matches as their events stand: by what ends them, what starts them, then by their variables. O(n log n), vectorized."""
    ordering = np.lexsort((found.numbers, found.ends))
    first = (np.diff(found.numbers[ordering], prepend=-1) != 0) | (np.diff(found.ends[ordering], prepend=-1) != 0)
    tied = ~(first & np.roll(first, -1))
    alike = ordering[tied]
    if len(alike):
        groups, rows = np.cumsum(first)[tied], np.flatnonzero(tied)
        for piece in _pieces(groups, np.diff(found.matches.marks.offsets)[alike]):
            table = pa.table({"group": groups[piece], "bindings": _bindings(found.matches.take(alike[piece]))})
            ordering[rows[piece]] = alike[piece][pc.sort_indices(table, [("group", "ascending"), ("bindings", "ascending")]).to_numpy()]
    return ordering


def _pieces(groups: Array, marks: Array) -> Iterator[slice]:
    """Matches by group in pieces of some `PIECE_MARKS` marks, none of which cuts a group; marks: of each match."""
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    before = (np.cumsum(marks) - marks)[starts]
    cuts = [*starts[np.flatnonzero(np.diff(before // PIECE_MARKS, prepend=-1))].tolist(), len(groups)]
    return (slice(start, stop) for start, stop in itertools.pairwise(cuts))


def _bindings(found: Matches) -> pa.LargeBinaryArray:
    """The positions of each variable, so that comparing bytes compares positions: for each variable, by name, its number, its positions, then 0.

    Numbers and positions are shifted by 1, so that 0 ends a list.
    """
    marks, labels = found.marks, found.layout.labels
    names = sorted({name for label in labels for name in label})
    lengths = np.array([len(label) for label in labels], np.int64)
    variables = np.array([names.index(name) for label in labels for name in sorted(label)], np.int64)
    # Per mark and variable of its label: the match, the variable and the position.
    counts = lengths[marks.labels]
    mark = np.repeat(np.arange(len(counts)), counts)
    rank = np.arange(len(mark)) - offsets_of(counts)[mark]
    owner = np.repeat(np.arange(len(found)), np.diff(marks.offsets))[mark]
    variable = variables[offsets_of(lengths)[marks.labels[mark]] + rank]
    order = np.lexsort((variable, owner))
    owner, variable, position = owner[order], variable[order], marks.positions[mark][order]
    first = (np.diff(owner, prepend=-1) != 0) | (np.diff(variable, prepend=-1) != 0)
    # Each variable of a match has two words more than positions: in front of them, and behind.
    words = np.zeros(len(position) + 2 * np.count_nonzero(first), ">u8")
    places = np.arange(len(position)) + 2 * np.cumsum(first) - 1
    words[places] = position + 1
    words[places[first] - 1] = variable[first] + 1
    sizes = np.bincount(owner, minlength=len(found)) + 2 * np.bincount(owner[first], minlength=len(found))
    buffers = [None, pa.py_buffer(8 * offsets_of(sizes)), pa.py_buffer(words)]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(found), buffers)
