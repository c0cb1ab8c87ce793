"""The automaton with its live states after each event.

Comes in: a compiled query and a table of events. Goes out: for each event the states in which some partial match of its partition is. The drawn
automaton runs over the letters of the events: a set of states, and for each the latest event at which a partial match in it began. A window ends
it when that event is too old, which is exact, for the latest begin outlives all others. Trackers run beside it as they do in an engine. What letters
do not say is not evaluated: comparisons of events (guards), and strategies inside the pattern. Then a state is shown where some partial match COULD
be, and `note` says so.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from cepheid.engine.input.keys import group, key_codes
from cepheid.engine.input.lags import lagged_table
from cepheid.engine.letters.words import predicates_of
from cepheid.engine.run.batch import ordered
from cepheid.errors import LimitError, NotSupportedError
from cepheid.language.syntax import Consumption, Strategy
from cepheid.logical.plan import lags_in
from cepheid.play.limits import MAX_STEPS
from cepheid.records import record

if TYPE_CHECKING:
    import pyarrow as pa

    from cepheid.automata.automaton import Automaton
    from cepheid.engine.input.keys import Groups
    from cepheid.engine.plan.compiled import Compiled


@record(slots=False)
class Step:
    """After one event. row: of the table. states: those that are live in its partition, ascending. ends: whether a match may end with it."""

    row: int
    states: tuple[int, ...]
    ends: bool


@record(slots=False)
class Steps:
    """The steps in the order of the events. note: what they do not take into account, empty where they are exact."""

    steps: tuple[Step, ...]
    note: str


def steps_of(compiled: Compiled, events: pa.Table, *, null_keys: str = "drop") -> Steps:
    """The live states after each event of a table, which has the columns that the automaton reads. null_keys: as for `Query.run`.

    Raises NotSupportedError where letters have no room for all conditions, LimitError for more than `MAX_STEPS` events. O(events x transitions).
    """
    if events.num_rows > MAX_STEPS:
        raise LimitError(
            f"there are {events.num_rows:,} events; one can step through {MAX_STEPS:,} (MAX_STEPS)", help="take a part of the events"
        )
    automaton = _without_comparisons(compiled.drawn)
    if automaton.alphabet.is_long:
        raise NotSupportedError("the query has too many conditions to step through its automaton", help="take a part of the query")
    times, stream = ordered(compiled.schema, events, sort=True, order=())
    rows = np.arange(events.num_rows) if stream is None else stream
    groups, positions = _grouped(compiled, events, rows, null_keys)
    where = rows[groups.order]
    lags = lags_in([predicate.condition for predicate in automaton.predicates])
    read = lagged_table(events, lags, where, groups.cuts) if lags else events
    letters = predicates_of(automaton.alphabet, compiled.schema).letters(read)
    found = {}
    for partition in np.split(where, groups.cuts[1:]):
        run = _Run(automaton, compiled.window, compiled.count_window)
        for row in partition.tolist():
            found[row] = run.read(row, automaton.alphabet.mask_of(int(letters[row])), int(times[row]), int(positions[row]))
    missing = Step(-1, (), ends=False)
    return Steps(tuple(dataclasses.replace(found.get(row, missing), row=row) for row in rows.tolist()), _note(compiled))


def _grouped(compiled: Compiled, events: pa.Table, rows: Any, null_keys: str) -> tuple[Groups, Any]:
    """The events by partition, and for each row its position in the partition that is written (windows of events count in it)."""

    def grouped(keys: tuple[str, ...]) -> Groups:
        if not keys:
            return group(np.zeros(len(rows), np.int64), 1)
        codes, count = key_codes(events, keys, grouped=compiled.written if null_keys == "group" else ())
        return group(codes[rows], count)

    written = grouped(compiled.written)
    positions = np.empty(len(rows), np.int64)
    positions[rows] = written.positions(len(rows))
    return grouped(compiled.keys), positions


def _without_comparisons(automaton: Automaton) -> Automaton:
    """The automaton with transitions that ask letters alone: guards and flags are taken to allow what they could allow."""
    alphabet = automaton.alphabet
    unknown = sum(1 << guard.bit for guard in alphabet.guards) | sum(flag.mask for flag in alphabet.flags)
    moves = tuple(
        dataclasses.replace(move, requires=move.requires & ~unknown, forbids=move.forbids & ~unknown) for move in automaton.transitions
    )
    return dataclasses.replace(automaton, transitions=moves)


def _note(compiled: Compiled) -> str:
    """What live states do not take into account, as sentences."""
    automaton, said = compiled.drawn, []
    if automaton.compares or automaton.negated or automaton.alphabet.flags:
        said.append("Comparisons between events are not evaluated here: a state is live if events could lead to it.")
    if compiled.absences:
        said.append("What must not follow a match is not part of the automaton: a match that ends here waits for it.")
    if compiled.plan.having is not None:
        said.append("HAVING is not applied here.")
    if compiled.consume is not Consumption.NONE:
        said.append("CONSUME BY is not applied here.")
    if compiled.plan.strategy not in {Strategy.ALL, Strategy.ANY}:
        said.append(f"SELECT {compiled.plan.strategy.value} chooses among the matches that end; it takes no state away here.")
    return " ".join(said)


class _Run:
    """The automaton over the events of one partition."""

    def __init__(self, automaton: Automaton, window: int | None, count_window: int | None) -> None:
        self.automaton = automaton
        self.window, self.count_window = window, count_window
        self.live: dict[int, tuple[int, int]] = {}  # state -> time and position of the latest event that begins a partial match there
        self.tracked = [0] * len(automaton.trackers)

    def read(self, row: int, mask: int, time: int, position: int) -> Step:
        """The step of one event; mask: what its letter says, without trackers."""
        trackers = self.automaton.trackers
        mask |= sum(state << tracker.bit for tracker, state in zip(trackers, self.tracked, strict=True))
        self.live = {state: begun for state, begun in self.live.items() if self._young(begun, time, position)}
        after: dict[int, tuple[int, int]] = {}
        for state, begun in [*self.live.items(), (self.automaton.initial, (time, position))]:
            for move in self.automaton.outgoing[state]:
                if move.enabled(mask):
                    after[move.target] = max(after.get(move.target, begun), begun)
        self.tracked = [tracker.successor(state, mask) for tracker, state in zip(trackers, self.tracked, strict=True)]
        finals = self.automaton.finals
        self.live = {state: begun for state, begun in after.items() if state not in finals}
        return Step(row, tuple(sorted(after)), ends=any(state in finals for state in after))

    def _young(self, begun: tuple[int, int], time: int, position: int) -> bool:
        """Whether a partial match may still end with an event of this time and position."""
        inside = self.window is None or time - begun[0] <= self.window
        return inside and (self.count_window is None or position - begun[1] < self.count_window)
