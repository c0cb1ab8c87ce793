"""The main test: random queries on random streams mean the same on every path of evaluation.

reference = compiled = compiled with bounds checks = kernels as Python = cut into random batches = snapshot and restore at random points. (Spark:
tests/spark/test_batch_random.py; strategies: test_strategies.py.) CEPHEID_CASES cases per path, from CEPHEID_SEED; every failure prints it.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
from functools import cache
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
import pytest
from enough import Enough, Kept

from cepheid.engine.evaluations import base as running
from cepheid.engine.evaluations.choosing import labelling, maximal, supports
from cepheid.engine.evaluations.choosing.maximal import MaximalSizes
from cepheid.engine.evaluations.choosing.supports import SupportSizes
from cepheid.engine.evaluations.graph import match as evaluation
from cepheid.engine.evaluations.graph.match import Sizes
from cepheid.engine.input import payload
from cepheid.engine.memory import store
from cepheid.engine.output.matches import Match
from cepheid.engine.run import batches
from cepheid.errors import LimitError
from cepheid.logical.types import type_of
from cepheid.testing.differential import WAYS, Case, answers, check, draw, draws, pieces, rows_of
from cepheid.testing.fragments import fragments
from cepheid.testing.generators import COMPARING, ENGINE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cepheid.testing.differential import Row

T = TypeVar("T", bound="Row | Match")

FRAGMENTS = fragments()
VARIANTS = ("compiled", "python", "checked")


@cache
def kept(seed: int) -> Kept[Case]:
    return Kept(draws(ENGINE, seed=seed))


@pytest.mark.parametrize("engine", ["python", "compiled", "checked", "reference"])
def test_engines(engine: str, cases: int, seed: int) -> None:
    drawn = Enough(cases, kept(seed), matched=5)
    for case in drawn:
        found = rows_of(case.query.run(case.events, engine=engine))
        check(case, found)
        drawn.seen["matched"] += bool(found)


@pytest.mark.parametrize("way", [way for way in WAYS if way != "whole"])
def test_however_the_events_come(way: str, cases: int, seed: int) -> None:
    """The same matches in the same order, also those that ANY and LIMIT choose; the cases take the variants in turn."""
    for case in itertools.islice(kept(seed), cases):
        engine = VARIANTS[case.number % len(VARIANTS)]
        assert WAYS[way](case, engine) == rows_of(case.query.run(case.events)), f"{engine}\n{case}"


def in_order(case: Case, given: Iterable[T]) -> list[T]:
    """What is given in pieces, to be compared with that of a table: in any order with FROM START, where each batch gives what it decides."""
    return sorted(given, key=told) if "FROM START" in case.query.text else list(given)


def told(found: Row | Match) -> str:
    """A match, apart from every other one."""
    return f"{found.keys if isinstance(found, Match) else ''}{found}"


@pytest.mark.parametrize(
    "fragment", fragments("definitions")
)  # there the positions count made events, too: tests/engine/test_definitions.py
def test_the_events_shown_are_those_at_the_positions(fragment: str, cases: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """`m[x]` and `to_arrow(events=True)` show the rows of the input, whether it came whole or in pieces; what is dead is forgotten at once."""
    monkeypatch.setattr(payload, "LEAST_COMPACTION", 1)
    for case in draw(FRAGMENTS[fragment], count=cases // 10, seed=seed):
        whole = case.query.run(case.events)
        recognizer, cut = case.query.recognizer(case.events.schema), []
        for number, piece in enumerate(pieces(random.Random(case.number), case.events)):
            cut += recognizer.push(piece)
            if number % 3 == 1:
                recognizer.restore(recognizer.snapshot())
        cut += recognizer.flush()
        cut += recognizer.advance((recognizer.latest or 0) + 1)
        with monkeypatch.context() as small:
            tiny_chunks(small)
            batched_matches = [match for part in case.query.batches(case.events) for match in part]
        shown = whole.to_arrow(events=True).to_pylist()
        rows = case.events.to_pylist()
        ways = (in_order(case, matches) for matches in (whole, cut, batched_matches))
        lines = dict(zip(map(told, whole), shown, strict=True))
        for match, other, batched in zip(*ways, strict=True):
            line = lines[told(match)]
            mine = [row for row in rows if all(same(row[name], value) for name, value in match.keys.items())] if match.keys else rows
            for variable, positions in match.variables.items():
                assert same(match[variable], [mine[position] for position in positions]), str(case)
                assert same(other[variable], match[variable]), str(case)
                assert same(batched[variable], match[variable]), str(case)
                assert same(line[variable], match[variable]), str(case)


def tiny_chunks(patch: pytest.MonkeyPatch) -> None:
    """Every evaluation hands its matches over by twos, and its kernel returns all the time; a table is read by threes."""
    patch.setattr(evaluation, "Sizes", lambda: Sizes(chunk=2, most_chunk=2, chunk_positions=3))
    patch.setattr(supports, "SupportSizes", lambda: SupportSizes(supports=2, most_supports=2, positions=3, most_positions=3))
    patch.setattr(maximal, "MaximalSizes", lambda: MaximalSizes(supports=2, most_supports=2, positions=3, most_positions=3))
    patch.setattr(labelling, "MARKS_AT_ONCE", 3)
    patch.setattr(running, "BUDGET", 1)
    patch.setattr(batches, "PIECE", 3)


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_however_small_the_chunks_are(fragment: str, cases: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of two matches, kernels that return after each event, tables in pieces of three: the same matches in the same order."""
    drawn_here = draw(FRAGMENTS[fragment], count=cases // 5, seed=seed)
    wanted = [rows_of(case.query.run(case.events)) for case in drawn_here]
    tiny_chunks(monkeypatch)
    for case, rows in zip(drawn_here, wanted, strict=True):
        engine = VARIANTS[case.number % len(VARIANTS)]
        assert rows_of(case.query.run(case.events, engine=engine)) == rows, str(case)
        way = ("pushed", "batched", "restored")[case.number // 2 % 3]
        assert in_order(case, WAYS[way](case, engine)) == in_order(case, rows), f"{way}\n{case}"


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_however_often_memory_is_given_back(fragment: str, cases: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state moves after each push, blocks move together whenever one of them needs room: the same matches in the same order."""
    drawn_here = draw(FRAGMENTS[fragment], count=cases // 5, seed=seed)
    wanted = [rows_of(case.query.run(case.events)) for case in drawn_here]
    given_back(monkeypatch)
    for case, rows in zip(drawn_here, wanted, strict=True):
        way = ("pushed", "restored")[case.number // 2 % 2]
        found = WAYS[way](case, VARIANTS[case.number % len(VARIANTS)])
        assert in_order(case, found) == in_order(case, rows), f"{way}\n{case}"


def given_back(patch: pytest.MonkeyPatch) -> None:
    """All memory is given back that can be, after each push, and rings begin with one place."""
    patch.setattr("cepheid.engine.run.member.IDLE_CHECK", 1)
    patch.setattr(running, "SHRINK_FROM", 0)
    patch.setattr(running, "SHRINK_RATIO", 0)
    patch.setattr(store, "SQUEEZE_RATIO", 0)
    patch.setattr(payload, "LEAST_COMPACTION", 1)
    patch.setattr(supports, "SupportSizes", lambda: SupportSizes(places=1))
    patch.setattr(maximal, "MaximalSizes", lambda: MaximalSizes(places=1))


def test_columns_with_dictionaries(cases: int, seed: int) -> None:
    """Every column but the time has a dictionary, its own in each batch: the matches are the same."""
    for case in itertools.islice(kept(seed), cases // 2):
        recognizer = case.query.recognizer(encoded(case.events).schema)
        found = [row for piece in pieces(random.Random(case.number), case.events) for row in rows_of(recognizer.push(encoded(piece)))]
        assert found == rows_of(case.query.run(encoded(case.events))) == rows_of(case.query.run(case.events)), str(case)


@pytest.mark.parametrize("kind", [pa.decimal128(9, 2), pa.decimal128(38, 18)], ids=str)
def test_decimals_are_compared(kind: pa.DataType, cases: int, seed: int) -> None:
    """Patterns that compare events, over decimals: of one word, and of two, which have ranks; the kernel knows both."""
    drawn = Enough(cases // 2, draws(COMPARING, seed=seed), compared=1)
    for case in drawn:
        events = case.events.set_column(case.events.column_names.index("v"), "v", case.events["v"].cast(pa.decimal128(38, 18)).cast(kind))
        try:
            expected, undecided = answers(case.query, events)
        except LimitError:  # too many matches for the definition
            continue
        other = dataclasses.replace(case, events=events, expected=expected, undecided=undecided)
        rows = rows_of(other.query.run(events))
        check(other, rows)
        way = list(WAYS)[case.number % len(WAYS)]
        assert WAYS[way](other, VARIANTS[case.number % len(VARIANTS)]) == rows, f"{way}\n{other}"
        values = case.query.compiled(case.query.schema(events.schema)).program.values
        drawn.seen["compared"] += any(type_of(value) == kind for value in values)


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
