"""Several queries over one stream: what comes in is read once, each condition is asked once, and an event goes to the queries that it can touch.

Comes in: `Compiled` queries by name, over events of one schema, with keys of their own each; then batches. Goes out: `ByName`, the matches of each
query. Queries that differ in constants alone are one member (`Family`), every other one is a member of its own. All share the order of the events.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.engine.input.partitions import Partitions
from cepheid.engine.letters.pooled import PooledReader
from cepheid.engine.memory import container
from cepheid.engine.output.matches import Matches, concatenate
from cepheid.engine.plan.family import MEMBER, families
from cepheid.engine.run.intake import Intake
from cepheid.engine.run.member import Member, QueryMember, load_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cepheid.engine.plan.compiled import Compiled
    from cepheid.engine.plan.family import Family
    from cepheid.engine.run.allowance import Allowance
    from cepheid.engine.run.query_state import Found
    from cepheid.schema import EventSchema

Array = np.ndarray[Any, Any]

PAIRS_AT_ONCE = 1 << 20
"""Events of a family, each counted once for each query that it may touch, that are read before the next."""


class ByName(Mapping[str, Matches]):
    """The matches of several queries by name, in the order in which they were given; each query's in the order of the events that end them."""

    def __init__(self, nothing: Mapping[str, Matches], found: Mapping[str, Matches]) -> None:
        self._nothing = nothing
        self._found = found

    def __getitem__(self, name: str) -> Matches:
        return self._found.get(name) or self._nothing[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._nothing)

    def __len__(self) -> int:
        return len(self._nothing)

    @property
    def found(self) -> Mapping[str, Matches]:
        """The matches of those queries alone that have some."""
        return self._found

    def __repr__(self) -> str:
        counts = ", ".join(f"{name}: {len(matches)}" for name, matches in self._found.items())
        return f"<matches of {len(self)} queries: {counts or 'none'}>"


class FamilyMember(Member):
    """A family over a stream: its events are those that may touch a query, once for each."""

    def __init__(self, family: Family, schema: pa.Schema, *, group_nulls: bool, **options: Any) -> None:
        own = family.members[0].layout
        number = pa.field(MEMBER, pa.int32())
        layout = dataclasses.replace(own, events=own.events.append(number), keys=(*own.keys, MEMBER))
        wide = pa.schema([*schema, *family.constants.schema, number])
        super().__init__(family.compiled, wide, group_nulls=group_nulls, layout=layout, **options)
        self.family = family
        read = {*family.compiled.predicates.columns, *family.compiled.keys, *own.events.names}
        self._columns = [name for name in schema.names if name in read]
        (self._reader,) = (alphabet.reader() for alphabet in family.compiled.alphabets)

    def read_pairs(self, events: pa.Table, times: Array, positions: Array, pairs: tuple[Array, Array], *, now: int) -> Iterator[Found]:
        """The matches that events decide, each to be made before the next; pairs: (row, query); positions: those that matches show, of each row."""
        events = events.select(self._columns)
        for start in range(0, len(pairs[0]), PAIRS_AT_ONCE):
            rows, queries = (side[start : start + PAIRS_AT_ONCE] for side in pairs)
            joined = self.family.joined(events, rows, queries)
            arrived = self.partitions.arrive(joined)
            yield self.state.feed(self._reader.read(joined), times[rows], joined, arrived, first=0, shown=positions[rows], now=now)

    def _idle(self, slots: Array) -> None:
        # Positions are not counted here: where nothing is open, nothing has to be remembered.
        idle = np.intersect1d(slots, self.partitions.live)
        if len(idle):
            self.state.release(idle)
            self.partitions.forget(idle)

    def by_name(self, matches: Matches) -> Iterator[tuple[str, Matches]]:
        """The matches of each query that has some."""
        if not len(matches):
            return
        assert matches.partitions is not None
        assert matches.keys is not None
        owner = matches.keys[MEMBER].to_numpy()[matches.partitions]
        order = np.argsort(owner, kind="stable")
        sorted_ = matches.take(order) if (np.diff(owner) < 0).any() else matches
        owner = owner[order]
        firsts = np.flatnonzero(np.diff(owner, prepend=-1))
        for first, stop in zip(firsts.tolist(), [*firsts[1:].tolist(), len(owner)], strict=True):
            number = int(owner[first])
            layout = self.family.members[number].layout
            own = sorted_[first:stop]
            keys = own.keys.select(list(layout.keys)) if layout.keys and own.keys is not None else None
            partitions = own.partitions if layout.keys else None
            events = own.events.select(layout.events.names)
            yield self.family.names[number], dataclasses.replace(own, layout=layout, keys=keys, partitions=partitions, events=events)


