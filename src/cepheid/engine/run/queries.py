"""Several queries over one stream: what comes in is read once, each condition is asked once, and an event goes to the queries that it can touch.

Comes in: `Compiled` queries by name, over events of one schema, with keys of their own each; then batches. Goes out: `ByName`, the matches of each
query. Queries that differ in constants alone are one member (`Family`), every other one is a member of its own. All share the order of the events.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from cepheid.engine.input.partitions import Partitions
from cepheid.engine.letters.codes import having
from cepheid.engine.letters.pooled import PooledReader
from cepheid.engine.memory import container
from cepheid.engine.output.matches import Matches, compact, concatenate
from cepheid.engine.plan.family import MEMBER, alone_for, families
from cepheid.engine.run.intake import Intake
from cepheid.engine.run.layered import Layered, member_of
from cepheid.engine.run.member import IDLE_CHECK, Member, load_keys
from cepheid.errors import CepheidError, LimitError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cepheid.engine.memory.pools import Array
    from cepheid.engine.plan.compiled import Compiled
    from cepheid.engine.plan.family import Family
    from cepheid.engine.run.allowance import Allowance
    from cepheid.engine.run.query_state import DecidedMatches
    from cepheid.schema import EventSchema

PAIRS_AT_ONCE = 1 << 16
"""Events of a family, each counted once for each query that it may touch, that are read before the next."""


class QueryMatches(NamedTuple):
    """Some matches of one query: all of `matches`, or of a family's some of them, which are made when they are looked at."""

    matches: Matches
    family: Family | None = None
    number: int = 0
    rows: slice = slice(None)

    def made(self) -> Matches:
        """The matches, as the query gives them."""
        if self.family is None:
            return self.matches
        layout = self.family.members[self.number].layout
        own = self.matches[self.rows]
        keys = own.keys.select(list(layout.keys)) if layout.keys and own.keys is not None else None
        partitions = own.partitions if layout.keys else None
        return dataclasses.replace(own, layout=layout, keys=keys, partitions=partitions, source=own.events.select(layout.events.names))


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


class FilteredMember(Member):
    """A query to which the events alone matter that its conditions name: of a batch it reads those, and a batch without any it does not see."""

    def __init__(self, compiled: Compiled, schema: pa.Schema, **options: Any) -> None:
        super().__init__(compiled, schema, forgets=True, **options)
        alphabet = compiled.program.automaton.alphabet
        self._relevant = functools.partial(having, alphabet=alphabet, tests=[(mask, 0) for mask in compiled.program.relevant_masks])
        (self._reader,) = compiled.readers(self.state.texts)

    def read(self, events: pa.Table, times: Array, positions: Array, letters: Array, *, now: int) -> DecidedMatches | None:
        """The matches that events decide, None for none; positions: those that matches show, of each row; letters: without values."""
        rows = np.flatnonzero(self._relevant(letters))
        if not len(rows):
            return None
        said = letters[rows]
        if self.compiled.valued:
            said = self._reader.read(events.take(pa.array(rows)), positions=positions[rows], letters=said)
        keys = self.compiled.keys
        own = events.select(list(keys)).take(pa.array(rows)) if keys else None
        arrived = (
            self.partitions.arrive_in(None, len(rows)) if own is None else self.partitions.arrive(own, interleaved=self.state.interleaved)
        )
        return self.state.feed(said, times[rows], events, arrived, first=0, places=rows, shown=positions[rows], now=now)


