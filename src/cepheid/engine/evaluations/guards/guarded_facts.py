"""What guards ask of an event alone, by values that no letter has: bits of its letter for the kernel of guards.

Such a test comes up where a macro state has two values of one event: its position beside a constant (`b.$index < 10`), or what a register will hold
beside the event that fills it. A letter is read before positions are known, and says nothing of these. So the bits are made batch by batch, in front
of the kernel, which then knows more letters and no more tests. Where a letter has no room for the bits, letters and bits that come together are
numbered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cepheid.automata.registers import Compares, Computes, Elapsed, Gathered, Now, reads, wholes
from cepheid.engine.letters.values import INTEGERS, evaluate, literal, of_halves
from cepheid.logical.folding import COMPARISONS
from cepheid.logical.plan import Index
from cepheid.logical.types import type_of
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cepheid.automata.regions import Region
    from cepheid.automata.registers import Term, Test
    from cepheid.engine.letters.encoded import Values
    from cepheid.logical.plan import Expression

Array = np.ndarray[Any, Any]

LETTER_BITS = NUMBER_BITS = 64
"""Bits of a letter, those of facts included, and of a number that stands for both."""

MOST_NUMBERED = 1 << 16
"""Letters with facts that have numbers; past it all are forgotten at the next batch."""


class Facts:
    """The tests of events alone, each with a bit; bits: those that letters have without them."""

    def __init__(self, bits: int) -> None:
        self._bits = bits
        self._tests: dict[Test, int] = {}
        self._numbers: dict[bytes, int] = {}
        self._numbered: list[tuple[int, int]] = []

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._tests)

    def fresh(self) -> Facts:
        """The same tests, for another stream."""
        other = Facts(self._bits)
        other._tests = self._tests
        return other

    @property
    def letter_bits(self) -> int:
        """Bits of the letters that `joined` gives."""
        return self._bits + len(self._tests) if self._fits else NUMBER_BITS

    @property
    def _fits(self) -> bool:
        """Whether a letter has room for them."""
        return self._bits + len(self._tests) <= LETTER_BITS

    @property
    def full(self) -> bool:
        """Whether what has numbers is to be forgotten."""
        return len(self._numbered) > MOST_NUMBERED

    def know(self, region: Region) -> None:
        """Give what a region asks of the event alone its bits."""
        for test, _ in region.literals:
            if not reads(test):
                self._tests.setdefault(test, len(self._tests))

    def agree(self, region: Region, facts: int) -> bool:
        """Whether events with these bits can be in a region."""
        return all(bool(facts >> self._tests[test] & 1) is truth for test, truth in region.literals if not reads(test))

    def joined(self, letters: Array, values: Values, words: Callable[[Expression], Array]) -> Array:
        """Letters with the bits of each event (uint64); words: gives those by which a value is compared. O(events), for each test."""
        found = letters.astype(np.uint64)
        truths = [_held(test, values, words) if isinstance(test, Compares | Elapsed) else _computed(test, values) for test in self._tests]
        if self._fits:
            for bit, truth in enumerate(truths, self._bits):
                found |= truth.astype(np.uint64) << np.uint64(bit)
            return found
        both = np.column_stack([found[:, None].view(np.uint8), np.packbits(np.column_stack(truths), axis=1, bitorder="little")])
        different, places = np.unique(np.ascontiguousarray(both).view(f"V{both.shape[1]}").reshape(-1), return_inverse=True)
        numbers: list[int] = []
        for each in map(bytes, different):
            if each not in self._numbers:
                self._numbers[each] = len(self._numbered)
                letter = int(np.frombuffer(each[: found.itemsize], np.uint64)[0])
                self._numbered.append((letter, int.from_bytes(each[found.itemsize :], "little")))
            numbers.append(self._numbers[each])
        return np.array(numbers, np.uint64)[places]

    def apart(self, letter: int) -> tuple[int, int]:
        """A letter as it was, and the bits, of one that `joined` has given."""
        return (letter & (1 << self._bits) - 1, letter >> self._bits) if self._fits else self._numbered[letter]

    def forget(self) -> None:
        """Forget what has numbers."""
        self._numbers.clear()
        self._numbered.clear()


@record
class _OneEvent:
    """Events as columns of a condition. own: of what it computes with, the value of the event; a leaf that is not there is NULL."""

    own: Mapping[Expression, Expression]
    values: Values

    def known(self, expression: Expression) -> Any | None:
        """What the condition computes with."""
        if expression in self.own:
            return self.values.column(self.own[expression])
        halves = wholes(self.own).get(expression)
        if halves is not None:
            upper, lower = (self.values.column(self.own[half]) for half in halves)
            return of_halves(upper, lower, type_of(expression))
        return self.field(expression) if isinstance(expression, Index) else None

    def field(self, field: Expression) -> Any:
        """An attribute of an event that is not there."""
        return literal(None, type_of(field))

    def time(self, time: Expression) -> Any:
        """The time of an event that is not there."""
        return self.field(time)


def _computed(test: Test, values: Values) -> Array:
    """Whether a condition over one event holds."""
    assert isinstance(test, Computes)
    own = _OneEvent({value: _value(term) for value, term in test.operands}, values)
    return np.broadcast_to(evaluate(test.condition, own).truth(), (len(values),))


def _value(term: Term) -> Expression:
    """The value that a term is of an event alone; a set of one is as good as this. What is gathered before it is of earlier events."""
    assert isinstance(term, Now) or (isinstance(term, Gathered) and term.before is None)
    return term.value


def _held(test: Compares | Elapsed, values: Values, words: Callable[[Expression], Array]) -> Array:
    """Whether a comparison of two words of the event holds."""
    value = _value(test.before)
    before, now = words(value), words(test.now)
    if isinstance(test, Compares):
        holds: Array = np.asarray(COMPARISONS[test.operator](before, now), np.bool_)
    else:
        difference, fits = INTEGERS["-"](now, before)
        exact = difference if np.all(fits) else now.astype(object) - before.astype(object)
        holds = np.asarray(exact >= test.interval.lower, np.bool_)
        if test.interval.upper is not None:
            holds &= np.asarray(exact <= test.interval.upper, np.bool_)
    return holds & ~values.null(value) & ~values.null(test.now)
