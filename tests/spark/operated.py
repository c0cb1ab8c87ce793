"""The stateful operator without Spark: the operator's own code, over state that dicts hold, visited as Spark visits it."""

from __future__ import annotations

import dataclasses
import datetime as dt
import itertools

import pyarrow as pa
from pyspark.sql import Row

from cepheid.spark.operator import BLOB, EPOCH, MOMENT, BucketProcessor
from cepheid.spark.tasks.packing import pack, pack_rules
from cepheid.spark.tasks.visits import BUCKET, SEAL, TOLD


class Value:
    """A value of the bucket that is being visited."""

    def __init__(self, handle, name):
        self.handle, self.name = handle, name

    @property
    def place(self):
        return self.handle.bucket, self.name

    def get(self):
        found = self.handle.values.get(self.place)
        return None if found is None else Row(bytes=found)

    def update(self, value):
        assert type(value[0]) is bytes
        self.handle.written.append(self.place)
        self.handle.values[self.place] = value[0]

    def clear(self):
        self.handle.values.pop(self.place, None)


class Map(Value):
    """A map of that bucket."""

    def getValue(self, key):
        found = self.handle.values.get((*self.place, key))
        return None if found is None else Row(bytes=found)

    def updateValue(self, key, value):
        self.handle.written.append((*self.place, key))
        self.handle.values[*self.place, key] = value[0]

    def removeKey(self, key):
        self.handle.values.pop((*self.place, key), None)

    def clear(self):
        for place, _ in list(self.iterator()):
            self.removeKey(place)

    def iterator(self):
        return [(place[2], Row(bytes=value)) for place, value in self.handle.values.items() if place[:2] == self.place]


class Handle:
    """What Spark gives an operator. written: the values that were updated, in order."""

    def __init__(self):
        self.values, self.timers, self.bucket, self.written = {}, {}, None, []

    def getValueState(self, name, schema):  # noqa: ARG002
        return Value(self, name)

    def getMapState(self, name, key, value):  # noqa: ARG002
        return Map(self, name)

    def registerTimer(self, moment):
        self.timers.setdefault(self.bucket, set()).add(moment)

    def deleteTimer(self, moment):
        self.timers[self.bucket].remove(moment)


@dataclasses.dataclass
class Times:
    """The watermark of a micro-batch; and the timer that has expired."""

    watermark: int
    expired: int | None = None

    def getCurrentWatermarkInMs(self):
        return self.watermark

    def getExpiryTimeInMs(self):
        return self.expired


class Operated:
    """A stream's operator, micro-batch by micro-batch. told_buckets: as for `pack`."""

    def __init__(self, unit, *, told_buckets=0):
        self.unit, self.told_buckets = unit, told_buckets
        self.handle = Handle()
        self.before = 0

    def batch(self, events, watermark, *, tasks=1, rules=None, buckets=1):
        """The rows of a micro-batch: of its events, over some tasks, and of the timers that expire. A row whose time has passed is an error.

        rules: a table of rules that come with it, for so many buckets.
        """
        processor = BucketProcessor({})
        processor.unit = self.unit
        processor.init(self.handle)
        came = {}
        shares = [events.take(pa.array(range(task, len(events), tasks), pa.int64())) for task in range(tasks)]
        packed = [pack(iter(own.to_batches(max_chunksize=7)), told_buckets=self.told_buckets) for own in shares]
        if rules is not None:
            packed.append(pack_rules(iter(rules.to_batches(max_chunksize=3)), buckets=buckets))
        for piece in itertools.chain(*packed):
            for bucket, blob, told in zip(*(piece[name].to_pylist() for name in (BUCKET, BLOB, TOLD)), strict=True):
                came.setdefault(bucket, []).append(Row(**{BUCKET: bucket, BLOB: blob, TOLD: told}))
        times = Times(watermark)
        visits = [(bucket, processor.handleInputRows((bucket,), iter(rows), times)) for bucket, rows in came.items()]
        found = list(itertools.chain.from_iterable(self._visited(bucket, rows) for bucket, rows in visits))
        for bucket, timers in list(self.handle.timers.items()):
            for timer in sorted(timer for timer in timers if timer < watermark):
                if timer in timers:
                    rows = processor.handleExpiredTimer((bucket,), times, Times(watermark, timer))
                    found += self._visited(bucket, rows)
                    timers.discard(timer)
        self.before = watermark
        return found

    def _visited(self, bucket, rows):
        self.handle.bucket = bucket
        found = [row.asDict() | {BUCKET: bucket} for row in rows or ()]
        assert bucket != SEAL or not found
        passed = EPOCH + dt.timedelta(milliseconds=self.before)
        assert all(row[MOMENT] > passed for row in found), "Spark refuses a row at or before the watermark of the micro-batch before"
        return found
