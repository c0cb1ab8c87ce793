"""`q.on(..)`: a query as a function from a DataFrame of events to a DataFrame of matches, batch or streaming.

Comes in: a `Query` and options. Goes out: a `Recognition`, for `DataFrame.transform`; `batch` and `stream` decide what it does with a DataFrame.
A `Recognition` has no events and no state. The embedded `Recognizer` has both: it takes events batch by batch (`cepheid.engine.run.recognizer`).
"""

from __future__ import annotations

import time as clock
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column

from cepheid.engine.run.allowance import check_max_bytes
from cepheid.errors import CepheidError, InputError, check_choice
from cepheid.schema import DEFAULT_TIME
from cepheid.spark.options import APART, IDLE, Options
from cepheid.spark.queries import QueryPlans
from cepheid.spark.tasks.buckets import OUTPUT_LIMIT
from cepheid.spark.translation import translated
from cepheid.spark.versions import STREAMS, missing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation

    from cepheid.query import Query
    from cepheid.spark.stream import StreamPlan

ANY_ORDER = "any"

PATIENCE = 5.0
"""Seconds without any job after which nobody waits for an action on a result any more."""
"""`order="any"`: events of one key, time and tie-breakers come in any order."""


def on(
    query: Query | str | Sequence[Query | str] | Mapping[str, Query | str],
    *,
    type: str | Column | None = None,  # noqa: A002 - public word
    time: str = DEFAULT_TIME,
    order: str | Sequence[str] = (),
    null_keys: str = "drop",
    null_time: str = "error",
    bad_time: str = "error",
    max_ahead: object = None,
    lateness: object = None,
    partition: str | Sequence[str] = (),
    apart: object = APART,
    idle: object = IDLE,
    until: object = None,
    since: object = None,
    positions: bool = False,
    columns: Sequence[str] | None = None,
    undecided: bool = False,
    late: bool = False,
    buckets: int | None = None,
    hot_keys: bool = False,
    max_bytes: int | None = None,
    match_id: str | None = None,
) -> Recognition:
    """A function for `DataFrame.transform` that returns one row per match of the query, from a batch or a streaming DataFrame.

    query: a query or its text, or whatever else `cepheid.query` takes; or several over the same events and keys, which share the scan, the
    predicates, the shuffle and the state: a list (named "q1", "q2", ..) or {name: query}. The output then has the name in the column `query`, and the
    columns of all queries.

    Which columns say what. type: the column of the event type, or a Column that computes it (default: `type`, or the stream's name, as in
    `Query.run`). time: the column of event time (timestamp, date or integer). order: columns that decide between events of one key and time. Events
    that are still equal are an error (on a stream they come in the order of arrival), unless "any" stands alone or last: then any order will do.

    Which events are left out. null_keys: "drop" events with a NULL in their PARTITION BY key, or "group" them. null_time: what happens to events
    without a time: "error" or "drop". bad_time: the same for times outside the years 1 to 9999; on a stream such events are found before they move
    the watermark, whatever their type. max_ahead: for streams: how far ahead of the clock a time may be, as a text or timedelta; events with later
    times are left out, because they would make all others late (default: no check). lateness: for streams: how late an event may come, as a text
    ("10 minutes") or timedelta, if the time column has no watermark yet.

    Where a stream's source has partitions, such as Kafka's topics. partition: the columns that say which partition an event is from; then an event is
    late only if it is behind the other events of its own partition by more than `lateness`, however unevenly partitions are read. apart: how far
    partitions may be apart in event time; Spark's watermark stays behind by that much more, also for what follows. idle: how long a partition may
    be silent, by the clock, before nobody waits for it.

    Where the data ends. until: for a DataFrame: events after this time are not read, and the events count as complete up to it; "end": no events
    follow. since: for a stream that continues after a DataFrame's `until`: gives the matches that are decided after this time; the stream must start
    at this time minus the window (with EVENT definitions, minus all their windows too).

    What the output has. positions: also give each match its `start_position` and `end_position` and each event its `$index`, counted over the events
    of the key; then no events are left out before the shuffle. columns: the attributes that the events of the output have (default: all). undecided:
    for a DataFrame: also give the matches that a NOT FOLLOWED BY may still veto after `until`, marked in the column `undecided` (bool). late: for
    streams: also give the events that came too late (see `split`). match_id: the name of a column with the identity of each match, 32 hexadecimal
    digits: the same for a match in batch and in a stream, after restarts, and from `Matches.to_arrow(match_id=..)`, so that who reads an output in
    which matches may be repeated can drop the repeats. It is made of the row: another choice of columns= makes other identities.

    What it may take. buckets: the number of tasks of the shuffle (default: Spark's); on a stream the number of state values among which the keys
    are distributed (default: 4 per shuffle partition). hot_keys: for a DataFrame: also spread the events of one key over tasks, by slices of time,
    where it has many; for this a sample of the events is read before, in a pass of its own. max_bytes: for streams: how many bytes the matches of
    one bucket of keys in one micro-batch may take (default: 256 MiB, or a sixteenth of a worker's memory if that is less); more are a LimitError,
    after which the stream can continue from its checkpoint with a larger limit.

    The output has the keys, `start_time`, `end_time`, and per variable of SELECT an array of structs, its events in order, or its measures; the same
    as ``q.run(..).to_arrow(events=True)``, with times and durations in microseconds. Raises InputError for unknown option values. The function raises
    InputError for columns= together with measures, SchemaError, BindError, NotSupportedError and LimitError, all before any job.
    """
    given = (order,) if isinstance(order, str) else tuple(order)
    any_order = given[-1:] == (ANY_ORDER,)
    options = Options(
        type=type,
        time=time,
        lateness=lateness,
        partition=(partition,) if isinstance(partition, str) else tuple(partition),
        apart=apart,
        idle=idle,
        order=given[:-1] if any_order else given,
        any_order=any_order,
        null_keys=null_keys,
        null_time=null_time,
        bad_time=bad_time,
        max_ahead=max_ahead,
        positions=positions,
        columns=(columns,) if isinstance(columns, str) else None if columns is None else tuple(columns),
        buckets=buckets,
        hot_keys=hot_keys,
        late=late,
        until=until,
        undecided=undecided,
        since=since,
        max_bytes=_checked_bytes(max_bytes),
        match_id=match_id,
    )
    _check(options)
    return Recognition(*named(query), options)


