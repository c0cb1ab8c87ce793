"""More conditions than a word of 64 bits has, or two of them, on Spark: over tables and streams, the same matches as embedded, and so as by the definition."""

from __future__ import annotations

import pytest
from test_stream import PAIRS, Feed, disordered, shown, table_of

import cepheid

SHOWN = "PARTITION BY k WITHIN 10 seconds"


@pytest.fixture
def feed(spark, tmp_path):
    return Feed(spark, tmp_path)


def either(count, variable="y", kind="B"):
    """So many conditions that hold together now and then."""
    return " OR ".join(f"({kind} AS {variable} FILTER {variable}.v % {number + 40} = 1)" for number in range(count))


QUERIES = {
    "OR of 70": f"SELECT * WHERE A AS x ; ({either(70)}) {SHOWN}",
    "OR of 130, NXT": f"SELECT NXT * WHERE A AS x ; ({either(130)}) {SHOWN}",
    "a nested strategy": f"SELECT x, y WHERE NXT(A AS x ; ({either(70)})) ; C AS z PARTITION BY k WITHIN 90 seconds",
    "absence": f"SELECT * WHERE A AS x ; B AS y NOT FOLLOWED BY ({either(70)}) FOR 3 seconds {SHOWN}",
    "a sequence of 70": "SELECT LAST x0 AS x, x69 AS y WHERE "
    + " ; ".join(f"ANY AS x{number}" for number in range(70))
    + f" FILTER {' AND '.join(f'x{number}.v % 70 = {number}' for number in range(70))}",
}


TYPES = f"SELECT * WHERE ({' OR '.join(['A', *(f'T{number}' for number in range(70))])}) AS x ; B AS y FILTER x.v > 3 {SHOWN}"
"""More types than a letter has bits."""


def query_of(name):
    """With the columns that `shown` reads."""
    text = QUERIES[name].replace("x0 AS x, x69 AS y", "x0, x69")
    return cepheid.query(text)


def seen(rows):
    names = ("x", "y") if rows and "x" in rows[0] else ("x0", "x69")
    return sorted((row.get("k", 0), *(tuple(event["v"] for event in row[name]) for name in names)) for row in rows)


@pytest.mark.parametrize("name", QUERIES)
def test_over_a_table(spark, name, seed):
    events, _ = disordered(seed)
    query = query_of(name)
    assert any(program.automaton.alphabet.number_bits for program in query.compiled(query.schema(table_of(events))).programs)
    expected = seen(query.run(table_of(events)).to_arrow(events=True).to_pylist())
    assert len(expected) > 2 or "sequence" in name
    frame = spark.createDataFrame(table_of(events).to_pandas())
    found = frame.transform(query.on(order="any" if not query.compiled(query.schema(table_of(events))).keys else ()))
    assert seen([row.asDict(recursive=True) for row in found.collect()]) == expected != []


def test_alone_on_a_stream_with_a_restart(feed, seed):
    events, arrival = disordered(seed)
    query = query_of("a sequence of 70")
    expected = seen(query.run(table_of(events)).to_arrow(events=True).to_pylist())
    feed.restarted(table_of(arrival), query.on(lateness="6 seconds"))
    assert seen(feed.rows()) == expected != []


def test_beside_other_queries(feed, seed):
    """Over a table, and on a stream with a restart."""
    events, arrival = disordered(seed)
    several = {name: query_of(name) for name in ("OR of 70", "absence")} | {"pairs": PAIRS, "types": cepheid.query(TYPES)}
    table = feed.spark.createDataFrame(table_of(events).to_pandas())
    found = [row.asDict(recursive=True) for row in table.transform(cepheid.spark.on(several, until="end")).collect()]
    feed.restarted(table_of(arrival), cepheid.spark.on(several, lateness="6 seconds"))
    for rows in (found, feed.rows()):
        for name, query in several.items():
            # The event that closes the stream is later than every wait of an absence.
            expected = seen(query.run(table_of(events), until="end").to_arrow(events=True).to_pylist())
            assert seen([row for row in rows if row["query"] == name]) == expected != [], name


@pytest.mark.parametrize("name", ["OR of 70", "absence"])
def test_in_sql(spark, name, seed):
    events, _ = disordered(seed, count=150)
    query = query_of(name)
    spark.createDataFrame(table_of(events).to_pandas()).createOrReplaceTempView("events")
    cepheid.spark.register(spark, "long_letters", query, schema="events", until="end")
    found = spark.sql("SELECT * FROM long_letters(TABLE(events) PARTITION BY k ORDER BY ts)")
    expected = seen(query.run(table_of(events), until="end").to_arrow(events=True).to_pylist())
    assert seen([row.asDict(recursive=True) for row in found.collect()]) == expected
    spark.catalog.dropTempView("events")


def test_the_helper_of_streams_shows_the_same():
    """`seen` is `shown` of test_stream where variables have its names."""
    events, _ = disordered(1, count=60)
    rows = PAIRS.run(table_of(events)).to_arrow(events=True).to_pylist()
    assert seen(rows) == shown(rows)
