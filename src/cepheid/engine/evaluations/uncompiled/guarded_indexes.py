"""The groups of one macro state in one partition, and the indexes that give the union of those in a region without looking at each.

Comes in: entries (values of the slots, a heap of partial matches). A region's question (`Question`) is taken apart into equalities, which are the key
of a hash, and one kind of index below:

| what is left                     | index                                                       | ask                       | insert              |
|----------------------------------|-------------------------------------------------------------|---------------------------|---------------------|
| nothing                          | ring, while keys rise; else a heap                          | O(1)                      | O(1); a meld        |
| the time since an event          | ring, while times and keys rise: the answer is a stretch;   | O(1) amortized            | O(1)                |
|                                  | while times rise, a queue (two stacks) per class of ages;   | O(1) melds amortized      | O(1) melds          |
|                                  | else, with one bound, sorted runs; else group by group      | O(log n) melds; O(groups) | O(log n) melds      |
| one comparison but `=`           | ring with a tree, while keys rise: stretch with a test;     | O(log n) integers         | O(1) amortized      |
|                                  | else sorted runs with the unions of their ends              | O(log n) melds            | O(log n) melds      |
| anything else                    | group by group                                              | O(groups)                 | O(1)                |

What the new values are made of is carried: below the hash there is one index for each tuple of carried values alive, but for the last row.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any

import numpy as np

from cepheid.automata.registers import Before, Compares, Elapsed, Gathered, Joined, reads
from cepheid.engine.evaluations.uncompiled.guarded_graph import PASSES, Node, Ring, Stretch, Tree, meld, united
from cepheid.logical.plan import Index, Time
from cepheid.logical.types import NEGATED
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cepheid.automata.regions import Literal, Macro, Region
    from cepheid.engine.evaluations.uncompiled.guarded_graph import Steps
    from cepheid.engine.evaluations.uncompiled.guarded_values import Evaluator, Value
    from cepheid.logical.plan import Expression, Interval

Array = np.ndarray[Any, Any]

SWEEP_FROM = 64
"""Entries of a macro state from which on those that are too old are swept, each time the entries have doubled."""

FOREVER = 1 << 80
"""After every time."""

ALL, AGE, ORDER, GROUPS = "all", "age", "order", "groups"
"""The kinds of indexes below the hash."""


@record
class Shape:
    """An index that several regions may share.

    equals: slots of the hash's key. carried: slots, all values of which are kept apart. kind: below the hash. slot: what it is about. ages: for AGE
    the intervals, and whether the time since the event lies in each.
    """

    equals: tuple[int, ...]
    carried: tuple[int, ...]
    kind: str
    slot: int = -1
    ages: tuple[tuple[Interval, bool], ...] = ()


class Question:
    """What a region asks of an index: its shape, the values of the event that go with it, and what is asked of each group.

    local: tests of the event alone. equal: values for the key of the hash. now: the value compared with the slot. operator, truth: of a comparison.
    gathered: slots that gathered values are made of; groups that differ there have cells of their own.
    """

    __slots__ = ("equal", "gathered", "literals", "local", "now", "operator", "region", "rest", "shape", "truth")

    def __init__(self, region: Region, *, plural: frozenset[int]) -> None:
        """plural: the slots that no index has an order for, see `Regions.plural`."""
        self.region = region
        self.literals = region.literals
        self.local = [literal for literal in region.literals if not reads(literal[0])]
        rest = [literal for literal in region.literals if reads(literal[0])]
        hashed: dict[int, Expression] = {}
        for literal in list(rest):
            match literal:
                case Compares(before=Before(register=slot), operator="=", now=now), True if slot not in plural and slot not in hashed:
                    hashed[slot] = now
                    rest.remove(literal)
        carried = tuple(sorted(frozenset().union(*map(reads, region.made)))) if region.made else ()
        self.gathered = sorted(frozenset().union(*(reads(term) for term in region.made if isinstance(term, Gathered | Joined))))
        equals = tuple(sorted(hashed))
        self.equal = [hashed[slot] for slot in equals]
        self.now: Expression | None = None
        self.operator, self.truth = "", True
        self.rest: list[Literal] = []
        ages = [literal for literal in rest if isinstance(literal[0], Elapsed) and isinstance(literal[0].before, Before)]
        match rest:
            case []:
                self.shape = Shape(equals, carried, ALL)
            # An index by age goes forward alone: what is compared must never fall, as the place where an event begins may.
            case [(Elapsed(before=Before(register=slot), now=Time() | Index() as now), _), *_] if len(ages) == len(rest) and all(
                isinstance(test, Elapsed) and test.before == Before(slot) and test.now == now and slot not in plural for test, _ in ages
            ):
                tests = tuple((test.interval, truth) for test, truth in ages if isinstance(test, Elapsed))
                self.now, self.shape = now, Shape(equals, carried, AGE, slot, tests)
            case [(Compares(before=Before(register=slot), operator=operator, now=now), truth)] if slot not in plural and (
                (operator if truth else NEGATED[operator]) in PASSES
            ):
                self.now, self.operator, self.truth = now, operator, truth
                self.shape = Shape(equals, carried, ORDER, slot)
            case _:
                self.rest, self.shape = rest, Shape(equals, (), GROUPS)


class Plain:
    """All entries: a ring while keys rise, then a heap. O(1); a meld."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._ring = Ring()
        self._heap: Node | None = None

    def insert(self, _: Value, node: Node, low: int) -> None:
        """Add an entry; low: the least start that counts."""
        self._steps.index += 1
        entries = self._ring.entries
        if self._heap is None and (not entries or node.key > entries[-1].key):
            entries.append(node)
            return
        if self._heap is None:
            self._heap = united((each for each in entries if each.key[0] >= low), self._steps)
            self._ring = Ring()
        self._heap = meld(self._heap, node, self._steps)

    def all(self) -> Node | None:
        """The union of all entries."""
        self._steps.index += 1
        if self._heap is not None or not self._ring.entries:
            return self._heap
        return Stretch(self._ring, len(self._ring.entries) - 1, 0).node

    def ask(self, question: Question, event: Evaluator, low: int) -> Node | None:
        """The same."""
        del question, event, low
        return self.all()


