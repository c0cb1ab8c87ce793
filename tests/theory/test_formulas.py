"""From automata with clocks back to patterns of timed CEL, and round trips (timed-cel, Proposition 4.4)."""

from __future__ import annotations

import dataclasses
import itertools
import random
from typing import TYPE_CHECKING

import pytest
from clock_cases import (
    CASES,
    NOT_DETERMINIZABLE,
    SCHEMA,
    SEED,
    T1,
    T2,
    A,
    B,
    built,
    clock_automaton,
    occurrence,
    query,
    random_automaton,
    random_pattern,
    random_stream,
)

import cepheid
from cepheid.automata import construct
from cepheid.errors import LimitError, NotSupportedError
from cepheid.logical import plan
from cepheid.logical.describe import describe
from cepheid.logical.tree import walk
from cepheid.testing import reference, runs
from cepheid.theory import formula, formulas, is_timed_cel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clock_cases import Move

    from cepheid.automata import Automaton
    from cepheid.testing.evaluate import Event


def matches_of(pattern: plan.Pattern, stream: list[Event]) -> set[object]:
    return set(reference.matches(query(pattern), stream))


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference looks at each node of a formula: it finds the matches of small ones in milliseconds."""
    monkeypatch.setattr(formulas, "FORMULA_NODES", 1_500)


def small_formula(automaton: Automaton) -> plan.Pattern | None:
    try:
        return formula(automaton)
    except LimitError:
        return None


def drawn(rng: random.Random) -> Iterator[tuple[Automaton, plan.Pattern]]:
    """Random automata whose formulas are small enough, and these."""
    while True:
        automaton = random_automaton(rng, states=3, clocks=rng.choice([0, 1, 1, 1, 2]), most=5)
        pattern = small_formula(automaton)
        if pattern is not None:
            yield automaton, pattern


def is_conjunction(pattern: plan.Pattern) -> bool:
    return isinstance(pattern, plan.Project) and isinstance(pattern.pattern, plan.And)


def test_random_automata_become_patterns_of_few_operators() -> None:
    rng = random.Random(f"{SEED} formula")
    found = {"windows": 0, "conjunctions": 0, "iterations": 0}
    for number, (automaton, pattern) in enumerate(drawn(rng), 1):
        assert is_timed_cel(pattern)
        nodes = list(walk(pattern))
        assert not any(isinstance(each, plan.Sequence) and any(link != plan.Link(":") for link in each.links) for each in nodes)
        assert not any(isinstance(each, plan.Iterate) and each != plan.Iterate(each.pattern, adjacent=True) for each in nodes)
        for stream in (random_stream(rng, most=5) for _ in range(3)):
            expected = runs.matches(automaton, stream)
            assert matches_of(pattern, stream) == expected, (SEED, automaton, stream)
            if expected:
                found["windows"] += any(isinstance(each, plan.Within) for each in nodes)
                found["conjunctions"] += is_conjunction(pattern)
                found["iterations"] += any(isinstance(each, plan.Iterate) for each in nodes)
        if number >= CASES / 2 and min(found.values()) > 2:
            break


def test_query_to_automaton_to_query() -> None:
    rng = random.Random(f"{SEED} round trip")
    done = matched = 0
    while done < CASES / 4 or not matched:
        pattern = random_pattern(rng, 2)
        automaton = construct(pattern, SCHEMA)
        again = small_formula(automaton)
        if again is None:
            continue
        done += 1
        for stream in (random_stream(rng, most=5) for _ in range(3)):
            expected = matches_of(pattern, stream)
            assert matches_of(again, stream) == expected, (SEED, pattern, stream)
            if not is_conjunction(again):
                # A conjunction is a product, of which most runs come to nothing.
                assert runs.matches(construct(again, SCHEMA), stream) == expected, (SEED, pattern, stream)
            matched += bool(expected) and bool(automaton.alphabet.guards)


@pytest.mark.parametrize(
    "moves",
    [
        # a clock that is asked on a cycle, from below and from above
        [(0, 1, A, (), "x", [0]), (1, 1, A, [(0, 0, 2)], "x", ()), (1, 2, B, [(0, 1, None)], "y", ())],
        [(0, 1, A, (), "x", [0]), (1, 1, A, [(0, 1, None)], "x", ()), (1, 2, B, [(0, 0, 2)], "y", ())],
        [(0, 1, A, (), "x", [0]), (1, 1, A, [(0, 1, 2)], "x", ()), (1, 1, B, [(0, 0, 1)], "y", ()), (1, 2, B, [(0, 1, 2)], "y", ())],
        # a step that asks a clock and resets it
        [(0, 1, A, (), "x", [0]), (1, 1, A, [(0, 0, 1)], "x", [0]), (1, 2, B, [(0, 1, 2)], "y", ())],
        # a clock that is not set on one of two ways; an empty one passes what is asked, and fails what is forbidden
        [(0, 1, A, (), "x", [0]), (0, 1, B, (), "x", ()), (1, 2, B, [(0, 1, 1)], "y", ()), (1, 2, A, [(0, 1, 1, False)], "y", ())],
        # two clocks whose intervals overlap, as in example 4.2
        [(0, 1, A, (), "x", [0]), (1, 2, A, (), "x", [1]), (2, 3, B, [(0, 0, 2)], "y", ()), (3, 4, B, [(1, 1, 2)], "y", ())],
    ],
)
def test_one_by_one(moves: list[Move]) -> None:
    rng = random.Random(f"{SEED} one by one")
    automaton = clock_automaton(moves, [max(move[1] for move in moves)])
    pattern, matched = formula(automaton), 0
    tried = 0
    while tried < CASES / 4 or not matched:
        stream = random_stream(rng, most=6)
        expected = runs.matches(automaton, stream)
        assert matches_of(pattern, stream) == expected, (SEED, stream)
        matched += bool(expected)
        tried += 1


def test_a_window_from_the_reset_to_the_question() -> None:
    automaton = clock_automaton([(0, 1, A, (), "x", [0]), (1, 2, A, (), "x", ()), (2, 3, B, [(0, 0, 2)], "y", ())], [3])
    assert describe(formula(automaton)) == "(PROJECT x (A AS x) : PROJECT x (A AS x) : PROJECT y (B AS y)) WITHIN [<= 2]"


def test_conditions_and_what_is_forbidden_are_filters() -> None:
    automaton = clock_automaton([(0, 1, A, (), "", ())], [1])
    (move,) = automaton.transitions
    forbidding = dataclasses.replace(automaton, transitions=(dataclasses.replace(move, requires=0, forbids=A | B),))
    assert describe(formula(forbidding)) == "PROJECT NONE (ANY[NOT (type = 'A') AND NOT (type = 'B')])"
    assert matches_of(formula(forbidding), [occurrence("A", 1), occurrence("X", 1)]) == {reference.Match(1, 1, ())}
    compared = formula(built("(A AS x FILTER x.v > 1) :[<= 2] B"))
    assert describe(compared) == "(PROJECT A, x (A[v > 1] AS A AS x) : PROJECT B (B AS B)) WITHIN [<= 2]"


def test_an_automaton_without_matches_is_a_filter_that_nothing_passes() -> None:
    never = clock_automaton([(0, 1, A, (), "x", [0]), (1, 2, B, [(0, 2, 1)], "y", ())], [2])
    assert describe(formula(never)) == "ANY[FALSE]"
    assert matches_of(formula(never), [occurrence("A", 1), occurrence("B", 1)]) == set()


def test_the_text_of_a_formula_without_conditions_is_a_query() -> None:
    rng = random.Random(f"{SEED} text")
    texts = (describe(pattern) for _, pattern in drawn(rng))
    for text in itertools.islice((text for text in texts if text != "ANY[FALSE]"), 30):
        again = cepheid.query(f"SELECT * WHERE {text}").bound(SCHEMA).pattern
        assert describe(again) == text


def test_only_automata_with_clocks_have_a_formula() -> None:
    with pytest.raises(NotSupportedError, match="is no timed complex event automaton"):
        formula(built("A AS x ; B AS y FILTER y.v > x.v"))


def test_a_limit_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formulas, "FORMULA_NODES", 10)
    with pytest.raises(LimitError, match="more than 10 nodes \\(FORMULA_NODES\\)"):
        formula(T2)


def test_examples_of_the_paper_keep_their_matches() -> None:
    rng = random.Random(f"{SEED} examples")
    for automaton in (T1, NOT_DETERMINIZABLE):
        pattern = formula(automaton)
        for stream in (random_stream(rng, most=5) for _ in range(20)):
            assert matches_of(pattern, stream) == runs.matches(automaton, stream)
