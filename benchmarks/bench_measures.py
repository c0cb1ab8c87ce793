"""Speed of the measures of SELECT: five of them for each of some matches, once the matches are there.

    python benchmarks/bench_measures.py [--matches N] [--repeat R]

Every event starts a match of three, so that there are as many matches as events, with an int64, a double, a decimal, a text of a thousand
different ones, and a numeric time. `judged` is HAVING beside the same condition as a FILTER, and beside none: `Query.run` over pairs of neighbours,
of which about half meet it. Every figure is the median of R runs; `run` is `Query.run` all in, measures included. Seconds are of the
clock and, after it, of the processor, which other work on the machine changes less.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import cepheid
import circumstances
from cepheid.engine.output.measures import compute

if TYPE_CHECKING:
    from collections.abc import Callable

BAR = 1.0
"""Seconds for a million matches and five measures."""

MEASURES = {
    "numbers": "first(x.v) AS a, count(x) AS b, sum(x.v) / count(x) AS c, max(x.w) AS d, duration() AS e",
    "more numbers": "last(x.w) - first(x.w) AS a, avg(x.v) AS b, min(x.v) AS c, sum(x.w) AS d, start_time() AS e",
    "text and decimals": "first(x.s) AS a, min(x.s) AS b, sum(x.price) AS c, max(x.price) AS d, end_time() AS e",
    "statistics": "stddev(x.v) AS a, count(DISTINCT x.v) AS b, collect(x.v) AS c, first(x.v, 2) AS d, CASE WHEN sum(x.v) > 0 THEN 1 ELSE 2 END AS e",
}

PAIRS = "WHERE A AS x : A AS y"
JUDGED = {
    "no condition": f"SELECT * {PAIRS}",
    "FILTER": f"SELECT * {PAIRS} FILTER x.v < y.v",
    "HAVING": f"SELECT * {PAIRS} HAVING x.v < y.v",
    "HAVING and LIMIT": f"SELECT * {PAIRS} HAVING x.v < y.v LIMIT 1",
    "HAVING and COUNT(*)": f"SELECT COUNT(*) {PAIRS} HAVING x.v < y.v",
    "HAVING and CONSUME BY": f"SELECT * {PAIRS} HAVING x.v < y.v CONSUME BY ANY",
    "HAVING of what is not shown": f"SELECT y {PAIRS} HAVING x.v < y.v",
}
"""One match per event at most: every trigger has to be looked at."""


def table(count: int) -> pa.Table:
    """Events of one type."""
    rng = np.random.default_rng(7)
    cents = pa.array(rng.integers(0, 10**6, count)).cast(pa.decimal128(19, 0))
    words = pa.array([f"word {number}" for number in range(1_000)])
    return pa.table(
        {
            "type": pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array(["A"])),
            "ts": np.arange(count),
            "v": rng.integers(-1_000, 1_000, count),
            "w": rng.random(count),
            "price": cents,
            "s": words.take(pa.array(rng.integers(0, 1_000, count))),
        }
    )


def medians(run: Callable[[], Any], repeat: int) -> list[float]:
    """Seconds of the median run by the clock and by the processor, after one that does not count."""
    clock, processor = [], []
    for _ in range(repeat + 1):
        start, used = time.perf_counter(), time.process_time()
        run()
        clock.append(time.perf_counter() - start)
        processor.append(time.process_time() - used)
    return [round(statistics.median(seconds[1:]), 3) for seconds in (clock, processor)]


def main() -> None:
    """Measure, print, record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--matches", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    events = table(options.matches + 2)
    runs = []
    for name, measures in MEASURES.items():
        query = cepheid.query(f"SELECT {measures} WHERE A:{{3}} AS x")
        plan = query.bound(query.schema(events.schema))
        matches = query.run(events)
        assert len(matches) == options.matches
        seconds = medians(functools.partial(compute, plan.measures, matches), options.repeat)
        whole = medians(functools.partial(query.run, events), options.repeat)
        runs.append({"name": name, "measures": measures, "seconds": seconds, "run": whole})
    judged = []
    for name, text in JUDGED.items():
        query = cepheid.query(text)
        found = len(query.run(events))
        judged.append({"name": name, "query": text, "matches": found, "run": medians(functools.partial(query.run, events), options.repeat)})
    figures = {"matches": options.matches, "repeat": options.repeat, "bar_seconds": BAR, "measures": runs, "judged": judged}
    circumstances.write("measures", figures)


if __name__ == "__main__":
    main()
