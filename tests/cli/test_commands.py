"""The other commands, exit statuses, and what goes where."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from xml.etree import ElementTree as ET

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

import cepheid
from cepheid.cli import doctor, failures, queries
from cepheid.cli.app import app
from cepheid.engine.run import allowance
from cepheid.play import command as workbench

QUERY = "SELECT * WHERE A AS x ; B AS y FILTER x[v > 3] WITHIN 5 seconds"
COMMAND = [sys.executable, "-m", "cepheid.cli"]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("q.ceql").write_text(QUERY, encoding="utf-8")
    Path("e.csv").write_text("type,ts,v\nA,2026-01-01 10:00:00,5\nB,2026-01-01 10:00:01,\n", encoding="utf-8")


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def lone(*arguments: str, **more: object) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own."""
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False, **more)  # type: ignore[call-overload]


# -------------------------------------------------------------------------------------------------------------------------- explain


def test_explain_prints_what_the_interface_says() -> None:
    assert call("explain", "q.ceql").stdout == f"{cepheid.query(QUERY).explain()}\n"
    result = call("explain", "q.ceql", "e.csv", "--stage", "evaluation")
    assert result.stdout.startswith("evaluation\n")
    assert "time 5s" in result.stdout
    assert "guessed" not in result.stdout


def test_explain_ends_as_check_where_no_events_would_help() -> None:
    text = "SELECT * WHERE A AS a ; NOT (B AS n FILTER n.v > a.v) ; B AS b WITHIN 5s"
    explained, checked = call("explain", "-e", text), call("check", "-e", text)
    assert (explained.exit_code, explained.stdout, explained.stderr) == (1, "", checked.stderr)
    assert checked.stderr.startswith("error: the variable `a` is outside NOT")
    assert "types were guessed" not in checked.stderr
    # Values that are missing do not hide it.
    assert call("explain", "-e", text.replace("5s", ":w")).stderr == checked.stderr.replace("5s", ":w")


def test_explain_names_what_the_command_line_has_where_it_guesses_wrong() -> None:
    text = "SELECT * WHERE A AS a FILTER a.v LIKE 'x' AND a.v > 3"
    result = call("explain", "-e", text)
    assert (result.exit_code, result.stderr) == (0, "help: on the command line: name the file of events after the query\n")
    assert "not known; for the other stages give schema=" in result.stdout
    assert "types were guessed" in call("check", "-e", text).stderr
    assert call("explain", "-e", "SELECT * WHERE A FILTER A.v > :x").stderr == "help: on the command line: --param NAME=VALUE\n"
    assert call("explain", "-e", "SELECT * WHERE A FILTER A.v > 3").stderr == ""


def test_explain_names_the_stages() -> None:
    result = call("explain", "q.ceql", "--stage", "automata")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "did you mean 'automaton'?" in result.stderr


# ---------------------------------------------------------------------------------------------------------------------------- check


def test_check_of_a_clean_query() -> None:
    result = call("check", "q.ceql")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "q.ceql: ok\n", "")
    assert call("check", "q.ceql", "e.csv").exit_code == 0


def test_check_with_warnings() -> None:
    text = "SELECT * WHERE A AS x ; B"
    result = call("check", "-e", text)
    assert (result.exit_code, result.stdout) == (0, "the query: 1 warning\n")
    assert result.stderr.startswith("warning: no window bounds the pattern in time")
    strict = call("check", "--strict", "-e", text)
    assert (strict.exit_code, strict.stderr) == (1, result.stderr)


@pytest.mark.parametrize(
    "text", ["SELECT * WHERE A AS x ; B AS x WITHIN 5s", "SELECT * WHERE A ; NOT (B AS n ; C FILTER n[v > 1]) ; B AS b WITHIN 5s"]
)
def test_strict_accepts_what_means_something_else_elsewhere(text: str) -> None:
    result = call("check", "--strict", "-e", text)
    assert (result.exit_code, result.stdout) == (0, "the query: ok\n")
    assert result.stderr.startswith("note: ")
    assert call("explain", "-e", text, "--stage", "lints").stdout.split("lints\n  ")[1].startswith("note: ")


