"""A DataFrame as a stream of events: its schema in Arrow's terms, its columns under names of our own, several streams as one.

Comes in: DataFrames. Goes out: what binding needs (an `EventSchema`) and what columns need (`SparkSource`: one DataFrame whose columns have names
without dots, backticks or letter case to trip over, and for each attribute of the query its column).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the name that everybody gives this module
from pyspark.sql import types as spark_types

from cepheid.engine.input.column_types import common_type
from cepheid.engine.input.sources import no_common_time, used_types
from cepheid.errors import InputError, SchemaError, did_you_mean, quoted
from cepheid.records import record
from cepheid.schema import (
    DEFAULT_TIME,
    DEFAULT_TYPE,
    STREAM_COLUMN,
    EventSchema,
    can_be_type,
    check_doubles,
    schema_of,
    unreadable_of,
    with_unreadable,
)
from cepheid.spark.columns import arrow_type, column_named, spark_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from cepheid.language.syntax import Query as Tree

STREAMS_METADATA = "cepheid.streams"
"""Metadata of the column `STREAM_COLUMN` of merged streams: JSON, [[stream, its columns, whether it has a type column], ..], in order."""

WATERMARK = "spark.watermarkDelayMs"
"""The metadata of a column that withWatermark was called on: the delay in milliseconds."""

RANK_COLUMN = "$rank"
"""Where an event of merged streams stands in FROM; never an attribute."""


@record(slots=False)
class SparkSource:
    """One DataFrame, ready to be read by a query.

    frame: columns c0, c1, ..; names: attribute -> its column there. schema: for binding. fields: attribute -> its type in Spark. rank: the
    column that orders equal times of merged streams, or None. lean: whether what tasks can make of other columns does not travel: of a table, for
    what travels on a stream is in the state of its checkpoints.
    """

    frame: DataFrame
    names: dict[str, str]
    schema: EventSchema
    fields: dict[str, spark_types.DataType]
    rank: str | None = None
    lean: bool = False


def arrow_schema(fields: spark_types.StructType) -> pa.Schema:
    """The schema of a DataFrame as Arrow shows it; raises SchemaError for types that Spark has no Arrow form of."""
    found = readable_schema(fields)
    for fact, help_ in unreadable_of(found).values():
        raise SchemaError(fact, help=(help_, "or drop it before"))
    return found


def readable_schema(fields: spark_types.StructType) -> pa.Schema:
    """The columns of a DataFrame that Arrow can show; `unreadable_of` has the others, which are no error where nothing reads them."""
    kinds = {field.name: arrow_type(field.dataType) for field in fields}
    unreadable = {field.name: _unreadable(field.name, field.dataType) for field in fields if kinds[field.name] is None}
    readable = pa.schema([(field.name, arrow_type(field.dataType)) for field in fields if field.name not in unreadable])
    return with_unreadable(readable, unreadable)


def _unreadable(name: str, kind: spark_types.DataType) -> tuple[str, str]:
    """What a column is that Arrow cannot show, and what makes one of it that can be read."""
    plain = name if name.isidentifier() else "`" + name.replace("`", "``") + "`"
    ways = {
        "variant": f"F.variant_get({plain!r}, '$.path', 'double') for one value of it, or F.to_json({plain!r}) for all of it as text",
        "interval": f"F.col({plain!r}).cast('string')",
    }
    if isinstance(kind, spark_types.StructType):
        inner = next((field.name for field in kind if arrow_type(field.dataType) is not None), None)
        nested = "" if inner is None else f"F.col({f'{plain}.{inner}'!r}) for one field of it, or "
        way = f"{nested}F.to_json({plain!r}) for all of it as text"
    elif isinstance(kind, spark_types.ArrayType | spark_types.MapType):
        way = f"F.to_json({plain!r}) for all of it as text"
    else:
        way = ways.get(kind.typeName(), ways["interval"])
    return (
        f"the column `{name}` is {kind.simpleString()}, which Spark cannot pass to Python",
        f"cast it before: df.withColumn({name!r}, ..) with {way}",
    )


def arrow_bytes(fields: spark_types.StructType) -> bytes:
    """The same as bytes that travel."""
    return bytes(arrow_schema(fields).serialize().to_pybytes())


def source_of(frame: DataFrame, tree: Tree, *, type: str | Column | None, time: str | None) -> SparkSource:  # noqa: A002 - public word
    """A DataFrame as a query reads it.

    type: a column name, or a Column of the frame that gives each event's type. time: the time column. Raises SchemaError where a column is
    missing, twice there or of a wrong type.
    """
    merged = STREAM_COLUMN in frame.columns
    if merged and not isinstance(type, Column):
        return _merged_source(frame, tree, type=type, time=time)
    typed: str | None = type if isinstance(type, str) else None
    if isinstance(type, Column):
        frame = frame.select("*", type.cast("string").alias(STREAM_COLUMN))
        typed = STREAM_COLUMN
    schema = schema_of(readable_schema(frame.schema), type=typed, time=time, streams=tree.streams, used=used_types(tree))
    return _plainly_named(frame, schema)


def event_schema(described: DataFrame | spark_types.StructType, tree: Tree, *, type: str | None, time: str | None) -> EventSchema:  # noqa: A002
    """What binding knows of a DataFrame, or of its schema (merged streams: of the DataFrame). Raises SchemaError."""
    if isinstance(described, spark_types.StructType):
        return schema_of(readable_schema(described), type=type, time=time, streams=tree.streams, used=used_types(tree))
    return source_of(described, tree, type=type, time=time).schema


def _plainly_named(frame: DataFrame, schema: EventSchema) -> SparkSource:
    names = {name: f"c{index}" for index, name in enumerate(frame.columns)}
    fields = {field.name: field.dataType for field in frame.schema.fields}
    return SparkSource(frame.toDF(*names.values()), names, schema, fields, names.get(RANK_COLUMN), lean=not frame.isStreaming)


# ------------------------------------------------------------------------------------------------------------------ merged streams


def merge(*, time: str = DEFAULT_TIME, type: str | None = None, **streams: DataFrame) -> DataFrame:  # noqa: A002 - public word
    """Several streams as one DataFrame that `q.on` takes: `merge(weather=df1, flights=df2, time="ts")`.

    The type of an event is the name of its stream if the query uses that name as a type or the stream has no type column; otherwise it is in the type
    column (`type`, or another name with type=). Attributes that a stream lacks are NULL. Equal times are ordered by FROM, without FROM by the order
    given here, then by `order`. The result has the columns of all streams, the type column, and `$stream` with the stream's name. Raises SchemaError
    if the time column is missing or a column has types that do not fit together, InputError if only some of several streaming DataFrames have a
    watermark.
    """
    if not streams:
        raise InputError("there are no streams to merge", help="pass each with its name: merge(flights=df1, weather=df2)")
    type_column = type or DEFAULT_TYPE
    schemas = {name: arrow_schema(frame.schema) for name, frame in streams.items()}
    for name in schemas:
        _check_stream(name, schemas, time)
    _check_watermarks(streams, time)
    kinds = _common_types(schemas, time)
    first = next(iter(schemas.values())).names
    columns = list(dict.fromkeys([*first, type_column, *kinds]))
    _check_merged(columns, schemas, type_column, next(iter(streams.values())).sparkSession)
    described = [[name, list(schema.names), type_column in schema.names] for name, schema in schemas.items()]
    metadata = {STREAMS_METADATA: json.dumps(described)}
    frames = [
        _aligned(name, frame, columns, kinds, type_column).select("*", F.lit(name).alias(STREAM_COLUMN)) for name, frame in streams.items()
    ]
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.union(frame)
    names = whole.columns
    return whole.select(*(column_named(name) for name in names[:-1]), column_named(STREAM_COLUMN).alias(STREAM_COLUMN, metadata=metadata))


def _check_merged(columns: Sequence[str], schemas: dict[str, pa.Schema], type_column: str, session: SparkSession) -> None:
    """Raise SchemaError for columns of different streams that are one to Spark, and for a type column that cannot have a stream's name."""
    if str(session.conf.get("spark.sql.caseSensitive", "false")).lower() != "true":
        seen: dict[str, str] = {}
        for column in columns:
            other = seen.setdefault(column.lower(), column)
            if other != column:
                raise SchemaError(
                    f"the streams have columns `{other}` and `{column}`, which are the same to Spark", help="rename one of them"
                )
    if all(type_column in schema.names for schema in schemas.values()):
        return
    for stream, schema in schemas.items():
        if type_column in schema.names and not can_be_type(schema.field(type_column).type):
            raise SchemaError(
                f"`{type_column}` of the stream `{stream}` is {schema.field(type_column).type}, and other streams get their name in it",
                help="rename it, or name another column of event types: merge(.., type=..)",
            )


