"""Speed of `Recognizer.push`, each result read by `to_arrow`: batches of a thousand, of a hundred, and of one event.

    python benchmarks/bench_push.py [--pushes N] [--memory-pushes M] [--memory-singles S] [--keys-alone]

A; B; C inside a window of 100, each of the three types a fiftieth of the events, all other events of a type that the pattern does not name; with all
matches and with the strategies, without and with PARTITION BY over a thousand keys, positions or three measures. Every figure is microseconds of the
processor: per event for batches, the median of N pushes; per push for single events, which come as dicts, the median of those that can change
nothing, of the others without a match, and of those with one, and the mean of all.
`run` is `Query.run` over the same events, per event. `memory` follows what a recognizer says it has (`memory_usage`) and the resident set of the
process over M pushes of 100 events, in MiB; `singles_memory_mib` over S pushes of one event.
`keys`: what a push costs a recognizer that knows a thousand keys, and one that knows a million, in pushes that alternate between the two: the median,
and the mean, the 99th percentile and the most, which have what is done now and then; --keys-alone measures this part, and leaves the others of the
record as they are.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import statistics
import time
from typing import Any

import numpy as np
import pyarrow as pa

import cepheid
import circumstances

SIZES = {1000: "thousand", 100: "hundred"}
BARS = {"thousand": (0.4, 1.0), "hundred": (2.0, 4.0), "one_without_a_match": (20.0, 20.0), "one_with_a_match": (60.0, 60.0)}
"""Microseconds at most, without and with keys."""

KEYS = 1000
SINGLES = 20_000
"""Pushes of one event: of fewer than one in a thousand a match ends."""

SHOWN = {"positions": "*", "measures": "A.ts AS a, B.v AS b, C.ts AS c"}


def table(count: int, *, seed: int = 7) -> pa.Table:
    """So many events, one per step of time."""
    rng = np.random.default_rng(seed)
    types = rng.choice(4, count, p=[0.02, 0.02, 0.02, 0.94])
    return pa.table(
        {
            "type": pa.array(["A", "B", "C", "D"]).take(pa.array(types)),
            "ts": np.arange(count),
            "v": rng.integers(0, 1_000, count),
            "k": rng.integers(0, KEYS, count),
        }
    )


def text_of(strategy: str, shown: str, *, keys: bool) -> str:
    """The query; with keys its window is as many events of a key."""
    clause, window = (" PARTITION BY k", 100 * KEYS) if keys else ("", 100)
    return f"SELECT {strategy}{SHOWN[shown]} WHERE A ; B ; C{clause} WITHIN {window}"


def pushes(query: cepheid.Query, events: pa.Table, size: int, count: int) -> tuple[list[float], list[float]]:
    """Microseconds of each push without a match, and of each with some; the first tenth does not count."""
    recognizer = query.recognizer(events.schema)
    without, some = [], []
    batches = events.to_batches(max_chunksize=size)[:count]
    gc.collect()
    for number, batch in enumerate(batches):
        start = time.process_time_ns()
        found = recognizer.push(batch)
        found.to_arrow()
        spent = (time.process_time_ns() - start) / 1000
        if 10 * number > count:
            (some if len(found) else without).append(spent)
    return without, some


def singles(query: cepheid.Query) -> dict[str, Any]:
    """Microseconds of each push of one dict; the first tenth does not count."""
    events = table(SINGLES)
    recognizer = query.recognizer(events.schema)
    spent: dict[str, list[float]] = {"one_without_a_match": [], "one_of_them_that_matters": [], "one_with_a_match": []}
    gc.collect()
    for number, row in enumerate(events.to_pylist()):
        start = time.process_time_ns()
        found = recognizer.push(row)
        found.to_arrow()
        taken = (time.process_time_ns() - start) / 1000
        if 10 * number > SINGLES:
            matters = ["one_of_them_that_matters"] if row["type"] != "D" else []
            for name in ["one_with_a_match"] if len(found) else ["one_without_a_match", *matters]:
                spent[name].append(taken)
    every = spent["one_without_a_match"] + spent["one_with_a_match"]
    medians = {name: round(statistics.median(values), 1) if values else None for name, values in spent.items()}
    return medians | {"one_on_average": round(statistics.mean(every), 1)}


def measured(strategy: str, shown: str, *, keys: bool, count: int) -> dict[str, Any]:
    """The figures of one query."""
    query = cepheid.query(text_of(strategy, shown, keys=keys))
    figures: dict[str, Any] = {"query": query.text}
    for size, name in SIZES.items():
        without, some = pushes(query, table(size * count), size, count)
        figures[name] = round(statistics.median(without + some) / size, 3)
    figures |= singles(query)
    events = table(1_000_000)
    start = time.process_time()
    query.run(events).to_arrow()
    return figures | {"run": round((time.process_time() - start) * 1e6 / len(events), 3)}


def memory(count: int) -> list[dict[str, float]]:
    """What is in memory after each tenth of the pushes."""
    query = cepheid.query(text_of("", "positions", keys=True))
    events = table(1_000_000)
    recognizer = query.recognizer(events.schema)
    batches = events.to_batches(max_chunksize=100)
    found = []
    for number in range(count):
        batch = batches[number % len(batches)]
        later = pa.array(batch.column("ts").to_numpy() + number // len(batches) * len(events))
        recognizer.push(batch.set_column(1, "ts", later)).to_arrow()
        if (number + 1) % (count // 10) == 0:
            found.append(in_memory(recognizer, number + 1))
    return found


def singles_memory(count: int) -> list[dict[str, float]]:
    """The same of pushes of one event, a tuple."""
    events = table(100_000)
    rows = list(zip(*(column.to_pylist() for column in events.columns), strict=True))
    recognizer = cepheid.query(text_of("", "positions", keys=True)).recognizer(events.schema)
    found = []
    for number in range(count):
        kind, _, value, key = rows[number % len(rows)]
        recognizer.push((kind, number, value, key))
        if (number + 1) % (count // 10) == 0:
            found.append(in_memory(recognizer, number + 1))
    return found


def in_memory(recognizer: cepheid.Recognizer, pushes: int) -> dict[str, float]:
    """What a recognizer says it has, and the most that was ever resident of the process."""
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"pushes": pushes, "state": round(recognizer.memory_usage() / 2**20, 2), "resident_most": round(resident, 1)}


MANY_KEYS = 1_000_000
PER_KEYS = {"a dict": (1, 2_000), "1": (1, 1_000), "10": (10, 600), "100": (100, 300), "1000": (1_000, 300), "1, a new key": (1, 1_000)}
"""Events of a push, and how many pushes."""

OF_KEYS = {
    "all matches": text_of("", "positions", keys=True),
    "NXT": text_of("NXT ", "positions", keys=True),
    "a condition": "SELECT * WHERE A AS a ; B AS b FILTER b.v > a.v PARTITION BY k WITHIN 100000",
    "used up": "SELECT * WHERE A ; B PARTITION BY k WITHIN 100000 CONSUME BY PARTITION",
}


def of_keys(text: str) -> dict[str, dict[str, list[float]]]:
    """For each kind of push microseconds with a thousand and with a million keys, and how many times the median is more."""
    query = cepheid.query(text)
    recognizers = {}
    for keys in (KEYS, MANY_KEYS):
        filled = table(MANY_KEYS)
        filled = filled.set_column(3, "k", pa.array(np.arange(MANY_KEYS) % keys))
        recognizers[keys] = query.recognizer(filled.schema)
        for batch in filled.to_batches(max_chunksize=100_000):
            recognizers[keys].push(batch)
    found, start = {}, MANY_KEYS
    for kind, (size, count) in PER_KEYS.items():
        rng, given, spent = np.random.default_rng(start), {}, {keys: [] for keys in recognizers}
        events = table(size * count, seed=start).set_column(1, "ts", pa.array(start + np.arange(size * count)))
        for keys in recognizers:
            own = rng.integers(0, keys, size * count) if "new" not in kind else start + np.arange(size * count)
            batches = events.set_column(3, "k", pa.array(own)).to_batches(max_chunksize=size)
            given[keys] = [batch.to_pylist()[0] for batch in batches] if kind == "a dict" else batches
        gc.collect()
        for number in range(count):  # in turn, so that what else the machine does is the same for both
            for keys, recognizer in recognizers.items():
                before = time.process_time_ns()
                recognizer.push(given[keys][number]).to_arrow()
                spent[keys].append((time.process_time_ns() - before) / 1000)
        start += size * count
        both = [spent[keys][count // 10 :] for keys in recognizers]
        medians, means, p99, most = ([round(of(values), 1) for values in both] for of in (statistics.median, statistics.mean, _p99, max))
        found[kind] = {"medians": medians, "times": round(medians[1] / medians[0], 2), "means": means, "p99": p99, "max": most}
    return found


def _p99(values: list[float]) -> float:
    return statistics.quantiles(values, n=100)[98]


def main() -> None:
    """Measure, print, record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pushes", type=int, default=1_000)
    parser.add_argument("--memory-pushes", type=int, default=100_000)
    parser.add_argument("--memory-singles", type=int, default=10_000_000)
    parser.add_argument("--keys-alone", action="store_true")
    options = parser.parse_args()
    before = circumstances.circumstances()
    keys = {"circumstances": before, "thousand_and_million": {name: of_keys(text) for name, text in OF_KEYS.items()}}
    if options.keys_alone:
        record = circumstances.FOLDER / "push.json"
        record.write_text(json.dumps(json.loads(record.read_text()) | {"keys": keys}, indent=1) + "\n")
        return
    runs = [
        measured(strategy, shown, keys=keys, count=options.pushes)
        for strategy in ("", "NXT ", "LAST ", "MAX ")
        for keys in (False, True)
        for shown in SHOWN
    ]
    figures = {"bars_without_and_with_keys": BARS, "microseconds": runs, "memory_mib": memory(options.memory_pushes), "keys": keys}
    figures["singles_memory_mib"] = singles_memory(options.memory_singles)
    circumstances.write("push", figures, before=before)


if __name__ == "__main__":
    main()
