"""Queries over a streaming DataFrame: what runs where.

    events -> letters, as columns -> mapInArrow(pack) -> groupBy(bucket).transformWithState(one binary value) -> explode(unpack)

Comes in: queries, options and a streaming DataFrame. Goes out: a DataFrame of matches, in append mode, with the column `decided_time` as its event
time. Spark has no stateful operator over Arrow batches, and row by row costs more than recognition: so the events of many keys travel as one blob
(`tasks.packing`), the keys of a bucket live in one state value (`tasks.buckets`), and matches leave as blobs, which a column expression takes apart.
The column with their event times is not the one that the stateful operator gave (that one has a time per blob), but it is marked as Spark marks event
times, and no time in it is before the watermark: so stateful operators below go by it.

Everything that can be wrong is found when `q.on` is applied, before the stream starts; what only the data or the checkpoint can tell stops the
stream with an error that `translation.translated` gives its class back.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the name that everybody gives this module
from pyspark.sql import types as spark_types

from cepheid.engine.plan.explain import evaluations_text, meaning_text, rows_text
from cepheid.errors import InputError, SchemaError, SetupError
from cepheid.records import record
from cepheid.spark.batch import Plan, prepare, shuffle_tasks
from cepheid.spark.columns import arrow_type, column_named, nullable
from cepheid.spark.operator import MOMENT, STEP, BucketProcessor
from cepheid.spark.shipping import shipped
from cepheid.spark.source import WATERMARK, arrow_schema
from cepheid.spark.tasks.bounds import YEARS
from cepheid.spark.tasks.buckets import DECIDED
from cepheid.spark.tasks.packing import pack, unpack
from cepheid.spark.tasks.pages import EVENT_BYTES, KEY_BYTES, whole
from cepheid.spark.tasks.renewal import depends_on_all
from cepheid.spark.tasks.visits import BLOB, BUCKET, COUNTS, MOMENT_READ, PARTITION_LEVELS, SOURCE, TOLD
from cepheid.spark.versions import arrow_column, check_protobuf, transform_with_state
from cepheid.spark.watermark import partitions, with_watermark

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from cepheid.spark.options import Options
    from cepheid.spark.queries import QueryPlans
    from cepheid.spark.tasks.unit import Unit

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

BUCKETS_PER_PARTITION = 4
"""Buckets of keys for each shuffle partition, unless buckets= says otherwise: enough to spread evenly, few enough to be large."""

LATE = "late"
"""The column of an event that came too late, where these are asked for."""

PACKED = f"`{BUCKET}` int, {BLOB} binary, {TOLD} binary"
"""The columns in which the events of a bucket come to its state."""

OBSERVED = "cepheid"
"""The name under which a stream's counts are observed."""


