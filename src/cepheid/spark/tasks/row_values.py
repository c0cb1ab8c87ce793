"""Values as Spark's rows have them in Python, as Arrow has them, and back."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pyarrow as pa

Convert = Callable[[Any], Any]


def to_arrow(kind: pa.DataType) -> Convert | None:
    """A function from a value as Spark's rows have it to one that Arrow takes for this type; None where they are the same."""
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        # In rows, a time has the zone of the worker's machine, and does not say so.
        return _unless_null(lambda value: value.astimezone(dt.UTC))
    if pa.types.is_map(kind):
        return _each(to_arrow(kind.key_type), to_arrow(kind.item_type), lambda value: value.items(), list)
    if pa.types.is_list(kind):
        return _list(to_arrow(kind.value_type))
    if pa.types.is_struct(kind):
        parts = [(part.name, to_arrow(part.type) or _same) for part in kind]
        return _unless_null(lambda value: {name: convert(each) for (name, convert), each in zip(parts, value, strict=True)})
    return None


def from_arrow(kind: pa.DataType) -> Convert | None:
    """The inverse of `to_arrow`, for values that Spark takes."""
    if pa.types.is_map(kind):
        return _each(from_arrow(kind.key_type), from_arrow(kind.item_type), _same, dict)
    if pa.types.is_list(kind):
        return _list(from_arrow(kind.value_type))
    if pa.types.is_struct(kind):
        parts = [(part.name, convert) for part in kind if (convert := from_arrow(part.type)) is not None]
        return _unless_null(lambda value: value | {name: convert(value[name]) for name, convert in parts}) if parts else None
    return None


def _same(value: Any) -> Any:
    return value


def _unless_null(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


def _list(convert: Convert | None) -> Convert | None:
    return None if convert is None else _unless_null(lambda value: list(map(convert, value)))


def _each(key: Convert | None, value: Convert | None, pairs: Convert, made: Convert) -> Convert:
    first, second = key or _same, value or _same
    return _unless_null(lambda entries: made((first(name), second(each)) for name, each in pairs(entries)))
