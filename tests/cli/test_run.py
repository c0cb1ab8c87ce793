"""`cepheid run`: files in, matches out, and every way in which files can be wrong."""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import importlib
import itertools
import json
import math
import os
import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

import cepheid
from cepheid.cli import files, progress, results
from cepheid.cli.app import app
from cepheid.cli.run import unmet_types
from cepheid.engine.evaluations import base as running
from cepheid.engine.evaluations import progress as within
from cepheid.engine.input.files import csvs, jsonlines
from cepheid.engine.input.files.streams import read
from cepheid.engine.input.sources import source_of
from cepheid.logical import plan as logical

FIRE = "SELECT * WHERE Temperature AS t ; Humidity AS h FILTER t[value > 40] AND h[value < 25] PARTITION BY sensor WITHIN 1 minute"
READINGS = """\
type,ts,sensor,value
Temperature,2026-01-01T10:00:00Z,1,45.0
Humidity,2026-01-01T10:00:20Z,2,60.0
Humidity,2026-01-01T10:00:50Z,1,20.0
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("fire.ceql").write_text(FIRE, encoding="utf-8")
    Path("readings.csv").write_text(READINGS, encoding="utf-8")


def call(*arguments: str, stdin: str | bytes | None = None) -> Result:
    result = CliRunner().invoke(app, list(arguments), input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def mistake(*arguments: str) -> str:
    """The message of a command that must fail as a user's mistake, with nothing on the standard output."""
    result = call(*arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "Traceback" not in result.stderr
    return result.stderr


def rows(*arguments: str) -> list[dict[str, object]]:
    result = call("run", *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


# ---------------------------------------------------------------------------------------------------------------------------- output


@pytest.mark.parametrize("options", [[], ["--json"], ["-o", "out.jsonl"], ["--engine", "reference"]])
def test_warnings_come_before_the_run(options: list[str]) -> None:
    result = call("run", "-e", "SELECT * WHERE Temperature AS t ; Humidity AS h", "readings.csv", "--no-progress", *options)
    assert result.exit_code == 0
    assert result.stderr.startswith("warning: no window bounds the pattern in time: ")
    assert "warning" not in result.stdout


@pytest.mark.parametrize("rows", [0, 70_000])
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_events_of_equal_times_are_said(rows: int, options: list[str]) -> None:
    """As `Query.run` says it of the table; also far into a file, which is read in pieces."""
    lines = [*(f"X,{time}" for time in range(rows)), f"A,{rows}", f"B,{rows}"]
    Path("tied.csv").write_text("\n".join(["type,ts", *lines, ""]), encoding="utf-8")
    asked = ["run", "-e", "SELECT * WHERE A ; B WITHIN 9", "tied.csv", "--no-progress", *options]
    (warning,) = cepheid.query("SELECT * WHERE A ; B WITHIN 9").run(pa.table({"type": ["A", "B"], "ts": [rows, rows]})).warnings
    assert warning in " ".join(call(*asked).stderr.split())
    assert "same time" not in call(*asked, "--order", "type").stderr


def test_table() -> None:
    result = call("run", "fire.ceql", "readings.csv")
    assert result.exit_code == 0
    header, _, *lines = result.stdout.splitlines()
    assert header.split() == ["sensor", "start_time", "end_time", "t", "h"]
    assert len(lines) == 1
    t, h = "2026-01-01 10:00:00Z", "2026-01-01 10:00:50Z"
    assert " ".join(lines[0].split()) == f"1 {t} {h} {t} value=45.0 {h} value=20.0"
    assert result.stderr.startswith("1 match (")
    assert not any(line.endswith(" ") for line in result.stdout.splitlines())


def test_table_shows_the_first_rows_and_says_how_many_more() -> None:
    Path("many.csv").write_text("type,ts\n" + "".join(f"A,{time}\n" for time in range(30)), encoding="utf-8")
    result = call("run", "-e", "SELECT * WHERE A AS x", "many.csv", "--limit-rows", "3")
    assert len(result.stdout.splitlines()) == 5
    assert ".. and 27 more" in result.stderr
    assert len(call("run", "-e", "SELECT * WHERE A AS x", "many.csv", "--limit-rows", "0").stdout.splitlines()) == 32


def test_several_events_of_a_variable_are_shown_by_first_and_last() -> None:
    Path("many.csv").write_text("type,ts,v\n" + "".join(f"A,{time},{time}\n" for time in range(4)), encoding="utf-8")
    result = call("run", "-e", "SELECT STRICT * WHERE A{4} AS x FILTER x[v >= 0]", "many.csv")
    assert "0 v=0 .. 3 v=3 (4 events)" in result.stdout


def test_json_lines() -> None:
    assert rows("fire.ceql", "readings.csv") == [
        {
            "sensor": 1,
            "start_time": "2026-01-01T10:00:00Z",
            "end_time": "2026-01-01T10:00:50Z",
            "t": [{"type": "Temperature", "ts": "2026-01-01T10:00:00Z", "sensor": 1, "value": 45.0}],
            "h": [{"type": "Humidity", "ts": "2026-01-01T10:00:50Z", "sensor": 1, "value": 20.0}],
        }
    ]


@pytest.mark.parametrize("name", ["out.parquet", "out.jsonl"])
def test_files_hold_what_the_interface_gives(name: str) -> None:
    result = call("run", "fire.ceql", "readings.csv", "-o", name)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith(f"1 match in {name} (")
    assert {path.name for path in Path().iterdir()} == {"fire.ceql", "readings.csv", name}
    if name == "out.jsonl":
        assert [json.loads(line) for line in Path(name).read_text(encoding="utf-8").splitlines()] == rows("fire.ceql", "readings.csv")
        return
    utc = dt.UTC
    events = [
        {"type": "Temperature", "ts": dt.datetime(2026, 1, 1, 10, 0, tzinfo=utc), "sensor": 1, "value": 45.0},
        {"type": "Humidity", "ts": dt.datetime(2026, 1, 1, 10, 0, 50, tzinfo=utc), "sensor": 1, "value": 20.0},
    ]
    assert pq.read_table(name).equals(cepheid.query(FIRE).run(events).to_arrow(events=True))


def test_identities_are_those_of_the_interface(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the table, in pieces and in files; equal rows have different ones wherever the pieces are cut."""
    query = "SELECT * WHERE A AS a ; B AS b PARTITION BY k WITHIN 9"
    path = Path("events.csv")
    path.write_text("type,ts,k\n" + "".join(f"{'AB'[number % 2]},{number // 6},{number % 3}\n" for number in range(40)))
    monkeypatch.setattr(results, "PIECE", 3)
    expected = cepheid.query(query).run(path).to_arrow(events=True, match_id="id")
    ids = expected["id"].to_pylist()
    assert len(set(ids)) == len(ids) > 50
    assert [row["id"] for row in rows("-e", query, str(path), "--match-id", "id")] == ids
    by_definition = rows("-e", query, str(path), "--match-id", "id", "--engine", "reference")
    assert sorted(map(str, by_definition)) == sorted(map(str, rows("-e", query, str(path), "--match-id", "id")))
    table = call("run", "-e", query, str(path), "--match-id", "id", "--limit-rows", "0").stdout.splitlines()
    assert [line.split()[0] for line in table[2:]] == ids
    call("run", "-e", query, str(path), "--match-id", "id", "-o", "found.parquet")
    assert pq.read_table("found.parquet").equals(expected)
    assert "two columns named `k`" in mistake("run", "-e", query, str(path), "--match-id", "k")


def test_csv_has_lists_as_json_and_tells_null_from_an_empty_text() -> None:
    assert call("run", "fire.ceql", "readings.csv", "-o", "out.csv").exit_code == 0
    (row,) = csv.DictReader(Path("out.csv").read_text(encoding="utf-8").splitlines())
    (expected,) = rows("fire.ceql", "readings.csv")
    assert row["start_time"] == "2026-01-01 10:00:00.000000Z"
    assert {name: json.loads(row[name]) for name in ("sensor", "t", "h")} == {name: expected[name] for name in ("sensor", "t", "h")}
    values = {
        "d": Decimal("1.50"),
        "b": b"\x01",
        "i": [1, 2],
        "q": 'say "x,y"',
        "e": "",
        "n": None,
        "s": dt.timedelta(seconds=90),
        "f": math.nan,
    }
    pq.write_table(pa.Table.from_pylist([{"type": "A", "ts": 1, **values}]), "odd.parquet")
    measures = ", ".join(f"a.{name} AS {name}" for name in values)
    assert call("run", "-e", f"SELECT {measures} WHERE A AS a", "odd.parquet", "-o", "odd.csv").exit_code == 0
    header, line = Path("odd.csv").read_text(encoding="utf-8").splitlines()
    assert header == ",".join(f'"{name}"' for name in ("start_time", "end_time", *values))
    assert line == '1,1,1.50,"01","[1, 2]","say ""x,y""","",,"0:01:30",'
    assert call("run", "-e", "SELECT * WHERE Nothing AS x", "readings.csv", "-o", "none.csv").exit_code == 0
    assert Path("none.csv").read_text(encoding="utf-8") == '"start_time","end_time","x"\n'


def test_an_output_without_matches_has_its_columns() -> None:
    assert call("run", "-e", "SELECT * WHERE Nothing AS x", "readings.csv", "-o", "out.parquet").exit_code == 0
    assert pq.read_table("out.parquet").column_names == ["start_time", "end_time", "x"]
    assert call("run", "-e", "SELECT * WHERE Nothing AS x", "readings.csv").stdout == ""


def test_an_output_is_not_replaced_unasked() -> None:
    Path("out.jsonl").write_text("mine", encoding="utf-8")
    assert mistake("run", "fire.ceql", "readings.csv", "-o", "out.jsonl") == (
        "error: out.jsonl exists already\nhelp: --overwrite replaces it\n"
    )
    assert Path("out.jsonl").read_text(encoding="utf-8") == "mine"
    assert call("run", "fire.ceql", "readings.csv", "-o", "out.jsonl", "--overwrite").exit_code == 0
    assert Path("out.jsonl").read_text(encoding="utf-8").startswith("{")


def test_outputs_that_cannot_be() -> None:
    assert "the endings are .parquet, .csv, .jsonl, .ndjson" in mistake("run", "fire.ceql", "readings.csv", "-o", "out.xlsx")
    assert "there is no directory nowhere" in mistake("run", "fire.ceql", "readings.csv", "-o", "nowhere/out.jsonl")
    Path("folder.jsonl").mkdir()
    assert "is a directory" in mistake("run", "fire.ceql", "readings.csv", "-o", "folder.jsonl")
    Path("events.jsonl").write_text('{"type": "A", "ts": 1}\n', encoding="utf-8")
    assert "is an input too" in mistake("run", "-e", "SELECT * WHERE A", "events.jsonl", "-o", "events.jsonl", "--overwrite")


def test_a_run_that_fails_leaves_no_output() -> None:
    mistake("run", "-e", "SELECT * WHERE A FILTER A[x > 3]", "readings.csv", "-o", "out.parquet")
    assert not list(Path().glob("*out.parquet*"))


# ----------------------------------------------------------------------------------------------------------------------------- input


def test_the_kinds_of_files_give_the_same() -> None:
    expected = rows("fire.ceql", "readings.csv")
    lines = [line.split(",") for line in READINGS.splitlines()[1:]]
    events = [{"type": kind, "ts": time, "sensor": int(sensor), "value": float(value)} for kind, time, sensor, value in lines]
    Path("e.jsonl").write_text("\n\n".join(map(json.dumps, events)), encoding="utf-8")
    Path("e.tsv").write_text(READINGS.replace(",", "\t"), encoding="utf-8")
    Path("semi.csv").write_text("\ufeff" + READINGS.replace(",", ";"), encoding="utf-8")
    for event in events:
        event["ts"] = dt.datetime.fromisoformat(str(event["ts"]))
    pq.write_table(pa.Table.from_pylist(events), "e.parquet", row_group_size=2)
    assert rows("fire.ceql", "e.jsonl") == expected
    assert rows("fire.ceql", "e.tsv") == expected
    assert rows("fire.ceql", "semi.csv", "--separator", ";") == expected
    assert rows("fire.ceql", "e.parquet") == expected
    assert rows("fire.ceql", "e.parquet", "--sort") == expected
    assert rows("fire.ceql", "e.parquet", "--engine", "reference") == expected


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["2026-01-01T10:00:00Z", "2026-01-01 10:00:01.5+01:00"], pa.timestamp("us", "UTC")),
        (["2026-01-01T10:00:00", "2026-01-01 10:00:01.123456"], pa.timestamp("us")),
        (["2026-01-01T10:00:00.123456789", "2026-01-01T10:00:01"], pa.timestamp("ns")),
        (["2026-01-01", "2026-01-02"], pa.date32()),
        (["12", "15"], pa.int64()),
        (["2026-01-01T10:00:00Z", "x"], pa.string()),
    ],
)
def test_times_are_inferred(texts: list[str], kind: pa.DataType) -> None:
    Path("t.csv").write_text("n,ts\n" + "".join(f"{number},{text}\n" for number, text in enumerate(texts)), encoding="utf-8")
    assert read(Path("t.csv")).read_all().schema.field("ts").type == kind
    if kind not in (pa.int64(), pa.date32()):
        Path("t.jsonl").write_text("".join(f'{{"ts": "{text}"}}\n' for text in texts), encoding="utf-8")
        assert read(Path("t.jsonl")).schema.field("ts").type == kind


