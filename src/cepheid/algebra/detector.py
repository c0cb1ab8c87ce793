"""The detector of an event expression: at each event at most one instance, of greatest start, from state whose size is known before.

Source: event-algebra, Figure 2, with Figure 4 for sequences, in a ring that binary search reads (section 5.3). Theorem 5.1: what it gives is a
valid restriction (Definition 3.12) of the instances that the expression has. Only Python is needed: events are whatever `push` is given.

The paper runs its algorithm once for each instant. Here an instant is a position: the operators compare positions, and restrictions bound times,
or positions, or both (`Length`). Times never descend, so an instance that ended more than `length` before an event ended before every
instance of the right side that ends at this event or later has started: Figure 4 holds for both.
"""

from __future__ import annotations

from bisect import bisect_left
from operator import itemgetter
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar, cast

from cepheid.algebra.expression import Conjunction, Disjunction, Negation, Primitive, Restriction, Sequence
from cepheid.algebra.transform import transform
from cepheid.errors import InputError
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cepheid.algebra.expression import Expression, Length

E = TypeVar("E")


@record
class Detected(Generic[E]):
    """An instance of an expression: its first and last position, their times, and its events.

    marks: (position, event, variable) of each primitive instance that it is made of, by position, then by variable, each once.
    """

    start: int
    end: int
    start_time: int
    end_time: int
    marks: tuple[tuple[int, E, str], ...]

    @property
    def variables(self) -> dict[str, tuple[E, ...]]:
        """The events of each variable, by position."""
        return {
            name: tuple(event for _, event, variable in self.marks if variable == name) for name in sorted({mark[2] for mark in self.marks})
        }


class Found(NamedTuple):
    """An instance while it is made. of: the two that it is the union of, or the event and the variables that it is put in."""

    start: int
    start_time: int
    end: int
    end_time: int
    of: tuple[object, object]


def _union(one: Found, other: Found) -> Found:
    first = one if one.start <= other.start else other
    last = one if one.end >= other.end else other
    return Found(first.start, first.start_time, last.end, last.end_time, (one, other))


class Detector(Generic[E]):
    """Detects an expression over one stream.

    expression: as written; it is transformed first. `push` reads one event. O(m log n) per event, m sub-expressions, n instances in the longest ring
    (event-algebra, section 5.3).
    """

    def __init__(self, expression: Expression) -> None:
        self.expression = transform(expression)
        self.position = 0
        self.time: int | None = None
        nodes: list[_Node] = []
        pending: list[int] = []
        for expression in self.expression.walk():  # noqa: PLR1704
            below = [pending.pop() for _ in expression.operands][::-1]
            pending.append(len(nodes))
            nodes.append(_NODES[type(expression)](expression, *below))
        self._nodes = nodes
        self._current: list[Found | None] = [None] * len(nodes)

    @property
    def rings(self) -> list[int]:
        """How many instances each sequence holds now, bottom-up."""
        return [len(node.ring) - node.head for node in self._nodes if isinstance(node, _Sequence)]

    def push(self, event: E, time: int, occurring: Iterable[str]) -> Detected[E] | None:
        """Read the next event; the instance that ends at it, None if there is none.

        time: in the steps of the expression's bounds. occurring: the names of the primitives that occur at it. Raises InputError where time descends;
        then nothing has been read.
        """
        if self.time is not None and time < self.time:
            raise InputError(f"time descends from {self.time} to {time} at position {self.position}", help="sort the events by time")
        now = Now(self.position, time, event, frozenset(occurring))
        self.time = time
        self.position += 1
        current = self._current
        for number, node in enumerate(self._nodes):
            current[number] = node.step(current, now)
        found = current[-1]
        return None if found is None else _detected(found)


class Now(NamedTuple):
    """The event being read."""

    position: int
    time: int
    event: object
    occurring: frozenset[str]


# ------------------------------------------------------------------------------------------------------------ the operators (Figure 2)


class _Node:
    """One sub-expression; `step` gives its instance that ends now, given those of the sub-expressions below."""

    __slots__ = ("left", "right")

    def __init__(self, _: Expression, left: int = -1, right: int = -1) -> None:
        self.left = left
        self.right = right

    def step(self, current: list[Found | None], now: Now) -> Found | None:
        raise NotImplementedError


class _Primitive(_Node):
    __slots__ = ("name", "shown")

    def __init__(self, expression: Expression) -> None:
        super().__init__(expression)
        assert isinstance(expression, Primitive)
        self.name = expression.name
        self.shown = expression.shown

    def step(self, current: list[Found | None], now: Now) -> Found | None:  # noqa: ARG002
        if self.name not in now.occurring:
            return None
        return Found(now.position, now.time, now.position, now.time, (now.event, self.shown))