def _check_watermarks(streams: dict[str, DataFrame], time: str) -> None:
    """Raise InputError where some streaming DataFrames have a watermark and others do not: these would not count in it, and all come too late."""
    without = [name for name, frame in streams.items() if frame.isStreaming and WATERMARK not in (frame.schema[time].metadata or {})]
    if without and len(without) < sum(frame.isStreaming for frame in streams.values()):
        raise InputError(
            f"{quoted(without)} {'has' if len(without) == 1 else 'have'} no watermark, and other streams to merge have one",
            help=(f"call .withWatermark({time!r}, ..) on each of them", "or on none, and say q.on(.., lateness=..)"),
        )


def _check_stream(name: str, schemas: dict[str, pa.Schema], time: str) -> None:
    schema = schemas[name]
    check_doubles(f"the stream `{name}`", schema.names)
    if time not in schema.names:
        raise no_common_time(name, time, schemas)
    if STREAM_COLUMN in schema.names:
        raise SchemaError(f"the stream `{name}` is merged already", help="merge all streams in one call")
    if RANK_COLUMN in schema.names:
        raise SchemaError(f"the stream `{name}` has a column `{RANK_COLUMN}`, which merge makes itself", help="rename it")


def _common_types(schemas: dict[str, pa.Schema], time: str) -> dict[str, pa.DataType]:
    """The columns of all streams, in the order of their first appearance, each with the type that holds the values of all."""
    found: dict[str, pa.DataType] = {}
    first: dict[str, str] = {}
    for stream, schema in schemas.items():
        for column in schema:
            kind = found.setdefault(column.name, column.type)
            common = common_type(kind, column.type)
            if common is None or pa.types.is_decimal256(common):  # Spark's decimals have 38 digits
                raise SchemaError(
                    f"`{column.name}` is {kind} in the stream `{first[column.name]}` and {column.type} in `{stream}`",
                    help="cast one of them" + ("" if column.name == time else ", or rename it"),
                )
            found[column.name] = common
            first.setdefault(column.name, stream)
    return found


