"""The main job as a stream: the same patterns over the same flights and weather, replayed in disorder, with the same matches.

Run it with ``make demo-stream`` (or ``python examples/flights_stream.py --out DIR``). Every flight and every reading arrives up to ten minutes late,
in an order that no clock would give; the queries of `flights.py` read them in micro-batches, with their state in RocksDB. What they found is
then compared with what the same objects find in the whole tables.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import flights as demo
import pyarrow.parquet as pq

import cepheid

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryProgress

    from cepheid.spark import Recognition

BY_AIRCRAFT = {"delay_cascade": demo.CASCADE, "flew_anyway": demo.FLEW_ANYWAY}
BY_AIRPORT = {"storm_cancellations": demo.STORM, "storm_readings": demo.STORM_READINGS, "flights_after_storm": demo.AFTER_STORM}
"""Queries with the same keys share one stream: its scan, its shuffle and its state."""

DISORDER = "10 minutes"
"""How late events arrive: each by a random time below this."""

LATENESS = DISORDER
"""How long the watermark waits for them."""

MICRO_BATCHES = 12
"""In how many pieces each table arrives."""

CLOSE = "2 days"
"""After the last flight an empty event so much later: a stream never ends, so only the time of an event can say that a window is over."""


def main() -> None:
    """Run both streams, then both batches, and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/flights_stream"), help="where matches and checkpoints are written")
    out: Path = parser.parse_args().out
    print("The same patterns over the same events, as a stream in disorder. Starting Spark ..", flush=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    with demo.messages_in(out.with_suffix(".log")):
        spark = demo.quiet_session("cepheid-flights-stream")
    same = report(spark, out)
    spark.stop()
    sys.exit(0 if same else "error: stream and batch differ")


def report(spark: SparkSession, out: Path) -> bool:
    """Both streams, with what they show to the terminal; whether they have found what batch finds."""
    from cepheid.spark import merge, on

    shutil.rmtree(out, ignore_errors=True)
    tables = dict(zip(("flights", "weather"), demo.tables(), strict=True))
    files, streams = {}, {}
    for name, table in tables.items():
        path = out / "input" / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path)
        files[name] = spark.read.parquet(str(path))
        streams[name] = arriving(spark, path, len(table))
    print(f"{len(tables['flights']):,} flights and {len(tables['weather']):,} weather readings, each arriving up to {DISORDER} late\n")

    aircraft, airport = (on({name: cepheid.query(text) for name, text in texts.items()}, order="id") for texts in (BY_AIRCRAFT, BY_AIRPORT))
    # Weather first, as in FROM: at equal times it comes before the flights.
    pairs = (
        ("by aircraft", aircraft, streams["flights"], files["flights"]),
        ("by airport", airport, merge(weather=streams["weather"], flights=streams["flights"]), merge(**dict(reversed(files.items())))),
    )
    same = True
    for name, recognition, stream, table in pairs:
        same &= compared(name, recognition, stream, table, out)
    return same


def arriving(spark: SparkSession, path: Path, rows: int) -> DataFrame:
    """A table as a stream in disorder, with a watermark that waits for the latest."""
    from cepheid.spark import replay

    page = -(-rows // MICRO_BATCHES)
    return replay(spark, path, disorder=DISORDER, seed=2013, rows_per_batch=page, close=CLOSE).withWatermark("ts", LATENESS)


def compared(name: str, recognition: Recognition, stream: DataFrame, table: DataFrame, out: Path) -> bool:
    """Run one group of queries as a stream and in batch; print the progress of the one, and how it compares with the other."""
    print(f"=== {name}: {len(recognition.queries)} queries over one stream")
    begin = time.perf_counter()
    place = out / name.replace(" ", "_")
    run(stream.transform(recognition), place)
    seconds = time.perf_counter() - begin
    streamed = table.sparkSession.read.parquet(str(place / "matches")).drop("decided_time").cache()
    batch = table.transform(recognition).cache()
    missing, extra = batch.exceptAll(streamed).count(), streamed.exceptAll(batch).count()
    for row in batch.groupBy("query").count().orderBy("query").collect():
        print(f"  {row['query']}: {row['count']:,} matches")
    verdict = "the same as in batch" if missing == extra == 0 else f"NOT as in batch: {missing:,} are missing, {extra:,} too many"
    print(f"{streamed.count():,} matches from the stream in {seconds:.1f} s: {verdict}\n")
    return missing == extra == 0


def run(matches: DataFrame, place: Path) -> None:
    """Read the stream to its end, into files; a line for every micro-batch."""
    from cepheid.spark import translated

    writer = matches.writeStream.format("parquet").option("path", str(place / "matches"))
    query = writer.option("checkpointLocation", str(place / "checkpoint")).trigger(availableNow=True).start()
    shown, found, ended = -1, 0, False
    with translated():
        while not ended:
            ended = bool(query.awaitTermination(1))
            for progress in query.recentProgress:
                if progress["batchId"] > shown:
                    shown = progress["batchId"]
                    found += print_progress(progress, found)
    print()


def print_progress(progress: StreamingQueryProgress, before: int) -> int:
    """One micro-batch in one line; how many matches it gave."""
    counts = progress["observedMetrics"].get("cepheid")
    found, late = ((counts[name] or 0) if counts else 0 for name in ("matches", "late"))
    watermark = progress["eventTime"].get("watermark", "")[:16].replace("T", " ")
    if progress["batchId"] == 0:
        watermark = "none yet"  # it is taken from the micro-batches before
    line = f"  micro-batch {progress['batchId']:>2}: {progress['numInputRows']:>7,} events, watermark {watermark}"
    print(f"{line}, {before + found:>7,} matches so far" + (f", {late:,} events too late" if late else ""), flush=True)
    return int(found)


if __name__ == "__main__":
    main()
