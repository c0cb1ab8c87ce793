"""The kernel against explicit runs: random automata and formulas, tiny buffers, random cuts, partitions in every mode, both windows.

CEPHEID_CASES is the number of random cases per variant (default 200), CEPHEID_SEED the seed (default: drawn, and printed).
"""

from __future__ import annotations

import os
import random
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest
from enough import Enough, share

from cepheid.engine.evaluations.graph.match import Evaluation, Sizes
from cepheid.engine.memory import container as state
from cepheid.kernel import available

CASES = int(os.environ.get("CEPHEID_CASES", "200"))
SEED = int(os.environ.get("CEPHEID_SEED", str(random.SystemRandom().randrange(1 << 32))))
LETTERS = (0, 1, 2, 4, 8, 3, 6, 7, 15)
MOST_MATCHES = 8_000  # of one case, so that the uncompiled kernel stays quick


@dataclass(frozen=True)
class Toy:
    """transitions: (source, required bits, label or None, target); state 0 is initial."""

    transitions: tuple[tuple[int, int, int | None, int], ...]
    finals: frozenset[int]
    bits: int = 4
    initial: int = 1

    @property
    def states(self):
        return 1 + max(max(source, target) for source, _, _, target in self.transitions)

    @property
    def labels(self):
        return 1 + max((label for _, _, label, _ in self.transitions if label is not None), default=0)

    @property
    def fingerprint(self):
        return repr((self.transitions, sorted(self.finals))).encode()

    def successors(self, macro, letter):
        marked, unmarked = {}, 0
        for source, required, label, target in self.transitions:
            if macro >> source & 1 and letter & required == required:
                if label is None:
                    unmarked |= 1 << target
                else:
                    marked[label] = marked.get(label, 0) | 1 << target
        return tuple(sorted(marked.items())), unmarked

    def accepts(self, macro):
        return any(macro >> state & 1 for state in self.finals)

    def ends(self, macro):
        return not any(macro >> source & 1 for source, *_ in self.transitions)


def runs(toy, letters, times, window, count_window):
    """All matches by following every run: tuples of (position, label), in stream order of their ends."""
    open_runs, matches = {0: {()}}, []
    for position, letter in enumerate(letters):
        after, ended = {0: {()}}, set()
        for source, required, label, target in toy.transitions:
            if letter & required != required:
                continue
            for run in open_runs.get(source, ()):
                longer = run if label is None else (*run, (position, label))
                after.setdefault(target, set()).add(longer)
                if label is not None and target in toy.finals:
                    ended.add(longer)

        def inside(run, position=position):
            return (not run or window is None or times[position] - times[run[0][0]] <= window) and (
                not run or count_window is None or position - run[0][0] < count_window
            )

        open_runs = {source: set(filter(inside, found)) for source, found in after.items()}
        matches += filter(inside, ended)
        if len(matches) > MOST_MATCHES or sum(map(len, open_runs.values())) > MOST_MATCHES:
            return None
    return matches


# Formulas of complex event logic: ("atom", bits, label), ("seq", f, g), ("or", f, g), ("plus", f).


def random_formula(rng, depth):
    kind = rng.choice(["atom", "seq", "seq", "or", "plus"]) if depth else "atom"
    if kind == "atom":
        return ("atom", rng.choice([1, 2, 4, 8, 3, 6, 1, 2]), rng.randrange(3))
    return (kind, *(random_formula(rng, depth - 1) for _ in range(1 if kind == "plus" else 2)))


def most_macro_states(toy, letters):
    """The greatest number of macro states that are live at once, by determinizing along the stream without any window."""
    live, most = set(), 0
    for letter in letters:
        after = set()
        for macro in {toy.initial, *live}:
            marked, unmarked = toy.successors(macro, letter)
            after.update(target for _, target in marked)
            after.add(unmarked)
        live = after - {0}
        most = max(most, len(live))
    return most


def denotation(formula, letters):
    """The matches straight from the definition (exponential)."""
    kind, *parts = formula
    if kind == "atom":
        return {((i, parts[1]),) for i, letter in enumerate(letters) if letter & parts[0] == parts[0]}
    sets = [denotation(part, letters) for part in parts]
    if kind == "or":
        return sets[0] | sets[1]
    if kind == "seq":
        return {a + b for a in sets[0] for b in sets[1] if a[-1][0] < b[0][0]}
    found = last = sets[0]
    while last:
        last = {a + b for a in last for b in sets[0] if a[-1][0] < b[0][0]} - found
        found = found | last
    return found


