"""What is taken as events: dicts of columns and of streams, files, and frames whose index is the time."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import random
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv, feather

import cepheid
from cepheid.errors import InputError, SchemaError

QUERY = cepheid.query("SELECT * WHERE A AS x ; B AS y")
TABLE = pa.table({"type": ["A", "B", "A", "B"], "ts": [1, 2, 4, 8], "v": [0.5, None, 1.5, 2.5]})
ROWS = [{"x": (0,), "y": (1,)}, {"x": (2,), "y": (3,)}, {"x": (0,), "y": (3,)}]


def rows(matches):
    return sorted((match.rows for match in matches), key=str)


WANTED = sorted(ROWS, key=str)


class Column:
    """A column of a library that only speaks Arrow's protocol and says its type."""

    dtype = "int64"

    def __init__(self, values):
        self._values = pa.chunked_array([values])

    def __len__(self):
        return len(self._values)

    def __arrow_c_stream__(self, requested_schema=None):
        return self._values.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "times",
    [
        [1, 2, 4, 8],
        (1, 2, 4, 8),
        range(1, 9, 2),
        np.array([1, 2, 4, 8]),
        pa.array([1, 2, 4, 8]),
        pa.chunked_array([[1, 2], [4, 8]]),
        pd.Series([1, 2, 4, 8]),
        np.array([1, 2, 4, 8], object),
        pd.date_range("2024-01-01", periods=4),
        np.array([1, 2, 4, 8], "datetime64[s]"),
        Column([1, 2, 4, 8]),
    ],
    ids=lambda values: type(values).__name__,
)
def test_dicts_of_columns(times):
    columns = {"type": list("ABAB"), "ts": times}
    assert rows(QUERY.run(columns)) == WANTED
    assert rows(match for batch in QUERY.batches(columns) for match in batch) == WANTED
    assert rows(cepheid.queries({"q": QUERY}).run(columns)["q"]) == WANTED
    assert rows(QUERY.run(columns, engine="reference")) == WANTED
    assert rows(QUERY.run({"S": columns})) == WANTED


def test_columns_are_the_list_of_dicts(seed, cases):
    """Whatever the values are: the same matches, or the same kind of error."""
    rng = random.Random(f"{seed}/columns")
    values = [None, 1, -7, 2.5, "text", True, dt.date(2024, 1, 1), [1], {"a": 1}, 1 << 63]
    for _ in range(cases):
        few = rng.sample(values, 2)
        events = [{"type": rng.choice("AB"), "ts": time, "v": rng.choice(few)} for time in range(rng.randint(1, 6))]
        columns = {name: [event[name] for event in events] for name in ("type", "ts", "v")}
        answers = []
        for given in (events, columns):
            try:
                answers.append([(match.rows, match["x"]) for match in QUERY.run(given)])
            except cepheid.CepheidError as error:
                answers.append(str(error))
        assert answers[0] == answers[1]


@pytest.mark.parametrize(
    ("events", "error", "fact", "way"),
    [
        ({"type": ["A", "B"], "ts": [1]}, InputError, "`type` has 2 values, and `ts` has 1", "None is NULL"),
        ({"type": "A", "ts": [1]}, InputError, "the column `type` is a str, and the others are lists", "one value for each event"),
        ({"type": ["A"], "ts": 1}, InputError, "the column `ts` is a int", "one value for each event"),
        ({"type": ["A"], "ts": np.int64(1)}, InputError, "the column `ts` is a int64", "one value for each event"),
        ({"type": ["A"], "ts": None}, InputError, "the column `ts` is a NoneType", "one value for each event"),
        ({"type": "A", "ts": 1}, InputError, "it is one event", "pass a list of events"),
        ({"type": ["A", "B"], "ts": np.zeros((2, 2))}, InputError, "cannot hold the column `ts`", "as a pyarrow.Array"),
        ({"type": ["A", "B"], "ts": [1, "a"]}, SchemaError, "the values of `ts` are not of one type", "one type"),
        ({"type": [], "ts": []}, SchemaError, "empty lists say nothing", "an empty pyarrow.Table"),
        ({1: ["A"], "ts": [1]}, SchemaError, "the attribute name 1 is not text", "by a str"),
        ({"A": TABLE, "B": [1, 2]}, InputError, "event 0 of the stream `B` is a int", "columns are all lists or arrays"),
        ({"A": TABLE, "B": 5}, InputError, "the stream `B` cannot be a int", "columns are all lists or arrays"),
        ({"A": [{"ts": 1}], "B": []}, SchemaError, "an empty list says nothing", "an empty pyarrow.Table"),
        ({}, SchemaError, "the input has no streams", "stream name"),
    ],
)
def test_what_is_near_but_wrong(events, error, fact, way):
    with pytest.raises(error) as raised:
        QUERY.run(events)
    assert fact in raised.value.fact
    assert way in " ".join(raised.value.help)


