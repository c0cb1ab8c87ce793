"""Order of texts and of long decimals between events, in every kernel, while ranks move: as the definition says, which knows no ranks."""

from __future__ import annotations

import contextlib
import random
from decimal import Decimal
from unittest import mock

import pyarrow as pa
import pytest
from enough import Enough, share

import cepheid
from cepheid.engine.evaluations.guards import guarded_facts, guarded_ranks, guarded_run
from cepheid.engine.letters import encoded
from cepheid.errors import LimitError
from cepheid.kernel import available
from cepheid.testing.differential import Case, by_definition, check, pushed, restored, rows_of, single, whole

COMPARED = (
    *(
        "{y}.s > {x}.s",
        "{y}.s <= {x}.s",
        "{y}.s BETWEEN {x}.s AND {x}.u",
        "{y}.s > {x}.s AND {y}.u = {x}.u",
        "{y}.s != {x}.s AND {y}.u >= {x}.s",
    ),
    *("NOT {y}.s < {x}.s", "{y}.s = {x}.s AND {y}.d != {x}.d", "lower({y}.s) > {x}.u", "{y}.s > {x}.s AND {y}.d > {x}.d"),
    *(
        "{y}.d > {x}.d",
        "{y}.d <= {x}.d",
        "{y}.d = {x}.d",
        "{y}.d != {x}.d",
        "{y}.d BETWEEN {x}.d - 3 AND {x}.d + 3.5",
        "NOT {y}.d >= {x}.e",
    ),
)
PATTERNS = (
    "A AS a ; B AS b FILTER {ab}",
    "A AS a ; B AS b ; C AS c FILTER {ab} AND {bc}",
    "A AS a ; B AS b ; C AS c FILTER {ab} AND {ac}",
    "A AS a ; B AS b ; C AS c FILTER {abc}",
    "A AS a ; B AS b ; C AS c FILTER {abc} AND {ab}",
    "A+ AS a ; B AS b FILTER {ab}",
    "A AS a ; (B AS b)+ FILTER {ab}",
    "A+ AS a ; B AS b FILTER ({ab} OR a.u < b.s)",
    "A+ AS a ; B AS b ; C AS c FILTER {abc}",
    "((A AS a ; B AS b) FILTER {abc})+ ; C AS c",
    "A ; (B AS b FILTER {prev})+",
    "A AS a ; LAST(B AS b ; C AS c FILTER {bc})",
)
COMPUTED = (
    "c.s BETWEEN a.s AND b.s",
    "(a.s < b.s OR c.s >= b.u)",
    "coalesce(a.s, b.s, 'a') <= c.s",
    "(c.s = a.s OR c.u != b.u)",
    "CASE WHEN a.s < b.s THEN c.u ELSE b.u END > a.s",
    "c.s IN (a.s, b.s, 'ab')",
)
CLAUSES = ("WITHIN 12", "WITHIN 20 EVENTS", "PARTITION BY k WITHIN 40", "PARTITION BY k")


def events(rng: random.Random) -> pa.Table:
    rows = 40
    letters = rng.choice(["ab", "aé\U0001f600\uffff", "abcdefgh"])
    known = rng.choice([1, 4, 9])

    def text() -> str | None:
        return None if rng.random() < 0.1 else "".join(rng.choice(letters) for _ in range(rng.randint(0, known)))

    def decimal() -> Decimal | None:
        near = rng.choice([0, 0, 2**62, -(2**62), 2**63, -(2**63), 2**64, 10**36, -(10**36)])
        return None if rng.random() < 0.1 else Decimal(near + rng.randint(-2, 2)).scaleb(-1)

    columns = {name: pa.array([make() for _ in range(rows)], kind) for name, make, kind in (
        ("s", text, pa.string()), ("u", text, pa.large_string()), ("d", decimal, pa.decimal128(38, 1)), ("e", decimal, pa.decimal128(38, 1)),
    )}  # fmt: skip
    kinds = rng.choices("ABC", k=rows)
    return pa.table({"type": kinds, "ts": sorted(rng.randint(0, 60) for _ in range(rows)), "k": rng.choices([1, 2], k=rows), **columns})


