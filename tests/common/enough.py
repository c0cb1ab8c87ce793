"""Random cases until what must be among them has been seen: that a test passes is no matter of chance, however few cases a run asks for."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

T = TypeVar("T")

MOST = 2_000
"""Cases without what is wanted after which it counts as never there; twenty times what was asked for, if that is more."""


class Enough(Generic[T]):
    """`count` cases of a source without end, or the numbers from 0 on, and more until each thing wanted has been seen so many times.

    The body of the loop counts in `seen`. Raises AssertionError where it takes too many cases.
    """

    def __init__(self, count: int, source: Iterable[T] | None = None, /, **wanted: int) -> None:
        self.seen: Counter[str] = Counter()
        self._source = itertools.count() if source is None else source
        self._count, self._wanted = count, wanted

    def __iter__(self) -> Iterator[T]:
        for number, case in enumerate(self._source):
            missing = {name: least for name, least in self._wanted.items() if self.seen[name] < least}
            if number >= self._count and not missing:
                return
            assert number < max(MOST, 20 * self._count), f"in {number} cases there are {dict(self.seen)}, wanted are {missing}"
            yield case
        raise AssertionError("the source has an end")


class Kept(Generic[T]):
    """What a source without end gives, made once and kept for all who iterate."""

    def __init__(self, source: Iterator[T]) -> None:
        self._source = source
        self._made: list[T] = []

    def __iter__(self) -> Iterator[T]:
        for place in itertools.count():
            if place == len(self._made):
                self._made.append(next(self._source))
            yield self._made[place]


def share(count: int, variant: str | None) -> int:
    """So many of `count` cases are for this variant of the kernels: a quarter for the one that is not compiled, which takes fifty times as long."""
    return max(1, count // 4) if variant == "python" else count
