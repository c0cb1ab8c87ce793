"""What a temporal model is (what-is-next, section 3): time stamps, their order, the successors among candidates, and composition.

`TemporalModel` is the paper's quadruple (T, <, SUCC, *). Here `s < t` stands for the paper's precedes sign and `s * t` for its circled times; where
the paper writes bottom for "undefined", `compose` gives None. A model of your own is a subclass: give the four methods, or derive from
`BlockingModel` and say only which candidate keeps which other one from being a successor.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import TYPE_CHECKING, Generic, TypeVar

from cepheid.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

S = TypeVar("S", bound=Hashable)
"""The type of the stamps of a model: anything that can be compared for equality and hashed."""


class TemporalModel(ABC, Generic[S]):
    """A temporal model (T, <, SUCC, *) of what-is-next, section 3; T is whatever `point` and `compose` make.

    Nothing is demanded of the four: `cepheid.succession.verdicts` says which axioms they satisfy.
    """

    name: str
    """What tables and messages call it; of the six models: the name in a query."""

    @abstractmethod
    def point(self, time: int) -> S:
        """The stamp of one event at a time."""

    @abstractmethod
    def before(self, s: S, t: S) -> bool:
        """Whether s < t: an event at t can follow one at s."""

    @abstractmethod
    def successors(self, stamp: S, candidates: AbstractSet[S]) -> frozenset[S]:
        """SUCC(stamp, candidates): which of the candidates are next after `stamp`."""

    @abstractmethod
    def compose(self, s: S, t: S) -> S | None:
        """The stamp s * t of an event made of one at s and a later one at t; None where it is undefined."""

    def of(self, times: Iterable[int]) -> S:
        """The stamp of a match whose events have these times, in any order and also several times: the points of the distinct ones, composed.

        Raises InputError for no times, and where the model does not compose two points although the one time is later.
        """
        distinct = sorted(set(times))
        if not distinct:
            raise InputError("a match without events has no time stamp", help="give the times of its events")
        stamp = self.point(distinct[0])
        for time in distinct[1:]:
            composed = self.compose(stamp, self.point(time))
            if composed is None:
                raise InputError(
                    f"{self.name} does not compose {stamp} with the later time {time}",
                    help="a model that stamps matches defines s * t wherever s < t (what-is-next, Axiom 8)",
                )
            stamp = composed
        return stamp

    def __repr__(self) -> str:
        return self.name


class BlockingModel(TemporalModel[S]):
    """A model in which one candidate keeps another from being a successor, whatever else there is. All six models of the paper are of this form.

    If `blocks` is a strict partial order, then Axioms 3, 4, 5 and 7 hold.
    """

    @abstractmethod
    def blocks(self, rival: S, t: S) -> bool:
        """Whether t is no successor where `rival` is a candidate too; both follow the stamp whose successors are sought."""

    def successors(self, stamp: S, candidates: AbstractSet[S]) -> frozenset[S]:
        """The candidates that follow `stamp` and that no candidate which follows it blocks. O(candidates ** 2)."""
        later = [t for t in candidates if self.before(stamp, t)]
        return frozenset(t for t in later if not any(self.blocks(rival, t) for rival in later))
