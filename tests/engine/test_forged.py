"""Forged state: snapshots and states of buckets that somebody has changed, with a checksum that is right, are refused or run."""

from __future__ import annotations

import itertools
import json
import struct
import subprocess
import sys
import tracemalloc

import forging
import numpy as np
import pyarrow as pa
import pytest
from enough import Enough

import cepheid
from cepheid.engine.evaluations.choosing.maximal import Maximal
from cepheid.engine.evaluations.graph.match import Evaluation
from cepheid.engine.evaluations.graph.match_state import SLOT_COLUMNS
from cepheid.engine.memory import container as state
from cepheid.errors import SnapshotError
from cepheid.kernel import available


@pytest.mark.parametrize("variant", [None, *(variant for variant in available() if variant == "checked")])
@pytest.mark.parametrize("kind", forging.KINDS)
def test_forged_states_are_refused_or_run(kind, variant, cases, seed):
    """In a process of its own, so that a crash is a failure with its case too; bounds: see `forging`."""
    count = max(cases // 2, 10)
    drawn = Enough(1, itertools.count(0, count), refused=3, ran=1)
    for first in drawn:
        arguments = [kind, str(seed), str(first), str(count), *([variant] if variant else [])]
        done = subprocess.run([sys.executable, forging.__file__, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        outcomes = json.loads(done.stdout)
        assert sum(outcomes.values()) == count
        drawn.seen.update(outcomes)


# ---------------------------------------------------------------------------------------------------------------------- by example

EVENTS = pa.table({"type": list("AABAB"), "ts": [1, 2, 3, 4, 5], "k": [1, 2, 1, 2, 2]})


def snapshot_of(text, **options):
    """A recognizer's function, its snapshot's sections, and its fingerprint."""

    def make(**more):
        return cepheid.query(text).recognizer(EVENTS.schema, **options, **more)

    run = make()
    run.push(EVENTS.slice(0, 4))
    fingerprint = run._fingerprint()
    return make, forging.unpacked(run.snapshot(), fingerprint), fingerprint


def numbers(sections, name, change, kind="<i8"):
    """A section of numbers after a change in place."""
    array = np.frombuffer(sections[name], kind).copy()
    change(array)
    return {name: array.tobytes()}


STRATEGIES = ["", "NXT", "LAST", "MAX", "COUNT(*)"]


def text_of(strategy):
    return f"SELECT {strategy} {'' if strategy.startswith('COUNT') else '*'} WHERE A AS x ; B AS y PARTITION BY k WITHIN 5 events"


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_is_allocated_follows_the_keys_not_their_numbers(strategy):
    """A partition at slot 2**31 - 2, in all sections, is the second one: it takes no more memory, and gives the same matches."""
    make, sections, fingerprint = snapshot_of(text_of(strategy))
    wanted = make(snapshot=state.pack(sections, fingerprint=fingerprint)).push(EVENTS.slice(4)).to_arrow().to_pylist()
    far = 2**31 - 2
    sections |= numbers(sections, "seen", lambda seen: np.put(seen, 1, far))
    sections |= numbers(
        sections, "payload_places", lambda places: np.place(places[: len(places) // 4], places[: len(places) // 4] == 1, far)
    )
    if "rows" in sections:
        sections |= numbers(sections, "rows", lambda rows: np.put(rows, 1, far + 1))
    else:
        columns = 4 if strategy.startswith("COUNT") else len(SLOT_COLUMNS)
        sections |= numbers(sections, "slots", lambda slots: np.put(slots, columns, far))
    data = state.pack(sections, fingerprint=fingerprint)
    tracemalloc.start()
    run = make(snapshot=data)
    assert run.push(EVENTS.slice(4)).to_arrow().to_pylist() == wanted
    assert tracemalloc.get_traced_memory()[1] < 20 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "change",
    [
        lambda seen: np.put(seen, 1, 15_000_000),  # a slot that no other section speaks of
        lambda seen: np.put(seen, 2, 3),  # a partition that has more events than its state says
        lambda seen: np.put(seen, 3, -1),
    ],
)
def test_partitions_that_do_not_fit_the_state_are_refused(strategy, change):
    make, sections, fingerprint = snapshot_of(text_of(strategy))
    data = state.pack(sections | numbers(sections, "seen", change), fingerprint=fingerprint)
    with pytest.raises(SnapshotError, match="the snapshot is damaged"):
        make(snapshot=data)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("latest", 2**63, "its number `latest` is not a valid integer"),
        ("events", -1, "its number `events` is not a valid integer"),
        ("events", 1.5, "its number `events` is not a valid integer"),
        ("null_keys", True, "its number `null_keys` is not a valid integer"),
        ("watermark", None, "its number `watermark` is not a valid integer"),
        ("watermark", 0, "the events that wait do not fit the watermark"),
    ],
)
def test_numbers_out_of_range_are_named(name, value, message):
    make, sections, fingerprint = snapshot_of("SELECT * WHERE A AS x ; B AS y WITHIN 5 events", lateness=1)
    changed = json.loads(sections["recognizer"]) | {name: value}
    data = state.pack(sections | {"recognizer": json.dumps(changed).encode()}, fingerprint=fingerprint)
    with pytest.raises(SnapshotError) as error:
        make(snapshot=data)
    assert error.value.fact == f"the snapshot is damaged: {message}"
    assert "start again without it" in str(error.value)


def test_numbers_at_the_ends_of_their_ranges_may_go_beyond_them():
    make, sections, fingerprint = snapshot_of("SELECT * WHERE A AS x ; B AS y NOT FOLLOWED BY C FOR 1")
    data = state.pack(sections | {"released": struct.pack("<q", (1 << 62) - 1)}, fingerprint=fingerprint)
    run = make(snapshot=data)
    run.push(EVENTS.slice(4))
    run.advance_time(100)
    with pytest.raises(SnapshotError, match="the snapshot is damaged"):
        run.undecided()


def test_missing_doubled_and_nested_sections_are_named():
    make, sections, fingerprint = snapshot_of("SELECT * WHERE A AS x ; B AS y WITHIN 5 events")
    without = {name: content for name, content in sections.items() if name != "seen"}
    with pytest.raises(SnapshotError, match="its section 'seen' is missing"):
        make(snapshot=state.pack(without, fingerprint=fingerprint))
    twice = state.pack(without | {"twin": b"x", "twyn": b"x"}, fingerprint=fingerprint).replace(b"twyn", b"twin")[:-4]
    with pytest.raises(SnapshotError, match="its section `twin` is there twice"):
        state.unpack(twice + struct.pack("<I", forging.zlib.crc32(twice)), fingerprint=fingerprint)
    with pytest.raises(SnapshotError, match="damaged"):
        make(snapshot=state.pack(sections | {"recognizer": b"[" * 100_000}, fingerprint=fingerprint))


def test_more_than_the_bytes_can_hold_is_not_decompressed():
    data = state.pack({"x": b"abc"}, fingerprint=b"", compress=True)[:-4]
    at = state._HEADER.size
    forged = data[:at] + struct.pack("<Q", 8 << 30) + data[at + 8 :]
    tracemalloc.start()
    with pytest.raises(SnapshotError, match="cannot become 8589934592"):
        state.unpack(forged + struct.pack("<I", forging.zlib.crc32(forged)), fingerprint=b"")
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


# ------------------------------------------------------------------------------------------------------------ links of match graphs


def graph(variant=None):
    """A match graph with links forward and back among the cells of an event, and the program that it is of."""
    program = cepheid.query("SELECT * WHERE (A AS x OR A AS y)+ ; B AS z WITHIN 20 events").compiled(
        cepheid.query("SELECT * WHERE A").schema(EVENTS.schema)
    )
    run = Evaluation(program.program, count_window=20, variant=variant)
    run.feed(np.full(6, 1, np.uint64), np.arange(6), slots=np.zeros(1, np.int32))
    return program.program, {name: bytes(content) for name, content in run.dump().items()}


@pytest.mark.parametrize("variant", available())
def test_cells_that_lead_round_are_refused(variant):
    """One whose alternative is itself, and two that are each other's: a kernel that follows them never ends."""
    program, sections = graph(variant)
    cells = np.frombuffer(sections["cells"], "<i4").reshape(4, -1)
    assert (cells[2] > np.arange(1, cells.shape[1] + 1)).any(), "links lead forward too"
    Evaluation(program, count_window=20, variant=variant).load(sections)
    for links in ({0: 1}, {0: 2, 1: 1}):
        changed = cells.copy()
        for cell, rest in links.items():
            changed[2, cell] = rest
        changed[0, :2], changed[3, :2] = changed[0, 0], changed[3, 0]
        with pytest.raises(SnapshotError, match="do not fit together"):
            Evaluation(program, count_window=20, variant=variant).load(sections | {"cells": changed.tobytes()})


@pytest.mark.parametrize(
    ("name", "place", "value", "kind"),
    [
        ("labels", 0, 65535, "<u2"),  # no such set of variables
        ("macros", 4, 0, "u1"),  # no state
        ("macros", 4, 255, "u1"),  # states that there are not
        ("slots", 2, 1 << 31, "<i8"),  # a position that the kernel's 32 bits do not hold
        ("counters", 1, 1 << 63 - 1, "<i8"),
        ("cells", 0, 100, "<i4"),  # an event that has not come
        ("list_max", 0, 100, "<i4"),
    ],
)
def test_numbers_of_a_match_graph_that_lead_out_are_refused(name, place, value, kind):
    program, sections = graph()
    with pytest.raises(SnapshotError, match="do not fit together"):
        Evaluation(program, count_window=20).load(sections | numbers(sections, name, lambda array: np.put(array, place, value), kind))


def test_sets_of_starts_that_share_their_parts_are_refused():
    """Merging such sets takes a step for each way down, of which there may be 2**62."""
    query = cepheid.query("SELECT MAX * WHERE A AS x ; A+ AS y ; B AS z WITHIN 40 events")
    program = query.compiled(query.schema(EVENTS.schema)).program
    run = Maximal(program, count_window=40)
    run.feed(np.full(30, 1, np.uint64), np.arange(30), slots=np.zeros(1, np.int32))
    sections = run.dump()
    Maximal(program, count_window=40).load(sections)
    entries = np.frombuffer(sections["entries"], "<i8").copy()
    (rows, nodes, _) = np.frombuffer(sections["rings"], "<i8").reshape(3, 2).tolist()
    first = (rows[1] - rows[0]) * run.store.layout.rings[0].width
    forks = entries[first : first + 4 * (nodes[1] - nodes[0])].reshape(-1, 4)
    shared = forks[:, 1] >= 0
    assert shared.any()
    forks[shared, 2] = forks[shared, 3]
    with pytest.raises(SnapshotError, match="do not fit together"):
        Maximal(program, count_window=40).load(sections | {"entries": entries.tobytes()})


def test_real_states_of_streams_with_gaps_between_their_slots_go_on():
    """Keys that came and went leave gaps; what is loaded has none, and the same matches."""
    import test_stateful as bucket_cases

    from cepheid.spark.tasks.buckets import Bucket

    queries = [cepheid.query(forging.EMBEDDED[name]) for name in ("next", "last", "maximal", "per_end", "count")]
    words = [bucket_cases.events_of("A1", key=key) for key in range(200)] + [bucket_cases.events_of("A4 C9", key=150)]
    unit, events, _ = bucket_cases.unit_of(queries, pa.concat_tables(words))
    run = Bucket(unit)
    run.step([events], 0)
    run.step([], bucket_cases.seconds(12))
    assert run.parts[0].partitions.slots == 200
    assert run.keys == 1
    again = Bucket(unit).load(run.dump())
    assert again.parts[0].partitions.slots == 1
    more = bucket_cases.travelling(queries, bucket_cases.events_of("B13 C13", key=150))[0].cast(unit.travelling)
    steps = [(each.step([more], bucket_cases.seconds(12)), each.step([], bucket_cases.seconds(20))) for each in (run, again)]
    rows = [[blob for step in both for _, blob in step.rows] for both in steps]
    assert rows[0]
    assert rows[0] == rows[1]
