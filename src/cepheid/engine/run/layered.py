"""Matches as events, over a stream: the run state of a query with EVENT definitions, layer by layer.

Comes in: events in order, batch by batch. Goes out: `DecidedMatches`, of the query. Each definition is a `QueryMember` over what those before it
leave; its matches are events of the next (`engine.run.made`), within the same batch. With NOT FOLLOWED BY a match is decided later, and its event
stands where it ends: so the next layer waits until all of that is known, and the events in between are held.

An event of a match begins at an event that came in, maybe long ago. All layers know the events that came in by their numbers; where each of them
stands in the partitions of a layer, the layer remembers as long as a definition has an event in its state that begins there (`Standing`).
"""

from __future__ import annotations

import dataclasses
from collections import deque
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from cepheid.engine.input.event_times import times_of
from cepheid.engine.input.keys import key_codes
from cepheid.engine.input.order import NEVER
from cepheid.engine.input.payload import decoded
from cepheid.engine.letters.values import no_events
from cepheid.engine.memory import container
from cepheid.engine.memory.checks import demand, inside, numbers
from cepheid.engine.memory.pools import NUMBER_LIMIT, power_of_two
from cepheid.engine.output.matches import plain_type
from cepheid.engine.run.allowance import CALL_HELP, Allowance, made_max_bytes
from cepheid.engine.run.beginnings import NUMBER, PLACE, ROW, TIME
from cepheid.engine.run.layers import of_definition
from cepheid.engine.run.made import Completed, MadeStream
from cepheid.engine.run.member import IDLE_CHECK, IDLE_EVENTS, LOOKED_AT, QueryMember
from cepheid.errors import LimitError, SnapshotError
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cepheid.engine.input.named_types import NamedTypes
    from cepheid.engine.input.partitions import Arrived
    from cepheid.engine.memory.pools import Array
    from cepheid.engine.output.matches import Layout, Matches
    from cepheid.engine.plan.compiled import Compiled
    from cepheid.engine.run.equal_times import EqualTimes
    from cepheid.engine.run.query_state import DecidedMatches
    from cepheid.logical.plan import EventDefinition
    from cepheid.schema import EventSchema

STANDS = "\0row"
"""The column of an event's own row in the stream of a layer."""

NOBODY = bytes(32)
"""The fingerprint of a state that nobody keeps."""

LEAST_ROOM = 16
"""Events that a layer has room for at the beginning, where they stand."""


