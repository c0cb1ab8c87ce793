"""The event types that a query names but no event has: a misspelt name gives no error, but no matches, or too many.

Comes in: the events of a run, with their letters if there are any. Goes out: warnings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from cepheid.engine.letters.values import plain
from cepheid.engine.letters.words import types_in
from cepheid.errors import nearest
from cepheid.logical.plan import Event
from cepheid.logical.tree import walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cepheid.automata import Program
    from cepheid.engine.memory.pools import Array
    from cepheid.logical.plan import QueryPlan

PIECE = 1 << 12
"""Letters that are looked at before the next ones: mostly all types are met soon."""

MANY_TYPES = 1000
"""Different types of events among which no name is looked for that is near to another."""


class NamedTypes:
    """What is known of the types that a query names, piece by piece of its events.

    programs: of the letters that `see` gets. missing: the types that no event had so far; none where the type is not in a column. Types that EVENT
    definitions make are not among them: whether there are such events is what the query asks.
    """

    def __init__(self, plan: QueryPlan, programs: Sequence[Program] = ()) -> None:
        patterns = [plan.pattern, *(definition.plan.pattern for definition in plan.definitions)]
        named = {node.type for pattern in patterns for node in walk(pattern) if isinstance(node, Event) and node.type is not None}
        named -= plan.schema.made
        self.column = plan.schema.type_column
        self.missing: set[str] = set() if self.column is None else named
        self._alphabets = tuple(program.automaton.alphabet for program in programs)
        self._met: set[str | None] = set()

    def see(self, events: pa.Table, letters: Sequence[Array] = ()) -> None:
        """Read some events; letters: theirs, of each program.

        Linear in the letters; the types are only looked at where one is missing in the letters.
        """
        if not self.missing or not events.num_rows:
            return
        for alphabet, array in zip(self._alphabets, letters, strict=bool(letters)):
            names = [predicate.type for predicate in alphabet.predicates if predicate.type is not None]  # by number, from 1 on
            for start in range(0, len(array), PIECE):
                if not self.missing:
                    return
                numbers = np.flatnonzero(np.bincount(types_in(array[start : start + PIECE], alphabet)))
                self.missing.difference_update(names[number - 1] for number in numbers.tolist() if number)
        if self.missing and self.column in events.column_names:
            for chunk in events[self.column].chunks:
                self.met((chunk if pa.types.is_dictionary(chunk.type) else plain(chunk)).unique().to_pylist())

    def met(self, types: Iterable[str | None]) -> None:
        """Some events have these types."""
        types = set(types)
        self.missing -= types
        if len(self._met) <= MANY_TYPES:
            self._met |= types

    @property
    def known(self) -> list[str]:
        """The types that events had so far, by name; none where these are more than `MANY_TYPES`."""
        return sorted(name for name in self._met if name is not None) if len(self._met) <= MANY_TYPES else []

    @property
    def warnings(self) -> tuple[str, ...]:
        """A line for each type that is missing, with the name that is near; none without any event."""
        near = {name: nearest(name, self.known) for name in sorted(self.missing)} if self._met else {}
        return tuple(f"no event has the type `{name}`" + (f": did you mean `{like}`?" if like else "") for name, like in near.items())
