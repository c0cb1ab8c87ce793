"""Inputs that are wrong, empty or unusual: each has one exact behaviour."""

from __future__ import annotations

import datetime as dt
import importlib
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import cepheid
from cepheid.engine.output.matches import python_value
from cepheid.errors import BindError, InputError, LimitError, SchemaError, SetupError

QUERY = cepheid.query("SELECT * WHERE A ; B WITHIN 10")


def rows(text="A1 B2 A3 B4"):
    return [{"type": word[0], "ts": int(word[1:])} for word in text.split()]


def ends(matches):
    return [(match.start, match.end) for match in matches]


def message(error):
    return str(error.value).splitlines()


def test_missing_type_column():
    with pytest.raises(SchemaError) as error:
        QUERY.run(pa.table({"ts": [1, 2]}))
    assert message(error) == [
        "error: the query names the event types `A`, `B`, and the input has no column `type`",
        "help: name the column that has the type of each event with type=: the input has `ts`",
    ]
    with pytest.raises(SchemaError) as error:
        cepheid.query("SELECT * WHERE A").run(pa.table({"ts": [1, 2]}))
    assert message(error) == [
        "error: the query names the event type `A`, and the input has no column `type`",
        "help: name the column that has the type of each event with type=: the input has `ts`",
        "help: if all events are of the type `A`, write FROM A in the query",
    ]
    assert len(cepheid.query("SELECT * FROM A WHERE A").run(pa.table({"ts": [1, 2]}))) == 2
    with pytest.raises(SchemaError, match="the input has no type column `kind`"):
        QUERY.run(rows(), type="kind")


def test_missing_time_column():
    with pytest.raises(SchemaError) as error:
        QUERY.run(rows(), time="tx")
    assert message(error) == ["error: the input has no time column `tx`", "help: name it with time=: the input has `type`, `ts`"]
    late = pa.table({"type": ["A"], "when": pa.array([1], pa.timestamp("us"))})
    with pytest.raises(SchemaError, match=r"name it with time='when': the input has `type`, `when`"):
        QUERY.run(late, time="ts")
    with pytest.raises(BindError, match="time window needs a time column"):
        QUERY.run([{"type": "A"}])


def test_without_time_column_positions_are_enough():
    matches = cepheid.query("SELECT * WHERE A ; B WITHIN 2 EVENTS").run([{"type": "A"}, {"type": "B"}])
    assert ends(matches) == [(0, 1)]
    assert matches[0].start_time is None
    assert matches.to_arrow().column_names == ["start_position", "end_position", "A", "B"]


@pytest.mark.parametrize("kind", [pa.float64(), pa.string(), pa.decimal128(10, 2), pa.bool_(), pa.uint64()])
def test_time_of_a_wrong_type(kind):
    for events in ({}, {"one": None}):
        table = pa.table({"type": ["A"], "when": pa.array([None], kind)})
        with pytest.raises(SchemaError) as error:
            QUERY.run(dict.fromkeys(events, table) or table, time="when")
        assert error.value.fact == f"the time column `when` is {kind}, which cannot be event time"
        assert error.value.help[-1].startswith("cast it")


def test_type_of_a_wrong_type():
    with pytest.raises(SchemaError, match="the type column `type` is int64, not text"):
        QUERY.run(pa.table({"type": [1], "ts": [1]}))


@pytest.mark.parametrize("engine", [None, "reference"])
def test_columns_without_values(engine):
    """As an empty DataFrame has them, and a list of dicts with None alone: no event has a type, and the key is NULL."""
    events = pa.table({"type": ["A", "B", "A", "B"], "ts": [1, 2, 3, 4], "key": pa.nulls(4)})
    for key in (events["key"], events["key"].combine_chunks().dictionary_encode()):
        table = events.set_column(2, "key", key)
        keyed = cepheid.query("SELECT * WHERE A ; B PARTITION BY key")
        dropped = keyed.run(table, engine=engine)
        assert (len(dropped), dropped.null_keys) == (0, 4)
        grouped = keyed.run(table, null_keys="group", engine=engine)
        assert (sorted(ends(grouped)), grouped.null_keys) == ([(0, 1), (0, 3), (2, 3)], 0)
    untyped = events.set_column(0, "type", pa.nulls(4))
    for streams in (untyped, untyped.slice(0, 0), {"one": untyped}):
        assert len(QUERY.run(streams, engine=engine)) == 0
    assert len(QUERY.run({"one": untyped, "two": events}, engine=engine)) == 3
    assert len(cepheid.query("SELECT * WHERE ANY : ANY").run(untyped, engine=engine)) == 3