def test_an_offset_in_json_is_not_lost() -> None:
    Path("t.jsonl").write_text('{"ts": "2026-01-01T10:00:00+02:00", "n": {"a": [1]}}\n', encoding="utf-8")
    assert read(Path("t.jsonl")).read_all().to_pylist() == [{"ts": dt.datetime(2026, 1, 1, 8, tzinfo=dt.UTC), "n": {"a": [1]}}]


def test_types_are_inferred_from_the_whole_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csvs, "PIECE", 1000)
    Path("t.csv").write_text("a\n" + "1\n" * 2000 + "1.5\n", encoding="utf-8")
    assert read(Path("t.csv")).read_all().schema.field("a").type == pa.float64()


def test_what_is_not_decided_is_said() -> None:
    query = "SELECT * WHERE Temperature AS t NOT FOLLOWED BY Temperature FOR {} PARTITION BY sensor"
    decided, waiting = (call("run", "-e", query.format(duration), "readings.csv") for duration in ("50s", "51s"))
    assert "1 match" in decided.stderr
    assert "not decided" not in decided.stderr
    said = "note: 1 match is not decided yet: what NOT FOLLOWED BY forbids may still come (--until end: nothing follows)"
    assert said in waiting.stderr


def test_types_that_no_event_has_are_named() -> None:
    import pyarrow.csv

    pq.write_table(pyarrow.csv.read_csv("readings.csv"), "readings.parquet")
    query = "SELECT * WHERE Temprature AS t ; (Humidity OR Smoke) WITHIN 1h"
    notes = ["note: no event has the type `Smoke`", "note: no event has the type `Temprature`: did you mean `Temperature`?"]
    for file in ("readings.csv", "readings.parquet", "a=readings.csv"):
        assert call("run", "-e", query, file).stderr.splitlines()[:2] == notes
    assert call("run", "-e", "SELECT * WHERE Temperature OR Smoke", "readings.csv").stderr.startswith(notes[0]), "also where some are found"
    assert "no event" not in call("run", "-e", "SELECT * WHERE Temperature : Temperature", "readings.csv").stderr


