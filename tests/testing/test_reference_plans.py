"""The reference on plans built by hand, with expectations computed by hand: it must not need the parser or the binder."""

from __future__ import annotations

import pyarrow as pa

from cepheid.logical import plan as logical
from cepheid.logical.plan import Apply, Field, Filter, Iterate, Link, Named, QueryPlan, Sequence
from cepheid.schema import EventSchema
from cepheid.testing.reference import Event, Match, matches, run

SCHEMA = EventSchema({"type": pa.string(), "ts": pa.int64(), "v": pa.int64()}, type_column="type", time_column="ts")
A, B = logical.Event("A"), logical.Event("B")
THEN_LATER = (Link(";"),)


def value(variable, *, previous=False):
    return Field(variable, ("v",), pa.int64(), pa.int64(), previous)


def greater(left, right):
    return Apply(">", (left, right), pa.bool_())


def stream(*events):
    return [Event(kind, time, {"v": number}) for kind, time, number in events]


def found(pattern, events, **options):
    return [
        (match.start, match.end, dict(match.mapping)) for match in matches(QueryPlan(pattern, SCHEMA, ("A", "B", "x"), **options), events)
    ]


def test_sequence_takes_what_comes_later():
    events = stream(("A", 1, 0), ("B", 2, 0), ("A", 3, 0), ("B", 4, 0))
    assert found(Sequence((A, B), THEN_LATER), events) == [
        (0, 1, {"A": (0,), "B": (1,)}),
        (0, 3, {"A": (0,), "B": (3,)}),
        (2, 3, {"A": (2,), "B": (3,)}),
    ]


def test_filter_on_a_variable_of_an_enclosing_sequence():
    later = Filter(B, (greater(value("B"), value("A")),))
    events = stream(("A", 1, 1), ("A", 2, 3), ("B", 3, 2))
    assert found(Sequence((A, later), THEN_LATER), events) == [(0, 2, {"A": (0,), "B": (2,)})]


def test_filter_on_a_variable_that_comes_later():
    first = Filter(B, (greater(value("B"), value("A")),))
    events = stream(("B", 0, 3), ("A", 1, 1), ("A", 2, 3))
    assert found(Sequence((first, A), THEN_LATER), events) == [(0, 1, {"A": (1,), "B": (0,)})]


def test_prev_is_the_previous_iteration():
    rising = Iterate(Filter(Named(A, "x"), (greater(value("x"), value("x", previous=True)),)))
    events = stream(("A", 1, 1), ("A", 2, 3), ("A", 3, 2))
    assert [mapping["x"] for _, _, mapping in found(rising, events)] == [(0,), (0, 1), (1,), (0, 2), (2,)]


def test_absence_is_given_vetoed_or_undecided():
    events = stream(("A", 1, 0), ("A", 2, 0), ("B", 7, 0), ("A", 8, 0))
    (partition,) = run(QueryPlan(logical.Absence(A, B, 5), SCHEMA, ("A",)), events).partitions
    assert partition.candidates == [Match(0, 0, (("A", (0,)),))]
    assert [group.candidates for group in partition.undecided] == [(Match(3, 3, (("A", (3,)),)),)]
