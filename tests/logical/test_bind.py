"""Binding: from text and schema to the logical plan."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from cepheid.errors import BindError, CepheidError, LimitError
from cepheid.language import parse, syntax
from cepheid.language.syntax import Consumption, Strategy, TimeModel
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
    assert window.pattern.pattern == plan.Sequence((plan.Named(plan.Event("T"), "x"), plan.Named(plan.Event("H"), "y")), (plan.Link(";"),))
    assert found.variables == ("x", "y")
    assert found.lints == ()
    assert found.text == text
    assert found.streams == ("sensors",)


def test_measures():
    found = bound(
        "SELECT x.id AS sensor, count(y), max(y.temp) - min(y.temp) AS spread, duration() FROM S WHERE T AS x ; H+ AS y WITHIN 5s"
    )
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


# ------------------------------------------------------------------------------------------------------------------------- scopes


def test_a_variable_may_come_later_in_the_sequence():
    found = pattern("(A FILTER y.temp > 3) ; B AS y ; C AS y")
    assert found.items[0].conditions[0].arguments[0] == Field("y", ("temp",), DOUBLE, pa.float32())


def test_phi_4_and_phi_6_bind():
    four = pattern("H AS x ; (T AS y FILTER y.id = x.id)+ ; H AS z FILTER x.temp < 30 AND z.temp > 60 AND x.id = z.id")
    assert len(four.conditions) == 3
    six = pattern("T AS x ; ((T AS y FILTER x.temp >= 40) OR (H AS y FILTER x.temp < 40))")
    assert [operand.conditions[0].operator for operand in six.items[1].operands] == [">=", "<"]


def test_any_is_a_variable():
    (found,) = pattern("ANY FILTER ANY[temp > 1]").conditions
    assert found.arguments[0].variable == "ANY"


def test_attributes_come_from_the_pattern_that_supplies_the_variable():
    merged = EventSchema(
        {"ts": pa.timestamp("us"), "u": pa.int64(), "v": pa.int64()},
        types={"a": frozenset({"ts", "u"}), "b": frozenset({"ts", "v"})},
        time_column="ts",
    )
    # the nearest prefix that binds x holds an event of type a only
    assert pattern("(b FILTER x.u = 1) ; a AS x ; b AS x", merged).items[0].conditions
    with pytest.raises(BindError, match="unknown attribute `v` of event type `a`"):
        pattern("(b FILTER x.v = 1) ; a AS x ; b AS x", merged)
    with pytest.raises(BindError, match="unknown attribute `w` of `x`"):
        pattern("a AS x ; b AS x FILTER x.w = 1", merged)
    assert pattern("a AS x ; b AS x FILTER x.u = 1 AND x.v = 1", merged).conditions


def test_prev_is_the_previous_iteration():
    (found,) = pattern("(A AS t FILTER t.temp > prev(t).temp AND TRUE)+").pattern.conditions
    assert [argument.previous for argument in found.arguments] == [False, True]
    assert pattern("(A AS t ; (B AS u FILTER u.$time > prev(t).$time)+)+").pattern.items[1].pattern.conditions


# ----------------------------------------------------------------------------------------------------------- patterns and options


def test_sugar_stays_in_the_plan():
    found = pattern("A? ; B{2,3} : C:{2,}[<= 1s] ;[> 1s, < 3s] D ; NOT N ; E THEN F")
    optional, braces, adjacent, *_ = found.items
    assert optional == plan.Optional(plan.Event("A"))
    assert braces == plan.Iterate(plan.Event("B"), minimum=2, maximum=3)
    assert adjacent == plan.Iterate(plan.Event("C"), adjacent=True, gap=Interval(0, 1_000_000), minimum=2)
    assert found.links == (
        plan.Link(";"),
        plan.Link(":"),
        plan.Link(";", gap=Interval(1_000_001, 2_999_999)),
        plan.Link(";", without=plan.Event("N")),
        plan.Link("THEN", model=TimeModel.CAYUGA),
    )


def test_windows_wherever_they_are_written():
    found = pattern("A ; B WITHIN 5s PARTITION BY id WITHIN 100 EVENTS")
    assert isinstance(found, plan.WithinEvents)
    assert found.count == 100
    assert isinstance(found.pattern, plan.Within)


def test_an_absence_stands_under_filters_windows_and_unless():
    found = pattern("A AS x NOT FOLLOWED BY B FOR 1.5ms FILTER x.id = 1 WITHIN 1h UNLESS C")
    absence = found.pattern.pattern.pattern
    assert absence == plan.Absence(plan.Named(plan.Event("A"), "x"), plan.Event("B"), 1500)


@pytest.mark.parametrize(
    ("text", "field", "expected"),
    [
        ("SELECT NXT * FROM S WHERE A", "strategy", Strategy.NXT),
        ("SELECT * FROM s, t WHERE A", "streams", ("s", "t")),
        ("SELECT * FROM S WHERE A PARTITION BY id, temp", "partition_by", ("id", "temp")),
        ("SELECT * FROM S WHERE A CONSUME BY PARTITION", "consume", Consumption.PARTITION),
        ("SELECT * FROM S WHERE A THEN B", "model", TimeModel.CAYUGA),
        ("SELECT * FROM S WHERE A THEN B TIME MODEL ODE", "model", TimeModel.ODE),
        ("SELECT * FROM S WHERE A ; B", "model", None),
        ("SELECT * FROM S WHERE A LIMIT 3", "limit", 3),
        ("SELECT COUNT(*) FROM S WHERE A", "count", True),
        ("SELECT B, x FROM S WHERE A AS x ; B", "variables", ("B", "x")),
    ],
)
def test_options(text, field, expected):
    assert getattr(bound(text), field) == expected


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("x.id", "x_id"),
        ("x.place.city", "x_place_city"),
        ("x.$time", "x_time"),
        ("FIRST(y.temp)", "first_y_temp"),
        ("count(y)", "count_y"),
        ("end_time()", "end_time"),
        ("abs(x.id)", "abs_x_id"),
        ("x.id + 1", "measure_1"),
        ("coalesce(x.id, 1)", "measure_1"),
        ("x.id AS start_time_of_x", "start_time_of_x"),
    ],
)
def test_names_of_measures(target, name):
    (found,) = bound(f"SELECT {target} FROM S WHERE A AS x ; B+ AS y").measures
    assert found.name == name


@pytest.mark.parametrize(
    ("target", "operator", "kind"),
    [
        ("sum(y.id)", "sum", INT64),
        ("avg(y.id)", "avg", DOUBLE),
        ("max(y.name)", "max", pa.utf8()),
        ("min(y.at)", "min", pa.timestamp("ms", "UTC")),
        ("sum(y.price)", "sum", pa.decimal128(38, 2)),
        ("last(y.tags)", "last", pa.list_(pa.utf8())),
        ("first(y.active)", "first", BOOL),
        ("first(y.nothing)", "first", INT64),
        ("max(y.$time)", "max", pa.timestamp("us")),
        ("x.place", "only", SCHEMA.attributes["place"]),
        ("start_time()", "start_time", pa.timestamp("us")),
    ],
)
def test_types_of_measures(target, operator, kind):
    (found,) = bound(f"SELECT {target} FROM S WHERE A AS x ; B+ AS y").measures
    assert (found.expression.operator, found.expression.type) == (operator, kind)


@pytest.mark.parametrize(
    "schema",
    [SCHEMA, EventSchema({"a": INT64}, stream="s", types={"s": frozenset({"a"})}), EventSchema({"type": pa.utf8()}, type_column="type")],
)
def test_every_query_binds_or_says_why_not(schema):
    lines = (Path(__file__).parent.parent / "language" / "ceql-queries.txt").read_text(encoding="utf-8").splitlines()
    accepted = [line[1:].strip() for line in lines if line.startswith("+")]
    assert len(accepted) > 50
    messages = [message for text in accepted if (message := refusal(text, schema)) is not None]
    assert all(message.startswith("error: ") for message in messages)
    assert len(messages) < len(accepted)


def refusal(text, schema):
    """The message of the error that binding raises, None if it does not."""
    try:
        bind(parse(text), schema, text=text)
    except CepheidError as error:
        return str(error)
    return None


def test_a_tree_too_deep_is_a_limit_error():
    tree = syntax.Type("A")
    for _ in range(5000):
        tree = syntax.Iterate(tree)
    with pytest.raises(LimitError):
        bind(syntax.Query(tree), SCHEMA)


def test_binding_depends_on_nothing_else():
    text = "SELECT NXT x.id AS id FROM S WHERE A AS x ; B FILTER x.temp > :low PARTITION BY name WITHIN 5s"
    assert bound(text, low=1) == bound(text, low=1.0) == bind(parse(text), SCHEMA, args={"low": 1}, text=text)