class Queue:
    """Two stacks: the newest entry is added, the oldest taken away, and the union of all is known. O(1) melds amortized."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._front: list[tuple[Value, Node, Node | None]] = []
        self._back: list[tuple[Value, Node]] = []
        self._union: Node | None = None

    def push(self, time: Value, node: Node) -> None:
        """Add the newest."""
        self._back.append((time, node))
        self._union = meld(self._union, node, self._steps)

    def oldest(self) -> Value | None:
        """The time of the oldest."""
        if not self._front and self._back:
            union: Node | None = None
            while self._back:
                time, node = self._back.pop()
                union = meld(union, node, self._steps)
                self._front.append((time, node, union))
            self._union = None
        return self._front[-1][0] if self._front else None

    def pop(self) -> tuple[Value, Node]:
        """Take the oldest away; `oldest` has said that there is one."""
        time, node, _ = self._front.pop()
        return time, node

    def union(self) -> Node | None:
        """Of all."""
        return meld(self._front[-1][2] if self._front else None, self._union, self._steps)

    def entries(self) -> Iterator[tuple[Value, Node]]:
        """All, the oldest first."""
        yield from ((time, node) for time, node, _ in reversed(self._front))
        yield from self._back


class Ages:
    """Entries by the time of an event, asked by the time since then: see the table above."""

    def __init__(self, steps: Steps, ages: Sequence[tuple[Interval, bool]]) -> None:
        self._steps = steps
        ends = {0}
        for interval, _ in ages:
            ends |= {max(0, interval.lower)} | ({max(0, interval.upper + 1)} if interval.upper is not None else set())
        # Classes of ages: from each end to before the next one; the last has no end.
        self._ends = sorted(ends)
        self._wanted = [all((end in interval) == truth for interval, truth in ages) for end in self._ends]
        runs = [number for number, wanted in enumerate(self._wanted) if wanted]
        self._range = (self._ends[runs[0]], self._end(runs[-1])) if runs and runs[-1] - runs[0] == len(runs) - 1 else None
        self._ring = Ring()
        self._times: list[Value] = []
        self._newest, self._oldest = -1, 0
        self._classes: list[Queue] | None = None
        self._last: Value = None
        self._runs: Runs | None = None
        self._scan: list[tuple[Value, Node]] | None = None
        if self._range is None:
            self._to_classes(0)

    def _end(self, number: int) -> int | None:
        return self._ends[number + 1] if number + 1 < len(self._ends) else None

    def insert(self, time: Value, node: Node, low: int) -> None:
        """Add an entry; low: the least start that counts."""
        self._steps.index += 1
        late = self._last is not None and time < self._last
        self._last = time if self._last is None else max(time, self._last)
        entries = self._ring.entries
        if self._classes is None and self._runs is None and self._scan is None:
            if not late and (not entries or node.key > entries[-1].key):
                entries.append(node)
                self._times.append(time)
                return
            self._to_classes(low)
        if late and self._classes is not None:
            self._out_of_order()
        if self._runs is not None:
            self._runs.insert(time, node, low)
        elif self._scan is not None:
            self._scan.append((time, node))
        else:
            assert self._classes is not None
            self._classes[0].push(time, node)

    def _to_classes(self, low: int) -> None:
        """From the ring to queues: the keys have fallen."""
        self._classes = [Queue(self._steps) for _ in self._ends]
        for time, node in zip(self._times, self._ring.entries, strict=True):
            if node.key[0] >= low:
                self._classes[0].push(time, node)
        self._ring, self._times = Ring(), []

    def _out_of_order(self) -> None:
        """From queues to what needs no order of times: a time that has been carried comes late."""
        assert self._classes is not None
        every = [entry for queue in reversed(self._classes) for entry in queue.entries()]
        self._classes = None
        if self._range is not None and (self._range[0] == 0 or self._range[1] is None):
            self._runs = Runs(self._steps)
            for time, node in every:
                self._runs.insert(time, node, 0)
        else:
            self._scan = every

    def ask(self, question: Question, event: Evaluator, low: int) -> Node | None:
        """The union of the entries of the ages that are wanted."""
        assert question.now is not None
        self._steps.index += 1
        now = event.now(question.now)
        if self._runs is not None:
            return self._ask_runs(now)
        if self._scan is not None:
            return self._ask_each(now, low)
        return self._ask_ring(now) if self._classes is None else self._ask_classes(now)

    def _ask_ring(self, now: Value) -> Node | None:
        assert self._range is not None
        least, end = self._range
        while self._newest + 1 < len(self._times) and now - self._times[self._newest + 1] >= least:
            self._newest += 1
            self._steps.index += 1
        while end is not None and self._oldest < len(self._times) and now - self._times[self._oldest] >= end:
            self._oldest += 1
            self._steps.index += 1
        return Stretch(self._ring, self._newest, self._oldest).node if self._oldest <= self._newest else None

    def _ask_classes(self, now: Value) -> Node | None:
        assert self._classes is not None
        found: Node | None = None
        for number, queue in enumerate(self._classes):
            end = self._end(number)
            while end is not None and (time := queue.oldest()) is not None and now - time >= end:
                self._steps.index += 1
                self._classes[number + 1].push(*queue.pop())
            if self._wanted[number]:
                found = meld(found, queue.union(), self._steps)
        return found

    def _ask_runs(self, now: Value) -> Node | None:
        assert self._runs is not None
        assert self._range is not None
        least, end = self._range
        if end is not None:
            return self._runs.ask(">", now - end)
        return self._runs.ask("<=", now - least)

    def _ask_each(self, now: Value, low: int) -> Node | None:
        assert self._scan is not None
        self._scan = [(time, node) for time, node in self._scan if node.key[0] >= low]
        self._steps.index += len(self._scan)
        wanted = (node for time, node in self._scan if self._wanted[bisect_right(self._ends, now - time) - 1])
        return united(wanted, self._steps)


class Runs:
    """Log-structured: sorted runs of falling length, each with the unions of its beginnings and of its ends."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._runs: list[tuple[list[Value], list[Node], list[Node | None], list[Node | None]]] = []

    def insert(self, value: Value, node: Node, low: int) -> None:
        """Add an entry; low: the least start that counts. O(log n) melds amortized."""
        new = [(value, node)]
        while self._runs and len(self._runs[-1][0]) <= len(new):
            values, nodes, _, _ = self._runs.pop()
            both, new = sorted([*zip(values, nodes, strict=True), *new], key=lambda entry: entry[0]), []
            self._steps.index += len(both)
            for key, each in both:
                if each.key[0] < low:
                    continue
                same = meld(new[-1][1], each, self._steps) if new and new[-1][0] == key else None
                if same is not None:
                    new[-1] = key, same
                else:
                    new.append((key, each))
        if new:
            nodes = [each for _, each in new]
            self._runs.append(([key for key, _ in new], nodes, self._unions(nodes), self._unions(nodes[::-1])[::-1]))

    def _unions(self, nodes: list[Node]) -> list[Node | None]:
        """The union of the first 0, 1, 2 .. of them."""
        found: list[Node | None] = [None]
        for node in nodes:
            found.append(meld(found[-1], node, self._steps))
        return found

    def ask(self, operator: str, value: Value) -> Node | None:
        """The union of the entries whose value compares so; operator: one of `PASSES`. O(log n) melds."""
        found: Node | None = None
        for values, _, before, after in self._runs:
            self._steps.index += 1
            first, stop = bisect_left(values, value), bisect_right(values, value)
            if operator in {"<", "<=", "!="}:
                found = meld(found, before[stop if operator == "<=" else first], self._steps)
            if operator in {">", ">=", "!="}:
                found = meld(found, after[first if operator == ">=" else stop], self._steps)
        return found


