"""Patterns with many types and conditions: a type is a number in a letter, and conditions of the same events are one."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import cepheid

VARIANTS = ("compiled", "python", "checked")

TYPES = [f"T{number}" for number in range(200)]
MANY = pa.table(
    {
        "type": random.Random(1).choices([*TYPES, "A", "B"], weights=[*(1 for _ in TYPES), 40, 40], k=400),
        "ts": range(400),
        "k": [number % 3 for number in range(400)],
        **{f"c{number}": random.Random(number).choices([0, 1], weights=[1, 300], k=400) for number in range(125)},
    }
)
CONDITIONS = " AND ".join(f"x.c{number} > 0" for number in range(125))


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT * WHERE A AS x ; ({' OR '.join(TYPES)}) AS y WITHIN 20",
        f"SELECT NXT * WHERE A AS x ; ({' OR '.join(TYPES)}) AS y WITHIN 20",
        f"SELECT LAST * WHERE A AS x : ({' OR '.join(TYPES)}) AS y WITHIN 20 CONSUME BY PARTITION",
        f"SELECT COUNT(*) WHERE A ; ({' OR '.join(TYPES)}) ; B PARTITION BY k WITHIN 20",
        f"SELECT * WHERE NXT(A ; ({' OR '.join(TYPES)}) AS y) ; B WITHIN 20",
        f"SELECT * WHERE ({' OR '.join(TYPES)}) AS x ; B AS y FILTER x.c1 > 0 AND y.c2 > 0 WITHIN 20",
        f"SELECT * WHERE A AS x NOT FOLLOWED BY ({' OR '.join(TYPES)}) FOR 3",
        f"SELECT * WHERE A AS x ; B AS y FILTER {CONDITIONS} AND y.c0 > 0 WITHIN 10",
        f"SELECT MAX * WHERE (A AS x ; B AS y)+ FILTER {CONDITIONS} WITHIN 5",
    ],
)
def test_many_types_and_conditions(text: str) -> None:
    query = cepheid.query(text)
    events = MANY.slice(0, 60) if "MAX" in text else MANY  # the definition lists what a window leaves out, too
    widths = [program.automaton.alphabet.event_bits for program in query.compiled(query.schema(MANY.schema)).programs]
    assert max(widths) <= 12
    wanted = query.run(events, engine="reference").to_arrow().to_pylist()
    assert wanted
    for variant in VARIANTS:
        assert sorted(map(repr, query.run(events, engine=variant).to_arrow().to_pylist())) == sorted(map(repr, wanted))
