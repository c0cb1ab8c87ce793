"""Conditions between events that no value sums up: three variables, OR over sets, LIKE, arithmetic over both sides.

Comes in: what registers keep of the events of such a condition, and the event that is looked at (`cepheid.automata.correlation`). Goes out: whether
the condition holds for every choice of events that the event completes, and what is kept then. The condition is evaluated as columns, by the
functions that evaluate predicates: once for all choices of an event and a group, or once for an event and all groups (`KeptColumns`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.automata.correlation import KeptEvents
from cepheid.engine.letters.values import Column, evaluate, read
from cepheid.logical.plan import Index, localize
from cepheid.logical.types import type_of
from cepheid.records import record
from cepheid.schema import is_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cepheid.automata.correlation import Correlation, Variable
    from cepheid.automata.registers import Kept
    from cepheid.logical.plan import Expression, Field, Time

Array = np.ndarray[Any, Any]


def completed(
    correlation: Correlation, kept: Kept, before: Any, now: Callable[[Expression], Any]
) -> tuple[list[dict[Expression, Any]], KeptEvents]:
    """See `Correlation.after`. before: what was kept, None for nothing."""
    return correlation.after(None if before is None else KeptEvents(*before), kept.actions, now)


def hold(correlation: Correlation, choices: Sequence[Mapping[Expression, Any]]) -> bool:
    """Whether the condition holds for all choices. One evaluation, over O(choices) rows."""
    columns = _Columns(lambda leaf: _column(leaf, [choice.get(leaf) for choice in choices]))
    return not choices or bool(np.all(evaluate(correlation.condition, columns).truth()))


class KeptColumns:
    """What the groups of an index keep of the events of a condition, as columns, for events that are put in one of its variables.

    Groups are numbered in the order in which they are added, and what a group keeps does not change. A group that keeps one event of each other
    variable is a row; one without an event of some passes, for no choice is complete; one with more events is asked alone.
    """

    __slots__ = ("_alone", "_columns", "_correlation", "_groups", "_leaves", "_listed", "_own", "_rows", "_variables")

    def __init__(self, correlation: Correlation, own: Variable) -> None:
        """own: the variable of the events to come, see `Correlation.alone`."""
        self._correlation, self._own = correlation, own
        self._variables = sorted(correlation.variables - {own})
        self._leaves = [leaf for variable in self._variables for leaf in correlation.leaves(variable)]
        self._listed: list[list[Any]] = [[] for _ in self._leaves]
        self._groups = 0
        self._rows: list[int] = []
        self._alone: list[int] = []
        self._columns: dict[Expression, Any] = {}

    def add(self, kept: Any) -> None:
        """Another group, by what it keeps. O(its events)."""
        events = {} if kept is None else dict(KeptEvents(*kept).events)
        if all(variable in events for variable in self._variables):
            if any(len(events[variable]) > 1 for variable in self._variables):
                self._alone.append(self._groups)
            else:
                values = (value for variable in self._variables for (own,) in [events[variable]] for value in own)
                for column, value in zip(self._listed, values, strict=True):
                    column.append(value)
                self._rows.append(self._groups)
                self._columns = {}
        self._groups += 1

    def hold(self, now: Callable[[Expression], Any], alone: Callable[[int], bool]) -> Array:
        """Whether the condition holds (bool, per group) with an event of the own variable. alone: asks one group. One evaluation over the rows."""
        found: Array = np.ones(self._groups, np.bool_)
        if self._rows:
            if not self._columns:
                self._columns = {leaf: _column(leaf, values) for leaf, values in zip(self._leaves, self._listed, strict=True)}
            own = {leaf: _constant(leaf, now(localize(leaf))) for leaf in self._correlation.leaves(self._own)}
            columns = {**self._columns, **own}
            found[self._rows] = evaluate(self._correlation.condition, _Columns(columns.__getitem__)).truth()
        for group in self._alone:
            found[group] = alone(group)
        return found


@record
class _Columns:
    """Choices of events as columns: what the condition reads of them, by its leaves; a leaf that a choice lacks is NULL."""

    column: Callable[[Expression], Any]

    def field(self, field: Field) -> Any:
        """An attribute of the events."""
        return self.column(field)

    def time(self, time: Time) -> Any:
        """The time of the events."""
        return self.column(time)

    def known(self, expression: Expression) -> Any | None:
        """The positions of the events."""
        return self.column(expression) if isinstance(expression, Index) else None


def _column(leaf: Expression, values: Sequence[Any]) -> Any:
    kind = type_of(leaf)
    if is_text(kind):
        # Some may be no UTF-8.
        encoded = pa.array([None if value is None else value.encode(errors="surrogateescape") for value in values], pa.binary())
        return read(encoded.view(pa.string()), kind)
    return read(pa.array(values, kind), kind)


def _constant(leaf: Expression, value: Any) -> Any:
    """A value as `evaluate` has constants."""
    one = _column(leaf, [value])
    return Column(one.values[0], None if one.valid is None else one.valid[0]) if isinstance(one, Column) else one[0]
