"""From the rules of match_recognize.lark to nodes: one method per rule, as in actions.py, whose methods make constants and operators."""

# ruff: noqa: D102 - what a method stands for is written in match_recognize.lark, under the same name

from __future__ import annotations

import dataclasses
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from cepheid.errors import LimitError, QuerySyntaxError
from cepheid.language import rows_syntax as rows
from cepheid.language import syntax
from cepheid.language.actions import (
    DurationActions,
    ExpressionActions,
    Piece,
    QueryActions,
    check_digits,
    has,
    nodes,
    span_of,
    taking,
    unquote,
    whole,
)
from cepheid.language.limits import MAX_DIGITS
from cepheid.language.words import UNITS

if TYPE_CHECKING:
    from collections.abc import Callable

    from cepheid.errors import Span

SHOWN = {"SHOW": rows.Shown.SHOW_EMPTY, "OMIT": rows.Shown.OMIT_EMPTY, "WITH": rows.Shown.UNMATCHED}

PARTS = {
    "partition_by": "PARTITION BY",
    "order_by": "ORDER BY",
    "measures": "MEASURES",
    "shown": "ROWS PER MATCH",
    "after": "AFTER MATCH SKIP",
    "pattern": "PATTERN",
    "within": "WITHIN",
    "subsets": "SUBSET",
    "defines": "DEFINE",
}
"""By the field of `rows_syntax.RowClause` what a part of the clause is called."""


def variable_of(written: Any) -> str:
    """The name of a pattern variable: in capitals unless it is quoted."""
    return unquote(written) if written.type == "QUOTED" else str(written).upper()


def name_of(written: Any) -> rows.Name:
    """A name in an expression."""
    quoted = written.type == "QUOTED"
    return rows.Name(unquote(written) if quoted else str(written), quoted, span=span_of(written))


def listed_as(field: str, kind: type[syntax.Node]) -> Callable[[Any, list[Any]], Piece]:
    """The method of a part of the clause that is a list of nodes."""
    return lambda _, children: Piece((field, nodes(children, kind)), whole(children))


