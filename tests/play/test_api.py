"""What the page asks, without a page: every question, on right and on odd input."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import random

import pyarrow as pa
import pytest
from pyarrow import parquet

import cepheid
from cepheid.language import parse
from cepheid.play import api, limits, steps
from cepheid.play.answers import Origins
from cepheid.play.examples import EXAMPLES
from cepheid.play.inputs import ShownEvents
from cepheid.testing import events
from cepheid.testing.generators import random_query
from cepheid.viz import svg


def asked(query: str, text: str = "", *, form: str = "line", **more: object) -> dict:
    return {"query": query, "source": {"format": form, "text": text}, **more}


def answer(question: str, request: dict) -> dict:
    """As the page gets it: through JSON."""
    return json.loads(json.dumps(api.answer(question, json.loads(json.dumps(request)))))


def rows_of(found: dict) -> list[dict[str, list[int]]]:
    """The rows of each match by variable."""
    listed = []
    for match in found["matches"]:
        rows: dict[str, list[int]] = {}
        for mark in match["marks"]:
            for variable in mark["variables"]:
                rows.setdefault(variable, []).append(mark["row"])
        listed.append(rows)
    return listed


# ----------------------------------------------------------------------------------------------------------------------- check


def test_tokens_cover_words_of_every_kind_in_code_points() -> None:
    text = "SELECT MAX * -- \N{GRINNING FACE}\nWHERE A AS x FILTER x.v > :limit AND x.s = 'a''b' WITHIN 5s"
    found = {(text[start:end], kind) for start, end, kind in api.tokens(text)}
    assert {("SELECT", "keyword"), ("5", "number"), ("s", "unit"), ("x", "variable"), ("v", "attribute"), (":limit", "parameter")} <= found
    assert {("'a''b'", "string"), ("-- \N{GRINNING FACE}", "comment"), (">", "operator")} <= found


def test_error_says_its_place_in_code_points() -> None:
    text = "-- \N{GRINNING FACE}\nSELECT * WHRE A"
    error = answer("check", {"query": text})["error"]
    assert text[slice(*error["span"])] == "WHRE"
    assert error["kind"] == "QuerySyntaxError"
    assert error["help"] == ["did you mean WHERE?"]


def test_check_binds_to_the_events_that_are_there() -> None:
    text = "SELECT * WHERE A AS a FILTER a.v > 1"
    assert answer("check", {"query": text})["error"] is None
    schema = answer("events", asked("", "A1(w=2)"))["schema"]
    error = answer("check", {"query": text, "schema": schema})["error"]
    assert error["fact"].startswith("unknown attribute `v`")
    assert text[slice(*error["span"])] in {"v", "a.v"}


def test_check_gives_lints_controls_and_parameters() -> None:
    found = answer("check", {"query": "SELECT LAST * WHERE A AS a ; B AS b FILTER a.v > :low AND b.v > :low WITHIN :w LIMIT 3"})
    assert found["controls"] == {"strategy": "LAST", "window": ":w", "limit": "3"}
    assert found["parameters"] == ["low", "w"]
    assert found["notes"] == ["give a value to :low, :w"]
    assert found["error"] is None
    unbounded = answer("check", {"query": "SELECT * WHERE A AS a ; B AS b"})
    assert any("no window" in lint for lint in unbounded["lints"])


def test_check_with_values_of_parameters() -> None:
    request = {"query": "SELECT * WHERE A AS a FILTER a.v IN :vs WITHIN :w", "args": {"vs": "1,2", "w": "5s"}}
    found = answer("check", request)
    assert (found["error"], found["notes"]) == (None, [])
    assert answer("check", request | {"args": {"vs": "1", "w": "no"}})["error"] is not None


@pytest.mark.parametrize(
    "text", ["", " ", "\0", "\ud800", "SELECT", "(" * 500, "SELECT * WHERE " + "A ; " * 30_000 + "A", "`", "'", "-- x"]
)
def test_check_of_odd_texts_is_an_error_with_a_place_in_them(text: str) -> None:
    found = answer("check", {"query": text})
    assert found["error"] is not None
    assert "internal" not in found["error"]["fact"]
    span = found["error"]["span"]
    assert span is None or 0 <= span[0] <= len(text)


@pytest.mark.parametrize("request_", [{}, {"query": 5}, {"query": None}, {"query": "SELECT * WHERE A", "args": 7}])
def test_odd_requests_are_errors(request_: dict) -> None:
    for question in api.QUESTIONS:
        found = answer(question, request_)
        assert found.get("error"), question
        assert "internal" not in found["error"]["fact"], question


# --------------------------------------------------------------------------------------------------------------------- rewrite


@pytest.mark.parametrize(
    ("text", "control", "value", "expected"),
    [
        ("SELECT * -- all\nWHERE A", "strategy", "MAX", "SELECT MAX * -- all\nWHERE A"),
        ("SELECT MAX * -- all\nWHERE A", "strategy", "ALL", "SELECT * -- all\nWHERE A"),
        ("SELECT next a\nWHERE A AS a", "strategy", "LAST", "SELECT LAST a\nWHERE A AS a"),
        ("SELECT max(a.v)\nWHERE A AS a", "strategy", "MAX", "SELECT MAX max(a.v)\nWHERE A AS a"),
        ("SELECT *\nWHERE A ; B -- c", "window", "5 minutes", "SELECT *\nWHERE A ; B WITHIN 5 minutes -- c"),
        ("SELECT *\nWHERE (A ; B) -- c", "window", "[1s, 3s]", "SELECT *\nWHERE (A ; B) WITHIN [1s, 3s] -- c"),
        ("SELECT * WHERE A ; B WITHIN 5s\n-- c", "window", "100 EVENTS", "SELECT * WHERE A ; B WITHIN 100 EVENTS\n-- c"),
        ("SELECT * WHERE A ; B\n  within 5s\n-- c", "window", "", "SELECT * WHERE A ; B\n-- c"),
        ("SELECT * WHERE A ; B PARTITION BY k WITHIN 5s", "window", "", "SELECT * WHERE A ; B PARTITION BY k"),
        ("SELECT * WHERE A ; B PARTITION BY k WITHIN 5s", "window", "6s", "SELECT * WHERE A ; B PARTITION BY k WITHIN 6s"),
        ("SELECT * WHERE A NOT FOLLOWED BY B FOR 1h", "window", "5s", "SELECT * WHERE A WITHIN 5s NOT FOLLOWED BY B FOR 1h"),
        ("SELECT * WHERE A FILTER A.v > 1 -- c\n", "limit", "3", "SELECT * WHERE A FILTER A.v > 1\nLIMIT 3 -- c\n"),
        ("SELECT * WHERE A -- c\nLIMIT 3 -- d", "limit", "10", "SELECT * WHERE A -- c\nLIMIT 10 -- d"),
        ("SELECT * WHERE A\nLIMIT 3", "limit", "", "SELECT * WHERE A"),
        ("SELECT * WHERE A LIMIT :n", "limit", "4", "SELECT * WHERE A LIMIT 4"),
        ("SELECT * WHERE A LIMIT :n", "limit", "", "SELECT * WHERE A"),
        ("SELECT * WHERE A", "limit", ":n", "SELECT * WHERE A\nLIMIT :n"),
        ("SELECT * WHERE A", "window", "", "SELECT * WHERE A"),
        (
            "EVENT E(n) AS (SELECT LAST count(A) AS n WHERE A ; B) SELECT * WHERE E",
            "strategy",
            "ANY",
            "EVENT E(n) AS (SELECT LAST count(A) AS n WHERE A ; B) SELECT ANY * WHERE E",
        ),
    ],
)
def test_controls_change_one_thing_of_the_text(text: str, control: str, value: str, expected: str) -> None:
    found = answer("rewrite", {"query": text, "control": control, "value": value})
    assert found["query"] == expected
    assert found["kept"] is True
    wanted = "ALL" if control == "strategy" and not value else value
    shown = {"5 minutes": "5m"}.get(wanted, wanted)
    assert found["controls"][control] == shown


@pytest.mark.parametrize(
    ("control", "value"), [("window", "5 apples"), ("window", "A"), ("limit", "0.5"), ("limit", "x"), ("strategy", "BEST"), ("order", "1")]
)
def test_values_that_cannot_be_are_named(control: str, value: str) -> None:
    error = answer("rewrite", {"query": "SELECT * WHERE A", "control": control, "value": value})["error"]
    assert error["kind"] == "InputError"
    assert error["help"]


def test_rewriting_random_queries_changes_what_was_asked_alone() -> None:
    rng = random.Random(7)
    texts = [example.query for example in EXAMPLES] + [random_query(rng) for _ in range(40)]
    for text in texts:
        before = parse(text)
        for control, value in (("strategy", "ANY"), ("limit", "7"), ("window", "9 EVENTS"), ("window", ""), ("limit", "")):
            found = answer("rewrite", {"query": text, "control": control, "value": value})
            after = parse(found["query"])
            assert found["kept"], (text, control, value)
            same = {"strategy", "limit", "targets", "partition_by", "having", "consume", "definitions"} - {control}
            assert all(getattr(before, name) == getattr(after, name) for name in same)


# ---------------------------------------------------------------------------------------------------------------------- events


def test_events_of_each_form_are_one_table() -> None:
    line = answer("events", asked("", "A1(v=2) B3"))
    csv = answer("events", asked("", "type,ts,v\nA,1,2\nB,3,\n", form="csv"))
    lines = answer("events", asked("", '{"type": "A", "ts": 1, "v": 2}\n{"type": "B", "ts": 3, "v": null}\n', form="jsonl"))
    assert line == csv == lines
    assert line["rows"] == [["A", "1", "2"], ["B", "3", ""]]
    assert [column["number"] for column in line["columns"]] == [False, True, True]
    assert line["clock"] == {"steps": [0, 2], "unit": None, "origin": 1}


def test_times_stand_on_a_clock() -> None:
    found = answer("events", asked("", "type,ts\nA,2026-03-02T10:00:00Z\nB,2026-03-02T10:00:01.5Z\n", form="csv"))
    assert found["clock"]["origin"] == 1772445600000.0
    assert [step * found["clock"]["unit"] for step in found["clock"]["steps"]] == [0, 1500]
    assert found["rows"][0] == ["A", "2026-03-02 10:00:00Z"]


def test_no_events_and_no_time_are_answered() -> None:
    assert answer("events", asked(""))["count"] == 0
    assert answer("run", asked("SELECT * WHERE A AS a"))["count"] == "0"
    found = answer("events", asked("", "A B"))
    assert (found["clock"], found["time"]) == (None, None)
    assert rows_of(answer("run", asked("SELECT * WHERE A AS a ; B AS b", "A B"))) == [{"a": [0], "b": [1]}]


@pytest.mark.parametrize(
    ("form", "text", "fact"),
    [
        ("line", "A1 ((", "not an event"),
        ("line", "A1 B", "1 of 2 events have a time"),
        ("csv", "type,ts\nA\n", "row"),
        ("jsonl", '{"type": "A"}\nnot json\n', "line 2"),
        ("xml", "<a/>", "'xml' is not known"),
    ],
)
def test_text_that_is_no_events_says_where(form: str, text: str, fact: str) -> None:
    error = answer("events", asked("", text, form=form))["error"]
    assert fact in f"{error['fact']} {' '.join(error['help'])}"
    assert "/tmp" not in error["fact"]


def test_events_past_the_limit_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_EVENTS", 2)
    error = answer("events", asked("", "A1 A2 A3"))["error"]
    assert error["kind"] == "LimitError"
    assert "MAX_EVENTS" in error["fact"]


def test_shown_events_are_cut_with_a_note() -> None:
    found = answer("events", asked("", " ".join(f"A{time}" for time in range(limits.MAX_SHOWN_EVENTS + 1))))
    assert len(found["rows"]) == limits.MAX_SHOWN_EVENTS
    assert found["notes"][0] == "the first 1,000 of 1,001 events are shown; all are evaluated"
    assert len(found["clock"]["steps"]) == limits.MAX_SHOWN_EVENTS + 1


def test_long_values_are_cut_where_they_are_shown() -> None:
    (row,) = answer("events", asked("", json.dumps({"type": "A", "ts": 1, "s": "x" * 500}), form="jsonl"))["rows"]
    assert row[2].endswith(".. (500 characters)")


def test_parquet_becomes_json_lines_and_says_what_changes() -> None:
    table = pa.table(
        {
            "type": ["A", "B"],
            "ts": pa.array([1_000_000, 2_000_000], pa.timestamp("us", "UTC")),
            "v": pa.array([1, None], pa.int32()),
            "price": pa.array(["1.50", "2.25"]).cast(pa.decimal128(10, 2)),
        }
    )
    buffer = io.BytesIO()
    parquet.write_table(table, buffer)
    found = answer("upload", {"name": "some/where.parquet", "data": base64.b64encode(buffer.getvalue()).decode()})
    assert found["source"]["format"] == "jsonl"
    read = answer("events", {"source": found["source"]})
    assert [column["type"] for column in read["columns"]][:3] == ["string", "timestamp[us, tz=UTC]", "int64"]
    assert read["rows"][1][:3] == ["B", "1970-01-01 00:00:02Z", ""]
    assert len(found["notes"]) == 1
    assert "`price`" in found["notes"][0]
    matched = answer("run", {"query": "SELECT * WHERE A AS a ; B AS b WITHIN 1s", "source": found["source"]})
    assert matched["count"] == "1"


@pytest.mark.parametrize(
    ("name", "data", "fact"),
    [
        ("a.xlsx", "", "no file of events"),
        ("../../a.csv", "!!", "not in base 64"),
        ("a.parquet", base64.b64encode(b"no parquet").decode(), "a"),
    ],
)
def test_uploads_that_cannot_be_read(name: str, data: str, fact: str) -> None:
    error = answer("upload", {"name": name, "data": data})["error"]
    assert fact in error["fact"]
    assert "internal" not in error["fact"]


# ------------------------------------------------------------------------------------------------------------------------- run


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_examples_have_matches_and_every_answer(example: object) -> None:
    request = asked(example.query, example.events, form=example.format, ended=example.ended)
    shown = answer("events", request)
    checked = answer("check", request | {"schema": shown["schema"]})
    assert (checked["error"], checked["lints"], shown["notes"]) == (None, [], [])
    found = answer("run", request)
    assert 0 < found["listed"] == int(found["count"]) < shown["count"]
    assert all(len(match["cells"]) == len(found["columns"]) for match in found["matches"])
    automaton = answer("automaton", request)
    assert automaton["refused"] == ""
    assert "data-states" in automaton["svg"]
    assert [title for title, _ in answer("explain", request)["sections"]][-1] == "lints"
    if not automaton["note"]:
        assert {step["row"] for step in automaton["steps"] if step["ends"]} == {match["last"] for match in found["matches"]}
    given = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(answer("programs", request)["python"], given)
    assert len(given["matches"]) == int(found["count"])
    compile(answer("programs", request)["pyspark"], "pyspark", "exec")


def test_matches_lead_to_the_rows_that_were_given() -> None:
    found = answer("run", asked("SELECT * WHERE A AS a ; B AS b", "B9 A1 B5 A7"))
    assert rows_of(found) == [{"a": [1], "b": [2]}, {"a": [3], "b": [0]}, {"a": [1], "b": [0]}]
    assert (found["matches"][0]["first"], found["matches"][0]["last"]) == (1, 2)
    assert "not in the order" in answer("events", asked("", "B9 A1"))["notes"][0]


def test_cells_have_keys_times_rows_and_the_values_that_conditions_read() -> None:
    text = "type,ts,k,v,w\nA,1,x,5,0\nA,2,x,6,0\nB,3,x,7,0\n"
    found = answer("run", asked("SELECT * WHERE A AS a+ ; B AS b FILTER a[v > 4] PARTITION BY k LIMIT 1", text, form="csv"))
    assert [column["name"] for column in found["columns"]] == ["k", "start_time", "end_time", "a", "b"]
    (match,) = found["matches"]
    assert match["name"] == "k=x"
    assert match["cells"][0] == "x"
    assert match["cells"][4] == {"rows": [{"row": 2, "made": False}], "text": "v=7"}


def test_events_that_definitions_make_lead_to_what_completes_them() -> None:
    query = "EVENT Burst(n) AS (SELECT count(F) AS n WHERE F{2} WITHIN 5) SELECT * WHERE Burst AS b ; S AS s"
    found = answer("run", asked(query, "F1 F2 S9"))
    (match,) = found["matches"]
    assert [(mark["row"], mark["variables"], mark["made"]) for mark in match["marks"]] == [
        (0, [], False),
        (1, ["b"], True),
        (2, ["s"], False),
    ]
    assert match["cells"][2]["text"] == "n=2"


def test_many_matches_are_counted_and_the_first_ones_shown() -> None:
    line = " ".join(f"A{time}" for time in range(60)) + " B70"
    found = answer("run", asked("SELECT * WHERE A AS a+ ; B AS b", line))
    assert found["count"] == f"{2**60 - 1:,}"
    assert found["listed"] == limits.MAX_SHOWN_MATCHES == len(found["matches"])
    assert "MAX_LISTED_BYTES" in found["notes"][0]
    assert all(rows["b"] == [60] for rows in rows_of(found))


def test_many_matches_that_cannot_be_counted_are_said_to_be_more() -> None:
    line = " ".join(f"A{time}" for time in range(40)) + " B70"
    found = answer("run", asked("SELECT count(a) AS n WHERE A AS a+ ; B AS b", line))
    assert found["count"] == f"more than {limits.MAX_SHOWN_MATCHES}"


def test_the_first_matches_of_some_hundred_are_shown() -> None:
    line = " ".join(f"A{time}" for time in range(30)) + " " + " ".join(f"B{time}" for time in range(40, 60))
    found = answer("run", asked("SELECT * WHERE A AS a ; B AS b", line))
    assert (found["count"], found["listed"]) == ("600", limits.MAX_SHOWN_MATCHES)
    assert found["notes"][0] == "the first 300 of 600 matches are listed; `cepheid run` and Query.run give all"


def test_counts_are_whole_numbers_however_large() -> None:
    line = " ".join(f"A{time}" for time in range(200)) + " B300"
    found = answer("run", asked("SELECT COUNT(*) WHERE A AS a+ ; B AS b", line))
    assert found["matches"][0]["cells"][-1] == f"{2**200 - 1:,}"
    assert found["matches"][0]["last"] == 200


def test_undecided_matches_and_missing_keys_are_said() -> None:
    request = asked("SELECT * WHERE A AS a NOT FOLLOWED BY B FOR 5 PARTITION BY k", "A1(k=1) A2(k=null) A3(k=2) B7(k=1)")
    found = answer("run", request)
    assert found["count"] == "1"
    assert any("undecided matches: 1" in note for note in found["notes"])
    assert any("without a key" in note for note in found["notes"])
    assert answer("run", request | {"ended": True})["count"] == "2"


def test_types_that_no_event_has_are_said() -> None:
    assert any("Sucess" in note for note in answer("run", asked("SELECT * WHERE A ; Sucess", "A1"))["notes"])


def test_columns_of_type_and_time_are_chosen() -> None:
    request = asked("SELECT * WHERE A AS a ; B AS b WITHIN 2", "kind,at\nA,1\nB,2\nB,9\n", form="csv")
    request["source"] |= {"type": "kind", "time": "at"}
    assert rows_of(answer("run", request)) == [{"a": [0], "b": [1]}]
    assert "type='kind', time='at'" in answer("programs", request)["python"]


def test_parameters_are_written_as_on_the_command_line() -> None:
    request = asked(
        "SELECT * WHERE A AS a FILTER a[v IN :vs] AND a[s = :s]", "A1(v=1, s='x') A2(v=2, s='y')", args={"vs": "1,2", "s": "y", "z": "5"}
    )
    assert rows_of(answer("run", request)) == [{"a": [1]}]
    assert "args={'vs': [1, 2], 's': 'y'}" in answer("programs", request)["python"]
    assert "vs" in answer("run", request | {"args": {}})["error"]["fact"]


# --------------------------------------------------------------------------------------------------------------- automaton, steps


def stepped(query: str, line: str) -> list[tuple[int, list[int], bool]]:
    found = answer("automaton", asked(query, line))
    return [(step["row"], step["states"], step["ends"]) for step in found["steps"]]


def test_live_states_follow_the_events() -> None:
    assert stepped("SELECT * WHERE A AS a ; B AS b", "A1 C2 B3 C4") == [
        (0, [1], False),
        (1, [1], False),
        (2, [1, 2], True),
        (3, [1], False),
    ]


def test_windows_end_what_is_too_old() -> None:
    assert [states for _, states, _ in stepped("SELECT * WHERE A AS a ; B AS b WITHIN 3", "A1 C4 C5 B6")] == [[1], [1], [], []]
    assert [states for _, states, _ in stepped("SELECT * WHERE A AS a ; B AS b WITHIN 2 EVENTS", "A1 C2 C3")] == [[1], [1], []]


def test_partitions_have_their_own_states_and_rows_stay_those_that_were_given() -> None:
    line = "B3(k=1) A1(k=1) A2(k=2) B4(k=3) A5(k=null)"
    found = answer("automaton", asked("SELECT * WHERE A AS a ; B AS b PARTITION BY k", line))
    assert [(step["row"], step["states"]) for step in found["steps"]] == [(1, [1]), (2, [1]), (0, [1, 2]), (3, []), (4, [])]
    assert found["partitioned"] is True


def test_comparisons_decide_which_states_are_live() -> None:
    request = asked("SELECT * WHERE A AS a ; A AS b FILTER a.v < b.v", "A1(v=5) A2(v=1) A3(v=2)")
    assert stepped(request["query"], request["source"]["text"]) == [(0, [1], False), (1, [1], False), (2, [1, 2], True)]
    assert answer("automaton", request)["note"] == ""


def test_where_comparisons_end_the_note_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "MAX_CONFIGURATIONS", 1)
    found = answer("automaton", asked("SELECT * WHERE A AS a ; B AS b FILTER a.v < b.v", "A1(v=5) A2(v=1) B3(v=1)"))
    assert found["note"].startswith("Behind event 2 of 3 comparisons between events are not evaluated")
    assert found["steps"][2]["ends"] is True


def test_too_many_steps_and_states_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "MAX_STEPS", 2)
    assert "MAX_STEPS" in answer("automaton", asked("SELECT * WHERE A", "A1 A2 A3"))["refused"]


MADE = "EVENT P(n) AS (SELECT a.v AS n WHERE A AS a ; B FILTER a[v > :least]) "


def test_events_that_definitions_make_are_compared_and_stepped_through() -> None:
    """Also where they begin, and with parameters of clauses that stepping leaves out."""
    query = f"{MADE} SELECT * WHERE C AS c ; P AS p FILTER c.v < p.n HAVING c.v > :more"
    line = "A0(v=9) C1(v=5) B2 A3(v=7) B4 A5(v=6) B6"
    found = answer("automaton", asked(query, line, args={"least": "6", "more": "0"}))
    assert not found["refused"]
    assert [(step["row"], step["made"], step["ends"]) for step in found["steps"]] == [
        (0, None, False),
        (1, None, False),
        (2, None, False),
        (None, "P", False),  # it begins before C
        (3, None, False),
        (4, None, False),
        (None, "P", False),
        (None, "P", True),
        (5, None, False),
        (6, None, False),
        (None, "P", False),
        (None, "P", True),
    ]
    assert found["note"] == "HAVING is not applied here."


def test_an_event_whose_definition_still_waits_begins_where_its_match_does() -> None:
    query = "EVENT P(n) AS (SELECT a.v AS n WHERE A AS a ; B NOT FOLLOWED BY D FOR 9) SELECT * WHERE C AS c ; P AS p FILTER c.v < p.n"
    found = answer("automaton", asked(query, "A1(v=2) C2(v=1) A3(v=2) B4", ended=False))
    assert [(step["row"], step["ends"]) for step in found["steps"]] == [
        (0, False),
        (1, False),
        (2, False),
        (3, False),
        (None, False),
        (None, True),
    ]


# ----------------------------------------------------------------------------------------------------------------- code, why not


def test_programs_hold_awkward_texts_and_values() -> None:
    query = 'SELECT * WHERE A AS a FILTER a[s != \'""" \\n\']'
    lines = '{"type": "A", "ts": "2026-01-01T10:00:00.5", "s": "x\\"y", "f": 1.5, "l": [1, 2], "b": true}'
    code = answer("programs", asked(query, lines, form="jsonl"))
    given = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(code["python"], given)
    assert len(given["matches"]) == 1
    assert "`l` array<bigint>" in code["pyspark"]
    assert "`ts` timestamp_ntz" in code["pyspark"]


