"""MAX end by end: at each event that ends a match, the window up to it is read once more, by the automaton of the strategy.

For every pattern that has an automaton (`:`, hidden events, nested strategies), inside any window and under consumption. A match graph that knows of
starts and ends alone finds the triggers; the events that can matter are kept as (position, letter, ..) for as long as a match may start at them. At a
trigger those from the oldest start that competes are fed, as a partition of its own, to the match graph of `automata.EndProgram.chosen`: there
no window is left, so the strategy is an automaton (`automata.strategies`), and only matches of the window's last event come out.
O(events of the window that can matter) per trigger, output-linear delay after it.

When to use this: MAX of patterns that compare nothing and may not wait. `guarded_choice_run`, which chooses in one graph, compares all matches that a
trigger reaches: in windows of 100 events it takes 0.5 to 1.2 times as long, in those of 4,000 events 4 times (`A+ : B ; C`) to 40 times (`A : B ; D ;
C LIMIT 1`), for as many graphs as pairs of events are compared. NXT and LAST compare nothing of the kind; there it is 1.3 to 200 times faster.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.automata.program import EndProgram, span_program
from cepheid.automata.strategies import is_last
from cepheid.engine.evaluations.around.trackers import Trackers
from cepheid.engine.evaluations.base import Chunk, Keeping, collect, is_wasteful
from cepheid.engine.evaluations.events import Events
from cepheid.engine.evaluations.graph.match import Evaluation
from cepheid.engine.evaluations.method import Guarantee, Method
from cepheid.engine.input.order import earlier
from cepheid.engine.input.partitions import events_before
from cepheid.engine.letters.codes import having
from cepheid.engine.memory.checks import ascending, demand, fitting, inside, numbers, owners, rows_of
from cepheid.engine.memory.pools import NUMBER_LIMIT, ragged
from cepheid.engine.memory.store import Store
from cepheid.errors import LimitError
from cepheid.language.syntax import Consumption, Strategy
from cepheid.records import names_of, record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Unpack

    from cepheid.automata.program import Program
    from cepheid.engine.evaluations.base import Bounds, HasBytes
    from cepheid.engine.evaluations.method import Task, Terms
    from cepheid.engine.memory.pools import Array
    from cepheid.engine.memory.stored import Stored

TABLE_BITS = 12
"""Up to so many letter bits, what a letter can do is looked up in a table of all letters."""

NAMES = ("positions", "letters", "times", "places")
KINDS = ("i8", "u8", "i8", "i8")
"""The columns of kept events."""

RECORD = ("seen", "low", "offset", "count")
SEEN, LOW, OFFSET, COUNT = range(4)
"""Of a partition: the events so far, the least start that consumption allows, and where its kept events are."""


@record
class PerEndSizes:
    """Bounds of what is worked on at one time; tests make them tiny.

    piece: events read before the triggers among them are evaluated. batch: events of windows in one call of the kernel (a longer window is one
    call). garbage: kept events that may be dead before they are collected.
    """

    piece: int = 1 << 18
    batch: int = 1 << 20
    garbage: int = 1 << 12


@record
class _Events:
    """Events that can matter, by partition, then by position.

    owners: the partition's number in the piece. places: in the stream. Partition k has the events bounds[k] .. bounds[k + 1] - 1.
    """

    owners: Array
    positions: Array
    letters: Array
    times: Array
    places: Array
    bounds: Array

    def take(self, chosen: Array) -> tuple[Array, ...]:
        """The columns that are kept, of some events."""
        return self.positions[chosen], self.letters[chosen], self.times[chosen], self.places[chosen]


@record
class _Triggers:
    """Events that end a match: segment, partition (as in _Events), the greatest start, the end, the row of the piece; in stream order."""

    segments: Array
    owners: Array
    starts: Array
    ends: Array
    rows: Array

    def take(self, chosen: Array) -> _Triggers:
        return _Triggers(*(getattr(self, name)[chosen] for name in names_of(_Triggers)))


class _Kept(Store):
    """The events that are kept, behind each other in columns (NAMES), and of each partition a line of RECORD that says where.

    garbage: as many of them as live, and these, may be dead before they are collected.
    """

    records: Array

    def __init__(self, garbage: int) -> None:
        super().__init__(records=np.zeros(len(RECORD), np.int64))
        self._room: tuple[Array, ...] = tuple(np.zeros(0, kind) for kind in KINDS)
        self._used = 0
        self._garbage = garbage
        self._live = 0

    @property
    def reserved(self) -> int:
        """Bytes of the columns."""
        return sum(int(column.nbytes) for column in self._room)

    @property
    def columns(self) -> tuple[Array, ...]:
        """What is kept, dead or not."""
        return tuple(column[: self._used] for column in self._room)

    def empty(self, rows: Array) -> None:
        """Forget the events of these rows, which are different; positions go on."""
        self._live -= int(self.records[rows, COUNT].sum())
        self.records[rows, COUNT] = 0

    def write(self, rows: Array, counts: Array, columns: tuple[Array, ...]) -> None:
        """Give rows their kept events, behind all others; dead ones are collected once they are more than the live. Amortized O(events)."""
        self._live += int(counts.sum()) - int(self.records[rows, COUNT].sum())
        self.records[rows, OFFSET] = self._used + np.cumsum(counts) - counts
        self.records[rows, COUNT] = counts
        if self._used + len(columns[0]) > 2 * self._live + self._garbage:
            others = np.setdiff1d(np.flatnonzero(self.records[:, COUNT]), rows)
            _, places = self.places(others)
            self._room, self._used = tuple(column[places] for column in self._room), len(places)
            self.records[others, OFFSET] = np.cumsum(self.records[others, COUNT]) - self.records[others, COUNT]
            self.records[rows, OFFSET] = len(places) + np.cumsum(counts) - counts
        stop = self._used + len(columns[0])
        if stop > len(self._room[0]):
            more = np.zeros(max(stop, 2 * self._used) - self._used, np.int64)
            self._room = tuple(np.concatenate([column, more.astype(column.dtype)]) for column in self.columns)
        for column, new in zip(self._room, columns, strict=True):
            column[self._used : stop] = new
        self._used = stop

    def places(self, rows: Array) -> tuple[Array, Array]:
        """(index into rows, place in the columns) of the kept events of these rows."""
        return ragged(self.records[rows, OFFSET], self.records[rows, COUNT])


class PerEnd(Keeping):
    """The run state of a strategy that is chosen end by end; the interface is that of `Evaluation`.

    Update: that of the match graph for starts and ends, and O(window) per trigger. State: that, and 32 bytes per event that can matter within
    the window (without one: since consumption, else since the partition began).
    """

    def __init__(self, program: EndProgram, *, sizes: PerEndSizes | None = None, **bounds: Unpack[Bounds]) -> None:
        super().__init__(bounds)
        self.program = program
        self.sizes = sizes or PerEndSizes()
        spans: Bounds = {**bounds, "limit": 1}
        self._spans = Evaluation(span_program(program.automaton), **spans)
        self._chosen = Evaluation(program.chosen, limit=self.limit, variant=self.variant)
        self._longest = self._longest_ever = 1  # events of a window: since the last look at the memory, and since `_chosen` was made
        trackers = program.chosen.trackers[len(program.trackers) :]
        self._trackers = (
            Trackers(trackers, program.chosen.automaton.alphabet, bits=program.bits + 1, variant=self.variant) if trackers else None
        )
        self._abilities = _Abilities(program)
        self.store: _Kept = _Kept(self.sizes.garbage)
        self._passed = 0
        self._consumed = -1  # place in the stream of the last trigger, for CONSUME BY ANY
        self._triggers = 0
        self._matches = 0

    def chunks(self, events: Events) -> Iterator[Chunk]:
        """Read a batch, as `Evaluation.chunks`; raises as that does."""
        rows, cuts = len(events), events.cuts
        if len(events.slots):
            self.ensure_slots(int(events.slots.max()) + 1)
        events = events.with_letters(np.ascontiguousarray(events.letters, np.uint64))
        relevant, self.marked = self._abilities.of(events.letters)
        step = self.sizes.piece
        for start in range(0, max(rows, 1), step):
            stop = min(start + step, rows)
            first = int(np.searchsorted(cuts, start, "right")) - 1 if start else 0
            last = int(np.searchsorted(cuts, stop)) if stop < rows else len(cuts)
            inside = np.maximum(cuts[first:last] - start, 0)
            going_on = events.continued if not start else bool(len(inside)) and bool(cuts[first] < start)
            piece = events.of(slice(start, stop), cuts=inside, slots=events.slots[first:last], continued=going_on)
            self._passed = start
            yield from self._read(piece, relevant[start:stop], first)
        self._passed = 0

    def trigger_matches(self) -> float | None:
        """How many matches the trigger has that is being enumerated; see `Evaluation.trigger_matches`."""
        return self._chosen.trigger_matches()

    @property
    def reached(self) -> int:
        """How many rows of the last batch the matches given so far may show: what can be marked is known of all of them."""
        return len(self.marked)

    @property
    def passed(self) -> int:
        """How many rows of the batch that is being read have been read to their end: the pieces before."""
        return self._passed

    def _read(self, piece: Events, relevant: Array, first: int) -> Iterator[Chunk]:
        if not len(piece.cuts):
            return
        found = list(self._spans.chunks(dataclasses.replace(piece, vetoed=None)))  # a vetoed trigger consumes, too
        owners, records = self._owners(piece)
        events, before, index = self._gather(piece, relevant, owners, records)
        spans = collect(found)
        segments = spans.segments
        triggers = _Triggers(segments, owners[segments], spans.starts, spans.ends, piece.cuts[segments] + spans.ends - before[segments])
        lasts = index[triggers.rows]
        lows = np.where(records >= 0, self.store.records[np.maximum(records, 0), LOW], 0)
        triggers, lasts, firsts = self._windows(events, triggers, lasts, lows)
        self._triggers += len(lasts)
        if self.limit != 0:
            given = slice(None) if piece.vetoed is None else np.flatnonzero(~piece.vetoed[triggers.rows])
            yield from self._choose(events, (firsts[given], lasts[given] + 1), triggers.segments[given] + first)
        self._keep(piece, events, owners, records, lows)
        self.events += len(piece.letters)

    # ------------------------------------------------------------------------------------------------ the events of a piece

    def _owners(self, piece: Events) -> tuple[Array, Array]:
        """For each segment its partition, numbered 0 .. within the piece; for each partition its record (-1: a new one without a slot)."""
        wanted = piece.slots.astype(np.int64) + 1
        fresh = wanted == 0
        if piece.continued and fresh[0]:
            fresh[0] = False
        elif fresh.any():
            self.store.release(np.zeros(1, np.int64))
        wanted[fresh] = len(self.store) + np.flatnonzero(fresh)
        records, owners = np.unique(wanted, return_inverse=True)
        return owners.reshape(-1).astype(np.int64), np.where(records < len(self.store), records, -1)

    def _gather(self, piece: Events, relevant: Array, owners: Array, records: Array) -> tuple[_Events, Array, Array]:
        """The events kept of these partitions and those of the piece; positions before each segment; for each row its index in the events."""
        lengths = np.diff(piece.cuts, append=len(piece.letters))
        seen = np.where(records >= 0, self.store.records[np.maximum(records, 0), SEEN], 0)
        before = seen[owners] + events_before(owners, lengths)
        rows = np.flatnonzero(relevant)
        segments = np.searchsorted(piece.cuts, rows, "right") - 1
        known = np.flatnonzero(records >= 0)
        old, places = self.store.places(records[known])
        old = known[old]
        new = (before[segments] + rows - piece.cuts[segments], piece.letters[rows], piece.times[rows], self.events + rows)
        every = np.concatenate([old, owners[segments]])
        columns = [np.concatenate([column[places], more]) for column, more in zip(self.store.columns, new, strict=True)]
        order = np.argsort(every, kind="stable")
        index = np.zeros(len(piece.letters), np.int64)
        index[rows] = np.argsort(order, kind="stable")[len(old) :]
        sorted_owners = every[order]
        bounds = np.searchsorted(sorted_owners, np.arange(len(records) + 1))
        positions, letters, times, stream = (column[order] for column in columns)
        return _Events(sorted_owners, positions, letters, times, stream, bounds), before, index

    # ------------------------------------------------------------------------------------------------ which windows

    def _windows(self, events: _Events, triggers: _Triggers, lasts: Array, lows: Array) -> tuple[_Triggers, Array, Array]:
        """The triggers that consumption leaves, with the first and the last event of their windows; `lows` moves on."""
        firsts = events.bounds[triggers.owners]
        for owner, mine in _groups(triggers.owners):
            here = slice(events.bounds[owner], events.bounds[owner + 1])
            found = np.zeros(len(mine), np.int64)
            if self.window is not None:
                found = np.searchsorted(events.times[here], earlier(events.times[lasts[mine]], self.window))
            if self.count_window is not None:
                found = np.maximum(found, np.searchsorted(events.positions[here], triggers.ends[mine] - (self.count_window - 1)))
            firsts[mine] += found
        if self.consume is Consumption.NONE:
            return triggers, lasts, firsts
        chosen, bounds = self._compete(events, triggers, lasts, lows)
        triggers, lasts, firsts = triggers.take(chosen), lasts[chosen], firsts[chosen]
        column = events.positions if self.consume is Consumption.PARTITION else events.places
        for owner, mine in _groups(triggers.owners):
            start, stop = events.bounds[owner], events.bounds[owner + 1]
            firsts[mine] = np.maximum(firsts[mine], start + np.searchsorted(column[start:stop], bounds[mine]))
        return triggers, lasts, firsts

    def _compete(self, events: _Events, triggers: _Triggers, lasts: Array, lows: Array) -> tuple[Array, Array]:
        """Numbers of the triggers with a match that starts after the last one of them, and the least start (or place) that competes there."""
        chosen, bounds = [], []
        if self.consume is Consumption.PARTITION:
            least = lows.tolist()
            for number, (owner, start, end) in enumerate(
                zip(triggers.owners.tolist(), triggers.starts.tolist(), triggers.ends.tolist(), strict=True)
            ):
                if start >= least[owner]:
                    chosen.append(number)
                    bounds.append(least[owner])
                    least[owner] = end + 1
            lows[:] = least
        else:
            begun = self._places_of(events, triggers)
            for number, (start, end) in enumerate(zip(begun.tolist(), events.places[lasts].tolist(), strict=True)):
                if start > self._consumed:
                    chosen.append(number)
                    bounds.append(self._consumed + 1)
                    self._consumed = end
        return np.array(chosen, np.int64), np.array(bounds, np.int64)

    def _places_of(self, events: _Events, triggers: _Triggers) -> Array:
        """The places in the stream of the triggers' greatest starts; -1 where it is kept no more, for an earlier trigger consumed it."""
        places: Array = np.full(len(triggers.starts), -1, np.int64)
        for owner, mine in _groups(triggers.owners):
            start, stop = events.bounds[owner], events.bounds[owner + 1]
            kept = mine[triggers.starts[mine] >= events.positions[start]]
            places[kept] = events.places[start + np.searchsorted(events.positions[start:stop], triggers.starts[kept])]
        return places

    # ------------------------------------------------------------------------------------------------ what they give

    def _choose(self, events: _Events, windows: tuple[Array, Array], segments: Array) -> Iterator[Chunk]:
        """The strategy's matches of each window, in batches of bounded size."""
        firsts, stops = windows
        total = np.cumsum(stops - firsts)
        start = 0
        while start < len(firsts):
            before = int(total[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(total, before + self.sizes.batch, "right")))
            yield from self._of_windows(events, firsts[start:stop], stops[start:stop], segments[start:stop])
            start = stop

    def _of_windows(self, events: _Events, firsts: Array, stops: Array, segments: Array) -> Iterator[Chunk]:
        lengths = stops - firsts
        self._longest = max(self._longest, int(lengths.max()))
        self._longest_ever = max(self._longest_ever, self._longest)
        cuts = np.cumsum(lengths) - lengths
        _, index = ragged(firsts, lengths)
        letters = events.letters[index]
        letters[cuts + lengths - 1] |= np.uint64(1 << self.program.bits)
        no_times = np.zeros(len(letters), np.int64)
        if self._trackers is not None:
            letters = self._trackers.read(Events(letters, no_times, cuts))
        for chunk in self._chosen.chunks(Events(letters, no_times, cuts)):
            begins = np.repeat(firsts[chunk.segments], np.diff(chunk.offsets))
            positions = events.positions[begins + chunk.positions]
            yield Chunk(chunk.offsets, positions, chunk.labels, segments[chunk.segments].astype(np.int32))
            self._matches += len(chunk)

    # ------------------------------------------------------------------------------------------------ what is kept

    def _keep(self, piece: Events, events: _Events, owners: Array, records: Array, lows: Array) -> None:
        """Write the partitions back: without the events that no match can start at or take any more."""
        lengths = np.diff(piece.cuts, append=len(piece.letters))
        seen = np.where(records >= 0, self.store.records[np.maximum(records, 0), SEEN], 0)
        np.add.at(seen, owners, lengths)
        if not records.all() or piece.slots[-1] < 0:
            self.store.release(np.zeros(1, np.int64))
            records = np.where(records == 0, -1, records)
            if piece.slots[-1] < 0:
                records[owners[-1]] = 0  # the next call may go on with it
        alive = (records >= 0)[events.owners]
        if self.window is not None:
            latest = events.times[np.maximum(events.bounds[1:] - 1, 0)] if len(events.times) else np.zeros(len(records), np.int64)
            alive &= events.times >= earlier(latest, self.window)[events.owners]
        if self.count_window is not None:
            alive &= events.positions > (seen - self.count_window)[events.owners]
        if self.consume is Consumption.PARTITION:
            alive &= events.positions >= lows[events.owners]
        elif self.consume is Consumption.ANY:
            alive &= events.places > self._consumed
        chosen = np.flatnonzero(alive)
        counts = np.bincount(events.owners[chosen], minlength=len(records))
        stored = np.flatnonzero(records >= 0)
        self.store.write(records[stored], counts[stored], events.take(chosen))
        self.store.records[records[stored], SEEN] = seen[stored]
        self.store.records[records[stored], LOW] = lows[stored]

    # ------------------------------------------------------------------------------------------------ partitions

    def ensure_slots(self, count: int) -> None:
        """Make slots 0 .. count - 1 exist."""
        self._spans.ensure_slots(count)
        super().ensure_slots(count)

    def release(self, slots: Array) -> None:
        """Forget the partitions in these slots."""
        self._spans.release(slots)
        super().release(slots)

    def expire(self, time: int) -> Array:
        """Free the memory of partitions in which no match can go on at `time` or later; returns all slots that now hold no open match (int64)."""
        self._renew()
        self.ensure_slots(self._spans.slots)
        slots = self._spans.expire(time)
        self.store.empty(slots + 1)
        return slots

    def _renew(self) -> None:
        """Between two windows the match graph of one holds nothing: a fresh one takes its place where windows have become much shorter."""
        if is_wasteful(self._chosen.store.cells.nbytes, lambda: self._chosen.store.cells.nbytes * self._longest // self._longest_ever):
            self._chosen = Evaluation(self.program.chosen, limit=self.limit, variant=self.variant)
            self._longest_ever = 1
        self._longest = 1

    def memory_usage(self) -> int:
        """Bytes of the run state."""
        return super().memory_usage() + self._spans.memory_usage() + self._chosen.memory_usage()

    def _parts(self) -> Iterable[Array | HasBytes]:
        return () if self._trackers is None else (self._trackers,)

    @property
    def wasteful(self) -> bool:
        """Whether a fresh instance with the same state would need much less memory."""
        return self._spans.wasteful

    @property
    def triggers(self) -> int:
        """Events that ended at least one match that competes."""
        return self._triggers

    @property
    def matches(self) -> int:
        """Matches given."""
        return self._matches

    @property
    def skipped(self) -> int:
        """Events that changed nothing and were passed without a step."""
        return self._spans.skipped

    # ------------------------------------------------------------------------------------------------ state as bytes

    def dump(self) -> dict[str, bytes]:
        """The live state as named sections: those of the match graph, and `end_numbers`, `end_records` and the kept events' columns (int64)."""
        rows = np.flatnonzero(self.store.records[:, SEEN])
        _, places = self.store.places(rows)
        counters = np.array([self.events, self._consumed, self._triggers, self._matches], "<i8")
        table = np.column_stack([rows, self.store.records[rows][:, [SEEN, LOW, COUNT]]]).astype("<i8")
        kept = zip(NAMES, KINDS, self.store.columns, strict=True)
        columns = {f"end_{name}": column[places].astype(f"<{kind}").tobytes() for name, kind, column in kept}
        return {**self._spans.dump(), "end_numbers": counters.tobytes(), "end_records": table.tobytes(), **columns}

    def load(self, sections: Mapping[str, bytes], stored: Stored | None = None) -> None:
        """Go on, fresh, from what `dump` gave; raises SnapshotError where that does not fit. stored: as for `Evaluation.load`."""
        with fitting("its events of open windows do not fit"):
            counters = numbers(sections, "end_numbers")
            table = numbers(sections, "end_records", width=len(RECORD)).astype(np.int64)
            columns = tuple(numbers(sections, f"end_{name}", f"<{kind}").astype(kind) for name, kind in zip(NAMES, KINDS, strict=True))
            demand(len(counters) == 4, inside(counters, -1, NUMBER_LIMIT))
            self._spans.load(sections, stored)
            table[:, 0] = rows_of(table[:, 0] - 1, table[:, 1], stored)
            demand(table[:, 0] <= self._spans.slots)
            self._check(table, columns, events=int(counters[0]))
        self.ensure_slots(self._spans.slots)
        self.store.records[table[:, 0], SEEN], self.store.records[table[:, 0], LOW] = table[:, 1], table[:, 2]
        self.store.write(table[:, 0], table[:, 3], columns)
        self.events, self._consumed, self._triggers, self._matches = counters.tolist()

    def letters_in(self, sections: Mapping[str, Any]) -> Array:
        """The letters of events that what `dump` gave speaks of, in any order (int64)."""
        return np.frombuffer(sections["end_letters"], "<i8").astype(np.int64)

    def _check(self, table: Array, columns: tuple[Array, ...], *, events: int) -> None:
        """ValueError unless records and events fit together; events: of the stream so far."""
        _, seen, low, counts = table.T
        positions, letters, times, places = columns
        owner = owners(counts, *columns)
        demand(
            inside(low, 0, seen + 1),
            ascending(positions, owner, strictly=True),
            ascending(places, owner, strictly=True),
            ascending(times, owner),
            inside(positions, 0, seen[owner]),
            inside(places, 0, events),
            letters >> np.uint64(self.program.bits) == 0,
        )


class _Abilities:
    """What the events of each letter can do: matter at all, and be marked."""

    def __init__(self, program: Program) -> None:
        self._alphabet = program.automaton.alphabet
        self._mattering = [(mask, 0) for mask in program.relevant_masks] if program.droppable else [(0, 0)]
        self._marking = {(move.requires, move.forbids) for move in program.automaton.transitions if move.mark is not None}
        self._table = self._compute(np.arange(1 << program.bits, dtype=np.uint64)) if program.bits <= TABLE_BITS else None

    def of(self, letters: Array) -> tuple[Array, Array]:
        """For each letter (uint64) whether it can matter (bool) and whether it can be marked (uint8)."""
        if self._table is not None:
            places, (relevant, marked) = letters, self._table
        else:
            encoded = pa.array(letters).dictionary_encode()
            places = encoded.indices.to_numpy()
            relevant, marked = self._compute(encoded.dictionary.to_numpy())
        return relevant[places], marked[places]

    def _compute(self, letters: Array) -> tuple[Array, Array]:
        return having(letters, self._alphabet, self._mattering), having(letters, self._alphabet, self._marking).astype(np.uint8)


def _groups(owners: Array) -> list[tuple[int, Array]]:
    """(owner, the places where it stands, ascending) for each owner."""
    if not len(owners):
        return []
    order = np.argsort(owners, kind="stable")
    cuts = np.flatnonzero(np.diff(owners[order])) + 1
    return [(int(owners[part[0]]), part) for part in np.split(order, cuts)]


class PerEndMethod(Method):
    """Chooses end by end: MAX over any pattern."""

    name = "per end"
    evaluation = PerEnd

    def serves(self, task: Task) -> bool:
        """MAX; COUNT(*) counts what it chooses."""
        return task.strategy is Strategy.MAX

    def fits(self, task: Task) -> str | None:
        """Any automaton that asks letters alone, of whose matches at an event some are in each other in other ways than the last ones."""
        if task.compares_events is None:
            if is_last(task.whole.automaton):
                return "the last matches are the maximal ones, and are found in the match graph"
            try:
                self.program(task)
            except LimitError as error:
                return error.fact
        return task.compares_events

    def program(self, task: Task) -> EndProgram:
        """The pattern's, and the automaton by which each window is read."""
        return task.at_ends

    def guarantee(self, terms: Terms) -> Guarantee:
        """As in the head of this file."""
        return Guarantee(
            evaluation="strategy chosen end by end: each trigger reads its window again, by the strategy's automaton",
            update="O(m) per event, and O(events of the window) per trigger",
            state=terms.state("events that can matter"),
            delay="output-linear after the trigger's window is read",
        )
