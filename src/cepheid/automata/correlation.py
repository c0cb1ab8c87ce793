"""What a condition between events keeps of them, and what it asks: its levels, and what a transition does to it.

A condition holds for every choice of one event for each of its variables, so each choice is checked at the LAST of its events: a transition that
marks one of the variables asks about what the others have so far, and then keeps its own event. Levels say which events are chosen together: level 0
has the variables of the filtered pattern, level j those that the j-th pattern around it supplies (semantics, section 2). Where a pattern begins anew,
what its level has is gone; the outermost one begins with nothing.

What the event of a transition does is a set of ACTIONS:

* (BEGIN, level): the pattern of the level begins. (NEXT, level): so does another iteration of it; what was kept for `prev` is now what `prev` means.
* (MATCH, 0): the filtered pattern is there, for a condition that speaks of no variable of it.
* (MARK, name): the event is one of the variable. (KEEP, name): the next iteration will call it `prev` of the variable.

There are two ways to keep events. A condition that is made of comparisons with one variable on each side keeps one value per side (`comparisons`),
and so does one that computes with one event of each variable (`computing`). Any other keeps sets of what it computes with (`choices`).
"""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING

from cepheid.logical.plan import leaves
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cepheid.logical.plan import Expression

Variable = tuple[str, bool]
"""A variable of a condition: its name, and whether it stands under prev."""

Action = tuple[str, str | int]
"""What an event does to a condition: a verb, and a variable's name or a level."""

MATCHED: Variable = ("", False)
"""What stands for the filtered pattern, as a variable of level 0, where a condition speaks of no variable of it."""

BEGIN, NEXT, MATCH, MARK, KEEP = "begin", "next", "match", "mark", "keep"

RESETS = frozenset({BEGIN, NEXT})
"""The verbs that leave nothing where nothing was kept."""


@record
class Correlation:
    """A condition of a FILTER with its levels: per level the variables that it supplies.

    Level 0 has none for a condition on outer variables alone.
    """

    condition: Expression
    levels: tuple[tuple[Variable, ...], ...]

    @property
    def variables(self) -> frozenset[Variable]:
        """The variables of the condition."""
        return variables(self.condition)

    @property
    def missing(self) -> frozenset[Variable]:
        """The variables that no level has yet."""
        return self.variables.difference(*self.levels)

    def visible(self, names: frozenset[str], *, previous: bool = False) -> frozenset[Variable]:
        """The missing variables among some names; previous: those under prev."""
        return frozenset(variable for variable in self.missing if variable[0] in names and variable[1] is previous)

    @property
    def top(self) -> int:
        """The outermost level."""
        return len(self.levels) - 1

    def supplied(self, variables: Iterable[Variable]) -> Correlation:
        """With another level around the others."""
        return dataclasses.replace(self, levels=(*self.levels, tuple(sorted(variables))))


_leaves = functools.cache(leaves)


def variables(expression: Expression) -> frozenset[Variable]:
    """The variables of an expression, each with whether it stands under prev."""
    return frozenset((leaf.variable, leaf.previous) for leaf in _leaves(expression))


def called(variable: Variable) -> str:
    """A variable as text."""
    name, previous = variable
    if variable == MATCHED:
        return "the filtered pattern"
    return f"prev({name})" if previous else name


def marked(actions: Iterable[Action]) -> list[Variable]:
    """The variables that an event is put in, in an order that no set decides."""
    return sorted((name, False) for verb, name in actions if verb == MARK and isinstance(name, str))


def placed(actions: Iterable[Action]) -> list[Variable]:
    """The variables that an event is put in, and first MATCHED where the filtered pattern is there."""
    return [*([MATCHED] if (MATCH, 0) in actions else []), *marked(actions)]
