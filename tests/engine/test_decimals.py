"""Decimals in conditions: columns at once where Arrow is exact, one by one elsewhere, and as words for the kernel of guards."""

from __future__ import annotations

import random
from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
import pytest
from enough import Enough

import cepheid
from cepheid.testing.differential import rows_of

ROWS = 12
KIND = pa.decimal128(5, 2)


def number(rng: random.Random, kind: pa.DataType) -> Decimal | None:
    digits = min(kind.precision, rng.choice([1, 2, kind.precision]))
    value = Decimal(rng.choice([-1, 1]) * rng.randrange(10**digits)).scaleb(-kind.scale, Context(prec=60))
    return rng.choice([value] * 9 + [None])


def random_events(rng: random.Random) -> pa.Table:
    columns = {}
    for name in "pqr":
        digits = rng.choice([1, 3, 9, 15, 16, 18, 19, 25, 38])
        kind = pa.decimal128(digits, rng.randint(0, digits))
        columns[name] = pa.array([number(rng, kind) for _ in range(ROWS)], kind)
    columns["i"] = pa.array([rng.choice([0, 1, -5, 2**62, -(2**63), None]) for _ in range(ROWS)])
    columns["f"] = pa.array([rng.choice([0.5, 1e300, -3.25, None]) for _ in range(ROWS)])
    return pa.table({"type": ["A"] * ROWS, "ts": pa.array(range(ROWS)), **columns})


def random_query(rng: random.Random) -> str:
    def leaf() -> str:
        return rng.choice(["x.p", "x.q", "x.r", "x.i", "x.f", "2.50", "7"])

    term = f"{leaf()} {rng.choice('+-*+-*/%')} {leaf()}"
    if rng.random() < 0.4:
        term = f"({term}) {rng.choice('+-*/%')} {leaf()}"
    if rng.random() < 0.2:
        term = f"{rng.choice(['abs', 'floor', 'ceil', '-'])}({term})"
    comparison = rng.choice([">", "<=", "=", "!="])
    if rng.random() < 0.5:
        return f"SELECT * WHERE A AS x FILTER {term} {comparison} {leaf()}"
    return f"SELECT * WHERE A AS x ; A AS y FILTER y.{rng.choice('pqrif')} {comparison} {term}"


def test_conditions_on_decimals_are_exact(cases: int, seed: int) -> None:
    rng = random.Random(f"{seed} decimals")
    drawn = Enough(cases, matched=5)
    for _ in drawn:
        events, query = random_events(rng), cepheid.query(random_query(rng))
        try:
            query.compiled(query.schema(events))
        except cepheid.errors.BindError:  # a result of too many digits
            continue
        found = sorted(map(str, rows_of(query.run(events))))
        assert found == sorted(map(str, rows_of(query.run(events, engine="reference")))), (query.text, events.to_pylist(), events.schema)
        drawn.seen["matched"] += bool(found)


def test_numbers_that_do_not_fit_beside_such_that_do() -> None:
    events = pa.table(
        {"type": ["A"] * 4, "ts": [1, 2, 3, 4], "i": [1, 2**62, -(2**63), None], "d": pa.array([Decimal("0.5")] * 4, pa.decimal128(38, 34))}
    )
    found = cepheid.query("SELECT * WHERE A AS x FILTER x.i != x.d").run(events)
    assert [match["x"] for match in found] == [events.slice(0, 1).to_pylist()]


@pytest.mark.parametrize("beyond", [10**25, -(10**25), 2**64 + 5])
def test_a_number_that_its_type_cannot_have_is_null_where_events_are_compared(beyond: int) -> None:
    halves = np.array([[500, 0], [beyond & (2**64 - 1), (beyond >> 64) & (2**64 - 1)], [700, 0]], np.uint64)
    forged = pa.Array.from_buffers(KIND, 3, [None, pa.py_buffer(halves.tobytes())])
    events = pa.table({"type": ["A", "A", "A"], "ts": [1, 2, 3], "v": forged})
    found = cepheid.query("SELECT * WHERE A AS x ; A AS y FILTER y.v != x.v").run(events)
    assert [(match.start, match.end) for match in found] == [(0, 2)]