class ClauseActions:
    """The rules of the clause."""

    def clause_start(self, children: list[Any]) -> Any:
        return children[0]

    row_pattern_start = clause_start
    expression_start = clause_start

    def wrapped(self, children: list[Any]) -> rows.RowClause:
        found: rows.RowClause = dataclasses.replace(children[2], span=whole(children))
        return found

    def clause(self, children: list[Any]) -> rows.RowClause:
        found: rows.RowClause = children[0]
        return found

    def parts(self, children: list[Any]) -> rows.RowClause:
        given: dict[str, Any] = {}
        places: list[tuple[str, tuple[Span, ...]]] = []
        for piece in children:
            field, value = piece.value
            if field in given:
                raise QuerySyntaxError(
                    f"{PARTS[field]} is written twice",
                    help="a part of MATCH_RECOGNIZE can be there once: put both into one",
                    span=piece.span,
                )
            given[field] = value
            places.append((field, (piece.span,)))
        if "pattern" not in given:
            raise QuerySyntaxError(
                "there is no PATTERN", help="write PATTERN (A B+) with a variable for each kind of row", span=whole(children)
            )
        return rows.RowClause(**given, span=whole(children), places=tuple(places))

    def part(self, children: list[Any]) -> Any:
        return children[0]

    partition = listed_as("partition_by", rows.Name)
    ordering = listed_as("order_by", rows.Order)
    measures = listed_as("measures", rows.Measure)
    subsets = listed_as("subsets", rows.Subset)
    defines = listed_as("defines", rows.Define)

    def rows_per_match(self, children: list[Any]) -> Piece:
        chosen = rows.Shown.ONE_ROW if has(children, "ONE") else rows.Shown.SHOW_EMPTY
        for piece in (child for child in children if isinstance(child, Piece)):
            if chosen is rows.Shown.ONE_ROW:
                raise QuerySyntaxError(
                    "which rows are shown can be said behind ALL ROWS PER MATCH alone",
                    help="write ALL ROWS PER MATCH, or leave this out",
                    span=piece.span,
                )
            chosen = piece.value
        return Piece(("shown", chosen), whole(children))

    def shown(self, children: list[Any]) -> Piece:
        return Piece(SHOWN[children[0].upper()], whole(children))

    def after(self, children: list[Any]) -> Piece:
        skip = children[3]
        return Piece(("after", dataclasses.replace(skip, span=whole(children))), whole(children))

    def pattern(self, children: list[Any]) -> Piece:
        return Piece(("pattern", children[2]), whole(children))

    def within(self, children: list[Any]) -> Piece:
        return Piece(("within", children[1]), whole(children))

    def column(self, children: list[Any]) -> rows.Name:
        return name_of(children[0])

    def order(self, children: list[Any]) -> rows.Order:
        nulls_first = has(children, "FIRST") if has(children, "NULLS") else None
        return rows.Order(children[0], has(children, "DESC"), nulls_first, span=whole(children))

    def measure(self, children: list[Any]) -> rows.Measure:
        return rows.Measure(children[0], children[2], span=whole(children))

    def skip_past(self, children: list[Any]) -> rows.After:
        return rows.After(rows.Skip.PAST_LAST_ROW, span=whole(children))

    def skip_next(self, children: list[Any]) -> rows.After:
        return rows.After(rows.Skip.TO_NEXT_ROW, span=whole(children))

    def skip_to(self, children: list[Any]) -> rows.After:
        skip = rows.Skip.TO_FIRST if has(children, "SKIP_FIRST") else rows.Skip.TO_LAST
        name = children[-1]
        return rows.After(skip, name.value, span=whole(children), places=(("variable", name.places),))

    def subset(self, children: list[Any]) -> rows.Subset:
        name, *own = (child for child in children if isinstance(child, Piece))
        places = (("name", name.places), ("variables", tuple(each.span for each in own)))
        return rows.Subset(name.value, tuple(each.value for each in own), span=whole(children), places=places)

    def define(self, children: list[Any]) -> rows.Define:
        name = children[0]
        return rows.Define(name.value, children[2], span=whole(children), places=(("variable", name.places),))

    def variable(self, children: list[Any]) -> Piece:
        return Piece(variable_of(children[0]), span_of(children[0]))


class RowPatternActions:
    """The rules of PATTERN."""

    def row_pattern(self, children: list[Any]) -> rows.Alternation:
        return rows.Alternation(tuple(children[::2]), span=whole(children))

    def concatenation(self, children: list[Any]) -> rows.Concatenation:
        return rows.Concatenation(tuple(children), span=whole(children))

    def quantified(self, children: list[Any]) -> rows.Quantified:
        pattern, quantifier = children
        return rows.Quantified(pattern, *quantifier.value, span=whole(children), places=(("minimum", quantifier.places),))

    def sign(self, children: list[Any]) -> Piece:
        minimum, maximum = {"*": (0, None), "+": (1, None), "?": (0, 1)}[children[0]]
        return Piece((minimum, maximum, len(children) == 2), whole(children))

    def braces(self, children: list[Any]) -> Piece:
        return Piece((*children[1].value, len(children) == 4), whole(children))

    def bounds(self, children: list[Any]) -> Piece:
        counts = [child.value for child in children if isinstance(child, Piece)]
        if counts and len(children) == 1:
            return Piece((counts[0], counts[0]), whole(children))
        first = isinstance(children[0], Piece)
        minimum = counts[0] if first else 0
        maximum = (counts[1] if len(counts) == 2 else None) if first else (counts[0] if counts else None)
        return Piece((minimum, maximum), whole(children))

    def row_variable(self, children: list[Any]) -> rows.Variable:
        return rows.Variable(children[0].value, span=children[0].span)

    def grouped(self, children: list[Any]) -> syntax.Node:
        node: syntax.Node = dataclasses.replace(children[1], span=whole(children))
        return node

    def empty(self, children: list[Any]) -> rows.Empty:
        return rows.Empty(span=whole(children))

    def permutation(self, children: list[Any]) -> rows.Permutation:
        return rows.Permutation(nodes(children, rows.RowPattern), span=whole(children))

    exclusion = taking(rows.Exclusion, 1)

    def partition_start(self, children: list[Any]) -> rows.PartitionStart:
        return rows.PartitionStart(span=whole(children))

    def partition_end(self, children: list[Any]) -> rows.PartitionEnd:
        return rows.PartitionEnd(span=whole(children))


