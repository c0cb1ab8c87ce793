"""Values at the edges of their types: least and greatest times, times that Python cannot hold, keys that only look equal."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.errors import LimitError

LEAST, GREATEST = -(2**63), 2**63 - 1
EXTREMES = pa.table({"type": list("ABABAB"), "ts": [LEAST, LEAST + 1, -5, 0, GREATEST - 3, GREATEST]})


def ends(matches):
    return [(match.start, match.end) for match in matches]


@pytest.mark.parametrize("lateness", [None, 3, 2**62])
@pytest.mark.parametrize("step", [1, 2, 6])
def test_extreme_times_also_with_lateness_and_snapshots(lateness, step):
    query = cepheid.query("SELECT * WHERE A AS x ; B AS y WITHIN 5")
    expected = [(0, 1), (2, 3), (4, 5)]
    assert ends(query.run(EXTREMES)) == ends(query.run(EXTREMES, engine="reference")) == expected
    recognizer = query.recognizer(EXTREMES.schema, lateness=lateness)
    found = []
    for start in range(0, 6, step):
        found += ends(recognizer.push(EXTREMES.slice(start, step)))
        recognizer = query.recognizer(EXTREMES.schema, lateness=lateness, snapshot=recognizer.snapshot())
    assert found + ends(recognizer.flush()) == expected
    assert recognizer.late.num_rows == 0


@pytest.mark.parametrize("lateness", [2**62 + 1, 10**30, "99999999999999999999 weeks"])
def test_a_lateness_beyond_the_limit(lateness):
    schema = pa.schema([("type", pa.string()), ("ts", pa.timestamp("us"))])
    with pytest.raises(LimitError, match="MAX_STEPS"):
        cepheid.query("SELECT * WHERE A").recognizer(schema, lateness=lateness)


@pytest.mark.parametrize("kind", [pa.timestamp("s"), pa.timestamp("us", "UTC"), pa.duration("s"), pa.date32()])
def test_times_that_python_cannot_hold_are_numbers(kind):
    storage = pa.int32() if kind == pa.date32() else pa.int64()
    far = 2**30 if kind == pa.date32() else 2**62
    events = pa.table({"type": ["A", "B"], "ts": [1, 2], "k": pa.array([far, far], storage).cast(kind)})
    query = cepheid.query("SELECT * WHERE A AS x ; B AS y PARTITION BY k")
    recognizer = query.recognizer(events.schema)
    for matches in (query.run(events), recognizer.push(events)):
        (match,) = matches
        assert match.keys == {"k": far}
        assert match["x"] == [{"type": "A", "ts": 1, "k": far}]
        assert matches.to_pylist()[0]["k"] == far
        assert str(far) in repr(matches)


def test_unsorted_far_times_have_an_error_of_ours():
    events = pa.table({"type": ["A", "B"], "ts": pa.array([2**60, 0]).cast(pa.timestamp("s"))})
    with pytest.raises(cepheid.CepheidError, match=f"earlier than row 0 .{2**60}."):
        cepheid.query("SELECT * WHERE A").run(events)


def test_the_two_hours_of_a_clock_change_are_two_keys():
    first = 1_792_888_200  # 2026-10-25 02:30 in Berlin, an hour before it is 02:30 again
    keys = pa.array([first, first + 3600] * 2).cast(pa.timestamp("s", "Europe/Berlin"))
    events = pa.table({"type": ["A", "A", "B", "B"], "ts": [0, 1, 2, 3], "k": keys})
    query = cepheid.query("SELECT * WHERE A AS x ; B AS y PARTITION BY k")
    assert query.recognizer(events.schema).push(events).to_arrow() == query.run(events).to_arrow()
    assert len(query.run(events)) == 2


def test_keys_of_minus_zero_are_shown_as_zero_everywhere():
    events = pa.table({"type": ["A", "B"], "ts": [0, 1], "k": [-0.0, 0.0]})
    query = cepheid.query("SELECT * WHERE A AS x ; B AS y PARTITION BY k")
    shown = [query.run(events), query.run(events, engine="reference"), query.recognizer(events.schema).push(events)]
    assert [np.signbit(matches[0].keys["k"]) for matches in shown] == [False] * 3


@pytest.mark.parametrize("reader", [False, True])
def test_run_end_encoded_columns(reader):
    types = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["A", "B"]))
    keys = pa.RunEndEncodedArray.from_arrays(pa.array([1, 3], pa.int32()), pa.array(["k", "l"]))
    plain = pa.table({"t": ["A", "A", "B"], "ts": [0, 1, 2], "k": ["k", "l", "l"]})
    events = pa.table({"t": types, "ts": [0, 1, 2], "k": keys})
    query = cepheid.query("SELECT * WHERE A AS x ; B AS y PARTITION BY k")
    found = query.run(events.to_reader() if reader else events, type="t")
    assert found.to_arrow(events=True) == query.run(plain, type="t").to_arrow(events=True)
    assert query.recognizer(plain.schema, type="t").push(events).to_arrow() == found.to_arrow()
