"""`why_not`: the arguments, the search, and the answer."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.arguments import asked_of
from cepheid.engine.run.batch import ordered
from cepheid.errors import BindError, InputError, LimitError, NotSupportedError, did_you_mean, quoted
from cepheid.language import syntax, to_text
from cepheid.language.syntax import Consumption, Strategy
from cepheid.query import Query
from cepheid.query import query as query_of
from cepheid.reasons.answer import EventsFound, Reason, Way, WhyNot
from cepheid.reasons.minimal_sets import Known, minimal_sets
from cepheid.reasons.part import Needs, Part, Stream, part_of
from cepheid.reasons.relaxations import CHOICES, KINDS, STRUCTURE, Relaxation, names_in, operands, relaxations, relaxed
from cepheid.reasons.relaxed_run import MAX_BYTES, MAX_RUNS, Goal, OutOfRunsError, Runs, Seen, TooManyError
from cepheid.reasons.wording import Words

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from cepheid.engine.memory.pools import Array

MAX_ROWS = 100_000
"""Most events that a question is about: of a longer table those that can matter, and the ones nearest to them."""

OTHERS = (64, 16, 4, 0)
"""How many of the nearest rows a match may have beside those asked for, where all rows give too many matches."""

MAX_WAYS = 8
"""Most sets of reasons that an answer has."""

MAX_STRUCTURE = 2
"""Most missing events, keys, counts and orders that a set of reasons has."""


def why_not(
    query: Query | str | Path | syntax.Query,
    events: object,
    positions: int | Iterable[int] | Mapping[str, int | Iterable[int]] | Mapping[str | None, int | Iterable[int]],
    *,
    span: tuple[int, int] | None = None,
    only: bool = False,
    args: Mapping[str, object] | None = None,
    type: str | None = None,  # noqa: A002 - public word
    time: str | None = None,
    until: object = None,
    engine: str | None = None,
    sort: bool = False,
    null_keys: str = "drop",
    order: Sequence[str] = (),
) -> WhyNot:
    """Which constructs of a query exclude a match with some events; or the match that has them.

    query: a `Query`, or what `cepheid.query` takes. args: values of its parameters. events: as for `Query.run`, at most `MAX_ROWS`.
    positions: the rows of events in the input, from 0: those of a match, or some of them; `{"x": 3, "y": [5, 6]}` says which variables they should be
    in, None for any. With several streams, rows of the merged stream; with sort=True, of the input as it is. span: the first and the last row that
    the match may have; positions may be empty then. only: the match shows no events but those at `positions`; PROJECT may hide others.
    type, time, until, engine, sort, null_keys, order: as for `Query.run`.

    Returns a `WhyNot`; print it. Each of its sets of reasons is minimal: the query without all of them has such a match, and with any of them it has
    none. Raises InputError for positions that there are not, and for names that the pattern has not, NotSupportedError for a query with EVENT
    definitions, LimitError for too many events or matches to compare, and as `Query.run`. Time: at most `MAX_RUNS` runs over the events.
    """
    asked = query.with_args(**(args or {})) if isinstance(query, Query) else query_of(query, args=args)
    if asked.tree.definitions:
        raise NotSupportedError(
            "why_not does not see through EVENT definitions yet",
            help="ask about the query of the definition, or run the definitions first and ask with their matches as events",
        )
    given = asked_of(asked.tree, events, type=type, time=time, until=until, engine=engine, sort=sort, null_keys=null_keys, order=order)
    table = given.source.events
    if isinstance(table, pa.RecordBatchReader):
        table = table.read_all()
    if isinstance(given.until, int) and (given.sort or given.order):
        raise NotSupportedError("until= needs events in order", help="sort the events first, or leave sort= and order= out")
    goal = _goal(asked.tree, positions, span, rows=table.num_rows, only=only)
    schema = given.source.schema
    plan = asked.bound(schema)  # mistakes are told with their place
    times, order_ = ordered(schema, table, sort=given.sort, order=given.order)
    sought, part, complete = _in_stream(goal, order_), None, given.until
    if table.num_rows > MAX_ROWS:
        if order_ is not None:
            times = times[order_]
        stream = Stream(table, order_, times if schema.time_column is not None else None, given.null_keys)
        part = part_of(plan, Needs(stream, sought), MAX_ROWS)
        if complete is None and schema.time_column is not None:
            complete = int(times[-1])  # the table is complete up to there, wherever the part ends
        order_ = part.places if order_ is None else order_[part.places]
        named = {name: part.inside(rows) for name, rows in sought.named.items()}
        sought = Goal(part.inside(sought.rows), named, sought.only, None if sought.span is None else part.inside_span(sought.span))
    runs = Runs(
        table if order_ is None else table.take(pa.array(order_)),
        schema,
        asked.args,
        complete,
        given.null_keys,
        given.engine,
        holds=None if part is None else part.holds,
    )
    return _Question(asked, goal, sought, runs, order_, part).answer()


# -------------------------------------------------------------------------------------------------------------------------- arguments


def _goal(tree: syntax.Query, positions: object, span: object, *, rows: int, only: bool) -> Goal:
    named: dict[str, frozenset[int]] = {}
    if isinstance(positions, Mapping):
        known = names_in(tree.pattern)
        for name, own in positions.items():
            if name is None:
                continue
            if name not in known:
                raise InputError(
                    f"the pattern has no variable {name!r}",
                    help=[*did_you_mean(str(name), known), f"the pattern has {quoted(sorted(known))}"],
                )
            named[name] = _rows_in(own, rows)
        chosen = frozenset[int]().union(*named.values(), _rows_in(positions.get(None, ()), rows))
    else:
        chosen = _rows_in(positions, rows)
    if not chosen and span is None:
        raise InputError(
            "positions has no position", help="give the rows of the events that should match, as in [3, 5], or span=(first, last)"
        )
    if span is None:
        return Goal(chosen, named, only)
    if not isinstance(span, tuple | list) or len(span) != 2:
        raise InputError(f"span={span!r} is not a first and a last row", help="write span=(3, 9)")
    first, last = (min(_rows_in(row, rows)) for row in span)
    if first > last:
        raise InputError(f"span={span!r} ends before it begins", help=f"write span=({last}, {first})")
    outside = sorted(row for row in chosen if not first <= row <= last)
    if outside:
        raise InputError(f"row {outside[0]} is outside the span from {first} to {last}", help="make the span longer, or leave the row out")
    if only and not chosen:
        raise InputError(
            "only=True asks for a match of the events at positions, and there are none", help="leave only= out, or give positions"
        )
    return Goal(chosen, named, only, (first, last))


def _in_stream(goal: Goal, order: Array | None) -> Goal:
    """A goal with rows in the order of the stream; order: the row of the input at each place of it."""
    if order is None:
        return goal
    if goal.span is not None:
        raise NotSupportedError("span= needs events in order", help="sort the events first, or leave sort= and order= out")
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))

    def found(rows: frozenset[int]) -> frozenset[int]:
        return frozenset(int(places[row]) for row in rows)

    return Goal(found(goal.rows), {name: found(rows) for name, rows in goal.named.items()}, goal.only)


def _rows_in(given: object, rows: int) -> frozenset[int]:
    """Rows of the input; raises InputError for anything else."""
    many = list(given) if isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping) else [given]
    found = set()
    for each in many:
        try:
            row = operator.index(each)  # type: ignore[arg-type]  # what has none raises
        except TypeError:
            row = -1
            wrong = True
        else:
            wrong = isinstance(each, bool | np.bool_)
        if wrong:
            raise InputError(f"{each!r} is not the position of an event", help="give rows of the input, from 0, as in [3, 5]")
        if not 0 <= row < rows:
            there = f"the input has the rows 0 to {rows - 1}" if rows else "the input has no events"
            raise InputError(f"there is no row {row}", help=there)
        found.add(row)
    return frozenset(found)


# ----------------------------------------------------------------------------------------------------------------------------- search


@dataclass
class _Question:
    """One question.

    Rows of `asked` and of the answer are those of the input, all others, as those of `goal`, are those of `runs`. order: the row of the input of each
    of these, None: they are the same. part: the part of the table that these are, None: it is the whole one.
    """

    query: Query
    asked: Goal
    goal: Goal
    runs: Runs
    order: Array | None
    part: Part | None

    def answer(self) -> WhyNot:
        self.tree = self.query.tree
        self.words = Words(self.query, self.runs, self.order)
        # What PROJECT hides is no other event, so that it excludes nothing where there may be none.
        all_ = [each for each in relaxations(self.tree) if not (self.goal.only and each.kind == "projection")]
        self.choices = [each for each in all_ if each.kind in CHOICES]
        keyed = self.part is not None and self.part.keyed
        self.structure = [each for each in all_ if each.kind in STRUCTURE and not (keyed and each.kind == "partition")]
        self.body = [each for each in all_ if each.kind not in CHOICES | STRUCTURE]
        misfits = self._no_type()
        if misfits:
            return self._answer(misfits=misfits)
        for taken, note in self._levels():
            self.taken = taken
            try:
                return self._at_level((note,) if note else ())
            except TooManyError:
                continue
        raise LimitError(
            f"the query without some of its constructs has too many matches with these events ({MAX_BYTES:,} bytes of them, MAX_BYTES)",
            help="ask with more of the events of the match you mean, with only=True, or with a shorter span",
        )

    def _answer(self, **parts: Any) -> WhyNot:
        return WhyNot(self._said(), self.query.text, **parts)

    def _at_level(self, notes: tuple[str, ...]) -> WhyNot:
        match = self._whole(frozenset())
        if match is not None:
            return self._answer(match=self._found(match))
        ways: list[tuple[frozenset[Relaxation], Seen]] = []
        try:
            for found in self._sets():
                if len(ways) == MAX_WAYS:
                    notes = (*notes, f"there are more than {MAX_WAYS} sets of reasons (MAX_WAYS)")
                    break
                ways.append(found)
        except OutOfRunsError:
            notes = (*notes, f"the search ended after {MAX_RUNS} queries (MAX_RUNS): there may be more sets of reasons")
        ways.sort(key=lambda way: (len(way[0]), sorted(each.span.start for each in way[0])))
        self.runs.count = 0  # what is left to say needs a few runs more
        misfits = self._no_way() if not ways and len(notes) < 2 else ()
        notes = (*notes, *self._of_part([chosen for chosen, _ in ways]))
        return self._answer(ways=tuple(self._way(chosen, match) for chosen, match in ways), misfits=misfits, notes=notes)

    def _of_part(self, found: Sequence[frozenset[Relaxation]]) -> Iterator[str]:
        """What is to be said of the events that were left out; found: the sets of reasons."""
        if self.part is None:
            return
        number = self.runs.table.num_rows
        if self.runs.beyond:
            yield (
                f"only the {number:,} nearest of {len(self.part.needs.stream):,} events were looked at (the limit MAX_ROWS): without what bounds a"
                " match, as a window or a gap, one farther away may matter, and fewer or other reasons be enough"
            )
        if self.part.keyed and all(any(each.kind in STRUCTURE for each in chosen) for chosen in found):
            yield "PARTITION BY was not taken out: there are too many events with other keys (the limit MAX_ROWS)"

    def _sets(self) -> Iterator[tuple[frozenset[Relaxation], Seen]]:
        """The minimal sets, each with a match of the query without it."""
        for size in range(MAX_STRUCTURE + 1):
            some = False
            for base in itertools.combinations(self.structure, size):
                known = Known(lambda chosen, base=frozenset(base): self._has_body(base | chosen))  # type: ignore[misc]
                if not known(frozenset(self.body)):
                    continue
                some = True
                for minimal in minimal_sets(self.body, known):
                    yield from self._with_choices(frozenset(base) | minimal)
            if some:
                return

    def _with_choices(self, chosen: frozenset[Relaxation]) -> Iterator[tuple[frozenset[Relaxation], Seen]]:
        """A minimal set of the body with each smallest set of choices that it needs."""
        found: list[frozenset[Relaxation]] = []
        for size in range(len(self.choices) + 1):
            for more in map(frozenset, itertools.combinations(self.choices, size)):
                if any(less <= more for less in found):
                    continue
                match = self._whole(chosen | more)
                if match is not None:
                    found.append(more)
                    yield chosen | more, match

    def _has_body(self, chosen: frozenset[Relaxation]) -> bool:
        return bool(self.runs.candidates(relaxed(self.tree, chosen.union(self.choices)), self.goal, self.taken))

    def _whole(self, chosen: frozenset[Relaxation]) -> Seen | None:
        """A match of the query without some constructs, by all of its clauses; the smallest one, of several the nearest to the rows asked for."""
        try:
            return self._found_by(relaxed(self.tree, chosen))
        except BindError:  # a construct that was taken out has bound a variable of another one
            return None

    def _found_by(self, query: syntax.Query) -> Seen | None:
        if query.strategy in {Strategy.NXT, Strategy.LAST}:  # one support for each end: these are few
            found = [match for match in self.runs.compared(query) if self.goal.reached(match)]
        else:
            found = self.runs.candidates(query, self.goal, self.taken)
            if found and (query.strategy is Strategy.MAX or query.consume is not Consumption.NONE):
                kept = self.runs.compared(query)
                found = [match for match in found if match in kept]
        if found and (query.limit is not None or query.strategy in {Strategy.ANY, Strategy.RESTRICTED}):
            given, names = self.runs.given(query)
            shown = {match.shown(names) for match in given}
            found = [match for match in found if match.shown(names) in shown]
        return min(found, key=lambda match: (len(match.rows), self._far(match), sorted(match.rows), match.variables), default=None)

    def _far(self, match: Seen) -> tuple[int, int]:
        """How far its events are from the rows that are asked for, each from the nearest one: in time, and in rows. Log-linear in the events."""
        if not self.goal.rows:
            return 0, 0
        asked, others = np.array(sorted(self.goal.rows)), np.array(sorted(match.rows.difference(self.goal.rows)), np.int64)
        behind = np.searchsorted(asked, others)
        sides = [asked[np.maximum(behind - 1, 0)], asked[np.minimum(behind, len(asked) - 1)]]

        def total(places: Array) -> int:
            return int(np.minimum(*(abs(places[others] - places[side]) for side in sides)).sum())

        return total(self.runs.times), total(np.arange(self.runs.table.num_rows))

    # ------------------------------------------------------------------------------------------------------------------------- rows

    def _levels(self) -> Iterator[tuple[Collection[int] | None, str]]:
        """The rows that a match may have, fewer each time, and what is to be said of that."""
        types = self._types()
        useful = [row for row in range(self.runs.table.num_rows) if None in types or self.runs.type_of(row) in types]
        if self.goal.only:
            yield self.goal.rows, ""
        elif self.goal.span is not None:
            yield [row for row in useful if self.goal.span[0] <= row <= self.goal.span[1]], ""
        else:
            yield None, ""
        if self.goal.only or not self.goal.rows:
            return
        keys = self.runs.keys_of(self.tree.partition_by, min(self.goal.rows))
        first, last = min(self.goal.rows), max(self.goal.rows)

        def far(row: int) -> tuple[bool, int, int]:
            return self.runs.keys_of(keys, row) != keys, max(first - row, row - last, 0), row

        low, high = self.goal.span or (0, self.runs.table.num_rows)
        others = sorted((row for row in useful if low <= row <= high and row not in self.goal.rows), key=far)
        for count in OTHERS:
            if count < len(others):
                taken = self.goal.rows.union(others[:count])
                tried = (
                    f"only the {count} nearest of {len(others):,} other events were tried as further events of a match (the limit OTHERS)"
                )
                yield taken, f"{tried}: with one farther away, fewer reasons may be enough"

    def _types(self) -> set[str | None]:
        return {node.name for node in _nodes(self.tree.pattern) if isinstance(node, syntax.Type)}

    def _row(self, row: int) -> int:
        return row if self.order is None else int(self.order[row])

    # ----------------------------------------------------------------------------------------------------------------------- answers

    def _said(self) -> str:
        goal = self.asked
        named = {row for rows in goal.named.values() for row in rows}
        parts = [f"row{'s' * (len(rows) > 1)} {', '.join(map(str, sorted(rows)))} as {name}" for name, rows in goal.named.items() if rows]
        rest = sorted(goal.rows - named)
        parts += [f"row{'s' * (len(rest) > 1)} {', '.join(map(str, rest))}"] if rest else []
        text = " and ".join(parts) or "events"
        only = " and no others" if goal.only else ""
        return f"{text}{only}" + (f" within rows {goal.span[0]} to {goal.span[1]}" if goal.span else "")

    def _found(self, match: Seen) -> EventsFound:
        names = list(dict.fromkeys(_shown_names(self.tree.pattern)))
        variables = {name: tuple(sorted(map(self._row, match.of(name)))) for name in names if match.of(name)}
        return EventsFound(tuple(sorted(map(self._row, match.rows))), variables)

    def _way(self, chosen: frozenset[Relaxation], match: Seen) -> Way:
        listed = sorted(chosen, key=lambda each: (each.span.start, each.span.end))
        seen = self._watched(chosen, match)
        reasons = [
            Reason(each.kind, KINDS[each.kind].format(self.words.name(each)), each.span, self.words.detail(each, chosen, seen))
            for each in listed
        ]
        return Way(tuple(reasons), _text(relaxed(self.tree, chosen)), self._found(match))

    def _watched(self, chosen: frozenset[Relaxation], match: Seen) -> Seen:
        """The match, with variables for what stands beside the constructs that are taken out."""
        found = self.runs.candidates(relaxed(self.tree, chosen, watch=True), Goal(match.rows, {}), match.rows)
        own = {name for name, _ in match.variables}
        return next((each for each in found if each.shown(own) == match), match)

    def _no_type(self) -> tuple[str, ...]:
        """The events that no atom of the pattern can take."""
        types = self._types()
        wrong = [row for row in sorted(self.goal.rows) if None not in types and self.runs.type_of(row) not in types]
        known = quoted(sorted(name for name in types if name is not None))
        return tuple(f"{self.words.row(row)} fits no variable: the pattern has events of type {known}" for row in wrong)

    def _no_way(self) -> tuple[str, ...]:
        everything = relaxed(self.tree, [*self.body, *self.choices])
        texts = []
        for name, rows in self.goal.named.items():
            for row in sorted(rows):
                goal = Goal(frozenset({row}), {name: frozenset({row})})
                if not self.runs.candidates(everything, goal, self.taken):
                    texts.append(f"{self.words.row(row)} cannot be in `{name}`, whatever is taken out of the query")
        if not texts:
            texts.append(
                f"nothing helps that can be taken out of the query, not even {MAX_STRUCTURE} of its events, counts, keys and orders"
            )
        return tuple(texts)


def _text(query: syntax.Query) -> str:
    """A relaxed query as text; "" for one that has none: a strategy before a target in parentheses."""
    try:
        return to_text(query)
    except BindError:
        return ""


def _nodes(node: syntax.Pattern) -> Iterator[syntax.Pattern]:
    yield node
    for below in operands(node):
        yield from _nodes(below)


def _shown_names(node: syntax.Pattern) -> Iterator[str]:
    """The variables that people see: those by AS, and types without AS."""
    match node:
        case syntax.Named(variable=variable, pattern=inner):
            if not isinstance(inner, syntax.Type):
                yield from _shown_names(inner)
            yield variable
        case syntax.Type(name=name):
            yield name or "ANY"
        case _:
            for below in operands(node):
                yield from _shown_names(below)
