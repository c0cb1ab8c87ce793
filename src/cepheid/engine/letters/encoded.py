"""Values of events as words: what guards read of an event travels with what its letter says (`automata.registers`).

Comes in: value expressions and Arrow batches. Goes out: what an event says to a program with guards: an array of words, uint64, with a row per
event: the letter or the words of the spelling first, then the values (`EventForm`). Whatever carries spellings, carries these, and does not know of
values: events that wait, snapshots, Spark's columns. A program without guards has no values, and its letters are as they would be without this file.

A value is one word; a decimal of more digits than one holds is two, of which the first decides. As int64, words have the order of the values, and
are equal where these are. Behind all values of an event there is a bit for each that says whether it is NULL; the words of a NULL are 0. Both sides
of a comparison have one type (binding casts), and so one encoding.

Texts are numbers that a dictionary gives (`Texts`): each once, and it never changes while somebody has it; so what waits, what is stored and what is
found by a hash stays as it is. The order of texts is not that of their numbers: `Texts.ranks` says it. All ranks change where there is no room for
one more between its neighbours; whoever keeps some makes them anew then (`guards.guarded_ranks`).
"""

from __future__ import annotations

import bisect
import itertools
import math
from dataclasses import field
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from cepheid.automata.registers import wholes
from cepheid.engine.letters.predicates import NARROW, BatchRows
from cepheid.engine.letters.values import DECIMALS, INT64_MAX, INT64_MIN, OPERATIONS, Column, decimal_halves, evaluate, plain, read
from cepheid.engine.letters.words import are_letters
from cepheid.engine.memory.pools import Array, power_of_two
from cepheid.errors import LimitError
from cepheid.logical.plan import HALVES, Apply, Expression, Field, Index, Time, walk
from cepheid.logical.types import is_two_words, type_of
from cepheid.records import record
from cepheid.schema import is_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from cepheid.automata.alphabet import Alphabet
    from cepheid.automata.program import Program
    from cepheid.engine.letters.predicates import Predicates
    from cepheid.engine.letters.words import LongPredicates
    from cepheid.schema import EventSchema

Positions: TypeAlias = "Array | Callable[[], Array]"

SLICE = 1 << 16
"""Rows whose values are made at once."""

NULL_BITS = 64
"""Values whose NULL bits are one word."""

COLLECT_FROM = 1 << 16
"""Texts up to which nobody looks which of them are still there."""

AT_ONCE = 16
"""Texts of a batch that are looked up one by one, for to encode them would cost more."""

FEW_EVENTS = 128
"""Events whose texts are looked up one by one."""

RANK_STEP, RANK_BITS = 1 << 32, 62
"""How far from the others a rank goes that is the least or the greatest so far; and the bits of a rank."""

NEAR_BITS = 10
"""Of what is between two neighbours, what texts take that follow the newest one, in bits: as a rule more of them follow, such as rising numbers."""

FEW = 64
"""Texts up to which it costs less to put each into its place than to merge them with all others."""

MOST_TEXTS = 1 << 28
"""Different texts that one state may have; compared decimals of 2^62 and more count as such."""

TEXT_BYTES = 200
"""About what a text takes in memory beside its bytes, in all tables."""


# ---------------------------------------------------------------------------------------------------------------------------- texts


