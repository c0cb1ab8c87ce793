"""A schema that a query could be about, from the query alone, for `check` and `draw` without events.

Comes in: a query. Goes out: an `EventSchema`. What stands beside an attribute says its type: a literal, LIKE, a difference of times, a place
where a condition must stand; comparisons carry types from one attribute to another. What nothing is said of is a double.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cepheid.engine.explain import assumed_schema
from cepheid.language import syntax

if TYPE_CHECKING:
    from collections.abc import Iterator

    import cepheid
    from cepheid.schema import EventSchema

Path = tuple[str, ...]

INSTANT = pa.timestamp("us", "UTC")

TEXT_FUNCTIONS = frozenset({"length", "lower", "upper"})


def likely_schema(query: cepheid.Query) -> EventSchema:
    """The schema of events that the query could be about: `assumed_schema`, with the types that the whole pattern tells."""
    schema = assumed_schema(query)
    kinds = attribute_types(query)
    attributes = dict(schema.attributes)
    for path in dict.fromkeys(path for node in walk(query.tree.pattern) if (path := path_of(node))):
        known = attributes.get(path[0])
        if path[0] in (schema.type_column, schema.time_column) or (len(path) == 1 and path not in kinds):
            continue
        attributes[path[0]] = _with_leaf(known if len(path) > 1 else None, path[1:], kinds.get(path, pa.float64()))
    types = None if schema.types is None else dict.fromkeys(schema.types, frozenset(attributes))
    return dataclasses.replace(schema, attributes=attributes, types=types)


def walk(node: syntax.Node) -> Iterator[syntax.Node]:
    """A node and everything below it."""
    yield node
    for child in node.children():
        yield from walk(child)


def path_of(node: object) -> Path:
    """The path of an attribute; of everything else nothing."""
    if isinstance(node, syntax.Attribute):
        return node.path
    return (node.name,) if isinstance(node, syntax.Word) else ()


def attribute_types(query: cepheid.Query) -> dict[Path, pa.DataType]:
    """The types that the conditions of the pattern tell."""
    kinds: dict[Path, pa.DataType] = {}
    equal: list[tuple[Path, Path]] = []
    for node in walk(query.tree.pattern):
        for operand, kind in told(query, node):
            for path in filter(None, [path_of(operand)]):
                kinds.setdefault(path, kind)
        if isinstance(node, syntax.Compare | syntax.In | syntax.Between):
            equal += itertools.pairwise(path for operand in node.children() if (path := path_of(operand)))
    for _ in equal:
        for first, second in equal:
            known = kinds.get(first, kinds.get(second))
            if known is not None:
                kinds.setdefault(first, known)
                kinds.setdefault(second, known)
    return kinds


def told(query: cepheid.Query, node: syntax.Node) -> Iterator[tuple[object, pa.DataType]]:
    """The nodes whose types a node tells, with these types."""
    match node:
        case syntax.Compare() | syntax.In() | syntax.Between():
            operands = list(node.children())
            kind = next((known for operand in operands if (known := value_type(query, operand)) is not None), None)
            if kind is not None and pa.types.is_duration(kind):
                differences = [operand for operand in operands if isinstance(operand, syntax.Arithmetic)]
                yield from ((side, INSTANT) for difference in differences for side in difference.children())
            elif kind is not None:
                yield from ((operand, kind) for operand in operands)
        case syntax.Like(operand=operand):
            yield operand, pa.string()
        case syntax.Call(name=name, arguments=arguments) if name in TEXT_FUNCTIONS:
            yield from ((argument, pa.string()) for argument in arguments)
        case syntax.BooleanAnd(operands=operands) | syntax.BooleanOr(operands=operands):
            yield from ((operand, pa.bool_()) for operand in operands)
        case syntax.Not(operand=operand) | syntax.Local(condition=operand) | syntax.Filter(condition=operand):
            yield operand, pa.bool_()


def value_type(query: cepheid.Query, node: Any) -> pa.DataType | None:
    """The type that a value has by itself; numbers are doubles, which compare with every number."""
    match node:
        case syntax.Number() | syntax.Negative():
            return pa.float64()
        case syntax.Text():
            return pa.string()
        case syntax.Constant(value=bool()):
            return pa.bool_()
        case syntax.Instant(kind="DATE"):
            return pa.date32()
        case syntax.Instant(value=value):
            return INSTANT if value.rstrip().endswith("Z") or "+" in value or value.count("-") > len("--") else pa.timestamp("us")
        case syntax.DurationValue():
            return pa.duration("us")
        case syntax.System(attribute="time"):
            return INSTANT
        case syntax.Call(name=name):
            return pa.string() if name in TEXT_FUNCTIONS - {"length"} else pa.float64()
        case syntax.Parameter(name=name) if name in query.args:
            kind = pa.scalar(query.args[name]).type
            return pa.float64() if pa.types.is_integer(kind) or pa.types.is_decimal(kind) else kind
    return None


def _with_leaf(kind: pa.DataType | None, path: Path, leaf: pa.DataType) -> pa.DataType:
    """A type with a leaf at a path: structs on the way, besides the fields that they had."""
    if not path:
        return leaf
    fields = {field.name: field.type for field in kind} if kind is not None and pa.types.is_struct(kind) else {}
    fields[path[0]] = _with_leaf(fields.get(path[0]), path[1:], leaf)
    return pa.struct(list(fields.items()))
