"""Values of Python become Arrow: lists of dicts, and the values of one attribute. What Arrow would guess wrongly is an error, or guessed here."""

from __future__ import annotations

import bisect
import datetime as dt
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.engine.output.matches import without_columns
from cepheid.errors import InputError, SchemaError

COLUMNS = "a dict whose values are tables, files or lists of dicts is read as {stream name: events}; columns are all lists or arrays"

UNFIT = (ValueError, TypeError, NotImplementedError, OverflowError)
"""What Arrow raises for values that it cannot hold."""


def table_of_dicts(rows: list[Any], stream: str | None) -> pa.Table:
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
        columns[name] = attribute(name, values)
    try:
        return pa.table(columns) if columns else without_columns(len(rows))
    except UnicodeEncodeError as error:
        raise SchemaError(f"the attribute name {error.object!r} has half of a surrogate pair", help="give it as proper Unicode") from None


def attribute(name: str, values: list[Any]) -> pa.Array:
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
