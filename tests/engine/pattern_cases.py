"""Random patterns for the constructions: every operator of the automaton fragment, with selection strategies at random places.

CEPHEID_CASES is the number of cases (default 200), CEPHEID_SEED the seed.
"""

from __future__ import annotations

import os
import random

import pyarrow as pa

from cepheid.language.syntax import Strategy
from cepheid.logical.plan import And, Event, Iterate, Link, Named, Or, Pattern, Project, Select, Sequence
from cepheid.schema import EventSchema

SCHEMA = EventSchema({"type": pa.string()}, type_column="type")
CASES = int(os.environ.get("CEPHEID_CASES", "200"))
SEED = int(os.environ.get("CEPHEID_SEED", str(random.SystemRandom().randrange(1 << 32))))
CHOOSING = (Strategy.NXT, Strategy.LAST, Strategy.MAX)
TYPES = "ABC"


def random_pattern(rng: random.Random, depth: int, strategies: float = 0.4) -> Pattern:
    if rng.random() < strategies and depth > 0:
        return Select(
            rng.choice([*CHOOSING, *CHOOSING, Strategy.STRICT]), random_pattern(rng, depth - (rng.random() < 0.7), strategies / 2)
        )
    if depth == 0 or rng.random() < 0.15:
        event: Pattern = Event(rng.choice(["A", "B", "C", None]))
        return Named(event, rng.choice("xy")) if rng.random() < 0.4 else event
    parts = [random_pattern(rng, depth - 1, strategies) for _ in range(3)]
    links = (Link(rng.choice(";;:")), Link(rng.choice(";;:")))
    shown = frozenset(rng.sample(["A", "B", "x", "y"], rng.randint(0, 2)))
    return rng.choice(
        [
            Sequence(tuple(parts), links),
            Sequence(tuple(parts[:2]), links[:1]),
            Or(tuple(parts[:2])),
            Iterate(parts[0], adjacent=rng.random() < 0.3),
            And((parts[0], Or(tuple(parts[:2])))),
            Project(shown, parts[0]),
            Named(parts[0], rng.choice("xyz")),
        ]
    )


def random_variables(rng: random.Random) -> tuple[str, ...]:
    return tuple(rng.sample(["A", "B", "C", "ANY", "x", "y", "z"], rng.randint(0, 7)))


def random_types(rng: random.Random) -> str:
    return "".join(rng.choice("ABC") for _ in range(rng.randint(0, 7)))
