"""LAST in every mode against the definition: random formulas of the waiting fragment, tiny blocks, random cuts, windows and consumption.

CEPHEID_CASES and CEPHEID_SEED as in strategy_cases.
"""

from __future__ import annotations

import itertools
import random
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from enough import Enough, share

from cepheid.automata.alphabet import Alphabet, Predicate
from cepheid.automata.automaton import Automaton
from cepheid.automata.program import Program
from cepheid.automata.transition import Transition, order
from cepheid.engine.evaluations.choosing.last import Last
from cepheid.engine.evaluations.choosing.supports import SupportSizes
from cepheid.engine.memory import blocks
from cepheid.errors import LimitError, NotSupportedError, SnapshotError
from cepheid.kernel import available
from cepheid.language.syntax import Consumption, Strategy

sys.path.insert(0, str(Path(__file__).parent))
import strategy_cases as cases
from strategy_cases import CASES, SEED

A, B, C = (("atom", 1 << k, 0, frozenset({name})) for k, name in enumerate("abc"))
TINY = SupportSizes(places=1, supports=1, most_supports=4, positions=1, scratch=1, codes=2)


def sequence(*parts):
    formula = parts[0]
    for part in parts[1:]:
        formula = ("seq", formula, part)
    return formula


def program_of(formula):
    return Program(cases.automaton_of(formula))


def tiny(rng):
    return SupportSizes(
        places=rng.choice([1, 2, 4]),
        supports=rng.choice([1, 2, 1 << 10]),
        most_supports=rng.choice([1, 4, 1 << 16]),
        positions=rng.choice([1, 3, 1 << 10]),
        scratch=rng.choice([1, 2, 64]),
        codes=rng.choice([2, 3, 1 << 18]),
    )


@cache
def prepared(number, *, long=False):
    """A case, and the same with one partition after the other; each with what LAST keeps of it."""
    case = cases.random_case(random.Random(f"{SEED} {number} {long}"), long=long)
    return [(each, cases.expected(each, Strategy.LAST)) for each in (case, case.sequential)]


def run_case(number, variant, *, limit=None, long=False):
    """The case in both modes, against the definition; returns the number of matches found."""
    rng = random.Random(f"{SEED} {number} {variant} {limit}")
    (case, expected), (sequential, sequentially) = prepared(number, long=long)

    def make():
        return Last(case.program, **case.bounds, limit=limit, variant=variant, sizes=tiny(rng))

    where = f"CEPHEID_SEED={SEED} case {number} variant {variant} limit {limit} {case}"
    total = cases.check(cases.stored(case, rng, make), expected, where, limit=limit)
    return total + cases.check(cases.forgotten(sequential, rng, make), sequentially, where, limit=limit)


@pytest.mark.parametrize("variant", available())
def test_random_formulas(variant, capsys):
    with capsys.disabled():
        print(f"\n{CASES} random cases, CEPHEID_SEED={SEED}, kernel {variant}")  # noqa: T201 - to run a failure again
    drawn = Enough(share(CASES, variant), found=20)
    for number in drawn:
        drawn.seen["found"] += run_case(number, variant)


