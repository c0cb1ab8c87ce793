"""Durations of a query in steps of the time column, exactly.

Comes in: durations, intervals and windows as written, with decimals and units. Goes out: closed intervals of whole steps. Differences of
times are whole numbers of steps, so a strict or fractional bound is rounded inwards and nothing is lost (`[< 0.5ms]` on microseconds is
at most 499).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from cepheid.errors import LimitError
from cepheid.language import syntax
from cepheid.logical import parameters
from cepheid.logical.plan import Interval, OpenNumber
from cepheid.schema import NANOSECONDS

if TYPE_CHECKING:
    from cepheid.errors import Span
    from cepheid.logical.context import Context

MAX_STEPS = 2**62
"""Longest duration, in steps of the time column: a time minus a duration stays far inside 64 bits."""


def steps(context: Context, written: syntax.Duration | syntax.Parameter, *, what: str) -> Fraction | None:
    """A duration as a (possibly fractional) number of steps of the time column; None for an open parameter.

    what: "a time window", "a gap" or "an absence", for messages. Raises BindError for a negative duration, where there is no time column, for
    a unit on a numeric time column and for a bare number on any other; LimitError beyond `MAX_STEPS`.
    """
    schema, span = context.schema, written.span
    if schema.time_column is None:
        raise context.error(
            f"{what} needs a time column, the events have none",
            span,
            f"{context.name_time}, or write a window in events: WITHIN 100 EVENTS",
        )
    duration = parameters.duration(context, written)
    if duration is None:
        return None
    unit = schema.unit
    if unit is None and duration.unit is not None:
        fact = f"a duration with a unit, but the time column `{schema.time_column}` is numeric ({schema.time_type})"
        help_ = "write a bare number, in the unit of the column, or cast the column to a timestamp"
        raise context.error(fact, span, help_, *parameters.said(context, written))
    if unit is not None and duration.unit is None:
        fact = f"a duration without a unit, but the time column `{schema.time_column}` is {schema.time_type}"
        help_ = f"write the unit, as in {duration.value:f}s (us, ms, s, m, h, d, w)"
        raise context.error(fact, span, help_, *parameters.said(context, written))
    if duration.value < 0:
        help_ = "leave the minus out: `p ; q` says which comes first"
        raise context.error("a duration cannot be negative", span, help_, *parameters.said(context, written))
    length = Fraction(duration.value) if unit is None or duration.unit is None else Fraction(duration.value) * duration.unit.value / unit
    if length > MAX_STEPS:
        raise LimitError(
            f"the duration is {length.numerator // length.denominator} steps of the time column; the limit is {MAX_STEPS} (MAX_STEPS)",
            help="leave the window out: no two events are that far apart",
            text=context.text or None,
            span=span,
        )
    return length


def absence(context: Context, duration: syntax.Duration | syntax.Parameter | syntax.Interval) -> tuple[int, int]:
    """The d of `NOT FOLLOWED BY n FOR d`: the greatest whole number of steps that is at most d, or less than it where d is an open bound.

    And the deadline: the greatest that is at most d in both cases.
    """
    what = "NOT FOLLOWED BY .. FOR"
    if isinstance(duration, syntax.Interval):
        if duration.lower is not None:
            raise context.error(f"{what} takes no lower bound", duration.span, "write FOR 10m, FOR [<= 10m] or FOR [< 10m]")
        found = interval(context, duration, what=what).upper
        assert found is not None
        assert duration.upper is not None
        exact = steps(context, duration.upper, what=what)
        return found, found if exact is None else math.floor(exact)
    exact = steps(context, duration, what=what)
    length = _open(duration, 1) if exact is None else math.floor(exact)
    return length, length


def _open(written: object, number: int, *, strict: bool = False) -> OpenNumber:
    """What an open parameter counts as."""
    assert isinstance(written, syntax.Parameter)
    return OpenNumber(number, parameters.text_of(written), strict=strict)


def interval(context: Context, written: syntax.Interval, *, what: str) -> Interval:
    """A gap or time window as a closed interval of whole steps; raises BindError (see `steps`) and for an interval that holds nothing.

    A bound that is an open parameter bounds as little as a bound can.
    """
    lower, upper = (None if bound is None else steps(context, bound, what=what) for bound in (written.lower, written.upper))
    least = 0 if lower is None else math.floor(lower) + 1 if written.lower_strict else math.ceil(lower)
    most = None if upper is None else math.ceil(upper) - 1 if written.upper_strict else math.floor(upper)
    if lower is None and written.lower is not None:
        least = _open(written.lower, 0, strict=written.lower_strict)
    if most is None and written.upper is not None:
        most = _open(written.upper, MAX_STEPS, strict=written.upper_strict)
    if most is not None and most < least:
        raise context.error(*_empty(context, written.span, lower, upper), *parameters.said(context, written.lower, written.upper))
    return Interval(least, most, span=written.span)


def _empty(context: Context, span: Span, lower: Fraction | None, upper: Fraction | None) -> tuple[str, Span, str]:
    if lower is not None and upper is not None and upper < lower:
        return "the interval is inverted: its upper bound is below its lower bound", span, "exchange the bounds"
    if lower is not None and upper is not None and upper > lower:
        step = "1" if context.schema.unit is None else _step_name(context.schema.unit)
        return (
            f"the interval is empty: no difference of times is in it, the time column counts in steps of {step}",
            span,
            "widen the interval, or give the time column a finer unit",
        )
    return "the interval is empty: no difference of times is in it", span, "use <= and >= to include the bounds"


def _step_name(nanoseconds: int) -> str:
    names = {length: unit for unit, length in NANOSECONDS.items()}
    return f"1 {names[nanoseconds]}" if nanoseconds in names else "1 day"
