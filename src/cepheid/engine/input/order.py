"""Events that come out of order: held back until the watermark has passed them, or refused (and kept) if they come too late.

Comes in: batches in any order, and how late an event may be. Goes out: the same events in the order of their times; at equal times in the order of
the tie-breakers, then of arrival. Which events are late depends only on the sequence of events, not on its division into batches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from cepheid.engine.input.event_times import check_order_columns, in_order
from cepheid.engine.letters.values import no_events

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cepheid.engine.memory.pools import Array

NEVER = -(2**63)
"""The watermark before the first event."""

NONE = 2**63 - 1
"""The least time of no event."""


def earlier(times: Array, steps: int) -> Array:
    """Times minus a duration of at most 2**62 steps; never below the least time, where int64 would wrap around."""
    result: Array = np.maximum(times, NEVER + steps) - steps
    return result


def check_ties(schema: pa.Schema, ties: Sequence[str]) -> None:
    """Raise SchemaError for tie-breakers that events of a schema do not have, or whose values have no order."""
    check_order_columns(ties, schema.names)
    in_order(pa.table({name: pa.nulls(2, schema.field(name).type) for name in ties}), np.zeros(2, np.int64), ties)


class ReorderBuffer:
    """The events that the watermark has not passed.

    lateness: steps of the time column. The watermark is the greatest time seen minus `lateness` (or what `advance` said, if that is more); None:
    what `advance` said, alone. An event below it is late. ties: columns that order events of equal time, ascending, NULL last. least, greatest: the
    times of the events that wait; `NONE` and `NEVER` where none does. missed: how many steps more lateness would have taken all events, where what
    `advance` says follows the lateness. newest: the greatest time that came; behind: by how much late events were behind it, at most. Memory: the
    events of one `lateness`. A batch of b events that releases nothing takes O(b), whatever waits; one that releases events is O(n log n) in all
    that wait.
    """

    def __init__(self, schema: pa.Schema, lateness: int | None, *, ties: Sequence[str] = ()) -> None:
        self.lateness = lateness
        self.ties = tuple(ties)
        self.watermark = NEVER
        self.least, self.greatest = NONE, NEVER
        self.late = no_events(schema)
        self.missed = self.behind = 0
        self.newest = NEVER
        # As they came; put together where something looks at them all.
        self._waiting: list[tuple[pa.Table, Array]] = [(no_events(schema), np.zeros(0, np.int64))]

    def push(self, events: pa.Table, times: Array) -> tuple[pa.Table, Array]:
        """Take a batch; give the events that the watermark has now passed, with their times, in order. Late events go to `late`."""
        self.hold(events, times)
        return self.release()

    def hold(self, events: pa.Table, times: Array) -> None:
        """Take a batch; late events go to `late`."""
        watermarks = self._watermarks(times)
        late = times < watermarks
        if late.any():
            self.missed = max(self.missed, int((watermarks - times).max()))
            self.behind = max(self.behind, self._behind(times, late))
            self.late = pa.concat_tables([self.late, events.filter(pa.array(late))]).combine_chunks()
            events, times = events.filter(pa.array(~late)), times[~late]
        if len(times):
            self.newest = max(self.newest, int(times.max()))
            if self.lateness is not None:
                self.watermark = max(self.watermark, self.newest - self.lateness)
        self._wait(events, times)

    def _behind(self, times: Array, late: Array) -> int:
        """By how much some of these events are behind the greatest time before them, at most; 0 where none is."""
        newest = np.maximum(np.concatenate([[self.newest], np.maximum.accumulate(times)[:-1]]), self.newest)
        late = late & (newest > times)
        # Unsigned: the difference of two int64 times cannot overflow.
        return int((newest[late].view(np.uint64) - times[late].view(np.uint64)).max(initial=0))

    def _wait(self, events: pa.Table, times: Array) -> None:
        if len(times):
            self._waiting.append((events, times))
            self.least, self.greatest = min(self.least, int(times.min())), max(self.greatest, int(times.max()))

    def _watermarks(self, times: Array) -> Array | int:
        """The watermark before each event."""
        if self.lateness is None or not len(times):
            return self.watermark
        before = np.concatenate([[self.watermark], np.maximum.accumulate(earlier(times, self.lateness))[:-1]])
        watermarks: Array = np.maximum(before, self.watermark)
        return watermarks

    def advance(self, time: int) -> tuple[pa.Table, Array]:
        """No event before `time` will come: give what that releases."""
        self.watermark = max(self.watermark, time)
        return self.release()

    def flush(self) -> tuple[pa.Table, Array]:
        """Give everything that is held back; events before the greatest of these times are late from now on."""
        self.watermark = max(self.watermark, self.greatest)
        return self.release(everything=True)

    def load(self, pending: pa.Table, times: Array, *, latest: int) -> None:
        """Let events wait in an empty buffer that has its watermark.

        latest: the greatest time of the events that have been released. Raises ValueError where these cannot be: they come before the watermark,
        and those that wait do not.
        """
        if latest > self.watermark or (times < self.watermark).any():
            raise ValueError("the events that wait do not fit the watermark")
        self._wait(pending, times)

    def take_late(self) -> pa.Table:
        """The late events since the last call."""
        late, self.late = self.late, self.late.slice(0, 0)
        return late

    def release(self, *, everything: bool = False) -> tuple[pa.Table, Array]:
        """The events that the watermark has passed (or all), in order, with their times."""
        if not everything and self.least >= self.watermark:
            nothing, times = self._waiting[0]
            return nothing.slice(0, 0), times[:0]
        pending, times = self._together()
        # An event at the watermark may still come, and would be a tie with those that wait.
        ready = np.ones(len(times), np.bool_) if everything else times < self.watermark
        rows = np.flatnonzero(ready)
        rows = rows[in_order(pending.select(self.ties).take(pa.array(rows)), times[rows], self.ties)]
        self._waiting = [(pending.filter(pa.array(~ready)).combine_chunks(), times[~ready])]
        self.least, self.greatest = int(times[~ready].min(initial=NONE)), int(times[~ready].max(initial=NEVER))
        return pending.take(pa.array(rows)), times[rows]

    def _together(self) -> tuple[pa.Table, Array]:
        if len(self._waiting) > 1:
            tables, times = zip(*self._waiting, strict=True)
            self._waiting = [(pa.concat_tables(tables).combine_chunks(), np.concatenate(times))]
        return self._waiting[0]

    @property
    def pending(self) -> pa.Table:
        """The events that wait, in the order of arrival."""
        return self._together()[0]

    def __len__(self) -> int:
        """How many events wait."""
        return sum(len(times) for _, times in self._waiting)

    @property
    def nbytes(self) -> int:
        """Bytes of the events that are held back, and of the late ones."""
        return int(self.late.nbytes + sum(events.nbytes + times.nbytes for events, times in self._waiting))
