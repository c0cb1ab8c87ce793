"""An automaton as a drawing: SVG with a layout of our own, Mermaid or DOT.

Comes in: an `Automaton`, or the `Panel`s of a query. Goes out: text. States are circles, accepting ones doubled; transitions between the same two
states are one edge; waiting loops (any event, not marked) are drawn lightly and without words. A counted item, `A{5}`, is a box with how often: its
states are inside. So is a group, `(A ; B){5}`: one round of it stands in the box, a drawing in the drawing. What must not follow a match, the window
and the keys are not part of the automaton: lines below it say them.
"""

from __future__ import annotations

import itertools
import math
import textwrap
from typing import TYPE_CHECKING

from cepheid.errors import InputError, LimitError, counted, did_you_mean
from cepheid.records import record
from cepheid.viz import layout, markup, svg
from cepheid.viz.fold import Panel
from cepheid.viz.svg import Drawing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cepheid.automata.automaton import Automaton
    from cepheid.viz.fold import Arc, Diagram, EdgeCount, Node
    from cepheid.viz.labels import Label

MAX_DRAWN_STATES = 100
"""Most nodes of one automaton in an SVG; Mermaid and DOT have no limit of ours."""

MAX_DRAWN_LINKS = 500
"""Most edges of one automaton in an SVG."""

PAGE_WIDTH = 1000.0
"""Pixels from which on an SVG goes on below, in another band."""

LINES_SHOWN = 8
"""Lines of a label that an SVG shows; the rest is in the text that a pointer on the edge shows."""

LINE_WIDTH = 40
"""Characters of a line of a label; longer conditions are wrapped."""

NOTE_WIDTH = 120
"""Characters of a line below an automaton."""

RADIUS = 19.0
POINT = 4.0
"""Radius of the points where a round begins and ends."""

FONT_SIZE = 12.0
NOTE_SIZE = 11.0
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

PADDING = 9.0
"""Around the texts of a counted item, and around a round."""

BESIDE = 80.0
"""What a box leaves free at least beside a round that is as wide as the page, for the ways in and out."""

CORNER = 5.0
"""Radius of the corners of edges between bands."""


def draw(
    automaton: Automaton,
    *,
    format: str = "svg",  # noqa: A002 - public word
    title: str | None = None,
    absences: str = "",
    caption: str = "",
) -> Drawing:
    """The drawing of an automaton.

    format: one of `FORMATS`. title: a line above the drawing, and its name for screen readers (default name: the size of the automaton). absences:
    what must not follow a match, in words. caption: a line below it. Raises InputError for another format, LimitError for an SVG of more than
    `MAX_DRAWN_STATES` states or `MAX_DRAWN_LINKS` edges. Equal automata give equal drawings.
    """
    return draw_panels([Panel(automaton, caption=caption, absences=absences)], format=format, title=title)


def draw_panels(panels: Sequence[Panel], *, format: str = "svg", title: str | None = None) -> Drawing:  # noqa: A002 - public word
    """The drawing of several automata, one below the other, as `draw`."""
    if format not in FORMATS:
        raise InputError(
            f"there is no drawing format {format!r}",
            help=[*did_you_mean(format, FORMATS, quote="'"), f"the formats are {', '.join(map(repr, FORMATS))}"],
        )
    return Drawing(FORMATS[format](panels, _sizes(panels), title))


def _sizes(panels: Sequence[Panel]) -> str:
    sizes = [f"{counted(panel.automaton.states, 'state')}, {counted(len(panel.automaton.transitions), 'transition')}" for panel in panels]
    return f"{'Automaton' if len(panels) == 1 else 'Automata'}: {'; '.join(sizes)}"


@record(slots=False)
class LabelLine:
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


