"""`cepheid doctor`: what is installed, what is missing, and what is broken.

Each line comes from a real trial, not from a list: packages are imported, the kernel runs a query, Java is started.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import platform
import shutil
import sys
import tempfile
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import cepheid
from cepheid import kernel
from cepheid.errors import CepheidError
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Callable

SCARCE = 1 << 30
"""Bytes free for temporary files below which there is a warning: sorting and shuffling on Spark write there."""

OLDEST_PYTHON = (3, 11)


class State(StrEnum):
    """How something is."""

    OK = "ok"
    WARNING = "warning"
    MISSING = "missing"
    BROKEN = "broken"


@record(slots=False)
class Finding:
    """One line of the report: what, how it is, what was found, and what to do."""

    name: str
    state: State
    found: str
    help: str = ""


def examine() -> list[Finding]:
    """Everything that can be wrong with an installation."""
    return [check() for check in CHECKS]


def report(findings: list[Finding]) -> str:
    """The findings as text, with what to do under each that is not well."""
    names, states = max(len(each.name) for each in findings), max(len(each.state) for each in findings)
    lines = []
    for each in findings:
        lines.append(f"{each.name:<{names}}  {each.state:<{states}}  {each.found}".rstrip())
        if each.help:
            lines.append(f"{'':<{names}}  {'':<{states}}  help: {each.help}")
    return "\n".join(lines)


def _python() -> Finding:
    found = f"{platform.python_version()} ({sys.executable})"
    if sys.version_info < OLDEST_PYTHON:
        return Finding("python", State.BROKEN, found, f"Cepheid needs Python {'.'.join(map(str, OLDEST_PYTHON))} or later")
    return Finding("python", State.OK, found)


def _machine() -> Finding:
    return Finding("machine", State.OK, f"{platform.platform()}, {platform.machine()}, {os.cpu_count()} cores")


def _cepheid() -> Finding:
    return Finding("cepheid", State.OK, f"{cepheid.__version__} ({Path(cepheid.__file__).parent})")


def _kernel() -> Finding:
    """The kernel: compiled, and from the source that lies beside it."""
    if not kernel.COMPILED:
        help_ = "results are the same, 60 to 110 times slower: install a wheel, or a C compiler and then cepheid again"
        return Finding("kernel", State.WARNING, "not compiled", help_)
    try:
        built = importlib.import_module("cepheid.kernel._source_hash").HASH
    except ImportError:
        return Finding("kernel", State.OK, "compiled")
    if kernel.source_hash() != built:
        return Finding("kernel", State.BROKEN, "compiled from another source than the one installed", "install cepheid again (make setup)")
    return Finding("kernel", State.OK, "compiled, from the source installed")


def _package(name: str, *, extra: str | None, why: str = "") -> Callable[[], Finding]:
    """A look at a package; extra: the one of ours that brings it, None for what must be there."""

    def look() -> Finding:
        if extra is not None and importlib.util.find_spec(name) is None:
            return Finding(name, State.MISSING, why, f'pip install "cepheid[{extra}]"')
        try:
            module = importlib.import_module(name)
        except ImportError as error:
            wanted = "cepheid" if extra is None else f'"cepheid[{extra}]"'
            return Finding(name, State.BROKEN, str(error), f"pip install --force-reinstall {wanted}")
        return Finding(name, State.OK, str(getattr(module, "__version__", "") or _version(name)))

    return look


def _version(name: str) -> str:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _java() -> Finding:
    """The Java that Spark would use; its absence matters only where pyspark is."""
    from cepheid.spark.session import find_java

    try:
        return Finding("java", State.OK, str(find_java()))
    except CepheidError as error:
        wanted = importlib.util.find_spec("pyspark") is not None
        return Finding(
            "java", State.BROKEN if wanted else State.MISSING, error.fact if wanted else "for Spark", 'pip install "cepheid[java]"'
        )


def _temporary_files() -> Finding:
    """Whether temporary files can be written, and how much."""
    try:
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"cepheid")
            file.flush()
            folder = Path(file.name).parent
    except OSError as error:
        return Finding("temporary files", State.BROKEN, str(error), "set TMPDIR to a directory that can be written")
    free = shutil.disk_usage(folder).free
    found = f"{free / 2**30:.1f} GiB free in {folder}"
    if free < SCARCE:
        return Finding("temporary files", State.WARNING, found, "Spark sorts and shuffles there: make space, or set TMPDIR")
    return Finding("temporary files", State.OK, found)


def _trial() -> Finding:
    """A small query, by the engine and by the definition."""
    events = [{"type": name, "ts": time} for time, name in enumerate("ABAB")]
    query = cepheid.query("SELECT * WHERE A AS x ; B AS y WITHIN 2")
    try:
        found, right = query.run(events), query.run(events, engine="reference")
    except Exception as error:  # noqa: BLE001 - whatever is broken is what is asked for
        return Finding("trial", State.BROKEN, f"{type(error).__name__}: {error}", "install cepheid again")
    if list(found) != list(right):
        return Finding("trial", State.BROKEN, f"{len(found)} matches where the definition gives {len(right)}", "please report it")
    return Finding("trial", State.OK, f"a query found its {len(found)} matches")


CHECKS: tuple[Callable[[], Finding], ...] = (
    _machine,
    _python,
    _cepheid,
    _kernel,
    _package("numpy", extra=None),
    _package("pyarrow", extra=None),
    _package("rich", extra="cli"),
    _package("typer", extra="cli"),
    _package("pyspark", extra="spark", why="for --engine spark and query.on"),
    _package("pandas", extra="spark", why="for Spark and Matches.to_pandas"),
    _package("starlette", extra="play", why="for cepheid play"),
    _package("uvicorn", extra="play", why="for cepheid play"),
    _package("altair", extra="viz", why="for timelines in notebooks"),
    _package("vl_convert", extra="png", why="for pictures as PNG"),
    _package("anywidget", extra="notebook", why="for Query.explore in notebooks"),
    _java,
    _temporary_files,
    _trial,
)
