"""Speed of HAVING with CONSUME BY PARTITION: what a trigger uses up is not listed, so an event costs little however many matches there would be.

    python benchmarks/bench_having.py [--queries N]

2,000 events of one key. `named` are queries that are written for it, over as many events as are said; `sums` ask for a sum of what is not negative,
which is reached after one event, after some, or never. `random` are N of these: a strategy, a pattern,
a window or none, a measure that does not fall when a match gets larger, and a bound which is met at once, now and then, or never. Microseconds of the
processor per event, `Query.run` all in, the better of two runs. `way` is what `explain()` says: whether partitions start anew, whether the largest
matches decide (`largest`; `early`: before all matches of a trigger are listed), or whether all matches are listed. The bar is for all but the last.
Where more than `MOST` matches of a trigger are listed, there is no figure.
"""

from __future__ import annotations

import argparse
import random
import time
from typing import Any

import pyarrow as pa

import cepheid
import circumstances
from cepheid.engine.evaluations.counts import listed as limits
from cepheid.errors import LimitError
from cepheid.schema import schema_of

PATIENCE = 2.0
"""Seconds after which a query is not run again."""

BAR = 100.0
"""Microseconds per event."""

EVENTS = 2_000

MOST = 1 << 17

ONE = "SELECT {} sum(t.q) AS d WHERE {} AS t HAVING d > 5 CONSUME BY PARTITION"
USERS = "SELECT MAX count(DISTINCT t.user) AS users WHERE ANY+ AS t WITHIN 600 HAVING users >= 3 CONSUME BY PARTITION"
NAMED = [
    ("each event is used up at once", ONE.format("MAX", "T+"), 18),
    *(("each event is used up at once", ONE.format(strategy, "T+"), EVENTS) for strategy in ("MAX", "NXT", "LAST", "ANY", "ALL")),
    ("each event is used up at once", ONE.format("MAX", "T:+"), EVENTS),
    ("three different users", USERS, EVENTS),
    ("three different users", USERS, 50 * EVENTS),
    ("three different users, any match", USERS.replace("MAX", "ANY"), EVENTS),
    ("any match, nothing used up", "SELECT ANY * WHERE A{3,} AS a WITHIN 100 HAVING count(DISTINCT a.user) >= 3", EVENTS),
]

SUMS = [
    f"SELECT {strategy} sum(t.q) AS d WHERE {pattern} HAVING d > {least} CONSUME BY PARTITION"
    for pattern, some in (("T+ AS t", 50), ("T:+ AS t", 50), ("A ; B+ AS t ; C WITHIN 20", 12))
    for least in (5, some, 10**6)
    for strategy in ("MAX", "NXT", "LAST", "ANY", "ALL")
]

PATTERNS = [
    *("A+ AS x", "(A OR B)+ AS x", "ANY+ AS x", "A{3,} AS x", "A:+ AS x", "ANY:+ AS x"),
    *("A AS x ; B", "A+ AS x ; B", "A AS x ; B ; C", "A AS x ; B+ ; C"),
]
WINDOWS = ["", "WITHIN 20", "WITHIN 50 EVENTS", "WITHIN 10 EVENTS"]


def drawn(rng: random.Random) -> str:
    """A random query."""
    least = rng.choice([1, 2, 4, 8, 10**6])
    measures = [
        f"count(x) >= {least}",
        f"sum(x.q) > {3 * least}",
        f"count(DISTINCT x.user) >= {min(least, 9)}",
        f"max(x.q) >= {min(least, 7)}",
    ]
    having = rng.choice([*measures, f"duration() >= {2 * least}"])
    strategy, pattern, window = rng.choice(["MAX", "NXT", "LAST", "ANY"]), rng.choice(PATTERNS), rng.choice(WINDOWS)
    return f"SELECT {strategy} count(x) AS n WHERE {pattern} {window} HAVING {having} CONSUME BY PARTITION"


def table(count: int, kinds: str) -> pa.Table:
    """Events of one key; those of type T have q = 6."""
    rng = random.Random(5)
    types, users = rng.choices(kinds, k=count), rng.choices("abcdefgh", k=count)
    q = [6 if kind == "T" else rng.choice([1, 2, 6]) for kind in types]
    return pa.table({"type": types, "ts": list(range(count)), "q": q, "user": users})


def measured(text: str, events: pa.Table) -> dict[str, Any]:
    """What a query costs."""
    query = cepheid.query(text)
    compiled = query.compiled(schema_of(events.schema))
    lists = not compiled.restarts or compiled.plan.strategy.value in {"ALL", "ANY"}
    way = "largest" if compiled.largest else "early" if compiled.guide is not None else "listed" if lists else "anew"
    seconds = []
    try:
        while sum(seconds) < PATIENCE and len(seconds) < 2:
            start = time.process_time()
            found = len(query.run(events))
            seconds.append(time.process_time() - start)
    except LimitError:
        return {"query": text, "way": way, "events": len(events), "matches": None, "microseconds": None}
    return {"query": text, "way": way, "events": len(events), "matches": found, "microseconds": round(min(seconds) / len(events) * 1e6, 1)}


def main() -> None:
    """Measure, print, record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=60)
    options = parser.parse_args()
    limits.MAX_LISTED = MOST
    named = [{"name": name, **measured(text, table(events, "A" if "A{" in text else "T"))} for name, text, events in NAMED]
    sums = [measured(text, table(EVENTS, "ABC" if "B+" in text else "T")) for text in SUMS]
    rng, events = random.Random(1), table(EVENTS, "ABCT")
    runs = [measured(drawn(rng), events) for _ in range(options.queries)]
    figures = [run["microseconds"] for run in [*sums, *runs] if run["way"] != "listed"]
    within = sum(figure is not None and figure <= BAR for figure in figures)
    circumstances.write(
        "having",
        {"bar_microseconds": BAR, "not_listed": len(figures), "within_the_bar": within, "named": named, "sums": sums, "random": runs},
    )


if __name__ == "__main__":
    main()
