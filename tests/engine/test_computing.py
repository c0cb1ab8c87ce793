"""Conditions that compute with several events: at the edges of their types, in every kernel, by the definition."""

from __future__ import annotations

import random
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
PATTERNS = {
    "two": "A AS a ; B AS b",
    "two, as they come": "A AS a ALL B AS b",
    "one event": "(A AS a) AS b",
    "three": "A AS a ; B AS b ; C AS c",
    "sets": "(A AS a : ANY AS b){2}",
    "an iteration": "A AS a ; (B AS b FILTER {}){{1,2}} ; C",
    "before its own": "(A AS a FILTER {}){{2}}",
}


def number(rng: random.Random, names: list[str], *, real: bool) -> str:
    """A number over some variables, each of which comes once."""
    if len(names) == 1:
        own = f"{names[0]}.{'w' if real else 'v'}"
        return rng.choice([own, own, f"{own} + 1", f"2 * {own}", f"abs({own})"])
    cut = rng.choice([1, len(names) - 1])
    left, right = number(rng, names[:cut], real=real), number(rng, names[cut:], real=real)
    operator = rng.choice(["+", "-", "*", "/"] if real else ["+", "-", "*"])
    return rng.choice([f"({left} {operator} {right})"] * 3 + [f"abs({left} {operator} {right})", f"(-({left} {operator} {right}))"])


def condition(rng: random.Random, names: list[str]) -> str:
    """A comparison that computes with all of some variables, as a whole number or a real one."""
    real = rng.random() < 0.5
    names = rng.sample(names, len(names))
    operator = rng.choice(["=", "!=", "<", "<=", ">", ">="])
    left = number(rng, names, real=real)
    constant = (
        rng.choice(["0", "1", "-3", "9223372036854775807", "0.5", "1e300"]) if real else rng.choice(["0", "1", "-3", "9223372036854775807"])
    )
    text = f"{left} {operator} {constant}"
    if len(names) > 2 and rng.random() < 0.5:
        text = f"{number(rng, names[:2], real=real)} {operator} {number(rng, names[2:], real=real)}"
    if len(names) > 2:
        return text
    return rng.choice([text] * 4 + [f"({text} OR {names[0]}.v > 0)", f"({text} OR {names[0]}.v = {names[1]}.v)"])


def query(rng: random.Random, pattern: str) -> str:
    names = ["r", "p"] if pattern == "before its own" else ["a", "b", "c"] if pattern == "three" else ["a", "b"]
    asked = condition(rng, names)
    text = PATTERNS[pattern]
    if "{}" in text:
        text = text.format(asked.replace("r.", "a.").replace("p.v", "prev(a).v").replace("p.w", "prev(a).w"))
    else:
        text = f"({text}) FILTER {asked}"
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
        # Only what compares each event with several of a variable is a correlation.
        assert ("not compiled" in str(asked.explain())) == (pattern == "sets"), text


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
def test_what_is_asked_of_one_event_and_its_position_is_compiled(condition: str) -> None:
    rng = random.Random(f"{SEED} {condition}")
    asked = cepheid.query(f"SELECT * WHERE A AS a ; B AS b FILTER {condition}")
    assert "not compiled" not in str(asked.explain())
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
