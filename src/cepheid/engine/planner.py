"""From a bound plan to what runs: the windows that the kernel bounds, the program, the limit, and the guarantees that `explain()` prints.

Comes in: a bound `QueryPlan`. Goes out: `Compiled`, immutable. What this evaluation does not do raises `NotSupportedError` with the
operator's name and place, and the way out (the reference). The table of fragments and guarantees is engine.md, section 4.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cepheid.automata import Program, construct, end_program, program_of, span_program, strategy_program
from cepheid.automata.supports import SupportProgram
from cepheid.automata.waiting import WaitingAutomaton
from cepheid.engine.absence import Absence, longest
from cepheid.engine.counted import Counted
from cepheid.engine.counts import COUNT_FIELDS
from cepheid.engine.domination import explore
from cepheid.engine.inputs import STREAM_COLUMN
from cepheid.engine.matches import Layout, plain_type
from cepheid.engine.measures import attributes_of
from cepheid.engine.methods import COUNT, MATCH_GRAPH, METHODS, PER_END, SUPPORT_METHODS, with_absences
from cepheid.engine.predicates import Predicates
from cepheid.engine.trackers import Tracked
from cepheid.errors import CepheidError, NotSupportedError, Span
from cepheid.language.syntax import Consumption, Strategy
from cepheid.logical import plan as logical
from cepheid.logical.absence import take_out
from cepheid.logical.canonical import canonical
from cepheid.logical.rewrite import rewrite
from cepheid.logical.tree import is_counted, walk

if TYPE_CHECKING:
    from cepheid.engine.methods import Guarantee
    from cepheid.engine.running import Running
    from cepheid.logical.plan import Interval, Pattern, QueryPlan
    from cepheid.schema import EventSchema

REFERENCE_HELP = 'q.run(.., engine="reference") evaluates it by the definition (slow: for small inputs)'
NOWHERE_HELP = "no engine evaluates it yet, not the reference either"


@dataclass(frozen=True)
class Compiled:
    """One query over one schema, ready to run.

    plan: as bound. rewritten: what construction read. program: the automaton's. method: how it is evaluated, a key of `methods.METHODS`.
    window: greatest time(end) - time(start), None without. count_window: greatest end - start + 1 in events, None without. consume: what a
    trigger consumes; ANY says that partitions are fed in stream order. limit: matches per ending event, None for all. absences: what must not
    follow a match, each NOT FOLLOWED BY of the query.
    """

    plan: QueryPlan
    rewritten: QueryPlan
    program: Program
    method: str
    window: int | None
    count_window: int | None
    consume: Consumption
    limit: int | None
    absences: tuple[Absence, ...] = ()

    @property
    def schema(self) -> EventSchema:
        """The schema of the events."""
        return self.plan.schema

    @cached_property
    def programs(self) -> tuple[Program, ...]:
        """The programs that read letters: first the pattern's, then that of each absence."""
        return (self.program, *(absence.program for absence in self.absences))

    @cached_property
    def alphabets(self) -> tuple[Predicates, ...]:
        """Events to letters, for each of `programs`."""
        return tuple(Predicates(program.predicates, self.schema) for program in self.programs)

    @property
    def predicates(self) -> Predicates:
        """Events to letters of the pattern."""
        return self.alphabets[0]

    @cached_property
    def layout(self) -> Layout:
        """What the matches look like."""
        return layout_of(self.plan, self.program.label_sets, keys=self.keys)

    @property
    def written(self) -> tuple[str, ...]:
        """The attributes of PARTITION BY: matches show them, and positions in their partitions; events with a NULL there are counted."""
        return self.plan.partition_by

    @property
    def derived(self) -> tuple[str, ...]:
        """The attributes by which equalities partition the stream further: where one is NULL, nothing matches."""
        return self.rewritten.derived_keys

    @property
    def keys(self) -> tuple[str, ...]:
        """The attributes that partition the stream, written or derived."""
        return self.rewritten.keys

    @property
    def interleaved(self) -> bool:
        """Whether partitions are to be fed in stream order: a trigger in one consumes the events of all."""
        return self.consume is Consumption.ANY and bool(self.keys)

    @property
    def delay(self) -> int:
        """How long after the event that ends it a match is decided: the longest of its absences, 0 without any."""
        return longest(self.absences)

    @property
    def horizon(self) -> int | None:
        """How long after its time an event can matter, in steps of the time column; None without a window: for ever."""
        return None if self.window is None else self.window + self.delay

    @property
    def droppable(self) -> bool:
        """Whether events that are irrelevant to all `programs` can be left out before recognition: no state and no window counts them."""
        counts = [self.count_window, *(absence.count_window for absence in self.absences)]
        return all(program.droppable for program in self.programs) and all(count is None for count in counts)

    @cached_property
    def fingerprint(self) -> bytes:
        """32 bytes that differ when state of the one cannot be read by the other: program, bounds, keys or schema differ."""
        return self._identity(tuple(self.schema.attributes.items()))

    @cached_property
    def meaning(self) -> bytes:
        """The same, but for the attributes of the schema: for a state that says itself which ones it keeps."""
        return self._identity(())

    @property
    def rebuilt(self) -> bool:
        """Whether builds of version 0.1.0 before its release made another automaton of the query: one with optional items or counts."""
        return any(
            isinstance(node, logical.Optional) or (isinstance(node, logical.Iterate) and is_counted(node))
            for node in walk(self.plan.pattern)
        )

    def _identity(self, attributes: tuple[tuple[str, pa.DataType], ...]) -> bytes:
        schema = (self.schema.type_column, self.schema.stream, self.schema.time_column, attributes)
        bounds = (self.method, self.window, self.count_window, self.consume.value, self.limit)
        # The events that a state keeps have the attributes that the measures read.
        measures = tuple(measure.expression for measure in self.plan.measures)
        absences = tuple((absence.program.fingerprint, *absence.bounds) for absence in self.absences)
        # States of version 0.1.0, where written and derived keys did not meet, say no more than which of the two there are.
        derived = self.derived if self.written and self.derived else bool(self.derived)
        text = canonical((*bounds, self.keys, derived, *schema, *measures, *absences))
        return hashlib.sha256(self.program.fingerprint + text.encode()).digest()

    def evaluation(self, *, variant: str | None = None, sample: int | None = None) -> Running:
        """A new evaluation, without any state; variant: of the kernel; sample: see `Query.run`, NotSupportedError where it cannot be."""
        method = METHODS[self.method]
        options: dict[str, Any] = {"variant": variant}
        if sample is not None:
            if not method.samples:
                raise NotSupportedError(
                    f"sample={sample} chooses among all matches of a trigger, which this query's evaluation ({self.method}) does not hold",
                    help="leave sample= out; LIMIT bounds how many are given",
                )
            options["sample"] = sample
        run = method.start(self, **options)
        if self.program.trackers:
            run = Tracked(run, self.program, variant=variant)
        return Counted(run) if self.plan.count and self.method != COUNT else run

    @property
    def guarantee(self) -> Guarantee:
        """What this evaluation promises."""
        guarantee = METHODS[self.method].guarantee(self)
        return with_absences(guarantee) if self.absences else guarantee


