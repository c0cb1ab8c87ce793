"""Queries whose events say more than one word holds: random ones with words of some bits, and real ones with hundreds of conditions."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import random
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from enough import Enough

import cepheid
from cepheid.automata import alphabet as alphabets
from cepheid.engine.evaluations.around import numbered
from cepheid.engine.evaluations.around.numbered import Numbered
from cepheid.engine.letters import numbers
from cepheid.engine.plan.methods import METHODS
from cepheid.engine.run import batch
from cepheid.errors import LimitError
from cepheid.testing.differential import WAYS, Case, Row, check, draw, draws, rows_of, ways_of
from cepheid.testing.generators import ABSENT, ENGINE, NESTED, WAITING

VARIANTS = ("compiled", "python", "checked")

GROUPS = {
    "engine": dataclasses.replace(ENGINE, consume=0.2),
    "NXT, LAST, MAX": WAITING,
    "end by end": dataclasses.replace(ENGINE, strategies=("NXT", "LAST", "MAX"), windows=WAITING.windows, consume=0.3),
    "nested": NESTED,
    "absence": ABSENT,
    "COUNT(*)": dataclasses.replace(ENGINE, count=1.0, windows=WAITING.windows, consume=0.2),
    "COUNT(*) of a strategy": dataclasses.replace(WAITING, count=1.0),
}


@cache
def drawn(group: str, cases: int, seed: int) -> list[tuple[Case, list[Row]]]:
    """Cases with their matches, with letters of one word; a few have strategies whose automata are too large."""
    found = []
    for case in draw(GROUPS[group], count=max(cases // 4, 10), seed=seed):
        with contextlib.suppress(LimitError):
            check(case, rows := WAYS["whole"](case, None))
            found.append((case, rows))
    return found


def tiny_words(patch: pytest.MonkeyPatch, bits: int) -> None:
    """Every event is spelled in words of so few bits, and letters are numbers."""
    patch.setattr(alphabets, "SPELLED_BITS", 0)
    patch.setattr(alphabets, "WORD_BITS", bits)
    patch.setattr(numbers, "AT_ONCE", 2)


@pytest.mark.parametrize("collected", [False, True], ids=["", "collected"])
@pytest.mark.parametrize("bits", [1, 2])
@pytest.mark.parametrize("group", GROUPS)
def test_words_of_some_bits(group: str, bits: int, collected: bool, cases: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same matches in the same order as with one word, however the events come, also where numbers are given away again at once."""
    given = drawn(group, cases, seed)[(bits + collected) % 2 :: 2]  # each case in two of the four ways
    tiny_words(monkeypatch, bits)
    if collected:
        monkeypatch.setattr(numbered, "COLLECT_FROM", 0)
        monkeypatch.setattr(batch, "STEP", 2)  # so that a partition goes on in the next batch without a slot
    several = 0
    for case, rows in given:
        own = dataclasses.replace(case, query=cepheid.query(case.query.text))
        alphabet = own.query.compiled(own.query.schema(own.events.schema)).program.automaton.alphabet
        several += len(alphabet.words) > 1 and alphabet.number_bits > 0
        for number, (way, of) in enumerate(ways_of(own).items(), case.number):
            assert of(own, VARIANTS[number % 3]) == rows, f"{way}\n{case}"
    assert bits > 1 or several


# ------------------------------------------------------------------------------------------------------------------- hundreds

ROWS = 120


def stream(conditions: int, *, chance: float, seed: int = 1) -> pa.Table:
    """Events with so many columns, which are 1 here and there; every other type is one of so many."""
    rng = np.random.default_rng(seed)
    columns = {f"c{number}": (rng.random(ROWS) < chance).astype(np.int64) for number in range(conditions)}
    kinds = random.Random(seed).choices(["A", "B", *(f"T{number}" for number in range(40))], weights=[40, 40, *[1] * 40], k=ROWS)
    return pa.table({"type": kinds, "ts": range(ROWS), "k": rng.integers(0, 3, ROWS), **columns})


def either(count: int, kind: str = "B") -> str:
    return " OR ".join(f"({kind} AS x FILTER x.c{number} > 0)" for number in range(count))


def one_after_the_other(count: int, kind: str = "ANY") -> str:
    """A sequence of so many variables with a condition each; ANY is some event, of whatever type."""
    variables = " ; ".join(f"{kind} AS x{number}" for number in range(count))
    return f"{variables} FILTER {' AND '.join(f'x{number}.c{number} > 0' for number in range(count))}"


QUERIES = {
    "OR of 100": f"SELECT * WHERE {either(100)}",
    "OR of 200": f"SELECT * WHERE A AS a ; ({either(200)}) WITHIN 4",
    "NXT": f"SELECT NXT * WHERE A AS a ; ({either(200)}) ; A AS b WITHIN 12",
    "LAST": f"SELECT LAST * WHERE A AS a ; ({either(200)}) WITHIN 5 CONSUME BY PARTITION",
    "NXT, end by end": f"SELECT NXT * WHERE (A AS a : ({either(100)})) WITHIN 12",
    "a nested strategy": f"SELECT * WHERE NXT(A AS a ; ({either(100)})) ; A AS b WITHIN 12",
    "MAX": f"SELECT MAX * WHERE A AS a ; ({either(100)}) WITHIN 6 EVENTS",
    "COUNT(*)": f"SELECT COUNT(*) WHERE A AS a ; ({either(200)}) ; A AS b PARTITION BY k WITHIN 20",
    "absence": f"SELECT * WHERE A AS a ; ({either(100)}) NOT FOLLOWED BY ({either(100, 'A')}) FOR 2 WITHIN 5",
    "types too": f"SELECT * WHERE A AS a ; ({either(100)} OR {' OR '.join(f'T{number}' for number in range(40))}) WITHIN 3",
    "keys": f"SELECT * WHERE A AS a ; ({either(150)}) PARTITION BY k WITHIN 4 LIMIT 2",
}


