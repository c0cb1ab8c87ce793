"""The incremental recognizer: batches, late events, snapshots, memory."""

from __future__ import annotations

import copy
import datetime as dt
import pickle

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.engine.input import payload as payload_module
from cepheid.engine.memory import container as state
from cepheid.errors import InputError, SchemaError, SnapshotError

SCHEMA = pa.schema([("type", pa.string()), ("ts", pa.int64()), ("k", pa.int64())])
QUERY = cepheid.query("SELECT * WHERE A AS x ; B AS y WITHIN 10")
KEYED = cepheid.query("SELECT * WHERE A AS x ; B AS y PARTITION BY k WITHIN 10")


def batch(text, key=1):
    words = text.split()
    return pa.table([[word[0] for word in words], [int(word[1:]) for word in words], [key] * len(words)], schema=SCHEMA)


def ends(matches):
    return [(match.start, match.end) for match in matches]


def test_matches_span_batches_and_keep_their_events():
    recognizer = QUERY.recognizer(SCHEMA)
    assert len(recognizer.push(batch("A1 C2"))) == 0
    assert ends(recognizer.push(batch("B3"))) == [(0, 2)]
    (match,) = recognizer.push(batch("C4 B5"))
    assert (match.start, match.end, match.start_time, match.end_time) == (0, 4, 1, 5)
    assert match["x"] == [{"type": "A", "ts": 1, "k": 1}]
    assert len(recognizer.push(batch("B12"))) == 0
    assert recognizer.push(batch("")).to_arrow().schema == QUERY.output_schema(SCHEMA)
    assert len(recognizer.flush()) == 0


def test_partitions_interleave_in_the_order_of_the_stream():
    recognizer = KEYED.recognizer(SCHEMA)
    recognizer.push(pa.concat_tables([batch("A1", 7), batch("A2", 5)]))
    matches = recognizer.push(pa.concat_tables([batch("B3", 5), batch("B4", 7), batch("B5", 5)]))
    assert [(match.keys, match.start, match.end, match.end_time) for match in matches] == [
        ({"k": 5}, 0, 1, 3),
        ({"k": 7}, 0, 1, 4),
        ({"k": 5}, 0, 2, 5),
    ]
    recognizer.push(pa.table([["A"], [6], [None]], schema=SCHEMA))
    assert recognizer.null_keys == 1


def test_a_batch_that_is_wrong_changes_nothing():
    recognizer = QUERY.recognizer(SCHEMA)
    recognizer.push(batch("A1 C5"))
    before = recognizer.snapshot()
    with pytest.raises(InputError) as error:
        recognizer.push(batch("B6 B2"))
    assert "row 1 (2) is earlier than row 0 (6)" in str(error.value)
    with pytest.raises(InputError) as error:
        recognizer.push(batch("B3 B4"))
    assert str(error.value).splitlines() == [
        "error: the events are not in the order of their times: row 0 (3) is earlier than an event that came before (5)",
        "help: q.recognizer(.., lateness=..) accepts late events, and q.run(.., sort=True) sorts them all",
    ]
    with pytest.raises(InputError, match="row 0 has no time"):
        recognizer.push(pa.table([["A"], [None], [1]], schema=SCHEMA))
    with pytest.raises(SchemaError) as schema_error:
        recognizer.push(batch("B6").rename_columns(["typ", "ts", "k"]))
    assert str(schema_error.value).splitlines()[:2] == ["error: the batch has no column `type`", "help: did you mean `typ`?"]
    with pytest.raises(SchemaError, match="`k` is string in the batch and int64 in the schema"):
        recognizer.push(batch("B6").set_column(2, "k", pa.array(["one"])))
    assert recognizer.snapshot() == before
    assert ends(recognizer.push([{"k": 1, "ts": 6, "type": "B", "more": 0}])) == [(0, 2)]


def test_late_events_are_counted_and_kept():
    recognizer = QUERY.recognizer(SCHEMA, lateness=3)
    assert ends(recognizer.push(batch("B5 A3 A1"))) == []
    assert recognizer.late.to_pylist() == [{"type": "A", "ts": 1, "k": 1}]
    assert ends(recognizer.push(batch("C9"))) == [(0, 1)]
    recognizer.push(batch("A5 B7"))
    assert [row["ts"] for row in recognizer.late.to_pylist()] == [1, 5]
    assert ends(recognizer.flush()) == [(0, 2)]
    recognizer.push(batch("A8"))
    assert recognizer.late.num_rows == 3


