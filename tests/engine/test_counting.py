"""COUNT(*) against the definition, against the runs of random automata, and against Python's integers on long streams.

CEPHEID_CASES is the number of random cases per test (default 200), CEPHEID_SEED the seed (default: drawn, and printed).
"""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from strategy_cases import CASES, SEED

import cepheid
from cepheid.automata.alphabet import Alphabet, Predicate
from cepheid.automata.automaton import Automaton
from cepheid.automata.program import Program, program_of
from cepheid.automata.transition import Transition, order
from cepheid.engine.evaluations import counting as module
from cepheid.engine.evaluations.counting import Counting, CountSizes
from cepheid.engine.letters.predicates import Predicates
from cepheid.engine.memory import count_blocks
from cepheid.engine.output import exact_counts
from cepheid.engine.output.matches import concatenate
from cepheid.engine.plan.planner import hoist
from cepheid.engine.run import definition
from cepheid.errors import BindError, LimitError, SnapshotError
from cepheid.kernel import available
from cepheid.language.syntax import Consumption
from cepheid.logical.rewrite import rewrite
from cepheid.testing import generators, reference

NONE, PARTITION, ANY = Consumption.NONE, Consumption.PARTITION, Consumption.ANY
LETTERS = (0, 1, 2, 4, 3, 6, 7)
MARKS = (frozenset({"x"}), frozenset({"y"}), frozenset({"x", "y"}), frozenset())


def tiny(rng):
    chunk = rng.choice([1, 3, 64])
    return CountSizes(
        places=rng.choice([1, 2, 4]),
        width=rng.choice([1, 2, 4]),
        chunk=chunk,
        most_chunk=2 * chunk,
        table=rng.choice([1, 12, 1 << 20]),
        collect=rng.choice([1, 3, 64]),
    )


# ------------------------------------------------------------------------------------------------------------------------- oracles


@cache
def counts_of(program, letters, width):
    """Per end the number of matches in a window of so many events: the paths of the determinized automaton, in Python's integers, one by one."""
    memo = {}

    def successors(macro, letter):
        if (macro, letter) not in memo:
            memo[macro, letter] = program.successors(macro, letter)
        return memo[macro, letter]

    found = {}
    for end in range(len(letters)):
        row = {}
        for position in range(max(0, end - width + 1), end + 1):
            after, total = Counter(), 0
            for macro, count in [(program.initial, 1), *row.items()]:
                marked, unmarked = successors(macro, letters[position])
                for _, target in marked:
                    after[target] += count
                    total += count * program.accepts(target)
                if unmarked and macro != program.initial:
                    after[unmarked] += count
            row = after
        if total:
            found[end] = total
    return found


def runs(automaton, letters):
    """All matches, by following every run: sets of (position, mark); an independent definition, exponential."""
    open_runs, matches = {}, set()
    for position, letter in enumerate(letters):
        after = {}
        for move in automaton.transitions:
            if not move.enabled(letter):
                continue
            before = {()} if move.source == automaton.initial else open_runs.get(move.source, ())
            longer = {run if move.mark is None else (*run, (position, move.mark)) for run in before}
            after.setdefault(move.target, set()).update(longer)
            if move.target in automaton.finals and move.mark is not None:
                matches |= longer
        open_runs = after
        if len(matches) > 3_000 or sum(map(len, open_runs.values())) > 3_000:
            return None
    return matches


# ------------------------------------------------------------------------------------------------------------------------- cases


THREE_TYPES = Alphabet(tuple(Predicate(f"T{bit}") for bit in range(3)))


def random_automaton(rng):
    """Moves of every kind: several marks on one event, unmarked moves between states, states that die."""
    states = rng.randint(2, 6)
    inner = range(1, states)
    moves = {Transition(0, rng.choice(inner), rng.choice([0, 1, 2, 4, 3]), rng.choice(MARKS)) for _ in range(rng.randint(2, 4))}
    for _ in range(rng.randint(3, 14)):
        mark = rng.choice([None, None, *MARKS[:3]])
        moves.add(Transition(rng.choice(inner), rng.choice(inner), rng.choice([0, 0, 1, 2, 4, 3]), mark, rng.choice([0, 0, 4])))
    finals = frozenset(rng.choice(inner) for _ in range(2))
    return Automaton(states, 0, finals, order(moves), THREE_TYPES)


