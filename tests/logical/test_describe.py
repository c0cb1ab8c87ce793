"""The text of a plan is that of the language: patterns without conditions, and constants, so what a lint shows can be pasted."""

from __future__ import annotations

import dataclasses
import random

import pyarrow as pa
import pytest
from enough import Enough

import cepheid
from cepheid.language.syntax import TimeModel
from cepheid.logical import plan, tree
from cepheid.logical.describe import describe, describe_expression
from cepheid.testing import generators


@pytest.mark.parametrize("unit", ["", "s"])
@pytest.mark.parametrize("fragment", ["SUCCEEDING", "SUCCEEDING_GUARDED", "TIMED", "NEGATING", "STARTING"])
def test_a_pattern_without_conditions_is_read_back(fragment, unit, cases, seed):
    """Its keys too, and what THEN means."""
    given = getattr(generators, fragment)
    operators = tuple(each for each in given.operators if each[0] != "filter")
    conditions = dict.fromkeys(("outer", "correlated", "many", "previous", "lag", "index"), False)
    given = dataclasses.replace(given, operators=operators, unit=unit, consume=0.0, having=0.0, count=0.0, **conditions)
    source, schema = random.Random(f"{seed}/{fragment}"), generators.TIMED_SCHEMA if unit else generators.SCHEMA
    drawn = Enough(cases, **({"models": 3} if given.models else {}))
    for _ in drawn:
        query = cepheid.query(generators.random_query(source, fragment=given))
        bound = query.bound(query.schema(schema))
        if any(isinstance(part, plan.Filter) for part in tree.walk(bound.pattern)):
            continue
        text = describe(bound.pattern, unit=bound.schema.unit, keys=bound.partition_by)
        again = cepheid.query(f"SELECT * WHERE {text}").bound(bound.schema)
        assert (again.pattern, again.partition_by, again.model) == (bound.pattern, bound.partition_by, bound.model), f"{query.text}\n{text}"
        drawn.seen["models"] += bound.model not in (None, TimeModel.CAYUGA)


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
