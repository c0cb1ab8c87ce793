"""A stream on a standalone cluster on this machine, submitted as users do, while executors, workers and the driver are killed.

    python benchmarks/record_cluster.py --archive ENVIRONMENT [--kills N] [--lost N] [--restarts N] [--seed S] [--runs R ..]

ENVIRONMENT: an archive of a virtual environment with Cepheid, as docs/spark.md makes it (`make cluster-test` makes one of the wheel). A master and
two workers run on loopback; `spark-submit --archives` starts the stream of tests/spark/killed.py. Executors are killed while it runs, then workers
with their executors for good (others take their places), then the driver. In `plain` Spark's settings are its own. In `moving` there are a quarter
as many kills, and Spark starts slow tasks twice, and takes executors away that have nothing to do. In `short` the Python workers have too little
memory at first: the stream has to end with an error that says so, and to go on from its checkpoint when they have more. The record says what is lost
and what came twice; the exit status says whether anything is.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyspark

import circumstances

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/spark"))
import killed

HOME = Path(pyspark.__file__).parent
PORT, MEMORY = 17077, "900M"
MASTER = f"spark://127.0.0.1:{PORT}"
WORKERS = 2
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
DEPLOY = "org.apache.spark.deploy"
MOVING = {
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.minTaskRuntime": "0ms",
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "1",
    "spark.dynamicAllocation.executorIdleTimeout": "2s",
}
"""Settings with which executors come and go, and tasks run twice."""
SHORT = {"spark.executor.pyspark.memory": "200m"}
"""Settings with which no Python worker can load what it needs."""


class Cluster:
    """A master and its workers, each a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.count = folder, 0
        self.workers: list[subprocess.Popen[bytes]] = []
        self.master = self._started("master", f"{DEPLOY}.master.Master", "-h", "127.0.0.1", "-p", str(PORT), "--webui-port", "0")
        self._wait(self.master, "I have been elected leader")
        for _ in range(WORKERS):
            self.add()

    def add(self) -> None:
        """One more worker, with one core."""
        self.count += 1
        name = f"worker-{self.count}"
        options = ["-h", "127.0.0.1", "-c", "1", "-m", MEMORY, "--webui-port", "0", "-d", str(self.folder / name)]
        self.workers.append(self._started(name, f"{DEPLOY}.worker.Worker", *options, MASTER))
        self._wait(self.workers[-1], "Successfully registered with master")

    def lose(self, worker: subprocess.Popen[bytes]) -> None:
        """A worker and its executors, for good."""
        self.workers.remove(worker)
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait(30)

    def executors(self) -> list[int]:
        """The processes of executors."""
        listed = subprocess.run(["ps", "-A", "-o", "pid=,command="], capture_output=True, text=True, check=True).stdout
        return [
            int(line.split()[0])
            for line in listed.splitlines()
            if "CoarseGrainedExecutorBackend" in line and f":{PORT}" not in line.split()[1]
        ]

    def stop(self) -> None:
        """End all of it."""
        for process in [*self.workers, self.master]:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def _started(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        environment = os.environ | {"SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_PUBLIC_DNS": "127.0.0.1"}
        self.log = self.folder / f"{name}.log"
        with self.log.open("wb") as log:
            return subprocess.Popen([HOME / "bin/spark-class", *command], env=environment, stdout=log, stderr=log, start_new_session=True)

    def _wait(self, process: subprocess.Popen[bytes], words: str) -> None:
        end = time.monotonic() + 120
        while words not in self.log.read_text(errors="replace"):
            assert process.poll() is None, self.log.read_text(errors="replace")[-2000:]
            assert time.monotonic() < end, f"{self.log.name}: no `{words}`"
            time.sleep(0.1)


class Submitted(killed.Stream):
    """The stream of `killed`, whose driver `spark-submit` starts in a folder where the archive is unpacked."""

    def __init__(self, folder: Path, archive: Path, chance: random.Random, settings: dict[str, str]) -> None:
        super().__init__(folder, chance, tuple(killed.QUERIES))
        self.archive, self.settings = archive, settings
        (folder / "environment").mkdir()
        subprocess.run(["tar", "-xzf", archive, "-C", folder / "environment"], check=True)

    def start(self) -> None:
        """One more driver."""
        self.submit(self.settings)

    def submit(self, more: dict[str, str]) -> None:
        """One more driver, with more settings."""
        python = {"PYSPARK_PYTHON": "./environment/bin/python", "PYSPARK_DRIVER_PYTHON": "./environment/bin/python"}
        environment = os.environ | python | {"SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": "127.0.0.1", "CEPHEID_TEST_SUBMITTED": "1"}
        settings = {
            "spark.executor.memory": "600m",
            "spark.driver.memory": "600m",
            "spark.sql.shuffle.partitions": "2",
            "spark.ui.enabled": "false",
            "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
            "spark.deploy.maxExecutorRetries": "-1",
            **more,
        }
        options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
        command = [HOME / "bin/spark-submit", "--master", MASTER, "--archives", f"{self.archive}#environment", *options]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, killed.__file__, str(self.folder)],
                cwd=self.folder,
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )


