"""Events as evaluations read them: one record, whoever drives and whichever evaluation reads.

Events of a partition lie together, in SEGMENTS. Where a partition is to go on later, its segment names the SLOT that keeps it.
"""

from __future__ import annotations

import dataclasses
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from cepheid.errors import LimitError
from cepheid.records import record

if TYPE_CHECKING:
    from cepheid.engine.letters.encoded import Values
    from cepheid.engine.memory.pools import Array

BATCH_LIMIT = 1 << 30
"""Greatest number of events that an evaluation reads at once."""


@record
class Events:
    """A batch for `AnyEvaluation.chunks`.

    letters: unsigned integers, n, see `cepheid.automata.alphabet`. times: int64, n, non-decreasing within a segment. cuts: int64, rows where the
    segments start, cuts[0] == 0 (default: one segment). slots: int32, for each segment the slot (>= 0) that keeps its partition between segments and
    batches, or -1 (the default): the partition ends with the segment. continued: the first segment goes on with the partition of the last segment of
    the batch before; both have slot -1. values: what guards read of the events (`automata.registers.values`); None without guards, and while they
    stand behind the letters (`Valued` takes them apart). vetoed: bool, of which events no match is given, though one that ends there is a trigger and
    consumes; None: of none. worth: float64, (needs, n), what they add to what HAVING asks for, see `choosing.bounding`; None: not known.
    """

    letters: Array
    times: Array
    cuts: Array = field(default_factory=lambda: np.zeros(1, np.int64))
    slots: Array = field(default_factory=lambda: np.zeros(0, np.int32))
    continued: bool = False
    values: Values | None = None
    vetoed: Array | None = None
    worth: Array | None = None

    def __post_init__(self) -> None:
        slots = self.slots if len(self.slots) else np.full(len(self.cuts), -1, np.int32)
        for name, value, kind in (("times", self.times, np.int64), ("cuts", self.cuts, np.int64), ("slots", slots, np.int32)):
            object.__setattr__(self, name, np.ascontiguousarray(value, kind))

    def __len__(self) -> int:
        return len(self.letters)

    def records(self, *, workplace: int) -> Array:
        """For each segment the number of its partition's record: slot + 1, and `workplace` where the partition is not kept (int32).

        Every evaluation asks for it first: raises LimitError past BATCH_LIMIT events.
        """
        if len(self.letters) > BATCH_LIMIT:
            raise LimitError(f"a batch has {len(self.letters)} events, and the limit is {BATCH_LIMIT}", help="feed smaller batches")
        records: Array = self.slots + np.int32(1)
        records[self.slots < 0] = workplace
        return records

    def of(self, rows: Array | slice, **segments: Any) -> Events:
        """The events of these rows, in this order; segments: their cuts, slots and whether they are continued."""
        values = None if self.values is None else self.values.of(rows)
        vetoed = None if self.vetoed is None else self.vetoed[rows]
        if isinstance(rows, slice):
            worth = None if self.worth is None else self.worth[:, rows]
            return Events(self.letters[rows], self.times[rows], values=values, vetoed=vetoed, worth=worth, **segments)
        # PERF: where an event has several words, take is three times as fast as indexing.
        letters, times = np.take(self.letters, rows, axis=0), np.take(self.times, rows)
        worth = None if self.worth is None else np.take(self.worth, rows, axis=1)
        return Events(letters, times, values=values, vetoed=vetoed, worth=worth, **segments)

    def with_letters(self, letters: Array, *, values: Values | None = None) -> Events:
        """The same events with other letters; values: theirs, if they were among the letters."""
        return dataclasses.replace(self, letters=letters, values=self.values if values is None else values)
