"""The automaton of a query as it is drawn, and its live states after each event, by the rows of the events that are shown."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

import cepheid
from cepheid.engine.output.origins import NOWHERE
from cepheid.errors import CepheidError
from cepheid.play import steps
from cepheid.play.limits import MAX_LISTED_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from cepheid.play.inputs import Given


def machine_of(query: cepheid.Query, given: Given) -> dict[str, Any]:
    """The drawing of the automaton, and its live states after each event.

    Returns `svg`, `states` (how many), `initial`, `finals`, `partitioned`, `steps` (row, states, ends; made: the type of an event that a definition
    makes), `note`: what the steps leave out, and `refused`: why there are none. Raises as `Query.draw`.
    """
    schema = given.schema(query)
    compiled = query.compiled(schema)
    answer: dict[str, Any] = {
        "svg": str(query.draw(schema=schema)),
        "states": compiled.drawn.states,
        "initial": compiled.drawn.initial,
        "finals": sorted(compiled.drawn.finals),
        "partitioned": bool(compiled.keys),
        "steps": [],
        "note": "",
        "refused": "",
    }
    try:
        read, rows = _with_made(query, given) if compiled.layers else given.read()
        found = steps.steps_of(compiled, read, null_keys=given.null_keys)
    except CepheidError as error:
        return answer | {"refused": said(error)}
    types = read.column(schema.type_column).to_pylist() if compiled.layers and schema.type_column else None
    for step in found.steps:
        row, made = rows[step.row], None if types is None or rows[step.row] != NOWHERE else types[step.row]
        answer["steps"].append({"row": None if row == NOWHERE else row, "made": made, "states": list(step.states), "ends": step.ends})
    return answer | {"note": found.note}


def said(error: CepheidError) -> str:
    """An error in one line: what is wrong, and what to do."""
    return " ".join([f"{error.fact}.", *error.help])


def _with_made(query: cepheid.Query, given: Given) -> tuple[pa.Table, Sequence[int]]:
    """The events that the query reads, with those that its definitions make, and the row of each, `NOWHERE` of what is made."""
    shows_all = cepheid.query(dataclasses.replace(query.tree, targets=None, having=None, limit=1), args=query.args)
    found = shows_all.run(given.events, max_bytes=MAX_LISTED_BYTES, **given.options)
    return found.events, found.known_origin.numbers_of(np.arange(found.events.num_rows)).tolist()
