"""Queries that differ in constants alone, as one query whose constants are columns.

A hundred rules with other thresholds have one automaton. So they are one `Family`: a query in whose conditions `price > 40` reads
`price > constant 0`, a column, and whose state is partitioned by the number of the rule. An event comes once for each rule that it can touch, with
the constants of that rule. A `ConstantIndex` says which these are: by one search in all constants with which an expression is compared, however
many there are. Rules that an event cannot touch are not visited.

Comes in: `Compiled` queries over one schema. Goes out: families of them, and those that stay alone. A family can grow and shrink while it runs: the
state of the others knows nothing of it, for a query has its number in the key of its partitions. The queries of a family have the automaton in
common, and all that is no constant of a comparison in a condition: windows, keys, strategy, measures. Alone stay queries to which events matter that
no condition names (STRICT, positions, windows of events), absences, and a consumption of all partitions.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.letters.predicates import BatchRows
from cepheid.engine.letters.values import Column, evaluate, literal, one_chunk
from cepheid.engine.memory.pools import ragged
from cepheid.engine.output.matches import without_columns
from cepheid.language.syntax import Consumption
from cepheid.logical.plan import Apply, Field, Literal, transform, walk
from cepheid.records import record
from cepheid.schema import is_text

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from cepheid.engine.letters.pooled import PooledReader
    from cepheid.engine.memory.pools import Array
    from cepheid.engine.plan.compiled import Compiled
    from cepheid.logical.plan import Expression
    from cepheid.schema import EventSchema

MEMBER, CONSTANT = "\0query", "\0constant "
"""The column with the number of the query, and what the names of the columns with constants begin with; no attribute that a query names has a NUL."""

COMPARED = frozenset({"=", "!=", "<", "<=", ">", ">="})
"""The operators whose constants may differ in a family."""

MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}

MOST_MEMBERS = 1 << 11
"""Queries of one family, whose numbers fit 16 bits; more make several."""

MOST_ENTRIES = 1 << 23
"""Entries of an index: its cells, each with the queries whose constants allow the values in it."""


@record(slots=False)
class ConstantIndex:
    """Which queries a value of an expression can touch.

    Numbers: the line is cut at the constants into cells, alternately the gap before a constant and the constant itself. Texts: a cell for each
    constant. `queries[starts[c] : starts[c + 1]]` are those of cell c.
    """

    expression: Expression
    constants: Any
    starts: Array
    queries: Array

    def touched(self, rows: BatchRows) -> tuple[Array, Array]:
        """(row, query) of each pair, by row. O(rows x log constants + pairs)."""
        values = evaluate(self.expression, rows)
        if isinstance(self.constants, pa.Array):
            cells = pc.index_in(values.cast(self.constants.type), value_set=self.constants, skip_nulls=True).fill_null(-1).to_numpy()
            found = np.flatnonzero(cells >= 0)
        else:
            places = np.searchsorted(self.constants, values.values)
            equal = self.constants[np.minimum(places, len(self.constants) - 1)] == values.values
            cells, found = 2 * places + equal, np.flatnonzero(~values.null())
        cells = cells[found]
        starts = self.starts[cells]
        owner, entries = ragged(starts, self.starts[cells + 1] - starts)
        return found[owner], self.queries[entries]


@record(slots=False)
class Route:
    """How events come to the queries that they may touch, by one of the masks that make a letter relevant.

    shared: the conditions of it that are the same in all queries. index: of those that differ, None: whatever `shared` says touches all queries.
    """

    shared: tuple[Expression, ...]
    index: ConstantIndex | None


@record(slots=False)
class General:
    """A query with columns in place of the constants of its comparisons. name, own: the query. compiled: the general one. constants: those it had."""

    name: str
    own: Compiled
    compiled: Compiled
    constants: tuple[Literal, ...]

    @classmethod
    def of(cls, name: str, own: Compiled) -> General:
        """Of a query that may be of a family (`alone_for`)."""
        compiled, constants = _generalized(own)
        return cls(name, own, compiled, tuple(constants))

    @cached_property
    def numbers(self) -> tuple[Any, ...]:
        """The constants as they are compared, numbers and times; None in place of others."""
        found = (literal(constant.value, constant.type) for constant in self.constants)
        return tuple(each.values if isinstance(each, Column) else None for each in found)

    @cached_property
    def shape(self) -> Hashable:
        """Equal where two queries can be of one family."""
        names = tuple(measure.name for measure in self.own.plan.measures)
        return (self.compiled.fingerprint, self.compiled.program.label_sets, self.own.layout.variables, names, self.own.plan.count)


@record(slots=False)
class Family:
    """Queries as one, by their numbers: their place in `queries`, where None is a number that no query has."""

    queries: tuple[General | None, ...]

    @cached_property
    def live(self) -> Array:
        """The numbers of the queries (int64), ascending."""
        return np.array([number for number, each in enumerate(self.queries) if each is not None], np.int64)

    @cached_property
    def members(self) -> dict[int, General]:
        """The queries by their numbers."""
        return {number: each for number, each in enumerate(self.queries) if each is not None}

    @property
    def names(self) -> tuple[str, ...]:
        """Of the queries, in the order of their numbers."""
        return tuple(each.name for each in self.members.values())

    @cached_property
    def first(self) -> General:
        """A query that stands for all where they agree."""
        return next(iter(self.members.values()))

    @property
    def compiled(self) -> Compiled:
        """The one query."""
        return self.first.compiled

    @cached_property
    def constants(self) -> pa.Table:
        """The columns, one row for each number; NULL where no query has it."""
        places = range(len(self.first.constants))
        columns = [_column([None if each is None else each.constants[place] for each in self.queries]) for place in places]
        table = pa.table(columns, names=[f"{CONSTANT}{place}" for place in places])
        return table if columns else without_columns(len(self.queries))

    def with_queries(self, more: Sequence[General]) -> tuple[Family, Sequence[General]]:
        """The family with more queries of its shape, and those for which there is no number left."""
        free = [number for number, each in enumerate(self.queries) if each is None]
        numbers = [*free, *range(len(self.queries), MOST_MEMBERS)][: len(more)]
        queries = [*self.queries, *[None] * (max(numbers, default=-1) + 1 - len(self.queries))]
        for number, each in zip(numbers, more, strict=False):
            queries[number] = each
        return Family(tuple(queries)), more[len(numbers) :]

    def without(self, numbers: Iterable[int]) -> Family:
        """The family without the queries of these numbers, which have to be forgotten before other queries get them."""
        gone = set(numbers)
        return Family(tuple(None if place in gone else each for place, each in enumerate(self.queries)))

    @property
    def nbytes(self) -> int:
        """Bytes of the constants and of the indexes."""
        indexes = [route.index for route in self.routes if route.index is not None]
        return int(self.constants.nbytes) + sum(int(index.starts.nbytes + index.queries.nbytes) for index in indexes)

    @property
    def shared(self) -> tuple[Expression, ...]:
        """The conditions that are the same in all queries."""
        return tuple(predicate.condition for predicate in self.compiled.program.predicates if not _constants_in(predicate.condition))

    @cached_property
    def routes(self) -> tuple[Route, ...]:
        """One for each relevant mask."""
        predicates = self.compiled.program.predicates
        found = []
        for mask in self.compiled.program.relevant_masks:
            conditions = [predicate.condition for bit, predicate in enumerate(predicates) if mask >> bit & 1]
            shared = tuple(condition for condition in conditions if not _constants_in(condition))
            own = [part for condition in conditions for part in _conjuncts(condition) if _constants_in(part)]
            found.append(Route(shared, _index(own, [*self.members.values()], self.live)))
        return tuple(found)

    def touched(self, events: pa.Table, pooled: PooledReader, words: Sequence[Array]) -> tuple[Array, Array]:
        """(row, query), int64, of the events and the queries that they may touch, by row, each pair once; words: what `pooled` gave for them."""
        pairs = []
        for route in self.routes:
            rows = pooled.holds(words, route.shared) if route.shared else np.arange(events.num_rows)
            if not len(rows):
                continue
            if route.index is None:
                pairs.append((np.repeat(rows, len(self.live)), np.tile(self.live, len(rows))))
                continue
            own = events.select(list(_columns(route.index.expression, self.compiled.schema))).take(pa.array(rows)).combine_chunks()
            arrays = {name: one_chunk(own[name]) for name in own.column_names}
            places, queries = route.index.touched(BatchRows(self.compiled.schema, arrays, len(rows)))
            pairs.append((rows[places], queries))
        if not pairs:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        rows, queries = (np.concatenate(side) for side in zip(*pairs, strict=True))
        if len(pairs) == 1:
            return rows, queries
        codes = np.sort(rows * len(self.queries) + queries)
        rows, queries = np.divmod(codes[np.diff(codes, prepend=-1) != 0], len(self.queries))
        return rows, queries

    def joined(self, events: pa.Table, rows: Array, queries: Array) -> pa.Table:
        """These pairs as events of the one query."""
        taken = events.take(pa.array(rows))
        constants = self.constants.take(pa.array(queries))
        columns = [*taken.columns, *constants.columns, pa.chunked_array([pa.array(queries, pa.int32())])]
        return pa.table(columns, names=[*taken.column_names, *constants.column_names, MEMBER])


def families(queries: Mapping[str, Compiled]) -> tuple[list[Family], dict[str, Compiled]]:
    """The queries as families of at least two, and those that stay alone."""
    alone = {name: compiled for name, compiled in queries.items() if alone_for(compiled) is not None}
    found = []
    for group in by_shape(General.of(name, compiled) for name, compiled in queries.items() if name not in alone):
        if len(group) == 1:
            alone[group[0].name] = group[0].own
            continue
        found += [Family(tuple(group[start : start + MOST_MEMBERS])) for start in range(0, len(group), MOST_MEMBERS)]
    return found, alone


def by_shape(queries: Iterable[General]) -> Iterable[list[General]]:
    """The queries that can be of one family together, in the order in which they first come."""
    groups: dict[Hashable, list[General]] = {}
    for each in queries:
        groups.setdefault(each.shape, []).append(each)
    return groups.values()


def alone_for(compiled: Compiled) -> str | None:
    """Why a query can be of no family: what else than an event that its conditions name matters to it; None where nothing does."""
    if compiled.layers:
        return "EVENT definitions make events for it alone"
    if compiled.plan.having is not None:
        return "HAVING judges its matches one by one"
    if compiled.absences:
        return "its matches wait for what must not follow"
    if compiled.consume is Consumption.ANY:
        return "a trigger consumes the events of all partitions"
    if compiled.lags:
        return f"{compiled.looks_back} looks at every event"
    if not compiled.droppable or 0 in compiled.program.relevant_masks:
        return "every event matters"
    if any(name.startswith("\0") for name in compiled.schema.attributes):
        return "an attribute has a name that begins with NUL"
    return None


def _generalized(compiled: Compiled) -> tuple[Compiled, list[Literal]]:
    """The query with columns for the constants of its comparisons, and these."""
    constants: list[Literal] = []
    predicates = []
    for predicate in compiled.program.predicates:
        condition = predicate.condition if predicate.type is not None else _with_columns(predicate.condition, constants)
        predicates.append(dataclasses.replace(predicate, condition=condition))
    attributes = {f"{CONSTANT}{number}": constant.type for number, constant in enumerate(constants)} | {MEMBER: pa.int32()}
    schema = dataclasses.replace(compiled.schema, attributes={**compiled.schema.attributes, **attributes})
    plan = dataclasses.replace(compiled.plan, schema=schema)
    rewritten = dataclasses.replace(compiled.rewritten, schema=schema, derived_keys=(*compiled.derived, MEMBER))
    return dataclasses.replace(compiled, plan=plan, rewritten=rewritten, program=compiled.program.over(tuple(predicates))), constants


def _with_columns(condition: Expression, constants: list[Literal]) -> Expression:
    """A condition with a column for each constant that something is compared with; adds these to `constants`."""

    def column(node: Expression, other: Expression) -> Expression:
        if not isinstance(node, Literal) or node.value is None or isinstance(other, Literal):
            return node
        constants.append(node)
        return Field("", (f"{CONSTANT}{len(constants) - 1}",), node.type, node.type)

    def change(node: Expression) -> Expression:
        if isinstance(node, Apply) and node.operator in COMPARED:
            left, right = node.arguments
            return dataclasses.replace(node, arguments=(column(left, right), column(right, left)))
        return node

    return transform(condition, change)


def _column(constants: Sequence[Literal | None]) -> pa.Array:
    """The constants of one place as a column, one of them at least."""
    kind = next(constant for constant in constants if constant is not None).type
    values = [None if constant is None else constant.value for constant in constants]
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return pa.array(values, pa.int64()).cast(kind)
    return pa.array(values, kind)


# ---------------------------------------------------------------------------------------------------------------------------- indexes


def _index(parts: Sequence[Expression], queries: Sequence[General], numbers: Array) -> ConstantIndex | None:
    """The index with the fewest entries over one expression that these conditions, all of which must hold, compare with constants.

    numbers: of the queries.
    """
    compared: dict[Expression, list[tuple[str, int]]] = {}
    for part in parts:
        found = _comparison(part)
        if found is not None:
            compared.setdefault(found[0], []).append(found[1:])
    spreads = [_spread_of(expression, bounds, queries) for expression, bounds in compared.items()]
    best = min((spread for spread in spreads if spread is not None), key=lambda spread: spread.entries, default=None)
    return None if best is None or best.entries > MOST_ENTRIES else best.index(numbers)


def _comparison(part: Expression) -> tuple[Expression, str, int] | None:
    """(expression, operator, place of the constant) of a comparison with one constant; None for another condition."""
    if not isinstance(part, Apply) or part.operator not in COMPARED - {"!="}:
        return None
    left, right = part.arguments
    operator = part.operator
    if _is_constant(left):
        left, right, operator = right, left, MIRRORED.get(operator, operator)
    if not isinstance(right, Field) or not _is_constant(right) or _constants_in(left):
        return None
    return left, operator, int(right.path[0].removeprefix(CONSTANT))


@record(slots=False)
class Spread:
    """The cells of an expression in which each query is: least .. greatest, of so many. constants: where the line is cut, see `ConstantIndex`."""

    expression: Expression
    constants: Any
    least: Array
    greatest: Array
    cells: int

    @cached_property
    def lengths(self) -> Array:
        """How many cells each query is in."""
        lengths: Array = np.maximum(self.greatest - self.least + 1, 0)
        return lengths

    @property
    def entries(self) -> int:
        """How many all are in."""
        return int(self.lengths.sum())

    def index(self, numbers: Array) -> ConstantIndex:
        """The index; numbers: of the queries."""
        owner, cells = ragged(self.least, self.lengths)
        order = np.argsort(cells, kind="stable")
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(cells, minlength=self.cells))])
        return ConstantIndex(self.expression, self.constants, starts, numbers[owner[order]].astype(np.int16))


def _spread_of(expression: Expression, bounds: Sequence[tuple[str, int]], queries: Sequence[General]) -> Spread | None:
    """The cells of one expression. bounds: (operator, place of the constant) of each comparison. None for decimals, and texts that are ordered."""
    kind = queries[0].constants[bounds[0][1]].type
    if is_text(kind):
        equal = next((place for operator, place in bounds if operator == "="), None)
        if equal is None:
            return None
        texts = pa.array([each.constants[equal].value for each in queries], kind)
        encoded = texts.cast(pa.large_string()).dictionary_encode()
        cells = encoded.indices.to_numpy().astype(np.int64)
        return Spread(expression, encoded.dictionary, cells, cells, len(encoded.dictionary))
    if queries[0].numbers[bounds[0][1]] is None:
        return None
    columns = {place: np.array([each.numbers[place] for each in queries]) for _, place in bounds}
    points = np.unique(np.concatenate(list(columns.values())))
    least, greatest = np.zeros(len(queries), np.int64), np.full(len(queries), 2 * len(points), np.int64)
    for operator, place in bounds:
        at = 2 * np.searchsorted(points, columns[place]) + 1
        if operator in {"=", ">", ">="}:
            least = np.maximum(least, at + (operator == ">"))
        if operator in {"=", "<", "<="}:
            greatest = np.minimum(greatest, at - (operator == "<"))
        nothing = columns[place] != columns[place]
        least[nothing] = 2 * len(points) + 1
    return Spread(expression, points, least, greatest, 2 * len(points) + 1)


def _conjuncts(condition: Expression) -> list[Expression]:
    if isinstance(condition, Apply) and condition.operator == "and":
        return [part for argument in condition.arguments for part in _conjuncts(argument)]
    return [condition]


def _is_constant(node: Expression) -> bool:
    return isinstance(node, Field) and node.path[:1] != () and node.path[0].startswith(CONSTANT) and node.path[0] != MEMBER


def _constants_in(condition: Expression) -> bool:
    return any(_is_constant(node) for node in walk(condition))


def _columns(expression: Expression, schema: EventSchema) -> dict[str, None]:
    """The input columns that an expression reads."""
    leaves = list(walk(expression))
    return dict.fromkeys(
        leaf.path[0] if isinstance(leaf, Field) else schema.time_column or "" for leaf in leaves if not isinstance(leaf, Apply | Literal)
    )
