"""Warnings: queries that have a meaning, but probably not the intended one. Notes: what means something else in other systems.

A warning can always be met: a query that is meant as it is can be written without it. What has no other form is a note, so that `check --strict`,
which counts warnings, refuses no query that is right.

Comes in: a bound pattern. Goes out: texts in the context, each with its place. Comparisons with NULL and constant conditions are reported where
they are bound (`expressions`, `patterns`); everything else is one function here.
"""

from __future__ import annotations

import dataclasses
import itertools
from enum import Enum
from typing import TYPE_CHECKING

from cepheid.errors import quoted
from cepheid.language.syntax import TimeModel
from cepheid.logical import growth, variables
from cepheid.logical.describe import describe_expression, describe_longest, describe_shortest, written_lower
from cepheid.logical.durations import narrowest, shortest, widest
from cepheid.logical.plan import (
    AGGREGATES,
    All,
    And,
    Apply,
    Event,
    Filter,
    Iterate,
    Literal,
    Named,
    Optional,
    Or,
    Pattern,
    Project,
    Select,
    Sequence,
    Time,
    Unless,
    Within,
    WithinEvents,
    leaves,
    variables_of,
)
from cepheid.logical.plan import walk as subexpressions
from cepheid.logical.types import FLIPPED
from cepheid.logical.variables import Summary
from cepheid.logical.windows import hoist

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cepheid.logical.context import Context
    from cepheid.logical.plan import Expression
    from cepheid.logical.variables import Scoped


class Listed(Enum):
    """Why every match of a query is listed, and what helps where these are many."""

    NOT = ""
    GIVEN = (
        "SELECT NXT, LAST, MAX or STRICT choose among them, LIMIT n gives at most n of each such event, and COUNT(*) counts without a list"
    )
    FIRST = (
        "SELECT NXT, LAST, MAX or STRICT choose among them; all others are looked at one by one, also for ANY, LIMIT and COUNT(*):"
        " have fewer, as in WITHIN 9 EVENTS or {1,3}"
    )
    COMPARED = (
        "before a strategy chooses, CONSUME BY looks at each, for one that is left out uses nothing up:"
        " have fewer, as in WITHIN 9 EVENTS or {1,3}"
    )


def lint(context: Context, pattern: Pattern, *, listed: Listed, keeps: bool) -> None:
    """Add every warning and note about a bound pattern to the context.

    keeps: whether partial matches are kept where no window bounds them: RESTRICTED needs one of each.
    """
    for node in walk(pattern):
        for check in LINTS:
            check(context, node)
    seen: set[tuple[int, str]] = set()
    for scoped in list(variables.scoped_conditions(pattern)):
        empty_variable(context, scoped, seen)
        part_of_a_chain(context, scoped)
    if keeps:
        no_window(context, pattern)
    if listed is not Listed.NOT:
        many_matches(context, pattern, listed.value)


def decided_earlier(context: Context, pattern: Pattern, having: Expression) -> None:
    """A conjunct of HAVING that is about one event, or bounds the duration: the pattern can ask it, before there is a match."""
    if any(isinstance(node, Select) for node in walk(pattern)):
        return  # which chooses among what the condition leaves out
    conjuncts = having.arguments if isinstance(having, Apply) and having.operator == "and" else (having,)
    for part in conjuncts:
        aggregates = [node for node in subexpressions(part) if isinstance(node, Apply) and node.operator in AGGREGATES]
        if aggregates and len(variables_of(part)) == 1 and all(node.operator == "only" for node in aggregates):
            context.warn(
                f"HAVING asks each match what is about one event, that of `{min(variables_of(part))}`",
                part.span,
                f"write FILTER {describe_expression(part)}: then other events begin no match",
            )
        elif (
            isinstance(part, Apply)
            and part.operator in {"<", "<="}
            and aggregates == [part.arguments[0]]
            and aggregates[0].operator == "duration"
        ):
            bound = describe_expression(part.arguments[1])
            context.warn(
                "HAVING asks each match how long it is",
                part.span,
                f"write WITHIN {bound if part.operator == '<=' else f'[< {bound}]'}: then nothing longer is made, and the state is bounded",
            )


def largest_around_a_window(context: Context, pattern: Pattern) -> None:
    """SELECT MAX over a part that has an iteration and a window of its own: its events are compared for each place where the part may begin."""
    part = _windowed_iteration(hoist(pattern)[0])
    if part is not None:
        context.note(
            "MAX compares whole matches with each other, and this part of them has a window of its own: a choice inside the part takes far less time",
            part.span,
            "write MAX(..) around this part and SELECT * if you mean its longest runs; or put one window at the end of the query",
        )


