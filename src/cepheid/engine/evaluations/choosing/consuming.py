"""CONSUME BY PARTITION decided from outside: a strategy chooses in a partition that starts anew behind a trigger of which HAVING leaves a match.

The order of a query is CONSUME BY, the strategy, HAVING. What HAVING leaves out uses nothing up; so an evaluation cannot consume by itself. From the
event behind a trigger that uses up, what competes is all that the evaluation inside finds in the events from there on, read as a new partition. So
the evaluation inside never consumes, and chooses by its own means. It reads each partition in pieces; what it gives is judged. Up to the first
trigger of which something is left, all is as it should be. What was read behind that trigger is forgotten, the partition is released, and the next
piece begins behind the trigger. Pieces of all partitions are read together, a round at a time. They grow while nothing is used up, and are twice as
long as it took to the last trigger otherwise: so each event is read two or three times, but for the first piece.

A piece for each such trigger would cost more than its events where they are many. So a partition that starts anew is read from each of its next
events that can begin a match, as many partitions of their own, at once: each says where its first trigger is, and the true ones are found from one to
the next. A few events of each are read first, and more of those that have found none. Where this is dear, a piece is read first. It says of which
triggers something would be left if the first one had used nothing up. Most of those that are next are among them, so only what is behind these is
read.

Where HAVING asks for more than the events so far have together (`bounding`), no match is left, and they are read without listing any.

It stands inside what makes letters (trackers, numbers), for these see all events of a partition. Patterns that look at all events by evaluations of
their own (negated and nested ones that compare events) are not read in this way: `engine.run.having` lists their matches.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cepheid.automata.alphabet import Scope
from cepheid.engine.evaluations.base import Around, BufferedRun, Chunk, collect
from cepheid.engine.evaluations.choosing.bounding import Bound
from cepheid.engine.letters.codes import having
from cepheid.engine.letters.words import in_words
from cepheid.engine.memory.checks import demand, fitting, inside, numbers
from cepheid.engine.memory.pools import NUMBER_LIMIT, offsets_of, ragged
from cepheid.engine.memory.stored import Stored
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

    from cepheid.automata.program import Program
    from cepheid.engine.evaluations.base import AnyEvaluation
    from cepheid.engine.evaluations.events import Events
    from cepheid.engine.memory.pools import Array
    from cepheid.logical.growing import Need

    Judge = Callable[[Iterator[Chunk], Array], Iterator[Chunk]]

FIRST_PIECE = 64
"""Events in the first piece of a partition."""

FIRST_LISTED = 8
"""The same where all matches are listed, of which there may be twice as many with each event."""

LISTED = 2_048
"""Matches of a piece up to which a longer one is read, where all are listed."""

LONGEST_PIECE = 1 << 16
"""Events in a piece, at most."""

FEW = 16
"""Partitions of which it is known what is behind each trigger of a piece; and that are read first, to see how many events it takes to a trigger."""

ENOUGH = 3
"""Events from which on to read at once."""

LASTING = 64
"""Triggers after which those before count half."""

ROUND, PIECE = 15_000, 60
"""Events in whose place could be read one piece of each partition, and what each of them takes beside its events."""

DEAR = 24
"""How often each event is read then, at most and on average. A piece for each trigger costs more where triggers are some ten events apart."""

MARKS = 32
"""Events of matches for each event of a piece, up to which longer pieces are read: where nothing is used up matches may be long."""

CUT = 1 << 16
"""Events that matches may have which need not be listed, from which on a piece is cut where HAVING can first be met."""

SECTION, HAD = "consuming", "consuming_had"

ONE: Array = np.ones(1, np.int64)


@record
class Piece:
    """What is read together, for each segment: its first row in the batch, its events, where its partition starts anew, and the segment of this.

    done: how many events were read from there on before these.
    """

    rows: Array
    lengths: Array
    low: Array
    segments: Array
    done: Array


@record
class Rest:
    """What is to be read of partitions that start anew: of each the segment, its rows from `row` to `stop`, and the position of the first one."""

    segment: Array
    row: Array
    stop: Array
    low: Array

    def piece(self, parts: Array, rows: Array, lengths: Array) -> Piece:
        """A piece that starts anew at these rows of these partitions, by their numbers."""
        return Piece(rows, lengths, rows - self.row[parts] + self.low[parts], self.segment[parts], np.zeros_like(rows))


@dataclass(slots=True)
class Pace:
    """How many events were read up to how many triggers of which something was left, the last ones more than those before.

    density: the part of events that can begin a match.
    """

    events: int = 0
    triggers: int = 0
    density: float = 0.0

    def add(self, events: int, triggers: int) -> None:
        """So many more."""
        if self.triggers > LASTING:
            self.events, self.triggers = self.events // 2, self.triggers // 2
        self.events, self.triggers = self.events + events, self.triggers + triggers

    @property
    def reach(self) -> int:
        """Within how many events there is a trigger, mostly; more than there are where none is known."""
        return max(2 * self.events // self.triggers, 1) if self.triggers else NUMBER_LIMIT

    @staticmethod
    def is_dear(density: Array | float, reach: Array, partitions: int) -> Array:
        """Whether to read so many events (int64) from each that can begin a match costs more than a piece for each trigger does."""
        dear: Array = 2.0 * density * reach > np.minimum(DEAR, 2 + 2 * (ROUND / partitions + PIECE) / np.maximum(reach, 1))
        return dear


class Left:
    """Of which triggers something is left, in the segments of a piece.

    first: for each segment the position of the first one, -1 without any. matches, marks: how many were judged, and the events of all. later:
    whether it is said later of which segments the matches are given (`Consuming._given`).
    """

    def __init__(self, count: int, *, later: bool = False) -> None:
        self.first: Array = np.full(count, -1, np.int64)
        self.later = later
        self.marks = 0
        self.matches = 0
        self._seen: list[tuple[Array, Array]] = []

    def see(self, segments: Array, ends: Array) -> Array:
        """Some matches that are left, by their segments and ends, in the order of these; returns the numbers of those of first triggers."""
        self._seen.append((segments, ends))
        begins = np.flatnonzero(np.diff(segments, prepend=-1))
        fresh = begins[self.first[segments[begins]] < 0]
        self.first[segments[fresh]] = ends[fresh]
        return np.flatnonzero(ends == self.first[segments])

    def add(self, other: Left, those: Array) -> None:
        """What is left in some segments, by their numbers here."""
        self.first[those] = other.first
        self.marks, self.matches = self.marks + other.marks, self.matches + other.matches
        self._seen += [(those[segments], ends) for segments, ends in other._seen]

    def of(self, segment: int) -> Array:
        """The triggers of a segment, ascending."""
        return np.unique(np.concatenate([ends[segments == segment] for segments, ends in self._seen]))


class Consuming(Around):
    """An evaluation of partitions that start anew where its judge leaves a match of a trigger; the same interface.

    evaluation: without consumption. judge: of some chunks of matches those that are left; it gets for each of their segments that of `chunks`.
    begins: for letters whether a match may begin at their events (bool), see `beginning`.
    lists: whether all matches are listed. rereads: whether to read an event costs little. need: what HAVING asks for at least, None: not known.
    Gives what is left of the triggers that compete: that of one segment as it is made, of several when all have been read.
    """

    def __init__(
        self, evaluation: AnyEvaluation, judge: Judge, begins: Callable[[Array], Array], *, lists: bool, rereads: bool, need: Need | None
    ) -> None:
        super().__init__(evaluation)
        self.bound = None if need is None else Bound(need)
        self._judge = judge
        self._begins = begins
        self._lists = lists
        self._dear = DEAR if rereads else 0
        self._marked: Array = np.zeros(0, np.uint8)
        # By slot: the position from which matches may start, and how many events from there on have been read.
        self._low: Array = np.zeros(0, np.int64)
        self._done: Array = np.zeros(0, np.int64)
        self._open = 0  # the slot of the last segment, of those that come without
        self._pace = Pace()

    @property
    def _first(self) -> int:
        """Events in the first piece of a partition."""
        return FIRST_LISTED if self._lists else FIRST_PIECE

    @property
    def marked(self) -> Array:
        """uint8 per row of the last batch: 1 where the event may appear in a match."""
        return self._marked

    @property
    def reached(self) -> int:
        """How many rows of the last batch the matches given so far may show."""
        return len(self._marked)

    @property
    def passed(self) -> int:
        """How many rows of the batch that is being read have been read to their end: they are read in rounds, which is not known of each."""
        return 0

    def chunks(self, events: Events) -> Iterator[Chunk]:
        """Read a batch, as `Evaluation.chunks`: in the order of segments, and in each in that of the events that end matches."""
        self._marked = np.zeros(len(events), np.uint8)
        if not len(events):
            return
        kept = int(events.slots[0]) >= 0
        if kept and len(events) == 1:  # PERF: pushed alone, it costs half as much
            yield from self._one(events, int(events.slots[0]))
            return
        count, lengths = len(events.cuts), np.diff(events.cuts, append=len(events))
        slots = events.slots.astype(np.int64) if kept else self._borrowed(lengths, continued=events.continued)
        self._fit(int(slots.max()) + 1)
        found = self._rounds(events, slots, events.cuts.copy(), events.cuts + lengths)
        if count == 1:
            yield from found
        else:
            every = list(found)
            if every:
                chunk = collect(every)
                yield chunk.take(np.argsort(chunk.segments, kind="stable"))
        if not kept:
            others = slots[:-1][slots[:-1] >= 0]
            self.release(others)

    def _borrowed(self, lengths: Array, *, continued: bool) -> Array:
        """Slots for segments that come without: for the last, which may go on, and for those that are read in several pieces; -1 for the others."""
        slots = np.full(len(lengths), -1, np.int64)
        lasting = np.flatnonzero(lengths > self._first)
        lasting = np.union1d(lasting, [len(lengths) - 1])
        slots[lasting] = np.setdiff1d(np.arange(len(lasting) + 1), [self._open])[: len(lasting)]
        if continued:
            slots[0] = self._open
        else:
            self._fit(self._open + 1)
            self.release(np.array([self._open]))
        self._open = int(slots[-1])
        return slots

    def _fit(self, count: int) -> None:
        """Room for so many slots."""
        if count > len(self._low):
            more = np.zeros(max(count, 2 * len(self._low)) - len(self._low), np.int64)
            self._low, self._done = np.append(self._low, more), np.append(self._done, more)
            if self.bound is not None:
                self.bound.fit(len(self._low))
        self.evaluation.ensure_slots(count)

    def _one(self, event: Events, slot: int) -> Iterator[Chunk]:
        """Read one event of a partition that is kept."""
        self._fit(slot + 1)
        left = Left(1)
        own = slice(slot, slot + 1)
        for chunk, _ in self._from_bound(event, slice(0, 1), Piece(event.cuts, ONE, self._low[own], event.cuts, self._done[own]), left):
            yield chunk
        self._done[slot] += 1
        if left.first[0] >= 0:
            self._low[slot] += self._done[slot]
            self._done[slot] = 0
            self._begin_anew(np.array([slot]))

    def _rounds(self, events: Events, slots: Array, rows: Array, stops: Array) -> Iterator[Chunk]:
        """A piece of each partition after the other, until all have been read. rows, stops: of the segments; `rows` moves on."""
        owners = np.where(slots >= 0, slots, len(self._low) + np.arange(len(slots)))
        names, owners = np.unique(owners, return_inverse=True)
        known = names < len(self._low)
        low, done = (np.zeros(len(names), np.int64) for _ in range(2))
        low[known], done[known] = self._low[names[known]], self._done[names[known]]
        sizes = np.where(done > 0, 1 if self._lists else self._first, self._first)
        spans, reaches = np.full(len(names), self._first), np.zeros(len(names), np.int64)
        triggers: dict[int, Array] = {}  # by segment: see `_ahead`
        listed, light = 0, True
        while len(active := np.flatnonzero(rows < stops)):
            # The segments of one partition wait for each other.
            now = np.sort(active[np.unique(owners[active], return_index=True)[1]])
            mine = owners[now]
            reach = reaches[mine] if self._lists else np.full(len(now), self._pace.reach)
            anew = (done[mine] == 0) & (reach > 0) & (reach <= stops[now] - rows[now])
            anew &= ~self._pace.is_dear(self._pace.density, reach, len(now)) | np.isin(now, list(triggers))
            if self._dear and listed <= LISTED and anew.any():
                here, mine, reach = now[anew], mine[anew], reach[anew]
                rest = Rest(here, rows[here], stops[here], low[mine])
                read, sought, dense = yield from self._ahead(events, rest, np.maximum(spans[mine], 4 * reach), reach, triggers)
                rows[here] += read
                low[mine] += read
                far = 2 * read >= sought
                longer = np.where(far, np.minimum(4 * sought, LONGEST_PIECE), np.maximum(2 * read, self._first))
                spans[mine] = np.where(dense, spans[mine], longer)
                sizes[mine] = np.where(dense & far & light, longer, np.where(read > 0, reach, sizes[mine]))
                now = now[rows[now] < stops[now]]
                if not len(now):
                    continue
            if self._dear and not (self._pace.events or self._lists):  # PERF: a few say for the others how far it is to a trigger
                now = now[:FEW]
            mine, ahead = owners[now], stops[now] - rows[now]
            lengths = np.where(slots[now] >= 0, np.minimum(sizes[mine], ahead), ahead)
            left = Left(len(now))
            piece = Piece(rows[now], lengths, low[mine], now, done[mine])
            for chunk, own in self._read(events, piece, slots[now], left):
                yield dataclasses.replace(chunk, segments=now[own].astype(np.int32))
            anew = left.first >= 0
            taken = left.first - low[mine] + 1  # events from the first that competes to the trigger
            gone = np.where(anew, taken - done[mine], lengths)
            self._pace.add(int(gone.sum()), int(anew.sum()))
            rows[now] += gone
            done[mine] = np.where(anew, 0, done[mine] + lengths)
            low[mine] = np.where(anew, left.first + 1, low[mine])
            self._begin_anew(slots[now[anew & (slots[now] >= 0)]])
            listed, light = left.matches // len(now) if self._lists else 0, left.marks <= MARKS * int(lengths.sum())
            longer = 2 * lengths if listed <= LISTED else lengths // 2 if listed <= 8 * LISTED else 1
            sizes[mine] = np.clip(np.where(anew, 2 * taken, longer), 1, LONGEST_PIECE)
            reaches[mine] = np.where(anew, sizes[mine], reaches[mine])
            triggers = {int(now[number]): left.of(number) for number in np.flatnonzero(anew).tolist()} if len(now) <= FEW else {}
        self._low[names[known]], self._done[names[known]] = low[known], done[known]

    def _ahead(
        self, events: Events, rest: Rest, spans: Array, reach: Array, triggers: Mapping[int, Array]
    ) -> Generator[Chunk, None, tuple[Array, Array, Array]]:
        """Go on in partitions that start anew, in each from one trigger of which something is left to the next.

        spans: within how many events the next ones are sought. reach: how many events it takes to the next one, more or less. triggers: by segment,
        those of which something would be left if the first of them had used nothing up. Returns for each partition how many events were read, within
        how many triggers were sought, and whether it was dear to read on from all events that can begin a match, so that only what is behind
        `triggers` was.
        """
        seen = np.array([triggers[segment][-1] + 2 if segment in triggers else 0 for segment in rest.segment.tolist()]) - rest.low
        of, rows = ragged(rest.row, np.minimum(np.maximum(spans, seen), rest.stop - rest.row))
        begins = self._begins(np.take(events.letters, rows, axis=0))
        self._pace.density = float(begins.mean())
        rows, of = rows[begins], of[begins]
        dense = self._pace.is_dear(np.bincount(of, minlength=len(spans)) / spans, reach, len(spans))
        asked = ~dense[of]
        for number in np.flatnonzero(dense).tolist():
            behind = triggers.get(int(rest.segment[number]), rest.row[:0]) + 1 + rest.row[number] - rest.low[number]
            places = np.searchsorted(rows, behind)
            places = places[places < len(rows)]
            asked[places[of[places] == number]] = True
            spans[number] = int(behind.max(initial=rest.row[number])) + 1 - rest.row[number]
        starts, read = np.flatnonzero(asked), np.zeros_like(spans)
        if len(starts) < ENOUGH:
            return read, spans, dense
        first: Array = np.full(len(rows), -1)
        budget = self._dear * int(spans[np.unique(of[starts])].sum())
        found = list(self._first_left(events, rest, of, rows, starts=starts, reach=reach, budget=budget, first=first))
        self._begin_anew(np.array([-1]))  # the last of them, which a snapshot would have
        following = np.searchsorted(rows, first + 1 + (rest.row - rest.low)[of])
        chosen = _linked(of, following, first >= 0)
        if len(chosen):
            part, ends = of[chosen], first[chosen]
            read[part] = ends + 1 - rest.low[part]  # of several in one partition, the last
            self._pace.add(int(read.sum()), len(chosen))
            piece = rest.piece(part, rows[chosen], ends + 1 + (rest.row - rest.low)[part] - rows[chosen])
            for chunk in self._given(events, piece, ends, found, chosen):
                yield dataclasses.replace(chunk, segments=piece.segments[chunk.segments].astype(np.int32))
        return read, spans, dense

    def _first_left(
        self, events: Events, rest: Rest, of: Array, rows: Array, *, starts: Array, reach: Array, budget: int, first: Array
    ) -> Iterator[tuple[Chunk, Array]]:
        """Read on from some rows, by their numbers, each a partition of its own; what is left of their first triggers, with these numbers.

        of: the number in `rest` of the partition of each row. budget: how many events to read in all. first: the positions of the triggers, to fill.
        From each row on the first events are read, then four times as many where nothing was left, and so on up to four times `reach`.
        """
        length, longest = np.maximum(reach // 4, 1), reach if self._lists else 4 * reach
        while len(starts):
            part = of[starts]
            lengths = np.minimum(length[part], rest.stop[part] - rows[starts])
            budget -= int(lengths.sum())
            if budget < 0:
                return
            left = Left(len(starts), later=True)
            piece = rest.piece(part, rows[starts], lengths)
            for chunk, own in self._read(events, piece, np.full(len(part), -1), left):
                yield chunk, starts[own]
            first[starts] = left.first
            starts = starts[(left.first < 0) & (lengths == length[part]) & (lengths < longest[part])]
            length = np.minimum(4 * length, longest)

    def _given(self, events: Events, piece: Piece, triggers: Array, found: list[tuple[Chunk, Array]], numbers: Array) -> Iterator[Chunk]:  # noqa: ARG002
        """What is left of one trigger of each segment of a piece, in their order. found: matches, with their numbers; numbers: of the segments."""
        those = [(chunk.take(some), own[some]) for chunk, own in found if len(some := np.flatnonzero(np.isin(own, numbers)))]
        owners = np.searchsorted(numbers, np.concatenate([own for _, own in those]))
        chunk = dataclasses.replace(collect([chunk for chunk, _ in those]), segments=owners.astype(np.int32))
        yield chunk.take(np.argsort(owners, kind="stable"))

    def _read(self, events: Events, piece: Piece, slots: Array, left: Left) -> Iterator[tuple[Chunk, Array]]:
        """Read a piece of a batch, as `_left`."""
        index = index_of(piece.rows, piece.lengths)
        read = events.of(index, cuts=offsets_of(piece.lengths)[:-1], slots=slots.astype(np.int32))
        yield from self._from_bound(read, index, piece, left)

    def _from_bound(self, read: Events, rows: Array | slice, piece: Piece, left: Left) -> Iterator[tuple[Chunk, Array]]:
        """As `_left`; what comes before HAVING can be met is read without listing."""
        bound, kept = self.bound, read.slots >= 0
        vain = np.zeros_like(piece.lengths) if bound is None or read.worth is None else bound.first(read)
        # PERF: to cut a piece costs more than to list some matches; and a partition that is not kept is read whole or not at all.
        some = np.flatnonzero(vain < piece.lengths)
        if len(some):
            vain[some[~kept[some]]] = 0
            vain *= int((vain * (piece.done + vain)).sum()) >= CUT
        if not vain.any():
            yield from self._left(read, rows, piece, left)
            return
        self._read_on(read, rows, read.cuts[kept], vain[kept], read.slots[kept])
        if len(some):
            lengths = piece.lengths[some] - vain[some]
            index = index_of(read.cuts[some] + vain[some], lengths)
            rest = read.of(index, cuts=offsets_of(lengths)[:-1], slots=read.slots[some])
            own = Piece(piece.rows[some] + vain[some], lengths, piece.low[some], piece.segments[some], piece.done[some] + vain[some])
            found = Left(len(some), later=left.later)
            for chunk, segments in self._left(rest, inside_of(rows, index), own, found):
                yield chunk, some[segments]
            left.add(found, some)

    @property
    def _readers(self) -> tuple[AnyEvaluation, ...]:
        """The evaluations that read the events."""
        return (self.evaluation,)

    def _read_on(self, read: Events, rows: Array | slice, starts: Array, lengths: Array, slots: Array) -> None:
        """Read some segments without listing a match. starts, lengths: where they stand in `read`."""
        for evaluation in self._readers:
            self._pass(evaluation, read, rows, starts, lengths, slots)

    def _pass(self, evaluation: AnyEvaluation, read: Events, rows: Array | slice, starts: Array, lengths: Array, slots: Array) -> None:
        """Let an evaluation read some segments without listing a match. starts, lengths: where they stand in `read`."""
        some = np.flatnonzero(lengths > 0)
        if not len(some):
            return
        if len(some) == len(read.cuts) and int(lengths.sum()) == len(read):
            part = dataclasses.replace(read, slots=slots[some])
        else:
            index = index_of(starts[some], lengths[some])
            part = read.of(index, cuts=offsets_of(lengths[some])[:-1], slots=slots[some])
            rows = inside_of(rows, index)
        run = evaluation.evaluation if isinstance(evaluation, Around) else evaluation
        assert isinstance(run, BufferedRun)
        run.read_on(part)
        self._mark(evaluation.marked, rows)

    def _left(self, read: Events, rows: Array | slice, piece: Piece, left: Left) -> Iterator[tuple[Chunk, Array]]:
        """What is left of the first trigger of each segment of a piece of which something is left, and the segment in the piece of each match.

        read: the events of the piece. rows: where they stand in the batch.
        """
        for chunk, segments in self._judged(self.evaluation, read, rows, piece, left):
            those = left.see(segments, chunk.ends)
            if len(those):
                yield (chunk, segments) if len(those) == len(chunk) else (chunk.take(those), segments[those])

    def _judged(
        self, evaluation: AnyEvaluation, read: Events, rows: Array | slice, piece: Piece, left: Left
    ) -> Iterator[tuple[Chunk, Array]]:
        """What an evaluation finds in events and the judge leaves, and the segment in the piece of each match."""

        def made() -> Iterator[Chunk]:
            for chunk in evaluation.chunks(read):
                self._mark(evaluation.marked, rows)
                if len(chunk):
                    left.marks += len(chunk.positions)
                    left.matches += len(chunk)
                    yield dataclasses.replace(
                        chunk, positions=chunk.positions + np.repeat(piece.low[chunk.segments], np.diff(chunk.offsets))
                    )

        for chunk in self._judge(made(), piece.segments):
            if len(chunk):
                yield chunk, chunk.segments
        self._mark(evaluation.marked, rows)

    def _mark(self, marked: Array, rows: Array | slice) -> None:
        """Mark what an evaluation has marked in these rows of the batch."""
        if isinstance(rows, slice):
            self._marked[rows] |= marked
        else:
            self._marked[rows[marked.view(np.bool_)]] = 1

    def held(self) -> tuple[Array, Array] | None:
        """(slot, position) of each event that a later match may show, None: what bounds the matches says it."""
        held = self.evaluation.held()
        return held if held is None else (held[0], held[1] + self._low[held[0]])

    def _begin_anew(self, slots: Array) -> None:
        """Forget what has been read of the partitions in these slots."""
        # PERF: the memory of a partition is got in steps, of 40 us each; of one key in a thousand matches it is wanted again at once.
        self.evaluation.restart(slots)
        if self.bound is not None:
            self.bound.forget(slots)

    def restart(self, slots: Array) -> None:
        """Forget the partitions in these slots."""
        self.release(slots)

    def release(self, slots: Array) -> None:
        """Forget the partitions in these slots."""
        slots = np.asarray(slots, np.int64)
        self._begin_anew(slots)
        self.evaluation.release(slots)
        slots = slots[slots < len(self._low)]
        self._low[slots] = self._done[slots] = 0

    def ensure_slots(self, count: int) -> None:
        """Make slots 0 .. count - 1 exist."""
        self._fit(count)

    def memory_usage(self) -> int:
        """Bytes of the run state."""
        own = (self._low, self._done, self._marked, *([] if self.bound is None else [self.bound.had]))
        return sum(int(part.nbytes) for part in own) + super().memory_usage()

    def dump(self) -> Mapping[str, Any]:
        """The live state as named sections, with (slot, position from which matches may start, events read since) of each partition."""
        slots = np.flatnonzero((self._low > 0) | (self._done > 0))
        lines = np.column_stack([slots, self._low[slots], self._done[slots]])
        sections = {**self.evaluation.dump(), SECTION: lines.astype("<i8").tobytes()}
        return sections if self.bound is None else {**sections, HAD: self.bound.had[slots].astype("<f8").tobytes()}

    def load(self, sections: Mapping[str, Any], stored: Stored | None = None) -> None:
        """Go on, fresh, from what `dump` gave; raises SnapshotError where that does not fit."""
        with fitting(f"its section `{SECTION}` does not fit"):
            named, low, done = numbers(sections, SECTION, width=3).T
            demand(
                inside(named, 0, NUMBER_LIMIT),
                named[1:] > named[:-1],
                inside(low, 0, NUMBER_LIMIT),
                inside(done, 0, NUMBER_LIMIT),
                low + done > 0,
            )
            slots, own = named, None
            if stored is not None:
                slots = stored.every(named, low + done)
                seen = np.zeros(len(stored.named), np.int64)
                seen[stored.rows(named)] = done
                own = Stored(stored.named, stored.slots, seen)
        self._load(sections, own)
        self._fit(int(slots.max(initial=-1)) + 1)
        self._low[slots], self._done[slots] = low, done
        if self.bound is not None:
            with fitting(f"its section `{HAD}` does not fit"):
                # An older state has none: then it may be all that is asked for.
                had = np.frombuffer(sections[HAD], "<f8") if HAD in sections else np.ones(len(slots) * len(self.bound.needs))
                demand(had >= 0.0, had <= 1.0)
                self.bound.had[slots] = had.reshape(len(slots), len(self.bound.needs))

    def _load(self, sections: Mapping[str, Any], stored: Stored | None) -> None:
        """Go on inside. stored: the partitions, with the events of each since it starts anew."""
        self.evaluation.load(sections, stored)


def _linked(of: Array, following: Array, known: Array) -> Array:
    """The numbers of those that are reached from the first one of each owner, from one that is known to the one that follows it.

    of: their owners, ascending. following: numbers, which past those of the owner stand for nothing.
    """
    following = np.where(np.append(of, -1)[following] == of, following, -1).tolist()
    on = known.tolist()
    reached: list[int] = []
    for begin in np.unique(of, return_index=True)[1].tolist():
        number = begin
        while number >= 0 and on[number]:
            reached.append(number)
            number = following[number]
    return np.array(reached, np.int64)


def beginning(program: Program) -> Callable[[Array], Array]:
    """For letters of a program's events whether a match may begin there (bool); guards may still be against it."""
    automaton, alphabet = program.automaton, program.automaton.alphabet
    event = ~alphabet.mask(Scope.RUN)
    tests = list(dict.fromkeys((move.requires & event, move.forbids & event) for move in automaton.outgoing[automaton.initial]))
    return lambda letters: having(in_words(letters, alphabet), alphabet, tests)


def inside_of(rows: Array | slice, index: Array | slice) -> Array | slice:
    """The rows of a batch that some of `rows` are."""
    if isinstance(rows, slice):
        start = rows.start
        return slice(start + index.start, start + index.stop) if isinstance(index, slice) else start + index
    return rows[index]


def index_of(rows: Array, lengths: Array) -> Array | slice:
    """The rows of segments that start at `rows` and have so many events."""
    return slice(int(rows[0]), int(rows[0] + lengths[0])) if len(rows) == 1 else ragged(rows, lengths)[1]
