"""Conditions that compute with several events: at the edges of their types, in every kernel, by the definition."""

from __future__ import annotations

import random
import re
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from enough import Enough, share
from pattern_cases import CASES, SEED

import cepheid
from cepheid.kernel import available

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cepheid.engine.output.matches import Match

LEAST, GREATEST = -(2**63), 2**63 - 1
WHOLE = (LEAST, LEAST + 1, -(2**62), -(2**53) - 1, -2, -1, 0, 1, 2, 3, 2**31, 2**53 + 1, 2**62, GREATEST - 1, GREATEST, None)
REAL = (float("-inf"), -1.7e308, -2.5, -1.0, -5e-324, -0.0, 0.0, 5e-324, 1.0, 1.1, 2.5, 1e16, 1.7e308, float("inf"), float("nan"), None)
MONEY = (*map(Decimal, ("-99.99", "-1.00", "-0.01", "0.00", "0.01", "0.50", "2.00", "99.99")), None)
PRICES = (*map(Decimal, ("-9999999999999999.99", "-0.01", "0.00", "0.03", "1.00", "3.00", "9999999999999999.99")), None)
AMOUNTS = (
    *map(Decimal, ("-999999999999999999999999999999999999.99", "-92233720368547758.09", "-92233720368547758.08", "-1.00", "0.00")),
    *map(Decimal, ("0.07", "3.00", "92233720368547758.07", "184467440737095516.16", "999999999999999999999999999999999999.99")),
    None,
)
RATES = (*map(Decimal, ("-12345678901234567890.123456789012345678", "-1e-18", "0", "1e-18", "0.5", "3", "7", "99999999999999999999")), None)
PATTERNS = {
    "two": "A AS a ; B AS b",
    "two, as they come": "A AS a ALL B AS b",
    "one event": "(A AS a) AS b",
    "three": "A AS a ; B AS b ; C AS c",
    "sets": "(A AS a : ANY AS b){2}",
    "several": "A+ AS a ; ANY+ AS b",
    "several of three": "A AS a ; A+ AS b ; ANY+ AS c",
    "around": "A AS a ; (ANY FILTER {}) ; ANY+ AS b",
    "levels": "(A AS a ; (ANY AS b) FILTER {}){{1,2}} ; ANY+ AS c",
    "before": "(A AS a ; ANY AS b FILTER {}){{2}}",
    "an iteration": "A AS a ; (B AS b FILTER {}){{1,2}} ; C",
    "before its own": "(A AS a FILTER {}){{2}}",
}
OF_THREE = {"three", "several of three", "levels"}

KINDS = {
    "v": "whole",
    "w": "real",
    "d": "money",
    "price": "of 18 digits",
    "amount": "of 38 digits",
    "rate": "with 18 of 38 behind the point",
}
CONSTANTS = {
    "v": ("0", "1", "-3", "9223372036854775807"),
    "w": ("0", "1", "-3", "9223372036854775807", "0.5", "1e300"),
    "d": ("0", "1", "0.01", "-99.99", "200"),
    "price": ("0", "1", "0.01", "-0.333333", "19999999999999999.98"),
    "amount": ("0", "1", "0.01", "-0.333333", "1000000000000000000000000000000000000"),
    "rate": ("0", "1", "0.142857142857142857", "-3"),
}
OPERATORS = {"v": "+-*%", "w": "+-*/%", "d": "+-*/%", "price": "+-*/%", "amount": "+-*/%", "rate": "+-/%"}
COMPARED = ("=", "!=", "<", "<=", ">", ">=")


