"""Queries as users write them (corpus.toml): what each costs per event, and whether that grows with the number of events.

    python benchmarks/bench_corpus.py [--sizes N ..] [--only PATTERN] [--kinds KIND ..]

Every figure is nanoseconds of the processor per event, the median of three: `run` at each size, and `pushes` of 1,000 events. A query that costs more
than `STOP` at one size, twice, is not run at the next. One that would miss the goal otherwise is measured once more, and the lower figures count:
other work on the machine makes them worse, never better. `compile_ms` is from the text to what runs. `methods` are those of its EVENT definitions
and its own; `update` says what an event costs.

A query is judged by its figure at the greatest size. It reaches the goal if that is at most `GOAL` (`DEFINITIONS_GOAL` with EVENT definitions), and
at most `GROWTH` times the figure at a tenth of that size, if that is `GROWS_FROM` or more. An entry that has `known` says why it does not. The exit
status is 1 where a query does not reach the goal and its entry has no `known`, where one that has it reaches the goal `CLEARLY`, where a query
raises, and where spellings of one question (`same`) have different numbers of matches.
"""

from __future__ import annotations

import argparse
import dataclasses
import fnmatch
import functools
import gc
import math
import statistics
import sys
import time
import tomllib
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import cepheid
import circumstances
from cepheid.errors import CepheidError
from cepheid.testing.methods import anew, layers_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cepheid.query import Query

CORPUS = Path(__file__).with_name("corpus.toml")

GOAL, DEFINITIONS_GOAL = 1_000, 2_000
"""Most nanoseconds per event."""

GROWTH = 1.3
"""How many times as much an event may cost with ten times as many events."""

GROWS_FROM = 100_000
"""Events from which on the cost may not grow: with fewer, what a run costs once is still to be seen, and windows are not full."""

STOP = 5_000
"""Nanoseconds per event above which a query is not run with more events, and not measured again."""

QUICK = 150
"""Nanoseconds per event that half of the queries are to stay below."""

CLEARLY = 0.8
"""How far below the goal a query that has `known` may be: the noise of the machine is not to decide whether it is still true."""

TURNS = 3
KEYS = 1_000
WARM = 1_000
SIZES = (10_000, 100_000, 1_000_000)
PUSHED, PUSH = 100_000, 1_000

CITIES = ["Rome", "Oslo", "Kyiv", "Bern", "Riga", "oslo", "Lima", "Baku"]


@dataclasses.dataclass(frozen=True)
class Entry:
    """One query of the corpus; the fields are those of the file."""

    name: str
    kind: str
    query: str
    types: str = "A B C D E"
    keys: int = KEYS
    same: str | None = None
    known: str | None = None

    def stream(self, count: int) -> pa.Table:
        """So many events for it."""
        return stream(count, self.types, keys=self.keys)


def entries() -> list[Entry]:
    """The corpus. Raises ValueError where two entries have one name."""
    found = [Entry(**entry) for entry in tomllib.loads(CORPUS.read_text(encoding="utf-8"))["query"]]
    twice = [name for name, times in Counter(entry.name for entry in found).items() if times > 1]
    if twice:
        raise ValueError(f"{CORPUS.name} has these names twice: {twice}")
    return found


@functools.lru_cache(maxsize=4)
def stream(count: int, types: str, *, keys: int = KEYS) -> pa.Table:
    """Events of these types, evenly drawn: on average one a second of each key. Fewer events of as many keys are the beginning of more of them."""
    rng = np.random.default_rng(11)
    rows = np.arange(count)

    def drawn(below: int) -> Any:
        return np.random.default_rng(rng.integers(1 << 32)).integers(0, below, count)

    def named(names: list[str]) -> pa.Array:
        return pa.array(names).take(pa.array(drawn(len(names))))

    def sometimes(values: pa.Array) -> pa.Array:
        return pc.if_else(pa.array(drawn(10) > 0), values, None)

    apart = 1_000_000 // keys
    ids = drawn(keys)
    return pa.table(
        {
            "type": named(types.split()),
            "ts": pa.array(rows * apart + drawn(apart), pa.timestamp("us", "UTC")),
            "id": ids,
            "card": drawn(keys),
            "user": pa.array([f"u{key}" for key in range(keys)]).take(pa.array(ids)),
            "v": drawn(1_000),
            "price": drawn(10_000) / 100,
            "amount": pa.array(5 * drawn(200)).cast(pa.decimal128(38, 2)),
            "city": named(CITIES),
            "status": named(["open", "paid", "sent"]),
            "src": drawn(30),
            "dst": drawn(30),
            "day": pa.array(drawn(10).astype(np.int32) + 20_000, pa.date32()),
            "w": sometimes(pa.array(drawn(1_000))),
            "note": sometimes(named(CITIES)),
            "ok": drawn(2) == 1,
            "total": pa.array(5 * drawn(200)).cast(pa.decimal128(38, 18)),
        }
    )


