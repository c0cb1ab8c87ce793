"""Kafka as a stream, through confluent-kafka, where Spark's own connector, a Java archive, is not available.

Comes in: the options of Spark's connector. Goes out: its columns, with its offsets, so a query changes from one to the other by the name of the
source alone. One task reads each partition of a topic, from the offset where the previous micro-batch ended to the one where this ends; both are in
the checkpoint. If Kafka has deleted messages in between, this is always an error. Runs in Spark's Python workers.
"""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
from pyspark.sql.datasource import DataSource, InputPartition

from cepheid.errors import InputError, NotSupportedError, SetupError, nearest, quoted
from cepheid.records import record
from cepheid.spark.sources.pages import PagedReader, check_pages
from cepheid.spark.versions import until_all_is_read

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader
    from pyspark.sql.types import StructType

    from cepheid.spark.sources.pages import Offset

FORMAT = "cepheid_kafka"
"""The name of the source in `spark.readStream.format`."""

COLUMNS = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
"""The columns of the stream: those of Spark's connector, without headers."""

SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("timestampType", pa.int32()),
    ]
)

MESSAGES = 4096
"""Messages of one Arrow batch."""

ANSWER_SECONDS = 30
"""How long a broker may take to say which partitions and offsets there are."""

READ_SECONDS = 120
"""How long a task waits for the next message that it knows to be there."""

POLL_SECONDS = 0.2
"""How long one call waits for messages: what a gap in the offsets may cost."""

EARLIEST, LATEST = -2, -1
"""What startingOffsets may say instead of an offset, as in Spark's connector."""


def kafka_source(spark: SparkSession) -> DataStreamReader:
    """The reader of a Kafka stream: ``kafka_source(spark).option("subscribe", "orders").option(..).load()``.

    Options, named as in Spark's connector: kafka.bootstrap.servers and subscribe (topics separated by commas) are needed; startingOffsets is "latest"
    (the default), "earliest" or JSON with an offset for every partition (-2: earliest, -1: latest); maxOffsetsPerTrigger limits a micro-batch (from
    Spark 4.2 on); any other kafka.* goes to librdkafka, under its names. Columns: `COLUMNS`. A topic is read with isolation level read_committed
    unless kafka.isolation.level says otherwise. Offsets are exact, with the trigger availableNow too.

    load() raises InputError and NotSupportedError for wrong options, SetupError without confluent-kafka; the query ends with an InputError if data
    was lost (no option turns this off), and with a SetupError if no broker answers (`translated` gives both their class).
    """
    _client()
    spark.dataSource.register(Kafka)
    until_all_is_read(spark)
    return spark.readStream.format(FORMAT)


def _client() -> Any:
    try:
        import confluent_kafka
        import confluent_kafka.admin
    except ImportError as error:
        raise SetupError("confluent-kafka is not installed here", help="pip install 'cepheid[kafka]', on the workers too") from error
    return confluent_kafka


# ------------------------------------------------------------------------------------------------------------------------ options


@record(slots=False)
class Options:
    """The options of the source, checked. config: what librdkafka is told. starting: "earliest", "latest", or {topic: {partition: offset}}."""

    config: Mapping[str, str]
    topics: tuple[str, ...]
    starting: str | Offset = "latest"
    rows_per_batch: int | None = None

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Options:
        """Read the options, whose names Spark may have written in small letters; raises InputError and NotSupportedError."""
        options = {name.lower(): value for name, value in given.items()}
        config = {name.removeprefix("kafka."): value for name, value in options.items() if name.startswith("kafka.")}
        for name in options:
            if not name.startswith("kafka.") and name not in _KNOWN:
                near = nearest(name, _KNOWN)
                help_ = [f"did you mean {_KNOWN[near]}?"] if near else []
                raise InputError(f"the Kafka source has no option {name}", help=[*help_, f"it has {quoted(_KNOWN.values())} and kafka.*"])
        if not config.get("bootstrap.servers"):
            raise InputError("the Kafka source needs the option kafka.bootstrap.servers", help='it is like "host1:9092,host2:9092"')
        topics = tuple(dict.fromkeys(topic.strip() for topic in options.get("subscribe", "").split(",") if topic.strip()))
        if not topics:
            raise InputError("the Kafka source needs the option subscribe", help="name the topics, with commas between them")
        if options.get("failondataloss", "true").lower() != "true":
            raise NotSupportedError(
                "failOnDataLoss=false would skip deleted messages silently, which this source never does",
                help="to accept the gap, start a new checkpoint with startingOffsets=earliest",
            )
        limit = options.get("maxoffsetspertrigger")
        if limit is not None:
            check_pages("maxOffsetsPerTrigger")
        return cls(config, topics, _starting(options.get("startingoffsets", "latest")), None if limit is None else _number(limit))


