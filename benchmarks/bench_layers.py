"""Matches as events: what a program with definitions costs, beside its definition and its query alone; and THEN under each model that engines have.

    python benchmarks/bench_layers.py [--events N] [--repeat R]

CPU time, ns per event: `Query.run` over a table, and `Recognizer.push` of batches, as on Spark in each task and each micro-batch. Each figure is the
median of R runs, in turns over all queries; a ratio is the median of those of single turns. Events are logins: three in ten fail.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import cepheid
import circumstances
from cepheid.succession import MODELS

if TYPE_CHECKING:
    from collections.abc import Callable

BURST = "SELECT STRICT count(f) AS n WHERE Fail{5} AS f WITHIN 1 hour PARTITION BY user"
BURSTS = f"EVENT Burst(n) AS ({BURST})"
CALMS = "EVENT Calm(bursts) AS (SELECT b.n AS bursts WHERE Burst AS b ; Ok AS o WITHIN 1 hour PARTITION BY user)"

PROGRAMS = {
    "the definition alone": BURST,
    "the query alone, over events that come": "SELECT * WHERE Fail AS b ; Out WITHIN 1 hour PARTITION BY user",
    "a burst, then a logout": f"{BURSTS} SELECT * WHERE Burst AS b ; Out WITHIN 1 hour PARTITION BY user",
    "a logout, then a burst": f"{BURSTS} SELECT * WHERE Out ; Burst AS b WITHIN 1 hour PARTITION BY user",
    "three layers": f"{BURSTS} {CALMS} SELECT * WHERE Calm AS c ; Out WITHIN 3 hours PARTITION BY user",
}
BASE = "the definition alone"

GRAPH = tuple(f"A THEN (B ;[<= 50] C) WITHIN {{window}} TIME MODEL {model}" for model in ("CAYUGA", "ACTIVE_OFFICE", "COMPLETE_HISTORY"))
"""Under the last two what is next is chosen in the match graph, in Python."""

NEXT = ("A ; (B ; C) WITHIN 1000", *(f"A THEN (B ; C) WITHIN 1000 TIME MODEL {model}" for model in MODELS))


def logins(count: int, users: int) -> pa.Table:
    """Events of some users, ten per second."""
    rng = np.random.default_rng(11)
    kinds = pa.DictionaryArray.from_arrays(pa.array(rng.choice(3, count, p=(0.3, 0.6, 0.1)), pa.int32()), pa.array(["Fail", "Ok", "Out"]))
    times = pa.array(np.arange(count) * 100_000, pa.timestamp("us", "UTC"))
    return pa.table({"type": kinds, "ts": times, "user": rng.integers(0, users, count)})


def letters(count: int) -> pa.Table:
    """Events of four types, uniform, one per unit of time."""
    rng = np.random.default_rng(7)
    kinds = pa.DictionaryArray.from_arrays(pa.array(rng.integers(0, 4, count), pa.int32()), pa.array(list("ABCD")))
    return pa.table({"type": kinds, "ts": np.arange(count)})


def pushed(query: cepheid.Query, events: pa.Table, batch: int) -> int:
    """The number of matches that a recognizer gives, batch by batch."""
    recognizer = query.recognizer(events.schema)
    found = sum(len(recognizer.push(events.slice(start, batch))) for start in range(0, len(events), batch))
    return found + len(recognizer.flush())


def measured(ways: dict[str, Callable[[], int]], count: int, repeat: int, base: str) -> list[dict[str, object]]:
    """Of each way the matches, the median ns per event, and the median ratio to `base`."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    matches = {name: way() for name, way in ways.items()}
    for _ in range(repeat):
        for name, way in ways.items():
            begin = time.process_time()
            way()
            taken[name].append((time.process_time() - begin) * 1e9 / count)
    return [
        {
            "query": name,
            "matches": matches[name],
            "ns_per_event": round(statistics.median(each), 1),
            "ratio": round(statistics.median(np.divide(each, taken[base])), 2),
        }
        for name, each in taken.items()
    ]


def main() -> None:
    """Measure, print, record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--users", type=int, default=1_000)
    parser.add_argument("--batch", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    events, queries = logins(options.events, options.users), {name: cepheid.query(text) for name, text in PROGRAMS.items()}
    run = {name: (lambda query=query: len(query.run(events))) for name, query in queries.items()}
    push = {name: (lambda query=query: pushed(query, events, options.batch)) for name, query in queries.items()}
    several = letters(options.events)
    models = {text: cepheid.query(f"SELECT * WHERE {text} LIMIT 1") for text in NEXT}
    then = {text: (lambda query=query: len(query.run(several))) for text, query in models.items()}
    shorter = letters(options.events // 20)
    compared = {
        text: cepheid.query(f"SELECT * WHERE {text} LIMIT 1") for each in GRAPH for text in (each.format(window=w) for w in (100, 1000))
    }
    graph = {text: (lambda query=query: len(query.run(shorter))) for text, query in compared.items()}
    figures = {
        "run": measured(run, options.events, options.repeat, BASE),
        "push": measured(push, options.events, options.repeat, BASE),
        "then": measured(then, options.events, options.repeat, NEXT[0]),
        "then_compared": measured(graph, len(shorter), options.repeat, next(iter(graph))),
    }
    circumstances.write(
        "layers", {"events": options.events, "users": options.users, "batch": options.batch, "repeat": options.repeat, **figures}
    )


if __name__ == "__main__":
    main()
