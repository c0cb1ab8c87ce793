"""Conditions and values: from the syntax tree to typed expressions with every cast written out.

Comes in: an expression as parsed, and its scope. Goes out: a `plan.Expression`; operators on constants are computed. The meaning of values is in
language.md (Values); `types` and `functions` decide which types fit together.
"""

from __future__ import annotations

import dataclasses
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cepheid.errors import LimitError
from cepheid.language import syntax
from cepheid.language.syntax import NO_SPAN
from cepheid.language.words import write_name
from cepheid.logical import calendar, constants, functions, parameters, time_zones, types
from cepheid.logical.describe import describe_expression
from cepheid.logical.folding import fold
from cepheid.logical.plan import AGGREGATES, Apply, Expression, Field, Index, Lag, Literal, Open, Time, lag_column, leaves
from cepheid.logical.scopes import attribute, holder, ways
from cepheid.logical.types import BOOL, INT64, NULL, TEXT, Mismatch, describe, type_of
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cepheid.errors import BindError, Span
    from cepheid.logical.context import Context
    from cepheid.logical.scopes import Scope
    from cepheid.logical.variables import Summary


MAX_LAG = 100_000
"""The greatest n of `lag(x.a, n)`: a stream keeps so many events of each partition for it."""


@record
class Local:
    """The variable of `x[..]`, and what supplies it."""

    variable: str
    supplier: Summary


