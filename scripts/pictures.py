"""Draw the pictures of the cookbook and of the concepts: the time lines of the matches that their examples find, and an automaton.

Runs a page's Python blocks in order, in one namespace. Where the page shows ``pictures/NAME.svg``, the drawing ``picture`` of the block above it
becomes that file or, if there is none, the time line of ``matches``. So a picture is always of the example above it. ``--check`` writes nothing, and
fails if a file is not what it should be; a test does the same.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import sys
from pathlib import Path

from cepheid.viz import timeline

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = (DOCS / "cookbook.md", DOCS / "concepts.md")
PART = re.compile(r"^```python\n(?P<code>.*?)^```$|^!\[(?P<title>[^\]]+)\]\((?P<picture>pictures/[\w-]+\.svg)\)$", re.MULTILINE | re.DOTALL)


def pictures() -> dict[Path, str]:
    """The file of each picture of the pages, and its SVG."""
    return {path: text for page in PAGES for path, text in pictures_of(page).items()}


def pictures_of(page: Path) -> dict[Path, str]:
    """Those of one page."""
    namespace: dict[str, object] = {"__name__": "__docs__"}
    found = {}
    for part in PART.finditer(page.read_text(encoding="utf-8")):
        if part["code"] is not None:
            namespace.pop("picture", None)
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(part["code"], str(page), "exec"), namespace)
        else:
            drawn = namespace.get("picture") or timeline(namespace["matches"], title=part["title"])
            found[page.parent / part["picture"]] = f"{drawn}\n"
    return found


def stale(found: dict[Path, str]) -> list[str]:
    """The names of the files that are missing, differ, or belong to no picture of the pages."""
    wrong = [path.name for path, text in found.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    return sorted([*wrong, *(path.name for path in (DOCS / "pictures").glob("*.svg") if path not in found)])


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a picture is not what the page's example draws")
    found = pictures()
    if parser.parse_args().check:
        wrong = stale(found)
        if wrong:
            print("pictures: draw them anew with scripts/pictures.py:", *wrong, file=sys.stderr)
        return 1 if wrong else 0
    for path, text in found.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    print(f"pictures: {len(found)} in {DOCS / 'pictures'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
