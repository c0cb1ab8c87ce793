"""The automaton of a query as it is drawn, and its live states after each event, by the rows of the events that are shown."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

import cepheid
from cepheid.engine.output.origins import NOWHERE
from cepheid.errors import CepheidError
from cepheid.language import syntax
from cepheid.language.syntax import Consumption, Strategy
from cepheid.logical.parameters import parameters
from cepheid.play import steps
from cepheid.play.limits import MAX_LISTED_BYTES
from cepheid.viz.fold import diagram

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from cepheid.play.inputs import ShownEvents

Array = np.ndarray[Any, Any]


def machine_of(query: cepheid.Query, given: ShownEvents) -> dict[str, Any]:
    """The drawing of the automaton, and its live states after each event.

    Returns `svg`, `states` (how many), `initial`, `finals`, `rounds` (of the states in a group, one round of which is drawn: which round it is, in
    words), `partitioned`, `steps` (row, states, ends, sure; made: the type of an event that a definition makes), `note`: what the steps leave out,
    and `refused`: why there are none. Raises as `Query.draw`.
    """
    schema = given.schema(query)
    compiled = query.compiled(schema)
    answer: dict[str, Any] = {
        "svg": str(query.draw(schema=schema)),
        "states": compiled.drawn.states,
        "initial": compiled.drawn.initial,
        "finals": sorted(compiled.drawn.finals),
        "rounds": {str(state): said for state, said in diagram(compiled.drawn).said_rounds()},
        "partitioned": bool(compiled.keys),
        "steps": [],
        "note": "",
        "refused": "",
    }
    try:
        read, rows, begins = _with_made(query, given) if compiled.layers else (*given.read(), None)
        found = steps.steps_of(compiled, read, null_keys=given.null_keys, begins=begins)
    except CepheidError as error:
        return answer | {"refused": said(error)}
    types = read.column(schema.type_column).to_pylist() if compiled.layers and schema.type_column else None
    for step in found.steps:
        row, made = rows[step.row], None if types is None or rows[step.row] != NOWHERE else types[step.row]
        shown = {"row": None if row == NOWHERE else row, "made": made, "states": list(step.states), "ends": step.ends, "sure": step.sure}
        answer["steps"].append(shown)
    return answer | {"note": found.note}


def said(error: CepheidError) -> str:
    """An error in one line: what is wrong, and what to do."""
    return " ".join([f"{error.fact}.", *error.help])


def _with_made(query: cepheid.Query, given: ShownEvents) -> tuple[pa.Table, Sequence[int], Array]:
    """The events that the query reads, with those that its definitions make, in their order.

    Returns them, the row of each in what is shown, `NOWHERE` of what is made, and for each the row of these events with which it begins.
    """
    # Each event is a match by itself, and begins where the event does. In one partition positions are rows, also those of what is undecided.
    tree = dataclasses.replace(
        query.tree,
        pattern=syntax.Named(syntax.Type(None), "event"),
        strategy=Strategy.ALL,
        targets=None,
        partition_by=(),
        partition_within=None,
        having=None,
        consume=Consumption.NONE,
        model=None,
        limit=None,
    )
    asked = {parameter.name for parameter in parameters(tree)}
    every = cepheid.query(tree, args={name: value for name, value in query.args.items() if name in asked})
    found = every.run(given.events, max_bytes=MAX_LISTED_BYTES, **given.options)
    begins = np.arange(found.events.num_rows)
    for marks in (found.marks, found.undecided.marks):
        begins[marks.positions[marks.offsets[1:] - 1]] = marks.positions[marks.offsets[:-1]]
    return found.events, found.known_origin.numbers_of(np.arange(found.events.num_rows)).tolist(), begins