def test_a_key_without_values_goes_through_snapshots():
    events = pa.table({"type": ["A", "B", "A", "B"], "ts": [1, 2, 3, 4], "key": pa.nulls(4)})
    keyed = cepheid.query("SELECT * WHERE A ; B PARTITION BY key")
    first = keyed.recognizer(events.schema, null_keys="group")
    found = len(first.push(events.slice(0, 3)))
    assert found + len(keyed.recognizer(events.schema, null_keys="group", snapshot=first.snapshot()).push(events.slice(3))) == 3


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (
            pa.timestamp("us", "UTC"),
            "row 0 (1970-01-01 00:00:00.000003+00:00) is earlier than an event that came before (1970-01-01 00:00:00.000005",
        ),
        (pa.date32(), "row 0 (1970-01-04) is earlier than an event that came before (1970-01-06)"),
        (pa.int16(), "row 0 (3) is earlier than an event that came before (5)"),
    ],
)
def test_an_event_before_those_of_earlier_batches(kind, said):
    first, second = (pa.table({"type": ["A"], "ts": pa.array([time], kind)}) for time in (5, 3))
    recognizer = cepheid.query("SELECT * WHERE A ; B").recognizer(first.schema)
    recognizer.push(first)
    with pytest.raises(InputError) as error:
        recognizer.push(second)
    assert said in error.value.fact


def test_null_times_name_the_first_row():
    with pytest.raises(InputError) as error:
        QUERY.run(pa.table({"type": ["A", "B", "A"], "ts": [1, None, None]}))
    assert message(error) == [
        "error: row 1 has no time: `ts` is NULL (2 of 3 rows)",
        "help: leave these rows out before, or give them a time",
    ]


def test_unsorted_input_is_an_error_unless_sorting_is_asked_for():
    events = rows("A1 B5 A3 B4")
    with pytest.raises(InputError) as error:
        QUERY.run(events)
    assert message(error) == [
        "error: the events are not in the order of their times: row 2 (3) is earlier than row 1 (5)",
        "help: q.run(.., sort=True) sorts them, stably",
    ]
    matches = QUERY.run(events, sort=True)
    assert ends(matches) == [(1, 2), (0, 2), (1, 3), (0, 3)]
    assert matches[0]["B"] == [{"type": "B", "ts": 4}]
    assert ends(QUERY.run(events, sort=True, engine="reference")) == [(0, 2), (1, 2), (0, 3), (1, 3)]


def test_sorting_is_stable_also_in_partitions():
    events = [{"type": kind, "ts": time, "k": key} for kind, time, key in [("B", 2, 1), ("A", 1, 1), ("A", 2, 2), ("B", 2, 2), ("A", 2, 1)]]
    query = cepheid.query("SELECT * WHERE A ; B PARTITION BY k")
    matches = query.run(events, sort=True)
    assert [(match.keys, match.start, match.end) for match in matches] == [({"k": 1}, 0, 1), ({"k": 2}, 0, 1)]
    assert [match["B"][0]["k"] for match in matches] == [1, 2]


def test_order_decides_ties():
    events = [{"type": "B", "ts": 1, "n": 2}, {"type": "A", "ts": 1, "n": 1}, {"type": "B", "ts": 1, "n": 3}]
    assert ends(QUERY.run(events)) == [(1, 2)]
    assert ends(QUERY.run(events, order="n")) == [(0, 1), (0, 2)]
    with pytest.raises(SchemaError, match="no column `m` to order by"):
        QUERY.run(events, order=("m",))


def test_empty_tables_and_no_matches():
    schema = pa.schema([("type", pa.string()), ("ts", pa.int64())])
    for events in (schema.empty_table(), pa.table({"type": ["A", "A"], "ts": [1, 2]}), pa.RecordBatchReader.from_batches(schema, [])):
        matches = QUERY.run(events)
        assert len(matches) == 0
        assert list(matches) == []
        assert matches.to_arrow().schema == QUERY.output_schema(schema)
        assert matches.to_arrow(events=True).schema == QUERY.output_schema(schema, events=True)
        assert repr(matches).splitlines() == ["0 matches", *(f"warning: {warning}" for warning in matches.warnings)]
    by_key = cepheid.query("SELECT * WHERE A ; B PARTITION BY k")
    empty = pa.schema([*schema, ("k", pa.string())]).empty_table()
    assert by_key.run(empty).to_arrow().schema == by_key.output_schema(empty.schema)
    assert len(by_key.run(empty, engine="reference")) == 0


