"""Supports and their labellings, as automata: a strategy chooses among supports, and labellings turn its choice into matches.

A support is the set of positions that a match marks. NXT, LAST and MAX choose supports before SELECT's projection; all matches on a chosen support
are given, after the projection. `SupportProgram` is a program for this: an automaton with all its marks, and the labels that are shown. `labelling`
derives the program that reads only the events of one support, and marks every one of them.
"""

from __future__ import annotations

import dataclasses
import hashlib
from functools import cached_property
from typing import TYPE_CHECKING

from cepheid.automata.alphabet import Flag
from cepheid.automata.program import Program
from cepheid.automata.transform import trim
from cepheid.automata.transition import order
from cepheid.logical.canonical import canonical_text
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cepheid.automata.transition import Mark

FIRST_EVENT, LAST_EVENT = 0, 1
"""Two more bits of a letter, behind those of the program: flags of the support's first event, and of its last."""


@record(slots=False)
class SupportProgram(Program):
    """A program whose matches are chosen by support, and then show `variables` only.

    automaton: trimmed, all marks visible, not projected; label_sets are the marks of the projected matches.
    """

    variables: frozenset[str] = frozenset()

    @cached_property
    def label_sets(self) -> tuple[Mark, ...]:
        """The marks restricted to the shown variables, by label number (the empty set: an event that is in none of them)."""
        return tuple(sorted({mark & self.variables for mark in self.automaton.marks}, key=sorted))

    @cached_property
    def fingerprint(self) -> bytes:
        """As that of a Program, with what is shown."""
        shown = canonical_text(sorted(self.variables)).encode()
        return hashlib.sha256(Program(self.automaton).fingerprint + shown).digest()


def shown_variables(label_sets: Iterable[Mark]) -> frozenset[str]:
    """The variables of some marks."""
    return frozenset().union(*label_sets)


def labelling(program: Program, shown: Iterable[str]) -> Program:
    """The program that reads the events of a support alone: it marks each, and its matches are the projected labellings.

    Only for automata whose partial matches may wait for any event. Letters have two more bits (FIRST_EVENT, LAST_EVENT); every mark is restricted to
    `shown`, and an event that is in none of them keeps an empty mark, so that different runs of one labelling are one.
    """
    kept = frozenset(shown)
    automaton = program.automaton
    automaton.alphabet.refuse_guards("the labelling of supports")
    automaton.refuse_parts("the labelling of supports")
    first, last = Flag(automaton.alphabet.width + FIRST_EVENT, "first event"), Flag(automaton.alphabet.width + LAST_EVENT, "last event")
    moves = [
        dataclasses.replace(
            t,
            mark=t.mark & kept,
            requires=t.requires | (first.mask if t.source == automaton.initial else 0) | (last.mask if t.target in automaton.finals else 0),
        )
        for t in automaton.transitions
        if t.mark is not None
    ]
    alphabet = dataclasses.replace(automaton.alphabet, flags=(first, last))
    return Program(trim(dataclasses.replace(automaton, transitions=order(moves), alphabet=alphabet)))
