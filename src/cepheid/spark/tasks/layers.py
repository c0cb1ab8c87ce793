"""A query with EVENT definitions in a bucket: its run state is that of the embedded recognizer, layer by layer.

Comes in: events in order, as they travel: all attributes, for what definitions make has no letters before it is made. Goes out: `DecidedMatches`. All
that a match is made of lies in one partition of the query, for its keys are keys of each definition. Imports no Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cepheid.engine.run.layered import Layered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cepheid.engine.memory.pools import Array
    from cepheid.engine.run.query_state import DecidedMatches
    from cepheid.spark.tasks.unit import Unit


LAYERED = "layered "
"""What the names of the sections of these states begin with."""


class LayeredState:
    """The state of one query with EVENT definitions, as `States` of others.

    number: of the query in the unit. max_bytes: of the matches of a definition in one visit.
    """

    def __init__(self, unit: Unit, number: int, *, max_bytes: int) -> None:
        self.numbers = (number,)
        self._prefix = f"{LAYERED}{number}/"
        self.task, compiled, view = unit.unpacked[number], unit.compiled[number], unit.views[number]
        schema = pa.schema([(name, unit.travelling.field(column).type) for name, column in self.task.reads])
        self.layered = Layered(
            compiled,
            schema,
            layout=view.layout,
            measures=view.measures,
            group_nulls=unit.null_keys == "group",
            max_bytes=max_bytes,
        )
        self.forgets = not self.task.index
        self.empty = True

    def read(self, events: pa.Table, times: Array, *, first: int, now: int) -> list[DecidedMatches]:
        """The matches that events in order decide; first: how many events came before."""
        return [self.layered.read(self.task.read(events), times, first=first, now=now)]

    def advance(self, now: int) -> list[DecidedMatches]:
        """The matches that are decided if no event before `now` comes any more."""
        return [self.layered.advance(now)]

    def undecided(self) -> list[DecidedMatches]:
        """The matches that wait; nothing changes."""
        return [self.layered.undecided()]

    @property
    def keys(self) -> int:
        """How many keys have a state."""
        return self.layered.keys

    def expire(self, now: int) -> None:
        """Forget the keys in which nothing can go on, where no position is shown, and the events that no match can show."""
        if self.task.index:
            self.empty = False
            self.layered.expire(latest=now, events=0)
        else:
            self.empty = self.layered.forget(now)

    @property
    def deadlines(self) -> list[int]:
        """When the first match is decided, or an event made, of what waits."""
        return self.layered.deadlines

    @property
    def horizon(self) -> int | None:
        """How long after its time an event can matter; None: for ever."""
        return self.layered.horizon

    def dump(self, *, latest: int) -> dict[str, Any]:
        """The live state as sections."""
        return {self._prefix + name: content for name, content in self.layered.dump(latest=latest).items()}

    def load(self, sections: Mapping[str, Any], *, latest: int, events: int) -> None:
        """Go on, fresh, from what `dump` gave; raises what nonsense in it raises."""
        own = {name.removeprefix(self._prefix): content for name, content in sections.items() if name.startswith(self._prefix)}
        self.layered.load_after(own, latest=latest, events=events, null_keys=0)

    def check(self, pending: pa.Table) -> None:
        """Events that wait have no letters that could be wrong."""
