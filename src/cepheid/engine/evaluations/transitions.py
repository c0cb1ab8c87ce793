"""The transition table of one evaluation: the program's macro states and successors, as far as the stream has asked for them.

The kernel reads flat tables and returns when it meets a letter or a transition that is not in them; this module fills them in
(lazy I/O-determinization, foundations-cel, section 6). The table has a bound: past it everything is forgotten but the live macro states, which are
numbered anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from cepheid.engine.letters.codes import LetterCodes
from cepheid.engine.memory.pools import power_of_two
from cepheid.errors import LimitError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cepheid.engine.memory.pools import Array

TABLE_ENTRIES = 1 << 20
"""Bound of the transition table, in (macro state, letter) pairs, 8 bytes each; see `TransitionTable.renumber`."""

LABEL_LIMIT = 1 << 16
"""How many labels (sets of variables) a program may have: a label is two bytes in the match graph and in the output."""

NONE, UNKNOWN = -1, -2
HIGH = 62  # macro states from here on share one bit of the kernel's bit sets


class HasSuccessors(Protocol):
    """What the evaluation needs of an automaton: `cepheid.automata.program.Program`."""

    @property
    def initial(self) -> int:
        """The initial macro state, as a bit mask over automaton states."""

    @property
    def states(self) -> int:
        """The number of automaton states."""

    @property
    def labels(self) -> int:
        """The number of labels."""

    @property
    def bits(self) -> int:
        """The number of predicate bits of a letter."""

    @property
    def fingerprint(self) -> bytes:
        """Bytes that differ when the automaton differs."""

    def successors(self, macro: int, letter: int) -> tuple[tuple[tuple[int, int], ...], int]:
        """((label, macro state), ..) of the marking moves, sorted by label, and the macro state of the others (0: none)."""

    def accepts(self, macro: int) -> bool:
        """Whether a match ends in the macro state."""

    def ends(self, macro: int) -> bool:
        """Whether no transition leaves the macro state."""


class TransitionTable:
    """Flat tables of the transitions met so far; macro state 0 is the initial one.

    marked_of, unmarked_of: by macro * codes + code. known, stirs: by code, macro states as bits.
    moves: stride 4 (target or -1 if nothing leaves it, label, next or -1, target is final). The kernel's docstring says what they mean.
    """

    def __init__(self, program: HasSuccessors, *, entries: int = TABLE_ENTRIES) -> None:
        self.program = program
        self.entries = entries
        self._letter_codes = LetterCodes(program.bits)
        self.fanout = 1
        self.fills = 0
        self.flushes = 0
        self._renumbered = False
        self._forget(macros=4, codes=2)
        self.macro(program.initial)

    def _forget(self, *, macros: int, codes: int) -> None:
        self.codes = codes
        self.macro_count = macros
        self.macro_ids: dict[int, int] = {}
        self.macros: list[int] = []
        self._letter_codes.forget()
        self.marked_of: Array = np.full(macros * codes, UNKNOWN, np.int32)
        self.unmarked_of: Array = np.full(macros * codes, NONE, np.int32)
        self.known: Array = np.full(codes, 1 << HIGH, np.int64)
        self.stirs: Array = np.full(codes, -1, np.int64)
        self.moves: Array = np.zeros(4 * 16, np.int32)
        self._move_count = 0

    # ------------------------------------------------------------------------------------------------ letters

    @property
    def lut(self) -> Array:
        """Letter (or its number in the batch) -> code, see LetterCodes."""
        return self._letter_codes.lut

    @property
    def letter_mask(self) -> int:
        """The bits of a letter that index `lut`."""
        return self._letter_codes.letter_mask

    @property
    def letters(self) -> list[int]:
        """The letter of each code."""
        return self._letter_codes.letters

    def begin(self, letters: Array) -> Array:
        """The batch as the kernel reads it (uint32), see LetterCodes; prepares `lut` for it."""
        return self._letter_codes.begin(letters)

    def learn(self, index: int) -> bool:
        """Give the letter at `index` of `lut` a code; False if the table has to be renumbered first."""
        if len(self.letters) == self.codes and not self._resize(self.macro_count, 2 * self.codes):
            return False
        self._letter_codes.learn(index)
        return True

    # ------------------------------------------------------------------------------------------------ transitions

    def macro(self, states: int) -> int:
        """The number of a macro state, a new one if need be (there must be room)."""
        number = self.macro_ids.get(states)
        if number is None:
            number = self.macro_ids[states] = len(self.macros)
            self.macros.append(states)
        return number

    def adopt(self, macros: list[int]) -> Array:
        """Numbers of these macro states, new ones where need be, whatever the bound (int32)."""
        wanted = len(self.macros) + len(macros)
        if wanted > self.macro_count:
            self._grow(power_of_two(wanted), self.codes)
        return np.array([self.macro(states) for states in macros], np.int32)

    def fill(self, code: int, live: Iterable[int]) -> bool:
        """Make the transitions of the live macro states (and the initial one) on a letter known; False if the table has to be renumbered first."""
        letter = self.letters[code]
        unknown = [q for q in dict.fromkeys([0, *live]) if self.marked_of[q * self.codes + code] == UNKNOWN]
        found = [self.program.successors(self.macros[q], letter) for q in unknown]
        targets = {target for marked, unmarked in found for target in (*(to for _, to in marked), unmarked) if target}
        wanted = len(self.macros) + len(targets - self.macro_ids.keys())
        if wanted > self.macro_count and not self._resize(power_of_two(wanted), self.codes):
            return False
        for q, (marked, unmarked) in zip(unknown, found, strict=True):
            self._enter(q, code, marked, unmarked)
        self._renumbered = False
        return True

    def _enter(self, q: int, code: int, marked: tuple[tuple[int, int], ...], unmarked: int) -> None:
        rest = q if q == 0 else (self.macro(unmarked) if unmarked else NONE)
        place = q * self.codes + code
        self.marked_of[place] = self._chain(marked)
        self.unmarked_of[place] = rest
        self.fills += 1
        if q < HIGH:
            self.known[code] |= 1 << q
            if not marked and rest == q:
                self.stirs[code] &= ~(1 << q)

    def _chain(self, marked: tuple[tuple[int, int], ...]) -> int:
        if not marked:
            return NONE
        first = self._move_count
        self._move_count += len(marked)
        self.fanout = max(self.fanout, len(marked))
        if 4 * self._move_count > self.moves.size:
            self.moves = np.concatenate([self.moves, np.zeros(max(self.moves.size, 4 * len(marked)), np.int32)])
        for number, (label, target) in enumerate(marked, first):
            if label >= LABEL_LIMIT:
                raise LimitError(
                    f"a match of this query would have label number {label}, and the limit is {LABEL_LIMIT} sets of variables",
                    help="name fewer variables, or take the query apart",
                )
            following = 4 * (number + 1) if number + 1 < self._move_count else NONE
            self.moves[4 * number : 4 * number + 4] = (
                NONE if self.program.ends(target) else self.macro(target),
                label,
                following,
                self.program.accepts(target),
            )
        return 4 * first

    # ------------------------------------------------------------------------------------------------ size

    def _resize(self, macros: int, codes: int) -> bool:
        if macros * codes > self.entries and not self._renumbered:
            return False
        self._grow(macros, codes)
        return True

    def _grow(self, macros: int, codes: int) -> None:
        for name, default in (("marked_of", UNKNOWN), ("unmarked_of", NONE)):
            larger: Array = np.full((macros, codes), default, np.int32)
            larger[: self.macro_count, : self.codes] = getattr(self, name).reshape(self.macro_count, self.codes)
            setattr(self, name, larger.ravel())
        for name, default in (("known", 1 << HIGH), ("stirs", -1)):
            larger = np.full(codes, default, np.int64)
            larger[: self.codes] = getattr(self, name)
            setattr(self, name, larger)
        self.macro_count, self.codes = macros, codes

    def renumber(self, live: Array) -> Array:
        """Forget all but the live macro states; returns the new number of each old one (int32, -1 for the forgotten).

        live: numbers of macro states. If they and their next event alone need more than the bound, the bound gives way: a stream is never
        stopped by it.
        """
        old = self.macros
        self._renumbered = True
        kept = [0, *(int(q) for q in np.unique(live) if q)]
        self.flushes += 1
        macros = power_of_two(2 * len(kept) + 2 * self.fanout + 2)
        self._forget(macros=macros, codes=2)
        self.entries = max(self.entries, 4 * macros * self.codes)
        renumbered = np.full(len(old), NONE, np.int32)
        for q in kept:
            renumbered[q] = self.macro(old[q])
        return renumbered

    @property
    def nbytes(self) -> int:
        """Bytes of the tables."""
        arrays = (self.marked_of, self.unmarked_of, self.known, self.stirs, self.moves)
        return self._letter_codes.nbytes + sum(int(array.nbytes) for array in arrays)
