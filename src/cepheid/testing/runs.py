"""What "right" means, for automata with registers: the matches of all runs over a short stream, by the definition.

A run is a state, what its registers hold, and its marks. Nothing is shared, indexed or determinized, so the cost is exponential: for tests. Values of
events are those of `cepheid.testing.evaluate`.
"""

from __future__ import annotations

import datetime as dt
import functools
import itertools
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cepheid.automata.registers import Before, Compares, Computes, Each, Elapsed, Gathered, Joined, Now, combinations
from cepheid.automata.transition import BEGINS, ENDS, PRECEDES, SHOWN
from cepheid.language.syntax import TimeModel
from cepheid.logical.plan import Derived, Literal, transform
from cepheid.succession import MODELS
from cepheid.testing.denotation import KEEPS, Match
from cepheid.testing.evaluate import EPOCH_DAY, compare, evaluate, holds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cepheid.automata import Automaton, Transition
    from cepheid.automata.registers import Term, Test
    from cepheid.automata.transition import Label
    from cepheid.language.syntax import Strategy
    from cepheid.logical.plan import Expression
    from cepheid.succession import TemporalModel
    from cepheid.testing.denotation import Support
    from cepheid.testing.evaluate import Event
    from cepheid.theory import UnionAutomaton

Content = Any
"""What a register holds: a frozenset of values (more than one only where a `set` gathers), or None for nothing."""

Marked = tuple[tuple[int, "Label"], ...]
"""The marked events of a run, with their marks and places in parts."""

Interval = tuple[int, int]
"""The positions of the first and the last event of a match."""

Chosen = Callable[["Support", Interval, int], bool]
"""Whether a match of a part is chosen: by its support and interval, and by where ends what is before it (-1 where nothing looks at that)."""

Run = tuple[int, tuple[Content, ...], Marked]
"""A state, what each register holds, and what was marked."""


def matches(automaton: Automaton, events: Sequence[Event]) -> set[Match]:
    """The matches of an automaton over one stream: those of its accepting runs, with parts as they are chosen. Exponential in the events."""
    ended: list[set[Interval]] = []
    for negated in automaton.negated:
        ended.append({(marked[0][0], end) for marked, end in _chosen(negated.automaton, events, ended)})
    return {_match(marked, end) for marked, end in _chosen(automaton, events, ended)}


def _chosen(automaton: Automaton, events: Sequence[Event], ended: Sequence[set[Interval]]) -> set[tuple[Marked, int]]:
    """The accepting runs with parts as they are chosen; ended: as for `_accepted`."""
    chosen: list[Chosen] = []
    for part in automaton.parts:
        found = {
            (frozenset(position for position, (mark, _) in marked if mark), (marked[0][0], end))
            for marked, end in _accepted(part.automaton, events, chosen, ended)
        }
        chosen.append(_next(part.rule, events, found) if isinstance(part.rule, TimeModel) else _kept(part.rule, found))
    return _accepted(automaton, events, chosen, ended)


def _kept(strategy: Strategy, found: Iterable[tuple[Support, Interval]]) -> Chosen:
    """What a strategy keeps of the matches of a part."""
    supports: dict[int, set[Support]] = defaultdict(set)
    for support, (_, end) in found:
        supports[end].add(support)
    return lambda support, interval, _: support in supports[interval[1]] and KEEPS[strategy](support, supports[interval[1]])


def _next(rule: TimeModel, events: Sequence[Event], found: Iterable[tuple[Support, Interval]]) -> Chosen:
    """What is next of the matches of a part (what-is-next, equation (4))."""
    model: TemporalModel[Any] = MODELS[rule.value]

    def stamp(support: Support, interval: Interval) -> Any:
        times = {events[position].time for position in support.union(interval)}
        return model.of(time for time in times if time is not None)

    stamps = {stamp(*each) for each in found}
    return lambda support, interval, before: stamp(support, interval) in model.successors(stamp(frozenset(), (before, before)), stamps)


def _accepted(
    automaton: Automaton, events: Sequence[Event], chosen: Sequence[Chosen], ended: Sequence[set[Interval]]
) -> set[tuple[Marked, int]]:
    """The accepting runs whose parts have chosen supports, and where they end.

    chosen: of the parts that the automaton may have inside. ended: the intervals of the matches of negated patterns, by number.
    """
    found: set[tuple[Marked, int]] = set()
    runs: set[Run] = set()
    begins = _begins(automaton)
    for position, step in enumerate(_read(automaton, events, ended)):
        runs = {after for run in [*runs, begins] for move in automaton.outgoing[run[0]] if (after := step.taken(run, move)) is not None}
        found |= {(marked, position) for state, _, marked in runs if state in automaton.finals}
    return {(marked, end) for marked, end in found if all(_has_chosen(marked, part, own) for part, own in enumerate(chosen))}


def _has_chosen(marked: Marked, part: int, chosen: Chosen) -> bool:
    """Whether each time that a run goes through a part it has a chosen support there."""
    support, begins, preceded, before = set[int](), -1, -1, -1
    for position, (_, parts) in marked:
        if (part, BEGINS) in parts:
            support, begins, before = set(), position, preceded
        if (part, SHOWN) in parts:
            support.add(position)
        if (part, ENDS) in parts and not chosen(frozenset(support), (begins, position), before):
            return False
        if (part, PRECEDES) in parts:
            preceded = position
    return True


def unions(deterministic: UnionAutomaton, events: Sequence[Event]) -> dict[int, dict[str, tuple[int, ...]]]:
    """By position where matches end, the union of these matches, by the one run of a deterministic automaton over one stream."""
    states = enumerate(state for state, _, _ in only_run(deterministic.automaton, events))
    return {position: deterministic.union(state, position) for position, state in states if state in deterministic.automaton.finals}


