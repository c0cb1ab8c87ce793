"""Table functions for SQL: a query by its name, and `cepheid_match` for any query.

    SELECT * FROM fire(TABLE(readings) PARTITION BY sensor ORDER BY ts)

Comes in: a `Query`, the schema of the events and the options of `on`. Goes out: a function that Spark knows by name. The plan of a batch
(`batch.Plan`) decides its result, and `tables` computes it inside Spark's tasks: the call's PARTITION BY and ORDER BY bring the rows there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as spark_types
from pyspark.sql.functions import udtf

from cepheid.errors import InputError, NotSupportedError, SchemaError
from cepheid.query import Query
from cepheid.query import query as query_of
from cepheid.schema import DEFAULT_TIME
from cepheid.spark.any_query import AnyQuery, CallRows
from cepheid.spark.calls import MATCH, plan_of, reading_of
from cepheid.spark.columns import spark_type
from cepheid.spark.recognition import on
from cepheid.spark.tasks.tables import CallPartition
from cepheid.spark.versions import check_dropping, table_function

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession
    from pyspark.sql.udtf import UserDefinedTableFunction


def register(
    spark: SparkSession,
    name: str = MATCH,
    query: Query | str | Path | None = None,
    *,
    schema: DataFrame | str | spark_types.StructType | pa.Schema | None = None,
    type: str | None = None,  # noqa: A002 - public word
    time: str = DEFAULT_TIME,
    order: str | Sequence[str] = (),
    null_keys: str = "drop",
    null_time: str = "error",
    bad_time: str = "error",
    positions: bool = False,
    columns: Sequence[str] | None = None,
    until: object = None,
    match_id: str | None = None,
) -> UserDefinedTableFunction:
    """Make a query a table function of a session: ``SELECT * FROM name(TABLE(events) PARTITION BY key ORDER BY ts)``.

    name: the name in SQL; an existing function of this name is replaced. query: a `Query`, or anything that `cepheid.query` takes. schema: that of
    the events: their DataFrame, the name of their table, or a schema of Spark or Arrow; rows of a call may have more columns, in any order. type,
    time, order, null_keys, null_time, bad_time, positions, columns, match_id: as for `on`. until: as for `on`; NOT FOLLOWED BY needs it, because a
    task does not see the events of other tasks. The function's rows are those of ``events.transform(query.on(..))`` for a call whose PARTITION BY has
    the query's keys (WITH SINGLE PARTITION where it has none) and whose ORDER BY has the time and the columns of order=, these NULLS LAST. Each
    partition of the call is read by itself.

    Without a query: ``cepheid_match(events => TABLE(..) PARTITION BY .. ORDER BY .., query => '..')``, which takes a query's text, its parameters as
    ``args => named_struct(..)`` and the same options except bad_time, because its rows have Python times. It reads the rows one by one, which is much
    slower.

    Returns Spark's function, which DataFrames can call: ``function(events.asTable().partitionBy("key").orderBy("ts"))``. Raises QueryError,
    SchemaError, InputError and LimitError, all before any job. A call raises InputError if a partition has two keys or is not in order, or if there
    is no partition. Tasks raise these errors; `translated` turns them back into Cepheid's.
    """
    if query is None:
        return _register_any(spark, name, schema)
    check_dropping(bad_time)
    query = query if isinstance(query, Query) else query_of(query)
    options = on(
        query,
        type=type,
        time=time,
        order=order,
        null_keys=null_keys,
        null_time=null_time,
        bad_time=bad_time,
        positions=positions,
        columns=columns,
        until=until,
        match_id=match_id,
    ).options
    case_sensitive = str(spark.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"
    plan = plan_of(query, options, _fields(spark, schema), case_sensitive=case_sensitive)
    reading = reading_of(plan, name, option="cepheid.spark.register(.., {}={})", form="{}(TABLE(..) {})")
    by_batches, by_rows = (_class(name, (base,), {"reading": reading}) for base in (CallPartition, CallRows))
    return spark.udtf.register(name, table_function(by_batches, by_rows, plan.output()))


_class = type  # `type` is an option's name


def _register_any(spark: SparkSession, name: str, schema: object) -> UserDefinedTableFunction:
    if name != MATCH or schema is not None:
        raise InputError(
            f"there is no query to register as {name!r}",
            help=("pass it: register(spark, name, query, schema=..)", f"or register(spark) for {MATCH}"),
        )
    return spark.udtf.register(name, cast("UserDefinedTableFunction", udtf(AnyQuery, useArrow=False)))


def _fields(spark: SparkSession, schema: object) -> spark_types.StructType:
    """The schema of the events, in Spark's types."""
    if isinstance(schema, str):
        schema = spark.table(schema)
    if isinstance(schema, DataFrame):
        if schema.isStreaming:
            raise NotSupportedError("a table function reads batch tables, and this one is streaming", help="use stream.transform(q.on(..))")
        return schema.schema
    if isinstance(schema, spark_types.StructType):
        return schema
    if isinstance(schema, pa.Schema):
        return spark_types.StructType([spark_types.StructField(column.name, _spark_type(column)) for column in schema])
    raise InputError(
        f"schema= cannot be a {_class(schema).__name__}",
        help="give the events' DataFrame, the name of their table, or a schema of Spark or Arrow",
    )


def _spark_type(column: pa.Field) -> spark_types.DataType:
    try:
        return spark_type(column.type)
    except StopIteration:
        fact = f"`{column.name}` is {column.type}, which no column of Spark can hold"
        raise SchemaError(fact, help="say what the table has: times in us, plain strings; or give the table's name") from None