def number(rng: random.Random, names: list[str], kind: str) -> str:
    """A number over some variables, each of which comes once; kind: of KINDS."""
    if len(names) == 1:
        own = f"{names[0]}.{kind}"
        return rng.choice([own, own, f"{own} + 1", f"2 * {own}", f"abs({own})"])
    cut = rng.choice([1, len(names) - 1])
    left, right = number(rng, names[:cut], kind), number(rng, names[cut:], kind)
    both = f"({left} {rng.choice(OPERATORS[kind])} {right})"
    if kind not in ("v", "w") and rng.random() < 0.5:
        both = f"({names[0]}.{rng.choice([kind, 'v'])} {rng.choice('+-')} {right})"
    rounded = [f"floor({both})", f"ceil({both})"]
    either = [f"coalesce({left}, {right})", f"CASE WHEN {left} < {right} THEN {right} ELSE {left} END"]
    return rng.choice([*[both] * 4, f"abs({both})", f"(-{both})", *rounded, *either])


def compared(rng: random.Random, names: list[str]) -> str:
    """A comparison that computes with all of some variables, as a whole number, a real one or a decimal."""
    kind = rng.choice([*KINDS])
    operator, left = rng.choice(COMPARED), number(rng, names, kind)
    if len(names) > 2 and rng.random() < 0.5:
        return f"{number(rng, names[:2], kind)} {operator} {number(rng, names[2:], kind)}"
    constants = CONSTANTS[kind]
    return rng.choice(
        [
            *[f"{left} {operator} {rng.choice(constants)}"] * 6,
            f"{left} IS NULL",
            f"{left} IN ({rng.choice(constants)}, NULL, {rng.choice(constants)})",
            f"{names[0]}.s {rng.choice(COMPARED[:2])} coalesce({names[-1]}.s, '{rng.choice('xyz')}')",
            f"CASE WHEN {left} {operator} {rng.choice(constants)} THEN {names[0]}.s ELSE {names[-1]}.s END = '{rng.choice('xyz')}'",
        ]
    )


def condition(rng: random.Random, names: list[str]) -> str:
    """A condition that speaks of all of some variables."""
    names = rng.sample(names, len(names))
    text = compared(rng, names)
    first, last = names[0], names[-1]
    return rng.choice(
        [
            *[text] * 4,
            f"({text} OR {first}.v > 0)",
            f"({text} OR {first}.v = {last}.v)",
            f"({text} AND {last}.w >= {first}.w OR {compared(rng, names)})",
            f"NOT ({text})",
            f"NOT ({text} AND {first}.d < {last}.d)",
            f"({text} OR {first}.amount < {last}.amount)",
            f"({text}) = ({first}.v < {last}.v)",
            f"CASE WHEN {first}.b THEN {text} ELSE {last}.b END",
        ]
    )


def query(rng: random.Random, pattern: str) -> str:
    names = {"before its own": ["r", "p"], "before": ["p", "q"]}.get(pattern, ["a", "b", "c"] if pattern in OF_THREE else ["a", "b"])
    asked = condition(rng, names)
    own = re.sub(r"\bq\.", "prev(b).", re.sub(r"\bp\.", "prev(a).", re.sub(r"\br\.", "a.", asked)))
    text = PATTERNS[pattern].format(own) if "{}" in PATTERNS[pattern] else f"({PATTERNS[pattern]}) FILTER {asked}"
    strategy = rng.choice(["", "", "", "NXT ", "LAST "])
    return f"SELECT {strategy}* WHERE {text}{rng.choice(['', ' WITHIN 5 EVENTS'])}"


def table(rng: random.Random, length: int) -> pa.Table:
    few = rng.random() < 0.5
    whole, real = (rng.sample(WHOLE, 4), rng.sample(REAL, 4)) if few else (WHOLE, REAL)
    return pa.table(
        {
            "type": rng.choices("AABC", k=length),
            "ts": list(range(length)),
            "v": pa.array(rng.choices(whole, k=length), pa.int64()),
            "w": pa.array(rng.choices(real, k=length), pa.float64()),
            "d": pa.array(rng.choices(MONEY, k=length), pa.decimal128(4, 2)),
            "price": pa.array(rng.choices(PRICES, k=length), pa.decimal128(18, 2)),
            "amount": pa.array(rng.choices(AMOUNTS, k=length), pa.decimal128(38, 2)),
            "rate": pa.array(rng.choices(RATES, k=length), pa.decimal128(38, 18)),
            "s": pa.array(rng.choices(["x", "y", None], k=length), pa.string()),
            "b": pa.array(rng.choices([True, False, None], k=length), pa.bool_()),
        }
    )


