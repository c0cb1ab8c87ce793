"""What a stored snapshot consists of: how it is made, how it is read, and what must come after it.

A case is `<version>/<name>.json` with queries, schema, the events before and after the snapshot and the expected matches after it, and `<name>.bin`,
the bytes. A `bucket` is the state of a stream over Spark, for all queries at once; the others are snapshots of one embedded recognizer.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import random
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

import cepheid

HERE = Path(__file__).resolve().parent
TYPES = {str(kind): kind for kind in (pa.string(), pa.int64(), pa.timestamp("us", "UTC"))}
BASE = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
END = BASE + dt.timedelta(days=1)
"""A time after all events and all deadlines."""

SCHEMA = {"type": "string", "ts": "timestamp[us, tz=UTC]", "k": "int64", "v": "int64", "s": "string"}
"""`v` numbers the events."""

KEYED = "PARTITION BY k WITHIN 9 seconds"
QUERIES = {
    "match_graph": f"SELECT * WHERE A AS x ; (B OR C) AS y ; B+ AS z FILTER x[s = 'p' OR v IN (1, 46, 47, 48)] AND y[v < 85] {KEYED}",
    "measures": f"SELECT count(x) AS n, sum(x.v) AS total, last(y.s) AS s WHERE A+ AS x ; B AS y {KEYED}",
    "consume": "SELECT * WHERE A AS x ; B AS y WITHIN 9 events CONSUME BY ANY",
    "limit": f"SELECT x, z WHERE A AS x ; B AS y ; C AS z {KEYED} LIMIT 2",
    "equality": "SELECT * WHERE A AS x ; B AS y ; C AS z FILTER x.k = y.k AND y.k = z.k WITHIN 9 seconds",
    "next": f"SELECT NXT * WHERE A AS x ; B AS y ; C AS z {KEYED}",
    "last": f"SELECT LAST * WHERE A AS x ; B AS y ; C AS z {KEYED}",
    "maximal": f"SELECT MAX * WHERE A AS x ; B+ AS y ; C AS z {KEYED}",
    "per_end": f"SELECT MAX * WHERE (A : B+) AS x ; C AS y {KEYED}",
    "count": f"SELECT COUNT(*) WHERE A+ AS x ; B AS y {KEYED}",
    "trackers": "SELECT * WHERE NXT(A AS x ; B AS y) : C AS z PARTITION BY k WITHIN 80 seconds",
    "point": f"SELECT * WHERE A AS x THEN (B AS y ; C AS z) {KEYED} TIME MODEL POINT",
    "point_guarded": f"SELECT * WHERE A AS x THEN (B AS y ;[<= 5 seconds] C AS z) {KEYED} TIME MODEL POINT",
    "then_first": f"SELECT * WHERE A AS x THEN (B AS y ; C AS z) {KEYED} TIME MODEL ACTIVE_OFFICE",
    "then_least": "SELECT * WHERE NXT(A AS x THEN (B AS y ; C AS z)) ; A AS w PARTITION BY k WITHIN 60 seconds TIME MODEL COMPLETE_HISTORY",
    "first_guarded": f"SELECT * WHERE A AS x THEN (B AS y ;[<= 5 seconds] C AS z) {KEYED} TIME MODEL ACTIVE_OFFICE",
    "least_guarded": f"SELECT * WHERE A AS x THEN ((B OR C)+ AS y ;[<= 5 seconds] C AS z) {KEYED} TIME MODEL COMPLETE_HISTORY",
    "guarded": f"SELECT * WHERE A AS x ;[<= 5 seconds] B AS y ; C AS z FILTER z.v > x.v AND y.s = x.s {KEYED}",
    "guarded_count": f"SELECT COUNT(*) WHERE A AS x ; B+ AS y FILTER y.v != x.v {KEYED}",
    "compiled_choice": f"SELECT LAST * WHERE (A OR B) AS x : (A OR B) AS y ; C AS z {KEYED}",
    "guarded_choice": f"SELECT LAST * WHERE (A OR B) AS x ; C AS y FILTER y.v > x.v {KEYED}",
    "guarded_sets": "SELECT * WHERE A+ AS x ; (B OR C) AS y FILTER y.s != x.s AND y.v != x.v PARTITION BY k WITHIN 20 seconds",
    "guarded_rows": "SELECT * WHERE A+ AS x ; B AS y FILTER y.s > x.s OR y.v = x.v + 1 PARTITION BY k WITHIN 20 seconds",
    "guarded_ranks": f"SELECT * WHERE A AS x ; B+ AS y ; C AS z FILTER y.s >= x.s AND y.v + 8123456789012345678.5 < z.v * 8123456789012345678.5 {KEYED}",
    "guarded_maximal": f"SELECT MAX * WHERE (A AS x FILTER x.v > prev(x).v)+ ; B AS y {KEYED}",
    "guarded_parts": f"SELECT * WHERE LAST(A AS x ;[<= 5 seconds] B AS y) ; C AS z FILTER z.v > x.v {KEYED}",
    "correlation": f"SELECT * WHERE A AS x ; B AS y ; C AS z FILTER x.v + y.v < z.v * 2 OR x.s = z.s {KEYED}",
    "negated": f"SELECT * WHERE A AS x ; NOT (B ;[<= 3 seconds] B) ; C AS y FILTER y.v > x.v {KEYED}",
    "unless": f"SELECT * WHERE (A AS x ALL B AS y) UNLESS (C ; D) {KEYED}",
    "restricted": f"SELECT RESTRICTED * WHERE A AS x ; ((B AS y ALL C AS z) WITHIN 5 seconds) UNLESS (D AS w FILTER w.v > 40) {KEYED}",
    "having": "SELECT LAST x, y WHERE (A OR B)+ AS x ; C AS y PARTITION BY k WITHIN 9 seconds HAVING count(x) > 1 CONSUME BY PARTITION",
    "made": "EVENT P(v) AS (SELECT y.v AS v WHERE A AS x ; B AS y PARTITION BY k WITHIN 4 seconds)"
    " SELECT * WHERE P AS p ; NOT (P ; D) ; P AS q PARTITION BY k WITHIN 20 seconds",
    "made_later": "EVENT P(v) AS (SELECT x.v AS v WHERE A AS x NOT FOLLOWED BY C FOR 4 seconds PARTITION BY k)"
    f" SELECT * WHERE B AS y ; P AS p {KEYED}",
    "made_next": "EVENT P(v) AS (SELECT y.v AS v WHERE A AS x ; B AS y PARTITION BY k WITHIN 4 seconds)"
    " SELECT * WHERE C AS z THEN P AS p ; D AS w PARTITION BY k WITHIN 20 seconds TIME MODEL SNOOPIB",
    "made_point": "EVENT P(v) AS (SELECT y.v AS v WHERE A AS x ; B AS y PARTITION BY k WITHIN 4 seconds)"
    " SELECT * WHERE C AS z THEN P AS p ; D AS w PARTITION BY k WITHIN 20 seconds TIME MODEL POINT",
    "made_first": "EVENT P(v) AS (SELECT y.v AS v WHERE A AS x ; B AS y PARTITION BY k WITHIN 4 seconds)"
    " SELECT * WHERE C AS z THEN P AS p ; D AS w PARTITION BY k WITHIN 20 seconds TIME MODEL ACTIVE_OFFICE",
    "made_refused": "EVENT P(v) AS (SELECT y.v AS v WHERE A AS x ; B AS y PARTITION BY k WITHIN 4 seconds)"
    " SELECT * WHERE A AS w ; NOT (P ALL (C OR D)) ; B AS z PARTITION BY k WITHIN 20 seconds",
    "made_least": "EVENT P(v) AS (SELECT y.v AS v WHERE A AS x ; B AS y PARTITION BY k WITHIN 4 seconds)"
    " SELECT * WHERE C AS z THEN (P AS p ALL D AS w) PARTITION BY k WITHIN 20 seconds TIME MODEL COMPLETE_HISTORY",
    "made_hidden": "EVENT P(v) AS (SELECT y.v AS v WHERE A AS x ; B AS y PARTITION BY k WITHIN 4 seconds)"
    " SELECT * WHERE (PROJECT z (P ; C AS z)) ALL D AS w PARTITION BY k WITHIN 20 seconds",
    "made_alike": "EVENT P(v) AS (SELECT y.v AS v WHERE A AS x ; B AS y PARTITION BY k WITHIN 4 seconds)"
    " SELECT * WHERE (PROJECT z (P ; C AS z)) AND (PROJECT z ((P ALL D) ; C AS z)) PARTITION BY k WITHIN 20 seconds",
    "made_restricted": "EVENT P(v) AS (SELECT y.v AS v WHERE A AS x ; B AS y PARTITION BY k WITHIN 4 seconds)"
    " SELECT RESTRICTED * WHERE P AS p ; D AS w PARTITION BY k WITHIN 20 seconds CONSUME BY PARTITION",
    "count_from_start": f"SELECT COUNT(*) WHERE A AS x ; B AS y NOT FOLLOWED BY C FOR 9 seconds FROM START {KEYED}",
    "absence_from_start": "SELECT * WHERE A AS x ; B AS y NOT FOLLOWED BY C FOR 9 seconds FROM START PARTITION BY k WITHIN 6 seconds",
    "absence": "SELECT * WHERE A AS x ; B AS y NOT FOLLOWED BY C FOR 5 seconds PARTITION BY k WITHIN 9 seconds",
}
LATENESS = {
    "limit": "4s",
    "then_least": "4s",
    "made": "4s",
    "made_later": "4s",
    "made_next": "4s",
    "made_first": "4s",
    "made_least": "4s",
    "made_hidden": "4s",
    "absence": "4s",
    "absence_from_start": "4s",
}
BUCKETS = {
    "bucket": ["match_graph", "next", "last", "maximal", "per_end", "count", "trackers"],
    "bucket_absence": ["absence"],
    "bucket_from_start": ["absence_from_start"],
    "bucket_counts": ["count_from_start"],
    "bucket_measures": ["measures"],
    "bucket_shared": ["match_graph", "last", "maximal", "absence"],  # queries that share their events
    "bucket_guarded": ["guarded", "guarded_count", "guarded_choice"],
    "bucket_sets": ["guarded_sets"],
    "bucket_rows": ["guarded_rows"],
    "bucket_ranks": ["guarded_ranks"],
    "bucket_negated": ["negated", "unless"],
    "bucket_restricted": ["restricted"],
    "bucket_then": ["point", "then_first", "then_least"],
    "bucket_point": ["point_guarded", "made_point"],
    "bucket_first": ["first_guarded", "least_guarded", "made_first"],
    "bucket_having": ["having"],
    "bucket_made": ["made", "made_later", "last"],
    "bucket_made_least": ["made_refused", "made_least"],
    "bucket_made_hidden": ["made_hidden", "made_alike"],
    "bucket_made_next": ["made_next", "made_restricted"],
    "bucket_alone": ["match_graph"],  # the events of one query alone
}
"""Streams over Spark; one query without a name is a plan of its own."""


def stored():
    """The names of all cases, with their versions."""
    return sorted(f"{path.parent.name}/{path.stem}" for path in HERE.glob("*/*.json"))


def read(name):
    """A case and its bytes."""
    return json.loads((HERE / f"{name}.json").read_text(encoding="utf-8")), (HERE / f"{name}.bin").read_bytes()


def is_bucket(name):
    return name.split("/")[-1].startswith("bucket")


def random_events():
    """The events of the cases: disordered by up to 3 seconds, the first with a NULL in its key."""
    chance = random.Random(1)
    rows = [[chance.choice("AABBCCD"), second, chance.choice([1, 2]), second, chance.choice(["p", "q", None])] for second in range(90)]
    rows[0][2] = None
    return sorted(rows, key=lambda row: row[1] + chance.random() * 3)


def schema_of(case):
    return pa.schema([(name, TYPES[kind]) for name, kind in case["schema"].items()])


def table_of(case, rows):
    """Rows of a case as events; times are seconds."""
    columns = {name: list(column) for name, column in zip(case["schema"], zip(*rows, strict=True), strict=True)}
    columns["ts"] = [BASE + dt.timedelta(seconds=second) for second in columns["ts"]]
    return pa.table(columns, schema=schema_of(case))


def recognizer(case, **options):
    """The embedded recognizer of a case."""
    (text,) = case["queries"].values()
    return cepheid.query(text).recognizer(schema_of(case), lateness=case["lateness"], **options)


def rows_of(matches):
    """Matches of an embedded recognizer as plain values."""
    return [plain(row) for row in matches.to_arrow(events=True).to_pylist()]


def rest(run, case):
    """What a recognizer gives for the events after the snapshot, and then until the end of time."""
    given = rows_of(run.push(table_of(case, case["after"])))
    return given + rows_of(run.advance_time(END))


def plain(row):
    """A row as it is stored: times in seconds, events by their numbers, without what another query of a bucket has."""
    values = {}
    for name, value in row.items():
        if isinstance(value, dt.datetime):
            values[name] = (value - BASE).total_seconds()
        elif isinstance(value, list):
            values[name] = [event["v"] for event in value]
        elif isinstance(value, Decimal):
            values[name] = str(value)
        elif value is not None:
            values[name] = value
    return values


def ordered(rows):
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


# ------------------------------------------------------------------------------------------------------------------------ on Spark


def bucket_of(case, spark, folder, *, state=None):
    """The one bucket of a stream over the queries of a case, as `q.on` plans it, and a function that makes events travel to it."""
    from cepheid.spark.batch import prepare
    from cepheid.spark.queries import QueryPlans
    from cepheid.spark.recognition import on
    from cepheid.spark.tasks.buckets import Bucket

    queries = {name: cepheid.query(text) for name, text in case["queries"].items()}
    one = next(iter(queries.values()))
    planned = on(one if len(queries) == 1 else queries, lateness=case["lateness"], order="v", buckets=1)
    ddl = ", ".join(f"{name} {kind}" for name, kind in case["ddl"].items())
    plan = planned._stream(spark.readStream.schema(ddl).parquet(str(folder)))
    bucket = Bucket(plan.several.unit(plan.prepared(), output=plan.output(), late=False))
    if state is not None:
        bucket.load(state)

    def travel(rows):
        several = QueryPlans.of(planned.queries, planned.names, planned.options, spark.createDataFrame(table_of(case, rows)))
        plans = [dataclasses.replace(each, source=dataclasses.replace(each.source, lean=False)) for each in several.plans]  # as on a stream
        return prepare(plans, observed=None).toArrow().select(bucket.schema.names).cast(bucket.schema)

    return bucket, travel


def step_rows(bucket, tables, time):
    """The rows that a bucket gives when the watermark comes to a time."""
    from cepheid.spark.tasks.packing import unpack

    step = bucket.step(tables, int(time.timestamp() * 1000))
    lists = [unpack(bucket.output, pa.array([blob], pa.binary())).to_pylist()[0] for _, blob in step.rows]
    return [plain({name: value for name, value in row.items() if name != "decided_time"}) for rows in lists for row in rows]


def rest_of_bucket(bucket, travel, case):
    """What a bucket gives for the events after its state was stored, and then until the end of time."""
    watermark = BASE + dt.timedelta(seconds=case["watermark"])
    return step_rows(bucket, [travel(case["after"])], watermark) + step_rows(bucket, [], END)
