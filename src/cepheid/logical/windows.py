"""The windows over a whole pattern, apart from it: what bounds an evaluation, and need be no part of its automaton."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from cepheid.language.syntax import Strategy
from cepheid.logical import plan
from cepheid.logical.beginnings import begins_earlier
from cepheid.records import record

if TYPE_CHECKING:
    from cepheid.logical.plan import Pattern


@record(slots=False)
class Windows:
    """Windows over a whole pattern: time(end) - time(start) <= window, end - start + 1 <= count; None is none."""

    window: int | None = None
    count: int | None = None

    def __and__(self, other: Windows) -> Windows:
        return Windows(_least(self.window, other.window), _least(self.count, other.count))


def _least(first: int | None, second: int | None) -> int | None:
    return min((bound for bound in (first, second) if bound is not None), default=None)


def hoist(pattern: Pattern) -> tuple[Pattern, Windows]:
    """The pattern without the windows over all of it, and these.

    A window commutes with AS, PROJECT, FILTER, UNLESS and STRICT (they keep intervals); a window on one side of AND bounds both (equal intervals); OR
    has one where its sides have the same. A window over what may begin before the event that is read first stays where it is: a guard asks it, and
    as a bound of the evaluation it counts from that event.
    """
    found, bounds = _hoisted(pattern)
    return (pattern if begins_earlier(pattern) else found), bounds


def _hoisted(pattern: Pattern) -> tuple[Pattern, Windows]:
    match pattern:
        case plan.Within():
            inner, bounds = _hoisted(pattern.pattern)
            # A guard asks the lower bound.
            least = dataclasses.replace(pattern, pattern=inner) if pattern.interval.lower > 0 else inner
            return least, bounds & Windows(window=pattern.interval.upper)
        case plan.WithinEvents():
            inner, bounds = _hoisted(pattern.pattern)
            return inner, bounds & Windows(count=pattern.count)
        case plan.Named() | plan.Project() | plan.Filter() | plan.Unless():
            inner, bounds = _hoisted(pattern.pattern)
            return dataclasses.replace(pattern, pattern=inner), bounds
        case plan.Select(strategy=Strategy.STRICT | Strategy.ALL):
            inner, bounds = _hoisted(pattern.pattern)
            return dataclasses.replace(pattern, pattern=inner), bounds
        case plan.And():
            parts = [_hoisted(operand) for operand in pattern.operands]
            bounds = Windows()
            for _, more in parts:
                bounds &= more
            return dataclasses.replace(pattern, operands=tuple(part for part, _ in parts)), bounds
        case plan.Or():
            parts = [_hoisted(operand) for operand in pattern.operands]
            if len({bounds for _, bounds in parts}) == 1:
                return dataclasses.replace(pattern, operands=tuple(part for part, _ in parts)), parts[0][1]
    return pattern, Windows()
