"""MATCH_RECOGNIZE by its definition: the cases that are retold from the suites of other engines, and what they leave open."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cepheid.errors import BindError, CepheidError, InputError, LimitError, QuerySyntaxError
from cepheid.language.rows_parser import parse_rows
from cepheid.logical.rows_bind import bind_rows
from cepheid.testing import reference_rows
from cepheid.testing.reference_rows import match_rows

CASES = json.loads((Path(__file__).parents[1] / "cases/match_recognize.json").read_text(encoding="utf-8"))["cases"]

KINDS = {"int": pa.int64(), "double": pa.float64(), "string": pa.string(), "boolean": pa.bool_(), "timestamp": pa.timestamp("us")}

ERRORS: dict[str, type[CepheidError]] = {"syntax": QuerySyntaxError, "skip-first": InputError, "skip-absent": InputError}
"""By the kind of an expected error its class; BindError of all others."""


def stored(value: Any, kind: str) -> Any:
    return dt.datetime.fromisoformat(value) if kind == "timestamp" and value is not None else value


def table_of(case: dict[str, Any]) -> pa.Table:
    columns = [pa.array([stored(row[place], kind) for row in case["rows"]], KINDS[kind]) for place, (_, kind) in enumerate(case["columns"])]
    return pa.table(columns, names=[name for name, _ in case["columns"]])


def run(clause: str, table: pa.Table, **args: object) -> pa.Table:
    return match_rows(bind_rows(parse_rows(clause), table.schema, args=args, text=clause), table)


def shown(value: Any) -> Any:
    """A value as it is compared: numbers by value, doubles to nine digits."""
    if isinstance(value, list):
        return tuple(map(shown, value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return round(float(value), 9) if math.isfinite(value) else value


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_cases(case: dict[str, Any]) -> None:
    table = table_of(case)
    if case["expected_error"]:
        with pytest.raises(ERRORS.get(case["expected_error"], BindError)) as caught:
            run(case["clause"], table)
        assert caught.value.help
        return
    names = [name for name, _ in case["expected_columns"]]
    found = [tuple(shown(row[name]) for name in names) for row in run(case["clause"], table).to_pylist()]
    kinds = [kind for _, kind in case["expected_columns"]]
    expected = [tuple(shown(stored(value, kind)) for value, kind in zip(row, kinds, strict=True)) for row in case["expected"]]
    assert found == expected if case["ordered"] else Counter(found) == Counter(expected)


# --------------------------------------------------------------------------------------------------------------- what they leave open

ROWS = pa.table({"k": [1, 1, 2, None, 2, None], "t": [1, 2, 3, 4, 5, 6], "v": [5, 7, None, 2, 9, 3]})


def values(clause: str, table: pa.Table = ROWS, **args: object) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in run(clause, table, **args).to_pylist()]


def test_null_is_a_partition() -> None:
    assert values("PARTITION BY k ORDER BY t MEASURES COUNT(*) AS n PATTERN (A+)") == [(1, 2), (2, 2), (None, 2)]


def test_the_columns_of_all_rows() -> None:
    found = run("PARTITION BY k ORDER BY v DESC, t MEASURES COUNT(*) AS n ALL ROWS PER MATCH PATTERN (A+)", ROWS)
    assert found.column_names == ["k", "v", "t", "n"]
    assert found.column("v").to_pylist() == [7, 5, 9, None, 3, 2]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("v", [3, 4, 6, 1, 2, 5]),
        ("v DESC", [5, 2, 1, 6, 4, 3]),
        ("v NULLS LAST", [4, 6, 1, 2, 5, 3]),
        ("v DESC NULLS FIRST", [3, 5, 2, 1, 6, 4]),
    ],
)
def test_where_null_stands(order: str, expected: list[int]) -> None:
    assert run(f"ORDER BY {order} MEASURES 1 AS one ALL ROWS PER MATCH PATTERN (A+)", ROWS).column("t").to_pylist() == expected


def test_equal_rows_stay_as_they_come() -> None:
    table = pa.table({"o": [1, 0, 1, 0], "i": [0, 1, 2, 3]})
    assert run("ORDER BY o ALL ROWS PER MATCH PATTERN (A+)", table).column("i").to_pylist() == [1, 3, 0, 2]
    assert run("ORDER BY o DESC ALL ROWS PER MATCH PATTERN (A+)", table).column("i").to_pylist() == [0, 2, 1, 3]


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("v > 4", [True, True, False, False, True, False]),
        ("NOT v > 4", [False, False, False, True, False, True]),
        ("NOT (v > 4 AND k = 1)", [False, False, True, True, True, True]),
        ("v IN (5, 2)", [True, False, False, True, False, False]),
        ("v NOT IN (5, 2)", [False, True, False, False, True, True]),
        ("v NOT IN (5, NULL)", [False] * 6),
        ("v NOT BETWEEN 3 AND 7", [False, False, False, True, True, False]),
        ("(v > 4) IS NULL", [False, False, True, False, False, False]),
        ("(v > 4) = (k = 1)", [True, True, False, False, False, False]),
        ("NOT NULL", [False] * 6),
        ("CASE WHEN v > 4 THEN FALSE WHEN v IS NULL THEN NULL ELSE TRUE END", [False, False, False, True, False, True]),
        ("NOT CASE WHEN v > 4 THEN FALSE WHEN v IS NULL THEN NULL ELSE TRUE END", [True, True, False, False, True, False]),
        ("ARRAY[v, 1] = ARRAY[5, 1]", [True, False, False, False, False, False]),
        ("ARRAY[v, 1] <> ARRAY[5, 2]", [True] * 6),
        ("NOT ARRAY[v] = ARRAY[5]", [False, True, False, True, True, True]),
    ],
)
def test_conditions_have_three_values(condition: str, holds: list[bool]) -> None:
    found = values(f"ORDER BY t MEASURES MATCH_NUMBER() AS n ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (A) DEFINE A AS {condition}")
    assert [row[1] is not None for row in found] == holds


def test_a_condition_as_a_measure_may_be_null() -> None:
    found = values("ORDER BY t MEASURES v > 4 AS a, NOT v > 4 AS b, v IN (5, NULL) AS c, v IS NULL AS d ALL ROWS PER MATCH PATTERN (A+)")
    assert [row[1:5] for row in found] == [
        (True, False, True, False),
        (True, False, None, False),
        (None, None, None, True),
        (False, True, None, False),
        (True, False, None, False),
        (False, True, None, False),
    ]


def test_columns_without_regard_to_case() -> None:
    table = pa.table({"Price": [1, 2], "x": [1, 2], "X": [3, 4]})
    assert values('MEASURES A.PRICE AS p, "x" AS q, X AS r PATTERN (A)', table) == [(1, 1, 3), (2, 2, 4)]
    with pytest.raises(BindError, match="there is no column `price`"):
        run('MEASURES A."price" AS p PATTERN (A)', table)
    with pytest.raises(BindError, match="several columns are called `x`"):
        run("MEASURES x AS p PATTERN (A)", table.rename_columns(["Price", "x", "x"]))
    table = table.rename_columns(["Price", "aB", "Ab"])
    with pytest.raises(BindError, match="`ab` may be one of several columns"):
        run("MEASURES ab AS p PATTERN (A)", table)


def test_fields_and_variables() -> None:
    table = pa.table({"a": pa.array([{"v": 1, "deep": {"er": 2}}, None]), "t": [1, 2]})
    found = values('MEASURES A.a.v AS x, B.a.v AS y, FIRST("a".deep.er) AS z, a.t AS first PATTERN (A B)', table)
    assert found == [(1, None, 2, 1)]  # `a` is the variable, in quotes it is the column


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [
        ("COUNT(v)", 5),
        ("COUNT(*)", 6),
        ("COUNT(DISTINCT k)", 2),
        ("SUM(v)", 26),
        ("SUM(DISTINCT k)", 3),
        ("AVG(v)", 5.2),
        ("MIN(v)", 2),
        ("MAX(v)", 9),
        ("STDDEV(v)", 2.863564212655271),
        ("ARRAY_AGG(k)", [1, 1, 2, None, 2, None]),
        ("ARRAY_AGG(DISTINCT k)", [1, 2, None]),
        ("ARBITRARY(v)", 5),
        ("BOOL_AND(v > 1)", True),
        ("BOOL_OR(v > 9)", False),
        ("MAX_BY(t, v)", 5),
        ("MIN_BY(t, v)", 4),
        ("SUM(v) FILTER (WHERE k = 1)", 12),
        ("SUM(v) FILTER (WHERE k = 7)", None),
        ("COUNT(*) FILTER (WHERE k = 7)", 0),
        ("CARDINALITY(ARRAY_AGG(v))", 6),
        ("ARRAY_MAX(ARRAY_AGG(t))", 6),
        ("CAST(SUM(v) AS string) || 'x'", "26x"),
        ("CAST(AVG(v) AS int)", 5),
        ("MOD(SUM(v), 5)", 1),
        ("FIRST(v, 5)", 3),
        ("LAST(v, 6)", None),
        ("PREV(FIRST(v, 3), 2)", 7),
        ("NEXT(FIRST(v), 9)", None),
        (":n + 1", 42),
    ],
)
def test_measures(aggregate: str, expected: object) -> None:
    ((found,),) = values(f"ORDER BY t MEASURES {aggregate} AS m PATTERN (A+)", n=41)
    assert found == (pytest.approx(expected) if isinstance(expected, float) else expected)


def test_aggregates_of_nothing() -> None:
    measures = "COUNT(*) AS a, COUNT(v) AS b, SUM(v) AS c, ARRAY_AGG(v) AS d, MAX_BY(v, t) AS e, CLASSIFIER() AS f, MATCH_NUMBER() AS g"
    assert values(f"MEASURES {measures} PATTERN (())", ROWS.slice(0, 1)) == [(0, 0, None, None, None, None, 1)]


def test_within_is_less_than_its_bound() -> None:
    table = pa.table({"t": pa.array([0, 59, 60, 120, None], pa.timestamp("s"))})
    clause = "ORDER BY t NULLS LAST MEASURES COUNT(*) AS n PATTERN (A+) WITHIN 1m"
    assert values(clause, table) == [(2,), (1,), (1,)]
    assert values(clause.replace("1m", "INTERVAL '61' SECOND"), table) == [(3,), (1,)]
    with pytest.raises(BindError, match="a duration without a unit"):
        values(clause.replace("1m", "60"), table)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("v / 2", [2.5, 3.5, None, 1.0, 4.5, 1.5]),
        ("v + 0.5", [5.5, 7.5, None, 2.5, 9.5, 3.5]),
        ("SUM(v) / COUNT(*)", [5.0, 6.0, 4.0, 3.5, 4.6, 26 / 6]),
        ("AVG(v) < v", [0.0, 1.0, None, 0.0, 1.0, 0.0]),
        ("COALESCE(v, 1e0)", [5.0, 7.0, 1.0, 2.0, 9.0, 3.0]),
        ("CARDINALITY(ARRAY[v, 1.5])", [2] * 6),
    ],
)
def test_values_of_other_rows_are_promoted(expression: str, expected: list[Any]) -> None:
    found = [row[1] for row in values(f"ORDER BY t MEASURES {expression} AS m ALL ROWS PER MATCH PATTERN (A+)")]
    assert [None if value is None else float(value) for value in found] == pytest.approx(expected)


def test_many_orders_are_tried_one_by_one() -> None:
    assert values("MEASURES COUNT(*) AS n PATTERN (PERMUTE(A, B, C, D, E, F, G, H, I, J, K, L))", pa.table({"x": range(24)})) == [
        (12,),
        (12,),
    ]


def test_a_search_that_takes_too_long_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference_rows, "MOST_STEPS", 1000)
    with pytest.raises(LimitError, match="MOST_STEPS"):
        run("MEASURES 1 AS one PATTERN ((A+)+ B) DEFINE B AS FALSE", pa.table({"x": range(30)}))


@pytest.mark.parametrize(
    ("clause", "fact", "help_"),
    [
        ("MEASURES prce AS p PATTERN (A)", "there is no column `prce`", "did you mean `price`?"),
        ("MEASURES B.price AS p PATTERN (A)", "`B` is neither a variable of the pattern nor a column", "the variables are: `A`"),
        ("MEASURES A AS p PATTERN (A)", "`A` is a variable, not a value", "A.x"),
        ("MEASURES CLASSIFIER AS p PATTERN (A)", "`CLASSIFIER` is a function", "CLASSIFIER()"),
        ("MEASURES LAG(price) AS p PATTERN (A)", "unknown function `LAG`", "PREV(x)"),
        ("MEASURES MATCH_ROWTIME() AS p PATTERN (A)", "unknown function", "LAST(ts)"),
        ("MEASURES SUMM(price) AS p PATTERN (A)", "unknown function `SUMM`", "did you mean `sum`?"),
        ("MEASURES SUM(name) AS p PATTERN (A)", "SUM does not take string", "numbers"),
        ("MEASURES SUM(*) AS p PATTERN (A)", "SUM(*) has no meaning", "SUM(A.x)"),
        ("MEASURES COUNT(B.*) AS p PATTERN (A)", "`B` is neither", "`A`"),
        ("MEASURES SUM(A.*) AS p PATTERN (A)", "SUM takes a value, not whole rows", "COUNT(A.*)"),
        ("MEASURES LOWER(DISTINCT name) AS p PATTERN (A)", "DISTINCT has no meaning in LOWER", "aggregates"),
        ("MEASURES FINAL LOWER(name) AS p PATTERN (A)", "FINAL is said of FIRST, LAST and aggregates", "leave FINAL out"),
        ("MEASURES FIRST(SUM(price)) AS p PATTERN (A)", "SUM is inside FIRST", "compute with both outside"),
        ("MEASURES PREV(price, 1000001) AS p PATTERN (A)", "MAX_OFFSET", "parts"),
        ("MEASURES CAST(name AS int) AS p PATTERN (A)", "string cannot be cast to int64", "in the input"),
        ("MEASURES CAST(price AS int128) AS p PATTERN (A)", "unknown type `int128`", "decimal(10,2)"),
        ("MEASURES ARRAY[1, 'x'] AS p PATTERN (A)", "the items of an ARRAY have one type", "cast"),
        ("MEASURES price AS p PATTERN (A) DEFINE A AS price", "a condition is TRUE or FALSE, this is int64", "compare"),
        ("MEASURES price AS p PATTERN (A) DEFINE A AS name > 1", "string cannot be compared with int64", ""),
        ("MEASURES price AS p PATTERN (A) SUBSET A = (A)", "`A` is a variable of the pattern", "another name"),
        ("MEASURES price AS p PATTERN (A OR B)", "`OR` is no variable", "PATTERN (A | B)"),
        ("MEASURES price AS p, name AS p PATTERN (A)", "two columns of the result are called `p`", "another name"),
        ("MEASURES name AS price ALL ROWS PER MATCH PATTERN (A)", "two columns of the result are called `price`", "another name"),
        ("MEASURES price AS p PATTERN (A) WITHIN 5", "WITHIN bounds the first column of ORDER BY", "ORDER BY"),
        ("ORDER BY price MEASURES price AS p PATTERN (A) WITHIN 0", "no row is less than 0", "above 0"),
        ("ORDER BY ts MEASURES price AS p PATTERN (A)", "there is no column `ts`", "the columns are"),
        ("PARTITION BY ts MEASURES price AS p PATTERN (A)", "there is no column `ts`", "the columns are"),
        ("ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (A {- B -})", "rows are left out", "{-"),
        ("PARTITION BY tags MEASURES price AS p PATTERN (A)", "PARTITION BY compares values, and `tags` is list", "add a column"),
        ("ORDER BY tags MEASURES price AS p PATTERN (A)", "ORDER BY compares values", "add a column"),
        ("PARTITION BY name, NAME MEASURES price AS p PATTERN (A)", "`name` is named twice in PARTITION BY", "once"),
        ("MEASURES COUNT(DISTINCT tags) AS p PATTERN (A)", "DISTINCT compares values", "an element"),
        ("MEASURES COUNT(DISTINCT A.*) AS p PATTERN (A)", "DISTINCT takes a value, not whole rows", "COUNT(DISTINCT A.x)"),
        ("ORDER BY price DESC MEASURES price AS p PATTERN (A) WITHIN 2", "ORDER BY goes back in time", "ascending"),
        ("MEASURES CLASSIFIER(price) AS p PATTERN (A)", "CLASSIFIER takes a variable", "CLASSIFIER(A)"),
        ("MEASURES price AS p PATTERN (A{:n})", "no value for parameter `:n`", "args="),
    ],
)
def test_errors_say_what_to_write(clause: str, fact: str, help_: str) -> None:
    with pytest.raises(BindError) as caught:
        run(clause, pa.table({"price": [1], "name": ["x"], "tags": [["y"]]}))
    assert fact in str(caught.value)
    assert help_ in "\n".join(caught.value.help)
    assert caught.value.span is not None
