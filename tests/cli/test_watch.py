"""`cepheid watch`: lines that arrive, matches that leave, at once."""

from __future__ import annotations

import datetime as dt
import io
import json
import os
import random
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import cepheid
from cepheid.cli import arriving, files, watch
from cepheid.cli.app import app
from cepheid.cli.settings import NullKeys, Watching
from cepheid.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

FIRE = "SELECT * WHERE T AS t ; H AS h FILTER t[value > 40] AND h[value < 25] PARTITION BY sensor WITHIN 1 minute"
LINES = [
    '{"type": "T", "ts": "2026-01-01T10:00:00Z", "sensor": 1, "value": 45, "note": {"x": [1, "\u00e9"]}}',
    '{"ts": "2026-01-01T11:00:20+01:00", "type": "H", "sensor": 2, "value": 60.50}',
    "",
    '  {"type": "H", "ts": "2026-01-01T10:00:50Z", "sensor": 1, "value": 2.05e1, "note": 5}',
]


class Given:
    """What arrives, piece by piece."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = iter(pieces)

    def read(self, _: float | None) -> bytes | None:
        return next(self._pieces, None)


def text(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def lines_of(query: str, *pieces: bytes, schema: pa.Schema | None = None, **settings: Any) -> list[str]:
    """What is printed."""
    out = io.StringIO()
    watch.watch(cepheid.query(query), Given(list(pieces)), Watching(**settings), schema, out)
    return out.getvalue().splitlines()


def found(query: str, *pieces: bytes, **settings: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines_of(query, *pieces, **settings)]


def wrong(query: str, lines: list[str], **settings: Any) -> tuple[str, list[str]]:
    """The message, and what was printed before."""
    out = io.StringIO()
    with pytest.raises(cepheid.CepheidError) as raised:
        watch.watch(cepheid.query(query), Given([text(lines)]), Watching(**settings), None, out)
    return str(raised.value), out.getvalue().splitlines()


# ----------------------------------------------------------------------------------------------------------------------------- output


def test_events_are_the_lines_that_came() -> None:
    (line,) = lines_of(FIRE, text(LINES))
    start = '{"sensor": 1, "start_time": "2026-01-01T10:00:00Z", "end_time": "2026-01-01T10:00:50Z", '
    assert line == f'{start}"t": [{LINES[0]}], "h": [{LINES[3].strip()}]}}'


def test_a_match_is_printed_when_it_is_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    printed: list[str] = []

    class Flushed(io.StringIO):
        def flush(self) -> None:
            printed[:] = self.getvalue().splitlines()

    class Seen(Given):
        counts: list[int] = []  # noqa: RUF012 - of one test

        def read(self, timeout: float | None) -> bytes | None:
            self.counts.append(len(printed))
            return super().read(timeout)

    whole = text(LINES)
    cut = len(whole) - 1  # the last line has come, its end has not
    watch.watch(cepheid.query(FIRE), Seen([whole[:cut], whole[cut:], text(LINES[3:])]), Watching(), None, Flushed())
    assert Seen.counts == [0, 0, 1, 2]


def test_measures_and_definitions() -> None:
    query = "SELECT t.value AS v, t.sensor AS s, collect(h.value) AS all WHERE T AS t ; H AS h WITHIN 1 minute"
    assert found(query, text(LINES)) == [{"start_time": s, "end_time": e, "v": 45.0, "s": 1, "all": [v]} for s, e, v in MEASURED]
    query = "EVENT Hot(heat) AS (SELECT t.value WHERE T AS t PARTITION BY sensor WITHIN 1 minute) "
    (match,) = found(query + "SELECT * WHERE Hot AS f ; H AS h PARTITION BY sensor WITHIN 5 minutes", text(LINES))
    assert match["f"] == [{"sensor": 1, "ts": "2026-01-01T10:00:00Z", "type": "Hot", "heat": 45.0}]
    assert match["h"] == [json.loads(LINES[3])]


MEASURED = [("2026-01-01T10:00:00Z", "2026-01-01T10:00:20Z", 60.5), ("2026-01-01T10:00:00Z", "2026-01-01T10:00:50Z", 20.5)]


def test_equal_to_a_run_however_it_is_cut(tmp_path: Path) -> None:
    random_ = random.Random(5)
    events = [{"type": random_.choice("ABC"), "ts": number, "k": random_.randrange(3), "v": random_.randrange(9)} for number in range(400)]
    path = tmp_path / "e.jsonl"
    path.write_bytes(text([json.dumps(event) for event in events]))
    for query in (
        "SELECT * WHERE A AS a ; B+ AS b ; C AS c FILTER a[v > 3] AND c[v < 5] PARTITION BY k WITHIN 20",
        "SELECT NXT * WHERE A AS a ; B AS b FILTER a.v < b.v WITHIN 9",
        "SELECT * WHERE A AS a NOT FOLLOWED BY B FOR 9 PARTITION BY k",
    ):
        result = CliRunner().invoke(app, ["run", "-e", query, str(path), "--json"])
        expected = result.stdout.splitlines()
        assert len(expected) > 20
        whole = path.read_bytes()
        for _ in range(3):
            cuts = sorted(random_.sample(range(len(whole)), 20))
            pieces = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
            assert lines_of(query, *pieces) == expected
            # A lateness holds events back, and changes nothing.
            assert sorted(lines_of(query, *pieces, lateness="5")) == sorted(expected)


# ------------------------------------------------------------------------------------------------------------------------------ order


def ordered(numbers: list[object], **settings: Any) -> list[object]:
    """The attribute `n` of events of one time, in the order in which they are read."""
    lines = [json.dumps({"type": "A", "ts": 1, "n": number}) for number in numbers]
    lines.append('{"type": "Z", "ts": 9, "n": null}')
    settings = {"order": ("n",), "lateness": "0", **settings}
    return [match["a"][0]["n"] for match in found("SELECT * WHERE A AS a", text(lines), **settings)]


def test_attributes_decide_between_events_of_equal_time() -> None:
    assert ordered([3, 1, 2]) == [1, 2, 3]
    assert ordered([3, 1, 2], order=()) == [3, 1, 2]
    assert ordered([2, None, 1]) == [1, 2, None]
    assert ordered(["b", "c", "a"]) == ["a", "b", "c"]
    assert ordered([2**53 + 1, 2**53]) == [2**53, 2**53 + 1], "whole numbers are no doubles"
    # What is equal in them, too, is in the order of arrival; the line end of the last one may be missing.
    lines = ['{"type": "A", "ts": 1, "n": 5, "m": 2}', '{"type": "A", "ts": 1, "n": 5, "m": 1}', '{"type": "A", "ts": 1, "n": 4, "m": 3}']
    query = "SELECT * WHERE A AS a"
    assert [match["a"][0]["m"] for match in found(query, "\n".join(lines).encode(), order=("n",), lateness="3")] == [3, 2, 1]
    assert [match["a"][0]["m"] for match in found(query, text(lines), order=("n", "m"), lateness="3")] == [3, 1, 2]


def test_events_of_equal_time_that_nothing_orders_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    """As `run` says it, also where the two come one after the other."""
    lines = [
        '{"type": "A", "ts": 1, "k": 1}',
        '{"type": "A", "ts": 2, "k": 1}',
        '{"type": "B", "ts": 2, "k": 1}',
        '{"type": "B", "ts": 2, "k": 2}',
    ]
    query = "SELECT * WHERE A ; B PARTITION BY k WITHIN 5"
    for settings, told in (({}, True), ({"lateness": "1"}, True), ({"lateness": "1", "order": ("type",)}, False)):
        assert len(found(query, *([text([line]) for line in lines]), **settings)) == 2
        note = "note: events that can be in one match have the same time, such as 2: the order of the rows decides, unless order= (--order)"
        assert (note in capsys.readouterr().err) == told
    found(query, text([lines[0], lines[1], lines[3]]))
    assert "same time" not in capsys.readouterr().err, "they are in two partitions"


def test_the_order_is_that_of_a_run(tmp_path: Path) -> None:
    random_ = random.Random(8)
    events = [{"type": random_.choice("AB"), "ts": number // 5, "n": random_.randrange(3), "id": number} for number in range(60)]
    path = tmp_path / "e.jsonl"
    path.write_bytes(text([json.dumps(event) for event in events]))
    query = "SELECT * WHERE A AS a : B AS b"
    run = CliRunner().invoke(app, ["run", "-e", query, str(path), "--order", "n", "--json"]).stdout.splitlines()
    assert lines_of(query, path.read_bytes(), order=("n",), lateness="0") == run
    assert lines_of(query, path.read_bytes()) != run
    options = ["-e", query, "--order", "n", "--lateness", "0"]
    piped = subprocess.run([*COMMAND, *options], input=path.read_bytes(), capture_output=True, check=True)
    assert piped.stdout.decode().splitlines() == run


def test_wrong_orders() -> None:
    query, lines = "SELECT * WHERE A AS a", ['{"type": "A", "ts": 1, "n": [1]}']
    message, _ = wrong(query, lines, order=("n",))
    assert message == (
        "error: --order needs --lateness: without it no event waits for others of its time\n"
        "help: --lateness 0s makes only the events of the newest time wait (--lateness 0 where times are numbers)"
    )
    message, _ = wrong(query, lines, order=("m",), lateness="0")
    assert message == "error: line 1 has no attribute `m`\nhelp: name another with --order: there is `type`, `ts`, `n`"
    message, _ = wrong(query, lines, order=("n",), lateness="0")
    assert message.startswith("error: events of equal time cannot be ordered by `n` (list<item: int64>)")


# ------------------------------------------------------------------------------------------------------------------------------ types


def test_only_what_the_query_reads_has_a_type() -> None:
    lines = ['{"type": "A", "ts": 1, "x": 1, "other": 1}', '{"type": "A", "ts": 2, "x": 2.5, "other": ["a"]}']
    assert [match["a"][0]["other"] for match in found("SELECT * WHERE A AS a FILTER a[x > 0]", text(lines))] == [1, ["a"]]


@pytest.mark.parametrize(
    ("query", "first", "second", "said"),
    [
        ("A AS a ; A AS b FILTER a.x = b.x", '"x": 1', '"x": 1.5', "`x` is 1.5, which is not int64 as in line 1"),
        ("A AS a FILTER a[x > 1]", '"x": 1', '"x": true', "`x` is true, which is not double as in line 1"),
        ("A AS a FILTER a[x > 1]", '"x": 1', '"x": 9007199254740993', "`x` is 9007199254740993, which is not double as in line 1"),
        ("A AS a FILTER a[x > 1]", '"x": 1', '"x": "1"', '`x` is "1", which is not double as in line 1'),
        ("A AS a FILTER a[x > 1]", '"y": 1', '"x": "1"', '`x` is "1", which is not double (guessed from the query, for line 1 has no `x`)'),
        ("A AS a FILTER a[x = 'q']", '"x": "q"', '"x": 1', "`x` is 1, which is not string as in line 1"),
        ("A AS a ; A AS b FILTER a.x = b.x", '"x": 1', '"x": 9223372036854775808', "`x` is 9223372036854775808, which is not int64"),
        ("A AS a FILTER a.x.y > 1", '"x": {"y": 1}', '"x": {"y": "1"}', '`x` is {"y": "1"}, which is not struct<y: double>'),
        ("A AS a FILTER a.x.y > 1", '"x": {"y": 1}', '"x": 1', "`x` is 1, which is not struct<y: double>"),
        ("A AS a ; A AS b FILTER a.x < b.x", '"x": "2026-01-01 10:00Z"', '"x": "2026-01-01 10:00"', "which is not timestamp[us, tz=UTC]"),
    ],
)
def test_a_value_of_another_type_is_an_error(query: str, first: str, second: str, said: str) -> None:
    lines = [f'{{"type": "A", "ts": {number}, {value}}}' for number, value in ((1, first), (2, second))]
    message, _ = wrong(f"SELECT * WHERE {query}", lines)
    assert message.startswith("error: line 2: `x` is")
    assert said in message
    assert "help: --schema FILE takes the types from a file of such events" in message
    assert ("or begin with an event that has `x`" in message) == ("guessed" in said) != ("--skip-bad-lines" in message)
    assert found(f"SELECT * WHERE {query}", text([*lines[:1], lines[0].replace('"ts": 1', '"ts": 3')])) is not None


def test_a_key_that_is_a_number_and_a_text_is_told_what_to_do(tmp_path: Path) -> None:
    """The first line alone cannot know; the file of --schema says that keys are texts, and then all have to be."""
    query = "SELECT * WHERE A AS a ; A AS b PARTITION BY card"
    lines = ['{"type": "A", "ts": 1, "card": 7}', '{"type": "A", "ts": 2, "card": "x9"}', '{"type": "A", "ts": 3, "card": "x9"}']
    message, _ = wrong(query, lines)
    assert message.splitlines()[:3] == [
        'error: line 2: `card` is "x9", which is not int64 as in line 1',
        "help: --schema FILE takes the types from a file of such events",
        "help: no value is cast: if `card` is a number on some lines and a text on others, write it as a text on all of them",
    ]
    (tmp_path / "s.jsonl").write_text(lines[1], encoding="utf-8")
    schema = files.streams([str(tmp_path / "s.jsonl")])[0].schema
    texts = [lines[0].replace("7", '"7"'), *lines[1:]]
    assert [match["start_time"] for match in found(query, text(texts), schema=schema)] == [2]
    with pytest.raises(InputError, match="line 1: `card` is 7, which is not string as in the file of --schema"):
        found(query, text(lines), schema=schema)


def test_nested_values_are_those_that_came() -> None:
    query = "SELECT a.x.y AS y, a.l AS l WHERE A AS a FILTER a.x.y > 1"
    lines = ['{"type": "A", "ts": 1, "x": {"y": 2, "z": 9}, "l": [1, null]}', '{"type": "A", "ts": 2, "x": null, "l": null}']
    lines += ['{"type": "A", "ts": 3, "x": {"y": 2.5}, "l": []}']
    assert [(match["y"], match["l"]) for match in found(query, text(lines))] == [(2.0, [1, None]), (2.5, [])]
    assert "`l` is [1.5]" in wrong(query, [lines[0], '{"type": "A", "ts": 2, "l": [1.5]}'])[0]


def test_types_from_a_file(tmp_path: Path) -> None:
    query = "SELECT a.x AS x, a.day AS day, a.cost AS cost WHERE A AS a ; A AS b FILTER a.x = b.x"
    sample = pa.schema([("type", pa.dictionary(pa.int32(), pa.string())), ("ts", pa.int32()), ("x", pa.float64()), ("day", pa.date32())])
    sample = sample.append(pa.field("cost", pa.decimal128(6, 2)))
    pq.write_table(sample.empty_table(), tmp_path / "s.parquet")
    (stream,) = files.streams([str(tmp_path / "s.parquet")])
    lines = ['{"type": "A", "ts": 1, "x": 1, "day": "2026-01-31", "cost": "1.50"}', '{"type": "A", "ts": 2, "x": 1.0}']
    assert found(query, text(lines), schema=stream.schema) == [
        {"start_time": 1, "end_time": 2, "x": 1.0, "day": "2026-01-31", "cost": "1.50"}
    ]


def test_type_and_time_have_names() -> None:
    query = "SELECT * WHERE A AS a"
    assert "line 1 has no attribute `type`, which says what an event is" in wrong(query, ['{"kind": "A", "ts": 1}'])[0]
    assert "line 1 has no attribute `at`" in wrong(query, ['{"type": "A", "ts": 1}'], time="at")[0]
    assert len(found(query, text(['{"kind": "A", "at": 1}']), type="kind", time="at")) == 1
    assert len(found("SELECT * FROM flights WHERE flights AS f", text(['{"ts": 1}', '{"ts": 2}']))) == 2
    assert found(query, text(['{"type": "A"}'])) == [{"a": [{"type": "A"}]}]
    assert wrong(query, ['{"type": "A"}'], lateness="5s")[0].startswith("error: lateness needs a time column")
    message = 'error: --lateness soon is not a duration\nhelp: write it like "10 minutes" or "10s"'
    assert wrong(query, [], lateness="soon")[0] == message
    message = "error: --lateness 5s has a unit, and the time column `ts` has none\nhelp: give a number of steps"
    assert wrong(query, timed(1), lateness="5s")[0] == message
    message = "error: --lateness 5 has no unit, and the times of `ts` are no numbers\nhelp: write it with one: --lateness 5s"
    assert wrong(query, ['{"type": "A", "ts": "2026-01-01T00:00:00Z"}'], lateness="5")[0] == message
    assert found(query, text(['{"type": "A", "ts": "2026-01-01T00:00:00Z"}']), lateness="0")


# -------------------------------------------------------------------------------------------------------------------------- bad lines


BAD = [
    ("{", "line 5, column"),
    ("[1]", "line 5 is an array, not an object"),
    ('{"a": NaN}', "line 5: not a JSON object: JSON has no NaN"),
    ('{"type": "T", "sensor": 1}', "line 5 has no `ts`, and an event needs a time"),
    ('{"type": "T", "ts": null}', "line 5 has no `ts`, and an event needs a time"),
    ('{"type": "T", "ts": "soon"}', 'line 5: `ts` is "soon", which is not timestamp[us, tz=UTC]'),
    ('{"type": "T", "ts": "2026-01-01T10:01:00"}', "line 5: `ts` is"),
    ('{"type": 5, "ts": "2026-01-01T10:01:00Z"}', "line 5: `type` is 5, which is not string"),
    ("[" * 100_000, "line 5"),
]


@pytest.mark.parametrize(("line", "said"), BAD)
def test_a_bad_line_ends_the_watch_once_what_is_before_it_is_read(line: str, said: str) -> None:
    message, printed = wrong(FIRE, [*LINES, line, LINES[3]])
    assert message.startswith(f"error: {said}")
    assert len(printed) == 1


def test_bad_lines_left_out_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    bad = [line for line, _ in BAD]
    out = lines_of(FIRE, text([*LINES[:2], *bad]) + b"\xff\n" + text(LINES[2:]), skip_bad_lines=True)
    assert len(out) == 1
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("note: a line is left out, as all bad ones from here on: line 3, column")
    assert said[1] == f"note: {len(bad) + 1} bad lines left out"
    assert said[2].startswith("1 match in 3 events (")
    assert len(said) == 3


def test_bytes_that_are_no_text() -> None:
    with pytest.raises(cepheid.InputError, match="line 2: byte 0xff is not UTF-8"):
        lines_of(FIRE, text(LINES[:1]) + b"\xff\n")
    assert len(lines_of(FIRE, b"\xef\xbb\xbf" + text(LINES))) == 1


def test_a_line_without_end_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arriving, "MAX_LINE", 1000)
    out = io.StringIO()
    with pytest.raises(cepheid.LimitError, match=r"line 5 is longer than 1,000 bytes \(MAX_LINE\)"):
        watch.watch(cepheid.query(FIRE), Given([text(LINES) + b"x" * 800, b"x" * 800]), Watching(), None, out)
    assert len(out.getvalue().splitlines()) == 1


# ------------------------------------------------------------------------------------------------------------------------------ time


def timed(*times: int | str, kind: str = "A") -> list[str]:
    return [json.dumps({"type": kind, "ts": time}) for time in times]


def test_without_lateness_events_are_in_order() -> None:
    message, printed = wrong("SELECT * WHERE A AS a", timed(1, 3, 3, 2, 4))
    assert message == (
        "error: line 4: the event is from 2, and one before it from 3\nhelp: --lateness 10 takes events that come up to 10 later"
    )
    assert len(printed) == 3
    with pytest.raises(cepheid.InputError, match="line 2: the event is from 4, and one before it from 5"):
        lines_of("SELECT * WHERE A AS a", text(timed(5)), text(timed(4)))


def test_late_events_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    query = "SELECT * WHERE A AS a"
    out = found(query, text(timed(5, 3, 10, 7)), text(timed(8, 7, 6)), text(timed(20)), lateness="3")
    assert [match["start_time"] for match in out] == [3, 5, 7, 7, 8, 10, 20]
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "note: an event from 6 came too late and is left out, as all such events from here on"
    assert said[1] == "note: 1 event came too late and is left out: --lateness 4 would have taken all"
    times = ["2026-01-01T00:00:09Z", "2026-01-01T00:00:07Z", "2026-01-01T00:00:05.5Z"]
    assert len(found(query, *(text(timed(time)) for time in times), lateness="3s")) == 2
    assert "--lateness 3500ms would have taken all" in capsys.readouterr().err
    assert len(found(query, *(text(timed(time)) for time in times), lateness="3500ms")) == 3
    assert said[2].startswith("7 matches in 8 events (")


@pytest.mark.parametrize("first", ["type,ts,v", '"type";"ts"', "[", "PAR1"])
def test_what_is_no_json_names_the_other_command(first: str) -> None:
    message, _ = wrong("SELECT * WHERE A", [first, "A,1,2"])
    assert "help: cepheid run QUERY FILE reads CSV and Parquet files; watch reads JSON lines alone" in message
    assert "--skip-bad-lines" not in message
    for lines in ([*timed(1), first], ['{"type": "A"']):
        message, _ = wrong("SELECT * WHERE A", lines)
        assert "cepheid run" not in message
        assert "--skip-bad-lines" in message


def test_what_does_not_follow(capsys: pytest.CaptureFixture[str]) -> None:
    query = "SELECT * WHERE A AS a NOT FOLLOWED BY B FOR 5"
    lines = timed(1, 3) + timed(8, kind="B") + timed(20)
    assert [match["start_time"] for match in found(query, text(lines))] == [1]
    said = "note: 1 match is not decided yet: what NOT FOLLOWED BY forbids may still come (the events ended before; cepheid run QUERY FILE --until end"
    assert said in capsys.readouterr().err
    assert [match["start_time"] for match in found(query, text(lines), lateness="2")] == [1]


def test_events_without_a_key(capsys: pytest.CaptureFixture[str]) -> None:
    query = "SELECT * WHERE T AS t PARTITION BY sensor"
    lines = [LINES[0], '{"type": "T", "ts": "2026-01-01T10:00:01Z"}']
    assert len(found(query, text(lines))) == 1
    assert "note: 1 event (of any type) has no key and is left out (--null-keys group makes it a partition)" in capsys.readouterr().err
    assert len(found(query, text(lines), null_keys=NullKeys.GROUP)) == 2


def test_the_clock_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    start = dt.datetime(2026, 1, 1, 10, tzinfo=dt.UTC)

    class Clock(dt.datetime):
        now_ = start

        @classmethod
        def now(cls, tz: Any = None) -> dt.datetime:
            return cls.now_.astimezone(tz)

    class Idle:
        """Lines at their times on the clock; between them, nothing comes."""

        def __init__(self, at: dict[int, list[str]]) -> None:
            self._at = at
            self.second = -1
            self.printed: dict[int, int] = {}

        def read(self, timeout: float | None) -> bytes | None:
            assert timeout == watch.TICK
            self.printed[self.second] = len(out.getvalue().splitlines())
            self.second += 1
            Clock.now_ = start + dt.timedelta(seconds=self.second)
            return text(self._at.get(self.second, [])) if self.second < 40 else None

    monkeypatch.setattr(dt, "datetime", Clock)
    out = io.StringIO()

    def event(kind: str, second: int, order: int) -> str:
        return json.dumps({"type": kind, "ts": (start + dt.timedelta(seconds=second)).isoformat(), "order": order})

    at = {1: [event("A", 1, 1)], 5: [event("A", 4, 2)], 9: [event("B", 8, 2)], 30: [event("A", 12, 3)]}
    idle = Idle(at)
    query = cepheid.query("SELECT * WHERE A AS a NOT FOLLOWED BY B FOR 10 seconds PARTITION BY order")
    watch.watch(query, idle, Watching(clock=True, lateness="2s"), None, out)
    assert [json.loads(line)["order"] for line in out.getvalue().splitlines()] == [1], "2 is followed, 3 came too late"
    # What is from 1 is decided once nothing from 11 or before is expected, two seconds later.
    assert (idle.printed[13], idle.printed[14]) == (0, 1)


def test_the_clock_needs_times_and_a_lateness() -> None:
    query = "SELECT * WHERE A AS a"
    assert wrong(query, timed(1), clock=True)[0].startswith("error: --clock needs --lateness\n")
    for time in ("1", '"2026-01-01T10:00:00"'):
        message, _ = wrong(query, [f'{{"type": "A", "ts": {time}}}'], clock=True, lateness="5" if time == "1" else "5s")
        assert message.startswith("error: --clock needs times with an offset, and `ts` is")
        # It is no bad line: the next ones would be as bad.
        skipping = wrong(query, [f'{{"type": "A", "ts": {time}}}'], clock=True, lateness="5" if time == "1" else "5s", skip_bad_lines=True)
        assert skipping == (message, [])


# ------------------------------------------------------------------------------------------------------------- pipes, files and ends


COMMAND = [sys.executable, "-m", "cepheid.cli", "watch"]


def test_a_pipe() -> None:
    with subprocess.Popen([*COMMAND, "-e", FIRE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(text(LINES))
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["sensor"] == 1, "while the pipe is open"
        process.stdin.write(LINES[3].encode())
        process.stdin.close()
        assert json.loads(process.stdout.readline())["sensor"] == 1, "a last line needs no end"
        assert process.stderr.read().splitlines()[-1].startswith(b"2 matches in 4 events (")
    assert process.returncode == 0


def test_a_file_that_grows_until_an_interrupt(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_text(timed(1)[0] + "\n" + timed(2)[0][:9], encoding="utf-8")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    command = [*COMMAND, "-e", "SELECT * WHERE A AS a", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        signal.signal(signal.SIGINT, before)
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline())["start_time"] == 1
        with path.open("a", encoding="utf-8") as file:
            file.write(timed(2)[0][9:] + "\n" + timed(3)[0])
        assert json.loads(process.stdout.readline())["start_time"] == 2
        path.rename(tmp_path / "app.log.1")  # as logs are rotated
        path.write_text(timed(4)[0] + "\n", encoding="utf-8")
        assert [json.loads(process.stdout.readline())["start_time"] for _ in range(2)] == [3, 4]
        process.send_signal(signal.SIGINT)
        said = process.stderr.read().decode().splitlines()
    assert process.returncode == 130
    said = [line for line in said if "has been read to its end" not in line]  # which comes wherever it first waits
    assert said[0] == f"note: {path} is a new file: it is read from its beginning"
    assert said[1].startswith("4 matches in 4 events (")
    assert said[2] == "interrupted"


def test_who_waits_for_a_file_is_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "app.log"
    path.write_bytes(b"one\n")
    grown = arriving.GrowingFile(path)
    assert [grown.read(0.15) for _ in range(3)] == [b"one\n", b"", b""]
    grown.close()
    assert capsys.readouterr().err == f"note: {path} has been read to its end; what is appended is read as it comes, and Ctrl-C ends\n"


def test_a_file_that_is_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "app.log"
    path.write_bytes(b"one\ntwo\n")
    grown = arriving.GrowingFile(path)
    assert (grown.read(0), grown.read(0)) == (b"one\ntwo\n", b"")
    os.truncate(path, 0)
    path.write_bytes(b"three\n")
    assert grown.read(5) == b"three\n"
    grown.close()
    assert "was cut: it is read from its beginning" in capsys.readouterr().err


def test_files_that_cannot_be_watched(tmp_path: Path) -> None:
    runner = CliRunner()
    (tmp_path / "a.jsonl.gz").write_bytes(b"")
    for name, said in (("none.jsonl", "cannot be read: No such file"), (".", "is a directory"), ("a.jsonl.gz", "is compressed")):
        result = runner.invoke(app, ["watch", "-e", "SELECT * WHERE A", str(tmp_path / name)])
        assert (result.exit_code, result.stdout) == (1, "")
        assert said in result.stderr
    assert runner.invoke(app, ["watch", "-"]).exit_code == 2


def test_attributes_that_no_event_has_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    lines = text([json.dumps({"type": "pay", "ts": time, "amount": 20}) for time in (1, 2)])
    assert lines_of("SELECT * WHERE pay AS a FILTER a[amuont > 1] PARTITION BY custmer WITHIN 5", lines) == []
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "note: no event has the attribute `amuont`: did you mean `amount`?"
    assert said[1] == "note: no event has the attribute `custmer`"
    burst = "EVENT Burst(n) AS (SELECT count(p) AS n WHERE pay{2} AS p WITHIN 5) SELECT * WHERE Burst AS b FILTER b[n > 1]"
    assert len(lines_of(burst, lines)) == 1
    assert "no event has" not in capsys.readouterr().err


def test_the_first_line_that_is_an_event_decides(capsys: pytest.CaptureFixture[str]) -> None:
    good = ['{"type":"A","ts":1}', '{"type":"B","ts":2}']
    for bad in ('{"msg":"hello"}', '{"type":"A","ts":null}', '{"type":"A","ts":1,"v":"\\ud800"}'):
        query = "SELECT * WHERE A AS x ; B AS y FILTER x.v IS NULL"
        assert len(lines_of(query, text([bad, *good]), skip_bad_lines=True)) == 1, bad
        assert "note: 1 bad line left out" in capsys.readouterr().err
        with pytest.raises(InputError, match="line 1"):
            lines_of(query, text([bad, *good]))


def test_times_are_not_left_out_since_the_first_event_has_none() -> None:
    with pytest.raises(InputError, match="line 2 has a `ts`, and the first event had none"):
        lines_of("SELECT * WHERE A ; B", text(['{"type":"A"}', '{"type":"A","ts":5}', '{"type":"B","ts":3}']))


def test_a_measure_with_the_name_of_an_attribute() -> None:
    lines = text(['{"type":"A","ts":1,"v":1.5}', '{"type":"C","ts":2,"v":2.5}', '{"type":"B","ts":3,"v":3.5}'])
    query = "EVENT P(v) AS (SELECT x.v AS v WHERE A AS x ; C AS z WITHIN 3) SELECT * WHERE P AS p ; B AS y WITHIN 6"
    assert len(lines_of(query, lines)) == 1
