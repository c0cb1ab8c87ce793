"""Constructions and transformations, by running the automata explicitly on small streams."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import cepheid
from cepheid.automata import Automaton, Transition, construct, determinize, hide, negation, program_of, succession, trim
from cepheid.automata.transform import project
from cepheid.automata.transition import order
from cepheid.errors import BindError, LimitError, NotSupportedError, Span
from cepheid.language.syntax import Strategy
from cepheid.logical import plan
from cepheid.logical.plan import (
    And,
    Apply,
    Event,
    Field,
    Filter,
    Interval,
    Iterate,
    Link,
    Literal,
    Named,
    Or,
    Project,
    Select,
    Sequence,
    Within,
)
from cepheid.schema import EventSchema

if TYPE_CHECKING:
    from collections.abc import Sequence as Rows
    from types import ModuleType

SCHEMA = EventSchema({"type": pa.string(), "v": pa.int64()}, type_column="type")
A, B, C = (Event(name) for name in "ABC")
THEN_LATER, NEXT = Link(";"), Link(":")
Found = tuple[int, int, tuple[tuple[int, frozenset[str]], ...]]


def seq(*items: plan.Pattern, link: Link = THEN_LATER) -> Sequence:
    return Sequence(tuple(items), (link,) * (len(items) - 1))


def runs(automaton: Automaton, letters: Rows[int]) -> list[Found]:
    """(start, end, visible marks) of every accepting run, as often as there are runs."""
    found = []
    alive: list[tuple[int, tuple[tuple[int, frozenset[str]], ...]]] = []
    for position, letter in enumerate(letters):
        grown = []
        for state, marks in [*alive, (automaton.initial, ())]:
            for move in automaton.outgoing[state]:
                if move.enabled(letter):
                    after = marks if move.mark is None else (*marks, (position, move.mark))
                    grown.append((move.target, after))
                    if move.target in automaton.finals:
                        found.append((after[0][0], position, tuple(mark for mark in after if mark[1])))
        alive = grown
    return found


def letters(text: str, automaton: Automaton) -> list[int]:
    return [sum(1 << i for i, p in enumerate(automaton.predicates) if p.type == name) for name in text]


def supports(pattern: plan.Pattern, text: str) -> list[str]:
    """Matches written as start-end:positions, in order."""
    automaton = hide(construct(pattern, SCHEMA))
    return sorted(f"{s}-{e}:" + "".join(str(p) for p, _ in marks) for s, e, marks in set(runs(automaton, letters(text, automaton))))


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (A, "BAA", ["1-1:1", "2-2:2"]),
        (Event(None), "BA", ["0-0:0", "1-1:1"]),
        (seq(A, B), "ACBB", ["0-2:02", "0-3:03"]),
        (seq(A, B, link=NEXT), "ACBAB", ["3-4:34"]),
        (Or((A, seq(A, B))), "AB", ["0-0:0", "0-1:01"]),
        (Iterate(A), "ABA", ["0-0:0", "0-2:02", "2-2:2"]),
        (Iterate(A, adjacent=True), "ABAA", ["0-0:0", "2-2:2", "2-3:23", "3-3:3"]),
        (seq(Iterate(A), B), "AAB", ["0-2:012", "0-2:02", "1-2:12"]),
        (Iterate(seq(A, B)), "ABAB", ["0-1:01", "0-3:0123", "0-3:03", "2-3:23"]),
        (And((seq(A, Event(None)), seq(A, Event(None)))), "AB", ["0-1:01"]),
        (And((Named(A, "x"), A)), "A", []),
        (And((seq(Named(A, "x"), B), seq(Named(Or((A, B)), "x"), B))), "ACB", ["0-2:02"]),
        (Project(frozenset("A"), seq(A, B)), "ABB", ["0-1:0", "0-2:0"]),
        (Project(frozenset(), seq(A, B, C)), "ABBC", ["0-3:"]),
        (seq(A, Project(frozenset(), B), C), "ABBC", ["0-3:03"]),
        (Select(Strategy.STRICT, seq(A, B)), "ABB", ["0-1:01"]),
        (Select(Strategy.STRICT, Iterate(A)), "AABA", ["0-0:0", "0-1:01", "1-1:1", "3-3:3"]),
        (Select(Strategy.STRICT, Project(frozenset("AC"), seq(A, B, C))), "ABC", []),
        (Select(Strategy.STRICT, Project(frozenset("BC"), seq(A, B, C))), "ACBCC", ["0-3:23"]),
        (Select(Strategy.STRICT, Project(frozenset(), seq(A, B))), "ACB", ["0-2:"]),
        (seq(Select(Strategy.STRICT, seq(A, B)), C), "ABBC", ["0-3:013"]),
        (And((Project(frozenset("AC"), seq(A, B, C)), Project(frozenset("AC"), seq(A, C)))), "ACBC", ["0-3:03"]),
    ],
)
def test_matches(pattern: plan.Pattern, text: str, expected: list[str]) -> None:
    assert supports(pattern, text) == expected


def random_pattern(rng: random.Random, depth: int) -> plan.Pattern:
    if depth == 0 or rng.random() < 0.15:
        event: plan.Pattern = rng.choice([A, B, C, Event(None)])
        return Named(event, rng.choice("xy")) if rng.random() < 0.4 else event
    smaller = depth - 1
    kind = rng.randrange(8)
    if kind <= 2:
        links = tuple(rng.choice([THEN_LATER, THEN_LATER, NEXT]) for _ in range(rng.randint(1, 2)))
        return Sequence(tuple(random_pattern(rng, smaller) for _ in range(len(links) + 1)), links)
    if kind == 3:
        return Or((random_pattern(rng, smaller), random_pattern(rng, smaller)))
    if kind == 4:
        return Iterate(random_pattern(rng, smaller), adjacent=rng.random() < 0.3)
    if kind == 5:
        return And((random_pattern(rng, smaller), random_pattern(rng, smaller)))
    if kind == 6:
        return Project(frozenset(rng.sample(["A", "B", "x", "y"], rng.randint(0, 2))), random_pattern(rng, smaller))
    return Select(Strategy.STRICT, random_pattern(rng, smaller))


def test_determinization_keeps_the_complex_events_and_has_one_run_for_each() -> None:
    rng = random.Random(20)
    shared = 0
    for _ in range(300):
        automaton = hide(construct(random_pattern(rng, 3), SCHEMA))
        deterministic = determinize(automaton)
        for first, second in itertools.combinations(deterministic.transitions, 2):
            if first.source == second.source and first.mark == second.mark:
                assert (first.requires & second.forbids) or (second.requires & first.forbids)
        stream = letters("".join(rng.choice("ABC") for _ in range(6)), automaton)
        many, once = runs(automaton, stream), runs(deterministic, stream)
        assert Counter(once) == Counter(set(many))
        shared += len(many) > len(once)
    assert shared >= 5  # or the test would not show that determinization removes duplicate runs


def test_trim_leaves_only_states_on_a_way_and_numbers_the_initial_state_0() -> None:
    moves = (Transition(2, 1, 1, frozenset("A")), Transition(2, 3, 1, frozenset("A")), Transition(0, 1, 1, frozenset("A")))
    trimmed = trim(Automaton(4, 2, frozenset({1}), order(moves)))
    assert (trimmed.states, trimmed.initial, trimmed.finals) == (2, 0, frozenset({1}))
    assert trimmed.transitions == (Transition(0, 1, 1, frozenset("A")),)


def test_equal_predicates_share_a_bit_whatever_their_variable() -> None:
    def above(variable: str) -> Filter:
        field = Field(variable, ("v",), pa.int64(), pa.int64())
        return Filter(Event(variable), (Apply(">", (field, Literal(3, pa.int64())), pa.bool_()),))

    automaton = construct(seq(above("A"), above("B")), SCHEMA)
    assert [p.type or "condition" for p in automaton.predicates] == ["A", "condition", "B"]


def test_a_false_condition_empties_its_branch() -> None:
    never = Filter(B, (Literal(None, pa.bool_()),))
    assert construct(seq(A, never), SCHEMA).transitions == ()
    assert supports(Or((A, never)), "AB") == ["0-0:0"]


def test_a_single_stream_needs_no_type_test() -> None:
    schema = EventSchema({"v": pa.int64()}, stream="flights")
    assert construct(Event("flights"), schema).predicates == ()


def test_outside_the_fragment_the_operator_is_named() -> None:
    with pytest.raises(NotSupportedError, match="the nested strategy RESTRICTED") as error:
        construct(Select(Strategy.RESTRICTED, A), SCHEMA)
    assert 'engine="reference"' in str(error.value)


@pytest.mark.parametrize(
    "pattern",
    [
        seq(A, Within(B, Interval(0, 5))),
        Sequence((A, B), (Link(";", Interval(0, 5)),)),
        Iterate(A, gap=Interval(0, 1)),
        Sequence((A, B), (Link("THEN"),)),
    ],
)
def test_time_inside_a_pattern_needs_events_with_times(pattern: plan.Pattern) -> None:
    with pytest.raises(BindError, match="needs events with times") as error:
        construct(pattern, SCHEMA)
    assert "time=" in str(error.value)


def test_limits_are_named() -> None:
    types = tuple(Event(f"T{i}") for i in range(63))
    assert construct(Or(types), SCHEMA).alphabet.bits == 6, "types share the bits of a number"
    field = Field("A", ("v",), pa.int64(), pa.int64())
    conditions = [Filter(A, (Apply(">", (field, Literal(number, pa.int64())), pa.bool_()),)) for number in range(62)]
    fits = construct(Or(tuple(conditions[:61])), SCHEMA).alphabet
    assert (fits.bits, fits.number_bits) == (62, 0)
    long = construct(Or(tuple(conditions)), SCHEMA).alphabet
    assert (long.spelling_bits, long.bits, long.number_bits) == (63, 32, 32), "what has no room in a letter has a number"
    with pytest.raises(LimitError, match="MAX_STATES"):
        construct(seq(*[A] * 10_001), SCHEMA)


def test_waiting_says_whether_irrelevant_events_may_be_dropped() -> None:
    assert construct(seq(A, Iterate(B)), SCHEMA).waiting
    assert not construct(seq(A, B, link=NEXT), SCHEMA).waiting
    assert not construct(seq(Select(Strategy.STRICT, seq(A, B)), C), SCHEMA).waiting


def test_program_labels_relevance_and_fingerprint() -> None:
    pattern = seq(Named(A, "x"), Named(B, "y"))
    program = program_of(pattern, SCHEMA, variables=("y",), strategy=Strategy.ALL)
    assert program.label_sets == (frozenset(), frozenset({"y"}))
    assert [program.relevant(letter) for letter in (0, 1, 2, 3)] == [False, True, True, True]
    assert program.droppable
    ((label, macro),), unmarked = program.successors(program.initial, 1)
    assert (label, unmarked, program.accepts(macro)) == (0, 0, False)
    assert program.fingerprint != program_of(pattern, SCHEMA, variables=("x",), strategy=Strategy.ALL).fingerprint
    assert program.fingerprint == program_of(pattern, SCHEMA, variables=("y",), strategy=Strategy.ALL).fingerprint


def test_projection_of_the_whole_leaves_no_duplicates() -> None:
    automaton = hide(project(construct(seq(A, B, C), SCHEMA), ("A", "C")))
    assert len(set(runs(automaton, letters("ABBC", automaton)))) == 1


def test_what_needs_too_large_a_complement_is_asked_for_by_a_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    beside = (plan.Unless(seq(A, B), C), plan.Unless(seq(A, B, A), seq(C, C)))
    patterns = (Sequence((A, B), (Link(";", without=seq(C, C)),)), *beside)
    assert not any(construct(pattern, SCHEMA).negated for pattern in patterns)
    with monkeypatch.context() as small:
        small.setattr(negation, "MAX_COMPLEMENT", 1)
        assert all(construct(pattern, SCHEMA).negated for pattern in patterns)
    monkeypatch.setattr(negation, "MAX_BESIDE", 2)
    assert all(construct(pattern, SCHEMA).negated for pattern in beside)


def test_all_has_no_events_of_two_types_and_a_limit() -> None:
    types = [Event(f"T{number}") for number in range(20)]
    automaton = construct(plan.All(tuple(types[:5])), SCHEMA)
    assert len(automaton.transitions) == 2**5 - 2 + 5 * 2**4
    with pytest.raises(LimitError, match="MAX_MOVES") as error:
        construct(plan.All(tuple(types), span=Span(3, 9)), SCHEMA)
    assert error.value.span == Span(3, 9)


@pytest.mark.parametrize(
    ("module", "name", "most"), [(negation, "MAX_COMPLEMENT", 1), (succession, "MAX_TRACKER_STATES", 1), (succession, "MAX_BESIDE", 2)]
)
def test_guards_ask_under_point_where_letters_take_too_many_states(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str, most: int
) -> None:
    table = pa.table({"type": list("BACBACC"), "ts": [1, 2, 3, 3, 4, 5, 5]})
    query = cepheid.query("SELECT * WHERE A THEN (B ; C) TIME MODEL POINT")
    assert not query.compiled(query.schema(table.schema)).program.automaton.negated
    monkeypatch.setattr(module, name, most)
    again = cepheid.query(query.text.replace("A THEN", "A  THEN"))
    assert again.compiled(again.schema(table.schema)).program.automaton.negated
    found = [sorted(map(str, each)) for each in (again.run(table), query.run(table), query.run(table, engine="reference"))]
    assert found[0] == found[1] == found[2] != []


@pytest.mark.parametrize("model", ["ACTIVE_OFFICE", "COMPLETE_HISTORY"])
@pytest.mark.parametrize("name", ["MAX_COMPLEMENT", "MAX_TRACKER_STATES", "MAX_BESIDE"])
def test_an_evaluation_chooses_what_is_next_where_letters_take_too_many_states(
    monkeypatch: pytest.MonkeyPatch, name: str, model: str
) -> None:
    table = pa.table({"type": list("ABBCACBCC"), "ts": [1, 2, 3, 4, 4, 5, 6, 7, 7]})
    query = cepheid.query(f"SELECT * WHERE A THEN (B ; C) TIME MODEL {model}")
    schema = query.schema(table.schema)
    assert not query.compiled(schema).program.automaton.parts
    monkeypatch.setattr(succession, name, 1)
    again = cepheid.query(query.text.replace("A THEN", "A  THEN"))
    assert again.compiled(schema).program.automaton.parts
    found = [sorted(map(str, each)) for each in (again.run(table), query.run(table), query.run(table, engine="reference"))]
    assert found[0] == found[1] == found[2] != []