def layout_of(plan: QueryPlan, labels: tuple[frozenset[str], ...], *, keys: tuple[str, ...] = ()) -> Layout:
    """The layout of a query's matches, with these labels; keys: what partitions the stream. Events of measures have what these read."""
    schema = plan.schema
    # The type column that merging made; where it is the input's own it is an attribute like any other.
    hidden = STREAM_COLUMN if schema.type_column == STREAM_COLUMN and STREAM_COLUMN not in plan.partition_by else None
    events = pa.schema([(name, plain_type(kind)) for name, kind in schema.attributes.items() if name != hidden])
    measures = tuple(pa.field(measure.name, measure.type) for measure in plan.measures)
    if measures:
        read = {*attributes_of(plan.measures, schema.time_column), *keys, *plan.partition_by, schema.time_column}
        # A table without columns has no rows: at least one stays.
        events = pa.schema([field for field in events if field.name in read] or list(events)[:1])
    if plan.count:
        measures = COUNT_FIELDS
    return Layout(plan.variables, labels, events, plan.partition_by, schema.time_column, measures, count=plan.count)


def compile_plan(plan: QueryPlan) -> Compiled:
    """The evaluation of a bound plan.

    Raises NotSupportedError outside the fragment (local filters, strategies inside the pattern, one window over the whole of it; every SELECT
    but RESTRICTED, PARTITION BY, CONSUME BY and LIMIT; absences around it), LimitError past a limit of rewriting or construction.
    """
    try:
        check_supported(plan)
        rewritten = rewrite(plan)
        body, around = take_out(rewritten.pattern)
        absences = tuple(absence_of(absence, plan.schema) for absence in around)
        pattern, bounds = hoist(body)
        consume = plan.consume if plan.partition_by or plan.consume is Consumption.NONE else Consumption.PARTITION
        strategy = plan.strategy
        unbounded = bounds == Bounds() and consume is Consumption.NONE
        if unbounded and strategy in {Strategy.ALL, Strategy.ANY} and isinstance(pattern, logical.Select):
            # `SELECT * WHERE NXT(p)` is `SELECT NXT * WHERE p`, which has windows.
            strategy = pattern.strategy
            pattern, bounds = hoist(pattern.pattern)
            unbounded = bounds == Bounds()
        program, method = choose(plan, strategy, pattern, unbounded=unbounded)
        if program.single and plan.schema.time_column is not None:
            bounds &= Bounds(window=0)  # what is known of an event is then given back as soon as time has passed
    except CepheidError as error:
        raise error.located(plan.text) if plan.text else error from None
    limits = [limit for limit in (plan.limit, 1 if plan.strategy is Strategy.ANY and not plan.count else None) if limit is not None]
    return Compiled(plan, rewritten, program, method, bounds.window, bounds.count, consume, min(limits, default=None), absences)


