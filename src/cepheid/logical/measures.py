"""The targets of SELECT: variables, measures, `*` and COUNT(*).

Comes in: the targets as parsed and the bound pattern. Goes out: what is shown of each match, in output order, with the type of every measure.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pyarrow as pa

from cepheid.errors import nearest
from cepheid.language import syntax
from cepheid.language.syntax import Strategy
from cepheid.language.words import write_name
from cepheid.logical import functions, tree, types, variables
from cepheid.logical.context import suggestion
from cepheid.logical.expressions import ExpressionBinder
from cepheid.logical.plan import (
    AGGREGATES,
    Absence,
    Apply,
    Expression,
    Field,
    Index,
    Literal,
    Measure,
    Pattern,
    Time,
    variables_of,
    walk,
)
from cepheid.logical.scopes import OuterScopes, Scope, ways
from cepheid.logical.types import BOOL, DOUBLE, INT64, NULL, Mismatch, describe, type_of
from cepheid.logical.variables import Summary
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from cepheid.errors import BindError, Span
    from cepheid.logical.context import Context

UNSPOKEN = frozenset({"only", "count_distinct"})
"""Aggregates that a query asks for in other words: `x.a`, `count(DISTINCT x.a)`."""

TIME_AGGREGATES = frozenset({"start_time", "end_time", "duration"})
POSITION_COLUMNS = ("start_position", "end_position")
"""The positions of the first and the last event, where a result has them; `start` and `end` alone are free for event types."""

OUTPUT_COLUMNS = ("start_time", "end_time", *POSITION_COLUMNS, "decided_time")
"""Columns that every result can have beside the keys and the targets."""

COUNT_COLUMNS = ("count", "count_overflow")
"""Columns of a result of COUNT(*)."""


@record
class Targets:
    """What SELECT asks for; see `QueryPlan`."""

    variables: tuple[str, ...] = ()
    measures: tuple[Measure, ...] = ()
    count: bool = False


def bind_targets(context: Context, query: syntax.Query, pattern: Pattern) -> Targets:
    """The targets of a query, checked against its pattern; raises BindError."""
    if query.targets is None:
        targets = Targets(variables.shown(pattern))
    elif any(isinstance(target.expression, syntax.Call) and target.expression.star for target in query.targets):
        targets = _count(context, query, query.targets)
    else:
        targets = _listed(context, query.targets, pattern)
    _check_keys(context, query, targets)
    _check_names(context, query, targets)
    return targets


def _count(context: Context, query: syntax.Query, targets: tuple[syntax.Target, ...]) -> Targets:
    star = next(target for target in targets if isinstance(target.expression, syntax.Call) and target.expression.star)
    call = star.expression
    assert isinstance(call, syntax.Call)
    if call.name.lower() != "count":
        raise context.error(f"`{call.name}(*)` has no meaning", star.span, "only COUNT(*) counts matches")
    if len(targets) > 1:
        help_ = "it counts the matches of a trigger: write it alone; the keys of PARTITION BY are columns of the result anyhow"
        raise context.error("COUNT(*) is beside other targets", star.span, help_)
    if query.limit is not None:
        raise context.error("COUNT(*) with LIMIT: matches are counted, not enumerated", star.span, "leave LIMIT out")
    if query.strategy in {Strategy.ANY, Strategy.RESTRICTED}:
        name = query.strategy.value
        raise context.error(f"COUNT(*) with {name}: every trigger has one match", star.span, f"leave {name} out to count all of them")
    if star.name is not None and star.name != "count":
        raise context.error("COUNT(*) cannot be renamed", star.place("name"), "its column is `count`")
    return Targets(count=True)


def _listed(context: Context, targets: tuple[syntax.Target, ...], pattern: Pattern) -> Targets:
    scope = Scope(context, Summary(pattern), OuterScopes())
    names: list[str] = []
    found: list[Measure] = []
    for position, target in enumerate(targets):
        if not isinstance(target.expression, syntax.Word):
            found.append(_measure(context, target, scope, position))
            continue
        name = target.expression.name
        if target.name is not None:
            raise context.error(
                f"the variable `{name}` cannot be renamed in SELECT", target.span, "rename it in the pattern, with AS there"
            )
        scope.supplier(target.expression)
        names.append(name)
    if names and found:
        first = next(target for target in targets if isinstance(target.expression, syntax.Word))
        fact = f"the variable `{names[0]}` is beside measures: measures give one row per match, variables give one per projection"
        raise context.error(fact, first.span, f"write measures alone, as in first({names[0]}.a), or variables alone")
    return Targets(tuple(names), tuple(found))


def bind_having(context: Context, query: syntax.Query, pattern: Pattern, targets: Targets) -> Measure | None:
    """The condition of HAVING over measures, and over targets by their names; None without one. Raises BindError."""
    if query.having is None:
        return None
    scope = Scope(context, Summary(pattern), OuterScopes())
    bound = HavingBinder(context, scope, targets=targets, keys=query.partition_by).condition(query.having)
    if query.strategy is Strategy.RESTRICTED and variables_of(bound):
        raise context.error(
            "RESTRICTED gives any of the matches with one interval, and HAVING asks for their events",
            query.having.span,
            "conditions on events go in a FILTER; HAVING has start_time(), end_time() and duration() here",
        )
    return Measure("HAVING", bound, BOOL)


def _measure(context: Context, target: syntax.Target, scope: Scope, position: int) -> Measure:
    bound = MeasureBinder(context, scope).value(target.expression)
    if type_of(bound) == NULL:
        bound = types.convert(bound, INT64)
    return Measure(target.name or default_name(target.expression, position), bound, _shown_type(bound, context.schema.time_type))


def _shown_type(expression: Expression, time: pa.DataType | None) -> pa.DataType:
    """The type of a measure's column: instants in the zone of the columns they are computed from, in UTC where these have several."""
    kind = type_of(expression)
    if pa.types.is_list(kind) and isinstance(expression, Apply) and expression.operator == "collect":
        return pa.list_(_shown_type(expression.arguments[0], time))
    if not pa.types.is_timestamp(kind) or kind.tz is None:
        return kind
    zones = {source.tz for source in _sources(expression, time) if pa.types.is_timestamp(source) and source.tz is not None}
    return pa.timestamp(kind.unit, zones.pop()) if len(zones) == 1 else kind