def query(rng: random.Random) -> cepheid.Query:
    def compared(x: str, y: str) -> str:
        return rng.choice(COMPARED).format(x=x, y=y)

    pattern = rng.choice(PATTERNS)
    filled = pattern.format(
        ab=compared("a", "b"), ac=compared("a", "c"), bc=compared("b", "c"), abc=rng.choice(COMPUTED), prev=compared("prev(b)", "b")
    )
    strategy = rng.choice(["*", "*", "NXT *", "LAST *", "COUNT(*)"])
    return cepheid.query(f"SELECT {strategy} WHERE {filled} {rng.choice(CLAUSES)}")


@pytest.mark.parametrize("engine", available())
def test_words_in_the_order_of_what_has_none(engine: str, cases: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = Enough(share(cases // 4, engine), range(1 << 30), moved=5, matched=5, defined=5)
    move = guarded_run.GuardedRun._move

    def moving(run: guarded_run.GuardedRun, words: guarded_ranks.Words) -> None:
        drawn.seen["moved"] += 1
        move(run, words)

    monkeypatch.setattr(guarded_run.GuardedRun, "_move", moving)
    for number in drawn:
        rng = random.Random(f"{seed} {number}")
        case = Case(seed, number, query(rng), events(rng), {})
        with mock.patch.object(encoded, "RANK_BITS", rng.choice([9, 11, 62])):
            found = whole(case, engine)
            for come in (pushed, restored, single):
                assert come(case, engine) == found, f"{come.__name__}\n{case}"
        with contextlib.suppress(LimitError):  # the definition lists a few thousand matches
            check(case, found, by_definition(case.query, case.events))
            drawn.seen["defined"] += 1
        drawn.seen["matched"] += bool(found)


def test_no_room_between_two_texts_moves_what_is_kept() -> None:
    """Texts that halve what is between two others, with kept ones, bounds and trees on both sides."""
    texts = ["m", *("a" * length + "b" for length in range(80)), *("z" * length + "y" for length in range(80))]
    table = pa.table({"type": ["A", "B"] * 80, "ts": range(160), "s": texts[:160]})
    asked = cepheid.query("SELECT * WHERE A AS a ; B AS b FILTER b.s > a.s WITHIN 50")
    recognizer = asked.recognizer(table.schema)
    found = [row for at in range(160) for row in rows_of(recognizer.push(table.slice(at, 1)))]
    assert found == rows_of(asked.run(table))
    assert found


@pytest.mark.parametrize(
    "condition",
    [
        "NOT (b.s > a.u OR a.$index - b.$index > 0)",
        "(b.d >= a.e OR b.$index - a.$index = 1)",
        "CASE WHEN b.d = a.d THEN b.s ELSE a.u END <= coalesce(a.u, 'b') AND NOT b.$index - a.$index = 2",
        "NOT (a.s LIKE '%b' AND lower(a.s) < b.u OR a.d + b.e > b.$index)",
        "NOT (b.s <= a.u AND b.$index < 20) AND (b.d > a.e OR a.$index % 3 != b.k)",
    ],
)
def test_an_event_is_asked_about_itself(condition: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where letters have no room for what is found, and numbers stand for both."""
    for number, bits in enumerate([64, 64, 1, 1]):
        case = Case(
            seed,
            number,
            cepheid.query(f"SELECT * WHERE A ; ANY AS b AS a FILTER {condition}"),
            events(random.Random(f"{seed} {number}")),
            {},
        )
        wanted = rows_of(case.query.run(case.events, engine="reference"))
        monkeypatch.setattr(guarded_facts, "LETTER_BITS", bits)
        monkeypatch.setattr(guarded_facts, "MOST_NUMBERED", 1)
        for engine in available():
            for come in (whole, pushed, restored):
                assert sorted(map(str, come(case, engine))) == sorted(map(str, wanted)), f"{come.__name__}\n{case}"
