"""The help for a key inside a column says how its column is added to an Arrow table, to dicts and to a DataFrame: each does it, and the query runs."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F

import cepheid
from cepheid.errors import BindError, QuerySyntaxError

KIND = pa.schema(
    [
        ("type", pa.string()),
        ("ts", pa.int64()),
        ("p", pa.struct([("user", pa.struct([("id", pa.int64())])), ("tags", pa.list_(pa.string()))])),
        ("items", pa.list_(pa.struct([("sku", pa.string())]))),
        ("m", pa.map_(pa.string(), pa.struct([("b", pa.int64())]))),
        ("n", pa.map_(pa.int64(), pa.string())),
    ]
)
EVENTS = [
    {
        "type": kind,
        "ts": ts,
        "p": {"user": {"id": ts % 2}, "tags": ["x", f"t{ts % 2}"]},
        "items": [{"sku": f"s{ts % 2}"}],
        "m": {"a": {"b": ts % 2}},
        "n": {1: f"n{ts % 2}"},
    }
    for ts, kind in enumerate(["A", "A", "B", "B"])
]


@pytest.mark.parametrize("key", ["p.user.id", "p.tags[1]", "items[0].sku", "m['a'].b", "p", "items", "m", "n"])
def test_the_help_is_right(spark, key):
    text = "SELECT * WHERE A AS x ; B AS y PARTITION BY {} WITHIN 5"
    table = pa.Table.from_pylist([{**event, "m": [*event["m"].items()], "n": [*event["n"].items()]} for event in EVENTS], KIND)
    with pytest.raises((BindError, QuerySyntaxError)) as caught:
        cepheid.query(text.format(key)).run(table)
    help_ = str(caught.value).rpartition("help: ")[2].partition("; if `")[0]
    found = re.fullmatch(
        r"a key is a column, add it before the run: (.+) of Arrow, (.+) for dicts, (.+) on Spark; then PARTITION BY (\w+)", help_
    )
    assert found, help_
    arrow, each, frame, name = found.groups()
    names = {"events": table, "pc": pc, "F": F, "df": spark.createDataFrame(table)}
    keyed = eval(arrow, names)
    wanted = keyed[name].to_pylist()
    assert [eval(each, names | {"event": event})[name] for event in EVENTS] == wanted
    assert [row[name] for row in eval(frame, names).orderBy("ts").select(name).collect()] == wanted
    assert len(set(wanted)) == 2
    assert len(cepheid.query(text.format(name)).run(keyed.select(["type", "ts", name]))) == 2
