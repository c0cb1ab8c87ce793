"""Speed of conjunction and negation beside the same patterns without: ns per event all in (`Query.run`, LIMIT 1), and ratios of queries run in turns.

    python benchmarks/bench_negation.py [--events N] [--repeat R]

Events of five types, uniform, one per unit of time. Every figure is the median of R runs, in turns over all queries, and every ratio that of R
ratios, each of two runs of one turn.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
import pyarrow as pa

import cepheid
import circumstances

PATTERNS = (
    "A ; C",
    "A ; B ; C",
    "A ;[<= 9] C",
    "A ; NOT B ; C",
    "A ; NOT B ; B",
    "A ; NOT (B ; D) ; C",
    "A ; C UNLESS B",
    "A ; C UNLESS (B ; D)",
    "A ALL B",
    "A ALL B ALL C",
    "A ; NOT B ;[<= 9] C",
    "A ; NOT (B ; D) ;[<= 9] C",
    "A ; NOT (B ;[<= 3] D) ; C",
    "A ; C UNLESS (B ;[<= 3] D)",
)

RATIOS = {
    "A ; NOT B ; C": ("A ; C", 1.3),
    "A ; C UNLESS B": ("A ; C", 1.3),
    "A ALL B ALL C": ("A ; B ; C", 3.0),
    "A ; NOT (B ; D) ; C": ("A ; C", None),
    "A ; C UNLESS (B ; D)": ("A ; C", None),
    "A ; NOT B ;[<= 9] C": ("A ;[<= 9] C", None),
    "A ; NOT (B ; D) ;[<= 9] C": ("A ;[<= 9] C", None),
    "A ; NOT (B ;[<= 3] D) ; C": ("A ;[<= 9] C", None),
}
"""Beside which query, and the bar, where there is one."""

WINDOW = 1_000


def main() -> None:
    """Measure, print, record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=5_000_000)
    parser.add_argument("--repeat", type=int, default=7)
    options = parser.parse_args()
    rng = np.random.default_rng(7)
    types = pa.DictionaryArray.from_arrays(pa.array(rng.integers(0, 5, options.events), pa.int32()), pa.array(list("ABCDE")))
    events = pa.table({"type": types, "ts": np.arange(options.events)})
    queries = {pattern: cepheid.query(f"SELECT * WHERE {pattern} WITHIN {WINDOW} LIMIT 1") for pattern in PATTERNS}
    taken: dict[str, list[float]] = {name: [] for name in queries}
    matches = {name: len(query.run(events)) for name, query in queries.items()}
    for _ in range(options.repeat):
        for name, query in queries.items():
            begin = time.process_time()
            query.run(events)
            taken[name].append((time.process_time() - begin) * 1e9 / options.events)
    figures = [{"query": name, "ns_per_event": round(statistics.median(each), 1), "matches": matches[name]} for name, each in taken.items()]
    ratios = [
        {"query": name, "beside": base, "ratio": round(statistics.median(np.divide(taken[name], taken[base])), 2), "bar": bar}
        for name, (base, bar) in RATIOS.items()
    ]
    circumstances.write(
        "negation", {"events": options.events, "window": WINDOW, "repeat": options.repeat, "queries": figures, "ratios": ratios}
    )


if __name__ == "__main__":
    main()
