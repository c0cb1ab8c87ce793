"""Back from an automaton with clocks to a pattern of timed CEL (timed-cel, Proposition 4.4).

Comes in: an automaton whose registers are clocks. Goes out: a pattern with the same matches, of events, FILTER, AS, PROJECT, OR, AND, `:`, `:+` and
WITHIN. The way is that of the paper's appendix A, in steps that each have a function here:

* a clock is empty or set in a state, never either; a step asks one interval of each clock (Lemma A.1);
* a conjunction has one operand for each clock, which asks that clock alone. Variables that mark the steps make all operands take the same ones;
* a step that asks its clock does not reset it: two operands, each for every other reset (Lemma A.4);
* a clock is asked a bounded number of times until it is reset (Lemma A.2);
* then a run falls into parts between resets, in which nested windows ask how long ago the reset was (Lemma A.3); states are eliminated as by Kleene.

The pattern is exponential in the states and in the guards: it shows what timed CEL can say, not how to run an automaton.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cepheid.automata.transform import reached
from cepheid.errors import LimitError
from cepheid.logical import plan
from cepheid.logical.plan import And, Apply, Event, Filter, Interval, Iterate, Link, Literal, Named, Or, Project, Sequence, Within
from cepheid.logical.tree import walk
from cepheid.records import record
from cepheid.theory.zones import clock_moves

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cepheid.automata.alphabet import Alphabet
    from cepheid.automata.automaton import Automaton
    from cepheid.logical.plan import Expression, Pattern
    from cepheid.theory.zones import ClockMove

FORMULA_NODES = 100_000
"""Operators and events of a formula, and steps of the automata that it is made of."""

AgeRange = tuple[int, int | None]
"""The ages that one step passes, from and to; None: any."""

ALWAYS: AgeRange = (0, None)
NEVER: AgeRange = (1, 0)


@record(slots=False)
class MachineStep:
    """A step of a machine: its event, what it asks of each clock, which clocks it resets. needs: clocks of which it fails where they are empty."""

    source: Hashable
    target: Hashable
    event: Project
    asks: tuple[tuple[int, AgeRange], ...] = ()
    resets: frozenset[int] = frozenset()
    needs: frozenset[int] = frozenset()


Memory = Any
"""What a product remembers of a run."""


@record(slots=False)
class Machine:
    """An automaton with clocks, over states of any kind, whose steps ask one interval of each clock."""

    steps: tuple[MachineStep, ...]
    initial: Hashable
    finals: frozenset[Hashable]

    def times(
        self, begins: Memory, moves: Callable[[MachineStep, Memory], Iterable[tuple[Memory, MachineStep]]], ends: Callable[[Memory], bool]
    ) -> Machine:
        """The product with a memory. moves: what a step may leave in it, and what becomes of the step. ends: whether a run may end with it.

        Only what is on a way from the initial to a final state. Raises LimitError past FORMULA_NODES.
        """
        first = (self.initial, begins)
        numbers: dict[tuple[Hashable, Memory], int] = {first: 0}
        todo, steps, edges = [first], [], []
        while todo:
            node = todo.pop()
            for step in self.steps:
                for memory, changed in moves(step, node[1]) if step.source == node[0] else ():
                    target = step.target, memory
                    if target not in numbers:
                        numbers[target] = len(numbers)
                        todo.append(target)
                    steps.append(dataclasses.replace(changed, source=node, target=target))
                    edges.append((numbers[target], numbers[node]))
            _checked(len(steps))
        finals = frozenset(node for node in numbers if node[0] in self.finals and ends(node[1]))
        alive = reached([numbers[node] for node in finals], edges)
        kept = [step for step, (target, _) in zip(steps, edges, strict=True) if target in alive]
        return Machine(tuple(dict.fromkeys(kept)), first, finals)


def _checked(nodes: int) -> int:
    """How many nodes a formula has so far; raises LimitError past FORMULA_NODES."""
    if nodes > FORMULA_NODES:
        raise LimitError(
            f"the formula of the automaton has more than {FORMULA_NODES} nodes (FORMULA_NODES)",
            help=(
                "use fewer states, clocks, or different bounds: a formula is exponential in them",
                "cepheid.theory.formulas.FORMULA_NODES is the limit",
            ),
        )
    return nodes


def formula(automaton: Automaton) -> Pattern:
    """A pattern of timed CEL with the matches of an automaton with clocks (timed-cel, Proposition 4.4).

    It has no `;`, no `+` and no gap. Unmarked events and those with an empty mark are the same to it. Raises NotSupportedError for an automaton that
    is no timed complex event automaton, LimitError past FORMULA_NODES. Exponential in the states, and in the guards of each clock.
    """
    machine = _machine(automaton)
    clocks = sorted({clock for step in machine.steps for clock, _ in step.asks})
    if not clocks:
        return _pattern(machine)
    parts = _parts(machine, clocks)
    if len(parts) == 1:
        return parts[0]
    shown = frozenset(variable for step in machine.steps for variable in step.event.variables)
    return Project(shown, And(tuple(_parts(_told_apart(machine, shown), clocks))))


def _parts(machine: Machine, clocks: Iterable[int]) -> list[Pattern]:
    """Patterns whose conjunction says what the machine does, if its steps are told apart."""
    return [_pattern(_bounded(part)) for clock in clocks for part in _reset_distinct(machine, clock)]


# ------------------------------------------------------------------------------------------------------------- one event, one interval


def _machine(automaton: Automaton) -> Machine:
    """The automaton over states that say which clocks are set; what an empty clock is asked is decided."""
    moves = clock_moves(automaton)
    asked = frozenset(test.clock for each in moves for test in each.tests)
    steps = tuple(step for each in moves for step in _steps(each, automaton.alphabet, asked))

    def split(step: MachineStep, held: Memory) -> Iterable[tuple[Memory, MachineStep]]:
        asks = tuple((clock, span) for clock, span in step.asks if clock in held and span != ALWAYS)
        if step.needs <= held and all(span != NEVER for _, span in asks):
            yield held | step.resets, dataclasses.replace(step, asks=asks, needs=frozenset())

    return Machine(steps, automaton.initial, frozenset(automaton.finals)).times(frozenset(), split, lambda _: True)


def _steps(move: ClockMove, alphabet: Alphabet, asked: frozenset[int]) -> Iterable[MachineStep]:
    """A move as steps that ask one interval of each clock (Lemma A.1)."""
    event, condition = _event(move, alphabet), move.condition
    for spans in itertools.product(*(ages or (NEVER,) for ages in condition.ages.values())):
        yield MachineStep(
            move.source, move.target, event, tuple(zip(condition.ages, spans, strict=True)), move.resets & asked, condition.needs
        )


def _event(move: ClockMove, alphabet: Alphabet) -> Project:
    """The event that a move takes, in the variables of its mark alone."""
    requires, forbids = move.event
    types = [predicate.type for bit, predicate in enumerate(alphabet.predicates) if predicate.type is not None and requires >> bit & 1]
    event = Event(types[0] if types else None)
    conditions = []
    for bit, predicate in enumerate(alphabet.predicates):
        condition = _about(predicate.condition, event.variable)
        if requires >> bit & 1 and predicate.type not in types[:1]:
            conditions.append(condition)
        if forbids >> bit & 1:
            conditions.append(Apply("not", (condition,), pa.bool_()))
    return _marked(Filter(event, tuple(conditions)) if conditions else event, move.output)


def _about(condition: Expression, variable: str) -> Expression:
    """A condition about one event, as one about a variable."""
    return plan.transform(
        condition, lambda node: dataclasses.replace(node, variable=variable) if isinstance(node, plan.Field | plan.Time) else node
    )


def _marked(event: Pattern, variables: frozenset[str]) -> Project:
    named: Pattern = event
    for variable in sorted(variables):
        named = Named(named, variable)
    return Project(variables, named)


# ------------------------------------------------------------------------------------------------------------------ several clocks


def _told_apart(machine: Machine, shown: frozenset[str]) -> Machine:
    """With a variable more for each step, another one for each that leaves the same state: so a match has one run. shown: names that are taken."""
    names = (name for number in itertools.count(1) if (name := f"step{number}") not in shown)
    fresh: list[str] = []
    often: dict[Hashable, int] = {}
    steps = []
    for step in machine.steps:
        place = often[step.source] = often.get(step.source, 0) + 1
        if place > len(fresh):
            fresh.append(next(names))
        variables = step.event.variables | {fresh[place - 1]}
        steps.append(dataclasses.replace(step, event=Project(variables, Named(step.event.pattern, fresh[place - 1]))))
    return dataclasses.replace(machine, steps=tuple(steps))


def _reset_distinct(machine: Machine, clock: int) -> list[Machine]:
    """Machines that ask one clock alone and together all that is asked of it; none of their steps asks it and resets it (Lemma A.4)."""
    steps = tuple(
        dataclasses.replace(step, asks=tuple(ask for ask in step.asks if ask[0] == clock), resets=step.resets & {clock})
        for step in machine.steps
    )
    whole = dataclasses.replace(machine, steps=steps)
    if not any(step.asks and step.resets for step in steps):
        return [whole]

    def asked_every_other_time(step: MachineStep, asking: Memory) -> Iterable[tuple[Memory, MachineStep]]:
        if not step.resets:
            yield asking, step if asking else dataclasses.replace(step, asks=())
        elif asking:
            yield False, dataclasses.replace(step, resets=frozenset())
        else:
            yield True, dataclasses.replace(step, asks=())

    return [whole.times(begins, asked_every_other_time, lambda _: True) for begins in (True, False)]


# ----------------------------------------------------------------------------------------------------------------- bounded questions


def _bounded(machine: Machine) -> Machine:
    """A machine of one clock that asks it a bounded number of times until it is reset, of one that may ask it on a cycle (Lemma A.2).

    Ages only grow. So of upper bounds only those matter that no later one implies, and of lower bounds those that no earlier one does. The first are
    guessed: an upper bound is asked, or left to a later one that is no greater. Memory: the last upper bound asked (-1: none), the least that is
    left (None: none), the last lower bound asked.
    """
    states: dict[Hashable, int] = {}
    edges = [
        (states.setdefault(step.source, len(states)), states.setdefault(step.target, len(states)))
        for step in machine.steps
        if not step.resets
    ]
    kept = [step for step in machine.steps if not step.resets]
    if not any(step.asks and edge[0] in reached({edge[1]}, edges) for step, edge in zip(kept, edges, strict=True)):
        return machine

    def chosen(step: MachineStep, memory: Memory) -> Iterable[tuple[Memory, MachineStep]]:
        asked, left, least = memory
        lower, upper = step.asks[0][1] if step.asks else ALWAYS
        choices: list[tuple[int, int | None, int | None]] = [(asked, left, None)] if upper is None else []
        if upper is not None and upper > asked:
            choices.append((asked, upper if left is None else min(left, upper), None))
            if left is None or upper <= left:
                choices.append((upper, None, upper))
        for now, open_, bound in choices:
            if step.resets:
                if open_ is None:
                    yield FRESH, step
                continue
            span = (lower if lower > least else 0, bound)
            yield (now, open_, max(lower, least)), dataclasses.replace(step, asks=((step.asks[0][0], span),) if span != ALWAYS else ())

    def nothing_left(memory: Memory) -> bool:
        return memory[1] is None

    return machine.times(FRESH, chosen, nothing_left)


FRESH = (-1, None, 0)

# ------------------------------------------------------------------------------------------------------------- states are eliminated


@record(slots=False)
class Way:
    """A pattern, and how many nodes it has."""

    pattern: Pattern
    nodes: int


Ways = dict[tuple[Hashable, Hashable], Way]
"""For pairs of states the pattern of all the ways from the one to the other."""


def _pattern(machine: Machine) -> Pattern:
    """The pattern of a machine of one clock at most (Lemma A.3).

    It asks the clock a bounded number of times until it resets it, and never in the step that resets it.
    """
    asking = [step for step in machine.steps if step.asks]
    still = _closed(_single(step for step in machine.steps if not step.resets and not step.asks))
    # From one reset to before the next one: so many times a window from the reset on, which ends with an event that asks.
    layer = _followed(_single(step for step in machine.steps if step.resets), still)
    layers = [layer]
    while layer:
        windows = []
        for (source, middle), way in layer.items():
            for step in asking:
                if step.source == middle:
                    ((_, span),) = step.asks
                    longer = _sequence(way, _event_way(step))
                    windows.append(((source, step.target), Way(Within(longer.pattern, Interval(*span)), longer.nodes + 1)))
        layer = _followed(_united(windows), still)
        layers.append(layer)
    parts = _closed(_united(item for each in layers for item in each.items()))
    whole = _united([*still.items(), *parts.items(), *_joined(still, parts).items()])
    found = [way for (source, target), way in whole.items() if source == machine.initial and target in machine.finals]
    return _alternatives(found).pattern if found else Filter(Event(None), (Literal(False, pa.bool_()),))


def _single(steps: Iterable[MachineStep]) -> Ways:
    return _united(((step.source, step.target), _event_way(step)) for step in steps)


def _event_way(step: MachineStep) -> Way:
    return Way(step.event, sum(1 for _ in walk(step.event)))


def _united(items: Iterable[tuple[tuple[Hashable, Hashable], Way]]) -> Ways:
    found: dict[tuple[Hashable, Hashable], list[Way]] = {}
    for pair, way in items:
        found.setdefault(pair, []).append(way)
    return {pair: _alternatives(ways) for pair, ways in found.items()}


def _joined(first: Ways, second: Ways) -> Ways:
    """The ways of the one, then of the other."""
    return _united(
        ((source, target), _sequence(way, then))
        for (source, middle), way in first.items()
        for (begin, target), then in second.items()
        if begin == middle
    )


def _followed(ways: Ways, more: Ways) -> Ways:
    """The ways of the one, then perhaps one of the other."""
    return _united([*ways.items(), *_joined(ways, more).items()])


def _closed(steps: Ways) -> Ways:
    """One or more steps: through more and more states (Kleene)."""
    ways = steps
    for state in dict.fromkeys(state for pair in steps for state in pair):
        into = {pair: way for pair, way in ways.items() if pair[1] == state}
        out = {pair: way for pair, way in ways.items() if pair[0] == state}
        if (loop := ways.get((state, state))) is not None:
            into = _followed(into, {(state, state): Way(Iterate(loop.pattern, adjacent=True), loop.nodes + 1)})
        ways = _united([*ways.items(), *_joined(into, out).items()])
    return ways


def _sequence(first: Way, second: Way) -> Way:
    """Adjacent ways, as one sequence."""
    items = [item for way in (first, second) for item in (way.pattern.items if isinstance(way.pattern, Sequence) else (way.pattern,))]
    return Way(Sequence(tuple(items), (Link(":"),) * (len(items) - 1)), _checked(first.nodes + second.nodes + 1))


def _alternatives(ways: Iterable[Way]) -> Way:
    """Any of the ways, each once."""
    different = list({way.pattern: way for way in ways}.values())
    if len(different) == 1:
        return different[0]
    operands = [operand for way in different for operand in (way.pattern.operands if isinstance(way.pattern, Or) else (way.pattern,))]
    return Way(Or(tuple(dict.fromkeys(operands))), _checked(sum(way.nodes for way in different) + 1))
