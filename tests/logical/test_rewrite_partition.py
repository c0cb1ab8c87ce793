"""Equalities become PARTITION BY only where no event of another key can matter: one query for each context that forbids it."""

from __future__ import annotations

import dataclasses

import pyarrow as pa
import pytest

from cepheid.errors import LimitError, NotSupportedError
from cepheid.language import parse
from cepheid.logical.bind import bind
from cepheid.logical.partition import FORBIDDEN_PATTERNS, FORBIDDEN_QUERIES, partition
from cepheid.logical.plan import Filter, QueryPlan
from cepheid.logical.rewrite import rewrite
from cepheid.logical.tree import walk
from cepheid.schema import EventSchema
from cepheid.theory.equivalence import equivalent

COLUMNS = {"type": pa.string(), "ts": pa.int64(), "v": pa.int64(), "id": pa.int64(), "f": pa.float64(), "id2": pa.int32()}
SCHEMA = EventSchema(COLUMNS, type_column="type", time_column="ts")


def bound(text: str) -> QueryPlan:
    return bind(parse(text), SCHEMA, text=text)


PATTERNS = {
    ":": "A AS x : B AS y FILTER x.id = y.id",
    "THEN": "A AS x THEN B AS y FILTER x.id = y.id",
    "; NOT n ;": "A AS x ; NOT C ; B AS y FILTER x.id = y.id",
    ":+": "A AS x ; (B:+) AS y FILTER x.id = y.id",
    "a nested strategy": "NXT(A AS x ; B AS y) FILTER x.id = y.id",
    "WITHIN n EVENTS": "A AS x ; B AS y FILTER x.id = y.id WITHIN 2 EVENTS",
    "UNLESS": "(A AS x ; B AS y) UNLESS C FILTER x.id = y.id",
    "NOT FOLLOWED BY": "(A AS x ; B AS y FILTER x.id = y.id) NOT FOLLOWED BY C FOR 1",
    "lag": "A AS x ; B AS y FILTER x.id = y.id AND lag(y.id) = 1",
    "$index": "A AS x ; B AS y FILTER x.id = y.id AND y.$index < 2",
}
QUERIES = {
    "SELECT STRICT": "SELECT STRICT * WHERE A AS x ; B AS y FILTER x.id = y.id",
    "CONSUME BY": "SELECT * WHERE A AS x ; B AS y FILTER x.id = y.id CONSUME BY PARTITION",
}


def forced(plan: QueryPlan) -> QueryPlan:
    """The plan as the rule would leave it if it did not look."""
    equality = next(condition for node in walk(plan.pattern) if isinstance(node, Filter) for condition in node.conditions)
    assert "=" in repr(equality)
    return dataclasses.replace(plan, derived_keys=("id",))


MADE = "an event that a match makes"


@pytest.mark.parametrize("context", [context for context in FORBIDDEN_PATTERNS if context != MADE])
def test_a_pattern_that_counts_on_other_events_stays(context: str) -> None:
    plan = bound(f"SELECT * WHERE {PATTERNS[context]}")
    assert partition(plan) is plan
    try:
        difference = equivalent(plan, forced(plan), max_events=4, max_streams=10**6)
    except NotSupportedError:
        assert context == "THEN"
    else:
        assert difference is not None, "the context is forbidden for a reason"


def test_an_event_that_a_match_makes_may_begin_at_another_key() -> None:
    text = "SELECT * WHERE A AS x ; P AS y FILTER x.id = y.id"
    plan = bound(f"EVENT P(id) AS (SELECT b.id AS id WHERE A ; B AS b) {text}")
    assert partition(plan) is plan
    plain = bound(text)  # the same with a P that comes in
    assert partition(plain) is not plain


@pytest.mark.parametrize("context", FORBIDDEN_QUERIES)
def test_a_query_that_counts_on_other_events_stays(context: str) -> None:
    plan = bound(QUERIES[context])
    assert partition(plan) is plan
    assert equivalent(plan, forced(plan), max_events=4, max_streams=10**6) is not None, "the context is forbidden for a reason"


def test_consumption_by_any_is_of_the_whole_stream() -> None:
    plan = bound("SELECT * WHERE A AS x ; B AS y FILTER x.id = y.id CONSUME BY ANY")
    assert partition(plan) is plan


