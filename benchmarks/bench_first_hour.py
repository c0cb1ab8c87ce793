"""The first hour of a user in figures: start-up, the README's first match, and the sizes of the wheel and of the documentation.

    python benchmarks/bench_first_hour.py

Start-up is CPU seconds (user and system) of whole processes, the median of RUNS, in turn: an interpreter that imports NumPy and pyarrow; one that
imports cepheid too (at most 0.15 s more); one that also compiles a first query and prints its first match, over a Table (at most 0.25 s more);
and `cepheid --help` (at most 0.3 s). The first match of the README is in seconds from an empty environment, with the packages in the installer's
cache (scripts/readme.py). Sizes are in bytes.
"""

from __future__ import annotations

import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import circumstances

ROOT = Path(__file__).resolve().parents[1]
RUNS = 15

TABLE = "table = pyarrow.table([pyarrow.array(['A', 'B']), pyarrow.array([1, 2]), pyarrow.array([4, 1])], names=['type', 'ts', 'v'])"
PROCESSES = {
    "numpy_pyarrow": f"import numpy, pyarrow; {TABLE}",
    "cepheid": f"import numpy, pyarrow; {TABLE}; import cepheid",
    "first_match": f"import numpy, pyarrow; {TABLE}; import cepheid; "
    "print(cepheid.query('SELECT * WHERE A AS a ; B AS b FILTER a[v > 3] WITHIN 5').run(table)[0].variables)",
}


def cpu_seconds(*command: str) -> float:
    """User and system time of a process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Stored bytecode is what an installed package has.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment, cwd=tempfile.gettempdir())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def start_up() -> dict[str, float]:
    """CPU seconds of each process, medians; and what is over NumPy and pyarrow, the medians of the differences in each round."""
    commands = {name: (sys.executable, "-c", text) for name, text in PROCESSES.items()}
    commands["help"] = (str(Path(sys.executable).with_name("cepheid")), "--help")
    for command in commands.values():
        cpu_seconds(*command)
    rounds = [{name: cpu_seconds(*command) for name, command in commands.items()} for _ in range(RUNS)]
    figures = {name: statistics.median(one[name] for one in rounds) for name in commands}
    for name in ("cepheid", "first_match"):
        figures[f"{name}_over_numpy_pyarrow"] = statistics.median(one[name] - one["numpy_pyarrow"] for one in rounds)
    return {name: round(value, 3) for name, value in figures.items()}


def first_match() -> float:
    """Seconds from an empty environment to the README's first match."""
    done = subprocess.run(["make", "--no-print-directory", "readme"], cwd=ROOT, check=True, capture_output=True, text=True)
    found = re.search(r"([\d.]+) s from an empty environment to the first match", done.stdout)
    if found is None:
        raise SystemExit(f"the README's trial said no time:\n{done.stdout}")
    return float(found[1])


def sizes() -> dict[str, int]:
    """Bytes of the wheel, with compiled kernels, and of the site; how many files the site has."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", folder, str(ROOT)], check=True, capture_output=True
        )
        wheel = next(Path(folder).glob("*.whl")).stat().st_size
    subprocess.run(["make", "--no-print-directory", "docs"], cwd=ROOT, check=True, capture_output=True)
    site = [path for path in (ROOT / "out/site").rglob("*") if path.is_file()]
    return {"wheel_bytes": wheel, "site_bytes": sum(path.stat().st_size for path in site), "site_files": len(site)}


def main() -> None:
    """Measure, and write the record."""
    before = circumstances.circumstances()
    figures: dict[str, Any] = {"cpu_seconds": start_up(), "first_match_seconds": first_match(), **sizes()}
    circumstances.write("first_hour", figures, before=before)


if __name__ == "__main__":
    main()
