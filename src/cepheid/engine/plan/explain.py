"""What `explain()` prints: every stage from text to program, the chosen evaluation with its guarantees, and the lints.

Comes in: a `Query`, and a schema if there is one. Goes out: an `Explanation`, text in a terminal and a table in a notebook. Without a schema, the
types of attributes are guessed from their use in the query, and the explanation says so.
"""

from __future__ import annotations

import html
import textwrap
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from cepheid.engine.evaluations.absences.absence import longest
from cepheid.engine.evaluations.choosing.restricted import RestrictedProgram
from cepheid.engine.evaluations.counts.listed import most_of
from cepheid.engine.plan.family import alone_for, families
from cepheid.engine.plan.likely_schema import Bindable, error_of_all, likely_schema
from cepheid.errors import BindError, CepheidError, InputError, SchemaError, counted, did_you_mean
from cepheid.language import syntax
from cepheid.language.syntax import Consumption, Strategy
from cepheid.language.words import write_name
from cepheid.logical import durations
from cepheid.logical.absence import take_out
from cepheid.logical.describe import describe, describe_expression, describe_longest, written_upper
from cepheid.logical.meaning import meaning
from cepheid.logical.parameters import parameters, shown
from cepheid.logical.plan import Apply
from cepheid.logical.rewrite import rewrite_steps
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cepheid.automata.alphabet import Alphabet, Predicate
    from cepheid.automata.automaton import Automaton
    from cepheid.automata.program import Program
    from cepheid.automata.transition import Transition
    from cepheid.engine.plan.compiled import Compiled
    from cepheid.engine.plan.family import Family, Route
    from cepheid.logical.plan import QueryPlan
    from cepheid.schema import EventSchema

STAGES = ("meaning", "text", "tree", "plan", "rewritten", "automaton", "program", "evaluation", "lints")
"""The meaning in sentences, then the stages in the order of the compile hops; `explain(stage)` shows one of them."""

TRANSITIONS_SHOWN = 40
"""Transitions of an automaton that an explanation lists."""

WIDTH = 110
"""Characters in a line of an explanation's text."""


class Explained(Bindable, Protocol):
    """What is asked of a query: what was written, and what binding and compiling it give for a schema."""

    @property
    def text(self) -> str:
        """Its text."""

    def compiled(self, schema: EventSchema) -> Compiled:
        """What runs."""


@record(slots=False)
class Explanation:
    """Titled texts: `str` for terminals, `_repr_html_` for notebooks, ``explanation["automaton"]`` for one of them.

    missing: what a stage says that is not there, because types are not known or nothing evaluates the query.
    """

    sections: tuple[tuple[str, str], ...]
    missing: str = ""

    def __getitem__(self, stage: str) -> str:
        found = dict(self.sections)
        return self.missing if self.missing and stage not in found and stage in STAGES else found[stage]

    def __str__(self) -> str:
        return "\n\n".join(f"{title}\n{textwrap.indent(text, '  ')}" for title, text in self.sections)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th style="text-align:left;vertical-align:top">{html.escape(title)}</th>'
            f'<td style="text-align:left"><pre>{html.escape(text)}</pre></td></tr>'
            for title, text in self.sections
        )
        return f"<table>{rows}</table>"


def explain(query: Explained, stage: str | None, schema: EventSchema | None) -> Explanation:
    """The explanation of a query: all stages, or one.

    Raises InputError for an unknown stage, and BindError where the schema does not fit, or where none is given and none would.
    """
    if stage is not None and not isinstance(stage, str):
        raise InputError(
            f"explain takes the name of a stage first, not a {type(stage).__name__}", help="give a schema as explain(schema=..)"
        )
    if stage is not None and stage not in STAGES:
        known = f"the stages are {', '.join(STAGES)}"
        raise InputError(f"there is no stage {stage!r}", help=[*did_you_mean(stage, STAGES, quote="'"), known])
    sections = tuple(_sections(query, schema))
    shown = tuple(item for item in sections if stage is None or item[0] in {stage, "schema"})
    return Explanation(shown, "" if set(STAGES) <= dict(sections).keys() else _missing(dict(sections)))


