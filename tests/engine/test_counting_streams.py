"""COUNT(*) on long streams against Python's integers; what is stored, given back, damaged, and past its limits."""

from __future__ import annotations

import random
from functools import cache

import numpy as np
import pytest
from counting_cases import MARKS, NONE, PARTITION, THREE_TYPES, collector, counts_of, feed
from strategy_cases import CASES, SEED

from cepheid.automata.alphabet import Alphabet, Predicate
from cepheid.automata.automaton import Automaton
from cepheid.automata.program import Program
from cepheid.automata.transition import Transition, order
from cepheid.engine.evaluations.counts import counting as module
from cepheid.engine.evaluations.counts.counting import Counting, CountSizes
from cepheid.engine.memory import count_blocks
from cepheid.errors import LimitError, SnapshotError
from cepheid.kernel import available

# ------------------------------------------------------------------------------------------------------------------------- long streams


@cache
def chain(*parts):
    """Atoms (a letter bit, iterated or not) one after the other, each waiting for the next."""
    moves, mark = [], frozenset({"x"})
    for number, (bit, iterated) in enumerate(parts):
        moves.append(Transition(number, number + 1, bit, mark))
        if iterated:
            moves.append(Transition(number + 1, number + 1, bit, mark))
        if number + 1 < len(parts):
            moves.append(Transition(number + 1, number + 1))
    predicates = tuple(Predicate(f"T{bit}") for bit in range(8))
    return Program(Automaton(len(parts) + 1, 0, frozenset({len(parts)}), order(moves), Alphabet(predicates)))


A, B, C = 1, 2, 4
ONCE = chain((A, False), (B, False), (C, False))
PLUS = chain((A, True), (B, True), (C, False))
LABELS = Program(
    Automaton(
        4,
        0,
        frozenset({3}),
        order(
            [
                *(Transition(source, 1, A, mark) for source in (0, 1) for mark in MARKS[:3]),
                Transition(1, 1),
                Transition(1, 2, B, MARKS[0]),
                Transition(2, 1, A, MARKS[1]),  # A right after B
                *(Transition(1, 3, C, mark) for mark in MARKS[:2]),
            ]
        ),
        Alphabet(tuple(Predicate(f"T{bit}") for bit in range(8))),
    )
)
PROGRAMS = {"A;B;C": ONCE, "A+;B+;C": PLUS, "labels": LABELS}


def stream_of(length, seed):
    return np.array(random.Random(seed).choices([1, 2, 4, 8, 16, 3], k=length), np.uint64)


def counted(run, letters, times=None, **how):
    found = [{}]
    times = np.arange(len(letters)) if times is None else times
    run.feed(letters, times, sink=collector(found, lambda _: 0), **how)
    return found[0]


@pytest.mark.parametrize("variant", available())
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("width", [5, 40, 200])
def test_long_streams(variant, name, width):
    program, letters = PROGRAMS[name], stream_of(300, f"{SEED} {name} {width}")
    wanted = counts_of(program, tuple(letters.tolist()), width)
    run = Counting(program, count_window=width, variant=variant)
    assert counted(run, letters) == wanted
    by_time = Counting(program, window=2 * width - 2, variant=variant)
    assert counted(by_time, letters, 2 * np.arange(len(letters))) == wanted
    assert (run.triggers, run.matches, run.events) == (len(wanted), len(wanted), len(letters))
    assert 0 < run.skipped < len(letters)


@pytest.mark.parametrize("variant", available())
@pytest.mark.parametrize("name", PROGRAMS)
def test_no_window(variant, name):
    """Numbers grow without end, and all partitions with them."""
    program, letters = PROGRAMS[name], stream_of(300, 7)
    wanted = counts_of(program, tuple(letters.tolist()), len(letters))
    assert counted(run := Counting(program, variant=variant), letters) == wanted
    if name == "A;B;C":
        assert run.shape.size == 1
    else:
        assert run.shape.size > 1
        assert max(wanted.values()).bit_length() > 64


