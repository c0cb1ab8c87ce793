"""The rule `normal_form`: local conditions on a variable from outside their FILTER move to the pattern that binds it.

Source: foundations-cel, Theorem 2 and appendix B.2, step 1 ("pop predicates up"). An example is
`(T AS x) ; ((T FILTER x.temp >= 40) OR (H FILTER x.temp < 40))`. The paper splits the binder into a case where the predicate holds and one where it
does not, with its complement. Conditions only occur positively, so neither complements nor all 2^n cases are needed. For each set S of conditions
that some path through the pattern really needs, take the paths that need nothing outside S, and FILTER them by S. Paths that need something else are
left out.

So a pattern becomes a `Family`: for each S the pattern of these paths, with nothing free inside. A binder discharges: it turns the conditions of S on
its variables into a FILTER. All scopes come from the original pattern, never from the rewritten one.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING

from cepheid.errors import LimitError
from cepheid.logical import plan
from cepheid.logical.plan import Expression, Filter, Iterate, Pattern, Sequence, is_local, variables_of
from cepheid.logical.simplify import excludes, falsified, is_true
from cepheid.logical.tree import check_expansion, conditions_of, filtered, size, union, walk
from cepheid.logical.variables import bound, current_variables, defined, operands, previous_variables, scoped_conditions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_LP_BRANCHES = 256
"""Sets of outer conditions that a pattern may ask for: 2^8, as many as eight independent conditions make."""

Pending = frozenset[Expression]
"""Local conditions whose variable an outer pattern is to supply."""

Family = dict[Pending, Pattern]
"""The matches of a pattern by what they ask for; empty for a pattern without matches."""


def normal_form(pattern: Pattern) -> Pattern:
    """The pattern with every local condition on a variable that is visible under its FILTER; the same matches.

    Together with `push_down` this gives LP-normal form. At most exponential in the number of such conditions (Theorem 2): raises LimitError
    past `MAX_LP_BRANCHES`, and past `MAX_EXPANSION` operators. Where correlations, too, reach out of their FILTER (or ask for prev), nothing
    is done: branches that vanish could change what binds their variables. Nor is a pattern with THEN changed.
    """
    reaching = [found.condition for found in scoped_conditions(pattern) if found.free() or previous_variables(found.condition)]
    if not reaching or not all(map(is_local, reaching)) or any(map(_chooses_next, walk(pattern))):
        return pattern
    return _closed(pattern) or falsified(pattern)


def _chooses_next(pattern: Pattern) -> bool:
    """Whether a pattern is a sequence with THEN, whose next match is chosen among all: splitting these would choose anew."""
    return isinstance(pattern, Sequence) and any(link.operator == "THEN" for link in pattern.links)


def is_normal(pattern: Pattern) -> bool:
    """Whether a pattern is in LP-normal form: every local condition stands on an event, and speaks of that event.

    Name in paper: LP-normal form (foundations-cel, section 5.2), with AS outside the FILTER. Conditions under negation count, too.
    """
    return all(
        isinstance(found.pattern, plan.Event) and variables_of(condition) <= {found.pattern.variable}
        for found, condition in conditions_of(pattern)
        if is_local(condition)
    )


def _closed(pattern: Pattern) -> Pattern | None:
    """The pattern, which nothing reaches out of, in normal form; None if it has no matches."""
    return _family(pattern).get(frozenset())


def _family(pattern: Pattern) -> Family:
    """What the pattern is for each set of conditions that it asks an outer pattern for."""
    make = FAMILIES.get(type(pattern), _of_unary)
    return _discharged(make(pattern), bound(pattern))


def _discharged(family: Family, binds: frozenset[str]) -> Family:
    """The family with the conditions on variables in `binds` as FILTERs."""
    parts: dict[Pending, list[Pattern]] = {}
    for pending, pattern in family.items():
        due = frozenset(condition for condition in pending if variables_of(condition) <= binds)
        ordered = tuple(sorted(due, key=lambda condition: (condition.span.start, repr(condition))))
        parts.setdefault(pending - due, []).append(filtered(pattern, ordered))
    return _unions(parts)


def _unions(parts: dict[Pending, list[Pattern]]) -> Family:
    if len(parts) > MAX_LP_BRANCHES:
        place = next(condition for pending in parts for condition in pending)
        raise LimitError(
            f"conditions on events outside their FILTER need more than {MAX_LP_BRANCHES} combinations (MAX_LP_BRANCHES)",
            span=place.span,
            help=(
                "put the conditions next to the variables that they are about",
                "cepheid.logical.normal_form.MAX_LP_BRANCHES is the limit",
            ),
        )
    family = {pending: union(patterns, like=patterns[0]) for pending, patterns in parts.items()}
    for pattern in family.values():
        check_expansion(size(pattern), "a pattern whose conditions choose by events outside their FILTER", pattern.span)
    return family


# ------------------------------------------------------------------------------------------------------------------- the operators


def _of_event(pattern: Pattern) -> Family:
    return {frozenset(): pattern}


def _of_unary(pattern: Pattern) -> Family:
    """AS, PROJECT and windows: match by match."""
    (below,) = operands(pattern)
    return {pending: _around(pattern, part) for pending, part in _family(below).items()}


def _around(pattern: Pattern, part: Pattern) -> Pattern:
    """An operator with one operand, on another one."""
    return dataclasses.replace(pattern, pattern=part)  # type: ignore[call-arg]  # all of them call it `pattern`


def _of_filter(pattern: Filter) -> Family:
    """Conditions on variables from outside wait; the others stay, but those about variables that a way does not have."""
    if any(excludes(condition, pattern.pattern) for condition in pattern.conditions):
        return {}
    visible = defined(pattern.pattern)
    waiting = frozenset(condition for condition in pattern.conditions if not current_variables(condition) <= visible)
    staying = [condition for condition in pattern.conditions if condition not in waiting and not is_true(condition)]
    family = {}
    for pending, part in _family(pattern.pattern).items():
        lost = visible - defined(part)
        kept = tuple(condition for condition in staying if not current_variables(condition) & lost)
        family[pending | waiting] = filtered(part, kept)
    return family


def _of_or(pattern: plan.Or) -> Family:
    parts: dict[Pending, list[Pattern]] = {}
    for operand in pattern.operands:
        for pending, part in _family(operand).items():
            parts.setdefault(pending, []).append(part)
    return _unions(parts)


def _of_conjunction(pattern: plan.And | plan.All) -> Family:
    """Operands associate to the left, and each prefix is a scope."""
    family, binds = _family(pattern.operands[0]), bound(pattern.operands[0])
    for operand in pattern.operands[1:]:
        binds |= bound(operand)

        def combined(left: Pattern, right: Pattern) -> Pattern:
            before = left.operands if isinstance(left, type(pattern)) else (left,)
            return dataclasses.replace(pattern, operands=(*before, right))

        family = _product(family, _family(operand), combined, binds)
    return family


def _of_sequence(pattern: Sequence) -> Family:
    """A family for each way to leave out the optional items that ask for something; every prefix is a scope, optional items bind nothing there."""
    families = [_of_item(item) for item in pattern.items]
    asking = [place for place, (item, family) in enumerate(zip(pattern.items, families, strict=True)) if _asks(item, family)]
    parts: dict[Pending, list[Pattern]] = {}
    for places, links in _readings(pattern, asking):
        first, *others = places
        binds, family = bound(pattern.items[first]), families[first]
        for place, link in zip(others, links, strict=True):
            binds |= bound(pattern.items[place])
            family = _product(family, families[place], _joining(link, pattern, begun=place != others[0]), binds)
        for pending, part in family.items():
            parts.setdefault(pending, []).append(part)
    return _unions(parts)


def _of_item(item: Pattern) -> Family:
    """The family of an item; an optional one that asks for nothing stays optional, the others are there."""
    if not isinstance(item, plan.Optional):
        return _family(item)
    family = _family(item.pattern)
    return family if _asks(item, family) else {pending: _around(item, part) for pending, part in family.items()}


def _asks(item: Pattern, family: Family) -> bool:
    """Whether an item is optional, and there only under conditions."""
    return isinstance(item, plan.Optional) and set(family) != {frozenset()}


def _readings(sequence: Sequence, may_go: list[int]) -> Iterator[tuple[list[int], list[plan.Link]]]:
    """The places that are left in a sequence for each choice of those that go, and the links between them; never no place."""
    check_expansion(len(sequence.items) << len(may_go), "a sequence with optional items that choose by events outside them", sequence.span)
    for choice in itertools.product((False, True), repeat=len(may_go)):
        gone = set(itertools.compress(may_go, choice))
        places = [place for place in range(len(sequence.items)) if place not in gone]
        if places:
            yield places, [loosest(sequence.links[left:right]) for left, right in itertools.pairwise(places)]


def loosest(links: tuple[plan.Link, ...]) -> plan.Link:
    """The link in place of those around absent items: `:` only if all are; a single link as it is."""
    return next((link for link in links if link.operator != ":"), links[0])


def _joining(link: plan.Link, sequence: Sequence, *, begun: bool) -> Callable[[Pattern, Pattern], Pattern]:
    """Puts an item behind those before it; begun: these are a sequence of this one's items, not an item that is a sequence of its own."""
    without = None if link.without is None else _closed(link.without)
    link = dataclasses.replace(link, without=without)

    def joined(left: Pattern, right: Pattern) -> Pattern:
        if begun and isinstance(left, Sequence):
            return dataclasses.replace(left, items=(*left.items, right), links=(*left.links, link))
        return Sequence((left, right), (link,), span=sequence.span)

    return joined


