"""Labellings of supports: all matches on each, projected, none twice, at most as many per trigger as the limit."""

from __future__ import annotations

import random
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from enough import Enough

from cepheid.automata.supports import SupportProgram, shown_variables
from cepheid.engine.evaluations.choosing import labelling as module
from cepheid.engine.evaluations.choosing.labelling import SEVERAL, Labelling, SupportChunk
from cepheid.engine.evaluations.graph.match import CHUNK_MATCHES
from cepheid.errors import LimitError

sys.path.insert(0, str(Path(__file__).parent))
import strategy_cases as cases
from strategy_cases import CASES, SEED

A, B = (("atom", 1 << k, 0, frozenset({name})) for k, name in enumerate("ab"))
EITHER = ("or", ("atom", 1, 0, frozenset({"x"})), ("atom", 1, 0, frozenset({"y"})))


def projected(match, variables):
    """The match as SELECT shows it: its first and last event, and those in a shown variable."""
    shown = [(position, mark & variables) for position, mark in match]
    return tuple(mark for k, mark in enumerate(shown) if mark[1] or k in (0, len(shown) - 1))


def chunk_of(supports, letters, spread=1):
    """The supports as a labelling takes them, all in segment 3."""
    lengths = [len(support) for support in supports]
    positions = np.array([position for support in supports for position in support], np.int64)
    return SupportChunk(
        np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)]),
        positions,
        np.array([cases.widen(letters[position], spread) for position in positions.tolist()], np.uint64),
        np.full(len(supports), 3, np.int32),
    )


def labelled(labelling, program, chunks, limit=None):
    """The matches, in the order given."""
    labelling.begin()
    given = []
    sink = cases.collector(program, given)
    for chunk in chunks:
        for found in labelling.label(chunk, limit):
            sink(found)
    assert all(segment == 3 for segment, _ in given)
    return [match for _, match in given]


def in_pieces(rng, things):
    at = 0
    while at < len(things):
        to = at + rng.choice([1, 2, 7, 100])
        yield things[at:to]
        at = to


