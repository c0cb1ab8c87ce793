"""The table of docs/language.md that marks what runs where is true of Spark: each query is planned, over a table and over a stream, or refused."""

from __future__ import annotations

import pytest
from what_runs_where import ROWS, Row

import cepheid
from cepheid.errors import NotSupportedError

COLUMNS = ("element_at(array('A', 'B', 'C', 'D'), 1 + cast({n} % 4 AS int)) AS type", "{time} AS ts", "{n} % 3 AS k", "{n} % 10 AS v")


@pytest.mark.parametrize("way", ["batch", "stream"])
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_spark_evaluates_what_the_table_says(spark, row: Row, way: str) -> None:
    source = spark.range(20).withColumnRenamed("id", "value") if way == "batch" else spark.readStream.format("rate").load()
    time = "timestamp_seconds(value)" if way == "batch" else "timestamp"
    frame = source.selectExpr(*(column.format(n="value", time=time) for column in COLUMNS))
    planned = cepheid.query(row.query).on(**({"lateness": "1 minute"} if way == "stream" else {}))
    says = row.batch if way == "batch" else row.stream
    if says == "yes":
        assert frame.transform(planned).isStreaming == (way == "stream")
    else:
        assert says == "no"
        with pytest.raises(NotSupportedError):
            frame.transform(planned)
