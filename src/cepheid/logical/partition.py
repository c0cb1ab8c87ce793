"""Equalities and partitions: the rules `one_key` and `partition`.

Source: semantics of queries, section 4. `y.id = x.id AND z.id = x.id` over all events of a match says that they have one key, not NULL. Then the
engine may read the events of each key alone, without any correlation. This is correct only where no event of another key can matter; the tables below
list where one can. In doubt nothing is rewritten. With PARTITION BY the same holds within each partition. An equality of attributes of PARTITION BY
only says that they are not NULL, wherever it is.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING

from cepheid.language.syntax import Consumption, Strategy
from cepheid.logical import plan as logical
from cepheid.logical import types
from cepheid.logical.plan import Apply, Expression, Field, Filter, Pattern, QueryPlan
from cepheid.logical.take_apart import empty_names, never_empty, occupied
from cepheid.logical.tree import bottom_up, walk
from cepheid.logical.variables import defined, operands

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Equality = tuple[str, str, str]
"""An equality between the same attribute of two variables: the attribute, and the variables."""


def one_key(plan: QueryPlan) -> QueryPlan:
    """The plan with `y.id IS NOT NULL` for each `x.id = y.id` under PARTITION BY id: there all events have one, if not NULL; itself without such.

    The condition must not come to be asked of matches without an x, where all of it holds: of x and y, one that is never empty is left out. Linear
    in the plan.
    """
    if not plan.partition_by:
        return plan
    may_be_empty = empty_names(plan.pattern)

    def changed(pattern: Pattern) -> Pattern:
        if not isinstance(pattern, Filter):
            return pattern
        conditions = tuple(_not_null(condition, pattern.pattern, plan.partition_by, may_be_empty) for condition in pattern.conditions)
        same = conditions == pattern.conditions
        return pattern if same else dataclasses.replace(pattern, conditions=tuple(dict.fromkeys(conditions)))

    pattern = bottom_up(plan.pattern, changed)
    return plan if pattern is plan.pattern else dataclasses.replace(plan, pattern=pattern)


def _not_null(condition: Expression, pattern: Pattern, keys: tuple[str, ...], may_be_empty: frozenset[str]) -> Expression:
    """A condition on a pattern with its equalities of keys taken for what they say of one side."""
    always = never_empty(condition, pattern, may_be_empty)

    def changed(node: Expression) -> Expression:
        sides = _same_attribute(node)
        if sides is None or sides[0].path[0] not in keys:
            return node
        shown = next((shown for shown, hidden in (sides, sides[::-1]) if hidden.variable in always), None)
        return node if shown is None else dataclasses.replace(types.always(shown), span=node.span)

    return logical.transform(condition, changed)


def partition(plan: QueryPlan) -> QueryPlan:
    """The plan with derived keys instead of the equalities that say the same; the plan itself where that is not the same.

    The attributes come in the order in which the equalities are written. What else the conditions say stays. Linear in the plan.
    """
    if any(forbids(plan) for forbids in FORBIDDEN_QUERIES.values()):
        return plan
    if any(forbids(node) for node in walk(plan.pattern) for forbids in FORBIDDEN_PATTERNS.values()):
        return plan
    keys = list(plan.keys)
    pattern = _without_keys(plan.pattern, keys)
    if len(keys) == len(plan.keys):
        return plan
    return dataclasses.replace(plan, pattern=pattern, derived_keys=tuple(keys[len(plan.partition_by) :]))


def asks_for(kind: type[Expression]) -> Callable[[Pattern], bool]:
    """Whether a pattern is a FILTER with a leaf of a kind in a condition."""
    return lambda pattern: (
        isinstance(pattern, Filter) and any(isinstance(node, kind) for condition in pattern.conditions for node in logical.walk(condition))
    )


FORBIDDEN_QUERIES: dict[str, Callable[[QueryPlan], bool]] = {
    "SELECT STRICT": lambda plan: plan.strategy is Strategy.STRICT,
    "CONSUME BY": lambda plan: plan.consume is not Consumption.NONE,
}
"""What a query may not have, for events of other keys would matter: in the stream without PARTITION BY, with it in one of its partitions."""

FORBIDDEN_PATTERNS: dict[str, Callable[[Pattern], bool]] = {
    ":": lambda node: isinstance(node, logical.Sequence) and any(link.operator == ":" for link in node.links),
    "THEN": lambda node: isinstance(node, logical.Sequence) and any(link.operator == "THEN" for link in node.links),
    "; NOT n ;": lambda node: isinstance(node, logical.Sequence) and any(link.without is not None for link in node.links),
    ":+": lambda node: isinstance(node, logical.Iterate) and node.adjacent,
    "a nested strategy": lambda node: isinstance(node, logical.Select) and node.strategy is not Strategy.ALL,
    "WITHIN n EVENTS": lambda node: isinstance(node, logical.WithinEvents),
    "UNLESS": lambda node: isinstance(node, logical.Unless),
    "NOT FOLLOWED BY": lambda node: isinstance(node, logical.Absence),
    "an event that a match makes": lambda node: isinstance(node, logical.Event) and node.spans,
    "$index": asks_for(logical.Index),
    "lag": asks_for(logical.Lag),
}
"""What a pattern may not have anywhere. Nested strategies compare matches before the equality has chosen; STRICT also counts the events between."""


def _without_keys(pattern: Pattern, keys: list[str]) -> Pattern:
    """The pattern without the equalities that are new keys, which are added to `keys`.

    Only a FILTER around the whole pattern speaks of all events; windows, AS and PROJECT may stand outside it.
    """
    if isinstance(pattern, logical.Within | logical.Named | logical.Project):
        below = _without_keys(pattern.pattern, keys)
        return pattern if below is pattern.pattern else dataclasses.replace(pattern, pattern=below)
    if not isinstance(pattern, Filter):
        return pattern
    equalities = {
        condition: equality for condition in pattern.conditions if (equality := _equality(condition, pattern.pattern)) is not None
    }
    attributes = dict.fromkeys(attribute for attribute, _, _ in equalities.values())
    found = [name for name in attributes if name not in keys and _is_key(name, equalities.values(), pattern.pattern)]
    below = _without_keys(pattern.pattern, keys)
    keys += [attribute for attribute in found if attribute not in keys]
    if not found and below is pattern.pattern:
        return pattern
    kept = tuple(condition for condition in pattern.conditions if condition not in equalities or equalities[condition][0] not in found)
    return dataclasses.replace(pattern, pattern=below, conditions=kept) if kept else below


def _equality(condition: Expression, pattern: Pattern) -> Equality | None:
    """The equality that a condition is, between two variables that are visible in the pattern under it."""
    sides = _same_attribute(condition)
    if sides is None or not {side.variable for side in sides} <= defined(pattern):
        return None
    left, right = sides
    return left.path[0], left.variable, right.variable


def _same_attribute(condition: Expression) -> tuple[Field, Field] | None:
    """The sides of an equality between the same attribute of two variables."""
    match condition:
        case Apply(operator="=", arguments=(Field(previous=False) as left, Field(previous=False) as right)):
            same = left.path == right.path and len(left.path) == 1 and left.type == right.type and left.source == right.source
            return (left, right) if same and left.variable != right.variable else None
    return None


def _is_key(attribute: str, equalities: Iterable[Equality], pattern: Pattern) -> bool:
    """Whether the equalities over an attribute join all events of every match.

    At least two variables that always have a position must be joined: these have one key in all their positions, whatever else is empty.
    A variable that may be empty can hang on one of them, and its positions then have that key.
    """
    pairs = [(left, right) for name, left, right in equalities if name == attribute]
    always = occupied(pattern)
    joined = _component([pair for pair in pairs if always.issuperset(pair)])
    if len(joined) < 2:
        return False
    hanging = {variable for pair in pairs for variable in pair if joined & set(pair)}
    return covers(pattern, frozenset(joined | hanging))


def _component(pairs: list[tuple[str, str]]) -> set[str]:
    """The variables that are joined with the first pair, directly or not."""
    joined = set(pairs[0]) if pairs else set()
    for _ in pairs:
        joined |= set(itertools.chain.from_iterable(pair for pair in pairs if joined & set(pair)))
    return joined


def covers(pattern: Pattern, variables: frozenset[str]) -> bool:
    """Whether every event of every match stands in one of some variables, visibly."""
    match pattern:
        case logical.Event():
            return pattern.variable in variables
        case logical.Named(variable=variable) if variable in variables:
            return covers(pattern.pattern, variables | defined(pattern.pattern))
        case logical.Project(variables=shown):
            return covers(pattern.pattern, variables & shown)
    return all(covers(operand, variables) for operand in operands(pattern))
