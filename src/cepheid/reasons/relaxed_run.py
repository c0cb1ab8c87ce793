"""Does a relaxed query have a match with the events that are asked for? Asked of the engine, over the events as they are.

Comes in: a syntax tree, and a `Goal`. Goes out: matches that reach the goal, by the rows of their events. The tree is changed so that each match
shows all of its events (`_shown`), and, where nothing compares it with others, has events of some rows alone (`_confined`): that bounds how many
there are. Negated patterns, strategies and THEN still see all events.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.engine.input.event_times import times_of
from cepheid.engine.plan.planner import compile_plan
from cepheid.engine.run import batch, definition
from cepheid.errors import BindError, LimitError, NotSupportedError
from cepheid.language import syntax
from cepheid.language.syntax import Consumption, Strategy
from cepheid.logical.bind import bind
from cepheid.logical.measures import default_name
from cepheid.logical.parameters import parameters
from cepheid.reasons.relaxations import names_in, with_operands
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from cepheid.engine.memory.pools import Array
    from cepheid.engine.output.matches import Matches
    from cepheid.engine.plan.compiled import Compiled
    from cepheid.logical.plan import QueryPlan
    from cepheid.schema import EventSchema

MAX_BYTES = 4 << 20
"""What the matches of one relaxed query may take, in bytes: some 50,000 matches."""

MOST_COMPARED = 256 << 20
"""What the matches may take that a strategy, LIMIT or CONSUME chooses from, in bytes."""

MAX_RUNS = 200
"""Most queries that one answer runs."""

TAKEN = "\0taken"
"""A column that says of each event whether a match may have it."""

ALL = "\0all"
"""A variable with all events of a match."""


class TooManyError(Exception):
    """A relaxed query has more matches than `MAX_BYTES` hold."""


class OutOfRunsError(Exception):
    """`MAX_RUNS` queries have run."""


@record
class Seen:
    """A match: the rows of its first and last event, and of each variable the rows, by name, ascending."""

    start: int
    end: int
    variables: tuple[tuple[str, tuple[int, ...]], ...]

    def of(self, variable: str) -> tuple[int, ...]:
        """The rows of a variable."""
        return dict(self.variables).get(variable, ())

    @property
    def rows(self) -> frozenset[int]:
        """The rows of all its events."""
        return frozenset({self.start, self.end}).union(*(rows for _, rows in self.variables))

    def shown(self, names: Collection[str]) -> Seen:
        """The match with some variables alone."""
        return Seen(self.start, self.end, tuple(each for each in self.variables if each[0] in names))


@record
class Goal:
    """What is asked for: a match with the rows `rows`, and in each variable of `named` those rows.

    only: it shows no other events, but PROJECT may hide some inside. span: the first and the last row that it may have.
    """

    rows: frozenset[int]
    named: Mapping[str, frozenset[int]]
    only: bool = False
    span: tuple[int, int] | None = None

    def reached(self, match: Seen) -> bool:
        """Whether a match is one that is asked for."""
        rows = match.rows
        if not self.rows <= rows or (self.only and self.rows != rows):
            return False
        if self.span is not None and not (self.span[0] <= min(rows) and max(rows) <= self.span[1]):
            return False
        return all(asked.issubset(match.of(name)) for name, asked in self.named.items())


@dataclass
class Runs:
    """The events, and the queries that have run over them.

    holds: where the events are a part of the table, says of a query whether it finds the same in the part. beyond: whether one has run that may not.
    """

    table: pa.Table
    schema: EventSchema
    args: Mapping[str, object]
    until: int | str | None
    null_keys: str
    variant: str | None
    count: int = 0
    holds: Callable[[QueryPlan], bool] | None = None
    beyond: bool = False
    _columns: dict[str, list[Any]] = field(default_factory=dict)

    def candidates(self, query: syntax.Query, goal: Goal, taken: Collection[int] | None) -> list[Seen]:
        """The matches of the body of a query that reach the goal; taken: the rows that they may have, None for all.

        Empty, too, where the query is not well-formed: a construct that was taken out has bound a variable of another one. Raises TooManyError.
        """
        body = dataclasses.replace(
            _shown(query),
            strategy=query.strategy if query.strategy is Strategy.STRICT else Strategy.ALL,
            consume=Consumption.NONE,
            limit=None,
        )
        table, schema = self.table, self.schema
        if taken is not None:
            body = dataclasses.replace(body, pattern=_confined(body.pattern, hidden=not goal.only))
            table = table.append_column(TAKEN, pa.array(np.isin(np.arange(table.num_rows), list(taken))))
            schema = _with_taken(schema)
        try:
            found = self._run(body, table, schema, MAX_BYTES)
        except BindError:
            return []
        except LimitError:
            raise TooManyError from None
        return [match for match in _seen(found) if goal.reached(match)]

    def compared(self, query: syntax.Query) -> set[Seen]:
        """All matches of a query with its strategy and CONSUME, each with all its variables; without LIMIT, and ANY and RESTRICTED as ALL."""
        strategy = Strategy.ALL if query.strategy in {Strategy.ANY, Strategy.RESTRICTED} else query.strategy
        return set(_seen(self._compared(dataclasses.replace(_shown(query), strategy=strategy, limit=None))))

    def given(self, query: syntax.Query) -> tuple[set[Seen], frozenset[str]]:
        """The matches that a query gives, and the variables that they show."""
        found = self._compared(query)
        return set(_seen(found)), frozenset().union(*found.layout.labels)

    def every(self, pattern: syntax.Pattern, first: int, last: int, keys: Mapping[str, object]) -> list[Seen]:
        """The matches of a pattern within some rows of a partition, with their events in the variable `ALL`."""
        rows = [row for row in range(first, last + 1) if keys == self.keys_of(tuple(keys), row)]
        query = _shown(syntax.Query(pattern))
        try:
            found = self._run(query, self.table.take(pa.array(rows, pa.int64())), self.schema, MAX_BYTES, sought=False)
        except LimitError:
            return []
        return [Seen(rows[each.start], rows[each.end], ((ALL, tuple(rows[row] for row in sorted(each.rows))),)) for each in _seen(found)]

    def column(self, name: str) -> list[Any]:
        """The values of an attribute, by row."""
        if name not in self._columns:
            self._columns[name] = self.table[name].to_pylist()
        return self._columns[name]

    @functools.cached_property
    def times(self) -> Array:
        """The time of each row, in steps of the time column (int64); zeros without one."""
        time = self.schema.time_column
        return np.zeros(self.table.num_rows, np.int64) if time is None else times_of(self.table, time)

    def type_of(self, row: int) -> Any:
        """The type of an event."""
        column = self.schema.type_column
        return self.schema.stream if column is None else self.column(column)[row]

    def keys_of(self, names: Iterable[str], row: int) -> dict[str, object]:
        """The values of attributes of an event."""
        return {name: self.column(name)[row] for name in names}

    def plan(self, query: syntax.Query, schema: EventSchema | None = None) -> QueryPlan:
        """The plan of a relaxed query, which may have fewer parameters. Raises BindError where it is not well-formed."""
        names = {node.name for node in parameters(query)}
        return bind(query, schema or self.schema, args={name: value for name, value in self.args.items() if name in names})

    def _compared(self, query: syntax.Query) -> Matches:
        try:
            return self._run(query, self.table, self.schema, MOST_COMPARED)
        except LimitError as error:
            raise LimitError(
                f"the matches that `{query.strategy.value}`, LIMIT or CONSUME choose from take more than {MOST_COMPARED:,} bytes",
                help=("ask with fewer events: those around the rows that you mean", *error.help),
            ) from None

    def _run(self, query: syntax.Query, table: pa.Table, schema: EventSchema, max_bytes: int, *, sought: bool = True) -> Matches:
        """sought: whether the matches are those that the question is about."""
        if self.count >= MAX_RUNS:
            raise OutOfRunsError
        self.count += 1
        plan = self.plan(query, schema)
        if sought and self.holds is not None:
            self.beyond = self.beyond or not self.holds(plan)
        compiled: Compiled | None = None
        if self.variant != "reference":
            with contextlib.suppress(NotSupportedError, LimitError):  # the definition has the whole language
                compiled = compile_plan(plan)
        if compiled is None:
            return definition.run(plan, table, until=self.until, null_keys=self.null_keys)
        return batch.run(compiled, table, until=self.until, null_keys=self.null_keys, variant=self.variant, max_bytes=max_bytes)


def _seen(matches: Matches) -> Iterator[Seen]:
    names = sorted(frozenset[str]().union(*matches.layout.labels))
    visible = {name: matches.layout.visible(name) for name in names}
    for number in range(len(matches)):
        _, labels, rows = matches.marks.match(number)
        variables = ((name, tuple(rows[visible[name][labels]].tolist())) for name in names)
        yield Seen(int(rows[0]), int(rows[-1]), tuple((name, own) for name, own in variables if own))


def _with_taken(schema: EventSchema) -> EventSchema:
    types = None if schema.types is None else {name: own | {TAKEN} for name, own in schema.types.items()}
    return dataclasses.replace(schema, attributes={**schema.attributes, TAKEN: pa.bool_()}, types=types)


def _shown(query: syntax.Query) -> syntax.Query:
    """The query with all variables of its matches, and one with all their events."""
    pattern = _named(query.pattern)
    targets = tuple(syntax.Target(syntax.Word(name)) for name in sorted(names_in(pattern)))
    return dataclasses.replace(query, pattern=pattern, targets=targets, having=_spelled_out(query))


def _spelled_out(query: syntax.Query) -> syntax.Expression | None:
    """HAVING with measures in the place of their names, which other targets do not have."""
    named = {
        target.name or default_name(target.expression, position): target.expression
        for position, target in enumerate(query.targets or ())
        if not isinstance(target.expression, syntax.Word)
    }
    variables = names_in(query.pattern)

    def changed(node: Any) -> Any:
        if isinstance(node, syntax.Word):
            return named.get(node.name, node)
        if isinstance(node, tuple):
            return tuple(map(changed, node))
        if not isinstance(node, syntax.Node):
            return node
        # `count(x)` is about the variable, also where a measure has its name.
        parts = {item.name: getattr(node, item.name) for item in dataclasses.fields(node)}
        kept = {name: part for name, part in parts.items() if name != "arguments" or not _speaks_of(part, variables)}
        return dataclasses.replace(node, **{name: after for name, part in kept.items() if (after := changed(part)) != part})

    found: syntax.Expression | None = changed(query.having)
    return found


def _speaks_of(arguments: tuple[syntax.Expression, ...], variables: Collection[str]) -> bool:
    return any(isinstance(argument, syntax.Word) and argument.name in variables for argument in arguments)


def _named(pattern: syntax.Pattern) -> syntax.Pattern:
    if isinstance(pattern, syntax.Filter | syntax.Within | syntax.Unless | syntax.Absence):
        return dataclasses.replace(pattern, pattern=_named(pattern.pattern))
    return syntax.Named(pattern, ALL)


def _confined(pattern: Any, *, hidden: bool) -> Any:
    """The pattern with events of the rows that may be taken alone; what is compared stays as it is. hidden: also those that PROJECT may hide."""
    stays = isinstance(pattern, syntax.Project) and not hidden
    if isinstance(pattern, syntax.Type):
        return syntax.Filter(pattern, syntax.Attribute(pattern.name or "ANY", (TAKEN,)))
    if stays or (isinstance(pattern, syntax.Select) and pattern.strategy is not Strategy.STRICT):
        return pattern
    if isinstance(pattern, syntax.Sequence):
        chosen = [False, *(link.operator == "THEN" for link in pattern.links)]  # what is next is so among all
        items = (item if all_ else _confined(item, hidden=hidden) for item, all_ in zip(pattern.items, chosen, strict=True))
        return dataclasses.replace(pattern, items=tuple(items))
    return with_operands(pattern, lambda below: _confined(below, hidden=hidden))
