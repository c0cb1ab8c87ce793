"""Errors that Spark raises: those of ours that only the data can tell, with their message in front.

Comes in: what a task does, or a condition that rows must meet. Goes out: a DataFrame that raises. An exception of a Python worker reaches the user
behind the worker's traceback; the message of a column's `raise_error` stands first. `translation` reads both.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that everybody gives this module
from pyspark.sql import types as spark_types

from cepheid.spark.columns import column_named
from cepheid.spark.shipping import shipped
from cepheid.spark.source import arrow_bytes
from cepheid.spark.tasks.worker import reporting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame


def raising(frame: DataFrame, wrong: Column, error: Column) -> DataFrame:
    """The rows of a DataFrame, which raises where one is wrong (a condition that is never NULL).

    error: the text, as `translation.text_of` has it. All rows of the DataFrame are looked at, and no others: the filter is no function of the
    row alone, so that Spark moves no other filter below it, nor it below a join (as 4.1 would), where there are rows that the join leaves out.
    """
    here = F.spark_partition_id() >= 0  # always true
    return frame.where(F.when(wrong & here, F.raise_error(error).cast("boolean")).otherwise(F.lit(True)))


def map_in_arrow(
    frame: DataFrame, work: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], output: spark_types.StructType
) -> DataFrame:
    """mapInArrow, which raises the errors of ours that `work` raises."""
    name = max(["", *output.names], key=len) + "$"  # longer than all others
    rows = frame.mapInArrow(
        shipped(functools.partial(reporting, work, arrow_bytes(output), name)),
        spark_types.StructType([*output.fields, spark_types.StructField(name, spark_types.StringType())]),
    )
    error = column_named(name)
    return raising(rows, error.isNotNull(), error).select(*map(column_named, output.names))
