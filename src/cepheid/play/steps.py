"""The automaton with its live states after each event.

Comes in: a compiled query and a table of events. Goes out: for each event the states in which some partial match of its partition is. The events are
read as an engine reads them, and each partial match keeps what its guards compare (`play.stepping`). So a state is live exactly where some
partial match is that windows and gaps still let go on. What is left out is said in `note`: what the drawn automaton does not have (HAVING, CONSUME
BY, absences, a strategy over the whole pattern), NXT, LAST or MAX inside a pattern that compares events, and, past `MAX_CONFIGURATIONS`, the
comparisons.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from cepheid.automata import Program
from cepheid.engine.evaluations.around.negating import negating
from cepheid.engine.evaluations.around.numbered import started
from cepheid.engine.evaluations.events import Events
from cepheid.engine.evaluations.guards.guarded_start import latest
from cepheid.engine.input.keys import group, key_codes
from cepheid.engine.input.lags import lagged_table
from cepheid.engine.letters.encoded import EventReader, Texts
from cepheid.engine.letters.words import predicates_of
from cepheid.engine.run.batch import grouped_chunks, ordered
from cepheid.engine.run.made import MadeStream
from cepheid.errors import LimitError
from cepheid.language.syntax import Consumption, Strategy
from cepheid.logical.plan import lags_in
from cepheid.play.limits import MAX_COMPARISONS, MAX_CONFIGURATIONS, MAX_STEPS
from cepheid.play.stepping import Live
from cepheid.records import record

if TYPE_CHECKING:
    import pyarrow as pa

    from cepheid.engine.evaluations.base import AnyEvaluation, Bounds
    from cepheid.engine.input.keys import Groups
    from cepheid.engine.plan.compiled import Compiled

Array = np.ndarray[Any, Any]

IN_THE_AUTOMATON = frozenset({Strategy.ALL, Strategy.ANY, Strategy.STRICT})
"""The strategies over the whole pattern that take no match away which the automaton has; ANY takes none away where one ends."""


@record(slots=False)
class PlayStep:
    """After one event. row: of the table. states: those that are live in its partition, ascending. ends: whether a match may end with it.

    sure: whether one does: what the note says of the others keeps back no match there.
    """

    row: int
    states: tuple[int, ...]
    ends: bool
    sure: bool


@record(slots=False)
class Steps:
    """The steps in the order of the events. note: what they do not take into account, empty where they are exact."""

    steps: tuple[PlayStep, ...]
    note: str


def steps_of(compiled: Compiled, events: pa.Table, *, null_keys: str = "drop", begins: Array | None = None) -> Steps:
    """The live states after each event of a table, which has the columns that the automaton reads.

    null_keys: as for `Query.run`. begins: of a query with EVENT definitions, whose events are there: the row with which each event begins. Raises
    LimitError for more than `MAX_STEPS` events, and past the limits of the evaluations that guards need. O(events x `MAX_CONFIGURATIONS`) tests.
    """
    if events.num_rows > MAX_STEPS:
        raise LimitError(
            f"there are {events.num_rows:,} events; one can step through {MAX_STEPS:,} (MAX_STEPS)", help="take a part of the events"
        )
    times, stream = ordered(compiled.schema, events, sort=True, order=())
    rows = np.arange(events.num_rows) if stream is None else stream
    groups, positions = _grouped(compiled, events, rows, null_keys)
    if begins is not None:
        events = dataclasses.replace(MadeStream.of(events, times), begun=times[begins]).as_read(positions, positions[begins])
    where = rows[groups.order]
    live = _read(compiled, events, times, positions, where, groups.cuts)
    states = dict(zip(where.tolist(), live.found, strict=True))
    finals = compiled.drawn.finals
    unsure = _unsure(compiled, where, groups.cuts, live)
    steps = (
        PlayStep(row, found, ends, sure=ends and row not in unsure)
        for row in rows.tolist()
        for found in [states.get(row, ())]
        for ends in [not finals.isdisjoint(found)]
    )
    return Steps(tuple(steps), " ".join([*_uncompared(compiled, rows, where, live), *_left_out(compiled)]))


def _grouped(compiled: Compiled, events: pa.Table, rows: Array, null_keys: str) -> tuple[Groups, Array]:
    """The events by partition, and for each row its position in the partition that is written (`$index` and windows of events count in it)."""

    def grouped(keys: tuple[str, ...]) -> Groups:
        if not keys:
            return group(np.zeros(len(rows), np.int64), 1)
        codes, count = key_codes(events, keys, grouped=compiled.written if null_keys == "group" else ())
        return group(codes[rows], count)

    written = grouped(compiled.written)
    positions = np.empty(len(rows), np.int64)
    positions[rows] = written.positions(len(rows))
    return grouped(compiled.keys), positions


def _read(compiled: Compiled, events: pa.Table, times: Array, positions: Array, where: Array, cuts: Array) -> Live:
    """The drawn automaton after it has read all events; where: their rows, partition by partition. cuts: where partitions start in it."""
    program = Program(compiled.drawn)
    lags = lags_in([*(predicate.condition for predicate in program.predicates), *program.values])
    texts, predicates = Texts(), predicates_of(program.automaton.alphabet, compiled.schema)
    read = lagged_table(events, lags, where, cuts) if lags else events
    letters, values = EventReader(program, predicates, texts).apart(read, positions=positions)
    bounds: Bounds = {"window": compiled.window, "count_window": compiled.count_window}
    made: list[Live] = []

    def start(program: Program) -> AnyEvaluation:
        made.append(Live(program, configurations=MAX_CONFIGURATIONS, tests=MAX_COMPARISONS, **bounds))
        return negating(program, cast("AnyEvaluation", made[0]), latest, bounds)  # it is read once

    run = started(program, start, texts, variant=None)
    for _ in grouped_chunks(run, Events(letters, times, values=values), where, cuts):
        raise AssertionError("live states are no matches")
    return made[0]


# -------------------------------------------------------------------------------------------------------------------------- the note


def _uncompared(compiled: Compiled, rows: Array, where: Array, live: Live) -> list[str]:
    """Where partial matches go on without what decides about them. rows: in the order of the steps. where: the rows of what `live` has found."""
    could = "a state is live if events could lead to it."
    limits = (
        (live.crowded, f"more than {MAX_CONFIGURATIONS:,} different partial matches are live (MAX_CONFIGURATIONS)"),
        (live.costly, f"there have been {MAX_COMPARISONS:,} of them (MAX_COMPARISONS)"),
    )
    said = []
    for passed, why in limits:
        if passed:
            numbers = np.flatnonzero(np.isin(rows, where[passed])) + 1
            others = f", and {len(numbers) - 1:,} more," if len(numbers) > 1 else ""
            place = " in their partitions" if others else " in its partition" if compiled.keys else ""
            said.append(
                f"Behind event {numbers[0]:,} of {len(rows):,}{others} comparisons between events are not evaluated{place}, for {why}:"
                f" from there on {could}"
            )
    parts = compiled.drawn.parts
    return said + [f"{part.text} is taken without {part.rule.value} here: {could}" for part in parts]


def _unsure(compiled: Compiled, where: Array, cuts: Array, live: Live) -> frozenset[int]:
    """The rows with which no match may end although a final state is live. A strategy over the whole pattern keeps one of those that end."""
    if compiled.absences or compiled.plan.having is not None or compiled.consume is not Consumption.NONE or compiled.drawn.parts:
        return frozenset(where.tolist())
    stops = np.append(cuts[1:], len(where))
    found: set[int] = set()
    for place in (*live.crowded, *live.costly):
        found.update(where[place + 1 : stops[np.searchsorted(stops, place, side="right")]].tolist())
    return frozenset(found)


def _left_out(compiled: Compiled) -> list[str]:
    """What is not in the automaton."""
    said = []
    if compiled.absences:
        said.append("What must not follow a match is not part of the automaton: a match that ends here waits for it.")
    if compiled.plan.having is not None:
        said.append("HAVING is not applied here.")
    if compiled.consume is not Consumption.NONE:
        said.append("CONSUME BY is not applied here.")
    if compiled.plan.strategy not in IN_THE_AUTOMATON:
        said.append(f"SELECT {compiled.plan.strategy.value} chooses among the matches that end; it takes no state away here.")
    return said
