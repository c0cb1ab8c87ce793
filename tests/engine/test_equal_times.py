"""Events of one time whose order decides are said, once, where no column was named that orders them."""

from __future__ import annotations

import random

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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT * WHERE A THEN B", ": for THEN neither is before or after the other, whatever the order of the rows"),
        ("SELECT NXT * WHERE A THEN B", "names a column that does; but THEN goes by times: for it neither is before or after the other"),
        ("SELECT * WHERE A ; X THEN B", "names a column that does; but THEN goes by times: for it neither is before or after the other"),
        ("SELECT * WHERE A THEN B+", "names a column that does; but THEN goes by times: for it neither is before or after the other"),
    ],
)
def test_what_then_makes_of_equal_times_is_said(text: str, said: str) -> None:
    """The order of rows that only THEN looks at is no matter."""
    (warning,) = cepheid.query(text).run(TIED).warnings
    assert warning.endswith(said)
    if "unless" not in warning:
        assert len(cepheid.query(text).run(TIED)) == len(cepheid.query(text).run(TIED.take([0, 3, 2, 1]))) == 0


@pytest.mark.parametrize("piece", [1, 2, 3, 40])
@pytest.mark.parametrize(
    "clauses", ["", " PARTITION BY k", " FILTER A.k = B.k", " FILTER A.k < B.k", " NOT FOLLOWED BY A FOR 3", " WITHIN 0"]
)
def test_what_is_read_in_pieces_has_the_warning_of_a_table(piece: int, clauses: str, seed: int) -> None:
    """Also where the events of one time are in different pieces; the matches of `batches` have it too."""
    source = random.Random(f"equal times {seed}")
    query, said = cepheid.query(PAIR + clauses), 0
    for _ in range(30):
        times = sorted(source.choices(range(12), k=9))
        table = events(*((source.choice("ABXX"), time, source.choice([1, 2, 3])) for time in times))
        warnings = query.run(table).warnings
        ties = [each for each in warnings if "have the same time" in each]
        read = query.run(table.to_reader(max_chunksize=piece)).warnings
        found = query.batches(table.to_reader(max_chunksize=piece))
        for _ in found:
            pass
        for own in (read, found.warnings):
            assert len([each for each in own if "have the same time" in each]) == len(ties)
        said += bool(ties)
    assert 0 < said < 30


def test_batches_of_a_table_with_an_order_do_not_warn() -> None:
    for order, count in ((), 1), (("type",), 0):
        found = cepheid.query(PAIR).batches(TIED, order=order)
        assert len(list(found)) >= 0
        assert len(found.warnings) == count


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


PAIRS = "EVENT P(n) AS (SELECT count(a) AS n WHERE A AS a ; B PARTITION BY k WITHIN 4)"


@pytest.mark.parametrize(
    ("text", "rows", "time"),
    [
        (f"{PAIRS} SELECT * WHERE P ; C PARTITION BY k WITHIN 9", [("A", 1, 1), ("B", 1, 1), ("C", 3, 1)], 1),
        (f"{PAIRS} SELECT * WHERE P ; C ; D PARTITION BY k WITHIN 9", [("A", 1, 1), ("B", 2, 1), ("C", 3, 1), ("D", 3, 1)], 3),
        (f"{PAIRS} SELECT * WHERE P ; C PARTITION BY k WITHIN 9", [("A", 1, 1), ("B", 2, 1), ("C", 3, 1), ("C", 4, 1)], None),
        (f"{PAIRS} SELECT * WHERE P ; C PARTITION BY k WITHIN 9", [("A", 1, 1), ("B", 2, 1), ("C", 2, 2), ("A", 2, 3)], None),
        (
            f"{PAIRS} EVENT Q(n) AS (SELECT p.n AS n WHERE P AS p ; C PARTITION BY k WITHIN 4) SELECT * WHERE B ; P ; Q PARTITION BY k WITHIN 9",
            [("A", 1, 1), ("B", 2, 1), ("A", 3, 1), ("B", 4, 1), ("C", 5, 1)],
            None,
        ),
    ],
)
def test_definitions(text: str, rows: list[tuple[str, int, int]], time: int | None) -> None:
    """What they read and what the query reads is looked at; where events stand that they make is defined, though these have the time of another."""
    query, table = cepheid.query(text), events(*rows)
    wanted = () if time is None else (f"events that can be in one match have the same time, such as {time}: the order",)

    def pieces() -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=1))

    streamed = query.batches(pieces())
    list(streamed)
    for warnings in (query.run(table).warnings, query.run(pieces()).warnings, streamed.warnings):
        assert len(warnings) == len(wanted)
        assert all(map(str.startswith, warnings, wanted))
    assert query.run(table, order="type").warnings == ()
