"""Rules that change, `cepheid.rules`, beside the same queries that stay as they are, `cepheid.queries`: a recognizer fed a thousand events at a time.

    python benchmarks/bench_rules.py [--events N] [--rules N] [--changes N]

The queries are those of `bench_queries` that are about one id (`equal`), and the pushes are the same. `fixed`: `cepheid.queries`. `still`: as rules
that all act from the beginning. `changing`: as many changes, evenly spread: each gives one rule another limit, and what its version before has begun
still ends. `stopping`: the same, where the version before is given up. Figures are microseconds of the processor per event, in turns, the medians of
three: a version begins within a push, so of few events the thousand that begin with the first are a large part; `change` is milliseconds for one
change, with its compilation. The matches are counted beside those of a run over the whole.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from typing import TYPE_CHECKING, Any

import cepheid
import circumstances
from bench_queries import BATCH, equal, table

if TYPE_CHECKING:
    import pyarrow as pa

ROUNDS = 3
BAR = 1.5
"""Most that an event may cost with changes, beside one of queries that stay."""


def rows(rules: int) -> list[dict[str, Any]]:
    """The rules that act from the beginning."""
    return [{"name": f"q{number}", "query": equal(number, rules)} for number in range(rules)]


def changes(rules: int, count: int, events: int, ends: str) -> list[dict[str, Any]]:
    """So many changes over so many events, one each step of time: another limit for one rule."""
    made = []
    for number in range(count):
        rule = number * 37 % rules
        query = equal(rule, rules).replace("AND v < ", f"AND v > {number % 90} AND v < ", 1)
        at = (number + 1) * events // (count + 1)
        if ends == "stop":
            made.append({"name": f"q{rule}", "from": at, "deleted": True, "ends": "stop"})
        made.append({"name": f"q{rule}", "query": query, "from": at})
    return made


def pushed(recognizer: Any, events: pa.Table, later: list[dict[str, Any]]) -> dict[str, float]:
    """Microseconds per event, milliseconds per change, and how many matches there are; later: the changes, each given when its time is near."""
    to_come, matches, push, change = list(later), 0, 0.0, 0.0
    for start in range(0, len(events), BATCH):
        began = time.process_time()
        due = [row for row in to_come if row["from"] < start + BATCH]
        if due:
            assert not recognizer.change(due)
            to_come = to_come[len(due) :]
        told = time.process_time()
        found = recognizer.push(events.slice(start, BATCH))
        push, change = push + time.process_time() - told, change + told - began
        matches += sum(map(len, found.found.values()))
    return {"push": push * 1e6 / len(events), "change": change * 1e3 / max(1, len(later)), "matches": matches}


def main() -> int:
    """Measure, print, record; the exit status is 1 where matches differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rules", type=int, default=1_000)
    parser.add_argument("--changes", type=int, default=100)
    options = parser.parse_args()
    before = circumstances.circumstances()
    given, own = table(options.events, options.rules), rows(options.rules)
    plans = {
        "still": [],
        **{
            name: changes(options.rules, options.changes, options.events, ends)
            for name, ends in (("changing", "finish"), ("stopping", "stop"))
        },
    }
    found: dict[str, list[dict[str, float]]] = {name: [] for name in ("fixed", *plans)}
    for _ in range(ROUNDS):
        found["fixed"].append(pushed(cepheid.queries({row["name"]: row["query"] for row in own}).recognizer(given.schema), given, []))
        for name, later in plans.items():
            found[name].append(pushed(cepheid.rules(own).recognizer(given.schema), given, later))
    expected = {name: sum(map(len, cepheid.rules([*own, *later]).run(given).found.values())) for name, later in plans.items()}
    figures = {name: {what: statistics.median(each[what] for each in runs) for what in runs[0]} for name, runs in found.items()}
    base = figures["fixed"]["push"]
    rounded = {
        name: {what: round(value, 2) for what, value in each.items()} | {"ratio": round(each["push"] / base, 2)}
        for name, each in figures.items()
    }
    differs = [name for name, count in expected.items() if any(each["matches"] != count for each in found[name])]
    record = {
        "events": options.events,
        "rules": options.rules,
        "changes": options.changes,
        "bar": BAR,
        "differs_from_a_run": differs,
        "figures": rounded,
    }
    circumstances.write("rules", record, before=before)
    return int(bool(differs))


if __name__ == "__main__":
    sys.exit(main())
