"""Rules that change over a stream of Spark: what they cost beside rules that stay, and whether kills lose or double a match.

    python benchmarks/record_spark_rules.py [--events N] [--rules N] [--changes N] [--kills N] [--seed S]

The rules are those of `bench_rules`, each about one id, and the events come in files of `FILE`, one in a micro-batch, with the rules that begin two
files later. Three streams to files: `still`, all rules act from the beginning; `changing`, as many changes, evenly spread, each of which gives one
rule another limit; and `killed`, the same, whose driver and JVM are killed at random points and started again from the checkpoint. Figures are
microseconds of the clock per event in micro-batches (addBatch), the median of those behind the first `COMPILING`, in which the workers compile the
rules. `lost` and `more` are the rows by which each stream differs from `on_rules` over the whole table, the rows of which are counted.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import secrets
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import circumstances
from bench_queries import equal, table

FILE = 50_000
COMPILING = 4
"""Micro-batches until each worker has seen all rules."""
BAR = 1.5
"""Most that an event may cost with changes, beside one of rules that stay."""
LATENESS = "10 seconds"
KINDS = pa.schema([("name", pa.string()), ("query", pa.string()), ("from", pa.timestamp("us", "UTC"))])
RULES_DDL = "name string, query string, `from` timestamp"
EVENTS_DDL = "type string, ts timestamp, id long, v long, w long"


def text(rule: int, rules: int, least: int | None = None) -> str:
    """The query of a rule; least: of another version."""
    query = re.sub(r"WITHIN (\d+)", r"PARTITION BY id WITHIN \1 seconds", equal(rule, rules))
    return query if least is None else query.replace("AND v < ", f"AND v > {least} AND v < ", 1)


def prepare(folder: Path, events: int, rules: int, changes: int) -> None:
    """The files of events, a second for each, and of rules with their changes, and without."""
    every = table(events, rules)
    seconds = pa.array(every["ts"].to_numpy() * 1_000_000, pa.timestamp("us", "UTC"))
    every = every.set_column(every.column_names.index("ts"), "ts", seconds)
    first = [{"name": f"q{number}", "query": text(number, rules)} for number in range(rules)]
    later = []
    for number in range(changes):
        at, rule = (number + 1) * events // (changes + 1), number * 37 % rules
        later.append((at, {"name": f"q{rule}", "query": text(rule, rules, number % 90), "from": seconds[at].as_py()}))
    for place, start in enumerate(range(0, events, FILE)):
        told = [row for at, row in later if (at // FILE - 2 == place or (place == 0 and at // FILE < 2))]
        files = {"events": every.slice(start, FILE), "changing": told, "still": []}
        for name, content in files.items():
            path = folder / name / f"{place:06}.parquet"
            path.parent.mkdir(exist_ok=True)
            # A row that is known changes nothing: with it there is a file of rules for each of events.
            own = content if name == "events" else pa.Table.from_pylist([*(first if not place else first[:1]), *content], KINDS)
            pq.write_table(own, path)
            os.utime(path, (1_700_000_000 + place,) * 2)


def session() -> Any:
    """A small session."""
    from cepheid.spark import local_session

    return local_session(cores=2, memory="3g", settings={"spark.sql.shuffle.partitions": "2", "spark.ui.showConsoleProgress": "false"})


def drive(folder: Path, rules: str, name: str) -> None:
    """Run a stream over the files, from its checkpoint on, to their end; the time of each micro-batch goes to a file."""
    from cepheid.spark import on_rules

    spark = session()
    read = spark.readStream.option("maxFilesPerTrigger", 1)
    told = spark.readStream.option("maxFilesPerTrigger", 1).schema(RULES_DDL).parquet(str(folder / rules))
    found = read.schema(EVENTS_DDL).parquet(str(folder / "events")).transform(on_rules(told, keys="id", lateness=LATENESS))
    writer = found.writeStream.format("parquet").option("path", str(folder / name))
    query = writer.option("checkpointLocation", str(folder / f"{name}-checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    progress = [(each["numInputRows"], each["durationMs"].get("addBatch", 0)) for each in query.recentProgress]
    (folder / f"{name}.json").write_text(json.dumps(progress))
    spark.stop()


def started(folder: Path, rules: str, name: str) -> subprocess.Popen[bytes]:
    """A driver in a process of its own."""
    with (folder / f"{name}.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, __file__, "--drive", str(folder), rules, name], stdout=log, stderr=log, start_new_session=True
        )


def cost(folder: Path, rules: str) -> float:
    """Microseconds per event of a stream that nothing disturbs."""
    process = started(folder, rules, f"{rules}-out")
    if process.wait() != 0:
        raise RuntimeError((folder / f"{rules}-out.log").read_text()[-4000:])
    progress = json.loads((folder / f"{rules}-out.json").read_text())
    return statistics.median(1000 * taken / rows for rows, taken in progress[COMPILING:] if rows >= FILE)


def kill(folder: Path, kills: int, batches: int, chance: random.Random) -> int:
    """Run the stream whose driver is killed so many times, evenly spread; how many kills were inside a micro-batch."""
    name, inside = "killed", 0

    def count(of: str) -> int:
        place = folder / f"{name}-checkpoint" / of  # Spark keeps the last ones only
        return 1 + max((int(path.name) for path in place.iterdir() if path.name.isdigit()), default=-1) if place.exists() else 0

    for number in range(kills):
        process = started(folder, "changing", name)
        while count("commits") < (number + 1) * batches // (kills + 1):
            if process.poll() is not None:
                raise RuntimeError((folder / f"{name}.log").read_text()[-4000:])
            time.sleep(0.05)
        time.sleep(chance.random() * 4)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        inside += count("offsets") > count("commits")
    process = started(folder, "changing", name)
    if process.wait() != 0:
        raise RuntimeError((folder / f"{name}.log").read_text()[-4000:])
    return inside


def compare(folder: Path, outputs: list[tuple[str, str]]) -> dict[str, dict[str, int]]:
    """Of each stream (rules, output): rows of the batch, and rows it has too few and too many. Those that wait for the watermark do not count."""
    from pyspark.sql import functions as F  # noqa: N812

    from cepheid.spark import on_rules

    spark = session()
    events = spark.read.schema(EVENTS_DDL).parquet(str(folder / "events"))
    greatest = events.agg(F.max("ts")).first()[0]
    found = {}
    for rules, name in outputs:
        every = pq.read_table(folder / rules)
        known = pa.Table.from_pylist(list({str(row): row for row in every.to_pylist()}.values()), KINDS)
        columns = ["rule", "since", "id", "start_time", "end_time", F.to_json("events").alias("events"), "error"]
        until = F.lit(greatest) - F.expr(f"INTERVAL {LATENESS}")
        batch = events.transform(on_rules(known, keys="id")).select(*columns).where(F.col("end_time") <= until).cache()
        stream = spark.read.parquet(str(folder / name)).select(*columns).where(F.col("end_time").isNull() | (F.col("end_time") <= until))
        found[name] = {
            "rows": batch.count(),
            "lost": batch.exceptAll(stream).count(),
            "more": stream.exceptAll(batch).count(),
        }
        batch.unpersist()
    spark.stop()
    return found


def main() -> int:
    """Measure, kill, compare, record; the exit status is 1 where a match is lost, there is one too many, or there is none."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--rules", type=int, default=1_000)
    parser.add_argument("--changes", type=int, default=100)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**32))
    parser.add_argument("--drive", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.drive:
        drive(Path(options.drive[0]), *options.drive[1:])
        return 0
    before = circumstances.circumstances()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder, options.events, options.rules, options.changes)
        costs = {rules: round(cost(folder, rules), 2) for rules in ("still", "changing")}
        print(costs, flush=True)
        inside = kill(folder, options.kills, options.events // FILE, random.Random(options.seed))
        compared = compare(folder, [("still", "still-out"), ("changing", "changing-out"), ("changing", "killed")])
    asked = {name: getattr(options, name) for name in ("events", "rules", "changes", "kills", "seed")}
    ratio = round(costs["changing"] / costs["still"], 3)
    figures = {
        **asked,
        "microseconds_per_event": costs,
        "ratio": ratio,
        "bar": BAR,
        "kills_inside_a_micro_batch": inside,
        "compared": compared,
    }
    circumstances.write("spark_rules", figures, before=before)
    return int(any(each["lost"] or each["more"] or not each["rows"] for each in compared.values()))


if __name__ == "__main__":
    sys.exit(main())
