"""From a bound plan to a compiled query: the windows that the kernel bounds, the method and its program, the limit.

Comes in: a bound `QueryPlan`. Goes out: `Compiled`, immutable. Which method evaluates what, and what it
guarantees, is in the `Method` of each evaluation.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from cepheid.automata import construct, program_of, span_program
from cepheid.engine.evaluations.absences.absence import Absence
from cepheid.engine.evaluations.graph.match import MatchGraphMethod
from cepheid.engine.evaluations.guards.guarded_start import check
from cepheid.engine.evaluations.method import CHOOSING, Task
from cepheid.engine.plan.compiled import Compiled
from cepheid.engine.plan.methods import choose
from cepheid.errors import CepheidError
from cepheid.language.syntax import Consumption, Strategy
from cepheid.logical import growth
from cepheid.logical import plan as logical
from cepheid.logical.absence import take_out
from cepheid.logical.beginnings import begins_anywhere, begins_earlier
from cepheid.logical.durations import longest, widest
from cepheid.logical.growing import grows, sums_in
from cepheid.logical.rewrite import rewrite
from cepheid.logical.tree import walk
from cepheid.logical.variables import defined
from cepheid.logical.windows import Windows, hoist

if TYPE_CHECKING:
    from cepheid.automata import Program
    from cepheid.engine.evaluations.method import Method
    from cepheid.logical.plan import QueryPlan
    from cepheid.schema import EventSchema

LISTING = frozenset({Strategy.ALL, Strategy.ANY})
"""The strategies that list all matches."""

ONE = frozenset({Strategy.ANY, Strategy.RESTRICTED})
"""The strategies that give one match of each trigger."""


def compile_plan(plan: QueryPlan) -> Compiled:
    """The evaluation of a bound plan.

    Raises NotSupportedError as `construct`, LimitError past a limit of rewriting or construction.
    """
    try:
        rewritten = rewrite(plan)
        body, around = take_out(rewritten.pattern)
        absences = tuple(absence_of(absence, plan.schema) for absence in around)
        pattern, bounds = hoist(body)
        earlier = begins_earlier(body)
        consume = plan.consume if plan.partition_by or plan.consume is Consumption.NONE else Consumption.PARTITION
        # What HAVING leaves out is no match: with it the evaluation lists all, and `run.having` does what comes after it. So it does where the events
        # of a match do not say where it begins; so which of them start last is known there. Where matches are counted, some of which an absence
        # FROM START may veto, they are listed too.
        judges = plan.having is not None or earlier
        whole = earlier or (plan.count and any(absence.from_start for absence in absences))
        unknown = earlier and plan.strategy is Strategy.RESTRICTED
        # Or the evaluation starts a partition anew where HAVING leaves a match; then the strategy is its own.
        runs = any(isinstance(part, logical.Iterate) and part.maximum is None for part in walk(body))
        many = growth.many(body) or (runs and bounds == Windows())
        restarts = judges and not whole and consume is Consumption.PARTITION and _restarts(plan, pattern, bounds, many=many, runs=runs)
        # Where one match is enough, and a larger one meets HAVING too, the largest ones say whether there is one.
        alone = not whole and (restarts or consume is Consumption.NONE)
        largest = many and alone and _one_is_enough(plan) and plan.having is not None and grows(body, plan.having.expression)
        compares = judges and consume is not Consumption.NONE and plan.strategy in CHOOSING and not restarts
        chooses = plan.strategy if unknown or compares else None
        strategy = Strategy.ALL if chooses is not None else Strategy.MAX if largest else plan.strategy
        unbounded = bounds == Windows() and (consume is Consumption.NONE or (judges and not restarts))
        if unbounded and strategy in {Strategy.ALL, Strategy.ANY} and isinstance(pattern, logical.Select):
            # `SELECT * WHERE NXT(p)` is `SELECT NXT * WHERE p`, which has windows.
            strategy = pattern.strategy
            pattern, bounds = hoist(pattern.pattern)
            unbounded = bounds == Windows()
        task = Task(_listed(plan, compared=chooses is not None, whole=whole), strategy, pattern, unbounded=unbounded)
        method, program, refusals = choose(task)
        check(program, guards=method.guards)
        for absence in absences:
            negated = absence.program.automaton
            check(absence.program, guards=negated.compares or negated.begins is not None)
        guide, sums = _guided(plan, body, task, method, program) if many and restarts and not largest else (None, ())
        if program.single and not earlier and plan.schema.time_column is not None:
            bounds &= Windows(window=0)  # what is known of an event is then given back as soon as time has passed
        inside = longest(pattern) if program.values or strategy is Strategy.RESTRICTED else None
        written, bounds = bounds, bounds & Windows(window=inside)
        # COUNT(*) without a window keeps numbers alone.
        adjacent = None if program.single or (plan.count and not (judges or whole)) or bounds != Windows() else widest(pattern)
    except CepheidError as error:
        raise error.located(plan.text) if plan.text else error from None
    # All evaluations give the match of the greatest start first: RESTRICTED is the first one.
    limits = [limit for limit in (plan.limit, 1 if plan.strategy in ONE else None) if limit is not None]
    return Compiled(
        plan,
        rewritten,
        program,
        method,
        bounds.window,
        adjacent if bounds.count is None else bounds.count,
        consume,
        min(limits, default=None),
        absences,
        refusals,
        from_gaps=bounds != written,
        from_adjacency=adjacent is not None,
        chooses=chooses,
        restarts=restarts,
        largest=largest,
        guide=guide,
        sums=sums,
        earlier=earlier,
        layers=tuple(compile_plan(definition.plan) for definition in plan.definitions),
    )


def _restarts(plan: QueryPlan, pattern: logical.Pattern, bounds: Windows, *, many: bool, runs: bool) -> bool:
    """Whether a partition is to start anew where HAVING leaves a match: it can, and this costs less than to list all. runs: of any length.

    It can where all that evaluations keep of a partition are the matches that have begun, beside what letters say of the events before.
    """
    if plan.strategy not in ({*CHOOSING, *LISTING} if many else CHOOSING):
        return False
    program = program_of(pattern, plan.schema, variables=None, strategy=Strategy.ALL)
    automaton = program.automaton
    if automaton.all_parts or automaton.negated or program.looks_ahead:
        return False
    # With `:` alone each trigger reads its window again; to list a few matches costs less.
    return many or runs or automaton.waiting or (bounds == Windows() and widest(pattern) is None)


def _guided(
    plan: QueryPlan, body: logical.Pattern, task: Task, method: Method, program: Program
) -> tuple[tuple[Method, Program] | None, tuple[logical.Apply, ...]]:
    """What gives the largest matches beside a method that lists all, where these say whether HAVING leaves any; and the sums that have to grow.

    Both read the same letters.
    """
    nothing = None, ()
    if plan.strategy not in LISTING or plan.having is None or not isinstance(method, MatchGraphMethod):
        return nothing
    sums = sums_in(body, plan.having.expression)
    if sums is None or any(not isinstance(leaf, logical.Field) or len(leaf.path) != 1 for each in sums for leaf in each.arguments):
        return nothing
    alphabet = program.automaton.alphabet
    if alphabet.number_bits or program.trackers or program.values:
        return nothing
    largest, other, _ = choose(dataclasses.replace(task, strategy=Strategy.MAX))
    fits = (
        other.automaton.alphabet == alphabet
        and not other.trackers
        and not other.values
        and set(other.label_sets) <= set(program.label_sets)
    )
    return ((largest, other), sums) if fits else nothing


def _one_is_enough(plan: QueryPlan) -> bool:
    """Whether any one match of a trigger may be given."""
    return not plan.count and (plan.strategy is Strategy.ANY or (plan.strategy is Strategy.ALL and plan.limit == 1))


def _listed(plan: QueryPlan, *, compared: bool, whole: bool) -> QueryPlan:
    """What the evaluation of a plan is to do: with HAVING it lists matches also where they are counted. compared: they have all their variables.

    whole: they are listed and have all their variables, whatever is asked.
    """
    if whole:
        return dataclasses.replace(plan, count=False, measures=(), having=None, variables=tuple(sorted(defined(plan.pattern))))
    if plan.having is None:
        return plan
    return dataclasses.replace(plan, count=False, measures=plan.computed if plan.count or compared else plan.measures)


def absence_of(absence: logical.Absence, schema: EventSchema) -> Absence:
    """What must not follow, as it runs; absence: of a rewritten pattern. Raises as `construct` and `hoist`."""
    negated, bounds = hoist(absence.negated)
    bounds &= Windows(window=absence.duration)
    assert bounds.window is not None
    begins = logical.Begin.of("place") if begins_anywhere(negated) else None
    program, earlier = span_program(construct(negated, schema), begins), begins_earlier(negated) and begins is None
    return Absence(program, bounds.window, bounds.count, absence.duration, absence.from_start, earlier)
