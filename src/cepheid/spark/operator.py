"""The stateful operator of a stream: the events of a bucket of keys and its state go in, rows with blobs of matches and with counts come out.

For each start of a stream Spark starts a fresh Python process on the driver, only to call `BucketProcessor.init` there. So this module imports
nothing that is slow: the first event loads the engine.
"""

from __future__ import annotations

import datetime as dt
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql import types as spark_types

from cepheid.spark.tasks.visits import BLOB, COUNTS, PARTITION_LEVELS, SAYS, SEAL, TOLD
from cepheid.spark.versions import StatefulProcessor

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.streaming.stateful_processor import MapState, StatefulProcessorHandle

    from cepheid.engine.run.parts import Form
    from cepheid.spark.tasks.buckets import Bucket
    from cepheid.spark.tasks.partition_times import PartitionTimes
    from cepheid.spark.tasks.unit import Unit

MOMENT = "moment"
"""The event time of a row: the least one of its blob's matches."""

NEVER = -(1 << 63)
"""Before all times, as in `engine.input.order`, which is not imported here."""

EPOCH = dt.datetime.fromtimestamp(0, dt.UTC)
STEP = spark_types.StructType(
    [
        spark_types.StructField(MOMENT, spark_types.TimestampType()),
        spark_types.StructField(BLOB, spark_types.BinaryType()),
        *(spark_types.StructField(name, spark_types.LongType()) for name in (*COUNTS, *PARTITION_LEVELS)),
    ]
)
"""What the operator gives: rows with a blob of matches, and one row with the counts of each visit."""

STATE = spark_types.StructType([spark_types.StructField("bytes", spark_types.BinaryType())])
PAGE = spark_types.StructType([spark_types.StructField("page", spark_types.LongType())])


class SparkPages:
    """The pages of the bucket that is being visited; pages: Spark's map of them."""

    def __init__(self, pages: MapState) -> None:
        self.pages = pages

    def get(self, number: int) -> bytes | None:
        """A page, None where there is none."""
        found = self.pages.getValue((number,))
        return None if found is None else bytes(found[0])

    def put(self, number: int, page: bytes) -> None:
        """Keep a page."""
        self.pages.updateValue((number,), (page,))

    def remove(self, number: int) -> None:
        """Forget a page, if there is one."""
        self.pages.removeKey((number,))

    def clear(self) -> None:
        """Forget all of them."""
        self.pages.clear()

    def all(self) -> Iterator[tuple[int, bytes]]:
        """All of them with their numbers, in any order."""
        return ((int(key[0]), bytes(value[0])) for key, value in self.pages.iterator())


