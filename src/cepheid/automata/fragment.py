"""An automaton under construction, with the conditions in it that wait for patterns around it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cepheid.errors import BindError, LimitError, quoted
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cepheid.automata.correlation import Correlation
    from cepheid.automata.registers import Store
    from cepheid.automata.transition import Transition


MAX_STATES = 20_000
"""States that a construction may make before trimming."""


@dataclass
class States:
    """The numbering of states. states: how many there are."""

    states: int = field(default=0, kw_only=True)

    def state(self) -> int:
        """A new state. Raises LimitError past `MAX_STATES`."""
        if self.states >= MAX_STATES:
            raise LimitError(
                f"the pattern needs more than {MAX_STATES} automaton states (MAX_STATES)",
                help="write a shorter pattern: counted repetitions, AND, ALL and negation multiply states",
            )
        self.states += 1
        return self.states - 1


@record
class Pending:
    """A condition that waits for patterns around it to supply its variables. register: to which the moves store what their events do to it."""

    register: int
    correlation: Correlation


@record
class Fragment:
    """An automaton under construction, with the invariants of `automaton`: nothing enters `initial`, nothing leaves `finals`."""

    initial: int
    finals: frozenset[int]
    moves: tuple[Transition, ...]
    pending: tuple[Pending, ...] = ()

    @property
    def first(self) -> list[Transition]:
        """The moves that begin a match."""
        return [move for move in self.moves if move.source == self.initial]

    def ending_in(self, state: int, *, writes: frozenset[Store] = frozenset()) -> list[Transition]:
        """Copies of the moves that end a match, leading to `state`; writes: what they store besides."""
        return [dataclasses.replace(move, target=state, writes=move.writes | writes) for move in self.moves if move.target in self.finals]

    def changed(self, change: Callable[[Transition], Transition]) -> Fragment:
        """With each move changed."""
        return dataclasses.replace(self, moves=tuple(map(change, self.moves)))

    def begun(self, change: Callable[[Transition], Transition]) -> Fragment:
        """With each move changed that begins a match."""
        return self.changed(lambda move: change(move) if move.source == self.initial else move)


def all_pending(fragments: Iterable[Fragment]) -> tuple[Pending, ...]:
    """The conditions that wait in some fragments, each once."""
    return tuple(dict.fromkeys(pending for fragment in fragments for pending in fragment.pending))


def check_supplied(fragment: Fragment) -> None:
    """Raise BindError for a condition that waits for a variable, where it sees nothing around it."""
    for pending in fragment.pending:
        names = quoted(sorted({name for name, _ in pending.correlation.missing}))
        raise BindError(f"no enclosing pattern binds {names}", span=pending.correlation.condition.span)
