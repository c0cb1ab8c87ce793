"""Spellings: what events say, in as many words as it takes, where one letter has no room for it (`automata.alphabet`).

Comes in: the predicates of an alphabet whose letters begin with a number. Goes out: an array of words, a row per event: uint64 (n, words). Each word
is read by a `Predicates` of its own; they share the columns, and what is computed for a whole batch. Evaluations give each spelling a number
(`numbers`); everything before them, and every stored event that waits, has the words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from cepheid.automata import alphabet as alphabets
from cepheid.engine.letters.predicates import BatchRows, LetterReader, Predicates

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cepheid.automata.alphabet import Alphabet
    from cepheid.engine.memory.pools import Array
    from cepheid.schema import EventSchema


class LongPredicates:
    """The predicates of one program with more conditions than a letter has bits; immutable, with the interface of `Predicates`.

    words: those of each word of a spelling.
    """

    def __init__(self, alphabet: Alphabet, schema: EventSchema) -> None:
        self.schema = schema
        self.values = alphabet.values
        self.conditions = tuple(predicate.condition for predicate in alphabet.predicates)
        self.words = tuple(Predicates(word, schema) for word in alphabet.words)
        self.columns: tuple[str, ...] = tuple(dict.fromkeys(name for word in self.words for name in word.columns))
        self.dtype = np.dtype(np.uint64)

    def letters(self, events: pa.RecordBatch | pa.Table) -> Array:
        """One spelling per event, as `LongReader.read` gives them for the first batch of a stream."""
        return self.reader().read(events)

    def reader(self) -> LongReader:
        """A reader for the batches of one stream."""
        return LongReader(self)

    def gathered(self, holds: Iterable[Array]) -> Array:
        """The spellings of events of which is known, for each of `conditions`, where it holds (one array of 0 and 1 each)."""
        found: Array | None = None
        for value, truth in zip(self.values, holds, strict=True):
            if found is None:
                found = np.zeros((len(truth), len(self.words)), np.uint64)
            for place, part in enumerate(parts_of(value, len(self.words))):
                if part:
                    found[:, place] |= truth.astype(np.uint64) * np.uint64(part)
        assert found is not None, "there are conditions, and many"
        return found


class LongReader:
    """Turns the batches of one stream into spellings, with the interface of `LetterReader`."""

    def __init__(self, predicates: LongPredicates) -> None:
        self.predicates = predicates
        self._words = [LetterReader(word) for word in predicates.words]

    @property
    def types_met(self) -> set[str] | None:
        """As of `LetterReader`."""
        return next((word.types_met for word in self._words if word.types_met is not None), None)

    def read(self, events: pa.RecordBatch | pa.Table) -> Array:
        """One spelling per event: uint64 (n, words). events: has at least the predicates' `columns`. Never raises for what the rows hold. Linear."""
        predicates = self.predicates
        out: Array = np.zeros((events.num_rows, len(predicates.words)), np.uint64)
        start = 0
        batches = [events] if isinstance(events, pa.RecordBatch) else events.select(list(predicates.columns)).to_batches()
        for batch in batches if predicates.columns else ():
            rows = BatchRows(predicates.schema, {name: batch.column(name) for name in predicates.columns}, batch.num_rows)
            for place, reader in enumerate(self._words):
                out[start : start + batch.num_rows, place] = reader.of(rows)
            start += batch.num_rows
        if not predicates.columns:
            nothing = BatchRows(predicates.schema, {}, events.num_rows)
            for place, reader in enumerate(self._words):
                out[:, place] = reader.of(nothing)
        return out


def predicates_of(alphabet: Alphabet, schema: EventSchema) -> Predicates | LongPredicates:
    """The predicates of an alphabet: those of letters, or of spellings."""
    return LongPredicates(alphabet, schema) if alphabet.number_bits else Predicates(alphabet, schema)


def parts_of(spelling: int, count: int) -> list[int]:
    """The words of a spelling."""
    bits = alphabets.WORD_BITS
    return [spelling >> place * bits & (1 << bits) - 1 for place in range(count)]


def joined_words(words: Iterable[int]) -> int:
    """The spelling that has these words."""
    return sum(word << place * alphabets.WORD_BITS for place, word in enumerate(words))


def types_in(letters: Array, alphabet: Alphabet) -> Array:
    """For each letter that is spelled, in one word or several, the number of the event's type (int64)."""
    field = alphabet.type_field
    if letters.ndim == 1:
        types: Array = (letters & letters.dtype.type(field)).astype(np.int64)
        return types
    types = np.zeros(len(letters), np.int64)
    for place, part in enumerate(parts_of(field, letters.shape[1])):
        if part:
            types |= (letters[:, place] & np.uint64(part)).astype(np.int64) << place * alphabets.WORD_BITS
    return types


def are_letters(letters: Array, alphabet: Alphabet) -> bool:
    """Whether events can have these letters or spellings (uint64), as far as their bits go."""
    bits = [word.event_bits for word in alphabet.words] if alphabet.number_bits else [alphabet.event_bits]
    columns = np.atleast_2d(letters.T)
    within = [not (column >> np.uint64(width)).any() for column, width in zip(columns, bits, strict=True) if width < alphabets.WORD_BITS]
    return len(columns) == len(bits) and all(within)


def having_words(letters: Array, alphabet: Alphabet, tests: Iterable[tuple[int, int]]) -> Array:
    """`codes.having` of spellings, of letters that begin with the number of one, or of what `in_words` gives; linear in letters x tests x words."""
    words = len(alphabet.words)
    columns = [*in_words(letters, alphabet).T, np.zeros(len(letters), np.uint64)][: words + 1]
    types = types_in(np.stack(columns[:words], axis=1), alphabet)
    found: Array = np.zeros(len(letters), np.bool_)
    for requires, forbids in tests:
        asked = alphabet.asked(requires, forbids)
        if asked is None:
            continue
        one: Array = np.ones(len(letters), np.bool_)
        masks, values, forbidden = (_places(part, words) for part in (asked.mask, asked.value, asked.forbids))
        for column, mask, value, without in zip(columns, masks, values, forbidden, strict=True):
            if mask:
                one &= column & np.uint64(mask) == np.uint64(value)
            if without:
                one &= column & np.uint64(without) == np.uint64(0)
        for other in asked.others:
            one &= types != other
        found |= one
    return found


def _places(asked: int, words: int) -> list[int]:
    """What `Alphabet.asked` says of each word of a spelling, and of the trackers and flags behind them."""
    return [*parts_of(asked, words), asked >> words * alphabets.WORD_BITS]


def in_words(letters: Array, alphabet: Alphabet) -> Array:
    """Letters as they are, but those that begin with a number as the words of its spelling and, behind these, what is behind the number."""
    if letters.ndim == 2 or not alphabet.number_bits:
        return letters
    assert alphabet.numbering is not None, "only an evaluation knows what its numbers stand for"
    bits, words, letters = alphabet.number_bits, len(alphabet.words), letters.astype(np.uint64)
    numbers, places = np.unique(letters & np.uint64((1 << bits) - 1), return_inverse=True)
    known: Array = np.array([parts_of(alphabet.numbering[number], words) for number in numbers.tolist()], np.uint64).reshape(-1, words)
    return np.column_stack([known[places.reshape(-1)], letters >> np.uint64(bits)])
