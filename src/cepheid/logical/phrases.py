"""Conditions and values in words, for sentences about what a query means.

Comes in: a bound expression. Goes out: a phrase. Comparisons, AND, OR and NOT become words at every depth; arithmetic and functions stay as the
language writes them.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pyarrow as pa

from cepheid.logical import plan
from cepheid.logical.describe import describe_expression, instant_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cepheid.logical.plan import Expression

COMPARED = {"=": "is", "!=": "is different from", "<": "is less than", "<=": "is at most", ">": "is more than", ">=": "is at least"}
"""The comparisons, in words."""

AGGREGATED = {
    "count": "the number of {}",
    "count_distinct": "the number of different {}",
    "first": "the first {}",
    "last": "the last {}",
    "only": "{}",
    "min": "the least {}",
    "max": "the greatest {}",
    "sum": "the sum of {}",
    "avg": "the mean of {}",
    "stddev": "the standard deviation of {}",
    "collect": "all {}",
    "start_time": "the time of its start",
    "end_time": "the time of its end",
    "duration": "the time from its start to its end",
    "deadline_time": "the time until which nothing may follow",
}
"""The aggregates, in words. Those of the n-th event have none."""

WHOLE = 1e15
"""Floats up to here that are whole are written as integers are."""


def listed(names: Iterable[str], word: str = "and") -> str:
    """`a, b and c`."""
    *first, last = names
    return f"{', '.join(first)} {word} {last}" if first else last


def condition_phrase(condition: Expression) -> str:
    """What has to be so: `x.temp is more than 40 and x.id is y.id`. Linear in the condition."""
    if isinstance(condition, plan.Literal):
        return f"{literal_phrase(condition)} holds"
    if not isinstance(condition, plan.Apply):
        return f"{value_phrase(condition)} is true"
    operator, arguments = condition.operator, condition.arguments
    if operator in COMPARED:
        return f"{value_phrase(arguments[0])} {COMPARED[operator]} {value_phrase(arguments[1])}"
    if operator == "like":
        return f"{value_phrase(arguments[0])} is like {value_phrase(arguments[1])}"
    if operator == "in":
        return f"{value_phrase(arguments[0])} is {listed(map(value_phrase, arguments[1:]), 'or')}"
    if operator == "is_null":
        return f"{value_phrase(arguments[0])} is missing"
    if operator == "not" and isinstance(arguments[0], plan.Apply) and arguments[0].operator == "is_null":
        return f"{value_phrase(arguments[0].arguments[0])} is not missing"
    if operator == "not":
        return f"it is not true that {_nested(arguments[0])}"
    if operator in ("and", "or"):
        return f" {operator} ".join(map(_nested, arguments))
    return f"{value_phrase(condition)} is true"


def conditions_phrase(conditions: Iterable[Expression]) -> str:
    """That all of some conditions hold, at least one."""
    known = tuple(conditions)
    return " and ".join(map(_nested, known)) if len(known) > 1 else condition_phrase(known[0])


def _nested(condition: Expression) -> str:
    joins = isinstance(condition, plan.Apply) and condition.operator in ("and", "or", "not", "in")
    text = condition_phrase(condition)
    return f"({text})" if joins and not text.endswith("is not missing") else text


def value_phrase(expression: Expression) -> str:
    """A value: `40`, `x.temp`, `the number of x`."""
    if isinstance(expression, plan.Literal):
        return literal_phrase(expression)
    if isinstance(expression, plan.Apply):
        arguments = expression.arguments
        if expression.operator == "cast":
            return value_phrase(arguments[0])
        if expression.operator in AGGREGATED and (len(arguments) < 2 or expression.operator == "deadline_time"):
            return AGGREGATED[expression.operator].format(*map(describe_expression, arguments))
    return describe_expression(expression)


def literal_phrase(literal: plan.Literal) -> str:
    """A constant: a whole number without a point, a time as people write it."""
    value = literal.value
    if isinstance(value, plan.Open):
        return str(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < WHOLE:
        return str(int(value))
    if pa.types.is_timestamp(literal.type) and value is not None:
        return instant_text(literal)
    return value.isoformat() if isinstance(value, dt.date) else describe_expression(literal)
