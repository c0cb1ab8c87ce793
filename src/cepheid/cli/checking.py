"""What `check` finds in a query that parses: errors of binding, warnings, and what no engine does."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import TYPE_CHECKING

import pyarrow as pa

from cepheid.cli.failures import message
from cepheid.engine.explain import assumed_schema
from cepheid.errors import BindError, LimitError, NotSupportedError
from cepheid.language import syntax

if TYPE_CHECKING:
    from collections.abc import Iterator

    import cepheid
    from cepheid.schema import EventSchema


def findings(query: cepheid.Query, schema: EventSchema | None) -> tuple[list[str], list[str]]:
    """The warnings about a query and the notes, as printable texts.

    schema: of the events; without it the query is bound to attributes with the types that it seems to want, so that names, scopes, windows
    and strategies are checked, and types as far as the query tells them. Raises BindError.
    """
    plan = query.bound(likely_schema(query) if schema is None else schema)
    notes = []
    try:
        query.compiled(plan.schema)
    except (NotSupportedError, LimitError) as error:
        notes.append(message(error).replace("error:", "note:", 1))
    return list(plan.lints), notes


def likely_schema(query: cepheid.Query) -> EventSchema:
    """A schema that the query could be about: the one of `assumed_schema`, with other types for attributes where those do not fit.

    Where an error remains, types are not its reason, or no types of `CANDIDATES` are right: binding to this schema then raises it.
    """
    schema = _with_fields(query, assumed_schema(query))
    error = _error(query, schema)
    for _ in schema.attributes:
        if error is None or error.span is None:
            break
        here = error.span.start
        found = max(_alternatives(query, schema, error), key=lambda pair: _reach(pair[1]), default=None)
        if found is None or _reach(found[1]) <= here:
            break
        schema, error = found
    return schema


def _reach(error: BindError | None) -> float:
    """How far a query is right, in characters."""
    return math.inf if error is None else error.span.start if error.span is not None else -1


def _alternatives(query: cepheid.Query, schema: EventSchema, error: BindError) -> Iterator[tuple[EventSchema, BindError | None]]:
    """Schemas with another type for the attributes of the wrong place, one of them or all, and the error that is left."""
    assert error.span is not None
    place = set(re.findall(r"\w+", query.text[error.span.start : error.span.end]))
    names = [name for name in schema.attributes if name in place and name not in (schema.type_column, schema.time_column)]
    for chosen in [*([name] for name in names), names]:
        for kind in CANDIDATES:
            attributes = {**schema.attributes, **{name: _retyped(schema.attributes[name], kind) for name in chosen}}
            changed = dataclasses.replace(schema, attributes=attributes)
            yield changed, _error(query, changed)


def _with_fields(query: cepheid.Query, schema: EventSchema) -> EventSchema:
    """The schema with structs for the attributes whose fields the query asks for (`x.place.city`)."""
    attributes = dict(schema.attributes)
    for path in paths(query.tree):
        kind = attributes.get(path[0])
        if len(path) > 1 and (kind is None or pa.types.is_struct(kind)):
            attributes[path[0]] = _extended(kind, path[1:])
    types = None if schema.types is None else dict.fromkeys(schema.types, frozenset(attributes))
    return dataclasses.replace(schema, attributes=attributes, types=types)


def paths(node: syntax.Node) -> Iterator[tuple[str, ...]]:
    """The paths of the attributes below a node."""
    if isinstance(node, syntax.Attribute):
        yield node.path
    for child in node.children():
        yield from paths(child)


def _extended(kind: pa.DataType | None, path: tuple[str, ...]) -> pa.DataType:
    """A struct that has a path, besides what it had."""
    if not path:
        return pa.float64()
    fields = {} if kind is None or not pa.types.is_struct(kind) else {field.name: field.type for field in kind}
    fields[path[0]] = _extended(fields.get(path[0]), path[1:])
    return pa.struct(list(fields.items()))


def _retyped(kind: pa.DataType, leaf: pa.DataType) -> pa.DataType:
    """The type, or the struct with all of its leaves, as another type."""
    return pa.struct([(field.name, _retyped(field.type, leaf)) for field in kind]) if pa.types.is_struct(kind) else leaf


def _error(query: cepheid.Query, schema: EventSchema) -> BindError | None:
    try:
        query.bound(schema)
    except BindError as error:
        return error
    return None


CANDIDATES = (pa.string(), pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.int64(), pa.bool_(), pa.date32())
"""Types that an attribute may have that no literal stands beside."""
