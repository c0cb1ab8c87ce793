"""Spark streams against their own floor: `q.on` beside the same pipeline with an empty engine, with few and with many keys, one query and many.

    python benchmarks/bench_spark_stream.py [--rows N] [--batches N] [--minutes M] [--only NAME]

Events of five types, of which A, B and C are a fifth together, in Parquet files, one per micro-batch of N rows. The empty engine gets the same blobs,
reads them, and keeps and gives nothing. Figures are medians over micro-batches, without the first ones, from Spark's own progress; engine and floor
run in turns in one session.

throughput   events per second without a key, at 1, 1,000 and 100,000 keys, and their ratio to the empty engine (bar 0.7); of the micro-batches
             whose window is full, where the state has its whole size
overhead     milliseconds per micro-batch of 1,000 rows, over a pipeline without state (bar 500)
queries      100 queries over one stream, beside one query
steady       state and memory over M minutes of micro-batches (default 0: not measured)
"""

from __future__ import annotations

import argparse
import math
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
from pyspark.sql import Row
from pyspark.sql import functions as F  # noqa: N812 - the name that everybody gives this module

import cepheid
import circumstances
from cepheid.spark import local_session, on, operator, stream
from cepheid.spark.tasks.visits import BLOB

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

SHARE = 0.7
"""Least share of the empty engine's throughput."""

OVERHEAD = 500
"""Most milliseconds per micro-batch over a pipeline without state."""

TURNS = 3
"""How often engine and floor are measured, one after the other: the machine has fast and slow minutes."""

WARMING = 3
"""First micro-batches, which do not count."""

DDL = "ts timestamp, type string, k long, v double"
KEYS = {0: 0.05, 1: 0.05, 1_000: 50, 100_000: 1_200}
"""Seconds of windows in which a key has about ten events that matter: an event comes each millisecond."""


class Empty(stream.BucketProcessor):
    """The stateful operator without an engine: reads what comes, keeps as good as nothing, gives its counts alone."""

    def _step(self, tables: list[pa.Table], *arguments: Any, **options: Any) -> Iterator[Row]:  # noqa: ARG002 - as the real one
        self.state.get()
        self.state.update((b"nothing",))
        events = sum(table.num_rows for table in tables)
        counts = dict.fromkeys(stream.COUNTS, 0) | {"events": events} | dict.fromkeys(stream.PARTITION_LEVELS)
        yield Row(**{stream.MOMENT: operator.EPOCH.replace(year=2200), BLOB: None, **counts})


def write_events(folder: Path, *, rows: int, batches: int, keys: int) -> None:
    """One file per micro-batch; an event each millisecond; A, B and C are a fifth of all."""
    rng = np.random.default_rng(5)
    folder.mkdir()
    names = pa.array(["A", "B", "C", "X", "Y"])
    for number in range(batches):
        kinds = names.take(pa.array(rng.choice(5, rows, p=[1 / 15, 1 / 15, 1 / 15, 0.4, 0.4])))
        times = pa.array((number * rows + np.arange(rows)) * 1_000 + 1_700_000_000_000_000, pa.timestamp("us", "UTC"))
        table = pa.table({"ts": times, "type": kinds, "k": rng.integers(0, max(keys, 1), rows), "v": rng.random(rows)})
        path = folder / f"{number:06}.parquet"
        pq.write_table(table, path)
        os.utime(path, (1_700_000_000 + number,) * 2)


def progress(
    spark: SparkSession, folder: Path, made: Callable[[DataFrame], DataFrame], *, memory: list[dict[str, int]] | None = None, **trigger: Any
) -> list[dict[str, Any]]:
    """Run a pipeline over the files of a folder; Spark's progress of each micro-batch that read something.

    memory: gets the mebibytes of this process and of all that it started, every three minutes, see `_memory`.
    """
    files, polls = len(list(folder.iterdir())), 0
    frame = spark.readStream.schema(DDL).option("maxFilesPerTrigger", 1).parquet(str(folder))
    checkpoint = tempfile.mkdtemp()
    seen: list[dict[str, Any]] = []
    query = (
        made(frame)
        .writeStream.format("noop")
        .option("checkpointLocation", checkpoint)
        .trigger(**(trigger or {"availableNow": True}))
        .start()
    )
    last = -1
    while query.isActive:
        query.awaitTermination(1)
        polls += 1
        if memory is not None and polls % 180 == 10:
            memory.append(_memory(spark))
        for each in query.recentProgress:
            if each["batchId"] > last:
                last = each["batchId"]
                seen.append(each)
        if trigger and len(seen) >= files:
            query.stop()
    if error := query.exception():
        raise error
    shutil.rmtree(checkpoint)
    return [each for each in seen if each["numInputRows"]]


