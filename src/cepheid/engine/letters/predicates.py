"""Events become letters: every distinct predicate of a program is evaluated once per batch, over columns.

Comes in: the predicates of a program (type tests and local conditions) and Arrow batches. Goes out: one unsigned integer per event, its letter: the
number of its type, and a bit for each condition that holds (`automata.alphabet`). The operators are in `values`; here is how they are run fast: text
predicates on the distinct values of a column only, numbers in slices that stay in the cache, straight on the Arrow buffers. What has no room in one
integer is read word by word (`words`).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.letters.values import Column, evaluate, in_arrow, plain, raw, read, validity
from cepheid.logical.plan import Apply, Expression, Field, Literal, Time, walk
from cepheid.logical.types import TEXT
from cepheid.records import record
from cepheid.schema import is_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cepheid.automata.alphabet import Alphabet, Word
    from cepheid.schema import EventSchema

SLICE = 1 << 15
"""Rows per pass: a slice of a few columns and their temporaries stays in the cache."""

FEW_VALUES = 6
"""Up to so many dictionary values that matter, comparing codes is faster than looking each code up."""

FEW_ROWS = 1 << 12
"""Up to so many rows, looking each code up is faster all the same."""

AT_ONCE = 16
"""Rows of a batch whose texts are looked up one by one, for to encode them would cost more."""

KNOWN_AT_ONCE, MOST_KNOWN = 64, 4096
"""A batch with so few distinct values of a text column takes what they add to letters from those that came before; so many are remembered."""

UNKNOWN_TYPE = Literal(None, pa.string())


class Predicates:
    """The predicates of one program over one schema; immutable, so that any number of threads may share them.

    schema: where the type, the time and the attributes stand. `columns` are the names of the input columns that `letters` reads; texts: what each
    condition about one text attribute adds to a letter, by the attribute's path; others: the same of the other conditions; apart: their parts that
    are computed for a whole batch. dtype: of a letter; narrow: the same in as few bytes as its bits need.
    """

    def __init__(self, alphabet: Alphabet | Word, schema: EventSchema) -> None:
        self.schema = schema
        self.values = alphabet.values
        bits = alphabet.event_bits
        assert bits <= NARROW[-1][0], "a letter is one machine word, and so is a word of a spelling"
        self.conditions = tuple(predicate.condition for predicate in alphabet.predicates)
        leaves = [leaf for condition in self.conditions for leaf in walk(condition)]
        times = [schema.time_column or "" for leaf in leaves if isinstance(leaf, Time)]
        self.columns: tuple[str, ...] = tuple(dict.fromkeys([leaf.path[0] for leaf in leaves if isinstance(leaf, Field)] + times))
        self.texts: dict[tuple[str, ...], list[tuple[int, Expression]]] = {}
        self.others: list[tuple[int, Expression]] = []
        for value, condition in zip(self.values, self.conditions, strict=True):
            path = text_column(condition)
            of = self.others if path is None else self.texts.setdefault(path, [])
            of.append((value, condition))
        self.apart = tuple(dict.fromkeys(node for _, condition in self.others for node in boundaries(condition)))
        self.dtype = np.dtype(np.uint32 if bits <= 32 else np.uint64)
        self.narrow = next(np.dtype(kind) for size, kind in NARROW if bits <= size)

    def letters(self, events: pa.RecordBatch | pa.Table) -> np.ndarray[Any, Any]:
        """One letter per event, as `LetterReader.read` gives them for the first batch of a stream."""
        return self.reader().read(events)

    def reader(self) -> LetterReader:
        """A reader for the batches of one stream."""
        return LetterReader(self)


class LetterReader:
    """Turns the batches of one stream into letters; of one run, for it remembers the last dictionaries of the text columns.

    types_met: every type that events had, and maybe others of a dictionary; without those of batches with more than `MOST_KNOWN`; None: it has read
    no types.
    """

    def __init__(self, predicates: Predicates) -> None:
        self.predicates = predicates
        self._narrow = predicates.narrow
        self._dictionaries: dict[tuple[str, ...], _Distinct] = {}
        self._known: dict[tuple[str, ...], dict[bytes | None, int]] = {path: {} for path in predicates.texts}
        self._type = (predicates.schema.type_column,)
        self.types_met: set[str] | None = None
        self._last_met: _Values | None = None

    def read(self, events: pa.RecordBatch | pa.Table) -> np.ndarray[Any, Any]:
        """One letter per event: uint32, or uint64 where letters have more than 32 bits.

        events: has at least the predicates' `columns`, of any encoding. Never raises for what the rows hold. Linear.
        """
        columns = list(self.predicates.columns)
        out = np.zeros(events.num_rows, self._narrow)
        start = 0
        for batch in [events] if isinstance(events, pa.RecordBatch) else events.select(columns).to_batches():
            if columns:
                rows = BatchRows(self.predicates.schema, {name: batch.column(name) for name in columns}, batch.num_rows)
                self._batch(rows, out[start : start + batch.num_rows])
            start += batch.num_rows
        if not columns:
            self._constants(out)
        return out.astype(self.predicates.dtype, copy=False)

    def _constants(self, out: np.ndarray[Any, Any]) -> None:
        for value, condition in zip(self.predicates.values, self.predicates.conditions, strict=True):
            if evaluate(condition, BatchRows(self.predicates.schema, {}, 0)).truth():
                out |= self._narrow.type(value)

    def of(self, rows: BatchRows) -> np.ndarray[Any, Any]:
        """One letter per event of a batch that others read too, in as few bytes as its bits need; of whatever columns the predicates look at."""
        out = np.zeros(rows.length, self._narrow)
        if self.predicates.columns:
            self._batch(rows, out)
        else:
            self._constants(out)
        return out

    def _batch(self, rows: BatchRows, out: np.ndarray[Any, Any]) -> None:
        predicates = self.predicates
        tables = {}
        for path in predicates.texts:
            at_once = self._at_once(path, rows) if rows.length <= AT_ONCE else None
            if at_once is None:
                tables[path] = self._table(path, self._distinct(path, rows).values)
            else:
                np.bitwise_or(out, at_once, out=out)
        self._prepare(rows)
        for start in range(0, rows.length, SLICE):
            length = min(SLICE, rows.length - start)
            target = out[start : start + length]
            for path, table in tables.items():
                rows.distinct[path].add(table, start, target)
            piece = rows.slice(start, length)
            for value, condition in predicates.others:
                truth = _truth(condition, piece)
                bit = truth.view(np.uint8).astype(self._narrow, copy=False) if truth.ndim else self._narrow.type(bool(truth))
                np.bitwise_or(target, bit * self._narrow.type(value), out=target)

    def _at_once(self, path: tuple[str, ...], rows: BatchRows) -> np.ndarray[Any, Any] | None:
        """What the texts of a few rows add to their letters; None where one of them is new."""
        known = self._known[path]
        try:
            return np.array([known[text] for text in text_bytes(rows.array(path))], self._narrow)
        except KeyError:
            return None

    def _table(self, path: tuple[str, ...], values: _Values) -> np.ndarray[Any, Any]:
        """What each of the distinct values of a text column adds to letters, NULL last."""
        if path == self._type and values is not self._last_met:
            self._last_met, self.types_met = values, self.types_met or set()
            if len(values.dictionary) <= MOST_KNOWN:
                self.types_met.update(texts_of(values.dictionary))
        known, conditions = self._known[path], self.predicates.texts[path]
        if len(values.dictionary) > KNOWN_AT_ONCE:
            return values.added(conditions, self._narrow)
        texts = [*text_bytes(values.dictionary), None]
        if not known.keys() >= set(texts):
            if len(known) > MOST_KNOWN:
                known.clear()
            known.update(zip(texts, values.added(conditions, self._narrow).tolist(), strict=True))
        return np.array([known[text] for text in texts], self._narrow)

    def _prepare(self, rows: BatchRows) -> None:
        """Compute for the whole batch what has text or decimals as arguments: on distinct values where there is one text column."""
        for node in self.predicates.apart:
            path = text_column(node)
            if path is None:
                rows.results[node] = evaluate(node, rows)
            else:
                rows.results[node] = self._distinct(path, rows).gather(node)

    def _distinct(self, path: tuple[str, ...], rows: BatchRows) -> _Distinct:
        known = rows.distinct.get(path)
        if known is None:
            known = _Distinct.of(path, rows.array(path), self.predicates.schema, self._dictionaries.get(path))
            rows.distinct[path] = self._dictionaries[path] = known
        return known


NARROW = ((8, np.uint8), (16, np.uint16), (32, np.uint32), (64, np.uint64))
"""The narrowest integer for so many bits: fewer bytes to move while the letters are put together."""


def _truth(condition: Expression, rows: BatchRows) -> np.ndarray[Any, Any]:
    """Where a condition holds, for some or for all rows at once; parts that all have to hold do so one by one, without NULL."""
    if isinstance(condition, Apply) and condition.operator == "and" and rows.known(condition) is None:
        return functools.reduce(np.logical_and, (_truth(part, rows) for part in condition.arguments))
    truth: np.ndarray[Any, Any] = evaluate(condition, rows).truth()
    return truth


def text_column(expression: Expression) -> tuple[str, ...] | None:
    """The path of the one text attribute that an expression looks at, or None where it looks at nothing, at more, or at something else."""
    leaves = [leaf for leaf in walk(expression) if isinstance(leaf, Field | Time)]
    paths = {leaf.path for leaf in leaves if isinstance(leaf, Field) and is_text(leaf.source)}
    return paths.pop() if len(paths) == 1 and all(isinstance(leaf, Field) and is_text(leaf.source) for leaf in leaves) else None


def boundaries(expression: Expression) -> Iterator[Apply]:
    """The outermost operators that take text or decimals and give something else, and whole parts that look at one text column alone."""
    if not isinstance(expression, Apply):
        return
    if any(in_arrow(argument.type) for argument in expression.arguments) or text_column(expression) is not None:  # type: ignore[attr-defined]
        yield expression
        return
    for argument in expression.arguments:
        yield from boundaries(argument)


@dataclass
class BatchRows:
    """A batch, or a slice of one, as a source of columns for `values.evaluate`.

    results: expressions computed for all rows of the batch. cache: columns read so far. start, length: the slice.
    """

    schema: EventSchema
    arrays: dict[str, pa.Array]
    length: int
    start: int = 0
    results: dict[Expression, Any] = field(default_factory=dict)
    cache: dict[tuple[tuple[str, ...], str], Any] = field(default_factory=dict)
    distinct: dict[tuple[str, ...], _Distinct] = field(default_factory=dict)
    whole: bool = True

    def slice(self, start: int, length: int) -> BatchRows:
        """The same batch, seen through a window of rows."""
        return BatchRows(self.schema, self.arrays, length, start, self.results, self.cache, whole=start == 0 and length == self.length)

    def array(self, path: tuple[str, ...]) -> pa.Array:
        """The input array of a path; a NULL struct has NULL fields."""
        array = self.arrays[path[0]]
        for name in path[1:]:
            array = pc.struct_field(plain(array), name)
        return array

    def field(self, field: Field) -> Any:
        """An attribute of these rows, as its canonical type."""
        # A column of NULLs is of the type of whatever it meets.
        value = self.cache.get((field.path, str(field.type)))
        if value is None:
            value = self.cache[field.path, str(field.type)] = _lazy(self.array(field.path), field.type)
        return self._cut(value, field.type)

    def time(self, time: Time) -> Any:
        """The event times of these rows, as numbers."""
        path = (self.schema.time_column or "",)
        return self.field(Field("", path, time.type, time.type))

    def known(self, expression: Expression) -> Any | None:
        """What the reader has computed for the whole batch."""
        if not isinstance(expression, Apply) or not self.results:
            return None
        value = self.results.get(expression)
        return None if value is None else self._cut(value, expression.type)

    def _cut(self, value: Any, kind: pa.DataType) -> Any:
        if isinstance(value, _Late):
            return value.read(self.start, self.length, kind)
        if self.whole or isinstance(value, pa.Scalar):
            return value
        if not isinstance(value, Column):
            return value.slice(self.start, self.length)
        if value.values.ndim == 0:
            return value
        end = self.start + self.length
        return Column(value.values[self.start : end], None if value.valid is None else value.valid[self.start : end])


@record
class _Late:
    """A numeric column that is read slice by slice: nothing is unpacked or normalized for the whole batch."""

    array: pa.Array

    def read(self, start: int, length: int, kind: pa.DataType) -> Column:
        column: Column = read(self.array.slice(start, length), kind)
        return column


def _lazy(array: pa.Array, kind: pa.DataType) -> Any:
    array = plain(array)
    return read(array, kind) if in_arrow(kind) else _Late(array)


@record(slots=False)
class _Values:
    """The distinct values of a text column. known: where each condition that was asked for holds, NULL last."""

    path: tuple[str, ...]
    dictionary: pa.Array
    schema: EventSchema
    known: dict[Expression, np.ndarray[Any, Any]] = field(default_factory=dict)

    @functools.cached_property
    def rows(self) -> BatchRows:
        """The values as a batch, with NULL."""
        values = plain(self.dictionary)
        values = pa.concat_arrays([values, pa.nulls(1, values.type)])
        rows = BatchRows(self.schema, {self.path[0]: values}, len(values))
        rows.cache[self.path, str(TEXT)] = _lazy(values, TEXT)
        return rows

    def value(self, expression: Expression) -> Column:
        """An expression about this column, on its distinct values."""
        result: Column = evaluate(expression, self.rows)
        return result

    def truth(self, condition: Expression) -> np.ndarray[Any, Any]:
        """Which of the distinct values satisfy a condition."""
        known = self.known.get(condition)
        if known is None:
            known = self.known[condition] = np.broadcast_to(self.value(condition).truth(), (self.rows.length,))
        return known

    def added(self, conditions: Iterable[tuple[int, Expression]], kind: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """What each value adds to letters, given what each condition adds where it holds."""
        table: np.ndarray[Any, Any] = np.zeros(self.rows.length, kind)
        for value, condition in conditions:
            table |= self.truth(condition).astype(kind) * kind.type(value)
        return table


@record(slots=False)
class _Distinct:
    """A text column as codes into its distinct values: one per row, int32 or narrower or wider; NULL rows have the code behind the values."""

    values: _Values
    codes: np.ndarray[Any, Any]

    @classmethod
    def of(cls, path: tuple[str, ...], array: pa.Array, schema: EventSchema, last: _Distinct | None) -> _Distinct:
        """Encode a column; where its dictionary is the last batch's, what is known about its values is kept."""
        if not pa.types.is_dictionary(array.type):
            array = plain(array).dictionary_encode()
        elif len(array.dictionary) > max(len(array), 256):
            array = plain(array.dictionary_decode()).dictionary_encode()
        dictionary = array.dictionary
        codes, valid = raw(array.indices), validity(array.indices)
        if valid is not None:
            codes = np.where(valid, codes, len(dictionary)).astype(np.int32 if codes.itemsize <= 4 else np.int64)
        if last is not None and _same(dictionary, last.values.dictionary):
            return cls(last.values, codes)
        return cls(_Values(path, dictionary, schema), codes)

    def gather(self, expression: Expression) -> Column:
        """An expression about this column, one value per row."""
        column = self.values.value(expression)
        if column.values.ndim == 0:
            return column
        return Column(column.values[self.codes], None if column.valid is None else column.valid[self.codes])

    def add(self, table: np.ndarray[Any, Any], start: int, target: np.ndarray[Any, Any]) -> None:
        """Add `table[codes]` to the letters in `target`, for the rows from `start` on."""
        codes = self.codes[start : start + len(target)]
        matters = np.flatnonzero(table)
        if len(matters) > FEW_VALUES or len(target) <= FEW_ROWS:
            np.bitwise_or(target, table[codes], out=target)
            return
        for value in matters.tolist():
            truth = (codes == codes.dtype.type(value)).view(np.uint8).astype(table.dtype, copy=False)
            np.bitwise_or(target, truth * table[value], out=target)


def texts_of(texts: pa.Array) -> list[str]:
    """Texts without NULL, what is no UTF-8 in them replaced."""
    return [text.decode(errors="replace") for text in text_bytes(texts) if text is not None]


def text_bytes(texts: pa.Array) -> list[bytes | None]:
    """Texts as bytes: some may be no UTF-8."""
    texts = plain(texts)
    values: list[bytes | None] = texts.cast(pa.large_binary() if pa.types.is_large_string(texts.type) else pa.binary()).to_pylist()
    return values


def _same(first: pa.Array, second: pa.Array) -> bool:
    """Whether two dictionaries are the same memory; equal contents elsewhere count as different, which is only slower."""
    return first is second or (
        first.type == second.type
        and len(first) == len(second)
        and first.offset == second.offset
        and [buffer and buffer.address for buffer in first.buffers()] == [buffer and buffer.address for buffer in second.buffers()]
    )
