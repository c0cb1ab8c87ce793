"""Events written as columns of text, for examples and tests: the first line has the names, each other line an event."""

from __future__ import annotations

import datetime as dt
from typing import Any


def columns(text: str, *, day: str = "2026-03-02", time: str = "ts") -> list[dict[str, Any]]:
    """Events from lines of words under the names of their columns, as `Query.run` takes them.

    A word that is a number is one (int, or float), `-` is None, anything else is text. time: the column of times of day (`10:00`, `10:00:30`), which
    become datetimes in UTC on `day` (ISO 8601). Raises ValueError for a line that has more or fewer words than there are names, and for a time that
    is none. Linear.
    """
    names, *lines = (line.split() for line in text.strip().splitlines())
    rows = [dict(zip(names, line, strict=True)) for line in lines]
    return [
        {name: dt.datetime.fromisoformat(f"{day} {word}+00:00") if name == time else _value(word) for name, word in row.items()}
        for row in rows
    ]


def _value(word: str) -> int | float | str | None:
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return None if word == "-" else word
