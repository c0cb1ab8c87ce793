"""What the detector of an expression holds at most: known before it runs, with what is to blame where there is no bound.

Comes in: an expression, and how often events come at most. Goes out: a `Memory`. All operators but the sequence hold at most two instances
(event-algebra, section 5.2). A sequence holds those instances of its left side that ended within the greatest length of its right side, and one:
bounded where the transform finds that length, in events, or in time and there is a greatest rate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cepheid.algebra.expression import Conjunction, Disjunction, Negation, Primitive, Restriction, Sequence
from cepheid.algebra.transform import transform
from cepheid.errors import InputError, counted
from cepheid.records import record

if TYPE_CHECKING:
    from cepheid.algebra.expression import Expression, Length


@record
class Rate:
    """At most so many events in any `time` steps of time that follow each other. One event per tick: Rate(1). Raises InputError below 1."""

    events: int
    time: int = 1

    def __post_init__(self) -> None:
        if self.events < 1 or self.time < 1:
            raise InputError(f"{self} promises nothing that comes", help="give at least one event in at least one step of time")

    def most(self, length: int) -> int:
        """How many events there may be whose times are at most `length` apart; none below 0."""
        return max(0, -(-(length + 1) // self.time)) * self.events


@record
class Held:
    """What one sequence holds. instances: in its ring, at most; None: for ever more. marks: of each of them, at most."""

    sequence: Sequence
    instances: int | None
    marks: int

    @property
    def length(self) -> Length:
        """What instances of its right side do not exceed."""
        return self.sequence.length


MARK_BYTES = 8
"""A primitive instance, as the kernel has it: its position, and which primitive it is, in one word."""

INSTANCE_BYTES = 40
"""Of an instance beside its marks: where it starts and ends, and when; how many marks it has."""


@record
class Memory:
    """The state of one detector, at most.

    expression: transformed. sequences: what each sequence holds, bottom-up. others: the marks of each other instance that may be held, at most:
    two of each conjunction, and one that each sequence holds beside its ring.
    """

    expression: Expression
    sequences: tuple[Held, ...]
    others: tuple[int, ...]

    @property
    def bounded(self) -> bool:
        """Whether there is a bound."""
        return not self.blame

    @property
    def blame(self) -> tuple[Sequence, ...]:
        """The sequences whose right sides may be of any length, or of any number of events."""
        return tuple(held.sequence for held in self.sequences if held.instances is None)

    @property
    def instances(self) -> int | None:
        """How many instances are held at most; None without a bound."""
        if not self.bounded:
            return None
        return len(self.others) + sum(held.instances or 0 for held in self.sequences)

    @property
    def bytes(self) -> int | None:
        """The bytes of these instances, as the kernel has them, of each partition; None without a bound.

        Beside them a partition has a header, and its rings have places by powers of two. A file of `generate_c` says itself what its state takes:
        there a mark has its event's value and time, and there is one for each variable that the event is put in.
        """
        if not self.bounded:
            return None
        rings = sum((held.instances or 0) * (INSTANCE_BYTES + held.marks * MARK_BYTES) for held in self.sequences)
        return rings + sum(INSTANCE_BYTES + marks * MARK_BYTES for marks in self.others)

    def __str__(self) -> str:
        if self.bounded:
            return f"bounded memory: at most {counted(self.instances or 0, 'instance')}, {self.bytes} bytes"
        return "no bound on the memory: " + "; ".join(_blamed(sequence) for sequence in self.blame)


def _blamed(sequence: Sequence) -> str:
    length = sequence.length
    if length.time is None:
        return f"in `{sequence}` nothing bounds how long `{sequence.right}` takes: bound it, or all around it, by WITHIN"
    within = f"in `{sequence}` any number of events may come within {length.time}, the longest that `{sequence.right}` takes"
    return f"{within}: bound it by WITHIN n EVENTS too, or say how often events come (rate=)"


def memory(expression: Expression, *, rate: Rate | None = None) -> Memory:
    """What the detector of an expression holds at most; rate: how often events come at most, None: unknown.

    >>> from cepheid.algebra import Primitive, Rate, memory
    >>> B, P, T = map(Primitive, "BPT")
    >>> print(memory((B >> B).within(time=2) - (P >> (P + T)), rate=Rate(1)))
    bounded memory: at most 8 instances, 384 bytes
    """
    expression = transform(expression)
    sequences: list[Held] = []
    others: list[int] = []
    marks: list[int] = []
    for node in expression.walk():
        below = [marks.pop() for _ in node.operands][::-1]
        match node:
            case Primitive():
                marks.append(1)
            case Disjunction():
                marks.append(max(below))
            case Conjunction():
                others += below
                marks.append(sum(below))
            case Sequence(length=length):
                sequences.append(Held(node, capacity(length, rate), below[0]))
                others.append(below[0])
                marks.append(sum(below))
            case Negation() | Restriction():
                marks.append(below[0])
    return Memory(expression, tuple(sequences), tuple(others))


def capacity(length: Length, rate: Rate | None) -> int | None:
    """How many instances of its left side a sequence holds at most, whose right side has this length; None: nothing bounds it.

    They end within the length, each at an event of its own. That of the last event is held even where nothing is so short: until the next one.
    """
    time, events = length
    bounds = [] if events is None else [events + 1]
    if time is not None and time < 0:
        bounds.append(0)
    elif time is not None and rate is not None:
        bounds.append(rate.most(time))
    return max(1, min(bounds)) if bounds else None
