"""An automaton as it is drawn: counted items as one edge that says how often, accepting states that nothing leaves as one.

Comes in: an `Automaton`. Goes out: a `Diagram`, of nodes and arcs, and a `Panel` with what stands around it. It has the same matches, and each state
of the automaton is in exactly one node or counted arc. `A{5}` is a chain of equal links, `A{2,4}` one with several ends, `A+` one with a loop. All
have this in common: the states between two states are entered and left by links with one and the same label, so only the number of steps matters.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict, deque
from functools import cached_property
from typing import TYPE_CHECKING

from cepheid.records import record
from cepheid.viz.labels import Label, Link, links

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cepheid.automata.automaton import Automaton


@record
class Count:
    """How often an edge is taken.

    least, most: the number of events; most: None without a bound. states: the states between. waits: whether other events may come between them.
    """

    least: int
    most: int | None
    states: tuple[int, ...]
    waits: bool

    def __str__(self) -> str:
        if self.most is None:
            return f"\u00d7{self.least} or more"
        return f"\u00d7{self.least}" if self.most == self.least else f"\u00d7{self.least} to {self.most}"


@record
class Arc:
    """A link of the drawing between two nodes, by number. count: how often it is taken, None for once."""

    source: int
    target: int
    link: Link
    count: Count | None = None

    @property
    def waits(self) -> bool:
        """Whether it is a waiting loop."""
        return self.link.waits

    @property
    def loops(self) -> bool:
        """Whether it goes from a node to itself."""
        return self.source == self.target

    @property
    def labels(self) -> tuple[Label, ...]:
        """The labels as they are shown."""
        return self.link.shown


@record
class Node:
    """States that are drawn as one; name: as the drawing writes it."""

    states: tuple[int, ...]
    initial: bool
    final: bool

    @property
    def name(self) -> str:
        """The number of its first state."""
        return str(self.states[0])

    @property
    def said(self) -> str:
        """All its states, in words."""
        number = ", ".join(map(str, self.states))
        return f"state{'s' * (len(self.states) > 1)} {number}" + ", initial" * self.initial + ", accepting" * self.final


@record(slots=False)
class Diagram:
    """What is drawn: nodes, numbered from 0, and the arcs between them, by source, then target. initial: the number of the first node."""

    nodes: tuple[Node, ...]
    arcs: tuple[Arc, ...]
    initial: int

    def text(self, arc: Arc) -> str:
        """An arc in one line."""
        times = "" if arc.count is None else f"{arc.count}: "
        return f"{self.nodes[arc.source].name} -> {self.nodes[arc.target].name}: {times}{arc.link.said}"


@record(slots=False)
class Panel:
    """One automaton of a drawing.

    name: of what it stands for, "" where it is the only one. caption: what it does not show. absences: what must not follow a match, in words.
    """

    automaton: Automaton
    name: str = ""
    caption: str = ""
    absences: str = ""

    @cached_property
    def diagram(self) -> Diagram:
        """The automaton as it is drawn."""
        return diagram(self.automaton)

    @property
    def note(self) -> str:
        """The absences as a sentence; "" without any."""
        return f"a match is given once there was {self.absences}" if self.absences else ""


def diagram(automaton: Automaton) -> Diagram:
    """What is drawn of an automaton. Linear in the links for each label that leaves a state, in the worst case; about linear as a rule."""
    drawn = links(automaton)
    finals = sorted(automaton.finals - {link.source for link in drawn} - {automaton.initial})
    first = dict.fromkeys(finals, finals[0]) if finals else {}
    together = _joined(drawn, first)
    counted, inner, rest = _Counting(automaton, together).found()
    shown = [state for state in range(automaton.states) if state not in inner and first.get(state, state) == state]
    number = {state: place for place, state in enumerate(shown)}
    nodes = tuple(
        Node(
            tuple(finals) if state in first else (state,),
            initial=state == automaton.initial,
            final=state in automaton.finals,
        )
        for state in shown
    )
    arcs = [Arc(number[link.source], number[link.target], link) for link in rest]
    arcs += [Arc(number[link.source], number[link.target], link, count) for link, count in counted]
    return Diagram(nodes, tuple(sorted(arcs, key=lambda arc: (arc.source, arc.target, arc.waits))), number[automaton.initial])


def _joined(drawn: Iterable[Link], first: dict[int, int]) -> list[Link]:
    """The links where the states of `first` are one: those that have the same ends then, as one."""
    found: dict[tuple[int, int, bool], Link] = {}
    for link in drawn:
        moved = dataclasses.replace(link, target=first.get(link.target, link.target))
        ends = moved.source, moved.target, moved.waits
        known = found.get(ends)
        found[ends] = moved if known is None else dataclasses.replace(moved, labels=tuple(dict.fromkeys(known.labels + moved.labels)))
    return list(found.values())


Shown = tuple[Label, ...]
"""The labels of a link as they are shown."""


class _Counting:
    """The search for counted items."""

    def __init__(self, automaton: Automaton, joined: Sequence[Link]) -> None:
        self.automaton = automaton
        self.links = joined
        self.leaving: dict[int, list[Link]] = defaultdict(list)
        self.entering: dict[int, list[Link]] = defaultdict(list)
        self.waiting: set[int] = set()
        for link in joined:
            if link.waits:
                self.waiting.add(link.source)
            else:
                self.leaving[link.source].append(link)
                self.entering[link.target].append(link)
        self.plain = {state: label for state in range(automaton.states) if (label := self.one_label(state))}

    def one_label(self, state: int) -> Shown | None:
        """The labels that all links into and out of a state have; None where they differ, and at the ends of the automaton."""
        if state == self.automaton.initial or state in self.automaton.finals:
            return None
        leaving = {link.shown for link in self.leaving[state]}
        entering = {link.shown for link in self.entering[state]}
        if len(leaving) != 1 or not entering:
            return None
        label = next(iter(leaving))
        return label if entering == leaving else None

    def found(self) -> tuple[list[tuple[Link, Count]], set[int], list[Link]]:
        """The counted links, the states inside them, and the links that are left."""
        counted: list[tuple[Link, Count]] = []
        inner: set[int] = set()
        taken: dict[tuple[int, int], list[Shown]] = defaultdict(list)
        for source in self.from_the_start():
            for label in dict.fromkeys(self.plain[link.target] for link in self.leaving[source] if link.target in self.plain):
                if source in inner:
                    break
                item = self.item(source, label)
                if item is not None:
                    counted.append(item)
                    inner.update(item[1].states)
                    taken[source, item[0].target].append(label)
        return counted, inner, self.left(inner, taken)

    def from_the_start(self) -> list[int]:
        """The states in the order of their distance from the start, then those that it does not reach."""
        order, todo = {self.automaton.initial: None}, deque([self.automaton.initial])
        while todo:
            for link in self.leaving[todo.popleft()]:
                if link.target not in order:
                    order[link.target] = None
                    todo.append(link.target)
        return list(dict.fromkeys([*order, *range(self.automaton.states)]))

    def item(self, source: int, label: Shown) -> tuple[Link, Count] | None:
        """The counted item that begins in a state, with such a label."""
        inside = self.between(source, label)
        ends = {link.target for state in inside for link in self.leaving[state]} - inside
        if any({link.target for link in self.leaving[state]} == {state} for state in inside):
            return None
        sources = {link.source for state in inside for link in self.entering[state]} - inside
        waits = {state in self.waiting for state in inside}
        if len(ends) != 1 or sources != {source} or len(waits) != 1 or source in ends:
            return None
        (end,) = ends
        counts = self.counts(source, inside, end, label)
        if counts is None:
            return None
        taken = [link for link in self.leaving[source] if link.target in inside]
        taken += [link for state in sorted(inside) for link in self.leaving[state]]
        labels = dict.fromkeys(each for link in taken for each in link.labels)
        return Link(source, end, tuple(labels)), Count(*counts, tuple(sorted(inside)), waits.pop())

    def between(self, source: int, label: Shown) -> set[int]:
        """The states that are reached by this label alone, and that have no other."""
        inside: set[int] = set()
        todo = [source]
        while todo:
            for link in self.leaving[todo.pop()]:
                if self.plain.get(link.target) == label and link.target not in inside and link.target != source:
                    inside.add(link.target)
                    todo.append(link.target)
        return inside

    def counts(self, source: int, inside: set[int], end: int, label: Shown) -> tuple[int, int | None] | None:
        """The least and the greatest number of steps (None: any) from `source` to `end`; None where some number between is not possible."""
        direct = any(link.target == end and set(label) <= set(link.shown) for link in self.leaving[source])
        steps = {1} if direct else set()
        front = {link.target for link in self.leaving[source] if link.target in inside}
        for number in range(2, len(inside) + 3):
            if any(link.target == end for state in front for link in self.leaving[state]):
                steps.add(number)
            front = {link.target for state in front for link in self.leaving[state] if link.target in inside and link.target != state}
        if front or steps != set(range(min(steps), max(steps) + 1)):
            return None
        # A way through a state that loops may be as long as one likes, and it is not longer than the longest without loops.
        endless = any(link.target == state for state in inside for link in self.leaving[state])
        return min(steps), None if endless else max(steps)

    def left(self, inner: set[int], counted: Mapping[tuple[int, int], list[Shown]]) -> list[Link]:
        """The links outside the counted items; one beside an item from the same state to the same one keeps what is not counted."""
        found = []
        for link in self.links:
            if link.source in inner or link.target in inner:
                continue
            shown = set(link.shown)
            said = {each for labels in counted.get((link.source, link.target), ()) if set(labels) <= shown for each in labels}
            labels = tuple(each for each in link.labels if dataclasses.replace(each, stores="") not in said)
            if labels or link.waits:
                found.append(dataclasses.replace(link, labels=labels))
        return found
