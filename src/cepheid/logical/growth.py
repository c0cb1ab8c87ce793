"""How many matches one event can complete: the unexpected cost of a pattern that keeps every match.

The numbers are those of a stream that suits the pattern: the parts of a sequence come one after the other, n events fit each of them, and every
condition holds. Other streams can have more. COUNT(*) over such a stream gives the same (a test compares them).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from cepheid.language.syntax import Strategy
from cepheid.logical import plan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cepheid.logical.plan import Pattern


def completed(pattern: Pattern, events: int) -> int:
    """The matches that one event can complete where so many events fit each part before it. O(pattern)."""
    return choices(pattern, events, borders=1)


def many(pattern: Pattern) -> bool:
    """Whether one event can complete more matches than surprise nobody. O(pattern)."""
    return completed(pattern, 20) > FEW


FEW = 1_000
"""Matches of one event that surprise nobody."""


def choices(pattern: Pattern, events: int, *, borders: int = 0) -> int:
    """The matches in so many events per part; borders: 0 anywhere in them, 1 those that end at the last, 2 also begin at the first. O(pattern)."""
    match pattern:
        case plan.Event():
            return 1 if borders else events
        case plan.Sequence():
            return math.prod(choices(item, events, borders=own) for item, own in _borders(pattern, borders))
        case plan.Iterate():
            return _iteration(pattern, events, borders)
        case plan.Optional():
            return choices(pattern.pattern, events, borders=borders) + (0 if borders else 1)
        case plan.Or(operands=operands):
            return max(choices(operand, events, borders=borders) for operand in operands)
        case plan.And(operands=operands):
            return min(choices(operand, events, borders=borders) for operand in operands)
        case plan.All(operands=(*others, last)):
            return math.prod(choices(operand, events) for operand in others) * choices(last, events, borders=borders)
        case plan.Select(strategy=Strategy.NXT | Strategy.LAST | Strategy.MAX):
            return 1 if borders else events
        case plan.WithinEvents():
            return choices(pattern.pattern, _inside(pattern, events), borders=borders)
    return choices(next(pattern.children()), events, borders=borders)


def _borders(sequence: plan.Sequence, borders: int) -> Iterator[tuple[Pattern, int]]:
    """The parts of a sequence, each with how many borders of its events it has to touch: what stands at a `:` does."""
    links = [borders == 2, *(link.operator == ":" for link in sequence.links), borders > 0]
    for place, item in enumerate(sequence.items):
        yield item, links[place] + links[place + 1]


def _iteration(iterate: plan.Iterate, events: int, borders: int) -> int:
    """The subsets of the events, or with `:` the runs of them, that have as many as the iteration allows; its body counts as one event."""
    sizes = range(iterate.minimum, min(iterate.maximum or events, events) + 1)
    if iterate.adjacent:
        return sum(events - size + 1 if borders == 0 else 1 for size in sizes if borders < 2 or size == events)
    if events == 1:
        return len(sizes)
    return sum(math.comb(events - borders, size - borders) for size in sizes if size >= borders)


def _inside(window: plan.WithinEvents, events: int) -> int:
    """How many events per part a window of so many events has room for."""
    parts = sum(isinstance(node, plan.Event) for node in _below(window))
    return max(1, min(events, (window.count - 1) // max(1, parts - 1)))


def _below(pattern: Pattern) -> Iterator[Pattern]:
    yield pattern
    for child in pattern.children():
        yield from _below(child)
