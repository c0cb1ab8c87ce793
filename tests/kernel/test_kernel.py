"""The kernel as a source file: its layout comments, its variants, the build."""

from __future__ import annotations

import ast
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cepheid.kernel
from cepheid.kernel import VARIANTS, available, bound, kernel

SOURCE = Path(cepheid.kernel.__file__).with_name("match.py")


def test_every_column_of_a_record_is_stored_and_loaded():
    text = SOURCE.read_text()
    columns = {name.upper() for name in kernel("match").RECORD}
    assert text.count("* RECORD_WIDTH\n") == 3
    assert set(re.findall(r"records\[s \+ R_(\w+)\] = ", text)) == columns
    assert set(re.findall(r"(?:= |if )records\[s \+ R_(\w+)\]", text)) >= columns - {"LAST_TIME", "PACKED_SIZE"}


def test_the_variants_are_what_they_say():
    assert "python" in available()
    for variant in available():
        assert (variant != "python") == kernel("match", variant).COMPILED
    assert kernel("match").COMPILED == cepheid.kernel.COMPILED
    with pytest.raises(ValueError, match="compiled, python, checked"):
        kernel("match", "fast")
    assert set(available()) <= set(VARIANTS)


def test_the_extension_is_of_the_present_source():
    if not cepheid.kernel.COMPILED:
        assert os.environ.get("CEPHEID_REQUIRE_COMPILED") != "1"
        return
    built = importlib.import_module("cepheid.kernel._source_hash")
    assert cepheid.kernel.source_hash() == built.HASH, "the kernel was edited after it was built: run `make setup`"


def test_the_checked_variant_looks_at_bounds():
    if "checked" not in available():
        assert cepheid.kernel.COMPILED is False or os.environ.get("CEPHEID_BUILD_CHECKED") != "1"
        return
    numpy = importlib.import_module("numpy")
    empty = [numpy.zeros(0, kind) for kind in ("i8", "i8", "i4", "i4", "i4", "u1")]
    empty[1] = numpy.zeros(1, "i8")
    with pytest.raises(IndexError):
        kernel("match", "checked").reach(*empty)


@pytest.mark.parametrize("path", sorted(SOURCE.parent.glob("[!_]*.py")), ids=lambda path: path.stem)
def test_a_bound_kernel_wants_all_its_arrays(path):
    for variant in available():
        with pytest.raises(TypeError):
            bound(kernel(path.stem, variant))(())


def test_the_source_runs_without_cython_installed():
    code = """
import sys
sys.modules["cython"] = None
import importlib.util
spec = importlib.util.spec_from_file_location("plain_kernel", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
assert module.COMPILED is False
module.reach(*(memoryview(b"") for _ in range(6)))
"""
    done = subprocess.run([sys.executable, "-c", code, str(SOURCE)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_package_imports_nothing_else_of_cepheid():
    for path in SOURCE.parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = (
                [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else [a.name for a in node.names]
                if isinstance(node, ast.Import)
                else []
            )
            assert all(not name.startswith("cepheid") or name.startswith("cepheid.kernel") for name in names), path.name
