"""The tests on a single event, as expressions: its type, and the local conditions on it.

A type test is a comparison of the type column like any other, so a condition with the same meaning is the same
predicate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from cepheid.logical.plan import Apply, Field, Literal

if TYPE_CHECKING:
    from cepheid.logical.plan import Event, Expression
    from cepheid.schema import EventSchema


def tests_type(pattern: Event, schema: EventSchema) -> bool:
    """Whether the events of a pattern are told from others by their type: not `ANY`, nor the one type of a stream without a type column."""
    return pattern.type is not None and (schema.type_column is not None or schema.stream != pattern.type)


def type_test(name: str, schema: EventSchema) -> Expression:
    """Whether an event is of a type."""
    if schema.type_column is None:
        return Literal(name == schema.stream, pa.bool_())
    column = Field("", (schema.type_column,), pa.string(), schema.attributes[schema.type_column])
    return Apply("=", (column, Literal(name, pa.string())), pa.bool_())


def tested_type(condition: Expression, schema: EventSchema) -> str | None:
    """The type that a condition tests, None where it is no type test."""
    if not isinstance(condition, Apply) or not isinstance(condition.arguments[-1], Literal) or schema.type_column is None:
        return None
    name = condition.arguments[-1].value
    return name if isinstance(name, str) and condition == type_test(name, schema) else None
