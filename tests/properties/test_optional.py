"""Sequences with many optional items, and counts inside counts: the same matches by every evaluation, and small automata."""

from __future__ import annotations

import dataclasses
import random
from functools import cache

import pyarrow as pa
import pytest
from slowness import within

import cepheid
from cepheid.errors import LimitError
from cepheid.testing import events
from cepheid.testing.differential import Case, check, draw, rows_of, ways_of, whole
from cepheid.testing.generators import ENGINE, QueryFragment

VARIANTS = ("compiled", "python", "checked")

OPTIONS = dataclasses.replace(
    ENGINE,
    operators=(
        ("optional", 12),
        ("atom", 2),
        ("named", 3),
        ("counted", 3),
        ("iterate", 2),
        ("either", 1),
        ("filter", 2),
        ("strict", 1),
        ("project", 1),
    ),
    partition=0.1,
    limit=0.05,
)

GROUPS: dict[str, QueryFragment] = {
    "all": dataclasses.replace(OPTIONS, strategies=("",)),
    "strategies": dataclasses.replace(OPTIONS, strategies=("NXT", "LAST", "MAX", "STRICT")),
    "waiting": dataclasses.replace(OPTIONS, strategies=("NXT", "LAST", "MAX"), adjacent=False, consume=0.2),
    "count": dataclasses.replace(OPTIONS, strategies=("",), count=1.0),
}


