"""What a condition between events keeps of them, and what it asks: its levels, and what a transition does to it.

A condition holds for every choice of one event for each of its variables, so each choice is checked at the LAST of its events: a transition that
marks one of the variables asks about what the others have so far, and then keeps its own event. Levels say which events are chosen together: level 0
has the variables of the filtered pattern, level j those that the j-th pattern around it supplies (semantics, section 2). Where a pattern begins anew,
what its level has is gone; the outermost one begins with nothing.

What the event of a transition does is a set of ACTIONS:

* (BEGIN, level): the pattern of the level begins. (NEXT, level): so does another iteration of it; what was kept for `prev` is now what `prev` means.
* (MATCH, 0): the filtered pattern is there, for a condition that speaks of no variable of it.
* (MARK, name): the event is one of the variable. (KEEP, name): the next iteration will call it `prev` of the variable.

There are three ways to keep events. A condition that is made of comparisons with one variable on each side keeps one value per side (`comparisons`).
One that can be computed by steps (`computing`) keeps sets of what it computes with (`choices`). Everything else keeps the values of all events, by
variable (`Correlation.after`).
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import TYPE_CHECKING, NamedTuple

from cepheid.logical.plan import leaves, localize
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from cepheid.automata.registers import Kept
    from cepheid.logical.plan import Expression

Variable = tuple[str, bool]
"""A variable of a condition: its name, and whether it stands under prev."""

Action = tuple[str, str | int]
"""What an event does to a condition: a verb, and a variable's name or a level."""

MATCHED: Variable = ("", False)
"""What stands for the filtered pattern, as a variable of level 0, where a condition speaks of no variable of it."""

BEGIN, NEXT, MATCH, MARK, KEEP = "begin", "next", "match", "mark", "keep"

RESETS = frozenset({BEGIN, NEXT})
"""The verbs that leave nothing where nothing was kept."""

Values = tuple[object, ...]
"""What a condition reads of one event, in the order of `Correlation.leaves`."""

Choice = frozenset[tuple[Variable, Values]]
"""One event for each of some variables."""

NO_CHOICE: frozenset[Choice] = frozenset({frozenset()})
"""What is below level 0."""


class KeptEvents(NamedTuple):
    """What a register of a correlation holds.

    events: of each variable its events since its pattern began. choices: for each level but the last, the choices for it and the levels below since
    the level above it began. upcoming: the events that the next iteration calls `prev`.
    """

    events: frozenset[tuple[Variable, frozenset[Values]]]
    choices: frozenset[tuple[int, frozenset[Choice]]]
    upcoming: frozenset[tuple[Variable, frozenset[Values]]]


NO_EVENTS = KeptEvents(frozenset(), frozenset(), frozenset())