def test_types_are_named_on_spark_as_embedded() -> None:
    plain, typed = pa.table({"ts": [1, 2]}), pa.table({"type": ["Smoke", "Fire"], "ts": [1, 2]})
    query = cepheid.query("SELECT * WHERE a AS x ; Smok")
    given = [
        {"a": plain, "b": typed},
        {"a": plain[:0], "b": typed},
        {"a": plain, "b": typed[:0]},
        {"a": plain[:0], "b": typed[:0]},
        {"a": typed, "b": typed},
        {"a": typed, "b": typed[:0]},
    ]
    for tables in given:
        plan = query.bound(source_of(tables, query.tree, type=None, time=None).schema)
        pieces = {name: [table[:1], table[1:]] for name, table in tables.items()}
        assert unmet_types(plan, pieces).warnings == query.run(tables).warnings
    assert query.run({"a": plain, "b": typed}).warnings == ("no event has the type `Smok`: did you mean `Smoke`?",)


def test_until() -> None:
    query = "SELECT * WHERE Humidity AS h NOT FOLLOWED BY Humidity FOR 40s"
    starts = {
        until: [row["start_time"] for row in rows("-e", query, "readings.csv", *(["--until", until] if until else []))]
        for until in ("", "2026-01-01T10:00:30", "2026-01-01T12:00:00+01:00", "2026-01-01T11:01:30+01:00", "end")
    }
    assert list(starts.values()) == [[], [], ["2026-01-01T10:00:50Z"], ["2026-01-01T10:00:50Z"], ["2026-01-01T10:00:50Z"]]
    assert rows("-e", query, "readings.csv", "--until", "2026-01-01T10:00:30", "--engine", "reference") == []
    waiting = call("run", "-e", query, "readings.csv", "--until", "2026-01-01T10:00:30Z")
    assert "note: 1 match is not decided yet" in waiting.stderr
    Path("days.csv").write_text("ts,type\n2026-01-01,A\n2026-01-02,A\n", encoding="utf-8")
    Path("numbers.csv").write_text("ts,type\n-1,A\n2,A\n", encoding="utf-8")
    Path("local.csv").write_text("ts,type\n2026-01-01T10:00:00,A\n2026-01-01T11:00:00,A\n", encoding="utf-8")
    for file, until in (("days.csv", "2026-01-01"), ("numbers.csv", "1"), ("numbers.csv", "-1"), ("local.csv", "2026-01-01 10:59:59")):
        assert len(rows("-e", "SELECT * WHERE A", file, f"--until={until}")) == 1


def test_until_that_is_no_time() -> None:
    query = "SELECT * WHERE A"
    Path("numbers.csv").write_text("ts,type\n-1,A\n2,A\n", encoding="utf-8")
    Path("local.csv").write_text("ts,type\n2026-01-01T10:00:00,A\n", encoding="utf-8")
    assert mistake("run", "-e", query, "numbers.csv", "--until", "noon") == (
        "error: --until noon is not a time of the column `ts` (int64)\nhelp: write it as the column has it, or end\n"
    )
    assert "--until 5 is not a time of the column `ts` (timestamp" in mistake("run", "-e", query, "local.csv", "--until", "5")
    assert mistake("run", "-e", query, "local.csv", "--until", "2026-01-01T10:00:00Z") == (
        "error: --until 2026-01-01T10:00:00Z is not a time of the column `ts` (timestamp[us])\n"
        "help: leave its offset (Z, +01:00) out: the column has no time zone\n"
    )


def test_nulls_of_csv_stand_without_quotes() -> None:
    Path("t.csv").write_text('a,b\n,1\n"",2\nNA,\n"NA",NaN\n', encoding="utf-8")
    assert read(Path("t.csv")).read_all().to_pydict() == {"a": [None, "", None, "NA"], "b": [1, 2, None, None]}


def test_streams_by_name_and_by_file() -> None:
    Path("weather.csv").write_text("ts,origin,gust\n1,JFK,45\n", encoding="utf-8")
    Path("flights.csv").write_text("ts,origin,dep\n2,JFK,\n3,JFK,7\n", encoding="utf-8")
    query = "SELECT * FROM weather, flights WHERE weather AS w ; flights AS f FILTER f[dep IS NULL] PARTITION BY origin WITHIN 5"
    found = rows("-e", query, "weather.csv", "flights.csv")
    assert [(row["start_time"], row["end_time"]) for row in found] == [(1, 2)]
    assert rows("-e", query, "flights=flights.csv", "weather=weather.csv") == found
    assert "two files have the stream name `weather`" in mistake("run", "-e", query, "weather.csv", "weather.csv")
    assert "has no such stream" in mistake("run", "-e", query, "wind=weather.csv", "flights.csv")


def test_several_files_of_one_stream() -> None:
    Path("a.csv").write_text("ts,origin,n\n1,JFK,1\n2,EWR,2\n", encoding="utf-8")
    Path("b.csv").write_text("ts,origin,n,gate\n2,JFK,1.5,B7\n5,EWR,,\n", encoding="utf-8")
    Path("w.csv").write_text("ts,origin\n1,LGA\n4,LGA\n", encoding="utf-8")
    every = "SELECT * FROM flights WHERE flights AS f"
    found = rows("-e", every, "flights=a.csv", "flights=b.csv")
    events = [row["f"][0] for row in found]  # type: ignore[index]
    assert [(event["ts"], event["n"], event["gate"]) for event in events] == [
        (1, 1.0, None),
        (2, 2.0, None),
        (2, 1.5, "B7"),
        (5, None, None),
    ]
    assert {event["type"] for event in events} == {"flights"}, "as the stream with a name has it in Python"
    assert rows("-e", every, "flights=a.csv", "flights=b.csv", "--sort") == found
    assert rows("-e", every, "flights=[ab].csv") == found
    assert [row["f"][0]["n"] for row in rows("-e", every, "[ab].csv")] == [1.0, 2.0, 1.5, None]  # type: ignore[index]
    both = rows("-e", "SELECT * FROM flights, wind WHERE wind ; flights AS f WITHIN 1", "flights=[ab].csv", "wind=w.csv")
    assert [row["end_time"] for row in both] == [2, 2, 5]
    message = mistake("run", "-e", every, "flights=b.csv", "flights=a.csv")
    assert message.startswith(
        "error: a.csv, row 2: the events are not in the order of their times: 1 is earlier than 5, the time before it\n"
    )
    assert "in the order given" in message
    assert len(rows("-e", every, "flights=b.csv", "flights=a.csv", "--sort")) == 4


