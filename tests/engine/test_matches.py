"""Matches: a sequence of objects, a table, a printed table; everything derived from the same buffers."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import cepheid
from cepheid.engine.output import matches as module
from cepheid.engine.output.matches import Match, concatenate

EVENTS = pa.table(
    {
        "type": pa.array(list("ABABCB")).dictionary_encode(),
        "ts": pa.array([dt.datetime(2024, 1, 1, 0, 0, second, tzinfo=dt.UTC) for second in range(6)], pa.timestamp("us", "UTC")),
        "k": pa.array(["u", "v", "u", "u", None, "v"]).dictionary_encode(),
        "v": [1.0, None, 3.0, 4.0, 5.0, 6.0],
    }
)
ALL = cepheid.query("SELECT * WHERE A+ AS x ; B AS y")
KEYED = cepheid.query("SELECT * WHERE A AS x ; B AS y PARTITION BY k")


@pytest.fixture
def matches():
    return ALL.run(EVENTS)


def test_length_iteration_and_indexing(matches):
    expected = [
        {"x": (0,), "y": (1,)},
        {"x": (2,), "y": (3,)},
        {"x": (0, 2), "y": (3,)},
        {"x": (0,), "y": (3,)},
        {"x": (2,), "y": (5,)},
        {"x": (0, 2), "y": (5,)},
        {"x": (0,), "y": (5,)},
    ]
    assert len(matches) == 7
    assert sorted(map(str, (match.variables for match in matches))) == sorted(map(str, expected))
    assert [match.end for match in matches] == [1, 3, 3, 3, 5, 5, 5]
    assert matches[-1] == matches[6] == list(matches)[6]
    assert isinstance(matches[0], Match)
    for index in (7, -8):
        with pytest.raises(IndexError, match="there are 7"):
            matches[index]


def test_slices_are_matches(matches):
    for piece in (slice(2, 5), slice(None, None, 2), slice(None, None, -1), slice(5, 2), slice(-2, None), slice(100, 200)):
        part = matches[piece]
        assert list(part) == list(matches)[piece]
        assert part.to_pylist() == matches.to_pylist()[piece]
        assert len(part) == part.to_arrow(events=True).num_rows


def test_one_match(matches):
    match = matches[0]
    assert (match.start, match.end, match.keys) == (0, 1, {})
    assert match.start_time == dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    assert match.end_time == dt.datetime(2024, 1, 1, 0, 0, 1, tzinfo=dt.UTC)
    assert match["y"] == [{"type": "B", "ts": match.end_time, "k": "v", "v": None}]
    with pytest.raises(KeyError, match="the match has no variable `z`: it has `x`, `y`"):
        match["z"]
    with pytest.raises(IndexError, match=r"there is no match 100: there are \d+"):
        matches[100]
    assert repr(match) == "Match(start=0, end=1, x=(0,), y=(1,))"
    assert match == ALL.run(EVENTS)[0]
    assert match != matches[1]
    assert len({match, ALL.run(EVENTS)[0], matches[1]}) == 2


def test_arrow_table_of_positions(matches):
    table = matches.to_arrow()
    table.validate(full=True)
    assert table.schema == ALL.output_schema(EVENTS.schema)
    assert table.schema == pa.schema(
        [
            ("start_time", pa.timestamp("us", "UTC")),
            ("end_time", pa.timestamp("us", "UTC")),
            ("start_position", pa.int64()),
            ("end_position", pa.int64()),
            ("x", pa.large_list(pa.int64())),
            ("y", pa.large_list(pa.int64())),
        ]
    )
    assert [tuple(row) for row in table["x"].to_pylist()] == [match.variables["x"] for match in matches]
    assert matches.to_pylist() == table.to_pylist()
    assert matches.to_pandas()["end_position"].tolist() == [1, 3, 3, 3, 5, 5, 5]


@pytest.mark.parametrize("query", [ALL, cepheid.query("SELECT count(y) AS `keys()`, max(y.$time) AS rows WHERE A AS x ; B+ AS y")])
def test_data_frames_have_the_rows_of_to_pandas(query):
    """pandas reads rows, polars and DuckDB columns; neither of them takes matches for rows of its own."""
    matches = query.run(EVENTS)
    expected = matches.to_pandas()
    frame = pd.DataFrame(matches)
    assert list(frame.columns) == list(expected.columns)
    for name in expected.columns:
        assert [getattr(value, "tolist", lambda value=value: value)() for value in expected[name]] == frame[name].tolist()
    assert len(pd.DataFrame(matches[:0])) == 0
    assert pa.table(matches) == matches.to_arrow()
    assert not isinstance(matches, Sequence), "polars asks this first, and columns after it"
    assert matches[1] in matches
    assert (matches.index(matches[0]), matches.count(matches[0]), next(reversed(matches))) == (0, 1, matches[-1])
    with pytest.raises(ValueError, match="array of objects"):
        np.asarray(matches, np.int64)


def test_arrow_table_of_events(matches, monkeypatch):
    struct = pa.struct([("type", pa.string()), ("ts", pa.timestamp("us", "UTC")), ("k", pa.string()), ("v", pa.float64())])
    for limit in (2**31 - 1, 3):
        monkeypatch.setattr(module, "LIST_ROWS", limit)
        table = matches.to_arrow(events=True)
        table.validate(full=True)
        assert table.schema.field("x").type == pa.list_(struct)
        assert table.column_names == ["start_time", "end_time", "x", "y"]
        assert table["x"].to_pylist() == [match["x"] for match in matches]
    assert table["x"].num_chunks > 1


def test_keys_come_first():
    matches = KEYED.run(EVENTS)
    assert [(match.keys, match.start, match.end, match.start_time.second) for match in matches] == [
        ({"k": "u"}, 1, 2, 2),
        ({"k": "u"}, 0, 2, 0),
    ]
    table = matches.to_arrow()
    assert table.schema.field(0) == pa.field("k", pa.string())
    assert table["k"].to_pylist() == ["u", "u"]
    assert matches.null_keys == 1
    assert repr(matches[0]) == "Match(k='u', start=1, end=2, x=(1,), y=(2,))"


def test_hidden_ends_belong_to_the_interval():
    events = [{"type": kind, "ts": time} for time, kind in enumerate("ABAB")]
    matches = cepheid.query("SELECT y WHERE A AS x ; B AS y").run(events)
    assert [(match.start, match.end, match.variables) for match in matches] == [
        (0, 1, {"y": (1,)}),
        (2, 3, {"y": (3,)}),
        (0, 3, {"y": (3,)}),
    ]
    nothing = cepheid.query("SELECT * WHERE PROJECT NONE (A ; B)").run(events)
    assert sorted((match.start, match.end) for match in nothing) == [(0, 1), (0, 3), (2, 3)]


BARE = pa.table({"v": [1, 2, 3]}).select([])  # three events without an attribute, all of the type that FROM names


@pytest.mark.parametrize(
    ("query", "row"),
    [
        ("SELECT * FROM A WHERE A AS x", {"x": [{}]}),
        ("SELECT NXT * FROM A WHERE A AS x", {"x": [{}]}),
        ("SELECT count(x) AS n FROM A WHERE A AS x", {"n": 1}),
        ("SELECT COUNT(*) FROM A WHERE A AS x", {"count": 1, "count_overflow": False}),
        ("SELECT * FROM A WHERE PROJECT NONE (A)", {}),
    ],
)
def test_events_without_attributes(query, row):
    compiled = cepheid.query(query)
    recognizer = compiled.recognizer(BARE.schema)
    pushed = [recognizer.push(BARE[:2])]
    pushed.append(recognizer.restore(recognizer.snapshot()).push(BARE[2:]))
    results = [
        compiled.run(BARE),
        compiled.run([{}] * 3),
        compiled.run(BARE.to_reader()),
        compiled.run(BARE, engine="reference"),
        concatenate(recognizer.compiled.layout, pushed),
    ]
    for matches in results:
        assert [(match.start, match.end) for match in matches] == [(0, 0), (1, 1), (2, 2)]
        shown = matches.to_arrow(events=True)
        assert (shown.schema, shown.to_pylist()) == (compiled.output_schema(BARE.schema, events=True), [row] * 3)
        assert all(match[name] == [{}] for match in matches for name in match)


def test_event_in_several_variables():
    events = [{"type": "A", "ts": 1}]
    (match,) = cepheid.query("SELECT x, y, A WHERE A AS x AS y").run(events)
    assert match.variables == {"x": (0,), "y": (0,), "A": (0,)}


def test_terminal_and_notebook(matches):
    lines = repr(matches[:2]).splitlines()
    assert lines[0] == "2 matches"
    assert lines[1].split() == ["start_time", "end_time", "x", "y"]
    assert lines[2].split()[:4] == ["2024-01-01", "00:00:00Z", "2024-01-01", "00:00:01Z"]
    many = cepheid.query("SELECT * WHERE A OR B").run([{"type": "A", "ts": time} for time in range(12)])
    assert repr(many).splitlines()[0] == "12 matches"
    assert repr(many).splitlines()[-1] == ".. and 2 more"
    assert "<p>and 2 more</p>" in many._repr_html_()
    escaped = cepheid.query("SELECT * WHERE A AS `<b>`").run([{"type": "A", "ts": 1}])
    assert "<b>" not in escaped._repr_html_()
    assert "&lt;b&gt;" in escaped._repr_html_()
    assert "0 matches" in matches[:0]._repr_html_()


def test_equality_and_concatenation(matches):
    assert matches == ALL.run(EVENTS)
    assert matches != matches[1:]
    parts = [matches[:0], matches[:3], matches[3:4], matches[4:]]
    joined = concatenate(matches.layout, parts)
    assert joined == matches
    assert joined.to_arrow(events=True).to_pylist() == matches.to_arrow(events=True).to_pylist()
    assert joined.events.num_rows < 3 * EVENTS.num_rows
    keyed = KEYED.run(EVENTS)
    assert concatenate(keyed.layout, [keyed[:1], keyed[1:]]) == keyed
    assert len(concatenate(keyed.layout, [])) == 0


def test_positions_of_one_variable_are_not_copied():
    matches = cepheid.query("SELECT * WHERE A+ AS x WITHIN 3 EVENTS").run(EVENTS)
    column = matches.to_arrow()["x"].chunk(0)
    values = np.frombuffer(column.flatten().buffers()[1], np.int64)
    assert np.shares_memory(values, matches.positions)


def test_limit_and_any():
    events = [{"type": kind, "ts": time} for time, kind in enumerate("AAAB")]
    assert len(cepheid.query("SELECT * WHERE A ; B LIMIT 2").run(events)) == 2
    assert len(cepheid.query("SELECT ANY * WHERE A ; B LIMIT 2").run(events)) == 1
    assert len(cepheid.query("SELECT * WHERE A ; B").run(events)) == 3


def test_strict_is_one_of_the_strategies():
    events = [{"type": kind, "ts": time} for time, kind in enumerate("AAXAB")]
    assert [(match.start, match.end) for match in cepheid.query("SELECT STRICT * WHERE A+ ; B").run(events)] == [(3, 4)]
