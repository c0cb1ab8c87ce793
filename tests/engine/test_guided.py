"""HAVING with a sum, under CONSUME BY PARTITION: it decides early while nothing is negative, and lists what matches there are once something is."""

from __future__ import annotations

import math
import random
from collections import Counter
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from enough import Enough

import cepheid
from cepheid.engine.evaluations.choosing import consuming
from cepheid.engine.evaluations.counts import listed
from cepheid.engine.memory import container
from cepheid.errors import LimitError, SnapshotError
from cepheid.schema import schema_of
from cepheid.testing.differential import OTHERS, WAYS, Case, Row, answers, check

KINDS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int64": (pa.int64(), [0, 1, 2, 3, None]),
    "int8": (pa.int8(), [0, 1, 2, 3, None]),
    "large": (pa.int64(), [1, 2, 2**61, 2**62, None]),
    "double": (pa.float64(), [0.0, -0.0, 0.1, 0.2, 0.3, 1e16, float("nan"), None]),
    "infinite": (pa.float64(), [1.0, 2.0, 1.7e308, float("inf"), None]),
    "decimal": (pa.decimal128(10, 2), [Decimal("0.00"), Decimal("0.01"), Decimal("1.50"), Decimal("2.25"), None]),
    "large decimal": (pa.decimal128(38, 0), [Decimal(1), Decimal(2), Decimal(10) ** 37 * 6, None]),
    "uint64": (pa.uint64(), [0, 1, 2, 2**64 - 1, None]),
}
"""Types of what is added, and values that are not negative."""

PUSHED = [way for way in OTHERS if way != "listed"]

NEGATIVE: dict[str, list[Any]] = {
    "int64": [-1, -4],
    "int8": [-1, -100],
    "large": [-1, -(2**63)],
    "double": [-0.1, -1e-300, -1e16],
    "infinite": [-1.0, float("-inf")],
    "decimal": [Decimal("-0.01"), Decimal("-3.00")],
    "large decimal": [Decimal(-1), -(Decimal(10) ** 37) * 6],
    "uint64": [None],
}

PATTERNS = [
    *("A+ AS x", "(A OR B)+ AS x", "ANY+ AS x", "A:+ AS x", "A+ AS x ; B", "A ; B+ AS x ; C", "A AS y ; B+ AS x", "A+ AS x ; B+ AS y"),
    *("(A AS x OR A AS y)+", "(A ; B)+ AS x", "A{2,} AS x", "A AS y ; B{1,3} AS x ; C", "(A FILTER A.v >= 0)+ AS x", "A+ AS x ; B ; C+"),
]


def drawn(rng: random.Random) -> str:
    """A query whose condition may grow with a match."""
    least = rng.choice([0, 1, 2, 3, 5, 8])
    sums = [f"sum(x.v) > {least}", f"sum(x.v) >= {least}", f"{least} < sum(x.v)"]
    others = [f"count(x) >= {min(least, 3)}", f"max(x.v) > {least}", f"duration() >= {least}", f"sum(x.w) > {least}", f"sum(x.v) < {least}"]
    having = rng.choice([" AND ", " OR "]).join([rng.choice(sums), *rng.sample(others, rng.choice([0, 0, 1]))])
    if rng.random() < 0.1:
        having = rng.choice(others[:3])
    pattern, window = rng.choice(PATTERNS), rng.choice(["", "", "WITHIN 4", "WITHIN 5 EVENTS"])
    select = rng.choice(
        ["SELECT ANY *", "SELECT *", "SELECT *", "SELECT x", "SELECT COUNT(*)", "SELECT ANY sum(x.v) AS d", "SELECT sum(x.v) AS d"]
    )
    limit = "" if "COUNT" in select or "ANY" in select else rng.choice(["", "", "LIMIT 1", "LIMIT 3"])
    keys = rng.choice(["", "PARTITION BY k"])
    return f"{select} WHERE {pattern} {keys} {window} HAVING {having} CONSUME BY PARTITION {limit}"


