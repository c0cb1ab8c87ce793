"""What `check` finds in a query that parses: errors of binding, warnings, parts that no engine supports, and types that no event has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cepheid.cli.failures import message
from cepheid.cli.run import unmet_types
from cepheid.engine.plan.likely_schema import error_of_all, likely_schema
from cepheid.engine.plan.planner import compile_plan
from cepheid.errors import LimitError, NotSupportedError, counted, quoted
from cepheid.logical.context import suggestion
from cepheid.logical.parameters import parameters

if TYPE_CHECKING:
    from collections.abc import Sequence

    import cepheid
    from cepheid.engine.input.files.streams import Stream
    from cepheid.logical.plan import QueryPlan
    from cepheid.schema import EventSchema


def findings(query: cepheid.Query, schema: EventSchema | None, streams: Sequence[Stream] = ()) -> tuple[list[str], list[str]]:
    """The warnings about a query and the notes, as printable texts.

    streams: the events. schema: of them; without it the query is bound to attributes with the types that it seems to want, so that names, scopes,
    windows and strategies are checked, and types as far as the query tells them. Parameters need no values: a note says which have none, and what
    these decide is not checked. Raises BindError.
    """
    unknown = dict.fromkeys(node.name for node in parameters(query.tree) if node.name not in query.args)
    schema = likely_schema(query) if schema is None else schema
    plan = query.bound(schema, partial=True)
    notes = list(plan.notes)
    if unknown:
        names = quoted(":" + name for name in unknown)
        notes.append(
            f"note: parameters without a value: {names}; what depends on them is not checked\nhelp: give them with --param NAME=VALUE"
        )
    try:
        if unknown:
            compile_plan(plan)
        else:
            query.compiled(schema)
    except (NotSupportedError, LimitError) as error:
        notes.append(message(error).replace("error:", "note:", 1))
    return list(plan.warnings), [*notes, *_types_of_no_event(plan, streams)]


def help_on_types(query: cepheid.Query) -> list[str]:
    """What to do about an error of binding where no events are given: nothing where no types of attributes put it right."""
    line = "help: types were guessed from the query: name the file of events to check it with their types"
    return [] if error_of_all(query) else [line]


def _types_of_no_event(plan: QueryPlan, streams: Sequence[Stream]) -> list[str]:
    """A note for each type that the query names and no event has, or that a definition makes and some have; none without events.

    And for each type that is a named one but for case or spaces, or that has no key. Reads all of them.
    """
    rows = sum(stream.rows for stream in streams)
    if not rows:
        return []
    types = unmet_types(plan, {stream.name: stream.pieces() for stream in streams})
    facts = {name: f"note: no event has the type `{name}` (of {counted(rows, 'event')})" for name in sorted(types.missing)}
    missing = [
        "\n".join([fact, *(f"help: {line}" for line in suggestion(name, types.known, what="the types of the events are"))])
        for name, fact in facts.items()
    ]
    return [*missing, *(f"note: {line}" for line in (*types.likenesses, *types.without_key, *types.clashes, *types.columns.warnings))]
