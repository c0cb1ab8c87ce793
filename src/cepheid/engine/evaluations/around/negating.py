"""Negated patterns with guards beside an evaluation: of each event, when a match of one began that has ended (`plan.Derived`).

A partial match is refused if a negated pattern has a match that began after some place: the start of the partial match (UNLESS), or the end of what
is before the negation (`; NOT n ;`). So of all matches of the pattern that have ended, the greatest start decides (event-algebra, Figure 2): one
number for each negated pattern and partition. It is a value of each event, and a guard compares it with the place that a partial match has stored.
Places count the events that are read, so events that can change nothing may be left out. Where what is next goes by times (THEN) and matches may
begin before the event that is read first, the place is that of the first event of the time at which a match began. Under POINT it is that of the time
at which one has ended, before this one.

Comes in: events. Goes out: to the evaluation inside, the same events with these values; from it, its matches. A negated pattern has an evaluation of
its own, which gives the match with the greatest start of each event that ends one; it reads a batch before the evaluation inside does.
"""

from __future__ import annotations

import dataclasses
import itertools
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cepheid.automata.program import Program
from cepheid.engine.evaluations.around.past import Past
from cepheid.engine.evaluations.base import Around
from cepheid.engine.letters.encoded import Texts, ValueLayout, Values
from cepheid.engine.memory.checks import demand, fitting, inside, numbers, rows_of
from cepheid.engine.memory.store import Store
from cepheid.logical.plan import Begin, Derived

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from cepheid.automata.automaton import Negated
    from cepheid.engine.evaluations.base import AnyEvaluation, Bounds, Chunk
    from cepheid.engine.evaluations.events import Events
    from cepheid.engine.memory.pools import Array
    from cepheid.engine.memory.stored import Stored


