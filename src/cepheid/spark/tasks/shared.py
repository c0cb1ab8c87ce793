"""The run states of several queries as bytes, with each marked event once.

Comes in: the states of the queries of a bucket. Goes out: sections, and back. Queries over one stream mark much the same events, and a hundred of
them would otherwise write each a hundred times. Imports no Spark.

Queries share a table of events where they keep the same columns. One with absences has a table of its own: it numbers its events as they are
released.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.engine.memory.container import table_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cepheid.engine.memory.pools import Array
    from cepheid.engine.memory.stored import Stored
    from cepheid.engine.run.query_state import QueryState

PLACES = "payload_places"
"""The section of a query that says where its events stand: int64 (4, n), slots, positions in the partition, places in the stream, times."""

ROWS = "payload_rows"
"""The section of a query that says which rows of its table are its events: int32."""


def dump(states: Sequence[QueryState]) -> dict[str, Any]:
    """Sections of all queries: those of one begin with its number and a slash. O(n log n) in the events of all."""
    found = [state.dump() for state in states]
    sections = {f"{number}/{name}": content for number, (each, _) in enumerate(found) for name, content in each.items() if name != PLACES}
    for group, numbers in enumerate(groups(states)):
        if len(numbers) == 1:
            sections[f"events {group}"], sections[f"places {group}"] = found[numbers[0]][1], found[numbers[0]][0][PLACES]
            continue
        places = np.concatenate([_places(found[number][0][PLACES]) for number in numbers], axis=1)
        _, first, rows = np.unique(places[2], return_index=True, return_inverse=True)
        events = pa.concat_tables([found[number][1] for number in numbers])
        sections[f"events {group}"] = events.take(pa.array(first))
        sections[f"places {group}"] = np.ascontiguousarray(places[:, first], "<i8")
        stops = np.cumsum([found[number][1].num_rows for number in numbers])
        for number, own in zip(numbers, np.split(rows, stops[:-1]), strict=True):
            sections[f"{number}/{ROWS}"] = own.astype("<i4")
    return sections


def load(states: Sequence[QueryState], sections: Mapping[str, Any], stored: Stored, *, latest: int) -> None:
    """Let fresh states go on from what `dump` gave; stored, latest: as for `QueryState.load`. Raises what nonsense in it raises."""
    own: list[dict[str, Any]] = [{} for _ in states]
    owners = {str(number): sections_of for number, sections_of in enumerate(own)}
    for name, content in sections.items():
        owner, slash, section = name.partition("/")
        if slash and owner not in owners:
            raise ValueError(f"its section `{name}` belongs to no query")
        if slash:
            owners[owner][section] = content
    for group, numbers in enumerate(groups(states)):
        events, places = table_of(sections[f"events {group}"]), _places(sections[f"places {group}"])
        if len(events) != (places.shape[1] if events.column_names else 0):
            raise ValueError("its events do not fit together")
        for number in numbers:
            if ROWS not in own[number]:
                states[number].load(own[number] | {PLACES: sections[f"places {group}"]}, events, stored, latest=latest)
                continue
            rows = np.frombuffer(own[number][ROWS], "<i4")
            # Each at most once: what is taken again and again would take more memory than the bytes speak of.
            if ((rows < 0) | (rows >= places.shape[1])).any() or len(np.unique(rows)) != len(rows):
                raise ValueError("a query has events that are not in its table")
            mine = own[number] | {PLACES: np.ascontiguousarray(places[:, rows])}
            states[number].load(mine, events.take(pa.array(rows)), stored, latest=latest)


def groups(states: Sequence[QueryState]) -> list[list[int]]:
    """The numbers of the queries that share a table, table by table."""
    groups: dict[object, list[int]] = {}
    for number, state in enumerate(states):
        groups.setdefault((state.payload.schema, None if state.absences is None else number), []).append(number)
    return list(groups.values())


def _places(section: bytes | Array) -> Array:
    return np.frombuffer(section, "<i8").reshape(4, -1)