@record(slots=False)
class Box:
    """Where a label stands, in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Box) -> bool:
        """Whether two boxes have an inner point in common."""
        return self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom


@record(slots=False)
class Scene:
    """A drawing in pixels, before it is text: what stands where. lines, boxes: of each arc's label. rounds: the scene in the box of a group."""

    diagram: Diagram
    placed: layout.Placed
    lines: tuple[tuple[LabelLine, ...], ...]
    boxes: tuple[Box | None, ...]
    rounds: tuple[Scene | None, ...]

    @property
    def arcs(self) -> tuple[Arc, ...]:
        """The arcs of the diagram."""
        return self.diagram.arcs

    def state(self, number: int) -> tuple[float, float]:
        """The middle of a node."""
        return self.placed.states[number]

    def radius(self, number: int) -> float:
        """The radius of a node."""
        return _radius(self.diagram.nodes[number])


def label_lines(labels: Sequence[Label]) -> tuple[LabelLine, ...]:
    """The lines that an SVG shows of a label."""
    lines: list[LabelLine] = []
    for label in labels:
        *before, last = textwrap.wrap(label.condition, LINE_WIDTH, break_on_hyphens=False) or [""]
        lines += [*map(LabelLine, before), LabelLine(last, label.mark)]
    if len(lines) > LINES_SHOWN:
        rest = len(lines) - LINES_SHOWN + 1
        lines = [*lines[: LINES_SHOWN - 1], LabelLine(f".. {counted(rest, 'line')} more")]
    return tuple(lines)


def _label_size(lines: Sequence[LabelLine]) -> tuple[float, float]:
    return max((line.width for line in lines), default=0.0), LEADING * len(lines)


def _radius(node: Node) -> float:
    return RADIUS if node.states else POINT


def _times_width(count: EdgeCount) -> float:
    """The width of the part of a box that says how often."""
    return svg.text_width(str(count), FONT_SIZE) + 2 * PADDING


def _item_size(count: EdgeCount, lines: Sequence[LabelLine], inside: Scene | None) -> layout.Size:
    """The box of a counted item or a group: a group is entered at the height where its round begins."""
    if inside is None:
        width, height = _label_size(lines)
        return layout.Size(width + 2 * PADDING + _times_width(count), (height + PADDING) / 2, (height + PADDING) / 2)
    above = inside.state(inside.diagram.initial)[1] + PADDING
    return layout.Size(inside.placed.width + 2 * PADDING + _times_width(count), above, inside.placed.height + 2 * PADDING - above)


def _edge_size(arc: Arc, lines: Sequence[LabelLine], inside: Scene | None) -> layout.Size:
    """What the label of an edge takes: above its line, or around it for a counted item."""
    if arc.count is None:
        width, height = _label_size(lines)
        return layout.Size(width + 8, height + 4, 3)
    size = _item_size(arc.count, lines, inside)
    return layout.Size(size.width + 2 * ARROW, size.above, size.below + WAIT * arc.count.waits)


def scene(drawn: Diagram, *, limit: float = PAGE_WIDTH - 2 * MARGIN - ENTRY) -> Scene:
    """Lay a diagram out; limit: the width from which on it goes on below."""
    lines = tuple(label_lines(arc.labels) for arc in drawn.arcs)
    rounds = tuple(
        None if arc.count is None or arc.count.round is None else scene(arc.count.round, limit=limit - _times_width(arc.count) - BESIDE)
        for arc in drawn.arcs
    )
    sizes = [_state_size(node, drawn, lines) for node in range(len(drawn.nodes))]
    across = [index for index, arc in enumerate(drawn.arcs) if not arc.loops]
    edges = [
        layout.Edge(drawn.arcs[index].source, drawn.arcs[index].target, _edge_size(drawn.arcs[index], lines[index], rounds[index]))
        for index in across
    ]
    placed = layout.place(sizes, edges, start=drawn.initial, limit=limit)
    boxes: list[Box | None] = [None] * len(drawn.arcs)
    for number, index in enumerate(across):
        boxes[index] = _edge_box(drawn.arcs[index], lines[index], rounds[index], placed.routes[number][placed.labels[number]])
    for index, arc in enumerate(drawn.arcs):
        if arc.loops and lines[index]:
            (middle, y), (width, height) = placed.states[arc.source], _label_size(lines[index])
            base = y - RADIUS - LOOP - 2
            boxes[index] = Box(middle - width / 2, base - height, middle + width / 2, base)
    return Scene(drawn, placed, lines, tuple(boxes), rounds)


