"""What a call of a table function means: the plan of its query, and what its tasks have to know.

Comes in: a query, options, and the columns of the call's table. Goes out: a `batch.Plan`, and a `tables.CallReading` as plain values.
"""

from __future__ import annotations

import dataclasses
from dataclasses import field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import types as spark_types

from cepheid.errors import InputError, NotSupportedError, SchemaError, did_you_mean, quoted
from cepheid.query import query as query_of
from cepheid.records import names_of, record
from cepheid.schema import STREAM_COLUMN
from cepheid.spark.batch import Plan
from cepheid.spark.columns import arrow_type, is_binary_text
from cepheid.spark.recognition import on
from cepheid.spark.source import SparkSource, arrow_bytes, arrow_schema, event_schema
from cepheid.spark.tasks.absences import FOREVER
from cepheid.spark.tasks.row_values import to_arrow
from cepheid.spark.tasks.tables import CallReading

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame
    from pyspark.sql.udtf import AnalyzeArgument

    from cepheid.query import Query
    from cepheid.spark.options import Options

MATCH = "cepheid_match"
"""The name of the function for any query, unless another is given."""


def analyzed(
    events: AnalyzeArgument, query: AnalyzeArgument, given: Mapping[str, AnalyzeArgument]
) -> tuple[spark_types.StructType, dict[str, Any]]:
    """What a call of `cepheid_match` gives: its columns, and what its tasks have to know, see `CallReading`. Raises as `sql.register`."""
    if not events.isTable or not isinstance(events.dataType, spark_types.StructType):
        raise InputError("events is not a table", help=f"call {MATCH}(events => TABLE(..) PARTITION BY .. ORDER BY .., query => '..')")
    for name in given:
        if name not in CALL_OPTIONS:
            raise InputError(
                f"{MATCH} has no argument `{name}`",
                help=[*did_you_mean(name, CALL_OPTIONS), f"it has `events`, `query`, {quoted(CALL_OPTIONS)}"],
            )
    values = {name: _constant(name, argument) for name, argument in given.items()}
    text = _constant("query", query)
    if not isinstance(text, str):
        raise InputError(f"query is a {type(text).__name__}", help="give the query's text")
    args = values.pop("args", None) or {}
    asked = query_of(text, args=args.asDict() if isinstance(args, spark_types.Row) else args)
    # The session is out of reach here: its default stands for whether names differ by case.
    plan = plan_of(asked, on(asked, **values).options, events.dataType, case_sensitive=False)
    reading = reading_of(plan, MATCH, option=MATCH + "(.., {} => {})", form="{}(events => TABLE(..) {}, query => '..')")
    return plan.output(), reading


CALL_OPTIONS = ("args", "type", "time", "order", "null_keys", "null_time", "positions", "columns", "until", "match_id")
"""What a call of `cepheid_match` may have besides the events and the query."""


def _constant(name: str, argument: AnalyzeArgument) -> Any:
    """The value of an argument; raises InputError where it is not known before the rows."""
    if argument.isTable or not argument.isConstantExpression:
        raise InputError(f"{name} is not a constant", help="the columns of the output depend on it: write its value")
    convert = to_arrow(arrow_type(argument.dataType))
    return argument.value if convert is None or isinstance(argument.dataType, spark_types.StructType) else convert(argument.value)


@record(slots=False)
class Described(SparkSource):
    """A table of which only the schema is known; its columns have the names that they would have as a DataFrame's."""

    frame: DataFrame = field(init=False, repr=False, compare=False)


