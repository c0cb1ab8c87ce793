"""One query of a recognizer: its partitions, its readers of letters and its run state, over events that come in order.

Comes in: tables of events in order, with their times. Goes out: `DecidedMatches`. A recognizer has one of them, that of several queries one for each
query or family.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cepheid.engine.input.lags import Lags
from cepheid.engine.input.order import NEVER
from cepheid.engine.input.partitions import Partitions
from cepheid.engine.memory import container
from cepheid.engine.run.query_state import QueryState
from cepheid.language.syntax import Consumption

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from cepheid.engine.input.named_types import NamedTypes
    from cepheid.engine.input.partitions import Arrived
    from cepheid.engine.memory.pools import Array
    from cepheid.engine.memory.stored import Stored
    from cepheid.engine.output.matches import Layout
    from cepheid.engine.plan.compiled import Compiled
    from cepheid.engine.run.equal_times import EqualTimes
    from cepheid.engine.run.query_state import DecidedMatches

IDLE_CHECK = 64
"""Batches after which partitions are looked for whose memory can be given back, where enough events came in them."""

IDLE_EVENTS = 1 << 16
"""As many events are a reason to look, too, however few batches they came in."""

LOOKED_AT = 16
"""Keys and kept events that may be looked at for one new event: a look costs what the events cost that came since the last one."""


class Member:
    """Partitions and run state of one query over a stream, or of one family.

    schema: of the events. group_nulls: whether NULL is a value of a key. forgets: whether partitions are forgotten where nothing is open, for the
    positions that matches show are counted elsewhere. options: of `QueryState`.
    """

    def __init__(self, compiled: Compiled, schema: pa.Schema, *, group_nulls: bool = False, forgets: bool = False, **options: Any) -> None:
        self.compiled = compiled
        self._forgets = forgets
        self.partitions = Partitions(compiled.keys, schema, grouped=compiled.written if group_nulls else ())
        self.state = QueryState(compiled, self.partitions, placed=forgets, **options)
        self._batches = self._looked = 0

    def tidy(self, *, latest: int, events: int) -> None:
        """Give back, now and then, what no match needs any more; latest: the greatest time so far; events: those of the stream so far."""
        self._batches += 1
        if self._batches % IDLE_CHECK == 0 or events - self._looked >= IDLE_EVENTS:
            self.look(latest=latest, events=events)
        self.state.compact(latest)

    def look(self, *, latest: int, events: int) -> None:
        """As `expire`, where enough events have come since the last time: amortized O(1) per event."""
        if self._pays(events):
            self.expire(latest=latest, events=events)

    def _pays(self, events: int) -> bool:
        """Whether enough events have come since the last look for what one costs."""
        return LOOKED_AT * (events - self._looked) >= self.partitions.slots + len(self.state.payload)

    def expire(self, *, latest: int, events: int) -> None:
        """Give back what no match needs any more. O(slots and kept events)."""
        if latest == NEVER:
            return
        compiled = self.compiled
        if compiled.window is None and not compiled.absences:
            # Not time but events make something superfluous, and there have to be some for what a look costs.
            endless = compiled.count_window is None and compiled.consume is Consumption.NONE
            if endless or not self._pays(events):
                return
        self._looked = events
        idle = self.state.expire(latest)
        if self._forgets and self.partitions.keys and len(idle := np.intersect1d(idle, self.partitions.live)):
            self.forget(idle)
        self.state.compact(latest, at_once=True)

    def forget(self, slots: Array) -> None:
        """Forget the partitions in these slots, in which nothing is open: they start again when their keys come again."""
        self.state.release(slots)
        self.partitions.forget(slots)

    @property
    def deadlines(self) -> list[int]:
        """When the first of what waits is decided; empty where nothing waits."""
        return [] if self.state.deadline is None else [self.state.deadline]

    @property
    def keys(self) -> int:
        """How many keys have a state."""
        return len(self.partitions)

    @property
    def nbytes(self) -> int:
        """Bytes of the run state."""
        return self.state.nbytes + self.partitions.nbytes

    def dump(self, *, latest: int) -> dict[str, Any]:
        """The live state as sections."""
        if latest != NEVER:
            self.state.compact(latest, at_once=True)
        keys, seen = self.partitions.dump()
        evaluation, payload = self.state.dump()
        return {
            **evaluation,
            "seen": seen.astype("<i8"),
            "keys": container.table_bytes(keys),
            "payload": container.table_bytes(payload),
        }

    def load(self, sections: Mapping[str, Any], *, latest: int) -> Stored:
        """Go on, fresh, from what `dump` gave; returns its partitions. Raises whatever nonsense in it raises."""
        stored = load_keys(self.partitions, sections["keys"], sections["seen"])
        self.state.load(sections, container.table_of(sections["payload"]), stored, latest=latest)
        return stored


class QueryMember(Member):
    """One query over a stream. types, ties: are shown what is read. numbered: positions are counted elsewhere, see `Members`."""

    def __init__(
        self,
        compiled: Compiled,
        schema: pa.Schema,
        *,
        group_nulls: bool = False,
        types: NamedTypes | None = None,
        ties: EqualTimes | None = None,
        numbered: bool = False,
        **options: Any,
    ) -> None:
        forgets = bool(compiled.derived) or (numbered and compiled.looks_back is None)
        super().__init__(compiled, schema, group_nulls=group_nulls, forgets=forgets, **options)
        self._types, self._ties = types, ties
        # Positions are those in the partitions of PARTITION BY, or of the whole stream, also where equalities partition these further.
        grouped = compiled.written if group_nulls else ()
        self.written = Partitions(compiled.written, schema, grouped=grouped) if compiled.derived else self.partitions
        self._readers = compiled.readers(self.state.texts)
        self._lags = Lags(compiled.lags, schema)

    def forget(self, slots: Array) -> None:
        """As of any member."""
        super().forget(slots)
        if self._ties is not None:
            self._ties.forget(slots)

    @property
    def layout(self) -> Layout:
        """What the matches look like."""
        return self.state.layout

    @property
    def null_keys(self) -> int:
        """Events dropped for a NULL in PARTITION BY."""
        return self.written.null_keys

    @property
    def passed(self) -> int:
        """How many of the events that are being read have been read to their end, as far as that is known."""
        # Behind absences others are read than those that come.
        return 0 if self.compiled.absences else self.state.evaluation.passed

    def arrive(self, events: pa.Table) -> Arrived:
        """Events by partition, which counts them."""
        return self.partitions.arrive(events, interleaved=self.state.interleaved)

    def read(
        self,
        events: pa.Table,
        times: Array,
        *,
        first: int,
        now: int | None,
        letters: Sequence[Array] | None = None,
        arrived: Arrived | None = None,
    ) -> DecidedMatches:
        """The matches that events decide.

        first: place of the first of them in the stream. now: the least time that a later one may have, None: there will be none. letters: of each
        program, if they are known, which they are not of a query with lag. arrived: what `arrive` said, where it has been asked.
        """
        if arrived is None:
            arrived = self.arrive(events)
        shown = self.written.arrive(events).positions if self.compiled.derived else None
        known: Sequence[Array | None] = [None] * len(self._readers) if letters is None else letters

        def positions() -> Array:
            return arrived.positions if shown is None else shown

        lagged = self._lags.read(events, arrived, self.partitions.seen)
        own, *negated = [reader.read(lagged, positions=positions, letters=each) for reader, each in zip(self._readers, known, strict=True)]
        if self._types is not None:
            self._types.see(events, (own, *negated), self._readers)
        if self._ties is not None:
            self._ties.see(events, times, (own, *negated), arrived)
        return self.state.feed(own, times, events, arrived, first=first, shown=shown, negated=negated, now=now)

    def advance(self, now: int | None) -> DecidedMatches:
        """As `QueryState.advance`."""
        return self.state.advance(now)

    def undecided(self) -> DecidedMatches:
        """As `QueryState.undecided`."""
        return self.state.undecided()

    def forget_all(self, slots: Array) -> None:
        """As `forget`, and positions are counted anew in partitions of PARTITION BY in which no other one is left."""
        self.forget(slots)
        if self._has_both_keys:
            self.written.retain(self.partitions.table(self.partitions.live))

    @property
    def nbytes(self) -> int:
        """Bytes of the run state."""
        return super().nbytes + self._lags.nbytes + (self.written.nbytes if self.compiled.derived else 0)

    def dump(self, *, latest: int) -> dict[str, Any]:
        """The live state as sections."""
        sections = super().dump(latest=latest) | self._lags.dump(self.partitions.seen)
        if self._has_both_keys:
            keys, seen = self.written.dump()
            sections |= {"written": container.table_bytes(keys), "written_seen": seen.astype("<i8")}
        return sections

    def load_after(self, sections: Mapping[str, Any], *, latest: int, events: int, null_keys: int) -> None:
        """Go on, fresh, from what `dump` gave after so many events; raises whatever nonsense in it raises."""
        if self._has_both_keys:
            load_keys(self.written, sections["written"], sections["written_seen"])
        elif self.compiled.derived:
            self.written.seen[:] = events
        if self.compiled.written:
            self.written.null_keys = null_keys
        self._lags.load(sections, self.load(sections, latest=latest))
        for partitions in (self.partitions, self.written):
            if sum(partitions.seen.tolist()) > events:
                raise ValueError("its sections do not fit together")

    @property
    def _has_both_keys(self) -> bool:
        """Whether positions are counted by other keys than those that partition the state."""
        return bool(self.compiled.written and self.compiled.derived)


def load_keys(partitions: Partitions, keys: bytes, numbers: bytes) -> Stored:
    """Let fresh partitions go on from their keys and, as bytes, the numbers of their dump."""
    return partitions.load(container.table_of(keys), np.frombuffer(numbers, "<i8").reshape(2, -1).astype(np.int64))
