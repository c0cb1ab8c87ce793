"""Timelines of matches."""

from __future__ import annotations

import datetime as dt
from xml.etree import ElementTree as ET

import pyarrow as pa
import pytest

import cepheid
from cepheid.viz import timeline

SVG = "{http://www.w3.org/2000/svg}"
EVENTS = [{"type": name, "ts": 10 * place, "k": place % 2} for place, name in enumerate("AABBAABB")]


def rows(drawing: str) -> list[ET.Element]:
    return ET.fromstring(drawing).findall(f"{SVG}g[@class='match']")


def test_a_row_for_each_match_and_a_dot_for_each_event() -> None:
    matches = cepheid.query("SELECT * WHERE A AS x ; B+ AS y PARTITION BY k WITHIN 100").run(EVENTS)
    drawn = rows(timeline(matches))
    assert len(drawn) == len(matches)
    for row, match in zip(drawn, matches, strict=True):
        assert row.findtext(SVG + "text") == str(match.keys["k"])
        titles = [title.text for title in row.iter(SVG + "title")]
        assert titles == [f"x: {10 * (2 * at + match.keys['k'])}" for at in match.variables["x"]] + [
            f"y: {10 * (2 * at + match.keys['k'])}" for at in match.variables["y"]
        ]


def test_dots_stand_in_order_on_one_axis() -> None:
    matches = cepheid.query("SELECT * WHERE A AS x ; B AS y").run(EVENTS)
    places: dict[str, set[str]] = {}
    for row in rows(timeline(matches)):
        for dot in row.findall(SVG + "circle"):
            time = (dot.findtext(SVG + "title") or "").partition(": ")[2]
            places.setdefault(time, set()).add(dot.get("cx") or "")
    assert all(len(xs) == 1 for xs in places.values())
    ordered = [float(next(iter(xs))) for _, xs in sorted(places.items(), key=lambda item: int(item[0]))]
    assert ordered == sorted(ordered)
    assert len(set(ordered)) == len(ordered)


def test_only_the_first_are_drawn_and_it_says_so() -> None:
    matches = cepheid.query("SELECT * WHERE A AS x ; B AS y").run(EVENTS)
    drawing = timeline(matches, limit=3)
    assert len(rows(drawing)) == 3
    assert f".. and {len(matches) - 3} matches more" in drawing
    assert f"Timeline of 3 matches of {len(matches)}" in drawing


def test_without_matches_and_without_times() -> None:
    query = cepheid.query("SELECT * WHERE A AS x : C AS y")
    assert "no matches" in timeline(query.run(EVENTS))
    plain = [{"type": "A"}, {"type": "C"}]
    assert len(rows(timeline(query.run(plain)))) == 1


def test_one_event_at_one_time_stands_in_the_middle() -> None:
    matches = cepheid.query("SELECT * WHERE A AS x").run(EVENTS[:1])
    assert len(rows(timeline(matches))) == 1


@pytest.mark.parametrize(
    ("kind", "first", "last", "expected"),
    [
        (
            pa.timestamp("us", "UTC"),
            dt.datetime(2026, 1, 1, 10, tzinfo=dt.UTC),
            dt.datetime(2026, 1, 1, 11, tzinfo=dt.UTC),
            ["10:00:00Z", "11:00:00Z"],
        ),
        (
            pa.timestamp("ms"),
            dt.datetime.fromisoformat("2026-01-01 10:00"),
            dt.datetime.fromisoformat("2026-01-02 10:00:00.5"),
            ["2026-01-01 10:00:00", "2026-01-02 10:00:00.5"],
        ),
        (pa.date32(), dt.date(2026, 1, 1), dt.date(2026, 1, 3), ["2026-01-01", "2026-01-03"]),
    ],
)
def test_axes_of_all_kinds_of_time(kind: pa.DataType, first: object, last: object, expected: list[str]) -> None:
    table = pa.table({"type": ["A", "B"], "ts": pa.array([first, last], kind)})
    drawing = timeline(cepheid.query("SELECT * WHERE A AS x ; B AS y").run(table))
    texts = [text.text for text in ET.fromstring(drawing).findall(SVG + "text")]
    assert set(expected) <= set(texts)


def test_names_cannot_break_a_drawing() -> None:
    events = [{"type": "A", "ts": 1, "k": "<b>&\x00\x1b"}]
    matches = cepheid.query("SELECT * WHERE A AS `<i>` PARTITION BY k").run(events)
    assert "<i>" in "".join(ET.fromstring(timeline(matches)).itertext())


def test_a_limit_below_one() -> None:
    with pytest.raises(cepheid.InputError, match="shows nothing"):
        timeline(cepheid.query("SELECT * WHERE A").run(EVENTS), limit=0)
