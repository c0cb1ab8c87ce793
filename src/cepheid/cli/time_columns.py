"""The time column of files that the command line reads: whether it is there, and is of times, with the first event where it is not."""

from __future__ import annotations

import bisect
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.input.files.readings import OF_TEXT, Column
from cepheid.engine.input.time_texts import DAY, TIME
from cepheid.engine.letters.values import plain
from cepheid.errors import InputError
from cepheid.schema import is_text

if TYPE_CHECKING:
    from cepheid.engine.input.files.streams import Stream

NUMBER = re.compile(r"-?\d{1,18}", re.ASCII)

TIME_TYPES = (*(reading.kind for reading in OF_TEXT if reading.is_time_of_text), pa.date32(), pa.int64())
"""What texts of event times may be read as."""


def check_spaces(stream: Stream, name: str) -> None:
    """Raise InputError where the time column is not there but for spaces around its name: events would silently have no time."""
    names = stream.schema.names
    spaced = next((each for each in names if each.strip() == name), None)
    if name not in names and spaced is not None:
        raise InputError(f"{stream.source} has no attribute `{name}`, but `{spaced}`", help=f"rename it, or read it with --time '{spaced}'")


def with_times(stream: Stream, time: str) -> Stream:
    """The stream, with a time column of text that says times as times: in a file that has types of its own. Reads that column, if it is text."""
    place = stream.schema.get_field_index(time)
    if place < 0 or not is_text(stream.schema.field(place).type):
        return stream
    column = Column(OF_TEXT)
    for _, _, texts in stream.places(time):
        for chunk in texts.chunks:
            column.see(plain(chunk).cast(pa.string()))
    kind = column.reading.kind
    return (
        stream if pa.types.is_null(kind) else replace(stream, schema=stream.schema.set(place, stream.schema.field(place).with_type(kind)))
    )


def check_times(stream: Stream, name: str) -> None:
    """Raise InputError for the first text of a time column that is no time, or does not go with those before it. O(rows) where it is text."""
    if name not in stream.schema.names or not pa.types.is_string(stream.schema.field(name).type):
        return
    first: str | None = None
    kinds = TIME_TYPES
    for path, row, column in stream.places(name):
        good = {kind: _readable(column, kind) for kind in kinds}
        # What is wrong is where the reading that goes furthest ends.
        wrong = max(good.values())
        texts = pc.drop_null(column.slice(0, wrong)).slice(0, 1).to_pylist()
        first = first or next(iter(texts), None)
        if wrong < len(column):
            raise _no_time(f"{path}, row {row + wrong}: `{name}`", column[wrong].as_py(), first)
        kinds = tuple(kind for kind in kinds if good[kind] == len(column))


def _no_time(place: str, value: str, first: str | None) -> InputError:
    """A text that is no time; first: the first text of the column before it."""
    kind = time_kind(value)
    before = time_kind(first) if first else None
    mixed = None not in (kind, before) and kind != before
    reason = f"{kind}, and '{first}' before it {before}" if mixed else "no time"
    help_ = ["a time is a whole number, or ISO 8601: 2013-01-31 12:00:00, with an offset (Z, +01:00) in all rows or in none"]
    if kind is not None and not mixed:
        help_.append("its day is in the calendar; if a second has more than 6 digits, all times are between the years 1678 and 2261")
    return InputError(f"{place} is '{value[:40]}', {reason}", help=help_)


def _readable(column: pa.ChunkedArray, kind: pa.DataType) -> int:
    """How many texts, from the first on, are of this type. O(n log n)."""

    def fails(count: int) -> bool:
        try:
            column.slice(0, count).cast(kind)
        except pa.ArrowInvalid:
            return True
        return False

    return bisect.bisect_left(range(1, len(column) + 1), True, key=fails) if fails(len(column)) else len(column)


def time_kind(text: str) -> str | None:
    """What a text is written as; None if not as a time."""
    found = TIME.fullmatch(text)
    if found:
        return "a time with an offset" if found.group(3) else "a time without an offset"
    return "a day" if DAY.fullmatch(text) else "a number" if NUMBER.fullmatch(text) else None
