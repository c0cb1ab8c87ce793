"""CONSUME BY PARTITION where the largest matches say of which trigger something is left: no match of the others is listed.

HAVING may ask for what grows with a match (`logical.growing`): then a match of a trigger meets it only if a largest one does. So another evaluation,
the GUIDE, gives the largest matches, and these are judged; the evaluation that lists all matches reads the same events without listing any, but for
the triggers of which something is left. Where any match will do, the guide's own are given.

A sum grows only while no event has less than 0, and while it does not leave its type. Who drives the evaluation says so before each batch (`add`).
Once it is not so, there is no guide any more, and all matches are listed, as `Consuming` does it, for as long as there is the state: the evaluation
that lists has read all that it needs. A stored state has a guide or none; one without goes on without.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from cepheid.engine.evaluations.base import Around
from cepheid.engine.evaluations.choosing.consuming import Consuming, Left, index_of, inside_of
from cepheid.engine.memory.checks import demand, fitting
from cepheid.engine.memory.pools import offsets_of
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from cepheid.engine.evaluations.base import AnyEvaluation, Chunk
    from cepheid.engine.evaluations.choosing.consuming import Judge, Piece
    from cepheid.engine.evaluations.events import Events
    from cepheid.engine.evaluations.graph.match import Evaluation
    from cepheid.engine.memory.pools import Array
    from cepheid.engine.memory.stored import Stored
    from cepheid.logical.growing import Need

GUIDE = "guide."
"""What the names of the guide's sections begin with."""

SECTION = "growing"

ROOM = 0.5
"""The part of what a sum has room for up to which its values may add up: less than all of it, for it is added in doubles."""


SHORT = 5
"""Events that a partition has had since it starts anew, up to which all matches of an event are listed that is pushed alone: they are few."""


@record(slots=False)
class Guide:
    """What says of which triggers something is left.

    evaluation: gives the largest matches, as the evaluation that lists labels them. one: whether any match of a trigger will do. start: makes another
    evaluation that lists.
    """

    evaluation: AnyEvaluation
    one: bool
    start: Callable[[], Evaluation]


class Labelled(Around):
    """An evaluation with other numbers for its labels."""

    def __init__(self, evaluation: AnyEvaluation, labels: Array) -> None:
        super().__init__(evaluation)
        self._labels = labels

    def chunks(self, events: Events) -> Iterator[Chunk]:
        """As the evaluation inside."""
        for chunk in self.evaluation.chunks(events):
            yield dataclasses.replace(chunk, labels=self._labels[chunk.labels])


