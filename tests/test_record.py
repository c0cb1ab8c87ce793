"""The record of a test run says what failed, and of which state of the code it speaks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import circumstances
    import record_tests

    monkeypatch.setattr(circumstances, "FOLDER", tmp_path)
    return record_tests


def test_failed_tests_have_their_names(scripts: Any, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\ndef test_right(): pass\ndef test_wrong(): assert 0\n@pytest.fixture\ndef broken(): raise OSError\ndef test_error(broken): pass\n",
        encoding="utf-8",
    )
    report = tmp_path / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", f"--junitxml={report}", "test_it.py"]
    assert subprocess.run(command, cwd=tmp_path, check=False, capture_output=True).returncode == 1
    found = scripts.counts(report)
    assert (found["passed"], found["failed"], found["skipped"]) == (1, 2, 0)
    assert found["failed_tests"] == ["test_it::test_wrong", "test_it::test_error"]


@pytest.mark.parametrize(("commit", "changed", "said"), [("new", False, True), ("old", True, True), ("old", False, False)])
def test_a_commit_during_the_run_is_a_change(
    scripts: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, commit: str, changed: bool, said: bool
) -> None:
    monkeypatch.setattr(scripts.circumstances, "circumstances", lambda: {"commit": commit, "changed": changed, "cores": 2})
    scripts.circumstances.write("it", {"passed": 1}, before={"commit": "old", "changed": False})
    record = json.loads((tmp_path / "it.json").read_text(encoding="utf-8"))
    assert record == {"circumstances": {"commit": "old", "changed": said, "cores": 2}, "passed": 1}


def test_an_engine_that_loses_a_match_is_a_difference(
    scripts: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import record_random

    right = record_random.tried("TIMED", 20, 1)
    assert right["differences"] == 0 < right["with_matches"] <= right["cases"] < 20
    pushed = record_random.WAYS["pushed"]
    monkeypatch.setitem(record_random.WAYS, "pushed", lambda case, engine: pushed(case, engine)[1:])
    assert record_random.tried("TIMED", 20, 1)["differences"] == right["with_matches"]
    assert "TIMED: pushed, " in capsys.readouterr().out
