"""Where matches begin, of patterns over events that matches have made: such an event begins before its own position.

Comes in: a bound pattern. Goes out: whether its matches may begin with such an event, and whether the event that is read first says where they begin.
Linear in the pattern.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    """Whether an event that is not the first may say where a match begins: under ALL, of which each operand may begin earlier."""
    return (isinstance(pattern, plan.All) and begins_earlier(pattern)) or _of_first(pattern, begins_anywhere)


def spans(pattern: Pattern) -> bool:
    """Whether any of its events may begin before its position."""
    return (isinstance(pattern, plan.Event) and pattern.spans) or any(map(spans, operands(pattern)))


def _of_first(pattern: Pattern, holds: Callable[[Pattern], bool]) -> bool:
    """Whether it holds for a part with which a match may begin."""
    for part in operands(pattern):
        if holds(part):
            return True
        if isinstance(pattern, plan.Sequence) and not isinstance(part, plan.Optional):
            return False
    return False
