"""Conditions of HAVING that a larger match meets if a smaller one does: whether a trigger has a match that meets one, its largest matches say.

Comes in: a bound pattern and the condition. Goes out: whether it is so for any events. Linear in both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cepheid.logical import plan
from cepheid.logical.plan import Apply, Field, Literal
from cepheid.logical.types import FLIPPED
from cepheid.logical.variables import operands

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cepheid.logical.plan import Expression, Pattern

UP = frozenset({"count", "count_distinct", "max"})
"""Measures of a variable that do not fall when it gets more events. (Not sum: an event may have less than 0.)"""


def grows(pattern: Pattern, condition: Expression) -> bool:
    """Whether a match meets the condition if another of the same trigger does whose events are among its own."""
    if any(isinstance(node, plan.Project | plan.Select) for node in _parts(pattern)):
        return False  # a match may begin before the first event that it shows
    leaves = list(_leaves(pattern, frozenset()))
    names = frozenset().union(*(variables for _, variables in leaves))
    return _grows(condition, {name for name in names if _is_of_types(leaves, name)})


def _is_of_types(leaves: list[tuple[str | None, frozenset[str]]], name: str) -> bool:
    """Whether the type of an event of a match says if it is in a variable; leaves: types of events, with their variables."""
    inside = {kind for kind, variables in leaves if name in variables}
    outside = {kind for kind, variables in leaves if name not in variables}
    return not outside or (not inside & outside and None not in inside | outside)


def _leaves(pattern: Pattern, around: frozenset[str]) -> Iterator[tuple[str | None, frozenset[str]]]:
    if isinstance(pattern, plan.Event):
        yield pattern.type, around | {pattern.variable}
    if isinstance(pattern, plan.Named):
        around |= {pattern.variable}
    for part in operands(pattern):
        yield from _leaves(part, around)


def _grows(condition: Expression, variables: set[str]) -> bool:
    """The same; variables: those that have whichever of the match's events can be in them."""
    if not isinstance(condition, Apply):
        return False
    if condition.operator in {"and", "or"}:
        return all(_grows(part, variables) for part in condition.arguments)
    if condition.operator not in {"<", "<=", ">", ">="}:
        return False
    measure, bound = condition.arguments
    operator = condition.operator
    if isinstance(measure, Literal):
        measure, bound, operator = bound, measure, FLIPPED[operator]
    if not isinstance(measure, Apply) or not isinstance(bound, Literal):
        return False
    if measure.operator == "duration":
        return operator in {">", ">="}
    if measure.operator not in UP | {"min"} or not all(
        isinstance(each, Field) and each.variable in variables for each in measure.arguments
    ):
        return False
    return operator in ({"<", "<="} if measure.operator == "min" else {">", ">="})


def _parts(pattern: Pattern) -> Iterator[Pattern]:
    yield pattern
    for part in operands(pattern):
        yield from _parts(part)