@pytest.mark.parametrize(
    "pattern",
    [
        "A AS x ; B AS y ; C FILTER x.id = y.id",  # an atom outside
        "A AS x ; B AS y ; PROJECT NONE (C AS z) FILTER x.id = y.id",  # hidden, hence outside
        "A AS x ; B AS y ; C AS z ; A AS u FILTER x.id = y.id AND z.id = u.id",  # two keys
        "A AS x ; B AS y OR A AS x FILTER x.id = y.id",  # y may be empty: then x may be NULL
        "(A AS x)+ ; (B AS y)? FILTER x.id = y.id",
        "A AS x ; B AS y FILTER x.id = y.v",  # two attributes
        "A AS x ; B AS y FILTER x.id = y.id2",  # two columns
        "A AS x ; B AS y FILTER x.id = y.id OR x.v = 1",
        "A AS x ; B AS y FILTER x.id <= y.id",
        "A AS x ; B AS y FILTER x.id + 0 = y.id",
        "(A AS x ; B AS y FILTER x.id = y.id)+",
        "(A AS x ; B AS y FILTER x.id = y.id) OR C AS z",
        "(A AS x ; B AS y FILTER x.id = y.id) ; C AS z",
        "A AS x ; (B AS y FILTER y.id = x.id)",
        "(A AS x FILTER x.id = prev(x).id)+",
    ],
)
def test_equalities_that_are_no_key_stay(pattern: str) -> None:
    plan = bound(f"SELECT * WHERE {pattern}")
    assert partition(plan) is plan


def test_consumption_by_partition_is_of_all_that_partition_by_brings_together() -> None:
    plan = bound("SELECT * WHERE A AS x ; B AS y FILTER x.id = y.id PARTITION BY v CONSUME BY PARTITION")
    assert partition(plan) is plan
    assert equivalent(plan, forced(plan), max_events=4, max_streams=10**6) is not None


@pytest.mark.parametrize("text", [*(f"SELECT * WHERE {pattern}" for pattern in PATTERNS.values()), QUERIES["SELECT STRICT"]])
def test_within_a_partition_the_same_counts_on_other_events(text: str) -> None:
    plan = bound(f"{text} PARTITION BY v")
    assert partition(plan) is plan


def test_an_attribute_of_partition_by_is_no_key_once_more() -> None:
    plan = bound("SELECT * WHERE A AS x ; B AS y FILTER x.id = y.id AND x.v = y.v PARTITION BY v")
    after = partition(plan)
    assert (after.partition_by, after.derived_keys, after.keys) == (("v",), ("id",), ("v", "id"))
    assert len(after.pattern.conditions) == 1
    assert rewrite(plan).derived_keys == ("id",)


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("SELECT * WHERE A AS x ; B AS y FILTER x.id = y.id", ("id",)),
        ("SELECT NXT * WHERE (A AS x)+ ; B AS y FILTER x.id = y.id WITHIN 1", ("id",)),
        ("SELECT LAST * WHERE A AS x ; (B AS y)+ FILTER x.id = y.id", ("id",)),
        ("SELECT MAX * WHERE A AS x ; B AS y ; C AS z FILTER x.id = y.id AND x.id = z.id AND x.v = z.v", ("id",)),
        ("SELECT * WHERE A AS x ; B AS y FILTER x.v = y.v AND x.id = y.id", ("v", "id")),
        ("SELECT count(x) AS n WHERE A AS x ALL B AS y FILTER x.id = y.id", ("id",)),
        ("SELECT COUNT(*) WHERE A AS x ; B AS y FILTER x.id = y.id", ("id",)),
        ("SELECT ANY * WHERE A AS x ;[<= 1] B AS y FILTER x.id = y.id", ("id",)),
        ("SELECT * WHERE PROJECT x (A AS x ; B AS y FILTER x.id = y.id) WITHIN 1", ("id",)),
        ("SELECT * WHERE A AS x ; B AS y ; (C AS z OR A) FILTER x.id = y.id AND z.id = y.id AND A.id = x.id", ("id",)),
        ("SELECT * WHERE A ; B FILTER A.id = B.id", ("id",)),
        ("SELECT * WHERE A AS x ; B AS y FILTER x.f = y.f", ("f",)),
        ("SELECT * WHERE A AS x ; B AS y FILTER x.id = y.id PARTITION BY v", ("id",)),
        ("SELECT LAST * WHERE A AS x ; (B AS y)+ FILTER x.id = y.id PARTITION BY v", ("id",)),
        ("SELECT * WHERE A AS x ; B AS y FILTER x.f = y.f AND x.id = y.id PARTITION BY v", ("f", "id")),
    ],
)
def test_equalities_over_all_events_are_a_key(text: str, keys: tuple[str, ...]) -> None:
    plan = bound(text)
    after = partition(plan)
    assert after.partition_by == plan.partition_by
    assert after.derived_keys == keys
    try:
        assert equivalent(plan, after, max_events=3, max_streams=2_000) is None
    except LimitError:
        assert equivalent(plan, after, max_events=2) is None
