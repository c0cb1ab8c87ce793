"""What is next under ACTIVE_OFFICE and COMPLETE_HISTORY where the kernel of guards finds it, against the definition."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from enough import Enough, share

import cepheid
from cepheid.engine.evaluations.guards import guarded_run
from cepheid.engine.evaluations.guards.guarded_run import GuardSizes
from cepheid.errors import LimitError
from cepheid.kernel import available
from cepheid.testing import differential
from cepheid.testing.differential import Case, answers, ways_of

if TYPE_CHECKING:
    from collections.abc import Callable

TINY = GuardSizes(places=1, chunk=2, chunk_positions=3, levels=1, queue=1, codes=2, sets=1)

PATTERNS = (
    "A THEN (B ;[< 5] C) WITHIN 10",
    "A THEN (B AS x ; B AS y ; C FILTER x.v <= y.v) WITHIN 12",
    "A+ THEN (B+[< 4] ; C)",
    "A THEN ((B AS b FILTER prev(b).v <= b.v)+ ; C) WITHIN 15",
    "(A THEN (B+[< 4])) ; C",
    "(A THEN (B AS b ; C AS c FILTER b.v = c.v)) ALL B",
    "(A THEN (B :[< 3] C)) ; B",
    "((A AS a THEN (B AS b ;[< 6] C)) FILTER a.v < b.v) ; A",
    "(A THEN (B ;[> 1] C))+ ; B WITHIN 20",
    "(A THEN (B ;[< 4] B)) THEN (C ;[< 4] C) WITHIN 20",
    "A ; B THEN PROJECT b (A ; B AS b ; C WITHIN 6)",
    "A AS a THEN (B AS b ; NOT A ; C AS c FILTER b.v <= c.v)",
    "A THEN (B ;[<= 3] C OR B) WITHIN 9 EVENTS",
    "NXT(A ;[< 5] B) ; (A THEN (B ;[< 5] C))",
    "A THEN ((A ALL B) ;[< 5] C) WITHIN 12",
    "(A AS a ; B AS b FILTER a.v = b.v) THEN (A AS c+ ; C AS d FILTER c.v != d.v) WITHIN 15",
    "A THEN ((B AS x ; C AS y WITHIN 4) FILTER x.v != y.v) PARTITION BY k",
    "A THEN (B ;[< 5] C) ;[< 3] B CONSUME BY ANY",
    "A THEN (B ;[< 5] C) PARTITION BY k CONSUME BY PARTITION",
    "A THEN (B ;[< 5] C) PARTITION BY k CONSUME BY ANY",
    "B UNLESS (A THEN (B ;[< 5] C))",
    "B ; NOT (A THEN (B ;[< 5] B)) ; C WITHIN 15",
)
"""Right sides of THEN in which the kernel chooses what is next: alone, in patterns, and in what must not come."""

MADE = (
    "EVENT P(v) AS (SELECT x.v AS v WHERE A AS x ; B WITHIN 4)",
    "EVENT P(v) AS (SELECT x.v AS v WHERE A AS x)",
    "EVENT P(v) AS (SELECT y.v AS v WHERE B ; C AS y WITHIN 9)",
    "EVENT P(v) AS (SELECT last(x.v) AS v WHERE A AS x+ ; B WITHIN 6)",
)
"""Events that matches have made, some of which begin before others that end earlier."""

EARLIER = (
    "A THEN P WITHIN 12",
    "A THEN (P OR C) WITHIN 9",
    "A THEN (P ;[< 5] C) WITHIN 12",
    "A THEN (P AS x ; P AS y FILTER x.v <= y.v) WITHIN 12",
    "A+ THEN (P+ ; C)",
    "A THEN ((P AS b FILTER prev(b).v <= b.v)+ ; C) WITHIN 15",
    "(A THEN (P ; C)) ; B",
    "(A THEN (P AS b ; C AS c FILTER b.v = c.v)) ALL B",
    "((A AS a THEN (P AS b ; C)) FILTER a.v < b.v) ; A",
    "(A THEN (P ; C))+ ; B WITHIN 20",
    "(P THEN (P ; B)) THEN (B ;[< 4] C) WITHIN 20",
    "A ; B THEN PROJECT b (P ; B AS b ; P) WITHIN 15",
    "A ; B THEN PROJECT b (P ; A ; B AS b) WITHIN 15",
    "A AS a THEN (P AS b ; NOT A ; C AS c FILTER b.v <= c.v)",
    "A THEN ((P OR B) ; C) WITHIN 9 EVENTS",
    "NXT(A ;[< 5] B) ; (A THEN (P ; C))",
    "P THEN (P : C OR B)",
    "(P AS a ; B AS b FILTER a.v = b.v) THEN (P AS c+ ; C AS d FILTER c.v != d.v) WITHIN 15",
    "A THEN ((P AS x ; C AS y WITHIN 4) FILTER x.v != y.v) PARTITION BY k",
    "A THEN (P ; C) ;[< 3] B CONSUME BY ANY",
    "A THEN (P ; C) PARTITION BY k CONSUME BY PARTITION",
    "B UNLESS (A THEN (P ; C))",
    "B ; NOT (A THEN (P ;[< 5] B)) ; C WITHIN 15",
    "A THEN (P ALL C) WITHIN 12",
    "A THEN (P ALL P)",
    "A THEN ((P ALL B) ;[< 5] C) WITHIN 15",
    "A THEN ((P AS x ALL B AS y) FILTER x.v <= y.v)",
    "A THEN (P ALL (B ; C))",
    "(A THEN (P ALL C))+ ; B WITHIN 15",
    "A THEN PROJECT C (P ALL B ALL C) WITHIN 12",
    "A THEN (PROJECT B (P ; B) ALL C) WITHIN 12",
    "(A THEN PROJECT C (P ALL C)) ALL ANY WITHIN 9",
    "A THEN (P ALL B) PARTITION BY k CONSUME BY ANY",
    "B UNLESS (A THEN (P ALL C))",
)
"""Right sides that may begin before the event that is read first: with it, or with any of their events."""

SELECTED = ("*", "*", "COUNT(*)", "NXT *", "LAST *", "MAX *", "STRICT *", "RESTRICTED *", "B")


def case(number: int, seed: int) -> Case | None:
    """A random case, dense in equal times; None where it has too many matches for the definition."""
    rng = random.Random(f"{seed} next {number}")
    rows = [
        {"type": rng.choice("AABBBCC"), "ts": 0, "v": rng.choice((None, *range(4))), "k": rng.choice("xy")}
        for _ in range(rng.randrange(4, 17))
    ]
    for before, row in itertools.pairwise(rows):
        row["ts"] = before["ts"] + rng.choice((0, 0, 1, 1, 2))
    events = pa.Table.from_pylist(rows, pa.schema({"type": pa.string(), "ts": pa.int64(), "v": pa.int64(), "k": pa.string()}))
    model = rng.choice(("ACTIVE_OFFICE", "COMPLETE_HISTORY"))
    pattern, made = (rng.choice(EARLIER), rng.choice(MADE)) if rng.random() < 0.6 else (rng.choice(PATTERNS), "")
    if made and "PARTITION" in pattern:
        made = made.replace(" WITHIN", " PARTITION BY k WITHIN") if " WITHIN" in made else made[:-1] + " PARTITION BY k)"
    selected = rng.choice(SELECTED)
    if made and selected == "B":
        selected = "*" if any(word in pattern for word in ("PROJECT", "UNLESS", "NOT")) else "P"
    query = cepheid.query(f"{made} SELECT {selected} WHERE {pattern} TIME MODEL {model}")
    try:
        return Case(seed, number, query, events, *answers(query, events))
    except LimitError:
        return None


@pytest.mark.parametrize("variant", available())
def test_what_is_next_is_that_of_the_definition(variant: str, seed: int, cases: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However the events come, with snapshots and restores; from the smallest arrays, too."""
    made: dict[bool, Callable[[], GuardSizes]] = {True: lambda: TINY, False: GuardSizes}
    drawn = Enough(share(cases, variant), itertools.count(), matched=5)
    for number in drawn:
        found = case(number, seed)
        if found is None:
            continue
        monkeypatch.setattr(guarded_run, "GuardSizes", made[number % 3 == 0])
        for come in ways_of(found, most=3).values():
            given = come(found, variant)
            differential.check(found, given)
        drawn.seen["matched"] += bool(given)


@pytest.mark.parametrize("keys", ["", " PARTITION BY k", " PARTITION BY k CONSUME BY ANY"])
def test_progress_tears_no_time_apart(keys: str) -> None:
    """All events of a time are read in one step, also where steps are short for progress."""
    rows = [{"type": "ABBCABC"[place % 7], "ts": place // 40, "k": place // 3 % 2, "v": 0} for place in range(400)]
    query, events = cepheid.query(f"SELECT * WHERE A THEN (B ;[< 5] C) WITHIN 2{keys} TIME MODEL ACTIVE_OFFICE"), pa.Table.from_pylist(rows)
    told = query.run(events, progress=lambda *_: None)
    assert [match.variables for match in told] == [match.variables for match in query.run(events)] != []
