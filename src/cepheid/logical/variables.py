"""The papers' sets of variables, over plan patterns: defined, bound, well-formed, safe, bounded.

Comes in: a pattern of the logical plan. Goes out: sets of names, or a verdict. Event types are variables here (`T AS x` defines T and x,
the pattern ANY defines ANY). A `Sequence` is left-associative: its scopes are its items, its prefixes and the whole.

All functions are linear in the nodes of the pattern times its depth, and recurse as deep as the pattern is nested. "Semantics" below is the
semantics of queries, section 2.
"""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING

from cepheid.logical.plan import (
    Absence,
    All,
    And,
    Chain,
    Event,
    Filter,
    Iterate,
    Named,
    Optional,
    Or,
    Pattern,
    Project,
    Select,
    Sequence,
    Unless,
    Within,
    WithinEvents,
    leaves,
    variables_of,
)
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cepheid.logical.plan import Expression

NOTHING: frozenset[str] = frozenset()


def operands(pattern: Pattern) -> tuple[Pattern, ...]:
    """The patterns directly below whose events become events of a match: the negated ones (of UNLESS, NOT, absence) are left out."""
    match pattern:
        case Sequence(items=items):
            return items
        case Chain(operands=found):
            return found
        case (
            Named(pattern=inner)
            | Iterate(pattern=inner)
            | Optional(pattern=inner)
            | Project(pattern=inner)
            | Select(pattern=inner)
            | Filter(pattern=inner)
            | Within(pattern=inner)
            | WithinEvents(pattern=inner)
            | Unless(pattern=inner)
            | Absence(pattern=inner)
        ):
            return (inner,)
    return ()


def negated(pattern: Pattern) -> tuple[Pattern, ...]:
    """The patterns directly below that must not match: the n of `; NOT n ;`, the right sides of UNLESS and of NOT FOLLOWED BY."""
    match pattern:
        case Sequence(links=links):
            return tuple(link.without for link in links if link.without is not None)
        case Unless(negated=inner) | Absence(negated=inner):
            return (inner,)
    return ()


# --------------------------------------------------------------------------------------------------------------- what is defined


def defined(pattern: Pattern) -> frozenset[str]:
    """The variables that are visible in a pattern: defined inside it and not projected away.

    Name in paper: vdef (foundations-cel, section 3), extended by PROJECT (timed-cel); negated patterns define nothing.
    """
    return _visible(pattern)


def named(pattern: Pattern) -> frozenset[str]:
    """The variables that AS introduces in a pattern and that are visible in it: `defined` without the event types."""
    return _visible(pattern, types=False)


def shown(pattern: Pattern) -> tuple[str, ...]:
    """What `*` shows, in the order written: variables named by AS, types that stand somewhere without AS, and what PROJECT lists."""
    return tuple(dict.fromkeys(_shown(pattern)))


def _shown(pattern: Pattern) -> list[str]:
    if isinstance(pattern, Event):
        return [pattern.variable]
    found = [name for operand in operands(pattern) for name in _shown(operand)]
    if isinstance(pattern, Named):
        types_inside = defined(pattern.pattern) - named(pattern.pattern)
        return [*(name for name in found if name not in types_inside), pattern.variable]
    if isinstance(pattern, Project):
        kept = [name for name in found if name in pattern.variables]
        return [*kept, *sorted(pattern.variables.difference(kept))]
    return found


def named_outside_iterations(pattern: Pattern) -> frozenset[str]:
    """The visible AS variables that do not stand inside a `+` (or braces); AS over a `+` stands outside it.

    Name in paper: vdef with index + (foundations-cel, section 3).
    """
    return _visible(pattern, types=False, iterated=False)


def _visible(pattern: Pattern, *, types: bool = True, iterated: bool = True) -> frozenset[str]:
    """The visible variables: also the event types, also those inside an iteration."""
    match pattern:
        case Event():
            return frozenset({pattern.variable}) if types else NOTHING
        case Iterate() if not iterated:
            return NOTHING
    found = NOTHING.union(*(_visible(operand, types=types, iterated=iterated) for operand in operands(pattern)))
    match pattern:
        case Named(variable=variable):
            return found | {variable}
        case Project(variables=variables):
            return found & variables
    return found


