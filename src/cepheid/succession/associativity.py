"""Whether sequencing is associative under a model: (E0 THEN E1) THEN E2 against E0 THEN (E1 THEN E2) (what-is-next, section 4.2.2).

Comes in: a model. Goes out: for each of three questions a `Counterexample`, or None where a finite universe has none. Only if the first two have
none may a plan re-associate `THEN`; if the first has none, the left-associated form gives some of the matches of the other and no false ones.

The paper says that associativity implies Axiom 14. Equation (5) speaks of matches of E1, so it implies Axiom 14 for a t1 of F1 alone, and together
with Axioms 9 and 13 that is all it takes (Proposition 5). What is compared here are matches, with their parts: their stamps alone may agree where
the matches differ, as in the proof of Theorem 5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeAlias

from cepheid.records import record
from cepheid.succession.axioms import shown
from cepheid.succession.model import S
from cepheid.succession.universe import Universe, members
from cepheid.succession.verdicts import TIMES, universes

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

    from cepheid.succession.model import TemporalModel


@record
class Match(Generic[S]):
    """A match: the stamps of the events it is composed of, for its data, and its own stamp."""

    parts: tuple[S, ...]
    stamp: S

    def __str__(self) -> str:
        return f"{' '.join(map(str, self.parts))} at {self.stamp}"


def events(stamps: Iterable[S]) -> frozenset[Match[S]]:
    """An event at each of these stamps, as a match. Events that share a stamp are alike to a temporal model: one stands for all."""
    return frozenset(Match((stamp,), stamp) for stamp in stamps)


def then(model: TemporalModel[S], first: AbstractSet[Match[S]], second: AbstractSet[Match[S]]) -> frozenset[Match[S]]:
    """The matches of `E1 THEN E2`, of those of E1 and E2 (what-is-next, equation 4): t2 in SUCC(t1, stamps of E2), stamped t1 * t2."""
    candidates = frozenset(match.stamp for match in second)
    found = set()
    for one in first:
        successors = model.successors(one.stamp, candidates)
        for other in second:
            stamp = model.compose(one.stamp, other.stamp) if other.stamp in successors else None
            if stamp is not None:
                found.add(Match(one.parts + other.parts, stamp))
    return frozenset(found)


@record(slots=False)
class Counterexample(Generic[S]):
    """Events of E0, E1 and E2, by their stamps, and the matches that only one of the two ways of sequencing them has."""

    events: tuple[frozenset[S], frozenset[S], frozenset[S]]
    only_left: frozenset[Match[S]]
    only_right: frozenset[Match[S]]

    def __str__(self) -> str:
        parts = [f"E{i} = {shown(stamps)}" for i, stamps in enumerate(self.events)]
        for side, found in (("(E0 THEN E1) THEN E2", self.only_left), ("E0 THEN (E1 THEN E2)", self.only_right)):
            parts += [f"only {side} has {'; '.join(sorted(map(str, found)))}"] if found else []
        return ", ".join(parts)


Sides: TypeAlias = tuple[Universe[S], int, int, int]
"""A universe, a stamp of E0, and the stamps of E1 and of E2, as numbers and bits."""


@record(slots=False)
class Associativity(Generic[S]):
    """What contradicts the associativity of THEN under a model.

    forward: a match of (E0 THEN E1) THEN E2 that E0 THEN (E1 THEN E2) does not have. backward: the other way round. itself: a difference where E1
    and E2 are the same events and no two of them overlap, the "very weak form of associativity" of what-is-next, section 5.2.2.
    """

    forward: Counterexample[S] | None
    backward: Counterexample[S] | None
    itself: Counterexample[S] | None

    @property
    def holds(self) -> bool:
        """Whether both ways give the same matches."""
        return self.forward is None and self.backward is None

    @property
    def weak(self) -> bool:
        """Whether the paper's weak associativity holds: property (8) in matches, and a stream sequenced with itself."""
        return self.forward is None and self.itself is None


def compared(model: TemporalModel[S], e0: Iterable[S], e1: Iterable[S], e2: Iterable[S]) -> Counterexample[S] | None:
    """How (E0 THEN E1) THEN E2 and E0 THEN (E1 THEN E2) differ on events with these stamps (what-is-next, equation 5); None: not at all."""
    stamps = (frozenset(e0), frozenset(e1), frozenset(e2))
    zero, one, two = map(events, stamps)
    left = then(model, then(model, zero, one), two)
    right = then(model, zero, then(model, one, two))
    return None if left == right else Counterexample(stamps, left - right, right - left)


def associative(model: TemporalModel[S], *, times: int = TIMES) -> Associativity[S]:
    """Where THEN is not associative under a model, in its universes over up to so many times: the smallest counterexamples.

    Tried: one event of E0 (the matches of more are the unions), and the sets of events of E1 and E2 that `Universe.few_sets` has; for a stream with
    itself all that `Universe.sets` has. A Counterexample is proof, None is evidence. Raises what `universe` raises.
    """
    made = universes(model, times=times)
    forward = next((found for u in made if (found := difference(u, backward=False)) is not None), None)
    backward = next((found for u in made if (found := difference(u, backward=True)) is not None), None)
    itself = next((found for u in made if (found := _with_itself(u)) is not None), None)
    return Associativity(*(None if found is None else _counterexample(*found) for found in (forward, backward, itself)))


def difference(u: Universe[S], *, backward: bool) -> Sides[S] | None:
    """A stamp of E0 and sets of E1 and E2 such that the left-associated form has more matches (backward: fewer) than the right-associated."""
    for first, second in u.pairs_of_sets:
        for t0 in range(u.size if first and second else 0):
            left, right = _sides(u, t0, first, second)
            if right - left if backward else left - right:
                return u, t0, first, second
    return None


def _with_itself(u: Universe[S]) -> Sides[S] | None:
    comparable = [follows | sum(1 << i for i in range(u.size) if u.follows[i] >> t & 1) for t, follows in enumerate(u.follows)]
    for bits in u.sets:
        if all(bits & ~comparable[t] & ~(1 << t) == 0 for t in members(bits)):
            for t0 in range(u.size):
                left, right = _sides(u, t0, bits, bits)
                if left != right:
                    return u, t0, bits, bits
    return None


def _counterexample(u: Universe[S], t0: int, first: int, second: int) -> Counterexample[S]:
    found = compared(u.model, [u.stamps[t0]], u.subset(first), u.subset(second))
    assert found is not None, "numbers and stamps differ"
    return found


def _sides(u: Universe[Any], t0: int, first: int, second: int) -> tuple[set[tuple[int, int, int]], set[tuple[int, int, int]]]:
    """t1, t2 and the stamp of each match, left- and right-associated."""
    left: set[tuple[int, int, int]] = set()
    right: set[tuple[int, int, int]] = set()
    both = u.next(t0, u.sequence(first, second))
    for t1 in members(first):
        start = u.composed[t0][t1] if u.next(t0, first) >> t1 & 1 else None
        if start is not None:
            matched = ((t1, t2, u.composed[start][t2]) for t2 in members(u.next(start, second)))
            left |= {(t1, t2, whole) for t1, t2, whole in matched if whole is not None}
        for t2 in members(u.next(t1, second)):
            composed = u.composed[t1][t2]
            whole = u.composed[t0][composed] if composed is not None and both >> composed & 1 else None
            if whole is not None:
                right.add((t1, t2, whole))
    return left, right
