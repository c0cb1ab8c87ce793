"""Values at the edges of their types: least and greatest times, times that Python cannot hold, keys that only look equal."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.engine.evaluations.graph import match as evaluation
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


@pytest.mark.parametrize("reader", [False, True])
def test_views_at_any_depth(reader):
    """What Polars gives: views inside categories, structs and lists."""
    texts = ["a", "b", "a", "b"]
    categories = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, None], pa.uint32()), pa.array(["u", "v"], pa.string_view()))
    columns = {
        "type": pa.array(["A", "B", "A", "B"], pa.string_view()),
        "ts": pa.array([1, 2, 3, 4]),
        "k": categories,
        "inner": pa.StructArray.from_arrays([pa.array(texts, pa.string_view()), categories], ["text", "category"]),
        "items": pa.array([[text] for text in texts], pa.large_list(pa.string_view())),
        "pair": pa.array([[text, text] for text in texts], pa.list_(pa.string_view(), 2)),
        "pairs": pa.array([[(text, "v")] for text in texts], pa.map_(pa.string(), pa.string_view())),
        "bytes": pa.array([b"x"] * 4, pa.binary_view()),
    }
    events = pa.table(columns)
    query = cepheid.query("SELECT * WHERE A AS x ; B AS y FILTER x[inner.text = 'a' AND k = 'u'] AND y[inner.category IS NULL] WITHIN 5")
    found = query.run(events.to_reader(max_chunksize=2) if reader else events)
    assert [(match.start, match.end) for match in found] == [(2, 3), (0, 3)]
    assert found[0]["x"][0] == {name: column[2].as_py() for name, column in columns.items()}
    recognizer = query.recognizer(events.schema)
    recognizer.push(events.slice(0, 3))
    recognizer = query.recognizer(events, snapshot=recognizer.snapshot())
    assert recognizer.push(events.slice(3)).to_arrow(events=True) == found.to_arrow(events=True)
    assert len(cepheid.query("SELECT * WHERE A AS x ; A AS y PARTITION BY k").run(events)) == 1


OTHERS = {
    "binary": pa.array([b"x", None, b""]),
    "fixed": pa.array([b"xyz", None, b"abc"], pa.binary(3)),
    "list": pa.array([[1], None, []]),
    "pair": pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int8(), 2)),
    "struct": pa.array([{"a": 1}, None, {"a": None}]),
    "map": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int8())),
    "interval": pa.array([(1, 2, 3), None, (0, 0, 0)], pa.month_day_nano_interval()),
    "clock": pa.array([1, None, 2], pa.int64()).cast(pa.time64("us")),
    "uuid": pa.array([b"0" * 16, None, b"1" * 16], pa.uuid()),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_of_every_type_one_can_ask_whether_it_is_null(kind):
    events = pa.table({"ts": [0, 1, 2], "v": OTHERS[kind]}).slice(1)
    for condition, expected in (("v IS NULL", [0]), ("v IS NOT NULL", [1])):
        query = cepheid.query(f"SELECT * WHERE ANY AS x FILTER x[{condition}]")
        assert [match.start for match in query.run(events)] == expected
        assert [match.start for match in query.run(events, engine="reference")] == expected


CONDITIONS = ["v", "NOT v", "v OR ts > 0", "coalesce(v, TRUE)", "coalesce(v, 1.5) > 1", "-v = 1", "v IN (NULL, 1)", "v LIKE 'a'", "v = v"]
CONDITIONS += ["v * 1.5e0 <= 0.0", "abs(v * 1e0) = 0", "coalesce(v, NULL, TRUE)"]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_column_of_type_null_is_null_of_every_type(condition):
    events = pa.table({"ts": [0, 1], "v": pa.nulls(2)})
    query = cepheid.query(f"SELECT * WHERE ANY AS x FILTER x[{condition}]")
    assert query.run(events) == query.run(events, engine="reference")


@pytest.mark.parametrize("condition", ["coalesce(b, NULL)", "coalesce(NULL, b)", "NOT coalesce(NULL, b)", "coalesce(NULL, ts > 0)"])
def test_null_beside_a_bool(condition):
    events = pa.table({"ts": [0, 1, 2], "b": [True, False, None]})
    query = cepheid.query(f"SELECT * WHERE ANY AS x FILTER x[{condition}]")
    assert query.run(events) == query.run(events, engine="reference")


@pytest.mark.parametrize("condition", ["w / v IS NULL", "w / v > 1", "w % v = 0", "w * w IS NULL", "w + v IS NULL", "v / w = 0"])
def test_decimals_of_38_digits(condition):
    widest, finest = pa.array([Decimal(10**38 - 1)], pa.decimal128(38, 0)), pa.array([Decimal("1E-38")], pa.decimal128(38, 38))
    query = cepheid.query(f"SELECT * WHERE ANY AS x FILTER x[{condition}]")
    events = pa.table({"ts": [0], "w": widest, "v": finest})
    assert query.run(events) == query.run(events, engine="reference")


def test_too_many_live_macro_states_are_a_limit_and_no_memory_error(monkeypatch):
    monkeypatch.setattr(evaluation, "LIST_LIMIT", 1 << 12)
    events = pa.table({"type": list("ABBABAABBABA"), "ts": range(12)})
    query = cepheid.query("SELECT ANY * WHERE (A OR B)+ ; A" + " ; (A OR B)" * 6)
    with pytest.raises(LimitError, match="LIST_LIMIT"):
        query.run(events)
    monkeypatch.undo()
    assert [match.end for match in query.run(events)] == [9, 10, 11]


NANOSECONDS = pa.table(
    {
        "type": ["A", "B", "B"],
        "ts": pa.array([1_767_225_600_000_000_100, 1_767_225_600_000_000_150, 1_767_225_600_000_000_900], pa.timestamp("ns", "UTC")),
        "since": pa.array([1, 1_000, None], pa.duration("ns")),
        "seen": pa.array([{"at": [5]}, None, {"at": []}], pa.struct([("at", pa.list_(pa.timestamp("ns")))])),
    }
)
"""Its rows in Python have times of pandas, as Python's own hold microseconds."""


def test_rows_with_nanoseconds_have_the_matches_of_their_table():
    query = cepheid.query("SELECT * WHERE A AS x ; B AS y WITHIN 0.1us")
    expected = query.run(NANOSECONDS).to_arrow(events=True)
    assert expected.num_rows == 1
    assert query.run(NANOSECONDS.to_pylist()).to_arrow(events=True) == expected


@pytest.mark.parametrize("as_tuple", [False, True])
def test_single_rows_with_nanoseconds_have_the_matches_of_their_table(as_tuple):
    recognizer = cepheid.query("SELECT * WHERE A AS x ; B AS y WITHIN 0.1us").recognizer(NANOSECONDS.schema)
    rows = [tuple(row.values()) if as_tuple else row for row in NANOSECONDS.to_pylist()]
    assert [len(recognizer.push(row)) for row in rows] == [0, 1, 0]
    assert recognizer.latest == 1_767_225_600_000_000_900


def test_nanoseconds_for_a_column_of_microseconds_are_an_error_and_not_dropped():
    schema = NANOSECONDS.schema.set(1, pa.field("ts", pa.timestamp("us", "UTC")))
    recognizer = cepheid.query("SELECT * WHERE A").recognizer(schema)
    with pytest.raises(
        cepheid.SchemaError, match=r"`ts` is timestamp\[ns, tz=UTC\] in the batch and timestamp\[us, tz=UTC\] in the schema"
    ):
        recognizer.push(NANOSECONDS.to_pylist()[0])