def test_the_lateness_that_would_have_been_enough():
    recognizer = QUERY.recognizer(SCHEMA, lateness=3)
    assert recognizer.enough_lateness == 3
    recognizer.push(batch("B5 A3 A2"))
    assert (recognizer.enough_lateness, len(recognizer.late)) == (3, 0)
    recognizer.push(batch("A1 C9 A7 A4"))
    assert (recognizer.enough_lateness, len(recognizer.late)) == (5, 2)
    recognizer.push(batch("A5"))
    assert (recognizer.enough_lateness, len(recognizer.late)) == (5, 3)
    again = QUERY.recognizer(SCHEMA, lateness=3, snapshot=recognizer.snapshot())
    for run in (recognizer, again):
        assert run.enough_lateness == 5
        run.push({"type": "A", "ts": 2, "k": 1})
        assert run.enough_lateness == 7
    assert QUERY.recognizer(SCHEMA).enough_lateness is None


def test_no_lateness_takes_what_comes_after_time_has_been_moved_on():
    """By `advance_time` or `flush`: what counts is how far events are behind events."""
    recognizer = QUERY.recognizer(SCHEMA, lateness=3)
    recognizer.push(batch("A5"))
    recognizer.advance_time(100)
    recognizer.push(batch("B50 B10 A1"))
    assert (recognizer.enough_lateness, len(recognizer.late)) == (49, 3)
    recognizer.flush()
    recognizer.push({"type": "A", "ts": 99, "k": 1})
    assert (recognizer.enough_lateness, len(recognizer.late)) == (49, 4)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_it_is_a_lateness(unit):
    """The same events with it are all taken, and with a step less they are not."""
    schema = SCHEMA.set(1, pa.field("ts", pa.timestamp(unit)))
    rng = np.random.default_rng(len(unit))
    for _ in range(20):
        times = pa.array(rng.integers(0, 60, 30)).cast(pa.timestamp("s")).cast(pa.timestamp(unit))
        events = pa.table([pa.array(["A"] * 30), times, pa.array([1] * 30)], schema=schema)
        found = set()
        for size in (1, 7, 30):
            recognizer = cepheid.query("SELECT * WHERE A ; B WITHIN 9 s").recognizer(schema, lateness="5s")
            for start in range(0, 30, size):
                recognizer.push(events.slice(start, size))
            found.add(recognizer.enough_lateness)
        (enough,) = found
        for lateness, late in ((enough, False), (enough - 1, True)):
            other = cepheid.query("SELECT * WHERE A ; B WITHIN 9 s").recognizer(schema, lateness=lateness)
            other.push(events)
            assert (len(other.late) > 0) == late


def test_late_means_the_same_however_batches_are_cut():
    events = batch("A10 B4 A7 B8 A20 B16 B17 B30")
    for size in range(1, 9):
        recognizer = QUERY.recognizer(SCHEMA, lateness=4)
        found = []
        for start in range(0, 8, size):
            found += recognizer.push(events.slice(start, size))
        found += recognizer.flush()
        assert recognizer.late["ts"].to_pylist() == [4]
        assert [(match.start_time, match.end_time) for match in found] == [(7, 8), (10, 16), (7, 16), (10, 17), (7, 17), (20, 30)]


@pytest.mark.parametrize(
    ("lateness", "steps"), [("2s", 2_000_000), ("1.5 ms", 1500), (dt.timedelta(seconds=3), 3_000_000), (7, 7), ("0s", 0)]
)
def test_lateness_in_any_form(lateness, steps):
    schema = SCHEMA.set(1, pa.field("ts", pa.timestamp("us", "UTC")))
    query = cepheid.query("SELECT * WHERE A ; B WITHIN 10s")
    assert query.recognizer(schema, lateness=lateness)._lateness == steps


def test_equal_times_go_by_order_as_in_a_table():
    table = pa.table({"type": ["B", "A", "C"], "ts": [5, 5, 9], "id": [2, 1, 3], "s": [[1]] * 3})
    query = cepheid.query("SELECT * WHERE A ; B")
    assert (len(query.run(table)), len(query.run(table, order="id"))) == (0, 1)
    for lateness in (0, 2):
        recognizer = query.recognizer(table.schema, lateness=lateness, order="id")
        assert len(recognizer.push(table.slice(0, 1))) == 0
        snapshot = recognizer.snapshot()
        recognizer = query.recognizer(table.schema, lateness=lateness, order=["id"], snapshot=snapshot)
        assert len(recognizer.push(table.slice(1))) + len(recognizer.flush()) == 1
    assert len(query.recognizer(table.schema, lateness=0).push(table)) == 0
    with pytest.raises(SnapshotError):
        query.recognizer(table.schema, lateness=2, snapshot=snapshot)
    with pytest.raises(InputError, match="lateness=0 makes only the events of the newest time wait"):
        query.recognizer(table.schema, order="id")
    with pytest.raises(SchemaError, match="the input has no column `no` to order by"):
        query.recognizer(table.schema, lateness=0, order="no")
    with pytest.raises(SchemaError, match=r"events of equal time cannot be ordered by `s` \(list"):
        query.recognizer(table.schema, lateness=0, order="s")


