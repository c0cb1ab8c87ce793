"""Several queries over one stream: what comes in is read once, each condition is asked once, and an event goes to the queries that it can touch.

Comes in: `Compiled` queries by name, over events of one schema, with keys of their own each; then batches. Goes out: `ByName`, the matches of each
query. Queries that differ in constants alone are one member (`Family`), every other one is a member of its own. All share the order of the events.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from cepheid.engine.input.partitions import Partitions
from cepheid.engine.memory import container
from cepheid.engine.output.matches import Matches, concatenate
from cepheid.engine.plan.family import families
from cepheid.engine.run.intake import Intake
from cepheid.engine.run.member import load_keys
from cepheid.engine.run.members import Members, QueryMatches, named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

    from cepheid.engine.memory.pools import Array
    from cepheid.engine.plan.compiled import Compiled
    from cepheid.engine.run.allowance import Allowance
    from cepheid.engine.run.members import FamilyMember
    from cepheid.engine.run.query_state import DecidedMatches
    from cepheid.schema import EventSchema


class ByName(Mapping[str, Matches]):
    """The matches of several queries: an immutable mapping from names to `Matches`, in the order in which the queries were given.

    `Queries.run` and the calls of a `QueriesRecognizer` return one. Each query's matches are in the order of the events that end them, and are put
    together when they are looked at. nothing: for each name its matches if it has none. parts: the matches of each query that has some.
    """

    def __init__(self, nothing: Mapping[str, Matches], parts: Mapping[str, Sequence[QueryMatches]]) -> None:
        self._nothing = nothing
        self._parts = parts
        self._made: dict[str, Matches] = {}

    def __getitem__(self, name: str) -> Matches:
        parts = self._parts.get(name)
        if not parts:
            return self._nothing[name]
        made = self._made.get(name)
        if made is None:
            layout = self._nothing[name].layout
            made = parts[0].made() if len(parts) == 1 else concatenate(layout, [part.made() for part in parts])
            waiting = None if made.waiting is None else dataclasses.replace(made.waiting, name=name)
            made = dataclasses.replace(made, name=name, waiting=waiting)
            self._made[name] = made
        return made

    def __iter__(self) -> Iterator[str]:
        return iter(self._nothing)

    def __len__(self) -> int:
        return len(self._nothing)

    def __reduce__(self) -> tuple[object, ...]:
        # As made: what a part is taken from belongs to the recognizer.
        return ByName, (self._nothing, {name: [QueryMatches(self[name])] for name in self._parts})

    @property
    def found(self) -> dict[str, Matches]:
        """The matches of those queries that have some, by name: a dict. O(queries with matches)."""
        return {name: self[name] for name in self._parts}

    def __repr__(self) -> str:
        counts = ", ".join(f"{name}: {len(self[name])}" for name in self._parts)
        return f"<matches of {len(self)} {'query' if len(self) == 1 else 'queries'}: {counts or 'none'}>"


class FoundParts:
    """What a call decides, of all queries; `found`: name or family of each, to be made in this order. public: as of `Members`."""

    def __init__(self, found: Iterator[tuple[FamilyMember | str, DecidedMatches]], public: Callable[[str], str] = str) -> None:
        self._found, self._public = found, public
        self._after: list[Callable[[], None]] = []

    def then(self, what: Callable[[], None]) -> Self:
        """The same; `what` is done once all has been made."""
        self._after.append(what)
        return self

    def parts(self, allowance: Allowance) -> Iterator[tuple[str, QueryMatches]]:
        """The matches of each query that has some, query by query, within one allowance."""
        for owner, found in self._found:
            with named(owner, self._public):
                matches = found.all(allowance)
            yield from _parts(owner, matches)
        self._done()

    def whole(self, allowance: Allowance | None = None) -> Iterator[tuple[FamilyMember | str, Matches]]:
        """The matches of each query and of each family, in pieces of bounded size."""
        for owner, found in self._found:
            with named(owner, self._public):
                for matches in found.pieces(allowance):
                    yield owner, matches
        self._done()

    def _pieces(self, allowance: Allowance | None = None) -> Iterator[list[tuple[str, QueryMatches]]]:
        """The same, query by query."""
        return (list(_parts(owner, matches)) for owner, matches in self.whole(allowance))

    def _done(self) -> None:
        for what in self._after:
            what()


class FoundByName(FoundParts):
    """What a call decides, by the names of the queries."""

    def __init__(self, nothing: Mapping[str, Matches], found: Iterator[tuple[FamilyMember | str, DecidedMatches]]) -> None:
        super().__init__(found)
        self._nothing = nothing

    def all(self, allowance: Allowance) -> ByName:
        """All of it, within one allowance."""
        parts: dict[str, list[QueryMatches]] = {}
        for name, part in self.parts(allowance):
            parts.setdefault(name, []).append(part)
        return ByName(self._nothing, parts)

    def pieces(self) -> Iterator[ByName]:
        """The same in pieces of bounded size."""
        for parts in self._pieces():
            yield ByName(self._nothing, {name: [part] for name, part in parts})


def _parts(owner: FamilyMember | str, matches: Matches) -> Iterator[tuple[str, QueryMatches]]:
    if not isinstance(owner, str):
        yield from owner.parts(matches)
    elif len(matches):
        yield owner, QueryMatches(matches)


class QueriesRecognizer(Intake[ByName]):
    """The run state of several queries over one stream. Make one with `Queries.recognizer`.

    It has the methods of `Recognizer`; they return `ByName` instead of `Matches`, and `null_keys` is a dict. compiled: the queries by name. schema:
    of the events, the same for all queries.
    """

    def __init__(
        self,
        compiled: Mapping[str, Compiled],
        schema: EventSchema,
        *,
        lateness: object = None,
        order: Sequence[str] = (),
        null_keys: str = "drop",
        variant: str | None = None,
        max_bytes: int | None = None,
    ) -> None:
        options: dict[str, Any] = {"variant": variant}
        ahead = any(each.looks_ahead for each in compiled.values())
        super().__init__(schema, lateness=lateness, order=order, null_keys=null_keys, max_bytes=max_bytes, ahead=ahead, options=options)
        self.compiled = dict(compiled)
        self._members = Members(schema, self.schema, max_bytes=max_bytes, group_nulls=self._group_nulls, **options)
        self._members.add(*families(self.compiled))
        self._written = {
            written: Partitions(written, self.schema, grouped=written if self._group_nulls else ())
            for written in dict.fromkeys(each.compiled.written for each in (*self._members.families, *self._members.filtered.values()))
        }
        self.nothing: dict[str, Matches] = {name: each.layout.nothing for name, each in self.compiled.items()}

    @property
    def null_keys(self) -> dict[str, int]:
        """For each query how many events were dropped because of a NULL in its PARTITION BY key."""
        found = {name: member.null_keys for name, member in self._members.alone.items()}
        found |= {name: self._written[member.compiled.written].null_keys for name, member in self._members.filtered.items()}
        for member in self._members.families:
            found |= dict.fromkeys(member.family.names, self._written[member.compiled.written].null_keys)
        return {name: found[name] for name in self.compiled}

    # ------------------------------------------------------------------------------------------------------------------- of an intake

    def _found(self, events: pa.Table, times: Array) -> FoundByName:
        if not events.num_rows:
            return FoundByName(self.nothing, self._members.advance(self._now))
        first = self._events
        self._latest = max(self._latest, int(times[-1]))
        self._events += events.num_rows
        return FoundByName(self.nothing, self._read(events, times, first)).then(self._tidy)

    def _read(self, events: pa.Table, times: Array, first: int) -> Iterator[tuple[FamilyMember | str, DecidedMatches]]:
        positions = {
            written: partitions.arrive(events).positions if written else first + np.arange(events.num_rows)
            for written, partitions in self._written.items()
        }
        return self._members.read(events, times, positions.__getitem__, first=first, now=self._now)

    def _undecided(self) -> FoundByName:
        return FoundByName(self.nothing, self._members.undecided())

    def _tidy(self) -> None:
        self._members.tidy(latest=self._latest, events=self._events)

    def _expire(self) -> None:
        self._members.expire(latest=self._latest, events=self._events)

    @property
    def _nbytes(self) -> int:
        return self._members.nbytes + sum(partitions.nbytes for partitions in self._written.values())

    # ---------------------------------------------------------------------------------------------------------------- snapshots

    def _fresh(self) -> QueriesRecognizer:
        nulls = "group" if self._group_nulls else "drop"
        options: dict[str, Any] = {**self._options, "max_bytes": self._max_bytes}
        return QueriesRecognizer(self.compiled, self._source, lateness=self._lateness, order=self._ties, null_keys=nulls, **options)

    def _dump(self) -> tuple[dict[str, int], dict[str, Any]]:
        sections = self._members.dump(latest=self._latest)
        numbers = {f"null_keys {name}": member.null_keys for name, member in self._members.alone.items()}
        for number, partitions in enumerate(self._written.values()):
            keys, seen = partitions.dump()
            sections |= {f"written {number}": container.table_bytes(keys), f"written_seen {number}": seen.astype("<i8")}
            numbers[f"written {number}"] = partitions.null_keys
        return numbers, sections

    def _load(self, numbers: dict[str, Any], sections: dict[str, Any]) -> None:
        self._members.load(
            sections,
            latest=self._latest,
            events=self._events,
            null_keys=lambda name: container.number_in(numbers, f"null_keys {name}"),
        )
        for place, partitions in enumerate(self._written.values()):
            load_keys(partitions, sections[f"written {place}"], sections[f"written_seen {place}"])
            if sum(partitions.seen.tolist()) > self._events:
                raise ValueError("its sections do not fit together")
            partitions.null_keys = container.number_in(numbers, f"written {place}")

    @property
    def _meaning(self) -> bytes:
        # The same queries are together only where all but their constants is the same, also the names of measures.
        together = [list(member.family.names) for member in self._members.families]
        names = "".join(f"{len(name)} {name}" for name in self.compiled) + repr(together)
        return hashlib.sha256(b"".join(each.fingerprint for each in self.compiled.values()) + names.encode()).digest()
