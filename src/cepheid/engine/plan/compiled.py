"""A query over one schema, ready to run: immutable, and everything that batches, recognizers and Spark's workers need.

`planner` makes it.
"""

from __future__ import annotations

import dataclasses
import hashlib
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.automata import Program, construct
from cepheid.engine.evaluations.absences.absence import Absence, longest
from cepheid.engine.evaluations.around.numbered import started
from cepheid.engine.evaluations.base import BufferedRun
from cepheid.engine.evaluations.choosing.consuming import Consuming, beginning
from cepheid.engine.evaluations.choosing.guided import Guide, Guided, Labelled
from cepheid.engine.evaluations.choosing.restricted import RestrictedProgram
from cepheid.engine.evaluations.counts.chosen_count import ChosenCount
from cepheid.engine.evaluations.counts.listed import Listed
from cepheid.engine.evaluations.graph.match import Evaluation
from cepheid.engine.evaluations.method import CHOOSING, Terms
from cepheid.engine.input.lags import attributes_of as lagged_attributes
from cepheid.engine.input.lags import depth_of
from cepheid.engine.letters.encoded import EventReader, Texts, ValueLayout
from cepheid.engine.letters.words import predicates_of
from cepheid.engine.output.exact_counts import COUNT_FIELDS
from cepheid.engine.output.matches import Layout, plain_type
from cepheid.engine.output.measures import attributes_of
from cepheid.errors import NotSupportedError
from cepheid.language.syntax import Consumption, Strategy
from cepheid.logical.absence import take_out
from cepheid.logical.canonical import canonical_text
from cepheid.logical.growing import needed
from cepheid.logical.partition import asks_for
from cepheid.logical.plan import Field, Filter, Index, Lag, lags_in
from cepheid.logical.plan import walk as walk_expression
from cepheid.logical.tree import walk
from cepheid.logical.variables import shown
from cepheid.logical.windows import hoist
from cepheid.records import record
from cepheid.schema import STREAM_COLUMN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cepheid.automata import Automaton
    from cepheid.engine.evaluations.base import AnyEvaluation
    from cepheid.engine.evaluations.choosing.consuming import Judge
    from cepheid.engine.evaluations.method import Guarantee, Method
    from cepheid.engine.letters.predicates import Predicates
    from cepheid.engine.letters.words import LongPredicates
    from cepheid.logical.growing import Need
    from cepheid.logical.plan import Apply, QueryPlan
    from cepheid.schema import EventSchema


GUARDS_FORM = 6
"""How the state of queries that compare events is written; another number refuses what is stored, as that of another query."""