@cache
def drawn(group: str, cases: int, seed: int) -> list[Case]:
    found = []
    for case in draw(GROUPS[group], count=max(cases // 4, 20), seed=seed, longest=9):
        try:
            case.query.compiled(case.query.schema(case.events.schema))
        except LimitError:  # of MAX, whose automaton for a pattern that it cannot group is quadratic
            continue
        found.append(case)
    assert len(found) > max(cases // 4, 20) * 0.7
    return found


@pytest.mark.parametrize("group", GROUPS)
def test_the_definition_on_every_variant(group: str, cases: int, seed: int) -> None:
    for case in drawn(group, cases, seed):
        found = whole(case, VARIANTS[0])
        check(case, found)
        for variant in VARIANTS[1:]:
            assert whole(case, variant) == found, f"{variant}\n{case}"


@pytest.mark.parametrize("group", GROUPS)
def test_however_the_events_come(group: str, cases: int, seed: int) -> None:
    for case in drawn(group, cases, seed)[::2]:
        expected = whole(case, None)
        for number, (way, of) in enumerate(ways_of(case).items(), start=case.number):
            assert of(case, VARIANTS[number % len(VARIANTS)]) == expected, f"{way}\n{case}"


def test_the_cases_have_runs_of_optional_items(cases: int, seed: int) -> None:
    texts = [case.query.text for group in GROUPS for case in drawn(group, cases, seed)]
    assert sum(text.count("?") >= 3 for text in texts) > len(texts) / 6


# ------------------------------------------------------------------------------------------------------------- long sequences

TYPES = [f"A{number}" for number in range(12)]
SCHEMA = pa.schema([("type", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])
HEADS = ("*", "NXT *", "LAST *", "MAX *", "STRICT *", "COUNT(*)", "count(x) AS n, sum(x.v) AS s, first(x.v) AS f", "ANY *")


def long_sequence(rng: random.Random) -> str:
    """Twelve optional items and one that must be there, first, last or in the middle; all are in x."""
    items = [f"{name}?" for name in TYPES]
    items.insert(rng.choice((0, 6, 12)), "B")
    text = items[0] + "".join(f" {rng.choice(';;:')} {item}" for item in items[1:])
    return f"({text}) AS x"


def long_stream(rng: random.Random) -> pa.Table:
    """Events in nearly the order of the items."""
    places = sorted(rng.sample(range(13), rng.randint(3, 8)))
    if rng.random() < 0.5:
        places.insert(rng.randrange(len(places)), rng.randrange(13))
    names = [*TYPES, "B"] if rng.random() < 0.5 else ["B", *TYPES]
    kinds = [names[place] for place in places]
    kinds.insert(rng.randrange(len(kinds)), "B")
    return pa.table({"type": kinds, "ts": range(len(kinds)), "v": range(len(kinds))}, schema=SCHEMA)


@pytest.mark.parametrize("head", HEADS)
def test_twelve_optional_items(head: str, cases: int, seed: int) -> None:
    rng = random.Random(f"{head} {seed}")
    found = 0
    for _ in range(8 if head == "MAX *" else max(cases // 20, 8)):
        query = cepheid.query(f"SELECT {head} WHERE {long_sequence(rng)} WITHIN 20")
        for _ in range(4):
            given = long_stream(rng)
            expected = query.run(given, engine="reference")
            found += len(expected)
            for engine in VARIANTS if head != "ANY *" else ():
                assert shown(query.run(given, engine=engine)) == shown(expected), f"{query.text}\n{given.to_pylist()}"
            if head == "ANY *":
                assert len(query.run(given)) == len(expected)
    assert found > 0


def shown(matches: cepheid.Matches) -> list[str]:
    return sorted(f"{match.start} {match.end} {sorted(match.variables.items())} {match.measures}" for match in matches)


def nested(depth: int, counts: str = "{1,2}") -> str:
    text = f"A{counts}"
    for _ in range(depth - 1):
        text = f"({text}){counts}"
    return text


BIG = {
    "12 optional items": " ; ".join(f"{name}?" for name in TYPES) + " ; B",
    "12 optional items, :": " : ".join(f"{name}?" for name in TYPES) + " : B",
    "60 optional items": " ; ".join(f"A{number}?" for number in range(60)) + " ; B",
    "60 optional items of one type": "A? ; " * 60 + "B",
    "60 optional items, in the middle": "B ; " + " ; ".join(f"A{number}?" for number in range(60)) + " ; B",
    "counts in counts": nested(8),
    "counts in counts, with something between": "(((((((A{1,2} ; B){1,2} ; C){1,2} ; D){1,2} ; E){1,2} ; F){1,2} ; G){1,2} ; H){1,2}",
    "groups in groups": "((((((((A? ; B)? ; C)? ; D)? ; E)? ; F)? ; G)? ; H)? ; I)",
}

SECONDS = 3.0
"""What compiling may take on a machine that does other things, too; alone it is a tenth."""


@pytest.mark.parametrize("head", ["*", "NXT *", "LAST *", "COUNT(*)"])
@pytest.mark.parametrize("name", BIG)
def test_what_was_refused_compiles_fast(name: str, head: str) -> None:
    with within(SECONDS):
        query = cepheid.query(f"SELECT {head} WHERE {BIG[name]} WITHIN 20")
        compiled = query.compiled(query.schema(SCHEMA))
    assert compiled.program.automaton.states < 1_000
    assert len(str(query.explain())) < 15_000
    given = events("A1 A2 B3 C4 A5 A6 B7")
    assert len(query.run(given)) == len(query.run(given, engine="reference"))


def test_the_plan_of_optional_items_and_counts_stays_small() -> None:
    query = cepheid.query("SELECT * WHERE A{2,5} AS x ; B? : C? ; D FILTER x.v > 1 WITHIN 20")
    rewritten = query.compiled(query.schema(SCHEMA)).rewritten.pattern
    assert cepheid.logical.describe(rewritten) == "(A[v > 1]{2,5} AS x ; B? : C? ; D) WITHIN [<= 20]"


@pytest.mark.parametrize("counts", ["{1,2}", "{2,3}", ":{1,2}", "{2,}"])
def test_counts_in_counts(counts: str) -> None:
    given = events("A1 A2 A3 B4 A5 A6")
    for depth in range(1, 9 if counts.endswith("{1,2}") else 4):
        query = cepheid.query(f"SELECT * WHERE {nested(depth, counts)} AS x")
        expected = shown(query.run(given, engine="reference"))
        for engine in VARIANTS:
            assert shown(query.run(given, engine=engine)) == expected


def test_states_are_linear_in_the_optional_items() -> None:
    for count in (1, 10, 50):
        query = cepheid.query("SELECT * WHERE B ; " + " ; ".join(f"A{number}?" for number in range(count)) + " ; C")
        automaton = query.compiled(query.schema(SCHEMA)).program.automaton
        assert automaton.states == count + 3  # a beginning, a place to wait behind B and behind each A, and the end
        assert len(automaton.transitions) <= 2 * count + 5 + count * (count + 1) // 2


def test_all_optional_is_still_an_error() -> None:
    for pattern in (" ; ".join(f"{name}?" for name in TYPES), "(A? ; B?) : (C? ; D?)"):
        with pytest.raises(cepheid.BindError, match="every item of the sequence is optional"):
            cepheid.query(f"SELECT * WHERE {pattern}").run(events("A1"))


def test_too_many_copies_say_the_limit_and_the_place() -> None:
    for pattern in ("(A{100} ; B){101}", "A ; B{10001}", "A{1,9000000000}", "((A{1,200} ; B){1,200} ; C){1,200}"):
        query = cepheid.query(f"SELECT * WHERE {pattern} WITHIN 20")
        with within(SECONDS), pytest.raises(LimitError, match="automaton states, and the limit is 20000 \\(MAX_STATES\\)") as error:
            query.compiled(query.schema(SCHEMA))
        assert "^" in str(error.value)
        assert "lower the counts" in str(error.value)


def test_a_condition_in_an_optional_item_on_another_event() -> None:
    """The choice of the items that ask for something is written out, not that of the others."""
    optional = " ; ".join(f"{name}?" for name in TYPES)
    query = cepheid.query(f"SELECT * WHERE B AS x ; {optional} : (C FILTER x.v > 1)? : {optional} ; D WITHIN 20")
    for stream in ("B1(v=1) A2(v=1) C3(v=1) D4(v=1)", "B1(v=2) A2(v=1) C3(v=1) D4(v=1)", "B1(v=2) C2(v=1) A03(v=1) D4(v=1)"):
        given = events(stream)
        assert shown(query.run(given)) == shown(query.run(given, engine="reference"))
    assert rows_of(query.run(events("B1(v=2) C2(v=1) D3(v=1)")))
