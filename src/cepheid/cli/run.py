"""Evaluation of a query over files, on the chosen engine.

The embedded engine and the reference use the data as read. Spark gets the same Arrow data in its own session on this machine, so types mean the same.
All give the same columns.
"""

from __future__ import annotations

import datetime as dt
import os
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.cli import files
from cepheid.cli.failures import complain
from cepheid.cli.progress import progress
from cepheid.cli.results import Flow, RunResult
from cepheid.cli.settings import Engine
from cepheid.cli.time_columns import check_spaces, check_times, with_times
from cepheid.engine.input.named_types import NamedTypes
from cepheid.engine.input.sources import source_of
from cepheid.engine.letters.values import no_events
from cepheid.engine.output.identity import Repeats
from cepheid.engine.output.matches import plain_type
from cepheid.engine.plan.likely_schema import likely_schema
from cepheid.engine.run.batches import END
from cepheid.errors import InputError, NotSupportedError, SchemaError, counted
from cepheid.language import syntax
from cepheid.records import record
from cepheid.schema import DEFAULT_TIME, DEFAULT_TYPE, STREAM_COLUMN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    import cepheid
    from cepheid.cli.settings import Settings
    from cepheid.engine.input.files.streams import Stream
    from cepheid.logical.plan import QueryPlan
    from cepheid.schema import EventSchema

ROW = "$row"
"""A column of the DataFrame that is no attribute of the events: the number of the row in its file."""


def run(query: cepheid.Query, arguments: Sequence[str], settings: Settings) -> RunResult:
    """The matches of the query in files; raises the errors of reading, binding and evaluation."""
    streams = load(query, arguments, settings)
    warn(query, streams, settings)
    if settings.engine is Engine.SPARK:
        return on_spark(query, streams, settings)
    given = RunInput.of(query, streams, settings)
    with progress("matching", shown=settings.progress) as advance:
        matches = query.run(given.events, **given.arguments, progress=given.told(advance))
    name = settings.match_id
    ids = None if name is None else matches.to_arrow(match_id=name).select([name])

    def piece(start: int, stop: int) -> pa.Table:
        table = matches[start:stop].to_arrow(events=True)
        return table if ids is None else table.add_column(0, ids.field(0), ids.column(0).slice(start, stop - start))

    return found(
        query,
        given.schema,
        len(matches),
        piece,
        schema=with_id(matches.layout.schema(events=True), name),
        notes=[*dropped(matches.null_keys), *waiting(len(matches.undecided)), *matches.warnings],
    )


def flow(query: cepheid.Query, arguments: Sequence[str], settings: Settings) -> RunResult | Flow:
    """The same, made as it is read; on Spark it is all there at once."""
    if settings.engine is Engine.SPARK:
        return run(query, arguments, settings)
    streams = load(query, arguments, settings)
    warn(query, streams, settings)
    given = RunInput.of(query, streams, settings)

    name, repeats = settings.match_id, Repeats()

    def tables() -> Iterator[pa.Table]:
        with progress("matching", shown=settings.progress) as advance:
            batches = query.batches(given.events, **given.arguments, progress=given.told(advance))
            for matches in batches:
                table = matches.to_arrow(events=True)
                yield table if name is None else matches.with_identities(table, name, repeats)
        result.notes = (*dropped(batches.null_keys), *waiting(len(batches.undecided)), *batches.warnings)

    result = Flow(tables(), with_id(query.output_schema(given.schema, events=True), name))
    return result


def with_id(schema: pa.Schema, name: str | None) -> pa.Schema:
    """The columns of matches, with that of their identities in front, if there is one."""
    return schema if name is None else schema.insert(0, pa.field(name, pa.string()))


def warn(query: cepheid.Query, streams: Sequence[Stream], settings: Settings) -> None:
    """Write the warnings of `check` to the standard error, before a run that may be long."""
    for warning in query.bound(schema_of(query, streams, settings)).warnings:
        complain(warning)


