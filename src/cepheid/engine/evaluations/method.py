"""What a method of evaluation says of itself: which queries it fits, how it starts, and what it guarantees.

An evaluation's file ends with its method; those that compare events are in `guarded_methods`. `engine.plan.methods` has them in the order in which
they are asked. Nothing here knows an evaluation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from cepheid.automata import program_of, strategy_program
from cepheid.automata.program import end_program
from cepheid.automata.waiting import WaitingAutomaton, obstacle
from cepheid.language.syntax import Consumption, Strategy
from cepheid.logical.plan import variables_of
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cepheid.automata import Program
    from cepheid.automata.program import EndProgram
    from cepheid.engine.evaluations.base import AnyEvaluation, Bounds
    from cepheid.engine.letters.encoded import Texts
    from cepheid.logical.plan import Pattern, QueryPlan

CHOOSING = frozenset({Strategy.NXT, Strategy.LAST, Strategy.MAX})
"""The strategies that choose among all matches of a trigger, by what these mark before SELECT's projection."""


@record(slots=False)
class Task:
    """What is to be evaluated, before it is known how.

    plan: as bound. strategy, pattern: of the rewritten query, without the windows over the whole pattern. unbounded: neither windows nor
    consumption bound where a match may start. `whole` and `obstacle` raise NotSupportedError and LimitError as `construct`.
    """

    plan: QueryPlan
    strategy: Strategy
    pattern: Pattern
    unbounded: bool

    @property
    def shown(self) -> Sequence[str] | None:
        """The variables that matches show and HAVING asks for, None: all. Measures and COUNT(*) are about the whole mapping of a match."""
        if self.plan.measures or self.plan.count:
            return None
        judged = frozenset() if self.plan.having is None else variables_of(self.plan.having.expression)
        return (*self.plan.variables, *sorted(judged.difference(self.plan.variables)))

    @cached_property
    def whole(self) -> Program:
        """All matches of the pattern, not projected: a strategy compares these."""
        return program_of(self.pattern, self.plan.schema, variables=None, strategy=Strategy.ALL)

    @cached_property
    def waiting(self) -> WaitingAutomaton | None:
        """The pattern as a waiting automaton, None where `obstacle` says why it is none."""
        return WaitingAutomaton.of(self.whole.automaton)

    @property
    def obstacle(self) -> str | None:
        """Why a partial match of the pattern cannot wait for any event, None where it can."""
        return obstacle(self.whole.automaton)

    @cached_property
    def selected(self) -> Program:
        """The matches that the strategy chooses, where it is an automaton (`bounded_choice`). Raises as `construct`."""
        build = strategy_program if self.strategy in CHOOSING else program_of
        return build(self.pattern, self.plan.schema, variables=self.shown, strategy=self.strategy)

    @cached_property
    def at_ends(self) -> EndProgram:
        """The program by which the strategy chooses end by end. Raises LimitError as `end_program`."""
        return end_program(self.whole, variables=self.shown, strategy=self.strategy)

    @property
    def compares_events(self) -> str | None:
        """Why methods that read letters alone do not fit; None where the automaton has no guards."""
        program = self.whole if self.strategy in CHOOSING else self.selected
        return "the pattern compares events with earlier ones" if program.automaton.compares else None

    @property
    def bounded_choice(self) -> str | None:
        """Why the strategy is no automaton over the whole stream; None where it is one, or where nothing is chosen."""
        if self.strategy in CHOOSING and not self.unbounded:
            return f"an automaton for {self.strategy.value} would also compare with matches that the window or CONSUME BY rules out"
        return None

    @property
    def large_choice(self) -> str | None:
        """Why the strategy over the whole stream is none that letters decide; None where they do, or where nothing is chosen."""
        return f"the automaton for {self.strategy.value} is too large" if self.selected.automaton.compares else None


@record(slots=False)
class Terms:
    """What an evaluation is started with: a program, and what bounds it (see `Compiled`).

    partitioned: whether the stream is partitioned. texts: those that the numbers in the values of events stand for; None without guards.
    """

    program: Program
    window: int | None = None
    count_window: int | None = None
    consume: Consumption = Consumption.NONE
    limit: int | None = None
    partitioned: bool = False
    texts: Texts | None = None

    @property
    def bounds(self) -> Bounds:
        """What bounds it, as evaluations take it."""
        return {"window": self.window, "count_window": self.count_window, "consume": self.consume, "limit": self.limit}

    def state(self, what: str) -> str:
        """How the state grows, for a guarantee: with `what`, and how far."""
        partition = " of each partition" if self.partitioned else ""
        if self.window is not None or self.count_window is not None:
            return f"O({what} within the window{partition})"
        if self.consume is not Consumption.NONE:
            return f"O({what} since the last trigger{partition}): there is no window over the whole pattern"
        return f"grows with the {what}{partition}: there is no window over the whole pattern"


@record(slots=False)
class Guarantee:
    """What an evaluation promises, as `explain()` prints it; guards: how each comparison with earlier events is answered."""

    evaluation: str
    update: str
    state: str
    delay: str
    guards: tuple[str, ...] = ()


class Method(ABC):
    """One method of evaluation. Methods are equal by class: they hold nothing.

    name: as `explain()` prints it; part of the fingerprint of stored state. evaluation: what it starts. samples: whether it can choose matches
    that are spread over all of a trigger (option `sample`). counts: whether it gives the number of matches instead of these. guards: whether its
    state has the form of those of guards (GUARDS_FORM).
    """

    name: ClassVar[str]
    evaluation: ClassVar[type[Any]]
    samples: ClassVar[bool] = False
    counts: ClassVar[bool] = False
    guards: ClassVar[bool] = False

    @abstractmethod
    def serves(self, task: Task) -> bool:
        """Whether the method was made for such tasks: by their strategy, and by whether they count."""

    @abstractmethod
    def fits(self, task: Task) -> str | None:
        """Why the method cannot do a task that it serves, in one line for `explain()`; None: it can. Raises as `Task.whole`."""

    @abstractmethod
    def program(self, task: Task) -> Program:
        """The program by which it does a task that it fits. Raises NotSupportedError and LimitError as `construct`."""

    def start(self, terms: Terms, **options: Any) -> AnyEvaluation:
        """A new evaluation, without any state; options: the kernel's variant, and `sample` where the method samples."""
        run: AnyEvaluation = self.evaluation(terms.program, **terms.bounds, **options)
        return run

    @abstractmethod
    def guarantee(self, terms: Terms) -> Guarantee:
        """What the evaluation promises."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"<method {self.name}>"


class AutomatonMethod(Method):
    """What runs the automaton of all matches, or of those that a strategy chooses; the class says whether it gives them or counts them."""

    def serves(self, task: Task) -> bool:
        """Whatever gives matches, or COUNT(*)."""
        return task.plan.count is self.counts

    def fits(self, task: Task) -> str | None:
        """A strategy must be an automaton, and letters must say all that it asks."""
        return task.compares_events or task.bounded_choice or task.large_choice

    def program(self, task: Task) -> Program:
        """The pattern's, with the strategy in it."""
        return task.selected
