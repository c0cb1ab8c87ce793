"""Syntax tree and schema to logical plan: every name, type and unit resolved, or an error that says what is wrong where.

The input is a `syntax.Query` and an `EventSchema`, the output a `QueryPlan` or a BindError. `patterns` binds patterns, `expressions` conditions, and
`measures` the targets of SELECT; `lints` adds the warnings. Nothing is rewritten here: `?` and braces stay as written.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa

from cepheid.errors import BindError, quoted
from cepheid.language import syntax, to_text
from cepheid.language.hints import path_key
from cepheid.language.limits import MAX_COUNT, check_size
from cepheid.language.syntax import Consumption, Strategy, TimeModel
from cepheid.logical import measures, parameters, plan
from cepheid.logical.absence import take_out
from cepheid.logical.adjacency import beside_made_events
from cepheid.logical.beginnings import begins_earlier
from cepheid.logical.canonical import canonical_text
from cepheid.logical.context import Context, suggestion
from cepheid.logical.definitions import bind_definitions, check_keys, types_in
from cepheid.logical.growing import grows
from cepheid.logical.lints import Listed, decided_earlier, largest_around_a_window, lint
from cepheid.logical.patterns import StructureBinder, bind_conditions
from cepheid.logical.plan import QueryPlan
from cepheid.logical.scopes import OuterScopes
from cepheid.logical.types import canonical

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from cepheid.logical.plan import Measure, Pattern
    from cepheid.schema import EventSchema


def bind(
    query: syntax.Query, schema: EventSchema, *, args: Mapping[str, object] | None = None, text: str = "", partial: bool = False
) -> QueryPlan:
    """The logical plan of a query over events of a schema.

    args: a value for each `:name` of the query (bool, int, float, Decimal, str, datetime, date, timedelta, None; a list of these behind IN). text:
    the query's text, for the excerpts in errors and lints; without it messages have no excerpt. partial: let parameters have no value, to check
    what does not depend on it; the plan is not the query's then. The plan's schema has the events that EVENT definitions add.

    Raises BindError for names, types, units, scopes and options that do not fit, and LimitError for durations and sizes beyond their limits. Time is
    linear in the nodes of the tree times its depth (sequences: times their length).
    """
    check_size(query)
    types = frozenset(types_in(query.pattern))
    context = Context(
        schema,
        MappingProxyType(dict(args or {})),
        text,
        types,
        MappingProxyType(_negated(query.pattern)),
        partial=partial,
        model=query.model or TimeModel.CAYUGA,
        measures=frozenset(target.name for target in query.targets or () if target.name is not None),
    )
    context.unknown = tuple(node.span for node in parameters.parameters(query) if context.is_open(node))
    definitions: tuple[plan.EventDefinition, ...] = ()
    if query.definitions:
        # Of the values for parameters each part uses some: they are checked for the whole.
        check_parameters(query, context.args)

        def bind_inner(inner: syntax.Query, layer: EventSchema) -> QueryPlan:
            names = {node.name for node in parameters.parameters(inner)}
            return bind(
                inner, layer, args={name: value for name, value in context.args.items() if name in names}, text=text, partial=partial
            )

        definitions, schema = bind_definitions(context, query, bind_inner)
        context = dataclasses.replace(context, schema=schema)
        check_keys(context, query, definitions)
    structure = StructureBinder(context)
    pattern = structure.outermost(query.pattern)
    if query.partition_within is not None:
        pattern = structure.window(pattern, query.partition_within, query.partition_within)
    pattern = bind_conditions(context, pattern, OuterScopes())
    targets = measures.bind_targets(context, query, pattern)
    having = measures.bind_having(context, query, pattern, targets)
    _check_partition(context, query, pattern)
    _check_options(context, query)
    limit = _limit(context, query)
    check_parameters(query, context.args)
    lint(
        context,
        pattern,
        listed=_listed(query, pattern, having, limit, counts=targets.count),
        keeps=query.strategy is not Strategy.RESTRICTED,
    )
    for number, definition in enumerate(definitions):
        beside_made_events(context, definition.plan.pattern, definitions[:number], definition.plan.partition_by, definition.plan.strategy)
    beside_made_events(context, pattern, definitions, query.partition_by, query.strategy)
    if having is not None and query.strategy in {Strategy.ALL, Strategy.ANY, Strategy.STRICT}:
        decided_earlier(context, pattern, having.expression)
    if query.strategy is Strategy.MAX:
        largest_around_a_window(context, take_out(pattern)[0])
    return QueryPlan(
        pattern,
        schema,
        targets.variables,
        targets.measures,
        having,
        targets.count,
        query.strategy,
        query.streams,
        query.partition_by,
        query.consume,
        context.model if _has_then(query) else None,
        limit,
        text,
        (
            *(found for definition in definitions for found in definition.plan.lints),
            *(found for _, found in sorted(context.lints, key=lambda found: (found[0].start, found[0].end))),
        ),
        strategy_span=query.place("strategy"),
        definitions=definitions,
        said=_said(query, context.args),
    )


def _said(query: syntax.Query, args: Mapping[str, object]) -> str:
    """See `QueryPlan.said`."""
    values = [(name, str(value) if isinstance(value, dt.timedelta) else value) for name, value in sorted(args.items())]
    try:
        return f"{to_text(query)}\n{canonical_text(values)}"
    except TypeError:  # a value that no parameter can have, of a partial plan
        return ""


def _named(node: syntax.Node, operator: str = "") -> Iterator[tuple[str, str]]:
    """The names that a pattern gives to events, by type or AS, each with the operator of the negated pattern that it stands in, or ""."""
    if isinstance(node, syntax.Type) and node.name is not None:
        yield node.name, operator
    elif isinstance(node, syntax.Named):
        yield node.variable, operator
    for child in node.children():
        yield from _named(child, operator or _negation(node, child))


def _negation(node: syntax.Node, child: syntax.Node) -> str:
    match node:
        case syntax.Link(without=negated):
            operator = "NOT"
        case syntax.Unless(negated=negated):
            operator = "UNLESS"
        case syntax.Absence(negated=negated):
            operator = "NOT FOLLOWED BY"
        case _:
            return ""
    return operator if child is negated else ""


def _negated(pattern: syntax.Pattern) -> dict[str, str]:
    """The names that a pattern gives to events of negated patterns alone, and the operators of these."""
    found = list(_named(pattern))
    outside = {name for name, operator in found if not operator}
    return {name: operator for name, operator in found if name not in outside}


def _then(node: syntax.Node) -> Iterator[syntax.Link]:
    if isinstance(node, syntax.Link) and node.operator == "THEN":
        yield node
    for child in node.children():
        yield from _then(child)


def _has_then(query: syntax.Query) -> bool:
    return next(_then(query.pattern), None) is not None


def _check_options(context: Context, query: syntax.Query) -> None:
    for number, name in enumerate(query.streams):
        if name in query.streams[:number]:
            raise context.error(
                f"`{name}` is twice in FROM", query.place("streams", number), "leave one out: every pattern reads all streams"
            )
    if query.model is not None and not _has_then(query):
        raise context.error(
            "TIME MODEL without THEN: nothing in the pattern asks for the next match",
            query.place("model"),
            "leave it out, or write THEN for `;`",
        )


def _listed(query: syntax.Query, pattern: Pattern, having: Measure | None, limit: int | None, *, counts: bool) -> Listed:
    """Why every match of a query is listed, if it is; as the planner does it."""
    body, absences = take_out(pattern)
    whole = begins_earlier(body) or (counts and any(absence.from_start for absence in absences))
    if having is None and not whole:
        given = query.strategy is Strategy.ALL and limit is None and not counts
        return Listed.GIVEN if given else Listed.NOT
    # A trigger of one key uses up what others have.
    across = query.consume is Consumption.ANY and bool(query.partition_by)
    if query.strategy in {Strategy.ALL, Strategy.ANY}:
        one = (query.strategy is Strategy.ANY or limit == 1) and not (whole or counts or across)
        if one and having is not None and grows(body, having.expression):
            return Listed.NOT
        return Listed.COMPARED if across else Listed.FIRST
    compared = across or (whole and query.consume is not Consumption.NONE)
    return Listed.COMPARED if compared and query.strategy not in {Strategy.STRICT, Strategy.RESTRICTED} else Listed.NOT


def _limit(context: Context, query: syntax.Query) -> int | None:
    limit = None if query.limit is None else parameters.count(context, query.limit, otherwise=MAX_COUNT)
    if limit == 0:
        place = parameters.place(query.place("limit"), query.limit)
        raise context.error("LIMIT 0 gives no match", place, "the least is LIMIT 1", *parameters.said(context, query.limit))
    return limit


def _check_partition(context: Context, query: syntax.Query, pattern: Pattern) -> None:
    """The keys exist on every event that the pattern can look at, negated ones too, and are of a type that can be a key."""
    used = sorted(_event_types(pattern), key=str)
    for number, name in enumerate(query.partition_by):
        place = query.place("partition_by", number)
        if name in query.partition_by[:number]:
            raise context.error(f"`{name}` is twice in PARTITION BY", place, "leave one out")
        missing = [kind for kind in used if name not in context.schema.attributes_of(kind)]
        if missing and name in context.schema.unreadable:
            fact, way_out = context.schema.unreadable[name]
            raise context.error(fact, place, way_out)
        if missing:
            owner = "the events have" if missing[0] is None or name not in context.schema.attributes else f"event type `{missing[0]}` has"
            help_ = suggestion(name, context.schema.attributes_of(missing[0]), what="there are")
            raise context.error(f"{owner} no attribute `{name}` to partition by", place, *help_)
        kind = context.schema.attributes[name]
        if canonical(kind) is None:
            raise context.error(f"`{name}` is {kind}, which cannot be a partition key", place, _key_inside(name, kind))


def _key_inside(name: str, kind: pa.DataType) -> str:
    """The help where a value that has others inside is to be a key: how one of these is made one."""
    path = _path_inside(kind)
    return path_key(name, path) if path else "partition by what is in it, in a column of its own"


def _path_inside(kind: pa.DataType) -> list[tuple[str, str]] | None:
    """The shortest way to a value that may be a key, as `path_key` takes it; None: there is none."""
    if canonical(kind) is not None:
        return []
    if pa.types.is_struct(kind):
        steps = [(("field", each.name), each.type) for each in kind]
    elif pa.types.is_map(kind):
        steps = [(("entry", "'a'" if pa.types.is_string(kind.key_type) else "1"), kind.item_type)]
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        steps = [(("place", "0"), kind.value_type)]
    else:
        steps = []
    ways = ((step, _path_inside(inside)) for step, inside in steps)
    return min(([step, *way] for step, way in ways if way is not None), key=len, default=None)


def _event_types(pattern: Pattern) -> set[str | None]:
    found = {pattern.type} if isinstance(pattern, plan.Event) else set()
    return found.union(*map(_event_types, pattern.children()))


def check_parameters(query: syntax.Query, args: Iterable[str]) -> None:
    """Raise BindError for values of parameters that the query does not have."""
    known = {node.name for node in parameters.parameters(query)}
    unknown = [name for name in args if name not in known]
    if unknown:
        help_ = suggestion(unknown[0], known, what="its parameters are") or ("it has no parameters",)
        raise BindError(f"the query has no parameter {quoted(':' + name for name in unknown)}", help=help_)