def test_empty_list_has_no_schema():
    with pytest.raises(SchemaError, match="an empty list says nothing about its attributes"):
        QUERY.run([])


def test_lists_of_something_else():
    with pytest.raises(InputError, match="event 1 of the list is a int, not a dict"):
        QUERY.run([{"type": "A", "ts": 1}, 2])
    with pytest.raises(InputError, match="events cannot be a str"):
        QUERY.run("A1 B2")
    with pytest.raises(InputError, match="events cannot be a NoneType"):
        QUERY.run(None)
    with pytest.raises(SchemaError, match="the values of `ts` are not of one type"):
        QUERY.run([{"type": "A", "ts": 1}, {"type": "A", "ts": "late"}])
    noon = dt.datetime.fromisoformat("2024-01-01 12:00")
    with pytest.raises(SchemaError, match="some values of `ts` have a time zone and some have none"):
        QUERY.run([{"type": "A", "ts": noon}, {"type": "A", "ts": noon.replace(tzinfo=dt.UTC)}])


def test_missing_attributes_of_dicts_are_null():
    query = cepheid.query("SELECT * WHERE A AS x FILTER x.v IS NULL")
    assert ends(query.run([{"type": "A", "ts": 1}, {"type": "A", "ts": 2, "v": 1}])) == [(0, 0)]


@pytest.mark.parametrize(
    "encode",
    [
        lambda t: t,
        lambda t: pa.concat_tables([t.slice(0, 1), t.slice(1, 0), t.slice(1)]),
        lambda t: t.set_column(0, "type", t["type"].dictionary_encode()),
        lambda t: pa.concat_tables([t.slice(0, 3), t.slice(3)]).set_column(
            0,
            "type",
            pa.chunked_array(
                [t["type"].slice(0, 3).combine_chunks().dictionary_encode(), t["type"].slice(3).combine_chunks().dictionary_encode()]
            ),
        ),
        lambda t: t.cast(pa.schema([("type", pa.large_string()), ("ts", pa.int32()), ("k", pa.dictionary(pa.int8(), pa.large_string()))])),
        lambda t: t.cast(pa.schema([("type", pa.string_view()), ("ts", pa.uint32()), ("k", pa.string())])),
        lambda t: t.to_batches()[0],
        lambda t: t.to_reader(max_chunksize=2),
        lambda t: t.to_pandas(),
        lambda t: t.to_pylist(),
        lambda t: type(
            "Stream", (), {"__arrow_c_stream__": staticmethod(lambda requested_schema=None: t.__arrow_c_stream__(requested_schema))}
        )(),
        lambda t: {"one": t},
    ],
)
def test_every_encoding_and_container_gives_the_same(encode):
    events = pa.table({"type": list("AABBAB"), "ts": range(6), "k": ["u", "v", "u", "v", None, "u"]})
    query = cepheid.query("SELECT * WHERE A ; B PARTITION BY k WITHIN 10")
    matches = query.run(encode(events))
    assert [(match.keys["k"], match.start, match.end) for match in matches] == [("u", 0, 1), ("v", 0, 1), ("u", 0, 2)]
    assert matches.null_keys == 1
    assert matches[1]["B"][0]["ts"] == 3
    assert matches.to_arrow(events=True)["A"][2].as_py()[0]["ts"] == 0


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
def test_timestamps_of_any_unit_and_zone(unit, zone):
    kind = pa.timestamp(unit, zone)
    times = [dt.datetime(2013, 3, 10, 6, 59, 55, tzinfo=dt.UTC), dt.datetime(2013, 3, 10, 7, 0, 4, tzinfo=dt.UTC)]
    times = times if zone else [time.replace(tzinfo=None) for time in times]
    events = pa.table({"type": ["A", "B"], "ts": pa.array(times, kind)})
    assert len(cepheid.query("SELECT * WHERE A ; B WITHIN 8 seconds").run(events)) == 0
    (match,) = cepheid.query("SELECT * WHERE A ; B WITHIN 9 seconds").run(events)
    assert match.start_time == times[0]
    assert (match.start_time.tzinfo is not None) is (zone is not None)
    assert cepheid.query("SELECT * WHERE A ; B").run(events).to_arrow()["start_time"].type == kind


