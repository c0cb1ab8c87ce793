"""Conditions over choices of several events: what is kept is sets of rows of values, which later events complete.

A condition holds for every choice of one event for each of its variables, and what it computes with is its OPERANDS (`computing`): so of an event no
more is kept than the values of its variable's operands. Three kinds of registers hold sets of such rows:

* of each variable its events since its pattern began; of one under prev also those that the next iteration will call so;
* of each level but the last its choices, of it and the levels below, since the level above it began.

Where level 0 has no variable, its choices are a word that says that the filtered pattern has been there. An event of a variable completes choices
with all that is kept of others, in all ways: a PRODUCT of sets. The condition is asked of each row of the outermost one, and those of other levels
are added to what is kept. This is all that a condition may ask, with any number of variables, levels and events, under prev or not.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from cepheid.automata.comparisons import TRUE
from cepheid.automata.computing import operands
from cepheid.automata.correlation import BEGIN, KEEP, MATCHED, NEXT, RESETS, called, placed, variables
from cepheid.automata.registers import Before, Computes, Each, Element, Gathered, Joined, Now, Store
from cepheid.logical.describe import describe_expression
from cepheid.logical.plan import localize
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cepheid.automata.correlation import Action, Correlation, Variable
    from cepheid.automata.guards import Guards
    from cepheid.automata.registers import Term, Test
    from cepheid.logical.plan import Expression

Product = tuple["Term", ...]
"""The parts of a product: `Each` of a register, or `Now` for a value of the event."""


@record
class Choices:
    """A condition by the choices that registers hold.

    operands: of each variable, and of None the constant texts. events, upcoming: registers by variable. chosen: by level, without the last one.
    """

    correlation: Correlation
    operands: Mapping[Variable | None, tuple[Expression, ...]]
    events: Mapping[Variable, int]
    upcoming: Mapping[Variable, int]
    chosen: tuple[int, ...]

    @classmethod
    def of(cls, guards: Guards, correlation: Correlation) -> Choices:
        """With registers of its own. Raises LimitError as `computing.steps`."""
        by_variable: dict[Variable | None, tuple[Expression, ...]] = {}
        for value in operands(correlation.condition):
            own = next(iter(variables(value)), None)
            by_variable[own] = (*by_variable.get(own, ()), value)
        text = describe_expression(correlation.condition)
        texts = {
            own: ", ".join(dict.fromkeys(describe_expression(localize(value)) for value in values))
            for own, values in by_variable.items()
            if own
        }
        return cls(
            correlation,
            by_variable,
            {own: guards.register(f"{text} of {called(own)}") for own, text in texts.items()},
            {own: guards.register(f"{text} of {own[0]}") for own, text in texts.items() if own[1]},
            tuple(guards.register(f"choices for {text}") for _ in range(correlation.top)),
        )

    def program(self, actions: frozenset[Action], _together: frozenset[Variable]) -> tuple[list[Test], list[Store]]:
        """What a transition with such actions asks, and what it stores."""
        held: dict[int, Term | None] = {each: Before(each) for each in (*self.events.values(), *self.upcoming.values(), *self.chosen)}
        levels, top = self.correlation.levels, self.correlation.top
        if (BEGIN, top) in actions:
            held = dict.fromkeys(held)
        for verb, level in actions:
            if verb in RESETS and isinstance(level, int):
                self._begin(held, level, verb)
        complete: list[Product] = []
        for variable in placed(actions):
            own = tuple(Now(localize(value)) for value in self.operands.get(variable, ()))
            level = 0 if variable == MATCHED else next(level for level, names in enumerate(levels) if variable in names)
            below = _ways(held[self.chosen[level - 1]], self._width(level)) if level else [()]
            found = _products(below, *([own] if each == variable else self._events(held, each) for each in levels[level]))
            if variable != MATCHED:
                register = self.events[variable]
                held[register] = _union(held[register], [own])
            for above in range(level, top):
                held[self.chosen[above]] = _union(held[self.chosen[above]], found)
                found = _products(found, *(self._events(held, each) for each in levels[above + 1]))
            complete += found
        for variable, register in self.upcoming.items():
            if (KEEP, variable[0]) in actions:
                held[register] = _union(held[register], [tuple(Now(localize(value)) for value in self.operands[variable])])
        tests = [self._test(product) for product in dict.fromkeys(complete)]
        return list(tests), [Store(register, term) for register, term in held.items() if term != Before(register)]

    def _begin(self, held: dict[int, Term | None], level: int, verb: str) -> None:
        """The pattern of a level begins: nothing of it is held, but what prev means in its next iteration."""
        for variable in self.correlation.levels[level]:
            register, coming = self.events[variable], self.upcoming.get(variable)
            held[register] = held[coming] if verb == NEXT and coming is not None else None
            if coming is not None:
                held[coming] = None
        if level:
            held[self.chosen[level - 1]] = None

    def _width(self, level: int) -> int:
        """How many values a choice of the levels below has."""
        return sum(len(self.operands[variable]) for names in self.correlation.levels[:level] for variable in names)

    def _events(self, held: Mapping[int, Term | None], variable: Variable) -> list[Product]:
        return _ways(held[self.events[variable]], len(self.operands[variable]))

    def _test(self, product: Product) -> Computes:
        """The condition of each choice of a product of all levels."""
        terms: list[Term] = []
        # Each is to hold something, also where no value of it is asked; and some value of the event is asked.
        beside: list[tuple[Expression, Term]] = [(value, Now(value)) for value in self.operands.get(None, ())]
        for part, each in enumerate(product):
            if isinstance(each, Each):
                terms += [Element(each.before, part, number, each.width) for number in range(each.width)]
                beside += [] if each.width else [(TRUE, each.before)]
            else:
                terms.append(each)
        values = [value for names in self.correlation.levels for variable in names for value in self.operands[variable]]
        asked = [*zip(values, terms, strict=True), *beside]
        return Computes(
            self.correlation.condition, tuple(asked if any(isinstance(term, Now) for _, term in asked) else [*asked, (TRUE, Now(TRUE))])
        )


def _ways(held: Term | None, width: int) -> list[Product]:
    """The products that all which a register holds is made of."""
    match held:
        case Gathered(before=before, value=value):
            return [*_ways(before, width), (Now(value),)]
        case Joined(before=before, products=products):
            return [*_ways(before, width), *products]
        case Now():
            return [(held,) if width else ()]
        case None:
            return []
    return [(Each(held, width),)]


def _products(*ways: Sequence[Product]) -> list[Product]:
    return [tuple(itertools.chain(*parts)) for parts in itertools.product(*ways)]


def _union(held: Term | None, products: Iterable[Product]) -> Term | None:
    """What is held with the choices of more products."""
    new = tuple(dict.fromkeys(products))
    if not new:
        return held
    if new == ((),):
        return Now(TRUE)
    match held, new:
        case (None | Before(), ((Now(value=value),),)):
            return Gathered("set", held, value)
        case Gathered(before=before, value=value), _:
            return Joined(before, tuple(dict.fromkeys([(Now(value),), *new])))
        case Joined(before=before, products=old), _:
            return Joined(before, tuple(dict.fromkeys([*old, *new])))
    return Joined(held, new)
