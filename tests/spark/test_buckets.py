"""The number of buckets belongs to a checkpoint: a key looks for its state where the hash of its key points."""

from __future__ import annotations

import dataclasses

import pyarrow as pa
import pytest

import cepheid
from cepheid.errors import SnapshotError
from cepheid.spark.tasks.buckets import Bucket
from cepheid.spark.tasks.unit import Unit
from cepheid.spark.tasks.worker import TIME, Task, pack_schema

SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us", "UTC")), ("type", pa.string())])
QUERY = cepheid.query("SELECT count(x) AS n WHERE A AS x ; B PARTITION BY k WITHIN 10 seconds")


@pytest.fixture(scope="module")
def unit():
    """What the state has to know of a query over 8 buckets."""
    schema = QUERY.schema(SCHEMA)
    known = {
        "text": QUERY.text,
        "args": (),
        "schema": pack_schema(schema),
        "fingerprint": QUERY.compiled(schema).program.fingerprint,
        "keys": ("k0",),
        "key_names": ("k",),
        "payload": (("k", "k0"), ("ts", "ts"), ("type", "type")),
        "shown": (),
        "ties": (),
        "tie_names": (),
        "index": False,
        "time_name": "ts",
    }
    task = {field.name: field.default for field in dataclasses.fields(Task)} | known
    travels = pa.schema(
        [("k0", pa.int64()), (TIME, SCHEMA.field("ts").type), ("$letter", pa.int32()), SCHEMA.field("ts"), SCHEMA.field("type")]
    )
    output = pa.schema([("k", pa.int64()), ("n", pa.int64())])
    return Unit(
        (task,), ((("$letter",), None),), (), None, None, output.serialize().to_pybytes(), travels.serialize().to_pybytes(), buckets=8
    )


def test_another_number_of_buckets_is_refused(unit):
    stored = Bucket(unit).dump()
    Bucket(unit).load(stored)
    with pytest.raises(SnapshotError, match="the checkpoint spreads the keys over 8 buckets, and the query now over 16") as error:
        Bucket(dataclasses.replace(unit, buckets=16)).load(stored)
    assert "buckets=8" in str(error.value)