def test_nanoseconds_without_pandas():
    events = pa.table({"type": ["A", "B"], "ts": pa.array([1_001, 2_002], pa.timestamp("ns"))})
    (match,) = cepheid.query("SELECT * WHERE A ; B").run(events)
    assert match.start_time == pd.Timestamp(1_001)

    class Scalar:
        type = pa.timestamp("ns")

        def as_py(self):
            raise ValueError("Nanosecond resolution temporal type 1001 is not safely convertible")

        def cast(self, kind, safe):
            return pa.scalar(1_001, pa.timestamp("ns")).cast(kind, safe=safe)

    assert python_value(Scalar()) == dt.datetime(1970, 1, 1, 0, 0, 0, 1)  # noqa: DTZ001 - a time without zone


def test_dates_as_event_time():
    events = pa.table({"type": ["A", "B"], "ts": pa.array([dt.date(2024, 2, 28), dt.date(2024, 3, 1)])})
    assert len(cepheid.query("SELECT * WHERE A ; B WITHIN 1 day").run(events)) == 0
    (match,) = cepheid.query("SELECT * WHERE A ; B WITHIN 2 days").run(events)
    assert (match.start_time, match.end_time) == (dt.date(2024, 2, 28), dt.date(2024, 3, 1))


def test_pandas_index_is_no_attribute():
    frame = pd.DataFrame(rows()).set_index(pd.Index([7, 7, 7, 7]))
    assert set(QUERY.run(frame)[0]["A"][0]) == {"type", "ts"}


def test_doubled_columns():
    with pytest.raises(SchemaError, match="more than one column named `ts`"):
        QUERY.run(pa.table([["A"], [1], [2]], names=["type", "ts", "ts"]))


def test_colliding_output_names_say_the_rename():
    with pytest.raises(BindError, match="two columns named `end_time`") as error:
        cepheid.query("SELECT * WHERE A AS end_time ; B").run(rows())
    assert message(error)[-1] == "help: rename this one: AS end_time_2"
    assert cepheid.query("SELECT * WHERE A AS start ; B AS `end`").run(rows()).to_arrow().column_names[-2:] == ["start", "end"]


def test_options_that_are_not_known():
    with pytest.raises(InputError, match="engine='refrence' is not known"):
        QUERY.run(rows(), engine="refrence")
    with pytest.raises(InputError, match="null_keys='keep' is not known"):
        QUERY.run(rows(), null_keys="keep")
    with pytest.raises(InputError, match="'soon' is not a time of the column `ts`"):
        QUERY.run(rows(), until="soon")


@pytest.mark.parametrize("kind", [pa.string(), pa.int8(), pa.float64(), pa.bool_(), pa.date32(), pa.decimal128(5, 2), pa.timestamp("ms")])
def test_keys_of_any_flat_type(kind):
    values = pa.array([1, 0, 1, 0, None, 1], pa.int8())
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        values = values.cast(pa.int32() if pa.types.is_date(kind) else pa.int64())
    keys = values.cast(kind)
    events = pa.table({"type": list("AABBAB"), "ts": range(6), "k": keys})
    for encoded in (events, events.set_column(2, "k", keys.dictionary_encode())):
        matches = cepheid.query("SELECT * WHERE A ; B PARTITION BY k").run(encoded)
        assert ends(matches) == [(0, 1), (0, 1), (0, 2)]
        assert [match.keys["k"] for match in matches] == [keys[row].as_py() for row in (2, 3, 5)]


def test_an_engine_that_is_not_installed(monkeypatch):
    monkeypatch.setattr(importlib.import_module("cepheid.arguments"), "available", lambda: ("python",))
    for run in (QUERY.run, lambda events, engine: QUERY.recognizer(pa.Table.from_pylist(events).schema, engine=engine)):
        with pytest.raises(SetupError) as error:
            run(rows(), engine="checked")
        assert message(error) == [
            "error: engine='checked' is not in this installation",
            "help: it has 'python' and 'reference'; leave engine= out for the best one",
        ]
    assert ends(QUERY.run(rows(), engine="python")) == ends(QUERY.run(rows()))


