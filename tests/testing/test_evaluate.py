"""Every operator of the plan in plain Python; the expected values follow from the language's definition, not from the code."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from cepheid.logical.plan import HALVES, OPERATORS, Apply, Field, Index, Literal, Time
from cepheid.testing.evaluate import COMPARISONS, CONDITIONS, VALUES, evaluate, holds
from cepheid.testing.reference import Event

INT, DOUBLE, TEXT, BOOL, DATE = pa.int64(), pa.float64(), pa.string(), pa.bool_(), pa.date32()
MAX, MIN = 2**63 - 1, -(2**63)
NAN, INF = float("nan"), float("inf")


def decimal(precision, scale):
    return pa.decimal128(precision, scale)


def apply(operator, kind, *arguments):
    """The operator on literals given as (value, type)."""
    return evaluate(Apply(operator, tuple(Literal(value, type_) for value, type_ in arguments), kind), [], {})


def test_every_operator_is_defined_once():
    assert sorted([*CONDITIONS, *COMPARISONS, *VALUES, "case", "coalesce"]) == sorted([*OPERATORS, *HALVES])


@pytest.mark.parametrize(
    ("operator", "left", "right", "expected"),
    [
        ("+", 2, 3, 5),
        ("+", MAX, 1, None),
        ("-", MIN, 1, None),
        ("*", MAX, 2, None),
        ("*", 2**31, 2**32, None),
        ("+", 1, None, None),
        ("%", 7, 3, 1),
        ("%", -7, 3, -1),
        ("%", 7, -3, 1),
        ("%", MIN, -1, 0),
        ("%", 7, 0, None),
    ],
)
def test_integers(operator, left, right, expected):
    assert apply(operator, INT, (left, INT), (right, INT)) == expected


@pytest.mark.parametrize(
    ("operator", "left", "right", "expected"),
    [
        ("+", 0.1, 0.2, 0.1 + 0.2),
        ("/", 1.0, 4.0, 0.25),
        ("/", 1.0, 0.0, None),
        ("/", 0.0, 0.0, None),
        ("*", 1e308, 10.0, None),
        ("/", 1e308, 1e-10, None),
        ("+", INF, 1.0, INF),
        ("-", INF, INF, None),
        ("+", NAN, 1.0, None),
        ("%", -7.5, 2.0, -1.5),
        ("%", 7.5, 0.0, None),
        ("%", INF, 2.0, None),
    ],
)
def test_doubles(operator, left, right, expected):
    assert apply(operator, DOUBLE, (left, DOUBLE), (right, DOUBLE)) == expected


@pytest.mark.parametrize(
    ("operator", "left", "right", "kind", "expected"),
    [
        ("+", "1.5", "2.25", decimal(5, 2), "3.75"),
        ("*", "1.5", "1.5", decimal(6, 2), "2.25"),
        ("*", "1.5", "1.5", decimal(6, 1), "2.3"),
        ("/", "1", "3", decimal(6, 4), "0.3333"),
        ("/", "2", "3", decimal(6, 4), "0.6667"),
        ("/", "1", "0", decimal(6, 4), None),
        ("+", "99.99", "0.01", decimal(4, 2), None),
        ("%", "-7.5", "2", decimal(4, 1), "-1.5"),
    ],
)
def test_decimals(operator, left, right, kind, expected):
    operands = [(Decimal(value), decimal(6, 2)) for value in (left, right)]
    assert apply(operator, kind, *operands) == (None if expected is None else Decimal(expected))


@pytest.mark.parametrize(
    ("operator", "kind", "value", "expected"),
    [
        ("negate", INT, 5, -5),
        ("negate", INT, MIN, None),
        ("abs", INT, MIN, None),
        ("abs", DOUBLE, -2.5, 2.5),
        ("floor", DOUBLE, -2.5, -3.0),
        ("ceil", DOUBLE, -2.5, -2.0),
        ("floor", DOUBLE, INF, INF),
        ("floor", INT, 5, 5),
        ("floor", decimal(4, 1), Decimal("-2.5"), Decimal("-3.0")),
        ("ceil", decimal(4, 1), Decimal("2.1"), Decimal("3.0")),
        ("negate", decimal(38, 0), Decimal("9" * 38), Decimal("-" + "9" * 38)),
        ("abs", decimal(38, 0), Decimal("-" + "9" * 38), Decimal("9" * 38)),
        ("lower", TEXT, "ÀBc", "Àbc"),
        ("upper", TEXT, "éß z", "éß Z"),
        ("lower", TEXT, None, None),
    ],
)
def test_one_argument(operator, kind, value, expected):
    assert apply(operator, kind, (value, kind)) == expected


def test_length_counts_code_points():
    assert apply("length", INT, ("aé😀", TEXT)) == 3


@pytest.mark.parametrize(
    ("operator", "left", "right", "expected"),
    [
        ("=", 1, 1, True),
        ("!=", 1, 2, True),
        ("!=", 1, None, False),
        ("=", None, None, False),
        ("<", 1, None, False),
        (">=", 2, 2, True),
        (">", 2, 2, False),
        ("<=", 3, 2, False),
    ],
)
def test_comparisons_are_two_valued(operator, left, right, expected):
    assert apply(operator, BOOL, (left, INT), (right, INT)) is expected


def test_not_is_the_complement_also_on_null():
    unequal = Apply("!=", (Literal(None, INT), Literal(1, INT)), BOOL)
    equal = Apply("=", (Literal(None, INT), Literal(1, INT)), BOOL)
    assert evaluate(unequal, [], {}) is False
    assert evaluate(Apply("not", (equal,), BOOL), [], {}) is True


def test_nan_is_null_and_zeros_are_equal():
    assert apply("is_null", BOOL, (NAN, DOUBLE)) is True
    assert apply("=", BOOL, (NAN, DOUBLE), (NAN, DOUBLE)) is False
    assert apply("=", BOOL, (0.0, DOUBLE), (-0.0, DOUBLE)) is True


def test_texts_compare_by_utf8_bytes():
    assert apply("<", BOOL, ("Z", TEXT), ("a", TEXT)) is True
    # In UTF-16 the order of these two is the other one.
    assert apply("<", BOOL, ("\uffff", TEXT), ("\U00010000", TEXT)) is True


@pytest.mark.parametrize(
    ("operator", "values", "expected"),
    [
        ("and", (True, True), True),
        ("and", (True, None), False),
        ("or", (False, None), False),
        ("or", (None, True), True),
        ("not", (None,), True),
        ("is_null", (None,), True),
        ("is_null", (False,), False),
    ],
)
def test_a_null_condition_counts_as_false(operator, values, expected):
    assert apply(operator, BOOL, *((value, BOOL) for value in values)) is expected


@pytest.mark.parametrize(
    ("value", "options", "expected"), [(1, (2, 1), True), (3, (2, 1), False), (None, (1, None), False), (1, (None,), False)]
)
def test_in(value, options, expected):
    assert apply("in", BOOL, (value, INT), *((option, INT) for option in options)) is expected


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("abc", "a%", True),
        ("abc", "%c", True),
        ("abc", "b%", False),
        ("abc", "a_c", True),
        ("abc", "a_", False),
        ("", "%", True),
        ("a\nb", "a%b", True),
        ("a😀b", "a_b", True),
        ("a.c", "a.c", True),
        ("abc", "a.c", False),
        ("a\\b", "a\\b", True),
        (None, "%", False),
    ],
)
def test_like(text, pattern, expected):
    assert apply("like", BOOL, (text, TEXT), (pattern, TEXT)) is expected


def test_coalesce():
    assert apply("coalesce", INT, (None, INT), (3, INT), (4, INT)) == 3
    assert apply("coalesce", DOUBLE, (NAN, DOUBLE), (1.0, DOUBLE)) == 1.0
    assert apply("coalesce", INT, (None, INT)) is None


@pytest.mark.parametrize(
    ("value", "source", "target", "expected"),
    [
        (3, INT, DOUBLE, 3.0),
        (2**53 + 1, INT, DOUBLE, float(2**53)),
        (3, INT, decimal(20, 1), Decimal("3.0")),
        (Decimal("1.5"), decimal(3, 1), DOUBLE, 1.5),
        (Decimal("1.5"), decimal(3, 1), decimal(10, 3), Decimal("1.500")),
        (5, pa.timestamp("ms"), pa.timestamp("us"), 5000),
        (MAX, pa.timestamp("s"), pa.timestamp("ns"), None),
        (dt.date(1970, 1, 3), DATE, pa.timestamp("s"), 172_800),
        (None, INT, DOUBLE, None),
    ],
)
def test_casts(value, source, target, expected):
    found = apply("cast", target, (value, source))
    assert found == expected
    assert type(found) is type(expected)


def test_times():
    moment, length = pa.timestamp("ms", tz="UTC"), pa.duration("ms")
    assert apply("+", moment, (1000, moment), (5, length)) == 1005
    assert apply("-", length, (1000, moment), (400, moment)) == 600
    assert apply("+", moment, (MAX, moment), (1, length)) is None


def one(event):
    return [Event("A", 7, event)], {("x", False): 0}


@pytest.mark.parametrize(
    ("kind", "source", "stored", "expected"),
    [
        (INT, pa.int8(), 5, 5),
        (INT, pa.uint64(), 2**63, None),
        (DOUBLE, pa.float32(), NAN, None),
        (DOUBLE, pa.float32(), 1.5, 1.5),
        (TEXT, pa.dictionary(pa.int8(), TEXT), "a", "a"),
        (DATE, pa.date64(), dt.date(2013, 1, 1), dt.date(2013, 1, 1)),
        (pa.timestamp("us"), pa.timestamp("us"), dt.datetime(1970, 1, 1, 0, 0, 1), 1_000_000),  # noqa: DTZ001 - a column without zone
        (pa.timestamp("ns"), pa.timestamp("ns"), 17, 17),
        (pa.duration("ms"), pa.duration("ms"), dt.timedelta(seconds=2), 2000),
        (decimal(4, 2), decimal(4, 2), Decimal("1.25"), Decimal("1.25")),
        (INT, INT, None, None),
    ],
)
def test_stored_values(kind, source, stored, expected):
    events, choice = one({"a": stored})
    assert evaluate(Field("x", ("a",), kind, source), events, choice) == expected


def test_missing_attributes_and_fields_are_null():
    events, choice = one({"s": {"inner": 5}, "n": None})
    for path, expected in [(("s", "inner"), 5), (("s", "other"), None), (("n", "inner"), None), (("absent",), None)]:
        assert evaluate(Field("x", path, INT, INT), events, choice) == expected


def test_time_and_index():
    events, choice = one({})
    assert evaluate(Time("x", INT), events, choice) == 7
    assert evaluate(Time("x", DATE), events, choice) == dt.date(1970, 1, 8)
    assert evaluate(Index("x"), events, choice) == 0


def test_holds_takes_null_for_false():
    assert not holds(Literal(None, BOOL), [], {})
    assert holds(Literal(True, BOOL), [], {})
