"""MATCH_RECOGNIZE: the text of a clause to its tree and back, and what is said where it is no clause."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from lark.parsers.lalr_analysis import LALR_Analyzer
from loaded_scripts import script

from cepheid.errors import LimitError, NotSupportedError, QuerySyntaxError
from cepheid.language import rows_syntax as rows
from cepheid.language import syntax
from cepheid.language.diagnose import END
from cepheid.language.rows_actions import RowActions
from cepheid.language.rows_parser import PHRASES, parse_row_expression, parse_row_pattern, parse_rows
from cepheid.language.rows_printer import rows_text
from cepheid.language.tables import ROWS

if TYPE_CHECKING:
    from lark import Lark

CASES = json.loads((Path(__file__).parents[1] / "cases/match_recognize.json").read_text(encoding="utf-8"))["cases"]

MAKER = script("tables")
"""What compiles the grammar with lark."""


@pytest.fixture(scope="module")
def lark() -> Lark:
    return MAKER.compiled(ROWS, strict=True)


# ------------------------------------------------------------------------------------------------------------------- the grammar


def test_the_grammar_has_no_conflict(lark: Lark) -> None:
    LALR_Analyzer(lark.parser.parser_conf, strict=True).compute_lalr()  # type: ignore[attr-defined]


def test_every_rule_has_a_method(lark: Lark) -> None:
    helpers = {rule.origin.name for rule in lark.rules if rule.origin.name.startswith("_")}
    names = {rule.alias or rule.origin.name for rule in lark.rules} - helpers
    missing = {str(name) for name in names if not hasattr(RowActions, str(name))}
    assert missing <= {rule.origin.name for rule in lark.rules if rule.options.expand1 and rule.alias is None and len(rule.expansion) == 1}


def test_every_terminal_has_words(lark: Lark) -> None:
    spoken = {terminal for _, needed, besides in PHRASES for terminal in f"{needed} {besides}".split()}
    assert {terminal.name for terminal in lark.terminals} - {"SKIPPED"} == spoken - {END}


# --------------------------------------------------------------------------------------------------------------- trees and texts


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
@pytest.mark.parametrize("indent", [None, 4])
def test_the_text_of_a_clause_is_that_of_its_tree(case: dict[str, Any], indent: int | None) -> None:
    if case["expected_error"] == "syntax":
        with pytest.raises(QuerySyntaxError):
            parse_rows(case["clause"])
        return
    tree = parse_rows(case["clause"])
    assert parse_rows(rows_text(tree, indent=indent)) == tree
    assert parse_rows(f"match_recognize ( {case['clause']} )") == tree


def some_pattern(dice: random.Random, depth: int) -> rows.RowPattern:
    """Any pattern."""
    inner = [lambda: some_pattern(dice, depth - 1)] * 7 if depth else []
    several = lambda: tuple(some_pattern(dice, depth - 1) for _ in range(dice.randint(2, 3)))  # noqa: E731 - three kinds have several
    made = [
        lambda: rows.Variable(dice.choice(["A", "B", "PERMUTE", "a", 'b "x"', "FIRST", "\u00c4", "AS", "ALL", "PATTERN"])),
        dice.choice([rows.Empty, rows.PartitionStart, rows.PartitionEnd]),
        *(
            [
                lambda: rows.Concatenation(several()),
                lambda: rows.Alternation(several()),
                lambda: rows.Permutation(several()),
                lambda: rows.Exclusion(inner[0]()),
                lambda: rows.Quantified(
                    inner[0](), *dice.choice([(0, None), (1, None), (0, 1), (2, 2), (2, None), (0, 3)]), dice.random() < 0.5
                ),
                lambda: rows.Quantified(inner[0](), syntax.Parameter("n"), dice.choice([None, syntax.Parameter("m")]), dice.random() < 0.5),
            ]
            if depth
            else []
        ),
    ]
    return dice.choice(made)()


def test_the_text_of_a_pattern_is_that_of_its_tree(cases: int, seed: int) -> None:
    dice = random.Random(seed)
    kinds = set()
    for _ in range(20 * cases):
        tree = some_pattern(dice, dice.randint(0, 4))
        kinds.add(type(tree))
        assert parse_row_pattern(rows_text(tree)) == tree, tree
    assert len(kinds) == 9


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("final sum( distinct A.x ) FILTER(where b.y>1)", "FINAL sum(DISTINCT A.x) FILTER (WHERE b.y > 1)"),
        ('array[ 1,"x", `y z` ]', 'ARRAY[1, "x", "y z"]'),
        ("cast(x as DECIMAL(10, 2)) || 'a'", "concat(CAST(x AS decimal(10,2)), 'a')"),
        ("count(A.*) + COUNT(*)", "count(A.*) + COUNT(*)"),
        ("NOT (x IS NULL or y between 1 and 2) and z in (:a, 2)", "NOT (x IS NULL OR y BETWEEN 1 AND 2) AND z IN (:a, 2)"),
        ("t - PREV(t, 2) < interval '5' minute", "t - PREV(t, 2) < 5m"),
        ("case when a.b.c = 1 then 'x' end", "CASE WHEN a.b.c = 1 THEN 'x' END"),
        ("x -- a comment\n = /* another */ -1", "x = -1"),
    ],
)
def test_expressions(text: str, written: str) -> None:
    tree = parse_row_expression(text)
    assert rows_text(tree) == written
    assert parse_row_expression(written) == tree


def test_variables_are_in_capitals_unless_they_are_quoted() -> None:
    tree = parse_rows('PATTERN (a "a" `b c`) SUBSET u = (a, "a") DEFINE a AS x > 0 AFTER MATCH SKIP TO u')
    assert tree.pattern == rows.Concatenation((rows.Variable("A"), rows.Variable("a"), rows.Variable("b c")))
    assert (tree.subsets[0].name, tree.subsets[0].variables) == ("U", ("A", "a"))
    assert tree.after == rows.After(rows.Skip.TO_LAST, "U")
    assert rows_text(tree) == 'AFTER MATCH SKIP TO LAST U PATTERN (A "a" "b c") SUBSET U = (A, "a") DEFINE A AS x > 0'


def test_comments_and_signs_that_look_like_them() -> None:
    tree = rows.Concatenation((rows.Exclusion(rows.Variable("A")), rows.Variable("B")))
    for text in ("{-A-}B", "{- A -- the end -}\n-} B", "/* {- */ {- A -} B"):
        assert parse_row_pattern(text) == tree
    with pytest.raises(QuerySyntaxError, match="found `-`"):
        parse_row_pattern("{- A --} B\n -} B")  # no comment


# ------------------------------------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("text", "fact", "help_"),
    [
        ("", "the clause is empty", "the shortest clause is PATTERN (A)"),
        ("SELECT * FROM t", "expected MATCH_RECOGNIZE or one of its parts", "this is a whole statement"),
        ("MEASURES n PATTERN (A)", "expected AS, found `PATTERN`", "a measure has a name: write it behind AS"),
        ("PATTERN (A ; B)", "expected a pattern", "variables stand one behind the other"),
        ("PATTERN (A -> B)", "expected a pattern", "variables stand one behind the other"),
        ("PATTERN A", "expected `(`", "the pattern stands in parentheses"),
        ("PATTERN (A++)", "found `+`", "there is no possessive quantifier"),
        ("PATTERN (A | )", "expected a pattern", "an alternative without rows is written ()"),
        ("PATTERN (A{2-3})", "found `-`", "write {2,5}"),
        ("PATTERN (A) DEFNE A AS x", "found `DEFNE`", "did you mean DEFINE?"),
        ("PATTERN (A) DEFINE A x > 1", "expected AS", "write DEFINE A AS and the condition"),
        ("MEASURES FINAL x AS z PATTERN (A)", "expected a navigation or an aggregate", ""),
        ("PATTERN (A) WITHIN 5 parsecs", "found `parsecs`", "the units are"),
        ("PATTERN (A) WITHIN INTERVAL '1:30' HOUR", "this INTERVAL is no number of one unit", "write INTERVAL '5' MINUTE"),
        ("MATCH_RECOGNIZE (PATTERN (A)) AS m", "found `AS`", "belongs to the statement"),
        ("PATTERN (A) PATTERN (B)", "PATTERN is written twice", "once"),
        ("DEFINE A AS x > 1", "there is no PATTERN", "write PATTERN (A B+)"),
        ("ONE ROW PER MATCH OMIT EMPTY MATCHES PATTERN (A)", "behind ALL ROWS PER MATCH alone", "leave this out"),
        ("AFTER MATCH SKIP PATTERN (A)", "expected PAST LAST ROW or TO", "write AFTER MATCH SKIP PAST LAST ROW"),
        ("INITIAL PATTERN (A)", "found `INITIAL`", "leave it out"),
        ('MEASURES x AS "a PATTERN (A)', "a name in double quotes is empty or not closed", "single quotes"),
        ("PATTERN (A", "found the end of the clause", "not closed: the `(` in line 1, column 9"),
        ("PATTERN (A);", "found `;`", "leave out the `;`"),
    ],
)
def test_errors_say_what_to_write(text: str, fact: str, help_: str) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        parse_rows(text)
    assert fact in caught.value.fact
    assert help_ in "\n".join(caught.value.help)
    assert caught.value.span is not None


@pytest.mark.parametrize(
    ("condition", "what", "place"),
    [
        ("x > (SELECT max(y) FROM t)", "subqueries", "SELECT"),
        ("x > (SELECT 1)", "subqueries", "SELECT"),
        ("x IN (SELECT y FROM t)", "subqueries", "SELECT"),
        ("EXISTS (SELECT 1)", "subqueries", "SELECT"),
        ("x > (with t as (select 1) select 2)", "subqueries", "with"),
        ("SUM(x) OVER (PARTITION BY y) > 1", "window functions", "OVER"),
        ("SUM(x) over () > 1", "window functions", "over"),
    ],
)
def test_what_sql_has_beside_it(condition: str, what: str, place: str) -> None:
    with pytest.raises(NotSupportedError, match=what) as caught:
        parse_rows(f"PATTERN (A) DEFINE A AS {condition}")
    assert caught.value.text is not None
    assert caught.value.span is not None
    assert caught.value.text[caught.value.span.start : caught.value.span.end] == place


def test_limits() -> None:
    with pytest.raises(LimitError, match="MAX_NESTING"):
        parse_rows(f"PATTERN ({'(' * 200}A{')' * 200})")
    with pytest.raises(LimitError, match="MAX_SYMBOLS"):
        parse_rows(f"PATTERN ({'A ' * 30_000})")
    with pytest.raises(LimitError, match="MAX_TEXT"):
        parse_rows("PATTERN (A)" + " " * 1_000_000)
