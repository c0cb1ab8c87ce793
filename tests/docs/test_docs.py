"""The documentation's examples run, and print what stands below them.

The Python blocks of a file run in order in one namespace; a text block that directly follows one is what it prints. The shell blocks of a file
are one script.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import cepheid
from cepheid import spark, testing

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
ON_SPARK = {"spark.md", "sources.md", "streaming.md"}
"""Run by tests/spark/test_docs_spark.py."""
FILES = sorted(path for path in [*DOCS.glob("*.md"), *DOCS.glob("theory/*.md")] if path.name not in ON_SPARK)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
PROSE = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")), *sorted(DOCS.rglob("*.md"))]
WIDTH = 100
NAMING = ast.Attribute | ast.alias


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    line: int
    expected: str | None = None


def blocks(text: str) -> list[Block]:
    """The fenced blocks; a Python or shell block with a text block right below it expects that output."""
    found = list(BLOCK.finditer(text))
    result = []
    for index, block in enumerate(found):
        after = found[index + 1] if index + 1 < len(found) else None
        follows = after is not None and after[1] == "text" and not text[block.end() : after.start()].strip()
        line = text.count("\n", 0, block.start(2)) + 1
        result.append(Block(block[1], block[2], line, after[2] if follows and after else None))
    return result


def test_the_documentation_is_there() -> None:
    assert {"language.md", "strategies.md", "python.md", "differences-from-core.md", "cli.md", "errors.md"} <= {path.name for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_python_blocks(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__docs__"}
    for block in blocks(path.read_text(encoding="utf-8")):
        if block.language != "python":
            continue
        printed = io.StringIO()
        code = compile("\n" * (block.line - 1) + block.text, str(path), "exec")
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        if block.expected is not None:
            assert printed.getvalue() == block.expected, f"{path.name}:{block.line}"


def test_every_public_name_has_an_example() -> None:
    """In a Python block of the documentation or of the README: these run, here, on Spark, or with the built wheel."""
    pages = [ROOT / "README.md", *DOCS.glob("*.md")]
    code = "\n".join(block.text for page in pages for block in blocks(page.read_text(encoding="utf-8")) if block.language == "python")
    used = {node.attr if isinstance(node, ast.Attribute) else node.name for node in ast.walk(ast.parse(code)) if isinstance(node, NAMING)}
    assert sorted({*cepheid.__all__, *spark.__all__, *testing.__all__} - used) == []


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="the shell blocks are for bash")
@pytest.mark.parametrize("path", [path for path in FILES if "```bash" in path.read_text(encoding="utf-8")], ids=lambda path: path.name)
def test_shell_blocks(path: Path, tmp_path: Path) -> None:
    """Commands with an output below them print it on the standard output; installing is left out."""
    script = [f'cepheid() {{ "{sys.executable}" -m cepheid.cli "$@"; }}']
    shown = [block for block in blocks(path.read_text(encoding="utf-8")) if block.language == "bash" and "pip install" not in block.text]
    for number, block in enumerate(shown):
        script += [f"exec >{number}.out", block.text]
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", "\n".join(script)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for number, block in enumerate(shown):
        if block.expected is not None:
            assert (tmp_path / f"{number}.out").read_text(encoding="utf-8") == block.expected, f"{path.name}:{block.line}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_links_lead_to_files(path: Path) -> None:
    for target in LINK.findall(path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target


def prose(text: str) -> list[tuple[int, str]]:
    """The numbered lines that wrap: not code (fenced, or indented below an empty line), tables, headings and images."""
    result, fenced, indented, before = [], False, False, ""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced:
            indented = line.startswith("    ") and (indented or not before)
            if not indented and not line.startswith(("|", "#", "![")):
                result.append((number, line))
        before = line.strip()
    return result


@pytest.mark.parametrize("path", PROSE, ids=lambda path: path.name)
def test_prose_wraps(path: Path) -> None:
    """A line without a space, such as a bare link, cannot be broken."""
    lines = prose(path.read_text(encoding="utf-8"))
    assert lines
    assert [f"{path.name}:{number}" for number, line in lines if len(line) > WIDTH and " " in line.strip(" ->")] == []


SYSTEMS = [
    *(DOCS / "theory" / name for name in ("complex-events.md", "timed.md", "registers.md")),
    *(DOCS / name for name in ("algebra.md", "succession.md")),
]
"""A page for each paper."""


@pytest.mark.parametrize("path", SYSTEMS, ids=lambda path: path.name)
def test_what_is_where(path: Path) -> None:
    """A page says of each piece of its paper in which file it is, and under which name."""
    named = re.findall(r"\| `((?:\w+/)+\w+\.\w+):(\w+)` \|", path.read_text(encoding="utf-8"))
    assert len(named) >= 7
    for file, name in named:
        tree = ast.parse((ROOT / "src/cepheid" / file).read_text(encoding="utf-8"))
        defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef | ast.FunctionDef)}
        assigned = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        assert name in defined | assigned, f"{file} has no {name}"


def test_the_map_names_files_that_are_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    the_map = text[text.index("## The map") : text.index("## The shape of the code")]
    named = re.findall(r"`((?:\w+/)+\w+\.\w+)`", the_map)
    assert len(named) > 40
    assert [path for path in named if not (ROOT / "src" / "cepheid" / path).is_file()] == []