@dataclass
class Case:
    """events: (partition, letter, time) in stream order; expected: per partition, end -> number of matches."""

    program: Program
    events: list[tuple[int, int, int]]
    partitions: int
    bounds: dict
    expected: list[dict[int, int]]

    def __str__(self):
        return f"{self.bounds}\n{self.events}\n{self.program.automaton}"


@cache
def random_case(number):
    rng = random.Random(f"{SEED} count {number}")
    while True:
        automaton = random_automaton(rng)
        partitions = rng.choice([1, 1, 2, 4])
        events, now = [], rng.randint(-5, 5)
        for _ in range(rng.randint(0, 13 * partitions)):
            now += rng.choice([0, 1, 1, 2, 5])
            events.append((rng.randrange(partitions), rng.choice(LETTERS), now))
        bounds = {
            "window": rng.choice([None, 0, 1, 2, 5, 8, 13]),
            "count_window": rng.choice([None, None, 1, 2, 3, 5, 8]),
            "consume": rng.choice([NONE, NONE, PARTITION, ANY]),
        }
        streams = [
            [(letter, time, place) for place, (p, letter, time) in enumerate(events) if p == partition] for partition in range(partitions)
        ]
        matches = [runs(automaton, [letter for letter, _, _ in stream]) for stream in streams]
        if None not in matches:
            return Case(Program(automaton), events, partitions, bounds, expected(events, streams, matches, **bounds))


def expected(events, streams, matches, *, window, count_window, consume):
    found, seen, last = [{} for _ in streams], [0] * len(streams), [-1] * len(streams)
    for place, (partition, _, time) in enumerate(events):
        stream, end = streams[partition], seen[partition]
        seen[partition] += 1
        count = 0
        for match in matches[partition]:
            start = match[0][0]
            inside = (window is None or time - stream[start][1] <= window) and (count_window is None or end - start < count_window)
            count += match[-1][0] == end and inside and stream[start][2] > last[partition]
        if count:
            found[partition][end] = count
            if consume is not NONE:
                last = [place if consume is ANY or other == partition else before for other, before in enumerate(last)]
    return found


def collector(found, partition_of):
    def sink(chunk):
        assert (chunk.counts.dtype, len(chunk.counts)) == ("uint64", len(chunk))
        assert chunk.counts.shape[1] >= 2
        assert chunk.offsets.tolist() == list(range(len(chunk) + 1))
        assert chunk.labels.tolist() == [0] * len(chunk)
        for segment, end, count in zip(chunk.segments.tolist(), chunk.positions.tolist(), chunk.counts, strict=True):
            ends = found[partition_of(segment)]
            assert not ends or end > max(ends)
            ends[end] = exact_counts.to_integer(count)

    return sink


def feed(run, pieces, found, whose, **how):
    rows = [event for piece in pieces for event in piece]
    cuts = np.cumsum([0, *map(len, pieces[:-1])]).astype(np.int64)
    letters, times = np.array([row[1] for row in rows], np.uint64), np.array([row[2] for row in rows], np.int64)
    before = run.triggers
    run.feed(letters, times, cuts=cuts, sink=collector(found, lambda segment: whose[segment]), **how)
    assert len(run.marked) == len(rows)
    assert run.marked.sum() == run.triggers - before


def stored(case, rng, make):
    """Every partition in a slot, the stream in random batches; dumped and loaded between some of them."""
    run, found = make(), [{} for _ in range(case.partitions)]
    slots = rng.sample(range(case.partitions + 3), case.partitions)
    at = 0
    while at < len(case.events):
        to = at + rng.choice([1, 2, 5, 9, 40])
        batch = case.events[at:to]
        at = to
        if case.bounds["consume"] is not ANY and rng.random() < 0.7:
            batch = sorted(batch, key=lambda event: event[0])
        pieces = [[event] for event in batch]
        for index in range(len(pieces) - 1, 0, -1):  # neighbours of one partition are one segment, mostly
            if pieces[index][0][0] == pieces[index - 1][0][0] and rng.random() < 0.8:
                pieces[index - 1 : index + 1] = [pieces[index - 1] + pieces[index]]
        whose = [piece[0][0] for piece in pieces]
        feed(run, pieces, found, whose, slots=np.array([slots[partition] for partition in whose], np.int32))
        if rng.random() < 0.3:
            sections, again = run.dump(), make()
            again.load(sections)
            assert again.dump()["counters"] == sections["counters"]
            run = again
        elif rng.random() < 0.2:
            run.expire(case.events[min(at, len(case.events)) - 1][2])
    return found


