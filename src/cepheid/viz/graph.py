"""An automaton as a drawing: SVG with a layout of our own, Mermaid or DOT.

Comes in: an `Automaton`. Goes out: text. States are circles, accepting ones doubled; transitions between the same two states are one edge with a line
for each; waiting loops (any event, not marked) are drawn lightly and without words. What must not follow a match is not part of the automaton: a note
at the accepting states says it.
"""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cepheid.errors import InputError, LimitError, did_you_mean
from cepheid.viz import layout, svg
from cepheid.viz.labels import Label, Link, links
from cepheid.viz.svg import Drawing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cepheid.automata.automaton import Automaton

MAX_DRAWN_STATES = 100
"""Most states of an SVG; Mermaid and DOT have no limit of ours."""

MAX_DRAWN_LINKS = 500
"""Most edges of an SVG."""

LINES_SHOWN = 8
"""Lines of a label that an SVG shows; the rest is in the text that a pointer on the edge shows."""

LINE_WIDTH = 40
"""Characters of a line of a label; longer conditions are wrapped."""

RADIUS = 19.0
FONT_SIZE = 12.0
LEADING = 15.0
LOOP = 27.0
"""How far a loop stands out of its state."""

WAIT = 20.0
"""How far a waiting loop stands out of its state."""

ARROW = 7.0
PORT_GAP = 9.0
MARGIN = 10.0
ENTRY = 30.0
"""Length of the arrow that enters the initial state."""


def draw(
    automaton: Automaton,
    *,
    format: str = "svg",  # noqa: A002 - public word
    title: str | None = None,
    absences: str = "",
) -> Drawing:
    """The drawing of an automaton.

    format: one of `FORMATS`. title: the text for screen readers and pointers (default: the size of the automaton). absences: what must not follow a
    match, in words. Raises InputError for another format, LimitError for an SVG of more than `MAX_DRAWN_STATES` states or `MAX_DRAWN_LINKS` edges.
    Equal automata give equal drawings.
    """
    if format not in FORMATS:
        raise InputError(
            f"there is no drawing format {format!r}",
            help=[*did_you_mean(format, FORMATS, quote="'"), f"the formats are {', '.join(map(repr, FORMATS))}"],
        )
    name = title or f"Automaton: {_count(automaton.states, 'state')}, {_count(len(automaton.transitions), 'transition')}"
    note = f"a match is given once there was {absences}" if absences else ""
    return Drawing(FORMATS[format](automaton, links(automaton), name, note))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


# ---------------------------------------------------------------------------------------------------------------- Mermaid and DOT


def _dot(automaton: Automaton, drawn: Sequence[Link], name: str, note: str) -> str:
    lines = ["digraph cepheid {", "  rankdir=LR", f"  tooltip={_dot_text(name)}", "  node [shape=circle]", "  start [shape=point]"]
    lines += [f"  {state} [shape=doublecircle]" for state in sorted(automaton.finals)]
    lines.append(f"  start -> {automaton.initial}")
    for link in drawn:
        looks = 'style=dashed color=gray label=""' if link.waits else f"label={_dot_text(chr(10).join(map(str, link.labels)))}"
        lines.append(f"  {link.source} -> {link.target} [{looks}]")
    if note:
        wrapped = "\n".join(textwrap.wrap(note, LINE_WIDTH, break_on_hyphens=False))
        lines.append(f"  note [shape=note label={_dot_text(wrapped)}]")
        lines += [f"  {state} -> note [style=dotted dir=none]" for state in sorted(automaton.finals)]
    return "\n".join([*lines, "}"]) + "\n"


def _dot_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{svg.printable(escaped)}"'


def _mermaid(automaton: Automaton, drawn: Sequence[Link], name: str, note: str) -> str:
    lines = ["flowchart LR", f"  accTitle: {svg.printable(name)}"]
    for state in range(automaton.states):
        opening, closing = ("(((", ")))") if state in automaton.finals else ("((", "))")
        lines.append(f"  s{state}{opening}{state}{closing}")
    lines += ["  start[ ] --> " + f"s{automaton.initial}", "  style start fill:none,stroke:none"]
    for link in drawn:
        if link.waits:
            lines.append(f"  s{link.source} -.-> s{link.target}")
        else:
            text = "<br/>".join(_mermaid_text(str(label)) for label in link.labels)
            lines.append(f'  s{link.source} -- "{text}" --> s{link.target}')
    if note:
        lines.append(f'  note["{_mermaid_text(note)}"]')
        lines += [f"  s{state} -.- note" for state in sorted(automaton.finals)]
    return "\n".join(lines) + "\n"