def only_run(automaton: Automaton, events: Sequence[Event]) -> Iterator[Run]:
    """The run of a deterministic automaton that begins at the first event of a stream, after each event.

    Raises ValueError where an event enables no transition, or several.
    """
    run = _begins(automaton)
    for step in _read(automaton, events):
        (run,) = [after for move in automaton.outgoing[run[0]] if (after := step.taken(run, move)) is not None]
        yield run


def _begins(automaton: Automaton) -> Run:
    return automaton.initial, (None,) * len(automaton.alphabet.registers), ()


def _read(automaton: Automaton, events: Sequence[Event], ended: Sequence[set[Interval]] = ()) -> Iterator[_Step]:
    """The events of a stream, each with the states of the trackers before it; ended: as for `_accepted`."""
    known: list[list[int]] = [[] for _ in events]
    for tracker in automaton.trackers:
        state = 0
        for position in range(len(events))[:: -1 if tracker.ahead else 1]:
            known[position].append(state)
            state = tracker.successor(state, _Step(automaton, events, position, known[position], ended).mask)
    for position, states in enumerate(known):
        yield _Step(automaton, events, position, states, ended)


def _match(marked: Marked, end: int) -> Match:
    names = sorted({name for _, (mark, _) in marked for name in mark})
    return Match(marked[0][0], end, tuple((name, tuple(place for place, (mark, _) in marked if name in mark)) for name in names))


@dataclass
class _Step:
    """One event of a stream, as the runs of an automaton see it. trackers: their states before it. ended: as for `_accepted`."""

    automaton: Automaton
    events: Sequence[Event]
    position: int
    trackers: Sequence[int]
    ended: Sequence[set[Interval]]

    def __post_init__(self) -> None:
        self.mask = sum(
            1 << bit for bit, predicate in enumerate(self.automaton.predicates) if holds(predicate.condition, self.events, self._here)
        )
        for tracker, state in zip(self.automaton.trackers, self.trackers, strict=False):  # those that are known
            self.mask |= state << tracker.bit

    @property
    def _here(self) -> Mapping[tuple[str, bool], int]:
        return {("", False): self.position}

    def taken(self, run: Run, move: Transition) -> Run | None:
        """A run after the event, if it takes a transition; None where it cannot."""
        _, held, marked = run
        asking = [guard for guard in self.automaton.alphabet.guards if (move.requires | move.forbids) & guard.mask]
        mask = self.mask | sum(guard.mask for guard in asking if self.asked(guard.test, held))
        if not move.enabled(mask):
            return None
        after = list(held)
        for store in move.writes:
            after[store.register] = self.content(store.term, held)
        return move.target, tuple(after), marked if move.label is None else (*marked, (self.position, move.label))

    def value(self, expression: Expression) -> Any:
        """A value of the event."""
        if isinstance(expression, Derived):
            if expression.kind == "place":
                return self.position
            if not expression.rises:
                raise TypeError(expression)  # these runs have no events that begin earlier
            past = self.position + (expression.kind == "ended")
            return max((start for start, end in self.ended[expression.number] if end < past), default=-1)
        return evaluate(expression, self.events, self._here)

    def asked(self, test: Test, held: Sequence[Content]) -> bool:
        """Whether a test holds, by what the registers hold."""
        match test:
            case Compares(before=before, operator=operator, now=now):
                return all(compare(operator, value, self.value(now)) for value in self.content(before, held) or ())
            case Computes(condition=condition, operands=operands):
                found = combinations(operands, lambda term: self.rows(term, held))
                return all(holds(transform(condition, functools.partial(_known, values)), self.events, {}) for values in found)
            case Elapsed(before=before, now=now, interval=interval):
                return all(_steps(self.value(now)) - _steps(value) in interval for value in self.content(before, held) or ())
        raise TypeError(test)

    def content(self, term: Term | None, held: Sequence[Content]) -> Content:
        """What a term comes to."""
        match term:
            case None:
                return None
            case Before(register=register):
                return held[register]
            case Now(value=expression):
                return frozenset({self.value(expression)})
            case Gathered(how=how, before=before, value=expression):
                values = (self.content(before, held) or frozenset()) | {self.value(expression)}
                return values if how == "set" else frozenset({_gathered(how, values)})
            case Joined(before=before, products=products):
                rows = [itertools.chain(*each) for own in products for each in itertools.product(*(self.rows(part, held) for part in own))]
                return frozenset([*self.rows(before, held), *map(tuple, rows)])
        raise TypeError(term)

    def rows(self, term: Term | None, held: Sequence[Content]) -> list[tuple[Any, ...]]:
        """What a term comes to, as choices of values."""
        if isinstance(term, Each):
            return self.rows(term.before, held) if term.width else [()]
        return [each if isinstance(each, tuple) else (each,) for each in self.content(term, held) or ()]


def _known(values: Mapping[Expression, object], node: Expression) -> Expression:
    return Literal(values[node], node.type) if node in values else node  # type: ignore[attr-defined]  # leaves have types


def _gathered(how: str, values: frozenset[Any]) -> Any:
    """Several values combined into one: None (NULL) if one of them is NULL, or if they must be equal and are not."""
    if None in values or (how == "same" and len(values) > 1):
        return None
    (found,) = (each for each in values if all(compare("<=" if how == "min" else ">=", each, other) for other in values))
    return found


def _steps(time: Any) -> int:
    """A time in steps of the time column; a position as it is."""
    return (time - EPOCH_DAY).days if isinstance(time, dt.date) else time