def _missing(sections: Mapping[str, str]) -> str:
    """What a stage says that is not among these."""
    if "lints" in sections:
        return f"not there, for the query is not evaluated:\n{sections['evaluation']}"
    return f"not there, for the types of the attributes are {sections['schema']}"


def _sections(query: Explained, schema: EventSchema | None) -> Iterator[tuple[str, str]]:
    values = [f":{write_name(name)} = {shown(value)}" for name, value in query.args.items()]
    written = [("text", "\n".join([query.text.strip(), *values])), ("tree", tree_text(query.tree))]
    guessed = schema is None
    try:
        schema = likely_schema(query) if schema is None else schema
        plan = query.bound(schema)
    except (BindError, SchemaError) as error:
        missing = any(node.name not in query.args for node in parameters(query.tree))
        mistake = error_of_all(query) if guessed and isinstance(error, BindError) else None
        if mistake is not None or not (guessed or missing):
            raise mistake or error from None
        if missing and schema is not None:
            try:
                yield "meaning", meaning_text(query.bound(schema, partial=True))
            except BindError:  # of a guess the types may be wrong
                if not guessed:
                    raise
        yield from written
        way_out = (
            "the values of all parameters, args={..}" if missing else "schema=, the Arrow schema of the events, as in schema=table.schema"
        )
        why = error.fact if missing else f"the types that the query lets guess do not fit: {error.fact}"
        yield "schema", f"{'not known' if guessed else 'given'}; for the other stages give {way_out}\n({why})"
        return
    yield "meaning", meaning_text(plan)
    yield from written
    if guessed:
        yield "schema", "not known; guessed: " + ", ".join(f"{name} {kind}" for name, kind in schema.attributes.items())
    yield from _compiled_sections(query, plan, schema)
    yield "lints", "\n\n".join(plan.lints) or "none"


def _compiled_sections(query: Explained, plan: QueryPlan, schema: EventSchema) -> Iterator[tuple[str, str]]:
    unit = schema.unit
    yield "plan", _wrapped(describe(plan.pattern, unit=unit))
    try:
        steps = rewrite_steps(plan)
        yield "rewritten", "\n".join(f"{name}: {_wrapped(_step(step, unit))}" for name, step in steps) or "nothing to rewrite"
        compiled = query.compiled(schema)
    except CepheidError as error:
        yield "evaluation", str(error)
        return
    absent = [f"\nabsence {number}\n{automaton_text(absence.program.automaton)}" for number, absence in enumerate(compiled.absences, 1)]
    yield "automaton", "\n".join([carrier_text(compiled.program), *absent])
    yield "program", program_text(compiled)
    yield "evaluation", evaluations_text(compiled)


def meaning_text(plan: QueryPlan) -> str:
    """What a query means, in sentences."""
    return "\n".join(map(_wrapped, meaning(plan).split("\n")))


def evaluations_text(compiled: Compiled) -> str:
    """`evaluation_text` of a query, behind those of its EVENT definitions."""
    return "\n\n".join([*_layers(compiled), evaluation_text(compiled)])


def _layers(compiled: Compiled) -> Iterator[str]:
    """How the queries of EVENT definitions are evaluated, in their order."""
    for definition, layer in zip(compiled.plan.definitions, compiled.layers, strict=True):
        text = f"{_wrapped(describe(layer.plan.pattern, unit=layer.schema.unit))}\n{evaluation_text(layer)}"
        yield f"EVENT {write_name(definition.name)}\n{textwrap.indent(text, '  ')}"


def _step(plan: QueryPlan, unit: int | None) -> str:
    return describe(plan.pattern, unit=unit, keys=plan.keys)


def _wrapped(text: str) -> str:
    return "\n".join(textwrap.wrap(text, WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False))


# --------------------------------------------------------------------------------------------------------------------------- stages


def tree_text(node: syntax.Node, *, depth: int = 0) -> str:
    """The syntax tree, one node per line, indented: the class, its plain values, then the nodes below."""
    import dataclasses

    values = [
        f"{item.name}={_value(value)}"
        for item in dataclasses.fields(node)
        if item.compare and not _is_below(value := getattr(node, item.name)) and value not in ((), None, False)
    ]
    line = "  " * depth + " ".join([type(node).__name__, *values])
    return "\n".join([line, *(tree_text(child, depth=depth + 1) for child in node.children())])


