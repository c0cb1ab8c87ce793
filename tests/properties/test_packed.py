"""Letters that are packed, as those of patterns with many types and conditions are: the same matches, in the same order, however they are evaluated."""

from __future__ import annotations

import dataclasses
import importlib
import random

import pyarrow as pa
import pytest

import cepheid
from cepheid.errors import LimitError
from cepheid.testing.differential import WAYS, Case, draw, whole
from cepheid.testing.generators import ABSENT, ENGINE, NESTED, WAITING, Fragment

VARIANTS = ("compiled", "python", "checked")
CONSTRUCT = importlib.import_module("cepheid.automata.construct")

GROUPS: dict[str, Fragment] = {
    "every SELECT": dataclasses.replace(ENGINE, strategies=("", "NXT", "LAST", "MAX", "ANY", "STRICT"), limit=0.3, count=0.2, consume=0.2),
    "patterns that wait": dataclasses.replace(WAITING, limit=0.3, count=0.2),
    "nested strategies": NESTED,
    "absences": ABSENT,
}


def packed(case: Case) -> Case:
    """The case with its query compiled anew: joined conditions, packed letters."""
    query = cepheid.query(case.query.text)
    compiled = query.compiled(query.schema(case.events.schema))
    assert all(program.automaton.alphabet.packed for program in compiled.programs)
    return dataclasses.replace(case, query=query)


@pytest.mark.parametrize("group", GROUPS)
def test_packed_letters_change_nothing(group: str, cases: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    matched = 0
    for case in draw(GROUPS[group], count=max(cases // 4, 10), seed=seed):
        try:
            expected = whole(case, None)
        except LimitError:  # of a nested strategy's automaton: a named limit, packed or not
            continue
        with monkeypatch.context() as patch:
            patch.setattr(CONSTRUCT, "PLAIN_BITS", -1)
            again = packed(case)
        way = list(WAYS)[case.number % len(WAYS)]
        variant = VARIANTS[case.number % len(VARIANTS)]
        assert whole(again, variant) == expected, f"{variant}\n{case}"
        assert WAYS[way](again, variant) == expected, f"{way}, {variant}\n{case}"
        matched += bool(expected)
    assert matched >= cases // 40


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
    ("text", "packs"),
    [
        (f"SELECT * WHERE A AS x ; ({' OR '.join(TYPES)}) AS y WITHIN 20", True),
        (f"SELECT NXT * WHERE A AS x ; ({' OR '.join(TYPES)}) AS y WITHIN 20", True),
        (f"SELECT LAST * WHERE A AS x : ({' OR '.join(TYPES)}) AS y WITHIN 20 CONSUME BY PARTITION", True),
        (f"SELECT COUNT(*) WHERE A ; ({' OR '.join(TYPES)}) ; B PARTITION BY k WITHIN 20", True),
        (f"SELECT * WHERE NXT(A ; ({' OR '.join(TYPES)}) AS y) ; B WITHIN 20", True),
        (f"SELECT * WHERE ({' OR '.join(TYPES)}) AS x ; B AS y FILTER x.c1 > 0 AND y.c2 > 0 WITHIN 20", True),
        (f"SELECT * WHERE A AS x NOT FOLLOWED BY ({' OR '.join(TYPES)}) FOR 3", True),
        (f"SELECT * WHERE A AS x ; B AS y FILTER {CONDITIONS} AND y.c0 > 0 WITHIN 10", False),
        (f"SELECT MAX * WHERE (A AS x ; B AS y)+ FILTER {CONDITIONS} WITHIN 5", False),
    ],
)
def test_many_types_and_conditions(text: str, packs: bool) -> None:
    query = cepheid.query(text)
    events = MANY.slice(0, 60) if "MAX" in text else MANY  # the definition lists what a window leaves out, too
    compiled = query.compiled(query.schema(MANY.schema))
    assert any(program.automaton.alphabet.packed for program in compiled.programs) is packs
    wanted = query.run(events, engine="reference").to_arrow().to_pylist()
    assert wanted
    for variant in VARIANTS:
        assert sorted(map(repr, query.run(events, engine=variant).to_arrow().to_pylist())) == sorted(map(repr, wanted))


def test_what_does_not_fit_says_what_it_needs() -> None:
    apart = " OR ".join(f"(A AS x FILTER x.c{number} > 0)" for number in range(62))
    with pytest.raises(
        LimitError, match=r"the 1 event types and 62 conditions of the query need 63 bits; the limit is 62 bits \(LETTER_BITS\)"
    ):
        cepheid.query(f"SELECT * WHERE {apart}").run(MANY)