def test_files_of_one_stream_of_several_kinds() -> None:
    Path("1.jsonl").write_text('{"type": "A", "ts": 1, "v": 1}\n', encoding="utf-8")
    Path("2.csv").write_text("type,ts,v\nA,2,2.5\n", encoding="utf-8")
    pq.write_table(pa.table({"type": ["A"], "ts": [3], "w": ["x"]}), "3.parquet")
    found = rows("-e", "SELECT * WHERE A AS a", "[123].*")
    assert [row["a"][0] for row in found] == [  # type: ignore[index]
        {"type": "A", "ts": 1, "v": 1.0, "w": None},
        {"type": "A", "ts": 2, "v": 2.5, "w": None},
        {"type": "A", "ts": 3, "v": None, "w": "x"},
    ]
    Path("2.csv").write_text("type,ts,v\nA,2,x\n", encoding="utf-8")
    assert "`v` is string in 2.csv, and int64 in the files of its stream before" in mistake("run", "-e", "SELECT * WHERE A", "[123].*")


def test_names_of_files_and_streams() -> None:
    Path("logs").mkdir()
    for name in ("logs/b.csv", "logs/a.csv", "x[1].csv"):
        Path(name).write_text("type,ts\nA,1\n", encoding="utf-8")
    assert files.named(["logs/*.csv"]) == [(None, (Path("logs/a.csv"), Path("logs/b.csv")))]
    assert files.named(["x[1].csv"]) == [(None, (Path("x[1].csv"),))], "a file of this name is the file"
    assert files.named(["s=logs/*.csv", "t=x[1].csv", "s=x[1].csv"]) == [
        ("s", (Path("logs/a.csv"), Path("logs/b.csv"), Path("x[1].csv"))),
        ("t", (Path("x[1].csv"),)),
    ]
    assert files.named(["**/a.csv"]) == [(None, (Path("logs/a.csv"),))]
    query = "SELECT * WHERE A"
    assert mistake("run", "-e", query, "logs/*.json").startswith("error: no file matches logs/*.json\n")
    assert "have no name\nhelp: name them: NAME='logs/*.csv'" in mistake("run", "-e", query, "logs/*.csv", "x[1].csv")
    for arguments in (["logs/a.csv", "a=x[1].csv"], ["a=x[1].csv", "logs/a.csv"]):
        assert "two files have the stream name `a`" in mistake("run", "-e", query, *arguments)


@pytest.mark.parametrize(("ending", "codec"), [(".gz", "gzip"), (".zst", "zstd")])
def test_compressed_files(ending: str, codec: str) -> None:
    expected = rows("fire.ceql", "readings.csv")
    events = [line.split(",") for line in READINGS.splitlines()[1:]]
    lines = "".join(f'{{"type": "{kind}", "ts": "{time}", "sensor": {sensor}, "value": {value}}}\n' for kind, time, sensor, value in events)
    for name, text in (("r.csv", READINGS), ("r.TSV", READINGS.replace(",", "\t")), ("r.jsonl", lines)):
        half = text.index("\n", len(text) // 2) + 1
        # Written in two parts, as logs are.
        Path(name + ending).write_bytes(compressed(text[:half], codec) + compressed(text[half:], codec))
        assert rows("fire.ceql", name + ending) == expected
    whole = Path("r.csv" + ending).read_bytes()
    Path("cut.csv" + ending).write_bytes(whole[:-9])
    assert mistake("run", "fire.ceql", "cut.csv" + ending).startswith(f"error: cut.csv{ending} cannot be read: ")
    Path("plain.csv" + ending).write_text(READINGS, encoding="utf-8")
    assert f"is it what its ending {ending} says" in mistake("run", "fire.ceql", "plain.csv" + ending)
    assert "Parquet that is compressed as a whole" in mistake("run", "fire.ceql", "readings.csv", "e=" + made("e.parquet" + ending))
    Path("readings.csv").unlink()
    Path("readings.csv" + ending).write_bytes(whole)
    assert mistake("run", "fire.ceql", "reading.csv" + ending).endswith(f"help: did you mean readings.csv{ending}?\n")
    Path("wrong.csv" + ending).write_bytes(compressed("type,ts\nA,1\nB\n", codec))
    assert mistake("run", "fire.ceql", "wrong.csv" + ending).startswith(f"error: wrong.csv{ending}, row 3: 1 value where the header has 2")


def compressed(text: str, codec: str) -> bytes:
    return gzip.compress(text.encode()) if codec == "gzip" else pa.Codec(codec).compress(text.encode(), asbytes=True)


def made(name: str) -> str:
    """The name of a file that is there."""
    Path(name).write_bytes(b"x")
    return name


def test_mistakes_far_behind_name_the_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csvs, "PIECE", 1000)
    monkeypatch.setattr(jsonlines, "PIECE", 1000)
    numbers = range(5000)
    query = ("run", "-e", "SELECT * WHERE A AS x ; B AS y WITHIN 9", "t.csv", "--json")
    for row, wrong, said in (
        (4000, "A", "row 4002: 1 value where the header has 2"),
        (4000, "A,soon", "row 4002: `ts` is 'soon', no time"),
        (4000, "A,", "row 4002: `ts` is NULL, and an event needs a time"),
        (4000, "A,3998", "row 4002: the events are not in the order of their times: 3998 is earlier than 3999, the time before it"),
    ):
        lines = [wrong if number == row else f"A,{number}" for number in numbers]
        Path("t.csv").write_text("type,ts\n" + "\n".join(lines), encoding="utf-8")
        assert mistake(*query).startswith(f"error: t.csv, {said}")
    for wrong, said in (("{", "line 4001, column"), ('{"ts": "x"}', "line 4001: `ts` is text, and a number on line 1")):
        lines = [wrong if number == 4000 else f'{{"type": "A", "ts": {number}}}' for number in numbers]
        Path("t.jsonl").write_text("\n".join(lines), encoding="utf-8")
        assert mistake("run", "-e", "SELECT * WHERE A", "t.jsonl").startswith(f"error: t.jsonl, {said}")


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_a_mistake_ends_the_process_as_any_other(name: str) -> None:
    """Also where nearly all of a file is unread: Arrow's threads once asked for more while the process ended, and it was aborted or hung."""
    content = ("type,ts\nA,1,2\n" + "A,1\n" * 3_000_000).encode()
    Path(name).write_bytes(gzip.compress(content, 1) if name.endswith(".gz") else content)
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-m", "cepheid.cli", "run", "-e", "SELECT * WHERE A", name],
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )
        assert (done.returncode, done.stderr.splitlines()[0]) == (1, f"error: {name}, row 2: 3 values where the header has 2")


def test_long_rows_and_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csvs, "PIECE", 100)
    monkeypatch.setattr(jsonlines, "PIECE", 100)
    long = "x" * 5000
    Path("t.csv").write_text("type,ts,s\n" + "A,1,y\n" * 50 + f'A,2,"{long}\n{long}"\n', encoding="utf-8")
    Path("t.jsonl").write_text('{"type": "A", "ts": 1}\n' * 50 + json.dumps({"type": "A", "ts": 2, "s": long}) + "\n", encoding="utf-8")
    assert [len(rows("-e", "SELECT * WHERE A AS a FILTER a[length(s) >= 5000]", name)) for name in ("t.csv", "t.jsonl")] == [1, 1]


