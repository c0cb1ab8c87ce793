"""Evaluations that choose supports: what NXT, LAST and MAX have in common.

Comes in: letters, as for `cepheid.engine.evaluations.match.Evaluation`, which has the same interface. Goes out: the matches on the supports that the
strategy's kernel chooses. A subclass says what a block holds, keeps the tables of its kernel, and mends what is its own; here are the loop around
the kernel, the output, the partitions' blocks, the window and the snapshot.

What a kernel of this kind keeps to:

* its vector S has the FIELDS named in `SHARED_FIELDS`, its arguments begin with those of `SupportEvaluation._arrays` and end with the
  outputs and `marked`;
* a block begins with the words of HEADER, and the entries of its ring 0 begin with (position, time) of the events that may start a match,
  where there is a time window: that turns the window into `oldest`, the least start still inside;
* rings hold letters, not codes, so codes can be forgotten at any time;
* an event is read to its end or not at all: every exit leaves S[row] at an event that has changed nothing yet (or in an enumeration that S
  itself describes).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cepheid.automata.supports import SupportProgram
from cepheid.automata.waiting import WaitingAutomaton
from cepheid.engine.evaluations.base import ALL, BufferedRun
from cepheid.engine.evaluations.labelling import Labelling, SupportChunk
from cepheid.engine.evaluations.method import Method
from cepheid.engine.letters.codes import LetterCodes
from cepheid.engine.memory.blocks import Blocks, Ring
from cepheid.engine.memory.checks import demand, inside
from cepheid.errors import NotSupportedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Unpack

    from cepheid.automata.program import Program
    from cepheid.engine.evaluations.base import Bounds, Chunk, HasBytes
    from cepheid.engine.evaluations.events import Events
    from cepheid.engine.evaluations.method import Task
    from cepheid.engine.memory.blocks import BlockLayout
    from cepheid.engine.memory.pools import Array
    from cepheid.engine.memory.stored import Stored
    from cepheid.language.syntax import Strategy

HEADER = (0, 0, 0, 0, -1, 0)
"""First words of a new block."""

POSITION, LOW, EPOCH, LAST_TIME, NEWEST_START, NEWEST_TIME = range(6)
"""Position of the partition's next event; least start that consumption allows; epoch when it was last read; time of its last event; position
and time of the last event that may start a match."""

KEPT = 4
"""Words of the header that outlive `expire`."""

STARTS = Ring(2)
"""Ring 0 of every block: (position, time) of the events that may start a match; empty without a time window."""

CODE_LIMIT = 1 << 18
"""Different letters that the tables hold; past it they are forgotten and learned anew."""

SHARED_FIELDS = (
    "row",  # next row of the batch
    "segment",  # index of the segment being read, -1 before the first
    "segment_end",  # row where it ends
    "window",  # ! time window
    "timed",  # ! 1 with a time window
    "count_window",  # ! position window, 0 none
    "consume",  # ! see evaluation.CONSUME
    "limit",  # ! matches per trigger, 0 = count the triggers only
    "continued",  # ! 1: the first segment goes on with row 0
    "letter_mask",  # !
    "epoch",  # triggers so far that consumed all partitions
    "argument",  # of the exit code
    "buffered_matches",  # supports in the output
    "buffered_positions",
    "triggers",  # events that ended a match
    "skipped",  # events passed by the skip loop
    "budget",  # ! what may be done before the kernel returns
)
"""Fields of a kernel's vector that are set or read here; "!" marks what the kernel never writes."""


@dataclass(frozen=True, slots=True)
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


