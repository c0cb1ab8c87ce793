"""The events as a table: the first ones as texts, how many there are, and where each stands on the axis of a time line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cepheid.engine.output.matches import python_value
from cepheid.play import inputs
from cepheid.play.limits import MAX_SHOWN_EVENTS
from cepheid.schema import DEFAULT_TIME, DEFAULT_TYPE

if TYPE_CHECKING:
    from cepheid.play.inputs import ShownEvents


def shown_events(given: ShownEvents) -> dict[str, Any]:
    """The events as they are drawn.

    Returns `columns`, `rows` (texts, of the first `MAX_SHOWN_EVENTS`), `count`, the `clock` of the time line, the columns with the `time` and the
    `type`, None without, and `notes`.
    """
    table = given.table
    time = given.time or (DEFAULT_TIME if DEFAULT_TIME in table.column_names else None)
    columns = [{"name": field.name, "type": str(field.type), "number": inputs.is_number(field.type)} for field in table.schema]
    cells = [[inputs.shown(python_value(value)) for value in column.slice(0, MAX_SHOWN_EVENTS)] for column in table.columns]
    notes = []
    if table.num_rows > MAX_SHOWN_EVENTS:
        notes.append(f"the first {MAX_SHOWN_EVENTS:,} of {table.num_rows:,} events are shown; all are evaluated")
    if not inputs.times_sorted(given, time):
        notes.append(f"the events are not in the order of `{time}`: they are sorted before they are evaluated")
    return {
        "columns": columns,
        "rows": [list(row) for row in zip(*cells, strict=True)],
        "count": table.num_rows,
        "clock": inputs.clock_of(given, time),
        "time": time,
        "type": given.type or (DEFAULT_TYPE if DEFAULT_TYPE in table.column_names else None),
        "notes": notes,
    }
