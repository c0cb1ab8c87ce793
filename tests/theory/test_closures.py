"""Closure of automata with registers: hand-written automata, combined, against the definition (register-match-automata, Theorem 12).

`by_definition` has the paper's Definition 11 as sets of matches. What is not closed is shown by sets of words that tell all configurations of an
automaton with few registers apart: docs/theory/registers.md has the argument.
"""

from __future__ import annotations

import importlib
import itertools
import random
from math import comb
from typing import TYPE_CHECKING

import pytest
from enough import Enough
from pattern_cases import CASES, SEED
from register_cases import (
    ALL,
    FIGURE_1,
    FORBIDDEN_FIRST,
    GUARD,
    HIDDEN,
    HUMIDITY,
    SCHEMA,
    SEVERAL,
    STALE,
    TEMPERATURE,
    X,
    Y,
    by_hand,
    random_events,
    store,
    stream_of,
)

import cepheid
from cepheid.automata import Automaton, Transition, construct
from cepheid.automata.supports import labelling
from cepheid.automata.transform import hide
from cepheid.errors import LimitError, NotSupportedError
from cepheid.testing import generators, runs
from cepheid.testing.denotation import Match
from cepheid.testing.harness import events_of
from cepheid.theory import concatenation, intersection, iteration, union
from cepheid.theory.closures import check_invariants

if TYPE_CHECKING:
    from collections.abc import Iterable


construction = importlib.import_module("cepheid.automata.fragment")
"""The module; the package has a function of that name."""


def joined(first: Match, second: Match) -> Match:
    mapping: dict[str, set[int]] = {}
    for name, places in (*first.mapping, *second.mapping):
        mapping.setdefault(name, set()).update(places)
    return Match(first.start, second.end, tuple((name, tuple(sorted(mapping[name]))) for name in sorted(mapping)))


def one_after_the_other(left: Iterable[Match], right: Iterable[Match]) -> set[Match]:
    return {joined(first, second) for first, second in itertools.product(left, right) if first.end < second.start}


def by_definition(left: set[Match], right: set[Match]) -> dict[str, set[Match]]:
    chains, longer = set(left), set(left)
    while longer:
        longer = one_after_the_other(longer, left) - chains
        chains |= longer
    return {"union": left | right, "concatenation": one_after_the_other(left, right), "iteration": chains, "intersection": left & right}


def combined(left: Automaton, right: Automaton) -> dict[str, Automaton]:
    return {
        "union": union(left, right),
        "concatenation": concatenation(left, right),
        "iteration": iteration(left),
        "intersection": intersection(left, right),
    }


# ------------------------------------------------------------------------------------------------------------ what is closed


@pytest.mark.parametrize(("left", "right"), list(itertools.product(ALL, repeat=2)))
def test_hand_written_automata_combine_as_defined(left: str, right: str) -> None:
    rng = random.Random(f"{SEED} {left} {right}")
    automata = combined(ALL[left], ALL[right])
    for automaton in automata.values():
        check_invariants(automaton)
    matched = dict.fromkeys(automata, 0)
    for case in itertools.count():
        if case >= CASES // 8 and matched["union"] and matched["iteration"]:
            break
        assert case < 100 * CASES, matched
        stream = random_events(rng)
        expected = by_definition(runs.matches(hide(ALL[left]), stream), runs.matches(hide(ALL[right]), stream))
        for name, automaton in automata.items():
            assert runs.matches(hide(automaton), stream) == expected[name], (name, stream)
            matched[name] += bool(expected[name])


def test_results_combine_again() -> None:
    """Closed: what comes out goes in."""
    rng = random.Random(f"{SEED} again")
    twice = union(iteration(FIGURE_1), concatenation(STALE, HIDDEN))
    whole = iteration(intersection(twice, union(twice, SEVERAL)))
    drawn = Enough(CASES, matched=2)
    for _ in drawn:
        stream = random_events(rng)
        one, two, three, four = (runs.matches(hide(each), stream) for each in (FIGURE_1, STALE, HIDDEN, SEVERAL))
        inner = by_definition(one, set())["iteration"] | one_after_the_other(two, three)
        expected = by_definition(inner & (inner | four), set())["iteration"]
        assert runs.matches(hide(whole), stream) == expected, stream
        drawn.seen["matched"] += bool(expected)


def test_parts_do_not_combine() -> None:
    schema = cepheid.query("SELECT * WHERE A").schema(generators.SCHEMA, type="type", time="ts")
    automaton = construct(cepheid.query("SELECT * WHERE LAST(A ;[<= 5] B) ; C").bound(schema).pattern, schema)
    with pytest.raises(NotSupportedError, match="cannot choose inside the pattern"):
        union(automaton, automaton)