def _windowed_iteration(pattern: Pattern) -> Pattern | None:
    """A window over an iteration without a greatest number, outside what a strategy chooses from."""
    if isinstance(pattern, Select):
        return None
    if _is_window(pattern) and any(isinstance(part, Iterate) and part.maximum is None for part in walk(pattern)):
        return pattern
    return next((found for part in variables.operands(pattern) if (found := _windowed_iteration(part)) is not None), None)


def walk(pattern: Pattern) -> Iterator[Pattern]:
    """The pattern and everything below it, negated patterns too."""
    yield pattern
    for child in pattern.children():
        yield from walk(child)


def repeated_variable(context: Context, pattern: Pattern) -> None:
    """A variable used twice along a sequence: elsewhere a name is for one place."""
    if not isinstance(pattern, Sequence):
        return
    seen: set[str] = set()
    for item in pattern.items:
        names = variables.named_outside_iterations(item)
        for name in sorted(names & seen):
            context.note(
                f"the variable `{name}` is used twice in a sequence: it has the events of both places",
                next(node.place for node in reversed(list(walk(item))) if isinstance(node, Named) and node.variable == name),
                "a FILTER on it is about each of them; use two names if you do not mean this",
            )
        seen |= names


def around_strategy(context: Context, pattern: Pattern) -> None:
    """A window or a filter around a strategy: the strategy has chosen before. Who gives the strategy a window of its own knows it."""
    if isinstance(pattern, Within | WithinEvents):
        selects = (node for node in walk(pattern.pattern) if isinstance(node, Select))
        found = next((node for node in selects if not any(map(_is_window, walk(node.pattern)))), None)
        otherwise = f"give {found.strategy.value}(..) a window, too" if found else ""
    elif isinstance(pattern, Filter):
        asked = variables.NOTHING.union(*map(variables_of, pattern.conditions))
        selects = (node for node in walk(pattern.pattern) if isinstance(node, Select))
        found = next((node for node in selects if asked & variables.defined(node)), None)
        otherwise = "write HAVING"
    else:
        return
    if found is not None:
        what = "condition" if isinstance(pattern, Filter) else "window"
        name = found.strategy.value
        context.warn(
            f"a {what} is around {name}(..): {name} chooses first, also among the matches that the {what} then drops",
            found.span,
            f"put the {what} inside {name}(..), or write SELECT {name}; if you mean this, {otherwise}",
        )


def always_vetoed(context: Context, pattern: Pattern) -> None:
    """`A ; B UNLESS A`: every match of the left side contains one of the right side."""
    if isinstance(pattern, Unless) and _contains(pattern.pattern, pattern.negated):
        context.warn(
            "UNLESS a pattern that every match contains: there is never a match",
            pattern.negated.span,
            "`p UNLESS q` forbids q anywhere from the first to the last event of p, also the events of p; see `A ; NOT q ; B`",
        )


def _contains(pattern: Pattern, vetoed: Pattern) -> bool:
    """Whether every match of a pattern certainly contains a match of the other."""
    while isinstance(vetoed, Named | Project):
        vetoed = vetoed.pattern
    if isinstance(vetoed, Or):
        return any(_contains(pattern, operand) for operand in vetoed.operands)
    if vetoed in (Event(None), pattern):
        return True
    below = [_contains(operand, vetoed) for operand in variables.operands(pattern) if not isinstance(operand, Optional)]
    return bool(below) and (all(below) if isinstance(pattern, Or) else any(below))


def too_short_window(context: Context, pattern: Pattern) -> None:
    """`A ;[> 300s] B WITHIN 200s`: what the gaps ask for does not fit in the window."""
    match pattern:
        case Within(pattern=inner, interval=interval) if interval.upper is not None and shortest(inner) > interval.upper:
            unit = context.schema.unit
            above = shortest(inner, lower=lambda found: written_lower(found, unit))
            least = describe_shortest(shortest(inner), unit, above=above)
            window, help_ = describe_longest(interval.upper, unit), "or ask for less time inside it"
        case WithinEvents(pattern=inner, count=count) if narrowest(inner) > count:
            least, window, help_ = f"at least {narrowest(inner):,} events", f"{count:,} EVENTS", "or ask for fewer events inside it"
        case _:
            return
    context.warn(
        f"nothing fits in the window, which is {window}: by what is inside it, a match takes {least}",
        pattern.span,
        f"a window is from the first event of a match to its last: widen it, {help_}",
    )


def different_variables(context: Context, pattern: Pattern) -> None:
    """AND of patterns with different variables: only matches that are equal in all variables are in both."""
    if not isinstance(pattern, And):
        return
    sets = [variables.defined(operand) for operand in pattern.operands]
    differing = sorted(frozenset.union(*sets) - frozenset.intersection(*sets))
    if differing:
        context.warn(
            f"AND of patterns with different variables: only one side has {quoted(differing)}, and matches must be equal in all variables",
            pattern.span,
            "use the same types and names on both sides, PROJECT the others away, or write ALL for `both happen`",
        )


