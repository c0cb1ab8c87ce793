"""The known time of a stream whose source has partitions, such as those of a Kafka topic.

Comes in: for each micro-batch the greatest event time of each partition that gave events. Goes out: the least time that a later event may have.
Imports no Spark.

Spark has one watermark for all partitions: the greatest time of any of them, minus the lateness. When a backlog is read, one partition may be hours
ahead of another, and all events of the other would be late. Here each partition has a greatest time of its own, and what is known is known of all of
them: the least of these times, minus the lateness. Every bucket of keys is told the times of all partitions, for its own events may be of a few.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.input.order import NEVER
from cepheid.engine.memory import container

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cepheid.engine.memory.pools import Array

MILLI = 1000
"""Microseconds of a millisecond."""

HEARD = -1
"""In place of how long a partition is silent: it is not."""


@dataclass
class PartitionTimes:
    """What a bucket knows of the partitions of the source.

    lateness: milliseconds that an event may be behind the greatest time of its partition. idle: milliseconds without events after which nobody waits
    for a partition. started: when the stream was started; with another one, nothing is known of the bucket's deadline. greatest: of each partition
    that is waited for, its greatest time in microseconds. silent: of each that gave no event in the last micro-batch, for how long (microseconds).
    known: the least time that a later event may have, in microseconds; it never goes back. last: when the last micro-batch began (microseconds, of
    Spark's clock). deadline: the watermark in milliseconds at which the bucket has something to decide; None: never.

    Silence begins with the first micro-batch without events of a partition, and from one micro-batch to the next counts at most half of `idle`: so
    neither a long micro-batch is silence, nor a time in which the stream stood still, or nobody gave events.
    """

    lateness: int
    idle: int
    started: int = 0
    greatest: dict[int, int] = field(default_factory=dict)
    silent: dict[int, int] = field(default_factory=dict)
    known: int = NEVER
    last: int = NEVER
    deadline: int | None = None
    fresh: bool = True

    def take(self, told: Iterable[bytes]) -> None:
        """Take what the tasks of a micro-batch tell (`Told.rows`). O(partitions)."""
        moment, active = NEVER, set()
        for each in told:
            numbers = np.frombuffer(each, np.int64)
            moment = max(moment, int(numbers[0]))
            for partition, time in numbers[1:].reshape(-1, 2).tolist():
                self.greatest[partition] = max(self.greatest.get(partition, NEVER), time)
                active.add(partition)
        if not active:
            return
        passed = max(0, min(moment - self.last, self.idle * MILLI // 2))
        before, self.silent, self.last = self.silent, {}, moment
        for partition in self.greatest.keys() - active:
            if partition not in before:
                self.silent[partition] = 0
            elif before[partition] + passed < self.idle * MILLI:
                self.silent[partition] = before[partition] + passed
            else:
                del self.greatest[partition]
        # In whole milliseconds, as Spark computes its watermark.
        self.known = max(self.known, (min(self.greatest.values()) // MILLI - self.lateness) * MILLI + 1)

    @property
    def due(self) -> bool:
        """Whether what is known may decide something in the bucket."""
        return self.fresh or (self.deadline is not None and self.known > self.deadline * MILLI)

    @property
    def counts(self) -> dict[str, int]:
        """See `visits.PARTITION_LEVELS`."""
        times = self.greatest.values()
        return {"known": self.known, "partitions": len(times), "apart": max(times) - min(times)} if times else {}

    # ------------------------------------------------------------------------------------------------------------- state as bytes

    def dump(self, *, fingerprint: bytes) -> bytes:
        """What is known, as bytes; the lateness and the time-out are those of the query that goes on. O(partitions)."""
        places = list(self.greatest)
        rows = [[place, self.greatest[place], self.silent.get(place, HEARD)] for place in places]
        named = {"known": self.known, "last": self.last, "deadline": self.deadline, "started": self.started}
        numbers = json.dumps(named).encode()
        sections: dict[str, bytes | Array] = {"numbers": numbers, "partitions": np.array(rows, np.int64).reshape(-1, 3)}
        return container.pack(sections, fingerprint=fingerprint, compress=True)

    def load(self, data: bytes, *, fingerprint: bytes, **refused: Any) -> None:
        """Go on from what `dump` gave; raises SnapshotError as `container.unpack`, which has the arguments in `refused`, and for other bytes."""
        sections = container.unpack(data, fingerprint=fingerprint, **refused)
        with container.reading():
            numbers, rows = container.numbers_of(sections["numbers"]), sections["partitions"].reshape(-1, 3).tolist()
            self.known, self.last = container.time_in(numbers, "known"), container.time_in(numbers, "last")
            self.fresh = container.time_in(numbers, "started") != self.started
            self.deadline = None if numbers["deadline"] is None else container.time_in(numbers, "deadline")
            self.greatest = {place: time for place, time, _ in rows}
            self.silent = {place: since for place, _, since in rows if since != HEARD}
            if len(self.greatest) != len(rows):
                raise ValueError("a partition is there twice")


class Told:
    """What one task has read of each partition; for `PartitionTimes.take` of every bucket."""

    def __init__(self) -> None:
        self.moment = NEVER
        self.greatest: dict[int, int] = {}

    def see(self, partitions: pa.Array, times: pa.Array, moments: pa.Array) -> None:
        """Take the events of a batch: their partitions (int64), their times and the micro-batch's moment (timestamps); without a time counts none."""
        self.moment = max(self.moment, moments[0].value)
        found = pa.table({"partition": partitions, "time": times.cast(pa.int64())}).group_by("partition").aggregate([("time", "max")])
        found = found.filter(pc.is_valid(found["time_max"]))
        for partition, time in zip(found["partition"].to_pylist(), found["time_max"].to_pylist(), strict=True):
            self.greatest[partition] = max(self.greatest.get(partition, NEVER), time)

    @property
    def row(self) -> bytes:
        """All of it as bytes; empty where no event had a time."""
        numbers = [self.moment, *(number for pair in self.greatest.items() for number in pair)]
        return np.array(numbers, np.int64).tobytes() if self.greatest else b""
