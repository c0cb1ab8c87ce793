"""All tests with many random cases per mode, and their result as a record.

    python benchmarks/record_tests.py [--cases N] [--parts P ..] [--name tests | sanitize] [--processes N]

`make test-all` runs it on all tests, `make sanitize` on those of the kernels, in the parts of PARTS. The record has each part with its commit and its
seed: CEPHEID_SEED and CEPHEID_CASES repeat it. It is written after each part, so that a run that is stopped leaves what it did, and one with --parts
leaves what the record says of the others. The exit status is the highest of pytest's.
"""

from __future__ import annotations

import argparse
import os
import secrets
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import circumstances

ROOT = Path(__file__).parent.parent
FILES = [f"tests/engine/{path.name}" for path in sorted((ROOT / "tests/engine").glob("test_*.py"))]
GUARDED = [path for path in FILES if path.startswith("tests/engine/test_guarded")]
OTHERS = [path for path in FILES if path not in GUARDED]
APART = ("tests/spark", "tests/automata", "tests/properties", "tests/engine")
ENGINE = {"guards": GUARDED, **{f"engine-{number}": OTHERS[number - 1 :: 4] for number in (1, 2, 3, 4)}}
PARTS = {
    "tests": {
        "spark": ["tests/spark"],
        "properties": ["tests/properties"],
        "automata": ["tests/automata"],
        **ENGINE,
        "others": [f"--ignore={path}" for path in APART],
    },
    "sanitize": {
        "properties": ["tests/properties"],
        "automata": ["tests/automata", "tests/kernel", "tests/theory", "tests/cases", "tests/upgrade"],
        **ENGINE,
    },
}
"""The tests of each record."""


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


def ran(name: str, arguments: list[str], cases: int, seed: int) -> dict[str, Any]:
    """What the record says of one run of pytest, whose output is in out/NAME.log."""
    before, began = circumstances.circumstances(), time.monotonic()
    environment = {**os.environ, "CEPHEID_CASES": str(cases), "CEPHEID_SEED": str(seed), "CEPHEID_REQUIRE_COMPILED": "1"}
    log = ROOT / "out" / f"{name}.log"
    log.parent.mkdir(exist_ok=True)
    print(f"{name}: what pytest says is in out/{log.name}", flush=True)
    with tempfile.TemporaryDirectory() as folder, log.open("w", encoding="utf-8") as output:
        report = Path(folder) / "report.xml"
        # The limit of one test is for 200 cases on an idle machine.
        command = [sys.executable, "-m", "pytest", "-m", "not connect", "-o", "timeout=9000", f"--junitxml={report}", *arguments]
        done = subprocess.run(command, env=environment, cwd=ROOT, stdout=output, stderr=output, check=False)
        found = counts(report) if report.exists() else {}
    about = {"commit": before["commit"], "changed": before["changed"], "cases": cases, "seed": seed, "exit_status": done.returncode}
    return about | found | {"seconds": round(time.monotonic() - began)}


def main() -> int:
    """Run the tests, write the record, return pytest's exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--parts", nargs="*", help="only these; the record keeps the others")
    parser.add_argument("--name", choices=list(PARTS), default="tests")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    known = PARTS[options.name]
    if unknown := {*(options.parts or ())} - known.keys():
        parser.error(f"no part of {options.name}: {', '.join(sorted(unknown))}; its parts are {', '.join(known)}")
    seed = int(os.environ.get("CEPHEID_SEED") or secrets.randbelow(2**32))
    before = circumstances.circumstances()
    parts = {name: known[name] for name in options.parts or known}
    figures, status = circumstances.kept(options.name, "parts"), 0
    with ThreadPoolExecutor(options.processes) as pool:
        running = {pool.submit(ran, f"{options.name}-{name}", given, options.cases, seed): name for name, given in parts.items()}
        for run in as_completed(running):
            figures[running[run]] = run.result()
            status = max(status, run.result()["exit_status"])
            circumstances.write(options.name, {"parts": figures}, before=before)
    return status


if __name__ == "__main__":
    sys.exit(main())
