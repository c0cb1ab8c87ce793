"""Event time as columns: times as literals, and conditions on them.

Comes in: a column of event time, of a table or a stream. Goes out: columns. What is wrong with a time is true or false, never NULL.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that everybody gives this module
from pyspark.sql import types as spark_types

from cepheid.spark.columns import arrow_type
from cepheid.spark.tasks.bounds import FIRST_TIME, LAST_TIME, bounds

if TYPE_CHECKING:
    from pyspark.sql import Column

NEVER = -(1 << 63)
"""No timestamp is before this many microseconds."""


def time_column(steps: int, kind: spark_types.DataType) -> Column:
    """A time as a column of this type; steps: microseconds, days, or the integer itself."""
    if isinstance(kind, spark_types.TimestampType):
        return F.timestamp_micros(F.lit(steps))
    if isinstance(kind, spark_types.TimestampNTZType):
        return F.lit(str(dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=steps))).cast(kind)  # noqa: DTZ001 - it has no zone
    if isinstance(kind, spark_types.DateType):
        return F.lit(str(dt.date(1970, 1, 1) + dt.timedelta(days=steps))).cast(kind)
    return F.lit(steps)


def outside(time: Column, kind: spark_types.DataType) -> Column | None:
    """Whether a time is outside the bounds; None where none can be. NULL is not."""
    within = bounds(arrow_type(kind))
    if within is None:
        return None
    first, last = (time_column(steps, kind) for steps in within)
    return time.isNotNull() & ((time < first) | (time > last))


def ahead(time: Column, most: int) -> Column:
    """Whether a timestamp is more than so many microseconds after the clock, as it was when Spark planned the micro-batch.

    Spark stores that moment with the offsets of the micro-batch, so that one that is repeated leaves out the same. (Of `now` it does not.)
    """
    last = F.unix_micros(F.current_timestamp()) + F.lit(min(most, LAST_TIME - FIRST_TIME))
    return time.isNotNull() & (F.unix_micros(time) > last)


def count_of(condition: Column) -> Column:
    """How many rows meet a condition, as an aggregate."""
    return F.count(F.when(condition, 1))  # for `count_if` Spark adds a column to every row


def above_watermark(condition: Column, time: Column) -> Column:
    """The condition, in a form that stays above a stream's watermark.

    Spark would otherwise move it below, and the watermark would not see the events that are left out, and stand still where no others come.
    """
    return condition | (time < F.timestamp_micros(F.lit(NEVER)))  # never true