def forgotten(case, rng, make):
    """Partition after partition, none kept; a batch may begin inside a partition."""
    run, found = make(), [{} for _ in range(case.partitions)]
    continued = False
    for partition in range(case.partitions):
        stream = [event for event in case.events if event[0] == partition]
        cut = rng.randint(0, len(stream))
        feed(run, [stream[:cut]], found, [partition])
        feed(run, [stream[cut:]], found, [partition], continued=True)
        assert not continued
    return found


# ------------------------------------------------------------------------------------------------------------------------- random tests


@pytest.mark.parametrize("variant", available())
def test_random_automata(variant, capsys):
    with capsys.disabled():
        print(f"\n{CASES} random cases, CEPHEID_SEED={SEED}, kernel {variant}")  # noqa: T201 - to run a failure again
    total = 0
    for number in range(CASES):
        rng = random.Random(f"{SEED} count {number} {variant}")
        case = random_case(number)
        where = f"CEPHEID_SEED={SEED} case {number} variant {variant} {case}"

        def make(case=case, rng=rng):
            return Counting(case.program, **case.bounds, variant=variant, sizes=tiny(rng))

        assert stored(case, rng, make) == case.expected, where
        if case.bounds["consume"] is not ANY:
            assert forgotten(case, rng, make) == case.expected, where
        total += sum(map(sum, (counts.values() for counts in case.expected)))
    assert total > CASES


@cache
def random_queries():
    """(text, plan, events, expected) of random queries of the engine's fragment."""
    fragment = dataclasses.replace(generators.ENGINE, strategies=("", "ALL", "STRICT"), count=1.0, consume=0.4)
    number, cases = 0, []
    while len(cases) < CASES:
        rng = random.Random(f"{SEED} query {number}")
        number += 1
        query = cepheid.query(generators.random_query(rng, fragment=fragment))
        events = generators.table(generators.random_stream(rng))
        plan = query.bound(query.schema(events.schema))
        try:
            result = reference.run(plan, definition.rows_of(plan, events), max_matches=3_000)
        except LimitError:  # too many matches for the definition
            continue
        found = {(part.key, group.end): group.count for part in result.partitions for group in part.groups}
        cases.append((query.text, plan, events, found))
    return cases


@pytest.mark.parametrize("variant", available())
def test_random_queries(variant):
    """Projections, conjunctions, `:`, STRICT, filters, optional parts: each match is counted once."""
    total = 0
    for text, plan, events, expected_counts in random_queries():
        rewritten = rewrite(plan)
        pattern, bounds = hoist(rewritten.pattern)
        program = program_of(pattern, plan.schema, variables=None, strategy=plan.strategy)
        run = Counting(program, window=bounds.window, count_window=bounds.count, consume=plan.consume, variant=variant)
        letters = Predicates(program.automaton.alphabet, plan.schema).letters(events)
        rows = events.to_pylist()
        keys = [tuple(None if row[name] != row[name] else row[name] for name in rewritten.partition_by) for row in rows]
        kept = [place for place, key in enumerate(keys) if None not in key]
        slots = {key: slot for slot, key in enumerate(dict.fromkeys(keys[place] for place in kept))}
        names = list(slots)
        found = [{} for _ in names]
        pieces = [[(0, int(letters[place]), rows[place]["ts"])] for place in kept]
        whose = [slots[keys[place]] for place in kept]
        if pieces:
            feed(run, pieces, found, whose, slots=np.array(whose, np.int32))
        given = {(names[slot], end): count for slot, ends in enumerate(found) for end, count in ends.items()}
        assert given == expected_counts, f"CEPHEID_SEED={SEED} {text}\n{rows}"
        total += sum(given.values())
    assert total > CASES // 4


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
    run.expire(100)
    assert run.wasteful
    moved = Counting(ONCE, window=10)
    moved.load(run.dump())
    assert moved.memory_usage() < run.memory_usage() / 4
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


