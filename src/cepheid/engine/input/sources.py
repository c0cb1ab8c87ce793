"""The source of a query: one stream, or several that are merged into one; its events, their schema and where each comes from."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.engine.input.column_types import common_type
from cepheid.engine.input.columns import is_streams
from cepheid.engine.input.event_times import check_order, check_order_columns, in_order, times_of
from cepheid.engine.input.read import events_of
from cepheid.engine.output.origins import ROW, Origin, Streams
from cepheid.errors import SchemaError, did_you_mean, nearest, quoted
from cepheid.records import record
from cepheid.schema import (
    DEFAULT_TIME,
    DEFAULT_TYPE,
    STREAM_COLUMN,
    EventSchema,
    can_be_type,
    check_doubles,
    schema_of,
    unreadable_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cepheid.engine.memory.pools import Array
    from cepheid.language.syntax import Query as Tree


@record(slots=False)
class Source:
    """One input, ready to be bound: its events, and what is known of them.

    A reader has one column more, `ROW`, with the number of each event in the input. numbers: those of a table (int64); None: they are its rows.
    streams: of {stream name: events}, which `numbers` are counted over.
    """

    events: pa.Table | pa.RecordBatchReader
    schema: EventSchema
    numbers: Array | None = None
    streams: Streams | None = None

    @property
    def origin(self) -> Origin:
        """Where the events of a table come from."""
        return Origin(self.numbers, self.streams)

    @property
    def numbered(self) -> pa.Table | pa.RecordBatchReader:
        """The events with the column `ROW`."""
        if isinstance(self.events, pa.RecordBatchReader):
            return self.events
        return numbered(self.events, np.arange(self.events.num_rows) if self.numbers is None else self.numbers)


def numbered(events: pa.Table, numbers: Array) -> pa.Table:
    """Events with the column `ROW`."""
    return events.append_column(ROW, pa.array(numbers, pa.int64()))


def _numbered_reader(events: pa.RecordBatchReader) -> pa.RecordBatchReader:
    schema = events.schema.append(pa.field(ROW, pa.int64()))

    def read() -> Iterator[pa.RecordBatch]:
        first = 0
        for batch in events:
            rows = pa.array(np.arange(first, first + batch.num_rows))
            yield pa.record_batch([*batch.columns, rows], schema=schema)
            first += batch.num_rows

    return pa.RecordBatchReader.from_batches(schema, read())


def used_types(tree: Tree) -> frozenset[str]:
    """The event types that a query names, without those that its EVENT definitions make."""
    from cepheid.language.syntax import Type

    todo: list[Any] = [tree]
    found: set[str] = set()
    while todo:
        node = todo.pop()
        if isinstance(node, Type) and node.name is not None:
            found.add(node.name)
        todo.extend(node.children())
    return frozenset(found.difference(definition.name for definition in tree.definitions))


def source_of(
    events: object,
    tree: Tree,
    *,
    type: str | None,  # noqa: A002 - public word
    time: str | None,
    sort: bool = False,
    order: Sequence[str] = (),
    at_once: bool = False,
) -> Source:
    """The input of a query: one stream, or ({stream name: events}) several, merged in event-time order, ties as `merge` says.

    at_once: a reader is read as a whole. Raises SchemaError and InputError as `events_of`, `schema_of` and `merge`.
    """
    if is_streams(events):
        return merge(events, tree, type=type, time=time, sort=sort, order=order)  # type: ignore[arg-type]  # it is a mapping
    table = events_of(events, time=time)
    schema = schema_of(table.schema, type=type, time=time, streams=tree.streams, used=used_types(tree))
    if isinstance(table, pa.RecordBatchReader):
        table = table.read_all() if at_once else _numbered_reader(table)
    return Source(table, schema)


def up_to(source: Source, until: int) -> Source:
    """The source without its events after `until`, in steps of the time column; a reader, which is in order, is read no further."""
    events, time = source.events, source.schema.time_column
    assert time is not None
    if isinstance(events, pa.RecordBatchReader):
        return dataclasses.replace(source, events=pa.RecordBatchReader.from_batches(events.schema, _read_up_to(events, time, until)))
    chosen = times_of(events, time) <= until
    count = int(np.count_nonzero(chosen))
    if chosen[:count].all():
        numbers = None if source.numbers is None else source.numbers[:count]
        return dataclasses.replace(source, events=events.slice(0, count), numbers=numbers)
    numbers = np.flatnonzero(chosen) if source.numbers is None else source.numbers[chosen]
    return dataclasses.replace(source, events=events.filter(pa.array(chosen)), numbers=numbers)


def _read_up_to(events: pa.RecordBatchReader, time: str, until: int) -> Iterator[pa.RecordBatch]:
    for piece in events:
        chosen = times_of(piece, time) <= until
        yield piece.filter(pa.array(chosen))
        if not chosen.all():
            return


def merge(
    streams: Mapping[Any, object],
    tree: Tree,
    *,
    type: str | None = None,  # noqa: A002 - public word
    time: str | None = None,
    sort: bool = False,
    order: Sequence[str] = (),
) -> Source:
    """Several streams as one table in event-time order; ties go by FROM (or the mapping), then by the columns of `order`, then the row order.

    An event's type is its stream's name where the query uses that name as a type or the stream has no type column; else its type column.
    Attributes that a stream lacks are NULL. Raises SchemaError for missing streams, doubled columns, attributes of types that do not go
    together, and a missing time column; InputError for an unsorted stream unless `sort`.
    """
    names = tuple(dict.fromkeys(tree.streams or streams))
    for name in names:
        if name not in streams:
            raise SchemaError(
                f"the query reads the stream `{name}`, and the input has no such stream",
                help=[*did_you_mean(name, map(str, streams)), f"the input has {quoted(map(str, streams)) or 'no streams'}"],
            )
    if not names:
        raise SchemaError("the input has no streams", help="pass {stream name: events}")
    tables = {name: whole(name, streams[name], time=time) for name in names}
    time = _common_time(tables, time)
    used = used_types(tree)
    type_column = type or _type_name(tables, used)
    typed = [_typed(name, table, type_column, named=name in used) for name, table in tables.items()]
    if time is not None:
        for name, table in tables.items():
            if not sort:
                check_order(times_of(table, time, stream=name), table[time], stream=name)
    check_order_columns(order, list(dict.fromkeys(column for table in tables.values() for column in table.column_names)))
    origins = Streams.of({name: table.num_rows for name, table in tables.items()})
    numbers = [start + np.arange(table.num_rows) for start, table in zip(origins.starts.tolist(), typed, strict=True)]
    if order and time is not None:
        own = [[name for name in order if name in table.column_names] for table in tables.values()]
        rows = [in_order(table, times_of(table, time), names) for table, names in zip(typed, own, strict=True)]
        typed = [table.take(pa.array(moved)) for table, moved in zip(typed, rows, strict=True)]
        numbers = [own_numbers[moved] for own_numbers, moved in zip(numbers, rows, strict=True)]
    merged, together = _concatenate(names, typed, time), np.concatenate(numbers)
    if time is not None:
        moved = in_order(merged, times_of(merged, time), ())
        merged, together = merged.take(pa.array(moved)), together[moved]
    types = None
    if all(name in used or _type_column(table, type_column) is None for name, table in tables.items()):
        types = {name: frozenset(table.column_names) for name, table in tables.items()}
    unreadable = {name: said for table in tables.values() for name, said in unreadable_of(table.schema).items()}
    schema = EventSchema(
        dict(zip(merged.schema.names, merged.schema.types, strict=True)), type_column, None, types, time, unreadable=unreadable
    )
    schema.check_readable(schema.attributes)  # readable in another stream
    return Source(merged, schema, together, origins)


def whole(name: str | None, events: object, *, time: str | None = None) -> pa.Table:
    """Events as one table, also those that can be read only once; name: of their stream, None for the only one. Raises as `events_of`."""
    table = events_of(events, stream=name, time=time)
    check_doubles("the input" if name is None else f"the stream `{name}`", table.schema.names)
    return table.read_all() if isinstance(table, pa.RecordBatchReader) else table


def _common_time(tables: Mapping[str, pa.Table], time: str | None) -> str | None:
    wanted = time or DEFAULT_TIME
    lacking = [name for name, table in tables.items() if wanted not in table.column_names]
    if not lacking:
        return wanted
    if len(tables) == 1 and time is None:
        return None
    raise no_common_time(lacking[0], wanted, {name: table.schema for name, table in tables.items()})


def no_common_time(lacking: str, wanted: str, streams: Mapping[str, pa.Schema]) -> SchemaError:
    """The error for streams to merge of which one lacks the time column: the cure is a timestamp that all have, or another name."""
    own = streams[lacking]
    times = [{item.name for item in schema if pa.types.is_timestamp(item.type)} for schema in streams.values()]
    shared = next((name for name in own.names if all(name in each for each in times)), None)
    near = nearest(wanted, own.names)
    cure = f"{shared!r}, a timestamp in all of them" if shared else f"; did you mean `{near}`?" if near else ""
    return SchemaError(
        f"the stream `{lacking}` has no time column `{wanted}`",
        help=(f"streams are merged by event time: name its column with time={cure}", f"`{lacking}` has {quoted(own.names)}"),
    )


def _type_name(tables: Mapping[str, pa.Table], used: frozenset[str]) -> str:
    """The name of the merged type column: `type`, unless a stream whose name is its type has an attribute of that name."""
    taken = any(DEFAULT_TYPE in table.column_names and name in used for name, table in tables.items())
    return STREAM_COLUMN if taken else DEFAULT_TYPE


def _type_column(table: pa.Table, name: str) -> str | None:
    wanted = DEFAULT_TYPE if name == STREAM_COLUMN else name
    return wanted if wanted in table.column_names else None


def _typed(name: str, table: pa.Table, type_column: str, *, named: bool) -> pa.Table:
    """The table with the type column of the merged stream."""
    own = None if named else _type_column(table, type_column)
    if own == type_column:
        if not can_be_type(table.schema.field(own).type):
            raise SchemaError(f"the type column `{own}` of the stream `{name}` is {table.schema.field(own).type}, not text", help="cast it")
        return table.set_column(table.column_names.index(own), own, table[own].cast(pa.string()))
    if own is not None:
        types = table[own].cast(pa.string())
    else:
        types = pa.DictionaryArray.from_arrays(np.zeros(table.num_rows, np.int32), pa.array([name])).dictionary_decode()
    if type_column in table.column_names:
        raise SchemaError(
            f"the stream `{name}` has an attribute `{type_column}` and no type", help="rename it, or give another name with type="
        )
    return table.append_column(type_column, types)


def _concatenate(names: Sequence[str], tables: Sequence[pa.Table], time: str | None) -> pa.Table:
    kinds: dict[str, pa.DataType] = {}
    first: dict[str, str] = {}
    for name, table in zip(names, tables, strict=True):
        for item in table.schema:
            kind = kinds.setdefault(item.name, item.type)
            common = common_type(kind, item.type)
            if common is None:
                raise SchemaError(
                    f"`{item.name}` is {kind} in the stream `{first[item.name]}` and {item.type} in `{name}`",
                    help="cast one of them" + ("" if item.name == time else ", or rename it"),
                )
            kinds[item.name] = common
            first.setdefault(item.name, name)
    try:
        return pa.concat_tables([_in_decimals(table, kinds) for table in tables], promote_options="permissive")
    except pa.ArrowInvalid as error:
        raise SchemaError(f"the columns of the streams do not fit together: {error}", help="cast them to one type before") from None


def _in_decimals(table: pa.Table, kinds: Mapping[str, pa.DataType]) -> pa.Table:
    """The table with the columns in their common types that Arrow does not find itself: those of decimals and other numbers."""
    for place, item in enumerate(table.schema):
        mixed = pa.types.is_decimal(item.type) != pa.types.is_decimal(kinds[item.name])
        if mixed and not pa.types.is_null(item.type):
            table = table.set_column(place, item.name, table[item.name].cast(kinds[item.name]))
    return table.replace_schema_metadata(None)
