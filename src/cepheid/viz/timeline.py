"""Matches over time as SVG: a row for each match, a dot for each of its events, a colour for each variable.

Comes in: `Matches`. Goes out: a `Drawing`. Only the first matches are drawn, with a note of how many there are. All share one axis: event time or,
without a time column, positions in the partition; or how long after the start of its match each event is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cepheid.engine.input.event_times import times_of
from cepheid.engine.output.shown import cut, event_text, value_text
from cepheid.errors import InputError, check_choice, counted
from cepheid.records import record
from cepheid.viz import svg
from cepheid.viz.axis import TEXT_SIZE, WIDTH, Axis
from cepheid.viz.colours import colours_of, shown_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from cepheid.engine.memory.pools import Array
    from cepheid.engine.output.matches import Matches
    from cepheid.viz.svg import Drawing

SHOWN = 20
"""Matches drawn, unless asked otherwise."""

ALIGNMENTS = ("time", "start")
"""What all rows share: the time, or the start of their match."""

ROW = 24.0
DOT = 5.0
LANE = 2 * DOT + 1
MOST_LANES = 4
"""Lanes of a row: dots that would cover each other stand below each other, up to so many."""

FONT_SIZE = 12.0
MARGIN = 12.0
NAME_WIDTH = 32
"""Characters of a row's name and of a variable's."""

LEGEND_WIDTH = 1000.0
"""Pixels from which on the legend goes on below."""


def timeline(matches: Matches, *, limit: int = SHOWN, title: str | None = None, align: str = "time") -> Drawing:
    """The matches over time.

    limit: how many matches are drawn, from the first on. title: a line above the drawing. align: "time" (all matches on one axis of event time) or
    "start" (each from its own start on: for short matches in long data). A pointer on a dot shows the time and the attributes of its event. A
    dashed line behind a match is the time for which NOT FOLLOWED BY waits; it ends at the edge where that is much longer than the matches. Raises
    InputError for a limit below 1 and for another align. Linear in the marks of the matches drawn.
    """
    if limit < 1:
        raise InputError(f"a timeline of {limit} matches shows nothing", help="limit= is at least 1")
    check_choice("align", align, ALIGNMENTS)
    drawn = matches[: min(limit, len(matches))]
    name = title or f"Timeline of {counted(len(drawn), 'match', 'matches')}" + (
        f" of {len(matches):,}" if len(drawn) < len(matches) else ""
    )
    if not len(drawn):
        heading = svg.Heading(title)
        height = MARGIN + heading.height + FONT_SIZE
        body = [*heading.body(MARGIN), svg.words(MARGIN, height, "no matches", size=FONT_SIZE, anchor="start")]
        width = 2 * MARGIN + max(120, heading.width)
        return svg.document(width, height + MARGIN, name=name, description="no matches", body=body)
    return _Timeline.of(drawn, relative=align == "start").drawing(name, len(matches) - len(drawn), title=title)


@record(slots=False)
class _Timeline:
    """What is drawn. names: of the rows. steps: of each mark, event time or position. starts: of each match, where its row begins on the axis.

    deadlines: of each match, until when NOT FOLLOWED BY waits, in steps; None without it. lanes: of each match, those of its dots.
    """

    matches: Matches
    names: tuple[str, ...]
    steps: Array
    starts: Array
    deadlines: tuple[int, ...] | None
    lanes: tuple[tuple[int, ...], ...]
    axis: Axis
    colours: dict[frozenset[str], tuple[str, str]]

    @classmethod
    def of(cls, matches: Matches, *, relative: bool) -> _Timeline:
        names = tuple(_row_name(matches, index) for index in range(len(matches)))
        left = MARGIN + max(svg.text_width(each, FONT_SIZE) for each in names) + 16
        steps, kind = _steps(matches)
        marks = matches.marks
        starts = steps[marks.offsets[:-1]] if relative else np.zeros(len(matches), np.int64)
        placed = steps - np.repeat(starts, np.diff(marks.offsets))
        first, last, deadlines = int(placed.min()), int(placed.max()), _deadlines(matches, steps)
        if deadlines is not None:
            waits = max(deadline - int(start) for deadline, start in zip(deadlines, starts, strict=True))
            last = min(waits, 2 * last - first if last > first else waits, MOST)
        axis = Axis(first, last, left, kind, relative)
        heading = svg.text_width(axis.heading(), TEXT_SIZE) + MARGIN + 16
        axis = axis if left >= heading else Axis(first, last, heading, kind, relative)
        rows = np.split(placed, marks.offsets[1:-1])
        lanes = tuple(_lanes([axis.at(step) for step in row.tolist()]) for row in rows)
        return cls(matches, names, steps, starts, deadlines, lanes, axis, _colours(matches))

    def drawing(self, name: str, rest: int, *, title: str | None) -> Drawing:
        """The SVG; rest: how many matches are not drawn. title: the line above it."""
        heading = svg.Heading(title)
        legend, legend_width, lines = self.legend(MARGIN + heading.height)
        top = MARGIN + heading.height + ROW * (lines + 1)
        heights = [ROW + LANE * max(lanes) for lanes in self.lanes]
        tops = [top, *(top + np.cumsum(heights)).tolist()]
        body = [*heading.body(MARGIN), *legend, *self.scale(top, tops[-1])]
        body += [self.row(index, at + ROW / 2) for index, at in enumerate(tops[:-1])]
        bottom = tops[-1] + ROW / 2
        if rest:
            body.append(
                svg.words(MARGIN, bottom + FONT_SIZE, f".. and {counted(rest, 'match', 'matches')} more", size=FONT_SIZE, anchor="start")
            )
            bottom += ROW
        half = max(svg.text_width(text, TEXT_SIZE) for _, text in self.axis.ticks()) / 2
        width = max(self.axis.left + WIDTH + max(half, DOT), legend_width, heading.width) + MARGIN
        description = "; ".join(self.said(index) for index in range(len(self.names)))
        return svg.document(width, bottom + MARGIN / 2, name=name, description=description, body=body)

    def said(self, index: int) -> str:
        """A row in words, with the measures of its match."""
        match = self.matches[index]
        start, end = (match.start, match.end) if match.start_time is None else (match.start_time, match.end_time)
        measures = "".join(f", {name}={value_text(value)}" for name, value in match.measures.items())
        waits = "" if self.deadlines is None else f", waited for until {self.deadline(index)}"
        return f"{self.names[index]}: {value_text(start)} to {value_text(end)}{measures}{waits}"

    def deadline(self, index: int) -> str:
        """Until when NOT FOLLOWED BY waits, as text."""
        step = (self.deadlines or ())[index]
        return self.axis.text(step - int(self.starts[index])) if step <= MOST else "the end of time"

    def legend(self, top: float) -> tuple[list[str], float, int]:
        """A dot and a name for each colour, and a dashed line for waiting; where they end, and how many lines they are."""
        parts, x, y, widest = [], self.axis.left, top + FONT_SIZE, 0.0
        waits = [] if self.deadlines is None else [(WAITING, WAITING)]
        for shown, colour in [*dict.fromkeys(self.colours.values()), *waits]:
            width = 3 * DOT + svg.text_width(shown, FONT_SIZE)
            if x + width > LEGEND_WIDTH and x > self.axis.left:
                x, y = self.axis.left, y + ROW
            if colour == WAITING:
                parts.append(_waiting(x, x + 2 * DOT, y - 4))
            else:
                parts.append(svg.element("circle", cx=x + DOT, cy=y - 4, r=DOT, **_looks(colour)))
            parts.append(svg.words(x + 3 * DOT, y, shown, size=FONT_SIZE, anchor="start"))
            widest = max(widest, x + width)
            x += width + 18
        return parts, widest, 1 + round((y - top - FONT_SIZE) / ROW)

    def scale(self, top: float, bottom: float) -> list[str]:
        """The ticks: light lines down the rows, with their texts; what these have in common stands beside the legend."""
        lines, texts = [], []
        for step, text in self.axis.ticks():
            x = self.axis.at(step)
            path = f"M{svg.number(x)} {svg.number(top)}V{svg.number(bottom)}"
            lines.append(svg.element("path", d=path, stroke=svg.INK, opacity=0.25))
            texts.append(svg.words(x, top - 8, text, size=TEXT_SIZE))
        if self.axis.heading():
            texts.append(svg.words(self.axis.left - 16, top - 12 - ROW, self.axis.heading(), size=TEXT_SIZE, anchor="end"))
        return [*lines, *texts]

    def row(self, index: int, y: float) -> str:
        """One match: its name, a line from its first to its last event, a dot for each, and a dashed line while it waits. y: of the first lane."""
        marks = self.matches.marks
        first, stop = int(marks.offsets[index]), int(marks.offsets[index + 1])
        places = [self.axis.at(int(self.steps[mark] - self.starts[index])) for mark in range(first, stop)]
        said = svg.title(self.said(index))
        ends = f"M{svg.number(places[0])} {svg.number(y)}H{svg.number(places[-1])}"
        parts = [
            svg.element("g", said + svg.words(self.axis.left - 16, y + 4, self.names[index], size=FONT_SIZE, anchor="end")),
            svg.element("path", said, d=ends, stroke=svg.INK, stroke_width=2, opacity=0.5),
        ]
        if self.deadlines is not None:
            edge = min(self.deadlines[index] - int(self.starts[index]), self.axis.last)
            parts.append(_waiting(places[-1], self.axis.at(edge), y, said))
        parts += [self.dot(index, first + number, x, y + LANE * self.lanes[index][number]) for number, x in enumerate(places)]
        return svg.element("g", "".join(parts), class_="match", data_match=str(index))

    def dot(self, index: int, mark: int, x: float, y: float) -> str:
        """One event of a match."""
        marks = self.matches.marks
        label = self.matches.layout.labels[int(marks.labels[mark])]
        shown = ", ".join(shown_of(self.matches.layout, label)) or HIDDEN
        text = f"{shown}: {self.time(index, mark)}"
        values = event_text(self.matches.event_of(int(marks.rows[mark])))
        said = svg.title(f"{text}; {values}" if values else text)
        return svg.element(
            "circle",
            said,
            cx=x,
            cy=y,
            r=DOT,
            class_="event",
            data_position=str(int(marks.positions[mark])),
            **_looks(self.colours[label][1]),
        )

    def time(self, index: int, mark: int) -> str:
        """When an event is: its time or position, and how long after the start of its match, if that is where it stands."""
        step = int(self.steps[mark])
        if not self.axis.relative:
            return self.axis.text(step)
        own = value_text(self.axis.value(step))
        return f"{self.axis.text(step - int(self.starts[index]))} ({own})"


def _steps(matches: Matches) -> tuple[Array, pa.DataType | None]:
    """For each mark where it stands on the axis, and the type of event time."""
    time = matches.layout.time
    if time is None:
        return matches.marks.positions, None
    return times_of(matches.events, time)[matches.marks.rows], matches.events.schema.field(time).type


MOST = 2**63 - 1
"""The greatest step of a time."""


def _deadlines(matches: Matches, steps: Array) -> tuple[int, ...] | None:
    """Of each match until when something forbidden may follow it, in steps; None where nothing is waited for."""
    waits, offsets = matches.layout.waits, matches.marks.offsets
    if not waits or matches.layout.time is None:
        return None
    ends = zip(steps[offsets[:-1]].tolist(), steps[offsets[1:] - 1].tolist(), strict=True)
    return tuple(max((start if from_start else end) + length for length, from_start in waits) for start, end in ends)


def _lanes(places: Iterable[float]) -> tuple[int, ...]:
    """The lane of each dot of a row: the first one where it covers no dot before it; where all are taken, the one that is free the soonest."""
    ends: list[float] = []
    found = []
    for x in places:
        lane = next((number for number, end in enumerate(ends) if end + 2 * DOT <= x), len(ends))
        if lane == MOST_LANES:
            lane = ends.index(min(ends))
        ends[lane : lane + 1] = [x]
        found.append(lane)
    return tuple(found)


WAITING = "waiting"


def _waiting(start: float, end: float, y: float, said: str = "") -> str:
    """The dashed line of a time in which something forbidden may come."""
    path = f"M{svg.number(start)} {svg.number(y)}H{svg.number(end)}"
    return svg.element("path", said, d=path, stroke=svg.INK, stroke_width=2, stroke_dasharray="2 5", class_="waiting")


def _row_name(matches: Matches, index: int) -> str:
    """The keys of a match by name, else its number."""
    keys = matches.keys_of(index)
    return cut(", ".join(f"{name}={value_text(value)}" for name, value in keys.items()) or f"#{index}", NAME_WIDTH)


HIDDEN = "(hidden)"


def _colours(matches: Matches) -> dict[frozenset[str], tuple[str, str]]:
    """For each label that the matches have: its name in the legend and its colour, "" for events that no variable shows."""
    layout = matches.layout
    colours = {**colours_of(layout), "": ""}
    order = list(colours)
    used = {layout.labels[number] for number in np.unique(matches.marks.labels).tolist()}
    names = {label: next(iter(shown_of(layout, label)), "") for label in used}
    ordered = sorted(used, key=lambda label: order.index(names[label]))
    return {label: (cut(names[label], NAME_WIDTH) or HIDDEN, colours[names[label]]) for label in ordered}


def _looks(colour: str) -> dict[str, str]:
    return {"fill": colour, "fill_opacity": "0.85"} if colour else {"stroke": svg.INK}