MERMAID_CODES = {character: f"#{ord(character)};" for character in "#\"'`<>&;|\\*_~{}[]"}


def _mermaid_text(text: str) -> str:
    return "".join(MERMAID_CODES.get(character, character) for character in svg.printable(text))


# ---------------------------------------------------------------------------------------------------------------------------- SVG


@dataclass(frozen=True)
class Line:
    """One line of a label: text of a condition, and behind its end the mark."""

    condition: str
    mark: str = ""

    @property
    def before(self) -> str:
        """What stands before the mark."""
        return f"{self.condition} /" if self.mark else self.condition

    @property
    def width(self) -> float:
        """In pixels."""
        return svg.text_width(self.before + (f" {self.mark}" if self.mark else ""), FONT_SIZE)


@dataclass(frozen=True)
class Box:
    """Where a label stands, in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Box) -> bool:
        """Whether two boxes have an inner point in common."""
        return self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom


@dataclass(frozen=True)
class Scene:
    """A drawing in pixels, before it is text: what stands where."""

    automaton: Automaton
    links: tuple[Link, ...]
    placed: layout.Placed
    lines: tuple[tuple[Line, ...], ...]
    boxes: tuple[Box | None, ...]

    def state(self, number: int) -> tuple[float, float]:
        """The middle of a state."""
        return self.placed.states[number]


def label_lines(labels: Sequence[Label]) -> tuple[Line, ...]:
    """The lines that an SVG shows of a label."""
    lines: list[Line] = []
    for label in labels:
        *before, last = textwrap.wrap(label.condition, LINE_WIDTH, break_on_hyphens=False) or [""]
        lines += [*map(Line, before), Line(last, label.mark)]
    if len(lines) > LINES_SHOWN:
        rest = len(lines) - LINES_SHOWN + 1
        lines = [*lines[: LINES_SHOWN - 1], Line(f".. {_count(rest, 'line')} more")]
    return tuple(lines)


def _label_size(lines: Sequence[Line]) -> tuple[float, float]:
    return max((line.width for line in lines), default=0.0), LEADING * len(lines)


def scene(automaton: Automaton, drawn: Sequence[Link]) -> Scene:
    """Lay an automaton out. Raises LimitError as `draw`."""
    _check_size(automaton, drawn)
    lines = tuple(label_lines(link.labels) for link in drawn)
    sizes = [_state_size(state, drawn, lines) for state in range(automaton.states)]
    across = [index for index, link in enumerate(drawn) if link.source != link.target]
    edges = []
    for index in across:
        width, height = _label_size(lines[index])
        edges.append(layout.Edge(drawn[index].source, drawn[index].target, layout.Size(width + 8, height + 4, 3)))
    placed = layout.place(sizes, edges, start=automaton.initial)
    boxes: list[Box | None] = [None] * len(drawn)
    for index, link in enumerate(drawn):
        width, height = _label_size(lines[index])
        if index in across:
            number = across.index(index)
            bend = placed.routes[number][placed.labels[number]]
            middle, base = (bend.left + bend.right) / 2, bend.y - 4
        else:
            middle, base = placed.states[link.source]
            base -= RADIUS + LOOP + 2
        if lines[index]:
            boxes[index] = Box(middle - width / 2, base - height, middle + width / 2, base)
    return Scene(automaton, tuple(drawn), placed, lines, tuple(boxes))


def _check_size(automaton: Automaton, drawn: Sequence[Link]) -> None:
    for what, given, limit, name in (
        ("states", automaton.states, MAX_DRAWN_STATES, "MAX_DRAWN_STATES"),
        ("edges", len(drawn), MAX_DRAWN_LINKS, "MAX_DRAWN_LINKS"),
    ):
        if given > limit:
            raise LimitError(
                f"the automaton has {given:,} {what}; an SVG shows at most {limit:,} ({name})",
                help='draw it as "dot" and lay it out with Graphviz, or draw a part of the pattern',
            )


def _state_size(state: int, drawn: Sequence[Link], lines: Sequence[Sequence[Line]]) -> layout.Size:
    """A circle with its loops: those with a label above it, the waiting loop below."""
    width, above, below = 2 * (RADIUS + ARROW), RADIUS, RADIUS
    for link, shown in zip(drawn, lines, strict=True):
        if link.source == link.target == state:
            if link.waits:
                below += WAIT
            else:
                label_width, height = _label_size(shown)
                width, above = max(width, label_width + 8), above + LOOP + height + 4
    return layout.Size(width, above, below)


def _svg(automaton: Automaton, drawn: Sequence[Link], name: str, note: str) -> Drawing:
    laid = scene(automaton, drawn)
    body = _edges(laid)
    for index, link in enumerate(drawn):
        if link.source == link.target:
            body.append(_loop(laid, index))
    body += [_state(laid, state) for state in range(automaton.states)]
    shifted = svg.element("g", "\n".join(["", *body, ""]), transform=f"translate({svg.number(MARGIN + ENTRY)} {svg.number(MARGIN)})")
    notes = [*textwrap.wrap(note and f"accepting: {note}", 2 * LINE_WIDTH, break_on_hyphens=False), _legend(drawn)]
    width = max(laid.placed.width + ENTRY, *(svg.text_width(line, FONT_SIZE - 2) for line in notes)) + 2 * MARGIN
    height = laid.placed.height + 2 * MARGIN + LEADING * len(notes)
    said = [
        svg.words(MARGIN, height - MARGIN + 2 - LEADING * above, line, size=FONT_SIZE - 2, anchor="start", opacity=0.8)
        for above, line in enumerate(reversed(notes))
    ]
    description = f"starts in {automaton.initial}, accepts in {', '.join(map(str, sorted(automaton.finals))) or 'no state'}. "
    return svg.document(
        width,
        height,
        name=name,
        description=description + ". ".join([*(link.text for link in drawn), *([note] if note else [])]),
        body=[shifted, *said],
    )


def _legend(drawn: Sequence[Link]) -> str:
    parts = ["event / variables"]
    if any(label.mark == "-" for link in drawn for label in link.labels):
        parts.append("-: not marked")
    if any(link.waits for link in drawn):
        parts.append("dashed: any event, not marked")
    return "; ".join(parts)


def _state(laid: Scene, number: int) -> str:
    x, y = laid.state(number)
    final, initial = number in laid.automaton.finals, number == laid.automaton.initial
    said = f"state {number}" + (", initial" if initial else "") + (", accepting" if final else "")
    parts = [
        svg.title(said),
        svg.element("circle", cx=x, cy=y, r=RADIUS, stroke=svg.ACCENT, stroke_width=1.5, fill=svg.ACCENT, fill_opacity=0.12),
    ]
    if final:
        parts.append(svg.element("circle", cx=x, cy=y, r=RADIUS - 4, stroke=svg.ACCENT, stroke_width=1.5))
    if initial:
        left = laid.placed.columns[number][0]
        parts += [_path(f"M{_at(left - ENTRY, y)}H{svg.number(x - RADIUS - ARROW)}"), _arrow(x - RADIUS, y, 0.0)]
    parts.append(svg.words(x, y + 4.5, str(number), size=FONT_SIZE + 1))
    return svg.element("g", "".join(parts), class_="state")


def _at(x: float, y: float) -> str:
    return f"{svg.number(x)} {svg.number(y)}"


def _path(data: str, *, dashed: bool = False) -> str:
    if dashed:
        return svg.element("path", d=data, stroke=svg.INK, stroke_width=1.2, stroke_dasharray="2 4", opacity=0.6)
    return svg.element("path", d=data, stroke=svg.INK, stroke_width=1.2)


def _arrow(x: float, y: float, angle: float, *, opacity: float = 1.0) -> str:
    """An arrow's head with its tip at (x, y); angle: where it points, in radians, 0 is right."""
    points = [(0.0, 0.0), (-ARROW, -ARROW / 2.2), (-ARROW, ARROW / 2.2)]
    cosine, sine = math.cos(angle), math.sin(angle)
    turned = [(x + cosine * px - sine * py, y + sine * px + cosine * py) for px, py in points]
    return svg.element("path", d="M" + "L".join(_at(*point) for point in turned) + "Z", fill=svg.INK, opacity=opacity)