class ExpressionBinder:
    """Binds the expressions of one scope; `local` is set inside `x[..]`, `lag` inside `lag(.., n)`: to its n."""

    def __init__(self, context: Context, scope: Scope, *, local: Local | None = None, lag: int = 0) -> None:
        self.context = context
        self.scope = scope
        self.local = local
        self.lag = lag

    def condition(self, node: syntax.Expression) -> Expression:
        """An expression that must be TRUE or FALSE; raises BindError for any other type."""
        bound = self.value(node)
        if type_of(bound) == NULL:
            self.context.warn("the condition NULL is never true", node.span, "write a comparison")
            return types.convert(bound, BOOL)
        if type_of(bound) != BOOL:
            raise self.error(f"a condition is TRUE or FALSE, this is {describe(type_of(bound))}", node.span, "compare it with something")
        return bound

    def value(self, node: syntax.Expression) -> Expression:
        """An expression of any type, with its place; constants are computed. Raises BindError."""
        try:
            bound = fold(HANDLERS[type(node)](self, node))
        except Mismatch as found:
            raise self.error(found.fact, node.span, *found.help) from None
        return bound if bound.span != NO_SPAN else dataclasses.replace(bound, span=node.span)

    def error(self, fact: str, span: Span, *help: str) -> BindError:  # noqa: A002 - the word that the message prints
        """A BindError at a place of the query."""
        return self.context.error(fact, span, *help)

    # ------------------------------------------------------------------------------------------------------------------ constants

    def number(self, node: syntax.Number) -> Expression:
        """`1`, `2.5`, `1e3`."""
        return constants.number(node.text, node.span)

    def text(self, node: syntax.Text) -> Expression:
        """`'it''s'`."""
        return Literal(node.value, TEXT)

    def constant(self, node: syntax.Constant) -> Expression:
        """`TRUE`, `FALSE`, `NULL`."""
        return Literal(node.value, NULL if node.value is None else BOOL)

    def instant(self, node: syntax.Instant) -> Expression:
        """`DATE '..'`, `TIMESTAMP '..'`."""
        return (constants.date if node.kind == "DATE" else constants.timestamp)(node.value, node.span)

    def duration(self, node: syntax.DurationValue) -> Expression:
        """`5m` as a value."""
        if node.duration.unit is None:
            return constants.number(f"{node.duration.value:f}", node.span)
        return constants.duration(node.duration, node.span)

    def parameter(self, node: syntax.Parameter) -> Expression:
        """`:name`."""
        if self.context.is_open(node):
            return Literal(Open(parameters.text_of(node)), NULL, span=node.span, parameter=node.name)
        value = parameters.value_of(self.context, node)
        if isinstance(value, list | tuple | range):
            help_ = f"a list comes after IN, without parentheses: x.a IN {parameters.text_of(node)}"
            raise Mismatch(f"`:{node.name}` is {parameters.shown(value)}, but one value is needed here", help_)
        return constants.parameter(node.name, value, node.span)

    # ---------------------------------------------------------------------------------------------------------------------- leaves

    def word(self, node: syntax.Word) -> Expression:
        """A name alone: an attribute inside `x[..]`, an error anywhere else."""
        if self.local is not None:
            return self.field(self.local.variable, (node.name,), node.span, self.local.supplier)
        if self.context.is_type(node.name):
            fact = f"`{node.name}` is an event type, not a condition"
            raise self.error(fact, node.span, f"write a condition on its events, as in {node.name}.a > 0")
        if node.name.lower() in functions.CLOCK and node.name not in self.context.schema.attributes:
            raise self.error(f"there is no `{node.name}`", node.span, functions.NO_CLOCK)
        if node.name in self.scope.filtered.defined:
            help_ = f"write an attribute of it, as in {write_name(node.name)}.a > 0"
            raise self.error(f"`{node.name}` is a variable, not a value", node.span, help_)
        if node.name in self.context.measures:
            help_ = "HAVING judges measures: write it behind the pattern, HAVING and the condition"
            raise self.error(f"`{node.name}` is a measure of SELECT", node.span, help_)
        name = write_name(node.name)
        written = ways(self.scope.owners(node.name), lambda owner: f"{owner}.{name}", lambda owner: f"{owner}[{name} > 0]")
        help_ = f"write the variable before it, as in {written}"
        raise self.error(f"`{node.name}` stands alone: an attribute of which variable?", node.span, help_)

    def attribute(self, node: syntax.Attribute) -> Expression:
        """`x.a`, `x.path.to.field`, `prev(x).a`; inside `x[..]` a path from an attribute."""
        if self.local is not None:
            return self._local_path(node, self.local)
        supplier = self.scope.supplier(node)
        return self.field(node.variable, node.path, node.span, supplier, previous=node.previous, places=dict(node.places).get("path", ()))

    def _local_path(self, node: syntax.Attribute, local: Local) -> Expression:
        schema = self.context.schema
        if not node.previous and (node.variable in schema.attributes or node.variable in schema.unreadable):
            places = tuple(place for _, found in node.places for place in found)
            return self.field(local.variable, (node.variable, *node.path), node.span, local.supplier, places=places)
        raise self._not_local(".".join((node.variable, *node.path)), node.span, local)

    def _not_local(self, written: str, span: Span, local: Local) -> BindError:
        return self.error(
            f"a condition in {local.variable}[..] can only use the attributes of `{local.variable}`",
            span,
            f"write attributes without a variable, and conditions on `{written}` outside the brackets",
        )

    def field(
        self,
        variable: str,
        path: tuple[str, ...],
        span: Span,
        supplier: Summary,
        *,
        previous: bool = False,
        places: tuple[Span, ...] = (),
    ) -> Expression:
        """An attribute of a variable; one that has no canonical type keeps its own, for IS NULL. places: of the names of the path."""
        # Of an event before x nobody knows the type.
        types = {None} if self.lag else supplier.types[variable]
        owner = f"the events before `{variable}`" if self.lag else holder(variable, types)
        kind, source = attribute(self.context, types, owner, path, places or (span,) * len(path))
        kind = source if kind is None else kind
        if self.lag:
            column = (lag_column(path[0], self.lag), *path[1:])
            return Lag(variable, column, kind, source, previous, path[0], self.lag, span=span)
        return Field(variable, path, kind, source, previous, span=span)

    def system(self, node: syntax.System) -> Expression:
        """`x.$time`, `x.$index`."""
        if self.local is not None:
            raise self._not_local(f"{node.variable}.${node.attribute}", node.span, self.local)
        self.scope.supplier(node)
        if self.lag:
            return self._lagged_system(node)
        if node.attribute == "index":
            return Index(node.variable, INT64, node.previous)
        return self.time(node.variable, node.span, previous=node.previous)

    def _lagged_system(self, node: syntax.System) -> Expression:
        """`lag(x.$time, n)` is the time column of the event n before; of `lag(x.$index, n)` everybody knows the answer."""
        column = self.context.schema.time_column
        if node.attribute == "index":
            raise self.error("`lag` of `$index` is the position itself", node.span, f"write {node.variable}.$index - {self.lag}")
        if column is None:
            return self.time(node.variable, node.span)
        return self.field(node.variable, (column,), node.span, self.scope.supplier(node))

    def time(self, variable: str, span: Span, *, previous: bool = False) -> Expression:
        """The event time of a variable; raises BindError where the events have none."""
        kind = self.context.schema.time_type
        if kind is None:
            raise self.error(
                "`$time` needs a time column, the events have none", span, f"{self.context.name_time}, or compare positions: x.$index"
            )
        return Time(variable, types.time_value_type(kind), previous)

    def bracketed(self, node: syntax.Local) -> Expression:
        """`x[condition over attributes alone]`."""
        if self.local is not None:
            raise self._not_local(f"{node.variable}[..]", node.span, self.local)
        supplier = self.scope.supplier(node)
        bound = type(self)(self.context, self.scope, local=Local(node.variable, supplier)).condition(node.condition)
        return self._about(Local(node.variable, supplier), bound, node.span) if isinstance(bound, Literal) and not bound.value else bound

    def _about(self, local: Local, constant: Literal, span: Span) -> Expression:
        """`x[FALSE]`: still a condition on x, which holds where x is empty."""
        self.context.warn("the condition is FALSE for all events of its variable", span, "check its constants and parameters")
        known = frozenset().union(*map(self.context.schema.attributes_of, local.supplier.types[local.variable]))
        name = next((name for name in self.context.schema.attributes if name in known), None)
        if name is None:
            return constant
        any_attribute = self.field(local.variable, (name,), span, local.supplier)
        return Apply("and", (Literal(False, BOOL, span=span), Apply("is_null", (any_attribute,), BOOL, span=span)), BOOL)

    # ------------------------------------------------------------------------------------------------------------------- operators

    def case(self, node: syntax.Case) -> Expression:
        """`CASE WHEN c THEN a .. END`."""
        conditions = [self.condition(each.condition) for each in node.branches]
        otherwise = Literal(None, NULL) if node.otherwise is None else self.value(node.otherwise)
        values = [*(self.value(each.value) for each in node.branches), otherwise]
        kind = types.common_type(values)
        if kind is None:
            kinds = ", ".join(describe(type_of(value)) for value in values)
            raise Mismatch(f"the values of a CASE have one type, these are {kinds}", functions.CAST)
        kind = INT64 if kind == NULL else kind
        *chosen, last = types.unify(values, kind)
        return Apply("case", (*(part for pair in zip(conditions, chosen, strict=True) for part in pair), last), kind)

    def call(self, node: syntax.Call) -> Expression:
        """A function of the closed table."""
        name = node.name.lower()
        if name == "prev":
            inside = (each for each in node.arguments if isinstance(each, syntax.Attribute))
            written = next((f"prev({each.variable}).{'.'.join(each.path)}" for each in inside), "prev(x).price")
            raise self.error("prev(x) needs an attribute after it", node.span, f"write {written}")
        if name == "lag":
            return self.lagged(node)
        if name in AGGREGATES and name not in functions.INSTEAD:
            call = f"{node.name}({'..' if node.arguments else ''})"
            raise self.error(
                f"`{node.name}` is a measure: it can only be in SELECT and HAVING",
                node.span,
                f"write SELECT {call} AS name, or behind the pattern HAVING and a condition on {call}",
            )
        self.refuse_distinct(node)
        if name not in functions.FUNCTIONS:
            raise self.error(f"unknown function `{node.name}`", node.place("name"), *functions.unknown(name, functions=("lag",)))
        return self.function(name, node)

    def function(self, name: str, node: syntax.Call) -> Expression:
        """A call of one of `FUNCTIONS`; warns of a part of a time that is not the one which a column prints."""
        arguments = tuple(map(self.value, node.arguments))
        if name in calendar.PARTS and len(arguments) == 1:
            kinds = (
                self.context.schema.time_type if isinstance(leaf, Time) else getattr(leaf, "source", None) for leaf in leaves(*arguments)
            )
            zones = {kind.tz for kind in kinds if kind is not None and pa.types.is_timestamp(kind)} - {None, *time_zones.UTC}
            if zones:
                zone, written = min(zones), describe_expression(arguments[0])
                self.context.warn(
                    f"this {name} is that in UTC, and the times have the zone {zone}",
                    node.span,
                    f"write {name}({written}, '{zone}'), or {name}({written}, 'UTC') if you mean this",
                )
        return functions.call(name, arguments)

    def refuse_distinct(self, node: syntax.Call) -> None:
        """Raise BindError for DISTINCT: it is said of count alone, in `MeasureBinder`."""
        if node.distinct:
            raise self.error("DISTINCT has no meaning here", node.span, "it counts different values: count(DISTINCT x.a)")

    def lagged(self, node: syntax.Call) -> Expression:
        """`lag(x.a)`, `lag(x.a, n)`, `x[lag(a) > 1]`: an attribute of any event before, whatever the type of that."""
        if len(node.arguments) not in {1, 2}:
            raise Mismatch(f"`lag` takes an attribute and a number of events, here are {len(node.arguments)} arguments", LAG_HELP)
        argument, *number = node.arguments
        if isinstance(argument, syntax.Call) and argument.name.lower() == "lag":
            raise self.error("`lag` of `lag`", argument.span, "add the numbers of events: lag(lag(x.a), 2) is lag(x.a, 3)")
        is_attribute = isinstance(argument, syntax.Attribute | syntax.System) and not argument.previous
        if not is_attribute and (self.local is None or not isinstance(argument, syntax.Word)):
            name = argument.name if isinstance(argument, syntax.Word) else ""
            owners = self.scope.owners(name)
            help_ = f"write {ways(owners, lambda owner: f'lag({owner}.{name})')}" if owners else LAG_HELP
            raise self.error("`lag` takes an attribute of a variable", argument.span, help_)
        return type(self)(self.context, self.scope, local=self.local, lag=self._lag_steps(*number)).value(argument)

    def _lag_steps(self, node: syntax.Expression | None = None) -> int:
        """The n of `lag(x.a, n)`: a literal or a parameter, for columns are made of it."""
        steps = 1
        if isinstance(node, syntax.Parameter):
            steps = parameters.count(self.context, node, otherwise=MAX_LAG)
        elif node is not None:
            steps = int(node.text) if isinstance(node, syntax.Number) and node.text.isdigit() else 0
        if node is not None and steps < 1:
            said = parameters.said(self.context, node)
            raise self.error("how many events `lag` goes back is a whole number, 1 or more", node.span, LAG_HELP, *said)
        if node is not None and steps > MAX_LAG:
            raise LimitError(
                f"`lag` goes back {steps} events; the limit is {MAX_LAG} (MAX_LAG)",
                help=("compute it into a column", "cepheid.logical.expressions.MAX_LAG is the limit"),
                text=self.context.text or None,
                span=node.span,
            )
        return steps

    def negative(self, node: syntax.Negative) -> Expression:
        """`-e`."""
        if isinstance(node.operand, syntax.Number):
            return constants.number(node.operand.text, node.span, negative=True)
        operand = self.value(node.operand)
        kind = type_of(operand)
        if not (types.is_number(kind) or types.family(kind) in {"duration", "NULL"}):
            raise Mismatch(f"`-` takes a number or a duration, this is {describe(kind)}")
        operand = types.convert(operand, INT64) if kind == NULL else operand
        return Apply("negate", (operand,), type_of(operand))

    def arithmetic(self, node: syntax.Arithmetic) -> Expression:
        """`a + b`."""
        return types.arithmetic(node.operator, self.value(node.left), self.value(node.right))

    def compare(self, node: syntax.Compare) -> Expression:
        """`a <= b`."""
        left, right = self.value(node.left), self.value(node.right)
        self._warn_of_null(node.span, left, right)
        return types.compare(node.operator, left, right)

    def _warn_of_null(self, span: Span, *sides: Expression) -> None:
        if any(map(_is_null, sides)):
            self.context.warn("a comparison with NULL is always FALSE", span, "write IS NULL or IS NOT NULL")

    def is_null(self, node: syntax.IsNull) -> Expression:
        """`e IS [NOT] NULL`: of any type."""
        found: Expression = fold(Apply("is_null", (self.value(node.operand),), BOOL))
        return Apply("not", (found,), BOOL) if node.negated else found

    def between(self, node: syntax.Between) -> Expression:
        """`e BETWEEN a AND b`: `e >= a AND e <= b`."""
        operand, low, high = self.value(node.operand), self.value(node.low), self.value(node.high)
        self._warn_of_null(node.span, operand, low, high)
        bounds = fold(types.compare(">=", operand, low)), fold(types.compare("<=", operand, high))
        if isinstance(low, Literal) and isinstance(high, Literal) and fold(types.compare(">", low, high)) == Literal(True, BOOL):
            self.context.warn(
                "nothing is BETWEEN a greater and a lesser value",
                node.span,
                "write the lesser one first; for what goes around, as hours do at midnight: >= the one OR <= the other",
            )
        found = fold(Apply("and", bounds, BOOL))
        return Apply("not", (found,), BOOL) if node.negated else found

    def among(self, node: syntax.In) -> Expression:
        """`e IN (a, b)`: one `in` for the constants that can match, an equality for each other option."""
        operand, options = self.value(node.operand), self.options(node.options)
        self._warn_of_null(node.span, operand)
        if any(map(_is_null, options)):
            self.context.warn("NULL in a list is never equal to anything", node.span, "leave it out, or add OR .. IS NULL")
        equalities = [fold(types.compare("=", operand, option)) for option in options if not _is_null(option)]
        if isinstance(operand, Literal):
            # It is the constant of every equality: there is no list of constants to look in.
            parts = equalities
        else:
            constant = [equality for equality in equalities if _constant_option(equality) is not None and not _is_never(equality)]
            computed = [equality for equality in equalities if _constant_option(equality) is None]
            parts = [*([_one_in(operand, constant)] if len(constant) > 1 else constant), *computed]
        found = parts[0] if len(parts) == 1 else Apply("or", tuple(parts), BOOL) if parts else types.never(operand)
        found = fold(found)
        return Apply("not", (found,), BOOL) if node.negated else found

    def options(self, written: tuple[syntax.Expression, ...] | syntax.Parameter) -> tuple[Expression, ...]:
        """What stands behind IN: expressions, or the list that a parameter has as its value."""
        if not isinstance(written, syntax.Parameter):
            return tuple(map(self.value, written))
        if self.context.is_open(written):
            return (Literal(Open(f"one of {parameters.text_of(written)}"), NULL, span=written.span, parameter=written.name),)
        return parameters.options(self.context, written)

    def like(self, node: syntax.Like) -> Expression:
        """`e LIKE 'a%'`."""
        operand = self.value(node.operand)
        operand = types.convert(operand, TEXT) if type_of(operand) == NULL else operand
        if type_of(operand) != TEXT:
            raise Mismatch(
                f"LIKE compares text, this is {describe(type_of(operand))}", "compare it with = or BETWEEN, or cast it in the input"
            )
        if "\\" in node.pattern:
            help_ = "% is any text and _ any one character; compare other text with ="
            raise Mismatch("a LIKE pattern has no escape: `\\` has no meaning in it", help_)
        found = fold(Apply("like", (operand, Literal(node.pattern, TEXT)), BOOL))
        return Apply("not", (found,), BOOL) if node.negated else found

    # --------------------------------------------------------------------------------------------------------- Boolean connectives

    def negation(self, node: syntax.Not) -> Expression:
        """`NOT c`."""
        return Apply("not", (self.condition(node.operand),), BOOL)

    def conjunction(self, node: syntax.BooleanAnd) -> Expression:
        """`a AND b`."""
        self.no_pattern_among(node.operands, "AND")
        return Apply("and", tuple(map(self.condition, node.operands)), BOOL)

    def disjunction(self, node: syntax.BooleanOr) -> Expression:
        """`a OR b`."""
        self.no_pattern_among(node.operands, "OR")
        return Apply("or", tuple(map(self.condition, node.operands)), BOOL)

    def no_pattern_among(self, operands: Iterable[syntax.Expression], operator: str) -> None:
        """Raise BindError for a bare word among the operands of AND or OR: a pattern that was meant to stand outside the FILTER."""
        for node in operands:
            if self.local is None and isinstance(node, syntax.Word) and not self._looks_like_attribute(node.name):
                raise self.error(
                    f"`{node.name}` is not a condition: FILTER takes everything up to the end of the {operator}",
                    node.span,
                    f"put parentheses around the pattern: (p FILTER c) {operator} {node.name}",
                )

    def _looks_like_attribute(self, name: str) -> bool:
        return name in self.context.schema.attributes and not self.context.is_type(name)


