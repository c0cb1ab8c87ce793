"""Parts of a pattern in which NXT, LAST or MAX choose: which supports they keep at an event, and the partial matches that have one of these.

Comes in: the match graph of a part, which gives the chosen supports (`Chosen`), and partial matches of the pattern around it that end the part at
this event. Goes out: those partial matches whose events in the part are a chosen support (`Supported`). Paths are walked back to the cell that begins
the part; cells on the way are copied where not all of their paths stay, for others may share them. What is before the part stays as it is.

`guarded_next` does the same for THEN: other rules, and the same walk (`Restriction`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from cepheid.automata.transform import members
from cepheid.automata.transition import BEGINS, ENDS, HIDDEN, PRECEDES, SHOWN
from cepheid.engine.evaluations.uncompiled.guarded_choice import Best
from cepheid.engine.evaluations.uncompiled.guarded_graph import Node, united
from cepheid.engine.evaluations.uncompiled.guarded_maximal import CellSets, Maximal
from cepheid.errors import LimitError
from cepheid.language.syntax import Strategy

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from cepheid.automata.automaton import Automaton
    from cepheid.engine.evaluations.uncompiled.guarded_graph import Cell, Steps
    from cepheid.engine.evaluations.uncompiled.guarded_maximal import State

S = TypeVar("S")

PART_LIMIT = 1 << 22
"""Steps of restricting the partial matches of one event: cells of a part, each with what may come before it."""


class Chosen(ABC, Generic[S]):
    """The supports that a strategy keeps among the matches that end at one event, as an automaton that reads positions from the last to the first."""

    @property
    @abstractmethod
    def start(self) -> S:
        """The state before the last position."""

    @abstractmethod
    def positions(self, state: S) -> Collection[int]:
        """The positions that can come next."""

    @abstractmethod
    def after(self, state: S, position: int) -> S:
        """The state behind one of these."""

    @abstractmethod
    def ends(self, state: S) -> bool:
        """Whether a support is complete."""


class One(Chosen[int]):
    """The one support that NXT or LAST keeps; a state is how many of its positions have been read."""

    start = 0

    def __init__(self, best: Best) -> None:
        self._support = best.support

    def positions(self, state: int) -> Collection[int]:
        """The next one."""
        return self._support[state : state + 1]

    def after(self, state: int, position: int) -> int:
        """One more."""
        del position
        return state + 1

    def ends(self, state: int) -> bool:
        """At the first position."""
        return state == len(self._support)


class Several(Chosen["frozenset[State]"]):
    """The supports that MAX keeps; a state is the states of all maximal matches with the positions so far."""

    def __init__(self, maximal: Maximal) -> None:
        self._maximal = maximal
        self._start = self._with_hidden([maximal.root])
        self._ways: dict[frozenset[State], dict[int, frozenset[State]]] = {}

    @property
    def start(self) -> frozenset[State]:
        """All of them."""
        return self._start

    def positions(self, state: frozenset[State]) -> Collection[int]:
        """Those of the next cells."""
        return self._following(state)

    def after(self, state: frozenset[State], position: int) -> frozenset[State]:
        """The states in the cells of that position."""
        return self._following(state)[position]

    def ends(self, state: frozenset[State]) -> bool:
        """Whether one of them has begun its match."""
        return any(self._maximal.begins(each) for each in state)

    def _following(self, state: frozenset[State]) -> dict[int, frozenset[State]]:
        found = self._ways.get(state)
        if found is None:
            reached: dict[int, list[State]] = {}
            for each in state:
                for cell, after in self._maximal.following(each):
                    if self._maximal.shows(cell):
                        reached.setdefault(cell.position, []).append(after)
            found = self._ways[state] = {position: self._with_hidden(states) for position, states in reached.items()}
        return found

    def _with_hidden(self, states: list[State]) -> frozenset[State]:
        """With those behind events that the support has not."""
        found, todo = set(states), list(states)
        while todo:
            for cell, after in self._maximal.following(todo.pop()):
                if not self._maximal.shows(cell) and after not in found:
                    found.add(after)
                    todo.append(after)
        return frozenset(found)


def chosen(root: Node, low: int, steps: Steps, *, strategy: Strategy, shown: Sequence[bool]) -> Chosen[Any]:
    """The supports that a strategy keeps of the matches in a heap. O(r log n), r = cells that it reaches; MAX: as `Maximal`."""
    if strategy is Strategy.MAX:
        return Several(Maximal(root, low, steps, shown=shown))
    return One(Best(root, low, steps, strategy=strategy, shown=shown))


# ------------------------------------------------------------------------------------------------------------------- around a part


class Places:
    """The places in one part that the labels of the automaton around it have.

    begins, shows, precedes: by label, whether it begins the part, whether the part's support has its event, and whether it ends what the part is next
    to. has: whether its event is of the part, also if PROJECT hides it there. ends: the labels that end the part.
    """

    def __init__(self, automaton: Automaton, part: int) -> None:
        self.begins, self.shows, self.precedes = (
            [(part, name) in parts for _, parts in automaton.labels] for name in (BEGINS, SHOWN, PRECEDES)
        )
        self.has = [shown or (part, HIDDEN[1]) in parts for shown, (_, parts) in zip(self.shows, automaton.labels, strict=True)]
        self.ends = frozenset(number for number, (_, parts) in enumerate(automaton.labels) if (part, ENDS) in parts)


class _PartCells(CellSets):
    """The cells of a part that partial matches reach; last: by label, whether nothing counts that is before it."""

    def __init__(self, root: Node, low: int, steps: Steps, last: Sequence[bool]) -> None:
        self._last = last
        super().__init__(root, low, steps)

    def child(self, cell: Cell) -> Node | None:
        """Nothing before the part."""
        return None if self._last[cell.label] else cell.child


class Restriction(ABC, Generic[S]):
    """Partial matches that end a part at one event, restricted to what is chosen, as an automaton says that reads cells from the last to the first.

    children: what they go on from at this event. last: the labels, by number, behind which it reads no more. low: the least start that counts.
    copied: makes a cell like another one, that goes on from something else. cut: whether some before `low` count elsewhere, so that heaps with them
    do not stay. O(cells and heap nodes that they reach in the part, times a logarithm) for each state; LimitError past PART_LIMIT.
    """

    def __init__(
        self,
        children: Sequence[Node],
        last: Sequence[bool],
        low: int,
        steps: Steps,
        *,
        copied: Callable[[Cell, Node], Cell],
        cut: bool = False,
    ) -> None:
        root = united(children, steps)
        assert root is not None
        self._last = last
        self._low = low
        self._steps = steps
        self._copied = copied
        self._cut = cut
        self._reached = _PartCells(root, low, steps, last)
        self._found: dict[tuple[int, S], Cell | None] = {}

    @abstractmethod
    def _ways(self, cells: int, state: S) -> list[tuple[int, S]]:
        """Those of some cells that can come next, ascending, each with the state behind it."""

    @abstractmethod
    def _stays(self, cell: Cell, state: S) -> bool:
        """Whether what ends in the last cell that is read is chosen; state: behind it."""

    def below(self, child: Node, state: S) -> Node | None:
        """A child with only those paths that go on from a state with a chosen support."""
        low, bits = self._reached.of_node(child)
        ways = self._ways(bits << low, state)
        self._find(ways)
        return self._node(child, bits.bit_count(), ways)

    def _find(self, ways: list[tuple[int, S]]) -> None:
        """What becomes of cells, and before of all that these need: a part may be longer than a recursion is deep."""
        todo, below = list(ways), dict[tuple[int, S], list[tuple[int, S]]]()
        while todo:
            way = todo[-1]
            number, state = way
            cell = self._reached.cells[number]
            if way in self._found:
                todo.pop()
            elif self._last[cell.label]:
                self._found[way] = cell if self._stays(cell, state) else None
            elif way not in below:
                if len(self._found) + len(below) == PART_LIMIT:
                    raise LimitError(
                        f"a choice inside the pattern takes more than {PART_LIMIT} steps for the matches of one event (PART_LIMIT)",
                        help="bound the part that is chosen from by a smaller window, or choose by NXT, LAST, or TIME MODEL CAYUGA",
                    )
                low, bits = self._reached.below[number]
                below[way] = self._ways(bits << low, state)
                todo += below[way]
            else:
                self._found[way] = self._restricted(cell, self._reached.below[number][1].bit_count(), below.pop(way))

    def _restricted(self, cell: Cell, count: int, ways: list[tuple[int, S]]) -> Cell | None:
        """A cell that goes on from those of so many that stay."""
        assert cell.child is not None
        child = self._node(cell.child, count, ways)
        return cell if child is cell.child else None if child is None else self._copied(cell, child)

    def _node(self, child: Node, count: int, ways: list[tuple[int, S]]) -> Node | None:
        """A heap of what some of its `count` cells have become; itself where all stay as they are."""
        kept = [cell for way in ways if (cell := self._found[way]) is not None]
        if (
            not self._cut
            and len(kept) == count
            and all(self._reached.cells[number] is cell for (number, _), cell in zip(ways, kept, strict=True))
        ):
            return child
        return united((Node(cell.key, cell) for cell in kept if cell.key[0] >= self._low), self._steps)


class Supported(Restriction[S]):
    """Restricted to the supports that a strategy keeps; for each event of a support as many bits as there are cells."""

    def __init__(
        self,
        kept: Chosen[S],
        places: Places,
        children: Sequence[Node],
        low: int,
        steps: Steps,
        *,
        copied: Callable[[Cell, Node], Cell],
        cut: bool,
    ) -> None:
        super().__init__(children, places.begins, low, steps, copied=copied, cut=cut)
        self._kept = kept
        self._hidden = 0
        self._at: dict[int, int] = {}
        for number, cell in enumerate(self._reached.cells):
            if places.shows[cell.label]:
                self._at[cell.position] = self._at.get(cell.position, 0) | 1 << number
            else:
                self._hidden |= 1 << number

    def _ways(self, cells: int, state: S) -> list[tuple[int, S]]:
        found = [(number, state) for number in members(cells & self._hidden)]
        for position in self._kept.positions(state):
            if here := cells & self._at.get(position, 0):
                after = self._kept.after(state, position)
                found += [(number, after) for number in members(here)]
        return sorted(found, key=itemgetter(0))

    def _stays(self, cell: Cell, state: S) -> bool:
        del cell
        return self._kept.ends(state)
