"""The stored state of a stream loads for ever: the same queries over the same columns, planned anew, go on from it."""

from __future__ import annotations

import dataclasses
import datetime as dt
import struct
import zlib

import pytest
from paged import Paged
from upgrade_cases import BASE, END, bucket_of, is_bucket, ordered, read, rest_of_bucket, step_rows, stored

from cepheid.engine.memory import container as state
from cepheid.errors import SnapshotError

NAMES = [name for name in stored() if is_bucket(name)]


@pytest.mark.parametrize("name", NAMES)
def test_a_stored_bucket_goes_on(spark, tmp_path, name):
    case, data = read(name)
    bucket, travel = bucket_of(case, spark, tmp_path, state=data)
    assert ordered(rest_of_bucket(bucket, travel, case)) == case["expected"]


def test_a_stored_bucket_goes_on_in_pages(spark, tmp_path):
    """The state of a bucket from before pages: it turns to pages, goes through bytes at each step, and gives the same."""
    paged = set()
    for name in NAMES:
        case, data = read(name)
        whole, travel = bucket_of(case, spark, tmp_path)
        bucket = Paged(whole.unit)
        if bucket.form is None:
            continue
        data, rows = bucket.load(data).dump(), []
        assert bucket.pages.on
        if data.pages:  # in some all events wait
            paged.add(name.split("/")[-1])
        for events, time in (([travel(case["after"])], BASE + dt.timedelta(seconds=case["watermark"])), ([], END)):
            bucket = Paged(whole.unit).load(data)
            rows += step_rows(bucket, events, time)
            data = bucket.dump()
        assert ordered(rows) == case["expected"], name
    assert {"bucket_absence", "bucket_from_start", "bucket_measures", "bucket_restricted"} <= paged


def test_what_else_is_refused(spark, tmp_path):
    """Another query, another name of one, another type of a column, a newer format."""
    case, data = read(next(name for name in NAMES if name.endswith("/bucket")))
    first, *others = case["queries"]
    more = {first: case["queries"][first].replace("9 seconds", "10 seconds")}
    changes = [
        {"queries": case["queries"] | more},
        {"queries": {("other" if name == first else name): text for name, text in case["queries"].items()}},
        {"queries": {name: case["queries"][name] for name in [*others, first]}},
        {"ddl": case["ddl"] | {"k": "int"}},
        {"ddl": case["ddl"] | {"v": "int"}},
    ]
    for change in changes:
        with pytest.raises(SnapshotError, match="the checkpoint was made by another query"):
            bucket_of(case | change, spark, tmp_path, state=data)
    magic, _, *numbers = state._HEADER.unpack_from(data)
    newer = state._HEADER.pack(magic, state.VERSION + 1, *numbers) + data[state._HEADER.size : -4]
    bucket, _ = bucket_of(case, spark, tmp_path)
    with pytest.raises(SnapshotError, match=f"format version {state.VERSION + 1}"):
        bucket.load(newer + struct.pack("<I", zlib.crc32(newer)))


def test_what_may_change(spark, tmp_path):
    """The lateness, and whether late events are given back."""
    case, data = read(next(name for name in NAMES if name.endswith("/bucket_measures")))
    bucket_of(case | {"lateness": "1 minute"}, spark, tmp_path, state=data)
    bucket, _ = bucket_of(case, spark, tmp_path)
    unit = dataclasses.replace(bucket.unit, late=(("v", "c3"),))
    assert type(bucket)(unit).load(data)
