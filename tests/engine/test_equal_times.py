"""Events of one time whose order decides are said, once, where no column was named that orders them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.engine.run import equal_times


def events(*rows: tuple[str, int, int]) -> pa.Table:
    kinds, times, keys = zip(*rows, strict=True)
    return pa.table({"type": kinds, "ts": times, "k": keys})


TIED = events(("B", 1, 1), ("A", 2, 1), ("X", 2, 1), ("B", 2, 1))
PAIR = "SELECT * WHERE A ; B"


@pytest.mark.parametrize("text", [PAIR, "SELECT * WHERE A+", "SELECT * WHERE A NOT FOLLOWED BY B FOR 5", f"{PAIR} PARTITION BY k"])
def test_the_order_of_rows_is_said_where_it_decides(text: str) -> None:
    tied = TIED if "+" not in text else events(("A", 2, 1), ("A", 2, 1))
    query = cepheid.query(text)
    (warning,) = query.run(tied).warnings
    assert warning == (
        "events that can be in one match have the same time, such as 2: the order of the rows decides, unless order= (--order) names a column"
        " that does"
    )
    assert query.run(tied, order="type").warnings == ()
    assert str(query.run(tied)).count("the order of the rows") == 1


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT * WHERE (A AS a FILTER a[k = 1]) OR B", TIED),
        (PAIR, events(("A", 1, 1), ("X", 1, 1), ("X", 1, 1), ("B", 2, 1))),
        (f"{PAIR} PARTITION BY k", events(("A", 1, 1), ("B", 1, 2), ("A", 2, 2), ("B", 3, 1))),
    ],
)
def test_where_it_cannot_decide_nothing_is_said(text: str, rows: pa.Table) -> None:
    """One event in a match; events that change nothing; other partitions."""
    assert cepheid.query(text).run(rows).warnings == ()


def test_streams_that_are_merged_have_an_order() -> None:
    streams = {kind: pa.table({"ts": [1]}) for kind in "AB"}
    assert cepheid.query(PAIR).run(streams).warnings == ()


@pytest.mark.parametrize("at", [0, 1, 7, 8, 9, 31, 38])
def test_pieces_overlap(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    monkeypatch.setattr(equal_times, "FIRST", 8)
    monkeypatch.setattr(equal_times, "PIECE", 16)
    times = np.arange(40)
    times[at + 1] = at
    for keys in ([1] * 40, [row // 20 for row in range(40)]):
        found = cepheid.query(f"{PAIR} PARTITION BY k").run(pa.table({"type": ["A", "B"] * 20, "ts": times, "k": keys})).warnings
        assert bool(found) == (keys[at] == keys[at + 1])
