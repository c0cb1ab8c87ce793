"""Automata with registers under a window of events: unrolled to a tree, and made deterministic.

Source: register-match-automata, section 6: Lemma 15 with Algorithms 5 to 7 (`unroll`), Theorem 14 with Algorithm 8 (`determinize_windowed`).

A window of w events bounds the runs, so finitely many values are enough to follow ALL runs at once in one state. What the one run of a deterministic
automaton can say is where matches end, and the UNION of the matches that end there (Definition 11), not the matches one by one. The paper's
Algorithm 8 is followed in its idea, not by the letter: its one run would mark an event when it reads it, which is too early to know whether it
belongs to a match, and runs that began at different events would write to the same register (docs/theory/registers.md has counterexamples). Here
the union is given where the matches end, and a macro state knows which slot holds what of which run.
"""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from cepheid.automata.automaton import Automaton
from cepheid.automata.guards import GuardBits
from cepheid.automata.liveness import GuardedMove, live_registers
from cepheid.automata.regions import asked
from cepheid.automata.registers import Before, Store, substituted
from cepheid.automata.transform import MAX_DETERMINISTIC_STATES, cubes
from cepheid.automata.transition import Transition, order
from cepheid.errors import LimitError
from cepheid.logical.canonical import canonical_text
from cepheid.records import record
from cepheid.theory.closures import check_invariants

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cepheid.automata.registers import Term
    from cepheid.automata.transition import Mark

MAX_UNROLLED_STATES = 10_000
"""States that an unrolled automaton may have."""

MAX_DETERMINISTIC_TRANSITIONS = 20_000
"""Transitions that a windowed determinization may make."""

SMALLER_HELP = "take a shorter window; evaluation determinizes lazily and needs neither of these automata"


# ------------------------------------------------------------------------------------------------------------------ unrolling


def unroll(automaton: Automaton, window: int) -> Automaton:
    """The matches within `window` events (end - start < window), by an automaton that is a tree: no state is reached in two ways.

    automaton: with the invariants of `automaton`, else NotSupportedError. Each transition that stores has registers of its own, so no register is
    written twice. States: one for each way of at most `window` events that can still end in the window, exponential in it. They are counted before
    the tree is built; raises LimitError past MAX_UNROLLED_STATES. Source: register-match-automata, Lemma 15, Algorithms 5 to 7. The loop that lets a
    run begin at any event is no transition here: runs begin everywhere.
    """
    ways = _Windowed.of(automaton, window)
    ways.check_size()
    guards, names, moves = GuardBits(automaton.alphabet), list[str](), list[Transition]()
    front: list[tuple[int, int, dict[int, Term]]] = [(0, automaton.initial, {})]
    finals, states = set[int](), 1
    for age in range(window):
        grown = []
        for node, state, held in front:
            for move in ways.from_state(state, age):
                literals = asked(move, automaton.alphabet, held.get)
                if literals is None:
                    continue
                stores, after = set(), {}
                for register, term in ways.after(move, held).items():
                    after[register] = term
                    if not isinstance(term, Before):
                        stores.add(Store(len(names), term))
                        after[register] = Before(len(names))
                        names.append(automaton.alphabet.names[register])
                placed = dataclasses.replace(move, source=node, target=states, writes=frozenset(stores))
                moves.append(guards.asking(placed, literals))
                grown.append((states, move.target, after))
                if move.target in automaton.finals:
                    finals.add(states)
                states += 1
        front = grown
    return Automaton(states, 0, frozenset(finals), order(moves), guards.finished(names))