def run(archive: Path, settings: dict[str, str], kills: int, lost: int, restarts: int, seed: int) -> dict[str, Any]:
    """Kill, and what is in the sink in the end."""
    chance = random.Random(seed)
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cluster = Cluster(folder)
        stream = Submitted(folder, archive, chance, settings)
        try:
            stream.start()
            assert stream.wait(lambda: stream.batches("commits")), stream.log[-4000:]
            for turn in range(kills + lost):
                wanted = stream.batches("commits") + chance.randint(1, 3)
                assert stream.wait(lambda wanted=wanted: stream.batches("commits") >= wanted), stream.log[-4000:]
                time.sleep(chance.random() * stream.seconds())
                if turn < kills:
                    assert stream.wait(lambda: bool(cluster.executors())), stream.log[-4000:]
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(chance.choice(cluster.executors()), signal.SIGKILL)
                else:
                    cluster.lose(chance.choice(cluster.workers))
                    cluster.add()
            stream.kill()
            inside = stream.kill_driver(restarts - 1, chance)
        finally:
            if stream.process.poll() is None:
                stream.kill()
            cluster.stop()
        matches, missing, doubled = stream.differences()
    figures = {"executors_killed": kills, "workers_lost": lost, "driver_restarts": restarts, "inside_a_micro_batch": inside}
    return figures | {"matches": matches, "lost": missing, "doubled": doubled, "seconds": round(time.perf_counter() - begin)}


def short(archive: Path, seed: int) -> dict[str, Any]:
    """Two starts with too little memory, before the first micro-batch and behind some, and what they say; and what is in the sink in the end."""
    chance, said = random.Random(seed), []
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cluster = Cluster(folder)
        stream = Submitted(folder, archive, chance, {})
        try:
            for _ in range(2):
                stream.feed(next(stream.files))
                before = len(stream.log) if (folder / "log").exists() else 0
                stream.submit(SHORT)
                stream.process.wait(killed.PATIENCE)
                told = re.findall(r"cepheid\.errors\.SetupError: error: (.*)", stream.log[before:])
                assert told, stream.log[-20_000:]
                said.append(told[-1])
                stream.start()
                wanted = stream.batches("commits") + 2
                assert stream.wait(lambda wanted=wanted: stream.batches("commits") >= wanted), stream.log[-4000:]
                stream.kill()
            stream.start()
            stream.finish()
        finally:
            if stream.process.poll() is None:
                stream.kill()
            cluster.stop()
        matches, missing, doubled = stream.differences()
    return {"said": said, "matches": matches, "lost": missing, "doubled": doubled, "seconds": round(time.perf_counter() - begin)}


def main() -> int:
    """Run, record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--archive", type=Path, required=True)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--lost", type=int, default=5)
    parser.add_argument("--restarts", type=int, default=5)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**32))
    parser.add_argument("--runs", nargs="*", choices=("plain", "moving", "short"), default=("plain", "moving", "short"))
    options = parser.parse_args()
    archive, before = options.archive.resolve(), circumstances.circumstances()
    kills, lost, restarts = options.kills, options.lost, options.restarts
    runs = {
        "plain": lambda: run(archive, {}, kills, lost, restarts, options.seed),
        "moving": lambda: run(archive, MOVING, -(-kills // 4), -(-lost // 4), -(-restarts // 4), options.seed),
        "short": lambda: short(archive, options.seed),
    }
    found = circumstances.kept("cluster", "runs")
    for name in options.runs:
        found[name] = {"commit": before["commit"], "changed": before["changed"], "seed": options.seed, **runs[name]()}
        circumstances.write("cluster", {"workers": WORKERS, "runs": found}, before=before)
    return int(any(found[name]["lost"] or found[name]["doubled"] for name in options.runs))


if __name__ == "__main__":
    sys.exit(main())
