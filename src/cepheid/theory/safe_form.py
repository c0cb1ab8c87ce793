"""Safe form: no AS variable twice in a sequence.

Source: foundations-cel, Theorem 1. There a variable holds one event, so `T AS x ; T AS x` has no matches and its disjunct is dropped. Here x is the
set of both events, and nothing may be dropped. Instead, the definitions get different names, conditions are copied to the new names, and the old
names are restored afterwards. So the form is linear in the pattern except for conditions, and comes with a renaming. It is not a rule for every
query, because construction does not need safe patterns.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import TYPE_CHECKING

from cepheid.errors import LimitError
from cepheid.logical import plan
from cepheid.logical.plan import Expression, Filter, Named, Pattern, Project, Sequence, variables_of
from cepheid.logical.simplify import reaching_out
from cepheid.logical.tree import map_children
from cepheid.logical.variables import all_defined, defined, named_outside_iterations, operands

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_COPIES = 1_000
"""Copies of one condition: the product of the numbers of names that its variables get."""


def safe_form(pattern: Pattern) -> tuple[Pattern, dict[str, str]]:
    """An equivalent pattern that is safe, and the renaming from its new variables (`x#2`, `x#3`, ..) to the old ones.

    With every `x#n` read as x, and their positions joined, the result has the matches of the pattern. Two kinds of variables keep their names, so the
    pattern may stay unsafe: those that a condition uses from outside its own FILTER (also through prev), because their binder would change, and those
    inside AND, whose operands must agree on names. Raises LimitError above `MAX_COPIES`.
    """
    names = _Names(taken=set(all_defined(pattern)), fixed=reaching_out(pattern))
    return names.of(pattern), names.renaming


@dataclasses.dataclass
class _Names:
    """The names of one pattern. taken: all names so far; fixed: variables that keep theirs; renaming: new name -> old one."""

    taken: set[str]
    fixed: frozenset[str]
    renaming: dict[str, str] = dataclasses.field(default_factory=dict)

    def of(self, pattern: Pattern) -> Pattern:
        """The safe form of a pattern."""
        match pattern:
            case plan.And():
                return pattern
            case Sequence():
                return self.of_sequence(pattern)
            case Project(variables=variables):
                below = self.of(pattern.pattern)
                shown = frozenset(name for name in defined(below) if self.renaming.get(name, name) in variables)
                return dataclasses.replace(pattern, pattern=below, variables=shown)
            case Filter(conditions=conditions):
                below = self.of(pattern.pattern)
                copies = tuple(copy for condition in conditions for copy in self.copied(condition, below))
                return dataclasses.replace(pattern, pattern=below, conditions=copies)
        return map_children(pattern, self.of)

    def of_sequence(self, sequence: Sequence) -> Pattern:
        """Items in order: a name that an item before has defined becomes a new one."""
        items: list[Pattern] = []
        used: set[str] = set()
        changed = map_children(sequence, self.of)
        assert isinstance(changed, Sequence)
        for item in changed.items:
            again = sorted((named_outside_iterations(item) & used) - self.fixed)
            items.append(_renamed(item, {name: self.fresh(name) for name in again}))
            used |= named_outside_iterations(items[-1])
        return dataclasses.replace(changed, items=tuple(items))

    def fresh(self, name: str) -> str:
        """A name that nothing has yet, like `x#2`."""
        old = self.renaming.get(name, name)
        new = next(new for number in itertools.count(2) if (new := f"{old}#{number}") not in self.taken)
        self.taken.add(new)
        self.renaming[new] = old
        return new

    def copied(self, condition: Expression, below: Pattern) -> list[Expression]:
        """A condition for every choice among the names that its variables have in `below`."""
        variables = sorted(variables_of(condition))
        visible = sorted(defined(below))
        names = [[name for name in visible if self.renaming.get(name, name) == variable] or [variable] for variable in variables]
        copies = math.prod(map(len, names))
        if copies > MAX_COPIES:
            raise LimitError(
                f"safe form would copy a condition {copies} times, and the limit is {MAX_COPIES} (MAX_COPIES)",
                span=condition.span,
                help="use different variables along the sequence",
            )
        return [_about(condition, dict(zip(variables, choice, strict=True))) for choice in itertools.product(*names)]


def _about(condition: Expression, names: Mapping[str, str]) -> Expression:
    """A condition with its variables renamed."""

    def changed(node: Expression) -> Expression:
        if isinstance(node, plan.Field | plan.Time | plan.Index) and node.variable in names:
            return dataclasses.replace(node, variable=names[node.variable])
        return node

    return plan.transform(condition, changed)


def _renamed(pattern: Pattern, names: Mapping[str, str]) -> Pattern:
    """A pattern with some of its visible AS variables renamed wherever they stand; negated patterns have variables of their own."""
    if not names:
        return pattern
    inside = set(map(id, operands(pattern)))
    changed = map_children(pattern, lambda child: _renamed(child, names) if id(child) in inside else child)
    match changed:
        case Named(variable=variable):
            return dataclasses.replace(changed, variable=names.get(variable, variable))
        case Project(variables=variables):
            return dataclasses.replace(changed, variables=frozenset(names.get(name, name) for name in variables))
        case Filter(conditions=conditions):
            return dataclasses.replace(changed, conditions=tuple(_about(condition, names) for condition in conditions))
    return changed
