"""The main test: random queries on random streams mean the same on every path of evaluation.

reference = uncompiled = compiled = compiled with bounds checks = cut into random batches = snapshot and restore at random points. (Spark:
tests/spark/test_batch_random.py; strategies: test_strategies.py.) CEPHEID_CASES cases per path, from CEPHEID_SEED; every failure prints it.
"""

from __future__ import annotations

import random
from functools import cache

import pyarrow as pa
import pytest

from cepheid.engine import payload
from cepheid.testing.differential import WAYS, Case, check, draw, pieces, rows_of
from cepheid.testing.generators import ABSENT, ENGINE, WAITING

FRAGMENTS = {"engine": ENGINE, "NXT, LAST, MAX": WAITING, "absence": ABSENT}
VARIANTS = ("compiled", "python", "checked")


@cache
def drawn(count: int, seed: int) -> list[Case]:
    return draw(ENGINE, count=count, seed=seed)


@pytest.mark.parametrize("engine", ["python", "compiled", "checked", "reference"])
def test_engines(engine: str, cases: int, seed: int) -> None:
    matched = 0
    for case in drawn(cases, seed):
        found = rows_of(case.query.run(case.events, engine=engine))
        check(case, found)
        matched += bool(found)
    # More than half of them on average; the number of matches itself varies too much to be held to anything.
    assert matched >= cases // 4


@pytest.mark.parametrize("way", [way for way in WAYS if way != "whole"])
def test_however_the_events_come(way: str, cases: int, seed: int) -> None:
    """The same matches in the same order, also those that ANY and LIMIT choose; the cases take the variants in turn."""
    for case in drawn(cases, seed):
        engine = VARIANTS[case.number % len(VARIANTS)]
        assert WAYS[way](case, engine) == rows_of(case.query.run(case.events)), f"{engine}\n{case}"


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_the_events_shown_are_those_at_the_positions(fragment: str, cases: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """`m[x]` and `to_arrow(events=True)` show the rows of the input, whether it came whole or in pieces; what is dead is forgotten at once."""
    monkeypatch.setattr(payload, "LEAST_COMPACTION", 1)
    for case in draw(FRAGMENTS[fragment], count=cases // 4, seed=seed):
        whole = case.query.run(case.events)
        recognizer, cut = case.query.recognizer(case.events.schema), []
        for number, piece in enumerate(pieces(random.Random(case.number), case.events)):
            cut += recognizer.push(piece)
            if number % 3 == 1:
                recognizer.restore(recognizer.snapshot())
        cut += recognizer.flush()
        cut += recognizer.advance((recognizer.latest or 0) + 1)
        shown = whole.to_arrow(events=True).to_pylist()
        rows = case.events.to_pylist()
        for match, other, line in zip(whole, cut, shown, strict=True):
            mine = [row for row in rows if all(same(row[name], value) for name, value in match.keys.items())] if match.keys else rows
            for variable, positions in match.variables.items():
                assert same(match[variable], [mine[position] for position in positions]), str(case)
                assert same(other[variable], match[variable]), str(case)
                assert same(line[variable], match[variable]), str(case)


def test_columns_with_dictionaries(cases: int, seed: int) -> None:
    """Every column but the time has a dictionary, its own in each batch: the matches are the same."""
    for case in drawn(cases, seed)[: cases // 2]:
        recognizer = case.query.recognizer(encoded(case.events).schema)
        found = [row for piece in pieces(random.Random(case.number), case.events) for row in rows_of(recognizer.push(encoded(piece)))]
        assert found == rows_of(case.query.run(encoded(case.events))) == rows_of(case.query.run(case.events)), str(case)


def encoded(events: pa.Table) -> pa.Table:
    """The events with dictionaries, whose order is not that of the values."""
    columns = [
        column if name == "ts" else pa.chunked_array([column.combine_chunks().dictionary_encode()])
        for name, column in zip(events.column_names, events.columns, strict=True)
    ]
    return pa.table(columns, names=events.column_names)


def same(first: object, second: object) -> bool:
    """Equality in which NaN equals itself."""
    return repr(first) == repr(second)
