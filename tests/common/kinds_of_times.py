"""What times an input can have: two of each kind, a step apart or more, and the type that they are read as."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa

DAY = dt.date(2026, 1, 1)
NOON = dt.datetime.combine(DAY, dt.time(12))
SECOND = dt.timedelta(seconds=1)
NUMBERS = {"numbers": ((1_767_225_600, 1_767_225_601), pa.int64())}
TEXTS = {
    "days": (("2026-01-01", "2026-01-02"), pa.date32()),
    "times": (("2026-01-01T10:00:00", "2026-01-01 10:00:01.5"), pa.timestamp("us")),
    "times with a zone": (("2026-01-01T10:00:00Z", "2026-01-01T12:00:01+02:00"), pa.timestamp("us", "UTC")),
}
"""As text."""
VALUES = {
    "values: days": ((DAY, DAY + dt.timedelta(1)), pa.date32()),
    "values: times": ((NOON, NOON + SECOND), pa.timestamp("us")),
    "values: times with a zone": ((NOON.replace(tzinfo=dt.UTC), NOON.replace(tzinfo=dt.UTC) + SECOND), pa.timestamp("us", "UTC")),
}
"""What Python, Arrow, Parquet and Spark have besides."""
