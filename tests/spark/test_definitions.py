"""Matches as events on Spark batch: the matches of `q.run`, with keys in different tasks, options, schemas, and what is refused."""

from __future__ import annotations

import dataclasses
import datetime as dt
import random

import pyarrow as pa
import pytest

import cepheid
from cepheid.errors import InputError, LimitError, NotSupportedError
from cepheid.spark import on, translated
from cepheid.spark.tasks import layers
from cepheid.testing import events, generators
from cepheid.testing.differential import matches_up_to

BURST = """
EVENT Burst(failures) AS (SELECT MAX count(f) AS failures WHERE Fail+ AS f PARTITION BY user WITHIN 5s HAVING failures >= 2)
"""
ALONE = "EVENT Alone(since) AS (SELECT f.ts AS since WHERE Fail AS f NOT FOLLOWED BY ANY FOR 2s PARTITION BY user)"
TWO = "EVENT Two(n) AS (SELECT count(a) AS n WHERE (Alone ; Alone) AS a PARTITION BY user)"
START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
STREAM = events(
    "Fail1(user='a') Fail2(user='b') Fail3(user='a') Fail4(user='b') Ok6(user='a') Ok7(user='b') Fail8(user=null) Fail20(user='a')"
)


def logins():
    rows = [{**row, "ts": START + dt.timedelta(seconds=row["ts"])} for row in STREAM]
    kinds = [("type", pa.string()), ("ts", pa.timestamp("us", tz="UTC")), ("user", pa.string())]
    return pa.Table.from_pylist(rows, schema=pa.schema(kinds))


def shown(table):
    return sorted(repr(row) for row in table.to_pylist())


def same(spark, text, table, **options):
    """What Spark gives, which is what a run gives."""
    query = cepheid.query(text)
    found = spark.createDataFrame(table).transform(query.on(**options)).toArrow()
    own = {name: value for name, value in options.items() if name in {"null_keys", "until", "time", "type"}}
    expected = query.run(table, **own).to_arrow(events=True)
    assert found.column_names == expected.column_names
    assert shown(found) == shown(expected)
    return found


def test_a_burst_then_a_success(spark):
    found = same(
        spark, f"{BURST} SELECT b.failures AS failures, s.ts AS at WHERE Burst AS b ; Ok AS s PARTITION BY user WITHIN 10s", logins()
    )
    assert sorted(zip(found["user"].to_pylist(), found["failures"].to_pylist(), strict=True)) == [("a", 2), ("b", 2)]
    assert min(found["start_time"].to_pylist()).astimezone(dt.UTC) == START + dt.timedelta(seconds=1)


def test_events_that_are_made_are_shown_with_their_attributes(spark):
    found = same(spark, f"{BURST} SELECT * WHERE Burst AS b ; Ok AS s PARTITION BY user", logins())
    (event,) = found["b"][0].as_py()
    assert (event["type"], event["failures"], event["ts"]) == ("Burst", 2, found["b"][0][0]["ts"].as_py())
    query = cepheid.query(f"{BURST} SELECT * WHERE Burst AS b ; Ok AS s PARTITION BY user")
    few = spark.createDataFrame(logins()).transform(query.on(columns=["failures"])).toArrow()
    assert few["b"][0].as_py() == [{"failures": 2}]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (f"{BURST} SELECT COUNT(*) WHERE Burst+ AS b PARTITION BY user", {}),
        (f"{BURST} SELECT b.failures AS n WHERE Burst AS b PARTITION BY user", {"null_keys": "group"}),
        (f"{BURST} SELECT b.failures AS n WHERE Burst AS b", {}),  # one task
        (f"{BURST} SELECT * WHERE Burst AS b NOT FOLLOWED BY Ok FOR 2s PARTITION BY user", {}),
        (f"{BURST} SELECT * WHERE Burst AS b NOT FOLLOWED BY Ok FOR 2s PARTITION BY user", {"until": "end"}),
        (f"{BURST} SELECT * WHERE Burst AS b NOT FOLLOWED BY Ok FOR 2s PARTITION BY user", {"until": START + dt.timedelta(seconds=6)}),
        (f"{ALONE} {TWO} SELECT * WHERE ANY AS x ; Two PARTITION BY user", {}),
    ],
)
def test_clauses_and_options(spark, text, options):
    same(spark, text, logins(), **options)


@pytest.fixture
def case_sensitive(spark):
    """The key `b` and the variable `B` are two columns."""
    spark.conf.set("spark.sql.caseSensitive", "true")
    yield
    spark.conf.unset("spark.sql.caseSensitive")


