"""Patterns: from the syntax tree to operators of the plan, in two passes.

The first (`structure`) checks that each construct is in a valid place, turns durations into steps, and leaves conditions as they were written. The
second (`bind_conditions`) binds the conditions: by then it is known, for every FILTER, what the pattern under it and the patterns around it define
and bind.
"""

from __future__ import annotations

import dataclasses
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from cepheid.errors import LimitError
from cepheid.language import syntax, to_text
from cepheid.language.syntax import Strategy
from cepheid.logical import parameters, plan, times, variables
from cepheid.logical.context import suggestion
from cepheid.logical.expressions import ExpressionBinder
from cepheid.logical.plan import ANY_VARIABLE, Expression, Filter, Literal, Open, Pattern
from cepheid.logical.scopes import OuterScopes, Scope, hidden_variable, unknown_variable
from cepheid.logical.variables import Summary
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from cepheid.errors import Span
    from cepheid.logical.context import Context
    from cepheid.logical.variables import Enclosing

NESTED_STRATEGIES = frozenset({Strategy.STRICT, Strategy.NXT, Strategy.LAST, Strategy.MAX})


@record
class Unbound(Expression):
    """A condition as it was written: stands in a Filter between the two passes."""

    written: syntax.Expression


# ----------------------------------------------------------------------------------------------------------- first pass: structure