class _Disjunction(_Node):
    __slots__ = ()

    def step(self, current: list[Found | None], now: Now) -> Found | None:  # noqa: ARG002
        left, right = current[self.left], current[self.right]
        if left is None or right is None:
            return left or right
        return right if left.start <= right.start else left


class _Conjunction(_Node):
    """latest: of the left and of the right, the instance of greatest start so far."""

    __slots__ = ("latest_left", "latest_right")

    def __init__(self, expression: Expression, left: int, right: int) -> None:
        super().__init__(expression, left, right)
        self.latest_left: Found | None = None
        self.latest_right: Found | None = None

    def step(self, current: list[Found | None], now: Now) -> Found | None:  # noqa: ARG002
        left, right = current[self.left], current[self.right]
        if left is not None and (self.latest_left is None or self.latest_left.start < left.start):
            self.latest_left = left
        if right is not None and (self.latest_right is None or self.latest_right.start < right.start):
            self.latest_right = right
        if self.latest_left is None or self.latest_right is None or (left is None and right is None):
            return None
        if right is None or (left is not None and right.start <= left.start):
            return _union(left, self.latest_right)  # type: ignore[arg-type]
        return _union(self.latest_left, right)


class _Negation(_Node):
    """latest: the greatest start of an instance of the right so far."""

    __slots__ = ("latest",)

    def __init__(self, expression: Expression, left: int, right: int) -> None:
        super().__init__(expression, left, right)
        self.latest = -1

    def step(self, current: list[Found | None], now: Now) -> Found | None:  # noqa: ARG002
        left, right = current[self.left], current[self.right]
        if right is not None and self.latest < right.start:
            self.latest = right.start
        return left if left is not None and self.latest < left.start else None


class _Restriction(_Node):
    __slots__ = ("length",)

    def __init__(self, expression: Expression, operand: int) -> None:
        super().__init__(expression, operand)
        assert isinstance(expression, Restriction)
        self.length = expression.length

    def step(self, current: list[Found | None], now: Now) -> Found | None:  # noqa: ARG002
        found = current[self.left]
        if found is None:
            return None
        time, events = self.length
        if (time is not None and found.end_time - found.start_time > time) or (events is not None and found.end - found.start > events):
            return None
        return found


class _Sequence(_Node):
    """ring[head:]: instances of the left that no other one both starts after and ends before; so starts and ends ascend.

    settled: the last one that ended so long ago that every instance of the right that is still to end began after it. latest: the greatest start.
    """

    __slots__ = ("head", "latest", "length", "ring", "settled")

    def __init__(self, expression: Expression, left: int, right: int) -> None:
        super().__init__(expression, left, right)
        assert isinstance(expression, Sequence)
        self.length: Length = expression.length
        self.ring: list[Found | None] = []
        self.head = 0
        self.settled: Found | None = None
        self.latest = -1

    def step(self, current: list[Found | None], now: Now) -> Found | None:
        ring, head = self.ring, self.head
        time, events = self.length
        while (oldest := ring[head] if head < len(ring) else None) is not None and (
            (time is not None and now.time - oldest.end_time > time) or (events is not None and now.position - oldest.end > events)
        ):
            self.settled, ring[head] = ring[head], None
            head += 1
        if head > _GARBAGE and 2 * head > len(ring):
            del ring[:head]
            head = 0
        self.head = head
        left, right = current[self.left], current[self.right]
        found = None
        if right is not None:
            before = bisect_left(ring, right.start, head, key=_END)
            best = ring[before - 1] if before > head else self.settled
            found = None if best is None else _union(best, right)
        if left is not None and self.latest < left.start:
            ring.append(left)
            self.latest = left.start
        return found


_GARBAGE = 8
"""Places before `head` that may stay, whatever lies behind."""

_END = cast("Callable[[Found | None], int]", itemgetter(2))
"""Of what a ring holds from its head on, where there is no None."""

_NODES: dict[type[Expression], type[_Node]] = {
    Primitive: _Primitive,
    Disjunction: _Disjunction,
    Conjunction: _Conjunction,
    Negation: _Negation,
    Restriction: _Restriction,
    Sequence: _Sequence,
}


def _detected(found: Found) -> Detected[E]:
    marks: dict[tuple[int, str], object] = {}
    pending: list[object] = [found]
    while pending:
        part = pending.pop()
        assert isinstance(part, Found)
        one, other = part.of
        if isinstance(other, Found):
            pending += (one, other)
        else:
            marks |= {(part.start, variable): one for variable in other}  # type: ignore[attr-defined]
    ordered = tuple((position, event, variable) for (position, variable), event in sorted(marks.items(), key=itemgetter(0)))
    return Detected(found.start, found.end, found.start_time, found.end_time, ordered)  # type: ignore[arg-type]
