"""Speed of the match kernel: ns per event, matches per second into Arrow, and the ratio to another kernel.

    python benchmarks/bench_kernel.py [--events N] [--repeat R] [--other FOLDER]

Streams: uniform events of five types, one per unit of time; "sparse" has 1 % of them relevant. Every figure is the median
of R runs, in processor time.
FOLDER may hold another driver to compare with in the same run, on the same letters and times: a module `engine` with
`Engine(automaton, kernel, window=, limit=, raw=)` and `feed(letters, times)`, `cel` with `compile_cel` and `QUERIES`, `check` with `load`.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import cepheid
import circumstances
from cepheid.engine.evaluations.graph.match import Evaluation
from cepheid.kernel import COMPILED
from cepheid.schema import schema_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from cepheid.automata.program import Program
    from cepheid.engine.evaluations.base import Chunk

TYPES = "ABCDE"
QUERIES = ("A;B;C", "A;B;C;D", "(A OR B OR C);D", "A+;B", "A+;B+;C", "(A+;B)+;C")
BARS = ("A;B;C", "(A+;B)+;C")
WINDOWS = (100, 1000)


def program(pattern: str) -> Program:
    """The program of a pattern over event types alone."""
    return cepheid.query(f"SELECT * WHERE {pattern}").compiled(schema_of(pa.schema([("type", pa.string())]))).program


def letters_of(compiled: Program, kinds: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The letters of events of the types TYPES[kind]; of types that the program does not know, and of kind -1, 0."""
    letter_of = np.zeros(len(TYPES) + 1, np.uint32)
    for predicate, value in zip(compiled.predicates, compiled.automaton.alphabet.values, strict=True):
        letter_of[TYPES.index(predicate.type or "")] = value
    return letter_of[kinds]


def uniform(events: int, *, relevant: float = 1.0) -> np.ndarray[Any, Any]:
    """One of five types per event, by number; -1 where the event is not relevant."""
    generator = np.random.default_rng(7)
    kinds = generator.integers(0, len(TYPES), events)
    if relevant < 1:
        kinds[generator.random(events) >= relevant] = -1
    return kinds


def seconds(work: Callable[[], object], repeat: int) -> float:
    """Median processor time of this thread, which is all that the kernel uses: what others take of the processor does not count."""
    taken = []
    for _ in range(repeat):
        begin = time.thread_time()
        work()
        taken.append(time.thread_time() - begin)
    return statistics.median(taken)


def other_kernel(folder: str | None) -> Callable[..., Any] | None:
    """A function (query, window) -> feed of the kernel in `folder`."""
    if folder is None:
        return None
    sys.path.insert(0, folder)
    engine, cel, check = (importlib.import_module(name) for name in ("engine", "cel", "check"))
    names = {"(A OR B OR C);D": "(A|B|C);D"}
    kernel, raw = check.load("cython")

    def make(query: str, window: int) -> Callable[..., None]:
        automaton = cel.compile_cel(cel.QUERIES[names.get(query, query)])

        def feed(letters: Any, times: Any) -> None:
            engine.Engine(automaton, kernel, window=window, limit=1, raw=raw).feed(letters, times)

        return feed

    return make


def per_event(options: argparse.Namespace, kinds: Any, queries: tuple[str, ...]) -> list[dict[str, Any]]:
    """ns per event with LIMIT 1, its output written to buffers."""
    times = np.arange(len(kinds), dtype=np.int64)
    other = other_kernel(options.other)
    rows = []
    for query in queries:
        compiled = program(query)
        letters = letters_of(compiled, kinds)
        for window in WINDOWS:
            Evaluation(compiled, window=window, limit=1).feed(letters[:2000], times[:2000])
            taken = seconds(lambda c=compiled, w=window, e=letters: Evaluation(c, window=w, limit=1).feed(e, times), options.repeat)
            row = {"query": query, "window": window, "ns_per_event": round(taken / len(letters) * 1e9, 1)}
            if other is not None:
                feed, bits = other(query, window), (np.uint32(1) << np.maximum(kinds, 0).astype(np.uint32)) * (kinds >= 0)
                row["ratio_to_other"] = round(taken / seconds(lambda f=feed, e=bits: f(e, times), options.repeat), 2)
            rows.append(row)
    return rows


def partitions(options: argparse.Namespace) -> list[dict[str, Any]]:
    """ns per event over many partitions: forgotten after each segment (batch), and kept in slots over batches (stream)."""
    events = options.events // 4
    rows = []
    compiled = program("A;B;C")
    letters = letters_of(compiled, uniform(events))
    times = np.arange(events, dtype=np.int64)
    for keys in (1_000, 250_000):
        cuts = np.linspace(0, events, keys, endpoint=False).astype(np.int64)
        taken = seconds(lambda c=cuts: Evaluation(compiled, window=1000, limit=1).feed(letters, times, cuts=c), options.repeat)
        rows.append({"mode": "forgotten", "keys": keys, "ns_per_event": round(taken / events * 1e9, 1)})
    for keys, batches in ((1_000, 100), (250_000, 2)):
        run = Evaluation(compiled, window=events, limit=1)
        size = events // batches
        cuts = np.linspace(0, size, keys, endpoint=False).astype(np.int64)
        slots = np.arange(keys, dtype=np.int32)
        begin = time.thread_time()
        for at in range(0, size * batches, size):
            run.feed(letters[at : at + size], times[at : at + size], cuts=cuts, slots=slots)
        taken = time.thread_time() - begin
        row = {"mode": "stored", "keys": keys, "batches": batches, "ns_per_event": round(taken / events * 1e9, 1)}
        rows.append({**row, "state_bytes_per_key": run.memory_usage() // keys})
    return rows


def full_enumeration(options: argparse.Namespace) -> dict[str, Any]:
    """All matches of A;B;C;D over 2,000 events, as Arrow lists, all kept; the last event is a D and the only one.

    One more run goes before and is not counted: it pays the system for 1.2 GB of fresh memory, whatever fills it.
    """
    generator = np.random.default_rng(3)
    kinds = np.array([0, 1, 2, 4])[generator.integers(0, 4, 2000)]
    kinds[-1] = 3
    times = np.arange(2000, dtype=np.int64)
    compiled = program("A;B;C;D")
    letters = letters_of(compiled, kinds)
    count = 0

    def run() -> None:
        nonlocal count
        lists: list[Any] = []

        def sink(chunk: Chunk) -> None:
            lists.append(pa.LargeListArray.from_arrays(pa.array(chunk.offsets), pa.array(chunk.positions)))

        Evaluation(compiled).feed(letters, times, sink=sink)
        count = sum(map(len, lists))

    run()
    taken = seconds(run, max(5, options.repeat))
    return {"query": "A;B;C;D", "matches": count, "seconds": round(taken, 3), "matches_per_second": round(count / taken)}


def main() -> None:
    """Measure everything and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--other", help="folder of another kernel to compare with")
    options = parser.parse_args()
    if not COMPILED:
        raise SystemExit("the kernel of this installation is not compiled: run `make setup`")
    figures = {
        "events": options.events,
        "repeat": options.repeat,
        "bars": {"ns_per_event": 35, "queries": BARS, "sparse_ns_per_event": 3, "full_enumeration_seconds": 0.5},
        "uniform": per_event(options, uniform(options.events), QUERIES),
        "sparse": per_event(options, uniform(options.events, relevant=0.01), BARS),
        "partitions": partitions(options),
        "full_enumeration": full_enumeration(options),
    }
    circumstances.write("kernel", figures)


if __name__ == "__main__":
    main()