def cost(work: Callable[[], object], events: int, *, stop: float = STOP) -> float:
    """Nanoseconds of the processor per event: the median of three; of one that costs more than `stop`."""
    found: list[float] = []
    while len(found) < TURNS and (not found or found[0] <= stop):
        gc.collect()
        start = time.process_time_ns()
        work()
        found.append((time.process_time_ns() - start) / events)
    return statistics.median(found)


def pushes(query: Query, events: pa.Table) -> int:
    """How many matches a recognizer gives that gets the events in pushes of 1,000."""
    recognizer = query.recognizer(events.schema)
    return sum(len(recognizer.push(batch)) for batch in events.to_batches(max_chunksize=PUSH))


def measured(entry: Entry, sizes: list[int]) -> dict[str, Any]:
    """The row of one query; `failed` instead of figures where it raises."""
    row: dict[str, Any] = {"name": entry.name, "kind": entry.kind, "query": entry.query}
    row |= {key: value for key in ("same", "known") if (value := getattr(entry, key))}
    try:
        query = cepheid.query(entry.query)
        schema = query.schema(entry.stream(1).schema)
        compiling = cost(lambda: anew(query).compiled(schema), 1, stop=math.inf)
        compiled = query.compiled(schema)
        row |= {"methods": [layer.method.name for layer in layers_of(compiled)], "compile_ms": round(compiling / 1e6, 1)}
        row |= {"update": compiled.guarantee.update}
        row |= {"goal": DEFINITIONS_GOAL if compiled.layers else GOAL, "run": {}, "matches": {}}
        query.run(entry.stream(WARM))
        for size in sizes:
            row["run"][size], row["matches"][size] = _run(query, entry, size)
            if row["run"][size] > STOP:
                row["run"][size] = min(row["run"][size], _run(query, entry, size)[0])
            if row["run"][size] > STOP:
                break
        if _judged(row)["missed"] and row["run"][size] <= STOP:
            for again in {max(size // 10, min(sizes)), size}.intersection(row["run"]):
                row["run"][again] = min(row["run"][again], _run(query, entry, again)[0])
        events = entry.stream(min(PUSHED, size))
        row["pushes"] = round(cost(lambda: pushes(query, events), len(events)))
    except (CepheidError, MemoryError) as error:
        row["failed"] = str(error)
    return row | _judged(row)


def _run(query: Query, entry: Entry, size: int) -> tuple[int, int]:
    """Nanoseconds per event of so many events, and the number of matches."""
    events = entry.stream(size)
    counts: list[int] = []
    return round(cost(lambda: counts.append(len(query.run(events))), size)), counts[-1]


def _judged(row: dict[str, Any]) -> dict[str, Any]:
    """The figure by which a query is judged, how it grows, and what of the goal it does not reach."""
    if "failed" in row:
        return {"missed": ["it raises"]}
    size = max(row["run"])
    judged: dict[str, Any] = {"ns": row["run"][size]}
    if size // 10 in row["run"]:
        judged["growth"] = round(row["run"][size] / row["run"][size // 10], 2)
    grows = size // 10 >= GROWS_FROM and judged.get("growth", 0) > GROWTH
    judged["missed"] = [f"above {row['goal'] // 1_000} us"] * (judged["ns"] > row["goal"]) + ["grows"] * grows
    return judged


def unequal(rows: list[dict[str, Any]]) -> list[str]:
    """Of which questions the spellings have different numbers of matches, and at which size."""
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if "same" in row and "matches" in row:
            groups[row["same"]].append(row)
    found = []
    for name, group in groups.items():
        for size in sorted({size for row in group for size in row["matches"]}):
            numbers = {row["name"]: row["matches"][size] for row in group if size in row["matches"]}
            if len(set(numbers.values())) > 1:
                found.append(f"{name}, {size:,} events: {numbers}")
    return found


def lines(row: dict[str, Any]) -> str:
    """What the summary says of a query."""
    what = [f"{row.get('ns', '-'):>9} ns", f"x {row['growth']:<5}" if "growth" in row else " " * 7, f"{row['name']} ({row['kind']})"]
    why = row.get("failed") or f"{', '.join(row['methods'])}: {row['update']}"
    return "  ".join([*what, f"[{', '.join(row['missed'])}] " * bool(row["missed"]) + why])


def histogram(rows: list[dict[str, Any]]) -> Iterator[str]:
    """A line for each kind: how many queries are in each range of nanoseconds."""
    tops = [QUICK, 300, GOAL, STOP, 50_000]
    heads = [f"<= {top:,}" for top in tops] + ["more"]
    yield " " * 20 + "".join(f"{head:>10}" for head in heads)
    for kind in dict.fromkeys(row["kind"] for row in rows):
        figures = [row["ns"] for row in rows if row["kind"] == kind and "ns" in row]
        places = Counter(int(np.searchsorted(tops, figure)) for figure in figures)
        yield f"{kind:20}" + "".join(f"{'#' * places[place]:>10}" for place in range(len(heads)))


def summary(rows: list[dict[str, Any]], differences: list[str]) -> dict[str, Any]:
    """What is in the record before the rows, printed too."""
    figures = [row["ns"] for row in rows if "ns" in row]
    missed = [row for row in rows if row["missed"]]
    kept = {
        "not reached": [row for row in missed if "known" not in row],
        "known": [row for row in missed if "known" in row],
        "known, but reached": [row for row in rows if not row["missed"] and "known" in row and row["ns"] <= CLEARLY * row["goal"]],
    }
    if figures:
        slowest = sorted((row for row in rows if "ns" in row), key=lambda row: -row["ns"])[:20]
        print("\n".join(["", *histogram(rows), "", "the slowest", *map(lines, slowest)]))
    for title, of in kept.items():
        print("\n".join(["", f"{title}: {len(of)}", *map(lines, of), *differences * (title == "not reached")]))
    shares = {
        "queries": len(rows),
        "median": statistics.median(figures) if figures else None,
        "share below 150 ns": round(float(np.mean([each < QUICK for each in figures])), 2) if figures else None,
        "share below 1 us": round(float(np.mean([each < GOAL for each in figures])), 2) if figures else None,
        "slowest to compile, ms": max((row["compile_ms"] for row in rows if "compile_ms" in row), default=None),
    }
    print("\n" + ", ".join(f"{name} {value}" for name, value in shares.items()))
    return shares | {title: [row["name"] for row in of] for title, of in kept.items()} | {"different answers": differences}


def main() -> None:
    """Measure, print the summary, write the record, and say by the exit status whether all is as the corpus says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="numbers of events, ascending")
    parser.add_argument("--only", default="*", help="names of queries, with * and ?")
    parser.add_argument("--kinds", nargs="+", help="kinds of queries")
    options = parser.parse_args()
    before = circumstances.circumstances()
    corpus = entries()
    chosen = [entry for entry in corpus if fnmatch.fnmatch(entry.name, options.only) and (not options.kinds or entry.kind in options.kinds)]
    rows = []
    for number, entry in enumerate(chosen, 1):
        print(f"{number} of {len(chosen)}: {entry.name}", end="", file=sys.stderr, flush=True)
        rows.append(measured(entry, options.sizes))
        print(f", {rows[-1].get('run') or rows[-1]['failed']}", file=sys.stderr, flush=True)
    differences = unequal(rows)
    kept = summary(rows, differences)
    if chosen == corpus:
        circumstances.write("corpus", {"sizes": options.sizes, **kept, "rows": rows}, before=before)
    sys.exit(bool(differences or kept["not reached"] or kept["known, but reached"]))


if __name__ == "__main__":
    main()