def test_a_file_is_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csvs, "PIECE", 1000)
    monkeypatch.setattr(jsonlines, "PIECE", 1000)
    Path("t.csv").write_text("type,ts\n" + "A,1\n" * 5000, encoding="utf-8")
    Path("t.jsonl").write_text('{"type": "A", "ts": 1}\n' * 5000, encoding="utf-8")
    for name in ("t.csv", "t.jsonl"):
        (stream,) = files.streams([name])
        pieces = [batch.num_rows for batch in stream.reader("ts")]
        assert (sum(pieces), stream.rows) == (5000, 5000)
        assert max(pieces) < 500


def test_progress_is_lines_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "EVERY", 0.0)
    result = call("run", "fire.ceql", "readings.csv", "--json")
    said = result.stderr.splitlines()
    assert said[0] == "reading types: 3 events, 0 s"
    assert said[1] == "matching: 3 events of 3, 100%, 0 s"
    assert said[2].startswith("1 match (")
    assert len(result.stdout.splitlines()) == 1
    assert call("run", "fire.ceql", "readings.csv", "--no-progress").stderr.startswith("1 match (")


@pytest.mark.parametrize("options", [["--json"], ["-o", "out.parquet"], []])
def test_progress_goes_on_while_one_event_takes_long(monkeypatch: pytest.MonkeyPatch, options: list[str]) -> None:
    """The twentieth event ends half a million matches; by a clock of which each look takes a second."""
    clock = itertools.count()
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    monkeypatch.setattr(progress, "EVERY", 1.0)
    monkeypatch.setattr(running, "BUDGET", 0)
    monkeypatch.setattr(within, "EVERY", 0.0)
    types = "A" * 19 + "BXX"
    Path("many.csv").write_text("type,ts\n" + "".join(f"{kind},{time}\n" for time, kind in enumerate(types)), encoding="utf-8")
    result = call("run", "-e", "SELECT * WHERE A+ ; B LIMIT 200000", "many.csv", *options)
    found = re.findall("^matching: 19 events of 22, 86%, ([0-9]+) s, ([0-9]+) s of them after event 19$", result.stderr, re.MULTILINE)
    assert len(found) > 3
    assert found == sorted(found, key=lambda seconds: [int(each) for each in seconds])


def test_a_bar_says_how_long_one_event_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 1.0, 3.0, 9.4])
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    pace = progress.RunPace()
    assert [pace(done) for done in (3, 3, 4)] == [(1.0, ""), (3.0, "2 s of them after event 3"), (9.4, "")]


def test_a_terminal_shows_a_match_in_a_line_and_says_what_it_has_no_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "console", lambda: Console(width=50, force_terminal=True, color_system=None))
    query = "SELECT {} WHERE Temperature AS t ; Humidity AS h WITHIN 1h PARTITION BY sensor"
    result = call(
        "run", "-e", query.format("t.value AS warm, h.value AS wet, t.ts AS begun, h.ts AS done"), "readings.csv", "--no-progress"
    )
    head, _, row = result.stdout.splitlines()
    assert head.split() == ["sensor", "start_time", "end_time", "warm", "wet"]
    assert row.split() == ["1", "10:00:00Z", "10:00:50Z", "45.0", "20.0"]
    day, note, _ = result.stderr.splitlines()
    assert day == "the times are those of 2026-01-01"
    assert note == ".. and 2 more columns, for which the terminal is too narrow (a pipe cuts nothing: | less -S; --json prints all)"
    result = call("run", "-e", query.format("*"), "readings.csv", "--no-progress")
    assert len(result.stdout.splitlines()) == 3
    assert result.stderr.splitlines()[1].startswith(".. and 1 more column, for which the terminal is too narrow")
    monkeypatch.setattr(results, "console", lambda: Console(width=70, force_terminal=True, color_system=None))
    result = call("run", "-e", query.format("*"), "readings.csv", "--no-progress")
    assert result.stderr.splitlines()[1].startswith(".. stands for what the terminal is too narrow for (a pipe cuts nothing")


@pytest.mark.parametrize(
    ("times", "shown", "day"),
    [
        (["2026-01-01 10:00:00+00:00", "2026-01-01 10:00:30.250000+00:00"], ["10:00:00.00Z", "10:00:30.25Z"], "2026-01-01"),
        (["2026-01-01 10:00:00", None], ["10:00", "NULL"], "2026-01-01"),
        (["2026-01-01 23:59:00", "2026-01-02 00:00:00"], ["2026-01-01 23:59", "2026-01-02 00:00"], None),
        (["2026-01-01 00:00:00", "2026-01-01 00:00:00"], ["2026-01-01", "2026-01-01"], None),
        (["7", "8"], ["7", "8"], None),
    ],
)
def test_times_in_a_narrow_table_are_shortened_and_never_cut(times: list[str | None], shown: list[str], day: str | None) -> None:
    assert results.times_in(20, times, columns=2) == (shown, day)
    whole, none = results.times_in(100, times, columns=2)
    assert none is None
    assert [text.removeprefix(f"{day} ") for text in whole] == shown


def test_a_file_with_a_header_alone_has_no_matches() -> None:
    Path("t.csv").write_text("type,ts,sensor,value\n", encoding="utf-8")
    result = call("run", "fire.ceql", "t.csv")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith("0 matches")


def test_events_without_a_key_are_counted() -> None:
    Path("t.csv").write_text("type,ts,k\nA,1,\nA,2,x\n", encoding="utf-8")
    result = call("run", "-e", "SELECT * WHERE A AS a PARTITION BY k", "t.csv")
    assert "note: 1 event (of any type) has no key and is left out" in result.stderr
    assert "2 matches" in call("run", "-e", "SELECT * WHERE A AS a PARTITION BY k", "t.csv", "--null-keys", "group").stderr