@record(slots=False)
class _Windowed:
    """The ways of an automaton that can still end in a window.

    least: of each state from which a final one is reached, the number of events until then. live: by state, the registers that are read later.
    """

    automaton: Automaton
    window: int
    least: Mapping[int, int]
    live: Mapping[int, frozenset[int]]

    @classmethod
    def of(cls, automaton: Automaton, window: int) -> _Windowed:
        check_invariants(automaton)
        if window < 1:
            raise LimitError(f"a window has one event at least, and not {window}", help="give a number of events from 1 on")
        live = live_registers(GuardedMove.of(move, automaton.alphabet) for move in automaton.transitions)
        return cls(automaton, window, _least_events(automaton), live)

    def from_state(self, state: int, age: int) -> Iterator[Transition]:
        """The transitions by which a run may go on to the end of a match in the window; age: how many events it has read."""
        for move in self.automaton.outgoing[state]:
            if age + self.least.get(move.target, self.window) < self.window:
                yield move

    def after(self, move: Transition, held: Mapping[int, Term]) -> dict[int, Term]:
        """What each register that is read later holds after a transition; held: what registers held before, without those that hold nothing."""
        stored = {store.register: substituted(store.term, held.get) for store in move.writes}
        found = {register: stored[register] if register in stored else held.get(register) for register in sorted(self.live[move.target])}
        return {register: term for register, term in found.items() if term is not None}

    def check_size(self) -> None:
        """Raise LimitError where the ways are too many states of a tree. O(window x transitions)."""
        counts, total = {self.automaton.initial: 1}, 1
        for age in range(self.window):
            grown: dict[int, int] = defaultdict(int)
            for state, count in counts.items():
                for move in self.from_state(state, age):
                    grown[move.target] += count
            counts = grown
            total += sum(counts.values())
            if total > MAX_UNROLLED_STATES:
                raise LimitError(
                    f"unrolled to {self.window} events the automaton has {total} states after {age + 1} of them,"
                    f" and the limit is {MAX_UNROLLED_STATES} (MAX_UNROLLED_STATES)",
                    help=SMALLER_HELP,
                )


def _least_events(automaton: Automaton) -> dict[int, int]:
    """Of each state the least number of events to a final one; states that reach none are left out."""
    found = dict.fromkeys(automaton.finals, 0)
    front, events = set(found), 0
    while front:
        events += 1
        front = {move.source for move in automaton.transitions if move.target in front} - found.keys()
        found |= dict.fromkeys(front, events)
    return found


# ------------------------------------------------------------------------------------------------------------ determinization

Marked = tuple[tuple[int, "Mark"], ...]
"""Some events by their distance from the last one, farthest first, with the union of the marks that runs give them."""


@record(slots=False)
class UnionAutomaton:
    """A deterministic automaton with registers that says where matches end, and what their union is.

    Name in paper: DRMA. automaton: its one run begins at the FIRST event of a stream; each event enables exactly one transition. It is in a final
    state where matches end, and only there it marks its event: it does not keep the other invariants of `automaton`. unions: of each final state
    the events of all matches that end there, by their distance from the last one, with the union of their marks.
    """

    automaton: Automaton
    unions: Mapping[int, Marked]

    def union(self, state: int, end: int) -> dict[str, tuple[int, ...]]:
        """By variable the positions of all matches that end at position `end`; state: where the run is then."""
        marked = self.unions.get(state, ())
        names = sorted({name for _, mark in marked for name in mark})
        return {name: tuple(end - distance for distance, mark in marked if name in mark) for name in names}


class _Configuration(NamedTuple):
    """Runs that differ in their marks alone. held: what registers hold; age: how many events were read; marked: the union of their marks."""

    state: int
    held: tuple[tuple[int, Term], ...]
    age: int
    marked: Marked


_Macro = tuple[tuple[_Configuration, ...], Marked]
"""The configurations of all runs that may go on, and the union of the matches that end here."""


def determinize_windowed(automaton: Automaton, window: int) -> UnionAutomaton:
    """A deterministic automaton for the matches within `window` events (end - start < window): where they end, and the UNION of those that end there.

    automaton: with the invariants of `automaton`, else NotSupportedError. A macro state has the configurations of all runs that can still end in the
    window; runs with equal futures are one configuration. Equal values of one event are one slot; slots may move to other slots, which spares the
    position modulo `window` in the state. Exponential in the window and in the guards that one event asks at once: raises LimitError past
    MAX_DETERMINISTIC_STATES and MAX_DETERMINISTIC_TRANSITIONS. Source: register-match-automata, Theorem 14 (Algorithm 8, corrected).
    """
    return _Determinization(_Windowed.of(automaton, window)).run()


