"""Determinization with registers: slots, regions, dominance, limits, on automata written by hand."""

from __future__ import annotations

import dataclasses

import pyarrow as pa
import pytest

from cepheid.automata import Automaton, Transition, regions
from cepheid.automata.alphabet import Alphabet, Guard, Predicate
from cepheid.automata.liveness import GuardedMove, live_registers
from cepheid.automata.regions import Regions
from cepheid.automata.registers import Before, Compares, Elapsed, Gathered, Now, Register, Store
from cepheid.automata.transition import order
from cepheid.errors import LimitError
from cepheid.logical.plan import Field, Interval, Time

V = Field("", ("v",), pa.int64(), pa.int64())
T = Time("", pa.int64())
A, B = 1, 2
GUARD = 4
X, Y = frozenset({"x"}), frozenset({"y"})


def automaton(moves: list[Transition], *tests: Compares | Elapsed, finals: tuple[int, ...] = (2,), registers: int = 2) -> Automaton:
    guards = tuple(Guard(2 + number, test) for number, test in enumerate(tests))
    alphabet = Alphabet(
        (Predicate(None, "A"), Predicate(None, "B")), guards=guards, registers=tuple(Register(f"r{number}") for number in range(registers))
    )
    states = 1 + max(max(move.source, move.target) for move in moves)
    return Automaton(states, 0, frozenset(finals), order(moves), alphabet)


def writes(*stores: tuple[int, object]) -> frozenset[Store]:
    return frozenset(Store(register, term) for register, term in stores)


SEQUENCE = [
    Transition(0, 1, A, X, writes=writes((0, Now(V)))),
    Transition(1, 1),
    Transition(1, 2, B | GUARD, Y),
]


def test_a_guard_divides_the_groups_and_what_can_do_nothing_is_dropped() -> None:
    found = Regions(automaton(SEQUENCE, Compares(Before(0), "<", V)))
    begun = found.step(found.initial, A)
    (region,) = begun.marked
    ((macro, places),) = region.targets
    assert (region.made, places, region.final, begun.unmarked) == ((Now(V),), (0,), False, ())
    assert macro.configurations == ((1, ((0, 0),)),)
    step = found.step(macro, B)
    (end,) = step.marked
    assert (end.literals, end.final, end.targets, end.made) == (((Compares(Before(0), "<", V), True),), True, (), ())
    assert step.unmarked is None, "they wait"
    assert found.step(macro, A).marked == ()


def test_guards_in_a_mask_say_nothing() -> None:
    found = Regions(automaton(SEQUENCE, Compares(Before(0), "<", V)))
    macro, _ = found.step(found.initial, A).marked[0].targets[0]
    assert found.step(macro, B) is found.step(macro, B | GUARD)


def test_equal_values_of_one_event_are_one_slot() -> None:
    """Two branches with registers of their own: one output, two configurations, one slot."""
    moves = [
        Transition(0, 1, A, X, writes=writes((0, Now(V)))),
        Transition(0, 2, A, X, writes=writes((1, Now(V)))),
        Transition(1, 3, B | GUARD, Y),
        Transition(2, 3, B | GUARD << 1, Y),
    ]
    found = Regions(automaton(moves, Compares(Before(0), "<", V), Compares(Before(1), "=", V), finals=(3,)))
    (region,) = found.step(found.initial, A).marked
    ((macro, _),) = region.targets
    assert macro.configurations == ((1, ((0, 0),)), (2, ((1, 0),)))
    # Both guards read slot 0: where one holds, the other one is not asked only if nothing waits for it.
    assert [region.literals for region in found.step(macro, B).marked] == [
        ((Compares(Before(0), "<", V), True), (Compares(Before(0), "=", V), True)),
        ((Compares(Before(0), "<", V), True), (Compares(Before(0), "=", V), False)),
        ((Compares(Before(0), "<", V), False), (Compares(Before(0), "=", V), True)),
    ]


def test_what_is_empty_is_not_asked() -> None:
    moves = [Transition(0, 1, A, X), Transition(1, 2, B | GUARD, Y)]
    found = Regions(automaton(moves, Compares(Before(0), "<", V)))
    macro, _ = found.step(found.initial, A).marked[0].targets[0]
    assert [region.literals for region in found.step(macro, B).marked] == [()]
    moves[1] = dataclasses.replace(moves[1], requires=B, forbids=GUARD)
    found = Regions(automaton(moves, Compares(Before(0), "<", V)))
    macro, _ = found.step(found.initial, A).marked[0].targets[0]
    assert found.step(macro, B).marked == ()


def test_registers_are_live_until_they_are_read() -> None:
    moves = [*SEQUENCE, Transition(0, 3, A, X, writes=writes((0, Now(V)))), Transition(3, 1, B, Y, writes=writes((0, Now(V)), (1, Now(V))))]
    alphabet = automaton(moves, Compares(Before(0), "<", V)).alphabet
    found = live_registers(GuardedMove.of(move, alphabet) for move in moves)
    assert found == {0: frozenset(), 1: {0}, 2: frozenset(), 3: frozenset()}


