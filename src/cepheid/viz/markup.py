"""An automaton in the languages of others: DOT for Graphviz, Mermaid for Markdown. Their programs lay it out.

Comes in: `Panel`s. Goes out: text. A counted item is a node with rounded corners, between the states before and after it. A group is a cluster
(a subgraph) with one round of it, from the point where it begins to the one where it ends; other events may come between two rounds where the latter
has a waiting loop.
"""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING

from cepheid.viz import svg

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cepheid.viz.fold import Arc, Diagram, Panel

LINE_WIDTH = 40
"""Characters of a line of a note."""


def dot(panels: Sequence[Panel], name: str, title: str | None = None) -> str:
    """A Graphviz graph; several panels, and one with a title above it, are clusters in it."""
    lines = ["digraph cepheid {", "  rankdir=LR", f"  tooltip={_dot_text(title or name)}", "  node [shape=circle]"]
    lines += [f"  label={_dot_text(title)}", "  labelloc=t"] if title else []
    if len(panels) == 1 and not title:
        lines += _dot_panel(panels[0], "")
    else:
        for number, panel in enumerate(panels, 1):
            lines += [f"  subgraph cluster_{number} {{", *(f"  {line}" for line in _dot_panel(panel, f"p{number}_")), "  }"]
    return "\n".join([*lines, "}"]) + "\n"


def _dot_panel(panel: Panel, prefix: str) -> Iterator[str]:
    drawn = panel.diagram
    heading = "\n".join(filter(None, (panel.name, panel.caption)))
    if heading:
        yield f"  label={_dot_text(heading)}"
    yield f"  {prefix}start [shape=point]"
    names = _names(drawn, prefix)
    yield from _dot_diagram(drawn, names, prefix, "item", entered=[f"  {prefix}start -> {names[drawn.initial]}"])
    if panel.note:
        wrapped = "\n".join(textwrap.wrap(panel.note, LINE_WIDTH, break_on_hyphens=False))
        yield f"  {prefix}note [shape=note label={_dot_text(wrapped)}]"
        yield from (f"  {own} -> {prefix}note [style=dotted dir=none]" for node, own in zip(drawn.nodes, names, strict=True) if node.final)


def _names(drawn: Diagram, prefix: str, item: str = "") -> list[str]:
    """The names of the nodes; item: of the group around them."""
    return [f"{prefix}{node.name}" if node.states else f"{item}_{node.name}" for node in drawn.nodes]


def _dot_diagram(drawn: Diagram, names: Sequence[str], prefix: str, item: str, *, entered: Sequence[str] = ()) -> Iterator[str]:
    for node, own in zip(drawn.nodes, names, strict=True):
        shape = "shape=doublecircle" if node.final and node.states else "" if node.states else "shape=point"
        shown = f"label={node.name}" if prefix and node.states else ""
        if shape or shown:
            yield f"  {own} [{' '.join(filter(None, (shape, shown)))}]"
    yield from entered
    for number, arc in enumerate(drawn.arcs, 1):
        yield from _dot_arc(arc, names, prefix, f"{item}{number}")


WAITING = 'style=dashed color=gray label=""'


def _dot_arc(arc: Arc, names: Sequence[str], prefix: str, item: str) -> Iterator[str]:
    source, target = names[arc.source], names[arc.target]
    lines = [*map(str, arc.labels), *([str(arc.count)] if arc.count else [])]
    text = _dot_text("\n".join(lines))
    if arc.count is None:
        yield f"  {source} -> {target} [{WAITING if arc.waits else f'label={text}'}]"
        return
    begin = end = f"{prefix}{item}"
    if arc.count.round is None:
        yield f"  {begin} [shape=box style=rounded label={text}]"
        yield f"  {source} -> {begin} -> {target}"
    else:
        begin, end = f"{begin}_begin", f"{end}_end"
        yield f"  subgraph cluster_{prefix}{item} {{"
        yield f"    label={text} style=rounded"
        inside = _dot_diagram(arc.count.round, _names(arc.count.round, prefix, f"{prefix}{item}"), prefix, f"{item}_")
        yield from (f"  {line}" for line in inside)
        yield "  }"
        yield f"  {source} -> {begin}"
        yield f"  {end} -> {target}"
    if arc.count.waits:
        yield f"  {end} -> {end} [{WAITING}]"