def test_what_a_loop_pushes():
    recognizer = QUERY.recognizer(SCHEMA)
    assert len(recognizer.push([])) == 0
    assert len(recognizer.push([{"type": "A", "ts": 1, "k": None}])) == 0
    assert len(recognizer.push([{"type": "B", "ts": 1, "k": None}])) == 1
    with pytest.raises(InputError, match="a recognizer reads one stream, and this is a dict of streams") as caught:
        recognizer.push({"A": [{"ts": 1}], "B": [{"ts": 2}]})
    assert caught.value.help == ("push one table that is sorted by time, with the event types in the column `type`",)


def test_a_dict_of_streams_without_a_type_column():
    recognizer = cepheid.query("SELECT * FROM S WHERE S").recognizer(pa.schema([("ts", pa.int64())]))
    with pytest.raises(InputError, match="a recognizer reads one stream") as caught:
        recognizer.push({"S": [{"ts": 1}]})
    assert caught.value.help == ("push one table that is sorted by time",)


def test_a_snapshot_with_other_options_says_which():
    schema = pa.schema([("type", pa.string()), ("ts", pa.timestamp("us")), ("id", pa.int64())])
    query = cepheid.query("SELECT * WHERE A AS a ; B AS b WITHIN 1h")
    saved = query.recognizer(schema, lateness="10s", order="id").snapshot()
    same = "by the same query over the same schema"
    for options, fact in [
        ({"lateness": "5s", "order": "id"}, f"the snapshot was made with a lateness of 10s, {same}"),
        ({"lateness": "10s"}, f"the snapshot was made with order=['id'], {same}"),
        ({"lateness": "10s", "order": "id", "null_keys": "group"}, f"the snapshot was made with null_keys='drop', {same}"),
        ({}, f"the snapshot was made with a lateness of 10s and order=['id'], {same}"),
    ]:
        with pytest.raises(SnapshotError) as error:
            query.recognizer(schema, snapshot=saved, **options)
        assert error.value.fact == fact
    with pytest.raises(SnapshotError, match="made with no lateness and no order, by the same query"):
        query.recognizer(schema, lateness="5s", order="id", snapshot=query.recognizer(schema).snapshot())
    other = cepheid.query("SELECT * WHERE A AS a ; B AS b WITHIN 2h")
    with pytest.raises(
        SnapshotError,
        match=r"by another query, or with another type or time column, over the same schema, and with a lateness of 10s and order=\['id'\]\n",
    ):
        other.recognizer(schema, snapshot=saved)
    with pytest.raises(
        SnapshotError,
        match=r"by another query, or with another type or time column, over the same schema\nhelp: .* the options are the same",
    ):
        other.recognizer(schema, lateness="10s", order="id", snapshot=saved)
    for fields, change in [
        ([("type", pa.string()), ("ts", pa.timestamp("us")), ("id", pa.string())], "`id` was int64, and is string"),
        ([("type", pa.string()), ("ts", pa.timestamp("us"))], "`id` was int64, and is not there"),
        ([*schema, ("a", pa.int8()), ("b", pa.int8())], "`a` was not there, `b` was not there"),
        ([*schema, *((name, pa.int8()) for name in "abcde")], "`a` was not there, `b` was not there, `c` was not there, and 2 more"),
        ([("ts", pa.timestamp("us")), ("type", pa.string()), ("id", pa.int64())], "the attributes had another order"),
    ]:
        with pytest.raises(SnapshotError) as error:
            query.recognizer(pa.schema(fields), lateness="10s", snapshot=query.recognizer(schema, lateness="10s").snapshot())
        assert error.value.fact == f"the snapshot was made over another schema: {change}"
    with pytest.raises(SnapshotError, match="not that of a recognizer"):
        query.recognizer(schema, snapshot=state.pack({}, fingerprint=bytes(32)))


