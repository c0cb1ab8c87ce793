"""Event times that are written as text: ISO 8601 becomes timestamps, by the whole column.

Comes in: a table or reader whose time column may be text. Goes out: the same with times. If all texts have an offset, they are timestamps in UTC;
if none has one, timestamps without zone; days alone are dates. Both kinds in one column is an error, for no zone can be guessed.
"""

from __future__ import annotations

import bisect
import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.letters.values import plain
from cepheid.errors import InputError
from cepheid.schema import is_text

if TYPE_CHECKING:
    from collections.abc import Iterator

TIME = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?\s*(Z|[+-]\d{2}:?\d{2})?", re.ASCII)

DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)

DAY_ALONE, OFFSET, NO_OFFSET = "a day", "with an offset", "without an offset"
"""How a text can be written."""

SHOWN = 40
"""Characters of a text that a message shows."""


def with_times(events: pa.Table | pa.RecordBatchReader, name: str, *, stream: str | None = None) -> pa.Table | pa.RecordBatchReader:
    """The events with ISO 8601 texts in the column `name` as times; a column of anything else, or whose first text is no time, is left as it is.

    stream: their name among several, for messages. A reader is read up to its first text, which decides what all are read as. Raises InputError for
    the first text that does not go with those before it; of a reader when it is read.
    """
    if events.schema.names.count(name) != 1 or not is_text(events.schema.field(name).type):
        return events
    where = "" if stream is None else f" of the stream `{stream}`"
    place = events.schema.names.index(name)
    if isinstance(events, pa.RecordBatchReader):
        return _read(events, place, where)
    column = _texts(events.column(place))
    kind = _kind(column)
    if kind is None:
        return events
    if not _readable(column, kind):
        raise _wrong(column, name, where)
    return events.set_column(place, events.schema.field(place).with_type(kind), column.cast(kind))


def _read(events: pa.RecordBatchReader, place: int, where: str) -> pa.RecordBatchReader:
    """A reader with its texts as times."""
    field = events.schema.field(place)
    first: list[pa.RecordBatch] = []
    kind = None
    for batch in events:
        first.append(batch)
        column = _texts(batch.column(place))
        if column.null_count < len(column):
            kind = _kind(column)
            break

    def every() -> Iterator[pa.RecordBatch]:
        yield from first
        first.clear()
        yield from events

    if kind is None:
        return pa.RecordBatchReader.from_batches(events.schema, every())
    schema = events.schema.set(place, field.with_type(kind))

    def read() -> Iterator[pa.RecordBatch]:
        row = 0
        for batch in every():
            column = _texts(batch.column(place))
            if not _readable(column, kind):
                raise _wrong(column, field.name, where, first=row, kind=kind)
            columns = [*batch.columns[:place], column.cast(kind).combine_chunks(), *batch.columns[place + 1 :]]
            yield pa.record_batch(columns, schema=schema)
            row += batch.num_rows

    return pa.RecordBatchReader.from_batches(schema, read())


def _texts(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray:
    """A column of text without dictionaries."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return pa.chunked_array([plain(chunk).cast(pa.large_string()) for chunk in chunks], pa.large_string())


def _kind(column: pa.ChunkedArray) -> pa.DataType | None:
    """What the texts are read as: microseconds, or nanoseconds where only these hold all of them; None if the first text is no time.

    Where nothing takes all of them, what takes most from the first on.
    """
    texts = pc.drop_null(column)
    if not len(texts):
        return None
    first = texts[0].as_py()
    written = _written(first)
    if written is None:
        return None
    zone = "UTC" if written == OFFSET else None
    kinds = [*([pa.date32()] if written == DAY_ALONE else []), pa.timestamp("us", zone), pa.timestamp("ns", zone)]
    return next((kind for kind in kinds if _readable(column, kind)), None) or max(kinds, key=lambda kind: _good(column, kind))


def _readable(column: pa.ChunkedArray, kind: pa.DataType) -> bool:
    try:
        column.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def _good(column: pa.ChunkedArray, kind: pa.DataType) -> int:
    """How many texts, from the first on, are of this type. O(n log n)."""
    return bisect.bisect_left(range(1, len(column) + 1), True, key=lambda count: not _readable(column.slice(0, count), kind))


def _wrong(column: pa.ChunkedArray, name: str, where: str, *, first: int = 0, kind: pa.DataType | None = None) -> InputError:
    """The first text that is no time, or does not go with those before it; first: the row of the first; kind: what a reader has decided on."""
    row = _good(column, kind or _kind(column))
    text, others = column[row].as_py(), pc.drop_null(column.slice(0, row))
    found, before = _written(text), _written(others[0].as_py()) if len(others) else _expected(kind)
    mixed = None not in (found, before) and found != before
    reason = f"{found}, and those before it are {before}" if mixed else "no time"
    help_ = [
        "a time is ISO 8601: 2013-01-31 12:00:00, with an offset (Z, +01:00) in all rows or in none; cast the column before if it is not"
    ]
    if found is not None and not mixed:
        help_.append("its day is in the calendar; if a second has more than 6 digits, all times are between the years 1678 and 2261")
        help_ += ["of a reader the first batch decides how many digits are read: pass reader.read_all()"] if kind is not None else []
    return InputError(f"row {first + row}{where}: `{name}` is {text[:SHOWN]!r}, {reason}", help=help_)


def _written(text: str) -> str | None:
    """What a text is written as; None if not as a time."""
    if DAY.fullmatch(text):
        return DAY_ALONE
    found = TIME.fullmatch(text)
    return None if found is None else OFFSET if found.group(3) else NO_OFFSET


def _expected(kind: pa.DataType | None) -> str | None:
    """How texts of a type are written."""
    if kind is None:
        return None
    return DAY_ALONE if pa.types.is_date(kind) else NO_OFFSET if kind.tz is None else OFFSET
