"""Where the figures come from: the machine, the commit and the command that go into every record."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("record")


def circumstances() -> dict[str, Any]:
    """Processor, cores, memory, versions, commit and command; nothing that identifies a machine or its user."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),  # other work on the machine makes every figure worse
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": platform.system(),
        "python": platform.python_version(),
        "commit": _git("rev-parse", "--short=12", "HEAD"),
        "changed": bool(_git("status", "--porcelain", "--untracked-files=no", "src", "benchmarks", "tests", ":!benchmarks/record")),
        "command": " ".join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *(a for a in sys.argv[1:] if not a.startswith("/"))]),
    }


def kept(name: str, part: str) -> dict[str, Any]:
    """What a record says of its parts, which are measured one by one: none if there is no such record."""
    try:
        return dict(json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")).get(part, {}))
    except FileNotFoundError:
        return {}


def write(name: str, figures: dict[str, Any], *, before: dict[str, Any] | None = None, told: bool = True) -> None:
    """Keep the figures with their circumstances as benchmarks/record/NAME.json, and print them if they are to be told.

    before: the circumstances when the work began. Its commit is what was measured, and a commit since then is a change.
    """
    found = circumstances()
    if before is not None:
        changed = before["changed"] or found["changed"] or found["commit"] != before["commit"]
        found |= {"commit": before["commit"], "changed": changed}
    text = json.dumps({"circumstances": found, **figures}, indent=1)
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    if told:
        print(text)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False, cwd=Path(__file__).parent.parent)
    return done.stdout.strip()
