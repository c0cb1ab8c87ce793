"""Which method of evaluation is fastest on which class of queries: the order in which the planner asks them is measured here.

    python benchmarks/bench_methods.py [--events N]

Each query is evaluated by the method that the planner takes and by every other one that can do it (`cepheid.testing.methods`), compiled, over a
stream in which all types are frequent and over one in which the events that end matches are rare. Nanoseconds of the processor per event, `Query.run`
all in, the best of three runs, in turns. `slower` is how many times as long the planner's takes as the fastest. The exit status is 1 where that is
more than `BAR`, but for `FOR_MEMORY`.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import cepheid
import circumstances
from cepheid.errors import LimitError
from cepheid.testing.methods import By, alternatives, anew

if TYPE_CHECKING:
    from cepheid.query import Query

BAR = 1.3
"""How many times as slow as the fastest method the planner's may be."""

FOR_MEMORY = frozenset({"restricted"})
"""Methods that are taken for their memory, which no window has to bound."""

TURNS = 3
KEYS = 100

QUERIES = {
    "all": "SELECT * WHERE A ; B ; C WITHIN 20",
    "any": "SELECT ANY * WHERE A ; B ; C WITHIN 100",
    "limit": "SELECT * WHERE A+ ; B ; C WITHIN 100 LIMIT 3",
    "count": "SELECT COUNT(*) WHERE A ; B ; C WITHIN 10000",
    "count, strict": "SELECT COUNT(*) WHERE A : B ; C WITHIN 1000",
    "restricted": "SELECT RESTRICTED * WHERE A ; B ; C WITHIN 1000",
    "next that waits": "SELECT NXT * WHERE A+ ; B ; C WITHIN 100",
    "last that waits": "SELECT LAST * WHERE A ; B ; C WITHIN 1000",
    "maximal that waits": "SELECT MAX * WHERE A+ ; B ; C WITHIN 100 LIMIT 1",
    "next, no window": "SELECT NXT * WHERE A ; B ; C",
    "last, no window": "SELECT LAST * WHERE A : B ; C",
    "next": "SELECT NXT * WHERE A : B ; C WITHIN 100",
    "next, long window": "SELECT NXT * WHERE A : B ; C WITHIN 10000",
    "next, keys": "SELECT NXT * WHERE A : B ; C PARTITION BY k WITHIN 100",
    "next, runs": "SELECT NXT * WHERE (A : B)+ ; C WITHIN 100",
    "next, adjacent run": "SELECT NXT * WHERE A:{2,} : B ; C WITHIN 1000",
    "next, measures": "SELECT NXT count(a) AS n, max(a.v) AS v WHERE A:+ AS a ; C WITHIN 1000",
    "last": "SELECT LAST * WHERE A : B ; C WITHIN 1000",
    "last, keys": "SELECT LAST * WHERE A : B ; C PARTITION BY k WITHIN 1000",
    "last, runs": "SELECT LAST * WHERE (A : B)+ ; C WITHIN 100",
    "last, used up": "SELECT LAST * WHERE A : B ; C WITHIN 1000 CONSUME BY PARTITION",
    "next, nested": "SELECT NXT * WHERE A ; LAST(B ; D) ; C WITHIN 100",
    "next, negation": "SELECT NXT * WHERE A : B ; NOT D ; C WITHIN 1000",
    "next, counted": "SELECT NXT COUNT(*) WHERE A : B ; C WITHIN 1000",
    "next, chosen parts": "SELECT NXT a WHERE A AS a : B AS b ; C WITHIN 1000",
    "maximal": "SELECT MAX * WHERE A : B ; C WITHIN 100 LIMIT 1",
    "maximal, runs": "SELECT MAX * WHERE (A : B)+ ; C WITHIN 100 LIMIT 1",
    "maximal, adjacent run": "SELECT MAX * WHERE A:+ : C WITHIN 1000",
}
"""A query of each class; the windows are in events of a stream that has one each unit of time."""

STREAMS = {"even": "ABCDE", "C rare": "A" * 30 + "B" * 30 + "C" + "D" * 20 + "E" * 20}


def stream(kinds: str, count: int) -> pa.Table:
    """Events of random types, keys and values."""
    rng = random.Random(7)
    types, keys = rng.choices(kinds, k=count), [rng.randrange(KEYS) for _ in range(count)]
    return pa.table({"type": types, "ts": list(range(count)), "k": keys, "v": [rng.random() for _ in range(count)]})


def cost(query: Query, events: pa.Table) -> float:
    """Nanoseconds of the processor per event, of one run."""
    start = time.process_time()
    query.run(events)
    return (time.process_time() - start) / len(events) * 1e9


def compared(text: str, events: pa.Table) -> dict[str, float]:
    """The cost by each way, the planner's first."""
    query = cepheid.query(text)
    schema = query.schema(events.schema)
    compiled = query.compiled(schema)
    ways = [By(compiled.method), *alternatives(query, schema)]
    found: dict[str, float] = {}
    for way in ways * TURNS:
        with way():
            asked = anew(query)
            compiled = asked.compiled(schema)
            try:
                found[compiled.method.name] = min(found.get(compiled.method.name, float("inf")), cost(asked, events))
            except LimitError:
                found.pop(compiled.method.name, None)
    return found


def main() -> None:
    """Print the table, write the record, and say by the exit status whether the order is right."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=30_000, help="events of a stream")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name, kinds in STREAMS.items():
        events = stream(kinds, options.events)
        for kind, text in QUERIES.items():
            found = compared(text, events)
            taken, *_ = found
            slower = found[taken] / min(found.values())
            rows.append({"class": kind, "query": text, "stream": name, "planner": taken, "slower": round(slower, 2)})
            rows[-1] |= {"ns": {method: round(each) for method, each in found.items()}}
            print(f"{name:8} {kind:24} {taken:14} {slower:6.2f}  {rows[-1]['ns']}", flush=True)
    wrong = [row for row in rows if row["slower"] > BAR and row["planner"] not in FOR_MEMORY]
    circumstances.write("methods", {"events": options.events, "bar": BAR, "above it": len(wrong), "rows": rows})
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
