"""Memory over a long stream: 100 M events in batches through one evaluation, and how much the resident set grows.

    python benchmarks/bench_memory.py [--events N] [--batch B]

A;B;C over five types, window 1,000, LIMIT 1, matches handed over and dropped. The growth counts from the end of the first tenth, when all
arrays have their size, and from the very beginning.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import circumstances
from bench_kernel import program, uniform
from cepheid.engine.evaluations.graph.match import Evaluation

if TYPE_CHECKING:
    from cepheid.engine.evaluations.base import Chunk


def resident() -> int:
    """Bytes of the resident set."""
    return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    """Push the stream and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=100_000_000)
    parser.add_argument("--batch", type=int, default=1_000_000)
    options = parser.parse_args()
    letters = uniform(options.batch)
    times = np.arange(options.batch, dtype=np.int64)
    matches = 0

    def sink(chunk: Chunk) -> None:
        nonlocal matches
        matches += len(chunk)

    run = Evaluation(program("A;B;C"), window=1000, limit=1)
    begin, at_start, warm, most = time.perf_counter(), resident(), 0, 0
    batches = options.events // options.batch
    for number in range(batches):
        run.feed(letters, times + number * options.batch, continued=True, sink=sink)
        most = max(most, resident())
        if number == batches // 10:
            warm = most
    figures = {
        "query": "A;B;C",
        "window": 1000,
        "events": run.events,
        "batch": options.batch,
        "matches": matches,
        "seconds": round(time.perf_counter() - begin, 1),
        "bar_growth_mb": 50,
        "growth_mb": round((most - at_start) / 1e6, 1),
        "growth_after_a_tenth_mb": round((most - warm) / 1e6, 1),
        "evaluation_bytes": run.memory_usage(),
    }
    circumstances.write("memory", figures)


if __name__ == "__main__":
    main()