def _is_below(value: object) -> bool:
    return isinstance(value, syntax.Node) or (isinstance(value, tuple) and any(isinstance(item, syntax.Node) for item in value))


def _value(value: Any) -> str:
    return str(getattr(value, "name", value))


def predicate_text(predicate: Predicate) -> str:
    """A bit of the letter, as text."""
    if predicate.type is not None:
        return f"type is {predicate.type}"
    condition = predicate.condition
    parts = condition.arguments if isinstance(condition, Apply) and condition.operator == "and" else (condition,)
    return " and ".join(map(describe_expression, parts))


def carrier_text(program: Program) -> str:
    """The automaton of a program, or the event expression that a detector runs without one."""
    if isinstance(program, RestrictedProgram):
        return _wrapped(f"none; the detector of {program.expression}")
    return automaton_text(program.automaton)


def automaton_text(automaton: Automaton) -> str:
    """The automaton: its size, then its transitions."""
    lines = [f"{_size(automaton)}; starts in 0, accepts in {_numbers(automaton.finals)}"]
    lines += [_transition(automaton, move) for move in automaton.transitions[:TRANSITIONS_SHOWN]]
    if len(automaton.transitions) > TRANSITIONS_SHOWN:
        lines.append(f".. and {len(automaton.transitions) - TRANSITIONS_SHOWN} more")
    lines += [f"part {number}, {part.described}: {_size(part.automaton)}" for number, part in enumerate(automaton.parts, 1)]
    lines += [f"negated, {each.text}: {_size(each.automaton)}" for each in automaton.negated]
    return "\n".join(lines)


def _size(automaton: Automaton) -> str:
    return f"{counted(automaton.states, 'state')}, {counted(len(automaton.transitions), 'transition')}"


def _transition(automaton: Automaton, move: Transition) -> str:
    required = [predicate for bit, predicate in enumerate(automaton.predicates) if move.requires >> bit & 1]
    names = [predicate_text(predicate) for predicate in sorted(required, key=lambda predicate: predicate.type is None)]
    names += [f"not ({predicate_text(predicate)})" for bit, predicate in enumerate(automaton.predicates) if move.forbids >> bit & 1]
    condition = " and ".join([*names, *automaton.alphabet.beyond_the_event(move)]) or "any event"
    mark = "no mark" if move.mark is None else f"mark {', '.join(sorted(move.mark)) or 'hidden'}"
    return f"{move.source} -> {move.target}  {condition}: {mark}{automaton.alphabet.written(move)}"


def _numbers(numbers: frozenset[int]) -> str:
    return ", ".join(map(str, sorted(numbers))) or "none"


def program_text(compiled: Compiled) -> str:
    """The letters and labels of the program."""
    program = compiled.program
    lines = []
    for number, reader in enumerate(compiled.programs):
        whose = f"absence {number}, " if number else ""
        alphabet = reader.automaton.alphabet
        if alphabet.number_bits:
            lines.append(f"{whose}letter bits 0 to {alphabet.number_bits - 1}: the number of a spelling of {alphabet.spelling_bits} bits")
        what = "spelling" if alphabet.number_bits else "letter"
        lines += [f"{whose}{what} {place}: {text}" for place, text in _letter_parts(alphabet)]
    lines += [
        f"letter bits from {program.automaton.alphabet.place(tracker.bit)} on: tracker {number}, {counted(tracker.states, 'state')}, of the events "
        f"{'behind it that have its time' if tracker.ahead else 'before'}"
        for number, tracker in enumerate(program.trackers, 1)
    ]
    lines += [f"label {number}: {', '.join(sorted(label)) or 'hidden'}" for number, label in enumerate(program.label_sets)]
    dropped = (
        "can be left out before" if compiled.droppable else f"stay: {f'{compiled.looks_back} looks at them' if compiled.lags else COUNTED}"
    )
    lines += [f"events with an irrelevant letter {dropped}", f"fingerprint {compiled.fingerprint.hex()[:16]}"]
    return "\n".join(lines)


