"""`cepheid watch --rules`: files of rules that change, lines that arrive, and the matches of `cepheid.rules` over the same events."""

from __future__ import annotations

import datetime as dt
import functools
import io
import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

import cepheid
from cepheid.cli.app import app
from cepheid.cli.settings import NullKeys, Watching
from cepheid.cli.watch_rules import watch_rules
from cepheid.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Step = bytes | Callable[[], object]

HOT = "SELECT * WHERE A AS a FILTER a[v > :limit] PARTITION BY k"
PAIRS = "SELECT * WHERE A AS a ; B AS b PARTITION BY k WITHIN 20 seconds"
ABSENT = "SELECT * WHERE A AS a NOT FOLLOWED BY B FOR 5 seconds PARTITION BY k"
BEGIN = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)


def at(second: float) -> str:
    return (BEGIN + dt.timedelta(seconds=second)).isoformat().replace("+00:00", "Z")


def event(kind: str, second: float, v: float = 5, k: int | None = 1, **more: Any) -> dict[str, Any]:
    return {"type": kind, "ts": at(second), "k": k, "v": v, **more}


def iso(value: Any) -> Any:
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, dt.datetime) else value


def lines(*events: dict[str, Any]) -> bytes:
    return "".join(json.dumps(each) + "\n" for each in events).encode()


def put(path: Path, *rows: dict[str, Any]) -> None:
    path.write_bytes(lines(*rows))


class Given:
    """What arrives: bytes, and what happens between them."""

    def __init__(self, steps: list[Step]) -> None:
        self._steps = iter(steps)

    def read(self, timeout: float | None) -> bytes | None:
        assert timeout is not None, "rules may come while no line does"
        for step in self._steps:
            if isinstance(step, bytes):
                return step
            step()
            return b""
        return None


