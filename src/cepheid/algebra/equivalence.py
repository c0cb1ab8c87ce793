"""Whether two event expressions have the same instances: exhaustively, on all small streams.

Comes in: two expressions. Goes out: a `Counterexample`, a shortest stream on which they differ; or None. Nothing is proved of longer streams.

All streams are searched in which something occurs at no more than so many instants. Two things that could be anything are reduced to finitely many
cases without a loss:

- Times, and how many instants with nothing lie between two. An expression sees no more of them than which of its bounds the distance of two instants
  exceeds. For each way in which it can be (`_Scale`) the search takes one stream, that with the least times and positions: a system of difference
  constraints with integer bounds has integer solutions, and the longest paths of its graph are the least of them.
- Prefixes. The instances that end at an instant depend on nothing behind it, so streams are grown instant by instant, and only instances that end at
  the new one are made: those of each sub-expression once for all streams that begin alike, and once for both expressions.
"""

from __future__ import annotations

from itertools import chain, combinations_with_replacement, product
from typing import TYPE_CHECKING, TypeAlias

from cepheid.algebra.expression import Conjunction, Disjunction, Negation, Primitive, Restriction, Sequence
from cepheid.algebra.meaning import Instance, Instant, instances
from cepheid.errors import InputError, LimitError
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cepheid.algebra.expression import Expression

MAX_STREAMS = 1_000_000
"""Streams that one call may try: some 200 000 of them a second."""

MAX_INSTANTS = 20
"""Instants of a stream at which something may occur."""

MAX_POSITIONS = 100_000
"""Instants that a counterexample may have, with those at which nothing occurs."""


@record
class Counterexample:
    """A stream on which two expressions differ, and the instances that only one of them has there: `instances` gives these and no others."""

    stream: tuple[Instant, ...]
    only_left: frozenset[Instance]
    only_right: frozenset[Instance]

    def __str__(self) -> str:
        lines, quiet = ["stream:"], 0
        for position, instant in enumerate(self.stream):
            if not instant.occurring:
                quiet += 1
                continue
            lines += [f"  ({quiet} where nothing occurs)"] if quiet else []
            lines.append(f"  {position}: {' '.join(sorted(instant.occurring))} at time {instant.time}")
            quiet = 0
        for side, found in (("left", self.only_left), ("right", self.only_right)):
            ordered = sorted(found, key=lambda instance: (instance.end, instance.start, instance.in_order))
            lines += [f"only {side}:", *(f"  {instance}" for instance in ordered)] if found else []
        return "\n".join(lines)


def differ(left: Expression, right: Expression, *, instants: int = 4, max_streams: int = MAX_STREAMS) -> Counterexample | None:
    """A shortest stream on which two expressions have different instances, None where there is none among the small ones.

    instants: at so many of a stream something occurs, at most; all times, and any number of other instants between, are covered. A Counterexample
    proves that the expressions are not equivalent (event-algebra, Definition 4.1). None proves that they have the same instances on every stream of
    that kind, and on every other stream the same ones among those that span no more than so many instants with something; of wider ones it says
    nothing. Of n sequences in a row the smallest instance has n + 1 instants already, and one that a negation leaves out may have more.

    The cost is (2 ** primitives - 1) ** instants, times the ways in which the distances can exceed the bounds: with one bound 1, 2, 5, 14, 42 for
    1 to 5 instants. Raises LimitError above `max_streams`, `MAX_INSTANTS`, and `MAX_POSITIONS` for one stream, before the search; InputError for
    less than one instant.
    """
    if instants < 1:
        raise InputError(f"instants={instants} leaves no stream to try", help="give at least 1")
    search = _Search(left, right)
    search.plan(instants, max_streams)
    for size in range(1, instants + 1):
        found = search.difference(size)
        if found is not None:
            one, other = instances(left, found), instances(right, found)
            assert one != other
            return Counterexample(found, one - other, other - one)
    return None


def equivalent(left: Expression, right: Expression, *, instants: int = 4, max_streams: int = MAX_STREAMS) -> bool:
    """Whether `differ` finds no difference. False is proved, True is evidence: read there what it covers, what it takes and raises."""
    return differ(left, right, instants=instants, max_streams=max_streams) is None


# ------------------------------------------------------------------------------------------------ how the distances can exceed the bounds

Row: TypeAlias = tuple[int, ...]
"""Of one instant: how many bounds its distance from each instant up to it exceeds."""


