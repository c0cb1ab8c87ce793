"""The axioms and properties of what-is-next, sections 4 and 5.2, each with its check over a finite universe of stamps.

Comes in: a universe. Goes out: a `Violation` with concrete stamps and candidate sets, of those with the fewest candidates; or None. A violation
proves that the model does not satisfy the axiom. None says that nothing in the universe contradicts it: candidate sets have at most so many stamps
(`MAX_SETS`), and of what an axiom says about infinity only a finite trace is seen; its statement says which.

Thinning, thickening and non-blocking are checked one candidate at a time: that a set is added or removed whole follows by induction.

As in `cepheid.succession.model`, `s < t` is the order of stamps and `s * t` their composition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from cepheid.records import record
from cepheid.succession.universe import MAX_SETS, Universe, members, subsets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Finding: TypeAlias = "tuple[str, Mapping[str, Any]] | None"
"""What contradicts an axiom, and the stamps and candidate sets it is about."""


@record(slots=False)
class Violation:
    """Stamps and candidate sets (`where`, by the names of the axiom) that contradict an axiom, and what they do (`found`)."""

    axiom: Axiom
    where: Mapping[str, Any]
    found: str

    def __str__(self) -> str:
        where = ", ".join(f"{name} = {shown(value)}" for name, value in self.where.items())
        return f"{self.axiom.number} {self.axiom.name}: {where}: {self.found}"


@record(slots=False)
class Axiom:
    """An axiom or property. number: in the paper, as (8) for an equation, P14 for a proposition.

    kind: standard (section 4.1), desirable (section 4.2) or property (section 5.2).
    """

    number: str
    name: str
    kind: str
    statement: str
    search: Callable[[Universe[Any]], Finding]

    def check(self, universe: Universe[Any]) -> Violation | None:
        """What contradicts it in a universe; None where nothing does."""
        found = self.search(universe)
        return None if found is None else Violation(self, found[1], found[0])

    def __str__(self) -> str:
        return f"{self.number} {self.name}: {self.statement}"


def shown(value: object) -> str:
    """A stamp, or a candidate set with its stamps in order, as messages print it."""
    if not isinstance(value, frozenset):
        return str(value)
    stamps: Iterable[str] = sorted(map(str, value), key=lambda text: (len(text), text))
    return f"{{{', '.join(stamps)}}}"


def _has(bits: int, i: int) -> bool:
    return bool(bits >> i & 1)


def _successors(u: Universe[Any], *asked: tuple[str, int, int]) -> str:
    """SUCC of each as it is: a name for stamp and set, the stamp, the set."""
    return ", ".join(f"SUCC({name}) = {shown(u.subset(u.next(s, bits)))}" for name, s, bits in asked)


# ------------------------------------------------------------------------------------------------------------------------ the order


def _transitivity(u: Universe[Any]) -> Finding:
    for t0 in range(u.size):
        for t1 in members(u.follows[t0]):
            for t2 in members(u.follows[t1] & ~u.follows[t0]):
                return "t0 < t1 < t2, but not t0 < t2", {"t0": u.stamps[t0], "t1": u.stamps[t1], "t2": u.stamps[t2]}
    return None


def _irreflexivity(u: Universe[Any]) -> Finding:
    for t in range(u.size):
        if _has(u.follows[t], t):
            return "t < t", {"t": u.stamps[t]}
    return None


# ------------------------------------------------------------------------------------------------------------------------------ SUCC


def _candidate_presence(u: Universe[Any]) -> Finding:
    for bits in u.sets:
        for t in range(u.size):
            if u.next(t, bits) & ~bits:
                return _successors(u, ("t, F", t, bits)), {"t": u.stamps[t], "F": u.subset(bits)}
    return None


def _respecting_order(u: Universe[Any]) -> Finding:
    ever = [0] * u.size
    for bits in u.sets:
        for t in range(u.size):
            found = u.next(t, bits)
            ever[t] |= found
            for s in members(found & ~u.follows[t]):
                return "s is in SUCC(t, F), but not t < s", {"t": u.stamps[t], "s": u.stamps[s], "F": u.subset(bits)}
    for t in range(u.size):
        for s in members(u.follows[t] & ~ever[t]):
            return "t < s, but s is in SUCC(t, F) for no F that was tried", {"t": u.stamps[t], "s": u.stamps[s]}
    return None


def _thinning(u: Universe[Any]) -> Finding:
    for bits in u.sets:
        for t0 in range(u.size):
            found = u.next(t0, bits)
            for out in members(bits if found else 0):
                rest = bits & ~(1 << out)
                for t1 in members(found & rest & ~u.next(t0, rest)):
                    where = {"t0": u.stamps[t0], "t1": u.stamps[t1], "F": u.subset(bits), "T": u.subset(rest)}
                    return f"t1 is in SUCC(t0, F), but {_successors(u, ('t0, T', t0, rest))}", where
    return None


def _added(u: Universe[Any], names: tuple[str, str, str], t: int, bits: int, new: int) -> Finding:
    """Whether a new candidate changes SUCC(t, F). names: of t, of F, and of the candidate."""
    more = bits | 1 << new
    if u.next(t, more) == u.next(t, bits):
        return None
    stamp, candidates, added = names
    found = _successors(u, (f"{stamp}, {candidates}", t, bits), (f"{stamp}, {candidates} + {added}", t, more))
    return found, {stamp: u.stamps[t], candidates: u.subset(bits)}


def _thickening(u: Universe[Any]) -> Finding:
    for bits in u.sets:
        for t in range(u.size):
            later = 0
            for p in members(u.next(t, bits)):
                later |= u.follows[p]
            for s in range(u.size):
                if _has(u.follows[s], t) or _has(later, s):
                    found = _added(u, ("t", "F", "s"), t, bits, s)
                    if found is not None:
                        return found[0], {**found[1], "s": u.stamps[s]}
    return None


def _non_blocking(u: Universe[Any]) -> Finding:
    for bits in u.sets:
        for t in range(u.size):
            found = u.next(t, bits)
            for out in members(bits & ~found):
                rest = bits & ~(1 << out)
                if u.next(t, rest) != found:
                    where = {"t": u.stamps[t], "F": u.subset(bits), "A": u.subset(1 << out)}
                    return _successors(u, ("t, F", t, bits), ("t, F - A", t, rest)), where
    return None


def _strong_thickening(u: Universe[Any]) -> Finding:
    for bits in u.sets:
        for s in range(u.size):
            later = 0
            for t in members(u.next(s, bits)):
                later |= u.follows[t]
            for v in members(later):
                for row in range(u.size):
                    new = u.composed[row][v]
                    found = None if new is None else _added(u, ("s", "A", "u * v"), s, bits, new)
                    if found is not None:
                        return found[0], {**found[1], "u": u.stamps[row], "v": u.stamps[v]}
    return None


# ----------------------------------------------------------------------------------------------------------------------- composition


def _conservative_composition(u: Universe[Any]) -> Finding:
    for t0 in range(u.size):
        for t1 in range(u.size):
            defined = u.composed[t0][t1] is not None
            if defined != _has(u.follows[t0], t1):
                found = "t0 * t1 is defined, but not t0 < t1" if defined else "t0 < t1, but t0 * t1 is undefined"
                return found, {"t0": u.stamps[t0], "t1": u.stamps[t1]}
    return None


def _elimination(u: Universe[Any]) -> Finding:
    for bits in u.sets:
        for t0 in range(u.size):
            for t1 in members(u.follows[t0]):
                both = u.composed[t0][t1]
                if both is not None and u.next(both, bits) != u.next(t1, bits):
                    found = _successors(u, ("t0 * t1, F", both, bits), ("t1, F", t1, bits))
                    return found, {"t0": u.stamps[t0], "t1": u.stamps[t1], "F": u.subset(bits)}
    return None


def _representation(u: Universe[Any]) -> Finding:
    reached, before = u.primitive, 0
    while reached != before:
        before = reached
        for t in tuple(members(before)):
            reached |= u.after(before, t)
    for t in range(u.size):
        if not _has(reached, t):
            return "t is composed of others, and not of stamps that are not", {"t": u.stamps[t], "primitive": u.subset(u.primitive)}
    return None


def _linearity(u: Universe[Any]) -> Finding:
    for s in members(u.primitive):
        for t in members(u.primitive):
            if s < t and not (_has(u.follows[s], t) or _has(u.follows[t], s)):
                return "neither s < t nor t < s", {"s": u.stamps[s], "t": u.stamps[t]}
    if u.primitive.bit_count() != len(u.times):
        found = f"{u.primitive.bit_count()} primitive stamps at {len(u.times)} times"
        return found, {"primitive": u.subset(u.primitive)}
    return None


def _composed(u: Universe[Any], s: int | None, t: int | None) -> int | None:
    return None if s is None or t is None else u.composed[s][t]


def _associativity(u: Universe[Any]) -> Finding:
    for t0 in range(u.size):
        for t1 in range(u.size):
            for t2 in range(u.size):
                left = _composed(u, u.composed[t0][t1], t2)
                right = _composed(u, t0, u.composed[t1][t2])
                if left != right:
                    one, other = ("undefined" if t is None else u.stamps[t] for t in (left, right))
                    found = f"(t0 * t1) * t2 is {one}, t0 * (t1 * t2) is {other}"
                    return found, {"t0": u.stamps[t0], "t1": u.stamps[t1], "t2": u.stamps[t2]}
    return None


def _intervals(u: Universe[Any]) -> Finding:
    for t0 in range(u.size):
        for t1 in range(u.size):
            for t2 in range(u.size):
                whole = _composed(u, u.composed[t0][t1], t2)
                if whole is not None and whole != u.composed[t0][t2]:
                    found = f"t0 * t1 * t2 is {u.stamps[whole]}"
                    return found, {"t0": u.stamps[t0], "t1": u.stamps[t1], "t2": u.stamps[t2]}
    return None


# -------------------------------------------------------------------------------------------------- composition and SUCC together


def next_pairs(u: Universe[Any], second: int) -> list[tuple[int, int, int]]:
    """t1, t2 and t1 * t2 with t2 in SUCC(t1, F2)."""
    found = ((t1, t2, u.composed[t1][t2]) for t1 in range(u.size) for t2 in members(u.next(t1, second)))
    return [(t1, t2, both) for t1, t2, both in found if both is not None]


def _decomposed(u: Universe[Any], *, reverse: bool, of_candidates: bool) -> Finding:
    """Axiom 14: left to right ((8)), with reverse also the other way. of_candidates: only of t1 in F1."""
    pairs = {second: next_pairs(u, second) for second in u.few_sets}
    for first, second in u.pairs_of_sets:
        both = u.sequence(first, second)
        for t0 in range(u.size) if pairs[second] else ():
            one, other = u.next(t0, first), u.next(t0, both)
            for t1, t2, composed in pairs[second]:
                left, right = _has(one, t1), _has(other, composed)
                if left == right or (right and not reverse) or (of_candidates and not _has(first, t1)):
                    continue
                yes, no = ("t1", "SUCC(t0, F1)"), ("t1 * t2", "SUCC(t0, F1; F2)")
                (stamp, within), (lost, outside) = (yes, no) if left else (no, yes)
                where = {f"t{i}": u.stamps[t] for i, t in enumerate((t0, t1, t2))}
                return f"{stamp} is in {within}, but {lost} is not in {outside}", where | {"F1": u.subset(first), "F2": u.subset(second)}
    return None


def _decomposition(u: Universe[Any]) -> Finding:
    for of_candidates in (True, False):
        found = _decomposed(u, reverse=True, of_candidates=of_candidates)
        if found is not None:
            return found
    return None


def _weak_decomposition(u: Universe[Any]) -> Finding:
    return _decomposed(u, reverse=False, of_candidates=False)


def distributes(u: Universe[Any], *, equal_ends: bool) -> Finding:
    """SUCC(t, {p * s | p in P}) = {p * s | p in SUCC(t, P)}: (9) in the form in which the proof of Theorem 6 uses it.

    equal_ends: only of P in which all stamps have the same end; without it not even Cayuga has the property.
    """
    for bits in u.sets:
        ends = {u.follows[p] for p in members(bits)}
        for s in range(u.size if len(ends) == 1 or not equal_ends else 0):
            composed = u.after(bits, s)
            for t in range(u.size if composed else 0):
                left, right = u.next(t, composed), u.after(u.next(t, bits), s)
                if left != right:
                    one, other = shown(u.subset(left)), shown(u.subset(right))
                    where = {"t": u.stamps[t], "s": u.stamps[s], "P": u.subset(bits)}
                    return f"SUCC(t, P; {{s}}) = {one}, SUCC(t, P); {{s}} = {other}", where
    return None


def _of_equal_ends(u: Universe[Any]) -> Finding:
    return distributes(u, equal_ends=True)


def least_ends(u: Universe[Any], bits: int) -> int:
    """Those of a set before whose end no other one ends; an end is known by what follows it (Definition 1)."""
    found = 0
    for t in members(bits):
        ends_later = any(u.follows[r] != u.follows[t] and u.follows[r] | u.follows[t] == u.follows[r] for r in members(bits))
        found |= 0 if ends_later else 1 << t
    return found


def _all_of_the_least_end(u: Universe[Any]) -> Finding:
    two = u.sequence((1 << u.size) - 1, (1 << u.size) - 1)
    inner = 0
    for t in range(u.size):
        inner |= u.after(two, t)
    for bits in subsets(inner, MAX_SETS):
        for s in range(u.size):
            if u.next(s, bits) != least_ends(u, bits & u.follows[s]):
                return _successors(u, ("s, F", s, bits)), {"s": u.stamps[s], "F": u.subset(bits)}
    return None


# -------------------------------------------------------------------------------------------------------------------------- the table

AXIOMS: tuple[Axiom, ...] = (
    Axiom("1", "TRANSITIVITY", "standard", "if t0 < t1 and t1 < t2, then t0 < t2", _transitivity),
    Axiom("2", "IRREFLEXIVITY", "standard", "never t < t", _irreflexivity),
    Axiom("3", "CANDIDATE PRESENCE", "standard", "SUCC(t, F) is part of F", _candidate_presence),
    Axiom(
        "4",
        "RESPECTING ORDER",
        "standard",
        "t < s iff s is in SUCC(t, F) for some F; an F is sought among the sets that are tried, {s} included, which is enough by Axiom 5",
        _respecting_order,
    ),
    Axiom("5", "THINNING", "standard", "if t1 is in SUCC(t0, F), then also in SUCC(t0, T) for each part T of F that has t1", _thinning),
    Axiom(
        "6",
        "THICKENING",
        "standard",
        "SUCC(t, F) = SUCC(t, F + A) if each s of A has s < t, or p < s for a p of SUCC(t, F)",
        _thickening,
    ),
    Axiom("7", "NON-BLOCKING", "standard", "SUCC(t, F) = SUCC(t, F - A) if nothing of A is in SUCC(t, F)", _non_blocking),
    Axiom("8", "CONSERVATIVE COMPOSITION", "standard", "t0 * t1 is defined iff t0 < t1", _conservative_composition),
    Axiom("9", "ELIMINATION", "standard", "if t0 < t1, then SUCC(t0 * t1, F) = SUCC(t1, F)", _elimination),
    Axiom(
        "10",
        "PRIMITIVE REPRESENTATION",
        "standard",
        "every t is s0 * .. * sn of stamps that are not composed; checked: of those that nothing in the universe composes, in any order of the *",
        _representation,
    ),
    Axiom(
        "11",
        "LINEARITY",
        "standard",
        "< is an infinite discrete linear order of the stamps that are not composed; checked: linear, and as many of them as times",
        _linearity,
    ),
    Axiom(
        "12",
        "STRONG THICKENING",
        "desirable",
        "if t is in SUCC(s, A) and t < v, then SUCC(s, A) = SUCC(s, A + u * v); an undefined u * v adds nothing",
        _strong_thickening,
    ),
    Axiom("13", "ASSOCIATIVITY", "desirable", "(t0 * t1) * t2 = t0 * (t1 * t2), or both are undefined", _associativity),
    Axiom(
        "14",
        "DECOMPOSITION",
        "desirable",
        "if t2 is in SUCC(t1, F2), then t1 is in SUCC(t0, F1) iff t1 * t2 is in SUCC(t0, F1; F2); a t1 of F1 is sought first",
        _decomposition,
    ),
    Axiom("(7)", "INTERVAL MODEL", "property", "t0 * t1 * t2 = t0 * t2, where the left side is defined", _intervals),
    Axiom(
        "(8)",
        "FORWARD DECOMPOSITION",
        "property",
        "if t1 is in SUCC(t0, F1) and t2 in SUCC(t1, F2), then t1 * t2 is in SUCC(t0, F1; F2)",
        _weak_decomposition,
    ),
    Axiom(
        "(9)",
        "DISTRIBUTION",
        "property",
        "SUCC(t, P; {s}) = SUCC(t, P); {s} for P with equal ends (not as printed: see cepheid.succession.errata)",
        _of_equal_ends,
    ),
    Axiom(
        "P14",
        "ALL OF THE LEAST END",
        "property",
        "if every t of F is r0 * r1 * r2, then SUCC(s, F) = those of F after s that end first; the conclusion of Proposition 14 alone",
        _all_of_the_least_end,
    ),
)
"""In the order of the paper: its 14 axioms, then the properties of section 5.2."""

BY_NUMBER: Mapping[str, Axiom] = {axiom.number: axiom for axiom in AXIOMS}
"""The axioms by number."""
