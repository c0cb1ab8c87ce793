"""One event at a time as users have it, a dict or a tuple: its values in the order of the schema, and its table where somebody asks for it.

Comes in: an event that `RowLetters.read` has taken, so that its values are known to fit. Goes out: the tuple of its values and, made at the first
use, the one-row table that a list of this one dict would be for a recognizer. What `RowLetters.read` does not take goes on as `as_dicts`, the way
of all lists of dicts, which has the errors.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cepheid.engine.output.matches import without_columns
from cepheid.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Values = tuple[Any, ...]
"""The values of one event in the order of the schema."""


class RowTables:
    """Makes tables of single events with one schema; immutable, so that any number of threads may share it."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._ordered = _ordered(schema.names)
        self._count = len(schema)
        self._whole = _whole(schema)

    def values(self, row: object) -> Values | None:
        """The values of a dict of exactly the schema's attributes, or of a tuple of as many; None for anything else."""
        if type(row) is tuple:
            return row if len(row) == self._count else None
        if type(row) is not dict or len(row) != self._count:
            return None
        try:
            return self._ordered(row)
        except KeyError:
            return None

    def table(self, rows: Sequence[Values]) -> pa.Table:
        """The table of some events of which `RowLetters.read` has taken each, as a recognizer has it of a list of dicts. O(values)."""
        if self._whole is not None:
            return pa.Table.from_batches([pa.RecordBatch.from_struct_array(pa.array(rows, self._whole))], self.schema)
        if not self.schema.names:
            return without_columns(len(rows))
        columns = zip(*rows, strict=True) if rows else [()] * self._count
        arrays = [pa.array(column, kind) for column, kind in zip(columns, self.schema.types, strict=True)]
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def as_dicts(self, row: object) -> list[Any]:
        """One event as the list that a recognizer reads; raises InputError for a tuple that has not one value for each attribute."""
        if not isinstance(row, tuple):
            return [row]
        if len(row) != self._count:
            raise InputError(
                f"the event is a tuple of {len(row)} values, and the schema has {self._count} attributes",
                help=("give one value for each, in the order of the schema, None for NULL", "or a dict"),
            )
        return [dict(zip(self.schema.names, row, strict=True))]


class OneRow:
    """One event: its values, and its table, made when it is first asked for. Values that are changed meanwhile, inside a dict, are changed there."""

    __slots__ = ("_table", "_tables", "values")

    def __init__(self, values: Values, tables: RowTables) -> None:
        self.values = values
        self._tables = tables
        self._table: pa.Table | None = None

    @property
    def table(self) -> pa.Table:
        """The event as a table of one row."""
        if self._table is None:
            self._table = self._tables.table([self.values])
        return self._table


def _ordered(names: list[str]) -> Callable[[dict[str, Any]], Values]:
    """The values of a dict by these names; KeyError where it lacks one."""
    if len(names) > 1:
        return operator.itemgetter(*names)
    return lambda row: tuple(row[name] for name in names)


def _whole(schema: pa.Schema) -> pa.DataType | None:
    """The type of an event as one value: Arrow makes all columns of it at once in half of the time. None where it cannot: of extension types."""
    whole = pa.struct(list(schema))
    try:
        pa.array([], whole)
    except pa.ArrowNotImplementedError:
        return None
    return whole if schema.names else None
