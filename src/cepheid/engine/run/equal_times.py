"""Events of equal times: the order of their rows decides what matches, and nobody may have chosen it.

Comes in: the events of a table, or of a stream piece by piece, as letters. Goes out: a warning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cepheid.engine.letters.codes import having
from cepheid.engine.letters.encoded import EventForm
from cepheid.language.syntax import Consumption, Strategy
from cepheid.logical import plan
from cepheid.logical.tree import conditions_of, is_of_one_event, walk

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from cepheid.engine.input.partitions import Arrived
    from cepheid.engine.memory.pools import Array
    from cepheid.engine.plan.compiled import Compiled
    from cepheid.logical.plan import Pattern, QueryPlan

FIRST, PIECE = 1 << 10, 1 << 16
"""Events that are looked at together, at first and later: the first two that are found are enough."""


class TiedRows:
    """Of tables: whether two events of one partition that can matter have the same time, and a match can have more than one event.

    warnings: a line, once there are such. made: of the next table, the rows that definitions have made (bool), whose order is defined; None: none.
    """

    def __init__(self) -> None:
        self.warnings: tuple[str, ...] = ()
        self.made: Array | None = None

    def see(self, compiled: Compiled, events: pa.Table, times: Array, letters: Sequence[Array], rows: Array | None, cuts: Array) -> None:
        """Look at a table, for a query or a definition.

        times, letters (of each program): of the rows of the table. rows: partition by partition, each in the order of its events; None: all as they
        are. cuts: where each partition starts in them. Linear, up to the first two that are found.
        """
        if self.warnings or not _matters(compiled):
            return
        row = _first_tied(compiled, times, letters, rows, cuts, self.made)
        if row is not None:
            self.warnings = (_told(compiled, events, row),)


class EqualTimes:
    """The same for events that come piece by piece, in their order; also where two of one time are in different pieces.

    made: of the next piece, as in `TiedRows`.
    """

    def __init__(self, compiled: Compiled) -> None:
        self.made: Array | None = None
        self._own: tuple[str, ...] = ()
        self._layers: list[EqualTimes] = []
        self._compiled = compiled
        self._matters = _matters(compiled)
        self._forms = [EventForm.of(program) for program in compiled.programs]
        self._last: int | None = None  # the greatest time so far,
        self._slots: Array = np.zeros(0, np.int64)  # and the partitions with an event at it that can matter

    @property
    def warnings(self) -> tuple[str, ...]:
        """Of what has been seen."""
        return self._own or next((each.warnings for each in self._layers if each.warnings), ())

    def of_layer(self, compiled: Compiled) -> EqualTimes:
        """What looks at the events of a layer of the query: of a definition, or of the query itself behind its definitions."""
        self._layers.append(EqualTimes(compiled))
        return self._layers[-1]

    def see(self, events: pa.Table, times: Array, letters: Sequence[Array], arrived: Arrived) -> None:
        """Read some events; times, letters: theirs, as the reader of each program gives them. Log-linear; nothing once it is known."""
        if not self._matters or self._own or not len(times):
            return
        same = times[1:] == times[:-1]
        tied = np.append(same, False) | np.insert(same, 0, False)
        joined = int(times[0]) == self._last
        if joined:
            tied[: np.searchsorted(times, times[0], "right")] = True
        tied[np.searchsorted(times, times[-1], "left") :] = True  # the next piece may go on with this time
        places = np.flatnonzero(tied)
        places = places[_relevant(self._compiled, [form.letters(each[places]) for form, each in zip(self._forms, letters, strict=True)])]
        places = places if self.made is None else places[~self.made[places]]
        slots = _slots_of_rows(arrived)[places]
        places, slots = places[slots >= 0], slots[slots >= 0]
        before = self._slots if joined else self._slots[:0]
        all_slots = np.concatenate([before, slots])
        all_times = np.concatenate([np.full(len(before), times[0]), times[places]])
        sorting = np.lexsort((all_slots, all_times))
        twice = np.flatnonzero((np.diff(all_times[sorting]) == 0) & (np.diff(all_slots[sorting]) == 0))
        if len(twice):
            # Stable: the second one is in this piece.
            self._own = (_told(self._compiled, events, int(places[sorting[twice[0] + 1] - len(before)])),)
        self._last = int(times[-1])
        self._slots = all_slots[all_times == times[-1]]

    def forget(self, slots: Array) -> None:
        """Partitions are forgotten: others may get their slots."""
        self._slots = np.setdiff1d(self._slots, slots)


def _slots_of_rows(arrived: Arrived) -> Array:
    """The partition of each row of a batch (int64), -1 without one."""
    found: Array = np.full(arrived.rows, -1, np.int64)
    found[slice(None) if arrived.order is None else arrived.order] = np.repeat(arrived.slots, arrived.lengths)
    return found


def _matters(compiled: Compiled) -> bool:
    """Whether equal times can: events have times, and a match can have, or look at, more than one event."""
    return compiled.schema.time_column is not None and not _of_one_event(compiled)


def _told(compiled: Compiled, events: pa.Table, row: int) -> str:
    """The warning; row: of one of the events."""
    query = compiled.plan
    assert query.schema.time_column is not None
    fact = f"events that can be in one match have the same time, such as {events[query.schema.time_column][row]}"
    if _goes_by_times(query, compiled):
        return f"{fact}: for THEN neither is before or after the other, whatever the order of the rows"
    then = "; but THEN goes by times: for it neither is before or after the other" if query.model is not None else ""
    return f"{fact}: the order of the rows decides, unless order= (--order) names a column that does{then}"


def _goes_by_times(query: QueryPlan, compiled: Compiled) -> bool:
    """Whether a query has THEN, and nothing in it goes by the order of the rows."""
    chooses = query.strategy is not Strategy.ALL or query.limit is not None or query.consume is not Consumption.NONE
    read = (leaf for _, condition in conditions_of(query.pattern) for leaf in plan.leaves(condition))
    by_order = chooses or bool(compiled.absences) or any(isinstance(leaf, plan.Lag | plan.Index) for leaf in read)
    return query.model is not None and not by_order and all(map(_is_by_times, walk(query.pattern)))


def _is_by_times(node: Pattern) -> bool:
    if isinstance(node, plan.Sequence):
        return all(link.operator == "THEN" for link in node.links)
    return isinstance(node, plan.Event | plan.Named | plan.Filter | plan.Project | plan.Or | plan.And | plan.Within)


def _first_tied(
    compiled: Compiled, times: Array, letters: Sequence[Array], rows: Array | None, cuts: Array, made: Array | None
) -> int | None:
    """The row of an event, with another of its partition at the same time, where both can matter; None where there is none."""
    same = times[1:] == times[:-1]
    if (rows is None or bool((times[1:] >= times[:-1]).all())) and not same.any():
        return None
    start, step = 0, FIRST
    while start < (len(times) if rows is None else len(rows)):
        # One more: the first of the next piece is the neighbour of the last of this one.
        piece = np.arange(start, min(start + step + 1, len(times))) if rows is None else rows[start : start + step + 1]
        own = times[piece]
        same = own[1:] == own[:-1]
        if same.any():
            places = np.flatnonzero(np.append(same, False) | np.insert(same, 0, False))
            places = places[_relevant(compiled, [each[piece[places]] for each in letters])]
            places = places if made is None else places[~made[piece[places]]]
            partitions = np.searchsorted(cuts, places + start, "right")
            tied = np.flatnonzero((np.diff(own[places]) == 0) & (np.diff(partitions) == 0))
            if len(tied):
                return int(piece[places[tied[0]]])
        start, step = start + step, min(2 * step, PIECE)
    return None


def _of_one_event(compiled: Compiled) -> bool:
    """Whether nothing says what stands before or behind an event."""
    alone = not (compiled.absences or compiled.lags or compiled.positional)
    return alone and is_of_one_event(compiled.plan.pattern)


def _relevant(compiled: Compiled, letters: Sequence[Array]) -> Array:
    """For each event whether it can change anything (bool)."""
    found: Array = np.full(len(letters[0]), not compiled.droppable)
    for program, own in zip(compiled.programs, letters, strict=True):
        found |= having(own, program.automaton.alphabet, [(mask, 0) for mask in program.relevant_masks])
    return found
