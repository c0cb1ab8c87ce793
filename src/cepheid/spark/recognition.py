"""`q.on(..)`: a query as a function from a DataFrame of events to a DataFrame of matches, batch or streaming.

Comes in: a `Query` and options. Goes out: a `Recognition`, for `DataFrame.transform`; what it does with a frame is decided in `batch.Plan`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cepheid.errors import InputError, check_choice
from cepheid.schema import DEFAULT_TIME
from cepheid.spark.batch import Plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, Observation

    from cepheid.query import Query

ANY_ORDER = "any"
"""`order="any"`: events of one key, time and tie-breakers come in any order."""


@dataclass(frozen=True)
class Options:
    """The options of `on`, checked."""

    type: str | Column | None
    time: str
    lateness: object
    order: tuple[str, ...]
    any_order: bool
    null_keys: str
    null_time: str
    positions: bool
    columns: tuple[str, ...] | None
    buckets: int | None


def on(
    query: Query,
    *,
    type: str | Column | None = None,  # noqa: A002 - public word
    time: str = DEFAULT_TIME,
    order: str | Sequence[str] = (),
    lateness: object = None,
    null_keys: str = "drop",
    null_time: str = "error",
    positions: bool = False,
    columns: Sequence[str] | None = None,
    buckets: int | None = None,
) -> Recognition:
    """A function for `DataFrame.transform` that gives one row per match of the query.

    type: the column of the event type, or a Column that computes it (default: `type`, or the stream's name, as in `Query.run`). time: the
    column of event time (timestamp, date or integer). order: columns that decide between events of one key and time; "any" (alone or last):
    what is equal then comes in any order, otherwise it is an error. lateness: for streams; a DataFrame is sorted. null_keys: "drop" events with
    a NULL in their PARTITION BY key, or "group" them. null_time: "error" or "drop". positions: also give each match its `start` and `end`
    and each event its `$index`, counted in the key's events; then nothing is left out before the shuffle. columns: the attributes that the
    events of the output have (default: all). buckets: the number of tasks of the shuffle (default: Spark's).

    The output has the keys, `start_time`, `end_time`, and per variable of SELECT an array of structs, its events in order, or its measures;
    the same as ``q.run(..).to_arrow(events=True)``, with times and durations in microseconds. Raises InputError for unknown option values; the
    function raises InputError for columns= beside measures, SchemaError, BindError, NotSupportedError and LimitError, all before any job.
    """
    check_choice("null_keys", null_keys, ("drop", "group"))
    check_choice("null_time", null_time, ("error", "drop"))
    given = (order,) if isinstance(order, str) else tuple(order)
    any_order = bool(given) and given[-1] == ANY_ORDER
    shown = None if columns is None else (columns,) if isinstance(columns, str) else tuple(columns)
    if shown is not None and not shown:
        raise InputError("columns= names no attribute", help="name at least one, or leave it out to have all")
    if buckets is not None and buckets < 1:
        raise InputError(f"buckets={buckets} is not a number of tasks", help="give a number from 1 on, or leave it out")
    tie_breakers = given[:-1] if any_order else given
    options = Options(type, time, lateness, tie_breakers, any_order, null_keys, null_time, positions, shown, buckets)
    return Recognition(query, options)


class Recognition:
    """What `on` gives: call it with a DataFrame, or hand it to `DataFrame.transform`."""

    def __init__(self, query: Query, options: Options) -> None:
        self.query = query
        self.options = options
        self._observation: Observation | None = None

    def __call__(self, frame: DataFrame) -> DataFrame:
        """The matches in a DataFrame of events, lazily."""
        if frame.isStreaming:
            from cepheid.spark.stream import StreamPlan

            return StreamPlan.of([self.query], None, self.options, frame).run()
        plan = Plan.of(self.query, self.options, frame)
        matches, self._observation = plan.run()
        return matches

    def explain(self, frame: DataFrame) -> str:
        """What runs where for a DataFrame, as text; runs nothing."""
        return Plan.of(self.query, self.options, frame).describe()

    def counts(self) -> dict[str, int]:
        """After an action on the last result: how many events were dropped for a NULL key (`null_keys`) or a NULL time (`null_times`).

        Of events that could be left out because they can change nothing, none is counted. Waits for the first action to end.
        """
        return {} if self._observation is None else dict(self._observation.get)

    def __repr__(self) -> str:
        return f"{self.query!r}.on({self.options!r})"
