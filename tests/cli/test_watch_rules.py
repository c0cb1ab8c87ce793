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
from cepheid.cli import watch_rules as rule_files
from cepheid.cli.app import app
from cepheid.cli.settings import NullKeys, Watching
from cepheid.cli.watch_rules import watch_rules
from cepheid.engine.input import rule_rows
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
    assert "2 versions of rules leave out events without a key, 2 events at most" in told
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


def test_wrong_rules_do_not_touch_the_types_of_others(tmp_path: Path) -> None:
    """Rows with one text and other arguments, also such as do not go with the first event."""
    right = {"name": "r", "query": HOT, "args": {"limit": 1}}
    others: list[Any] = [{"zz": 1}, [1], "{", {"limit": "x"}, {}]
    for other in others:
        for rows in ([right, right | {"name": "s", "args": other}], [right | {"name": "s", "args": other}, right]):
            put(tmp_path / "a.jsonl", *rows)
            assert [each["v"] for each in (e["a"][0] for e in watched(tmp_path, lines(event("A", 1), event("A", 2, 20.5))))] == [5, 20.5], (
                rows
            )
    first = {name: value for name, value in event("C", 1).items() if name != "v"}
    put(tmp_path / "a.jsonl", right, right | {"name": "s", "args": {"zz": 1}})
    assert len(watched(tmp_path, lines(first, event("A", 2, 20.5)))) == 1


def test_rules_that_read_parts_of_an_object(tmp_path: Path) -> None:
    rows = [{"name": part, "query": f"SELECT * WHERE A AS a FILTER a.n.{part} > 1"} for part in ("b", "c")]
    put(tmp_path / "a.jsonl", *rows)
    found = watched(tmp_path, lines(event("A", 1, n={"b": 5, "c": 1}), event("A", 2, n={"b": 0, "c": 1.5, "d": "x"})))
    assert [each["rule"] for each in found] == ["b", "c"]


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (None, "x"),
        (1, 1.5),
        ([], [1]),
        ([1], ["a"]),
        ([1, "a"], 3),
        (2**70, 3),
        ("2026-01-01", "none"),
        ({"x": 1}, {"x": "y"}),
        (1, {"x": 1}),
    ],
)
def test_what_no_rule_reads_may_be_anything(tmp_path: Path, capsys: pytest.CaptureFixture[str], first: Any, then: Any) -> None:
    """A rule that comes later and reads it is refused: values of it were left out."""
    put(tmp_path / "a.jsonl", {"name": "hot", "query": HOT, "args": {"limit": 1}})
    late = {"name": "late", "query": "SELECT * WHERE A AS a FILTER a.note = a.note", "from": at(4)}
    steps: list[Step] = [
        lines(event("A", 1, note=first), event("A", 2, note=then)),
        lambda: put(tmp_path / "b.jsonl", late),
        lines(event("A", 5, note=then)),
    ]
    found = watched(tmp_path, *steps)
    assert [(each["rule"], each["a"][0]["note"]) for each in found] == [("hot", first), ("hot", then), ("hot", then)]
    assert "note: the rule `late`: error: " in capsys.readouterr().err


def test_what_a_rule_begins_to_read_has_to_fit(tmp_path: Path) -> None:
    put(tmp_path / "a.jsonl", {"name": "hot", "query": HOT, "args": {"limit": 1}})
    more = {"name": "more", "query": "SELECT * WHERE A AS a FILTER a.n = 3", "from": at(2)}
    steps: list[Step] = [lines(event("A", 1, n=3)), lambda: put(tmp_path / "b.jsonl", more), lines(event("A", 2, n=3))]
    assert [each["rule"] for each in watched(tmp_path, *steps)] == ["hot", "hot", "more"]
    (tmp_path / "b.jsonl").unlink()
    steps = [lines(event("A", 1, n=3)), lambda: put(tmp_path / "b.jsonl", more | {"from": at(3)}), lines(event("A", 2, n="x"))]
    with pytest.raises(InputError, match='`n` is "x", which is not int64'):
        watched(tmp_path, *steps)


def test_late_rows_are_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    late = {"name": "late", "query": HOT, "args": {"limit": 1}, "from": at(0)}
    more = {"name": "more", "query": HOT, "args": {"limit": 1}, "from": at(100)}
    steps: list[Step] = [lines(event("A", 1))]
    for second in range(2, 6):
        steps += [functools.partial(put, tmp_path / "a.jsonl", late, more | {"until": at(100 + second)}), lines(event("A", second))]
    put(tmp_path / "0.jsonl", {"name": "hot", "query": HOT, "args": {"limit": 1}})
    watched(tmp_path, *steps)
    told = capsys.readouterr().err
    assert told.count("the rule `late`") == 1


def test_a_file_that_may_be_read_again_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever tests may read all, so the refusal is made up; that permissions change shows in the time of a file's state."""
    path = tmp_path / "a.jsonl"
    put(path, {"name": "hot", "query": HOT, "args": {"limit": 1}})
    refused = True

    def read(given: object) -> list[dict[str, Any]]:
        if refused:
            raise InputError(f"{given} cannot be read: Permission denied")
        return rule_rows.rows_in(given)

    def allowed() -> None:
        nonlocal refused
        refused = False
        path.chmod(0o600)

    (tmp_path / "0.jsonl").write_text("")
    path.unlink()
    monkeypatch.setattr(rule_files, "rows_in", read)
    row = {"name": "hot", "query": HOT, "args": {"limit": 1}, "from": at(2)}
    found = watched(tmp_path, lines(event("A", 1)), lambda: put(path, row), b"", b"", allowed, lines(event("A", 2)))
    assert len(found) == 1
    assert capsys.readouterr().err.count("Permission denied") == 1


def test_that_there_are_no_rules_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rules.yaml").write_text("nothing")
    assert watched(tmp_path, lines(event("A", 1))) == []
    assert "has no rows of rules so far" in capsys.readouterr().err
    put(tmp_path / "a.jsonl", {"name": "wrong", "query": "SELECT"})
    assert watched(tmp_path) == []
    assert "no event came, so nobody has looked at 1 row of rules" in capsys.readouterr().err


def test_matches_come_in_the_order_of_their_ends(tmp_path: Path) -> None:
    put(tmp_path / "a.jsonl", {"name": "pairs", "query": PAIRS})
    rng = random.Random(4)
    found = watched(tmp_path, lines(*(event(rng.choice("AB"), second, k=rng.randrange(4)) for second in range(60))))
    ends = [each["end_time"] for each in found]
    assert ends == sorted(ends)
    assert len(ends) > 50