def automaton_of(formula):
    """Thompson's way without empty moves: no transition enters the initial state, waiting loops before each later part."""
    count = 0

    def new():
        nonlocal count
        count += 1
        return count - 1

    def build(f):
        kind, *parts = f
        if kind == "atom":
            a, b = new(), new()
            return a, {b}, [(a, parts[0], parts[1], b)]
        first, finals, moves = build(parts[0])
        if kind == "plus":
            wait = new()
            into = [(s, r, m, wait) for s, r, m, t in moves if t in finals]
            again = [(wait, r, m, t) for s, r, m, t in moves + into if s == first]
            return first, finals, [*moves, *into, (wait, 0, None, wait), *again]
        second, more_finals, more = build(parts[1])
        if kind == "seq":
            joins = [(s, r, m, second) for s, r, m, t in moves if t in finals]
            return first, more_finals, [*moves, *more, *joins, (second, 0, None, second)]
        start = new()
        both = [(start, r, m, t) for s, r, m, t in moves + more if s in (first, second)]
        return start, finals | more_finals, moves + more + both

    first, finals, moves = build(formula)
    number = {first: 0} | {s: k + 1 for k, s in enumerate(s for s in range(count) if s != first)}
    return Toy(tuple((number[s], r, m, number[t]) for s, r, m, t in moves), frozenset(number[s] for s in finals))


