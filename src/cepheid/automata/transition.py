"""One move of an automaton: what it requires of a letter, and how it marks its event."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cepheid.automata.registers import by_register
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cepheid.automata.registers import Store

Mark = frozenset[str]

BEGINS, SHOWN, ENDS, PRECEDES = "begins", "shown", "ends", "precedes"
"""Places that an event can have in a part: it begins the part, its support has the event, it ends the part, or what the part is next to (THEN)."""

Parts = frozenset[tuple[int, str]]
"""The parts (`automaton.Part`), by number, for which a marked event has a place, and which."""

HIDDEN: tuple[int, str] = (-1, "hidden")
"""The place, in no part, of an event that PROJECT hides and that may say where the match begins: it stays marked."""

Label = tuple[Mark, Parts]
"""What one marked event is to a partial match. Partial matches with the same labels at the same events are one."""


@record
class Transition:
    """One move of the automaton.

    requires, forbids: bit masks over letters (`alphabet`); the letter must have all bits of the one and none of the other. mark: the variables
    that the event is put in; None: the event is not marked; the empty set: marked, but shown in no variable (the first or last event of a
    match that PROJECT hides). writes: what registers hold afterwards, marked or not, for an event that PROJECT hides is still compared with; a
    register is written once at most. parts: the places of the event in parts that are chosen, and `HIDDEN`; none
    without a mark.
    """

    source: int
    target: int
    requires: int = 0
    mark: Mark | None = None
    forbids: int = 0
    writes: frozenset[Store] = frozenset()
    parts: Parts = frozenset()

    def enabled(self, mask: int) -> bool:
        """Whether an event with this mask may take the transition."""
        return mask & self.requires == self.requires and not mask & self.forbids

    @property
    def label(self) -> Label | None:
        """What its event is to the partial match; None where it is not marked."""
        return None if self.mark is None else (self.mark, self.parts)

    @property
    def stays(self) -> bool:
        """Whether an event that takes the transition changes nothing by it: no mark, nothing written, same state."""
        return self.source == self.target and self.mark is None and not self.writes

    @property
    def waits(self) -> bool:
        """Whether this is a waiting loop: any event, and it changes nothing."""
        return self.stays and not self.requires and not self.forbids


def order(transitions: Iterable[Transition]) -> tuple[Transition, ...]:
    """The transitions sorted and without repetition: equal automata compare equal."""
    return tuple(sorted(set(transitions), key=_key))


def by_label(label: Label) -> tuple[list[str], list[tuple[int, str]]]:
    """The order of labels."""
    return sorted(label[0]), sorted(label[1])


def _key(transition: Transition) -> tuple[object, ...]:
    mark, writes = transition.mark, sorted(map(by_register, transition.writes))
    ends = transition.source, transition.target
    return *ends, transition.requires, transition.forbids, mark is not None, sorted(mark or ()), writes, sorted(transition.parts)
