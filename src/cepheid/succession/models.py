"""The six temporal models that a query can name in `TIME MODEL`, by their formulas in what-is-next, sections 2 and 3.

| name | stamps | a candidate r keeps a candidate t from being a successor, where |
|---|---|---|
| CAYUGA | intervals | r ends before t ends |
| COMPLETE_HISTORY | histories | r is less than t, read from the last time to the first |
| SNOOPIB | intervals | r ends before t starts |
| ODE | histories | r ends before t starts |
| ACTIVE_OFFICE | intervals | r ends before t ends, or they end together and r starts before t |
| POINT | points | r is before t |

In all of them s < t says that s ends before t starts; times are integers, and equal times are neither before nor after each other.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from cepheid.errors import InputError
from cepheid.records import record
from cepheid.succession.model import BlockingModel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cepheid.succession.model import TemporalModel


@record
class Interval:
    """The interval [start, end] of an event with a duration. Raises InputError where the end precedes the start."""

    start: int
    end: int

    def __post_init__(self) -> None:
        if self.end < self.start:
            raise InputError(
                f"the interval [{self.start}, {self.end}] ends before it starts",
                help=f"give the start first: Interval({self.end}, {self.start})",
            )

    def __str__(self) -> str:
        return f"[{self.start}, {self.end}]"


@record
class History:
    """The times of all events that an event is composed of, ascending (name in paper: sigma). Raises InputError for none, and for other orders."""

    times: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.times:
            raise InputError("a history has at least one time", help="give the times of the events: History((1, 2, 4))")
        for earlier, later in zip(self.times, self.times[1:], strict=False):
            if later <= earlier:
                raise InputError(
                    f"the history {self} has {later} after {earlier}",
                    help=f"give each time once, ascending: History({tuple(sorted(set(self.times)))})",
                )

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.times))}]"


class _Intervals(BlockingModel[Interval]):
    """What the interval models share (what-is-next, section 3): the order, and the smallest interval around two."""

    def point(self, time: int) -> Interval:
        """[time, time]."""
        return Interval(time, time)

    def before(self, s: Interval, t: Interval) -> bool:
        """[s0, s1] < [t0, t1] iff s1 < t0."""
        return s.end < t.start

    def compose(self, s: Interval, t: Interval) -> Interval | None:
        """[s0, t1], where s < t (Axiom 8)."""
        return Interval(s.start, t.end) if self.before(s, t) else None


class _Histories(BlockingModel[History]):
    """What ODE and complete history share (what-is-next, section 3.1): the order, and concatenation."""

    def point(self, time: int) -> History:
        """The history of one time."""
        return History((time,))

    def before(self, s: History, t: History) -> bool:
        """The last time of s is less than the first of t."""
        return s.times[-1] < t.times[0]

    def compose(self, s: History, t: History) -> History | None:
        """The times of both, where s < t (Axiom 8)."""
        return History(s.times + t.times) if self.before(s, t) else None


class Cayuga(_Intervals):
    """SUCC([s0, s1], F) = {[t0, t1] in F | s1 < t0, no [r0, r1] in F with s1 < r0 <= r1 < t1} (what-is-next, section 3).

    Those that end first, all of them. Section 2 prints s1 < p0 < p1 < t1, so that an event at one instant would exclude nothing: then [1, 1] and
    [2, 2] were both next after [0, 0], against Axiom 6 and Proposition 2. The formula of section 3 is taken.
    """

    name = "CAYUGA"

    def blocks(self, rival: Interval, t: Interval) -> bool:
        """r1 < t1."""
        return rival.end < t.end


class SnoopIB(_Intervals):
    """SUCC([s0, s1], F) = {[t0, t1] in F | s1 < t0, no [r0, r1] in F with s1 < r0 <= r1 < t0} (what-is-next, section 3).

    Those that nothing lies before. What has started by the end of the first can still become a successor, whenever it ends: equation (2).
    """

    name = "SNOOPIB"

    def blocks(self, rival: Interval, t: Interval) -> bool:
        """r1 < t0."""
        return self.before(rival, t)


class ActiveOffice(_Intervals):
    """SUCC([s0, s1], F) = {[t0, t1] in F | s1 < t0, no [r0, r1] in F with s1 < r0 and (r1 < t1, or r1 = t1 and r0 < t0)} (what-is-next, section 3).

    The strong successor: one stamp, that which ends first, of these that which starts first. Section 2 says that unique identifiers break ties, so
    that one of two simultaneous events (Figure 3) is lost; the formula of section 3 has no identifiers, and both events have the one stamp that it
    gives. The formula is taken.
    """

    name = "ACTIVE_OFFICE"

    def blocks(self, rival: Interval, t: Interval) -> bool:
        """r1 < t1, or r1 = t1 and r0 < t0."""
        return (rival.end, rival.start) < (t.end, t.start)


class Ode(_Histories):
    """SUCC(s, F) = {t in F | s < t, no r in F with s < r < t}, over histories (what-is-next, section 3.1). SnoopIB on the intervals they span."""

    name = "ODE"

    def blocks(self, rival: History, t: History) -> bool:
        """r < t."""
        return self.before(rival, t)


class CompleteHistory(_Histories):
    """SUCC(s, F) = {t in F | s < t, no r in F with s < r and r less than t}, over histories (what-is-next, section 3.1).

    r is less than t if it is so in the lexicographical order from the last times on; of two, one of which is the end of the other, the shorter is
    less. So there is at most one. The paper's definition of that order has two misprints: it compares sigma(l(sigma) - k) with tau(l(sigma) - k)
    (tau's own length is meant), and says "for all i < l(sigma)" where its first time has to be compared too. As printed [3, 4] and [1, 2, 4] were
    less than each other. It writes the sign of a reflexive order; what it defines is irreflexive, and a reflexive one would leave no successor.
    """

    name = "COMPLETE_HISTORY"

    def blocks(self, rival: History, t: History) -> bool:
        """It comes first in that order."""
        return rival.times[::-1] < t.times[::-1]


class Point(BlockingModel[int]):
    """SUCC(s, F) = {t in F | s < t, no r in F with s < r < t}, over the times themselves (what-is-next, sections 2 and 4.2.2).

    Snoop and EPL: a composed event happens when it ends, s * t = t where s < t. The paper has no formula; these follow from what it says of them:
    "the composite event P1P2 has only a single time stamp, that of P2", and "2 * (1 * 3) = 3 is defined, but (2 * 1) * 3 is not".
    """

    name = "POINT"

    def point(self, time: int) -> int:
        """The time."""
        return time

    def before(self, s: int, t: int) -> bool:
        """s < t."""
        return s < t

    def compose(self, s: int, t: int) -> int | None:
        """t, where s < t."""
        return t if s < t else None

    def blocks(self, rival: int, t: int) -> bool:
        """r < t."""
        return rival < t


CAYUGA = Cayuga()
COMPLETE_HISTORY = CompleteHistory()
SNOOPIB = SnoopIB()
ODE = Ode()
ACTIVE_OFFICE = ActiveOffice()
POINT = Point()

MODELS: Mapping[str, TemporalModel[Any]] = MappingProxyType(
    {model.name: model for model in (CAYUGA, COMPLETE_HISTORY, SNOOPIB, ODE, ACTIVE_OFFICE, POINT)}
)
"""The models by the names that `TIME MODEL` takes; the first is the default of the language."""
