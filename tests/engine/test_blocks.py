"""Blocks: rows open, grow, are emptied and restored; the entries of their rings stay what a list of each would hold."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from cepheid.engine.memory import blocks as module
from cepheid.engine.memory import process, store
from cepheid.engine.memory.blocks import DATA, HEAD, MASK, TAIL, BlockLayout, Blocks, Ring
from cepheid.engine.memory.store import CLASSES, TOP, size_class
from cepheid.errors import LimitError
from cepheid.kernel._blocks import grow

LAYOUT = BlockLayout(words=(0, -1, 7), rings=(Ring(2), Ring(3), Ring(1, dated=False)), kept=2)


def push(blocks, row, ring, entry):
    """As a kernel does: into the ring if there is room, after `grow` if not."""
    head, tail, data, mask = blocks.directory(row)[ring].tolist()
    if tail - head > mask:
        blocks.grow(row, ring)
        head, tail, data, mask = blocks.directory(row)[ring].tolist()
    place = int(blocks.offsets[row]) + data + (tail & mask) * len(entry)
    blocks.words[place : place + len(entry)] = entry
    blocks.words[int(blocks.offsets[row]) + LAYOUT.ring(ring) + TAIL] = tail + 1


def fill(blocks, count):
    for position in range(count):
        push(blocks, 0, 1, [position, 0, 0])


def pop(blocks, row, ring):
    blocks.words[int(blocks.offsets[row]) + LAYOUT.ring(ring) + HEAD] += 1


@pytest.mark.parametrize("seed", range(20))
def test_rings_are_lists(seed):
    rng = random.Random(seed)
    blocks = Blocks(LAYOUT, places=1)
    blocks.ensure(6)
    model = {}
    for step in range(1, 400):
        row, ring = rng.randrange(6), rng.randrange(3)
        kind = rng.random()
        if kind < 0.04 and row:
            before = int(blocks.sizes[row])
            if rng.random() < 0.5:
                blocks.release(np.array([row]))
            else:
                blocks.restart(np.array([row]))
                assert blocks.sizes[row] == before, "its memory stays"
            model.pop(row, None)
            continue
        blocks.open(np.array([row, row]))
        rings = model.setdefault(row, ([], [], []))
        blocks.words[blocks.offsets[row]] = step + 1
        if kind < 0.7 or not rings[ring]:
            entry = [step, *(rng.randrange(100) for _ in range(LAYOUT.rings[ring].width - 1))]
            push(blocks, row, ring, entry)
            rings[ring].append(entry)
        elif kind < 0.9:
            pop(blocks, row, ring)
            rings[ring].pop(0)
        else:
            rows = blocks.used
            sections = blocks.dump(rows, blocks.plain(rows), np.zeros(len(rows), np.int64))
            blocks = Blocks(LAYOUT, places=1)
            blocks.ensure(6)
            blocks.load(sections)
            again = blocks.dump(blocks.used, blocks.plain(blocks.used), np.zeros(len(blocks.used), np.int64))
            assert again == sections
            blocks.open(np.array(list(model), np.int64))
        for owner, expected in model.items():
            for number in range(3):
                assert blocks.entries(owner, number).tolist() == expected[number]
    assert_disjoint(blocks)


KERNEL_LAYOUT = BlockLayout(words=(0, -1), rings=(Ring(2), Ring(3, beside=1), Ring(3, beside=1)))


def kernel_grow(blocks, row, ring):
    """As a kernel makes room itself. Returns whether the block has stayed where it was."""
    before = int(blocks.offsets[row])
    layout = blocks.layout
    arrays = (blocks.words, blocks.offsets, blocks.sizes, blocks.pool)
    while lacks := grow(*arrays, row, layout.directory, len(layout.rings), 3, 1, ring, module.BLOCK_LIMIT):
        assert lacks > 0
        blocks.reserve(lacks)
        before = int(blocks.offsets[row])
        arrays = (blocks.words, blocks.offsets, blocks.sizes, blocks.pool)
    return before == int(blocks.offsets[row])


@pytest.mark.parametrize("seed", range(20))
def test_rings_that_a_kernel_lets_grow_are_lists_whether_their_block_stays_or_moves(seed):
    rng = random.Random(seed)
    blocks = Blocks(KERNEL_LAYOUT, places=1)
    rows = range(3 if seed % 2 else 1)
    blocks.open(np.array(rows))
    model = {row: ([], [], []) for row in rows}
    stayed = {True: 0, False: 0}
    for step in range(600):
        row, ring = rng.choice(rows), rng.randrange(3)
        expected, line = model[row][ring], blocks.directory(row)[ring]
        if expected and rng.random() < 0.4:
            blocks.words[int(blocks.offsets[row]) + KERNEL_LAYOUT.ring(ring) + HEAD] += 1
            expected.pop(0)
            continue
        if line[TAIL] - line[HEAD] > line[MASK]:
            stayed[kernel_grow(blocks, row, ring)] += 1
            line = blocks.directory(row)[ring]
        entry = [step, *(rng.randrange(100) for _ in range(KERNEL_LAYOUT.rings[ring].width - 1))]
        place = int(blocks.offsets[row] + line[DATA] + (line[TAIL] & line[MASK]) * len(entry))
        blocks.words[place : place + len(entry)] = entry
        blocks.words[int(blocks.offsets[row]) + KERNEL_LAYOUT.ring(ring) + TAIL] += 1
        expected.append(entry)
        for owner, rings in model.items():
            assert [blocks.entries(owner, number).tolist() for number in range(3)] == list(rings)
    assert_disjoint(blocks)
    assert stayed[True] > 0
    assert len(rows) == 1 or stayed[False] > 0
    assert blocks.pool[TOP] >= blocks.held


@pytest.fixture
def _free_reservation(monkeypatch, tmp_path):
    """As on a machine that promises more memory than it has, to a process without limits."""
    monkeypatch.setattr(store, "RESERVED", (1_000, 20_000, 300_000))
    monkeypatch.setattr(process, "_process_limits", list)
    monkeypatch.setattr(process, "OVERCOMMIT", tmp_path / "overcommit_memory")


@pytest.mark.usefixtures("_free_reservation")
def test_the_array_of_blocks_is_given_room_far_ahead_unless_the_machine_refuses(monkeypatch):
    blocks = Blocks(LAYOUT)
    sizes = []
    for wanted in (600, 1_200, 21_000, 310_000):
        blocks.reserve(wanted)
        sizes.append(len(blocks.words))
    assert sizes == [blocks.held + 600, 20_000, 300_000, 600_000]
    assert blocks.reserved < 1_000, "what is not written yet is not counted"
    zeros, refused = np.zeros, []

    def limited(size, *rest):
        if size > 3_500:
            refused.append(size)
            raise MemoryError
        return zeros(size, *rest)

    blocks = Blocks(LAYOUT)
    blocks.reserve(900)
    monkeypatch.setattr(np, "zeros", limited)
    blocks.reserve(1_500)
    assert len(blocks.words) == 2 * (blocks.held + 900)
    assert refused == [20_000]
    blocks.reserve(2_800)
    needed = blocks.held + 2_800
    assert len(blocks.words) == needed + needed // store.SPARE, "where twice as much is too much"
    assert refused == [20_000, 20_000, 4 * (blocks.held + 900)]
    with pytest.raises(MemoryError):
        blocks.reserve(5_000)


@pytest.mark.usefixtures("_free_reservation")
@pytest.mark.parametrize("what", ["a limit of the process", "a system that counts what it promises"])
def test_the_array_of_blocks_is_not_given_room_far_ahead_where_that_is_counted(what, monkeypatch, tmp_path):
    (tmp_path / "overcommit_memory").write_text("1\n")
    assert process.reserves_freely()
    if what == "a limit of the process":
        monkeypatch.setattr(process, "_process_limits", lambda: [1 << 40])
    else:
        (tmp_path / "overcommit_memory").write_text("2\n")
    blocks = Blocks(LAYOUT)
    for wanted in (600, 1_200, 21_000, 310_000):
        before = len(blocks.words)
        blocks.reserve(wanted)
        assert len(blocks.words) == max(2 * before, blocks.held + wanted)


def assert_disjoint(blocks):
    """No two places of `words` belong to two blocks, held or free."""
    spans = [(int(offset), int(size)) for offset, size in zip(blocks.offsets, blocks.sizes, strict=True) if size]
    sizes = {size_class(words) for words in range(1, 10_000)}
    for number, size in sizes:
        free = int(blocks.pool[number])
        while free >= 0:
            spans.append((free, size))
            free = int(blocks.words[free])
    spans.sort()
    assert all(first + size <= second for (first, size), (second, _) in itertools.pairwise(spans))


def test_a_new_block_is_the_template_and_an_emptied_one_keeps_its_first_words():
    blocks = Blocks(LAYOUT)
    blocks.ensure(4)
    assert blocks.offsets.tolist()[1:] == [-1] * (len(blocks) - 1)
    blocks.open(np.array([2, 3]))
    assert blocks.plain(np.array([1, 2])).tolist() == [[0, -1, 7]] * 2
    offset = int(blocks.offsets[2])
    blocks.words[offset : offset + 3] = 40, 50, 60
    push(blocks, 2, 0, [1, 2])
    blocks.empty(np.array([2]))
    assert blocks.used.tolist() == [2]
    assert blocks.plain(np.array([2])).tolist() == [[40, 50, 7]]
    blocks.open(np.array([2]))
    assert blocks.plain(np.array([2])).tolist() == [[40, 50, 7]]
    assert blocks.entries(2, 0).tolist() == []
    blocks.release(np.array([2, 3]))
    assert blocks.used.tolist() == []
    assert blocks.held == blocks.sizes[0]


def test_memory_that_is_given_back_is_used_again():
    blocks = Blocks(LAYOUT)
    blocks.ensure(1_000)
    for _ in range(5):
        blocks.open(np.arange(1, 1_000))
        size = blocks.nbytes
        blocks.release(np.arange(1, 1_000))
    blocks.open(np.arange(1, 1_000))
    assert blocks.nbytes == size


def test_what_is_older_is_not_in_the_bytes():
    blocks = Blocks(LAYOUT)
    for position in range(10):
        push(blocks, 0, 0, [position, 0])
        push(blocks, 0, 2, [position])
    blocks.words[blocks.offsets[0]] = 10
    sections = blocks.dump(np.array([0]), blocks.plain(np.array([0])), np.array([7]))
    again = Blocks(LAYOUT)
    again.load(sections)
    assert again.entries(0, 0).tolist() == [[7, 0], [8, 0], [9, 0]]
    assert len(again.entries(0, 2)) == 10
    assert again.directory(0)[0, [HEAD, TAIL]].tolist() == [7, 10]


@pytest.mark.parametrize("name", ["rows", "words", "rings", "entries"])
def test_sections_that_do_not_fit_together_are_refused(name):
    blocks = Blocks(LAYOUT)
    blocks.ensure(3)
    for row in (0, 2):
        blocks.open(np.array([row]))
        blocks.words[blocks.offsets[row]] = 3
        for position in range(3):
            push(blocks, row, 1, [position, 0, 0])
    sections = blocks.dump(np.array([0, 2]), blocks.plain(np.array([0, 2])), np.zeros(2, np.int64))
    Blocks(LAYOUT).load(sections)
    damaged = [sections[name][:-8], sections[name][:-1], sections[name] + bytes(8)]
    if name != "words":
        damaged += [b"\xff" * len(sections[name]), b"\x7f" * len(sections[name])]
    if name != "entries":
        damaged.append(bytes(len(sections[name])))
    for wrong in damaged:
        with pytest.raises(ValueError, match=r".+"):
            Blocks(LAYOUT).load({**sections, name: wrong})
    with pytest.raises(KeyError):
        Blocks(LAYOUT).load({key: value for key, value in sections.items() if key != name})


def test_a_block_has_a_limit(monkeypatch):
    monkeypatch.setattr(module, "BLOCK_LIMIT", 1_000)
    blocks = Blocks(LAYOUT)
    with pytest.raises(LimitError, match="BLOCK_LIMIT") as caught:
        fill(blocks, 1_000)
    assert "WITHIN" in str(caught.value)
    assert (blocks.directory(0)[:, MASK] >= 0).all()


def test_classes_of_sizes():
    before = -1
    for words in range(1, 5_000):
        number, size = size_class(words)
        assert words <= size <= max(4, words * 5 // 4 + 1)
        assert number in {before, before + 1}
        assert size_class(size) == (number, size)
        before = number
    assert size_class(module.BLOCK_LIMIT)[0] < CLASSES