def _edge_box(arc: Arc, lines: Sequence[LabelLine], inside: Scene | None, bend: layout.Bend) -> Box:
    middle = (bend.left + bend.right) / 2
    if arc.count is None:
        width, height = _label_size(lines)
        return Box(middle - width / 2, bend.y - 4 - height, middle + width / 2, bend.y - 4)
    size = _item_size(arc.count, lines, inside)
    return Box(middle - size.width / 2, bend.y - size.above, middle + size.width / 2, bend.y + size.below)


def _check_size(drawn: Diagram) -> None:
    """Raises LimitError as `draw`."""
    for what, given, limit, name in (
        ("states", sum(bool(node.states) for each in drawn.whole for node in each.nodes), MAX_DRAWN_STATES, "MAX_DRAWN_STATES"),
        ("edges", sum(len(each.arcs) for each in drawn.whole), MAX_DRAWN_LINKS, "MAX_DRAWN_LINKS"),
    ):
        if given > limit:
            raise LimitError(
                f"the automaton has {given:,} {what}; an SVG shows at most {limit:,} ({name})",
                help='draw it as "dot" and lay it out with Graphviz, or draw a part of the pattern',
            )


def _state_size(node: int, drawn: Diagram, lines: Sequence[Sequence[LabelLine]]) -> layout.Size:
    """A circle with its loops: those with a label above it, the waiting loop below."""
    radius = _radius(drawn.nodes[node])
    width, above, below = 2 * (radius + ARROW), radius, radius
    for arc, shown in zip(drawn.arcs, lines, strict=True):
        if arc.source == arc.target == node:
            if arc.waits:
                below += WAIT
            else:
                label_width, height = _label_size(shown)
                width, above = max(width, label_width + 8), above + LOOP + height + 4
    return layout.Size(width, above, below)


def _svg(panels: Sequence[Panel], name: str, title: str | None) -> Drawing:
    heading = svg.Heading(title)
    body, width, top = heading.body(MARGIN), heading.width, MARGIN + heading.height
    for panel in panels:
        inside, inside_width, height = _panel(panel)
        body.append(svg.element("g", "\n".join(["", *inside, ""]), transform=f"translate({svg.number(MARGIN)} {svg.number(top)})"))
        width, top = max(width, inside_width), top + height
    legend = _notes([_legend([arc for panel in panels for each in panel.diagram.whole for arc in each.arcs])])
    body += [_note(MARGIN, top + LEADING * line, text) for line, text in enumerate(legend)]
    return svg.document(
        max(width, *(svg.text_width(line, NOTE_SIZE) for line in legend)) + 2 * MARGIN,
        top + LEADING * len(legend) + MARGIN / 2,
        name=title or name,
        description=" ".join(map(_described, panels)),
        body=body,
    )


def _panel(panel: Panel) -> tuple[list[str], float, float]:
    """The elements of one automaton with what stands around it, its width and its height."""
    _check_size(panel.diagram)
    laid = scene(panel.diagram)
    body = _body(laid)
    top = LEADING + PADDING if panel.name else 0.0
    heading = [svg.words(0, FONT_SIZE, panel.name, size=FONT_SIZE, anchor="start", font_weight="bold")] if panel.name else []
    shifted = svg.element("g", "\n".join(["", *body, ""]), transform=f"translate({svg.number(ENTRY)} {svg.number(top)})")
    below = top + laid.placed.height + PADDING
    nothing = "" if any(node.final for node in laid.diagram.nodes) else "no state accepts: nothing matches"
    notes = _notes([panel.caption, panel.note and f"accepting: {panel.note}", nothing])
    said = [_note(0, below + LEADING * line, text) for line, text in enumerate(notes)]
    width = max(laid.placed.width + ENTRY, *(svg.text_width(line, NOTE_SIZE) for line in (*notes, panel.name)))
    return [*heading, shifted, *said], width, below + LEADING * len(notes) + (PADDING if panel.name else 0.0)