WARNED = [
    ("SELECT * WHERE A ; B", "SELECT * WHERE A ; B WITHIN 1d"),
    ("SELECT * WHERE A+ ; B WITHIN 1h", "SELECT * WHERE A+ ; B WITHIN 1h LIMIT 1000000"),
    ("SELECT * WHERE A+ AS a ; B WITHIN 1h HAVING count(a) > 2", "SELECT * WHERE A+ AS a ; B WITHIN 9 EVENTS HAVING count(a) > 2"),
    ("SELECT * WHERE NXT(A ; B) WITHIN 5s", "SELECT * WHERE NXT(A ; B WITHIN 1h) WITHIN 5s"),
    ("SELECT * WHERE NXT(A AS a ; B WITHIN 5s) FILTER a.v > 1", "SELECT * WHERE NXT(A AS a ; B WITHIN 5s) HAVING a.v > 1"),
    ("SELECT * WHERE A ; LAST(B+) WITHIN 9 EVENTS LIMIT 1", "SELECT * WHERE A ; LAST(B+ WITHIN 9 EVENTS) WITHIN 9 EVENTS LIMIT 1"),
    ("SELECT * WHERE (A AS a OR B) FILTER a.v > 1", "SELECT * WHERE (A AS a FILTER a.v > 1) OR B"),
    ("SELECT * WHERE A AS a ; (B AS b)? FILTER b.v > a.v WITHIN 5s", "SELECT * WHERE A AS a ; (B AS b FILTER b.v > a.v)? WITHIN 5s"),
    ("SELECT * WHERE ((A ; C?) AS x) : B WITHIN 1h", "SELECT * WHERE ((A ; C) AS x : B) OR (A AS x : B) WITHIN 1h"),
    ("SELECT * WHERE A AS a ; B AS b FILTER b.v - a.v > 5 WITHIN 1h", "SELECT * WHERE A AS a ; B AS b FILTER b.v > a.v + 5 WITHIN 1h"),
    ("SELECT * WHERE A AS a ; B WITHIN 1h HAVING a.v > 3", "SELECT * WHERE (A AS a FILTER a.v > 3) ; B WITHIN 1h"),
    ("SELECT * WHERE A AS a ; B WITHIN 1h HAVING duration() < 5m", "SELECT * WHERE A AS a ; B WITHIN [< 5m]"),
]
"""Queries with a warning, and how to write what is meant without it."""


@pytest.mark.parametrize(("text", "meant"), WARNED)
def test_every_warning_can_be_met(text: str, meant: str) -> None:
    assert call("check", "--strict", "-e", text).exit_code == 1
    result = call("check", "--strict", "-e", meant)
    assert (result.exit_code, result.stderr) == (0, "")


def test_check_notes_types_that_no_event_has() -> None:
    text = "SELECT * WHERE Fier ; (Smoke OR fire) WITHIN 5"
    Path("fire.csv").write_text("type,ts\nFire,1\nSmoke,2\n", encoding="utf-8")
    expected = (
        "note: no event has the type `Fier` (of 2 events)\n"
        "help: did you mean `Fire`? the types of the events are: `Fire`, `Smoke`\n\n"
        "note: no event has the type `fire` (of 2 events)\n"
        "help: did you mean `Fire`? the types of the events are: `Fire`, `Smoke`\n"
    )
    result = call("check", "--strict", "-e", text, "fire.csv")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "the query: ok\n", expected)
    table = pa.table({"type": pa.array(["Fire", "Smoke"]).dictionary_encode(), "ts": [1, 2]})
    pq.write_table(table, "fire.parquet")
    assert call("check", "-e", text, "fire.parquet").stderr == expected
    assert call("check", "-e", text, "x=fire.csv", "y=fire.csv").stderr == expected.replace("of 2 events", "of 4 events")
    pq.write_table(table[:0], "none.parquet")
    assert call("check", "-e", text, "none.parquet").stderr == ""
    assert call("check", "-e", "SELECT * WHERE Fire ; Smoke WITHIN 5", "fire.csv").stderr == ""
    defined = "EVENT Smoke(n) AS (SELECT count(f) AS n WHERE Fire AS f) SELECT * WHERE Smoke"
    clash = "note: events that come in have the type `Smoke`, as those of its EVENT definition: rename one\n"
    assert call("check", "-e", defined, "fire.csv").stderr == clash
    assert call("run", "-e", defined, "fire.csv").stderr.startswith(clash)
    many = "".join(f"T{number},{number}\n" for number in range(2000))
    Path("many.csv").write_text(f"type,ts\n{many}", encoding="utf-8")
    assert (
        call("check", "-e", "SELECT * WHERE T5 OR T1999 OR U", "many.csv").stderr == "note: no event has the type `U` (of 2,000 events)\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * WHERE A AS x FILTER z[v > 3]",
        "SELECT * WHERE A AS x FILTER x[v > 3] AND x[v LIKE 'a']",
        "SELECT * WHERE A AS x WITHIN [> 5s, < 3s]",
        "SELECT * WHERE A ;; B",
    ],
)
def test_check_finds_errors(text: str) -> None:
    result = call("check", "-e", text)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: ")
    assert "^" in result.stderr


