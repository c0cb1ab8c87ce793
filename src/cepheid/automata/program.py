"""The automaton in the form that the engine runs: macro states on demand, marks as numbers, a fingerprint.

Comes in: a rewritten `QueryPlan` without its outermost windows. Goes out: a `Program`, immutable; the engine keeps the state of a run.
"""

from __future__ import annotations

import dataclasses
import hashlib
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from cepheid.automata.alphabet import Flag, Scope
from cepheid.automata.construct import construct, fitted
from cepheid.automata.registers import Compares, Computes, Gathered, Joined, by_register, terms
from cepheid.automata.registers import values as values_read
from cepheid.automata.strategies import select
from cepheid.automata.transform import coverage, hide, members, project, shows_labels, spans, successors
from cepheid.language.syntax import Strategy
from cepheid.logical.canonical import canonical_text
from cepheid.logical.plan import Begin, Derived, Pattern, Select
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cepheid.automata.alphabet import Predicate, Tracker
    from cepheid.automata.automaton import Automaton
    from cepheid.automata.transition import Mark, Transition
    from cepheid.logical.plan import Expression
    from cepheid.schema import EventSchema


@record(slots=False)
class Program:
    """What one evaluation needs of the automaton.

    automaton: trimmed, projected and hidden. label_sets: the variables of each label number. A macro state is a bit mask over the
    automaton's states. Macro states and their successors are computed when the kernel asks for them (lazy I/O-determinization).
    """

    automaton: Automaton

    @property
    def predicates(self) -> tuple[Predicate, ...]:
        """What the first bits of a letter mean: bit i is predicates[i]."""
        return self.automaton.predicates

    @property
    def trackers(self) -> tuple[Tracker, ...]:
        """What runs beside the stream, so that its states are the other bits of the letters."""
        return self.automaton.trackers

    @property
    def states(self) -> int:
        """How many states the automaton has: bits of a macro state."""
        return self.automaton.states

    @property
    def labels(self) -> int:
        """How many label numbers there are."""
        return len(self.label_sets)

    @property
    def bits(self) -> int:
        """How many bits a letter has."""
        return self.automaton.alphabet.bits

    @property
    def initial(self) -> int:
        """The initial macro state."""
        return 1 << self.automaton.initial

    @cached_property
    def label_sets(self) -> tuple[Mark, ...]:
        """The mark of each label number (the empty set: a hidden first or last event)."""
        return self.automaton.marks

    @cached_property
    def shown(self) -> tuple[int, ...]:
        """For each label of the automaton the number of what matches show of it; another one only where there are parts, or a projection."""
        return tuple(self.label_sets.index(mark) for mark, _ in self.automaton.labels)

    @cached_property
    def repeats(self) -> bool:
        """Whether one match may have different labels, for its parts may be at different places."""
        return bool(self.automaton.parts) and not shows_labels(self.automaton)

    @property
    def automata(self) -> tuple[Automaton, ...]:
        """Those that run over the events: of negated patterns, of the parts that are chosen, and its own, the last."""
        negated = (each for other in self.automaton.negated for each in Program(other.automaton).automata)
        return *negated, *(part.automaton for part in self.automaton.parts), self.automaton

    @cached_property
    def _labels(self) -> dict[Mark, int]:
        return {mark: number for number, mark in enumerate(self.label_sets)}

    @cached_property
    def _finals(self) -> int:
        return sum(1 << state for state in self.automaton.finals)

    def successors(self, macro: int, letter: int) -> tuple[tuple[tuple[int, int], ...], int]:
        """((label number, macro state), ..) by label number, and the macro state without a mark (0: none).

        What could be left out is no step: so which matches a LIMIT gives does not depend on whether it was.
        """
        mask = self.automaton.alphabet.mask_of(letter)
        if self.droppable and not self.relevant(mask):
            return (), macro
        step = successors(self.automaton, macro, mask)
        labels = self._labels
        return tuple((labels[mark], target) for mark, target in step.marked), step.unmarked

    def over(self, predicates: tuple[Predicate, ...]) -> Self:
        """The same program with other predicates in the place of its own."""
        return dataclasses.replace(self, automaton=_over(self.automaton, predicates))

    def accepts(self, macro: int) -> bool:
        """Whether a match ends in the macro state."""
        return bool(macro & self._finals)

    def ends(self, macro: int) -> bool:
        """Whether no transition leaves the macro state: a match that ends here need not be kept open."""
        return not any(self.automaton.outgoing[state] for state in range(macro.bit_length()) if macro >> state & 1)

    @property
    def single(self) -> bool:
        """Whether every match is one event."""
        automaton = self.automaton
        return all(move.source == automaton.initial and move.target in automaton.finals for move in automaton.transitions)

    @cached_property
    def droppable(self) -> bool:
        """Whether events that are not `relevant` can be left out without changing a match: it can where every state waits."""
        return self._waits(self.relevant_masks)

    def _waits(self, relevant: tuple[int, ...]) -> bool:
        """Whether every state waits while events come that have all bits of none of these masks."""
        return all(
            automaton.waiting or all(coverage([t for t in automaton.outgoing[state] if t.stays], relevant) for state in automaton.inner)
            for automaton in self.automata
        )

    @cached_property
    def relevant_masks(self) -> tuple[int, ...]:
        """Minimal masks over the predicates: a letter is relevant if it has all bits of one of them."""
        event = self.automaton.alphabet.mask(Scope.EVENT)
        moves = [t for automaton in self.automata for t in automaton.transitions if not t.stays]
        moves += [t for tracker in self.trackers for t in tracker.moves]
        masks = _least({t.requires & event for t in moves})
        # What must not come while one waits has no move, but ends the wait.
        refused = {1 << bit for automaton in self.automata for t in automaton.transitions if t.stays for bit in members(t.forbids & event)}
        more = _least({*masks, *refused}) if refused and not self._waits(masks) else masks
        return more if more == masks or self._waits(more) else masks

    def relevant(self, mask: int) -> bool:
        """Whether an event with this mask can change anything."""
        return any(mask & wanted == wanted for wanted in self.relevant_masks)

    @property
    def readers(self) -> tuple[Automaton, ...]:
        """The automata that read its letters."""
        return self.automata

    @property
    def looks_ahead(self) -> bool:
        """Whether it looks at the events of a time behind each of them: then these have to be read together."""
        return any(tracker.ahead for tracker in self.trackers) or any(part.is_next for part in self.automaton.all_parts)

    def reading(self, numbering: Mapping[int, int]) -> Self:
        """The same program for letters that begin with numbers; numbering: the spelling of each."""
        return dataclasses.replace(self, automaton=_reading(self.automaton, numbering))

    @cached_property
    def values(self) -> tuple[Expression, ...]:
        """What guards read of events, each once: what they compare, what stores write for them; nothing without guards."""
        return tuple(value for value in self._read if not isinstance(value, Derived))

    @cached_property
    def asked(self) -> tuple[Expression, ...]:
        """All that its guards read, `values` first: also what evaluations make."""
        return self.values + tuple(value for value in self._read if isinstance(value, Derived))

    @cached_property
    def _read(self) -> tuple[Expression, ...]:
        begins = [] if self.automaton.begins is None else [self.automaton.begins]
        begins += [Begin.of("place")] if any(each.earlier for each in self.automaton.negated) else []
        begins += [Begin.of("time")] if any(part.earlier for part in self.automaton.all_parts) else []
        return tuple(dict.fromkeys([*(value for automaton in reversed(self.automata) for value in _values(automaton)), *begins]))

    @cached_property
    def fingerprint(self) -> bytes:
        """32 bytes that differ when the automaton, its predicates or their types differ."""
        automaton, alphabet = self.automaton, self.automaton.alphabet
        meant = (
            alphabet.predicates,
            [(tracker.bit, tracker.states, list(map(_written, tracker.moves))) for tracker in alphabet.trackers],
            [(flag.bit, flag.name) for flag in alphabet.flags],
            [(guard.bit, guard.test) for guard in alphabet.guards],
            [register.name for register in alphabet.registers],
        )
        # What most automata lack has no place in the fingerprint of these: stored state of before goes on.
        rarer: list[tuple[str, object]] = [("number bits", alphabet.number_bits)] if alphabet.number_bits else []
        tests = [guard.test for guard in alphabet.guards]
        # State with sets of values had another form, too, and had it again where texts may be in their order, or are computed with.
        stored = (term for move in automaton.transitions for store in move.writes for term in terms(store.term))
        more = any(isinstance(test, Computes) or (isinstance(test, Compares) and test.operator not in {"=", "!="}) for test in tests)
        sets = any(isinstance(term, Joined) or (isinstance(term, Gathered) and term.how == "set") for term in stored)
        rarer += [("sets", 1 + more)] if sets else []
        parts = [(part.rule, part.window, part.count, Program(part.automaton).fingerprint) for part in automaton.parts]
        rarer += [("parts", parts)] if parts else []
        negated = [(each.window, each.count, Program(each.automaton).fingerprint) for each in automaton.negated]
        rarer += [("negated", negated)] if negated else []
        rarer += [("ahead", ahead)] if (ahead := [tracker.bit for tracker in alphabet.trackers if tracker.ahead]) else []
        rarer += [("earlier", earlier)] if (earlier := [number for number, each in enumerate(automaton.negated) if each.earlier]) else []
        rarer += [("timed", timed)] if (timed := [number for number, each in enumerate(automaton.negated) if each.timed]) else []
        rarer += [("ends", ends)] if (ends := [number for number, each in enumerate(automaton.negated) if each.ends]) else []
        rarer += [("begins", automaton.begins)] if automaton.begins is not None else []
        text = canonical_text(
            (automaton.states, automaton.initial, sorted(automaton.finals), list(map(_written, automaton.transitions)), *meant, *rarer)
        )
        return hashlib.sha256(text.encode()).digest()