def _check(options: Options) -> None:
    """Raise InputError for values that no DataFrame makes right."""
    check_choice("null_keys", options.null_keys, ("drop", "group"))
    check_choice("null_time", options.null_time, ("error", "drop"))
    check_choice("bad_time", options.bad_time, ("error", "drop"))
    if not isinstance(options.type, str | Column | None):
        raise InputError(f"type= cannot be {options.type!r}", help="name a column, or give a Column that computes the type")
    if options.match_id is not None and not _is_name(options.match_id):
        raise InputError(
            f"match_id={options.match_id!r} is no name of a column", help='give one, like match_id="match_id", or leave it out'
        )
    if options.columns == ():
        raise InputError("columns= names no attribute", help="name at least one, or leave it out to have all")
    if options.hot_keys and options.undecided:
        raise InputError(
            "hot_keys=True cuts the time of a key into slices, and undecided=True looks at the end of all", help="leave one of them out"
        )
    if options.buckets is not None and not _is_number_of_tasks(options.buckets):
        raise InputError(f"buckets={options.buckets!r} is not a number of tasks", help="give an integer, 1 or more, or leave it out")


def _checked_bytes(value: object) -> int | None:
    found = check_max_bytes(value)
    if found is not None and found > OUTPUT_LIMIT:
        raise InputError(
            f"max_bytes={found:,} is more than Spark takes from one bucket: {OUTPUT_LIMIT:,} bytes (OUTPUT_LIMIT)",
            help="give at most that many, and more buckets= in a new checkpoint",
        )
    return found


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _is_number_of_tasks(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 1 << 31


def named(query: Query | str | Sequence[Query | str] | Mapping[str, Query | str]) -> tuple[tuple[Query, ...], tuple[str, ...] | None]:
    """Queries and their names (None for a single query); raises InputError if there are none, and as `cepheid.query` where they are texts."""
    if isinstance(query, str) or not isinstance(query, Mapping | Sequence):
        return (_made(query),), None
    given = dict(query) if isinstance(query, Mapping) else {f"q{number}": each for number, each in enumerate(query, 1)}
    if not given:
        raise InputError("there is no query", help="give at least one")
    made = []
    for name, each in given.items():
        try:
            made.append(_made(each))
        except CepheidError as error:
            raise error.of_query(name) from None
    return tuple(made), tuple(given)


def _made(given: Query | str) -> Query:
    from cepheid.query import Query, query

    return given if isinstance(given, Query) else query(given)


class Recognition:
    """The result of `on`: call it with a DataFrame, or pass it to `DataFrame.transform`."""

    def __init__(self, queries: tuple[Query, ...], names: tuple[str, ...] | None, options: Options) -> None:
        self.queries = queries
        self.names = names
        self.options = options
        # Of the last result; one value, so that threads that call the same object never mix two results.
        self._last: tuple[QueryPlans, Observation | None] | None = None
        self._streams = False

    def __call__(self, frame: DataFrame) -> DataFrame:
        """The matches in a DataFrame of events, lazily; raises InputError for anything else."""
        if not hasattr(frame, "isStreaming"):
            raise InputError(
                f"a Spark query takes a Spark DataFrame, not a {type(frame).__module__.partition('.')[0]} {type(frame).__name__}",
                help="q.run(..) takes other events; spark.createDataFrame(..) makes a DataFrame of Spark",
            )
        if frame.isStreaming:
            found = self._stream(frame).run()
            self._streams = True
            return found
        self._check_options()
        several = QueryPlans.of(self.queries, self.names, self.options, frame)
        matches, observation = several.run()
        self._last = several, observation
        return matches

    def _check_options(self) -> None:
        """Raise InputError for options of streams alone."""
        if self.options.late:
            raise InputError(
                "late=True gives the late events of a stream, and this DataFrame is not a stream",
                help="leave late= out: it reads all events",
            )
        if self.options.since is not None:
            raise InputError(
                "since= says where a stream continues, and this DataFrame is not a stream", help="until= says where a DataFrame ends"
            )
        if self.options.max_bytes is not None:
            raise InputError(
                "max_bytes= is for the matches of a stream's micro-batch, and this DataFrame is not a stream",
                help="leave max_bytes= out: a batch gives its matches as they are made, however many",
            )
        if self.options.max_ahead is not None:
            raise InputError(
                "max_ahead= compares events with the clock when they come in on a stream, and this DataFrame is not a stream",
                help="leave such events out with a time that does not change from run to run: df.where(..)",
            )

    def _stream(self, frame: DataFrame) -> StreamPlan:
        if self.options.hot_keys:
            raise InputError(
                "hot_keys=True is for tables, and this DataFrame is a stream",
                help="leave it out; the events of one key have one order, which a PARTITION BY with more keys splits",
            )
        if not STREAMS:
            raise missing("a query over a stream", "4.0", "or recognize batches: df.transform(q.on(.., until=..)) on what is there so far")
        from cepheid.spark.stream import StreamPlan

        return StreamPlan(QueryPlans.of(self.queries, self.names, self.options, frame))

    def explain(self, frame: DataFrame) -> str:
        """What the query means, in sentences, and what runs where for a DataFrame, as text; runs nothing."""
        if frame.isStreaming:
            return self._stream(frame).describe()
        return QueryPlans.of(self.queries, self.names, self.options, frame).describe()

    def counts(self) -> dict[str, int]:
        """After an action on the last result: how many events were dropped.

        By reason: a NULL key (`null_keys`), a NULL time (`null_times`), a time outside the years 1 to 9999 (`bad_times`). Events of any type are
        counted, also those that could not change the result. Waits for the first action to end. If Spark has lost the counts of that action (it skips
        the rest of a plan when no rows are left), a job counts again. Raises InputError where there was a stream alone, and where the last result has
        not run and no job of the session is running.
        """
        if self._streams and self._last is None:
            raise InputError(
                "counts() is about a table, and the DataFrame is streaming",
                help="a cepheid.spark.Listener has these counts of each micro-batch: spark.streams.addListener(Listener())",
            )
        several, observation = self._last or (None, None)
        if several is None or observation is None:
            return {}
        _wait_for(observation)
        try:
            found = dict(observation.get)
        except Exception as error:
            if type(error).__name__ != "Py4JJavaError":  # py4j itself is not there beside a client of Spark Connect
                raise
            found = {}
        if found:
            return found
        with translated():
            return several.drop_counts()

    def warnings(self, frame: DataFrame) -> tuple[str, ...]:
        """What is doubtful in the types of a batch DataFrame, as `Matches.warnings` says it; of several queries, behind their names.

        A type that the query names and no event has; types that differ from a named one only in case or spaces, with their counts; types of which no
        event has a key. Runs one small job for each query, which reads the type and the keys: the matches themselves are made without the events of
        other types, which a source need not read. Raises InputError for a streaming DataFrame, else as a call.
        """
        if frame.isStreaming:
            raise InputError("warnings() counts the types of all events, and this DataFrame is streaming", help="give it a table of events")
        several = QueryPlans.of(self.queries, self.names, self.options, frame)
        with translated():
            return several.warnings()

    def __repr__(self) -> str:
        queries = repr(self.queries[0]) if self.names is None else repr(dict(zip(self.names, self.queries, strict=True)))
        return f"cepheid.spark.on({queries}, {self.options!r})"


def _wait_for(observation: Observation) -> None:
    """Wait until an action has told what was observed, as long as any job runs; Spark itself would wait for an action that never comes.

    Raises InputError where none does for PATIENCE seconds.
    """
    observed = getattr(observation, "_jo", None)
    if observed is None:  # with a client of Spark Connect, which does not wait
        return
    from pyspark import SparkContext

    jobs = SparkContext.getOrCreate().statusTracker()
    quiet = clock.monotonic()
    while not _is_told(observed):
        if jobs.getActiveJobsIds():
            quiet = clock.monotonic()
        elif clock.monotonic() - quiet > PATIENCE:
            raise InputError(
                "counts() is about the last result, which no action has run",
                help="run it first, as in matches.count() or matches.write: then call counts(); one `on` for each result tells them apart",
            )
        clock.sleep(0.02)


def _is_told(observed: Any) -> bool:
    """Whether an action has told what was observed; of a Spark that does not say so, True: then its own call waits."""
    try:
        return bool(observed.future().isCompleted())
    except Exception as error:
        if not type(error).__name__.startswith("Py4J"):  # py4j itself is not there beside a client of Spark Connect
            raise
        return True
