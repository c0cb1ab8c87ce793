"""NOT FOLLOWED BY: which triggers a match of n vetoes, and which wait for more events.

`p NOT FOLLOWED BY n FOR d` gives the matches of p that end in an event e unless some match of n starts after e, by position, and ends at most d
after it, by time. So of n only its intervals matter, and of these, for each event that ends one, the greatest start: a match graph over n's
automaton without its marks, with one match per trigger, and with d as window (a match of n that starts after e and ends in time is no longer).
A trigger is vetoed exactly if the greatest start so far, among the intervals that have ended when its deadline has passed, lies behind it.

What p does is not changed by it: consumption, strategies and LIMIT see all matches of p, and a veto is for all matches of a trigger.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cepheid.engine.evaluation import Evaluation
from cepheid.engine.order import NEVER
from cepheid.engine.trackers import Tracked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cepheid.automata import Program
    from cepheid.engine.running import Running

Array = np.ndarray[Any, Any]

ALWAYS = 2**63 - 1
"""The greatest time that int64 holds."""


@dataclass(frozen=True)
class Absence:
    """One `NOT FOLLOWED BY n FOR d`.

    program: the intervals of n's matches (`automata.span_program`). window: greatest time(end) - time(start) of one that can matter, at most d.
    count_window: greatest end - start + 1 in events, None without. duration: d, in steps of the time column.
    """

    program: Program
    window: int
    count_window: int | None
    duration: int

    def evaluation(self, *, variant: str | None = None) -> Running:
        """A new evaluation of n, without any state: of each trigger it gives the match with the greatest start."""
        run = Evaluation(self.program, window=self.window, count_window=self.count_window, limit=1, variant=variant)
        return Tracked(run, self.program, variant=variant) if self.program.trackers else run

    @property
    def bounds(self) -> tuple[int, int | None, int]:
        """The numbers that, beside the program, say what it is."""
        return self.window, self.count_window, self.duration


@dataclass(frozen=True, slots=True)
class Ends:
    """Events that end matches, in the order of their times within each partition.

    owners: numbers of their partitions. positions: int64; of triggers of p their own, of matches of n the greatest start. times: of the events.
    """

    owners: Array
    positions: Array
    times: Array

    def __len__(self) -> int:
        return len(self.owners)

    def take(self, chosen: Array) -> Ends:
        """Some of them: by number, or by a mask."""
        return Ends(self.owners[chosen], self.positions[chosen], self.times[chosen])

    @classmethod
    def joined(cls, parts: Sequence[Ends]) -> Ends:
        """Several, one after the other."""
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in cls.__slots__))


def longest(absences: Sequence[Absence]) -> int:
    """How long after its trigger a match is decided at the latest; 0 without absences."""
    return max((absence.duration for absence in absences), default=0)


def vetoed(triggers: Ends, completed: Ends, duration: int) -> Array:
    """For each trigger of p whether a match of n starts behind it and has ended `duration` after it: bool. O(n log n), vectorized."""
    if not len(triggers) or not len(completed):
        return np.zeros(len(triggers), np.bool_)
    both = Ends.joined([completed, triggers])
    deadlines = np.minimum(triggers.times, ALWAYS - duration) + duration
    moments = np.concatenate([completed.times, deadlines])
    # Stable: what is complete at the deadline itself comes before it.
    order = np.lexsort((moments, both.owners))
    owners, positions = both.owners[order], both.positions[order]
    firsts = np.flatnonzero(np.diff(owners, prepend=owners[0] - 1))
    rank = np.repeat(np.arange(len(firsts)), np.diff(firsts, append=len(owners)))
    # Positions of each partition from 1 on, so that partitions, one above the other, fit into 64 bits.
    positions = positions - np.minimum.reduceat(positions, firsts)[rank] + 1
    base = rank * (positions.max() + 1)
    ends = order < len(completed)
    greatest = np.maximum.accumulate(base + np.where(ends, positions, 0))
    result: Array = np.empty(len(triggers), np.bool_)
    result[order[~ends] - len(completed)] = (greatest > base + positions)[~ends]
    return result


def undecided(times: Array, until: int, duration: int) -> Array:
    """For triggers at these times whether their deadline lies after `until`: bool."""
    if until - duration < NEVER:
        return np.ones(len(times), np.bool_)
    waiting: Array = times > until - duration
    return waiting
