"""Drawings: automata as SVG, Mermaid and DOT.

Comes in: an `Automaton`. Goes out: text, a `Drawing` that notebooks show. `labels` says what is written of an automaton, `layout` puts it in
layers, `graph` draws it, `svg` has the few elements and colours. Nothing here needs more than the core, and nothing is computed about the
query: what stands in a drawing is what the automaton has.
"""

from __future__ import annotations

from cepheid.viz.graph import FORMATS, draw
from cepheid.viz.svg import Drawing

__all__ = ["FORMATS", "Drawing", "draw"]
