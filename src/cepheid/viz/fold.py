"""An automaton as it is drawn: counted items and groups as one edge that says how often, accepting states that nothing leaves as one.

Comes in: an `Automaton`. Goes out: a `Diagram`, of nodes and arcs, and a `Panel` with what stands around it. It has the same matches, and each state
of the automaton is in exactly one node or counted arc. `A{5}` is a chain of equal links, `A{2,4}` one with several ends, `A+` one with a loop. All
have this in common: the states between two states are entered and left by links with one and the same label, so only the number of steps matters.
Of a group, `(A ; B){5}`, one round is drawn, as a diagram in its arc: a node there stands for a state of each round (`rounds`).
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING

from cepheid.records import record
from cepheid.viz.labels import Label, Link, links
from cepheid.viz.rounds import Run, Subgraph, runs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cepheid.automata.automaton import Automaton


@record
class Folded:
    """States that the drawing shows as one.

    places: for each the numbers of the rounds that it is in, of the outermost group first; for one between two rounds, the round before it. Empty
    without a group around it.
    """

    states: tuple[int, ...]
    places: tuple[tuple[int, ...], ...] = ()

    def in_rounds(self, rounds: Sequence[Mapping[int, int]]) -> Folded:
        """What stands for it in each round of a group, for what stands in its first."""
        places = self.places or ((),) * len(self.states)
        return Folded(
            tuple(images[state] for images in rounds for state in self.states),
            tuple((number, *place) for number in range(1, len(rounds) + 1) for place in places),
        )


@record
class EdgeCount:
    """How often an edge is taken.

    least, most: the number of events, or of rounds; most: None without a bound. folded: the states between. waits: whether other events may come
    between them. round: what one round of a group is; None: one event.
    """

    least: int
    most: int | None
    folded: Folded
    waits: bool
    round: Diagram | None = None

    @property
    def states(self) -> tuple[int, ...]:
        """The states between."""
        return self.folded.states

    def __str__(self) -> str:
        if self.most is None:
            return f"\u00d7{self.least} or more"
        return f"\u00d7{self.least}" if self.most == self.least else f"\u00d7{self.least} to {self.most}"

    def said(self, number: int) -> str:
        """A round by its number; without a bound, the last one that has states of its own stands for all behind it."""
        if self.most is None:
            return f"round {number}" + " or later" * (number == self.folded.places[-1][-1])
        return f"round {number} of {'up to ' * (self.most > self.least)}{self.most}"


@record
class Arc:
    """A link of the drawing between two nodes, by number. count: how often it is taken, None for once."""

    source: int
    target: int
    link: Link
    count: EdgeCount | None = None

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
    """States that are drawn as one, or, without states, where a round begins or ends; name: as the drawing writes it."""

    folded: Folded
    initial: bool
    final: bool

    @property
    def states(self) -> tuple[int, ...]:
        """The states."""
        return self.folded.states

    @property
    def name(self) -> str:
        """The number of its first state."""
        return str(self.states[0]) if self.states else "begin" if self.initial else "end"

    @property
    def said(self) -> str:
        """All its states, in words."""
        if not self.states:
            return f"here a round {self.name}s"
        number = ", ".join(map(str, self.states))
        rounds = " in the rounds" if self.folded.places else ""
        return f"state{'s' * (len(self.states) > 1)} {number}{rounds}" + ", initial" * self.initial + ", accepting" * self.final


@record(slots=False)
class Diagram:
    """What is drawn: nodes, numbered from 0, and the arcs between them, by source, then target. initial: the number of the first node."""

    nodes: tuple[Node, ...]
    arcs: tuple[Arc, ...]
    initial: int

    def text(self, arc: Arc) -> str:
        """An arc in one line."""
        said = arc.link.said
        if arc.count is not None:
            inside = arc.count.round
            said = f"{arc.count}: {said}" if inside is None else f"{arc.count}: ({'; '.join(map(inside.text, inside.arcs))})"
        return f"{self.nodes[arc.source].name} -> {self.nodes[arc.target].name}: {said}"

    @property
    def rounds(self) -> tuple[Diagram, ...]:
        """The diagrams of the rounds of its groups."""
        return tuple(arc.count.round for arc in self.arcs if arc.count is not None and arc.count.round is not None)

    @cached_property
    def whole(self) -> tuple[Diagram, ...]:
        """The diagram and those inside it, of rounds within rounds too."""
        return (self, *(each for inside in self.rounds for each in inside.whole))

    def in_rounds(self, rounds: Sequence[Mapping[int, int]]) -> Diagram:
        """The diagram of the first round of a group as that of all its rounds."""
        nodes = tuple(dataclasses.replace(node, folded=node.folded.in_rounds(rounds)) for node in self.nodes)
        arcs = []
        for arc in self.arcs:
            count = arc.count
            if count is not None:
                inside = None if count.round is None else count.round.in_rounds(rounds)
                count = dataclasses.replace(count, folded=count.folded.in_rounds(rounds), round=inside)
            arcs.append(dataclasses.replace(arc, count=count))
        return Diagram(nodes, tuple(arcs), self.initial)

    def said_rounds(self, around: Sequence[EdgeCount] = ()) -> Iterator[tuple[int, str]]:
        """The states that are in a round of a group, each with which one, in words. around: the groups around the diagram."""
        for folded in [node.folded for node in self.nodes] + [arc.count.folded for arc in self.arcs if arc.count and not arc.count.round]:
            yield from _said_places(folded, around)
        for arc in self.arcs:
            if arc.count is not None and arc.count.round is not None:
                groups = (*around, arc.count)
                yield from ((state, f"after {said}") for state, said in _said_places(arc.count.folded, groups))
                yield from arc.count.round.said_rounds(groups)


def _said_places(folded: Folded, around: Sequence[EdgeCount]) -> Iterator[tuple[int, str]]:
    """The innermost round comes first: `round 1 of 2 in round 3 of 5`."""
    for state, place in zip(folded.states, folded.places, strict=bool(folded.places)):
        yield state, " in ".join(count.said(number) for count, number in reversed(list(zip(around, place, strict=True))))


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
    """What is drawn of an automaton.

    Linear in the links for each label that leaves a state and for each state near it (`MAX_ROUND_STATES`), in the worst case; about linear as a rule.
    """
    drawn = links(automaton)
    finals = sorted(automaton.finals - {link.source for link in drawn} - {automaton.initial})
    first = dict.fromkeys(finals, finals[0]) if finals else {}
    states = tuple(state for state in range(automaton.states) if first.get(state, state) == state)
    part = Subgraph(states, tuple(_joined(drawn, first)), automaton.initial, frozenset(automaton.finals.intersection(states)))
    return _folded(part, {state: tuple(finals) if state in first else (state,) for state in states})


def _folded(part: Subgraph, members: Mapping[int, tuple[int, ...]]) -> Diagram:
    """What is drawn of a part of an automaton; members: what the node of each of its states stands for."""
    groups = runs(part)
    ends = frozenset(end for run in groups for end in (run.source, run.end))
    rest = Subgraph(part.states, tuple(_beside(part.links, groups)), part.initial, part.finals | ends)
    counted, inner, left = _Counting(rest).found()
    inner = inner.union(*(run.states for run in groups))
    shown = [state for state in part.states if state not in inner]
    number = {state: place for place, state in enumerate(shown)}
    nodes = tuple(Node(Folded(members[state]), initial=state == part.initial, final=state in part.finals) for state in shown)
    arcs = [Arc(number[link.source], number[link.target], link) for link in left]
    arcs += [Arc(number[link.source], number[link.target], link, count) for link, count in counted]
    waiting = {link.source for link in part.links if link.waits}
    arcs += [
        Arc(number[run.source], number[run.end], Link(run.source, run.end, ()), _count(run, waits=run.between[0] in waiting))
        for run in groups
    ]
    return Diagram(nodes, tuple(sorted(arcs, key=lambda arc: (arc.source, arc.target, arc.waits))), number[part.initial])


def _count(run: Run, *, waits: bool) -> EdgeCount:
    """How often a group is done, with what is drawn of one round."""
    begin, end = run.source, run.between[0]
    inner = tuple(run.rounds[0])
    part = Subgraph((begin, *sorted(inner), end), run.links, begin, frozenset({end}))
    inside = _folded(part, {begin: (), end: ()} | {state: (state,) for state in inner}).in_rounds(run.rounds)
    between = Folded(run.between, tuple((number,) for number in range(1, len(run.between) + 1)))
    return EdgeCount(run.least, run.most, between, waits, inside)


def _beside(drawn: Iterable[Link], groups: Sequence[Run]) -> Iterator[Link]:
    """The links that are in no group. One from its source to its end may be a round without states of its own."""
    inner = frozenset().union(*(run.states for run in groups))
    skipping = {
        (run.source, run.end): {
            label for link in run.links if link.target == run.between[0] for label in link.shown if link.source == run.source
        }
        for run in groups
        if run.least == 1
    }
    for link in drawn:
        if link.source in inner or link.target in inner:
            continue
        said = skipping.get((link.source, link.target), set())
        labels = tuple(label for label in link.labels if dataclasses.replace(label, stores="") not in said)
        if labels or link.waits:
            yield dataclasses.replace(link, labels=labels)


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

    def __init__(self, part: Subgraph) -> None:
        self.part = part
        self.leaving: dict[int, list[Link]] = defaultdict(list)
        self.entering: dict[int, list[Link]] = defaultdict(list)
        self.waiting: set[int] = set()
        for link in part.links:
            if link.waits:
                self.waiting.add(link.source)
            else:
                self.leaving[link.source].append(link)
                self.entering[link.target].append(link)
        self.plain = {state: label for state in part.states if (label := self.one_label(state))}

    def one_label(self, state: int) -> Shown | None:
        """The labels that all links into and out of a state have; None where they differ, and at the ends of the part."""
        if state == self.part.initial or state in self.part.finals:
            return None
        leaving = {link.shown for link in self.leaving[state]}
        entering = {link.shown for link in self.entering[state]}
        if len(leaving) != 1 or not entering:
            return None
        label = next(iter(leaving))
        return label if entering == leaving else None

    def found(self) -> tuple[list[tuple[Link, EdgeCount]], set[int], list[Link]]:
        """The counted links, the states inside them, and the links that are left."""
        counted: list[tuple[Link, EdgeCount]] = []
        inner: set[int] = set()
        taken: dict[tuple[int, int], list[Shown]] = defaultdict(list)
        for source in self.part.from_the_start:
            for label in dict.fromkeys(self.plain[link.target] for link in self.leaving[source] if link.target in self.plain):
                if source in inner:
                    break
                item = self.item(source, label)
                if item is not None:
                    counted.append(item)
                    inner.update(item[1].states)
                    taken[source, item[0].target].append(label)
        return counted, inner, self.left(inner, taken)

    def item(self, source: int, label: Shown) -> tuple[Link, EdgeCount] | None:
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
        return Link(source, end, tuple(labels)), EdgeCount(*counts, Folded(tuple(sorted(inside))), waits.pop())

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
        for link in self.part.links:
            if link.source in inner or link.target in inner:
                continue
            shown = set(link.shown)
            said = {each for labels in counted.get((link.source, link.target), ()) if set(labels) <= shown for each in labels}
            labels = tuple(each for each in link.labels if dataclasses.replace(each, stores="") not in said)
            if labels or link.waits:
                found.append(dataclasses.replace(link, labels=labels))
        return found
