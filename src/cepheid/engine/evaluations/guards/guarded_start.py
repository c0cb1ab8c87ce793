"""Which evaluation of a program with guards, by the kernel of guards. What negated patterns need stands around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cepheid.automata.program import Program
from cepheid.engine.evaluations.around.negating import negating
from cepheid.engine.evaluations.counts.chosen_count import ChosenCount
from cepheid.engine.evaluations.graph.match import Evaluation
from cepheid.engine.evaluations.guards.guarded_choice_run import GuardedChoiceRun
from cepheid.engine.evaluations.guards.guarded_parts_run import PartsBeginsRun, PartsChoiceRun, PartsCountRun, PartsRun, part_program
from cepheid.engine.evaluations.guards.guarded_run import GuardedBeginsRun, GuardedCountRun, GuardedRun
from cepheid.engine.evaluations.guards.guarded_tables import GuardTables, RepeatsError

if TYPE_CHECKING:
    from typing import Unpack

    from cepheid.automata.program import ChoiceProgram
    from cepheid.engine.evaluations.base import AnyEvaluation, Bounds


def guarded(program: Program, *, sample: int | None = None, **bounds: Unpack[Bounds]) -> AnyEvaluation:
    """An evaluation of a program with guards, of all matches or a sample, without any state."""
    run = (PartsRun if program.automaton.parts else GuardedRun)(program, sample=sample, **bounds)
    return negating(program, run, latest, bounds)


def guarded_counts(program: Program, **bounds: Unpack[Bounds]) -> AnyEvaluation:
    """An evaluation of the number of matches of a program with guards, without any state."""
    run: AnyEvaluation
    try:
        run = (PartsCountRun if program.automaton.parts else GuardedCountRun)(program, **bounds)
    except RepeatsError:
        every: Bounds = {**bounds, "limit": None}
        run = ChosenCount((PartsRun if program.automaton.parts else GuardedRun)(program, **every))
    return negating(program, run, latest, bounds)


def guarded_choice(program: ChoiceProgram, **bounds: Unpack[Bounds]) -> AnyEvaluation:
    """An evaluation of NXT, LAST or MAX with guards, without any state."""
    run = (PartsChoiceRun if program.automaton.parts else GuardedChoiceRun)(program, **bounds)
    return negating(program, run, latest, bounds)


def latest(program: Program, bounds: Bounds) -> AnyEvaluation:
    """An evaluation of any program of spans; with a limit of 1 it gives the match with the greatest start of each trigger.

    Where any event may say where a match begins it gives the one that begins last, from there.
    """
    if program.automaton.begins is not None:
        run = (PartsBeginsRun if program.automaton.parts else GuardedBeginsRun)(program, **bounds)
        return negating(program, run, latest, bounds)
    return guarded(program, **bounds) if program.automaton.compares else Evaluation(program, **bounds)


def check(program: Program, *, guards: bool) -> None:
    """Raise LimitError where a program, one of its parts, or what must not come in it passes a limit of the kernel of guards.

    guards: whether the program itself is evaluated so. The tables are made here, and kept with the automata.
    """
    automaton = program.automaton
    if guards:
        GuardTables(program)
        for number in range(len(automaton.parts)):
            check(part_program(automaton.parts, number), guards=True)
    for negated in automaton.negated:
        inside = negated.automaton
        check(Program(inside), guards=inside.compares or inside.begins is not None)
