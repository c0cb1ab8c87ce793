"""LAST in every mode against the definition: random formulas of the waiting fragment, tiny blocks, random cuts, windows and consumption.

CEPHEID_CASES and CEPHEID_SEED as in strategy_cases.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from cepheid.automata.program import Program
from cepheid.engine.last import LastEvaluation
from cepheid.engine.supports import SupportSizes
from cepheid.kernel import available
from cepheid.language.syntax import Strategy

sys.path.insert(0, str(Path(__file__).parent))
import strategy_cases as cases
from strategy_cases import CASES, SEED

A, B, C = (("atom", 1 << k, 0, frozenset({name})) for k, name in enumerate("abc"))


def sequence(*parts):
    formula = parts[0]
    for part in parts[1:]:
        formula = ("seq", formula, part)
    return formula


def program_of(formula):
    return Program(cases.automaton_of(formula))


def tiny(rng):
    return SupportSizes(
        places=rng.choice([1, 2, 4]),
        supports=rng.choice([1, 2, 1 << 10]),
        most_supports=rng.choice([1, 4, 1 << 16]),
        positions=rng.choice([1, 3, 1 << 10]),
        scratch=rng.choice([1, 2, 64]),
        codes=rng.choice([2, 3, 1 << 18]),
    )


def run_case(case, rng, variant, *, limit=None):
    """The case in both modes, against the definition; returns the matches found."""

    def make():
        return LastEvaluation(case.program, **case.bounds, limit=limit, variant=variant, sizes=tiny(rng))

    where = f"CEPHEID_SEED={SEED} variant {variant} limit {limit} {case}"
    total = cases.check(cases.stored(case, rng, make), cases.expected(case, Strategy.LAST), where, limit=limit)
    sequential = case.sequential
    found = cases.forgotten(sequential, rng, make)
    return total + cases.check(found, cases.expected(sequential, Strategy.LAST), where, limit=limit)


@pytest.mark.parametrize("variant", available())
def test_random_formulas(variant, capsys):
    with capsys.disabled():
        print(f"\n{CASES} random cases, CEPHEID_SEED={SEED}, kernel {variant}")  # noqa: T201 - to run a failure again
    total = 0
    for number in range(CASES):
        rng = random.Random(f"{SEED} {number}")
        total += run_case(cases.random_case(rng), rng, variant)
    assert total > CASES


@pytest.mark.parametrize("variant", available())
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_limits(variant, limit):
    for number in range(CASES // 3):
        rng = random.Random(f"{SEED} limit {number}")
        run_case(cases.random_case(rng), rng, variant, limit=limit)


@pytest.mark.parametrize("variant", available())
def test_long_streams(variant):
    for number in range(CASES // 8):
        rng = random.Random(f"{SEED} long {number}")
        run_case(cases.random_case(rng, long=True), rng, variant)
