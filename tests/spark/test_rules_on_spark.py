"""Rules as data over a DataFrame: the rows of the embedded ones."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import pyarrow as pa
import pytest

import cepheid
from cepheid.errors import InputError, NotSupportedError, SchemaError
from cepheid.spark import on_rules

UTC = dt.UTC
BEGIN = dt.datetime(2026, 3, 1, tzinfo=UTC)
PAIRS = "SELECT * WHERE A AS a ; B AS b FILTER a[v > :least] PARTITION BY k WITHIN 20 seconds"


def at(seconds: float) -> dt.datetime:
    return BEGIN + dt.timedelta(seconds=seconds)


def table(seed: int, count: int = 300) -> pa.Table:
    rng = random.Random(seed)
    return pa.table(
        {
            "type": [rng.choice("ABC") for _ in range(count)],
            "ts": pa.array([at(place) for place in range(count)], pa.timestamp("us", "UTC")),
            "k": [rng.choice(["x", "y", "z", None]) for _ in range(count)],
            "v": [rng.randrange(10) for _ in range(count)],
            "j": [rng.randrange(3) for _ in range(count)],
        }
    )


ROWS: list[dict[str, Any]] = [
    {"name": "pairs", "query": PAIRS, "args": {"least": 3}},
    {"name": "pairs", "query": PAIRS, "args": {"least": 7}, "from": at(100)},
    {"name": "pairs", "from": at(250), "deleted": True, "ends": "stop"},
    *(
        {"name": f"limit {least}", "query": PAIRS, "args": {"least": least}, "from": at(20 * least), "until": at(20 * least + 90)}
        for least in range(10)
    ),
    {"name": "silent", "query": "SELECT * WHERE A AS a NOT FOLLOWED BY B FOR 9 seconds PARTITION BY k", "from": at(50)},
    {"name": "longest", "query": "SELECT MAX max(a.v) AS top, count(a) AS n WHERE A+ AS a ; B PARTITION BY k, j WITHIN 30 seconds"},
    {"name": "counts", "query": "SELECT COUNT(*) WHERE A ; B PARTITION BY k WITHIN 9 seconds", "until": at(200)},
    {"name": "compared", "query": "SELECT NXT * WHERE A AS a ; B AS b FILTER b.v > a.v PARTITION BY k WITHIN 30 seconds", "from": at(3.5)},
    {"name": "no key", "query": "SELECT * WHERE A", "from": at(10)},
    {"name": "wrong", "query": "SELECT * WHERE A AS a FILTER a[w > 1] PARTITION BY k"},
]


def rows_of(found: pa.Table) -> list[str]:
    return sorted(str([each[name] for name in found.column_names]) for each in found.to_pylist())


@pytest.mark.parametrize("until", [None, "end", at(230)])
@pytest.mark.parametrize("null_keys", ["drop", "group"])
def test_a_batch_has_the_rows_of_the_embedded_engine(spark, until, null_keys):
    events = table(1)
    frame = spark.createDataFrame(events).repartition(3)
    found = frame.transform(on_rules(ROWS, keys="k", until=until, null_keys=null_keys)).toArrow()
    refused = found.filter(found["error"].is_valid()).to_pylist()
    own = cepheid.rules([row for row in ROWS if row["name"] != "no key"]).run(events, until=until, null_keys=null_keys)
    assert sorted(each["rule"] for each in refused) == ["no key", "wrong"]
    assert {each["rule"]: each["error"].splitlines()[0] for each in refused}[
        "no key"
    ] == "error: the query is not partitioned by `k`: it has none"
    assert [each.name for each in own.refused] == ["wrong"]
    expected = own.to_arrow(keys=["k"])
    matches = found.filter(found["error"].is_null()).drop_columns(["error"])
    assert matches.num_rows > 100
    assert {*matches["rule"].to_pylist()} >= {"pairs", "silent", "longest", "counts", "compared", "limit 4"}
    assert rows_of(matches) == rows_of(expected)


def test_rules_may_be_a_dataframe(spark):
    events = table(2)
    rows = [
        {"name": "pairs", "query": PAIRS, "args": '{"least": 3}', "from": None},
        {"name": "pairs", "query": PAIRS, "args": '{"least": 7}', "from": at(100)},
    ]
    kinds = pa.schema([("name", pa.string()), ("query", pa.string()), ("args", pa.string()), ("from", pa.timestamp("us", "UTC"))])
    rules = spark.createDataFrame(pa.Table.from_pylist(rows, kinds))
    found = spark.createDataFrame(events).transform(on_rules(rules, keys=["k"])).toArrow()
    assert rows_of(found.drop_columns(["error"])) == rows_of(cepheid.rules(rows).run(events).to_arrow(keys=["k"]))


def test_what_cannot_be(spark):
    frame = spark.createDataFrame(table(3))
    with pytest.raises(InputError, match="takes a DataFrame"):
        on_rules(ROWS)(table(3))
    with pytest.raises(SchemaError, match="`key`"):
        frame.transform(on_rules(ROWS, keys="key"))
    with pytest.raises(InputError, match="two columns `rule`"):
        frame.withColumnRenamed("k", "rule").transform(on_rules([], keys="rule"))
    stream = spark.readStream.format("rate").load().selectExpr("timestamp AS ts", "'A' AS type", "value AS k")
    with pytest.raises(NotSupportedError, match="embedded"):
        stream.transform(on_rules(ROWS, keys="k"))
    refused = on_rules(ROWS, keys="k").refused(frame)
    assert [each.name for each in refused] == ["no key", "wrong"]
    assert frame.transform(on_rules([], keys="k")).count() == 0
