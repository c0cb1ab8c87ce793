"""The marked events that matches may show: whatever is kept is found, however it came."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from cepheid.engine.input import payload as module
from cepheid.engine.input.payload import Payload
from cepheid.engine.output.gather import Picked
from cepheid.errors import SnapshotError

SCHEMA = pa.schema([pa.field("n", pa.int64())])


def appended(payload, kept, source, partitions):
    """Some more events: (slot, position) -> number."""
    count = source.choice([1, 1, 2, 5, 40])
    slots = [source.randrange(partitions) for _ in range(count)]
    positions = []
    for slot in slots:
        kept.setdefault(slot, [])
        positions.append((kept[slot][-1][0] if kept[slot] else -1) + source.choice([1, 1, 2, 500]))
        kept[slot].append((positions[-1], source.randrange(1 << 40)))
    numbers = [kept[slot][-1 - slots[place + 1 :].count(slot)][1] for place, slot in enumerate(slots)]
    times = np.arange(count)
    events = (numbers[0],) if count == 1 and source.random() < 0.7 else pa.table({"n": numbers}, schema=SCHEMA)
    payload.append(events, np.array(slots, np.int32), np.array(positions), times, times)


@pytest.mark.parametrize("partitions", [1, 7])
def test_what_is_kept_is_found(partitions, cases, seed, monkeypatch):
    for number in range(max(cases // 10, 5)):
        source = random.Random(f"{seed} {number} {partitions}")
        monkeypatch.setattr(module, "MANY_TABLES", source.choice([1, 2, 64]))
        monkeypatch.setattr(module, "MANY_KEPT", source.choice([0, 1, 8]))
        monkeypatch.setattr(module, "MANY_SINGLE", source.choice([0, 1, 8, 64]))
        monkeypatch.setattr(module, "MANY_UNSORTED", source.choice([0, 8, 64]))
        monkeypatch.setattr(module, "FEW_ROWS", source.choice([0, 2, 16]))
        payload, kept = Payload(SCHEMA), {}
        for _ in range(source.randrange(60)):
            appended(payload, kept, source, partitions)
            if source.random() < 0.1:
                alive = np.array([source.random() < 0.7 for _ in range(len(payload))])
                numbers = payload.events["n"].filter(pa.array(alive)).to_pylist()
                payload.keep(alive)
                kept = {slot: [event for event in events if event[1] in set(numbers)] for slot, events in kept.items()}
            slots = [source.choice([slot for slot in kept if kept[slot]] or [0]) for _ in range(source.randrange(5))]
            wanted = [source.choices(kept[slot], k=source.randint(1, 4)) if kept.get(slot) else [] for slot in slots]
            slots, wanted = [slot for slot, events in zip(slots, wanted, strict=True) if events], [events for events in wanted if events]
            lengths, flat = np.array(list(map(len, wanted)), np.int64), [event for events in wanted for event in events]
            rows = payload.find(np.array(slots, np.int32), lengths, np.array([position for position, _ in flat], np.int64))
            events, places = payload.shown(rows)
            assert events.column("n").take(pa.array(places)).to_pylist() == [number for _, number in flat]
            assert payload.events["n"].take(pa.array(rows)).to_pylist() == [number for _, number in flat]
            assert len(payload) == len(payload.events) == sum(map(len, kept.values()))


def test_of_two_events_with_one_position_modulo_the_word_the_later_one_is_meant():
    payload = Payload(SCHEMA)
    for number in range(300):
        position = number if number < 200 else (1 << 32) + number - 200
        payload.append(pa.table({"n": [number]}), np.zeros(1, np.int32), np.array([position]), np.array([number]), np.array([number]))
        if number >= 200:
            assert payload.find(np.zeros(1, np.int32), np.ones(1, np.int64), np.array([position])).tolist() == [number]


def test_what_is_shown_of_events_stays_as_it_is():
    """Also when single events become columns, others come, and all are dropped; a column that is read alone keeps no others in memory."""
    payload = Payload(SCHEMA)
    for number in range(100):
        at = np.array([number])
        payload.append(pa.table({"n": [number]}) if number % 10 == 0 else (number,), np.zeros(1, np.int32), at, at, at)
    shown, places = payload.shown(np.array([99, 10, 95, 99, 3]))
    assert isinstance(shown, Picked)
    assert (shown.num_rows, places.tolist()) == (4, [3, 1, 2, 3, 0])
    assert shown.values("n", [1, 3, 1]).to_pylist() == [10, 99, 10]
    payload.keep(np.zeros(100, np.bool_))
    assert shown.column("n").to_pylist() == [3, 10, 95, 99]
    assert shown.table.equals(pa.table({"n": [3, 10, 95, 99]}, schema=SCHEMA))
    assert shown.values("n", [0]).get_total_buffer_size() <= 64


def test_single_events_are_counted_as_memory():
    payload = Payload(SCHEMA)
    before = payload.nbytes
    payload.append((1,), np.zeros(1, np.int32), np.zeros(1), np.zeros(1), np.zeros(1))
    assert payload.nbytes - before == module.VALUE_BYTES


def test_an_event_that_is_not_kept_is_an_error():
    payload = Payload(SCHEMA)
    for position in range(100):
        payload.append(pa.table({"n": [position]}), np.zeros(1, np.int32), np.array([2 * position]), np.zeros(1), np.zeros(1))
        payload.find(np.zeros(1, np.int32), np.ones(1, np.int64), np.array([2 * position]))
    with pytest.raises(SnapshotError, match="lacks events"):
        payload.find(np.zeros(1, np.int32), np.ones(1, np.int64), np.array([3]))
    with pytest.raises(SnapshotError, match="lacks events"):
        Payload(SCHEMA).find(np.zeros(1, np.int32), np.ones(1, np.int64), np.array([3]))


def test_many_events_cost_no_more_each():
    """Numbers are written where there is room, tables and sorted parts are as many as their sizes have powers of two."""
    payload = Payload(SCHEMA)
    for position in range(5000):
        payload.append(pa.table({"n": [position]}), np.zeros(1, np.int32), np.array([position]), np.zeros(1), np.zeros(1))
        if position % 3 == 0:
            payload.find(np.zeros(1, np.int32), np.ones(1, np.int64), np.array([position]))
    assert len(payload._sorted) <= 13
    assert payload.events["n"].num_chunks <= module.MANY_TABLES + 13
