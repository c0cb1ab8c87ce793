"""One query, three ways: embedded, on Spark as a batch, and on Spark as a stream whose events come in disorder; the matches must be the same.

Comes in: a query and a table of events. Goes out: nothing, or an AssertionError that names the ways that differ and the first matches that one has
and the other has not. For tests of users' own pipelines: of their data's types, ties and NULL keys, on their session with its settings.
"""

from __future__ import annotations

import datetime as dt
import math
import uuid
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import InputError, SchemaError
from cepheid.schema import DEFAULT_TIME, time_casts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from cepheid.query import Query

SHOWN_DIFFERENCES = 3
"""Matches that a message shows of those that one way has and another has not."""

SHOWN_CHARACTERS = 300
"""Characters of a match in a message."""

MICRO_BATCHES = 4
"""In so many micro-batches the events of the stream come, where Spark lets a source say so."""

LEAST_LATENESS = dt.timedelta(seconds=1)
CLOSING = dt.timedelta(days=36_500)
"""So long after the last event the stream is closed: every window has ended by then, and every absence is decided."""

EMBEDDED, BATCH, STREAM = "embedded", "Spark batch", "Spark stream"
DECIDED = "decided_time"
"""The column that only a stream has."""


def assert_same(
    query: Query | str,
    table: object,
    *,
    time: str = DEFAULT_TIME,
    type: str | None = None,  # noqa: A002 - public word
    order: str | Sequence[str] = (),
    lateness: dt.timedelta | str | None = None,
    match_id: str | None = None,
    spark: SparkSession | None = None,
    seed: int = 0,
) -> None:
    """Fail unless a query has the same matches embedded, on Spark as a batch, and on Spark as a stream with events in disorder.

    query: a query or its text. table: its events: anything that `Query.run` takes. time: their time column, a timestamp (one without zone is read as
    UTC). type, order: as for `Query.run`; events of one key and equal time need an order, for Spark reads them in any. lateness: how late events of
    the stream come, at random (default: a tenth of the time from first to last, a second at least). match_id: a name for the column of the
    matches' identities, which are then compared too. seed: of this disorder. spark: the session (default: the active one, else
    `cepheid.spark.local_session`, which then stays).

    The events count as complete: absences are decided. Raises AssertionError with the first differences, SchemaError for a time column that a stream
    cannot have, InputError for a table without events, and as `Query.run` and `cepheid.spark.on` for what a way does not take. Three runs, of
    seconds on Spark.
    """
    # Late: the definition of queries is in this package, and must not need an engine.
    from cepheid.arguments import columns_of
    from cepheid.engine.input.sources import whole
    from cepheid.query import Query
    from cepheid.query import query as query_of
    from cepheid.spark.sources.replay import in_spark_types

    asked = query if isinstance(query, Query) else query_of(query)
    events = in_spark_types(_with_instants(whole(None, table, time=time), time))
    columns = columns_of("order", order)
    session = _session() if spark is None else spark
    found = {
        EMBEDDED: asked.run(events, time=time, type=type, order=columns, sort=True, until="end").to_arrow(events=True, match_id=match_id),
        BATCH: _batch(session, asked, events, time=time, type=type, order=columns, match_id=match_id, seed=seed),
        STREAM: _stream(
            session,
            asked,
            events,
            time=time,
            type=type,
            order=columns,
            match_id=match_id,
            seed=seed,
            lateness=_lateness(events[time], lateness),
        ),
    }
    differences = compared(found)
    if differences:
        raise AssertionError("\n".join(differences))


def compared(found: Mapping[str, pa.Table]) -> list[str]:
    """The lines that say how tables of matches differ from the first, by the name of each; empty where none does. Rows come in any order."""
    counts = {name: Counter(_rows(table)) for name, table in found.items()}
    first, *others = found
    lines = []
    for name in others:
        lines += _listed(f"{name} lacks", counts[first] - counts[name])
        lines += _listed(f"only {name} has", counts[name] - counts[first])
    numbers = ", ".join(f"{name} {counts[name].total():,}" for name in found)
    return [f"the matches differ: {numbers}", *lines] if lines else []


def _listed(what: str, rows: Counter[str]) -> list[str]:
    shown = sorted(rows.elements())
    lines = [f"  {what}  {row if len(row) <= SHOWN_CHARACTERS else row[:SHOWN_CHARACTERS] + ' ..'}" for row in shown[:SHOWN_DIFFERENCES]]
    more = len(shown) - len(lines)
    return [*lines, f"  {what}  {more:,} more"] if more > 0 else lines


