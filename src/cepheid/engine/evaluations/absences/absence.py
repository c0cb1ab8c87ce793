"""NOT FOLLOWED BY: which triggers a match of n vetoes, and which wait for more events.

`p NOT FOLLOWED BY n FOR d` gives the matches of p that end in an event e unless some match of n starts after e, by position, and ends at most d
after it, by time. So of n only its intervals matter, and of these, for each event that ends one, the greatest start: a match graph over n's
automaton without its marks, with one match per trigger, and with d as window (a match of n that starts after e and ends in time is no longer).
A trigger is vetoed exactly if the greatest start so far, among the intervals that have ended when its deadline has passed, lies behind it.

What p does is not changed by it: consumption, strategies and LIMIT see all matches of p, and a veto is for all matches of a trigger. So these need
not be made where there is one, however many they are: it is found before p reads its events (`vetoed_events`), and heeded there (`Events.vetoed`).
Only FROM START a veto depends on where a match starts; so matches are made, wait (`waiting_matches`), and are vetoed one by one (`vetoed_matches`).
"""

from __future__ import annotations

import dataclasses
import struct
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.engine.evaluations.around.numbered import started
from cepheid.engine.evaluations.around.past import Past
from cepheid.engine.evaluations.events import Events
from cepheid.engine.evaluations.guards.guarded_start import latest
from cepheid.engine.input.keys import group
from cepheid.engine.input.order import NEVER
from cepheid.engine.input.partitions import Arrived
from cepheid.engine.input.payload import decoded
from cepheid.engine.letters.codes import having
from cepheid.engine.letters.encoded import EventForm
from cepheid.engine.letters.values import no_events
from cepheid.engine.memory import container
from cepheid.engine.memory.checks import numbers
from cepheid.engine.memory.pools import ragged
from cepheid.logical.plan import Begin
from cepheid.records import names_of, record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cepheid.automata import Program
    from cepheid.engine.evaluations.base import AnyEvaluation, Bounds, Chunk
    from cepheid.engine.input.partitions import Partitions
    from cepheid.engine.letters.encoded import Texts
    from cepheid.engine.memory.pools import Array
    from cepheid.engine.memory.stored import Stored

SPARSE = 8
"""How many events for each match of n there are at least where these are looked up where they stand."""

ALWAYS = 2**63 - 1
"""The greatest time that int64 holds."""


@record(slots=False)
class Absence:
    """One `NOT FOLLOWED BY n FOR d`.

    program: the intervals of n's matches (`automata.span_program`). window: greatest time(end) - time(start) of one that can matter, at most d.
    count_window: greatest end - start + 1 in events, None without. duration: d, in steps of the time column. from_start: whether d counts from the
    start of a match. earlier: whether n may begin before the event that is read first.
    """

    program: Program
    window: int
    count_window: int | None
    duration: int
    from_start: bool = False
    earlier: bool = False

    def evaluation(self, *, variant: str | None = None, texts: Texts | None = None) -> AnyEvaluation:
        """A new evaluation of n, without any state: of each trigger it gives the match with the greatest start; texts: of its events.

        Where n may begin earlier it gives all intervals: the greatest start is not the greatest begin.
        """
        bounds: Bounds = {
            "window": self.window,
            "count_window": self.count_window,
            "limit": None if self.earlier else 1,
            "variant": variant,
        }
        return started(self.program, lambda program: latest(program, bounds), texts, variant=variant)

    @property
    def bounds(self) -> tuple[int | str | None, ...]:
        """What, beside the program, says what it is."""
        return self.window, self.count_window, self.duration, *(["from start"] if self.from_start else [])