def absence_of(absence: logical.Absence, schema: EventSchema) -> Absence:
    """What must not follow, as it runs; absence: of a rewritten pattern. Raises as `construct` and `hoist`."""
    negated, bounds = hoist(absence.negated)
    bounds &= Bounds(window=absence.duration)
    assert bounds.window is not None
    return Absence(span_program(construct(negated, schema)), bounds.window, bounds.count, absence.duration)


def choose(plan: QueryPlan, strategy: Strategy, pattern: Pattern, *, unbounded: bool) -> tuple[Program, str]:
    """The program and the method of evaluation for a strategy over a pattern without its windows: the table of engine.md, section 4.

    unbounded: neither windows nor consumption bound where a match may start. Raises as `construct`.
    """
    # Measures and COUNT(*) are about the whole mapping of a match, SELECT's variables about its projection.
    shown = None if plan.measures or plan.count else plan.variables
    if strategy not in SUPPORT_METHODS:
        program = program_of(pattern, plan.schema, variables=shown, strategy=strategy)
        return program, COUNT if plan.count else MATCH_GRAPH
    # A strategy compares what matches mark, before SELECT's projection.
    whole = program_of(pattern, plan.schema, variables=None, strategy=Strategy.ALL)
    waiting = WaitingAutomaton.of(whole.automaton)
    if waiting is not None and (strategy is not Strategy.MAX or explore(waiting, whole.predicates) is not None):
        variables = frozenset().union(*whole.label_sets) if shown is None else frozenset(shown)
        return SupportProgram(whole.automaton, variables), SUPPORT_METHODS[strategy]
    if unbounded:
        return strategy_program(pattern, plan.schema, variables=shown, strategy=strategy), COUNT if plan.count else MATCH_GRAPH
    return end_program(whole, variables=shown, strategy=strategy), PER_END


