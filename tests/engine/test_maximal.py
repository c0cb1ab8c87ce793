"""SELECT MAX inside a window: against the definition, however the stream is cut, stored and restored, in all variants of the kernel."""

from __future__ import annotations

import random

import pytest
from strategy_cases import CASES, SEED, check, expected, forgotten, random_case, stored

from cepheid.engine.maximal import Maximal, MaximalSizes
from cepheid.kernel import available
from cepheid.language.syntax import Strategy


def tiny(rng):
    supports = rng.choice([1, 3, 64])
    return MaximalSizes(
        places=rng.choice([1, 2, 4]),
        supports=supports,
        most_supports=supports,
        positions=rng.choice([1, 8, 512]),
        scratch=rng.choice([1, 8, 64]),
        codes=rng.choice([1, 3, 1 << 18]),
        entries=rng.choice([1, 200, 1 << 20]),
    )


def maker(case, rng, variant, limit=None):
    return lambda: Maximal(case.program, **case.bounds, limit=limit, variant=variant, sizes=tiny(rng))


@pytest.mark.parametrize("variant", available())
def test_against_the_definition(variant):
    rng = random.Random(SEED)
    total = 0
    for number in range(CASES):
        case = random_case(rng)
        limit = rng.choice([None, None, 1, 2, 3])
        wanted = expected(case, Strategy.MAX)
        total += check(stored(case, rng, maker(case, rng, variant, limit)), wanted, f"seed {SEED}, case {number}: {case}", limit=limit)
        case = case.sequential
        wanted = expected(case, Strategy.MAX)
        check(forgotten(case, rng, maker(case, rng, variant, limit)), wanted, f"seed {SEED}, sequential {number}: {case}", limit=limit)
    assert total > CASES // 4
