"""Automata with guards for tests: random ones, streams for them, and a simulator that goes by the definition.

The simulator keeps every run by itself: (state, register file, marks). Nothing of it is shared with the evaluation.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import eq, ge, gt, le, lt, ne
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.automata import Automaton, Transition
from cepheid.automata.alphabet import Alphabet, Guard, Predicate
from cepheid.automata.registers import Before, Compares, Elapsed, Gathered, Now, Register, Store, Term, Test
from cepheid.automata.transition import Mark, order
from cepheid.engine.evaluations.events import Events
from cepheid.engine.letters.encoded import Texts, ValueLayout, ValueReader, Values
from cepheid.logical.plan import Expression, Field, Index, Interval, Time
from cepheid.schema import EventSchema

if TYPE_CHECKING:
    import random

V, W = (Field("", (name,), pa.int64(), pa.int64()) for name in "vw")
NAME = Field("", ("name",), pa.string(), pa.string())
T = Time("", pa.int64())
I = Index("")  # noqa: E741 - the position
VALUES = (V, W, NAME, T, I)
SCHEMA = EventSchema({"ts": pa.int64(), "v": pa.int64(), "w": pa.int64(), "name": pa.string()}, time_column="ts")
A, B, C = 1, 2, 4
TYPES = "ABC"
FIRST_GUARD = 3
X, Y, Z, HIDDEN = frozenset({"x"}), frozenset({"y"}), frozenset({"z"}), frozenset[str]()

COMPARE = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


@dataclass(frozen=True)
class Row:
    """An event of a test."""

    type: str
    time: int
    v: int | None = 0
    w: int | None = 0
    name: str | None = "a"


Match = tuple[tuple[int, ...], tuple[Mark, ...]]
"""Positions, and the mark of each."""


def automaton(moves: list[Transition], *tests: Test, registers: int = 1, final: int | None = None) -> Automaton:
    """An automaton over the types A, B, C; the last state is final, or the one that is named. Guard i has bit FIRST_GUARD + i."""
    guards = tuple(Guard(FIRST_GUARD + number, test) for number, test in enumerate(tests))
    alphabet = Alphabet(
        tuple(Predicate(None, name) for name in TYPES),
        guards=guards,
        registers=tuple(Register(f"r{number}") for number in range(registers)),
    )
    states = 1 + max(max(move.source, move.target) for move in moves)
    return Automaton(states, 0, frozenset({states - 1 if final is None else final}), order(moves), alphabet)


def guard(number: int) -> int:
    """The bit of a guard."""
    return 1 << FIRST_GUARD + number


def stores(**terms: Term | None) -> frozenset[Store]:
    """`stores(r0=Now(V))`."""
    return frozenset(Store(int(name[1:]), term) for name, term in terms.items())


# -------------------------------------------------------------------------------------------------------------------- events


def events(rows: list[Row], *, first: int = 0, index: list[int] | None = None, texts: Texts | None = None, **segments: Any) -> Events:
    """Rows as an evaluation reads them; first: the position of the first; index: those of all. texts: of all batches, where numbers are compared."""
    letters = np.array([1 + TYPES.index(row.type) for row in rows], np.uint64)
    times = [row.time for row in rows]
    columns = {"ts": times, "v": [row.v for row in rows], "w": [row.w for row in rows], "name": [row.name for row in rows]}
    table = pa.table({name: pa.array(column, SCHEMA.attributes[name]) for name, column in columns.items()})
    places = np.array(range(first, first + len(rows)) if index is None else index, np.int64)
    reader = ValueReader(ValueLayout(VALUES), SCHEMA, Texts() if texts is None else texts)
    # As a table has them, and as a stream does.
    values = reader.columns(table, places) if len(rows) % 2 else Values(reader.layout, reader.read(table, places), reader.texts)
    return Events(letters, np.array(times, np.int64), values=values, **segments)


def random_rows(rng: random.Random, count: int) -> list[Row]:
    time, rows = 0, []
    for _ in range(count):
        time += rng.choice((0, 1, 1, 2))

        def value() -> int | None:
            return None if rng.random() < 0.08 else rng.randrange(4)

        rows.append(Row(rng.choice(TYPES), time, value(), value(), rng.choice(("a", "b", "b", None))))
    return rows


# ----------------------------------------------------------------------------------------------------------------- simulator


def value_of(expression: Expression, row: Row, position: int) -> Any:
    return {V: row.v, W: row.w, NAME: row.name, T: row.time, I: position}[expression]


def term_of(term: Term | None, held: dict[int, Any], row: Row, position: int) -> Any:
    match term:
        case None:
            return ()
        case Before(register=register):
            return held.get(register, ())
        case Now(value=value):
            return ("one", value_of(value, row, position))
        case Gathered(how=how, before=before, value=value):
            new, old = value_of(value, row, position), term_of(before, held, row, position)
            if how == "set":
                return ("set", frozenset({new}) | (old[1] if old else frozenset()))
            if not old:
                return ("one", new)
            if new is None or old[1] is None or (how == "same" and new != old[1]):
                return ("one", None)
            return ("one", {"min": min, "max": max, "same": min}[how](new, old[1]))
    raise TypeError(term)


def holds(test: Test, held: dict[int, Any], row: Row, position: int) -> bool:
    old = term_of(test.before, held, row, position)
    if not old:
        return True
    now = value_of(test.now, row, position)
    if isinstance(test, Elapsed):
        return old[1] is not None and now - old[1] in test.interval
    values = old[1] if old[0] == "set" else [old[1]]
    return all(value is not None and now is not None and COMPARE[test.operator](value, now) for value in values)


def simulated(automaton: Automaton, rows: list[Row], *, window: int | None = None) -> list[set[Match]]:
    """The matches that end at each event, by the definition; window: without those that take longer."""
    runs: set[tuple[int, frozenset[tuple[int, Any]], Match]] = set()
    found = []
    for position, row in enumerate(rows):
        after, ended = set(), set()
        for state, file, (positions, marks) in [*runs, (automaton.initial, frozenset(), ((), ()))]:
            if positions and window is not None and row.time - rows[positions[0]].time > window:
                continue
            held = dict(file)
            mask = 1 << TYPES.index(row.type)
            mask |= sum(guard.mask for guard in automaton.alphabet.guards if holds(guard.test, held, row, position))
            for move in automaton.outgoing[state]:
                if not move.enabled(mask):
                    continue
                new = held | {store.register: term_of(store.term, held, row, position) for store in move.writes}
                match = (positions, marks) if move.mark is None else ((*positions, position), (*marks, move.mark))
                if move.target in automaton.finals:
                    ended.add(match)
                after.add((move.target, frozenset((register, value) for register, value in new.items() if value), match))
        runs = after
        found.append(ended)
    return found


# -------------------------------------------------------------------------------------------------------------- random automata


def random_automaton(rng: random.Random, *, plain: bool = False) -> Automaton:
    """Two to four states between the first and the last mark, with waiting loops, hidden writes, and guards on some registers.

    plain: no hidden marks, so that supports and matches are as in a pattern without PROJECT.
    """
    inner, registers = rng.randint(1, 3), rng.randint(1, 3)
    final = inner + 1
    kinds = [
        rng.choice(("time", "position", "value", "value", "name", "max", "min", "same", "set", "set", "where")) for _ in range(registers)
    ]
    tests = [random_test(rng, number, kind) for number, kind in enumerate(kinds) for _ in range(rng.randint(1, 2))]
    guards = [guard(number) for number in range(len(tests))]

    def written() -> frozenset[Store]:
        chosen = [number for number in range(registers) if rng.random() < 0.5]
        return frozenset(Store(number, random_term(rng, number, kinds[number])) for number in chosen)

    def masks(*, begins: bool = False) -> tuple[int, int]:
        requires = rng.choice((0, A, B, C, A, B))
        forbids = 0
        for bit in guards:
            if not begins and rng.random() < 0.35:
                requires, forbids = (requires | bit, forbids) if rng.random() < 0.8 else (requires, forbids | bit)
        return requires, forbids

    marks = [X, Y, X | Y, Z]
    moves = []
    for _ in range(rng.randint(1, 2)):
        requires, forbids = masks(begins=True)
        mark = HIDDEN if not plain and rng.random() < 0.1 else rng.choice(marks)
        moves.append(Transition(0, rng.randint(1, inner), requires, mark, forbids, written()))
    if rng.random() < 0.2:
        moves.append(Transition(0, final, A, X))
    for state in range(1, inner + 1):
        if rng.random() < 0.7:
            moves.append(Transition(state, state))
        for _ in range(rng.randint(0, 2)):
            requires, forbids = masks()
            mark = None if rng.random() < 0.25 else rng.choice(marks)
            moves.append(Transition(state, rng.randint(1, inner), requires, mark, forbids, written()))
        if rng.random() < 0.6 or state == inner:
            requires, forbids = masks()
            mark = HIDDEN if not plain and rng.random() < 0.1 else rng.choice(marks)
            moves.append(Transition(state, final, requires, mark, forbids))
    return automaton(moves, *tests, registers=registers, final=final)


def random_test(rng: random.Random, register: int, kind: str) -> Test:
    if kind in {"time", "position"} or (kind == "where" and rng.random() < 0.5):
        lower = rng.choice((0, 0, 1, 2))
        upper = rng.choice((None, lower + rng.randint(0, 4), lower + rng.randint(0, 4)))
        return Elapsed(Before(register), T if kind == "time" else I, Interval(lower, upper))
    if kind == "where":
        return Compares(Before(register), rng.choice(("<", "=", "!=")), I)
    operators = {
        "max": ("<", "<=", ">"),
        "min": (">", ">=", "<"),
        "same": ("=",),
        "name": ("=", "!=", "<"),
        "set": ("!=",),
    }
    operator = rng.choice(operators.get(kind, ("=", "=", "<", "<=", ">", ">=", "!=")))
    return Compares(Before(register), operator, NAME if kind == "name" else rng.choice((V, V, W)))


def random_term(rng: random.Random, register: int, kind: str) -> Term | None:
    if rng.random() < 0.15:
        return None
    if kind in {"time", "position", "value", "name"}:
        return Now({"time": T, "position": I, "value": V, "name": NAME}[kind])
    if kind == "where":
        return Gathered(rng.choice(("min", "max", "same")), Before(register), I)
    if kind == "set":
        return Gathered("set", Before(register) if rng.random() < 0.7 else None, V)
    return Gathered(kind, Before(register), V) if rng.random() < 0.7 else Now(V)


def random_scoped_automaton(rng: random.Random) -> Automaton:
    """A register gathers all that x marks since its scope began, for guards that ask for all of it; scopes begin anew anywhere."""
    how, operators = rng.choice((("max", ("<", "<=")), ("min", (">", ">=")), ("same", ("=",)), ("set", ("!=",))))
    tests = [Compares(Before(0), rng.choice(operators), rng.choice((V, V, W))) for _ in range(2)]
    inner = rng.randint(1, 2)
    fresh = Gathered("set", None, V) if how == "set" else Now(V)
    moves = [Transition(0, 1, rng.choice((0, A)), X, writes=stores(r0=fresh))]
    if rng.random() < 0.5:
        moves.append(Transition(0, 1, B, Y))
    for state in range(1, inner + 1):
        if rng.random() < 0.8:
            moves.append(Transition(state, state))
        for _ in range(rng.randint(1, 3)):
            mark = rng.choice((X, X, X | Y, Y, None))
            written = rng.choice((Gathered(how, Before(0), V), fresh)) if mark is not None and "x" in mark else None
            writes = stores(r0=written) if written is not None or rng.random() < 0.3 else stores()
            asked = guard(rng.randrange(2)) if rng.random() < 0.4 else 0
            moves.append(Transition(state, rng.randint(1, inner), rng.choice((0, A, B)) | asked, mark, 0, writes))
    moves += [Transition(state, inner + 1, rng.choice((0, B, C)) | guard(rng.randrange(2)), Y) for state in range(1, inner + 1)]
    return automaton(moves, *tests, final=inner + 1)