@record
class _Scale:
    """Times, or positions. bounds: all that the expressions have, ascending. step: how far apart two instants are at least."""

    bounds: tuple[int, ...]
    step: int

    def allowed(self, bound: int | None) -> int:
        """How many bounds a distance may exceed that does not exceed this one; -1: no distance is so short."""
        return len(self.bounds) if bound is None else self.bounds.index(bound) if bound >= 0 else -1

    def rows(self, before: tuple[Row, ...]) -> list[Row]:
        """The rows that one more instant can have behind those of the instants before it."""
        exceeded = combinations_with_replacement(range(len(self.bounds), -1, -1), len(before))
        return [(*row, 0) for row in exceeded if self.least((*before, (*row, 0))) is not None]

    def least(self, rows: tuple[Row, ...]) -> list[int] | None:
        """The least values with these distances, from 0 on; None: no values have them. Longest paths in the graph of constraints, O(n ** 3)."""
        values = [0] * len(rows)
        for _ in rows:
            before = values.copy()
            for j, row in enumerate(rows):
                for i in range(j):
                    low = self.bounds[row[i] - 1] + 1 if row[i] else 0
                    values[j] = max(values[j], values[i] + low, values[j - 1] + self.step)
                    if row[i] < len(self.bounds):
                        values[i] = max(values[i], values[j] - self.bounds[row[i]])
            if values == before:
                return values
        return None


# --------------------------------------------------------------------------------------------------------------------------- the search

Found: TypeAlias = tuple[int, int]
"""An instance that ends at a known instant: the instant it starts at, and its primitive instances, a bit for each."""


@record
class _Step:
    """A sub-expression. below: the numbers of its operands. bit: of a primitive. allowed: of a restriction, on each scale (`_Scale.allowed`)."""

    operator: type[Expression]
    below: tuple[int, ...]
    bit: int = 0
    allowed: tuple[int, int] = (0, 0)


