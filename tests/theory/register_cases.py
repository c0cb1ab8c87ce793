"""Automata with registers, written by hand, over events T and H with an id.

CEPHEID_CASES is the number of cases, CEPHEID_SEED the seed (see `pattern_cases`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from cepheid.automata import Automaton, Transition
from cepheid.automata.alphabet import Alphabet, Guard
from cepheid.automata.predicates import of_type
from cepheid.automata.registers import Before, Compares, Gathered, Now, Register, Store
from cepheid.automata.transition import order
from cepheid.logical.plan import Field
from cepheid.schema import EventSchema
from cepheid.testing import events as rows_of
from cepheid.testing.harness import events_of

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from cepheid.testing.evaluate import Event

SCHEMA = EventSchema({"type": pa.string(), "id": pa.int64()}, type_column="type")
ID = Field("", ("id",), pa.int64(), pa.int64())
KEEP_ID = Now(ID)
TEMPERATURE, HUMIDITY, GUARD = 1, 2, 4
X, Y = frozenset({"x"}), frozenset({"y"})


def by_hand(*moves: Transition, tests: Sequence[Compares] = (Compares(Before(0), "=", ID),), registers: int = 1) -> Automaton:
    """With the types T and H; the last state is final."""
    states = 1 + max(move.target for move in moves)
    guards = tuple(Guard(2 + number, test) for number, test in enumerate(tests))
    alphabet = Alphabet(
        (of_type("T", SCHEMA), of_type("H", SCHEMA)),
        guards=guards,
        registers=tuple(Register(f"r{number}") for number in range(1, registers + 1)),
    )
    return Automaton(states, 0, frozenset({states - 1}), order(moves), alphabet)


def store(register: int) -> frozenset[Store]:
    return frozenset({Store(register, KEEP_ID)})


FIGURE_1 = by_hand(
    Transition(0, 1, TEMPERATURE, X, writes=store(0)),
    Transition(1, 1),
    Transition(1, 2, HUMIDITY | GUARD, Y),
)
"""The automaton of Figure 1, expression (1): `(T AS x ; H AS y) FILTER x.id = y.id`. Runs begin anywhere, so it has no loop at its start."""

HIDDEN = by_hand(
    Transition(0, 1, TEMPERATURE, X),
    Transition(1, 1),
    Transition(1, 2, TEMPERATURE, writes=store(0)),
    Transition(2, 2, 0, None, HUMIDITY | GUARD),
    Transition(2, 3, HUMIDITY, Y, GUARD),
)
"""Stores an event that it does not mark, and asks for another id."""

STALE = by_hand(
    Transition(0, 1, GUARD, X, writes=store(0)),
    Transition(0, 1, HUMIDITY, X, TEMPERATURE),
    Transition(1, 1),
    Transition(1, 2, GUARD | TEMPERATURE, X),
)
"""Asks its register at its first event: it is empty there, so the guard holds, also in a later iteration."""

SEVERAL = by_hand(
    Transition(0, 1, TEMPERATURE, X, writes=frozenset({Store(0, Gathered("set", None, ID)), Store(1, KEEP_ID)})),
    Transition(1, 1),
    Transition(
        1, 1, TEMPERATURE, X, writes=frozenset({Store(0, Gathered("set", Before(0), ID)), Store(1, Before(2)), Store(2, Before(1))})
    ),
    Transition(1, 2, HUMIDITY | GUARD | 2 * GUARD, Y),
    tests=(Compares(Before(0), "!=", ID), Compares(Before(1), "<", ID)),
    registers=3,
)
"""Gathers a set, and moves what registers hold: after two events the first value is in the second register, or empty where it never was."""

FORBIDDEN_FIRST = by_hand(
    Transition(0, 1, TEMPERATURE, X, GUARD),
    Transition(0, 1, HUMIDITY, X, writes=store(0)),
    Transition(1, 2, TEMPERATURE, Y),
)
"""Its first transition forbids a guard that holds there: it is never taken."""

ALL = {"figure 1": FIGURE_1, "hidden": HIDDEN, "stale": STALE, "several": SEVERAL, "forbidden first": FORBIDDEN_FIRST}


def random_events(rng: random.Random, most: int = 6) -> list[Event]:
    rows = [{"type": rng.choice("TTHX"), "id": rng.choice((1, 1, 2, None))} for _ in range(rng.randint(0, most))]
    return events_of(rows, SCHEMA)


def stream_of(text: str) -> list[Event]:
    return events_of(rows_of(text), SCHEMA)
