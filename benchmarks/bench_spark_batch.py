"""Spark batch against its own floor: `q.on` beside the same shuffle and sort with a mapInArrow that reads all and returns none.

    python benchmarks/bench_spark_batch.py [--rows N] [--repeat R]

Uniform events of five types in a Parquet file, with 1,000 keys and with 1 M keys. Floor and query run in turns, in one session; a figure is
the median of R runs after one that does not count. The floor reads exactly the columns and rows that the query's tasks read.

Then the query with a window in place of keys, over the same events: in slices of time on all cores (`slices`) beside one task for all.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F  # noqa: N812 - the name that everybody gives this module

import cepheid
import circumstances
from cepheid.spark import local_session
from cepheid.spark.batch import Plan
from cepheid.spark.columns import column_named
from cepheid.spark.recognition import on
from cepheid.spark.tasks.worker import OWN, SLICE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

BAR = 1.5
"""Most times the floor's wall time."""

QUERY = "SELECT * WHERE A AS x ; B AS y ; C AS z PARTITION BY k LIMIT 1"

WINDOWED = "SELECT COUNT(*) WHERE A ; B ; C WITHIN 1 minute"
"""Without keys: three of five events can matter, so that a window holds some 36."""


def write_events(path: Path, rows: int, keys: int, *, share: float = 0.0) -> None:
    """Uniform events of five types: one second after the other, each of a random key; share: of those that have the key 0 instead."""
    rng = np.random.default_rng(7)
    types = pa.DictionaryArray.from_arrays(pa.array(rng.integers(0, 5, rows), pa.int32()), pa.array(list("ABCDE")))
    times = pa.array(np.arange(rows) * 1_000_000, pa.timestamp("us", "UTC"))
    table = pa.table({"ts": times, "type": types.dictionary_decode(), "k": rng.integers(0, keys, rows), "v": rng.random(rows)})
    if share:
        table = table.set_column(2, "k", pa.array(np.where(rng.random(rows) < share, 0, table["k"].to_numpy())))
    pq.write_table(table, path, row_group_size=500_000)


def read_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The floor's function: every batch is read, nothing is returned."""
    for _ in batches:
        pass
    yield from ()


def seconds(frame: DataFrame) -> float:
    """Wall time of running a frame without keeping its rows."""
    start = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - start


def measure(events: DataFrame, repeat: int) -> dict[str, Any]:
    """Floor and query in turns."""
    query = cepheid.query(QUERY)
    plan = Plan.of(query, on(query).options, events)
    floor = plan.distributed(plan.prepared()[0]).mapInArrow(read_all, "nothing int")
    matches = events.transform(query.on())
    pairs = [(seconds(floor), seconds(matches)) for _ in range(repeat + 1)][1:]
    low, ours = (statistics.median(column) for column in zip(*pairs, strict=True))
    runs = [[round(value, 2) for value in pair] for pair in pairs]
    return {
        "floor_seconds": round(low, 3),
        "seconds": round(ours, 3),
        "ratio": round(ours / low, 3),
        "matches": matches.count(),
        "runs": runs,
    }


def measure_slices(events: DataFrame, repeat: int) -> dict[str, Any]:
    """One task and slices of time in turns; how many slices there were, and the share of events that were read twice."""
    query = cepheid.query(WINDOWED)
    plan = Plan.of(query, on(query).options, events)
    frames = [events.transform(query.on(buckets=1)), events.transform(query.on())]
    pairs = [[seconds(frame) for frame in frames] for _ in range(repeat + 1)][1:]
    one, ours = (statistics.median(column) for column in zip(*pairs, strict=True))
    own, number = column_named(OWN), column_named(SLICE)
    read = plan.distributed(plan.prepared()[0]).agg(
        F.count_if(own).alias("own"), F.count_if(~own).alias("again"), F.max(number).alias("last")
    )
    row = read.collect()[0]
    return {
        "one_task_seconds": round(one, 3),
        "seconds": round(ours, 3),
        "speedup": round(one / ours, 3),
        "slices": row.last + 1,
        "events": row.own,
        "read_again": round(row.again / row.own, 6),
        "matches": [frame.count() for frame in frames],
        "runs": [[round(value, 2) for value in pair] for pair in pairs],
    }


def main() -> None:
    """Measures both numbers of keys, and slices, and keeps the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    spark = local_session(app_name="cepheid-bench", memory="4g")
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        for keys in (1_000, 1_000_000):
            path = Path(folder) / f"{keys}.parquet"
            write_events(path, options.rows, keys)
            figures.append({"keys": keys, **measure(spark.read.parquet(str(path)), options.repeat)})
        slices = {"query": WINDOWED, **measure_slices(spark.read.parquet(str(path)), options.repeat)}
    spark.stop()
    record = {"rows": options.rows, "repeat": options.repeat, "query": QUERY, "bar_ratio": BAR, "run": figures, "slices": slices}
    circumstances.write("spark_batch", record)


if __name__ == "__main__":
    main()
