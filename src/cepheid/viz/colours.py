"""The colour of each variable: one, in every picture of a query, in the workbench and in a notebook.

Comes in: the layout of matches. Goes out: colours by name. They are given in the order of the pattern, whatever SELECT shows of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cepheid.viz import svg

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cepheid.engine.output.matches import Layout


def colours_of(layout: Layout) -> dict[str, str]:
    """The colour (#rrggbb) of each variable of the pattern."""
    return {name: svg.COLOURS[number % len(svg.COLOURS)] for number, name in enumerate(layout.written)}


def shown_of(layout: Layout, label: Iterable[str]) -> tuple[str, ...]:
    """The variables of an event that a picture names, in the order of the pattern: those that SELECT shows, and with measures all."""
    label = frozenset(label)
    return tuple(name for name in layout.written if name in label and (not layout.variables or name in layout.variables))
