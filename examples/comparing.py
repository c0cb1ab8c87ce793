"""Patterns that compare events: gaps, and conditions between events. Each on a table, event by event, on Spark, and as a stream.

Run it with ``python examples/comparing.py`` (``--spark`` adds the two ways on Spark). It prints the matches, which are the same each way.
docs/comparing.md explains the queries.
"""

from __future__ import annotations

import argparse
import datetime as dt
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import cepheid

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
TIME = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class Example:
    """A query, and events to run it on. columns: the attributes; rows: type, seconds after noon, attributes."""

    text: str
    columns: dict[str, pa.DataType]
    rows: tuple[tuple[Any, ...], ...]

    @property
    def query(self) -> cepheid.Query:
        """The query."""
        return cepheid.query(self.text)

    def table(self) -> pa.Table:
        """The events."""
        schema = pa.schema([("type", pa.string()), ("ts", TIME), *self.columns.items()])
        rows = [(kind, NOON + dt.timedelta(seconds=seconds), *values) for kind, seconds, *values in self.rows]
        return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema)


JUMP = Example(
    """
    SELECT * WHERE Reading AS a ; Reading AS b
    FILTER b.value > a.value + 10
    PARTITION BY sensor WITHIN 1 minute
    """,
    {"sensor": pa.int32(), "value": pa.float64()},
    (
        ("Reading", 0, 1, 20.0),
        ("Reading", 10, 2, 50.0),
        ("Reading", 20, 1, 30.0),
        ("Reading", 30, 2, 55.0),
        ("Reading", 40, 1, 31.0),
        ("Reading", 50, 1, None),
        ("Reading", 70, 1, 45.0),
    ),
)

RISING = Example(
    """
    SELECT MAX * WHERE (Tick AS r FILTER r.price > prev(r).price):{3,}
    PARTITION BY symbol
    """,
    {"symbol": pa.string(), "price": pa.decimal128(10, 2)},
    (
        ("Tick", 0, "A", 10),
        ("Tick", 1, "B", 70),
        ("Tick", 2, "A", 11),
        ("Tick", 3, "A", 13),
        ("Tick", 4, "B", 71),
        ("Tick", 5, "A", 14),
        ("Tick", 6, "A", 14),
        ("Tick", 7, "B", 69),
        ("Tick", 8, "A", 15),
        ("Tick", 9, "A", 16),
    ),
)

BREAK_IN = Example(
    """
    SELECT LAST * WHERE ((Failed AS f):{5} WITHIN 1 minute) ; Success AS s
    FILTER s.address != f.address
    PARTITION BY user WITHIN 1 hour
    """,
    {"user": pa.string(), "address": pa.string()},
    (
        *(("Failed", 10 * number, "ann", "10.0.0.7") for number in range(6)),
        ("Success", 90, "ann", "10.0.0.7"),
        ("Success", 120, "ann", "10.0.0.9"),
        *(("Failed", 200 + 20 * number, "bob", "10.0.0.8") for number in range(5)),
        ("Success", 300, "bob", "10.0.0.9"),
    ),
)

PAID_LATE = Example(
    """
    SELECT * WHERE Invoice AS i ;[> 30m] Payment AS p
    PARTITION BY order
    """,
    {"order": pa.int64(), "amount": pa.decimal128(10, 2)},
    (
        ("Invoice", 0, 1, 20),
        ("Invoice", 60, 2, 35),
        ("Invoice", 120, 3, 80),
        ("Payment", 1800, 1, 20),
        ("Payment", 1861, 2, 35),
    ),
)

SESSIONS = Example(
    """
    SELECT LAST * WHERE Click+[<= 30m] AS s NOT FOLLOWED BY Click FOR 30m
    PARTITION BY user WITHIN 1 day
    """,
    {"user": pa.string(), "page": pa.string()},
    (
        ("Click", 0, "ann", "start"),
        ("Click", 60, "bob", "start"),
        ("Click", 600, "ann", "list"),
        ("Click", 2400, "ann", "order"),
        ("Click", 4201, "ann", "start"),
        ("Click", 4300, "bob", "order"),
        ("Close", 9000, None, None),
    ),
)

DIFFERING = Example(
    """
    SELECT * WHERE Reading AS a ;[<= 10s] Reading AS b
    FILTER a.sensor != b.sensor AND abs(a.value - b.value) > 5
    PARTITION BY room
    """,
    {"room": pa.string(), "sensor": pa.int32(), "value": pa.float64()},
    (
        ("Reading", 0, "hall", 1, 20.0),
        ("Reading", 1, "hall", 2, 20.5),
        ("Reading", 2, "lab", 3, 31.0),
        ("Reading", 8, "hall", 1, 20.0),
        ("Reading", 9, "hall", 2, 26.0),
        ("Reading", 19, "hall", 1, 20.5),
        ("Reading", 30, "hall", 2, 30.0),
    ),
)