def drawn(pattern: str) -> Iterator[tuple[random.Random, str, pa.Table]]:
    rng = random.Random(f"{SEED} computing {pattern}")
    while True:
        yield rng, query(rng, pattern), table(rng, rng.randint(4, 9))


@pytest.mark.parametrize("pattern", PATTERNS)
def test_they_have_the_matches_of_the_definition(pattern: str) -> None:
    """NULL, overflow, infinity and a division by zero: in all kernels, and pushed with snapshots."""
    cases = Enough(CASES // 3, drawn(pattern), matched=5)
    for rng, text, events in cases:
        asked = cepheid.query(text)
        wanted = answer(asked.run(events, engine="reference"))
        variants = [each for each in available() if each != "python" or rng.random() < share(CASES, "python") / CASES]
        for engine in variants:
            assert answer(asked.run(events, engine=engine)) == wanted, (text, engine, events.to_pylist())
        recognizer, found = asked.recognizer(events.schema), []
        for start in range(0, len(events), 3):
            found += recognizer.push(events.slice(start, 3))
            recognizer = asked.recognizer(events.schema, snapshot=recognizer.snapshot())
        assert answer([*found, *recognizer.flush()]) == wanted, (text, events.to_pylist())
        cases.seen["matched"] += bool(wanted)


def answer(matches: Iterable[Match]) -> list[str]:
    return sorted(str(match.variables) for match in matches)


@pytest.mark.parametrize(
    "condition",
    [
        "b.$index < 5",
        "NOT b.$index % 3 = 1",
        "b.v > a.v AND a.$index + 1 > b.v",
        "a.$index % 2 = 0 OR b.v < a.v",
        "b.$index = b.v",
    ],
)
def test_what_is_asked_of_one_event_and_its_position(condition: str) -> None:
    rng = random.Random(f"{SEED} {condition}")
    asked = cepheid.query(f"SELECT * WHERE A AS a ; B AS b FILTER {condition}")
    for _ in range(5):
        columns = {"type": rng.choices("AB", k=12), "ts": list(range(12)), "v": rng.choices([None, 1, 2, 3, 7, 9, 11], k=12)}
        events = pa.table(columns, schema=pa.schema([("type", pa.string()), ("ts", pa.int64()), ("v", pa.int64())]))
        wanted = answer(asked.run(events, engine="reference"))
        assert all(answer(asked.run(events, engine=engine)) == wanted for engine in available())


@pytest.mark.parametrize(
    "pattern", ["A AS a ; A AS b FILTER {}", "C AS x : (A AS a OR (A AS y)) ; (A AS b : ANY) FILTER {} AND C.v < 9 + x.v"]
)
@pytest.mark.parametrize("difference", ["a.$time - b.$time", "b.$time - a.$time"])
def test_differences_of_times_that_are_far_apart(pattern: str, difference: str) -> None:
    """Of a difference that overflows no comparison holds, so NOT of it does; the greatest differences do not overflow."""
    times = [-9 * 10**18, -9 * 10**18, -(2**62), 0, 2**62 - 1, 9 * 10**18]
    events = pa.table({"type": list("CAAAAA"), "ts": pa.array(times), "v": [1] * 6})
    for operator in ("=", "!=", "<", "<=", ">", ">="):
        for constant in (LEAST, -GREATEST, -5, 2**62, GREATEST):
            for not_ in ("", "NOT "):
                query = cepheid.query(f"SELECT * WHERE {pattern.format(f'{not_}{difference} {operator} {constant}')}")
                assert sorted(map(str, query.run(events))) == sorted(map(str, query.run(events, engine="reference"))), query.text
