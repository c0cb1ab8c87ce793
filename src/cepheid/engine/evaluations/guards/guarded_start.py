"""Which evaluation of a program with guards: by the kernel of guards where it knows what the program asks, else in plain Python.

Both give the same matches in the same order. What negated patterns need stands around them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cepheid.engine.evaluations.around.negating import negating
from cepheid.engine.evaluations.counts.chosen_count import ChosenCount
from cepheid.engine.evaluations.graph.match import Evaluation
from cepheid.engine.evaluations.guards.guarded_choice_run import GuardedChoiceRun
from cepheid.engine.evaluations.guards.guarded_parts_run import PartsBeginsRun, PartsChoiceRun, PartsCountRun, PartsRun, part_program
from cepheid.engine.evaluations.guards.guarded_run import GuardedBeginsRun, GuardedCountRun, GuardedRun
from cepheid.engine.evaluations.guards.guarded_tables import GuardTables, RepeatsError, UnknownError
from cepheid.engine.evaluations.uncompiled.guarded import Guarded, GuardedChoice, GuardedCounts
from cepheid.engine.evaluations.uncompiled.guarded_begins import GuardedBegins

if TYPE_CHECKING:
    from typing import Unpack

    from cepheid.automata.program import ChoiceProgram, Program
    from cepheid.engine.evaluations.base import AnyEvaluation, Bounds


def guarded(program: Program, *, sample: int | None = None, **bounds: Unpack[Bounds]) -> AnyEvaluation:
    """An evaluation of a program with guards, of all matches or a sample, without any state: by the kernel where it knows what the program asks."""
    run: AnyEvaluation
    try:
        run = (PartsRun if program.automaton.parts else GuardedRun)(program, sample=sample, **bounds)
    except UnknownError:
        run = Guarded(program, sample=sample, **bounds)
    return negating(program, run, latest, bounds)


def guarded_counts(program: Program, **bounds: Unpack[Bounds]) -> AnyEvaluation:
    """An evaluation of the number of matches of a program with guards, without any state: by the kernel where it knows what the program asks."""
    run: AnyEvaluation
    try:
        run = (PartsCountRun if program.automaton.parts else GuardedCountRun)(program, **bounds)
    except RepeatsError:
        every: Bounds = {**bounds, "limit": None}
        run = ChosenCount((PartsRun if program.automaton.parts else GuardedRun)(program, **every))
    except UnknownError:
        run = GuardedCounts(program, **bounds)
    return negating(program, run, latest, bounds)


def guarded_choice(program: ChoiceProgram, **bounds: Unpack[Bounds]) -> AnyEvaluation:
    """An evaluation of NXT, LAST or MAX with guards, without any state: by the kernel where it knows what the program asks."""
    run: AnyEvaluation
    try:
        run = (PartsChoiceRun if program.automaton.parts else GuardedChoiceRun)(program, **bounds)
    except UnknownError:
        run = GuardedChoice(program, **bounds)
    return negating(program, run, latest, bounds)


def latest(program: Program, bounds: Bounds) -> AnyEvaluation:
    """An evaluation of any program of spans; with a limit of 1 it gives the match with the greatest start of each trigger.

    Where any event may say where a match begins it gives the one that begins last, from there.
    """
    if program.automaton.begins is not None:
        run: AnyEvaluation
        try:
            run = (PartsBeginsRun if program.automaton.parts else GuardedBeginsRun)(program, **bounds)
        except UnknownError:
            run = GuardedBegins(program, **bounds)
        return negating(program, run, latest, bounds)
    return guarded(program, **bounds) if program.automaton.compares else Evaluation(program, **bounds)


def uncompiled(program: Program) -> str | None:
    """Why `latest` is evaluated in Python, event by event; None where a kernel does it."""
    try:
        if program.automaton.compares or program.automaton.begins is not None:
            demand_known(program)
    except UnknownError as error:
        return str(error)
    return None


def demand_known(program: Program) -> None:
    """Raise UnknownError where the kernel does not know what a program asks, or one of its parts."""
    GuardTables(program)
    for number in range(len(program.automaton.parts)):
        GuardTables(part_program(program.automaton.parts, number))
