"""Events of equal times: the order of their rows decides what matches, and nobody may have chosen it.

Comes in: the events of a table, as letters. Goes out: a warning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cepheid.engine.letters.codes import having
from cepheid.logical.tree import is_of_one_event

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from cepheid.engine.memory.pools import Array
    from cepheid.engine.plan.compiled import Compiled

FIRST, PIECE = 1 << 10, 1 << 16
"""Events that are looked at together, at first and later: the first two that are found are enough."""


def warnings_of(
    compiled: Compiled, events: pa.Table, times: Array, letters: Sequence[Array], rows: Array | None, cuts: Array
) -> tuple[str, ...]:
    """A line if two events of one partition that can matter have the same time, and a match can have more than one event.

    times, letters (of each program): of the rows of the table. rows: partition by partition, each in the order of its events; None: all as they are.
    cuts: where each partition starts in them. Linear, up to the first two that are found.
    """
    schema = compiled.schema
    if schema.time_column is None or _of_one_event(compiled):
        return ()
    row = _first_tied(compiled, times, letters, rows, cuts)
    if row is None:
        return ()
    fact = f"events that can be in one match have the same time, such as {events[schema.time_column][row]}"
    return (f"{fact}: the order of the rows decides, unless order= (--order) names a column that does",)


def _first_tied(compiled: Compiled, times: Array, letters: Sequence[Array], rows: Array | None, cuts: Array) -> int | None:
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
