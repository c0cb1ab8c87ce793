"""The transform of Figure 5: bounds on the length go down into an expression, so that sequences know how long their right sides are.

Comes in: an expression. Goes out: one with the same instances (event-algebra, Theorem 6.1), in which each sequence has a `length` that no instance
of its right side exceeds. A sequence whose `length` is bounded needs bounded memory (Figure 4). Time and positions go down together, as
pairs: all laws that the transform uses (23 to 36) hold for either.
"""

from __future__ import annotations

from cepheid.algebra.expression import (
    INSTANT,
    UNBOUNDED,
    Conjunction,
    Disjunction,
    Expression,
    Length,
    Negation,
    Primitive,
    Restriction,
    Sequence,
)
from cepheid.errors import LimitError

MAX_DEPTH = 200
"""Operators that may be around each other."""


def transform(expression: Expression) -> Expression:
    """An expression with the same instances, in which each `Sequence` says how long instances of its right side are at most.

    Linear in the expression (event-algebra, section 6). Theorem 6.1: `transform(E)` and E are equivalent. Raises LimitError past MAX_DEPTH.

        >>> from cepheid.algebra import Primitive, transform
        >>> B, P, T = map(Primitive, "BPT")
        >>> print(transform((B >> B).within(time=2) - (P >> (P + T))).formula)
        ((B ; B)_2 - (P ; (P + T)_2))
    """
    if (deep := depth(expression)) > MAX_DEPTH:
        raise LimitError(
            f"the expression has {deep} operators around each other, and the limit is {MAX_DEPTH} (MAX_DEPTH)",
            help="write it less deep: `;`, OR and ALL are associative, and a sequence of halves is only log n deep",
        )
    return _transformed(expression, UNBOUNDED)[0]


def depth(expression: Expression) -> int:
    """How many operators and primitives are around each other. Linear."""
    depths: list[int] = []
    for node in expression.walk():
        depths.append(1 + max((depths.pop() for _ in node.operands), default=0))
    return depths[0]


def _transformed(expression: Expression, bound: Length) -> tuple[Expression, Length]:
    """(E', how long its instances are at most), where E restricted to `bound` is equivalent to E' restricted to it (Lemma 6.1)."""
    match expression:
        case Disjunction(left, right):
            (left, one), (right, other) = _transformed(left, bound), _transformed(right, bound)
            return Disjunction(left, right), one.join(other)
        case Conjunction(left, right):
            return Conjunction(_transformed(left, bound)[0], _transformed(right, bound)[0]), UNBOUNDED
        case Negation(left, right):
            left, length = _transformed(left, bound)
            return Negation(left, _transformed(right, length.meet(bound))[0]), length
        case Sequence(left, right):
            left, (right, length) = _transformed(left, bound)[0], _transformed(right, bound)
            return Sequence(left, _restricted(right, bound.beyond(length)), bound.meet(length)), UNBOUNDED
        case Restriction(operand, inner):
            bound = bound.meet(inner)
            operand, length = _transformed(operand, bound)
            return _restricted(operand, bound.beyond(length)), bound.meet(length)
        case Primitive():
            return expression, INSTANT
    raise TypeError(expression)


def _restricted(expression: Expression, length: Length) -> Expression:
    return expression if length == UNBOUNDED else Restriction(expression, length)
