"""Words in the order of texts, and of decimals that need two words: the kernel of guards keeps them, and compares them as any number.

Comes in: the values of a batch. Goes out: a word (int64) per value that is compared, in its order; and for what is kept the same words after the
texts have got other ranks. So order costs what it does among numbers: a bound of a tree, O(log n). Were numbers kept, and ranks looked up in a table,
no tree would know anything, and each entry alive would be asked.

The two highest bits of a word say what it is: 01: the rank of a text, or of a decimal from 2^62 on; 10: that of a decimal below -2^62; 00 and 11: a
decimal as it is. A decimal that has a rank is a text to `Texts`: its 16 bytes, the highest first.

Ranks lie apart, so a new text mostly finds room. Where it does not, `Texts` gives all of them others, and what is kept is written anew: O(cells),
before the batch is read. A word that is kept, but is that of no cell alive (the end of a tree or a bound, of what has been freed since), becomes the
nearest one that is: all comparisons with cells alive come to the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.engine.letters.encoded import RANK_BITS
from cepheid.engine.letters.values import INT64_MAX, INT64_MIN
from cepheid.engine.memory.checks import demand
from cepheid.logical.types import is_two_words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cepheid.engine.letters.encoded import Texts, Values
    from cepheid.logical.plan import Expression

Array = np.ndarray[Any, Any]

FIRST = 1 << RANK_BITS
"""The least word with a rank of a text."""

ENDS = np.array([INT64_MIN, -FIRST, FIRST, INT64_MAX])
"""Words at the borders of those that have ranks; they stay."""


class Ranks:
    """The ranks that a run has seen. values: the texts, and the decimals of two words, that it reads."""

    def __init__(self, values: Sequence[Expression]) -> None:
        self._values = values
        self._read: tuple[Texts, int, Array] | None = None  # texts, how often their ranks had changed, ranks by number
        self._kept: tuple[Texts, int, Array] | None = None  # the same of the words that are kept
        nothing: Array = np.zeros(0, np.int64)
        self._known: tuple[Array, Array] | None = (nothing, nothing)  # ranks of these, ascending, and their numbers

    def read(self, values: Values) -> dict[Expression, Array]:
        """The words of each value (int64, 0 for NULL) in their order. Then `moved` is to be asked."""
        found = {value: _numbered(values, value) for value in self._values}
        texts = values.texts
        ranks = texts.ranks
        self._read = texts, texts.spreads, ranks
        return {value: np.where(ranked, high | ranks[np.where(ranked, words, 0)], words) for value, (words, ranked, high) in found.items()}

    def moved(self, kept: Callable[[], Array]) -> Words | None:
        """What becomes of kept words by what was read last; None: they stay. kept: gives the words of all cells alive. O(n log n) of these."""
        before, self._kept = self._kept, self._read
        assert self._read is not None
        if before is not None and before[0] is self._read[0] and before[1] == self._read[1]:
            self._known = None
            return None
        self._kept = before
        alive = kept()
        alive = np.unique(alive[are_ranked(alive)])
        numbers = self._numbers_of(alive & FIRST - 1)
        self._kept, self._known = self._read, None
        new = (alive & ~np.int64(FIRST - 1)) | self._read[2][numbers]
        old = np.concatenate([alive, ENDS])
        order = np.argsort(old)
        return Words(old[order], np.concatenate([new, ENDS])[order])

    def numbers(self, words: Array) -> Array:
        """The numbers of the texts that words of the batch that was read last have."""
        return self._numbers_of(words & FIRST - 1)

    def _numbers_of(self, ranks: Array) -> Array:
        """The numbers of the kept texts with these ranks; raises ValueError for one that nothing has."""
        if self._known is None:
            assert self._kept is not None
            numbers = np.flatnonzero(self._kept[2])
            order = np.argsort(self._kept[2][numbers])
            self._known = self._kept[2][numbers[order]], numbers[order]
        known, numbers = self._known
        places = np.searchsorted(known, ranks)
        demand(np.append(known, -1)[places] == ranks)
        found: Array = numbers[places]
        return found

    def dump(self, kept: Array) -> bytes:
        """The ranks and numbers of the texts that these words of cells speak of, as little-endian words."""
        ranks = np.unique(kept[are_ranked(kept)] & FIRST - 1)
        return np.stack([ranks, self._numbers_of(ranks)]).astype("<i8").tobytes()

    def load(self, section: bytes, kept: Array) -> None:
        """Go on, fresh, from what `dump` gave, with these words of cells. Raises ValueError where they do not fit."""
        ranks, numbers = np.frombuffer(section, "<i8").reshape(2, -1).astype(np.int64)
        demand(ranks[1:] > ranks[:-1])
        self._kept, self._known = None, (ranks, numbers)
        self._numbers_of(kept[are_ranked(kept)] & FIRST - 1)


class Words:
    """Words before and after the texts got other ranks: old: ascending, with the ENDS; new: what they are now."""

    def __init__(self, old: Array, new: Array) -> None:
        self._old, self._new = old, new

    def least(self, words: Array) -> Array:
        """The least word that is not less, of each."""
        return np.where(are_ranked(words), self._new[np.searchsorted(self._old, words)], words)

    def greatest(self, words: Array) -> Array:
        """The greatest word that is not greater, of each."""
        return np.where(are_ranked(words), self._new[np.searchsorted(self._old, words, "right") - 1], words)


def numbers_in(section: bytes) -> Array:
    """The numbers of the texts that what `Ranks.dump` gave speaks of. Raises ValueError where it does not fit."""
    found: Array = np.frombuffer(section, "<i8").reshape(2, -1)[1]
    return found


def are_ranked(words: Array) -> Array:
    """Which words have a rank, or a number: their two highest bits differ."""
    found: Array = (words ^ (words << 1)) < 0
    return found


def _numbered(values: Values, value: Expression) -> tuple[Array, Array, Array | int]:
    """(words, which of them are numbers of texts, the two highest bits of these) of the values of some events."""
    there = ~values.null(value)
    encoded = values.encoded(value)
    if not is_two_words(value):
        return np.where(there, encoded, 0), there, FIRST
    upper, lower = encoded[:, 0], np.where(there, encoded[:, 1] ^ np.int64(INT64_MIN), 0)
    ranked = there & ((upper != lower >> 63) | are_ranked(lower))
    rows = np.flatnonzero(ranked)
    if len(rows):
        keys = np.stack([upper[rows] ^ np.int64(INT64_MIN), lower[rows]], axis=1).astype(">i8")
        lower[rows] = values.texts.read(pa.Array.from_buffers(pa.binary(16), len(rows), [None, pa.py_buffer(keys.tobytes())]))[0]
    return lower, ranked, np.where(upper < 0, np.int64(INT64_MIN), np.int64(FIRST))
