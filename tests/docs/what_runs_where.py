"""The rows of the table of docs/language.md that marks what runs where; tests of the engine and of Spark read them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).resolve().parents[2] / "docs/language.md"
HEAD = ("construct", "for example", "embedded", "Spark batch", "Spark stream")


class Row(NamedTuple):
    """A construct, a query that has it, and where it runs: "yes" or "no"."""

    construct: str
    query: str
    embedded: str
    batch: str
    stream: str

    def __str__(self) -> str:
        return self.construct


def rows() -> list[Row]:
    tables = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("|")
    ]
    start = tables.index(list(HEAD)) + 2
    found = []
    for cells in tables[start:]:
        if len(cells) != len(HEAD):
            break
        construct, query, *where = cells
        found.append(Row(construct, query.strip("`"), *where))
    assert len(found) > 20
    return found


ROWS = rows()
