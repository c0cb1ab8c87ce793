"""A stream that is killed: its driver, or its Python workers, at random points; and whether its file sink then holds every match once.

The stream runs in a process of its own (this file as a script), with its own JVM: nothing of it survives a kill but the files.
`test_exactly_once` kills a few times, `benchmarks/record_kills.py` many times over more queries.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import heapq
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq

import cepheid

SCHEMA = pa.schema([("k", pa.int32()), ("ts", pa.timestamp("us", "UTC")), ("type", pa.string()), ("v", pa.int64())])
DDL = "k int, ts timestamp, type string, v long"
BASE = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
QUERIES = {
    "pairs": "SELECT * WHERE A AS x ; B AS y PARTITION BY k WITHIN 10 seconds",
    "unanswered": "SELECT * WHERE B AS x NOT FOLLOWED BY A FOR 7 seconds PARTITION BY k",
    "next": "SELECT NXT * WHERE A AS x ; B ; C AS y PARTITION BY k WITHIN 20 seconds",
    "last": "SELECT LAST * WHERE A+ AS x ; C AS y PARTITION BY k WITHIN 12 seconds",
    "longest": "SELECT MAX * WHERE A+ AS x ; B AS y PARTITION BY k WITHIN 15 seconds",
    "counted": "SELECT COUNT(*) WHERE A ; B ; C PARTITION BY k WITHIN 15 seconds",
    "measured": "SELECT MAX max(x.v) AS top, count(x) AS n WHERE A : B+ AS x PARTITION BY k WITHIN 15 seconds",
    "gaps": "SELECT * WHERE A AS x ;[<= 5 seconds] B AS y ;[<= 8 seconds] C PARTITION BY k",
    "gaps counted": "SELECT COUNT(*) WHERE A AS x ;[<= 6 seconds] B ; C PARTITION BY k WITHIN 20 seconds",
    "compared": "SELECT LAST * WHERE A AS x ; B AS y FILTER y.v % 7 < x.v % 7 PARTITION BY k WITHIN 15 seconds",
    "refused": "SELECT * WHERE A AS x ; NOT (B ;[<= 2 seconds] B) ; C AS y PARTITION BY k WITHIN 12 seconds",
    "detected": "SELECT RESTRICTED * WHERE A AS x ; ((B AS y ALL C AS z) WITHIN 9 seconds) PARTITION BY k WITHIN 15 seconds",
    "judged": "SELECT * WHERE A AS x ; B AS y PARTITION BY k WITHIN 12 seconds HAVING (x.v + y.v) % 3 = 0 CONSUME BY PARTITION",
    "made": "EVENT P(v) AS (SELECT y.v AS v WHERE A AS x ; B AS y PARTITION BY k WITHIN 8 seconds) SELECT p.v AS v, c.v AS w"
    " WHERE P AS p ; NOT A ; C AS c PARTITION BY k WITHIN 20 seconds",
    "made later": "EVENT P(v) AS (SELECT x.v AS v WHERE A AS x NOT FOLLOWED BY B FOR 3 seconds PARTITION BY k) SELECT x.v AS v, p.v AS w"
    " WHERE B AS x ; P AS p PARTITION BY k WITHIN 20 seconds",
    "lagged": "SELECT * WHERE A AS x ; B AS y FILTER x[v - lag(v, 1) <= 6] PARTITION BY k WITHIN 10 seconds",
    "next of a time": "SELECT * WHERE A AS x THEN (B AS y ; C AS z) PARTITION BY k WITHIN 15 seconds TIME MODEL ACTIVE_OFFICE",
    "next compared": "SELECT * WHERE A AS x THEN (B AS y ; C AS z) FILTER z.v > y.v PARTITION BY k WITHIN 15 seconds TIME MODEL POINT",
    "least compared": "SELECT * WHERE A AS x THEN (B+ AS y ;[<= 9 seconds] C AS z) PARTITION BY k WITHIN 15 seconds TIME MODEL COMPLETE_HISTORY",
    "made next": "EVENT P(v) AS (SELECT y.v AS v WHERE A AS x ; B AS y PARTITION BY k WITHIN 8 seconds) SELECT p.v AS v, c.v AS w"
    " WHERE C AS c THEN P AS p PARTITION BY k WITHIN 20 seconds TIME MODEL ACTIVE_OFFICE",
    "made refused": "EVENT P(v) AS (SELECT y.v AS v WHERE A AS x ; B AS y PARTITION BY k WITHIN 8 seconds) SELECT a.v AS v, b.v AS w"
    " WHERE A AS a ; NOT (P ALL C) ; B AS b PARTITION BY k WITHIN 20 seconds",
    "made least": "EVENT P(v) AS (SELECT y.v AS v WHERE A AS x ; B AS y PARTITION BY k WITHIN 8 seconds) SELECT p.v AS v, c.v AS w"
    " WHERE B AS b THEN (P AS p ALL C AS c) PARTITION BY k WITHIN 20 seconds TIME MODEL COMPLETE_HISTORY",
    "counted later": "SELECT COUNT(*) WHERE A ; B NOT FOLLOWED BY C FOR 9 seconds FROM START PARTITION BY k WITHIN 12 seconds",
}
"""One of each method of evaluation, with an absence, with measures, with THEN, and those that compare events and are over matches as events."""

FEW = ("pairs", "made later")
"""Those of them that are enough for a test."""
KEYS, EVENTS, DISORDER, LATENESS = 4, 15, 5, "6 seconds"
"""Of a stream: keys, events of a file (one file is one micro-batch), seconds that an event comes too late at most, and what is allowed."""

AHEAD = 5
"""Files that wait to be read as long as something is to be killed, however fast the machine is: a kill falls at most four micro-batches on."""
PATIENCE = 600
"""Seconds without a new micro-batch after which the stream counts as stuck: a start alone takes one or two minutes where the machine is busy."""
LATE, LATE_STARTS = "Python worker failed to connect back", 5
"""What Spark says of a worker that did not start within its ten seconds, as may be where the machine is busy; how often the stream is started again."""
ENDS = ([(None, 1_000_000, "Z", -1)], [(None, 1_000_001, "Z", -2)])
"""The last files. Events without a key are in no match: they move the watermark over everything, once read and once decided."""


# ------------------------------------------------------------------------------------------------------------------------ the driver


def drive(folder: Path) -> None:
    """Run the stream over the files of a folder, from its checkpoint on, until `whole` says that there are no more, and all are read; then `done`."""
    from pyspark.sql import SparkSession

    from cepheid.spark import local_session, on, translated
    from cepheid.spark.tasks import unit

    unit.FORCED = int(os.environ["CEPHEID_TEST_PAGES"]) if "CEPHEID_TEST_PAGES" in os.environ else None
    # A task may fail three times: local mode allows none otherwise.
    settings = {"spark.master": "local[2,4]", "spark.sql.shuffle.partitions": "2", "spark.ui.showConsoleProgress": "false"}
    settings |= {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}  # for small jobs
    submitted = "CEPHEID_TEST_SUBMITTED" in os.environ  # spark-submit has said all
    spark = (
        SparkSession.builder.getOrCreate()
        if submitted
        else local_session(cores=2, memory="700m", app_name="exactly-once", settings=settings)
    )
    events = spark.readStream.schema(DDL).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    queries = {name: cepheid.query(QUERIES[name]) for name in json.loads((folder / "queries").read_text())}
    partition = os.environ.get("CEPHEID_TEST_PARTITION") or ()
    matches = events.transform(on(queries, lateness=LATENESS, partition=partition, order="v", buckets=3))
    writer = matches.writeStream.format("parquet").option("path", str(folder / "out"))
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(processingTime="0 seconds").start()
    while query.isActive and not (folder / "whole").exists():
        time.sleep(0.05)
    with translated():
        query.processAllAvailable()
    query.stop()
    (folder / "done").touch()
    spark.stop()


# ------------------------------------------------------------------------------------------------------------------------ around it


def files(chance):
    """The events of one file after the other, in the order in which they arrive, without end."""
    waiting, second = [], 0
    while True:
        rows = []
        while len(rows) < EVENTS:
            if waiting and waiting[0][0] <= second:
                rows.append(heapq.heappop(waiting)[1])
            else:
                event = (chance.randrange(KEYS), second, chance.choice("ABC"), second)
                heapq.heappush(waiting, (second + chance.random() * DISORDER, event))
                second += 1
        yield rows


class Stream:
    """A folder of files, and the process that reads them. Files come until `finish`, so that the stream never ends before it was killed."""

    def __init__(self, folder, chance, queries=FEW):
        self.folder, self.process, self.queries = folder, None, queries
        (folder / "queries").write_text(json.dumps(queries))
        (folder / "in").mkdir()
        self.files, self.fed, self.events, self.starts, self.began = files(random.Random(chance.random())), 0, [], 0, 0

    @property
    def table(self):
        """All events that came, and have a key, in the order of their times."""
        return table_of(sorted((event for event in self.events if event[0] is not None), key=lambda event: event[1]))

    def feed(self, rows):
        """One file more, which is there as a whole."""
        path = self.folder / "part.parquet"
        pq.write_table(table_of(rows), path)
        os.utime(path, (1_700_000_000 + self.fed,) * 2)
        path.rename(self.folder / "in" / f"{self.fed:05}.parquet")
        self.fed, self.events = self.fed + 1, self.events + rows

    def ahead(self):
        """Let files come, as long as more will be needed."""
        while not (self.folder / "whole").exists() and self.fed < self.batches("offsets") + AHEAD:
            self.feed(next(self.files))

    def start(self):
        environment = os.environ | {"PYTHONHASHSEED": str(random.randrange(1000)), "SPARK_LOCAL_DIRS": str(self.folder / "local")}
        environment["JDK_JAVA_OPTIONS"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # for a JVM that will not live long
        with (self.folder / "log").open("ab") as log:
            command = [sys.executable, __file__, str(self.folder)]
            self.began = log.tell()
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)

    def kill(self):
        """End driver and JVM, which cannot help it."""
        assert self.alive(), self.log[-4000:]
        os.killpg(self.process.pid, signal.SIGKILL)
        assert self.process.wait(30) == -signal.SIGKILL

    def batches(self, of):
        """The number of micro-batches that were begun (`offsets`) or finished (`commits`), of all runs."""
        folder = self.folder / "checkpoint" / of
        return 1 + max((int(path.name) for path in folder.iterdir() if path.name.isdigit()), default=-1) if folder.exists() else 0

    def seconds(self):
        """How long a micro-batch takes at present; a restart between two of them is no part of that."""
        times = sorted(path.stat().st_mtime for path in (self.folder / "checkpoint" / "offsets").iterdir() if path.name.isdigit())
        return min((after - before for before, after in itertools.pairwise(times[-4:])), default=1.0)

    def alive(self):
        """Whether the process runs; where it has ended because a worker was late, it is started again, which goes on from the checkpoint."""
        if self.process.poll() is None:
            return True
        if self.process.returncode == 0 or LATE not in self.log[self.began :] or self.starts == LATE_STARTS:
            return False
        self.starts += 1
        self.start()
        return True

    def wait(self, condition):
        """Let files come until something holds, or the process has ended; whether it holds."""
        seen, changed = None, time.monotonic()
        while not condition():
            if not self.alive():
                return condition()
            self.ahead()
            now = self.batches("offsets"), self.batches("commits")
            if now != seen:
                seen, changed = now, time.monotonic()
            assert time.monotonic() < changed + PATIENCE, f"the stream is stuck: {self.log[-4000:]}"
            time.sleep(0.02)
        return True

    def finish(self):
        """Let it read the last files, and end."""
        for rows in ENDS:
            self.feed(rows)
        (self.folder / "whole").touch()
        self.wait(lambda: False)
        assert self.process.returncode == 0, self.log[-4000:]
        assert (self.folder / "done").exists()

    @property
    def log(self):
        return (self.folder / "log").read_text(errors="replace")

    def workers(self):
        """The Python workers: processes that the daemon of this driver's JVM has forked."""
        listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,command="], capture_output=True, text=True, check=True).stdout
        lines = [line.split(None, 2) for line in listed.splitlines()]
        parent = {int(pid): int(above) for pid, above, *_ in lines}
        daemons = {int(pid) for pid, _, *command in lines if "pyspark.daemon" in "".join(command)}
        return [pid for pid in daemons if parent[pid] in daemons and self.process.pid in above(parent, pid)]

    def differences(self):
        """(matches that there are, lost, doubled or wrong) in the sink."""
        expected = []
        for name in self.queries:
            rows = cepheid.query(QUERIES[name]).run(self.table, until="end").to_arrow(events=True).to_pylist()
            expected += [(name, *shown(row)) for row in rows]
        assert {name for name, *_ in expected} == set(self.queries)
        wanted, found = Counter(expected), Counter((row["query"], *shown(row)) for row in sink(self.folder / "out"))
        return len(expected), (wanted - found).total(), (found - wanted).total()

    def check(self):
        """Every match is in the sink once, and nothing else."""
        matches, lost, more = self.differences()
        assert (lost, more) == (0, 0), f"of {matches} matches {lost} are lost, {more} too many"

    # -------------------------------------------------------------------------------------------------------------------- killing

    def kill_driver(self, kills, chance):
        """Kill the driver so many times, and let it finish; how many kills were inside a micro-batch."""
        inside = self.kill_drivers(kills, chance)
        self.start()
        self.finish()
        return inside

    def kill_drivers(self, kills, chance):
        """Kill drivers, each a little after a micro-batch has begun or ended; how many were inside a micro-batch, and no driver runs."""
        inside = 0
        for _ in range(kills):
            of, more = chance.choice(["offsets", "commits"]), chance.randint(1, 4)
            wanted = self.batches(of) + more
            self.start()
            assert self.wait(lambda of=of, wanted=wanted: self.batches(of) >= wanted), self.log[-4000:]
            time.sleep(chance.random() * self.seconds())
            self.kill()
            inside += self.batches("offsets") > self.batches("commits")
        return inside

    def kill_workers(self, kills, chance):
        """Kill workers until so many of them had a task, and let it finish; how many were killed in all."""
        self.start()
        assert self.wait(lambda: self.batches("commits")), self.log[-4000:]
        crashed = killed = 0
        while crashed < kills and self.alive():
            time.sleep(chance.random() * self.seconds() / 4)
            workers = self.workers()
            if workers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(chance.choice(workers), signal.SIGKILL)
                    killed += 1
            self.ahead()
            found, begun = self.log.count("ERROR Executor: Exception in task"), self.batches("offsets") + 1
            if found > crashed:
                crashed = found
                # Once in a micro-batch: Spark gives up a task that fails four times. One that waits for work may be killed as often as one likes.
                self.wait(lambda begun=begun: self.batches("offsets") >= begun)
        assert crashed >= kills, (killed, self.log[-4000:])
        self.finish()
        return killed