WRONG_FILES = [
    ("t.csv", b"", "error: t.csv is empty: it does not name the attributes of the events\n"),
    ("t.jsonl", b"\n \n", "error: t.jsonl has no events\nhelp: JSON lines have one object on each line: {..}\n"),
    ("t.csv", b"type,ts\nA,1\nB\n", "error: t.csv, row 3: 1 value where the header has 2\nhelp: the header is row 1; a value with a separator or a line end in it stands in double quotes\n"),
    ("t.csv", b"type,ts\nA,1\nB,\xff\n", "error: t.csv, line 3: byte 0xff is not UTF-8\nhelp: save the file as UTF-8\n"),
    ("t.csv", b"type,ts\nA,1\nB,\xc3", "error: t.csv, line 3: the file ends within a UTF-8 character\nhelp: save the file as UTF-8\n"),
    ("t.csv", b"PAR1\xff", "error: t.csv is no text\nhelp: it looks like Parquet: its name has to end in .parquet\n"),
    ("t.csv", gzip.compress(b"type,ts\nA,1\n"), "error: t.csv is no text\nhelp: it looks like a compressed file: its name has to end in .gz\n"),
    ("t.csv", b'type,ts\nA,"1\nB,2\n', 'error: t.csv, line 2: a quote (") is opened and never closed\nhelp: double a quote within a text: "say ""so"""\n'),
    ("t.csv", b"type;ts\nA;1\n", "error: t.csv has one column, `type;ts`: its separator is not ','\nhelp: --separator ';'\nhelp: in Python read it with pyarrow.csv, and parse_options=ParseOptions(delimiter=';')\n"),
    ("t.csv", b"type,ts\nA,1\nB,x\n", "error: t.csv, row 3: `ts` is 'x', no time\nhelp: a time is a whole number, or ISO 8601: 2013-01-31 12:00:00, with an offset (Z, +01:00) in all rows or in none\n"),
    ("t.csv", b"type,ts\nA,2026-01-01 10:00\nB,2026-01-01 10:00Z\n", "error: t.csv, row 3: `ts` is '2026-01-01 10:00Z', a time with an offset, and '2026-01-01 10:00' before it a time without an offset\nhelp: a time is a whole number, or ISO 8601: 2013-01-31 12:00:00, with an offset (Z, +01:00) in all rows or in none\n"),
    ("t.csv", b"type,ts\nA,2\nB,1\n", "error: t.csv, row 3: the events are not in the order of their times: 1 is earlier than 2, the time before it\nhelp: --sort sorts them, stably\n"),
    ("t.csv", b"type,type,ts\nA,A,2\n", "error: the input has more than one column named `type`\nhelp: rename all but one\n"),
    ("t.csv", b"type,ts,ts\nA,1,2\n", "error: the input has more than one column named `ts`\nhelp: rename all but one\n"),
    ("t.csv", b"type, ts\nA, 1\n", "error: t.csv has no attribute `ts`, but ` ts`\nhelp: rename it, or read it with --time ' ts'\n"),
    ("t.csv", b"type,ts\nA,2020-02-29T00:00:00Z\nA,2020-02-30T00:00:00Z\n", "error: t.csv, row 3: `ts` is '2020-02-30T00:00:00Z', no time\nhelp: a time is a whole number, or ISO 8601: 2013-01-31 12:00:00, with an offset (Z, +01:00) in all rows or in none\nhelp: its day is in the calendar; if a second has more than 6 digits, all times are between the years 1678 and 2261\n"),
    ("t.csv", b"type,ts\nA,2020-02-29\nA,2020-02-30\n", "error: t.csv, row 3: `ts` is '2020-02-30', no time\nhelp: a time is a whole number, or ISO 8601: 2013-01-31 12:00:00, with an offset (Z, +01:00) in all rows or in none\nhelp: its day is in the calendar; if a second has more than 6 digits, all times are between the years 1678 and 2261\n"),
    ("t.csv", b"type,ts\nA,2020-01-01T00:00:00.123456789Z\nA,\nA,9999-12-31T00:00:00Z\n", "error: t.csv, row 4: `ts` is '9999-12-31T00:00:00Z', no time\nhelp: a time is a whole number, or ISO 8601: 2013-01-31 12:00:00, with an offset (Z, +01:00) in all rows or in none\nhelp: its day is in the calendar; if a second has more than 6 digits, all times are between the years 1678 and 2261\n"),
    ("t.csv", b"type,ts\nA,2020-02-29\nA,2020-03-01 10:00Z\n", "error: t.csv, row 3: `ts` is '2020-03-01 10:00Z', a time with an offset, and '2020-02-29' before it a day\nhelp: a time is a whole number, or ISO 8601: 2013-01-31 12:00:00, with an offset (Z, +01:00) in all rows or in none\n"),
    ("t.jsonl", b'{"ts": "2020-02-30 00:00:00"}\n', "error: t.jsonl, row 1: `ts` is '2020-02-30 00:00:00', no time\nhelp: a time is a whole number, or ISO 8601: 2013-01-31 12:00:00, with an offset (Z, +01:00) in all rows or in none\nhelp: its day is in the calendar; if a second has more than 6 digits, all times are between the years 1678 and 2261\n"),
    ("t.jsonl", b'{"ts": 1}\n{"ts": 1, "v": ' + b"[" * 2000 + b"]" * 2000 + b"}\n", "error: t.jsonl, line 2: a value nests deeper than 60 levels (MAX_LEVELS)\nhelp: flatten it, or give it as text\n"),
    ("t.jsonl", b'{"ts": 1, "v": ' + b"[\n" * 100 + b"]\n" * 100 + b"}\n", "error: t.jsonl, line 61: a value nests deeper than 60 levels (MAX_LEVELS)\nhelp: flatten it, or give it as text\n"),
    ("t.jsonl", b'{"type": "A", "ts": 1}\n\n{"type":\n', "error: t.jsonl, line 3, column 1: not a JSON object: Expecting value\nhelp: JSON lines have one object on each line: {..}\n"),
    ("t.jsonl", b'{"type": "A", "ts": 1}\n[1]\n', "error: t.jsonl, line 2 is an array, not an object\nhelp: JSON lines have one object on each line: {..}\n"),
    ("t.jsonl", b'{"type": "A", "ts": 1}\n{"type": null}\n{"type": 5}\n', "error: t.jsonl, line 3: `type` is a number, and text on line 1\nhelp: give each attribute one type\n"),
    ("t.jsonl", b'{"ts": 1}\n{"ts": 1e400}\n', "error: t.jsonl, line 2: not a JSON object: 1e400 is beyond what a double holds\nhelp: JSON lines have one object on each line: {..}\n"),
    ("t.jsonl", b'{"type": "\xff"}\n', "error: t.jsonl, line 1: byte 0xff is not UTF-8\nhelp: save the file as UTF-8\n"),
    ("t.json", b"[" * 100_000, "error: t.json, line 1"),
    ("t.json", b'[{"type": "A", "ts": 1}]\n', "error: t.json, line 1 is an array, not an object\nhelp: JSON lines have one object on each line: {..}\nhelp: jq -c '.[]' t.json writes such lines from an array of objects\n"),
    ("t.csv", b"Type,ts\nA,1\n", "error: the query names the event types `A`, `B`, and the input has no column `type`\nhelp: name the column that has the type of each event with type='Type': the input has `Type`, `ts`\nhelp: on the command line: --type NAME\n"),
    ("t.parquet", b"PAR1 and no more", "error: t.parquet cannot be read as Parquet: "),
    ("t.parquet", b"type,ts\nA,1\n", "error: t.parquet is no Parquet\nhelp: it looks like CSV: its name has to end in .csv\n"),
    ("t.parquet", b'{"type": "A", "ts": 1}\n', "error: t.parquet is no Parquet\nhelp: it looks like JSON lines: its name has to end in .jsonl\n"),
    ("t.csv", b'{"type": "A", "ts": 1}\n{"type": "B"}\n', "error: t.csv is no CSV\nhelp: it looks like JSON lines: its name has to end in .jsonl\n"),
    ("t.jsonl", b"type,ts\nA,1\n", "error: t.jsonl has no JSON lines\nhelp: it looks like CSV: its name has to end in .csv\n"),
    ("t.csv.gz", gzip.compress(b"type,ts\nA,\xff\n"), "error: t.csv.gz, line 2: byte 0xff is not UTF-8\nhelp: save the file as UTF-8\n"),
    ("t.csv", b"A,1,5\nB,2,6\n", "error: the query names the event types `A`, `B`, and the input has no column `type`\nhelp: the first row of a CSV file names the attributes: if that of t.csv is an event, put a row of names before it\nhelp: name the column that has the type of each event with type=: the input has `A`, `1`, `5`\nhelp: on the command line: --type NAME\n"),
    ("t.csv", b"A,2026-01-01,1.5,1.5\nB,2026-01-02,2,3\n", "error: the input has more than one column named `1.5`\nhelp: the first row of a CSV file names the attributes: if that of t.csv is an event, put a row of names before it\nhelp: rename all but one\n"),
    ("t.csv", b"kind,at\nA,1\n", "error: the query names the event types `A`, `B`, and the input has no column `type`\nhelp: name the column that has the type of each event with type=: the input has `kind`, `at`\nhelp: on the command line: --type NAME\n"),
    ("t.xml", b"<a/>", "error: files of events do not end in .xml\nhelp: the endings are .csv, .tsv, .jsonl, .ndjson, .json, .parquet, .arrow, .feather, .ipc, .arrows; text may be compressed: .csv.gz, .csv.zst\n"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "expected"), WRONG_FILES)
