"""Matches as people read them: short values, times without needless zeros, first and last values of each variable."""

from __future__ import annotations

import datetime as dt

import pytest

import cepheid
from cepheid.engine.output import shown
from cepheid.engine.output.shown import (
    CELL_WIDTH,
    Listing,
    attributes_shown,
    clock_texts,
    event_text,
    events_text,
    fitted,
    time_texts,
    value_text,
)

START = dt.datetime.fromisoformat("2026-01-01 10:00:00")


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        (dt.timedelta(0), ["2026-01-01 10:00", "2026-01-01 10:00"]),
        (dt.timedelta(minutes=5), ["2026-01-01 10:00", "2026-01-01 10:05"]),
        (dt.timedelta(seconds=5), ["2026-01-01 10:00:00", "2026-01-01 10:00:05"]),
        (dt.timedelta(milliseconds=50), ["2026-01-01 10:00:00.00", "2026-01-01 10:00:00.05"]),
        (dt.timedelta(microseconds=1), ["2026-01-01 10:00:00.000000", "2026-01-01 10:00:00.000001"]),
    ],
)
def test_times_have_the_places_that_some_of_them_need(later: dt.timedelta, expected: list[str]) -> None:
    assert time_texts([START, START + later]) == expected


def test_zones_and_days() -> None:
    assert time_texts([START.replace(tzinfo=dt.UTC)]) == ["2026-01-01 10:00Z"]
    assert time_texts([START.replace(hour=0, tzinfo=dt.UTC)]) == ["2026-01-01 00:00Z"]
    assert time_texts([START.replace(tzinfo=dt.timezone(dt.timedelta(hours=2)))]) == ["2026-01-01 10:00+02:00"]
    assert time_texts([START.replace(hour=0)]) == ["2026-01-01"]
    assert time_texts([dt.date(2026, 1, 1), None, 2**62]) == ["2026-01-01", "NULL", str(2**62)]


def test_times_beside_their_day() -> None:
    assert clock_texts([START, START + dt.timedelta(seconds=90)]) == ["10:00:00", "10:01:30"]
    assert clock_texts([START.replace(tzinfo=dt.UTC)]) == ["10:00"]
    assert clock_texts([START, START + dt.timedelta(days=1)]) == ["2026-01-01 10:00", "2026-01-02 10:00"]
    assert clock_texts([dt.date(2026, 1, 1)]) == ["2026-01-01"]
    assert clock_texts([3, 40]) == ["3", "40"]
    assert clock_texts([]) == []


def test_what_the_query_names_comes_first() -> None:
    assert attributes_shown(["type", "ts", "k", "a", "b", "c"], ["k"], "ts", ["c", "gone", "k"]) == ("c", "a", "b")
    assert attributes_shown(["type", "ts"], [], "ts") == ("type",)


def test_values_are_short() -> None:
    assert value_text(None) == "NULL"
    assert value_text(10**400) == "<401 digits>"
    assert value_text(True) == "True"
    assert value_text("x" * 100) == "x" * (CELL_WIDTH - 2) + ".."


def test_events_by_the_first_and_the_last() -> None:
    assert event_text({"type": "A", "v": 3, "w": None}) == "v=3"
    assert events_text("", {"v": 3, "w": "a"}, "", {"v": 7, "w": "a"}, 5) == "v=3 .. 7, w=a (5 events)"
    assert events_text("", {"v": 3, "w": None}, "", {"v": 3, "w": None}, 1) == "v=3"
    assert events_text("", {"v": None}, "", {"v": 3}, 2) == "v=NULL .. 3 (2 events)"
    assert events_text("10:00", {"v": 3}, "10:07", {"v": 7}, 5) == "10:00 .. 10:07 v=3 .. 7 (5 events)"
    assert events_text("10:00", {"v": None}, "10:00", {"v": None}, 1) == "10:00"
    assert events_text("", {"type": "A"}, "", {"type": "B"}, 2) == "A .. B (2 events)"
    assert events_text("", {"v": None}, "", {"v": None}, 1) == "(1 event)"
    assert events_text("", {"v": "x" * 30, "w": "y" * 30}, "", {"v": "x" * 30, "w": "y" * 30}, 9).endswith(".. (9 events)")


