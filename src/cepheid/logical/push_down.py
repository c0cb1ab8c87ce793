"""The rule `push_down`: local conditions move to the events that feed their variable.

Source: foundations-cel, section 5.2 and appendix B.2, step 2 ("push predicates down"). There a variable holds one event; here it is the set of all
its positions in the match, and a condition is about every one of them. So the step is also sound through iterations, ALL, and variables that are used
twice.

The invariant of the descent: `push(p, c, targets)` has the matches of p in which c holds for every position in the visible variables `targets`.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from cepheid.language.syntax import Strategy
from cepheid.logical import plan
from cepheid.logical.plan import Event, Filter, Named, Pattern, Project, Select, Sequence, is_local, variables_of
from cepheid.logical.tree import about, bottom_up, filtered
from cepheid.logical.variables import defined, operands

if TYPE_CHECKING:
    from cepheid.logical.plan import Expression


def push_down(pattern: Pattern) -> Pattern:
    """The pattern with every local condition on a visible variable at the events that can stand in that variable.

    The result has the one shape of LP-normal form that construction reads: `Filter(Event(T), conditions)` with conditions on the event's own
    type variable, and every AS outside it. A condition stays above what it may not cross: a strategy that compares matches (NXT, LAST, MAX,
    ..), and the right side of THEN, whose "next" match is chosen among all. So do correlations, conditions on $index, and conditions
    on variables from outside. Size: linear in the pattern times its conditions.
    """
    return bottom_up(pattern, _from_filter)


def _from_filter(pattern: Pattern) -> Pattern:
    if not isinstance(pattern, Filter) or isinstance(pattern.pattern, Event):
        return _own(pattern) if isinstance(pattern, Filter) else pattern
    visible = defined(pattern.pattern)
    inner = pattern.pattern
    stay: list[Expression] = []
    for condition in pattern.conditions:
        variables = variables_of(condition)
        if is_local(condition) and variables and variables <= visible:
            inner = push(inner, condition, variables)
        else:
            stay.append(condition)
    if len(stay) == len(pattern.conditions) and inner is pattern.pattern:
        return pattern
    return filtered(inner, tuple(stay))


def _own(pattern: Filter) -> Filter:
    """A FILTER on an event, each condition once."""
    conditions = tuple(dict.fromkeys(pattern.conditions))
    return pattern if conditions == pattern.conditions else dataclasses.replace(pattern, conditions=conditions)


def push(pattern: Pattern, condition: Expression, targets: frozenset[str]) -> Pattern:
    """The matches of `pattern` in which a local condition holds for every position in the variables `targets`.

    condition: local, about any one variable. targets: variables; those that the pattern does not show have no positions.
    """
    targets &= defined(pattern)
    if not targets:
        return pattern
    match pattern:
        case Event():
            return Filter(pattern, (about(condition, pattern.variable),), span=pattern.span)
        case Filter(pattern=below):
            pushed = push(below, condition, targets)
            if isinstance(pushed, Filter) and pushed.pattern is below:
                return filtered(pattern, pushed.conditions)
            return dataclasses.replace(pattern, pattern=pushed)
        case Named(variable=variable) if variable in targets:
            # The variable holds the support: every visible position below.
            return dataclasses.replace(pattern, pattern=push(pattern.pattern, condition, defined(pattern.pattern)))
        case Project(variables=variables):
            return dataclasses.replace(pattern, pattern=push(pattern.pattern, condition, targets & variables))
        case Sequence():
            return _push_into_sequence(pattern, condition, targets)
        case Select(strategy=strategy) if strategy not in COMMUTING:
            return _above(pattern, condition, targets)
    return _push_into_operands(pattern, condition, targets)


COMMUTING = frozenset({Strategy.ALL, Strategy.STRICT})
"""The strategies that judge each match by itself, so that a filter may cross them."""


def _push_into_operands(pattern: Pattern, condition: Expression, targets: frozenset[str]) -> Pattern:
    """Union, iteration, conjunction, windows, filters and negation take positions from their operands and drop none.

    AND: both operands must give the same mapping, so that the condition on either is the condition on both.
    """
    pushed = [push(operand, condition, targets) for operand in operands(pattern)]
    if isinstance(pattern, plan.Chain):
        return dataclasses.replace(pattern, operands=tuple(pushed))
    return dataclasses.replace(pattern, pattern=pushed[0])  # type: ignore[call-arg]  # every other operator has one operand, `pattern`


def _push_into_sequence(sequence: Sequence, condition: Expression, targets: frozenset[str]) -> Pattern:
    chosen = [item for link, item in zip(sequence.links, sequence.items[1:], strict=True) if link.operator == "THEN"]
    if any(targets & defined(item) for item in chosen):
        return _above(sequence, condition, targets)
    return dataclasses.replace(sequence, items=tuple(push(item, condition, targets) for item in sequence.items))


def _above(pattern: Pattern, condition: Expression, targets: frozenset[str]) -> Pattern:
    """The condition on the pattern as a whole, once for each variable."""
    return filtered(pattern, tuple(about(condition, variable) for variable in sorted(targets)))