@record(slots=False)
class RunInput:
    """What a run embedded gets: events, the other arguments of `Query.run`, the schema that the query is bound to, and how many events there are."""

    events: Any
    arguments: dict[str, Any]
    schema: EventSchema
    rows: int

    @classmethod
    def of(cls, query: cepheid.Query, streams: Sequence[Stream], settings: Settings) -> RunInput:
        """The events of streams: piece by piece, if it is one and nothing asks for all of them at once; else as tables."""
        source = schema_of(query, streams, settings)
        arguments, rows = arguments_of(settings, source), sum(stream.rows for stream in streams)
        stream = streams[0]
        if len(streams) > 1 or settings.sort or settings.order or settings.engine is not Engine.LOCAL:
            return cls(events_of(streams, [each.table() for each in streams]), arguments, source, rows)
        reader = stream.reader(settings.time or DEFAULT_TIME)
        if stream.name is None:
            return cls(reader, arguments, source, rows)
        # What names mean is checked over the stream with its name; what it becomes by that, it becomes piece by piece.
        query.bound(source)
        pieces = typed(query, stream.name, reader, settings)
        alone = {**arguments, "type": source.type_column, "time": source.time_column}
        return cls(pieces, alone, query.schema(pieces.schema, type=source.type_column, time=source.time_column), rows)

    def told(self, advance: Callable[[int, int], None] | None) -> Callable[[int, int], None] | None:
        """`advance` for who knows only the rows done."""
        return None if advance is None else lambda done, _: advance(done, self.rows)


def typed(query: cepheid.Query, name: str, events: pa.RecordBatchReader, settings: Settings) -> pa.RecordBatchReader:
    """The events of a stream with its name, which are in order, as `Query.run` would make them of all at once: with a column of their type."""

    def merged(piece: pa.Table) -> pa.Table:
        return source_of({name: piece}, query.tree, type=settings.type, time=settings.time).events

    schema = merged(events.schema.empty_table()).schema
    pieces = (batch for piece in events for batch in merged(pa.Table.from_batches([piece])).cast(schema).to_batches())
    return pa.RecordBatchReader.from_batches(schema, pieces)


def arguments_of(settings: Settings, source: EventSchema) -> dict[str, Any]:
    """What `Query.run` and `Query.batches` take of the options."""
    return {
        "type": settings.type,
        "time": settings.time,
        "sort": settings.sort,
        "order": settings.order,
        "null_keys": settings.null_keys,
        "until": until_of(settings.until, source),
        "engine": "reference" if settings.engine is Engine.REFERENCE else None,
    }


def load(query: cepheid.Query, arguments: Sequence[str], settings: Settings) -> list[Stream]:
    """The streams in files. Times that are none are found here, and columns of an empty file get the types that the query wants."""
    done = 0
    with progress("reading types", shown=settings.progress) as advance:

        def seen(rows: int) -> None:
            nonlocal done
            done += rows
            if advance is not None:
                advance(done, 0)

        streams = files.streams(arguments, separator=settings.separator, seen=seen)
    time = settings.time or DEFAULT_TIME
    wanted = dict(likely_schema(query).attributes)
    wanted[time] = wanted[DEFAULT_TIME]
    for stream in streams:
        if settings.time is None:
            check_spaces(stream, time)
        check_times(stream, time)
    return [
        with_times(stream, time) if stream.rows else replace(stream, schema=files.with_types(stream.schema, wanted)) for stream in streams
    ]


def events_of(streams: Sequence[Stream], events: Sequence[Any]) -> Any:
    """What `Query.run` takes: the events of one stream without a name, else {name: events}."""
    if len(streams) == 1 and streams[0].name is None:
        return events[0]
    return {stream.name: own for stream, own in zip(streams, events, strict=True)}


def until_of(given: str | None, schema: EventSchema) -> object:
    """The time of `--until` as the time column has it, in UTC where that has a zone and it has none; "end" and None as they are."""
    kind = schema.time_type
    if given is None or given == END or kind is None:
        return given
    wrong = f"--until {given} is not a time of the column `{schema.time_column}` ({kind})"
    try:
        if not pa.types.is_timestamp(kind):
            return dt.date.fromisoformat(given) if pa.types.is_date(kind) else int(given)
        time = dt.datetime.fromisoformat(given)
    except ValueError:
        raise InputError(wrong, help=f"write it as the column has it, or {END}") from None
    if kind.tz is None and time.tzinfo is not None:
        raise InputError(wrong, help="leave its offset (Z, +01:00) out: the column has no time zone")
    return time.replace(tzinfo=dt.UTC) if kind.tz is not None and time.tzinfo is None else time


