"""A query and its events as a program: Python, and PySpark."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cepheid.engine.output.matches import python_value
from cepheid.errors import counted
from cepheid.play.limits import MAX_ROWS_OF_CODE
from cepheid.schema import DEFAULT_TIME, DEFAULT_TYPE

if TYPE_CHECKING:
    from collections.abc import Mapping

    import cepheid
    from cepheid.play.inputs import ShownEvents

DDL = {
    pa.string(): "string",
    pa.large_string(): "string",
    pa.bool_(): "boolean",
    pa.int64(): "bigint",
    pa.int32(): "int",
    pa.float64(): "double",
    pa.date32(): "date",
}
"""Spark's names of the types that events of the page have, but for times."""


def python(query: cepheid.Query, given: ShownEvents, *, ended: bool) -> str:
    """A program that runs the query over the events with Cepheid alone."""
    options = _options(given, ended=ended, sort=True)
    lines = [*_imports(query, given, "import cepheid"), "", *_query(query), *_rows(given, "events"), ""]
    return "\n".join([*lines, f"matches = query.run({', '.join(['events', *options])})", "print(matches)", ""])


def pyspark(query: cepheid.Query, given: ShownEvents, *, ended: bool) -> str:
    """The same on Spark."""
    schema = ", ".join(f"`{field.name.replace('`', '``')}` {_ddl(field.type)}" for field in given.table.schema)
    options = _options(given, ended=ended, sort=False)
    lines = [*_imports(query, given, "import cepheid", "from pyspark.sql import SparkSession"), ""]
    lines += ["spark = SparkSession.builder.getOrCreate()", *_query(query), *_rows(given, "rows", "a list of dicts")]
    lines += [f"events = spark.createDataFrame(rows, {schema!r})", ""]
    return "\n".join([*lines, f"matches = events.transform(query.on({', '.join(options)}))", "matches.show(truncate=False)", ""])


def _options(given: ShownEvents, *, ended: bool, sort: bool) -> list[str]:
    """The arguments that say how to read the events; what is a default is left out."""
    options = [] if given.type in {None, DEFAULT_TYPE} else [f"type={given.type!r}"]
    options += [] if given.time in {None, DEFAULT_TIME} else [f"time={given.time!r}"]
    options += ["sort=True"] if sort and (given.time or DEFAULT_TIME) in given.table.column_names else []
    return [*options, 'until="end"'] if ended else options


def _imports(query: cepheid.Query, given: ShownEvents, *others: str) -> list[str]:
    """The imports; those of the standard library first, where values need them."""
    values = [*query.args.values(), *(value for row in _values(given) for value in row.values())]
    decimals = any(isinstance(value, Decimal) for value in values)
    times = any(isinstance(value, dt.date | dt.timedelta | dt.time) for value in values)
    standard = [*(["import datetime as dt"] if times else []), *(["from decimal import Decimal"] if decimals else [])]
    return [*standard, *([""] if standard else []), *others]


def _query(query: cepheid.Query) -> list[str]:
    text = query.text.strip()
    plain = "\\" not in text and '"""' not in text and not text.endswith('"')
    written = f'"""\n{text}\n"""' if plain else repr(text)
    args = dict(query.args)
    return [f"query = cepheid.query({written}{f', args={_literal(args)}' if args else ''})"]


def _values(given: ShownEvents) -> list[Mapping[str, Any]]:
    """The events that a program has in its text; none if there are too many."""
    if given.table.num_rows > MAX_ROWS_OF_CODE:
        return []
    columns = [[python_value(value) for value in column] for column in given.table.columns]
    return [dict(zip(given.table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _rows(given: ShownEvents, name: str, kinds: str = "a pyarrow.Table, a DataFrame or a list of dicts") -> list[str]:
    if given.table.num_rows > MAX_ROWS_OF_CODE:
        return [f"{name} = ...  # {counted(given.table.num_rows, 'event')}: {kinds}"]
    return [f"{name} = [", *(f"    {_literal(row)}," for row in _values(given)), "]"]


def _literal(value: Any) -> str:
    """A value as Python text; datetime is imported as dt."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name!r}: {_literal(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_literal, value)) + "]"
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        utc = value.astimezone(dt.UTC).replace(tzinfo=None)
        return f"{_literal(utc)[:-1]}, tzinfo=dt.UTC)"
    if isinstance(value, dt.date | dt.timedelta | dt.time):
        return repr(value).replace("datetime.", "dt.", 1)
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return repr(value)


def _ddl(kind: pa.DataType) -> str:
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    if pa.types.is_list(kind):
        return f"array<{_ddl(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return "struct<" + ", ".join(f"`{field.name}`: {_ddl(field.type)}" for field in kind) + ">"
    return DDL.get(kind, "string")
