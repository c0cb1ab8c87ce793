"""Columns of rarely used Arrow types: what they mean is the same on every path, and what has no meaning is refused by name."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import cepheid
from cepheid.errors import BindError, NotSupportedError, SchemaError


def events(**columns: pa.Array) -> pa.Table:
    """Three events A, A, B at times 1, 2, 3, with more columns."""
    return pa.table({"type": ["A", "A", "B"], "ts": [1, 2, 3], **columns})


def pushed(query: cepheid.Query, table: pa.Table) -> list[cepheid.Match]:
    """The matches of a recognizer that gets one event at a time, with a snapshot after each."""
    recognizer, found = query.recognizer(table.schema), []
    for row in range(table.num_rows):
        found += recognizer.push(table.slice(row, 1))
        recognizer.restore(recognizer.snapshot())
    return found


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["x", "y", "x"]).dictionary_encode(),
        pa.array([7, 8, 7]).dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([0, 2, 1], pa.int8()), pa.array(["x", "x", "y"])),
        pa.array([Decimal("1.5"), Decimal(2), Decimal("1.5")], pa.decimal32(5, 1)),
        pa.array([Decimal("1.5"), Decimal(2), Decimal("1.5")], pa.decimal64(10, 1)),
    ],
    ids=lambda column: str(column.type),
)
@pytest.mark.parametrize(
    "text", ["SELECT * WHERE A AS a ; B AS b PARTITION BY c", "SELECT * WHERE A AS a ; B AS b FILTER a.c = b.c WITHIN 5"]
)
def test_keys_of_any_encoding(column: pa.Array, text: str) -> None:
    table, query = events(c=column), cepheid.query(text)
    found = [(match.start_time, match["a"][0]["c"], match.keys) for match in query.run(table)]
    assert [start for start, *_ in found] == [1]
    assert [(match.start_time, match["a"][0]["c"], match.keys) for match in pushed(query, table)] == found
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    assert [(match.start_time, match["a"][0]["c"], match.keys) for match in query.run(reader)] == found


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("x.n = 1 OR x.n < x.s", 0),
        ("x.n = 1 AND x.n = 'a'", 0),
        ("x.n > 1 OR x.n < 2.5", 0),
        ("x.n = 1 OR x.n = TRUE", 0),
        ("x.n IN (1) OR x.n IN ('a') OR x.n IS NULL", 3),
        ("x.n = 1.5 OR coalesce(x.n, 'a') = x.s", 1),
    ],
)
def test_a_column_of_nulls_goes_with_everything(condition: str, count: int) -> None:
    table = events(n=pa.nulls(3), s=pa.array(["a", "b", "c"]))
    query = cepheid.query(f"SELECT * WHERE ANY AS x FILTER {condition}")
    assert [len(query.run(table, engine=engine)) for engine in (None, "reference")] == [count, count]


def test_decimals_of_whole_thousands() -> None:
    """A negative scale."""
    table = events(d=pa.array([Decimal(1000), Decimal(5000), None], pa.decimal128(6, -3)))
    conditions = ["x.d >= 1000.5", "x.d = 5000", "x.d IN (5000, 2)", "x.d + 1 > 5000", "x.d > 1e3", "-0.5 / x.d > -0.0002"]
    for condition in conditions:
        query = cepheid.query(f"SELECT * WHERE ANY AS x FILTER {condition}")
        assert (
            [match.start_time for match in query.run(table)] == [match.start_time for match in query.run(table, engine="reference")] == [2]
        )
    measured = cepheid.query("SELECT sum(x.d) AS s, avg(x.d) AS a, max(x.d) + 1 AS m WHERE A+ AS x ; B").run(table)
    assert (Decimal(6000), 3000.0, Decimal(5001)) in [tuple(match.measures.values()) for match in measured]
    with pytest.raises(BindError, match="cannot be compared"):
        cepheid.query("SELECT * WHERE A AS x FILTER x.d > 1").run(events(d=pa.array([None] * 3, pa.decimal128(37, -3))))


@pytest.mark.parametrize("measure", ["sum(x.c)", "avg(x.c)", "min(x.c)", "max(x.c)", "-(first(x.c))", "first(x.c) + 1"])
def test_decimals_of_more_than_38_digits_have_no_arithmetic(measure: str) -> None:
    table = events(c=pa.array([Decimal(1), Decimal(2), Decimal(10**40)], pa.decimal256(50, 2)))
    with pytest.raises(BindError, match=r"decimal256\(50, 2\)"):
        cepheid.query(f"SELECT {measure} AS m WHERE A+ AS x ; B").run(table)
    shown = cepheid.query("SELECT last(x.c) AS m WHERE B AS x").run(table)
    assert [match.measures["m"] for match in shown] == [Decimal(10**40)]


def test_no_sum_is_negative_zero() -> None:
    """Whatever the other matches are, and however the events came."""
    table = events(v=pa.array([-0.0, -0.0, -0.0]))
    query = cepheid.query("SELECT sum(x.v) AS s, avg(x.v) AS a WHERE ANY+ AS x")
    for found in (query.run(table), pushed(query, table), query.run(table, engine="reference")):
        assert [math.copysign(1, value) for match in found for value in match.measures.values()] == [1.0] * 14


@pytest.mark.parametrize(
    ("column", "kind", "fits"),
    [
        (pa.array(["12", "13", "14"]), pa.int64(), False),
        (pa.array([12, 13, 14]), pa.string(), False),
        (pa.array([0, 1, 1]), pa.bool_(), False),
        (pa.array([0, 0, 0], pa.timestamp("us", "America/New_York")), pa.timestamp("us"), False),
        (pa.array([0, 0, 0], pa.timestamp("us", "America/New_York")), pa.timestamp("us", "UTC"), True),
        (pa.array([1.5, 2.0, 2.0]), pa.int64(), False),
        (pa.array([1.0, 2.0, 2.0]), pa.int64(), True),
        (pa.array([1, 2, 3], pa.int8()), pa.int64(), True),
        (pa.array(["a", "b", "c"]), pa.dictionary(pa.int32(), pa.string()), True),
        (pa.nulls(3), pa.int64(), True),
    ],
)
def test_a_recognizer_takes_the_same_values_in_another_type_and_nothing_else(column: pa.Array, kind: Any, fits: bool) -> None:
    recognizer = cepheid.query("SELECT * WHERE A AS x").recognizer(events(c=pa.nulls(3, kind)).schema)
    if fits:
        assert [match["x"][0]["c"] for match in recognizer.push(events(c=column))] == column.cast(kind).to_pylist()[:2]
    else:
        with pytest.raises(SchemaError, match=r"`c` is .* in the batch and .* in the schema"):
            recognizer.push(events(c=column))


def test_dictionaries_with_null_among_their_values() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.int8()), pa.array(["x", None, "y"]))
    recognizer = cepheid.query("SELECT * WHERE A AS a ; B AS b").recognizer(events(c=column).schema, lateness=1)
    recognizer.push(events(c=column).slice(0, 2))
    recognizer.restore(recognizer.snapshot())
    found = [*recognizer.push(events(c=column).slice(2)), *recognizer.flush()]
    assert [(match["a"][0]["c"], match["b"][0]["c"]) for match in found] == [(None, "y"), ("x", "y")]


def test_unions_are_for_whole_tables() -> None:
    column = pa.UnionArray.from_sparse(pa.array([0, 1, 0], pa.int8()), [pa.array([1, 2, 3]), pa.array(["a", "b", "c"])])
    query = cepheid.query("SELECT * WHERE A ; B")
    assert len(query.run(events(c=column))) == 2
    with pytest.raises(NotSupportedError, match="`c` is a sparse union"):
        query.recognizer(events(c=column).schema)


def test_an_argument_that_no_decimal_holds() -> None:
    query = cepheid.query("SELECT * WHERE A AS a FILTER a.v > :x", args={"x": 10**40})
    assert "an integer or decimal has at most 38 digits" in str(query.explain())
    with pytest.raises(BindError, match="38 digits"):
        query.run(events(v=pa.array([1, 2, 3])))