class FamilyMember(Member):
    """A family over a stream: its events are those that may touch a query, once for each."""

    def __init__(self, family: Family, schema: pa.Schema, **options: Any) -> None:
        own = family.members[0].layout
        number = pa.field(MEMBER, pa.int32())
        layout = dataclasses.replace(own, events=own.events.append(number), keys=(*own.keys, MEMBER))
        wide = pa.schema([*schema, *family.constants.schema, number])
        super().__init__(family.compiled, wide, layout=layout, forgets=True, **options)
        self.family = family
        (self._reader,) = family.compiled.readers(self.state.texts)
        read = {*self._reader.columns, *family.compiled.keys, *own.events.names}
        self._columns = [name for name in schema.names if name in read]

    def read_pairs(
        self, events: pa.Table, times: Array, positions: Array, pairs: tuple[Array, Array], *, now: int
    ) -> Iterator[DecidedMatches]:
        """The matches that events decide, each to be made before the next; pairs: (row, query); positions: those that matches show, of each row."""
        events = events.select(self._columns)
        for start in range(0, len(pairs[0]), PAIRS_AT_ONCE):
            rows, queries = (side[start : start + PAIRS_AT_ONCE] for side in pairs)
            joined = self.family.joined(events, rows, queries)
            arrived = self.partitions.arrive(joined)
            shown = positions[rows]
            letters = self._reader.read(joined, positions=shown)
            yield self.state.feed(letters, times[rows], joined, arrived, first=0, shown=shown, now=now)

    def named(self, error: LimitError) -> CepheidError:
        """An error about a match with the name of its query, and not with the number that the family has for it."""
        before, _, rest = error.fact.partition(f", {MEMBER} = ")
        number, _, after = rest.partition(",")
        error.fact = f"{before},{after}"
        return error.of_query(self.family.names[int(number)])

    def parts(self, matches: Matches) -> Iterator[tuple[str, QueryMatches]]:
        """The matches of each query that has some."""
        if not len(matches):
            return
        assert matches.partitions is not None
        assert matches.keys is not None
        owner = matches.keys[MEMBER].to_numpy()[matches.partitions]
        order = np.argsort(owner, kind="stable")
        # The marked events of all queries are many, and come in pieces: each query's few are quickly taken from those that some match shows.
        together = compact(matches if (np.diff(owner) >= 0).all() else matches.take(order))
        owner = owner[order]
        firsts = np.flatnonzero(np.diff(owner, prepend=-1))
        stops = np.append(firsts[1:], len(owner))
        for number, first, stop in zip(owner[firsts].tolist(), firsts.tolist(), stops.tolist(), strict=True):
            yield self.family.names[number], QueryMatches(together, self.family, number, slice(first, stop))


class FoundByName:
    """What a call decides, of all queries; `found`: name or family of each, to be made in this order."""

    def __init__(self, nothing: Mapping[str, Matches], found: Iterator[tuple[FamilyMember | str, DecidedMatches]]) -> None:
        self._nothing = nothing
        self._found = found
        self._after: list[Callable[[], None]] = []

    def then(self, what: Callable[[], None]) -> FoundByName:
        """The same; `what` is done once all has been made."""
        self._after.append(what)
        return self

    def all(self, allowance: Allowance) -> ByName:
        """All of it, within one allowance."""
        parts: dict[str, list[QueryMatches]] = {}
        for owner, found in self._found:
            try:
                matches = found.all(allowance)
            except LimitError as error:
                raise error.of_query(owner) if isinstance(owner, str) else owner.named(error) from None
            for name, part in _parts(owner, matches):
                parts.setdefault(name, []).append(part)
        self._done()
        return ByName(self._nothing, parts)

    def pieces(self) -> Iterator[ByName]:
        """The same in pieces of bounded size."""
        for owner, found in self._found:
            for matches in found.pieces():
                yield ByName(self._nothing, {name: [part] for name, part in _parts(owner, matches)})
        self._done()

    def _done(self) -> None:
        for what in self._after:
            what()


def _parts(owner: FamilyMember | str, matches: Matches) -> Iterator[tuple[str, QueryMatches]]:
    if not isinstance(owner, str):
        yield from owner.parts(matches)
    elif len(matches):
        yield owner, QueryMatches(matches)