def _least(masks: set[int]) -> tuple[int, ...]:
    """The masks that have all bits of no other."""
    return tuple(sorted(mask for mask in masks if not any(other != mask and other & mask == other for other in masks)))


def _with(automaton: Automaton, **fields: Any) -> Automaton:
    """The same automaton with other fields of the alphabet, also in its parts and in negated patterns."""
    parts = tuple(dataclasses.replace(part, automaton=_with(part.automaton, **fields)) for part in automaton.parts)
    negated = tuple(dataclasses.replace(each, automaton=_with(each.automaton, **fields)) for each in automaton.negated)
    return dataclasses.replace(automaton, alphabet=dataclasses.replace(automaton.alphabet, **fields), parts=parts, negated=negated)


def _over(automaton: Automaton, predicates: tuple[Predicate, ...]) -> Automaton:
    return _with(automaton, predicates=predicates)


def _reading(automaton: Automaton, numbering: Mapping[int, int]) -> Automaton:
    return _with(automaton, numbering=numbering)


def _values(automaton: Automaton) -> list[Expression]:
    """What the guards of one automaton read of events."""
    guards = automaton.alphabet.guards
    written = [store.term for move in automaton.transitions if guards for store in sorted(move.writes, key=by_register)]
    return [value for part in [*(guard.test for guard in guards), *written] for value in values_read(part)]


