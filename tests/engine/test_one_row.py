"""Single events as values and as tables: the same as a recognizer makes of a list with one dict."""

from __future__ import annotations

import collections
import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import cepheid
from cepheid.engine.input.one_row import OneRow, RowTables
from cepheid.errors import InputError

UTC = dt.datetime(2024, 3, 31, 1, 30, 0, 1, tzinfo=dt.UTC)
WINTER = dt.datetime(2024, 1, 1, tzinfo=dt.UTC).replace(tzinfo=None)
SCHEMA = pa.schema([("type", pa.string()), ("ts", pa.int64()), ("v", pa.float64())])
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "v": (pa.float64(), [3, -0.0, math.inf, None]),
    "i": (pa.int8(), [3, -128, None]),
    "u": (pa.uint64(), [2**64 - 1, None]),
    "f": (pa.float32(), [0.1, 7, None]),
    "h": (pa.float16(), [0.1, None]),
    "k": (pa.dictionary(pa.int8(), pa.string()), ["a", "é", None]),
    "l": (pa.large_string(), ["a", None]),
    "t": (pa.timestamp("ns", "Europe/Berlin"), [UTC, None]),
    "s": (pa.timestamp("s"), [WINTER.replace(year=1969), None]),
    "d": (pa.date64(), [dt.date(2024, 2, 29), None]),
    "p": (pa.duration("ms"), [dt.timedelta(seconds=-1), None]),
    "o": (pa.time32("s"), [dt.time(1, 2, 3), None]),
    "n": (pa.decimal128(12, 2), [Decimal("1.5"), Decimal("1E+3"), None]),
    "x": (pa.binary(4), [b"abcd", None]),
    "null": (pa.null(), [None]),
    "st": (
        pa.struct([("a", pa.float64()), ("b", pa.timestamp("ms"))]),
        [{"a": 1, "b": WINTER}, {"a": None, "b": None}, None],
    ),
    "uuid": (pa.uuid(), [None]),
}


@pytest.mark.parametrize("names", [*([name] for name in COLUMNS), [name for name in COLUMNS if name != "uuid"], list(COLUMNS)])
def test_tables_are_what_a_recognizer_makes_of_dicts(names: list[str]) -> None:
    schema = pa.schema([("type", pa.string()), *((name, COLUMNS[name][0]) for name in names)])
    recognizer = cepheid.query("SELECT * WHERE A AS x").recognizer(schema)
    tables = RowTables(schema)
    rows = [{"type": "A", **{name: COLUMNS[name][1][number % len(COLUMNS[name][1])] for name in names}} for number in range(4)]
    values = [tables.values(row) for row in rows]
    assert values == [tuple(row.values()) for row in rows]
    whole = tables.table([each for each in values if each is not None])
    assert tables.table([]).schema == whole.schema == schema
    for number, (row, each) in enumerate(zip(rows, values, strict=True)):
        assert each is not None
        one = OneRow(each, tables)
        assert one.table is one.table
        assert one.table == recognizer._conform([row])
        assert one.table.to_pylist() == whole.slice(number, 1).to_pylist()


def test_values_are_those_of_exactly_the_schema() -> None:
    tables = RowTables(SCHEMA)
    assert tables.values({"v": 1.0, "ts": 3, "type": "A"}) == tables.values(("A", 3, 1.0)) == ("A", 3, 1.0)
    default = collections.defaultdict(int, type="A", ts=3)
    for row in (
        {"type": "A", "ts": 3},
        {"type": "A", "ts": 3, "w": 1},
        {"type": "A", "ts": 3, "v": 1, "w": 2},
        ("A", 3),
        ["A", 3, 1.0],
        "abc",
        default,
    ):
        assert tables.values(row) is None
    assert len(default) == 2


@pytest.mark.parametrize("names", [[], ["v"]])
def test_few_attributes(names: list[str]) -> None:
    tables = RowTables(pa.schema([(name, pa.int64()) for name in names]))
    row = dict.fromkeys(names, 1)
    values = tables.values(row)
    assert values == tables.values(tuple(row.values())) == (1,) * len(names)
    assert values is not None
    assert tables.table([values, values]).to_pylist() == [row, row]


def test_what_goes_on_as_dicts() -> None:
    tables = RowTables(SCHEMA)
    assert tables.as_dicts({"ts": 1}) == [{"ts": 1}]
    assert tables.as_dicts(("A", 1, None)) == [{"type": "A", "ts": 1, "v": None}]
    assert tables.as_dicts(7) == [7]
    with pytest.raises(InputError, match="a tuple of 2 values, and the schema has 3 attributes"):
        tables.as_dicts(("A", 1))
