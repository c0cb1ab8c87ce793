"""Row patterns: the two passes of conditions that look at no match, ns per row, over the length of the table.

    python benchmarks/bench_rows.py [--rows N ..] [--repeat R]

The kernel alone, from letters to matches, and the numbering of letters before it; no conditions, sorting or measures yet. Each figure is the median
of R runs, in turns over all patterns. Rows are a random walk, or letters that hold at random.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import circumstances
from cepheid.automata.places import places_of
from cepheid.engine.evaluations.preferred import Preferred, PreferredTables
from cepheid.language.rows_parser import parse_rows
from cepheid.logical.rows_bind import bind_rows

if TYPE_CHECKING:
    from collections.abc import Callable


def walk(rng: np.random.Generator, count: int) -> dict[str, np.ndarray[Any, Any]]:
    """Whether a price falls, and whether it rises."""
    steps = rng.standard_normal(count)
    return {"D": steps < 0, "U": steps > 0}


def chances(**likely: float) -> Callable[[np.random.Generator, int], dict[str, np.ndarray[Any, Any]]]:
    """Variables that hold so often."""
    return lambda rng, count: {name: rng.random(count) < chance for name, chance in likely.items()}


NEXT = "AFTER MATCH SKIP TO NEXT ROW"

PATTERNS: tuple[tuple[str, str, Callable[[np.random.Generator, int], dict[str, np.ndarray[Any, Any]]]], ...] = (
    ("S D+ U+", "", walk),
    ("S D+ U+", NEXT, walk),
    ("(A+)+ B", "", chances(A=1.0, B=0.0)),
    ("A+ A+ A+ B", "", chances(A=1.0, B=0.0)),
    ("A (A | B C | D)*? D", "", chances(A=0.7, B=0.2, C=0.7, D=0.2)),
    ("A{1,50} B{2,3} C", "", chances(A=0.7, B=0.2, C=0.7)),
    ("(A?){30} A{30}", "", chances(A=0.7)),
    ("PERMUTE(A, B, C, D)", "", chances(A=0.5, B=0.5, C=0.5, D=0.5)),
)
"""Patterns, where the next match may start, and their rows; variables without rows hold at each."""


def main() -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--repeat", type=int, default=5)
    given = parser.parse_args()
    found = [each for count in given.rows for each in measured(count, given.repeat)]
    for each in found:
        print(each, flush=True)
    circumstances.write("rows", {"patterns": found})


def measured(count: int, repeat: int) -> list[dict[str, object]]:
    """Each pattern over so many rows."""
    rng = np.random.default_rng(1)
    prepared = []
    for pattern, skip, rows in PATTERNS:
        held = rows(rng, count)
        defines = ", ".join(f"{name} AS {name}" for name in held)
        columns = pa.schema([(name, pa.bool_()) for name in held])
        plan = bind_rows(parse_rows(f"MEASURES 1 AS one {skip} PATTERN ({pattern}) DEFINE {defines}"), columns)
        letters = np.zeros(count, np.uint64)
        for number, name in enumerate(plan.variables):
            letters |= (held[name].astype(np.uint64) if name in held else np.uint64(1)) << np.uint64(number)
        prepared.append((f"{pattern} {skip}".strip(), PreferredTables(plan, places_of(plan)), letters))
    cuts = np.array([0, count])
    times: dict[str, list[tuple[float, float]]] = {name: [] for name, _, _ in prepared}
    matches: dict[str, int] = {}
    for _ in range(repeat + 1):  # the first fills the tables
        for name, tables, letters in prepared:
            begin = time.process_time()
            run = Preferred(tables, letters, cuts)
            read = time.process_time()
            matches[name] = len(run.matches())
            times[name].append((read - begin, time.process_time() - read))
    return [
        {
            "pattern": name,
            "rows": count,
            "matches": matches[name],
            "places": len(tables.places),
            "sets": len(tables.sets),
            "letters_ns": round(statistics.median(letters for letters, _ in times[name][1:]) * 1e9 / count, 1),
            "kernel_ns": round(statistics.median(kernel for _, kernel in times[name][1:]) * 1e9 / count, 1),
        }
        for name, tables, _ in prepared
    ]


if __name__ == "__main__":
    main()