@record(slots=False)
class StreamPlan:
    """Queries over one streaming DataFrame: everything decided, nothing run.

    several: the queries' plans, over a source with a watermark. lateness: of that watermark in milliseconds if it is ours; None where others, of
    other sources, may hold Spark's back.
    """

    several: QueryPlans
    lateness: int | None = None
    per_partition: ClassVar[int] = BUCKETS_PER_PARTITION

    def __post_init__(self) -> None:
        """Check the session, and give the event time its watermark."""
        first = self.several.first
        check_session(first.source.frame)
        check_hand_over(self.several.plans)
        first.check_named("partition", self.options.partition)
        for name in self.options.partition:
            if isinstance(first.source.fields[name], spark_types.MapType) or arrow_type(first.source.fields[name]) is None:
                kind = first.source.fields[name].simpleString()
                raise SchemaError(f"partition={name!r} is {kind}, which has no hash", help="name a column that says which partition it is")
        frame, lateness = with_watermark(first)
        object.__setattr__(self, "lateness", lateness)
        plans = [dataclasses.replace(plan, source=dataclasses.replace(plan.source, frame=frame)) for plan in self.several.plans]
        object.__setattr__(self, "several", dataclasses.replace(self.several, plans=tuple(plans)))

    @property
    def first(self) -> Plan:
        """The plan that stands for all where they agree."""
        return self.several.first

    @property
    def options(self) -> Options:
        """The options of `on`."""
        return self.first.options

    # ---------------------------------------------------------------------------------------------------------------- what is run

    def run(self) -> DataFrame:
        """The DataFrame of matches."""
        prepared = self.prepared()
        packing = functools.partial(pack, told_buckets=self.buckets if self.partitions else 0)
        packed = self.packed(prepared.mapInArrow(shipped(packing), PACKED))
        processor = BucketProcessor(dataclasses.asdict(self.unit(prepared)))
        rows = transform_with_state(packed.groupBy(BUCKET), processor, STEP, schema=arrow_schema(STEP), time=MOMENT)
        levels = (combine(name).alias(name) for name, combine in zip(PARTITION_LEVELS, (F.min, F.max, F.max), strict=True))
        counted = rows.observe(OBSERVED, *(F.sum(name).alias(name) for name in COUNTS), *levels)
        matches = F.explode(self._unpacked(BLOB))
        shown = counted.where(F.col(BLOB).isNotNull()).select(matches.alias("match"))
        rows = shown.select(*(self._output_column(field.name) for field in self.output()))
        since = self.first.since
        if since is None:
            return rows
        after = F.col(DECIDED) > since
        return rows.where(after | F.col(LATE).isNotNull() if self.options.late else after)

    def packed(self, events: DataFrame) -> DataFrame:
        """What goes to the state; events: packed ones."""
        return events

    def unit(self, prepared: DataFrame) -> Unit:
        """What the state has to know; prepared: the events as they travel."""
        unit = self.several.unit(prepared, output=self.output(), late=self.options.late)
        partitions = None if self.partitions is None else (*self.partitions, time.time_ns())
        return dataclasses.replace(unit, buckets=self.buckets, lateness=None if partitions else self.lateness, partitions=partitions)

    def _unpacked(self, blob: str) -> Column:
        """The matches of a blob: an array of structs."""
        schema = arrow_schema(self.output())

        def matches(blobs: pa.Array) -> pa.Array:
            return unpack(schema, blobs)

        return arrow_column(matches, spark_types.ArrayType(self.output()), (blob, pa.binary()))

    def _output_column(self, name: str) -> Column:
        column = F.col("match").getField(name)
        return column.alias(name, metadata={WATERMARK: self.watermark}) if name == DECIDED else column.alias(name)

    @property
    def watermark(self) -> int:
        """How far the watermark is behind the greatest event time, in milliseconds."""
        source = self.first.source
        return int(source.frame.schema[source.names[self.first.compiled.layout.time or ""]].metadata[WATERMARK])

    def prepared(self) -> DataFrame:
        """The events as they travel, with their buckets."""
        keys = self.first.key_columns()
        late = [self.first.payload_column(name) for name in self.first.incoming] if self.options.late else []
        first, marked = {BUCKET: self._bucket(list(keys.values()))}, None
        if self.partitions:
            first |= {SOURCE: self._source_partition(), MOMENT_READ: F.current_timestamp()}  # as in `times.ahead`
            marked = BUCKET
        return prepare(self.several.plans, observed=f"{OBSERVED}.dropped", first=first, last=late, marked=marked)

    @property
    def partitions(self) -> tuple[int, int] | None:
        """The lateness and the time-out of the source's partitions, where they count."""
        return partitions(self.options)

    def _source_partition(self) -> Column:
        """The partition of the source that an event is from, as a number: a hash, for partitions are named in many ways."""
        source = self.first.source
        names = [*([source.rank] if source.rank else []), *(source.names[name] for name in self.options.partition)]
        return F.xxhash64(*map(column_named, names))

    def _bucket(self, keys: list[Column]) -> Column:
        """The bucket of a key: a hash that never changes, for it decides where the state of a key is."""
        return F.pmod(F.hash(*keys), F.lit(self.buckets)) if keys else F.lit(0)

    @property
    def buckets(self) -> int:
        """The number of buckets of keys."""
        if not self.first.compiled.keys:
            return 1
        if self.options.buckets is not None:
            return self.options.buckets
        return self.per_partition * shuffle_tasks(self.first.source.frame.sparkSession)

    # ---------------------------------------------------------------------------------------------------------------- what comes out

    def matches(self) -> spark_types.StructType:
        """The columns of a match, as a batch has them."""
        return self.several.output()

    def output(self) -> spark_types.StructType:
        """The columns of the output, in Spark's types."""
        fields = list(self.matches())
        for field in fields:
            name = field.name if self.first.case_sensitive else field.name.lower()
            if name == DECIDED or (name == LATE and self.options.late):
                raise SchemaError(
                    f"the output would have two columns named `{name}`: a stream adds one of that name",
                    help=f"give another name in the query: `AS {field.name}_`",
                )
        place = [field.name for field in fields].index("end_time") + 1
        fields.insert(place, spark_types.StructField(DECIDED, spark_types.TimestampType()))
        if self.options.late:
            event = [spark_types.StructField(name, self.first.source.fields[name]) for name in self.first.incoming]
            fields.append(spark_types.StructField(LATE, nullable(spark_types.StructType(event))))
        return spark_types.StructType(fields)

    # ---------------------------------------------------------------------------------------------------------------- what is said

    def _times(self) -> str:
        """What happens to events with a wrong time."""
        options = self.options
        wrong = {"NULL": options.null_time, f"outside {YEARS}": options.bad_time}
        found = [f"{what}: {'an error' if how == 'error' else 'left out'}" for what, how in wrong.items()]
        if options.max_ahead is not None:
            found.append(f"more than {options.max_ahead} after the clock: left out")
        return "; ".join(found) + "; before the watermark moves"

    @property
    def _form(self) -> str:
        """In which form a bucket is."""
        kept = whole(plan.compiled for plan in self.several.plans)
        return (
            f"their keys in pages of a few (some {EVENT_BYTES} bytes written for each event), or whole, where that costs less"
            f" ({KEY_BYTES} for each key)"
            if kept is None
            else f"one value for each, read and written whole, some {KEY_BYTES} bytes for each key ({kept})"
        )

    def _behind(self) -> str:
        """Which events are late besides, where the source's partitions count."""
        if self.partitions is None:
            return ""
        lateness, idle = self.partitions
        names = ", ".join(f"`{name}`" for name in self.options.partition)
        waited = f"one that is silent for {idle} ms is not waited for"
        return f", or behind its partition ({names}) by {lateness} ms when the others are there, too ({waited}),"

    def describe(self) -> str:
        """The plan as text."""
        compiled, options = self.first.compiled, self.options
        ties = [*(["the stream's place in FROM"] if self.first.source.rank else []), *(f"`{name}`" for name in options.order)]
        keys = ", ".join(compiled.keys)
        end = "its end"
        if any(plan.compiled.decides_later for plan in self.several.plans):
            end = "its end (with NOT FOLLOWED BY: the deadline)"
        slowest = "the slowest source's" if self.lateness is None else f"greatest time of the micro-batches before - {self.watermark} ms"
        counted = any(plan.compiled.indexed for plan in self.several.plans)
        lines = {
            "queries": "one"
            if self.several.names is None
            else f"{len(self.several.plans)}, which share scan, predicates, shuffle and state",
            "state": (f"in RocksDB, {self.buckets} buckets of {keys}: {self._form}" if keys else "one value in RocksDB: there are no keys")
            + (f"; {'for each key ' if keys else ''}the number of events stays for ever ($index)" if counted else ""),
            "tasks": "buckets spread over the shuffle partitions" if keys else "one runs the automaton; predicates and packing run in all",
            "order": ", ".join(["time", *ties, "then the order of arrival"])
            + ("" if ties else ": a restart may read events of one key and time in another order; order= names what decides"),
            "late": f"events at or before the watermark ({slowest}){self._behind()} are counted"
            + (" and given back" if options.late else ", late=True gives them back"),
            "times": self._times(),
            "decided": f"a match is given when the watermark has passed {end}"
            + (", or all partitions have" if self.partitions else "")
            + ("" if self.lateness is None or self.partitions else f", or an event of the bucket is {self.lateness} ms younger")
            + "; that time is its event time (decided_time)",
            "columns": ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in self.output() if field.name != LATE),
        }
        each = (
            f"{plan.query.text.strip()}\n{meaning_text(plan.compiled.plan)}\n{evaluations_text(plan.compiled)}"
            for plan in self.several.plans
        )
        return "\n\n".join([rows_text(lines), *each])


