"""An evaluation of a query whose events say more than a letter has room for: spellings come in, and it reads their numbers.

Comes in: spellings, a row of words per event (`engine.letters.words`). Goes out: what the evaluation inside gives, which reads letters as any other.
Its state has letters, and so numbers; the table of those that it has goes into a snapshot with it (`engine.letters.numbers`). Once many more
numbers have been given than the state has, the evaluation moves into a fresh one, as from a snapshot, and the other numbers are free again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cepheid.engine.evaluations.around.trackers import Tracked
from cepheid.engine.evaluations.around.valued import Valued
from cepheid.engine.evaluations.base import Around
from cepheid.engine.letters.encoded import Texts
from cepheid.engine.letters.numbers import Numbers
from cepheid.errors import SnapshotError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from cepheid.automata.program import Program
    from cepheid.engine.evaluations.base import AnyEvaluation, Chunk
    from cepheid.engine.evaluations.events import Events
    from cepheid.engine.memory.stored import Stored

COLLECT_FROM = 1 << 16
"""Numbers up to which nothing is looked at: some 20 MB."""


def started(
    program: Program, start: Callable[[Program], AnyEvaluation], texts: Texts | None = None, *, variant: str | None
) -> AnyEvaluation:
    """An evaluation of a program, without any state.

    start: makes one that reads letters, those of trackers too. texts: those of the program's values. variant: of the trackers' kernel.
    """

    def tracked(program: Program) -> AnyEvaluation:
        return Tracked(start(program), program, variant=variant) if program.trackers else start(program)

    run = Numbered(program, tracked) if program.automaton.alphabet.number_bits else tracked(program)
    return Valued(program, Texts() if texts is None else texts, run) if program.values else run


class Numbered(Around):
    """An evaluation that reads spellings; the same interface.

    program: its letters begin with numbers. start: makes the evaluation inside, given the program that reads them. Costs O(words) per event
    beside it, and once per different spelling O(predicates).
    """

    def __init__(self, program: Program, start: Callable[[Program], AnyEvaluation]) -> None:
        moves = [move for automaton in program.readers for move in automaton.transitions]
        moves += [move for automaton in program.readers for tracker in automaton.trackers for move in tracker.moves]
        self.numbers = Numbers(program.automaton.alphabet, list(dict.fromkeys((move.requires, move.forbids) for move in moves)))
        self._program = program.reading(self.numbers.numbering)
        self._start = start
        self._collect_at = COLLECT_FROM
        super().__init__(start(self._program))

    def chunks(self, events: Events) -> Iterator[Chunk]:
        """Read a batch, as `Evaluation.chunks`; letters: spellings."""
        if len(self.numbers) > self._collect_at:
            self._collect()
        yield from self.evaluation.chunks(events.with_letters(self.numbers.read(events.letters)))

    def _collect(self) -> None:
        """Keep the numbers that the state has, and forget what it has learned of the others."""
        sections = self.evaluation.dump()
        self.numbers.keep(self.numbers.of(self.evaluation.letters_in(sections)).tolist())
        self.evaluation = self._start(self._program)
        self.evaluation.load(sections)
        self._collect_at = max(COLLECT_FROM, 2 * len(self.numbers))

    def memory_usage(self) -> int:
        """Bytes of the run state."""
        return self.numbers.nbytes + super().memory_usage()

    def dump(self) -> Mapping[str, Any]:
        """The live state as named sections, with the numbers that are in it."""
        sections = self.evaluation.dump()
        return {**sections, **self.numbers.dump(self.numbers.of(self.evaluation.letters_in(sections)))}

    def load(self, sections: Mapping[str, Any], stored: Stored | None = None) -> None:
        """Go on, fresh, from what `dump` gave; raises SnapshotError where that does not fit."""
        try:
            self.numbers.load(sections)
        except (KeyError, TypeError, ValueError) as error:
            raise _damaged() from error
        self.evaluation.load(sections, stored)
        if not self.numbers.numbering.keys() >= set(self.numbers.of(self.evaluation.letters_in(sections)).tolist()):
            raise _damaged()


def _damaged() -> SnapshotError:
    return SnapshotError("the snapshot is damaged: its letters do not fit together", help="use another snapshot, or start again without it")
