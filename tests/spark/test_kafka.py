"""Kafka as a stream, against librdkafka's mock cluster: exact offsets, and no message that is lost goes unsaid.

The cluster lives in this process' producer; the tasks of Spark, other processes, reach it by the address that the producer's metadata has.
"""

from __future__ import annotations

import json
import random
import uuid

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import cepheid
from cepheid.errors import InputError, NotSupportedError, SetupError
from cepheid.spark import translated, why
from cepheid.spark.observation import figures, warning
from cepheid.spark.sources import kafka
from cepheid.spark.sources import pages as paging
from cepheid.spark.sources.kafka import KafkaReader, Messages, Options, flat, kafka_source, lengths, nested, shares

confluent_kafka = pytest.importorskip("confluent_kafka", reason="the extra kafka is not installed")
paged = pytest.mark.skipif(not paging.PAGES, reason="Spark 4.1 does not tell a Python source where a micro-batch starts")

PARTS = 4
"""What the mock cluster gives a topic that it makes."""


@pytest.fixture(scope="module")
def producer():
    return confluent_kafka.Producer({"bootstrap.servers": "", "test.mock.num.brokers": 1, "log_level": 0})


@pytest.fixture(scope="module")
def servers(producer) -> str:
    (broker,) = producer.list_topics(timeout=10).brokers.values()
    return f"{broker.host}:{broker.port}"


@pytest.fixture
def topic() -> str:
    return f"t{uuid.uuid4().hex[:8]}"


def send(producer, topic: str, values: list, *, part: int | None = None, **given) -> None:
    for number, value in enumerate(values):
        where = number % PARTS if part is None else part
        payload = None if value is None else json.dumps(value).encode()
        producer.produce(topic, value=payload, key=str(number).encode(), partition=where, **given)
    assert producer.flush(10) == 0


def options(servers: str, topic: str, **given: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest", **given}


def rows(reader: KafkaReader, start, end) -> list[dict]:
    return [row for part in reader.partitions(start, end) for batch in reader.read(part) for row in batch.to_pylist()]


# -------------------------------------------------------------------------------------------------------------- without a broker


def test_shares_are_exact_and_in_proportion(cases, seed):
    rng = random.Random(seed)
    for _ in range(cases):
        available = {("t", part): rng.choice([0, 1, 5, 1000, 10**12]) for part in range(rng.randrange(1, 6))}
        most = rng.choice([1, 2, 3, 17, 10**6])
        taken = shares(available, most)
        assert sum(taken.values()) == min(most, sum(available.values()))
        assert all(0 <= taken[place] <= available[place] for place in available)
        waiting = [place for place in available if available[place]]
        if sum(available.values()) > most:
            near = 1 + (len(waiting) if len(waiting) <= most else 0)
            assert all(abs(taken[place] - most * available[place] / sum(available.values())) < near + 1e-6 for place in available)
        assert len(waiting) > most or all(taken[place] for place in waiting)


def test_every_partition_is_read_to_its_end():
    """Pages of one offset: however small its share, a partition's turn comes."""
    end, at = {("t", 0): 50, ("t", 1): 1, ("t", 2): 3}, {("t", 0): 0, ("t", 1): 0, ("t", 2): 0}
    for _ in range(54):
        at = {place: at[place] + number for place, number in shares(lengths(at, end), 1).items()}
    assert at == end


def test_offsets_are_as_sparks_connector_has_them():
    offset = {"a": {"0": 3, "10": 4, "2": 0}, "b": {"0": 7}}
    assert flat(offset) == {("a", 0): 3, ("a", 2): 0, ("a", 10): 4, ("b", 0): 7}
    assert nested(flat(offset)) == offset
    assert json.dumps(nested(flat(offset))) == '{"a": {"0": 3, "2": 0, "10": 4}, "b": {"0": 7}}'


def test_a_new_partition_is_read_from_its_start():
    assert lengths({("t", 0): 5}, {("t", 0): 7, ("t", 1): 3}) == {("t", 0): 2, ("t", 1): 3}


@pytest.mark.parametrize(
    ("end", "fact"),
    [({("t", 1): 9}, "partition 0 of the topic `t` are lost"), ({("t", 0): 4, ("t", 1): 9}, "read it to offset 5, and it ends at 4")],
)
def test_what_is_gone_is_an_error(end, fact):
    with pytest.raises(InputError) as caught:
        lengths({("t", 0): 5, ("t", 1): 1}, end)
    assert fact in str(caught.value)
    assert "retention.ms" in str(caught.value)


@pytest.mark.parametrize(
    ("given", "kind", "fact"),
    [
        ({"subscribe": "a"}, InputError, "needs the option kafka.bootstrap.servers"),
        ({"kafka.bootstrap.servers": "x"}, InputError, "needs the option subscribe"),
        ({"kafka.bootstrap.servers": "x", "subscribe": " , "}, InputError, "needs the option subscribe"),
        ({"kafka.bootstrap.servers": "x", "subscribe": "a", "startingOffset": "earliest"}, InputError, "did you mean startingOffsets?"),
        (
            {"kafka.bootstrap.servers": "x", "subscribe": "a", "startingOffsets": "first"},
            InputError,
            "startingOffsets=first cannot be read",
        ),
        ({"kafka.bootstrap.servers": "x", "subscribe": "a", "startingOffsets": '{"a": 1}'}, InputError, "cannot be read"),
        ({"kafka.bootstrap.servers": "x", "subscribe": "a", "failOnDataLoss": "false"}, NotSupportedError, "failOnDataLoss=false"),
        pytest.param(
            {"kafka.bootstrap.servers": "x", "subscribe": "a", "maxOffsetsPerTrigger": "0"},
            InputError,
            "maxOffsetsPerTrigger=0 is not a number of messages",
            marks=paged,
        ),
    ],
)
def test_wrong_options(given, kind, fact):
    with pytest.raises(kind) as caught:
        Options.of(given)
    assert fact in str(caught.value)


def test_options_in_small_letters():
    """As Spark hands them over."""
    read = Options.of(
        {"kafka.bootstrap.servers": "x:1", "kafka.client.id": "me", "subscribe": "b, a,b", "startingoffsets": '{"a": {"0": -2}}'}
    )
    assert read == Options({"bootstrap.servers": "x:1", "client.id": "me"}, ("b", "a"), {"a": {"0": -2}})


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "confluent_kafka", None)
    with pytest.raises(SetupError) as caught:
        kafka_source(None)
    assert "cepheid[kafka]" in str(caught.value)