def above(parent, pid):
    """The processes above a process."""
    while pid in parent:
        pid = parent[pid]
        yield pid


def table_of(rows):
    keys, seconds, types, numbers = zip(*rows, strict=True)
    return pa.table([keys, [BASE + dt.timedelta(seconds=second) for second in seconds], types, numbers], schema=SCHEMA)


def shown(row):
    """A match as a value: its key and end, the events of its variables, what was counted and measured."""
    events = (tuple(event["v"] for event in row.get(name) or ()) for name in ("x", "y", "B"))
    times = (row[name].replace(tzinfo=None) for name in ("start_time", "end_time"))  # Parquet of Spark's has times without a zone
    return row["k"], *times, *events, *(row.get(name) for name in ("count", "top", "n"))


def sink(folder):
    """The rows of a file sink: of the files that its log names, for what a killed task has written lies about too."""
    numbers = {path.name: int(path.name.split(".")[0]) for path in (folder / "_spark_metadata").iterdir() if path.name[0].isdigit()}
    last = max((number for name, number in numbers.items() if name.endswith(".compact")), default=-1)
    kept = [name for name, number in numbers.items() if number > last or (number == last and name.endswith(".compact"))]
    entries = [json.loads(line) for name in kept for line in (folder / "_spark_metadata" / name).read_text().splitlines()[1:]]
    assert {entry["action"] for entry in entries} == {"add"}
    paths = [unquote(urlparse(entry["path"]).path) for entry in entries]
    assert len(set(paths)) == len(paths)
    return [row for path in paths for row in pq.ParquetFile(path).read().to_pylist()]


if __name__ == "__main__":
    drive(Path(sys.argv[1]))
