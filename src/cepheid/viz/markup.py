"""An automaton in the languages of others: DOT for Graphviz, Mermaid for Markdown. Their programs lay it out.

Comes in: `Panel`s. Goes out: text. A counted item is a node with rounded corners, between the states before and after it.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from cepheid.viz import svg

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cepheid.viz.fold import Arc, Panel

LINE_WIDTH = 40
"""Characters of a line of a note."""


def dot(panels: Sequence[Panel], name: str) -> str:
    """A Graphviz graph; several panels are clusters in it."""
    lines = ["digraph cepheid {", "  rankdir=LR", f"  tooltip={_dot_text(name)}", "  node [shape=circle]"]
    if len(panels) == 1:
        lines += _dot_panel(panels[0], "")
    else:
        for number, panel in enumerate(panels, 1):
            lines += [f"  subgraph cluster_{number} {{", *(f"  {line}" for line in _dot_panel(panel, f"p{number}_")), "  }"]
    return "\n".join([*lines, "}"]) + "\n"


def _dot_panel(panel: Panel, prefix: str) -> Iterator[str]:
    drawn = panel.diagram
    names = [f"{prefix}{node.name}" for node in drawn.nodes]
    heading = "\n".join(filter(None, (panel.name, panel.caption)))
    if heading:
        yield f"  label={_dot_text(heading)}"
    yield f"  {prefix}start [shape=point]"
    for node, own in zip(drawn.nodes, names, strict=True):
        shape = " shape=doublecircle" if node.final else ""
        shown = f" label={node.name}" if prefix else ""
        if shape or shown:
            yield f"  {own} [{(shape + shown).strip()}]"
    yield f"  {prefix}start -> {names[drawn.initial]}"
    for number, arc in enumerate(drawn.arcs, 1):
        yield from _dot_arc(arc, names, f"{prefix}item{number}")
    if panel.note:
        wrapped = "\n".join(textwrap.wrap(panel.note, LINE_WIDTH, break_on_hyphens=False))
        yield f"  {prefix}note [shape=note label={_dot_text(wrapped)}]"
        yield from (f"  {own} -> {prefix}note [style=dotted dir=none]" for node, own in zip(drawn.nodes, names, strict=True) if node.final)


WAITING = 'style=dashed color=gray label=""'


def _dot_arc(arc: Arc, names: Sequence[str], item: str) -> Iterator[str]:
    source, target = names[arc.source], names[arc.target]
    lines = [*map(str, arc.labels), *([str(arc.count)] if arc.count else [])]
    text = _dot_text("\n".join(lines))
    if arc.count is not None:
        yield f"  {item} [shape=box style=rounded label={text}]"
        yield f"  {source} -> {item} -> {target}"
        if arc.count.waits:
            yield f"  {item} -> {item} [{WAITING}]"
    else:
        yield f"  {source} -> {target} [{WAITING if arc.waits else f'label={text}'}]"


def _dot_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{svg.printable(escaped)}"'


def mermaid(panels: Sequence[Panel], name: str) -> str:
    """A Mermaid flowchart; several panels are subgraphs of it, and so is one with a caption."""
    lines = ["flowchart LR", f"  accTitle: {svg.printable(name)}"]
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
    names = [f"{prefix}s{node.name}" for node in drawn.nodes]
    for node, own in zip(drawn.nodes, names, strict=True):
        opening, closing = ("(((", ")))") if node.final else ("((", "))")
        yield f"  {own}{opening}{node.name}{closing}"
    yield f"  {prefix}start[ ] --> {names[drawn.initial]}"
    yield f"  style {prefix}start fill:none,stroke:none"
    for number, arc in enumerate(drawn.arcs, 1):
        yield from _mermaid_arc(arc, names, f"{prefix}item{number}")
    if panel.note:
        yield f'  {prefix}note["{_mermaid_text(panel.note)}"]'
        yield from (f"  {own} -.- {prefix}note" for node, own in zip(drawn.nodes, names, strict=True) if node.final)


def _mermaid_arc(arc: Arc, names: Sequence[str], item: str) -> Iterator[str]:
    source, target = names[arc.source], names[arc.target]
    text = "<br/>".join(_mermaid_text(str(label)) for label in arc.labels)
    if arc.count is not None:
        yield f'  {item}(["{text}<br/>{arc.count}"])'
        yield f"  {source} --> {item} --> {target}"
        if arc.count.waits:
            yield f"  {item} -.-> {item}"
    elif arc.waits:
        yield f"  {source} -.-> {target}"
    else:
        yield f'  {source} -- "{text}" --> {target}'


MERMAID_CODES = {character: f"#{ord(character)};" for character in "#\"'`<>&;|\\*_~{}[]"}
"""Characters that Mermaid reads as its own, and what stands for them."""


def _mermaid_text(text: str) -> str:
    return "".join(MERMAID_CODES.get(character, character) for character in svg.printable(text))
