"""Matches as events: a query over a table, layer by layer.

Comes in: a `Compiled` query with EVENT definitions, and a table. Goes out: its matches over the table with the events that the definitions add. Each
definition is a run of its own over what is there before it; then each of its matches is a row behind the event that completes it, and behind what
that event has completed by definitions before (docs/decisions/0011-events.md). All is done in columns, but for matches that begin and end with the
same events: these are put in order one by one.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.engine.input.keys import group, key_codes, normalized
from cepheid.engine.input.order import NEVER
from cepheid.engine.output.matches import concatenate, plain_type
from cepheid.engine.run import batch
from cepheid.errors import LimitError
from cepheid.logical.plan import Begin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cepheid.engine.memory.pools import Array
    from cepheid.engine.output.matches import Matches
    from cepheid.engine.plan.compiled import Compiled
    from cepheid.logical.plan import EventDefinition
    from cepheid.schema import EventSchema


def run(
    compiled: Compiled,
    events: pa.Table,
    *,
    sort: bool = False,
    order: Sequence[str] = (),
    null_keys: str = "drop",
    until: int | str | None = None,
    **options: Any,
) -> Matches:
    """The matches of a query over a table, as `batch.run`; its events are those of the table and those that the definitions add.

    Raises what `batch.run` does, for each definition. Linear in the rows and the matches of each, times how deep definitions use each other.
    """
    times, rows = batch.ordered(compiled.schema, events, sort=sort, order=order)
    stream = _Stream.of(events, times) if rows is None else _Stream.of(events.take(pa.array(rows)), times[rows])
    if until is None:
        until = int(times.max(initial=NEVER))
    schemas = [*(layer.schema for layer in compiled.layers[1:]), compiled.schema]
    for definition, layer, schema in zip(compiled.plan.definitions, compiled.layers, schemas, strict=True):
        try:
            found = batch.run(
                layer, stream.table(layer, null_keys), null_keys=null_keys, until=until, **{**options, "sample": None, "progress": None}
            )
        except LimitError as error:
            raise LimitError(
                f"in the definition of `{definition.name}`: {error.fact}",
                help="make its matches fewer: a shorter WITHIN, conditions on events, SELECT NXT, LAST, MAX or STRICT",
                text=error.text,
                span=error.span,
            ) from None
        stream = stream.with_events(definition, found, schema)
    found = batch.run(compiled, stream.table(compiled, null_keys), null_keys=null_keys, until=until, **options)
    return stream.decided(compiled, found, null_keys) if stream.unknown.any() else found


@dataclass(frozen=True)
class _Stream:
    """Events in the order of the stream.

    times: of each, int64. begins: the row where each begins: its own, or that of the event where its match begins. depth: 0 for what comes in, else
    one more than that of the event that completes it. unknown: whether a match of a definition ends there that is undecided (bool).
    """

    events: pa.Table
    times: Array
    begins: Array
    depth: Array
    unknown: Array

    @classmethod
    def of(cls, events: pa.Table, times: Array) -> _Stream:
        """What comes in."""
        count = events.num_rows
        return cls(events, times, np.arange(count), np.zeros(count, np.int64), np.zeros(count, np.bool_))

    def table(self, compiled: Compiled, null_keys: str) -> pa.Table:
        """The events as a query reads them: where each begins is said in columns (`plan.Begin`), in the query's own partitions."""
        if not compiled.schema.made:
            return self.events
        places = np.arange(len(self.times))
        if compiled.written:
            places = group(*self._keys(compiled, null_keys)).positions(len(self.times))
        times, begun = self.times[self.begins], places[self.begins]
        values = {"place": begun, "time": times, "length": places - begun, "age": self.times - times}
        events = self.events
        for kind, column in values.items():
            events = events.append_column(Begin.of(kind).path[0], pa.array(column, pa.int64()))
        return events

    def _keys(self, compiled: Compiled, null_keys: str) -> tuple[Array, int]:
        """A number for the key of each event, -1 for none; and how many there are."""
        if not compiled.written:
            return np.zeros(len(self.times), np.int64), 1
        return key_codes(self.events, compiled.written, grouped=compiled.written if null_keys == "group" else ())

    def decided(self, compiled: Compiled, found: Matches, null_keys: str) -> Matches:
        """The matches of a query, those undecided that end behind what is unknown of their partition: an event may still come to stand there."""
        keys, count = self._keys(compiled, null_keys)
        known = np.full(count + 1, len(keys))  # the last one is of events without a key
        rows = np.flatnonzero(self.unknown)
        np.minimum.at(known, keys[rows], rows)
        ends = found.end_rows.astype(np.int64)
        open_ = ends > known[keys[ends]]
        if not open_.any():
            return found
        waiting = concatenate(found.layout, [found.undecided, found.take(np.flatnonzero(open_))])
        return dataclasses.replace(found.take(np.flatnonzero(~open_)), waiting=waiting)

    def with_events(self, definition: EventDefinition, found: Matches, schema: EventSchema) -> _Stream:
        """The stream with an event for each match of a definition; schema: of all these events."""
        ends, starts = found.end_rows.astype(np.int64), found.start_rows.astype(np.int64)
        ordering = _in_order(found, starts, ends)
        ends, starts = ends[ordering], starts[ordering]
        depth, behind = self.depth[ends] + 1, self._behind(ends)
        # What is completed deeper stands first: all of it is below the event that the other one is completed by.
        sorting = np.lexsort((-depth, behind))
        ordering, ends, starts, depth, behind = (values[sorting] for values in (ordering, ends, starts, depth, behind))
        old, new = np.arange(len(self.times)), behind + np.arange(len(behind))
        old += np.searchsorted(behind, old, "right")
        rows = np.empty(len(old) + len(new), np.int64)
        rows[old], rows[new] = np.arange(len(old)), len(old) + np.arange(len(new))
        begins = np.concatenate([old[self.begins], old[starts]])
        events = self._columns(definition, found.take(ordering), ends, schema)
        unknown = self.unknown.copy()
        unknown[found.undecided.end_rows.astype(np.int64)] = True
        return _Stream(
            events.take(pa.array(rows)),
            np.concatenate([self.times, self.times[ends]])[rows],
            begins[rows],
            np.concatenate([self.depth, depth])[rows],
            np.concatenate([unknown, np.zeros(len(new), np.bool_)])[rows],
        )

    def _behind(self, ends: Array) -> Array:
        """For each of some rows the first row behind it and all that it completes, and what that completes."""
        behind = np.full(len(ends), len(self.depth))
        for level in np.unique(self.depth[ends]).tolist():
            own = self.depth[ends] == level
            others = np.append(np.flatnonzero(self.depth <= level), len(self.depth))
            behind[own] = others[np.searchsorted(others, ends[own], "right")]
        return behind

    def _columns(self, definition: EventDefinition, found: Matches, ends: Array, schema: EventSchema) -> pa.Table:
        """The events, and behind them those of the matches; ends: the row that completes each."""
        assert found.measures is not None
        measures = dict(zip(definition.attributes, found.measures.columns, strict=True))
        columns = {}
        for name, kind in schema.attributes.items():
            plain = plain_type(kind)
            if name in self.events.column_names:
                old = self.events[name]
            else:
                typed = name == schema.type_column
                old = (
                    pa.repeat(pa.scalar(definition.plan.schema.stream, plain), len(self.times))
                    if typed
                    else pa.nulls(len(self.times), plain)
                )
            if name in measures:
                new = measures[name]
            elif name == schema.type_column:
                new = pa.repeat(pa.scalar(definition.name, plain), len(ends))
            elif name == schema.time_column:
                new = old.take(pa.array(ends))
            elif name in definition.keys:
                new = normalized(old).take(pa.array(ends))
            else:
                new = pa.nulls(len(ends), old.type)
            columns[name] = _joined(old, new, plain)
        return pa.table(columns)