# ------------------------------------------------------------------------------------------------------------------------- columns


def test_columns_of_counts():
    values = [0, 1, 2**64 - 1, 2**64, 2**127, 10**38 - 1, 10**38, 10**38 + 1, 2**128 - 1, 2**128, 10**60]
    column = exact_counts.from_integers(values)
    assert (column.dtype, column.shape) == ("uint64", (len(values), 4))
    assert [exact_counts.to_integer(count) for count in column] == values
    count, overflow = exact_counts.columns(column)
    assert (count.type, overflow.type) == (pa.decimal128(38, 0), pa.bool_())
    assert overflow.to_pylist() == [value >= 10**38 for value in values]
    assert [None if value is None else int(value) for value in count.to_pylist()] == [v if v < 10**38 else None for v in values]
    assert count.null_count == overflow.true_count
    count.validate(full=True)
    assert exact_counts.columns(exact_counts.no_counts())[0].to_pylist() == []
    joined = exact_counts.joined([exact_counts.from_integers([7]), exact_counts.no_counts(), column])
    assert [exact_counts.to_integer(count) for count in joined] == [7, *values]
    assert exact_counts.joined([]).shape == (0, 2)


def counted_by_definition():
    events = [{"type": kind, "ts": time, "k": time // 5} for time, kind in enumerate("AABCCABBC")]
    return cepheid.query("SELECT COUNT(*) WHERE A+ ; B ; C PARTITION BY k").run(events, engine="reference")


def test_counts_in_matches():
    matches = counted_by_definition()
    values = [match.measures["count"] for match in matches]
    assert values == [3, 3, 2]
    table = matches.to_arrow()
    assert table.column_names == ["k", "start", "end", "start_time", "end_time", "count", "count_overflow"]
    assert [int(value) for value in table["count"].to_pylist()] == values
    assert table["count_overflow"].to_pylist() == [False] * len(values)
    assert matches.to_arrow(events=True).column_names == ["k", "start_time", "end_time", "count", "count_overflow"]
    assert table.schema.field("count").type == pa.decimal128(38, 0)
    assert [match.start == match.end for match in matches] == [True] * len(values)
    assert [match.measures["count"] for match in matches[1:]] == values[1:]
    assert [match.measures["count"] for match in matches[::-1]] == values[::-1]
    twice = concatenate(matches.layout, [matches, matches[:0], matches[1:]])
    assert [match.measures["count"] for match in twice] == values + values[1:]
    nothing = concatenate(matches.layout, [])
    assert nothing.to_arrow().schema == table.schema
    assert "count=" in repr(matches[0])


def test_a_count_of_many_digits_is_shown_by_their_number():
    events = [{"type": "A", "ts": time} for time in range(4)]
    matches = cepheid.query("SELECT COUNT(*) WHERE A+").run(events, engine="reference")
    huge = dataclasses.replace(matches, counts=exact_counts.from_integers([10**5_000] * len(matches)))
    assert huge[0].measures == {"count": 10**5_000}
    assert "count=<5001 digits>" in repr(huge[0])
    assert "NULL" in repr(huge)


def test_nothing_to_count():
    query = cepheid.query("SELECT COUNT(*) WHERE A ; B")
    events = [{"type": "A", "ts": 1}]
    nothing = query.run(events)
    assert nothing.to_arrow().equals(query.run(events, engine="reference").to_arrow())
    assert nothing.to_arrow().column_names[-2:] == ["count", "count_overflow"]


@pytest.mark.parametrize("name", ["count", "count_overflow"])
def test_names_that_are_taken(name):
    with pytest.raises(BindError, match=f"two columns named `{name}`"):
        cepheid.query(f"SELECT COUNT(*) WHERE A PARTITION BY {name}").run([{"type": "A", "ts": 1, name: 1}], engine="reference")
