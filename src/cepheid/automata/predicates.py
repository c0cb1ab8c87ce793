"""The predicates of a pattern: what its construction asks of single events, and which of these questions are one."""

from __future__ import annotations

import operator as operators
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cepheid.automata.alphabet import Predicate
from cepheid.logical import plan
from cepheid.logical.plan import localize
from cepheid.logical.predicates import tested_type, tests_type, type_test
from cepheid.logical.tree import walk
from cepheid.logical.types import NEGATED, time_value_type
from cepheid.logical.variables import defined

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cepheid.logical.plan import Expression, Pattern
    from cepheid.schema import EventSchema


def predicates_of(pattern: Pattern, schema: EventSchema) -> Iterator[Predicate]:
    """The predicates that the construction of a pattern asks for, in its order: of each event the type, then the conditions around it."""
    if isinstance(pattern, plan.Event):
        if pattern.type is not None and tests_type(pattern, schema):
            yield of_type(pattern.type, schema)
        return
    for part in pattern.children():
        yield from predicates_of(part, schema)
    if isinstance(pattern, plan.Sequence) and any(link.operator == "THEN" for link in pattern.links):
        moved = moved_on(schema)
        if moved is not None:
            yield moved
    if isinstance(pattern, plan.Filter):
        for condition in pattern.conditions:
            if is_own(pattern, condition) and not isinstance(condition, plan.Literal):
                yield of_condition(condition, schema)


def moved_on(schema: EventSchema) -> Predicate | None:
    """Whether an event is later than the one before it in its partition; None where events have no time."""
    column, kind = schema.time_column, schema.time_type
    if column is None or kind is None:
        return None
    read = time_value_type(kind)
    before = plan.Lag("", (plan.lag_column(column, 1),), read, kind, attribute=column)
    return of_condition(plan.Apply(">", (plan.Field("", (column,), read, kind), before), pa.bool_()), schema)


def is_own(pattern: plan.Filter, condition: Expression) -> bool:
    """Whether a condition of a FILTER is about single events of the filtered pattern, so that a predicate says it."""
    return plan.is_local(condition) and plan.variables_of(condition) <= defined(pattern.pattern)


def of_type(name: str, schema: EventSchema) -> Predicate:
    """The predicate of a type test."""
    return Predicate(type_test(name, schema), name)


def of_condition(condition: Expression, schema: EventSchema) -> Predicate:
    """The predicate of a local condition; one that says what a type test says is that."""
    condition = localize(condition)
    return Predicate(condition, tested_type(condition, schema))


def conjunctions(pattern: Pattern, schema: EventSchema) -> dict[Predicate, Predicate]:
    """For each local condition of a pattern one predicate that says it and all others that are asked of exactly the same events."""
    asked: dict[Predicate, set[object]] = defaultdict(set)
    for number, node in enumerate(walk(pattern)):
        if not isinstance(node, plan.Filter):
            continue
        for condition in node.conditions:
            if is_own(node, condition) and not isinstance(condition, plan.Literal):
                # Of one event all conditions speak; of longer patterns, those of one variable.
                speaks = None if isinstance(node.pattern, plan.Event) else plan.variables_of(condition)
                asked[of_condition(condition, schema)].add((number, speaks))
    together: dict[frozenset[object], list[Predicate]] = defaultdict(list)
    for predicate, places in asked.items():
        if predicate.type is None:
            together[frozenset(places)].append(predicate)
    found: dict[Predicate, Predicate] = {}
    for parts in together.values():
        whole = parts[0] if len(parts) == 1 else Predicate(plan.Apply("and", tuple(part.condition for part in parts), pa.bool_()))
        found |= dict.fromkeys(parts, whole)
    return found


# ------------------------------------------------------------------------------------------------------ what one event may satisfy


def can_hold(conditions: Iterable[tuple[Expression, bool]]) -> bool:
    """Whether one event may satisfy some conditions (True) and fail others (False), as far as comparisons with constants say.

    `v > 3` excludes `v <= 3`, whatever v is an expression of. All other conditions are taken as independent. Quadratic in the comparisons.
    """
    asked: dict[tuple[Expression, bool], list[tuple[str, Any]]] = defaultdict(list)
    failing = []
    todo = list(conditions)
    while todo:
        condition, holds = todo.pop()
        match condition:
            case plan.Apply(operator="not", arguments=(inner,)):
                todo.append((inner, not holds))
            case plan.Apply(operator="and", arguments=parts) if holds:
                todo += [(part, True) for part in parts]
            case plan.Apply(operator="or", arguments=parts) if not holds:
                todo += [(part, False) for part in parts]
            case plan.Apply(operator=operator, arguments=(value, plan.Literal(value=constant) as literal)) if operator in NEGATED:
                asked_of = value, pa.types.is_integer(literal.type)
                if constant is not None and holds:
                    asked[asked_of].append((operator, constant))
                elif constant is not None:
                    failing.append((asked_of, NEGATED[operator], constant))
    for asked_of, operator, constant in failing:
        # Where nothing is asked that holds, it may be NULL.
        if asked_of in asked:
            asked[asked_of].append((operator, constant))
    return all(_some_value(comparisons, whole=whole) for (_, whole), comparisons in asked.items())


def _some_value(comparisons: Sequence[tuple[str, Any]], *, whole: bool) -> bool:
    """Whether some value satisfies all comparisons with constants; whole: an integer. Values of all other types are taken as dense."""

    def fits(value: Any) -> bool:
        return all(COMPARE[operator](value, constant) for operator, constant in comparisons)

    constants = {constant for _, constant in comparisons}
    if any(map(fits, constants)):
        return True
    if any(operator == "=" for operator, _ in comparisons):
        return False
    if whole:
        return any(fits(constant + step) for constant in constants for step in (-1, 1))
    # Between two constants next to each other, or beyond the outermost ones.
    above = {constant for operator, constant in comparisons if operator in {">", ">="}}
    below = {constant for operator, constant in comparisons if operator in {"<", "<="}}
    return not above or not below or max(above) < min(below)


COMPARE = {"=": operators.eq, "!=": operators.ne, "<": operators.lt, "<=": operators.le, ">": operators.gt, ">=": operators.ge}