def _product(left: Family, right: Family, combine: Callable[[Pattern, Pattern], Pattern], binds: frozenset[str]) -> Family:
    parts: dict[Pending, list[Pattern]] = {}
    for asked, first in left.items():
        for also, second in right.items():
            parts.setdefault(asked | also, []).append(combine(first, second))
    return _discharged(_unions(parts), binds)


def _of_iterate(pattern: Iterate) -> Family:
    """For every union of sets of the body: the iterations whose bodies ask for nothing else."""
    body = _family(pattern.pattern)
    unions: dict[Pending, None] = {}
    for pending in body:
        unions |= dict.fromkeys([*(pending | other for other in unions), pending])
        if len(unions) > MAX_LP_BRANCHES:
            break
    return _unions(
        {asked: [_around(pattern, union([part for pending, part in body.items() if pending <= asked], like=pattern))] for asked in unions}
    )


def _of_select(pattern: plan.Select) -> Family:
    """Strategies compare all matches of their pattern: it is closed."""
    below = _closed(pattern.pattern)
    return {} if below is None else {frozenset(): dataclasses.replace(pattern, pattern=below)}


def _of_unless(pattern: plan.Unless) -> Family:
    negated = _closed(pattern.negated)
    family = _family(pattern.pattern)
    if negated is None:
        return family
    return {pending: dataclasses.replace(pattern, pattern=part, negated=negated) for pending, part in family.items()}


def _of_absence(pattern: plan.Absence) -> Family:
    """The deadline of an absence says when a match is given, also for what never happens."""
    negated = _closed(pattern.negated) or falsified(pattern.negated)
    return {pending: dataclasses.replace(pattern, pattern=part, negated=negated) for pending, part in _family(pattern.pattern).items()}


FAMILIES: dict[type[Pattern], Callable[[Pattern], Family]] = {
    plan.Event: _of_event,
    plan.Filter: _of_filter,  # type: ignore[dict-item]  # each takes its own node class, which is its key
    plan.Or: _of_or,  # type: ignore[dict-item]
    plan.And: _of_conjunction,  # type: ignore[dict-item]
    plan.All: _of_conjunction,  # type: ignore[dict-item]
    plan.Sequence: _of_sequence,  # type: ignore[dict-item]
    plan.Iterate: _of_iterate,  # type: ignore[dict-item]
    plan.Select: _of_select,  # type: ignore[dict-item]
    plan.Unless: _of_unless,  # type: ignore[dict-item]
    plan.Absence: _of_absence,  # type: ignore[dict-item]
}