def random_toy(rng, most_states=6):
    states = rng.randint(2, most_states)
    inner = range(1, states)
    moves = {(0, rng.choice([0, 1, 2, 4, 3]), rng.randrange(3), rng.choice(inner)) for _ in range(rng.randint(2, 4))}
    for _ in range(rng.randint(3, 14 * most_states // 6)):
        moves.add((rng.choice(inner), rng.choice([0, 0, 1, 2, 4, 3]), rng.choice([None, None, 0, 1, 2]), rng.choice(inner)))
    return Toy(tuple(sorted(moves, key=repr)), frozenset(rng.choice(inner) for _ in range(2)))


# ---------------------------------------------------------------------------------------------------- one case


@dataclass
class Case:
    toy: Toy
    streams: list[tuple[list[int], list[int]]]  # per partition: letters, times
    window: int | None
    count_window: int | None
    expected: list[list[tuple]]

    @cached_property
    def most_lists(self):
        return max(most_macro_states(self.toy, letters) for letters, _ in self.streams)


def random_case(rng, number):
    while True:
        formula = random_formula(rng, 3) if number % 4 == 0 else None
        long = number % 4 == 1  # long streams have short windows
        toy = automaton_of(formula) if formula else random_toy(rng, 9 if long else 6)
        window = rng.choice([3, 5, 8] if long else [None, 0, 1, 2, 3, 5, 8, 13])
        count_window = rng.choice([None, 4, 6, 8] if long else [None, None, 1, 2, 3, 5, 8])
        streams, expected = [], []
        for _ in range(rng.choice([1, 1, 2, 4])):
            letters = [rng.choice(LETTERS) for _ in range(rng.randint(0, 9 if formula else 50 if long else 13))]
            times, time = [], rng.randint(-5, 5)
            for _ in letters:
                time += rng.choice([0, 1, 1, 2, 5])
                times.append(time)
            streams.append((letters, times))
            expected.append(runs(toy, letters, times, window, count_window))
        if None in expected:
            continue
        if formula:
            for (letters, times), found in zip(streams, expected, strict=True):
                within = [
                    m
                    for m in denotation(formula, letters)
                    if (window is None or times[m[-1][0]] - times[m[0][0]] <= window)
                    and (count_window is None or m[-1][0] - m[0][0] < count_window)
                ]
                assert sorted(found) == sorted(within), formula
        return Case(toy, streams, window, count_window, expected)


def tiny(rng):
    chunk = rng.choice([1, 3, 64])
    return Sizes(
        cells=rng.choice([2, 8, 16]),
        starts=rng.choice([1, 4]),
        packed=rng.choice([4, 16]),
        lists=rng.choice([1, 4]),
        entries=rng.choice([2, 4]),
        stack=16,
        path=2,
        chunk=chunk,
        most_chunk=chunk,
        chunk_positions=rng.choice([1, 8, 512]),
        table=rng.choice([1, 12, 1 << 20]),
    )


def evaluation(case, rng, variant, limit=None, sample=None):
    bounds = {"window": case.window, "count_window": case.count_window, "limit": limit, "sample": sample}
    return Evaluation(case.toy, **bounds, variant=variant, sizes=tiny(rng))


def collector(found, partition_of):
    def sink(chunk):
        offsets, positions, labels = chunk.offsets.tolist(), chunk.positions.tolist(), chunk.labels.tolist()
        for k, segment in enumerate(chunk.segments.tolist()):
            span = slice(offsets[k], offsets[k + 1])
            found[partition_of(segment)].append(tuple(zip(positions[span], labels[span], strict=True)))

    return sink


def random_pieces(rng, streams):
    """Batches of segments (partition, letters, times): each stream in order, partitions interleaved at random."""
    left = [0] * len(streams)
    batches = []
    while any(at < len(letters) for at, (letters, _) in zip(left, streams, strict=True)):
        batch = []
        for _ in range(rng.randint(1, 3)):
            partition = rng.randrange(len(streams))
            letters, times = streams[partition]
            at, to = left[partition], min(len(letters), left[partition] + rng.randint(0, 6))
            batch.append((partition, letters[at:to], times[at:to]))
            left[partition] = to
        batches.append(batch)
    return batches


def feed(run, batch, found, most_lists, **how):
    letters = np.array([x for _, piece, _ in batch for x in piece], np.uint64)
    times = np.array([x for _, _, piece in batch for x in piece], np.int64)
    lengths = [len(piece) for _, piece, _ in batch]
    cuts = np.cumsum([0, *lengths])[:-1].astype(np.int64)
    run.feed(letters, times, cuts=cuts, sink=collector(found, lambda segment: batch[segment][0]), **how)
    check_invariants(run, most_lists)


def check_invariants(run, most_lists):
    """Union depth and list lengths of the stored partitions; no list is empty; nothing stays in the work area.

    Why no list is longer than 1 + the lists that were live together: an entry behind the first, of max start m, was joined after m from a
    list whose max start is smaller. New lists start at the event they are made at; so the max starts below m that occur after m are those
    of the lists that were live before m, and those of one list strictly decrease.
    """
    assert (run._list_of == -1).all()
    column, packed, cells = run.store.column, run.store.packed.arrays[0], run.store.cells.arrays[0].reshape(-1, 4)
    for row in run.store.records.tolist():
        for kind, first, last in (("cells", "head", "next"), ("starts", "starts_head", "starts_tail")):
            assert 0 <= row[column[last]] - row[column[first]] <= row[column[f"{kind}_mask"]] + 1
        count, offset = row[column["lists"]], row[column["packed_offset"]]
        lengths = packed[offset + 2 * count : offset + 3 * count].tolist()
        assert all(1 <= length <= 1 + most_lists for length in lengths)
        at = offset + 3 * count
        for length in lengths:
            for entry in packed[at : at + length].tolist():
                assert depth(cells, row, column, entry) <= 3
            at += length


def depth(cells, row, column, cell):
    """Unions on the way to the first output."""
    if cell < row[column["head"]]:
        return 0
    position, child, _, _ = cells[row[column["cells_offset"]] + (cell & row[column["cells_mask"]])].tolist()
    return 0 if position >= 0 else 1 + depth(cells, row, column, child)


def age(run, rng):
    """As if each stored partition had seen a thousand million events: relative positions and ids near the limits of 32 bits."""
    column = run.store.column
    cells, positions, packed = run.store.cells.arrays[0].reshape(-1, 4), run.store.starts.arrays[0], run.store.packed.arrays[0]
    for row in run.store.records:
        more = rng.choice([0, (1 << 30) + 5]) if row[column["position"]] < 1 << 20 else 0
        mask = int(row[column["cells_mask"]])
        ids = rng.choice([0, 1 << 30]) if mask >= 0 and row[column["next"]] < 1 << 20 else 0
        place = row[column["cells_offset"]] + (np.arange(row[column["head"]], row[column["next"]]) & mask)
        moved = cells[place]
        moved[:, 0] += np.where(moved[:, 0] < 0, -more, more).astype(np.int32)
        moved[:, 3] += more
        moved[:, 1:3] = np.where(moved[:, 1:3] > 0, moved[:, 1:3] + ids, 0)
        cells[place] = moved
        starts = np.arange(row[column["starts_head"]], row[column["starts_tail"]])
        positions[row[column["starts_offset"]] + (starts & row[column["starts_mask"]])] += more
        count, offset = int(row[column["lists"]]), int(row[column["packed_offset"]])
        entries = int(packed[offset + 2 * count : offset + 3 * count].sum())
        packed[offset + count : offset + 2 * count] += more
        packed[offset + 3 * count : offset + 3 * count + entries] += ids
        for name, add in (("position", more), ("base", -more), ("head", ids), ("next", ids)):
            row[column[name]] += add


def stored(case, rng, variant, limit=None, sample=None, *, restore=True):
    """Every partition in a slot of its own, events in random batches; state dumped and loaded between some of them."""
    run, found = evaluation(case, rng, variant, limit, sample), [[] for _ in case.streams]
    slots = rng.sample(range(len(case.streams) + 3), len(case.streams))
    for batch in random_pieces(rng, case.streams):
        feed(run, batch, found, case.most_lists, slots=np.array([slots[p] for p, _, _ in batch], np.int32))
        if restore and rng.random() < 0.3:
            data = state.pack(run.dump(), fingerprint=case.toy.fingerprint)
            sections = state.unpack(data, fingerprint=case.toy.fingerprint)
            run = evaluation(case, rng, variant, limit, sample)
            run.load(sections)
        elif restore and rng.random() < 0.3:
            age(run, rng)
    return found


def forgotten(case, rng, variant, limit=None, sample=None):
    """Partition after partition, nothing stored: a batch may begin inside a partition."""
    run, found = evaluation(case, rng, variant, limit, sample), [[] for _ in case.streams]
    pieces = []
    for partition, (letters, times) in enumerate(case.streams):
        cut = rng.randint(0, len(letters))
        pieces += [[(partition, letters[:cut], times[:cut])], [(partition, letters[cut:], times[cut:])]]
    batch, begun = [], False
    for number, piece in enumerate(pieces):
        if number % 2 and rng.random() < 0.7:  # the partition goes on in the next batch
            feed(run, batch, found, case.most_lists, continued=begun)
            batch, begun = list(piece), True
        elif number % 2:
            partition, letters, times = batch.pop()
            batch.append((partition, letters + piece[0][1], times + piece[0][2]))
        else:
            batch += piece
    feed(run, batch, found, case.most_lists, continued=begun)
    return found


MODES = {"stored": stored, "forgotten": forgotten}


@pytest.mark.parametrize("variant", available())
def test_matches_of_random_automata(variant, capsys):
    with capsys.disabled():
        print(f"\n{CASES} random cases, CEPHEID_SEED={SEED}, kernel {variant}")  # noqa: T201 - to run a failure again
    drawn = Enough(share(CASES, variant), total=100)
    for number in drawn:
        rng = random.Random(f"{SEED} {number}")
        case = random_case(rng, number)
        where = f"CEPHEID_SEED={SEED} case {number} variant {variant}"
        for name, mode in MODES.items():
            full = mode(case, rng, variant)
            for found, expected in zip(full, case.expected, strict=True):
                assert len(set(found)) == len(found), f"duplicates: {where} {name}"
                assert sorted(found) == sorted(expected), f"{where} {name}"
                assert [m[-1][0] for m in found] == sorted(m[-1][0] for m in found), f"order: {where} {name}"
            for limit in (1, 2):
                limited = mode(case, rng, variant, limit)
                assert limited == [prefix(found, limit) for found in full], f"limit {limit}: {where} {name}"
            drawn.seen["total"] += sum(map(len, full))


@pytest.mark.parametrize("variant", available())
def test_samples_of_random_automata(variant):
    """As many as asked for, different, and the same however the stream is cut."""
    for number in range(CASES // 4):
        rng = random.Random(f"{SEED} {number}")
        case = random_case(rng, number)
        for sample in (1, 3, 7):
            found = {name: mode(case, rng, variant, sample=sample) for name, mode in MODES.items()}
            assert found["stored"] == found["forgotten"], f"CEPHEID_SEED={SEED} case {number} variant {variant} sample {sample}"
            for given, expected in zip(found["stored"], case.expected, strict=True):
                assert len(set(given)) == len(given)
                assert set(given) <= set(expected)
                all_of = Counter(m[-1][0] for m in expected)
                assert Counter(m[-1][0] for m in given) == {end: min(sample, count) for end, count in all_of.items()}


def prefix(matches, limit):
    """The first `limit` matches of each ending position."""
    kept, seen = [], {}
    for match in matches:
        end = match[-1][0]
        seen[end] = seen.get(end, 0) + 1
        if seen[end] <= limit:
            kept.append(match)
    return kept


@pytest.mark.parametrize("variant", available())
def test_more_live_macro_states_than_bits(variant):
    length = 80
    letters = [1 << k if k < 64 else 0b10001 << k - 64 for k in range(length)]
    chain = tuple((k, letter, k % 3, k + 1) for k, letter in enumerate(letters))
    waiting = tuple((k, 0, None, k) for k in range(1, length))
    toy = Toy(chain + waiting, frozenset([length]), bits=64)
    for extra in (10, 40, 41, 79):
        letters.insert(extra, letters[extra])
    expected = runs(toy, letters, range(len(letters)), None, None)
    run, found = Evaluation(toy, variant=variant), [[]]
    feed(run, [(0, letters, list(range(len(letters))))], found, most_macro_states(toy, letters))
    assert len(run.table.macros) > 64
    assert sorted(found[0]) == sorted(expected)
    assert len(found[0]) > 10


def test_the_variants_agree_to_the_order():
    for number in range(min(CASES, 50)):
        case = random_case(random.Random(f"{SEED} order {number}"), number)
        found = [stored(case, random.Random(number), variant) for variant in available()]
        assert all(other == found[0] for other in found), (SEED, number)
        assert stored(case, random.Random(number + 1), None, restore=False) == found[0], (SEED, number)
        assert forgotten(case, random.Random(number), None) == found[0], (SEED, number)
