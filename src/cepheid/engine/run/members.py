"""The run states of several queries over one stream: what is read once for all of them, and which events go to which.

Comes in: tables of events in order. Goes out: `DecidedMatches` of each query or family that the events touch. Queries can come and go while the
stream runs: one that comes begins with the next event, whatever the others have read, and joins the family of its shape.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from cepheid.engine.letters.codes import having
from cepheid.engine.letters.pooled import PooledReader
from cepheid.engine.output.matches import Matches, compact
from cepheid.engine.plan.family import MEMBER, Family, General, alone_for, by_shape
from cepheid.engine.run.layered import Layered, member_of
from cepheid.engine.run.member import IDLE_CHECK, Member
from cepheid.errors import CepheidError, LimitError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from cepheid.engine.memory.pools import Array
    from cepheid.engine.plan.compiled import Compiled
    from cepheid.engine.run.member import QueryMember
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
        return _own(self.matches[self.rows], self.family.members[self.number])


def _own(matches: Matches, query: General) -> Matches:
    """Matches of a family as a query of it shows them."""
    layout = query.own.layout
    keys = matches.keys.select(list(layout.keys)) if layout.keys and matches.keys is not None else None
    partitions = matches.partitions if layout.keys else None
    return dataclasses.replace(matches, layout=layout, keys=keys, partitions=partitions, source=matches.events.select(layout.events.names))


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
        own = family.first.own.layout
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

    def forget_queries(self, numbers: Sequence[int]) -> None:
        """Forget the queries of some numbers, and their state. O(keys)."""
        live = self.partitions.live
        self.forget(live[np.isin(self.partitions.table(live)[MEMBER].to_numpy(), numbers)])
        self.family = self.family.without(numbers)

    def named(self, error: LimitError, public: Callable[[str], str]) -> CepheidError:
        """An error about a match with the public name of its query, and not with the number that the family has for it."""
        before, _, rest = error.fact.partition(f", {MEMBER} = ")
        number, _, after = rest.partition(",")
        error.fact = f"{before},{after}"
        return error.of_query(public(self.family.members[int(number)].name))

    def owned(self, matches: Matches) -> tuple[Array, Matches]:
        """For each match the number of its query (int32), and the matches as any of these shows them: they agree in that."""
        return _owners(matches), _own(matches, self.family.first)

    def parts(self, matches: Matches) -> Iterator[tuple[str, QueryMatches]]:
        """The matches of each query that has some."""
        if not len(matches):
            return
        owner = _owners(matches)
        order = np.argsort(owner, kind="stable")
        # The marked events of all queries are many, and come in pieces: each query's few are quickly taken from those that some match shows.
        together = compact(matches if (np.diff(owner) >= 0).all() else matches.take(order))
        owner = owner[order]
        firsts = np.flatnonzero(np.diff(owner, prepend=-1))
        stops = np.append(firsts[1:], len(owner))
        for number, first, stop in zip(owner[firsts].tolist(), firsts.tolist(), stops.tolist(), strict=True):
            yield self.family.members[number].name, QueryMatches(together, self.family, number, slice(first, stop))


def _owners(matches: Matches) -> Array:
    """For each match of a family the number of its query."""
    assert matches.partitions is not None
    assert matches.keys is not None
    numbers: Array = matches.keys[MEMBER].to_numpy()[matches.partitions]
    return numbers


@contextlib.contextmanager
def named(owner: FamilyMember | str, public: Callable[[str], str] = str) -> Iterator[None]:
    """A limit that the matches of a query or a family pass is that of the query. public: what users know a query by, from its name here."""
    try:
        yield
    except LimitError as error:
        raise error.of_query(public(owner)) if isinstance(owner, str) else owner.named(error, public) from None


class Members:
    """The run states of several queries, by name.

    source: the schema of the events. schema: the same in Arrow. max_bytes: of the matches of a definition. numbered: the positions that `read` is
    given are the numbers of events, and not their places in the partitions of a query. public: what users know a query by, from its name here.
    options: of a `Member`.
    """

    def __init__(
        self,
        source: EventSchema,
        schema: pa.Schema,
        *,
        max_bytes: int | None,
        numbered: bool = False,
        public: Callable[[str], str] = str,
        **options: Any,
    ) -> None:
        self._source, self._schema, self._max_bytes, self._options = source, schema, max_bytes, options
        self._numbered, self._public = numbered, public
        self.families: list[FamilyMember] = []
        self.filtered: dict[str, FilteredMember] = {}
        self.alone: dict[str, QueryMember | Layered] = {}
        self._begun: dict[str, int] = {}  # of those alone: events of the stream before them
        self._pooled = PooledReader((), source)
        self._visited: list[Member | Layered] = []  # by the last batch
        self._batches = 0

    def add(self, families: Iterable[Family], alone: Mapping[str, Compiled], *, first: int = 0) -> None:
        """Queries as families, and alone; first: how many events of the stream came before them.

        Where positions are counted elsewhere, whoever calls has put all that may be of a family into one.
        """
        self.families += [FamilyMember(family, self._schema, **self._options) for family in families]
        for name, compiled in alone.items():
            if alone_for(compiled) is None and not self._numbered:
                self.filtered[name] = FilteredMember(compiled, self._schema, **self._options)
            else:
                self.alone[name] = member_of(compiled, self._schema, max_bytes=self._max_bytes, numbered=self._numbered, **self._options)
                self._begun[name] = first
        self._pool()

    def join(self, queries: Iterable[General], alone: Mapping[str, Compiled], *, first: int) -> None:
        """As `add`, each of the queries in a family that can grow; the state of the others stays as it is. O(queries of the families that grow)."""
        families = []
        for group in by_shape(queries):
            left: Sequence[General] = group
            for member in self.families:
                if left and member.family.first.shape == group[0].shape:
                    member.family, left = member.family.with_queries(left)
            while left:
                family, left = Family(()).with_queries(left)
                families.append(family)
        self.add(families, alone, first=first)

    def leave(self, names: Iterable[str]) -> None:
        """Forget queries, and their state. O(keys and queries of the families)."""
        left = set(names)
        for name in left & self.alone.keys():
            del self.alone[name], self._begun[name]
        for member in list(self.families):
            numbers = [number for number, each in member.family.members.items() if each.name in left]
            if len(numbers) == len(member.family.live):
                self.families.remove(member)
            elif numbers:
                member.forget_queries(numbers)
        self._visited = []
        self._pool()

    def begun(self, name: str) -> int:
        """How many events of the stream came before a query that is evaluated alone."""
        return self._begun[name]

    def _pool(self) -> None:
        """Ask the conditions of all queries from now on."""
        conditions = [condition for member in self.families for condition in member.family.shared]
        # What a lag says depends on the keys of its query, which asks its conditions itself; and so does one that makes events.
        others = [member.compiled for member in (*self.filtered.values(), *self.alone.values())]
        asked = [alphabet for each in others if not (each.lags or each.layers) for alphabet in each.alphabets]
        conditions += [condition for alphabet in asked for condition in alphabet.conditions]
        self._pooled = PooledReader(conditions, self._source)

    # ------------------------------------------------------------------------------------------------------------------- running

    def read(
        self, events: pa.Table, times: Array, positions: Callable[[tuple[str, ...]], Array], *, first: int, now: int
    ) -> Iterator[tuple[FamilyMember | str, DecidedMatches]]:
        """What events decide, each to be made before the next; name or family of each.

        positions: those that the matches of queries with these keys show, of each row. first: place of the first event in the stream. now: the least
        time that a later one may have.
        """
        words = self._pooled.read(events)
        self._visited = list(self.alone.values())
        for member in self.families:
            pairs = member.family.touched(events, self._pooled, words)
            if len(pairs[0]):
                self._visited.append(member)
                for found in member.read_pairs(events, times, positions(member.compiled.written), pairs, now=now):
                    yield member, found
        for name, single in self.filtered.items():
            letters = self._pooled.letters(words, single.compiled.predicates, events.num_rows)
            own_found = single.read(events, times, positions(single.compiled.written), letters, now=now)
            if own_found is not None:
                self._visited.append(single)
                yield name, own_found
        for name, own in self.alone.items():
            place = first - self._begun[name]
            if isinstance(own, Layered):
                with named(name, self._public):
                    found = own.read(events, times, first=place, now=now)
                yield name, found
                continue
            pooled = () if own.compiled.lags else own.compiled.alphabets
            each = [self._pooled.letters(words, alphabet, events.num_rows) for alphabet in pooled]
            yield name, own.read(events, times, first=place, now=now, letters=each or None)

    def advance(self, now: int | None) -> Iterator[tuple[str, DecidedMatches]]:
        """What it decides that no event before `now` will come."""
        for name, member in self.alone.items():
            with named(name, self._public):
                found = member.advance(now)
            yield name, found

    @property
    def deadlines(self) -> list[int]:
        """When the first of what waits is decided, of each query that has some."""
        return [deadline for member in self.alone.values() for deadline in member.deadlines]

    @property
    def keys(self) -> int:
        """The keys with a state, of the query or family that has most of them."""
        return max((member.keys for member in self.every), default=0)

    def undecided(self) -> Iterator[tuple[str, DecidedMatches]]:
        """The matches that wait; nothing changes."""
        return ((name, member.undecided()) for name, member in self.alone.items())

    @property
    def every(self) -> list[Member | Layered]:
        """All of them."""
        return [*self.families, *self.filtered.values(), *self.alone.values()]

    def tidy(self, *, latest: int, events: int) -> None:
        """As `Member.tidy`, of what the last batch touched; now and then all are looked at, as by `Member.look`."""
        self._batches += 1
        for member in self.every if self._batches % IDLE_CHECK == 0 else ():
            member.look(latest=latest, events=events)
        for member in self._visited:
            member.tidy(latest=latest, events=events)

    def expire(self, *, latest: int, events: int) -> None:
        """As `Member.expire`, of all."""
        for member in self.every:
            member.expire(latest=latest, events=events)

    @property
    def nbytes(self) -> int:
        """Bytes of the run states."""
        return sum(member.family.nbytes for member in self.families) + sum(member.nbytes for member in self.every)

    # ---------------------------------------------------------------------------------------------------------------- snapshots

    def dump(self, *, latest: int) -> dict[str, Any]:
        """The live state as sections."""
        sections: dict[str, Any] = {}
        for number, member in enumerate(self.every):
            sections |= {f"{number}/{name}": content for name, content in member.dump(latest=latest).items()}
        return sections

    def load(self, sections: Mapping[str, Any], *, latest: int, events: int, null_keys: Callable[[str], int]) -> None:
        """Go on, fresh, from what `dump` gave after so many events; null_keys: of those alone. Raises whatever nonsense in it raises."""
        own: list[dict[str, Any]] = [{} for _ in self.every]
        for section, content in sections.items():
            number, slash, name = section.partition("/")
            if slash:
                own[int(number)][name] = content
        for member in (*self.families, *self.filtered.values()):
            member.load(own.pop(0), latest=latest)
        for name, single in self.alone.items():
            single.load_after(own.pop(0), latest=latest, events=events - self._begun[name], null_keys=null_keys(name))
