"""How long the matches of a pattern can be: the window that gaps and adjacency give where no WITHIN does, and the least that it must hold.

Comes in: a bound pattern. Goes out: a bound of time(end) - time(start), in steps of the time column, or of end - start + 1, in events: from above
(`longest`, `widest`) or from below (`shortest`, `narrowest`). Linear in the pattern.
"""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from cepheid.logical import plan
from cepheid.logical.variables import operands

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cepheid.logical.plan import Interval, Pattern

MOST = 2**63 - 1
"""The greatest difference of two times that can be stored; what is longer bounds nothing."""


def longest(pattern: Pattern, *, upper: Callable[[Interval], int | None] = attrgetter("upper")) -> int | None:
    """The greatest time(end) - time(start) that a match can have; None where windows and gaps give no bound. upper: what bounds each of these."""
    inner = partial(longest, upper=upper)
    match pattern:
        case plan.Event():
            return None if pattern.spans else 0
        case plan.Within():
            return _least((inner(pattern.pattern), upper(pattern.interval)))
        case plan.Sequence():
            return _sum([*map(inner, pattern.items), *(_gap(link.gap, upper) for link in pattern.links)])
        case plan.Iterate() if pattern.maximum is None:
            return None
        case plan.Iterate(maximum=most) if most is not None:
            return _sum([inner(pattern.pattern)] * most + [_gap(pattern.gap, upper)] * (most - 1))
        case plan.And():
            return _least(map(inner, pattern.operands))
        case plan.Or():
            bounds = [inner(operand) for operand in pattern.operands]
            return None if None in bounds else max(bound for bound in bounds if bound is not None)
    below = operands(pattern)
    return inner(below[0]) if len(below) == 1 else None


def widest(pattern: Pattern) -> int | None:
    """The greatest end - start + 1 that a match can have; None where neither adjacency (`:`) nor WITHIN n EVENTS gives a bound."""
    match pattern:
        case plan.Event():
            return None if pattern.spans else 1
        case plan.WithinEvents():
            return _least((widest(pattern.pattern), pattern.count))
        case plan.Sequence():
            return _sum(map(widest, pattern.items)) if all(link.operator == ":" for link in pattern.links) else None
        case plan.Iterate(maximum=most) if most is not None:
            return _sum([widest(pattern.pattern)] * most) if pattern.adjacent or most == 1 else None
        case plan.Iterate():
            return None
        case plan.And():
            return _least(map(widest, pattern.operands))
        case plan.Or():
            bounds = [widest(operand) for operand in pattern.operands]
            return None if None in bounds else max(bound for bound in bounds if bound is not None)
    below = operands(pattern)
    return widest(below[0]) if len(below) == 1 else None


def shortest(pattern: Pattern, *, lower: Callable[[Interval], int] = attrgetter("lower")) -> int:
    """The least time(end) - time(start) that windows and gaps leave to a match. lower: what each of these asks for."""
    return _least_of(pattern, event=0, lower=lower)


def narrowest(pattern: Pattern) -> int:
    """The least end - start + 1 that a match can have: its events one beside the other."""
    return _least_of(pattern, event=1, lower=lambda _: 0)


def _least_of(pattern: Pattern, *, event: int, lower: Callable[[Interval], int]) -> int:
    """The least length of a match: event: of one event, which may also begin earlier; lower: the least of a window, or between two parts."""
    inner = partial(_least_of, event=event, lower=lower)
    match pattern:
        case plan.Event():
            return event
        case plan.Optional():
            return 0
        case plan.Within():
            return max(inner(pattern.pattern), lower(pattern.interval))
        case plan.Sequence():
            total = inner(pattern.items[0])
            for link, item in zip(pattern.links, pattern.items[1:], strict=True):
                gap = 0 if link.gap is None else lower(link.gap)
                # What THEN calls the next may lie beside what is before it.
                total = max(total, inner(item)) if link.operator == "THEN" else total + gap + inner(item)
            return total
        case plan.Iterate():
            gap = 0 if pattern.gap is None else lower(pattern.gap)
            return pattern.minimum * inner(pattern.pattern) + (pattern.minimum - 1) * gap
        case plan.Or():
            return min(map(inner, pattern.operands))
    return max(map(inner, operands(pattern)))


def _gap(interval: Interval | None, upper: Callable[[Interval], int | None]) -> int | None:
    most = None if interval is None else upper(interval)
    return None if most is None else max(most, 0)


def _least(bounds: Iterable[int | None]) -> int | None:
    return min((bound for bound in bounds if bound is not None), default=None)


def _sum(bounds: Iterable[int | None]) -> int | None:
    total = 0
    for bound in bounds:
        if bound is None or total > MOST:
            return None
        total += bound
    return total if total <= MOST else None