def dropped(events: int) -> list[str]:
    """The note on events without a key."""
    have, are, them = ("has", "is", "it") if events == 1 else ("have", "are", "them")
    what = f"{counted(events, 'event')} (of any type) {have} no key and {are} left out (--null-keys group makes {them} a partition)"
    return [what] if events else []


def waiting(matches: int, *, way_out: str = "--until end: nothing follows") -> list[str]:
    """The note on matches that are not decided; way_out: what decides them."""
    what = f"{counted(matches, 'match', 'matches')} {'is' if matches == 1 else 'are'}"
    return [f"{what} not decided yet: what NOT FOLLOWED BY forbids may still come ({way_out})"] if matches else []


def schema_of(query: cepheid.Query, streams: Sequence[Stream], settings: Settings) -> EventSchema:
    """The schema of the events in files, as the query reads them. Nothing but schemas is looked at."""
    events = events_of(streams, [no_events(stream.schema) for stream in streams])
    try:
        return source_of(events, query.tree, type=settings.type, time=settings.time).schema
    except SchemaError as error:
        error.help = (*files.without_header(streams), *error.help)
        raise


def schema_of_files(query: cepheid.Query, arguments: Sequence[str], settings: Settings) -> EventSchema | None:
    """The schema of the events in files, as `run` would read them; None without files."""
    return streams_of_files(query, arguments, settings)[1]


def streams_of_files(query: cepheid.Query, arguments: Sequence[str], settings: Settings) -> tuple[Sequence[Stream], EventSchema | None]:
    """The events in files, and their schema, as `run` would read them; none and None without files."""
    if not arguments:
        return (), None
    streams = load(query, arguments, settings)
    return streams, schema_of(query, streams, settings)


def found(
    query: cepheid.Query, source: EventSchema, count: int, piece: Callable[[int, int], pa.Table], *, schema: pa.Schema, notes: Sequence[str]
) -> RunResult:
    """The result, with what its printing has to know of the query."""
    plain = {*query.tree.partition_by, source.type_column or ""}
    asked = [name for name in attributes(query.tree) if name in source.attributes and name not in plain and name != source.time_column]
    return RunResult(count, piece, schema, frozenset(plain), tuple(dict.fromkeys(asked)), source.time_column, tuple(notes))


def attributes(node: syntax.Node) -> Iterator[str]:
    """The names in a query that may be attributes, in the order written."""
    if isinstance(node, syntax.Attribute):
        yield node.path[0]
    elif isinstance(node, syntax.Word):
        yield node.name
    for child in node.children():
        yield from attributes(child)


# --------------------------------------------------------------------------------------------------------------------------- Spark


def on_spark(query: cepheid.Query, streams: Sequence[Stream], settings: Settings) -> RunResult:
    """The matches of the query, by Spark on this machine, in the order of their ends."""
    source = schema_of(query, streams, settings)
    compiled = query.compiled(source)
    layout, absent = compiled.layout, compiled.decides_later
    if layout.time is None:
        raise NotSupportedError("on Spark events need a time column", help="name it with time=")
    from cepheid.spark import merge, on, translated
    from cepheid.spark.tasks.absences import UNDECIDED

    with session(shown=settings.progress) as spark:
        tables = {stream.name: stream.table() for stream in streams}
        frames = {stream.name or "": frame_of(spark, stream, tables[stream.name]) for stream in streams}
        named = len(streams) > 1 or streams[0].name is not None
        frame = merge(time=layout.time, type=settings.type, **frames) if named else frames[""]
        shown = None if layout.measures else [name for name in layout.events.names if name != ROW]
        recognition = on(
            query,
            type=settings.type,
            time=layout.time,
            order=(*settings.order, ROW),
            null_keys=settings.null_keys,
            columns=shown,
            until=until_of(settings.until, source),
            undecided=absent,
            match_id=settings.match_id,
        )
        with progress("Spark matches", shown=settings.progress), translated():
            table = frame.transform(recognition).toArrow()
        null_keys = recognition.counts().get("null_keys", 0)
    undecided = 0
    if absent:
        decided = table.filter(pc.invert(table[UNDECIDED])).drop_columns([UNDECIDED])
        table, undecided = decided, table.num_rows - decided.num_rows
    schema = with_id(layout.schema(events=True), settings.match_id)
    # Spark gives them in no order: by their ends, of those the ones that started last first.
    table = table.cast(schema).sort_by([("end_time", "ascending"), ("start_time", "descending")])
    return found(
        query,
        source,
        table.num_rows,
        lambda start, stop: table.slice(start, stop - start),
        schema=schema,
        notes=[
            *dropped(null_keys),
            *waiting(undecided),
            *unmet_types(compiled.plan, {name: [each] for name, each in tables.items()}, null_keys=settings.null_keys).warnings,
        ],
    )