class Negating(Around):
    """An evaluation whose events get the values that negated patterns give; the same interface.

    evaluation: of `program`, without state, within these bounds. start: makes the evaluation of a negated pattern. Costs what these evaluations cost,
    and O(1) per event and negated pattern; their state, and a number per partition for each.
    """

    def __init__(
        self,
        program: Program,
        evaluation: AnyEvaluation,
        start: Callable[[Program, Bounds], AnyEvaluation],
        bounds: Bounds,
    ) -> None:
        super().__init__(evaluation)
        self._negated = [(Program(each.automaton), _within(each, program, bounds)) for each in program.automaton.negated]
        # Where events began, and the first place of that time (True); and how far negated patterns had come: for those that ask for it.
        negated = program.automaton.negated
        self._begun = {each.timed: Past() for each in negated if each.earlier and (each.timed or each.automaton.begins is None)}
        self._begun_by = [self._begun[each.timed] if each.earlier and each.automaton.begins is None else None for each in negated]
        asked = {each for each in program.asked if isinstance(each, Derived) and each.number >= 0 and not each.rises}
        self._past = {each.number: (each, Past()) for each in asked}
        self._window = None if program.automaton.compares_all else bounds.get("window")
        self._start = start
        self._runs = [start(*each) for each in self._negated]
        ends = [number for number, each in enumerate(negated) if each.ends]
        self._ends = dict(zip(ends, itertools.count(1 + len(self._runs)), strict=False))
        self._ended = Ended(len(self._runs), ends=len(ends), timed=bool(ends) or True in self._begun)

    def chunks(self, events: Events) -> Iterator[Chunk]:
        """Read a batch, as `Evaluation.chunks`."""
        seen = _Segments(events, self._ended)
        made = {Derived("place"): seen.places}
        begins = {False: _begins(events) if self._pasts else seen.places}
        for timed, past in self._begun.items():
            if timed:
                begins[True] = made[Derived("begin of time")] = seen.keep_times(begins[False], past)
            else:
                seen.keep(begins[False], past)
        for number, run in enumerate(self._runs):
            given = dataclasses.replace(events, values=_with(events, made), vetoed=None)
            ended, before = seen.latest(number, run.chunks(given), self._begun_by[number], ends=number in self._ends)
            made |= {Derived("ended", number): ended, Derived("ended before", number): before}
            if number in self._ends:
                made[Derived("ended earlier", number)] = seen.earlier(number, self._ends[number], ended)
            if number in self._past:
                asked, past = self._past[number]
                by = asked.kind == "ended by begin"
                made[asked] = seen.at_begin(ended, before, begins[by], past, by=by)
        seen.close([past for past, _ in self._pasts.values()])
        yield from self.evaluation.chunks(dataclasses.replace(events, values=_with(events, made)))

    @property
    def _pasts(self) -> dict[str, tuple[Past, int | None]]:
        """All that is remembered of earlier places, by the name of its section, and for how long it is asked for.

        Where an event began is asked of what a negated pattern begins with. How far such a pattern had come is asked at places where events begin; a
        match that one of them goes on with begins before that place, and is no longer than the window.
        """
        found = {f"past{number}": (past, self._window) for number, (_, past) in self._past.items()}
        windows = [bounds.get("window") for _, bounds in self._negated]
        known = [window for window in windows if window is not None]
        longest = max(known) if known and len(known) == len(windows) else None
        return found | {"begun times" if timed else "begun": (past, longest) for timed, past in self._begun.items()}

    def release(self, slots: Array) -> None:
        """Forget the partitions in these slots."""
        self._ended.release(np.asarray(slots, np.int64) + 1)
        for past, _ in self._pasts.values():
            past.forget(np.asarray(slots, np.int64) + 1)
        for run in self._runs:
            run.release(slots)
        super().release(slots)

    def expire(self, time: int) -> Array:
        """Free what no match can go on with; returns the idle slots: a negated pattern matters to partial matches alone."""
        for run in self._runs:
            run.expire(time)
        for past, window in self._pasts.values():
            if window is not None:
                past.expire(time - window)
        return super().expire(time)

    def ensure_slots(self, count: int) -> None:
        """Make slots 0 .. count - 1 exist."""
        self._ended.ensure(count + 1)
        for run in self._runs:
            run.ensure_slots(count)
        super().ensure_slots(count)

    def memory_usage(self) -> int:
        """Bytes of the run state."""
        return (
            super().memory_usage()
            + self._ended.nbytes
            + sum(past.nbytes for past, _ in self._pasts.values())
            + sum(run.memory_usage() for run in self._runs)
        )

    def dump(self) -> dict[str, Any]:
        """The live state as named sections."""
        sections = {**super().dump(), "negated": self._ended.dump()}
        sections |= {name: past.dump() for name, (past, _) in self._pasts.items()}
        for number, run in enumerate(self._runs):
            sections |= {f"negated{number}/{name}": section for name, section in run.dump().items()}
        return sections

    def load(self, sections: Mapping[str, Any], stored: Stored | None = None) -> None:
        """Go on, fresh, from what `dump` gave; raises SnapshotError where that does not fit."""
        with fitting():
            self._ended.load(numbers(sections, "negated", width=1 + self._ended.records.shape[1]), stored)
            for name, (past, _) in self._pasts.items():
                past.load(numbers(sections, name, width=4), stored, first=1)
        for number, run in enumerate(self._runs):
            run.load(_section(sections, number), stored)
        super().load(sections, stored)

    def letters_in(self, sections: Mapping[str, Any]) -> Array:
        """The letters of events that what `dump` gave speaks of, in any order (int64)."""
        return np.concatenate(
            [super().letters_in(sections), *(run.letters_in(_section(sections, number)) for number, run in enumerate(self._runs))]
        )

    def texts_in(self, sections: Mapping[str, Any]) -> Array:
        """The numbers of texts that what `dump` gave speaks of, in any order (int64)."""
        return np.concatenate(
            [super().texts_in(sections), *(run.texts_in(_section(sections, number)) for number, run in enumerate(self._runs))]
        )

    @property
    def wasteful(self) -> bool:
        """Whether a fresh instance with the same state would need much less memory."""
        return super().wasteful or any(run.wasteful for run in self._runs)


def negating(
    program: Program, evaluation: AnyEvaluation, start: Callable[[Program, Bounds], AnyEvaluation], bounds: Bounds
) -> AnyEvaluation:
    """An evaluation of a program with what its negated patterns need around it."""
    return Negating(program, evaluation, start, bounds) if program.automaton.negated else evaluation


def _within(negated: Negated, program: Program, bounds: Bounds) -> Bounds:
    """The bounds of a negated pattern: of each trigger the match with the greatest start.

    It matters inside a match alone, so it is no longer than this may be. But strategies inside the pattern compare matches of any length, and POINT
    does.
    """
    alone = negated.ends or program.automaton.compares_all
    around = [] if alone else [bounds.get("window")]
    around_count = [] if alone else [bounds.get("count_window")]
    window = min((each for each in (negated.window, *around) if each is not None), default=None)
    count = min((each for each in (negated.count, *around_count) if each is not None), default=None)
    # The match of the greatest start is not that of the greatest begin.
    return {"window": window, "count_window": count, "limit": None if negated.earlier else 1, "variant": bounds.get("variant")}


def _section(sections: Mapping[str, Any], number: int) -> dict[str, Any]:
    prefix = f"negated{number}/"
    return {name.removeprefix(prefix): section for name, section in sections.items() if name.startswith(prefix)}