@record
class Ends:
    """Events that end matches, in any order.

    owners: numbers of their partitions. positions: int64; of triggers of p their own, of matches of n the greatest start. times: of the events.
    """

    owners: Array
    positions: Array
    times: Array

    def __len__(self) -> int:
        return len(self.owners)

    def take(self, chosen: Array) -> Ends:
        """Some of them: by number, or by a mask."""
        return Ends(self.owners[chosen], self.positions[chosen], self.times[chosen])

    @property
    def nbytes(self) -> int:
        """Bytes of the columns."""
        return int(self.owners.nbytes + self.positions.nbytes + self.times.nbytes)

    @classmethod
    def none(cls) -> Ends:
        """None at all."""
        nothing = np.zeros(0, np.int64)
        return cls(nothing, nothing, nothing)

    @classmethod
    def joined(cls, parts: Sequence[Ends]) -> Ends:
        """Several, one after the other; a single one without a copy."""
        if len(parts) == 1:
            return parts[0]
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names_of(cls)))


def longest(absences: Sequence[Absence], *, from_start: bool | None = None) -> int:
    """How long after its trigger a match is decided at the latest; 0 without absences. from_start: by those alone that count from there, or not."""
    return max((absence.duration for absence in absences if from_start in {None, absence.from_start}), default=0)


def vetoed(triggers: Ends, completed: Ends, duration: int) -> Array:
    """For each trigger of p whether a match of n starts behind it and has ended `duration` after it: bool. O(n log n), vectorized."""
    if not len(triggers) or not len(completed):
        return np.zeros(len(triggers), np.bool_)
    deadlines = np.minimum(triggers.times, ALWAYS - duration) + duration
    # PERF: of a stream's partitions few have a trigger in one batch.
    completed = completed.take(np.isin(completed.owners, triggers.owners) & (completed.times <= deadlines.max()))
    if not len(completed):
        return np.zeros(len(triggers), np.bool_)
    ended, due = _in_one_order(completed, triggers, deadlines)
    if (ended[1:] < ended[:-1]).any():  # PERF: those of a table come in this order
        order = np.argsort(ended, kind="stable")
        ended, completed = ended[order], completed.take(order)
    firsts = np.flatnonzero(np.diff(completed.owners, prepend=completed.owners[0] - 1))
    rank = np.repeat(np.arange(len(firsts)), np.diff(firsts, append=len(completed)))
    # Positions of each partition from 0 on, so that partitions, one above the other, fit into 64 bits.
    least = np.minimum.reduceat(completed.positions, firsts)[rank]
    base = rank * (int((completed.positions - least).max()) + 1)
    greatest = np.maximum.accumulate(completed.positions - least + base) - base + least
    last = np.searchsorted(ended, due, "right") - 1  # what is complete at the deadline itself counts
    result: Array = (last >= 0) & (completed.owners[last] == triggers.owners) & (greatest[last] > triggers.positions)
    return result


def _in_one_order(completed: Ends, triggers: Ends, deadlines: Array) -> tuple[Array, Array]:
    """Numbers that order what is completed, and deadlines, by partition and then by time (int64)."""
    moments = np.concatenate([completed.times, deadlines])
    least, greatest = int(moments.min()), int(moments.max())
    owners = np.concatenate([completed.owners, triggers.owners]).astype(np.int64)
    if (greatest - least + 1) * (int(owners.max()) + 1) > ALWAYS:
        moments = np.unique(moments, return_inverse=True)[1]
        least, greatest = 0, int(moments.max())
    numbers = owners * (greatest - least + 1) + (moments - least)
    return numbers[: len(completed)], numbers[len(completed) :]


def vetoed_matches(ends: Ends, starts: Array, completed: Sequence[Ends], absences: Sequence[Absence]) -> Array:
    """As `vetoed`, of matches by the absences FROM START. starts: the times of their first events. completed: of each absence the matches of n."""
    veto = np.zeros(len(ends), np.bool_)
    for absence, own in zip(absences, completed, strict=True):
        if absence.from_start:
            veto |= vetoed(dataclasses.replace(ends, times=starts), own, absence.duration)
    return veto