# ------------------------------------------------------------------------------------------------------------------------- windows


@dataclass(frozen=True)
class Bounds:
    """Windows over a whole pattern: time(end) - time(start) <= window, end - start + 1 <= count; None is none."""

    window: int | None = None
    count: int | None = None

    def __and__(self, other: Bounds) -> Bounds:
        return Bounds(_least(self.window, other.window), _least(self.count, other.count))


def _least(first: int | None, second: int | None) -> int | None:
    return min((bound for bound in (first, second) if bound is not None), default=None)


def hoist(pattern: Pattern) -> tuple[Pattern, Bounds]:
    """The pattern without the windows over all of it, and these.

    A window commutes with AS, PROJECT, FILTER and STRICT (they keep intervals); a window on one side of AND bounds both (equal intervals); OR
    has one where its sides have the same. Raises NotSupportedError for a window with a lower bound.
    """
    match pattern:
        case logical.Within():
            inner, bounds = hoist(pattern.pattern)
            return inner, bounds & Bounds(window=_upper(pattern.interval, pattern))
        case logical.WithinEvents():
            inner, bounds = hoist(pattern.pattern)
            return inner, bounds & Bounds(count=pattern.count)
        case logical.Named() | logical.Project() | logical.Filter():
            inner, bounds = hoist(pattern.pattern)
            return dataclasses.replace(pattern, pattern=inner), bounds
        case logical.Select(strategy=Strategy.STRICT | Strategy.ALL):
            inner, bounds = hoist(pattern.pattern)
            return dataclasses.replace(pattern, pattern=inner), bounds
        case logical.And():
            parts = [hoist(operand) for operand in pattern.operands]
            bounds = Bounds()
            for _, more in parts:
                bounds &= more
            return dataclasses.replace(pattern, operands=tuple(part for part, _ in parts)), bounds
        case logical.Or():
            parts = [hoist(operand) for operand in pattern.operands]
            if len({bounds for _, bounds in parts}) == 1:
                return dataclasses.replace(pattern, operands=tuple(part for part, _ in parts)), parts[0][1]
    return pattern, Bounds()


def _upper(interval: Interval, pattern: Pattern) -> int | None:
    if interval.lower > 0:
        raise NotSupportedError(
            "a window with a lower bound is not supported by the automaton engine", span=pattern.span, help=REFERENCE_HELP
        )
    return interval.upper


# ------------------------------------------------------------------------------------------------------------------ what is supported


def check_supported(plan: QueryPlan) -> None:
    """Raise NotSupportedError for the clauses of a query that this evaluation does not have, with their place; patterns say it themselves."""
    if plan.strategy is Strategy.RESTRICTED:
        raise _unsupported(plan, "the strategy RESTRICTED", _found(plan, r"\bSELECT\s+(\w+)"), help_=NOWHERE_HELP)
    if plan.model is not None:
        raise _unsupported(plan, "THEN", _found(plan, r"\bTHEN\b"), help_=NOWHERE_HELP)


def _found(plan: QueryPlan, place: str) -> Span | None:
    """Where a clause stands in the text, outside of comments and quoted names and strings."""
    blank = re.sub(r"--[^\n]*|/\*.*?\*/|'[^']*'|`[^`]*`", lambda quoted: " " * len(quoted[0]), plan.text, flags=re.DOTALL)
    found = re.search(place, blank, re.IGNORECASE)
    return None if found is None else Span(*found.span(found.lastindex or 0))


def _unsupported(plan: QueryPlan, what: str, span: Span | None, *, help_: str = REFERENCE_HELP) -> NotSupportedError:
    return NotSupportedError(f"{what} is not supported by the automaton engine", text=plan.text or None, span=span, help=help_)
