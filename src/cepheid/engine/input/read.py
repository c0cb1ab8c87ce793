"""Input from users becomes Arrow: tables, DataFrames, files, lists of dicts, dicts of lists.

Comes in: anything with events. Goes out: a `pyarrow.Table`, or a `RecordBatchReader` that is not yet read. Every unusable input has its own error
here; nothing is dropped or reordered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cepheid.engine.input.column_types import plain_schema, without_views
from cepheid.engine.input.columns import is_streams, table_of_columns
from cepheid.engine.input.dicts import COLUMNS, UNFIT, attribute, table_of_dicts
from cepheid.engine.input.files import streams as files
from cepheid.engine.input.time_texts import with_times
from cepheid.errors import InputError, SchemaError
from cepheid.schema import DEFAULT_TIME, check_doubles

if TYPE_CHECKING:
    from collections.abc import Sequence

EVENTS = (
    "pass a pyarrow.Table or RecordBatchReader, a DataFrame, the path of a file (.parquet, .arrow, .csv, .jsonl), a list of dicts, a dict of lists, "
    "or {stream name: events} for several streams"
)


def events_of(
    events: object, *, stream: str | None = None, time: str | None = None, most: int | None = None
) -> pa.Table | pa.RecordBatchReader:
    """One stream of events in `plain_schema`, with ISO 8601 texts in the time column as times; a reader stays unread but for its first batches.

    Takes the arguments of `table_of`, and raises what it and `with_times` raise.
    """
    return with_times(without_views(table_of(events, stream=stream, time=time, most=most)), time or DEFAULT_TIME, stream=stream)


def table_of(
    events: object, *, stream: str | None = None, time: str | None = None, most: int | None = None
) -> pa.Table | pa.RecordBatchReader:
    """One stream of events as Arrow.

    events: Table, RecordBatch, RecordBatchReader, a DataFrame of pandas or (small ones, which are collected) of Spark, anything with
    ``__arrow_c_stream__`` or ``__arrow_c_array__``, the path of a file of `FORMATS`, a list of dicts (missing attributes are NULL), or a dict of
    lists or arrays. stream: its name among several, for messages. time: the time column as the user named it, which the index of a DataFrame may be.
    most: how many rows a DataFrame of Spark may have (None: as `cepheid.spark.collecting` says). Raises InputError for anything else and for values
    that Arrow cannot hold, SchemaError for values of mixed types, LimitError for a DataFrame of Spark with more rows.
    """
    what, help_ = ("events", (EVENTS,)) if stream is None else (f"the stream `{stream}`", (EVENTS, COLUMNS))
    if isinstance(events, pa.Table | pa.RecordBatchReader):
        return events
    if isinstance(events, pa.RecordBatch):
        return pa.Table.from_batches([events])
    if type(events).__module__.partition(".")[0] == "pandas" and hasattr(events, "columns"):
        return _pandas(events, time)
    if type(events).__module__.startswith("pyspark.sql") and hasattr(events, "isStreaming"):
        from cepheid.spark.collecting import collected

        return collected(events, most=most)  # type: ignore[arg-type]  # it is a DataFrame
    if files.is_path(events):
        return files.read(events)
    if isinstance(events, Mapping) and events and not is_streams(events):
        return table_of_columns(events, attribute)
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
    return table_of_dicts(list(events), stream)


def schema_in(given: object, *, time: str | None = None) -> pa.Schema:
    """The `plain_schema` of a schema, or of a table, reader, DataFrame or file of such events; raises InputError for anything else.

    time: as for `table_of`.
    """
    own = getattr(given, "schema", None)
    if isinstance(given, pa.Schema) or isinstance(own, pa.Schema):
        return plain_schema(given if isinstance(given, pa.Schema) else own)
    if type(given).__module__.partition(".")[0] == "pandas" and hasattr(given, "columns"):
        return plain_schema(_pandas(given, time).schema)
    if files.is_path(given):
        return plain_schema(files.read(given).schema)
    try:
        if hasattr(given, "__arrow_c_stream__"):
            return plain_schema(pa.RecordBatchReader.from_stream(given).schema)
        if hasattr(given, "__arrow_c_schema__"):
            return plain_schema(pa.schema(given))
    except pa.ArrowInvalid:
        pass
    raise InputError(
        f"a schema cannot be a {type(given).__name__}", help="pass a pyarrow.Schema, or a table, DataFrame or file that has it"
    )


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
