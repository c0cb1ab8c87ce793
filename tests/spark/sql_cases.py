"""Values of every type, for the tests of table functions with and without Spark."""

from __future__ import annotations

import datetime as dt
import decimal

import pyarrow as pa

VALUES = pa.table(
    {
        "ts": pa.array(
            [dt.datetime(2026, 10, 25, 0, 30, 0, 5, dt.UTC), dt.datetime(2026, 10, 25, 1, 30, 0, 5, dt.UTC)], pa.timestamp("us", "UTC")
        ),
        "type": ["A", "B"],
        "local": pa.array([dt.datetime(2026, 1, 1, 1, tzinfo=dt.UTC), None], pa.timestamp("us")),
        "day": [dt.date(2026, 1, 1), None],
        "exact": pa.array([decimal.Decimal("1.50"), None], pa.decimal128(10, 2)),
        "bytes": [b"ab", None],
        "took": pa.array([dt.timedelta(hours=1, microseconds=1), None], pa.duration("us")),
        "list": pa.array([[1, None], None], pa.list_(pa.int64())),
        "times": pa.array([[dt.datetime(2026, 7, 1, tzinfo=dt.UTC), None], None], pa.list_(pa.timestamp("us", "UTC"))),
        "map": pa.array(
            [[("x", dt.datetime(2026, 7, 1, tzinfo=dt.UTC)), ("y", None)], None], pa.map_(pa.string(), pa.timestamp("us", "UTC"))
        ),
        "inner": pa.array([{"m": [("x", 1)], "n": 2}, None], pa.struct([("m", pa.map_(pa.string(), pa.int64())), ("n", pa.int32())])),
    }
)
