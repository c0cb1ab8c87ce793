"""What an automaton with guards gives, by the definition: its partial matches, each with the configurations of all its runs.

A partial match is the events that it has marked so far. It is in the states, with the registers, of all runs that marked the same. So each is here
once, however many runs it has, and its number can be told without a list: those that began at one event and are in equal configurations are counted
together. Nothing of it is shared with the evaluation, but for the automaton.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from guard_cases import TYPES, Match, Row, holds, term_of

from cepheid.language.syntax import Strategy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cepheid.automata import Automaton, Program
    from cepheid.automata.program import ChoiceProgram
    from cepheid.automata.transition import Mark

Configuration = tuple[int, frozenset[tuple[int, Any]]]
"""A state, and what is in each register that has something."""

Configurations = frozenset[Configuration]
"""Those of all runs of a partial match."""

Known = dict[Configuration, list[tuple["Mark | None", Configuration]]]
"""Where runs go at one event."""

MOST = 2_000
"""Partial matches that are listed."""


@dataclass
class Defined:
    """What each event of a stream does, of as many as could be told.

    matches: those that end there; None: they are not listed. begins: how many matches that end there begin at an event. marked: 1 if it is in a
    partial match. groups: how many different contents of registers it makes of the partial matches that are in some states, for each mark.
    """

    matches: list[list[Match]] = field(default_factory=list)
    begins: list[Counter[int]] = field(default_factory=list)
    marked: list[int] = field(default_factory=list)
    groups: list[list[int]] = field(default_factory=list)

    @property
    def triggers(self) -> int:
        """Events that end matches."""
        return sum(map(bool, self.begins))

    @property
    def counts(self) -> list[tuple[int, int]]:
        """(event, how many matches) of these."""
        return [(end, begins.total()) for end, begins in enumerate(self.begins) if begins]

    def __len__(self) -> int:
        return len(self.begins)


def successors(
    automaton: Automaton, configurations: Configurations, row: Row, position: int, known: Known | None = None
) -> dict[Mark | None, Configurations]:
    """Where the runs of a partial match are behind an event, by how they mark it. known: those of other partial matches at this event."""
    found: dict[Mark | None, set[Configuration]] = {}
    for here in configurations:
        moved = None if known is None else known.get(here)
        if moved is None:
            moved = [*_moves(automaton, here, row, position)]
            if known is not None:
                known[here] = moved
        for mark, target in moved:
            found.setdefault(mark, set()).add(target)
    return {mark: frozenset(each) for mark, each in found.items()}


def _moves(automaton: Automaton, here: Configuration, row: Row, position: int) -> Iterator[tuple[Mark | None, Configuration]]:
    state, file = here
    held = dict(file)
    mask = 1 << TYPES.index(row.type) | sum(guard.mask for guard in automaton.alphabet.guards if holds(guard.test, held, row, position))
    for move in automaton.outgoing[state]:
        if move.enabled(mask):
            new = held | {store.register: term_of(store.term, held, row, position) for store in move.writes}
            yield move.mark, (move.target, frozenset((register, value) for register, value in new.items() if value))


def initial(automaton: Automaton) -> Configurations:
    """Where the only run is that has marked nothing."""
    return frozenset({(automaton.initial, frozenset())})


def defined(
    automaton: Automaton,
    rows: Sequence[Row],
    *,
    window: int | None = None,
    count_window: int | None = None,
    consumes: bool = False,
    most: int | None = MOST,
    apart: bool = True,
) -> Defined:
    """What the events of one partition do, as far as there are at most `most` partial matches; None: they are counted, and not listed.

    consumes: no match begins at or before an event that ended one, or goes on from there. apart: whether it is told where matches begin; else the first
    event stands for all, and windows are not looked at.
    """
    found = Defined()
    nothing: list[Match] = [] if most is None else [((), ())]
    open_: dict[tuple[int, Configurations], tuple[int, list[Match]]] = {}
    for position, row in enumerate(rows):
        after: dict[tuple[int, Configurations], tuple[int, list[Match]]] = {}
        ended: list[Match] = []
        begins: Counter[int] = Counter()
        marked = 0
        moves: Known = {}
        known: dict[Configurations, dict[Mark | None, Configurations]] = {}
        groups: dict[tuple[frozenset[int], Mark], set[Configurations]] = {}
        for (start, here), (number, matches) in [*open_.items(), ((position * apart, initial(automaton)), (1, nothing))]:
            late = window is not None and row.time - rows[start].time > window
            if late or (count_window is not None and position - start >= count_window):
                continue
            if here not in known:
                known[here] = successors(automaton, here, row, position, moves)
            for mark, targets in known[here].items():
                marked |= mark is not None
                longer = matches if mark is None else [((*places, position), (*marks, mark)) for places, marks in matches]
                if any(state in automaton.finals for state, _ in targets):
                    begins[start] += number
                    ended += longer
                if mark is not None and here != initial(automaton) and any(automaton.outgoing[state] for state, _ in targets):
                    groups.setdefault((frozenset(state for state, _ in here), mark), set()).add(targets)
                others, before = after.get((start, targets), (0, []))
                after[start, targets] = others + number, before + longer if before else longer
        if most is not None and max(sum(number for number, _ in after.values()), begins.total()) > most:
            break
        open_ = {} if consumes and begins else after
        found.matches.append(ended)
        found.begins.append(begins)
        found.marked.append(marked)
        found.groups.append([*map(len, groups.values())])
    return found


def is_match(automaton: Automaton, rows: Sequence[Row], match: Match) -> bool:
    """Whether the events of a match, so marked, are one."""
    marks, here = dict(zip(*match, strict=True)), initial(automaton)
    for position in range(match[0][0], match[0][-1] + 1):
        here = successors(automaton, here, rows[position], position).get(marks.get(position), frozenset())
    return any(state in automaton.finals for state, _ in here)


# --------------------------------------------------------------------------------------------------------- what SELECT shows of it


def named(program: Program, matches: Iterable[tuple[tuple[int, ...], tuple[int, ...]]]) -> list[Match]:
    """The matches that an evaluation gives, with what its labels mean."""
    return [(positions, tuple(program.label_sets[label] for label in labels)) for positions, labels in matches]


def by_end(matches: Iterable[Match]) -> dict[int, list[Match]]:
    """The matches of each trigger; they are in the order of these."""
    return {end: list(group) for end, group in itertools.groupby(matches, key=lambda match: match[0][-1])}


def projected(match: Match, shown: frozenset[str] | None) -> Match:
    """What SELECT shows of a match: events inside of which it shows nothing are not in it."""
    marks = [(position, mark if shown is None else mark & shown) for position, mark in zip(*match, strict=True)]
    kept = [part for place, part in enumerate(marks) if part[1] or place in {0, len(marks) - 1}]
    return tuple(position for position, _ in kept), tuple(mark for _, mark in kept)


def support(match: Match) -> frozenset[int]:
    """The events by which strategies compare."""
    return frozenset(position for position, mark in zip(*match, strict=True) if mark)


def chosen(program: ChoiceProgram, matches: Iterable[Match]) -> set[Match]:
    """What a strategy chooses among the matches of one event, as SELECT shows it."""
    own = {match: support(match) for match in matches}
    supports = set(own.values())
    if program.strategy is Strategy.MAX:
        best = set(_maximal(supports))
    else:
        first = min if program.strategy is Strategy.NXT else max
        best = {functools.reduce(lambda one, other: one if one == other or first(one ^ other) in one else other, supports)}
    return {projected(match, program.variables) for match, each in own.items() if each in best}


def _maximal(supports: Iterable[frozenset[int]]) -> Iterator[frozenset[int]]:
    larger: list[frozenset[int]] = []
    for each in sorted(supports, key=len, reverse=True):
        if not any(each < other for other in larger):
            larger.append(each)
            yield each
