"""What `assert_same` says of tables of matches that differ, without Spark; with it: tests/spark/test_assert_same.py."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys

import pyarrow as pa

from cepheid.testing.pipelines import SHOWN_CHARACTERS, compared

NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)


def table(**columns: list[object]) -> pa.Table:
    return pa.table(columns)


def test_equal_values_in_any_order_and_form() -> None:
    one = pa.table({"k": [1.0, -0.0, None], "at": pa.array([NOON] * 3, pa.timestamp("us", "UTC")), "x": [[{"v": 1}], [], None]})
    two = pa.table({"k": [None, 0.0, 1.0], "at": pa.array([NOON] * 3, pa.timestamp("us", "Asia/Tokyo")), "x": [None, [], [{"v": 1}]]})
    assert compared({"a": one, "b": two, "c": two.append_column("decided_time", one["at"])}) == []
    assert compared({"a": table(x=[float("nan")]), "b": table(x=[float("nan")])}) == []


def test_differences_by_way() -> None:
    found = compared({"embedded": table(x=[1, 2, 2]), "batch": table(x=[2, 1, 2]), "stream": table(x=[1, 2, 3])})
    assert found == ["the matches differ: embedded 3, batch 3, stream 3", "  stream lacks  x=2", "  only stream has  x=3"]
    assert compared({"a": table(x=[1]), "b": table(y=[1])})[1:] == ["  b lacks  x=1", "  only b has  y=1"]
    assert compared({"a": table(x=[1]), "b": table(x=["1"])}) != []


def test_the_first_differences_in_short() -> None:
    found = compared({"a": table(x=list(range(10))), "b": table(x=[0])})
    assert found == ["the matches differ: a 10, b 1", *(f"  b lacks  x={number}" for number in (1, 2, 3)), "  b lacks  6 more"]
    (_, line, _) = compared({"a": table(x=["y" * 1000]), "b": table(x=["z"])})
    assert line == f"  b lacks  x='{'y' * (SHOWN_CHARACTERS - 3)} .."
    at = pa.table({"at": pa.array([NOON]), "x": [[{"v": 1.5, "s": "q"}]]})
    assert compared({"a": at, "b": at.slice(1)})[1] == "  b lacks  at=2026-01-01 12:00:00Z, x=[(v=1.5, s='q')]"


def test_it_is_there_without_spark() -> None:
    code = "import sys, cepheid.testing; assert cepheid.testing.assert_same; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