def _sources(expression: Expression, time: pa.DataType | None) -> Iterator[pa.DataType]:
    """The types of the columns that are read."""
    for node in walk(expression):
        if isinstance(node, Field):
            yield node.source
        elif isinstance(node, Time) or (isinstance(node, Apply) and node.operator in TIME_AGGREGATES):
            assert time is not None
            yield time


def default_name(expression: syntax.Expression, position: int) -> str:
    """The column of a measure without AS: `x.id` is x_id, `first(y.t)` is first_y_t, `duration()` is duration, all else measure_<number>."""
    match expression:
        case syntax.Attribute(variable=variable, path=path):
            return "_".join((variable, *path))
        case syntax.System(variable=variable, attribute=attribute):
            return f"{variable}_{attribute}"
        case syntax.Word(name=name):
            return name
        case syntax.Call(name=name, arguments=arguments) if len(arguments) <= 1:
            inner = [default_name(argument, -1) for argument in arguments]
            if "" not in inner:
                return "_".join((name.lower(), *["distinct"] * expression.distinct, *inner))
    return f"measure_{position + 1}" if position >= 0 else ""


def _check_keys(context: Context, query: syntax.Query, targets: Targets) -> None:
    """No partition key has the name of a column that every result has, or every result of COUNT(*)."""
    for number, key in enumerate(query.partition_by):
        if key in OUTPUT_COLUMNS or (targets.count and key in COUNT_COLUMNS):
            whose = "every result has" if key in OUTPUT_COLUMNS else "COUNT(*) gives"
            fact = f"the output would have two columns named `{key}`: the partition key, and one that {whose}"
            raise context.error(fact, query.place("partition_by", number), "rename the column in the input")


def _check_names(context: Context, query: syntax.Query, targets: Targets) -> None:
    """No two columns of the output have one name."""
    taken = {
        **dict.fromkeys(OUTPUT_COLUMNS, "every result has that column"),
        **dict.fromkeys(query.partition_by, "a partition key has that name"),
    }
    columns = [*targets.variables, *(measure.name for measure in targets.measures)]
    time_measures = {measure.name for measure in targets.measures if _is_call_of(measure.expression, measure.name)}
    for name in columns:
        if name in taken and not (name in OUTPUT_COLUMNS and name in time_measures):
            place = _place_of(query, name) or query.span
            fact = f"the output would have two columns named `{name}`: {taken[name]}"
            there = ("or leave it out: every key is a column of the result, and an attribute of what EVENT makes, anyhow",)
            raise context.error(
                fact, place, f"rename this one: AS {_free(name, {*taken, *columns})}", *(there if name in query.partition_by else ())
            )
        taken[name] = "another target has that name"


