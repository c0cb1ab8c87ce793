"""Event times: of a column as int64, of a value that a user gives; their order is checked, or made."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.input.keys import normalized
from cepheid.engine.letters.values import plain, raw
from cepheid.engine.output.matches import python_value
from cepheid.errors import InputError, SchemaError, quoted
from cepheid.logical.types import GIVEN, canonical, family
from cepheid.schema import time_casts, time_unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cepheid.engine.memory.pools import Array
    from cepheid.schema import EventSchema


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
