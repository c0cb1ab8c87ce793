"""The classes of timed-cel: the examples of the paper, and random automata against the definitions."""

from __future__ import annotations

import dataclasses
import itertools
import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from clock_cases import (
    CASES,
    LONGEST,
    NOT_DETERMINIZABLE,
    SCHEMA,
    SEED,
    T1,
    T2,
    TYPES,
    A,
    B,
    after,
    built,
    clock_automaton,
    later,
    occurrences,
    passes,
    random_automaton,
    random_pattern,
    random_windowed,
)
from enough import Enough

import cepheid
from cepheid.automata import Automaton, construct, trim
from cepheid.automata.alphabet import Predicate
from cepheid.automata.predicates import can_hold
from cepheid.errors import LimitError, NotSupportedError
from cepheid.logical.plan import Apply, Field, Literal
from cepheid.logical.types import FLIPPED
from cepheid.testing.evaluate import Event as Occurrence
from cepheid.testing.evaluate import holds
from cepheid.theory import (
    classes,
    classify,
    has_synchronous_resets,
    is_deterministic,
    is_simple,
    is_timed_cel,
    is_windowed,
    monotonic_in,
)

if TYPE_CHECKING:
    from clock_cases import Move, Valuation

    from cepheid.automata import Transition


# ------------------------------------------------------------------------------------------------------- the examples of the paper


def test_examples_4_1_5_1_5_2_and_6_2_one_clock_synchronous_and_monotonic_but_not_deterministic() -> None:
    found = classify(T1)
    assert (found.clocks, found.deterministic, found.monotonic, found.synchronous) == (1, False, {"<="}, True)
    assert str(found) == "1 clock, not deterministic, monotonic, synchronous resets"
    assert not found.constant_update


def test_examples_4_2_and_5_1_two_clocks_and_deterministic() -> None:
    found = classify(T2)
    assert (found.clocks, found.deterministic, found.monotonic, found.synchronous) == (2, True, {"<="}, True)
    assert not found.constant_update


def test_the_formula_that_is_not_determinizable_has_no_synchronous_resets() -> None:
    assert str(classify(NOT_DETERMINIZABLE)) == "1 clock, not deterministic, not monotonic, no synchronous resets"


def test_a_chain_with_one_gap_has_constant_update() -> None:
    assert classify(built("A AS x ;[<= 2] B AS y")).constant_update
    assert classify(built("A AS x ;[>= 2] B AS y")).constant_update
    assert not classify(built("A AS x ;[1, 2] B AS y")).constant_update


@pytest.mark.parametrize(
    ("tests", "expected"),
    [
        ([], {"<=", ">="}),
        ([(0, 0, None)], {"<=", ">="}),
        ([(0, 0, 2)], {"<="}),
        ([(0, 2, None)], {">="}),
        ([(0, 0, 2), (1, 0, 1)], {"<="}),
        ([(0, 0, 2), (1, 1, None)], set()),
        ([(0, 1, 2)], set()),
        ([(0, 0, 2), (0, 1, None)], set()),
        ([(0, 0, 1, False)], {">="}),
        ([(0, 1, 1, False)], set()),
        ([(0, 2, 1)], set()),
    ],
)
def test_monotonic_conditions_are_bounds_of_one_direction(tests: list[tuple[int, ...]], expected: set[str]) -> None:
    assert monotonic_in(clock_automaton([(0, 1, A, (), "x", [0, 1]), (1, 2, B, tests, "y", ())], [2])) == expected


def test_bounds_of_both_directions_on_different_transitions_are_not_monotonic() -> None:
    moves = [(0, 1, A, (), "x", [0]), (1, 2, B, [(0, 0, 2)], "y", ()), (2, 3, B, [(0, 2, None)], "y", ())]
    assert monotonic_in(clock_automaton(moves, [3])) == set()


# ------------------------------------------------------------------------------------------------------ what the paper leaves open


def test_an_event_without_a_mark_and_one_with_an_empty_mark_have_one_output() -> None:
    moves = [(0, 1, A, (), "x", ()), (1, 1, 0, (), None, ()), (1, 2, B, (), "", ())]
    assert not is_deterministic(clock_automaton(moves, [2]))
    assert is_deterministic(clock_automaton([*moves[:2], (1, 2, B, (), "y", ())], [2]))