COUNTED = "the pattern counts or compares positions"
"""Why events with an irrelevant letter stay."""


def _letter_parts(alphabet: Alphabet) -> Iterator[tuple[str, str]]:
    """Places in a letter, or in a spelling, and what they say of the event."""
    types = alphabet.type_field.bit_length()
    field = "bit 0" if types == 1 else f"bits 0 to {types - 1}"
    for predicate, value in zip(alphabet.predicates, alphabet.values, strict=True):
        yield f"bit {value.bit_length() - 1}" if predicate.type is None else f"{field} = {value}", predicate_text(predicate)


CHOOSES = frozenset({Strategy.STRICT, Strategy.NXT, Strategy.LAST, Strategy.MAX})
"""The strategies that leave out matches before HAVING."""

CONSUMES = {
    Consumption.NONE: "",
    Consumption.PARTITION: "after a trigger, only later starts count in its partition",
    Consumption.ANY: "after a trigger, only later starts count in all partitions",
}
"""What CONSUME BY does, as the explanation says it; nothing where it does nothing."""


def evaluation_text(compiled: Compiled) -> str:
    """The chosen evaluation and what it guarantees."""
    guarantee, unit = compiled.guarantee, compiled.schema.unit
    bounds = []
    if compiled.window is not None:
        bounds.append(_window(compiled, compiled.window))
    if compiled.count_window is not None:
        bounds.append(counted(compiled.count_window, "event") + (" (from `:` alone)" if compiled.from_adjacency else ""))
    rows = {
        "engine": guarantee.evaluation,
        "guards": "\n".join(guarantee.guards),
        "class": class_text(compiled),
        "not used": refusals_text(compiled),
        "window": "none needed: a match is one event" if compiled.program.single else " and ".join(bounds) or "none",
        "partitions": keys_text(compiled) or "none",
        "strategy": compiled.plan.strategy.value + (f", at most {compiled.limit} per trigger" if compiled.limit is not None else ""),
        "begins": _begins(compiled),
        "having": _having(compiled),
        "counts": _count(compiled),
        "consumes": CONSUMES[compiled.consume],
        "absences": absences_text(compiled),
        "given": _given(compiled, unit),
        "update": guarantee.update,
        "state": guarantee.state,
        "delay": guarantee.delay,
    }
    return rows_text(rows)


def _window(compiled: Compiled, steps: int) -> str:
    """The window in time, as it was probably written; a sum of gaps of which some are strict is less than that of their bounds."""
    unit = compiled.schema.unit
    if not compiled.from_gaps:
        return f"time {describe_longest(steps, unit)}"
    pattern, _ = take_out(compiled.rewritten.pattern)
    written = durations.longest(pattern, upper=partial(written_upper, unit=unit)) if durations.longest(pattern) == steps else None
    below = written if written is not None and written > steps else None
    return f"time {describe_longest(steps, unit, below=below)} (from gaps and windows inside the pattern)"


def _begins(compiled: Compiled) -> str:
    """Where matches begin, if the events that are read do not say it, and what that costs; "" elsewhere."""
    if not compiled.earlier:
        return ""
    what = "where the first event that a match has made begins"
    return what if compiled.plan.having is not None else f"{what}: {_listed(compiled, '')}"


def _having(compiled: Compiled) -> str:
    """The condition of HAVING, and what it costs; "" without one."""
    having = compiled.plan.having
    if having is None:
        return ""
    condition = describe_expression(having.expression)
    if not (compiled.restarts or compiled.largest):
        return f"{condition}: {_listed(compiled, ' and judged')}"
    anew = "behind the last trigger of which it left a match, " if compiled.restarts else ""
    gives = "all matches" if compiled.plan.strategy not in CHOOSES else f"the matches that {compiled.plan.strategy.value} chooses"
    if compiled.largest or compiled.guide is not None:
        gives = "the largest matches (they meet it if any does)"
    if compiled.guide is not None and not compiled.one:
        gives = f"{gives}, then all matches of a trigger where one of them meets it,"
    read = "; each event is read a few times" if compiled.restarts else ""
    if compiled.need is not None:
        read = f"{read}; none is listed before all events since then have as much as is asked for"
    if compiled.sums:
        read = f"{read}; {_while_sums_grow(compiled)}"
    behind = _behind(compiled)
    rest = f"; {behind} after that" if behind else ""
    return f"{condition}: {anew}{gives} are listed and judged, at most {most_of(compared=compiled.compares)[1]:,} of a trigger{read}{rest}"


