"""Letters as dense codes, the numbers that index the tables of a kernel; and what many letters at a time have.

A letter has up to 64 bits, a stream has few different ones. Narrow letters index a table of codes directly; wide ones get dense numbers per
batch first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from cepheid.engine.letters.words import having_words
from cepheid.engine.memory.pools import power_of_two

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cepheid.automata import Alphabet
    from cepheid.engine.memory.pools import Array

DIRECT_BITS = 16
"""Letters of so many predicate bits index the table of codes directly; wider ones are given dense numbers per batch first."""

NONE = -1


def having(letters: Array, alphabet: Alphabet, tests: Iterable[tuple[int, int]]) -> Array:
    """For each letter whether its mask has, of one of some tests (requires, forbids), all bits of the one and none of the other (bool).

    letters: integers, or spellings (uint64, a row of words each). Linear in letters x tests.
    """
    if alphabet.number_bits:
        return having_words(letters, alphabet, tests)
    found: Array = np.zeros(len(letters), np.bool_)
    number = letters.dtype.type
    for requires, forbids in tests:
        asked = alphabet.asked(requires, forbids)
        if asked is None:
            continue
        one = letters & number(asked.mask) == number(asked.value)
        if asked.forbids:
            one &= letters & number(asked.forbids) == 0
        if asked.others:
            types = letters & number(alphabet.type_field)
            for other in asked.others:
                one &= types != number(other)
        found |= one
    return found


class LetterCodes:
    """The codes of the letters met so far: 0, 1, .. in the order in which the kernel asks for them.

    lut: int32, letter (or its number in the batch) & letter_mask -> code, -1 unknown. letters: the letter of each code. letter_of: the same
    for the kernel, int64 (bit 63 is the sign), with room for more. bits: width of a letter, up to 64.
    """

    def __init__(self, bits: int) -> None:
        self.direct = bits <= DIRECT_BITS
        self.letter_mask = (1 << bits) - 1 if self.direct else (1 << 32) - 1
        self.lut: Array = np.full(1 << bits if self.direct else 0, NONE, np.int32)
        self._batch_letters: list[int] = []
        self.forget()

    def forget(self) -> None:
        """Start again without any code."""
        self.letters: list[int] = []
        self.letter_of: Array = np.zeros(16, np.int64)
        self._code_of: dict[int, int] = {}
        self.lut[:] = NONE

    def begin(self, letters: Array) -> Array:
        """The batch as the kernel reads it (uint32); prepares `lut` for it.

        letters: one unsigned integer per event, one bit per predicate. O(n).
        """
        if self.direct:
            return np.ascontiguousarray(letters, np.uint32)
        encoded = pa.array(np.ascontiguousarray(letters, np.uint64)).dictionary_encode()
        self._batch_letters = encoded.dictionary.to_pylist()
        self.lut = np.array([self._code_of.get(letter, NONE) for letter in self._batch_letters], np.int32)
        indices: Array = encoded.indices.to_numpy(zero_copy_only=False)
        return indices.astype(np.uint32)

    def learn(self, index: int) -> int:
        """Give the letter at `index` of `lut` a code, and return it."""
        letter = index if self.direct else self._batch_letters[index]
        code = len(self.letters)
        if code == len(self.letter_of):
            self.letter_of = np.concatenate([self.letter_of, np.zeros(power_of_two(code), np.int64)])
        self.letters.append(letter)
        self.letter_of[code] = letter - (letter >> 63 << 64)
        self._code_of[letter] = code
        self.lut[index] = code
        return code

    @property
    def nbytes(self) -> int:
        """Bytes of the tables."""
        return int(self.lut.nbytes + self.letter_of.nbytes)