def test_null_and_nan_keys():
    events = pa.table({"type": list("AABBAB"), "ts": range(6), "k": pa.array([0.0, float("nan"), -0.0, None, float("nan"), 1.0])})
    query = cepheid.query("SELECT * WHERE A ; B PARTITION BY k")
    matches = query.run(events)
    assert [match.keys for match in matches] == [{"k": 0.0}]
    assert matches.null_keys == 3
    encoded = events.set_column(2, "k", events["k"].dictionary_encode())
    assert (list(query.run(encoded)), query.run(encoded).null_keys) == (list(matches), 3)
    assert repr(matches).startswith("1 match (events without a key: 3)\n")
    grouped = query.run(events, null_keys="group")
    assert [(match.start, match.end) for match in grouped] == [(0, 1), (0, 1)]
    assert grouped.null_keys == 0
    assert ends(query.run(events.to_reader(max_chunksize=1), null_keys="group")) == [(0, 1), (0, 1)]


def test_two_keys():
    events = pa.table({"type": list("AABBB"), "ts": range(5), "k": [1, 1, 1, 2, 1], "j": ["a", "b", "b", "a", "a"]})
    matches = cepheid.query("SELECT * WHERE A ; B PARTITION BY k, j").run(events)
    assert [match.keys for match in matches] == [{"k": 1, "j": "b"}, {"k": 1, "j": "a"}]


# --------------------------------------------------------------------------------------------------------------- several streams

FLIGHTS = pa.table({"ts": [2, 4, 9], "tail": ["x", "y", None]})
WEATHER = pa.table({"ts": [2, 9], "gust": [50.0, None]})
MERGED = cepheid.query("SELECT * FROM weather, flights WHERE weather ; flights")


def test_streams_whose_numbers_do_not_go_together():
    fractions = pa.array([Decimal("0.1")], pa.decimal256(76, 76))
    query = cepheid.query("SELECT * FROM a, b WHERE a AS x ; b AS y")
    with pytest.raises(SchemaError, match=r"`v` is decimal256\(76, 76\) in the stream `a` and int64 in `b`"):
        query.run({"a": pa.table({"ts": [1], "v": fractions}), "b": pa.table({"ts": [2], "v": [3]})})
    few = pa.array([Decimal("1.1")], pa.decimal128(5, 1))
    (match,) = query.run({"a": pa.table({"ts": [1], "v": few}), "b": pa.table({"ts": [2], "v": [-(1 << 63)]})})
    assert (match["x"][0]["v"], match["y"][0]["v"]) == (Decimal("1.1"), Decimal(-(1 << 63)))


def test_streams_merge_by_time_and_ties_follow_from():
    matches = MERGED.run({"flights": FLIGHTS, "weather": WEATHER})
    assert [(match.start_time, match.end_time) for match in matches] == [(2, 2), (2, 4), (9, 9), (2, 9)]
    assert matches[0]["flights"] == [{"ts": 2, "gust": None, "type": "flights", "tail": "x"}]
    by_definition = MERGED.run({"flights": FLIGHTS, "weather": WEATHER}, engine="reference")
    assert sorted(map(repr, by_definition)) == sorted(map(repr, matches))


def test_streams_without_from_keep_the_order_of_the_mapping():
    query = cepheid.query("SELECT * WHERE flights ; weather")
    assert len(query.run({"flights": FLIGHTS, "weather": WEATHER})) == 4
    assert len(query.run({"weather": WEATHER, "flights": FLIGHTS})) == 2


def test_streams_keep_types_of_their_own():
    one = pa.table({"ts": [1], "type": ["A"]})
    two = pa.table({"ts": [2], "type": ["B"]})
    assert len(QUERY.run({"one": one, "two": two})) == 1
    # The name of a stream is the type of its events where the query uses it; its own column `type` is an attribute then.
    query = cepheid.query("SELECT * FROM one, two WHERE one AS x ; two FILTER x.type = 'A'")
    (match,) = query.run({"one": one, "two": two})
    assert match["x"] == [{"ts": 1, "type": "A"}]


