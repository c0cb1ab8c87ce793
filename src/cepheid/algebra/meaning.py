"""What an event expression means: the declarative semantics (event-algebra, section 3) as code, which everything else is judged by.

Comes in: an expression, and a stream. Goes out: the set of its instances, by Definitions 3.10 and 3.11 as they are printed; and the restriction
policy, Definition 3.12. Nothing is clever here, and the cost is exponential: an expression of m conjunctions or sequences can have as many
instances as there are choices of m + 1 positions. For small streams: the transform, the detector, the laws and `differ` are held against it.

An interpretation (Definition 3.5) is a stream of instants here, each with a time and the primitives that occur at it. An instant is a position:
the operators compare positions, and only restrictions read times. Values of events are left out: the algebra never looks at them.
"""

from __future__ import annotations

from collections import abc
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from cepheid.algebra.expression import Conjunction, Disjunction, Negation, Primitive, Restriction, Sequence
from cepheid.errors import InputError
from cepheid.records import record

if TYPE_CHECKING:
    from cepheid.algebra.expression import Expression, Length


@record
class Instant:
    """One event of a stream: its time, and the names of the primitives that occur at it, possibly none."""

    time: int
    occurring: frozenset[str]


Stream: TypeAlias = abc.Sequence[Instant]
"""Instants by position, times not descending. Name in paper: interpretation (Definition 3.5)."""


@record
class Instance:
    """An event instance (event-algebra, Definitions 3.7 and 3.8): the primitive instances that it is the union of, and where it lies.

    start, end: the first and the last position. start_time, end_time: their times in the stream. marks: (name of a primitive, position) of
    each primitive instance, at least one.
    """

    start: int
    end: int
    start_time: int
    end_time: int
    marks: frozenset[tuple[str, int]]

    @property
    def in_order(self) -> tuple[tuple[int, str], ...]:
        """(position, name) of its primitive instances, by position, then by name."""
        return tuple(sorted((position, name) for name, position in self.marks))

    def __str__(self) -> str:
        return f"[{self.start}, {self.end}] {' '.join(f'{name}@{position}' for position, name in self.in_order)}"


Instances: TypeAlias = frozenset[Instance]
"""Name in paper: event stream (Definition 3.9), S, T and U."""


def instances(expression: Expression, stream: Stream) -> Instances:
    """All instances of an expression on a stream (event-algebra, Definition 3.11; name in paper: [[A]]).

    A primitive is told from others by its name alone: in what variables a match would put an event is not part of its instances. Raises
    InputError where time descends. Exponential in the number of conjunctions and sequences; equal sub-expressions are computed once.

        >>> from cepheid.algebra.expression import Primitive
        >>> A, B = map(Primitive, "AB")
        >>> stream = [Instant(time, frozenset(names)) for time, names in enumerate(["A", "B", "AB"])]
        >>> for instance in sorted(instances(A >> B, stream), key=lambda instance: instance.end):
        ...     print(instance)
        [0, 1] A@0 B@1
        [0, 2] A@0 B@2
    """
    for position, (one, other) in enumerate(pairwise(stream), 1):
        if other.time < one.time:
            raise InputError(f"time descends from {one.time} to {other.time} at position {position}", help="sort the instants by time")
    known: dict[Expression, Instances] = {}
    for node in expression.walk():
        if node not in known:
            known[node] = _meaning(node, [known[operand] for operand in node.operands], stream)
    return known[expression]


def _meaning(node: Expression, below: list[Instances], stream: Stream) -> Instances:
    match node:
        case Primitive(name=name):
            return frozenset(
                Instance(position, position, instant.time, instant.time, frozenset({(name, position)}))
                for position, instant in enumerate(stream)
                if name in instant.occurring
            )
        case Disjunction():
            return dis(*below)
        case Conjunction():
            return con(*below)
        case Negation():
            return neg(*below)
        case Sequence():
            return seq(*below)
        case Restriction(length=length):
            return tim(below[0], length)
    raise TypeError(node)


# --------------------------------------------------------------------------------------------------- the operators (Definition 3.10)


def dis(left: Instances, right: Instances) -> Instances:
    """Those of either (event-algebra, Definition 3.10, dis)."""
    return left | right


def con(left: Instances, right: Instances) -> Instances:
    """Each of one side united with each of the other (event-algebra, Definition 3.10, con). O(left * right) unions."""
    return frozenset(_union(s, t) for s in left for t in right)


def neg(left: Instances, right: Instances) -> Instances:
    """Those of left during which there is none of right (event-algebra, Definition 3.10, neg). O(left * right)."""
    return frozenset(s for s in left if not any(s.start <= t.start and t.end <= s.end for t in right))


def seq(left: Instances, right: Instances) -> Instances:
    """Each of left united with each of right that starts after its end (event-algebra, Definition 3.10, seq). O(left * right) unions."""
    return frozenset(_union(s, t) for s in left for t in right if s.end < t.start)


def tim(whole: Instances, length: Length) -> Instances:
    """Those that are not longer than `length`, in time and in positions (event-algebra, Definition 3.10, tim; positions are ours)."""
    time, events = length
    return frozenset(
        s for s in whole if (time is None or s.end_time - s.start_time <= time) and (events is None or s.end - s.start <= events)
    )


def _union(one: Instance, other: Instance) -> Instance:
    return Instance(
        min(one.start, other.start),
        max(one.end, other.end),
        min(one.start_time, other.start_time),
        max(one.end_time, other.end_time),
        one.marks | other.marks,
    )


# -------------------------------------------------------------------------------------------------------------- the restriction policy


def is_restriction(whole: Instances, part: Instances) -> bool:
    """Whether `part` is a valid restriction of `whole`: of those with one end, exactly one of greatest start.

    Source: event-algebra, Definition 3.12; name in paper: rem(S, S'). O(whole * part).
    """
    within = part <= whole
    latest = all(any(s.start <= kept.start and s.end == kept.end for kept in part) for s in whole)
    single = all(one == other for one in part for other in part if one.end == other.end)
    return within and latest and single


def restriction(whole: Instances) -> Instances:
    """One valid restriction (event-algebra, Definition 3.12), always the same one.

    Of those with one end that of greatest start; of these the last by support, as the query language's LAST compares: the greatest position
    that only one of two has decides; of equal supports that of the greatest marks. Sorting, O(n log n).
    """
    kept = {instance.end: instance for instance in sorted(whole, key=_rank)}
    return frozenset(kept.values())


def _rank(instance: Instance) -> tuple[object, ...]:
    descending = instance.in_order[::-1]
    support = sorted({position for position, _ in descending}, reverse=True)
    return instance.start, support, descending


def spans(whole: Instances) -> frozenset[tuple[int, int]]:
    """(start, end) of each. Sets with equal spans are alike to a user (event-algebra, Definition 4.3)."""
    return frozenset((instance.start, instance.end) for instance in whole)
