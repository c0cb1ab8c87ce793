"""Timelines of matches."""

from __future__ import annotations

import datetime as dt
import itertools
from xml.etree import ElementTree as ET

import pyarrow as pa
import pytest

import cepheid
from cepheid.viz import svg, timeline
from cepheid.viz.colours import colours_of

SVG = "{http://www.w3.org/2000/svg}"
EVENTS = [{"type": name, "ts": 10 * place, "k": place % 2} for place, name in enumerate("AABBAABB")]


def rows(drawing: str) -> list[ET.Element]:
    return ET.fromstring(drawing).findall(f"{SVG}g[@class='match']")


def test_a_row_for_each_match_and_a_dot_for_each_event() -> None:
    matches = cepheid.query("SELECT * WHERE A AS x ; B+ AS y PARTITION BY k WITHIN 100").run(EVENTS)
    drawn = rows(timeline(matches))
    assert len(drawn) == len(matches)
    for row, match in zip(drawn, matches, strict=True):
        assert row.findtext(f"{SVG}g/{SVG}text") == f"k={match.keys['k']}"
        titles = [dot.findtext(SVG + "title") for dot in row.findall(SVG + "circle")]
        assert titles == [f"x: {10 * (2 * at + match.keys['k'])}" for at in match.variables["x"]] + [
            f"y: {10 * (2 * at + match.keys['k'])}" for at in match.variables["y"]
        ]


def test_dots_stand_in_order_on_one_axis() -> None:
    matches = cepheid.query("SELECT * WHERE A AS x ; B AS y").run(EVENTS)
    places: dict[str, set[str]] = {}
    for row in rows(timeline(matches)):
        for dot in row.findall(SVG + "circle"):
            time = (dot.findtext(SVG + "title") or "").partition(": ")[2].partition(";")[0]
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
            ["2026-01-01 Z", "10:00", "10:10", "10:50", "11:00"],
        ),
        (
            pa.timestamp("ms"),
            dt.datetime.fromisoformat("2026-01-01 10:00"),
            dt.datetime.fromisoformat("2026-01-02 10:00:00.5"),
            ["2026-01-01", "12:00", "18:00", "2026-01-02", "06:00"],
        ),
        (pa.date32(), dt.date(2026, 1, 1), dt.date(2026, 1, 3), ["2026-01-01", "2026-01-02", "2026-01-03"]),
    ],
)
def test_axes_of_all_kinds_of_time(kind: pa.DataType, first: object, last: object, expected: list[str]) -> None:
    table = pa.table({"type": ["A", "B"], "ts": pa.array([first, last], kind)})
    drawing = timeline(cepheid.query("SELECT * WHERE A AS x ; B AS y").run(table))
    texts = [text.text for text in ET.fromstring(drawing).findall(SVG + "text")]
    assert set(expected) <= set(texts)
    assert not any("00:00:00" in text or ".0" in text for text in texts if text)


def test_names_cannot_break_a_drawing() -> None:
    events = [{"type": "A", "ts": 1, "k": "<b>&\x00\x1b"}]
    matches = cepheid.query("SELECT * WHERE A AS `<i>` PARTITION BY k").run(events)
    assert "<i>" in "".join(ET.fromstring(timeline(matches)).itertext())


def test_a_limit_below_one() -> None:
    with pytest.raises(cepheid.InputError, match="shows nothing"):
        timeline(cepheid.query("SELECT * WHERE A").run(EVENTS), limit=0)


def ticks(drawing: str) -> list[str]:
    """The texts above the rows, from left to right; the heading, which stands left of them all, is first."""
    found = [text for text in ET.fromstring(drawing).findall(SVG + "text") if text.get("font-size") == "10"]
    return [text.text or "" for text in sorted(found, key=lambda text: float(text.attrib["x"]))]


def timed(times: list[dt.datetime], zone: str | None = None) -> pa.Table:
    return pa.table({"type": ["A", *["B"] * (len(times) - 1)], "ts": pa.array(times, pa.timestamp("us", zone))})


AT_TEN = dt.datetime.fromisoformat("2026-01-01 10:00:07")


