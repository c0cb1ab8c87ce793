"""What `check` finds in a query that parses: errors of binding, warnings, and parts that no engine supports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cepheid.cli.failures import message
from cepheid.engine.plan.likely_schema import likely_schema
from cepheid.engine.plan.planner import compile_plan
from cepheid.errors import LimitError, NotSupportedError, quoted
from cepheid.logical.parameters import parameters

if TYPE_CHECKING:
    import cepheid
    from cepheid.schema import EventSchema


def findings(query: cepheid.Query, schema: EventSchema | None) -> tuple[list[str], list[str]]:
    """The warnings about a query and the notes, as printable texts.

    schema: of the events; without it the query is bound to attributes with the types that it seems to want, so that names, scopes, windows
    and strategies are checked, and types as far as the query tells them. Parameters need no values: a note says which have none, and what these
    decide is not checked. Raises BindError.
    """
    unknown = dict.fromkeys(node.name for node in parameters(query.tree) if node.name not in query.args)
    schema = likely_schema(query) if schema is None else schema
    plan = query.bound(schema, partial=True)
    notes = []
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
    return list(plan.lints), notes