class Layered:
    """The run state of a query with EVENT definitions, as `QueryMember` of one without; see there. max_bytes: of the matches of a definition."""

    def __init__(
        self,
        compiled: Compiled,
        schema: pa.Schema,
        *,
        max_bytes: int | None = None,
        types: NamedTypes | None = None,
        ties: EqualTimes | None = None,
        numbered: bool = False,
        **options: Any,
    ) -> None:
        self.compiled = compiled
        self._numbered = numbered
        self._made_from = {"schema": schema, "max_bytes": max_bytes, "numbered": numbered, **options}
        self._max_bytes = max_bytes
        inner = {name: value for name, value in options.items() if name not in {"layout", "measures", "sample"}}
        first = pa.schema([(field.name, plain_type(field.type)) for field in schema])
        schemas = [first, *(pa.schema([(name, plain_type(kind)) for name, kind in each.attributes.items()]) for each in compiled.schemas)]
        self._definitions = [
            _Layer.of_definition(layer, own, ties=ties, **inner) for layer, own in zip(compiled.layers, schemas[:-1], strict=True)
        ]
        self._query = _Layer.of_query(compiled, schemas[-1], ties=ties, **options)
        self._types = types
        self._waits: list[int] = np.cumsum([layer.delay for layer in compiled.layers]).tolist()
        absences = np.cumsum([len(layer.absences) for layer in compiled.layers])
        self._holds: list[bool] = (absences > 0).tolist()
        self._held = [_Held(own) for own in schemas[1:]]
        self._nothing = no_events(first)
        self._events, self._latest = 0, NEVER
        self._batches = self._looked = 0

    # ------------------------------------------------------------------------------------------------------------------- running

    @property
    def layout(self) -> Layout:
        """What the matches look like."""
        return self._query.member.state.layout

    @property
    def passed(self) -> int:
        """How many of the events that are being read have been read to their end, as far as that is known: none."""
        return 0

    def read(self, events: pa.Table, times: Array, *, first: int, now: int | None) -> DecidedMatches:
        """The matches of the query that events decide, see `QueryMember.read`; those of the definitions are made at once.

        first: how many events came before. Raises LimitError for the matches of a definition past max_bytes.
        """
        stream, known = MadeStream.of(decoded(events), times, first=first), now
        if self._types is not None:
            self._types.see(events)
        self._events = first + len(times)
        self._latest = max(self._latest, int(times.max(initial=NEVER)))
        plans, schemas = self.compiled.plan.definitions, self.compiled.schemas
        definitions = zip(plans, self._definitions, schemas, self._held, self._waits, self._holds, strict=True)
        for definition, layer, schema, held, wait, holds in definitions:
            start = layer.rows
            found = layer.read(stream, known)
            try:
                matches = found.all(Allowance(made_max_bytes(self._max_bytes), help=CALL_HELP))
            except LimitError as error:
                raise of_definition(error, definition) from None
            held.add(stream.conformed(definition, schema), start)
            if len(matches):
                held.insert(definition, matches, schema)
            known = None if now is None else _before(now, wait)
            stream = held.release(known if holds else None)
        return self._query.read(stream, known)

    def advance(self, now: int | None) -> DecidedMatches:
        """No event before `now` will come (None: no event at all): the matches that this decides."""
        return self.read(self._nothing, np.zeros(0, np.int64), first=self._events, now=now)

    def undecided(self) -> DecidedMatches:
        """The matches that wait, and that are given if nothing comes any more. O(state); nothing changes."""
        if not self.compiled.decides_later:
            return self._query.member.undecided()
        copy = Layered(self.compiled, **self._made_from)
        with container.reading():
            sections = container.unpack(container.pack(self.dump(latest=self._latest), fingerprint=NOBODY), fingerprint=NOBODY)
            copy.load_after(sections, latest=self._latest, events=self._events, null_keys=self.null_keys)
        return copy.advance(None)

    @property
    def null_keys(self) -> int:
        """Events dropped for a NULL in PARTITION BY of the query, or that will be once they have waited."""
        return self._query.member.null_keys + self._waiting_null_keys

    @property
    def _waiting_null_keys(self) -> int:
        """How many of the events that wait between layers have a NULL in PARTITION BY of the query. O(events that wait)."""
        keys, found = self.compiled.written, 0
        for part in (part for held in self._held for part in held.parts if keys):
            codes, _ = key_codes(part.stream.events, keys, grouped=keys if self._made_from["group_nulls"] else ())
            found += int(np.count_nonzero(codes < 0))
        return found

    @property
    def _layers(self) -> list[tuple[_Layer, int]]:
        """All layers, with how long each waits for those before it."""
        return list(zip([*self._definitions, self._query], [0, *self._waits], strict=True))

    # ---------------------------------------------------------------------------------------------------------------- giving back

    def tidy(self, *, latest: int, events: int) -> None:
        """Give back, now and then, what no match needs any more; latest: the greatest time so far; events: those of the stream so far."""
        for layer, wait in self._layers:
            layer.member.tidy(latest=_before(latest, wait), events=layer.rows)
        self._batches += 1
        if self._batches % IDLE_CHECK == 0 or events - self._looked >= IDLE_EVENTS:
            self._look_at_begins()

    def look(self, *, latest: int, events: int) -> None:  # noqa: ARG002 - as `Member.look`
        """As `expire`, where enough events have come since the last time."""
        for layer, wait in self._layers:
            layer.member.look(latest=_before(latest, wait), events=layer.rows)
        self._look_at_begins()

    def _look_at_begins(self) -> None:
        """As `_forget_begins`, where enough events have come for what that costs."""
        held = sum(len(part.rows) for held in self._held for part in held.parts)
        kept = sum(len(layer.standing) + len(layer.member.state.payload) for layer, _ in self._layers)
        if LOOKED_AT * (self._events - self._looked) >= held + kept:
            self._forget_begins()

    def expire(self, *, latest: int, events: int) -> None:  # noqa: ARG002 - as `Member.expire`
        """Give back what no match needs any more."""
        if self._numbered and latest != NEVER:
            self.forget(latest)
            return
        for layer, wait in self._layers:
            layer.member.expire(latest=_before(latest, wait), events=layer.rows)
        self._forget_begins()

    def forget(self, now: int) -> bool:
        """Forget the keys in which nothing can go on if no event before `now` comes; whether nothing at all is left.

        A layer may give a key another slot, and other positions, once no event can begin any more that has one.
        """
        horizon = self.horizon
        left = any(held.parts for held in self._held)
        for layer, wait in self._layers:
            idle = layer.idle(_before(now, wait), None if horizon is None else now - horizon)
            left |= len(idle) < len(layer.member.partitions)
            if layer.member.partitions.keys and len(idle):
                layer.member.forget_all(idle)
        self._forget_begins()
        return not left

    @property
    def keys(self) -> int:
        """How many keys of the query have a state."""
        return len(self._query.member.partitions)

    @property
    def deadlines(self) -> list[int]:
        """When the first of what waits is decided, or read, in each layer that has some: once an event after this time has come."""
        states = [(layer.member.state, wait) for layer, wait in self._layers]
        found = [state.deadline + wait for state, wait in states if state.deadline is not None]
        return found + [int(held.parts[0].stream.times[0]) + wait for held, wait in zip(self._held, self._waits, strict=True) if held.parts]

    @property
    def horizon(self) -> int | None:
        """How long after its time an event can matter; None: for ever. Windows of definitions follow each other."""
        horizons = [layer.compiled.horizon for layer, _ in self._layers]
        return None if None in horizons else sum(horizon or 0 for horizon in horizons)

    def _forget_begins(self) -> None:
        """Forget where events stand with which no event will begin any more."""
        self._looked = self._events
        needed = [numbers for layer in self._definitions for numbers in layer.member.state.kept(NUMBER)]
        needed += [part.stream.numbers for held in self._held for part in held.parts]
        every = np.unique(np.concatenate([np.zeros(0, np.int64), *needed]))
        for layer, _ in self._layers:
            layer.standing.keep(every)

    @property
    def nbytes(self) -> int:
        """Bytes of the run state."""
        return sum(layer.nbytes for layer, _ in self._layers) + sum(held.nbytes for held in self._held)

    # ---------------------------------------------------------------------------------------------------------------- snapshots

    def dump(self, *, latest: int) -> dict[str, Any]:
        """The live state as sections."""
        sections: dict[str, Any] = {}
        for number, (layer, wait) in enumerate(self._layers):
            own = layer.dump(latest=_before(latest, wait))
            sections |= {f"layer{number}/{name}": content for name, content in own.items()}
        for number, held in enumerate(self._held):
            sections |= {f"held{number}/{name}": content for name, content in held.dump().items()}
        return sections

    def load_after(self, sections: Mapping[str, Any], *, latest: int, events: int, null_keys: int) -> None:
        """Go on, fresh, from what `dump` gave after so many events; raises whatever nonsense in them raises."""
        self._events, self._latest = events, latest
        for number, (layer, _) in enumerate(self._layers):
            layer.load(_part(sections, f"layer{number}/"), latest=latest, events=events)
        for number, (held, (layer, _)) in enumerate(zip(self._held, self._layers[:-1], strict=True)):
            held.load(_part(sections, f"held{number}/"), rows=layer.rows, events=events, latest=latest)
        read = self._query.member.written
        read.null_keys = null_keys - self._waiting_null_keys
        demand(read.null_keys >= 0)