# -------------------------------------------------------------------------------------------------------------- with a broker, without Spark


def test_messages_come_as_they_were_sent(producer, servers, topic):
    send(producer, topic, ["x", None], part=1, timestamp=1_700_000_000_123)
    reader = KafkaReader(Options.of(options(servers, topic)))
    found = rows(reader, reader.initialOffset(), reader.newest())
    (first, second) = found
    assert (first["key"], first["value"], second["value"]) == (b"0", b'"x"', None)
    assert [(row["topic"], row["partition"], row["offset"]) for row in found] == [(topic, 1, 0), (topic, 1, 1)]
    assert first["timestamp"].timestamp() == 1_700_000_000.123
    assert first["timestampType"] == 0


def test_a_message_without_a_timestamp():
    class Message:
        def timestamp(self):
            return (0, -1)

        def key(self):
            return None

        value = key

        def topic(self):
            return "t"

        def partition(self):
            return 3

        offset = partition

    assert kafka.batch_of([Message()]).to_pylist() == [
        {"key": None, "value": None, "topic": "t", "partition": 3, "offset": 3, "timestamp": None, "timestampType": -1}
    ]


@paged
def test_union_of_all_pages_is_the_topic(producer, servers, topic, seed):
    """Whatever the page sizes and the restarts, while messages are still sent."""
    rng = random.Random(seed)
    sent = 0
    at, found = None, []
    for turn in range(12):
        if turn < 6:
            send(producer, topic, list(range(sent, sent + 30)))
            sent += 30
        reader = KafkaReader(Options.of(options(servers, topic, maxOffsetsPerTrigger=str(rng.choice([1, 7, 60])))))
        at = reader.initialOffset() if at is None else json.loads(json.dumps(at))
        for _ in range(rng.randrange(1, 4)) if turn < 11 else range(1000):
            end = reader.page(at, reader.newest())
            if end == at:
                break
            found += rows(reader, at, end)
            at = end
    assert sorted(json.loads(row["value"]) for row in found) == list(range(sent))
    places = [(row["partition"], row["offset"]) for row in found]
    assert len(set(places)) == len(places) == sent


def test_starting_offsets(producer, servers, topic):
    send(producer, topic, list(range(4 * PARTS)))
    earliest, latest = ({str(part): value for part in range(PARTS)} for value in (0, 4))
    assert KafkaReader(Options.of(options(servers, topic))).initialOffset() == {topic: earliest}
    assert KafkaReader(Options.of(options(servers, topic, startingOffsets="latest"))).initialOffset() == {topic: latest}
    chosen = json.dumps({topic: {"0": 2, "1": -1, "2": -2, "3": 0}})
    assert KafkaReader(Options.of(options(servers, topic, startingOffsets=chosen))).initialOffset() == {
        topic: {"0": 2, "1": 4, "2": 0, "3": 0}
    }
    some = json.dumps({topic: {"0": 2}})
    with pytest.raises(InputError) as caught:
        KafkaReader(Options.of(options(servers, topic, startingOffsets=some))).initialOffset()
    assert "names other partitions" in str(caught.value)


