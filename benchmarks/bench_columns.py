"""From matches to columns: all combinations of A ; B ; C, twenty million matches, as measures and as lists, without and with PARTITION BY.

    python benchmarks/bench_columns.py [--matches N] [--repeat R] [--stages | --once measures|positions [--keys]]

Uniform events of five types, one per unit of time, and a key of a thousand values; the window is a hundred events, with keys as many of a key on
average: forty matches per event. Every figure is nanoseconds of the processor per match, the median of R runs and the least of them: `run` is
`Query.run`, `to_arrow` what its answer's `to_arrow` takes after that, `all` is both. `kernel` is the enumeration alone, each chunk thrown away.
`fresh` is the first run in a process of its own (the median of the processes, and the least), which pays the system for memory that nothing has used
before, and the bytes per match by which its greatest resident set grows. With --stages the functions that take most of a run are printed, with
--once the figures of one fresh run, and nothing is recorded.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import json
import pstats
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import cepheid
import circumstances
from cepheid.engine.evaluations.events import Events

WINDOW = 100
PER_EVENT = 40
"""Matches that an event completes, on average."""

KEYS = 1_000

SHOWN = {"measures": "A.ts AS a, B.ts AS b, C.ts AS c", "positions": "*"}
BARS = {("measures", False): 80, ("positions", False): 60, ("measures", True): 200, ("positions", True): 200}
"""Nanoseconds per match at most, run and to_arrow, by what is shown and whether there are keys."""


def table(count: int) -> pa.Table:
    """Uniform events of five types."""
    rng = np.random.default_rng(7)
    types = pa.DictionaryArray.from_arrays(pa.array(rng.integers(0, 5, count), pa.int32()), pa.array(list("ABCDE")))
    return pa.table({"type": types, "ts": np.arange(count), "k": rng.integers(0, KEYS, count)})


def events_for(matches: int, *, keys: bool) -> pa.Table:
    """Events with about so many matches; of the events in the first window a third are missing on average."""
    return table(matches // PER_EVENT + (2 * WINDOW * KEYS // 3 if keys else WINDOW))


def query_of(shown: str, *, keys: bool) -> cepheid.Query:
    """The query."""
    clause, window = (" PARTITION BY k", WINDOW * KEYS) if keys else ("", WINDOW)
    return cepheid.query(f"SELECT {SHOWN[shown]} WHERE A ; B ; C{clause} WITHIN {window}")


def enumerated(query: cepheid.Query, events: pa.Table) -> float:
    """Nanoseconds per match of the kernel alone, over one stream."""
    compiled = query.compiled(query.schema(events.schema))
    letters, times = compiled.alphabets[0].letters(events), events["ts"].to_numpy()
    start, count = time.process_time_ns(), 0
    for chunk in compiled.evaluation().chunks(Events(letters, times)):
        count += len(chunk)
    return (time.process_time_ns() - start) / count


def once(query: cepheid.Query, events: pa.Table) -> tuple[int, float, float]:
    """The matches, and nanoseconds per match of `run` and of `to_arrow`."""
    gc.collect()
    start = time.process_time_ns()
    matches = query.run(events)
    made = time.process_time_ns()
    rows = matches.to_arrow().num_rows
    return rows, (made - start) / rows, (time.process_time_ns() - made) / rows


def figures_of(values: list[float]) -> dict[str, float]:
    """The median and the least, after one that does not count."""
    return {"median": round(statistics.median(values[1:]), 1), "least": round(min(values[1:]), 1)}


def measured(shown: str, options: argparse.Namespace, *, keys: bool) -> dict[str, Any]:
    """The figures of one query."""
    query, events = query_of(shown, keys=keys), events_for(options.matches, keys=keys)
    runs = [once(query, events) for _ in range(options.repeat + 1)]
    figures: dict[str, Any] = {"query": query.text, "events": len(events), "matches": runs[0][0], "bar": BARS[shown, keys]}
    if not keys:
        figures["kernel"] = figures_of([enumerated(query, events) for _ in range(options.repeat + 1)])
    return figures | {
        "run": figures_of([run for _, run, _ in runs]),
        "to_arrow": figures_of([made for _, _, made in runs]),
        "all": figures_of([run + made for _, run, made in runs]),
        "fresh": fresh(shown, options, keys=keys),
    }


def resident_most() -> int:
    """The greatest resident set of this process, in bytes; what getrusage says begins with that of the parent."""
    line = next(line for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def once_fresh(options: argparse.Namespace) -> None:
    """Print the figures of the first run in this process."""
    query, events = query_of(options.once, keys=options.keys), events_for(options.matches, keys=options.keys)
    once(query, events[:10_000])
    before = resident_most()
    rows, run, shown = once(query, events)
    grown = resident_most() - before
    print(json.dumps({"all": run + shown, "resident_bytes": grown / rows}))


def fresh(shown: str, options: argparse.Namespace, *, keys: bool) -> dict[str, Any]:
    """The figures of first runs in processes of their own."""
    command = [sys.executable, __file__, "--matches", str(options.matches), "--once", shown, *(["--keys"] if keys else [])]
    found = [json.loads(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(options.repeat + 1)]
    return {"all": figures_of([one["all"] for one in found]), "resident_bytes": round(found[-1]["resident_bytes"])}


def stages(options: argparse.Namespace) -> None:
    """Print the functions that take most of each query."""
    for shown, keys in BARS:
        query, events = query_of(shown, keys=keys), events_for(options.matches, keys=keys)
        once(query, events)
        profile = cProfile.Profile(time.process_time)
        print(query.text, profile.runcall(once, query, events))
        pstats.Stats(profile).sort_stats("tottime").print_stats(16)


def main() -> None:
    """Measure, print, record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--matches", type=int, default=20_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--stages", action="store_true")
    parser.add_argument("--once", choices=SHOWN)
    parser.add_argument("--keys", action="store_true")
    options = parser.parse_args()
    if options.once:
        once_fresh(options)
        return
    if options.stages:
        stages(options)
        return
    before = circumstances.circumstances()
    runs = [measured(shown, options, keys=keys) for shown, keys in BARS]
    circumstances.write("columns", {"repeat": options.repeat, "nanoseconds_per_match": runs}, before=before)


if __name__ == "__main__":
    main()
