"""Whole tables in steps: what a query gives does not depend on how the engine walks through it."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.engine.input import keys
from cepheid.engine.input.keys import group, key_codes, stable_order
from cepheid.engine.run import batch

EVENTS = pa.table({"type": list("ABCABBCAAB"), "ts": range(10), "k": [1, 2, 1, 1, 2, 1, 3, 3, 2, 3]})


@pytest.mark.parametrize(
    "text", ["SELECT * WHERE A+ ; B", "SELECT * WHERE A ; B PARTITION BY k", "SELECT * WHERE A : (B OR C) PARTITION BY k WITHIN 4"]
)
@pytest.mark.parametrize("step", [1, 2, 3, 7])
def test_steps_change_nothing_and_report_progress(text, step, monkeypatch):
    query = cepheid.query(text)
    whole = query.run(EVENTS)
    monkeypatch.setattr(batch, "STEP", step)
    seen = []
    assert list(query.run(EVENTS, progress=lambda done, rows: seen.append((done, rows)))) == list(whole)
    assert seen[-1] == (10, 10)
    assert len(seen) == -(-10 // step)


@pytest.mark.parametrize("text", ["SELECT * WHERE A ; B WITHIN 3", "SELECT * WHERE A ; A WITHIN 5 PARTITION BY k CONSUME BY ANY"])
@pytest.mark.parametrize(("seconds", "calls"), [(0.0, 1), (0.001, 16), (0.2, 3_000), (9.0, 3_000)])
def test_progress_is_said_soon_however_slow_events_are(text, seconds, calls, monkeypatch):
    """By a clock that moves on by so many seconds for each event: counted are the steps."""
    events = pa.table({"type": ["A", "B"] * 2_048, "ts": range(4_096), "k": [1, 2] * 2_048})
    clock, seen = [0.0], [0]

    def told(done, _rows):
        clock[0] += seconds * (done - seen[-1])
        seen.append(done)

    monkeypatch.setattr(batch, "monotonic", lambda: clock[0])
    assert len(cepheid.query(text).run(events, progress=told)) > 0
    assert len(seen) - 1 >= calls
    longest = max(after - before for before, after in itertools.pairwise(seen[1:]))
    assert longest * seconds <= 1 or longest == 1


def test_codes_of_many_keys(monkeypatch):
    rng = np.random.default_rng(1)
    columns = {name: rng.integers(0, 300, 5000) for name in "abcdef"}
    table = pa.table(columns)
    codes, count = key_codes(table, list(columns))
    rows = list(zip(*(column.tolist() for column in columns.values()), strict=True))
    assert len(set(codes.tolist())) == len(set(rows))
    assert 0 <= codes.min() <= codes.max() < count
    groups = group(codes, count)
    assert sorted(groups.order.tolist()) == list(range(5000))
    assert np.array_equal(groups.order, np.argsort(codes, kind="stable"))


@pytest.mark.parametrize("count", [1, 1 << 16, 1 << 20, 1 << 40, 1 << 60])
def test_radix_order_is_stable(count):
    codes = np.random.default_rng(2).integers(0, count, 3000) // 3
    assert np.array_equal(stable_order(codes, count), np.argsort(codes, kind="stable"))


@pytest.mark.parametrize("count", [1, 3, 300, 1 << 12, (1 << 12) + 1, 1 << 20, 1 << 31])
@pytest.mark.parametrize("missing", [False, True])
def test_slices_group_as_a_whole(count, missing, monkeypatch):
    codes = np.random.default_rng(3).integers(-1 if missing else 0, count, 3000) // 3 * 3
    codes = np.maximum(np.append(codes, [count - 1] * 3), -1).astype(np.int32 if count < 1 << 31 else np.int64)
    whole = group(codes, count)
    monkeypatch.setattr(keys, "SLICE", 100)
    found = group(codes, count)
    assert found.null_keys == whole.null_keys == np.count_nonzero(codes < 0)
    for one, other in zip((found.order, found.cuts), (whole.order, whole.cuts), strict=True):
        assert np.array_equal(one, other)


def test_nested_keys_are_refused():
    with pytest.raises(cepheid.SchemaError, match=r"a PARTITION BY attribute holds one value"):
        key_codes(pa.table({"k": [[1], [2]]}), ["k"])
    assert keys.normalized(pa.chunked_array([], pa.int64())).type == pa.int64()


def test_events_with_many_predicates():
    names = [f"T{number}" for number in range(40)]
    events = pa.table({"type": names, "ts": range(40)})
    query = cepheid.query(f"SELECT ANY * WHERE {' ; '.join(names)}")
    (match,) = query.run(events)
    assert (match.start, match.end) == (0, 39)
    assert list(query.run(events.to_reader(max_chunksize=7))) == [match]
