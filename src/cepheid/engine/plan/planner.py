"""From a bound plan to a compiled query: the windows that the kernel bounds, the method and its program, the limit.

Comes in: a bound `QueryPlan`. Goes out: `Compiled`, immutable. Parts that this evaluation does not support raise `NotSupportedError` with the
operator's name and place, and the alternative (the reference). The table of fragments and guarantees is in engine.md, section 4.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from cepheid.automata import construct, span_program
from cepheid.engine.evaluations.absence import Absence
from cepheid.engine.evaluations.method import CHOOSING, Task
from cepheid.engine.plan.compiled import Compiled
from cepheid.engine.plan.methods import choose
from cepheid.errors import REFERENCE_HELP, CepheidError, NotSupportedError
from cepheid.language.syntax import Consumption, Strategy
from cepheid.logical import plan as logical
from cepheid.logical.absence import take_out
from cepheid.logical.beginnings import begins_anywhere, begins_earlier
from cepheid.logical.durations import longest, widest
from cepheid.logical.rewrite import rewrite
from cepheid.logical.tree import walk
from cepheid.logical.variables import defined
from cepheid.logical.windows import Windows, hoist

if TYPE_CHECKING:
    from cepheid.errors import Span
    from cepheid.logical.plan import QueryPlan
    from cepheid.schema import EventSchema

ONE = frozenset({Strategy.ANY, Strategy.RESTRICTED})
"""The strategies that give one match of each trigger."""


def compile_plan(plan: QueryPlan) -> Compiled:
    """The evaluation of a bound plan.

    Raises NotSupportedError outside the fragment (most patterns; every SELECT, PARTITION BY, CONSUME BY and LIMIT; absences around it),
    LimitError past a limit of rewriting or construction.
    """
    try:
        check_supported(plan)
        rewritten = rewrite(plan)
        body, around = take_out(rewritten.pattern)
        absences = tuple(absence_of(absence, plan.schema) for absence in around)
        pattern, bounds = hoist(body)
        earlier = begins_earlier(body)
        consume = plan.consume if plan.partition_by or plan.consume is Consumption.NONE else Consumption.PARTITION
        # What HAVING leaves out is no match: with it the evaluation lists all, and `run.having` does what comes after it. So it does where the events
        # of a match do not say where it begins; so which of them start last is known there.
        judges = plan.having is not None or earlier
        unknown = earlier and plan.strategy is Strategy.RESTRICTED
        chooses = plan.strategy if unknown or (judges and consume is not Consumption.NONE and plan.strategy in CHOOSING) else None
        strategy = plan.strategy if chooses is None else Strategy.ALL
        unbounded = bounds == Windows() and (consume is Consumption.NONE or judges)
        if unbounded and strategy in {Strategy.ALL, Strategy.ANY} and isinstance(pattern, logical.Select):
            # `SELECT * WHERE NXT(p)` is `SELECT NXT * WHERE p`, which has windows.
            strategy = pattern.strategy
            pattern, bounds = hoist(pattern.pattern)
            unbounded = bounds == Windows()
        method, program, refusals = choose(
            Task(_listed(plan, whole=chooses is not None, earlier=earlier), strategy, pattern, unbounded=unbounded)
        )
        if program.single and not earlier and plan.schema.time_column is not None:
            bounds &= Windows(window=0)  # what is known of an event is then given back as soon as time has passed
        inside = longest(pattern) if program.values or strategy is Strategy.RESTRICTED else None
        written, bounds = bounds, bounds & Windows(window=inside)
        # COUNT(*) without a window keeps numbers alone.
        adjacent = None if program.single or (plan.count and not judges) or bounds != Windows() else widest(pattern)
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
        earlier=earlier,
        layers=tuple(compile_plan(definition.plan) for definition in plan.definitions),
    )


def _listed(plan: QueryPlan, *, whole: bool, earlier: bool) -> QueryPlan:
    """What the evaluation of a plan is to do: with HAVING it lists matches also where they are counted. whole: they have all their variables.

    earlier: matches may begin before their events; then they are listed too, and have all their variables.
    """
    if earlier:
        return dataclasses.replace(plan, count=False, measures=(), having=None, variables=tuple(sorted(defined(plan.pattern))))
    if plan.having is None:
        return plan
    return dataclasses.replace(plan, count=False, measures=plan.computed if plan.count or whole else plan.measures)


def absence_of(absence: logical.Absence, schema: EventSchema) -> Absence:
    """What must not follow, as it runs; absence: of a rewritten pattern. Raises as `construct` and `hoist`."""
    negated, bounds = hoist(absence.negated)
    bounds &= Windows(window=absence.duration)
    assert bounds.window is not None
    begins = logical.Begin.of("place") if begins_anywhere(negated) else None
    program, earlier = span_program(construct(negated, schema), begins), begins_earlier(negated) and begins is None
    return Absence(program, bounds.window, bounds.count, absence.duration, absence.from_start, earlier)


# ------------------------------------------------------------------------------------------------------------------ what is supported


def check_supported(plan: QueryPlan) -> None:
    """Raise NotSupportedError for the clauses of a query that this evaluation does not have, with their place; patterns say it themselves."""
    counted = (
        next((node for node in walk(plan.pattern) if isinstance(node, logical.Absence) and node.from_start), None) if plan.count else None
    )
    if counted is not None:
        raise _unsupported(plan, "COUNT(*) of matches that NOT FOLLOWED BY .. FROM START decides one by one", counted.span)


def _unsupported(plan: QueryPlan, what: str, span: Span) -> NotSupportedError:
    return NotSupportedError(f"{what} is not supported by the automaton engine", text=plan.text or None, span=span, help=REFERENCE_HELP)