def watched(folder: Path, *steps: Step, **settings: Any) -> list[dict[str, Any]]:
    out = io.StringIO()
    watch_rules(folder, Given(list(steps)), Watching(**settings), None, out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def spans(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted((each["rule"], str(each["since"]), str(each["k"]), each["start_time"], each["end_time"]) for each in found)


def test_a_match_has_the_name_of_its_rule_and_the_lines_of_its_events(tmp_path: Path) -> None:
    put(tmp_path / "rules.jsonl", {"name": "hot", "query": HOT, "args": {"limit": 4}, "from": at(1)})
    (found,) = watched(tmp_path, lines(event("A", 0), event("A", 1, note={"x": [1, "\u00e9"]})))
    assert found == {
        "rule": "hot",
        "since": at(1),
        "k": 1,
        "start_time": at(1),
        "end_time": at(1),
        "a": [event("A", 1, note={"x": [1, "\u00e9"]})],
    }


def test_rules_that_come_change_and_go(tmp_path: Path) -> None:
    put(tmp_path / "a.jsonl", {"name": "hot", "query": HOT, "args": {"limit": 4}})
    rows: list[dict[str, Any]] = [
        {"name": "hot", "query": HOT, "args": {"limit": 4}},
        {"name": "hot", "query": HOT, "args": {"limit": 5.5}, "from": at(3)},
        {"name": "hot", "from": at(6), "deleted": True},
    ]
    found = watched(
        tmp_path,
        lines(event("A", 1), event("A", 2)),
        lambda: put(tmp_path / "a.jsonl", *rows[:2]),
        lines(event("A", 3), event("A", 4, 6)),
        lambda: put(tmp_path / "b.jsonl", rows[2]),
        lines(event("A", 5, 6), event("A", 6, 6), event("A", 7, 7)),
    )
    assert [(each["since"], each["end_time"]) for each in found] == [(None, at(1)), (None, at(2)), (at(3), at(4)), (at(3), at(5))]


def test_random_rules_give_what_the_table_gives(tmp_path: Path, cases: int, seed: int) -> None:
    for number in range(cases // 4):
        rng = random.Random(f"{seed}/watch rules/{number}")
        folder = tmp_path / str(number)
        folder.mkdir()
        events = [
            event(rng.choice("ABC"), second, rng.randrange(10), rng.choice([1, 2, None][: 3 if second > 3 else 2]))
            for second in range(rng.randint(2, 40))
        ]
        rows: list[dict[str, Any]] = [{"name": "first", "query": HOT, "args": {"limit": 4.5}}]
        for name in "rst":
            for since in sorted(rng.sample(range(40), rng.randint(0, 3))):
                query = rng.choice([HOT, PAIRS, ABSENT])
                args = {"limit": rng.randrange(9)} if query == HOT else {}
                rows.append({"name": name, "query": query, "args": args, "from": at(since), "ends": rng.choice(["finish", "stop"])})
        lateness = rng.choice([None, "3s"])
        arrival = sorted(range(len(events)), key=lambda place: place + (rng.random() * 2.5 if lateness else 0))
        put(folder / "0.jsonl", *[row for row in rows if row.get("from") is None or row["from"] < at(10)])
        steps: list[Step] = []
        for place in arrival:
            steps.append(lines(events[place]))
            # In time: before an event of its time, or of the time after it, has come.
            told = [row for row in rows if row.get("from") == at(place + 4)]
            if told:
                steps.append(functools.partial(put, folder / f"{place + 1}.jsonl", *told))
        null_keys = rng.choice(list(NullKeys))
        found = watched(folder, *steps, lateness=lateness, null_keys=null_keys)
        expected = cepheid.rules(rows).run([each | {"ts": dt.datetime.fromisoformat(each["ts"])} for each in events], null_keys=null_keys)
        said = f"CEPHEID_SEED={seed} {number}\n{rows}\n{events}"
        assert not expected.refused, said
        own = expected.to_arrow(keys=["k"]).to_pylist()
        times = [{name: iso(value) for name, value in each.items()} for each in own]
        assert spans(found) == spans(times), said


def test_rows_that_are_refused_are_told_once_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong: list[dict[str, Any]] = [
        {"name": "wrong", "query": "SELECT"},
        {"name": 5, "query": HOT},
        {"name": "two", "query": "SELECT a.v AS rule WHERE A AS a"},
        {"name": "keyed", "query": "SELECT * WHERE A PARTITION BY since"},
        {"name": "late", "query": HOT, "args": {"limit": 3}, "from": at(0)},
    ]
    more = [*wrong, {"name": "hot", "query": HOT, "args": {"limit": 3}, "from": at(2)}]
    steps: list[Step] = [
        lines(event("A", 1, since=3)),
        lambda: put(tmp_path / "a.jsonl", *wrong),
        b"",
        lambda: put(tmp_path / "a.jsonl", *more),
    ]
    found = watched(tmp_path, *steps, lines(event("A", 3, since=3)))
    assert [each["rule"] for each in found] == ["hot"]
    told = capsys.readouterr().err
    for fact in (
        "note: the rule `wrong`: error: expected `*`",
        "note: the rule `5`: error: 5 is not the name",
        "note: the rule `two`: error: a match would have two `rule`",
        "note: the rule `keyed`: error: a match would have two `since`",
        "note: the rule `late`: error: it came after its time",
        "note: 5 rows of rules refused",
    ):
        assert told.count(fact) == 1, fact


def test_files_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At the start they are an error; later a note, until they change."""
    (tmp_path / ".hidden.jsonl").write_text("nonsense")
    (tmp_path / "notes.txt").write_text("nonsense")
    (tmp_path / "empty.jsonl").write_text("")
    steps: list[Step] = [
        lines(event("A", 1)),
        lambda: (tmp_path / "a.jsonl").write_text('{"name": "hot", "que'),
        b"",
        lambda: (tmp_path / "b.csv").write_text("named,query\nr,SELECT\n"),
        lambda: put(tmp_path / "a.jsonl", {"name": "hot", "query": HOT, "args": '{"limit": 3}', "from": at(2)}),
        lines(event("A", 2)),
    ]
    found = watched(tmp_path, *steps)
    assert [each["rule"] for each in found] == ["hot"]
    told = capsys.readouterr().err
    assert told.count("a.jsonl is not read until it changes: error: ") == 1
    assert told.count("b.csv is not read until it changes: error: rules have no column `named`") == 1
    with pytest.raises(InputError, match="no column `named`"):
        watched(tmp_path, lines(event("A", 1)))
    with pytest.raises(InputError, match="there is no"):
        watched(tmp_path / "nothing", lines(event("A", 1)))
    assert [each["rule"] for each in watched(tmp_path / "a.jsonl", lines(event("A", 2)))] == ["hot"]


def test_files_that_go_change_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "rules"
    folder.mkdir()
    put(folder / "a.jsonl", {"name": "hot", "query": HOT, "args": {"limit": 3}})
    steps: list[Step] = [lines(event("A", 1)), (folder / "a.jsonl").unlink, lines(event("A", 2)), folder.rmdir, lines(event("A", 3))]
    assert [each["end_time"] for each in watched(folder, *steps)] == [at(1), at(2), at(3)]
    assert "note" not in capsys.readouterr().err


def test_events_without_a_key_and_matches_that_wait_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path / "a.jsonl", {"name": "absent", "query": ABSENT}, {"name": "hot", "query": HOT, "args": {"limit": 3}})
    watched(tmp_path, lines(event("A", 1), event("A", 2, k=None), event("A", 3, k=None)))
    told = capsys.readouterr().err
    assert "of 2 versions of rules leave out events without a key: up to 2 events" in told
    assert "1 match is not decided yet" in told
    assert "1 match in 3 events" in told


def test_attributes_are_those_of_the_first_event_and_of_the_rules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A number that a rule of the start compares is a double; an attribute that the first event lacks is guessed from such a rule."""
    put(tmp_path / "a.jsonl", {"name": "speed", "query": "SELECT * WHERE A AS a FILTER a[v > 1 AND speed > 1]"})
    later = {"name": "other", "query": "SELECT * WHERE A AS a FILTER a[n = 3]", "from": at(1)}
    none = {"name": "none", "query": "SELECT * WHERE A AS a FILTER a[m = 3]", "from": at(1)}
    steps: list[Step] = [
        lines(event("A", 0, 5, n=3)),
        lambda: put(tmp_path / "b.jsonl", later, none),
        lines(event("A", 1, 5.5, speed=2.5, n=3)),
    ]
    assert [each["rule"] for each in watched(tmp_path, *steps)] == ["speed", "other"]
    assert "note: the rule `none`: error: " in capsys.readouterr().err


def test_the_command(tmp_path: Path) -> None:
    runner = CliRunner()
    for arguments in (
        ["watch"],
        ["watch", "--rules", str(tmp_path), "-e", "SELECT * WHERE A"],
        ["watch", "--rules", str(tmp_path), "a", "b"],
    ):
        assert runner.invoke(app, arguments).exit_code == 2, arguments
    result = runner.invoke(app, ["watch", "--rules", str(tmp_path / "nothing"), str(tmp_path)])
    assert "is a directory" in result.stderr