class StructureBinder:
    """The first pass; one method per class of the syntax tree."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def outermost(self, node: syntax.Pattern) -> Pattern:
        """The whole pattern of a query: only here, under FILTER, WITHIN, UNLESS and other absences, may an absence stand."""
        if isinstance(node, syntax.Absence):
            duration, deadline = times.absence(self.context, node.duration)
            pattern, negated = self.outermost(node.pattern), self.inner(node.negated)
            return plan.Absence(pattern, negated, duration, node.from_start, deadline=deadline, span=node.span)
        if isinstance(node, syntax.Filter | syntax.Within | syntax.Unless):
            return STRUCTURES[type(node)](self, node, self.outermost)
        return self.inner(node)

    def inner(self, node: syntax.Pattern) -> Pattern:
        """A pattern below another operator."""
        return STRUCTURES[type(node)](self, node, self.inner)

    def event(self, node: syntax.Type) -> Pattern:
        """`T`, `ANY`."""
        schema = self.context.schema
        if node.name is not None:
            known = (
                schema.types if schema.types is not None else None if schema.type_column else {schema.stream: ()} if schema.stream else {}
            )
            if known is not None and node.name not in known:
                help_ = suggestion(node.name, filter(None, known), what="the event types are")
                raise self.context.error(
                    f"unknown event type `{node.name}`", node.span, *(help_ or ("the events have no type: write ANY",))
                )
            if node.name == ANY_VARIABLE:
                raise self.context.error(
                    "the event type `ANY` cannot be told from the pattern ANY", node.span, "rename the type in the input"
                )
        return plan.Event(node.name, spans=bool(schema.made) if node.name is None else node.name in schema.made, span=node.span)

    def named(self, node: syntax.Named) -> Pattern:
        """`p AS x`."""
        name = node.variable
        if self.context.is_type(name) or name == ANY_VARIABLE:
            raise self.context.error(
                f"`{name}` is an event type, and cannot be the name of a variable",
                node.place("variable"),
                f"write another name, as in AS {name.lower()}_event",
            )
        if isinstance(node.pattern, syntax.Optional):
            self._lone(node.pattern, f"put AS inside: (.. AS {name})?")
        if isinstance(node.pattern, syntax.Iterate) and self._present(node.pattern) is not None:
            counts = to_text(dataclasses.replace(node.pattern, pattern=syntax.Type("A"))).removeprefix("A")
            raise self.context.error(
                "repeated 0 times or more: AS cannot name what may have no event",
                self._place(node.pattern),
                f"put AS inside: (.. AS {name}){counts}",
                *self._said(node.pattern),
            )
        return plan.Named(self.inner(node.pattern), name, span=node.span, place=node.place("variable"))

    def _lone(self, node: syntax.Optional, help_: str) -> None:
        raise self.context.error("`?` is alone: it can only be an item of a sequence", node.span, help_)

    def optional(self, node: syntax.Optional) -> Pattern:
        """`p?` that is no item of a sequence."""
        self._lone(node, "write it between `;` or `:`, as in A ; B? ; C")
        return self.inner(node.pattern)

    def sequence(self, node: syntax.Sequence) -> Pattern:
        """`p ; q : r THEN s`."""
        items = tuple(
            self.inner(item) if (present := self._present(item)) is None else plan.Optional(self.inner(present), span=item.span)
            for item in node.items
        )
        if all(isinstance(item, plan.Optional) for item in items):
            help_ = "leave out one `?`, or write the alternatives with OR"
            raise self.context.error("every item of the sequence is optional: it would match without any event", node.span, help_)
        links = tuple(self._link(link, node.items[index : index + 2]) for index, link in enumerate(node.links))
        return plan.Sequence(items, links, span=node.span)

    def _present(self, item: syntax.Pattern) -> syntax.Pattern | None:
        """What an optional item of a sequence is where it is there: p of `p?`, `p{1,n}` of `p{0,n}`; None for other items."""
        if isinstance(item, syntax.Optional):
            return item.pattern
        if isinstance(item, syntax.Iterate):
            low, high = self._counts(item)
            if low == 0 and high != 0:
                return dataclasses.replace(item, minimum=1)
        return None

    def _link(self, link: syntax.Link, sides: tuple[syntax.Pattern, ...]) -> plan.Link:
        optional = next((side for side in sides if self._present(side) is not None), None)
        beside = "a gap" if link.gap is not None else "NOT" if link.without is not None else "THEN" if link.operator == "THEN" else ""
        if optional is not None and beside:
            help_ = "write both alternatives with OR: (A ; C) OR (A ; B ; C)"
            raise self.context.error(f"{beside} is next to an optional item: it is not clear between which events", optional.span, help_)
        if link.operator == "THEN" and self.context.schema.time_column is None:
            raise self.context.error("THEN needs a time column, the events have none", link.span, f"{self.context.name_time}, or write `;`")
        gap = None if link.gap is None else times.interval(self.context, link.gap, what="a gap")
        without = None if link.without is None else self.inner(link.without)
        return plan.Link(link.operator, gap, without, self.context.model if link.operator == "THEN" else None, span=link.span)

    def iterate(self, node: syntax.Iterate) -> Pattern:
        """`p+`, `p{n,m}`."""
        low, high = self._counts(node)
        place, said = self._place(node), self._said(node)
        if high is not None and high < max(low, 1):
            fact = (
                "repeated 0 times: it would match without any event"
                if high == 0
                else f"repeated from {low} to {high} times: {low} is more than {high}"
            )
            raise self.context.error(fact, place, "leave it out" if high == 0 else f"write {{{high},{low}}}", *said)
        if low < 1:
            raise self.context.error(
                "repeated 0 times or more: alone it would match without any event",
                place,
                "it can be an item of a sequence, as in A ; B{0,2} ; C",
                *said,
            )
        gap = None if node.gap is None else times.interval(self.context, node.gap, what="a gap")
        return plan.Iterate(self.inner(node.pattern), node.adjacent, gap, low, high, span=node.span)

    def _place(self, node: syntax.Iterate) -> Span:
        """Where the counts of an iteration are blamed."""
        return parameters.place(node.span, node.minimum, node.maximum)

    def _said(self, node: syntax.Iterate) -> tuple[str, ...]:
        """The values of the parameters among its counts."""
        return parameters.said(self.context, node.minimum, node.maximum)

    def _counts(self, node: syntax.Iterate) -> tuple[int, int | None]:
        # What is open is taken as the least that fits.
        low = parameters.count(self.context, node.minimum, otherwise=1)
        return low, None if node.maximum is None else parameters.count(self.context, node.maximum, otherwise=max(low, 1))

    def project(self, node: syntax.Project) -> Pattern:
        """`PROJECT x, y (p)`."""
        inner = self.inner(node.pattern)
        visible = variables.defined(inner)
        for number, name in enumerate(node.variables):
            if name not in visible:
                place = node.place("variables", number)
                hidden = name in variables.all_defined(inner)
                raise hidden_variable(self.context, name, place) if hidden else unknown_variable(self.context, name, place, visible)
        return plan.Project(frozenset(node.variables), inner, span=node.span)

    def select(self, node: syntax.Select) -> Pattern:
        """`NXT(p)`."""
        if node.strategy not in NESTED_STRATEGIES:
            fact = f"the strategy {node.strategy.value} cannot be inside a pattern"
            raise self.context.error(fact, node.span, f"write it after SELECT: SELECT {node.strategy.value} ..")
        return plan.Select(node.strategy, self.inner(node.pattern), span=node.span)

    def filter(self, node: syntax.Filter, below: Callable[[syntax.Pattern], Pattern]) -> Pattern:
        """`p FILTER c`: the conditions as they were written."""
        unbound = tuple(Unbound(condition, span=condition.span) for condition in conjuncts(node.condition))
        return Filter(below(node.pattern), unbound, span=node.span)

    def within(self, node: syntax.Within, below: Callable[[syntax.Pattern], Pattern]) -> Pattern:
        """`p WITHIN w`."""
        return self.window(below(node.pattern), node.window, node)

    def window(self, pattern: Pattern, window: syntax.Interval | syntax.EventCount, node: syntax.Node) -> Pattern:
        """A window around a bound pattern."""
        if isinstance(window, syntax.Interval):
            return plan.Within(pattern, times.interval(self.context, window, what="a time window"), span=node.span)
        count = parameters.count(self.context, window.count, otherwise=times.MAX_STEPS)
        if count < 1:
            help_ = "the least is WITHIN 1 EVENTS: one position"
            said = parameters.said(self.context, window.count)
            raise self.context.error("a window of 0 events holds no match", window.span, help_, *said)
        if count > times.MAX_STEPS:
            raise LimitError(
                f"the window is {count} events; the limit is {times.MAX_STEPS} (MAX_STEPS)",
                help="leave the window out: no two events are that far apart",
                text=self.context.text or None,
                span=window.span,
            )
        return plan.WithinEvents(pattern, count, span=node.span)

    def unless(self, node: syntax.Unless, below: Callable[[syntax.Pattern], Pattern]) -> Pattern:
        """`p UNLESS q`."""
        return plan.Unless(below(node.pattern), self.inner(node.negated), span=node.span)

    def absence(self, node: syntax.Absence) -> Pattern:
        """`p NOT FOLLOWED BY n FOR d` below another operator."""
        raise self.context.error(
            "NOT FOLLOWED BY .. FOR can only be outermost",
            node.span,
            "only FILTER, WITHIN, UNLESS and another NOT FOLLOWED BY may come after it; inside a sequence write `A ; NOT n ; B`",
        )


STRUCTURES: Mapping[type[syntax.Pattern], Callable[[StructureBinder, Any, Callable[[syntax.Pattern], Pattern]], Pattern]] = (
    MappingProxyType(
        {
            syntax.Type: lambda binder, node, _: binder.event(node),
            syntax.Named: lambda binder, node, _: binder.named(node),
            syntax.Sequence: lambda binder, node, _: binder.sequence(node),
            syntax.Optional: lambda binder, node, _: binder.optional(node),
            syntax.Or: lambda _, node, below: plan.Or(tuple(map(below, node.operands)), span=node.span),
            syntax.And: lambda _, node, below: plan.And(tuple(map(below, node.operands)), span=node.span),
            syntax.All: lambda _, node, below: plan.All(tuple(map(below, node.operands)), span=node.span),
            syntax.Iterate: lambda binder, node, _: binder.iterate(node),
            syntax.Project: lambda binder, node, _: binder.project(node),
            syntax.Select: lambda binder, node, _: binder.select(node),
            syntax.Filter: lambda binder, node, below: binder.filter(node, below),
            syntax.Within: lambda binder, node, below: binder.within(node, below),
            syntax.Unless: lambda binder, node, below: binder.unless(node, below),
            syntax.Absence: lambda binder, node, _: binder.absence(node),
        }
    )
)
"""Per class of the syntax tree; the last argument binds what FILTER, WITHIN and UNLESS stand on."""


def conjuncts(condition: syntax.Expression) -> Iterator[syntax.Expression]:
    """The top-level conjuncts of a condition, also those inside `x[a AND b]`: each is a filter of its own."""
    if isinstance(condition, syntax.BooleanAnd):
        for operand in condition.operands:
            yield from conjuncts(operand)
    elif isinstance(condition, syntax.Local) and isinstance(condition.condition, syntax.BooleanAnd):
        for inner in conjuncts(condition.condition):
            yield dataclasses.replace(condition, condition=inner)
    else:
        yield condition


# --------------------------------------------------------------------------------------------------------- second pass: conditions


def bind_conditions(context: Context, pattern: Pattern, around: OuterScopes) -> Pattern:
    """The pattern with every condition bound; conditions that are TRUE vanish, and FILTERs without any."""
    scopes = variables.enclosing(pattern)
    match pattern:
        case plan.Event():
            return pattern
        case plan.Sequence(items=items, links=links):
            return dataclasses.replace(
                pattern,
                items=tuple(
                    bind_conditions(context, item, _around_item(link, pattern, around, scope))
                    for item, scope, link in zip(items, scopes, (None, *links), strict=True)
                ),
                links=tuple(_bind_link(context, link, pattern, around) for link in links),
            )
        case plan.Chain(operands=operands):
            bound = (bind_conditions(context, inner, around.inside(scope)) for inner, scope in zip(operands, scopes, strict=True))
            return dataclasses.replace(pattern, operands=tuple(bound))
        case plan.Select(strategy=strategy, pattern=inner):
            barrier = around.behind(f"the strategy {strategy.value}(..)", pattern)
            return dataclasses.replace(pattern, pattern=bind_conditions(context, inner, barrier))
        case plan.Unless(pattern=inner, negated=negated) | plan.Absence(pattern=inner, negated=negated):
            operator = "the right side of UNLESS" if isinstance(pattern, plan.Unless) else "NOT FOLLOWED BY"
            barrier = around.behind(operator, pattern, negated=True)
            inside = bind_conditions(context, inner, around.inside(scopes[0]))
            return dataclasses.replace(pattern, pattern=inside, negated=bind_conditions(context, negated, barrier))
        case Filter():
            return _bind_filter(context, pattern, around)
    return dataclasses.replace(pattern, pattern=bind_conditions(context, pattern.pattern, around.inside(scopes[0])))  # type: ignore[attr-defined,call-arg]  # all others have one operand


def _around_item(link: plan.Link | None, sequence: plan.Sequence, around: OuterScopes, scope: Enclosing) -> OuterScopes:
    """What encloses an item behind a link. After THEN nothing does: its next match is chosen among all, whatever the left side is."""
    return around.behind("the right side of THEN", sequence) if link is not None and link.operator == "THEN" else around.inside(scope)


def _bind_link(context: Context, link: plan.Link, sequence: plan.Sequence, around: OuterScopes) -> plan.Link:
    if link.without is None:
        return link
    return dataclasses.replace(link, without=bind_conditions(context, link.without, around.behind("NOT", sequence, negated=True)))


def _bind_filter(context: Context, pattern: Filter, around: OuterScopes) -> Pattern:
    (scope,) = variables.enclosing(pattern)
    inner = bind_conditions(context, pattern.pattern, around.inside(scope))
    binder = ExpressionBinder(context, Scope(context, Summary(pattern.pattern), around))
    conditions: list[Expression] = []
    written = [unbound for unbound in pattern.conditions if isinstance(unbound, Unbound)]
    if len(written) > 1:
        binder.no_pattern_among((unbound.written for unbound in written), "AND")
    for unbound in written:
        condition = binder.condition(unbound.written)
        if isinstance(condition, Literal) and not isinstance(condition.value, Open):
            if condition.value is True:
                continue
            context.warn(
                "the condition is FALSE for all events: its pattern has no match", unbound.span, "check its constants and parameters"
            )
            condition = dataclasses.replace(condition, value=False)
        conditions.append(condition)
    return dataclasses.replace(pattern, pattern=inner, conditions=tuple(conditions)) if conditions else inner
