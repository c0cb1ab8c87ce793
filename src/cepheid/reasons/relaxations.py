"""Relaxations: what can be taken out of a query, each on its own, and the query without some of it.

Comes in: a syntax tree. Goes out: its `Relaxation`s, in the order of the text, and for any set of them a syntax tree without these constructs.
Negated patterns are constructs as wholes. What the nodes of the tree mean is in `cepheid.language.syntax`.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from cepheid.language import syntax, to_text
from cepheid.language.syntax import Consumption, Strategy, TimeModel
from cepheid.logical.patterns import conjuncts
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from cepheid.errors import Span

KINDS: dict[str, str] = {
    "condition": "the condition `{}`",
    "gap": "the gap `{}`",
    "window": "`WITHIN {}`",
    "negation": "`{}`",
    "contiguity": "`{}` (the very next event)",
    "next": "`{}` (the next match)",
    "projection": "`{}` (it hides events)",
    "having": "`HAVING {}`",
    "strategy": "the strategy `{}`",
    "limit": "`{}`",
    "consumption": "`{}`",
    "partition": "`PARTITION BY {}`",
    "event": "the missing `{}`",
    "count": "the count of `{}`",
    "order": "the order of `{}`",
}
"""What a relaxation takes out, and how that is said."""

CHOICES = frozenset({"strategy", "next", "limit", "consumption"})
"""What compares a match with others."""

STRUCTURE = frozenset({"partition", "event", "count", "order"})
"""What is taken out only where nothing else helps."""


@record(eq=False)
class Relaxation:
    """One construct that can be taken out: its kind (of `KINDS`), where it stands, and its text.

    node, number: the node of the tree that has it, and which one it is of those that this node has.
    """

    kind: str
    text: str
    span: Span
    node: syntax.Node
    number: int = 0

    @property
    def key(self) -> tuple[int, str, int]:
        """What tells it from every other one of its tree."""
        return id(self.node), self.kind, self.number


def relaxations(query: syntax.Query) -> list[Relaxation]:
    """What can be taken out of a query, in the order of its text."""
    found = [*_of_query(query), *_of_pattern(query.pattern)]
    return sorted(found, key=lambda relaxation: (relaxation.span.start, relaxation.span.end))


def _of_query(query: syntax.Query) -> Iterator[Relaxation]:
    if query.strategy is not Strategy.ALL:
        # STRICT looks at one match alone.
        kind = "contiguity" if query.strategy is Strategy.STRICT else "strategy"
        yield Relaxation(kind, query.strategy.value, query.place("strategy"), query)
    for number, name in enumerate(query.partition_by):
        yield Relaxation("partition", name, query.place("partition_by", number), query, number)
    if query.partition_within is not None:
        yield Relaxation("window", _window(query.partition_within), query.partition_within.span, query)
    if query.having is not None:
        for number, condition in enumerate(conjuncts(query.having)):
            yield Relaxation("having", to_text(condition), place_of(condition), query, number)
    if query.consume is not Consumption.NONE:
        yield Relaxation("consumption", f"CONSUME BY {query.consume.value}", query.place("consume"), query)
    if query.limit is not None:
        limit = to_text(query.limit) if isinstance(query.limit, syntax.Parameter) else query.limit
        yield Relaxation("limit", f"LIMIT {limit}", query.place("limit"), query)


def place_of(condition: syntax.Expression) -> Span:
    """Where a condition stands; of one of several in `x[a AND b]` that inside."""
    return condition.condition.span if isinstance(condition, syntax.Local) else condition.span


def _window(window: syntax.Interval | syntax.EventCount) -> str:
    """A window as it stands behind WITHIN, short."""
    if isinstance(window, syntax.Interval) and window.lower is None and window.upper is not None and not window.upper_strict:
        return to_text(window.upper)
    return to_text(window).removeprefix("WITHIN ")


def _of_pattern(node: syntax.Pattern) -> Iterator[Relaxation]:
    for below in operands(node):
        # What both sides of AND hide may differ: it is no match of AND once it shows.
        yield from (each for each in _of_pattern(below) if each.kind != "projection" or not isinstance(node, syntax.And))
    match node:
        case syntax.Filter(condition=condition):
            for number, part in enumerate(conjuncts(condition)):
                yield Relaxation("condition", to_text(part), place_of(part), node, number)
        case syntax.Within(window=window):
            yield Relaxation("window", _window(window), window.span, node)
        case syntax.Unless(negated=negated):
            yield Relaxation("negation", f"UNLESS {to_text(negated)}", negated.span, node)
        case syntax.Absence(negated=negated, duration=duration):
            start = " FROM START" if node.from_start else ""
            text = f"NOT FOLLOWED BY {to_text(negated)} FOR {to_text(duration)}{start}"
            yield Relaxation("negation", text, negated.span.to(duration.span), node)
        case syntax.Select(strategy=strategy):
            yield Relaxation("contiguity" if strategy is Strategy.STRICT else "strategy", strategy.value, node.place("strategy"), node)
        case syntax.Project(variables=variables):
            yield Relaxation("projection", f"PROJECT {', '.join(variables) or 'NONE'}", node.place("variables"), node)
        case syntax.Iterate():
            yield from _of_iteration(node)
        case syntax.Sequence():
            yield from _of_sequence(node)
        case syntax.All(operands=items):
            yield from (Relaxation("event", to_text(item), item.span, node, number) for number, item in enumerate(items))


def _of_iteration(node: syntax.Iterate) -> Iterator[Relaxation]:
    if node.adjacent:
        yield Relaxation("contiguity", to_text(node), node.span, node)
    if node.gap is not None:
        yield Relaxation("gap", to_text(node.gap), node.gap.span, node)
    if node.minimum != 1 or node.maximum is not None:
        yield Relaxation("count", to_text(node), node.span, node)


def _of_sequence(node: syntax.Sequence) -> Iterator[Relaxation]:
    for number, link in enumerate(node.links):
        if link.operator != ";":
            yield Relaxation("next" if link.operator == "THEN" else "contiguity", link.operator, link.place("operator"), node, number)
        if link.gap is not None:
            yield Relaxation("gap", to_text(link.gap), link.gap.span, node, number)
        if link.without is not None:
            yield Relaxation("negation", f"NOT {to_text(link.without)}", link.without.span, node, number)
    optional = [isinstance(item, syntax.Optional) for item in node.items]
    for number, item in enumerate(node.items):
        if not optional[number] and not all(optional[:number] + optional[number + 1 :]):
            yield Relaxation("event", to_text(item), item.span, node, number)
    if not any(optional):
        yield Relaxation("order", to_text(node), node.span, node)


# --------------------------------------------------------------------------------------------------------------- walking and rebuilding


def operands(node: syntax.Pattern) -> tuple[syntax.Pattern, ...]:
    """The patterns directly below that put events into a match: not the negated ones."""
    if isinstance(node, syntax.Sequence):
        return node.items
    if isinstance(node, syntax.Chain):
        return node.operands
    return () if isinstance(node, syntax.Type) else (node.pattern,)  # type: ignore[attr-defined]  # all others have one


def with_operands(node: syntax.Pattern, change: Callable[[Any], Any]) -> Any:
    """The pattern with `change` applied to its `operands`."""
    if isinstance(node, syntax.Sequence):
        return dataclasses.replace(node, items=tuple(map(change, node.items)))
    if isinstance(node, syntax.Chain):
        return dataclasses.replace(node, operands=tuple(map(change, node.operands)))
    if isinstance(node, syntax.Type):
        return node
    return dataclasses.replace(node, pattern=change(node.pattern))  # type: ignore[attr-defined,call-arg]  # all others have one


def names_in(node: syntax.Pattern) -> frozenset[str]:
    """The variables that a pattern shows: types, and names by AS, that no PROJECT hides."""
    below = frozenset[str]().union(*map(names_in, operands(node)))
    match node:
        case syntax.Type(name=name):
            return frozenset({name or "ANY"})
        case syntax.Named(variable=variable):
            return below | {variable}
        case syntax.Project(variables=variables):
            return below.intersection(variables)
    return below


def spoken_of(node: syntax.Node) -> Iterator[str]:
    """The variables in a condition or a measure."""
    if isinstance(node, syntax.Attribute | syntax.System | syntax.Local):
        yield node.variable
    elif isinstance(node, syntax.Call):
        yield from (argument.name for argument in node.arguments if isinstance(argument, syntax.Word))
    for child in node.children():
        yield from spoken_of(child)


def together(conditions: Collection[syntax.Expression]) -> syntax.Expression | None:
    """Conditions as one; None without any."""
    parts = tuple(conditions)
    return None if not parts else parts[0] if len(parts) == 1 else syntax.BooleanAnd(parts)


# ------------------------------------------------------------------------------------------------------------------- the relaxed query

WATCHED = "\0watched {} {}"
"""The variables that `relaxed(.., watch=True)` adds: of the events on both sides of a link ("left", "right"), or below a window ("window")."""


def watched(side: str, relaxation: Relaxation) -> str:
    """The variable that a watched relaxation has for a side."""
    return WATCHED.format(side, relaxation.key)


def relaxed(query: syntax.Query, chosen: Collection[Relaxation], *, watch: bool = False) -> syntax.Query:
    """The query without some constructs. watch: with variables for what stands beside them, see `WATCHED`; such a query has no text."""
    pattern = _Relaxed(chosen, query.model, watch=watch).pattern(query.pattern)
    taken = {(relaxation.kind, relaxation.number) for relaxation in chosen if relaxation.node is query}
    changes: dict[str, Any] = {}
    keys = tuple(name for number, name in enumerate(query.partition_by) if ("partition", number) not in taken)
    window = None if ("window", 0) in taken else query.partition_within
    if window is not None and not keys:
        pattern, window = syntax.Within(pattern, window), None
    if {("strategy", 0), ("contiguity", 0)} & taken:
        changes["strategy"] = Strategy.ALL
    if ("consumption", 0) in taken:
        changes["consume"] = Consumption.NONE
    if ("limit", 0) in taken:
        changes["limit"] = None
    if not any(link.operator == "THEN" for link in _links(pattern)):
        changes["model"] = None
    having = [] if query.having is None else list(conjuncts(query.having))
    kept = [condition for number, condition in enumerate(having) if ("having", number) not in taken]
    changes["targets"] = query.targets
    if any(relaxation.kind == "event" for relaxation in chosen):
        lost = names_in(query.pattern) - names_in(pattern)
        pattern = _without(pattern, lost)
        kept = [condition for condition in kept if lost.isdisjoint(spoken_of(condition))]
        rest = tuple(target for target in query.targets or () if lost.isdisjoint(_named_by(target)))
        changes["targets"] = rest or None
    return dataclasses.replace(
        query, pattern=pattern, partition_by=keys, partition_within=window, having=together(kept), span=syntax.NO_SPAN, **changes
    )


def _named_by(target: syntax.Target) -> Iterator[str]:
    yield from [target.expression.name] if isinstance(target.expression, syntax.Word) else spoken_of(target.expression)


def _links(node: syntax.Node) -> Iterator[syntax.Link]:
    if isinstance(node, syntax.Link):
        yield node
    for child in node.children():
        yield from _links(child)


def _without(pattern: syntax.Pattern, lost: Collection[str]) -> syntax.Pattern:
    """The pattern without conditions on variables that it has no more."""
    found: syntax.Pattern = with_operands(pattern, lambda below: _without(below, lost))
    if isinstance(found, syntax.Filter):
        return _filtered(found, [part for part in conjuncts(found.condition) if not set(lost).intersection(spoken_of(part))])
    if isinstance(found, syntax.Project):
        return dataclasses.replace(found, variables=tuple(name for name in found.variables if name not in lost))
    return found


def _filtered(node: syntax.Filter, conditions: Collection[syntax.Expression]) -> syntax.Pattern:
    condition = together(conditions)
    return _bare(node.pattern) if condition is None else dataclasses.replace(node, condition=condition)


def _bare(pattern: syntax.Pattern) -> syntax.Pattern:
    """A pattern whose clause is taken out; a sequence with optional items stays the group that it was: beside other items it means something else."""
    if isinstance(pattern, syntax.Sequence) and any(isinstance(item, syntax.Optional) for item in pattern.items):
        return syntax.Filter(pattern, syntax.Constant(value=True))
    return pattern


class _Relaxed:
    """Takes the chosen constructs out of a pattern."""

    def __init__(self, chosen: Collection[Relaxation], model: TimeModel | None, *, watch: bool) -> None:
        self.chosen = {relaxation.key: relaxation for relaxation in chosen}
        self.model = model
        self.watch = watch

    def taken(self, node: syntax.Node, kind: str, number: int = 0) -> bool:
        return (id(node), kind, number) in self.chosen

    def seen(self, pattern: syntax.Pattern, side: str, node: syntax.Node, kind: str, number: int = 0) -> syntax.Pattern:
        """A pattern beside a construct, named if it is to be watched."""
        if not self.watch or not self.taken(node, kind, number):
            return pattern
        name = watched(side, self.chosen[id(node), kind, number])
        if isinstance(pattern, syntax.Optional):
            return syntax.Optional(syntax.Named(pattern.pattern, name))
        return syntax.Named(pattern, name)

    def pattern(self, node: syntax.Pattern) -> syntax.Pattern:
        if isinstance(node, syntax.Sequence):
            return self.sequence(node)
        if isinstance(node, syntax.All):
            return self.conjunction(node)
        found: Any = with_operands(node, self.pattern)
        match node:
            case syntax.Filter(condition=condition):
                kept = [part for number, part in enumerate(conjuncts(condition)) if not self.taken(node, "condition", number)]
                found = _filtered(found, kept)
            case syntax.Within() if self.taken(node, "window"):
                found = _bare(self.seen(found.pattern, "window", node, "window"))
            case syntax.Unless() | syntax.Absence() if self.taken(node, "negation"):
                found = _bare(self.seen(found.pattern, "window", node, "negation"))
            case syntax.Select() if self.taken(node, "strategy") or self.taken(node, "contiguity"):
                found = _bare(found.pattern)
            case syntax.Project() if self.taken(node, "projection"):
                name = f"hidden {node.span.start}"
                found = dataclasses.replace(found, variables=(*found.variables, name), pattern=syntax.Named(found.pattern, name))
            case syntax.Iterate():
                found = self.iteration(node, found)
        changed: syntax.Pattern = found
        return changed

    def iteration(self, node: syntax.Iterate, found: syntax.Iterate) -> syntax.Pattern:
        changes: dict[str, Any] = {}
        if self.taken(node, "contiguity"):
            changes["adjacent"] = False
        if self.taken(node, "gap"):
            changes["gap"] = None
        if self.taken(node, "count"):
            changes |= {"minimum": 1, "maximum": None, "braces": False}
        return dataclasses.replace(found, **changes)

    def conjunction(self, node: syntax.All) -> syntax.Pattern:
        kept = tuple(self.pattern(item) for number, item in enumerate(node.operands) if not self.taken(node, "event", number))
        return kept[0] if len(kept) == 1 else dataclasses.replace(node, operands=kept) if kept else node

    def sequence(self, node: syntax.Sequence) -> syntax.Pattern:
        """The items and links that are left; the links around an item that is taken out become one."""
        items: list[syntax.Pattern] = []
        links: list[syntax.Link] = []
        merged: syntax.Link | None = None
        for number, item in enumerate(node.items):
            before = self.link(node, number - 1) if number else None
            if self.taken(node, "event", number):
                merged = _LOOSE if items else None
                continue
            if items and before is not None:
                links.append(merged or before)
            merged = None
            items.append(self.item(node, number, item))
        if not items:
            return node
        if len(items) == 1:
            return items[0]
        if self.taken(node, "order"):
            return syntax.All(tuple(items))
        return _joined(node, items, links)

    def item(self, node: syntax.Sequence, number: int, item: syntax.Pattern) -> syntax.Pattern:
        found = self.pattern(item)
        for kind in ("gap", "negation", "contiguity", "next"):
            found = self.seen(found, "left", node, kind, number)
            found = self.seen(found, "right", node, kind, number - 1)
        return found

    def link(self, node: syntax.Sequence, number: int) -> syntax.Link:
        link = node.links[number]
        operator = link.operator
        if self.taken(node, "next", number):
            # Under POINT what is next ends later, and may begin earlier: `;` would take matches away.
            operator = "ALL" if self.model is TimeModel.POINT and not _is_single(node.items[number + 1]) else ";"
        return dataclasses.replace(
            link,
            operator=";" if self.taken(node, "contiguity", number) else operator,
            gap=None if self.taken(node, "gap", number) else link.gap,
            without=None if self.taken(node, "negation", number) else link.without,
        )


_LOOSE = syntax.Link(";")


def _is_single(pattern: syntax.Pattern) -> bool:
    """Whether each match is surely of one event."""
    return isinstance(pattern, syntax.Type) or (isinstance(pattern, syntax.Named | syntax.Filter) and _is_single(pattern.pattern))


def _joined(node: syntax.Sequence, items: Sequence[syntax.Pattern], links: Sequence[syntax.Link]) -> syntax.Pattern:
    """A sequence of the items; a link `ALL` stands for no order between all that is before it and the item behind it."""
    for number in reversed(range(len(links))):
        if links[number].operator == "ALL":
            before = _joined(node, items[: number + 1], links[:number])
            return _joined(node, (syntax.All((before, items[number + 1])), *items[number + 2 :]), links[number + 1 :])
    return dataclasses.replace(node, items=tuple(items), links=tuple(links)) if links else items[0]
