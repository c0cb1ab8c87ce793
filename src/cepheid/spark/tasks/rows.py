"""Matches as the rows that Spark gets: the columns of the output in Spark's types.

Comes in: `Matches` over the columns that travelled. Goes out: Arrow tables with exactly the columns that the driver announced. Imports no Spark.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from cepheid.engine.letters.values import one_chunk, plain, raw
from cepheid.logical.measures import POSITION_COLUMNS
from cepheid.logical.plan import Apply, Measure
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cepheid.engine.output.identity import Repeats
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
    identified: the column of identities, and the name of the query among several; None: there is no such column.
    """

    layout: Layout
    measures: tuple[Measure, ...]
    shown: tuple[str, ...]
    index: bool
    identified: tuple[str, str | None] | None = None

    @classmethod
    def of(
        cls,
        compiled: Compiled,
        schema: pa.Schema,
        *,
        payload: Sequence[tuple[str, str]],
        shown: tuple[str, ...],
        index: bool,
        time: str,
        identified: tuple[str, str | None] | None = None,
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
        return cls(layout, measures, shown, index, identified)

    def pieces(self, matches: Matches, repeats: Repeats, *, last: bool = False) -> Iterator[pa.Table]:
        """One row per match, in tables of bounded size.

        repeats: the rows that came before and may be equal. last: rows that follow can only be equal to some that end at the last row's time.
        """
        offsets, most, start = matches.offsets, piece_rows(matches.events.num_rows, matches.events.nbytes), 0
        while start < len(matches):
            stop = max(start + 1, int(np.searchsorted(offsets, offsets[start] + most, "right")) - 1)
            yield self._rows(matches[start:stop], repeats, last=last)
            start = stop

    def _rows(self, matches: Matches, repeats: Repeats, *, last: bool) -> pa.Table:
        table = matches.to_arrow(events=True)
        names = table.column_names
        columns = [table.column(index) for index in range(len(names))]
        if self.layout.variables and self.shown != tuple(self.layout.events.names):
            fixed = len(self.layout.keys) + 2
            columns[fixed:] = [self._shown(table[name], positions) for name, positions in self._positions(matches).items()]
        found = self._identities(dict(zip(names, columns, strict=True)), matches, repeats, last=last)
        if self.index:
            ends = [matches.positions[matches.offsets[:-1]], matches.positions[matches.offsets[1:] - 1]]
            place = len(self.layout.keys) + 2  # behind the times
            columns[place:place] = [pa.chunked_array([pa.array(values)]) for values in ends]
            names = [*names[:place], *POSITION_COLUMNS, *names[place:]]
        if self.identified is not None:
            columns, names = [pa.chunked_array([found]), *columns], [self.identified[0], *names]
        return pa.table(columns, names).combine_chunks()

    def _identities(self, columns: dict[str, pa.ChunkedArray], matches: Matches, repeats: Repeats, *, last: bool) -> pa.Array | None:
        """The identities of matches, given by the columns of their rows without positions; None where the output has none."""
        if self.identified is None:
            return None
        if INDEX in self.shown:
            columns |= {
                name: self._of_events(columns[name], tuple(each for each in self.shown if each != INDEX)) for name in self.layout.variables
            }
        found = dataclasses.replace(matches, name=self.identified[1]).identified(columns, repeats)
        if last:
            repeats.end(raw(plain(one_chunk(columns["end_time"]))))
        return found

    def _of_events(self, column: pa.ChunkedArray, names: tuple[str, ...]) -> pa.ChunkedArray:
        """A variable's lists, as the output has them, with some of the attributes."""
        lists = one_chunk(column)
        events = dict(zip(self.shown, lists.flatten().flatten(), strict=True))
        kind = pa.struct([pa.field(name, events[name].type) for name in names])
        inner = pa.Array.from_buffers(kind, len(lists.flatten()), [None], children=[events[name] for name in names])
        return pa.chunked_array([pa.ListArray.from_arrays(lists.offsets, inner)])

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
