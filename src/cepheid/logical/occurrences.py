"""How many positions the variables of a pattern can have in a match: at least one, at most one.

Where a variable has exactly one position, "for every position" is just that position; where it may have none, a condition about it holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cepheid.logical.plan import And, Event, Iterate, Named, Optional, Or, Pattern, Project
from cepheid.logical.variables import NOTHING, operands

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MANY = 2
"""Any number of positions from two on."""


def occupied(pattern: Pattern) -> frozenset[str]:
    """The visible variables that have a position in every match. Unlike `bound`, iterations count: they have an iteration."""
    match pattern:
        case Event():
            return frozenset({pattern.variable})
        case Named(variable=variable):
            below = occupied(pattern.pattern)
            return below | {variable} if below else below
        case Project(variables=variables):
            return occupied(pattern.pattern) & variables
        case Optional():
            return NOTHING
        case Or():
            return frozenset.intersection(*map(occupied, pattern.operands))
    return NOTHING.union(*map(occupied, operands(pattern)))


def at_most_one(pattern: Pattern) -> frozenset[str]:
    """The visible variables that never have two positions in a match."""
    return frozenset(variable for variable, most in _most(pattern)[0].items() if most < MANY)


def _most(pattern: Pattern) -> tuple[Mapping[str, int], int]:
    """For each visible variable, and for the support, the most positions: 0, 1 or MANY."""
    match pattern:
        case Event():
            return {pattern.variable: 1}, 1
        case Named(variable=variable):
            counts, support = _most(pattern.pattern)
            return {**counts, variable: support}, support
        case Project(variables=variables):
            counts, support = _most(pattern.pattern)
            shown = {name: most for name, most in counts.items() if name in variables}
            return shown, min(support, sum(shown.values()))
        case Iterate(maximum=maximum):
            counts, support = _most(pattern.pattern)
            times = 1 if maximum == 1 else MANY
            return {name: min(MANY, most * times) for name, most in counts.items()}, min(MANY, support * times)
        case Or() | And():
            return _combined(pattern, max)
    return _combined(pattern, lambda left, right: min(MANY, left + right))


def _combined(pattern: Pattern, combine: Callable[[int, int], int]) -> tuple[Mapping[str, int], int]:
    counts: dict[str, int] = {}
    support = 0
    for below, most in map(_most, operands(pattern)):
        counts.update({name: combine(counts.get(name, 0), found) for name, found in below.items()})
        support = combine(support, most)
    return counts, support
