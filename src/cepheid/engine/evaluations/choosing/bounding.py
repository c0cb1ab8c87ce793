"""From which event on a partition can have a match that HAVING leaves: before it none is listed.

HAVING may ask for so much (`logical.growing.needed`) that all events since the partition began anew have less. Then no match has it, and the events
are read without listing any. What they have is added up per partition: one number for each part of the condition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cepheid.logical.growing import Least

if TYPE_CHECKING:
    from cepheid.engine.evaluations.events import Events
    from cepheid.engine.memory.pools import Array
    from cepheid.logical.growing import Need

ENOUGH = 1.0 - 1e-6
"""The part of what is asked that counts as all: parts are rounded, and added in doubles."""


class Bound:
    """What the events of partitions have of what a condition needs. had: float64, (slots, needs): which part; 1 is all, or what is not known."""

    def __init__(self, need: Need) -> None:
        self.need = need
        self.needs = tuple(dict.fromkeys(leaves_of(need)))
        self.had: Array = np.zeros((0, len(self.needs)))

    def fit(self, count: int) -> None:
        """Room for so many slots."""
        if count > len(self.had):
            more = max(count, 2 * len(self.had)) - len(self.had)
            self.had = np.concatenate([self.had, np.zeros((more, len(self.needs)))])

    def forget(self, slots: Array) -> None:
        """The partitions in these slots begin anew."""
        self.had[slots[(slots >= 0) & (slots < len(self.had))]] = 0.0

    def first(self, read: Events) -> Array:
        """How many events at first end no match that is left, for each segment (int64); all of its events are added to what its partition had."""
        assert read.worth is not None
        starts, kept = read.cuts, read.slots >= 0
        stops = np.append(starts[1:], len(read))
        slots, reached = read.slots[kept], {}
        for number, (each, worth) in enumerate(zip(self.needs, read.worth, strict=True)):
            had: Array = np.zeros(len(starts))
            had[kept] = self.had[slots, number]
            sums = np.cumsum(worth)
            before = sums[starts] - worth[starts]
            reached[each] = np.clip(np.searchsorted(sums, before + ENOUGH - had), starts, stops) - starts
            self.had[slots, number] = np.minimum(had + sums[stops - 1] - before, 1.0)[kept]
        return _first(self.need, reached)


def leaves_of(need: Need) -> list[Least]:
    """The parts of what is needed."""
    return [need] if isinstance(need, Least) else [leaf for part in need[1] for leaf in leaves_of(part)]


def _first(need: Need, reached: dict[Least, Array]) -> Array:
    """How many events it takes until something may be met."""
    if isinstance(need, Least):
        return reached[need]
    found: Array = (np.maximum if need[0] == "and" else np.minimum).reduce([_first(part, reached) for part in need[1]])
    return found