class Ordered:
    """Entries by a value, asked by one comparison with it: see the table above. NULLs lie apart."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._nulls = Plain(steps)
        self._every = Plain(steps)
        self._tree = Tree()
        self._ring = Ring(self._tree)
        self._values: list[Value] = []
        self._runs: Runs | None = None

    def insert(self, value: Value, node: Node, low: int) -> None:
        """Add an entry; low: the least start that counts."""
        self._steps.index += 1
        if value is None:
            self._nulls.insert(None, node, low)
            return
        entries = self._ring.entries
        if self._runs is None:
            if not entries or node.key > entries[-1].key:
                entries.append(node)
                self._values.append(value)
                self._tree.append(value)
                return
            self._to_runs(low)
        assert self._runs is not None
        self._runs.insert(value, node, low)
        self._every.insert(None, node, low)

    def _to_runs(self, low: int) -> None:
        """From the ring to sorted runs: the keys have fallen."""
        self._runs = Runs(self._steps)
        for value, node in zip(self._values, self._ring.entries, strict=True):
            if node.key[0] >= low:
                self._runs.insert(value, node, low)
                self._every.insert(None, node, low)
        self._ring, self._values = Ring(), []

    def ask(self, question: Question, event: Evaluator, low: int) -> Node | None:
        """The union of the entries for which the comparison holds, or for which it does not: then NULLs are among them."""
        del low
        assert question.now is not None
        self._steps.index += 1
        now = event.now(question.now)
        if question.truth:
            return None if now is None else self._known(question.operator, now)
        known = self._all_known() if now is None else self._known(NEGATED[question.operator], now)
        return meld(known, self._nulls.all(), self._steps)

    def _known(self, operator: str, now: Value) -> Node | None:
        if self._runs is not None:
            return self._runs.ask(operator, now)
        newest = self._tree.newest(len(self._values) - 1, operator, now, self._steps)
        return Stretch(self._ring, newest, 0, operator=operator, value=now).node if newest >= 0 else None

    def _all_known(self) -> Node | None:
        if self._runs is not None:
            return self._every.all()
        return Stretch(self._ring, len(self._values) - 1, 0).node if self._values else None


class Groups:
    """Entries by all of their values, for questions that no other index answers: each group is asked. O(groups); insert O(1)."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._places: dict[tuple[Value, ...], int] = {}
        self._nodes: list[Node] = []

    def insert(self, values: tuple[Value, ...], node: Node) -> None:
        """Add an entry."""
        self._steps.index += 1
        place = self._places.setdefault(values, len(self._nodes))
        if place == len(self._nodes):
            self._nodes.append(node)
            return
        union = meld(self._nodes[place], node, self._steps)
        assert union is not None
        self._nodes[place] = union

    def passing(self, question: Question, event: Evaluator, low: int) -> Iterator[tuple[tuple[Value, ...], Node]]:
        """The groups that pass, each with its partial matches."""
        groups = list(self._places)
        self._steps.index += len(groups)
        for group, node in zip(groups, list(self._nodes), strict=True):
            if node.key[0] >= low and all(event.holds(test, group) == truth for test, truth in question.rest):
                yield group, node


