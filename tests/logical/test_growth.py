"""How many matches one event can complete: the numbers of the warning are those of COUNT(*) on a stream that suits the pattern."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import cepheid
from cepheid.logical.growth import completed
from cepheid.logical.plan import Event

SCHEMA = pa.schema([("type", pa.string()), ("ts", pa.int64())])


def plan_of(pattern):
    query = cepheid.query(f"SELECT COUNT(*) WHERE {pattern}")
    return query, query.bound(query.schema(SCHEMA)).pattern


def leaves(pattern):
    return [pattern.type] if isinstance(pattern, Event) else [name for child in pattern.children() for name in leaves(child)]


def counted(pattern, events):
    """COUNT(*) of the last event, where so many events fit each part, one part after the other; a last part that is one event has one."""
    query, plan = plan_of(pattern)
    *names, last = dict.fromkeys(leaves(plan))
    types = [name for name in names for _ in range(events)] + [last] * (1 if pattern.endswith(last) and names else events)
    found = query.run(pa.table([types, range(len(types))], schema=SCHEMA))
    return next((match.measures["count"] for match in found if match.end == len(types) - 1), 0)


EXACT = {
    "A ; B": (1, 10, 20),
    "A ; B ; C ; D": (1, 1_000, 8_000),
    "A+ ; B": (1, 1_023, 1_048_575),
    "A+": (1, 512, 524_288),
    "A+ ; B+ ; C": (1, 1_023**2, 1_048_575**2),
    "A{1,3} ; B": (1, 175, 1_350),
    "A{2,} ; B": (0, 1_013, 1_048_555),
    "A:+ ; B": (1, 55, 210),
    "A+ : B": (1, 512, 524_288),
    "A ; B? ; C": (2, 110, 420),
    "(A AS x) ; (B FILTER B.ts >= 0)": (1, 10, 20),
    "A : B+": (1, 256, 262_144),
}


@pytest.mark.parametrize("pattern", EXACT)
def test_numbers_that_are_exact(pattern):
    assert tuple(completed(plan_of(pattern)[1], events) for events in (1, 10, 20)) == EXACT[pattern]
    assert counted(pattern, 10) == EXACT[pattern][1]


def test_a_stream_has_at_least_as_many(cases, seed):
    rng = random.Random(seed)
    for _ in range(cases // 4):
        items = [name + rng.choice(["", "", "+", ":+", "{1,2}", "{2,3}"]) for name in "ABC"[: rng.randint(1, 3)]]
        pattern = " ; ".join([*items, "D"])
        events = rng.randint(1, 5)
        assert counted(pattern, events) == completed(plan_of(pattern)[1], events), pattern


@pytest.mark.parametrize(
    ("text", "warned"),
    [
        ("SELECT * WHERE A+ ; B WITHIN 5", True),
        ("SELECT A.ts AS at WHERE A ; B ; C ; D WITHIN 5", True),
        ("SELECT * WHERE A+ ; B WITHIN 20 EVENTS", True),
        ("SELECT * WHERE A+ ; B WITHIN 9 EVENTS", False),
        ("SELECT * WHERE A ; B ; C WITHIN 5", False),
        ("SELECT * WHERE A:+ ; B WITHIN 5", False),
        ("SELECT * WHERE A : B : C : D : E WITHIN 5", False),
        ("SELECT * WHERE NXT(A+) ; B WITHIN 5", False),
        ("SELECT MAX * WHERE A+ ; B WITHIN 5", False),
        ("SELECT ANY * WHERE A+ ; B WITHIN 5", False),
        ("SELECT COUNT(*) WHERE A+ ; B WITHIN 5", False),
        ("SELECT * WHERE A+ ; B WITHIN 5 LIMIT 3", False),
        ("SELECT * WHERE A NOT FOLLOWED BY (B+ ; C) FOR 5", False),
    ],
)
def test_when_it_is_said(text, warned):
    said = cepheid.query(text).explain("lints")["lints"]
    assert ("every choice of events that fit is a match" in said) == warned
