"""Where what-is-next says something that does not hold: each with evidence that can be run.

No erratum touches the theorems, read as `cepheid.succession.theorems` states them. Two proofs in the appendix have a gap, and are replaced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cepheid.records import record
from cepheid.succession.associativity import Match, associative, then
from cepheid.succession.axioms import AXIOMS, BY_NUMBER, distributes, next_pairs, shown
from cepheid.succession.models import (
    ACTIVE_OFFICE,
    CAYUGA,
    COMPLETE_HISTORY,
    ODE,
    POINT,
    SNOOPIB,
    Cayuga,
    CompleteHistory,
    History,
    Interval,
)
from cepheid.succession.universe import universe
from cepheid.succession.verdicts import check, verdicts

if TYPE_CHECKING:
    from collections.abc import Callable

    from cepheid.succession.model import TemporalModel


@record(slots=False)
class Erratum:
    """A claim of the paper, and what holds instead. evidence: a concrete case, or None if there were none."""

    place: str
    claim: str
    correction: str
    evidence: Callable[[], str | None]

    def __str__(self) -> str:
        return f"{self.place}: {self.claim}. {self.correction}."


class CayugaAsInSection2(Cayuga):
    """Cayuga with s1 < p0 < p1 < t1, as section 2 prints it."""

    name = "CAYUGA of section 2"

    def blocks(self, rival: Interval, t: Interval) -> bool:
        """p0 < p1 < t1."""
        return rival.start < rival.end < t.end


class PointFirst(Cayuga):
    """Cayuga, but of candidates that end together an instantaneous one excludes the others. It satisfies (8) and all axioms but 14."""

    name = "POINT FIRST"

    def blocks(self, rival: Interval, t: Interval) -> bool:
        """r1 < t1, or r1 = t1 and r0 = r1 and t0 < t1."""
        return (rival.end, rival.start < rival.end) < (t.end, t.start < t.end)


class LongerFirst(CompleteHistory):
    """Complete history, but of two histories, one of which is the end of the other, the longer is less."""

    name = "LONGER FIRST"

    def blocks(self, rival: History, t: History) -> bool:
        """It comes first in that order."""
        if rival.times[-len(t.times) :] == t.times or t.times[-len(rival.times) :] == rival.times:
            return len(rival.times) > len(t.times)
        return super().blocks(rival, t)


def less_as_printed(s: History, t: History) -> bool:
    """The order of histories as section 3.1 prints its second case ("for all i < l(s)"), with the lengths of the first case as they are meant."""
    one, other = s.times[::-1], t.times[::-1]
    first = any(one[i] < other[i] and one[:i] == other[:i] for i in range(min(len(one), len(other))))
    return first or (len(one) < len(other) and one[:-1] == other[: len(one) - 1])


def _violation(model: TemporalModel[Any], number: str) -> str | None:
    found = check(model, BY_NUMBER[number])
    return None if found is None else str(found)


def _section_2() -> str | None:
    return _violation(CayugaAsInSection2(), "6")


def _printed_order() -> str | None:
    stamps = universe(COMPLETE_HISTORY, range(1, 5)).stamps
    both = [(s, t) for s in stamps for t in stamps if less_as_printed(s, t) and less_as_printed(t, s)]
    return f"{both[0][0]} and {both[0][1]} are less than each other" if both else None


def _generalization() -> str | None:
    u = universe(ACTIVE_OFFICE, range(3))
    for bits in u.sets:
        candidates = u.subset(bits)
        intervals = ACTIVE_OFFICE.successors(Interval(0, 0), candidates)
        histories = COMPLETE_HISTORY.successors(History((0,)), frozenset(COMPLETE_HISTORY.of((t.start, t.end)) for t in candidates))
        if frozenset(COMPLETE_HISTORY.of((t.start, t.end)) for t in intervals) != histories:
            return f"from {shown(candidates)} after 0, Active Office takes {shown(intervals)}, complete history {shown(histories)}"
    return None


def _figure_3() -> str | None:
    announcement: Match[Any] = Match(("A",), Interval(0, 0))
    purchases: frozenset[Match[Any]] = frozenset(Match((name,), Interval(1, 2)) for name in ("Q1Q2", "R1R2"))
    found = then(ACTIVE_OFFICE, frozenset({announcement}), purchases)
    return "; ".join(sorted(map(str, found))) if len(found) == 2 else None


def _points() -> str | None:
    found = [_violation(POINT, number) for number in ("10", "11", "13", "14")]
    return None if None in found else "\n".join(map(str, found))


def _undefined_is_no_interval() -> str | None:
    s, t = CAYUGA.point(0), CAYUGA.point(1)
    return f"{s} * {s} * {t} is undefined, {s} * {t} = {CAYUGA.compose(s, t)}" if CAYUGA.compose(s, s) is None else None


def _printed_distribution() -> str | None:
    """(9) as printed has the same set on both sides, so that every model satisfies it; a model that satisfies all else and is not Cayuga."""
    model = PointFirst()
    found = verdicts(model)
    violated = [axiom.number for axiom in AXIOMS if not found[axiom.number].holds]
    u = universe(model, range(4))
    trivial = all(u.after(bits, t) == u.sequence(bits, 1 << t) for bits in u.sets for t in range(u.size))
    candidates = frozenset({Interval(1, 2), Interval(2, 2)})
    if violated != ["14", "(9)"] or not trivial or model.successors(Interval(0, 0), candidates) == candidates:
        return None
    return (
        f"{model.name}: SUCC([0, 0], {shown(candidates)}) = {shown(model.successors(Interval(0, 0), candidates))}; {found['(9)'].violation}"
    )


def _unequal_ends() -> str | None:
    found = distributes(universe(CAYUGA, range(4)), equal_ends=False)
    return None if found is None else ", ".join(f"{name} = {shown(value)}" for name, value in found[1].items()) + f": {found[0]}"


def _weak_associativity() -> str | None:
    models: tuple[TemporalModel[Any], ...] = (SNOOPIB, ODE)
    found = [(model, associative(model).itself) for model in models]
    same = all(check(model, BY_NUMBER[number]) is None for model in models for number in ("(8)", "(9)"))
    return "\n".join(f"{model.name}: {itself}" for model, itself in found) if same and all(itself for _, itself in found) else None


def _theorem_5() -> str | None:
    found = associative(CAYUGA)
    return str(found.backward) if found.forward is None and found.backward is not None else None


def _proposition_11() -> str | None:
    """With r = 0, s = 1, p = 2, q = 3: what the proof composes is one stamp, and Axiom 14 for F1 = {s} has nothing against the longer one first."""
    model = LongerFirst()
    u = universe(model, range(4))
    s, sp, q = (u.number(History(times)) for times in ((1,), (1, 2), (3,)))
    second = u.bits([History((3,)), History((2, 3))])
    one_stamp = u.subset(u.sequence(1 << s, second)) == {History((1, 2, 3))}
    if not one_stamp or u.next(s, second) >> q & 1:
        return None
    first = 1 << s | 1 << sp
    both = u.sequence(first, second)
    contradicted = (u.next(0, first) >> sp & 1) != (u.next(0, both) >> u.number(History((1, 2, 3))) & 1)
    return f"{{s}}; {{q, p * q}} = {{s * p * q}}; {_violation(model, '14')}" if contradicted else None


def _proposition_13() -> str | None:
    """Axiom 14 for F1 = {t} and F2 = F holds in Active Office at r = 0, t = 1, and SUCC(t, F) is not F."""
    u = universe(ACTIVE_OFFICE, range(4))
    r, t = 0, 1
    candidates = u.bits([Interval(2, 3), Interval(3, 3)])
    both = u.sequence(1 << t, candidates)
    holds = all((u.next(r, 1 << t) >> t1 & 1) == (u.next(r, both) >> c & 1) for t1, _, c in next_pairs(u, candidates) if t1 == t)
    if not holds or u.next(r, both) != both or u.next(t, candidates) == candidates:
        return None
    return f"{{t}}; F = SUCC(r, {{t}}; F) = {shown(u.subset(both))}, SUCC(t, F) = {shown(u.subset(u.next(t, candidates)))}"


ERRATA: tuple[Erratum, ...] = (
    Erratum(
        "section 2, Cayuga",
        "no p with s1 < p0 < p1 < t1 keeps [t0, t1] from being a successor",
        "section 3 has p0 <= p1: otherwise an event at an instant would exclude nothing, against Axiom 6",
        _section_2,
    ),
    Erratum(
        "section 3.1, complete history",
        "sigma is less than tau if sigma is shorter and equals the end of tau for all i < l(sigma)",
        "for all i <= l(sigma): as printed, two histories can be less than each other",
        _printed_order,
    ),
    Erratum(
        "section 3.1, complete history",
        "it is a generalization of the definition of successor in Active Office",
        "not for instants: Active Office prefers the earlier start, complete history the shorter of two where one is the end of the other",
        _generalization,
    ),
    Erratum(
        "section 2, Active Office",
        "it selects only one of the simultaneous events of Figure 3",
        "its formula in section 3 has no identifiers: both events have the stamp that it selects",
        _figure_3,
    ),
    Erratum(
        "section 5",
        "systems with point time stamps violate Axiom 13",
        "they violate Axioms 10, 11 and 14 as well: every point is composed of an earlier one and itself; 10 and 11 are standard axioms",
        _points,
    ),
    Erratum(
        "section 5.2, equation (7)",
        "t0 * t1 * t2 = t0 * t2 for any stamps",
        "only where t0 < t1 < t2: otherwise the left side is undefined while the right side may be defined",
        _undefined_is_no_interval,
    ),
    Erratum(
        "section 5.2.2, equation (9) and Theorem 6",
        "with (8), SUCC(t, {p * s}) = SUCC(t, {p}; {s}) characterizes Cayuga",
        "it has the same set on both sides, so every model satisfies it; the proof uses SUCC(t, {p}); {s} on the right, for p with equal ends",
        _printed_distribution,
    ),
    Erratum(
        "section 5.2.2, equation (9)",
        "Cayuga satisfies it",
        "in the form of the proof it does so for p with equal ends only",
        _unequal_ends,
    ),
    Erratum(
        "section 5.2.2",
        "SnoopIB and ODE satisfy (8) and (9), and thus approximate associativity equally well as Cayuga",
        "they satisfy both, but not the associativity of a stream with itself, E1; (E2; E2) = (E1; E2); E2, which is said to follow",
        _weak_associativity,
    ),
    Erratum(
        "section 5.2.2, Theorem 5",
        "the matches of (E0; E1); E2 are not all among those of E0; (E1; E2)",
        "the other way round: by (8) they are in Cayuga; those of E0; (E1; E2) are not all among those of (E0; E1); E2",
        _theorem_5,
    ),
    Erratum(
        "appendix, proof of Proposition 11, last case",
        "by Axiom 14, SUCC(r, {s * p * q, s * q}) = {s * p * q}",
        "{s}; {q, p * q} is {s * p * q} alone if q is not next after s. F1 = {s, s * p} gives the contradiction: s * p is next after r",
        _proposition_11,
    ),
    Erratum(
        "appendix, proof of Proposition 13",
        "SUCC(t, F) = F by Axiom 14",
        "that t2 is in SUCC(t, F) is a premise of Axiom 14, it does not follow. Theorem 4 holds by another proof (cepheid.succession.theorems)",
        _proposition_13,
    ),
)
