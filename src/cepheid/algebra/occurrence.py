"""At which events a primitive of a pattern occurs: by their type, and by conditions on their attributes, as the definition evaluates these."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from cepheid.errors import NotSupportedError
from cepheid.logical import plan

if TYPE_CHECKING:
    from cepheid.logical.plan import Pattern

Occurs = Callable[[object, int, Mapping[str, Any]], bool]
"""Whether a primitive occurs at an event, by its type, its time and its attributes."""


def type_alone(pattern: Pattern) -> str | None:
    """The type of which all events are matches of a pattern of one event, and no other events; None where conditions are asked, and for ANY."""
    while isinstance(pattern, plan.Named):
        pattern = pattern.pattern
    return pattern.type if isinstance(pattern, plan.Event) else None


def event_test(pattern: Pattern) -> Occurs:
    """Whether a pattern of one event has a match at an event of a type, at a time, with attributes. Raises NotSupportedError for lag."""
    from cepheid.testing.evaluate import Event, holds

    conditions: list[plan.Expression] = []
    while not isinstance(pattern, plan.Event):
        if isinstance(pattern, plan.Filter):
            conditions += pattern.conditions
        assert isinstance(pattern, plan.Filter | plan.Named)
        pattern = pattern.pattern
    wanted = pattern.type
    if plan.lags_in(conditions):
        raise NotSupportedError("a detector does not look at the events before (lag)", help="use cepheid.query(..).recognizer(..)")
    choices = [(condition, {(variable, False): 0 for variable in plan.variables_of(condition)}) for condition in conditions]

    def occurs(kind: object, time: int, event: Mapping[str, Any]) -> bool:
        if wanted is not None and kind != wanted:
            return False
        events = [Event(str(kind), time, event)]
        return all(holds(condition, events, choice) for condition, choice in choices)

    return occurs
