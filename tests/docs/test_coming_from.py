"""Each query that docs/coming-from.md puts beside another system's is one that the engine runs, and means what that system's does."""

from __future__ import annotations

import datetime as dt
import random
import re
from pathlib import Path

import pytest

import cepheid

PAGE = (Path(__file__).resolve().parents[2] / "docs/coming-from.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| .+ \|$", re.MULTILINE)
QUERIES = [query for row in ROW.findall(PAGE) for query in re.findall(r"`((?:SELECT|EVENT) [^`]+ WHERE [^`]+)`", row.split(" | ")[1])]


def test_every_row_has_ours_or_says_why_not() -> None:
    assert len(QUERIES) > 70
    for row in ROW.findall(PAGE):
        cells = row.strip("|").split(" | ")
        assert len(cells) in {3, 4} or "---" in row, row
        assert cells[1].strip(), row


@pytest.mark.parametrize("query", QUERIES)
def test_the_engine_plans_it(query: str) -> None:
    values = {"limit": 1} if ":limit" in query else {}
    assert "engine" in cepheid.query(query, args=values).explain("evaluation")["evaluation"]


def rows(types: str) -> list[dict[str, object]]:
    return [{"type": kind, "ts": time, "v": time * 7 % 5} for time, kind in enumerate(types)]


def ours(query: str, types: str, **options: object) -> list[tuple[int, ...]]:
    """The positions of each match, in order."""
    assert query in QUERIES, "the page has this query"
    found = cepheid.query(query).run(rows(types), **options)  # type: ignore[arg-type]
    return sorted(tuple(sorted({at for positions in match.variables.values() for at in positions})) for match in found)


def first(types: str, kind: str, start: int) -> int | None:
    """Where the first event of a type is, from a position on."""
    at = types.find(kind, start)
    return None if at < 0 else at


def of_each(types: str, rest: str) -> list[tuple[int, ...]]:
    """For each A the first event of the next type, then the first of the one after, ..: Flink's followedBy, Esper's `every a=A -> ..`."""
    result = []
    for start in (at for at, kind in enumerate(types) if kind == "A"):
        match = [start]
        for kind in rest:
            at = first(types, kind, match[-1] + 1)
            if at is None:
                break
            match.append(at)
        else:
            result.append(tuple(match))
    return sorted(result)


def again(types: str) -> list[tuple[int, ...]]:
    """The first A, then the first B, then from there again: Esper's `every (a=A -> b=B)`, SKIP PAST LAST ROW."""
    result, place = [], 0
    while (a := first(types, "A", place)) is not None and (b := first(types, "B", a + 1)) is not None:
        result.append((a, b))
        place = b + 1
    return result


def five_by_five(types: str) -> list[tuple[int, ...]]:
    seen = [at for at, kind in enumerate(types) if kind == "A"]
    return [tuple(seen[start : start + 5]) for start in range(0, len(seen) - 4, 5)]


def until(types: str) -> list[tuple[int, ...]]:
    """All A until a B, then again: Esper's `every ([1:] a=A until b=B)`."""
    result, taken = [], []
    for at, kind in enumerate(types):
        if kind == "A":
            taken.append(at)
        elif kind == "B" and taken:
            result.append((*taken, at))
            taken = []
    return result


def not_next(types: str) -> list[tuple[int, ...]]:
    return [(a, b) for a, b in pairs(types) if types[a + 1] != "N"]


def pairs(types: str) -> list[tuple[int, ...]]:
    return [(a, b) for a, kind in enumerate(types) if kind == "A" for b in range(a + 1, len(types)) if types[b] == "B"]


def permuted(types: str) -> list[tuple[int, ...]]:
    return [(at, at + 1) for at in range(len(types) - 1) if {types[at], types[at + 1]} == {"A", "B"}]


def neither(types: str) -> list[tuple[int, ...]]:
    return [(a, b) for a, b in of_each(types, "B") if "C" not in types[a:b]]


TWINS = {
    "SELECT * WHERE A ; NOT B ; B AS b": lambda types: of_each(types, "B"),
    "SELECT * WHERE A AS a ; NOT B ; B AS b": lambda types: of_each(types, "B"),
    "SELECT * WHERE A AS a ; NOT A ; A AS a ; NOT A ; A AS a": lambda types: of_each(types, "AA"),
    "SELECT * WHERE A ; B": pairs,
    "SELECT NXT * WHERE A ; B CONSUME BY PARTITION": again,
    "SELECT NXT * WHERE A AS a ; B AS b CONSUME BY PARTITION": again,
    "SELECT NXT * WHERE A{5} AS a CONSUME BY PARTITION": five_by_five,
    "SELECT NXT * WHERE A+ AS a ; B AS b CONSUME BY PARTITION": until,
    "SELECT a, b WHERE (A AS a : B AS b) OR (A AS a : (ANY AS x FILTER x[type != 'N']) ; B AS b)": not_next,
    "SELECT * WHERE A ; NOT N ; B": lambda types: [(a, b) for a, b in pairs(types) if "N" not in types[a:b]],
    "SELECT * WHERE A AS a ; NOT (B OR C) ; B AS b": neither,
    "SELECT STRICT * WHERE A ALL B": permuted,
    "SELECT * WHERE A AS a : B FILTER a.$index = 0": lambda types: [(0, 1)] if types.startswith("AB") else [],
}


@pytest.mark.parametrize("query", TWINS)
def test_it_means_what_theirs_does(query: str) -> None:
    """On random streams, against a few lines that say what theirs is defined to find."""
    draw = random.Random(query)
    for _ in range(60):
        types = "".join(draw.choice("AABBCN") for _ in range(draw.randrange(12)))
        assert ours(query, types or "N") == sorted(TWINS[query](types or "N")), types


def test_the_end_of_a_table() -> None:
    query = "SELECT * WHERE A : B NOT FOLLOWED BY ANY FOR 3650 days"
    assert query in QUERIES
    assert [match.end for match in cepheid.query(query).run(days("ABAB"), until="end")] == [3]


@pytest.mark.parametrize("types", ["BACABCBA", "ABAB", "BA", "AXB", "AAB"])
def test_the_first_and_the_last(types: str) -> None:
    """`A X* B`, greedy: one match, from the first A to the last B."""
    query = "SELECT NXT * WHERE A ; B NOT FOLLOWED BY B FOR 3650 days"
    assert query in QUERIES
    expected = [(types.find("A"), types.rfind("B"))] if types.find("A") < types.rfind("B") else []
    assert [(match.start, match.end) for match in cepheid.query(query).run(days(types), until="end")] == expected


def days(types: str) -> list[dict[str, object]]:
    """An event a day."""
    first_day = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    return [{"type": kind, "ts": first_day + dt.timedelta(days=day)} for day, kind in enumerate(types)]