@pytest.mark.parametrize(
    ("length", "step"),
    [
        (dt.timedelta(milliseconds=900), dt.timedelta(milliseconds=200)),
        (dt.timedelta(seconds=50), dt.timedelta(seconds=10)),
        (dt.timedelta(minutes=7), dt.timedelta(minutes=1)),
        (dt.timedelta(minutes=34), dt.timedelta(minutes=5)),
        (dt.timedelta(hours=7), dt.timedelta(hours=1)),
        (dt.timedelta(days=6), dt.timedelta(days=1)),
        (dt.timedelta(days=400), dt.timedelta(days=100)),
    ],
)
def test_ticks_are_round(length: dt.timedelta, step: dt.timedelta) -> None:
    drawing = timeline(cepheid.query("SELECT * WHERE A AS x ; B AS y").run(timed([AT_TEN, AT_TEN + length])))
    _, *texts = ticks(drawing)
    day = AT_TEN.replace(hour=0, minute=0, second=0)
    times = [dt.datetime.fromisoformat(text if "-" in text else f"2026-01-01 {text}") for text in texts]
    assert {later - earlier for earlier, later in itertools.pairwise(times)} == {step}
    if step <= dt.timedelta(days=1):
        assert all((time - day) % step == dt.timedelta() for time in times)


def test_ticks_are_round_in_the_zone_of_the_column() -> None:
    """In Nepal midnight is at 18:15 UTC."""
    times = [dt.datetime.fromisoformat("2026-01-01T10:00:00+00:00"), dt.datetime.fromisoformat("2026-01-02T10:00:00+00:00")]
    drawing = timeline(cepheid.query("SELECT * WHERE A AS x ; B AS y").run(timed(times, "Asia/Kathmandu")))
    assert ticks(drawing) == ["2026-01-01 +05:45", "18:00", "2026-01-02", "06:00", "12:00"]


def test_each_row_may_begin_at_the_start_of_its_match() -> None:
    late = AT_TEN + dt.timedelta(days=300)
    table = pa.table(
        {
            "type": ["A", "B", "A", "B"],
            "ts": pa.array([AT_TEN, AT_TEN + dt.timedelta(minutes=4), late, late + dt.timedelta(minutes=2)], pa.timestamp("us")),
        }
    )
    matches = cepheid.query("SELECT * WHERE A AS x ; B AS y WITHIN 5m").run(table)
    drawing = timeline(matches, align="start")
    assert ticks(drawing) == ["+0s", "+30s", "+1m", "+1m 30s", "+2m", "+2m 30s", "+3m", "+3m 30s", "+4m"]
    places = [[float(dot.attrib["cx"]) for dot in row.findall(SVG + "circle")] for row in rows(drawing)]
    assert places[0][0] == places[1][0]
    assert places[0][1] - places[0][0] == pytest.approx(2 * (places[1][1] - places[1][0]), abs=0.2)
    assert rows(drawing)[1].findall(SVG + "circle")[1].findtext(SVG + "title") == "y: +2m (2026-10-28 10:02:07)"
    numbers = timeline(cepheid.query("SELECT * WHERE A AS x ; B AS y WITHIN 30").run(EVENTS), align="start")
    assert ticks(numbers) == ["+0", "+5", "+10", "+15", "+20", "+25", "+30"]
    with pytest.raises(cepheid.InputError, match="align"):
        timeline(matches, align="end")


def test_a_pointer_shows_the_values_of_an_event() -> None:
    stream = [{"type": "A", "ts": 1, "k": "u", "v": 3, "w": None}, {"type": "B", "ts": 2, "k": "u", "v": None, "w": "<b>"}]
    (row,) = rows(timeline(cepheid.query("SELECT * WHERE A AS x ; B AS y PARTITION BY k").run(stream)))
    assert [dot.findtext(SVG + "title") for dot in row.findall(SVG + "circle")] == ["x: 1; v=3", "y: 2; w=<b>"]


def legend(drawing: str) -> list[str]:
    """The texts behind the dots above the axis."""
    found = ET.fromstring(drawing)
    return [text.text or "" for text in found.findall(SVG + "text")[: len(found.findall(SVG + "circle"))]]


def test_a_legend_also_where_matches_show_measures_only() -> None:
    assert legend(timeline(cepheid.query("SELECT y, x WHERE A AS x ; B AS y").run(EVENTS))) == ["x", "y"]
    drawing = timeline(cepheid.query("SELECT count(y) AS n WHERE A AS x ; B+ AS y").run(EVENTS), limit=1)
    assert legend(drawing) == ["x", "y"]
    (row,) = rows(drawing)
    assert row.findtext(f"{SVG}g/{SVG}title") == "#0: 10 to 20, n=1"
    assert [(dot.findtext(SVG + "title") or "").partition(":")[0] for dot in row.findall(SVG + "circle")] == ["x", "y"]
    assert legend(timeline(cepheid.query("SELECT y WHERE A AS x ; B AS y ; A").run(EVENTS))) == ["y", "(hidden)"]


