"""Events that come out of order: held back until the watermark has passed them, refused (and kept) where they come too late.

Comes in: batches in any order, and how late an event may be. Goes out: the same events in the order of their times, ties in the order of
arrival. What is late depends on the sequence of events alone, not on how it was cut into batches.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

Array = np.ndarray[Any, Any]

NEVER = -(2**63)
"""The watermark before the first event."""


def earlier(times: Array, steps: int) -> Array:
    """Times minus a duration of at most 2**62 steps; never below the least time, where int64 would wrap around."""
    result: Array = np.maximum(times, NEVER + steps) - steps
    return result


class ReorderBuffer:
    """The events that the watermark has not passed.

    lateness: steps of the time column. The watermark is the greatest time seen minus `lateness` (or what `advance` said, if that is more); an
    event below it is late. O(n log n) per batch, memory: the events of one `lateness`.
    """

    def __init__(self, schema: pa.Schema, lateness: int) -> None:
        self.lateness = lateness
        self.watermark = NEVER
        self.pending = schema.empty_table()
        self.times: Array = np.zeros(0, np.int64)
        self.late = schema.empty_table()

    def push(self, events: pa.Table, times: Array) -> tuple[pa.Table, Array]:
        """Take a batch; give the events that the watermark has now passed, with their times, in order. Late events go to `late`."""
        if len(times):
            before = np.concatenate([[self.watermark], np.maximum.accumulate(earlier(times, self.lateness))[:-1]])
            late = times < np.maximum(before, self.watermark)
            if late.any():
                self.late = pa.concat_tables([self.late, events.filter(pa.array(late))]).combine_chunks()
                events, times = events.filter(pa.array(~late)), times[~late]
            self.watermark = max(self.watermark, int(times.max()) - self.lateness) if len(times) else self.watermark
            self.pending = pa.concat_tables([self.pending, events])
            self.times = np.concatenate([self.times, times])
        return self._release()

    def advance(self, time: int) -> tuple[pa.Table, Array]:
        """No event before `time` will come: give what that releases."""
        self.watermark = max(self.watermark, time)
        return self._release()

    def flush(self) -> tuple[pa.Table, Array]:
        """Give everything that is held back; events before the greatest of these times are late from now on."""
        if len(self.times):
            self.watermark = max(self.watermark, int(self.times.max()))
        return self._release(everything=True)

    def _release(self, *, everything: bool = False) -> tuple[pa.Table, Array]:
        # An event at the watermark may still come, and would be a tie with those that wait.
        ready = np.ones(len(self.times), np.bool_) if everything else self.times < self.watermark
        if not ready.any():
            return self.pending.slice(0, 0), self.times[:0]
        rows = np.flatnonzero(ready)
        rows = rows[np.argsort(self.times[rows], kind="stable")]
        released, times = self.pending.take(pa.array(rows)), self.times[rows]
        self.pending, self.times = self.pending.filter(pa.array(~ready)).combine_chunks(), self.times[~ready]
        return released, times

    @property
    def nbytes(self) -> int:
        """Bytes of the events that are held back, and of the late ones."""
        return int(self.pending.nbytes + self.times.nbytes + self.late.nbytes)