def test_programs_of_many_events_leave_them_out() -> None:
    line = " ".join(f"A{time}" for time in range(limits.MAX_ROWS_OF_CODE + 1))
    assert "events = ...  # 101 events" in answer("programs", asked("SELECT * WHERE A", line))["python"]


def test_why_not_names_what_excludes_the_rows() -> None:
    request = asked("SELECT * WHERE A AS a ; B AS b WITHIN 3", "A1 C2 B9", rows=[2, 0, 2])
    assert "WITHIN 3" in answer("why_not", request)["text"]
    for rows in (None, "0", [-1], [True], [0.5], [7]):
        assert answer("why_not", request | {"rows": rows})["error"]["kind"] == "InputError"


def test_marks_need_no_type_column() -> None:
    matches = cepheid.query("SELECT * WHERE s AS a").run({"s": pa.table({"ts": [1, 2]})}, time="ts")
    assert Origins(matches).marks(1) == [{"row": 1, "variables": ["a"], "made": False}]


def test_options_say_how_events_are_read() -> None:
    given = ShownEvents(pa.Table.from_pylist(events("A1")), None, "ts")
    assert given.options == {"type": None, "time": "ts", "sort": True}


def test_variables_have_their_colours_also_with_measures() -> None:
    for targets in ("*", "count(b) AS n"):
        found = answer("run", asked(f"SELECT {targets} WHERE B AS z ; A AS b", "B1 A2"))
        assert found["colours"] == {"z": svg.COLOURS[0], "b": svg.COLOURS[1]}
        assert [mark["variables"] for mark in found["matches"][0]["marks"]] == [["z"], ["b"]]


def test_a_file_past_the_limit_gives_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_EVENTS", 2)
    for name, text in (
        ("e.csv", "type,ts\nA,1\nB,2\nC,3\n"),
        ("e.jsonl", '{"type": "A", "ts": 1}\n{"type": "B", "ts": 2}\n{"type": "C", "ts": 3}\n'),
    ):
        found = answer("upload", {"name": name, "data": base64.b64encode(text.encode()).decode()})
        assert found["notes"] == ["a sample: the first 2 of 3 events (MAX_EVENTS); `cepheid run` and Query.run read all"]
        assert [row[0] for row in answer("events", {"source": found["source"]})["rows"]] == ["A", "B"]