class _FoundByName:
    """What a call decides, of all queries."""

    def __init__(self, state: QueriesRecognizer, found: Iterator[tuple[Member | str, Found]]) -> None:
        self._state = state
        self._found = found
        self._after: list[Callable[[], None]] = []

    def then(self, what: Callable[[], None]) -> _FoundByName:
        """The same; `what` is done once all has been made."""
        self._after.append(what)
        return self

    def all(self, allowance: Allowance) -> ByName:
        """All of it, within one allowance."""
        parts: dict[str, list[Matches]] = {}
        for owner, found in self._found:
            matches = found.all(allowance)
            for name, own in [(owner, matches)] if isinstance(owner, str) else owner.by_name(matches):
                if len(own):
                    parts.setdefault(name, []).append(own)
        for what in self._after:
            what()
        return self._state.named(parts)

    def pieces(self) -> Iterator[ByName]:
        """The same in pieces of bounded size."""
        for owner, found in self._found:
            for matches in found.pieces():
                named = [(owner, matches)] if isinstance(owner, str) else owner.by_name(matches)
                yield self._state.named({name: [own] for name, own in named if len(own)})
        for what in self._after:
            what()


class QueriesRecognizer(Intake[ByName]):
    """The run state of several queries over one stream; what is given is a `ByName`, everything else as for `Recognizer`.

    compiled: by name. schema: of the events, the same for all.
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
        super().__init__(schema, lateness=lateness, order=order, null_keys=null_keys, max_bytes=max_bytes, options=options)
        self.compiled = dict(compiled)
        found, alone = families(self.compiled)
        self._families = [FamilyMember(family, self.schema, group_nulls=self._group_nulls, **options) for family in found]
        self._alone = {name: QueryMember(each, self.schema, group_nulls=self._group_nulls, **options) for name, each in alone.items()}
        self._written = {
            written: Partitions(written, self.schema, grouped=written if self._group_nulls else ())
            for written in dict.fromkeys(member.compiled.written for member in self._families)
        }
        conditions = [condition for family in found for condition in family.shared]
        conditions += [condition for each in alone.values() for alphabet in each.alphabets for condition in alphabet.conditions]
        self._pooled = PooledReader(conditions, schema)
        self._nothing_found = {name: each.layout.nothing for name, each in self.compiled.items()}

    @property
    def members(self) -> tuple[tuple[str, ...], ...]:
        """The names of the queries that are evaluated together, family by family, then of those alone."""
        return (*(member.family.names for member in self._families), *((name,) for name in self._alone))

    @property
    def null_keys(self) -> dict[str, int]:
        """For each query the events dropped for a NULL in its PARTITION BY."""
        found = {name: member.null_keys for name, member in self._alone.items()}
        for member in self._families:
            found |= dict.fromkeys(member.family.names, self._written[member.compiled.written].null_keys)
        return {name: found[name] for name in self.compiled}

    def named(self, parts: Mapping[str, Sequence[Matches]]) -> ByName:
        """The matches of the queries that have some, as what is given."""
        found = {
            name: own[0] if len(own) == 1 else concatenate(self.compiled[name].layout, own)
            for name in (self.compiled if len(parts) > 1 else parts)
            if (own := parts.get(name))
        }
        return ByName(self._nothing_found, found)

    # ------------------------------------------------------------------------------------------------------------------- of an intake

    def _found(self, events: pa.Table, times: Array) -> _FoundByName:
        if not events.num_rows:
            return _FoundByName(self, ((name, member.state.advance(self._now)) for name, member in self._alone.items()))
        first = self._events
        self._latest = max(self._latest, int(times[-1]))
        self._events += events.num_rows
        return _FoundByName(self, self._read(events, times, first)).then(self._tidy)

    def _read(self, events: pa.Table, times: Array, first: int) -> Iterator[tuple[Member | str, Found]]:
        words = self._pooled.read(events)
        positions = {
            written: partitions.arrive(events).positions if written else first + np.arange(events.num_rows)
            for written, partitions in self._written.items()
        }
        for member in self._families:
            pairs = member.family.touched(events, self._pooled, words)
            if len(pairs[0]):
                for found in member.read_pairs(events, times, positions[member.compiled.written], pairs, now=self._now):
                    yield member, found
        for name, own in self._alone.items():
            letters = [self._pooled.letters(words, alphabet, events.num_rows) for alphabet in own.compiled.alphabets]
            yield name, own.read(events, times, first=first, now=self._now, letters=letters)

    def _undecided(self) -> _FoundByName:
        return _FoundByName(self, ((name, member.state.undecided()) for name, member in self._alone.items()))

    def _every(self) -> list[Member]:
        return [*self._families, *self._alone.values()]

    def _tidy(self) -> None:
        for member in self._every():
            member.tidy(latest=self._latest, events=self._events)

    def _expire(self) -> None:
        for member in self._every():
            member.expire(latest=self._latest, events=self._events)

    @property
    def _nbytes(self) -> int:
        return sum(member.nbytes for member in self._every()) + sum(partitions.nbytes for partitions in self._written.values())

    # ---------------------------------------------------------------------------------------------------------------- snapshots

    def _fresh(self) -> QueriesRecognizer:
        nulls = "group" if self._group_nulls else "drop"
        options: dict[str, Any] = {**self._options, "max_bytes": self._max_bytes}
        return QueriesRecognizer(self.compiled, self._source, lateness=self._lateness, order=self._ties, null_keys=nulls, **options)

    def _dump(self) -> tuple[dict[str, int], dict[str, Any]]:
        sections: dict[str, Any] = {}
        for number, member in enumerate(self._every()):
            sections |= {f"{number}/{name}": content for name, content in member.dump(latest=self._latest).items()}
        numbers = {f"null_keys {name}": member.null_keys for name, member in self._alone.items()}
        for number, partitions in enumerate(self._written.values()):
            keys, seen = partitions.dump()
            sections |= {f"written {number}": container.table_bytes(keys), f"written_seen {number}": seen.astype("<i8")}
            numbers[f"written {number}"] = partitions.null_keys
        return numbers, sections

    def _load(self, numbers: dict[str, Any], sections: dict[str, Any]) -> None:
        own: list[dict[str, Any]] = [{} for _ in self._every()]
        for section, content in sections.items():
            number, slash, name = section.partition("/")
            if slash:
                own[int(number)][name] = content
        for member in self._families:
            member.load(own.pop(0), latest=self._latest)
        for name, single in self._alone.items():
            null_keys = container.number_in(numbers, f"null_keys {name}")
            single.load_after(own.pop(0), latest=self._latest, events=self._events, null_keys=null_keys)
        for number, partitions in enumerate(self._written.values()):
            load_keys(partitions, sections[f"written {number}"], sections[f"written_seen {number}"])
            if sum(partitions.seen.tolist()) > self._events:
                raise ValueError("its sections do not fit together")
            partitions.null_keys = container.number_in(numbers, f"written {number}")

    @property
    def _meaning(self) -> bytes:
        names = "".join(f"{len(name)} {name}" for name in self.compiled)
        return hashlib.sha256(b"".join(each.fingerprint for each in self.compiled.values()) + names.encode()).digest()