def _body(laid: Scene) -> list[str]:
    body = _edges(laid)
    body += [_loop(laid, index) for index, arc in enumerate(laid.arcs) if arc.loops]
    return body + [_state(laid, node) for node in range(len(laid.diagram.nodes))]


def _notes(texts: Sequence[str]) -> list[str]:
    return list(itertools.chain.from_iterable(textwrap.wrap(text, NOTE_WIDTH, break_on_hyphens=False) for text in texts))


def _note(x: float, y: float, text: str) -> str:
    return svg.words(x, y + NOTE_SIZE, text, size=NOTE_SIZE, anchor="start")


def _described(panel: Panel) -> str:
    drawn = panel.diagram
    finals = ", ".join(str(state) for node in drawn.nodes if node.final for state in node.states)
    first = f"{panel.name}: starts" if panel.name else "starts"
    sentences = [f"{first} in {drawn.nodes[drawn.initial].name}, accepts in {finals or 'no state'}", *map(drawn.text, drawn.arcs)]
    return ". ".join([*sentences, *filter(None, (panel.caption, panel.note))]) + "."


def _legend(arcs: Sequence[Arc]) -> str:
    labels = [label for arc in arcs for label in arc.labels]
    parts = ["event / variables" if all(label.mark for label in labels) else "event / variables (none: the one of the type's name)"]
    if any(label.mark == "-" for label in labels):
        parts.append("-: not marked")
    if any(arc.waits or (arc.count is not None and arc.count.waits) for arc in arcs):
        parts.append("dashed: any event, not marked")
    return "; ".join(parts)


def _state(laid: Scene, number: int) -> str:
    x, y = laid.state(number)
    node = laid.diagram.nodes[number]
    if not node.states:
        point = svg.element("circle", cx=x, cy=y, r=POINT, fill=svg.ACCENT)
        return svg.element("g", svg.title(node.said) + point, class_="point")
    parts = [
        svg.title(node.said),
        svg.element("circle", cx=x, cy=y, r=RADIUS, stroke=svg.ACCENT, stroke_width=1.5, fill=svg.ACCENT, fill_opacity=0.12),
    ]
    if node.final:
        parts.append(svg.element("circle", cx=x, cy=y, r=RADIUS - 4, stroke=svg.ACCENT, stroke_width=1.5))
    if node.initial:
        left = laid.placed.columns[number].left
        parts += [_path(f"M{_at(left - ENTRY, y)}H{svg.number(x - RADIUS - ARROW)}"), _arrow(x - RADIUS, y, 0.0)]
    parts.append(svg.words(x, y + 4.5, node.name, size=FONT_SIZE + 1))
    return svg.element("g", "".join(parts), class_="state", data_states=_listed(node.states))


def _listed(states: Sequence[int]) -> str:
    return " ".join(map(str, states))


def _at(x: float, y: float) -> str:
    return f"{svg.number(x)} {svg.number(y)}"


def _path(data: str, *, dashed: bool = False) -> str:
    if dashed:
        return svg.element("path", d=data, stroke=svg.INK, stroke_width=1.2, stroke_dasharray="2 4")
    return svg.element("path", d=data, stroke=svg.INK, stroke_width=1.2)


def _arrow(x: float, y: float, angle: float) -> str:
    """An arrow's head with its tip at (x, y); angle: where it points, in radians, 0 is right."""
    points = [(0.0, 0.0), (-ARROW, -ARROW / 2.2), (-ARROW, ARROW / 2.2)]
    cosine, sine = math.cos(angle), math.sin(angle)
    turned = [(x + cosine * px - sine * py, y + sine * px + cosine * py) for px, py in points]
    return svg.element("path", d="M" + "L".join(_at(*point) for point in turned) + "Z", fill=svg.INK)


