"""The rows of a result as dataclasses: the form in which `pandas.DataFrame(..)` takes rows of what it does not know.

Comes in: names and columns of Python values. Goes out: an array of objects. `Matches.to_pandas` goes by columns, which is faster.
"""

from __future__ import annotations

from dataclasses import fields, make_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cepheid.engine.memory.pools import Array


def dataclass_rows(names: Sequence[str], columns: Sequence[Sequence[Any]], count: int) -> Array:
    """`count` rows, as an array (count,) of dataclass instances with an attribute for each column. Linear."""
    row_type = make_dataclass("Row", [f"column_{number}" for number in range(len(names))], init=False)
    for field, name in zip(fields(row_type), names, strict=True):
        field.name = name  # which need not be an identifier, as make_dataclass asks
    rows = np.empty(count, object)
    for number in range(count):
        rows[number] = row = row_type()
        vars(row).update({name: column[number] for name, column in zip(names, columns, strict=True)})
    return rows
