"""Strategies inside a pattern: random queries with NXT, LAST, MAX and STRICT at any level mean the same as by the definition."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from functools import cache

import pyarrow as pa
import pytest

import cepheid
from cepheid.errors import LimitError, NotSupportedError
from cepheid.testing.differential import Case, by_definition, check, draw, rows_of, ways_of, whole
from cepheid.testing.generators import NESTED, QueryFragment

VARIANTS = ("compiled", "python", "checked")

GROUPS: dict[str, QueryFragment] = {
    "nested": dataclasses.replace(NESTED, strategies=("", "ALL", "ANY", "STRICT")),
    "nested under a strategy": dataclasses.replace(NESTED, strategies=("NXT", "LAST", "MAX")),
    "two deep": dataclasses.replace(
        NESTED, operators=(("atom", 3), ("named", 3), ("sequence", 5), ("iterate", 2), ("either", 2), ("select", 8))
    ),
    "counted": dataclasses.replace(NESTED, count=1.0, strategies=("", "ALL")),
}

REFUSED = 0.1
"""Part of the cases that may be refused with a LimitError: strategies inside each other square, and square again."""


@cache
def drawn(group: str, cases: int, seed: int) -> tuple[list[Case], Counter[str]]:
    """The cases that the engine takes and that have a strategy inside; and how many were taken, refused by a limit, or not supported."""
    taken, counts = [], Counter[str]()
    wanted = max(cases // 6, 10)
    for case in draw(GROUPS[group], count=wanted * 2, seed=seed, longest=10):
        if sum(counts.values()) == wanted:
            break
        if not any(f"{strategy}(" in case.query.text for strategy in ("NXT", "NEXT", "LAST", "MAX")):
            continue
        try:
            case.query.compiled(case.query.schema(case.events.schema))
        except LimitError:
            counts["limit"] += 1
        except NotSupportedError as error:
            counts[f"not supported: {error}\n{case}"] += 1
        else:
            counts["taken"] += 1
            taken.append(case)
    return taken, counts


@pytest.mark.parametrize("group", GROUPS)
def test_what_is_refused_is_little(group: str, cases: int, seed: int) -> None:
    taken, counts = drawn(group, cases, seed)
    assert counts["limit"] <= REFUSED * len(taken) + 1
    assert set(counts) <= {"taken", "limit"}


@pytest.mark.parametrize("group", GROUPS)
def test_the_definition_on_every_variant(group: str, cases: int, seed: int) -> None:
    for case in drawn(group, cases, seed)[0]:
        found = whole(case, VARIANTS[0])
        check(case, found)
        for variant in VARIANTS[1:]:
            assert whole(case, variant) == found, f"{variant}\n{case}"


@pytest.mark.parametrize("group", GROUPS)
def test_however_the_events_come(group: str, cases: int, seed: int) -> None:
    for case in drawn(group, cases, seed)[0]:
        expected = whole(case, None)
        for number, (way, of) in enumerate(ways_of(case).items(), start=case.number):
            variant = VARIANTS[number % len(VARIANTS)]
            assert of(case, variant) == expected, f"{way}, {variant}\n{case}"


# ------------------------------------------------------------------------------------------------------------------- laws

LAWS = {
    "SELECT * WHERE NXT({p}) WITHIN 99999 EVENTS": "SELECT NXT * WHERE {p}",
    "SELECT * WHERE LAST({p}) WITHIN 99999 EVENTS": "SELECT LAST * WHERE {p}",
    "SELECT * WHERE MAX({p}) WITHIN 99999 EVENTS": "SELECT MAX * WHERE {p}",
    "SELECT * WHERE STRICT({p}) WITHIN 99999 EVENTS": "SELECT STRICT * WHERE {p}",
    "SELECT * WHERE NXT(MAX({p})) WITHIN 99999 EVENTS": "SELECT NXT * WHERE {p}",
    "SELECT LAST * WHERE MAX({p})": "SELECT * WHERE LAST({p})",
    "SELECT * WHERE LAST(({p}) WITHIN 9)": "SELECT LAST * WHERE {p} WITHIN 9",
    "SELECT ANY * WHERE NXT(({p}) WITHIN 9 EVENTS)": "SELECT NXT * WHERE {p} WITHIN 9 EVENTS LIMIT 1",
    "SELECT * WHERE MAX(NXT({p}))": "SELECT NXT * WHERE NXT({p})",
}
"""Pairs of queries with the same matches: two ways of evaluation that must agree, also on streams that are too long for the definition.

Without the wide window a strategy around the whole pattern would be read as the query's own.
"""

PATTERNS = ("A ; B", "A+ ; B", "(A OR B)+ ; C", "A ; (B OR C)+", "A ; B ; C", "A : B", "(A AS x ; B AS y) OR (A AS y ; B AS x)")


@pytest.mark.parametrize("law", LAWS)
def test_a_strategy_around_the_whole_is_the_strategy_of_the_query(law: str, cases: int, seed: int) -> None:
    for pattern in PATTERNS:
        # MAX and unions of iterations have very many matches: short streams there, long ones elsewhere.
        length = 12 if "MAX" in law or "+" in pattern else min(cases, 400)
        kinds = random.Random(f"{seed}/{law}/{pattern}").choices("AABCX", k=length)
        events = pa.table({"type": kinds, "ts": pa.array(range(length), pa.int64())})
        one, other = (cepheid.query(text.format(p=pattern)) for text in (law, LAWS[law]))
        assert sorted(rows_of(one.run(events))) == sorted(rows_of(other.run(events))), (law, pattern, kinds)


def test_inner_strategies_see_the_whole_stream_also_with_consumption() -> None:
    # The second B's NXT is the first A, which the first trigger has consumed: C ; NXT(A ; B) finds nothing there.
    events = cepheid.testing.events("C0 A1 B2 C3 A4 B5")
    query = cepheid.query("SELECT * WHERE C ; NXT(A ; B) CONSUME BY ANY")
    table = pa.Table.from_pylist(events)
    case = Case(0, 0, query, table, by_definition(query, table))
    check(case, whole(case, None))
    assert [(row.start, row.end) for row in whole(case, None)] == [(0, 2)]