class RowExpressionActions(ExpressionActions):
    """The rules of expressions that those of queries do not have."""

    def parenthesized(self, children: list[Any]) -> syntax.Node:
        node: syntax.Node = dataclasses.replace(children[1], span=whole(children))
        return node

    def path(self, children: list[Any]) -> Piece:
        return Piece(tuple(map(name_of, children[::2])), whole(children))

    def reference(self, children: list[Any]) -> rows.Reference:
        return rows.Reference(children[0].value, span=children[0].span)

    def rows_of(self, children: list[Any]) -> rows.RowsOf:
        return rows.RowsOf(name_of(children[0]), span=whole(children))

    def function(self, children: list[Any]) -> rows.RowCall:
        arguments = nodes(children, syntax.Expression)
        star = len(children) == 4 and not arguments
        places = (("name", (span_of(children[0]),)),)
        return rows.RowCall(str(children[0]), arguments, star, has(children, "DISTINCT"), span=whole(children), places=places)

    def row_call(self, children: list[Any]) -> rows.RowCall:
        found = nodes(children, rows.RowCall)[0]
        semantics = next((each for each in rows.Semantics if has(children[:1], each.value)), None)
        where = children[-2] if has(children, "FILTER") else None
        return dataclasses.replace(found, semantics=semantics, where=where, span=whole(children))

    def concatenated(self, children: list[Any]) -> rows.RowCall:
        places = (("name", (span_of(children[1]),)),)
        return rows.RowCall("concat", nodes(children, syntax.Expression), span=whole(children), places=places)

    def interval_value(self, children: list[Any]) -> syntax.DurationValue:
        return syntax.DurationValue(interval_of(children), span=whole(children))

    def array(self, children: list[Any]) -> rows.Array:
        return rows.Array(nodes(children, syntax.Expression), span=whole(children))

    def cast(self, children: list[Any]) -> rows.Cast:
        kind = children[4]
        return rows.Cast(children[2], kind.value, span=whole(children), places=(("type", kind.places),))

    def type(self, children: list[Any]) -> Piece:
        for number in children[2::2]:
            check_digits(number)
        return Piece("".join(map(str, children)).lower(), whole(children))


class RowDurationActions:
    """The rules of durations."""

    duration = DurationActions.duration

    def interval(self, children: list[Any]) -> syntax.Duration:
        return interval_of(children)

    integer = QueryActions.integer
    count_parameter = QueryActions.count_parameter


def interval_of(children: list[Any]) -> syntax.Duration:
    """`INTERVAL '5' MINUTE` as a duration.

    Raises:
        QuerySyntaxError: it is no number of one unit.
    """
    _, written, word = children
    text, unit = unquote(written).strip(), UNITS.get(word.lower())
    if unit is None or re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", text) is None:
        raise QuerySyntaxError(
            "this INTERVAL is no number of one unit", help="write INTERVAL '5' MINUTE, or 5m, 90s, 12h, 7d", span=whole(children)
        )
    if len(text) > MAX_DIGITS:
        raise LimitError(
            f"a number has {len(text)} digits; the limit is {MAX_DIGITS} (MAX_DIGITS)", help="use a larger unit", span=whole(children)
        )
    return syntax.Duration(Decimal(text), unit, span=whole(children))


class RowActions(ClauseActions, RowPatternActions, RowExpressionActions, RowDurationActions):
    """A method for every rule of the grammar."""