def all_defined(pattern: Pattern) -> frozenset[str]:
    """The variables that are defined anywhere in a pattern, also those that a PROJECT hides; still not those of negated patterns."""
    found = NOTHING.union(*map(all_defined, operands(pattern)))
    match pattern:
        case Event():
            return found | {pattern.variable}
        case Named(variable=variable):
            return found | {variable}
    return found


def event_types(pattern: Pattern) -> frozenset[str | None]:
    """The event types (None: any) of the events that a match of the pattern can consist of."""
    if isinstance(pattern, Event):
        return frozenset({pattern.type})
    return frozenset(itertools.chain.from_iterable(map(event_types, operands(pattern))))


def types_by_variable(pattern: Pattern) -> dict[str, frozenset[str | None]]:
    """For each visible variable the event types (None: any) of the events that it can hold."""
    match pattern:
        case Event(type=event_type):
            return {pattern.variable: frozenset({event_type})}
        case Named(variable=variable):
            return {**types_by_variable(pattern.pattern), variable: event_types(pattern.pattern)}
        case Project(variables=variables):
            return {name: types for name, types in types_by_variable(pattern.pattern).items() if name in variables}
    found: dict[str, frozenset[str | None]] = {}
    for operand in operands(pattern):
        for name, types in types_by_variable(operand).items():
            found[name] = found.get(name, frozenset()) | types
    return found


Count = tuple[int, int | None]
"""Least and greatest number of events; None: no bound."""


def support_size(pattern: Pattern) -> Count:
    """How many events a match of the pattern can have in its variables: bounds that hold for every match, not always tight."""
    return _sizes(pattern)[1]


def variable_sizes(pattern: Pattern) -> dict[str, Count]:
    """For each visible variable how many events it can hold in a match: bounds that hold for every match, not always tight."""
    return _sizes(pattern)[0]


def _sizes(pattern: Pattern) -> tuple[dict[str, Count], Count]:
    """`variable_sizes` and `support_size` in one walk: a name has the size of what it names."""
    match pattern:
        case Event():
            return {pattern.variable: (1, 1)}, (1, 1)
        case Named(variable=variable):
            found, size = _sizes(pattern.pattern)
            return {**found, variable: size}, size
        case Project(variables=variables):
            found = {name: count for name, count in _sizes(pattern.pattern)[0].items() if name in variables}
            return found, (max((least for least, _ in found.values()), default=0), _sum(most for _, most in found.values()))
    below = [_sizes(operand) for operand in operands(pattern)]
    gathered: dict[str, list[Count]] = {}
    for inner, _ in below:
        for name, count in inner.items():
            gathered.setdefault(name, []).append(count)
    missing: list[Count] = [(0, 0)]
    found = {name: _combined(pattern, each if len(each) == len(below) else each + missing) for name, each in gathered.items()}
    return found, _combined(pattern, [size for _, size in below])


def _sum(numbers: Iterable[int | None]) -> int | None:
    found = list(numbers)
    return None if None in found else sum(count for count in found if count is not None)


def _combined(pattern: Pattern, below: list[Count]) -> Count:
    """The numbers of events of an operator's match from those of its operands' matches (all operands without any may be one (0, 0))."""
    least, most = [low for low, _ in below], [high for _, high in below]
    bounded_most = [high for high in most if high is not None]
    match pattern:
        case Sequence():
            return sum(least), _sum(most)
        case All():
            return max(least), _sum(most)
        case And():
            high = min(bounded_most, default=None)
            return max(least) if high is None else min(max(least), high), high
        case Or():
            return min(least), None if None in most else max(bounded_most)
        case Optional():
            return 0, most[0]
        case Iterate(minimum=minimum, maximum=maximum):
            high = most[0]
            return least[0] * minimum, 0 if high == 0 else None if high is None or maximum is None else high * maximum
    return below[0]


