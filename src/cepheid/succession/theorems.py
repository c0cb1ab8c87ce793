"""Theorems 1 to 6 of what-is-next by finite search: each looks for what would contradict it, and says what it has looked at.

None of these is a proof of the theorem. Theorems 1, 2 and 6 are about all models: every structure on the stamps of a few times is tried. Times have a
first and a last here, so a theorem is only claimed where its proof finds the earlier and later stamps that it asks for.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any

from cepheid.records import record
from cepheid.succession.associativity import difference
from cepheid.succession.axioms import shown
from cepheid.succession.models import CAYUGA, COMPLETE_HISTORY, Interval
from cepheid.succession.search import Function, chosen, functions, images, structures
from cepheid.succession.uniqueness import Quotient, quotients, satisfying
from cepheid.succession.universe import Universe, members, subsets, universe

if TYPE_CHECKING:
    from collections.abc import Callable

    from cepheid.succession.models import History


@record(slots=False)
class Theorem:
    """A theorem of the paper. covers: what `search` looks at; search: gives what contradicts the theorem, None where nothing does."""

    number: int
    statement: str
    covers: str
    search: Callable[[], str | None]

    def __str__(self) -> str:
        return f"Theorem {self.number}: {self.statement}"


@cache
def models_of_all_axioms(times: int) -> tuple[tuple[Quotient, Universe[History]], ...]:
    """What Axioms 1 to 14 leave over so many times (`cepheid.succession.uniqueness`). 4 times: some seconds."""
    return tuple((quotient, found) for quotient in quotients(times) for found in satisfying(quotient, times))


def _unique_histories() -> str | None:
    for times in (3, 4):
        for quotient, _ in models_of_all_axioms(times):
            if any(one != other for one, other in quotient.merging.items()):
                return f"over {times} times: {quotient.name}"
    return None


def _complete_history_alone() -> str | None:
    for times in (3, 4):
        found = models_of_all_axioms(times)
        if len(found) != 1:
            return f"over {times} times: {len(found)} models"
        ((_, u),) = found
        for bits in u.sets:
            for t in range(u.size):
                if u.subset(u.next(t, bits)) != COMPLETE_HISTORY.successors(u.stamps[t], u.subset(bits)):
                    return f"over {times} times: SUCC({u.stamps[t]}, {shown(u.subset(bits))}) = {shown(u.subset(u.next(t, bits)))}"
    return None


def _one_successor() -> str | None:
    for _, u in models_of_all_axioms(4):
        for bits in u.sets:
            for t in range(u.size):
                if u.next(t, bits).bit_count() > 1:
                    return f"SUCC({u.stamps[t]}, {shown(u.subset(bits))}) = {shown(u.subset(u.next(t, bits)))}"
    return None


POINTS, LONG = (Interval(1, 1), Interval(2, 2)), (Interval(1, 3), Interval(2, 2))
INSTANCES = ((POINTS, Interval(4, 4)), (LONG, Interval(3, 3)), (LONG, Interval(4, 4)))
"""(a), (b) and (c): F1 and t2 of the instances of Axiom 14 that refute an associative interval model."""


def associative_interval_model(instances: tuple[tuple[tuple[Interval, ...], Interval], ...] = INSTANCES) -> str | None:
    """Values of SUCC([0, 0], F) that agree with THICKENING and some instances of Axiom 14 for t0 = [0, 0], F2 = {t2}, and each t1 of F1.

    The paper's proof goes by Proposition 13, whose last step takes from Axiom 14 what that has as a premise. This one needs no more than
    THICKENING: 2 is not next in {1, 2}, so by (a) [2, 4] is not in {[1, 4], [2, 4]}. By (b) 2 is next in {[1, 3], 2}, for [1, 3] has nothing to be
    composed with, so by (c) [2, 4] is next in {[1, 4], [2, 4]}.
    """
    u = universe(CAYUGA, range(5))
    numbered = [(u.bits(first), u.number(t)) for first, t in instances]
    points = u.bits(POINTS)
    asked = sorted({points, *(bits for first, t in numbered for bits in (first, u.after(first, t)))})
    for values in product(*(subsets(bits, 1 << u.size)[1:] for bits in asked)):
        successors = dict(zip(asked, values, strict=True))
        thick = successors[points] == u.bits([Interval(1, 1)])
        if thick and all(_decomposes(u, successors, first, t) for first, t in numbered):
            return ", ".join(f"SUCC([0, 0], {shown(u.subset(bits))}) = {shown(u.subset(found))}" for bits, found in successors.items())
    return None


def _decomposes(u: Universe[Any], successors: dict[int, int], first: int, t2: int) -> bool:
    """Axiom 14 for F2 = {t2} and each t1 of F1."""
    both = successors[u.after(first, t2)]
    composed = ((t1, u.composed[t1][t2]) for t1 in members(first))
    return all((successors[first] >> t1 & 1) == (both >> t & 1) for t1, t in composed if t is not None)


def _no_false_positives_alone() -> str | None:
    u = universe(CAYUGA, range(4))
    for found in structures(u, lambda *_: True):
        if difference(found, backward=True) is None:
            return "an interval model over 4 times with every match of E0 THEN (E1 THEN E2) among those of (E0 THEN E1) THEN E2"
    return None


def weakly_associative_successors(*, distributing: bool = True) -> list[tuple[Universe[Interval], Function]]:
    """Every SUCC at [0, 0], over intervals of 6 times that start by 3, that (8) allows, and (9) for equal ends if `distributing`."""
    u = universe(CAYUGA, range(6))
    stamps = u.bits(stamp for stamp in u.stamps if 0 < stamp.start <= 3)
    asked = images(u, stamps, 3)

    def fits(function: Function) -> bool:
        for bits, t, image in asked:
            left, right = u.after(chosen(function, bits), t), chosen(function, image)
            equal_ends = distributing and len({u.follows[p] for p in members(bits)}) == 1
            if left & ~right or (equal_ends and left != right):
                return False
        return True

    return [(u, function) for function in functions(u, stamps) if fits(function)]


def _cayuga_alone() -> str | None:
    found = weakly_associative_successors()
    for u, function in found:
        for end, choice in function:
            later_times = u.times[-1] - max(stamp.end for stamp in u.subset(end))
            for bits in subsets(end, 1 << u.size)[1:] if later_times >= 2 else ():
                if choice[bits] != bits:
                    return f"SUCC([0, 0], {shown(u.subset(bits))}) = {shown(u.subset(choice[bits]))}"
    return None if found else "no SUCC at all"


THEOREMS: tuple[Theorem, ...] = (
    Theorem(
        1,
        "under Axioms 1 to 14 every stamp is composed of one sequence of primitive stamps",
        "all models over 3 and 4 times, with one primitive stamp before them",
        _unique_histories,
    ),
    Theorem(
        2,
        "complete history is the only model of Axioms 1 to 14, up to isomorphism",
        "all models over 3 and 4 times, with one primitive stamp before them; candidate sets as in Universe.sets",
        _complete_history_alone,
    ),
    Theorem(
        3,
        "under Axioms 1 to 14 no candidate set has two successors of a stamp",
        "all models over 4 times, with one primitive stamp before them; candidate sets as in Universe.sets",
        _one_successor,
    ),
    Theorem(
        4,
        "no interval model of the standard axioms is associative",
        "every SUCC at [0, 0] on the three sets of intervals over 5 times that a proof needs: a proof, with Axioms 5, 6, 7 and (7)",
        associative_interval_model,
    ),
    Theorem(
        5,
        "in an interval model of all axioms but 14, E0 THEN (E1 THEN E2) has matches that (E0 THEN E1) THEN E2 lacks, for some events",
        "all such models over intervals of 4 times (printed the other way round: see cepheid.succession.errata)",
        _no_false_positives_alone,
    ),
    Theorem(
        6,
        "Cayuga is the only interval model of (8), (9) for equal ends, and all axioms but 14, up to isomorphism",
        "SUCC at [0, 0] over intervals of 6 times that start by 3, where two times follow; (8) and (9) for F1 and P of up to 3 stamps, F2 of one",
        _cayuga_alone,
    ),
)
