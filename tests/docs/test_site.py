"""Each page is in the navigation of the site, each link of the pages leads to a page and to a heading in it, and the reference has all names."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from loaded_scripts import script

import cepheid

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
FENCED = re.compile(r"^(```+).*?^\1$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?P<path>[^)#:\s]*)(?:#(?P<place>[^)\s]+))?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def navigation() -> set[str]:
    """The pages that the navigation names."""
    todo = list(tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"])
    found = []
    while todo:
        for target in todo.pop().values():
            if isinstance(target, str):
                found.append(target)
            else:
                todo += target
    assert len(found) == len(set(found))
    return set(found)


def test_each_page_is_in_the_navigation() -> None:
    pages = {path.relative_to(DOCS).as_posix() for path in PAGES}
    made = {f"reference/{name}" for name in script("website").reference()}
    assert navigation() == {*pages, *made, "changelog.md"}


def places(path: Path) -> set[str]:
    """What a link can lead to in a page: its headings, as code hosts and the site name them."""
    headings = HEADING.findall(FENCED.sub("", path.read_text(encoding="utf-8")))
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading) for heading in headings]
    return {re.sub(r"[^\w\s-]", "", heading).strip().lower().replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("path", [ROOT / "README.md", *PAGES], ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_to_headings(path: Path) -> None:
    for link in LINK.finditer(FENCED.sub("", path.read_text(encoding="utf-8"))):
        to = (path.parent / link["path"]).resolve() if link["path"] else path
        assert to.exists(), link[0]
        if link["place"]:
            assert link["place"] in places(to), link[0]


def test_the_reference_has_all_public_names() -> None:
    pages = script("website").reference()
    whole = "\n".join(pages.values())
    assert "::: cepheid.query.query\n" in whole
    assert "::: cepheid.errors\n" in whole
    for name in set(cepheid.__all__) - {"errors"} - set(vars(cepheid.errors)):
        assert re.search(rf"^::: cepheid\.(\w+\.)*{name}$", pages["index.md"], re.MULTILINE), name


BUILT = """<a href="{0}"></a><h2 id="here"></h2><script src="{1}"></script>"""


@pytest.mark.parametrize(
    ("link", "load", "wrong"),
    [
        ("b.html#here", "s.js", []),
        ("#here", "s.js", []),
        ("#nowhere", "s.js", ["a.html links to #nowhere"]),
        ("c.html", "s.js", ["a.html links to c.html"]),
        ("b.html#there", "s.js", ["a.html links to b.html#there"]),
        ("https://example.org", "https://example.org/s.js", ["a.html loads https://example.org/s.js"]),
        ("b.html", "//example.org/s.js", ["a.html loads //example.org/s.js"]),
        ("b.html", "t.js", ["a.html links to t.js"]),
    ],
)
def test_what_the_check_of_the_built_site_finds(tmp_path: Path, link: str, load: str, wrong: list[str]) -> None:
    (tmp_path / "a.html").write_text(BUILT.format(link, load), encoding="utf-8")
    (tmp_path / "b.html").write_text('<h2 id="here"></h2>', encoding="utf-8")
    (tmp_path / "s.js").write_text("", encoding="utf-8")
    assert script("website").mistakes(tmp_path) == wrong
