"""Automata with registers that are made of others: union, concatenation, iteration, intersection.

Source: register-match-automata, Theorem 12 (closure of RMA; intersection is the AND of timed-cel, section 4). The constructions are those of
`construct` for OR, `;`, `+` and AND. There they make the automaton of a pattern; here they take finished automata, also such as are written by hand.
Predicates that two automata share are one, registers are not shared.

The paper asks more of concatenation and iteration than any construction can give: that each part be a match from the beginning of the stream, with
what the part's automaton has stored of unmarked events before (docs/theory/registers.md). The invariants of `automaton` leave no such events: a match
begins where its run begins. So they are asked for.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from cepheid.automata.alphabet import Alphabet, Tracker
from cepheid.automata.automaton import Automaton
from cepheid.automata.construct import chain, either, fitted, plus
from cepheid.automata.fragment import Fragment, States
from cepheid.automata.guards import GuardBits
from cepheid.automata.liveness import GuardedMove, live_registers
from cepheid.automata.products import hide_fragment, product
from cepheid.automata.regions import asked
from cepheid.automata.registers import Before, Renumbering, Store, substituted
from cepheid.automata.transform import members, trim
from cepheid.automata.transition import Transition, order
from cepheid.errors import NotSupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from cepheid.automata.alphabet import Predicate


def union(left: Automaton, right: Automaton) -> Automaton:
    """The matches of either automaton.

    left, right: with the invariants of `automaton`, else NotSupportedError. Raises LimitError where their letters are too long together, or their
    states too many. O(transitions).
    """
    return _made_of([left, right], either)


def concatenation(left: Automaton, right: Automaton) -> Automaton:
    """The unions of a match of the left automaton and one of the right that begins after it, as `;`; else as `union`."""
    return _made_of([left, right], lambda _, parts: chain(parts, [True], [False, False], [1], gaps=[frozenset()]))


def iteration(automaton: Automaton) -> Automaton:
    """The unions of one match or more of an automaton, each of which begins after the one before, as `+`; else as `union`.

    Each iteration begins with empty registers. Name in paper: Kleene closure.
    """
    return _made_of([automaton], lambda states, parts: plus(states, parts[0], parts[0], frozenset(), adjacent=False))


def intersection(left: Automaton, right: Automaton) -> Automaton:
    """The matches of both automata, as AND: equal intervals and equal mappings; else as `union`, but O(pairs of transitions)."""
    return _made_of([left, right], lambda states, parts: product(states, *map(hide_fragment, parts)))


def check_invariants(automaton: Automaton) -> None:
    """Raise NotSupportedError for an automaton that does not keep the invariants of `automaton`, or that reads the events of one support alone."""
    automaton.refuse_parts("an automaton that is made of this one")
    for found, fact in (
        (any(move.target == automaton.initial for move in automaton.transitions), "enters the initial state"),
        (any(move.source in automaton.finals for move in automaton.transitions), "leaves a final state"),
        (any(move.mark is None for move in automaton.outgoing[automaton.initial]), "begins a match and does not mark its event"),
        (
            any(move.mark is None and move.target in automaton.finals for move in automaton.transitions),
            "ends a match and does not mark its event",
        ),
    ):
        if found:
            raise NotSupportedError(
                f"a transition of the automaton {fact}",
                help="let each match begin and end with a marked event, and each run with its match",
            )
    if automaton.alphabet.flags:
        raise NotSupportedError("the automaton reads the events of one support alone", help="take the automaton of the pattern")


def _made_of(automata: Sequence[Automaton], combine: Callable[[States, Sequence[Fragment]], Fragment]) -> Automaton:
    for automaton in automata:
        check_invariants(automaton)
    alphabet, places = _together([automaton.alphabet for automaton in automata])
    guards, states = GuardBits(alphabet), States()
    parts, registers = [], 0
    for automaton, bits in zip(automata, places, strict=True):
        numbers = Renumbering({number: number + registers for number in range(len(automaton.alphabet.registers))})
        moves = tuple(_moves(automaton, guards, bits, numbers, states.states))
        finals = frozenset(state + states.states for state in automaton.finals)
        parts.append(Fragment(automaton.initial + states.states, finals, moves))
        states.states += automaton.states
        registers += len(automaton.alphabet.registers)
    whole = combine(states, parts)
    names = (name for automaton in automata for name in automaton.alphabet.names)
    return trim(Automaton(states.states, whole.initial, whole.finals, order(whole.moves), fitted(guards.finished(names))))


def _moves(automaton: Automaton, guards: GuardBits, bits: Mapping[int, int], numbers: Renumbering, first: int) -> Iterator[Transition]:
    """The transitions of an automaton as a part of another, where it begins with empty registers, whatever they held.

    bits: what its bits of letters are there; first: the number of its first state there.
    """
    live = live_registers(GuardedMove.of(move, automaton.alphabet) for move in automaton.transitions)
    for move in automaton.transitions:
        before = _nothing if move.source == automaton.initial else Before
        literals = asked(move, automaton.alphabet, before)
        if literals is None:
            continue
        stores = dict.fromkeys(live[move.target]) if move.source == automaton.initial else {}
        stores |= {store.register: substituted(store.term, before) for store in move.writes}
        placed = Transition(
            move.source + first,
            move.target + first,
            _mask(move.requires, bits),
            move.mark,
            _mask(move.forbids, bits),
            numbers.stores(Store(register, term) for register, term in stores.items()),
        )
        yield guards.asking(placed, ((numbers.test(test), truth) for test, truth in literals))


def _nothing(_: int) -> None:
    """What each register holds where a match begins."""


def _mask(mask: int, bits: Mapping[int, int]) -> int:
    return sum(1 << bits[bit] for bit in members(mask) if bit in bits)


def _together(alphabets: Sequence[Alphabet]) -> tuple[Alphabet, list[dict[int, int]]]:
    """One alphabet for all, without guards, and for each of them what its bits of letters are there."""
    predicates: dict[Predicate, int] = {}
    for alphabet in alphabets:
        for predicate in alphabet.predicates:
            predicates.setdefault(predicate, len(predicates))
    places = [{bit: predicates[predicate] for bit, predicate in enumerate(alphabet.predicates)} for alphabet in alphabets]
    trackers: list[Tracker] = []
    for alphabet, bits in zip(alphabets, places, strict=True):
        for tracker in alphabet.trackers:
            first = len(predicates) + sum(other.width for other in trackers)
            bits |= {tracker.bit + place: first + place for place in range(tracker.width)}
            moves = (
                dataclasses.replace(move, requires=_mask(move.requires, bits), forbids=_mask(move.forbids, bits)) for move in tracker.moves
            )
            trackers.append(Tracker(first, tracker.states, tuple(moves), tracker.ahead))
    return Alphabet(tuple(predicates), tuple(trackers)), places