@pytest.mark.parametrize(
    "conditions",
    [
        "x.a = y.b AND y.b = 'z'",
        "x.a - y.b < 5s",
        "x.place.city = 'Ghent' AND x.place.at.lon > 3",
        "x.a = x.b AND x.b = x.c AND x.c = TRUE",
        "x.a = DATE '2026-01-01' AND x.a < y.b",
        "x[ok AND NOT late] AND x.late = y.late",
        "lower(x.a) = 'b' AND x.a = y.b",
        "x.a < y.$time AND x.b = TIMESTAMP '2026-01-01 10:00:00'",
        "x.a IN ('b', 'c') AND y.b BETWEEN x.a AND 'z'",
    ],
)
def test_check_without_events_finds_types_that_fit(conditions: str) -> None:
    result = call("check", "-e", f"SELECT * WHERE A AS x ; B AS y FILTER {conditions} WITHIN 5s")
    assert result.exit_code == 0, result.stderr


def test_check_with_events_knows_names_and_types() -> None:
    Path("text.csv").write_text("type,ts,v\nA,2026-01-01 10:00:00,x\n", encoding="utf-8")
    assert "cannot be compared" in call("check", "q.ceql", "text.csv").stderr
    Path("none.csv").write_text("type,ts,w\nA,2026-01-01 10:00:00,x\n", encoding="utf-8")
    assert "unknown attribute `v`" in call("check", "q.ceql", "none.csv").stderr


def test_check_needs_no_values() -> None:
    text = "SELECT * WHERE A{:n} AS x ; B AS y FILTER x.k IN :ks AND y[v > :low] WITHIN :w LIMIT :most"
    result = call("check", "--strict", "-e", text)
    assert (result.exit_code, result.stdout) == (0, "the query: ok\n")
    assert result.stderr == (
        "note: parameters without a value: `:n`, `:ks`, `:low`, `:w`, `:most`; what depends on them is not checked\n"
        "help: give them with --param NAME=VALUE\n"
    )
    assert call("check", "-e", text, "-p", "n=2", "-p", "ks=1", "-p", "low=0", "-p", "w=5s", "-p", "most=1").stderr == ""
    wrong = call("check", "-e", text, "-p", "n=0")
    assert (wrong.exit_code, wrong.stdout) == (1, "")
    assert "`:n` is 0" in wrong.stderr
    assert "unknown variable `z`" in call("check", "-e", text.replace("y[v", "z[v")).stderr


def test_a_definition_is_checked_with_its_warnings():
    result = call("check", "-e", "EVENT Pair(n) AS (SELECT count(f) AS n WHERE (A ; A) AS f) SELECT * WHERE Pair AS p ; B WITHIN 5s")
    assert result.stderr.startswith("warning: no window bounds the pattern in time")
    assert "note:" not in result.stderr
    assert "1 warning" in result.stdout
    assert call("check", "-e", "SELECT concat(max(x.s), first(x.t)) AS s WHERE A+ AS x : B HAVING first(x.s) = 'a'").exit_code == 0


def test_check_notes_what_no_engine_does() -> None:
    result = call("check", "-e", "SELECT * WHERE (A ; B){15000} WITHIN 5s")
    assert (result.exit_code, result.stdout) == (0, "the query: ok\n")
    assert result.stderr.startswith("note: repeated 15000 times the pattern needs 60000 automaton states")


# --------------------------------------------------------------------------------------------------------------------- query files


