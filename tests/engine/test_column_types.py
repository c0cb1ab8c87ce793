"""Columns of rarely used Arrow types: what they mean is the same on every path, and what has no meaning is refused by name."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import cepheid
from cepheid.errors import BindError, SchemaError


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


def many_values(kind: pa.DataType) -> pa.Table:
    """300 events in three batches, whose dictionaries of 100 values each have nothing in common; c and n.c are the same values."""
    indices = pa.array(range(100), kind)
    chunks = [pa.DictionaryArray.from_arrays(indices, pa.array([f"{batch}{value:02}" for value in range(100)])) for batch in "pqr"]
    nested = [pa.StructArray.from_arrays([chunk], ["c"]) for chunk in chunks]
    return pa.table({"type": ["A", "B"] * 150, "ts": range(300), "c": pa.chunked_array(chunks), "n": pa.chunked_array(nested)})


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8()], ids=str)
@pytest.mark.parametrize(
    ("clauses", "count"), [("FILTER a[c = 'p02'] AND b[c = 'r05']", 1), ("PARTITION BY c", 0), ("FILTER a.c = b.c", 0), ("WITHIN 1", 150)]
)
def test_dictionaries_with_more_values_together_than_their_indices_count(kind: pa.DataType, clauses: str, count: int) -> None:
    table, query = many_values(kind), cepheid.query(f"SELECT * WHERE (A AS a ; B AS b) {clauses}")
    late = query.recognizer(table.schema, lateness=1000)
    late.push(table)
    late.restore(late.snapshot())
    ways = [
        query.run(table).to_arrow(events=True),
        query.run(table.to_reader()).to_arrow(events=True),
        *(matches.to_arrow(events=True) for matches in query.batches(table)),
        cepheid.queries([query]).run(table)["q1"].to_arrow(events=True),
        query.recognizer(table.schema).push(table).to_arrow(events=True),
        late.flush().to_arrow(events=True),
    ]
    assert len(ways) >= 5
    for found in ways:
        assert found.to_pylist() == ways[0].to_pylist()
    assert ways[0].num_rows == count


def shown_on_every_path(table: pa.Table) -> list[pa.Table]:
    """The match of the events A, A, B as a table of events, of everything that reads a table or its batches."""
    query = cepheid.query("SELECT NXT * WHERE A AS a ; B AS b")
    recognizer = query.recognizer(table.schema, lateness=5)
    recognizer.push(table.slice(0, 1))
    recognizer.restore(recognizer.snapshot())
    recognizer.push(table.slice(1))
    found = [
        query.run(table),
        query.run(table.to_reader()),
        *query.batches(table),
        cepheid.queries([query]).run(table)["q1"],
        recognizer.flush(),
        query.recognizer(table.schema).push(table),
    ]
    assert len(found) >= 6
    nothing = query.run(table.slice(0, 1)).to_arrow(events=True)
    assert (nothing.num_rows, nothing.schema) == (0, query.output_schema(table.schema, events=True))
    return [matches.to_arrow(events=True) for matches in found]


UNION = pa.UnionArray.from_sparse(pa.array([0, 1, 0], pa.int8()), [pa.array([1, 2, 3]), pa.array(["a", "b", "c"])])
DENSE = pa.UnionArray.from_dense(pa.array([0, 1, 0], pa.int8()), pa.array([0, 0, 1], pa.int32()), [pa.array([1, 3]), pa.array(["b"])])


class Colour(pa.ExtensionType):
    """An extension type as users define it."""

    def __init__(self) -> None:
        super().__init__(pa.int32(), "cepheid.tests.colour")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Colour:
        return cls()


COLOUR = pa.ExtensionArray.from_storage(Colour(), pa.array([1, 2, 3], pa.int32()))


@pytest.mark.parametrize(
    "column",
    [
        UNION,
        DENSE,
        COLOUR,
        pa.StructArray.from_arrays([UNION, COLOUR], ["u", "e"]),
        pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), COLOUR),
    ],
    ids=["sparse union", "dense union", "extension", "struct of both", "list of an extension"],
)
def test_unions_and_extension_types_are_shown_as_they_came(column: pa.Array) -> None:
    pa.register_extension_type(Colour())
    try:
        for found in shown_on_every_path(events(c=column)):
            assert found.num_rows == 1
            for variable, row in (("a", 0), ("b", 2)):
                (shown,) = found[variable].combine_chunks().flatten().flatten()[2:]
                assert shown.type == column.type
                assert shown.to_pylist() == [column[row].as_py()]
        assert len(cepheid.query("SELECT * WHERE A AS a FILTER a.c IS NOT NULL").run(events(c=column))) == 2
        with pytest.raises(BindError, match=r"cannot be compared"):
            cepheid.query("SELECT * WHERE A AS a FILTER a.c = 1").run(events(c=column))
        both = {"p": "SELECT first(a.c) AS m WHERE A AS a FILTER a.ts > 1", "q": "SELECT first(a.c) AS m WHERE A AS a FILTER a.ts > 0"}
        measured = cepheid.queries(both).run(events(c=column))
        assert [measured["q"].to_arrow()["m"].type, len(measured["q"]), len(measured["p"])] == [column.type, 2, 1]
        assert [match.measures["m"] for match in measured["q"]] == column.to_pylist()[:2]
    finally:
        pa.unregister_extension_type("cepheid.tests.colour")


@pytest.mark.parametrize("value", [Decimal("3.25"), 3, Decimal(10**50)], ids=str)
def test_decimals_of_more_than_38_digits_come_as_python_has_them(value: object) -> None:
    schema = pa.schema([("type", pa.string()), ("ts", pa.int64()), ("d", pa.decimal256(60, 2))])
    query = cepheid.query("SELECT * WHERE A AS a")
    row = {"type": "A", "ts": 1, "d": value}
    for given in (row, [row], tuple(row.values())):
        assert [match["a"][0]["d"] for match in query.recognizer(schema).push(given)] == [value]
    with pytest.raises(SchemaError, match=r"`d` is .* in the batch"):
        query.recognizer(schema).push([{**row, "d": Decimal("0.001")}])


def test_an_argument_that_no_decimal_holds() -> None:
    query = cepheid.query("SELECT * WHERE A AS a FILTER a.v > :x", args={"x": 10**40})
    with pytest.raises(BindError, match="an integer or decimal has at most 38 digits"):
        query.explain()
    with pytest.raises(BindError, match="38 digits"):
        query.run(events(v=pa.array([1, 2, 3])))
