"""Comparisons that compute with values of several events, as steps: `abs(b.v - a.v) < 5`, `a.v + b.v > 2 * c.v`, `b.price / a.price > 1.1`.

The OPERANDS of such a condition are its largest expressions over one variable each. What an event keeps of itself is its operand, and the last event
computes: `registers.Computes`. No index answers this, for it may hold for any of the values kept; so it is computed for each.

It is computed by STEPS over one number, so that a kernel needs no stack: what is computed with is an operand or a constant, never
another result, but that both sides of the comparison are computed one after the other. Here are the conditions that can be computed so, over integers
(times and durations too) and doubles; the others are correlations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from cepheid.automata.correlation import variables
from cepheid.logical.plan import Apply, Expression, Literal
from cepheid.logical.types import FLIPPED, type_of

if TYPE_CHECKING:
    from cepheid.automata.correlation import Variable

ALONE = frozenset({"abs", "negate", "cast"})
"""Operators of one argument."""

TOGETHER = {"+": "+", "-": "reversed -", "*": "*", "/": "reversed /"}
"""Operators of two, and what they are where the second argument is the result so far."""


class Step(NamedTuple):
    """What becomes of the result so far.

    operator: "load", "save" (the left side is done), a comparison, or one of ALONE and TOGETHER. value: the operand or constant, if there is one.
    real: whether numbers are doubles.
    """

    operator: str
    value: Expression | None
    real: bool


def operands(condition: Expression) -> dict[Variable, Expression] | None:
    """What a condition computes with, one operand for each variable (of one variable itself); None where it has no such steps."""
    if len(own := variables(condition)) == 1:
        return dict.fromkeys(own, condition)
    found = steps(condition)
    if found is None:
        return None
    values = {step.value: variables(step.value) for step in found if step.value is not None}
    every = [(variable, value) for value, own in values.items() for variable in own]
    return dict(every) if len(dict(every)) == len(every) > 1 else None


def steps(condition: Expression) -> list[Step] | None:
    """The steps of a comparison; None where it has none."""
    if not isinstance(condition, Apply) or condition.operator not in FLIPPED:
        return None
    left, right = map(_chain, condition.arguments)
    if left is None or right is None:
        return None
    real = _is_real(condition.arguments[0])
    return [*left, Step("save", None, real), *right, Step(condition.operator, None, real)]


def _chain(value: Expression) -> list[Step] | None:
    """The steps of a number, from the first one on."""
    if not _is_real(value) and not _is_whole(value):
        return None
    if len(variables(value)) < 2:
        known = bool(variables(value)) or (isinstance(value, Literal) and value.value is not None)
        return [Step("load", value, _is_real(value))] if known else None
    assert isinstance(value, Apply)
    if value.operator in ALONE:
        (argument,) = value.arguments
        before = _chain(argument)
        if before is None or (value.operator == "cast" and not (_is_real(value) and pa.types.is_int64(type_of(argument)))):
            return None
        return [*before, Step(value.operator, None, _is_real(value))]
    if value.operator not in TOGETHER:
        return None
    left, right = map(_chain, value.arguments)
    if left is None or right is None or len(left) > 1 < len(right):
        return None
    if len(right) == 1:
        return [*left, Step(value.operator, right[0].value, _is_real(value))]
    return [*right, Step(TOGETHER[value.operator], left[0].value, _is_real(value))]


def _is_real(value: Expression) -> bool:
    return bool(pa.types.is_float64(type_of(value)))


def _is_whole(value: Expression) -> bool:
    kind = type_of(value)
    return bool(pa.types.is_int64(kind) or pa.types.is_timestamp(kind) or pa.types.is_duration(kind))