@record
class Correlation:
    """A condition of a FILTER with its levels: per level the variables that it supplies.

    Level 0 has none for a condition on outer variables alone.
    """

    condition: Expression
    levels: tuple[tuple[Variable, ...], ...]

    @property
    def variables(self) -> frozenset[Variable]:
        """The variables of the condition."""
        return variables(self.condition)

    @property
    def missing(self) -> frozenset[Variable]:
        """The variables that no level has yet."""
        return self.variables.difference(*self.levels)

    def visible(self, names: frozenset[str], *, previous: bool = False) -> frozenset[Variable]:
        """The missing variables among some names; previous: those under prev."""
        return frozenset(variable for variable in self.missing if variable[0] in names and variable[1] is previous)

    @property
    def top(self) -> int:
        """The outermost level."""
        return len(self.levels) - 1

    def supplied(self, variables: Iterable[Variable]) -> Correlation:
        """With another level around the others."""
        return dataclasses.replace(self, levels=(*self.levels, tuple(sorted(variables))))

    def leaves(self, variable: Variable) -> tuple[Expression, ...]:
        """What the condition reads of the events of a variable: attributes, time, position, as the condition has them; see `localize`."""
        return tuple(dict.fromkeys(leaf for leaf in _leaves(self.condition) if (leaf.variable, leaf.previous) == variable))

    @property
    def values(self) -> tuple[Expression, ...]:
        """All that it may read of an event."""
        return tuple(dict.fromkeys(map(localize, _leaves(self.condition))))

    def after(
        self,
        kept: KeptEvents | None,
        actions: Iterable[Action],
        value: Callable[[Expression], object],
    ) -> tuple[list[dict[Expression, object]], KeptEvents]:
        """The choices that an event completes, for each of which the condition has to hold, and what is kept after the event.

        kept: before the event, None for nothing. value: of the event, for each of `values`; hashable, None for NULL. A choice has the values of the
        condition's leaves; one that it lacks is NULL. O(choices): as many as the product of the variables' numbers of events, if need be.
        """
        held = kept or NO_EVENTS
        events, choices, upcoming = dict(held[0]), dict(held[1]), dict(held[2])
        for verb, level in actions:
            if verb in RESETS and isinstance(level, int):
                for variable in self.levels[level]:
                    events.pop(variable, None)
                    carried = upcoming.pop(variable, None)
                    if verb == NEXT and carried:
                        events[variable] = carried
                choices.pop(level - 1, None)
        complete: set[Choice] = set()
        for level, own in self._events(actions, value):
            others = [variable for variable in self.levels[level] if variable not in own]
            below = choices.get(level - 1, frozenset()) if level else NO_CHOICE
            found = frozenset(choice | set(own.items()) | more for choice in below for more in _choices(others, events))
            for variable, values in own.items():
                events[variable] = events.get(variable, frozenset()) | {values}
            for above in range(level, self.top):
                choices[above] = choices.get(above, frozenset()) | found
                found = frozenset(choice | more for choice in found for more in _choices(self.levels[above + 1], events))
            complete |= found
        for verb, name in actions:
            if verb == KEEP and isinstance(name, str):
                upcoming[name, True] = upcoming.get((name, True), frozenset()) | {self._read((name, True), value)}
        parts = (frozenset((key, found) for key, found in part.items() if found) for part in (events, choices, upcoming))
        return [self._values_of(choice) for choice in complete], KeptEvents(*parts)  # type: ignore[arg-type]  # mypy joins the three types

    def alone(self, actions: frozenset[Action]) -> Variable | None:
        """The variable that an event is put in by these actions, if they do nothing else and all variables are of one level; else None.

        What is kept is then of the other variables: an event of each, if all have one, is a choice that the event completes.
        """
        if self.top > 0 or len(actions) != 1 or not marked(actions):
            return None
        return marked(actions)[0]

    def _events(self, actions: Iterable[Action], value: Callable[[Expression], object]) -> Iterator[tuple[int, dict[Variable, Values]]]:
        """(level, the variable with the values that an event has in it) for each variable; first (0, nothing) where the filtered pattern is there."""
        if (MATCH, 0) in actions:
            yield 0, {}
        for variable in marked(actions):
            yield next(level for level, names in enumerate(self.levels) if variable in names), {variable: self._read(variable, value)}

    def _read(self, variable: Variable, value: Callable[[Expression], object]) -> Values:
        return tuple(value(localize(leaf)) for leaf in self.leaves(variable))

    def _values_of(self, choice: Choice) -> dict[Expression, object]:
        return {leaf: value for variable, values in choice for leaf, value in zip(self.leaves(variable), values, strict=True)}


_leaves = functools.cache(leaves)


def variables(expression: Expression) -> frozenset[Variable]:
    """The variables of an expression, each with whether it stands under prev."""
    return frozenset((leaf.variable, leaf.previous) for leaf in _leaves(expression))


def called(variable: Variable) -> str:
    """A variable as text."""
    name, previous = variable
    if variable == MATCHED:
        return "the filtered pattern"
    return f"prev({name})" if previous else name


def marked(actions: Iterable[Action]) -> list[Variable]:
    """The variables that an event is put in, in an order that no set decides."""
    return sorted((name, False) for verb, name in actions if verb == MARK and isinstance(name, str))


def placed(actions: Iterable[Action]) -> list[Variable]:
    """The variables that an event is put in, and first MATCHED where the filtered pattern is there."""
    return [*([MATCHED] if (MATCH, 0) in actions else []), *marked(actions)]


def _choices(variables: Iterable[Variable], events: Mapping[Variable, frozenset[Values]]) -> Iterator[Choice]:
    """One event for each of some variables, in all ways."""
    for values in itertools.product(*([(variable, each) for each in events.get(variable, ())] for variable in variables)):
        yield frozenset(values)


# -------------------------------------------------------------------------------------------------------------------- of one event


def speaks_of_one_event(kept: Kept, correlation: Correlation) -> bool:
    """Whether the first events that are kept make a choice: one event, put in all of the variables."""
    return kept.before is None and correlation.variables == {(name, False) for verb, name in kept.actions if verb == MARK}