def _widened(column: Column, kind: spark_types.DataType, common: pa.DataType) -> Column:
    """The column in a common type, fields of structs by their names: a cast of Spark goes by their places. NULL stays NULL."""
    if arrow_type(kind) == common:
        return column
    if isinstance(kind, spark_types.StructType):
        own = {field.name: _widened(column.getField(field.name), field.dataType, common.field(field.name).type) for field in kind}
        fields = [own.get(field.name, F.lit(None).cast(spark_type(field.type))).alias(field.name) for field in common]
        return F.when(column.isNotNull(), F.struct(*fields))
    if isinstance(kind, spark_types.ArrayType):
        inner = kind.elementType
        return F.transform(column, lambda value: _widened(value, inner, common.value_type))
    if isinstance(kind, spark_types.MapType):
        inner = kind.valueType
        column = F.transform_values(column, lambda _, value: _widened(value, inner, common.item_type))
    if isinstance(kind, spark_types.LongType) and pa.types.is_floating(common):
        rounded = F.raise_error(
            F.concat(F.lit("a stream to merge has the integer "), column.cast("string"), F.lit(f", which {common} cannot hold"))
        )
        column = F.when(F.abs(column) > 1 << 53, rounded).otherwise(column)
    return column.cast(spark_type(common))


def _aligned(stream: str, frame: DataFrame, columns: list[str], kinds: dict[str, pa.DataType], type_column: str) -> DataFrame:
    """One stream with the columns of all: NULL for those it lacks, its name as type where it has none."""
    own = {field.name: field.dataType for field in frame.schema}
    selected = []
    for name in columns:
        lacking = F.lit(stream) if name == type_column else F.lit(None)
        column = _widened(column_named(name), own[name], kinds[name]) if name in own else lacking
        selected.append(column.alias(name))
    return frame.select(*selected)


