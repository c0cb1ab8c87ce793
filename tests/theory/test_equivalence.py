"""The bounded equivalence check: laws it confirms, near misses it refutes with the shortest stream, and what it says it cannot do."""

from __future__ import annotations

import pyarrow as pa
import pytest

from cepheid.errors import BindError, LimitError
from cepheid.language import parse
from cepheid.logical import rewrite
from cepheid.logical.bind import bind
from cepheid.schema import EventSchema
from cepheid.theory import Counterexample, equivalent

COLUMNS = {
    "type": pa.string(), "ts": pa.int64(), "v": pa.int64(), "id": pa.int64(), "f": pa.float64(), "name": pa.string(),
    "ok": pa.bool_(), "day": pa.date32(), "price": pa.decimal128(10, 2), "at": pa.timestamp("s"), "deep": pa.struct([("inner", pa.int64())]),
}  # fmt: skip
SCHEMA = EventSchema(COLUMNS, type_column="type", time_column="ts")


def compare(left: str, right: str, **options: int) -> Counterexample | None:
    return equivalent(f"SELECT * WHERE {left}", f"SELECT * WHERE {right}", schema=SCHEMA, **options)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("A ; (B ; C)", "(A ; B) ; C"),
        ("A OR B", "B OR A"),
        ("A ALL B", "B ALL A"),
        ("A+", "(A+)+"),
        ("A{2}", "A ; A"),
        ("A AS x FILTER x.v > 1", "A AS x FILTER x.v >= 2"),
        ("A AS x FILTER x.v BETWEEN 1 AND 2", "A AS x FILTER x.v IN (1, 2)"),
        ("A AS x ; B FILTER NOT x.v = 1", "A AS x ; B FILTER x.v != 1 OR x.v IS NULL"),
        ("A ; B WITHIN [1, 2]", "A ; B WITHIN 2 WITHIN [>= 1]"),
        ("A ; B UNLESS A", "A ; B UNLESS A"),
        ("A AS x FILTER x.ok", "A AS x FILTER x.ok = TRUE"),
        ("A AS x FILTER x.name LIKE 'a%' AND x.name LIKE '%a'", "A AS x FILTER x.name LIKE '%a' AND x.name LIKE 'a%'"),
        ("A AS x FILTER x.deep.inner > 1", "A AS x FILTER x.deep.inner >= 2"),
    ],
)
def test_laws_hold(left: str, right: str) -> None:
    assert compare(left, right, max_events=3) is None


@pytest.mark.parametrize(
    ("left", "right", "events"),
    [
        ("A ; B", "A : B", 3),
        ("A", "B", 1),
        ("A ; B", "B ; A", 2),
        ("A+", "A:+", 3),
        ("A ; B", "A ; NOT A ; B", 3),
        ("A ; B", "A ; B UNLESS C", 3),
        ("A AS x", "A AS y", 1),
        ("A AS x FILTER x.v > 1", "A AS x FILTER x.v > 2", 1),
        ("A AS x FILTER x.v != 1", "A AS x FILTER NOT x.v = 1", 1),
        ("A AS x FILTER x.f > 1.5", "A AS x FILTER x.f >= 1.5", 1),
        ("A AS x FILTER x.price > 1.50", "A AS x FILTER x.price >= 1.50", 1),
        ("A AS x FILTER x.day > DATE '2013-01-01'", "A AS x FILTER x.day >= DATE '2013-01-01'", 1),
        ("A AS x FILTER x.at > TIMESTAMP '2013-01-01 00:00:00'", "A AS x FILTER x.at >= TIMESTAMP '2013-01-01 00:00:00'", 1),
        ("A AS x FILTER x.name < 'b'", "A AS x FILTER x.name <= 'b'", 1),
        ("A AS x FILTER x.name LIKE 'ab%'", "A AS x FILTER x.name LIKE 'ab'", 1),
        ("A AS x ; B AS y FILTER x.id = y.id", "A AS x ; B AS y FILTER x.id <= y.id", 2),
        ("A ; B WITHIN 5", "A ; B WITHIN [< 5]", 2),
        ("A ; B WITHIN [>= 5]", "A ; B WITHIN [> 5]", 2),
        ("A ; B ; C WITHIN 5", "A ;[<= 5] B ;[<= 5] C", 3),
        ("(A FILTER A.v > 1)+ ; B", "(A+ ; B) UNLESS (A FILTER A.v = 1)", 2),
    ],
)
def test_differences_come_with_a_shortest_stream(left: str, right: str, events: int) -> None:
    found = compare(left, right)
    assert isinstance(found, Counterexample)
    assert len(found.events) == events
    assert found.only_in_p or found.only_in_q


def test_a_counterexample_reads_well() -> None:
    assert repr(compare("A AS x ; B AS y FILTER x.v > 1", "A AS x : B AS y FILTER x.v > 2")) == (
        "events:\n  0: A(type='A', v=2, ts=0) at 0\n  1: B(type='B', ts=1) at 1\nonly in p:\n  [0, 1] A={0}, B={1}, x={0}, y={1}"
    ).replace("A={0}, B={1}, ", "")


def test_what_is_shown_is_compared() -> None:
    left, right = "SELECT x WHERE A AS x ; B AS y", "SELECT x, y WHERE A AS x ; B AS y"
    assert equivalent(left, right, schema=SCHEMA) is not None
    assert equivalent(left, "SELECT x WHERE A AS x ; B AS z", schema=SCHEMA) is None


def test_measures_and_limits_are_compared() -> None:
    first, last = (f"SELECT {word}(x.v) AS n WHERE (A AS x)+" for word in ("first", "last"))
    found = equivalent(first, last, schema=SCHEMA)
    assert found is not None
    assert found.only_in_p[0].values != found.only_in_q[0].values
    limited = equivalent("SELECT * WHERE A+ LIMIT 1", "SELECT * WHERE A+", schema=SCHEMA)
    assert limited is not None
    assert "1 of these given" in repr(limited)


def test_plans_are_taken_as_they_are() -> None:
    text = "SELECT * WHERE (A AS x) ; ((A AS y FILTER x.v >= 40) OR (B AS y FILTER x.v < 40))"
    plan = bind(parse(text), SCHEMA, text=text)
    assert equivalent(plan, rewrite(plan), max_events=3) is None
    assert equivalent(text, rewrite(plan), schema=SCHEMA, max_events=2) is None


def test_streams_without_times_and_with_one_type() -> None:
    schema = EventSchema({"v": pa.int64()}, stream="A", types={"A": frozenset({"v"})})
    assert equivalent("SELECT * FROM A WHERE A ; A", "SELECT * FROM A WHERE A : A", schema=schema) is not None
    assert equivalent("SELECT * FROM A WHERE A ; A", "SELECT * FROM A WHERE A{2}", schema=schema) is None


def test_texts_need_a_schema() -> None:
    with pytest.raises(BindError, match="schema"):
        equivalent("SELECT * WHERE A", "SELECT * WHERE B")


def test_the_number_of_streams_is_limited() -> None:
    with pytest.raises(LimitError) as caught:
        compare("A ; B", "A : B", max_events=30)
    assert "max_streams" in str(caught.value)
    assert "max_events" in str(caught.value)


def test_next_is_not_after() -> None:
    """THEN gives the first B alone, and none at the time of the A."""
    found = compare("A THEN B", "A ; B")
    assert found is not None
    assert not found.only_in_p
    assert compare("A THEN B", "A ;[> 0] NXT(B)", max_events=3) is not None
