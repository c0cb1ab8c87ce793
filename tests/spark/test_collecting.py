"""A DataFrame of Spark that `run` or `explore` reads: its rows in their order, and no more than the limit, which is asked before anything is collected."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

import cepheid
from cepheid.notebook import exploring
from cepheid.play import limits
from cepheid.spark import collecting

PAIR = cepheid.query("SELECT * WHERE A AS x ; B AS y")
HOW = {"type": None, "time": None, "until": None, "sort": False, "null_keys": "drop", "order": ()}


def events(spark, count):
    """Events in the order of their times, in several partitions."""
    return spark.range(0, count, 1, 4).select(F.col("id").alias("ts"), F.when(F.col("id") % 2 == 0, "A").otherwise("B").alias("type"))


def test_rows_in_their_order(spark, monkeypatch):
    monkeypatch.setattr(collecting, "MAX_COLLECTED", 101)
    assert collecting.collected(events(spark, 101))["ts"].to_pylist() == list(range(101))
    assert len(PAIR.run(events(spark, 8))) == 10


def test_more_rows_than_the_limit(spark, monkeypatch):
    monkeypatch.setattr(collecting, "MAX_COLLECTED", 100)
    # A column that fails when it is read: nothing is.
    frame = events(spark, 101).withColumn("n", F.expr("raise_error('it was read')").cast("int"))
    for act in (lambda: PAIR.run(frame), lambda: PAIR.batches(frame), lambda: PAIR.run({"a": frame, "b": frame})):
        with pytest.raises(cepheid.LimitError) as caught:
            act()
        text = str(caught.value)
        assert "the DataFrame has more than 100 rows, which is all that is collected to this process (MAX_COLLECTED)" in text
        for way in ("df.transform(q.on(..))", "df.where(F.pmod(F.hash('user'), F.lit(100)) == 0)", "q.run(df.toArrow(), ..)"):
            assert way in text
    assert len(PAIR.run(events(spark, 101).where(F.pmod("ts", F.lit(10)) < 2))) == 55


def test_more_rows_than_can_be_explored(spark, monkeypatch):
    monkeypatch.setattr(limits, "MAX_EVENTS", 8)
    assert exploring.held_of(PAIR, events(spark, 8), HOW).table.num_rows == 8
    frame = events(spark, 9).withColumn("n", F.expr("raise_error('it was read')").cast("int"))
    with pytest.raises(cepheid.LimitError, match=r"more than 8 rows, which is all that can be explored at once \(MAX_EVENTS\)") as caught:
        exploring.held_of(PAIR, frame, HOW)
    assert "q.run" not in str(caught.value)


def test_a_stream_is_no_table(spark):
    stream = spark.readStream.format("rate").load().selectExpr("value AS ts", "'A' AS type")
    with pytest.raises(cepheid.InputError, match=r"the DataFrame is streaming(.|\n)*df.transform\(q.on\(..\)\)"):
        PAIR.run(stream)


def test_two_columns_of_one_name(spark):
    with pytest.raises(cepheid.SchemaError, match="more than one column named `ts`"):
        PAIR.run(spark.sql("SELECT 1 AS ts, 'A' AS type, 2 AS ts"))
