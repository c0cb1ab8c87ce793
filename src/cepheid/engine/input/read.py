"""Input from users becomes Arrow: tables, DataFrames, lists of dicts, streams to merge; event times are read and checked.

Comes in: anything with events. Goes out: a `pyarrow.Table` (or a `RecordBatchReader`, not yet read), its `EventSchema`, and event times as int64.
Every unusable input has its own error here; nothing is dropped or reordered unless the caller asks for it.
"""

from __future__ import annotations

import bisect
import dataclasses
import datetime as dt
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.input import files
from cepheid.engine.input.columns import is_streams, table_of_columns
from cepheid.engine.input.keys import normalized
from cepheid.engine.input.time_texts import with_times
from cepheid.engine.letters.values import plain, raw
from cepheid.engine.output.matches import python_value, without_columns
from cepheid.engine.output.origins import ROW, Origin, Streams
from cepheid.errors import InputError, LimitError, SchemaError, did_you_mean, nearest, quoted
from cepheid.logical.types import GIVEN, canonical, family
from cepheid.records import record
from cepheid.schema import (
    DEFAULT_TIME,
    DEFAULT_TYPE,
    STREAM_COLUMN,
    EventSchema,
    can_be_type,
    check_doubles,
    schema_of,
    time_casts,
    time_unit,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cepheid.engine.memory.pools import Array
    from cepheid.language.syntax import Query as Tree

EVENTS = (
    "pass a pyarrow.Table or RecordBatchReader, a DataFrame, the path of a Parquet or Arrow file, a list of dicts, a dict of lists, "
    "or {stream name: events} for several streams"
)

COLUMNS = "a dict whose values are tables, files or lists of dicts is read as {stream name: events}; columns are all lists or arrays"

UNFIT = (ValueError, TypeError, NotImplementedError, OverflowError)
"""What Arrow raises for values that it cannot hold."""

MAX_LEVELS = 60
"""Levels of an attribute's type: snapshots and Arrow's C interface hold 62, and matches put events two levels deeper."""


def events_of(events: object, *, stream: str | None = None, time: str | None = None) -> pa.Table | pa.RecordBatchReader:
    """One stream of events in `plain_schema`, with ISO 8601 texts in the time column as times; a reader stays unread but for its first batches.

    Takes the arguments of `table_of`, and raises what it and `with_times` raise.
    """
    return with_times(without_views(table_of(events, stream=stream, time=time)), time or DEFAULT_TIME, stream=stream)


def table_of(events: object, *, stream: str | None = None, time: str | None = None) -> pa.Table | pa.RecordBatchReader:
    """One stream of events as Arrow.

    events: Table, RecordBatch, RecordBatchReader, a DataFrame of pandas or (which is collected) of Spark, anything with ``__arrow_c_stream__`` or
    ``__arrow_c_array__``, the path of a Parquet or Arrow file, a list of dicts (missing attributes are NULL), or a dict of lists or arrays. stream:
    its name among several, for messages. time: the time column as the user named it, which the index of a DataFrame may be. Raises InputError for
    anything else and for values that Arrow cannot hold, SchemaError for values of mixed types.
    """
    what, help_ = ("events", (EVENTS,)) if stream is None else (f"the stream `{stream}`", (EVENTS, COLUMNS))
    if isinstance(events, pa.Table | pa.RecordBatchReader):
        return events
    if isinstance(events, pa.RecordBatch):
        return pa.Table.from_batches([events])
    if type(events).__module__.partition(".")[0] == "pandas" and hasattr(events, "columns"):
        return _pandas(events, time)
    if type(events).__module__.startswith("pyspark.sql") and hasattr(events, "toArrow"):
        return events.toArrow()
    if files.is_path(events):
        return files.read(events)
    if isinstance(events, Mapping) and events and not is_streams(events):
        return table_of_columns(events, _attribute)
    try:
        if hasattr(events, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(events)
        if hasattr(events, "__arrow_c_array__"):
            return pa.Table.from_batches([pa.record_batch(events)])
    except pa.ArrowInvalid as error:
        raise InputError(f"{what} cannot be a {type(events).__name__}: {error}", help=help_) from None
    # A column, an array and groups of rows are iterable, and have no events in them.
    columnar = type(events).__module__.partition(".")[0] in ("pandas", "numpy")
    if columnar or isinstance(events, str | bytes | Mapping) or not isinstance(events, Iterable):
        raise InputError(f"{what} cannot be a {type(events).__name__}", help=help_)
    return _rows(list(events), stream)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The schema in types that Arrow puts together from any batches, at any depth: see `_taken`.

    Raises LimitError for an attribute that nests deeper than `MAX_LEVELS`.
    """
    for field in schema:
        _check_levels(field)
    return pa.schema([field.with_type(_taken(field.type)) for field in schema], schema.metadata)


def _check_levels(field: pa.Field) -> None:
    kinds = [field.type]
    for _ in range(MAX_LEVELS + 1):
        kinds = [kind.field(index).type for kind in kinds for index in range(kind.num_fields)]
        if not kinds:
            return
    raise LimitError(f"`{field.name}` nests deeper than {MAX_LEVELS} levels (MAX_LEVELS)", help="flatten it, or give it as text")


def _taken(kind: pa.DataType) -> pa.DataType:
    """The type that stands for `kind` where Arrow has to copy it.

    Values for runs, large strings and binaries for views: Arrow's take has neither. Dictionaries have indices of 32 bits or more: two batches
    together have more values than each of them.
    """
    if pa.types.is_run_end_encoded(kind):
        return _taken(kind.value_type)
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    if pa.types.is_dictionary(kind):
        index = kind.index_type if kind.index_type.bit_width >= 32 else pa.int32()
        return pa.dictionary(index, _taken(kind.value_type), kind.ordered)
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_taken(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_taken(kind.key_type), kind.item_field.with_type(_taken(kind.item_type)), kind.keys_sorted)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(_taken(kind.value_type)), kind.list_size)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        item = kind.value_field.with_type(_taken(kind.value_type))
        return pa.list_(item) if pa.types.is_list(kind) else pa.large_list(item)
    return kind


def schema_in(given: object, *, time: str | None = None) -> pa.Schema:
    """The `plain_schema` of a schema, or of a table, reader or DataFrame of such events; raises InputError for anything else.

    time: as for `table_of`.
    """
    own = getattr(given, "schema", None)
    if isinstance(given, pa.Schema) or isinstance(own, pa.Schema):
        return plain_schema(given if isinstance(given, pa.Schema) else own)
    if type(given).__module__.partition(".")[0] == "pandas" and hasattr(given, "columns"):
        return plain_schema(_pandas(given, time).schema)
    try:
        if hasattr(given, "__arrow_c_stream__"):
            return plain_schema(pa.RecordBatchReader.from_stream(given).schema)
        if hasattr(given, "__arrow_c_schema__"):
            return plain_schema(pa.schema(given))
    except pa.ArrowInvalid:
        pass
    raise InputError(f"a schema cannot be a {type(given).__name__}", help="pass a pyarrow.Schema, or a table or DataFrame that has it")


def without_views(events: pa.Table | pa.RecordBatchReader) -> pa.Table | pa.RecordBatchReader:
    """The events in `plain_schema`; a reader stays unread."""
    schema = plain_schema(events.schema)
    if schema == events.schema:
        return events
    if not any(pa.types.is_run_end_encoded(kind) for kind in events.schema.types):
        return events.cast(schema)
    if isinstance(events, pa.RecordBatchReader):
        return pa.RecordBatchReader.from_batches(schema, (_decoded(batch, schema) for batch in events))
    return pa.Table.from_batches([_decoded(batch, schema) for batch in events.to_batches()], schema)


def _decoded(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [plain(column) if pa.types.is_run_end_encoded(column.type) else column for column in batch.columns]
    return pa.record_batch([column.cast(field.type) for column, field in zip(columns, schema, strict=True)], schema)


def _pandas(frame: Any, time: str | None) -> pa.Table:
    names = [str(name) for name in frame.columns]
    index = _index_columns(frame, names, time)
    check_doubles("the DataFrame", [*names, *index])
    if time is not None and time not in (*names, *index) and frame.index.names == [None] and frame.index.dtype.kind not in "iu":
        raise SchemaError(
            f"the DataFrame has no column `{time}`, and its index has no name", help=f"if that is the time: frame.rename_axis({time!r})"
        )
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
        levels = {name: pa.array(values.to_series()) for name, values in index.items()}
    except UNFIT as error:
        reason = "; ".join(map(str, error.args))
        raise SchemaError(f"the DataFrame cannot be read as Arrow: {reason}", help="give each column one type") from None
    return pa.table({**levels, **dict(zip(table.column_names, table.columns, strict=True))}) if levels else table


def _index_columns(frame: Any, names: Sequence[str], time: str | None) -> dict[str, Any]:
    """The attributes in the index of a DataFrame: its levels that have a name, and what is the time column.

    An index of times is, if it has that name; or if no column has it, and the name is the default or the index has none.
    """
    wanted, index = time or DEFAULT_TIME, frame.index
    if type(index).__name__ == "DatetimeIndex":
        free = wanted not in names and (wanted == DEFAULT_TIME or index.name is None)
        if free or index.name == wanted:
            return {wanted: index}
    levels = {str(name): index.get_level_values(level) for level, name in enumerate(index.names) if name is not None}
    return {name: values for name, values in levels.items() if name not in names}


def _rows(rows: list[Any], stream: str | None) -> pa.Table:
    """A table from dicts; the attributes are the keys of all of them, in the order of their first appearance."""
    wrong = next((number for number, row in enumerate(rows) if not isinstance(row, Mapping)), None)
    if wrong is not None:
        fact = f"event {wrong} of the {'list' if stream is None else f'stream `{stream}`'} is a {type(rows[wrong]).__name__}, not a dict"
        raise InputError(fact, help="pass a list of dicts" if stream is None else ("pass a list of dicts", COLUMNS))
    if not rows:
        raise SchemaError("an empty list says nothing about its attributes", help="pass an empty pyarrow.Table with a schema instead")
    name = next((name for row in rows for name in row if not isinstance(name, str)), "")
    if not isinstance(name, str):
        raise SchemaError(f"the attribute name {name!r} is not text", help="name each attribute by a str")
    columns = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        columns[name] = _attribute(name, values)
    try:
        return pa.table(columns) if columns else without_columns(len(rows))
    except UnicodeEncodeError as error:
        raise SchemaError(f"the attribute name {error.object!r} has half of a surrogate pair", help="give it as proper Unicode") from None


def _attribute(name: str, values: list[Any]) -> pa.Array:
    """The values of one attribute; raises InputError for the first that Arrow cannot hold at all, SchemaError for types that do not go together."""
    try:
        found = _inferred(values)
    except UNFIT:
        pass
    else:
        # Arrow takes the zone of the first and drops or adds it to the others.
        if len({value.tzinfo is None for value in values if isinstance(value, dt.datetime)}) > 1:
            raise SchemaError(f"some values of `{name}` have a time zone and some have none", help="give all of them a time zone, or none")
        # Arrow takes the type of the first, and drops the time of day of the others.
        if len({isinstance(value, dt.datetime) for value in values if isinstance(value, dt.date)}) > 1:
            raise SchemaError(f"some values of `{name}` are days and some are times", help="give all of them as datetime, or all as date")
        return found
    for row, value in enumerate(values):
        try:
            _inferred([value])
        except UNFIT as error:
            raise InputError(
                f"`{name}` of event {row} of the list is {_short(value)}, which Arrow cannot hold: {error}",
                help="integers have 64 bits (signed if nested), decimals 76 digits (and no NaN or infinity), and texts are Unicode; None is NULL",
            ) from None
    row = bisect.bisect_left(range(len(values)), True, key=lambda last: _mixed(values[: last + 1]))
    other = next((other for other in range(row) if _mixed([values[other], values[row]])), None)
    before = "others before it" if other is None else f"{_short(values[other])} in event {other}"
    integers = _integers(values[: row + 1])
    raise SchemaError(
        f"the values of `{name}` are not of one type: {_short(values[row])} in event {row} of the list, {before}",
        help="no integer type holds both: give them as decimal.Decimal" if integers else _one_type(values[: row + 1]),
    )


def _one_type(values: list[Any]) -> str:
    """What to do about values of several types."""
    if any(isinstance(value, float) and math.isnan(value) for value in values):
        return "nan is a number: write None for what is missing; a DataFrame itself, instead of its dicts or lists, has NULL there"
    return "give each attribute one type"


def _inferred(values: list[Any]) -> pa.Array:
    """The values in the type that Arrow infers, but two that it does not: uint64 for integers that need it, nanoseconds for times of pandas."""
    try:
        array = pa.array(values)
    except OverflowError:
        if not _integers(values):
            raise
        return pa.array(values, pa.uint64())
    # Arrow infers microseconds for them, as they are also datetimes of Python, and drops the rest.
    finer = _in_nanoseconds(array.type)
    return pa.array(values, finer) if finer != array.type and _has_nanoseconds(values) else array


def _in_nanoseconds(kind: pa.DataType) -> pa.DataType:
    """An inferred type with its timestamps and durations in nanoseconds, at any depth."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp("ns", kind.tz)
    if pa.types.is_duration(kind):
        return pa.duration("ns")
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_in_nanoseconds(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_in_nanoseconds(kind.value_type)))
    return kind


def _has_nanoseconds(value: object) -> bool:
    """Whether a value, or one inside it, is a Timestamp or Timedelta of pandas that microseconds do not hold."""
    if isinstance(value, dt.datetime):
        return bool(getattr(value, "nanosecond", 0))
    if isinstance(value, dt.timedelta):
        return bool(getattr(value, "nanoseconds", 0))
    if isinstance(value, dict):
        return any(map(_has_nanoseconds, value.values()))
    return isinstance(value, list | tuple | set | np.ndarray) and any(map(_has_nanoseconds, value))


def _integers(values: list[Any]) -> bool:
    return all(value is None or (isinstance(value, int | np.integer) and not isinstance(value, bool)) for value in values)


def _mixed(values: list[Any]) -> bool:
    """Whether values that Arrow can hold, each by itself, are of no common type."""
    try:
        _inferred(values)
    except UNFIT:
        return True
    return False


def _short(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= 80 else f"{text[:80]}.."


# ------------------------------------------------------------------------------------------------------------------ event schemas


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


def check_order_columns(order: Sequence[str], names: Sequence[str]) -> None:
    """Raise SchemaError for columns of `order` that the input has not."""
    unknown = [name for name in order if name not in names]
    if unknown:
        raise SchemaError(f"the input has no column {quoted(unknown)} to order by", help=f"the input has {quoted(names)}")


def in_order(events: pa.Table, times: Array, order: Sequence[str]) -> Array:
    """The rows (int64) by their times, of equal ones by the columns of `order`, NULL last, then as they are; SchemaError for unordered types."""
    if not order:
        return np.argsort(times, kind="stable")
    columns = [plain(normalized(events[name])) for name in order]
    keys = pa.table([times, *columns], [f"{index}" for index in range(len(order) + 1)])
    try:
        rows = pc.sort_indices(keys, [(name, "ascending") for name in keys.column_names])
    except (pa.ArrowTypeError, pa.ArrowNotImplementedError):
        kinds = ", ".join(f"`{name}` ({events.schema.field(name).type})" for name in order)
        raise SchemaError(f"events of equal time cannot be ordered by {kinds}", help="order by numbers, text or times") from None
    result: Array = rows.to_numpy().astype(np.int64)
    return result


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
    schema = EventSchema(dict(zip(merged.schema.names, merged.schema.types, strict=True)), type_column, None, types, time)
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


def _zone(kind: pa.DataType) -> str | None:
    return kind.tz if pa.types.is_timestamp(kind) else None


def common_type(first: pa.DataType, second: pa.DataType) -> pa.DataType | None:
    """The type that the values of both have where streams are merged: Arrow's permissive promotion; None where they do not go together.

    Of integers and decimals it is the decimal with room for both, which Arrow makes too narrow; of decimals and floats double.
    """
    if _zone(first) != _zone(second):
        return None
    decimal, other = (first, second) if pa.types.is_decimal(first) else (second, first)
    if pa.types.is_decimal(decimal) and pa.types.is_integer(other):
        digits = {8: 3, 16: 5, 32: 10, 64: 19}[other.bit_width] + (other == pa.uint64())
        precision = max(decimal.precision - decimal.scale, digits) + decimal.scale
        return (
            pa.decimal128(precision, decimal.scale)
            if precision <= 38
            else pa.decimal256(precision, decimal.scale)
            if precision <= 76
            else None
        )
    if pa.types.is_decimal(decimal) and pa.types.is_floating(other):
        return pa.float64()
    try:
        return pa.unify_schemas([pa.schema([("x", first)]), pa.schema([("x", second)])], promote_options="permissive").field("x").type
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return None


# ---------------------------------------------------------------------------------------------------------------------- event time


def times_of(events: pa.Table | pa.RecordBatch, time: str, *, stream: str | None = None) -> Array:
    """The event times as int64, in steps of the column's unit; zero-copy for one chunk of 64 bits.

    Raises InputError for a NULL time and a date64 that is no whole day, with its row, and SchemaError for a type that cannot be event time.
    """
    column = events.column(time)
    time_unit(column.type, time)
    behind = "" if stream is None else f" of the stream `{stream}`"
    if column.null_count:
        row = pc.index(pc.is_null(column), pa.scalar(True)).as_py()
        raise InputError(
            f"row {row}{behind} has no time: `{time}` is NULL ({column.null_count} of {len(column)} rows)",
            help="leave these rows out before, or give them a time",
        )
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    arrays = [raw(plain(chunk)).astype(np.int64, copy=False) for chunk in chunks]
    times = arrays[0] if len(arrays) == 1 else np.concatenate(arrays) if arrays else np.zeros(0, np.int64)
    if pa.types.is_date64(column.type) and (odd := np.flatnonzero(times % 86_400_000)).size:
        raise InputError(f"row {odd[0]}{behind} has a time within a day, which a date64 cannot have", help=time_casts(time))
    return times


def time_number(time: object, schema: EventSchema, *, argument: str | None = None) -> int:
    """A user's time (a datetime, numpy.datetime64, date or int, as the time column has them) in steps of the column.

    argument: its name, for the message. Raises InputError for what is no such time, and for a datetime64 finer than the column.
    """
    kind = schema.time_type
    if kind is None:
        raise InputError("the events have no time column", help="name it with time=")
    given = f"{time!r}" if argument is None else f"{argument}={time!r}"
    wrong = f"{given} is not a time of the column `{schema.time_column}` ({kind})"
    if not _is_time_of(time, kind):
        raise InputError(wrong, help=f"give {'an integer' if pa.types.is_integer(kind) else GIVEN[family(canonical(kind) or kind)]}")
    if isinstance(time, dt.datetime | np.datetime64) and (getattr(time, "tzinfo", None) is None) != (kind.tz is None):
        raise InputError(wrong, help="one of them has a time zone, the other none: give it a tzinfo, or remove it")
    if isinstance(time, np.datetime64):
        step = time.astype(f"datetime64[{kind.unit}]")
        if step.astype(time.dtype) != time:
            raise InputError(wrong, help="it is finer than the column, or beyond what the column can hold")
        time = step
    try:
        value = pa.array([time], kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, OverflowError):
        raise InputError(wrong, help="it is beyond what the column can hold") from None
    return int(raw(value)[0])


def _is_time_of(time: object, kind: pa.DataType) -> bool:
    """Whether a value is of a time column's kind: Arrow would take an integer for a time, a time for its day, and a float for its whole part."""
    if pa.types.is_timestamp(kind):
        # NaT, of pandas and of numpy, is not equal to itself.
        return isinstance(time, dt.datetime | np.datetime64) and bool(time == time)  # noqa: PLR0124
    if pa.types.is_date(kind):
        return isinstance(time, dt.date) and not isinstance(time, dt.datetime)
    return isinstance(time, int | np.integer) and not isinstance(time, bool)


def check_order(times: Array, column: Any, *, stream: str | None = None, after: int | None = None, how: str = "sort=True") -> None:
    """Raise InputError for the first event that is earlier than the one before it (or than `after`, the latest time so far)."""
    if after is not None and len(times) and int(times[0]) < after:
        row, before = 0, f"an event that came before ({python_value(pa.array([after], column.type)[0])})"
    else:
        # Slices stay in the cache, and the usual answer needs no array of the whole length.
        row = next(
            (
                int(start + np.argmax(wrong)) + 1
                for start in range(0, len(times) - 1, 1 << 16)
                if (wrong := times[start + 1 : start + (1 << 16) + 1] < times[start : min(start + (1 << 16), len(times) - 1)]).any()
            ),
            -1,
        )
        if row < 0:
            return
        before = f"row {row - 1} ({python_value(column[row - 1])})"
    where = f"row {row}" if stream is None else f"row {row} of the stream `{stream}`"
    raise InputError(
        f"the events are not in the order of their times: {where} ({python_value(column[row])}) is earlier than {before}",
        help=f"q.run(.., {how}) sorts them, stably" if how == "sort=True" else how,
    )