UNREGISTERED = Example(
    """
    SELECT a, c WHERE Shelf AS a ; NOT (Register OR Exit) ; Exit AS c
    PARTITION BY tag WITHIN 12 hours
    """,
    {"tag": pa.int64()},
    (
        ("Shelf", 0, 1),
        ("Shelf", 60, 2),
        ("Register", 300, 1),
        ("Shelf", 400, 2),
        ("Exit", 600, 1),
        ("Exit", 660, 2),
        ("Exit", 720, 2),
    ),
)

TIME_SPAN = Example(
    """
    SELECT * WHERE B ;[> 5s] C
    FILTER B[y = 10] AND C[z < 5]
    WITHIN [< 15s]
    """,
    {"y": pa.int64(), "z": pa.int64()},
    (
        ("B", 0, 10, None),
        ("C", 5, None, 1),
        ("C", 6, None, 1),
        ("B", 7, 3, None),
        ("C", 14, None, 2),
        ("C", 15, None, 2),
    ),
)

EXAMPLES = {
    "jump": JUMP,
    "rising run": RISING,
    "break-in": BREAK_IN,
    "paid late": PAID_LATE,
    "sessions": SESSIONS,
    "sensors that differ": DIFFERING,
    "left without the register (SASE)": UNREGISTERED,
    "time span (Padres)": TIME_SPAN,
}

Row = dict[str, Any]
"""A match: keys, times, and the events of each variable."""


def on_table(example: Example) -> list[Row]:
    """The matches in a table."""
    return in_order(example.query.run(example.table()).to_arrow(events=True).to_pylist())


def event_by_event(example: Example) -> list[Row]:
    """The matches of a recognizer that gets the events one by one, and saves and restores its state after each."""
    table = example.table()
    recognizer = example.query.recognizer(table.schema)
    rows: list[Row] = []
    for event in table.to_pylist():
        rows += recognizer.push(event).to_arrow(events=True).to_pylist()
        recognizer = example.query.recognizer(table.schema, snapshot=recognizer.snapshot())
    return in_order(rows)


def on_spark(spark: SparkSession, example: Example) -> list[Row]:
    """The matches in a DataFrame."""
    return in_order(spark.createDataFrame(example.table()).transform(example.query.on()).toArrow().to_pylist())


def as_stream(spark: SparkSession, example: Example) -> list[Row]:
    """The matches in a stream whose events come up to a minute late, in an order that is not that of their times."""
    from cepheid.spark import replay, translated

    stream = replay(spark, example.table(), disorder="1 minute", rows_per_batch=4, close="1 day")
    found = stream.transform(example.query.on(lateness="1 minute")).drop("decided_time")
    query = found.writeStream.format("memory").queryName("found").trigger(availableNow=True).start()
    with translated():
        query.awaitTermination()
    return in_order(spark.table("found").toArrow().to_pylist())


def in_order(rows: list[Row]) -> list[Row]:
    """Matches without positions, which Spark does not give, in an order that does not depend on the way."""
    return sorted(({name: value for name, value in row.items() if name not in {"start_position", "end_position"}} for row in rows), key=str)


def main() -> None:
    """Run every example each way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spark", action="store_true", help="on Spark too, as a table and as a stream")
    spark = None
    if parser.parse_args().spark:
        from cepheid.spark import local_session

        spark = local_session(app_name="cepheid-comparing")
    same = sum(report(name, example, spark) for name, example in EXAMPLES.items())
    if spark is not None:
        spark.stop()
    sys.exit(0 if same == len(EXAMPLES) else "error: the ways differ")


def report(name: str, example: Example, spark: SparkSession | None) -> bool:
    """Run an example each way and print its matches; whether they are the same."""
    found = on_table(example)
    ways = {"event by event": event_by_event(example)}
    if spark is not None:
        ways |= {"on Spark": on_spark(spark, example), "as a stream": as_stream(spark, example)}
    print(f"=== {name}{example.text.rstrip()}\n\n{example.query.run(example.table())}\n")
    for way, rows in ways.items():
        print(f"{way}: {'the same' if rows == found else 'NOT the same'}")
    print()
    return all(rows == found for rows in ways.values())


if __name__ == "__main__":
    main()
