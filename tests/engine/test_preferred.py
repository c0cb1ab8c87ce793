"""Row patterns whose conditions look at no match: the two passes beside the definition, and the places of a pattern."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from cepheid.automata import places
from cepheid.automata.places import ACCEPT, places_of
from cepheid.engine.evaluations import preferred
from cepheid.engine.evaluations.preferred import Preferred, PreferredTables
from cepheid.errors import InputError, LimitError
from cepheid.kernel import available
from cepheid.language.rows_parser import parse_rows
from cepheid.language.rows_printer import rows_text
from cepheid.logical.rows_bind import bind_rows
from cepheid.testing import reference_rows
from cepheid.testing.reference_rows import matches, partitions
from cepheid.testing.row_clauses import some_clause, some_rows

if TYPE_CHECKING:
    from cepheid.logical.rows import RowPlan

FLAGS = pa.schema([(name, pa.bool_()) for name in ("a", "b", "c", "d")])


def planned(pattern: str, skip: str = "") -> RowPlan:
    """A pattern of variables that are columns."""
    text = f"MEASURES 1 AS one {skip} PATTERN ({pattern})"
    names = bind_rows(parse_rows(text), FLAGS).variables
    return bind_rows(
        parse_rows(text + f" DEFINE {', '.join(f'{name} AS {name.lower()}' for name in names)}" * bool(names)), FLAGS, text=text
    )


def letters_of(plan: RowPlan, rows: list[Any]) -> np.ndarray[Any, Any]:
    holds = [[name not in plan.conditions or row[name.lower()] is True for name in plan.variables] for row in rows]
    return np.array([sum(1 << place for place, held in enumerate(each) if held) for each in holds], np.uint64)


def found(tables: PreferredTables, letters: np.ndarray[Any, Any], cuts: list[int], variant: str) -> list[tuple[Any, ...]] | str:
    """The matches as (start, variables, excluded), or which error there is."""
    own = tables.places
    try:
        given = Preferred(tables, letters, np.array(cuts), variant=variant).matches()
    except InputError as error:
        return "absent" if "has no row" in error.fact else "first"
    pieces = [given.places[start:stop] for start, stop in zip(given.offsets, given.offsets[1:], strict=False)]
    return [
        (int(start), tuple(own.variables[own.variable[place]] for place in piece), tuple(own.excluded[place] for place in piece))
        for start, piece in zip(given.starts, pieces, strict=True)
    ]


def expected(plan: RowPlan, parts: list[list[Any]], cuts: list[int]) -> list[tuple[Any, ...]] | str:
    try:
        every = [
            (cut + match.start, match.variables, match.excluded)
            for part, cut in zip(parts, cuts, strict=False)
            for match in matches(plan, part)
        ]
    except InputError as error:
        return "absent" if "has no row" in error.fact else "first"
    return every


def test_random_clauses(cases: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that a pattern can have, in every variant of the kernel, with one pair of tables for several tables of rows."""
    monkeypatch.setattr(reference_rows, "MOST_STEPS", 100_000)
    dice, seen = random.Random(seed), Counter[str]()
    for _ in range(5 * cases):
        clause = some_clause(dice, depth=dice.choice((2, 3, 4)))
        plan = bind_rows(clause, some_rows(dice).schema)
        tables = PreferredTables(plan, places_of(plan))
        for _ in range(2):
            table = some_rows(dice)
            parts = partitions(plan, table)
            cuts = np.cumsum([0, *map(len, parts)]).tolist()
            letters = letters_of(plan, [row for part in parts for row in part])
            try:
                right = expected(plan, parts, cuts)
            except LimitError:
                seen["too long"] += 1
                continue
            for variant in available():
                assert found(tables, letters, cuts, variant) == right, f"{variant}\n{rows_text(clause)}\n{table.to_pylist()}"
            seen["error" if isinstance(right, str) else "empty" if any(not match[1] for match in right) else "matches"] += 1
    assert min(seen["matches"], seen["empty"], seen["error"]) > cases / 4
    assert seen["too long"] < cases / 4


