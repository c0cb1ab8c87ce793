"""A key with half of all events, on Spark batch: the wall time beside the same rows without such a key, with slices of its time and without.

    python benchmarks/bench_hot_key.py [--rows N] [--repeat R]

Events of five types, one a second, of 50,000 keys in a Parquet file, and the same with one key for half of them. `even` has no hot key, `hot` has it
in one task, `sliced` spreads it (hot_keys=True), and `even_sliced` asks for that where there is none. All run in turns, in one session on all cores;
a figure is the median of R runs after one that does not count. What 200 tasks on 200 cores would take is reckoned from the rows that Spark gives
each: the largest task, beside that of `even`.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - the name that everybody gives this module

import cepheid
import circumstances
from bench_spark_batch import seconds, write_events
from cepheid.spark import local_session
from cepheid.spark.batch import Plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BAR = 1.3
"""Most times the wall time of the same rows without a hot key."""
KEYS, SHARE, TASKS = 50_000, 0.5, 200
QUERY = "SELECT * WHERE A AS x ; B AS y ; C AS z FILTER z[v > 0.999] PARTITION BY k WITHIN 1 minute"
"""Few matches with a hot key and without: what is measured is reading."""


def largest(events: DataFrame, *, hot_keys: bool) -> dict[str, int]:
    """The rows of the largest of TASKS tasks, and of all."""
    query = cepheid.query(QUERY)
    plan = Plan.of(query, query.on(hot_keys=hot_keys, buckets=TASKS).options, events)
    each = plan.distributed(plan.prepared()[0]).groupBy(F.spark_partition_id()).count()
    row = each.agg(F.max("count").alias("largest"), F.sum("count").alias("all")).collect()[0]
    return row.asDict()


def main() -> None:
    """Measure, reckon, keep the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    spark = local_session(app_name="cepheid-bench", memory="4g")
    query = cepheid.query(QUERY)
    with tempfile.TemporaryDirectory() as folder:
        events = {}
        for name, share in (("even", 0.0), ("hot", SHARE)):
            write_events(Path(folder) / f"{name}.parquet", options.rows, KEYS, share=share)
            events[name] = spark.read.parquet(str(Path(folder) / f"{name}.parquet"))
        cases = {"even": ("even", False), "hot": ("hot", False), "sliced": ("hot", True), "even_sliced": ("even", True)}
        frames = {case: events[name].transform(query.on(hot_keys=asked)) for case, (name, asked) in cases.items()}
        runs: list[dict[str, float]] = [{case: seconds(frame) for case, frame in frames.items()} for _ in range(options.repeat + 1)][1:]
        matches = {case: frame.count() for case, frame in frames.items()}
        tasks = {case: largest(events[name], hot_keys=asked) for case, (name, asked) in cases.items()}
    spark.stop()
    wall = {case: round(statistics.median(run[case] for run in runs), 3) for case in cases}
    record: dict[str, Any] = {
        "rows": options.rows,
        "query": QUERY,
        "share": SHARE,
        "bar": BAR,
        "wall_seconds": wall,
        "ratio": {case: round(wall[case] / wall["even"], 3) for case in cases},
        "matches": matches,
        "rows_of_200_tasks": tasks,
        "reckoned_ratio": {case: round(tasks[case]["largest"] / tasks["even"]["largest"], 3) for case in cases},
        "runs": [{case: round(value, 2) for case, value in run.items()} for run in runs],
    }
    circumstances.write("spark_hot_key", record)


if __name__ == "__main__":
    main()
