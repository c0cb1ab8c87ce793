"""All tests with many random cases per mode, and their result as a record.

    python benchmarks/record_tests.py [--cases N] [--name RECORD] [ARGUMENT OF PYTEST ..]

`make test-all` runs it on all tests. The record has the seed: CEPHEID_SEED and CEPHEID_CASES repeat the run. The exit status is pytest's.
"""

from __future__ import annotations

import argparse
import os
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import circumstances


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


def main() -> int:
    """Run the tests, write the record, return pytest's exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--name", default="tests")
    options, rest = parser.parse_known_args()
    seed = int(os.environ.get("CEPHEID_SEED") or secrets.randbelow(2**32))
    before = circumstances.circumstances()
    environment = {**os.environ, "CEPHEID_CASES": str(options.cases), "CEPHEID_SEED": str(seed), "CEPHEID_REQUIRE_COMPILED": "1"}
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        # The limit of one test is for 200 cases on an idle machine.
        command = [sys.executable, "-m", "pytest", "-m", "not connect", "-o", "timeout=3000", f"--junitxml={report}", *rest]
        status = subprocess.run(command, env=environment, check=False, cwd=Path(__file__).parent.parent).returncode
        if not report.exists():
            return status
        circumstances.write(options.name, {"cases": options.cases, "seed": seed, "exit_status": status, **counts(report)}, before=before)
    return status


if __name__ == "__main__":
    sys.exit(main())
