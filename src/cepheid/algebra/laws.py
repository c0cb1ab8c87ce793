"""The laws of the event algebra (event-algebra, Theorems 4.2 to 4.4 and their corollaries), each a rewrite in both directions.

Comes in: an expression. Goes out: expressions with the same instances on every stream. What is applied where, and when that is an improvement, is
not decided here; the transform of section 6 is one such plan.

The laws are stated over metavariables, which stand for any expressions, and over times, which stand for a whole `Length` here: bounds in time and
in positions at once. min is then the meet of two lengths, max their join. All 36 laws hold for such pairs, law 34 too: what is no longer than t is
no longer than the join of t and any other. Valid restrictions (Definition 3.12) of the two sides of a law have equal spans (Corollary 4.4).

Law 28 is misprinted in the paper, with nothing changed from left to right; here it is as its proof reads. The proofs of laws 29 and 30 are
printed for each other.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, TypeAlias

from cepheid.algebra.expression import INSTANT, Expression, Length, Primitive, Restriction
from cepheid.errors import InputError
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Binding: TypeAlias = "Mapping[str, Expression | Length]"
"""What the names of a law stand for: metavariables for expressions, times for lengths."""


@record
class Metavariable(Expression):
    """Stands for any expression in a law: A, B or C."""

    name: str

    @property
    def formula(self) -> str:
        """The name."""
        return self.name

    def __str__(self) -> str:
        return self.name


@record
class Time:
    """Stands for any length in a law: a name, or the least or the greatest of several (operator: "min" or "max")."""

    names: tuple[str, ...]
    operator: str = ""

    def of(self, binding: Binding) -> Length:
        """The length that it is, where its names stand for these."""
        lengths = [_length(binding, name) for name in self.names]
        return functools.reduce(Length.join if self.operator == "max" else Length.meet, lengths)

    def __str__(self) -> str:
        return f"{self.operator}({', '.join(self.names)})" if self.operator else self.names[0]


@record
class Bounded(Expression):
    """A temporal restriction in a law: `operand`, restricted to what `time` stands for."""

    operand: Expression
    time: Time

    @property
    def operands(self) -> tuple[Expression, ...]:
        """The one expression below."""
        return (self.operand,)

    def over(self, *operands: Expression) -> Expression:
        """The same time over another expression."""
        (operand,) = operands
        return Bounded(operand, self.time)

    @property
    def formula(self) -> str:
        """The expression with its time below."""
        operand = self.operand.formula
        return f"({operand})_{self.time}" if isinstance(self.operand, Bounded) else f"{operand}_{self.time}"

    def __str__(self) -> str:
        return self.formula


@record
class Law:
    """Two expressions over metavariables and times that have the same instances, whatever these stand for.

    number: in the paper. condition: where it holds; None: everywhere. source: the theorem or corollary. `str` writes it as the paper does.
    """

    number: int
    left: Expression
    right: Expression
    source: str
    condition: str | None = None

    def sides(self, binding: Binding) -> tuple[Expression, Expression]:
        """The left and the right side with expressions and lengths in place of its names.

        Takes a value for each of its names. Raises InputError where one has none or one of the wrong kind. The condition is not asked.
        """
        return _filled(self.left, binding), _filled(self.right, binding)

    def free(self, *, reverse: bool = False) -> frozenset[str]:
        """The names that only the side that is written has: a rewrite needs values for them. Law 12 from right to left: B; law 23: t."""
        read, written = (self.right, self.left) if reverse else (self.left, self.right)
        return _names(written) - _names(read)

    def rewrite(self, expression: Expression, *, reverse: bool = False, binding: Binding | None = None) -> Expression | None:
        """The other side, where the whole expression is an instance of one side; None where it is not.

        reverse: read from right to left. binding: what some names stand for; they must stand for the same in `expression`. It has to have the names
        that are `free`. Where min(t, t') is read (law 24 in reverse), any t and t' of `binding` are taken that have this least one; a name without a
        value there is the length itself, so that alone A_t gives (A_t)_t. Where max(t, t') is read (law 34), t and t' are known from below.

        A sequence that is written says nothing of its right side's `length`: transform again. Raises InputError where a free name has no value, or
        one of the wrong kind. O(size) of the expression, for comparing what one name stands for.

            >>> from cepheid.algebra.expression import Primitive
            >>> A, B, C = map(Primitive, "ABC")
            >>> LAWS[10].rewrite((A >> B) - B - C).formula
            '((A ; B) - (B v C))'
        """
        read, written = (self.right, self.left) if reverse else (self.left, self.right)
        found: dict[str, Expression | Length] = dict(binding or {})
        if not _matches(read, expression, found):
            return None
        missing = sorted(self.free(reverse=reverse) - set(found))
        if missing:
            raise InputError(
                f"law {self.number} {'from right to left ' if reverse else ''}needs a value of {', '.join(missing)}",
                help=f"give binding={{{missing[0]!r}: ..}}: {self}",
            )
        if self.condition is not None and not _CONDITIONS[self.condition](found):
            return None
        return _filled(written, found)

    def rewrites(self, expression: Expression, *, binding: Binding | None = None) -> Iterator[Expression]:
        """Every expression that comes from applying it once, in either direction, at any place: each once, those from the top first.

        All have the same instances as `expression`, for equivalence is a congruence (event-algebra, Theorem 4.1); a `length` of a sequence
        around the place stays right. binding: as for `rewrite`; a direction with free names that it lacks is left out. O(size ** 2), and
        recursive: for expressions of some hundred levels.
        """
        bound = binding or {}
        directions = [reverse for reverse in (False, True) if self.free(reverse=reverse) <= set(bound)]
        return iter(dict.fromkeys(self._everywhere(expression, directions, bound)))

    def _everywhere(self, expression: Expression, directions: list[bool], binding: Binding) -> Iterator[Expression]:
        for reverse in directions:
            found = self.rewrite(expression, reverse=reverse, binding=binding)
            if found is not None:
                yield found
        operands = expression.operands
        for place, operand in enumerate(operands):
            for found in self._everywhere(operand, directions, binding):
                yield expression.over(*operands[:place], found, *operands[place + 1 :])

    def __str__(self) -> str:
        condition = "" if self.condition is None else f" if {self.condition}"
        return f"{self.number}. {_bare(self.left)} == {_bare(self.right)}{condition}"


def _bare(side: Expression) -> str:
    """The formula of a side without the parentheses around the whole."""
    return side.formula[1:-1] if len(side.operands) == 2 else side.formula


# ------------------------------------------------------------------------------------------------------------- matching, and filling in


def _matches(side: Expression, expression: Expression, found: dict[str, Expression | Length]) -> bool:
    """Whether an expression is an instance of a side; adds to `found` what the names of the side stand for."""
    match side:
        case Metavariable(name):
            return found.setdefault(name, expression) == expression
        case Bounded(operand, time):
            # The operand first: it knows the names that max(t, t') is of.
            return (
                isinstance(expression, Restriction)
                and _matches(operand, expression.operand, found)
                and _binds(time, expression.length, found)
            )
        case _:
            return type(side) is type(expression) and all(
                _matches(below, operand, found) for below, operand in zip(side.operands, expression.operands, strict=True)
            )


def _binds(time: Time, length: Length, found: dict[str, Expression | Length]) -> bool:
    """Whether a time can be this length; a name that stands for nothing yet stands for the length."""
    for name in time.names:
        found.setdefault(name, length)
    return time.of(found) == length


def _filled(side: Expression, binding: Binding) -> Expression:
    """A side with expressions and lengths in place of its names."""
    match side:
        case Metavariable(name):
            value = binding.get(name)
            if not isinstance(value, Expression):
                raise InputError(f"{name} stands for an event expression, not for {value!r}", help=f"bind {name!r} to an Expression")
            return value
        case Bounded(operand, time):
            return Restriction(_filled(operand, binding), time.of(binding))
    return side.over(*(_filled(operand, binding) for operand in side.operands))


def _length(binding: Binding, name: str) -> Length:
    value = binding.get(name)
    if not isinstance(value, Length):
        raise InputError(f"{name} stands for a length, not for {value!r}", help=f"bind {name!r} to a Length")
    return value


def _names(side: Expression) -> frozenset[str]:
    found: set[str] = set()
    for node in side.walk():
        if isinstance(node, Metavariable):
            found.add(node.name)
        elif isinstance(node, Bounded):
            found.update(node.time.names)
    return frozenset(found)


def _of_one_event(binding: Binding) -> bool:
    """Times are natural numbers (Definition 3.1): no bound below 0 leaves a primitive as it is."""
    return isinstance(binding["A"], Primitive) and _length(binding, "t") >= INSTANT


_CONDITIONS: dict[str, Callable[[Binding], bool]] = {"A is primitive": _of_one_event}
"""What a condition asks of the binding."""


# ------------------------------------------------------------------------------------------------------------------------- the table

A, B, C = (Metavariable(name) for name in "ABC")
"""The metavariables of the laws."""

T, U = Time(("t",)), Time(("t'",))
"""The times of the laws: t and t'."""

LEAST, GREATEST = Time(("t", "t'"), "min"), Time(("t", "t'"), "max")
"""Of these two times."""

LAWS: tuple[Law, ...] = (
    Law(1, A | A, A, "Theorem 4.2"),
    Law(2, A | B, B | A, "Theorem 4.2"),
    Law(3, A + B, B + A, "Theorem 4.2"),
    Law(4, A | (B | C), (A | B) | C, "Theorem 4.2"),
    Law(5, A + (B + C), (A + B) + C, "Theorem 4.2"),
    Law(6, A >> (B >> C), (A >> B) >> C, "Theorem 4.2"),
    Law(7, (A | B) + C, (A + C) | (B + C), "Theorem 4.2"),
    Law(8, (A | B) >> C, (A >> C) | (B >> C), "Theorem 4.2"),
    Law(9, A >> (B | C), (A >> B) | (A >> C), "Theorem 4.2"),
    Law(10, A + (B | C), (A + B) | (A + C), "Corollary 4.1"),
    Law(11, (A - B) - C, A - (B | C), "Theorem 4.3"),
    Law(12, A - (B - B), A, "Theorem 4.3"),
    Law(13, (A | B) - C, (A - C) | (B - C), "Theorem 4.3"),
    Law(14, (A + B) - C, ((A - C) + B) - C, "Theorem 4.3"),
    Law(15, (A >> B) - C, ((A - C) >> B) - C, "Theorem 4.3"),
    Law(16, (A >> B) - C, (A >> (B - C)) - C, "Theorem 4.3"),
    Law(17, (A - B) - B, A - B, "Corollary 4.2"),
    Law(18, (A - B) - C, (A - C) - B, "Corollary 4.2"),
    Law(19, (A | B) - C, ((A - C) | B) - C, "Corollary 4.2"),
    Law(20, (A | B) - C, (A | (B - C)) - C, "Corollary 4.2"),
    Law(21, (A + B) - C, (A + (B - C)) - C, "Corollary 4.2"),
    Law(22, (A - B) - C, ((A - C) - B) - C, "Corollary 4.2"),
    Law(23, A, Bounded(A, T), "Theorem 4.4", "A is primitive"),
    Law(24, Bounded(Bounded(A, T), U), Bounded(A, LEAST), "Theorem 4.4"),
    Law(25, Bounded(A | B, T), Bounded(A, T) | Bounded(B, T), "Theorem 4.4"),
    Law(26, Bounded(A + B, T), Bounded(Bounded(A, T) + B, T), "Theorem 4.4"),
    Law(27, Bounded(A - B, T), Bounded(A, T) - B, "Theorem 4.4"),
    Law(28, Bounded(A - B, T), Bounded(A - Bounded(B, T), T), "Theorem 4.4"),
    Law(29, Bounded(A >> B, T), Bounded(Bounded(A, T) >> B, T), "Theorem 4.4"),
    Law(30, Bounded(A >> B, T), Bounded(A >> Bounded(B, T), T), "Theorem 4.4"),
    Law(31, Bounded(Bounded(A, T), U), Bounded(Bounded(A, U), T), "Corollary 4.3"),
    Law(32, Bounded(A | B, T), Bounded(Bounded(A, T) | B, T), "Corollary 4.3"),
    Law(33, Bounded(A | B, T), Bounded(A | Bounded(B, T), T), "Corollary 4.3"),
    Law(34, Bounded(A, T) | Bounded(B, U), Bounded(Bounded(A, T) | Bounded(B, U), GREATEST), "Corollary 4.3"),
    Law(35, Bounded(A + B, T), Bounded(A + Bounded(B, T), T), "Corollary 4.3"),
    Law(36, Bounded(A - B, T), Bounded(A, T) - Bounded(B, T), "Corollary 4.3"),
)
"""The laws by number, as in the paper: law n is LAWS[n - 1]."""
