"""Try the README as a stranger would: the built wheel, an empty environment, every block in order.

Takes README.md; builds the source distribution and from it the wheel; makes an empty environment; then runs every
fenced block marked ``bash`` or ``python`` in the order of the text, in an empty directory. The Python blocks share one
namespace. The blocks' own ``pip install`` lines decide what is installed: a stand-in for pip puts the built wheel
where they say ``cepheid`` and holds everything else to requirements/dev.txt, so that a new release elsewhere does
not break this trial.

A block whose first line is the comment ``# in a clone of the repository`` (readers see it) is not run: it needs the
repository (``make demo``, ``make test``), and continuous integration runs those anyway. Blocks in other languages
(``text``, ``sql``) are not run.

Prints the seconds from the empty environment to the first match, that is, to the end of the first Python block that
leaves a result with at least one match in the namespace; more than LIMIT_SECONDS, or no match at all, is a failure.
Exit status: 0, or 1 with the block that failed.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT_SECONDS = 300
REPOSITORY_MARK = "# in a clone of the repository"
FENCE = re.compile(r"^```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^```\s*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, its text, and the number of the README's line where the text starts."""

    language: str
    text: str
    line: int


def blocks(readme: str) -> list[Block]:
    """Every block of the README that a stranger without the repository can run, in order."""
    found = [Block(fence["language"], fence["text"], readme.count("\n", 0, fence.start("text")) + 1) for fence in FENCE.finditer(readme)]
    return [block for block in found if block.language in {"bash", "python"} and not block.text.startswith(REPOSITORY_MARK)]


# ------------------------------------------------------------------------------------------------ in the repository


def build_wheel(folder: Path) -> Path:
    """Build the wheel from the source distribution, with the kernel that `make setup` compiled from the same sources; return the wheel's path."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    environment = {
        **os.environ,
        "CEPHEID_REQUIRE_COMPILED": "1",
        "CEPHEID_BUILD_CHECKED": "0",
        "CEPHEID_COMPILED": str(ROOT / "src/cepheid/kernel"),
    }
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{done.stdout}\n{done.stderr}\nreadme: the wheel does not build")
    return next(folder.glob("*.whl"))


def write_pip(environment: Path, uv: Path, wheel: Path) -> None:
    """Write the stand-in for pip: uv, with the built wheel in the place of `cepheid` and the pinned versions, from uv's cache where it has them."""
    pip = environment / "bin/pip"
    pip.write_text(
        f"""#!/usr/bin/env bash
set -euo pipefail
arguments=()
for argument in "$@"; do
    case $argument in
        cepheid | cepheid\\[*\\]) arguments+=("$argument @ {wheel.as_uri()}") ;;
        *) arguments+=("$argument") ;;
    esac
done
verb=${{arguments[0]}}
command=({shlex.quote(str(uv))} pip "$verb" --quiet --python {shlex.quote(str(environment / "bin/python"))}
    --constraint {shlex.quote(str(ROOT / "requirements/dev.txt"))} "${{arguments[@]:1}}")
"${{command[@]}}" --offline 2> /dev/null || exec "${{command[@]}}"
""",
        encoding="utf-8",
    )
    pip.chmod(0o755)


def trial(uv: Path) -> int:
    """Build, make the empty environment, and run this file again inside it; return its exit status."""
    with tempfile.TemporaryDirectory(prefix="cepheid-readme-") as name:
        folder = Path(name)
        print("readme: building the wheel", flush=True)
        wheel = build_wheel(folder / "dist")
        environment, work = folder / "environment", folder / "work"
        work.mkdir()
        subprocess.run([str(uv), "venv", "--quiet", "--python", sys.executable, str(environment)], check=True)
        write_pip(environment, uv, wheel)
        variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "CEPHEID_"))}
        variables["PATH"] = f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}"
        variables["VIRTUAL_ENV"] = str(environment)
        command = [str(environment / "bin/python"), str(Path(__file__).resolve()), "--inside", str(ROOT / "README.md")]
        return subprocess.run(command, cwd=work, env=variables, check=False).returncode


# ------------------------------------------------------------------------------------------ in the empty environment


def run_bash(block: Block) -> None:
    """Run a shell block; a command that fails fails the block."""
    subprocess.run(["bash", "-euo", "pipefail", "-c", block.text], check=True)
    importlib.invalidate_caches()


def run_python(block: Block, namespace: dict[str, object]) -> None:
    """Run a Python block in the common namespace; tracebacks show the README's lines."""
    code = compile("\n" * (block.line - 1) + block.text, "README.md", "exec")
    exec(code, namespace)


def holds_match(namespace: dict[str, object]) -> bool:
    """Whether some name is bound to a result with at least one match."""
    return any(type(value).__name__ == "Matches" and len(value) > 0 for value in namespace.values())


def inside(readme: Path) -> int:
    """Run all blocks in this interpreter's environment; return the exit status."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    started, first_match = time.monotonic(), None
    todo = blocks(readme.read_text(encoding="utf-8"))
    for number, block in enumerate(todo, 1):
        seconds = time.monotonic() - started
        print(f"readme: block {number} of {len(todo)}, {block.language}, line {block.line} ({seconds:.1f} s)", flush=True)
        try:
            if block.language == "bash":
                run_bash(block)
            else:
                run_python(block, namespace)
        except Exception:  # noqa: BLE001 - whatever a reader of the README would see
            traceback.print_exc()
            print(f"readme: the {block.language} block at line {block.line} fails", file=sys.stderr)
            return 1
        if first_match is None and holds_match(namespace):
            first_match = time.monotonic() - started
    if first_match is None:
        print("readme: no block leaves a match", file=sys.stderr)
        return 1
    seconds = time.monotonic() - started
    print(
        f"readme: {len(todo)} blocks in {seconds:.0f} s; {first_match:.1f} s from an empty environment to the first match (limit {LIMIT_SECONDS} s)"
    )
    return 0 if first_match <= LIMIT_SECONDS else 1


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--uv", type=Path, help="the installer (the Makefile brings it)")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    return inside(options.inside) if options.inside else trial(options.uv.resolve())


if __name__ == "__main__":
    sys.exit(main())
