"""Event times as ISO 8601 text: read by the rules of the command line, whatever holds them."""

from __future__ import annotations

import datetime as dt
import random

import pandas as pd
import pyarrow as pa
import pytest

import cepheid
from cepheid.errors import InputError, SchemaError

QUERY = cepheid.query("SELECT * WHERE A AS x ; B AS y")
PLAIN = ["2024-01-01 10:00", "2024-01-01T10:00:30.5"]
OFFSET = ["2024-01-01T12:00+02:00", "2024-01-01 10:00:30.500Z"]
END = dt.datetime.fromisoformat("2024-01-01T10:00:30.5")


def shapes(times):
    """The same two events in all that holds text."""
    columns = {"type": ["A", "B"], "ts": times}
    table = pa.table(columns)
    typed = [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]
    yield columns
    yield [{"type": kind, "ts": time} for kind, time in zip("AB", times, strict=True)]
    yield table
    yield from (table.set_column(1, "ts", table["ts"].cast(pa.string()).cast(kind)) for kind in typed[:2])
    yield table.set_column(1, "ts", table["ts"].dictionary_encode())
    yield pa.concat_tables([table.slice(0, 1), table.slice(1)])
    yield pd.DataFrame(columns)
    yield table.to_reader(1)
    yield {"S": table}


@pytest.mark.parametrize(("times", "zone"), [(PLAIN, None), (OFFSET, dt.UTC)], ids=["no offset", "offset"])
def test_texts_become_times(times, zone):
    for events in shapes(times):
        (match,) = QUERY.run(events)
        assert (match.end_time, match.end_time.tzinfo is None) == (END.replace(tzinfo=zone), zone is None)
    for events in shapes(times):
        (matches,) = QUERY.batches(events)
        assert matches.to_arrow()["end_time"].type == pa.timestamp("us", "UTC" if zone else None)
    for events in shapes(times):
        assert cepheid.queries({"q": QUERY}).run(events)["q"][0].end_time == END.replace(tzinfo=zone)


def test_days_and_digits():
    assert QUERY.run({"type": ["A", "B"], "ts": ["2024-01-01", "2024-01-02"]})[0].end_time == dt.date(2024, 1, 2)
    fine = QUERY.run({"type": ["A", "B"], "ts": ["2024-01-01 10:00:00", "2024-01-01 10:00:00.000000001"]})
    assert fine.to_arrow()["end_time"].type == pa.timestamp("ns")
    late = QUERY.run({"type": ["A", "B"], "ts": ["2024-01-01", "2024-01-01 10:00"]})
    assert late[0].start_time == dt.datetime(2024, 1, 1)  # noqa: DTZ001 - without zone, as the texts
    assert QUERY.run({"type": ["A", "B"], "at": PLAIN}, time="at")[0].end_time == END
    assert QUERY.run({"type": ["A", "B"], "at": PLAIN})[0].end_time is None


def test_texts_are_sorted_merged_and_cut_as_times():
    columns = {"type": ["B", "A", "B"], "ts": ["2024-01-03 00:00Z", "2024-01-01 23:00-05:00", "2024-01-02 03:00Z"]}
    assert [match.rows for match in QUERY.run(columns, sort=True)] == [{"x": (1,), "y": (0,)}]
    until = dt.datetime(2024, 1, 2, 12, tzinfo=dt.UTC)
    assert len(QUERY.run(columns, sort=True, until=until)) == 0
    streams = {"A": [{"ts": "2024-01-01 10:00"}], "B": pa.table({"ts": [dt.datetime(2024, 1, 1, 11)]})}  # noqa: DTZ001 - without zone
    assert len(QUERY.run(streams)) == 1
    window = cepheid.query("SELECT * WHERE A AS x ; B AS y WITHIN 1 minute")
    assert len(window.run({"type": ["A", "B"], "ts": PLAIN})) == 1


