"""Walking and rebuilding pattern trees, shared by all rewrite rules.

Patterns are immutable: a change below makes new nodes above, each with the span of the node it replaces; a subtree that does not change stays the
same object, so a test of identity shows whether a rule did anything.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from cepheid.errors import LimitError
from cepheid.logical import plan
from cepheid.logical.plan import Filter, Or, Pattern
from cepheid.records import names_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cepheid.errors import Span
    from cepheid.logical.plan import Expression


def map_children(pattern: Pattern, change: Callable[[Pattern], Pattern]) -> Pattern:
    """The pattern with `change` applied to each pattern directly below it, negated ones too; itself if nothing changes."""
    changes: dict[str, Any] = {}
    for name in names_of(pattern.__class__, compared=True):
        before = getattr(pattern, name)
        after = _mapped(before, change)
        if after is not before:
            changes[name] = after
    return dataclasses.replace(pattern, **changes) if changes else pattern


def _mapped(value: object, change: Callable[[Pattern], Pattern]) -> object:
    if isinstance(value, Pattern):
        return change(value)
    if isinstance(value, plan.Link) and value.without is not None:
        without = change(value.without)
        return value if without is value.without else dataclasses.replace(value, without=without)
    if isinstance(value, tuple):
        mapped = tuple(_mapped(item, change) for item in value)
        return value if all(after is before for after, before in zip(mapped, value, strict=True)) else mapped
    return value


def bottom_up(pattern: Pattern, change: Callable[[Pattern], Pattern]) -> Pattern:
    """The pattern with `change` applied to every node, the nodes below it first. Linear in the tree."""
    return change(map_children(pattern, lambda child: bottom_up(child, change)))


def walk(pattern: Pattern) -> Iterator[Pattern]:
    """The pattern and everything below it, negated patterns too, outer nodes first."""
    todo = [pattern]
    while todo:
        node = todo.pop()
        yield node
        todo.extend(reversed(list(node.children())))


MAX_EXPANSION = 10_000
"""Operators and atoms that a rule may make of one pattern."""


def size(pattern: Pattern) -> int:
    """The number of operators and atoms in a pattern, written out as a tree; linear in its distinct nodes, which rules share."""
    sizes: dict[int, int] = {}

    def counted(node: Pattern) -> int:
        if id(node) not in sizes:
            sizes[id(node)] = 1 + sum(map(counted, node.children()))
        return sizes[id(node)]

    return counted(pattern)


def check_expansion(given: int, what: str, span: Span) -> None:
    """Raises LimitError when `what`, at `span`, would become more than `MAX_EXPANSION` operators and atoms."""
    if given > MAX_EXPANSION:
        raise LimitError(
            f"{what} stands for a pattern of {given} operators, and the limit is {MAX_EXPANSION} (MAX_EXPANSION)",
            span=span,
            help=(
                "split the query, or lower counts and the number of optional items and conditions",
                "cepheid.logical.tree.MAX_EXPANSION is the limit",
            ),
        )


def conditions_of(pattern: Pattern) -> Iterator[tuple[Filter, Expression]]:
    """Every condition in a pattern, with the FILTER it stands in."""
    for node in walk(pattern):
        if isinstance(node, Filter):
            for condition in node.conditions:
                yield node, condition


OF_ONE_EVENT = (plan.Event, plan.Named, plan.Or, plan.Project, plan.Select, plan.Filter, plan.Within, plan.WithinEvents)
"""Patterns whose matches have one event, if those below them have: how it stands to others does not matter."""


def is_of_one_event(pattern: Pattern) -> bool:
    """Whether each match has one event."""
    return all(isinstance(node, OF_ONE_EVENT) for node in walk(pattern))


def union(operands: list[Pattern], *, like: Pattern) -> Pattern:
    """The OR of one or more patterns, equal ones once, with the span of `like`."""
    distinct = list(dict.fromkeys(operands))
    return distinct[0] if len(distinct) == 1 else Or(tuple(distinct), span=like.span)


def filtered(pattern: Pattern, conditions: tuple[Expression, ...]) -> Pattern:
    """`p FILTER ..`, joined with a FILTER that p is, each condition once; p itself without conditions."""
    if isinstance(pattern, Filter):
        joined = tuple(dict.fromkeys((*pattern.conditions, *conditions)))
        return pattern if joined == pattern.conditions else dataclasses.replace(pattern, conditions=joined)
    return Filter(pattern, tuple(dict.fromkeys(conditions)), span=pattern.span) if conditions else pattern


def about(condition: Expression, variable: str) -> Expression:
    """A condition over one variable, said of another one."""

    def renamed(node: Expression) -> Expression:
        if isinstance(node, plan.Field | plan.Time | plan.Index) and node.variable != variable:
            return dataclasses.replace(node, variable=variable)
        return node

    return plan.transform(condition, renamed)
