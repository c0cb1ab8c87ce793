"""Which registers hold something, and which are read again: what no run needs goes.

Comes in: the moves of a construction, each with the tests of its guards. Goes out: the same runs with fewer tests and stores: what asks an empty
register is not asked, what nothing reads is not stored, what is one event for certain is no set. Each function is a fixed point over states and
registers: O(transitions x registers) per round, few rounds.
"""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from typing import TYPE_CHECKING

from cepheid.automata.registers import Before, Elapsed, Gathered, Joined, Now, Store, reads, substituted, test_after
from cepheid.automata.transform import between
from cepheid.logical.folding import INT64_MAX
from cepheid.logical.plan import Index, Interval, Literal, Time
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cepheid.automata.alphabet import Alphabet
    from cepheid.automata.automaton import Automaton
    from cepheid.automata.registers import Term, Test
    from cepheid.automata.transition import Transition


@record
class GuardedMove:
    """A transition with the tests of its guards, which its masks do not have."""

    move: Transition
    tests: frozenset[Test]

    @classmethod
    def of(cls, move: Transition, alphabet: Alphabet) -> GuardedMove:
        """A transition of a finished automaton."""
        return cls(move, frozenset(guard.test for guard in alphabet.guards if (move.requires | move.forbids) & guard.mask))

    def storing(self, stores: Iterable[Store]) -> GuardedMove:
        """With other stores."""
        return dataclasses.replace(self, move=dataclasses.replace(self.move, writes=frozenset(stores)))


def on_a_way(steps: Sequence[GuardedMove], automaton: Automaton) -> list[GuardedMove]:
    """The steps on some way from the initial to a final state."""
    states = between(automaton, (step.move for step in steps))
    return [step for step in steps if step.move.source in states and step.move.target in states]


def without_empty(steps: Sequence[GuardedMove], initial: int) -> list[GuardedMove]:
    """The steps without what registers are asked for, or make of what they hold, where they hold nothing in any run."""
    filled = _filled(steps, initial)
    found = []
    for step in steps:
        known = _empty_but(filled[step.move.source])
        tests = (test_after(test, known) for test in step.tests)
        stores = [Store(store.register, substituted(store.term, known)) for store in step.move.writes]
        needed = [store for store in stores if store.term is not None or store.register in filled[step.move.source]]
        found.append(dataclasses.replace(step.storing(needed), tests=frozenset(test for test in tests if test is not None)))
    return found


def without_constants(steps: Sequence[GuardedMove], initial: int) -> list[GuardedMove]:
    """The steps that ask about a constant where a register holds nothing else, in any run: what they ask is of the event alone then."""
    stored: dict[int, set[Term]] = defaultdict(set)
    for step in steps:
        for store in step.move.writes:
            if store.term is not None:
                stored[store.register].add(store.term)
    constant = {
        register: term
        for register, (term, *others) in stored.items()
        if not others and isinstance(term, Now) and isinstance(term.value, Literal)
    }
    if not constant:
        return list(steps)
    certain = _certain(steps, initial)

    def known(state: int) -> Callable[[int], Term | None]:
        return lambda register: constant[register] if register in constant and register in certain[state] else Before(register)

    tests = (frozenset(found for test in step.tests if (found := test_after(test, known(step.move.source)))) for step in steps)
    return [dataclasses.replace(step, tests=own) for step, own in zip(steps, tests, strict=True)]


def _certain(steps: Iterable[GuardedMove], initial: int) -> dict[int, frozenset[int]]:
    """For each state that is reached the registers that hold something in every run."""
    outgoing: dict[int, list[GuardedMove]] = defaultdict(list)
    for step in steps:
        outgoing[step.move.source].append(step)
    certain = {initial: frozenset[int]()}
    todo = [initial]
    while todo:
        source = todo.pop()
        for step in outgoing[source]:
            target, known = step.move.target, _empty_but(set(certain[source]))
            emptied = {store.register for store in step.move.writes}
            filled = {store.register for store in step.move.writes if substituted(store.term, known) is not None}
            after = certain[source] - emptied | filled
            if target not in certain or not certain[target] <= after:
                certain[target] = certain.get(target, after) & after
                todo.append(target)
    return certain


def _filled(steps: Sequence[GuardedMove], initial: int) -> dict[int, set[int]]:
    """For each state the registers that hold something in some run."""
    outgoing: dict[int, list[GuardedMove]] = defaultdict(list)
    for step in steps:
        outgoing[step.move.source].append(step)
    filled: dict[int, set[int]] = defaultdict(set)
    todo, seen = [initial], {initial}
    while todo:
        source = todo.pop()
        for step in outgoing[source]:
            target = step.move.target
            known = _empty_but(filled[source])
            after = set(filled[source])
            for store in step.move.writes:
                if substituted(store.term, known) is None:
                    after.discard(store.register)
                else:
                    after.add(store.register)
            if not after <= filled[target] or target not in seen:
                filled[target] |= after
                seen.add(target)
                todo.append(target)
    return filled