# ----------------------------------------------------------------------------------------------------------------- what is bound


def bound(pattern: Pattern) -> frozenset[str]:
    """The variables that a pattern binds: those that a filter elsewhere inside it may use.

    Name in paper: bound (foundations-cel, section 5.1; register-match-automata, section 3.2). A type or AS binds its name (AS also over
    `+`); `+` binds nothing else; OR binds what all operands bind; AND, ALL and sequences what any operand binds; PROJECT L what is bound
    and in L; an optional item nothing. Counted iterations are sugar for sequences of copies and bind what these do: `p{2,}` is
    `p ; p+` and binds what p binds, `p{1,}` is `p+`.
    """
    match pattern:
        case Event():
            return frozenset({pattern.variable})
        case Named(variable=variable):
            return bound(pattern.pattern) | {variable}
        case Iterate(minimum=1, maximum=None) | Optional():
            return NOTHING
        case Project(variables=variables):
            return bound(pattern.pattern) & variables
        case Or():
            return frozenset.intersection(*map(bound, pattern.operands))
    return NOTHING.union(*map(bound, operands(pattern)))


def prefix(sequence: Sequence, count: int) -> Pattern:
    """The first `count` items of a sequence, as a pattern of its own: one of the operands of the left-associative reading."""
    if count == 1:
        return sequence.items[0]
    if count == len(sequence.items):
        return sequence
    items, links = sequence.items[:count], sequence.links[: count - 1]
    return Sequence(items, links, span=items[0].span.to(items[-1].span))


class Summary:
    """The facts about one pattern, each computed when it is first needed."""

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern

    @functools.cached_property
    def defined(self) -> frozenset[str]:
        """The visible variables."""
        return defined(self.pattern)

    @functools.cached_property
    def types(self) -> dict[str, frozenset[str | None]]:
        """The event types of each visible variable."""
        return types_by_variable(self.pattern)

    @functools.cached_property
    def variable_sizes(self) -> dict[str, Count]:
        """The numbers of events of each visible variable."""
        return variable_sizes(self.pattern)

    @functools.cached_property
    def first_binding(self) -> dict[str, int]:
        """For each bound variable the first item of the sequence that binds it; 0 where the pattern is no sequence."""
        if not isinstance(self.pattern, Sequence):
            return dict.fromkeys(bound(self.pattern), 0)
        found: dict[str, int] = {}
        for position, item in enumerate(self.pattern.items):
            for variable in bound(item):
                found.setdefault(variable, position)
        return found


@record
class Enclosing:
    """A pattern around another: all its prefixes that hold the operand at `position`, where it is a sequence, and then itself."""

    summary: Summary
    position: int

    @property
    def pattern(self) -> Pattern:
        """The enclosing pattern."""
        return self.summary.pattern

    def binder(self, variable: str) -> Summary | None:
        """The smallest of these patterns that binds a variable, or None."""
        first = self.summary.first_binding.get(variable)
        if first is None or not isinstance(self.pattern, Sequence):
            return None if first is None else self.summary
        count = max(first + 1, self.position + 1, 2)
        return self.summary if count == len(self.pattern.items) else Summary(prefix(self.pattern, count))


def enclosing(pattern: Pattern) -> list[Enclosing]:
    """For each operand of a pattern what the pattern is around it."""
    summary = Summary(pattern)
    return [Enclosing(summary, position) for position in range(len(operands(pattern)))]


# ------------------------------------------------------------------------------------------------------------- where filters look


