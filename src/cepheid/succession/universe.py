"""A finite part of a temporal model: all stamps that are composed of the points of a few times. Axioms are checked on it.

It is closed under composition, so what holds of all stamps and candidate sets of the model holds here, and a violation found here is one of the
model. The other way round nothing follows: no violation here is evidence, not proof.

Inside, a stamp is its number and a candidate set is an integer, a bit for each stamp: SUCC is asked once for each stamp and set.
"""

from __future__ import annotations

import copy
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Generic

from cepheid.errors import InputError, LimitError
from cepheid.succession.model import S, TemporalModel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

MAX_STAMPS = 64
"""Stamps that a universe may have: intervals over 10 times, histories over 6."""

MAX_SETS = 1024
"""Candidate sets that are tried where a property speaks of one: all of 10 stamps, those of up to 3 of 15."""

MAX_SETS_OF_PAIRS = 128
"""Candidate sets that are tried for each of the two where a property speaks of two: those of up to 2 of 15 stamps, of 1 of 31."""


def universe(model: TemporalModel[S], times: Iterable[int]) -> Universe[S]:
    """The stamps of a model at these times, and all that are composed of them: points first, then what is composed of fewer.

    Raises InputError for no times; LimitError above `MAX_STAMPS`, as for a model that composes without end.
    """
    given = tuple(sorted(set(times)))
    if not given:
        raise InputError("a universe without times has no stamps", help="give some, such as range(4)")
    stamps = dict.fromkeys(model.point(time) for time in given)
    size = 0
    while size < len(stamps):
        size = len(stamps)
        for s in tuple(stamps):
            for t in tuple(stamps):
                composed = model.compose(s, t)
                if composed is not None:
                    stamps[composed] = None
                if len(stamps) > MAX_STAMPS:
                    raise LimitError(
                        f"{model.name} composes more than {MAX_STAMPS} stamps of {len(given)} times",
                        help="give fewer times; a universe is tried exhaustively (MAX_STAMPS)",
                    )
    return Universe(model, given, tuple(stamps))


class Universe(Generic[S]):
    """The stamps of a model over some times, as numbers and bits.

    follows: of each stamp, the set of those after it. composed: of two stamps, their composition or None.
    """

    def __init__(self, model: TemporalModel[S], times: tuple[int, ...], stamps: tuple[S, ...]) -> None:
        self.model, self.times, self.stamps = model, times, stamps
        self.size = len(stamps)
        number = {stamp: i for i, stamp in enumerate(stamps)}
        self.follows = [sum(1 << j for j, t in enumerate(stamps) if model.before(s, t)) for s in stamps]
        found = [[model.compose(s, t) for t in stamps] for s in stamps]
        self.composed = [[None if t is None else number[t] for t in row] for row in found]
        self._number = number
        self._known: list[dict[int, int]] = [{} for _ in stamps]
        self._asked: Callable[[int, int], int] = self._ask

    def having(self, successors: Callable[[int, int], int]) -> Universe[S]:
        """The same stamps, order and composition, with another SUCC: of a stamp's number and a set's bits, the set."""
        other = copy.copy(self)
        other._known, other._asked = [{} for _ in self.stamps], successors  # noqa: SLF001 - its own class
        return other

    def next(self, s: int, candidates: int) -> int:
        """SUCC(s, candidates)."""
        known = self._known[s]
        if candidates not in known:
            known[candidates] = self._asked(s, candidates)
        return known[candidates]

    def _ask(self, s: int, candidates: int) -> int:
        found = self.model.successors(self.stamps[s], self.subset(candidates))
        missing = [stamp for stamp in found if stamp not in self._number]
        if missing:
            raise InputError(
                f"{self.model.name}: {missing[0]} is said to be a successor of {self.stamps[s]}, and is no stamp of the universe",
                help="SUCC gives some of the candidates (what-is-next, Axiom 3)",
            )
        return sum(1 << self._number[stamp] for stamp in found)

    def subset(self, bits: int) -> frozenset[S]:
        """The stamps of a set."""
        return frozenset(self.stamps[i] for i in members(bits))

    def number(self, stamp: S) -> int:
        """The number of a stamp."""
        return self._number[stamp]

    def bits(self, stamps: Iterable[S]) -> int:
        """The set of these stamps."""
        return sum(1 << self._number[stamp] for stamp in set(stamps))

    def sequence(self, first: int, second: int) -> int:
        """F0; F1 = {t0 * t1 | t0 in F0, t1 in SUCC(t0, F1)} (what-is-next, equation 6)."""
        found = 0
        for s in members(first):
            for t in members(self.next(s, second)):
                composed = self.composed[s][t]
                found |= 0 if composed is None else 1 << composed
        return found

    def after(self, candidates: int, t: int) -> int:
        """{p * t | p in candidates}, of those that are defined."""
        found = 0
        for p in members(candidates):
            composed = self.composed[p][t]
            found |= 0 if composed is None else 1 << composed
        return found

    @cached_property
    def primitive(self) -> int:
        """The stamps that are not composed of others: the only set that Axiom 10 can mean (Proposition 3)."""
        composed = {t for row in self.composed for t in row}
        return sum(1 << i for i in range(self.size) if i not in composed)

    @cached_property
    def sets(self) -> list[int]:
        """Candidate sets, the smaller first: all up to the greatest size up to which there are at most `MAX_SETS`."""
        return subsets((1 << self.size) - 1, MAX_SETS)

    @cached_property
    def few_sets(self) -> list[int]:
        """The same, up to `MAX_SETS_OF_PAIRS`."""
        return subsets((1 << self.size) - 1, MAX_SETS_OF_PAIRS)

    @cached_property
    def pairs_of_sets(self) -> list[tuple[int, int]]:
        """Two candidate sets, those with fewer stamps together first."""
        pairs = [(one, other) for one in self.few_sets for other in self.few_sets]
        return sorted(pairs, key=lambda pair: pair[0].bit_count() + pair[1].bit_count())


def subsets(bits: int, most: int) -> list[int]:
    """The subsets of a set, the smaller first: of all sizes up to the greatest up to which there are at most `most`."""
    single = [1 << i for i in members(bits)]
    found: list[int] = []
    for size in range(len(single) + 1):
        sized = [sum(chosen) for chosen in combinations(single, size)]
        if len(found) + len(sized) > most:
            break
        found += sized
    return found


def members(bits: int) -> Iterator[int]:
    """The numbers of the stamps of a set, ascending."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low
