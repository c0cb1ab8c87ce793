"""Parts of times in a zone: one run, one row at a time, the reference; and what is said of them."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

import cepheid
from cepheid.logical import time_zones

MOMENTS = [
    dt.datetime(1890, 5, 1, 23, 30, tzinfo=dt.UTC),
    dt.datetime(1945, 8, 14, 23, 0, tzinfo=dt.UTC),
    dt.datetime(2026, 3, 29, 0, 59, 59, tzinfo=dt.UTC),
    dt.datetime(2026, 3, 29, 1, tzinfo=dt.UTC),
    dt.datetime(2026, 10, 25, 1, tzinfo=dt.UTC),
    dt.datetime(2040, 7, 1, 12, tzinfo=dt.UTC),
]
ZONES = ["Europe/Berlin", "America/St_Johns", "Asia/Kathmandu", "-03:30"]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", ZONES)
def test_parts_are_those_of_the_clocks_there(unit, zone):
    events = pa.table({"type": ["L"] * len(MOMENTS), "ts": pa.array(MOMENTS, pa.timestamp(unit, "UTC"))})
    query = cepheid.query(
        "SELECT day(x.ts, :zone) AS d, first(x.ts) AS t, hour(x.$time, :zone) AS h, minute(x.$time, :zone) AS m"
        " WHERE L AS x FILTER hour(x.$time, :zone) >= 0"
    ).with_args(zone=zone)
    shown = [moment.astimezone(time_zones.zone_of(zone)) for moment in MOMENTS]
    expected = [(each.day, each.hour, each.minute) for each in shown]
    found = [match.measures for match in query.run(events)]
    assert [(each["d"], each["h"], each["m"]) for each in found] == expected
    recognizer = query.recognizer(events.schema)
    single = [match.measures for row in events.to_pylist() for match in recognizer.push(row)]
    assert [(each["d"], each["h"], each["m"]) for each in single] == expected


def test_days_with_a_change_have_two_offsets():
    assert time_zones.offsets_of_day("Europe/Berlin", 20_541) == (3_600, 3_600, 7_200)
    assert time_zones.offsets_of_day("Europe/Berlin", 20_542) == (7_200, 86_400, 7_200)


@pytest.mark.parametrize(("zone", "warned"), [("Europe/Berlin", True), ("UTC", False), (None, False)])
def test_a_part_without_a_zone_is_warned_of_where_the_column_has_one(zone, warned):
    schema = pa.schema({"type": pa.string(), "ts": pa.timestamp("us", zone)})
    query = cepheid.query("SELECT hour(x.$time) AS h WHERE L AS x")
    (warning,) = query.bound(query.schema(schema)).warnings if warned else [""]
    assert ("write hour(x.$time, 'Europe/Berlin'), or hour(x.$time, 'UTC') if you mean this" in warning) is warned
    assert warned or not query.bound(query.schema(schema)).warnings


def test_a_deadline_is_the_one_that_was_written():
    events = pa.table({"type": ["A", "C"], "ts": [0, 100]})
    for bound in ("3", "[< 3]", "[<= 3]"):
        query = cepheid.query(f"SELECT deadline_time() AS due WHERE A NOT FOLLOWED BY B FOR {bound}")
        assert [match.measures["due"] for match in query.run(events)] == [3]
