"""What `why_not` answers: `WhyNot`, and its parts. Plain data, with a text for terminals and one for notebooks."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from cepheid.errors import excerpt
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cepheid.errors import Span


@record
class EventsFound:
    """A match, by the rows of its events in the input: all of them, and those of each variable, ascending."""

    rows: tuple[int, ...]
    variables: Mapping[str, tuple[int, ...]]

    def __str__(self) -> str:
        named = "; ".join(f"{name} = {', '.join(map(str, rows))}" for name, rows in self.variables.items())
        return named or f"rows {', '.join(map(str, self.rows))}"


@record
class Reason:
    """One construct of the query that excludes events.

    kind: of `cepheid.reasons.relaxations.KINDS`: "condition", "gap", "window", "negation", "contiguity", "next", "projection", "having", "strategy",
    "limit", "consumption", "partition", "event", "count" or "order". text: it, as a sentence says it. span: where it stands in the text of the query.
    detail: the values and events that did it; empty where no short one is true.
    """

    kind: str
    text: str
    span: Span
    detail: str = ""


@record
class Way:
    """A smallest set of reasons: all of them exclude the events together, and the query without all of them matches.

    query: the text of that query (empty for the few that have none). match: what it finds.
    """

    reasons: tuple[Reason, ...]
    query: str
    match: EventsFound


@record
class WhyNot:
    """Why events do not match, or the match that they are in. Printable.

    question: what was asked, as text. text_of_query: of the query. match: the match with the events, or None. ways: the smallest sets of reasons,
    smallest first. misfits: where nothing that can be taken out of the query helps: what does not fit. notes: which limits have been reached.
    """

    question: str
    text_of_query: str
    match: EventsFound | None = None
    ways: tuple[Way, ...] = ()
    misfits: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def matched(self) -> bool:
        """Whether the query has a match with the events."""
        return self.match is not None

    @property
    def reasons(self) -> tuple[tuple[Reason, ...], ...]:
        """The smallest sets of reasons: those of `ways`."""
        return tuple(way.reasons for way in self.ways)

    def text(self) -> str:
        """The answer in lines for a terminal."""
        return "\n".join(self._lines())

    __str__ = text

    def _lines(self) -> Iterator[str]:
        if self.match is not None:
            yield f"there is a match with {self.question}"
            yield f"  {self.match}"
        else:
            yield f"there is no match with {self.question}"
        for number, way in enumerate(self.ways):
            yield ""
            yield f"{'or ' if number else ''}excluded by {_listed(reason.text for reason in way.reasons)}{_together(way)}"
            for reason in way.reasons:
                yield from (f"  {line}" for line in excerpt(self.text_of_query, reason.span))
                if reason.detail:
                    yield f"    {reason.detail}"
            yield f"  without {'it' if len(way.reasons) == 1 else 'them'} there is the match {way.match}"
            if way.query:
                yield f"  {way.query}"
        if self.misfits:
            yield ""
            yield from self.misfits
        yield from (f"note: {note}" for note in self.notes)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text())}</pre>"


def _listed(texts: Iterator[str]) -> str:
    *most, last = texts
    return f"{', '.join(most)} and {last}" if most else last


def _together(way: Way) -> str:
    return ", together" if len(way.reasons) > 1 else ""
