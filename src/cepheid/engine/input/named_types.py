"""The event types that a query names but no event has: a misspelt name gives no error, but no matches, or too many.

And the types of EVENT definitions that events have which come in: a pattern that asks for the type takes both.

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

    programs: of the letters that `see` gets. derived: whether the events that definitions make are among those that `see` gets. missing: the types
    that no event had so far; none where the type is not in a column. Types that EVENT definitions make are not among them: whether there are such
    events is what the query asks. taken: the types of definitions that events had.
    """

    def __init__(self, plan: QueryPlan, programs: Sequence[Program] = (), *, derived: bool = False) -> None:
        patterns = [plan.pattern, *(definition.plan.pattern for definition in plan.definitions)]
        named = {node.type for pattern in patterns for node in walk(pattern) if isinstance(node, Event) and node.type is not None}
        named -= plan.schema.made.keys()
        self.column = plan.schema.type_column
        self.missing: set[str] = set() if self.column is None else named
        self.taken: set[str] = set()
        self._made: frozenset[str] = frozenset() if self.column is None or derived else frozenset(plan.schema.made)
        self._alphabets = tuple(program.automaton.alphabet for program in programs)
        self._met: set[str | None] = set()

    def see(self, events: pa.Table, letters: Sequence[Array] = ()) -> None:
        """Read some events; letters: theirs, of each program.

        Linear in the letters; the types are only looked at where one is missing in the letters, or is that of a definition.
        """
        if self.complete() or not events.num_rows:
            return
        for alphabet, array in zip(self._alphabets, letters, strict=bool(letters)):
            names = [predicate.type for predicate in alphabet.predicates if predicate.type is not None]  # by number, from 1 on
            for start in range(0, len(array), PIECE):
                if not self.missing:
                    break
                numbers = np.flatnonzero(np.bincount(types_in(array[start : start + PIECE], alphabet)))
                self.missing.difference_update(names[number - 1] for number in numbers.tolist() if number)
        if not self.complete() and self.column in events.column_names:
            for chunk in events[self.column].chunks:
                self.met((chunk if pa.types.is_dictionary(chunk.type) else plain(chunk)).unique().to_pylist())

    def met(self, types: Iterable[str | None]) -> None:
        """Some events have these types."""
        types = set(types)
        self.missing -= types
        self.taken.update(name for name in self._made if name in types)
        if len(self._met) <= MANY_TYPES:
            self._met |= types

    def complete(self) -> bool:
        """Whether all is known that other events could tell."""
        return not self.missing and self.taken == self._made

    @property
    def known(self) -> list[str]:
        """The types that events had so far, by name; none where these are more than `MANY_TYPES`."""
        return sorted(name for name in self._met if name is not None) if len(self._met) <= MANY_TYPES else []

    @property
    def warnings(self) -> tuple[str, ...]:
        """A line for each type that is missing, with the name that is near, none without any event; and for each that is taken."""
        near = {name: nearest(name, self.known) for name in sorted(self.missing)} if self._met else {}
        missing = [f"no event has the type `{name}`" + (f": did you mean `{like}`?" if like else "") for name, like in near.items()]
        return (*missing, *self.clashes)

    @property
    def clashes(self) -> tuple[str, ...]:
        """A line for each type of a definition that events had which came in."""
        return tuple(
            f"events that come in have the type `{name}`, as those of its EVENT definition: rename one" for name in sorted(self.taken)
        )