@pytest.mark.parametrize("variant", available())
def test_numbers_widen_in_mid_stream(variant):
    """In the middle of batches, of segments and of turns, with other partitions beside; and after a restore."""
    letters = stream_of(400, 7)
    wanted = counts_of(PLUS, tuple(letters.tolist()), 250)
    small = counts_of(PLUS, tuple(letters.tolist()), 10)
    assert max(small.values()).bit_length() < 32
    assert max(wanted.values()).bit_length() > 64
    run, found, sizes = Counting(PLUS, count_window=250, variant=variant), [{} for _ in range(3)], set()
    rng = random.Random(SEED)
    at = 0
    while at < len(letters):
        to = at + rng.randint(1, 60)
        pieces = [[(0, int(letter), place) for place, letter in enumerate(letters[at:to].tolist(), at)]] * 3
        feed(run, pieces, found, [0, 1, 2], slots=np.array([4, 0, 2], np.int32))
        sizes.add(run.shape.size)
        at = to
        if rng.random() < 0.3:
            sections, run = run.dump(), Counting(PLUS, count_window=250, variant=variant)
            run.load(sections)
    assert found == [wanted] * 3
    assert len(sizes) > 1


@pytest.mark.parametrize("variant", available())
@pytest.mark.parametrize("window", [None, 150])
def test_more_macro_states_than_bits(variant, window):
    """70 parts in a chain are 70 macro states at once; the dead ones of a stream are collected."""
    program = chain(*((1 << part % 5, False) for part in range(70)))
    letters = np.array([1 << position % 5 for position in range(180)], np.uint64)
    letters[100:104] = 7
    wanted = counts_of(program, tuple(letters.tolist()), window or len(letters))
    assert len(wanted) > 5
    run = Counting(program, count_window=window, variant=variant)
    found = [{}]
    for start in range(0, len(letters), 50):
        feed(run, [[(0, int(letter), 0) for letter in letters[start : start + 50]]], found, [0], slots=np.zeros(1, np.int32))
        if start == 100:
            sections, run = run.dump(), Counting(program, count_window=window, variant=variant)
            run.load(sections)
    assert found[0] == wanted
    assert len(run.table.macros) > 62


@pytest.mark.parametrize("variant", available())
@pytest.mark.parametrize("window", [None, 6])
def test_dead_macro_states_are_collected(variant, window):
    """Sets of states of `B A C D ..` chains: many in the stream, few at one time."""
    rng = random.Random(5)
    moves = [Transition(0, state, 1 << state % 3, MARKS[state % 3]) for state in range(1, 7)]
    moves += [Transition(rng.randint(1, 7), rng.randint(1, 7), rng.choice([1, 2, 4]), rng.choice([None, MARKS[0]])) for _ in range(26)]
    program = Program(Automaton(8, 0, frozenset({7}), order(moves), THREE_TYPES))
    letters = np.array(rng.choices(range(8), k=250), np.uint64)
    consume = PARTITION if window is None else NONE
    run = Counting(program, count_window=window, consume=consume, variant=variant, sizes=CountSizes(collect=4))
    found = counted(run, letters)
    free = Counting(program, count_window=window, consume=consume, variant=variant)
    assert found == counted(free, letters)
    if window is not None:
        assert found == counts_of(program, tuple(letters.tolist()), window)
        assert len(run.table.macros) < len(free.table.macros)


def test_the_variants_agree_to_the_bytes_of_a_snapshot():
    letters = stream_of(300, f"{SEED} agree")
    for bounds in ({"count_window": 50}, {"window": 30, "consume": PARTITION}, {}):
        dumps = []
        for variant in available():
            run = Counting(LABELS, **bounds, variant=variant)
            run.feed(letters, np.arange(len(letters)), slots=np.zeros(1, np.int32))
            dumps.append(run.dump())
        assert all(dump == dumps[0] for dump in dumps)


# ------------------------------------------------------------------------------------------------------------------------- state


@pytest.mark.parametrize("variant", available())
def test_nothing_is_stored_once_all_has_died(variant):
    """`A : B : C`: what does not follow at once is dead, and with it the events before."""
    moves = [Transition(part, part + 1, 1 << part, MARKS[0]) for part in range(3)]
    program = Program(Automaton(4, 0, frozenset({3}), order(moves), THREE_TYPES))
    run = Counting(program, window=1_000, variant=variant)
    assert counted(run, np.array([A, B, A, B, C, A, B, 0], np.uint64), slots=np.array([0], np.int32)) == {4: 1}
    assert run.dump()["positions"] == b""


