"""`Query.explore`: its arguments are read, the matches and the live states are asked for once, and a widget shows them.

All that the widget shows is bounded by the limits of the workbench (`cepheid.play.limits`); where something is left out, a note names the limit.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.arguments import asked_of
from cepheid.engine.input.columns import is_streams
from cepheid.engine.input.read import events_of
from cepheid.engine.run.batch import ordered
from cepheid.errors import CepheidError, SetupError
from cepheid.play import limits
from cepheid.play.answers import matches_in
from cepheid.play.inputs import ShownEvents
from cepheid.play.limits import check_events
from cepheid.play.machine import machine_of, said
from cepheid.play.tables import shown_events
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cepheid.notebook.widget import Explorer
    from cepheid.query import Query
    from cepheid.schema import EventSchema


def explore(query: Query, events: object, **how: Any) -> Explorer:
    """A widget over the matches of a query. how: arguments of `Query.run`, all of those that `Query.explore` has. Raises as `Query.explore`."""
    if find_spec("anywidget") is None:
        raise SetupError("the widget needs anywidget, which is not installed", help='pip install "cepheid[notebook]"')
    from cepheid.notebook.widget import Explorer

    return Explorer(shown(query, events, **how))


def shown(query: Query, events: object, **how: Any) -> dict[str, Any]:
    """What the widget draws, as JSON has it.

    Returns `table` as `shown_events`, `found` as `matches_in`, `machine` as `machine_of`, and `notes`: all that is left out, with its limit.
    """
    given = held_of(query, events, how)
    table, found = shown_events(given), matches_in(query, given, until=how["until"])
    notes = [*table.pop("notes"), *found.pop("notes")]
    if is_streams(given.events):
        notes.append("rows are counted over the streams, one stream after the other")
    try:
        machine = machine_of(query, given)
    except CepheidError as error:  # it has matches, and cannot be drawn
        machine = {
            "svg": "",
            "states": 0,
            "initial": 0,
            "finals": [],
            "rounds": {},
            "partitioned": False,
            "steps": [],
            "note": "",
            "refused": said(error),
        }
    return {"table": table, "found": found, "machine": machine, "notes": notes}


@record(slots=False)
class Held(ShownEvents):
    """Events of a notebook, which can be read any number of times.

    held: a table, or {stream name: table}. how: the arguments of `Query.run` that say how to read them. bound: their schema. stream: those that the
    query reads, in their order, and the row of each in `table`.
    """

    held: Any
    how: Mapping[str, Any]
    bound: EventSchema
    stream: tuple[pa.Table, Sequence[int]]

    @property
    def events(self) -> Any:
        """What `Query.run` is given."""
        return self.held

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of `Query.run` that say how to read them."""
        return dict(self.how)

    @property
    def null_keys(self) -> str:
        """What becomes of events with a NULL in their key."""
        return str(self.how["null_keys"])

    def schema(self, query: Query) -> EventSchema:  # noqa: ARG002 - it is that of this query
        """The schema as the query reads it."""
        return self.bound

    def read(self) -> tuple[pa.Table, Sequence[int]]:
        """The events that the query reads, in their order, and the row of each in `table`."""
        return self.stream


def held_of(query: Query, events: object, how: Mapping[str, Any]) -> Held:
    """The events as they are shown and read. Raises as `Query.run`, and LimitError past MAX_EVENTS."""
    time = how["time"]
    held: Any = (
        {name: _table(each, stream=str(name), time=time) for name, each in events.items()}  # type: ignore[attr-defined]  # it is a mapping
        if is_streams(events)
        else _table(events, stream=None, time=time)
    )
    whole = asked_of(query.tree, held, engine=None, **{**how, "until": None}).source
    asked = asked_of(query.tree, held, engine=None, **how)
    table, read = whole.events, asked.source.events
    assert isinstance(table, pa.Table)
    assert isinstance(read, pa.Table)
    check_events(table.num_rows)
    if whole.numbers is not None:
        table = table.take(pa.array(np.argsort(whole.numbers)))
    schema = asked.source.schema
    _, rows = ordered(schema, read, sort=asked.sort, order=asked.order)
    rows = np.arange(read.num_rows) if rows is None else rows
    numbers = asked.source.numbers
    stream = read.take(pa.array(rows)), (rows if numbers is None else numbers[rows]).tolist()
    return Held(table, schema.type_column, schema.time_column, held, how, schema, stream)


def _table(events: object, *, stream: str | None, time: str | None) -> pa.Table:
    """The events as one table; of a reader, and of a DataFrame of Spark, no more is read than may be shown."""
    found = events_of(events, stream=stream, time=time, most=limits.MAX_EVENTS)
    if isinstance(found, pa.Table):
        return found
    pieces, count = [], 0
    for piece in found:
        pieces.append(piece)
        count += piece.num_rows
        check_events(count)
    return pa.Table.from_batches(pieces, found.schema)
