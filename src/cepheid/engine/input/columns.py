"""A dict of events: several streams by name, or the columns of one.

Comes in: a dict. Goes out: which of both it is, and columns as a `pyarrow.Table`. A dict whose values are all tables, frames, readers, files or lists
of dicts is streams; a dict of lists and arrays is columns; a dict of single values is one event, and an error where many are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cepheid.engine.input.files.streams import is_file
from cepheid.errors import InputError, SchemaError, counted

if TYPE_CHECKING:
    from collections.abc import Callable

STREAM, ROWS, COLUMN, EMPTY, SINGLE = "a stream", "rows", "a column", "an empty list", "a single value"
"""What a value of a dict can be; rows, a list of dicts, are a stream, or a column of structs."""


def is_streams(events: object) -> bool:
    """Whether it is {stream name: events}."""
    if not isinstance(events, Mapping):
        return False
    kinds = {_kind(value) for value in events.values()}
    return not kinds or STREAM in kinds or (ROWS in kinds and kinds <= {ROWS, EMPTY})


def _kind(value: object) -> str:
    if isinstance(value, str | bytes) or value is None:
        return STREAM if is_file(value) else SINGLE
    if isinstance(value, pa.Array | pa.ChunkedArray) or hasattr(value, "dtype"):
        # A column of Arrow, numpy, pandas or another library; scalars of numpy have a type, and no length.
        return SINGLE if getattr(value, "ndim", None) == 0 else COLUMN
    if isinstance(value, Mapping):
        return STREAM if value and all(_kind(own) in {ROWS, COLUMN, EMPTY} for own in value.values()) else SINGLE
    if isinstance(value, Sequence):
        return EMPTY if not len(value) else ROWS if all(isinstance(each, Mapping) for each in value) else COLUMN
    readable = is_file(value) or hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__") or hasattr(value, "columns")
    return STREAM if readable or hasattr(value, "__next__") else SINGLE


def table_of_columns(events: Mapping[Any, Any], attribute: Callable[[str, list[Any]], pa.Array]) -> pa.Table:
    """A table of a dict of columns that are all of one length.

    attribute: gives the values of one as an array. Raises InputError where lengths differ or a value is no column, and SchemaError for names that are
    no text, columns that say nothing about their types, and what `attribute` raises.
    """
    name = next((name for name in events if not isinstance(name, str)), None)
    if name is not None:
        raise SchemaError(f"the attribute name {name!r} is not text", help="name each attribute by a str")
    single = next((name for name, value in events.items() if _kind(value) == SINGLE), None)
    if single is not None and all(_kind(value) == SINGLE for value in events.values()):
        raise InputError(
            "the dict has single values: it is one event", help="pass a list of events: [event]; a recognizer takes one with push(event)"
        )
    if single is not None:
        what = type(events[single]).__name__
        raise InputError(
            f"the column `{single}` is a {what}, and the others are lists",
            help="give each attribute a list or array, with one value for each event",
        )
    first, *others = events
    other = next((name for name in others if len(events[name]) != len(events[first])), None)
    if other is not None:
        raise InputError(
            f"the columns are not of one length: `{first}` has {counted(len(events[first]), 'value')}, and `{other}` has {len(events[other])}",
            help="give each attribute one value for each event; None is NULL",
        )
    if all(_kind(value) == EMPTY for value in events.values()):
        raise SchemaError("empty lists say nothing about their types", help="pass an empty pyarrow.Table with a schema instead")
    return pa.table({name: _column(name, values, attribute) for name, values in events.items()})


def _column(name: str, values: Any, attribute: Callable[[str, list[Any]], pa.Array]) -> pa.Array | pa.ChunkedArray:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if not hasattr(values, "dtype") or str(values.dtype) == "object":
        return attribute(name, list(values))
    try:
        return pa.chunked_array(values) if hasattr(values, "__arrow_c_stream__") and not hasattr(values, "__array__") else pa.array(values)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise InputError(f"Arrow cannot hold the column `{name}`: {error}", help="give it as a list, or as a pyarrow.Array") from None