def _is_call_of(expression: Expression, name: str) -> bool:
    """Whether a measure is `name()`: start_time() may be called start_time, for it is that column."""
    return isinstance(expression, Apply) and expression.operator == name


def _free(name: str, taken: set[str]) -> str:
    return next(new for number in range(2, len(taken) + 3) if (new := f"{name}_{number}") not in taken)


def _place_of(query: syntax.Query, name: str) -> Span | None:
    """The last target that gives a column its name, or what does in the pattern."""
    for position, target in reversed(list(enumerate(query.targets or ()))):
        if name == (target.name or default_name(target.expression, position)):
            return target.span
    for node in _nodes(query.pattern):
        if (isinstance(node, syntax.Named) and node.variable == name) or (isinstance(node, syntax.Type) and node.name == name):
            return node.span
    return None


def _nodes(node: syntax.Node) -> list[syntax.Node]:
    return [node, *(below for child in node.children() for below in _nodes(child))]


class MeasureBinder(ExpressionBinder):
    """Binds the expressions of SELECT: a plain attribute is that of the only event, calls are aggregates or functions of them."""

    def attribute(self, node: syntax.Attribute) -> Expression:
        """`x.a`: x must hold exactly one event."""
        self._not_previous(node)
        return self._only(node.variable, node.span, self._leaf(node))

    def _leaf(self, node: syntax.Attribute | syntax.System) -> Expression:
        """The events' own value; a column of NULLs counts as int64."""
        leaf = ExpressionBinder(self.context, self.scope).value(node)
        if isinstance(leaf, Index):
            raise self.error("`$index` cannot be a measure", node.span, "every match has the positions of its events")
        return types.convert(leaf, INT64) if type_of(leaf) == NULL else leaf

    def system(self, node: syntax.System) -> Expression:
        """`x.$time`, as `x.a`."""
        self._not_previous(node)
        return self._only(node.variable, node.span, self._leaf(node))

    def _not_previous(self, node: syntax.Attribute | syntax.System) -> None:
        if node.previous:
            raise self.error("prev(..) can only be in a FILTER", node.span, f"write first({node.variable}.a) or last({node.variable}.a)")

    def _only(self, variable: str, span: Span, leaf: Expression) -> Expression:
        least, most = self.scope.filtered.variable_sizes[variable]
        if (least, most) != (1, 1):
            number = "no event" if least == 0 else "several events"
            written = self.context.text[span.start : span.end] or f"{variable}.a"
            help_ = f"say which: first({written}) or last({written})"
            raise self.error(f"`{variable}` can hold {number}, a measure needs exactly one", span, help_)
        return Apply("only", (leaf,), type_of(leaf), span=span)

    def bracketed(self, node: syntax.Local) -> Expression:
        """`x[..]` is no measure."""
        raise self.error("`x[..]` is a condition, SELECT takes variables and measures", node.span, "put it in a FILTER")

    def word(self, node: syntax.Word) -> Expression:
        """A variable where a value is asked for."""
        fact = f"`{node.name}` is where a value is needed"
        raise self.error(fact, node.span, f"write an attribute of it, as in {node.name}.a, or count({node.name})")

    def call(self, node: syntax.Call) -> Expression:
        """An aggregate, or a function of measures."""
        name = node.name.lower()
        if name == "count" and node.distinct and len(node.arguments) == 1:
            return self._aggregate("count_distinct", node.arguments[0], node.span)
        self.refuse_distinct(node)
        if name in functions.FUNCTIONS:
            return self.function(name, node)
        if name == "lag":
            raise self.error(
                "lag(..) can only be in a FILTER",
                node.span,
                "show the event before as part of the match: `ANY AS before : T AS t` for `T AS t`, and before.a",
            )
        if name == "deadline_time":
            return self._deadline(node)
        if name not in AGGREGATES or name in UNSPOKEN:
            help_ = functions.unknown(name, measures=AGGREGATES.keys() - UNSPOKEN)
            raise self.error(f"unknown measure `{node.name}`", node.place("name"), *help_)
        if name in TIME_AGGREGATES:
            return self._time_aggregate(name, node)
        if name in {"first", "last"} and len(node.arguments) == 2:
            return self._nth(name, *node.arguments, span=node.span)
        if len(node.arguments) != 1:
            raise self._number_of_arguments(name, len(node.arguments))
        return self._count_events(node) if name == "count" else self._aggregate(name, node.arguments[0], node.span)

    def _number_of_arguments(self, name: str, given: int) -> Mismatch:
        """What to say of an aggregate without its argument, or with several, as those of SQL's greatest and least."""
        way = f"write {name}({'x' if name == 'count' else 'x.a'})"
        if given == 2 and name in {"min", "max"}:
            way += f", or for two values CASE WHEN x.a {'<' if name == 'min' else '>'} x.b THEN x.a ELSE x.b END"
        return Mismatch(f"`{name}` takes 1 argument, here are {given}", way)

    def _nth(self, name: str, node: syntax.Expression, number: syntax.Expression, *, span: Span) -> Expression:
        """`first(x.a, n)`: of the n-th event, NULL where there are fewer."""
        found = self._aggregate(name, node, span)
        assert isinstance(found, Apply)
        bound = ExpressionBinder(self.context, self.scope).value(number)
        if isinstance(number, syntax.Parameter) and self.context.is_open(number):
            return dataclasses.replace(found, arguments=(*found.arguments, bound))
        whole = isinstance(bound, Literal) and isinstance(bound.value, int) and type_of(bound) == INT64
        if not whole or not isinstance(bound, Literal) or not isinstance(bound.value, int) or bound.value < 1:
            help_ = f"{name}(x.a, 2) is the value of the {'second' if name == 'first' else 'last but one'} event of x"
            raise self.error(f"the second argument of `{name}` is a whole number, 1 or more", number.span, help_)
        return found if bound.value == 1 else dataclasses.replace(found, arguments=(*found.arguments, bound))

    def _deadline(self, node: syntax.Call) -> Expression:
        """`deadline_time()`: up to when what must not follow was waited for; the latest, where there are several."""
        if node.arguments:
            raise Mismatch("`deadline_time` takes no argument", "write deadline_time()")
        absences = [each for each in tree.walk(self.scope.filtered.pattern) if isinstance(each, Absence)]
        if not absences:
            raise self.error(
                "`deadline_time()` is that of NOT FOLLOWED BY, and the pattern has none",
                node.span,
                "end_time() is the time of the last event",
            )
        kind = self.context.schema.time_type
        assert kind is not None, "NOT FOLLOWED BY needs times"
        value = types.time_value_type(kind)
        longest = (
            max((each.duration if each.deadline is None else each.deadline for each in absences if each.from_start is start), default=-1)
            for start in (False, True)
        )
        return Apply("deadline_time", tuple(Literal(steps, INT64) for steps in longest), value)

    def _time_aggregate(self, name: str, node: syntax.Call) -> Expression:
        if node.arguments:
            raise Mismatch(f"`{name}` takes no argument", f"write {name}()")
        kind = self.context.schema.time_type
        if kind is None:
            raise self.error(f"`{name}()` needs a time column, the events have none", node.span, self.context.name_time)
        kind = types.time_value_type(kind)
        if name == "duration" and kind != INT64:
            kind = pa.duration(types.finest({kind}))
        return Apply(name, (), kind)

    def _count_events(self, node: syntax.Call) -> Expression:
        (argument,) = node.arguments
        owners = () if not isinstance(argument, syntax.Word) or self._is_variable(argument) else self.scope.owners(argument.name)
        if owners or not isinstance(argument, syntax.Word):
            help_ = f"write {ways(owners, lambda owner: f'count({owner})')}, without an attribute"
            raise self.error("`count` counts the events of a variable", argument.span, help_)
        self.scope.supplier(argument)
        return Apply("count", (Field(argument.name, (), INT64, INT64, span=argument.span),), INT64)

    def _aggregate(self, name: str, node: syntax.Expression, span: Span) -> Expression:
        if not isinstance(node, syntax.Attribute | syntax.System):
            raise self._no_attribute(name, node)
        self._not_previous(node)
        leaf = self._leaf(node)
        kind = type_of(leaf)
        allowed, result = _AGGREGATE_TYPES[name]
        if not allowed(kind):
            raise self.error(f"`{name}` does not take {describe(kind)}", span, f"it takes {_TAKES[name]}")
        if name == "sum" and pa.types.is_decimal(kind):
            result = pa.decimal128(types.DECIMAL_DIGITS, kind.scale)
        if name == "collect":
            result = pa.list_(kind)
        return Apply(name, (leaf,), kind if result is None else result)

    def _no_attribute(self, name: str, node: syntax.Expression) -> BindError:
        """The error for an aggregate of anything but an attribute of a variable."""

        def call(written: str) -> str:
            return f"count(DISTINCT {written})" if name == "count_distinct" else f"{name}({written})"

        help_ = f"write {call('x.a')}, and compute with its value"
        if isinstance(node, syntax.Case):
            help_ = "give the events that count a name of their own, as in (A AS a OR (ANY AS o FILTER o.type != 'A'))+, and write count(a)"
        if isinstance(node, syntax.Word):
            attributes = self.context.schema.attributes
            attribute = node.name if node.name in attributes else nearest(node.name, attributes) or node.name
            owners = self.scope.owners(attribute)
            if self._is_variable(node):
                help_ = f"write an attribute of it, as in {call(f'{write_name(node.name)}.a')}"
            elif owners:
                help_ = f"write {ways(owners, lambda owner: call(f'{owner}.{write_name(attribute)}'))}"
        return self.error(f"`{call('').partition('(')[0]}` takes an attribute of a variable", node.span, help_)

    def _is_variable(self, node: syntax.Word) -> bool:
        return node.name in self.scope.filtered.variable_sizes


