from __future__ import annotations

import dataclasses
import random

import pytest
from hypothesis import given, settings

from cepheid.errors import LimitError
from cepheid.language import parse
from cepheid.logical.bind import bind
from cepheid.schema import schema_of
from cepheid.testing.generators import (
    ENGINE,
    NESTED,
    PATTERNS,
    SCHEMA,
    TIMED_SCHEMA,
    WAITING,
    WIDE,
    QueryFragment,
    queries,
    random_query,
    random_stream,
    streams,
    table,
)
from cepheid.testing.harness import events_of
from cepheid.testing.reference import run

EVENTS = schema_of(SCHEMA)


def bound(text):
    return bind(parse(text), EVENTS, text=text)


@pytest.mark.parametrize("fragment", [ENGINE, WAITING, NESTED, WIDE], ids=["ENGINE", "WAITING", "NESTED", "WIDE"])
def test_queries_bind_and_many_have_matches(fragment):
    count, some = 150, 0
    for seed in range(count):
        rng = random.Random(seed)
        plan = bound(random_query(rng, fragment=fragment))
        try:
            result = run(plan, events_of(random_stream(rng), EVENTS), max_matches=20_000)
        except LimitError:
            continue
        some += any(partition.candidates for partition in result.partitions)
    assert some > count // 4


def test_a_waiting_pattern_has_nothing_adjacent():
    texts = [random_query(random.Random(seed), fragment=WAITING) for seed in range(100)]
    assert not any(":" in text for text in texts)
    assert any("CONSUME BY ANY" in text for text in texts)


def test_a_count_has_no_limit_and_no_targets():
    fragment = dataclasses.replace(ENGINE, count=1.0, limit=1.0)
    for seed in range(20):
        text = random_query(random.Random(seed), fragment=fragment)
        # ANY and RESTRICTED keep one match of each trigger: there is nothing to count.
        assert bound(text).count == (not text.startswith(("SELECT ANY ", "SELECT RESTRICTED ")))
        assert ("LIMIT" in text) != bound(text).count


def test_the_same_seed_makes_the_same():
    one, other = (random.Random(17) for _ in range(2))
    assert random_query(one, fragment=WIDE) == random_query(other, fragment=WIDE)
    assert repr(random_stream(one)) == repr(random_stream(other))


@pytest.mark.parametrize("operator", PATTERNS)
def test_every_operator_makes_patterns_that_bind(operator):
    fragment = QueryFragment(operators=((operator, 3), ("named", 1)), correlated=True, previous=True, unit="")
    for seed in range(10):
        bound(random_query(random.Random(seed), fragment=fragment))


def test_durations_with_a_unit_bind_to_timestamps():
    timed = schema_of(TIMED_SCHEMA)
    fragment = QueryFragment(operators=(("gap", 3), ("within", 3), ("named", 1)), windows=("time", "interval"), unit="s")
    for seed in range(20):
        text = random_query(random.Random(seed), fragment=fragment)
        bind(parse(text), timed, text=text)


def test_streams_have_ties_and_nulls_and_fit_the_schema():
    rows = [row for seed in range(50) for row in random_stream(random.Random(seed))]
    for name in ("k", "v", "w", "s", "b"):
        assert any(row[name] is None for row in rows)
    assert any(row["w"] != row["w"] for row in rows)
    stream = random_stream(random.Random(3), most=30)
    times = [row["ts"] for row in stream]
    assert times == sorted(times)
    assert table(stream).schema == SCHEMA
    assert table(stream, timed=True).schema == TIMED_SCHEMA


@settings(max_examples=20, deadline=None)
@given(queries(WIDE), streams(most=5))
def test_as_hypothesis_strategies(text, rows):
    plan = bound(text)
    for partition in run(plan, events_of(rows, EVENTS)).partitions:
        for match in partition.candidates:
            assert all(match.start <= position <= match.end for position in match.support)