def split(frame: DataFrame) -> tuple[DataFrame, DataFrame]:
    """The matches and the late events in the output of `on(.., late=True)`, as two DataFrames.

    Meant for the batches of `foreachBatch`, where both come from one micro-batch. `persist` the batch first, or it is computed twice. Raises
    SchemaError for a DataFrame without late events.
    """
    if LATE not in frame.columns:
        raise SchemaError("this DataFrame has no late events", help="ask for them: q.on(.., late=True)")
    late = F.col(LATE)
    return frame.where(late.isNull()).drop(LATE), frame.where(late.isNotNull()).select(f"{LATE}.*")


# ------------------------------------------------------------------------------------------------------------------------ what it needs


def check_session(frame: DataFrame) -> None:
    """Raise SetupError for a session that cannot keep the state of a stream: another state store than RocksDB, no protobuf, or an old one."""
    provider = frame.sparkSession.conf.get(PROVIDER, "")
    if provider != ROCKSDB:
        raise SetupError(
            "a stream's state needs RocksDB, and this session's state store is another one",
            help=f'before the stream starts: spark.conf.set("{PROVIDER}", "{ROCKSDB}")',
        )
    check_protobuf()


def check_hand_over(plans: Sequence[Plan]) -> None:
    """Raise InputError for `until` on a stream, and for `since` where what is decided after a time depends on all events before it."""
    options = plans[0].options
    if options.until is not None:
        raise InputError("until= says where a DataFrame ends, and this one is streaming", help="since= says where a stream continues")
    if options.undecided:
        raise InputError(
            "undecided=True lists what the end of a DataFrame does not decide, and this one is streaming", help="a stream decides it later"
        )
    for plan in plans if options.since is not None else ():
        reason = depends_on_all(plan.compiled)
        if reason is not None:
            raise InputError(
                f"since= needs a query whose matches depend on the events of a window, and this one {reason}",
                help="let the stream read all events from the beginning, without since=",
            )
