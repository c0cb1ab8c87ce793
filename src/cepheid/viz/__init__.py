"""Drawings: automata as SVG, Mermaid and DOT, matches as a timeline.

Comes in: an `Automaton` or `Matches`. Goes out: text, a `Drawing` that notebooks show. `labels` writes the texts of an automaton, `fold` and `rounds`
take together what is repeated, `layout` puts it in layers, `graph` draws it; `timeline` draws matches; `svg` has the few elements and colours of
both. Nothing here needs an extra, and nothing here computes anything about a query.
"""

from __future__ import annotations

from cepheid.viz.graph import FORMATS, draw
from cepheid.viz.svg import Drawing
from cepheid.viz.timeline import timeline

__all__ = ["FORMATS", "Drawing", "draw", "timeline"]
