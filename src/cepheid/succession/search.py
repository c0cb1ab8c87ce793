"""Every SUCC that some axioms allow on given stamps: the finite half of the paper's proofs that a model is unique.

Comes in: a universe, for its stamps, order and composition. Goes out: the same universe with each SUCC that satisfies Axioms 3 to 7, 9 and 12, and
what else is asked for. Their number is kept finite, and small, by what these axioms say (what-is-next, Axiom 9, Propositions 8 and 1):

- SUCC(t, F) depends on the end of t alone, and only on those of F that follow t.
- They have the least end among these (`end classes`); so SUCC at an end is one choice function for each class.
- A choice function chooses something, keeps what it chose from a set in a part of it (Axiom 5), and does not notice what it did not choose
  (Axiom 7). Such functions are called path independent; there are 1, 3, 22 and 485 of them on 1 to 4 stamps.

What has no predecessor or no successor in a finite universe is constrained less than in the infinite model. The theorems say what they leave out.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

from cepheid.succession.universe import Universe, members, subsets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Choice: TypeAlias = dict[int, int]
"""What is chosen from each set that is not empty."""

Function: TypeAlias = tuple[tuple[int, Choice], ...]
"""SUCC at one end: the classes of stamps that follow and end together, the earlier first, each with its choice."""


@cache
def choices(size: int) -> tuple[Choice, ...]:
    """All path independent choice functions on the sets of `size` elements."""
    sets = subsets((1 << size) - 1, 1 << size)[1:]
    found: list[Choice] = [{}]
    for bits in sets:
        found = [{**choice, bits: chosen} for choice in found for chosen in _possible(choice, bits)]
    return tuple(found)


def _possible(choice: Choice, bits: int) -> set[int]:
    """What may be chosen from a set, where the choices from smaller ones are known."""
    parts = [bits & ~(1 << i) for i in members(bits) if bits & ~(1 << i)]
    thinned = {chosen for chosen in (bits, *(choice[part] for part in parts)) if all(chosen & part & ~choice[part] == 0 for part in parts)}
    return {chosen for chosen in thinned if all(choice[part] == chosen for part in parts if chosen & ~part == 0)}


def functions(u: Universe[Any], follows: int) -> Iterator[Function]:
    """Every SUCC at an end that these stamps follow."""
    ends = sorted({u.follows[t] for t in members(follows)}, key=int.bit_count, reverse=True)
    classes = [[t for t in members(follows) if u.follows[t] == end] for end in ends]
    spread = [[_on(stamps, choice) for choice in choices(len(stamps))] for stamps in classes]
    masks = [sum(1 << t for t in stamps) for stamps in classes]
    for chosen in product(*spread):
        yield tuple(zip(masks, chosen, strict=True))


def _on(stamps: list[int], choice: Choice) -> Choice:
    """A choice from 0, 1, 2, .. as one from these stamps."""

    def spread(bits: int) -> int:
        return sum(1 << stamps[i] for i in members(bits))

    return {spread(bits): spread(chosen) for bits, chosen in choice.items()}


def chosen(function: Function, candidates: int) -> int:
    """SUCC of a set of candidates: the choice from those of the first class that has some."""
    for end, choice in function:
        if candidates & end:
            return choice[candidates & end]
    return 0


def structures(u: Universe[Any], fits: Callable[[Function, int], bool]) -> Iterator[Universe[Any]]:
    """The universe with every SUCC that is allowed. fits: whether SUCC at an end, that these stamps follow, may be so."""
    ends = sorted({follows for follows in u.follows if follows})
    allowed = [[function for function in functions(u, follows) if fits(function, follows)] for follows in ends]
    for found in product(*allowed):
        yield _with(u, dict(zip(ends, found, strict=True)))


def _with(u: Universe[Any], found: dict[int, Function]) -> Universe[Any]:
    def successors(t: int, candidates: int) -> int:
        return chosen(found[u.follows[t]], candidates) if u.follows[t] else 0

    return u.having(successors)


def images(u: Universe[Any], stamps: int, size: int) -> list[tuple[int, int, int]]:
    """F, t and F; {t}, for sets F of up to `size` of these stamps, where F; {t} is of them too: what Axiom 14, (8) and (9) say of one SUCC alone."""
    sets = [bits for bits in subsets(stamps, 1 << u.size) if 0 < bits.bit_count() <= size]
    found = ((bits, t, u.after(bits, t)) for bits in sets for t in range(u.size))
    return [(bits, t, image) for bits, t, image in found if image and image & ~stamps == 0]
