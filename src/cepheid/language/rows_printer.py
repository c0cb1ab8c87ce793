"""The text of a MATCH_RECOGNIZE clause, so that parsing it gives the same tree; see printer.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cepheid.language import rows_syntax as rows
from cepheid.language.limits import check_size
from cepheid.language.printer import Expressions, count_text, duration_text
from cepheid.language.words import is_plain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cepheid.language import syntax

KEYWORDS = frozenset(
    (
        "ALL",
        "AFTER",
        "AS",
        "DEFINE",
        "MEASURES",
        "ONE",
        "ORDER",
        "PARTITION",
        "PATTERN",
        "PERMUTE",
        "SUBSET",
        "WITHIN",
        "FIRST",
        "LAST",
        "NEXT",
    )
)
"""Variables that are quoted, for somewhere in a clause a word is meant."""

SIGNS = {(0, None): "*", (1, None): "+", (0, 1): "?"}
"""The quantifiers with a sign of their own, by their bounds."""


def rows_text(node: syntax.Node, *, indent: int | None = None) -> str:
    """The canonical text of a clause, a pattern or an expression.

    Args:
        node: the tree. `parse_rows(rows_text(clause)) == clause`, and so with `parse_row_pattern` and `parse_row_expression`.
        indent: None for one line; otherwise every part of the clause stands on a line of its own, and what it lists by so many spaces to the right.

    Raises:
        LimitError: the tree is larger or deeper than a text may be.
    """
    check_size(node)
    if isinstance(node, rows.RowClause):
        return _clause(node, indent)
    return pattern_text(node) if isinstance(node, rows.RowPattern) else _RowExpressions().write(node)  # type: ignore[arg-type]  # no third kind


def variable_text(name: str) -> str:
    """The name of a pattern variable as it is written: in double quotes where it is not a plain word in capitals."""
    return name if is_plain(name) and name == name.upper() and name not in KEYWORDS else _quoted(name)


def name_text(name: rows.Name) -> str:
    """A name in an expression as it is written."""
    return _quoted(name.text) if name.quoted else name.text


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _clause(clause: rows.RowClause, indent: int | None) -> str:
    write = _RowExpressions().write
    lists: list[tuple[str, Iterable[str]]] = [
        ("PARTITION BY", map(name_text, clause.partition_by)),
        ("ORDER BY", map(_order, clause.order_by)),
        ("MEASURES", (f"{write(each.expression)} AS {name_text(each.name)}" for each in clause.measures)),
        ("", [] if clause.shown is rows.Shown.ONE_ROW else [clause.shown.value]),
        ("", [] if clause.after == rows.After(rows.Skip.PAST_LAST_ROW) else [_after(clause.after)]),
        ("", [f"PATTERN ({pattern_text(clause.pattern)})"]),
        ("WITHIN", [] if clause.within is None else [duration_text(clause.within)]),
        ("SUBSET", (f"{variable_text(each.name)} = ({', '.join(map(variable_text, each.variables))})" for each in clause.subsets)),
        ("DEFINE", (f"{variable_text(each.variable)} AS {write(each.condition)}" for each in clause.defines)),
    ]
    between = ", " if indent is None else ",\n" + " " * indent
    parts = [f"{word} {between.join(items)}".strip() for word, items in ((word, list(items)) for word, items in lists) if items]
    return (" " if indent is None else "\n").join(parts)


def _order(order: rows.Order) -> str:
    nulls = "" if order.nulls_first is None else f" NULLS {'FIRST' if order.nulls_first else 'LAST'}"
    return f"{name_text(order.column)}{' DESC' * order.descending}{nulls}"


def _after(after: rows.After) -> str:
    variable = "" if after.variable is None else f" {variable_text(after.variable)}"
    return f"AFTER MATCH SKIP {after.skip.value}{variable}"


def pattern_text(pattern: rows.RowPattern) -> str:
    """The text of a row pattern."""
    match pattern:
        case rows.Variable(name):
            return variable_text(name)
        case rows.Concatenation(items):
            return " ".join(_grouped(item, rows.Concatenation, rows.Alternation) for item in items)
        case rows.Alternation(operands):
            return " | ".join(_grouped(operand, rows.Alternation) for operand in operands)
        case rows.Quantified(inner, _, _, reluctant):
            return f"{_grouped(inner, rows.Concatenation, rows.Alternation, rows.Quantified)}{_quantifier(pattern)}{'?' * reluctant}"
        case rows.Permutation(operands):
            return f"PERMUTE({', '.join(map(pattern_text, operands))})"
        case rows.Exclusion(inner):
            return f"{{- {pattern_text(inner)} -}}"
        case rows.PartitionStart():
            return "^"
        case rows.PartitionEnd():
            return "$"
        case _:
            return "()"


def _grouped(pattern: rows.RowPattern, *kinds: type[rows.RowPattern]) -> str:
    written = pattern_text(pattern)
    return f"({written})" if isinstance(pattern, kinds) else written


def _quantifier(pattern: rows.Quantified) -> str:
    least, most = pattern.minimum, pattern.maximum
    if isinstance(least, int) and (most is None or isinstance(most, int)) and (least, most) in SIGNS:
        return SIGNS[least, most]
    if least == most:
        return f"{{{count_text(least)}}}"
    return f"{{{count_text(least)},{'' if most is None else count_text(most)}}}"


class _RowExpressions(Expressions):
    """Writes the expressions of a clause."""

    def plainly(self, expression: syntax.Expression) -> str:
        """The text without parentheses around it."""
        match expression:
            case rows.Reference(names):
                return ".".join(map(name_text, names))
            case rows.RowsOf(variable):
                return f"{name_text(variable)}.*"
            case rows.RowCall(name, arguments, star, distinct, semantics, where):
                before = "" if semantics is None else f"{semantics.value} "
                behind = "" if where is None else f" FILTER (WHERE {self.write(where)})"
                return f"{before}{name}({'DISTINCT ' * distinct}{'*' if star else self.listed(arguments)}){behind}"
            case rows.Array(items):
                return f"ARRAY[{self.listed(items)}]"
            case rows.Cast(operand, kind):
                return f"CAST({self.write(operand)} AS {kind})"
            case _:
                return super().plainly(expression)
