"""A DataFrame of Spark as a table of this process: what `Query.run` and `Query.explore` read.

Comes in: a batch DataFrame, and how many rows it may have. Goes out: its rows as one table, in their order. Whether there are more is asked first, by
a job that reads no column and ends with the first row that is too many: nothing large comes here unheard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that everybody gives this module

from cepheid.errors import InputError, LimitError
from cepheid.schema import check_doubles, unreadable_of
from cepheid.spark.columns import column_named
from cepheid.spark.source import readable_schema
from cepheid.spark.versions import to_arrow

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

MAX_COLLECTED = 1_000_000
"""Most rows of a DataFrame of Spark that `Query.run` and its kin collect."""


def collected(frame: DataFrame, *, most: int | None = None) -> pa.Table:
    """The rows of a batch DataFrame, without the columns that Arrow cannot show, which its schema then names (`unreadable_of`).

    most: how many rows it may have (default: MAX_COLLECTED). Two jobs: the first looks for a row too many, the second collects. Raises LimitError
    for more rows, InputError for a streaming DataFrame, SchemaError for two columns of one name.
    """
    if frame.isStreaming:
        raise InputError(
            "the DataFrame is streaming, and this reads rows that are there",
            help=("df.transform(q.on(..)) gives the matches of a stream as a stream", "or read a part of it as a batch: spark.read.."),
        )
    check_doubles("the DataFrame", frame.columns)
    limit = MAX_COLLECTED if most is None else most
    if frame.select(F.lit(0)).offset(limit).limit(1).collect():
        raise _too_many(limit, explored=most is not None)
    schema = readable_schema(frame.schema)
    if unreadable_of(schema):
        frame = frame.select(*map(column_named, schema.names))
    table = to_arrow(frame, schema)
    return table.replace_schema_metadata(schema.metadata)


def _too_many(limit: int, *, explored: bool) -> LimitError:
    what = "can be explored at once (MAX_EVENTS)" if explored else "is collected to this process (MAX_COLLECTED)"
    here = () if explored else ("or, where this machine holds all of them: q.run(df.toArrow(), ..)",)
    return LimitError(
        f"the DataFrame has more than {limit:,} rows, which is all that {what}",
        help=(
            "df.transform(q.on(..)) recognizes where the rows are, and gives the matches as a DataFrame",
            "or take a part, some time: df.where(F.col('ts') >= ..)",
            "or some keys with all their events: df.where(F.pmod(F.hash('user'), F.lit(100)) == 0); df.sample(..) would tear matches apart",
            *here,
        ),
    )
