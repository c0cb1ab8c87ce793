"""What Spark 3.5 lacks and the tests use: a DataFrame of an Arrow table, and its rows as one."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types

from cepheid.spark import versions
from cepheid.spark.columns import spark_type
from cepheid.spark.source import arrow_schema


def lend(own=SparkSession.createDataFrame):
    """Give both to Spark's classes, as later versions have them."""

    def of_bytes(rows):  # inside: Spark's workers do not see this file
        for row in rows:
            for data in row.column(0):
                yield from pa.ipc.open_stream(data.as_buffer())

    def create(session, data, schema=None, *arguments, **options):
        if not isinstance(data, pa.Table):
            return own(session, data, schema, *arguments, **options)
        fields = schema or spark_types.StructType([spark_types.StructField(field.name, spark_type(field.type)) for field in data.schema])
        (whole,) = data.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], data.schema)]
        (packed,) = versions.as_bytes([whole])
        return own(session, [(packed[0][0].as_py(),)], "batch binary").mapInArrow(of_bytes, fields)

    SparkSession.createDataFrame = create
    DataFrame.toArrow = lambda frame: versions.by_batches(frame, arrow_schema(frame.schema))
