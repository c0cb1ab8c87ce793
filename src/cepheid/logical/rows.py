"""The logical plan of a MATCH_RECOGNIZE clause: what it means, with every name, type and number resolved.

`rows_bind` makes it, `testing.reference_rows` reads it by the definition. A pattern is that of `language.rows_syntax`, with numbers as its bounds.
A condition holds or does not: SQL's third value is gone, for `rows_bind` asks of each condition when it is TRUE.

Expressions are those of `plan`; `Field` is a column of the row that is looked at. Beside these there are four leaves: `Classifier` and `MatchNumber`,
and `Navigate` and `Aggregate`, which look at other rows and have expressions of these inside.
"""

from __future__ import annotations

import dataclasses
from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa

from cepheid.language.rows_syntax import Shown, Skip
from cepheid.logical.plan import Expression
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cepheid.language.rows_syntax import RowPattern

    Owner = frozenset[str] | None
    """The variables whose rows are meant, those of a SUBSET or one; None: all rows of the match."""

OPERATORS: Mapping[str, str] = MappingProxyType(
    {
        "array": "a list of the arguments (t.. -> list of t)",
        "same_list": "as long, and equal in each place, false on NULL and where an element is NULL (list, list -> bool)",
        "other_list": "of another length, or different in a place where both have a value, false on NULL (list, list -> bool)",
        "array_max": "the greatest element, NULL if one is NULL or there is none (list of t -> t)",
        "array_min": "the least element, NULL if one is NULL or there is none (list of t -> t)",
        "cardinality": "number of elements (list -> int64)",
        "convert": "CAST: a number to another type of number, towards zero and NULL out of its range; int64 and bool to text",
    }
)
"""The operators that only row patterns have, beside `plan.OPERATORS`."""

AGGREGATES: Mapping[str, str] = MappingProxyType(
    {
        "count": "how many rows; of an argument: where it is not NULL",
        "sum": "the sum, NULL on overflow",
        "avg": "the mean, a double",
        "min": "the least value",
        "max": "the greatest value",
        "stddev": "the standard deviation of a sample, a double; NULL for fewer than two",
        "array_agg": "the values in the order of their rows, NULL too",
        "arbitrary": "the first value that is not NULL",
        "bool_and": "whether all are true",
        "bool_or": "whether one is true",
        "max_by": "the first argument where the second one is greatest, of equal ones the first",
        "min_by": "the same where it is least",
    }
)
"""What aggregates mean. All but count and array_agg pass over NULL, and are NULL of no value; count of none is 0, array_agg of no row NULL."""


@record
class Classifier(Expression):
    """The variable of the row that is looked at; NULL where the match has not mapped it (yet)."""

    type: pa.DataType = pa.utf8()


@record
class MatchNumber(Expression):
    """The number of the match in its partition, from 1."""

    type: pa.DataType = pa.int64()


@record
class Navigate(Expression):
    """`PREV(FIRST(A.x, n), m)`: the value of an expression at another row, NULL where there is none.

    The row: of those of the owner in the match the first or the last, `logical` further inside; and from there `physical` rows of the partition on,
    less than 0: back. final: all of the match is seen, else what comes before the current row and this one.
    """

    owner: Owner
    first: bool
    logical: int
    physical: int
    final: bool
    argument: Expression
    type: pa.DataType = dataclasses.field(hash=False)


@record
class Aggregate(Expression):
    """A function of `AGGREGATES` over the rows of the owner in the match for which `where` holds. final: as in `Navigate`."""

    name: str
    owner: Owner
    arguments: tuple[Expression, ...]
    distinct: bool
    where: Expression | None
    final: bool
    type: pa.DataType = dataclasses.field(hash=False)


@record
class OrderKey:
    """A column of ORDER BY."""

    column: str
    descending: bool
    nulls_first: bool


@record
class RowMeasure:
    """A column of the result."""

    name: str
    expression: Expression
    type: pa.DataType


@record
class RowPlan:
    """A whole clause over the columns of a table.

    columns: all of the table, in its order. variables: those of the pattern, as they first come there. conditions: of those that have one; the others
    take any row. unions: of each SUBSET. resume: the variables at whose first or last row the next match may start, with SKIP TO. within: the first
    value of ORDER BY of a row is less than this much greater than that of the first row of its match, in steps of the column.
    """

    columns: tuple[tuple[str, pa.DataType], ...]
    partition_by: tuple[str, ...]
    order_by: tuple[OrderKey, ...]
    measures: tuple[RowMeasure, ...]
    shown: Shown
    skip: Skip
    resume: frozenset[str]
    pattern: RowPattern
    within: int | None
    variables: tuple[str, ...]
    unions: Mapping[str, frozenset[str]]
    conditions: Mapping[str, Expression]
    text: str = ""

    @property
    def output(self) -> tuple[str, ...]:
        """The names of the columns of the result: with ALL ROWS those of PARTITION BY, of ORDER BY, the measures, and the rest."""
        named = [measure.name for measure in self.measures]
        if self.shown is Shown.ONE_ROW:
            return (*self.partition_by, *named)
        first = dict.fromkeys([*self.partition_by, *(key.column for key in self.order_by)])
        return (*first, *named, *(name for name, _ in self.columns if name not in first))
