"""engine="reference": a query by its definition, from the same inputs and to the same `Matches` as the automaton engine.

Comes in: a bound plan and a table. Goes out: `Matches`. Slow and limited in size, but it has the whole language.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.input.event_times import check_order, times_of
from cepheid.engine.input.keys import key_table
from cepheid.engine.input.named_types import NamedTypes
from cepheid.engine.output.exact_counts import from_integers
from cepheid.engine.output.marks import Ragged
from cepheid.engine.output.matches import Matches, plain_type
from cepheid.engine.plan.compiled import layout_of
from cepheid.logical.rewrite import rewrite

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cepheid.logical.plan import QueryPlan
    from cepheid.testing.reference import Event, Group, Match, Result


def run(plan: QueryPlan, events: pa.Table, *, until: int | str | None = None, null_keys: str = "drop") -> Matches:
    """The matches of a query by `cepheid.testing.reference`; LIMIT and ANY give the first candidates of each trigger.

    events: in the order of their times. Raises InputError for NULL or unsorted times, LimitError past the reference's limits,
    NotSupportedError for what the reference lacks. Exponential.
    """
    from cepheid.testing import reference

    types = NamedTypes(plan, group_nulls=null_keys == "group")
    types.see(events)
    stream = rows_of(plan, events)
    result = reference.run(plan, stream, until=until, null_keys=null_keys)  # type: ignore[arg-type]  # checked by the caller
    if plan.definitions:
        events = _table_of(plan, result.events)
    return dataclasses.replace(_matches(plan, events, result), warnings=types.warnings)


def rows_of(plan: QueryPlan, events: pa.Table) -> list[Event]:
    """The rows of a table as the reference's events: times and durations as whole numbers of steps."""
    from cepheid.testing.reference import Event

    schema = plan.schema
    times: Sequence[int | None] = [None] * events.num_rows
    if schema.time_column is not None:
        numbers = times_of(events, schema.time_column)
        check_order(numbers, events[schema.time_column])
        times = numbers.tolist()
    columns = {name: _steps(events[name]).to_pylist() for name in events.column_names}
    rows = [{name: values[place] for name, values in columns.items()} for place in range(events.num_rows)]
    if schema.type_column is None or (plan.definitions and schema.type_column not in events.column_names):
        types: Sequence[Any] = [schema.stream] * events.num_rows
    else:
        types = events[schema.type_column].to_pylist()
    return [Event(kind, time, row) for kind, time, row in zip(types, times, rows, strict=True)]


def _table_of(plan: QueryPlan, events: Sequence[Event]) -> pa.Table:
    """Events as a table of the plan's schema: what events are made of, and what is made of them."""
    own: dict[str | None, Callable[[Event], object]] = {
        plan.schema.time_column: lambda event: event.time,
        plan.schema.type_column: lambda event: event.type,
    }

    def values(name: str) -> list[object]:
        return [own[name](event) if name in own else event.attributes.get(name) for event in events]

    return pa.table({name: pa.array(values(name), plain_type(kind)) for name, kind in plan.schema.attributes.items()})


def _steps(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Timestamps and durations as int64: Python's own have microseconds at most."""
    kind = column.type
    return pc.cast(column, pa.int64()) if pa.types.is_timestamp(kind) or pa.types.is_duration(kind) else column


def _matches(plan: QueryPlan, events: pa.Table, result: Result) -> Matches:
    waiting = [partition.undecided for partition in result.partitions]
    given = _shown(plan, events, result, [partition.groups for partition in result.partitions])
    return dataclasses.replace(given, null_keys=result.null_keys, waiting=_shown(plan, events, result, waiting) if any(waiting) else None)


def _shown(plan: QueryPlan, events: pa.Table, result: Result, groups: Sequence[Sequence[Group]]) -> Matches:
    """The matches of some groups of each partition."""
    numbers: dict[frozenset[str], int] = {}
    found: list[tuple[int, int, Match, tuple[object, ...]]] = []
    for index, partition in enumerate(result.partitions):
        for group in groups[index]:
            place = partition.positions[group.end]
            if plan.count:
                found.append((place, index, type(group.candidates[0])(group.end, group.end, ()), (group.count,)))
                continue
            rows = group.measures or ((),) * len(group.candidates)
            found += [(place, index, match, row) for match, row in zip(group.candidates, rows, strict=True)][: group.choose]
    found.sort(key=lambda item: item[0])
    marks = [_marks(match, numbers) for _, _, match, _ in found]
    lengths = [len(mark) for mark in marks]
    positions = [position for mark in marks for position, _ in mark]
    labels = np.array([label for mark in marks for _, label in mark], np.uint16)
    rows_ = [result.partitions[item[1]].positions[position] for item, mark in zip(found, marks, strict=True) for position, _ in mark]
    layout = layout_of(plan, tuple(numbers), keys=rewrite(plan).keys)
    table = events.select(layout.events.names)
    firsts = pa.array([partition.positions[0] for partition in result.partitions], pa.int64())
    measures = None
    if layout.measures and not plan.count:
        columns = [pa.array([item[3][index] for item in found], field.type) for index, field in enumerate(layout.measures)]
        measures = pa.table(columns, schema=pa.schema(list(layout.measures)))
    offsets = np.cumsum([0, *lengths]).astype(np.int64)
    return Matches(
        layout,
        Ragged(offsets, np.array(positions, np.int64), labels, np.array(rows_, np.int64)),
        table,
        np.array([item[1] for item in found], np.int64) if layout.keys else None,
        key_table(table.select(list(layout.keys)).take(firsts), layout.keys) if layout.keys else None,
        measures,
        counts=from_integers([item[3][0] for item in found]) if plan.count else None,  # type: ignore[misc]  # a group's count is an int
    )


def _marks(match: Match, numbers: dict[frozenset[str], int]) -> list[tuple[int, int]]:
    """(position, label number) of the events of a match, with its first and last; new label sets get the next number."""
    variables: dict[int, set[str]] = {match.start: set(), match.end: set()}
    for name, positions in match.mapping:
        for position in positions:
            variables.setdefault(position, set()).add(name)
    return [(position, numbers.setdefault(frozenset(names), len(numbers))) for position, names in sorted(variables.items())]
