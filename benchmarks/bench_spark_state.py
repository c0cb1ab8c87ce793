"""What a micro-batch of few events costs a stream beside many open keys: its time and what it writes, with pages and without.

    python benchmarks/bench_spark_state.py [--events N] [--batches N] [--keys N] [--costs]

`A ; B PARTITION BY k WITHIN 2 days`: a first micro-batch opens all keys, then come micro-batches of N events of keys by chance, each of which starts
or ends a match. Medians over the later half of them, when a bucket has the form that costs less; bytes are those of the changelogs of RocksDB, which
is what goes into the checkpoint for each micro-batch. The runs are in turns in one session, and Spark's own state is beside: a count for each key.

state        10,000 and 1,000,000 keys: pages where they cost less (`pages`), one value for each bucket (`whole`), and Spark's own (`spark`); `each`:
             bytes written for each event. With --keys N, N keys are another one, in pages from the
             start (`paged`) and Spark's own
active       1 % of 1,000,000 keys have an event in each micro-batch, and each of 100,000 keys has one, about: as `state`
empty        an operator of Spark's with a value of 8 bytes for each bucket, and no more: what a visit costs that does nothing
key          microseconds of a core that a key of a whole bucket takes: 1,000,000 keys less 10,000
costs        microseconds of a core (with --costs, which records nothing: they need a quiet machine): a read and a write of a page through Spark's
             MapState alone; then, from streams with one form, `page` of a page that has events (1,000 events less 100), and `change` of a page that
             is made (first micro-batches, in pages less whole). These and `key` are the constants of `cepheid.spark.tasks.pages`
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F  # noqa: N812 - the name that everybody gives this module
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

import cepheid
import circumstances
from cepheid.spark import local_session, on
from cepheid.spark.operator import PAGE, STATE, SparkPages
from cepheid.spark.tasks import unit
from cepheid.spark.tasks.pages import PAGE_KEYS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import DataFrame, Row, SparkSession

DDL = "ts timestamp, type string, k long, v double"
QUERY = "SELECT * WHERE A ; B PARTITION BY k WITHIN 2 days"
START, SECOND = 1_700_000_000_000_000, 1_000_000
KEYS = (10_000, 1_000_000)
ACTIVE = ((1_000_000, 10_000, 32), (100_000, 100_000, 12))
"""Keys, events of each micro-batch, and micro-batches, where more than a few are active. A bucket turns to pages after some 11 of the first ones."""

CORES = 2

CALLS, PAGE_BYTES = 2_000, 400
"""Reads and writes that are measured, and bytes of a page."""


def write_events(folder: Path, *, keys: int, events: int, batches: int) -> None:
    """A file that opens all keys, and files of few events, a second apart."""
    rng = np.random.default_rng(5)
    folder.mkdir()
    for number in range(batches + 1):
        some = np.arange(keys) if number == 0 else rng.integers(0, keys, events)
        times = pa.array(np.full(len(some), START + number * SECOND), pa.timestamp("us", "UTC"))
        kinds = np.where(np.arange(len(some)) % 2 if number else np.zeros(len(some), bool), "B", "A")
        path = folder / f"{number:06}.parquet"
        pq.write_table(pa.table({"ts": times, "type": kinds, "k": some, "v": rng.random(len(some))}), path)
        os.utime(path, (1_700_000_000 + number,) * 2)


def run(spark: SparkSession, folder: Path, made: Callable[[DataFrame], DataFrame], *, mode: str = "append") -> dict[str, Any]:
    """The median time and bytes of the later half of the micro-batches, and how many pass before; of one stream over the files."""
    frame = spark.readStream.schema(DDL).option("maxFilesPerTrigger", 1).parquet(str(folder))
    checkpoint = Path(tempfile.mkdtemp())
    query = made(frame).writeStream.format("noop").outputMode(mode)
    started = query.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    seen: dict[int, dict[str, Any]] = {}
    while started.isActive:
        started.awaitTermination(0.2)
        seen |= {each["batchId"]: each for each in started.recentProgress}
    if error := started.exception():
        raise error
    batches = sorted(number for number, each in seen.items() if each["numInputRows"])[1:]
    later = batches[len(batches) // 2 :]
    seconds = [seen[number]["durationMs"]["triggerExecution"] / 1000 for number in later]
    found = {
        "seconds": round(statistics.median(seconds), 3),
        "opened": seen[0]["durationMs"]["triggerExecution"] / 1000,
        "bytes": round(statistics.median(written(checkpoint, number + 1) for number in later)),
        "first_seconds": [round(seen[number]["durationMs"]["triggerExecution"] / 1000, 2) for number in batches[:8]],
    }
    shutil.rmtree(checkpoint)
    return found


def written(checkpoint: Path, version: int) -> int:
    """Bytes of the changelogs of a version of all state stores; 0 where Spark has deleted them."""
    return sum(
        path.stat().st_size for path in checkpoint.glob("state/**/*.changelog") if path.name.split("_")[0].split(".")[0] == str(version)
    )


def forced(pages: int | None, made: Callable[[DataFrame], DataFrame]) -> Callable[[DataFrame], DataFrame]:
    """The same, planned with `unit.FORCED`."""

    def plan(frame: DataFrame) -> DataFrame:
        before, unit.FORCED = unit.FORCED, pages
        try:
            return made(frame)
        finally:
            unit.FORCED = before

    return plan


def ours(frame: DataFrame) -> DataFrame:
    """The matches of the query."""
    return on(cepheid.query(QUERY), lateness="0 seconds", buckets=8)(frame)


def counts(frame: DataFrame) -> DataFrame:
    """Spark's own state: a count for each key."""
    return frame.groupBy("k").agg(F.count("*").alias("n"), F.max("ts").alias("last"))