class BucketProcessor(StatefulProcessor):
    """The stateful operator: a value of bytes per bucket, pages where its keys are many, and a timer for when it is to be looked at again.

    Where the source's partitions count, another value has their times: each micro-batch tells every bucket how far these are, and most buckets have
    nothing to do then, and do not read the rest of their state.
    """

    def __init__(self, unit: dict[str, Any]) -> None:
        self.packed = unit

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called once per task, and on the driver."""
        self.handle = handle
        self.state = handle.getValueState("bucket", STATE)
        self.pages = SparkPages(handle.getMapState("pages", PAGE, STATE))
        self.times = handle.getValueState("times", STATE)

    @cached_property
    def unit(self) -> Unit:
        """What the bucket has to know."""
        from cepheid.spark.tasks.unit import Unit

        return Unit(**self.packed)

    @cached_property
    def form(self) -> Form | None:
        """How the keys of a bucket are cut into pages; None: they are not."""
        from cepheid.spark.tasks.buckets import form_of

        return form_of(self.unit)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803 - Spark's names
        """The events of a micro-batch."""
        from cepheid.engine.memory.container import table_of

        if key[0] == SEAL:
            self._check_seal()
            return
        tables, told, rules = [], [], []
        for row in rows:
            if row[TOLD] is None:
                tables.append(table_of(row[BLOB]))
            elif row[BLOB] is None:
                told.append(bytes(row[TOLD]))
            else:
                rules.append((table_of(row[BLOB]), bytes(row[TOLD]) == SAYS))
        times, before = self._times(), NEVER
        if times is not None:
            before = times.known
            times.take(told)
            if not tables and not rules and not times.due:
                self._keep(times)
                return
        yield from self._step(tables, timerValues, None, times, before=before, rules=rules)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:  # noqa: ARG002, N802, N803 - Spark's
        """The watermark has come to where something is decided, or all is idle."""
        times = self._times()
        yield from self._step([], timerValues, expiredTimerInfo.getExpiryTimeInMs(), times, before=NEVER if times is None else times.known)

    def close(self) -> None:
        """Nothing is open."""

    def _check_seal(self) -> None:
        """Raise SnapshotError for the checkpoint of other queries: here, because a bucket without state could not tell, and would give rows."""
        from cepheid.spark.tasks.buckets import Bucket

        bucket, stored = Bucket(self.unit), self.state.get()
        if stored is None:
            self.state.update((bucket.seal(),))
        else:
            bucket.check_seal(bytes(stored[0]))

    def _times(self) -> PartitionTimes | None:
        """How far the source's partitions are; None where they do not count."""
        if self.unit.partitions is None:
            return None
        from cepheid.spark.tasks.buckets import refused
        from cepheid.spark.tasks.partition_times import PartitionTimes

        times, stored = PartitionTimes(*self.unit.partitions), self.times.get()
        if stored is not None:
            times.load(bytes(stored[0]), fingerprint=self.unit.fingerprint, **refused(self.unit))
        return times

    def _keep(self, times: PartitionTimes) -> None:
        self.times.update((times.dump(fingerprint=self.unit.fingerprint),))

    def _step(
        self,
        tables: list[pa.Table],
        timers: Any,
        expired: int | None,
        times: PartitionTimes | None,
        *,
        before: int,
        rules: Sequence[tuple[pa.Table, bool]] = (),
    ) -> Iterator[Row]:
        """Visit the bucket.

        times: how far the source's partitions are. before: the least time that a later event might have before this visit. rules: of `RuleBucket`.
        """
        bucket = self._bucket(rules)
        stored = self.state.get()
        if stored is not None:
            bucket.load(bytes(stored[0]))
        watermark = timers.getCurrentWatermarkInMs()
        step = bucket.step(tables, watermark, before=before, after=NEVER if times is None else times.known)
        self._set_timer(bucket, step.deadline, watermark, expired)
        if bucket.empty:
            self.state.clear()
            bucket.clear()
            size = 0
        else:
            data = bucket.dump()
            size = len(data) + bucket.size
            self.state.update((data,))
        levels: dict[str, int | None] = dict.fromkeys(PARTITION_LEVELS)
        if times is not None:
            times.deadline, times.fresh = step.deadline, False
            levels |= times.counts
            self._keep(times)
        for moment, blob in step.rows:
            yield Row(**{MOMENT: EPOCH + dt.timedelta(microseconds=moment), BLOB: blob, **dict.fromkeys((*COUNTS, *PARTITION_LEVELS))})
        # Never at or below the watermark: such a row would be an error.
        now = EPOCH + dt.timedelta(milliseconds=watermark, microseconds=1)
        yield Row(**{MOMENT: now, BLOB: None, **step.counts, "state_bytes": size, **levels})

    def _bucket(self, rules: Sequence[tuple[pa.Table, bool]]) -> Bucket:
        if self.unit.ruled:
            from cepheid.spark.tasks.rule_states import RuleBucket

            return RuleBucket(self.unit, self.pages, rules)
        from cepheid.spark.tasks.buckets import Bucket

        return Bucket(self.unit, self.pages, self.form)

    def _set_timer(self, bucket: Bucket, deadline: int | None, watermark: int, expired: int | None) -> None:
        """One timer at or before the deadline; none that has passed, or the bucket would be visited twice in one micro-batch."""
        for timer in bucket.timers:
            if timer <= watermark and timer != expired:
                self.handle.deleteTimer(timer)
        bucket.timers = [timer for timer in bucket.timers if timer > watermark]
        # Spark fires a timer once the watermark is past it.
        wanted = None if deadline is None else max(deadline - 1, watermark + 1)
        if wanted is not None and not any(timer <= wanted for timer in bucket.timers):
            self.handle.registerTimer(wanted)
            bucket.timers.append(wanted)