def test_bad_streams():
    with pytest.raises(SchemaError, match="the query reads the stream `weather`, and the input has no such stream"):
        MERGED.run({"flights": FLIGHTS, "wether": WEATHER})
    with pytest.raises(SchemaError) as error:
        MERGED.run({"flights": FLIGHTS, "weather": WEATHER.append_column("tail", pa.array([1, 2]))})
    assert message(error)[0] == "error: `tail` is int64 in the stream `weather` and string in `flights`"
    with pytest.raises(SchemaError, match="the stream `weather` has no time column `ts`"):
        MERGED.run({"flights": FLIGHTS, "weather": WEATHER.rename_columns(["when", "gust"])})
    timed = pa.table({"tags": [1], "at": pa.array([1], pa.timestamp("us"))})
    for weather, cure in ((timed, "'at', a timestamp in all of them"), (timed.rename_columns(["tags", "tss"]), "; did you mean `tss`?")):
        with pytest.raises(SchemaError) as error:
            MERGED.run({"flights": timed, "weather": weather})
        assert error.value.help[0] == f"streams are merged by event time: name its column with time={cure}"
    with pytest.raises(InputError, match="row 2 of the stream `flights`"):
        MERGED.run({"flights": FLIGHTS.set_column(0, "ts", pa.array([2, 4, 3])), "weather": WEATHER})
    assert len(MERGED.run({"flights": FLIGHTS.set_column(0, "ts", pa.array([2, 4, 3])), "weather": WEATHER}, sort=True)) == 3
    with pytest.raises(InputError, match="row 1 of the stream `weather` has no time"):
        MERGED.run({"flights": FLIGHTS, "weather": WEATHER.set_column(0, "ts", pa.array([2, None]))})
    with pytest.raises(SchemaError, match="the input has no streams"):
        QUERY.run({})


def test_times_of_different_units_meet_in_the_finer_one():
    flights = FLIGHTS.set_column(0, "ts", FLIGHTS["ts"].cast(pa.timestamp("s")))
    weather = WEATHER.set_column(0, "ts", pa.array([2000, 3500], pa.timestamp("ms")))
    assert len(MERGED.run({"flights": flights, "weather": weather})) == 5
    with pytest.raises(SchemaError, match="`ts` is"):
        MERGED.run({"flights": flights, "weather": WEATHER.set_column(0, "ts", pa.array([2, 9], pa.timestamp("s", "UTC")))})


# ----------------------------------------------------------------------------------------------------------- by the definition


def test_reference_engine_has_the_rest():
    events = rows("A1 A2 B3 A4 B9")
    assert ends(cepheid.query("SELECT LAST * WHERE A ; B").run(events, engine="reference")) == [(1, 2), (3, 4)]
    counted = cepheid.query("SELECT COUNT(*) WHERE A ; B").run(events, engine="reference")
    assert counted.to_arrow()["count"].to_pylist() == [2, 3]
    measured = cepheid.query("SELECT count(x) AS n, duration() AS d WHERE A AS x ; B").run(events, engine="reference")
    assert measured.to_arrow().select(["n", "d"]).to_pylist()[0] == {"n": 1, "d": 2}
    assert measured[0].measures == {"n": 1, "d": 2}
    absence = cepheid.query("SELECT * WHERE A NOT FOLLOWED BY B FOR 3")
    assert ends(absence.run(events, engine="reference", until=20)) == ends(absence.run(events, engine="reference")) == [(3, 3)]
    waiting = absence.run(rows("A1"), engine="reference")
    assert (len(waiting), len(waiting.undecided), repr(waiting).splitlines()[0]) == (0, 1, "0 matches (undecided: 1)")
    assert len(absence.run(rows("A1"), engine="reference", until="end")) == 1
    with pytest.raises(InputError, match="'soon' is not a time of the column `ts`"):
        absence.run(rows("A1"), engine="reference", until="soon")


@pytest.mark.parametrize("engine", [None, "reference"])
def test_a_date64_within_a_day(engine):
    halves = pa.Array.from_buffers(pa.date64(), 2, [None, pa.py_buffer(np.array([0, 43_200_000]).tobytes())])
    with pytest.raises(InputError, match="row 1 has a time within a day, which a date64 cannot have"):
        cepheid.query("SELECT * WHERE A THEN B").run(pa.table({"type": ["A", "B"], "ts": halves}), engine=engine)


def test_reference_engine_has_a_limit():
    with pytest.raises(LimitError, match="10001 events are more than 10000"):
        QUERY.run(pa.table({"type": ["A"] * 10_001, "ts": range(10_001)}), engine="reference")
