"""Several random queries over the same events: copies of one with other constants, which can be evaluated together, and others."""

from __future__ import annotations

import itertools
import random
import re
from typing import TYPE_CHECKING

import cepheid
from cepheid.testing import generators
from cepheid.testing.differential import matches_up_to
from cepheid.testing.generators import ABSENT, ENGINE, WAITING

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

FRAGMENTS = {"engine": ENGINE, "NXT, LAST, MAX": WAITING, "absence": ABSENT}
COMPARED = re.compile(r"(?<=[<>=] )-?\d+\b(?!\s*(?:EVENTS|s\b|ms\b))")


def copies(rng: random.Random, text: str, count: int) -> list[str]:
    """The query with other constants."""
    return [text, *(COMPARED.sub(lambda _: str(rng.randint(-1, 4)), text) for _ in range(count))]


def several_queries(fragment: str, seed: int) -> Iterator[tuple[dict[str, cepheid.Query], pa.Table, random.Random]]:
    """Some queries, events, and randomness; without end."""
    for number in itertools.count(1):
        rng = random.Random(f"{seed}/{fragment}/{number}")
        timed = number % 2 == 1
        own = generators.dataclasses.replace(FRAGMENTS[fragment], unit="s" if timed else "")
        texts = [
            text for _ in range(rng.randint(1, 2)) for text in copies(rng, generators.random_query(rng, fragment=own), rng.randint(1, 4))
        ]
        events = generators.table(generators.random_stream(rng, most=12), timed=timed)
        try:
            named = {f"q{place}": cepheid.query(text) for place, text in enumerate(texts)}
            if any(matches_up_to(500, query, events) is None for query in named.values()):
                continue
        except cepheid.BindError:  # a constant that does not fit where it came to stand
            continue
        yield named, events, rng