def _while_sums_grow(compiled: Compiled) -> str:
    """How long the largest matches say whether any meets the condition."""
    names = list(dict.fromkeys(describe_expression(leaf) for each in compiled.sums for leaf in each.arguments))
    are = "is" if len(names) == 1 else "are"
    return f"it decides early while {' and '.join(names)} {are} not negative; from then on all matches are listed and judged"


def _count(compiled: Compiled) -> str:
    """What it costs to count matches where each is made; "" elsewhere, and where something else says it."""
    return _listed(compiled, "") if compiled.plan.count and not (compiled.judges or compiled.method.counts) else ""


def _listed(compiled: Compiled, judged: str) -> str:
    """What is done with the matches of a trigger where all of them are listed."""
    behind = _behind(compiled)
    rest = f"; {behind} after that" if behind else ""
    _, most = most_of(compared=compiled.compares)
    used = compiled.judges and compiled.consume is not Consumption.NONE
    compared = "" if compiled.chooses is None else f", {'those that CONSUME BY leaves ' if used else ''}compared ({compiled.chooses.value})"
    return f"the matches of a trigger are listed{compared}{judged}, at most {most:,}{', with those of events that are used up' if used else ''}{rest}"


def _behind(compiled: Compiled) -> str:
    """The clauses that come after HAVING."""
    after = ["COUNT(*)"] * compiled.plan.count
    after += ["LIMIT"] * (compiled.plan.limit is not None) + ["ANY"] * (compiled.plan.strategy is Strategy.ANY)
    return " and ".join(after)


def class_text(compiled: Compiled) -> str:
    """The class of timed-cel, Theorem 6.1, where the matches are those of an automaton in it that has guards; "" elsewhere."""
    automaton, window = compiled.program.automaton, compiled.window is not None and not compiled.from_gaps
    counted = compiled.count_window is not None and not compiled.from_adjacency
    bounded = counted or compiled.consume is not Consumption.NONE or compiled.absences
    if compiled.plan.strategy is not Strategy.ALL or bounded or not automaton.alphabet.guards or automaton.parts:
        return ""
    from cepheid.theory.classes import AT_LEAST, monotonic_in
    from cepheid.theory.clocks import one_clock

    found = one_clock(automaton, window=window)
    if found is None:
        return ""
    bounds = " or ".join(sorted(monotonic_in(found) - ({AT_LEAST} if window else set())))
    return f"deterministic, monotonic ({bounds}), with one clock: O(1) per event is possible (timed-cel, Theorem 6.1)"


def rows_text(rows: Mapping[str, str]) -> str:
    """Titles and their texts, one below the other; without those whose text is empty."""
    width = max(map(len, rows))
    return "\n".join(f"{title:<{width}}  {text}".replace("\n", "\n" + " " * (width + 2)) for title, text in rows.items() if text)


def refusals_text(compiled: Compiled) -> str:
    """Why each faster evaluation is not used, one per line; "" where there is none."""
    return "\n".join(f"{name}: {reason}" for name, reason in compiled.refusals)


def keys_text(compiled: Compiled) -> str:
    """What partitions the stream, and why; "" without keys."""
    derived = [f"{', '.join(compiled.derived)} (from equalities)"] if compiled.derived else []
    return ", ".join([*compiled.written, *derived])