class SupportEvaluation(BufferedRun):
    """The run state of one strategy over any number of partitions; the interface is that of `Evaluation`.

    program: see `Labelling`. Memory is bounded by the marked events of the window, without a window by all marked events.
    """

    kernel_name: ClassVar[str]
    workplace: ClassVar[int] = 0
    kind: ClassVar[type[np.generic]] = np.int64
    counters: ClassVar[tuple[str, ...]] = ("events", "matches", "triggers", "skipped", "epoch")

    def __init__(self, program: Program, *, sizes: SupportSizes | None = None, **bounds: Unpack[Bounds]) -> None:
        self.sizes = sizes = sizes or SupportSizes()
        room = {"lists": sizes.supports, "marks": sizes.positions, "most_lists": sizes.most_supports, "most_marks": sizes.most_positions}
        super().__init__(self.kernel_name, bounds, **room)
        self.program = program
        self.codes = LetterCodes(program.bits)
        self.labelling = Labelling(program, variant=self.variant)
        self.store: Blocks = Blocks(self._layout(), places=self.sizes.places)
        self.matches = 0
        self.mends |= {
            "letter": self._mend_letter,
            "ring": self._mend_ring,
        }
        self._set("limit", ALL if self.limit is None else self.limit)
        self._set("letter_mask", self.codes.letter_mask)

    # ------------------------------------------------------------------------------------------------ what a subclass says

    @abstractmethod
    def _layout(self) -> BlockLayout:
        """What a block holds: words that begin with HEADER, rings that begin with STARTS, kept=KEPT."""

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

    @abstractmethod
    def _check(self, words: Array, entries: list[Array]) -> None:
        """Raise ValueError where the plain words of blocks and the entries of their rings, from a snapshot, are no state of this evaluation."""

    # ------------------------------------------------------------------------------------------------ what users of it see

    def _begin(self, events: Events) -> Array:
        self.labelling.begin()
        return self.codes.begin(events.letters)

    def _idle(self, time: int) -> Array:
        idle, oldest = self.store.offsets < 0, self._since(time)
        held = self.store.held_rows
        words = self.store.plain(held)
        idle[held] = words[:, NEWEST_START] < self._lows(words)
        if oldest is not None:
            idle[held] |= words[:, NEWEST_TIME] < oldest
        return idle

    def _parts(self) -> Iterable[Array | HasBytes]:
        return (self._vector, self.codes, *self._tables(), *self._buffers)

    def _needed(self) -> int:
        rows = self.store.used
        return self.store.needed(rows, self._oldest(rows, self.store.plain(rows)))

    # ------------------------------------------------------------------------------------------------ state

    def dump(self) -> dict[str, bytes]:
        """The live state of all partitions as named sections, little-endian; the evaluation is unchanged. Linear in the blocks."""
        rows = self.store.used
        words = self.store.plain(rows)
        return {"counters": self._count().tobytes(), **self.store.dump(rows, words, self._oldest(rows, words))}

    def _restore(self, sections: Mapping[str, Any], stored: Stored | None) -> None:
        self.store.load(sections, check=self._check_state, stored=stored)

    def letters_in(self, sections: Mapping[str, Any]) -> Array:
        """The letters of events that what `dump` gave speaks of, in any order (int64)."""
        rings = self.store.layout.rings
        counts = np.diff(np.frombuffer(sections["rings"], "<i8").reshape(-1, len(rings), 2)).sum(axis=(0, 2))
        widths = np.array([ring.width for ring in rings], np.int64)
        split = np.split(np.frombuffer(sections["entries"], "<i8"), np.cumsum(counts * widths)[:-1])
        return self._letters([part.reshape(-1, ring.width) for part, ring in zip(split, rings, strict=True)])

    def _check_state(self, words: Array, entries: list[Array]) -> None:
        position, low, newest, epoch = words[:, POSITION], words[:, LOW], words[:, NEWEST_START], words[:, EPOCH]
        demand(inside(low, 0, position + 1), inside(newest, -1, np.maximum(position, 1)), inside(epoch, 0, self._get("epoch") + 1))
        self._check(words, entries)

    def _lows(self, words: Array) -> Array:
        """Per block, given its plain words, the least start that consumption and the position window allow a later match."""
        low: Array = np.where(words[:, EPOCH] == self._get("epoch"), words[:, LOW], words[:, POSITION])
        if self.count_window is not None:
            low = np.maximum(low, words[:, POSITION] + 1 - self.count_window)
        return low

    def _oldest(self, rows: Array, words: Array) -> Array:
        """Per row, the least start that a match which ends after the partition's last event may have, as far as is known by then."""
        oldest = self._lows(words)
        held = np.flatnonzero(self.store.offsets[rows] >= 0)
        if self.window is None:
            return oldest
        owner, places = self.store.places(rows[held], 0)
        # Unsigned: the difference of two int64 times cannot overflow.
        age = words[held, LAST_TIME][owner].view(np.uint64) - self.store.words[places + 1].view(np.uint64)
        recent = age <= np.uint64(self.window)
        first_inside = words[held, POSITION].copy()
        np.minimum.at(first_inside, owner[recent], self.store.words[places[recent]])
        oldest[held] = np.maximum(oldest[held], first_inside)
        return oldest

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

    def _mend_ring(self) -> None:
        """Ring `argument` of the partition being read is full."""
        self.store.grow(self._row(), self._get("argument"))

    def _mend_pool(self) -> None:
        """The kernel gives out a block of `argument` words, for which there is no room."""
        self.store.reserve(self._get("argument"))

    def _row(self) -> int:
        """The row of the partition being read."""
        return int(self._batch[3][self._get("segment")])


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
