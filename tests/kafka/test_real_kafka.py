"""From a topic to a topic, with a real broker: Spark's connector and ours, restarts that repeat matches, late events, idle partitions, Avro."""

from __future__ import annotations

import datetime as dt
import json
import random
import time
import uuid

import pytest

pytest.importorskip("pyspark")
confluent_kafka = pytest.importorskip("confluent_kafka", reason="the extra kafka is not installed")

from confluent_kafka.admin import AdminClient, NewTopic  # noqa: E402
from pyspark.sql import functions as F  # noqa: E402

import cepheid  # noqa: E402
from cepheid.spark import split, translated  # noqa: E402
from cepheid.spark.sources.kafka import kafka_source  # noqa: E402

NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
PAIRS = cepheid.query("SELECT x.id AS first, y.id AS second WHERE A AS x ; B AS y PARTITION BY k WITHIN 10 seconds")
DDL = "ts double, k int, type string, id long"
PARTITIONS = 2


@pytest.fixture
def topics(servers):
    """Makes topics: their names by what they are for."""
    admin = AdminClient({"bootstrap.servers": servers})

    def make(*purposes):
        names = {purpose: f"{purpose}-{uuid.uuid4().hex[:8]}" for purpose in purposes}
        for made in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in names.values()]).values():
            made.result(30)
        return names

    return make


def drawn(seed, count=200):
    """Events, each second one, the keys of each partition apart."""
    chance = random.Random(seed)
    return [
        {"ts": NOON.timestamp() + second, "k": chance.randrange(4), "type": chance.choice("AB"), "id": second} for second in range(count)
    ]


def send(servers, topic, events):
    producer = confluent_kafka.Producer({"bootstrap.servers": servers})
    for event in events:
        producer.produce(topic, value=json.dumps(event).encode(), partition=event["k"] % PARTITIONS)
    assert producer.flush(30) == 0


def received(servers, topic):
    """The values of all messages of a topic."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": servers, "group.id": uuid.uuid4().hex, "enable.auto.commit": False})
    parts = [confluent_kafka.TopicPartition(topic, part, 0) for part in range(PARTITIONS)]
    left = {part.partition: consumer.get_watermark_offsets(part, timeout=30)[1] for part in parts}
    consumer.assign(parts)
    found = []
    while len(found) < sum(left.values()):
        message = consumer.poll(30)
        assert message is not None
        assert message.error() is None
        found.append(json.loads(message.value()))
    consumer.close()
    return found


def expected(events):
    table = [event | {"ts": dt.datetime.fromtimestamp(event["ts"], dt.UTC)} for event in events]
    matches = PAIRS.run(table, sort=True)
    return dict(
        zip(matches.to_arrow(match_id="id")["id"].to_pylist(), matches.to_arrow().select(["first", "second"]).to_pylist(), strict=True)
    )


def source(spark, servers, topic, kind):
    """The topic by Spark's connector, or ours."""
    reader = spark.readStream.format("kafka") if kind == "spark" else kafka_source(spark)
    return reader.option("kafka.bootstrap.servers", servers).option("subscribe", topic).option("startingOffsets", "earliest").load()


def events_in(frame):
    """JSON as events, with the partition each is from."""
    event = F.from_json(F.col("value").cast("string"), DDL)
    return frame.select(event.alias("event"), "partition").select("event.*", "partition").withColumn("ts", F.timestamp_seconds("ts"))


def as_messages(rows):
    """Rows as messages: the identity is the key."""
    return rows.select(F.col("match_id").alias("key"), F.to_json(F.struct("*")).alias("value"))


def end_of(events):
    """For each partition an event that moves the time over everything."""
    return [{"ts": events[-1]["ts"] + 1000, "k": k, "type": "Z", "id": -1} for k in range(PARTITIONS)]