@pytest.mark.usefixtures("case_sensitive")
def test_random_programs(spark, seed, cases):
    """With LIMIT and ANY too: what is chosen depends on the events of a partition alone."""
    compared = matched = 0
    for number in range(max(20, cases // 8)):
        rng = random.Random(f"{seed}/{number}")
        fragment = dataclasses.replace(generators.LAYERED, unit="s", partition=0.9)
        query = cepheid.query(generators.random_query(rng, fragment=fragment))
        table = generators.table(generators.random_stream(rng, most=14), timed=True)
        table = table.append_column("row", pa.array(range(len(table)), pa.int64()))
        try:
            expected = matches_up_to(500, query, table)
        except NotSupportedError:
            continue
        if expected is None or not len(table):
            continue
        shuffled = table.take(pa.array(rng.sample(range(len(table)), len(table)), pa.int64()))
        try:
            found = spark.createDataFrame(shuffled).transform(query.on(order="row")).toArrow()
        except (NotSupportedError, LimitError):
            assert "CONSUME BY ANY" in query.text, query.text
            continue
        assert shown(found) == shown(expected.to_arrow(events=True)), f"CEPHEID_SEED={seed} {number}\n{query.text}\n{table.to_pylist()}"
        compared += 1
        matched += len(expected) > 0
    assert compared >= max(20, cases // 8) / 4
    assert matched >= 1


def test_whole_partitions_are_gathered(monkeypatch):
    """Batches that end anywhere: each partition is read as a whole, and few at a time."""
    read = []
    monkeypatch.setattr(layers, "GATHERED", 4)
    monkeypatch.setattr(
        layers, "_matches", lambda *args: read.append([batch.to_pydict() for batch in args[3] if batch.num_rows]) or iter(())
    )
    monkeypatch.setattr(layers, "Incoming", lambda *_: _Changes())
    keys = [1, 1, 2, 2, 2, 2, 3, 4, 4, 4, 5]
    batches = [pa.record_batch({"k": keys[start : start + 2]}) for start in range(0, len(keys), 2)]

    class _Task:
        keys = ("k",)

    monkeypatch.setattr(layers, "Task", lambda **_: _Task())
    list(layers.run_layers({}, "drop", None, pa.schema([]).serialize().to_pybytes(), iter(batches)))
    pieces = [[key for batch in piece for key in batch["k"]] for piece in read]
    assert [key for piece in pieces for key in piece] == keys
    assert len(pieces) > 1
    assert all(not set(first) & set(second) for number, first in enumerate(pieces) for second in pieces[number + 1 :])


class _Changes:
    def __init__(self):
        self.last = None

    def read(self, batch):
        keys = batch.column("k").to_pylist()
        changed = [key != before for key, before in zip(keys, [self.last, *keys], strict=False)]
        self.last = keys[-1]
        return None, pa.array(changed).to_numpy(zero_copy_only=False)


def test_what_is_refused(spark):
    frame = spark.createDataFrame(logins())
    query = cepheid.query(f"{BURST} SELECT b.failures AS n WHERE Burst AS b PARTITION BY user")
    for options, match in (({"positions": True}, "positions=True"), ({"undecided": True}, "undecided=True")):
        with pytest.raises(NotSupportedError, match=match):
            frame.transform(query.on(**options))
    with pytest.raises(NotSupportedError, match="several queries in one job cannot run EVENT definitions yet"):
        frame.transform(on({"a": query}))
    stream = spark.readStream.format("rate").load().selectExpr("'Fail' AS type", "timestamp AS ts", "'a' AS user")
    with pytest.raises(NotSupportedError, match="a stream cannot run EVENT definitions yet"):
        stream.transform(query.on(lateness="1s"))


def test_an_error_in_the_events_has_its_key(spark):
    table = pa.concat_tables([logins(), logins().slice(0, 1)])
    query = cepheid.query(f"{BURST} SELECT b.failures AS n WHERE Burst AS b PARTITION BY user")
    found = spark.createDataFrame(table).transform(query.on())
    with pytest.raises(InputError, match="two events of user='a' have the same time"), translated():
        found.toArrow()


def test_explain_says_where_events_are_made(spark):
    query = cepheid.query(f"{BURST} SELECT b.failures AS n WHERE Burst AS b PARTITION BY user")
    text = query.on().explain(spark.createDataFrame(logins()))
    assert "Burst are made in the tasks, of whole partitions" in text
    assert "one key in one task: PARTITION BY user" in text
    assert "none (EVENT definitions may ask for every event)" in text
