"""The rule `sugar`: optional items and counted iterations become sequences, OR and plain iteration.

Source: the language's own definition of `?` and braces (they are sugar over foundations-cel's operators); timed-cel for `:` and gaps.
Scopes stay as they were: what the sugar binds, the result binds, and a condition finds the same binder before and after.
"""

from __future__ import annotations

import dataclasses

from cepheid.logical.plan import Iterate, Link, Optional, Pattern, Sequence
from cepheid.logical.tree import bottom_up, check_expansion, is_counted, size, union
from cepheid.logical.variables import bound, defined, free_conditions, previous_variables, scoped_conditions

MAX_NESTED = 16
"""Depth up to which "one to so many copies" is nested, with two copies for each; wider ranges take more copies and less depth."""


def remove_sugar(pattern: Pattern) -> Pattern:
    """The pattern without `?` and without counts.

    `p{n,m}` becomes n - 1 copies of p and then one to m - n + 1 of them: about n + 2 (m - n) copies, and a logarithmic factor more beyond
    `MAX_NESTED`; `p{n,}` ends in `p+`. A sequence with k optional items takes up to 2^k copies of its first items. Raises LimitError
    past `MAX_EXPANSION`.

    Two things stay: an iteration whose body asks for the previous iteration of itself (`prev` counts iterations, copies have none), and
    optional items whose variable a condition in the sequence asks from further outside (an optional item binds nothing, a copy of it would).
    """
    return bottom_up(pattern, _expanded)


def _expanded(pattern: Pattern) -> Pattern:
    if isinstance(pattern, Iterate) and is_counted(pattern):
        return pattern if asks_for_previous(pattern) else _counted(pattern)
    if isinstance(pattern, Sequence) and any(isinstance(item, Optional) for item in pattern.items):
        return _with_options(pattern)
    return pattern


def asks_for_previous(iterate: Iterate) -> bool:
    """Whether a `prev(x)` in the body of an iteration means the previous one of these iterations, not of one further in."""
    return any(
        variable in defined(iterate.pattern) and found.iteration(variable) is None
        for found in scoped_conditions(iterate.pattern)
        for variable in previous_variables(found.condition)
    )


# -------------------------------------------------------------------------------------------------------------------- iterations


def _counted(iterate: Iterate) -> Pattern:
    longest = iterate.maximum if iterate.maximum is not None else iterate.minimum
    what = f"`{{{iterate.minimum}}}`" if iterate.minimum == iterate.maximum else f"`{{{iterate.minimum},{iterate.maximum or ''}}}`"
    check_expansion(longest * size(iterate.pattern), what, iterate.span)
    body, mandatory = iterate.pattern, iterate.minimum - 1
    if iterate.maximum is None:
        tail: Pattern = dataclasses.replace(iterate, minimum=1)
    else:
        tail = _up_to(iterate.maximum - mandatory, iterate)
    check_expansion(mandatory * size(body) + size(tail), what, iterate.span)
    return _joined([body] * mandatory, tail, iterate)


def _up_to(count: int, iterate: Iterate) -> Pattern:
    """One to `count` copies: `p OR p ; (p OR p ; ..)`, and beyond `MAX_NESTED` by halves, so that the depth stays logarithmic."""
    if count == 1:
        return iterate.pattern
    first = 1 if count <= MAX_NESTED else (count + 1) // 2
    more = _joined([iterate.pattern] * first, _up_to(count - first, iterate), iterate)
    return union([_up_to(first, iterate), more], like=iterate)


def _joined(copies: list[Pattern], tail: Pattern, iterate: Iterate) -> Pattern:
    """Copies and then the tail, in sequence as the iteration joins its iterations."""
    if not copies:
        return tail
    if isinstance(tail, Sequence) and tail.items[0] == iterate.pattern:
        # The tail is made of copies itself: one flat sequence, for `;` and `:` are associative.
        items, links = (*copies, *tail.items), tail.links
    else:
        items, links = (*copies, tail), ()
    link = Link(":" if iterate.adjacent else ";", iterate.gap)
    return Sequence(items, (link,) * (len(items) - 1 - len(links)) + links, span=iterate.span)


