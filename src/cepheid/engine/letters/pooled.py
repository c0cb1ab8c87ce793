"""The conditions of several programs over the same events: each is asked once, and each program's letters are put together from the answers.

Comes in: conditions of any number of programs, and batches. Goes out: `Answers`, of which each program takes its letters. On Spark the answers are
the pooled letter columns that travel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cepheid.automata.alphabet import Alphabet, Predicate
from cepheid.engine.letters.predicates import Predicates
from cepheid.engine.letters.words import LongPredicates

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from cepheid.engine.memory.pools import Array
    from cepheid.logical.plan import Expression
    from cepheid.schema import EventSchema

POOLED_BITS = 64
"""Conditions of one pooled word."""


def gathered(words: Sequence[Array], places: Sequence[int], alphabet: Predicates | LongPredicates) -> Array:
    """Letters (uint64) of one program, or its spellings; places: where the pooled words have the bit of each of its conditions."""
    if isinstance(alphabet, LongPredicates):
        return alphabet.gathered(truth(words, place) for place in places)
    letters: Array = np.zeros(len(words[0]), np.uint64)
    for place, value in zip(places, alphabet.values, strict=True):
        letters |= truth(words, place).astype(np.uint64) * np.uint64(value)
    return letters


def truth(words: Sequence[Array], place: int) -> Array:
    """One bit of each row, as 0 and 1."""
    source = words[place // POOLED_BITS]
    bit: Array = source >> source.dtype.type(place % POOLED_BITS) & source.dtype.type(1)
    return bit


class PooledReader:
    """Asks the conditions of several programs of the batches of one stream; of one run, as a `LetterReader` is."""

    def __init__(self, conditions: Iterable[Expression], schema: EventSchema) -> None:
        self._place = {condition: place for place, condition in enumerate(dict.fromkeys(conditions))}
        asked = [Predicate(condition) for condition in self._place]
        words = [tuple(asked[start : start + POOLED_BITS]) for start in range(0, len(asked), POOLED_BITS)]
        self._readers = [Predicates(Alphabet(word), schema).reader() for word in words]

    def read(self, events: pa.Table) -> list[Array]:
        """The answers as pooled words; empty without conditions."""
        return [reader.read(events) for reader in self._readers]

    def letters(self, words: Sequence[Array], alphabet: Predicates | LongPredicates, rows: int) -> Array:
        """The letters of one program, whose conditions are among those asked, of so many rows."""
        places = [self._place[condition] for condition in alphabet.conditions]
        return gathered(words, places, alphabet).astype(alphabet.dtype) if places else np.zeros(rows, alphabet.dtype)

    def holds(self, words: Sequence[Array], conditions: Sequence[Expression]) -> Array:
        """The rows (int64) where all of some conditions hold, at least one of them."""
        bits = [truth(words, self._place[condition]) for condition in conditions]
        return np.flatnonzero(np.logical_and.reduce(bits))
