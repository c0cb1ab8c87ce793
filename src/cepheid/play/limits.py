"""The limits of the workbench and of `Query.explore`, by name: no query and no page can take more of the machine than they say."""

from __future__ import annotations

from cepheid.errors import LimitError

MAX_BODY_BYTES = 16 << 20
"""Longest request: a query and its events as text, or a file that is uploaded."""

MAX_EVENTS = 20_000
"""Most events of one input."""

MAX_SHOWN_EVENTS = 1_000
"""Events that the table of events has; all of them are evaluated."""

MAX_SHOWN_MATCHES = 300
"""Matches that are listed; how many there are is said all the same."""

MAX_LISTED_BYTES = 64 << 20
"""What the list of all matches may take (`max_bytes` of `Query.run`); past it the first ones are listed, and the rest is counted."""

MAX_STEPS = 2_000
"""Events that one can step through on the automaton."""

MAX_CONFIGURATIONS = 1_000
"""Partial matches of one partition that differ in state or values, for which one steps with comparisons of events; past it a note says so."""

MAX_COMPARISONS = 1_000_000
"""Comparisons of two values that are evaluated while one steps, a condition over more events counting as several; past it a note says so."""

MAX_CELL = 200
"""Characters of one value in a table."""

MAX_ROWS_OF_CODE = 100
"""Events that a copied program has in its text."""

MAX_SECONDS = 10.0
"""Longest time of one request; then its process is ended."""

MAX_MEMORY = 4 << 30
"""Address space of the process that evaluates, in bytes, where the system bounds it (Linux)."""

MAX_LINK = 1 << 20
"""Most characters of a shared link, and of what it holds."""


def check_events(count: int) -> None:
    """Raise LimitError for more events than `MAX_EVENTS`."""
    if count > MAX_EVENTS:
        raise LimitError(
            f"there are more than {MAX_EVENTS:,} events, which is all that can be explored at once (MAX_EVENTS)",
            help="take a part of them; `cepheid run` and Query.run have no such limit",
        )