@pytest.mark.parametrize(
    ("times", "row", "reason"),
    [
        ([OFFSET[0], PLAIN[0]], 1, "without an offset, and those before it are with an offset"),
        ([PLAIN[0], OFFSET[0]], 1, "with an offset, and those before it are without an offset"),
        ([PLAIN[0], "soon"], 1, "no time"),
        (["2024-01-01", "x"], 1, "no time"),
        (["2024-02-30 10:00", PLAIN[0]], 0, "no time"),
        ([PLAIN[0], "2024-01-01 25:00"], 1, "no time"),
        (["2024-01-01 10:00:00.123456789", "1066-10-14 09:00"], 1, "no time"),
    ],
)
def test_texts_that_do_not_go_together(times, row, reason):
    for events in ({"type": ["A", "B"], "ts": times}, pa.table({"type": ["A", "B"], "ts": times}).to_reader(1)):
        with pytest.raises(InputError) as error:
            QUERY.run(events)
        assert error.value.fact.startswith(f"row {row}: `ts` is {times[row]!r}, ")
        assert reason in error.value.fact
        assert "ISO 8601" in error.value.help[0]
    with pytest.raises(InputError, match=f"row {row} of the stream `S`"):
        QUERY.run({"S": {"type": ["A", "B"], "ts": times}})


def test_other_texts():
    for times in (["1", "2"], ["soon", "later"]):
        with pytest.raises(SchemaError, match="the time column `ts` is string"):
            QUERY.run({"type": ["A", "B"], "ts": times})
    with pytest.raises(InputError, match="row 1 has no time"):
        QUERY.run({"type": ["A", "B"], "ts": [PLAIN[0], None]})
    with pytest.raises(SchemaError, match="the time column `ts` is string"):
        QUERY.run(pa.table({"type": ["A"], "ts": ["x"]}).slice(0, 0).to_reader())


def test_a_reader_decides_by_its_first_text(seed):
    """The batches before it may have none; what all read is what the whole table says."""
    rng = random.Random(seed)
    start = dt.datetime(2024, 1, 1)  # noqa: DTZ001 - without zone
    times = [(start + dt.timedelta(seconds=second)).isoformat(" ") for second in sorted(rng.sample(range(99), 20))]
    table = pa.table({"type": rng.choices("AB", k=20), "ts": times})
    whole = QUERY.run(table)
    for size in (1, 3, 50):
        batches = [table.slice(0, 0).to_batches(), table.to_batches(max_chunksize=size)]
        reader = pa.RecordBatchReader.from_batches(table.schema, [batch for some in batches for batch in some])
        read = QUERY.run(reader)
        assert list(read) == list(whole)
        assert [match.rows for match in read] == [match.rows for match in whole]
    finer = pa.table({"type": ["A", "B"], "ts": ["2024-01-01 10:00", "2024-01-01 10:00:00.123456789"]})
    assert len(QUERY.run(finer)) == 1
    with pytest.raises(InputError, match="no time") as error:
        QUERY.run(finer.to_reader(1))
    assert "pass reader.read_all()" in error.value.help[-1]


def test_recognizers():
    """Texts go where the schema says timestamp; a schema that says text has no event time."""
    schema = pa.schema([("type", pa.string()), ("ts", pa.timestamp("us"))])
    recognizer = QUERY.recognizer(schema)
    assert len(recognizer.push({"type": "A", "ts": PLAIN[0]})) == 0
    assert len(recognizer.push([{"type": "B", "ts": PLAIN[1]}])) == 1
    with pytest.raises(SchemaError, match=r"`ts` is timestamp\[us, tz=UTC\] in the batch"):
        recognizer.push({"type": "B", "ts": OFFSET[1]})
    with pytest.raises(SchemaError, match="`ts` is string in the batch"):
        recognizer.push({"type": "B", "ts": "soon"})
    with pytest.raises(SchemaError, match="the time column `ts` is string") as error:
        QUERY.recognizer(pa.schema([("type", pa.string()), ("ts", pa.string())]))
    assert "cast" in error.value.help[-1]


def test_days_and_times_are_not_of_one_type():
    day, time = dt.date(2024, 1, 1), dt.datetime.fromisoformat("2024-01-01T20:00:00")
    for times in ([day, time], [time, day]):
        with pytest.raises(SchemaError):
            cepheid.query("SELECT * WHERE A AS x ; B AS y WITHIN 1h").run({"type": ["A", "B"], "ts": times})


def test_a_reader_with_texts_and_batches_without_rows():
    schema = pa.schema([("type", pa.string()), ("ts", pa.string())])
    rows = [[("A", "2024-01-01T00:00Z")], [], [("B", "2024-01-01T00:01Z")], []]
    batches = [pa.record_batch([pa.array([row[place] for row in piece], pa.string()) for place in (0, 1)], schema=schema) for piece in rows]
    assert len(cepheid.query("SELECT * WHERE A ; B WITHIN 1h").run(pa.RecordBatchReader.from_batches(schema, batches))) == 1