@record
class Scoped:
    """A condition of a FILTER with what encloses it.

    filtered: the pattern under the FILTER. around: the patterns around the FILTER, nearest first, as far as the condition can see: up to the
    nearest strategy or negation, or the pattern asked about.
    """

    condition: Expression
    filtered: Summary
    around: tuple[Enclosing, ...]

    def free(self) -> frozenset[str]:
        """The variables of the condition that its own FILTER does not supply (those of prev alone are not counted)."""
        return current_variables(self.condition) - self.filtered.defined

    def supplier(self, variable: str) -> Summary | None:
        """What supplies a variable (semantics, section 2, rules 1 and 2), or None where the query is not well-formed."""
        if variable in self.filtered.defined:
            return self.filtered
        return next((found for scope in self.around if (found := scope.binder(variable)) is not None), None)

    def binder(self, variable: str) -> Pattern | None:
        """The pattern that supplies a variable; see `supplier`."""
        found = self.supplier(variable)
        return None if found is None else found.pattern

    def iteration(self, variable: str) -> Iterate | None:
        """The iteration that `prev(variable)` speaks of: the innermost around the condition whose body defines the variable."""
        return next(
            (scope.pattern for scope in self.around if isinstance(scope.pattern, Iterate) and variable in scope.summary.defined), None
        )


def current_variables(condition: Expression) -> frozenset[str]:
    """The variables that a condition speaks of other than through prev."""
    return frozenset(leaf.variable for leaf in leaves(condition) if not leaf.previous)


def previous_variables(condition: Expression) -> frozenset[str]:
    """The variables that a condition speaks of through prev."""
    return frozenset(leaf.variable for leaf in leaves(condition) if leaf.previous)


def scoped_conditions(pattern: Pattern, *, around: tuple[Enclosing, ...] = ()) -> Iterator[Scoped]:
    """Every condition in a pattern with its scopes, in the order written; strategies and negated patterns see nothing around them."""
    if isinstance(pattern, Filter):
        filtered = Summary(pattern.pattern)
        for condition in pattern.conditions:
            yield Scoped(condition, filtered, around)
    if isinstance(pattern, Select):
        yield from scoped_conditions(pattern.pattern)
        return
    for operand, scope in zip(operands(pattern), enclosing(pattern), strict=True):
        yield from scoped_conditions(operand, around=(scope, *around))
    for operand in negated(pattern):
        yield from scoped_conditions(operand)


def free_conditions(pattern: Pattern) -> tuple[Scoped, ...]:
    """The conditions inside a pattern that wait for a variable from outside it: nothing in the pattern supplies it."""
    return tuple(
        found
        for found in scoped_conditions(pattern)
        if any(found.binder(variable) is None for variable in found.free())
        or any(found.iteration(variable) is None for variable in previous_variables(found.condition))
    )


# ------------------------------------------------------------------------------------------------------------------------ verdicts


def well_formed(pattern: Pattern) -> bool:
    """Whether every variable of every condition has a source: it is visible under its FILTER, or bound by a pattern around it.

    Name in paper: well-formed (foundations-cel, section 5.1). Strategies and negated patterns must be well-formed alone, and prev(x) needs an
    iteration whose body defines x.
    """
    return not free_conditions(pattern)


def safe(pattern: Pattern) -> bool:
    """Whether no AS variable is used twice in a sequence, except inside iterations.

    Name in paper: safe (foundations-cel, section 5.1: the vdef+ of the two sides of every `;` are disjoint). Event types, which are
    variables here and not there, are not counted: `A ; A` is safe.
    """
    if isinstance(pattern, Sequence):
        names = [name for item in pattern.items for name in named_outside_iterations(item)]
        if len(names) != len(set(names)):
            return False
    return all(map(safe, pattern.children()))


def bounded(pattern: Pattern) -> bool:
    """Whether finitely many registers suffice by the syntax alone.

    Name in paper: bounded (register-match-automata, Definition 3): well-formed; every FILTER uses only variables that the pattern under it binds; and
    the items of a sequence share no AS variable. We extend this to what the paper does not have: strategies, windows, projections and negations are
    bounded when their parts are; prev is not.
    """
    return well_formed(pattern) and _bounded(pattern)


def _bounded(pattern: Pattern) -> bool:
    match pattern:
        case Filter(pattern=inner, conditions=conditions):
            asked = NOTHING.union(*map(variables_of, conditions))
            if not asked <= bound(inner) or any(map(previous_variables, conditions)):
                return False
        case Sequence(items=items):
            names = [name for item in items for name in named(item)]
            if len(names) != len(set(names)):
                return False
    return all(map(_bounded, pattern.children()))