def vetoed_events(read: Arrived, times: Array, completed: Sequence[Ends], absences: Sequence[Absence]) -> Array:
    """For each event whether some n vetoes all matches that end there: bool. FROM START vetoes none, for it asks where a match starts.

    read: one segment for each partition. times: of all rows. completed: of each absence the matches of n. One that starts at position s and ends at
    time t vetoes the events before s from time t - d on, which lie together. O(c log n + v), vectorized: c matches of n, v events that they veto.
    """
    veto: Array = np.zeros(read.rows, np.bool_)
    order = np.argsort(read.slots, kind="stable")
    for absence, found in zip(absences, completed, strict=True):
        if absence.from_start or not len(found) or not len(order):
            continue
        segments = order[np.minimum(np.searchsorted(read.slots, found.owners, sorter=order), len(order) - 1)]
        here = np.flatnonzero(read.slots[segments] == found.owners)
        own, segments = found.take(here), segments[here]
        first, length = read.cuts[segments], read.lengths[segments]
        last = first + np.clip(own.positions - read.before[segments] - first, 0, length)
        first = _first_since(np.maximum(own.times, NEVER + absence.duration) - absence.duration, first, last, times, read)
        index = _covered(first, last)
        veto[index if read.order is None else read.order[index]] = True
    return veto


def _first_since(since: Array, first: Array, last: Array, times: Array, read: Arrived) -> Array:
    """The first place from `first` on whose time is not before `since`, else `last`: int64. times: of the rows, whose places `read` says."""
    order = read.order
    if order is not None and SPARSE * len(since) > len(order):  # PERF: what lies together is found faster
        times, order = times[order], None
    if order is None and len(read.slots) == 1:
        return np.clip(np.searchsorted(times, since), first, last)
    first, last = first.copy(), last.copy()
    while len(left := np.flatnonzero(first < last)):
        middle = (first[left] + last[left]) >> 1
        early = times[middle if order is None else order[middle]] < since[left]
        first[left[early]] = middle[early] + 1
        last[left[~early]] = middle[~early]
    return first


def _covered(first: Array, last: Array) -> Array:
    """What is in some of these ranges, once (int64)."""
    some = np.flatnonzero(first < last)
    some = some[np.argsort(first[some], kind="stable")]
    first, last = first[some], np.maximum.accumulate(last[some])
    apart = first[1:] > last[:-1]
    first, last = first[np.append(True, apart)[: len(first)]], last[np.append(apart, True)[: len(last)]]
    return ragged(first, last - first)[1]


def decided_at(absences: Sequence[Absence], starts: Array, ends: Array) -> Array:
    """When matches with these times of their first and last events have been decided (int64)."""
    by_end: Array = ends + longest(absences, from_start=False)
    return np.maximum(by_end, starts + longest(absences, from_start=True)) if any(absence.from_start for absence in absences) else by_end


def undecided(times: Array, until: int, duration: int) -> Array:
    """For triggers at these times whether their deadline lies after `until`: bool."""
    if until - duration < NEVER:
        return np.ones(len(times), np.bool_)
    waiting: Array = times > until - duration
    return waiting


# ------------------------------------------------------------------------------------------------------------------------- streams


@record
class Held:
    """Events in stream order that wait until their deadline has passed.

    letters: uint64, of p (or words, see `EventForm`). times, slots: of each. shown: bool, which of them a match may show. events: those.
    """

    letters: Array
    times: Array
    slots: Array
    shown: Array
    events: pa.Table

    def __len__(self) -> int:
        return len(self.times)

    def cut(self, count: int) -> tuple[Held, Held]:
        """The first so many, and the others."""
        shown = int(np.count_nonzero(self.shown[:count]))
        return self._part(slice(count), self.events.slice(0, shown)), self._part(slice(count, None), self.events.slice(shown))

    def _part(self, rows: slice, events: pa.Table) -> Held:
        return Held(self.letters[rows], self.times[rows], self.slots[rows], self.shown[rows], events)

    @classmethod
    def none(cls, schema: pa.Schema, form: EventForm) -> Held:
        """No events of a schema, which say what a program reads."""
        nothing = np.zeros(0, np.int64)
        return cls(form.none(), nothing, nothing.astype(np.int32), nothing.astype(np.bool_), no_events(schema))

    @classmethod
    def joined(cls, parts: Sequence[Held]) -> Held:
        """Several, one after the other; at least one."""
        columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in ("letters", "times", "slots", "shown")}
        return cls(**columns, events=pa.concat_tables([part.events for part in parts]))

    @property
    def nbytes(self) -> int:
        """Bytes of all that is held."""
        return int(self.events.nbytes) + sum(int(column.nbytes) for column in (self.letters, self.times, self.slots, self.shown))


