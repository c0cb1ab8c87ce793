"""Repeated groups in an automaton: rounds, one behind the other, that have the same states and links.

Comes in: a `Subgraph`, states with the links between them. Goes out: `Run`s. `(A ; B){5}` is five times the same links; `(A ; B){2,4}` may be left
behind its second round already, and `(A ; B){2,}` enters its last round again. All have this in common: links with the same labels leave the states
that stand for each other, nothing enters or leaves a round in its middle, and between two rounds is one state, behind the one and before the other.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import defaultdict, deque
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING

from cepheid.records import record
from cepheid.viz.labels import Link

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cepheid.viz.labels import Label

MAX_ROUND_STATES = 50
"""Most states of a round that is looked for."""


@record(slots=False)
class Subgraph:
    """States with the links between them. initial, finals: what no round and no counted item has inside."""

    states: tuple[int, ...]
    links: tuple[Link, ...]
    initial: int
    finals: frozenset[int]

    @cached_property
    def from_the_start(self) -> tuple[int, ...]:
        """The states in the order of their distance from the start, then those that it does not reach."""
        after: dict[int, list[int]] = defaultdict(list)
        for link in self.links:
            after[link.source].append(link.target)
        order, todo = {self.initial: None}, deque([self.initial])
        while todo:
            for target in after[todo.popleft()]:
                if target not in order:
                    order[target] = None
                    todo.append(target)
        return tuple(dict.fromkeys([*order, *self.states]))


@record
class Run:
    """Rounds between two states.

    rounds: for each the states that stand for those of the first. between: the state behind each round, but for the last one that ends in `end`.
    least, most: how many rounds there are; most: None without a bound, where the last of `rounds` is entered again. links: those of the first round,
    from `source` to `between[0]`, with what any round stores.
    """

    source: int
    end: int
    rounds: tuple[Mapping[int, int], ...]
    between: tuple[int, ...]
    least: int
    most: int | None
    links: tuple[Link, ...]

    @property
    def states(self) -> frozenset[int]:
        """All states inside."""
        return frozenset(self.between).union(*(each.values() for each in self.rounds))


def runs(part: Subgraph) -> list[Run]:
    """The repeated groups: from each state the one with most states inside, of these that with the shortest rounds."""
    return _Search(part).found()


class _Exit(Enum):
    """Where a round leads: to the next one, to the end, or to both."""

    NEXT = "next"
    BOTH = "both"
    END = "end"


@record
class _Shape:
    """The first round. links: for each of its states, and the one before, the states inside or behind it that a label leads to, ascending."""

    source: int
    inner: frozenset[int]
    after: int
    links: Mapping[int, Mapping[Label, list[int]]]


@record
class _Round:
    """States that stand for those of the shape; the state behind them, None for the end alone; where they lead."""

    states: Mapping[int, int]
    after: int | None
    exit: _Exit


class _Search:
    """The search for runs. closed: the states that no further round has inside."""

    def __init__(self, part: Subgraph) -> None:
        self.part = part
        self.leaving: dict[int, dict[Label, set[int]]] = defaultdict(lambda: defaultdict(set))
        self.entering: dict[int, dict[Label, set[int]]] = defaultdict(lambda: defaultdict(set))
        self.stored: dict[tuple[int, Label, int], list[Label]] = defaultdict(list)
        self.waiting = {link.source for link in part.links if link.waits}
        self.closed = {part.initial, *part.finals}
        for link in part.links:
            for label in link.labels:
                shown = dataclasses.replace(label, stores="")
                self.leaving[link.source][shown].add(link.target)
                self.entering[link.target][shown].add(link.source)
                self.stored[link.source, shown, link.target].append(label)

    def found(self) -> list[Run]:
        """The runs, by their sources as they are from the start."""
        found: list[Run] = []
        inside: set[int] = set()
        for source in self.part.from_the_start:
            if source in inside or self.repeats(source):
                continue
            options: list[Run] = []
            for after in self.candidates(source):
                # Two rounds as one are no longer run.
                if not any(after in run.between for run in options):
                    options += self.of_round(source, after)
            if options:
                run = max(options, key=lambda run: (len(run.states), -len(run.rounds[0])))
                found.append(run)
                inside |= run.states
                self.closed |= run.states | {source, run.end}
        return found

    def repeats(self, source: int) -> bool:
        """Whether a state is in a counted item, with more of it behind: a group may begin with the last event of one, not in its middle."""
        labels = self.leaving[source].keys()
        if len(labels) != 1 or self.entering[source].keys() != labels:
            return False
        return any(self.leaving[target].keys() == labels for targets in self.leaving[source].values() for target in targets)

    def candidates(self, source: int) -> Iterator[int]:
        """The states near another one that may be behind its round."""
        near, todo = {source}, deque([source])
        while todo:
            for targets in self.leaving[todo.popleft()].values():
                for target in sorted(targets - near):
                    if len(near) > MAX_ROUND_STATES:
                        return
                    near.add(target)
                    todo.append(target)
                    if target not in self.closed and self.leaving[target] and self.leaving[target].keys() <= self.leaving[source].keys():
                        yield target

    def of_round(self, source: int, after: int) -> list[Run]:
        """The runs whose first round is between two states."""
        inner = self.inside(source, after)
        if not inner:
            return []
        shape = _Shape(source, inner, after, {state: self.within(state, inner | {after}) for state in (source, *sorted(inner))})
        others = {target for state in inner for targets in self.leaving[state].values() for target in targets} - inner - {after}
        if len(others) > 1 or self.is_item(shape):
            return []
        more: list[int] = []
        found = [self.followed(shape, next(iter(others), None), more)]
        found += [self.followed(shape, end, []) for end in more]
        return [run for run in found if run is not None]

    def inside(self, source: int, after: int) -> frozenset[int]:
        """The states from which `after` is reached, but not through `source`; empty where one of them can be in no round."""
        inner: set[int] = set()
        todo = [after]
        while todo:
            for sources in self.entering[todo.pop()].values():
                for state in sources - inner - {source, after}:
                    if state in self.closed or len(inner) == MAX_ROUND_STATES:
                        return frozenset()
                    inner.add(state)
                    todo.append(state)
        return frozenset(inner)

    def within(self, state: int, places: frozenset[int]) -> dict[Label, list[int]]:
        """The links of a state that lead to such places."""
        return {label: sorted(targets & places) for label, targets in self.leaving[state].items() if targets & places}

    def is_item(self, shape: _Shape) -> bool:
        """Whether a round is one label again and again: this is a counted item."""
        labels = {label for links in shape.links.values() for label in links}
        return len(labels) == 1 and len({state in self.waiting for state in (*shape.inner, shape.after)}) == 1

    def followed(self, shape: _Shape, end: int | None, more: list[int]) -> Run | None:
        """The run of a shape that leads to `end`; None: not known. Into `more` goes what it may be: where a round leads, and none before."""
        first = self.first(shape, end)
        rounds = [] if first is None else [first]
        seen = {shape.source, *shape.inner, shape.after}
        while rounds and rounds[-1].after is not None:
            following = self.round(shape, rounds[-1].after, end, more)
            if following is None:
                break
            states = {*following.states.values(), *(() if following.after is None else (following.after,))}
            if end in states or not seen.isdisjoint(states):
                break
            seen |= states
            rounds.append(following)
        return self.closing(shape, rounds, end)

    def first(self, shape: _Shape, end: int | None) -> _Round | None:
        """The first round. Links to somewhere else may leave the state before it, and no other."""
        exits = set()
        for state, links in shape.links.items():
            own = self.leaving[state]
            if state != shape.source and own.keys() != links.keys():
                return None
            for label, targets in links.items():
                if shape.after in targets:
                    exits.add(_Exit.BOTH if end in own[label] else _Exit.NEXT)
                elif end in own[label] and state != shape.source:
                    return None
        return _Round({state: state for state in shape.inner}, shape.after, exits.pop()) if len(exits) == 1 else None

    def round(self, shape: _Shape, begin: int, end: int | None, more: list[int]) -> _Round | None:
        """The round behind a state, None where it is not like the first."""
        images: dict[int, int] = {shape.source: begin}
        exits: set[_Exit] = set()
        todo = [shape.source]
        while todo:
            state = todo.pop()
            own, links = self.leaving[images[state]], shape.links[state]
            if not self.alike(images[state], shape.after if state == shape.source else state) or own.keys() != links.keys():
                return None
            for label, targets in links.items():
                reached, to_end = sorted(own[label] - {end}), end in own[label]
                wanted = targets
                if shape.after in targets:
                    if end is None and len(reached) == len(targets) + 1:
                        more += reached[::-1]
                    if to_end and len(reached) == len(targets) - 1:
                        wanted = [target for target in targets if target != shape.after]
                    exits.add(_Exit.END if len(wanted) < len(targets) else _Exit.BOTH if to_end else _Exit.NEXT)
                elif to_end:
                    return None
                if len(reached) != len(wanted):
                    return None
                for target, image in zip(wanted, reached, strict=True):
                    if target not in images and target != shape.after:
                        todo.append(target)
                    if images.setdefault(target, image) != image:
                        return None
        if len(exits) != 1 or len(set(images.values())) != len(images) or not shape.inner <= images.keys():
            return None
        return _Round({state: images[state] for state in shape.inner}, images.get(shape.after), exits.pop())

    def alike(self, state: int, other: int) -> bool:
        """Whether a state may be inside, and waits if the other one does."""
        return state not in self.closed and (state in self.waiting) == (other in self.waiting)

    def closing(self, shape: _Shape, rounds: Sequence[_Round], end: int | None) -> Run | None:
        """The rounds as a run, if there are two at least: all of them, or those before the first that may lead to the end."""
        before = next((number for number, each in enumerate(rounds) if each.exit is not _Exit.NEXT), len(rounds))
        options: list[Run] = []
        if end is not None and before < len(rounds) and len(rounds) > 1 and all(each.exit is _Exit.BOTH for each in rounds[before:-1]):
            if rounds[-1].exit is _Exit.END:
                options.append(self.made(shape, rounds, end, before + 1, len(rounds)))
            elif rounds[-1].exit is _Exit.BOTH and self.enters_again(shape, rounds[-1], end):
                options.append(self.made(shape, rounds, end, before + 1, None))
        # What is behind the last round may not be fit to be the end, if a link leads back from there.
        for count in range(before, max(before - 2, 1), -1):
            behind = rounds[count - 1].after
            assert behind is not None
            options.append(self.made(shape, rounds[:count], behind, count, count))
        return next(filter(self.is_closed, options), None)

    def enters_again(self, shape: _Shape, last: _Round, end: int) -> bool:
        """Whether the state behind a round leads into this round again."""
        assert last.after is not None
        images = {**last.states, shape.after: last.after}
        again = {
            label: {images[target] for target in targets} | ({end} if shape.after in targets else set())
            for label, targets in shape.links[shape.source].items()
        }
        return self.alike(last.after, shape.after) and self.leaving[last.after] == again

    def made(self, shape: _Shape, rounds: Sequence[_Round], end: int, least: int, most: int | None) -> Run:
        """The run of such rounds."""
        between = [each.after for each in rounds if each.after is not None]
        found = []
        for state, links in shape.links.items():
            labels: dict[int, dict[Label, None]] = defaultdict(dict)
            for begin, each in zip([shape.source, *between], rounds, strict=False):
                places: dict[int, tuple[int, ...]] = {state: (image,) for state, image in each.states.items()}
                places[shape.after] = (end,) if each.after is None else (each.after, end)
                for label, targets in links.items():
                    for target in targets:
                        stored = [self.stored.get((each.states.get(state, begin), label, place), ()) for place in places[target]]
                        labels[target].update(dict.fromkeys(itertools.chain(*stored)))
            found += [Link(state, target, tuple(own)) for target, own in sorted(labels.items())]
            if state != shape.source and state in self.waiting:
                found.append(Link(state, state, (), waits=True))
        return Run(
            shape.source,
            end,
            tuple(each.states for each in rounds),
            tuple(between if most is None else between[: len(rounds) - 1]),
            least,
            most,
            tuple(found),
        )

    def is_closed(self, run: Run) -> bool:
        """Whether nothing else enters a run. What leaves it, its rounds have shown."""
        states, first = run.states, {*run.rounds[0].values(), *run.between[:1]}
        sources = {state: {each for own in self.entering[state].values() for each in own} for state in states}
        return (
            run.end not in states
            and run.end != run.source
            and states.isdisjoint(self.closed)
            and all(own <= states | {run.source} for own in sources.values())
            and not any(run.source in own for state, own in sources.items() if state not in first)
        )
