"""The matches of many queries as one table, whatever each of them shows: one row per match, with the same columns for all.

Comes in: `Matches` of versions of rules, or of several at once that show the same. Goes out: a table with the columns `rule` and `since`, the keys,
`start_time` and `end_time`, and two maps: `events` has the events of each variable as structs, and `measures` the value of each measure as text.
Columnar, but for measures that are lists.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.engine.letters.values import no_events, one_chunk
from cepheid.engine.output.matches import plain_type, python_values
from cepheid.engine.output.origins import ROW
from cepheid.errors import NotSupportedError, SchemaError, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cepheid.engine.memory.pools import Array
    from cepheid.engine.output.matches import Layout, Matches

OWN = ("rule", "since", "start_time", "end_time", "events", "measures")
"""The columns of the table beside the keys."""


def table_schema(source: pa.Schema, time: str, keys: Sequence[str]) -> pa.Schema:
    """The schema of the table over events of a schema. time: their time column.

    Raises SchemaError for keys that are no attributes, or have the name of another column.
    """
    names = [name for name in source.names if name != ROW]
    missing = [key for key in keys if key not in names]
    if missing:
        raise SchemaError(f"the events have no {quoted(missing)} to be a key", help=f"they have {quoted(names)}")
    if taken := [key for key in keys if key in OWN]:
        raise SchemaError(f"the table would have two columns {quoted(taken)}", help="rename the column of the events")
    kind = source.field(time).type
    event = pa.struct([(field.name, plain_type(field.type)) for field in source if field.name != ROW])
    return pa.schema(
        [
            pa.field("rule", pa.string()),
            pa.field("since", kind),
            *(pa.field(key, plain_type(source.field(key).type)) for key in keys),
            pa.field("start_time", kind),
            pa.field("end_time", kind),
            pa.field("events", pa.map_(pa.string(), pa.list_(event))),
            pa.field("measures", pa.map_(pa.string(), pa.string())),
        ]
    )


def check_fits(layout: Layout, schema: pa.Schema, keys: Sequence[str]) -> None:
    """Raise NotSupportedError for a query whose matches do not fit the table: it has other keys, or shows attributes that definitions have made."""
    missing = [key for key in keys if key not in layout.keys]
    if missing:
        has = f"it has {quoted(layout.keys)}" if layout.keys else "it has none"
        raise NotSupportedError(
            f"the query is not partitioned by {quoted(missing)}: {has}",
            help=f"all rules of one call have PARTITION BY {', '.join(keys)}, or more",
        )
    known = {field.name for field in schema.field("events").type.item_type.value_type}
    made = [field.name for field in layout.events if field.name not in known and field.name != ROW]
    if made and not layout.measures:
        raise NotSupportedError(
            f"the query shows {quoted(made)} of events that definitions make, and the events of other rules have no such attribute",
            help="name what you want to see of them as measures: SELECT x.name AS name WHERE ..",
        )


def table_of(found: Iterable[tuple[str, Any, Matches]], schema: pa.Schema, keys: Sequence[str]) -> pa.Table:
    """The table of matches; found: (rule, since, its matches), which fit."""
    tables = [
        rows_of([(rule, since)], np.zeros(len(matches), np.int64), matches, schema, keys) for rule, since, matches in found if len(matches)
    ]
    return pa.concat_tables(tables) if tables else no_events(schema)


def rows_of(versions: Sequence[tuple[str, Any]], owners: Array, matches: Matches, schema: pa.Schema, keys: Sequence[str]) -> pa.Table:
    """The table of matches, which fit and are shown alike. versions: (rule, since). owners: of each match the place in these."""
    own, count, of = matches.to_arrow(events=True), len(matches), pa.array(owners)
    layout = matches.layout
    events, measures = schema.field("events").type, schema.field("measures").type
    shown = [] if layout.measures else list(layout.variables)
    named = {field.name: own[field.name] for field in layout.measure_columns}
    columns = [
        pa.array([rule for rule, _ in versions], pa.string()).take(of),
        pa.array([since for _, since in versions], schema.field("since").type).take(of),
        *(own[key].cast(schema.field(key).type) for key in keys),
        *(own[name] for name in ("start_time", "end_time")),
        _map_of({name: _structs(own[name], events.item_type) for name in shown}, count, events),
        _map_of({name: _texts(column) for name, column in named.items()}, count, measures),
    ]
    return pa.table(columns, schema=schema)


def _map_of(columns: dict[str, pa.Array], count: int, kind: pa.MapType) -> pa.Array:
    """A map of each row from the names of some columns to their values."""
    width = len(columns)
    offsets = pa.array(np.arange(count + 1) * width, pa.int32())
    if not width:
        return pa.MapArray.from_arrays(offsets, pa.array([], pa.string()), pa.array([], kind.item_type))
    names = pa.array(list(columns)).take(pa.array(np.tile(np.arange(width), count)))
    order = np.arange(width * count).reshape(width, count).T.ravel()
    values = pa.chunked_array(list(columns.values()), kind.item_type).take(pa.array(order))
    return pa.MapArray.from_arrays(offsets, names, one_chunk(values)).cast(kind)


def _structs(column: pa.ChunkedArray, kind: pa.ListType) -> pa.Array:
    """Lists of events with the fields of this type; what an event lacks is NULL."""
    lists = one_chunk(column)
    if lists.type == kind:
        return lists
    values = lists.flatten()
    fields = [
        values.field(field.name).cast(field.type) if values.type.get_field_index(field.name) >= 0 else pa.nulls(len(values), field.type)
        for field in kind.value_type
    ]
    lengths = lists.value_lengths().fill_null(0).to_numpy()
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays(fields, fields=list(kind.value_type)))


def _texts(column: pa.ChunkedArray) -> pa.Array:
    """Values as text, NULL as NULL; lists as JSON."""
    if pa.types.is_nested(column.type):
        return pa.array([None if value is None else json.dumps(value, default=str) for value in python_values(column)], pa.string())
    return one_chunk(column.cast(pa.string()))