@contextlib.contextmanager
def _of_query(name: str) -> Iterator[None]:
    """A limit that a definition of a query passes is that query's."""
    try:
        yield
    except LimitError as error:
        raise error.of_query(name) from None


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
        found, alone = families(self.compiled)
        options = {**options, "group_nulls": self._group_nulls}
        self._families = [FamilyMember(family, self.schema, **options) for family in found]
        self._filtered = {name: FilteredMember(each, self.schema, **options) for name, each in alone.items() if alone_for(each) is None}
        self._alone = {
            name: member_of(each, self.schema, max_bytes=max_bytes, **options) for name, each in alone.items() if name not in self._filtered
        }
        self._written = {
            written: Partitions(written, self.schema, grouped=written if self._group_nulls else ())
            for written in dict.fromkeys(member.compiled.written for member in (*self._families, *self._filtered.values()))
        }
        self._visited: list[Member | Layered] = []  # by the last batch
        self._pushes = 0
        conditions = [condition for family in found for condition in family.shared]
        # What a lag says depends on the keys of its query, which asks its conditions itself; and so does one that makes events.
        asked = [alphabet for each in alone.values() if not (each.lags or each.layers) for alphabet in each.alphabets]
        conditions += [condition for alphabet in asked for condition in alphabet.conditions]
        self._pooled = PooledReader(conditions, schema)
        self.nothing: dict[str, Matches] = {name: each.layout.nothing for name, each in self.compiled.items()}

    @property
    def null_keys(self) -> dict[str, int]:
        """For each query how many events were dropped because of a NULL in its PARTITION BY key."""
        found = {name: member.null_keys for name, member in self._alone.items()}
        found |= {name: self._written[member.compiled.written].null_keys for name, member in self._filtered.items()}
        for member in self._families:
            found |= dict.fromkeys(member.family.names, self._written[member.compiled.written].null_keys)
        return {name: found[name] for name in self.compiled}

    # ------------------------------------------------------------------------------------------------------------------- of an intake

    def _found(self, events: pa.Table, times: Array) -> FoundByName:
        if not events.num_rows:
            return FoundByName(self.nothing, self._advance())
        first = self._events
        self._latest = max(self._latest, int(times[-1]))
        self._events += events.num_rows
        return FoundByName(self.nothing, self._read(events, times, first)).then(self._tidy)

    def _advance(self) -> Iterator[tuple[FamilyMember | str, DecidedMatches]]:
        for name, member in self._alone.items():
            with _of_query(name):
                found = member.advance(self._now)
            yield name, found

    def _read(self, events: pa.Table, times: Array, first: int) -> Iterator[tuple[FamilyMember | str, DecidedMatches]]:
        words = self._pooled.read(events)
        positions = {
            written: partitions.arrive(events).positions if written else first + np.arange(events.num_rows)
            for written, partitions in self._written.items()
        }
        self._visited = list(self._alone.values())
        for member in self._families:
            pairs = member.family.touched(events, self._pooled, words)
            if len(pairs[0]):
                self._visited.append(member)
                for found in member.read_pairs(events, times, positions[member.compiled.written], pairs, now=self._now):
                    yield member, found
        for name, single in self._filtered.items():
            letters = self._pooled.letters(words, single.compiled.predicates, events.num_rows)
            own_found = single.read(events, times, positions[single.compiled.written], letters, now=self._now)
            if own_found is not None:
                self._visited.append(single)
                yield name, own_found
        for name, own in self._alone.items():
            if isinstance(own, Layered):
                with _of_query(name):
                    found = own.read(events, times, first=first, now=self._now)
                yield name, found
                continue
            pooled = () if own.compiled.lags else own.compiled.alphabets
            each = [self._pooled.letters(words, alphabet, events.num_rows) for alphabet in pooled]
            yield name, own.read(events, times, first=first, now=self._now, letters=each or None)

    def _undecided(self) -> FoundByName:
        return FoundByName(self.nothing, ((name, member.undecided()) for name, member in self._alone.items()))

    def _every(self) -> list[Member | Layered]:
        return [*self._families, *self._filtered.values(), *self._alone.values()]

    def _tidy(self) -> None:
        self._pushes += 1
        if self._pushes % IDLE_CHECK == 0:
            for each in self._every():
                each.look(latest=self._latest, events=self._events)
        for member in self._visited:
            member.tidy(latest=self._latest, events=self._events)

    def _expire(self) -> None:
        for member in self._every():
            member.expire(latest=self._latest, events=self._events)

    @property
    def _nbytes(self) -> int:
        indexes = sum(member.family.nbytes for member in self._families)
        return indexes + sum(member.nbytes for member in self._every()) + sum(partitions.nbytes for partitions in self._written.values())

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
        for member in (*self._families, *self._filtered.values()):
            member.load(own.pop(0), latest=self._latest)
        for name, single in self._alone.items():
            null_keys = container.number_in(numbers, f"null_keys {name}")
            single.load_after(own.pop(0), latest=self._latest, events=self._events, null_keys=null_keys)
        for place, partitions in enumerate(self._written.values()):
            load_keys(partitions, sections[f"written {place}"], sections[f"written_seen {place}"])
            if sum(partitions.seen.tolist()) > self._events:
                raise ValueError("its sections do not fit together")
            partitions.null_keys = container.number_in(numbers, f"written {place}")

    @property
    def _meaning(self) -> bytes:
        # The same queries are together only where all but their constants is the same, also the names of measures.
        together = [list(member.family.names) for member in self._families]
        names = "".join(f"{len(name)} {name}" for name in self.compiled) + repr(together)
        return hashlib.sha256(b"".join(each.fingerprint for each in self.compiled.values()) + names.encode()).digest()
