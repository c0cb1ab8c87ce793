"""A schema that a query could be about, from the query alone: for `explain`, `check` and `draw` without events.

Comes in: a query. Goes out: an `EventSchema`. The type of an attribute is guessed from what is next to it: a literal, LIKE, a difference of times, a
place where a condition must be. Comparisons carry types from one attribute to another. Without any hint, an attribute is a double.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from cepheid.engine.input.sources import used_types
from cepheid.errors import BindError, LimitError
from cepheid.language import syntax
from cepheid.logical.calendar import PARTS
from cepheid.logical.parameters import duration_from
from cepheid.schema import DEFAULT_TIME, DEFAULT_TYPE, EventSchema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cepheid.logical.plan import QueryPlan


Path = tuple[str, ...]


class Written(Protocol):
    """A query as it was written: its tree, and the values of its parameters by name."""

    @property
    def tree(self) -> syntax.Query:
        """The syntax tree."""

    @property
    def args(self) -> Mapping[str, Any]:
        """The values of its parameters."""


class Bindable(Written, Protocol):
    """A query that can be bound."""

    def bound(self, schema: EventSchema, *, partial: bool = False) -> QueryPlan:
        """Its plan, with types."""


INSTANT = pa.timestamp("us", "UTC")

SAME_TYPE = frozenset({"lag", "first", "last", "min", "max"})
"""Calls whose value has the type of their argument."""

TEXT_FUNCTIONS = frozenset({"length", "lower", "upper", "concat"})


def likely_schema(query: Written) -> EventSchema:
    """The schema of events that the query could be about: a type column, a time column, and the attributes with the types that it tells."""
    parts, made = _parts(query.tree), {name for definition in query.tree.definitions for name in definition.attributes}
    bare = any(duration.unit is None for duration in durations(query))
    attributes: dict[str, pa.DataType] = {DEFAULT_TYPE: pa.string(), DEFAULT_TIME: pa.int64() if bare else INSTANT}
    kinds = attribute_types(query)
    # Only where a part speaks of events that are made can a name be that of one of their attributes.
    names = {definition.name for definition in query.tree.definitions}
    hidden = [made if names & used_types(part) else set() for part in map(_alone, parts)]
    attributes |= {
        key: kinds.get((key,), pa.string()) for part, own in zip(parts, hidden, strict=True) for key in part.partition_by if key not in own
    }
    paths = [path for part, own in zip(parts, hidden, strict=True) for path in _paths(part) if path[0] not in own]
    for path in dict.fromkeys(paths):
        if path[0] in (DEFAULT_TYPE, DEFAULT_TIME) or (len(path) == 1 and path[0] in attributes):
            continue
        known = attributes.get(path[0])
        attributes[path[0]] = _with_leaf(known if len(path) > 1 else None, path[1:], kinds.get(path, pa.float64()))
    types = used_types(query.tree)
    return EventSchema(
        attributes, type_column=DEFAULT_TYPE, types={name: frozenset(attributes) for name in types} or None, time_column=DEFAULT_TIME
    )


def error_of_all(query: Bindable) -> BindError | None:
    """The mistake in a query that no schema of events puts right; None where there is none, or types may be what is wrong.

    That is an error that stays the same, whatever type all attributes have. Parameters need no values.
    """
    likely = likely_schema(query)
    found = _bind_error(query, likely)
    if found is None:
        return None
    # Durations decide what a time can be.
    times = (likely.attributes[DEFAULT_TIME],) if any(durations(query)) else (INSTANT, pa.int64())
    others = (_bind_error(query, _of_one_type(likely, kind, time)) for kind in ANY_TYPE for time in times)
    same = all(other is not None and (other.fact, other.span) == (found.fact, found.span) for other in others)
    return found if same else None


ANY_TYPE = (pa.float64(), pa.string(), pa.bool_(), INSTANT)
"""Types of which no two allow the same."""


def _bind_error(query: Bindable, schema: EventSchema) -> BindError | None:
    try:
        query.bound(schema, partial=True)
    except BindError as error:
        return error
    return None


def _of_one_type(schema: EventSchema, kind: pa.DataType, time: pa.DataType) -> EventSchema:
    """The same attributes, all of one type but for those of the type and the time."""
    own = {DEFAULT_TYPE: pa.string(), DEFAULT_TIME: time}
    attributes = {name: own.get(name) or _leaves(known, kind) for name, known in schema.attributes.items()}
    return dataclasses.replace(schema, attributes=attributes)


def _leaves(known: pa.DataType, kind: pa.DataType) -> pa.DataType:
    """`kind`, or a struct with it at the same places."""
    return pa.struct([field.with_type(_leaves(field.type, kind)) for field in known]) if pa.types.is_struct(known) else kind


def _parts(tree: syntax.Query) -> list[syntax.Query]:
    """The queries of EVENT definitions, and the query itself."""
    return [*(definition.query for definition in tree.definitions), tree]


def _alone(tree: syntax.Query) -> syntax.Query:
    """A query without the definitions before it."""
    return dataclasses.replace(tree, definitions=())


def _paths(tree: syntax.Query) -> Iterator[Path]:
    """The attributes that a query speaks of. Behind the pattern, words are variables and names of measures."""
    behind = (node for each in _behind(tree) for node in walk(each) if not isinstance(node, syntax.Word))
    yield from filter(None, map(path_of, itertools.chain(walk(tree.pattern), behind)))


def _behind(tree: syntax.Query) -> tuple[syntax.Node, ...]:
    """What stands outside of the pattern."""
    return (*(tree.targets or ()), *_having(tree))


def _having(tree: syntax.Query) -> tuple[syntax.Expression, ...]:
    return () if tree.having is None else (tree.having,)


def durations(query: Written) -> Iterator[syntax.Duration]:
    """The durations of a query, also those that parameters stand for."""
    for node in walk(query.tree):
        if isinstance(node, syntax.Duration):
            yield node
        written = (
            (node.lower, node.upper) if isinstance(node, syntax.Interval) else (node.duration,) if isinstance(node, syntax.Absence) else ()
        )
        for parameter in written:
            if isinstance(parameter, syntax.Parameter) and parameter.name in query.args:
                with contextlib.suppress(LimitError):  # which binding raises
                    found = duration_from(query.args[parameter.name])
                    yield from () if found is None else (found,)


def walk(node: syntax.Node) -> Iterator[syntax.Node]:
    """A node and everything below it."""
    yield node
    for child in node.children():
        yield from walk(child)


def path_of(node: object) -> Path:
    """The path of an attribute, lagged or not, or of one of the values that a variable has; of everything else nothing."""
    if isinstance(node, syntax.Call) and node.name.lower() in SAME_TYPE and node.arguments:
        return path_of(node.arguments[0])
    if isinstance(node, syntax.Attribute):
        return node.path
    return (node.name,) if isinstance(node, syntax.Word) else ()


def attribute_types(query: Written) -> dict[Path, pa.DataType]:
    """The types that the conditions of the pattern tell."""
    kinds: dict[Path, pa.DataType] = {}
    equal: list[tuple[Path, Path]] = []
    written = [node for part in _parts(query.tree) for node in (part.pattern, *(part.targets or ()))]
    nodes: list[tuple[syntax.Node, dict[Path, list[Path]]]] = [(node, {}) for each in written for node in walk(each)]
    for part in _parts(query.tree):
        # In HAVING the name of a measure stands for it.
        named: dict[Path, list[Path]] = {
            (target.name,): _paths_of(target.expression) for target in part.targets or () if target.name is not None
        }
        nodes += [(node, named) for each in _having(part) for node in walk(each)]
    for node, names in nodes:
        for operand, kind in told(query, node):
            for path in _paths_of(operand):
                for meant in names.get(path, [path]):
                    kinds.setdefault(meant, kind)
        if isinstance(node, syntax.Compare | syntax.In | syntax.Between):
            equal += itertools.pairwise(path for operand in node.children() if (path := path_of(operand)))
    for _ in equal:
        for first, second in equal:
            known = kinds.get(first, kinds.get(second))
            if known is not None:
                kinds.setdefault(first, known)
                kinds.setdefault(second, known)
    # What is compared with each other alone is a whole number, as keys are.
    return kinds | {path: pa.int64() for pair in equal for path in pair if path not in kinds}


def told(query: Written, node: syntax.Node) -> Iterator[tuple[object, pa.DataType]]:
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
        case syntax.Case(branches=branches):
            values = _values_of(node)
            known = next((found for value in values if (found := value_type(query, value)) is not None), None)
            yield from ((branch.condition, pa.bool_()) for branch in branches)
            if known is not None:
                yield from ((value, known) for value in values)
        case syntax.Like(operand=operand):
            yield operand, pa.string()
        case syntax.Call(name=name, arguments=arguments) if name in TEXT_FUNCTIONS:
            yield from ((argument, pa.string()) for argument in arguments)
        case syntax.Call(name=name, arguments=arguments) if name.lower() in PARTS:
            yield from ((argument, INSTANT) for argument in arguments[:1])
        case syntax.BooleanAnd(operands=operands) | syntax.BooleanOr(operands=operands):
            yield from ((operand, pa.bool_()) for operand in operands)
        case syntax.Not(operand=operand) | syntax.Local(condition=operand) | syntax.Filter(condition=operand):
            yield operand, pa.bool_()


def _paths_of(node: object) -> list[Path]:
    """The paths of what a node gives: of a CASE those of its values."""
    found = map(path_of, _values_of(node)) if isinstance(node, syntax.Case) else [path_of(node)]
    return [path for path in found if path]


def _values_of(node: syntax.Case) -> list[syntax.Expression]:
    """What a CASE may give."""
    return [*(branch.value for branch in node.branches), *([] if node.otherwise is None else [node.otherwise])]


def value_type(query: Written, node: Any) -> pa.DataType | None:
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
        case syntax.Case():
            return next((known for value in _values_of(node) if (known := value_type(query, value)) is not None), None)
        case syntax.Call(name=name) if name.lower() not in SAME_TYPE:
            return pa.string() if name in TEXT_FUNCTIONS - {"length"} else pa.float64()
        case syntax.Parameter(name=name) if name in query.args:
            return given_type(query.args[name])
    return None


def given_type(given: object) -> pa.DataType | None:
    """The type that the value of a parameter has by itself, or the values of a list; None for NULL, and for what is no value."""
    if isinstance(given, list):
        return next((kind for kind in map(given_type, given) if kind is not None), None)
    if given is None or (isinstance(given, int | Decimal) and not isinstance(given, bool)):
        return None if given is None else pa.float64()
    try:
        return pa.scalar(given).type
    except (pa.ArrowException, OverflowError):
        return None


def _with_leaf(kind: pa.DataType | None, path: Path, leaf: pa.DataType) -> pa.DataType:
    """A type with a leaf at a path: structs on the way, besides the fields that they had."""
    if not path:
        return leaf
    fields = {field.name: field.type for field in kind} if kind is not None and pa.types.is_struct(kind) else {}
    fields[path[0]] = _with_leaf(fields.get(path[0]), path[1:], leaf)
    return pa.struct(list(fields.items()))