def _merged_source(frame: DataFrame, tree: Tree, *, type: str | None, time: str | None) -> SparkSource:  # noqa: A002 - public word
    """The source of what `merge` gave: the streams of FROM alone, typed by their names where the query uses these."""
    streams = json.loads(frame.schema[STREAM_COLUMN].metadata.get(STREAMS_METADATA, "[]"))
    known = {name: (columns, typed) for name, columns, typed in streams}
    wanted = tuple(dict.fromkeys(tree.streams or known))
    for name in wanted:
        if name not in known:
            raise SchemaError(
                f"the query reads the stream `{name}`, and the input has no such stream",
                help=[*did_you_mean(name, known), f"the input has {quoted(known)}"],
            )
    used = used_types(tree)
    own_type = type or DEFAULT_TYPE
    typed = [name for name in wanted if known[name][1]]
    by_name = [name for name in wanted if name in used or name not in typed]
    schema = _merged_schema(
        frame, {name: known[name][0] for name in wanted}, own_type, by_stream=set(typed) & set(by_name) != set(), time=time
    )
    if len(by_name) < len(wanted):
        schema = EventSchema(schema.attributes, schema.type_column, None, None, schema.time_column)
    return _plainly_named(_ranked(frame, wanted, typed, by_name, schema, own_type), schema)


def _merged_schema(frame: DataFrame, streams: dict[str, list[str]], own_type: str, *, by_stream: bool, time: str | None) -> EventSchema:
    """The schema in which every stream's name is a type; by_stream: a stream has an attribute of the type column's name besides."""
    type_column = STREAM_COLUMN if by_stream else own_type
    arrow = arrow_schema(frame.schema)
    base = schema_of(arrow, type=type_column, time=time)
    attributes = {name: kind for name, kind in base.attributes.items() if by_stream or name != STREAM_COLUMN}
    types = {name: frozenset([*columns, type_column]) for name, columns in streams.items()}
    return EventSchema(attributes, type_column, None, types, base.time_column)


def _ranked(frame: DataFrame, wanted: Sequence[str], typed: list[str], by_name: list[str], schema: EventSchema, own_type: str) -> DataFrame:
    """The streams of the query with their place in FROM; where the streams' names are the types beside a type column, these as `$stream`."""
    stream = column_named(STREAM_COLUMN)
    place = F.lit(len(wanted))
    for index, name in enumerate(wanted):
        place = F.when(stream == name, index).otherwise(place)
    columns = {name: column_named(name) for name in frame.columns if name != STREAM_COLUMN}
    if schema.type_column == STREAM_COLUMN:
        columns[STREAM_COLUMN] = F.when(stream.isin(by_name), stream).otherwise(columns[own_type])
        columns[own_type] = F.when(stream.isin(typed), columns[own_type])
    columns[RANK_COLUMN] = place
    return frame.where(stream.isin(*wanted)).select(*(column.alias(name) for name, column in columns.items()))
