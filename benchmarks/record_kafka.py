"""From an event in Kafka to its match in Kafka: the delay, beside that of a stateful operator that only passes events on.

    make kafka-test, then
    CEPHEID_KAFKA=out/kafka .venv-spark-4.2/bin/python benchmarks/record_kafka.py [--seconds N] [--rounds N]

Two streams in turn, with the same source, sink and trigger (0.5 s): pairs of events of one key, with match_id=; and transformWithState with a
processor that gives each B back, without event time. First as `local_session` has it, then (`tcp`) where Spark and its Python workers talk over TCP,
as they do where nobody says anything else. A delay is the time from the timestamp of the message of the B, which its producer gives, to
that of the message that Spark's sink gives. The time until a stream's first match, and the seconds after it, do not count.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

import numpy as np

import circumstances

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/kafka"))
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import Row
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming import StatefulProcessor

import cepheid
import conftest

PER_SECOND, KEYS, PARTITIONS = 200, 100, 2
WARM, PATIENCE = 20, 180
"""Seconds of each stream that do not count, from its first match on; and seconds until it must have one, or all."""

PAIRS = cepheid.query("SELECT y.id AS id WHERE A AS x ; B AS y PARTITION BY k WITHIN 1 minute CONSUME BY PARTITION")


class Passing(StatefulProcessor):
    """Keeps nothing, and gives each B."""

    def init(self, handle: Any) -> None:
        """Has a value, which stays empty."""
        self.state = handle.getValueState("nothing", "n int")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:  # noqa: N802, N803
        """The events of a micro-batch."""
        del key, timerValues
        for row in rows:
            if row.type == "B":
                yield Row(id=row.id, ts=row.ts)

    def close(self) -> None:
        """Nothing is open."""


def passed(events: Any) -> Any:
    """The B of a stream, through a stateful operator."""
    keyed = events.withColumn("bucket", F.pmod(F.hash("k"), F.lit(8))).groupBy("bucket")
    return keyed.transformWithState(Passing(), "id long, ts timestamp", "append", "None")


def delays(spark: Any, servers: str, what: str, seconds: int) -> np.ndarray[Any, Any]:
    """The delays of one stream, in milliseconds."""
    admin = AdminClient({"bootstrap.servers": servers})
    names = [f"{what}-{uuid.uuid4().hex[:6]}" for _ in range(2)]
    for made in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in names]).values():
        made.result(30)
    raw = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", names[0]).load()
    event = F.from_json(F.col("value").cast("string"), "k int, type string, id long")
    events = raw.select(event.alias("event"), F.col("timestamp").alias("ts")).select("event.*", "ts")
    found = events.transform(PAIRS.on(lateness="0 seconds", match_id="match_id")) if what == "cepheid" else passed(events)
    sink = found.select(F.to_json(F.struct("id")).alias("value")).writeStream.format("kafka")
    with tempfile.TemporaryDirectory() as folder:
        sink = sink.option("kafka.bootstrap.servers", servers).option("topic", names[1]).option("checkpointLocation", folder)
        query = sink.trigger(processingTime="500 milliseconds").start()
        try:
            sent, first = send(servers, *names, seconds)
            measured = [number for number in sent if number >= first and number % 2]
            end = time.monotonic() + PATIENCE
            while time.monotonic() < end:
                came = {number: stamp for stamp, number in received(servers, names[1])}
                # The last events wait for a later one.
                told = [came[number] - sent[number] for number in measured if number in came]
                if len(told) > 0.98 * len(measured):
                    return np.array(told)
                time.sleep(2)
        finally:
            query.stop()
    raise RuntimeError(f"{what}: after {PATIENCE} s there are {len(told)} of {len(measured)}")


def send(servers: str, topic: str, out: str, seconds: int) -> tuple[dict[int, int], int]:
    """Send events at a steady rate: each number's time, in milliseconds, and the number of the first one that counts."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
    watched = Consumer({"bootstrap.servers": servers, "group.id": uuid.uuid4().hex})
    sent: dict[int, int] = {}
    first, number, begin = sys.maxsize, 0, time.time()
    while number < first + seconds * PER_SECOND:
        wait = begin + number / PER_SECOND - time.time()
        if wait > 0:
            time.sleep(wait)
        if first == sys.maxsize and number % PER_SECOND == 0:
            if any(watched.get_watermark_offsets(TopicPartition(out, part), timeout=30)[1] for part in range(PARTITIONS)):
                first = number + WARM * PER_SECOND
            elif number > PATIENCE * PER_SECOND:
                raise RuntimeError(f"after {PATIENCE} s there is no match")
        key = number // 2 % KEYS
        sent[number] = int(time.time() * 1000)
        value = json.dumps({"k": key, "type": "AB"[number % 2], "id": number}).encode()
        producer.produce(topic, value=value, partition=key % PARTITIONS, timestamp=sent[number])
        producer.poll(0)
        number += 1
    assert producer.flush(30) == 0
    watched.close()
    return sent, first


def received(servers: str, topic: str) -> list[tuple[int, int]]:
    """The timestamps and numbers of a topic's messages."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": uuid.uuid4().hex})
    parts = [TopicPartition(topic, part, 0) for part in range(PARTITIONS)]
    left = sum(consumer.get_watermark_offsets(part, timeout=30)[1] for part in parts)
    consumer.assign(parts)
    found = []
    while len(found) < left:
        message = consumer.poll(30)
        assert message is not None
        found.append((message.timestamp()[1], json.loads(message.value())["id"]))
    consumer.close()
    return found


def main() -> None:
    """Measure in turn, record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    before = circumstances.circumstances()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        servers = stack.enter_context(conftest.broker(folder))
        figures: dict[str, Any] = {"events_per_second": PER_SECOND, "keys": KEYS, "trigger_ms": 500}
        figures |= measured(servers, options)
        figures["tcp"] = measured(servers, options, **{"spark.python.unix.domain.socket.enabled": "false"})
    circumstances.write("kafka", figures, before=before)


def measured(servers: str, options: argparse.Namespace, **settings: str) -> dict[str, Any]:
    """The delays of both streams, in a session with these settings."""
    found: dict[str, list[np.ndarray[Any, Any]]] = {"cepheid": [], "empty": []}
    spark = conftest.session(**settings)
    figures: dict[str, Any] = {"spark": spark.version}
    try:
        for _ in range(options.rounds):
            for what, own in found.items():
                own.append(delays(spark, servers, what, options.seconds))
    finally:
        spark.stop()
    for what, own in found.items():
        together = np.concatenate(own)
        each = [{f"p{part}_ms": round(float(np.percentile(values, part))) for part in (50, 99)} for values in own]
        figures[what] = {"matches": len(together)} | {f"p{part}_ms": round(float(np.percentile(together, part))) for part in (50, 99)}
        figures[what]["rounds"] = each
    figures["ratio"] = {name: round(figures["cepheid"][name] / figures["empty"][name], 2) for name in ("p50_ms", "p99_ms")}
    return figures


if __name__ == "__main__":
    main()