LAG_HELP = "write lag(x.a), or lag(x.a, 2) for the event before that"
"""The help of what `lag` does not take."""


def _is_null(option: Expression) -> bool:
    return isinstance(option, Literal) and option.value is None


def _constant_option(equality: Expression) -> Literal | None:
    """The constant of `e = constant`; None for an equality with something that is computed, or open."""
    if isinstance(equality, Apply) and equality.operator == "=":
        option = equality.arguments[1]
        return option if isinstance(option, Literal) and not isinstance(option.value, Open) else None
    return None


def _is_never(equality: Expression) -> bool:
    option = _constant_option(equality)
    return option is not None and option.value is None


def _one_in(operand: Expression, equalities: list[Expression]) -> Expression:
    """Two or more equalities with constants as one `in`, in the widest type that they compare in; the constants in order, each once."""
    options = [option for option in map(_constant_option, equalities) if option is not None]
    kind = next((type_of(option) for option in options if type_of(option) != type_of(operand)), type_of(operand))
    # In order, `IN (2, 1)` is the predicate `IN (1, 2)`: one bit of a letter, one family, one fingerprint.
    constants = sorted({types.convert(option, kind) for option in options}, key=_value_of)
    return Apply("in", (types.convert(operand, kind), *constants), BOOL)


def _value_of(constant: Expression) -> Any:
    assert isinstance(constant, Literal)
    return constant.value