def test_wrong_files(name: str, content: bytes, expected: str) -> None:
    Path(name).write_bytes(content)
    message = mistake("run", "-e", "SELECT * WHERE A AS x ; B AS y WITHIN 9 EVENTS", name)
    assert message == expected or (not expected.endswith("\n") and message.startswith(expected))


def test_brackets_in_texts_do_not_nest() -> None:
    texts = ["[" * 100, '\\"{' * 100, "]"]
    Path("t.jsonl").write_text(
        "".join(f'{{"type": "A", "ts": 1, "v": {json.dumps(text)}, "w": [{{}}]}}\n' for text in texts), encoding="utf-8"
    )
    assert [row["x"][0]["v"] for row in rows("-e", "SELECT * WHERE A AS x", "t.jsonl")] == texts  # type: ignore[index]
    Path("t.jsonl").write_text('{"type": "A", "ts": 1, "v": ' + "[" * 60 + "]" * 60 + "}\n", encoding="utf-8")
    assert len(rows("-e", "SELECT * WHERE A AS x", "t.jsonl")) == 1


def test_doubled_columns_of_one_of_several_files() -> None:
    Path("one.csv").write_text("type,ts\nA,1\n", encoding="utf-8")
    for header in ("type,ts,ts", "ts,b,b"):
        Path("two.csv").write_text(f"{header}\n1,2,3\n", encoding="utf-8")
        assert "the stream `two` has more than one column named" in mistake("run", "-e", "SELECT * WHERE A", "one.csv", "two.csv")
        assert "the input has more than one column named" in mistake("check", "-e", "SELECT * FROM A WHERE A", "two.csv")


def test_spaces_around_the_name_of_the_time_column() -> None:
    Path("t.csv").write_text("type, ts\nA, 1\nB, 2\n", encoding="utf-8")
    assert "t.csv has no attribute `ts`, but ` ts`" in mistake("check", "-e", "SELECT * WHERE A ; B", "t.csv")
    assert len(rows("-e", "SELECT * WHERE A ; B WITHIN 1", "t.csv", "--time", " ts")) == 1


def test_a_damaged_page_of_parquet() -> None:
    pq.write_table(pa.table({"type": ["A"] * 5000, "ts": range(5000)}), "t.parquet", compression="gzip", use_dictionary=False)
    content = bytearray(Path("t.parquet").read_bytes())
    for place in range(200, 400):
        content[place] ^= 0xFF
    Path("t.parquet").write_bytes(content)
    assert mistake("run", "-e", "SELECT * WHERE A AS x", "t.parquet").startswith("error: t.parquet cannot be read as Parquet: ")


def test_missing_files_and_folders() -> None:
    assert mistake("run", "fire.ceql", "reading.csv") == "error: there is no file reading.csv\nhelp: did you mean readings.csv?\n"
    assert mistake("run", "fire.ceql", "fires.csv") == "error: there is no file fires.csv\n", "the query is no file of events"
    Path("readings.jsonl").write_text('{"type": "A"}\n', encoding="utf-8")
    for name in ("readings.csv", "readings.jsonl"):
        wrong = name.replace("s.", ".")
        assert mistake("run", "fire.ceql", wrong) == f"error: there is no file {wrong}\nhelp: did you mean {name}?\n"
    assert (
        mistake("run", "fire.ceql", ".") == "error: . is a directory, not a file of events\nhelp: for the files in it: '*.csv', in quotes\n"
    )
    looked = f"help: it was looked for in {Path.cwd()}\n"
    missing = "error: the query file nope.ceql cannot be read: No such file or directory\n"
    assert mistake("run", "nope.ceql", "readings.csv") == missing + looked
    assert mistake("run", ".", "readings.csv") == "error: . is a directory, not the file of a query\n"
    assert mistake("run", "SELECT * WHERE A", "readings.csv").endswith("help: add -e to give its text\n")
    assert mistake("run", "-e", "readings.csv", "SELECT * WHERE A").endswith("help: the query comes first: cepheid run -e QUERY EVENTS\n")


def test_columns_of_type_and_time() -> None:
    assert "the input has no type column `kind`" in mistake("run", "fire.ceql", "readings.csv", "--type", "kind")
    assert "did you mean `ts`?" in mistake("run", "fire.ceql", "readings.csv", "--time", "tss")
    Path("t.csv").write_text("kind,at\nA,1\nB,2\n", encoding="utf-8")
    message = mistake("run", "-e", "SELECT * WHERE A AS x ; B AS y", "t.csv")
    assert message.endswith("help: on the command line: --type NAME\n")
    assert len(rows("-e", "SELECT * WHERE A AS x ; B AS y WITHIN 1", "t.csv", "--type", "kind", "--time", "at")) == 1


# ----------------------------------------------------------------------------------------------------------------------- the query


def test_the_query_from_the_standard_input() -> None:
    assert "1 match" in call("run", "-", "readings.csv", stdin=FIRE).stderr
    result = call("run", "-", "readings.csv", stdin=b"SELECT \xff")
    assert (result.exit_code, result.stderr) == (
        1,
        "error: the query on the standard input is not UTF-8 at byte 7\nhelp: send it as UTF-8\n",
    )


def test_errors_of_the_query_are_printed_as_they_are() -> None:
    text = "SELECT * WHERE Temperature AS t FILTER t[valeu > 40]"
    with pytest.raises(cepheid.CepheidError) as raised:
        cepheid.query(text).run([{"type": "Temperature", "ts": 1, "value": 1}])
    Path("t.csv").write_text("type,ts,value\nTemperature,1,1\n", encoding="utf-8")
    assert mistake("run", "-e", text, "t.csv") == f"{raised.value}\n"


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("v=40", 40),
        (":v=-1.5", -1.5),
        ("v=1e3", 1000.0),
        ("v=TRUE", True),
        ("v='40'", "40"),
        ("v=it is text", "it is text"),
        ("v=a.b", "a.b"),
        ("v=", ""),
        ("v=NULL", None),
        ("v=DATE '2026-01-31'", dt.date(2026, 1, 31)),
        ("v=TIMESTAMP '2026-01-31 10:00Z'", dt.datetime(2026, 1, 31, 10, tzinfo=dt.UTC)),
        ("v=5m", dt.timedelta(minutes=5)),
        ("v=0.5 seconds", dt.timedelta(milliseconds=500)),
    ],
)
def test_parameters_are_typed(given: str, value: object) -> None:
    from cepheid.cli.queries import parameter

    name, found = parameter(given)
    assert (name, found, type(found).__name__.replace("Decimal", "float")) == ("v", value, type(value).__name__)


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("v=1,2, 3", [1, 2, 3]),
        ("v=(1, 2)", [1, 2]),
        ("v=7", [7]),
        ("v=('a, b', 'it''s', c d)", ["a, b", "it's", "c d"]),
        ("v=(a),(b)", ["(a)", "(b)"]),
        ("v=it's, that's", ["it's", "that's"]),
        ("v=DATE '2026-01-31',NULL,-1.5", [dt.date(2026, 1, 31), None, -1.5]),
        ("v=''", [""]),
        ("v=a,", ["a", ""]),
        ("v=", []),
        ("v=()", []),
    ],
)
def test_lists_behind_in(given: str, value: list[object]) -> None:
    from cepheid.cli.queries import parameter

    assert parameter(given, listed={"v"}) == ("v", value)


