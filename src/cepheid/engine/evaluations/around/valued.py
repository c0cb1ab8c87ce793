"""An evaluation of a program with guards: what comes in has the values of the events beside their letters, and it reads both.

Comes in: words of a letter or spelling and of values (`engine.letters.encoded`), or both apart, as a whole table has them. Goes out: what the
evaluation inside gives, which reads letters as any other, and `Events.values`. Nothing else takes the words apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cepheid.engine.evaluations.base import Around
from cepheid.engine.letters.encoded import EventForm
from cepheid.errors import SnapshotError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cepheid.automata.program import Program
    from cepheid.engine.evaluations.base import AnyEvaluation, Chunk
    from cepheid.engine.evaluations.events import Events
    from cepheid.engine.letters.encoded import Texts
    from cepheid.engine.memory.stored import Stored


class Valued(Around):
    """An evaluation that reads values; the same interface. texts: what the numbers of texts stand for."""

    def __init__(self, program: Program, texts: Texts, evaluation: AnyEvaluation) -> None:
        self._form = EventForm.of(program)
        self._texts = texts
        super().__init__(evaluation)

    def chunks(self, events: Events) -> Iterator[Chunk]:
        """Read a batch, as `Evaluation.chunks`; letters: words of events, or with values their letters, in any number of bytes."""
        words, form = events.letters, self._form
        if events.values is None:
            events = events.with_letters(form.letters(words), values=form.values(words, self._texts))
        else:
            events = events.with_letters(form.widened(words))
        yield from self.evaluation.chunks(events)

    def load(self, sections: Mapping[str, Any], stored: Stored | None = None) -> None:
        """Go on, fresh, from what `dump` gave; raises SnapshotError where that does not fit, or has texts that nobody knows."""
        # Before the evaluation puts them in order.
        if not self._texts.knows(self.evaluation.texts_in(sections)):
            raise SnapshotError(
                "the snapshot is damaged: its texts do not fit together", help="use another snapshot, or start again without it"
            )
        self.evaluation.load(sections, stored)
