"""The table of docs/language.md that marks what runs where is true, embedded and by the definition (Spark: tests/spark/test_what_runs_on_spark.py)."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from what_runs_where import ROWS, Row

import cepheid
from cepheid.testing import events

EVENTS = events("A1(v=4,k=1) A2(v=6,k=1) B3(v=7,k=1) B4(v=9,k=1) C5(v=1,k=1) C6(v=1,k=1) D7(v=1,k=1)")
TIMED = pa.table(
    {
        "type": [event["type"] for event in EVENTS],
        "ts": pa.array([event["ts"] for event in EVENTS], pa.timestamp("s", tz="UTC")),
        "k": [event["k"] for event in EVENTS],
        "v": [event["v"] for event in EVENTS],
    }
)
END = dt.datetime(1970, 1, 1, 1, tzinfo=dt.UTC)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_the_engine_evaluates_what_the_table_says(row: Row) -> None:
    query = cepheid.query(row.query)
    defined = query.run(TIMED, engine="reference", until=END)
    assert row.embedded == "yes"
    # RESTRICTED gives any of the matches with one interval.
    alike = (lambda match: (match.start, match.end)) if "RESTRICTED" in row.query else repr
    assert sorted(map(alike, query.run(TIMED, until=END))) == sorted(map(alike, defined))
