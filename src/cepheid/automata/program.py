"""The automaton as the engine runs it: macro states on demand, marks as numbers, a fingerprint.

Comes in: a rewritten `QueryPlan` without its outermost windows. Goes out: a `Program`, immutable; run state is the engine's.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from cepheid.automata.construct import construct
from cepheid.automata.transform import hide, project, successors
from cepheid.logical.plan import Pattern, Select

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cepheid.automata.automaton import Automaton, Mark, Predicate
    from cepheid.language.syntax import Strategy
    from cepheid.schema import EventSchema


@dataclass(frozen=True)
class Program:
    """What one evaluation needs of the automaton.

    automaton: trimmed, projected and hidden. label_sets: the variables of each label number. A macro state is a bit mask over the
    automaton's states. Macro states and their successors are computed when the kernel asks for them (lazy I/O-determinization).
    """

    automaton: Automaton

    @property
    def predicates(self) -> tuple[Predicate, ...]:
        """What the bits of a letter mean: bit i is predicates[i]."""
        return self.automaton.predicates

    @property
    def bits(self) -> int:
        """How many bits a letter has."""
        return len(self.automaton.predicates)

    @property
    def initial(self) -> int:
        """The initial macro state."""
        return 1 << self.automaton.initial

    @cached_property
    def label_sets(self) -> tuple[Mark, ...]:
        """The mark of each label number (the empty set: a hidden first or last event)."""
        return self.automaton.marks

    @cached_property
    def _labels(self) -> dict[Mark, int]:
        return {mark: number for number, mark in enumerate(self.label_sets)}

    @cached_property
    def _finals(self) -> int:
        return sum(1 << state for state in self.automaton.finals)

    def successors(self, macro: int, letter: int) -> tuple[tuple[tuple[int, int], ...], int]:
        """((label number, macro state), ..) by label number, and the macro state without a mark (0: none)."""
        step = successors(self.automaton, macro, letter)
        labels = self._labels
        return tuple((labels[mark], target) for mark, target in step.marked), step.unmarked

    def accepts(self, macro: int) -> bool:
        """Whether a match ends in the macro state."""
        return bool(macro & self._finals)

    def ends(self, macro: int) -> bool:
        """Whether no transition leaves the macro state: a match that ends here need not be kept open."""
        return not any(self.automaton.outgoing[state] for state in range(macro.bit_length()) if macro >> state & 1)

    @cached_property
    def droppable(self) -> bool:
        """Whether events that are not `relevant` can be left out without changing a match (engine.md, section 1): every state waits."""
        return self.automaton.waiting

    @cached_property
    def relevant_masks(self) -> tuple[int, ...]:
        """Minimal letter masks: a letter is relevant if it has all bits of one of them."""
        masks = {t.requires for t in self.automaton.transitions if not t.waits}
        return tuple(sorted(mask for mask in masks if not any(other != mask and other & mask == other for other in masks)))

    def relevant(self, letter: int) -> bool:
        """Whether an event with this letter can change anything."""
        return any(letter & mask == mask for mask in self.relevant_masks)

    @cached_property
    def fingerprint(self) -> bytes:
        """32 bytes that differ when the automaton, its predicates or their types differ."""
        automaton = self.automaton
        moves = [(t.source, t.target, t.requires, t.forbids, None if t.mark is None else sorted(t.mark)) for t in automaton.transitions]
        text = repr((automaton.states, automaton.initial, sorted(automaton.finals), moves, automaton.predicates))
        return hashlib.sha256(text.encode()).digest()


def program_of(pattern: Pattern, schema: EventSchema, *, variables: Iterable[str] | None, strategy: Strategy) -> Program:
    """The program of a rewritten pattern, without its outermost windows.

    strategy: STRICT is built into the automaton; ANY and ALL are not its business. variables: what the matches show, None: all; matches that agree on
    interval and variables are one. Raises NotSupportedError and LimitError as `construct`.
    """
    if strategy.value == "STRICT":
        pattern = Select(strategy, pattern, span=pattern.span)
    automaton = construct(pattern, schema)
    return Program(hide(automaton if variables is None else project(automaton, variables)))
