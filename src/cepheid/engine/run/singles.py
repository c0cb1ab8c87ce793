"""Events that come to a recognizer one by one, as dicts or tuples: straight to their letters, without Arrow until a match may show them.

Comes in: one event. Goes out: the matches that it ends; or None, which says that the event goes the way of tables, where every error is raised.
An event that can change nothing waits here, as a letter, until one comes that can: both are read in one call. Their order is what it was, for what
waits ends no match and nothing shows it.

Only where an event is read when it comes: without lateness, absences or lag, where its letter is one word, and with keys of PARTITION BY that are
numbers or texts and have come before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.engine.letters.predicates import Predicates
from cepheid.engine.letters.row_letters import RowLetters
from cepheid.engine.run.query_state import Batch, DecidedMatches, OneRow
from cepheid.logical.types import type_of
from cepheid.schema import is_text

if TYPE_CHECKING:
    from cepheid.engine.run.query_state import QueryState
    from cepheid.logical.plan import Expression


MOST_WAITING = 1 << 10
"""Events that wait here at most."""

MOST_LETTERS = 1 << 12
"""Letters of which it is remembered whether they matter."""


class Singles:
    """Single events of one query's stream. read: see `RowLetters`."""

    def __init__(self, state: QueryState, schema: pa.Schema, read: RowLetters) -> None:
        self._state = state
        self._schema = schema
        self._read = read.read
        compiled = state.compiled
        self._program = compiled.program
        self._every = not compiled.droppable
        self._dtype = compiled.predicates.dtype
        self._relevant: dict[int, bool] = {}
        self._keys = compiled.keys
        self._key_places = [schema.names.index(name) for name in compiled.keys]
        (self._reader,) = compiled.readers(state.texts)
        self._kinds = [column_type(value) for value in compiled.program.values]
        self._letters: list[int] = []
        self._values: list[tuple[Any, ...]] = []
        self._times: list[int] = []
        self._slots: list[int] = []

    @classmethod
    def of(cls, state: QueryState, schema: pa.Schema) -> Singles | None:
        """For a query; None where single events go the way of tables."""
        compiled = state.compiled
        if compiled.absences or compiled.derived or not all(_is_plain(schema.field(name).type) for name in compiled.keys):
            return None
        if compiled.lags or not isinstance(compiled.predicates, Predicates):
            return None
        read = RowLetters.of(compiled.predicates, values=compiled.program.values)
        return None if read is None else cls(state, schema, read)

    def __len__(self) -> int:
        """How many events wait here."""
        return len(self._letters)

    def take(self, row: Any, latest: int) -> tuple[int, bool] | None:
        """Take an event that is not earlier than `latest`: its time, and whether it is to be `read` now; None: it goes the way of tables."""
        found = self._read(row)
        if found is None:
            return None
        time, letter, *values = found
        if time < latest:
            return None
        if self._keys:
            key = tuple(row[place] for place in self._key_places) if isinstance(row, tuple) else tuple(row[name] for name in self._keys)
            slot = self._state.partitions.slot_of(key)
            if slot is None:
                return None
            self._slots.append(slot)
        self._letters.append(letter)
        self._times.append(time)
        self._values += values
        return time, self._every or self._matters(letter) or len(self._letters) >= MOST_WAITING

    def _matters(self, letter: int) -> bool:
        known = self._relevant.get(letter)
        if known is None:
            if len(self._relevant) >= MOST_LETTERS:
                self._relevant.clear()
            known = self._relevant[letter] = self._program.relevant(self._program.automaton.alphabet.mask_of(letter))
        return known

    def read(self, row: Any, first: int) -> DecidedMatches:
        """What all that waits here decides; row: of the last of them, which alone a match may show; first: place of the first in the stream."""
        letters, times = np.array(self._letters, self._dtype), np.array(self._times, np.int64)
        arrived = self._state.partitions.arrive_in(
            np.array(self._slots, np.int32) if self._keys else None, len(letters), interleaved=self._state.interleaved
        )
        if self._kinds:
            columns = [pa.array(column, kind) for column, kind in zip(zip(*self._values, strict=True), self._kinds, strict=True)]
            letters = self._reader.of_columns(letters, columns)
        self._letters, self._times, self._slots, self._values = [], [], [], []
        events = OneRow(row, self._schema)
        return DecidedMatches(self._state, Batch(letters, times, events, arrived, first, places=np.zeros(len(letters), np.int64)))


def column_type(value: Expression) -> pa.DataType:
    """What `EventReader.of_columns` takes a value as: times and dates as integers."""
    kind = type_of(value)
    return pa.int64() if pa.types.is_temporal(kind) else kind


def _is_plain(kind: pa.DataType) -> bool:
    """Whether a key's values are what Python has: whole numbers and texts."""
    return bool(pa.types.is_integer(kind) or (is_text(kind) and not pa.types.is_dictionary(kind)))