def test_dead_ends_count_for_synchronous_resets() -> None:
    """The definition speaks of runs that need not be accepting; `trim` leaves an automaton with the same matches that is synchronous."""
    moves = [(0, 1, A, (), "x", [0]), (1, 2, B, [(0, 0, 1)], "y", ()), (0, 3, A, (), "x", ())]
    automaton = clock_automaton(moves, [2])
    assert not has_synchronous_resets(automaton)
    assert has_synchronous_resets(trim(automaton))


def test_deterministic_is_about_transitions_and_not_about_runs() -> None:
    """Both moves at B may be enabled by some valuation, but by none that a run has: the clocks were reset together."""
    moves = [
        (0, 1, A, (), "x", [0, 1]),
        (1, 2, B, [(0, 0, 1)], "y", ()),
        (1, 3, B, [(1, 2, None)], "y", ()),
    ]
    assert not is_deterministic(clock_automaton(moves, [2, 3]))


# ------------------------------------------------------------------------------------------------- what one event may satisfy

V = Field("", ("v",), pa.int64(), pa.int64())
W = Field("", ("w",), pa.float64(), pa.float64())


def compared(leaf: Field, operator: str, constant: float) -> Apply:
    return Apply(operator, (leaf, Literal(constant, leaf.type)), pa.bool_())


@pytest.mark.parametrize(("leaf", "values"), [(V, [None, *range(-2, 5)]), (W, [None, *(step / 2 for step in range(-4, 9))])])
def test_comparisons_that_one_event_may_satisfy_and_fail(leaf: Field, values: list[float | None]) -> None:
    rng, decided = random.Random(f"{SEED} {leaf.path}"), set()
    for _ in range(CASES * 3):
        kind = int if leaf is V else float
        asked = [(compared(leaf, rng.choice(list(FLIPPED)), kind(rng.randint(0, 2))), rng.random() < 0.6) for _ in range(rng.randint(1, 4))]
        if leaf is W and all(condition.operator in {"=", "!="} for condition, _ in asked):
            continue
        events = [Occurrence("A", 0, {"v": value, "w": value}) for value in values]
        expected = any(all(holds(condition, [event], {("", False): 0}) == wanted for condition, wanted in asked) for event in events)
        assert can_hold(asked) == expected, asked
        decided.add(expected)
    assert decided == {True, False}


def test_conditions_are_taken_apart_as_far_as_they_say_something() -> None:
    above, below, other = compared(V, ">", 1), compared(V, "<=", 1), compared(W, ">", 1.0)
    both, either = Apply("and", (above, other), pa.bool_()), Apply("or", (above, other), pa.bool_())
    assert not can_hold([(both, True), (below, True)])
    assert not can_hold([(either, False), (above, True)])
    assert not can_hold([(Apply("not", (above,), pa.bool_()), False), (below, True)])
    assert can_hold([(either, True), (below, True)])
    assert can_hold([(above, False), (below, False)]), "v may be NULL"


def test_comparisons_make_an_automaton_deterministic() -> None:
    def deciding(*operators: str) -> Automaton:
        plain = clock_automaton([(0, 1, A, (), "x", [0]), (0, 2, B, (), "x", [])], [1, 2])
        predicates = tuple(Predicate(compared(V, operator, 1)) for operator in operators)
        return dataclasses.replace(plain, alphabet=dataclasses.replace(plain.alphabet, predicates=predicates))

    assert is_deterministic(deciding(">", "<="))
    assert has_synchronous_resets(deciding(">", "<="))
    assert not is_deterministic(deciding(">", ">="))
    assert not has_synchronous_resets(deciding(">", ">="))


# ----------------------------------------------------------------------------------------------------------- against the definition


def is_deterministic_by_trying(automaton: Automaton) -> bool:
    """Every pair of transitions, at every event, for every valuation; a clock may be empty where some way to the state does not set it."""
    ways, todo = {(automaton.initial, frozenset[int]())}, [(automaton.initial, frozenset[int]())]
    while todo:
        state, held = todo.pop()
        for move in automaton.outgoing[state]:
            way = move.target, held | {store.register for store in move.writes}
            if way not in ways:
                ways.add(way)
                todo.append(way)
    for state in range(automaton.states):
        helds = [held for where, held in ways if where == state]
        ages = [
            [*range(LONGEST + 2), *([None] if any(clock not in held for held in helds) else [])]
            for clock in range(len(automaton.alphabet.registers))
        ]
        for kind, valuation in itertools.product(TYPES, itertools.product(*ages)):
            enabled = [move.mark or frozenset() for move in automaton.outgoing[state] if passes(move, kind, valuation, automaton)]
            if len(enabled) > len(set(enabled)):
                return False
    return True


