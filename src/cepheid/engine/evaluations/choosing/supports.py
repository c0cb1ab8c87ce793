"""Evaluations that choose supports: what NXT, LAST and MAX have in common.

Comes in: letters, as for `evaluations.graph.match.Evaluation`, which has the same interface. Goes out: the matches on the supports that the
strategy's kernel chooses. A subclass says what a block holds, keeps the tables of its kernel, and mends what is its own; here are the supports and
their labellings. `block_run` has the partitions' blocks, the window and the snapshot.

What a kernel of this kind keeps to, beside what `block_run` says: its arguments begin with those of `SupportEvaluation._arrays` and end with the
outputs and `marked`; rings hold letters, not codes, so codes can be forgotten at any time.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cepheid.automata.supports import SupportProgram
from cepheid.automata.waiting import WaitingAutomaton
from cepheid.engine.evaluations.block_run import BlockRun
from cepheid.engine.evaluations.choosing.labelling import Labelling, SupportChunk
from cepheid.engine.evaluations.method import Method
from cepheid.engine.letters.codes import LetterCodes
from cepheid.errors import NotSupportedError
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Unpack

    from cepheid.automata.program import Program
    from cepheid.engine.evaluations.base import Bounds, Chunk, HasBytes
    from cepheid.engine.evaluations.block_run import Room
    from cepheid.engine.evaluations.events import Events
    from cepheid.engine.evaluations.method import Task
    from cepheid.engine.memory.pools import Array
    from cepheid.language.syntax import Strategy

CODE_LIMIT = 1 << 18
"""Different letters that the tables hold; past it they are forgotten and learned anew."""


@record
class SupportSizes:
    """First sizes of the growing arrays; tests make them tiny.

    places: entries of a new ring. most_supports, most_positions: of one chunk (a longer support is one chunk).
    """

    places: int = 4
    supports: int = 1 << 10
    most_supports: int = 1 << 16
    positions: int = 1 << 13
    most_positions: int = 1 << 20
    scratch: int = 1 << 8
    codes: int = CODE_LIMIT


class SupportEvaluation(BlockRun):
    """The run state of one strategy over any number of partitions; the interface is that of `Evaluation`.

    program: see `Labelling`. Memory is bounded by the marked events of the window, without a window by all marked events.
    """

    kernel_name: ClassVar[str]
    kind: ClassVar[type[np.generic]] = np.int64
    counters: ClassVar[tuple[str, ...]] = ("events", "matches", "triggers", "skipped", "epoch")

    def __init__(self, program: Program, *, sizes: SupportSizes | None = None, **bounds: Unpack[Bounds]) -> None:
        self.sizes = sizes = sizes or SupportSizes()
        self.program = program
        room: Room = {
            "lists": sizes.supports,
            "marks": sizes.positions,
            "most_lists": sizes.most_supports,
            "most_marks": sizes.most_positions,
        }
        super().__init__(self.kernel_name, bounds, places=sizes.places, **room)
        self.codes = LetterCodes(program.bits)
        self.labelling = Labelling(program, variant=self.variant)
        self.matches = 0
        self.mends["letter"] = "_mend_letter"
        self._set("letter_mask", self.codes.letter_mask)

    # ------------------------------------------------------------------------------------------------ what a subclass says

    @abstractmethod
    def _tables(self) -> tuple[Array, ...]:
        """The kernel's arguments between the shared ones and the outputs."""

    @abstractmethod
    def _learned(self, code: int, letter: int) -> None:
        """Extend the tables by the code of a new letter; codes come in the order of their numbers."""

    @abstractmethod
    def _forgotten(self) -> None:
        """All codes have been forgotten: empty the tables that they index."""

    @abstractmethod
    def _letters(self, entries: list[Array]) -> Array:
        """The letters in the entries of each ring (int64)."""

    # ------------------------------------------------------------------------------------------------ what users of it see

    def _begin(self, events: Events) -> Array:
        self.labelling.begin()
        return self.codes.begin(events.letters)

    def _parts(self) -> Iterable[Array | HasBytes]:
        return (self._vector, self.codes, *self._tables(), *self._buffers)

    # ------------------------------------------------------------------------------------------------ state

    def letters_in(self, sections: Mapping[str, Any]) -> Array:
        """The letters of events that what `dump` gave speaks of, in any order (int64)."""
        return self._letters(self._entries(sections))

    # ------------------------------------------------------------------------------------------------ the kernel's arrays

    def _arrays(self) -> tuple[Array, ...]:
        store = self.store
        shared = (self._vector, *self._batch, self.codes.lut, self.codes.letter_of, store.words, store.offsets, store.template)
        return (*shared, *self._tables(), *self._buffers, self.marked)

    # ------------------------------------------------------------------------------------------------ output

    def _taken(self) -> Iterator[Chunk]:
        """The matches on the buffered supports."""
        found = self._buffered()
        if found is None:
            return
        offsets, positions, letters, segments = found
        for labelled in self.labelling.label(SupportChunk(offsets, positions, letters.view(np.uint64), segments), self.limit):
            self.matches += len(labelled)
            yield labelled

    # ------------------------------------------------------------------------------------------------ what the kernel lacks

    def _mend_letter(self) -> None:
        if len(self.codes.letters) >= self.sizes.codes:
            self.codes.forget()
            self._forgotten()
        index = int(self._batch[0][self._get("row")]) & self.codes.letter_mask
        code = self.codes.learn(index)
        self._learned(code, self.program.automaton.alphabet.mask_of(self.codes.letters[code]))


def waiting(program: Program) -> WaitingAutomaton:
    """The automaton of a program as a waiting one; raises NotSupportedError outside the fragment."""
    automaton = WaitingAutomaton.of(program.automaton)
    if automaton is None:
        raise NotSupportedError(
            "this evaluation needs a pattern whose partial matches may wait: `;`, `+` and OR", help="choose per end instead"
        )
    return automaton


class SupportMethod(Method):
    """What NXT, LAST and MAX have in common: their kernels read a waiting automaton, before SELECT's projection."""

    strategy: ClassVar[Strategy]

    def serves(self, task: Task) -> bool:
        """The one strategy; COUNT(*) counts what it chooses."""
        return task.strategy is self.strategy

    def fits(self, task: Task) -> str | None:
        """A partial match must be able to wait."""
        return task.obstacle

    def program(self, task: Task) -> SupportProgram:
        """The automaton with all its marks, and what is shown of them."""
        shown = frozenset().union(*task.whole.label_sets) if task.shown is None else frozenset(task.shown)
        return SupportProgram(task.whole.automaton, shown)
