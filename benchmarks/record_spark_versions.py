"""The tests of all methods of evaluation with every Spark that Cepheid runs on, and their result as a record.

    python benchmarks/record_spark_versions.py [VERSION ..]

With versions only their results are made anew. `make test-spark-versions` makes the environments before: each Spark but the newest has one of its
own, see requirements/spark-*.in. Two processes for each: classic, and Spark Connect, which cannot share one. The exit status is the worst one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import circumstances
from record_tests import counts

ROOT = Path(__file__).parent.parent
SUITE = "tests/spark/test_versions.py"
OLD = ("3.5", "4.0", "4.1", "4.2")
NEWEST = "4.3"
OLDER_WARNINGS = ("ignore:unclosed:ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")
"""As in the Makefile."""

VERSIONS = "import platform, pyspark, pyarrow, pandas; print(pyspark.__version__, pyarrow.__version__, pandas.__version__, platform.python_version())"


def tested(version: str) -> dict[str, Any]:
    """What came out with one Spark: exact versions, and for classic and Connect how many tests passed."""
    python = ROOT / (".venv" if version == NEWEST else f".venv-spark-{version}") / "bin/python"
    said = subprocess.run([python, "-c", VERSIONS], capture_output=True, text=True, check=True).stdout.split()
    found: dict[str, Any] = dict(zip(("spark", "pyarrow", "pandas", "python"), said, strict=True))
    warnings = () if version == NEWEST else OLDER_WARNINGS
    for way, marks in (("classic", "not connect"), ("connect", "connect")):
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.xml"
            command = [python, "-m", "pytest", "-q", SUITE, "-m", marks, f"--junitxml={report}", *(f"-W{each}" for each in warnings)]
            began = time.monotonic()
            status = subprocess.run(command, check=False, cwd=ROOT, env={**os.environ, "CEPHEID_REQUIRE_COMPILED": "1"}).returncode
            found[way] = {**(counts(report) if report.exists() else {}), "exit_status": status, "seconds": round(time.monotonic() - began)}
    return found


def main() -> int:
    """Run the tests, write the record, return the worst exit status."""
    wanted = sys.argv[1:] or [*OLD, NEWEST]
    before = circumstances.circumstances()
    record = circumstances.FOLDER / "spark_versions.json"
    found = json.loads(record.read_text(encoding="utf-8"))["versions"] if sys.argv[1:] and record.exists() else {}
    found |= {version: {**tested(version), "commit": before["commit"], "changed": before["changed"]} for version in wanted}
    circumstances.write("spark_versions", {"suite": SUITE, "versions": found}, before=before)
    return max(each[way]["exit_status"] for each in found.values() for way in ("classic", "connect"))


if __name__ == "__main__":
    sys.exit(main())
