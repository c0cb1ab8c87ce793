"""Conditions that comparisons decide: what their events keep, one value per side, and what later events ask of it.

A COMPARISON has one variable on each side: `y.price * 2 > x.price + 1` keeps `price + 1` of x, or `price * 2` of y, whichever comes first. A set
keeps what the other side needs (`GATHERED`). A DIFFERENCE of times or positions that is compared with a constant is one, too: `y.$time - x.$time < 9`
asks whether it lies in an interval. What computes with both variables is asked of each event that is kept (`computing`).

A condition over two variables can be made of these by AND, OR and NOT (`alternatives`). It is decided at the later of two events, where the values of
both are known. So it is a disjunction there: each alternative is a move of its own, to the same state, and asks its comparisons. What the condition
says of one variable alone is a comparison too: with TRUE, which stands for the other variable. So nothing is asked where the other one has no event.
A condition over more variables is computed as a whole.

For every choice of events one alternative holds, not one alternative for every choice. So one event of each variable must be compared
(`are_single`). Where there are more, sets of choices are kept, and the condition is computed for each (`choices`).
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from cepheid.automata.correlation import BEGIN, KEEP, MATCHED, NEXT, marked, placed, variables
from cepheid.automata.registers import Before, Compares, Computes, Elapsed, Gathered, Now, Store
from cepheid.logical.folding import INT64_MAX
from cepheid.logical.plan import Apply, Index, Interval, Literal, Time, localize
from cepheid.logical.types import FLIPPED, NEGATED
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from cepheid.automata.correlation import Action, Correlation, Variable
    from cepheid.automata.registers import Term, Test
    from cepheid.automata.transition import Transition
    from cepheid.logical.plan import Expression

GATHERED = {"<": "max", "<=": "max", ">": "min", ">=": "min", "=": "same", "!=": "set"}
"""What the values of a side come to (`registers.Gathered`), by the operator behind it: `x < y` needs the greatest x."""

MOST_ALTERNATIVES = 16
"""Alternatives of a condition: a move that asks it becomes so many moves."""

TRUE = Literal(value=True, type=pa.bool_())


@record
class Side:
    """`value operator ..`: one side of a comparison, and the variable on the other one. operator: an interval has value less the other value."""

    value: Expression
    operator: str | Interval
    other: Variable


Sides = tuple[tuple["Variable", Side], ...]
"""A comparison: both of its variables, each with its side."""

Atom = Sides | Apply
"""What an alternative asks: a comparison of two sides, or a condition that is computed."""

Key = TypeVar("Key")
"""What registers are found by."""


def sides(condition: Expression) -> Sides | None:
    """The sides of a comparison with one variable on each; None for other conditions."""
    if not isinstance(condition, Apply) or condition.operator not in FLIPPED:
        return None
    left, right = condition.arguments
    return _between(left, right, condition.operator)


def of_one_variable(correlation: Correlation) -> Sides | None:
    """A condition on one variable around the filtered pattern, as a comparison with this pattern: it is true of each event, where that is there."""
    if len(correlation.variables) != 1 or correlation.levels[0] or correlation.top != 1:
        return None
    (own,) = correlation.variables
    return (own, Side(localize(correlation.condition), "=", MATCHED)), (MATCHED, Side(TRUE, "=", own))


def _between(left: Expression, right: Expression, operator: str | Interval) -> Sides | None:
    first, second = variables(left), variables(right)
    if len(first) != 1 or len(second) != 1 or first == second:
        return None
    (one,), (other,) = first, second
    return (one, Side(localize(left), operator, other)), (other, Side(localize(right), _flipped(operator), one))


def _flipped(operator: str | Interval) -> str | Interval:
    if isinstance(operator, str):
        return FLIPPED[operator]
    assert operator.upper is not None
    return Interval(-operator.upper, -operator.lower)


# ---------------------------------------------------------------------------------------------------------------- alternatives


def alternatives(correlation: Correlation) -> list[frozenset[Atom]] | None:
    """What a condition says of one event for each of its variables: all that one alternative has holds. None for other conditions.

    Over more than two variables all of it is computed; these are of one level, so that all are gone where one is.
    """
    both, condition = correlation.variables, correlation.condition
    if not isinstance(condition, Apply):
        return None
    if len(both) == 1 and correlation.levels[0] and not any(previous for _, previous in both):
        return [frozenset([condition])]
    if len(both) == 2 and correlation.levels[0]:
        found = _alternatives(condition, both, positive=True)
        if found is not None and len(found) <= MOST_ALTERNATIVES:
            return found
    elif len(both) <= 2 or correlation.top > 0:
        return None
    return _computed(condition, positive=True)


def _alternatives(condition: Expression, both: frozenset[Variable], *, positive: bool) -> list[frozenset[Atom]] | None:
    """The disjunctive normal form of a condition, or of its complement; conditions have two values, so it has one."""
    if not isinstance(condition, Apply) or len(variables(condition)) < 2:
        return _of_one(condition, both, positive=positive)
    if condition.operator == "not":
        return _alternatives(condition.arguments[0], both, positive=not positive)
    if condition.operator in {"and", "or"}:
        found: list[frozenset[Atom]] = [] if (joined := (condition.operator == "or") is positive) else [frozenset()]
        for argument in condition.arguments:
            more = _alternatives(argument, both, positive=positive)
            if more is None:
                return None
            found = [*dict.fromkeys([*found, *more] if joined else [one | other for one in found for other in more])]
            if len(found) > MOST_ALTERNATIVES:
                return None
        return found
    return _compared(condition, both, positive=positive)


def _of_one(condition: Expression, both: frozenset[Variable], *, positive: bool) -> list[frozenset[Atom]] | None:
    """What a condition says of one variable."""
    if not (own := variables(condition)):
        return None
    (one,), (other,) = own, both - own
    value = localize(condition if positive else Apply("not", (condition,), pa.bool_()))
    return [frozenset([((one, Side(value, "=", other)), (other, Side(TRUE, "=", one)))])]


def _compared(condition: Apply, both: frozenset[Variable], *, positive: bool) -> list[frozenset[Atom]] | None:
    """What a comparison says; its complement is the opposite one, or that a side is NULL. What has no sides is computed."""
    found = sides(condition)
    if found is None and positive and condition.operator in FLIPPED:
        left, right = condition.arguments
        if (
            isinstance(left, Apply)
            and left.operator == "-"
            and all(map(_is_counted, left.arguments))
            and (spans := _spans(condition.operator, right))
        ):
            first, second = left.arguments
            differences = [_between(first, second, span) for span in spans]
            return [frozenset([each]) for each in differences if each is not None]
    if found is None:
        return _computed(condition, positive=positive)
    if positive:
        return [frozenset([found])]
    opposite = dataclasses.replace(condition, operator=NEGATED[condition.operator])
    null = Apply("or", (opposite, *(Apply("is_null", (side,), pa.bool_()) for side in condition.arguments)), pa.bool_())
    return _alternatives(null, both, positive=True)


def _computed(condition: Apply, *, positive: bool) -> list[frozenset[Atom]]:
    """A condition, or its complement, as one alternative that computes."""
    return [frozenset([condition if positive else Apply("not", (condition,), pa.bool_())])]


def _is_counted(value: Expression) -> bool:
    return isinstance(value, Time | Index)


def _spans(operator: str, constant: Expression) -> list[Interval]:
    """The differences that compare so with a constant, without those that overflow; of both signs alike, so that they can be turned round.

    The least int64 counts as a difference that overflows, for its opposite is no int64.
    """
    if not isinstance(constant, Literal) or not isinstance(constant.value, int):
        return []
    value = constant.value
    bounds = {
        "=": [(value, value)],
        "!=": [(-INT64_MAX, value - 1), (value + 1, INT64_MAX)],
        "<": [(-INT64_MAX, value - 1)],
        "<=": [(-INT64_MAX, value)],
        ">": [(value + 1, INT64_MAX)],
        ">=": [(value, INT64_MAX)],
    }[operator]
    within = [(max(lower, -INT64_MAX), upper) for lower, upper in bounds]
    return [Interval(lower, upper) for lower, upper in within if lower <= upper]


# -------------------------------------------------------------------------------------------------------- what events keep and ask


@record
class Comparison:
    """A comparison by what registers hold: one per side, and one for what the next iteration calls `prev`.

    sides, registers: by variable. upcoming: by variable under prev. top: the outermost level. single: whether one event of each is compared.
    """

    sides: Mapping[Variable, Side]
    registers: Mapping[Variable, int]
    upcoming: Mapping[Variable, int]
    top: int
    single: bool

    def program(self, actions: frozenset[Action], together: frozenset[Variable]) -> tuple[list[Test], list[Store]]:
        """What a transition with such actions asks, and what it stores.

        together: sides of an equality whose other side comes for certain, and may come later: all their values must be equal.
        """
        held = _begun(self.registers, self.upcoming, actions, self.top)
        tests: list[Test] = []
        for variable in placed(actions):
            side, own = self.sides[variable], self.registers[variable]
            tests += _asked(held[self.registers[side.other]], _flipped(side.operator), side.value)
            if variable in together:
                tests += _asked(held[own], "=", side.value)
                held[own] = Now(side.value)
            elif not side.other[1]:
                held[own] = self._gathered(side, held[own])
        for variable, register in self.upcoming.items():
            if (KEEP, variable[0]) in actions:
                held[register] = self._gathered(self.sides[variable], held[register])
        return tests, [Store(register, term) for register, term in held.items() if term != Before(register)]

    def _gathered(self, side: Side, before: Term | None) -> Term:
        if self.single or not isinstance(side.operator, str) or isinstance(side.value, Literal):
            return Now(side.value)
        how = GATHERED[side.operator]
        return Now(side.value) if before is None and how != "set" else Gathered(how, before, side.value)


@record
class Computation:
    """A condition that computes with one event of each of its variables. registers, upcoming, top: as in `Comparison`, by operand.

    operands: each with its variable, None of a constant. Of one variable it is any condition, which is asked of each of its events alone.
    """

    condition: Apply
    operands: Mapping[Expression, Variable | None]
    registers: Mapping[Expression, int]
    upcoming: Mapping[Expression, int]
    top: int

    def program(self, actions: frozenset[Action], _together: frozenset[Variable]) -> tuple[list[Test], list[Store]]:
        """What a transition with such actions asks, and what it stores."""
        held = _begun(self.registers, self.upcoming, actions, self.top)
        tests: list[Test] = []
        for variable in marked(actions):
            if len(self.operands) == 1:
                tests.append(Compares(Now(localize(self.condition)), "=", TRUE))
                continue
            terms = [
                [Now(localize(value))] if own in {variable, None} else list(_apart(held[self.registers[value]]))
                for value, own in self.operands.items()
            ]
            tests += [Computes(self.condition, tuple(zip(self.operands, each, strict=True))) for each in itertools.product(*terms)]
            held |= {register: Now(localize(value)) for value, register in self.registers.items() if self.operands[value] == variable}
        for value, register in self.upcoming.items():
            own = self.operands[value]
            if own and (KEEP, own[0]) in actions:
                held[register] = Now(localize(value))
        return tests, [Store(register, term) for register, term in held.items() if term != Before(register)]


def _begun(registers: Mapping[Key, int], upcoming: Mapping[Key, int], actions: frozenset[Action], top: int) -> dict[int, Term | None]:
    """What registers hold when the pattern of the outermost level has begun, if it does."""
    held: dict[int, Term | None] = {register: Before(register) for register in (*registers.values(), *upcoming.values())}
    if (BEGIN, top) in actions:
        held = dict.fromkeys(held)
    if (NEXT, top) in actions:
        for key, register in upcoming.items():
            held[registers[key]], held[register] = held[register], None
    return held


def _asked(held: Term | None, operator: str | Interval, now: Expression) -> Iterator[Test]:
    """`held operator now`, for each value that is held."""
    for each in _apart(held):
        if isinstance(operator, str):
            yield Compares(each, operator, now)
        else:
            own = _flipped(operator)
            assert isinstance(own, Interval)
            yield Elapsed(each, now, own)


def _apart(held: Term | None) -> Iterator[Term]:
    """What was there before the event, and the event itself."""
    match held:
        case Gathered(before=before, value=value):
            yield from _apart(before)
            yield Now(value)
        case Before() | Now():
            yield held


def are_single(moves: Iterable[tuple[Transition, frozenset[Action]]], initial: int, variables: Iterable[Variable], top: int) -> bool:
    """Whether each event of a variable meets one event of each other one at most. moves: with what they do to a condition.

    What is under prev meets the events of the iteration that follows its own. O(moves): a state is looked at for a few numbers of events.
    """
    names = sorted(variables)
    outgoing: dict[int, list[tuple[int, frozenset[Action]]]] = {}
    for move, actions in moves:
        outgoing.setdefault(move.source, []).append((move.target, actions))
    none = (0,) * len(names)
    todo = [(initial, none, none)]
    seen = set(todo)
    while todo:
        source, before, coming = todo.pop()
        for target, actions in outgoing.get(source, ()):
            held, upcoming = dict(zip(names, before, strict=True)), dict(zip(names, coming, strict=True))
            if (BEGIN, top) in actions:
                held, upcoming = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
            if (NEXT, top) in actions:
                held |= {variable: upcoming[variable] for variable in names if variable[1]}
                upcoming = dict.fromkeys(names, 0)
            for variable in marked(actions):
                if any(held[other] > 1 for other in names if other != variable):
                    return False
                held[variable] = min(held[variable] + 1, 2)
            for variable in names:
                if variable[1] and (KEEP, variable[0]) in actions:
                    upcoming[variable] = min(upcoming[variable] + 1, 2)
            after = (target, tuple(held.values()), tuple(upcoming.values()))
            if after not in seen:
                seen.add(after)
                todo.append(after)
    return True
