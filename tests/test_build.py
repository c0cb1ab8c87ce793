"""The build of the kernel: compiled where it can be, a warning and a pure install where not, an error where it must be."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SETUP = Path(__file__).resolve().parent.parent / "setup.py"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("gcc") is None and shutil.which("cc") is None, reason="there is no C compiler to compare with"),
]

# A kernel with constants, a part that kernels share, which needs another one, and a function `run`. It reads past the end of an array, as only a
# checked build notices.
LAYOUT = """\
from __future__ import annotations
try:
    import cython
except ImportError:
    from cepheid.kernel import _no_cython as cython
if not cython.compiled:
    FOURTH = 3
"""
PARTS = """\
from __future__ import annotations
try:
    import cython
except ImportError:
    from cepheid.kernel import _no_cython as cython
from cepheid.kernel._layout import *
@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def shift(values: cython.longlong[::1]) -> cython.longlong:
    values[0] = values[FOURTH]
    return 0
"""
KERNEL = """\
# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
from __future__ import annotations
import cython
from cepheid.kernel._parts import FOURTH
from cepheid.kernel._parts import (
    shift,
)
from cepheid.kernel._layout import FOURTH
COMPILED = cython.compiled
if not cython.compiled:
    FIRST, SECOND, THIRD = range(3)
def third(values: cython.longlong[::1]):
    found: cython.longlong = 0
    with cython.nogil:
        found = values[THIRD]
    return found
def at(values: cython.longlong[::1], index: cython.Py_ssize_t) -> cython.longlong:
    return values[index]
def moved(values: cython.longlong[::1]):
    with cython.nogil:
        shift(values)
    return values[0] + FOURTH
def run(S: cython.longlong[::1], held: cython.const[cython.int][::1]):
    S[0] += held[THIRD]
    return 1
"""
# One that compiles in a second, as it takes no arrays.
SMALL = "# cython: language_level=3, boundscheck=False\nimport cython\nCOMPILED = cython.compiled\n"

WITHOUT_CYTHON = """
import importlib.util, runpy, sys
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == "Cython" else find_spec(name, package)
sys.argv = ["setup.py", *sys.argv[1:]]
runpy.run_path("setup.py", run_name="__main__")
"""


def made(folder: Path, kernel: str) -> Path:
    """A project with this kernel."""
    package = folder / "src/cepheid/kernel"
    package.mkdir(parents=True)
    shutil.copy(SETUP, folder)
    (folder / "pyproject.toml").write_text('[project]\nname = "cepheid"\nversion = "0"\n', encoding="utf-8")
    for each in (package, package.parent):
        (each / "__init__.py").touch()
    (package / "match.py").write_text(kernel, encoding="utf-8")
    (package / "_layout.py").write_text(LAYOUT, encoding="utf-8")
    (package / "_parts.py").write_text(PARTS, encoding="utf-8")
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return made(tmp_path, SMALL)


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose kernel and its checked twin have been built."""
    folder = made(tmp_path_factory.mktemp("twins"), KERNEL)
    done = build(folder, CEPHEID_BUILD_CHECKED="1", CEPHEID_REQUIRE_COMPILED="1")
    assert done.returncode == 0, done.stderr
    return folder