HANDLERS: Mapping[type[syntax.Expression], Callable[[ExpressionBinder, Any], Expression]] = MappingProxyType(
    {
        syntax.Number: lambda binder, node: binder.number(node),
        syntax.Text: lambda binder, node: binder.text(node),
        syntax.Constant: lambda binder, node: binder.constant(node),
        syntax.Instant: lambda binder, node: binder.instant(node),
        syntax.DurationValue: lambda binder, node: binder.duration(node),
        syntax.Parameter: lambda binder, node: binder.parameter(node),
        syntax.Word: lambda binder, node: binder.word(node),
        syntax.Attribute: lambda binder, node: binder.attribute(node),
        syntax.System: lambda binder, node: binder.system(node),
        syntax.Local: lambda binder, node: binder.bracketed(node),
        syntax.Case: lambda binder, node: binder.case(node),
        syntax.Call: lambda binder, node: binder.call(node),
        syntax.Negative: lambda binder, node: binder.negative(node),
        syntax.Arithmetic: lambda binder, node: binder.arithmetic(node),
        syntax.Compare: lambda binder, node: binder.compare(node),
        syntax.IsNull: lambda binder, node: binder.is_null(node),
        syntax.In: lambda binder, node: binder.among(node),
        syntax.Between: lambda binder, node: binder.between(node),
        syntax.Like: lambda binder, node: binder.like(node),
        syntax.Not: lambda binder, node: binder.negation(node),
        syntax.BooleanAnd: lambda binder, node: binder.conjunction(node),
        syntax.BooleanOr: lambda binder, node: binder.disjunction(node),
    }
)
"""One method per class of the syntax tree, looked up so that a subclass can read a construct otherwise."""