@pytest.mark.parametrize(
    ("name", "message", "cause"),
    [
        ("q.cepl", "error: the query file q.cepl cannot be read: No such file or directory\nhelp: did you mean q.ceql?", FileNotFoundError),
        (
            "none/there.ceql",
            "error: the query file none/there.ceql cannot be read: No such file or directory\nhelp: it was looked for in {here}/none",
            FileNotFoundError,
        ),
        ("folder", "error: folder is a directory, not the file of a query", IsADirectoryError),
    ],
)
def test_a_query_file_that_cannot_be_read(name: str, message: str, cause: type[OSError]) -> None:
    Path("folder").mkdir()
    message = message.format(here=Path.cwd())
    result = call("check", name)
    assert (result.exit_code, result.stderr) == (1, f"{message}\n")
    with pytest.raises(cepheid.InputError) as raised:
        cepheid.query(Path(name))
    assert (str(raised.value), type(raised.value.__cause__)) == (message, cause)


# ----------------------------------------------------------------------------------------------------------------------------- draw


def test_draw_by_ending() -> None:
    for name in ("q.svg", "q.mmd", "q.dot"):
        result = call("draw", "q.ceql", "-o", name)
        assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert ET.parse("q.svg").getroot().tag.endswith("svg")
    assert Path("q.mmd").read_text(encoding="utf-8").startswith("flowchart LR")
    assert Path("q.dot").read_text(encoding="utf-8") == cepheid.query(QUERY).draw("dot")
    assert "exists already" in call("draw", "q.ceql", "-o", "q.svg").stderr


def test_draw_to_the_standard_output() -> None:
    assert ET.fromstring(call("draw", "q.ceql").stdout).tag.endswith("svg")
    assert call("draw", "q.ceql", "--format", "dot").stdout.startswith("digraph")
    iterated = "SELECT * WHERE A AS x ; B+ AS y ; C"
    plain, deterministic = (call("draw", "-e", iterated, "--format", "dot", *more).stdout for more in ([], ["--deterministic"]))
    assert plain.count("->") > deterministic.count("->")


def test_draw_mistakes() -> None:
    assert "the endings are .svg, .png, .mmd, .dot, .gv" in call("draw", "q.ceql", "-o", "q.pdf").stderr
    assert call("draw", "q.ceql", "--format", "png").exit_code == 1
    assert call("draw", "-e", "SELECT * WHERE A ;[<= 2s] B").exit_code == 0


# --------------------------------------------------------------------------------------------------------------------------- doctor


def test_doctor_of_a_sound_installation() -> None:
    findings = {finding.name: finding for finding in doctor.examine() if finding.name != "java"}
    assert {"python", "cepheid", "kernel", "numpy", "pyarrow", "pyspark", "temporary files", "trial"} <= set(findings)
    assert findings["cepheid"].found.startswith(cepheid.__version__)
    assert all(finding.state is not doctor.State.BROKEN for name, finding in findings.items() if name != "kernel")
    assert len(doctor.report(list(findings.values())).splitlines()) >= len(findings)


def test_doctor_names_what_is_missing_and_what_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> doctor.Finding:
        return doctor.Finding("kernel", doctor.State.BROKEN, "stale", "install cepheid again")

    missing = doctor._package("no_such_package", extra="viz", why="for timelines")
    monkeypatch.setattr(doctor, "CHECKS", (missing,))
    result = call("doctor")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[1].strip() == 'help: pip install "cepheid[viz]"'
    monkeypatch.setattr(doctor, "CHECKS", (missing, broken))
    assert call("doctor").exit_code == 1