class Ended(Store):
    """Of each partition how many events it has had, and for each negated pattern the greatest start of its matches that have ended, plus 1.

    ends: of so many of them also what it was before the time of the last event. timed: then also this time, and its first place.
    """

    records: Array

    def __init__(self, negated: int, *, ends: int, timed: bool) -> None:
        super().__init__(records=np.zeros(1 + negated + ends + 2 * timed, np.int64))
        self._timed = timed

    def dump(self) -> Array:
        """A line for each partition that has had an event: its slot, and these numbers."""
        rows = np.flatnonzero(self.records[:, 0])
        return np.column_stack([rows - 1, self.records[rows]]).astype("<i8")

    def load(self, lines: Array, stored: Stored | None) -> None:
        """Go on, fresh, from what `dump` gave; raises ValueError where it does not fit."""
        rows = rows_of(lines[:, 0], lines[:, 1], stored)
        greatest = lines[:, 2:-2] if self._timed else lines[:, 2:]
        demand(lines[:, 1] > 0, inside(greatest, 0, lines[:, 1:2] + 1))
        if self._timed:
            demand(inside(lines[:, -1], 0, lines[:, 1]))
        self.ensure(int(rows.max(initial=0)) + 1)
        self.records[rows] = lines[:, 1:]


class _Segments:
    """The events of a batch, by the partition that they are in. places: of each event, how many came before it in its partition."""

    def __init__(self, events: Events, ended: Ended) -> None:
        rows = events.records(workplace=0)
        ended.open(rows)
        self._ended, self._cuts, self._times = ended, events.cuts, events.times
        lengths = self._lengths = np.diff(events.cuts, append=len(events))
        # Partitions that are not kept are behind all others, but for the one that goes on, in the workplace.
        apart = np.flatnonzero(rows == 0)
        if len(apart) and apart[0] == 0 and events.continued:
            apart = apart[1:]
        owners = rows.astype(np.int64)
        owners[apart] = len(ended) + np.arange(len(apart))
        self._kept, segment_partition = np.unique(owners, return_inverse=True)
        self._segment_partition = segment_partition
        before = np.zeros((len(self._kept), ended.records.shape[1]), np.int64)
        known = self._kept < len(ended)
        before[known] = ended.records[self._kept[known]]
        self._before, self._last = before, segment_partition[-1] if len(rows) and rows[-1] == 0 else None
        # Events by partition, in their order: mostly as they lie.
        partition = np.repeat(segment_partition, lengths)
        self._order = None if (np.diff(partition) >= 0).all() else np.argsort(partition, kind="stable")
        self._partition = partition if self._order is None else partition[self._order]
        self._firsts = np.flatnonzero(np.diff(self._partition, prepend=-1))
        self._counts = np.diff(self._firsts, append=len(partition))
        self._present = self._partition[self._firsts]
        numbers_ = np.arange(len(partition)) - np.repeat(self._firsts, self._counts) + before[self._partition, 0]
        self.places = self._unsorted(numbers_)
        self._base = np.zeros(len(rows), np.int64)  # the place of the first event of each segment
        some = lengths > 0
        self._base[some] = self.places[events.cuts[some]]
        self._after = before.copy()
        self._after[self._present, 0] += self._counts

    def _sorted(self, values: Array) -> Array:
        return values if self._order is None else values[self._order]

    def _unsorted(self, values: Array) -> Array:
        if self._order is None:
            return values
        found = np.empty_like(values)
        found[self._order] = values
        return found

    def keep(self, begins: Array, begun: Past) -> None:
        """Remember where the events of this batch begin that begin before their places."""
        self._keep(np.flatnonzero(begins < self.places), begins, begun)

    def _keep(self, events: Array, values: Array, past: Past) -> None:
        past.add(self._owners(events), self.places[events], values[events], self._times[events])

    def keep_times(self, begins: Array, past: Past) -> Array:
        """Of each event the first place of the time at which it begins; what is not its own place is remembered.

        begins: where each begins. That is the place of an event which came in, and is itself remembered.
        """
        moments = self._unsorted(self._moments).copy()
        earlier = begins < self.places
        self._keep(np.flatnonzero(~earlier & (moments < self.places)), moments, past)
        made = np.flatnonzero(earlier)
        moments[made] = past.at(self._owners(made), begins[made])
        self._keep(made, moments, past)
        return moments

    @cached_property
    def _moments(self) -> Array:
        """Of each event, in the order of partitions, the first place of its time. The last is kept."""
        times, places = self._sorted(self._times), self._sorted(self.places)
        first = np.diff(times, prepend=0) != 0
        last = self._before[self._present]
        first[self._firsts] = (last[:, 0] == 0) | (times[self._firsts] != last[:, -2])
        found = self._greatest(np.where(first, places, 0), last[:, -1])
        ends = self._firsts + self._counts - 1
        self._after[self._present, -2:] = np.column_stack([times[ends], found[ends]])
        return found

    def earlier(self, number: int, column: int, ended: Array) -> Array:
        """Of each event what `ended` was at the last event of an earlier time; -1 without one. column: where the records keep it."""
        before = self._before[self._present]
        base = np.repeat(self._sorted(self.places)[self._firsts], self._counts)
        since = (
            self._moments - base
        )  # places of this batch in front of the time of each event; less than 0 where that began before the batch
        found = self._sorted(ended)[np.maximum(np.repeat(self._firsts, self._counts) + since - 1, 0)]
        found = np.where(since > 0, found, np.repeat(before[:, number + 1] - 1, self._counts))
        found = np.where(since < 0, np.repeat(before[:, column] - 1, self._counts), found)
        self._after[self._present, column] = found[self._firsts + self._counts - 1] + 1
        return self._unsorted(found)

    def at_begin(self, ended: Array, before: Array, begins: Array, past: Past, *, by: bool) -> Array:
        """Of each event the greatest start of the matches that have ended before a place where it begins, or by it; ended, before: as of `latest`."""
        self._keep(np.flatnonzero(ended > before), ended, past)
        earlier = np.flatnonzero(begins < self.places)
        found = (ended if by else before).copy()
        found[earlier] = past.last(self._owners(earlier), begins[earlier] - (not by))[1]
        return found

    def _owners(self, events: Array) -> Array:
        """The numbers of the partitions of some events: rows, and numbers behind all rows for partitions that are not kept."""
        owners: Array = self._kept[np.repeat(self._segment_partition, self._lengths)[events]]
        return owners

    def latest(self, number: int, chunks: Iterator[Chunk], begun: Past | None, *, ends: bool) -> tuple[Array, Array]:
        """Of each event the greatest start of the matches in these chunks that have ended, with it or before it.

        begun: where events began, of a pattern that may begin before the event that is read first: then the chunks have all its intervals; None also
        where these are from where matches begin. ends: not their starts, but the first places of the times at which they end.
        """
        starts: Array = np.zeros(len(self.places), np.int64)
        for chunk in chunks:
            rows = self._cuts[chunk.segments] + chunk.ends - self._base[chunk.segments]
            if ends:
                starts[rows] = self._unsorted(self._moments)[rows] + 1
            elif begun is None:
                starts[rows] = chunk.starts + 1
            else:
                owners = self._kept[self._segment_partition[chunk.segments]]
                np.maximum.at(starts, rows, begun.at(owners, chunk.starts) + 1)
        starts = self._sorted(starts)
        before = self._before[self._present, number + 1]
        ended = self._greatest(starts, before)
        earlier = np.concatenate([np.zeros(1, np.int64), ended[:-1]])[: len(ended)]
        earlier[self._firsts] = before
        self._after[self._present, number + 1] = ended[self._firsts + self._counts - 1]
        return self._unsorted(ended - 1), self._unsorted(earlier - 1)

    def _greatest(self, values: Array, before: Array) -> Array:
        """The greatest value so far in each partition. values: in the order of partitions, changed here; before: of each partition that is there."""
        values[self._firsts] = np.maximum(values[self._firsts], before)
        if len(self._firsts) <= 1:
            return np.maximum.accumulate(values)
        # Partitions one above the other: the greatest so far is then that of the partition.
        level = np.repeat(np.arange(len(self._firsts)) * (1 + int(values.max(initial=0))), self._counts)
        return np.maximum.accumulate(values + level) - level

    def close(self, past: Sequence[Past]) -> None:
        """Keep what the partitions go on from; past: what is remembered of their places."""
        known = self._kept < len(self._ended)
        self._ended.records[self._kept[known]] = self._after[known]
        if self._last is not None:
            self._ended.records[0] = self._after[self._last]
        for each in past:
            if self._last is not None and self._kept[self._last] != 0:
                each.rename(int(self._kept[self._last]), 0)
            each.forget(self._kept[~known])


def _begins(events: Events) -> Array:
    """Where each event begins."""
    assert events.values is not None
    return events.values.words[:, events.values.layout.places[Begin.of("place")].start].view(np.int64)


def _with(events: Events, made: Mapping[Derived, Array]) -> Values:
    """The values of events with more of them, behind the others."""
    old = Values(ValueLayout(()), np.zeros((len(events), 0), np.uint64), Texts()) if events.values is None else events.values
    layout = ValueLayout((*old.layout.values, *made))
    nulls = layout.width - layout.null_at if old.nullable else 0
    # PERF: column by column, as they are read.
    words: Array = np.zeros((layout.null_at + nulls, len(events)), np.uint64).T
    words[:, : old.layout.null_at] = old.words[:, : old.layout.null_at]
    for value, column in made.items():
        words[:, layout.places[value].start] = column.view(np.uint64)
    if nulls:
        words[:, layout.null_at : layout.null_at + old.layout.width - old.layout.null_at] = old.words[:, old.layout.null_at :]
    return Values(layout, words, old.texts)