Bucket = Plain | Ages | Ordered | Groups


def _last(time: Value, most: int) -> int:
    """When so much time has passed since a time; a NULL stands for different times, and nothing holds of it."""
    return -FOREVER if time is None else int(time) + most


class Bank:
    """The entries of one macro state in one partition, and its indexes, made when they are first asked.

    greatest: start of a match in it. until: the last time at which one of them can go on.
    """

    __slots__ = ("_indexes", "_steps", "_sweep_at", "entries", "greatest", "macro", "until")

    def __init__(self, macro: Macro, steps: Steps) -> None:
        self.macro = macro
        self.entries: list[tuple[tuple[Value, ...], Node]] = []
        self.greatest = -1
        self.until = -FOREVER
        self._indexes: dict[Shape, dict[tuple[Value, ...], dict[tuple[Value, ...], Bucket]]] = {}
        self._steps = steps
        self._sweep_at = SWEEP_FROM

    def insert(self, values: tuple[Value, ...], node: Node, low: int, *, now: int = -FOREVER) -> None:
        """Add an entry; low: the least start that counts. now: the time, if it is known; what could not go on before it may be forgotten."""
        if len(self.entries) >= self._sweep_at:
            self.entries = [entry for entry in self.entries if entry[1].key[0] >= low and self._deadline(entry[0]) >= now]
            self._sweep_at = max(SWEEP_FROM, 2 * len(self.entries))
            for shape in self._indexes:
                self._build(shape, low)
        self.entries.append((values, node))
        self.greatest = max(self.greatest, node.key[0])
        self.until = max(self.until, self._deadline(values))
        for shape in self._indexes:
            self._put(shape, values, node, low)

    def _deadline(self, values: tuple[Value, ...]) -> int:
        """The last time at which an entry with these values can go on."""
        return max(
            (min((_last(values[slot], most) for slot, most in way), default=FOREVER) for way in self.macro.lifetime), default=FOREVER
        )

    def _build(self, shape: Shape, low: int) -> None:
        self._indexes[shape] = {}
        for values, node in self.entries:
            if node.key[0] >= low:
                self._put(shape, values, node, low)

    def _put(self, shape: Shape, values: tuple[Value, ...], node: Node, low: int) -> None:
        equals = tuple(values[slot] for slot in shape.equals)
        if None in equals:
            return  # NULL = anything does not hold
        below = self._indexes[shape].setdefault(equals, {})
        carried = tuple(values[slot] for slot in shape.carried)
        bucket = below.get(carried)
        if bucket is None:
            bucket = below[carried] = self._bucket(shape)
        if isinstance(bucket, Groups):
            bucket.insert(values, node)
        else:
            bucket.insert(values[shape.slot] if shape.slot >= 0 else None, node, low)

    def _bucket(self, shape: Shape) -> Bucket:
        if shape.kind == AGE:
            return Ages(self._steps, shape.ages)
        if shape.kind == GROUPS:
            return Groups(self._steps)
        return Ordered(self._steps) if shape.kind == ORDER else Plain(self._steps)

    def ask(self, question: Question, event: Evaluator, low: int) -> list[tuple[tuple[Value, ...], Node]]:
        """The live partial matches of a region's groups, with the values that it makes of them."""
        if not all(event.holds(test, ()) == truth for test, truth in question.local):
            return []
        shape = question.shape
        if shape not in self._indexes:
            self._build(shape, low)
        self._steps.index += 1
        below = self._indexes[shape].get(tuple(event.now(value) for value in question.equal), {})
        found: dict[tuple[tuple[Value, ...], tuple[Value, ...]], Node] = {}
        for slots, node in self._answers(below, question, event, low):
            key = tuple(event.value(term, slots) for term in question.region.made), tuple(slots[slot] for slot in question.gathered)
            union = meld(found.get(key), node, self._steps)
            assert union is not None
            found[key] = union
        return [(new, node) for (new, _), node in found.items()]

    def _answers(
        self, below: dict[tuple[Value, ...], Bucket], question: Question, event: Evaluator, low: int
    ) -> Iterator[tuple[Mapping[int, Value] | tuple[Value, ...], Node]]:
        """What slots hold, as far as it is carried, and the partial matches that hold it and pass."""
        for carried, bucket in below.items():
            if isinstance(bucket, Groups):
                yield from bucket.passing(question, event, low)
                continue
            answer = bucket.ask(question, event, low)
            if answer is not None and answer.key[0] >= low:
                yield dict(zip(question.shape.carried, carried, strict=True)), answer

    def groups(self, low: int) -> Iterable[tuple[tuple[Value, ...], Node]]:
        """The live groups, each as one heap."""
        found: dict[tuple[Value, ...], Node] = {}
        for values, node in self.entries:
            if node.key[0] >= low:
                self._steps.index += 1
                union = meld(found.get(values), node, self._steps)
                assert union is not None
                found[values] = union
        return found.items()