@pytest.mark.parametrize("name", QUERIES)
def test_hundreds_of_conditions(name: str) -> None:
    events = stream(200, chance=0.02)
    query = cepheid.query(QUERIES[name])
    alphabet = query.compiled(query.schema(events.schema)).program.automaton.alphabet
    assert alphabet.number_bits
    assert len(alphabet.words) >= 2
    wanted = query.run(events, engine="reference").to_arrow().to_pylist()
    assert wanted
    for variant in VARIANTS:
        assert sorted(map(repr, query.run(events, engine=variant).to_arrow().to_pylist())) == sorted(map(repr, wanted))
    case = Case(1, 1, query, events, {})
    for way, variant in zip(("pushed", "restored", "late", "batched"), ("compiled", "checked", "compiled", "python"), strict=True):
        assert WAYS[way](case, variant) == rows_of(query.run(events)), way


@pytest.mark.parametrize("count", [70, 130])
@pytest.mark.parametrize("strategy", ["NXT", "LAST", "ANY"])
def test_a_sequence_of_many_variables(strategy: str, count: int) -> None:
    """Event i satisfies the conditions i and, now and then, some others; there is a match by construction."""
    rng = np.random.default_rng(count)
    length = 2 * count
    holds = rng.random((length, count)) < 0.01
    holds[np.arange(count) * 2, np.arange(count)] = True
    events = pa.table({"type": ["A"] * length, "ts": range(length), **{f"c{n}": holds[:, n].astype(np.int64) for n in range(count)}})
    query = cepheid.query(f"SELECT {strategy} * WHERE {one_after_the_other(count, 'A')}")
    assert len(query.compiled(query.schema(events.schema)).program.automaton.alphabet.words) == count // 64 + 1
    found = query.run(events)
    assert len(found)
    for match in found:
        shown = {variable: positions for variable, (positions,) in match.variables.items()}
        assert all(holds[shown[f"x{number}"], number] for number in range(count))
        assert sorted(shown.values()) == [shown[f"x{number}"] for number in range(count)]
    case = Case(1, 1, query, events, {})
    for way, variant in zip(("pushed", "restored", "batched"), ("checked", "compiled", "python"), strict=True):
        assert WAYS[way](case, variant) == rows_of(found), way


# ------------------------------------------------------------------------------------------------------------------- numbers


def evaluation_of(recognizer: cepheid.Recognizer) -> Numbered:
    run = recognizer._member.state.evaluation
    assert isinstance(run, Numbered)
    return run


def test_events_that_nothing_tells_apart_have_one_number() -> None:
    """Conditions of a type matter where the event has it: other types have one number, whatever holds."""
    events = stream(100, chance=0.5)
    query = cepheid.query(f"SELECT NXT * WHERE A AS a ; ({either(99, 'B')}) WITHIN 5")
    recognizer = query.recognizer(events.schema)
    recognizer.push(events)
    kinds = events["type"].to_pylist()
    assert len(evaluation_of(recognizer).numbers) == 2 + kinds.count("B")


def test_numbers_are_given_away_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream of ever different spellings takes as many numbers as its window, and a snapshot has those alone."""
    monkeypatch.setattr(numbered, "COLLECT_FROM", 50)
    query = cepheid.query(f"SELECT NXT * WHERE ({either(90, 'B')}) ; A AS a WITHIN 10")
    recognizer, found, most = None, 0, 0
    sizes = set()
    for seed in range(8):
        events = stream(100, chance=0.5, seed=seed)
        events = events.set_column(1, "ts", pa.array(np.arange(ROWS) + ROWS * seed))
        recognizer = recognizer or query.recognizer(events.schema)
        for start in range(0, ROWS, 20):
            found += len(recognizer.push(events.slice(start, 20)))
            most = max(most, len(evaluation_of(recognizer).numbers))
        sizes.add(len(recognizer.snapshot()) // 1000)
    assert recognizer is not None
    assert found > 100
    assert most <= 50 + 40
    assert max(sizes) <= 2 * min(sizes) + 1, sizes


def test_every_method_reads_numbers(cases: int, seed: int) -> None:
    # Those for guards: test_values_travel.py.
    wanted = {method.name: 1 for method in METHODS if not method.name.startswith("guarded")}
    sources = zip(*(draws(fragment, seed=seed) for fragment in GROUPS.values()), strict=True)
    some = Enough(cases, itertools.chain.from_iterable(sources), **wanted)
    for case in some:
        some.seen[case.query.compiled(case.query.schema(case.events.schema)).method.name] += 1
    assert set(some.seen) >= set(wanted)