@record(slots=False)
class Compiled:
    """One query over one schema, ready to run.

    plan: as bound. rewritten: what construction read. program: the automaton's. method: how it is evaluated. window: greatest time(end) -
    time(start), None without. count_window: greatest end - start + 1 in events, None without. consume: what a trigger consumes; ANY says that
    partitions are fed in stream order. limit: matches per ending event, None for all. absences: what must not follow a match, each NOT FOLLOWED
    BY of the query. refusals: (name, reason) of each faster method that does not fit. from_gaps: whether the window is what gaps and windows inside
    the pattern come to. from_adjacency: whether count_window is what `:` comes to: no part of the fingerprint, for state without it can be read.
    chooses: the strategy, where it chooses between CONSUME BY and HAVING (`engine.run.having`), and not the evaluation. restarts: whether the
    evaluation starts a partition anew where HAVING leaves a match (`evaluations.choosing.consuming`). largest: whether it gives the largest matches:
    these say whether HAVING leaves any, and one is enough. guide: where it lists all, the method and the program that give the largest matches,
    which say of which triggers HAVING leaves any (`evaluations.choosing.guided`). sums: those that have to grow with a match for that. earlier:
    whether a match may begin before the events that it has, for a match has made one of them (`engine.run.beginnings`). layers: of its EVENT
    definitions, in their order.
    """

    plan: QueryPlan
    rewritten: QueryPlan
    program: Program
    method: Method
    window: int | None
    count_window: int | None
    consume: Consumption
    limit: int | None
    absences: tuple[Absence, ...] = ()
    refusals: tuple[tuple[str, str], ...] = ()
    from_gaps: bool = False
    from_adjacency: bool = False
    chooses: Strategy | None = None
    restarts: bool = False
    largest: bool = False
    guide: tuple[Method, Program] | None = None
    sums: tuple[Apply, ...] = ()
    earlier: bool = False
    layers: tuple[Compiled, ...] = ()

    @property
    def schema(self) -> EventSchema:
        """The schema of the events."""
        return self.plan.schema

    @cached_property
    def programs(self) -> tuple[Program, ...]:
        """The programs that read letters: first the pattern's, then that of each absence."""
        return (self.program, *(absence.program for absence in self.absences))

    @cached_property
    def alphabets(self) -> tuple[Predicates | LongPredicates, ...]:
        """Events to letters, for each of `programs`."""
        return tuple(predicates_of(program.automaton.alphabet, self.schema) for program in self.programs)

    @cached_property
    def lags(self) -> tuple[Lag, ...]:
        """The lagged attributes that `readers` read: columns that somebody has to fill before (`engine.input.lags`)."""
        conditions = [condition for alphabet in self.alphabets for condition in alphabet.conditions]
        return lags_in([*conditions, *(value for program in self.programs for value in program.values)])

    def readers(self, texts: Texts) -> list[EventReader]:
        """A reader of one stream for each of `programs`, of events with the columns of `lags`; texts: of the state that its events go to."""
        return [EventReader(program, alphabet, texts) for program, alphabet in zip(self.programs, self.alphabets, strict=True)]

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """The attributes of the events that `readers` and `lags` look at."""
        filled = {lag.path[0] for lag in self.lags}
        names = [name for reader in self.readers(Texts()) for name in reader.columns if name not in filled]
        return tuple(dict.fromkeys([*names, *lagged_attributes(self.lags)]))

    @cached_property
    def positional(self) -> bool:
        """Whether guards compare positions."""
        return any(ValueLayout(program.values).positional for program in self.programs)

    @cached_property
    def indexed(self) -> bool:
        """Whether these are positions from the first event of a partition on (`$index`); windows of events ask only how far two are apart."""
        return self.positional and any(map(asks_for(Index), walk(self.plan.pattern)))

    @cached_property
    def looks_ahead(self) -> bool:
        """Whether the query, or one of its definitions, looks at the events of a time behind each of them: then these have to be read together."""
        return any(program.looks_ahead for program in self.programs) or any(layer.looks_ahead for layer in self.layers)

    @property
    def looks_back(self) -> str | None:
        """What looks at events before, however long ago they were: "lag", "THEN" (whether time has moved on since), "$index" or None."""
        if self.lags:
            return "lag" if any(map(asks_for(Lag), walk(self.plan.pattern))) else "THEN"
        return "$index" if self.indexed else None

    @cached_property
    def read_in_order(self) -> tuple[str, ...]:
        """The attributes of which `readers` make what only the order of a partition says.

        With lag, these are all that `readers` and `lags` look at. With positions, they are those of the values that guards read: letters need no
        order. Else there are none.
        """
        if self.lags:
            return self.reads
        return self.read_for_values if self.positional else ()

    @property
    def read_for_values(self) -> tuple[str, ...]:
        """The attributes of which the values that guards read are made."""
        layouts = [ValueLayout(program.values) for program in self.programs]
        return tuple(dict.fromkeys(name for layout in layouts for name in layout.columns(self.schema)))

    @property
    def valued(self) -> bool:
        """Whether events have values beside their letters, for there are guards."""
        return any(program.values for program in self.programs)

    @property
    def predicates(self) -> Predicates | LongPredicates:
        """Events to letters of the pattern."""
        return self.alphabets[0]

    @cached_property
    def layout(self) -> Layout:
        """What the matches look like."""
        labels = self.program.label_sets
        if self.earlier and frozenset() not in labels:
            labels = (*labels, frozenset())  # of the place where a match begins
        return layout_of(self.plan, labels, keys=self.keys)

    @property
    def source(self) -> EventSchema:
        """The schema of the events that come in, without those of EVENT definitions."""
        return self.layers[0].schema if self.layers else self.schema

    @property
    def schemas(self) -> tuple[EventSchema, ...]:
        """Of the events once those of each EVENT definition are there."""
        return (*(layer.schema for layer in self.layers[1:]), self.schema) if self.layers else ()

    @property
    def settled(self) -> int:
        """How long after an event it is known what definitions make there: each sees what those before it make, and waits for its absences."""
        return sum(layer.delay for layer in self.layers)

    @property
    def decides_later(self) -> bool:
        """Whether a match is decided later than it ends: for its absences, or those of a definition."""
        return any(layer.absences for layer in (self, *self.layers))

    @property
    def compares(self) -> bool:
        """Whether a strategy chooses in `engine.run.having`, among fewer matches of a trigger than are judged."""
        return self.chooses in CHOOSING

    @property
    def judges(self) -> bool:
        """Whether the evaluation lists all matches, also those that CONSUME BY leaves out, and `engine.run.having` does what comes after that."""
        return self.plan.having is not None or self.earlier

    @property
    def counts_later(self) -> bool:
        """Whether COUNT(*) counts what absences FROM START leave of the matches of a trigger, once they are decided: they are given until then."""
        return self.plan.count and self.waits

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

    @cached_property
    def drawn(self) -> Automaton:
        """What drawings show: the automaton of the program; of a detector, which runs none, that of all matches of the pattern.

        Raises LimitError as `construct`.
        """
        if not isinstance(self.program, RestrictedProgram):
            return self.program.automaton
        pattern, _ = hoist(take_out(self.rewritten.pattern)[0])
        return construct(pattern, self.schema)

    @property
    def delay(self) -> int:
        """How long after the event that ends it a match is decided: the longest of its absences, 0 without any."""
        return longest(self.absences)

    @property
    def heeds_vetoes(self) -> bool:
        """Whether the evaluation is told which events complete no match that is given; where it `judges`, CONSUME BY looks at those matches too."""
        return not self.judges or self.consume is Consumption.NONE

    @property
    def waits(self) -> bool:
        """Whether matches wait, each for a deadline of its own (`waiting_matches`)."""
        return any(absence.from_start for absence in self.absences)

    @property
    def horizon(self) -> int | None:
        """How long after its time an event can matter, in steps of the time column; None: for ever, without a window, with lag and with $index.

        Strategies inside the pattern compare all matches of their parts, whatever the window.
        """
        parts = (part for program in self.programs for part in program.automaton.all_parts)
        windows = [self.window, *(part.window for part in parts if not part.is_next)]
        bounds = [window for window in windows if window is not None]
        return None if len(bounds) < len(windows) or self.looks_back else max(bounds) + self.delay

    @property
    def droppable(self) -> bool:
        """Whether events that are irrelevant to all `programs` can be left out before recognition: no state, window or lag counts them."""
        counts = [self.count_window, *(absence.count_window for absence in self.absences)]
        return not self.lags and all(program.droppable for program in self.programs) and all(count is None for count in counts)

    @cached_property
    def fingerprint(self) -> bytes:
        """32 bytes that differ when state of the one cannot be read by the other: program, bounds, keys or schema differ."""
        return self._identity(tuple(self.schema.attributes.items()), [layer.fingerprint for layer in self.layers])

    @cached_property
    def meaning(self) -> bytes:
        """The same, but for the attributes of the schema: for a state that says itself which ones it keeps."""
        return self._identity((), [layer.meaning for layer in self.layers])

    def _identity(self, attributes: tuple[tuple[str, pa.DataType], ...], layers: Sequence[bytes]) -> bytes:
        schema = (self.schema.type_column, self.schema.stream, self.schema.time_column, attributes)
        count_window = None if self.from_adjacency else self.count_window
        bounds = (self.method.name, self.window, count_window, self.consume.value, self.limit)
        ways = [name for name, is_so in (("restarts", self.restarts), ("largest", self.largest)) if is_so]
        # States of 0.2.0 say it of all counts FROM START, and hold the same where nothing is consumed.
        listed = self.judges or (self.counts_later and self.consume is Consumption.NONE)
        judged = (True, str(self.chooses), *ways) if listed else ()
        # The events that a state keeps have the attributes that the measures read.
        measures = tuple(measure.expression for measure in self.plan.computed)
        absences = tuple((absence.program.fingerprint, *absence.bounds) for absence in self.absences)
        form = (GUARDS_FORM,) if self.valued or self.method.guards else ()
        made = [(each.name, each.attributes, layer) for each, layer in zip(self.plan.definitions, layers, strict=True)]
        text = canonical_text((*bounds, *judged, *form, self.keys, self.derived, *schema, *measures, *absences, *made))
        return hashlib.sha256(self.program.fingerprint + text.encode()).digest()

    def evaluation(
        self, *, variant: str | None = None, sample: int | None = None, texts: Texts | None = None, judge: Judge | None = None
    ) -> AnyEvaluation:
        """A new evaluation, without any state.

        variant: of the kernel. sample: see `Query.run`, NotSupportedError where it cannot be. texts: those of the `readers` of its events.
        judge: what leaves matches, where the query `restarts`.
        """
        options: dict[str, Any] = {"variant": variant}
        if sample is not None:
            if self.plan.count:
                raise NotSupportedError(
                    f"sample={sample} chooses among all matches of a trigger, and COUNT(*) counts them", help="leave sample= out"
                )
            if self.judges:
                why = "where each begins is known once it is listed" if self.plan.having is None else "HAVING leaves some out"
                raise NotSupportedError(
                    f"sample={sample} chooses among all matches of a trigger, and {why}",
                    help="leave sample= out, or write LIMIT",
                )
            if not self.method.samples:
                raise NotSupportedError(
                    f"sample={sample} chooses among all matches of a trigger, which this query's evaluation ({self.method.name}) does not hold",
                    help="leave sample= out; LIMIT bounds how many are given",
                )
            options["sample"] = sample

        def start(program: Program) -> AnyEvaluation:
            terms = dataclasses.replace(self.terms, program=program, texts=texts)
            if not self.restarts:
                return self.method.start(terms, **options)
            assert judge is not None
            if self.guide is not None:
                return self._guided(self.guide, terms, judge, **options)
            lists = self.plan.strategy not in CHOOSING and not self.largest
            run = self.method.start(terms, **options)
            need = self.need if isinstance(run, BufferedRun) else None
            return Consuming(run, judge, beginning(program), lists=lists, rereads=not self.valued, need=need)

        run = started(self.program, start, texts, variant=variant)
        if self.judges or self.method.counts or not self.plan.count:
            return run
        return Listed(run, (self.plan.text or None, self.plan.pattern.span)) if self.counts_later else ChosenCount(run)

    def _guided(self, guide: tuple[Method, Program], terms: Terms, judge: Judge, **options: Any) -> Guided:
        """The evaluation that lists all matches, with a guide."""
        method, program = guide
        run, labels = method.start(dataclasses.replace(terms, program=program), **options), self.program.label_sets
        need = self.need if isinstance(run, BufferedRun) else None
        if program.label_sets != labels:
            run = Labelled(run, np.array([labels.index(mark) for mark in program.label_sets], np.uint16))

        def start() -> Evaluation:
            listing = self.method.start(terms, **options)
            assert isinstance(listing, Evaluation)
            return listing

        return Guided(start(), judge, beginning(terms.program), Guide(run, self.one, start), need=need)

    @property
    def one(self) -> bool:
        """Whether any one match of a trigger may be given."""
        plan = self.plan
        return not plan.count and (plan.strategy is Strategy.ANY or (plan.strategy is Strategy.ALL and plan.limit == 1))

    @cached_property
    def need(self) -> Need | None:
        """What HAVING asks for at least, where the query `restarts` and its letters say which events may have it; None: not known."""
        program, having = self.program, self.plan.having
        alphabet = program.automaton.alphabet
        if not self.restarts or having is None or program.values or program.trackers or alphabet.number_bits:
            return None
        return needed(having.expression)

    @property
    def terms(self) -> Terms:
        """What the evaluation is started with: with HAVING it lists all matches."""
        consume, limit = self.consume, self.limit
        if self.judges:
            consume, limit = Consumption.NONE, 1 if self.plan.strategy is Strategy.RESTRICTED and self.chooses is None else None
        return Terms(self.program, self.window, self.count_window, consume, limit, partitioned=bool(self.keys))

    @property
    def guarantee(self) -> Guarantee:
        """What the evaluation promises, with lagged events. Where matches wait for absences, each of these runs an automaton beside it."""
        guarantee = self.method.guarantee(self.terms)
        if self.plan.having is not None:
            guarantee = dataclasses.replace(
                guarantee, delay=f"{guarantee.delay}; that is per match that HAVING judges, and it may leave out many"
            )
        if self.lags:
            events = "event" if depth_of(self.lags) == 1 else f"{depth_of(self.lags)} events"
            kept = f"{guarantee.state}; and of each partition the last {events}, for ever ({self.looks_back})"
            guarantee = dataclasses.replace(guarantee, state=kept)
        if self.looks_ahead:
            guarantee = dataclasses.replace(
                guarantee, state=f"{guarantee.state}; and the events of the last time, until a later one comes (THEN)"
            )
        if self.settled:
            kept = f"{guarantee.state}; and the events of the last d, until it is known what definitions make there, d = the sum of their absences"
            guarantee = dataclasses.replace(guarantee, state=kept)
        if not self.absences:
            return guarantee
        kept = "matches of the last d that wait" if self.waits else "events of the last d"
        # Where any event may say where a match of it begins, one pass finds the one that begins last.
        passes = any(absence.program.automaton.begins is not None for absence in self.absences)
        anywhere = ", O(r) at events that end it, r = marked events of its matches" if passes else ""
        return dataclasses.replace(
            guarantee,
            update=f"{guarantee.update}; and O(m) of each absence{anywhere}",
            state=f"{guarantee.state}; and of each partition the {kept}, d = the longest time of an absence",
        )


