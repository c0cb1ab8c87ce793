"""Matches as events, by definition: the stream with the events that EVENT definitions add.

An event that a match makes stands behind the event that completes the match, and behind what that one completed before. It begins where the match
does. `merged` adds the events of one definition after the other; each sees those of the definitions before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cepheid.logical.absence import take_out
from cepheid.testing.evaluate import Event

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cepheid.logical.plan import EventDefinition, QueryPlan


def merged(
    definitions: Sequence[EventDefinition], events: Sequence[Event], run: Callable[[QueryPlan, Sequence[Event]], Any]
) -> list[Event]:
    """The stream with the events of all definitions.

    run: gives the `reference.Result` of a plan over a stream behind which nothing comes.
    """
    completed: dict[int, list[Event]] = {}
    stream = list(events)
    for definition in definitions:
        plan = definition.plan
        for partition in run(plan, stream).partitions:
            keys = dict(zip(plan.keys, partition.key, strict=True))
            for group in partition.groups:
                end = stream[partition.positions[group.end]]
                time = end.attributes.get(plan.schema.time_column or "", end.time)
                for match, values in zip(group.candidates, group.measures, strict=True):
                    start = stream[partition.positions[match.start]]
                    own: dict[Any, object] = {plan.schema.type_column: definition.name, plan.schema.time_column: time}
                    attributes = {**own, **keys, **dict(zip(definition.attributes, values, strict=True))}
                    completed.setdefault(id(end), []).append(Event(definition.name, end.time, attributes, begins=start))
        stream = [each for event in events for each in _with_completed(event, completed)]
    return stream


def settled(definitions: Sequence[EventDefinition]) -> int:
    """How long after an event it is known what definitions make there: each sees what those before it make, and waits for its absences."""
    absences = (take_out(definition.plan.pattern)[1] for definition in definitions)
    return sum(max((absence.duration for absence in own), default=0) for own in absences)


def _with_completed(event: Event, completed: dict[int, list[Event]]) -> list[Event]:
    """An event, and behind it what it completes, each with what that completes."""
    return [event, *(each for other in completed.get(id(event), ()) for each in _with_completed(other, completed))]


def begins(events: Sequence[Event]) -> list[int]:
    """For each event of a partition the position where it begins: its own, or that of the event where its match begins."""
    places = {id(event): place for place, event in enumerate(events)}
    return [place if event.begins is None else places[id(event.begins)] for place, event in enumerate(events)]
