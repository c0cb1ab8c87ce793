"""Matches that wait: with FOR d FROM START each has a deadline of its own, so matches are kept, and not events, until it has passed.

Comes in: the matches of a batch, as the evaluation makes them, with the times of their first events. Goes out: those that are decided, in the order
of the events that end them. Memory: the matches of the last d that nothing has vetoed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cepheid.engine.evaluations.absences.absence import Ends, longest, undecided, vetoed_matches
from cepheid.engine.evaluations.base import Chunk
from cepheid.engine.memory.checks import demand, inside, numbers
from cepheid.engine.memory.pools import NUMBER_LIMIT, offsets_of
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cepheid.engine.evaluations.absences.absence import Absence
    from cepheid.engine.memory.pools import Array
    from cepheid.engine.memory.stored import Stored


@record
class Lines:
    """Some matches. slots: of their partitions. starts, ends: the times of their first and last events. places: of the last ones in the stream."""

    chunk: Chunk
    slots: Array
    starts: Array
    ends: Array
    places: Array

    def __len__(self) -> int:
        return len(self.slots)

    def take(self, chosen: Array) -> Lines:
        """Those with these numbers, in this order."""
        return Lines(self.chunk.take(chosen), self.slots[chosen], self.starts[chosen], self.ends[chosen], self.places[chosen])

    @property
    def nbytes(self) -> int:
        """Bytes of all columns."""
        parts = (self.chunk.offsets, self.chunk.positions, self.chunk.labels, self.slots, self.starts, self.ends, self.places)
        return sum(int(part.nbytes) for part in parts)

    @classmethod
    def joined(cls, parts: Sequence[Lines]) -> Lines:
        """Several, one after the other."""
        if len(parts) == 1:
            return parts[0]
        offsets = offsets_of(np.concatenate([np.zeros(0, np.int64), *(np.diff(part.chunk.offsets) for part in parts)]))
        positions = np.concatenate([np.zeros(0, np.int64), *(part.chunk.positions for part in parts)])
        labels = np.concatenate([np.zeros(0, np.uint16), *(part.chunk.labels for part in parts)])
        slots = np.concatenate([np.zeros(0, np.int64), *(part.slots for part in parts)])
        times = (np.concatenate([np.zeros(0, np.int64), *(getattr(part, name) for part in parts)]) for name in ("starts", "ends", "places"))
        return cls(Chunk(offsets, positions, labels, np.zeros(len(slots), np.int32)), slots, *times)


class WaitingMatches:
    """The matches of a query with absences FROM START that are not decided yet.

    absences: all of the query. at_end: they wait from their ends on, so that those of one event are decided together (COUNT(*), EVENT definitions).
    """

    def __init__(self, absences: Sequence[Absence], *, at_end: bool = False) -> None:
        self.absences = tuple(absences)
        self.lines = Lines.joined([])
        self._at_end = at_end
        self._longest = longest([absence for absence in self.absences if absence.from_start])

    def add(self, parts: Sequence[Lines]) -> None:
        """More of them."""
        self.lines = Lines.joined([self.lines, *parts])

    def ready(self, now: int | None, completed: Sequence[Ends]) -> Lines:
        """The matches that nothing vetoes and whose deadline has passed if no event before `now` comes any more (None: all); they wait no more.

        completed: for each absence the ends of its n. O(matches that wait).
        """
        lines = self.lines
        ends = Ends(lines.slots, _last(lines.chunk), lines.ends)
        lines = lines.take(np.flatnonzero(~vetoed_matches(ends, lines.starts, completed, self.absences)))
        since = self._since(lines.starts, lines.ends)
        decided = np.ones(len(lines), np.bool_) if now is None else ~undecided(since, now - 1, self._longest)
        self.lines = lines.take(np.flatnonzero(~decided))
        found = lines.take(np.flatnonzero(decided))
        return found.take(np.argsort(found.places, kind="stable"))

    @property
    def deadline(self) -> int | None:
        """When the first of them is decided: once an event after this time has come; None: none waits."""
        return int(self.deadlines(self.lines.starts, self.lines.ends).min()) if len(self.lines) else None

    def deadlines(self, starts: Array, ends: Array) -> Array:
        """When each of some matches is decided, by the times of their first and last events."""
        return self._since(starts, ends) + self._longest

    def _since(self, starts: Array, ends: Array) -> Array:
        """The times from which they wait."""
        return ends if self._at_end else starts

    # ---------------------------------------------------------------------------------------------------------------- snapshots

    def dump(self) -> dict[str, bytes]:
        """The matches as named sections."""
        lines = self.lines
        columns = np.stack([lines.slots, np.diff(lines.chunk.offsets), lines.starts, lines.ends, lines.places])
        marks = np.stack([lines.chunk.positions, lines.chunk.labels.astype(np.int64)])
        return {"waiting": columns.astype("<i8").tobytes(), "waiting_marks": marks.astype("<i8").tobytes()}

    def load(self, sections: Mapping[str, Any], stored: Stored, *, labels: int, latest: int) -> None:
        """Go on, fresh, from what `dump` gave; raises ValueError where that does not fit. stored: the partitions, with the events of each so far."""
        slots, lengths, starts, ends, places = numbers(sections, "waiting").reshape(5, -1)
        positions, named = numbers(sections, "waiting_marks").reshape(2, -1)
        demand(inside(lengths, 1, len(positions) + 1), lengths.sum() == len(positions), inside(named, 0, labels))
        demand(starts <= ends, ends <= latest, inside(places, 0, NUMBER_LIMIT), inside(positions, 0, NUMBER_LIMIT))
        offsets = offsets_of(lengths)
        same = np.repeat(np.arange(len(lengths)), lengths)
        demand((positions[1:] > positions[:-1]) | (same[1:] != same[:-1]))
        chunk = Chunk(offsets, positions.copy(), named.astype(np.uint16), np.zeros(len(slots), np.int32))
        self.lines = Lines(chunk, stored.those(slots, _last(chunk)).astype(np.int64), starts.copy(), ends.copy(), places.copy())


def _last(chunk: Chunk) -> Array:
    """The positions of the last events."""
    last: Array = chunk.positions[chunk.offsets[1:] - 1]
    return last


def marks_of(lines: Lines) -> tuple[Array, Array, Array]:
    """The slots of some matches, how many events each has, and the positions of these."""
    return lines.slots, np.diff(lines.chunk.offsets), lines.chunk.positions
