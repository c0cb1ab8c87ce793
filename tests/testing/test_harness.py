from __future__ import annotations

import datetime as dt
from types import SimpleNamespace

import pyarrow as pa
import pytest

import cepheid
from cepheid.errors import InputError
from cepheid.schema import EventSchema, schema_of
from cepheid.testing import assert_matches, events
from cepheid.testing.harness import difference, events_of
from cepheid.testing.reference import Event, Group, Match, Partition


def test_types_and_times():
    assert events("A1 B2 A3") == [{"type": "A", "ts": 1}, {"type": "B", "ts": 2}, {"type": "A", "ts": 3}]


def test_without_times_there_is_no_time_column():
    assert events("A B") == [{"type": "A"}, {"type": "B"}]


def test_attributes_of_every_kind_are_filled_up_with_none():
    rows = events("A1(v=5, s='a, b', w=1.5, b=true, n=null, t=word) T2@-3(v=-1)")
    assert rows[0] == {"type": "A", "ts": 1, "v": 5, "s": "a, b", "w": 1.5, "b": True, "n": None, "t": "word"}
    assert rows[1] == {"type": "T2", "ts": -3, "v": -1, "s": None, "w": None, "b": None, "n": None, "t": None}


def test_other_column_names():
    assert events("A1", type="kind", time="at") == [{"kind": "A", "at": 1}]


@pytest.mark.parametrize("text", ["A1 2B", "A1(v)", "A1 B", "A1(v=1", "A1)"])
def test_what_is_no_stream(text):
    with pytest.raises(ValueError, match=r"not an event|not an attribute|have a time"):
        events(text)


class Answer:
    """Stands for a query: gives the matches it was made with."""

    def __init__(self, *matches):
        self.matches = [SimpleNamespace(variables=match) for match in matches]

    def run(self, _rows, *, engine):
        assert engine is None
        return self.matches


def test_matches_as_expected_in_any_order_and_form():
    rows = events("A1 B2 B3")
    query = Answer({"x": (0,), "y": (1, 2)}, {"x": (0,), "y": (1,), "z": ()})
    assert_matches(query, rows, [{"y": [1], "x": 0}, {"x": [0], "y": {2, 1}}])
    assert_matches(query, rows, [[0, 1], [2, 1, 0]])


def test_the_message_shows_what_is_missing_and_what_is_too_much():
    with pytest.raises(AssertionError) as caught:
        assert_matches(Answer({"x": (0,)}), events("A1 B2"), [{"x": 1}])
    assert str(caught.value).splitlines() == [
        "the matches differ: 1 found, 1 expected",
        "  missing     x = 1 (B2)",
        "  unexpected  x = 0 (A1)",
    ]


def test_a_match_given_twice_is_unexpected():
    with pytest.raises(AssertionError, match="unexpected"):
        assert_matches(Answer({"x": (0,)}, {"x": (0,)}), events("A1"), [{"x": 0}])


@pytest.mark.parametrize("engine", [None, "reference"])
def test_a_real_query(engine):
    query = cepheid.query("SELECT * WHERE T AS x ; T AS y FILTER x.temp > 40 AND y.temp > 40 WITHIN 5")
    stream = events("T1(temp=41) H2(hum=20) T3(temp=45) T9(temp=50)")
    assert_matches(query, stream, [{"x": 0, "y": 2}], engine=engine)
    assert_matches(query, stream, [[0, 2]], engine=engine)
    with pytest.raises(AssertionError, match="missing"):
        assert_matches(query, stream, [{"x": 0, "y": 2}, {"x": 0, "y": 3}], engine=engine)


def test_choice_among_candidates():
    candidates = [{"x": 0}, {"x": 1}]
    assert_matches(Answer({"x": (1,)}), events("A1 A2"), candidates, choose=1)
    with pytest.raises(AssertionError, match="2 matches were given, expected 1 of 2"):
        assert_matches(Answer({"x": (1,)}, {"x": (0,)}), events("A1 A2"), candidates, choose=1)


def test_rows_become_events_with_times_in_steps():
    kind = pa.timestamp("ms", tz="UTC")
    schema = EventSchema({"type": pa.string(), "ts": kind}, type_column="type", time_column="ts")
    moment = dt.datetime(1970, 1, 1, 0, 0, 1, 5000, tzinfo=dt.UTC)
    assert events_of([{"type": "A", "ts": moment}], schema) == [Event("A", 1005, {"type": "A", "ts": moment})]
    table = pa.table({"type": pa.array(["A"]).dictionary_encode(), "ts": pa.array([1005], kind)})
    assert events_of(table, schema_of(table.schema)) == [Event("A", 1005, {"type": "A", "ts": 1005})]


def test_dates_are_days():
    table = pa.table({"ts": pa.array([dt.date(1970, 1, 3)], pa.date32())})
    assert [event.time for event in events_of(table, EventSchema({"ts": pa.date32()}, stream="S", time_column="ts"))] == [2]


def test_events_without_time_are_errors():
    schema = EventSchema({"type": pa.string(), "ts": pa.int64()}, type_column="type", time_column="ts")
    with pytest.raises(InputError, match="event 1 has no time"):
        events_of([{"type": "A", "ts": 1}, {"type": "A", "ts": None}], schema)


MATCHES = tuple(Match(start, 2, (("x", (start, 2)),)) for start in (0, 1))


@pytest.mark.parametrize(
    ("choose", "given", "fault"),
    [
        (2, MATCHES, None),
        (1, MATCHES[:1], None),
        (1, MATCHES[1:], None),
        (1, MATCHES, "2 matches end at 2, not 1"),
        (2, MATCHES[:1], "1 matches end at 2, not 2"),
        (2, (*MATCHES[:1], *MATCHES[:1]), "given twice"),
        (2, (MATCHES[0], Match(0, 2, ())), "not a match"),
        (2, (*MATCHES, Match(0, 3, ())), "not a match"),
    ],
)
def test_difference(choose, given, fault):
    found = difference(Partition((), (0, 1, 2, 3), (Group(2, MATCHES, choose),), ()), given)
    assert (found is None) if fault is None else (fault in found)
