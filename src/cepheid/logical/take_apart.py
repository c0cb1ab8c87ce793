"""The rule `take_apart`: AND, OR and NOT across variables become OR of patterns with local conditions.

Source: foundations-cel, section 3 (the syntactic sugar of FILTER). That is for variables with one position. For sets we use: "for every choice of x
and y: c(x) or d(y)" is "for every x: c(x), or for every y: d(y)". So a conjunctive normal form works for every variable. A disjunctive normal form,
which can be shorter, needs one position for each variable.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import pyarrow as pa

from cepheid.errors import LimitError
from cepheid.logical.plan import Apply, Expression, Filter, Literal, Named, Pattern, is_local, variables_of
from cepheid.logical.simplify import FALSE, is_true
from cepheid.logical.tree import bottom_up, check_expansion, filtered, size, union, walk
from cepheid.logical.variables import defined, variable_sizes

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_BRANCHES = 256
"""Branches that the conditions of one FILTER may be taken apart into."""

Group = dict[str, Expression]
"""Local conditions, one for each variable: joined by OR (a clause of a conjunction) or by AND (a term of a disjunction)."""

Alternatives = tuple[tuple[Expression, ...], ...]
"""Of these, all conditions of one must hold."""


def take_apart(pattern: Pattern) -> Pattern:
    """The pattern with every condition that is a boolean combination of local ones replaced by OR of local FILTERs.

    `p FILTER (x.a > 1 OR y.b < 2)` is `(p FILTER x.a > 1) OR (p FILTER y.b < 2)`. A condition that compares two variables anywhere is a
    correlation and stays. Exponential in the condition: raises LimitError past `MAX_BRANCHES`, and past
    `MAX_EXPANSION` operators.
    """
    may_be_empty = empty_names(pattern)
    return bottom_up(pattern, lambda node: _of_filter(node, may_be_empty) if isinstance(node, Filter) else node)


def empty_names(pattern: Pattern) -> frozenset[str]:
    """The variables that can be empty although they are bound."""
    return frozenset(node.variable for node in walk(pattern) if isinstance(node, Named) and not occupied(node.pattern))


def never_empty(condition: Expression, pattern: Pattern, may_be_empty: frozenset[str]) -> frozenset[str]:
    """Of the variables of a condition on a pattern those that have a position in every match; may_be_empty: `empty_names` of the whole pattern.

    What the pattern does not define is bound around it.
    """
    return variables_of(condition) & occupied(pattern) | (variables_of(condition) - defined(pattern) - may_be_empty)


def occupied(pattern: Pattern) -> frozenset[str]:
    """The visible variables that have a position in every match."""
    return frozenset(variable for variable, (least, _) in variable_sizes(pattern).items() if least >= 1)


def at_most_one(pattern: Pattern) -> frozenset[str]:
    """The visible variables that never have two positions in a match."""
    return frozenset(variable for variable, (_, most) in variable_sizes(pattern).items() if most is not None and most <= 1)


def _of_filter(pattern: Filter, may_be_empty: frozenset[str]) -> Pattern:
    stay: list[Expression] = []
    choices: list[Alternatives] = []
    taken = False
    for condition in pattern.conditions:
        found = None if is_local(condition) else _alternatives(condition, pattern.pattern, may_be_empty)
        if found is None:
            stay.append(condition)
        else:
            taken = True
            choices += found
    if not taken:
        return pattern
    if _branches(choices) > MAX_BRANCHES:
        raise _too_many(pattern.conditions[0])
    branches = [filtered(pattern.pattern, tuple(itertools.chain.from_iterable(branch))) for branch in itertools.product(*choices)]
    taken_apart = union(branches, like=pattern)
    check_expansion(size(taken_apart), "a FILTER that is taken apart", pattern.span)
    return filtered(taken_apart, tuple(stay))


def _alternatives(condition: Expression, pattern: Pattern, may_be_empty: frozenset[str]) -> list[Alternatives] | None:
    """What must hold instead of a condition: of each element one alternative. None for a correlation."""
    if not _is_combination(condition):
        return None
    variables = variables_of(condition)
    options: list[list[Alternatives]] = []
    clauses = _normal(condition, conjunctive=True)
    # A clause that leaves out a variable must not be asked of a match where that variable is empty: there, all of the condition holds.
    always = never_empty(condition, pattern, may_be_empty)
    if clauses is not None and all(variables - set(clause) <= always for clause in clauses):
        options.append([tuple((part,) for part in clause.values()) or ((FALSE,),) for clause in clauses])
    if variables <= occupied(pattern) & at_most_one(pattern):
        terms = _normal(condition, conjunctive=False)
        if terms is not None:
            options.append([tuple(tuple(term.values()) for term in terms) or ((FALSE,),)])
    elif clauses is None:
        raise _too_many(condition)
    return min(options, key=_branches, default=None)


def _branches(choices: Iterable[Alternatives]) -> int:
    return math.prod(len(choice) for choice in choices)


def _is_combination(condition: Expression) -> bool:
    """Whether AND, OR and NOT over conditions about one event each, or constants, are all there is."""
    if isinstance(condition, Apply) and condition.operator in CONNECTIVES and not is_local(condition):
        return all(map(_is_combination, condition.arguments))
    return isinstance(condition, Literal) or (is_local(condition) and bool(variables_of(condition)))


CONNECTIVES = frozenset({"and", "or", "not"})


def _normal(condition: Expression, *, conjunctive: bool, positive: bool = True) -> list[Group] | None:
    """The conjunctive (disjunctive) normal form of a condition or, not positive, of its complement; None past MAX_BRANCHES groups.

    TRUE is no clause at all or the empty term, FALSE the empty clause or no term at all.
    """
    if isinstance(condition, Literal):
        return [] if is_true(condition) is (positive is conjunctive) else [{}]
    if is_local(condition):
        (variable,) = variables_of(condition)
        return [{variable: condition if positive else _complement(condition)}]
    assert isinstance(condition, Apply)
    if condition.operator == "not":
        return _normal(condition.arguments[0], conjunctive=conjunctive, positive=not positive)
    joined = (condition.operator == "and") is (positive is conjunctive)
    word = "or" if conjunctive else "and"
    groups: list[Group] = [] if joined else [{}]
    for argument in condition.arguments:
        more = _normal(argument, conjunctive=conjunctive, positive=positive)
        if more is None or (not joined and len(groups) * len(more) > MAX_BRANCHES**2):
            return None
        groups = groups + more if joined else [_merged(left, right, word) for left in groups for right in more]
        groups = [group for position, group in enumerate(groups) if group not in groups[:position]]
        if len(groups) > MAX_BRANCHES:
            return None
    return groups


def _complement(condition: Expression) -> Expression:
    if isinstance(condition, Apply) and condition.operator == "not":
        return condition.arguments[0]
    return Apply("not", (condition,), pa.bool_(), span=condition.span)


def _merged(left: Group, right: Group, word: str) -> Group:
    """Two clauses in one (word "or"), or two terms ("and")."""
    merged = dict(left)
    for variable, condition in right.items():
        before = merged.get(variable)
        merged[variable] = condition if before is None else _joined(before, condition, word)
    return merged


def _joined(left: Expression, right: Expression, word: str) -> Expression:
    parts = (*_parts(left, word), *_parts(right, word))
    distinct = tuple(dict.fromkeys(parts))
    return distinct[0] if len(distinct) == 1 else Apply(word, distinct, pa.bool_(), span=left.span)


def _parts(condition: Expression, word: str) -> tuple[Expression, ...]:
    return condition.arguments if isinstance(condition, Apply) and condition.operator == word else (condition,)


def _too_many(condition: Expression) -> LimitError:
    return LimitError(
        f"a condition across variables needs more than {MAX_BRANCHES} branches when it is taken apart (MAX_BRANCHES)",
        span=condition.span,
        help=("write it as several queries, or compute it into a column", "cepheid.logical.take_apart.MAX_BRANCHES is the limit"),
    )
