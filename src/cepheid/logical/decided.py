"""Optional items beside a `:` in front of what may begin earlier: the sequence with and without them.

Comes in: a bound sequence. Goes out: sequences, or single items, whose matches together are its own, and in which no such item is left.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING

from cepheid.errors import LimitError
from cepheid.logical import plan
from cepheid.logical.beginnings import begins_earlier

if TYPE_CHECKING:
    from cepheid.logical.plan import Pattern


def decided(pattern: plan.Sequence) -> list[Pattern]:
    """A sequence with and without the optional items beside a `:` in front of what may begin earlier; itself where there is no such item.

    Such a `:` is a guard of what stands behind it (`automata.beginnings.behind`): another one than that of the link that is left where the item is
    absent.
    Raises LimitError past `MAX_DECIDED`.
    """
    found: dict[Pattern, None] = {}
    todo: dict[Pattern, None] = {pattern: None}
    while todo:
        one, _ = todo.popitem()
        number = _undecided(one)
        if number is None:
            found[one] = None
            continue
        assert isinstance(one, plan.Sequence)
        item = one.items[number]
        assert isinstance(item, plan.Optional)
        there = dataclasses.replace(one, items=(*one.items[:number], item.pattern, *one.items[number + 1 :]))
        todo |= {there: None, _without(one, number): None}
        if len(found) + len(todo) > MAX_DECIDED:
            raise LimitError(
                f"the sequence with and without its optional items beside `:` and events that matches make is more than {MAX_DECIDED} sequences"
                " (MAX_DECIDED)",
                span=pattern.span,
                help="write fewer optional items there, or `;` for `:`",
            )
    return list(found)


MAX_DECIDED = 128
"""Sequences that one with optional items may become, beside `:` and events that matches make."""


def _undecided(pattern: Pattern) -> int | None:
    """The number of the first such item."""
    if isinstance(pattern, plan.Sequence):
        for place, (link, pair) in enumerate(zip(pattern.links, itertools.pairwise(pattern.items), strict=True)):
            if link.operator == ":" and begins_earlier(pair[1]):
                for number, item in enumerate(pair, place):
                    if isinstance(item, plan.Optional):
                        return number
    return None


def _without(pattern: plan.Sequence, number: int) -> Pattern:
    """A sequence without an item: the looser of the links beside it stays, at an end none."""
    items, before, behind = pattern.items[:number] + pattern.items[number + 1 :], pattern.links[:number], pattern.links[number:]
    if len(items) == 1:
        return items[0]
    behind_stays = not behind or (before and before[-1].operator == ":")
    return dataclasses.replace(pattern, items=items, links=before[:-1] + behind if behind_stays else before + behind[1:])
