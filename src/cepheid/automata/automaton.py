"""The complex event automaton: states and marking transitions over letters.

Name in paper: CEA (foundations-cel, section 6). A predicate of a transition is a conjunction of bits of the event's letter; a transition marks its
event with a set of variables, or does not mark it. So one run gives one complex event with its mapping. Clock conditions, register guards and writes
of the timed and correlated fragments belong in `alphabet` and on `Transition`: the three models are one type.

Invariants of every automaton that `construct` builds, and that the kernel relies on:

* a match begins at a marked event: the initial state has only marking transitions out, and none in;
* a match ends at a marked event: final states are entered by marking transitions only, and none leaves them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from cepheid.automata.alphabet import Alphabet

if TYPE_CHECKING:
    from cepheid.automata.alphabet import Predicate, Tracker
    from cepheid.automata.transition import Mark, Transition


@dataclass(frozen=True)
class Automaton:
    """A complex event automaton over numbered states.

    states: how many. initial: the one initial state. finals: accepting states. transitions: sorted, without repetition. alphabet: what the bits
    of a letter mean.
    """

    states: int
    initial: int
    finals: frozenset[int]
    transitions: tuple[Transition, ...]
    alphabet: Alphabet = field(default_factory=Alphabet)

    @property
    def predicates(self) -> tuple[Predicate, ...]:
        """What the first bits of a letter mean."""
        return self.alphabet.predicates

    @property
    def trackers(self) -> tuple[Tracker, ...]:
        """What runs beside the stream, so that its states are part of the letters."""
        return self.alphabet.trackers

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

    @property
    def inner(self) -> frozenset[int]:
        """The states in which a match has begun and can go on."""
        return frozenset(t.source for t in self.transitions) - {self.initial}

    @property
    def waiting(self) -> bool:
        """Whether every inner state waits, so that events which enable no other transition change nothing."""
        return self.inner <= {t.source for t in self.transitions if t.waits}