@pytest.mark.parametrize("variant", available())
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_limits(variant, limit):
    drawn = Enough(share(CASES // 4, variant), itertools.count(limit - 1, 3), found=1)
    for number in drawn:
        drawn.seen["found"] += run_case(number, variant, limit=limit)


@pytest.mark.parametrize("variant", available())
def test_long_streams(variant):
    drawn = Enough(share(CASES // 20, variant), found=1)
    for number in drawn:
        drawn.seen["found"] += run_case(number, variant, long=True)


def given_by(run, letters, times=None, **how):
    """The supports that a batch gives."""
    found = []
    times = np.arange(len(letters)) if times is None else np.asarray(times)
    run.feed(np.asarray(letters, np.uint64), times, sink=cases.collector(run.program, found), **how)
    return [tuple(position for position, _ in match) for _, match in found]


def test_long_windows_are_as_if_the_window_were_all():
    """The support of a trigger is the one that an evaluation of its window alone finds; windows of any width, letters of any rarity."""
    drawn = Enough(CASES // 4, triggers=10)
    for number in drawn:
        rng = random.Random(f"{SEED} fresh {number}")
        program = program_of(cases.random_formula(rng, rng.choice([2, 3, 4])))
        alphabet = rng.choice([[0, 1, 2, 4, 8], [1, 2, 4], [0, 1, 2, 3, 4, 8, 12], [0] * 20 + [1, 2, 4, 8, 3]])
        letters = [rng.choice(alphabet) for _ in range(150)]
        width = rng.choice([2, 5, 12, 30, 70])
        bound = rng.choice([{"count_window": width}, {"window": width - 1}])
        found = given_by(Last(program, **bound, limit=1, sizes=tiny(rng)), letters)
        where = f"CEPHEID_SEED={SEED} case {number} {letters} {bound}"
        ends = {support[-1]: support for support in found}
        assert len(ends) == len(found), where
        for end in rng.sample(range(150), 12):
            first = max(0, end - width + 1)
            alone = given_by(Last(program, limit=1), letters[first : end + 1])
            expected = [tuple(first + position for position in support) for support in alone if support[-1] == end - first]
            assert ([ends[end]] if end in ends else []) == expected, where
            drawn.seen["triggers"] += end in ends


def test_the_newest_marks_win_and_more_of_them():
    run = Last(program_of(sequence(("plus", A), B, C)), count_window=6)
    assert given_by(run, [1, 1, 2, 1, 2, 1, 4, 4, 8, 4]) == [(1, 3, 4, 6), (3, 4, 7)]
    assert (run.triggers, run.matches, run.events) == (2, 2, 10)


def test_a_count_of_triggers_gives_nothing():
    run = Last(program_of(sequence(A, B)), limit=0)
    assert given_by(run, [1, 2, 2, 1, 2]) == []
    assert (run.triggers, run.matches) == (3, 0)


def test_marked_and_skipped():
    run = Last(program_of(sequence(A, B, C)), count_window=5)
    assert given_by(run, [2, 4, 1, 4, 2, 8, 4, 4, 2, 4]) == [(2, 4, 6)]
    assert run.marked.tolist() == [0, 0, 1, 0, 1, 0, 1, 0, 0, 0]
    assert run.skipped >= 4
    assert given_by(run, [], continued=True) == []
    assert len(run.marked) == 0


@pytest.mark.parametrize("consume", [Consumption.PARTITION, Consumption.ANY])
def test_consumption(consume):
    run = Last(program_of(sequence(A, B)), consume=consume, sizes=TINY)
    slots = {"slots": np.array([0, 1, 0, 1]), "cuts": np.array([0, 1, 2, 3])}
    assert given_by(run, [1, 1, 2, 2], **slots) == ([(0, 1), (0, 1)] if consume is Consumption.PARTITION else [(0, 1)])
    assert given_by(run, [2, 2, 1, 2], **slots) == []
    assert given_by(run, [1, 2, 2, 2], slots=np.array([1]), cuts=np.array([0])) == [(4, 5)]


def test_memory_is_bounded_by_the_window():
    run = Last(program_of(sequence(("plus", A), B)), window=100, limit=1)
    rng = np.random.default_rng(1)
    for batch in range(20):
        letters = 1 << rng.integers(0, 3, 5_000)
        run.feed(letters, np.arange(5_000) + 5_000 * batch, continued=True)
        if batch == 1:
            before = run.memory_usage()
    assert run.memory_usage() <= before


def test_partitions_that_can_give_no_more_are_emptied():
    run = Last(program_of(sequence(A, B)), window=10)
    slots = np.arange(1_000)
    run.feed(np.ones(1_000, np.uint64), np.arange(1_000), slots=slots, cuts=slots)
    assert not run.wasteful
    assert run.expire(500).tolist()[:490] == list(range(490))
    assert 490 not in run.expire(500)[:500]
    held = run.store.held
    assert len(run.expire(10_000)) >= 1_000
    assert run.store.held < held / 50
    assert given_by(run, [2, 1, 2], [10_000, 10_001, 10_002], slots=np.array([3])) == [(2, 3)]  # positions go on
    run.release(np.array([3]))
    assert given_by(run, [1, 2], [10_003, 10_004], slots=np.array([3])) == [(0, 1)]
    assert run.slots >= 1_000


def test_idle_by_position_and_by_consumption():
    run = Last(program_of(sequence(A, B)), count_window=3)
    run.feed(np.array([1, 0, 1, 0, 0]), np.zeros(5, np.int64), slots=np.array([0, 1]), cuts=np.array([0, 2]))
    assert run.expire(0).tolist() == [1]
    assert run.store.held_rows.tolist() == [0, 1]  # the workplace, and slot 0
    assert given_by(run, [2, 2], slots=np.array([0, 1]), cuts=np.array([0, 1])) == [(0, 2)]
    run = Last(program_of(sequence(A, B)), consume=Consumption.ANY)
    run.feed(np.array([1, 1]), np.zeros(2, np.int64), slots=np.array([0, 1]), cuts=np.array([0, 1]))
    assert not {0, 1} & set(run.expire(0).tolist())
    run.feed(np.array([2]), np.zeros(1, np.int64), slots=np.array([0]))
    assert {0, 1} <= set(run.expire(0).tolist())


def test_a_burst_of_partitions_gives_its_memory_back():
    run = Last(program_of(sequence(A, B)), window=10)
    slots = np.arange(20_000)
    run.feed(np.ones(20_000, np.uint64), np.zeros(20_000, np.int64), slots=slots, cuts=slots)
    full = run.memory_usage()
    run.expire(1_000)
    assert run.memory_usage() < full / 2
    assert not run.wasteful
    again = Last(run.program, window=10)
    again.load(run.dump())
    assert run.memory_usage() < 1.3 * again.memory_usage()
    assert again.dump() == run.dump()


def test_times_at_the_ends_of_their_range():
    low, high = -(1 << 63), (1 << 63) - 1
    run = Last(program_of(sequence(A, B)), window=(1 << 62))
    first = np.zeros(1, np.int32)
    assert given_by(run, [1], [low], slots=first) == []
    assert run.expire(low).tolist() == []
    assert given_by(run, [2, 1, 2], [low, 0, high], slots=first) == [(0, 1)]
    assert given_by(run, [1, 2], [high, high], slots=first) == [(4, 5)]
    assert run.expire(high).tolist() == []
    again = Last(run.program, window=(1 << 62))
    again.load(run.dump())
    assert again.dump() == run.dump()


def chain(length):
    """A sequence of so many atoms over as many states; bit k % 40 of the letter for atom k."""
    moves = [Transition(k, k + 1, 1 << k % 40, frozenset({f"x{k}"})) for k in range(length)]
    loops = [Transition(k, k) for k in range(1, length)]
    predicates = tuple(Predicate(f"T{k}") for k in range(40))
    return Program(Automaton(length + 1, 0, frozenset({length}), order([*moves, *loops]), Alphabet(predicates)))


@pytest.mark.parametrize("variant", available())
def test_more_states_than_bits_of_the_live_ones(variant):
    run = Last(chain(80), variant=variant, sizes=TINY)
    letters = [1 << k % 40 for k in range(80)]
    assert given_by(run, [*letters, letters[-1]]) == [tuple(range(80)), (*range(79), 80)]
    again = Last(chain(80), variant=variant)
    again.load(run.dump())
    assert given_by(again, [letters[-1]], continued=True) == [(*range(79), 81)]


def test_outside_the_fragment():
    moves = [Transition(0, 1, 1, frozenset("a")), Transition(1, 2, 2, frozenset("b"))]
    adjacent = Program(Automaton(3, 0, frozenset({2}), order(moves), Alphabet((Predicate("A"), Predicate("B")))))
    with pytest.raises(NotSupportedError, match="may wait"):
        Last(adjacent)


def test_a_partition_has_a_limit(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_LIMIT", 10_000)
    run = Last(program_of(sequence(A, B)))
    with pytest.raises(LimitError, match="BLOCK_LIMIT"):
        run.feed(np.ones(10_000, np.uint64), np.arange(10_000))


def snapshot():
    run = Last(program_of(sequence(A, B, C)), window=5, consume=Consumption.ANY)
    letters = np.array([1, 1, 2, 0, 1, 3, 1, 1], np.uint32)
    run.feed(letters, np.arange(8), cuts=np.array([0, 5]), slots=np.array([3, 0]))
    return run


@pytest.mark.parametrize("name", ["counters", "rows", "words", "rings", "entries"])
def test_sections_that_do_not_fit_together_are_refused(name):
    sections = snapshot().dump()
    without = {key: value for key, value in sections.items() if key != name}
    wrong = [without, {**sections, name: sections[name][:-1]}, {**sections, name: sections[name] + bytes(8)}]
    if name != "counters":
        wrong += [{**sections, name: b"\x7f" * len(sections[name])}, {**sections, name: b"\xff" * len(sections[name])}]
    for damaged in wrong:
        run = Last(snapshot().program, window=5, consume=Consumption.ANY)
        with pytest.raises(SnapshotError, match="do not fit together"):
            run.load(damaged)


@pytest.mark.parametrize("variant", [variant for variant in available() if variant != "compiled"])
def test_damage_is_refused_or_harmless(variant):
    """What a damaged snapshot makes an evaluation read stays inside its arrays, and comes to an end."""
    rng = random.Random(f"{SEED} damage")
    program = program_of(sequence(("plus", ("or", A, B)), B, C))
    letters = np.array(rng.choices([1, 2, 4, 8, 3], k=60), np.uint64)
    run = Last(program, window=20)
    run.feed(letters, np.arange(60), slots=np.zeros(1, np.int32))
    sections = run.dump()
    drawn = Enough(share(CASES, variant), refused=1)
    for number in drawn:
        name = rng.choice(["counters", "words", "rings", "entries", "entries"])
        content = bytearray(sections[name])
        for _ in range(rng.randint(1, 3)):
            content[rng.randrange(len(content))] = rng.randrange(4 if number % 2 else 256)
        # A support of events that are both A and B has exponentially many labellings.
        other = Last(program, window=20, limit=100, variant=variant)
        try:
            other.load({**sections, name: bytes(content)})
        except SnapshotError:
            drawn.seen["refused"] += 1
            continue
        other.feed(letters, np.arange(60, 120), slots=np.zeros(1, np.int32))


def test_a_dump_leaves_the_evaluation_as_it_was():
    run = snapshot()
    assert run.dump() == run.dump() == snapshot().dump()
    again = Last(run.program, window=5, consume=Consumption.ANY)
    again.load(run.dump())
    assert again.dump() == run.dump()
    more = {"slots": np.array([0, 3]), "cuts": np.array([0, 1])}
    assert given_by(again, [4, 4, 2, 4], [8, 8, 9, 9], **more) == given_by(run, [4, 4, 2, 4], [8, 8, 9, 9], **more)


def test_expired_state_is_not_in_the_bytes():
    run = Last(program_of(sequence(A, B)), window=5)
    run.feed(np.full(1_000, 1, np.uint32), np.arange(1_000), continued=True)
    assert len(run.dump()["entries"]) == 8 * (2 + 3) * 6
    run.feed(np.zeros(1, np.uint32), np.array([5_000]), continued=True)
    assert not run.dump()["entries"]