class Guided(Consuming):
    """`Consuming` with a guide; the same interface. evaluation: lists all matches."""

    evaluation: Evaluation

    def __init__(self, evaluation: Evaluation, judge: Judge, begins: Callable[[Array], Array], guide: Guide, *, need: Need | None) -> None:
        super().__init__(evaluation, judge, begins, lists=False, rereads=True, need=need)
        self.guide: Guide | None = guide
        self._spare: Evaluation | None = None  # lists the matches of partitions that are not kept
        self._used = 0.0

    def add(self, part: float) -> None:
        """Say of the events that are read next which part of the room of a sum their values may take; inf: it may not grow with the match."""
        self._used += part
        if not self._used <= ROOM:
            self._list_all()

    def _list_all(self) -> None:
        self.guide = self._spare = None
        self._lists = True

    # ------------------------------------------------------------------------------------------------------------------- what is read

    @property
    def _readers(self) -> tuple[AnyEvaluation, ...]:
        return (self.evaluation,) if self.guide is None else (self.guide.evaluation, self.evaluation)

    def _left(self, read: Events, rows: Array | slice, piece: Piece, left: Left) -> Iterator[tuple[Chunk, Array]]:
        guide = self.guide
        if guide is None:
            yield from super()._left(read, rows, piece, left)
            return
        if (
            len(read) == 1 and piece.done[0] < SHORT and read.slots[0] >= 0
        ):  # PERF: pushed alone, one reading more costs more than a few matches
            yield from super()._left(read, rows, piece, left)
            if left.first[0] < 0:
                for _ in guide.evaluation.chunks(read):
                    pass
                self._mark(guide.evaluation.marked, rows)
            return
        for chunk, segments in self._judged(guide.evaluation, read, rows, piece, left):
            those = left.see(segments, chunk.ends)
            if guide.one and len(those):
                yield chunk.take(those), segments[those]
        # What starts anew is forgotten, and what is not kept ends here.
        on = np.flatnonzero((read.slots >= 0) & (left.first < 0))
        lengths = np.diff(read.cuts, append=len(read))
        self._pass(self.evaluation, read, rows, read.cuts[on], lengths[on], read.slots[on])
        if not guide.one and not left.later:
            yield from self._listed(read, rows, piece, left.first, np.flatnonzero(left.first >= 0))

    def _given(self, events: Events, piece: Piece, triggers: Array, found: list[tuple[Chunk, Array]], numbers: Array) -> Iterator[Chunk]:
        if self.guide is None or self.guide.one:
            yield from super()._given(events, piece, triggers, found, numbers)
            return
        index = index_of(piece.rows, piece.lengths)
        read = events.of(index, cuts=offsets_of(piece.lengths)[:-1], slots=np.full(len(piece.rows), -1, np.int32))
        for chunk, own in self._listed(read, index, piece, triggers, np.arange(len(triggers))):
            yield dataclasses.replace(chunk, segments=own.astype(np.int32))

    def _listed(self, read: Events, rows: Array | slice, piece: Piece, triggers: Array, numbers: Array) -> Iterator[tuple[Chunk, Array]]:
        """All matches that are left of one trigger of some segments each, by their numbers, with the segment of each match."""
        kept = read.slots[numbers] >= 0
        for own, mine in ((True, numbers[kept]), (False, numbers[~kept])):
            if not len(mine):
                continue
            if own:
                evaluation, slots = self.evaluation, read.slots[mine]
            else:
                evaluation, slots = self._another(len(mine)), np.arange(len(mine), dtype=np.int32)
            before = triggers[mine] - piece.low[mine] - piece.done[mine]
            self._pass(evaluation, read, rows, read.cuts[mine], before, slots)
            index = read.cuts[mine] + before
            last = read.of(index, cuts=np.arange(len(mine)), slots=slots)
            where = dataclasses.replace(piece, low=piece.low[mine], segments=piece.segments[mine])
            for chunk, segments in self._judged(evaluation, last, inside_of(rows, index), where, Left(len(mine))):
                yield chunk, mine[segments]
            if not own:
                evaluation.release(slots)

    def _another(self, count: int) -> Evaluation:
        """The evaluation of partitions that are not kept, with so many slots."""
        assert self.guide is not None
        if self._spare is None:
            self._spare = self.guide.start()
        self._spare.ensure_slots(count)
        return self._spare

    # ------------------------------------------------------------------------------------------------------------------------ state

    def _begin_anew(self, slots: Array) -> None:
        super()._begin_anew(slots)
        if self.guide is not None:
            self.guide.evaluation.restart(slots)

    def _fit(self, count: int) -> None:
        super()._fit(count)
        if self.guide is not None:
            self.guide.evaluation.ensure_slots(count)

    def expire(self, time: int) -> Array:
        """Free what no match can go on with; returns the idle slots."""
        if self.guide is not None:
            self.guide.evaluation.expire(time)
        return super().expire(time)  # of more matches

    def memory_usage(self) -> int:
        """Bytes of the run state."""
        others = (self._spare, None if self.guide is None else self.guide.evaluation)
        return super().memory_usage() + sum(each.memory_usage() for each in others if each is not None)

    @property
    def wasteful(self) -> bool:
        """Whether a fresh instance with the same state would need much less memory."""
        return super().wasteful or (self.guide is not None and self.guide.evaluation.wasteful)

    def dump(self) -> Mapping[str, Any]:
        """As that of `Consuming`; the guide's beside it, and how much of the room of a sum has been used."""
        sections = super().dump()
        if self.guide is None:
            return sections
        guide = {GUIDE + name: section for name, section in self.guide.evaluation.dump().items()}
        return {**sections, **guide, SECTION: np.array([self._used], "<f8").tobytes()}

    def _load(self, sections: Mapping[str, Any], stored: Stored | None) -> None:
        super()._load(sections, stored)
        if SECTION not in sections:
            self._list_all()
            return
        assert self.guide is not None
        with fitting(f"its section `{SECTION}` does not fit"):
            (self._used,) = np.frombuffer(sections[SECTION], "<f8").tolist()
            demand(0.0 <= self._used <= ROOM)
        self.guide.evaluation.load({name.removeprefix(GUIDE): part for name, part in sections.items() if name.startswith(GUIDE)}, stored)