def _loop(laid: Scene, index: int) -> str:
    link = laid.links[index]
    x, y = laid.state(link.source)
    side, out = (1.0, WAIT) if link.waits else (-1.0, LOOP)
    angle = math.radians(62)
    dx, dy = RADIUS * math.cos(angle), RADIUS * math.sin(angle) * side
    far = y + side * (RADIUS + out * 1.25)
    data = f"M{_at(x - dx, y + dy)}C{_at(x - 2.1 * dx, far)} {_at(x + 2.1 * dx, far)} {_at(x + dx, y + dy)}"
    tip = math.atan2((y + dy) - far, (x + dx) - (x + 2.1 * dx))
    parts = [svg.title(link.text), _path(data, dashed=link.waits), _arrow(x + dx, y + dy, tip, opacity=0.6 if link.waits else 1.0)]
    return svg.element("g", "".join([*parts, *_label(laid, index)]), class_="loop")


def _label(laid: Scene, index: int) -> list[str]:
    box = laid.boxes[index]
    if box is None:
        return []
    parts = []
    middle = (box.left + box.right) / 2
    for place, line in enumerate(laid.lines[index]):
        y = box.top + LEADING * (place + 1) - 4
        if not line.mark:
            parts.append(svg.words(middle, y, line.condition, size=FONT_SIZE))
            continue
        # Two texts that meet, whatever the reader's font: not every reader knows how wide the text before a tspan is.
        end = middle - line.width / 2 + svg.text_width(line.before, FONT_SIZE)
        parts.append(svg.words(end, y, line.before, size=FONT_SIZE, anchor="end"))
        start = end + svg.text_width(" ", FONT_SIZE)
        parts.append(svg.words(start, y, line.mark, size=FONT_SIZE, anchor="start", fill=svg.ACCENT, font_weight="bold"))
    return parts


