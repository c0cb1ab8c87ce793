"""Speed of many queries at once, `cepheid.queries`: a recognizer fed a thousand events at a time, and `run`; 1 to 1,000 queries.

    python benchmarks/bench_queries.py [--events N]

The queries differ in constants. `equal`: a type, an id that is the query's own, and a threshold; an event has the id of one query. `between`: a
range of a number; an event is in the range of one query. Both touch 1 % of 100 queries and 0.1 % of 1,000. `thresholds`: `v > c`, each event above
half of all constants. `shapes`: as `equal`, each query with a window of its own, so that no two are one family. Every figure is microseconds of the
processor per event: `push`; `read`, to make a table of its own of the matches of each query that has some, by `to_arrow`; `run`; and `alone`, the sum
of the pushes to a recognizer of each query, where that is measured. `matches` are of the pushes.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import cepheid
import circumstances

if TYPE_CHECKING:
    from collections.abc import Callable

COUNTS = (1, 3, 10, 30, 100, 300, 1000)
ALONE = {1, 10, 100}
BATCH = 1000
BARS = {"push_100": 5.0, "run_100": 2.0, "push_1000_over_push_100": 3.0}


def equal(number: int, count: int) -> str:
    """A query about one id."""
    limit = number * 7 % 500
    condition = f"x[id = {number} AND v > {limit}] AND y[id = {number} AND v < {limit + 300}]"
    return f"SELECT * WHERE A AS x ; B AS y FILTER {condition} WITHIN {10 * count}"


def between(number: int, count: int) -> str:
    """A query about one range of a number, as wide as there are queries."""
    low, high = (1_000_000 * edge // count for edge in (number, number + 1))
    condition = f"x[w >= {low} AND w < {high}] AND y[w >= {low} AND w < {high}]"
    return f"SELECT * WHERE A AS x ; B AS y FILTER {condition} WITHIN {3 * count}"


def thresholds(number: int, count: int) -> str:
    """A query about values above a limit, of which a match ends at few."""
    limit = 1_000_000 * number // count
    return f"SELECT * WHERE A AS x ; B AS y FILTER x[w > {limit}] AND y[v = {number}] WITHIN 100"


def shapes(number: int, count: int) -> str:
    """As `equal`, with a window of the query's own."""
    return equal(number, count).rpartition(" ")[0] + f" {10 * count + number}"


KINDS: dict[str, Callable[[int, int], str]] = {"equal": equal, "between": between, "thresholds": thresholds, "shapes": shapes}
MOST = {"thresholds": 300, "shapes": 100}


def table(count: int, queries: int, *, seed: int = 7) -> pa.Table:
    """So many events, one per step of time."""
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "type": pa.array(["A", "B", "C"]).take(pa.array(rng.integers(0, 3, count))),
            "ts": np.arange(count),
            "id": rng.integers(0, queries, count),
            "v": rng.integers(0, 1_000, count),
            "w": rng.integers(0, 1_000_000, count),
        }
    )


def pushed(recognizer: Any, events: pa.Table) -> tuple[float, float, int]:
    """Seconds of the processor to push all, to read the matches of each query as a table of its own, and how many there are."""
    matches = 0
    push = read = 0.0
    for batch in events.to_batches(max_chunksize=BATCH):
        start = time.process_time()
        found = recognizer.push(batch)
        made = time.process_time()
        for own in found.found.values() if isinstance(found, cepheid.ByName) else [found]:
            matches += own.to_arrow().num_rows
        push, read = push + made - start, read + time.process_time() - made
    return push, read, matches


def measured(kind: str, count: int, events: int) -> dict[str, Any]:
    """The figures of so many queries of a kind."""
    text = KINDS[kind]
    named = {f"q{number}": text(number, count) for number in range(count)}
    start = time.process_time()
    queries = cepheid.queries(named)
    given = table(events, count)
    recognizer = queries.recognizer(given.schema)
    compiled = time.process_time() - start
    pushed(recognizer, given.slice(0, 20 * BATCH))
    later = given.set_column(1, "ts", pa.array(given["ts"].to_numpy() + events))
    spent, read, matches = pushed(recognizer, later)
    figures: dict[str, Any] = {
        "queries": count,
        "compile_seconds": round(compiled, 2),
        "push": round(spent * 1e6 / events, 2),
        "read": round(read * 1e6 / events, 2),
        "matches": matches,
        "state_mib": round(recognizer.memory_usage() / 2**20, 2),
    }
    start = time.process_time()
    queries.run(given)
    figures["run"] = round((time.process_time() - start) * 1e6 / events, 2)
    if count in ALONE:
        part = given.slice(0, events // 10)
        alone = sum(pushed(query.recognizer(given.schema), part)[0] for query in queries.values())  # without reading
        figures["alone"] = round(alone * 1e6 / len(part), 2)
    return figures


def main() -> None:
    """Measure, print, record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000)
    options = parser.parse_args()
    before = circumstances.circumstances()
    runs = {kind: [measured(kind, count, options.events) for count in COUNTS if count <= MOST.get(kind, count)] for kind in KINDS}
    circumstances.write("queries", {"events": options.events, "bars": BARS, "microseconds_per_event": runs}, before=before)


if __name__ == "__main__":
    main()
