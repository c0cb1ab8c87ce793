"""Automata under a window of events: unrolled to a tree, and made deterministic (register-match-automata, Lemma 15 and Theorem 14).

`literally` follows the paper's Algorithms 6 to 8 by the letter: tests show where they go wrong, and that ours do not.
"""

from __future__ import annotations

import dataclasses
import importlib
import itertools
import random
from typing import TYPE_CHECKING

import pytest
from pattern_cases import CASES, SEED
from register_cases import ALL, FIGURE_1, GUARD, HUMIDITY, SCHEMA, TEMPERATURE, X, Y, by_hand, random_events, store, stream_of

import cepheid
from cepheid.automata import Automaton, Transition, construct, hide
from cepheid.automata.guards import GuardBits
from cepheid.automata.liveness import GuardedMove
from cepheid.automata.regions import asked
from cepheid.automata.registers import Before, Store, reads
from cepheid.automata.transform import cubes, project
from cepheid.automata.transition import order
from cepheid.errors import LimitError, NotSupportedError
from cepheid.testing import generators, reference, runs
from cepheid.testing.harness import events_of
from cepheid.theory import UnionAutomaton, determinize_windowed, unroll

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cepheid.testing.denotation import Match
    from cepheid.testing.evaluate import Event

unrolling = importlib.import_module("cepheid.theory.unroll")
"""The module; the package has a function of that name."""

Union = dict[str, tuple[int, ...]]


def within(matches: Iterable[Match], window: int) -> set[Match]:
    return {match for match in matches if match.end - match.start < window}


def unions_of(matches: Iterable[Match]) -> dict[int, Union]:
    """By end, the union of some matches: Definition 11 of the paper, for each end by itself."""
    found: dict[int, dict[str, set[int]]] = {}
    for match in matches:
        own = found.setdefault(match.end, {})
        for name, places in match.mapping:
            own.setdefault(name, set()).update(places)
    return {end: {name: tuple(sorted(own[name])) for name in sorted(own)} for end, own in sorted(found.items())}


def assert_tree(tree: Automaton, window: int) -> None:
    """Each state is reached in one way, in at most `window` events; a register is written once, before it is read."""
    assert sorted(move.target for move in tree.transitions) == list(range(1, tree.states))
    written: dict[int, set[int]] = {tree.initial: set()}
    depth = {tree.initial: 0}
    for move in sorted(tree.transitions, key=lambda each: each.target):
        step = GuardedMove.of(move, tree.alphabet)
        before = written[move.source]
        for part in (*step.tests, *(each.term for each in move.writes)):
            assert reads(part) <= before
        written[move.target] = before | {each.register for each in move.writes}
        depth[move.target] = depth[move.source] + 1
    stores = [each.register for move in tree.transitions for each in move.writes]
    assert sorted(stores) == list(range(len(tree.alphabet.registers)))
    assert max(depth.values()) <= window


def assert_deterministic(found: UnionAutomaton) -> None:
    """By the definition (10): one initial state, and transitions of one state exclude each other: a bit decides, or two types do."""
    automaton, types = found.automaton, found.automaton.alphabet.types
    for moves in automaton.outgoing:
        for one, other in itertools.combinations(moves, 2):
            conflict = one.requires & other.forbids | other.requires & one.forbids
            assert conflict or ((one.requires | other.requires) & types).bit_count() > 1, (one, other)
        assert moves, "there is always a transition"
    assert set(found.unions) == automaton.finals
    assert all((move.mark is not None) == (move.target in automaton.finals) for move in automaton.transitions)


def assert_one_for_each_mask(found: UnionAutomaton, most: int = 10) -> int:
    """By brute force: of all masks over the bits that a state asks, each enables exactly one transition. Returns how many states were tried."""
    tried, types = 0, found.automaton.alphabet.types
    for moves in found.automaton.outgoing:
        asked = 0
        for move in moves:
            asked |= move.requires | move.forbids
        bits = [1 << bit for bit in range(asked.bit_length()) if asked >> bit & 1]
        if len(bits) > most or any(tracker.mask & asked for tracker in found.automaton.trackers):
            continue
        tried += 1
        for some in itertools.product((False, True), repeat=len(bits)):
            mask = sum(bit for bit, there in zip(bits, some, strict=True) if there)
            if (mask & types).bit_count() <= 1:
                assert sum(move.enabled(mask) for move in moves) == 1
    return tried