def test_messages_deleted_before_they_are_read(producer, servers, topic):
    """An offset that the broker no longer has, or has not yet, is never skipped."""
    send(producer, topic, [1, 2, 3], part=0)
    reader = KafkaReader(Options.of(options(servers, topic)))
    with pytest.raises(InputError) as caught:
        list(reader.read(Messages(topic, 0, 7, 9)))
    assert "messages of partition 0" in str(caught.value)
    assert "offsets 7 to 9" in str(caught.value)


def fill(producer, topic: str) -> None:
    """Send more to partition 0 than the mock cluster keeps (some megabytes): it deletes the oldest, as retention does."""
    for _ in range(12):
        producer.produce(topic, value=bytes(900_000), partition=0)
        assert producer.flush(10) == 0


def test_messages_that_retention_deleted(producer, servers, topic):
    """Between the planning of a micro-batch and its reading, or while the query stood still."""
    send(producer, topic, [1, 2, 3], part=0)
    reader = KafkaReader(Options.of(options(servers, topic)))
    start = reader.initialOffset()
    fill(producer, topic)
    end = reader.newest()
    (task,) = reader.partitions(start, reader.page(start, end))
    with pytest.raises(InputError) as caught:
        list(reader.read(task))
    assert "has offset 0, and Kafka has deleted all before" in str(caught.value)
    earliest = reader.initialOffset()  # a new checkpoint starts at what there is
    assert 0 < earliest[topic]["0"] < end[topic]["0"]
    assert len(rows(reader, earliest, end)) == end[topic]["0"] - earliest[topic]["0"]


def test_offsets_that_are_no_messages():
    """Marks of transactions and what compaction took away leave gaps, also at the end of what is to be read."""

    class Message:
        def __init__(self, offset, code=None):
            self.place, self.code = offset, code

        def offset(self):
            return self.place

        def error(self):
            return None if self.code is None else confluent_kafka.KafkaError(self.code)

    class Consumer:
        def __init__(self, *polls):
            self.polls = list(polls)

        def consume(self, number, *, timeout):
            assert 0 < number <= 9
            assert timeout > 0
            return self.polls.pop(0)

    end = confluent_kafka.KafkaError._PARTITION_EOF
    for polls in (
        [[Message(2)], [], [Message(5), Message(9, end)]],  # the end of the partition
        [[Message(2), Message(5), Message(9)]],  # a message behind ours, which is not ours
        [[Message(2), Message(5)], [Message(8, end), Message(11)]],  # an end that was none: more came
    ):
        consumer = Consumer(*polls)
        found = [message.offset() for messages in kafka._until(consumer, Messages("t", 0, 0, 9), confluent_kafka) for message in messages]
        assert found == [2, 5]
        assert consumer.polls == []


def test_a_silent_broker_is_no_end(monkeypatch, servers, topic, producer):
    send(producer, topic, [1], part=0)
    monkeypatch.setattr(kafka, "READ_SECONDS", -1)
    silent = type("Silent", (), {"consume": lambda *_given, **_named: []})()
    with pytest.raises(SetupError) as caught:
        list(kafka._until(silent, Messages(topic, 0, 0, 1), confluent_kafka))
    assert "READ_SECONDS" in str(caught.value)


def test_a_topic_that_is_not_there(producer, servers, topic):
    send(producer, topic, [1])
    with pytest.raises(InputError) as caught:
        KafkaReader(Options.of(options(servers, topic + "x"))).newest()
    assert f"did you mean `{topic}`?" in str(caught.value)
    assert f"{topic}x" not in producer.list_topics(timeout=10).topics


def test_no_broker_and_wrong_words(monkeypatch, servers):
    monkeypatch.setattr(kafka, "ANSWER_SECONDS", 0.5)
    for config in ({"bootstrap.servers": "127.0.0.1:1", "log_level": "0"}, {"bootstrap.servers": servers, "sasl.jaas.config": "x"}):
        with pytest.raises(SetupError) as caught:
            KafkaReader(Options(config, ("t",))).newest()
        assert "does not answer correctly" in str(caught.value)


# -------------------------------------------------------------------------------------------------------------- on Spark


def run(spark, out, **given) -> list[int]:
    """Read what is there into files; the sizes of the micro-batches."""
    stream = kafka_source(spark).options(**given).load()
    query = stream.writeStream.format("parquet").option("path", str(out / "rows")).option("checkpointLocation", str(out / "checkpoint"))
    query = query.trigger(availableNow=True).start()
    with translated():
        query.awaitTermination(100)
    return [each["numInputRows"] for each in query.recentProgress if each["numInputRows"]]


