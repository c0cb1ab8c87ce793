"""What the generators of code share: the sub-expressions of an expression in steps, with all that is known of them before events come.

Comes in: an expression, and how often events come at most. Goes out: `Unrolled`, from which `generate_python` and `generate_c` write the
algorithm of Figure 2 (event-algebra) as Figure 3 does: the loop over sub-expressions unrolled, its conditionals resolved, one variable for each
sub-expression. Beyond the paper, what an expression alone decides is decided here:

- Equal sub-expressions are one step, state and all: from the same instances below they make the same state, at every event; their disjunction is the
  step itself.
- A sequence whose right side is one event needs no ring, only the instance of its left side of greatest start.
- The events of what can only negate something are not held: where it starts is enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cepheid.algebra.expression import Conjunction, Disjunction, Negation, Primitive, Restriction, Sequence
from cepheid.algebra.memory import capacity, memory
from cepheid.records import record

if TYPE_CHECKING:
    from cepheid.algebra.expression import Expression
    from cepheid.algebra.memory import Memory, Rate


@record
class Step:
    """One sub-expression; in the code, `a` with its number is its instance that ends at the event being read ("a_i" in the paper).

    below: the numbers of its operands. capacity: how many instances the ring of a sequence holds at most; None: nothing is known.
    instant: whether each of its instances is one event. shown: whether the events of its instances can be in a match.
    """

    number: int
    expression: Expression
    below: tuple[int, ...]
    capacity: int | None
    instant: bool
    shown: bool

    @property
    def left(self) -> int:
        """The number of the first operand."""
        return self.below[0]

    @property
    def right(self) -> int:
        """The number of the second operand."""
        return self.below[1]

    @property
    def single(self) -> bool:
        """Whether it is a sequence whose right side is one event: all that its ring could hold ended before."""
        return isinstance(self.expression, Sequence) and self.expression.length.events is not None and self.expression.length.events <= 0

    @property
    def promised(self) -> bool:
        """Whether it is a sequence that has places enough only as long as events come no more often than promised."""
        return isinstance(self.expression, Sequence) and self.capacity != capacity(self.expression.length, None)

    @property
    def text(self) -> str:
        """What it is, with its operands by number; any text where it is a primitive: make it safe."""
        below = [f"a{number}" for number in self.below]
        match self.expression:
            case Primitive(name=name):
                return name
            case Restriction(length=length):
                return f"{below[0]} WITHIN {length}"
            case _:
                return f" {_WORDS[type(self.expression)]} ".join(below)


_WORDS: dict[type[Expression], str] = {Disjunction: "OR", Conjunction: "ALL", Negation: "UNLESS", Sequence: ";"}


@record
class Unrolled:
    """An expression as written, what its detector holds at most, the rate that this relies on, and its steps, bottom-up."""

    expression: Expression
    memory: Memory
    rate: Rate | None
    steps: tuple[Step, ...]

    @property
    def primitives(self) -> list[str]:
        """The names of its primitives, each once, sorted."""
        return sorted({step.expression.name for step in self.steps if isinstance(step.expression, Primitive)})

    @property
    def variables(self) -> list[str]:
        """The variables that a match can have, each once, sorted."""
        shown = [step.expression.shown for step in self.steps if isinstance(step.expression, Primitive) and step.shown]
        return sorted(frozenset().union(*shown))

    @property
    def promise(self) -> str:
        """The rate in words; empty without one."""
        if self.rate is None:
            return ""
        return f"at most {self.rate.events} events in any {self.rate.time} steps of time that follow each other"


def unrolled(expression: Expression, rate: Rate | None) -> Unrolled:
    """The steps of an expression, transformed first. Linear in the expression."""
    bound = memory(expression, rate=rate)
    held = iter(bound.sequences)
    numbers: dict[object, int] = {}
    found: list[tuple[Expression, tuple[int, ...], int | None]] = []
    instant: list[bool] = []
    pending: list[int] = []
    for node in bound.expression.walk():
        below = tuple(pending.pop() for _ in node.operands)[::-1]
        capacity = next(held).instances if isinstance(node, Sequence) else None
        if isinstance(node, Disjunction) and below[0] == below[1]:
            pending.append(below[0])
            continue
        key = _key(node, below)
        if key not in numbers:
            numbers[key] = len(found)
            found.append((node, below, capacity))
            instant.append(_instant(node, [instant[number] for number in below]))
        pending.append(numbers[key])
    shown = _shown([(node, below) for node, below, _ in found])
    steps = [Step(number, node, below, capacity, instant[number], number in shown) for number, (node, below, capacity) in enumerate(found)]
    return Unrolled(expression, bound, rate, tuple(steps))


def _key(node: Expression, below: tuple[int, ...]) -> object:
    """What is the same for sub-expressions that have the same instances in the same state."""
    if isinstance(node, Primitive):
        return node.name, node.shown
    return type(node), below, node.length if isinstance(node, Restriction | Sequence) else None


def _instant(node: Expression, below: list[bool]) -> bool:
    match node:
        case Primitive():
            return True
        case Disjunction():
            return all(below)
        case Negation():
            return below[0]
        case Restriction(length=length):
            return below[0] or (length.events is not None and length.events <= 0)
        case _:
            return False


def _shown(steps: list[tuple[Expression, tuple[int, ...]]]) -> set[int]:
    """The steps whose events can be in an instance of the last one: all but those that are only on the right of a negation."""
    shown = {len(steps) - 1}
    for number in reversed(range(len(steps))):
        if number in shown:
            node, below = steps[number]
            shown.update(below[:1] if isinstance(node, Negation) else below)
    return shown