def member_of(
    compiled: Compiled, schema: pa.Schema, *, max_bytes: int | None, numbered: bool = False, **options: Any
) -> Layered | QueryMember:
    """The run state of any query over a stream; max_bytes, numbered: see `Layered`, `QueryMember`. options: of a `QueryMember`."""
    if compiled.layers:
        return Layered(compiled, schema, max_bytes=max_bytes, numbered=numbered, **options)
    return QueryMember(compiled, schema, numbered=numbered, **options)


def _before(time: int, wait: int) -> int:
    return time if time == NEVER else max(NEVER, time - wait)


def _part(sections: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): content for name, content in sections.items() if name.startswith(prefix)}


class _Layer:
    """One layer: a definition, or the query. rows: how many events of its stream it has read."""

    def __init__(self, compiled: Compiled, schema: pa.Schema, *, ties: EqualTimes | None, **options: Any) -> None:
        self.compiled = compiled
        self._ties = None if ties is None else ties.of_layer(compiled)
        self.member = QueryMember(compiled, schema, **options, ties=self._ties)
        self.standing = Standing()
        self.rows = 0
        self._last: Array = np.zeros(0, np.int64)  # of each slot the time of its last event

    @classmethod
    def of_definition(cls, compiled: Compiled, schema: pa.Schema, **options: Any) -> Self:
        """A definition: its matches show what its events are made of."""
        layout = compiled.layout
        kept = pa.schema([*layout.events, *_hidden(compiled), pa.field(STANDS, pa.int64())])
        return cls(compiled, schema, layout=dataclasses.replace(layout, events=kept), at_end=True, **options)

    @classmethod
    def of_query(cls, compiled: Compiled, schema: pa.Schema, *, layout: Layout | None = None, **options: Any) -> Self:
        """The query; layout: what its matches look like, where that is not what it says."""
        layout = layout or compiled.layout
        kept = pa.schema([*layout.events, *_hidden(compiled)]) if compiled.earlier else layout.events
        return cls(compiled, schema, layout=layout, kept=kept, **options)

    def read(self, stream: MadeStream, now: int | None) -> DecidedMatches:
        """The matches that events decide; now: the least time that a later one may have, None: there will be none."""
        if not len(stream):
            return self.member.state.advance(now)
        rows = self.rows + np.arange(len(stream))
        self.rows += len(stream)
        arrived = self.member.arrive(stream.events)
        self._seen(arrived, stream.times)
        places, begun = arrived.positions, (arrived.positions, rows)
        if self.compiled.schema.made:
            own = stream.depth == 0
            self.standing.add(stream.numbers[own], places[own], rows[own])
            begun = self.standing.find(stream.numbers)
        if self._ties is not None:
            self._ties.made = stream.depth > 0
        table = stream.as_read(places, *begun).append_column(STANDS, pa.array(rows))
        return self.member.read(table, stream.times, first=int(rows[0]), now=now, arrived=arrived)

    def _seen(self, arrived: Arrived, times: Array) -> None:
        """Remember when partitions had their last events."""
        missing = len(self.member.partitions.seen) - len(self._last)
        if missing > 0:
            self._last = np.append(self._last, np.full(missing, NEVER, np.int64))
        filled = arrived.lengths > 0
        ends = (arrived.cuts + arrived.lengths)[filled] - 1
        np.maximum.at(self._last, arrived.slots[filled], times[ends if arrived.order is None else arrived.order[ends]])

    def idle(self, now: int, seen: int | None) -> Array:
        """The slots in which nothing can go on at `now` or later, with no event since `seen` (None: none are); gives back what nothing needs."""
        partitions, state = self.member.partitions, self.member.state
        idle = np.intersect1d(state.expire(now), partitions.live)
        state.compact(now, at_once=True)
        old = self._last_of(idle) < (NEVER if seen is None else seen)
        return np.asarray(idle[old])

    def _last_of(self, slots: Array) -> Array:
        """The times of the last events in some slots."""
        return np.append(self._last, np.full(self.member.partitions.slots, NEVER))[slots]

    @property
    def nbytes(self) -> int:
        """Bytes of the run state."""
        return self.member.nbytes + self.standing.nbytes + int(self._last.nbytes)

    def dump(self, *, latest: int) -> dict[str, Any]:
        """The live state as sections."""
        last = self._last_of(self.member.partitions.live).astype("<i8")
        own = {"standing": self.standing.dump(), "layer_rows": np.array([self.rows], "<i8"), "layer_last": last}
        return self.member.dump(latest=latest) | own

    def load(self, sections: Mapping[str, Any], *, latest: int, events: int) -> None:
        """Go on, fresh, from what `dump` gave; events: how many came in. Raises whatever nonsense in it raises."""
        (self.rows,) = numbers(sections, "layer_rows").tolist()
        demand(0 <= self.rows < NUMBER_LIMIT)
        self.member.load_after(sections, latest=latest, events=self.rows, null_keys=0)
        self.standing.load(numbers(sections, "standing", width=3), events=events, rows=self.rows)
        self._last = numbers(sections, "layer_last").astype(np.int64)
        demand(len(self._last) == len(self.member.partitions), self._last <= latest)