def _loop(laid: Scene, index: int) -> str:
    arc = laid.arcs[index]
    x, y = laid.state(arc.source)
    loop = _loop_at(x, y, RADIUS, waits=arc.waits)
    return svg.element("g", "".join([svg.title(laid.diagram.text(arc)), *loop, *_label(laid, index)]), class_="loop")


def _loop_at(x: float, y: float, radius: float, *, waits: bool) -> list[str]:
    """A loop at what has its middle at (x, y) and is so high: below it if it waits, else above it."""
    side, out = (1.0, WAIT) if waits else (-1.0, LOOP)
    angle = math.radians(62)
    dx, dy = RADIUS * math.cos(angle), radius * (math.sin(angle) if radius == RADIUS else 1.0) * side
    far = y + side * (radius + out * 1.25)
    data = f"M{_at(x - dx, y + dy)}C{_at(x - 2.1 * dx, far)} {_at(x + 2.1 * dx, far)} {_at(x + dx, y + dy)}"
    tip = math.atan2((y + dy) - far, (x + dx) - (x + 2.1 * dx))
    return [_path(data, dashed=waits), _arrow(x + dx, y + dy, tip)]


def _label(laid: Scene, index: int) -> list[str]:
    box, count = laid.boxes[index], laid.arcs[index].count
    if box is None:
        return []
    if count is None:
        return _lines(laid.lines[index], (box.left + box.right) / 2, box.top)
    times, inside = _times_width(count), laid.rounds[index]
    y = (box.top + box.bottom) / 2
    parts = [
        svg.title(_said_between(count)),
        svg.element(
            "rect",
            x=box.left,
            y=box.top,
            width=box.right - box.left,
            height=box.bottom - box.top,
            rx=12,
            stroke=svg.ACCENT,
            stroke_width=1.5,
            fill=svg.ACCENT,
            fill_opacity=0.12 if inside is None else 0.05,
        ),
        *_lines(laid.lines[index], (box.left + box.right - times) / 2, box.top + PADDING / 2),
        _path(f"M{_at(box.right - times, box.top)}V{svg.number(box.bottom)}"),
        svg.words(box.right - PADDING, y + 4.5, str(count), size=FONT_SIZE, anchor="end", fill=svg.ACCENT, font_weight="bold"),
    ]
    if count.waits:
        parts += _loop_at((box.left + box.right) / 2, y, (box.bottom - box.top) / 2, waits=True)
    item = svg.element("g", "".join(parts), class_="item" if inside is None else "item group", data_states=_listed(count.states))
    if inside is None:
        return [item]
    corner = f"translate({svg.number(box.left + PADDING)} {svg.number(box.top + PADDING)})"
    return [item, svg.element("g", "\n".join(["", *_body(inside), ""]), transform=corner)]


def _said_between(count: EdgeCount) -> str:
    said = f"states {', '.join(map(str, count.states))}" if len(count.states) > 1 else f"state {count.states[0]}"
    return said if count.round is None else f"between two rounds: {said}"


def _lines(lines: Sequence[LabelLine], middle: float, top: float) -> list[str]:
    parts = []
    for place, line in enumerate(lines):
        y = top + LEADING * (place + 1) - 4
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
    across = [index for index, arc in enumerate(laid.arcs) if not arc.loops]
    ports = _ports(laid, across)
    drawn = []
    for number, index in enumerate(across):
        arc = laid.arcs[index]
        turned = number in laid.placed.turned
        ends = (arc.target, arc.source) if turned else (arc.source, arc.target)
        stops = [_port(laid, end, port, side=side) for end, port, side in zip(ends, ports[number], (1.0, -1.0), strict=True)]
        paths, tips = _route(laid, number, index, ends, stops)
        arrows = [_arrow(*tip, math.pi if turned else 0.0) for tip in tips]
        parts = [svg.title(laid.diagram.text(arc)), *map(_path, paths), *arrows, *_label(laid, index)]
        drawn.append(svg.element("g", "".join(parts), class_="edge"))
    return drawn