class AbsenceState:
    """What the absences of a query have to know of a stream: matches of n as they complete, and the events of p until their deadlines have passed.

    The pattern reads its events as late as its matches can be decided, so that its own state is what it is without an absence. program: of the
    pattern. partitions: the slots and positions, of the events that arrive. schema: of the events that matches show. interleaved: whether the
    pattern reads partitions in the order of the stream. texts: of the events' values. waits: whether events wait; with FROM START matches do
    (`waiting_matches`).

    Memory: the events of the last d, the window of n, and the ends of n's matches in the last d.
    """

    def __init__(
        self,
        absences: Sequence[Absence],
        program: Program,
        partitions: Partitions,
        schema: pa.Schema,
        *,
        interleaved: bool,
        texts: Texts,
        variant: str | None = None,
    ) -> None:
        self.absences = tuple(absences)
        self.partitions = partitions
        self.interleaved = interleaved
        self.variant = variant
        self.delay = longest(self.absences, from_start=False)
        self.waits = any(not absence.from_start for absence in self.absences)
        self.texts = texts
        self._program = program
        self._form = EventForm.of(program)
        self._runs = [absence.evaluation(variant=variant, texts=texts) for absence in self.absences]
        self._completed = [Ends.none() for _ in self.absences]
        self._begun = Past() if any(absence.earlier for absence in self.absences) else None
        self._empty = Held.none(schema, self._form)
        self._held: deque[Held] = deque()
        self._released = 0
        self._before: Array = np.zeros(0, np.int64)  # per slot, the events released

    def read(self, letters: Array, negated: Sequence[Array], times: Array, events: pa.Table, arrived: Arrived) -> None:
        """Take a batch: letters of p, and for each absence those of n. Linear."""
        grouped = slice(None) if arrived.order is None else arrived.order
        slots: Array = np.full(arrived.rows, -1, np.int32)
        slots[grouped] = np.repeat(arrived.slots, arrived.lengths)
        rows = np.flatnonzero(slots >= 0)
        if self._begun is not None:
            places, begins = arrived.positions, events[Begin.of("place").path[0]].to_numpy()
            earlier = rows[begins[rows] < places[rows]]
            self._begun.add(slots[earlier], places[earlier], begins[earlier], times[earlier])
        for number, (run, own) in enumerate(zip(self._runs, negated, strict=True)):
            chunks = run.chunks(Events(own[grouped], times[grouped], arrived.cuts, arrived.slots))
            completed = [_ends(chunk, self._begins(number, chunk, arrived), times, arrived) for chunk in chunks]
            self._completed[number] = Ends.joined([self._completed[number], *completed])
        if len(rows):
            own = letters[rows].astype(np.uint64)
            shown = self._shown(own)
            kept = events.select(self._empty.events.schema.names).take(pa.array(rows[shown]))
            self._held.append(Held(own, times[rows], slots[rows], shown, decoded(kept)))

    def _shown(self, letters: Array) -> Array:
        """Which events a match of p may show; letters: of p, or words."""
        masks = [(mask, 0) for mask in self._program.relevant_masks]
        return having(self._form.letters(letters), self._program.automaton.alphabet, masks)

    def _begins(self, number: int, found: Chunk, arrived: Arrived) -> Array:
        """Where the matches of an n begin."""
        if self._begun is None or not self.absences[number].earlier:
            return found.starts
        return self._begun.at(arrived.slots[found.segments], found.starts)

    def release(self, now: int | None) -> Held:
        """The events whose deadline has passed if no event before `now` comes any more; None: all. O(events released)."""
        ready = [self._empty]
        while self._held:
            part = self._held.popleft()
            first, rest = part.cut(_before(part.times, now - self.delay) if self.waits and now is not None else len(part))
            ready.append(first)
            if len(rest):
                self._held.appendleft(rest)
                break
        return Held.joined(ready) if len(ready) > 1 else self._empty

    def arrive(self, ready: Held) -> tuple[Arrived, int]:
        """The released events by partition, and the place of the first of them among all that were released; counts them."""
        before, rows, place = self.released, len(ready), self._released
        self._released += rows
        if self.partitions.keys:
            groups = group(ready.slots, self.partitions.slots)
            slots = ready.slots[groups.order[groups.cuts]]
            arrived = Arrived.of(groups, slots, before, rows=rows, interleaved=self.interleaved)
        else:
            arrived = Arrived(None, np.zeros(1, np.int64), np.zeros(1, np.int32), before[:1].copy(), rows)
        np.add.at(before, arrived.slots, arrived.lengths)
        return arrived, place

    def vetoed(self, times: Array, arrived: Arrived) -> Array:
        """For each released event whether n vetoes the matches that end there: bool, see `vetoed_events`; times: of these events."""
        return vetoed_events(arrived.together if self.interleaved else arrived, times, self._completed, self.absences)

    def forget(self, now: int) -> None:
        """Drop the matches of n that can veto nothing, for all that waits or comes is later, once `now` has been released."""
        for number, completed in enumerate(self._completed):
            alive = undecided(completed.times, now - 1, longest(self.absences))
            self._completed[number] = completed if alive.all() else completed.take(alive)

    @property
    def released(self) -> Array:
        """The events of each slot that have been released (int64): what positions in a partition count here."""
        missing = self.partitions.slots - len(self._before)
        if missing > 0:
            self._before = np.append(self._before, np.zeros(max(missing, len(self._before)), np.int64))
        return self._before

    @property
    def runs(self) -> Sequence[AnyEvaluation]:
        """The evaluation of each n."""
        return self._runs

    @property
    def schema(self) -> pa.Schema:
        """Of the events that wait and that a match may show."""
        return self._empty.events.schema

    @property
    def words(self) -> int:
        """Words of what an event says to p."""
        return self._form.words or 1

    @property
    def begins_earlier(self) -> bool:
        """Whether some n may begin before the event that is read first."""
        return self._begun is not None

    # ---------------------------------------------------------------------------------------------------------------- giving back

    @property
    def held_events(self) -> list[pa.Table]:
        """The events that wait and that a match may show."""
        return [part.events for part in self._held]

    @property
    def completed(self) -> Sequence[Ends]:
        """For each absence the matches of n that may still veto something."""
        return self._completed

    @property
    def deadline(self) -> int | None:
        """When the first of the events that wait is decided: once an event after this time has come; None: none waits."""
        return int(self._held[0].times[0]) + self.delay if self._held else None

    def expire(self, now: int, idle: Array) -> Array:
        """Give back the memory of partitions in which no n can go on at `now` or later; returns those of the slots `idle` where nothing waits."""
        count = self.partitions.slots
        if self._begun is not None:
            self._begun.expire(now - max(absence.window for absence in self.absences))
        busy: Array = np.zeros(count, np.bool_)
        for part in self._held:
            busy[part.slots] = True
        for number, run in enumerate(self._runs):
            run.ensure_slots(count)
            open_: Array = np.ones(count, np.bool_)
            expired = run.expire(now)
            open_[expired[expired < count]] = False
            busy |= open_
            if run.wasteful:
                self._runs[number] = self.absences[number].evaluation(variant=self.variant, texts=self.texts)
                self._runs[number].load(run.dump())
        idle = idle[idle < count]
        return idle[~busy[idle]]

    def release_slots(self, slots: Array) -> None:
        """Forget the partitions in these idle slots."""
        self.released[slots] = 0
        for number, (run, completed) in enumerate(zip(self._runs, self._completed, strict=True)):
            run.release(slots)
            self._completed[number] = completed.take(~np.isin(completed.owners, slots))
        if self._begun is not None:
            self._begun.forget(slots)

    def text_numbers(self) -> list[Array]:
        """The numbers of the texts that are somewhere in it."""
        return [*(self._form.text_numbers(part.letters) for part in self._held), *(run.texts_in(run.dump()) for run in self._runs)]

    @property
    def nbytes(self) -> int:
        """Bytes of the run state."""
        held = sum(part.nbytes for part in self._held) + sum(completed.nbytes for completed in self._completed)
        held += 0 if self._begun is None else self._begun.nbytes
        return held + int(self._before.nbytes) + sum(run.memory_usage() for run in self._runs)

    # ---------------------------------------------------------------------------------------------------------------- snapshots

    def dump(self) -> dict[str, Any]:
        """The live state as named sections."""
        held = Held.joined([self._empty, *self._held])
        sections = {
            "held": np.stack([*np.atleast_2d(held.letters.T).view(np.int64), held.times, held.slots, held.shown]).astype("<i8").tobytes(),
            "held_events": held.events,
            "released": struct.pack("<q", self._released),
        }
        if self._begun is not None:
            sections["absence_begun"] = self._begun.dump().tobytes()
        for number, (run, completed) in enumerate(zip(self._runs, self._completed, strict=True)):
            sections |= {f"absence{number}/{name}": content for name, content in run.dump().items()}
            sections[f"absence{number}"] = np.stack([completed.owners, completed.positions, completed.times]).astype("<i8").tobytes()
        return sections

    def load(self, sections: Mapping[str, bytes], stored: Stored, *, latest: int) -> Stored:
        """Go on, fresh, from what `dump` gave, over partitions that are loaded; returns them with the events of each that have been released.

        latest: the greatest time so far. Raises SnapshotError or ValueError where that does not fit.
        """
        words = self._form.words
        *columns, times, slots, shown = numbers(sections, "held").reshape((words or 1) + 3, -1)
        letters = columns[0].view(np.uint64) if words is None else np.stack(columns, axis=1).view(np.uint64)
        events = container.table_of(sections["held_events"])
        slots = stored.slots[stored.rows(slots)]
        held = Held(letters, times, slots.astype(np.int32), shown.astype(np.bool_), events)
        wanted = self._empty.events.schema
        right = (events.schema.names, events.schema.types) == (wanted.names, wanted.types) and len(events) == int(held.shown.sum())
        right = right and self._form.fits(held.letters, self.texts) and not (times[1:] < times[:-1]).any()
        if not right or (times > latest).any() or (self._shown(letters) & ~held.shown).any():
            raise ValueError("its events that wait do not fit together")
        # Else they would not go together with others.
        held = dataclasses.replace(held, events=pa.Table.from_arrays(events.columns, schema=wanted))
        completed = []
        for number in range(len(self.absences)):
            owners, positions, moments = numbers(sections, f"absence{number}").reshape(3, -1)
            completed.append(Ends(stored.those(owners, positions), positions, moments))
        seen = self.partitions.seen[: self.partitions.slots]
        waiting = np.bincount(slots, minlength=len(seen))
        if (waiting > seen).any():
            raise ValueError("more events wait than have come")
        for number, run in enumerate(self._runs):
            prefix = f"absence{number}/"
            run.load({name.removeprefix(prefix): content for name, content in sections.items() if name.startswith(prefix)}, stored)
        if self._begun is not None:
            self._begun.load(numbers(sections, "absence_begun", width=4), stored)
        self._completed = completed
        self._held = deque([held] if len(held) else [])
        self._before = seen - waiting
        (released,) = struct.unpack("<q", sections["released"])
        self._released = container.integer(released, "released")
        return dataclasses.replace(stored, seen=self._before[stored.slots])


def _ends(found: Chunk, positions: Array, times: Array, arrived: Arrived) -> Ends:
    """The events of a batch that end some matches, with these positions."""
    return Ends(arrived.slots[found.segments], positions, times[arrived.rows_of(found.segments, found.ends)])


def _before(times: Array, bound: int) -> int:
    """How many of some ascending times are before a bound, which need not be an int64."""
    return len(times) if bound > ALWAYS else int(np.searchsorted(times, bound)) if bound > NEVER else 0
