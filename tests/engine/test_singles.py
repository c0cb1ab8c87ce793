"""Events pushed one by one, as dicts and tuples: the matches and the errors are those of tables; random queries are in `WAYS` of the differential."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import zoneinfo

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.engine.input import payload
from cepheid.engine.run import singles
from cepheid.engine.run.query_state import QueryState
from cepheid.errors import CepheidError, InputError, InUseError, SchemaError, SnapshotError

SCHEMA = pa.schema([("type", pa.string()), ("ts", pa.int64()), ("k", pa.int64()), ("v", pa.float64())])
QUERIES = (
    "SELECT * WHERE A AS x ; B AS y FILTER x[v > 1] WITHIN 20",
    "SELECT * WHERE A AS x ; B AS y FILTER x[v > 1] PARTITION BY k",
    "SELECT x.v AS first, y.v AS second WHERE A AS x ; B AS y PARTITION BY k WITHIN 30",
    "SELECT * WHERE A : B",
    "SELECT * WHERE A ; B WITHIN 3 EVENTS",
    "SELECT NXT * WHERE A ; B PARTITION BY k CONSUME BY ANY",
    "SELECT MAX * WHERE A+ ; B WITHIN 9",
    "SELECT COUNT(*) WHERE A ; B",
    "SELECT * WHERE A AS x ; B AS y FILTER x.k = y.k",
    "SELECT * WHERE A AS x NOT FOLLOWED BY B FOR 4",
)


def rows(count, *, seed=1):
    rng = np.random.default_rng(seed)
    types, keys = rng.choice(list("ABCCCCCC"), count).tolist(), rng.integers(0, 4, count).tolist()
    return [
        {"type": kind, "ts": int(time), "k": None if key == 3 else key, "v": float(value)}
        for kind, time, key, value in zip(types, np.cumsum(rng.integers(0, 3, count)), keys, rng.integers(0, 5, count), strict=True)
    ]


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("most", [1, 7, 1 << 10])
def test_as_a_table(text, most, monkeypatch):
    monkeypatch.setattr(singles, "MOST_WAITING", most)
    query = cepheid.query(text)
    one, tables, tuples = (query.recognizer(SCHEMA) for _ in range(3))
    matched = 0
    for number, row in enumerate(rows(160)):
        expected = tables.push(pa.Table.from_pylist([row], SCHEMA))
        assert one.push(row) == expected
        assert tuples.push(tuple(row.values())).to_arrow(events=True).equals(expected.to_arrow(events=True))
        matched += len(expected)
        if number % 50 == 49:
            # What is dead may be given back at another event; each goes on from the state of another one.
            states = [recognizer.snapshot() for recognizer in (one, tables, tuples)]
            for recognizer, state in zip((tables, tuples, one), states, strict=True):
                recognizer.restore(state)
            assert one.null_keys == tables.null_keys == tuples.null_keys
    assert matched
    assert one.undecided() == tables.undecided()
    assert one.advance_time(10_000) == tables.advance_time(10_000)


def test_an_event_that_can_change_nothing_waits_as_a_letter():
    recognizer = cepheid.query("SELECT * WHERE A ; B WITHIN 5").recognizer(SCHEMA)
    calls = []
    chunks = recognizer._member.state.evaluation.chunks
    recognizer._member.state.evaluation.chunks = lambda events: calls.append(len(events)) or chunks(events)
    for time in range(singles.MOST_WAITING - 1):
        recognizer.push({"type": "C", "ts": time, "k": 1, "v": 1.0})
    assert calls == []
    recognizer.push({"type": "A", "ts": 2000, "k": 1, "v": 1.0})
    assert calls == [singles.MOST_WAITING]
    recognizer.push({"type": "C", "ts": 2001, "k": 1, "v": 1.0})
    (match,) = recognizer.push(pa.Table.from_pylist([{"type": "B", "ts": 2002, "k": 1, "v": 1.0}], SCHEMA))
    assert calls[1:] == [1, 1]
    assert (match.start, match.end) == (1023, 1025)


@pytest.mark.parametrize("text", [QUERIES[0], QUERIES[1]])
@pytest.mark.parametrize(
    ("row", "error"),
    [
        ({"type": "A", "ts": 6, "k": 1}, SchemaError),
        ({"type": "A", "ts": None, "k": 1, "v": 1.0}, InputError),
        ({"type": "A", "ts": 1, "k": 1, "v": 1.0}, InputError),
        ({"type": "A", "ts": "x", "k": 1, "v": 1.0}, CepheidError),
        ({"type": 7, "ts": 6, "k": 1, "v": 1.0}, SchemaError),
        ({"type": "A", "ts": 6, "k": "one", "v": 1.0}, SchemaError),
        ({"type": "A", "ts": 6, "k": 1, "v": object()}, InputError),
        (("A", 6, 1), InputError),
        (("A", 6, 1, 1.0, 2), InputError),
        ({}, InputError),
        ({"S": []}, InputError),
    ],
    ids=str,
)
def test_bad_events_change_nothing(text, row, error):
    recognizer = cepheid.query(text).recognizer(SCHEMA)
    for good in rows(30):
        recognizer.push(good | {"ts": 5})
    before = recognizer.snapshot()
    with pytest.raises(error):
        recognizer.push(row)
    assert recognizer.snapshot() == before
    assert recognizer.latest == 5


@pytest.mark.parametrize(
    "row",
    [
        {"type": "A", "ts": 6, "k": 1, "v": 2, "more": 3},
        {"type": "A", "ts": np.int64(6), "k": True, "v": np.float64(2)},
        {"v": 2.0, "k": 1, "ts": 6, "type": "A"},
        {"type": None, "ts": 6, "k": None, "v": math.nan},
    ],
    ids=str,
)
def test_unusual_events_are_what_they_are_as_a_list(row):
    query = cepheid.query(QUERIES[1])
    one, listed = query.recognizer(SCHEMA), query.recognizer(SCHEMA)
    found = []
    for recognizer, given in ((one, row), (listed, [row])):
        try:
            recognizer.push(given)
        except CepheidError as error:
            found.append(str(error))
        else:
            found.append(recognizer.snapshot())
    assert found[0] == found[1]


def test_a_tuple_of_dicts_is_several_events():
    recognizer = cepheid.query("SELECT * WHERE A ; B").recognizer(SCHEMA)
    assert len(recognizer.push(({"type": "A", "ts": 1, "k": 1, "v": 1.0}, {"type": "B", "ts": 2, "k": 1, "v": 1.0}))) == 1
    assert len(recognizer.push(())) == 0


def test_times_and_texts_of_any_type():
    schema = pa.schema([("type", pa.dictionary(pa.int32(), pa.string())), ("ts", pa.timestamp("ns", "UTC")), ("k", pa.large_string())])
    query = cepheid.query("SELECT * WHERE A AS x ; B AS y FILTER x[k LIKE 'ä%'] PARTITION BY k WITHIN 5s")
    one, tables = query.recognizer(schema), query.recognizer(schema)
    start = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    found = 0
    for number in range(40):
        row = {"type": "AB"[number % 2], "ts": start + dt.timedelta(seconds=number), "k": "äb"[number % 3 % 2]}
        expected = tables.push(pa.Table.from_pylist([row], schema))
        assert one.push(row) == expected
        found += len(expected)
    assert found
    assert one.snapshot() == tables.snapshot()


def test_values_of_several_python_types_in_one_attribute():
    schema = pa.schema(
        [("type", pa.string()), ("ts", pa.int64()), ("v", pa.float32()), ("n", pa.decimal128(9, 3)), ("d", pa.timestamp("us", "UTC"))]
    )
    paris = zoneinfo.ZoneInfo("Europe/Paris")
    query = cepheid.query("SELECT * WHERE A ; B")
    one, tables = query.recognizer(schema), query.recognizer(schema)
    values = [1, 2.5, None, math.nan, -0.0, 1 << 20]
    decimals = [decimal.Decimal(1), decimal.Decimal("2.5"), None, decimal.Decimal("-1E+2")]
    dates = [dt.datetime(2024, 10, 27, 0, 30, tzinfo=dt.UTC), dt.datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=paris), None]
    for number in range(3 * payload.MANY_SINGLE):
        kind = "B" if number % 40 == 39 else "A"
        row = {"type": kind, "ts": number, "v": values[number % 6], "n": decimals[number % 4], "d": dates[number % 3]}
        found, expected = one.push(row), tables.push([row])
        assert str(found.to_arrow(events=True)) == str(expected.to_arrow(events=True))
        assert len(found) == (number // 40 + 1) * 39 * (kind == "B")
    assert one.snapshot() == tables.snapshot()


def test_what_an_event_held_when_it_came_is_what_its_match_shows():
    """A dict, and a list or struct in it, is its owner's, who may use it again."""
    schema = pa.schema([*SCHEMA, ("list", pa.list_(pa.int64())), ("struct", pa.struct([("a", pa.int64())]))])
    for fields in (SCHEMA, schema):
        recognizer = cepheid.query("SELECT * WHERE A ; B").recognizer(fields)
        row = {"type": "A", "ts": 1, "k": 1, "v": 1.0, "list": [1], "struct": {"a": 1}}
        row = {name: row[name] for name in fields.names}
        given = dict(row)
        recognizer.push(given)
        given |= {"type": "C", "ts": 2, "k": 2}
        for name, value in (("list", [2]), ("struct", {"a": 2})):
            if name in given:
                given[name].clear()
                given[name] = value
        recognizer.push(given)
        given |= {"type": "B", "ts": 3}
        found = recognizer.push(given)
        given["v"] = 7.0
        (match,) = found
        expected = {"type": "A", "ts": 1, "k": 1, "v": 1.0, "list": [1], "struct": {"a": 1}}
        assert match["A"] == [{name: expected[name] for name in fields.names}]
        assert match["B"][0]["v"] == 1.0


