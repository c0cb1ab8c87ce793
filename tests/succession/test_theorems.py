"""Associativity of THEN, Theorems 1 to 6 by search, and the errata with their evidence."""

from __future__ import annotations

import random
from functools import cache
from itertools import product
from typing import Any

import pytest

from cepheid.succession import (
    AXIOMS,
    BY_NUMBER,
    CAYUGA,
    COMPLETE_HISTORY,
    ERRATA,
    MODELS,
    ODE,
    SNOOPIB,
    THEOREMS,
    Associativity,
    Erratum,
    History,
    Interval,
    TemporalModel,
    Theorem,
    associative,
    check,
    compared,
    universe,
    verdicts,
)
from cepheid.succession.associativity import difference
from cepheid.succession.errata import CayugaAsInSection2, LongerFirst, PointFirst
from cepheid.succession.search import Choice, choices, structures
from cepheid.succession.theorems import INSTANCES, associative_interval_model, weakly_associative_successors
from cepheid.succession.uniqueness import quotients, satisfying
from cepheid.succession.universe import subsets

# ------------------------------------------------------------------------------------------------------------------- associativity

ASSOCIATIVE: dict[str, tuple[bool, bool, bool]] = {
    "CAYUGA": (True, False, True),
    "COMPLETE_HISTORY": (True, True, True),
    "SNOOPIB": (True, False, False),
    "ODE": (True, False, False),
    "ACTIVE_OFFICE": (False, False, True),
    "POINT": (False, False, False),
}
"""Whether all matches of (E0 THEN E1) THEN E2 are matches of E0 THEN (E1 THEN E2); the other way round; equal for one stream without overlaps."""


@cache
def found_by_search(name: str) -> Associativity[Any]:
    """What one search finds."""
    return associative(MODELS[name])


@pytest.mark.parametrize("name", MODELS)
def test_associativity(name: str) -> None:
    found = found_by_search(name)
    assert (found.forward is None, found.backward is None, found.itself is None) == ASSOCIATIVE[name]
    assert found.holds == (name == "COMPLETE_HISTORY")
    assert found.weak == (name in {"CAYUGA", "COMPLETE_HISTORY"})


def test_counterexamples_are_small() -> None:
    forward, backward = found_by_search("ACTIVE_OFFICE").forward, found_by_search("CAYUGA").backward
    assert str(backward) == (
        "E0 = {[0, 0]}, E1 = {[1, 1], [2, 2]}, E2 = {[3, 3]}, only E0 THEN (E1 THEN E2) has [0, 0] [2, 2] [3, 3] at [0, 3]"
    )
    assert str(forward) == (
        "E0 = {[0, 0]}, E1 = {[1, 3], [2, 2]}, E2 = {[4, 4]}, only (E0 THEN E1) THEN E2 has [0, 0] [2, 2] [4, 4] at [0, 4], "
        "only E0 THEN (E1 THEN E2) has [0, 0] [1, 3] [4, 4] at [0, 4]"
    )


@pytest.mark.parametrize("name", MODELS)
def test_associativity_of_random_events(name: str, cases: int, seed: int) -> None:
    """Larger sets of events than the search tries: what it finds no counterexample of has none here."""
    model, different = MODELS[name], 0
    for number in range(cases):
        rng = random.Random(f"{seed} associative {name} {number}")
        sides = [{model.of(rng.sample(range(low, low + 8), rng.randrange(1, 4))) for _ in range(rng.randrange(1, 6))} for low in (0, 3, 6)]
        found = compared(model, *sides)
        if found is not None:
            different += 1
            assert not (ASSOCIATIVE[name][0] and found.only_left), (seed, number, str(found))
            assert not (ASSOCIATIVE[name][1] and found.only_right), (seed, number, str(found))
    assert (different > 0) == (name != "COMPLETE_HISTORY")


# ----------------------------------------------------------------------------------------------------------------------- theorems


@pytest.mark.slow
@pytest.mark.parametrize("theorem", THEOREMS, ids=lambda theorem: f"theorem {theorem.number}")
def test_nothing_contradicts_the_theorems(theorem: Theorem) -> None:
    assert theorem.search() is None


def test_theorems_are_all_there() -> None:
    assert [theorem.number for theorem in THEOREMS] == [1, 2, 3, 4, 5, 6]


def test_path_independent_choices() -> None:
    """Against the definition, by all functions."""
    assert [len(choices(size)) for size in (1, 2, 3, 4)] == [1, 3, 22, 485]
    for size in (1, 2, 3):
        sets = subsets((1 << size) - 1, 1 << size)[1:]
        every: list[Choice] = [dict(zip(sets, values, strict=True)) for values in product(*(subsets(bits, 8)[1:] for bits in sets))]
        # Plott: the choice from a union is the choice from the choices
        expected = [c for c in every if all(c[a | b] == c[c[a] | c[b]] for a in sets for b in sets)]
        assert sorted(map(str, choices(size))) == sorted(map(str, expected))


def test_structures_satisfy_what_they_are_made_to_satisfy() -> None:
    u = universe(CAYUGA, range(3))
    found = list(structures(u, lambda *_: True))
    assert len(found) == 3
    for one in found:
        assert [axiom.number for axiom in AXIOMS[:13] if axiom.check(one)] == []
    assert len(list(structures(universe(CAYUGA, range(4)), lambda *_: True))) == 3 * 3 * 22


def test_without_axiom_14_there_are_other_models() -> None:
    """What the searches for Theorems 1 to 3 leave out, and that Axiom 14 is what leaves it out."""
    assert [len(list(quotients(times))) for times in (1, 2, 3, 4)] == [1, 1, 2, 27]
    kept = [len(list(structures(universe(quotient, range(3)), lambda *_: True))) for quotient in quotients(3)]
    assert kept == [3, 3]
    assert [len(list(satisfying(quotient, 3))) for quotient in quotients(3)] == [1, 0]


