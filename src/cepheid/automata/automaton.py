"""The complex event automaton: states and marking transitions over letters.

Name in paper: CEA (foundations-cel, section 6). A predicate of a transition is a conjunction of bits of the event's letter; a transition
marks its event with a set of variables or does not mark it, so one run gives one complex event with its mapping. Clock conditions,
register guards and writes of the timed and correlated fragments belong on `Transition`, beside `requires`: the three models are one type.

Invariants of every automaton that `construct` builds, and that the kernel relies on:

* a match begins at a marked event: the initial state has only marking transitions out, and none in;
* a match ends at a marked event: final states are entered by marking transitions only, and none leaves them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cepheid.logical.plan import Expression

Mark = frozenset[str]


@dataclass(frozen=True, slots=True)
class Predicate:
    """One bit of a letter: a test of the event type, or a local condition about the event; exactly one of both is given."""

    type: str | None = None
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class Transition:
    """One move of the automaton.

    requires, forbids: bit masks over letters (predicates, then trackers); the letter must have all bits of the one and none of the other.
    mark: the variables that the event is put in; None: the event is not marked; the empty set: marked, but shown in no variable (the first
    or last event of a match that PROJECT hides).
    """

    source: int
    target: int
    requires: int = 0
    mark: Mark | None = None
    forbids: int = 0

    def enabled(self, letter: int) -> bool:
        """Whether an event with this letter may take the transition."""
        return letter & self.requires == self.requires and not letter & self.forbids

    @property
    def waits(self) -> bool:
        """Whether this is a waiting loop: any event, no mark, same state."""
        return self.source == self.target and self.mark is None and not self.requires and not self.forbids


@dataclass(frozen=True)
class Tracker:
    """A deterministic automaton over letters that runs from a partition's first event on; its state BEFORE an event is part of the event's letter.

    bit: the first of `width` bits of a letter that hold the number of its state, binary. states: how many; 0 is the first. moves: those that
    change its state, unmarked, at most one of them for a state and a letter; without one it stays. They may read the bits of earlier trackers.
    """

    bit: int
    states: int
    moves: tuple[Transition, ...]

    @property
    def width(self) -> int:
        """How many bits of a letter it has."""
        return (self.states - 1).bit_length()

    @property
    def mask(self) -> int:
        """Its bits of a letter."""
        return ((1 << self.width) - 1) << self.bit

    @cached_property
    def outgoing(self) -> tuple[tuple[Transition, ...], ...]:
        """The moves of each state."""
        return tuple(tuple(move for move in self.moves if move.source == state) for state in range(self.states))

    def successor(self, state: int, letter: int) -> int:
        """The state after an event with this letter."""
        return next((move.target for move in self.outgoing[state] if move.enabled(letter)), state)

    def possible(self, requires: int, forbids: int) -> bool:
        """Whether some state's number has the required bits and none of the forbidden ones."""
        return not requires & forbids & self.mask and (requires & self.mask) >> self.bit < self.states

    def states_of(self, requires: int, forbids: int) -> list[int]:
        """The states whose numbers have the required bits and none of the forbidden ones."""
        return [
            state for state in range(self.states) if not requires & self.mask & ~(state << self.bit) and not forbids & state << self.bit
        ]


@dataclass(frozen=True)
class Automaton:
    """A complex event automaton over numbered states.

    states: how many. initial: the one initial state. finals: accepting states. transitions: sorted, without repetition. predicates: what
    the first bits of a letter mean. trackers: what its other bits mean; each may read the bits of those before it.
    """

    states: int
    initial: int
    finals: frozenset[int]
    transitions: tuple[Transition, ...]
    predicates: tuple[Predicate, ...] = ()
    trackers: tuple[Tracker, ...] = ()

    @cached_property
    def outgoing(self) -> tuple[tuple[Transition, ...], ...]:
        """The transitions that leave each state."""
        out: list[list[Transition]] = [[] for _ in range(self.states)]
        for transition in self.transitions:
            out[transition.source].append(transition)
        return tuple(tuple(moves) for moves in out)

    @cached_property
    def marks(self) -> tuple[Mark, ...]:
        """The different marks, in an order that depends on the variables alone."""
        return tuple(sorted({t.mark for t in self.transitions if t.mark is not None}, key=sorted))

    @cached_property
    def type_bits(self) -> int:
        """The letter bits that test the event's type: an event has one of them at most."""
        return sum(1 << index for index, predicate in enumerate(self.predicates) if predicate.type is not None)

    @property
    def inner(self) -> frozenset[int]:
        """The states in which a match has begun and can go on."""
        return frozenset(t.source for t in self.transitions) - {self.initial}

    @property
    def waiting(self) -> bool:
        """Whether every inner state waits, so that events which enable no other transition change nothing."""
        return self.inner <= {t.source for t in self.transitions if t.waits}

    def tracked(self, move: Transition) -> Iterator[str]:
        """What a transition asks of the trackers, as texts: `tracker 1 = 3`."""
        for number, tracker in enumerate(self.trackers, 1):
            states = tracker.states_of(move.requires, move.forbids)
            if len(states) < tracker.states:
                yield f"tracker {number} = {' or '.join(map(str, states)) or 'none'}"


def order(transitions: Iterable[Transition]) -> tuple[Transition, ...]:
    """The transitions sorted and without repetition: equal automata compare equal."""
    return tuple(sorted(set(transitions), key=_key))


def _key(transition: Transition) -> tuple[int, int, int, int, bool, list[str]]:
    mark = transition.mark
    return transition.source, transition.target, transition.requires, transition.forbids, mark is not None, sorted(mark or ())
