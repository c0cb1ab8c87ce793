"""Write the snapshots of the present version: `python tests/upgrade/make.py`, once for each version, before it is released.

Cases that are there are never written again: they are what users have in their checkpoints.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from upgrade_cases import (
    BASE,
    BUCKETS,
    HERE,
    LATENESS,
    QUERIES,
    SCHEMA,
    bucket_of,
    dt,
    ordered,
    random_events,
    recognizer,
    rest,
    rest_of_bucket,
    rows_of,
    step_rows,
    table_of,
)

import cepheid
from cepheid.engine.plan.methods import METHODS
from cepheid.spark import local_session

DDL = {"type": "string", "ts": "timestamp", "k": "long", "v": "long", "s": "string"}
BEFORE, WATERMARK = 50, 44


def embedded(name):
    """A snapshot of a recognizer."""
    events = random_events()
    if name not in LATENESS:
        events.sort(key=lambda event: event[1])
    case = {
        "queries": {name: QUERIES[name]},
        "schema": SCHEMA,
        "lateness": LATENESS.get(name),
        "before": events[:BEFORE],
        "after": events[BEFORE:],
    }
    run = recognizer(case)
    given = rows_of(run.push(table_of(case, case["before"])))
    data = run.snapshot()
    case["expected"] = rest(run, case)
    check(name, given + case["expected"])
    return case | {"null_keys": run.null_keys}, data


def bucket(name, spark, folder):
    """The state of a bucket."""
    events = random_events()
    case = {"queries": {query: QUERIES[query] for query in BUCKETS[name]}, "schema": SCHEMA, "ddl": DDL, "lateness": "4s"}
    case |= {"before": events[:BEFORE], "after": events[BEFORE:], "watermark": WATERMARK}
    run, travel = bucket_of(case, spark, folder)
    # Events at or before the watermark of their own micro-batch are late: it moves in the next.
    given = step_rows(run, [travel(case["before"])], BASE) + step_rows(run, [], BASE + dt.timedelta(seconds=WATERMARK))
    data = run.dump()
    case["expected"] = ordered(rest_of_bucket(run, travel, case))
    for query in case["queries"]:
        rows = [row for row in given + case["expected"] if row.get("query", query) == query]
        check(query, [{column: value for column, value in row.items() if column != "query"} for row in rows])
    return case, data


def check(name, rows):
    """What is stored is right: all matches together are those of the whole table."""
    case = {"schema": SCHEMA}
    events = table_of(case, sorted(random_events(), key=lambda event: event[1]))
    until = {"until": "end"} if "NOT FOLLOWED" in QUERIES[name] else {}
    expected = rows_of(cepheid.query(QUERIES[name]).run(events, **until))
    shown = set().union(*rows)
    expected = [{column: value for column, value in row.items() if column in shown} for row in expected]
    assert len(expected) > 3, (name, len(expected))
    assert ordered(rows) == ordered(expected), name


def write(name, case, data):
    path = HERE / cepheid.__version__ / name
    path.parent.mkdir(exist_ok=True)
    assert case["expected"], name
    lines = [f"{json.dumps(key)}: {listed(value)}" for key, value in case.items()]
    path.with_suffix(".json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    path.with_suffix(".bin").write_bytes(data)


def listed(value):
    if isinstance(value, list):
        return "[\n  " + ",\n  ".join(map(json.dumps, value)) + "\n]"
    return json.dumps(value)


def main():
    there = {path.stem for path in (HERE / cepheid.__version__).glob("*.json")}
    methods = {
        cepheid.query(text).compiled(cepheid.query(text).schema(table_of({"schema": SCHEMA}, random_events()).schema)).method.name
        for text in QUERIES.values()
    }
    assert methods == {method.name for method in METHODS}, "every method of evaluation has a case"
    for name in QUERIES:
        if name not in there:
            write(name, *embedded(name))
    missing = [name for name in BUCKETS if name not in there]
    if missing:
        spark = local_session(cores=1, memory="700m", settings={"spark.sql.shuffle.partitions": "1"})
        with tempfile.TemporaryDirectory() as folder:
            for name in missing:
                write(name, *bucket(name, spark, Path(folder)))
        spark.stop()


if __name__ == "__main__":
    main()
