"""`Recognizer`: one query over one stream, embedded: push events as they come, get the matches that end in them.

For several queries see `cepheid.engine.run.queries`. On Spark, `cepheid.spark.recognition` has the `Recognition` of DataFrames.

Comes in: a `Compiled` query, then batches of events. Goes out: `Matches` per batch. The state is the kernel's (pooled over all partitions) and
the marked events that a match may still show; it never grows with the number of partial matches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cepheid.engine.memory import container
from cepheid.engine.memory.process import named_memory
from cepheid.engine.output.matches import Matches
from cepheid.engine.run.intake import Intake, is_rows
from cepheid.engine.run.layered import member_of
from cepheid.engine.run.member import QueryMember
from cepheid.engine.run.singles import Singles

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from cepheid.engine.input.named_types import NamedTypes
    from cepheid.engine.plan.compiled import Compiled
    from cepheid.engine.run.equal_times import EqualTimes
    from cepheid.engine.run.query_state import DecidedMatches

Array = np.ndarray[Any, Any]


class Recognizer(Intake[Matches]):
    """The run state of one query over one stream. Make one with `Query.recognizer`.

    `push` takes events and returns the matches that end in them. The time per event and the memory are those that `Query.explain` states. A key of
    PARTITION BY takes a few hundred bytes as long as the recognizer lives, because the positions of its events continue.

    Only one thread at a time may call it: if another call is running, a method that reads or changes the state raises InUseError and changes nothing.
    `late`, `enough_lateness`, `latest`, `null_keys` and `memory_usage` may be read at any time.

    lateness, order, null_keys, max_bytes: as for `Query.recognizer`. sample: as for `Query.run`, for each call. variant: of the kernel. interleaved:
    see `QueryState`. types, ties: are shown the events that are read.
    """

    def __init__(
        self,
        compiled: Compiled,
        *,
        lateness: object = None,
        order: Sequence[str] = (),
        null_keys: str = "drop",
        variant: str | None = None,
        sample: int | None = None,
        interleaved: bool = False,
        max_bytes: int | None = None,
        types: NamedTypes | None = None,
        ties: EqualTimes | None = None,
    ) -> None:
        self.compiled = compiled
        options: dict[str, Any] = {"variant": variant, "sample": sample, "interleaved": interleaved}
        super().__init__(
            compiled.source,
            lateness=lateness,
            order=order,
            null_keys=null_keys,
            max_bytes=max_bytes,
            ahead=compiled.looks_ahead,
            options=options,
        )
        options = {**options, "group_nulls": self._group_nulls, "types": types, **({} if ties is None else {"ties": ties})}
        self._member = member_of(compiled, self.schema, max_bytes=max_bytes, **options)
        self._singles = None
        if self._order is None and types is None and isinstance(self._member, QueryMember):
            self._singles = Singles.of(self._member.state, self.schema)
        self._read = 0  # events of the stream that are no more in `_singles`

    def push(self, events: object) -> Matches:
        """See `Intake.push`; a single event needs little of what a table needs."""
        if self._singles is not None and (type(events) is dict or (type(events) is tuple and not is_rows(events))):
            return self._push_one(events, self._singles)
        return super().push(events)

    @named_memory()
    def _push_one(self, row: Any, singles: Singles) -> Matches:
        with self._use.alone(), self._changing():
            taken = singles.take(row, self._latest)
            if taken is not None:
                self._latest, now = taken
                self._events += 1
                return self._settled(row).all(self._allowance()) if now else self._member.layout.nothing
        return super().push(row)

    def _settled(self, row: Any = ()) -> DecidedMatches:
        """What the single events that wait decide; row: the last of them, if a match may show it."""
        assert self._singles is not None
        first, self._read = self._read, self._events
        return self._singles.read(row, first).then(self._tidy)

    def _settle(self) -> None:
        """Read what waits: nothing comes of it."""
        if self._singles:
            self._settled().all(self._allowance())

    @property
    def null_keys(self) -> int:
        """How many events were dropped because of a NULL in their PARTITION BY key.

        An event with a NULL in an attribute that only equalities compare is not dropped: it just matches nothing.
        """
        return self._member.null_keys

    @property
    def passed(self) -> int:
        """How many of the events that are being read have been read to their end, as far as that is known."""
        return self._member.passed

    def _found(self, events: pa.Table, times: Array) -> DecidedMatches:
        self._settle()
        if not events.num_rows:
            return self._member.advance(self._now)
        first = self._events
        self._latest = max(self._latest, int(times[-1]))
        self._events += events.num_rows
        self._read = self._events
        return self._member.read(events, times, first=first, now=self._now).then(self._tidy)

    def _undecided(self) -> DecidedMatches:
        return self._member.undecided()

    def _tidy(self) -> None:
        self._member.tidy(latest=self._latest, events=self._events)

    def _expire(self) -> None:
        self._member.expire(latest=self._latest, events=self._events)

    @property
    def _nbytes(self) -> int:
        return self._member.nbytes

    # ---------------------------------------------------------------------------------------------------------------- snapshots

    def _fresh(self) -> Recognizer:
        nulls = "group" if self._group_nulls else "drop"
        options: dict[str, Any] = {**self._options, "max_bytes": self._max_bytes}
        return Recognizer(self.compiled, lateness=self._lateness, order=self._ties, null_keys=nulls, **options)

    def _dump(self) -> tuple[dict[str, int], dict[str, Any]]:
        return {"null_keys": self.null_keys}, self._member.dump(latest=self._latest)

    def _load(self, numbers: dict[str, Any], sections: dict[str, Any]) -> None:
        null_keys = container.number_in(numbers, "null_keys")
        self._member.load_after(sections, latest=self._latest, events=self._events, null_keys=null_keys)
        self._read = self._events

    @property
    def _meaning(self) -> bytes:
        return self.compiled.fingerprint