class _Search:
    """Streams as they grow; of each sub-expression, the instances so far.

    held: by end. ends: how many of them end before each instant. latest: the greatest start of those that end before each instant.
    """

    def __init__(self, left: Expression, right: Expression) -> None:
        nodes = list(chain(left.walk(), right.walk()))
        lengths = [node.length for node in nodes if isinstance(node, Restriction)]
        self.names = sorted({node.name for node in nodes if isinstance(node, Primitive)})
        self.sets = range(1, 2 ** len(self.names))
        self.times = _Scale(_ascending(length.time for length in lengths), 0)
        self.places = _Scale(_ascending(length.events for length in lengths), 1)
        self.steps: list[_Step] = []
        known: dict[_Step, int] = {}
        self.left, self.right = (self._add(side, known) for side in (left, right))
        self.rows: tuple[dict[tuple[Row, ...], list[Row]], ...] = ({}, {})
        self.held: list[list[Found]] = [[] for _ in self.steps]
        self.ends = [[0] for _ in self.steps]
        self.latest = [[-1] for _ in self.steps]

    def _add(self, side: Expression, known: dict[_Step, int]) -> int:
        """The number of an expression, whose sub-expressions become steps, each once."""
        pending: list[int] = []
        for node in side.walk():
            below = tuple(pending.pop() for _ in node.operands)[::-1]
            match node:
                case Primitive(name=name):
                    step = _Step(Primitive, below, bit=1 << self.names.index(name))
                case Restriction(length=length):
                    step = _Step(Restriction, below, allowed=(self.times.allowed(length.time), self.places.allowed(length.events)))
                case Disjunction() | Conjunction() | Negation() | Sequence():
                    step = _Step(type(node), below)
                case _:
                    raise TypeError(node)
            if step not in known:
                known[step] = len(self.steps)
                self.steps.append(step)
            pending.append(known[step])
        return pending.pop()

    def plan(self, instants: int, max_streams: int) -> None:
        """Find all rows, or raise LimitError where there are too many streams, or too long ones."""
        if instants > MAX_INSTANTS:
            raise LimitError(f"instants={instants} is above the limit of {MAX_INSTANTS} (MAX_INSTANTS)", help="lower instants=")
        longest = (instants - 1) * (max(self.places.bounds, default=0) + 1) + 1
        if longest > MAX_POSITIONS:
            raise LimitError(
                f"the bounds in events need streams of {longest} instants, and the limit is {MAX_POSITIONS} (MAX_POSITIONS)",
                help="lower these bounds in both expressions: only the order of their sums and differences matters",
            )
        grown: list[list[tuple[Row, ...]]] = [[()], [()]]
        streams = 0
        for size in range(1, instants + 1):
            for scale, rows, number in zip((self.times, self.places), self.rows, (0, 1), strict=True):
                longer = []
                for before in grown[number]:
                    rows[before] = scale.rows(before)
                    longer += [(*before, row) for row in rows[before]]
                    self._check(streams + len(longer) * len(grown[1 - number]) * len(self.sets) ** size, instants, max_streams)
                grown[number] = longer
            streams += len(grown[0]) * len(grown[1]) * len(self.sets) ** size

    def _check(self, streams: int, instants: int, max_streams: int) -> None:
        if streams > max_streams:
            bounds = len(self.times.bounds) + len(self.places.bounds)
            raise LimitError(
                f"there are at least {streams} streams to try (primitives: {len(self.names)}, bounds: {bounds}), "
                f"and the limit is {max_streams} (max_streams)",
                help=(
                    f"lower instants= (it is {instants}), or raise max_streams=",
                    "fewer primitives and fewer different bounds make fewer streams",
                ),
            )

    def difference(self, size: int) -> tuple[Instant, ...] | None:
        """A stream with something at so many instants, whose instances that end at the last one differ; none shorter may have any that do."""
        found = self._behind((), (), (), size)
        if found is None:
            return None
        occurring, *rows = found
        times, places = (scale.least(some) for scale, some in zip((self.times, self.places), rows, strict=True))
        assert times is not None
        assert places is not None
        stream: list[Instant] = []
        for some, time, place in zip(occurring, times, places, strict=True):
            stream += [Instant(stream[-1].time, frozenset()) for _ in range(place - len(stream))]
            stream.append(Instant(time, frozenset(name for number, name in enumerate(self.names) if some >> number & 1)))
        return tuple(stream)

    def _behind(
        self, occurring: tuple[int, ...], times: tuple[Row, ...], places: tuple[Row, ...], size: int
    ) -> tuple[tuple[int, ...], tuple[Row, ...], tuple[Row, ...]] | None:
        """Try all that can come behind the instants so far."""
        for time, place in product(self.rows[0][times], self.rows[1][places]):
            for some in self.sets:
                now = self._now(some, time, place)
                longer = (*occurring, some), (*times, time), (*places, place)
                if len(longer[0]) == size:
                    if now[self.left] != now[self.right]:
                        return longer
                    continue
                self._keep(now)
                found = self._behind(*longer, size)
                self._forget()
                if found is not None:
                    return found
        return None

    def _keep(self, now: list[set[Found]]) -> None:
        for held, ends, latest, found in zip(self.held, self.ends, self.latest, now, strict=True):
            held.extend(found)
            ends.append(len(held))
            latest.append(max(latest[-1], max((start for start, _ in found), default=-1)))

    def _forget(self) -> None:
        for held, ends, latest in zip(self.held, self.ends, self.latest, strict=True):
            ends.pop()
            latest.pop()
            del held[ends[-1] :]

    def _now(self, some: int, time: Row, place: Row) -> list[set[Found]]:
        """Of each step, the instances that end at a new instant, where these primitives occur (Definition 3.10, instant by instant)."""
        last = len(time) - 1
        shift = last * len(self.names)
        now: list[set[Found]] = []
        for step in self.steps:
            if step.operator is Primitive:
                now.append({(last, step.bit << shift)} if some & step.bit else set())
                continue
            one, other = step.below[0], step.below[-1]
            left, right = now[one], now[other]
            if step.operator is Disjunction:
                now.append(left | right)
            elif step.operator is Conjunction:
                whole = chain(product(left, chain(self.held[other], right)), product(self.held[one], right))
                now.append({(min(s, t), a | b) for (s, a), (t, b) in whole})
            elif step.operator is Negation:
                latest = max(self.latest[other][-1], max((start for start, _ in right), default=-1))
                now.append({found for found in left if found[0] > latest})
            elif step.operator is Sequence:
                held, ends = self.held[one], self.ends[one]
                now.append({(s, a | b) for t, b in right for s, a in held[: ends[t]]})
            else:
                far, wide = step.allowed
                now.append({found for found in left if time[found[0]] <= far and place[found[0]] <= wide})
        return now


def _ascending(bounds: Iterable[int | None]) -> tuple[int, ...]:
    """The bounds that a distance can exceed or not."""
    return tuple(sorted({bound for bound in bounds if bound is not None and bound >= 0}))