@pytest.mark.parametrize("kind", ["spark", "cepheid"])
def test_repeated_matches_are_dropped_and_late_events_kept(spark, servers, topics, tmp_path, seed, kind):
    """A writer that fails after it has written: the micro-batch comes again, the topic has matches twice, and the identity says which."""
    names = topics("events", "matches", "late")
    events, late = drawn(seed), {"ts": NOON.timestamp() - 5000, "k": 1, "type": "A", "id": 777}
    failed = []

    def write(batch, number):
        batch.persist()
        for purpose, frame in zip(("matches", "late"), split(batch), strict=True):
            rows = as_messages(frame) if purpose == "matches" else frame.select(F.to_json(F.struct("*")).alias("value"))
            rows.write.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", names[purpose]).save()
        wrote = not batch.isEmpty()
        batch.unpersist()
        if wrote and not failed:
            failed.append(number)
            raise RuntimeError("the writer fails once it has written")

    def run():
        stream = events_in(source(spark, servers, names["events"], kind))
        matches = stream.transform(PAIRS.on(lateness="5 seconds", partition="partition", order="id", late=True, match_id="match_id"))
        checkpoint = str(tmp_path / "checkpoint")
        query = matches.writeStream.option("checkpointLocation", checkpoint).foreachBatch(write).trigger(availableNow=True).start()
        query.awaitTermination(300)

    send(servers, names["events"], events[:100])
    with pytest.raises(Exception, match="fails once it has written"):
        run()
    run()
    send(servers, names["events"], [*events[100:], late])
    run()
    send(servers, names["events"], end_of(events))
    run()
    found = received(servers, names["matches"])
    wanted = expected(events)
    once = {row["match_id"]: {name: row[name] for name in ("first", "second")} for row in found}
    assert failed
    assert len(found) > len(once) == len(wanted)
    assert once == wanted
    assert {row["id"] for row in received(servers, names["late"])} == {777}


def test_sparks_own_sink(spark, servers, topics, tmp_path, seed):
    names = topics("events", "matches")
    events = drawn(seed)
    send(servers, names["events"], events + end_of(events))
    for _ in range(2):
        stream = events_in(source(spark, servers, names["events"], "spark"))
        matches = stream.transform(PAIRS.on(lateness="5 seconds", partition="partition", order="id", match_id="match_id"))
        sink = as_messages(matches).writeStream.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", names["matches"])
        with translated():
            sink.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start().awaitTermination(300)
    assert {row["match_id"] for row in received(servers, names["matches"])} == expected(events).keys()


def test_avro_by_sparks_functions(spark, servers, topics, tmp_path, seed):
    from pyspark.sql.avro.functions import from_avro, to_avro

    (topic,) = topics("avro").values()
    events = drawn(seed)
    schema = json.dumps(
        {
            "type": "record",
            "name": "Event",
            "fields": [{"name": name, "type": kind} for name, kind in {"ts": "double", "k": "int", "type": "string", "id": "long"}.items()],
        }
    )
    rows = spark.createDataFrame([tuple(event.values()) for event in events + end_of(events)], "ts double, k int, type string, id long")
    # Avro's fields are never NULL here.
    fields = [F.coalesce(F.col(name), F.lit(value)).alias(name) for name, value in {"ts": 0.0, "k": 0, "type": "", "id": 0}.items()]
    coded = rows.select(to_avro(F.struct(*fields), schema).alias("value"), (F.col("k") % PARTITIONS).alias("partition"))
    coded.write.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", topic).save()
    raw = source(spark, servers, topic, "spark").select(from_avro("value", schema).alias("event"), "partition")
    stream = raw.select("event.*", "partition").withColumn("ts", F.timestamp_seconds("ts"))
    matches = stream.transform(PAIRS.on(lateness="5 seconds", partition="partition", order="id", match_id="match_id"))
    writer = matches.writeStream.format("parquet").option("path", str(tmp_path / "out"))
    for _ in range(2):
        writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start().awaitTermination(300)
    assert {row.match_id for row in spark.read.parquet(str(tmp_path / "out")).collect()} == expected(events).keys()


def test_an_idle_partition_is_not_waited_for(spark, servers, topics, tmp_path, seed):
    """One partition falls silent: what it holds up comes once it has been idle."""
    names = topics("events", "matches")
    events = [event | {"k": 1} for event in drawn(seed, 100)]
    send(servers, names["events"], [{"ts": events[0]["ts"], "k": 0, "type": "A", "id": -2}])
    stream = events_in(source(spark, servers, names["events"], "spark"))
    given = {"lateness": "5 seconds", "partition": "partition", "idle": "3 seconds", "order": "id", "match_id": "match_id"}
    sink = as_messages(stream.transform(PAIRS.on(**given))).writeStream.format("kafka").option("kafka.bootstrap.servers", servers)
    sink = sink.option("topic", names["matches"]).option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = sink.trigger(processingTime="500 milliseconds").start()
    wanted = {key for key, row in expected(events).items() if row["second"] < 90}
    found, start, last = set(), time.monotonic(), events[-1]["ts"]
    send(servers, names["events"], events)
    try:
        while not wanted <= found and time.monotonic() < start + 240:
            last += 0.001
            send(servers, names["events"], [{"ts": last, "k": 1, "type": "Z", "id": -1}])
            time.sleep(1)
            assert query.exception() is None
            found = {row["match_id"] for row in received(servers, names["matches"])}
    finally:
        query.stop()
    assert wanted <= found