def milliseconds(*runs: list[dict[str, Any]], warming: int = WARMING) -> float:
    """Median duration of a micro-batch of runs, without so many first ones of each."""
    return statistics.median(each["durationMs"]["triggerExecution"] for seen in runs for each in seen[warming:])


def query_of(window: str, *, keyed: bool = True) -> cepheid.Query:
    """The query of all figures."""
    return cepheid.query(f"SELECT * WHERE A AS x ; B AS y ; C AS z {'PARTITION BY k' if keyed else ''} WITHIN {window}")


def emptied(made: Callable[[], DataFrame]) -> DataFrame:
    """What a function makes, with the empty engine in the place of ours."""
    ours = stream.BucketProcessor
    stream.BucketProcessor = Empty  # type: ignore[misc]  # for the length of one plan
    try:
        return made()
    finally:
        stream.BucketProcessor = ours  # type: ignore[misc]


def throughput(spark: SparkSession, folder: Path, rows: int, batches: int) -> list[dict[str, Any]]:
    """Engine and floor in turns, for each number of keys; without a key the automaton runs in one task."""
    figures = []
    for keys, seconds in KEYS.items():
        files, window = folder / f"keys-{keys}", f"{round(seconds * 1000)} milliseconds"
        warming = WARMING + math.ceil(seconds * 1000 / rows)
        if batches <= warming:
            raise SystemExit(f"The window of {keys} keys is full after {warming} micro-batches of {rows} rows: --batches {2 * warming}.")
        write_events(files, rows=rows, batches=batches, keys=keys)
        recognition = query_of(window, keyed=keys > 0).on(lateness="1 second")
        empty, seen = [], []
        for _ in range(TURNS):
            empty.append(progress(spark, files, lambda frame, r=recognition: emptied(lambda: frame.transform(r))))
            seen.append(progress(spark, files, lambda frame, r=recognition: frame.transform(r)))
        floor, ours = milliseconds(*empty, warming=warming), milliseconds(*seen, warming=warming)
        counts = [each["observedMetrics"]["cepheid"] for each in seen[-1]]
        figures.append(
            {
                "keys": keys,
                "window": window,
                "micro_batches": (batches - warming) * TURNS,
                "floor_ms": floor,
                "ms": ours,
                "events_per_second": round(rows / ours * 1000),
                "share": round(floor / ours, 3),
                "matches": sum(count["matches"] or 0 for count in counts),
                "state_bytes": counts[-1]["state_bytes"],
            }
        )
        print(figures[-1], flush=True)
    return figures


