"""A query over events that are read piece by piece: the whole answer within an allowance, or the answer in pieces too.

Comes in: a `Recognizer` and the events in pieces. Goes out: `Matches`, or `Batches`, which holds the window and one chunk of matches, however many
there are. Both give the matches in the order of the events that end them; with NOT FOLLOWED BY .. FROM START, those that a piece decides.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from cepheid.engine.evaluations.progress import heard
from cepheid.engine.memory.process import named_memory
from cepheid.engine.output.identity import Repeats
from cepheid.engine.output.matches import Matches, concatenate
from cepheid.engine.run.allowance import Allowance
from cepheid.engine.run.one_at_a_time import OneAtATime
from cepheid.errors import InputError
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy as np

    from cepheid.engine.evaluations.progress import Progress
    from cepheid.engine.output.matches import Layout
    from cepheid.engine.run.intake import Decided, Intake
    from cepheid.engine.run.recognizer import Recognizer

Answer = TypeVar("Answer")

END = "end"
"""`until` of events that nothing will follow."""

PIECE = 1 << 16
"""Events of a table that are read at a time."""


def pieces_of(events: pa.Table, rows: np.ndarray[Any, Any] | None) -> Iterator[pa.Table]:
    """A table in pieces of `PIECE` rows; rows: their order, None: as they are."""
    for start in range(0, events.num_rows, PIECE):
        yield events.slice(start, PIECE) if rows is None else events.take(pa.array(rows[start : start + PIECE]))


def decided(
    recognizer: Intake[Answer],
    pieces: Iterable[pa.Table | pa.RecordBatch],
    *,
    until: int | str | None,
    progress: Progress | None,
) -> Iterator[Decided[Answer]]:
    """What is decided by each piece, and at the end; to be made before the next is asked for."""
    done = 0
    for piece in pieces:
        if progress is not None:
            progress.within(piece.num_rows, lambda: recognizer.passed)
        with recognizer.reading(piece) as found:
            yield found
        done += piece.num_rows
        if progress is not None:
            progress(done)
    complete = recognizer.latest if until is None else until
    if complete == END:
        with recognizer.ending() as found:
            yield found
        with recognizer.waiting() as found:
            yield found
    elif isinstance(complete, int):
        with recognizer.passing(complete + 1) as found:
            yield found


def _left(recognizer: Recognizer, until: int | str | None) -> Matches:
    """What is undecided at the end."""
    return recognizer.compiled.layout.nothing if until == END else recognizer.undecided()


def whole(
    recognizer: Recognizer,
    pieces: Iterable[pa.Table | pa.RecordBatch],
    *,
    until: int | str | None = None,
    progress: Progress | None = None,
    max_bytes: int | None = None,
) -> Matches:
    """The matches in events that are not kept; until, max_bytes: as for `batch.run`; progress: is told how far it is. Raises as `batch.run`."""
    allowance = Allowance(max_bytes)
    parts = [found.all(allowance) for found in decided(recognizer, pieces, until=until, progress=progress)]
    together = concatenate(recognizer.compiled.layout, parts, null_keys=recognizer.null_keys)
    return dataclasses.replace(together, waiting=_left(recognizer, until))


@record
class BatchesRest:
    """What is known once all batches have been read: see `Matches`."""

    undecided: Matches
    null_keys: int
    warnings: tuple[str, ...]


class Batches:
    """The matches of a query in batches: an iterator of `Matches`. `Query.batches` returns one.

    The batches are made when they are read, and can be read once. The matches and their order are those of `Query.run`. It holds the events of the
    window, one piece of the events and one batch of at most 2**18 matches (`match.CHUNK_MATCHES`). It is also an Arrow stream (`to_reader`, and
    ``__arrow_c_stream__``) with the rows of `Matches.to_arrow`. Only one thread at a time may read it; another one gets an InUseError.
    """

    def __init__(self, layout: Layout, found: Iterator[Matches], ending: Callable[[], BatchesRest]) -> None:
        self._layout = layout
        self._found = found
        self._ending = ending
        self._rest: BatchesRest | None = None
        self._use = OneAtATime("these batches")

    @classmethod
    def of(
        cls,
        recognizer: Recognizer,
        pieces: Iterable[pa.Table | pa.RecordBatch],
        *,
        warnings: Callable[[], tuple[str, ...]],
        layout: Layout,
        shown: Callable[[Matches], Matches],
        until: int | str | None = None,
        progress: Progress | None = None,
    ) -> Batches:
        """The matches in events.

        recognizer: an interleaved one. warnings: about the events, once they have been read. layout: of what `shown` makes of its matches.
        until, progress: as for `whole`.
        """
        found = decided(recognizer, pieces, until=until, progress=progress)
        made = heard((shown(matches) for each in found for matches in each.pieces()), progress)
        return cls(layout, made, lambda: BatchesRest(shown(_left(recognizer, until)), recognizer.null_keys, warnings()))

    def __iter__(self) -> Batches:
        return self

    @named_memory()
    def __next__(self) -> Matches:
        with self._use.alone():
            if self._rest is None:
                for matches in self._found:
                    return matches
                self._rest = self._ending()
        raise StopIteration

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of `to_reader()`."""
        return self._layout.schema()

    def to_reader(self, *, events: bool = False, match_id: str | None = None) -> pa.RecordBatchReader:
        """The matches that have not been read yet, as a pyarrow.RecordBatchReader with the rows of `Matches.to_arrow` with the same arguments.

        match_id: as of that; wherever batches are cut, the identities are those of the whole. Raises as that.
        """
        schema, repeats = self._layout.schema(events=events), Repeats()
        if match_id is not None:
            schema = self._layout.nothing.to_arrow(events=events, match_id=match_id).schema

        def rows() -> Iterator[pa.RecordBatch]:
            for matches in self:
                table = matches.to_arrow(events=events)
                yield from (table if match_id is None else matches.with_identities(table, match_id, repeats)).to_batches()

        return pa.RecordBatchReader.from_batches(schema, rows())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    @property
    def undecided(self) -> Matches:
        """The matches that are not decided: what NOT FOLLOWED BY forbids may still follow them. Known after the last batch, before it InputError."""
        return self._known().undecided

    @property
    def null_keys(self) -> int:
        """How many events were dropped because of a NULL in their PARTITION BY key. Known after the last batch, before it InputError."""
        return self._known().null_keys

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings about the events, see `Matches.warnings`. Known after the last batch, before it InputError."""
        return self._known().warnings

    def _known(self) -> BatchesRest:
        if self._rest is None:
            raise InputError(
                "`undecided`, `null_keys` and `warnings` are known only after the last batch",
                help="read all batches first: for matches in batches: ..",
            )
        return self._rest

    def __repr__(self) -> str:
        return f"<matches in batches, {'all read' if self._rest else 'made as they are read'}: {', '.join(self.schema.names)}>"