def build(project: Path, *launcher: str, **variables: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CEPHEID_")}
    return subprocess.run(
        [sys.executable, *(launcher or ("setup.py",)), "build_ext", "--inplace"],
        cwd=project,
        env={**clean, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def run(project: Path, code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=project / "src", capture_output=True, text=True, check=False)
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


def built(project: Path) -> set[str]:
    return {path.name.partition(".")[0] for path in (project / "src").rglob("*.so")}


CALL = "import array; from cepheid.kernel import {0} as kernel; print(kernel.COMPILED, kernel.{1}, hasattr(kernel, 'THIRD'))"


def test_builds_the_kernel_and_its_checked_twin(twins: Path) -> None:
    assert built(twins) == {"match", "_checked_match"}
    call = "at(array.array('q', [0, 1, 2]), {})"
    assert run(twins, CALL.format("match", call.format(2))) == "True 2 False"
    assert "Out of bounds" in run(twins, CALL.format("_checked_match", call.format(3)))


def test_constants_and_shared_source_are_in_both_builds_and_uncompiled(twins: Path, tmp_path: Path) -> None:
    """Constants are numbers; shared source stands in each kernel, and is checked there."""
    uncompiled = made(tmp_path, KERNEL)
    for call, found in (("third({})", "7"), ("moved({})", "11")):
        assert run(uncompiled, CALL.format("match", call.format([5, 6, 7, 8]))) == f"False {found} True"
        for name in ("match", "_checked_match"):
            assert run(twins, CALL.format(name, call.format("array.array('q', [5, 6, 7, 8])"))) == f"True {found} False"
    assert "Out of bounds" in run(twins, CALL.format("_checked_match", "moved(array.array('q', [1, 2, 3]))"))


def test_the_build_says_which_source_it_is_of(project: Path) -> None:
    """Of all files of the package."""
    for parts in (PARTS, PARTS + "# another\n"):
        (project / "src/cepheid/kernel/_parts.py").write_text(parts, encoding="utf-8")
        assert build(project, CEPHEID_REQUIRE_COMPILED="1").returncode == 0
        expected = hashlib.sha256((LAYOUT + parts + SMALL).encode()).hexdigest()
        assert run(project, "from cepheid.kernel._source_hash import HASH; print(HASH)") == expected


def test_a_bound_run_takes_the_arrays_that_are_new(twins: Path) -> None:
    code = """\
from array import array
from cepheid.kernel import {0} as kernel
bound, numbers, held = kernel.Bound(), array('q', [0]), array('i', [1, 2, 3])
calls = [bound((numbers, held)), bound((numbers, held)), bound((numbers, array('i', [0, 0, 10])))]
for wrong in ((numbers, numbers), (numbers,)):
    try:
        bound(wrong)
    except (TypeError, ValueError) as error:
        calls.append(type(error).__name__)
calls.append(bound((numbers, held)))
print(calls, numbers[0])
"""
    expected = "[1, 1, 1, 'ValueError', 'TypeError', 1] 19"
    assert {run(twins, code.format(name)) for name in ("match", "_checked_match")} == {expected}
    past = code.format("_checked_match").replace("print(calls, numbers[0])", "bound((numbers, array('i', [1])))")
    assert "Out of bounds" in run(twins, past)


def test_takes_what_was_compiled_from_the_same_sources(twins: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(twins, copy, ignore=shutil.ignore_patterns("*.so", "build", "_source_hash.py"))
    there = {"CC": "false", "CEPHEID_COMPILED": str(twins / "src/cepheid/kernel")}
    assert build(copy, **there).returncode == 0
    assert run(copy, CALL.format("match", "at(array.array('q', [0, 1, 2]), 2)")) == "True 2 False"
    with (copy / "src/cepheid/kernel/match.py").open("a", encoding="utf-8") as source:
        source.write("# more")
    done = build(copy, **there)
    assert done.returncode != 0
    assert "was compiled from other sources" in done.stderr


def test_without_a_compiler_warns_and_leaves_no_stale_extension(project: Path) -> None:
    assert build(project).returncode == 0
    assert built(project) == {"match"}
    done = build(project, CC="false")
    assert done.returncode == 0, done.stderr
    assert "the kernel is NOT compiled" in done.stderr
    assert built(project) == set()
    assert not (project / "src/cepheid/kernel/_source_hash.py").exists()
    assert run(project, "from cepheid.kernel import match; print(match.COMPILED)") == "False"


def test_without_a_compiler_fails_where_compilation_is_required(project: Path) -> None:
    assert build(project, CC="false", CEPHEID_REQUIRE_COMPILED="1").returncode != 0


def test_without_cython_warns_or_fails(project: Path) -> None:
    done = build(project, "-c", WITHOUT_CYTHON)
    assert done.returncode == 0, done.stderr
    assert "the kernel is NOT compiled: Cython is not installed" in done.stderr
    assert built(project) == set()
    assert build(project, "-c", WITHOUT_CYTHON, CEPHEID_REQUIRE_COMPILED="1").returncode != 0


def test_a_kernel_without_the_directives_has_no_checked_twin(project: Path) -> None:
    (project / "src/cepheid/kernel/match.py").write_text("x = 1\n", encoding="utf-8")
    done = build(project, CEPHEID_BUILD_CHECKED="1")
    assert done.returncode != 0
    assert "no boundscheck(False) to switch on" in done.stderr