def _written(move: Transition) -> tuple[object, ...]:
    """A transition for a fingerprint; what most have not has no place in it."""
    mark = None if move.mark is None else sorted(move.mark)
    parts = (sorted(move.parts),) if move.parts else ()
    return move.source, move.target, move.requires, move.forbids, mark, sorted(move.writes, key=by_register), *parts


def program_of(pattern: Pattern, schema: EventSchema, *, variables: Iterable[str] | None, strategy: Strategy) -> Program:
    """The program of a rewritten pattern, without its outermost windows.

    strategy: STRICT is built into the automaton; ANY and ALL are not its business. variables: what the matches show, None: all; matches that agree on
    interval and variables are one. Raises NotSupportedError and LimitError as `construct`.
    """
    if strategy is Strategy.STRICT:
        pattern = Select(strategy, pattern, span=pattern.span)
    automaton = construct(pattern, schema)
    return Program(hide(automaton if variables is None else project(automaton, variables)))


def span_program(automaton: Automaton, begins: Expression | None = None) -> Program:
    """The intervals of an automaton's matches, as `spans`; with a limit of one per trigger, that with the greatest start."""
    return Program(spans(automaton, begins))


def strategy_program(pattern: Pattern, schema: EventSchema, *, variables: Iterable[str] | None, strategy: Strategy) -> Program:
    """The program of NXT, LAST or MAX over a whole rewritten pattern without any window, with a tracker (`strategies`).

    Its matches are the strategy's among all that start at any time: neither windows nor consumption bound what it compares. variables, errors:
    as for `program_of`.
    """
    return program_of(Select(strategy, pattern, span=pattern.span), schema, variables=variables, strategy=Strategy.ALL)


