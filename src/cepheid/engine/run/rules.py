"""Rules that change while the stream runs: several queries, each of which begins and ends at its time.

Comes in: rows of rules (`engine.input.rule_versions`), and batches of events, in turn. Goes out: the matches of each version. The events are cut at
the times at which something begins or ends, so what is given depends on these times alone, and not on the batches. A version is a member of its own
(`Members`), or joins the family of its shape; the state of the others stays as it is.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from cepheid.engine.input.event_times import times_of
from cepheid.engine.input.order import NEVER
from cepheid.engine.input.rule_rows import name_shown, row_of, rows_in, stored_row
from cepheid.engine.input.rule_versions import ALWAYS_WAS, GREATEST, Row, Version, rule_of, versions_of
from cepheid.engine.memory import container
from cepheid.engine.memory.checks import demand
from cepheid.engine.memory.process import CHOOSE
from cepheid.engine.output.marks import Ragged
from cepheid.engine.output.matches import Matches, concatenate, python_value
from cepheid.engine.output.origins import ROW
from cepheid.engine.output.rule_table import check_fits, rows_of, table_of, table_schema
from cepheid.engine.plan.family import MOST_MEMBERS, Family, General, alone_for
from cepheid.engine.plan.numbered import NumberedQuery, shown
from cepheid.engine.run.allowance import CALL_HELP, Allowance
from cepheid.engine.run.intake import Intake
from cepheid.engine.run.members import Members, QueryMatches
from cepheid.engine.run.queries import FoundParts
from cepheid.errors import CepheidError, InputError, SnapshotError
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from cepheid.engine.memory.pools import Array
    from cepheid.engine.output.matches import Layout
    from cepheid.engine.plan.compiled import Compiled
    from cepheid.engine.run.layered import Layered
    from cepheid.engine.run.member import Member
    from cepheid.engine.run.members import FamilyMember
    from cepheid.engine.run.query_state import DecidedMatches
    from cepheid.schema import EventSchema

FORM = 1
"""How the state of rules is written."""

MORE = "allow more with max_bytes=.."

DAY = 86_400_000
"""Milliseconds, which date64 has."""


class RuleVersion(NamedTuple):
    """A version of a rule: its name, and the time from which on it acts, as the time column has it; None: on all events."""

    name: str
    since: Any = None


@record
class RefusedRule:
    """A row of a rule that does not act, and why; no other row is touched by that.

    name: of the rule, as text, as far as the row has one. since: from when on it should have acted, as it was given. error: what is wrong, with the
    way out. late: whether it came after its time.
    """

    name: str | None
    since: Any
    error: CepheidError
    late: bool = False

    def __str__(self) -> str:
        return f"the rule `{self.name}`: {self.error}"


@record(slots=False)
class Shape:
    """How the matches of a version are shown. own: their layout. numbered: of the matches of the numbered query; None: they are as they are shown."""

    own: Layout
    numbered: Layout | None = None

    def together(self, parts: Sequence[QueryMatches], nulls: int) -> Matches:
        """The matches, whose positions are the numbers of their events. O(marks)."""
        if len(parts) == 1:
            matches = dataclasses.replace(parts[0].made(), null_keys=nulls)
        else:
            matches = concatenate(self.numbered or self.own, [part.made() for part in parts], null_keys=nulls)
        if self.numbered is None:
            return matches
        matches = shown(matches, layout=self.own, streams=None)
        return placed(matches, matches.rows)


def placed(matches: Matches, numbers: Array) -> Matches:
    """The matches with these positions (int64), one for each mark."""
    return dataclasses.replace(matches, marks=Ragged(matches.offsets, numbers, matches.labels, matches.marks.rows))


def begun_before(matches: Matches, until: int | None) -> Matches:
    """Those of the matches that begin before a time, in steps of the time column; None: all. O(matches)."""
    return matches if until is None else _chosen(matches, _begun(matches, until))


def _begun(matches: Matches, until: int | Array) -> Array:
    """The numbers of the matches that begin before a time, or each before its own; counts have no beginning: all of them."""
    time = matches.layout.time
    if time is None or matches.layout.count:
        return np.arange(len(matches))
    begins = times_of(matches.events.select([time]).take(pa.array(matches.start_rows)), time)
    return np.flatnonzero(begins < until)


def _chosen(matches: Matches, rows: Array) -> Matches:
    return matches.take(rows) if len(rows) < len(matches) else matches


class RuleMatches(Mapping[RuleVersion, Matches]):
    """The matches of rules: an immutable mapping from `RuleVersion` to `Matches`; a plain tuple (name, since) is a key, too.

    It has the versions that have begun and may still have matches. `found` has those alone that have some. Each version's matches are in the order of
    the events that end them, and are put together when they are looked at. The positions of matches are the numbers of events, from 0: in the input
    of `Rules.run`, or in the order in which a recognizer has read them; -1 where an EVENT definition has made the event.

    refused: the rows that do not act, of `Rules.run`. source: the schema of the events, and its time column. shapes: of the versions. parts: the
    matches of those with some. nulls: of each version the events left out for a NULL in their key. waiting: what `undecided` gives.
    """

    def __init__(
        self,
        source: tuple[pa.Schema, str],
        shapes: Mapping[RuleVersion, Shape],
        parts: Mapping[RuleVersion, Sequence[QueryMatches]],
        refused: tuple[RefusedRule, ...] = (),
        nulls: Mapping[RuleVersion, int] | None = None,
        waiting: RuleMatches | None = None,
    ) -> None:
        self._source, self._shapes, self._parts, self._nulls, self._waiting = source, shapes, parts, nulls or {}, waiting
        self._made: dict[RuleVersion, Matches] = {}
        self.refused = refused

    @classmethod
    def joined(
        cls,
        source: tuple[pa.Schema, str],
        found: Iterable[RuleMatches],
        *,
        refused: tuple[RefusedRule, ...] = (),
        nulls: Mapping[RuleVersion, int] | None = None,
        waiting: RuleMatches | None = None,
    ) -> RuleMatches:
        """What several calls gave, one after the other."""
        shapes: dict[RuleVersion, Shape] = {}
        parts: dict[RuleVersion, list[QueryMatches]] = {}
        for each in found:
            shapes |= each._shapes  # noqa: SLF001 - its own
            for version, own in each._parts.items():  # noqa: SLF001
                parts.setdefault(version, []).extend(own)
        return cls(source, shapes, parts, refused, nulls, waiting)

    def __getitem__(self, version: RuleVersion) -> Matches:
        made = self._made.get(version)
        if made is None:
            made = self._shapes[version].together(self._parts.get(version, ()), self._nulls.get(version, 0))
            self._made[version] = made
        return made

    def __iter__(self) -> Iterator[RuleVersion]:
        return iter(self._shapes)

    def __len__(self) -> int:
        return len(self._shapes)

    def __reduce__(self) -> tuple[object, ...]:
        # As made: what a part is taken from belongs to the recognizer.
        shapes = {version: Shape(shape.own) for version, shape in self._shapes.items()}
        parts = {version: [QueryMatches(matches)] for version, matches in self.found.items()}
        return RuleMatches, (self._source, shapes, parts, self.refused, self._nulls, self._waiting)

    @property
    def found(self) -> dict[RuleVersion, Matches]:
        """The matches of those versions that have some: a dict. O(versions with matches)."""
        return {version: self[version] for version in self._shapes if version in self._parts}

    @property
    def undecided(self) -> RuleMatches:
        """The matches that are not decided: what NOT FOLLOWED BY forbids may still follow them. Of `Rules.run`; a recognizer has a method for it."""
        return RuleMatches(self._source, self._shapes, {}) if self._waiting is None else self._waiting

    def to_arrow(self, *, keys: Sequence[str] = ()) -> pa.Table:
        """All matches as one pyarrow.Table with one row per match, version by version; this is also what `cepheid.spark.on_rules` gives.

        Its columns are `rule` (text), `since`, the attributes in `keys`, `start_time`, `end_time` (types of the events' columns), `events`
        (map<string, list<struct>>: the events of each variable of SELECT), and `measures` (map<string, string>: each measure as text, lists as JSON;
        COUNT(*) as `count` and `count_overflow`). One of the two maps is empty. keys: attributes that all versions have in PARTITION BY.

        Raises SchemaError for unknown keys, and NotSupportedError, which names the rule, for one that lacks a key or shows events that its EVENT
        definitions have made. Linear in the events that are shown.
        """
        schema = table_schema(*self._source, keys)
        for version, matches in self.found.items():
            try:
                check_fits(matches.layout, schema, keys)
            except CepheidError as error:
                raise error.of_query(version.name) from None
        return table_of(((*version, matches) for version, matches in self.found.items()), schema, keys)

    def __repr__(self) -> str:
        counts = ", ".join(f"{version.name}: {len(self[version])}" for version in self._shapes if version in self._parts)
        refused = f"; {len(self.refused)} refused" if self.refused else ""
        return f"<matches of {len(self)} {'version' if len(self) == 1 else 'versions'} of rules: {counts or 'none'}{refused}>"


@record(slots=False)
class RuleQuery:
    """The query of a row, and what follows from it, which all recognizers have in common that know it. name: among the members."""

    name: str
    own: Compiled

    @cached_property
    def numbered(self) -> NumberedQuery:
        """The query over events with their numbers."""
        return NumberedQuery.of(self.own)

    @cached_property
    def general(self) -> General | None:
        """As a query of a family; None: it stays alone, for every event matters to it, or it compares places, which it has to count itself."""
        alone = alone_for(self.numbered) is not None or self.numbered.positional
        return None if alone else General.of(self.name, self.numbered)

    @cached_property
    def shape(self) -> Shape:
        """How its matches are shown."""
        return Shape(self.own.layout, self.numbered.layout)

    @cached_property
    def horizon(self) -> int | None:
        """As of the query."""
        return self.own.horizon


class Acting:
    """A version that has begun. public: what users know it by. nulls: how many events it left out for a NULL in their key."""

    def __init__(self, version: Version, public: RuleVersion, query: RuleQuery) -> None:
        self.version, self.public, self.query = version, public, query
        self.nulls = 0

    @property
    def over(self) -> int | None:
        """From when on no event matters to it; None: not known, or never."""
        until, horizon = self.version.until, self.query.horizon
        ended = None if until is None or horizon is None or until + horizon >= GREATEST else until + horizon + 1
        cut = self.version.reads_before(counts=self.query.own.plan.count)
        return min((time for time in (cut, ended) if time is not None), default=None)


class Survey:
    """What is asked of all versions that act. ending: those whose end is known. keyed: those of each PARTITION BY. shapes: of all."""

    def __init__(self, acting: Mapping[str, Acting]) -> None:
        self.ending = {name: each for name, each in acting.items() if each.version.until is not None}
        self.shapes = {each.public: each.query.shape for each in acting.values()}
        self.keyed: dict[tuple[str, ...], list[Acting]] = {}
        for each in acting.values():
            if each.query.own.written:
                self.keyed.setdefault(each.query.own.written, []).append(each)


class RulesRecognizer(Intake[RuleMatches]):
    """The run state of rules over one stream. Make one with `Rules.recognizer`.

    It has the methods of `Recognizer`; they return `RuleMatches`. `change` takes further rows. source: the schema of the events. compiled: the query
    of a row, raises CepheidError for a wrong one. numbered: whether events come with their numbers (`ROW`).
    """

    def __init__(
        self,
        source: EventSchema,
        compiled: Callable[[Row], RuleQuery],
        *,
        lateness: object = None,
        order: Sequence[str] = (),
        null_keys: str = "drop",
        variant: str | None = None,
        max_bytes: int | None = None,
        ahead: bool = False,
        numbered: bool = False,
    ) -> None:
        if source.time_column is None:
            raise InputError("rules act from a time on, and the events have no time column", help="name it with time=")
        options: dict[str, Any] = {"variant": variant}
        super().__init__(source, lateness=lateness, order=order, null_keys=null_keys, max_bytes=max_bytes, ahead=ahead, options=options)
        self._compiled, self._numbered = compiled, numbered
        self._time = source.time_column
        own = pa.schema([field for field in self.schema if field.name != ROW]).append(pa.field(ROW, pa.int64()))
        everything = dataclasses.replace(source, attributes={field.name: field.type for field in own})
        self._members = Members(
            everything, own, max_bytes=max_bytes, numbered=True, public=rule_of, group_nulls=self._group_nulls, **options
        )
        self._rows: dict[str, dict[tuple[int, bool], Row | None]] = {}  # None: rows there contradict each other
        self._queries: dict[tuple[str, int], RuleQuery] = {}  # of the versions that have not begun
        self._waiting: dict[str, list[Version]] = {}  # of each rule, by their time
        self._acting: dict[str, Acting] = {}  # by the name that the version has among the members
        self._survey: Survey | None = None  # of these, until they change
        self._over_nulls: dict[tuple[str, int], int] = {}  # of versions that are over
        self._told: dict[RuleVersion, Shape] = {}  # the versions that the call of now speaks of
        self.refused: tuple[RefusedRule, ...] = ()
        self._passed = NEVER  # everything before is decided

    # ------------------------------------------------------------------------------------------------------------------- rules

    def change(self, rows: object) -> tuple[RefusedRule, ...]:
        """Further rows of rules, from whose times on they act.

        rows: as `cepheid.rules` takes them. Their times have to be to come: not before `known`. Rows that are known already change nothing, so all
        rows of a table that grows can be given again and again.

        Returns the rows that do not act, and why; so does `refused` until the next call. Raises InputError for what are no rows, and then nothing
        changes. Costs the compilation of each, and O(queries of the families that grow) when they begin.
        """
        refused: list[RefusedRule] = []
        changed: dict[str, None] = {}
        with self._use.alone():
            self._check_intact()
            try:
                for given in rows_in(rows):
                    self._take(given, refused, changed)
            finally:  # also after Ctrl-C: what has been taken is known from then on
                self._arrange(changed)
            self.refused = tuple(refused)
        return self.refused

    def _take(self, given: Mapping[str, Any], refused: list[RefusedRule], changed: dict[str, None]) -> None:
        """One row; adds to `refused` and to `changed`, the names of rules."""

        def refuse(error: CepheidError, *, late: bool = False) -> None:
            refused.append(RefusedRule(name_shown(given.get("name")), given.get("from"), error, late))

        try:
            row = row_of(given, self._source)
        except CepheidError as error:
            refuse(error)
            return
        known = self._rows.get(row.name, {})
        if known.get(row.place) == row:
            return
        try:
            compiled = None if row.text is None else self._compiled(row)
        except CepheidError as error:
            refuse(error)
            return
        if row.place in known and known[row.place] is None:
            refuse(self._contradiction(row))
            return
        if self._passed > row.since:
            refuse(self._late(row.since), late=True)
            return
        changed[row.name] = None
        known = self._rows.setdefault(row.name, {})
        if row.place in known:
            refuse(self._contradiction(row))
            refuse(self._contradiction(row))
            known[row.place] = None
            self._queries.pop((row.name, row.since), None)
            return
        if compiled is not None:
            self._queries[row.name, row.since] = compiled
        known[row.place] = row

    def _contradiction(self, row: Row) -> CepheidError:
        since = "the beginning" if row.since == ALWAYS_WAS else self.said(row.since)
        return InputError(
            f"two rows say different things of it from {since} on, so none of them acts",
            help="give the one that is right again, with a later time",
        )

    def _late(self, time: int) -> CepheidError:
        should = "it should act on all events" if time == ALWAYS_WAS else f"it came after its time {self.said(time)}"
        return InputError(
            f"{should}: the events before {self.said(self._passed)} have been read",
            help=f"give it again with a time from {self.said(self._passed)} on",
        )

    def _arrange(self, names: Iterable[str]) -> None:
        """The versions of some rules, after their rows have changed."""
        acting = {each.version.key: each for each in self._acting.values()}
        for name in names:
            self._waiting.pop(name, None)
            for version in versions_of(self._rows.get(name, {})):
                if version.key in acting:
                    acting[version.key].version = version
                elif version.key in self._queries:
                    self._waiting.setdefault(name, []).append(version)
        self._survey = None

    @property
    def _surveyed(self) -> Survey:
        """What is asked of all that act, batch after batch."""
        if self._survey is None:
            self._survey = Survey(self._acting)
        return self._survey

    def said(self, time: int) -> Any:
        """A time as the column has it: the next one that it has, or its greatest."""
        if time == ALWAYS_WAS:
            return None
        kind = self.schema.field(self._time).type
        if pa.types.is_date64(kind):
            time = -(-time // DAY) * DAY
        steps = pa.int32() if kind.bit_width == 32 else pa.int64()
        return python_value(pa.array([min(time, (1 << kind.bit_width - 1) - 1)], steps).cast(kind)[0])

    def public(self, version: Version) -> RuleVersion:
        """What users know a version by."""
        return RuleVersion(version.row.name, self.said(version.row.since))

    @property
    def versions(self) -> dict[RuleVersion, Any]:
        """The versions that have not ended, and the time at which each will, None: not known."""
        every = [*(each.version for each in self._acting.values()), *(each for waiting in self._waiting.values() for each in waiting)]
        return {self.public(each): None if each.until is None else self.said(each.until) for each in every}

    @property
    def source(self) -> tuple[pa.Schema, str]:
        """The schema of the events, and its time column."""
        return self.schema, self._time

    @property
    def to_come(self) -> list[tuple[Version, Compiled]]:
        """The versions that have not begun, with their queries."""
        return [(version, self._queries[version.key].own) for waiting in self._waiting.values() for version in waiting]

    @property
    def known(self) -> Any:
        """The least time from which on a further row may act, as the time column has it; None: any."""
        return None if self._passed == NEVER else self.said(self._passed)

    @property
    def null_keys(self) -> dict[RuleVersion, int]:
        """For each version that has begun how many events it did not read, before its end, because of a NULL in its PARTITION BY key.

        Those that are over are in it only where there were any.
        """
        over = {RuleVersion(name, self.said(since)): nulls for (name, since), nulls in self._over_nulls.items()}
        return over | {each.public: each.nulls for each in self._acting.values()}

    # ------------------------------------------------------------------------------------------------------------------- of an intake

    def _found(self, events: pa.Table, times: Array) -> FoundRules:
        first = self._events
        self._told = dict(self._surveyed.shapes)
        if events.num_rows:
            self._latest = max(self._latest, int(times[-1]))
            self._events += events.num_rows
        if not self._numbered:
            events = events.append_column(ROW, pa.array(np.arange(first, self._events)))
        return FoundRules(self, self._steps(events, times, first)).then(self._tidy)

    def _steps(self, events: pa.Table, times: Array, first: int) -> Iterator[tuple[FamilyMember | str, DecidedMatches]]:
        """What events decide, from one time at which a version begins or ends to the next."""
        start, count, now, known = 0, len(times), self._now, NEVER
        while True:
            at = self._next()
            stop = count if at is None else int(np.searchsorted(times, at))
            if stop > start:
                own = events.slice(start, stop - start)
                self._count_nulls(own, times[start:stop])
                numbers = own[ROW].to_numpy()
                known = now if at is None else min(now, at)
                yield from self._members.read(own, times[start:stop], lambda _: numbers, first=first + start, now=known)  # noqa: B023 - read at once
                self._passed = int(times[stop - 1]) + 1
                start = stop
            if at is None or (start == count and now <= at):
                break
            yield from self._turn(at, first + start)
        if known < now or not count:
            yield from self._members.advance(now)
        self._passed = max(self._passed, now)

    def _next(self) -> int | None:
        """The time at which a version begins, or at which one is over."""
        begin = [waiting[0].row.since for waiting in self._waiting.values()]
        over = [each.over for each in self._surveyed.ending.values()]
        return min([*begin, *(time for time in over if time is not None)], default=None)

    def _turn(self, at: int, first: int) -> Iterator[tuple[FamilyMember | str, DecidedMatches]]:
        """What ends at a time, and what begins; first: how many events came before."""
        over = [name for name, each in self._surveyed.ending.items() if each.over == at]
        for name in over:
            member = self._members.alone.get(name)
            if member is not None:
                yield name, member.advance(at)
        if over:
            self._members.leave(over)
        for name in over:
            gone = self._acting.pop(name)
            if gone.nulls:
                self._over_nulls[gone.version.key] = gone.nulls
        begun = []
        for rule in [rule for rule, waiting in self._waiting.items() if waiting[0].row.since == at]:
            version = self._waiting[rule].pop(0)
            if not self._waiting[rule]:
                del self._waiting[rule]
            acting = Acting(version, self.public(version), self._queries.pop(version.key))
            self._acting[acting.query.name] = acting
            self._told[acting.public] = acting.query.shape
            begun.append(acting.query)
        if begun:
            families = [query.general for query in begun if query.general is not None]
            alone = {query.name: query.numbered for query in begun if query.general is None}
            self._members.join(families, alone, first=first)
        self._survey = None

    def _count_nulls(self, events: pa.Table, times: Array) -> None:
        if self._group_nulls:
            return
        for keys, several in self._surveyed.keyed.items():
            missing = np.zeros(len(times), np.bool_)
            for key in keys:
                if events[key].null_count:
                    missing |= events[key].is_null().to_numpy()
            dropped = times[missing]
            for each in several if len(dropped) else ():
                until = each.version.until
                each.nulls += len(dropped) if until is None else int(np.searchsorted(dropped, until))

    @property
    def members(self) -> list[Member | Layered]:
        """The run states, in the order in which `dump` numbers them."""
        return self._members.every

    @property
    def deadlines(self) -> list[int]:
        """When the first of what waits is decided, and where there is a state, when a version is over, or no event matters any more."""
        if not self.keys:
            return self._members.deadlines
        over, horizon = [each.over for each in self._surveyed.ending.values()], self.horizon
        idle = None if horizon is None else self._latest + horizon + 1
        return [*self._members.deadlines, *(time for time in (*over, idle) if time is not None)]

    @property
    def keys(self) -> int:
        """The keys with a state, of the query or family that has most of them."""
        return self._members.keys

    @property
    def horizon(self) -> int | None:
        """How long after its time an event can matter to a version that acts; None: for ever."""
        horizons = [each.query.horizon for each in self._acting.values()]
        return None if None in horizons else max((horizon or 0 for horizon in horizons), default=0)

    def _allowance(self) -> Allowance:
        """What the matches of one call may take."""
        return Allowance(self._max_bytes, help=(CHOOSE, MORE, CALL_HELP[-1]))

    def _undecided(self) -> FoundRules:
        return FoundRules(self, self._members.undecided())

    def _tidy(self) -> None:
        self._members.tidy(latest=self._latest, events=self._events)

    def _expire(self) -> None:
        self._members.expire(latest=self._latest, events=self._events)

    @property
    def _nbytes(self) -> int:
        return self._members.nbytes

    def together(self, parts: Iterable[tuple[str, QueryMatches]]) -> RuleMatches:
        """Parts as they are shown: the matches that begin before the end of their version."""
        found: dict[RuleVersion, list[QueryMatches]] = {}
        for name, part in parts:
            acting = self._acting[name]
            until = acting.version.until
            kept = part if until is None else QueryMatches(begun_before(part.made(), until))
            if until is None or len(kept.matches):
                found.setdefault(acting.public, []).append(kept)
        return RuleMatches(self.source, dict(self._told), found)

    def rows(self, owner: FamilyMember | str, matches: Matches, schema: pa.Schema, keys: Sequence[str]) -> tuple[pa.Table, Compiled]:
        """The same as rows of `RuleMatches.to_arrow`, all queries of a family at once; and a query that says when they are decided."""
        if isinstance(owner, str):
            acting, owners = [self._acting[owner]], np.zeros(len(matches), np.int64)
            matches = shown(matches, layout=acting[0].query.own.layout, streams=None)
        else:
            numbers, matches = owner.owned(matches)
            present, owners = np.unique(numbers, return_inverse=True)
            acting = [self._acting[owner.family.members[number].name] for number in present.tolist()]
        untils = [each.version.until for each in acting]
        if any(until is not None for until in untils):
            rows = _begun(matches, np.array([GREATEST if until is None else until for until in untils])[owners])
            owners, matches = owners[rows], _chosen(matches, rows)
        return rows_of([each.public for each in acting], owners, matches, schema, keys), acting[0].query.own

    # ---------------------------------------------------------------------------------------------------------------- snapshots

    def _fresh(self) -> RulesRecognizer:
        nulls = "group" if self._group_nulls else "drop"
        options: dict[str, Any] = {**self._options, "max_bytes": self._max_bytes, "ahead": self._ahead}
        return RulesRecognizer(self._source, self._compiled, lateness=self._lateness, order=self._ties, null_keys=nulls, **options)

    def _dump(self) -> tuple[dict[str, int], dict[str, Any]]:
        rows = [
            [row.name, row.text, row.arguments, row.since, row.until, row.ends]
            for known in self._rows.values()
            for row in known.values()
            if row is not None
        ]
        acting = {name: [*each.version.key, each.nulls, each.query.own.fingerprint.hex()] for name, each in self._acting.items()}
        families = [[None if each is None else each.name for each in member.family.queries] for member in self._members.families]
        alone = {name: self._members.begun(name) for name in self._members.alone}
        over = [[*key, nulls] for key, nulls in self._over_nulls.items()]
        contradicting = [[name, *place] for name, known in self._rows.items() for place, row in known.items() if row is None]
        said = {"rows": rows, "contradicting": contradicting, "acting": acting, "families": families, "alone": alone, "nulls": over}
        sections = self._members.dump(latest=self._latest) | {"rules": json.dumps(said).encode()}
        nulls = {f"null_keys {place}": member.null_keys for place, member in enumerate(self._members.alone.values())}
        return {**nulls, "passed": self._passed}, sections

    def _load(self, numbers: dict[str, Any], sections: dict[str, Any]) -> None:
        said = json.loads(bytes(sections["rules"]))
        self._passed = container.time_in(numbers, "passed")
        for row in map(stored_row, said["rows"]):
            self._rows.setdefault(row.name, {})[row.place] = row
        self._over_nulls = {(name, _time_of(since)): container.integer(nulls, "nulls") for name, since, nulls in said["nulls"]}
        for name, since, acts in said["contradicting"]:
            demand(isinstance(name, str), isinstance(acts, bool))
            self._rows.setdefault(name, {})[_time_of(since), acts] = None
        versions = {version.key: version for rows in self._rows.values() for version in versions_of(rows)}
        for name, (rule, since, nulls, fingerprint) in said["acting"].items():
            version = versions[rule, since]
            demand(name == version.row.member)
            acting = self._acting[name] = Acting(version, self.public(version), self._restored(version.row))
            acting.nulls = container.integer(nulls, "nulls")
            if acting.query.own.fingerprint.hex() != fingerprint:
                raise SnapshotError(
                    f"the rule `{rule}` was compiled otherwise: over events of another schema, or by another version of Cepheid",
                    help=("give the schema that the snapshot was made with", "or start again, from the events of the longest window"),
                )
        for key, version in versions.items():
            if version.row.since >= self._passed:
                self._queries[key] = self._restored(version.row)
        self._arrange(self._rows)
        members = [name for names in (*said["families"], said["alone"]) for name in names if name is not None]
        demand(sorted(members) == sorted(self._acting))
        demand(*((own.query.general is None) == (name in said["alone"]) for name, own in self._acting.items()))
        families = [
            Family(tuple(None if name is None else self._acting[name].query.general for name in names)) for names in said["families"]
        ]
        for family in families:
            demand(len(family.queries) <= MOST_MEMBERS, len({each.shape for each in family.members.values()}) == 1)
        self._members.add(families, {})
        for name, first in said["alone"].items():
            self._members.add((), {name: self._acting[name].query.numbered}, first=container.integer(first, "first", most=self._events))
        places = {name: place for place, name in enumerate(said["alone"])}
        self._members.load(
            sections,
            latest=self._latest,
            events=self._events,
            null_keys=lambda name: container.number_in(numbers, f"null_keys {places[name]}"),
        )

    def _restored(self, row: Row) -> RuleQuery:
        """The query of a row in a snapshot."""
        try:
            return self._compiled(row)
        except CepheidError as error:
            raise SnapshotError(
                f"the rule `{row.name}` does not go with these events: {error.fact}", help="give the schema that the snapshot was made with"
            ) from None

    @property
    def _meaning(self) -> bytes:
        said = (FORM, self._source.type_column, self._source.stream, self._source.time_column)
        return hashlib.sha256(repr(said).encode()).digest()


def _time_of(value: object) -> int:
    """A time of a snapshot; raises ValueError for what is none."""
    return container.integer(value, "time", least=ALWAYS_WAS, most=GREATEST)


class FoundRules(FoundParts):
    """What a call decides, of all rules."""

    def __init__(self, rules: RulesRecognizer, found: Iterator[tuple[FamilyMember | str, DecidedMatches]]) -> None:
        super().__init__(found, rule_of)
        self._rules = rules

    def all(self, allowance: Allowance) -> RuleMatches:
        """All of it, within one allowance."""
        return self._rules.together(self.parts(allowance))

    def pieces(self, allowance: Allowance | None = None) -> Iterator[RuleMatches]:
        """The same in pieces of bounded size."""
        return map(self._rules.together, self._pieces(allowance))

    def tables(self, schema: pa.Schema, keys: Sequence[str], allowance: Allowance | None = None) -> Iterator[tuple[pa.Table, Compiled]]:
        """The same as tables, in no order, each with a query that says when its matches are decided; schema: `table_schema` over these keys."""
        for owner, matches in self.whole(allowance):
            if len(matches):
                yield self._rules.rows(owner, matches, schema, keys)
