"""Which share of random queries Python evaluates event by event, instead of a kernel, and why; recorded.

    python benchmarks/bench_python_share.py [--queries N] [--seed S]

The queries are those of the random tests, equally many of each class (`cepheid.testing.fragments`). What is counted is layers: a query, and each of
its EVENT definitions. A layer has guards where it compares events, or is evaluated as if it did. The reasons are those that `explain()` gives; a
layer may have several, for what must not come is evaluated beside the pattern. `per end` is no Python per event, but it reads windows again.
"""

from __future__ import annotations

import argparse
import dataclasses
import random
from collections import Counter
from typing import TYPE_CHECKING

import cepheid
import circumstances
from cepheid.errors import LimitError
from cepheid.testing import generators
from cepheid.testing.fragments import FRAGMENTS
from cepheid.testing.methods import layers_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cepheid.engine.plan.compiled import Compiled

BAR = 0.05
"""The share of layers with guards that Python may evaluate."""

SHOWN = 3
"""Queries that are printed for each reason."""


def layers(fragment: str, count: int, seed: int) -> Iterator[tuple[str, Compiled]]:
    """The layers of so many random queries of a class, each with its query; those that pass a limit are passed over."""
    for number in range(count):
        rng = random.Random(f"{seed}/{number}")
        unit = "s" if number % 2 else ""
        query = cepheid.query(generators.random_query(rng, fragment=dataclasses.replace(FRAGMENTS[fragment], unit=unit)))
        try:
            compiled = query.compiled(query.schema(generators.TIMED_SCHEMA if unit else generators.SCHEMA))
            for layer in layers_of(compiled):
                yield query.text, layer
        except LimitError:
            pass


def has_guards(layer: Compiled) -> bool:
    """Whether letters do not say all that its evaluation depends on."""
    automata = [program.automaton for program in layer.programs]
    return layer.method.guards or any(each.compares or each.negated for each in automata)


def main() -> None:
    """Count, print, record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=300, help="of each class")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    every: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    rows: dict[str, Counter[str]] = {}
    examples: dict[str, list[str]] = {}
    for fragment in FRAGMENTS:
        row = rows[fragment] = Counter()
        for text, layer in layers(fragment, options.queries, options.seed):
            found = layer.not_compiled
            row.update(layers=1, guards=has_guards(layer), python=bool(found), per_end=layer.method.name == "per end")
            reasons.update(found)
            for reason in found:
                examples.setdefault(reason, []).append(text)
        every.update(row)
        print(f"{fragment:32}", dict(row), flush=True)
    for reason, times in reasons.most_common():
        print(f"{times:6} {times / every['guards']:7.2%}  {reason}", *sorted(examples[reason], key=len)[:SHOWN], sep="\n" + " " * 18)
    share = every["python"] / every["guards"]
    print(f"{every['python']} of {every['guards']} layers with guards, {share:.1%} (at most {BAR:.0%}); {every['layers']} layers in all")
    record = {"seed": options.seed, "queries": options.queries * len(FRAGMENTS), "bar": BAR, "share": round(share, 4), **every}
    record |= {"reasons": dict(reasons.most_common()), "classes": rows}
    circumstances.write("python_share", record)


if __name__ == "__main__":
    main()