def conflict(automaton: Automaton, most: int) -> bool | None:
    """Whether two runs with one output reset different clocks: over all streams of so many events; None: longer streams could.

    A pair of runs with the same resets so far has one valuation.
    """
    first = (automaton.initial, automaton.initial, (None,) * len(automaton.alphabet.registers))
    seen, layer = {first}, {first}
    for _ in range(most):
        reached = set()
        for (left, right, ages), (kind, steps) in itertools.product(layer, occurrences()):
            then = later(ages, steps)
            for one, other in itertools.product(automaton.outgoing[left], automaton.outgoing[right]):
                if (one.mark or frozenset()) == (other.mark or frozenset()) and all(
                    passes(each, kind, then, automaton) for each in (one, other)
                ):
                    if one.writes != other.writes:
                        return True
                    reached.add((one.target, other.target, after(one, then)))
        layer = reached - seen
        seen |= layer
        if not layer:
            return False
    return None


Run = tuple[int, "Valuation", tuple[frozenset[str], ...], tuple[frozenset[object], ...]]


def conflict_by_runs(automaton: Automaton, most: int) -> bool:
    """The same, from the definition: all runs over all streams of so many events, with their outputs and their resets."""
    first: Run = (automaton.initial, (None,) * len(automaton.alphabet.registers), (), ())
    todo = [(0, frozenset({first}))]
    while todo:
        length, runs = todo.pop()
        resets: dict[object, object] = {}
        for _, _, outputs, written in runs:
            if resets.setdefault(outputs, written) != written:
                return True
        if length == most:
            continue
        for kind, steps in occurrences():
            taken = frozenset(
                (move.target, after(move, later(ages, steps)), (*outputs, move.mark or frozenset()), (*written, move.writes))
                for state, ages, outputs, written in runs
                for move in automaton.outgoing[state]
                if passes(move, kind, later(ages, steps), automaton)
            )
            if taken:
                todo.append((length + 1, taken))
    return False


def parting(lower: int, upper: int) -> Automaton:
    """Two runs part at the second event; at the fourth one of them resets one clock and the other another, if both come in time."""
    moves: list[Move] = [
        (0, 1, A, (), "x", [0]),
        (1, 2, A, (), "x", ()),
        (1, 3, A, (), "x", ()),
        (2, 4, A, (), "x", [1]),
        (3, 5, A, (), "x", [1]),
        (4, 6, B, [(0, 0, 1)], "y", [0]),
        (5, 6, B, [(0, lower, upper), (1, 0, 0)], "y", [1]),
    ]
    return clock_automaton(moves, [6])


def test_resets_that_differ_late() -> None:
    assert conflict(parting(1, 2), 3) is None
    assert conflict(parting(1, 2), 4)
    assert not has_synchronous_resets(parting(1, 2))


def test_resets_that_would_differ_too_late() -> None:
    assert conflict(parting(2, 2), 9) is False
    assert has_synchronous_resets(parting(2, 2))


def monotonic_by_trying(automaton: Automaton) -> set[str]:
    """The directions in which each transition is enabled by all ages that are less, resp. greater, than some that enable it."""
    found = {"<=", ">="}
    for move in automaton.transitions:
        valuations = list(itertools.product(range(LONGEST + 2), repeat=len(automaton.alphabet.registers)))
        passing = {ages for ages in valuations if passes(move, kind_of(move), ages, automaton)}
        for name, sign in (("<=", 1), (">=", -1)):
            closed = all(
                other in passing
                for ages, other in itertools.product(passing, valuations)
                if all(sign * mine >= sign * its for mine, its in zip(ages, other, strict=True))
            )
            if not closed or not passing:
                found.discard(name)
    return found


def kind_of(move: Transition) -> str:
    return "A" if move.requires & A else "B" if move.requires & B else "X"


