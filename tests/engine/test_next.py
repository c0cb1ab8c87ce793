"""NXT by the greedy walk: against the definition, however the stream is fed; long streams against a fresh evaluation of the window alone."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import numpy as np
import pytest
from enough import Enough, Kept, share
from strategy_cases import (
    ALPHABETS,
    CASES,
    SEED,
    automaton_of,
    check,
    collector,
    expected,
    forgotten,
    random_case,
    random_formula,
    stored,
)

from cepheid.automata.alphabet import Alphabet, Predicate
from cepheid.automata.automaton import Automaton
from cepheid.automata.program import Program
from cepheid.automata.transition import Transition, order
from cepheid.automata.waiting import WaitingAutomaton
from cepheid.engine.evaluations.choosing import next as module
from cepheid.engine.evaluations.choosing.next import HELD, Next, NextTables
from cepheid.engine.evaluations.choosing.supports import SupportSizes
from cepheid.engine.memory import blocks
from cepheid.errors import LimitError, NotSupportedError, SnapshotError
from cepheid.kernel import available
from cepheid.language.syntax import Consumption, Strategy

A, B, C, D = (("atom", 1 << k, 0, frozenset({"xyz"[k % 3]})) for k in range(4))
CHAIN = ("seq", ("seq", A, B), C)


def tiny(rng):
    supports = rng.choice([1, 3, 64])
    return SupportSizes(
        places=rng.choice([1, 2, 4]),
        supports=supports,
        most_supports=supports,
        positions=rng.choice([1, 8, 512]),
        codes=rng.choice([1, 3, 99]),
    )


def maker(case, rng, variant, *, limit=None):
    return lambda: Next(case.program, **case.bounds, limit=limit, variant=variant, sizes=tiny(rng))


def drawn_cases():
    """(case, what is kept, the case partition by partition, what is kept then)."""
    for number in itertools.count():
        case = random_case(random.Random(f"{SEED} next {number}"), long=number % 4 == 1)
        yield case, expected(case, Strategy.NXT), case.sequential, expected(case.sequential, Strategy.NXT)


KEPT = Kept(drawn_cases())


@pytest.mark.parametrize("variant", available())
def test_winners_of_random_cases(variant):
    drawn = Enough(share(CASES, variant), KEPT, total=20)
    for number, (case, wanted, sequential, wanted_then) in enumerate(drawn):
        rng = random.Random(f"{SEED} next {variant} {number}")
        limit = rng.choice([None, None, 1, 2, 3])
        where = f"CEPHEID_SEED={SEED} case {number} limit {limit} variant {variant}\n{case}"
        drawn.seen["total"] += check(stored(case, rng, maker(case, rng, variant, limit=limit)), wanted, where, limit=limit)
        drawn.seen["total"] += check(
            forgotten(sequential, rng, maker(sequential, rng, variant, limit=limit)), wanted_then, where, limit=limit
        )


def test_projected_winners():
    """The winner is chosen before SELECT's projection; then equal matches of a trigger are one."""
    for number, (case, _, _, _) in enumerate(itertools.islice(KEPT, CASES // 2)):
        rng = random.Random(f"{SEED} next projected {number}")
        shown = replace(case, shown=frozenset(rng.choice(["x", "xy", "z"])))
        limit = rng.choice([None, None, 1, 2])
        where = f"CEPHEID_SEED={SEED} case {number} limit {limit}\n{shown}"
        check(stored(shown, rng, maker(shown, rng, None, limit=limit)), expected(shown, Strategy.NXT), where, limit=limit)


def test_the_same_matches_in_the_same_order_however_the_input_is_cut():
    for number, (case, _, _, _) in enumerate(itertools.islice(KEPT, CASES // 2)):
        rng = random.Random(f"{SEED} next cuts {number}")
        limit = rng.choice([None, 1, 2])
        runs = [stored(case, rng, maker(case, rng, variant, limit=limit)) for variant in (None, None, "python")]
        assert runs[0] == runs[1] == runs[2], f"CEPHEID_SEED={SEED} case {number} limit {limit}\n{case}"


# ------------------------------------------------------------------------------------------------------------------- long streams


def winners_of(program, letters, *, variant=None, **bounds):
    """end -> positions, from one feed without partitions."""
    given = []
    run = Next(program, limit=1, variant=variant, **bounds)
    run.feed(np.array(letters, np.uint64), np.arange(len(letters)), sink=collector(program, given))
    return {match[-1][0]: tuple(position for position, _ in match) for _, match in given}


@pytest.mark.parametrize("variant", [v for v in available() if v != "python"] or ["python"])
def test_long_streams_against_fresh_windows(variant):
    """What a window has seen before makes no difference: a fresh evaluation that reads the window alone gives the same winner."""
    drawn = Enough(max(1, CASES // 20), triggers=1)
    for number in drawn:
        rng = random.Random(f"{SEED} next long {number}")
        program = Program(automaton_of(random_formula(rng, rng.choice([2, 3, 4]))))
        alphabet, width = rng.choice([*ALPHABETS, [0] * 20 + [1, 2, 4, 8, 3]]), rng.choice([2, 5, 12, 30, 70])
        letters = [rng.choice(alphabet) for _ in range(150)]
        found = winners_of(program, letters, variant=variant, count_window=width)
        assert found == winners_of(program, letters, variant=variant, window=width - 1)
        for end in rng.sample(range(150), 30):
            first = max(0, end - width + 1)
            fresh = winners_of(program, letters[first : end + 1]).get(end - first)
            wanted = None if fresh is None else tuple(first + position for position in fresh)
            assert found.get(end) == wanted, (SEED, number, end, width)
            drawn.seen["triggers"] += wanted is not None


def test_a_window_over_many_marks_is_searched_and_evicted():
    """Rings that grow, wrap and shift: A;B;C with few A, whose first B must be found among many."""
    program, rng = Program(automaton_of(CHAIN)), random.Random(SEED)
    letters = rng.choices([1, 2, 4, 8], [1, 60, 5, 34], k=5_000)
    found = winners_of(program, letters, count_window=700)
    wanted = {}
    for end, letter in enumerate(letters):
        window = range(max(0, end - 699), end)
        first = next((k for k in window if letters[k] == 1), end)
        second = next((k for k in range(first + 1, end) if letters[k] == 2), end)
        if letter == 4 and second < end:
            wanted[end] = (first, second, end)
    assert found == wanted, SEED
    assert len(wanted) > 50


# ------------------------------------------------------------------------------------------------------------------- named cases


@pytest.mark.parametrize(
    ("formula", "letters", "winner"),
    [
        (CHAIN, [1, 1, 2, 2, 4], (0, 2, 4)),
        (("seq", ("plus", A), B), [1, 1, 8, 1, 2], (0, 1, 3, 4)),
        # Greedy marks stop where the match could no longer end: the last B is needed by the C's place.
        (("seq", ("plus", ("seq", A, B)), C), [1, 2, 1, 4], (0, 1, 3)),
        # An event that two moves can mark must not be marked twice.
        (("seq", A, A), [1, 1, 1], (0, 2)),
        (("plus", A), [1, 1, 1], (0, 1, 2)),
        (("or", A, ("seq", A, A)), [1, 1], (0, 1)),
        (A, [8, 1], (1,)),
        # What would have to mark one event twice is no way to the end: nothing follows the only A.
        (("or", ("seq", ("seq", A, A), C), ("seq", B, C)), [8, 1, 2, 4], (2, 3)),
        # Two runs with one support so far: the one that goes on first wins.
        (("or", ("seq", ("seq", A, B), C), ("seq", ("seq", A, D), C)), [1, 8, 2, 4], (0, 1, 3)),
        (("or", ("seq", ("seq", A, B), C), ("seq", ("seq", A, D), C)), [1, 2, 8, 4], (0, 1, 3)),
    ],
)
@pytest.mark.parametrize("variant", available())
def test_winner_of_the_last_event(formula, letters, winner, variant):
    assert winners_of(Program(automaton_of(formula)), letters, variant=variant)[len(letters) - 1] == winner


@pytest.mark.parametrize("variant", available())
def test_the_greatest_start_of_several_ways_counts(variant):
    """Two ways into one state, and two to the end: the way taken last may be the older one."""
    either = ("or", ("seq", A, B), ("seq", D, C))
    letters = [8, 1, 2, 4]
    assert winners_of(
        Program(automaton_of(("seq", either, ("atom", 3, 0, frozenset("x"))))), [*letters, 3], variant=variant, count_window=4
    ) == {4: (1, 2, 4)}
    # The fourth event takes the third and the fourth step of the longer way at once, for different runs.
    longer = ("seq", ("or", ("seq", A, B), ("seq", ("seq", A, D), C)), ("atom", 3, 0, frozenset("x")))
    assert winners_of(Program(automaton_of(longer)), [1, 8, 1, 2, 12, 3], variant=variant, count_window=4) == {5: (2, 3, 5)}
    one_end = ("or", ("seq", A, ("atom", 0, 0, frozenset("x"))), ("seq", D, ("atom", 0, 0, frozenset("x"))))
    assert winners_of(Program(automaton_of(one_end)), letters, variant=variant, count_window=3) == {1: (0, 1), 2: (0, 2), 3: (1, 3)}


def test_consumed_events_compete_no_more():
    program = Program(automaton_of(("seq", A, B)))
    letters = [1, 1, 2, 2, 1, 2]
    assert winners_of(program, letters) == {2: (0, 2), 3: (0, 3), 5: (0, 5)}
    assert winners_of(program, letters, consume=Consumption.PARTITION) == {2: (0, 2), 5: (4, 5)}


def test_limit_zero_counts_triggers():
    run = Next(Program(automaton_of(CHAIN)), limit=0)
    given = []
    run.feed(np.array([1, 2, 4, 4, 8], np.uint64), np.arange(5), sink=given.append)
    assert (run.triggers, run.matches, given) == (2, 0, [])


def test_events_that_leave_no_live_state_are_neither_marked_nor_kept():
    run = Next(Program(automaton_of(CHAIN)), count_window=3)
    run.feed(np.array([2, 4, 1, 8, 8, 2, 8, 1, 2, 4], np.uint64), np.arange(10), slots=np.zeros(1, np.int32))
    assert run.marked.tolist() == [0, 0, 1, 0, 0, 0, 0, 1, 1, 1]
    assert run.skipped == 6
    assert run.triggers == 1


def test_times_at_the_ends_of_int64():
    program, given = Program(automaton_of(("seq", A, B))), []
    run = Next(program, window=5)
    times = np.array([-(2**63), -(2**63) + 5, 2**63 - 6, 2**63 - 1], np.int64)
    run.feed(np.array([1, 3, 1, 2], np.uint64), times, sink=collector(program, given))
    assert [tuple(position for position, _ in match) for _, match in given] == [(0, 1), (2, 3)]


# ------------------------------------------------------------------------------------------------------------------- state and memory


def test_release_and_expire():
    program, given = Program(automaton_of(("seq", A, B))), []
    run = Next(program, window=10)

    def feed(letters, times, slots, sink=None):
        run.feed(np.array(letters, np.uint64), np.array(times), cuts=np.arange(len(letters)), slots=np.array(slots, np.int32), sink=sink)

    feed([1, 1, 1], [0, 0, 5], [0, 1, 2])
    assert run.expire(11).tolist() == [0, 1]
    run.release(np.array([1]))
    feed([1, 2, 1, 2, 2], [12, 13, 13, 14, 15], [0, 0, 1, 1, 2], collector(program, given))
    assert [tuple(position for position, _ in match) for _, match in given] == [(1, 2), (0, 1), (0, 1)]
    assert run.memory_usage() > 0


def test_memory_is_bounded_by_the_window():
    run = Next(Program(automaton_of(("seq", ("plus", A), ("seq", ("plus", B), C)))), count_window=50)
    rng = np.random.default_rng(SEED)
    used = []
    for _ in range(20):
        run.feed((1 << rng.integers(0, 2, 2_000)).astype(np.uint64), np.arange(2_000), slots=np.zeros(1, np.int32))
        used.append(run.memory_usage())
    # What a window can need at most may come late; then nothing grows any more.
    assert set(used[10:]) == {max(used)}
    assert max(used) < 1.1 * used[0]


def test_a_damaged_state_is_refused_or_harmless():
    """Whatever the sections hold, the kernel stays inside its arrays: the variant with bounds checks says so."""
    rng = random.Random(SEED)
    variant = "checked" if "checked" in available() else None
    case = random_case(random.Random(7), long=True)
    program = Program(automaton_of(("seq", ("plus", A), B)))
    run = Next(program, count_window=20)
    letters = np.array([event[1] for event in case.events], np.uint64)
    run.feed(letters, np.arange(len(letters)), slots=np.zeros(1, np.int32))
    sections = run.dump()
    drawn = Enough(CASES, refused=1)
    for _ in drawn:
        damaged = dict(sections)
        name = rng.choice(["counters", "words", "rings", "entries"])
        content = bytearray(damaged[name])
        for _ in range(rng.randint(1, 3)):
            if content:
                content[rng.randrange(len(content))] = rng.randrange(256)
        damaged[name] = bytes(content[: rng.choice([len(content), len(content) - 8, len(content) - 1])])
        other = Next(program, count_window=20, variant=variant)
        try:
            other.load(damaged)
        except SnapshotError:
            drawn.seen["refused"] += 1
            continue
        other.feed(letters, np.arange(len(letters)), slots=np.zeros(1, np.int32))
    with pytest.raises(SnapshotError):
        Next(program).load({})


# ------------------------------------------------------------------------------------------------------------------- limits


def test_outside_the_fragment():
    moves = (Transition(0, 1, 1, frozenset("x")), Transition(1, 2, 2, frozenset("y")))
    strict = Program(Automaton(3, 0, frozenset({2}), order(moves), Alphabet((Predicate("A"), Predicate("B")))))
    with pytest.raises(NotSupportedError, match="partial matches may wait"):
        Next(strict)


@pytest.mark.parametrize("limit", ["PAIR_LIMIT", "MERGE_LIMIT"])
def test_too_many_states(limit, monkeypatch):
    monkeypatch.setattr(module, limit, 3)
    with pytest.raises(LimitError, match=rf"more than 3 .*{limit}.*3 states"):
        NextTables(WaitingAutomaton.of(automaton_of(("plus", ("seq", A, B)))))


@pytest.mark.parametrize("variant", available())
def test_a_partition_that_grows_past_the_limit(variant, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_LIMIT", 200)
    run = Next(Program(automaton_of(CHAIN)), variant=variant)
    with pytest.raises(LimitError, match=r"limit is 200 .*BLOCK_LIMIT"):
        run.feed(np.ones(500, np.uint64), np.arange(500))


def test_records_of_letters_are_forgotten_past_their_limit(monkeypatch):
    monkeypatch.setattr(module, "ACTION_LIMIT", 10)
    for number, (case, wanted, _, _) in enumerate(itertools.islice(KEPT, 20)):
        rng = random.Random(f"{SEED} next forget {number}")
        check(stored(case, rng, maker(case, rng, None)), wanted, f"CEPHEID_SEED={SEED} case {number}\n{case}")


def test_letters_whose_merges_read_what_they_write_are_flagged():
    tables = NextTables(WaitingAutomaton.of(automaton_of(("seq", ("seq", ("plus", A), ("plus", A)), B))))
    for code, letter in enumerate((1, 2, 3)):
        tables.learn(code, letter)
    flags = [tables.actions[tables.place_of[code] + 1] & HELD for code in range(3)]
    assert flags[0] == flags[2]
    assert flags[1] == 0