def _rows(table: pa.Table) -> list[str]:
    """Each row as text that is equal where the values are."""
    names = [name for name in table.column_names if name != DECIDED]
    rows = zip(*(table[name].to_pylist() for name in names), strict=True)
    return [", ".join(f"{name}={_shown(value)}" for name, value in zip(names, row, strict=True)) for row in rows]


def _shown(value: Any) -> str:
    """A value: times in UTC, no -0.0 (keys on Spark have none), events with their attributes."""
    if isinstance(value, dict):
        return f"({', '.join(f'{name}={_shown(inner)}' for name, inner in value.items())})"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, dt.datetime):
        return str(value if value.tzinfo is None else value.astimezone(dt.UTC)).replace("+00:00", "Z")
    if isinstance(value, float) and not math.isnan(value):
        return repr(value + 0.0)
    return str(value) if isinstance(value, dt.date | dt.timedelta) else repr(value)


# ---------------------------------------------------------------------------------------------------------------- the three ways


def _with_instants(table: pa.Table, time: str) -> pa.Table:
    """The events with times of a zone, as streams have them. Raises SchemaError for what is no timestamp, InputError for no events."""
    if not table.num_rows:
        raise InputError("the table has no events", help="give at least one")
    if time not in table.column_names:
        return table  # the run says so
    kind = table.schema.field(time).type
    if not pa.types.is_timestamp(kind):
        raise SchemaError(
            f"a stream's event time is a timestamp, and `{time}` is {kind}: it cannot be run in all three ways", help=time_casts(time)
        )
    if kind.tz is not None:
        return table
    return table.set_column(table.column_names.index(time), time, table[time].cast(pa.timestamp(kind.unit, "UTC")))


def _session() -> SparkSession:
    from pyspark.sql import SparkSession as Sessions

    from cepheid.spark.session import local_session

    return Sessions.getActiveSession() or local_session()


def _lateness(times: pa.ChunkedArray, given: dt.timedelta | str | None) -> dt.timedelta:
    from cepheid.spark.sources.replay import microseconds

    if given is not None:
        return dt.timedelta(microseconds=microseconds("lateness", given) or 0)
    least, greatest = (value.cast(pa.int64()).as_py() for value in pc.min_max(times).values())
    return LEAST_LATENESS if least is None else max(dt.timedelta(microseconds=(greatest - least) // 10), LEAST_LATENESS)


def _batch(
    session: SparkSession,
    query: Query,
    events: pa.Table,
    *,
    time: str,
    type: str | None,  # noqa: A002
    order: Sequence[str],
    match_id: str | None,
    seed: int,
) -> pa.Table:
    from pyspark.sql import functions as F  # noqa: N812 - the name that everybody gives this module

    from cepheid.spark import translated

    with translated():
        frame = session.createDataFrame(events).orderBy(F.rand(seed)).repartition(3)
        return frame.transform(query.on(time=time, type=type, order=order, until="end", match_id=match_id)).toArrow()


def _stream(
    session: SparkSession,
    query: Query,
    events: pa.Table,
    *,
    time: str,
    type: str | None,  # noqa: A002
    order: Sequence[str],
    match_id: str | None,
    seed: int,
    lateness: dt.timedelta,
) -> pa.Table:
    from pyspark.sql import functions as F  # noqa: N812 - the name that everybody gives this module

    from cepheid.spark import replay, translated
    from cepheid.spark.columns import column_named
    from cepheid.spark.versions import PAGES

    rows = max(-(-events.num_rows // MICRO_BATCHES), 1) if PAGES else None
    last = pc.max(events[time]).cast(pa.int64()).as_py()
    name = f"cepheid_same_{uuid.uuid4().hex}"
    with translated():
        stream = replay(session, events, time=time, disorder=lateness, seed=seed, rows_per_batch=rows, close=CLOSING)
        milliseconds = -(-lateness // dt.timedelta(milliseconds=1))
        dated = stream.withWatermark(time, f"{milliseconds} milliseconds")
        # The row that closes the stream moves the watermark and is no event. A condition on the time stays above the watermark.
        matches = dated.where(column_named(time) <= F.timestamp_micros(F.lit(last))).transform(
            query.on(time=time, type=type, order=order, match_id=match_id)
        )
        running = matches.writeStream.format("memory").queryName(name).trigger(availableNow=True).start()
        try:
            running.awaitTermination()
            return session.table(name).toArrow()
        finally:
            running.stop()
            session.catalog.dropTempView(name)
