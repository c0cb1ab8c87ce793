"""The rule `simplify`: flat operators, one FILTER instead of two, no constant conditions, joined windows, no patterns that can never match.

Source: the laws of the operators' definitions (foundations-cel, section 4; timed-cel, section 3); each has its line in `_simplified`. A pattern that
can never match is None inside this module: it is removed from an OR, and makes a whole sequence None.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pyarrow as pa

from cepheid.language.syntax import TimeModel
from cepheid.logical import plan
from cepheid.logical.plan import Event, Expression, Filter, Interval, Iterate, Link, Literal, Pattern, Sequence
from cepheid.logical.tree import conditions_of, filtered, map_children, union, walk
from cepheid.logical.variables import (
    bound,
    current_variables,
    defined,
    free_conditions,
    operands,
    previous_variables,
    scoped_conditions,
)

if TYPE_CHECKING:
    from collections.abc import Callable

FALSE = Literal(value=False, type=pa.bool_())
"""The condition that never holds."""


def simplify(pattern: Pattern) -> Pattern:
    """The pattern without what its operators make superfluous; the same matches. Linear in the pattern times its depth.

    A whole pattern that can never match keeps its shape, with FALSE on its events. Branches of OR that can never match are removed,
    unless a condition elsewhere would find another binder then.
    """
    simplified = _Simplification(reaching_out(pattern)).of(pattern)
    return falsified(pattern) if simplified is None else simplified


def reaching_out(pattern: Pattern) -> frozenset[str]:
    """The variables that conditions look for outside their own FILTER: those of outer patterns, and those of prev."""
    return frozenset(variable for found in scoped_conditions(pattern) for variable in found.free() | previous_variables(found.condition))


def falsified(pattern: Pattern) -> Pattern:
    """The pattern with FALSE on each of its events: no match, the same variables."""
    if isinstance(pattern, Event):
        return Filter(pattern, (FALSE,), span=pattern.span)
    if isinstance(pattern, Filter) and isinstance(pattern.pattern, Event):
        return dataclasses.replace(pattern, conditions=(FALSE,))
    if isinstance(pattern, Filter):
        return dataclasses.replace(pattern, pattern=falsified(pattern.pattern))
    positive = operands(pattern)
    return map_children(pattern, lambda child: falsified(child) if child in positive else child)


def is_true(condition: Expression) -> bool:
    """Whether a condition is the constant TRUE."""
    return isinstance(condition, Literal) and condition.value is True


def excludes(condition: Expression, pattern: Pattern) -> bool:
    """Whether a condition leaves no match of a pattern: it never holds, and each match has events in all its variables; else it may ask nothing."""
    return is_false(condition) and not previous_variables(condition) and current_variables(condition) <= bound(pattern)


def is_false(condition: Expression) -> bool:
    """Whether a condition holds for no events: FALSE, NULL, or a comparison with NULL."""
    if isinstance(condition, plan.Apply) and condition.operator in COMPARISONS:
        return any(isinstance(argument, Literal) and argument.value is None for argument in condition.arguments)
    return isinstance(condition, Literal) and condition.value is not True


COMPARISONS = frozenset({"=", "!=", "<", "<=", ">", ">=", "like"})
"""The operators that are FALSE when any argument is NULL."""


class _Simplification:
    """One pass over a pattern, from the inside out. reaching: the variables whose binders must stay what they are."""

    def __init__(self, reaching: frozenset[str]) -> None:
        self.reaching = reaching

    def of(self, pattern: Pattern) -> Pattern | None:
        law = LAWS.get(type(pattern))
        if law is not None:
            return law(self, pattern)
        children = {id(child): self.of(child) for child in operands(pattern)}
        if any(child is None for child in children.values()):
            return None
        return map_children(pattern, lambda child: children[id(child)] or child)


def _or(pass_: _Simplification, pattern: plan.Or) -> Pattern | None:
    """`(p OR q) OR r` is `p OR q OR r`, and `p OR p` is p; an operand without matches goes."""
    found = [pass_.of(operand) for operand in pattern.operands]
    if None in found:
        kept = [operand for operand in found if operand is not None]
        if not kept:
            return None
        rest = union(kept, like=pattern)
        change = (bound(rest) ^ bound(pattern)) | (defined(pattern) - defined(rest))
        if change & pass_.reaching:
            found = [falsified(before) if now is None else now for before, now in zip(pattern.operands, found, strict=True)]
    flat: list[Pattern] = []
    for operand in found:
        if operand is not None:
            flat += operand.operands if isinstance(operand, plan.Or) else [operand]
    return _unless_same(union(flat, like=pattern), pattern)


def _and(pass_: _Simplification, pattern: plan.And) -> Pattern | None:
    """`(p AND q) AND r` is `p AND q AND r`, and `p AND p` is p."""
    flat = _flat(pass_, pattern)
    if flat is None:
        return None
    distinct = tuple(dict.fromkeys(flat))
    return distinct[0] if len(distinct) == 1 else _unless_same(dataclasses.replace(pattern, operands=distinct), pattern)


def _all(pass_: _Simplification, pattern: plan.All) -> Pattern | None:
    """`(p ALL q) ALL r` is `p ALL q ALL r`; `p ALL p` is more than p."""
    flat = _flat(pass_, pattern)
    return None if flat is None else _unless_same(dataclasses.replace(pattern, operands=tuple(flat)), pattern)


def _flat(pass_: _Simplification, pattern: plan.And | plan.All) -> list[Pattern] | None:
    """The operands, with those of the same operator in their place where no condition would see another scope."""
    flat: list[Pattern] = []
    for operand in pattern.operands:
        found = pass_.of(operand)
        if found is None:
            return None
        if isinstance(found, type(pattern)) and not any(map(free_conditions, found.operands)) and not _asked_for(found, flat):
            flat += found.operands
        else:
            flat.append(found)
    return flat


def _sequence(pass_: _Simplification, pattern: Sequence) -> Pattern | None:
    """`(p ; q) : r` and `p ; (q : r)` are `p ; q : r`; with an item that has no matches there is no match; `NOT n` of such an n says nothing."""
    items: list[Pattern] = []
    links: list[Link] = []
    for position, item in enumerate(pattern.items):
        found = pass_.of(item)
        if found is None:
            return None
        if position:
            links.append(_without(pass_, pattern.links[position - 1]))
        if (
            isinstance(found, Sequence)
            and not _is_loose(found, first=not position, last=position == len(pattern.links))
            and (not position or (_associates(links[-1], found) and not _asked_for(found, items)))
        ):
            items += found.items
            links += found.links
        else:
            items.append(found)
    return _unless_same(dataclasses.replace(pattern, items=tuple(items), links=tuple(links)), pattern)


def _asked_for(inner: Pattern, before: list[Pattern]) -> bool:
    """Whether a condition before a pattern waits for a variable that all of this pattern supplies: a part of it would supply less."""
    names = bound(inner)
    return any(condition.free() & names for pattern in before for condition in free_conditions(pattern))


def _is_loose(inner: Sequence, *, first: bool, last: bool) -> bool:
    """Whether an item next to a link outside is optional: absent it would join that link with its own, which an inner sequence keeps apart."""
    return (not first and isinstance(inner.items[0], plan.Optional)) or (not last and isinstance(inner.items[-1], plan.Optional))


def _associates(link: Link, inner: Sequence) -> bool:
    """Whether `p link (q ; r)` may lose its parentheses: THEN looks at whole stamps, and prefixes are scopes.

    THEN under COMPLETE_HISTORY is associative (what-is-next, Theorem 1), and costs least from left to right: each right side is an automaton of its
    own. What PROJECT hides is no part of the stamp of a whole, so that where q ends or r begins hidden the whole says less than both.
    """
    operators = {(each.operator, each.model) for each in (link, *inner.links)}
    if operators == {("THEN", TimeModel.COMPLETE_HISTORY)}:
        if any(isinstance(node, plan.Project) for node in walk(inner)):
            return False
    elif any(operator == "THEN" for operator, _ in operators):
        return False
    return not any(map(free_conditions, inner.items))


def _without(pass_: _Simplification, link: Link) -> Link:
    if link.without is None:
        return link
    without = pass_.of(link.without)
    return link if without is link.without else dataclasses.replace(link, without=without)


def _iterate(pass_: _Simplification, pattern: Iterate) -> Pattern | None:
    """`p{1}` is p, `(p+)+` is `p+`, `(p{1,2}){1,2}` is `p{1,4}`, likewise with `:` and with one gap; unless something in p counts with prev."""
    body = pass_.of(pattern.pattern)
    if body is None:
        return None
    outer = dataclasses.replace(pattern, pattern=body)
    if any(previous_variables(condition) for _, condition in conditions_of(body)):
        return _unless_same(outer, pattern)
    if outer.minimum == outer.maximum == 1:
        return body
    joined = _one_iteration(outer, body) if isinstance(body, Iterate) else outer
    return _unless_same(outer if (bound(joined) ^ bound(outer)) & pass_.reaching else joined, pattern)


def _one_iteration(outer: Iterate, inner: Iterate) -> Iterate:
    """The iteration that says the same as two; the outer one where there is none.

    k inner iterations are `inner.minimum * k` to `inner.maximum * k` times; from the least k on these ranges must leave no number out.
    """
    if (outer.adjacent, outer.gap) != (inner.adjacent, inner.gap):
        return outer
    maximum = None if outer.maximum is None or inner.maximum is None else outer.maximum * inner.maximum
    if (
        inner.maximum is not None
        and outer.maximum != outer.minimum
        and (outer.minimum + 1) * inner.minimum > outer.minimum * inner.maximum + 1
    ):
        return outer
    return dataclasses.replace(inner, minimum=outer.minimum * inner.minimum, maximum=maximum)


def _filter(pass_: _Simplification, pattern: Filter) -> Pattern | None:
    """`(p FILTER c) FILTER d` is `p FILTER c AND d`; TRUE says nothing, FALSE and NULL leave no match that they are asked of.

    A condition about a variable that only removed branches had holds everywhere.
    """
    body = pass_.of(pattern.pattern)
    if body is None or any(excludes(condition, body) for condition in pattern.conditions):
        return None
    lost = defined(pattern.pattern) - defined(body)
    kept = tuple(condition for condition in pattern.conditions if not is_true(condition) and not current_variables(condition) & lost)
    return _unless_same(filtered(body, kept), pattern)


def _named(pass_: _Simplification, pattern: plan.Named) -> Pattern | None:
    """`(p AS x) AS x` is `p AS x`."""
    body = pass_.of(pattern.pattern)
    if body is None:
        return None
    same = isinstance(body, plan.Named) and body.variable == pattern.variable
    return body if same else _unless_same(dataclasses.replace(pattern, pattern=body), pattern)


def _project(pass_: _Simplification, pattern: plan.Project) -> Pattern | None:
    """`PROJECT L (PROJECT K (p))` shows what is in both; a projection that hides nothing goes."""
    body = pass_.of(pattern.pattern)
    if body is None:
        return None
    variables = pattern.variables
    if isinstance(body, plan.Project):
        variables, body = variables & body.variables, body.pattern
    if defined(body) <= variables:
        return body
    return _unless_same(dataclasses.replace(pattern, variables=variables, pattern=body), pattern)


def _within(pass_: _Simplification, pattern: plan.Within) -> Pattern | None:
    """Two windows of time are the window of both; a window of events around one goes outside; `[>= 0]` says nothing."""
    body = pass_.of(pattern.pattern)
    if body is None:
        return None
    return _unless_same(_windowed(body, pattern.interval, pattern), pattern)


def _windowed(body: Pattern, interval: Interval, like: plan.Within) -> Pattern | None:
    if isinstance(body, plan.WithinEvents):
        inner = _windowed(body.pattern, interval, like)
        return None if inner is None else dataclasses.replace(body, pattern=inner)
    if isinstance(body, plan.Within):
        uppers = [window.upper for window in (interval, body.interval) if window.upper is not None]
        interval = Interval(max(interval.lower, body.interval.lower), min(uppers, default=None))
        body = body.pattern
    if interval.upper is not None and interval.upper < max(interval.lower, 0):
        return None
    if interval.lower <= 0 and interval.upper is None:
        return body
    return dataclasses.replace(like, pattern=body, interval=interval)


def _within_events(pass_: _Simplification, pattern: plan.WithinEvents) -> Pattern | None:
    """Of two windows of events the smaller one counts."""
    body = pass_.of(pattern.pattern)
    if body is None or pattern.count < 1:
        return None
    if isinstance(body, plan.WithinEvents):
        return dataclasses.replace(body, count=min(body.count, pattern.count))
    return _unless_same(dataclasses.replace(pattern, pattern=body), pattern)


def _unless(pass_: _Simplification, pattern: plan.Unless) -> Pattern | None:
    """What never happens forbids nothing."""
    body, negated = pass_.of(pattern.pattern), pass_.of(pattern.negated)
    if body is None or negated is None:
        return body
    return _unless_same(dataclasses.replace(pattern, pattern=body, negated=negated), pattern)


def _absence(pass_: _Simplification, pattern: plan.Absence) -> Pattern | None:
    """The absence of what never happens stays: its deadline says when the match is given."""
    body = pass_.of(pattern.pattern)
    if body is None:
        return None
    negated = pass_.of(pattern.negated) or falsified(pattern.negated)
    return _unless_same(dataclasses.replace(pattern, pattern=body, negated=negated), pattern)


def _optional(pass_: _Simplification, pattern: plan.Optional) -> Pattern:
    """An optional item that never happens stays, for its links are those of the sequence."""
    body = pass_.of(pattern.pattern) or falsified(pattern.pattern)
    return pattern if body == pattern.pattern else dataclasses.replace(pattern, pattern=body)


def _unless_same(now: Pattern | None, before: Pattern) -> Pattern | None:
    """The pattern as it was, if nothing changed."""
    return before if now == before else now


LAWS: dict[type[Pattern], Callable[[_Simplification, Pattern], Pattern | None]] = {
    plan.Or: _or,  # type: ignore[dict-item]  # each law takes its own node class, which is its key
    plan.And: _and,  # type: ignore[dict-item]
    plan.All: _all,  # type: ignore[dict-item]
    plan.Sequence: _sequence,  # type: ignore[dict-item]
    plan.Iterate: _iterate,  # type: ignore[dict-item]
    plan.Filter: _filter,  # type: ignore[dict-item]
    plan.Named: _named,  # type: ignore[dict-item]
    plan.Project: _project,  # type: ignore[dict-item]
    plan.Within: _within,  # type: ignore[dict-item]
    plan.WithinEvents: _within_events,  # type: ignore[dict-item]
    plan.Unless: _unless,  # type: ignore[dict-item]
    plan.Absence: _absence,  # type: ignore[dict-item]
    plan.Optional: _optional,  # type: ignore[dict-item]
}