def test_theorem_4_needs_each_of_its_instances() -> None:
    assert associative_interval_model() is None
    for left_out in INSTANCES:
        assert associative_interval_model(tuple(instance for instance in INSTANCES if instance != left_out)) is not None


def test_theorem_5_is_about_interval_models() -> None:
    assert difference(universe(COMPLETE_HISTORY, range(4)), backward=True) is None
    assert difference(universe(CAYUGA, range(4)), backward=True) is not None


@pytest.mark.slow
def test_theorem_6_needs_equation_9() -> None:
    candidates = [Interval(1, 2), Interval(2, 2)]
    for distributing, values in ((True, 1), (False, 3)):
        found = set()
        for u, function in weakly_associative_successors(distributing=distributing):
            both = u.bits(candidates)
            (choice,) = (choice for end, choice in function if both in choice)
            found.add(u.subset(choice[both]))
        assert len(found) == values


# ------------------------------------------------------------------------------------------------------------------------- errata


@cache
def evidence(erratum: Erratum) -> str | None:
    """What one run of it gives."""
    return erratum.evidence()


@pytest.mark.parametrize("erratum", ERRATA, ids=lambda erratum: erratum.place)
def test_every_erratum_has_evidence(erratum: Erratum) -> None:
    assert evidence(erratum)


EVIDENCE = {
    "section 3.1, complete history": "from {[1, 2], [2, 2]} after 0, Active Office takes {[1, 2]}, complete history {[2]}",
    "section 2, Active Office": "A Q1Q2 at [0, 2]; A R1R2 at [0, 2]",
    "section 5.2, equation (7)": "[0, 0] * [0, 0] * [1, 1] is undefined, [0, 0] * [1, 1] = [0, 1]",
    "section 5.2.2, equation (9) and Theorem 6": "POINT FIRST: SUCC([0, 0], {[1, 2], [2, 2]}) = {[2, 2]}; "
    "(9) DISTRIBUTION: t = [0, 0], s = [3, 3], P = {[1, 2], [2, 2]}: SUCC(t, P; {s}) = {[1, 3], [2, 3]}, SUCC(t, P); {s} = {[2, 3]}",
    "section 5.2.2, equation (9)": "t = [0, 0], s = [3, 3], P = {[1, 1], [2, 2]}: "
    "SUCC(t, P; {s}) = {[1, 3], [2, 3]}, SUCC(t, P); {s} = {[1, 3]}",
    "section 5.2.2": "SNOOPIB: E0 = {[0, 0]}, E1 = {[1, 1], [2, 2], [3, 3]}, E2 = {[1, 1], [2, 2], [3, 3]}, "
    "only E0 THEN (E1 THEN E2) has [0, 0] [2, 2] [3, 3] at [0, 3]\n"
    "ODE: E0 = {[0]}, E1 = {[1], [2], [3]}, E2 = {[1], [2], [3]}, only E0 THEN (E1 THEN E2) has [0] [2] [3] at [0, 2, 3]",
    "appendix, proof of Proposition 13": "{t}; F = SUCC(r, {t}; F) = {[1, 3]}, SUCC(t, F) = {[2, 3]}",
}


@pytest.mark.parametrize("place", EVIDENCE)
def test_evidence(place: str) -> None:
    assert EVIDENCE[place] in [evidence(erratum) for erratum in ERRATA if erratum.place == place]


def test_section_2_prints_another_cayuga() -> None:
    assert CayugaAsInSection2().successors(Interval(0, 0), {Interval(1, 1), Interval(2, 2)}) == {Interval(1, 1), Interval(2, 2)}


@pytest.mark.parametrize(
    ("model", "violated"),
    [(PointFirst(), ["14", "(9)"]), (LongerFirst(), ["14", "(7)", "P14"]), (CayugaAsInSection2(), ["6", "12", "14", "(8)"])],
    ids=str,
)
def test_models_of_the_errata(model: TemporalModel[Any], violated: list[str]) -> None:
    found = [number for number, verdict in verdicts(model).items() if not verdict.holds]
    assert found == violated


@pytest.mark.parametrize("model", [SNOOPIB, ODE], ids=str)
def test_snoopib_and_ode_are_weakly_associative_but_for_a_stream_with_itself(model: TemporalModel[Any]) -> None:
    assert all(check(model, BY_NUMBER[number]) is None for number in ("(8)", "(9)"))
    found = found_by_search(model.name)
    assert found.forward is None
    assert found.itself is not None


def test_associativity_says_nothing_of_what_is_no_match_of_e1() -> None:
    """Axiom 14 is printed for any t1; equation (5) implies it for one of F1. In an interval model the difference alone refutes it."""
    u = universe(CAYUGA, range(4))
    t0, t1, t2 = u.number(Interval(0, 0)), u.number(Interval(1, 2)), u.number(Interval(3, 3))
    first, second = u.bits([Interval(1, 1)]), 1 << t2
    assert u.next(t1, second) == second
    assert not u.next(t0, first) >> t1 & 1
    composed = u.composed[t1][t2]
    assert composed is not None
    assert u.next(t0, u.sequence(first, second)) >> composed & 1
    assert compared(CAYUGA, [Interval(0, 0)], [Interval(1, 1)], [Interval(3, 3)]) is None
    assert COMPLETE_HISTORY.compose(History((1, 2)), History((3,))) == COMPLETE_HISTORY.compose(History((1,)), History((2, 3)))