def test_a_topic_on_spark(spark, producer, servers, topic, tmp_path):
    """Across a restart, each message once; with a limit, in as many micro-batches as it takes."""
    send(producer, topic, list(range(40)))
    given = options(servers, topic, **({"maxOffsetsPerTrigger": "25"} if paging.PAGES else {}))
    assert run(spark, tmp_path, **given) == ([25, 15] if paging.PAGES else [40])
    send(producer, topic, list(range(40, 50)))
    assert run(spark, tmp_path, **given) == [10]
    found = spark.read.parquet(str(tmp_path / "rows")).selectExpr("int(string(value)) AS n", "partition", "offset", "topic").collect()
    assert sorted(row.n for row in found) == list(range(50))
    assert len({(row.partition, row.offset) for row in found}) == 50
    assert {row.topic for row in found} == {topic}


def test_lost_messages_on_spark(spark, producer, servers, topic, tmp_path):
    """Deleted while the query stood still: the restart is an error, and nothing more is written."""
    send(producer, topic, [1, 2, 3], part=0)
    given = options(servers, topic)
    assert run(spark, tmp_path, **given) == [3]
    fill(producer, topic)
    with pytest.raises(InputError, match=r"messages of partition 0 of the topic `.*` are lost: .* has offset 3"):
        run(spark, tmp_path, **given)
    assert spark.read.parquet(str(tmp_path / "rows")).count() == 3


def backlog(chance) -> list[list[dict]]:
    """The messages of three partitions over three hours, whose density differs, none more than 20 s behind in its partition."""
    parts = []
    for part, hours in enumerate([(300, 20, 20), (20, 20, 300), (60, 200, 20)]):
        seconds = [hour * 3600 + chance.uniform(0, 3600) for hour, count in enumerate(hours) for _ in range(count)]
        pairs = [
            {"ts": second + step, "k": f"{part}/{number}", "type": kind}
            for number, second in enumerate(seconds)
            for step, kind in ((0, "A"), (5, "B"))
        ]
        parts.append(sorted(pairs, key=lambda event: event["ts"] + chance.uniform(0, 20)))
    return parts


@paged
def test_a_backlog_of_partitions_loses_nothing(spark, producer, servers, topic, seed):
    """One watermark for all partitions loses what is read unevenly, and says so; a time for each loses nothing."""
    parts = backlog(random.Random(f"{seed}/backlog"))
    for part, values in enumerate(parts):
        send(producer, topic, values, part=part)
    given = options(servers, topic, maxOffsetsPerTrigger="400")
    pairs = cepheid.query("SELECT * WHERE A ; B PARTITION BY k WITHIN 1 minute")
    figured = {}
    for name, more in (("one", {}), ("each", {"partition": "partition"})):
        value = F.from_json(F.col("value").cast("string"), "ts double, k string, type string")
        stream = kafka_source(spark).options(**given).load().select(value.alias("event"), "partition").select("event.*", "partition")
        events = stream.withColumn("ts", F.timestamp_seconds("ts"))
        query = events.transform(pairs.on(lateness="30 seconds", **more)).writeStream.format("noop").trigger(availableNow=True).start()
        with translated():
            query.awaitTermination(100)
        figured[name] = [batch for batch in map(figures, query.recentProgress) if batch["events"]]
        told = why(query)
    assert len(figured["one"]) == len(figured["each"]) == 5
    assert [sum(batch["late"] for batch in batches) > 0 for batches in figured.values()] == [True, False]
    warned = [batch for batch in figured["one"] if batch["late"] and batch["behind"]]
    assert warned
    assert all("partition=" in (warning(batch) or "") for batch in warned)
    assert not any(map(warning, figured["each"]))
    assert {batch["partitions"] for batch in figured["each"]} == {3}
    assert "the slowest of 3 partitions" in told
    waiting = figured["each"][-1]["waiting"]
    known = figured["each"][-1]["known"].timestamp()
    all_of_them = [event for values in parts for event in values]
    assert waiting == sum(event["ts"] >= known for event in all_of_them)
    assert sum(batch["matches"] for batch in figured["each"]) == sum(event["type"] == "B" and event["ts"] < known for event in all_of_them)


def test_wrong_options_on_spark(spark):
    with pytest.raises(InputError, match="needs the option subscribe"), translated():
        kafka_source(spark).option("kafka.bootstrap.servers", "x:1").load()


def test_the_columns_are_those_of_sparks_connector(spark, servers, topic):
    frame = kafka_source(spark).options(**options(servers, topic)).load()
    assert frame.isStreaming
    assert [(field.name, field.dataType.simpleString()) for field in frame.schema] == [
        ("key", "binary"),
        ("value", "binary"),
        ("topic", "string"),
        ("partition", "int"),
        ("offset", "bigint"),
        ("timestamp", "timestamp"),
        ("timestampType", "int"),
    ]
    assert pa.schema(kafka.SCHEMA).names == frame.columns
