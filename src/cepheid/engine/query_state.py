"""One query's run state over a stream whose partitions somebody else numbers: an evaluation, and the marked events that a match may still show.

Comes in: letters, times and events of a batch in stream order, with `Partitions.arrive` of it. Goes out: the matches that end in the batch. The
embedded `Recognizer` has one of them, a bucket of a Spark stream one per query, all over the same partitions.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.engine.absence import AbsenceState
from cepheid.engine.matches import Matches
from cepheid.engine.measures import compute
from cepheid.engine.order import NEVER
from cepheid.engine.payload import Payload, decoded
from cepheid.engine.running import collect
from cepheid.language.syntax import Consumption

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cepheid.engine.matches import Layout
    from cepheid.engine.partitions import Arrived, Partitions
    from cepheid.engine.planner import Compiled
    from cepheid.engine.running import Chunk
    from cepheid.logical.plan import Measure

Array = np.ndarray[Any, Any]


class QueryState:
    """The run state of one query over `partitions`.

    layout, measures: what matches look like, where that is not what the query says (Spark's types). variant: of the kernel.
    """

    def __init__(
        self,
        compiled: Compiled,
        partitions: Partitions,
        *,
        layout: Layout | None = None,
        measures: tuple[Measure, ...] | None = None,
        variant: str | None = None,
    ) -> None:
        self.compiled = compiled
        self.partitions = partitions
        self.layout = layout or compiled.layout
        self.measures = compiled.plan.measures if measures is None else measures
        self.variant = variant
        self.evaluation = compiled.evaluation(variant=variant)
        self.payload = Payload(self.layout.events)
        self.absences = AbsenceState(compiled, partitions, self.layout.events, variant=variant) if compiled.absences else None
        # Places in the stream up to which events are used up: of all of them, or for each slot. A snapshot has none of it, for the next trigger
        # says it again.
        self._consumed: Array | int | None = {Consumption.NONE: None, Consumption.ANY: -1}.get(compiled.consume, np.zeros(0, np.int64))

    @property
    def interleaved(self) -> bool:
        """Whether partitions are to be fed in stream order."""
        return self.compiled.interleaved

    def feed(
        self,
        letters: Array,
        times: Array,
        events: pa.Table,
        arrived: Arrived,
        *,
        first: int,
        negated: Sequence[Array] = (),
        now: int = NEVER,
    ) -> Matches:
        """The matches that are decided in a batch, in the order of the events that end them: those that end in it, without absences.

        letters, times: of the rows of `events`, which has the columns of `layout.events`. first: place of the first row in the stream. With absences:
        negated: the letters of each; now: the least time that a later event may have.
        """
        if self.absences is None:
            return self._run(letters, times, events, arrived, first)
        self.absences.read(letters, negated, times, events, arrived)
        return self.advance(now)

    def advance(self, now: int) -> Matches:
        """No event before `now` will come: the matches that this decides, which without absences are none."""
        if self.absences is None:
            return Matches.none(self.layout)
        matches = self._decided(self.absences, now)
        self.absences.forget(now)
        return matches

    def undecided(self) -> Matches:
        """The matches that wait, and that nothing has vetoed yet: what would be given if nothing came any more. O(state); nothing changes."""
        if self.absences is None:
            return Matches.none(self.layout)
        copy = QueryState(self.compiled, self.partitions, layout=self.layout, measures=self.measures, variant=self.variant)
        copy.load(*self.dump())
        assert copy.absences is not None
        return copy._decided(copy.absences, None)

    def _decided(self, absences: AbsenceState, now: int | None) -> Matches:
        ready = absences.release(now)
        if not len(ready):
            return Matches.none(self.layout)
        arrived, first = absences.arrive(ready)
        return self._run(ready.letters, ready.times, ready.events, arrived, first, places=np.cumsum(ready.shown) - 1)

    def _run(self, letters: Array, times: Array, events: pa.Table, arrived: Arrived, first: int, *, places: Array | None = None) -> Matches:
        """The matches that end in a batch and that nothing vetoes; places: of its rows in `events`, None: one by one."""
        order, cuts, slots, before = arrived.order, arrived.cuts, arrived.slots, arrived.before
        chunks: list[Chunk] = []
        grouped = slice(None) if order is None else order
        self.evaluation.feed(letters[grouped], times[grouped], cuts=cuts, slots=slots, sink=chunks.append)
        marked = np.flatnonzero(self.evaluation.marked)
        rows = marked if order is None else order[marked]
        segments = np.searchsorted(cuts, marked, "right") - 1
        kept = decoded(events.select(self.layout.events.names).take(pa.array(rows if places is None else places[rows])))
        self.payload.append(kept, slots[segments], marked + before[segments], rows + first, times[rows])
        found = collect(chunks)
        matches = self._matches(found if self.absences is None else self.absences.given(found, times, arrived), arrived)
        return dataclasses.replace(matches, measures=compute(self.measures, matches)) if self.measures else matches

    def _matches(self, found: Chunk, arrived: Arrived) -> Matches:
        offsets, positions, labels, segments = found.offsets, found.positions, found.labels, found.segments
        layout, payload, slots, order = self.layout, self.payload, arrived.slots, arrived.order
        if not len(segments):
            return Matches.none(layout)
        rows = payload.find(np.repeat(slots[segments], np.diff(offsets)), positions)
        triggers = payload.places[rows[offsets[1:] - 1]]
        if isinstance(self._consumed, int):
            self._consumed = int(triggers.max())
        elif self._consumed is not None:
            np.maximum.at(self._fitted(self._consumed), slots[segments], triggers)
        shown = payload.places[rows] if self.compiled.derived else positions
        partitions = keys = None
        if layout.keys:
            used, partitions = np.unique(slots[segments], return_inverse=True)
            keys = self.partitions.table(used).select(list(layout.keys))
        matches = Matches(layout, offsets, shown, labels, rows, payload.events, partitions, keys, counts=found.counts)
        if order is None or len(slots) == 1:
            return matches
        return matches.take(np.argsort(arrived.rows_of(segments, found.ends), kind="stable"))

    # ---------------------------------------------------------------------------------------------------------------- giving back

    def expire(self, now: int) -> Array:
        """Give back the memory of partitions in which nothing can go on at `now` or later; returns their slots (int64)."""
        self.evaluation.ensure_slots(self.partitions.slots)
        idle = self.evaluation.expire(now - self.compiled.delay)
        if self.evaluation.wasteful:
            # Pools only grow: after a burst of keys the state moves into fresh ones of the size that it has now.
            fresh = self.compiled.evaluation(variant=self.variant)
            fresh.load(self.evaluation.dump())
            self.evaluation = fresh
        return idle if self.absences is None else self.absences.expire(now, idle)

    def release(self, slots: Array) -> None:
        """Forget the partitions in these idle slots."""
        self.evaluation.release(slots)
        if self.absences is not None:
            self.absences.release_slots(slots)
        if isinstance(self._consumed, np.ndarray):
            self._fitted(self._consumed)[slots] = -1
        gone = np.isin(self.payload.slots, slots)
        if gone.any():
            self.payload.keep(~gone)

    def compact(self, now: int, *, at_once: bool = False) -> None:
        """Drop events that no later match can show, where that pays; at_once: look now."""
        compiled, consumed = self.compiled, self._consumed
        self.payload.compact(
            self.partitions.seen if self.absences is None else self.absences.released,
            window=compiled.window,
            count_window=compiled.count_window,
            now=now - self.compiled.delay,
            consumed=self._fitted(consumed) if isinstance(consumed, np.ndarray) else consumed,
            at_once=at_once,
        )

    def _fitted(self, consumed: Array) -> Array:
        """What each slot has consumed, with room for the slots that there are."""
        missing = len(self.partitions.seen) - len(consumed)
        if missing > 0:
            self._consumed = consumed = np.append(consumed, np.full(missing, -1, np.int64))
        return consumed

    @property
    def nbytes(self) -> int:
        """Bytes of the kernel's arrays, of the marked events, and of what waits for absences."""
        return self.evaluation.memory_usage() + self.payload.nbytes + (0 if self.absences is None else self.absences.nbytes)

    # ---------------------------------------------------------------------------------------------------------------- snapshots

    def dump(self) -> tuple[dict[str, Any], pa.Table]:
        """The live state: sections, and the marked events."""
        payload = self.payload
        places = np.stack([payload.slots.astype("<i8"), payload.positions, payload.places, payload.times])
        absences = {} if self.absences is None else self.absences.dump()
        return {**self.evaluation.dump(), **absences, "payload_places": places.astype("<i8")}, payload.events

    def load(self, sections: Mapping[str, Any], events: pa.Table) -> None:
        """Go on, fresh, from what `dump` gave, over partitions that are loaded; raises SnapshotError or ValueError where that does not fit."""
        slots, *numbers = np.frombuffer(sections["payload_places"], "<i8").reshape(4, -1).astype(np.int64)
        schema = self.payload.events.schema
        right = len(events) == len(slots) and (events.schema.names, events.schema.types) == (schema.names, schema.types)
        if not right or not bool(np.isin(slots, self.partitions.live).all()):
            raise ValueError("its events do not fit together")
        self.evaluation.load(sections)
        if self.absences is not None:
            self.absences.load(sections)
        self.payload.append(events, slots.astype(np.int32), *numbers)
