"""Where matches begin, of patterns over events that matches have made: such an event begins before its own position.

Comes in: a bound pattern. Goes out: whether its matches may begin with such an event, and whether the event that is read first says where they begin.
Linear in the pattern.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cepheid.language.syntax import TimeModel
from cepheid.logical import plan
from cepheid.logical.variables import operands

if TYPE_CHECKING:
    from collections.abc import Callable

    from cepheid.logical.plan import Pattern


def begins_earlier(pattern: Pattern) -> bool:
    """Whether a match may begin before the event that is read first."""
    if isinstance(pattern, plan.Event):
        return pattern.spans
    return _of_first(pattern, begins_earlier)


def begins_anywhere(pattern: Pattern) -> bool:
    """Whether an event that is not the first may say where a match begins: of patterns that run beside each other, one of which may begin earlier."""
    beside = isinstance(pattern, plan.All) or (isinstance(pattern, plan.Sequence) and points(pattern) is not None)
    return (beside and begins_earlier(pattern)) or _of_first(pattern, begins_anywhere)


def points(pattern: plan.Sequence) -> int | None:
    """The last link of a sequence that is THEN under POINT, where its right side may begin before the left one ends; None without one.

    That is where it may have several events, or may begin before the event that is read first.
    """
    for place in reversed(range(len(pattern.links))):
        item = pattern.items[place + 1]
        if pattern.links[place].model is TimeModel.POINT and (begins_earlier(item) or not _is_single(item)):
            return place
    return None


def _is_single(pattern: Pattern) -> bool:
    """Whether each match is surely of one event."""
    if isinstance(pattern, plan.Named | plan.Project | plan.Filter | plan.Or | plan.And):
        return all(map(_is_single, operands(pattern)))
    return isinstance(pattern, plan.Event)


def has_made(pattern: Pattern) -> bool:
    """Whether any of its events may begin before its position."""
    return (isinstance(pattern, plan.Event) and pattern.spans) or any(map(has_made, operands(pattern)))


def _of_first(pattern: Pattern, holds: Callable[[Pattern], bool]) -> bool:
    """Whether it holds for a part with which a match may begin."""
    beside = points(pattern) if isinstance(pattern, plan.Sequence) else None
    for place, part in enumerate(operands(pattern)):
        if holds(part):
            return True
        if isinstance(pattern, plan.Sequence) and not isinstance(part, plan.Optional) and (beside is None or place > beside):
            return False
    return False
