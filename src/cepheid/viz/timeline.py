"""Matches over time as SVG: a row for each match, a dot for each of its events, a colour for each variable.

Comes in: `Matches`. Goes out: a `Drawing`. Only the first matches are drawn, with a note of how many there are. All share one axis: event time or,
without a time column, positions in the partition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from cepheid.engine.input.read import times_of
from cepheid.errors import InputError
from cepheid.viz import svg

if TYPE_CHECKING:
    from cepheid.engine.memory.pools import Array
    from cepheid.engine.output.matches import Matches
    from cepheid.viz.svg import Drawing

SHOWN = 20
"""Matches drawn, unless asked otherwise."""

ROW = 24.0
DOT = 5.0
FONT_SIZE = 12.0
SMALL = 10.0
MARGIN = 12.0
AXIS_WIDTH = 560.0
NAME_WIDTH = 24
"""Characters of a row's name and of a variable's."""

TICKS = 4


@dataclass(frozen=True)
class Axis:
    """The common axis: what is shown of it, in steps (event time or positions) and in pixels."""

    first: int
    last: int
    left: float
    kind: pa.DataType | None

    def at(self, step: int) -> float:
        """Where a step stands, in pixels."""
        length = self.last - self.first
        return self.left + (AXIS_WIDTH * (step - self.first) / length if length else AXIS_WIDTH / 2)

    def ticks(self) -> list[int]:
        """The steps that are named: first and last, and some between."""
        length = self.last - self.first
        return sorted({self.first + length * tick // TICKS for tick in range(TICKS + 1)})

    def text(self, step: int, *, short: bool = False) -> str:
        """A step as text; short: without the day, where all of them are on one."""
        if self.kind is None or pa.types.is_integer(self.kind):
            return str(step)
        text = _time_text(step, self.kind)
        day = _time_text(self.first, self.kind)[:10]
        return text[11:] if short and " " in text and day == _time_text(self.last, self.kind)[:10] else text


def _time_text(step: int, kind: pa.DataType) -> str:
    storage = pa.int32() if pa.types.is_date32(kind) else pa.int64()
    text = str(pa.scalar(step, storage).cast(kind).cast(pa.string()).as_py())
    whole, point, fraction = text.partition(".")
    digits = fraction.rstrip("Z").rstrip("0")
    zone = "Z" if text.endswith("Z") else ""
    return f"{whole.rstrip('Z')}{point if digits else ''}{digits}{zone}"


def timeline(matches: Matches, *, limit: int = SHOWN, title: str | None = None) -> Drawing:
    """The matches over time.

    limit: how many matches are drawn, from the first on. title: the text for screen readers. Raises InputError for a limit below 1. Linear in the
    marks of the matches drawn.
    """
    if limit < 1:
        raise InputError(f"a timeline of {limit} matches shows nothing", help="limit= is at least 1")
    drawn = matches[: min(limit, len(matches))]
    name = title or f"Timeline of {_count(len(drawn))}" + (f" of {len(matches):,}" if len(drawn) < len(matches) else "")
    if not len(drawn):
        body = [svg.words(MARGIN, MARGIN + FONT_SIZE, "no matches", size=FONT_SIZE, anchor="start")]
        return svg.document(2 * MARGIN + 120, 2 * MARGIN + FONT_SIZE, name=name, description="no matches", body=body)
    return _drawing(drawn, name, len(matches) - len(drawn))


def _count(number: int) -> str:
    return "1 match" if number == 1 else f"{number:,} matches"


def _drawing(matches: Matches, name: str, rest: int) -> Drawing:
    names = [_row_name(matches, index) for index in range(len(matches))]
    left = MARGIN + max(svg.text_width(each, FONT_SIZE) for each in names) + 16
    steps, kind = _steps(matches)
    axis = Axis(int(steps.min()), int(steps.max()), left, kind)
    legend, legend_width = _legend(matches, left)
    top = MARGIN + 2 * ROW
    body = [*legend, *_scale(axis, top, len(matches))]
    for index, row_name in enumerate(names):
        body.append(_row(matches, index, row_name, steps, axis, top + ROW * (index + 0.5)))
    bottom = top + ROW * len(matches) + ROW
    if rest:
        body.append(svg.words(MARGIN, bottom + 4, f".. and {_count(rest)} more", size=FONT_SIZE, anchor="start"))
        bottom += ROW
    half = svg.text_width(axis.text(axis.last, short=True), SMALL) / 2
    width = max(left + AXIS_WIDTH + half, legend_width) + MARGIN
    description = "; ".join(_said(matches, index, row_name) for index, row_name in enumerate(names))
    return svg.document(width, bottom + MARGIN / 2, name=name, description=description, body=body)


def _steps(matches: Matches) -> tuple[Array, pa.DataType | None]:
    """For each mark where it stands on the axis, and the type of event time."""
    time = matches.layout.time
    if time is None:
        return matches.positions, None
    return times_of(matches.events, time)[matches.rows], matches.events.schema.field(time).type


def _row_name(matches: Matches, index: int) -> str:
    return _cut(", ".join(str(value) for value in matches.keys_of(index).values()) or f"#{index}")


def _cut(text: str) -> str:
    return text if len(text) <= NAME_WIDTH else text[: NAME_WIDTH - 2] + ".."


def _said(matches: Matches, index: int, name: str) -> str:
    match = matches[index]
    start, end = (match.start, match.end) if match.start_time is None else (match.start_time, match.end_time)
    return f"{name}: {start} to {end}"


def _colour(place: int) -> str:
    return svg.COLOURS[place % len(svg.COLOURS)]


def _legend(matches: Matches, left: float) -> tuple[list[str], float]:
    """A dot and a name for each variable, and where they end."""
    parts, x, y = [], left, MARGIN + FONT_SIZE
    for place, variable in enumerate(matches.layout.variables):
        shown = _cut(variable)
        parts.append(svg.element("circle", cx=x + DOT, cy=y - 4, r=DOT, fill=_colour(place)))
        parts.append(svg.words(x + 3 * DOT, y, shown, size=FONT_SIZE, anchor="start"))
        x += 3 * DOT + svg.text_width(shown, FONT_SIZE) + 18
    return parts, x


def _scale(axis: Axis, top: float, rows: int) -> list[str]:
    """The ticks: light lines down the rows, with names where there is room, first and last before those between."""
    lines, names = [], []
    taken: list[tuple[float, float]] = []
    ticks = axis.ticks()
    for tick in sorted(ticks, key=lambda each: (each not in (ticks[0], ticks[-1]), each)):
        x = axis.at(tick)
        lines.append(
            svg.element("path", d=f"M{svg.number(x)} {svg.number(top)}V{svg.number(top + ROW * rows)}", stroke=svg.INK, opacity=0.25)
        )
        text = axis.text(tick, short=True)
        half = svg.text_width(text, SMALL) / 2
        middle = max(x, half + 2)
        if all(middle + half + 6 < left or middle - half - 6 > right for left, right in taken):
            names.append(svg.words(middle, top - 8, text, size=SMALL, opacity=0.85))
            taken.append((middle - half, middle + half))
    return [*lines, *names]


def _row(matches: Matches, index: int, name: str, steps: Array, axis: Axis, y: float) -> str:
    first, stop = int(matches.offsets[index]), int(matches.offsets[index + 1])
    parts = [svg.words(axis.left - 12, y + 4, name, size=FONT_SIZE, anchor="end")]
    ends = f"M{svg.number(axis.at(int(steps[first])))} {svg.number(y)}H{svg.number(axis.at(int(steps[stop - 1])))}"
    parts.append(svg.element("path", d=ends, stroke=svg.INK, stroke_width=2, opacity=0.5))
    for mark in range(first, stop):
        label = matches.layout.labels[int(matches.labels[mark])]
        places = [place for place, variable in enumerate(matches.layout.variables) if variable in label]
        said = svg.title(f"{', '.join(matches.layout.variables[place] for place in places) or '(hidden)'}: {axis.text(int(steps[mark]))}")
        x = axis.at(int(steps[mark]))
        looks = {"fill": _colour(places[0]), "fill_opacity": "0.85"} if places else {"stroke": svg.INK}
        parts.append(svg.element("circle", said, cx=x, cy=y, r=DOT, **looks))
    return svg.element("g", "".join(parts), class_="match")