@pytest.mark.parametrize(
    ("pattern", "count"),
    [
        ("A", 1),
        ("A+", 1),
        ("(A+)+ B", 2),
        ("(A*)+ B", 2),
        ("(A*){2,} B", 3),  # in the round that reaches the bound, and before it
        ("A{3}", 3),
        ("A{1,4}", 4),
        ("(A | B){2}", 4),
        ("PERMUTE(A, B, C, D)", 32),  # what is left, not how it came
        ("PERMUTE(A?, B)", 4),
        ("()", 0),
        ("^ A $", 1),
    ],
)
def test_places(pattern: str, count: int) -> None:
    assert len(places_of(planned(pattern))) == count


def test_ways_have_an_order() -> None:
    own = places_of(planned("A (B | A)*? B"))
    names = [own.variables[number] for number in own.variable]
    assert [names[place] for place in own.first[0]] == ["A"]
    assert [names[place] for place in own.following[own.first[0][0]]] == ["B", "B", "A"]
    assert own.following[own.following[0][0]] == (ACCEPT,)


def test_an_empty_round_that_reaches_the_lower_bound_ends_the_quantifier() -> None:
    """No random case has shown it: where it did not end it, the second round would take the first row as a B, and D* the second row."""
    plan = planned("(A | () | B){1,2} D* C")
    assert plan.variables == ("A", "B", "D", "C")
    letters = np.array([0b0010, 0b0101, 0b1000], np.uint64)  # B; A and D; C
    rows = [{name.lower(): bool(int(letter) >> place & 1) for place, name in enumerate(plan.variables)} for letter in letters]
    tables = PreferredTables(plan, places_of(plan))
    right = [(0, ("B", "A", "C"), (False,) * 3)]
    for variant in available():
        assert found(tables, letters, [0, 3], variant) == right
    assert [match.variables for match in matches(plan, rows)] == [names for _, names, _ in right]


def test_a_match_costs_its_length() -> None:
    """Whatever the pattern: the steps of the definition grow exponentially here."""
    rows = 50_000
    letters = np.ones(rows, np.uint64)
    for pattern in ("(A+)+ B", "A+ A+ A+ B", "A*? A*? A*? A*? B", "((A*)*)* B"):
        tables = PreferredTables(planned(pattern), places_of(planned(pattern)))
        assert found(tables, letters, [0, rows], available()[0]) == []
        assert len(tables.sets) == 1
        assert len(found(tables, np.append(letters, np.uint64(2)), [0, rows + 1], available()[0])) == 1


def test_many_matches_and_partitions() -> None:
    """Buffers grow, and partitions are told apart."""
    plan = planned("A+ B?", "AFTER MATCH SKIP TO NEXT ROW")
    tables = PreferredTables(plan, places_of(plan))
    cuts = [0, 0, 900, 901, 901, 1800]
    letters = np.array([1, 1, 3] * 600, np.uint64)
    for variant in available():
        given = found(tables, letters, cuts, variant)
        assert sorted({match[0] for match in given}) == list(range(1800))
        assert len(given) == 1800
        assert [len(match[1]) for match in given[:3]] == [900, 899, 898]


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LimitError, match="PLACES_LIMIT"):
        places_of(planned("(A{1000}){1000}"))
    with pytest.raises(LimitError, match="PLACES_LIMIT"):
        places_of(planned("(()){1000000} A"))
    with pytest.raises(LimitError, match="PERMUTED_LIMIT"):
        places_of(planned("PERMUTE(A?, A, A, A, A, A, A, A)"))
    monkeypatch.setattr(places, "PLACES_LIMIT", 5)
    with pytest.raises(LimitError, match="PLACES_LIMIT") as caught:
        places_of(planned("A{6}"))
    assert caught.value.span is not None
    plan = planned("(A | B){12} A (A | B)*")
    monkeypatch.setattr(places, "PLACES_LIMIT", 1000)
    monkeypatch.setattr(preferred, "SETS_LIMIT", 100)
    letters = np.random.default_rng(1).integers(1, 4, 2000).astype(np.uint64)
    with pytest.raises(LimitError, match="SETS_LIMIT"):
        found(PreferredTables(plan, places_of(plan)), letters, [0, 2000], available()[0])
    monkeypatch.setattr(preferred, "LETTERS_LIMIT", 2)
    with pytest.raises(LimitError, match="LETTERS_LIMIT"):
        found(PreferredTables(plan, places_of(plan)), letters, [0, 2000], available()[0])
