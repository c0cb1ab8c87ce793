"""How a stream goes on in a new checkpoint, for messages and for `since=`: without a gap where one window says all that it has to know.

Comes in: compiled queries. Goes out: reasons and help lines. Imports no Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cepheid.language.syntax import Consumption

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cepheid.engine.plan.compiled import Compiled


def depends_on_all(compiled: Compiled) -> str | None:
    """Why what is decided after a time depends on all events before it, and not on those of its windows; None where it does not.

    A match is made of events that matches of definitions have made, each within the window of its own.
    """
    for definition, layer in zip(compiled.plan.definitions, compiled.layers, strict=True):
        reason = depends_on_all(layer)
        if reason is not None:
            return f"has the definition of `{definition.name}`, which {reason}"
    if compiled.looks_back is not None:
        return f"has {compiled.looks_back}, which looks at the events before"
    if compiled.window is None:
        return "has no time in WITHIN"
    if compiled.consume is not Consumption.NONE:
        return "has CONSUME BY"
    if any(program.trackers or program.automaton.all_parts for program in compiled.programs):
        return "has a nested strategy"
    return None


def handed_over(queries: Iterable[Compiled]) -> str:
    """How a stream of these queries goes on in a new checkpoint."""
    for compiled in queries:
        reason = depends_on_all(compiled)
        if reason is not None:
            return f"let it read all events from the beginning, for since= cannot hand over a query that {reason}"
    return "until= and since= hand over without a gap"