def overhead(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Small micro-batches beside a pipeline without state."""
    files = folder / "small"
    write_events(files, rows=1_000, batches=25, keys=100)
    stateless = milliseconds(progress(spark, files, lambda frame: frame.where(F.col("type").isin("A", "B", "C")).select("ts", "k")))
    ours = milliseconds(progress(spark, files, lambda frame: frame.transform(query_of("50 seconds").on(lateness="1 second"))))
    figures = {"rows": 1_000, "stateless_ms": stateless, "ms": ours, "overhead_ms": round(ours - stateless)}
    print(figures, flush=True)
    return figures


def queries(spark: SparkSession, folder: Path, rows: int, batches: int) -> dict[str, Any]:
    """One query and a hundred over one stream of 1,000 keys."""
    files = folder / "keys-1000"
    if not files.exists():
        write_events(files, rows=rows, batches=batches, keys=1_000)
    many = {
        f"q{number}": cepheid.query(
            f"SELECT * WHERE A AS x ; B AS y ; C AS z FILTER x[v < {number % 10 / 10 + 0.1}] AND z[v > {number // 10 / 10}]"
            " PARTITION BY k WITHIN 50 seconds"
        )
        for number in range(100)
    }
    one = milliseconds(progress(spark, files, lambda frame: frame.transform(many["q0"].on(lateness="1 second"))))
    hundred = milliseconds(progress(spark, files, lambda frame: frame.transform(on(many, lateness="1 second"))))
    figures = {"queries": 100, "one_ms": one, "ms": hundred, "times_one": round(hundred / one, 2)}
    print(figures, flush=True)
    return figures


def steady(spark: SparkSession, folder: Path, minutes: float) -> dict[str, Any]:
    """State and memory of a stream that runs for some minutes, one micro-batch of 10,000 events per second or so."""
    files = folder / "steady"
    write_events(files, rows=10_000, batches=max(10, int(minutes * 60)), keys=1_000)
    memory: list[dict[str, int]] = []
    recognition = query_of("50 seconds").on(lateness="1 second")
    started = time.perf_counter()
    seen = progress(spark, files, lambda frame: frame.transform(recognition), memory=memory, processingTime="1 second")
    state = [each["observedMetrics"]["cepheid"]["state_bytes"] or 0 for each in seen]
    took = [each["durationMs"]["triggerExecution"] for each in seen]
    tenth = max(1, len(seen) // 10)
    figures = {
        "minutes": round((time.perf_counter() - started) / 60, 1),
        "micro_batches": len(seen),
        "events": sum(each["numInputRows"] for each in seen),
        "state_bytes": [statistics.median(state[start : start + tenth]) for start in range(0, len(seen), tenth)],
        "ms": [statistics.median(took[start : start + tenth]) for start in range(0, len(seen), tenth)],
        "memory": {name: [each[name] for each in memory] for name in memory[0]},
    }
    print(figures, flush=True)
    return figures


def _memory(spark: SparkSession) -> dict[str, int]:
    """Mebibytes of Spark's Java, and of Python: this process and the workers, of which there are so many; what processes share counts in parts.

    Java takes what it may (4 GiB here) before it collects: so also what is left of its heap after a collection.
    """
    parents: dict[int, int] = {}
    found: dict[int, tuple[str, int]] = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines() if ":" in line)
            shares = dict(line.split(":", 1) for line in (process / "smaps_rollup").read_text().splitlines()[1:])
        except OSError:  # it has ended, or is another user's
            continue
        parents[int(process.name)] = int(status["PPid"])
        found[int(process.name)] = (status["Name"].strip(), int(shares["Pss"].split()[0]))
    ours = {os.getpid()}
    while more := {process for process, parent in parents.items() if parent in ours} - ours:
        ours |= more
    runtime = spark._jvm.java.lang.Runtime.getRuntime()  # noqa: SLF001 - Spark shows its Java nowhere else
    java = [kibibytes for name, kibibytes in map(found.__getitem__, ours) if name == "java"]
    python = [kibibytes for name, kibibytes in map(found.__getitem__, ours) if name.startswith("python")]
    runtime.gc()
    return {
        "java_mib": sum(java) // 1024,
        "java_live_mib": (runtime.totalMemory() - runtime.freeMemory()) >> 20,
        "python_mib": sum(python) // 1024,
        "python_processes": len(python),
    }


def main() -> None:
    """Measures, and keeps the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--batches", type=int, default=30)
    parser.add_argument("--minutes", type=float, default=0)
    parser.add_argument("--only", choices=["throughput", "overhead", "queries", "steady"])
    options = parser.parse_args()
    spark = local_session(app_name="cepheid-bench", memory="4g")
    figures: dict[str, Any] = {"rows": options.rows, "bars": {"share": SHARE, "overhead_ms": OVERHEAD}}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.only in {None, "throughput"}:
            figures["throughput"] = throughput(spark, folder, options.rows, options.batches)
        if options.only in {None, "overhead"}:
            figures["overhead"] = overhead(spark, folder)
        if options.only in {None, "queries"}:
            figures["queries"] = queries(spark, folder, options.rows, options.batches)
        if options.only == "steady" or options.minutes:
            figures["steady"] = steady(spark, folder, options.minutes or 1)
    spark.stop()
    circumstances.write("spark_stream" if options.only is None else f"spark_stream_{options.only}", figures)


if __name__ == "__main__":
    main()
