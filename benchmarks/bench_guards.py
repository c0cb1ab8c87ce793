"""Speed of queries with guards: ns per event on events in memory, matches per second, and the ratio to a plain loop over partial matches.

    python benchmarks/bench_guards.py [--events N] [--repeat R] [--memory-events M]

Streams: events of a few types, one per unit of time, with random prices and ids. Every figure is the median of R runs, in processor time. Letters and
values of the events are computed before, and are in memory. The plain loop is in Python: it keeps each partial match, and compares every event with
all of them. It reads a few events only, and its triggers are compared with those of the kernel.
`memory` is the resident set over M events of each query in one evaluation, in batches of a million, after the first tenth and at most, in MiB.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import cepheid
import circumstances
from bench_kernel import seconds
from bench_memory import resident
from cepheid.engine.evaluations.events import Events
from cepheid.engine.letters.encoded import Texts
from cepheid.kernel import COMPILED

if TYPE_CHECKING:
    from cepheid.engine.plan.compiled import Compiled

Table = dict[str, np.ndarray[Any, Any]]
Held = tuple[int, int, int]
"""A partial match of the plain loop: its first and its last event, and how many steps of the pattern it has made."""

IDS = 100

MEMORY_BATCH = 1_000_000

GAP = 5


def _gaps_of(most: int) -> Any:
    def step(table: Table, held: Held, row: int) -> int | None:
        _, last, made = held
        return made + 1 if table["type"][row] == "ABC"[made] and row - last <= most else None

    return step


def _equality(table: Table, held: Held, row: int) -> int | None:
    _, last, made = held
    return made + 1 if table["type"][row] == "ABC"[made] and (made == 2 or table["id"][row] == table["id"][last]) else None


def _greater(table: Table, held: Held, row: int) -> int | None:
    _, last, made = held
    return made + 1 if table["type"][row] == "B" and table["price"][row] > table["price"][last] else None


def _equal_and_greater(table: Table, held: Held, row: int) -> int | None:
    _, last, made = held
    if table["type"][row] != "DAB"[made]:
        return None
    fits = made == 1 or (table["id"][row] == table["id"][last] and table["price"][row] > table["price"][last] + 10)
    return made + 1 if fits else None


def _greater_soon(table: Table, held: Held, row: int) -> int | None:
    return _greater(table, held, row) if row - held[1] <= 200 * GAP else None


def _between(table: Table, held: Held, row: int) -> int | None:
    _, last, _ = held
    return _greater(table, held, row) if table["price"][row] < table["price"][last] + 1 else None


def _kept_equal(table: Table, held: Held, row: int) -> int | None:
    _, last, made = held
    return made + 1 if table["type"][row] == "ABCD"[made] and (made == 1 or table["id"][row] == table["id"][last]) else None


def _rising(table: Table, held: Held, row: int) -> int | None:
    _, last, made = held
    if table["type"][row] == "A":
        return made if table["price"][row] > table["price"][last] else None
    return made + 1


QUERIES: dict[str, tuple[str, str, int, tuple[int, ...], Any, int]] = {
    "gaps": ("A ;[<= 5] B ;[<= 5] C WITHIN {window}", "ABC", 100, (8,), _gaps_of(GAP), 3),
    "gaps of 5,000": ("A ;[<= 5000] B ;[<= 5000] C WITHIN {window}", "ABC", 100, (8_000,), _gaps_of(5_000), 3),
    "gaps of 500,000": ("A ;[<= 500000] B ;[<= 500000] C WITHIN {window}", "ABC", 150, (800_000,), _gaps_of(500_000), 3),
    "equality": ("((A AS x ; B AS y) FILTER y.id = x.id) ; C WITHIN {window}", "ABC", 150, (100, 10_000), _equality, 3),
    "greater": ("A AS x ; B AS y FILTER y.price > x.price WITHIN {window}", "AB", 250, (100, 10_000, 1_000_000), _greater, 2),
    "equal and greater": (
        "D ; A AS x ; B AS y FILTER y.id = x.id AND y.price > x.price + 10 WITHIN {window}",
        "DAB",
        250,
        (10_000, 1_000_000),
        _equal_and_greater,
        3,
    ),
    "greater after a gap": ("A AS x ;[<= 1000] B AS y FILTER y.price > x.price WITHIN {window}", "AB", 250, (10_000,), _greater_soon, 2),
    "between": ("A AS x ; B AS y FILTER y.price > x.price AND y.price < x.price + 1 WITHIN {window}", "AB", 1_000, (10_000,), _between, 2),
    "kept equal": (
        "A ; B AS x ; C AS y ; D AS z FILTER y.id = x.id AND z.id = x.id WITHIN {window}",
        "ABCD",
        500,
        (10_000,),
        _kept_equal,
        4,
    ),
    "rising run": ("(A AS y FILTER y.price > prev(y).price)+ ; B WITHIN {window}", "AAAB", 300, (100, 10_000), _rising, 2),
}
"""Pattern, types of the stream, most ns per event with LIMIT 1, windows; how the plain loop goes on, and after how many steps a match ends."""

MANY = {"equal and greater", "gaps of 5,000", "gaps of 500,000", "kept equal", "rising run"}
"""Those whose partial matches grow with the square of the window."""


CARRIED = "A AS x ; B AS y ; C AS z FILTER z.id = x.id WITHIN 1000"
"""Each B keeps the ids of all A in the window."""


def stream(kinds: str, events: int, *, ids: int = IDS) -> Table:
    """Events of these types, evenly drawn."""
    generator = np.random.default_rng(5)
    return {
        "type": np.array(list(kinds))[generator.integers(0, len(kinds), events)],
        "ts": np.arange(events, dtype=np.int64),
        "price": np.round(generator.random(events) * 100, 2),
        "id": generator.integers(0, ids, events),
    }


def compiled_of(pattern: str, table: pa.Table, *, limit: int | None = 1) -> Compiled:
    """A query that gives the matches of a pattern."""
    query = cepheid.query(f"SELECT * WHERE {pattern}" + (f" LIMIT {limit}" if limit else ""))
    return query.compiled(query.schema(table.schema))


def in_memory(compiled: Compiled, table: pa.Table) -> tuple[Texts, Events]:
    """What the evaluation of a query reads."""
    texts = Texts()
    (reader,) = compiled.readers(texts)
    words = reader.read(table, positions=lambda: np.arange(len(table), dtype=np.int64))
    return texts, Events(np.ascontiguousarray(words), table["ts"].to_numpy())


def triggers(compiled: Compiled, texts: Texts, events: Events) -> list[int]:
    """The events that end a match."""
    return [end for chunk in compiled.evaluation(texts=texts).chunks(events) for end in chunk.ends.tolist()]


def plain(table: Table, start: str, step: Any, steps: int, window: int, events: int) -> list[int]:
    """The events that end a match, by a loop over all partial matches; different ones with equal first and last events are one."""
    found = []
    kept: list[Held] = []
    for row in range(events):
        kept = [held for held in kept if row - held[0] <= window]
        more = {(held[0], row, made) for held in kept if (made := step(table, held, row)) is not None}
        if any(made == steps for _, _, made in more):
            found.append(row)
        kept += sorted(held for held in more if held[2] < steps)
        if table["type"][row] == start:
            kept = [held for held in kept if held != (row, row, 1)] + [(row, row, 1)]
    return found


def per_event(options: argparse.Namespace) -> list[dict[str, Any]]:
    """ns per event with LIMIT 1."""
    rows = []
    for name, (pattern, kinds, most, windows, step, steps) in QUERIES.items():
        table = stream(kinds, options.events)
        arrow = pa.table(table)
        for window in windows:
            compiled = compiled_of(pattern.format(window=window), arrow)
            texts, events = in_memory(compiled, arrow)
            few = 300 if name in MANY else 1_000
            some = events.of(slice(0, few))
            expected = plain(table, kinds[0], step, steps, window, few)
            assert triggers(compiled, texts, some) == expected, name
            loop = seconds(lambda t=table, k=kinds[0], s=step, n=steps, w=window, f=few: plain(t, k, s, n, w, f), 1) / few
            taken = seconds(lambda c=compiled, t=texts, e=events: triggers_only(c, t, e), options.repeat) / len(events)
            rows.append(
                {
                    "query": name,
                    "window": window,
                    "ns_per_event": round(taken * 1e9, 1),
                    "most_ns": most,
                    "plain_loop_ns": round(loop * 1e9),
                }
            )
            print(rows[-1], flush=True)
    return rows


def triggers_only(compiled: Compiled, texts: Texts, events: Events) -> int:
    """Read all events, and let go of the matches."""
    return sum(len(chunk) for chunk in compiled.evaluation(texts=texts).chunks(events))


def carried(options: argparse.Namespace) -> list[dict[str, Any]]:
    """ns per event with LIMIT 1, by the number of ids: an event makes a cell for each that is alive."""
    rows = []
    for ids in (10, 100, 1_000, 10_000):
        arrow = pa.table(stream("ABC", options.events // 10, ids=ids))
        compiled = compiled_of(CARRIED, arrow)
        texts, events = in_memory(compiled, arrow)
        taken = seconds(lambda c=compiled, t=texts, e=events: triggers_only(c, t, e), options.repeat) / len(events)
        rows.append({"query": "carried", "ids": ids, "ns_per_event": round(taken * 1e9, 1)})
        print(rows[-1], flush=True)
    return rows


CLAUSES = {
    "COUNT(*), gaps": "SELECT COUNT(*) WHERE A ;[<= 5] B ;[<= 5] C WITHIN 8",
    "COUNT(*), greater": "SELECT COUNT(*) WHERE A AS x ; B AS y FILTER y.price > x.price WITHIN 100",
    "NXT, greater": "SELECT NXT * WHERE A AS x ; B AS y FILTER y.price > x.price WITHIN 100",
    "LAST, rising": "SELECT LAST * WHERE (A AS y FILTER y.price > prev(y).price)+ ; B WITHIN 100",
    "MAX, rising run": "SELECT MAX * WHERE (A AS y FILTER y.price > prev(y).price):{2,}",
    "a difference, both signs": "SELECT * WHERE A AS x ; B AS y FILTER abs(y.price - x.price) < 0.1 WITHIN 1000 LIMIT 1",
}
"""Queries with other clauses, and one with a comparison that no index answers."""


def clauses(options: argparse.Namespace) -> list[dict[str, Any]]:
    """ns per event."""
    rows = []
    for name, text in CLAUSES.items():
        query, arrow = cepheid.query(text), pa.table(stream("ABC", options.events // 10))
        compiled = query.compiled(query.schema(arrow.schema))
        texts, events = in_memory(compiled, arrow)
        taken = seconds(lambda c=compiled, t=texts, e=events: triggers_only(c, t, e), options.repeat) / len(events)
        rows.append({"query": name, "ns_per_event": round(taken * 1e9, 1)})
        print(rows[-1], flush=True)
    return rows


def full_enumeration(options: argparse.Namespace) -> list[dict[str, Any]]:
    """All matches, in chunks that are let go."""
    rows = []
    for name, pattern, kinds in (
        ("gaps", "A ;[<= 300] B ;[<= 300] C WITHIN 500", "ABC"),
        ("greater", "A AS x ; B AS y FILTER y.price > x.price WITHIN 10000", "AB"),
    ):
        arrow = pa.table(stream(kinds, 4_000))
        compiled = compiled_of(pattern, arrow, limit=None)
        texts, events = in_memory(compiled, arrow)
        matches = triggers_only(compiled, texts, events)
        taken = seconds(lambda c=compiled, t=texts, e=events: triggers_only(c, t, e), options.repeat)
        rows.append({"query": name, "matches": matches, "seconds": round(taken, 3), "matches_per_second": round(matches / taken)})
        print(rows[-1], flush=True)
    return rows


def memory(options: argparse.Namespace) -> list[dict[str, Any]]:
    """The resident set over a long stream."""
    rows = []
    for name, (pattern, kinds, _, windows, *_) in QUERIES.items():
        table = stream(kinds, MEMORY_BATCH)
        window = min(windows[-1], 10_000)
        compiled = compiled_of(pattern.format(window=window), pa.table(table))
        texts = Texts()
        (reader,) = compiled.readers(texts)
        evaluation = compiled.evaluation(texts=texts)
        most = warm = found = 0
        batches = options.memory_events // MEMORY_BATCH
        for number in range(batches):
            times = table["ts"] + number * MEMORY_BATCH
            words = reader.read(pa.table(table | {"ts": times}), positions=lambda: np.arange(MEMORY_BATCH, dtype=np.int64))
            for chunk in evaluation.chunks(Events(np.ascontiguousarray(words), times, continued=number > 0)):
                found += len(chunk)
            most = max(most, resident())
            if number == batches // 10:
                warm = most
        state = evaluation.memory_usage()
        mib = {"after_a_tenth": warm >> 20, "most": most >> 20, "state": state >> 20}
        rows.append({"query": name, "window": window, "events": options.memory_events, "matches": found, "mib": mib})
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Measure everything and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=3_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--memory-events", type=int, default=100_000_000)
    options = parser.parse_args()
    if not COMPILED:
        raise SystemExit("the kernel of this installation is not compiled: run `make setup`")
    figures = {
        "events": options.events,
        "repeat": options.repeat,
        "per_event": per_event(options),
        "carried": carried(options),
        "clauses": clauses(options),
        "enumeration": full_enumeration(options),
        "memory": memory(options),
    }
    circumstances.write("guards", figures)


if __name__ == "__main__":
    main()