def test_random_automata_are_classified_as_the_definitions_say() -> None:
    rng = random.Random(f"{SEED} classes")
    drawn = Enough(CASES, deterministic=1, synchronous=1, monotonic=1)
    for number in drawn:
        automaton = random_automaton(rng, states=rng.randint(2, 4), clocks=rng.randint(0, 2))
        of = classify(automaton)
        assert of.deterministic == is_deterministic_by_trying(automaton), (SEED, number, automaton)
        assert of.monotonic == monotonic_by_trying(automaton), (SEED, number, automaton)
        assert of.synchronous != conflict(automaton, 1_000), (SEED, number, automaton)
        assert not (of.synchronous and conflict_by_runs(automaton, 2)), (SEED, number, automaton)
        assert conflict_by_runs(automaton, 2) == bool(conflict(automaton, 2)), (SEED, number, automaton)
        assert of.synchronous or not of.deterministic, "every deterministic automaton has synchronous resets"
        drawn.seen["deterministic"] += of.deterministic
        drawn.seen["synchronous"] += of.synchronous and any(move.writes for move in automaton.transitions)
        drawn.seen["monotonic"] += bool(of.monotonic) and bool(automaton.alphabet.guards)


# ------------------------------------------------------------------------------------------------------- where it does not apply


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("A AS x ; B AS y FILTER y.v > x.v", "the guard `v > (v of x)` compares more than the time since an event"),
        ("(A ; B WITHIN 5 EVENTS) ; A", "compares more than the time since an event"),
        ("A ; NXT(A+ ; B)", "a tracker depends on more than one event and the time since others"),
    ],
)
def test_no_class_of_clocks_for_what_is_no_clock(where: str, why: str) -> None:
    automaton = built(where)
    for ask in (classify, is_deterministic, monotonic_in, has_synchronous_resets):
        with pytest.raises(NotSupportedError, match="is no timed complex event automaton") as error:
            ask(automaton)
        assert why in error.value.fact


def test_a_limit_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classes, "ZONE_LIMIT", 3)
    with pytest.raises(LimitError, match="more than 3 combinations of states and zones of its clocks \\(ZONE_LIMIT\\)"):
        has_synchronous_resets(parting(2, 2))


def test_bounds_of_any_length_cost_the_same() -> None:
    """A zone is one for all valuations that bounds describe: microseconds are no more work than seconds."""
    hour = 3_600_000_000
    moves = [(0, 1, A, (), "x", [0]), (1, 1, 0, [(0, 0, hour)], None, ()), (1, 1, A, (), "x", [1]), (1, 2, B, [(1, 7, hour)], "y", ())]
    assert has_synchronous_resets(clock_automaton(moves, [2]))


# ------------------------------------------------------------------------------------------------------------------------- patterns


@pytest.mark.parametrize(
    ("where", "timed", "simple", "windowed"),
    [
        ("A", True, True, True),
        ("A ; B", True, True, True),
        ("A AS x ;[<= 2] (B+[>= 1])", True, True, True),
        ("(A :[= 1] B) OR (A AND A)", True, True, True),
        ("A ; B WITHIN 5", True, False, True),
        ("(A ;[<= 2] B WITHIN 5) FILTER A.v > 1", True, False, True),
        ("((A ;[<= 2] B WITHIN 5) OR (A ; B)) AS x WITHIN [1, 9]", True, False, True),
        ("PROJECT x (A AS x ; B)", True, False, True),
        ("PROJECT x (A AS x ; B) WITHIN 5", True, False, True),
        ("PROJECT x (A AS x ;[<= 2] B)", True, False, False),
        ("(A ; B WITHIN 5) ; A", True, False, False),
        ("(A ; B WITHIN 5)+", True, False, False),
        ("PROJECT x (A AS x ; B WITHIN 5)", True, False, False),
        ("A AS x ; B AS y FILTER y.v > x.v", False, False, False),
        ("A ; NOT B ; A", False, False, False),
        ("A ; B? ; A", False, False, False),
        ("A ; B WITHIN 5 EVENTS", False, False, False),
        ("NXT(A ; B) ; A", False, False, False),
    ],
)
def test_simple_and_windowed_patterns(where: str, timed: bool, simple: bool, windowed: bool) -> None:
    query = cepheid.query(f"SELECT * WHERE {where}")
    schema = query.schema(pa.schema([("type", pa.string()), ("ts", pa.int64()), ("v", pa.int64())]), type="type", time="ts")
    pattern = query.bound(schema).pattern
    assert (is_timed_cel(pattern), is_simple(pattern), is_windowed(pattern)) == (timed, simple, windowed)


def test_random_windowed_patterns_are_windowed_and_automata_of_patterns_are_timed() -> None:
    rng = random.Random(f"{SEED} windowed")
    for _ in range(CASES):
        assert is_windowed(random_windowed(rng, 3))
        pattern = random_pattern(rng, 3)
        assert is_timed_cel(pattern)
        assert monotonic_in(construct(pattern, SCHEMA)) <= {"<=", ">="}
