"""Table functions of SQL: a registered query and `cepheid_match` beside `q.on`, and beside a function that reads all and returns none.

    python benchmarks/bench_spark_sql.py [--rows N] [--keys K] [--repeat R]

Events of four types in a Parquet file, 80 % of them of a type that the query does not name. All run in turns, in one session; a figure is the
median of R runs after one that does not count. CPU seconds are of the JVM and its Python workers together, so that they mean something on a
busy machine too.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F  # noqa: N812 - the name that everybody gives this module
from pyspark.sql.functions import arrow_udtf

import cepheid
import circumstances
from cepheid.spark import local_session, register

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUERY = "SELECT * WHERE A AS a ; B AS b ; C AS c PARTITION BY k WITHIN 20000 seconds"
ABSENT = "SELECT * WHERE A AS a NOT FOLLOWED BY B FOR 20000 seconds PARTITION BY k"
TICKS = os.sysconf("SC_CLK_TCK")


class Nothing:
    """The floor: every batch is read, nothing is returned."""

    def eval(self, events: pa.RecordBatch) -> None:
        """Reads nothing of them."""


def write_events(path: Path, rows: int, keys: int) -> None:
    """One event per second, the keys in turns."""
    rng = np.random.default_rng(7)
    types = pa.DictionaryArray.from_arrays(
        pa.array(rng.choice(4, rows, p=[0.2 / 3, 0.2 / 3, 0.2 / 3, 0.8]), pa.int32()), pa.array(list("ABCX"))
    )
    times = pa.array(np.arange(rows) * 1_000_000, pa.timestamp("us", "UTC"))
    number = np.arange(rows)
    table = pa.table({"ts": times, "type": types.dictionary_decode(), "k": (number % keys).astype(np.int32), "v": rng.random(rows)})
    pq.write_table(table, path, row_group_size=max(1, rows // 8))


def frames(spark: SparkSession, events: DataFrame) -> dict[str, DataFrame]:
    """What is measured, by name: the calls as DataFrames make them, which are those of SQL."""
    query = cepheid.query(QUERY)
    found, match = register(spark, "found", query, schema=events), register(spark)
    absent = register(spark, "absent", ABSENT, schema=events, until="end")
    nothing: Any = arrow_udtf(Nothing, returnType="n long")

    def table(frame: DataFrame) -> Any:
        return frame.asTable().partitionBy("k").orderBy("ts")

    return {
        "on": events.transform(query.on()),
        "floor": nothing(table(events)),
        "registered": found(table(events)),
        "registered, types of the query": found(table(events.where("type IN ('A', 'B', 'C')"))),
        "cepheid_match": match(table(events), F.lit(QUERY)),
        "absence, on": events.transform(cepheid.query(ABSENT).on(until="end")),
        "absence, registered": absent(table(events)),
    }


def cpu_seconds() -> float:
    """Of this process and all below it, with those that have ended."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        found[int(stat.parent.name)] = int(fields[1]), sum(map(int, fields[11:15])) / TICKS
    mine = {os.getpid()}
    while below := {process for process, (parent, _) in found.items() if parent in mine} - mine:
        mine |= below
    return sum(seconds for process, (_, seconds) in found.items() if process in mine)


def run(frame: DataFrame) -> tuple[float, float]:
    """Wall and CPU seconds of running a frame without keeping its rows."""
    start, used = time.perf_counter(), cpu_seconds()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - start, cpu_seconds() - used


def main() -> None:
    """Measures all forms and keeps the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--keys", type=int, default=1_000)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    spark = local_session(app_name="cepheid-bench", memory="4g")
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.parquet"
        write_events(path, options.rows, options.keys)
        events = spark.read.parquet(str(path))
        forms = frames(spark, events)
        runs: dict[str, list[tuple[float, float]]] = {name: [] for name in forms}
        for _ in range(options.repeat + 1):
            for name, frame in forms.items():
                runs[name].append(run(frame))
        for name, pairs in runs.items():
            wall, used = (statistics.median(column) for column in zip(*pairs[1:], strict=True))
            figures[name] = {
                "seconds": round(wall, 2),
                "rows_per_second": round(options.rows / wall),
                "cpu_seconds": round(used, 2),
                "runs": [[round(value, 2) for value in pair] for pair in pairs[1:]],
            }
        matches = {name: forms[name].count() for name in forms if name != "floor"}
    spark.stop()
    record = {
        "rows": options.rows,
        "keys": options.keys,
        "repeat": options.repeat,
        "query": QUERY,
        "absence": ABSENT,
        "matches": matches,
        "run": figures,
    }
    circumstances.write("spark_sql", record)


if __name__ == "__main__":
    main()