class Texts:
    """The numbers of the texts that guards compare, for the run state of one query: 0, 1, .. in the order of arrival.

    A number stays that of its text as long as `keep` is told of it. Equal texts have equal numbers; `ranks` has the order, which is that of the
    texts' bytes. A text costs its length and some 200 bytes. spreads: how often all ranks have changed; forgotten: how often texts were forgotten, so
    that their numbers may be those of others. keeps_all: whether none is, for others may have its number.
    """

    def __init__(self) -> None:
        self._number_of: dict[bytes, int] = {}
        self._text_of: dict[int, bytes] = {}
        self._next = 0  # no number before it is free
        self._ranks: Array = np.zeros(16, np.int64)
        self._ranked: list[bytes] = []  # ascending
        self._unranked: list[bytes] = []
        self._newest: frozenset[bytes] = frozenset()  # those that were ranked last
        self.spreads = self.forgotten = 0
        self.keeps_all = False
        self._collect_at = COLLECT_FROM
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._number_of)

    def read(self, texts: pa.Array) -> tuple[Array, Array | None]:
        """The numbers of texts (int64), and which are not NULL (bool, None: all). Linear, and O(log n) for each that is new."""
        texts = plain(texts)
        valid = None if not texts.null_count else np.asarray(texts.is_valid())
        # As bytes: some may be no UTF-8.
        texts = texts.cast(pa.large_binary() if pa.types.is_large_string(texts.type) else pa.binary())
        if len(texts) <= AT_ONCE:
            return np.array([0 if text is None else self._number(text) for text in texts.to_pylist()], np.int64), valid
        encoded = texts.dictionary_encode()
        numbers = np.array([*map(self._number, encoded.dictionary.to_pylist()), 0], np.int64)
        return numbers[encoded.indices.fill_null(len(numbers) - 1).to_numpy()], valid

    def _number(self, text: bytes) -> int:
        """The number of a text, a new one if need be."""
        number = self._number_of.get(text)
        if number is None:
            while self._next in self._text_of:
                self._next += 1
            number = self._next
            if number >= MOST_TEXTS:
                raise LimitError(
                    f"the open windows have {number} different texts that the query compares, and the limit is {MOST_TEXTS} (MOST_TEXTS)",
                    help="give a smaller window, or split the stream",
                )
            self._add(number, text)
        return number

    def _add(self, number: int, text: bytes) -> None:
        self._number_of[text], self._text_of[number] = number, text
        self._unranked.append(text)
        self._bytes += TEXT_BYTES + len(text)
        if number >= len(self._ranks):
            # PERF: what is never written to takes no memory, and after a burst of texts most is not.
            ranks: Array = np.zeros(power_of_two(number + 1), np.int64)
            ranks[: len(self._ranks)] = self._ranks
            self._ranks = ranks

    def text(self, number: int) -> bytes:
        """The text of a number, as UTF-8."""
        return self._text_of[number]

    def knows(self, numbers: Array) -> bool:
        """Whether all of these are numbers of texts."""
        return self._text_of.keys() >= set(numbers.tolist())

    @property
    def ranks(self) -> Array:
        """By number, integers (int64, 0 < rank < (1 << RANK_BITS) - 1) in the order of the texts; 0 of numbers without a text.

        A rank stays as long as its text and `spreads` do; then there is another array, and the old one is as it was. Per new text O(log n), and
        O(n) for many at once.
        """
        if self._unranked:
            new = sorted(self._unranked)
            if len(new) > len(self._ranked) or not self._place(new):
                self._spread()
            self._newest = frozenset(new)
            self._unranked.clear()
        return self._ranks

    def _place(self, texts: Sequence[bytes]) -> bool:
        """Give texts, ascending, ranks between those of their neighbours; whether there is room."""
        for place, group in itertools.groupby(texts, key=lambda text: bisect.bisect_left(self._ranked, text)):
            own = [self._number_of[text] for text in group]
            before, after = (self._ranked[max(0, each) : each + 1] for each in (place - 1, place))
            below, above = (int(self._ranks[self._number_of[each[0]]]) if each else None for each in (before, after))
            if below is None or above is None:
                step = RANK_STEP
            else:
                step = (above - below) // (len(own) + 1)
                if not self._newest.isdisjoint((*before, *after)):
                    step = (above - below) // (len(own) << NEAR_BITS) or step
            # As close to the newest as may be, of which one is a neighbour where steps are short.
            first = (
                below + step
                if below is not None and (above is None or not self._newest.issuperset(after))
                else (above or 0) - step * len(own)
            )
            if not step or first <= 0 or first + step * len(own) >= (1 << RANK_BITS) - 1:
                return False
            self._ranks[own] = first + step * np.arange(len(own))
        if len(texts) > FEW:
            self._ranked = sorted([*self._ranked, *texts])  # PERF: two ascending runs are merged
        else:
            for text in texts:
                bisect.insort(self._ranked, text)
        return True

    def _spread(self) -> None:
        """Give all texts ranks, far from each other, and as many again before and after them."""
        self._ranked = sorted(self._number_of)
        numbers = [self._number_of[text] for text in self._ranked]
        step = (1 << RANK_BITS - 2) // len(numbers)
        self._ranks = np.zeros_like(self._ranks)
        self._ranks[numbers] = (1 << RANK_BITS - 2) + step * np.arange(1, len(numbers) + 1)
        self.spreads += 1

    # ------------------------------------------------------------------------------------------------------------------ giving back

    def collect(self, live: Callable[[], Iterable[Array]]) -> None:
        """Forget the texts that are nowhere any more, where there are many; live: gives the numbers that are somewhere. Amortized O(1) per text."""
        if len(self) > self._collect_at and not self.keeps_all:
            self.keep(live())
            self._collect_at = max(COLLECT_FROM, 2 * len(self))

    def keep(self, live: Iterable[Array]) -> None:
        """Forget all texts but those with these numbers."""
        kept = {number: self._text_of[number] for number in _distinct(live)}
        self._ranks[list(self._text_of.keys() - kept.keys())] = 0
        self._text_of, self._number_of, self._next = kept, {text: number for number, text in kept.items()}, 0
        self._ranked, self._unranked = ([text for text in texts if text in self._number_of] for texts in (self._ranked, self._unranked))
        self._bytes = sum(TEXT_BYTES + len(text) for text in self._number_of)
        self.forgotten += 1

    @property
    def nbytes(self) -> int:
        """About how many bytes they take."""
        return int(self._ranks.nbytes) + self._bytes

    def dump(self, live: Iterable[Array]) -> dict[str, Any]:
        """These numbers and their texts as sections: `text_numbers` (int64, (2, n): numbers, lengths in bytes) and `texts`."""
        numbers = sorted(self._text_of) if self.keeps_all else _distinct(live)
        texts = [self._text_of[number] for number in numbers]
        return {"text_numbers": np.array([numbers, list(map(len, texts))], "<i8"), "texts": b"".join(texts)}

    def load(self, sections: Mapping[str, Any]) -> None:
        """Go on, fresh, from what `dump` gave; raises KeyError or ValueError where that does not fit."""
        numbers, lengths = np.frombuffer(sections["text_numbers"], "<i8").reshape(2, -1).tolist()
        data = bytes(sections["texts"])
        stops = list(itertools.accumulate(lengths))
        texts = [data[stop - length : stop] for stop, length in zip(stops, lengths, strict=True)]
        right = min(lengths, default=0) >= 0 and (stops or [0])[-1] == len(data) and len(set(texts)) == len(texts)
        if not right or len(set(numbers)) != len(numbers) or any(not 0 <= number < MOST_TEXTS for number in numbers):
            raise ValueError("numbers of texts")
        for number, text in zip(numbers, texts, strict=True):
            self._add(number, text)


