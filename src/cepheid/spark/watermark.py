"""The watermark of a stream, and what events must be like to move it.

Comes in: the plan of a query over a streaming DataFrame. Goes out: the DataFrame with a watermark on its time.

The watermark follows the greatest time of all events, also of those that no query uses; it is stored in the checkpoint, and never goes back. One
event of the year 50000 would end a stream for good, one of the year 2900 make all others late. So wrong times are found here: what is left out
never comes to the watermark, and an error fails the micro-batch, of which Spark stores a watermark only when it has succeeded.
"""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that everybody gives this module
from pyspark.sql import types as spark_types

from cepheid.errors import InputError, LimitError, NotSupportedError, SchemaError
from cepheid.spark.columns import column_named
from cepheid.spark.error_rows import raising
from cepheid.spark.options import APART
from cepheid.spark.source import WATERMARK
from cepheid.spark.tasks.bounds import no_time, out_of_bounds
from cepheid.spark.tasks.worker import OPTION
from cepheid.spark.times import ahead, count_of
from cepheid.spark.translation import text_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from cepheid.spark.batch import Plan
    from cepheid.spark.options import Options

LEFT_OUT = "cepheid.left_out"
"""The name under which a stream's counts of events left out for their time are observed: bad_times; ahead, and of these the furthest time."""

DROP = OPTION.format("bad_time", '"drop"')
"""The option that leaves out events with a time outside the bounds, in messages."""

WHICH, WHEN = "\1", "\2"
"""Places in an error's text that columns fill in."""


def with_watermark(plan: Plan) -> tuple[DataFrame, int | None]:
    """The events with a watermark on their time, and its delay in milliseconds if it is ours; None for one that the DataFrame has already.

    Where the source's partitions count, ours is behind by how far they may be apart, too.
    """
    lateness, partitioned = plan.options.lateness, bool(plan.options.partition)
    name = plan.compiled.layout.time or ""
    column = plan.source.names[name]
    field = plan.source.frame.schema[column]
    if not isinstance(field.dataType, spark_types.TimestampType):
        casts = (
            f"F.timestamp_seconds({name!r}) if it counts seconds, F.timestamp_millis or F.timestamp_micros if it counts these"
            if isinstance(field.dataType, spark_types.IntegralType)
            else f"F.col({name!r}).cast('timestamp')"
        )
        raise SchemaError(
            f"a stream's event time is a timestamp, and `{name}` is {field.dataType.simpleString()}",
            help=f"cast it before: df.withColumn({name!r}, ..) with {casts}",
        )
    own = (field.metadata or {}).get(WATERMARK)
    if own is not None:
        given = own if lateness is None else milliseconds("lateness", lateness)
        if partitioned and (given >= own or plan.options.apart != APART):
            raise InputError(
                f"partition= needs a lateness= that is less than the watermark that `{name}` has, {own} ms, and no apart=",
                help=(
                    "that watermark says how far an event may be behind those of all partitions, lateness= how far in its own",
                    "or leave withWatermark out: apart= and lateness= say both",
                ),
            )
        if not partitioned and given != own:
            raise InputError(f"lateness={lateness!r} differs from the watermark that `{name}` has: {own} ms", help="leave lateness= out")
        _check_leaving_out(plan.options, name)
        return refusing(plan, plan.source.frame, instead=f"before withWatermark, or {DROP} and lateness= in its place"), None
    if lateness is None:
        raise InputError(
            "a stream needs to know how late an event may come",
            help=('say q.on(.., lateness="10 minutes")', f"or call df.withWatermark({name!r}, ..) before"),
        )
    delay = milliseconds("lateness", lateness) + (milliseconds("apart", plan.options.apart) if partitioned else 0)
    return refusing(plan, left_out(plan), instead=DROP).withWatermark(column, f"{delay} milliseconds"), delay


