"""Apache Flink once more, by its pattern API for Java: what MATCH_RECOGNIZE cannot say (all combinations), and what it says more cheaply.

The program is compiled here, with javac, against the jars of the package apache-flink.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from importlib.metadata import version
from pathlib import Path

import pyflink
from measurement import Stopwatch, arguments, report

SOURCE = Path(__file__).with_name("Combinations.java")
# Flink's serializer looks into the JDK's collections.
OPEN = ["--add-opens=java.base/java.util=ALL-UNNAMED", "--add-opens=java.base/java.lang=ALL-UNNAMED"]


def main() -> None:
    """Compile, run, report."""
    options, watch = arguments(), Stopwatch()
    jars = f"{Path(pyflink.__file__).parent}/lib/*"
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["javac", "-nowarn", "-cp", jars, "-d", folder, str(SOURCE)], check=True)
        command = ["java", *OPEN, "-cp", f"{folder}:{jars}", "Combinations", options.query, str(options.stream), str(options.events)]
        command += [str(options.matches), str(options.warm_up), str(options.window)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    figures = json.loads(done.stdout.splitlines()[-1])
    start_up = {
        "wall_seconds": round(watch.read()["wall_seconds"] - figures["wall_seconds"], 4),
        "cpu_seconds": figures["start_up_cpu_seconds"],
    }
    run = {name: figures[name] for name in ("wall_seconds", "cpu_seconds")}
    report(version=version("apache-flink"), events=options.events, matches=figures["matches"], run=run, start_up=start_up)


if __name__ == "__main__":
    main()