# -------------------------------------------------------------------------------------------------------------------------- edges


def _edges(laid: Scene) -> list[str]:
    """The edges between different states, as paths through their stretches."""
    across = [index for index, link in enumerate(laid.links) if link.source != link.target]
    ports = _ports(laid, across)
    drawn = []
    for number, index in enumerate(across):
        link = laid.links[index]
        turned = number in laid.placed.turned
        left, right = (link.target, link.source) if turned else (link.source, link.target)
        first, last = ports[number]
        data, (start, stop) = _route(laid, number, (left, first), (right, last), turned=turned)
        arrow = _arrow(*start, math.pi) if turned else _arrow(*stop, 0.0)
        parts = [svg.title(link.text), _path(data), arrow, *_label(laid, index)]
        drawn.append(svg.element("g", "".join(parts), class_="edge"))
    return drawn


def _ports(laid: Scene, across: Sequence[int]) -> list[tuple[float, float]]:
    """For each edge how far above or below the middle it meets its left and its right state."""
    sides: dict[tuple[int, str], list[int]] = {}
    for number, index in enumerate(across):
        ends = [laid.links[index].source, laid.links[index].target]
        left, right = reversed(ends) if number in laid.placed.turned else ends
        sides.setdefault((left, "right"), []).append(number)
        sides.setdefault((right, "left"), []).append(number)
    found: dict[tuple[int, str], float] = {}
    for (state, side), numbers in sides.items():
        bends = {number: laid.placed.routes[number][0 if side == "right" else -1] for number in numbers}
        ordered = sorted(numbers, key=lambda number: bends[number].y)
        middle = laid.state(state)[1]
        straight = min(range(len(ordered)), key=lambda place: abs(bends[ordered[place]].y - middle))
        centre = straight if abs(bends[ordered[straight]].y - middle) < PORT_GAP else (len(ordered) - 1) / 2
        gap = min(PORT_GAP, 0.75 * RADIUS / max(centre, len(ordered) - 1 - centre, 1))
        for place, number in enumerate(ordered):
            found[number, side] = (place - centre) * gap
    return [(found[number, "right"], found[number, "left"]) for number in range(len(across))]


Point = tuple[float, float]


def _route(laid: Scene, number: int, left: tuple[int, float], right: tuple[int, float], *, turned: bool) -> tuple[str, tuple[Point, Point]]:
    """The path of an edge from its left to its right state, and the points where it meets them."""
    (start_x, start_y), (stop_x, stop_y) = _port(laid, *left, side=1.0), _port(laid, *right, side=-1.0)
    x, y = start_x + (ARROW if turned else 0.0), start_y
    data = [f"M{_at(x, y)}"]
    x = laid.placed.columns[left[0]][1]
    entry = laid.placed.columns[right[0]][0]
    for near, far, height in [*((bend.left, bend.right, bend.y) for bend in laid.placed.routes[number]), (entry, stop_x, stop_y)]:
        data.append(f"H{svg.number(x)}")
        middle = (x + near) / 2
        data.append(f"C{_at(middle, y)} {_at(middle, height)} {_at(near, height)}")
        x, y = far, height
    data.append(f"H{svg.number(stop_x - (0.0 if turned else ARROW))}")
    return "".join(data), ((start_x, start_y), (stop_x, stop_y))


def _port(laid: Scene, state: int, offset: float, *, side: float) -> Point:
    x, y = laid.state(state)
    return x + side * math.sqrt(RADIUS**2 - offset**2), y + offset


FORMATS: dict[str, Callable[[Automaton, Sequence[Link], str, str], str]] = {"svg": _svg, "mermaid": _mermaid, "dot": _dot}
"""The formats of `draw`, each with its function of (automaton, links, name, note)."""
