"""Values as text that never changes, for fingerprints.

Other processes, with other versions of Python and of Arrow, read snapshots. So nothing here uses a `hash` or a `repr` that could differ there: which
characters Python's `repr` escapes depends on its version, and Arrow may rename its classes.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from decimal import Decimal
from enum import Enum

import pyarrow as pa


def canonical_text(value: object) -> str:
    """The text of a value: numbers, texts, dates, types, enumerations, sequences, sets of texts, and dataclasses of these; equal values, one text.

    A dataclass is its name and what takes part in comparing it. Raises TypeError for other values. Linear in the text.
    """
    if isinstance(value, pa.DataType):
        return f"<{value}>"
    if isinstance(value, pa.Schema):
        return canonical_text([(field.name, field.type) for field in value])
    if isinstance(value, Enum):
        return canonical_text(value.value)
    if value is None or isinstance(value, (bool, int, float, str, bytes, Decimal, dt.date)):
        return ascii(value)
    if isinstance(value, (tuple, list)):
        return f"({','.join(map(canonical_text, value))})"
    if isinstance(value, frozenset):
        return f"{{{','.join(sorted(map(canonical_text, value)))}}}"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        compared = [getattr(value, field.name) for field in dataclasses.fields(value) if field.compare]
        return f"{type(value).__name__}{canonical_text(compared)}"
    raise TypeError(f"{type(value).__name__} has no canonical text")
