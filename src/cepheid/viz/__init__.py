"""Drawings: automata as SVG, Mermaid and DOT, matches as a timeline.

Comes in: an `Automaton` or `Matches`. Goes out: text, a `Drawing` that notebooks show. `labels` says what is written of an automaton,
`layout` puts it in layers, `graph` draws it; `timeline` draws matches; `svg` has the few elements and colours of both. Nothing here needs more
than the core, and nothing is computed about a query: a drawing shows what is there.
"""

from __future__ import annotations

from cepheid.viz.graph import FORMATS, draw
from cepheid.viz.svg import Drawing
from cepheid.viz.timeline import timeline

__all__ = ["FORMATS", "Drawing", "draw", "timeline"]
