"""Columns that Spark cannot pass to Python (VARIANT, intervals of months): no error where nothing of a query reads one, else one that says the cast."""

from __future__ import annotations

import datetime as dt

import pytest
from pyspark.sql import functions as F

import cepheid
from cepheid.spark import merge, on, register, replay, translated

PAIR = cepheid.query("SELECT x.n AS first, y.n AS second WHERE A AS x ; B AS y FILTER y.n > x.n WITHIN 1 minute")
WHOLE = cepheid.query("SELECT * WHERE A AS x ; B AS y")
NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
ROWS = [{"ts": NOON + dt.timedelta(seconds=number), "type": "AB"[number % 2], "n": number} for number in range(6)]
EXPECTED = sorted((x, y) for x in (0, 2, 4) for y in (1, 3, 5) if y > x)
TO_TEXT = "cast it before: df.withColumn('m', ..) with F.col('m').cast('string')"
OUT_OF_VARIANT = "F.variant_get('v', '$.path', 'double') for one value of it, or F.to_json('v') for all of it as text"


def with_unreadable(frame):
    """The events with a variant, an interval of months, and a struct that has a variant inside."""
    variant = F.parse_json(F.lit('{"a": 1}'))
    return frame.withColumns({"v": variant, "m": F.expr("make_ym_interval(0, n)"), "p": F.struct("n", variant.alias("inner"))})


@pytest.fixture
def events(spark):
    return with_unreadable(spark.createDataFrame(ROWS, "ts timestamp, type string, n int"))


def pairs(frame):
    return sorted((row.first, row.second) for row in frame.collect())


def test_a_batch_that_reads_none(events):
    assert pairs(events.transform(PAIR.on())) == EXPECTED
    counted = events.transform(cepheid.query("SELECT COUNT(*) WHERE A AS x ; B AS y").on())
    assert counted.count() == 3
    shown = events.transform(WHOLE.on(columns=["n"])).collect()
    assert sorted((row.x[0].n, row.y[0].n) for row in shown) == EXPECTED
    both = events.transform(on({"pair": PAIR, "low": "SELECT x.n AS first, x.n AS second WHERE A AS x FILTER x.n < 1"}))
    assert pairs(both.where("query = 'pair'")) == EXPECTED
    made = "EVENT C(n) AS (SELECT x.n AS n WHERE A AS x) SELECT y.n AS first, z.n AS second WHERE C AS y ; B AS z WITHIN 1 minute"
    assert pairs(events.transform(cepheid.query(made).on())) == EXPECTED


def test_a_stream_that_reads_none(spark):
    stream = with_unreadable(replay(spark, ROWS, close="5 minutes").withColumn("n", F.col("n").cast("int")))
    running = (
        stream.transform(PAIR.on(lateness="1 second")).writeStream.format("memory").queryName("unread").trigger(availableNow=True).start()
    )
    with translated():
        running.awaitTermination()
    assert pairs(spark.table("unread")) == EXPECTED
    with pytest.raises(cepheid.SchemaError, match=r"`v` is variant, which Spark cannot pass to Python(.|\n)*late=True gives whole events"):
        stream.transform(PAIR.on(lateness="1 second", late=True))
    with pytest.raises(cepheid.SchemaError, match="`v` is variant"):
        stream.transform(WHOLE.on(lateness="1 second"))