# ------------------------------------------------------------------------------------------------------------------ as defined


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("window", [1, 2, 3, 4])
def test_hand_written_automata_under_a_window(name: str, window: int) -> None:
    rng = random.Random(f"{SEED} {name} {window}")
    automaton = hide(ALL[name])
    tree, deterministic = unroll(automaton, window), determinize_windowed(automaton, window)
    from_the_tree = determinize_windowed(tree, window)
    assert_tree(tree, window)
    for each in (deterministic, from_the_tree):
        assert_deterministic(each)
        assert_one_for_each_mask(each)
    for _ in range(CASES // 5):
        stream = random_events(rng, 7)
        expected = within(runs.matches(automaton, stream), window)
        assert runs.matches(tree, stream) == expected, stream
        assert runs.unions(deterministic, stream) == unions_of(expected), stream
        assert runs.unions(from_the_tree, stream) == unions_of(expected), stream


FRAGMENTS = {"guarded": generators.GUARDED, "nested": generators.NESTED}


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_random_patterns_under_a_window(fragment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the reference: automata of patterns with all kinds of registers; nested, with trackers."""
    monkeypatch.setattr(unrolling, "MAX_DETERMINISTIC_TRANSITIONS", 1_000)
    rng = random.Random(f"{SEED} unroll {fragment}")
    cases, registers, several, tried = 0, 0, 0, 0
    while cases < CASES // 2 or not registers or several < 3 or tried < 10:
        text = generators.random_query(
            rng, fragment=dataclasses.replace(FRAGMENTS[fragment], **generators.ALONE, windows=("",), consume=0.0)
        )
        rows, window = generators.random_stream(rng, most=6), rng.randint(1, 4)
        query = cepheid.query(text)
        schema = query.schema(generators.SCHEMA, type="type", time="ts")
        plan, stream = query.bound(schema), events_of(rows, schema)
        try:
            expected = within(reference.matches(plan, stream, max_matches=2_000), window)
            automaton = hide(project(construct(plan.pattern, schema), plan.variables))
            tree, deterministic = unroll(automaton, window), determinize_windowed(automaton, window)
        except LimitError:
            continue
        except NotSupportedError as error:
            if "cannot choose inside the pattern" not in error.fact:
                raise
            continue
        assert runs.matches(tree, stream) == expected, (text, window, rows)
        assert runs.unions(deterministic, stream) == unions_of(expected), (text, window, rows)
        assert_tree(tree, window)
        assert_deterministic(deterministic)
        tried += bool(assert_one_for_each_mask(deterministic))
        cases += 1
        registers += bool(deterministic.automaton.alphabet.registers) or fragment == "nested"
        several += len(unions_of(expected)) < len(expected)


def test_the_union_of_the_matches_that_end_at_one_event() -> None:
    found = determinize_windowed(FIGURE_1, 4)
    stream = stream_of("T(id=1) T(id=2) T(id=1) H(id=1) H(id=2)")
    assert {match.support for match in runs.matches(FIGURE_1, stream)} == {(0, 3), (2, 3), (1, 4)}
    assert runs.unions(found, stream) == {3: {"x": (0, 2), "y": (3,)}, 4: {"x": (1,), "y": (4,)}}
    assert runs.unions(determinize_windowed(FIGURE_1, 3), stream) == {3: {"x": (2,), "y": (3,)}}


@pytest.mark.parametrize("window", [1, 2, 3, 4, 5])
def test_the_registers_of_figure_1_grow_with_the_window(window: int) -> None:
    """One for each event that may still be compared: no number of them serves all windows (Theorem 12)."""
    found = determinize_windowed(FIGURE_1, window).automaton
    assert len(found.alphabet.registers) == len(found.alphabet.guards) == window - 1
    tree = unroll(FIGURE_1, window)
    assert (tree.states, len(tree.alphabet.registers)) == (2 * window - 1, min(window - 1, 1))


def test_what_no_guard_reads_later_is_not_held() -> None:
    """Two of four events may be x, for two must come after it; once y is there, x is not asked again."""
    where = "(ANY AS x ; ANY AS y ; ANY) FILTER x.id = y.id"
    found = determinize_windowed(construct(cepheid.query(f"SELECT * WHERE {where}").bound(SCHEMA).pattern, SCHEMA), 4)
    assert len(found.automaton.alphabet.registers) == 2


def test_runs_with_equal_futures_are_one_configuration() -> None:
    """`A+` has 2^(w-1) ways of w events, which differ in their marks alone."""
    plain = construct(cepheid.query("SELECT * WHERE T+").bound(SCHEMA).pattern, SCHEMA)
    found = determinize_windowed(plain, 10)
    stream = stream_of("T(id=1) " * 12)
    assert runs.unions(found, stream)[11] == {"T": tuple(range(2, 12))}
    (largest,) = {len(marked) for marked in found.unions.values() if len(marked) == 10}
    assert largest == 10
    assert unroll(plain, 10).states > 2**9


# ---------------------------------------------------------------------------------------------------------------------- limits


def test_the_tree_is_counted_before_it_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = construct(cepheid.query("SELECT * WHERE T+").bound(SCHEMA).pattern, SCHEMA)
    monkeypatch.setattr(GuardBits, "asking", lambda *_: pytest.fail("the tree is being built"))
    with pytest.raises(LimitError, match=r"unrolled to 1000000 events .* limit is 10000 \(MAX_UNROLLED_STATES\)") as error:
        unroll(plain, 1_000_000)
    assert "shorter window" in error.value.help[0]
    monkeypatch.setattr(unrolling, "MAX_UNROLLED_STATES", 4)
    with pytest.raises(LimitError, match="has 5 states after 3 of them, and the limit is 4"):
        unroll(FIGURE_1, 3)


def test_the_count_is_what_the_tree_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no transition forbids what is empty."""
    for window in range(1, 6):
        states = unroll(ALL["several"], window).states
        monkeypatch.setattr(unrolling, "MAX_UNROLLED_STATES", states)
        assert unroll(ALL["several"], window).states == states
        monkeypatch.setattr(unrolling, "MAX_UNROLLED_STATES", states - 1)
        with pytest.raises(LimitError, match=f"has {states} states after"):
            unroll(ALL["several"], window)
        monkeypatch.undo()


@pytest.mark.parametrize("what", ["states", "transitions"])
def test_a_determinization_has_limits(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"MAX_DETERMINISTIC_{what.upper()}"
    monkeypatch.setattr(unrolling, name, 5)
    with pytest.raises(LimitError, match=rf"within 4 events needs more than 5 {what} \({name}\)") as error:
        determinize_windowed(FIGURE_1, 4)
    assert "shorter window" in error.value.help[0]


@pytest.mark.parametrize("of", [unroll, determinize_windowed])
def test_what_is_refused(of) -> None:
    with pytest.raises(LimitError, match="one event at least, and not 0"):
        of(FIGURE_1, 0)
    with pytest.raises(NotSupportedError, match="enters the initial state"):
        of(by_hand(Transition(0, 0), Transition(0, 1, TEMPERATURE, X)), 2)


# ---------------------------------------------------------------------------------------------------- the paper, by the letter

IN_THE_PAPER = by_hand(
    Transition(0, 0),
    Transition(0, 1, TEMPERATURE, X, writes=store(0)),
    Transition(1, 1),
    Transition(1, 2, HUMIDITY | GUARD, Y),
)
"""Figure 1 with the loop at its start: there runs begin at the first event."""


def literally_unrolled(automaton: Automaton, window: int) -> Automaton:
    """Algorithms 5 to 7: a copy of each transition with a register of its own, then a loop at the start."""
    guards, moves, names, finals = GuardBits(automaton.alphabet), [Transition(0, 0)], [], set()
    front: list[tuple[int, int, dict[int, Before]]] = [(0, automaton.initial, {})]
    states = 1
    for _ in range(window):
        grown = []
        for node, state, last in front:
            for move in automaton.outgoing[state]:
                after = dict(last)
                stores = set()
                for each in move.writes:
                    after[each.register] = Before(len(names))
                    stores.add(Store(len(names), each.term))
                    names.append(f"r{len(names) + 1}")
                placed = dataclasses.replace(move, source=node, target=states, writes=frozenset(stores))
                moves.append(guards.asking(placed, asked(move, automaton.alphabet, last.get)))
                finals |= {states} if move.target in automaton.finals else set()
                grown.append((states, move.target, after))
                states += 1
        front = grown
    return Automaton(states, 0, frozenset(finals), order(moves), guards.finished(names))


def literally_determinized(tree: Automaton) -> Automaton:
    """Algorithm 8: sets of states, a transition for each min-term; it marks its event if some formula that holds is not TRUE (lines 20 to 23)."""
    numbers = {frozenset({tree.initial}): 0}
    todo, moves = list(numbers), []
    while todo:
        macro = todo.pop()
        outgoing = [move for state in sorted(macro) for move in tree.outgoing[state]]
        for requires, forbids in cubes(outgoing, tree.alphabet):
            taken = [move for move in outgoing if move.enabled(requires)]
            target = frozenset(move.target for move in taken)
            if target not in numbers:
                numbers[target] = len(numbers)
                todo.append(target)
            mark = frozenset("*") if any(move.requires | move.forbids for move in taken) else None
            writes = frozenset().union(*(move.writes for move in taken))
            moves.append(Transition(numbers[macro], numbers[target], requires, mark, forbids, writes))
    finals = frozenset(number for macro, number in numbers.items() if macro & tree.finals)
    return Automaton(len(numbers), 0, finals, order(moves), tree.alphabet)


def literally(automaton: Automaton, window: int, stream: list[Event]) -> dict[int, set[int]]:
    """By position where the one run of the paper's automaton accepts, what it has marked by then."""
    found = literally_determinized(literally_unrolled(automaton, window))
    return {
        position: {place for place, _ in marked}
        for position, (state, _, marked) in enumerate(runs.only_run(found, stream))
        if state in found.finals
    }


def supports(found: dict[int, Union]) -> dict[int, set[int]]:
    return {end: set().union(*union.values()) for end, union in found.items()}


@pytest.mark.parametrize("window", [2, 3])
def test_the_paper_and_we_agree_on_one_match(window: int) -> None:
    stream = stream_of("T(id=1) H(id=1)")
    assert literally(IN_THE_PAPER, window, stream) == supports(runs.unions(determinize_windowed(FIGURE_1, window), stream)) == {1: {0, 1}}


def test_in_the_paper_a_later_run_writes_over_what_an_earlier_one_needs() -> None:
    """The loop at the start lets two runs be in the tree at once, one transition further: both write to the register of its first transition."""
    stream = stream_of("T(id=1) T(id=2) H(id=1)")
    assert {match.support for match in runs.matches(FIGURE_1, stream)} == {(0, 2)}
    assert literally(IN_THE_PAPER, 3, stream) == {}
    assert runs.unions(determinize_windowed(FIGURE_1, 3), stream) == {2: {"x": (0,), "y": (2,)}}


def test_in_the_paper_the_match_has_events_of_runs_that_fail_and_of_old_ones() -> None:
    stream = stream_of("T(id=1) T(id=2) H(id=2)")
    assert literally(IN_THE_PAPER, 2, stream) == {2: {0, 1, 2}}, "the union of the matches is {1, 2}, and 0 is not in the window"
    assert supports(runs.unions(determinize_windowed(FIGURE_1, 2), stream)) == {2: {1, 2}}


def test_no_automaton_can_mark_the_union_while_it_reads() -> None:
    """Two streams are equal up to their last events, and the unions differ before: Theorem 14 does not hold for marks at reading (Definition 11)."""
    found = determinize_windowed(FIGURE_1, 3)
    one, other = (supports(runs.unions(found, stream_of(f"T(id=1) T(id=2) H(id={number})"))) for number in (1, 2))
    assert (one, other) == ({2: {0, 2}}, {2: {1, 2}})
