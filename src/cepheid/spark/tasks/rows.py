"""Matches as the rows that Spark gets: the columns of the output in Spark's types.

Comes in: `Matches` over the columns that travelled. Goes out: Arrow tables with exactly the columns that the driver announced. Imports no Spark.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from cepheid.engine.letters.values import one_chunk
from cepheid.logical.measures import POSITION_COLUMNS
from cepheid.logical.plan import Apply, Measure
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cepheid.engine.output.matches import Layout, Matches
    from cepheid.engine.plan.compiled import Compiled

INDEX = "$index"
"""The position of an event in its partition, shown in events when asked."""

ROWS_PER_PIECE, BYTES_PER_PIECE = 1 << 16, 1 << 26
"""Most events in a piece of what goes back to Spark, and about most bytes: Arrow's 32-bit offsets and Spark's memory want small ones."""


def piece_rows(count: int, size: int) -> int:
    """Into pieces of how many rows a table is to be cut that has `count` of them in `size` bytes."""
    return max(1, min(ROWS_PER_PIECE, BYTES_PER_PIECE * count // max(size, 1)))


def stored_type(kind: pa.DataType) -> pa.DataType:
    """The type that Spark stores a computed value in: its timestamps and intervals count microseconds."""
    if pa.types.is_duration(kind):
        return pa.duration("us")
    return pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) else kind


def _stored(measure: Measure) -> Measure:
    """A measure in its stored type; what that cannot hold is NULL."""
    target = stored_type(measure.type)
    return measure if measure.type == target else Measure(measure.name, Apply("cast", (measure.expression,), target), target)


def stored_measures(compiled: Compiled) -> tuple[tuple[pa.Field, ...], tuple[Measure, ...]]:
    """The measures of a query as Spark stores them: their columns, and what computes them."""
    columns = tuple(field.with_type(stored_type(field.type)) for field in compiled.layout.measures)
    return columns, tuple(map(_stored, compiled.plan.measures))


@record(slots=False)
class View:
    """How a task shows the matches of its query.

    layout, measures: of the matches, in Spark's types. shown: what the events of the output have, in order. index: whether positions are shown.
    """

    layout: Layout
    measures: tuple[Measure, ...]
    shown: tuple[str, ...]
    index: bool

    @classmethod
    def of(
        cls, compiled: Compiled, schema: pa.Schema, *, payload: Sequence[tuple[str, str]], shown: tuple[str, ...], index: bool, time: str
    ) -> View:
        """The view of a task (see `worker.Task`); schema: of the columns that travelled."""
        if compiled.layers:
            # The events of EVENT definitions have attributes that nothing brought here; positions are known once they are there.
            fields = list(compiled.layout.events)
        else:
            fields = [schema.field(column).with_name(name) for name, column in payload]
            fields += [pa.field(INDEX, pa.int64())] if index else []
        columns, measures = stored_measures(compiled)
        layout = dataclasses.replace(compiled.layout, events=pa.schema(fields), time=time, measures=columns)
        return cls(layout, measures, shown, index)

    def pieces(self, matches: Matches) -> Iterator[pa.Table]:
        """One row per match, in tables of bounded size."""
        offsets, most, start = matches.offsets, piece_rows(matches.events.num_rows, matches.events.nbytes), 0
        while start < len(matches):
            stop = max(start + 1, int(np.searchsorted(offsets, offsets[start] + most, "right")) - 1)
            yield self._rows(matches[start:stop])
            start = stop

    def _rows(self, matches: Matches) -> pa.Table:
        table = matches.to_arrow(events=True)
        names = table.column_names
        columns = [table.column(index) for index in range(len(names))]
        if self.layout.variables and self.shown != tuple(self.layout.events.names):
            fixed = len(self.layout.keys) + 2
            columns[fixed:] = [self._shown(table[name], positions) for name, positions in self._positions(matches).items()]
        if self.index:
            ends = [matches.positions[matches.offsets[:-1]], matches.positions[matches.offsets[1:] - 1]]
            place = len(self.layout.keys) + 2  # behind the times
            columns[place:place] = [pa.chunked_array([pa.array(values)]) for values in ends]
            names = [*names[:place], *POSITION_COLUMNS, *names[place:]]
        return pa.table(columns, names).combine_chunks()

    def _positions(self, matches: Matches) -> dict[str, pa.Array | None]:
        """Of each variable the positions of its events, match by match, where the events do not have them; else None."""
        if INDEX not in self.shown or INDEX in self.layout.events.names:
            return dict.fromkeys(self.layout.variables)
        lists = matches.to_arrow()
        return {name: one_chunk(lists[name]).flatten() for name in self.layout.variables}

    def _shown(self, column: pa.ChunkedArray, positions: pa.Array | None) -> pa.ChunkedArray:
        """A variable's lists with only the attributes that the output shows."""
        lists = one_chunk(column)
        events = {INDEX: positions} | dict(zip(self.layout.events.names, lists.flatten().flatten(), strict=True))
        inner = pa.StructArray.from_arrays([events[name] for name in self.shown], names=self.shown)
        return pa.chunked_array([pa.ListArray.from_arrays(lists.offsets, inner)])