def test_doctor_sees_a_kernel_of_another_source(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stale:
        HASH = "0" * 64

    monkeypatch.setattr(doctor.kernel, "COMPILED", True)
    monkeypatch.setattr(doctor.importlib, "import_module", lambda _: Stale)
    assert doctor._kernel().state is doctor.State.BROKEN
    monkeypatch.setattr(doctor.kernel, "COMPILED", False)
    assert doctor._kernel().state is doctor.State.WARNING


def test_doctor_sees_that_the_engine_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(self: cepheid.Query, events: object, *, engine: str | None = None) -> list[int]:
        return [] if engine is None else [1]

    monkeypatch.setattr(cepheid.Query, "run", wrong)
    assert doctor._trial().state is doctor.State.BROKEN


# ------------------------------------------------------------------------------------------------------------------- exit statuses


@pytest.mark.parametrize(
    "arguments", [["run"], ["run", "q.ceql"], ["fly"], ["run", "q.ceql", "e.csv", "--engine", "flink"], ["check", "--fast"]]
)
def test_usage(arguments: list[str]) -> None:
    result = call(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Usage:" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["run", "q.ceql", "e.csv", "--limit-rows", "many"], "'--limit-rows': many is not a whole number, 0 or more\n"),
        (["run", "q.ceql", "e.csv", "--limit-rows", "-1"], "'--limit-rows': -1 is not a whole number, 0 or more\n"),
        (["run", "q.ceql", "e.csv", "--limit-rows", "9" * 5_000], " is not a whole number, 0 or more\n"),
        (["run", "q.ceql", "e.csv", "--null-keys", "keep"], "'--null-keys': keep is none of drop, group\n"),
        (["watch", "q.ceql", "--null-keys", "grop"], "'--null-keys': grop is none of drop, group; did you mean group?\n"),
        (["run", "q.ceql", "e.csv", "--engine", "loca"], "'--engine': loca is none of local, spark, reference; did you mean local?\n"),
        (["play", "--port", "99999"], "'--port': 99999 is not a whole number, 0 to 65,535\n"),
    ],
)
def test_wrong_values_are_said_in_our_words(arguments: list[str], expected: str) -> None:
    result = call(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.endswith(expected)


def test_a_query_in_the_place_of_a_command() -> None:
    for arguments, option in ((["SELECT * WHERE A", "e.csv"], " -e"), (["q.ceql", "e.csv"], "")):
        result = call(*arguments)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.endswith(f"Error: a command comes before the query: cepheid run{option} QUERY EVENTS\n")
    assert "No such command 'fly'" in call("fly").stderr


@pytest.mark.parametrize("separator", ["é", "", "||", '"', "\n"])
def test_a_separator_is_one_ascii_character(separator: str) -> None:
    for command in ("run", "check"):
        result = call(command, "q.ceql", "e.csv", "--separator", separator)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "a separator is one ASCII character" in result.stderr


def test_version_and_help() -> None:
    assert call("--version").stdout == f"cepheid {cepheid.__version__}\n"
    assert all(name in call("--help").stdout for name in ("run", "watch", "explain", "check", "draw", "doctor"))
    assert all(call(name, "-h").exit_code == 0 for name in ("run", "watch", "explain", "check", "draw", "doctor"))


def test_an_internal_error_asks_for_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr(queries, "load", fail)
    monkeypatch.delenv(failures.TRACEBACK, raising=False)
    result = call("check", "q.ceql")
    assert (result.exit_code, result.stdout) == (70, "")
    assert result.stderr.startswith("internal error: ZeroDivisionError: by nothing (")
    assert "please report it" in result.stderr
    assert "Traceback" not in result.stderr
    monkeypatch.setenv(failures.TRACEBACK, "1")
    assert call("check", "q.ceql").stderr.startswith("Traceback")


@pytest.mark.parametrize(("error", "status"), [(KeyboardInterrupt(), 130), (MemoryError(), 1), (cepheid.InputError("no"), 1)])
def test_statuses(error: BaseException, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(queries, "load", fail)
    result = call("check", "q.ceql")
    assert (result.exit_code, result.stdout) == (status, "")


def test_the_entry_point_in_a_process_of_its_own() -> None:
    done = lone("run", "q.ceql", "e.csv", env={**os.environ, "NO_COLOR": "1"})
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert done.stdout.splitlines()[0].split() == ["start_time", "end_time", "x", "y"]


def test_an_interrupt() -> None:
    # Whoever starts the tests in the background of a shell ignores the signal, and so would what we start.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen([*COMMAND, "check", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        # What it has read when it is interrupted does not matter, but it must have come to reading.
        process.stdin.write(b"SELECT " + b" " * 200_000)
        process.stdin.flush()
        signal.signal(signal.SIGINT, before)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
    assert process.returncode == 130
    assert said == b"interrupted\n"


SUBSETS = "type,ts\n" + "".join(f"A,{time}\n" for time in range(60)) + "B,60\n"

ANSWERED = 0.5
"""Seconds of computing within which an interrupted command has ended: 0.3 to answer, and Python's own end."""


def computed(pid: int) -> float:
    """Seconds that a process has computed so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells how long another process has computed")
@pytest.mark.parametrize("output", [["-o", "out.parquet"], ["-o", "out.jsonl"], ["--json"], []])
def test_an_interrupt_while_matches_are_made(output: list[str]) -> None:
    Path("many.csv").write_text(SUBSETS, encoding="utf-8")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    text = "SELECT * WHERE A+ ; B" if output else "SELECT LAST * WHERE A ; B WITHIN 100000000"
    if not output:
        pq.write_table(pa.table({"type": ["A", "B"] * 4_000_000, "ts": range(8_000_000)}), "long.parquet")
    events = "many.csv" if output else "long.parquet"
    with subprocess.Popen([*COMMAND, "run", "-e", text, events, *output], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        signal.signal(signal.SIGINT, before)
        assert process.stdout is not None
        assert process.stderr is not None
        while process.poll() is None and computed(process.pid) < 2:
            if output == ["--json"]:
                process.stdout.read1(1 << 20)
            else:
                time.sleep(0.02)
        spent = computed(process.pid)
        process.send_signal(signal.SIGINT)
        if output == ["--json"]:
            process.stdout.close()
        hung = threading.Timer(60, process.kill)  # where it goes on, this test fails and does not wait for ever
        hung.start()
        _, status, usage = os.wait4(process.pid, 0)
        hung.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 130, process.stderr.read()
        assert process.stderr.read().endswith(b"interrupted\n")
    assert usage.ru_utime + usage.ru_stime - spent < ANSWERED
    assert not list(Path().glob("*out.*"))


def test_what_does_not_fit_names_the_way_to_write_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allowance, "default_max_bytes", lambda: 1 << 20)
    Path("many.csv").write_text(SUBSETS, encoding="utf-8")
    result = call("run", "-e", "SELECT * WHERE A+ ; B", "many.csv")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "which completes about 1.15e+18 matches" in result.stderr
    assert "help: on the command line: -o OUT.parquet, OUT.csv or OUT.jsonl, or --json" in result.stderr


def test_the_first_of_countless_matches_are_printed_at_once() -> None:
    Path("many.csv").write_text(SUBSETS, encoding="utf-8")
    command = [*COMMAND, "run", "-e", "SELECT * WHERE A+ ; B", "many.csv", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        lines = [json.loads(process.stdout.readline()) for _ in range(3)]
        process.stdout.close()
        assert b"error" not in process.stderr.read()
    assert process.returncode == 141
    assert [len(line["A"]) for line in lines] == [1, 2, 3]


def test_a_reader_that_has_enough() -> None:
    Path("many.csv").write_text("type,ts\n" + "A,1\n" * 20_000, encoding="utf-8")
    command = [*COMMAND, "run", "-e", "SELECT * WHERE A AS x", "many.csv", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b"{")
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


WITHOUT_EXTRAS = """
import sys

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("typer", "rich"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Block())
from cepheid.cli import main
main()
"""


def test_without_the_extra() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_EXTRAS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == 'error: the command line needs rich\nhelp: pip install "cepheid[cli]"\n'


def test_why_not_without_rows_speaks_of_options() -> None:
    result = call("why-not", "q.ceql", "e.csv")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: which events should match?\nhelp: give their rows, counted from 0: --at 3,5 or")
    assert call("why-not", "q.ceql", "e.csv", "--span", "3,1").stderr == "error: --span 3,1 ends before it begins\nhelp: write --span 1,3\n"


def test_play_begins_with_the_names_of_type_and_time() -> None:
    begins = workbench.beginning("q.ceql", "e.csv", named={"type": "kind", "time": None}, expression=False, parameters=())
    assert begins is not None
    assert (begins["source"]["type"], begins["source"].get("time")) == ("kind", None)


def test_check_guesses_types_from_case_and_from_names_in_having() -> None:
    for text in (
        "SELECT CASE WHEN x.v > 1 THEN x.s ELSE 'q' END AS c WHERE A AS x ; B WITHIN 5 HAVING c = 'q'",
        "SELECT min(x.p) AS m WHERE A+ AS x : B HAVING m = 'p'",
        "SELECT CASE WHEN max(x.v) > 1 THEN min(x.s) END AS c WHERE A+ AS x : B HAVING concat(c, '!') = 'q!'",
    ):
        result = call("check", "-e", text)
        assert result.exit_code == 0, result.stderr