ABOUT_TRIGGERS = "COUNT(*) counts the matches of a trigger, HAVING judges each match"
COUNT_HELP = "count the events of a variable, as in count(x), or filter the rows of SELECT COUNT(*)"


class HavingBinder(MeasureBinder):
    """Binds the condition of HAVING: measures, and names of targets in their place."""

    def __init__(self, context: Context, scope: Scope, *, targets: Targets, keys: tuple[str, ...]) -> None:
        super().__init__(context, scope)
        self._targets = {target.name: target.expression for target in targets.measures}
        self._count, self._keys = targets.count, keys

    def word(self, node: syntax.Word) -> Expression:
        """The name of a target; a variable is no value."""
        known = self._targets.get(node.name)
        if known is not None:
            return known
        if self._is_variable(node):
            return super().word(node)
        if self._count and node.name == "count":
            raise self.error(ABOUT_TRIGGERS, node.span, COUNT_HELP)
        if node.name in self._keys:
            raise self.error(f"`{node.name}` is a key, and no measure", node.span, f"write that of an event, as in first(x.{node.name})")
        owner = next(iter(self.scope.owners(node.name)), None)
        write = f"write a measure, as in {'count(x) or max(x.a)' if owner is None else f'max({owner}.{write_name(node.name)})'}"
        known_as = suggestion(node.name, self._targets, what="the measures of SELECT are")
        help_ = (*known_as, f"{write}, or give one this name: SELECT .. AS {write_name(node.name)}") if known_as else (write,)
        raise self.error(f"`{node.name}` is no measure of SELECT", node.span, *help_)

    def call(self, node: syntax.Call) -> Expression:
        """A measure; COUNT(*) is about a trigger, not about a match."""
        if node.star:
            raise self.error(ABOUT_TRIGGERS, node.span, COUNT_HELP)
        return super().call(node)

    def bracketed(self, node: syntax.Local) -> Expression:
        """`x[..]` is a condition on events."""
        raise self.error("`x[..]` is a condition on events, HAVING takes measures", node.span, "put it in a FILTER, or write max(x.a) > 0")

    def no_pattern_among(self, operands: Iterable[syntax.Expression], operator: str) -> None:
        """Words are names of targets here."""


def _ordered(kind: pa.DataType) -> bool:
    return types.family(kind) not in {"nested", "NULL"} and kind != BOOL


_AGGREGATE_TYPES: Mapping[str, tuple[Callable[[pa.DataType], bool], pa.DataType | None]] = {
    "first": (lambda _: True, None),
    "last": (lambda _: True, None),
    "min": (_ordered, None),
    "max": (_ordered, None),
    "sum": (types.is_number, None),
    "avg": (types.is_number, DOUBLE),
    "stddev": (types.is_number, DOUBLE),
    "count_distinct": (lambda kind: types.family(kind) != "nested", INT64),
    "collect": (lambda _: True, None),
}
"""Per aggregate: the types it takes, and the type of its value (None: that of its argument)."""

_TAKES: Mapping[str, str] = {
    "min": "numbers, texts and times",
    "max": "numbers, texts and times",
    "sum": "numbers",
    "avg": "numbers",
    "stddev": "numbers",
    "count_distinct": "values that can be equal, as numbers and texts",
}