def _hidden(compiled: Compiled) -> list[pa.Field]:
    """What is kept of events beside what matches show: where they begin."""
    names = (PLACE, TIME, ROW, NUMBER) if compiled.earlier else (NUMBER,)
    return [pa.field(name, pa.int64()) for name in names]


class Standing:
    """Where events that came in stand in the stream of a layer: for the number of each its position in its partition (-1: in none), and its row."""

    def __init__(self) -> None:
        self._lines: Array = np.zeros((3, LEAST_ROOM), np.int64)
        self._count = 0

    def __len__(self) -> int:
        """How many events it knows."""
        return self._count

    def add(self, named: Array, places: Array, rows: Array) -> None:
        """Some more, of greater numbers; amortized O(new events)."""
        stop = self._count + len(named)
        if stop > self._lines.shape[1]:
            lines: Array = np.zeros((3, power_of_two(stop)), np.int64)
            lines[:, : self._count] = self._lines[:, : self._count]
            self._lines = lines
        self._lines[:, self._count : stop] = named, places, rows
        self._count = stop

    def find(self, named: Array) -> tuple[Array, Array]:
        """The positions and rows of events, O(log n) each; raises SnapshotError for one that is not there, in a state that was changed."""
        known = self._lines[0, : self._count]
        at = np.minimum(np.searchsorted(known, named), self._count - 1)
        if not self._count or (known[at] != named).any():
            raise SnapshotError(
                "the snapshot that this state comes from is damaged: it lacks events with which others begin",
                help="use another snapshot, or start again without it",
            )
        return self._lines[1, at], self._lines[2, at]

    def keep(self, named: Array) -> None:
        """Forget all others; named: ascending."""
        lines = self._lines[:, : self._count]
        lines = lines[:, np.isin(lines[0], named, assume_unique=True)]
        self._count = lines.shape[1]
        self._lines = np.zeros((3, max(LEAST_ROOM, power_of_two(self._count))), np.int64)
        self._lines[:, : self._count] = lines

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return int(self._lines.nbytes)

    def dump(self) -> Array:
        """All of it, a line for each event."""
        return self._lines[:, : self._count].T.astype("<i8")

    def load(self, lines: Array, *, events: int, rows: int) -> None:
        """Go on, fresh, from what `dump` gave; raises ValueError where that does not fit."""
        named, places, own = lines.T
        demand(inside(named, 0, events), inside(own, 0, rows), inside(places, -1, rows))
        demand(named[1:] > named[:-1], own[1:] > own[:-1])
        self.add(named, places, own)