def test_wrong_lateness():
    with pytest.raises(InputError, match="lateness='2s' has a unit, and the time column `ts` has none"):
        QUERY.recognizer(SCHEMA, lateness="2s")
    with pytest.raises(InputError, match="lateness=-1 is negative"):
        QUERY.recognizer(SCHEMA, lateness=-1)
    with pytest.raises(InputError, match=r"lateness=1\.5 is not a duration"):
        QUERY.recognizer(SCHEMA, lateness=1.5)
    with pytest.raises(InputError, match="lateness='soon' is not a duration"):
        QUERY.recognizer(SCHEMA, lateness="soon")
    untimed = pa.schema([("type", pa.string())])
    with pytest.raises(InputError, match="lateness needs a time column"):
        cepheid.query("SELECT * WHERE A ; B").recognizer(untimed, lateness=1)


def test_advancing_time():
    recognizer = QUERY.recognizer(SCHEMA, lateness=100)
    recognizer.push(batch("B5 A3"))
    assert ends(recognizer.advance_time(5)) == []
    assert ends(recognizer.advance_time(6)) == [(0, 1)]
    recognizer.push(batch("A5"))
    assert recognizer.late.num_rows == 1
    strict = QUERY.recognizer(SCHEMA)
    strict.advance_time(10)
    with pytest.raises(InputError, match="earlier than an event that came before"):
        strict.push(batch("A9"))
    with pytest.raises(InputError, match="'noon' is not a time of the column `ts`"):
        strict.advance_time("noon")
    zoned = cepheid.query("SELECT * WHERE A ; B WITHIN 10s").recognizer(SCHEMA.set(1, pa.field("ts", pa.timestamp("ms", "UTC"))))
    zoned.advance_time(dt.datetime(2024, 1, 1, tzinfo=dt.UTC))
    assert zoned._latest == 1_704_067_200_000
    with pytest.raises(InputError, match=r"1704067201000 is not a time of the column `ts` \(timestamp"):
        zoned.advance_time(1_704_067_201_000)
    with pytest.raises(InputError, match=r"12\.5 is not a time of the column `ts`"):
        strict.advance_time(12.5)
    daily = cepheid.query("SELECT * WHERE A ; B").recognizer(SCHEMA.set(1, pa.field("ts", pa.date32())))
    with pytest.raises(InputError, match=r"is not a time of the column `ts` \(date32"):
        daily.advance_time(dt.datetime(2024, 1, 1, 12))  # noqa: DTZ001 - a day has no zone
    daily.advance_time(dt.date(2024, 1, 1))
    with pytest.raises(InputError, match="the events have no time column"):
        cepheid.query("SELECT * WHERE A ; B").recognizer(pa.schema([("type", pa.string())])).advance_time(1)


def test_snapshots_go_on_exactly():
    recognizer = KEYED.recognizer(SCHEMA, lateness=2)
    recognizer.push(pa.concat_tables([batch("A1 A2", 1), batch("A3 B4", 2), batch("A1", 3)]))
    data = recognizer.snapshot()
    other = KEYED.recognizer(SCHEMA, lateness=2, snapshot=data)
    assert other.snapshot() == data
    assert other.late == recognizer.late
    again = KEYED.recognizer(SCHEMA, lateness=2)
    again.push(batch("A0"))
    assert again.restore(data) is again
    expected = list(recognizer.push(batch("B5 C9")))
    assert [match.variables for match in expected] == [{"x": (0,), "y": (1,)}, {"x": (1,), "y": (2,)}, {"x": (0,), "y": (2,)}]
    assert list(other.push(batch("B5 C9"))) == expected == list(again.push(batch("B5 C9")))


def test_snapshots_of_something_else_are_refused():
    recognizer = KEYED.recognizer(SCHEMA)
    recognizer.push(batch("A1 A2"))
    data = recognizer.snapshot()
    others = [
        cepheid.query("SELECT * WHERE A AS x ; C AS y PARTITION BY k WITHIN 10").recognizer(SCHEMA),
        cepheid.query("SELECT * WHERE A AS x ; B AS y PARTITION BY k WITHIN 11").recognizer(SCHEMA),
        cepheid.query("SELECT ANY * WHERE A AS x ; B AS y PARTITION BY k WITHIN 10").recognizer(SCHEMA),
        QUERY.recognizer(SCHEMA),
        KEYED.recognizer(SCHEMA.append(pa.field("more", pa.int8()))),
        KEYED.recognizer(SCHEMA, lateness=1),
        KEYED.recognizer(SCHEMA, null_keys="group"),
    ]
    for other in others:
        before = other.snapshot()
        with pytest.raises(
            SnapshotError, match=r"another query|over another schema: `more` was not there|by the same query over the same schema"
        ):
            other.restore(data)
        assert other.snapshot() == before
    for wrong in (b"", b"CEPHEID", data[:-1], data[:50] + b"!" + data[51:], data + b"x"):
        with pytest.raises(SnapshotError):
            KEYED.recognizer(SCHEMA, snapshot=wrong)