def test_a_long_legend_goes_on_below() -> None:
    names = [f"a_rather_long_variable_{number}" for number in range(12)]
    pattern = " : ".join(f"A AS {name}" for name in names)
    drawing = timeline(cepheid.query(f"SELECT * WHERE {pattern}").run([{"type": "A", "ts": time} for time in range(12)]))
    assert float(ET.fromstring(drawing).attrib["width"]) < 1100
    assert len({text.get("y") for text in ET.fromstring(drawing).findall(SVG + "text") if text.text in names}) > 1


@pytest.mark.parametrize("times", [(-5, 7), (0, 1), (0, 2**60), (-(2**62), 2**62 - 1)])
@pytest.mark.parametrize("align", ["time", "start"])
def test_axes_of_any_length(times: tuple[int, int], align: str) -> None:
    matches = cepheid.query("SELECT * WHERE A AS x ; B AS y").run(
        [{"type": kind, "ts": time} for kind, time in zip("AB", times, strict=True)]
    )
    texts = ticks(timeline(matches, align=align))
    assert 2 <= len(texts) <= 9
    assert len({int(later) - int(earlier) for earlier, later in itertools.pairwise(texts)}) == 1


def drawn_places(row: ET.Element) -> list[tuple[float, float]]:
    return [(float(dot.attrib["cx"]), float(dot.attrib["cy"])) for dot in row.findall(SVG + "circle")]


def test_dots_of_a_short_match_stand_in_lanes() -> None:
    """In long data the events of a match have nearly one place: none of them covers another, and no row another row."""
    times = [0, 1, 2, 5000, 9000, 9001]
    stream = [{"type": kind, "ts": time} for kind, time in zip("AABAAB", times, strict=True)]
    drawn = [drawn_places(row) for row in rows(timeline(cepheid.query("SELECT MAX * WHERE A+ AS x ; B AS y").run(stream)))]
    assert [len({y for _, y in row}) for row in drawn] == [3, 2]
    dots = [dot for row in drawn for dot in row]
    assert all(abs(x - u) >= 10 or abs(y - v) >= 10 for (x, y), (u, v) in itertools.combinations(dots, 2))
    assert max(y for _, y in drawn[0]) < min(y for _, y in drawn[1])


def test_no_more_than_a_few_lanes() -> None:
    stream = [{"type": "A" if time < 50 else "B", "ts": time if time < 50 else 10**6} for time in range(51)]
    (row,) = rows(timeline(cepheid.query("SELECT MAX * WHERE A+ AS x ; B AS y").run(stream)))
    assert len({y for _, y in drawn_places(row)}) == 4


@pytest.mark.parametrize(("end", "until"), [("", 25), (" FROM START", 20)])
@pytest.mark.parametrize("align", ["time", "start"])
def test_the_time_that_not_followed_by_waits_is_drawn(end: str, until: int, align: str) -> None:
    query = cepheid.query(f"SELECT * WHERE (A AS x ; B AS y) NOT FOLLOWED BY C FOR 10ms{end}")
    table = pa.table({"type": ["A", "B"], "ts": pa.array([10, 15], pa.timestamp("ms"))})
    drawing = timeline(query.run(table, until="end"), align=align)
    (row,) = rows(drawing)
    (line,) = row.findall(f"{SVG}path[@class='waiting']")
    start, stop = map(float, line.attrib["d"].removeprefix("M").replace(" ", "H").split("H")[::2])
    first, last = (x for x, _ in drawn_places(row))
    assert start == last
    assert (stop - first) / (last - first) == pytest.approx((min(until, 20) - 10) / 5, abs=0.01), "at most as far again as the events"
    assert f"waited for until {f'+{until - 10}ms' if align == 'start' else f'1970-01-01 00:00:0{until / 1000}'}" in drawing
    assert "waiting" in [text.text for text in ET.fromstring(drawing).findall(SVG + "text")]


def test_a_title_stands_above() -> None:
    matches = cepheid.query("SELECT * WHERE A AS x ; B AS y").run(EVENTS)
    for some in (matches, matches[:0]):
        heading, *others = ET.fromstring(timeline(some, title="Pairs & more")).findall(SVG + "text")
        assert heading.text == "Pairs & more"
        assert others
        assert all(float(text.attrib["y"]) > float(heading.attrib["y"]) for text in others)


@pytest.mark.parametrize("targets", ["*", "y", "y, x", "count(y) AS n"])
def test_a_variable_has_one_colour_whatever_select_shows(targets: str) -> None:
    matches = cepheid.query(f"SELECT {targets} WHERE A AS x ; B AS y").run(EVENTS)
    assert colours_of(matches.layout) == {"x": svg.COLOURS[0], "y": svg.COLOURS[1]}
    (row, *_) = rows(timeline(matches))
    shown = [dot.get("fill") for dot in row.findall(SVG + "circle")]
    assert shown == [None if targets == "y" else svg.COLOURS[0], svg.COLOURS[1]]
