"""The same through Spark Connect: only the public DataFrame interface is used. Run alone: pytest -m connect."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import cepheid
from cepheid.spark import merge, translated

pytestmark = pytest.mark.connect


def stream(size):
    source = random.Random(4)
    return pa.table(
        {
            "ts": pa.array(source.sample(range(4 * size), size), pa.int64()),
            "type": pa.array([source.choice("ABCD") for _ in range(size)]),
            "k": pa.array([source.choice([1, 2, None]) for _ in range(size)], pa.int32()),
            "v": pa.array([source.choice([0.5, 2.5, float("nan"), None]) for _ in range(size)]),
        }
    )


def rows(table):
    return sorted(map(repr, table.to_pylist()))


def test_the_answer_of_run(connect):
    table = stream(1500)
    query = cepheid.query("SELECT * WHERE (A AS x ; B+ AS y ; C AS z) FILTER x[v >= :least] PARTITION BY k WITHIN 40", args={"least": 1})
    expected = query.run(table, sort=True)
    recognize = query.on()
    found = connect.createDataFrame(table).repartition(3).transform(recognize).toArrow()
    assert rows(found) == rows(expected.to_arrow(events=True))
    assert len(expected) > 10
    assert recognize.counts()["null_keys"] > 0


def test_a_column_as_type_positions_and_merged_streams(connect):
    table = stream(200)
    query = cepheid.query("SELECT * WHERE low AS x : high AS y PARTITION BY k")
    kind = F.when(F.col("v") > 1, "high").otherwise("low")
    found = connect.createDataFrame(table).transform(query.on(type=kind, positions=True))
    assert found.columns == ["k", "start", "end", "start_time", "end_time", "x", "y"]
    assert all(row.end == row.start + 1 == row.y[0]["$index"] for row in found.collect())
    merged = merge(a=connect.createDataFrame(table).drop("type"), b=connect.createDataFrame(table).drop("type"))
    pairs = cepheid.query("SELECT ANY * FROM b, a WHERE b : a PARTITION BY k WITHIN 0")
    assert merged.transform(pairs.on()).count() == len(table.filter(table["k"].is_valid()))


def test_errors_of_tasks_are_ours(connect):
    table = pa.table({"ts": [1, 1], "type": ["A", "B"]})
    with pytest.raises(cepheid.InputError, match="two events have the same time 1"), translated():
        connect.createDataFrame(table).transform(cepheid.query("SELECT * WHERE A ; B").on()).collect()