def _distinct(numbers: Iterable[Array]) -> list[int]:
    found: list[int] = np.unique(np.concatenate([np.zeros(0, np.int64), *numbers])).tolist()
    return found


# --------------------------------------------------------------------------------------------------------------------------- values

LOWER_HALF = 1 << 63
"""What the second word of a decimal of two is below its lower half."""


def is_interned(value: Expression) -> bool:
    """Whether a value is a text, or a decimal that may have more digits than one word holds: its order is that of no word of its own."""
    return is_text(type_of(value)) or is_two_words(value)


@record(slots=False)
class ValueLayout:
    """Where the words of some values stand. values: expressions, each once."""

    values: tuple[Expression, ...]

    @cached_property
    def halved(self) -> tuple[Expression, ...]:
        """The decimals of which halves are among them."""
        return tuple(wholes(self.values))

    @cached_property
    def places(self) -> Mapping[Expression, slice]:
        """The words of each value."""
        stops = list(itertools.accumulate(2 if is_two_words(value) else 1 for value in self.values))
        return {value: slice(start, stop) for value, start, stop in zip(self.values, [0, *stops], stops, strict=False)}

    @cached_property
    def null_at(self) -> int:
        """The first word with NULL bits."""
        return max((place.stop for place in self.places.values()), default=0)

    @cached_property
    def width(self) -> int:
        """How many words there are."""
        return self.null_at + -(-len(self.values) // NULL_BITS)

    @cached_property
    def null_bits(self) -> Mapping[Expression, tuple[int, np.uint64]]:
        """The word and the bit that say whether a value is NULL."""
        return {value: (self.null_at + number // NULL_BITS, np.uint64(1 << number % NULL_BITS)) for number, value in enumerate(self.values)}

    @cached_property
    def texts(self) -> tuple[Expression, ...]:
        """The values that are texts."""
        return tuple(value for value in self.values if is_text(type_of(value)))

    @property
    def positional(self) -> bool:
        """Whether some value is made of an event's position."""
        return any(isinstance(node, Index) for value in self.values for node in walk(value))

    def columns(self, schema: EventSchema) -> tuple[str, ...]:
        """The input columns that they are read from."""
        leaves = [leaf for value in self.values for leaf in walk(value)]
        names = [leaf.path[0] if isinstance(leaf, Field) else schema.time_column or "" for leaf in leaves if isinstance(leaf, Field | Time)]
        return tuple(dict.fromkeys(names))

    def fits(self, words: Array, texts: Texts) -> bool:
        """Whether events can have these words, as far as their bits go."""
        last = len(self.values) % NULL_BITS
        known = not last or not (words[:, -1] >> np.uint64(last)).any()
        known = known and texts.knows(self.text_numbers(words))
        return known and not any((words[self._null(words, value), place] != 0).any() for value, place in self.places.items())

    def text_numbers(self, words: Array) -> Array:
        """The numbers of the texts among them (int64)."""
        found = [words[~self._null(words, value), self.places[value].start].view(np.int64) for value in self.texts]
        return np.unique(np.concatenate([np.zeros(0, np.int64), *found]))

    def _null(self, words: Array, value: Expression) -> Array:
        place, bit = self.null_bits[value]
        null: Array = words[:, place] & bit != 0
        return null


@record(eq=False)
class Values:
    """The values of some events, as evaluations read them.

    words: uint64, (n, layout.width), without the words of NULL bits where no value is NULL. texts: what the numbers of texts stand for.
    """

    layout: ValueLayout
    words: Array
    texts: Texts

    def __len__(self) -> int:
        return len(self.words)

    def of(self, rows: Array | slice) -> Values:
        """Those of these rows, in this order."""
        if isinstance(rows, slice):
            return Values(self.layout, self.words[rows], self.texts)
        words = np.empty((len(rows), self.words.shape[1]), np.uint64)
        for place in range(words.shape[1]):
            words[:, place] = np.take(self.words[:, place], rows)  # PERF: together, words that lie apart would be copied first, all of them
        return Values(self.layout, words, self.texts)

    @property
    def nullable(self) -> bool:
        """Whether there are NULL bits."""
        return int(self.words.shape[1]) > self.layout.null_at

    def encoded(self, value: Expression) -> Array:
        """A value of each event: int64, (n,), or (n, 2) of two words; 0 where it is NULL. Numbers and times as they are, texts their numbers."""
        words: Array = self.words[:, self.layout.places[value]].view(np.int64)
        return words if words.shape[1] == 2 else words[:, 0]

    def null(self, value: Expression) -> Array:
        """Where a value is NULL (bool, n)."""
        if not self.nullable:
            return np.zeros(len(self), np.bool_)
        place, bit = self.layout.null_bits[value]
        null: Array = self.words[:, place] & bit != 0
        return null

    def column(self, value: Expression) -> Any:
        """A value of each event as `values.evaluate` has it. Linear."""
        kind, words, null = type_of(value), self.encoded(value), self.null(value)
        if pa.types.is_floating(kind):
            return Column(np.where(null, np.nan, np.where(words < 0, words ^ np.int64(INT64_MAX), words).view(np.float64)))
        if is_text(kind):
            if len(words) <= FEW_EVENTS:
                listed = (
                    None if lacking else self.texts.text(number) for number, lacking in zip(words.tolist(), null.tolist(), strict=True)
                )
                return pa.array(listed, pa.large_binary(), size=len(words)).view(pa.large_string())
            numbers, places = np.unique(words[~null], return_inverse=True)
            texts = pa.array(map(self.texts.text, numbers.tolist()), pa.large_binary())
            indices: Array = np.zeros(len(self), np.int64)
            indices[~null] = places
            return texts.view(pa.large_string()).take(pa.array(indices, mask=null))
        if pa.types.is_decimal(kind):
            halves = [words[:, 1] ^ np.int64(INT64_MIN), words[:, 0]] if words.ndim == 2 else [words, words >> 63]
            buffers = [pa.array(~null).buffers()[1], pa.py_buffer(np.stack(halves, axis=1))]
            return pa.Array.from_buffers(kind, len(self), buffers)
        return Column(words.astype(np.bool_) if pa.types.is_boolean(kind) else words, ~null)

    def listed(self, value: Expression) -> list[int | None]:
        """A value of each event as one integer, None where it is NULL."""
        words = self.encoded(value)
        whole = words.tolist() if words.ndim == 1 else [first * (1 << 64) + second for first, second in words.tolist()]
        return [None if null else number for number, null in zip(whole, self.null(value).tolist(), strict=True)]

    def decoded(self, value: Expression) -> list[Any]:
        """A value of each event as Python has it: bool, int (also times and dates), float, Decimal, str; None where it is NULL."""
        kind = type_of(value)
        if pa.types.is_floating(kind):
            return [None if math.isnan(each) else each for each in self.column(value).values.tolist()]
        listed = self.listed(value)
        if is_text(kind):
            return [None if each is None else self.texts.text(each).decode(errors="surrogateescape") for each in listed]
        if pa.types.is_decimal(kind):
            above = LOWER_HALF if is_two_words(value) else 0
            return [None if each is None else Decimal(each + above).scaleb(-kind.scale, DECIMALS) for each in listed]
        return [None if each is None else bool(each) for each in listed] if pa.types.is_boolean(kind) else listed


class _Positioned(BatchRows):
    """A batch whose positions are known."""

    positions: Array
    made: Mapping[Expression, Any]

    def known(self, expression: Expression) -> Any | None:
        """The positions, for an Index; and what has been made."""
        return Column(self.positions) if isinstance(expression, Index) else self.made.get(expression) if self.made else None


class ValueReader:
    """Reads values of events of one stream. Its texts get numbers in `texts`."""

    def __init__(self, layout: ValueLayout, schema: EventSchema, texts: Texts) -> None:
        self.layout = layout
        self.texts = texts
        self._schema = schema
        self._columns = list(layout.columns(schema))

    def read(self, events: pa.RecordBatch | pa.Table, positions: Positions | None, out: Array | None = None) -> Array:
        """Their words, uint64 (n, width); positions: see `EventReader.read`. Never raises for what the rows hold. Linear.

        out: zeros where they go.
        """
        if out is None:
            out = np.zeros((events.num_rows, self.layout.width), np.uint64)
        self._fill(events, positions, out)
        return out

    def columns(self, events: pa.RecordBatch | pa.Table, positions: Positions | None) -> Values:
        """The same as `Values`, column by column."""
        # PERF: where nothing is NULL the NULL bits are never written, and take no memory.
        words: Array = np.zeros((self.layout.width, events.num_rows), np.uint64).T
        null = self._fill(events, positions, words)
        return Values(self.layout, words if null else words[:, : self.layout.null_at], self.texts)

    def _fill(self, events: pa.RecordBatch | pa.Table, positions: Positions | None, out: Array) -> bool:
        """Write the words of events over zeros; whether some value is NULL."""
        null = False
        places: Array = np.zeros(events.num_rows, np.int64)
        if self.layout.positional:
            assert positions is not None, "who reads $index knows positions"
            places = positions() if callable(positions) else positions
        start = 0
        table = pa.Table.from_batches([events]) if isinstance(events, pa.RecordBatch) else events
        # PERF: a slice at a time, for what is made in between is in the cache then, and its memory is there already.
        batches = table.select(self._columns).to_batches(max_chunksize=SLICE) if self._columns else []
        arrays: list[dict[str, pa.Array]] = [dict(zip(self._columns, batch.columns, strict=True)) for batch in batches]
        for batch in arrays if self._columns else [{}]:
            length = len(batch[self._columns[0]]) if batch else events.num_rows
            rows = _Positioned(self._schema, batch, length)
            rows.positions, rows.made = places[start : start + length], {}
            rows.made = {value: evaluate(value, rows) for value in self.layout.halved}
            null |= self._encode([evaluate(value, rows) for value in self.layout.values], out[start : start + length])
            start += length
        return null

    def as_columns(self, events: pa.RecordBatch) -> list[pa.Array]:
        """A column for each of the values that travel, as `of_columns` takes them; of values without positions. Linear."""
        rows = BatchRows(self._schema, {name: events.column(name) for name in self._columns}, events.num_rows)
        return [_column(evaluate(value, rows), events.num_rows) for value in travelling(self.layout.values)]

    def of_columns(self, columns: Sequence[pa.Array]) -> Array:
        """The words of values that somebody has computed: a column for each of `travelling`, of its canonical type, or of integers for times."""
        out: Array = np.zeros((len(columns[0]), self.layout.width), np.uint64)
        found = {value: read(column, type_of(value)) for value, column in zip(travelling(self.layout.values), columns, strict=True)}
        self._encode([found[value] if value in found else _half_of(found, value) for value in self.layout.values], out)
        return out

    def _encode(self, found: Iterable[Any], out: Array) -> bool:
        """Write values, one per row or a constant each, as words into `out`; whether some are NULL."""
        some = False
        for value, content in zip(self.layout.values, found, strict=True):
            words, valid = self._words(content, value, len(out))
            place = self.layout.places[value]
            if valid is not None and not valid.all():
                words = np.where(valid if words.ndim == 1 else valid[:, None], words, 0)
                null, bit = self.layout.null_bits[value]
                out[:, null] |= np.where(valid, np.uint64(0), bit)
                some = True
            out[:, place] = words.view(np.uint64).reshape(len(out), place.stop - place.start)
        return some

    def _words(self, content: Any, value: Expression, length: int) -> tuple[Array, Array | None]:
        """Values as int64, (n,) or (n, 2), and which are not NULL (None: all)."""
        kind = type_of(value)
        if isinstance(content, Column):
            values = np.broadcast_to(content.values, (length,))
            if pa.types.is_floating(kind):
                return ordered_bits(values.astype(np.float64)), ~np.isnan(values)
            valid = None if content.valid is None else np.broadcast_to(content.valid, (length,))
            return values.astype(np.int64), valid
        array = _column(content, length)
        return self.texts.read(array) if is_text(kind) else _decimal_words(array, two=is_two_words(value))


def travelling(values: Iterable[Expression]) -> tuple[Expression, ...]:
    """What travels for values that are computed where the events come from: they themselves, for the halves of a decimal the decimal. Linear."""
    return tuple(dict.fromkeys(_whole(value) for value in values))


def _whole(value: Expression) -> Expression:
    return value.arguments[0] if isinstance(value, Apply) and value.operator in HALVES else value


def _half_of(found: Mapping[Expression, Any], half: Expression) -> Any:
    """A half of a decimal that travelled."""
    assert isinstance(half, Apply)
    return OPERATIONS[half.operator]([found[_whole(half)]], half)


def _column(content: Any, length: int) -> pa.Array:
    """What `evaluate` gives, as an array of so many rows."""
    if isinstance(content, Column):
        values, null = (np.broadcast_to(part, (length,)) for part in (content.values, content.null()))
        return pa.array(np.ascontiguousarray(values), mask=np.ascontiguousarray(null))
    if isinstance(content, pa.Scalar):
        return pa.array([content.as_py()] * length, content.type)
    return pa.concat_arrays(content.chunks) if isinstance(content, pa.ChunkedArray) else content


def ordered_bits(values: Array) -> Array:
    """Doubles as int64 in their order; -0.0 is 0.0."""
    with np.errstate(invalid="ignore"):  # a signaling NaN
        bits = (values + 0.0).view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(INT64_MAX), bits)


def _decimal_words(values: pa.Array, *, two: bool) -> tuple[Array, Array | None]:
    """decimal128 as int64: two each, the upper half, and the lower half in the order of int64; or one, NULL where its type has not so many digits."""
    valid = None if not values.null_count else np.asarray(values.is_valid())
    lower, upper = decimal_halves(values)
    if two:
        return np.stack([upper, lower ^ np.int64(INT64_MIN)], axis=1), valid
    fits = upper == lower >> 63
    if not fits.all():
        valid = fits if valid is None else valid & fits
    return lower, valid


# --------------------------------------------------------------------------------------------------------------------- whole events


@record(slots=False)
class EventForm:
    """What an event says to a program, and how its words are put together and taken apart: a letter, or words of a spelling, or these and values."""

    alphabet: Alphabet
    layout: ValueLayout = field(default_factory=lambda: ValueLayout(()))

    @classmethod
    def of(cls, program: Program) -> EventForm:
        """Of what a program reads."""
        return cls(program.automaton.alphabet, ValueLayout(program.values))

    @property
    def words(self) -> int | None:
        """How many words an event has; None where it is one letter, an array of one dimension."""
        if self.layout.values:
            return self._spelled + self.layout.width
        return self._spelled if self.alphabet.number_bits else None

    @property
    def _spelled(self) -> int:
        """The words before the values."""
        return len(self.alphabet.words) if self.alphabet.number_bits else 1

    def none(self) -> Array:
        """No events."""
        return np.zeros(0 if self.words is None else (0, self.words), np.uint64)

    def joined(self, letters: Array, values: Array) -> Array:
        """Letters or spellings, and the words of values."""
        return np.column_stack([letters.astype(np.uint64, copy=False), values])

    def letters(self, events: Array) -> Array:
        """The letters or spellings."""
        if not self.layout.values:
            return events
        return events[:, : self._spelled] if self.alphabet.number_bits else self.widened(events[:, 0])

    def narrowed(self, letters: Array) -> Array:
        """Letters in as few bytes as their bits need; spellings as they are."""
        bits = self.alphabet.event_bits
        return letters if letters.ndim > 1 else letters.astype(next(kind for most, kind in NARROW if bits <= most))

    def widened(self, letters: Array) -> Array:
        """Letters as evaluations read them; spellings as they are."""
        return letters if letters.ndim > 1 else letters.astype(np.uint32 if self.alphabet.event_bits <= 32 else np.uint64)

    def spellings(self, events: Array) -> Array:
        """The words of the letters or spellings."""
        return events[:, : self._spelled]

    def value_words(self, events: Array) -> Array:
        """The words of the values."""
        return events[:, self._spelled :]

    def values(self, events: Array, texts: Texts) -> Values:
        """The values."""
        return Values(self.layout, self.value_words(events), texts)

    def fits(self, events: Array, texts: Texts) -> bool:
        """Whether events (uint64) can say this, as far as bits go."""
        if not self.layout.values:
            return are_letters(events, self.alphabet)
        letters = events[:, : self._spelled] if self.alphabet.number_bits else events[:, 0]
        return are_letters(letters, self.alphabet) and self.layout.fits(self.value_words(events), texts)

    def text_numbers(self, events: Array) -> Array:
        """The numbers of the texts that they have (int64)."""
        return self.layout.text_numbers(self.value_words(events)) if self.layout.texts else np.zeros(0, np.int64)


class EventReader:
    """Turns the batches of one stream into what one program reads of them. columns: the input columns that it looks at."""

    def __init__(self, program: Program, predicates: Predicates | LongPredicates, texts: Texts) -> None:
        self.form = EventForm.of(program)
        self._letters = predicates.reader()
        self.columns = tuple(dict.fromkeys([*predicates.columns, *self.form.layout.columns(predicates.schema)]))
        self._values = ValueReader(self.form.layout, predicates.schema, texts) if program.values else None

    @property
    def types_met(self) -> set[str] | None:
        """The types that it has met, see `LetterReader`."""
        return self._letters.types_met

    def read(self, events: pa.RecordBatch | pa.Table, *, positions: Positions | None = None, letters: Array | None = None) -> Array:
        """What events say, see `EventForm`. Linear.

        letters: theirs, if they are known. positions: those that `$index` stands for (int64, n), or what gives them.
        """
        own = self._letters.read(events) if letters is None else letters
        if self._values is None:
            return own
        out: Array = np.zeros((len(own), self.form.words or 0), np.uint64)
        self._values.read(events, positions, self.form.value_words(out))
        spelled = self.form.spellings(out)
        spelled[:] = own.reshape(spelled.shape)
        return out

    def apart(self, events: pa.RecordBatch | pa.Table, *, positions: Positions | None = None) -> tuple[Array, Values | None]:
        """The same taken apart: the letters or spellings, and the values, None without any. Linear."""
        letters = self._letters.read(events)
        if self._values is None:
            return letters, None
        return self.form.narrowed(letters), self._values.columns(events, positions)

    def of_columns(self, letters: Array, columns: Sequence[pa.Array]) -> Array:
        """What events say whose letters are known, and whose values stand in columns."""
        return letters if self._values is None else self.form.joined(letters, self._values.of_columns(columns))

    def as_columns(self, events: pa.RecordBatch) -> list[pa.Array]:
        """The values of events as columns, which `of_columns` takes."""
        return [] if self._values is None else self._values.as_columns(events)
