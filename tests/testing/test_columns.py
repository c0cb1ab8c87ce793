"""Events as columns of text."""

from __future__ import annotations

import datetime as dt

import pytest

from cepheid.testing import columns


def test_words_are_values() -> None:
    text = """
        type  ts        k   v
        A     10:00     -   1
        B     10:00:30  x1  -2.5
    """
    assert columns(text, day="2026-01-01") == [
        {"type": "A", "ts": dt.datetime(2026, 1, 1, 10, tzinfo=dt.UTC), "k": None, "v": 1},
        {"type": "B", "ts": dt.datetime(2026, 1, 1, 10, 0, 30, tzinfo=dt.UTC), "k": "x1", "v": -2.5},
    ]
    assert columns("a b\n1 2", time="when") == [{"a": 1, "b": 2}]


@pytest.mark.parametrize("text", ["type ts\nA", "type ts\nA 10:00 x", "type ts\nA noon"])
def test_lines_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"zip|isoformat"):
        columns(text)
