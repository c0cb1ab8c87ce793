"""What `check` finds in a query that parses: errors of binding, warnings, and what no engine does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cepheid.cli.failures import message
from cepheid.engine.guessing import likely_schema
from cepheid.errors import LimitError, NotSupportedError

if TYPE_CHECKING:
    import cepheid
    from cepheid.schema import EventSchema


def findings(query: cepheid.Query, schema: EventSchema | None) -> tuple[list[str], list[str]]:
    """The warnings about a query and the notes, as printable texts.

    schema: of the events; without it the query is bound to attributes with the types that it seems to want, so that names, scopes, windows
    and strategies are checked, and types as far as the query tells them. Raises BindError.
    """
    plan = query.bound(likely_schema(query) if schema is None else schema)
    notes = []
    try:
        query.compiled(plan.schema)
    except (NotSupportedError, LimitError) as error:
        notes.append(message(error).replace("error:", "note:", 1))
    return list(plan.lints), notes
