"""Which models of all axioms a few times leave room for: the search behind Theorems 1 and 2 of what-is-next.

By Axioms 8, 10, 11 and 13 and Proposition 6, a model is the histories over its primitive stamps, some of which may be the same stamp if they start
and end together; what is the same stays so when something is composed with it. Over four times there are 27 such (T, <, *) (`quotients`). Each gets
every SUCC that Axioms 3 to 7, 9 and 12 allow (`cepheid.succession.search`); what Axiom 14 then leaves is the answer (`satisfying`).

Axiom 14 is asked for a t1 of F1 only: what associativity implies (equation 5), less than what the paper prints. And it is asked at one primitive
stamp r before all the others as well, as the proofs ask it ("let r < s"). SUCC(r, F) is not chosen: Axioms 6 and 12 and Proposition 1 say what it is
where one stamp alone ends first, and Axiom 14 says which other memberships are one and the same. A structure falls if one of these is true and false.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

from cepheid.succession.axioms import least_ends, next_pairs
from cepheid.succession.model import BlockingModel
from cepheid.succession.models import COMPLETE_HISTORY, History
from cepheid.succession.search import Function, chosen, images, structures
from cepheid.succession.universe import Universe, members, universe

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Merging: TypeAlias = dict[History, History]
"""Of each history, the one that stands for its stamp."""


class Quotient(BlockingModel[History]):
    """Histories, some of which are the same stamp. Its SUCC is that of complete history among those that stand for stamps."""

    def __init__(self, merging: Merging) -> None:
        self.merging = merging
        self.name = ", ".join(f"{one} = {other}" for one, other in merging.items() if one != other) or "no two histories are the same"

    def point(self, time: int) -> History:
        """The history of one time."""
        return COMPLETE_HISTORY.point(time)

    def before(self, s: History, t: History) -> bool:
        """As for histories."""
        return COMPLETE_HISTORY.before(s, t)

    def compose(self, s: History, t: History) -> History | None:
        """The stamp of the times of both."""
        composed = COMPLETE_HISTORY.compose(s, t)
        return None if composed is None else self.merging[composed]

    def blocks(self, rival: History, t: History) -> bool:
        """As for histories."""
        return COMPLETE_HISTORY.blocks(rival, t)


def quotients(times: int) -> Iterator[Quotient]:
    """Every way in which histories over so many times can be the same stamps: 1, 1, 2, 27 of them over 1 to 4 times."""
    stamps = universe(COMPLETE_HISTORY, range(times)).stamps
    together: dict[tuple[int, int], list[History]] = {}
    for stamp in stamps:
        together.setdefault((stamp.times[0], stamp.times[-1]), []).append(stamp)
    for chosen_classes in product(*(list(_partitions(stamps)) for stamps in together.values())):
        merging = {stamp: same[0] for classes in chosen_classes for same in classes for stamp in same}
        if _is_congruence(merging, stamps):
            yield Quotient(merging)


def _partitions(stamps: list[History]) -> Iterator[list[list[History]]]:
    if not stamps:
        yield []
        return
    first, *rest = stamps
    for classes in _partitions(rest):
        yield [[first], *classes]
        for i, same in enumerate(classes):
            yield [*classes[:i], [first, *same], *classes[i + 1 :]]


def _is_congruence(merging: Merging, stamps: Sequence[History]) -> bool:
    """Whether what is composed of the same stamps is the same."""
    for one, other in merging.items():
        for stamp in stamps:
            for (s, t), (u, v) in (((one, stamp), (other, stamp)), ((stamp, one), (stamp, other))):
                left, right = COMPLETE_HISTORY.compose(s, t), COMPLETE_HISTORY.compose(u, v)
                if left is not None and right is not None and merging[left] != merging[right]:
                    return False
    return True


def satisfying(quotient: Quotient, times: int) -> Iterator[Universe[History]]:
    """The universe of a quotient with each SUCC under which nothing contradicts Axioms 1 to 14."""
    u = universe(quotient, range(times))
    asked = {follows: images(u, follows, 2) for follows in u.follows}

    def fits(function: Function, follows: int) -> bool:
        return all(
            (chosen(function, bits) >> t1 & 1) == (chosen(function, image) >> composed & 1)
            for bits, t, image in asked[follows]
            for t1 in members(bits)
            if (composed := u.composed[t1][t]) is not None
        )

    return (found for found in structures(u, fits) if not _contradicted(found))


def _contradicted(u: Universe[Any]) -> bool:
    """Whether Axiom 14 at r makes one membership in SUCC(r, F) true and false. Sets of memberships that are the same grow by union-find."""
    parent: dict[tuple[int, int], tuple[int, int]] = {}
    known: dict[tuple[int, int], bool] = {}

    def find(node: tuple[int, int]) -> tuple[int, int]:
        if node not in parent:
            parent[node] = node
            least = least_ends(u, node[0])
            if not least >> node[1] & 1 or least.bit_count() == 1:
                known[node] = bool(least >> node[1] & 1)
        while parent[node] != node:
            node = parent[node]
        return node

    pairs = {second: next_pairs(u, second) for second in u.few_sets}
    for first, second in u.pairs_of_sets:
        both = u.sequence(first, second) if first and pairs[second] else 0
        for t1, _, composed in pairs[second] if both else ():
            if first >> t1 & 1:
                one, other = find((first, t1)), find((both, composed))
                values = {known[node] for node in (one, other) if node in known}
                if len(values) == 2:
                    return True
                parent[one] = other
                if values:
                    known[other] = values.pop()
    return False
