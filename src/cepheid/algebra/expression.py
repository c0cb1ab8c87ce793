"""Event expressions (event-algebra, Definition 3.6): primitive events, and the five operators of the algebra over them.

    B, P, T = map(Primitive, "BPT")
    (B >> B).within(time=2) - (P | T)          # the button twice within two seconds, no alarm in between

| paper | here | in a query |
|---|---|---|
| A v B, disjunction | `A | B` | `A OR B` |
| A + B, conjunction | `A + B` | `A ALL B` |
| A - B, negation | `A - B` | `A UNLESS B` |
| A ; B, sequence | `A >> B` | `A ; B` |
| A_t, temporal restriction | `A.within(time=t)` | `A WITHIN t` |

The paper's instants are the positions of a stream here: one event is one instant, at which any number of primitives occur. A restriction bounds
time(end) - time(start), or end - start in positions (`WITHIN n EVENTS` is events = n - 1), or both; all laws hold for either.
"""

from __future__ import annotations

import dataclasses
from numbers import Integral
from typing import TYPE_CHECKING

from cepheid.errors import InputError
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cepheid.logical.plan import Pattern


@record
class Length:
    """How long an instance may be at most: in steps of time, in positions; None is unbounded. Raises InputError for what is no whole number."""

    time: int | None = None
    events: int | None = None

    def __post_init__(self) -> None:
        # Generated code has bounds as they stand: any other text there would be run.
        for bound in self:
            if bound is not None and not isinstance(bound, Integral):
                raise InputError(f"the bound {bound!r} is no whole number", help="give within() whole steps of time, or positions")

    def __iter__(self) -> Iterator[int | None]:
        return iter((self.time, self.events))

    def __le__(self, other: Length) -> bool:
        return _least(self.time, other.time) == self.time and _least(self.events, other.events) == self.events

    def meet(self, other: Length) -> Length:
        """What is no longer than either."""
        return Length(_least(self.time, other.time), _least(self.events, other.events))

    def join(self, other: Length) -> Length:
        """What is no longer than one of them."""
        return Length(_greatest(self.time, other.time), _greatest(self.events, other.events))

    def beyond(self, other: Length) -> Length:
        """Those of its bounds that `other` does not imply; UNBOUNDED where other <= self."""
        time = None if _least(self.time, other.time) == other.time else self.time
        events = None if _least(self.events, other.events) == other.events else self.events
        return Length(time, events)

    def __str__(self) -> str:
        parts = [] if self.time is None else [str(self.time)]
        parts += [] if self.events is None else [f"{self.events + 1} EVENTS"]
        return " and ".join(parts) or "any length"


def _least(one: int | None, other: int | None) -> int | None:
    return one if other is None else other if one is None else min(one, other)


