"""The tracker kernel against the definition of a tracker: random trackers that read each other, tiny tables, cuts, slots, and its exits."""

from __future__ import annotations

import random

import numpy as np
import pytest
from strategy_cases import CASES, SEED

from cepheid.automata.alphabet import Alphabet, Tracker
from cepheid.automata.transition import Transition, order
from cepheid.engine.evaluations.around.trackers import Trackers
from cepheid.engine.evaluations.events import Events
from cepheid.errors import LimitError, SnapshotError
from cepheid.kernel import available, kernel

BITS = 3


def read(run, letters, **segments):
    """The letters of some events with the trackers' bits."""
    return run.read(Events(letters, np.zeros(len(letters), np.int64), **segments))


def random_trackers(rng: random.Random, bits: int) -> tuple[Tracker, ...]:
    """One to three trackers; each reads the predicates and the trackers before it."""
    trackers, bit = [], bits
    for _ in range(rng.randint(1, 3)):
        states = rng.randint(2, 5)
        moves = []
        for source in range(states):
            test = 1 << rng.randrange(bit)
            for requires, forbids in ((test, 0), (0, test)):
                if rng.random() < 0.7:
                    moves.append(Transition(source, rng.randrange(states), requires, None, forbids))
        trackers.append(Tracker(bit, states, order(moves)))
        bit += trackers[-1].width
    return tuple(trackers)


def by_definition(trackers: tuple[Tracker, ...], letters: list[int]) -> list[int]:
    """Each letter with the states before its event."""
    states, found = [0] * len(trackers), []
    for given in letters:
        letter = given | sum(state << tracker.bit for tracker, state in zip(trackers, states, strict=True))
        states = [tracker.successor(state, letter) for tracker, state in zip(trackers, states, strict=True)]
        found.append(letter)
    return found


@pytest.mark.parametrize("variant", available())
@pytest.mark.parametrize("bits", [BITS, 20])
def test_random_trackers(variant: str, bits: int) -> None:
    for number in range(CASES):
        rng = random.Random(f"{SEED}/{number}")
        trackers = random_trackers(rng, bits)
        streams = [[rng.randrange(1 << bits) for _ in range(rng.randint(0, 12))] for _ in range(3)]
        expected = [by_definition(trackers, stream) for stream in streams]
        slots = rng.sample(range(5), 3)
        run = Trackers(trackers, Alphabet(), bits=bits, variant=variant, entries=rng.choice([1, 8, 1 << 20]))
        found: list[list[int]] = [[], [], []]
        left = [0, 0, 0]
        while any(at < len(stream) for at, stream in zip(left, streams, strict=True)):
            rows, cuts, owners = [], [], []
            for owner in (rng.randrange(3) for _ in range(rng.randint(1, 4))):
                to = min(len(streams[owner]), left[owner] + rng.randint(0, 5))
                cuts.append(len(rows))
                owners.append(owner)
                rows += streams[owner][left[owner] : to]
                left[owner] = to
            given = np.array([slots[owner] for owner in owners], np.int32)
            out = read(run, np.array(rows, np.uint64), cuts=np.array(cuts, np.int64), slots=given).tolist()
            for owner, start, stop in zip(owners, cuts, [*cuts[1:], len(rows)], strict=True):
                found[owner] += out[start:stop]
            if rng.random() < 0.3:
                sections, run = run.dump(), Trackers(trackers, Alphabet(), bits=bits, variant=variant, entries=rng.choice([1, 8, 1 << 20]))
                run.load(sections)
        assert found == expected, f"CEPHEID_SEED={SEED} case {number} {variant} {bits} bits"


@pytest.mark.parametrize("variant", available())
def test_a_segment_without_slot_begins_anew_unless_it_goes_on(variant: str) -> None:
    (tracker,) = (Tracker(1, 3, order([Transition(0, 1, 1), Transition(1, 2, 1)])),)
    run = Trackers([tracker], Alphabet(), bits=1, variant=variant)
    letters = np.ones(4, np.uint8)
    assert read(run, letters, cuts=np.array([0, 1, 1])).tolist() == [1, 1, 3, 5]
    assert read(run, letters[:1], continued=True).tolist() == [5]
    assert read(run, letters[:2], slots=np.array([0], np.int32)).tolist() == [1, 3]
    assert read(run, letters[:2], slots=np.array([0], np.int32)).tolist() == [5, 5]
    run.release(np.array([1]))
    assert read(run, letters[:1], slots=np.array([0], np.int32)).tolist() == [1]
    assert read(run, letters[:0], cuts=np.zeros(0, np.int64)).tolist() == []


def test_the_kernel_names_what_it_does_not_know() -> None:
    module = kernel("track", "python")
    fields = np.zeros(len(module.FIELDS), np.int64)
    fields[[1, 5, 6]] = -1, 1, 1
    lut, table = np.array([-1, 0], np.int32), np.array([-1], np.int32)
    bits, records, out = np.zeros(1, np.uint64), np.zeros(1, np.int32), np.zeros(1, np.uint64)
    for letter, code in ((0, "letter"), (1, "transition")):
        fields[1], fields[2] = -1, 0
        batch = (np.array([letter], np.uint64), np.array([letter], np.uint32), np.zeros(1, np.int64), np.full(1, -1, np.int32))
        arrays = (fields, *batch, lut, table, bits, records, out)
        assert module.EXITS[module.run(*(array.data for array in arrays))] == code
        assert fields[0] == 0


def test_states_of_partitions_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cepheid.engine.evaluations.around.trackers.STATE_LIMIT", 2)
    chain = Tracker(1, 9, order(Transition(state, state + 1, 1) for state in range(8)))
    run = Trackers([chain], Alphabet(), bits=1, entries=1)
    cuts = np.cumsum(np.arange(8))
    with pytest.raises(LimitError, match="STATE_LIMIT"):
        read(run, np.ones(36, np.uint8), cuts=cuts, slots=np.arange(8, dtype=np.int32))


@pytest.mark.parametrize("damage", [{}, {"tracker_states": b""}, {"tracker_states": b"abc"}, {"tracker_states": b"\x09\0\0\0"}])
def test_a_damaged_snapshot_is_refused(damage: dict[str, bytes]) -> None:
    run = Trackers([Tracker(1, 3, ())], Alphabet(), bits=1)
    with pytest.raises(SnapshotError, match="tracker_states"):
        run.load(damage)
