"""`:` where EVENT definitions make events: what they make of an event stands directly behind it, and nothing else can. STRICT and n EVENTS, too.

Comes in: a bound pattern, and the definitions whose events it sees. Goes out: a warning where `:` finds nothing, a note where it may miss matches, or
where events that are made count.

A match begins where an event that came in stands, for an event that a match makes begins where that match does. So `p : q` asks that directly behind
the last event of p there is an event that came in: nothing that a definition has made (docs/decisions/0011-events.md). An event that came in has one
behind it where it completes a match of a definition. An event that was made has one where a later definition makes something of it, or of the same
event as it itself; or where one event completes several matches of its own definition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cepheid.errors import quoted
from cepheid.language.syntax import Consumption, Strategy
from cepheid.logical import plan
from cepheid.logical.tree import is_of_one_event, walk
from cepheid.logical.variables import operands

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cepheid.errors import Span
    from cepheid.logical.context import Context
    from cepheid.logical.plan import EventDefinition, Pattern

Types = frozenset[str | None]
"""Event types; None is any."""

NONE: Types = frozenset()


def beside_made_events(
    context: Context, pattern: Pattern, definitions: Sequence[EventDefinition], keys: Sequence[str], strategy: Strategy
) -> None:
    """Add a warning or a note for each `:` of a pattern that events of definitions stand in the way of, and for what counts them.

    definitions: those before the query, in their order. keys: of its PARTITION BY; events that lack one are in no partition. strategy: of the query.
    Time: O(pattern * definitions).
    """
    seen = [each for each in definitions if set(keys) <= set(each.keys)]
    made = _Made(seen, keys)
    if seen and strategy is Strategy.STRICT and not is_of_one_event(pattern):
        _strict(context, seen, pattern.span)
    for node in walk(pattern) if seen else ():
        if isinstance(node, plan.Select) and node.strategy is Strategy.STRICT and not is_of_one_event(node.pattern):
            _strict(context, seen, node.span)
        if isinstance(node, plan.WithinEvents) and not is_of_one_event(node.pattern):
            context.note(
                f"the events that a window counts are all that the query sees, also those of {_names(seen)}, which a definition makes",
                node.span,
                "if you mean this, change nothing; a window in time counts none",
            )
    for node in walk(pattern) if seen else ():
        if isinstance(node, plan.Iterate) and node.adjacent and node.maximum != 1:
            _told(context, made, ends(node.pattern), node.span, surely=True, goes_on=node.minimum > 1)
        elif isinstance(node, plan.Sequence):
            for number, link in enumerate(node.links):
                if link.operator == ":":
                    before, behind = node.items[number : number + 2]
                    optional = isinstance(before, plan.Optional) or isinstance(behind, plan.Optional)
                    _told(context, made, ends(before), before.span.to(behind.span), surely=not optional, goes_on=True)


def _strict(context: Context, made: Sequence[EventDefinition], span: Span) -> None:
    """Say of STRICT that events that are made are between others."""
    context.note(
        f"STRICT lets no event be in between, also none of {_names(made)}, which a definition makes",
        span,
        "if you mean this, change nothing; `A ; NOT C ; B` lets all be in between but events of the type C",
    )


def _names(made: Sequence[EventDefinition]) -> str:
    return quoted(each.name for each in made)


def _told(context: Context, made: _Made, types: Types, span: Span, *, surely: bool, goes_on: bool) -> None:
    """Add what is to be said of a `:` behind an event of some types. surely: whether every match has it. goes_on: whether it needs it to be one."""
    always = {each: made.always(each) for each in types}
    if surely and types and all(name is not None for name in always.values()):
        behind = " and ".join(f"`{name}` behind each {_event(each)}" for each, name in sorted(always.items(), key=str))
        end = "there is never a match" if goes_on else "it never has more than one"
        context.warn(
            f"`:` asks for the very next event, and there is always {behind}, which a definition makes: {end}",
            span,
            "write `;` for `:`, or `+` for `:+`, which let events be in between; or ask for what the definition makes in place of what it is made of",
        )
        return
    some = sorted({name for each in types for name in made.sometimes(each)})
    if some:
        context.note(
            f"`:` asks for the very next event, and an event of {quoted(some)} stands there where a definition makes one of the event before",
            span,
            "if you mean this, change nothing; `;` and `+` let events be in between",
        )


def _event(kind: str | None) -> str:
    return "event" if kind is None else f"`{kind}`"


def ends(pattern: Pattern) -> Types:
    """The types of the events with which matches of a pattern may end."""
    match pattern:
        case plan.Event():
            return frozenset({pattern.type})
        case plan.Sequence():
            found = NONE
            for item in reversed(pattern.items):
                found |= ends(item)
                if not isinstance(item, plan.Optional):
                    break
            return found
    return NONE.union(*map(ends, operands(pattern)))


class _Made:
    """What definitions make, in the partitions of a query; keys: of these."""

    def __init__(self, definitions: Sequence[EventDefinition], keys: Sequence[str]) -> None:
        self._definitions = definitions
        self._keys = frozenset(keys)
        self._place = {each.name: place for place, each in enumerate(definitions)}
        self._triggers: list[Types] = []
        for each in definitions:
            below = (self._came_in(kind) for kind in ends(each.plan.pattern))
            self._triggers.append(NONE.union(*below))

    def _came_in(self, kind: str | None) -> Types:
        """The types of the events that came in behind which an event of a type stands: it, or what completes it."""
        place = None if kind is None else self._place.get(kind)
        return frozenset({kind}) if place is None else self._triggers[place]

    def _later(self, kind: str | None) -> Iterator[tuple[int, EventDefinition]]:
        """The definitions whose events may stand behind one of a type: those behind its own."""
        first = self._place.get(kind, -1) + 1 if kind is not None else 0
        yield from list(enumerate(self._definitions))[first:]

    def always(self, kind: str | None) -> str | None:
        """A definition whose event stands behind each event of a type; None where there is none. ANY also takes the last event that is made."""
        for _, definition in self._later(kind) if kind is not None else ():
            if self._makes_of_each(definition, kind) or all(self._makes_of_each(definition, each) for each in self._came_in(kind)):
                return definition.name
        return None

    def sometimes(self, kind: str | None) -> Iterator[str]:
        """The definitions of which an event may stand behind one of a type."""
        own = self._came_in(kind)
        for place, definition in self._later(kind):
            triggers = self._triggers[place]
            if None in triggers or None in own or triggers & own:
                yield definition.name
        if kind in self._place and not is_of_one_event(self._definitions[self._place[kind]].plan.pattern):
            yield kind

    def _makes_of_each(self, definition: EventDefinition, kind: str | None) -> bool:
        """Whether each event of a type surely is a match of a definition."""
        query = definition.plan
        if query.having is not None or query.consume is not Consumption.NONE or not self._keys.issuperset(query.partition_by):
            return False  # an event without a key of the definition is in no partition of it
        return _takes_each(query.pattern, kind, came_in=kind not in self._place)


def _takes_each(pattern: Pattern, kind: str | None, *, came_in: bool) -> bool:
    """Whether each event of a type is a match by itself; came_in: it is none that a definition made, so that no window leaves it out."""
    match pattern:
        case plan.Event():
            return pattern.type is None or pattern.type == kind
        case plan.Or():
            return any(_takes_each(operand, kind, came_in=came_in) for operand in pattern.operands)
        case plan.Iterate(minimum=1) | plan.Named() | plan.Project():
            return _takes_each(operands(pattern)[0], kind, came_in=came_in)
        case plan.Within(interval=interval):
            return came_in and interval.lower <= 0 and _takes_each(pattern.pattern, kind, came_in=came_in)
        case plan.WithinEvents():
            return came_in and _takes_each(pattern.pattern, kind, came_in=came_in)
    return False