def test_a_listing_in_a_terminal() -> None:
    listing = Listing(["2 rows"], {"name": ["a", "bcd"], "n": ["10", "9"]}, more=3, right=frozenset({"n"}))
    assert str(listing) == "2 rows\nname   n\na     10\nbcd    9\n.. and 3 more"
    assert str(Listing(["0 rows"], {"name": []})) == "0 rows"


def test_matches_show_values_and_not_positions() -> None:
    stream = [
        {"type": kind, "ts": START + dt.timedelta(minutes=minute), "user": "ann", "ip": ip, "ms": ms}
        for minute, (kind, ip, ms) in enumerate([("Fail", "10.0.0.1", 5), ("Fail", "10.0.0.2", None), ("Ok", "10.0.0.2", 7)])
    ]
    query = cepheid.query("SELECT MAX * WHERE Fail+ AS f ; (Warn AS w)? ; Ok AS s PARTITION BY user")
    expected = [
        "user  start_time        end_time          f                                                   w  s",
        "ann   2026-01-01 10:00  2026-01-01 10:02  10:00 .. 10:01 ip=10.0.0.1 .. 10.0.0.2, ms=5 .. NULL (2 events)  -  10:02 ip=10.0.0.2, ms=7",
    ]
    recognizer = query.recognizer(query.run(stream).events.schema)
    for matches in (query.run(stream), recognizer.push(stream)):
        assert [line.split() for line in repr(matches).splitlines()[-2:]] == [line.split() for line in expected]
        assert "<td>10:00 .. 10:01 ip=10.0.0.1 .. 10.0.0.2, ms=5 .. NULL (2 events)</td>" in matches._repr_html_()


def test_without_times_positions_stay() -> None:
    matches = cepheid.query("SELECT * WHERE A AS x : A AS y").run([{"type": "A", "v": number} for number in range(2)])
    assert repr(matches).splitlines()[1:] == [
        "start_position  end_position  x    y",
        "             0             1  v=0  v=1",
    ]


def test_a_table_in_a_terminal_is_as_wide_as_that_and_says_what_it_leaves_out(monkeypatch):
    columns = {"n": ["1", "22"], "first": ["a" * 30, "b"], "second": ["c" * 40, "d" * 25]}
    whole = str(Listing(["2 matches"], columns, right=frozenset({"n"})))
    for width in range(6, 90):
        monkeypatch.setattr(shown, "terminal_width", lambda width=width: width)
        title, *lines, note = str(Listing(["2 matches"], columns, right=frozenset({"n"}))).splitlines()
        if width >= 2 + 30 + 40 + 4:
            assert "\n".join([title, *lines, note]) == whole
        else:
            assert note.startswith(".. ")
            assert note.endswith(" (to_arrow() has all)")
            assert len(lines) == 3
            assert all(len(line) <= width for line in lines)
            if "more column" not in note:
                assert any(line.endswith("..") for line in lines)
    monkeypatch.setattr(shown, "terminal_width", lambda: 25)
    assert str(Listing(["2 matches"], columns, right=frozenset({"n"}))).splitlines() == [
        "2 matches",
        " n  first",
        " 1  aaaaaaaaaaaaaaaaaaa..",
        "22  b",
        ".. and 1 more column, for which the terminal is too narrow (to_arrow() has all)",
    ]


def test_columns_share_a_terminal():
    assert fitted([5, 5], None) == [5, 5]
    assert fitted([100, 3, 100], 107) == [50, 3, 50]
    assert fitted([100, 3, 100], 31) == [12, 3, 12]
    assert fitted([100, 3, 100], 30) == [25, 3]
    assert fitted([12] * 9, 40) == [12, 12, 12]
    assert fitted([100], 10) == [10]
    assert fitted([], 10) == []


def test_times_are_not_cut():
    assert fitted([20, 20, 40], 60, whole=(0, 1)) == [20, 20, 16]
    assert fitted([20, 20, 40], 45, whole=(0, 1)) == [20, 20]
    assert fitted([30, 20, 20], 70, whole=(1, 2)) == [26, 20, 20]
    assert fitted([20], 10, whole=(0,)) == [10]
