"""Build the documentation site: stage the pages in out/docs, build them into out/site, and check what was built.

The pages are those of docs/, as they stand in the repository. Staging adds what is elsewhere (the change log, the plots of the benchmarks), points
the links of the pages to it, and writes the reference: a page for each public package, with each name of its ``__all__`` for mkdocstrings. The check
reads the built pages: every link leads to a page and to a place in it, and nothing is loaded from a network.
"""

from __future__ import annotations

import argparse
import ast
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
STAGED = ROOT / "out/docs"
SITE = ROOT / "out/site"
SOURCE = ROOT / "src/cepheid"
PACKAGES = ("", "spark", "language", "testing", "viz", "logical", "automata", "theory", "algebra", "succession")
"""Those with public names, each a page of the reference; "" is cepheid itself. `errors` is a module, and has a page too."""

ELSEWHERE = {"../benchmarks/record/": "record/", "](../benchmarks/record)": "](benchmarks.md)", "](../CHANGELOG.md)": "](changelog.md)"}
SHIM, OURS = '"https://unpkg.com/iframe-worker/shim"', "assets/local-worker.js"
"""What the builder's plugin for pages without a network would load from one, and what stands in its place."""

LINK = re.compile(r"\[([^\]]+)\]\((\.\./[^)#]+)[^)]*\)")
LOADS = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"), ("source", "src")}


# ---------------------------------------------------------------------------------------------------------- staging


def stage() -> None:
    """Write the pages that the site is built from."""
    shutil.rmtree(STAGED, ignore_errors=True)
    shutil.copytree(DOCS, STAGED)
    shutil.copytree(ROOT / "benchmarks/record", STAGED / "record", ignore=shutil.ignore_patterns("*.json"))
    shutil.copy(ROOT / "CHANGELOG.md", STAGED / "changelog.md")
    for path in STAGED.rglob("*.md"):
        path.write_text(_staged(path, path.read_text(encoding="utf-8")), encoding="utf-8")
    for name, text in reference().items():
        path = STAGED / "reference" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _staged(path: Path, text: str) -> str:
    """A page with its links as they are in the site; one to what the site does not have, such as a source, becomes its text."""
    if path.name == "changelog.md":
        text = text.replace("](docs/", "](")
    for old, new in ELSEWHERE.items():
        text = text.replace(old, new)
    return LINK.sub(lambda link: link[0] if (path.parent / link[2]).resolve().is_relative_to(STAGED) else link[1], text)


def reference() -> dict[str, str]:
    """The pages of the reference by their file's name."""
    pages = {f"{package or 'index'}.md": _page(package) for package in PACKAGES}
    errors = "cepheid.errors"
    pages["errors.md"] = f"# {errors}\n\n::: {errors}\n    options:\n      show_root_heading: false\n      show_root_toc_entry: false\n"
    return pages


def _page(package: str) -> str:
    whole = f"cepheid.{package}".rstrip(".")
    parts = [f"# {whole}\n"]
    elsewhere = {"errors", *_imported_from("", "cepheid.errors")} if package == "" else set()
    parts += [f"::: {_path(package, name)}\n" for name in public_names(package) if name not in elsewhere]
    return "\n".join(parts)


def public_names(package: str) -> list[str]:
    """What a package's `__all__` names."""
    for node in _tree(package).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__":
            names: list[str] = ast.literal_eval(node.value)
            return names
    raise SystemExit(f"site: {package or 'cepheid'} has no __all__")


def _path(package: str, name: str) -> str:
    """The dotted path of a name; where a module has the same name, the path where it is defined, or it would mean the module."""
    if not (SOURCE / package / f"{name}.py").is_file():
        return ".".join(["cepheid", *([package] if package else []), name])
    homes = [
        node.module for node in ast.walk(_tree(package)) if isinstance(node, ast.ImportFrom) and name in {each.name for each in node.names}
    ]
    return f"{homes[0]}.{name}"


def _imported_from(package: str, module: str) -> set[str]:
    nodes = [node for node in ast.walk(_tree(package)) if isinstance(node, ast.ImportFrom) and node.module == module]
    return {each.name for node in nodes for each in node.names}


def _tree(package: str) -> ast.Module:
    return ast.parse((SOURCE / package / "__init__.py").read_text(encoding="utf-8"))


def replace_shim() -> None:
    """Let the built pages load our file instead of the builder's shim."""
    for path in SITE.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        up = "../" * (len(path.relative_to(SITE).parts) - 1)
        path.write_text(text.replace(SHIM, f'"{up}{OURS}"'), encoding="utf-8")


# --------------------------------------------------------------------------------------------------------- checking


class Page(HTMLParser):
    """What a built page links to, loads, and can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.places: set[str] = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what one element says."""
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.places.add(value)
            elif tag == "a" and name == "href":
                self.links.append(value)
            elif (tag, name) in LOADS:
                self.loads.append(value)


def mistakes(site: Path = SITE) -> list[str]:
    """What is wrong with the built pages: links that lead nowhere, and what would be loaded from a network."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        where = path.relative_to(site)
        found += [f"{where} loads {target}" for target in page.loads if urlsplit(target).netloc]
        found += [f"{where} links to {target}" for target in [*page.links, *page.loads] if not _leads(path, target, pages)]
    return found


def _leads(path: Path, target: str, pages: dict[Path, Page]) -> bool:
    parts = urlsplit(target)
    if parts.scheme or parts.netloc or path.name == "404.html":
        return True
    to = path if not parts.path else (path.parent / unquote(parts.path)).resolve()
    to = to / "index.html" if to.is_dir() else to
    return to.is_file() and (to not in pages or unquote(parts.fragment) in pages[to].places)


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--zensical", type=Path, required=True, help="the builder (the Makefile brings it)")
    options = parser.parse_args()
    stage()
    shutil.rmtree(SITE, ignore_errors=True)
    done = subprocess.run([str(options.zensical.absolute()), "build", "--strict", "--clean"], cwd=ROOT, check=False)
    if done.returncode:
        return done.returncode
    replace_shim()
    wrong = mistakes()
    sys.stderr.writelines(f"site: {each}\n" for each in wrong)
    files = [path for path in SITE.rglob("*") if path.is_file()]
    print(f"site: {len(files)} files, {sum(path.stat().st_size for path in files) / 1e6:.1f} MB in {SITE.relative_to(ROOT)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
