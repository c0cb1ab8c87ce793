"""Nested strategies in whole queries: however the input is cut, in every variant, with state that comes and goes; what explain and draw say."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from enough import Enough, share
from pattern_cases import SCHEMA, random_pattern, random_variables
from strategy_cases import CASES, SEED

import cepheid
from cepheid.automata import program_of
from cepheid.engine.evaluations.around.trackers import Tracked
from cepheid.engine.evaluations.graph.match import Evaluation
from cepheid.errors import LimitError
from cepheid.kernel import available
from cepheid.language.syntax import Strategy
from cepheid.logical.plan import QueryPlan
from cepheid.testing import events, reference

Found = list[tuple[tuple[int, frozenset[str]], ...]]

STREAM = pa.Table.from_pylist(events("A1(v=1) B2(v=5) A3(v=2) B4(v=1) C5(v=0) X6(v=0) B7(v=9) C8(v=2)"))


def collector(found: Found, label_sets: tuple[frozenset[str], ...]):
    def sink(chunk):
        for start, stop in zip(chunk.offsets[:-1].tolist(), chunk.offsets[1:].tolist(), strict=True):
            marks = [label_sets[label] for label in chunk.labels[start:stop].tolist()]
            found.append(tuple(zip(chunk.positions[start:stop].tolist(), marks, strict=True)))

    return sink


@pytest.mark.parametrize("variant", available())
def test_random_patterns_cut_and_restored(variant: str) -> None:
    drawn = Enough(share(CASES, variant), tracked=10)
    for number in drawn:
        rng = random.Random(f"{SEED}/{number}")
        pattern, variables = random_pattern(rng, 3, 0.7), random_variables(rng)
        try:
            program = program_of(pattern, SCHEMA, variables=variables, strategy=Strategy.ALL)
        except LimitError:
            continue
        if not program.trackers:
            continue
        drawn.seen["tracked"] += 1
        types = "".join(rng.choice("ABC") for _ in range(rng.randint(0, 8)))
        query = QueryPlan(pattern, SCHEMA, variables)
        given = [reference.Event(name, None, {"type": name}) for name in types]
        expected = {(m.start, m.end, tuple((v, p) for v, p in m.mapping if p)) for m in reference.matches(query, given)}
        alphabet = program.automaton.alphabet
        numbers = {p.type: value for p, value in zip(alphabet.predicates, alphabet.values, strict=True)}
        letters = np.array([numbers.get(name, 0) for name in types], np.uint64)

        def make(program=program, rng=rng):
            return Tracked(Evaluation(program, variant=variant), program, variant=variant, entries=rng.choice([1, 1 << 20]))

        run, found, at = make(), [], 0
        while at < len(letters):
            to = at + rng.randint(1, 4)
            piece = letters[at:to]
            run.feed(piece, np.zeros(len(piece), np.int64), sink=collector(found, program.label_sets), slots=np.array([2], np.int32))
            at = to
            if rng.random() < 0.4:
                sections, run = run.dump(), make()
                run.load(sections)
        assert len(found) == len(set(found)) == len(expected), (SEED, number)
        assert {shape(match) for match in found} == expected, (SEED, number)


def shape(match):
    variables = sorted({variable for _, mark in match for variable in mark})
    mapping = tuple((variable, tuple(position for position, mark in match if variable in mark)) for variable in variables)
    return match[0][0], match[-1][0], mapping


@pytest.mark.parametrize("strategy", ["NXT", "LAST", "MAX"])
@pytest.mark.parametrize(
    "query",
    [
        "{}(A ; B AS b) ; C",
        "X OR {}(A+ ; B+) ; C",
        "C ; {}(NXT(A ; B) ; C)",
        "{}(A : B) ; C WITHIN 5 EVENTS",
        "({}(A ; B AS b) FILTER b.v > 1) ; C",
        "PROJECT b ({}(A ; PROJECT NONE (A) ; B AS b)) ; C",
        "{}(A ; B) :+ OR C",
    ],
)
def test_queries(query: str, strategy: str) -> None:
    whole = cepheid.query("SELECT * WHERE " + query.format(strategy))
    expected = sorted(map(repr, whole.run(STREAM, engine="reference")))
    for variant in available():
        assert sorted(map(repr, whole.run(STREAM, engine=variant))) == expected
    recognizer, found = whole.recognizer(STREAM.schema), []
    for row in range(len(STREAM)):
        found += map(repr, recognizer.push(STREAM.slice(row, 1)))
        recognizer = whole.recognizer(STREAM.schema, snapshot=recognizer.snapshot())
    assert sorted(found) == expected


def test_partitions_have_trackers_of_their_own() -> None:
    rows = events("A1(k=1) A2(k=2) B3(k=1) A4(k=1) B5(k=1) C6(k=2) B7(k=2) C8(k=1) C9(k=2)")
    query = cepheid.query("SELECT * WHERE NXT(A ; B) ; C PARTITION BY k")
    table = pa.Table.from_pylist(rows)
    found = [(match.keys["k"], match.variables) for match in query.run(table)]
    assert sorted(map(repr, found)) == sorted(repr((match.keys["k"], match.variables)) for match in query.run(table, engine="reference"))
    assert len(found) == 3


def test_explain_and_draw_name_the_trackers() -> None:
    query = cepheid.query("SELECT * WHERE NXT(A ; B) ; C")
    explanation = query.explain()
    assert "type is A and tracker 1 = 0: mark A" in explanation["automaton"]
    assert "letter bits from 2 on: tracker 1, 2 states, of the events before" in explanation["program"]
    assert "events with an irrelevant letter can be left out before" in explanation["program"]
    assert "tracker 1 = 0" in str(query.draw())
