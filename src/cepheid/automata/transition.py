"""One move of an automaton: what it asks of a letter, and how it marks its event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

Mark = frozenset[str]


@dataclass(frozen=True, slots=True)
class Transition:
    """One move of the automaton.

    requires, forbids: bit masks over letters (`alphabet`); the letter must have all bits of the one and none of the other. mark: the variables
    that the event is put in; None: the event is not marked; the empty set: marked, but shown in no variable (the first or last event of a
    match that PROJECT hides).
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


def order(transitions: Iterable[Transition]) -> tuple[Transition, ...]:
    """The transitions sorted and without repetition: equal automata compare equal."""
    return tuple(sorted(set(transitions), key=_key))


def _key(transition: Transition) -> tuple[int, int, int, int, bool, list[str]]:
    mark = transition.mark
    return transition.source, transition.target, transition.requires, transition.forbids, mark is not None, sorted(mark or ())
