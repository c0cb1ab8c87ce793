"""Speed of `Query.run` all in: an Arrow table in, matches out, ns per event.

    python benchmarks/bench_run.py [--events N] [--repeat R]

Uniform events of five types in a dictionary column, one per unit of time, with a numeric attribute and a key. Every figure is the median of R
runs; predicates alone, with 2 to 5 of them, are measured on the same table.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import cepheid
import circumstances

if TYPE_CHECKING:
    from collections.abc import Callable

BAR = 80
"""ns per event for the first query."""

QUERIES = {
    "one filter": "SELECT * WHERE A AS x ; B ; C FILTER x[v > 0.5] WITHIN 100 LIMIT 1",
    "nested iteration": "SELECT * WHERE (A+ ; B)+ ; C WITHIN 1000 LIMIT 1",
    "1,000 keys": "SELECT * WHERE A AS x ; B ; C FILTER x[v > 0.5] PARTITION BY k WITHIN 100000 LIMIT 1",
    "1 M keys": "SELECT * WHERE A AS x ; B ; C FILTER x[v > 0.5] PARTITION BY many WITHIN 10000000 LIMIT 1",
}

PREDICATES = {
    2: "A AS x FILTER x[v > 0.5]",
    3: "A AS x ; B FILTER x[v > 0.5]",
    4: "A AS x ; B ; C FILTER x[v > 0.5]",
    5: "A AS x ; B AS y ; C FILTER x[v > 0.5] AND y[v < 0.25]",
}


def table(count: int) -> pa.Table:
    """Uniform events of five types."""
    rng = np.random.default_rng(7)
    types = pa.DictionaryArray.from_arrays(pa.array(rng.integers(0, 5, count), pa.int32()), pa.array(list("ABCDE")))
    keys = {"k": rng.integers(0, 1_000, count), "many": rng.integers(0, 1_000_000, count)}
    return pa.table({"type": types, "ts": np.arange(count), "v": rng.random(count), **keys})


def median(run: Callable[[], Any], repeat: int) -> float:
    """Seconds of the median run, after one that does not count."""
    seconds = []
    for _ in range(repeat + 1):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[1:])


def main() -> None:
    """Measure, print, record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    events = table(options.events)
    runs = []
    for name, text in QUERIES.items():
        query = cepheid.query(text)
        seconds = median(lambda query=query: query.run(events), options.repeat)
        ns = round(seconds / options.events * 1e9, 1)
        runs.append({"name": name, "query": text, "ns_per_event": ns, "matches": len(query.run(events))})
    letters = []
    for count, pattern in PREDICATES.items():
        query = cepheid.query(f"SELECT * WHERE {pattern}")
        predicates = query.compiled(query.schema(events.schema)).predicates
        seconds = median(lambda predicates=predicates: predicates.letters(events), options.repeat)
        letters.append({"predicates": count, "ns_per_event": round(seconds / options.events * 1e9, 2)})
    figures = {"events": options.events, "repeat": options.repeat, "bar_ns_per_event": BAR, "run": runs, "letters": letters}
    circumstances.write("run", figures)


if __name__ == "__main__":
    main()
