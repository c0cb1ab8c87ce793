"""Rules as data: what rows say, what is refused, and what a recognizer keeps; the random rules are in tests/properties/test_rules.py."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import math
import pickle
import random
import re
import threading
import time as clock
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cepheid
from cepheid.engine.memory import container
from cepheid.errors import BindError, InputError, InUseError, LimitError, NotSupportedError, QuerySyntaxError, SchemaError, SnapshotError
from cepheid.testing import events as events_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PAIRS = "SELECT * WHERE A AS a ; B AS b WITHIN 10"
ABSENT = "SELECT * WHERE A AS a NOT FOLLOWED BY B FOR 5"


def stream(line: str) -> pa.Table:
    return pa.Table.from_pylist(events_of(line))


EVENTS = stream("A1 B2 A4 A5 B6 A8 B9 B12")


def spans(found: cepheid.RuleMatches) -> dict[tuple[str, Any], list[tuple[int, int]]]:
    return {tuple(version): sorted((match.start_time, match.end_time) for match in matches) for version, matches in found.found.items()}


def row(name: str, query: str | None = PAIRS, **columns: Any) -> dict[str, Any]:
    return {"name": name, "query": query, **{column.rstrip("_"): value for column, value in columns.items()}}


def test_a_version_acts_on_events_from_its_time_on() -> None:
    found = cepheid.rules([row("r", from_=4), row("s")]).run(EVENTS)
    assert spans(found)["r", 4] == [(4, 6), (4, 9), (4, 12), (5, 6), (5, 9), (5, 12), (8, 9), (8, 12)]
    assert len(found["s", None]) == 11
    assert len(found) == 2
    assert min(match.start for match in found["r", 4]) == 2, "positions are rows of the input"


def test_an_event_of_the_time_of_a_change_is_the_next_version_s() -> None:
    found = cepheid.rules([row("r"), row("r", "SELECT * WHERE A AS a", from_=5)]).run(EVENTS)
    assert spans(found) == {("r", None): [(1, 2), (1, 6), (1, 9), (4, 6), (4, 9), (4, 12)], ("r", 5): [(5, 5), (8, 8)]}


@pytest.mark.parametrize(("ends", "expected"), [(None, 6), ("finish", 6), ("stop", 1)])
def test_matches_that_have_begun_end_or_are_given_up(ends: str | None, expected: int) -> None:
    assert len(cepheid.rules([row("r", until=5, ends=ends)]).run(EVENTS)["r", None]) == expected
    deleted = row("r", None, from_=5, deleted=True, ends=ends)
    assert len(cepheid.rules([deleted, row("r")]).run(EVENTS)["r", None]) == expected
    assert len(cepheid.rules([row("r", ends=ends), row("r", "SELECT * WHERE C", from_=5)]).run(EVENTS)["r", None]) == expected


def test_what_deletes_a_rule_may_stop_all_before_it() -> None:
    rows = [row("r"), row("r", PAIRS, from_=5), row("r", None, from_=8, deleted=True, ends="stop")]
    assert spans(cepheid.rules(rows).run(EVENTS)) == {("r", None): [(1, 2), (1, 6), (4, 6)], ("r", 5): [(5, 6)]}


def test_a_rule_may_begin_anew_when_it_is_deleted() -> None:
    rows = [row("r", until=2), row("r", None, from_=5, deleted=True), row("r", from_=5)]
    assert spans(cepheid.rules(rows).run(EVENTS)) == {
        ("r", None): [(1, 2), (1, 6), (1, 9)],
        ("r", 5): [(5, 6), (5, 9), (5, 12), (8, 9), (8, 12)],
    }


def test_counts_stop_for_they_have_no_beginning() -> None:
    found = cepheid.rules([row("r", "SELECT COUNT(*) WHERE A ; B", until=7)]).run(EVENTS)
    assert [match.measures["count"] for match in found["r", None]] == [1, 3]
    rows = [row("r", "SELECT COUNT(*) WHERE A ; B", until=5), row("r", None, from_=9, deleted=True, ends="stop")]
    assert len(cepheid.rules(rows).run(EVENTS)["r", None]) == 1


def test_absences_are_decided_when_a_version_ends() -> None:
    rules = cepheid.rules([row("r", ABSENT, until=9, ends="stop"), row("s", ABSENT, until=9)])
    table = stream("A1 A3 A8 C20")
    assert spans(rules.run(table)) == {("r", None): [(1, 1), (3, 3)], ("s", None): [(1, 1), (3, 3), (8, 8)]}
    cut = cepheid.rules([row("r", ABSENT, until=7, ends="stop"), row("t", ABSENT, until=100, ends="stop")])
    for until, expected in (
        (None, {}),
        (6, {("r", None): [(1, 1)], ("t", None): [(1, 1)]}),
        ("end", {("r", None): [(1, 1)], ("t", None): [(1, 1), (3, 3)]}),
    ):
        found = cut.run(stream("A1 A3"), until=until)
        assert spans(found) == expected == spans(cut.run(stream("A1 A3"), until=until, engine="reference"))
    assert spans(cut.run(stream("A1 A3")).undecided) == {("r", None): [(1, 1), (3, 3)], ("t", None): [(1, 1), (3, 3)]}


def test_time_passes_behind_the_last_change() -> None:
    rows = [row("r", ABSENT), row("s", until=3)]
    assert spans(cepheid.rules(rows).run(stream("A1 A2"), until=20)) == {("r", None): [(1, 1), (2, 2)]}


def test_wrong_rows_are_refused_one_by_one() -> None:
    rows = [
        row("good"),
        row("syntax", "SELECT * WHERE ("),
        row("name", "SELECT * WHERE A AS a FILTER a[nothing > 1]"),
        row("argument", "SELECT * WHERE A AS a FILTER a[v > :limit]"),
        row("args", args=object()),
        row("json", args="[1]"),
        row("", "SELECT * WHERE A"),
        row("none", None),
        row("time", from_="yesterday"),
        row("backwards", from_=5, until=5),
        row("ends", ends="later"),
        row("deleted", deleted="yes"),
        row("good", "SELECT * WHERE (", from_=5),
    ]
    found = cepheid.rules(rows).run(EVENTS)
    assert [(each.name, type(each.error)) for each in found.refused] == [
        ("syntax", QuerySyntaxError),
        ("name", BindError),
        ("argument", BindError),
        *[(name, InputError) for name in ("args", "json", "", "none", "time", "backwards", "ends", "deleted")],
        ("good", QuerySyntaxError),
    ]
    assert len(found["good", None]) == 11, "the version before goes on"
    assert "rule `syntax`" in str(found.refused[0])


@pytest.mark.parametrize("name", [5, math.nan, True, b"r", ("r", 1), dt.date(2026, 1, 1), "\ud800", ""])
def test_whatever_the_name_is_a_refused_row_has_text(name: object) -> None:
    (refused,) = cepheid.rules([{"name": name, "query": PAIRS}, row("s")]).run(EVENTS).refused
    assert "is not the name of a rule" in str(refused.error)
    assert refused.name is None if name != name else refused.name == ("\\ud800" if name == "\ud800" else str(name))  # noqa: PLR0124 - NaN
    assert len(str(refused).encode()) > 0


def test_a_row_that_comes_again_is_refused_for_the_same_reason() -> None:
    recognizer = cepheid.rules([]).recognizer(EVENTS.schema)
    wrong = [row("wrong", "SELECT", from_=5), row("twice", from_=6), row("twice", "SELECT * WHERE A", from_=6)]
    first = [str(each) for each in recognizer.change(wrong)]
    recognizer.push(EVENTS)
    again = recognizer.change(wrong)
    assert [str(each) for each in again] == first
    assert len(first) == 3
    assert not any(each.late for each in again)


@pytest.mark.parametrize("column", ["FROM", "From", "DELETED", "Name", "QUERY"])
def test_columns_in_capitals_are_slips_of_the_pen(column: str) -> None:
    with pytest.raises(InputError, match=f"no column `{column}`"):
        cepheid.rules([{"name": "r", "query": PAIRS} | {column: None}] if column not in {"Name", "QUERY"} else [{column: "r"}])


def test_one_row_among_others_may_have_the_slip() -> None:
    with pytest.raises(InputError, match="no column `From`"):
        cepheid.rules([row("r", from_=3), {"name": "s", "query": PAIRS, "From": 3}])
    with pytest.raises(InputError, match="no column `From`"):
        cepheid.rules(pa.table({"name": ["r"], "query": [PAIRS], "from": [1], "From": [2]}))
    with pytest.raises(InputError, match="two columns `name`"):
        cepheid.rules(pa.table([pa.array(["r"]), pa.array(["s"]), pa.array([PAIRS])], names=["name", "name", "query"]))


def test_a_table_that_grows_may_change_the_types_of_its_columns() -> None:
    """Whole numbers become doubles where one has a fraction; what is the default may be written, or not."""
    hot = "SELECT * WHERE A AS a FILTER a.v > :l"
    table = EVENTS.append_column("v", pa.array(range(len(EVENTS))))
    first = [{"name": "a", "query": hot, "args": {"l": 2}, "from": 10}, {"name": "c", "query": PAIRS, "from": 11, "ends": None}]
    more = [*first[:1], first[1] | {"ends": "finish"}, {"name": "b", "query": hot, "args": {"l": 4.5}, "from": 11}]
    for given in (lambda rows: rows, pa.Table.from_pylist, pd.DataFrame):
        recognizer = cepheid.rules([]).recognizer(table.schema)
        recognizer.change(given(first))
        recognizer.change(given(more))
        assert recognizer.refused == ()
        assert len(recognizer.versions) == 3
    assert cepheid.rules(pd.DataFrame([row("r", from_=3), row("s")])).run(EVENTS).refused == ()


@pytest.mark.parametrize(
    ("given", "fact"),
    [
        ("nofile.jsonl", "there is no file"),
        ("folder.jsonl", "is a directory"),
        ("bad.jsonl.gz", "cannot be read"),
        ("s3://bucket/x.jsonl", "is an address"),
        ("rules.yaml", "do not end in .yaml"),
        ({"name": "r", "query": PAIRS}, "this is one row of rules"),
        ([{"nam": "r"}], "no column `nam`"),
    ],
)
def test_what_cannot_be_read_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: object, fact: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "bad.jsonl.gz").write_bytes(gzip.compress(b'{"name": "r"}')[:-9])
    (tmp_path / "rules.yaml").write_text("name: r")
    with pytest.raises(InputError, match=fact):
        cepheid.rules(given)
    with pytest.raises(InputError, match=fact):
        cepheid.rules([]).recognizer(EVENTS.schema).change(given)


@pytest.mark.parametrize("name", ["name", "query", "from", "deleted"])
def test_a_rule_may_have_the_name_of_a_column(name: str) -> None:
    assert [each["name"] for each in cepheid.rules({name: PAIRS, "other": PAIRS}).rows] == [name, "other"]
    columns = cepheid.rules({"name": ["r", "s"], "query": [PAIRS, PAIRS]})
    assert [each["name"] for each in columns.rows] == ["r", "s"]
    assert len(cepheid.rules({})) == 0


def test_files_of_several_kinds(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(row("a", args={}) | {"ts": "soon"}) + "\n\n" + json.dumps(row("b", from_=5)))
    (tmp_path / "b.csv").write_text(f"name,query,from\nc,{PAIRS},4\n")
    (tmp_path / "c.csv").write_text("name,query,from\n")
    pq.write_table(pa.table({"name": ["d"], "query": [PAIRS], "ts": ["x"]}), tmp_path / "d.parquet")
    rules = cepheid.rules(str(tmp_path / "*"))
    assert [each["name"] for each in rules.rows] == ["a", "b", "c", "d"]
    assert len(cepheid.rules(tmp_path / "c.csv")) == 0
    assert rules.run(EVENTS).refused == ()
    recognizer = cepheid.rules([]).recognizer(EVENTS.schema)
    assert recognizer.change(rules) == ()
    assert recognizer.change({"e": PAIRS, "f": cepheid.query(PAIRS)}) == ()
    assert len(recognizer.versions) == 6


@pytest.mark.parametrize(
    ("kind", "time", "fact"),
    [
        (pa.int64(), "3", "write a number, without quotes"),
        (pa.timestamp("us", "UTC"), "2026-01-31T10:00:00", "has no offset"),
        (pa.timestamp("us", "UTC"), "2026-01-31T10:00:00.123456789Z", "finer than a microsecond"),
        (pa.timestamp("us"), "soon", "write it like 2026-01-31T10:00:00$"),
    ],
)
def test_times_that_cannot_be_say_how_to_write_them(kind: pa.DataType, time: str, fact: str) -> None:
    (refused,) = cepheid.rules([row("r", from_=time)]).run(pa.table({"type": ["A"], "ts": pa.array([1], kind)})).refused
    assert re.search(fact, str(refused.error))


def test_matches_that_wait_are_within_the_limit_too() -> None:
    events = pa.table({"type": ["A"] * 12, "ts": range(12)})
    with pytest.raises(LimitError, match="in the query `r`"):
        cepheid.rules([row("r", "SELECT * WHERE A+ AS a NOT FOLLOWED BY B FOR 100")]).run(events, max_bytes=1000)


def test_a_key_may_have_any_name() -> None:
    table = pa.table({"type": ["A", "B"], "ts": [1, 2], "x": [1, 1], "xx": [2, 2]})
    rules = cepheid.rules([row("r", PAIRS.replace("WITHIN", "PARTITION BY x, xx WITHIN"))])
    (found,) = rules.run(table).to_arrow(keys=["x", "xx"]).to_pylist()
    assert (found["x"], found["xx"]) == (1, 2)


def test_rows_that_contradict_each_other_do_not_act_in_any_order() -> None:
    rows = [row("r"), row("r", "SELECT * WHERE A", from_=5), row("r", "SELECT * WHERE B", from_=5), row("r", from_=5)]
    for _ in range(6):
        random.Random(1).shuffle(rows)
        found = cepheid.rules(rows).run(EVENTS)
        assert (list(found), len(found["r", None])) == ([("r", None)], 11)
        assert {(each.name, each.since) for each in found.refused} == {("r", 5)}
    assert not cepheid.rules([row("r"), row("r"), row("r")]).run(EVENTS).refused


def test_a_row_that_comes_after_its_time_is_late() -> None:
    recognizer = cepheid.rules([row("r")]).recognizer(EVENTS.schema)
    assert recognizer.known is None
    recognizer.push(EVENTS.slice(0, 3))
    assert recognizer.known == 5, "the events of the time 4 have been read"
    late, also = recognizer.change([row("s", from_=4), row("t"), row("u", from_=5)])
    assert (late.name, late.late, also.name, also.late) == ("s", True, "t", True)
    assert "from 5 on" in str(late.error.help)
    assert recognizer.refused == (late, also)
    assert recognizer.change([row("r"), row("u", from_=5)]) == (), "what is known changes nothing"
    recognizer.advance_time(7)
    assert recognizer.known == 7
    assert [each.late for each in recognizer.change([row("v", from_=6), row("w", from_=7)])] == [True]


def test_with_lateness_rules_have_the_time_that_events_have() -> None:
    recognizer = cepheid.rules([]).recognizer(EVENTS.schema, lateness=3)
    recognizer.push(EVENTS.slice(0, 5))
    assert (recognizer.latest, recognizer.known) == (2, 3)
    assert not recognizer.change([row("r", from_=4)])
    recognizer.push(EVENTS.slice(5))
    found = recognizer.advance_time(100)
    assert recognizer.late.num_rows == 0
    assert spans(found)["r", 4][-1] == (8, 12)


def test_versions_that_are_over_are_forgotten() -> None:
    recognizer = cepheid.rules([row("r"), row("r", from_=5, until=6), row("s", "SELECT * WHERE A ; B", from_=5, until=6)]).recognizer(
        EVENTS.schema
    )
    assert recognizer.versions == {("r", None): 5, ("r", 5): 6, ("s", 5): 6}
    recognizer.push(EVENTS)
    assert set(recognizer.versions) == {("r", None), ("r", 5), ("s", 5)}
    recognizer.advance_time(50)
    assert recognizer.versions == {("s", 5): 6}, "without a window it is never known that nothing follows"
    assert not recognizer.change([row("s", None, from_=60, deleted=True, ends="stop")])
    recognizer.push(stream("B70"))
    assert recognizer.versions == {}


def test_memory_is_given_back() -> None:
    recognizer = cepheid.rules([]).recognizer(EVENTS.schema)
    sizes = []
    for turn in range(40):
        start = 100 * turn
        assert not recognizer.change(
            [row("r", f"{PAIRS[:-3]} 10", from_=start), row(f"n{turn}", f"SELECT * WHERE A AS a ; B FILTER a[ts > {turn}]", from_=start)]
        )
        assert not recognizer.change([row(f"n{turn}", None, from_=start + 50, deleted=True, ends="stop")])
        recognizer.push(stream(" ".join(f"A{start + place}" for place in range(60))))
        sizes.append(recognizer.memory_usage())
    assert sizes[-1] < 3 * sizes[3]


def test_a_snapshot_has_the_rules() -> None:
    rows = [
        row("r", "SELECT * WHERE A AS a ; B AS b FILTER a[v >= :least]", args={"least": least}, from_=least, until=6) for least in (1, 2, 4)
    ]
    rows += [
        row("s", ABSENT),
        row("t", None, from_=9, deleted=True),
        row("u", from_=5),
        row("u", "SELECT * WHERE A", from_=5),
        row("u", from_=9),
    ]
    table = stream("A1 B2 A4 A5 B6 A8 B9 B12 A20").append_column("k", pa.array([1] * 9))
    table = (
        table.set_column(table.column_names.index("k"), "k", pa.array([1] * 9))
        if "v" in table.column_names
        else table.append_column("v", pa.array(range(9)))
    )
    expected = spans(cepheid.rules(rows).run(table))
    for cut in range(10):
        first = cepheid.rules(rows).recognizer(table.schema)
        found = [first.push(table.slice(0, cut))]
        second = cepheid.rules(rows).recognizer(table.schema, snapshot=first.snapshot())
        assert second.versions == first.versions
        found += [second.push(table.slice(cut)), second.advance_time(21)]
        merged: dict[Any, list[Any]] = {}
        for each in found:
            for version, own in spans(each).items():
                merged[version] = sorted([*merged.get(version, []), *own])
        assert merged == expected, cut


def test_a_snapshot_over_events_of_another_schema_names_the_rule() -> None:
    rules = cepheid.rules(
        [row("acts", "SELECT * WHERE A AS a FILTER a.v > 1"), row("comes", "SELECT * WHERE A AS a FILTER a.w > 1", from_=99)]
    )
    schema = pa.schema([*EVENTS.schema, ("v", pa.int64()), ("w", pa.int64())])
    recognizer = rules.recognizer(schema)
    recognizer.push(pa.table({**dict(zip(EVENTS.column_names, EVENTS.columns, strict=True)), "v": [1] * 8, "w": [1] * 8}, schema))
    with pytest.raises(SnapshotError, match="the rule `acts` does not go with these events: unknown attribute `v`"):
        cepheid.rules([]).recognizer(schema.remove(schema.get_field_index("v")), snapshot=recognizer.snapshot())
    with pytest.raises(SnapshotError, match="the rule `acts` was compiled otherwise: over events of another schema"):
        cepheid.rules([]).recognizer(schema.append(pa.field("x", pa.int64())), snapshot=recognizer.snapshot())


def test_a_snapshot_of_others_or_a_damaged_one_is_refused() -> None:
    recognizer = cepheid.rules([row("r"), row("s", ABSENT)]).recognizer(EVENTS.schema)
    recognizer.push(EVENTS)
    data = recognizer.snapshot()
    with pytest.raises(SnapshotError):
        cepheid.rules([]).recognizer(EVENTS.schema.append(pa.field("more", pa.int64())), snapshot=data)
    with pytest.raises(SnapshotError):
        cepheid.query(PAIRS).recognizer(EVENTS.schema, snapshot=data)
    with pytest.raises(SnapshotError):
        recognizer.restore(data[:-5])
    assert recognizer.restore(data).versions == {("r", None): None, ("s", None): None}


def test_rows_come_in_any_form(tmp_path: Path) -> None:
    rows = [row("r", "SELECT * WHERE A AS a ; B FILTER a[ts > :least]", args='{"least": 4}', from_=2, until=None, author="me")]
    path = tmp_path / "rules.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    expected = spans(cepheid.rules(rows).run(EVENTS))
    assert expected
    for given in (pa.Table.from_pylist(rows), pa.Table.from_pylist(rows).to_pandas(), str(path)):
        found = cepheid.rules(given).run(EVENTS)
        assert (found.refused, spans(found)) == ((), expected)
    query = cepheid.query("SELECT * WHERE A AS a ; B FILTER a[ts > :least]", args={"least": 4})
    assert list(spans(cepheid.rules({"r": query}).run(EVENTS)).values()) == list(expected.values())


def test_times_as_the_column_has_them() -> None:
    begin = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    table = pa.table({"type": ["A", "B"], "ts": pa.array([begin, begin + dt.timedelta(hours=1)], pa.timestamp("us", "UTC"))})
    query = "SELECT * WHERE A OR B"
    rules = cepheid.rules(
        [row("r", query, from_="2026-01-01T00:30:00+00:00"), row("s", query, from_=begin), row("t", query, from_="2026-01-01")]
    )
    found = rules.run(table)
    assert {version: len(matches) for version, matches in found.found.items()} == {
        ("r", begin + dt.timedelta(minutes=30)): 1,
        ("s", begin): 2,
    }
    (refused,) = found.refused
    assert "has no offset" in str(refused.error)


def test_what_are_no_rows() -> None:
    with pytest.raises(InputError, match="no column `form`"):
        cepheid.rules([{"name": "r", "query": PAIRS, "form": 5}])
    with pytest.raises(InputError, match="no column `name`"):
        cepheid.rules(pa.table({"query": [PAIRS]}))
    with pytest.raises(QuerySyntaxError):
        cepheid.rules({"r": "SELECT"})
    with pytest.raises(InputError, match="no time column"):
        cepheid.rules([row("r")]).run(pa.table({"type": ["A"]}))
    with pytest.raises(NotSupportedError, match="one table"):
        cepheid.rules([row("r")]).run({"a": EVENTS, "b": EVENTS})


def test_then_needs_events_of_a_time_together() -> None:
    then = row("r", "SELECT * WHERE A THEN (B ; A) TIME MODEL ACTIVE_OFFICE")
    (refused,) = cepheid.rules([then]).recognizer(EVENTS.schema).refused
    assert isinstance(refused.error, NotSupportedError)
    assert not cepheid.rules([then]).recognizer(EVENTS.schema, lateness=0).refused
    assert cepheid.rules([then]).run(EVENTS).found


def test_events_without_a_key_are_counted_while_a_version_acts() -> None:
    table = pa.table({"type": ["A", "B", "A", "B"], "ts": [1, 2, 3, 4], "k": [1, None, None, 1]})
    found = cepheid.rules([row("r", f"{PAIRS[:25]} PARTITION BY k", until=3), row("s", PAIRS, from_=2)]).run(table)
    assert not found.refused
    assert {version.name: matches.null_keys for version, matches in found.items()} == {"r": 1, "s": 0}


def test_one_table_of_all_matches() -> None:
    rules = cepheid.rules(
        {"pairs": PAIRS, "sizes": "SELECT count(a) AS n, last(a.ts) AS at WHERE A+ AS a ; B", "counts": "SELECT COUNT(*) WHERE A ; B"}
    )
    table = rules.run(EVENTS).to_arrow()
    assert table.column_names == ["rule", "since", "start_time", "end_time", "events", "measures"]
    first = {each["rule"]: each for each in reversed(table.to_pylist())}
    assert [(name, [event["ts"] for event in events]) for name, events in first["pairs"]["events"]] == [("a", [1]), ("b", [2])]
    assert first["sizes"]["measures"] == [("n", "1"), ("at", "1")]
    assert first["counts"]["measures"][0] == ("count", "1")
    assert rules.run(EVENTS.slice(0, 0)).to_arrow().schema == table.schema
    with pytest.raises(SchemaError, match="no `k`"):
        rules.run(EVENTS).to_arrow(keys=["k"])
    with pytest.raises(NotSupportedError, match=r"`pairs`.*not partitioned by `type`"):
        rules.run(EVENTS).to_arrow(keys=["type"])


def test_results_can_be_pickled_and_printed() -> None:
    found = cepheid.rules([row("r"), row("bad", "SELECT")]).run(EVENTS)
    again = pickle.loads(pickle.dumps(found))
    assert spans(again) == spans(found)
    assert repr(found) == "<matches of 1 version of rules: r: 11; 1 refused>"
    assert repr(cepheid.rules([row("r"), row("s")])) == "<2 rows of rules: r, s>"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * WHERE A AS a ; B FILTER a.$index > 2 WITHIN 2",
        "SELECT * WHERE A AS a ; B AS b FILTER a.$index > 2 AND a.k = b.k WITHIN 9",
        "SELECT * WHERE A AS a ; B FILTER a.$index > 0 WITHIN 9 PARTITION BY k",
        "SELECT * WHERE ((A ; B) WITHIN 2 EVENTS) ; B WITHIN 9 PARTITION BY k",
    ],
)
def test_places_are_counted_from_the_beginning_of_a_version(query: str) -> None:
    table = stream("C1 A2 B3 A4 B5 A6 B7 B8").append_column("k", pa.array([1, 2, 1, 2, 1, 2, 2, 2]))
    alone = cepheid.query(query).run(table.slice(1))
    expected = sorted((match.start_time, match.end_time) for match in alone)
    rules = cepheid.rules([row("r", query, from_=2), row("s", query)])
    assert expected
    for engine in (None, "reference"):
        assert spans(rules.run(table, engine=engine))["r", 2] == expected
    recognizer = rules.recognizer(table.schema)
    found = []
    for place in range(len(table)):
        found += spans(recognizer.restore(recognizer.snapshot()).push(table.slice(place, 1))).get(("r", 2), [])
    assert sorted(found) == expected


def test_rules_join_the_family_of_their_shape_and_leave_it() -> None:
    text = "SELECT * WHERE A AS a ; B AS b FILTER a[ts > :least] WITHIN 10"
    recognizer = cepheid.rules([row(f"r{least}", text, args={"least": least}) for least in range(300)]).recognizer(EVENTS.schema)
    for place in range(len(EVENTS)):
        time = EVENTS["ts"][place].as_py()
        assert not recognizer.change(
            [row(f"new{time}", text, args={"least": time}, from_=time), row(f"r{time}", None, from_=time, deleted=True, ends="stop")]
        )
        found = recognizer.push(EVENTS.slice(place, 1))
        assert all(version.since is None or version.since < time for version in found.found)
    (member,) = recognizer._members.families
    assert len(member.family.live) == 300
    assert len(member.family.queries) == 300, "numbers are given again"


def test_a_thousand_rules_cost_little_more_than_ten() -> None:
    text = "SELECT * WHERE A AS a ; B AS b FILTER a[v = :value] AND b[v = :value] WITHIN 10"
    count = 20_000
    table = pa.table({"type": ["A", "B"] * (count // 2), "ts": range(count), "v": [place % 5000 for place in range(count)]})

    def cost(rules: int) -> float:
        recognizer = cepheid.rules([row(f"r{value}", text, args={"value": value}) for value in range(rules)]).recognizer(table.schema)
        recognizer.push(table.slice(0, 1))
        started = clock.thread_time()
        recognizer.push(table.slice(1))
        return clock.thread_time() - started

    assert cost(1000) < 20 * cost(10) + 1


def test_two_threads_do_not_share_a_recognizer() -> None:
    recognizer = cepheid.rules([row("r")]).recognizer(EVENTS.schema)
    inside, go = threading.Event(), threading.Event()
    failed: list[BaseException] = []

    def held() -> None:
        with recognizer.reading(EVENTS):
            inside.set()
            go.wait(30)

    thread = threading.Thread(target=held)
    thread.start()
    inside.wait(30)
    try:
        recognizer.change([row("s", from_=100)])
    except InUseError as error:
        failed.append(error)
    go.set()
    thread.join()
    assert failed


def test_rows_that_contradict_each_other_may_be_all_rows_of_their_rule() -> None:
    rows = [row("r"), row("r", "SELECT * WHERE A"), row("s", "SELECT * WHERE A")]
    found = cepheid.rules(rows).run(EVENTS)
    assert ([each.name for each in found.refused], list(found)) == (["r", "r"], [("s", None)])


def test_what_tables_have_for_no_value_is_none() -> None:
    frame = pd.DataFrame([row("r"), {"name": "s", "from": dt.datetime(2026, 1, 1, tzinfo=dt.UTC), "deleted": True, "ends": "stop"}])
    for nothing in (float("nan"), pd.NA, pd.NaT):
        rows = frame.astype(object).where(frame.notna(), nothing).to_dict("records")
        rows[0] |= {"until": nothing, "args": nothing}
        found = cepheid.rules(rows).run(EVENTS)
        assert (len(found["r", None]), [each.name for each in found.refused]) == (11, ["s"]), "2026 is no integer"
    (refused,) = cepheid.rules([row("r", until=np.array([1, 2]))]).run(EVENTS).refused
    assert isinstance(refused.error, InputError)


def test_days_and_times_that_the_column_cannot_have() -> None:
    days = pa.table({"type": ["A", "A"], "ts": [dt.date(2026, 1, 1), dt.date(2026, 1, 2)]})
    found = cepheid.rules([row("r", "SELECT * WHERE A", from_="2026-01-02"), row("s", from_="2026-01-02T00:00:00")]).run(days)
    assert [match.start_time for match in found["r", dt.date(2026, 1, 2)]] == [dt.date(2026, 1, 2)]
    assert ["write it like 2026-01-31" in str(each.error) for each in found.refused] == [True]
    seconds = days.set_column(1, "ts", days["ts"].cast(pa.timestamp("s")))
    (refused,) = cepheid.rules([row("r", "SELECT * WHERE A", from_="2026-01-01T00:00:00.5")]).run(seconds).refused
    assert "finer than the column" in str(refused.error)


@pytest.mark.parametrize(
    ("kind", "time"),
    [
        (pa.int32(), 2**31 - 1),
        (pa.int64(), 2**63 - 1),
        (pa.timestamp("ns"), np.datetime64(2**63 - 1, "ns")),
        (pa.date64(), dt.date(2026, 1, 1)),
    ],
)
def test_after_the_greatest_time_every_row_is_late(kind: pa.DataType, time: Any) -> None:
    table = pa.table({"type": ["A"], "ts": pa.array([time], kind)})
    recognizer = cepheid.rules([row("r", "SELECT * WHERE A", until=time)]).recognizer(table.schema)
    recognizer.push(table)
    (refused,) = recognizer.change([row("s", "SELECT * WHERE A", from_=time)])
    assert refused.late
    assert recognizer.known == (dt.date(2026, 1, 2) if pa.types.is_date64(kind) else table["ts"][0].as_py())


def test_windows_may_end_after_the_greatest_time() -> None:
    last = 2**63 - 1
    table = pa.table({"type": ["A", "B"], "ts": [last - 3, last]})
    for until in (last - 2, last):
        rules = cepheid.rules([row("r", until=until)])
        assert spans(rules.run(table)) == spans(rules.run(table, engine="reference")) == {("r", None): [(last - 3, last)]}


def test_what_ends_a_change_in_the_middle_loses_no_row() -> None:
    class Stop(str):
        __slots__ = ()

        def __bool__(self) -> bool:
            raise KeyboardInterrupt

    recognizer = cepheid.rules([]).recognizer(EVENTS.schema)
    with pytest.raises(KeyboardInterrupt):
        recognizer.change([row("r"), {"name": Stop("s")}])
    assert recognizer.change([row("r"), row("s")]) == ()
    assert set(spans(recognizer.push(EVENTS))) == {("r", None), ("s", None)}


def test_nothing_changes_in_a_state_that_is_incomplete() -> None:
    recognizer = cepheid.rules([row("r")]).recognizer(EVENTS.schema, max_bytes=1)
    with pytest.raises(LimitError, match="in the query `r`"):
        recognizer.push(EVENTS)
    with pytest.raises(SnapshotError, match="stopped in the middle"):
        recognizer.change([row("s", from_=100)])


@pytest.mark.parametrize(
    "query",
    [
        "SELECT MAX * WHERE A+ AS a ; B",
        "EVENT P(one) AS (SELECT 1 AS one WHERE A) SELECT * WHERE P ; B",
        "SELECT * WHERE A NOT FOLLOWED BY C FOR 2",
    ],
)
def test_a_limit_names_the_rule(query: str) -> None:
    rules = cepheid.rules([row("a b", query)])
    for ask in (lambda: rules.recognizer(EVENTS.schema, max_bytes=1).push(EVENTS), lambda: rules.run(EVENTS, max_bytes=1)):
        with pytest.raises(LimitError, match="in the query `a b`") as raised:
            ask()
        assert "sample" not in str(raised.value)
        assert "batches" not in str(raised.value)


def forged(recognizer: cepheid.RulesRecognizer, change: Callable[[dict[str, Any]], Any]) -> bytes:
    """A snapshot in which the rules have been changed, sealed."""
    fingerprint = recognizer._fingerprint()
    sections = {name: bytes(content) for name, content in container.unpack(recognizer.snapshot(), fingerprint=fingerprint).items()}
    said = json.loads(sections["rules"])
    change(said)
    return container.pack(sections | {"rules": json.dumps(said).encode()}, fingerprint=fingerprint)


@pytest.mark.parametrize(
    "change",
    [
        lambda said: said["rows"][0].__setitem__(4, {}),
        lambda said: said["rows"][0].__setitem__(4, -(1 << 63) - 1),
        lambda said: said["rows"][0].__setitem__(5, "later"),
        lambda said: said["rows"].append(["s", "SELECT * WHERE A", 5, 100, None, None]),
        lambda said: said["families"].append([None]),
        lambda said: said["families"].pop(),
        lambda said: said["families"].append(said["families"][0]),
        lambda said: said["alone"].update({said["families"].pop()[0]: 0}),
        lambda said: said["contradicting"].append(["r", 5.5, True]),
        lambda said: said["nulls"].append(["r", 5, "many"]),
    ],
)
def test_forged_rules_are_refused(change: Callable[[dict[str, Any]], Any]) -> None:
    recognizer = cepheid.rules([row("r"), row("s", ABSENT), row("t", "SELECT * WHERE A")]).recognizer(EVENTS.schema)
    recognizer.push(EVENTS)
    recognizer.restore(forged(recognizer, lambda _: None))
    with pytest.raises(SnapshotError):
        recognizer.restore(forged(recognizer, change))


def test_many_versions_that_begin_one_by_one_and_end_together() -> None:
    """Eight times as many begin in less than 32 times the time, where each with each would be 64 times; and to end them is next to nothing."""
    few, many = (begun_and_ended(count) for count in (75, 600))
    assert many[0] < 32 * few[0]
    assert many[1] < many[0] / 10


def begun_and_ended(count: int) -> tuple[float, float]:
    """How long it takes that so many versions begin, and that they end."""
    text = "SELECT * WHERE A AS a ; B FILTER a[ts > :least] WITHIN 10"
    recognizer = cepheid.rules([row(f"r{place}", text, args={"least": place}) for place in range(count)]).recognizer(EVENTS.schema)
    recognizer.push(stream("A1"))
    recognizer.change([row(f"r{place}", text, args={"least": place + 1}, from_=100 + place) for place in range(count)])
    recognizer.change([row(f"r{place}", None, from_=10_000, deleted=True) for place in range(count)])
    started = clock.thread_time()
    recognizer.push(stream(f"A100 A{100 + count + 50}"))
    begun = clock.thread_time()
    recognizer.push(stream("A10000 A20000"))
    ended = clock.thread_time()
    assert recognizer.versions == {}
    return begun - started, ended - begun
