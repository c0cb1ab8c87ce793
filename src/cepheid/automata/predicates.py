"""The predicates of a pattern: what its construction asks of single events, and which of these questions are one."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import pyarrow as pa

from cepheid.automata.alphabet import Predicate
from cepheid.logical import plan
from cepheid.logical.plan import localize
from cepheid.logical.predicates import tested_type, tests_type, type_test
from cepheid.logical.tree import walk
from cepheid.logical.variables import defined

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    if isinstance(pattern, plan.Filter):
        for condition in pattern.conditions:
            if is_own(pattern, condition) and not isinstance(condition, plan.Literal):
                yield of_condition(condition, schema)


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
