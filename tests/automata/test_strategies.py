"""NXT, LAST and MAX as automata, against the reference: random patterns with strategies at random places, and what the automata look like."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from enough import Enough
from pattern_cases import CASES, CHOOSING, SCHEMA, SEED, random_pattern, random_types, random_variables
from slowness import within

import cepheid
from cepheid.automata import (
    Automaton,
    Program,
    Tracker,
    Transition,
    construct,
    determinize,
    end_program,
    program_of,
    strategies,
    strategy_program,
)
from cepheid.automata.strategies import select
from cepheid.errors import LimitError
from cepheid.language.syntax import Strategy
from cepheid.logical.plan import Event, Iterate, Link, Or, Pattern, QueryPlan, Select, Sequence
from cepheid.schema import schema_of
from cepheid.testing import reference

Found = tuple[int, int, tuple[tuple[str, tuple[int, ...]], ...]]
Marks = tuple[tuple[int, frozenset[str]], ...]


def letters_of(automaton: Automaton, types: str) -> list[int]:
    """The letters of a stream with the states of the trackers before each event."""
    states = [0] * len(automaton.trackers)
    letters = []
    for name in types:
        letter = sum(1 << i for i, p in enumerate(automaton.predicates) if p.type == name)
        for tracker, state in zip(automaton.trackers, states, strict=True):
            letter |= state << tracker.bit
        states = [tracker.successor(state, letter) for tracker, state in zip(automaton.trackers, states, strict=True)]
        letters.append(letter)
    return letters


def by_running(automaton: Automaton, letters: list[int]) -> list[Found]:
    """The complex event of every accepting run of the I/O-determinization, which has one run for each."""
    found: list[Found] = []
    alive: dict[Marks, set[int]] = {}
    for position, letter in enumerate(letters):
        grown: dict[Marks, set[int]] = {}
        for marks, states in [*alive.items(), ((), {automaton.initial})]:
            for state in states:
                for move in automaton.outgoing[state]:
                    if move.enabled(letter):
                        after = marks if move.mark is None else (*marks, (position, move.mark))
                        grown.setdefault(after, set()).add(move.target)
        alive = grown
        found += [complex_event(marks, position) for marks, states in alive.items() if states & automaton.finals]
    return found


def complex_event(marks: Marks, end: int) -> Found:
    variables = sorted({variable for _, mark in marks for variable in mark})
    mapping = tuple((variable, tuple(p for p, mark in marks if variable in mark)) for variable in variables)
    return marks[0][0], end, mapping


def by_definition(pattern: Pattern, types: str, variables: tuple[str, ...], strategy: Strategy = Strategy.ALL) -> set[Found]:
    query = QueryPlan(pattern, SCHEMA, variables, strategy=strategy)
    events = [reference.Event(name, None, {"type": name}) for name in types]
    return {(m.start, m.end, tuple((v, p) for v, p in m.mapping if p)) for m in reference.matches(query, events, max_matches=20_000)}


def test_strategies_nested_anywhere() -> None:
    print(f"CEPHEID_SEED={SEED}")  # noqa: T201 - to run a failure again
    rng = random.Random(SEED)
    drawn = Enough(CASES, tracked=5, matched=5)
    for _ in drawn:
        pattern = random_pattern(rng, 3)
        variables = random_variables(rng)
        try:
            program = program_of(pattern, SCHEMA, variables=variables, strategy=Strategy.ALL)
        except LimitError:
            drawn.seen["limited"] += 1
            continue
        drawn.seen["tracked"] += bool(program.trackers)
        for _ in range(3):
            types = random_types(rng)
            expected = by_definition(pattern, types, variables)
            found = by_running(program.automaton, letters_of(program.automaton, types))
            assert set(found) == expected, (SEED, pattern, types, variables)
            assert len(found) == len(expected), (SEED, pattern, types, variables)
            drawn.seen["matched"] += bool(expected)
            if program.automaton.states < 12:
                whole = determinize(program.automaton)
                assert sorted(by_running(whole, letters_of(whole, types))) == sorted(found), (SEED, pattern, types, variables)
    assert drawn.seen["limited"] <= 10 + CASES // 20


@pytest.mark.parametrize("strategy", CHOOSING)
def test_strategies_of_a_whole_pattern(strategy: Strategy) -> None:
    rng = random.Random(f"{SEED}/{strategy}")
    for _ in range(CASES // 2):
        pattern, variables, types = random_pattern(rng, 3, 0.05), random_variables(rng), random_types(rng)
        try:
            program = strategy_program(pattern, SCHEMA, variables=variables, strategy=strategy)
        except LimitError:
            continue
        found = by_running(program.automaton, letters_of(program.automaton, types))
        expected = by_definition(pattern, types, variables, strategy)
        assert sorted(found) == sorted(expected), (SEED, pattern, types, variables)


def test_events_that_are_not_relevant_can_be_left_out() -> None:
    """Where a program says so, by its masks, trackers included."""
    drawn = Enough(CASES, dropped=2)
    for number in drawn:
        rng = random.Random(f"{SEED}/dropped/{number}")
        pattern = random_pattern(rng, 3, 0.7)
        try:
            program = program_of(pattern, SCHEMA, variables=None, strategy=Strategy.ALL)
        except LimitError:
            continue
        if not program.droppable:
            continue
        types = "".join(rng.choice("ABCXX") for _ in range(8))
        letters = letters_of(program.automaton, types)
        real = (1 << len(program.predicates)) - 1
        kept = [place for place, letter in enumerate(letters) if program.relevant(letter & real)]
        drawn.seen["dropped"] += bool(program.trackers) and len(kept) < len(types)
        shorter = by_running(program.automaton, letters_of(program.automaton, "".join(types[place] for place in kept)))
        moved = [
            (kept[start], kept[end], tuple((name, tuple(kept[p] for p in positions)) for name, positions in mapping))
            for start, end, mapping in shorter
        ]
        assert sorted(moved) == sorted(by_running(program.automaton, letters)), (SEED, number, pattern, types)


A, B, C = (Event(name) for name in "ABC")
LATER = Link(";")


def nested(strategy: Strategy, *items: Pattern) -> Pattern:
    return Sequence((Select(strategy, Sequence(items, (LATER,) * (len(items) - 1))), C), (LATER,))


def program(pattern: Pattern) -> Program:
    return program_of(pattern, SCHEMA, variables=None, strategy=Strategy.ALL)


def test_automata_are_small() -> None:
    sizes = {
        strategy: (found.automaton.states, [tracker.states for tracker in found.trackers])
        for strategy in CHOOSING
        for found in [program(nested(strategy, Iterate(A), Iterate(B)))]
    }
    assert sizes == {Strategy.NXT: (6, [2]), Strategy.LAST: (5, [2]), Strategy.MAX: (6, [2])}
    assert program(nested(Strategy.MAX, A, B)).automaton == construct(Sequence((A, B, C), (LATER, LATER)), SCHEMA)
    assert not program(Select(Strategy.NXT, A)).trackers


@pytest.mark.parametrize(("name", "words"), [("MAX_RELATIONS", "states"), ("MAX_TRACKER_STATES", "tracker"), ("MAX_CUBES", "transitions")])
def test_limits_are_named(monkeypatch: pytest.MonkeyPatch, name: str, words: str) -> None:
    monkeypatch.setattr(strategies, name, 1)
    with pytest.raises(LimitError, match=name) as error:
        select(construct(Sequence((A, Iterate(B)), (LATER,)), SCHEMA), Strategy.NXT)
    assert words in str(error.value)
    assert "shorter pattern" in str(error.value)


TYPES = [f"T{number}" for number in range(60)]


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT MAX * WHERE {' ; '.join(TYPES)}",
        f"SELECT MAX * WHERE {' ; '.join(TYPES)} WITHIN 100 EVENTS",
        f"SELECT MAX * WHERE {' : '.join(TYPES)}",
        f"SELECT MAX * WHERE {' OR '.join(TYPES)}",
        f"SELECT MAX * WHERE ({' OR '.join(TYPES)})+",
        f"SELECT * WHERE {' ; '.join(TYPES)}",
        "SELECT * WHERE NXT(A{50}) ; B",
        "SELECT * WHERE LAST(A{50}) ; B",
        f"SELECT * WHERE {'(' * 90}A{''.join(f' AS x{number})' for number in range(90))}",
    ],
    ids=["MAX of ;", "MAX of ; in a window", "MAX of :", "MAX of OR", "MAX of (OR)+", "a sequence", "NXT of A{50}", "LAST of A{50}", "AS"],
)
def test_long_patterns_compile_soon(text: str) -> None:
    """Half a second of the processor is the aim, three times as much the bound."""
    query, schema = cepheid.query(text), schema_of(pa.schema([("type", pa.string()), ("ts", pa.int64())]))
    with within(1.5):
        query.compiled(schema)


def test_trackers_and_predicates_share_a_letter() -> None:
    choices = [nested(Strategy.NXT, Event(f"A{n}"), Event(f"B{n}")) for n in range(58)]
    assert [program(Or(tuple(choices[:count]))).bits for count in (20, 21, 55)] == [6 + 20, 6 + 21, 7 + 55]
    assert not program(Or(tuple(choices[:55]))).automaton.parts
    assert len(program(Or(tuple(choices[:58]))).automaton.parts) == 3, "what has no room in a letter is chosen in the match graph"
    types = [program(Or(tuple(Event(f"T{n}") for n in range(count)))) for count in (61, 62)]
    ends = [end_program(each, variables=None, strategy=Strategy.NXT) for each in types]
    assert [(each.bits, each.chosen.bits) for each in ends] == [(6, 7), (6, 7)], "a program and what chooses read the same letters"


def test_fingerprints_differ_by_strategy_and_what_is_shown() -> None:
    base = program(Sequence((Iterate(A), Iterate(B)), (Link(";"),)))
    found = [end_program(base, variables=shown, strategy=strategy) for shown in (None, ("A",)) for strategy in CHOOSING]
    nests = [program(nested(strategy, A, Iterate(B))) for strategy in CHOOSING]
    assert len({each.fingerprint for each in [base, *found, *nests]}) == 10


def test_a_tracker_reads_its_states_off_a_letter() -> None:
    tracker = Tracker(2, 3, (Transition(0, 1, 1), Transition(1, 2, 2)))
    assert (tracker.width, tracker.mask) == (2, 0b1100)
    assert [tracker.successor(0, letter) for letter in range(4)] == [0, 1, 0, 1]
    assert tracker.states_of(0b0100, 0) == [1]
    assert tracker.states_of(0, 0b0100) == [0, 2]
    assert [tracker.possible(state << 2, ~state << 2 & 0b1100) for state in range(4)] == [True, True, True, False]
