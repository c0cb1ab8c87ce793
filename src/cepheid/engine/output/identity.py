"""The identity of a match: 128 bits that are the same wherever and however often the match is found.

Comes in: rows of matches, and what is said of their query. Goes out: a text of 32 hexadecimal digits for each row. An identity is a hash of what a
row says, and of how many equal rows of the query came before it. Equal rows have equal times and keys, so they are decided together, and their
numbers need no memory that lasts; and which of two equal rows has which number, nobody can see.

The hash (docs/decisions/0016-match-identity.md) works on two lanes of 64 bits, each of which takes in words: ``lane = mix(lane ^ word)``. It is no
cryptographic one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.letters.values import decimal_halves, one_chunk, plain, raw
from cepheid.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cepheid.engine.memory.pools import Array

LANES = np.array([[0x243F6A8885A308D3], [0x13198A2E03707344]], np.uint64)
"""What the lanes begin with: the first digits of pi."""

FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
STEP = 0x9E3779B97F4A7C15
"""The multipliers of `mix`, and the step between places (Steele et al. 2014, SplitMix64)."""

NULL, BOOL, INTEGER, FLOAT, DECIMAL, DATE, TIME_OF_DAY, TIMESTAMP, DURATION, TEXT, BINARY, LIST, STRUCT = range(1, 14)
"""The first word of a value: of which kind it is."""

PIECE_MARKS = 1 << 16
"""Events of matches that are hashed at once."""

SAMPLE = 1 << 10
"""Texts that say whether there are few different ones."""

WORD, SECOND_STEPS = 8, {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}

_HEX = np.frombuffer(b"".join(b"%02x" % byte for byte in range(256)), np.uint16)


def mix(words: Array) -> Array:
    """A permutation of 64-bit words, each bit of which depends on all of them; works in place."""
    words ^= words >> np.uint64(30)
    words *= FIRST
    words ^= words >> np.uint64(27)
    words *= SECOND
    words ^= words >> np.uint64(31)
    return words


def _taken_in(lanes: Array, words: Array | int) -> Array:
    """The lanes once they have taken in a word: (2, n); words: one for all, one for each, or one for each lane of each."""
    return mix(lanes ^ (np.uint64(words) if isinstance(words, int) else words))


def identities(columns: Mapping[str, pa.Array | pa.ChunkedArray], said: str, repeats: Repeats) -> pa.Array:
    """The identity of each row (string), whose columns these are; said: what is said of the query. Linear in the values.

    Raises SchemaError for a column with a type that has no hash.
    """
    lanes = _rows(columns, said)
    return hexadecimal(_taken_in(lanes, repeats.numbers(lanes[0])))


def _rows(columns: Mapping[str, pa.Array | pa.ChunkedArray], said: str) -> Array:
    """The lanes of each row: what is said of the query, then the name and the value of each column, by their names."""
    lanes = _taken_in(LANES, _texts([said]))
    for name in sorted(columns):
        column = columns[name]
        try:
            values = digests(one_chunk(column) if isinstance(column, pa.ChunkedArray) else column)
        except NotImplementedError:
            raise SchemaError(
                f"match_id= reads the columns of a row, and `{name}` is {column.type}",
                help="leave it out: columns=[..], or measures in SELECT",
            ) from None
        lanes = _taken_in(_taken_in(lanes, _texts([name])), values)
    return lanes


def hexadecimal(lanes: Array) -> pa.Array:
    """The lanes of each row as a text of 32 digits, the first lane first."""
    count = lanes.shape[1]
    data = _HEX[np.ascontiguousarray(lanes.T).astype(">u8").view(np.uint8)]
    offsets = np.arange(0, 32 * count + 1, 32, dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))])


# ------------------------------------------------------------------------------------------------------------------------- values


def digests(array: pa.Array) -> Array:
    """The lanes of each value of an array: (2, n). Raises NotImplementedError for a type that has none. Linear."""
    array = plain(array)
    if pa.types.is_null(array.type):
        return np.repeat(_taken_in(LANES, NULL), len(array), axis=1)
    found = _of_values(array)
    if array.null_count:
        found = np.where(np.asarray(array.is_valid()), found, _taken_in(LANES, NULL))
    return found


def _of_values(array: pa.Array) -> Array:
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _distinct(array, TEXT)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return _distinct(array, BINARY)
    if pa.types.is_map(kind):
        entry = pa.struct([("key", kind.key_type), ("value", kind.item_type)])
        return _of_lists(array.cast(pa.list_(entry)))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _of_lists(array)
    if pa.types.is_struct(kind):
        parts = dict(zip([field.name for field in kind], array.flatten(), strict=True))
        lanes = np.repeat(_taken_in(LANES, STRUCT), len(array), axis=1)
        for name in sorted(parts):
            lanes = _taken_in(_taken_in(lanes, _texts([name])), digests(parts[name]))
        return lanes
    first, *words = _words(array)
    lanes = _taken_in(LANES, first)
    for word in words:
        lanes = _taken_in(lanes, word)
    return lanes


def _words(array: pa.Array) -> tuple[Any, ...]:
    """The kind of the values and the words of each (uint64); what stands under NULL is arbitrary."""
    kind = array.type
    if pa.types.is_boolean(kind):
        return BOOL, raw(array).astype(np.uint64)
    if pa.types.is_integer(kind):
        return INTEGER, raw(array).astype(np.uint64 if pa.types.is_unsigned_integer(kind) else np.int64).view(np.uint64)
    if pa.types.is_floating(kind):
        # One spelling of 0, and one of NaN.
        reals = raw(array).astype(np.float64) + 0.0
        return FLOAT, np.where(np.isnan(reals), np.nan, reals).view(np.uint64)
    if pa.types.is_decimal(kind) and kind.bit_width <= 128:
        lower, upper = decimal_halves(array.cast(pa.decimal128(kind.precision, kind.scale)))
        return DECIMAL, np.uint64(kind.scale), lower.view(np.uint64), upper.view(np.uint64)
    if pa.types.is_date(kind):
        return DATE, raw(array.cast(pa.date32())).astype(np.int64).view(np.uint64)
    named = {TIME_OF_DAY: pa.types.is_time, TIMESTAMP: pa.types.is_timestamp, DURATION: pa.types.is_duration}
    for first, is_so in named.items():
        if is_so(kind):
            # Whatever the unit of the column: whole seconds, then nanoseconds.
            steps, per_second = raw(array).astype(np.int64), SECOND_STEPS[kind.unit]
            seconds = steps // per_second
            return first, seconds.view(np.uint64), ((steps - seconds * per_second) * (10**9 // per_second)).view(np.uint64)
    raise NotImplementedError


def _of_lists(array: pa.Array) -> Array:
    """A list is its length and the sum of its values, each mixed with its place."""
    lengths = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    stops = np.cumsum(lengths)
    values = digests(array.flatten())
    places = np.arange(1, values.shape[1] + 1) - np.repeat(stops - lengths, lengths)
    mixed = mix(values + places.astype(np.uint64) * np.uint64(STEP))
    sums = np.zeros((2, values.shape[1] + 1), np.uint64)
    np.cumsum(mixed, axis=1, out=sums[:, 1:])
    lanes = _taken_in(_taken_in(LANES, LIST), lengths.view(np.uint64))
    return _taken_in(lanes, sums[:, stops] - sums[:, stops - lengths])


def _distinct(array: pa.Array, kind: int) -> Array:
    """Texts or bytes: each different one once, where the first ones say that this pays."""
    few = array.slice(0, SAMPLE)
    if len(few.unique()) * 2 > len(few):
        return _of_bytes(array.cast(pa.large_binary()), kind)
    encoded = array.dictionary_encode()
    found = _of_bytes(encoded.dictionary.cast(pa.large_binary()), kind)
    indices = encoded.indices.fill_null(0).to_numpy()
    return found[:, indices] if found.shape[1] else np.zeros((2, len(array)), np.uint64)


def _of_bytes(array: pa.Array, kind: int) -> Array:
    """Bytes are their number and then words of eight of them, the least first, with zeros behind the last."""
    count = len(array)
    _, offset_buffer, data = array.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64, count + 1, 8 * array.offset) if count else np.zeros(1, np.int64)
    begin, end = int(offsets[0]), int(offsets[-1])
    own = np.zeros(end - begin + WORD, np.uint8)
    if data is not None:
        own[: end - begin] = np.frombuffer(data, np.uint8)[begin:end]
    # The word that begins at each byte.
    words = np.ndarray(len(own) - WORD + 1, "<u8", own.data, strides=(1,))
    lengths, starts = np.diff(offsets), offsets[:-1] - begin
    lanes = _taken_in(_taken_in(LANES, kind), lengths.view(np.uint64))
    for first in range(0, int(lengths.max(initial=0)), WORD):
        left = lengths - first
        rows = slice(None) if (left > 0).all() else np.flatnonzero(left > 0)
        unused = np.maximum(WORD - left[rows], 0).astype(np.uint64) << np.uint64(3)
        word = words[starts[rows] + first].astype(np.uint64) << unused >> unused
        lanes[:, rows] = _taken_in(lanes[:, rows], word)
    return lanes


def _texts(values: list[str]) -> Array:
    return _of_bytes(pa.array(values, pa.large_string()).cast(pa.large_binary()), TEXT)


# ------------------------------------------------------------------------------------------------------------------------ repeats


class Repeats:
    """How many equal rows came before each. Memory: 16 bytes for each row that is remembered; time: O(log n) for each.

    Rows are equal here if their first lanes are: two that are not, by a chance of one in 2**64, have other numbers than elsewhere.
    """

    def __init__(self) -> None:
        # Of ever smaller sizes: the hashes, ascending, and how many rows had each.
        self._levels: list[tuple[Array, Array]] = []
        self._last = np.zeros(0, np.uint64)  # those that came last,
        self._time: int | None = None  # and the last time of `end`

    def numbers(self, hashes: Array) -> Array:
        """For each of some rows how many equal ones came before it (uint64); they are remembered."""
        order = np.argsort(hashes, kind="stable")
        ordered = hashes[order]
        starts = np.flatnonzero(np.concatenate([np.ones(1, np.bool_), ordered[1:] != ordered[:-1]])) if len(ordered) else order
        values, counts = ordered[starts], np.diff(starts, append=len(ordered))
        before = np.zeros(len(values), np.int64)
        for known, times in self._levels:
            places = np.minimum(np.searchsorted(known, values), len(known) - 1)
            before += np.where(known[places] == values, times[places], 0)
        numbers = np.empty(len(hashes), np.uint64)
        numbers[order] = np.arange(len(ordered)) - np.repeat(starts - before, counts)
        self._remember(values, counts)
        self._last = hashes
        return numbers

    def _remember(self, values: Array, counts: Array) -> None:
        while self._levels and len(self._levels[-1][0]) <= len(values):
            known, times = self._levels.pop()
            joined, inverse = np.unique(np.concatenate([known, values]), return_inverse=True)
            sums = np.zeros(len(joined), np.int64)
            np.add.at(sums, inverse, np.concatenate([times, counts]))
            values, counts = joined, sums
        if len(values):
            self._levels.append((values, counts))

    def end(self, times: Array) -> None:
        """Forget what no row that comes can be equal to; times: of the rows of the last call, of which equal ones follow each other."""
        same = times == times[-1]
        if not same.all() or int(times[-1]) != self._time:
            self._levels = []
            self._remember(*np.unique(self._last[same], return_counts=True))
        self._time = int(times[-1])
