"""Random patterns that compare events, or have conjunction, negation or THEN, on every embedded path, against the definition; recorded.

    python benchmarks/record_random.py [--share S] [--processes N] [--fragments F ..]

Each case is a query that compares events, or has ALL, UNLESS, NOT or THEN (others are left out), and a stream. Its matches must be those of
`cepheid.testing.reference`, from every engine on the whole stream, and from every other way in which events come
(`cepheid.testing.differential.WAYS`: pushed, cut, restored, late, one by one), whose engines change in turn. The record has the seed; a difference
is printed with its case, counted, and makes the exit status 1. It is written after each piece of some hundred patterns, with the commit that was
tried: a run that is stopped leaves what it did, and the next one at the same commit goes on from there; one with --fragments leaves what the record
says of the others. (Spark: `make test-all`.)
"""

from __future__ import annotations

import argparse
import itertools
import os
import secrets
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

import circumstances
from cepheid.errors import LimitError, NotSupportedError
from cepheid.logical import plan
from cepheid.logical.tree import walk
from cepheid.logical.variables import negated
from cepheid.testing import generators
from cepheid.testing.differential import WAYS, Case, check, draw

CASES = {
    "TIMED": 10_000,
    "CORRELATED": 10_000,
    "GUARDED": 5_000,
    "NEGATING": 5_000,
    "CONTRADICTING": 5_000,
    "COMPARING": 5_000,
    "CHOOSING": 3_000,
    "POSITIONAL": 2_000,
    "RESTRICTING": 5_000,
    "SUCCEEDING": 5_000,
    "SUCCEEDING_GUARDED": 3_000,
    "JUDGING": 3_000,
    "JUDGING_GUARDED": 2_000,
    "LAYERED": 2_000,
}
"""Of each fragment of `cepheid.testing.generators`: time, correlation, both; negation, also of and around these; these in whole queries, strategies
around them, positions; what the event algebra's detector runs; THEN, of and around local patterns, and of and around those that compare; HAVING,
over both; EVENT definitions, whose events the pattern has."""

ENGINES = ("compiled", "python", "checked")
AT_ONCE = 250
LONGEST = (12, 30)
"""Most events of a stream, in turn: short ones have more kinds of matches, in long ones windows expire and indexes are swept."""


def differs(case: Case) -> tuple[str | None, bool]:
    """What is wrong with a case, None if nothing is; and whether it has matches. Raises LimitError where a limit refuses it."""
    found = WAYS["whole"](case, None)
    try:
        check(case, found)
    except AssertionError as error:
        return f"whole: {error}", bool(found)
    runs = [("whole", engine) for engine in ENGINES]
    runs += [(way, engine) for way, engine in zip(WAYS, itertools.islice(itertools.cycle(ENGINES), case.number % 3, None), strict=False)]
    # Matches that wait from their start come in the order of their deadlines: the order is not that of the whole.
    told = Counter if case.query.compiled(case.query.schema(case.events.schema)).waits else list
    for way, engine in runs:
        if told(WAYS[way](case, engine)) != told(found):
            return f"{way}, {engine}", bool(found)
    return None, bool(found)


def is_asked(case: Case, fragment: str) -> bool:
    """Whether the fragment is about such a query."""
    nodes = list(walk(case.query.bound(case.query.schema(case.events.schema)).pattern))
    if fragment in {"NEGATING", "CONTRADICTING"}:
        return any(isinstance(node, plan.All) or negated(node) for node in nodes)
    if fragment in {"SUCCEEDING", "SUCCEEDING_GUARDED"}:
        return any(isinstance(node, plan.Sequence) and any(link.operator == "THEN" for link in node.links) for node in nodes)
    if fragment == "LAYERED":
        return any(isinstance(node, plan.Event) and node.spans for node in nodes)
    if fragment in {"JUDGING", "JUDGING_GUARDED"}:
        return case.query.tree.having is not None
    compiled = case.query.compiled(case.query.schema(case.events.schema))
    return compiled.method.name == "restricted" if fragment == "RESTRICTING" else compiled.valued


def tried(fragment: str, count: int, seed: int) -> Counter[str]:
    """The cases that a fragment is about, of so many of it: how many had matches, were refused by a named limit, and differed."""
    counts: Counter[str] = Counter()
    for case in draw(getattr(generators, fragment), count=count, seed=seed, longest=LONGEST[seed % len(LONGEST)]):
        try:
            if not is_asked(case, fragment):
                continue
            wrong, matched = differs(case)
        except (LimitError, NotSupportedError) as error:
            print(f"refused: {str(error).splitlines()[0]}", flush=True)
            counts["refused"] += 1
            continue
        if wrong is not None:
            print(f"{fragment}: {wrong}\n{case}", flush=True)
        counts.update(cases=1, events=case.events.num_rows, with_matches=matched, differences=wrong is not None)
    return counts


def main() -> int:
    """Try all, print, record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--share", type=float, default=1.0, help="of the cases")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--fragments", nargs="*", choices=list(CASES), default=list(CASES), help="only these; the record keeps the others")
    options = parser.parse_args()
    seed = int(os.environ.get("CEPHEID_SEED") or secrets.randbelow(2**32))
    before = circumstances.circumstances()
    here = {name: before[name] for name in ("commit", "changed")}
    figures = circumstances.kept("random", "fragments")
    with ProcessPoolExecutor(options.processes) as pool:
        for fragment in options.fragments:
            found = figures.get(fragment, {})
            if found.get("commit") != here["commit"] or found["changed"] or here["changed"] or "pieces" not in found:
                found = here | {"seed": seed, "pieces": 0, "seconds": 0, "cases": 0, "differences": 0}
            while found["cases"] < CASES[fragment] * options.share:
                began, first = time.monotonic(), found["seed"] + found["pieces"]
                seeds = range(first, first + options.processes)
                for done in pool.map(tried, itertools.repeat(fragment), itertools.repeat(AT_ONCE), seeds):
                    found |= {name: found.get(name, 0) + number for name, number in done.items()}
                found |= {"pieces": found["pieces"] + len(seeds), "seconds": found["seconds"] + round(time.monotonic() - began)}
                print(fragment, found, flush=True)
                figures[fragment] = found
                record = {"ways": list(WAYS), "engines": ENGINES, "longest": LONGEST, "fragments": figures}
                circumstances.write("random", record, before=before, told=False)
    return int(any(figures[fragment]["differences"] for fragment in options.fragments))


if __name__ == "__main__":
    sys.exit(main())
