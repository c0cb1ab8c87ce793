"""From the bound query to a plan for the construction of automata: an ordered tuple of rules, each keeping the set of matches.

Comes in: a bound `QueryPlan`. Goes out: a plan in LP-normal form (every local condition at the event that it is about), with its equalities as a
partition where this means the same. A part that cannot be rewritten stays as it is: the next layer reports what it does not support.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from cepheid.errors import CepheidError
from cepheid.logical.absence import outermost
from cepheid.logical.normal_form import normal_form
from cepheid.logical.partition import one_key, partition
from cepheid.logical.push_down import push_down
from cepheid.logical.simplify import simplify
from cepheid.logical.take_apart import take_apart

if TYPE_CHECKING:
    from collections.abc import Callable

    from cepheid.logical.plan import Pattern, QueryPlan


def _on_pattern(change: Callable[[Pattern], Pattern]) -> Callable[[QueryPlan], QueryPlan]:
    def changed(plan: QueryPlan) -> QueryPlan:
        pattern = change(plan.pattern)
        return plan if pattern == plan.pattern else dataclasses.replace(plan, pattern=pattern)

    return changed


RULES: tuple[tuple[str, Callable[[QueryPlan], QueryPlan]], ...] = (
    ("absence", _on_pattern(outermost)),
    ("one_key", one_key),
    ("take_apart", _on_pattern(take_apart)),
    ("normal_form", _on_pattern(normal_form)),
    ("push_down", _on_pattern(push_down)),
    ("simplify", _on_pattern(simplify)),
    ("partition", partition),
)
"""The rules in the order in which they are applied: name, and plan -> plan."""


def rewrite(plan: QueryPlan) -> QueryPlan:
    """The plan after all `RULES`: the same matches, in the form that construction reads.

    Exponential in the worst case (foundations-cel, Theorem 2), with named limits: raises LimitError above one.
    """
    for _, changed in _applied(plan):
        plan = changed
    return plan


def rewrite_steps(plan: QueryPlan) -> list[tuple[str, QueryPlan]]:
    """The plan after each rule, in order: (name of the rule, plan after it), only for rules that changed something."""
    steps = []
    for name, changed in _applied(plan):
        if changed is not plan:
            steps.append((name, changed))
        plan = changed
    return steps


def _applied(plan: QueryPlan) -> list[tuple[str, QueryPlan]]:
    steps = []
    for name, change in RULES:
        try:
            plan = change(plan)
        except CepheidError as error:
            raise error.located(plan.text) from None
        steps.append((name, plan))
    return steps
