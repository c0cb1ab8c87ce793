"""The event types that a query names but no event has: a misspelt name gives no error, but no matches, or too many.

And what else gives a plausible number in silence: types that differ from a named one only in case or in spaces around them, types of which no event
has a key of PARTITION BY, and types of EVENT definitions that events have which come in (a pattern that asks for the type takes both). What other
columns say is in `named_columns`.

Comes in: the events of a run, with their letters if there are any. Goes out: warnings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.input.named_columns import NamedColumns
from cepheid.engine.letters.predicates import text_bytes
from cepheid.engine.letters.values import plain
from cepheid.engine.letters.words import types_in
from cepheid.errors import counted, nearest
from cepheid.logical.plan import Event
from cepheid.logical.tree import walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cepheid.automata import Program
    from cepheid.engine.letters.encoded import EventReader
    from cepheid.engine.letters.values import Mask
    from cepheid.engine.memory.pools import Array
    from cepheid.logical.plan import QueryPlan

PIECE = 1 << 12
"""Letters that are looked at before the next ones: mostly all types are met soon."""

MANY_TYPES = 1000
"""Different types of events among which no name is looked for that is near to another."""


def folded(name: str) -> str:
    """A type without what is easily written in two ways."""
    return name.strip().casefold()


def counts_of(types: pa.ChunkedArray) -> list[pa.StructArray]:
    """The different types of events (`values`) and how many have each (`counts`), by chunk; linear."""
    chunks = [chunk if pa.types.is_dictionary(chunk.type) else plain(chunk) for chunk in types.chunks]
    return [chunk.value_counts() for chunk in chunks]


class NamedTypes:
    """What is known of the types that a query names, piece by piece of its events.

    programs: of the letters that `see` gets. derived: whether the events that definitions make are among those that `see` gets. group_nulls: whether
    NULL is a key like any other. missing: the types that no event had so far; none where the type is not in a column. Types that EVENT definitions
    make are not among them: whether there are such events is what the query asks. taken: the types of definitions that events had. alike: how many
    events had a type that is a named one but for case or spaces, by their type. keyless: for each key the types of which no event had it so far.
    columns: what is known of other columns.
    """

    def __init__(self, plan: QueryPlan, programs: Sequence[Program] = (), *, derived: bool = False, group_nulls: bool = False) -> None:
        patterns = [plan.pattern, *(definition.plan.pattern for definition in plan.definitions)]
        named = {node.type for pattern in patterns for node in walk(pattern) if isinstance(node, Event) and node.type is not None}
        named -= plan.schema.made.keys()
        self.column = plan.schema.type_column
        self.columns = NamedColumns(plan)
        self.missing: set[str] = set() if self.column is None else set(named)
        self.taken: set[str] = set()
        self.alike: dict[str, int] = {}
        self.keyless = {key: set(self.missing) for key in (() if group_nulls or plan.definitions else plan.partition_by)}
        self.named, self._folded = named, {folded(name): name for name in sorted(self.missing)}
        self._made: frozenset[str] = frozenset() if self.column is None or derived else frozenset(plan.schema.made)
        self._alphabets = tuple(program.automaton.alphabet for program in programs)
        self._met: set[str | None] = set()
        self._looked, self._some_alike = 0, False  # of what the readers met

    def see(self, events: pa.Table, letters: Sequence[Array] = (), readers: Sequence[EventReader] = ()) -> None:
        """Read some events; letters: theirs, of each program. readers: what made these.

        Linear in the letters, and in these only until all is known. The types themselves are only looked at where one is missing in the letters, is
        that of a definition, or where the readers met one that is a named one but for case or spaces, or do not say what they met.
        """
        self.columns.see(events)
        if self.column is None or not events.num_rows:
            return
        self._find(self.missing, letters, None)
        alike = self._may_be_alike(readers)
        if self.column in events.column_names and (alike or not self.complete()):
            self.see_counts(counts_of(events[self.column]))
        self.see_keys(events, letters)

    def see_counts(self, counts: Iterable[pa.StructArray]) -> None:
        """Read the types of some events, as `counts_of` gives them."""
        for each in counts:
            values = each.field("values")
            if not self.complete():
                self.met(values.to_pylist())
            for text, count in zip(text_bytes(values), each.field("counts").to_pylist(), strict=True) if len(each) <= MANY_TYPES else ():
                name = None if text is None else text.decode(errors="replace")
                if name is not None and self._is_alike(name):
                    self.alike[name] = self.alike.get(name, 0) + count

    def see_keys(self, events: pa.Table, letters: Sequence[Array] = ()) -> None:
        """Read which types of some events have the keys; letters: as for `see`."""
        for key, without in self.keyless.items():
            if without and key in events.column_names:
                self._see_key(without, events, key, letters)

    def _find(self, names: set[str], letters: Sequence[Array], rows: Mask | None) -> None:
        """Take out of a set the types that letters have; rows: whether each is looked at, None: all are."""
        for alphabet, array in zip(self._alphabets, letters, strict=bool(letters)):
            numbered = [predicate.type for predicate in alphabet.predicates if predicate.type is not None]  # by number, from 1 on
            for start in range(0, len(array), PIECE):
                if not names:
                    return
                piece = array[start : start + PIECE]
                numbers = np.flatnonzero(np.bincount(types_in(piece if rows is None else piece[rows[start : start + PIECE]], alphabet)))
                names.difference_update(numbered[number - 1] for number in numbers.tolist() if number)

    def _see_key(self, without: set[str], events: pa.Table, key: str, letters: Sequence[Array]) -> None:
        """Take out of a set the types of events that have a key."""
        column = events[key]
        rows = np.asarray(pc.is_valid(column)) if column.null_count else None
        self._find(without, letters, rows)
        if without - self.missing and self.column in events.column_names and (rows is None or rows.any()):
            types = events[self.column]
            for each in counts_of(types if rows is None else types.filter(pa.array(rows))):
                without.difference_update(each.field("values").to_pylist())

    def _may_be_alike(self, readers: Sequence[EventReader]) -> bool:
        """Whether some type that came is a named one but for case or spaces, as far as it is known without a look."""
        met = next((texts for reader in readers if (texts := reader.types_met) is not None), None)
        if met is None or not self._folded:
            return bool(self._folded)
        if len(met) > self._looked:
            self._looked, self._some_alike = len(met), any(map(self._is_alike, met))
        return self._some_alike

    def _is_alike(self, name: str) -> bool:
        return name not in self.named and folded(name) in self._folded

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
        return (*missing, *self.likenesses, *self.without_key, *self.clashes, *self.columns.warnings)

    @property
    def likenesses(self) -> tuple[str, ...]:
        """A line for each type that is a named one but for case or spaces, where events have both."""
        pairs = ((name, count, self._folded[folded(name)]) for name, count in sorted(self.alike.items()))
        return tuple(
            f"{counted(count, 'event')} {'has' if count == 1 else 'have'} the type `{name}`, which is not `{named}` but for case or spaces:"
            " write the types alike before, or ask for both"
            for name, count, named in pairs
            if named not in self.missing
        )

    @property
    def without_key(self) -> tuple[str, ...]:
        """A line for each type of which no event has a key."""
        return tuple(
            f"no event of the type `{name}` has a `{key}`, which PARTITION BY asks for: none is in a match"
            for key, names in self.keyless.items()
            for name in sorted(names - self.missing)
        )

    @property
    def clashes(self) -> tuple[str, ...]:
        """A line for each type of a definition that events had which came in."""
        return tuple(
            f"events that come in have the type `{name}`, as those of its EVENT definition: rename one" for name in sorted(self.taken)
        )
