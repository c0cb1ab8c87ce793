"""The drawing of a command: the automaton of a query, as it is or determinized."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import cepheid
    from cepheid.schema import EventSchema
    from cepheid.viz import Drawing

ENDINGS = MappingProxyType({".svg": "svg", ".png": "svg", ".mmd": "mermaid", ".dot": "dot", ".gv": "dot"})
"""The endings of drawings, and their formats."""


def drawing(query: cepheid.Query, format: str, *, schema: EventSchema | None, deterministic: bool) -> Drawing:  # noqa: A002 - public word
    """The drawing as text; without a schema the one that the query could be about. Raises the errors of binding and evaluation."""
    from cepheid.engine.plan.likely_schema import likely_schema
    from cepheid.viz.graph import draw_panels
    from cepheid.viz.panels import panels

    compiled = query.compiled(likely_schema(query) if schema is None else schema)
    return draw_panels(panels(compiled, deterministic=deterministic), format=format)