def _dot_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{svg.printable(escaped)}"'


def mermaid(panels: Sequence[Panel], name: str, title: str | None = None) -> str:
    """A Mermaid flowchart; several panels are subgraphs of it, and so is one with a caption."""
    lines = ["---", f"title: {json.dumps(svg.printable(title), ensure_ascii=False)}", "---"] if title else []
    lines += ["flowchart LR", f"  accTitle: {svg.printable(title or name)}"]
    for number, panel in enumerate(panels, 1):
        prefix = f"p{number}_" if len(panels) > 1 else ""
        heading = ": ".join(filter(None, (panel.name, panel.caption)))
        inside = list(_mermaid_panel(panel, prefix))
        if heading:
            lines += [f'  subgraph {prefix}query["{_mermaid_text(heading)}"]', *(f"  {line}" for line in inside), "  end"]
        else:
            lines += inside
    return "\n".join(lines) + "\n"


def _mermaid_panel(panel: Panel, prefix: str) -> Iterator[str]:
    drawn = panel.diagram
    names = _names(drawn, f"{prefix}s")
    entered = [f"  {prefix}start[ ] --> {names[drawn.initial]}", f"  style {prefix}start fill:none,stroke:none"]
    yield from _mermaid_diagram(drawn, names, prefix, "item", entered=entered)
    if panel.note:
        yield f'  {prefix}note["{_mermaid_text(panel.note)}"]'
        yield from (f"  {own} -.- {prefix}note" for node, own in zip(drawn.nodes, names, strict=True) if node.final)


def _mermaid_diagram(drawn: Diagram, names: Sequence[str], prefix: str, item: str, *, entered: Sequence[str] = ()) -> Iterator[str]:
    for node, own in zip(drawn.nodes, names, strict=True):
        opening, closing = ("(((", ")))") if node.final and node.states else ("((", "))")
        yield f"  {own}{opening}{node.name if node.states else ' '}{closing}"
    yield from entered
    for number, arc in enumerate(drawn.arcs, 1):
        yield from _mermaid_arc(arc, names, prefix, f"{item}{number}")


def _mermaid_arc(arc: Arc, names: Sequence[str], prefix: str, item: str) -> Iterator[str]:
    source, target = names[arc.source], names[arc.target]
    text = "<br/>".join(_mermaid_text(str(label)) for label in arc.labels)
    if arc.count is None:
        yield f"  {source} -.-> {target}" if arc.waits else f'  {source} -- "{text}" --> {target}'
        return
    begin = end = f"{prefix}{item}"
    if arc.count.round is None:
        yield f'  {begin}(["{text}<br/>{arc.count}"])'
        yield f"  {source} --> {begin} --> {target}"
    else:
        begin, end = f"{begin}_begin", f"{end}_end"
        yield f'  subgraph {prefix}{item}["{arc.count}"]'
        inside = _mermaid_diagram(arc.count.round, _names(arc.count.round, f"{prefix}s", f"{prefix}{item}"), prefix, f"{item}_")
        yield from (f"  {line}" for line in inside)
        yield "  end"
        yield f"  {source} --> {begin}"
        yield f"  {end} --> {target}"
    if arc.count.waits:
        yield f"  {end} -.-> {end}"


MERMAID_CODES = {character: f"#{ord(character)};" for character in "#\"'`<>&;|\\*_~{}[]"}
"""Characters that Mermaid reads as its own, and what stands for them."""


def _mermaid_text(text: str) -> str:
    return "".join(MERMAID_CODES.get(character, character) for character in svg.printable(text))
