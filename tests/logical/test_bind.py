"""Binding: from text and schema to the logical plan."""

from __future__ import annotations

import pyarrow as pa
import pytest

from cepheid.language import parse
from cepheid.logical import plan
from cepheid.logical.bind import bind
from cepheid.logical.plan import Apply, Field, Interval, Literal
from cepheid.schema import EventSchema

INT64, DOUBLE, BOOL = pa.int64(), pa.float64(), pa.bool_()
SCHEMA = EventSchema(
    {
        "type": pa.dictionary(pa.int32(), pa.utf8()),
        "ts": pa.timestamp("us"),
        "id": pa.int32(),
        "temp": pa.float32(),
        "name": pa.large_utf8(),
        "active": pa.bool_(),
        "price": pa.decimal128(10, 2),
        "at": pa.timestamp("ms", "Europe/Berlin"),
        "day": pa.date32(),
        "big": pa.uint64(),
        "place": pa.struct([("city", pa.utf8()), ("pos", pa.struct([("x", pa.float64())]))]),
        "tags": pa.list_(pa.utf8()),
        "nothing": pa.null(),
        "lasted": pa.duration("s"),
    },
    type_column="type",
    time_column="ts",
)


def bound(text, schema=SCHEMA, **args):
    return bind(parse(text), schema, args=args, text=text)


def pattern(text, schema=SCHEMA, **args):
    return bound(f"SELECT * FROM S WHERE {text}", schema, **args).pattern


def condition(text, **args):
    (found,) = pattern(f"A AS x ; B AS y FILTER {text}", **args).conditions
    return found


def test_the_common_path():
    text = "SELECT * FROM sensors WHERE (T AS x ; H AS y) FILTER x[temp > :limit AND name = 'a'] AND y.id = x.id WITHIN 5 seconds"
    found = bound(text, limit=40)
    window = found.pattern
    assert isinstance(window, plan.Within)
    assert window.interval == Interval(0, 5_000_000)
    temp = Field("x", ("temp",), DOUBLE, pa.float32())
    name = Field("x", ("name",), pa.utf8(), pa.large_utf8())
    x_id, y_id = (Field(variable, ("id",), INT64, pa.int32()) for variable in "xy")
    assert window.pattern.conditions == (
        Apply(">", (temp, Literal(40.0, DOUBLE)), BOOL),
        Apply("=", (name, Literal("a", pa.utf8())), BOOL),
        Apply("=", (y_id, x_id), BOOL),
    )
    assert window.pattern.pattern == plan.Sequence(
        (plan.Named(plan.Event("T"), "x"), plan.Named(plan.Event("H"), "y")), (plan.Link(";"),)
    )
    assert found.variables == ("x", "y")
    assert found.lints == ()
    assert found.text == text
    assert found.streams == ("sensors",)


def test_measures():
    found = bound("SELECT x.id AS sensor, count(y), max(y.temp) - min(y.temp) AS spread, duration() FROM S WHERE T AS x ; H+ AS y WITHIN 5s")
    assert [(measure.name, measure.expression.type) for measure in found.measures] == [
        ("sensor", INT64),
        ("count_y", INT64),
        ("spread", DOUBLE),
        ("duration", pa.duration("us")),
    ]
    assert found.measures[0].expression == Apply("only", (Field("x", ("id",), INT64, pa.int32()),), INT64)
    assert found.measures[1].expression.arguments == (Field("y", (), INT64, INT64),)
    assert found.variables == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A ; B", ("A", "B")),
        ("A AS x ; B", ("x", "B")),
        ("A AS x ; A", ("x", "A")),
        ("(A AS a ; B) AS w ; C", ("a", "w", "C")),
        ("(A AS x OR A AS y)+", ("x", "y")),
        ("PROJECT A, B (A AS x ; B)", ("B", "A")),
        ("PROJECT NONE (A)", ()),
        ("A UNLESS B AS y", ("A",)),
        ("A ; NOT B ; C", ("A", "C")),
        ("ANY ; B", ("ANY", "B")),
        ("A{3} AS c", ("c",)),
    ],
)
def test_star(text, expected):
    assert bound(f"SELECT * FROM S WHERE {text}").variables == expected