def test_parameters_wherever_a_constant_stands() -> None:
    query = FIRE.replace("1 minute", ":w") + " LIMIT :n"
    assert len(rows("-e", query, "readings.csv", "-p", "w=50s", "-p", "n=1")) == 1
    assert len(rows("-e", query, "readings.csv", "-p", "w=49 seconds", "-p", "n=1")) == 0
    named = "SELECT * WHERE ANY AS a FILTER a[type IN :kinds AND value IN :values]"
    assert len(rows("-e", named, "readings.csv", "-p", "kinds=Temperature,Humidity", "-p", "values=(45, 20)")) == 2
    assert "`:w` is 'soon', which is not a duration" in mistake("run", "-e", query, "readings.csv", "-p", "w=soon", "-p", "n=1")
    assert "is an empty list" in mistake("run", "-e", named, "readings.csv", "-p", "kinds=", "-p", "values=1")
    assert "--param kinds=1,2,3" in mistake("run", "-e", named, "readings.csv", "-p", "kinds=a", "-p", "kinds=b")
    assert "not a whole number of microseconds" in mistake("run", "-e", query, "readings.csv", "-p", "w=0.5us", "-p", "n=1")


def test_parameters_that_are_none() -> None:
    assert mistake("run", "-e", FIRE, "readings.csv", "-p", "limit") == (
        "error: --param limit is not a name and a value\nhelp: write --param limit=40\n"
    )
    for given, said in (
        (
            "TIMESTAMP '2026-13-01 00:00'",
            "'2026-13-01 00:00' is not a timestamp\nhelp: write it as in TIMESTAMP '2013-01-31 12:00:00', with an",
        ),
        ("DATE '2026-02-30'", "'2026-02-30' is not a date\nhelp: write it as in DATE '2013-01-31'\n"),
        ("TIMESTAMP '2026-01-01 00:00:00.1234567'", "TIMESTAMP '2026-01-01 00:00:00.1234567' is finer than microseconds\n"),
    ):
        assert mistake("run", "-e", FIRE, "readings.csv", "-p", f"v={given}").startswith(f"error: --param v={given} has no value: {said}")
    assert mistake("run", "-e", FIRE, "readings.csv", "-p", "v=1e999") == (
        "error: --param v=1e999 has no value: the number `1e999` is larger than a double can hold; the limit is about 1.8e308\n"
        "help: if it is a text, write it in single quotes\n"
    )
    assert mistake("run", "-e", FIRE, "readings.csv", "-p", "v=99999999999w") == (
        "error: --param v=99999999999w is longer than a duration can be\nhelp: the longest is 999999999d\n"
    )
    assert mistake("run", "-e", FIRE, "readings.csv", "-p", "v=1", "-p", ":v=2") == (
        "error: --param v is given twice\nhelp: give each parameter one value\n"
    )
    assert "the query has no parameter `:v`" in mistake("run", "-e", FIRE, "readings.csv", "-p", "v=1")
    assert "--param NAME=VALUE" in mistake("run", "-e", FIRE.replace("40", ":limit"), "readings.csv")
    assert len(rows("-e", FIRE.replace("40", ":limit"), "readings.csv", "--param", "limit=40")) == 1


def test_what_the_engine_does_not_do_names_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does the whole language, so it is made to know less here."""
    constructions = importlib.import_module("cepheid.automata.construct").CONSTRUCTIONS
    monkeypatch.delitem(constructions, logical.Sequence)
    query = "SELECT * WHERE Temperature ; Humidity"
    assert mistake("run", "-e", query, "readings.csv").endswith("help: on the command line: cepheid run --engine reference\n")
    assert len(rows("-e", query, "readings.csv", "--engine", "reference")) == 2


def test_measures() -> None:
    query = "SELECT t.value AS v, duration() AS d WHERE Temperature AS t ; Humidity AS h FILTER t.sensor = h.sensor"
    found = rows("-e", query, "readings.csv")
    assert [row["v"] for row in found] == [45.0]
    assert rows("-e", query, "readings.csv", "--engine", "reference") == found


# --------------------------------------------------------------------------------------------------------------------------- Spark


@pytest.mark.slow
def test_spark_gives_the_same(tmp_path: Path) -> None:
    """With ties, NULL keys and two streams; in a process of its own, for its Java."""
    Path("w.csv").write_text(
        "ts,origin,gust\n" + "".join(f"{n // 3},{'JFK' if n % 2 else 'EWR'},{n % 7}\n" for n in range(60)), encoding="utf-8"
    )
    Path("f.csv").write_text(
        "ts,origin,dep\n" + "".join(f"{n // 4},{['JFK', 'EWR', ''][n % 3]},{n}\n" for n in range(60)), encoding="utf-8"
    )
    query = "SELECT * FROM w, f WHERE w AS x ; f{2} AS y FILTER x[gust > 4] PARTITION BY origin WITHIN 2"
    absent = "SELECT * FROM w, f WHERE w AS x NOT FOLLOWED BY (f AS y FILTER y[dep % 9 = 0]) FOR 2 PARTITION BY origin"
    commands = [["run", "-e", query, "w.csv", "f.csv"], ["run", "-e", absent, "w.csv", "f.csv", "--until", "12"]]
    on_spark = [[*command, "--engine", "spark", "-o", f"spark{number}.parquet"] for number, command in enumerate(commands)]
    code = "import json, sys; from cepheid.cli.app import app; [app(each, standalone_mode=False) for each in json.loads(sys.argv[1])]"
    short_lived = os.environ | {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}  # for a JVM
    done = subprocess.run([sys.executable, "-c", code, json.dumps(on_spark)], env=short_lived, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    notes = ""
    for number, command in enumerate(commands):
        local_run = call(*command, "-o", f"local{number}.parquet")
        assert local_run.exit_code == 0
        notes += local_run.stderr
        spark, local = (pq.read_table(f"{engine}{number}.parquet") for engine in ("spark", "local"))
        assert spark.schema == local.schema
        assert local.num_rows > 10
        assert sorted(map(str, spark.to_pylist())) == sorted(map(str, local.to_pylist()))
    assert 5 < max(spark["end_time"].to_pylist()) <= 10
    undecided = [line for line in notes.splitlines() if "not decided" in line]
    assert [line for line in done.stderr.splitlines() if "not decided" in line] == undecided != []


@pytest.mark.parametrize("options", [(), ("--json",), ("-o", "out.jsonl")])
def test_computed_times_after_the_year_9999(options: tuple[str, ...]) -> None:
    """Python has no such datetime: they are texts."""
    Path("late.csv").write_text("type,ts,v\nA,9999-12-31T23:00:00,1\nB,9999-12-31T23:30:00,2\n", encoding="utf-8")
    result = call("run", "-e", "SELECT end_time() + 2h AS later, a.v AS v WHERE A AS a ; B", "late.csv", *options)
    assert result.exit_code == 0, result.stderr
    assert "10000-01-01T01:30:00" in (Path("out.jsonl").read_text(encoding="utf-8") if "-o" in options else result.stdout)