def test_a_snapshot_belongs_to_a_type_column():
    wide = SCHEMA.append(pa.field("other", pa.string()))
    data = KEYED.recognizer(wide).snapshot()
    with pytest.raises(SnapshotError, match="with another type or time column, over the same schema"):
        KEYED.recognizer(wide, type="other", snapshot=data)


def stream(count, keys):
    rng = np.random.default_rng(3)
    for start in range(0, 100 * count, count):
        types = pa.array(np.array(["A", "B", "C"])[rng.integers(0, 3, count)])
        yield pa.table([types, np.arange(start, start + count), rng.integers(0, keys, count)], schema=SCHEMA)


@pytest.mark.parametrize(
    "text", ["SELECT ANY * WHERE A AS x ; B AS y {} WITHIN 50", "SELECT ANY * WHERE A AS x ; B AS y {} WITHIN 50 EVENTS"]
)
@pytest.mark.parametrize("keys", [0, 3])
def test_memory_does_not_grow_with_the_stream(text, keys, monkeypatch):
    monkeypatch.setattr(payload_module, "LEAST_COMPACTION", 64)
    recognizer = cepheid.query(text.format("PARTITION BY k" if keys else "")).recognizer(SCHEMA)
    usage = []
    for table in stream(500, keys or 1):
        assert len(recognizer.push(table)) > 50
        usage.append(recognizer.memory_usage())
    assert max(usage[50:]) <= 1.2 * max(usage[:50])
    assert recognizer._member.state.payload.events.num_rows < 3000


@pytest.mark.parametrize("pattern", ["A+ AS x ; B AS y", "(A+ AS x : A) ; B AS y"])
@pytest.mark.parametrize("select", ["ANY *", "NXT *", "LAST *", "MAX *", "NXT COUNT(*)", "COUNT(*)"])
@pytest.mark.parametrize("clauses", ["CONSUME BY ANY", "PARTITION BY k CONSUME BY PARTITION", "PARTITION BY k CONSUME BY ANY"])
def test_what_is_used_up_is_given_back_without_a_window(select, pattern, clauses, monkeypatch):
    monkeypatch.setattr(payload_module, "LEAST_COMPACTION", 64)
    query = cepheid.query(f"SELECT {select} WHERE {pattern} {clauses}")
    tables = list(stream(60, 3))
    recognizer = query.recognizer(SCHEMA)
    usage, kept, found = [], [], []
    for number, table in enumerate(tables):
        found += recognizer.push(table)
        usage.append(recognizer.memory_usage())
        kept.append(recognizer._member.state.payload.events.num_rows)
        if number % 30 == 29:
            recognizer.restore(recognizer.snapshot())
    assert max(usage[50:]) <= 1.2 * max(usage[:50])
    assert max(kept) < 1000
    assert len(recognizer.snapshot()) < 60_000
    whole = list(query.run(pa.concat_tables(tables)))
    assert found == whole
    assert "*)" in select or [match["x"] for match in found] == [match["x"] for match in whole]


def test_compaction_changes_no_match(monkeypatch):
    monkeypatch.setattr(payload_module, "LEAST_COMPACTION", 8)
    monkeypatch.setattr(payload_module, "MANY_TABLES", 3)
    for query in (QUERY, KEYED, cepheid.query("SELECT * WHERE A+ AS x ; B AS y PARTITION BY k WITHIN 8 EVENTS")):
        tables = list(stream(20, 4))
        recognizer = query.recognizer(SCHEMA)
        found = [match for table in tables for match in recognizer.push(table)]
        whole = query.run(pa.concat_tables(tables))
        assert found == list(whole)
        assert [match["x"] for match in found] == [match["x"] for match in whole]


