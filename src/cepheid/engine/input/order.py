"""Events that come out of order: held back until the watermark has passed them, or refused (and kept) if they come too late.

Comes in: batches in any order, and how late an event may be. Goes out: the same events in the order of their times; at equal times in the order of
the tie-breakers, then of arrival. Which events are late depends only on the sequence of events, not on its division into batches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from cepheid.engine.input.read import check_order_columns, in_order
from cepheid.engine.letters.values import no_events

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cepheid.engine.memory.pools import Array

NEVER = -(2**63)
"""The watermark before the first event."""


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
    what `advance` said, alone. An event below it is late. ties: columns that order events of equal time, ascending, NULL last. O(n log n) per
    batch, memory: the events of one `lateness`.
    """

    def __init__(self, schema: pa.Schema, lateness: int | None, *, ties: Sequence[str] = ()) -> None:
        self.lateness = lateness
        self.ties = tuple(ties)
        self.watermark = NEVER
        self.pending = no_events(schema)
        self.times: Array = np.zeros(0, np.int64)
        self.late = no_events(schema)

    def push(self, events: pa.Table, times: Array) -> tuple[pa.Table, Array]:
        """Take a batch; give the events that the watermark has now passed, with their times, in order. Late events go to `late`."""
        self.hold(events, times)
        return self.release()

    def hold(self, events: pa.Table, times: Array) -> None:
        """Take a batch; late events go to `late`."""
        if len(times):
            late = times < self._watermarks(times)
            if late.any():
                self.late = pa.concat_tables([self.late, events.filter(pa.array(late))]).combine_chunks()
                events, times = events.filter(pa.array(~late)), times[~late]
            if len(times) and self.lateness is not None:
                self.watermark = max(self.watermark, int(times.max()) - self.lateness)
            self.pending = pa.concat_tables([self.pending, events])
            self.times = np.concatenate([self.times, times])

    def _watermarks(self, times: Array) -> Array | int:
        """The watermark before each event."""
        if self.lateness is None:
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
        if len(self.times):
            self.watermark = max(self.watermark, int(self.times.max()))
        return self.release(everything=True)

    def check(self, latest: int) -> None:
        """Raise ValueError where what is loaded cannot be: events that have been released come before the watermark, those that wait do not."""
        if latest > self.watermark or (self.times < self.watermark).any():
            raise ValueError("the events that wait do not fit the watermark")

    def take_late(self) -> pa.Table:
        """The late events since the last call."""
        late, self.late = self.late, self.late.slice(0, 0)
        return late

    def release(self, *, everything: bool = False) -> tuple[pa.Table, Array]:
        """The events that the watermark has passed (or all), in order, with their times."""
        # An event at the watermark may still come, and would be a tie with those that wait.
        ready = np.ones(len(self.times), np.bool_) if everything else self.times < self.watermark
        if not ready.any():
            return self.pending.slice(0, 0), self.times[:0]
        rows = np.flatnonzero(ready)
        rows = rows[in_order(self.pending.select(self.ties).take(pa.array(rows)), self.times[rows], self.ties)]
        released, times = self.pending.take(pa.array(rows)), self.times[rows]
        self.pending, self.times = self.pending.filter(pa.array(~ready)).combine_chunks(), self.times[~ready]
        return released, times

    @property
    def nbytes(self) -> int:
        """Bytes of the events that are held back, and of the late ones."""
        return int(self.pending.nbytes + self.times.nbytes + self.late.nbytes)