def _greatest(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else max(one, other)


UNBOUNDED = Length()
"""No bound."""

INSTANT = Length(0, 0)
"""The length of one event."""


class Expression:
    """Base of the event expressions: immutable, equal by structure. `str` writes it as a pattern, `formula` as the paper does."""

    __slots__ = ()

    def __or__(self, other: Expression) -> Disjunction:
        return Disjunction(self, other)

    def __add__(self, other: Expression) -> Conjunction:
        return Conjunction(self, other)

    def __sub__(self, other: Expression) -> Negation:
        return Negation(self, other)

    def __rshift__(self, other: Expression) -> Sequence:
        return Sequence(self, other)

    def within(self, *, time: int | None = None, events: int | None = None) -> Restriction:
        """Instances no longer than so many steps of time, or positions, or both. Raises InputError without either; below 0 there are none."""
        if time is None and events is None:
            raise InputError("within() has no bound", help="give time=, in steps of time, or events=, in positions")
        return Restriction(self, Length(time, events))

    @property
    def operands(self) -> tuple[Expression, ...]:
        """The expressions directly below."""
        return ()

    def over(self, *operands: Expression) -> Expression:
        """The same operator over other operands, as many."""
        return dataclasses.replace(self, **dict(zip(("left", "right"), operands, strict=True)))  # type: ignore[type-var]

    def walk(self) -> Iterator[Expression]:
        """It and all below, bottom-up: operands before what they are operands of, those of a place in the text before those behind it.

        Iterative: expressions may be deep.
        """
        pending: list[tuple[Expression, bool]] = [(self, False)]
        while pending:
            expression, below = pending.pop()
            if below or not expression.operands:
                yield expression
            else:
                pending.append((expression, True))
                pending.extend((operand, False) for operand in reversed(expression.operands))

    @property
    def formula(self) -> str:
        """The expression as the paper writes it."""
        raise NotImplementedError


@record
class Primitive(Expression):
    """An identifier of the algebra: a type of event, possibly with conditions on its attributes.

    name: what tells primitives apart. variables: those that a match puts the event in (default: the name). pattern: what occurs, as a pattern
    of one event; None: events of the type `name`.
    """

    name: str
    variables: frozenset[str] | None = None
    pattern: Pattern | None = dataclasses.field(default=None, compare=False, repr=False)

    @property
    def shown(self) -> frozenset[str]:
        """The variables that a match puts the event in."""
        return frozenset({self.name}) if self.variables is None else self.variables

    def over(self, *operands: Expression) -> Expression:
        """It has no operands: itself."""
        assert not operands
        return self

    @property
    def formula(self) -> str:
        """The name."""
        return self.name

    def __str__(self) -> str:
        return self.name


@record
class _Binary(Expression):
    left: Expression
    right: Expression

    @property
    def operands(self) -> tuple[Expression, ...]:
        return self.left, self.right

    @property
    def formula(self) -> str:
        return f"({self.left.formula} {_SIGNS[type(self)][0]} {self.right.formula})"

    def __str__(self) -> str:
        return f"({self.left} {_SIGNS[type(self)][1]} {self.right})"


@record
class Disjunction(_Binary):
    """An instance of either."""


@record
class Conjunction(_Binary):
    """An instance of both, in any order; they may overlap."""


@record
class Negation(_Binary):
    """An instance of left during which there is none of right."""


@record
class Sequence(_Binary):
    """An instance of left, then one of right. length: what instances of right are known not to exceed (the paper's label)."""

    length: Length = dataclasses.field(default=UNBOUNDED, compare=False)

    def over(self, *operands: Expression) -> Expression:
        """A sequence of other operands; nothing is known of how long the right one is."""
        left, right = operands
        return Sequence(left, right)


@record
class Restriction(Expression):
    """The instances of `operand` that are not longer than `length`."""

    operand: Expression
    length: Length

    @property
    def operands(self) -> tuple[Expression, ...]:
        """The one expression below."""
        return (self.operand,)

    def over(self, *operands: Expression) -> Expression:
        """The same bounds over another expression."""
        (operand,) = operands
        return Restriction(operand, self.length)

    @property
    def formula(self) -> str:
        """The expression with its bounds below: a time, a number of positions after #."""
        bounds = [
            str(bound)
            for bound in (self.length.time, None if self.length.events is None else f"#{self.length.events}")
            if bound is not None
        ]
        operand = f"({self.operand.formula})" if isinstance(self.operand, Restriction) else self.operand.formula
        return f"{operand}_{','.join(map(str, bounds)) or 'inf'}"

    def __str__(self) -> str:
        bounds = [] if self.length.time is None else [f"WITHIN {self.length.time}"]
        bounds += [] if self.length.events is None else [f"WITHIN {self.length.events + 1} EVENTS"]
        return f"({' '.join([str(self.operand), *bounds])})"


_SIGNS: dict[type[Expression], tuple[str, str]] = {
    Disjunction: ("v", "OR"),
    Conjunction: ("+", "ALL"),
    Negation: ("-", "UNLESS"),
    Sequence: (";", ";"),
}
"""How a binary operator is written: in the paper, in a query."""
