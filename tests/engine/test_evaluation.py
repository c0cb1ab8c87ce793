"""The driver of the kernel: chunks, counters, memory, wide letters, limits, long lives. The matches themselves: tests/kernel."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest

from cepheid.engine.evaluations import events as engine_events
from cepheid.engine.evaluations.graph import match as module
from cepheid.engine.evaluations.graph.match import Evaluation, Sizes
from cepheid.errors import LimitError


@dataclass(frozen=True)
class Sequence:
    """parts[0] ; parts[1] ; ..: part k asks for all bits of parts[k] and marks with label k."""

    parts: tuple[int, ...] = (1, 2, 4)
    bits: int = 3
    initial: int = 1

    @property
    def fingerprint(self):
        return repr(self).encode()

    @property
    def states(self):
        return len(self.parts) + 1

    @property
    def labels(self):
        return len(self.parts)

    def successors(self, macro, letter):
        last = len(self.parts)
        states = [s for s in range(last) if macro >> s & 1]
        marked = tuple((s, 1 << s + 1) for s in states if letter & self.parts[s] == self.parts[s])
        return marked, sum(1 << s for s in states)

    def accepts(self, macro):
        return bool(macro >> len(self.parts) & 1)

    def ends(self, macro):
        return macro == 1 << len(self.parts)


A, B, C, NOTHING = 1, 2, 4, 0


def matches_of(run, letters, times=None, **how):
    letters = np.array(letters, np.uint64 if run.program.bits > 16 else np.uint32)
    found = []

    def sink(chunk):
        assert chunk.offsets[0] == 0
        assert chunk.offsets[-1] == len(chunk.positions) == len(chunk.labels)
        assert len(chunk) == len(chunk.offsets) - 1
        assert (chunk.offsets.dtype, chunk.positions.dtype, chunk.labels.dtype, chunk.segments.dtype) == (
            "int64",
            "int64",
            "uint16",
            "int32",
        )
        found.extend(tuple(chunk.positions[a:b].tolist()) for a, b in itertools.pairwise(chunk.offsets))

    run.feed(letters, np.arange(len(letters)) if times is None else np.array(times, np.int64), sink=sink, **how)
    return found


def test_a_batch_without_events_and_one_without_segments():
    run = Evaluation(Sequence())
    assert matches_of(run, []) == []
    assert matches_of(run, [], cuts=np.zeros(0, np.int64), slots=np.zeros(0, np.int32)) == []
    assert matches_of(run, [A, B, C], cuts=[0, 0, 3]) == [(0, 1, 2)]
    assert run.events == 3


def test_counters_and_marked_rows():
    run = Evaluation(Sequence())
    assert matches_of(run, [NOTHING, B, A, NOTHING, B, B, C, C]) == [(2, 5, 6), (2, 4, 6), (2, 5, 7), (2, 4, 7)]
    assert run.marked.tolist() == [0, 0, 1, 0, 1, 1, 1, 1]
    assert (run.events, run.triggers, run.matches) == (8, 2, 4)
    assert run.skipped == 3
    assert run.memory_usage() > 0


def test_limit_zero_counts_the_triggers_only():
    run = Evaluation(Sequence(), limit=0)
    assert matches_of(run, [A, B, C, C]) == []
    assert (run.triggers, run.matches) == (2, 0)


def test_chunks_belong_to_the_receiver():
    chunks, copies = [], []

    def sink(chunk):
        chunks.append(chunk)
        copies.append((chunk.offsets.copy(), chunk.positions.copy(), chunk.labels.copy(), chunk.segments.copy()))

    run = Evaluation(Sequence(), sizes=Sizes(chunk=4, most_chunk=16, chunk_positions=8))
    for _ in range(3):
        run.feed(np.array([A] * 5 + [B] * 5 + [C] * 3, np.uint32), np.arange(13), sink=sink)
    assert len(chunks) > 9
    assert sum(map(len, chunks)) == 3 * 75
    for chunk, copy in zip(chunks, copies, strict=True):
        assert all((a == b).all() for a, b in zip((chunk.offsets, chunk.positions, chunk.labels, chunk.segments), copy, strict=True))


def test_the_segments_of_matches_and_their_labels():
    run, chunks = Evaluation(Sequence()), []
    run.feed(np.array([A, B, C, A, A, B, C], np.uint32), np.arange(7), cuts=np.array([0, 3, 4]), sink=chunks.append)
    assert [chunk.segments.tolist() for chunk in chunks] == [[0, 2]]
    assert chunks[0].positions.tolist() == [0, 1, 2, 0, 1, 2]
    assert chunks[0].labels.tolist() == [0, 1, 2, 0, 1, 2]


def test_letters_and_times_may_be_read_only_and_strided():
    letters, times = np.repeat(np.array([A, B, C], np.uint8), 2)[::2], np.arange(6)[::2]
    letters.setflags(write=False)
    times.setflags(write=False)
    chunks = []
    Evaluation(Sequence(), window=4).feed(letters, times, sink=chunks.append)
    assert chunks[0].positions.tolist() == [0, 1, 2]


@pytest.mark.parametrize("bits", [17, 40, 64])
def test_letters_of_more_bits_than_a_table_can_index(bits):
    top = 1 << bits - 1
    run = Evaluation(Sequence(parts=(top, 1, top | 2), bits=bits), sizes=Sizes(table=8))
    found = matches_of(run, [top, 1, top | 2], continued=True)
    found += matches_of(run, [2, 4, top | 2, 8, top | 2], [3, 4, 5, 6, 7], continued=True)
    assert found == [(0, 1, 2), (0, 1, 5), (0, 1, 7)]


def test_the_full_table_is_renumbered_and_nothing_is_lost():
    letters = [A, *range(8, 200), B, *range(8, 200), C]
    small = Evaluation(Sequence(bits=8), sizes=Sizes(table=16))
    large = Evaluation(Sequence(bits=8))
    assert matches_of(small, letters) == matches_of(large, letters) != []
    assert small.table.flushes > 20
    assert large.table.flushes == 0
    assert len(small.table.marked_of) <= 256 < len(large.table.marked_of)


def test_windows_at_the_ends_of_the_time_range():
    least, most = -(2**63), 2**63 - 1
    assert matches_of(Evaluation(Sequence(), window=2**63 - 1), [A, B, C], [least, 0, most]) == []
    assert matches_of(Evaluation(Sequence(), window=2**63 - 1), [A, B, C], [0, 0, most]) == [(0, 1, 2)]
    assert matches_of(Evaluation(Sequence(), window=0), [A, B, C], [least] * 3) == [(0, 1, 2)]
    assert matches_of(Evaluation(Sequence(), count_window=1 << 40), [A, B, C]) == [(0, 1, 2)]


def test_irrelevant_events_change_neither_the_matches_nor_their_order():
    rng = np.random.default_rng(5)
    letters = rng.choice([0, 0, 0, A, B, C, A | B], 400).astype(np.uint32)
    kept = np.flatnonzero(letters)
    for limit in (1, 3, None):
        full = matches_of(Evaluation(Sequence(), window=40, limit=limit), letters)
        thin = matches_of(Evaluation(Sequence(), window=40, limit=limit), letters[kept], kept)
        assert [tuple(int(kept[k]) for k in match) for match in thin] == full != []


def test_slots_keep_their_partitions_apart_and_released_ones_begin_again():
    run = Evaluation(Sequence())
    slots = np.array([7, 2], np.int32)
    assert matches_of(run, [A, B, A], cuts=[0, 2], slots=slots) == []
    assert matches_of(run, [C, B, C], cuts=[0, 1], slots=slots) == [(0, 1, 2), (0, 1, 2)]
    run.release(np.array([7]))
    assert matches_of(run, [A, B, C, C], cuts=[0, 3], slots=slots) == [(0, 1, 2), (0, 1, 3)]


def test_expired_partitions_give_their_memory_to_others():
    run, keys = Evaluation(Sequence(), window=10), 200
    cuts, letters = np.arange(keys) * 50, np.full(50 * keys, A, np.uint32)
    for batch in range(20):
        slots = np.arange(keys, dtype=np.int32) + batch * keys
        run.feed(letters, np.repeat(np.full(keys, 1000 * batch), 50), cuts=cuts, slots=slots)
        if batch == 0:
            assert len(run.expire(10)) == 0
            size = run.store.cells.nbytes
        assert run.expire(1000 * batch + 11).tolist() == list(range(run.slots))
        assert run.store.cells.nbytes == size
    assert matches_of(run, [A, B, C], [30_000] * 3, slots=np.array([3])) == [(50, 51, 52)]


def test_expiry_leaves_what_is_open():
    run = Evaluation(Sequence(), window=10)
    matches_of(run, [A, B, A, C], [0, 1, 5, 6], cuts=[0, 2, 3], slots=np.arange(3))
    assert run.expire(11).tolist() == [0, 2]
    assert matches_of(run, [B, C, C], [12, 12, 12], cuts=[0, 2], slots=np.array([1, 0])) == [(0, 1, 2)]


def test_every_slab_has_one_owner():
    rng = np.random.default_rng(11)
    run, time = Evaluation(Sequence(), window=60, limit=1), 0
    for _ in range(60):
        keys = rng.permutation(40)[:12].astype(np.int32)
        lengths = rng.integers(0, 60, len(keys))
        letters = rng.choice([A, B, C], lengths.sum()).astype(np.uint32)
        cuts = np.cumsum(lengths) - lengths
        run.feed(letters, np.full(len(letters), time), cuts=cuts, slots=keys)
        time += 20
        if rng.random() < 0.5:
            run.expire(time)
        if rng.random() < 0.3:
            run.release(keys[:3])
        check_slabs(run)


def check_slabs(run):
    column = run.store.column
    for pool, kind in ((run.store.cells, "cells"), (run.store.starts, "starts"), (run.store.packed, "packed")):
        sizes = run.store.records[:, column["packed_size"]] if kind == "packed" else run.store.records[:, column[f"{kind}_mask"]] + 1
        used = [(int(o), int(s)) for o, s in zip(run.store.records[:, column[f"{kind}_offset"]], sizes, strict=True) if s]
        for size_class in range(32):
            offset = int(pool.numbers[size_class])
            while offset >= 0:
                used.append((offset, pool.least << size_class))
                offset = int(pool.arrays[0][offset * pool.widths[0]])
        used.sort()
        assert used[0][0] == 0
        assert all(a + size == b for (a, size), (b, _) in itertools.pairwise(used))
        assert sum(used[-1]) == pool.numbers[32] <= pool.numbers[33]


def test_memory_of_a_window_does_not_grow_with_the_stream():
    run = Evaluation(Sequence(), window=100, limit=1)
    letters = np.tile(np.array([A, B, C, 0, 0], np.uint32), 2000)
    sizes = set()
    for batch in range(10):
        run.feed(letters, np.arange(10_000) + 10_000 * batch, continued=True)
        if batch > 2:
            sizes.add(run.memory_usage())
    assert len(sizes) == 1


def test_limits_have_names_and_a_way_out(monkeypatch):
    monkeypatch.setattr(engine_events, "BATCH_LIMIT", 2)
    with pytest.raises(LimitError, match="3 events, and the limit is 2"):
        Evaluation(Sequence()).feed(np.zeros(3, np.uint32), np.zeros(3, np.int64))
    monkeypatch.setattr(engine_events, "BATCH_LIMIT", 100)
    monkeypatch.setattr(module, "CELL_LIMIT", 64)
    with pytest.raises(LimitError, match="the limit is 64") as error:
        Evaluation(Sequence()).feed(np.full(100, A, np.uint32), np.zeros(100, np.int64))
    assert "WITHIN" in str(error.value)
    with pytest.raises(LimitError, match="label number 65536"):
        Evaluation(WideLabel()).feed(np.full(2, A, np.uint32), np.zeros(2, np.int64))


class WideLabel(Sequence):
    def successors(self, macro, letter):
        return (((1 << 16) * (letter & 1), 2),), macro


def test_a_match_may_not_stay_open_for_more_events_than_positions_can_count():
    run = Evaluation(Sequence())
    matches_of(run, [A, B], slots=np.array([0]))
    run.store.records[1, run.store.column["position"]] += (1 << 30) + 1
    with pytest.raises(LimitError, match="has been open for") as error:
        matches_of(run, [C], slots=np.array([0]))
    assert "WITHIN" in str(error.value)


def test_the_state_of_an_evaluation_that_is_continued():
    letters = np.random.default_rng(1).choice([A, B, C], 300).tolist()
    whole = matches_of(Evaluation(Sequence(), window=20, limit=2), letters)
    run = Evaluation(Sequence(), window=20, limit=2)
    found = matches_of(run, letters[:151])
    again = Evaluation(Sequence(), window=20, limit=2)
    again.load(run.dump())
    assert (again.events, again.matches, again.triggers) == (run.events, run.matches, run.triggers)
    found += matches_of(again, letters[151:], np.arange(151, 300), continued=True)
    assert found == whole


def test_the_bytes_are_a_function_of_the_events():
    rng = np.random.default_rng(2)
    letters, times = rng.choice([0, A, B, C, A | C], 500), np.cumsum(rng.integers(0, 3, 500))
    dumps = set()
    for cuts in ([0, 500], [0, 3, 77, 78, 400, 500], list(range(501))):
        run = Evaluation(Sequence(), window=60, limit=1, sizes=Sizes(cells=2, starts=1, packed=1, lists=1, entries=1))
        for a, b in itertools.pairwise(cuts):
            matches_of(run, letters[a:b], times[a:b], slots=np.array([4]))
        sections = run.dump()
        del sections["counters"]
        dumps.add(tuple((name, bytes(content)) for name, content in sections.items()))
    assert len(dumps) == 1