def test_derived_partitions_keep_the_positions_of_the_stream():
    query = cepheid.query("SELECT * WHERE A AS x ; B AS y FILTER x.k = y.k WITHIN 10")
    events = pa.concat_tables([batch("A1", 1), batch("A1", 2), batch("A2 B3", 1), batch("B4", 2)])
    if not query.compiled(query.schema(SCHEMA)).derived:
        pytest.fail("the equality over all variables is not a partition")
    matches = query.run(events)
    assert ends(matches) == [(2, 3), (0, 3), (1, 4)]
    assert matches[0].keys == {}
    recognizer = query.recognizer(SCHEMA)
    found = [match for row in range(5) for match in recognizer.push(events.slice(row, 1))]
    assert found == list(matches)
    assert [match["y"][0]["ts"] for match in found] == [3, 3, 4]


def test_memory_comes_back_after_a_burst_of_keys():
    recognizer = KEYED.recognizer(SCHEMA)
    count = 30_000
    recognizer.push(pa.table([["A"] * count, [1] * count, list(range(count))], schema=SCHEMA))
    full = recognizer.memory_usage()
    assert len(recognizer.advance_time(1000)) == 0
    assert recognizer.memory_usage() < full / 2
    assert recognizer.memory_usage() < 400 * count
    assert ends(recognizer.push(batch("A1001 B1002", key=7))) == [(1, 2)]


@pytest.mark.parametrize(("size", "pushes"), [(10, 600), (70_000, 9)])
def test_keys_from_equalities_are_forgotten_when_the_window_has_passed(size, pushes):
    """In many small batches and in few large ones, of which there may never be as many as lie between two looks."""
    query = cepheid.query("SELECT * WHERE A AS x ; B AS y FILTER x.k = y.k WITHIN 9")
    recognizer, used = query.recognizer(SCHEMA), []
    for number in range(pushes):
        times = list(range(number * size, (number + 1) * size))
        recognizer.push(pa.table([["A"] * size, times, times], schema=SCHEMA))
        used.append(recognizer.memory_usage())
    assert max(used) < 2 * max(used[: pushes // 3])
    assert len(recognizer._member.partitions.live) <= 64 * size
    count = pushes * size
    assert ends(recognizer.push(pa.table([["B"] * 2, [count] * 2, [count - 1, count - size]], schema=SCHEMA))) == [(count - 1, count)]


@pytest.mark.parametrize("lateness", [None, 0])
def test_an_interrupted_push_leaves_no_silent_half_state(lateness, monkeypatch):
    recognizer = QUERY.recognizer(SCHEMA, lateness=lateness)
    recognizer.push(batch("A1 C2"))
    saved = recognizer.snapshot()

    def interrupted(*_args, **_options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(type(recognizer._member.state.evaluation), "chunks", interrupted)
        with pytest.raises(KeyboardInterrupt):
            recognizer.push(batch("B3 A4"))
    for use in (
        lambda: recognizer.push(batch("B5")),
        lambda: recognizer.push(batch("B0")),
        recognizer.flush,
        recognizer.snapshot,
        lambda: recognizer.advance_time(9),
    ):
        with pytest.raises(SnapshotError, match="The cause: an interruption"):
            use()
    recognizer.restore(saved)
    assert len(recognizer.push(batch("B3 A4"))) + len(recognizer.flush()) == 1


@pytest.mark.parametrize("data", ["text", 5, b""])
def test_what_is_no_snapshot(data):
    with pytest.raises(SnapshotError, match="not a snapshot"):
        QUERY.recognizer(SCHEMA, snapshot=data)


@pytest.mark.parametrize(
    ("section", "forged"),
    [
        ("recognizer", b"{}"),
        ("recognizer", b"[]"),
        ("seen", b""),
        ("seen", np.full(2, -1, "<i8").tobytes()),
        ("payload_places", np.full((4, 3), 9, "<i8").tobytes()),
        ("keys", b"no table"),
    ],
)
def test_a_snapshot_whose_sections_do_not_fit_changes_nothing(section, forged):
    recognizer = KEYED.recognizer(SCHEMA)
    recognizer.push(batch("A1 A2 A3", 1))
    snapshot = recognizer.snapshot()
    sections = state.unpack(snapshot, fingerprint=recognizer._fingerprint())
    assert section in sections
    with pytest.raises(SnapshotError, match="damaged"):
        recognizer.restore(state.pack({**sections, section: forged}, fingerprint=recognizer._fingerprint()))
    assert recognizer.snapshot() == snapshot


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_recognizer_is_not_copied(copied):
    with pytest.raises(SnapshotError, match=r"cannot be copied or pickled\n.*snapshot=\.\."):
        copied(QUERY.recognizer(SCHEMA))
