"""PARTITION BY and equalities together: each way to evaluate gives what the definition does, positions and NULL keys too."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.testing.differential import Row, pieces, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cepheid.query import Query

KEYS = {
    "g": (pa.int64(), [1, 1, 2, None]),
    "s": (pa.dictionary(pa.int32(), pa.string()), ["a", "a", "b", None]),
    "d": (pa.float64(), [0.0, -0.0, math.nan, math.inf, None]),
    "f": (pa.float32(), [0.1, -0.0, 0.0, math.nan]),
}
"""Attributes of the events that partition them: their types and values."""

EQUAL = (
    "A AS x ; B AS y FILTER x.{0} = y.{0}",
    "(A AS x)+ ; B AS y FILTER y.{0} = x.{0} AND x[v > 1]",
    "A AS x ; (B OR C) AS y ; C AS z FILTER x.{0} = y.{0} AND z.{0} = x.{0} AND z.{1} = y.{1} AND y.{1} = x.{1}",
    "(A OR B)+ AS x ; C AS y FILTER x.{0} = y.{0} WITHIN 6",
)
"""Patterns whose equalities partition what PARTITION BY leaves together, by one attribute or by two."""

SAME = (
    "A AS x : B AS y FILTER x.{0} = y.{0}",
    "(A AS x ; (B AS y FILTER y.{0} = x.{0})+) : C",
    "A AS x ; (B AS y)? ; C AS z FILTER x.{0} = y.{0} AND z.{0} = x.{0}",
    "A AS x ; B AS y FILTER NOT x.{0} = y.{0} OR x.v < 2",
    "A AS x ; B AS y FILTER x.{0} = y.{0} AND x.{1} = y.{1} WITHIN 3 EVENTS",
    "A AS x ; B AS y FILTER x.{0} = y.{0} NOT FOLLOWED BY C FOR 2",
    "STRICT(A AS x ; B AS y FILTER x.{0} = y.{0}) ; C",
)
"""Patterns whose equalities are of the attributes of PARTITION BY: that these are not NULL is all they say."""

SELECTS = ("*", "NXT *", "LAST *", "MAX *", "NXT y", "COUNT(*)")
NULL_KEYS = ("drop", "group")


@dataclass
class Draw:
    """A random case: its randomness, and how many matches there have been so far."""

    random: random.Random
    found: int = 0


def until_found(cases: int, purpose: str) -> Iterator[Draw]:
    """Random cases: a part of CEPHEID_CASES, and more until there was a match."""
    draw = Draw(random.Random(purpose))
    for number in itertools.count():
        if number >= cases // 40 and draw.found:
            return
        yield draw


def stream(rng: random.Random) -> pa.Table:
    length = rng.randint(8, 18)
    columns = {"type": rng.choices("AABBC", k=length), "ts": pa.array(sorted(rng.choices(range(12), k=length)), pa.int64())}
    columns["v"] = rng.choices([1, 2, 3], k=length)
    return pa.table(columns | {name: pa.array(rng.choices(values, k=length), kind) for name, (kind, values) in KEYS.items()})


def ways(query: Query, events: pa.Table, null_keys: str, rng: random.Random) -> Iterator[tuple[str, list[Row], int]]:
    """The matches, and how many events have no key, of each way of evaluation."""
    for name, given in (("table", events), ("reader", events.to_reader(max_chunksize=4))):
        matches = query.run(given, null_keys=null_keys)
        yield name, rows_of(matches), matches.null_keys
    for name in ("pushed", "restored", "late"):
        order = "n" if name == "late" else ()
        numbered = events.append_column("n", pa.array(np.arange(len(events))))
        if name == "late":
            times = events["ts"].to_pylist()
            numbered = numbered.take(pa.array(sorted(range(len(events)), key=lambda row: times[row] + rng.randint(0, 3)), pa.int64()))
        options = {"lateness": 3 if name == "late" else None, "order": order, "null_keys": null_keys}
        recognizer = query.recognizer(numbered.schema, **options)
        found = []
        for piece in pieces(rng, numbered):
            found += rows_of(recognizer.push(piece))
            if name == "restored":
                recognizer = query.recognizer(numbered.schema, **options, snapshot=recognizer.snapshot())
        found += rows_of(recognizer.flush())
        if recognizer.latest is not None:
            found += rows_of(recognizer.advance(recognizer.latest + 1))
        yield name, found, recognizer.null_keys


def check(pattern: str, written: tuple[str, ...], names: tuple[str, ...], rng: random.Random) -> int:
    """How many matches there were; derived keys are those of `names` that are not written."""
    window = "" if "WITHIN" in pattern or "FOLLOWED" in pattern else rng.choice(["", " WITHIN 7"])
    text = f"SELECT {rng.choice(SELECTS)} WHERE {pattern.format(*names)}{window} PARTITION BY {', '.join(written)}"
    query, events = cepheid.query(text), stream(rng)
    derived = tuple(name for name in names if name not in written)
    assert query.compiled(query.schema(events)).derived == derived, text
    total = 0
    for null_keys in NULL_KEYS:
        expected = query.run(events, engine="reference", null_keys=null_keys)
        given = ways(query, events, null_keys, rng)
        for way, found, dropped in given:
            context = f"{way}, {null_keys}\n{text}\n{events.to_pylist()}"
            assert sorted(map(repr, found)) == sorted(map(repr, rows_of(expected))), context
            assert dropped == expected.null_keys, context
        total += len(expected)
    return total


@pytest.mark.parametrize("pattern", EQUAL)
@pytest.mark.parametrize("written", [("g",), ("f",)])
def test_equalities_within_partitions(pattern: str, written: tuple[str, ...], cases: int, seed: int) -> None:
    others = [name for name in KEYS if name not in written]
    for draw in until_found(cases, f"{seed}/{pattern}/{written}"):
        draw.random.shuffle(others)
        draw.found += check(pattern, written, tuple(others[: 2 if "{1}" in pattern else 1]), draw.random)


@pytest.mark.parametrize("pattern", SAME)
def test_equalities_of_the_partition_itself(pattern: str, cases: int, seed: int) -> None:
    for draw in until_found(cases, f"{seed}/{pattern}"):
        written = tuple(draw.random.sample(sorted(KEYS), 2))
        draw.found += check(pattern, written, written, draw.random)


@pytest.mark.parametrize("name", [name for name, (kind, _) in KEYS.items() if pa.types.is_floating(kind)])
def test_doubles_are_keys_of_the_whole_stream(name: str, cases: int, seed: int) -> None:
    query = cepheid.query(f"SELECT * WHERE (A AS x)+ ; B AS y FILTER x.{name} = y.{name}")
    for draw in until_found(cases, f"{seed}/{name}"):
        events = stream(draw.random)
        expected = rows_of(query.run(events, engine="reference"))
        for way, rows, dropped in ways(query, events, "drop", draw.random):
            assert sorted(rows) == sorted(expected), f"{way}\n{events.to_pylist()}"
            assert dropped == 0
        draw.found += len(expected)
