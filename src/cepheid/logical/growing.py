"""Conditions of HAVING that a larger match meets if a smaller one does: whether a trigger has a match that meets one, its largest matches say.

Comes in: a bound pattern and the condition. Goes out: whether it is so, and the sums that it asks about: these grow with a match only while what they
add is not negative, and while they stay in their type, for a sum that leaves it is NULL. Sums of doubles grow although they are rounded: they are
added from the first event to the last, and each addition gives no less for more. Linear in both. Also what a condition asks of all events together,
whatever the pattern: so much as no match can have before its events have it.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING

from cepheid.logical import plan
from cepheid.logical.plan import Apply, Field, Literal
from cepheid.logical.types import FLIPPED, is_number
from cepheid.logical.variables import operands
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cepheid.logical.plan import Expression, Pattern

UP = frozenset({"count", "count_distinct", "max"})
"""Measures of a variable that do not fall when it gets more events. (Not sum, unless it is known that no event has less than 0.)"""


@record
class Least:
    """At least so much of a measure is asked for: events (`count`, and for `count_distinct`), a sum, or one value beyond a bound (`max`, `min`)."""

    measure: str
    leaf: Field
    amount: float


Need = Least | tuple[str, tuple["Need", ...]]
"""What has to be there before a match can meet a condition; "and" or "or" of such."""


def needed(condition: Expression) -> Need | None:
    """What all events together need to have before any match of them can meet a condition; None: nothing is known of it."""
    if not isinstance(condition, Apply):
        return None
    if condition.operator in {"and", "or"}:
        parts = [needed(part) for part in condition.arguments]
        known = tuple(part for part in parts if part is not None)
        return (condition.operator, known) if known and (condition.operator == "and" or len(known) == len(parts)) else None
    found = _compared(condition)
    if found is None:
        return None
    measure, operator, bound = found
    leaf, value = measure.arguments[0] if measure.arguments else None, bound.value
    if not isinstance(leaf, Field) or isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    if measure.operator in {"count", "count_distinct"}:
        amount = float(value) if operator == ">=" else math.floor(value) + 1.0
        return Least("count", leaf, amount) if amount > 0 else None
    if len(leaf.path) != 1 or not is_number(leaf.type):
        return None
    if measure.operator == "sum" and value <= 0:
        return None
    return Least(measure.operator, leaf, float(value)) if measure.operator in {"sum", "min", "max"} else None


def grows(pattern: Pattern, condition: Expression) -> bool:
    """Whether a match meets the condition if another of the same trigger does whose events are among its own."""
    return sums_in(pattern, condition) == ()


def sums_in(pattern: Pattern, condition: Expression) -> tuple[Apply, ...] | None:
    """The sums that have to grow with a match, so that the condition does as in `grows`; None: then too it need not."""
    if any(isinstance(node, plan.Project | plan.Select) for node in _parts(pattern)):
        return None  # a match may begin before the first event that it shows
    leaves = list(_leaves(pattern, frozenset()))
    names = frozenset().union(*(variables for _, variables in leaves))
    return _sums(condition, {name for name in names if _is_of_types(leaves, name)})


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


def _sums(condition: Expression, variables: set[str]) -> tuple[Apply, ...] | None:
    """The same; variables: those that have whichever of the match's events can be in them."""
    if not isinstance(condition, Apply):
        return None
    if condition.operator in {"and", "or"}:
        parts = [_sums(part, variables) for part in condition.arguments]
        sums = dict.fromkeys(each for part in parts for each in part or ())
        return None if None in parts else tuple(sums)
    return _sums_compared(condition, variables)


def _compared(condition: Apply) -> tuple[Apply, str, Literal] | None:
    """A measure, how it is compared, and a constant, where the measure is to be large, or the least value small; None: it is something else."""
    if condition.operator not in {"<", "<=", ">", ">="}:
        return None
    measure, bound = condition.arguments
    operator = condition.operator
    if isinstance(measure, Literal):
        measure, bound, operator = bound, measure, FLIPPED[operator]
    if not isinstance(measure, Apply) or not isinstance(bound, Literal):
        return None
    return (measure, operator, bound) if operator in ({"<", "<="} if measure.operator == "min" else {">", ">="}) else None


def _sums_compared(condition: Apply, variables: set[str]) -> tuple[Apply, ...] | None:
    """The same, of a measure and a constant that are compared."""
    found = _compared(condition)
    if found is None:
        return None
    measure = found[0]
    if measure.operator == "duration":
        return ()
    if not all(isinstance(each, Field) and each.variable in variables for each in measure.arguments):
        return None
    if measure.operator == "sum":
        return (measure,)
    return () if measure.operator in UP | {"min"} else None


def _parts(pattern: Pattern) -> Iterator[Pattern]:
    """A pattern and those below it, without negated ones, which `tree.walk` has too: no event of these is in a match."""
    yield pattern
    for part in operands(pattern):
        yield from _parts(part)
