"""Whether two queries have the same matches: exhaustively, on all small streams over a small alphabet of events.

The check is bounded: it looks for a difference on every stream of at most `max_events` events, with events from a finite alphabet. The alphabet has
the event types of both queries and one more. For each attribute in a condition it has the values around the constants: below, equal, above, NULL.
Event times advance by 0 and by the steps around the bounds of windows and gaps. So a difference that needs more events, or another combination of
values, is not found: None is evidence, a `Counterexample` is proof.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import itertools
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cepheid.errors import BindError, LimitError, NotSupportedError
from cepheid.language.syntax import Strategy
from cepheid.logical import plan as logical
from cepheid.logical.plan import Apply, Field, Literal, QueryPlan
from cepheid.logical.tree import about, conditions_of, walk
from cepheid.logical.types import canonical
from cepheid.logical.variables import types_by_variable
from cepheid.records import record
from cepheid.schema import is_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cepheid.logical.plan import Expression, Pattern
    from cepheid.schema import EventSchema
    from cepheid.testing.reference import Event, Match

MAX_STREAMS = 200_000
"""Streams that one call may try."""

UNKNOWN_TYPE = "(other)"
"""The type of the event that neither query names."""


@record
class ResultRow:
    """One row of a result: a match, with positions in the whole stream.

    values: of the measures. choose: under LIMIT and ANY, how many of the rows of this trigger are given; None for all of them.
    """

    match: Match
    values: tuple[object, ...] = ()
    choose: int | None = None

    def __str__(self) -> str:
        mapping = ", ".join(f"{name}={{{', '.join(map(str, places))}}}" for name, places in self.match.mapping)
        parts = [f"[{self.match.start}, {self.match.end}] {mapping}".rstrip()]
        parts += [f"values {self.values}"] if self.values else []
        parts += [] if self.choose is None else [f"({self.choose} of these given)"]
        return " ".join(parts)


@record(slots=False)
class Counterexample:
    """A stream on which two queries differ: the events, and the rows that only one of them has."""

    events: tuple[Event, ...]
    only_in_p: tuple[ResultRow, ...]
    only_in_q: tuple[ResultRow, ...]

    def __repr__(self) -> str:
        lines = ["events:"]
        for position, event in enumerate(self.events):
            time = "" if event.time is None else f" at {event.time}"
            attributes = ", ".join(f"{name}={value!r}" for name, value in event.attributes.items())
            lines.append(f"  {position}: {event.type}({attributes}){time}")
        for name, rows in (("p", self.only_in_p), ("q", self.only_in_q)):
            lines += [f"only in {name}:", *(f"  {row}" for row in rows)] if rows else []
        return "\n".join(lines)


def equivalent(
    p: str | QueryPlan,
    q: str | QueryPlan,
    *,
    schema: EventSchema | None = None,
    args: Mapping[str, object] | None = None,
    max_events: int = 4,
    max_streams: int = MAX_STREAMS,
) -> Counterexample | None:
    """None if two queries have the same matches on all small streams, otherwise a shortest stream on which they differ.

    p, q: plans, bound or rewritten, or query texts, which are bound with `schema` and `args`. max_events: the greatest length of a stream. The
    comparison covers variables and positions (those of the whole stream, also under PARTITION BY), measures, and the candidates under LIMIT.

    The cost is (alphabet x time steps) ** max_events evaluations by the reference. Raises LimitError above `max_streams`, NotSupportedError for EVENT
    definitions, and the errors of the reference. The module's docstring says which differences are not found.
    """
    plans = [_bound(query, schema, args) for query in (p, q)]
    if any(plan.definitions for plan in plans):
        raise NotSupportedError(
            "queries with EVENT definitions are not compared: small streams are made of the events that come in",
            help="compare the queries of the definitions one by one",
        )
    alphabet, steps = _alphabet(plans), _steps(plans)
    streams = sum(len(alphabet) ** length * len(steps) ** max(0, length - 1) for length in range(1, max_events + 1))
    if streams > max_streams:
        raise LimitError(
            f"{len(alphabet)} kinds of events and {len(steps)} time steps make {streams} streams, and the limit is {max_streams} (max_streams)",
            help=(
                f"lower max_events (it is {max_events}), or raise max_streams=",
                "fewer conditions and constants make fewer kinds of events",
            ),
        )
    for events in _streams(alphabet, steps, max_events, plans[0].schema):
        left, right = (rows_of(plan, events) for plan in plans)
        if left != right:
            return Counterexample(tuple(events), _sorted(left - right), _sorted(right - left))
    return None


def _bound(query: str | QueryPlan, schema: EventSchema | None, args: Mapping[str, object] | None) -> QueryPlan:
    if isinstance(query, QueryPlan):
        return query
    if schema is None:
        raise BindError("a query text needs the schema of its events to be compared", help="give schema=, or compare plans")
    from cepheid.language import parse
    from cepheid.logical.bind import bind

    return bind(parse(query), schema, args=args, text=query)


def _sorted(rows: Iterable[ResultRow]) -> tuple[ResultRow, ...]:
    return tuple(sorted(rows, key=lambda row: (row.match.end, row.match.start, repr(row))))


def rows_of(plan: QueryPlan, events: Sequence[Event]) -> set[ResultRow]:
    """The result of a query over a stream, by the reference, in the form in which results are compared."""
    from cepheid.testing import reference

    rows = set()
    for partition in reference.run(plan, events).partitions:
        places = partition.positions
        for group in partition.groups:
            choose = group.choose if group.choose < len(group.candidates) else None
            values = group.measures or ((),) * len(group.candidates)
            for match, measured in zip(group.candidates, values, strict=True):
                mapping = tuple((name, tuple(places[position] for position in positions)) for name, positions in match.mapping)
                moved = reference.Match(places[match.start], places[match.end], mapping)
                rows.add(ResultRow(moved, measured, choose))
    return rows


# --------------------------------------------------------------------------------------------------------------- the small streams


def _streams(alphabet: Sequence[Event], steps: Sequence[int], max_events: int, schema: EventSchema) -> Iterator[list[Event]]:
    """Every stream, the short ones first. The time column and the type column are attributes of the events."""
    for length in range(1, max_events + 1):
        for letters in itertools.product(alphabet, repeat=length):
            for advances in itertools.product(steps, repeat=length - 1):
                times = itertools.accumulate(advances, initial=0)
                yield [_placed(event, time, schema) for event, time in zip(letters, times, strict=True)]


def _placed(event: Event, time: int, schema: EventSchema) -> Event:
    if schema.time_column is None:
        return event
    return dataclasses.replace(event, time=time, attributes={**event.attributes, schema.time_column: time})


def _steps(plans: Sequence[QueryPlan]) -> list[int]:
    """How far time can advance: around every bound, or always by one where nobody looks at time."""
    if plans[0].schema.time_column is None:
        return [0]
    steps = set()
    for node in itertools.chain.from_iterable(walk(plan.pattern) for plan in plans):
        for interval in _intervals(node):
            steps |= {interval.lower - 1, interval.lower} if interval.lower > 0 else set()
            steps |= {interval.upper, interval.upper + 1} if interval.upper is not None else set()
    if steps or any(isinstance(leaf, logical.Time) for leaf in _leaves(plans)):
        return sorted({step for step in steps if step >= 0} | {0, 1})
    return [1]


def _intervals(node: Pattern) -> list[logical.Interval]:
    if isinstance(node, logical.Within):
        return [node.interval]
    if isinstance(node, logical.Absence):
        return [logical.Interval(0, node.duration)]
    if isinstance(node, logical.Iterate):
        return [] if node.gap is None else [node.gap]
    if isinstance(node, logical.Sequence):
        return [link.gap for link in node.links if link.gap is not None]
    return []


def _leaves(plans: Sequence[QueryPlan]) -> Iterator[Expression]:
    for plan in plans:
        expressions = [condition for _, condition in conditions_of(plan.pattern)]
        for expression in itertools.chain(expressions, (measure.expression for measure in plan.computed)):
            yield from logical.walk(expression)


# ------------------------------------------------------------------------------------------------------------ the kinds of events


def _alphabet(plans: Sequence[QueryPlan]) -> list[Event]:
    """One event of each kind: events of one type are alike that agree on all local conditions on the type, and on what else is looked at."""
    from cepheid.testing.reference import Event

    schema = plans[0].schema
    atoms = [node for plan in plans for node in walk(plan.pattern) if isinstance(node, logical.Event)]
    types = sorted({atom.type for atom in atoms if atom.type is not None})
    if any(atom.type is None for atom in atoms) or any(map(_counts_positions, plans)) or not types:
        types.append(UNKNOWN_TYPE)
    if schema.type_column is None and schema.stream is not None:
        types = [schema.stream]
    conditions = _local_conditions(plans)
    witnesses = _witnesses(plans)
    compared = _compared(plans)
    kinds: dict[tuple[object, ...], Event] = {}
    for event_type in types:
        mine = [condition for condition, held in conditions.items() if None in held or event_type in held]
        paths = sorted({*(path for condition in mine for path in _paths([condition])), *compared} & set(witnesses))
        for values in itertools.product(*(witnesses[path] for path in paths)):
            attributes: dict[str, Any] = {} if schema.type_column is None else {schema.type_column: event_type}
            for path, value in zip(paths, values, strict=True):
                _put(attributes, path, value)
            event = Event(event_type, None, attributes)
            seen = tuple(value for path, value in zip(paths, values, strict=True) if path in compared)
            kinds.setdefault((event_type, seen, *(_holds(condition, event, schema) for condition in mine)), event)
    return list(kinds.values())


def _counts_positions(plan: QueryPlan) -> bool:
    """Whether an event that the pattern does not name can matter: because it stands between others, or before one that looks back."""
    placed = any(isinstance(leaf, logical.Index | logical.Lag) for leaf in _leaves([plan]))
    return placed or plan.strategy is Strategy.STRICT or any(map(_is_adjacent, walk(plan.pattern)))


def _is_adjacent(node: Pattern) -> bool:
    match node:
        case logical.Sequence(links=links):
            return any(link.operator == ":" for link in links)
        case logical.Iterate(adjacent=adjacent):
            return adjacent
        case logical.Select(strategy=strategy):
            return strategy is Strategy.STRICT
    return isinstance(node, logical.WithinEvents)


def _local_conditions(plans: Sequence[QueryPlan]) -> dict[Expression, set[str | None]]:
    """The local conditions, each said of one unnamed event, and the event types (None: any) whose events they are asked of."""
    found: dict[Expression, set[str | None]] = {}
    for plan in plans:
        for holder, condition in conditions_of(plan.pattern):
            for part in _local_parts(condition):
                (variable,) = logical.variables_of(part)
                types = types_by_variable(holder.pattern).get(variable, {None})
                found.setdefault(logical.localize(part), set()).update(types)
    return found


def _local_parts(condition: Expression) -> Iterator[Expression]:
    """The greatest parts of a condition that look at one event alone."""
    if _is_timeless(condition) and logical.variables_of(condition):
        yield condition
    elif isinstance(condition, Apply) and condition.operator in {"and", "or", "not"}:
        for argument in condition.arguments:
            yield from _local_parts(argument)


def _is_timeless(condition: Expression) -> bool:
    """Whether a condition is local and asks no time and no lag: the attributes of an event are chosen before its place in the stream."""
    return logical.is_local(condition) and not any(isinstance(leaf, logical.Time | logical.Lag) for leaf in logical.walk(condition))


def _holds(condition: Expression, event: Event, schema: EventSchema) -> bool:
    """Asks the reference for the matches of `ANY FILTER condition` on the event alone."""
    from cepheid.testing import reference

    pattern = logical.Filter(logical.Event(None), (about(condition, logical.ANY_VARIABLE),))
    return bool(reference.matches(QueryPlan(pattern, schema, ()), [event]))


def _compared(plans: Sequence[QueryPlan]) -> set[tuple[str, ...]]:
    """The attributes whose very values matter: in correlations, keys and measures."""
    found: set[tuple[str, ...]] = set()
    for plan in plans:
        found |= {(name,) for name in plan.keys}
        found |= _paths(measure.expression for measure in plan.computed)
        for _, condition in conditions_of(plan.pattern):
            found |= _paths([condition]) if not all(map(_is_timeless, _atoms(condition))) else set()
    return found


def _atoms(condition: Expression) -> Iterator[Expression]:
    """A condition without its AND, OR and NOT."""
    if isinstance(condition, Apply) and condition.operator in {"and", "or", "not"}:
        for argument in condition.arguments:
            yield from _atoms(argument)
    else:
        yield condition


def _paths(expressions: Iterable[Expression]) -> set[tuple[str, ...]]:
    return {leaf.origin for expression in expressions for leaf in logical.walk(expression) if isinstance(leaf, Field)}


def _put(attributes: dict[str, Any], path: tuple[str, ...], value: object) -> None:
    *outer, last = path
    for name in outer:
        attributes = attributes.setdefault(name, {})
    attributes[last] = value


# ---------------------------------------------------------------------------------------------------------------------- witnesses


def _witnesses(plans: Sequence[QueryPlan]) -> dict[tuple[str, ...], list[object]]:
    """For each attribute that is looked at, values around the constants that it meets in a condition; two values and NULL in any case."""
    kinds: dict[tuple[str, ...], pa.DataType] = {}
    constants: dict[tuple[str, ...], set[object]] = {}
    schema = plans[0].schema
    for plan in plans:
        for name in plan.keys:
            kinds[name,] = canonical(schema.attributes[name])
        for expression in [*(c for _, c in conditions_of(plan.pattern)), *(m.expression for m in plan.computed)]:
            for atom in _atoms(expression):
                literals = {leaf.value for leaf in logical.walk(atom) if isinstance(leaf, Literal)} - {None}
                for leaf in logical.walk(atom):
                    if isinstance(leaf, Field) and leaf.path:
                        kinds[leaf.origin] = leaf.type
                        constants.setdefault(leaf.origin, set()).update(literals)
    special = {(schema.time_column,), (schema.type_column,)}
    return {path: _values(kind, constants.get(path, set())) for path, kind in kinds.items() if path not in special}


def _values(kind: pa.DataType | None, constants: set[object]) -> list[object]:
    """Values of a canonical type: around each constant that is of the type, and NULL."""
    if kind is None or pa.types.is_boolean(kind):
        return [False, True, None]
    if is_text(kind):
        texts = sorted({text for constant in constants if isinstance(constant, str) for text in _texts(constant)} | {"", "a"})
        return [*texts, None]
    if pa.types.is_date32(kind):
        days = {constant for constant in constants if isinstance(constant, dt.date)}
        shifted = {day + dt.timedelta(days=shift) for day in days for shift in (-1, 0, 1)}
        return [*sorted(shifted or {dt.date(2000, 1, 1), dt.date(2000, 1, 2)}), None]
    numbers = [constant for constant in constants if isinstance(constant, int | float | Decimal) and not isinstance(constant, bool)]
    around = {_number(kind, number, shift) for number in numbers for shift in (-1, 0, 1)}
    return [*sorted(around or {_number(kind, 0, 0), _number(kind, 0, 1)}), None]


def _texts(constant: str) -> set[str]:
    """A text, one above it, and two that it is like, where it is a LIKE pattern."""
    return {constant, constant + "a", constant.replace("%", "").replace("_", "a"), constant.replace("%", "ab").replace("_", "b")}


def _number(kind: pa.DataType, number: float | Decimal, shift: int) -> Any:
    """The value of a numeric type (a timestamp: its steps) nearest to a constant, or the next one beside it."""
    if pa.types.is_floating(kind):
        return float(number) + shift
    if pa.types.is_decimal(kind):
        step = Decimal(1).scaleb(-kind.scale)
        return Decimal(str(number)).quantize(step) + shift * step
    return math.floor(number) + shift
