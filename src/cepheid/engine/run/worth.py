"""What each event adds to what HAVING asks of a match at least, for `evaluations.choosing.bounding`.

Comes in: letters of events and their columns. Goes out: for each event the part of every `Least` that it may be, 0 to 1. A few passes over a column;
nothing here is Python per event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.engine.letters.codes import having
from cepheid.engine.run.amounts import double_of, doubles_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cepheid.automata import Automaton
    from cepheid.engine.memory.pools import Array
    from cepheid.logical.growing import Least

ROUNDED = 1e-9
"""How much less a value may be than its bound, relatively, and still count as beyond it: both are rounded to doubles."""


class Worth:
    """What events add. automaton: says which events can be in a variable."""

    def __init__(self, needs: Sequence[Least], automaton: Automaton) -> None:
        self._needs = needs
        self._alphabet = automaton.alphabet
        self._tests = [
            [(move.requires, move.forbids) for move in automaton.transitions if move.mark is not None and each.leaf.variable in move.mark]
            for each in needs
        ]

    def of(self, letters: Array, column: Callable[[str], Any]) -> Array:
        """float64, (needs, events). column: of an attribute, a chunked array or, of one event, its value."""
        found: Array = np.zeros((len(self._needs), len(letters)))
        for number, (each, tests) in enumerate(zip(self._needs, self._tests, strict=True)):
            binds = having(letters, self._alphabet, tests)
            if binds.any():
                found[number] = np.where(binds, self._part(each, column), 0.0)
        return found

    @staticmethod
    def _part(each: Least, column: Callable[[str], Any]) -> Array | float:
        if each.measure == "count":
            return min(1.0 / each.amount, 1.0)
        values = column(each.leaf.path[0])
        doubles = doubles_of(values) if isinstance(values, pa.ChunkedArray) else double_of(values)
        if each.measure == "sum":
            return np.clip(doubles / each.amount, 0.0, 1.0)
        near = ROUNDED * abs(each.amount)
        beyond: Array = doubles >= each.amount - near if each.measure == "max" else doubles <= each.amount + near
        return beyond.astype(np.float64)