def partitions(options: Options) -> tuple[int, int] | None:
    """The lateness and the time-out of the source's partitions in milliseconds, where they count, else None."""
    return (milliseconds("lateness", options.lateness), milliseconds("idle", options.idle)) if options.partition else None


def _check_leaving_out(options: Options, name: str) -> None:
    """Raise InputError for options that leave events out before they move a watermark, where they have moved it already."""
    given = {"bad_time='drop'": options.bad_time == "drop", f"max_ahead={options.max_ahead!r}": options.max_ahead is not None}
    for option, asked in given.items():
        if asked:
            raise InputError(
                f"{option} leaves events out before they move the watermark, and `{name}` has a watermark already",
                help=("say lateness= in place of withWatermark", "or leave them out yourself: df.where(..).withWatermark(..)"),
            )


def left_out(plan: Plan) -> DataFrame:
    """The events without those that `max_ahead` and `bad_time` leave out, which are counted on the way."""
    frame, options = plan.source.frame, plan.options
    reasons: dict[str, Column] = {}
    if options.max_ahead is not None:
        late = ahead(plan.time, 1000 * milliseconds("max_ahead", options.max_ahead))
        # What is no time at all is not ahead of another: it may be an error.
        reasons["ahead"] = late if plan.outside is None else late & ~plan.outside
    if options.bad_time == "drop" and plan.outside is not None:
        reasons["bad_times"] = plan.outside
    if not reasons:
        return frame
    counts = [count_of(reason).alias(name) for name, reason in reasons.items()]
    if "ahead" in reasons:
        counts.append(F.max(F.when(reasons["ahead"], F.unix_micros(plan.time))).alias("furthest"))
    return frame.observe(LEFT_OUT, *counts).where(~functools.reduce(operator.or_, reasons.values()))


def refusing(plan: Plan, frame: DataFrame, *, instead: str) -> DataFrame:
    """The events, which raise InputError if the time of one is an error: in the micro-batch in which it came, whose watermark is then never stored.

    instead: how to leave such events out.
    """
    if plan.refused is None:
        return frame
    name, time = plan.compiled.layout.time or "", plan.time
    none = text_of(no_time(name, of=WHICH, option=OPTION))
    other = text_of(out_of_bounds(name, WHEN, of=WHICH, instead=f"{instead}; the checkpoint goes on"))
    error = F.when(time.isNull(), F.lit(none)).otherwise(F.replace(F.lit(other), F.lit(WHEN), time.cast("string")))
    return raising(frame, plan.refused, F.replace(error, F.lit(WHICH), _which(plan)))


def _which(plan: Plan) -> Column:
    """Which event it is, for messages: its type and key."""
    labels = {name: name for name in plan.compiled.keys}
    if plan.source.schema.type_column is not None:
        labels = {plan.source.schema.type_column: "type"} | labels
    parts = []
    for name, label in labels.items():
        value = F.regexp_replace(column_named(plan.source.names[name]).cast("string"), r"\p{Cntrl}", " ")  # an error's fact is one line
        parts.append(F.concat(F.lit(f"{label}="), F.coalesce(value, F.lit("NULL"))))
    return F.concat(F.lit(" of "), F.concat_ws(", ", *parts)) if parts else F.lit("")


def milliseconds(option: str, given: object) -> int:
    """A duration as Spark's watermark has it; raises InputError, which names the option, for what is no duration, or is negative."""
    from cepheid.engine.run.intake import nanoseconds_of

    if isinstance(given, int):
        raise NotSupportedError(f"{option}={given!r} has no unit", help='write it like "10 minutes" or "10s", or as a timedelta')
    amount = nanoseconds_of(given, option=option)
    if amount < 0:
        raise InputError(f"{option}={given!r} is negative", help="give a duration of zero or more")
    if amount >= 1000 << 63:
        raise LimitError(f"{option}={given!r} is longer than Spark's longest interval, 2**63 microseconds", help="give a shorter duration")
    return -(-amount // 1_000_000)
