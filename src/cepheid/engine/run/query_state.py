"""One query's run state over a stream whose partitions somebody else numbers: an evaluation, and the marked events that a match may still show.

Comes in: letters, times and events of a batch in stream order, with `Partitions.arrive` of it. Goes out: the matches that end in the batch, at once
or in pieces as they are made. The embedded `Recognizer` has one of them, a bucket of a Spark stream one per query, all over the same partitions.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.engine.evaluations.absences.absence import ALWAYS, AbsenceState
from cepheid.engine.evaluations.absences.waiting_matches import Lines, WaitingMatches, marks_of
from cepheid.engine.evaluations.base import collect
from cepheid.engine.evaluations.counts.chosen_count import counted
from cepheid.engine.evaluations.events import Events
from cepheid.engine.input.order import NEVER
from cepheid.engine.input.payload import Payload, decoded
from cepheid.engine.letters.encoded import Texts
from cepheid.engine.memory.container import reading
from cepheid.engine.memory.pools import NUMBER_LIMIT
from cepheid.engine.output.gather import array_from, times_from
from cepheid.engine.output.marks import Ragged
from cepheid.engine.output.matches import Matches
from cepheid.engine.output.measures import Computation
from cepheid.engine.run.beginnings import PLACE, ROW, TIME, begun
from cepheid.engine.run.having import Having
from cepheid.language.syntax import Consumption
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from cepheid.engine.evaluations.base import AnyEvaluation, Chunk
    from cepheid.engine.input.partitions import Arrived, Partitions
    from cepheid.engine.memory.stored import Stored
    from cepheid.engine.output.matches import Layout, Match
    from cepheid.engine.plan.compiled import Compiled
    from cepheid.engine.run.allowance import Allowance
    from cepheid.logical.plan import Measure

Array = np.ndarray[Any, Any]


class OneRow:
    """The one event of a batch that a match may show, as Python has it. row: a dict, or a tuple in the order of the schema."""

    def __init__(self, row: Any, schema: pa.Schema) -> None:
        self._row = row
        self._schema = schema

    def values(self, names: Sequence[str]) -> tuple[Any, ...]:
        """Some of its values."""
        row = self._row if isinstance(self._row, dict) else dict(zip(self._schema.names, self._row, strict=True))
        return tuple([row[name] for name in names])


@record
class Batch:
    """Events as the pattern reads them: those that have come, with absences those whose deadline has passed.

    letters, times: of each. events: the columns that matches show, of the rows in `places` (None: of each). arrived: by partition. first: place of
    the first row in the stream. shown: with derived keys, the positions that matches show of the rows (None: their places).
    """

    letters: Array
    times: Array
    events: pa.Table | OneRow
    arrived: Arrived
    first: int
    places: Array | None = None
    shown: Array | None = None


class DecidedMatches:
    """The matches that a call decides. They are made when they are asked for, once, and before the next call: all at once, or in pieces."""

    def __init__(self, state: QueryState, batch: Batch | None, now: int | None = None) -> None:
        self._state = state
        self._batch = batch
        self._now = now
        self._after: list[Callable[[], None]] = []

    def then(self, what: Callable[[], None]) -> DecidedMatches:
        """The same; `what` is done once the last match has been made."""
        self._after.append(what)
        return self

    def all(self, allowance: Allowance) -> Matches:
        """All of them, in the order of the events that end them; raises LimitError past the allowance."""
        state, batch = self._state, self._batch
        found = state.layout.nothing
        if batch is not None:
            chunks = state.chunks(batch, at_once=True)
            made = list(allowance.watch(chunks, state.maker, named=lambda last: state.named(batch, last)))
            if made and state.waiting is not None:
                state.waiting.add([state.lines(chunk, batch.arrived.slots) for chunk in made])
            elif made:
                chunk = collect(made)
                found = state.measured(state.in_order(state.shown(chunk, batch.arrived.slots), chunk, batch.arrived))
        if state.waiting is not None:
            found = state.decided(self._now)
        self._done()
        return found

    def pieces(self, allowance: Allowance | None = None) -> Iterator[Matches]:
        """The same in pieces of bounded size: each partition's in the order of the events that end them, or all where partitions are interleaved.

        allowance: one that does not count chunks itself. Raises LimitError past it.
        """
        state, batch = self._state, self._batch
        if batch is not None:
            chunks = state.chunks(batch)
            if allowance is not None:
                chunks = allowance.watch(chunks, state.maker, named=lambda last: state.shown(last, batch.arrived.slots)[0])
            for chunk in chunks:
                if state.waiting is None:
                    yield state.measured(state.shown(chunk, batch.arrived.slots))
                else:
                    state.waiting.add([state.lines(chunk, batch.arrived.slots)])
        if state.waiting is not None and len(found := state.decided(self._now)):
            yield found
        self._done()

    def _done(self) -> None:
        for what in self._after:
            what()


class QueryState:
    """The run state of one query over `partitions`.

    layout, measures: what matches look like, where that is not what the query says (Spark's types). kept: the columns of its events that it keeps,
    where these are more than matches show. interleaved: whether partitions are fed in the order of the stream, so that pieces of the matches are in
    that order too. placed: matches show the positions that `feed` is given, as with derived keys. at_end: with absences FROM START too the matches of
    one event are decided together. texts: of the values of its events. options: of `Compiled.evaluation`.
    """

    def __init__(
        self,
        compiled: Compiled,
        partitions: Partitions,
        *,
        layout: Layout | None = None,
        measures: tuple[Measure, ...] | None = None,
        kept: pa.Schema | None = None,
        interleaved: bool = False,
        placed: bool = False,
        at_end: bool = False,
        **options: Any,
    ) -> None:
        self.compiled = compiled
        self.placed = placed or bool(compiled.derived)
        self.partitions = partitions
        self.layout = layout or compiled.layout
        self.measures = compiled.plan.measures if measures is None else measures
        self._compute = Computation(self.measures, self.layout.time)
        self._having = Having(compiled, self.layout.time) if compiled.judges else None
        self.interleaved = interleaved or compiled.interleaved
        self.options = options
        self.texts = Texts()
        self.evaluation = self._new_evaluation()
        self._reading: tuple[Batch, Array] | None = None  # what is being read, and which rows of it are kept, where the query restarts
        self._moved = 0, 0
        self.payload = Payload(self.layout.events if kept is None else kept)
        variant = options.get("variant")
        self.absences = (
            AbsenceState(
                compiled.absences,
                compiled.program,
                partitions,
                self.payload.schema,
                interleaved=self.interleaved,
                texts=self.texts,
                variant=variant,
            )
            if compiled.absences
            else None
        )
        self.waiting = WaitingMatches(compiled.absences, at_end=at_end or compiled.plan.count) if compiled.waits else None
        # Places in the stream up to which events are used up: of all of them, or for each slot. A snapshot has none of it, for the next trigger
        # says it again.
        # With HAVING the evaluation goes on with them, for they may turn out not to be used up.
        uses_up = compiled.consume if self._having is None or compiled.restarts else Consumption.NONE
        self._consumed: Array | int | None = {Consumption.NONE: None, Consumption.ANY: -1}.get(uses_up, np.zeros(0, np.int64))

    def feed(
        self,
        letters: Array,
        times: Array,
        events: pa.Table,
        arrived: Arrived,
        *,
        first: int,
        places: Array | None = None,
        shown: Array | None = None,
        negated: Sequence[Array] = (),
        now: int | None = NEVER,
    ) -> DecidedMatches:
        """The matches that are decided in a batch: those that end in it, without absences.

        letters, times: of the rows of `events`, which has the columns of `layout.events`; letters: as `compiled.readers(texts)` give them. first:
        place of the first row in the stream. places: the rows of `events` (None: all). shown: where the state is `placed`, the positions that
        matches show of the rows (default: their places). With absences: negated: the letters of each; now: the least time that a later event may
        have.
        """
        if self.absences is None:
            return DecidedMatches(self, Batch(letters, times, events, arrived, first, places, shown))
        self.absences.read(letters, negated, times, events, arrived)
        return self.advance(now)

    def advance(self, now: int | None) -> DecidedMatches:
        """No event before `now` will come (None: no event at all): the matches that this decides, which without absences are none."""
        absences = self.absences
        if absences is None:
            return DecidedMatches(self, None)
        found = DecidedMatches(self, self._released(absences, now), now)
        return found if now is None else found.then(lambda: absences.forget(now))

    def undecided(self) -> DecidedMatches:
        """The matches that wait, and that nothing has vetoed yet: what would be given if nothing came any more. O(state); nothing changes."""
        if self.absences is None:
            return DecidedMatches(self, None)
        shown: dict[str, Any] = {
            "layout": self.layout,
            "measures": self.measures,
            "kept": self.payload.schema,
            "interleaved": self.interleaved,
            "placed": self.placed,
        }
        copy = QueryState(self.compiled, self.partitions, **shown, **self.options)
        with reading():  # numbers that a forged snapshot put at the ends of their ranges may be beyond them by now
            copy.load(*self.dump(), self.partitions.stored, latest=ALWAYS)
        return copy.advance(None)

    def _released(self, absences: AbsenceState, now: int | None) -> Batch | None:
        """The events that the pattern may read now."""
        ready = absences.release(now)
        if not len(ready):
            return None
        arrived, first = absences.arrive(ready)
        return Batch(ready.letters, ready.times, ready.events, arrived, first, np.cumsum(ready.shown) - 1)

    # ----------------------------------------------------------------------------------------------------------- what matches are made of

    def chunks(self, batch: Batch, *, at_once: bool = False) -> Iterator[Chunk]:
        """The matches that end in a batch and that nothing vetoes, as the evaluation makes them; the events that they show are kept before.

        at_once: all chunks are read before one is shown, so that the events need only be kept once.
        """
        arrived = batch.arrived
        order = slice(None) if arrived.order is None else arrived.order
        kept = 0
        self._reading = (batch, np.zeros(arrived.rows, np.bool_)) if self.compiled.restarts else None
        worth = None if self._having is None else self._worth(self._having, batch)
        vetoed = None if self.absences is None else self.absences.vetoed(batch.times, arrived)
        left = None if self.compiled.heeds_vetoes else vetoed  # what is left out of what is made, for it is not left out before

        def made() -> Iterator[Chunk]:
            nonlocal kept
            for chunk in self.evaluation.chunks(
                Events(
                    batch.letters[order],
                    batch.times[order],
                    arrived.cuts,
                    arrived.slots,
                    vetoed=None if vetoed is None or left is not None else vetoed[order],
                    worth=None if worth is None else worth[:, order],
                )
            ):
                if self._reading is None and not (at_once and self._having is None):
                    kept = self._keep(batch, kept, self.evaluation.reached)
                yield chunk

        for chunk in made() if self._having is None else self._judged(self._having, made(), arrived.slots):
            given = chunk if left is None else chunk.take(np.flatnonzero(~left[arrived.rows_of(chunk.segments, chunk.ends)]))
            if len(given):
                yield given
        if self._reading is None:
            self._keep(batch, kept, len(self.evaluation.marked))
        else:
            self._keep_read()
            self._reading = None
        if self.compiled.valued:
            self.texts.collect(lambda: self._text_numbers(self.evaluation.dump()))

    def _worth(self, having: Having, batch: Batch) -> Array | None:
        """What the events of a batch are worth for HAVING."""
        one = isinstance(batch.events, OneRow)  # the last of them, which alone can be in a match
        worth = having.heed(self.evaluation, batch.letters[-1:] if one else batch.letters, lambda name: _column_of(batch, name))
        if worth is None or not one:
            return worth
        return np.hstack([np.zeros((len(worth), len(batch.letters) - 1)), worth])

    @property
    def maker(self) -> AnyEvaluation | None:
        """What makes the matches, and no others; None: HAVING leaves some out, or COUNT(*) looks at each."""
        return None if self.compiled.judges or self.compiled.counts_later else self.evaluation

    def _judged(self, having: Having, chunks: Iterator[Chunk], slots: Array) -> Iterator[Chunk]:
        """What HAVING leaves of some chunks, of matches from where they begin; slots: of their segments."""
        if self.compiled.earlier:
            chunks = begun(chunks, self.layout.labels, lambda chunk: self._kept_of(chunk, slots, PLACE))

        def spans(chunk: Chunk) -> tuple[Array, Array, Array]:
            owners = slots[chunk.segments].astype(np.int64)
            if self.compiled.consume is not Consumption.ANY:
                return owners, chunk.starts, chunk.ends
            places, one = self.payload.places, np.ones(len(chunk), np.int64)
            starts, ends = (places[self.payload.find(owners, one, positions)] for positions in (chunk.starts, chunk.ends))
            return np.zeros_like(owners), starts, ends

        return having.judged(chunks, lambda chunk: self.shown(chunk, slots), spans)

    def _new_evaluation(self) -> AnyEvaluation:
        return self.compiled.evaluation(texts=self.texts, judge=self._left, **self.options)

    def _left(self, chunks: Iterator[Chunk], segments: Array) -> Iterator[Chunk]:
        """Of the matches in what is being read those that meet the condition of HAVING: the judge of `Consuming`."""
        assert self._having is not None
        assert self._reading is not None
        slots = self._reading[0].arrived.slots

        def shown(chunk: Chunk) -> Matches:
            self._keep_read()
            return self.shown(chunk, slots, consumes=False)

        return self._having.left(chunks, segments, shown)

    def _keep_read(self) -> None:
        """Keep the events that are marked by now of what is being read, in whatever order."""
        assert self._reading is not None
        batch, kept = self._reading
        marked = self.evaluation.marked.view(np.bool_)
        if len(found := np.flatnonzero(marked & ~kept[: len(marked)])):
            kept[found] = True
            self._keep_rows(batch, found)

    def named(self, batch: Batch, last: Chunk) -> Match:
        """The first match of a chunk of `chunks(.., at_once=True)`, after which nothing more is read."""
        if self._having is None:  # with it they are kept
            self._keep(batch, 0, self.evaluation.reached)
        return self.shown(last, batch.arrived.slots)[0]

    def _keep(self, batch: Batch, first: int, stop: int) -> int:
        """Keep the marked events among the rows from `first` on, as the evaluation reads them; returns where to go on."""
        if first >= stop:
            return first
        marked = self.evaluation.marked
        found = first + marked[first:stop].nonzero()[0]
        # The last row is being read, and may become marked.
        on = stop if marked[stop - 1] else stop - 1
        if len(found):
            self._keep_rows(batch, found)
        return on

    def _keep_rows(self, batch: Batch, found: Array) -> None:
        """Keep some events, by their rows as the evaluation reads them."""
        arrived = batch.arrived
        rows = found if arrived.order is None else arrived.order[found]
        segments = arrived.cuts.searchsorted(found, "right") - 1
        kept = self._columns_of(batch, rows)
        shown = rows + batch.first if batch.shown is None else batch.shown[rows]
        slots, positions = arrived.slots[segments], found + arrived.before[segments]
        self.payload.append(kept, slots, positions, shown, batch.times[rows])
        if self.compiled.earlier and isinstance(kept, pa.Table):
            self._keep_begins(kept, slots, positions)

    def _keep_begins(self, events: pa.Table, slots: Array, positions: Array) -> None:
        """Keep a row for the place where each of some events begins, if there is none: a match may begin there, and shows when."""
        places, times, rows = (events[name].to_numpy() for name in (PLACE, TIME, ROW))
        earlier = np.flatnonzero(places < positions)
        earlier = earlier[np.unique(np.stack([slots[earlier], places[earlier]]), axis=1, return_index=True)[1]]
        earlier = earlier[~self.payload.has(slots[earlier], places[earlier])]
        if not len(earlier):
            return
        made = events.take(pa.array(earlier))
        if self.layout.time is not None:
            number = made.schema.get_field_index(self.layout.time)
            made = made.set_column(number, made.schema.field(number), times_from(times[earlier], made.schema.field(number).type))
        self.payload.append(made, slots[earlier], places[earlier], rows[earlier], times[earlier])

    def _begin_rows(self, rows: Array) -> Array:
        """The rows of the places where kept events begin."""
        payload = self.payload
        own = payload.slots[rows]
        return payload.find(own, np.ones(len(rows), np.int64), payload.events[PLACE].to_numpy()[rows])

    def _kept_of(self, chunk: Chunk, slots: Array, name: str) -> Array:
        """A number that is kept of each mark of a chunk; slots: of its segments."""
        events, rows = self.payload.shown(self.payload.find(slots[chunk.segments], np.diff(chunk.offsets), chunk.positions))
        numbers: Array = events.column(name).to_numpy()[rows]
        return numbers

    def kept(self, name: str) -> list[Array]:
        """A number of all events that a later match may show."""
        held = [] if self.absences is None else self.absences.held_events
        return [table[name].to_numpy() for table in (self.payload.events, *held)]

    def _columns_of(self, batch: Batch, rows: Array) -> pa.Table | tuple[Any, ...]:
        """What matches show of some rows of a batch."""
        schema = self.payload.schema
        if isinstance(batch.events, OneRow):
            return batch.events.values(schema.names)
        places = rows if batch.places is None else batch.places[rows]
        kept = batch.events.select(schema.names).take(pa.array(places))
        return kept if kept.schema.equals(schema, check_metadata=True) else decoded(kept)

    def lines(self, found: Chunk, slots: Array) -> Lines:
        """A chunk as matches that wait; slots: of its segments."""
        own, payload, one = slots[found.segments].astype(np.int64), self.payload, np.ones(len(found), np.int64)
        first, last = (payload.find(own, one, positions) for positions in (found.starts, found.ends))
        return Lines(found, own, payload.times[first], payload.times[last], payload.places[last])

    def decided(self, now: int | None) -> Matches:
        """Of the matches that wait those that are decided if no event before `now` comes any more (None: none), with measures."""
        assert self.waiting is not None
        assert self.absences is not None
        found = self.waiting.ready(now, self.absences.completed)
        slots, segments = np.unique(found.slots, return_inverse=True)
        chunk = dataclasses.replace(found.chunk, segments=segments.astype(np.int32))
        return self.measured(self.shown(counted(chunk) if self.compiled.counts_later else chunk, slots))

    def shown(self, found: Chunk, slots: Array, *, consumes: bool = True) -> Matches:
        """A chunk as matches, without measures, in its order; slots: of its segments. consumes: what they use up is used up."""
        offsets, positions, labels, segments = found.offsets, found.positions, found.labels, found.segments
        layout, payload = self.layout, self.payload
        if not len(segments):
            return layout.nothing
        rows = payload.find(slots[segments], np.diff(offsets), positions)
        triggers = payload.places[rows[offsets[1:] - 1]]
        if not consumes:
            pass
        elif isinstance(self._consumed, int):
            self._consumed = int(triggers.max())
        elif self._consumed is not None:
            np.maximum.at(self._fitted(self._consumed), slots[segments], triggers)
        shown = payload.places[rows] if self.placed else positions
        partitions = keys = None
        if layout.keys:
            one = _all_alike(segments)
            used, partitions = (slots[segments[:1]], np.zeros_like(segments)) if one else np.unique(slots[segments], return_inverse=True)
            keys = self.partitions.table(used).select(list(layout.keys))
        times: tuple[pa.Array | None, pa.Array | None] = (None, None)
        if layout.has_steps:
            kind = layout.time_fields[0].type
            times = array_from(payload.times[rows[offsets[:-1]]], kind), array_from(payload.times[rows[offsets[1:] - 1]], kind)
        events, rows = payload.shown(rows)
        if len(payload.schema) > len(layout.events):
            events = events.select(layout.events.names)
        return Matches(layout, Ragged(offsets, shown, labels, rows), events, partitions, keys, counts=found.counts, times=times)

    def in_order(self, matches: Matches, found: Chunk, arrived: Arrived) -> Matches:
        """The matches of a chunk in the order of the events that end them."""
        if not len(matches) or arrived.order is None or _all_alike(found.segments):
            return matches
        return matches.take(np.argsort(arrived.rows_of(found.segments, found.ends), kind="stable"))

    def measured(self, matches: Matches) -> Matches:
        """The matches with their measures."""
        return dataclasses.replace(matches, measures=self._compute(matches)) if self.measures else matches

    # ---------------------------------------------------------------------------------------------------------------- giving back

    def expire(self, now: int) -> Array:
        """Give back the memory of partitions in which nothing can go on at `now` or later; returns their slots (int64)."""
        self.evaluation.ensure_slots(self.partitions.slots)
        idle = self.evaluation.expire(now - self.compiled.delay)
        busy = self.partitions.slots - int(np.count_nonzero(idle < self.partitions.slots))
        if self.evaluation.wasteful and (2 * busy < self._moved[0] or self.evaluation.memory_usage() > 2 * self._moved[1]):
            # Pools only grow: after a burst of keys the state moves into fresh ones of the size that it has now.
            fresh = self._new_evaluation()
            fresh.load(self.evaluation.dump())
            self.evaluation = fresh
            # Where that gives little back, for each key has the least room, it is tried again when there are half as many keys, or twice the bytes.
            self._moved = (busy, fresh.memory_usage()) if fresh.wasteful else (0, 0)
        if self.absences is not None:
            idle = self.absences.expire(now, idle)
        return idle if self.waiting is None else np.setdiff1d(idle, self.waiting.lines.slots)

    def release(self, slots: Array) -> None:
        """Forget the partitions in these idle slots."""
        self.evaluation.release(slots)
        if self.absences is not None:
            self.absences.release_slots(slots)
        if isinstance(self._consumed, np.ndarray):
            self._fitted(self._consumed)[slots] = -1
        if self._having is not None:
            self._having.release(slots)
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
            pinned=None if self.waiting is None else marks_of(self.waiting.lines),
            held=self.evaluation.held,
            begins=self._begin_rows if self.compiled.earlier else None,
        )

    def _fitted(self, consumed: Array) -> Array:
        """What each slot has consumed, with room for the slots that there are."""
        missing = len(self.partitions.seen) - len(consumed)
        if missing > 0:
            self._consumed = consumed = np.append(consumed, np.full(missing, -1, np.int64))
        return consumed

    @property
    def remembers_triggers(self) -> bool:
        """Whether HAVING keeps the last trigger of each partition."""
        return self._having is not None and self._having.consumes

    @property
    def nbytes(self) -> int:
        """Bytes of the kernel's arrays, of the marked events, and of what waits for absences."""
        texts = self.texts.nbytes if self.compiled.valued else 0
        waiting = 0 if self.waiting is None else self.waiting.lines.nbytes
        others = sum(part.nbytes for part in (self.absences, self._having) if part is not None)
        return self.evaluation.memory_usage() + self.payload.nbytes + texts + waiting + others

    @property
    def deadline(self) -> int | None:
        """When the first of what waits for absences is decided: once an event after this time has come; None: nothing waits."""
        waiting = [each.deadline for each in (self.absences, self.waiting) if each is not None]
        return min((deadline for deadline in waiting if deadline is not None), default=None)

    def _text_numbers(self, sections: Mapping[str, Any]) -> list[Array]:
        """The numbers of the texts that are somewhere in the state; sections: of the evaluation."""
        return [self.evaluation.texts_in(sections), *([] if self.absences is None else self.absences.text_numbers())]

    # ---------------------------------------------------------------------------------------------------------------- snapshots

    def dump(self) -> tuple[dict[str, Any], pa.Table]:
        """The live state: sections, and the marked events."""
        payload = self.payload
        places = np.stack([payload.slots, payload.positions, payload.places, payload.times])
        absences = {} if self.absences is None else self.absences.dump()
        absences |= {} if self.waiting is None else self.waiting.dump()
        absences |= {} if self._having is None else self._having.dump()
        sections = self.evaluation.dump()
        texts = self.texts.dump(self._text_numbers(sections)) if self.compiled.valued else {}
        return {**sections, **absences, **texts, "payload_places": places.astype("<i8")}, payload.events

    def load(self, sections: Mapping[str, Any], events: pa.Table, stored: Stored, *, latest: int) -> None:
        """Go on, fresh, from what `dump` gave, over partitions that are loaded; raises SnapshotError or ValueError where that does not fit.

        stored: what the load of the partitions gave. latest: the greatest time so far.
        """
        slots, positions, places, times = np.frombuffer(sections["payload_places"], "<i8").reshape(4, -1).astype(np.int64)
        schema = self.payload.schema
        same = (events.schema.names, events.schema.types) == (schema.names, schema.types)
        if not same or len(events) != (len(slots) if schema.names else 0):
            raise ValueError("its events do not fit together")
        if ((places < 0) | (places >= NUMBER_LIMIT)).any():
            raise ValueError("its events have no valid positions")
        if self.compiled.valued:
            self.texts.load(sections)
        if self.absences is not None:
            stored = self.absences.load(sections, stored, latest=latest)
        if self.waiting is not None:
            self.waiting.load(sections, stored, labels=len(self.layout.labels), latest=latest)
        if self._having is not None:
            self._having.load(sections, stored)
        self.evaluation.load(sections, stored)
        events = pa.Table.from_arrays(events.columns, schema=schema) if schema.names else events
        self.payload.append(events, stored.those(slots, positions).astype(np.int32), positions, places, times)


def _column_of(batch: Batch, name: str) -> Any:
    """An attribute of the events of a batch; of a row that no match shows, that of another one."""
    if isinstance(batch.events, OneRow):
        return batch.events.values((name,))[0]
    column = batch.events.column(name)
    return column if batch.places is None or not len(column) else column.take(pa.array(np.maximum(batch.places, 0)))


def _all_alike(values: Array) -> bool:
    """Whether some values, at least one, are all the same."""
    return len(values) == 1 or bool((values == values[0]).all())
