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

# A kernel small enough to compile in a second: it reads past the end of an array, as only a checked build notices.
KERNEL = """\
# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
from __future__ import annotations
import cython
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
"""

WITHOUT_CYTHON = """
import importlib.util, runpy, sys
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == "Cython" else find_spec(name, package)
sys.argv = ["setup.py", *sys.argv[1:]]
runpy.run_path("setup.py", run_name="__main__")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    kernel = tmp_path / "src/cepheid/kernel"
    kernel.mkdir(parents=True)
    shutil.copy(SETUP, tmp_path)
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "cepheid"\nversion = "0"\n', encoding="utf-8")
    for package in (kernel, kernel.parent):
        (package / "__init__.py").touch()
    (kernel / "match.py").write_text(KERNEL, encoding="utf-8")
    return tmp_path


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


AT_THREE = "import array; from cepheid.kernel import {0} as kernel; print(kernel.COMPILED, kernel.at(array.array('q', [0, 1, 2]), {1}))"


def test_builds_the_kernel_and_its_checked_twin_and_says_which_source(project: Path) -> None:
    done = build(project, CEPHEID_BUILD_CHECKED="1", CEPHEID_REQUIRE_COMPILED="1")
    assert done.returncode == 0, done.stderr
    assert built(project) == {"match", "_checked_match"}
    assert run(project, AT_THREE.format("match", 2)) == "True 2"
    assert "Out of bounds" in run(project, AT_THREE.format("_checked_match", 3))
    expected = hashlib.sha256(KERNEL.encode()).hexdigest()
    assert run(project, "from cepheid.kernel._source_hash import HASH; print(HASH)") == expected


def test_constants_are_numbers_in_both_builds_and_uncompiled(project: Path) -> None:
    code = "import array; from cepheid.kernel import {0} as kernel; print(kernel.COMPILED, kernel.third(array.array('q', [5, 6, 7])), hasattr(kernel, 'THIRD'))"
    assert run(project, code.format("match").replace("array.array('q', [5, 6, 7])", "[5, 6, 7]")) == "False 7 True"
    assert build(project, CEPHEID_BUILD_CHECKED="1", CEPHEID_REQUIRE_COMPILED="1").returncode == 0
    assert {run(project, code.format(name)) for name in ("match", "_checked_match")} == {"True 7 False"}


def test_shared_source_stands_in_each_kernel_and_is_checked_there(project: Path) -> None:
    kernel = project / "src/cepheid/kernel"
    header, _, body = KERNEL.partition("COMPILED = ")
    shared = """\
from __future__ import annotations
try:
    import cython
except ImportError:
    from cepheid.kernel import _no_cython as cython
if not cython.compiled:
    FOURTH = 3
@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def shift(values: cython.longlong[::1]) -> cython.longlong:
    values[0] = values[FOURTH]
    return 0
"""
    (kernel / "_parts.py").write_text(shared, encoding="utf-8")
    imports = "from cepheid.kernel._parts import FOURTH\nfrom cepheid.kernel._parts import (\n    shift,\n)\n"
    use = "def moved(values: cython.longlong[::1]):\n    with cython.nogil:\n        shift(values)\n    return values[0] + FOURTH\n"
    (kernel / "match.py").write_text(f"{header}{imports}COMPILED = {body}{use}", encoding="utf-8")
    code = "import array; from cepheid.kernel import {0} as kernel; print(kernel.COMPILED, kernel.moved(array.array('q', {1})))"
    assert run(project, code.format("match", [1, 2, 3, 4])) == "False 7"
    assert build(project, CEPHEID_BUILD_CHECKED="1", CEPHEID_REQUIRE_COMPILED="1").returncode == 0
    assert built(project) == {"match", "_checked_match"}
    assert run(project, code.format("match", [1, 2, 3, 4])) == "True 7"
    assert "Out of bounds" in run(project, code.format("_checked_match", [1, 2, 3]))
    before = run(project, "from cepheid.kernel._source_hash import HASH; print(HASH)")
    (kernel / "_parts.py").write_text(shared + "# another\n", encoding="utf-8")
    assert build(project, CEPHEID_REQUIRE_COMPILED="1").returncode == 0
    assert run(project, "from cepheid.kernel._source_hash import HASH; print(HASH)") != before


def test_a_bound_run_takes_the_arrays_that_are_new(project: Path) -> None:
    run_function = "def run(S: cython.longlong[::1], held: cython.const[cython.int][::1]):\n    S[0] += held[THIRD]\n    return 1\n"
    (project / "src/cepheid/kernel/match.py").write_text(KERNEL + run_function, encoding="utf-8")
    assert build(project, CEPHEID_BUILD_CHECKED="1", CEPHEID_REQUIRE_COMPILED="1").returncode == 0
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
    assert {run(project, code.format(name)) for name in ("match", "_checked_match")} == {expected}
    past = code.format("_checked_match").replace("print(calls, numbers[0])", "bound((numbers, array('i', [1])))")
    assert "Out of bounds" in run(project, past)


def test_without_a_compiler_warns_and_leaves_no_stale_extension(project: Path) -> None:
    assert build(project).returncode == 0
    assert built(project) == {"match"}
    done = build(project, CC="false")
    assert done.returncode == 0, done.stderr
    assert "the kernel is NOT compiled" in done.stderr
    assert built(project) == set()
    assert not (project / "src/cepheid/kernel/_source_hash.py").exists()
    assert run(project, AT_THREE.format("match", 2)) == "False 2"


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
