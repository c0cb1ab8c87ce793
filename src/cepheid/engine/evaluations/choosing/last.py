"""LAST over waiting automata: the driver of `cepheid.kernel.last`, where the algorithm and its proof are.

Outside the fragment (`WaitingAutomaton.of` gives None) there are other ways; see the planner.

When to use this: LAST in a window, where partial matches can only wait; see `next`. `guarded_choice_run` takes twice as long, `per_end` 3 to 25
times. Without a window the automaton of the strategy is small, and a match graph reads it (`match`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from cepheid.engine.evaluations.block_run import HEADER, KEPT, POSITION, STARTS
from cepheid.engine.evaluations.choosing.supports import SupportEvaluation, SupportMethod, waiting
from cepheid.engine.evaluations.method import Guarantee
from cepheid.engine.memory import blocks
from cepheid.engine.memory.blocks import BlockLayout, Ring
from cepheid.engine.memory.checks import demand, inside
from cepheid.language.syntax import Strategy

if TYPE_CHECKING:
    from typing import Unpack

    from cepheid.automata.program import Program
    from cepheid.engine.evaluations.base import Bounds
    from cepheid.engine.evaluations.choosing.supports import SupportSizes
    from cepheid.engine.evaluations.method import Terms
    from cepheid.engine.memory.pools import Array

LIVE = len(HEADER)
"""The word of a block that has its live sources as bits."""

GREATEST = LIVE + 1
"""The first of the words that hold the greatest start of a partial match in each state."""

TAKEN = Ring(3)
"""Rings 1 ..: (position, letter, greatest start) of the events that took one move."""

LETTER, START = 1, 2  # of an entry of TAKEN
HIGH = 62  # states from here on share one bit of `live`


class Last(SupportEvaluation):
    """The run state of LAST over any number of partitions; the interface is that of `Evaluation`.

    Update O(moves that fire) per event, whatever the window; per trigger one support, O(moves) per position, amortized. Memory: three words
    for each move that an event of the window takes; without a window, for each move taken. Raises NotSupportedError outside the fragment.
    """

    kernel_name: ClassVar[str] = "last"

    def __init__(self, program: Program, *, sizes: SupportSizes | None = None, **bounds: Unpack[Bounds]) -> None:
        self.waiting = waiting(program)
        moves = {(source, move.target) for source, out in enumerate(self.waiting.moves) for move in out if not move.final}
        self._ring_of = {move: number for number, move in enumerate(sorted(moves, key=lambda move: move[::-1]), 1)}
        super().__init__(program, sizes=sizes, **bounds)
        states = self.waiting.waiting + 1
        self._into: Array = np.array([(ring, source) for (source, _), ring in self._ring_of.items()], np.int32).reshape(-1)
        entered = np.bincount(np.array([target for _, target in self._ring_of], np.int64), minlength=states + 1)
        self._into_first: Array = np.concatenate([np.zeros(1), np.cumsum(entered)]).astype(np.int32)
        self._states: Array = np.zeros(2 * states, np.int32)
        self._seen: Array = np.zeros(states, np.int64)
        self._cursors: Array = np.zeros((2, 1 + len(self._ring_of)), np.int64)
        self._path: Array = np.zeros(2 * self.sizes.scratch, np.int64)
        self._forgotten()
        self.mends |= {"path": "_mend_path", "pool": "_mend_pool", "limit": "_mend_ring"}
        self._set("plain", self.store.layout.directory)
        self._set("block_limit", blocks.BLOCK_LIMIT)

    def _layout(self) -> BlockLayout:
        greatest = (-1,) * (self.waiting.waiting + 1)
        return BlockLayout((*HEADER, 1, *greatest), (STARTS, *(TAKEN for _ in self._ring_of)), kept=KEPT)

    def _tables(self) -> tuple[Array, ...]:
        pool = (self.store.sizes, self.store.pool, self.store.widths)
        tables = (self._sources, self._first_of, self._moves, self._into_first, self._into)
        return (*pool, *tables, self._starts, self._states, self._seen, *self._cursors, self._path)

    def _forgotten(self) -> None:
        self._move_list: list[tuple[int, int, int]] = []
        self._sources: Array = np.zeros(4, np.int64)
        self._first_of: Array = np.zeros(5, np.int32)
        self._moves: Array = np.zeros(3 * 4, np.int32)
        self._starts: Array = np.zeros(4, np.int64)

    def _learned(self, code: int, letter: int) -> None:
        """The moves that a letter takes, from each source without those that another one makes superfluous."""
        first = len(self._move_list)
        sources = 0
        for source in range(self.waiting.waiting + 1):
            for target in sorted(self.waiting.essential(self.waiting.entered(source, letter))):
                final = target == self.waiting.final
                self._move_list.append((source, -1, 0) if final else (source, target, self._ring_of[source, target]))
                sources |= 1 << min(source, HIGH)
        if code + 1 >= len(self._first_of):
            self._first_of = np.concatenate([self._first_of, np.zeros_like(self._first_of)])
            self._sources = np.concatenate([self._sources, np.zeros(len(self._first_of) - len(self._sources), np.int64)])
        if 3 * len(self._move_list) > len(self._moves):
            self._moves = np.concatenate([self._moves, np.zeros(6 * len(self._move_list), np.int32)])
        self._moves[3 * first : 3 * len(self._move_list)] = np.array(self._move_list[first:], np.int32).reshape(-1)
        self._first_of[code + 1] = len(self._move_list)
        self._sources[code] = sources
        if len(self._move_list) - first > len(self._starts):
            self._starts = np.zeros(len(self._move_list) - first, np.int64)

    def _letters(self, entries: list[Array]) -> Array:
        return np.concatenate([np.zeros(0, np.int64), *(ring[:, LETTER] for ring in entries[1:])])

    def _check(self, words: Array, entries: list[Array]) -> None:
        live, greatest = words[:, LIVE], words[:, GREATEST:]
        demand(inside(live, 1, 1 << HIGH + 1), live & 1 == 1, inside(greatest, -1, np.maximum(words[:, [POSITION]], 1)))
        taken = np.concatenate([np.zeros((0, TAKEN.width), np.int64), *entries[1:]])
        demand(inside(taken[:, START], 0, taken[:, 0] + 1), inside(taken[:, LETTER], 0, 1 << self.program.bits))

    def _mend_path(self) -> None:
        """The longest support so far does not fit; the walk is begun anew."""
        self._path = np.zeros(2 * len(self._path), np.int64)


class LastMethod(SupportMethod):
    """LAST by a walk back."""

    name = "last"
    evaluation = Last
    strategy = Strategy.LAST

    def guarantee(self, terms: Terms) -> Guarantee:
        """As in `cepheid.kernel.last`."""
        return Guarantee(
            evaluation="LAST by a walk back over the greatest starts of each transition; no partial matches; then its labellings",
            update="O(fired transitions) per event, whatever the window",
            state=terms.state("events that may be marked (once per transition)"),
            delay="O(transitions x log of the window) per event of a match",
        )
