"""Siddhi: the jars of the package PySiddhi, driven from Java (event by event through Python's bridge would measure the bridge)."""

from __future__ import annotations

import json
import subprocess
import sysconfig
import tempfile
from importlib.metadata import version
from pathlib import Path

from measurement import Stopwatch, arguments, report

SOURCE = Path(__file__).with_name("Siddhi.java")


def main() -> None:
    """Compile, run, report."""
    options, watch = arguments(), Stopwatch()
    jars = f"{sysconfig.get_path('purelib')}/__PySiddhiProxy/target/lib/*"
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["javac", "-nowarn", "-proc:none", "-cp", jars, "-d", folder, str(SOURCE)], check=True)
        command = ["java", "-cp", f"{folder}:{jars}", "Siddhi", options.query, str(options.stream), str(options.events)]
        done = subprocess.run([*command, str(options.matches), str(options.warm_up)], check=True, capture_output=True, text=True)
    figures = json.loads(done.stdout.splitlines()[-1])
    start_up = {
        "wall_seconds": round(watch.read()["wall_seconds"] - figures["wall_seconds"], 4),
        "cpu_seconds": figures["start_up_cpu_seconds"],
    }
    run = {name: figures[name] for name in ("wall_seconds", "cpu_seconds")}
    report(version=version("PySiddhi"), events=options.events, matches=figures["matches"], run=run, start_up=start_up)


if __name__ == "__main__":
    main()