@pytest.mark.parametrize(
    ("query", "options", "told"),
    [
        ("SELECT * WHERE A AS x ; B AS y", {}, [OUT_OF_VARIANT, "columns=[..]", "df.drop(..)"]),
        ("SELECT x WHERE A AS x ; B AS y", {}, [OUT_OF_VARIANT]),
        ("SELECT x.n AS n WHERE A AS x FILTER x.v = 1", {}, [OUT_OF_VARIANT, "x.v = 1"]),
        ("SELECT x.n AS n WHERE A AS x FILTER x[v = 1]", {}, [OUT_OF_VARIANT]),
        ("SELECT x.n AS n WHERE A AS x FILTER x[m = 1]", {}, ["`m` is interval year to month", TO_TEXT]),
        ("SELECT x.m AS m WHERE A AS x", {}, [TO_TEXT]),
        ("SELECT x.n AS n WHERE A AS x PARTITION BY m", {}, [TO_TEXT, "PARTITION BY m"]),
        (
            "SELECT x.n AS n WHERE A AS x FILTER x.p.n = 1",
            {},
            ["F.col('p.n') for one field of it, or F.to_json('p') for all of it as text"],
        ),
        ("SELECT x.n AS n WHERE A AS x ; A AS y FILTER x.m = y.m", {}, [TO_TEXT]),
        ("EVENT C(v) AS (SELECT x.n AS v WHERE A AS x) SELECT y.v AS n WHERE C AS y", {}, ["`v` is variant", "another name"]),
        ("SELECT * WHERE A AS x", {"columns": ["n", "m"]}, [TO_TEXT]),
        ("SELECT x.n AS n WHERE A AS x", {"order": "m"}, [TO_TEXT]),
        ("SELECT x.n AS n WHERE A AS x", {"time": "m"}, [TO_TEXT]),
        ("SELECT x.n AS n WHERE A AS x", {"type": "v"}, [OUT_OF_VARIANT]),
    ],
)
def test_what_reads_one_is_told_the_cast(events, query, options, told):
    with pytest.raises((cepheid.SchemaError, cepheid.BindError), match="which Spark cannot pass to Python") as caught:
        events.transform(cepheid.query(query).on(**options))
    assert [each for each in told if each not in str(caught.value)] == []


def test_the_casts_that_errors_say(events):
    cast = events.withColumn("v", F.variant_get("v", "$.a", "double")).withColumn("m", F.col("m").cast("string"))
    cast = cast.withColumn("p", F.to_json("p"))
    found = cast.transform(cepheid.query("SELECT * WHERE A AS x FILTER x[v = 1] AND x[n = 2]").on()).collect()
    assert [(row.x[0].v, row.x[0].m, row.x[0].p) for row in found] == [(1.0, "INTERVAL '0-2' YEAR TO MONTH", '{"n":2,"inner":{"a":1}}')]


def test_embedded(events):
    """`run` and its kin collect the DataFrame without what cannot be passed."""
    assert sorted((match["first"], match["second"]) for match in PAIR.run(events).to_arrow().to_pylist()) == EXPECTED
    assert sum(len(part) for part in PAIR.batches(events)) == len(EXPECTED)
    several = cepheid.queries({"pair": PAIR, "same": PAIR}).run(events)
    assert [len(found) for found in several.values()] == [len(EXPECTED)] * 2
    apart = cepheid.query("SELECT x.n AS n FROM a, b WHERE a AS x ; b AS y")
    streams = {"a": events.where("type = 'A'").drop("type"), "b": events.where("type = 'B'").drop("type")}
    assert len(apart.run(streams)) == len(EXPECTED)
    for query in ("SELECT * WHERE A AS x", "SELECT x.v AS v WHERE A AS x", "SELECT x.n AS n WHERE A AS x PARTITION BY v"):
        with pytest.raises(
            (cepheid.SchemaError, cepheid.BindError), match=r"`v` is variant, which Spark cannot pass to Python(.|\n)*variant_get"
        ):
            cepheid.query(query).run(events)
    with pytest.raises(cepheid.SchemaError, match="`v` is variant"):
        cepheid.queries({"pair": PAIR, "whole": WHOLE}).run(events)
    with pytest.raises(cepheid.BindError, match="`v` is variant"):
        cepheid.query("SELECT x.v AS v FROM a, b WHERE a AS x ; b AS y").run(streams)
    with pytest.raises(cepheid.SchemaError, match="`v` is variant"):
        apart.run({**streams, "b": streams["b"].withColumn("v", F.lit(1))})


def test_explore(events):
    pytest.importorskip("anywidget", reason="anywidget, of the extra `notebook`, is not installed")
    from cepheid.notebook import exploring

    how = {"type": None, "time": None, "until": None, "sort": True, "null_keys": "drop", "order": ()}
    shown = exploring.shown(PAIR, events, **how)
    assert shown["found"]["count"] == str(len(EXPECTED))


def test_where_whole_rows_are_needed(spark, events):
    for act in (lambda: merge(a=events, b=events), lambda: register(spark, "unread", PAIR, schema=events)):
        with pytest.raises(cepheid.SchemaError, match="`v` is variant, which Spark cannot pass to Python"):
            act()