def not_in_core(context: Context, pattern: Pattern) -> None:
    """`A ; NOT (B ; B) ; C`: the CORE engine gives it another meaning. Parentheses around one event are there for its FILTER."""
    if not isinstance(pattern, Sequence):
        return
    for link in pattern.links:
        if link.without is not None and widest(link.without) != 1 and context.text:
            start = link.without.span.start
            if context.text[start : start + 1] == "(" or context.text[:start].rstrip().endswith("("):
                context.note(
                    "`; NOT (..) ;` forbids any match of the pattern between its neighbours; in CORE it means something else",
                    link.without.span,
                    "if you mean this, change nothing",
                )


def optional_end(context: Context, pattern: Pattern) -> None:
    """`((A ; C?) AS x) : B`: without C it is `A : B`, and `A ; C? : B` would be `A ; B`."""
    if not isinstance(pattern, Sequence):
        return
    for link, sides in zip(pattern.links, itertools.pairwise(pattern.items), strict=True):
        ends = zip(sides, ("last", "first"), strict=True) if link.operator == ":" else ()
        for item, place in ends:
            group = _loose_end(item, place)
            if group is not None:
                context.warn(
                    f"this group is a pattern of its own: without its {place} item, `:` next to it still allows no event between",
                    group.span,
                    "an optional item leaves the looser of two links only in one sequence: write `;` for `:`, or move the operators of the"
                    " group to its items, and remove its parentheses",
                )


def _loose_end(item: Pattern, place: str) -> Sequence | None:
    """A sequence inside an item with optional items at its first or last place, one of them with `;`; None without such a sequence."""
    if not isinstance(item, Sequence):
        return next((found for operand in variables.operands(item) if (found := _loose_end(operand, place)) is not None), None)
    step = 1 if place == "first" else -1
    items = item.items[::step]
    for end, link in zip(items, item.links[::step], strict=False):
        if not isinstance(end, Optional):
            break
        if link.operator == ";":
            return item
    return _loose_end(items[0], place)


def difference_of_events(context: Context, pattern: Pattern) -> None:
    """`y.v - x.v > 5`, which no index answers, where `y.v > x.v + 5` has one value on each side."""
    for condition in pattern.conditions if isinstance(pattern, Filter) else ():
        apart = _taken_apart(condition)
        if apart is not None:
            context.warn(
                f"`{describe_expression(condition)}` is computed anew for every earlier event that it may be true of",
                condition.span,
                *_gap_instead(apart),
                f"write `{describe_expression(apart)}`: a comparison with one event on each side is answered by an index",
            )


def _gap_instead(apart: Apply) -> tuple[str, ...]:
    """For a comparison of the times of two events, the gap that says the same: only it bounds the window."""
    later, right = apart.arguments
    assert isinstance(right, Apply)
    earlier, length = right.arguments
    if not (isinstance(later, Time) and isinstance(earlier, Time) and apart.operator in ("<", "<=") and isinstance(length, Literal)):
        return ()
    bound = f"[{apart.operator} {describe_expression(length)}]"
    return (
        f"write the gap `;{bound}` between `{earlier.variable}` and `{later.variable}`, or WITHIN {bound}: only these bound the window",
    )


def _taken_apart(condition: Expression) -> Apply | None:
    """`y > x + c` of `y - x > c`, y and x over one event each; None for other conditions. They differ where something overflows or is rounded."""
    if not isinstance(condition, Apply) or condition.operator not in FLIPPED:
        return None
    left, right = condition.arguments
    if variables_of(right) and not variables_of(left):
        return _taken_apart(Apply(FLIPPED[condition.operator], (right, left), condition.type, span=condition.span))
    if variables_of(right) or not isinstance(left, Apply) or left.operator != "-":
        return None
    later, earlier = left.arguments
    sides = [{(leaf.variable, leaf.previous) for leaf in leaves(side)} for side in (later, earlier)]
    if any(len(side) != 1 for side in sides) or sides[0] == sides[1]:
        return None
    return dataclasses.replace(condition, arguments=(later, Apply("+", (earlier, right), condition.type)))


LINTS: tuple[Callable[[Context, Pattern], None], ...] = (
    repeated_variable,
    around_strategy,
    always_vetoed,
    too_short_window,
    different_variables,
    not_in_core,
    optional_end,
    difference_of_events,
)
"""The checks of one pattern each."""


def empty_variable(context: Context, scoped: Scoped, seen: set[tuple[int, str]]) -> None:
    """A filter on a variable that some matches leave empty: it holds for them. Once for each FILTER and variable."""
    for name in sorted(variables.current_variables(scoped.condition)):
        supplier = scoped.supplier(name)
        if supplier is None or supplier.variable_sizes[name][0] > 0 or (id(scoped.filtered), name) in seen:
            continue
        seen.add((id(scoped.filtered), name))
        context.warn(
            f"the condition holds for matches where `{name}` has no event",
            scoped.condition.span,
            f"`{name}` is in one branch of OR or in an optional item: put the FILTER there if you mean this; if such matches should not pass, have"
            f" `{name}` in all",
        )