def _empty_but(filled: set[int]) -> Callable[[int], Term | None]:
    return lambda register: Before(register) if register in filled else None


def without_unread(steps: Sequence[GuardedMove]) -> list[GuardedMove]:
    """The steps without stores to registers that no run reads before it writes them again."""
    live = live_registers(steps)
    return [step.storing(store for store in step.move.writes if store.register in live[step.move.target]) for step in steps]


def live_registers(steps: Iterable[GuardedMove]) -> dict[int, frozenset[int]]:
    """For each state the registers that some way from it reads before it writes them."""
    incoming: dict[int, list[GuardedMove]] = defaultdict(list)
    live: dict[int, frozenset[int]] = {}
    for step in steps:
        incoming[step.move.target].append(step)
        live |= dict.fromkeys((step.move.source, step.move.target), frozenset())
    todo = list(incoming)
    while todo:
        target = todo.pop()
        for step in incoming[target]:
            stored = {store.register: store.term for store in step.move.writes}
            read = live[step.move.source].union(*map(reads, step.tests), live[target] - stored.keys())
            read = read.union(*(reads(stored[register]) for register in live[target] & stored.keys()))
            if read != live[step.move.source]:
                live[step.move.source] = read
                todo.append(step.move.source)
    return live


def asking_early(steps: Sequence[GuardedMove], finals: Iterable[int]) -> list[GuardedMove]:
    """The steps that ask also what all ways behind them will ask: how long ago the time or the position in a register may be at most.

    Times and positions ascend, so these steps lead nowhere otherwise. It is asked where partial matches wait: they would do so in vain.
    """
    waiting = {step.move.source for step in steps if step.move.stays}
    clocks = {clock for step in steps for clock in _asked_at_most(step)}
    latest = {clock: _latest(steps, clock, finals) for clock in clocks}
    found = []
    for step in steps:
        early = []
        for clock in clocks if step.move.source in waiting and not step.move.stays else ():
            most = latest[clock][step.move.target]
            register, now = clock
            if most < _asked_at_most(step).get(clock, math.inf) and all(store.register != register for store in step.move.writes):
                early.append(Elapsed(Before(register), now, Interval(0, int(most))))
        found.append(dataclasses.replace(step, tests=step.tests | frozenset(early)))
    return found


Clock = tuple[int, Time | Index]
"""A register with a time or a position, and what it is compared with."""


def _asked_at_most(step: GuardedMove) -> dict[Clock, float]:
    """How long ago a step asks the contents of registers to be at most."""
    found: dict[Clock, float] = {}
    for test in step.tests:
        match test:
            case Elapsed(before=Before(register=register), now=Time() | Index() as now, interval=Interval(upper=int(upper))) if (
                upper < INT64_MAX
            ):
                found[register, now] = min(upper, found.get((register, now), math.inf))
    return found


def _latest(steps: Sequence[GuardedMove], clock: Clock, finals: Iterable[int]) -> dict[int, float]:
    """For each state how long ago the contents of a register may be at most on some way from it to a final state; -inf where there is no way."""
    latest = dict.fromkeys((state for step in steps for state in (step.move.source, step.move.target)), -math.inf)
    latest |= dict.fromkeys(finals, math.inf)
    changed = True
    while changed:
        changed = False
        for step in steps:
            kept = all(store.register != clock[0] for store in step.move.writes)
            way = min(_asked_at_most(step).get(clock, math.inf), latest[step.move.target] if kept else math.inf)
            if way > latest[step.move.source]:
                latest[step.move.source], changed = way, True
    return latest


def without_sets_of_one(steps: Sequence[GuardedMove]) -> list[GuardedMove]:
    """The steps with values in the place of sets that have one value in every run."""
    stores = {store for step in steps for store in step.move.writes}
    several: set[int] = set()
    while True:
        more = {store.register for store in stores if _has_several(store.term, several)} - several
        if not more:
            break
        several |= more
    return [
        step.storing(Store(store.register, store.term if store.register in several else _value(store.term)) for store in step.move.writes)
        for step in steps
    ]


def _has_several(term: Term | None, several: set[int]) -> bool:
    match term:
        case Gathered(how="set", before=before):
            return before is not None
        case Joined():
            return True
        case Before(register=register):
            return register in several
    return False


def _value(term: Term | None) -> Term | None:
    return Now(term.value) if isinstance(term, Gathered) and term.how == "set" else term
