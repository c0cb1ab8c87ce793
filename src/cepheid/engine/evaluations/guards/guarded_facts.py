"""What guards ask of an event alone, by values that no letter has: bits of its letter for the kernel of guards.

Such a test comes up where a macro state has two values of one event: its position beside a constant (`b.$index < 10`), or what a register will hold
beside the event that fills it. A letter is read before positions are known, and says nothing of these. So the bits are made batch by batch, in front
of the kernel, which then knows more letters and no more tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cepheid.automata.registers import Compares, Elapsed, Now, reads
from cepheid.engine.evaluations.uncompiled.guarded_values import COMPARISONS
from cepheid.engine.letters.values import INTEGERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from cepheid.automata.regions import Region
    from cepheid.automata.registers import Test
    from cepheid.engine.letters.encoded import Values
    from cepheid.logical.plan import Expression

Array = np.ndarray[Any, Any]


class Facts:
    """The tests of events alone, each with a bit; most: bits that there is room for."""

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._tests: dict[Test, int] = {}

    @property
    def bits(self) -> int:
        """How many there are."""
        return len(self._tests)

    def know(self, region: Region) -> bool:
        """Give what a region asks of the event alone its bits; false where that is no comparison of words, or there is no room."""
        own = [test for test, _ in region.literals if not reads(test)]
        for test in own:
            self._tests.setdefault(test, len(self._tests))
        return all(map(_is_of_words, own)) and self.bits <= self._most

    def agree(self, region: Region, facts: int) -> bool:
        """Whether events with these bits can be in a region."""
        return all(bool(facts >> self._tests[test] & 1) is truth for test, truth in region.literals if not reads(test))

    def of(self, values: Values, words: Callable[[Expression], Array]) -> Array:
        """The bits of each event (uint64); words: gives those by which a value is compared. O(events), for each test."""
        found: Array = np.zeros(len(values), np.uint64)
        for test, bit in self._tests.items():
            assert isinstance(test, Compares | Elapsed)
            assert isinstance(test.before, Now)
            before, now = words(test.before.value), words(test.now)
            if isinstance(test, Compares):
                holds: Array = np.asarray(COMPARISONS[test.operator](before, now), np.bool_)
            else:
                difference, fits = INTEGERS["-"](now, before)
                exact = difference if np.all(fits) else now.astype(object) - before.astype(object)
                holds = np.asarray(exact >= test.interval.lower, np.bool_)
                if test.interval.upper is not None:
                    holds &= np.asarray(exact <= test.interval.upper, np.bool_)
            there = ~values.null(test.before.value) & ~values.null(test.now)
            found |= (holds & there).astype(np.uint64) << np.uint64(bit)
        return found


def _is_of_words(test: Test) -> bool:
    return isinstance(test, Compares | Elapsed) and isinstance(test.before, Now)
