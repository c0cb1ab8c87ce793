"""The times that events may have on Spark, and the errors about others.

Comes in: the type of a column of event time. Goes out: its first and its last time, and what is said of an event that has none, or another one.
Imports no Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from cepheid.errors import InputError

if TYPE_CHECKING:
    from cepheid.engine.memory.pools import Array

FIRST_TIME, LAST_TIME = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The first and the last microsecond of the years 1 to 9999, counted from 1970. Spark defines its timestamps and dates for these years, and Python
has no others: a time outside them is a mistake, mostly one of units."""

YEARS = "the years 1 to 9999"
"""What lies between `FIRST_TIME` and `LAST_TIME`, in messages."""

MICROSECONDS_PER_DAY = 86_400_000_000


def bounds(kind: pa.DataType) -> tuple[int, int] | None:
    """The first and the last time that a column of this type may have, in its steps (microseconds, days); None for integers: these are all times."""
    if pa.types.is_integer(kind):
        return None
    step = MICROSECONDS_PER_DAY if pa.types.is_date32(kind) else 1
    return FIRST_TIME // step, LAST_TIME // step


def outside(times: Array, kind: pa.DataType) -> Array | None:
    """Whether times are out of bounds (bool), None where none is; times: in steps of their column, which has this type. O(n)."""
    within = bounds(kind)
    if within is None or not len(times) or within[0] <= times.min() <= times.max() <= within[1]:
        return None
    found: Array = (times < within[0]) | (times > within[1])
    return found


def time_text(time: int, kind: pa.DataType) -> str:
    """A time as text, whatever its year; time: in steps of its column."""
    step = np.timedelta64(1, "D" if pa.types.is_date32(kind) else "us")
    return str(np.datetime64("1970-01-01") + time * step).replace("T", " ").removesuffix(".000000")


def no_time(name: str, *, of: str, option: str) -> InputError:
    """The error about an event without a time.

    name: the attribute. of: which event (" of k=1"), option: how an option is given, with a place for its name and one for its value.
    """
    return InputError(
        f"an event{of} has no time: `{name}` is NULL",
        help="leave these events out before, or say " + option.format("null_time", '"drop"'),
    )


def out_of_bounds(name: str, time: str, *, of: str, instead: str) -> InputError:
    """The error about an event with a time outside the bounds; name, of: as for `no_time`. time: as text. instead: how to leave such events out."""
    return InputError(
        f"an event{of} has the time {time} in `{name}`, which is outside {YEARS}",
        help=(
            "were milliseconds taken for seconds? Make them times by their unit: F.timestamp_millis, F.timestamp_micros",
            f"or leave such events out: {instead}",
        ),
    )
