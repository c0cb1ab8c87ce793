"""All tests with many random cases per mode, and their result as a record.

    python benchmarks/record_tests.py [--cases N] [--name RECORD] [ARGUMENT OF PYTEST ..]

`make test-all` runs it on all tests in the three parts of PARTS, one beside the other; what all but the first print follows in the end. With
arguments there is one run of pytest. The record has the seed: CEPHEID_SEED and CEPHEID_CASES repeat the run. The exit status is pytest's.
"""

from __future__ import annotations

import argparse
import functools
import operator
import os
import secrets
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import circumstances

# The tests of Spark, those that draw most cases, all others: about the same time each, so that two cores have work to the end.
MANY = ("tests/automata", "tests/properties")
PARTS = (["tests/spark"], [*MANY], [f"--ignore={path}" for path in ("tests/spark", *MANY)])


def counts(report: Path) -> dict[str, Any]:
    """How many tests passed, failed and were skipped, and their seconds, from pytest's report; and which failed."""
    suite = next(ET.parse(report).iter("testsuite"))  # noqa: S314 - pytest has just written it
    number = {name: int(suite.attrib[name]) for name in ("tests", "failures", "errors", "skipped")}
    failed = number["failures"] + number["errors"]
    passed = number["tests"] - failed - number["skipped"]
    wrong = [case for case in suite.iter("testcase") if case.find("failure") is not None or case.find("error") is not None]
    names = [f"{case.attrib['classname']}::{case.attrib['name']}" for case in wrong]
    seconds = round(float(suite.attrib["time"]))
    return {"passed": passed, "failed": failed, "skipped": number["skipped"], "seconds": seconds, "failed_tests": names}


def together(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The counts of several runs as those of one."""
    return {name: functools.reduce(operator.add, (run[name] for run in runs)) for name in runs[0]}


def main() -> int:
    """Run the tests, write the record, return pytest's exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--name", default="tests")
    options, rest = parser.parse_known_args()
    seed = int(os.environ.get("CEPHEID_SEED") or secrets.randbelow(2**32))
    before = circumstances.circumstances()
    environment = {**os.environ, "CEPHEID_CASES": str(options.cases), "CEPHEID_SEED": str(seed), "CEPHEID_REQUIRE_COMPILED": "1"}
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        reports, processes = [], []
        parts = [rest] if rest else PARTS
        for number, part in enumerate(parts):
            reports.append(Path(folder) / f"report{number}.xml")
            # The limit of one test is for 200 cases on an idle machine.
            command = [sys.executable, "-m", "pytest", "-m", "not connect", "-o", "timeout=9000", f"--junitxml={reports[-1]}", *part]
            with (Path(folder) / f"output{number}").open("w") as output:
                shown = None if number == 0 else output
                processes.append(subprocess.Popen(command, env=environment, cwd=Path(__file__).parent.parent, stdout=shown, stderr=shown))
        status = max(process.wait() for process in processes)
        for number in range(1, len(parts)):
            print((Path(folder) / f"output{number}").read_text(encoding="utf-8"), flush=True)
        if not all(report.exists() for report in reports):
            return status
        found = together([counts(report) for report in reports]) | {"seconds": round(time.monotonic() - began)}
        circumstances.write(options.name, {"cases": options.cases, "seed": seed, "exit_status": status, **found}, before=before)
    return status


if __name__ == "__main__":
    sys.exit(main())
