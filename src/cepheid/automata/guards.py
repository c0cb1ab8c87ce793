"""The guards of a construction: registers and tests while it goes on, and the alphabet with them at its end."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from cepheid.automata.alphabet import Guard
from cepheid.automata.liveness import (
    GuardedMove,
    asking_early,
    on_a_way,
    without_constants,
    without_empty,
    without_sets_of_one,
    without_unread,
)
from cepheid.automata.predicates import of_condition
from cepheid.automata.registers import Compares, Computes, Now, Register, Renumbering, reads
from cepheid.automata.transform import members
from cepheid.automata.transition import order
from cepheid.logical import plan
from cepheid.logical.canonical import canonical_text
from cepheid.logical.plan import localize
from cepheid.logical.simplify import is_true

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cepheid.automata.alphabet import Alphabet, Predicate
    from cepheid.automata.automaton import Automaton
    from cepheid.automata.fragment import Fragment
    from cepheid.automata.regions import Literal
    from cepheid.automata.registers import Term, Test
    from cepheid.automata.transition import Transition
    from cepheid.logical.plan import Expression
    from cepheid.schema import EventSchema


class UnforeseenPredicatesError(Exception):
    """A guard came to ask about the event alone: the construction begins anew with its predicate among the others, which all bits follow."""

    def __init__(self, predicates: tuple[Predicate, ...]) -> None:
        super().__init__()
        self.predicates = predicates


@dataclass
class Guards:
    """What the constructions of a pattern store and ask.

    first: the bit of the first test; so far behind all others that trackers may still join: `finished` gives the tests their places. registers: the
    names. tests: numbered.
    """

    schema: EventSchema
    first: int
    registers: list[str] = field(default_factory=list)
    tests: dict[Test, int] = field(default_factory=dict)

    def register(self, name: str) -> int:
        """A new register."""
        self.registers.append(name)
        return len(self.registers) - 1

    def asking(self, move: Transition, tests: Iterable[Test]) -> Transition:
        """A move with more guards."""
        bits = move.requires
        for test in tests:
            bits |= 1 << self.first + self.tests.setdefault(test, len(self.tests))
        return dataclasses.replace(move, requires=bits)

    def asking_first(self, fragment: Fragment, tests: Iterable[Test]) -> Fragment:
        """A fragment with more guards where it begins."""
        tests = tuple(tests)
        return fragment.begun(lambda move: self.asking(move, tests))

    def finished(self, automaton: Automaton) -> Automaton:
        """A trimmed automaton with the guards and registers that its runs need, behind all other bits of its alphabet.

        Raises UnforeseenPredicatesError. O(transitions x registers) per round of what is known of registers (`liveness`), few rounds.
        """
        steps, before = [self._step(move) for move in automaton.transitions], -1
        # Where a transition goes, others lead nowhere, and what they store is not there.
        while len(steps) != before:
            before = len(steps)
            known = without_constants(without_empty(steps, automaton.initial), automaton.initial)
            steps = on_a_way(self._decided(known, automaton.alphabet), automaton)
        return self._numbered(automaton, without_sets_of_one(asking_early(without_unread(steps), automaton.finals)))

    def _step(self, move: Transition) -> GuardedMove:
        tests = list(self.tests)
        asked = frozenset(tests[number] for number in members(move.requires >> self.first))
        return GuardedMove(dataclasses.replace(move, requires=move.requires & (1 << self.first) - 1), asked)

    def _decided(self, steps: Iterable[GuardedMove], alphabet: Alphabet) -> list[GuardedMove]:
        """The steps with predicates in the place of tests that ask about the event alone; without those that no event takes."""
        bits = {predicate: 1 << bit for bit, predicate in enumerate(alphabet.predicates)}
        found, unforeseen = [], []
        for step in steps:
            said = {test: self.said_by_the_event(test) for test in step.tests}
            asked = {of_condition(each, self.schema) for each in said.values() if isinstance(each, plan.Expression)}
            unforeseen += [predicate for predicate in asked if predicate not in bits]
            if False not in said.values():
                requires = step.move.requires
                for predicate in asked:
                    requires |= bits.get(predicate, 0)
                tests = frozenset(test for test, answer in said.items() if answer is None)
                found.append(GuardedMove(dataclasses.replace(step.move, requires=requires), tests))
        if unforeseen:
            raise UnforeseenPredicatesError(tuple(sorted(set(unforeseen), key=canonical_text)))
        return found

    def said_by_the_event(self, test: Test) -> Expression | bool | None:
        """What a test says of the event alone: a condition, or whether it holds.

        None where it reads a register, or the position or what an evaluation makes, which no letter has.
        """
        match test:
            case Compares(now=plan.Derived()):
                return None
            case Compares(before=Now(value=value), operator=operator, now=now):
                if value == now and operator in {"<", ">", "!="}:
                    return False
                if value == now and isinstance(now, plan.Time | plan.Index):
                    return True
                condition: Expression = now if is_true(value) else plan.Apply(operator, (value, now), pa.bool_())
            case Computes(condition=computed) if not reads(test):
                condition = localize(computed)
            case _:
                return None
        return condition if plan.is_local(condition) else None

    def _numbered(self, automaton: Automaton, steps: Sequence[GuardedMove]) -> Automaton:
        """An automaton with these steps, and in its alphabet the registers and guards that they have, numbered without gaps."""
        used = {register for step in steps for part in _parts(step) for register in reads(part)}
        used |= {store.register for step in steps for store in step.move.writes}
        registers = {register: number for number, register in enumerate(sorted(used))}
        numbers = Renumbering(registers)
        numbered = [
            GuardedMove(
                dataclasses.replace(step.move, writes=numbers.stores(step.move.writes)),
                frozenset(numbers.test(test) for test in step.tests),
            )
            for step in steps
        ]
        tests = sorted({test for step in numbered for test in step.tests}, key=canonical_text)
        bits = {test: automaton.alphabet.width + number for number, test in enumerate(tests)}
        alphabet = dataclasses.replace(
            automaton.alphabet,
            guards=tuple(Guard(bit, test) for test, bit in bits.items()),
            registers=tuple(map(Register, different([self.registers[register] for register in registers]))),
        )
        moves = (
            dataclasses.replace(step.move, requires=step.move.requires | sum(1 << bits[test] for test in step.tests)) for step in numbered
        )
        return dataclasses.replace(automaton, transitions=order(moves), alphabet=alphabet)


def _parts(step: GuardedMove) -> Iterator[Test | Term | None]:
    """What a step asks and stores."""
    yield from step.tests
    yield from (store.term for store in step.move.writes)


@dataclass
class GuardBits:
    """The guards of an automaton that is made of others: each gets its bit, behind the other bits of the alphabet, when it is first asked.

    alphabet: predicates and trackers.
    """

    alphabet: Alphabet
    tests: dict[Test, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.alphabet = dataclasses.replace(self.alphabet, guards=(), registers=())

    def asking(self, move: Transition, literals: Iterable[Literal]) -> Transition:
        """A transition, of which only the bits of letters are read, that asks such tests."""
        bits = dict.fromkeys((True, False), 0)
        for test, truth in literals:
            bits[truth] |= 1 << self.alphabet.width + self.tests.setdefault(test, len(self.tests))
        letter = (1 << self.alphabet.width) - 1
        return dataclasses.replace(move, requires=move.requires & letter | bits[True], forbids=move.forbids & letter | bits[False])

    def finished(self, registers: Iterable[str]) -> Alphabet:
        """The alphabet with the guards so far; registers: their names, by number."""
        guards = tuple(Guard(self.alphabet.width + number, test) for test, number in self.tests.items())
        return dataclasses.replace(self.alphabet, guards=guards, registers=tuple(map(Register, different(list(registers)))))


def different(names: Sequence[str]) -> list[str]:
    """Names, with numbers where two are the same."""
    often, seen, found = Counter(names), Counter[str](), []
    for name in names:
        seen[name] += 1
        found.append(f"{name}, {seen[name]}" if often[name] > 1 else name)
    return found
