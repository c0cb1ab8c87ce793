"""Matches in batches that are made as they are read: those of `run`, in its order, in bounded memory."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading

import pyarrow as pa
import pytest

import cepheid
from cepheid.engine.run import batches as module
from cepheid.errors import InputError, InUseError, NotSupportedError
from cepheid.testing import events as stream

EVENTS = pa.table(
    {
        "type": list("ABCABBCAABACBB"),
        "ts": [1, 2, 2, 5, 5, 6, 8, 8, 9, 9, 12, 13, 13, 14],
        "k": [1, 2, 1, 1, 2, 1, None, 3, 2, 3, 1, 2, 2, 3],
        "v": [float(value) for value in range(14)],
    }
)
QUERIES = (
    "SELECT * WHERE A AS x ; B AS y",
    "SELECT * WHERE A+ AS x ; B PARTITION BY k WITHIN 6",
    "SELECT x.v AS first, count(y) AS n WHERE A AS x ; B+ AS y PARTITION BY k",
    "SELECT COUNT(*) WHERE A ; B PARTITION BY k",
    "SELECT MAX * WHERE A+ ; B PARTITION BY k WITHIN 8",
    "SELECT NXT * WHERE A : B+ PARTITION BY k CONSUME BY ANY",
    "SELECT * WHERE A AS x NOT FOLLOWED BY C FOR 3 PARTITION BY k",
    "SELECT * WHERE A AS x ; B AS y FILTER x.k = y.k",
    "SELECT * WHERE A ; B LIMIT 2",
)


def together(batches):
    return [match for part in batches for match in part]


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("piece", [1, 3, 1 << 16])
def test_batches_are_the_matches_of_a_run(text, piece, monkeypatch):
    monkeypatch.setattr(module, "PIECE", piece)
    query = cepheid.query(text)
    for options in (
        {},
        {"until": 9},
        {"until": "end"},
        {"null_keys": "group"},
        {"order": ["v"]},
        {"engine": "python"},
        {"engine": "reference"},
    ):
        whole = query.run(EVENTS, **options)
        for events in (EVENTS, EVENTS.to_reader(max_chunksize=4)):
            batches = query.batches(events, **options)
            found = together(batches)
            assert sorted(map(repr, found)) == sorted(map(repr, whole)) if options.get("engine") == "reference" else found == list(whole), (
                options
            )
            assert list(batches.undecided) == list(whole.undecided)
            assert batches.null_keys == whole.null_keys


def test_unsorted_events_and_several_streams_and_samples():
    query = cepheid.query("SELECT * WHERE A ; B")
    mixed = EVENTS.take(pa.array([3, 1, 0, 2, 9, 8, 7, 6, 5, 4, 13, 12, 11, 10]))
    assert together(query.batches(mixed, sort=True, order="v")) == list(query.run(mixed, sort=True, order="v"))
    with pytest.raises(InputError, match="not in the order of their times"):
        query.batches(mixed)
    with pytest.raises(InputError, match="not in the order of their times"):
        together(query.batches(mixed.to_reader(max_chunksize=2)))
    streams = {"A": EVENTS.filter(pa.compute.equal(EVENTS["type"], "A")), "B": EVENTS.filter(pa.compute.equal(EVENTS["type"], "B"))}
    assert together(query.batches(streams)) == list(query.run(streams))
    for events in (EVENTS, EVENTS.to_reader(max_chunksize=3)):
        assert together(query.batches(events, sample=2)) == list(query.run(EVENTS, sample=2))
        assert list(query.run(EVENTS.to_reader(max_chunksize=3), sample=2)) == list(query.run(EVENTS, sample=2))
    with pytest.raises(NotSupportedError, match="sample"):
        query.batches(EVENTS, sample=2, engine="reference")


@pytest.mark.parametrize("text", QUERIES)
def test_as_an_arrow_stream_they_have_the_rows_of_the_table(text):
    query = cepheid.query(text)
    whole = query.run(EVENTS)
    batches = query.batches(EVENTS)
    assert batches.schema == whole.to_arrow().schema
    assert pa.RecordBatchReader.from_stream(batches).read_all().equals(whole.to_arrow())
    for shape in (False, True):
        assert query.batches(EVENTS).to_reader(events=shape).read_all().equals(whole.to_arrow(events=shape))
    assert query.batches(EVENTS.slice(0, 0)).to_reader().read_all().num_rows == 0


def test_they_are_read_once_and_what_is_left_over_is_known_at_the_end():
    batches = cepheid.query("SELECT * WHERE A NOT FOLLOWED BY C FOR 3 PARTITION BY k").batches(EVENTS)
    for name in ("undecided", "null_keys"):
        with pytest.raises(InputError, match="known only after the last batch"):
            getattr(batches, name)
    assert "made as they are read" in repr(batches)
    found = together(batches)
    assert found
    assert together(batches) == []
    assert (len(batches.undecided), batches.null_keys) == (1, 1)
    assert "all read" in repr(batches)


def test_progress_says_how_many_events_have_been_read(monkeypatch):
    monkeypatch.setattr(module, "PIECE", 5)
    query = cepheid.query("SELECT * WHERE A ; B")
    seen: list[tuple[int, int]] = []
    together(query.batches(EVENTS, progress=lambda *told: seen.append(told)))
    assert seen == [(5, 14), (10, 14), (14, 14)]
    seen.clear()
    together(query.batches(EVENTS.to_reader(max_chunksize=7), progress=lambda *told: seen.append(told)))
    assert seen == [(7, 0), (14, 0)]


def test_one_thread_at_a_time():
    query = cepheid.query("SELECT * WHERE A ; B")
    batches = query.batches(stream("A1 B2"))
    entered, leave = threading.Event(), threading.Event()

    def slow():
        entered.set()
        leave.wait()
        yield from ()

    batches._found = slow()
    other = threading.Thread(target=lambda: next(batches, None))
    other.start()
    entered.wait()
    with pytest.raises(InUseError, match="another call is using these batches"):
        next(batches)
    leave.set()
    other.join()


def test_what_explodes_gives_its_first_batches_at_once_and_in_small_ones():
    query = cepheid.query("SELECT * WHERE A+ ; B")
    events = pa.table({"type": ["A"] * 60 + ["B"], "ts": range(61)})
    parts = list(itertools.islice(query.batches(events), 8))
    assert all(part[0].end == 60 for part in parts)
    keys = {(match.start, match.variables["A"]) for part in parts[:3] for match in part}
    assert len(keys) == sum(map(len, parts[:3]))


BOUNDED = """
import resource, sys, pyarrow as pa, cepheid
pair = cepheid.query("SELECT * WHERE A ; B WITHIN 2000 EVENTS")
events = pa.table({"type": ["A", "B"] * 6000, "ts": range(12000)})
list(pair.batches(events.slice(0, 100)))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = sum(batch.num_rows for batch in pair.batches(events).to_reader())
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(found, (after - before) // 1024)
"""


def test_memory_is_bounded_however_many_matches_there_are():
    done = subprocess.run([sys.executable, "-c", BOUNDED], capture_output=True, text=True, timeout=300, check=True)
    found, megabytes = map(int, done.stdout.split())
    assert found == sum(min(1000, number) for number in range(1, 6001))
    assert megabytes < 150  # all of them take 330