def layout_of(plan: QueryPlan, labels: tuple[frozenset[str], ...], *, keys: tuple[str, ...] = ()) -> Layout:
    """The layout of a query's matches, with these labels; keys: what partitions the stream. Events of measures have what these read."""
    schema = plan.schema
    # The type column that merging made; where it is the input's own it is an attribute like any other.
    hidden = STREAM_COLUMN if schema.type_column == STREAM_COLUMN and STREAM_COLUMN not in plan.partition_by else None
    events = pa.schema([(name, plain_type(kind)) for name, kind in schema.attributes.items() if name != hidden])
    measures = tuple(pa.field(measure.name, measure.type) for measure in plan.measures)
    if measures:
        read = {*attributes_of(plan.computed, schema.time_column), *keys, *plan.partition_by, schema.time_column}
        # A table without columns has no rows: at least one stays.
        events = pa.schema([field for field in events if field.name in read] or list(events)[:1])
    if plan.count:
        measures = COUNT_FIELDS
    return Layout(
        plan.variables,
        labels,
        events,
        plan.partition_by,
        schema.time_column,
        measures,
        count=plan.count,
        named=_named(plan),
        written=shown(plan.pattern),
        waits=tuple((absence.duration, absence.from_start) for absence in take_out(plan.pattern)[1]),
        derived=tuple(key for key in keys if key not in plan.partition_by),
        said=plan.said,
    )


def _named(plan: QueryPlan) -> tuple[str, ...]:
    """The attributes that conditions and measures speak of, each once, in the order of the pattern."""
    conditions = [condition for node in walk(plan.pattern) if isinstance(node, Filter) for condition in node.conditions]
    written = [*conditions, *(measure.expression for measure in plan.computed)]
    fields = (node for expression in written for node in walk_expression(expression) if isinstance(node, Field))
    return tuple(dict.fromkeys(field.origin[0] for field in fields if field.path))
