"""Numbers of spellings: what a letter begins with where the event's spelling has no room in it (`automata.alphabet`).

Comes in: spellings, as words. Goes out: letters, each the number of its spelling. Numbers are given in the order of arrival, and an evaluation has
its own. What no transition asks of an event of some type is left out of its spelling first: so events that no state can tell apart have one
number, and the tables grow with what the query can tell apart. A number that no stored event has is given away again (`keep`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.engine.letters.words import joined_words, parts_of, types_in
from cepheid.errors import LimitError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cepheid.automata.alphabet import Alphabet
    from cepheid.engine.memory.pools import Array

AT_ONCE = 16
"""Spellings of a batch that are looked up one by one, for to encode them would cost more."""

ENTRY_BYTES = 250
"""About what a number takes in memory beside its spelling, in both tables."""


class Numbers:
    """The numbers of the spellings met so far; 0 is that of an event that satisfies nothing.

    alphabet: of the letters. tests: (requires, forbids) of all transitions that read them. numbering: the spelling of each number.
    """

    def __init__(self, alphabet: Alphabet, tests: Sequence[tuple[int, int]]) -> None:
        self.alphabet = alphabet
        self.numbering: dict[int, int] = {}
        self._number_of: dict[bytes, int] = {}
        self._next = 0  # no number before it is free
        self._words = len(alphabet.words)
        self._read_with: Array = np.array([parts_of(bits, self._words) for bits in alphabet.read_with(tests)], np.uint64)
        self.keep(())

    def __len__(self) -> int:
        return len(self.numbering)

    def read(self, spellings: Array) -> Array:
        """The letters (uint64) of some events; spellings: uint64 (n, words). Raises LimitError where there is no number left. Linear."""
        rows = np.ascontiguousarray(spellings & self._read_with[types_in(spellings, self.alphabet)])
        if len(rows) <= AT_ONCE:
            return np.array([self._number(row.tobytes()) for row in rows], np.uint64)
        width = pa.binary(rows.itemsize * self._words)
        encoded = pa.Array.from_buffers(width, len(rows), [None, pa.py_buffer(rows)]).dictionary_encode()
        numbers = np.array([self._number(row) for row in encoded.dictionary.to_pylist()], np.uint64)
        letters: Array = numbers[encoded.indices.to_numpy(zero_copy_only=False)]
        return letters

    def _number(self, row: bytes) -> int:
        """The number of a spelling, a new one if need be."""
        number = self._number_of.get(row)
        if number is None:
            while self._next in self.numbering:
                self._next += 1
            number = self._next
            if number >> self.alphabet.number_bits:
                raise LimitError(
                    f"the events of the open windows have {len(self.numbering)} different combinations of the query's"
                    f" {len(self.alphabet.predicates)} predicates, and the limit is {1 << self.alphabet.number_bits}",
                    help="give a smaller window, split the query, or compute columns that join some of the conditions",
                )
            self._number_of[row] = number
            self.numbering[number] = joined_words(np.frombuffer(row, np.uint64).tolist())
        return number

    def keep(self, numbers: Iterable[int]) -> None:
        """Give away all numbers but these and 0."""
        kept = {number: self.numbering[number] for number in numbers if number}
        # In place: the alphabet that reads them has this very table.
        self.numbering.clear()
        self.numbering.update({0: 0, **kept})
        self._number_of = {
            np.array(parts_of(spelling, self._words), np.uint64).tobytes(): number for number, spelling in self.numbering.items()
        }
        self._next = 0

    def of(self, letters: Array) -> Array:
        """The different numbers that some letters begin with (int64)."""
        return np.unique(letters.astype(np.int64) & np.int64((1 << self.alphabet.number_bits) - 1))

    @property
    def nbytes(self) -> int:
        """About how many bytes the tables take."""
        return len(self) * (ENTRY_BYTES + 2 * 8 * self._words)

    # ------------------------------------------------------------------------------------------------ state

    def dump(self, numbers: Array) -> dict[str, bytes]:
        """These numbers and their spellings as named sections: `letter_numbers` (int64), `letter_spellings` (little-endian, of equal length)."""
        width = self._width
        spellings = b"".join(self.numbering[number].to_bytes(width, "little") for number in numbers.tolist())
        return {"letter_numbers": numbers.astype("<i8").tobytes(), "letter_spellings": spellings}

    def load(self, sections: Mapping[str, Any]) -> None:
        """Go on, fresh, from what `dump` gave; raises KeyError, TypeError or ValueError where that does not fit."""
        width, alphabet = self._width, self.alphabet
        numbers = np.frombuffer(sections["letter_numbers"], "<i8").tolist()
        data = bytes(sections["letter_spellings"])
        spellings = [int.from_bytes(data[start : start + width], "little") for start in range(0, len(data), width)]
        found = dict(zip(numbers, spellings, strict=True))
        types = len(self._read_with)
        right = len(found) == len(numbers) and len(set(spellings)) == len(spellings) and (0 not in found or found[0] == 0)
        for number, spelling in found.items():
            right = right and 0 <= number < 1 << alphabet.number_bits and not spelling >> alphabet.spelling_bits
            right = right and spelling & alphabet.type_field < types and bool(spelling or not number)
        if not right:
            raise ValueError("its numbers of spellings are out of range")
        self.numbering.update(found)
        self.keep(found)

    @property
    def _width(self) -> int:
        """Bytes of a stored spelling, at least one: where no event says anything, all have the same."""
        return max(1, (self.alphabet.spelling_bits + 7) // 8)
