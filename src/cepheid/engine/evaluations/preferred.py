"""Row patterns whose conditions look at no match: the preferred match of each start, in two passes over the rows of a partition, linear.

When to use this: MATCH_RECOGNIZE whose conditions read their own row and rows at a fixed distance from it (class row). Comes in: the letter of each
row, one bit for each variable whose condition holds there, and where the partitions are cut. Goes out: the matches, as starts and places.

The kernel `preferred` reads tables that are filled as it asks (`PreferredTables`), which all partitions and all tables of a clause share: the set of
viable places of a row is a state of a deterministic automaton, read from the end, and the first viable way from a place is known for each state.
Cost per row: two look-ups, whatever the pattern. A new pair of a state and a letter costs O(places); there are few in practice, and past SETS_LIMIT
states a LimitError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cepheid.automata.places import ACCEPT
from cepheid.engine.memory.pools import power_of_two
from cepheid.errors import InputError, LimitError
from cepheid.kernel import bound, kernel
from cepheid.language.rows_syntax import Skip
from cepheid.records import record

if TYPE_CHECKING:
    from cepheid.automata.places import Places
    from cepheid.engine.memory.pools import Array
    from cepheid.logical.rows import RowPlan

SETS_LIMIT = 65_536
"""Most sets of viable places, the states of the first pass."""

LETTERS_LIMIT = 65_536
"""Most letters of one clause: different combinations of conditions that hold at a row."""

DIRECT = 16
"""So many variables have letters whose numbers stand in an array."""

UNKNOWN, NONE = -3, -2
"""Entries of tables that are no set and no place: one that is to be found, and that no way can succeed."""

FIRST_ROOM = 1 << 10
"""Matches and rows that the first buffers hold."""


@record
class PreferredMatches:
    """Matches in the order of their partitions: the row where each starts, among all rows, and its places, in places[offsets[k]:offsets[k + 1]]."""

    starts: Array
    offsets: Array
    places: Array

    def __len__(self) -> int:
        return len(self.starts)


class PreferredTables:
    """The two tables of a clause, filled as its rows ask for them."""

    def __init__(self, plan: RowPlan, places: Places) -> None:
        """plan: without WITHIN, which asks of a start how far its match may reach."""
        assert plan.within is None
        self.plan = plan
        self.places = places
        self.sets: list[frozenset[int]] = []
        self._numbers: dict[frozenset[int], int] = {}
        self._letters: dict[int, int] = {}
        self._direct = np.full(1 << min(len(places.variables), DIRECT), -1, np.int32)
        self.back = np.full((1, 4), UNKNOWN, np.int32)
        self.last = np.full(4, UNKNOWN, np.int32)
        self.choice = np.full((len(places) + 2, 1), UNKNOWN, np.int32)
        self.ends = np.array([*places.ends, False, False], np.uint8)
        self.resumes = np.array([places.variables[number] in plan.resume for number in places.variable], np.uint8)
        self._number(frozenset())

    def codes(self, letters: Array) -> Array:
        """The number of each letter, by which tables are read (int32). O(rows), for many variables O(rows log rows); and O(1) for each new letter."""
        if len(self.places.variables) <= DIRECT:
            codes: Array = self._direct[letters]
            for letter in np.unique(letters[codes < 0]).tolist():
                self._direct[letter] = self._code_of(letter)
            return codes if (codes >= 0).all() else self._direct[letters]
        different, codes = np.unique(letters, return_inverse=True)
        known = np.array([self._code_of(letter) for letter in different.tolist()], np.int32)
        return known[codes.reshape(-1)] if len(different) else np.zeros(0, np.int32)

    def _code_of(self, letter: int) -> int:
        code = self._letters.setdefault(letter, len(self._letters))
        if len(self._letters) > LETTERS_LIMIT:
            raise LimitError(
                f"more than {LETTERS_LIMIT:,} combinations of conditions hold at rows (LETTERS_LIMIT)",
                help="use fewer variables, or split the clause",
            )
        if len(self._letters) > len(self.last):
            room = power_of_two(len(self._letters))
            self.last = _grown(self.last, room)
            self.back = _grown(self.back, self.back.shape[0], room)
        return code

    def fill_back(self, state: int | None, code: int) -> None:
        """Find the set of a row with this letter before one with the set `state`; None: before no row."""
        letter = next(letter for letter, number in self._letters.items() if number == code)
        places = self.places
        after = frozenset() if state is None else self.sets[state]
        found = self._number(
            frozenset(
                place
                for place, variable in enumerate(places.variable)
                if letter >> variable & 1
                and (places.ends[place] if state is None else any(way == ACCEPT or way in after for way in places.following[place]))
            )
        )
        if state is None:
            self.last[code] = found
        else:
            self.back[state, code] = found

    def fill_choice(self, origin: int, state: int) -> None:
        """Find the first way from a place, or from a start (`len(places)`, and behind it one that is not the first row), that is in a set."""
        places, viable = self.places, self.sets[state]
        ways = places.following[origin] if origin < len(places) else places.first[0 if origin == len(places) else 1]
        self.choice[origin, state] = next((way for way in ways if way == ACCEPT or way in viable), NONE)

    def _number(self, places: frozenset[int]) -> int:
        found = self._numbers.get(places)
        if found is None:
            if len(self.sets) == SETS_LIMIT:
                raise LimitError(
                    f"the pattern has more than {SETS_LIMIT:,} sets of places that can take a row (SETS_LIMIT)",
                    help=(
                        "use fewer variables that hold at the same rows, or smaller bounds",
                        "cepheid.engine.evaluations.preferred.SETS_LIMIT is the limit",
                    ),
                    text=self.plan.text or None,
                    span=self.plan.pattern.span,
                )
            found = self._numbers[places] = len(self.sets)
            self.sets.append(places)
            if found >= self.back.shape[0]:
                self.back = _grown(self.back, 2 * found, self.back.shape[1])
                self.choice = _grown(self.choice, self.choice.shape[0], 2 * found)
        return found


def _grown(table: Array, *shape: int) -> Array:
    """A larger table with the entries of one; the others are unknown."""
    larger = np.full(shape, UNKNOWN, np.int32)
    larger[tuple(slice(length) for length in table.shape)] = table
    return larger


class Preferred:
    """The matches of a clause in one table: its rows by partition, each in its order. O(rows + rows of the matches)."""

    def __init__(self, tables: PreferredTables, letters: Array, cuts: Array, *, variant: str | None = None) -> None:
        """letters: uint64, of each row. cuts: int64, where each partition starts, and behind them the number of rows. variant: of the kernel."""
        self._tables = tables
        module = kernel("preferred", variant)
        self._run = bound(module)
        self._exits: tuple[str, ...] = module.EXITS
        self._fields = {name: place for place, name in enumerate(module.FIELDS)}
        self._vector = np.zeros(len(self._fields), np.int64)
        self._codes = tables.codes(letters)
        self._cuts = np.ascontiguousarray(cuts, np.int64)

    def _get(self, name: str) -> int:
        return int(self._vector[self._fields[name]])

    def _set(self, **values: int) -> None:
        for name, value in values.items():
            self._vector[self._fields[name]] = value

    def matches(self) -> PreferredMatches:
        """All of them, by partition and start.

        Raises InputError where AFTER MATCH SKIP TO a variable has no row, or resumes at the first row; LimitError past SETS_LIMIT.
        """
        tables, rows = self._tables, len(self._codes)
        viable = np.zeros(rows + 1, np.int32)
        starts: Array = np.zeros(FIRST_ROOM, np.int64)
        offsets: Array = np.zeros(FIRST_ROOM + 1, np.int64)
        places: Array = np.zeros(FIRST_ROOM, np.int32)
        self._set(segment=len(self._cuts) - 2, row=rows, start=len(tables.places), skip=list(Skip).index(tables.plan.skip))
        while True:
            back, choice = tables.back, tables.choice
            self._set(codes=back.shape[1], states=choice.shape[1])
            shared = (self._codes, self._cuts, back.reshape(-1), tables.last, choice.reshape(-1), tables.ends, tables.resumes, viable)
            way = self._exits[self._run((self._vector, *shared, starts, offsets, places))]
            matches, marks = self._get("matches"), self._get("marks")
            if way == "done":
                return PreferredMatches(starts[:matches], offsets[: matches + 1], places[:marks])
            if way == "entry":
                self._fill()
            elif way == "output":
                starts, offsets, places = (np.append(buffer, np.zeros_like(buffer)) for buffer in (starts, offsets, places))
            else:
                raise self._no_way_on(way, int(starts[matches - 1]))

    def _fill(self) -> None:
        """Find the entry that the kernel asks for."""
        if self._get("forward"):
            self._tables.fill_choice(self._get("origin"), self._get("state"))
            return
        row = self._get("row")
        is_last = row == self._cuts[self._get("segment") + 1]
        self._tables.fill_back(None if is_last else self._get("state"), int(self._codes[row - 1]))

    def _no_way_on(self, way: str, start: int) -> InputError:
        """The error where AFTER MATCH SKIP TO cannot go on."""
        names, segment = " or ".join(sorted(self._tables.plan.resume)), self._get("segment")
        match = f"the match from row {start - int(self._cuts[segment])} of its partition"
        if way == "absent":
            return InputError(
                f"{match} has no row of {names}, where AFTER MATCH SKIP resumes",
                help=f"skip past the last row, or to a variable that every match has; {names} is optional in the pattern",
            )
        return InputError(
            f"{match} would be found again: the row of {names}, where AFTER MATCH SKIP resumes, is its first",
            help="skip to the next row, or to a variable that comes later",
        )
