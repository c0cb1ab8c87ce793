"""`EVENT name(attributes) AS (query)`: matches as events, and in which order definitions are read.

Comes in: the definitions of a query, and the schema of the events. Goes out: each definition with its plan, in an order in which each comes after
those that it uses; and the schema with what they add. A derived event has the type `name`, the time of the match's last event, its measures as
attributes under the names that the definition lists, and the keys of its PARTITION BY under their own (docs/decisions/0011-events.md).
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pyarrow as pa

from cepheid.errors import quoted
from cepheid.language import syntax
from cepheid.language.syntax import Strategy
from cepheid.logical.plan import ANY_VARIABLE, EventDefinition
from cepheid.logical.types import canonical
from cepheid.schema import STREAM_COLUMN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from cepheid.logical.context import Context
    from cepheid.logical.plan import QueryPlan
    from cepheid.schema import EventSchema

    Bind = Callable[[syntax.Query, EventSchema], QueryPlan]


def bind_definitions(context: Context, query: syntax.Query, bind: Bind) -> tuple[tuple[EventDefinition, ...], EventSchema]:
    """The definitions of a query in the order in which they are evaluated, and the schema of all its events; raises BindError.

    bind: gives the plan of a definition's query.
    """
    schema = context.schema
    found: list[EventDefinition] = []
    _check_names(context, query)
    for definition in _ordered(context, query.definitions):
        if definition.query.definitions:
            inner = definition.query.definitions[0]
            raise context.error(
                "an EVENT is defined inside another definition", inner.place("name"), "write all definitions at the beginning of the text"
            )
        check_keys(context, definition.query, found)
        plan = bind(definition.query, schema)
        derived = _derived(context, definition, plan)
        schema = _with_events(context, schema, definition, derived)
        found.append(derived)
    _check_use(context, query)
    return tuple(found), schema


def check_keys(context: Context, query: syntax.Query, definitions: Iterable[EventDefinition]) -> None:
    """The keys of a query are keys of each definition that it sees: where an event begins is a place in its own partition. Raises BindError.

    An event without one of the keys is in no partition, and is not seen unless the query names it.
    """
    used = set(types_in(query.pattern))
    for definition in definitions:
        missing = [name for name in query.partition_by if name not in definition.keys]
        if missing and (definition.name in used or set(query.partition_by) <= {*definition.keys, *definition.attributes}):
            what = "a measure" if missing[0] in definition.attributes else "no key"
            raise context.error(
                f"the events of `{definition.name}` may span several partitions: {quoted(missing)} is {what} of its definition",
                query.place("partition_by", query.partition_by.index(missing[0])),
                _with_key(definition, missing[0], query.partition_by),
            )


def _with_key(definition: EventDefinition, key: str, keys: tuple[str, ...]) -> str:
    """What to do where a query that sees the events of a definition has a key more."""
    compare = f"compare here: x.{key} = y.{key}"
    if key in definition.attributes and key in definition.plan.partition_by:
        return f"leave `{key}` out of its attributes and measures: its events have the keys of its PARTITION BY without being listed; or {compare}"
    return compare if key in definition.attributes else f"write PARTITION BY {', '.join(keys)} in the definition too, or {compare}"


def _check_use(context: Context, query: syntax.Query) -> None:
    """Warn of definitions whose events no pattern asks for: not by name, nor by ANY."""
    patterns = [query.pattern, *(definition.query.pattern for definition in query.definitions)]
    used = {node.name for pattern in patterns for node in _types(pattern)}
    for definition in query.definitions if None not in used else ():
        if definition.name not in used:
            context.warn(
                f"no pattern asks for `{definition.name}`",
                definition.place("name"),
                "leave its definition out: else its events stand between the others, which `:` and WITHIN n EVENTS count",
            )


def types_in(node: syntax.Node) -> Iterator[str]:
    """The event types that a pattern names, negated ones too."""
    return (each.name for each in _types(node) if each.name is not None)


def _types(node: syntax.Node) -> Iterator[syntax.Type]:
    if isinstance(node, syntax.Type):
        yield node
    for child in node.children():
        yield from _types(child)


def _check_names(context: Context, query: syntax.Query) -> None:
    for number, definition in enumerate(query.definitions):
        known = context.schema.types or {}
        if definition.name == ANY_VARIABLE:
            raise context.error(
                "the event `ANY` cannot be told from the pattern ANY",
                definition.place("name"),
                "give the events of this definition another name",
            )
        if definition.name in {other.name for other in query.definitions[:number]}:
            raise context.error(
                f"the event `{definition.name}` is defined twice", definition.place("name"), "give one of them another name"
            )
        for part in (query, *(each.query for each in query.definitions)):
            if definition.name in part.streams:
                place = part.place("streams", part.streams.index(definition.name))
                fact = f"FROM names streams that come in, and the events of `{definition.name}` are made here"
                raise context.error(fact, place, "leave it out: every pattern sees the events of all definitions")
        if definition.name in known or (context.schema.type_column is None and definition.name == context.schema.stream):
            raise context.error(
                f"there are events of type `{definition.name}` already",
                definition.place("name"),
                "give the events of this definition another name",
            )


def _ordered(context: Context, definitions: tuple[syntax.Definition, ...]) -> list[syntax.Definition]:
    """Each after those that it uses, else as written; raises BindError for definitions that use each other."""
    by_name = {definition.name: definition for definition in definitions}
    done: dict[str, syntax.Definition] = {}

    def visit(definition: syntax.Definition, path: tuple[str, ...]) -> None:
        if definition.name in path:
            circle = (*path[path.index(definition.name) :], definition.name)
            raise context.error(
                f"EVENT definitions go in a circle: {' -> '.join(f'`{name}`' for name in circle)}",
                definition.place("name"),
                "an event can only be made of others that are there without it",
            )
        if definition.name not in done:
            for name in dict.fromkeys(types_in(definition.query.pattern)):
                if name in by_name:
                    visit(by_name[name], (*path, definition.name))
            done[definition.name] = definition

    for definition in definitions:
        visit(definition, ())
    return list(done.values())


def _derived(context: Context, definition: syntax.Definition, plan: QueryPlan) -> EventDefinition:
    name = definition.name
    if context.schema.time_column is None:
        raise context.error(
            f"the event `{name}` needs a time, and the events have none", definition.place("name"), "name the time column with time="
        )
    if plan.limit is not None or plan.strategy in {Strategy.ANY, Strategy.RESTRICTED}:
        clause = "strategy" if plan.limit is None else "limit"
        raise context.error(
            f"{'LIMIT' if plan.limit is not None else plan.strategy.value} does not say which matches are events of `{name}`: it takes some",
            definition.query.place(clause),
            "leave it out of the definition; SELECT NXT, LAST and MAX choose",
        )
    if plan.count or not plan.measures:
        raise context.error(
            f"the attributes of `{name}` are measures, and its SELECT names none",
            definition.query.place("targets"),
            "write a measure for each attribute, as in SELECT max(x.a) AS peak, count(x) AS n",
        )
    if len(definition.attributes) != len(plan.measures):
        raise context.error(
            f"`{name}` lists {_number(definition.attributes, 'attribute')}, and its SELECT has {_number(plan.measures, 'measure')}",
            definition.place("attributes").to(definition.place("attributes", len(definition.attributes) - 1)),
            *_keys_listed(definition, plan),
            f"they go together in their order: EVENT {name}({', '.join(measure.name for measure in plan.measures)}) AS (..)",
        )
    return EventDefinition(name, definition.attributes, plan)


def _keys_listed(definition: syntax.Definition, plan: QueryPlan) -> tuple[str, ...]:
    """What to do with attributes that its events have without being listed: the keys of its partitions, of which no measure has the name."""
    keys = [name for name in definition.attributes if name in plan.partition_by and name not in {measure.name for measure in plan.measures}]
    if not keys:
        return ()
    what = "is a key" if len(keys) == 1 else "are keys"
    return (f"{quoted(keys)} {what} of its PARTITION BY, which its events have without being listed",)


def _number(items: tuple[object, ...], what: str) -> str:
    return f"{len(items)} {what}{'s' * (len(items) != 1)}"


def _with_events(context: Context, schema: EventSchema, definition: syntax.Definition, derived: EventDefinition) -> EventSchema:
    attributes = dict(schema.attributes)
    type_column, types = schema.type_column, schema.types
    if type_column is None:
        type_column = STREAM_COLUMN
        attributes[type_column] = pa.string()
        types = types or {}
    for number, (name, measure) in enumerate(zip(derived.attributes, derived.plan.measures, strict=True)):
        place = definition.place("attributes", number)
        if name in derived.attributes[:number]:
            raise context.error(f"`{definition.name}` has two attributes named `{name}`", place, "give one of them another name")
        if name in (schema.type_column, schema.time_column):
            what = "type" if name == schema.type_column else "time, which is that of its last event"
            raise context.error(f"`{name}` is the column of the {what}", place, "give the attribute another name")
        if name in schema.unreadable:
            raise context.error(f"{schema.unreadable[name][0]}, and other events have it", place, "give the attribute another name")
        known = attributes.get(name)
        if known is not None and canonical(known) != canonical(measure.type):
            raise context.error(
                f"the attribute `{name}` of `{definition.name}` is {measure.type}, and other events have one of that name that is {known}",
                place,
                "give it another name",
            )
        # Integers of any width are one type in the language; here the column has to hold both.
        attributes[name] = measure.type if known is None or known == measure.type else canonical(known)
    own = frozenset({*derived.attributes, *derived.keys, *filter(None, (type_column, schema.time_column))})
    if types is not None:
        types = {**types, definition.name: own}
    made = {**schema.made, definition.name: own}
    return dataclasses.replace(schema, attributes=attributes, type_column=type_column, types=types, made=made)
