"""The installed package: its metadata, its data files, its compiled kernel."""

from __future__ import annotations

import os
from importlib import metadata, resources
from pathlib import Path

import pytest

import cepheid

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path(cepheid.__file__).parent
EXTRAS = {"spark", "spark-cluster", "kafka", "cli", "viz", "png", "java", "demo", "play", "notebook"}


def test_version_is_the_metadata_version() -> None:
    assert metadata.version("cepheid") == cepheid.__version__


def test_metadata_names_license_pythons_and_extras() -> None:
    fields = metadata.metadata("cepheid")
    assert fields["License-Expression"] == "Apache-2.0"
    assert fields["Requires-Python"] == ">=3.11"
    assert set(fields.get_all("Provides-Extra")) == EXTRAS
    pythons = {f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13, 14)}
    assert pythons <= set(fields.get_all("Classifier"))


def test_core_has_two_dependencies() -> None:
    core = [line for line in metadata.requires("cepheid") or () if "extra ==" not in line]
    assert sorted(line.split(">=")[0] for line in core) == ["numpy", "pyarrow"]


def test_package_is_typed() -> None:
    assert resources.files("cepheid").joinpath("py.typed").is_file()


@pytest.mark.parametrize("entry", metadata.distribution("cepheid").entry_points, ids=lambda entry: entry.name)
def test_entry_points_load(entry: metadata.EntryPoint) -> None:
    assert callable(entry.load())


def test_kernel_is_compiled_from_the_source_that_is_there() -> None:
    if os.environ.get("CEPHEID_REQUIRE_COMPILED") != "1" and not (PACKAGE / "kernel/_source_hash.py").exists():
        pytest.skip("an uncompiled install; `make test` requires a compiled one")
    from cepheid import kernel
    from cepheid.kernel import _source_hash

    assert kernel.COMPILED, "the kernel runs uncompiled: run `make setup` on a machine with a C compiler"
    assert kernel.source_hash() == _source_hash.HASH, "the extension is stale: run `make setup`"


@pytest.mark.parametrize("path", sorted((ROOT / "requirements").glob("*.txt")), ids=lambda path: path.name)
def test_requirements_are_pinned_with_hashes_and_without_addresses(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "://" not in text
    assert "--index" not in text
    assert "--find-links" not in text
    pins = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
    assert pins
    assert all("==" in pin and pin.endswith("\\") for pin in pins)
