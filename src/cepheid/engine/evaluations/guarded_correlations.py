"""Conditions between events that no value sums up: three variables, OR and NOT across variables, LIKE, arithmetic over both sides.

Comes in: what a register keeps of the events of such a condition, and the event that is looked at (`cepheid.automata.correlation`). Goes out: whether
the condition holds for every choice of events that the event completes, and what is kept then. The condition is evaluated once for all choices of an
event and a group, as columns, by the functions that evaluate predicates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.automata.correlation import KeptEvents
from cepheid.engine.letters.values import evaluate, read
from cepheid.logical.plan import Index
from cepheid.logical.types import type_of
from cepheid.schema import is_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cepheid.automata.correlation import Correlation
    from cepheid.automata.registers import Kept
    from cepheid.logical.plan import Expression, Field, Time


def advance(correlation: Correlation, kept: Kept, before: Any, now: Callable[[Expression], Any]) -> tuple[bool, Any]:
    """See `Correlation.after`: the condition is evaluated at most once, over O(choices) rows. before: what was kept, None for nothing."""
    held = None if before is None else KeptEvents(*before)

    def hold(choices: Sequence[Mapping[Expression, Any]]) -> bool:
        found = evaluate(correlation.condition, _Choices(choices))
        return bool(np.all(np.broadcast_to(found.truth(), len(choices))))

    return correlation.after(held, kept.actions, now, hold)


@dataclass(frozen=True, slots=True)
class _Choices:
    """Choices of events as columns: what the condition reads of them, by its leaves; a leaf that a choice lacks is NULL."""

    choices: Sequence[Mapping[Expression, Any]]

    def field(self, field: Field) -> Any:
        """An attribute of the events."""
        return self._column(field)

    def time(self, time: Time) -> Any:
        """The time of the events."""
        return self._column(time)

    def known(self, expression: Expression) -> Any | None:
        """The positions of the events."""
        return self._column(expression) if isinstance(expression, Index) else None

    def _column(self, leaf: Expression) -> Any:
        kind, values = type_of(leaf), [choice.get(leaf) for choice in self.choices]
        if is_text(kind):
            # Some may be no UTF-8.
            encoded = pa.array([None if value is None else value.encode(errors="surrogateescape") for value in values], pa.binary())
            return read(encoded.view(pa.string()), kind)
        return read(pa.array(values, kind), kind)