def _joined(old: Any, new: Any, plain: pa.DataType) -> pa.ChunkedArray:
    kind = old.type if old.type == new.type else plain
    chunks = [chunk.cast(kind) for column in (old, new) for chunk in (column.chunks if isinstance(column, pa.ChunkedArray) else [column])]
    return pa.chunked_array(chunks, kind)


def _in_order(found: Matches, starts: Array, ends: Array) -> Array:
    """Numbers of the matches as their events stand: by what ends them, what starts them, then by their variables."""
    ordering = np.lexsort((starts, ends))
    same = np.flatnonzero((np.diff(starts[ordering]) == 0) & (np.diff(ends[ordering]) == 0))
    if not len(same):
        return ordering
    cuts = np.flatnonzero(np.diff(same, prepend=-2) != 1)
    for start, stop in zip(same[cuts].tolist(), [*(same[cuts[1:] - 1] + 2).tolist(), int(same[-1]) + 2], strict=True):
        ordering[start:stop] = sorted(ordering[start:stop].tolist(), key=lambda number: _bindings(found, number))
    return ordering


def _bindings(found: Matches, number: int) -> list[tuple[str, list[int]]]:
    """The positions of each variable of a match, by name."""
    positions, labels, _ = found.marks.match(number)
    names: dict[str, list[int]] = {}
    for position, label in zip(positions.tolist(), labels.tolist(), strict=True):
        for name in found.layout.labels[label]:
            names.setdefault(name, []).append(position)
    return sorted(names.items())