def test_late_events_and_several_queries_take_single_events_too():
    late = cepheid.query(QUERIES[0]).recognizer(SCHEMA, lateness=3)
    together = cepheid.queries({"a": QUERIES[0], "b": QUERIES[1]}).recognizer(SCHEMA)
    for row in rows(20):
        late.push(row)
        together.push(tuple(row.values()))
    assert late.latest is not None
    assert together.latest == rows(20)[-1]["ts"]


def test_dictionaries_of_numbers_come_as_their_values():
    schema = SCHEMA.append(pa.field("code", pa.dictionary(pa.int8(), pa.int64())))
    recognizer = cepheid.query("SELECT * WHERE A AS x ; B").recognizer(schema)
    recognizer.push({**rows(1)[0], "type": "A", "ts": 0, "code": 7})
    (found,) = recognizer.push({**rows(1)[0], "type": "B", "ts": 1, "code": None})
    assert found["x"][0]["code"] == 7


def test_one_thread_at_a_time():
    recognizer = cepheid.query(QUERIES[0]).recognizer(SCHEMA)
    with recognizer._use.alone(), pytest.raises(InUseError):
        recognizer.push(rows(1)[0])


@pytest.mark.parametrize("call", ["snapshot", "undecided"])
def test_an_interruption_while_what_waits_is_read(call, monkeypatch):
    recognizer = cepheid.query("SELECT * WHERE A ; B").recognizer(SCHEMA)
    for time, kind in enumerate("ACCC"):
        recognizer.push({"type": kind, "ts": time, "k": 1, "v": 1.0})

    def interrupted(*_arguments, **_options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(QueryState, "chunks", interrupted)
        with pytest.raises(KeyboardInterrupt):
            getattr(recognizer, call)()
    with pytest.raises(SnapshotError, match="incomplete"):
        recognizer.push({"type": "B", "ts": 9, "k": 1, "v": 1.0})


def test_a_tuple_of_dicts_is_several_events_whatever_the_attributes_are():
    schema = pa.schema([("a", pa.struct([("p", pa.int64())])), ("b", pa.struct([("p", pa.int64())]))])
    query = cepheid.query("SELECT * FROM S WHERE S AS x FILTER x[a.p > 0]")
    events = ({"a": {"p": 1}, "b": {"p": 2}}, {"a": {"p": 0}, "b": {"p": 2}})
    assert len(query.recognizer(schema).push(events)) == 1
    assert len(cepheid.queries([query]).recognizer(schema).push(events)["q1"]) == 1