def inner_window(interval: Interval) -> Automaton:
    """`((x+) WITHIN interval)+`: the output does not say where a window began."""
    moves = [
        Transition(0, 1, A, X, writes=writes((0, Now(T)))),
        Transition(1, 1),
        Transition(1, 1, A, X),
        Transition(1, 1, A, X, writes=writes((0, Now(T)))),
        Transition(1, 2, B | GUARD, Y),
    ]
    return automaton(moves, Elapsed(Before(0), T, interval), registers=1)


@pytest.mark.parametrize(("interval", "kept"), [(Interval(0, 5), Now(T)), (Interval(3, None), Before(0))])
def test_the_better_start_replaces_the_other(interval: Interval, kept: object) -> None:
    found = Regions(inner_window(interval))
    macro, _ = found.step(found.initial, A).marked[0].targets[0]
    (region,) = found.step(macro, A).marked
    assert region.made == (kept,)
    assert region.targets == ((macro, (0,)),)


def test_a_window_with_two_bounds_keeps_both_starts_until_they_go_their_own_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regions, "SHARED_LIMIT", 2)
    found = Regions(inner_window(Interval(1, 5)))
    one, _ = found.step(found.initial, A).marked[0].targets[0]
    (region,) = found.step(one, A).marked
    ((two, places),) = region.targets
    assert (region.made, places) == ((Before(0), Now(T)), (0, 1))
    assert not found.ambiguous
    (region,) = found.step(two, A).marked
    assert region.made == (Before(0), Before(1), Now(T))
    assert region.targets == ((one, (0,)), (one, (1,)), (one, (2,)))
    assert found.ambiguous


def in_scopes(*, variable: frozenset[str], how: str = "max", operator: str = "<") -> Automaton:
    """`x+` in scopes that begin anew anywhere, each with the greatest x: of two scopes with one output the later one has less."""
    moves = [
        Transition(0, 1, A, X, writes=writes((0, Now(V)))),
        Transition(1, 1, A, X, writes=writes((0, Gathered(how, Before(0), V)))),
        Transition(1, 1, A, X, writes=writes((0, Now(V)))),
        Transition(1, 1, B, variable),
        Transition(1, 2, B | GUARD, Y),
    ]
    return automaton(moves, Compares(Before(0), operator, V), registers=1)


def test_the_smaller_set_replaces_the_larger() -> None:
    found = Regions(in_scopes(variable=Y))
    macro, _ = found.step(found.initial, A).marked[0].targets[0]
    assert found.step(macro, A).marked[0].made == (Now(V),)


@pytest.mark.parametrize("change", [{"variable": X}, {"variable": Y, "how": "min"}, {"variable": Y, "operator": ">"}])
def test_sets_are_kept_where_it_is_not_proven(change: dict[str, object]) -> None:
    """The variable is bound outside the scope, or the comparison is not easier over less."""
    found = Regions(in_scopes(**change))
    macro, _ = found.step(found.initial, A).marked[0].targets[0]
    assert len(found.step(macro, A).marked[0].made) == 2


def test_hidden_events_write() -> None:
    moves = [*SEQUENCE[:2], Transition(1, 1, A, None, writes=writes((0, Now(V)))), SEQUENCE[2]]
    found = Regions(automaton(moves, Compares(Before(0), "<", V)))
    macro, _ = found.step(found.initial, A).marked[0].targets[0]
    (region,) = found.step(macro, A).unmarked or ()
    assert (region.label, region.made) == (None, (Before(0), Now(V)))
    assert found.step(macro, B).unmarked is None


def test_limits_say_what_to_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regions, "MACRO_LIMIT", 1)
    found = Regions(automaton(SEQUENCE, Compares(Before(0), "<", V)))
    with pytest.raises(LimitError, match=r"more than 1 macro states \(MACRO_LIMIT\)"):
        found.step(found.initial, A)
    monkeypatch.setattr(regions, "SLOT_LIMIT", 0)
    monkeypatch.setattr(regions, "MACRO_LIMIT", 9)
    found = Regions(automaton(SEQUENCE, Compares(Before(0), "<", V)))
    with pytest.raises(LimitError, match=r"keep 1 values .* limit is 0 \(SLOT_LIMIT\)") as error:
        found.step(found.initial, A)
    assert "more deterministic" in error.value.help[0]


def test_steps_are_forgotten_past_their_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regions, "STEP_LIMIT", 1)
    found = Regions(automaton(SEQUENCE, Compares(Before(0), "<", V)))
    first = found.step(found.initial, A)
    assert found.step(found.initial, A) is first
    found.step(found.initial, B)
    again = found.step(found.initial, A)
    assert again is not first
    assert again.marked[0].targets == first.marked[0].targets
