"""docs/limits.md has every limit of the source with its value, and docs/operations.md says of each that an error names what to do."""

from __future__ import annotations

import re
from pathlib import Path

from loaded_scripts import script

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_of_limits_is_that_of_the_source() -> None:
    limits = script("limits")
    assert len(limits.limits()) > 80
    assert (ROOT / "docs/limits.md").read_text(encoding="utf-8") == limits.page(), "write it anew: python scripts/limits.py"


def test_operations_says_what_to_do_at_each_limit() -> None:
    page = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    table = page[page.index("## Limits") : page.index("## What to do when")]
    said = set(re.findall(r"`((?:MAX|MOST)_[A-Z_]+|[A-Z_]+_LIMIT)`", table))
    limits = script("limits")
    assert sorted(limits.named_in_errors() - said) == []
    assert sorted(said - {limit.name for limit in limits.limits()}) == []


def test_the_pictures_are_those_of_the_pages() -> None:
    pictures = script("pictures")
    found = pictures.pictures()
    assert len(found) == 21
    assert pictures.stale(found) == [], "draw them anew: python scripts/pictures.py"