def unmet_types(plan: QueryPlan, streams: Mapping[str | None, Iterable[pa.Table]], *, null_keys: str = "drop") -> NamedTypes:
    """What a run embedded knows of the types that the query names; streams: by name, piece by piece."""
    types = NamedTypes(plan, group_nulls=null_keys == "group")
    # Merged events have their type in a column of that name where a stream has an attribute of the usual one.
    own = DEFAULT_TYPE if types.column == STREAM_COLUMN else types.column
    wanted = types.column is not None or types.columns.texts
    for name, pieces in streams.items():
        is_type = name in types.named
        for events in pieces if wanted else ():
            named = {each: events[each] for each in (*types.keyless, *types.columns.texts) if each in events.column_names}
            if types.column is not None:
                alone = is_type or own not in events.column_names
                named[types.column] = pa.array([name]).take(pa.array(np.zeros(len(events), np.int64))) if alone else events[own]
            types.see(pa.table(named))
    return types


@contextmanager
def session(*, shown: bool) -> Iterator[SparkSession]:
    """A Spark session on this machine, stopped in the end if it was not there before.

    Raises SetupError without Java or pyspark, NotSupportedError on Spark 3.5.
    """
    from cepheid.spark import local_session

    before = _is_running()
    with progress("Spark starts", shown=shown), _without_log():
        spark = local_session()
    try:
        from cepheid.spark.versions import STREAMS, missing

        if not STREAMS:
            raise missing("--engine spark", "4.0", "or leave it out: the matches are the same")
        yield spark
    finally:
        if not before:
            spark.stop()


def _is_running() -> bool:
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        return False
    return SparkSession.getActiveSession() is not None


@contextmanager
def _without_log() -> Iterator[None]:
    """Keep what the Java that starts here writes to its standard error; it is shown only if the start fails."""
    before = os.dup(2)
    with tempfile.TemporaryFile() as log:
        sys.stderr.flush()
        os.dup2(log.fileno(), 2)
        try:
            yield
        except BaseException:
            log.seek(0)
            os.write(before, log.read())
            raise
        finally:
            os.dup2(before, 2)
            os.close(before)


def frame_of(spark: SparkSession, stream: Stream, table: pa.Table) -> DataFrame:
    """The events of a stream as a DataFrame, with the number of each row, which decides between equal times as it does embedded."""
    for index, field in enumerate(table.schema):
        kind = plain_type(field.type)
        if pa.types.is_timestamp(kind):
            kind = pa.timestamp("us", kind.tz)
        if kind != field.type:
            try:
                table = table.set_column(index, field.name, table.column(index).cast(kind))
            except pa.ArrowInvalid:
                fact = f"`{field.name}` of {stream.source} is {field.type} and finer than microseconds, which Spark cannot hold"
                raise SchemaError(fact, help="round it, or leave out --engine spark") from None
    table = table.append_column(ROW, pa.array(range(table.num_rows), pa.int64()))
    from pyspark.errors import PySparkException

    try:
        return spark.createDataFrame(table)
    except PySparkException as error:
        raise SchemaError(f"Spark cannot read {stream.source}: {error}", help="leave out --engine spark") from None