def part_of_a_chain(context: Context, scoped: Scoped) -> None:
    """A condition inside a chain on a variable that comes twice behind it: the part of the chain up to the first is a pattern, and enough."""
    for name in sorted(scoped.free()):
        scope = next(scope for scope in scoped.around if scope.binder(name) is not None)
        found, pattern = scope.binder(name), scope.pattern
        if not isinstance(pattern, Sequence) or found is None or scope.summary.first_binding[name] < scope.position:
            continue
        others = pattern.items[len(variables.operands(found.pattern)) :]
        if any(name in Summary(item).first_binding for item in others):
            context.warn(
                f"the condition is about the first `{name}` of the chain alone, not about those behind it",
                scoped.condition.span,
                "put the FILTER behind the whole chain if it is about each of them, or give the first a name of its own with AS",
            )


def no_window(context: Context, pattern: Pattern) -> None:
    """`;`, `+` or ALL without a window: on a stream every partial match is kept for ever; and `+[<= 30m]` or `:+`, of which the events are."""
    found = _unbounded(pattern)
    if found is not None:
        links = zip(found.links, found.items[1:], strict=True) if isinstance(found, Sequence) else ()
        waits = [link.model.value for link, item in links if link.model in WAIT_FOR_EVER and widest(item) != 1]
        context.warn(
            f"no window bounds the pattern in time: under {waits[0]} what waits for its next match waits for ever, also when it had one"
            if waits
            else "no window bounds the pattern in time: on a stream its state grows without end",
            found.span,
            "add WITHIN, as in WITHIN 1h or WITHIN 1000 EVENTS; a table ends, but without a window its matches can be as long as it is",
        )
        return
    found = _unlimited(pattern)
    if found is not None:
        bounds = "it goes from event to event" if found.adjacent else "its gap bounds the time from one to the next"
        context.warn(
            f"no window bounds the iteration: {bounds}, and on a stream the events of all are kept for ever",
            found.span,
            f"add WITHIN around the pattern, as in WITHIN {'1000 EVENTS' if found.adjacent else '1d'}: then a match is no longer than that, and older"
            " events are forgotten",
        )


WAIT_FOR_EVER = (TimeModel.SNOOPIB, TimeModel.ODE)
"""The models under which what has begun before the first match behind ends may still be next, however late it ends (what-is-next, section 3)."""


def many_matches(context: Context, pattern: Pattern, help_: str) -> None:
    """An iteration or a long sequence of which every match is listed: there are as many as there are subsets of the events that fit."""
    if not growth.many(pattern):
        return
    ten, twenty = growth.completed(pattern, 10), growth.completed(pattern, 20)
    iterations = [node for node in walk(pattern) if isinstance(node, Iterate) and growth.choices(node, 20) > growth.FEW]
    place = iterations[0] if iterations else next(node for node in walk(pattern) if isinstance(node, Sequence | All))
    context.warn(
        "every choice of events that fit is a match: one event can complete"
        f" {_number(ten)} matches where 10 events fit each part, and {_number(twenty)} where 20 do",
        place.span,
        help_,
    )


def _number(value: int) -> str:
    digits = len(str(value))
    return f"{value:,}" if digits <= EXACT_DIGITS else f"about 10^{digits - 1}"


EXACT_DIGITS = 15
"""Longer numbers are rounded in a warning."""


def _is_window(pattern: Pattern) -> bool:
    return isinstance(pattern, WithinEvents) or (isinstance(pattern, Within) and pattern.interval.upper is not None)


def _unlimited(pattern: Pattern) -> Iterate | None:
    """An iteration without a greatest number or a window, if there is one."""
    if _is_window(pattern):
        return None
    if isinstance(pattern, Iterate) and pattern.maximum is None:
        return pattern
    return next((found for operand in variables.operands(pattern) if (found := _unlimited(operand)) is not None), None)


def _unbounded(pattern: Pattern) -> Pattern | None:
    """A pattern whose matches can be arbitrarily long, if there is one that no window bounds."""
    if _is_window(pattern):
        return None
    if isinstance(pattern, Sequence) and any(
        link.operator != ":" and (link.gap is None or link.gap.upper is None) for link in pattern.links
    ):
        return pattern
    if isinstance(pattern, All):
        return pattern
    if (
        isinstance(pattern, Iterate)
        and not pattern.adjacent
        and pattern.maximum != 1
        and (pattern.gap is None or pattern.gap.upper is None)
    ):
        return pattern
    return next((found for operand in variables.operands(pattern) if (found := _unbounded(operand)) is not None), None)
