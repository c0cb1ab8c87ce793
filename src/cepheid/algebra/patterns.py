"""From a pattern of the query language to an event expression, where it is one.

Comes in: a pattern of a rewritten plan. Goes out: an expression whose valid restrictions (event-algebra, Definition 3.12) are those of the pattern's
matches. The operators are those of the algebra; conditions stand at single events. Iterations are there too: of the matches of `p+` that end at one
event those of greatest start are matches of p alone, for each further p begins before. So `p+` becomes p, and `p{n,m}` n times p in sequence.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from cepheid.algebra.expression import Conjunction, Disjunction, Length, Negation, Primitive, Restriction, Sequence
from cepheid.algebra.transform import MAX_DEPTH, depth
from cepheid.logical import plan
from cepheid.logical.describe import describe

if TYPE_CHECKING:
    from collections.abc import Callable

    from cepheid.algebra.expression import Expression
    from cepheid.logical.plan import Pattern

MAX_NODES = 256
"""Operators and primitives that an expression may have; longer ones are other methods' work."""

Shown = frozenset[str]


class OutsideError(Exception):
    """A pattern that is no event expression; the text says why, in one line."""


def expression_of(pattern: Pattern) -> Expression:
    """The expression of a rewritten pattern. Raises OutsideError where it is none. Linear in the expression, which counts multiply."""
    expression = _Reading().read(pattern, lambda shown: shown)
    if sum(1 for _ in expression.walk()) > MAX_NODES:
        raise OutsideError(f"it has more than {MAX_NODES} operators")
    if depth(expression) > MAX_DEPTH:
        raise OutsideError(f"it has more than {MAX_DEPTH} operators around each other")
    return expression


class _Reading:
    """One reading. What is around a sub-pattern (AS, PROJECT) changes the variables that its events are shown in: `around` is that change."""

    def __init__(self) -> None:
        self._nodes = 0

    def read(self, pattern: Pattern, around: Callable[[Shown], Shown]) -> Expression:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise OutsideError(f"it has more than {MAX_NODES} operators")
        if (shown := event_of(pattern)) is not None:
            return Primitive(describe(pattern), around(shown), pattern)
        match pattern:
            case plan.Named(inner, variable):
                # AS names the events that are in a variable: one that PROJECT hides stays hidden.
                return self.read(inner, lambda shown: around(shown | {variable} if shown else shown))
            case plan.Project(variables, inner):
                return self.read(inner, lambda shown: around(shown & variables))
            case plan.Or(operands):
                return functools.reduce(Disjunction, [self.read(operand, around) for operand in operands])
            case plan.All(operands):
                return functools.reduce(Conjunction, [self.read(operand, around) for operand in operands])
            case plan.Unless(inner, negated):
                return Negation(self.read(inner, around), self.read(negated, lambda shown: shown))
            case plan.Within(inner, interval) if interval.lower <= 0 and interval.upper is not None and interval.upper >= 0:
                return Restriction(self.read(inner, around), Length(time=interval.upper))
            case plan.WithinEvents(inner, count) if count > 0:
                return Restriction(self.read(inner, around), Length(events=count - 1))
            case plan.Iterate(inner, adjacent=False, gap=None, minimum=minimum):
                return functools.reduce(Sequence, [self.read(inner, around) for _ in range(minimum)])
            case plan.Sequence(items, links) if all(link.operator == ";" and link.gap is None and link.without is None for link in links):
                return functools.reduce(Sequence, [self.read(item, around) for item in items])
        raise OutsideError(f"`{describe(pattern)}` is no operator of the event algebra")


def event_of(pattern: Pattern) -> Shown | None:
    """The variables that a pattern of one event puts it in, None for other patterns: a type, with AS, PROJECT, and conditions on that event."""
    match pattern:
        case plan.Event(spans=False):
            return frozenset({pattern.variable})
        case plan.Named(inner, variable):
            shown = event_of(inner)
            return None if shown is None else shown | {variable}
        case plan.Filter(inner, conditions):
            shown = event_of(inner)
            return (
                shown
                if shown is not None and all(plan.is_local(each) and plan.variables_of(each) <= shown for each in conditions)
                else None
            )
    return None