def empty(frame: DataFrame) -> DataFrame:
    """A stateful operator that keeps a number for each of 8 buckets."""
    grouped = frame.withColumn("bucket", F.col("k") % 8).groupBy("bucket")
    return grouped.transformWithState(Empty(), "n long", "append", "None")


WAYS: dict[str, tuple[Callable[[DataFrame], DataFrame], str]] = {
    "pages": (forced(None, ours), "append"),
    "paged": (forced(PAGE_KEYS, ours), "append"),
    "whole": (forced(0, ours), "append"),
    "spark": (counts, "update"),
    "empty": (empty, "append"),
}


def state(spark: SparkSession, folder: Path, *, keys: int, events: int, batches: int, ways: Sequence[str]) -> dict[str, Any]:
    """Some ways for a number of keys."""
    files = folder / f"keys-{keys}-{events}"
    write_events(files, keys=keys, events=events, batches=batches)
    found: dict[str, Any] = {"keys": keys, "events": events}
    for way in ways:
        made, mode = WAYS[way]
        found[way] = run(spark, files, made, mode=mode)
        found[way]["each"] = round(found[way]["bytes"] / events)
        print({"keys": keys, "events": events, way: found[way]}, flush=True)
    shutil.rmtree(files)
    return found


class Empty(StatefulProcessor):
    """Counts the events of a bucket."""

    def init(self, handle: Any) -> None:
        """Called once per task."""
        self.value = handle.getValueState("value", "n long")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: ARG002, N802, N803 - Spark's names
        """Nothing comes out."""
        known = self.value.get()
        self.value.update(((0 if known is None else known[0]) + sum(1 for _ in rows),))
        return iter(())

    def close(self) -> None:
        """Nothing is open."""


class Calls(StatefulProcessor):
    """Reads and writes pages, and says how long that took."""

    def init(self, handle: Any) -> None:
        """Called once per task."""
        self.pages = SparkPages(handle.getMapState("pages", PAGE, STATE))

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: ARG002, N802, N803 - Spark's names
        """Microseconds of a write, and of a read."""
        from pyspark.sql import Row

        page = np.random.default_rng(1).bytes(PAGE_BYTES)
        list(rows)
        moments = [time.perf_counter()]
        for _ in range(2):
            for number in range(CALLS):
                self.pages.put(number, page)
            moments.append(time.perf_counter())
        for number in range(CALLS):
            self.pages.get(number)
        moments.append(time.perf_counter())
        yield Row(write=1e6 * (moments[2] - moments[1]) / CALLS, read=1e6 * (moments[3] - moments[2]) / CALLS)

    def close(self) -> None:
        """Nothing is open."""


def costs(spark: SparkSession, folder: Path) -> dict[str, float]:
    """Microseconds of calls of Spark's state, and of a core for keys and pages."""
    write_events(folder / "costs", keys=1, events=1, batches=1)
    frame = spark.readStream.schema(DDL).parquet(str(folder / "costs"))
    made = frame.groupBy("k").transformWithState(Calls(), "write double, read double", "update", "None")
    started = made.writeStream.format("memory").queryName("costs").option("checkpointLocation", str(folder / "checkpoint"))
    started.outputMode("update").trigger(availableNow=True).start().awaitTermination()
    row = spark.table("costs").first()
    assert row is not None
    found = {}
    for keys, events, pages in ((10_000, 100, 0), (100_000, 100, 0), (100_000, 100, PAGE_KEYS), (100_000, 1000, PAGE_KEYS)):
        files = folder / f"costs-{keys}-{events}-{pages}"
        write_events(files, keys=keys, events=events, batches=12)
        found[keys, events, pages] = run(spark, files, forced(pages, ours))
    _, whole, some, many = found.values()  # the first is slow: code is compiled
    pages = 100_000 / PAGE_KEYS
    touched = pages * ((1 - 1 / pages) ** 100 - (1 - 1 / pages) ** 1000)
    return {
        "write": round(row.write),
        "read": round(row.read),
        "page": round(1e6 * CORES * (many["seconds"] - some["seconds"]) / touched),
        "change": round(1e6 * CORES * (some["opened"] - whole["opened"]) / pages),
    }


def main() -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=100)
    parser.add_argument("--batches", type=int, default=40)
    parser.add_argument("--keys", type=int)
    parser.add_argument("--costs", action="store_true")
    options = parser.parse_args()
    before = circumstances.circumstances()
    spark = local_session(cores=CORES, memory="4g", app_name="state", settings={"spark.sql.shuffle.partitions": "2"})
    folder = Path(tempfile.mkdtemp())
    figures: dict[str, Any] = {"events": options.events, "batches": options.batches}
    if options.costs:
        print(costs(spark, folder), flush=True)
    else:
        sizes = {"events": options.events, "batches": options.batches}
        three = ("pages", "whole", "spark")
        figures["empty"] = state(spark, folder, keys=KEYS[0], **sizes, ways=["empty"])["empty"]
        figures["state"] = [state(spark, folder, keys=keys, **sizes, ways=three) for keys in KEYS]
        few, many = (each["whole"]["seconds"] for each in figures["state"])
        if options.keys is not None:
            figures["state"].append(state(spark, folder, keys=options.keys, **sizes, ways=("paged", "spark")))
        figures["active"] = [state(spark, folder, keys=each[0], events=each[1], batches=each[2], ways=three) for each in ACTIVE]
        figures["key"] = round(1e6 * CORES * (many - few) / (KEYS[1] - KEYS[0]), 1)
    shutil.rmtree(folder)
    spark.stop()
    if not options.costs:
        circumstances.write("spark_state", figures, before=before)


if __name__ == "__main__":
    main()