# ---------------------------------------------------------------------------------------------------------------- optional items


@dataclasses.dataclass(frozen=True, slots=True)
class _Prefix:
    """A way to read the first items of a sequence.

    pattern: of the items that are there, None for none. adjacent: whether all links since the last of them are `:`.
    """

    pattern: Pattern | None
    adjacent: bool = True


def _with_options(sequence: Sequence) -> Pattern:
    """The sequence as OR over which optional items are there, prefixes shared: `A ; B? ; C` is `(A OR A ; B) ; C`."""
    optional = [item.pattern for item in sequence.items if isinstance(item, Optional)]
    if frozenset().union(*map(bound, optional)) & _asked_for(sequence):
        return sequence
    prefixes = [_Prefix(None)]
    for position, item in enumerate(sequence.items):
        link = sequence.links[position - 1] if position else Link(";")
        kept = _continued(prefixes, link, item.pattern if isinstance(item, Optional) else item, sequence)
        skipped = [_Prefix(prefix.pattern, adjacent=prefix.adjacent and link.operator == ":") for prefix in prefixes]
        prefixes = [*(skipped if isinstance(item, Optional) else ()), _Prefix(kept)]
        total = sum(size(prefix.pattern) for prefix in prefixes if prefix.pattern is not None)
        check_expansion(total, "a sequence with optional items", sequence.span)
    return union([prefix.pattern for prefix in prefixes if prefix.pattern is not None], like=sequence)


def readings(sequence: Sequence) -> list[tuple[tuple[Pattern, ...], tuple[Link, ...]]]:
    """Items and links of a sequence for each choice of its optional items: with them (still marked as optional) or without; never no item."""
    found: list[tuple[tuple[Pattern, ...], tuple[Link, ...], bool]] = [((), (), True)]
    for position, item in enumerate(sequence.items):
        link = sequence.links[position - 1] if position else Link(";")
        longer = [
            ((*items, item), (*links, link if adjacent else dataclasses.replace(link, operator=";")) if items else (), True)
            for items, links, adjacent in found
        ]
        skipped = [(items, links, adjacent and link.operator == ":") for items, links, adjacent in found]
        found = [*longer, *(skipped if isinstance(item, Optional) else ())]
        check_expansion(len(found) * len(sequence.items), "a sequence with optional items", sequence.span)
    return [(items, links) for items, links, _ in found if items]


def _asked_for(sequence: Sequence) -> frozenset[str]:
    """The variables that conditions in the items of a sequence ask from outside their item."""
    return frozenset(
        variable
        for item in sequence.items
        for found in free_conditions(item)
        for variable in found.free()
        if found.binder(variable) is None
    )


def _continued(prefixes: list[_Prefix], link: Link, item: Pattern, sequence: Sequence) -> Pattern:
    """All readings of the items so far that end in `item`."""
    groups: dict[Link, list[Pattern]] = {}
    alone = []
    for prefix in prefixes:
        if prefix.pattern is None:
            alone.append(item)
            continue
        # A link with a gap or a NOT never stands beside an optional item: then no reading has left anything out here.
        merged = link if prefix.adjacent else dataclasses.replace(link, operator=";")
        groups.setdefault(merged, []).append(prefix.pattern)
    return union([*alone, *(_appended(group, merged, item, sequence) for merged, group in groups.items())], like=sequence)


def _appended(group: list[Pattern], link: Link, item: Pattern, sequence: Sequence) -> Pattern:
    first = union(group, like=sequence)
    if isinstance(first, Sequence):
        # `(A ; B) ; C` is `A ; B ; C`, with the same scopes.
        return dataclasses.replace(first, items=(*first.items, item), links=(*first.links, link))
    return Sequence((first, item), (link,), span=sequence.span)
