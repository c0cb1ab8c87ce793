"""What a drawing of a query shows: an automaton for the query and for each of its EVENT definitions, with what no automaton says below it.

Comes in: a `Compiled` query. Goes out: `Panel`s. Windows, keys, strategies and limits are no part of an automaton: the caption has them, in the words
of the language.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cepheid.automata.transform import determinize
from cepheid.engine.plan.explain import absences_text, keys_text
from cepheid.language.syntax import Consumption, Strategy
from cepheid.logical.absence import take_out
from cepheid.logical.describe import describe_expression, describe_longest
from cepheid.logical.windows import hoist
from cepheid.viz.fold import Panel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cepheid.engine.plan.compiled import Compiled


def panels(compiled: Compiled, *, deterministic: bool = False) -> tuple[Panel, ...]:
    """The panels of a query: its EVENT definitions in their order, then its own pattern.

    deterministic: draw determinized automata. Raises as `Compiled.drawn` and `determinize`.
    """
    names = [f"EVENT {definition.name}" for definition in compiled.plan.definitions]
    return tuple(
        Panel(determinize(each.drawn) if deterministic else each.drawn, name, caption(each), absences_text(each))
        for each, name in zip((*compiled.layers, compiled), [*names, "SELECT" if names else ""], strict=True)
    )


def caption(compiled: Compiled) -> str:
    """What the automaton of a query does not say, in one line: `WITHIN 5m \u00b7 PARTITION BY user`; "" where it says everything."""
    return " \u00b7 ".join(_caption(compiled))


def _caption(compiled: Compiled) -> Iterator[str]:
    plan = compiled.plan
    if plan.strategy is not Strategy.ALL:
        yield f"SELECT {plan.strategy.value}"
    _, windows = hoist(take_out(plan.pattern)[0])
    if windows.window is not None:
        yield f"WITHIN {describe_longest(windows.window, compiled.schema.unit)}"
    if windows.count is not None:
        yield f"WITHIN {windows.count:,} EVENTS"
    if compiled.keys:
        yield f"PARTITION BY {keys_text(compiled)}"
    if plan.having is not None:
        yield f"HAVING {describe_expression(plan.having.expression)}"
    if plan.consume is not Consumption.NONE:
        yield f"CONSUME BY {plan.consume.value}"
    if plan.limit is not None:
        yield f"LIMIT {plan.limit:,}"
    yield from (f"part {number}: {part.described}" for number, part in enumerate(compiled.drawn.parts, 1))
