"""The sets of values that partial matches keep, each once: the kernel of guards makes them behind its forms, and finds them by their hash.

Comes in: words that the kernel wrote (`kernel/_guards_sets.py` says how). Goes out: room for more, without the sets that no cell has any more, and a
section of a snapshot. The number of a set is its place, so it changes when others go: `keep` says how.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cepheid.engine.memory.checks import demand, inside
from cepheid.engine.memory.pools import power_of_two, ragged
from cepheid.errors import LimitError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Array = np.ndarray[Any, Any]

SETS_LIMIT = 1 << 14
"""Different sets of values that one event may make, where partial matches keep sets: each is a group, and n values have 2^n sets."""

SET = ("hash", "before", "size")
"""The first words of a set; before: the one in the same bucket that was made before, 0 without; size: twice the number of its words, and 1 if NULL
is in it; where it has choices of several values, in the highest bits the words of one. Then come its values, ascending, or its choices: of each a
word with a bit per value that is NULL, and its values, 0 for NULL."""

STRIDE_BITS = 48
"""Where the size of a set has the words of a choice, 0 for one value."""

HASH, BEFORE, SIZE = range(3)

HASH_BITS = 44
"""Bits of the hash of a value; the hash of a set is the sum of those of its values, and 1 for NULL."""

FIRST_ROOM = 1 << 10
"""Words for the first sets."""


class Sets:
    """The sets between the forms of tables and what stands behind them, in one array.

    words: it. buckets: by hash, the last set made. fresh: where the next one goes. room: words for sets at first, a power of two; 0: none are kept.
    """

    def __init__(self, forms: Array, behind: Array, *, room: int = FIRST_ROOM) -> None:
        self._behind = len(behind)
        self.first = self.fresh = len(forms)
        self.words = np.concatenate([forms, np.zeros(room, np.int64), behind])
        self.buckets: Array = np.zeros(max(room, 1), np.int64)

    @property
    def end(self) -> int:
        """Where their room ends."""
        return len(self.words) - self._behind

    @property
    def behind(self) -> Array:
        """What stands behind them."""
        found: Array = self.words[self.end :]
        return found

    @behind.setter
    def behind(self, words: Array) -> None:
        self.words = np.concatenate([self.words[: self.end], words])
        self._behind = len(words)

    def keep(self, kept: Array, *, room: int = 0) -> Array:
        """Forget all sets but those of these numbers, ascending; what their numbers are now. O(words of these sets, and of the room).

        room: words that there are to be at least, and twice as many as these sets have.
        """
        lengths = self._lengths(kept)
        return self._put(self.words[ragged(kept, lengths)[1]], lengths, room)

    def _lengths(self, numbers: Array) -> Array:
        lengths: Array = len(SET) + _sizes(self.words[numbers + SIZE])
        return lengths

    def values(self, numbers: Array, fields: Sequence[bool]) -> Array:
        """What the sets of these numbers have in some of their fields."""
        found: Array = self.words[_places(self.words, numbers, fields)]
        return found

    def change(self, kinds: Sequence[tuple[Array, Sequence[bool]]], change: Callable[[Array], Array]) -> list[Array]:
        """Forget all sets but those of some numbers, ascending, and write those of their values in some fields anew; what their numbers are now.

        kinds: (numbers, fields). change: keeps the order of values. A set of two kinds becomes two.
        """
        lengths = [self._lengths(numbers) for numbers, _ in kinds]
        found = [self.words[ragged(numbers, length)[1]] for (numbers, _), length in zip(kinds, lengths, strict=True)]
        for words, length, (_, fields) in zip(found, lengths, kinds, strict=True):
            starts = np.cumsum(length) - length
            places = _places(words, starts, fields)
            words[places] = change(words[places])
            words[starts + HASH] = _hashes(words, starts, len(fields))
        made = self._put(np.concatenate([np.zeros(0, np.int64), *found]), np.concatenate([np.zeros(0, np.int64), *lengths]), 0)
        return np.split(made, np.cumsum([len(numbers) for numbers, _ in kinds])[:-1])

    def _put(self, words: Array, lengths: Array, room: int) -> Array:
        """Let there be these sets alone; their numbers."""
        room = power_of_two(max(room, 2 * len(words)))
        if room > len(self.buckets):
            self.words = np.concatenate([self.words[: self.first], np.zeros(room, np.int64), self.words[self.end :]])
            self.buckets = np.zeros(room, np.int64)
        made: Array = self.first + np.cumsum(lengths) - lengths
        self.fresh = self.first + len(words)
        self.words[self.first : self.fresh] = words
        places = self.words[made + HASH] & len(self.buckets) - 1
        order = np.argsort(places, kind="stable")
        numbers, places = made[order], places[order]
        self.words[numbers + BEFORE] = np.where(np.append(-1, places)[:-1] == places, np.append(0, numbers)[:-1], 0)
        self.buckets[:] = 0
        self.buckets[places] = numbers  # of several in one bucket the last
        return made

    def dump(self, numbers: Array) -> bytes:
        """The sets of these numbers, ascending, as little-endian words; in the place of `before` stands the number."""
        lengths = self._lengths(numbers)
        words = self.words[ragged(numbers, lengths)[1]]
        words[np.cumsum(lengths) - lengths + BEFORE] = numbers
        return words.astype("<i8").tobytes()

    def load(self, section: bytes) -> tuple[Array, Array]:
        """Go on, fresh, from what `dump` gave; the numbers of all sets there, ascending, and here. Raises ValueError where it does not fit."""
        words, starts = _read(section)
        sizes, named = _sizes(words[starts + SIZE]), words[starts + BEFORE]
        strides = words[starts + SIZE] >> STRIDE_BITS
        demand(inside(words[starts + HASH], 0, (sizes + 1 << HASH_BITS) + 1), named[1:] > named[:-1], (strides == 0) | (sizes > 0))
        for stride in np.unique(strides).tolist():
            own = strides == stride
            demand(sizes[own] % max(stride, 1) == 0)
            owner, places = ragged(starts[own] + len(SET), sizes[own])
            demand(_ascending(words[places].reshape(-1, max(stride, 1)), owner[:: max(stride, 1)]))
        return named, self._put(words, len(SET) + sizes, 0)

    def strides(self, numbers: Array) -> Array:
        """How many words a choice of the sets of these numbers has, 0 for one value."""
        found: Array = self.words[numbers + SIZE] >> STRIDE_BITS
        return found


def stride_of(width: int) -> int:
    """The same of choices with so many values."""
    return width + 1 if width > 1 else 0


def values_of(section: bytes, numbers: Array, fields: Sequence[bool]) -> Array:
    """What the sets of these numbers have in some of their fields, in what `Sets.dump` gave. Raises ValueError as `Sets.load`."""
    words, starts = _read(section)
    return words[_places(words, starts[np.isin(words[starts + BEFORE], numbers)], fields)]


def _sizes(sizes: Array) -> Array:
    """How many words sets have behind their first ones."""
    found: Array = (sizes & (1 << STRIDE_BITS) - 1) >> 1
    return found


def _places(words: Array, starts: Array, fields: Sequence[bool]) -> Array:
    """Where the sets that start there have some of the values of their choices, but for NULL."""
    stride = max(stride_of(len(fields)), 1)
    rows: Array = ragged(starts + len(SET), _sizes(words[starts + SIZE]))[1].reshape(-1, stride)
    if stride == 1:
        return rows[:, 0] if fields[0] else rows[:0, 0]
    known = [rows[words[rows[:, 0]] >> number & 1 == 0, number + 1] for number, wanted in enumerate(fields) if wanted]
    return np.concatenate([rows[:0, 0], *known])


def _hashes(words: Array, starts: Array, width: int) -> Array:
    """The hashes of the sets that start there, as the kernel makes them (`_guards_sets`)."""
    stride = max(stride_of(width), 1)
    owner, places = ragged(np.asarray(starts) + len(SET), _sizes(words[starts + SIZE]))
    found: Array = np.zeros(len(places) // stride, np.uint64)
    for column in words[places].reshape(-1, stride).T.view(np.uint64):
        found ^= column
        found = (found ^ found >> np.uint64(32)) * np.uint64(0x9E3779B97F4A7C15)
        found = (found ^ found >> np.uint64(29)) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(64 - HASH_BITS)
    sums: Array = words[starts + SIZE] & 1
    np.add.at(sums, owner[::stride], found.view(np.int64))
    return sums


def _ascending(rows: Array, owner: Array) -> Array:
    """Whether the rows of each owner, by their words, ascend."""
    before, after = rows[:-1], rows[1:]
    differs = before != after
    first = np.argmax(differs, axis=1)[:, None]
    less: Array = (np.take_along_axis(before, first, 1) < np.take_along_axis(after, first, 1))[:, 0]
    less |= owner[1:] != owner[:-1]
    return less


def _read(section: bytes) -> tuple[Array, Array]:
    """The words of a section, and where each set starts; raises ValueError where something else stands there."""
    words = np.frombuffer(section, "<i8")
    found, place, sizes = [], 0, words.tolist()
    while place < len(sizes):
        found.append(place)
        size = sizes[place + SIZE] if place + SIZE < len(sizes) else 0
        demand(size > 0)
        place += len(SET) + ((size & (1 << STRIDE_BITS) - 1) >> 1)
    demand(place == len(sizes))
    return words, np.array(found, np.int64)


def too_many_sets(groups: int) -> LimitError:
    """An event makes so many groups."""
    return LimitError(
        f"an event leads to {groups} groups of partial matches that keep different sets of values, and the limit is {SETS_LIMIT} (SETS_LIMIT)",
        help="a condition between an iteration and a later variable keeps all values of each choice of events: let the events follow"
        " each other directly (`:+`, `:{5}`), compare with prev, or bound the iteration by a smaller window",
    )
