"""The sets of values that partial matches keep, each once: the kernel of guards makes them behind its forms, and finds them by their hash.

Comes in: words that the kernel wrote (`kernel/_guards_sets.py` says how). Goes out: room for more, without the sets that no cell has any more, and a
section of a snapshot. The number of a set is its place, so it changes when others go: `keep` says how.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cepheid.engine.memory.checks import ascending, demand, inside
from cepheid.engine.memory.pools import power_of_two, ragged

Array = np.ndarray[Any, Any]

SET = ("hash", "before", "size")
"""The first words of a set; before: the one in the same bucket that was made before, 0 without; size: twice the number of its values, and 1 if NULL
is in it. Then come its values, ascending."""

HASH, BEFORE, SIZE = range(3)

HASH_BITS = 44
"""Bits of the hash of a value; the hash of a set is the sum of those of its values, and 1 for NULL."""

FIRST_ROOM = 1 << 10
"""Words for the first sets."""


class Sets:
    """The sets between the forms and the programs of tables, in one array.

    words: it. buckets: by hash, the last set made. fresh: where the next one goes. room: words for sets at first, a power of two; 0: none are kept.
    """

    def __init__(self, forms: Array, programs: Array, *, room: int = FIRST_ROOM) -> None:
        self._programs = len(programs)
        self.first = self.fresh = len(forms)
        self.words = np.concatenate([forms, np.zeros(room, np.int64), programs])
        self.buckets: Array = np.zeros(max(room, 1), np.int64)

    @property
    def end(self) -> int:
        """Where their room ends."""
        return len(self.words) - self._programs

    def keep(self, kept: Array, *, room: int = 0) -> Array:
        """Forget all sets but those of these numbers, ascending; what their numbers are now. O(words of these sets, and of the room).

        room: words that there are to be at least, and twice as many as these sets have.
        """
        lengths = self._lengths(kept)
        return self._put(self.words[ragged(kept, lengths)[1]], lengths, room)

    def _lengths(self, numbers: Array) -> Array:
        lengths: Array = len(SET) + (self.words[numbers + SIZE] >> 1)
        return lengths

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
        sizes, named = words[starts + SIZE], words[starts + BEFORE]
        owner, places = ragged(starts + len(SET), sizes >> 1)
        demand(ascending(words[places], owner, strictly=True), inside(words[starts + HASH], 0, (sizes << HASH_BITS - 1) + 2))
        demand(named[1:] > named[:-1])
        return named, self._put(words, len(SET) + (sizes >> 1), 0)


def values_of(section: bytes, numbers: Array) -> Array:
    """The values of the sets of these numbers, in what `Sets.dump` gave. Raises ValueError as `Sets.load`."""
    words, starts = _read(section)
    starts = starts[np.isin(words[starts + BEFORE], numbers)]
    return words[ragged(starts + len(SET), words[starts + SIZE] >> 1)[1]]


def _read(section: bytes) -> tuple[Array, Array]:
    """The words of a section, and where each set starts; raises ValueError where something else stands there."""
    words = np.frombuffer(section, "<i8")
    found, place, sizes = [], 0, words.tolist()
    while place < len(sizes):
        found.append(place)
        size = sizes[place + SIZE] if place + SIZE < len(sizes) else 0
        demand(size > 0)
        place += len(SET) + (size >> 1)
    demand(place == len(sizes))
    return words, np.array(found, np.int64)