def test_dicts_of_streams_stay_streams():
    own = [{"ts": 1}, {"ts": 5}]
    for streams in ({"A": own, "B": pa.table({"ts": [2]})}, {"A": own, "B": [{"ts": 2}]}, {"A": own, "B": iter([{"ts": 2}])}):
        matches = QUERY.run(streams)
        assert [(match.rows, match.streams) for match in matches] == [({"x": (0,), "y": (0,)}, {"x": ("A",), "y": ("B",)})]
    # A column may be of dicts, where another one is not.
    nested = cepheid.query("SELECT * WHERE A AS x FILTER x.own.a = 2").run({"type": ["A", "A"], "own": [{"a": 1}, {"a": 2}]})
    assert rows(nested) == [{"x": (1,)}]


# ---------------------------------------------------------------------------------------------------------------------------- files


def written(folder, ending):
    path = folder / f"events{ending}"
    if ending == ".parquet":
        pq.write_table(TABLE, path, row_group_size=3)
    elif ending == ".csv":
        csv.write_csv(TABLE, path)
    elif ending == ".tsv":
        csv.write_csv(TABLE, path, csv.WriteOptions(delimiter="\t"))
    elif ending == ".jsonl.gz":
        path.write_bytes(gzip.compress("\n".join(map(json.dumps, TABLE.to_pylist())).encode()))
    elif ending == ".feather":
        feather.write_feather(TABLE, path)
    else:
        kind = pa.ipc.new_stream if ending == ".arrows" else pa.ipc.new_file
        with kind(path, TABLE.schema) as writer:
            writer.write_table(TABLE, max_chunksize=3)
    return path


@pytest.mark.parametrize("ending", [".parquet", ".arrow", ".ipc", ".feather", ".arrows", ".csv", ".tsv", ".jsonl.gz"])
def test_files(ending, tmp_path):
    path = written(tmp_path, ending)
    for given in (path, str(path)):
        assert rows(QUERY.run(given)) == WANTED
        assert rows(match for batch in QUERY.batches(given) for match in batch) == WANTED
        assert rows(QUERY.run(given, sort=True)) == WANTED
        assert rows(cepheid.queries({"q": QUERY, "r": "SELECT * WHERE A"}).run(given)["q"]) == WANTED
        assert len(QUERY.run({"one": given, "two": TABLE})) == 4 * len(ROWS)
    assert rows(QUERY.run(f"{tmp_path}/e*{ending}")) == WANTED
    recognizer = QUERY.recognizer(path)
    assert [match.variables for match in recognizer.push(path)] == [match.variables for match in QUERY.run(TABLE)]


def test_files_that_cannot_be_read(tmp_path):
    good = written(tmp_path, ".parquet")
    (tmp_path / "cut.parquet").write_bytes(good.read_bytes()[:-9])
    (tmp_path / "cut.arrow").write_bytes(b"ARROW1")
    (tmp_path / "cut.arrows").write_bytes(b"ARROW1\0\0\xff\xff")
    (tmp_path / "empty.arrows").write_bytes(b"")
    (tmp_path / "cut.csv").write_text("type,ts\nA,1\nB,2,3\n")
    (tmp_path / "cut.jsonl").write_text('{"type": "A"}\n{"type": \n')
    (tmp_path / "header.csv").write_text("type,ts\n")
    (tmp_path / "table.xlsx").write_bytes(b"PK")
    wrong = {
        "event.parquet": ("there is no file", f"did you mean {good}?"),
        "nothing/here.parquet": ("there is no file", ""),
        "cut.parquet": ("cut.parquet cannot be read as Parquet", "was it written completely"),
        "cut.arrow": ("cut.arrow cannot be read as Arrow", "was it written completely"),
        "cut.arrows": ("cut.arrows is no Arrow stream", "its name has to end in .arrow"),
        "empty.arrows": ("empty.arrows is empty", ""),
        "cut.csv": ("cut.csv, row 3: 3 values where the header has 2", "the header is row 1"),
        "cut.jsonl": ("cut.jsonl, line 2", ""),
        "events.xlsx": ("there is no file", ""),
        "table.xlsx": ("files of events do not end in .xlsx", ".parquet"),
        "*.avro": ("no file matches", ""),
        "header.csv": ("header.csv has a header and no events", "pyarrow.Table"),
        "": ("is a directory", "*.csv"),
    }
    for name, (fact, way) in wrong.items():
        for given in (tmp_path / name, str(tmp_path / name)):
            with pytest.raises(InputError) as raised:
                QUERY.run(given)
            assert fact in raised.value.fact
            assert way in " ".join(raised.value.help)
    with pytest.raises(InputError, match="is an address"):
        QUERY.run("s3://logs/events.csv")
    with pytest.raises(InputError, match="events cannot be a str"):
        QUERY.run("A1 B2 C3")


def test_a_damaged_file_says_so_where_it_is_read(tmp_path):
    path = tmp_path / "events.parquet"
    pq.write_table(pa.table({"type": ["A"] * 9999, "ts": range(9999)}), path)
    content = bytearray(path.read_bytes())
    content[4:60] = b"\xff" * 56
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"events\.parquet cannot be read"):
        QUERY.run(Path(path))


