"""The examples of patterns that compare events, on Spark: over a table and as a stream in disorder, the matches of the embedded engine."""

from __future__ import annotations

import comparing
import pytest


@pytest.mark.parametrize("name", comparing.EXAMPLES)
def test_the_examples_over_a_table(spark, name):
    example = comparing.EXAMPLES[name]
    assert comparing.on_spark(spark, example) == comparing.on_table(example)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rising run", "sessions", "sensors that differ", "time span (Padres)"])
def test_the_examples_as_a_stream(spark, name):
    example = comparing.EXAMPLES[name]
    assert comparing.as_stream(spark, example) == comparing.on_table(example)
