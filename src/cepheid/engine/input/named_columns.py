"""Columns that a query takes for something else than their values are: a plausible number in silence.

A column of numbers with one value that is none is read as text, and compared as text. Without a time column rows are taken in their order, whatever
a column of times says.

Comes in: a plan, and the events of a run. Goes out: warnings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.input.files.csvs import NUMBER
from cepheid.logical.plan import Apply, Field, walk
from cepheid.logical.tree import conditions_of, is_of_one_event
from cepheid.logical.types import FLIPPED, type_of
from cepheid.schema import is_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cepheid.logical.plan import Expression, QueryPlan

ORDERED = (FLIPPED.keys() - {"=", "!="}) | {"min", "max"}
"""Operators that ask for the order of values."""

LOOKED_AT, MOSTLY = 1000, 0.9
"""Texts that are looked at first, and the share of numbers among them that says what the column is meant to be."""


class NamedColumns:
    """What is known of the columns that a query names, piece by piece of its events.

    texts: the columns whose order as texts the query asks for, and of which not all is known: of each whether it is mostly numbers, as far
    as that is known.
    """

    def __init__(self, plan: QueryPlan) -> None:
        plans = [plan, *(definition.plan for definition in plan.definitions)]
        made = set().union(*plan.schema.made.values())
        named = dict.fromkeys(name for each in plans for expression in _expressions(each) for name in _ordered_texts(expression))
        self.texts: dict[str, bool] = {name: False for name in named if name not in made}
        self._found: dict[str, str] = {}
        self._times = () if plan.schema.time_column is not None or is_of_one_event(plan.pattern) else _times(plan)

    def see(self, events: pa.Table) -> None:
        """Read some events. Constant, but for a column that is mostly numbers: linear, up to the first value that is none."""
        for name, numbers in list(self.texts.items()):
            if name in events.column_names and is_text(events.schema.field(name).type):
                column = events[name].drop_null()
                if len(column):
                    self._see(name, column, numbers=numbers)

    def _see(self, name: str, column: pa.ChunkedArray, *, numbers: bool) -> None:
        if not numbers and pc.mean(_numbers(column[:LOOKED_AT])).as_py() < MOSTLY:
            del self.texts[name]
            return
        self.texts[name] = True
        place = pc.index(_numbers(column), value=False).as_py()
        if place >= 0:
            self._found[name] = str(column[place])
            del self.texts[name]

    @property
    def warnings(self) -> tuple[str, ...]:
        """A line for each column that is mostly numbers, and one where a column of times is passed over."""
        odd = {name: f"for not all of its values are numbers, such as {value!r}" for name, value in self._found.items()}
        odd |= {name: "though its values are numbers" for name, is_number in self.texts.items() if is_number}
        texts = [
            f"`{name}` is text, {why}: it is compared as text, where '10' comes before '9'; make it a column of numbers before"
            for name, why in odd.items()
        ]
        times = [
            f"no column of the events is their time, so the rows are taken in their order; `{name}` has times: time= (--time) names it"
            for name in self._times[:1]
        ]
        return (*texts, *times)


def _expressions(plan: QueryPlan) -> Iterator[Expression]:
    """All that a plan computes."""
    yield from (condition for _, condition in conditions_of(plan.pattern))
    yield from (measure.expression for measure in (*plan.measures, *([plan.having] if plan.having is not None else [])))


def _ordered_texts(expression: Expression) -> Iterator[str]:
    """The columns of text whose order an expression asks for."""
    for node in walk(expression):
        if isinstance(node, Apply) and node.operator in ORDERED:
            fields = [part for part in node.arguments if isinstance(part, Field) and len(part.path) == 1]
            yield from (field.path[0] for field in fields if is_text(type_of(field)))


def _times(plan: QueryPlan) -> tuple[str, ...]:
    """The columns of times."""
    return tuple(name for name, kind in plan.schema.attributes.items() if pa.types.is_timestamp(kind))


def _numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whether each text is a number."""
    return pc.match_substring_regex(column.cast(pa.large_string()), rf"^\s*{NUMBER.pattern}\s*$")
