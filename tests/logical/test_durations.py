"""How long a match can be by gaps and by adjacency alone: bounds of the pattern, against the matches of random streams."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from enough import Enough

import cepheid
from cepheid.errors import LimitError
from cepheid.logical.durations import longest, narrowest, shortest, widest
from cepheid.testing import generators, reference
from cepheid.testing.harness import events_of

if TYPE_CHECKING:
    from cepheid.logical.plan import QueryPlan


def bound(text: str) -> QueryPlan:
    query = cepheid.query(text)
    return query.bound(query.schema(generators.SCHEMA, type="type", time="ts"))


@pytest.mark.parametrize(
    ("where", "events"),
    [
        ("A", 1),
        ("A : B", 2),
        ("A : (B : C) : A", 4),
        ("A ; B", None),
        ("A : B ; C", None),
        ("A ;[<= 5] B", None),
        ("((A ; B) WITHIN 7 EVENTS) : C", 8),
        ("A WITHIN 7 EVENTS", 1),
        ("A : B WITHIN 5", 2),
        ("A:{2,5}", 5),
        ("(A : B):{1,5} : C", 11),
        ("A{2,5}", None),
        ("A{1}", 1),
        ("A:+", None),
        ("A:{2,}", None),
        ("A : B OR A", 2),
        ("A : B OR A ; B", None),
        ("(A : B : C) AND (A ; C)", 3),
        ("(A ; B) AND (A ; C)", None),
        ("A AS x : B AS y FILTER x.v < y.v", 2),
        ("NXT(A : B)", 2),
        ("A : B?", 2),
        ("A : B UNLESS C", 2),
    ],
)
def test_events_from_start_to_end(where: str, events: int | None) -> None:
    assert widest(bound(f"SELECT * WHERE {where}").pattern) == events


@pytest.mark.parametrize(
    ("where", "time"),
    [
        ("A", 0),
        ("A : B", None),
        ("A ;[<= 5] B", 5),
        ("A ;[< 5] B ;[<= 2] C", 6),
        ("A ;[>= 5] B", None),
        ("((A ; B) WITHIN 7) ;[<= 3] C", 10),
        ("A{2,5}[<= 3]", 12),
        ("A+[<= 3]", None),
        ("(A ;[<= 3] B) OR A", 3),
        ("(A ;[<= 3] B) AND (A ; B)", 3),
    ],
)
def test_time_from_start_to_end(where: str, time: int | None) -> None:
    assert longest(bound(f"SELECT * WHERE {where}").pattern) == time


@pytest.mark.parametrize(
    ("where", "events"),
    [
        ("A", 1),
        ("A ; B : C", 3),
        ("A ; B? ; C", 2),
        ("A{0,3} ; C", 1),
        ("(A : B){2,5} ; C", 5),
        ("A+", 1),
        ("A ; B OR A", 1),
        ("(A ; B ; C) AND (A ; C)", 3),
        ("(A ; B) ALL C", 2),
        ("A THEN (B ; C ; A)", 3),
        ("A ; B UNLESS (A ; B ; C)", 2),
        ("A ; NOT (B ; B ; B) ; C", 2),
    ],
)
def test_least_events_from_start_to_end(where: str, events: int) -> None:
    assert narrowest(bound(f"SELECT * WHERE {where}").pattern) == events


@pytest.mark.parametrize(
    ("where", "time"),
    [
        ("A ; B", 0),
        ("A ;[> 5] B ;[>= 2] C", 8),
        ("A ;[<= 5] B", 0),
        ("(A ;[> 5] B) OR A", 0),
        ("(A ;[> 5] B) AND (A ; B)", 6),
        ("(A ;[> 5] B) ALL (A ;[> 3] B)", 6),
        ("A+[> 3]", 0),
        ("A{3,5}[> 3]", 8),
        ("A ; (B ;[> 5] A)? ; B", 0),
        ("((A ; B) WITHIN [>= 7]) ;[>= 3] C", 10),
        ("A THEN (B ;[> 5] C) ;[>= 2] A", 8),
        ("A ; B NOT FOLLOWED BY (A ;[> 5] B) FOR 9", 0),
    ],
)
def test_least_time_from_start_to_end(where: str, time: int) -> None:
    assert shortest(bound(f"SELECT * WHERE {where}").pattern) == time


@pytest.mark.parametrize("fragment", ["GUARDED", "ENGINE", "NESTED", "POSITIONAL", "SUCCEEDING_GUARDED"])
def test_no_match_of_a_random_pattern_is_longer_or_shorter(fragment: str, cases: int, seed: int) -> None:
    guarded = fragment == "GUARDED"
    drawn = Enough(2 * cases, events=fragment != "POSITIONAL", times=guarded, least=guarded)
    for number in drawn:
        rng = random.Random(f"{seed} {fragment} {number}")
        text = generators.random_query(rng, fragment=getattr(generators, fragment))
        plan = bound(text)
        most, time = widest(plan.pattern), longest(plan.pattern)
        least, soonest = narrowest(plan.pattern), shortest(plan.pattern)
        if most is None and time is None and least == 1 and soonest == 0:
            continue
        stream = events_of(generators.random_stream(rng), plan.schema)
        try:
            found = reference.matches(plan, stream, max_matches=3_000)
        except LimitError:
            continue
        for match in found:
            assert most is None or match.end - match.start + 1 <= most, (seed, number, text)
            assert time is None or stream[match.end].time - stream[match.start].time <= time, (seed, number, text)
            assert least <= match.end - match.start + 1, (seed, number, text)
            assert soonest <= stream[match.end].time - stream[match.start].time, (seed, number, text)
        drawn.seen["least"] += bool(found) and soonest > 0
        drawn.seen["events"] += bool(found) and most is not None
        drawn.seen["times"] += bool(found) and time is not None