@pytest.mark.parametrize("at_once", [module.MARKS_AT_ONCE, 9])
def test_random_supports(monkeypatch, at_once):
    """All supports of each end, as a MAX without any restriction would give them; in one go, and in pieces."""
    monkeypatch.setattr(module, "MARKS_AT_ONCE", at_once)
    drawn = Enough(CASES // 2, shared=1)  # supports that are one after the projection
    for number in drawn:
        rng = random.Random(f"{SEED} {number}")
        formula, spread = cases.random_formula(rng, rng.choice([1, 2, 3])), rng.choice([1, 7, 20])
        letters = [rng.choice(rng.choice(cases.ALPHABETS)) for _ in range(rng.randint(0, 8))]
        try:
            matches = cases.denotation(formula, letters)
        except cases.TooManyError:
            continue
        variables = frozenset(rng.sample("xyz", rng.randint(0, 3)))
        program = SupportProgram(cases.automaton_of(formula, spread=spread), variables)
        expected = defaultdict(set)
        for match in matches:
            expected[match[-1][0]].add(projected(match, variables))
        supports = sorted({tuple(position for position, _ in match) for match in matches}, key=lambda support: (support[-1], support))
        labelling = Labelling(program)
        limit = rng.choice([None, None, 1, 2, 3])
        chunks = [chunk_of(piece, letters, spread) for piece in in_pieces(rng, supports)]
        found = labelled(labelling, program, chunks, limit)
        where = f"CEPHEID_SEED={SEED} case {number} limit {limit} {formula} {letters} {variables}"
        assert len(set(found)) == len(found), where
        assert [match[-1][0] for match in found] == sorted(match[-1][0] for match in found), where
        by_end = defaultdict(set)
        for match in found:
            by_end[match[-1][0]].add(match)
        assert by_end.keys() == expected.keys(), where
        for end, wanted in expected.items():
            assert by_end[end] <= wanted, where
            assert len(by_end[end]) == min(len(wanted), limit or len(wanted)), where
        drawn.seen["shared"] += len(supports) > sum(map(len, expected.values()))


def test_one_support_has_all_labellings():
    program = SupportProgram(cases.automaton_of(("plus", EITHER)), frozenset("xy"))
    found = labelled(Labelling(program), program, [chunk_of([(0, 1, 4)], [1] * 5)])
    assert len(set(found)) == len(found) == 8
    assert {tuple(position for position, _ in match) for match in found} == {(0, 1, 4)}


def test_many_labellings_come_in_chunks_of_bounded_size():
    program = SupportProgram(cases.automaton_of(("plus", EITHER)), frozenset("xy"))
    given = Labelling(program).label(chunk_of([tuple(range(length)) for length in (2, 60, 3)], [1] * 60), None)
    sizes = [len(chunk) for chunk, _ in zip(given, range(20), strict=False)]
    assert len(sizes) == 20
    assert sizes[0] == 4
    assert max(sizes) <= CHUNK_MATCHES


def test_supports_with_one_labelling_stay_in_order_beside_others():
    formula = ("or", ("seq", A, B), ("seq", EITHER, ("atom", 4, 0, frozenset({"c"}))))
    program = SupportProgram(cases.automaton_of(formula), frozenset("abcxy"))
    letters = [1, 2, 4, 1, 2, 4]
    supports = [(0, 1), (0, 2), (3, 4), (3, 5)]
    found = labelled(Labelling(program), program, [chunk_of(supports, letters)])
    assert [tuple(position for position, _ in match) for match in found] == [(0, 1), (0, 2), (0, 2), (3, 4), (3, 5), (3, 5)]


def test_where_letters_determine_labels_no_graph_is_made():
    program = SupportProgram(cases.automaton_of(("seq", A, B)), frozenset("ab"))
    labelling = Labelling(program)
    assert labelled(labelling, program, [chunk_of([(0, 1), (0, 2)], [1, 2, 2])]) == [
        ((0, frozenset("a")), (1, frozenset("b"))),
        ((0, frozenset("a")), (2, frozenset("b"))),
    ]
    assert labelling._graph is None
    assert labelling._labels_of(np.array([3], np.uint64)).tolist() == [SEVERAL]


def test_hidden_events_are_left_out_but_for_start_and_end():
    formula = ("seq", ("seq", A, ("plus", ("atom", 4, 0, frozenset({"c"})))), B)
    program = SupportProgram(cases.automaton_of(formula), frozenset())
    assert shown_variables(program.label_sets) == frozenset()
    supports = [(0, 1, 3), (0, 2, 3), (0, 1, 2, 3), (1, 2, 3)]
    letters = [5, 5, 4, 2]
    expected = [((0, frozenset()), (3, frozenset())), ((1, frozenset()), (3, frozenset()))]
    assert labelled(Labelling(program), program, [chunk_of(supports, letters)]) == expected
    one_by_one = [chunk_of([support], letters) for support in supports]
    assert labelled(Labelling(program), program, one_by_one) == expected
    assert labelled(Labelling(program), program, one_by_one, limit=1) == expected[:1]


def test_a_trigger_with_too_many_projected_matches(monkeypatch):
    monkeypatch.setattr(module, "DISTINCT_LIMIT", 10)
    program = SupportProgram(cases.automaton_of(("seq", A, B)), frozenset("a"))
    supports = [(start, 20) for start in range(20)]
    with pytest.raises(LimitError, match="DISTINCT_LIMIT"):
        labelled(Labelling(program), program, [chunk_of(supports, [1] * 20 + [2])])


def test_the_fingerprint_says_what_is_shown():
    automaton = cases.automaton_of(("seq", A, B))
    assert SupportProgram(automaton, frozenset("a")).fingerprint != SupportProgram(automaton, frozenset("b")).fingerprint


@pytest.mark.parametrize("shown", [frozenset("a"), frozenset("ab")])
def test_what_is_no_support_has_no_labelling(shown):
    program = SupportProgram(cases.automaton_of(("seq", A, B)), shown)
    assert labelled(Labelling(program), program, [chunk_of([(0, 1)], [4, 8])]) == []


def test_supports_with_equal_letters_are_found_even_where_hashes_collide(monkeypatch):
    rng = random.Random(SEED)
    letters = [rng.choice([1, 2, 3]) for _ in range(40)]
    supports = [tuple(sorted(rng.sample(range(40), rng.randint(1, 4)))) for _ in range(300)]
    chunk = chunk_of(supports, letters)
    sequences = [tuple(letters[position] for position in support) for support in supports]
    representatives, place = module._alike(chunk)
    assert len(representatives) == len(set(sequences))
    assert [sequences[k] for k in representatives[place]] == sequences
    monkeypatch.setattr(module, "HASH_FACTOR", np.uint64(0))
    representatives, place = module._alike(chunk)
    assert [sequences[k] for k in representatives[place]] == sequences