def stream(rng: random.Random, kind: str, most: int) -> pa.Table:
    """Events of several keys, of which a negative value may come late, early, or not at all."""
    count = rng.choice([rng.randint(0, most), most])
    values = KINDS[kind][1]
    rows = [
        {"type": rng.choice("AAABBCX"), "ts": number // rng.choice([1, 1, 2]), "k": rng.choice([1, 1, 2, 3]), "v": rng.choice(values)}
        for number in range(count)
    ]
    rows.sort(key=lambda row: row["ts"])
    negative = rng.choice([0, count // 2, count - 2, count])
    for row in rows[max(negative, 0) :]:
        if rng.random() < 0.4:
            row["v"] = rng.choice(NEGATIVE[kind])
    schema = pa.schema([("type", pa.string()), ("ts", pa.int64()), ("k", pa.int64()), ("v", KINDS[kind][0]), ("w", pa.float64())])
    return pa.Table.from_pylist([{**row, "w": rng.choice([0.5, 1.0, 4.0, None])} for row in rows], schema=schema)


@pytest.mark.parametrize("first", [1, 3, 64])
def test_sums_by_the_definition(first, seed, cases, monkeypatch):
    """All at once, pushed in pieces and one by one, with snapshots in between; matches of any piece."""
    for name, value in (("FIRST_PIECE", first), ("FIRST_LISTED", min(first, 8)), ("ENOUGH", min(first, 3))):
        monkeypatch.setattr(consuming, name, value)
    seen = Enough(max(20, cases // 5), guided=10, falls=5)
    for number in seen:
        rng = random.Random(f"{seed}/{first}/{number}")
        kind = rng.choice(list(KINDS))
        query, rows = cepheid.query(drawn(rng)), stream(rng, kind, 9)
        try:
            case = Case(seed, number, query, rows, *answers(query, rows))
        except LimitError:
            continue
        if query.compiled(schema_of(rows.schema)).guide is not None:
            seen.seen["guided"] += 1
            recognizer = query.recognizer(rows.schema)
            recognizer.push(rows)
            seen.seen["falls"] += b"guide." not in recognizer.snapshot()
        for way in ("whole", *rng.sample(PUSHED, 2)):
            found = WAYS[way](case, None)
            if " AS d " in query.text:
                intervals(case, found)
            else:
                check(case, found)


def explained(text: str) -> str:
    shown: str = cepheid.query(text).explain("evaluation")["evaluation"]
    return " ".join(shown.split())


def test_what_is_explained():
    text = "SELECT ANY sum(t.q) AS d WHERE T+ AS t HAVING d > 5 CONSUME BY PARTITION"
    early = "it decides early while t.q is not negative; from then on all matches are listed and judged"
    assert "behind the last trigger of which it left a match, the largest matches (they meet it if any does) are listed" in explained(text)
    assert early in explained(text)
    shown = explained(text.replace("ANY", "ALL"))
    assert "the largest matches (they meet it if any does), then all matches of a trigger where one of them meets it, are listed" in shown
    assert early in shown
    assert "decides early while t.p and t.q are not negative" in explained(text.replace("HAVING", "HAVING sum(t.p) >= 1 OR"))
    for other in (
        text.replace("> 5", "< 5"),
        text.replace("sum(t.q)", "count(t)"),
        text.replace("ANY", "MAX"),
        text.replace("T+ AS t", "T AS t ; T"),
    ):
        assert "decides early" not in explained(other)


def test_a_state_without_a_guide_lists_all_matches():
    """As one that was stored before there were guides."""
    query = cepheid.query("SELECT * WHERE A+ AS x HAVING sum(x.v) > 5 CONSUME BY PARTITION")
    rows = pa.table({"type": ["A"] * 6, "ts": range(6), "v": [1, 2, 1, 3, 1, 9]})
    before = query.recognizer(rows.schema)
    before.push(rows.slice(0, 3))
    fingerprint = before._fingerprint()
    sections = container.unpack(before.snapshot(), fingerprint=fingerprint)
    kept = {name: part for name, part in sections.items() if not name.startswith("guide.") and name != "growing"}
    assert len(kept) < len(sections)
    after = query.recognizer(rows.schema, snapshot=container.pack(kept, fingerprint=fingerprint))
    assert sorted((match.start, match.end) for match in after.push(rows.slice(3))) == [(0, 3), (0, 3), (1, 3), (4, 5), (5, 5)]
    assert container.unpack(after.snapshot(), fingerprint=fingerprint).keys() == kept.keys()


@pytest.mark.parametrize("part", [math.nan, -0.1, 0.6, math.inf])
def test_what_a_sum_cannot_have_used_is_refused(part):
    query = cepheid.query("SELECT * WHERE A+ AS x HAVING sum(x.v) > 5 CONSUME BY PARTITION")
    rows = pa.table({"type": ["A"], "ts": [1], "v": [1]})
    run = query.recognizer(rows.schema)
    run.push(rows)
    fingerprint = run._fingerprint()
    sections = container.unpack(run.snapshot(), fingerprint=fingerprint)
    for changed in ({"growing": np.array([part]).tobytes()}, {"growing": b""}, {"growing": bytes(16)}, {"guide.counters": b""}):
        with pytest.raises(SnapshotError):
            query.recognizer(rows.schema, snapshot=container.pack({**sections, **changed}, fingerprint=fingerprint))


def test_listing_comes_back_in_time(monkeypatch):
    """A trigger of which nothing is left is not listed: 2^40 matches without a guide."""
    monkeypatch.setattr(listed, "MAX_LISTED", 1 << 12)
    rows = pa.table({"type": ["T"] * 43 + ["U"], "ts": range(44), "q": [1] * 40 + [-1, 1, 50, -9], "p": [None] * 40 + [1.0] * 4})
    for strategy in ("ANY", "ALL"):
        query = cepheid.query(f"SELECT {strategy} sum(t.q) AS d WHERE T+ AS t HAVING d > 40 CONSUME BY PARTITION")
        assert len(query.run(rows.slice(0, 40))) == 0
        run = query.recognizer(rows.schema)
        assert len(run.push(rows.slice(0, 40))) == 0
        with pytest.raises(LimitError, match="completes more than"):
            run.push(rows.slice(40))
    only = cepheid.query("SELECT ANY sum(u.p) AS d WHERE (T OR U)+ AS u HAVING d > 2 CONSUME BY PARTITION")
    assert [(match.start, match.end) for match in only.run(rows)] == [(0, 42)]


def intervals(case: Case, found: list[Row]) -> None:
    """The check of rows that show measures alone: how many there are of each trigger, and from where."""
    given = Counter((row.key, row.end) for row in found)
    assert given == {trigger: answer.choose for trigger, answer in case.expected.items() if answer.choose}, str(case)
    for row in found:
        assert row.start in {candidate.start for candidate in case.expected[row.key, row.end].candidates}, str(case)