def _ports(laid: Scene, across: Sequence[int]) -> list[tuple[float, float]]:
    """For each edge how far above or below the middle it meets its left and its right state."""
    sides: dict[tuple[int, str], list[int]] = {}
    for number, index in enumerate(across):
        ends = [laid.arcs[index].source, laid.arcs[index].target]
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
        gap = min(PORT_GAP, 0.75 * laid.radius(state) / max(centre, len(ordered) - 1 - centre, 1))
        for place, number in enumerate(ordered):
            found[number, side] = (place - centre) * gap
    return [(found[number, "right"], found[number, "left"]) for number in range(len(across))]


Point = tuple[float, float]


def _route(laid: Scene, number: int, index: int, ends: tuple[int, int], stops: Sequence[Point]) -> tuple[list[str], list[Point]]:
    """The paths of an edge from its left to its right state, and where its arrows end: at its target, and at its counted item.

    ends: the two states. stops: the points where the edge meets them.
    """
    turned, count, box = number in laid.placed.turned, laid.arcs[index].count, laid.boxes[index]
    before, behind = (0.0, ARROW) if turned else (ARROW, 0.0)
    (start_x, y), (stop_x, stop_y) = stops
    first, last = (laid.placed.columns[end] for end in ends)
    paths, data = list[str](), [f"M{_at(start_x + behind, y)}"]
    tips = [stops[0] if turned else stops[1]]
    x, band = first.right, first.band
    stretches = [*laid.placed.routes[number], layout.Bend(last.left, stop_x, stop_y, last.band)]
    for place, bend in enumerate(stretches):
        data.append(f"H{svg.number(x)}")
        if bend.band == band:
            middle = (x + bend.left) / 2
            data.append(f"C{_at(middle, y)} {_at(middle, bend.y)} {_at(bend.left, bend.y)}")
        else:
            data += _carried(laid.placed.carries[number, band], y, bend)
        if count is not None and box is not None and place == laid.placed.labels[number]:
            paths.append("".join([*data, f"H{svg.number(box.left - before)}"]))
            data = [f"M{_at(box.right + behind, bend.y)}"]
            tips.append((box.right if turned else box.left, bend.y))
        x, y, band = bend.right, bend.y, bend.band
    data.append(f"H{svg.number(stop_x - before)}")
    return [*paths, "".join(data)], tips


def _carried(carry: layout.Carry, y: float, bend: layout.Bend) -> Iterator[str]:
    """From height y on the right of a band to the beginning of a stretch in the next one, with round corners."""
    right, middle, left = carry.right, carry.gutter, carry.left
    for before, corner, after in (
        ((right - CORNER, y), (right, y), (right, y + CORNER)),
        ((right, middle - CORNER), (right, middle), (right - CORNER, middle)),
        ((left + CORNER, middle), (left, middle), (left, middle + CORNER)),
        ((left, bend.y - CORNER), (left, bend.y), (left + CORNER, bend.y)),
    ):
        yield f"L{_at(*before)}Q{_at(*corner)} {_at(*after)}"
    yield f"L{_at(bend.left, bend.y)}"


def _port(laid: Scene, state: int, offset: float, *, side: float) -> Point:
    x, y = laid.state(state)
    return x + side * math.sqrt(laid.radius(state) ** 2 - offset**2), y + offset


FORMATS: dict[str, Callable[[Sequence[Panel], str, str | None], str]] = {"svg": _svg, "mermaid": markup.mermaid, "dot": markup.dot}
"""The formats of `draw`, each with its function of (panels, name, title)."""
