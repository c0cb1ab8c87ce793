"""Speed of selection strategies and COUNT(*): ns per event, evaluation alone (letters in, labelled matches out) and all in (`Query.run`).

    python benchmarks/bench_strategies.py [--events N] [--repeat R]

Events of five types, uniform, and with a rare last step (C: 0.05 %). Every figure is the median of R runs. COUNT(*) is over 1 M events; its last
counts are checked against a sum over all pairs of Python's own integers.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import cepheid
import circumstances
from cepheid.schema import schema_of

if TYPE_CHECKING:
    from collections.abc import Callable

BARS = {"NXT": 60, "LAST": 60, "ANY": 60, "MAX": 200, "COUNT A+;B+;C 100": 1000}
"""ns per event of an evaluation."""

WINDOWS = (100, 10_000)
RARE = 0.0005


def table(count: int, *, rare: bool = False) -> pa.Table:
    """Events of five types, one per unit of time."""
    rng = np.random.default_rng(7)
    shares = [(1 - RARE) / 4] * 2 + [RARE] + [(1 - RARE) / 4] * 2 if rare else [0.2] * 5
    types = pa.DictionaryArray.from_arrays(pa.array(rng.choice(5, count, p=shares), pa.int32()), pa.array(list("ABCDE")))
    return pa.table({"type": types, "ts": np.arange(count)})


def median(run: Callable[[], Any], repeat: int) -> float:
    """Seconds of the median run, after one that does not count."""
    seconds = []
    for _ in range(repeat + 1):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[1:])


def measured(text: str, events: pa.Table, repeat: int) -> dict[str, Any]:
    """The figures of one query."""
    query = cepheid.query(text)
    compiled = query.compiled(schema_of(events.schema))
    letters, times = compiled.predicates.letters(events), np.arange(events.num_rows)

    def evaluate() -> None:
        compiled.evaluation().feed(letters, times, sink=lambda _: None)

    per_event = 1e9 / events.num_rows
    return {
        "query": text,
        "method": compiled.method.name,
        "ns_per_event": round(median(evaluate, repeat) * per_event, 1),
        "ns_per_event_all_in": round(median(lambda: query.run(events), repeat) * per_event, 1),
        "matches": len(query.run(events)),
    }


def chain_count(types: list[str], window: int) -> int:
    """The matches of A+ ; B+ ; C that end at the last event, within so many events: the last A before the first B splits them."""
    inside = types[-window:-1]
    a_before = 0
    total = 0
    b_after = [0] * (len(inside) + 1)
    for place in reversed(range(len(inside))):
        b_after[place] = b_after[place + 1] + (inside[place] == "B")
    for place, kind in enumerate(inside):
        if kind == "B":  # it is the first B: any subset of the later ones, any non-empty subset of the earlier As
            total += (2**a_before - 1) * 2 ** b_after[place + 1]
        a_before += kind == "A"
    return total


def main() -> None:
    """Measure, print, record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=5_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    streams = {"uniform": table(options.events), "rare last step": table(options.events, rare=True)}
    runs = []
    for strategy in ("NXT", "LAST", "ANY", "MAX"):
        for window in WINDOWS:
            for stream, events in streams.items():
                limit = " LIMIT 1" if strategy == "MAX" else ""
                text = f"SELECT {strategy} * WHERE A ; B ; C WITHIN {window} EVENTS{limit}"
                figures = measured(text, events, options.repeat)
                runs.append({"strategy": strategy, "stream": stream, "bar_ns_per_event": BARS[strategy], **figures})
    counts = []
    million = table(1_000_000)
    types = million["type"].combine_chunks().dictionary_decode().to_pylist()
    for pattern, window in (("A+ ; B+ ; C", 100), ("A+ ; B+ ; C", 1000), ("A ; B ; C", 100), ("A ; B ; C", 10_000)):
        text = f"SELECT COUNT(*) WHERE {pattern} WITHIN {window} EVENTS"
        figures = measured(text, million, 3)
        largest = max((match.measures["count"] for match in cepheid.query(text).run(million)), default=0)
        if pattern == "A+ ; B+ ; C":
            last = cepheid.query(text).run(million)[-1]
            assert last.measures["count"] == chain_count(types[: last.end + 1], window)
        counts.append({**figures, "digits": int(math.log10(largest)) + 1})
    circumstances.write("strategies", {"events": options.events, "repeat": options.repeat, "bars": BARS, "run": runs, "count": counts})


if __name__ == "__main__":
    main()
