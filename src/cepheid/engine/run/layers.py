"""Matches as events, over a table: layer by layer.

Comes in: a `Compiled` query with EVENT definitions, and a table. Goes out: its matches over the table with the events that the definitions add. Each
definition is a run of its own over what is there before it; then each of its matches is an event (`engine.run.made`). For streams see
`engine.run.layered`.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.engine.evaluations.absences.absence import undecided
from cepheid.engine.input.keys import group, key_codes
from cepheid.engine.input.order import NEVER
from cepheid.engine.output.matches import concatenate
from cepheid.engine.run import batch
from cepheid.engine.run.allowance import made_max_bytes
from cepheid.engine.run.made import Completed, MadeStream
from cepheid.errors import LimitError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cepheid.engine.output.matches import Matches
    from cepheid.engine.plan.compiled import Compiled
    from cepheid.engine.run.equal_times import TiedRows
    from cepheid.logical.plan import EventDefinition


def run(
    compiled: Compiled,
    events: pa.Table,
    *,
    sort: bool = False,
    order: Sequence[str] = (),
    null_keys: str = "drop",
    until: int | str | None = None,
    ties: TiedRows | None = None,
    **options: Any,
) -> Matches:
    """The matches of a query over a table, as `batch.run`; its events are those of the table and those that the definitions add.

    Raises what `batch.run` does, for each definition. Linear in the rows and the matches of each, times how deep definitions use each other.
    """
    times, rows = batch.ordered(compiled.schema, events, sort=sort, order=order)
    stream = MadeStream.of(events, times) if rows is None else MadeStream.of(events.take(pa.array(rows)), times[rows])
    if until is None:
        until = int(times.max(initial=NEVER))
    for definition, layer, schema in zip(compiled.plan.definitions, compiled.layers, compiled.schemas, strict=True):
        most = made_max_bytes(options.get("max_bytes"))
        own = {**options, "max_bytes": most, "sample": None, "progress": None, "null_keys": null_keys, "until": "end", "ties": ties}
        if ties is not None:
            ties.made = stream.depth > 0
        try:
            found = batch.run(layer, _as_read(stream, layer, null_keys), **own)
        except LimitError as error:
            raise of_definition(error, definition) from None
        starts = found.start_rows.astype(np.int64)
        completed = Completed(found, found.end_rows.astype(np.int64), stream.numbers[starts], stream.begun[starts])
        stream, _ = stream.conformed(definition, schema).with_events(definition, completed, schema)
    known = until if isinstance(until, str) else until - compiled.settled
    if ties is not None:
        ties.made = stream.depth > 0
    found = batch.run(compiled, _as_read(stream, compiled, null_keys), null_keys=null_keys, until=known, ties=ties, **options)
    return _decided(found, stream, until, compiled.settled) if compiled.settled and isinstance(until, int) else found


def of_definition(error: LimitError, definition: EventDefinition) -> LimitError:
    """An error about the matches of a definition, which says so."""
    return LimitError(
        f"in the definition of `{definition.name}`: {error.fact}",
        help="make its matches fewer: a shorter WITHIN, conditions on events, SELECT NXT, LAST, MAX or STRICT",
        text=error.text,
        span=error.span,
    )


def _as_read(stream: MadeStream, compiled: Compiled, null_keys: str) -> pa.Table:
    """The events as a query reads them: where each begins is said in columns (`plan.Begin`), in the query's own partitions."""
    if not compiled.schema.made:
        return stream.events
    places = np.arange(len(stream))
    if compiled.written:
        codes, count = key_codes(stream.events, compiled.written, grouped=compiled.written if null_keys == "group" else ())
        places = group(codes, count).positions(len(stream))
    return stream.as_read(places, places[stream.depth == 0][stream.numbers])


def _decided(found: Matches, stream: MadeStream, until: int, settled: int) -> Matches:
    """The matches of a query, those undecided that end where definitions may still make events."""
    open_ = undecided(stream.times[found.end_rows.astype(np.int64)], until, settled)
    if not open_.any():
        return found
    waiting = concatenate(found.layout, [found.undecided, found.take(np.flatnonzero(open_))])
    return dataclasses.replace(found.take(np.flatnonzero(~open_)), waiting=waiting)