class _Determinization:
    def __init__(self, ways: _Windowed) -> None:
        self.ways = ways
        self.automaton = ways.automaton
        self.guards = GuardBits(ways.automaton.alphabet)
        self.begin = _Configuration(ways.automaton.initial, (), 0, ())
        self.numbers: dict[_Macro, int] = {((), ()): 0}
        self.moves: list[Transition] = []
        self.slots = 0

    def run(self) -> UnionAutomaton:
        todo = list(self.numbers)
        while todo:
            macro = todo.pop()
            for move, target in self.steps(macro):
                if target not in self.numbers:
                    self.check("states", len(self.numbers), MAX_DETERMINISTIC_STATES, "MAX_DETERMINISTIC_STATES")
                    self.numbers[target] = len(self.numbers)
                    todo.append(target)
                self.check("transitions", len(self.moves), MAX_DETERMINISTIC_TRANSITIONS, "MAX_DETERMINISTIC_TRANSITIONS")
                self.moves.append(dataclasses.replace(move, target=self.numbers[target]))
        unions = {number: union for (_, union), number in self.numbers.items() if union}
        alphabet = self.guards.finished(f"slot {number}" for number in range(self.slots))
        return UnionAutomaton(Automaton(len(self.numbers), 0, frozenset(unions), order(self.moves), alphabet), unions)

    def check(self, what: str, count: int, limit: int, name: str) -> None:
        if count == limit:
            raise LimitError(f"determinizing within {self.ways.window} events needs more than {limit} {what} ({name})", help=SMALLER_HELP)

    def steps(self, macro: _Macro) -> Iterator[tuple[Transition, _Macro]]:
        """What the runs of a macro state do, by exclusive and exhaustive conditions; the transitions have no target yet."""
        configurations, asking = (*macro[0], self.begin), []
        for place, configuration in enumerate(configurations):
            for move in self.ways.from_state(configuration.state, configuration.age):
                literals = asked(move, self.automaton.alphabet, dict(configuration.held).get)
                if literals is not None:
                    asking.append(self.guards.asking(dataclasses.replace(move, source=place), literals))
        for requires, forbids in cubes(asking, self.automaton.alphabet):
            reached = _merged(self.moved(configurations[move.source], move) for move in asking if move.enabled(requires))
            target, stores = self.numbered(reached)
            mark = dict(target[1]).get(0)
            yield Transition(self.numbers[macro], 0, requires, mark, forbids, stores), target

    def moved(self, configuration: _Configuration, move: Transition) -> _Configuration:
        """A configuration after a transition; what it holds are terms over the slots before."""
        held = tuple(self.ways.after(move, dict(configuration.held)).items())
        marked = tuple((distance + 1, mark) for distance, mark in configuration.marked)
        return _Configuration(move.target, held, configuration.age + 1, marked if move.mark is None else (*marked, (0, move.mark)))

    def numbered(self, reached: Sequence[_Configuration]) -> tuple[_Macro, frozenset[Store]]:
        """A macro state with slots without gaps, and what they store."""
        finals = self.automaton.finals
        going = [configuration for configuration in reached if configuration.state not in finals]
        made = sorted({term for configuration in going for _, term in configuration.held}, key=_by_slot)
        slots = {term: Before(slot) for slot, term in enumerate(made)}
        self.slots = max(self.slots, len(made))
        placed = [each._replace(held=tuple((register, slots[term]) for register, term in each.held)) for each in going]
        macro = tuple(sorted(placed, key=_by_future)), _union(each.marked for each in reached if each.state in finals)
        return macro, frozenset(Store(slot.register, term) for term, slot in slots.items() if term != slot)


def _by_slot(term: Term) -> tuple[float, str]:
    return (term.register, "") if isinstance(term, Before) else (math.inf, canonical_text(term))


def _by_future(configuration: _Configuration) -> tuple[int, int, list[tuple[int, str]]]:
    return configuration.age, configuration.state, [(register, canonical_text(term)) for register, term in configuration.held]


def _merged(reached: Iterable[_Configuration]) -> list[_Configuration]:
    """Configurations with one future as one."""
    alike: dict[tuple[object, ...], list[_Configuration]] = defaultdict(list)
    for configuration in reached:
        alike[configuration[:-1]].append(configuration)
    return [same[0]._replace(marked=_union(each.marked for each in same)) for same in alike.values()]


def _union(several: Iterable[Marked]) -> Marked:
    found: dict[int, frozenset[str]] = {}
    for marked in several:
        for distance, mark in marked:
            found[distance] = found.get(distance, frozenset()) | mark
    return tuple(sorted(found.items(), reverse=True))
