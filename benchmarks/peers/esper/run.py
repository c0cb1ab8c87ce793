"""Esper: its compiler and runtime in a JVM of its own, driven from Java. `make bench-peers` brings the jars that pom.xml names."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

from measurement import Stopwatch, arguments, report

SOURCE = Path(__file__).with_name("Esper.java")
JARS = Path(__file__).parents[1] / ".venv-esper" / "jars"


def main() -> None:
    """Compile, run, report."""
    options, watch = arguments(), Stopwatch()
    (runtime,) = JARS.glob("esper-runtime-*.jar")
    jars = f"{JARS}/*"
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["javac", "-nowarn", "-proc:none", "-cp", jars, "-d", folder, str(SOURCE)], check=True)
        command = ["java", "-cp", f"{folder}:{jars}", "Esper", options.query, str(options.window), str(options.stream), str(options.events)]
        done = subprocess.run([*command, str(options.matches), str(options.warm_up)], check=True, capture_output=True, text=True)
    figures = json.loads(done.stdout.splitlines()[-1])
    start_up = {
        "wall_seconds": round(watch.read()["wall_seconds"] - figures["wall_seconds"], 4),
        "cpu_seconds": figures["start_up_cpu_seconds"],
    }
    run = {name: figures[name] for name in ("wall_seconds", "cpu_seconds")}
    version = runtime.stem.removeprefix("esper-runtime-")
    report(version=version, events=options.events, matches=figures["matches"], run=run, start_up=start_up)


if __name__ == "__main__":
    main()
