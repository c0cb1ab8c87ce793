"""Random automata with clocks, and streams for them.

CEPHEID_CASES is the number of cases (default 200), CEPHEID_SEED the seed.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pyarrow as pa
from pattern_cases import CASES, SEED

import cepheid
from cepheid.automata import Alphabet, Automaton, Before, Elapsed, Guard, Now, Register, Store, Transition, construct
from cepheid.automata.predicates import of_type
from cepheid.automata.transition import order
from cepheid.logical.plan import And, Event, Interval, Iterate, Link, Named, Or, Project, QueryPlan, Sequence, Time, Within
from cepheid.schema import EventSchema
from cepheid.testing.evaluate import Event as Occurrence

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable

    from cepheid.logical.plan import Pattern

__all__ = ["CASES", "SEED"]

SCHEMA = EventSchema({"type": pa.string(), "ts": pa.int64()}, type_column="type", time_column="ts")
NOW = Time("", pa.int64())
A, B = 1, 2
TYPES = "ABX"
"""X is of no type that an automaton asks for."""

LONGEST = 2
"""The greatest bound of a random guard."""

Move = tuple[int, int, int, "Iterable[tuple[int, int, int | None] | tuple[int, int, int | None, bool]]", "str | None", "Iterable[int]"]
"""(source, target, predicates, (clock, least age, greatest age, whether that is wanted).., mark as letters or None, clocks to reset)."""


def clock_automaton(moves: Iterable[Move], finals: Iterable[int], *, names: str = "z0 z1 z2") -> Automaton:
    """An automaton over the types A and B; its first state is 0."""
    moves = list(moves)
    asked = {(clock, *bounds[:2]) for *_, tests, _, _ in moves for clock, *bounds in tests}
    tests = {test: 1 << 2 + number for number, test in enumerate(sorted(asked, key=repr))}
    guards = tuple(
        Guard(bit.bit_length() - 1, Elapsed(Before(clock), NOW, Interval(lower, upper))) for (clock, lower, upper), bit in tests.items()
    )
    clocks = 1 + max([clock for *_, each, _, resets in moves for clock in [*(test[0] for test in each), *resets]], default=-1)
    made = []
    for source, target, predicates, each, mark, resets in moves:
        masks = [predicates, 0]
        for clock, lower, upper, *wanted in each:
            masks[wanted == [False]] |= tests[clock, lower, upper]
        stores = frozenset(Store(clock, Now(NOW)) for clock in resets)
        made.append(Transition(source, target, masks[0], None if mark is None else frozenset(mark), masks[1], stores))
    registers = tuple(map(Register, names.split()[:clocks]))
    finals = frozenset(finals)
    states = 1 + max([*finals, *(state for move in made for state in (move.source, move.target))])
    alphabet = Alphabet((of_type("A", SCHEMA), of_type("B", SCHEMA)), guards=guards, registers=registers)
    return Automaton(states, 0, finals, order(made), alphabet)


T1 = clock_automaton(
    [
        (0, 1, A, (), "x", [0]),
        (1, 1, 0, (), None, ()),
        (1, 2, A, [(0, 0, 1)], None, ()),
        (2, 2, 0, (), None, ()),
        (2, 3, B, [(0, 0, 5)], "y", ()),
    ],
    [3],
)
"""Example 4.1, with A for high temperatures and B for low humidity."""

T2 = clock_automaton(
    [
        (0, 1, A, (), "x", [0]),
        (1, 1, 0, (), None, ()),
        (1, 2, A, (), "x", [1]),
        (2, 2, 0, (), None, ()),
        (2, 3, B, [(0, 0, 5)], "y", ()),
        (3, 3, 0, (), None, ()),
        (3, 4, B, [(1, 0, 5)], "y", ()),
    ],
    [4],
)
"""Example 4.2."""

NOT_DETERMINIZABLE = clock_automaton(
    [
        (0, 1, A, (), "", ()),
        (1, 1, 0, (), None, ()),
        (1, 2, A, (), None, [0]),
        (2, 2, 0, (), None, ()),
        (2, 3, A, [(0, 1, 1)], "", ()),
    ],
    [3],
)
"""The formula that no deterministic automaton defines: PROJECT NONE (A ; A ;[= 1] A)."""


def built(where: str) -> Automaton:
    query = cepheid.query(f"SELECT * WHERE {where}")
    schema = query.schema(pa.schema([("type", pa.string()), ("ts", pa.int64()), ("v", pa.int64())]), type="type", time="ts")
    return construct(query.bound(schema).pattern, schema)


def random_automaton(rng: random.Random, *, states: int = 4, clocks: int = 2, most: int = 8) -> Automaton:
    """Any automaton with clocks; half of them reset the same clocks where the output is the same. A clock may be asked before it is reset."""
    count, held = rng.randint(2, states), rng.randint(0, clocks)
    of_output = [frozenset(clock for clock in range(held) if rng.random() < 0.5) for _ in range(3)]
    alike = rng.random() < 0.5
    moves: list[Move] = []
    for _ in range(rng.randint(count, most)):
        source = rng.randrange(count)
        mark = rng.choice(["", "x", "x", "y"]) if source == 0 else rng.choice([None, None, "", "x", "y"])
        resets = of_output[("", "x", "y").index(mark or "")] if alike else [clock for clock in range(held) if rng.random() < 0.35]
        moves.append((source, rng.randrange(count), rng.choice([0, A, A, B]), random_tests(rng, held), mark, resets))
    return clock_automaton(moves, rng.sample(range(count), rng.randint(1, 2)))


def random_tests(rng: random.Random, clocks: int) -> list[tuple[int, int, int | None, bool]]:
    found = []
    for clock in range(clocks):
        if rng.random() < 0.4:
            lower, upper = rng.choice([(0, 0), (0, 1), (0, LONGEST), (1, None), (LONGEST, None), (1, 1), (1, LONGEST)])
            found.append((clock, lower, upper, rng.random() < 0.8))
    return found


def random_pattern(rng: random.Random, depth: int) -> Pattern:
    """A pattern of timed CEL over A, B and ANY."""
    return _grown(rng, depth, "simple project within")


def random_windowed(rng: random.Random, depth: int) -> Pattern:
    """A windowed pattern: a simple one, or one without times, below WITHIN, AS, OR, AND and FILTER."""
    if depth == 0 or rng.random() < 0.4:
        return _grown(rng, 2, rng.choice(["simple", "simple", "standard project"]))
    first = random_windowed(rng, depth - 1)
    return rng.choice(
        [
            Within(first, random_interval(rng)),
            Within(first, random_interval(rng)),
            Named(first, rng.choice("xy")),
            Or((first, random_windowed(rng, depth - 1))),
            And((first, Or((first, random_windowed(rng, depth - 1))))),
        ]
    )


def random_interval(rng: random.Random) -> Interval:
    return Interval(*rng.choice([(0, 0), (0, 1), (0, LONGEST), (1, None), (LONGEST, None), (1, 1), (1, LONGEST)]))


def _grown(rng: random.Random, depth: int, kind: str) -> Pattern:
    if depth == 0 or rng.random() < 0.2:
        event: Pattern = Event(rng.choice(["A", "B", None]))
        return Named(event, rng.choice("xy")) if rng.random() < 0.4 else event
    first, second = _grown(rng, depth - 1, kind), _grown(rng, depth - 1, kind)
    gap = random_interval(rng) if "standard" not in kind and rng.random() < 0.6 else None
    link = Link(rng.choice(";;:"), gap)
    choices: list[Pattern] = [
        Sequence((first, second), (link,)),
        Sequence((first, second), (link,)),
        Iterate(first, rng.random() < 0.4, gap),
        Or((first, second)),
        And((first, Or((first, second)))),
        Named(first, rng.choice("xy")),
    ]
    if "project" in kind:
        choices.append(Project(frozenset(rng.sample(["A", "B", "x", "y"], rng.randint(0, 3))), first))
    if "within" in kind:
        choices.append(Within(first, random_interval(rng)))
    return rng.choice(choices)


def random_stream(rng: random.Random, *, most: int = 6) -> list[Occurrence]:
    found, time = [], 0
    for _ in range(rng.randint(1, most)):
        time += rng.choice((0, 1, 1, 2, 3))
        found.append(occurrence(rng.choice(TYPES), time))
    return found


def occurrence(kind: str, time: int) -> Occurrence:
    return Occurrence(kind, time, {"type": kind, "ts": time})


def letter(kind: str) -> int:
    """The bits of an event alone."""
    return {"A": A, "B": B}.get(kind, 0)


def query(pattern: Pattern, variables: Iterable[str] = ("A", "B", "ANY", "x", "y")) -> QueryPlan:
    return QueryPlan(pattern, SCHEMA, tuple(variables))


Valuation = tuple["int | None", ...]
"""The age of each clock, None where it is empty; ages above LONGEST + 1 are LONGEST + 1, for nothing tells them apart."""


def passes(move: Transition, kind: str, ages: Valuation, automaton: Automaton) -> bool:
    """Whether a transition is taken at an event, by the definition."""
    mask = letter(kind)
    for guard in automaton.alphabet.guards:
        age = ages[guard.test.before.register]
        if age is None or age in guard.test.interval:
            mask |= guard.mask
    return move.enabled(mask)


def after(move: Transition, ages: Valuation) -> Valuation:
    resets = {store.register for store in move.writes}
    return tuple(0 if clock in resets else age for clock, age in enumerate(ages))


def later(ages: Valuation, steps: int) -> Valuation:
    return tuple(None if age is None else min(age + steps, LONGEST + 1) for age in ages)


def occurrences() -> Iterable[tuple[str, int]]:
    """What can come next: an event of a type so many steps later."""
    return itertools.product(TYPES, range(LONGEST + 2))
