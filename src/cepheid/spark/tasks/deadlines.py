"""When which pages of a bucket have to be looked at, because something in them waits for its time: a queue of (deadline, page) outside of memory.

Comes in: pages with the least deadline of each, as they are written. Goes out: those whose deadline has passed. The soonest stand in the bucket's own
state, which each visit rewrites; all others in runs in the store of its pages, under negative numbers, of which the bucket's state has the number and
the least deadline. A run is read once, when its first deadline passes, and what of it is later goes on among the soonest. So a visit costs what is
due, and the bucket's state grows as the square root of what waits.

An entry is never taken back: a page that is looked at in vain says when it is to be looked at again. Imports no Spark.
"""

from __future__ import annotations

import math
import struct
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from cepheid.engine.input.order import NEVER
from cepheid.engine.memory import container
from cepheid.engine.memory.checks import ascending, demand, inside, numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cepheid.engine.memory.pools import Array
    from cepheid.spark.tasks.store import Store

LEAST_RUN = 64
"""Entries of a run at least: fewer are no shorter than a page."""

MOST_PAGES = 1 << 31
"""Most pages of a bucket, and most runs."""

SOON, RUNS = "due_soon", "due_runs"
"""The sections of a bucket's state."""

_CHECKSUM = struct.Struct("<I")


class Deadlines:
    """The queue. store: of the pages. looked: all entries before this time have been given. size: bytes of the runs."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.looked = NEVER
        self.size = 0
        self._soon: Array = np.zeros((2, 0), np.int64)  # deadlines, ascending, and pages
        self._runs: Array = np.zeros((2, 0), np.int64)  # least deadlines, ascending, and numbers

    @property
    def least(self) -> int | None:
        """When the first page is to be looked at; None: none is."""
        return min((int(part[0, 0]) for part in (self._soon, self._runs) if part.shape[1]), default=None)

    def take(self, now: int) -> Array:
        """The pages with a deadline before `now`, ascending (int64): they are in it no more. Raises SnapshotError where a run is damaged."""
        self.looked = max(self.looked, now)
        count = int(np.searchsorted(self._runs[0], now))
        if count:
            read = [self._read(least, number) for least, number in self._runs[:, :count].T.tolist()]
            self._runs = self._runs[:, count:]
            self._join(read)
        due = int(np.searchsorted(self._soon[0], now))
        found = np.unique(self._soon[1, :due])
        self._soon = self._soon[:, due:]
        return found

    def add(self, pages: Array, deadlines: Array) -> None:
        """Pages that are to be looked at once these times have passed."""
        if not len(pages):
            return
        self._join([np.stack([deadlines, pages])])
        self._spill()

    def _join(self, parts: list[Array]) -> None:
        soon = np.concatenate([self._soon, *parts], axis=1)
        self._soon = soon[:, np.argsort(soon[0], kind="stable")]

    def _spill(self) -> None:
        """Put what is late into runs, where much is soon. Amortized, an entry is put into a run a few times."""
        while self._soon.shape[1] > 2 * (most := max(LEAST_RUN, self._runs.shape[1])):
            size = max(most, math.isqrt(self._soon.shape[1]))
            run, self._soon = self._soon[:, -size:], self._soon[:, :-size]
            number = int(self._runs[1].max(initial=-1)) + 1
            number = number if number < MOST_PAGES else int(np.setdiff1d(np.arange(len(self._runs[1]) + 1), self._runs[1])[0])
            data = _packed(run)
            self.store.put(-1 - number, data)
            self.size += len(data)
            runs = np.column_stack([self._runs, [run[0, 0], number]])
            self._runs = runs[:, np.argsort(runs[0], kind="stable")]

    def _read(self, least: int, number: int) -> Array:
        """The entries of a run, which is not there any more."""
        data = self.store.get(-1 - number)
        if data is None:
            raise container.damaged("deadlines of pages are missing")
        with container.reading():
            run = _unpacked(data)
            if run[0, :1].tolist() != [least]:
                raise ValueError("deadlines of pages are those of others")
        self.store.remove(-1 - number)
        self.size = max(0, self.size - len(data))  # an older state does not say it
        return run

    def clear(self) -> None:
        """Forget all of it; the store is cleared by others."""
        self.looked, self.size = NEVER, 0
        self._soon, self._runs = self._soon[:, :0], self._runs[:, :0]

    # ------------------------------------------------------------------------------------------------------------------- as bytes

    def dump(self) -> dict[str, Any]:
        """The sections of the bucket's state."""
        return {SOON: _steps(self._soon), RUNS: _steps(self._runs)}

    def load(self, sections: Mapping[str, Any], looked: int, size: int) -> None:
        """Go on, fresh, from what `dump` gave; raises KeyError or ValueError where that cannot be."""
        self.looked, self.size = looked, size
        self._soon, self._runs = (_times(numbers(sections, name).reshape(2, -1)) for name in (SOON, RUNS))
        demand(len(np.unique(self._runs[1])) == self._runs.shape[1])


def _steps(entries: Array) -> Array:
    """Entries with the differences of their deadlines: those are short."""
    return np.stack([np.diff(entries[0], prepend=np.int64(0)), entries[1]]).astype("<i8")


def _times(steps: Array) -> Array:
    """The inverse; raises ValueError for what are no entries."""
    found = np.stack([np.cumsum(steps[0]), steps[1]])
    demand(ascending(found[0], np.zeros(found.shape[1], np.int64)), inside(found[1], 0, MOST_PAGES))
    return found


def _packed(run: Array) -> bytes:
    first, steps = struct.pack("<q", int(run[0, 0])), _steps(run)
    steps[0, 0] = 0
    data = first + container.compressed(steps.astype("<i8").view(np.uint8).reshape(-1, 8).T.tobytes())
    return data + _CHECKSUM.pack(zlib.crc32(data))


def _unpacked(data: bytes) -> Array:
    if len(data) < 8 + _CHECKSUM.size or zlib.crc32(data[: -_CHECKSUM.size]) != _CHECKSUM.unpack(data[-_CHECKSUM.size :])[0]:
        raise container.damaged("the checksum of deadlines of pages is wrong")
    body = np.frombuffer(container.decompressed(data[8 : -_CHECKSUM.size]), np.uint8).reshape(8, -1)
    steps = np.ascontiguousarray(body.T).view("<i8")[:, 0].astype(np.int64).reshape(2, -1)
    demand(steps.shape[1] > 0)
    steps[0, 0] = struct.unpack_from("<q", data)[0]
    return _times(steps)
