"""What `Choices` keeps and asks, as terms over registers, is what `after` says of events: for any levels, and whatever an event does."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pytest
from pattern_cases import CASES, SEED

from cepheid.automata import registers
from cepheid.automata.choices import Choices
from cepheid.automata.correlation import BEGIN, KEEP, MARK, MATCH, NEXT, RESETS, Correlation, marked
from cepheid.automata.guards import Guards
from cepheid.automata.registers import Before, Computes, combinations, substituted
from cepheid.logical.plan import Apply, Field, leaves, localize
from cepheid.schema import EventSchema
from cepheid.testing import runs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from cepheid.automata.correlation import Action, Variable
    from cepheid.logical.plan import Expression

LEVELS: dict[str, tuple[tuple[Variable, ...], ...]] = {
    "one level": ((("x", False), ("y", False), ("z", False)),),
    "two levels": ((("x", False),), (("y", False),)),
    "around": ((), (("x", False), ("y", False))),
    "before": ((), (("x", True), ("y", True))),
    "before its own": ((("x", False),), (("x", True), ("y", True))),
    "three levels": ((("x", False), ("y", False)), (("z", False),), (("u", False),)),
    "around two": ((), (("x", False),), (("y", False), ("z", False))),
    "before, and around": ((("x", False),), (("y", True),), (("z", False), ("u", False))),
}


# ------------------------------------------------------------------------------------------------------------------ the definition

Values = tuple[object, ...]
"""What a condition reads of one event, in the order of `leaves_of`."""

Choice = frozenset[tuple["Variable", Values]]
"""One event for each of some variables."""


class KeptEvents(NamedTuple):
    """What is kept of the events that a condition speaks of.

    events: of each variable its events since its pattern began. choices: for each level but the last, the choices for it and the levels below since
    the level above it began. upcoming: the events that the next iteration calls `prev`.
    """

    events: dict[Variable, frozenset[Values]] = {}  # noqa: RUF012 - nobody changes it
    choices: dict[int, frozenset[Choice]] = {}  # noqa: RUF012
    upcoming: dict[Variable, frozenset[Values]] = {}  # noqa: RUF012


def after(
    found: Correlation, kept: KeptEvents | None, actions: Iterable[Action], value: Callable[[Expression], object]
) -> tuple[list[dict[Expression, object]], KeptEvents]:
    """The choices that an event completes, for each of which the condition has to hold, and what is kept after the event."""
    events, choices, upcoming = map(dict, kept or KeptEvents())
    for verb, level in actions:
        if verb in RESETS and isinstance(level, int):
            for variable in found.levels[level]:
                events.pop(variable, None)
                carried = upcoming.pop(variable, None)
                if verb == NEXT and carried:
                    events[variable] = carried
            choices.pop(level - 1, None)

    def read(variable: Variable) -> Values:
        return tuple(value(localize(leaf)) for leaf in leaves_of(found, variable))

    complete: set[Choice] = set()
    own = [(0, {})] if (MATCH, 0) in actions else []
    own += [(next(n for n, names in enumerate(found.levels) if each in names), {each: read(each)}) for each in marked(actions)]
    for level, event in own:
        others = [variable for variable in found.levels[level] if variable not in event]
        below = choices.get(level - 1, frozenset()) if level else {frozenset()}
        made = frozenset(choice | set(event.items()) | more for choice in below for more in choices_of(others, events))
        for variable, values in event.items():
            events[variable] = events.get(variable, frozenset()) | {values}
        for above in range(level, found.top):
            choices[above] = choices.get(above, frozenset()) | made
            made = frozenset(choice | more for choice in made for more in choices_of(found.levels[above + 1], events))
        complete |= made
    for verb, name in actions:
        if verb == KEEP and isinstance(name, str):
            upcoming[name, True] = upcoming.get((name, True), frozenset()) | {read((name, True))}
    values_of = [dict(pair for each, own in row for pair in zip(leaves_of(found, each), own, strict=True)) for row in complete]
    return values_of, KeptEvents(events, choices, upcoming)


def leaves_of(found: Correlation, variable: Variable) -> list[Expression]:
    """What a condition reads of the events of a variable."""
    return [*dict.fromkeys(leaf for leaf in leaves(found.condition) if (leaf.variable, leaf.previous) == variable)]


def choices_of(variables: Iterable[Variable], events: Mapping[Variable, frozenset[Values]]) -> Iterator[Choice]:
    """One event for each of some variables, in all ways."""
    for values in itertools.product(*([(variable, each) for each in events.get(variable, ())] for variable in variables)):
        yield frozenset(values)


# ------------------------------------------------------------------------------------------------------------------ the program


def leaf(variable: Variable, attribute: str) -> Field:
    return Field(variable[0], (attribute,), pa.int64(), pa.int64(), previous=variable[1])


def correlation(levels: tuple[tuple[Variable, ...], ...]) -> Correlation:
    """One that reads an attribute of each variable, and two of the last one; all its comparisons are of two variables."""
    *others, last = itertools.chain(*levels)
    leaves = [leaf(last, "v"), *(leaf(each, "v") for each in others), leaf(last, "k"), leaf(others[0], "v")]
    pairs = [Apply("<", pair, pa.bool_()) for pair in itertools.pairwise(leaves)]
    return Correlation(Apply("or", tuple(pairs), pa.bool_()), levels)


def actions(rng: random.Random, found: Correlation) -> frozenset[Action]:
    """What an event does: any part of what it may."""
    names = {name: level for level, variables in enumerate(found.levels) for name, previous in variables if not previous}
    before = {name: level for level, variables in enumerate(found.levels) for name, previous in variables if previous}
    some: list[Action] = [(MARK, name) for name in names if rng.random() < 0.4]
    some += [(KEEP, name) for name in before if rng.random() < 0.5]
    some += [
        (NEXT if level in before.values() and rng.random() < 0.7 else BEGIN, level) for level in range(found.top + 1) if rng.random() < 0.15
    ]
    some += [(MATCH, 0)] if not found.levels[0] and rng.random() < 0.3 else []
    return frozenset(some)


@pytest.mark.parametrize("name", LEVELS)
def test_choices_are_those_of_the_correlation(name: str) -> None:
    rng, found = random.Random(f"{SEED} choices {name}"), correlation(LEVELS[name])
    choices = Choices.of(Guards(EventSchema({}), 0), found)
    complete = 0
    for _ in range(CASES):
        kept: KeptEvents | None = None
        held: dict[int, Any] = {}
        for _ in range(rng.randint(1, 12)):
            now = {"v": rng.randrange(3), "k": rng.choice([None, 0, 1])}
            does = actions(rng, found)
            event = Event(now)
            wanted, kept = after(found, None if (BEGIN, found.top) in does else kept, does, event.value)
            tests, stores = choices.program(does, frozenset())

            def filled(register: int, held: dict[int, Any] = held) -> Before | None:
                return Before(register) if register in held else None

            asked = [test for each in tests if (test := registers.test_after(each, filled)) is not None]
            given = [rows(test, event, held) for test in asked if isinstance(test, Computes)]
            assert {frozenset(row.items()) for each in given for row in each} == {frozenset(row.items()) for row in wanted}
            complete += len(wanted) > 1
            changed = {store.register: substituted(store.term, filled) for store in stores}
            made = {register: event.content(term, held) for register, term in changed.items() if term is not None}
            held = {register: value for register, value in held.items() if register not in changed} | made
    assert complete > 2


class Event(runs._Step):
    """An event with these values, which terms are evaluated at, by the definition."""

    def __init__(self, now: dict[str, Any]) -> None:
        self.now = now

    def value(self, expression: Expression) -> Any:
        return self.now[expression.path[0]] if isinstance(expression, Field) else expression.value


def rows(test: Computes, event: Event, held: dict[int, Any]) -> list[dict[Expression, Any]]:
    """The choices of a test, without the constants that it names."""
    found = combinations(test.operands, lambda term: event.rows(term, held))
    return [{value: own for value, own in row.items() if isinstance(value, Field)} for row in found]
