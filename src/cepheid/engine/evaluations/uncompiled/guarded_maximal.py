"""MAX over the cells that a trigger reaches: the matches whose support is not part of a larger one, without a list of all matches.

A match is a path through cells, from the trigger backwards. Beside a path goes the set of all paths that may come to dominate it: those that have
all its positions so far. Of such a path only two things count: the cell in which it is at the last position of the match, and whether it has a
position more. So a `State` is the cell of a path and the two sets of such cells, and paths with equal states are dominated alike from there on. A
path ends where one with a position more is in its own cell: whatever follows, that one stays larger.

Cells are numbered by position; sets of them are the bits of an integer.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

from cepheid.engine.evaluations.uncompiled.guarded_choice import Fold
from cepheid.errors import LimitError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cepheid.engine.evaluations.uncompiled.guarded_graph import Cell, Node, Steps

MAXIMAL_LIMIT = 1 << 22
"""Steps of MAX for the matches of one trigger: states, and for each of them the cells that may be in a larger match."""

Cells = tuple[int, int]
"""A set of cells: how many low bits are left out, and the others. So what is near to each other is short."""

State = tuple[int, tuple[int, ...], tuple[int, ...]]
"""A cell; at the last position of the match so far, the cells of paths with the same positions, and of those with more."""


class CellSets(Fold[Cells]):
    """The cells that a trigger reaches, by number, and the set of those that each goes on from."""

    def __init__(self, root: Node, low: int, steps: Steps) -> None:
        self.cells: list[Cell] = []
        self.below: list[Cells] = []
        super().__init__(root, low, steps)

    @property
    def nothing(self) -> Cells:
        """No cell."""
        return 0, 0

    def extended(self, cell: Cell, below: Cells | None) -> Cells:
        """The set of the cell alone."""
        self.cells.append(cell)
        self.below.append(below or self.nothing)
        return len(self.cells) - 1, 1

    def added(self, one: Cells, other: Cells) -> Cells:
        """Their union."""
        if not one[1] or not other[1]:
            return one if one[1] else other
        if one[0] > other[0]:
            one, other = other, one
        return one[0], one[1] | other[1] << other[0] - one[0]


class Maximal:
    """The states of the maximal matches of a trigger, and how each goes on. low: the least start that counts; shown: of each label, as for `Best`.

    O(n) for each step, n / 64 words; raises LimitError past MAXIMAL_LIMIT steps. Each state that is kept is part of a maximal match.
    """

    def __init__(self, root: Node, low: int, steps: Steps, *, shown: Sequence[bool]) -> None:
        reached = CellSets(root, low, steps)
        self._cells = reached.cells
        self._below = [*reached.below, reached.total]  # the last one: what all matches end in
        self._labels = shown
        self._shown = sum(1 << number for number, cell in enumerate(self._cells) if shown[cell.label])
        self._first: list[int] = []  # of the cells at the position of each
        for number, cell in enumerate(self._cells):
            self._first.append(self._first[-1] if number and self._cells[number - 1].position == cell.position else number)
        self._steps = 0
        self._path: list[State] = []
        self._root: State = len(self._cells), (len(self._cells),), ()
        self._after = self._kept(self._explored())

    @property
    def root(self) -> State:
        """The state of the trigger itself."""
        return self._root

    def following(self, state: State) -> list[tuple[Cell, State]]:
        """How the maximal matches of a state go on: the next cell, and the state there."""
        return [(self._cells[after[0]], after) for after in self._after[state].values()]

    def begins(self, state: State) -> bool:
        """Whether matches begin in the cell of a state."""
        return state != self._root and self._cells[state[0]].child is None

    def shows(self, cell: Cell) -> bool:
        """Whether supports have the event of a cell."""
        return self._labels[cell.label]

    def after(self, path: list[Cell]) -> Iterator[Cell]:
        """The cells with which a path goes on to maximal matches, as for `paths`."""
        del self._path[len(path) :]
        self._path.append(self._after[self._path[-1]][id(path[-1])] if path else self._root)
        return iter([self._cells[number] for number, *_ in self._after[self._path[-1]].values()])

    def _explored(self) -> dict[State, list[State]]:
        """All states that may be part of a maximal match, and those that each goes on to."""
        found: dict[State, list[State]] = {}
        todo = [self._root]
        while todo:
            state = todo.pop()
            if state not in found:
                found[state] = list(self._successors(state))
                todo += found[state]
        return found

    def _kept(self, explored: dict[State, list[State]]) -> dict[State, dict[int, State]]:
        """The states from which a maximal match goes on, and those that each goes on to: by cell, by falling keys."""
        kept: dict[State, dict[int, State]] = {}
        for state in sorted(explored, key=itemgetter(0)):  # a state goes on to lesser numbers
            after = sorted((each for each in explored[state] if each in kept), key=lambda each: self._cells[each[0]].key, reverse=True)
            if after or (not self._set(state[0]) and not self._is_dominated(state)):
                kept[state] = {id(self._cells[each[0]]): each for each in after}
        return kept

    def _set(self, number: int) -> int:
        """The cells that a cell goes on from."""
        low, bits = self._below[number]
        return bits << low

    def _union(self, numbers: Iterable[int]) -> int:
        found = 0
        for number in numbers:
            found |= self._set(number)
        return found

    def _successors(self, state: State) -> Iterator[State]:
        """The states that a path goes on to, but for those in whose cell is a path with a position more."""
        number, same, larger = state
        equal, more = self._union(same), self._union(larger)  # where paths with the same positions may be next, and those with more
        waiting, wanted = equal | more, self._set(number) & ~more
        while wanted:
            self._step()
            following = wanted.bit_length() - 1
            first = self._first[following]
            # Whatever is in a larger match before the next position.
            while (cell := waiting.bit_length() - 1) > following and self._first[cell] > first:
                self._step()
                below = self._set(cell)
                waiting = waiting & ~(1 << cell) | below
                if (more | self._shown) >> cell & 1:
                    more |= below
                else:
                    equal |= below
                if more >> following & 1:
                    break
            else:
                yield self._at(following, equal & ~more, more) if self._shown >> following & 1 else (following, same, larger)
            wanted &= ~(more | 1 << following)

    def _at(self, number: int, equal: int, more: int) -> State:
        """The state of a path in a cell that is shown, given where others may be."""
        first = last = self._first[number]
        while last < len(self._cells) and self._first[last] == first:
            last += 1
        here = [each for each in range(first, last) if self._shown >> each & 1]
        return number, tuple(each for each in here if equal >> each & 1), tuple(each for each in here if more >> each & 1)

    def _is_dominated(self, state: State) -> bool:
        """Whether a match that begins in the state's cell is part of a larger one."""
        _, same, larger = state
        waiting = self._union(same)
        while waiting and not waiting & self._shown:
            self._step()
            cell = waiting.bit_length() - 1
            waiting = waiting & ~(1 << cell) | self._set(cell)
        return bool(waiting or larger)

    def _step(self) -> None:
        self._steps += 1
        if self._steps > MAXIMAL_LIMIT:
            raise past_limit()


def past_limit() -> LimitError:
    """The error of a trigger that takes more steps than MAXIMAL_LIMIT."""
    return LimitError(
        f"MAX takes more than {MAXIMAL_LIMIT} steps for the matches of one event (MAXIMAL_LIMIT)",
        help="bound matches by a smaller window, or choose by NXT or LAST",
    )
