"""Matches as events on Spark batch and in SQL (streams: `test_stream`, `test_stateful`): the matches of `q.run`, with keys in different tasks,
options, schemas, and what is refused."""

from __future__ import annotations

import dataclasses
import datetime as dt
import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from enough import Enough

import cepheid
from cepheid.errors import InputError, LimitError, NotSupportedError
from cepheid.spark import on, register, translated
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
    enough = Enough(cases // 5, compared=5, matched=1)
    for number in enough:
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
        enough.seen["compared"] += 1
        enough.seen["matched"] += len(expected) > 0


def test_what_is_undecided(spark):
    """What ends while a definition waits; the end of the events decides it."""
    text = f"{ALONE} SELECT a.since AS since, o.ts AS at WHERE Ok AS o ; Alone AS a PARTITION BY user"
    query = cepheid.query(text)
    expected = query.run(logins())
    assert len(expected) == 0
    assert len(expected.undecided) > 0
    found = spark.createDataFrame(logins()).transform(query.on(undecided=True)).toArrow()
    assert found["undecided"].to_pylist() == [True] * len(expected.undecided)
    assert shown(found.select(["user", "since", "at"])) == shown(expected.undecided.to_arrow().select(["user", "since", "at"]))
    same(spark, text, logins(), until="end")


def test_several_queries_in_one_job(spark):
    """One with definitions, and one without."""
    queries = {
        "made": cepheid.query(f"{BURST} SELECT b.failures AS n WHERE Burst AS b ; Ok PARTITION BY user"),
        "plain": cepheid.query("SELECT count(f) AS n WHERE Fail+ AS f ; Ok PARTITION BY user"),
    }
    found = spark.createDataFrame(logins()).transform(on(queries)).toArrow()
    for name, query in queries.items():
        mine = found.filter(pc.equal(found["query"], name)).drop_columns(["query"])
        assert shown(mine) == shown(query.run(logins()).to_arrow(events=True))


TABLE_FUNCTIONS = {
    f"{BURST} SELECT b.failures AS n, s.ts AS at WHERE Burst AS b ; Ok AS s PARTITION BY user WITHIN 10s": {},
    f"{BURST} SELECT * WHERE Burst AS b ; Ok AS s PARTITION BY user": {"null_keys": "group"},
    f"{ALONE} {TWO} SELECT * WHERE ANY AS x ; Two PARTITION BY user": {"until": "end"},
    f"{ALONE} SELECT a.since AS since, o.ts AS at WHERE Ok AS o ; Alone AS a PARTITION BY user": {
        "until": START + dt.timedelta(seconds=22)
    },
    f"{BURST} SELECT b.failures AS n WHERE Burst AS b": {},  # no key
}


@pytest.mark.parametrize("text", TABLE_FUNCTIONS)
def test_table_functions(spark, text):
    """A registered query, and `cepheid_match`, which finds the attributes that a definition makes when the call is analysed."""
    options, query = TABLE_FUNCTIONS[text], cepheid.query(text)
    frame = spark.createDataFrame(logins())
    frame.createOrReplaceTempView("logins")
    register(spark, "made", query, schema="logins", **options)
    register(spark)
    clause = "PARTITION BY user ORDER BY (ts)" if query.tree.partition_by else "WITH SINGLE PARTITION ORDER BY (ts)"
    given = {name: f"timestamp '{value}'" if isinstance(value, dt.datetime) else f"'{value}'" for name, value in options.items()}
    said = "".join(f", {name} => {value}" for name, value in given.items())
    any_query = f"cepheid_match(events => TABLE(logins) {clause}, query => {query.text!r}{said})"
    expected = query.run(logins(), **options).to_arrow(events=True)
    for call in (f"made(TABLE(logins) {clause})", any_query):
        found = spark.sql(f"SELECT * FROM {call}")
        assert found.schema == frame.transform(query.on(**options)).schema
        assert shown(found.toArrow()) == shown(expected)
    assert len(expected)


def test_a_table_function_is_told_up_to_when_the_events_are_complete(spark):
    text = f"{ALONE} SELECT a.since AS since WHERE Alone AS a PARTITION BY user"
    with pytest.raises(InputError, match="NOT FOLLOWED BY needs to know up to when"):
        register(spark, "made", text, schema=logins().schema)


def test_positions_are_those_of_a_run(spark):
    """They count the events that matches make, whether they are in the match or not."""
    query = cepheid.query(f"{BURST} SELECT b, s WHERE Burst AS b ; Ok AS s PARTITION BY user")
    frame, expected = spark.createDataFrame(logins()), query.run(logins())
    frame.createOrReplaceTempView("logins")
    register(spark, "made", query, schema="logins", positions=True, columns=["failures"])
    for found in (
        frame.transform(query.on(positions=True, columns=["failures"])),
        spark.sql("SELECT * FROM made(TABLE(logins) PARTITION BY user ORDER BY ts)"),
    ):
        rows = [
            (row.user, row.start_position, row.end_position, [e["$index"] for e in row.b], [e["$index"] for e in row.s], row.b[0].failures)
            for row in found.collect()
        ]
        assert sorted(rows) == sorted(
            (match.keys["user"], match.start, match.end, list(match.variables["b"]), list(match.variables["s"]), match["b"][0]["failures"])
            for match in expected
        )
        assert [row[1:5] for row in rows] == [(0, 3, [2], [3])] * 2


def test_all_columns_in_another_order(spark):
    query = cepheid.query(f"{BURST} SELECT * WHERE Burst AS b PARTITION BY user")
    frame = spark.createDataFrame(logins())
    names = ["failures", "user", "ts", "type"]
    (event, *_) = frame.transform(query.on(columns=names)).orderBy("user").collect()[0].b
    assert list(event.asDict()) == names
    assert (event.failures, event.user, event.type) == (2, "a", "Burst")


def test_what_is_refused(spark):
    frame = spark.createDataFrame(logins())
    # A task would make events of its own part of what the definition reads.
    other = cepheid.query("EVENT Two(n) AS (SELECT count(f) AS n WHERE Fail+ AS f) SELECT * WHERE Fail AS a : Ok AS b PARTITION BY user")
    with pytest.raises(NotSupportedError, match="`user` is NULL in the events of `Two`"):
        frame.transform(other.on(null_keys="group"))
    same(spark, other.text, logins())
    any_key = BURST.replace("HAVING failures >= 2", "CONSUME BY ANY")
    with pytest.raises(NotSupportedError, match="CONSUME BY ANY in the definition of `Burst`"):
        frame.transform(cepheid.query(f"{any_key} SELECT * WHERE Burst AS b PARTITION BY user").on())
    same(spark, f"{any_key} SELECT * WHERE Burst AS b", logins())


def test_an_error_in_the_events_has_its_key(spark):
    table = pa.concat_tables([logins(), logins().slice(0, 1)])
    query = cepheid.query(f"{BURST} SELECT b.failures AS n WHERE Burst AS b PARTITION BY user")
    found = spark.createDataFrame(table).transform(query.on())
    with pytest.raises(InputError, match="two events of user='a' have the same time"), translated():
        found.toArrow()


def test_explain_says_where_events_are_made(spark):
    query = cepheid.query(f"{BURST} SELECT b.failures AS n WHERE Burst AS b PARTITION BY user")
    text = query.on().explain(spark.createDataFrame(logins()))
    assert "Burst are made in the tasks, behind the shuffle" in text
    assert "one key in one task: PARTITION BY user" in text
    assert "none (EVENT definitions may ask for every event)" in text
