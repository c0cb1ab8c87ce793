"""The container of snapshots, and what damaged ones do."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest

from cepheid.engine.evaluations.graph.match import Evaluation
from cepheid.engine.memory import container as state
from cepheid.errors import CepheidError, SnapshotError

PRINT = b"p" * 32
SECTIONS = {"first": b"abc", "empty": b"", "ünï": bytes(range(256))}


@dataclass(frozen=True)
class Pairs:
    """A ; B."""

    bits: int = 2
    initial: int = 1
    states: int = 3
    labels: int = 2
    fingerprint: bytes = PRINT

    def successors(self, macro, letter):
        marked = tuple((s, 1 << s + 1) for s in (0, 1) if macro >> s & 1 and letter >> s & 1)
        return marked, macro & 3

    def accepts(self, macro):
        return macro == 4

    def ends(self, macro):
        return macro == 4


def snapshot():
    run = Evaluation(Pairs(), window=5)
    letters = np.array([1, 1, 2, 0, 1, 3, 1, 1], np.uint32)
    run.feed(letters, np.arange(8), cuts=np.array([0, 5]), slots=np.array([3, 0]))
    return dumped(run)


def dumped(run):
    """What a run dumps, its numbers as bytes too."""
    return {name: bytes(content) for name, content in run.dump().items()}


@pytest.mark.parametrize("compress", [False, True])
def test_round_trip(compress):
    data = state.pack(SECTIONS, fingerprint=PRINT, compress=compress)
    assert state.unpack(data, fingerprint=PRINT) == SECTIONS
    assert state.unpack(memoryview(data), fingerprint=PRINT) == SECTIONS
    assert state.unpack(state.pack({}, fingerprint=b""), fingerprint=b"") == {}
    assert list(state.unpack(data, fingerprint=PRINT)) == list(SECTIONS)


def test_compressed_sections_are_smaller():
    sections = {"numbers": np.arange(10_000, dtype="<i8").tobytes()}
    plain, compressed = (state.pack(sections, fingerprint=PRINT, compress=compress) for compress in (False, True))
    assert len(compressed) < len(plain) / 3
    assert state.unpack(compressed, fingerprint=PRINT) == sections


INT64 = np.iinfo(np.int64)


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize(
    "numbers",
    [
        np.zeros(0, "<i8"),
        np.zeros((4, 0), "<i4"),
        np.array([7], "<u2"),
        np.array([0, 65535, 9], "<u2"),
        np.array([INT64.min, INT64.max, 0, -1], "<i8"),
        np.array([[INT64.max] * 3, [INT64.min, -1, 5], [1, 256, 1 + (1 << 32)]], "<i8"),
        np.array([[-(2**31), 2**31 - 1], [-3, 252], [-3, 253]], "<i4"),
        np.arange(12, dtype="<i8").reshape(3, 4),
        np.arange(12, dtype="<i8").reshape(4, 3).T,
    ],
)
def test_numbers_come_back(numbers, compress):
    sections = {"before": b"x", "numbers": numbers, "after": b"y"}
    found = state.unpack(state.pack(sections, fingerprint=PRINT, compress=compress), fingerprint=PRINT)
    assert np.frombuffer(found["numbers"], numbers.dtype).tolist() == numbers.ravel().tolist()
    assert (found["before"], found["after"]) == (b"x", b"y")


def test_numbers_are_kept_narrow():
    numbers = np.random.default_rng(1).integers(10**15, 10**15 + 256, 10_000)
    data = state.pack({"numbers": numbers}, fingerprint=PRINT, compress=True)
    assert len(data) < 10_200


@pytest.mark.parametrize(
    ("kind", "content", "message"),
    [
        (b"<i4", struct.pack("<?QqB", False, 3, 5, 1) + b"abc", None),
        (b"<f8", struct.pack("<?QqB", False, 3, 5, 1) + b"abc", "a section is neither bytes nor numbers"),
        (b"<i4", struct.pack("<?QqB", False, 3, 5, 1) + b"ab", "the numbers of a section are cut off"),
        (b"<i4", struct.pack("<?QqB", False, 3, 5, 3) + b"abcabcabc", "the numbers of a section are cut off"),
        (b"<i4", struct.pack("<?QqB", False, 1 << 63, 5, 1) + b"abc", "the numbers of a section are cut off"),
        (b"<i4", struct.pack("<?QqBB", True, 1, 5, 1, 7) + struct.pack("<QqBH", 2, 5, 1, 7), "the numbers of a section are cut off"),
        (b"<i4", b"abc", "the numbers of a section are cut off"),
    ],
)
def test_nonsense_in_numbers_is_named(kind, content, message):
    sections = struct.pack("<HQ", 1, len(content)) + kind + b"n" + content
    frame = struct.pack("<Q", len(sections)) + pa.Codec(state.CODEC).compress(sections, asbytes=True)
    body = struct.pack("<8sHHIB", state.MAGIC, state.VERSION, len(PRINT), 1, True) + PRINT + frame
    data = body + struct.pack("<I", zlib.crc32(body))
    if message is None:
        assert state.unpack(data, fingerprint=PRINT)["n"].tolist() == [5 + letter for letter in b"abc"]
        return
    with pytest.raises(SnapshotError, match=message):
        state.unpack(data, fingerprint=PRINT)


@pytest.mark.parametrize("place", [49, 57, 65])  # the length, and the content
@pytest.mark.parametrize("wrong", [b"\x00", b"\xff" * 8])
def test_compressed_nonsense_is_named(place, wrong):
    data = state.pack(SECTIONS, fingerprint=PRINT, compress=True)
    with pytest.raises(SnapshotError, match="the snapshot is damaged"):
        state.unpack(resealed(data, place, wrong), fingerprint=PRINT)


@pytest.mark.parametrize("compress", [False, True])
def test_every_cut_and_every_flipped_bit_is_found(compress):
    data = state.pack(SECTIONS, fingerprint=PRINT, compress=compress)
    for length in range(len(data)):
        with pytest.raises(SnapshotError):
            state.unpack(data[:length], fingerprint=PRINT)
    for bit in range(0, 8 * len(data), 3):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(SnapshotError):
            state.unpack(bytes(damaged), fingerprint=PRINT)


def resealed(data, place, replacement):
    body = data[:place] + replacement + data[place + len(replacement) : -4]
    return body + struct.pack("<I", zlib.crc32(body))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "these bytes are not a snapshot of Cepheid"),
        (b"PAR1 and more", "these bytes are not a snapshot of Cepheid"),
        (b"CEPHEID\0", "the snapshot is damaged: it is cut off"),
        (
            resealed(state.pack(SECTIONS, fingerprint=PRINT), 8, b"\x03\x00"),
            "the snapshot has format version 3, and this version of Cepheid reads version 4",
        ),
        (
            state.pack(SECTIONS, fingerprint=b"q" * 32),
            "the snapshot is of something else",
        ),
        (state.pack(SECTIONS, fingerprint=PRINT)[:-1] + b"!", "the snapshot is damaged: its checksum is wrong"),
        (resealed(state.pack(SECTIONS, fingerprint=PRINT), 12, b"\x04"), "the snapshot is damaged: a section is missing"),
        (resealed(state.pack(SECTIONS, fingerprint=PRINT), 12, b"\x02"), "the snapshot is damaged: it has bytes after its last section"),
        (resealed(state.pack(SECTIONS, fingerprint=PRINT), 51, b"\x00\x7f"), "the snapshot is damaged: a section is cut off"),
    ],
)
def test_what_is_wrong_is_said(data, message):
    with pytest.raises(SnapshotError) as error:
        state.unpack(data, fingerprint=PRINT)
    assert error.value.fact == message
    assert error.value.help
    assert isinstance(error.value, CepheidError)
    assert isinstance(error.value, ValueError)


@pytest.mark.parametrize("name", list(snapshot()))
def test_sections_that_do_not_fit_together_are_refused(name):
    sections = snapshot()
    Evaluation(Pairs(), window=5).load(sections)
    without = {key: value for key, value in sections.items() if key != name}
    wrong = [without, {**sections, name: sections[name][:-1]}, {**sections, name: sections[name] + bytes(8)}]
    if name not in {"counters", "labels", "starts_time", "macros", "starts_position", "list_max"}:  # numbers of any value
        wrong.append({**sections, name: b"\x7f" * len(sections[name])})
    for damaged in wrong:
        with pytest.raises(SnapshotError, match="do not fit together"):
            Evaluation(Pairs(), window=5).load(damaged)


@pytest.mark.parametrize("column", range(4, 7))
@pytest.mark.parametrize("count", [1 << 62, -1])
def test_counts_that_wrap_around_are_refused(column, count):
    """Four times 2**62 is 0 in int64, as long as the other sections are."""
    table = np.zeros((4, 7), "<i8")
    table[:, 0], table[:, column] = range(4), count
    empty = dict.fromkeys(snapshot(), b"") | {name: snapshot()[name] for name in ("counters", "macros")}
    with pytest.raises(SnapshotError, match="do not fit together"):
        Evaluation(Pairs(), window=5).load({**empty, "slots": table.tobytes()})


def test_a_dump_leaves_the_evaluation_as_it_was():
    assert snapshot() == snapshot()
    run = Evaluation(Pairs(), window=5)
    run.feed(np.array([1, 1, 1], np.uint32), np.arange(3))
    assert dumped(run) == dumped(run)
    again = Evaluation(Pairs(), window=5)
    again.load(run.dump())
    assert dumped(again) == dumped(run)


def test_expired_state_is_not_in_the_bytes():
    run = Evaluation(Pairs(), window=5)
    run.feed(np.full(1000, 1, np.uint32), np.arange(1000), continued=True)
    open_state = dumped(run)
    assert len(open_state["starts_time"]) == 8 * 6
    assert len(open_state["cells"]) == 16 * 6
    run.feed(np.zeros(1, np.uint32), np.array([5000]), continued=True)
    closed = dumped(run)
    assert not closed["cells"]
    assert not closed["starts_time"]
    assert not closed["list_macro"]