def _given(compiled: Compiled, unit: int | None) -> str:
    """When matches are given, with absences; those of EVENT definitions come before its own."""
    by_end, by_start = (compiled.settled + longest(compiled.absences, from_start=each) for each in (False, True))
    if compiled.counts_later:
        return f"once event time has passed the match's end by {_duration(max(by_end, by_start), unit)}: those of an event are counted together"
    waits = any(layer.absences for layer in compiled.layers) or any(not each.from_start for each in compiled.absences)
    after_end = f"the match's end by {_duration(by_end, unit)}" if waits else ""
    after_start = f"its start by {_duration(by_start, unit)}" if compiled.waits else ""
    passed = " and ".join(filter(None, [after_end, after_start]))
    return f"once event time has passed {passed}" if passed else ""


def absences_text(compiled: Compiled) -> str:
    """What must not follow a match, and for how long; "" without absences."""
    unit = compiled.schema.unit
    _, absences = take_out(compiled.rewritten.pattern)
    return " and ".join(
        f"no {describe(absence.negated, unit=unit)} for {_duration(absence.duration, unit)}{' from its start' * absence.from_start}"
        for absence in absences
    )


def _duration(steps: int, unit: int | None) -> str:
    from cepheid.logical.describe import _Description

    return _Description(unit).steps(steps)


NAMES_SHOWN = 8
"""Queries of a family whose names an explanation lists."""


def explain_queries(compiled: Mapping[str, Compiled], stage: str | None = None) -> Explanation:
    """What several queries mean, and how they are evaluated together: which as one, by what events come to them, and which alone.

    stage: "meaning", the title of another section, or None for all. Raises InputError for an unknown one.
    """
    sections = dict(_sections_of_queries(compiled))
    if stage is not None and stage not in sections:
        known = f"there are {', '.join(sections)}"
        raise InputError(f"there is no section {stage!r}", help=[*did_you_mean(stage, sections, quote="'"), known])
    return Explanation(tuple(item for item in sections.items() if stage in (None, item[0])))


def _sections_of_queries(compiled: Mapping[str, Compiled]) -> Iterator[tuple[str, str]]:
    joined, alone = families(compiled)
    conditions = {condition for family in joined for condition in family.shared}
    asked = [alphabet for each in alone.values() if not each.lags for alphabet in each.alphabets]
    conditions |= {condition for alphabet in asked for condition in alphabet.conditions}
    in_families = sum(len(family.names) for family in joined)
    shared = {
        "queries": f"{len(compiled):,}: {in_families:,} in {len(joined):,} famil{'y' if len(joined) == 1 else 'ies'}, {len(alone):,} alone",
        "conditions": f"{len(conditions):,} without constants of their own, each asked once per event",
    }
    others = {family.names[0]: len(family.names) - 1 for family in joined} | dict.fromkeys(alone, 0)
    titles = {name: name + (f", and {more:,} more of its family with other constants" if more else "") for name, more in others.items()}
    means = (f"{titles[name]}\n{textwrap.indent(meaning_text(each.plan), '  ')}" for name, each in compiled.items() if name in titles)
    yield "meaning", "\n".join(means)
    yield "together", rows_text(shared)
    for number, family in enumerate(joined, 1):
        names = ", ".join(family.names[:NAMES_SHOWN]) + (
            f" and {len(family.names) - NAMES_SHOWN:,} more" if len(family.names) > NAMES_SHOWN else ""
        )
        rows = {"queries": names, "events": "\n".join(_route(family, route) for route in family.routes)}
        yield f"family {number}", f"{rows_text(rows)}\n{evaluation_text(family.first.own)}"
    for name, each in alone.items():
        why = alone_for(each) or "no other query has its shape; it reads the events that matter to it"
        yield f"alone: {name}", f"{rows_text({'why': why})}\n{evaluation_text(each)}"


def _route(family: Family, route: Route) -> str:
    """By what an event comes to the queries of a family."""
    types = [predicate.type for predicate in family.compiled.program.predicates if predicate.condition in route.shared and predicate.type]
    kind = f"of type {types[0]}" if types else "of any type"
    if route.index is None:
        return f"{kind}: to all {len(family.names):,}" if len(family.names) > 1 else kind
    mean = len(route.index.queries) / (len(route.index.starts) - 1)
    asked = describe_expression(route.index.expression)
    return f"{kind}: one search for {asked}, {mean:,.3g} of {len(family.names):,} queries on average"