@record(slots=False)
class EndProgram(Program):
    """A program, and how NXT, LAST or MAX choose among those of its matches that end at one event.

    automaton: not projected. chosen: reads a window of events up to the one where the matches end; its letters have the bits of this program,
    then a flag of the last event, which the evaluation sets, then those of one more tracker if it needs one, which begins with the window.
    label_sets are the marks of the chosen matches.
    """

    strategy: Strategy
    chosen: Program

    def over(self, predicates: tuple[Predicate, ...]) -> Self:
        """The same program with other predicates in the place of its own."""
        return dataclasses.replace(super().over(predicates), chosen=self.chosen.over(predicates))

    @cached_property
    def label_sets(self) -> tuple[Mark, ...]:
        """The mark of each label number, as SELECT shows them."""
        return self.chosen.label_sets

    @property
    def readers(self) -> tuple[Automaton, ...]:
        """The automata that read its letters."""
        return (self.automaton, self.chosen.automaton)

    def reading(self, numbering: Mapping[int, int]) -> Self:
        """The same program for letters that begin with numbers; numbering: the spelling of each."""
        return dataclasses.replace(self, automaton=_reading(self.automaton, numbering), chosen=self.chosen.reading(numbering))

    @cached_property
    def fingerprint(self) -> bytes:
        """32 bytes that differ when the automaton, the strategy or what is shown differ."""
        return hashlib.sha256(Program(self.automaton).fingerprint + self.chosen.fingerprint).digest()


@record(slots=False)
class ChoiceProgram(Program):
    """A program, and how NXT, LAST or MAX choose among those of its matches that end at one event, for an evaluation that compares these itself.

    automaton: not projected. variables: what the chosen matches show, None: all. label_sets are the marks of these.
    """

    strategy: Strategy
    variables: frozenset[str] | None

    @cached_property
    def label_sets(self) -> tuple[Mark, ...]:
        """The mark of each label number, as SELECT shows them."""
        return tuple(sorted(set(map(self._shown, self.automaton.marks)), key=sorted))

    @cached_property
    def shown(self) -> tuple[int, ...]:
        """For each label of the automaton the label number that SELECT shows."""
        return tuple(self.label_sets.index(self._shown(mark)) for mark, _ in self.automaton.labels)

    def _shown(self, mark: Mark) -> Mark:
        return mark if self.variables is None else mark & self.variables

    @cached_property
    def fingerprint(self) -> bytes:
        """32 bytes that differ when the automaton, the strategy or what is shown differ."""
        text = canonical_text((self.strategy, self.variables))
        return hashlib.sha256(Program(self.automaton).fingerprint + text.encode()).digest()


@record(slots=False)
class NextProgram(Program):
    """The right side of THEN by itself, for an evaluation that finds which of its matches may be next under ACTIVE_OFFICE and COMPLETE_HISTORY.

    histories: whether the times of all their events are compared, else where they begin. ended, earlier, everywhere: see `Part`.
    """

    histories: bool
    ended: Derived
    earlier: bool
    everywhere: bool


def end_program(program: Program, *, variables: Iterable[str] | None, strategy: Strategy) -> EndProgram:
    """The program by which NXT, LAST or MAX are chosen end by end; program: not projected; variables: what the matches show, None: all.

    Raises LimitError as `strategies.select`, and past LETTER_BITS.
    """
    last = Flag(program.automaton.alphabet.width, "last event")
    alphabet = dataclasses.replace(program.automaton.alphabet, flags=(last,))
    kept = select(dataclasses.replace(program.automaton, alphabet=alphabet), strategy, last=last)
    chosen = hide(kept if variables is None else project(kept, variables))
    # Both read the same letters: where the one needs a number, the other has it too.
    bits = fitted(chosen.alphabet).number_bits
    return EndProgram(_with_numbers(program.automaton, bits), strategy, Program(_with_numbers(chosen, bits)))


def _with_numbers(automaton: Automaton, bits: int) -> Automaton:
    """The same automaton, with letters that begin with a number of so many bits."""
    return _with(automaton, number_bits=bits)