def plan_of(query: Query, options: Options, fields: spark_types.StructType, *, case_sensitive: bool) -> Plan:
    """Everything that the schema decides; raises SchemaError, BindError, NotSupportedError and LimitError as `on` does for a DataFrame."""
    if STREAM_COLUMN in fields.names:
        raise NotSupportedError(
            "the events are several streams that merge combined, and a table function reads one table", help="use df.transform(q.on(..))"
        )
    if not isinstance(options.type, str | None):
        raise InputError(
            "type= is an expression, and a table function reads columns", help="name a column, or compute one in the call: TABLE(SELECT ..)"
        )
    arrow_schema(fields)  # whole rows come to a function
    schema = event_schema(fields, query.tree, type=options.type, time=options.time)
    names = {each.name: f"c{index}" for index, each in enumerate(fields)}
    source = Described(names, schema, {each.name: each.dataType for each in fields})
    plan = Plan(query, options, source, query.compiled(schema), case_sensitive)
    if plan.compiled.decides_later and options.until is None:
        raise InputError(
            "NOT FOLLOWED BY needs to know up to when the events are complete, and a task of a table function sees only its own",
            help=(
                'say until="end" if no events follow, or until=, the time up to which they are complete',
                "or use df.transform(q.on(..))",
            ),
        )
    plan.check()
    for key in plan.compiled.keys:
        _check_key(key, source.fields[key], dropped=plan.drops_null(key))
    return plan


def _check_key(name: str, kind: spark_types.DataType, *, dropped: bool) -> None:
    """Raise SchemaError for a key whose events Spark would hand out in pieces: it cuts where the value as Python has it changes."""
    if not is_binary_text(kind):
        raise SchemaError(
            f"the key `{name}` has a collation, and Spark's PARTITION BY would mix its values", help=f"read collate({name}, 'UTF8_BINARY')"
        )
    if isinstance(kind, spark_types.FloatType | spark_types.DoubleType) and not dropped:
        raise SchemaError(f"the key `{name}` is {kind.simpleString()}, and Spark's PARTITION BY does not group NaN", help="cast it")


def reading_of(plan: Plan, function: str, *, option: str, form: str) -> dict[str, Any]:
    """What the tasks have to know, as plain values."""
    task = dataclasses.replace(plan.task(), option=option)
    names = plan.source.names
    attributes = dict(zip(task.keys, task.key_names, strict=True)) | {column: name for name, column in task.payload}
    attributes |= dict(zip(task.ties or (), task.tie_names, strict=False)) | {column: name for name, column in task.reads}
    # With EVENT definitions all that comes in is among the attributes, and predicates read besides what definitions make.
    letters = () if plan.compiled.layers else plan.compiled.reads
    read = dict.fromkeys([*attributes.values(), *letters, task.time_name])
    input_ = pa.schema([(name, plan.source.schema.attributes[name]) for name in read])
    reading = CallReading(
        function=function,
        call="call " + form.format(function, _clauses(plan)),
        task=task.plain,
        input=input_.serialize().to_pybytes(),
        columns=tuple((column, name, column != names[name]) for column, name in attributes.items()),
        relevant=tuple(tuple(program.relevant_masks) for program in plan.compiled.programs) if plan.dropping else None,
        until=FOREVER if plan.ends else plan.until,
        null_keys=plan.options.null_keys,
        drop_null_keys=tuple(column for column, key in zip(task.keys, task.key_names, strict=True) if plan.drops_null(key)),
        drop_null_times=plan.options.null_time == "drop",
        drop_bad_times=plan.options.bad_time == "drop",
        output=arrow_bytes(plan.output()),
    )
    return {name: getattr(reading, name) for name in names_of(CallReading)}


def _clauses(plan: Plan) -> str:
    """What a call of the query's function says about its table."""
    ties = [f"{_quoted(name)} NULLS LAST" for name in plan.options.order]
    partition = f"PARTITION BY ({', '.join(map(_quoted, plan.compiled.keys))})" if plan.compiled.keys else "WITH SINGLE PARTITION"
    return f"{partition} ORDER BY ({', '.join([_quoted(plan.compiled.layout.time or ''), *ties])})"


def _quoted(name: str) -> str:
    return name if name.isidentifier() else "`" + name.replace("`", "``") + "`"
