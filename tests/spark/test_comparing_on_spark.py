"""The examples of patterns that compare events, on Spark: over a table and as a stream in disorder, the matches of the embedded engine."""

from __future__ import annotations

from decimal import Decimal

import comparing
import pyarrow as pa
import pytest

from cepheid.spark.versions import PAGES

paged = pytest.mark.skipif(not PAGES, reason="before Spark 4.2 a Python source is not told where a micro-batch starts")


@pytest.mark.parametrize("name", comparing.EXAMPLES)
def test_the_examples_over_a_table(spark, name):
    example = comparing.EXAMPLES[name]
    assert comparing.on_spark(spark, example) == comparing.on_table(example)


@paged
@pytest.mark.slow
@pytest.mark.parametrize("name", ["rising run", "sessions", "sensors that differ", "time span (Padres)"])
def test_the_examples_as_a_stream(spark, name):
    example = comparing.EXAMPLES[name]
    assert comparing.as_stream(spark, example) == comparing.on_table(example)


LONG_DECIMALS = comparing.Example(
    "SELECT * WHERE Paid AS a ; Paid AS b ; Paid AS c FILTER a.sum + b.sum > 2 * c.sum AND c.sum > 0",
    {"sum": pa.decimal128(30, 2)},
    tuple(
        ("Paid", seconds, Decimal(sum_) if sum_ else None)
        for seconds, sum_ in enumerate(("1e27", "3", "-1e27", None, "2", "5e26", "-0.01"))
    ),
)


@paged
def test_decimals_of_more_digits_than_one_word_has_travel_whole(spark):
    found = comparing.on_table(LONG_DECIMALS)
    assert found
    assert comparing.on_spark(spark, LONG_DECIMALS) == found
    assert comparing.as_stream(spark, LONG_DECIMALS) == found