def test_release_and_expire():
    run = Counting(ONCE, window=10)
    letters, times = np.array([A, B, C], np.uint64), np.array([0, 1, 2])
    for slot in range(3):
        run.feed(letters, times + slot * 5, slots=np.array([slot], np.int32))
    assert run.slots >= 3
    assert 0 not in run.expire(10).tolist()
    idle = run.expire(12).tolist()  # the A of slot 0 is out, positions go on
    assert 0 in idle
    assert 2 not in idle
    found = [{}]
    feed(run, [[(0, C, 13)]], found, [0], slots=np.array([0], np.int32))
    feed(run, [[(0, C, 13)]], found, [0], slots=np.array([2], np.int32))
    assert found == [{3: 1}]
    run.release(np.array([2]))
    assert counted(run, letters, times + 20, slots=np.array([2], np.int32)) == {2: 1}
    assert run.triggers == 5


def test_expire_without_a_window_frees_what_has_not_begun():
    run = Counting(ONCE)
    run.feed(np.array([B, A], np.uint64), np.zeros(2, np.int64), cuts=np.array([0, 1]), slots=np.array([0, 1], np.int32))
    assert set(run.expire(5).tolist()) & {0, 1} == {0}


def test_memory_is_given_back():
    count = 3_000
    run = Counting(ONCE, window=10)
    cuts, slots = np.arange(0, 20 * count, 20), np.arange(count, dtype=np.int32)
    run.feed(np.tile(np.array([A, B] * 10, np.uint64), count), np.zeros(20 * count, np.int64), cuts=cuts, slots=slots)
    assert not run.wasteful
    run.feed(np.array([A], np.uint64), np.array([100]), slots=np.array([5], np.int32))
    full = run.memory_usage()
    run.expire(100)
    assert run.memory_usage() < full / 4
    assert not run.wasteful
    moved = Counting(ONCE, window=10)
    moved.load(run.dump())
    assert run.memory_usage() < 1.3 * moved.memory_usage()
    assert counted(moved, np.array([B, C], np.uint64), np.array([100, 101]), slots=np.array([5], np.int32)) == {22: 1}


@pytest.mark.parametrize("bounds", [{"window": 9}, {}], ids=["window", "no window"])
def test_damaged_sections(bounds):
    """Bytes that are cut, longer or wrong are a SnapshotError, or a state that runs."""
    run = Counting(PLUS, **bounds)
    run.feed(stream_of(60, 1), np.arange(60), slots=np.array([3], np.int32))
    sections = run.dump()
    rng = random.Random(SEED)
    for name, content in sections.items():
        for damaged in (content[:-1], content + b"\0", content[: len(content) // 2 // 8 * 8] if len(content) > 15 else b"1"):
            with pytest.raises(SnapshotError):
                Counting(PLUS, **bounds).load({**sections, name: damaged})
        with pytest.raises(SnapshotError):
            Counting(PLUS, **bounds).load({key: value for key, value in sections.items() if key != name})
    for _ in range(CASES):
        name = rng.choice(["slots", "positions", "times", "letters"] if bounds else ["counts"])
        content = bytearray(sections[name])
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        if name == "slots" and content[:8] != sections[name][:8]:
            continue  # another slot, maybe the 2**60th
        other = Counting(PLUS, **bounds, variant="python")
        try:
            other.load({**sections, name: bytes(content)})
        except SnapshotError:
            continue
        other.feed(stream_of(9, 2), np.arange(60, 69), slots=np.array([3], np.int32))


# ------------------------------------------------------------------------------------------------------------------------- limits


def test_a_number_too_wide(monkeypatch):
    monkeypatch.setattr(module, "COUNT_LIMBS", 2)
    for bounds in ({}, {"count_window": 2_000}):
        with pytest.raises(LimitError, match=r"more than 2 limbs .* the limit is 2 \(COUNT_LIMBS\)") as error:
            Counting(PLUS, **bounds).feed(np.full(1_000, A, np.uint64), np.arange(1_000))
        assert "WITHIN 1000 EVENTS" in error.value.help[0]


def test_too_many_macro_states(monkeypatch):
    monkeypatch.setattr(module, "COUNT_STATES", 8)
    program = chain(*((1 << part % 5, False) for part in range(70)))
    with pytest.raises(LimitError, match=r"COUNT_STATES"):
        Counting(program).feed(np.array([1 << position % 5 for position in range(80)], np.uint64), np.arange(80))


def test_a_block_too_large(monkeypatch):
    monkeypatch.setattr(count_blocks, "COUNT_WORDS", 1 << 10)
    with pytest.raises(LimitError, match=r"COUNT_WORDS"):
        Counting(PLUS, count_window=2_000).feed(np.full(1_000, A, np.uint64), np.arange(1_000))
