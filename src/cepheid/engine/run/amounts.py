"""What the events of a batch have that HAVING adds up: whether the sums can only grow with a match, which has to be known before they are read.

Comes in: letters of events and their columns. Goes out: the part of the room of a sum that its values may take, or inf where one is negative. A few
passes over a column; nothing here is Python per event.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.letters.values import plain
from cepheid.logical.plan import Field
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Callable

    from cepheid.automata import Automaton
    from cepheid.engine.memory.pools import Array
    from cepheid.engine.plan.compiled import Compiled
    from cepheid.logical.plan import Apply


@record
class _Sum:
    """The attribute and the variable of a sum, and the greatest value that it can have."""

    name: str
    variable: str
    most: float


class Amounts:
    """What the sums of a query add."""

    def __init__(self, compiled: Compiled) -> None:
        self._sums = [_sum(each) for each in compiled.sums]
        self._automaton: Automaton = compiled.program.automaton
        self._bound: dict[tuple[str, int], bool] = {}

    def part(self, letters: Array, column: Callable[[str], Any]) -> float:
        """The part of the room of a sum that the values of some events may take, inf where one is negative.

        column: of an attribute, a chunked array or, of one event, its value; it is asked only for what a sum may add.
        """
        return max((self._part(each, letters, column) for each in self._sums), default=0.0)

    def _part(self, each: _Sum, letters: Array, columns: Callable[[str], Any]) -> float:
        if len(letters) == 1 and not self._binds(each.variable, int(letters[0])):
            return 0.0
        column = columns(each.name)
        values = doubles_of(column) if isinstance(column, pa.ChunkedArray) else double_of(column)
        part = _part(values, each.most)
        if part < math.inf:
            return part
        # Events that are never in the variable may have any value.
        several, which = np.unique(letters, return_inverse=True)
        mine: Array = np.array([self._binds(each.variable, letter) for letter in several.tolist()], np.bool_)
        return _part(values[mine[which.reshape(-1)]], each.most)

    def _binds(self, variable: str, letter: int) -> bool:
        """Whether an event with this letter can be in the variable."""
        found = self._bound.get((variable, letter))
        if found is None:
            mask = self._automaton.alphabet.mask_of(letter)
            moves = self._automaton.transitions
            found = any(move.mark is not None and variable in move.mark and move.enabled(mask) for move in moves)
            self._bound[variable, letter] = found
        return found


def _sum(node: Apply) -> _Sum:
    (leaf,) = node.arguments
    assert isinstance(leaf, Field)
    if pa.types.is_decimal(node.type):
        most = 10.0 ** (node.type.precision - node.type.scale)
    else:
        most = 2.0**63 if pa.types.is_integer(node.type) else float(np.finfo(np.float64).max)
    return _Sum(leaf.path[0], leaf.variable, most)


def _part(values: Array, most: float) -> float:
    """The part of `most` that these come to; inf where one is negative or infinite, or all together are more."""
    if not len(values):
        return 0.0
    if values.min() < 0:
        return math.inf
    with np.errstate(over="ignore"):
        part = float((values / most).sum())
    return part if part < 1 else math.inf


def doubles_of(column: pa.ChunkedArray) -> Array:
    """The values of a column as doubles, rounded; 0 for what a sum leaves out."""
    chunks = [pc.cast(plain(chunk), pa.float64(), safe=False) for chunk in column.chunks]
    values: Array = np.concatenate([np.zeros(0), *(pc.fill_null(chunk, 0.0).to_numpy(zero_copy_only=False) for chunk in chunks)])
    null = np.isnan(values)
    return np.where(null, 0.0, values) if null.any() else values


def double_of(value: Any) -> Array:
    """The same of one value."""
    number = 0.0 if value is None else float(value)
    return np.array([0.0 if math.isnan(number) else number])
