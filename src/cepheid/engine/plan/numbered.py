"""A query over events that carry their row numbers in the input, where these are read piece by piece or stand beside events that matches make.

Comes in: a `Compiled` query. Goes out: the same over events with one column more, `ROW`, which no condition reads and every match keeps. Its
`Matches` become those of the query, with the numbers in their `Origin`.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from cepheid.engine.output.origins import ROW, Origin
from cepheid.engine.plan.compiled import Compiled
from cepheid.records import record

if TYPE_CHECKING:
    from cepheid.engine.output.matches import Layout, Matches
    from cepheid.engine.output.origins import Streams
    from cepheid.schema import EventSchema


@record(slots=False)
class NumberedQuery(Compiled):
    """A query whose events have the column `ROW`."""

    @classmethod
    def of(cls, compiled: Compiled) -> NumberedQuery:
        """The query over such events."""
        return cls(**{field.name: getattr(compiled, field.name) for field in dataclasses.fields(compiled)})

    @property
    def source(self) -> EventSchema:
        """The schema of the events that come in, with their numbers."""
        return with_row(super().source)

    @property
    def schemas(self) -> tuple[EventSchema, ...]:
        """Of the events once those of each EVENT definition are there, which have no number."""
        return tuple(map(with_row, super().schemas))

    @cached_property
    def layout(self) -> Layout:
        """That of the query, with the numbers among the columns of the events."""
        layout = super().layout
        return dataclasses.replace(layout, events=layout.events.append(pa.field(ROW, pa.int64())))


def with_row(schema: EventSchema) -> EventSchema:
    """The schema of such events."""
    return dataclasses.replace(schema, attributes={**schema.attributes, ROW: pa.int64()})


def shown(matches: Matches, *, layout: Layout, streams: Streams | None) -> Matches:
    """Matches of a `NumberedQuery` as those of the query itself; layout: of that one. O(1) for those of tables."""
    waiting = None if matches.waiting is None else shown(matches.waiting, layout=layout, streams=streams)
    origin = Origin(matches.source.column(ROW), streams)
    return dataclasses.replace(matches, layout=layout, source=matches.source.select(layout.events.names), origin=origin, waiting=waiting)