@record(slots=False)
class _Part:
    """Events that wait. rows: of each in the stream of the layer before (int64), -1: that layer made it."""

    stream: MadeStream
    rows: Array


class _Held:
    """The events that a definition leaves, until all that it makes of them is known. schema: of the events."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self.parts: deque[_Part] = deque()

    def add(self, stream: MadeStream, first: int) -> None:
        """Events that the definition has read; first: the row of the first of them in its stream."""
        if len(stream):
            self.parts.append(_Part(stream, first + np.arange(len(stream))))

    def insert(self, definition: EventDefinition, matches: Matches, schema: EventSchema) -> None:
        """An event for each match of the definition."""
        stream, rows = self._together()
        events, time = matches.events, matches.layout.time
        starts = matches.start_rows.astype(np.int64)
        known = np.flatnonzero(rows >= 0)
        ends = known[events[STANDS].to_numpy()[matches.end_rows] - rows[known[0]]]
        begun = np.zeros(len(starts), np.int64) if time is None else times_of(events, time)[starts]
        completed = Completed(matches, ends, events[NUMBER].to_numpy()[starts], begun)
        stream, before = stream.with_events(definition, completed, schema)
        self.parts = deque([_Part(stream, np.where(before < 0, -1, rows[before]))])

    def release(self, known: int | None) -> MadeStream:
        """The events before a time (None: all); they wait no more."""
        ready: list[MadeStream] = []
        while self.parts:
            part = self.parts.popleft()
            count = len(part.rows) if known is None else int(np.searchsorted(part.stream.times, known))
            first, rest = part.stream.cut(count)
            ready.append(first)
            if len(rest):
                self.parts.appendleft(_Part(rest, part.rows[count:]))
                break
        return MadeStream.joined([MadeStream.of(no_events(self._schema), np.zeros(0, np.int64)), *ready])

    def _together(self) -> tuple[MadeStream, Array]:
        return MadeStream.joined([part.stream for part in self.parts]), np.concatenate([part.rows for part in self.parts])

    @property
    def nbytes(self) -> int:
        """Bytes of the events."""
        return sum(part.stream.nbytes + int(part.rows.nbytes) for part in self.parts)

    def dump(self) -> dict[str, Any]:
        """The events as sections."""
        self.parts.appendleft(_Part(MadeStream.of(no_events(self._schema), np.zeros(0, np.int64)), np.zeros(0, np.int64)))
        stream, rows = self._together()
        self.parts.popleft()
        lines = np.column_stack([stream.times, stream.numbers, stream.begun, stream.depth, rows])
        return {"events": container.table_bytes(stream.events), "lines": lines.astype("<i8")}

    def load(self, sections: Mapping[str, Any], *, rows: int, events: int, latest: int) -> None:
        """Go on, fresh, from what `dump` gave; rows: of the stream of the layer before. Raises whatever nonsense in it raises."""
        table, lines = container.table_of(sections["events"]), numbers(sections, "lines", width=5)
        times, named, begun, depth, own = (np.ascontiguousarray(column) for column in lines.T)
        demand(table.schema.equals(self._schema), len(table) == len(lines))
        known = own[own >= 0]
        demand(inside(named, 0, events), begun <= times, times <= latest, times[1:] >= times[:-1], inside(depth, 0, len(lines) + 1))
        demand(inside(own, -1, rows), known == rows - len(known) + np.arange(len(known)), depth[:1] == 0)
        if len(lines):
            self.parts.append(_Part(MadeStream(table, times, named, begun, depth), own))