_KNOWN = {
    name.lower(): name for name in ("subscribe", "startingOffsets", "maxOffsetsPerTrigger", "failOnDataLoss")
}  # as Spark passes them -> as they are written


def _number(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise InputError(f"maxOffsetsPerTrigger={text} is not a number of messages", help="give a number, 1 or more, or leave it out")
    return int(text)


def _starting(text: str) -> str | Offset:
    if text in {"earliest", "latest"}:
        return text
    try:
        offsets = json.loads(text)
        return {str(topic): {str(int(part)): int(offset) for part, offset in parts.items()} for topic, parts in offsets.items()}
    except (ValueError, AttributeError, TypeError) as error:
        raise InputError(
            f"startingOffsets={text} cannot be read",
            help='it is "earliest", "latest", or like {"orders": {"0": 23, "1": -2}} with -2 for earliest and -1 for latest',
        ) from error


# ------------------------------------------------------------------------------------------------------------------------ offsets


Ends = dict[tuple[str, int], int]
"""For each partition of a topic, the offset before which messages are read."""


def flat(offset: Offset) -> Ends:
    """An offset of the stream by topic and partition."""
    return {(topic, int(part)): int(value) for topic, parts in offset.items() for part, value in parts.items()}


def nested(ends: Ends) -> Offset:
    """The same as Spark stores it: ``{"topic": {"0": 23}}``, sorted."""
    offset: Offset = {}
    for (topic, part), value in sorted(ends.items()):
        offset.setdefault(topic, {})[str(part)] = value
    return offset


def lengths(start: Ends, end: Ends) -> Ends:
    """How many offsets lie between two, per partition; a partition that is new starts at 0. Raises InputError when messages were lost."""
    gone = sorted(set(start) - set(end))
    if gone:
        raise _lost(gone[0], f"the checkpoint has read it to offset {start[gone[0]]}, and it is no longer there")
    for place, last in end.items():
        if last < start.get(place, 0):
            raise _lost(place, f"the checkpoint has read it to offset {start[place]}, and it ends at {last}: it was created again")
    return {place: last - start.get(place, 0) for place, last in end.items()}


def shares(available: Ends, most: int) -> Ends:
    """Up to `most` of what is available, in proportion; the sum is exact, and some of each partition while there are enough for all.

    So the time of each is known from the first page on. What rounding leaves goes to those that lost most by it, ties by name.
    """
    waiting = [place for place, number in available.items() if number]
    first = {place: int(available[place] > 0 and len(waiting) <= most) for place in available}
    left, most = {place: number - first[place] for place, number in available.items()}, most - sum(first.values())
    whole = sum(left.values())
    if whole <= most:
        return dict(available)
    taken = {place: first[place] + most * number // whole for place, number in left.items()}
    rest = sorted(left, key=lambda place: (-(most * left[place] % whole), place))
    for place in rest[: most - sum(most * number // whole for number in left.values())]:
        taken[place] += 1
    return taken


def _lost(place: tuple[str, int], why: str) -> InputError:
    topic, part = place
    return InputError(
        f"messages of partition {part} of the topic `{topic}` are lost: {why}",
        help=(
            "keep messages for longer than the query may stand still (retention.ms)",
            "to go on without them, start a new checkpoint with startingOffsets=earliest",
        ),
    )


# ------------------------------------------------------------------------------------------------------------------------ the source


class Kafka(DataSource):
    """The source that `kafka_source` registers."""

    @classmethod
    def name(cls) -> str:
        """The name of the source in `spark.readStream.format`."""
        return FORMAT

    def schema(self) -> str:
        """The columns; wrong options are errors here, so that load() raises them."""
        Options.of(self.options)
        return COLUMNS

    def streamReader(self, schema: StructType) -> KafkaReader:  # noqa: ARG002, N802 - Spark's name and argument
        """The reader of the topics."""
        return KafkaReader(Options.of(self.options))


@dataclass
class Messages(InputPartition):
    """The messages of one partition of a topic from one offset to before another: what one task reads."""

    topic: str
    part: int
    first: int
    last: int


@dataclass
class KafkaReader(PagedReader):
    """Offsets, tasks and messages of some topics. An offset is, per topic and partition, the first one not yet read."""

    options: Options
    _cluster: Any = field(default=None, repr=False)
    """The connection of the process that plans; tasks have their own."""

    def __post_init__(self) -> None:
        self.rows_per_batch = self.options.rows_per_batch

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """What startingOffsets says."""
        starting = self.options.starting
        if starting == "latest":
            return self.newest()
        if starting == "earliest":
            return nested(self._offsets(EARLIEST))
        given, ends = flat(cast("Offset", starting)), self._offsets(LATEST)
        if set(given) != set(ends):
            raise InputError(
                f"startingOffsets names other partitions than the topics have, which are {_places(ends)}",
                help="give an offset for each of them: -2 for earliest, -1 for latest",
            )
        begins = self._offsets(EARLIEST)
        return nested({place: {EARLIEST: begins, LATEST: ends}.get(value, given)[place] for place, value in given.items()})

    def newest(self) -> Offset:
        """Where the topics end now."""
        return nested(self._offsets(LATEST))

    def page(self, start: Offset, newest: Offset) -> Offset:
        """At most `rows_per_batch` offsets on, spread over the partitions in proportion to what waits there."""
        begin = flat(start)
        available = lengths(begin, flat(newest))
        taken = available if self.rows_per_batch is None else shares(available, self.rows_per_batch)
        return nested({place: begin.get(place, 0) + number for place, number in taken.items()})

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """One task for each partition of a topic that has something to read."""
        begin, to_read = flat(start), lengths(flat(start), flat(end))
        return [
            Messages(topic, part, begin.get((topic, part), 0), begin.get((topic, part), 0) + number)
            for (topic, part), number in sorted(to_read.items())
            if number
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The messages of one task."""
        return read(self.options.config, cast("Messages", partition))

    def stop(self) -> None:
        """Leave the cluster."""
        self._cluster = None

    def _offsets(self, which: int) -> Ends:
        """The earliest or the latest offsets of all partitions of the topics."""
        kafka = _client()
        committed = self.options.config.get("isolation.level", "read_committed") == "read_committed"
        isolation = kafka.IsolationLevel.READ_COMMITTED if committed else kafka.IsolationLevel.READ_UNCOMMITTED
        wanted = kafka.admin.OffsetSpec.earliest() if which == EARLIEST else kafka.admin.OffsetSpec.latest()
        try:
            if self._cluster is None:
                self._cluster = kafka.admin.AdminClient(dict(self.options.config))
            known = self._cluster.list_topics(timeout=ANSWER_SECONDS).topics
            self._check_topics(known)
            places = [kafka.TopicPartition(topic, part) for topic in self.options.topics for part in known[topic].partitions]
            answers = self._cluster.list_offsets(
                dict.fromkeys(places, wanted), isolation_level=isolation, request_timeout=float(ANSWER_SECONDS)
            )
            return {(place.topic, place.partition): answer.result().offset for place, answer in answers.items()}
        except kafka.KafkaException as error:
            raise _no_answer(self.options.config, error) from error

    def _check_topics(self, known: Mapping[str, Any]) -> None:
        for topic in self.options.topics:
            if topic not in known or known[topic].error is not None:
                near = nearest(topic, known)
                raise InputError(
                    f"Kafka has no topic `{topic}`",
                    help=([f"did you mean `{near}`?"] if near else []) + ["create it before the query starts"],
                )


def _places(ends: Ends) -> str:
    return ", ".join(f"{topic} {part}" for topic, part in sorted(ends))


def _no_answer(config: Mapping[str, str], error: Exception) -> SetupError:
    return SetupError(
        f"Kafka at {config['bootstrap.servers']} does not answer correctly: {error}",
        help="check kafka.bootstrap.servers and the other kafka.* options, which are librdkafka's, not those of the Java client",
    )


# ---------------------------------------------------------------------------------------------------------------------- the messages


def read(config: Mapping[str, str], wanted: Messages) -> Iterator[pa.RecordBatch]:
    """The messages of one partition from `first` to before `last`, as Arrow batches of `SCHEMA`.

    Offsets inside may be missing where Kafka compacts or has marks of transactions; raises InputError where messages were deleted, SetupError
    where the broker fails or is silent for `READ_SECONDS`.
    """
    kafka = _client()
    own = {"group.id": f"cepheid-{uuid.uuid4().hex}", "enable.auto.commit": "false"}
    # At the end of the partition, and where an offset is no longer there, we want to be told: nothing is skipped.
    signals = {"enable.partition.eof": "true", "auto.offset.reset": "error"}
    place = (wanted.topic, wanted.part)
    try:
        consumer = kafka.Consumer({**own, **config, **signals})
        try:
            begin, _ = consumer.get_watermark_offsets(kafka.TopicPartition(*place), timeout=ANSWER_SECONDS)
            if begin > wanted.first:
                raise _lost(place, f"the next one to read has offset {wanted.first}, and Kafka has deleted all before {begin}")
            consumer.assign([kafka.TopicPartition(*place, wanted.first)])
            for messages in _until(consumer, wanted, kafka):
                yield batch_of(messages)
        finally:
            consumer.close()
    except kafka.KafkaException as error:
        raise _no_answer(config, error) from error


def _until(consumer: Any, wanted: Messages, kafka: Any) -> Iterator[list[Any]]:
    """Lists of messages before offset `last`; ends when the partition is known to have no more of them."""
    deadline, reached = time.monotonic() + READ_SECONDS, wanted.first
    while True:
        # It returns when it has as many as asked for: asking for more than there may be would cost the timeout every time.
        polled = consumer.consume(min(MESSAGES, wanted.last - reached), timeout=POLL_SECONDS)
        messages = []
        for message in polled:
            error = message.error()
            if error is None and message.offset() < wanted.last:
                messages.append(message)
            elif error is not None and error.code() != kafka.KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
                _fail(error, wanted, kafka)
            # The end of the partition stands at the offset that comes next; so does a message behind ours.
            reached = max(reached, message.offset() + (error is None))
        if messages:
            yield messages
        if reached >= wanted.last:
            return
        if polled:
            deadline = time.monotonic() + READ_SECONDS
        elif time.monotonic() > deadline:
            raise SetupError(
                f"Kafka gave nothing for {READ_SECONDS} s (READ_SECONDS) from partition {wanted.part} of `{wanted.topic}`, read to {reached}",
                help="the query starts again from its checkpoint when the broker answers",
            )


def _fail(error: Any, wanted: Messages, kafka: Any) -> None:
    if error.code() in {kafka.KafkaError._AUTO_OFFSET_RESET, kafka.KafkaError.OFFSET_OUT_OF_RANGE}:  # noqa: SLF001 - its public name
        raise _lost((wanted.topic, wanted.part), f"offsets {wanted.first} to {wanted.last} are wanted, and the broker says: {error.str()}")
    raise kafka.KafkaException(error)


def batch_of(messages: Sequence[Any]) -> pa.RecordBatch:
    """Messages as Arrow. A timestamp that a message has not is NULL, with timestampType -1 as in Spark's connector."""
    stamps = [message.timestamp() for message in messages]
    columns = (
        [message.key() for message in messages],
        [message.value() for message in messages],
        [message.topic() for message in messages],
        [message.partition() for message in messages],
        [message.offset() for message in messages],
        [milliseconds * 1_000 if kind else None for kind, milliseconds in stamps],
        [kind - 1 for kind, _ in stamps],
    )
    arrays = [pa.array(values, kind) for values, kind in zip(columns, SCHEMA.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
