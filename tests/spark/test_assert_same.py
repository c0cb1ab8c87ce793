"""`assert_same`: embedded, batch and a stream in disorder over one table, and what it says where a way differs."""

from __future__ import annotations

import datetime as dt
import random

import pyarrow as pa
import pytest

import cepheid
from cepheid.spark.recognition import Recognition
from cepheid.testing import assert_same
from cepheid.testing import events as events_of_line

NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
PAIRS = "SELECT * WHERE A AS x ; B AS y FILTER y.v > x.v PARTITION BY k WITHIN 20 seconds"
SILENT = cepheid.query("SELECT x.v AS v WHERE A AS x NOT FOLLOWED BY B FOR 10 seconds PARTITION BY k")
ANY_NEXT = "SELECT * WHERE ANY AS x : ANY AS y WITHIN 10 seconds"


def table_of(seed: int, count: int = 60) -> pa.Table:
    """Events of some keys, some without one, with equal times that `v` decides."""
    chance = random.Random(seed)
    rows = [
        {"at": NOON + dt.timedelta(seconds=number // 2), "kind": chance.choice("ABC"), "k": chance.choice([1, 2, None]), "v": number}
        for number in range(count)
    ]
    return pa.Table.from_pylist(rows)


@pytest.mark.parametrize("query", [PAIRS, SILENT, ANY_NEXT], ids=["pairs", "absence", "any"])
def test_the_same_three_ways(spark, query, seed):
    assert_same(query, table_of(seed), time="at", type="kind", order="v", lateness="7 seconds", seed=seed, spark=spark)


def test_defaults_and_times_without_zone(spark):
    """The session that is active, the usual columns, times as a list of dicts has them."""
    rows = [{"ts": NOON.replace(tzinfo=None) + dt.timedelta(minutes=number), "type": "AB"[number % 2], "v": number} for number in range(10)]
    assert_same("SELECT COUNT(*) WHERE A AS x ; B AS y WITHIN 3 minutes", rows)


def test_a_way_that_differs_is_named(spark, monkeypatch):
    called = Recognition.__call__

    def losing(self, frame):
        return called(self, frame.where("NOT (v <=> 3)") if frame.isStreaming else frame)

    monkeypatch.setattr(Recognition, "__call__", losing)
    rows = [{"ts": NOON + dt.timedelta(seconds=number), "type": "AB"[number % 2], "v": number} for number in range(6)]
    with pytest.raises(AssertionError) as caught:
        assert_same("SELECT x.v AS a, y.v AS b WHERE A AS x ; B AS y WITHIN 5 seconds", rows, spark=spark)
    assert str(caught.value).splitlines() == [
        "the matches differ: embedded 6, Spark batch 6, Spark stream 4",
        "  Spark stream lacks  start_time=2026-01-01 12:00:00Z, end_time=2026-01-01 12:00:03Z, a=0, b=3",
        "  Spark stream lacks  start_time=2026-01-01 12:00:02Z, end_time=2026-01-01 12:00:03Z, a=2, b=3",
    ]


def test_what_cannot_be_compared(spark):
    with pytest.raises(cepheid.SchemaError, match="a stream's event time is a timestamp, and `ts` is int64"):
        assert_same("SELECT * WHERE A ; B", events_of_line("A1 B2"), spark=spark)
    with pytest.raises(cepheid.InputError, match="no events"):
        assert_same("SELECT * WHERE A ; B", table_of(0).slice(60), time="at", type="kind", spark=spark)
    with pytest.raises(cepheid.InputError, match="nothing says which comes first"):
        assert_same("SELECT * WHERE ANY AS x ; ANY AS y", table_of(0), time="at", type="kind", spark=spark)
    with pytest.raises(cepheid.NotSupportedError, match="CONSUME BY ANY"):
        assert_same("SELECT * WHERE A ; B PARTITION BY k CONSUME BY ANY", table_of(0), time="at", type="kind", order="v", spark=spark)
