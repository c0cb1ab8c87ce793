"""What every part of binding needs: the schema, the parameters, the text for messages, and the warnings and notes collected so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from cepheid.errors import BindError, Span, excerpt, nearest, quoted
from cepheid.language.syntax import TimeModel
from cepheid.logical.plan import NOTE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cepheid.language.syntax import Parameter
    from cepheid.schema import EventSchema


SHOWN_TIMES = 3
"""Most attributes that are offered as the event time."""


@dataclass
class Context:
    """One call of `bind`.

    args: the values of the parameters. text: the query, "" if there is none (then messages have no excerpt). event_types: the names that the pattern
    uses as types. negated: the names of types and variables that stand in negated patterns only, each with the operator there. lints: the warnings
    and notes so far, as (place, printable text). partial: whether parameters may have no value; unknown: their places, then. model: what THEN means.
    measures: the names that SELECT gives to measures.
    """

    schema: EventSchema
    args: Mapping[str, object]
    text: str
    event_types: frozenset[str] = frozenset()
    negated: Mapping[str, str] = field(default_factory=dict)
    lints: list[tuple[Span, str]] = field(default_factory=list)
    partial: bool = False
    model: TimeModel = TimeModel.CAYUGA
    unknown: tuple[Span, ...] = ()
    measures: frozenset[str] = frozenset()

    def is_open(self, parameter: Parameter) -> bool:
        """Whether a parameter has no value, and need not have one."""
        return self.partial and parameter.name not in self.args

    @property
    def name_time(self) -> str:
        """The help where the events have no time column: the attributes that may be it."""
        kinds = self.schema.attributes.items()
        likely = [name for name, kind in kinds if pa.types.is_timestamp(kind) or pa.types.is_date(kind)]
        return f"name it with {' or '.join(f'time={name!r}' for name in likely[:SHOWN_TIMES]) or 'time='}"

    def error(self, fact: str, span: Span | None, *help: str) -> BindError:  # noqa: A002 - the word that the message prints
        """A BindError at a place of the query."""
        return BindError(fact, help=help, text=self.text or None, span=span)

    def warn(self, fact: str, span: Span, *help: str) -> None:  # noqa: A002 - as above
        """Add a warning: the query is probably not what was meant, and it can be written so that nobody has to ask."""
        self._lint("warning", fact, span, help)

    def note(self, fact: str, span: Span, *help: str) -> None:  # noqa: A002 - as above
        """Add a note: what is written here means something else elsewhere, and there is no other way to write it for who means it."""
        self._lint(NOTE, fact, span, help)

    def _lint(self, level: str, fact: str, span: Span, help_: tuple[str, ...]) -> None:
        """Add a lint, once for each place; none about what an open parameter may decide."""
        if any(span.start <= place.start and place.end <= span.end for place in self.unknown):
            return
        lines = [f"{level}: {fact}", *(excerpt(self.text, span) if self.text else ()), *(f"help: {line}" for line in help_)]
        found = (span, "\n".join(lines))
        if found not in self.lints:
            self.lints.append(found)

    def is_type(self, name: str) -> bool:
        """Whether a name is an event type: used as one in the pattern, or known to the schema."""
        return name in self.event_types or (self.schema.types is not None and name in self.schema.types)


def suggestion(name: str, known: Iterable[str], *, what: str = "") -> tuple[str, ...]:
    """The help for an unknown name: the nearest one (or the one that differs in case only), and what there is."""
    names = sorted(known)
    near = next((other for other in names if other.lower() == name.lower()), None) or nearest(name, names)
    parts = [f"did you mean `{near}`?"] if near else []
    if what and names:
        parts.append(f"{what}: {quoted(names)}")
    return (" ".join(parts),) if parts else ()
