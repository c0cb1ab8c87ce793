"""Which events a name in a condition is about, and which types its attributes have.

Comes in: the pattern under a FILTER and the patterns around it. Goes out: for a variable the pattern that supplies it (semantics, section 2:
the filtered pattern, else the nearest enclosing pattern that binds it, else the query is rejected), for an attribute its types.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pyarrow as pa

from cepheid.errors import quoted
from cepheid.language import syntax
from cepheid.language.words import write_name
from cepheid.logical import variables
from cepheid.logical.context import suggestion
from cepheid.logical.plan import Iterate
from cepheid.logical.types import canonical
from cepheid.logical.variables import Enclosing, Summary
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from cepheid.errors import BindError, Span
    from cepheid.logical.context import Context
    from cepheid.logical.plan import Pattern

NO_CONDITION = (
    "no condition compares events inside a negation with events outside; for equal attributes write PARTITION BY, for others match what is between:"
    " A AS a : (ANY:+ AS n)? : C FILTER n.type != 'B' OR n.v <= a.v (docs/language.md)"
)
"""The help where it may have been one on both."""

SHOWN_OWNERS = 3
"""Most variables that a help offers for an attribute."""

SHOWN_ATTRIBUTES = 12
"""Most attributes that a message lists."""


@record
class OuterScopes:
    """What encloses a pattern, nearest first.

    enclosing: as far as conditions inside can see. beyond: what lies outside the nearest barrier. barrier: what that is, "" where there is none.
    negated: whether the barrier is a negation, whose events no condition outside sees either.
    """

    enclosing: tuple[Enclosing, ...] = ()
    beyond: tuple[Enclosing, ...] = ()
    barrier: str = ""
    negated: bool = False

    def inside(self, scope: Enclosing) -> OuterScopes:
        """What encloses an operand, from what encloses its operator."""
        return dataclasses.replace(self, enclosing=(scope, *self.enclosing))

    def behind(self, barrier: str, pattern: Pattern, *, negated: bool = False) -> OuterScopes:
        """What encloses a pattern that sees nothing around it."""
        return OuterScopes((), (Enclosing(Summary(pattern), 0), *self.enclosing, *self.beyond), barrier, negated)


@record
class Scope:
    """Where a condition looks for its variables: the filtered pattern, and what is around it."""

    context: Context
    filtered: Summary
    around: OuterScopes

    def supplier(self, node: syntax.Word | syntax.Attribute | syntax.System | syntax.Local) -> Summary:
        """What supplies the variable that a node speaks of (through prev: its iteration); raises BindError where nothing does."""
        variable, place = (node.name, node.span) if isinstance(node, syntax.Word) else (node.variable, node.place("variable"))
        if getattr(node, "previous", False):
            return self._iteration(variable, place, node.span)
        if variable in self.filtered.defined:
            return self.filtered
        found = next((found for scope in self.around.enclosing if (found := scope.binder(variable)) is not None), None)
        if found is None:
            raise self._not_supplied(variable, place)
        return found

    def owners(self, name: str) -> tuple[str, ...]:
        """The variables of the filtered pattern whose events have an attribute, as a query writes them, in the order of the pattern."""
        known = ((variable, self.filtered.types.get(variable, ())) for variable in variables.shown(self.filtered.pattern))
        return tuple(
            write_name(variable) for variable, types in known if any(name in self.context.schema.attributes_of(each) for each in types)
        )

    def _iteration(self, variable: str, place: Span, span: Span) -> Summary:
        iterations = (scope.summary for scope in self.around.enclosing if isinstance(scope.pattern, Iterate))
        found = next((summary for summary in iterations if variable in summary.defined), None)
        if found is None:
            if variable not in self._everything():
                raise self._not_supplied(variable, place)
            raise self.context.error(
                f"prev({variable}) is outside every iteration that defines `{variable}`",
                span,
                f"put the condition inside the iteration: (T AS {variable} FILTER {variable}.a > prev({variable}).a)+",
                f"lag({variable}.a) is of the event before, whatever it is",
            )
        return found

    def _everything(self) -> frozenset[str]:
        outer = (scope.pattern for scope in (*self.around.enclosing, *self.around.beyond))
        return variables.NOTHING.union(*map(variables.all_defined, (self.filtered.pattern, *outer)))

    def _not_supplied(self, variable: str, place: Span) -> BindError:
        """Why nothing supplies a variable, most specific reason first."""
        error, around = self.context.error, self.around
        if variable in variables.all_defined(self.filtered.pattern):
            return hidden_variable(self.context, variable, place)
        if any(variable in scope.summary.defined for scope in around.beyond):
            fact = f"the variable `{variable}` is outside {around.barrier}, which cannot use variables from outside"
            if around.negated:
                return error(fact, place, f"put a condition on `{variable}` alone outside, after its pattern", NO_CONDITION)
            return error(fact, place, "put the FILTER outside, after the variable's pattern")
        if any(variable in scope.summary.defined for scope in around.enclosing):
            fact = f"the variable `{variable}` is not bound here: it is inside an iteration, an optional item or one branch of OR"
            return error(fact, place, f"put the FILTER around a pattern that has `{variable}` in it")
        if variable in self._everything():
            return hidden_variable(self.context, variable, place)
        return self._unknown(variable, place)

    def _unknown(self, variable: str, place: Span) -> BindError:
        return unknown_variable(self.context, variable, place, self._everything(), owners=self.owners(variable))


def hidden_variable(context: Context, variable: str, place: Span) -> BindError:
    """The error for a variable that a PROJECT hides."""
    fact = f"the variable `{variable}` is hidden by PROJECT here"
    return context.error(fact, place, f"add `{variable}` to the list of PROJECT, or use it inside its parentheses")


def ways(owners: Sequence[str], *forms: Callable[[str], str]) -> str:
    """Ways to write something of one of these variables, for a help: `x.a, y.a or z.a`. forms: of one variable each."""
    found = [form(owner) for form in forms for owner in owners[:SHOWN_OWNERS] or ("x",)]
    *others, last = found
    return f"{', '.join(others)} or {last}" if others else last


def unknown_variable(context: Context, variable: str, place: Span, known: frozenset[str], *, owners: Sequence[str] = ()) -> BindError:
    """The error for a name that no part of the pattern gives to events. owners: the variables whose attribute it may be."""
    operator = context.negated.get(variable)
    if operator is not None:
        what, pattern = ("events of type", variable) if variable in context.event_types else ("the variable", f".. AS {variable}")
        return context.error(
            f"{what} `{variable}` {'are' if pattern == variable else 'is'} only inside {operator}: no event of a match is one",
            place,
            f"put a condition on `{variable}` alone inside: {operator} ({pattern} FILTER ..)",
            NO_CONDITION,
        )
    lines = suggestion(variable, known, what="the pattern has")
    if variable in context.schema.attributes:
        lines = (
            f"`{variable}` is an attribute: write the variable before it, as in {ways(owners, lambda owner: f'{owner}.{variable}')}",
            *lines,
        )
    return context.error(f"unknown variable `{variable}`", place, *lines)


# --------------------------------------------------------------------------------------------------------------------- attributes


def attribute(
    context: Context, types: Collection[str | None], holder: str, path: tuple[str, ...], places: Sequence[Span]
) -> tuple[pa.DataType | None, pa.DataType]:
    """The canonical type (None: has no comparisons) and the Arrow type of an attribute of events of some types (None: of any).

    An attribute that only some of these types have is NULL on the others. Raises BindError for a name that none has, and for a path
    into something that has no such field. holder: whose attribute it is, for the message. places: of the names of the path.
    """
    known = frozenset().union(*map(context.schema.attributes_of, types))
    name, *fields = path
    if name not in known:
        if name in context.schema.unreadable and not all(kind in context.schema.made for kind in types):
            fact, help_ = context.schema.unreadable[name]
            raise context.error(fact, places[0], help_)
        raise context.error(f"unknown attribute `{name}` of {holder}", places[0], *_attributes(context, name, known, types))
    kind = context.schema.attributes[name]
    for field, place in zip(fields, places[1:], strict=True):
        kind = _field(context, kind, name, field, place)
        name = field
    return canonical(kind), kind


def holder(variable: str, types: Collection[str | None]) -> str:
    """The events that a variable can hold, for messages."""
    names = [name for name in sorted(types, key=str) if name is not None]
    if len(names) == len(types) == 1:
        return f"event type `{names[0]}`"
    return (
        f"`{variable}` (event types {quoted(names)})"
        if names and len(names) == len(types)
        else f"`{variable}`, which holds events of any type"
    )


def _attributes(context: Context, name: str, known: frozenset[str], types: Collection[str | None]) -> tuple[str, ...]:
    """The help of an unknown attribute: the nearest name and what there is, with types, in the order of the input."""
    have = [f"{other} ({kind})" for other, kind in context.schema.attributes.items() if other in known]
    more = f" and {len(have) - SHOWN_ATTRIBUTES} more" if len(have) > SHOWN_ATTRIBUTES else ""
    (only, *_) = types
    owner = f"`{only}` has" if len(types) == 1 and only is not None else "the events have"
    listed = f"{owner}: {', '.join(have[:SHOWN_ATTRIBUTES])}{more}" if have else f"{owner} no attributes"
    near = suggestion(name, known)
    return (f"{near[0]} {listed}",) if near else (listed,)


def _field(context: Context, kind: pa.DataType, name: str, field: str, place: Span) -> pa.DataType:
    if not pa.types.is_struct(kind):
        raise context.error(f"`{name}` has no fields, it is {kind}", place, f"write `{name}` alone")
    names = [kind.field(index).name for index in range(kind.num_fields)]
    if field not in names:
        help_ = suggestion(field, names, what=f"`{name}` has the fields")
        raise context.error(f"unknown field `{field}` of `{name}`", place, *help_)
    return kind.field(names.index(field)).type
