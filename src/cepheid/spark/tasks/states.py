"""The run states of the queries of a bucket, over partitions that they share.

Comes in: events in order, as they travel. Goes out: `DecidedMatches` of each query; the states as sections of bytes. Of a query with EVENT
definitions see `layers`. Imports no Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.engine.input.lags import Lags
from cepheid.engine.input.partitions import Partitions
from cepheid.engine.letters.values import one_chunk
from cepheid.engine.letters.words import are_letters
from cepheid.engine.memory import container
from cepheid.engine.run.query_state import QueryState
from cepheid.spark.tasks import shared
from cepheid.spark.tasks.worker import own_letters

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cepheid.engine.input.partitions import Arrived
    from cepheid.engine.memory.pools import Array
    from cepheid.engine.run.query_state import DecidedMatches
    from cepheid.spark.tasks.unit import Unit


class QueryStates:
    """A `QueryState` for each of some queries of a unit; numbers: which ones, at least one."""

    def __init__(self, unit: Unit, numbers: Sequence[int]) -> None:
        self.unit = unit
        self.numbers = tuple(numbers)
        self.tasks, self.compiled = [unit.unpacked[number] for number in numbers], [unit.compiled[number] for number in numbers]
        self.letters, views = [unit.letters[number] for number in numbers], [unit.views[number] for number in numbers]
        first, travelling = self.tasks[0], unit.travelling
        self.forgets = not any(task.index or compiled.looks_back for task, compiled in zip(self.tasks, self.compiled, strict=True))
        keys = pa.schema([travelling.field(column).with_name(name) for name, column in zip(first.key_names, first.keys, strict=True)])
        # NULL keys that are to be dropped are dropped before they come here.
        self.partitions = Partitions(first.key_names, keys, grouped=first.key_names)
        self.states = [
            QueryState(compiled, self.partitions, layout=view.layout, measures=view.measures)
            for compiled, view in zip(self.compiled, views, strict=True)
        ]
        self.readers = [compiled.readers(state.texts) for compiled, state in zip(self.compiled, self.states, strict=True)]
        reads = {name: travelling.field(column).type for task in self.tasks for name, column in task.reads}
        lags = {lag.path[0]: lag for compiled in self.compiled for lag in compiled.lags}
        self.lags = Lags(tuple(lags.values()), pa.schema(list(reads.items())))
        self.empty = True

    def fresh(self) -> QueryStates:
        """The same, without any state."""
        return QueryStates(self.unit, self.numbers)

    def keep_texts(self, stays: bool) -> None:  # noqa: FBT001 - the one thing it says
        """Whether texts that are compared stay where they are in none of these states: other keys may have them."""
        for state in self.states:
            state.texts.keeps_all = stays

    # ------------------------------------------------------------------------------------------------------------------- running

    def read(self, events: pa.Table, times: Array, *, first: int, now: int) -> list[DecidedMatches]:
        """The matches of each query that events in order decide, not made yet; first: how many events came before."""
        arrived = self.partitions.arrive(self.keys_of(events))
        read = self._read(events, arrived)
        found = []
        for number, (task, query_state) in enumerate(zip(self.tasks, self.states, strict=True)):
            shown = [events[column] for _, column in task.payload]
            if task.index:
                shown.append(pa.chunked_array([pa.array(arrived.positions)]))
            table = pa.Table.from_arrays(shown, schema=query_state.layout.events)
            letters, *negated = self._said(events, read, arrived, number)
            found.append(query_state.feed(letters, times, table, arrived, first=first, negated=negated, now=now))
        return found

    def keys_of(self, events: pa.Table) -> pa.Table:
        """The keys of events, under their names; without keys the events."""
        named = dict(zip(self.tasks[0].key_names, self.tasks[0].keys, strict=True))
        return pa.table([events[column] for column in named.values()], names=list(named)) if named else events

    def advance(self, now: int) -> list[DecidedMatches]:
        """The matches of each query that are decided if no event before `now` comes any more."""
        return [state.advance(now) for state in self.states]

    def undecided(self) -> list[DecidedMatches]:
        """The matches of each query that wait; nothing changes."""
        return [state.undecided() for state in self.states]

    def _letters(self, events: pa.Table, number: int) -> list[Array]:
        """The letters of a query's programs: its predicates' bits among those of all queries."""
        columns, places = self.letters[number]
        return own_letters([one_chunk(events[column]) for column in columns], places, self.compiled[number].alphabets)

    def _said(self, events: pa.Table, read: pa.Table, arrived: Arrived, number: int) -> list[Array]:
        """What events say to a query's programs: their letters, and the values that guards read; read: `_read`."""
        compiled, readers = self.compiled[number], self.readers[number]
        if compiled.lags:
            return [reader.read(read, positions=lambda: arrived.positions) for reader in readers]
        letters = self._letters(events, number)
        values = self.tasks[number].values
        if compiled.positional or (compiled.valued and not values):
            return [
                reader.read(read, positions=lambda: arrived.positions, letters=own) for reader, own in zip(readers, letters, strict=True)
            ]
        if not values:
            return letters
        columns = [[one_chunk(events[name]) for name in own] for own in values]
        return [reader.of_columns(own, column) for reader, own, column in zip(readers, letters, columns, strict=True)]

    def _read(self, events: pa.Table, arrived: Arrived) -> pa.Table:
        """The attributes of which queries make letters and values here, with the lagged columns."""
        columns = dict(pair for task in self.tasks for pair in task.reads)
        table = events.select(list(columns.values())).rename_columns(list(columns))
        return self.lags.read(table, arrived, self.partitions.seen)

    # ---------------------------------------------------------------------------------------------------------------- giving back

    @property
    def keys(self) -> int:
        """How many keys have a state."""
        return len(self.partitions)

    def expire(self, now: int) -> None:
        """Forget the keys in which nothing can go on in any query, and the events that no match can show."""
        finished = np.zeros(self.partitions.slots, np.int64)
        finished[self.partitions.live] = 1
        for query_state in self.states:
            slots = query_state.expire(now)
            finished[slots[slots < len(finished)]] += 1
            query_state.compact(now, at_once=True)
        idle = np.flatnonzero(finished > len(self.states))
        self.empty = self.forgets and len(idle) == len(self.partitions)
        if self.forgets and self.partitions.keys and len(idle):
            for query_state in self.states:
                query_state.release(idle)
            self.partitions.forget(idle)

    @property
    def deadlines(self) -> list[int]:
        """When the first match of each query is decided, of those that have some that wait."""
        return [state.deadline for state in self.states if state.deadline is not None]

    @property
    def horizon(self) -> int | None:
        """How long after its time an event can matter; None: for ever."""
        horizons = [compiled.horizon for compiled in self.compiled]
        return None if None in horizons else max(horizon or 0 for horizon in horizons)

    # ---------------------------------------------------------------------------------------------------------------- as bytes

    def dump(self, *, latest: int) -> dict[str, Any]:  # noqa: ARG002 - as `LayeredState.dump`
        """The live state as sections."""
        keys, seen = self.partitions.dump()
        sections = {"keys": keys, "seen": seen.astype("<i8")}
        return sections | self.lags.dump(self.partitions.seen) | shared.dump(self.states)

    def load(self, sections: Mapping[str, Any], *, latest: int, events: int) -> None:  # noqa: ARG002 - as `LayeredState.load`
        """Go on, fresh, from what `dump` gave; raises what nonsense in it raises. sections: no others."""
        seen = np.frombuffer(sections["seen"], "<i8").reshape(2, -1).astype(np.int64)
        stored = self.partitions.load(container.table_of(sections["keys"]), seen)
        shared.load(self.states, sections, stored, latest=latest)
        self.lags.load(sections, stored)

    def check(self, pending: pa.Table) -> None:
        """Raise ValueError for events that wait with a letter that no query has."""
        columns = {column for own, _ in self.letters for column in own}
        if any(pending[column].null_count for column in columns):
            raise ValueError("waiting events have no letter")
        for number, compiled in enumerate(self.compiled):
            if compiled.lags:
                continue
            programs = zip(self._letters(pending, number), compiled.programs, strict=True)
            if not all(are_letters(letters.astype(np.uint64), program.automaton.alphabet) for letters, program in programs):
                raise ValueError("waiting events have letters of another query")