@pytest.mark.parametrize("fragment", ["guarded", "nested"])
def test_random_automata_combine_as_defined(fragment: str) -> None:
    """Automata of patterns with conditions between events, gaps and windows; and, nested, with trackers."""
    rng, wanted = random.Random(f"{SEED} closures {fragment}"), dict.fromkeys(combined(FIGURE_1, FIGURE_1), 1)
    schema = cepheid.query("SELECT * WHERE A").schema(generators.SCHEMA, type="type", time="ts")
    drawn = Enough(CASES // 2, tracked=fragment == "nested", **wanted)
    for _ in drawn:
        automata: list[Automaton] = []
        while len(automata) < 2:
            text = generators.random_query(rng, fragment=generators.GUARDED if fragment == "guarded" else generators.NESTED)
            try:
                automaton = construct(cepheid.query(text).bound(schema).pattern, schema)
            except (LimitError, NotSupportedError):
                continue
            automata += [] if automaton.parts else [automaton]  # `test_parts_do_not_combine`
        stream = events_of(generators.random_stream(rng, most=5), schema)
        found = [runs.matches(hide(each), stream) for each in automata]
        if not found[0] or max(map(len, found)) > 20:
            continue
        # Half of the time both are the same, or their intersection would be empty.
        if rng.random() < 0.5:
            automata[1], found[1] = union(*automata), found[0] | found[1]
        expected = by_definition(*found)
        for name, automaton in combined(*automata).items():
            assert runs.matches(hide(automaton), stream) == expected[name], (name, automata, stream)
            drawn.seen[name] += bool(expected[name])
        drawn.seen["tracked"] += any(each.trackers for each in automata)
    assert bool(drawn.seen["tracked"]) == (fragment == "nested")


def test_an_intersection_hides_what_no_variable_shows() -> None:
    """An event with an empty mark inside a match is not in its mapping, so a match without it is the same one."""
    hidden = by_hand(Transition(0, 1, HUMIDITY, X), Transition(1, 2, TEMPERATURE, frozenset()), Transition(2, 3, HUMIDITY, Y))
    passed = by_hand(Transition(0, 1, HUMIDITY, X), Transition(1, 1), Transition(1, 2, HUMIDITY, Y))
    stream = stream_of("H(id=1) T(id=1) H(id=1)")
    assert runs.matches(hide(intersection(hidden, passed)), stream) == {Match(0, 2, (("x", (0,)), ("y", (2,))))}


def test_predicates_are_shared_and_registers_are_not() -> None:
    found = concatenation(FIGURE_1, FIGURE_1)
    assert found.predicates == FIGURE_1.predicates
    assert found.alphabet.names == ("r1, 1", "r1, 2")
    assert [guard.reads for guard in found.alphabet.guards] == [{0}, {1}]
    assert (iteration(FIGURE_1).states, union(FIGURE_1, FIGURE_1).states, found.states) == (4, 5, 5)


def test_what_a_begun_match_finds_empty_is_not_asked() -> None:
    found = iteration(STALE)
    asked = {move.requires & 2 * GUARD - 1 for move in found.outgoing[found.initial]}
    assert asked == {0, HUMIDITY}
    assert iteration(FORBIDDEN_FIRST).outgoing[0][0].requires == HUMIDITY


@pytest.mark.parametrize(
    ("automaton", "fact"),
    [
        (by_hand(Transition(0, 0), Transition(0, 1, 0, X)), "enters the initial state"),
        (by_hand(Transition(0, 1, 0, X), Transition(1, 2, 0, X), Transition(2, 1)), "leaves a final state"),
        (by_hand(Transition(0, 1), Transition(1, 2, 0, X)), "begins a match and does not mark"),
        (by_hand(Transition(0, 1, 0, X), Transition(1, 2)), "ends a match and does not mark"),
    ],
)
def test_automata_that_do_not_keep_the_invariants_are_refused(automaton: Automaton, fact: str) -> None:
    for refuse in (iteration, lambda each: union(FIGURE_1, each), lambda each: concatenation(each, each)):
        with pytest.raises(NotSupportedError, match=fact):
            refuse(automaton)


def test_automata_of_one_support_are_refused() -> None:
    plain = construct(cepheid.query("SELECT * WHERE T ; H").bound(SCHEMA).pattern, SCHEMA)
    check_invariants(plain)
    with pytest.raises(NotSupportedError, match="one support"):
        check_invariants(labelling(cepheid.automata.Program(plain), ["T"]).automaton)


def test_an_intersection_that_needs_too_many_states_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(construction, "MAX_STATES", 6)
    with pytest.raises(LimitError, match="more than 6 automaton states"):
        intersection(FIGURE_1, FIGURE_1)


# -------------------------------------------------------------------------------------------------------- what is not closed

SIZE = 4
"""Different ids of the words below."""

HALVES = [frozenset(half) for half in itertools.combinations(range(SIZE), SIZE // 2)]
EVERY = [frozenset(some) for size in range(SIZE + 1) for some in itertools.combinations(range(SIZE), size)]


def word(kind: str, ids: Iterable[int]) -> list[dict[str, object]]:
    return [{"type": kind, "id": number} for number in sorted(ids)]


def configurations(states: int, registers: int, events: int) -> int:
    """What an automaton can be in after some of so many events: a state, and in each register one of the events or nothing."""
    return states * (events + 1) ** registers


@pytest.mark.parametrize(("states", "registers"), [(1, 0), (10, 1), (100, 3), (1_000_000, 10)])
def test_some_number_of_events_is_too_large_for_any_automaton(states: int, registers: int) -> None:
    """So two of the words below lead some accepting runs to one configuration, and what follows one of them may follow the other."""
    events = next(events for events in itertools.count(2, 2) if comb(events, events // 2) > configurations(states, registers, events))
    assert 2**events > comb(events, events // 2) > configurations(states, registers, events)


def test_determinization_must_keep_each_set_of_events_apart() -> None:
    """The automaton of Figure 1: after two different sets of events other ids end a match. A deterministic automaton is in one configuration."""
    residuals = {
        some: frozenset(
            number for number in range(SIZE) if runs.matches(FIGURE_1, events_of(word("T", some) + word("H", [number]), SCHEMA))
        )
        for some in EVERY
    }
    assert residuals == {some: some for some in EVERY}
    assert len(set(residuals.values())) == 2**SIZE


SOME_TWO_ALIKE = by_hand(
    Transition(0, 1, 0, X),
    Transition(0, 2, 0, X, writes=store(0)),
    Transition(1, 1, 0, X),
    Transition(1, 2, 0, X, writes=store(0)),
    Transition(2, 2, 0, X),
    Transition(2, 3, GUARD, X),
    Transition(2, 4, GUARD, X),
    Transition(3, 3, 0, X),
    Transition(3, 4, 0, X),
)
"""Of consecutive events, all of them marked, some two have one id. In its complement all ids differ."""


def test_a_complement_must_keep_each_half_of_the_events_apart() -> None:
    """All events of a word are a match of the complement if their ids differ: those of a half go with the other half, and with no other one."""
    for first, last in itertools.product(HALVES, repeat=2):
        stream = events_of(word("T", first) + word("T", frozenset(range(SIZE)) - last), SCHEMA)
        in_complement = tuple(range(SIZE)) not in {match.support for match in runs.matches(SOME_TWO_ALIKE, stream)}
        assert in_complement == (first == last)


UNMARKED = by_hand(
    Transition(0, 1, TEMPERATURE, None, writes=store(0)),
    Transition(1, 1),
    Transition(1, 2, HUMIDITY | GUARD, Y),
)
"""Marks an event whose id an earlier event has, which it does not mark. In the paper's model this is an automaton; here it is none."""


def test_the_kleene_closure_of_the_paper_must_keep_each_half_of_the_events_apart() -> None:
    """By Definition 11 each part is a match from the stream's beginning. So all events H together are in the closure if each has an event T.

    A construction that goes back to the start asks for a T after each H. Theorem 12 holds for automata that store nothing before their first mark.
    """
    for first, last in itertools.product(HALVES, repeat=2):
        stream = events_of(word("T", first) + word("H", last), SCHEMA)
        closure = by_definition(runs.matches(UNMARKED, stream), set())["iteration"]
        assert (tuple(range(SIZE // 2, SIZE)) in {match.support for match in closure}) == (first == last)
    with pytest.raises(NotSupportedError, match="begins a match and does not mark"):
        iteration(UNMARKED)


def test_a_link_is_not_the_concatenation_of_the_paper_where_an_unmarked_event_counts() -> None:
    """The second event of a stream is a match of the right automaton; one begun behind the left match marks the third."""
    second = by_hand(Transition(0, 1), Transition(1, 2, 0, Y))
    first = by_hand(Transition(0, 1, 0, X))
    stream = events_of(word("T", range(3)), SCHEMA)
    from_the_beginning = {Match(1, 1, (("y", (1,)),))}
    assert one_after_the_other({Match(0, 0, (("x", (0,)),))}, from_the_beginning) == {Match(0, 1, (("x", (0,)), ("y", (1,))))}
    behind = runs.matches(second, stream[1:])
    assert {match.start + 1 for match in behind} == {2}
    with pytest.raises(NotSupportedError, match="begins a match and does not mark"):
        concatenation(first, second)
