"""Constants in the text of an expression are those of the language: what a lint shows can be pasted."""

from __future__ import annotations

import pyarrow as pa
import pytest

import cepheid
from cepheid.logical.describe import describe_expression


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("second", ["00", "07.5", "10.25", "59.000001"])
def test_a_timestamp_is_read_back(zone, unit, second):
    schema = pa.schema([("type", pa.string()), ("ts", pa.int64()), ("at", pa.timestamp(unit, zone))])
    instant = f"2026-01-01 10:00:{second}{'Z' if zone else ''}"
    (condition,) = conditions_of(f"SELECT * WHERE A AS a FILTER a.at > TIMESTAMP '{instant}'", schema)
    shown = describe_expression(condition)
    # A coarser column is compared with the last of its steps before the constant.
    assert shown == f"a.at > TIMESTAMP '{instant}'" or (unit in ("s", "ms") and "." in second)
    assert conditions_of(f"SELECT * WHERE A AS a FILTER {shown}", schema) == (condition,)


DAYS = pa.schema([("type", pa.string()), ("ts", pa.int64()), ("day", pa.date32()), ("took", pa.duration("ms"))])


def test_dates_and_durations_are_read_back():
    conditions = conditions_of("SELECT * WHERE A AS a FILTER a.day = DATE '2026-01-01' AND a.took > 90s", DAYS)
    shown = [describe_expression(condition) for condition in conditions]
    assert shown == ["a.day = DATE '2026-01-01'", "a.took > 90s"]
    assert conditions_of(f"SELECT * WHERE A AS a FILTER {' AND '.join(shown)}", DAYS) == conditions


def test_the_meaning_shows_a_day_as_people_write_it():
    query = cepheid.query("SELECT * WHERE A AS a FILTER a.day = DATE '2026-01-01'")
    assert "where day is 2026-01-01." in " ".join(str(query.explain("meaning", schema=DAYS)).split())


def conditions_of(text, schema):
    query = cepheid.query(text)
    return query.bound(query.schema(schema)).pattern.conditions