# --------------------------------------------------------------------------------------------------------------------------- frames


def frame(**index):
    return pd.DataFrame({"type": ["A", "B"]}, index=pd.date_range("2024-01-01", periods=2, **index))


def test_the_index_of_a_frame_is_the_time():
    for events, options in ((frame(), {}), (frame(name="when"), {}), (frame(), {"time": "at"}), (frame(name="at"), {"time": "at"})):
        (match,) = QUERY.run(events, **options)
        assert match.end_time == dt.datetime.fromisoformat("2024-01-02")
        assert options.get("time", "ts") in match["x"][0]
        schema = QUERY.schema(events, **options)
        recognizer = QUERY.recognizer(schema)
        assert len(recognizer.push(events)) == 1
        assert schema.time_column == options.get("time", "ts")
    (match,) = QUERY.run(frame(tz="Europe/Berlin"))
    assert match.end_time == dt.datetime.fromisoformat("2024-01-01T23:00Z")
    assert len(QUERY.run({"one": frame(), "two": frame()})) == 4
    assert rows(QUERY.run(frame()[::-1], sort=True)) == [{"x": (1,), "y": (0,)}]


def test_another_index_is_not():
    numbered = pd.DataFrame({"type": ["A", "B"]}, index=[5, 1])
    assert QUERY.run(numbered)[0].end_time is None
    columned = frame().assign(ts=[7, 8])
    assert QUERY.run(columned)[0].end_time == 8
    with pytest.raises(SchemaError, match="the input has no time column `then`"):
        QUERY.run(frame(name="when"), time="then")
    with pytest.raises(SchemaError, match="the DataFrame has more than one column named `ts`"):
        QUERY.run(frame(name="ts").assign(ts=[7, 8]))
    with pytest.raises(InputError, match="row 1 has no time"):
        QUERY.run(pd.DataFrame({"type": ["A", "B"]}, index=pd.DatetimeIndex(["2024-01-01", None])))


def test_what_has_a_name_in_an_index_is_an_attribute():
    events = pd.DataFrame({"type": ["A", "B"], "ts": [1, 2], "k": ["u", "u"]})
    of_key = cepheid.query("SELECT * WHERE A AS x ; B AS y PARTITION BY k")
    for names in (["ts"], ["k"], ["type", "ts"], ["k", "type", "ts"]):
        (match,) = of_key.run(events.set_index(names))
        assert (match.start_time, match.end_time, match["x"][0]) == (1, 2, {"type": "A", "ts": 1, "k": "u"})
    assert set(QUERY.run(events.rename_axis("k"))[0]["x"][0]) == {"type", "ts", "k"}, "a column comes first"
    days = pd.DataFrame({"type": ["A", "B"]}, index=["2024-01-01", "2024-01-02"])
    with pytest.raises(SchemaError, match="the DataFrame has no column `day`, and its index has no name") as error:
        QUERY.run(days, time="day")
    assert error.value.help == ("if that is the time: frame.rename_axis('day')",)
    assert QUERY.run(days.rename_axis("day"), time="day")[0].end_time == dt.date(2024, 1, 2)


def test_parts_of_a_frame_are_no_events():
    for part in (frame()["type"], frame().to_numpy(), frame().groupby("type")):
        with pytest.raises(InputError, match=f"events cannot be a {type(part).__name__}") as error:
            QUERY.run(part)
        assert "a DataFrame" in error.value.help[0]


def test_sort_is_no_name():
    with pytest.raises(InputError, match="sort='ts' is not True or False"):
        QUERY.run(frame(), sort="ts")
    with pytest.raises(
        SchemaError, match="cannot be read as Arrow: Could not convert 'x' with type str: tried to convert to int64; Conversion failed"
    ):
        QUERY.run(frame().assign(v=[1, "x"]))


def test_a_name_is_no_number_of_a_match():
    with pytest.raises(TypeError, match=r"matches\[0\]\['x'\], or matches\.to_pandas\(\)\['x'\]"):
        QUERY.run(frame())["x"]


def test_nan_beside_texts_says_what_to_write():
    with pytest.raises(SchemaError) as error:
        cepheid.query("SELECT * WHERE A").run([{"type": "A", "ts": 1, "s": "ok"}, {"type": "A", "ts": 2, "s": float("nan")}])
    assert error.value.help[0].startswith("nan is a number: write None")


def test_to_pandas_has_the_forms_of_to_arrow():
    matches = cepheid.query("SELECT * WHERE A AS x PARTITION BY k").run({"type": ["A", "A"], "ts": [1, 2], "k": [1, 2]})
    assert [list(rows) for rows in matches.to_pandas(rows=True)["x"]] == [[0], [1]]
    assert [events[0]["ts"] for events in matches.to_pandas(events=True)["x"]] == [1, 2]
