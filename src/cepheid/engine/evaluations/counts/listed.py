"""Matches that are looked at one by one, where nothing counts them or chooses among them without a look at each: at most so many of a trigger."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cepheid.engine.evaluations.base import Around
from cepheid.errors import LimitError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cepheid.engine.evaluations.base import AnyEvaluation, Chunk
    from cepheid.engine.evaluations.events import Events
    from cepheid.errors import Span

    Place = tuple[str | None, Span | None]

MAX_LISTED = 1 << 24
"""Most matches of one trigger that are looked at one by one, for HAVING or to count them: some seconds."""

MAX_COMPARED = 1 << 16
"""The same where NXT, LAST or MAX choose among them, between CONSUME BY and HAVING."""


def most_of(*, compared: bool) -> tuple[str, int]:
    """Of how many matches of a trigger each is looked at: the name of the limit, and the limit."""
    return ("MAX_COMPARED", MAX_COMPARED) if compared else ("MAX_LISTED", MAX_LISTED)


def bounded(chunks: Iterator[Chunk], place: Place = (None, None), *, compared: bool = False) -> Iterator[Chunk]:
    """The chunks that are not empty. place: the text of the query and what it looks at, for the error.

    Raises LimitError for a trigger with more matches than are looked at; O(matches).
    """
    name, most = most_of(compared=compared)
    last, own = None, 0
    for chunk in chunks:
        if not len(chunk):
            continue
        first = chunk.triggers
        trigger = trigger_of(chunk, -1)
        own = (own if last == trigger_of(chunk, 0) else 0) + len(chunk) if len(first) == 1 else len(chunk) - int(first[-1])
        last = trigger
        if max(own, int(np.diff(first).max(initial=0))) > most:
            text, span = place
            raise LimitError(
                f"the event at position {trigger[1]} completes more than {most:,} matches, the limit where each is looked at ({name})",
                help=(
                    "make them fewer: a shorter WITHIN, or conditions on events in FILTER; SELECT MAX, NXT and LAST choose before",
                    f"{__name__}.{name} is the limit",
                ),
                text=text,
                span=span,
            )
        yield chunk


def trigger_of(chunk: Chunk, number: int) -> tuple[int, int]:
    """(segment, position) of the event that ends a match."""
    return int(chunk.segments[number]), int(chunk.ends[number])


class Listed(Around):
    """An evaluation whose matches are counted once it is known which of them are left: at most so many of a trigger. place: see `bounded`."""

    def __init__(self, evaluation: AnyEvaluation, place: Place) -> None:
        super().__init__(evaluation)
        self._place = place

    def chunks(self, events: Events) -> Iterator[Chunk]:
        """Read a batch, as `Evaluation.chunks`; raises LimitError past MAX_LISTED."""
        return bounded(self.evaluation.chunks(events), self._place)
